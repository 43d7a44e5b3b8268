"""`larank train --checkpoint`, and `larank tag train`: killed at any moment, --resume ends as if nothing had been."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from commandline import larank as run_here
from typer.testing import CliRunner

import larank
from checks import clouds, plain, public
from larank.cli import app
from larank.data.columns import write_conll


@pytest.fixture(scope="module")
def data_file(tmp_path_factory):
    X, y = clouds(1500, classes=6, features=12)
    path = tmp_path_factory.mktemp("data") / "clouds.npz"
    np.savez(path, X=X, y=y)
    return path


@pytest.fixture(scope="module")
def words_file(tmp_path_factory):
    """Sentences of words that tell little of their tags."""
    draws = random.Random(0)
    tags = [[draws.choice("ABC") for _ in range(draws.randint(5, 25))] for _ in range(300)]
    words = [[f"w{draws.randint(0, 40)}{tag if draws.random() < 0.5 else ''}" for tag in some] for some in tags]
    path = tmp_path_factory.mktemp("data") / "words.txt"
    write_conll(path, words, tags)
    return path


def command(*words):
    return [sys.executable, "-c", "from larank.cli import main; main()", *map(str, words), "--quiet"]


def killed_and_resumed(tmp_path, *words, options):
    """The models of a command that was not killed, and of one that was."""
    whole, model_file, checkpoint = tmp_path / "whole.larank", tmp_path / "model.larank", tmp_path / "checkpoint"
    began = time.monotonic()
    subprocess.run(command(*words, whole, *options), check=True)
    took = time.monotonic() - began
    resume = command(*words, model_file, *options, "--checkpoint", checkpoint, "--every", "0", "--resume")
    moments = random.Random(0)
    for _ in range(2):
        child = subprocess.Popen(resume)
        time.sleep(took * moments.uniform(0.4, 0.9))
        child.send_signal(signal.SIGKILL)
        child.wait()
    subprocess.run(resume, check=True)
    assert sorted(os.listdir(tmp_path)) == ["model.larank", "whole.larank"], "no checkpoint, no debris"
    return larank.load(whole), larank.load(model_file)


def test_a_training_that_is_killed_goes_on_and_ends_with_the_same_model(data_file, tmp_path):
    options = ("--algorithm", "larank", "--kernel", "laplacian", "-C", "10", "--epochs", "6")
    one, other = map(public, killed_and_resumed(tmp_path, "train", data_file, options=options))
    for name in one:
        np.testing.assert_array_equal(plain(one[name]), plain(other[name]))


def test_so_does_that_of_a_tagger(words_file, tmp_path):
    one, other = killed_and_resumed(tmp_path, "tag", "train", words_file, options=("--epochs", "8"))
    assert (one.coef_ != other.coef_).nnz == 0
    np.testing.assert_array_equal(one.transitions_, other.transitions_)
    assert (one.result_.primal, one.result_.dual) == (other.result_.primal, other.result_.dual)


def test_what_cannot_act_is_an_error(data_file, tmp_path):
    run = CliRunner().invoke
    model_file = str(tmp_path / "model.larank")
    result = run(app, ["train", str(data_file), model_file, "--resume"])
    assert (result.exit_code, "--resume needs --checkpoint" in result.output) == (2, True)
    options = ["--algorithm", "sgdqn", "--checkpoint", str(tmp_path / "checkpoint")]
    result = run(app, ["train", str(data_file), model_file, *options])
    assert (result.exit_code, "SGDQNClassifier has no checkpoints" in result.output) == (2, True)


def test_a_checkpoint_stays_until_training_is_over(data_file, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    arguments = ["train", data_file, tmp_path / "model", "--checkpoint", checkpoint, "--tol", 1e-9]
    said = run_here(*arguments, "--max-iter", 1).stderr
    assert "checkpoint stays: the same command with --resume goes on from it" in said
    assert "is there already" in run_here(*arguments, code=2).stderr
    run_here(*arguments, "--resume")
    assert not checkpoint.exists()


def test_so_it_is_of_a_tagger(words_file, tmp_path):
    result = CliRunner().invoke(app, ["tag", "train", str(words_file), str(tmp_path / "model"), "--resume"])
    assert (result.exit_code, "--resume needs --checkpoint" in result.output) == (2, True)
