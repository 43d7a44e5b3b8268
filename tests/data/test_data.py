import errno
import gzip
import os
import re
import signal
import stat
import zipfile
from importlib import resources

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


# delimited text


@pytest.fixture
def table(tmp_path):
    return tmp_path / "table.csv"


def test_labels_are_in_the_last_column(table):
    table.write_text("1,2.5,3\n-4,5e1,6\n")
    X, y = read_csv(table)
    assert X.tolist() == [[1, 2.5], [-4, 50]]
    assert y.tolist() == [3, 6]
    assert y.dtype == np.int64


@pytest.mark.parametrize(("label", "expected"), [(0, "ab"), (-3, "ab"), ("kind", "ab"), (1, [1, 3]), ("w", [2, 4])])
def test_the_label_column_is_chosen_by_position_or_name(table, label, expected):
    rows = "a,1,2\nb,3,4\n"
    if expected != "ab":
        rows = rows.replace("a", "7").replace("b", "8")
    table.write_text("kind, v, w\n" + rows)
    X, y = read_csv(table, label=label)
    assert X.shape == (2, 2)
    assert y.tolist() == list(expected)


@pytest.mark.parametrize(
    ("text", "options", "rows"),
    [
        ("a,b,c\n1,2,3\n", {}, 1),
        ("1,2,x\n1,2,y\n", {}, 2),
        ("1,2,3\n4,5,6\n", {"header": True}, 1),
        ("1,2,3\n4,5,6\n", {"header": False}, 2),
        ("1,2,3\n4,5,6\n", {"label": "2"}, 1),
    ],
)
def test_a_header_is_found_or_given(table, text, options, rows):
    table.write_text(text)
    assert len(read_csv(table, **options)[1]) == rows


def test_an_unknown_header_option_is_refused(table):
    table.write_text("1,2\n")
    with pytest.raises(ValueError, match="header='yes' is not supported"):
        read_csv(table, header="yes")


def test_quotes_blank_lines_line_ends_and_marks_do_not_matter(table):
    table.write_bytes('\ufeffx,"a, b",name\r\n\r\n1, 2,"c, d"\r\n3,4,é'.encode())
    X, y = read_csv(table)
    assert X.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == ["c, d", "é"]


def test_a_label_with_a_line_end_is_one_label(table):
    table.write_text('1,"2\n3"\n2,4\n')
    assert read_csv(table)[1].tolist() == ["2\n3", "4"]


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


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("1,2", ", line 4: 2 columns, but the first line has 3"),
        ("1,2,3,4", ", line 4: 4 columns, but the first line has 3"),
        ("1,x,3", ", line 4: 'x' is not a finite number in float64"),
        ("1,,3", ", line 4: '' is not a finite number in float64"),
        ("1,nan,3", ", line 4: 'nan' is not a finite number"),
        ("1,1e999,3", ", line 4: '1e999' is not a finite number"),
        ("1,1_0,3", ", line 4: '1_0' is not a finite number"),
        ('1,"2\n3",3', r", line 5: '2\\n3' is not a finite number"),
        ("1,2,", ", line 4: the label '' is empty or not finite"),
        ("1,2,NaN", ", line 4: the label 'NaN' is empty or not finite"),
        ('1,2,"a" b', ", line 4: "),
    ],
)
def test_a_bad_line_is_named(table, bad, why):
    table.write_text(f"a,b,c\n1,2,3\n\n{bad}\n1,2,3\n")
    with refuses(table, why):
        read_csv(table)


def test_a_value_too_large_for_float32_is_refused(table):
    table.write_text("1,0\n1e39,0\n")
    assert read_csv(table)[0].max() == 1e39
    with refuses(table, ", line 2: '1e39' is not a finite number in float32"):
        read_csv(table, dtype=np.float32)


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("", {}, ", line 1: no examples"),
        ("a,b\n", {"label": "a"}, ", line 1: no examples"),
        ("1;2\n", {}, ", line 1: only one column, '1;2'; is the delimiter right"),
        ("1,2\n", {"label": 2}, ", line 1: label=2 is out of range for 2 columns"),
        ("a,b\n1,2\n", {"label": "c"}, r", line 1: label='c' is none of the columns \['a', 'b'\]"),
        ("a,b\n1,2\n", {"label": "a", "header": False}, ", line 1: label='a' is a name"),
    ],
)
def test_a_table_without_its_label_is_refused(table, text, options, why):
    table.write_text(text)
    with refuses(table, why):
        read_csv(table, **options)


def test_a_byte_order_mark_in_a_label_is_refused(table):
    table.write_text("1,a\n2,\ufeffa\n")
    with refuses(table, ", line 2: there is a byte order mark in the label"):
        read_csv(table)


@pytest.mark.parametrize("reader", [read, lambda path: list(ExampleFile(path).blocks(1 << 30))])
@pytest.mark.parametrize(("name", "row", "number"), [("data.svm", "{}\n", 2), ("data.csv", "1,{}\n", 2)])
def test_one_long_label_does_not_blow_up_all_others(tmp_path, reader, name, row, number):
    path = tmp_path / name
    path.write_text(row.format("a") + row.format("b" * 100_000) + row.format("a") * 10_000)  # 4 GB, as an array
    with refuses(path, f", line {number}: a label of 100000 characters"):
        reader(path)


def test_what_compresses_well_is_read(tmp_path):
    path = tmp_path / "data.svm.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n2 2:1\n" * 100_000))
    assert read(path)[0].shape == (200_000, 2)


# archives


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


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
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
    ],
)
def test_arrays_that_do_not_fit_are_refused(archive, arrays, why):
    np.savez(archive, **arrays)
    with refuses(archive, why):
        read_npz(archive)


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


def with_header(archive, text, content=b"", way=zipfile.ZIP_STORED):
    """An archive whose y is a header, as a vandal would write it, and some bytes."""
    np.savez(archive, X=X)
    header = b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text.encode()
    with zipfile.ZipFile(archive, "a", way) as file:
        file.writestr("y.npy", header + content)


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 8)}",
        "{'descr': '<U250000000', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': None}",
        "{'descr': [[]], 'fortran_order': False, 'shape': (2,)}",
        "{[]: 1}",
        "(" * 5000,
        "-" * 9000 + "1",
        "\0",
    ],
)
def test_a_header_that_promises_what_is_not_there_is_refused(archive, text):
    with_header(archive, text)
    with refuses(archive, ": y "):
        read_npz(archive)


def test_an_archive_that_unpacks_without_bound_is_refused(archive):
    rows = 1 << 24
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({rows},)}}"
    with_header(archive, text, bytes(rows), zipfile.ZIP_BZIP2)
    with refuses(archive, ": y is no array, or damaged .* bytes unpack to"):
        read_npz(archive)


def test_what_scipy_saves_is_read_once_labels_are_added(archive):
    sp.save_npz(archive, sp.csr_matrix(X))
    with np.load(archive) as saved:
        np.savez(archive, y=["a", "b"], **saved)
    Z, y = read_npz(archive)
    assert (sp.csr_matrix(X) != Z).nnz == 0
    assert y.tolist() == ["a", "b"]


# choosing the format


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("name", ["a.svm", "a.svmlight", "a.libsvm", "a.txt", "a.SVM"])
def test_the_extension_chooses_svmlight(tmp_path, name, suffix):
    write_svmlight(tmp_path / (name + suffix), X, [1, 2])
    assert read(tmp_path / (name + suffix), n_features=4)[0].shape == (2, 4)


def test_the_extension_chooses_tables_and_archives(tmp_path):
    (tmp_path / "a.csv").write_text("1,2\n")
    (tmp_path / "a.tsv").write_text("1\t2\n")
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"1\t2\n"))
    np.savez(tmp_path / "a.npz", X=[[1]], y=[2])
    for name in ("a.csv", "a.tsv", "a.tsv.gz", "a.npz"):
        Z, y = read(tmp_path / name)
        assert Z.tolist() == [[1]]
        assert y.tolist() == [2]


@pytest.mark.parametrize("name", ["a", "a.gz", "a.parquet"])
def test_an_unknown_extension_is_refused(name):
    with pytest.raises(ValueError, match=r"accepted are \.svm .* \.npz"):
        read(name)


# data sets


def test_letter_is_the_documented_split():
    letter = load_letter()
    assert letter.X_train.shape == (16000, 16)
    assert letter.X_test.shape == (4000, 16)
    assert letter.X_train.dtype == np.float64
    assert (letter.X_train.min(), letter.X_train.max()) == (0, 15)
    assert letter.y_train.dtype == np.dtype("<U1")
    assert "".join(np.unique(letter.y_train)) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert (letter.y_train == "A").sum() == 633
    assert (letter.y_test == "Z").sum() == 158


def test_letter_comes_with_its_attribution():
    text = resources.files("larank").joinpath("data", "letter.txt").read_text()
    assert "Frey" in text
    assert "CC BY 4.0" in text


def test_the_data_directory_is_named_by_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("LARANK_DATA", str(tmp_path))
    assert data_directory() == tmp_path
    monkeypatch.setenv("LARANK_DATA", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="LARANK_DATA names"):
        data_directory()


def test_the_data_directory_is_beside_the_checkout(tmp_path, monkeypatch):
    monkeypatch.delenv("LARANK_DATA", raising=False)
    (tmp_path / "shared" / "data").mkdir(parents=True)
    (tmp_path / "checkout" / "tests").mkdir(parents=True)
    for place in ("checkout", "checkout/tests"):
        monkeypatch.chdir(tmp_path / place)
        assert data_directory() == tmp_path / "shared" / "data"


def test_a_missing_data_directory_tells_both_ways(tmp_path, monkeypatch):
    monkeypatch.delenv("LARANK_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"LARANK_DATA .* shared/data beside the repository"):
        data_directory()


# atomic writing


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "target"
    path.write_text("old")
    return path


def only_the_old_file_is_there(target):
    return target.read_text() == "old" and os.listdir(target.parent) == [target.name]


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
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, operation, full)
    with pytest.raises(OSError, match="No space left") as error, atomic_write(target) as file:
        file.write(b"new")
    assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(target))
    assert only_the_old_file_is_there(target)


def test_the_mode_of_the_old_file_is_kept(target):
    target.chmod(0o640)
    with atomic_write(target) as file:
        file.write(b"new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_new_file_has_the_usual_mode(tmp_path):
    (tmp_path / "usual").write_text("")
    with atomic_write(tmp_path / "new"):
        pass
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_link_stays_a_link(target):
    link = target.with_name("link")
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"new")
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


def test_options_of_another_format_are_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("1,2,a\n3,4,b\n")
    with pytest.raises(ValueError, match=r"table\.csv: zero_based cannot be set"):
        read(path, zero_based=True)


@pytest.mark.parametrize("cell", ["oops", ""])
def test_a_first_row_with_one_bad_cell_is_not_taken_for_a_header(tmp_path, cell):
    path = tmp_path / "table.csv"
    path.write_text(f"0,{cell},a\n1,0,b\n")
    with pytest.raises(ValueError, match="line 1"):
        read(path)
