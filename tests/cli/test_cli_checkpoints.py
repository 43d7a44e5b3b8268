"""`larank train --checkpoint`: killed at any moment, the same command with --resume ends as if nothing had been."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import larank
from checks import clouds, plain, public
from larank.cli import app


@pytest.fixture(scope="module")
def data_file(tmp_path_factory):
    X, y = clouds(1500, classes=6, features=12)
    path = tmp_path_factory.mktemp("data") / "clouds.npz"
    np.savez(path, X=X, y=y)
    return path


def command(data_file, model_file, *more):
    start = "from larank.cli import main; main()"
    return [sys.executable, "-c", start, "train", str(data_file), str(model_file), "--quiet", *more]


OPTIONS = ("--algorithm", "larank", "--kernel", "laplacian", "-C", "10", "--epochs", "6")


def test_a_training_that_is_killed_goes_on_and_ends_with_the_same_model(data_file, tmp_path):
    whole, model_file, checkpoint = tmp_path / "whole.larank", tmp_path / "model.larank", tmp_path / "checkpoint"
    began = time.monotonic()
    subprocess.run(command(data_file, whole, *OPTIONS), check=True)
    took = time.monotonic() - began
    resume = command(data_file, model_file, *OPTIONS, "--checkpoint", str(checkpoint), "--every", "0", "--resume")
    moments = random.Random(0)
    for _ in range(2):
        child = subprocess.Popen(resume)
        time.sleep(took * moments.uniform(0.4, 0.9))
        child.send_signal(signal.SIGKILL)
        child.wait()
    subprocess.run(resume, check=True)
    one, other = public(larank.load(model_file)), public(larank.load(whole))
    for name in one:
        np.testing.assert_array_equal(plain(one[name]), plain(other[name]))
    assert sorted(os.listdir(tmp_path)) == ["model.larank", "whole.larank"], "no checkpoint, no debris"


def test_what_cannot_act_is_an_error(data_file, tmp_path):
    run = CliRunner().invoke
    model_file = str(tmp_path / "model.larank")
    result = run(app, ["train", str(data_file), model_file, "--resume"])
    assert (result.exit_code, "--resume needs --checkpoint" in result.output) == (2, True)
    options = ["--algorithm", "sgdqn", "--checkpoint", str(tmp_path / "checkpoint")]
    result = run(app, ["train", str(data_file), model_file, *options])
    assert (result.exit_code, "SGDQNClassifier has no checkpoints" in result.output) == (2, True)
