import errno
import gzip
import os
import re
import signal
import stat
import zipfile
from importlib import resources
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from larank.data import (
    DataFormatError,
    ExampleFile,
    data_directory,
    load_letter,
    read,
    read_csv,
    read_npz,
    write_svmlight,
)
from larank.data.files import atomic_write


def refuses(path, why):
    return pytest.raises(DataFormatError, match=rf"^{re.escape(str(path))}{why}")


@pytest.fixture
def table(tmp_path):
    return tmp_path / "table.csv"


@pytest.mark.parametrize(
    ("text", "options", "X", "y"),
    [
        ("1,2.5,3\n-4,5e1,6\n", {}, [[1, 2.5], [-4, 50]], [3, 6]),
        *(("kind, v, w\na,1,2\nb,3,4\n", {"label": label}, [[1, 2], [3, 4]], ["a", "b"]) for label in (0, -3, "kind")),
        *(("kind, v, w\n7,1,2\n8,3,4\n", {"label": label}, [[7, 2], [8, 4]], [1, 3]) for label in (1, "v")),
        ("kind, v, w\n7,1,2\n8,3,4\n", {"label": "w"}, [[7, 1], [8, 3]], [2, 4]),
        ("a,b,c\n1,2,3\n", {}, [[1, 2]], [3]),
        ("1,2,x\n1,2,y\n", {}, [[1, 2], [1, 2]], ["x", "y"]),
        ("1,2,3\n4,5,6\n", {"header": True}, [[4, 5]], [6]),
        ("1,2,3\n4,5,6\n", {"header": False}, [[1, 2], [4, 5]], [3, 6]),
        ("1,2,3\n4,5,6\n", {"label": "2"}, [[4, 6]], [5]),
        ('1,"2\n3"\n2,4\n', {}, [[1], [2]], ["2\n3", "4"]),
        ("1,0\n1e39,0\n", {}, [[1], [1e39]], [0, 0]),
    ],
)
def test_the_header_is_found_and_the_label_chosen(table, text, options, X, y):
    table.write_text(text)
    Z, z = read_csv(table, **options)
    assert Z.tolist() == X
    assert z.tolist() == y
    assert z.dtype.kind == ("U" if isinstance(y[0], str) else "i")


def test_quotes_blank_lines_line_ends_and_marks_do_not_matter(table):
    table.write_bytes('\ufeffx,"a, b",name\r\n\r\n1, 2,"c, d"\r\n3,4,é'.encode())
    X, y = read_csv(table)
    assert X.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == ["c, d", "é"]


@given(
    X=hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.floats(-1e300, 1e300)),
    names=st.booleans(),
)
def test_numbers_are_read_exactly(tmp_path_factory, X, names):
    path = tmp_path_factory.getbasetemp() / "numbers.csv"
    lines = [",".join([*map(repr, row), "label"]) for row in X.tolist()]
    header = [",".join([f"v{k}" for k in range(X.shape[1])] + ["y"])] if names else []
    path.write_text("\n".join(header + lines))
    assert read_csv(path)[0].tobytes() == X.tobytes()


@pytest.mark.parametrize("reader", [read, lambda path: list(ExampleFile(path).blocks(1 << 30))])
@pytest.mark.parametrize(("name", "row"), [("data.svm", "{}\n"), ("data.csv", "1,{}\n")])
def test_one_long_label_does_not_blow_up_all_others(tmp_path, reader, name, row):
    path = tmp_path / name
    path.write_text(row.format("a") + row.format("b" * 100_000) + row.format("a") * 10_000)  # 4 GB, as an array
    with refuses(path, ", line 2: a label of 100000 characters"):
        reader(path)


@pytest.fixture
def archive(tmp_path):
    return tmp_path / "archive.npz"


X = np.array([[1, 0, 2], [0, 0, 3]])
S = sp.csr_matrix(X)
PARTS = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}


@pytest.mark.parametrize(
    ("arrays", "options"),
    [
        ({"X": X, "y": [5, 6]}, {}),
        ({"X_train": X, "y_train": [5, 6]}, {"split": "train"}),
        (PARTS | {"y": [5, 6]}, {}),
        (PARTS | {"y": [5, 6], "format": b"csr"}, {}),
        ({f"X_{k}": v for k, v in PARTS.items()} | {"y": [5, 6]}, {}),
        ({f"X_test_{k}": v for k, v in PARTS.items()} | {"y_test": [5, 6]}, {"split": "test"}),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_and_sparse_archives_are_read(archive, arrays, options, dtype):
    np.savez(archive, **arrays)
    Z, y = read_npz(archive, dtype=dtype, **options)
    assert Z.dtype == dtype
    assert (Z.toarray() if sp.issparse(Z) else Z).tolist() == X.tolist()
    assert y.tolist() == [5, 6]


def test_a_damaged_archive_is_refused(archive):
    np.savez(archive, X=X, y=[5, 6])
    content = archive.read_bytes()
    archive.write_bytes(content[:-30])
    with refuses(archive, ": not a NumPy archive, or cut short"):
        read_npz(archive)
    broken = content.replace(X.tobytes(), b"\xff" * X.nbytes)
    assert broken != content
    archive.write_bytes(broken)
    with refuses(archive, ": X is no array, or damaged .*CRC"):
        read_npz(archive)


def header(descr, shape):
    return str({"descr": descr, "fortran_order": False, "shape": shape})


def with_header(archive, text, content=b"", way=zipfile.ZIP_STORED):
    """An archive whose y is a header, as a vandal would write it, and some bytes."""
    np.savez(archive, X=X)
    before = b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little")
    with zipfile.ZipFile(archive, "a", way) as file:
        file.writestr("y.npy", before + text.encode() + content)


HEADERS = [("<f8", (10**12,)), ("<f8", (2**63 - 1, 8)), ("<U250000000", (2,)), ("<U0", (10**12,)), ("|O", (2,))]
HEADERS += [("<f8", (-2,)), ("<f8", None), ([[]], (2,))]
NO_HEADERS = ["{[]: 1}", "(" * 5000, "-" * 9000 + "1", "\0"]


@pytest.mark.parametrize("text", [*(header(*row) for row in HEADERS), *NO_HEADERS])
def test_a_header_that_promises_what_is_not_there_is_refused(archive, text):
    with_header(archive, text)
    with refuses(archive, ": y "):
        read_npz(archive)


def test_an_archive_that_unpacks_without_bound_is_refused(archive):
    with_header(archive, header("|u1", (1 << 24,)), bytes(1 << 24), zipfile.ZIP_BZIP2)
    with refuses(archive, ": y is no array, or damaged .* bytes unpack to"):
        read_npz(archive)


def test_what_scipy_saves_is_read_once_labels_are_added(archive):
    sp.save_npz(archive, S)
    with np.load(archive) as saved:
        np.savez(archive, y=["a", "b"], **saved)
    Z, y = read_npz(archive)
    assert (S != Z).nnz == 0
    assert y.tolist() == ["a", "b"]


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("name", ["a.svm", "a.svmlight", "a.libsvm", "a.txt", "a.SVM"])
def test_the_extension_chooses_svmlight(tmp_path, name, suffix):
    write_svmlight(tmp_path / (name + suffix), X, [1, 2])
    assert read(tmp_path / (name + suffix), n_features=4)[0].shape == (2, 4)


def test_the_extension_chooses_tables_and_archives(tmp_path):
    for name, content in (("a.csv", b"1,2\n"), ("a.tsv", b"1\t2\n"), ("a.tsv.gz", gzip.compress(b"1\t2\n"))):
        (tmp_path / name).write_bytes(content)
    np.savez(tmp_path / "a.npz", X=[[1]], y=[2])
    for path in tmp_path.iterdir():
        assert [part.tolist() for part in read(path)] == [[[1]], [2]]


def test_letter_is_the_documented_split_with_its_attribution():
    letter = load_letter()
    assert (letter.X_train.shape, letter.X_test.shape) == ((16000, 16), (4000, 16))
    assert (letter.X_train.dtype, letter.y_train.dtype) == (np.float64, np.dtype("<U1"))
    assert (letter.X_train.min(), letter.X_train.max()) == (0, 15)
    assert "".join(np.unique(letter.y_train)) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert ((letter.y_train == "A").sum(), (letter.y_test == "Z").sum()) == (633, 158)
    attribution = resources.files("larank").joinpath("data", "letter.txt").read_text()
    assert "Frey" in attribution
    assert "CC BY 4.0" in attribution


def test_the_data_directory_is_named_by_the_environment_or_beside_the_checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    assert data_directory() == tmp_path
    monkeypatch.setenv("LARANK_DATA", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="LARANK_DATA names"):
        data_directory()
    monkeypatch.delenv("LARANK_DATA")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"LARANK_DATA .* shared/data beside the repository"):
        data_directory()
    (tmp_path / "shared" / "data").mkdir(parents=True)
    (tmp_path / "checkout" / "tests").mkdir(parents=True)
    for place in ("checkout", "checkout/tests"):
        monkeypatch.chdir(tmp_path / place)
        assert data_directory() == tmp_path / "shared" / "data"


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "target"
    path.write_text("old")
    return path


def only_the_old_file_is_there(target):
    return target.read_text() == "old" and os.listdir(target.parent) == [target.name]


def write(path, content):
    with atomic_write(path) as file:
        file.write(content)


def test_the_file_changes_only_when_complete(target):
    with atomic_write(target) as file:
        file.write(b"new")
        file.flush()
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert os.listdir(target.parent) == [target.name]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_while_writing_leaves_the_old_file(target, error):
    def write():
        with atomic_write(target) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write()
    assert only_the_old_file_is_there(target)


@pytest.mark.parametrize("operation", ["fsync", "replace"])
def test_a_full_disk_at_the_end_leaves_the_old_file(target, monkeypatch, operation):
    monkeypatch.setattr(os, operation, mock.Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    with pytest.raises(OSError, match="No space left") as error:
        write(target, b"new")
    assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(target))
    assert only_the_old_file_is_there(target)


def test_a_file_keeps_its_mode_and_a_new_one_has_the_usual_mode(target):
    target.chmod(0o640)
    new, usual = target.with_name("new"), target.with_name("usual")
    usual.write_text("")
    for path in (target, new):
        write(path, b"")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert new.stat().st_mode == usual.stat().st_mode


def test_a_link_stays_a_link(target):
    link = target.with_name("link")
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def killed_while_writing(target):
    """A process that is killed, with the temporary file it leaves."""
    pid = os.fork()
    if not pid:
        with atomic_write(target) as file:
            file.write(b"half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    (left,) = target.parent.glob(".larank-*.tmp")
    return left


def test_what_a_kill_leaves_is_removed_when_the_file_is_written_again(target):
    left = killed_while_writing(target)
    with atomic_write(target.with_name("other")):
        assert left.exists()  # it is the affair of another file
    with atomic_write(target) as file:
        assert not left.exists()
        file.write(b"new")
    assert sorted(os.listdir(target.parent)) == sorted([target.name, "other"])


def test_writers_of_one_file_leave_each_other_alone(target):
    with atomic_write(target) as first:
        first.write(b"first")
        with atomic_write(target) as second:
            second.write(b"second")
        assert target.read_text() == "second"
    assert target.read_text() == "first"
    assert os.listdir(target.parent) == [target.name]
