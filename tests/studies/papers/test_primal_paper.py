"""The study of the primal multiclass SVM: its defaults, its selection, and what differs beyond chance."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel

from studies.datasets import SMALL, load
from studies.papers import selection
from studies.papers.primal import MAPS, Point, _difference, map_claims
from studies.papers.selection import MSVM, ONE_VS_REST, Choice, Defaults, Grid, split


def points(n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    y = np.arange(n) % 3
    return random.normal(size=(n, 4)) + 3 * np.eye(3, 4)[y], y


def test_defaults_are_the_median_distance_and_one_over_the_variance_in_feature_space():
    X, _ = points(20)
    defaults = Defaults.of(X, (0.5, 2.0))
    distances = [np.linalg.norm(a - b) for i, a in enumerate(X) for b in X[:i]]
    assert defaults.sigma == pytest.approx(np.median(distances))
    K = rbf_kernel(X, gamma=1 / (2 * (0.5 * defaults.sigma) ** 2))
    assert defaults.costs[0.5] == pytest.approx(1 / (np.diag(K).mean() - K.mean()))
    assert defaults.costs[2.0] > defaults.costs[0.5]


def test_a_split_is_standardised_by_its_training_part_and_tests_all_others():
    X, y = points()
    data = split(np.column_stack([X, np.ones(len(X))]), y, 30, 0, standardised=True)
    assert len(data.y_train) == 30
    assert len(data.y_test) == 60
    assert np.allclose(data.X_train.mean(axis=0), 0)
    assert np.allclose(data.X_train.std(axis=0), [1, 1, 1, 1, 0])
    assert not np.allclose(data.X_test.mean(axis=0)[:4], 0, atol=1e-3)
    assert set(map(tuple, split(X, y, 30, 0, False).X_train)) < set(map(tuple, X))
    assert not np.array_equal(split(X, y, 30, 0, False).X_train, split(X, y, 30, 1, False).X_train)


def test_one_versus_rest_are_binary_problems_with_the_whole_c(monkeypatch):
    monkeypatch.setattr(selection, "TOLERANCE", 1e-8)
    X, y = points()
    (model,) = selection.trained(ONE_VS_REST, X, y, [0.7])
    for label, binary in enumerate(model.models):
        expected = LogisticRegression(C=0.7, tol=1e-9, max_iter=1000).fit(X, y == label)
        assert np.allclose(binary.coef_, expected.coef_, atol=1e-3)
    assert np.mean(model.predict(X) == y) > 0.9


def test_among_equals_the_smoothest_function_is_selected():
    grid = Grid(widths=(1.0, 2.0, 4.0), costs=(1.0, 10.0))
    defaults = Defaults(1.0, {1.0: 3.0, 2.0: 5.0, 4.0: 7.0})
    errors = np.array([[5, 4], [4, 4], [4, 3]])
    assert selection._least(errors, grid, defaults) == Choice(4.0, 10.0, 1 / 32, 70.0)
    errors = np.array([[5, 4], [4, 4], [4, 4]])
    assert selection._least(errors, grid, defaults) == Choice(4.0, 1.0, 1 / 32, 7.0)
    errors = np.array([[5, 4], [4, 4], [5, 4]])
    assert selection._least(errors, grid, defaults) == Choice(2.0, 1.0, 1 / 8, 5.0)


def test_selection_finds_a_model_that_generalises():
    X, y = points(240)
    data = split(X, y, 120, 0, standardised=True)
    found = selection.select(data, Grid((1.0, 4.0), (1.0, 100.0)), (MSVM, ONE_VS_REST), 0)
    assert set(found) == {MSVM, ONE_VS_REST}
    assert all(of.error < 15 and of.unfinished == 0 for of in found.values())


# ---- What differs ----


@pytest.mark.parametrize(("seeds", "holds"), [(3, [True, False]), (1, [None, None])])
def test_maps_are_told_apart_by_more_than_chance(seeds, holds):
    few = dict(zip(MAPS, (10.5, 10.0, 12.0), strict=True))
    points = [
        Point("seg", name, seed, share, 5, 1.0, (10.0 if share == 1 else few[name]) + 0.01 * seed * share, 0.0)
        for share in (1, 1 / 8)
        for name in MAPS
        for seed in range(seeds)
    ]
    assert [claim.holds for claim in map_claims(points)] == holds


def test_more_looks_need_a_larger_difference():
    first, second = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 2.5])
    mean, chance = _difference(first, second, 1)
    assert mean == pytest.approx(2 / 3)
    assert chance == pytest.approx(4.303 * np.std([0.5, 1.0, 0.5], ddof=1) / np.sqrt(3), rel=1e-3)
    assert _difference(first, second, 6)[1] > chance


def test_three_letters_are_numbered_from_zero():
    data = load("abe", SMALL)
    assert set(data.y_train) == {0, 1, 2}
    assert len(data.y_train) + len(data.y_test) == 2323
