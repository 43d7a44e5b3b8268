"""A full disk: writers raise an error with its path and number, leave the old file, and keep no file open."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

import larank
from fulldisk import full_disk
from larank.active import ActiveLearner
from larank.data import write_svmlight
from larank.data.columns import write_conll
from larank.data.files import temporary_folder
from larank.data.rowstore import RowStore
from larank.report import write_report

random = np.random.default_rng(0)
X = random.normal(size=(300, 20))
y = (X[:, 0] > 0).astype(int)
WORDS = [[f"{word:x}" for word in random.integers(0, 2**60, 2000)]]  # hard to compress


def fitted():
    return larank.LaRankClassifier(random_state=0).fit(X, y)


WRITERS = {
    "a.larank": lambda path: larank.save(fitted(), path),
    "learner.larank": lambda path: ActiveLearner(fitted(), X).save(path),
    "a.svm": lambda path: write_svmlight(path, X, y),
    "a.svm.gz": lambda path: write_svmlight(path, X, y),
    "a.svm.xz": lambda path: write_svmlight(path, X, y),
    "a.conll": lambda path: write_conll(path, WORDS),
    "a.conll.bz2": lambda path: write_conll(path, WORDS),
    "a.html": lambda path: write_report(path, "title", [{"a": 1}], fitted().result_),
}


@pytest.mark.parametrize("most", [0, 1000])
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_an_error_with_path_and_number_and_leaves_the_old_file(name, most, tmp_path):
    path = tmp_path / name
    path.write_text("old")
    with pytest.raises(OSError, match="File too large") as error, full_disk(most):
        WRITERS[name](path)
    assert error.value.errno == errno.EFBIG
    assert str(error.value.filename) == str(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [name]


def test_a_file_that_cannot_be_created_is_named_and_not_its_temporary_file(tmp_path):
    path = tmp_path / "missing" / "a.svm"
    with pytest.raises(FileNotFoundError) as error:
        write_svmlight(path, X, y)
    assert str(error.value.filename) == str(path)


@pytest.fixture
def folder():
    with temporary_folder() as found:
        yield found


def open_files(folder):
    descriptors = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    names = [os.readlink(each) for each in descriptors if each.exists()]
    return [Path(name).name for name in names if Path(name).parent == folder.path and Path(name).name != "lock"]


def test_a_file_that_cannot_be_flushed_leaves_no_other_file_open(folder):
    store = RowStore(folder, 1000, 10)
    store.append(np.ones((3, 2)), np.zeros(3, np.int32), np.ones(3))
    assert len(open_files(folder)) == 5
    with pytest.raises(OSError, match="File too large"), full_disk():
        store.close()
    assert not open_files(folder)


def test_a_file_that_cannot_be_created_leaves_no_other_file_open(folder):
    (folder.path / "ends").mkdir()
    with pytest.raises(IsADirectoryError) as error:
        RowStore(folder, 1000, 10)
    assert error.value.filename == str(folder.path / "ends")
    assert not open_files(folder)
