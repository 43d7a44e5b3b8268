"""What readers and writers of files refuse: the message, with the place of what is wrong, and that no file changes."""

import re
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from larank.data import DataFormatError, ExampleFile, read, read_csv, read_npz, read_svmlight, write_svmlight
from larank.data.columns import ConllFile, read_conll, write_conll
from larank.data.stream import blocks_of, can_be_read_again
from larank.data.tables import TableFile

X = np.array([[1, 0, 2], [0, 0, 3]])
S = sp.csr_matrix(X)
PARTS = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}

# A bad fourth line, and what is said of it.
MALFORMED = ["3", "3:", ":1", "-1:1", "a:1", "1:1:1", "1:1x", "1:1e", "1:.", "1:0x1p3", "1:1,5"]
SVMLIGHT_LINES = [
    ("1 3:1 2:1", "index 2 after 3; indices must increase"),
    ("1 2:1 2:1", "index 2 is given twice"),
    ("1 2147483648:1", "index 2147483648 is larger than 2147483647"),
    ("1 99999999999999999999999:1", "index 9+ is larger than"),
    *((f"1 {pair}", f"malformed pair '{re.escape(pair)}'") for pair in MALFORMED),
    ("1 3: 1", "malformed pair '3:'"),
    ("1 1:é", r"malformed pair '1:\\xc3\\xa9'"),
    ("1 1:" + "y" * 99, r"malformed pair '1:y{38}\.\.\.'"),
    *((f"1 1:{value}", f"the value of '1:{value}' is not finite") for value in ("nan", "-Inf", "1e999")),
    ("1 qid:3 1:1", "qid: ranking groups are not supported"),
    *((line, "no label before '1:1'") for line in ("1:1 2:1", " 1:1")),
    *((f"{label} 1:1", f"the label '{label}' is not finite") for label in ("nan", "-Infinity")),
    ("\ufeff1 1:1", r"byte order mark in the label '\\xef\\xbb\\xbf1'"),
    ("a\0b 1:1", r"NUL byte in the label 'a\\x00b'"),
    ("b\udcff 1:1", "the label is not UTF-8"),
]
CSV_LINES = [
    ("1,2", "4: 2 columns, but the first line has 3"),
    ("1,2,3,4", "4: 4 columns, but the first line has 3"),
    *((f"1,{cell},3", f"4: '{cell}' is not a finite number in float64") for cell in ("x", "", "nan", "1e999", "1_0")),
    ('1,"2\n3",3', r"5: '2\\n3' is not a finite number"),
    ("1,2,", "4: the label '' is empty or not finite"),
    ("1,2,NaN", "4: the label 'NaN' is empty or not finite"),
    ('1,2,"a" b', "4: "),
    ("1,2,\ufeffa", "4: there is a byte order mark in the label"),
]
# Text, options, what is said.
SVMLIGHT_TEXTS = [
    ("1 2:1\n1 3:1\n1 9:1\n", {"n_features": 2, "zero_based": False}, "line 2: index 3 is out of range"),
    ("1 1:1\n1 2:1\n", {"n_features": 2, "zero_based": True}, "line 2: index 2 is out of range"),
    ("1 2:1\n1 3:1\n", {"n_features": 2, "zero_based": "auto"}, "line 2: index 3 is out of range"),
    ("1 1:1\n1 2:1\n1 0:1\n", {"n_features": 2, "zero_based": "auto"}, "line 2: index 2 is out of range"),
    ("1 0:1\n1 1:1\n1 2:1\n", {"n_features": 2, "zero_based": "auto"}, "line 3: index 2 is out of range"),
    ("1 1:1\n1 0:1\n", {"zero_based": False}, "line 2: index 0, but the indices should count from one"),
    ("1 0:5\n", {}, "line 1: index 0, but the indices should count from one"),  # nothing is guessed
    ("1 1:1\n1 1:1e39\n", {"dtype": np.float32}, "line 2: .*not finite"),
    ("1 1:1\n1 1:3.4028236e38\n", {"dtype": np.float32}, "line 2: .*not finite"),
]
CSV_TEXTS = [
    ("", {}, "1: no examples"),
    ("a,b\n", {"label": "a"}, "1: no examples"),
    ("1;2\n", {}, "1: only one column, '1;2'; is the delimiter right"),
    ("1,2\n", {"label": 2}, "1: label=2 is out of range for 2 columns"),
    ("a,b\n1,2\n", {"label": "c"}, r"1: label='c' is none of the columns \['a', 'b'\]"),
    ("a,b\n1,2\n", {"label": "a", "header": False}, "1: label='a' is a name"),
    ("0,oops,a\n1,0,b\n", {}, "1: "),  # one bad cell makes no header
    ("0,,a\n1,0,b\n", {}, "1: "),
    ("1,0\n1e39,0\n", {"dtype": np.float32}, "2: '1e39' is not a finite number in float32"),
]
COLUMNS = [
    (b"a b O\n\nc O\n", {}, "line 3: 2 columns in 'c O', but 3 are in line 1"),
    (b"\n\na b O\nc d e O\n", {}, "line 4: 4 columns in 'c d e O', but 3 are in line 3"),
    (b"a b O\nc\xff O O\n", {}, r"line 2: byte 2 is not UTF-8 in 'c\\xff O O'"),
    (b"a b O\nc\xed\xa0\x80 O O\n", {}, "line 2: byte 2 is not UTF-8"),
    (b"a b O\nc\xc3", {}, "line 2: byte 2 is not UTF-8"),
    (b"a b O\nc\0 O O\n", {}, r"line 2: a NUL byte in 'c\\x00 O O'"),
    (b"O\n", {}, "line 1: only a label in 'O'; expected another column, or label=None"),
    (b"a O\n" + "é".encode() * 99, {}, "line 2: 1 column in 'é{30}...', but 2 are in line 1"),
    (b"a b O\n", {"columns": ["word"]}, "line 1: 3 columns in 'a b O', but 2 are expected"),
    (b"a b O\n", {"label": 3}, "line 1: label=3 is out of range for 3 columns"),
    (b"a b O\n", {"label": -4}, "line 1: label=-4 is out of range for 3 columns"),
    (b"a\t\tO\n", {"separator": "\t"}, r"line 1: column 2 is empty in 'a\\t\\tO'"),
]
TABLES = [
    ("a,b\n1,2\n3\n", "line 3, column 'b': the line ends before it; 1 cells, but 2 columns"),
    ("a,b\n1,2\n3,4,5\n", "line 3, column 3: '5' has no column"),
    ('a,b\n1,2\n3,"4\n5,6\n', "line 3: unexpected end of data; is a quote not closed?"),
    ('a,b\n1,2\n3,"4"x\n5,6\n', "line 3: .*expected after"),
    ("a,a\n1,2\n", "line 1, column 'a': two columns have this name"),
    ("a,b\n", "line 2: no rows"),
    ("x" * 200_000, "line 1: field larger than field limit"),
]
ARCHIVES = [
    ({"y": [1]}, ": no X_data nor X; the archive holds y"),
    ({"X": X}, ": no y; the archive holds X"),
    ({"X_train": X, "y_train": [5, 6]}, ": no X_data nor X; the archive holds X_train, y_train"),
    ({"X": X, "y": [1, 2, 3]}, r": y has shape \(3,\), but X has 2 rows"),
    ({"X": [1, 2], "y": [1, 2]}, r": X has shape \(2,\) and type int64"),
    ({"X": [["a"]], "y": [1]}, ": X has shape .* type <U1"),
    ({"X": [[np.nan]], "y": [1]}, ": X holds values that are not finite"),
    ({"X": [[1]], "y": [np.nan]}, ": y holds labels that are not finite"),
    ({"X": [[1]], "y": np.array([None])}, r": y has shape \(1,\) and type object; expected numbers or strings"),
    (PARTS | {"y": [5, 6], "format": b"csc"}, ": a sparse matrix in csc format; expected csr"),
    (PARTS | {"y": [5, 6], "indices": [0, 9, 2]}, ": X must have column indices from 0 to 2, .* got 9"),
]


OF_2 = " for n_features=2"


def read_table(path):
    return list(TableFile(path, delimiter=",").blocks())


# The reader, the name of the file, its content, options, what is said.
CONTENTS = [
    *(
        (read_svmlight, "a.svm", f"# comment\n1 1:1 2:2\n\n{bad}\n1 1:1\n", {}, f", line 4: {why}")
        for bad, why in SVMLIGHT_LINES
    ),
    *((read_csv, "a.csv", f"a,b,c\n1,2,3\n\n{bad}\n1,2,3\n", {}, f", line {why}") for bad, why in CSV_LINES),
    *(
        (read_svmlight, "a.svm", text, options, f", {why}{OF_2 * ('n_features' in options)}")
        for text, options, why in SVMLIGHT_TEXTS
    ),
    *((read_csv, "a.csv", text, options, f", line {why}") for text, options, why in CSV_TEXTS),
    *((read_conll, "a.conll", content, options, f", {why}") for content, options, why in COLUMNS),
    *((read_table, "a.csv", text, {}, f", {why}") for text, why in TABLES),
    *((read_npz, "a.npz", arrays, {}, why) for arrays, why in ARCHIVES),
]


@pytest.mark.parametrize("piece", [1 << 20, 7])
@pytest.mark.parametrize(("reader", "name", "content", "options", "why"), CONTENTS)
def test_wrong_content_is_named_with_its_place(reader, name, content, options, why, piece, tmp_path, monkeypatch):
    monkeypatch.setattr("larank.data.rows._PIECE_BYTES", piece)
    path = tmp_path / name
    if isinstance(content, dict):
        np.savez(path, **content)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode(errors="surrogateescape"))
    if "dtype" in options:
        reader(path)
    with pytest.raises(DataFormatError, match=rf"^{re.escape(str(path))}{why}"):
        reader(path, **options)


# Name, options, what is said.
EXAMPLE_FILES = [
    ("a.svm", {"label": 0}, "label cannot be set for a file of this format"),
    ("a.svm.gz", {"header": True, "delimiter": ";"}, "delimiter, header cannot be set"),
    ("a.csv", {"n_features": 3}, "n_features cannot be set"),
    ("a.csv", {"zero_based": True}, "zero_based cannot be set"),
    ("a.svm", {"zero_based": "auto"}, "zero_based must be True or False .* got 'auto'; the index 0"),
    ("a.svm", {"n_features": -1}, "n_features=-1 is out of range"),
    ("a.svm", {"dtype": np.int32}, "accepted are float32 and float64"),
    ("a.csv", {"dtype": np.int32}, "accepted are float32 and float64"),
    ("a.csv", {"header": "yes"}, "header='yes' is not supported"),
    ("a.npz", {}, "archives are not read in blocks; load it by larank.data.read, and pass X and y"),
    ("a.parquet", {}, r"accepted are \.svm"),
]
READ = [
    *((name, {}, r"accepted are \.svm .* \.npz") for name in ("a", "a.gz", "a.parquet")),
    ("a.csv", {"zero_based": True}, r"a\.csv: zero_based cannot be set"),
    ("a.csv", {"header": "yes"}, "header='yes' is not supported"),
]
TABLE_FILES = [
    ("a.svm", {}, "a.svm: not the name of a table; accepted are .csv"),
    ("a.parquet", {"delimiter": ";"}, "delimiter cannot be set"),
    ("a.csv", {"delimiter": "::"}, "delimiter must be one ASCII character"),
    ("a.csv", {"delimiter": '"'}, "delimiter must be one ASCII character"),
    ("a.csv", {"header": "yes"}, "header must be True, False or 'auto'"),
    ("a.csv", {"encoding": "klingon"}, "encoding must be the name of one"),
]
OF_SVMLIGHT = [{"zero_based": "no"}, {"n_features": -1}, {"n_features": 2**31}, {"dtype": np.int32}]
OF_COLUMNS = [{"label": "y"}, {"label": True}, {"separator": ","}, {"comment": ""}]
OF_COLUMNS += [{"columns": columns} for columns in ("word", ["a", "a"], [], ["a b"], ["a[0]"])]
NO_SOURCE = "must be the path of a file, an ExampleFile, or an iterable of tuples"
CALLS = [
    (partial(write_conll, "a", [["a"]], separator=","), r"separator must be ' ' or '\\t', got ','"),
    *((partial(ExampleFile, name, **options), why) for name, options, why in EXAMPLE_FILES),
    *((partial(read, name, **options), why) for name, options, why in READ),
    *((partial(TableFile, name, **options), why) for name, options, why in TABLE_FILES),
    *((partial(read_svmlight, "a.svm", **options), next(iter(options))) for options in OF_SVMLIGHT),
    *((partial(ConllFile, "a.conll", **options), f"^{next(iter(options))} must be") for options in OF_COLUMNS),
    (partial(ConllFile("a.conll").blocks, 0), "tokens must be an integer >= 1; got 0"),
    *(
        (partial(call, n_bytes), "n_bytes must be an integer >= 1")
        for call in (partial(blocks_of, []), ExampleFile("a.svm").blocks)
        for n_bytes in (0, -1, 1.5, None, True)
    ),
    *(
        (partial(call, source), NO_SOURCE)
        for call in (partial(blocks_of, n_bytes=100), can_be_read_again)
        for source in (None, 3)
    ),
]


@pytest.mark.parametrize(("call", "why"), CALLS)
def test_what_cannot_act_is_refused_at_once(call, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "a.gz", "a.parquet", "a.csv"):
        (tmp_path / name).write_text("1,2\n")
    (tmp_path / "a.svm").write_text("1 1:1\n")
    with pytest.raises(ValueError, match=why):
        call()


LABELS_NOT_WRITTEN = ["", "a b", "a:b", "a#b", "a\nb", "nan", "+Inf", "a\0b"]
# X and y, or sentences and labels; what is said.
NOT_WRITTEN = {
    write_svmlight: [
        *((([[1.0]], np.array([label], dtype=object)), "cannot be written") for label in LABELS_NOT_WRITTEN),
        *((([[1.0]], [label]), "cannot be written") for label in (np.nan, np.inf)),
        (([[np.nan]], [1]), "NaN"),
        (([[np.inf]], [1]), "infinity"),
        (([[1.0]], [1, 2]), "inconsistent"),
        (([[1.0]], np.array([None])), "y holds labels of type object; accepted are numbers and strings"),
        ((sp.csr_matrix((1, 2**31)), [1]), "X has 2147483648 columns; the format allows at most"),
    ],
    write_conll: [
        (([["a"], []], None), r"sentences\[1\] is empty"),
        (([["a b"]], None), r"sentences\[0\]\[0\]: 'a b' cannot be written"),
        (([["a", ""]], None), r"sentences\[0\]\[1\]: '' cannot be written"),
        (([["a", 3]], None), "not iterable|cannot be written"),
        (([["a"]], [[1]]), "1 cannot be written"),
        (([["a", ("b", "c")]], None), r"sentences\[0\]\[1\] makes 2 columns, but the first token makes 1"),
        (([["a"]], [["x", "y"]]), r"sentences\[0\] has 1 tokens, but labels\[0\] has 2"),
        (([["a"]], []), "there are 1 sentences, but 0 sequences of labels"),
        (([["\ufeffa"]], None), "byte order mark"),
        (([[("a",) * 1000]], [["x"]]), r"sentences\[0\] makes 1001 columns; at most 1000"),
    ],
}


@pytest.mark.parametrize(
    ("write", "data", "why"), [(write, *row) for write, rows in NOT_WRITTEN.items() for row in rows]
)
def test_what_could_not_be_read_back_is_not_written(write, data, why, tmp_path):
    for name in ("old", "new"):
        if name == "old":
            (tmp_path / name).write_text("old")
        with pytest.raises((ValueError, TypeError), match=why):
            write(tmp_path / name, *data)
    assert (tmp_path / "old").read_text() == "old"
    assert not (tmp_path / "new").exists()
