import bz2
import gzip
import lzma
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from larank import _core
from larank.data import DataFormatError, data_directory
from larank.data.columns import ConllFile, read_conll, write_conll
from larank.sequence.features import CHUNKING, TemplateEncoder

OPENERS = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
TEXT = "\ufeffThe DT B-NP\r\ndog  NN\tI-NP \n\n\n  \nIl était été\n# NN O\nbarks VBZ B-VP\n\nYes UH B-INTJ"
SENTENCES = [
    [("The", "DT"), ("dog", "NN")],
    [("Il", "était"), ("#", "NN"), ("barks", "VBZ")],
    [("Yes", "UH")],
]
LABELS = [["B-NP", "I-NP"], ["été", "O", "B-VP"], ["B-INTJ"]]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "text.conll"


def native_reader(labels, **options):
    settings = {"label": -1, "splits_at_tabs": False, "comment": "", "expected_cells": 0, "most_cells": 9}
    return _core.ConllReader(labels, **settings | {"block_tokens": 2} | options)


def what_is_in(blocks):
    return [(b.sentences(), b.starts.tolist(), b.labels.tolist(), b.lines.tolist()) for b in blocks]


@pytest.mark.parametrize(
    ("text", "options", "sentences", "labels"),
    [
        (TEXT, {}, SENTENCES, LABELS),
        ("a 1 x\nb 2 y\n", {"label": None}, [[("a", "1", "x"), ("b", "2", "y")]], None),
        ("a 1 x\nb 2 y\n", {"label": 0}, [[("1", "x"), ("2", "y")]], [["a", "b"]]),
        ("a 1 x\nb 2 y\n", {"label": -2}, [[("a", "x"), ("b", "y")]], [["1", "2"]]),
        ("a x\nb y\n", {}, [["a", "b"]], [["x", "y"]]),
        ("New York\tB\n \t \nin\tO\n", {"separator": "\t"}, [["New York"], ["in"]], [["B"], ["O"]]),
        ("# id O\na O\n#b O\n\n# x O\nc O\n", {"comment": "# "}, [["a", "#b"], ["c"]], [["O", "O"], ["O"]]),
        ("# O\na O\n", {}, [["#", "a"]], [["O", "O"]]),
        ("-DOCSTART- O\n\na O\n", {}, [["-DOCSTART-"], ["a"]], [["O"], ["O"]]),
    ],
)
def test_sentences_are_read_as_they_are_written(file, text, options, sentences, labels):
    file.write_bytes(text.encode())
    assert read_conll(file, **options) == (sentences, labels)


@pytest.mark.parametrize("suffix", OPENERS)
def test_compressed_files_are_read_and_written(tmp_path, suffix):
    path = tmp_path / f"text.conll{suffix}"
    write_conll(path, SENTENCES, LABELS)
    with OPENERS[suffix](path, "rb") as stream:
        assert stream.read().startswith(b"The DT B-NP\ndog NN I-NP\n\nIl ")
    assert read_conll(path) == (SENTENCES, LABELS)


def test_where_the_bytes_are_cut_does_not_show():
    content = TEXT.encode()
    labels = _core.Dictionary()
    reader = native_reader(labels)
    expected = what_is_in([*reader.feed(content), *reader.finish()])
    assert [len(block[0]) for block in expected] == [1, 1, 1]
    for cut in range(len(content) + 1):
        reader = native_reader(labels)
        assert what_is_in([*reader.feed(content[:cut]), *reader.feed(content[cut:]), *reader.finish()]) == expected
    reader = native_reader(labels)
    one_by_one = [block for k in range(len(content)) for block in reader.feed(content[k : k + 1])]
    assert what_is_in([*one_by_one, *reader.finish()]) == expected


def test_blocks_hold_whole_sentences_and_know_their_lines_and_the_numbers_of_labels(file):
    file.write_bytes(TEXT.encode())
    text = ConllFile(file)
    found = list(text.blocks(3))
    assert [block.sentences() for block in found] == [SENTENCES[:2], SENTENCES[2:]]
    assert [block.lines.tolist() for block in found] == [[1, 2, 6, 7, 8], [10]]
    assert [block.starts.tolist() for block in found] == [[0, 2, 5], [0, 1]]
    assert [(len(block), block.n_tokens, block.n_columns) for block in found] == [(2, 5, 2), (1, 1, 2)]
    for _ in range(2):  # the same numbers in every reading
        assert np.concatenate([block.labels for block in text.blocks(1)]).tolist() == [0, 1, 2, 3, 4, 5]
        assert text.labels.words() == [label for sentence in LABELS for label in sentence]
    own = _core.Dictionary(np.frombuffer(b"O", np.uint8), np.array([1]))
    assert np.concatenate([b.labels for b in text.blocks(1, labels=own)]).tolist() == [1, 2, 3, 0, 4, 5]


CELLS = st.text(st.characters(codec="utf-8", exclude_characters=" \t\n\r\0"), min_size=1, max_size=5)


@given(st.lists(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=4), min_size=1, max_size=4))
@example([[("\u00a0", "\u2028", "\x0b")]])
def test_what_is_written_is_read_back(rows):
    sentences = [[row[:2] for row in sentence] for sentence in rows]
    labels = [[row[2] for row in sentence] for sentence in rows]
    if sentences[0][0][0].startswith("\ufeff"):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.conll"
        for separator in (" ", "\t"):
            write_conll(path, sentences, labels, separator=separator)
            assert read_conll(path, separator=separator if separator == "\t" else None) == (sentences, labels)


@given(st.one_of(st.binary(), st.text("ab# \t\n\r\0é").map(str.encode)), st.integers(1, 9))
def test_any_bytes_are_read_or_refused(content, size):
    reader = native_reader(_core.Dictionary())
    try:
        pieces = [reader.feed(content[k : k + size]) for k in range(0, len(content), size)]
        blocks = [block for piece in [*pieces, reader.finish()] for block in piece]
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert re.match(r"line \d+: ", refusal)
        return
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    assert all(len(sentence) for block in blocks for sentence in block.sentences())
    assert sum(block.n_tokens for block in blocks) == sum(bool(line.strip(b" \t\r")) for line in lines)


EDGES = [0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF]
EDGES += [0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]


@given(st.lists(st.sampled_from(EDGES), min_size=1, max_size=5).map(bytes))
@example(b"\xf0\x90\x80\x80")
@example(b"\xf4\x8f\xbf\xbf")
@example(b"\xf4\x90\x80\x80")
@example(b"\xed\x9f\xbf")
@example(b"\xed\xa0\x80")
@example(b"\xe0\x9f\xbf")
@example(b"\xf0\x8f\xbf\xbf")
def test_utf8_is_what_python_takes_for_it(word):
    reader = native_reader(_core.Dictionary())
    line = b"x" + word + b" O\n"
    try:
        expected = line.decode().split(" ")[0]
    except UnicodeDecodeError as error:
        with pytest.raises(ValueError, match=f"line 1: byte {error.start + 1} is not UTF-8"):
            reader.feed(line)
    else:
        assert [*reader.feed(line), *reader.finish()][0].sentences() == [[expected]]


@pytest.mark.parametrize("separator", [None, "\t"])
@pytest.mark.parametrize("columns", [None, [f"c{k}" for k in range(1000)]])
def test_lines_of_more_than_a_thousand_columns_are_refused(file, separator, columns):
    cells = (separator or " ").join
    file.write_text(cells(["a"] * 1000) + "\n")
    assert ConllFile(file, separator=separator).columns[:3] == ("word", "pos", "col2")
    assert ConllFile(file, separator=separator).columns[-1] == "col998"
    if columns:
        assert ConllFile(file, columns[1:], separator=separator).columns == tuple(columns[1:])
    file.write_text("\n" + cells(["a"] * 1001) + "\n")
    why = f"^{re.escape(str(file))}, line 2: more than 1000 columns in 'a.*keep the columns that the templates need"
    with pytest.raises(DataFormatError, match=why):
        next(ConllFile(file, columns, separator=separator).blocks())


CONLLU = """# newdoc id = weblog-1
# sent_id = 1
# text = Vamos al mar

1	Vamos	ir	VERB	_	_	0	root	_	_
2-3	al	_	_	_	_	_	_	_	_
2	a	a	ADP	_	_	4	case	_	_
3	el	el	DET	_	_	4	det	_	_
4	mar	mar	NOUN	_	_	1	obl	_	_
4.1	va	ir	VERB	_	_	_	_	_	_

"""


@pytest.mark.parametrize("comment", [None, "#"])
@pytest.mark.parametrize("separator", [None, "\t"])
@pytest.mark.parametrize("first", [None, "1-2\tVamonos" + "\t_" * 8, "0.1\tva\tir\tVERB" + "\t_" * 6])
def test_conllu_is_named_and_what_to_do_instead(file, comment, separator, first):
    lines = CONLLU.splitlines() if first is None else [*CONLLU.splitlines()[:4], first, *CONLLU.splitlines()[4:]]
    file.write_text("\n".join(lines))
    why = "line 5: this is CoNLL-U or CoNLL-X, which are not supported.* columns FORM and UPOS .*awk"
    for settings in ({}, {"columns": [f"c{k}" for k in range(9)]}, {"label": 3}, {"label": None}):
        with pytest.raises(DataFormatError, match=f"^{re.escape(str(file))}, {why}"):
            read_conll(file, separator=separator, comment=comment, **settings)
    reader = native_reader(_core.Dictionary())
    with pytest.raises(ValueError, match="line 5: this is CoNLL-U"):
        [reader.feed(bytes([byte])) for byte in file.read_bytes()]


@pytest.mark.skipif(not shutil.which("awk"), reason="needs awk")
def test_conllu_is_read_after_the_command_of_its_error(file):
    file.write_text(CONLLU)
    with pytest.raises(DataFormatError) as error:
        read_conll(file)
    program = re.fullmatch(r".*awk -F'\\t' '(.*)'", str(error.value))[1]
    made = subprocess.run(["awk", "-F\t", program, file], capture_output=True, check=True).stdout
    file.write_bytes(made)
    assert read_conll(file, separator="\t") == ([["Vamos", "a", "el", "mar"]], [["VERB", "ADP", "DET", "NOUN"]])


@pytest.mark.parametrize("cells", ["1 a b c d e 0 g h i", "x a b c d e 0 g h i", "1 a b c d e f g h i"])
def test_ten_columns_alone_are_not_conllu(file, cells):
    line = cells if cells.startswith("1 a b c d e 0") else cells.replace(" ", "\t")
    file.write_text(f"#1 a b c d e 0 g h i\n{line}\n\n#2 a b c d e 0 g h i")
    sentences, labels = read_conll(file)
    assert [len(sentence) for sentence in sentences] == [2, 1]
    assert labels == [["i", "i"], ["i"]]
    assert [block.lines.tolist() for block in ConllFile(file).blocks(1)] == [[1, 2], [4]]


def test_a_file_is_read_no_further_than_asked(file, monkeypatch):
    monkeypatch.setattr("larank.data.columns._BLOCK_BYTES", 8)
    file.write_text("a O\n\n" * 10 + "bad\n")
    blocks = ConllFile(file).blocks(1)
    assert [next(blocks).lines.tolist() for _ in range(9)] == [[k] for k in range(1, 19, 2)]
    with pytest.raises(DataFormatError, match="line 21: 1 column in 'bad', but 2 are in line 1"):
        list(blocks)


def chunking(name):
    try:
        return data_directory() / "conll2000" / name
    except FileNotFoundError:
        return Path("absent")


@pytest.mark.skipif(not chunking("train.txt.xz").exists(), reason="needs conll2000 (LARANK_DATA)")
def test_a_file_makes_the_features_its_sentences_make():
    file = ConllFile(chunking("train.txt.xz"))
    sentences, labels = read_conll(file.path)
    assert (len(sentences), sum(map(len, sentences))) == (8936, 211727)
    assert len({label for sequence in labels for label in sequence}) == 22
    learnt, expected = (TemplateEncoder(CHUNKING, file.columns).learn(source) for source in (file, sentences))
    for name in ("indices", "indptr", "starts"):
        assert np.array_equal(getattr(learnt, name), getattr(expected, name))
    assert learnt.n_features == expected.n_features == 338551


def test_a_pipe_is_not_read_again_without_its_beginning():
    reading, writing = os.pipe()
    os.write(writing, b"a DET\n\nb NOUN\n\n")
    file = ConllFile(f"/dev/fd/{reading}")
    assert file.columns == ("word",)
    with pytest.raises(ValueError, match="pipe, which can be read once"):
        next(file.blocks())
    os.close(writing), os.close(reading)
