"""Checkpoints of `SequenceTagger`: a training that was killed goes on and ends as one that was not, bit for bit."""

import os
import signal
import time
from functools import partial

import numpy as np
import pytest
from safetensors.numpy import load_file

import larank.sequence.corpora
import larank.sequence.training
from checks import IS_NIGHTLY
from killing import Killed, killed_after, killed_again_and_again
from larank import SequenceTagger
from larank.data.columns import ConllFile, write_conll
from larank.data.models import ModelFileError
from larank.sequence.features import TemplateEncoder
from larank.training import CheckpointFile


def noisy(count, seed=0):
    """Words and tags of chunks that do not follow from the words alone."""
    random = np.random.RandomState(seed)
    X, y = [], []
    for _ in range(count):
        tags = []
        for _ in range(random.randint(1, 4)):
            kind = "XYZ"[random.randint(3)]
            tags += ["O"] if random.rand() < 0.3 else [f"B-{kind}", *[f"I-{kind}"] * random.randint(3)]
        y.append(tags)
        X.append([f"{tag[-1].lower()}{random.randint(4)}" if random.rand() < 0.7 else "any" for tag in tags])
    return X, y


X, y = noisy(60)
NUMBERS = [[{"word": word, "length": len(word), "at": t / 7} for t, word in enumerate(words)] for words in X]
ROWS = np.random.RandomState(0).randn(sum(map(len, y)), 6), [len(tags) for tags in y]

FILE = None  # stands for a file of X and y
WAYS = {
    "exact": ({"epochs": 3}, X),
    "exact, order 2, constraints": ({"epochs": 2, "order": 2, "constraints": "BIO"}, X),
    "one pass, as it comes": ({"shuffle": False}, X),
    "greedy": ({"inference": "greedy", "order": 3, "epochs": 3}, X),
    "greedy, own history": ({"inference": "greedy", "history": "predicted", "epochs": 2}, X),
    "numbers": ({"epochs": 2}, NUMBERS),
    "rows": ({"epochs": 2, "label_costs": {("O", "B-X"): 3.0}}, ROWS),
    "little memory": ({"epochs": 4, "memory_limit": 30_000}, X),
    "little memory, numbers": ({"epochs": 3, "memory_limit": 30_000}, NUMBERS),
    "gap": ({"stop": "gap", "tol": 1e-4}, X),
    "gap, numbers": ({"stop": "gap", "C": 1.0, "tol": 1e-3}, NUMBERS),
    "gap, little memory": ({"stop": "gap", "tol": 0.2, "max_iter": 8, "memory_limit": 60_000}, X),
    "greedy, gap": ({"stop": "gap", "inference": "greedy", "tol": 1e-2}, X),
    "passive-aggressive": ({"solver": "passive-aggressive", "epochs": 2}, X),
    "perceptron": ({"solver": "perceptron", "epochs": 3, "inference": "greedy"}, X),
    "averaged perceptron": ({"solver": "perceptron", "average": True, "epochs": 3}, X),
    "file": ({"epochs": 3, "n_jobs": 2}, FILE),
    "file, read in every epoch": ({"epochs": 3, "memory_limit": 20_000, "n_jobs": 2}, FILE),
    "file, read in every epoch, one job": ({"epochs": 3, "memory_limit": 20_000, "n_jobs": 1}, FILE),
    "file, greedy": ({"epochs": 2, "inference": "greedy", "constraints": "BIO", "n_jobs": 1}, FILE),
    "file, gap": ({"stop": "gap", "tol": 1e-3, "n_jobs": 2}, FILE),
    "file, averaged perceptron": ({"solver": "perceptron", "average": True, "epochs": 3, "n_jobs": 1}, FILE),
}


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    """Many places to be killed at, and files of several blocks."""
    monkeypatch.setattr(larank.sequence.training, "_STEP_TOKENS", 150)
    monkeypatch.setattr(larank.sequence.training, "_FEWEST_BETWEEN", 20)
    monkeypatch.setattr(larank.sequence.corpora, "_BLOCK_TOKENS", 60)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint"


@pytest.fixture
def file(tmp_path):
    write_conll(tmp_path / "words.txt", X, y)
    return ConllFile(tmp_path / "words.txt")


def assert_same_tagger(one, other):
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.feature_names() == other.feature_names()
    np.testing.assert_array_equal(one.coef_.toarray(), other.coef_.toarray())
    np.testing.assert_array_equal(one.transitions_, other.transitions_)
    mine, theirs = one._state["session"], other._state["session"]
    assert (mine["seed"], mine["linear"]) == (theirs["seed"], theirs["linear"])
    for left, right in zip(mine.get("patterns", ()), theirs.get("patterns", ()), strict=True):
        np.testing.assert_array_equal(left, right)


def assert_same_certificate(one, other):
    mine, theirs = one.result_, other.result_
    for name in ("status", "primal", "dual", "iterations", "support_vectors", "argmax_calls", "operations", "exact"):
        np.testing.assert_equal(getattr(mine, name), getattr(theirs, name), err_msg=name)
    for left, right in zip(mine.history, theirs.history, strict=True):
        np.testing.assert_equal((left.iterations, left.primal, left.dual), (right.iterations, right.primal, right.dual))


@pytest.mark.filterwarnings("ignore::larank.training.TrainingWarning")  # max_iter may end it
@pytest.mark.parametrize("way", WAYS)
def test_a_tagger_that_is_killed_again_and_again_ends_as_one_that_was_not(way, path, file, monkeypatch):
    parameters, some = WAYS[way]
    data = (file,) if some is FILE else (some, y)
    whole, resumed, again = (SequenceTagger(random_state=0, **parameters) for _ in range(3))
    whole.fit(*data)
    # Half of them are killed often, the others ever later.
    states = (lambda run: 2**run) if list(WAYS).index(way) % 2 else (lambda run: 1 + run // 4)
    resumed = killed_again_and_again(partial(resumed.fit, *data), path, monkeypatch, states)
    assert_same_tagger(resumed, whole)
    assert_same_certificate(resumed, whole)
    if resumed.result_.status != "max_iter":
        assert_same_tagger(again.fit(*data, checkpoint=path, resume=True), whole)


def test_a_checkpoint_holds_a_seed_that_nobody_gave_and_no_values_of_features_that_are_all_one(path, monkeypatch):
    """The values would be half of the file."""
    kill(monkeypatch, path, X, y, max_iter=3, random_state=None)
    assert min(len(array) for name, array in load_file(path).items() if "patterns" in name) == 0
    one, other = (SequenceTagger(max_iter=3).fit(X, y, checkpoint=path, resume=True) for _ in range(2))
    assert_same_tagger(one, other)


def kill(monkeypatch, path, *data, states=4, **more):
    """Leave the checkpoint of a training that was killed."""
    with monkeypatch.context() as patch:
        killed_after(patch, states)
        with pytest.raises(Killed):
            SequenceTagger(**{"random_state": 0, **more}).fit(*data, checkpoint=path, every=0)


def test_a_checkpoint_of_another_training_is_refused_with_what_differs(path, file, monkeypatch):
    kill(monkeypatch, path, X, y, max_iter=3)
    kill(monkeypatch, of_file := path.with_name("of_file"), file, states=8)
    other = [[*X[0][:-1], "other"], *X[1:]]
    flipped = [["O"] * len(y[0]), *y[1:]]
    tokens, size = sum(map(len, y)), file.path.stat().st_size
    write_conll(file.path, X[:-1], y[:-1])
    for checkpoint, parameters, data, message in (
        (path, {"order": 2}, (X, y), "was written with order=1; got order=2"),
        (path, {}, (other, y), f"of other data: X was 60 sequences of {tokens} tokens with .* features, and is 60 seq"),
        (path, {}, (X[::-1], y[::-1]), "of other data: X is .* as it was, with other values; y is .* as it was, with"),
        (path, {}, (X, flipped), f"other data: y is 60 sequences of {tokens} tokens with 7 labels as it was, with oth"),
        (path, {}, (X, y, np.linspace(1, 2, 60)), r"sample_weight is an array of float64 and shape \(60,\) as it was"),
        (of_file, {"epochs": 1}, (file,), f"is of other data: X was a file of {size} bytes, and is a file of"),
    ):
        with pytest.raises(ModelFileError, match=message):
            SequenceTagger(**{"epochs": 3, "random_state": 0, **parameters}).fit(
                *data, checkpoint=checkpoint, resume=True
            )


def _changed(value, random):
    """Return a state with a value, a length or a type of one array changed, or another number."""
    if isinstance(value, np.ndarray):
        change = random.randint(4)
        if change < 2:
            return value.astype(np.float32) if change else value[:-1]
        changed = value.copy()
        if changed.size:
            number = (0, -1, 2**62 if value.dtype.itemsize == 8 else 2**31 - 1, 300)[random.randint(4)]
            changed.flat[random.randint(changed.size)] = number % 256 if value.dtype == np.uint8 else number
        return changed
    if isinstance(value, dict):
        key = list(value)[random.randint(len(value))]
        return {**value, key: _changed(value[key], random)}
    if isinstance(value, list | tuple) and value:
        at = random.randint(len(value))
        return [*value[:at], _changed(value[at], random), *value[at + 1 :]]
    return [None, -1, 10**9, 2.5, "text", True][random.randint(6)]


@pytest.mark.filterwarnings("ignore::larank.training.TrainingWarning")  # training may take long
@pytest.mark.parametrize("way", ["exact", "gap", "greedy", "averaged perceptron", "numbers", "little memory"])
def test_a_state_that_makes_no_sense_is_refused_or_harmless(way, path, monkeypatch):
    """The fingerprints of the file are right, so the values themselves are checked."""
    parameters, some = WAYS[way]
    # With stop="gap", rounds begin later.
    kill(monkeypatch, path, some, y, states=12 if way == "gap" else 5, **parameters)
    content, read, random = path.read_bytes(), CheckpointFile._read, np.random.RandomState(0)

    def read_changed(file):
        state = read(file)
        return {**state, "training": _changed(state["training"], random)}

    refused, changes = 0, 50 if IS_NIGHTLY else 25
    for _ in range(changes):
        path.write_bytes(content)
        with monkeypatch.context() as patch:
            patch.setattr(CheckpointFile, "_read", read_changed)
            try:
                SequenceTagger(random_state=0, time_limit=5, **parameters).fit(some, y, checkpoint=path, resume=True)
            except ModelFileError as error:
                assert "is damaged" in str(error)  # noqa: PT017
                refused += 1
            except ValueError:
                pass  # numbers that are possible, and lead nowhere
    assert refused > 0.3 * changes


@pytest.mark.parametrize("is_limit", [True, False], ids=["time_limit", "Ctrl-C"])
def test_limits_hold_while_a_file_is_read_up_to_the_position_of_a_checkpoint(is_limit, path, file, monkeypatch):
    whole = SequenceTagger(random_state=0).fit(file)
    kill(monkeypatch, path, file, states=8)
    content, learn = path.read_bytes(), TemplateEncoder.learn

    def learn_slowly(self, block):
        time.sleep(0.5)
        if not is_limit:
            os.kill(os.getpid(), signal.SIGINT)
        return learn(self, block)

    model = SequenceTagger(random_state=0, time_limit=0.1 if is_limit else None)
    message = "the data were not read up to the position of the checkpoint"
    with monkeypatch.context() as patch:
        patch.setattr(TemplateEncoder, "learn", learn_slowly)
        with pytest.raises(ValueError if is_limit else KeyboardInterrupt, match=message):
            model.fit(file, checkpoint=path, resume=True)
    assert not hasattr(model, "classes_")
    assert path.read_bytes() == content
    assert_same_tagger(model.set_params(time_limit=None).fit(file, checkpoint=path, resume=True), whole)


def test_a_pipe_has_no_checkpoints(path):
    with pytest.raises(ValueError, match=r"checkpoint needs data that can be read again; .*null is no file"):
        SequenceTagger().fit(ConllFile("/dev/null", ["word"]), checkpoint=path)
