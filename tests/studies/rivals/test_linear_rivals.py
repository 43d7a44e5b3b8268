"""The yardstick of the linear comparison is itself right."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from studies.rivals import linear, objectives, sweep
from studies.rivals.contest import Entrant
from studies.rivals.libraries import LINEAR, installed
from studies.rivals.linearruns import LinearRun, Problem, measure_fit, stored
from studies.rivals.optimum import OURS, Optimum

X = sparse.csr_matrix([[1.0, 0.0], [0.0, 2.0]])
y = np.array([0, 2])
W = np.array([[0.5, 0.0], [0.0, 0.25], [0.0, 1.0]])


def test_crammer_singer_objective_by_hand():
    # Scores (0.5, 0, 0) and (0, 0.5, 2): losses 0.5 and 0.
    assert objectives.primal("crammer-singer", W, X, y, 3.0) == pytest.approx(0.5 * 1.3125 + 3.0 * 0.5)


def test_one_vs_rest_objective_by_hand():
    # Hinge losses 0.5 + 1 + 1 and 1 + 1.5 + 0.
    assert objectives.primal("one-vs-rest", W, X, y, 2.0) == pytest.approx(0.5 * 1.3125 + 2.0 * 5.0)


def test_error_counts_wrong_best_scores():
    assert objectives.error(W, X, np.array([0, 1])) == 0.5


def test_a_solution_below_the_bound_is_an_error():
    with pytest.raises(ArithmeticError, match="the bound is wrong"):
        Optimum(C=1.0, lower=10.0, upper=10.1, confirmed=None).check(9.9, "somebody")


def test_every_solver_has_a_reference_of_its_own_formulation():
    for solver in LINEAR.values():
        assert LINEAR[OURS[solver.formulation]].formulation == solver.formulation
        assert list(solver.tolerances) == sorted(solver.tolerances, reverse=True)


class Recorded(sweep.Contestant):
    """A contestant whose suboptimality is its tolerance and whose runs below `limit` take too long."""

    def attempt(self, tolerance):
        self.say(tolerance)
        if tolerance < self.limit:
            return None
        run = LinearRun(1.0, 1.0, 0, 0, {}, W)
        return sweep.Attempt(tolerance, 1.0, tolerance, tolerance <= self.target, run)


def contestant(target, limit, log):
    solver = replace(LINEAR["larank"], tolerances=(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3))
    problem = Problem("two rows", X, y, X, y, 1.0)
    return Recorded(Entrant("larank"), solver, problem, Optimum(1.0, 1.0, 1.0, None), None, target, limit, log)


@pytest.mark.parametrize("target", [0.9, 0.8, 0.7, 0.6, 0.55, 0.4, 0.3])
def test_sweep_finds_the_loosest_tolerance_that_meets_the_target(target):
    ended = sweep.sweep(contestant(target, 0.0, lambda tolerance: None))
    assert ended.reached
    assert ended.tolerance == pytest.approx(target, abs=0.051)
    assert ended.tolerance <= target


def test_sweep_ends_at_the_tightest_run_within_the_time_limit():
    tried: list[float] = []
    ended = sweep.sweep(contestant(0.1, 0.75, tried.append))
    assert not ended.reached
    assert ended.tolerance == 0.8
    assert tried == [0.9, 0.6, 0.8, 0.7]


def test_sweep_whose_first_run_takes_too_long_ends_with_nothing():
    assert sweep.sweep(contestant(0.1, 1.0, lambda tolerance: None)) is None


@pytest.mark.parametrize("name", LINEAR)
def test_linear_solver_is_measured_in_a_process_of_its_own(name):
    if not installed(LINEAR[name]):
        pytest.skip(f"{LINEAR[name].requires} is not installed")
    random = np.random.default_rng(0)
    labels = np.arange(60) % 3
    points = sparse.csr_matrix(np.eye(3)[labels] + 0.1 * random.normal(size=(60, 3)))
    problem = Problem("corners", points, labels, points, labels, 1.0)
    with stored(problem, "float64") as folder:
        run = measure_fit(folder, Entrant(name), 1e-3, 120.0)
    assert run.W.shape == (3, 3)
    assert objectives.error(run.W, points, labels) == 0.0
    assert run.wall > 0
    assert (run.dual is not None) == LINEAR[name].is_ours


def test_bars_are_judged_by_precision():
    def row(problem, solver, over):
        figures = (0.1, True, 1, 1, over, 2, 1e-3, 1, 0.5, 10**6, 10**6, 0)
        return linear.Row(problem, "crammer-singer", solver, "float64", *figures)

    rows = [row("mnist", "larank", {"float64": 1.0}), row("mnist", "liblinear-s4", {"float64": 5.0, "float32": 3.0})]
    told = list(map(str, linear.judged(rows, [linear.Epoch("covtype", "float32", 5.0, 1.0)])))
    assert [line.rsplit(", ", 1)[1] for line in told] == ["met", "missed", "missed"]
    assert "float64" in told[0]
    assert "float32" in told[1]
    assert "5.00 bare products" in told[2]
