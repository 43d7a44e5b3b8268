"""Streams under limits: they hold between blocks and while one is waited for, and what has arrived makes the model."""

import fcntl
import os
import signal
import struct
import termios
import threading
import time

import numpy as np
import pytest

from larank import LinearMulticlassSVC, LinearSGDClassifier, SequenceTagger
from larank.data.columns import ConllFile
from larank.sequence.features import TemplateEncoder
from larank.training import TrainingWarning, loop

LONG = 20.0  # seconds that no test may wait for


def block(rows=60):
    X = np.random.default_rng(0).normal(size=(rows, 3))
    return X, (X[:, 0] > 0).astype(int)


def wait_for_threads():
    """Threads end once what they wait for has come."""
    for thread in threading.enumerate():
        if thread.name.startswith("larank-reading"):
            thread.join(LONG)
            assert not thread.is_alive()


@pytest.fixture(autouse=True)
def no_thread_left():
    yield
    wait_for_threads()


class Slow:
    """A stream that sleeps after its blocks, and must still sleep when training ends; `before` it sleeps it calls."""

    def __init__(self, n_blocks, before=lambda: None):
        self.n_blocks, self.before, self.awake, self.is_over = n_blocks, before, threading.Event(), False

    def __iter__(self):
        for _ in range(self.n_blocks):
            yield block()
        self.before()
        self.awake.wait(LONG)
        self.is_over = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert not self.is_over
        self.awake.set()


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def columns(folder, text, is_read=None):
    """A pipe with this text, which stays open until the event is set; another is set when the text has been read."""
    path, awake = folder / "pipe.txt", threading.Event()
    os.mkfifo(path)

    def write():
        with open(path, "w") as pipe:
            pipe.write(text)
            pipe.flush()
            while is_read and struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]:
                time.sleep(0.01)
            if is_read:
                is_read.set()
            awake.wait(LONG)
        awake.set()

    threading.Thread(target=write, daemon=True).start()
    return ConllFile(path, columns=["word"]), awake


every_call = pytest.mark.parametrize(
    ("kind", "method"),
    [(LinearMulticlassSVC, "fit"), (LinearSGDClassifier, "fit"), (LinearSGDClassifier, "partial_fit")],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)


def endless():
    while True:
        yield block()


@pytest.mark.parametrize(
    ("kind", "method", "ending"),
    [
        (LinearMulticlassSVC, "fit", "limit while a block is waited for"),
        (LinearMulticlassSVC, "fit", "limit of an endless stream"),
        (LinearMulticlassSVC, "fit", "Ctrl-C while a block is waited for"),
        (LinearSGDClassifier, "fit", "limit while a block is waited for"),
        (LinearSGDClassifier, "fit", "Ctrl-C while a block is waited for"),
        (LinearSGDClassifier, "partial_fit", "Ctrl-C while a block is waited for"),
        (LinearSGDClassifier, "partial_fit", "limit of an endless stream"),
    ],
)
def test_a_limit_or_ctrl_c_ends_a_stream_with_a_model(kind, method, ending):
    status = "interrupted" if "Ctrl-C" in ending else "time_limit"
    model = kind(time_limit=None if status == "interrupted" else 0.3, random_state=0)
    waiting = Slow(2, press_ctrl_c if status == "interrupted" else lambda: None)
    with waiting, pytest.warns(TrainingWarning, match=status.removesuffix("ed")):
        getattr(model, method)(endless() if "endless" in ending else iter(waiting))
    assert model.result_.status == status
    X, y = block()
    assert model.score(X, y) > 0.9


@every_call
def test_a_stream_without_a_block_within_the_time_limit_is_an_error(kind, method):
    model = kind(random_state=0)
    if method == "fit":
        model.fit(*block())
    model.set_params(time_limit=0.1)
    before = vars(model).copy()
    with Slow(0) as blocks, pytest.raises(ValueError, match=r"no block .* within time_limit=0.1 .* larger"):
        getattr(model, method)(iter(blocks))
    assert vars(model).keys() == before.keys()


@every_call
def test_ctrl_c_before_the_first_block_raises(kind, method):
    model = kind(random_state=0)
    with Slow(0, press_ctrl_c) as blocks, pytest.raises(KeyboardInterrupt, match="no block"):
        getattr(model, method)(iter(blocks))
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("kind", [LinearMulticlassSVC, LinearSGDClassifier])
def test_a_stream_of_one_class_within_the_time_limit_is_an_error(kind):
    X, y = block()

    def blocks(awake):
        yield X[y == 0], y[y == 0]
        awake.wait(LONG)

    with Slow(0) as stream, pytest.raises(ValueError, match=r"only examples of the class 0 .* time_limit=0.1"):
        kind(time_limit=0.1).fit(blocks(stream.awake))


def test_a_model_of_the_rows_read_so_far_says_how_many_they_are():
    with Slow(2) as blocks, pytest.warns(TrainingWarning, match="reading was ended after 120 examples"):
        model = LinearMulticlassSVC(time_limit=0.4, tol=1e-2).fit(iter(blocks))
    X, y = block()
    full = LinearMulticlassSVC(tol=1e-6).fit(np.vstack([X, X]), np.concatenate([y, y]))
    assert model.result_.exact
    assert model.result_.dual <= full.result_.primal <= model.result_.primal * (1 + 1e-9)


def test_a_partial_fit_that_no_block_reaches_keeps_the_model():
    X, y = block()
    model = LinearSGDClassifier(random_state=0).partial_fit(X, y)
    weights = model.coef_.copy()
    with Slow(0) as blocks, pytest.warns(TrainingWarning, match="time_limit"):
        model.set_params(time_limit=0.1).partial_fit(iter(blocks))
    np.testing.assert_array_equal(model.coef_, weights)


TEXT = "the DET\ndog NOUN\nbarks VERB\n\n"


@pytest.mark.parametrize(("status", "n_jobs"), [("time_limit", 1), ("interrupted", 2)])
def test_limits_hold_while_a_tagger_waits_for_its_file(status, n_jobs, tmp_path, monkeypatch):
    is_read, looks, end = threading.Event(), [], loop._Run.end

    def press_if_it_waits(run, **optimal):
        looks.append(is_read.is_set())
        if status == "interrupted" and looks.count(True) == 2:
            press_ctrl_c()
        return end(run, **optimal)

    monkeypatch.setattr(loop._Run, "end", press_if_it_waits)
    file, awake = columns(tmp_path, TEXT * 20_000, is_read)  # a block and a part of another one
    model = SequenceTagger(random_state=0, n_jobs=n_jobs, time_limit=1.0 if status == "time_limit" else None)
    with pytest.warns(TrainingWarning, match=status.removesuffix("ed")):
        model.fit(file)
    assert not awake.is_set(), "the file ended first"
    awake.set()
    assert model.result_.status == status
    assert list(model.predict([["the", "dog"]])[0]) == ["DET", "NOUN"]


@pytest.mark.parametrize("delay", ["read", "encoded by fit", "encoded by partial_fit"])
def test_a_tagger_without_a_block_within_the_time_limit_is_an_error(delay, monkeypatch, tmp_path):
    learn = TemplateEncoder.learn

    def learn_slowly(self, X):
        time.sleep(0.3)
        return learn(self, X)

    if delay == "read":
        file, awake = columns(tmp_path, TEXT)
    else:
        monkeypatch.setattr(TemplateEncoder, "learn", learn_slowly)
        (tmp_path / "train.txt").write_text(TEXT)
        file, awake = ConllFile(tmp_path / "train.txt"), threading.Event()
    model = SequenceTagger(time_limit=0.1)
    with pytest.raises(ValueError, match=r"no block .* within time_limit=0.1"):
        getattr(model, "partial_fit" if "partial" in delay else "fit")(file)
    awake.set()
    assert not hasattr(model, "classes_")


def test_a_tagger_learns_nothing_from_a_block_that_arrives_too_late(tmp_path):
    model = SequenceTagger(random_state=0).fit([["the", "cat"]], [["DET", "NOUN"]])
    known = model.feature_names()
    file, awake = columns(tmp_path, TEXT)
    with pytest.warns(TrainingWarning, match="time_limit"):
        model.set_params(time_limit=0.1).partial_fit(file)
    awake.set()
    wait_for_threads()
    assert list(model.classes_) == ["DET", "NOUN"]
    assert model.feature_names() == known


def test_a_stream_that_ends_in_time_is_not_cut(monkeypatch):
    models = [LinearMulticlassSVC(random_state=0, time_limit=limit).fit([block()] * 3) for limit in (None, 600)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    now = [0.0]  # the clock stands still but while the block is made
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def slow():
        now[0] += 0.6
        yield block()

    model = LinearMulticlassSVC(time_limit=1.0, tol=1e-2, random_state=0).fit(slow())
    assert model.result_.status == "converged"
