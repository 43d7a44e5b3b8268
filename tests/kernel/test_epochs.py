"""How many passes epochs="auto" makes: more where they are cheap and still pay, one where data is large."""

import numpy as np
import pytest

from larank import LaRankClassifier, LaSVMClassifier, MulticlassSVC
from larank.kernel import machine

ONLINE = pytest.mark.parametrize("estimator", [LaRankClassifier, LaSVMClassifier])


def noisy(n, features=2, classes=2, noise=1.5, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, features))
    y = (X @ random.normal(size=(features, classes)) + noise * random.normal(size=(n, classes))).argmax(axis=1)
    return X, y


@ONLINE
@pytest.mark.parametrize("C", [0.05, 10.0])
def test_on_small_and_noisy_data_the_default_is_as_good_as_the_exact_machine(estimator, C):
    X, y = noisy(2000, classes=3)
    exact = MulticlassSVC(C=C, gamma=0.5, random_state=0)
    if estimator is LaSVMClassifier:
        exact = LaSVMClassifier(C=C, gamma=0.5, stop="gap", tol=1e-4, max_iter=1000, random_state=0)
    best = exact.fit(X[:500], y[:500]).score(X[500:], y[500:])
    scores = [
        estimator(C=C, gamma=0.5, random_state=seed).fit(X[:500], y[:500]).score(X[500:], y[500:]) for seed in range(5)
    ]
    assert np.mean(scores) > best - 0.005


@ONLINE
def test_passes_go_on_while_they_raise_the_dual(estimator):
    X, y = noisy(300, features=5, classes=3)
    model = estimator(C=10.0, gamma=0.2, random_state=0).fit(X, y)
    passes = int(model.result_.iterations)
    assert passes > 1
    assert model.result_.status == "completed"
    same = estimator(C=10.0, gamma=0.2, epochs=passes, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), same.decision_function(X))
    one_more = estimator(C=10.0, gamma=0.2, epochs=passes + 1, random_state=0).fit(X, y)
    assert one_more.result_.dual - model.result_.dual < 1e-3 * model.result_.dual


@ONLINE
@pytest.mark.parametrize(("limit", "most"), [("_FEW_VISITS", 400), ("_FEW_KERNEL_VALUES", 1000)])
def test_one_pass_is_made_where_another_would_be_long(estimator, limit, most, monkeypatch):
    X, y = noisy(300, features=5, classes=3)
    monkeypatch.setattr(machine, limit, most)
    assert estimator(C=10.0, random_state=0).fit(X, y).result_.iterations == 1


def test_a_hundred_thousand_examples_get_one_pass():
    X, y = noisy(100_000, noise=0.0)
    assert LaRankClassifier("linear", C=0.001, certify=False, random_state=0).fit(X, y).result_.iterations == 1
