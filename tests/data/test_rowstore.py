"""Files of rows on a disk: none of them stays open, whatever fails."""

import os
from pathlib import Path

import numpy as np
import pytest

from fulldisk import full_disk
from larank.data.files import temporary_folder
from larank.data.rowstore import RowStore


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
