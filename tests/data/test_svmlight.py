import bz2
import gzip
import lzma
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


@st.composite
def sparse_matrices(draw):
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 12))
    stored = draw(hnp.arrays(bool, (rows, columns)))
    floats = st.floats(allow_nan=False, allow_infinity=False, width=(np.dtype(dtype).itemsize * 8))
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
    X, y = some_examples()
    write_svmlight(tmp_path / "dense.svm", X.toarray(), y)
    write_svmlight(tmp_path / "sparse.svm", sp.csr_array(X), y)
    assert (tmp_path / "dense.svm").read_bytes() == (tmp_path / "sparse.svm").read_bytes()


@pytest.mark.parametrize(
    ("X", "y", "text"),
    [
        (sp.csr_matrix(([1.0, 2.0, 4.0], [3, 0, 3], [0, 3]), shape=(1, 4)), [1], "1 1:2 4:5\n"),
        ([[1.0], [2.0]], [True, False], "1 1:1\n0 1:2\n"),
    ],
    ids=["unsorted and duplicated entries", "truth values"],
)
def test_what_is_written_is_in_order(file, X, y, text):
    before = X.nnz if sp.issparse(X) else None
    write_svmlight(file, X, y)
    assert file.read_text() == text
    assert (X.nnz if sp.issparse(X) else None) == before, "the matrix stays as it is"


def some_examples():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 9)).round(9) * (rng.random((200, 9)) < 0.4)  # scikit-learn writes 16 digits
    return sp.csr_matrix(X), rng.integers(-3, 3, 200)


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("block", [1 << 20, 50])
def test_scikit_learn_reads_and_writes_the_same(file, zero_based, block, monkeypatch):
    monkeypatch.setattr("larank.data.examples._BLOCK_PAIRS", block)
    monkeypatch.setattr("larank.data.rows._PIECE_BYTES", 2 * block)
    X, y = some_examples()
    for write in (write_svmlight, lambda path, X, y, **options: dump_svmlight_file(X, y, str(path), **options)):
        write(file, X, y, zero_based=zero_based)
        for read in (read_svmlight, lambda path, **options: load_svmlight_file(str(path), **options)):
            Z, z = read(file, n_features=9, zero_based=zero_based)
            assert (Z != X).nnz == 0
            assert np.array_equal(z, y)


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
@example("-1e-999")
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
    assert same_bits(value_of(text, np.float32), {-1: below, 0: even, 1: above}[side])
    assert same_bits(value_of("1e-60", np.float32), np.float32(0.0))


def test_comments_blank_lines_and_line_ends_do_not_matter(file):
    file.write_bytes(b"\xef\xbb\xbf# header 1:2\n\n+1 1:0.5\t3:2 # note 9:9\r\n   \n-1  #\n2 2:1#x\n# end\n3 1:4")
    X, y = read_svmlight(file)
    assert y.tolist() == [1, -1, 2, 3]
    assert X.toarray().tolist() == [[0.5, 0, 2], [0, 0, 0], [0, 1, 0], [4, 0, 0]]


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("1 1:5\n", {"zero_based": "auto"}, [[5]]),
        ("1 1:5\n", {"zero_based": False}, [[5]]),
        ("1 1:5\n", {"zero_based": True}, [[0, 5]]),
        ("1 1:5\n1 0:7\n", {"zero_based": "auto"}, [[0, 5], [7, 0]]),
        ("1\n2\n", {"zero_based": True}, [[], []]),
        ("1\n2\n", {"n_features": 3}, [[0] * 3, [0] * 3]),
    ],
)
def test_index_base_and_number_of_features_are_found_or_given(file, text, options, expected):
    file.write_text(text)
    assert read_svmlight(file, **options)[0].toarray().tolist() == expected


@pytest.mark.parametrize("suffix", OPENERS)
def test_the_name_chooses_a_compression_that_is_reproducible(tmp_path, suffix):
    contents = []
    for name in ("a", "b"):
        write_svmlight(tmp_path / f"{name}.svm{suffix}", [[1.0, 2.0]], ["a"])
        contents.append((tmp_path / f"{name}.svm{suffix}").read_bytes())
        assert OPENERS[suffix](tmp_path / f"{name}.svm{suffix}").read() == b"a 1:1 2:2\n"
    assert contents[0] == contents[1]


def test_indices_are_32_bit_and_values_have_the_type_asked_for(file):
    file.write_text("1 1:0.1\n")
    for dtype in (np.float32, np.float64):
        X, _ = read_svmlight(file, dtype=dtype)
        assert X.dtype == dtype
        assert X.indices.dtype == np.int32
        assert X.data[0] == dtype("0.1")


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


@pytest.mark.parametrize("zero_based", [True, "auto"])
def test_an_index_that_would_be_one_feature_too_many_is_refused(file, zero_based):
    file.write_text("1 0:1\n2 2147483646:1\n")
    assert read_svmlight(file, zero_based=zero_based)[0].shape == (2, 2**31 - 1)
    file.write_text("1 0:1\n2 2147483647:1\n")
    with pytest.raises(DataFormatError, match="line 2: index 2147483647 is larger than 2147483646"):
        read_svmlight(file, zero_based=zero_based)
