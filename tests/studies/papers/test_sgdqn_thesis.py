"""The study of SGD-QN: its primal cost, its claims, and its quick form."""

from __future__ import annotations

import numpy as np
import pytest

from larank import SGDQNClassifier
from studies.datasets import Dataset
from studies.papers import sgdqn
from studies.papers.sgdqn import Point, Race, passes_until, race_claim
from studies.papers.vectors import Sizes, costs


def test_the_thesis_s_primal_cost_is_half_of_the_library_s_with_twice_its_lambda():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 5))
    y = np.where(X[:, 0] + random.normal(size=200) > 0, 1, -1)
    alpha = 2 * sgdqn.LAMBDA["alpha"]
    model = SGDQNClassifier("squared_hinge", alpha=alpha, fit_intercept=False, random_state=0).fit(X, y)
    assert sgdqn.primal("alpha", Dataset(X, y, X, y), model.coef_) == pytest.approx(model.result_.primal / 2)


def test_passes_are_counted_to_the_first_that_is_low_enough():
    points = [Point(passes, 0.0, primal, 0.0) for passes, primal in ((1, 3.0), (2, 1.0), (3, 2.0), (4, 1.0))]
    assert passes_until(2.0, points) == 2
    assert passes_until(1.0, points) == 2
    assert passes_until(0.5, points) is None


@pytest.mark.parametrize(
    ("dataset", "svmsgd2", "sgdqn_passes", "holds"),
    [
        ("alpha", (10, 9), (5, 5), True),
        ("alpha", (9, 9), (9, 9), False),
        ("alpha", (10, 10), (5, None), False),
        ("rcv1", (9, 9), (9, 9), True),
        ("rcv1", (9, 9), (9, 10), False),
    ],
)
def test_dense_data_need_fewer_passes_and_sparse_ones_not_more(dataset, svmsgd2, sgdqn_passes, holds):
    races = [Race(dataset, seed, 0.5, *both) for seed, both in enumerate(zip(svmsgd2, sgdqn_passes, strict=True))]
    assert race_claim(dataset, races).holds == holds


def test_costs_are_those_of_all_operations_of_the_table():
    found = costs(Sizes(2_000, 100, 100))
    assert [cost.order for cost in found] == ["O(1)", "O(s)", "O(d)", "O(s)", "O(d + s')", "O(s + s')"]
    assert all(cost.nanoseconds > 0 for cost in found)
