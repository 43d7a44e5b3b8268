"""The yardsticks of the comparisons of linear solvers, dual, primal and stochastic, are right."""

from dataclasses import replace

import numpy as np
import pytest
from at_hand import solvers
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from larank import PrimalMulticlassSVC
from studies.rivals import linear, linearruns, objectives, primal, sgd, streamtasks
from studies.rivals.contest import Entrant
from studies.rivals.libraries import GRADIENT, LINEAR, LOGISTIC, vowpal
from studies.rivals.linearruns import LinearRun, Problem
from studies.rivals.optimum import OURS, Optimum
from studies.rivals.sgd import GradientProblem, least_primal
from studies.study import Scope

pytestmark = pytest.mark.usefixtures("in_this_process")

X = sparse.csr_matrix([[1.0, 0.0], [0.0, 2.0]])
y = np.array([0, 2])
W = np.array([[0.5, 0.0], [0.0, 0.25], [0.0, 1.0]])


# ---- Objectives ----


def test_objectives_and_errors_by_hand():
    # Scores (0.5, 0, 0) and (0, 0.5, 2): losses 0.5 and 0; hinge losses 0.5 + 1 + 1 and 1 + 1.5 + 0.
    assert objectives.primal("crammer-singer", W, X, y, 3.0) == pytest.approx(0.5 * 1.3125 + 3.0 * 0.5)
    assert objectives.primal("one-vs-rest", W, X, y, 2.0) == pytest.approx(0.5 * 1.3125 + 2.0 * 5.0)
    assert objectives.error(W, X, np.array([0, 1])) == 0.5
    # Two classes with margins 0.5 and -1: short of one by 0.5 and 2.
    small = GradientProblem("two", np.array([[1.0], [2.0]]), np.array([1, -1]), 0.5)
    assert sgd.primal(small, "hinge", np.array([0.5])) == pytest.approx(0.0625 + 1.25)
    assert sgd.primal(small, "squared_hinge", np.array([0.5])) == pytest.approx(0.0625 + (0.25 + 4) / 2)


def test_the_logistic_objective_by_hand_does_not_regularise_the_biases():
    # Scores 1 + 5 and 2 + 4, equal for the only example: a loss of log 2.
    W = np.array([[1.0, 5.0], [2.0, 4.0]])
    assert objectives.multinomial(W, np.array([[1.0]]), np.array([0]), 10.0) == pytest.approx(2.5 + 10 * np.log(2))


def test_a_solution_below_the_bound_is_an_error():
    with pytest.raises(ArithmeticError, match="the bound is wrong"):
        Optimum(C=1.0, lower=10.0, upper=10.1, confirmed=None).check(9.9, "somebody")


def test_every_solver_has_a_reference_of_its_own_formulation():
    for solver in LINEAR.values():
        assert LINEAR[OURS[solver.formulation]].formulation == solver.formulation
        assert list(solver.tolerances) == sorted(solver.tolerances, reverse=True)


# ---- The loosest tolerance ----


class Recorded(linear.Contestant):
    """A contestant whose suboptimality is its tolerance and whose runs below `limit` take too long."""

    def attempt(self, tolerance):
        self.say(tolerance)
        if tolerance < self.limit:
            return None
        run = LinearRun(1.0, 1.0, 0, 0, {}, W)
        return linear.Attempt(tolerance, 1.0, tolerance, tolerance <= self.target, [run])


def swept(target, limit):
    tried: list[float] = []
    solver = replace(LINEAR["larank"], tolerances=(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3))
    problem, optimum = Problem("two rows", X, y, X, y, 1.0), Optimum(1.0, 1.0, 1.0, None)
    return linear.sweep(Recorded(Entrant("larank"), solver, problem, optimum, None, target, limit, tried.append)), tried


@pytest.mark.parametrize("target", [0.9, 0.8, 0.7, 0.6, 0.55, 0.4, 0.3])
def test_sweep_finds_the_loosest_tolerance_that_meets_the_target(target):
    ended, _ = swept(target, 0.0)
    assert ended.reached
    assert target - 0.051 <= ended.tolerance <= target


def test_sweep_ends_at_the_tightest_run_within_the_time_limit_or_with_nothing():
    ended, tried = swept(0.1, 0.75)
    assert (ended.reached, ended.tolerance, tried) == (False, 0.8, [0.9, 0.6, 0.8, 0.7])
    assert swept(0.1, 1.0)[0] is None


def test_the_largest_tolerance_that_is_enough_counts():
    reached = {1e-1: 12.0, 1e-2: 10.5, 1e-3: 10.0, 1e-4: 9.9}
    assert [primal.enough(reached, target) for target in (10.5, 10.0, 9.0)] == [1e-2, 1e-3, None]


# ---- Solvers ----


@pytest.mark.parametrize("name", solvers(LINEAR))
def test_a_linear_solver_finds_the_corners(name):
    random, labels = np.random.default_rng(0), np.arange(60) % 3
    points = sparse.csr_matrix(np.eye(3)[labels] + 0.1 * random.normal(size=(60, 3)))
    with linearruns.stored(Problem("corners", points, labels, points, labels, 1.0), "float64") as folder:
        run = linearruns.measure_fit(folder, Entrant(name), 1e-3, 120.0)
    assert run.W.shape == (3, 3)
    assert objectives.error(run.W, points, labels) == 0.0
    assert run.wall > 0
    assert (run.dual is not None) == LINEAR[name].is_ours


def points_of_three(form=np.asarray):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 4)).astype(np.float32)
    y = np.argmax(X[:, :3] + random.normal(size=(300, 3)), axis=1)
    return primal.Problem("points", form(X), y, 1.0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_the_objective_is_the_one_our_certificate_is_about_and_the_rivals_minimise_it(form):
    points = points_of_three(form)
    ours = PrimalMulticlassSVC(tol=1e-8).fit(points.X.astype(np.float64), points.y)
    rival = LogisticRegression(tol=1e-8, max_iter=1000).fit(points.X, points.y)
    reached = [points.objective(np.column_stack([model.coef_, model.intercept_])) for model in (ours, rival)]
    assert reached[0] == pytest.approx(ours.result_.primal, rel=1e-9)
    assert reached[1] == pytest.approx(reached[0], rel=1e-5)
    assert reached[1] >= ours.result_.dual * (1 - 1e-9)


@pytest.mark.parametrize("name", LOGISTIC)
def test_a_logistic_solver_comes_to_the_optimum_with_its_biases(name):
    points = points_of_three()
    with primal.stored(points) as folder:
        run = primal.measure_fit(folder, points.form, primal.Try(Entrant(name), 1e-4), 120.0)
    assert run.W.shape == (3, 5)
    best = PrimalMulticlassSVC(tol=1e-6).fit(points.X, points.y).result_.dual
    assert best * (1 - 1e-6) <= points.objective(run.W) <= best * (1 + 1e-3)
    assert run.extra["iterations"] >= 1


@pytest.fixture(scope="module")
def two_signs():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 6)).astype(np.float32)
    return GradientProblem("points", X, np.where(X[:, 0] - X[:, 1] + random.normal(size=400) > 0, 1, -1), 1e-2)


def trained(points, name, effort, loss):
    with sgd.stored(points, as_text=name == sgd.VOWPAL) as folder:
        entrant = Entrant(name, "one-vs-rest")
        return sgd.measure_fit(folder, entrant, effort, loss, points.alpha, 120.0)


@pytest.mark.parametrize("loss", sgd.LOSSES)
def test_the_optimum_is_below_every_solution_and_close_to_a_good_one(loss, two_signs):
    least, run = least_primal(two_signs, loss), trained(two_signs, "larank-asgd", 200, loss)
    assert least <= sgd.primal(two_signs, loss, run.W[0]) <= 1.01 * least


@pytest.mark.parametrize("name", solvers(GRADIENT))
def test_a_gradient_solver_minimises_the_common_primal(name, two_signs):
    loss = GRADIENT[name].losses[0]
    run = trained(two_signs, name, 50 if GRADIENT[name].counts_epochs else 1e-3, loss)
    assert run.W.shape == (1, 6)
    if name != sgd.VOWPAL:  # whose learning rate is one for other data
        assert sgd.primal(two_signs, loss, run.W[0]) < 1.1 * least_primal(two_signs, loss)
    assert np.mean(np.sign(two_signs.X @ run.W[0]) == two_signs.y) > 0.75
    assert run.wall > 0


# ---- Problems ----


def test_text_of_vowpal_wabbit_has_no_zeros_and_numbers_classes_from_one(tmp_path):
    X = np.array([[0.0, 0.5], [1.5, 0.0], [0.0, 0.0]], dtype=np.float32)
    vowpal.write(tmp_path / "two", X, np.array([1, -1, 1]))
    assert (tmp_path / "two").read_text() == "1 | 1:0.5\n-1 | 0:1.5\n1 | \n"
    vowpal.write(tmp_path / "three", sparse.csr_matrix(X), np.array([0, 1, 2]))
    assert (tmp_path / "three").read_text() == "1 | 1:0.5\n2 | 0:1.5\n3 | \n"


def test_an_endless_stream_has_as_many_rows_as_it_is_asked_for():
    found = list(streamtasks.blocks(250_000))
    assert [len(y) for _, y in found] == [100_000, 100_000, 50_000]
    assert all(X.dtype == np.float32 for X, _ in found)


def test_every_problem_has_a_source_and_a_weight():
    assert {sgd.source(name) for name in sgd.ALPHAS} == {"generated", "covtype", "news20"}


# ---- Claims ----


def test_bars_are_judged_by_precision():
    def row(problem, solver, over):
        figures = (0.1, True, 1, 1, over, 2, 1e-3, 1, 0.5, 10**6, 10**6, 0)
        return linear.Row(problem, "crammer-singer", solver, "float64", *figures)

    rows = [row("mnist", "larank", {"float64": 1.0}), row("mnist", "liblinear-s4", {"float64": 5.0, "float32": 3.0})]
    told = list(map(str, linear.judged(rows, [linear.Epoch("covtype", "float32", 5.0, 1.0)])))
    assert [line.rsplit(", ", 1)[1] for line in told] == ["met", "missed", "missed"]
    for line, word in zip(told, ("float64", "float32", "5.00 bare products"), strict=True):
        assert word in line


def row(solver, wall, ours, tolerance=1e-4):
    found = (1e-3, ours, ours, 9.9) if ours is not None else (None, None, None, None)
    return primal.Row("mnist", solver, tolerance, 10, 3, wall, wall, 10.0, *found)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row("lbfgs", 10.0, 2.0), row("newton-cg", 5.0, 2.0)], "0.400 (0.400 in CPU seconds) of newton-cg's time"),
        ([row("lbfgs", 3.0, 2.0), row("newton-cg", 5.0, 2.0)], "bar 0.5, missed"),
        ([row("lbfgs", 3.0, 1.0), row("newton-cg", 0.1, 1.0, 1e-2)], "bar 0.5, met"),
        ([row("lbfgs", 3.0, None)], "larank does not come to the primal of lbfgs at tol=0.0001"),
        ([row("lbfgs", 3.0, 1.0, 1e-2)], "no rival came to its default tolerance"),
    ],
)
def test_the_bar_is_against_the_faster_rival_at_its_default_tolerance(rows, said):
    (line,) = map(str, primal.judged(rows))
    assert said in line


def test_the_share_of_passes_counts_evaluations_and_products():
    bound = primal.Bound("mnist", 1e-3, 200.0, 10, 40, 0.1, 0.05, 0.04, 6.0, {})
    assert bound.share == pytest.approx(0.5)
    assert bound.gigabytes == pytest.approx(4.0)


def test_there_must_be_a_rival():
    with pytest.raises(ValueError, match="--solvers must have larank and a rival of it, got larank"):
        primal.run(Scope(datasets=("letter",), solvers=(primal.OURS,)), lambda line: None)


def test_our_best_is_compared_with_the_best_rival_that_is_there():
    def arrival(solver, wall, reached=True):
        return sgd.Arrival("alpha", "hinge", solver, 5, reached, wall, wall, 0.3, 0.005, 0.0)

    rows = [arrival("larank-asgd", 0.3), arrival("larank-sgdqn", 0.1, False), arrival("sgdclassifier", 1.0)]
    (line,) = map(str, sgd.judged_arrivals([*rows, arrival("liblinear-s3", 0.5, False)]))
    assert "larank-asgd is within 1% of the optimum in 0.300 of sgdclassifier's time" in line
    assert line.endswith("bar 0.5, met")
    (line,) = map(str, sgd.judged_arrivals(rows[:2]))
    assert line.endswith("no rival came within 1% of the optimum; bar 0.5, undecided")
