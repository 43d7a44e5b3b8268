"""The campaign of random problems: its references are right, its claims can break, and its numbers can be replayed."""

from argparse import Namespace
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from larank import LaSVMClassifier
from references.optima import binary_optimum, hulls_optimum, kernel_optimum
from references.quadratic import Quadratic
from studies import __main__ as command
from studies.agreement import campaign
from studies.agreement.claims import broken, unsound
from studies.agreement.machines import MACHINES, solution_of
from studies.agreement.problems import ESTIMATORS, KERNELS, draw, kernel_values
from studies.study import Scope


def first_of(count, **wanted):
    """So many problems with these attributes, small ones."""
    found = (draw(0, number) for number in range(3000))
    fitting = (p for p in found if len(p.y) < 40 and all(getattr(p, name) == of for name, of in wanted.items()))
    return list(islice(fitting, count))


def interval_of(problem):
    return MACHINES[problem.formulation](problem).interval()


def test_the_same_number_is_the_same_problem():
    one, again, other = draw(0, 7), draw(0, 7), draw(1, 7)
    assert one.constructor == again.constructor
    np.testing.assert_array_equal(one.K, again.K)
    assert other.constructor != one.constructor


def test_all_estimators_kernels_and_formulations_come():
    drawn = [draw(0, number) for number in range(400)]
    for kind, all_of_them in (("estimator", ESTIMATORS), ("kernel", KERNELS), ("formulation", MACHINES)):
        assert {getattr(problem, kind) for problem in drawn} == set(all_of_them)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "chi2"])
def test_kernel_values_are_those_of_scikit_learn(kernel):
    from sklearn.metrics import pairwise

    X = np.random.default_rng(0).uniform(size=(9, 3))
    given = {"gamma": 0.7, "degree": 2, "coef0": 1.0} if kernel == "poly" else {"gamma": 0.7}
    theirs = getattr(pairwise, "polynomial_kernel" if kernel == "poly" else f"{kernel}_kernel")
    np.testing.assert_allclose(kernel_values(X, kernel, **given), theirs(X, **given))


# ---- References ----


def test_the_general_solver_finds_a_minimum_that_is_known():
    P, d = np.diag([1.0, 2.0, 4.0]), np.array([1.0, 2.0, -1.0])
    inside = Quadratic(P, d, np.arange(3), np.full(3, 10.0))
    np.testing.assert_allclose(inside.minimiser()[0], [1, 1, 0], atol=1e-9)
    shared = Quadratic(P, d, np.zeros(3, int), np.array([1.0]))  # their sum is at most one
    np.testing.assert_allclose(shared.minimiser()[0], [1 / 3, 2 / 3, 0], atol=1e-9)
    equal = Quadratic(P, d, np.arange(3), np.full(3, 10.0), np.array([[1.0, -1.0, 0.0]]))
    x, y = equal.minimiser()
    np.testing.assert_allclose(x, [1, 1, 0], atol=1e-9)
    assert y == pytest.approx([0], abs=1e-9)


@pytest.mark.parametrize("formulation", ["crammer-singer", "weston-watkins"])
def test_intervals_hold_the_optimum_of_another_solver(formulation):
    for problem in first_of(3, estimator="MulticlassSVC", kernel="rbf", formulation=formulation):
        interval = interval_of(problem)
        optimum = kernel_optimum(problem.K, problem.y, problem.costs, problem.delta, formulation)
        assert interval.width < 1e-7
        assert interval.optimum == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("estimator", ["LaSVMClassifier", "HullerClassifier"])
def test_intervals_of_binary_machines_hold_those_of_libsvm_and_of_a_hard_margin(estimator):
    for problem in first_of(3, estimator=estimator, kernel="rbf"):
        interval, K = interval_of(problem), problem.K
        is_hulls = problem.formulation == "hulls"
        signs = MACHINES[problem.formulation](problem).signs.T
        optima = (hulls_optimum(K, y) if is_hulls else binary_optimum(K, y, problem.costs, bias=True) for y in signs)
        assert interval.optimum == pytest.approx(sum(optima), rel=1e-5)
        assert is_hulls or interval.witnesses["LIBSVM"][0] <= interval.upper * (1 + 1e-9)


@pytest.mark.parametrize("formulation", ["log_loss", "squared_hinge", "smoothed_hinge"])
def test_no_scores_near_the_optimum_of_a_smooth_loss_are_better(formulation):
    problem = first_of(1, estimator="PrimalMulticlassSVC", formulation=formulation)[0]
    interval = interval_of(problem)
    assert interval.width < 1e-6
    model = problem.fit()
    assert model.result_.primal >= interval.lower * (1 - 1e-9)
    assert model.result_.primal <= interval.upper * (1 + 2 * problem.tol)


# ---- Claims ----


def run_and_judge(problem, judged_by):
    """A run of which every claim holds: its machine, its result, and how changes or weaker scores are judged."""
    machine, model = MACHINES[problem.formulation](problem), problem.fit()
    interval, solution = machine.interval(), solution_of(model, machine)

    def judge(strength=1.0, **changes):
        weaker = replace(solution, scores=strength * solution.scores)
        return judged_by(weaker, replace(model.result_, **changes), machine, interval)

    return machine, model.result_, judge


@pytest.fixture(scope="module")
def judged():
    return run_and_judge(first_of(1, estimator="LaSVMClassifier", kernel="rbf", dtype="float64")[0], broken)[-1]


def test_a_sound_run_breaks_no_claim_and_a_stopped_one_promises_no_gap(judged):
    assert judged() == []
    assert not any("at a gap" in said for said in judged(primal=1e9, status="max_iter"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dual": 1e9}, "dual above the optimum"),
        ({"primal": 0.0}, "primal below the optimum"),
        ({"primal": 1e9}, "not that of the decision values"),
        ({"dual": 0.0}, "not that of the coefficients"),
        ({"primal": np.nan}, "primal nan"),
        ({"primal": 1e9}, "converged at a gap"),
        ({"primal": 1e9, "status": "precision"}, "precision at a gap"),
        ({"strength": 0.5}, "tol above the optimum"),
    ],
)
def test_certificates_and_statuses_that_promise_too_much_are_found(judged, changes, said):
    assert any(said in broken for broken in judged(**changes))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_that_break_the_rule_of_certificates_are_found(dtype):
    machine, result, judge = run_and_judge(first_of(1, estimator="LinearMulticlassSVC", dtype=dtype)[0], unsound)
    close = 1 + (1e-4 if dtype == "float32" else 1e-6)
    assert judge() == judge(primal=np.nan, exact=False) == []
    for changes, said in (
        ({"primal": result.primal * close}, "but the published model has"),
        ({"primal": 2 * machine.primal_at_zero()}, "but w = 0 has"),
        ({"dual": -1e-3}, "is negative"),
        ({"dual": result.primal * close}, "but a model has"),
        ({"dual": result.dual / 2}, "converged at a gap"),
    ):
        assert any(said in broken for broken in judge(**changes)), said


# ---- The study ----


def test_a_broken_claim_fails_the_study(monkeypatch, capsys):
    monkeypatch.setattr(campaign, "broken", lambda *_: ["the gap is negative"])
    assert command.main(["agreement", "--problems", "2"]) == 1
    assert "the gap is negative" in capsys.readouterr().out


def test_one_problem_is_replayed_with_all_its_figures(capsys):
    assert command.main(["agreement", "--problem", "3"]) == 0
    out = capsys.readouterr().out
    assert all(piece in out for piece in ("constructor ", "optimum ", "broken: no claim", "draw(0, 3).fit()"))


def test_runs_in_the_log_are_not_repeated(tmp_path, monkeypatch):
    about = {"first": 0, "problem": None, "problems": 3, "seed": 0, "estimators": (), "extreme": False, "limit": 1.0}
    scope = Scope(options=Namespace(**about, log=tmp_path / "runs.jsonl"))
    first = campaign.run(scope, print)
    monkeypatch.setattr(campaign, "run_problem", None)
    assert [run.constructor for run in campaign.run(scope, print).runs] == [run.constructor for run in first.runs]


def test_an_estimator_that_fails_is_told_as_a_broken_claim(monkeypatch):
    def fail(self, X, y, sample_weight=None):
        raise ValueError("no\nluck")

    problem = first_of(1, estimator="LaSVMClassifier")[0]
    monkeypatch.setattr(LaSVMClassifier, "fit", fail)
    run = campaign.run_problem(problem, None)
    assert (run.status, run.failures) == ("error", ["ValueError: no luck"])


@pytest.mark.parametrize(
    ("arguments", "said"), [(["--problem", "-1"], "must be at least 0"), (["--estimators", "SVC"], "choice: 'SVC'")]
)
def test_wrong_usage(arguments, said, capsys):
    with pytest.raises(SystemExit):
        command.main(["agreement", *arguments])
    assert said in capsys.readouterr().err
