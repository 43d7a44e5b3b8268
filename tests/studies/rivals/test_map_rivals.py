"""The comparison of kernel maps measures what it says."""

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem

from studies import storage
from studies.rivals import maps, maptasks

pytestmark = pytest.mark.usefixtures("in_this_process")


@pytest.fixture(scope="module")
def folder():
    random = np.random.default_rng(0)
    X = random.random((300, 5), dtype=np.float32)
    y = (X[:, 0] > X[:, 1]).astype(int) + (X[:, 2] > 0.5)
    arrays = {"X_train": X, "y_train": y, "X_test": X, "y_test": y}
    with storage.stored("points", arrays) as stored:
        yield stored


@pytest.mark.parametrize("name", maps.MAPS)
def test_the_trace_error_is_that_of_the_features(folder, name):
    run = maps._in_turn(folder, 60.0, map=name, components=20, gamma=2.0)
    first, second = run(), run()
    assert 0 < first.trace_error < 0.5
    assert first.wall > 0
    if name != maptasks.GREEDY:
        assert first.trace_error != second.trace_error, "every run has a seed of its own"
    if name == maptasks.NYSTROEM:
        Z = Nystroem(gamma=2.0, n_components=20, random_state=0).fit_transform(storage.array(folder, "X_train"))
        assert first.trace_error == pytest.approx(1 - (Z.astype(float) ** 2).sum() / 300, abs=1e-5)


@pytest.mark.parametrize("learner", maps.LEARNERS)
def test_every_learner_learns(folder, learner):
    asked = {"gamma": 2.0, "C": 10.0, "components": 60, "epochs": 20, "rows": None}
    run = maps._measure(folder, 60.0, learner=learner, **asked)
    assert run.error < 0.15
    assert (learner == maptasks.EXACT) != ("map" in run.extra)
