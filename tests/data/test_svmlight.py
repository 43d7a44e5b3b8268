import bz2
import gzip
import lzma
import re
import tempfile
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from larank import _core
from larank.data import DataFormatError, read_svmlight, write_svmlight

OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "examples.svm"


def same_bits(a, b):
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


# round trips


@st.composite
def sparse_matrices(draw):
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 12))
    stored = draw(hnp.arrays(bool, (rows, columns)))
    width = np.dtype(dtype).itemsize * 8
    floats = st.floats(allow_nan=False, allow_infinity=False, width=width)
    values = draw(hnp.arrays(dtype, int(stored.sum()), elements=floats))
    indices = np.nonzero(stored)[1]
    return sp.csr_matrix((values, indices, np.append(0, stored.sum(axis=1).cumsum())), shape=(rows, columns))


@given(sparse_matrices(), st.booleans())
def test_a_sparse_matrix_reads_back_bit_for_bit(X, zero_based):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.svm"
        write_svmlight(path, X, np.zeros(X.shape[0], dtype=int), zero_based=zero_based)
        Z, _ = read_svmlight(path, n_features=X.shape[1], zero_based=zero_based, dtype=X.dtype)
    assert Z.shape == X.shape
    assert same_bits(Z.data, X.data)
    assert np.array_equal(Z.indices, X.indices)
    assert np.array_equal(Z.indptr, X.indptr)


words = st.text(
    st.characters(codec="utf-8", exclude_characters=":#\0\ufeff", exclude_categories=["Cs", "Z", "Cc"]),
    min_size=1,
    max_size=6,
)
label_arrays = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1).map(lambda v: np.array(v, dtype=np.int64)),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1).map(np.array),
    st.lists(words.filter(lambda w: not w.isascii() and w.lower() not in ("nan", "inf")), min_size=1).map(np.array),
    st.lists(st.sampled_from(["cat", "dog", "7up", "1-2", "é", "+"]), min_size=1).map(np.array),
)


@given(label_arrays)
@example(np.array([-0.0, 1.0]))
@example(np.array([1e308, 5e-324]))
def test_labels_read_back_with_their_type(y):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.svm"
        write_svmlight(path, np.ones((len(y), 1)), y)
        _, z = read_svmlight(path)
    assert z.dtype.kind == y.dtype.kind
    assert np.array_equal(z, y)


def test_dense_and_sparse_matrices_are_written_alike(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 7)) * (np.arange(7) % 3 > 0)
    write_svmlight(tmp_path / "dense.svm", X, np.arange(20))
    write_svmlight(tmp_path / "sparse.svm", sp.csr_array(X), np.arange(20))
    assert (tmp_path / "dense.svm").read_bytes() == (tmp_path / "sparse.svm").read_bytes()


def test_unsorted_and_duplicated_entries_are_put_in_order_before_writing(file):
    X = sp.csr_matrix(([1.0, 2.0, 4.0], [3, 0, 3], [0, 3]), shape=(1, 4))
    write_svmlight(file, X, [1])
    assert file.read_text() == "1 1:2 4:5\n"
    assert X.nnz == 3


def test_large_files_are_written_and_read_in_blocks(file, monkeypatch):
    monkeypatch.setattr("larank.data.examples._BLOCK_PAIRS", 50)
    monkeypatch.setattr("larank.data.rows._PIECE_BYTES", 100)
    rng = np.random.default_rng(1)
    X = sp.csr_matrix(rng.normal(size=(200, 9)) * (rng.random((200, 9)) < 0.4))
    y = rng.integers(0, 5, 200)
    write_svmlight(file, X, y)
    Z, z = read_svmlight(file, n_features=9)
    assert (Z != X).nnz == 0
    assert np.array_equal(z, y)


# agreement with scikit-learn


@pytest.mark.parametrize("zero_based", [True, False])
def test_reads_what_scikit_learn_writes(file, zero_based):
    rng = np.random.default_rng(2)
    X = sp.csr_matrix(rng.normal(size=(50, 30)) * (rng.random((50, 30)) < 0.2))
    y = rng.integers(-3, 3, 50)
    dump_svmlight_file(X, y, str(file), zero_based=zero_based, comment="made by scikit-learn")
    Z, z = read_svmlight(file, n_features=30, zero_based=zero_based)
    expected, _ = load_svmlight_file(str(file), n_features=30, zero_based=zero_based)
    assert (expected != Z).nnz == 0
    assert np.array_equal(z, y)


def test_scikit_learn_reads_what_is_written(file):
    rng = np.random.default_rng(3)
    X = sp.csr_matrix(rng.normal(size=(50, 30)) * (rng.random((50, 30)) < 0.2))
    y = rng.integers(0, 3, 50)
    write_svmlight(file, X, y)
    Z, z = load_svmlight_file(str(file), n_features=30)
    assert (Z != X).nnz == 0
    assert np.array_equal(z, y)


# numbers


def value_of(text, dtype=np.float64):
    reader = (_core.SvmlightReader32 if dtype == np.float32 else _core.SvmlightReader64)(base="one", features=-1)
    reader.feed(b"1 1:" + text.encode() + b"\n")
    return reader.take()[0][0]


decimals = st.from_regex(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True)


@given(decimals)
@example("9007199254740993")
@example("1.7976931348623157e308")
@example("4.9e-324")
@example("2.4703282292062327e-324")
@example("-1e-400")
@example("0e999")
@example("0." + "0" * 400 + "1e5")
@example("0" * 30 + "1")
def test_values_round_as_python_rounds_them(text):
    expected = np.float64(text)
    if np.isfinite(expected):
        assert same_bits(value_of(text), expected)


@given(st.integers(0, 2**31 - 1), st.sampled_from([-1, 0, 1]))
def test_float32_values_are_not_rounded_twice(bits, side):
    below = np.array([bits], np.uint32).view(np.float32)[0]
    with np.errstate(all="ignore"):
        above = np.nextafter(below, np.float32(np.inf))
    if not np.isfinite(below) or not np.isfinite(above):
        return
    # Close enough to the midpoint that rounding to double first would land on it.
    with localcontext() as context:
        context.prec = 200
        middle = (Decimal(float(below)) + Decimal(float(above))) / 2
        text = str(middle * (1 + side * Decimal("1e-40")))
        even = above if bits % 2 else below
    expected = {-1: below, 0: even, 1: above}[side]
    assert same_bits(value_of(text, np.float32), expected)


def test_underflow_gives_zero_with_its_sign():
    assert same_bits(value_of("-1e-999"), np.float64(-0.0))
    assert same_bits(value_of("1e-60", np.float32), np.float32(0.0))


# what else the format allows


def test_comments_blank_lines_and_line_ends_do_not_matter(file):
    file.write_bytes(b"\xef\xbb\xbf# header 1:2\n\n+1 1:0.5\t3:2 # note 9:9\r\n   \n-1  #\n2 2:1#x\n# end\n3 1:4")
    X, y = read_svmlight(file)
    assert y.tolist() == [1, -1, 2, 3]
    assert X.toarray().tolist() == [[0.5, 0, 2], [0, 0, 0], [0, 1, 0], [4, 0, 0]]


@pytest.mark.parametrize(
    ("text", "zero_based", "expected"),
    [
        ("1 1:5\n", "auto", [[5]]),
        ("1 1:5\n", False, [[5]]),
        ("1 1:5\n", True, [[0, 5]]),
        ("1 1:5\n1 0:7\n", "auto", [[0, 5], [7, 0]]),
    ],
)
def test_index_base_is_found_or_given(file, text, zero_based, expected):
    file.write_text(text)
    assert read_svmlight(file, zero_based=zero_based)[0].toarray().tolist() == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["1", "-2", "+3"], np.array([1, -2, 3])),
        (["1", "2.0"], np.array([1.0, 2.0])),
        (["1e2", "-.5"], np.array([100.0, -0.5])),
        (["1", "two"], np.array(["1", "two"])),
        (["9223372036854775807"], np.array([2**63 - 1])),
        (["9223372036854775808"], np.array(["9223372036854775808"])),
        (["+", "-"], np.array(["+", "-"])),
        (["été"], np.array(["été"])),
    ],
)
def test_labels_are_integers_then_numbers_then_strings(file, words, expected):
    file.write_text("".join(f"{word} 1:1\n" for word in words), encoding="utf-8")
    y = read_svmlight(file)[1]
    assert y.dtype.kind == expected.dtype.kind
    assert np.array_equal(y, expected)


@pytest.mark.parametrize("suffix", OPENERS)
def test_compression_is_known_by_content_not_by_name(tmp_path, suffix):
    write_svmlight(tmp_path / f"x.svm{suffix}", [[1.0, 2.0]], ["a"])
    (tmp_path / f"x.svm{suffix}").rename(tmp_path / "x.svm")
    assert OPENERS[suffix](tmp_path / "x.svm").read() == b"a 1:1 2:2\n"
    X, y = read_svmlight(tmp_path / "x.svm")
    assert X.toarray().tolist() == [[1, 2]]
    assert y.tolist() == ["a"]


def test_compressed_files_are_reproducible(tmp_path):
    for name in ("a.svm.gz", "b.svm.gz"):
        write_svmlight(tmp_path / name, [[1.0]], [1])
    assert (tmp_path / "a.svm.gz").read_bytes() == (tmp_path / "b.svm.gz").read_bytes()


def test_rows_without_features_give_a_matrix_without_columns(file):
    file.write_text("1\n2\n")
    assert read_svmlight(file, zero_based=True)[0].shape == (2, 0)
    assert read_svmlight(file, n_features=3)[0].shape == (2, 3)


def test_indices_are_32_bit_and_values_have_the_type_asked_for(file):
    file.write_text("1 1:0.1\n")
    for dtype in (np.float32, np.float64):
        X, _ = read_svmlight(file, dtype=dtype)
        assert X.dtype == dtype
        assert X.indices.dtype == np.int32
        assert X.data[0] == dtype("0.1")


# what is refused

GOOD = "# comment\n1 1:1 2:2\n\n"  # the bad line is number 4


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("1 3:1 2:1", "index 2 after 3; indices must increase"),
        ("1 2:1 2:1", "index 2 is given twice"),
        ("1 2147483648:1", "index 2147483648 is larger than 2147483647"),
        ("1 99999999999999999999999:1", "index 9+ is larger than"),
        ("1 3", "malformed pair '3'"),
        ("1 3:", "malformed pair '3:'"),
        ("1 3: 1", "malformed pair '3:'"),
        ("1 :1", "malformed pair ':1'"),
        ("1 -1:1", "malformed pair '-1:1'"),
        ("1 a:1", "malformed pair 'a:1'"),
        ("1 1:1:1", "malformed pair '1:1:1'"),
        ("1 1:1x", "malformed pair '1:1x'"),
        ("1 1:1e", "malformed pair '1:1e'"),
        ("1 1:.", r"malformed pair '1:\.'"),
        ("1 1:0x1p3", "malformed pair '1:0x1p3'"),
        ("1 1:1,5", "malformed pair '1:1,5'"),
        ("1 1:é", r"malformed pair '1:\\xc3\\xa9'"),
        ("1 1:" + "y" * 99, r"malformed pair '1:y{38}\.\.\.'"),
        ("1 1:nan", "the value of '1:nan' is not finite"),
        ("1 1:-Inf", "the value of '1:-Inf' is not finite"),
        ("1 1:1e999", "the value of '1:1e999' is not finite"),
        ("1 qid:3 1:1", "qid: ranking groups are not supported"),
        ("1:1 2:1", "no label before '1:1'"),
        (" 1:1", "no label before '1:1'"),
        ("nan 1:1", "the label 'nan' is not finite"),
        ("-Infinity 1:1", "the label '-Infinity' is not finite"),
        ("\ufeff1 1:1", r"byte order mark in the label '\\xef\\xbb\\xbf1'"),
        ("a\0b 1:1", r"NUL byte in the label 'a\\x00b'"),
    ],
)
def test_a_bad_line_is_named(file, bad, why):
    file.write_text(GOOD + bad + "\n1 1:1\n", encoding="utf-8")
    with pytest.raises(DataFormatError, match=rf"^{re.escape(str(file))}, line 4: {why}"):
        read_svmlight(file)


def test_a_bad_line_is_named_across_blocks(file, monkeypatch):
    monkeypatch.setattr("larank.data.rows._PIECE_BYTES", 7)
    file.write_text("1 1:1\n" * 1000 + "1 1:?\n")
    with pytest.raises(DataFormatError, match="line 1001: malformed"):
        read_svmlight(file)


@pytest.mark.parametrize("value", ["1e39", "3.4028236e38"])
def test_a_value_too_large_for_float32_is_refused(file, value):
    file.write_text(f"1 1:1\n1 1:{value}\n")
    read_svmlight(file)
    with pytest.raises(DataFormatError, match=r"line 2: .*not finite"):
        read_svmlight(file, dtype=np.float32)


@pytest.mark.parametrize(
    ("text", "zero_based", "line"),
    [
        ("1 2:1\n1 3:1\n1 9:1\n", False, 2),
        ("1 1:1\n1 2:1\n", True, 2),
        ("1 2:1\n1 3:1\n", "auto", 2),
        ("1 1:1\n1 2:1\n1 0:1\n", "auto", 2),
        ("1 0:1\n1 1:1\n1 2:1\n", "auto", 3),
    ],
)
def test_an_index_beyond_n_features_is_refused(file, text, zero_based, line):
    file.write_text(text)
    with pytest.raises(DataFormatError, match=f"line {line}: index . is out of range for n_features=2"):
        read_svmlight(file, n_features=2, zero_based=zero_based)


def test_index_zero_is_refused_when_counting_from_one(file):
    file.write_text("1 1:1\n1 0:1\n")
    with pytest.raises(DataFormatError, match="line 2: index 0, but the indices should count from one"):
        read_svmlight(file, zero_based=False)


def test_a_label_that_is_not_utf8_is_refused(file):
    file.write_bytes(b"# x\na 1:1\n\nb\xff 1:1\n")
    with pytest.raises(DataFormatError, match="line 4: the label is not UTF-8"):
        read_svmlight(file)


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n"])
def test_a_file_without_examples_is_refused(file, text):
    file.write_text(text)
    with pytest.raises(DataFormatError, match=r"line \d: no examples"):
        read_svmlight(file)


def test_everything_before_the_damage_is_counted(tmp_path):
    path = tmp_path / "x.svm.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n" * 12345)[:-4])
    with pytest.raises(DataFormatError, match="after line 12345: damaged data"):
        read_svmlight(path)


@pytest.mark.parametrize("suffix", OPENERS)
def test_corrupt_compressed_data_is_refused(tmp_path, suffix):
    path = tmp_path / f"x.svm{suffix}"
    write_svmlight(path, np.random.default_rng(0).normal(size=(300, 20)), np.zeros(300))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match=str(path)):
        read_svmlight(path)


@pytest.mark.parametrize(
    "options", [{"zero_based": "no"}, {"n_features": -1}, {"n_features": 2**31}, {"dtype": np.int32}]
)
def test_options_out_of_range_are_named(file, options):
    file.write_text("1 1:1\n")
    with pytest.raises(ValueError, match=next(iter(options))):
        read_svmlight(file, **options)


@pytest.mark.parametrize("label", ["", "a b", "a:b", "a#b", "a\nb", "nan", "+Inf", "a\0b", None])
def test_a_label_that_would_not_read_back_is_not_written(file, label):
    with pytest.raises(ValueError, match=r"cannot be written|y holds labels of type object; accepted are num"):
        write_svmlight(file, [[1.0]], np.array([label], dtype=object))
    assert not file.exists()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_and_labels_that_are_not_finite_are_not_written(file, value):
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        write_svmlight(file, [[value]], [1])
    with pytest.raises(ValueError, match="cannot be written"):
        write_svmlight(file, [[1.0]], [value])
    assert not file.exists()


def test_unequal_lengths_are_not_written(file):
    with pytest.raises(ValueError, match="inconsistent"):
        write_svmlight(file, [[1.0]], [1, 2])
    with pytest.raises(ValueError, match="X has 2147483648 columns; the format allows at most"):
        write_svmlight(file, sp.csr_matrix((1, 2**31)), [1])


def test_booleans_are_written_as_one_and_zero(file):
    write_svmlight(file, [[1.0], [2.0]], [True, False])
    assert file.read_text() == "1 1:1\n0 1:2\n"


def test_zero_based_files_are_not_guessed(file):
    file.write_text("1 0:5\n")
    with pytest.raises(DataFormatError, match="line 1: index 0, but the indices should count from one"):
        read_svmlight(file)


@pytest.mark.parametrize("zero_based", [True, "auto"])
def test_an_index_that_would_be_one_feature_too_many_is_refused(file, zero_based):
    file.write_text("1 0:1\n2 2147483646:1\n")
    assert read_svmlight(file, zero_based=zero_based)[0].shape == (2, 2**31 - 1)
    file.write_text("1 0:1\n2 2147483647:1\n")
    with pytest.raises(DataFormatError, match="line 2: index 2147483647 is larger than 2147483646"):
        read_svmlight(file, zero_based=zero_based)
