"""The experiments with LaSVM run, and their parts do what they claim."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from studies.datasets import Dataset
from studies.papers import active
from studies.papers.active import (
    AUTOACTIVE,
    RANDOM,
    RETRAIN,
    RETRAIN_ALL,
    Curve,
    Point,
    adult_claim,
    fewest_vectors,
    means,
)


def test_curves_are_averaged_where_all_seeds_have_a_point():
    first, second = (Point(25, 0.5, 10, 2.0), Point(50, 0.5, 20, 1.0)), (Point(50, 0.5, 30, 2.0),)
    found = means(Curve("usps", RETRAIN, seed, points) for seed, points in enumerate((first, second)))
    assert found == {RETRAIN: [Point(50, 0.5, 25.0, 1.5)]}


def test_the_smallest_model_that_is_good_enough_is_found():
    points = [Point(1, 0.0, 10, 9.0), Point(2, 0.0, 20, 5.0), Point(3, 0.0, 15, 4.0), Point(4, 0.0, 30, 3.0)]
    assert fewest_vectors(points, 5.0) == points[2]
    assert fewest_vectors(points, 2.0) is None


@pytest.mark.parametrize(
    ("vectors", "error", "verdict"),
    [
        (300, 14.9, "reaches it with 300, 0.30 of them"),
        (400, 14.9, "reaches it with 400, and has 20.00 % with 100"),
        (300, 15.1, "does not reach it, and has 15.10 % with 300"),
    ],
)
def test_the_claim_on_adult_is_checked(vectors: float, error: float, verdict: str):
    points = [Point(250, 0.5, 100, 20.0), Point(2000, 0.5, vectors, error)]
    claim = adult_claim({RANDOM: [Point(2000, 0.5, 500, 16.0), Point(32561, 0.5, 1000, 15.0)], AUTOACTIVE: points})
    assert claim.what.endswith(verdict)
    assert claim.holds == ("0.30" in verdict)


def test_redrawn_sets_hold_every_example_once():
    X, y = np.arange(30.0)[:, None], np.where(np.arange(30) % 2, 1, -1)
    for part in (X, sparse.csr_matrix(X)):
        drawn = active._drawn(Dataset(part[:20], y[:20], part[20:], y[20:]), seed=1)
        both = [np.asarray(rows.todense()) if sparse.issparse(rows) else rows for rows in (drawn.X_train, drawn.X_test)]
        assert [len(rows) for rows in both] == [20, 10]
        values = np.concatenate(both)[:, 0]
        assert sorted(values) == list(range(30))
        assert np.array_equal(np.concatenate([drawn.y_train, drawn.y_test]), np.where(values % 2, 1, -1))


def test_training_anew_starts_where_both_classes_are_known():
    random = np.random.default_rng(3)
    y = np.where(np.arange(200) < 10, 1, -1)
    X = (y[:, None] + random.normal(size=(200, 2))).astype(np.float32)
    data = Dataset(X, y, X, y)
    for selection in (RETRAIN, RETRAIN_ALL):
        points = active._retrained_points("usps", selection, data, (1, 60, 80), seed=0)
        assert [point.labels for point in points] == [60, 80]
        assert points[0].seconds < points[1].seconds
        assert all(point.error < 10 for point in points)
