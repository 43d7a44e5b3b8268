"""Training that chooses its next example: what is chosen is what the strategy says, and the budget is kept."""

import functools

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from checks import assert_same_model, assert_valid
from larank import LaSVMClassifier
from larank.active import Active, AutoActive, Gradient, Random
from larank.kernel.stream import ChoosingFeed
from sessions import Lasvm
from sessions import lasvm_session as session

random = np.random.default_rng(0)
X = random.normal(size=(240, 3))
noise = random.normal(size=(240, 3))
two = (X[:, 0] + 0.3 * noise[:, 0] > 0).astype(int)
three = (X @ random.normal(size=(3, 3)) + 0.3 * noise).argmax(axis=1)
names = np.array(["oak", "ash", "elm"])
K = rbf_kernel(X, gamma=0.5)
K = (K + K.T) / 2

STRATEGIES = (Gradient, Active, AutoActive)


def model(kernel="rbf", **parameters):
    return LaSVMClassifier(kernel, **{"gamma": 0.5, "C": 2.0, "random_state": 0, "n_jobs": 1, **parameters})


@pytest.fixture
def chosen(monkeypatch):
    """The examples in the order in which they were processed."""
    rows = []
    chosen = ChoosingFeed._chosen

    def watched(self):
        block = chosen(self)
        rows.extend(block.examples.ids.tolist())
        return block

    monkeypatch.setattr(ChoosingFeed, "_chosen", watched)
    return rows


# Every strategy


@functools.cache
def best_dual(is_binary):
    return model(tol=1e-4).fit(X, two if is_binary else three).result_.dual


@pytest.mark.parametrize("labels", [two, names[three]], ids=["two", "three"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_a_budget_every_example_is_taken_once(strategy, labels, chosen):
    fitted = model(selection=strategy(sample_size=20)).fit(X, labels)
    assert sorted(chosen) == list(range(240))
    assert fitted.n_iter_ == 1
    assert fitted.score(X, labels) > 0.85
    assert fitted.result_.exact
    assert fitted.result_.gap >= -1e-9
    best = best_dual(labels is two)
    assert 0.85 * best < fitted.result_.dual <= best * (1 + 1e-4)


@pytest.mark.parametrize("budget", [1, 2, 17, 240, 1000])
@pytest.mark.parametrize("strategy", [Random, *STRATEGIES])
def test_no_more_examples_are_taken_than_the_budget_has_labels(strategy, budget, chosen):
    fitted = model(selection=strategy(budget=budget)).fit(X, names[three])
    taken = min(budget, 240)
    if strategy is not Random:
        assert len(chosen) == len(set(chosen)) == taken
        assert set(fitted.support_) <= set(chosen)
    assert len(fitted.support_) <= taken
    assert fitted.result_.iterations == pytest.approx(taken / 240)
    assert_valid(fitted, X, three)
    assert model(selection=strategy(budget=33)).fit(X, two).result_.operations["process"] == 33


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_seed_makes_the_model_and_a_validation_set_does_not_change_it(strategy):
    one, same, other = (
        model(selection=strategy(budget=60), random_state=seed).fit(X, three, validation=validation)
        for seed, validation in ((3, None), (3, (X[::2], three[::2])), (4, None))
    )
    assert_same_model(one, same)
    assert not np.array_equal(np.sort(one.support_), np.sort(other.support_))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_kinds_of_data_are_chosen_from_alike(strategy):
    selection = strategy(sample_size=25, budget=80)
    dense = model(selection=selection).fit(X, three)
    for data in (sparse.csr_matrix(X), X.astype(np.float32)):
        other = model(selection=selection).fit(data, three)
        assert np.mean(other.predict(data) == dense.predict(X)) > 0.85
        assert len(other.support_) <= 80
    exact = model("precomputed", selection=selection).fit(K, three)
    called = model(lambda a, b: K[np.ix_(a, b)], selection=selection).fit(list(range(240)), three)
    np.testing.assert_array_equal(exact.support_, called.support_)
    np.testing.assert_allclose(exact.decision_function(K), called.decision_function(list(range(240))), atol=1e-9)
    assert np.mean(exact.predict(K) == dense.predict(X)) > 0.85


@pytest.mark.parametrize(
    ("labels", "strategy"),
    [(two, Gradient), (three, Active), (three, AutoActive)],
    ids=["two-gradient", "three-active", "three-autoactive"],
)
def test_dropped_rows_do_not_change_what_is_chosen(labels, strategy, chosen):
    parameters = {"selection": strategy(sample_size=20), "C": 10.0}
    plenty = model("precomputed", **parameters).fit(K, labels)
    with_plenty = list(chosen)
    chosen.clear()
    tight = model("precomputed", **parameters, memory_limit=1e5 if labels is two else 2e5).fit(K, labels)
    assert chosen == with_plenty
    assert tight.result_.kernel_values > plenty.result_.kernel_values, "rows were dropped"
    np.testing.assert_array_equal(tight.decision_function(K), plenty.decision_function(K))


def test_several_passes_and_a_gap_can_be_combined_with_a_selection(chosen):
    model(selection="gradient", max_iter=2).fit(X, two)
    assert sorted(chosen) == sorted([*range(240)] * 2)
    fitted = model(selection="active", tol=0.05).fit(X, two)
    assert fitted.result_.relative_gap <= 0.05


# The choice, by brute force


class Watched:
    """A strategy that looks at all candidates, and what it saw."""

    def __init__(self, strategy):
        self.strategy, self.seen = strategy, []

    def __getattr__(self, name):
        return getattr(self.strategy, name)

    def choose(self, margins, reach):
        self.seen.append((margins.copy(), reach))
        return self.strategy.choose(margins, reach)


def margins_of(scores, labels, needs_labels):
    """One column of scores of the second class, or one for each class."""
    if scores.shape[1] == 1:
        return scores[:, 0] * np.where(labels == 1, 1, -1) if needs_labels else np.abs(scores[:, 0])
    if not needs_labels:
        ordered = np.sort(scores, axis=1)
        return ordered[:, -1] - ordered[:, -2]
    is_own = np.arange(scores.shape[1]) == labels[:, None]
    return scores[is_own] - np.where(is_own, -np.inf, scores).max(axis=1)


@pytest.mark.parametrize("labels", [two, three], ids=["two", "three"])
@pytest.mark.parametrize("kind", [Gradient, Active])
def test_lasvm_takes_the_example_that_brute_force_takes(kind, labels, chosen):
    watched = Watched(strategy := kind(sample_size=None, budget=60))
    fitted = model("precomputed", selection=watched).fit(K, labels)
    numbers = np.array([np.flatnonzero(fitted._arrived == label)[0] for label in labels], np.int32)
    by_hand = Lasvm(session(), K, numbers, np.full(240, 2.0), block=1)
    compared = 0
    for place, row in enumerate(chosen):
        if by_hand.session.classes == len(np.unique(labels)):
            alpha, bias, delta = by_hand.model()
            rest = np.setdiff1d(np.arange(240), chosen[:place])
            margins = margins_of(K[rest] @ alpha.T + bias, numbers[rest], strategy.needs_labels)
            seen, reach = watched.seen[place]
            np.testing.assert_allclose(np.sort(seen), np.sort(margins), atol=1e-9)
            assert margins[rest == row] == pytest.approx(margins.min(), abs=1e-9)
            assert reach == pytest.approx(1 + max(0, delta.max()) / 2)
            compared += 1
        by_hand.epoch(np.array([row]))
    assert compared > 40


def test_autoactive_looks_at_no_more_than_it_needs_and_chooses_as_if_one_by_one(chosen):
    watched = Watched(AutoActive(sample_size=100, enough=5))
    watched.looks = 16
    model(selection=watched).fit(X, two)
    assert len(chosen) == 240
    for margins, reach in watched.seen:
        near = np.flatnonzero(margins < reach)
        assert len(margins) <= 100
        if len(margins) > 16 and len(near) >= 5:
            assert near[4] >= len(margins) // 3 - 1, "an earlier look was not enough"


def test_active_and_gradient_choices_teach_more_of_the_boundary_than_random_ones():
    clean = (X[:, 0] + 0.2 * X[:, 1] ** 2 > 0).astype(int)

    def right(selection, seed):
        return model(selection=selection, C=50.0, random_state=seed).fit(X, clean).score(X, clean)

    by_chance, *chosen = (sum(right(each(budget=50), seed) for seed in range(5)) for each in (Random, Active, Gradient))
    assert min(chosen) > by_chance


def test_an_example_of_an_unknown_class_is_the_most_wrong_one(chosen):
    """Gradient selection looks at labels, and nothing is as wrong as not to know of the class."""
    rare = np.where(np.arange(240) % 40 == 7, 2, two)
    model(selection=Gradient(sample_size=None, budget=12)).fit(X, rare)
    assert set(rare[chosen]) == {0, 1, 2}


def test_weights_of_zero_are_never_chosen(chosen):
    weights = np.where(np.arange(240) % 3 == 0, 0.0, 1.0)
    model(selection="active").fit(X, two, sample_weight=weights)
    assert sorted(chosen) == np.flatnonzero(weights).tolist()
