"""Checkpoint files: a training that was cut short goes on in another process and ends as if nothing had been."""

import errno
import os
from contextlib import contextmanager, nullcontext
from functools import partial
from unittest import mock

import numpy as np
import pytest
from scipy import sparse

from checks import X, assert_same_model, clouds, y
from fulldisk import full_disk
from killing import Killed, killed_after, killed_again_and_again
from larank import LaRank, LaRankClassifier, LaSVMClassifier, LinearMulticlassSVC, MulticlassSVC
from larank.active import Active
from larank.data.models import ModelFileError
from larank.kernel.machine import StreamTraining
from larank.training import CheckpointFile, CheckpointWarning, TrainingWarning, random_state_of, set_random_state

# A few ways of each estimator, with kernel values that are the same to the last bit in whatever tables they stand.
EXACT = {
    "sdm": (LinearMulticlassSVC, {"tol": 1e-2}, X),
    "sdm, sparse, float32": (LinearMulticlassSVC, {"tol": 1e-2}, sparse.csr_matrix(X, dtype=np.float32)),
    "sdm, moved on": (LinearMulticlassSVC, {"C": 10.0}, X),
    "sdm, one-vs-rest": (LinearMulticlassSVC, {"formulation": "one-vs-rest", "stop": "violation"}, X),
    "larank, weights": (LaRankClassifier, {"kernel": "linear", "max_iter": 5}, X),
    "larank": (LaRankClassifier, {"kernel": "laplacian", "max_iter": 3}, X),
    "larank, as many passes as are cheap": (LaRankClassifier, {"kernel": "laplacian"}, X),
    "larank, gap": (LaRankClassifier, {"kernel": "laplacian", "tol": 1e-3}, X),
    "larank, fixed": (
        LaRankClassifier,
        {"kernel": "linear", "solver": LaRank(schedule="fixed"), "max_iter": 3},
        sparse.csr_matrix(X),
    ),
    "lasvm": (LaSVMClassifier, {"kernel": "laplacian", "max_iter": 3}, X),
    "lasvm, gap": (LaSVMClassifier, {"kernel": "laplacian", "tol": 1e-4}, X),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint"


@pytest.mark.parametrize("formulation", ["crammer-singer", "weston-watkins"])
def test_the_exact_solver_ends_with_the_same_certificate(formulation, tmp_path, monkeypatch):
    """What it keeps of kernel values decides on whom it looks at, and is not in the checkpoint."""

    def make():
        return MulticlassSVC("laplacian", formulation=formulation, tol=1e-6, random_state=0)

    whole = make().fit(X, y)
    resumed = killed_again_and_again(partial(make().fit, X, y), tmp_path / "checkpoint", monkeypatch)
    assert resumed.result_.status == "converged"
    assert resumed.result_.relative_gap <= 1e-6
    assert resumed.result_.dual == pytest.approx(whole.result_.dual, rel=1e-6)
    assert_same_model(make().fit(X, y, checkpoint=tmp_path / "checkpoint", resume=True), resumed)


@pytest.mark.parametrize("formulation", ["crammer-singer", "weston-watkins"])
def test_the_exact_solver_does_not_lose_its_pass_of_larank(formulation, path, monkeypatch):
    many, labels = clouds(800, classes=4)

    def train(**checkpoints):
        return MulticlassSVC("laplacian", formulation=formulation, random_state=0).fit(many, labels, **checkpoints)

    whole = train()
    for visited in (256, 512, 768, 800):
        with monkeypatch.context() as patch:
            killed_after(patch, 1)
            with pytest.raises(Killed):
                train(checkpoint=path, every=0, resume=True)
        state = CheckpointFile(path, 0, {})._read()["training"]
        assert (state["visited"], state["next_round"]) == (visited, None)
    resumed = train(checkpoint=path, resume=True)
    assert resumed.result_.operations["process_new"] == whole.result_.operations["process_new"]
    assert resumed.result_.relative_gap <= 1e-3
    assert resumed.result_.dual == pytest.approx(whole.result_.dual, rel=1e-3)


@pytest.mark.parametrize("way", EXACT, ids=str)
def test_a_training_that_is_killed_again_and_again_ends_as_one_that_was_not(way, path, monkeypatch):
    estimator, parameters, some = EXACT[way]
    whole = estimator(random_state=0, **parameters).fit(some, y)
    train = partial(estimator(random_state=0, **parameters).fit, some, y)
    resumed = killed_again_and_again(train, path, monkeypatch)
    assert_same_model(resumed, whole)
    for name in ("status", "primal", "dual", "iterations", "support_vectors"):
        assert getattr(resumed.result_, name) == getattr(whole.result_, name), name
    assert len(resumed.result_.history) == len(whole.result_.history)
    assert_same_model(estimator(random_state=0, **parameters).fit(some, y, checkpoint=path, resume=True), whole)


def test_a_seed_that_nobody_gave_is_in_the_checkpoint(path, monkeypatch):
    checkpoint_of(path, monkeypatch, states=10, random_state=None)
    assert_same_model(*[small(random_state=None).fit(X, y, checkpoint=path, resume=True) for _ in range(2)])


def small(**parameters):
    return LaRankClassifier("linear", **{"max_iter": 3, "random_state": 0} | parameters)


def checkpoint_of(path, monkeypatch, states=5, **parameters):
    """Write a checkpoint of a training that is killed after so many states."""
    with monkeypatch.context() as patch:
        killed_after(patch, states)
        with pytest.raises(Killed):
            small(**parameters).fit(X, y, checkpoint=path, every=0)
    return path


def test_a_checkpoint_of_another_training_is_refused_with_what_differs(path, monkeypatch):
    checkpoint_of(path, monkeypatch)
    same = {"max_iter": 3, "random_state": 0}
    for model, message in (
        (LaRankClassifier("linear", C=2.0, **same), r"was written with C=1.0; got C=2.0"),
        (LaRankClassifier("rbf", **same), r"was written with kernel='linear'; got kernel='rbf'"),
        (LaSVMClassifier("linear", **same), "is of other class: LaRankClassifier; got LaSVMClassifier"),
    ):
        with pytest.raises(ModelFileError, match=message):
            model.fit(X, y, checkpoint=path, resume=True)
    LaRankClassifier("linear", time_limit=100, n_jobs=2, **same).fit(X, y, checkpoint=path, resume=True)


def test_what_a_subclass_fixes_or_adds_is_compared_too(tmp_path):
    def train(C, note, **resume):
        class Mine(LaRankClassifier):
            def __init__(self, note, unstored=1):
                super().__init__("linear", C=C, random_state=0)
                self.note = note

        return Mine(note).fit(X, y, checkpoint=tmp_path / "checkpoint", every=0, **resume)

    model = train(1.0, "a")
    with pytest.raises(ModelFileError, match=r"was written with C=1.0; got C=2.0"):
        train(2.0, "a", resume=True)
    with pytest.raises(ModelFileError, match=r"was written with note='a'; got note='b'"):
        train(1.0, "b", resume=True)
    assert_same_model(train(1.0, "a", resume=True), model)


def of(dtype, *shape):
    return f"an array of {dtype} and shape {shape}"


def test_a_checkpoint_of_other_data_is_refused_with_which_of_them_differ(path, monkeypatch):
    checkpoint_of(path, monkeypatch)
    of_X, of_y, of_weights = f"X was {of('float64', 60, 4)}", f"y was {of('int64', 60)}", of("float64", 60)
    fewer = [f"{of_X}, and is {of('float64', 50, 4)}", f"{of_y}, and is {of('int64', 50)}"]
    fewer += [f"sample_weight was {of_weights}, and is {of('float64', 50)}"]
    other = "as it was, with other values"
    for data, more, differences in (
        ((X[::-1], y), {}, [f"X is {of('float64', 60, 4)} {other}"]),
        ((X, np.roll(y, 1)), {}, [f"y is {of('int64', 60)} {other}"]),
        ((X.astype(np.float32), y), {}, [f"{of_X}, and is {of('float32', 60, 4)}"]),
        ((sparse.csr_matrix(X), y), {}, [f"{of_X}, and is a sparse matrix of float64 and shape (60, 4)"]),
        ((X[:50], y[:50]), {}, fewer),
        ((X, y), {"sample_weight": np.linspace(1, 2, len(y))}, [f"sample_weight is {of_weights} {other}"]),
        ((X, y), {"validation": (X, y)}, ["validation was None, and is a tuple of 2"]),
    ):
        with pytest.raises(ModelFileError) as refused:
            small().fit(*data, **more, checkpoint=path, resume=True)
        assert str(refused.value) == f"{path} is of other data: {'; '.join(differences)}"


def test_a_random_state_that_was_given_is_compared_by_where_it_stands(tmp_path):
    def fit(seed, **more):
        model = LaRankClassifier("linear", random_state=np.random.RandomState(seed))
        return model.fit(X, y, checkpoint=tmp_path / "checkpoint", **more)

    assert_same_model(fit(0), fit(0, resume=True), but=("random_state",))
    with pytest.raises(ModelFileError, match=r"was written with random_state=RandomState at .*; got random_state="):
        fit(1, resume=True)


def test_a_place_beyond_the_numbers_of_a_random_generator_is_refused():
    """NumPy would read what stands behind them."""
    random, other = np.random.RandomState(0), np.random.RandomState(1)
    state = random_state_of(random)
    set_random_state(other, state)
    assert other.randint(2**31) == random.randint(2**31)
    for place in (-1, 625, 10**9):
        with pytest.raises(ValueError, match="no state of a random generator"):
            set_random_state(other, [*state[:2], place, *state[3:]])


def test_a_damaged_checkpoint_is_refused(path, monkeypatch):
    checkpoint_of(path, monkeypatch)
    whole, random = path.read_bytes(), np.random.RandomState(0)
    damaged = [b"", whole[:5], whole[:200], whole[:-1], whole + b"0", b"label 1:2.0\n" * 9]
    for _ in range(60):
        bits = bytearray(whole)
        bits[random.randint(len(bits))] ^= 1 << random.randint(8)
        damaged.append(bytes(bits))
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="checkpoint"):
            small().fit(X, y, checkpoint=path, resume=True)


OF_MODELS = [
    ({"checkpoint": 3}, "checkpoint must be the path of a file, or None; got 3"),
    ({"checkpoint": "c", "every": -1}, r"every must be a number of seconds >= 0; got -1"),
    ({"checkpoint": "c", "resume": "yes"}, "resume must be True or False; got 'yes'"),
    ({"resume": True}, "resume=True needs checkpoint, the file to go on from"),
    ({"every": 3}, "every=3 needs checkpoint, the file to write to"),
    ({"checkpoint": "no/c"}, "checkpoint must be a file in a folder that is there; got 'no/c', and 'no' is none"),
    ({"checkpoint": "/"}, "checkpoint must be the path of a file; got '/', which is a folder"),
    ({"checkpoint": "old"}, "is there already: resume=True goes on from it; to begin anew, remove it"),
]
ACTIVE = LaSVMClassifier(selection=Active(budget=20))
REFUSED = [(model, *row) for model in (LinearMulticlassSVC(), LaRankClassifier()) for row in OF_MODELS]
REFUSED += [(ACTIVE, {"checkpoint": "c"}, "checkpoint needs selection='random'; got selection=Active")]


@pytest.mark.parametrize(("model", "arguments", "message"), REFUSED, ids=str)
def test_arguments_are_checked(model, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").write_text("old")
    with pytest.raises(ValueError, match=message):
        model.fit(X, y % 2, **arguments)
    assert (tmp_path / "old").read_text() == "old"
    assert os.listdir() == ["old"]


def test_limits_and_interrupts_leave_a_checkpoint_to_go_on_from(path):
    whole = LinearMulticlassSVC(C=10.0, random_state=0).fit(X, y)
    with pytest.warns(TrainingWarning, match="max_iter=5"):
        LinearMulticlassSVC(C=10.0, max_iter=5, random_state=0).fit(X, y, checkpoint=path)
    assert_same_model(LinearMulticlassSVC(C=10.0, random_state=0).fit(X, y, checkpoint=path, resume=True), whole)


@contextmanager
def failing_disk(number):
    """A disk that takes bytes, and says in the end that it cannot keep them."""
    with mock.patch.object(os, "fsync", side_effect=OSError(number, os.strerror(number))):
        yield


@pytest.mark.parametrize("number", [errno.EFBIG, errno.ENOSPC, errno.EIO, errno.EDQUOT], ids=os.strerror)
def test_a_full_disk_does_not_end_the_training(tmp_path, monkeypatch, number):
    """Of five checkpoints or more, the third and the fourth do not fit."""
    disk = partial(full_disk, 100) if number == errno.EFBIG else partial(failing_disk, number)
    path, written, contents = tmp_path / "checkpoint", CheckpointFile.write, []

    def write(file, state, *, is_last):
        with disk() if len(contents) in (2, 3) else nullcontext():
            written(file, state, is_last=is_last)
        contents.append(path.read_bytes())

    monkeypatch.setattr("larank.training.checkpointfile._MOST_OF_TIME", np.inf)
    monkeypatch.setattr(CheckpointFile, "write", write)
    said = f"the checkpoint '{path}' cannot be written: {os.strerror(number)}; the previous checkpoint stays, "
    then = "training goes on, and the next checkpoint is tried when it is due"
    with pytest.warns(CheckpointWarning, match=f"^{said}{then}$"):
        trained = small().fit(X, y, checkpoint=path, every=0)
    assert_same_model(trained, small().fit(X, y))
    assert contents[1] == contents[2] == contents[3] != contents[4]
    assert contents[-1] != contents[4]
    assert os.listdir(tmp_path) == ["checkpoint"]
    assert_same_model(small().fit(X, y, checkpoint=path, resume=True), trained)


@contextmanager
def little_room():
    with mock.patch("larank.data.arrayfile._MEMORY_FOR_JSON", 100):
        yield


ENDED = "; no checkpoint exists, training has ended, so that no other checkpoint will be written$"
TOO_LARGE = "cannot be written: the lists, texts and numbers .*; no checkpoint exists"


@pytest.mark.parametrize(("obstacle", "message"), [(partial(full_disk, 100), ENDED), (little_room, TOO_LARGE)])
def test_a_training_that_never_writes_a_checkpoint_ends_all_the_same(tmp_path, obstacle, message):
    with pytest.warns(CheckpointWarning, match=message), obstacle():
        trained = small().fit(X, y, checkpoint=tmp_path / "checkpoint")
    assert_same_model(trained, small().fit(X, y))
    assert not os.listdir(tmp_path)


def test_checkpoints_take_little_of_the_time_however_long_a_state_takes(tmp_path, monkeypatch):
    """The clock stands still but for states, which take a second each, and steps, which take one, too."""
    now, written, snapshot = [0.0], [], StreamTraining.snapshot

    def slow(training):
        now[0] += 1.0
        return snapshot(training)

    def advance(training, advanced=StreamTraining.advance):
        now[0] += 1.0
        return advanced(training)

    monkeypatch.setattr("larank.training.checkpointfile.time.perf_counter", lambda: now[0])
    monkeypatch.setattr(StreamTraining, "snapshot", slow)
    monkeypatch.setattr(StreamTraining, "advance", advance)
    monkeypatch.setattr(CheckpointFile, "write", lambda file, state, is_last: written.append(now[0]))
    LaRankClassifier("linear", max_iter=9).fit(X, y, checkpoint=tmp_path / "checkpoint", every=0)
    assert len(written) > 3
    assert min(np.diff(written[:-1])) > 50  # the last one is written in any case


@pytest.mark.parametrize("place", [0, 1, 624])
def test_a_random_generator_goes_on_from_every_place_among_its_numbers(place):
    wanted, found = np.random.RandomState(1), np.random.RandomState(2)
    state = random_state_of(np.random.RandomState(0))
    state[2] = place
    wanted.set_state(tuple(state))
    set_random_state(found, state)
    assert found.randint(1000, size=5).tolist() == wanted.randint(1000, size=5).tolist()
