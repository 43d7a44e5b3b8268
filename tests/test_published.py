"""MCSVM as published: whatever is switched on, the rounds keep the constraints and end at the optimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from larank.blocks import blocks_for
from larank.kernels import kernel_for
from larank.multiclass.problem import Problem
from larank.multiclass.published import Published, PublishedTraining
from reference import kernel_optimum

PLENTY = 2.0**40


def problem(n, k, seed, C=1.0, points=None, with_costs=True):
    """Few directions, duplicates and zero rows, and margins that differ from class to class."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(points or n, 2))[random.integers(0, points or n, n)]
    X[random.random(n) < 0.1] = 0
    labels = random.permutation(np.concatenate([np.arange(k), random.integers(0, k, n)])[:n]).astype(np.int32)
    costs = C * random.uniform(0.5, 2, n)
    if with_costs:
        costs[random.random(n) < 0.1] = 0
        costs[0] = C
    delta = np.ones((k, k)) - np.eye(k)
    if seed % 2:
        delta *= random.uniform(0.2, 3, (k, k))
    return Problem(X @ X.T, labels, costs, k, delta, "crammer-singer")


def training(problem, memory_limit=PLENTY, kernel="precomputed", gamma=1.0, **switches):
    chosen = kernel_for(kernel, gamma=gamma, X=problem.X)
    return PublishedTraining(Published(**switches), problem, blocks_for(chosen, problem.X), memory_limit)


def finished(session, passes=20_000.0):
    while not session.advance():
        assert session.iterations() < passes, "training does not end"
    return session


IMPROVEMENTS = [
    {"active_set": False, "cooling": "none"},
    {"active_set": True, "cooling": "none"},
    {"active_set": True, "cooling": "exponential"},
    {"active_set": True, "cooling": "linear"},
    {"active_set": True, "cooling": "logarithmic"},
]


@settings(max_examples=25)
@given(
    n=st.integers(4, 12),
    k=st.integers(2, 5),
    seed=st.integers(0, 10**6),
    C=st.sampled_from([0.01, 1.0, 100.0]),
    row_solver=st.sampled_from(["fixed-point", "exact"]),
)
def test_every_version_ends_at_the_optimum_of_a_general_solver(n, k, seed, C, row_solver):
    at = problem(n, k, seed, C, points=max(2, 2 * n // 3))
    best = kernel_optimum(at.X, at.labels, at.costs, at.delta)
    for switches in IMPROVEMENTS:
        reached = finished(training(at, row_solver=row_solver, epsilon=1e-7, **switches)).evaluate()
        assert reached.dual == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert reached.primal == pytest.approx(best, rel=1e-5, abs=1e-6)
