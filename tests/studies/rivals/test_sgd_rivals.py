"""The comparison of stochastic gradient solvers: its yardsticks are right, and its quick form runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from studies.rivals import gradientruns, sgd, streamtasks
from studies.rivals.contest import Entrant
from studies.rivals.gradientruns import GradientProblem, least_primal, measure_fit, primal, stored
from studies.rivals.libraries import GRADIENT, installed, vowpal
from studies.rivals.sgd import Arrival, judged_arrivals


def problem(rows: int = 400) -> GradientProblem:
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 6)).astype(np.float32)
    y = np.where(X[:, 0] - X[:, 1] + random.normal(size=rows) > 0, 1, -1)
    return GradientProblem("points", X, y, 1e-2)


def test_primal_by_hand():
    small = GradientProblem("two", np.array([[1.0], [2.0]]), np.array([1, -1]), 0.5)
    # Margins 0.5 and -1: short of one by 0.5 and 2.
    assert primal(small, "hinge", np.array([0.5])) == pytest.approx(0.0625 + 1.25)
    assert primal(small, "squared_hinge", np.array([0.5])) == pytest.approx(0.0625 + (0.25 + 4) / 2)


@pytest.mark.parametrize("loss", sgd.LOSSES)
def test_the_optimum_is_below_every_solution_and_close_to_a_good_one(loss):
    points = problem()
    least = least_primal(points, loss)
    with stored(points, as_text=False) as folder:
        run = measure_fit(folder, Entrant("larank-asgd", "one-vs-rest"), 200, loss, points.alpha, 60.0)
    assert least <= primal(points, loss, run.W[0]) <= 1.01 * least


@pytest.mark.parametrize("name", GRADIENT)
def test_a_solver_is_measured_in_a_process_of_its_own_and_minimises_the_common_primal(name):
    solver = GRADIENT[name]
    if not installed(solver):
        pytest.skip(f"{solver.requires} is not installed")
    points, loss = problem(), solver.losses[0]
    with stored(points, as_text=name == sgd.VOWPAL) as folder:
        effort = 50 if solver.counts_epochs else 1e-3
        run = measure_fit(folder, Entrant(name, "one-vs-rest"), effort, loss, points.alpha, 120.0)
    assert run.W.shape == (1, 6)
    if name != sgd.VOWPAL:  # whose learning rate is one for other data
        assert primal(points, loss, run.W[0]) < 1.1 * least_primal(points, loss)
    assert np.mean(np.sign(points.X @ run.W[0]) == points.y) > 0.75
    assert run.wall > 0


def test_text_of_vowpal_wabbit_has_no_zeros_and_numbers_classes_from_one(tmp_path):
    X = np.array([[0.0, 0.5], [1.5, 0.0], [0.0, 0.0]], dtype=np.float32)
    vowpal.write(tmp_path / "two", X, np.array([1, -1, 1]))
    assert (tmp_path / "two").read_text() == "1 | 1:0.5\n-1 | 0:1.5\n1 | \n"
    vowpal.write(tmp_path / "three", sparse.csr_matrix(X), np.array([0, 1, 2]))
    assert (tmp_path / "three").read_text() == "1 | 1:0.5\n2 | 0:1.5\n3 | \n"


def test_our_best_is_compared_with_the_best_rival_that_is_there():
    def arrival(solver, wall, reached=True):
        return Arrival("alpha", "hinge", solver, 5, reached, wall, wall, 0.3, 0.005, 0.0)

    rows = [arrival("larank-asgd", 0.3), arrival("larank-sgdqn", 0.1, False), arrival("sgdclassifier", 1.0)]
    (line,) = map(str, judged_arrivals([*rows, arrival("liblinear-s3", 0.5, False)]))
    assert "larank-asgd is within 1% of the optimum in 0.300 of sgdclassifier's time" in line
    assert line.endswith("bar 0.5, met")
    (line,) = map(str, judged_arrivals(rows[:2]))
    assert line.endswith("no rival came within 1% of the optimum; bar 0.5, undecided")


# ---- Quick forms ----


def test_an_endless_stream_has_as_many_rows_as_it_is_asked_for():
    found = list(streamtasks.blocks(250_000))
    assert [len(y) for _, y in found] == [100_000, 100_000, 50_000]
    assert all(X.dtype == np.float32 for X, _ in found)


def test_every_problem_has_a_source_and_a_weight():
    assert {gradientruns.source(name) for name in gradientruns.ALPHAS} == {"generated", "covtype", "news20"}
