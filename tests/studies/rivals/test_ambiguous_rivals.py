"""Learners from candidate labels, and the study that compares them: figures, verdicts and quick form."""

import numpy as np
import pytest
from at_hand import solvers
from scipy.optimize import minimize

from studies.partiallabels import select, with_distractors, with_random_candidates
from studies.rivals import ambiguous, candidates
from studies.rivals.ambiguous import LEARNERS, OURS, AmbiguousTables, Case, Run
from studies.rivals.libraries import scikit_weak
from studies.rivals.libraries.solver import AmbiguousLearner


def blobs(n: int = 240, classes: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return random.normal(size=(n, 6)) + 4 * np.eye(classes, 6)[y], y


# ---- Learners ----


@pytest.mark.parametrize("name", solvers(LEARNERS))
def test_every_learner_finds_the_true_label_among_random_candidates(name, monkeypatch):
    monkeypatch.setattr(scikit_weak, "TREES", 20)
    X, y = blobs()
    made = with_random_candidates(X, y, 4, 1)
    X_test, y_test = blobs(seed=1)
    learner = LEARNERS[name]

    def fit(X, candidates, settings):
        return learner.fit(X, candidates, 0, **settings)

    settings, _ = select(fit, learner.settings(), X, made.candidates, 0, 2)
    predicted = fit(X, made.candidates, settings)(X_test)
    assert predicted.dtype == np.int64
    assert np.mean(predicted == y_test) > (0.6 if "random" in name else 0.85)
    assert np.array_equal(predicted, fit(X, made.candidates, settings)(X_test))


def test_clpl_is_the_minimum_of_its_loss():
    X, y = blobs(40)
    among = with_distractors(X, y, 4).candidates
    C = 0.3

    def loss(flat):
        scores = X @ flat.reshape(-1, 4)
        total = 0.5 * flat @ flat
        for row, of in zip(scores, among, strict=True):
            total += C * (max(0, 1 - row[of].mean()) ** 2 + sum(max(0, 1 + score) ** 2 for score in row[~of]))
        return total

    found = candidates.clpl_weights(X, among, C).ravel()
    reference = minimize(loss, np.zeros(24), method="BFGS")
    assert loss(found) == pytest.approx(reference.fun, rel=1e-4)


def test_neighbours_vote_for_all_their_candidates_the_nearer_the_more():
    X = np.array([[0.0], [1.0], [3.0]])
    among = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]], bool)
    predict = LEARNERS["pl-knn"].fit(X, among, 0, k=3)
    assert predict(np.array([[0.1]])).tolist() == [1]
    predict = LEARNERS["pl-knn"].fit(X, among[[0, 2, 2]], 0, k=2)
    assert predict(np.array([[1.9], [0.1]])).tolist() == [2, 0]  # two against one; then the nearer


def test_drawn_labels_are_candidates_and_all_of_them_come():
    among = np.tile(np.array([[1, 0, 1]], bool), (400, 1))
    labels = candidates.drawn_labels(among, 0)
    assert set(labels) == {0, 2}
    assert 150 < np.sum(labels == 0) < 250
    assert np.array_equal(labels, candidates.drawn_labels(among, 0))
    y = np.zeros(1000, np.int64)  # labels do not depend on how candidates were made
    made = with_random_candidates(y[:, None], y, 4, 1, seed=0)
    assert 400 < np.sum(candidates.drawn_labels(made.candidates, 0) == 0) < 600


def test_a_grid_is_all_combinations_and_its_quick_form_has_two_values_of_each():
    learner = AmbiguousLearner("any", "numpy", grids=[{"C": (1, 2, 3, 4), "gamma": (5, 6)}])
    assert len(learner.settings()) == 8
    assert learner.settings()[0] == {"C": 1, "gamma": 5}
    assert learner.settings(quick=True) == [{"C": C, "gamma": gamma} for C in (2, 3) for gamma in (5, 6)]
    assert AmbiguousLearner("none", "numpy").settings() == [{}]


# ---- The study ----


def case(dataset: str, ours: tuple[float, ...], other: tuple[float, ...]) -> Case:
    def runs(values):
        return tuple(Run(seed, value, 80.0, {"C": 1.0}, 0.5) for seed, value in enumerate(values))

    return Case(dataset, "", {OURS: runs(ours), "pl-knn": runs(other)})


def test_a_difference_is_that_of_the_same_splits():
    one = case("pl_lost", (70.0, 72.0, 74.0), (69.0, 73.0, 72.0))
    assert one.difference("pl-knn") == pytest.approx((2 / 3, np.std([1, -1, 2], ddof=1) / np.sqrt(3)))
    assert one.wins("pl-knn") == (2, 1)


def test_ours_is_held_to_three_of_four_sets():
    better, worse = ((70.0, 72.0), (69.0, 71.0)), ((60.0, 62.0), (69.0, 71.0))
    names = tuple(ambiguous.AMBIGUOUS)
    met = AmbiguousTables(tuple(case(name, *(worse if name == names[0] else better)) for name in names))
    assert met.to_lines() == [
        f"larank is at least as accurate as pl-knn on 3 of 4 sets ({', '.join(names[1:])}); bar 3, met"
    ]
    failed = AmbiguousTables(tuple(case(name, *(better if name == names[0] else worse)) for name in names))
    assert failed.to_lines()[0].endswith("on 1 of 4 sets (pl_lost); bar 3, missed")
    table = met.to_tables()[0].as_markdown()
    assert "|   pl-knn | 70.00 ± 1.41 | 80.00 | -9.00 ± 0.00 | 0 | 2 | 0.5 |" in table
    assert "|   literature | 70–78 |" in table
