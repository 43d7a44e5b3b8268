"""A full disk: every writer raises an error with the path and the number of the error, and leaves the old file."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

import larank
from fulldisk import full_disk
from larank.active import ActiveLearner
from larank.data import write_svmlight
from larank.data.columns import write_conll
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


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_standard_output_is_named(tmp_path):
    larank.save(fitted(), tmp_path / "a.larank")
    write_svmlight(tmp_path / "a.svm", X, y)
    command = "from larank.cli import main; main()"
    for arguments in (["predict", tmp_path / "a.larank", tmp_path / "a.svm"], ["info", tmp_path / "a.larank"]):
        with open("/dev/full", "w") as full:
            ended = subprocess.run(
                [sys.executable, "-c", command, *map(str, arguments)],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert ended.returncode == 1
        assert "standard output: No space left on device" in ended.stderr
