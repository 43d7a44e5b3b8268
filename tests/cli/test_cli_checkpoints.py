"""`larank train --checkpoint`, and `larank tag train`: killed at any moment, --resume ends as if nothing had been."""

import os
import random
import signal
import subprocess
import sys

import numpy as np
import pytest
from commandline import larank as command

import larank
from checks import clouds, plain, public
from larank.data.columns import write_conll


@pytest.fixture(scope="module")
def data_file(tmp_path_factory):
    X, y = clouds(600, classes=6, features=12)
    path = tmp_path_factory.mktemp("data") / "clouds.npz"
    np.savez(path, X=X, y=y)
    return path


@pytest.fixture(scope="module")
def words_file(tmp_path_factory):
    """Sentences of words that tell little of their tags."""
    draws = random.Random(0)
    tags = [[draws.choice("ABC") for _ in range(draws.randint(5, 25))] for _ in range(120)]
    words = [[f"w{draws.randint(0, 40)}{tag if draws.random() < 0.5 else ''}" for tag in some] for some in tags]
    path = tmp_path_factory.mktemp("data") / "words.txt"
    write_conll(path, words, tags)
    return path


KILLS_ITSELF = """
import os, signal, sys
from larank.training import CheckpointFile
left, write = 3, CheckpointFile.write
def write_and_die(file, state, *, is_last):
    global left
    write(file, state, is_last=is_last)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
CheckpointFile.write, CheckpointFile.is_due = write_and_die, lambda file: True
from larank.cli import main; main()
"""


def killed_and_resumed(tmp_path, *words, options):
    """The models of a command that was not killed, and of one that was."""
    whole, model_file, checkpoint = tmp_path / "whole.larank", tmp_path / "model.larank", tmp_path / "checkpoint"
    command(*words, whole, *options, "--quiet")
    resume = (*words, model_file, *options, "--checkpoint", checkpoint, "--every", "0", "--resume", "--quiet")
    killed = subprocess.run([sys.executable, "-c", KILLS_ITSELF, *map(str, resume)])
    assert killed.returncode == -signal.SIGKILL
    assert checkpoint.exists()
    command(*resume)
    assert sorted(os.listdir(tmp_path)) == ["model.larank", "whole.larank"], "no checkpoint, no debris"
    return larank.load(whole), larank.load(model_file)


def test_a_training_that_is_killed_goes_on_and_ends_with_the_same_model(data_file, tmp_path):
    options = ("--algorithm", "larank", "--kernel", "laplacian", "-C", "10", "--max-iter", "6")
    one, other = map(public, killed_and_resumed(tmp_path, "train", data_file, options=options))
    for name in one:
        np.testing.assert_array_equal(plain(one[name]), plain(other[name]))


def test_so_does_that_of_a_tagger(words_file, tmp_path):
    one, other = killed_and_resumed(tmp_path, "tag", "train", words_file, options=("--max-iter", "8"))
    assert (one.coef_ != other.coef_).nnz == 0
    np.testing.assert_array_equal(one.transitions_, other.transitions_)
    assert (one.result_.primal, one.result_.dual) == (other.result_.primal, other.result_.dual)


def test_a_checkpoint_stays_until_training_is_over(data_file, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    arguments = ["train", data_file, tmp_path / "model", "--checkpoint", checkpoint, "--tol", 1e-9]
    said = command(*arguments, "--max-iter", 1).stderr
    assert "checkpoint stays: the same command with --resume goes on from it" in said
    assert "is there already" in command(*arguments, code=2).stderr
    command(*arguments, "--resume")
    assert not checkpoint.exists()
