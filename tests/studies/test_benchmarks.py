"""The yardstick of the benchmarks is itself right."""

import sys
from dataclasses import replace
from itertools import combinations
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from benchmarks import tables
from benchmarks.__main__ import COMMANDS
from benchmarks.binaryduals import sum_of_binary_duals
from benchmarks.contest import Settings
from benchmarks.kernel import command as kernel_command
from benchmarks.kernel import compare as kernel_compare
from benchmarks.kernel import costpath, memorylimit
from benchmarks.kernel import libraries as kernel_libraries
from benchmarks.kernel import problems as kernel_problems
from benchmarks.kernel import runs as kernel_runs
from benchmarks.kernel import tasks as kernel_tasks
from benchmarks.kernel.libraries.solver import TrainingSet
from benchmarks.kernel.objectives import pair_by_pair, side_by_side
from benchmarks.kernel.products import block_shapes, equal_blocks, time_products
from benchmarks.linear import objectives, sweep
from benchmarks.linear.command import EPOCH_COLUMNS, ROW_COLUMNS
from benchmarks.linear.compare import Row
from benchmarks.linear.libraries import OURS, SOLVERS
from benchmarks.linear.optimum import Optimum
from benchmarks.linear.problems import Problem
from benchmarks.linear.runs import LinearRun
from benchmarks.measure import ChildFailedError, TimeoutExceededError, thread_limits
from benchmarks.rbf import THREADS, Parameters
from benchmarks.rivals import installed, usable
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.svm import SVC

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
    for solver in SOLVERS.values():
        assert SOLVERS[OURS[solver.formulation]].formulation == solver.formulation
        assert list(solver.tolerances) == sorted(solver.tolerances, reverse=True)


class Recorded(sweep.Contestant):
    """A contestant whose suboptimality is its tolerance and whose runs below `limit` take too long."""

    def attempt(self, tolerance):
        self.log(tolerance)
        if tolerance < self.limit:
            return None
        run = LinearRun(1.0, 1.0, 0, 0, {}, W)
        return sweep.Attempt(tolerance, 1.0, tolerance, tolerance <= self.target, run)


def contestant(target, limit, log):
    solver = replace(SOLVERS["larank"], tolerances=(0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3))
    problem = Problem("two rows", X, y, X, y, 1.0)
    return Recorded(solver, problem, Optimum(1.0, 1.0, 1.0, None), None, target, limit, log)


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


def test_markdown_and_terminal_tables_show_the_same_rows():
    row = Row("news20", "crammer-singer", "x", 0.1, False, 1, 1, None, 2, 1e-3, 1, 0.5, 10**6, 10**6, 0)
    markdown = tables.as_markdown(ROW_COLUMNS, [row, row])
    assert markdown.count("0.1 (missed)") == 2
    assert tables.on_terminal("title", ROW_COLUMNS, [row, row]).row_count == 2


def test_a_table_without_rows_is_empty():
    assert tables.on_terminal("title", EPOCH_COLUMNS, []).row_count == 0


def test_commands_have_defaults_among_their_own_names():
    for command in COMMANDS:
        assert set(command.default_problems) <= set(command.problems)
        assert any(name.startswith("larank") for name in command.solvers) or not command.solvers


def test_a_library_that_is_not_installed_is_left_out_with_a_line():
    rivals = {"here": SimpleNamespace(requires="sklearn.svm"), "not": SimpleNamespace(requires="no_such.module")}
    lines: list[str] = []
    assert usable(rivals, rivals, lines.append) == ["here"]
    assert lines == ["not: left out, no_such.module is not installed"]


def test_every_library_gets_the_same_number_of_threads():
    assert set(thread_limits(2).values()) == {"2", "passive"}


@pytest.fixture(scope="module")
def blobs():
    points, labels = make_blobs(90, 4, centers=3, cluster_std=0.5, random_state=0)
    points = points.astype(np.float32)
    parameters = Parameters(C=10.0, gamma=0.1)
    return kernel_problems.Problem("blobs", points[:60], labels[:60], points[60:], labels[60:], parameters)


@pytest.mark.parametrize("name", kernel_libraries.SOLVERS)
def test_kernel_solver_separates_blobs_in_a_process_of_its_own(name, blobs):
    if not installed(kernel_libraries.SOLVERS[name]):
        pytest.skip(f"{kernel_libraries.SOLVERS[name].requires} is not installed")
    with kernel_runs.stored(blobs) as folder:
        run = kernel_runs.measure_fit(folder, name, 120.0)
    assert run.error == 0.0
    assert 3 <= run.support_patterns <= run.support_vectors
    assert run.support_patterns < len(blobs.y_train)
    assert min(run.wall, run.predict, run.peak) > 0
    assert (run.product is not None) == ("kernel_values" in run.extra)
    assert run.dual > 0
    assert (run.primal is not None) == (name == "larank-exact")


def test_larank_exact_is_measured_with_its_certificate(blobs):
    with kernel_runs.stored(blobs) as folder:
        run = kernel_runs.measure_fit(folder, "larank-exact", 120.0)
    assert run.objective == "Crammer-Singer"
    assert 0 <= run.primal - run.dual <= 1e-3 * run.primal
    assert run.extra["status"] == "converged"
    assert {"converge", "look"} <= set(run.extra["breakdown"])


@pytest.mark.parametrize("classes", [2, 4])
def test_sum_of_binary_duals_is_that_of_every_pair_alone(classes):
    points, labels = make_blobs(60, 3, centers=classes, cluster_std=2.0, random_state=1)
    model = SVC(C=2.0, gamma=0.1).fit(points, labels)
    columns = pair_by_pair(model.dual_coef_, labels[model.support_])
    together = sum_of_binary_duals(points[model.support_], columns, 0.1)
    alone = 0.0
    for a, b in combinations(range(classes), 2):
        of_pair = np.isin(labels, (a, b))
        machine = SVC(C=2.0, gamma=0.1, tol=1e-6).fit(points[of_pair], labels[of_pair])
        alone += sum_of_binary_duals(machine.support_vectors_, machine.dual_coef_.T, 0.1)
    assert together == pytest.approx(alone, rel=1e-4)
    np.testing.assert_allclose(columns.sum(axis=0), 0.0, atol=1e-8)  # each problem has a bias
    assert np.abs(columns).max() <= 2.0


def test_binary_dual_by_hand():
    # Two points so far apart that their kernel value is zero: each is free, at alpha = 1.
    X_far, coefficients = np.array([[0.0], [100.0]]), np.array([[1.0], [-1.0]])
    assert sum_of_binary_duals(X_far, coefficients, 1.0) == pytest.approx(2.0 - 0.5 * 2.0)


def test_one_versus_rest_machines_stand_side_by_side():
    points, labels = make_blobs(60, 3, centers=3, cluster_std=2.0, random_state=1)
    machines = [SVC(C=2.0, gamma=0.1).fit(points, labels == label) for label in range(3)]
    support, columns = side_by_side(machines)
    apart = sum(sum_of_binary_duals(one.support_vectors_, one.dual_coef_.T, 0.1) for one in machines)
    assert sum_of_binary_duals(points[support], columns, 0.1) == pytest.approx(apart)


@pytest.mark.parametrize("name", ["svc", "intelex", "libsvm"])
def test_one_versus_one_solvers_reach_the_same_objective(name, blobs):
    if not installed(kernel_libraries.SOLVERS[name]):
        pytest.skip(f"{kernel_libraries.SOLVERS[name].requires} is not installed")
    data = TrainingSet(blobs.X_train, blobs.y_train, blobs.parameters)
    reached = kernel_libraries.SOLVERS[name].fit(data, 1).objectives()
    expected = kernel_libraries.SOLVERS["svc"].fit(data, 1).objectives()
    assert reached.problem == "one-versus-one, summed"
    assert reached.dual == pytest.approx(expected.dual, rel=1e-3)


class FakeLaRankClassifier:
    """Trains an `SVC` and tells of it what larank would."""

    batch_size = 16

    def __init__(self, kernel, *, C, gamma, certify, n_jobs, random_state):
        assert n_jobs == THREADS
        self.model, self.certify = SVC(kernel=kernel, C=C, gamma=gamma), certify

    def fit(self, X, y):
        self.model.fit(X, y)
        self.result_ = SimpleNamespace(
            primal=3.0,
            dual=2.5,
            iterations=1.0,
            support_patterns=len(self.model.support_),
            support_vectors=2 * len(self.model.support_),
            kernel_values=2000,
            operations={"process_new": len(y)},
            breakdown={"product": 0.1, "map": 0.2, **({"certificate": 0.5} if self.certify else {})},
            history=(),
        )
        return self

    def predict(self, X):
        return self.model.predict(X)


@pytest.fixture
def fake_larank(monkeypatch):
    module = ModuleType("larank.kernel.larank")
    module.LaRankClassifier = FakeLaRankClassifier
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("fake_larank")
def test_larank_is_measured_without_the_certificate_and_with_the_bare_product(blobs):
    with kernel_runs.stored(blobs) as folder:
        request = {"folder": str(folder), "solver": "larank", "threads": THREADS}
        run = kernel_runs.KernelRun(**kernel_tasks.fit(request))
        assert (run.objective, run.primal) == ("Crammer-Singer", None)
        certificate = kernel_runs.Certificate(**kernel_tasks.certificate(request))
    assert run.error == 0.0
    assert run.product > 0.0
    assert run.extra["breakdown"] == {"product": 0.1, "map": 0.2}
    assert run.dual == 2.5
    assert certificate == kernel_runs.Certificate(seconds=0.5, primal=3.0, dual=2.5)


def grown(history, kernel_values):
    points = tuple(SimpleNamespace(iterations=passes, support_patterns=patterns) for passes, patterns in history)
    return SimpleNamespace(history=points, iterations=1.0, support_patterns=100, kernel_values=kernel_values)


def test_bare_products_follow_the_growth_of_the_support():
    # The middles of the batches are at 0.2, 0.6 and 0.9 of the pass, where 40, 80 and 95 patterns are known.
    result = grown([(0.2, 40), (0.4, 80), (0.6, 80), (1.0, 100)], kernel_values=40 * 40 + 40 * 80 + 20 * 95)
    assert block_shapes(result, 100, 40) == [(40, 40), (40, 80), (20, 95)]


def test_bare_products_are_stretched_to_the_number_of_kernel_values():
    for history in ([], [(0.5, 90)]):
        shapes = block_shapes(grown(history, kernel_values=1_000_000), 10_000, 256)
        assert sum(height * width for height, width in shapes) == pytest.approx(1_000_000, rel=0.02)


def test_a_run_without_kernel_values_has_no_products():
    assert block_shapes(grown([], kernel_values=0), 100, 40) == []


def test_equal_blocks_make_about_as_many_values():
    shapes = equal_blocks(1_000_000, 100)
    assert set(shapes) == {(256, 100)}
    assert sum(height * width for height, width in shapes) == pytest.approx(1_000_000, rel=0.02)
    assert equal_blocks(0, 100) == equal_blocks(100, 0) == []


def test_bare_products_may_be_wider_than_the_data():
    assert time_products(np.ones((5, 3), dtype=np.float32), [(4, 7), (5, 2), (3, 20), (6, 1)], threads=2).wall > 0.0


def kernel_run(train, predict, extra=None, product=None, objectives=("one-versus-one, summed", None, 6.0)):
    sizes = (5, 8)
    return kernel_runs.KernelRun(
        train, train, 10, 30, extra or {}, predict, predict, 0.1, *sizes, *objectives, product, product
    )


OUR_EXTRA = {"kernel_values": 10**6, "breakdown": {"product": 1.0, "steps": 2.0}, "operations": {}}


@pytest.fixture
def contest(blobs, monkeypatch):
    """Compares with these runs, which `measure_fit` gives one after the other, and these turns."""

    def run(results, **settings):
        turns: list[str] = []

        def measure_fit(folder, solver, limit):
            turns.append(solver)
            answer = results[solver].pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(kernel_problems, "load", lambda name: blobs)
        monkeypatch.setattr(kernel_compare, "measure_fit", measure_fit)
        monkeypatch.setattr(
            kernel_compare, "measure_certificate", lambda folder, limit: kernel_runs.Certificate(0.5, 9.0, 7.0)
        )
        chosen = {"repeats": 2, "once_above": 60.0, "limit": 100.0, "log": lambda line: None, **settings}
        return kernel_compare.compare(Settings(["blobs"], list(results), **chosen)), turns

    return run


def test_kernel_solvers_take_turns_and_the_best_of_each_counts(contest):
    ours = [kernel_run(2.0, 0.5, OUR_EXTRA, 1.0), kernel_run(1.0, 1.0, OUR_EXTRA, 2.0)]
    comparison, turns = contest({"larank": ours, "svc": [kernel_run(4.0, 5.0), kernel_run(5.0, 4.0)]})
    assert turns == ["larank", "svc", "larank", "svc"]
    larank, svc = comparison.rows
    assert (larank.train, larank.predict, larank.train_ratio, larank.train_over) == (1.0, 0.5, 1.0, {"svc": 0.25})
    assert (larank.primal, larank.dual, larank.relative_gap) == (9.0, 7.0, pytest.approx(2 / 9))
    assert (svc.train, svc.predict, svc.train_ratio, svc.predict_ratio) == (4.0, 4.0, 4.0, 8.0)
    assert (svc.primal, svc.dual, svc.relative_gap) == (None, 6.0, None)
    assert [(work.train, work.product) for work in comparison.work] == [(1.0, 1.0)]


def test_a_slow_kernel_solver_runs_once(contest):
    slow = [kernel_run(50.0, 11.0)]
    comparison, turns = contest({"svc": slow, "intelex": [kernel_run(1.0, 1.0) for _ in range(3)]}, repeats=3)
    assert turns == ["svc", "intelex", "intelex", "intelex"]
    assert [row.runs for row in comparison.rows] == [1, 3]
    assert [row.train_ratio for row in comparison.rows] == [None, None]


def test_a_kernel_solver_that_fails_is_named_with_the_reason(contest):
    comparison, turns = contest(
        {"svc": [TimeoutExceededError("stopped after 100 s")], "libsvm": [ChildFailedError("trace\nKilled\n")]}
    )
    assert turns == ["svc", "libsvm"]
    assert [(gone.solver, gone.reason) for gone in comparison.unfinished] == [
        ("svc", "stopped after 100 s"),
        ("libsvm", "Killed"),
    ]
    assert comparison.rows == []


def test_memory_of_a_solver_with_its_own_copy_leaves_out_what_it_was_given(contest):
    comparison, _ = contest({name: [kernel_run(1.0, 1.0)] * 2 for name in ("svc", "libsvm")})
    assert [(row.peak, row.peak_without_input) for row in comparison.rows] == [(30, 30), (30, 20)]


def test_kernel_tables_show_ratio_product_and_every_part(contest):
    comparison, _ = contest({"larank": [kernel_run(3.0, 0.5, OUR_EXTRA, 1.5)]}, repeats=1)
    assert "| blobs | larank | 1 | 3.000 | 1.00 | - | - |" in tables.as_markdown(
        kernel_command.ROW_COLUMNS, comparison.rows
    )
    work = tables.as_markdown(kernel_command.WORK_COLUMNS, comparison.work)
    assert "| blobs | larank | 3.000 | 1.0 | 1.500 | 2.00 | 2.00 | 0.500 |" in work
    parts = tables.as_markdown(tables.breakdown_columns(comparison.work, "solver"), comparison.work)
    assert parts.splitlines()[0] == "| problem | solver | product | steps | train s |"
    assert "| blobs | larank | 1.000 | 2.000 | 3.000 |" in parts


def test_objectives_are_shown_with_the_problem_they_are_of(contest):
    exact = kernel_run(2.0, 0.5, OUR_EXTRA, 1.5, ("Crammer-Singer", 8.0, 7.0))
    comparison, _ = contest({"larank-exact": [exact], "svc": [kernel_run(4.0, 5.0)]}, repeats=1)
    shown = tables.as_markdown(kernel_command.OBJECTIVE_COLUMNS, comparison.rows)
    assert "| blobs | larank-exact | Crammer-Singer | 8.00 | 7.00 | 1.2e-01 |" in shown
    assert "| blobs | svc | one-versus-one, summed | - | 6.00 | - |" in shown
    assert [(work.solver, work.certificate) for work in comparison.work] == [("larank-exact", None)]


def test_the_exact_solver_is_judged_by_the_rivals_of_the_same_run(contest):
    runs = {"larank-exact": 2.0, "svc": 4.0, "intelex": 2.5}
    results = {
        name: [kernel_run(seconds, 1.0, OUR_EXTRA if name == "larank-exact" else None)]
        for name, seconds in runs.items()
    }
    comparison, _ = contest(results, repeats=1)
    assert kernel_command.judged(comparison.rows) == []
    rows = [replace(row, problem="mnist") for row in comparison.rows]
    assert kernel_command.judged(rows) == [
        "mnist: larank-exact takes 0.500 of svc's training time; bar 0.125, missed",
        "mnist: larank-exact takes 0.800 of intelex's training time; bar 0.75, missed",
    ]
    rows = [replace(row, problem="letter") for row in comparison.rows]
    assert kernel_command.judged(rows) == ["letter: larank-exact takes 0.500 of svc's training time; bar 1.5, met"]


def test_exact_solver_under_limits_keeps_the_objective(blobs, monkeypatch):
    monkeypatch.setattr(kernel_problems, "load", lambda name: blobs)
    said: list[str] = []
    rows, failed = memorylimit.compare_limits("blobs", [1e7, 1e9], 1, 120.0, said.append)
    assert failed == []
    assert len(said) == 2
    assert [row.training for row in rows] == ["limit 10 MB", "limit 1000 MB"]
    assert rows[1].ratio == 1.0
    assert rows[0].dual == pytest.approx(rows[1].dual, rel=1e-3)
    assert all(0 <= row.relative_gap <= 1e-3 and row.peak >= 0 for row in rows)
    assert "| blobs | limit 10 MB | 1 |" in tables.as_markdown(memorylimit.COLUMNS, rows)
    assert "| blobs | limit 10 MB |" in tables.as_markdown(tables.breakdown_columns(rows, "training"), rows)


def test_a_limit_that_is_too_small_is_named(blobs, monkeypatch):
    monkeypatch.setattr(kernel_problems, "load", lambda name: blobs)
    monkeypatch.setattr(memorylimit, "measure_limited", fails)
    rows, failed = memorylimit.compare_limits("blobs", [1e6], 2, 120.0, lambda line: None)
    assert rows == []
    assert failed == ["blobs: limit 1 MB: memory_limit must be larger"]


def fails(*arguments):
    raise ChildFailedError("trace\nmemory_limit must be larger\n")


def test_a_path_ends_where_a_fit_at_its_largest_cost_does(blobs, monkeypatch):
    monkeypatch.setattr(kernel_problems, "load", lambda name: blobs)
    rows, steps, failed = costpath.compare_path("blobs", (3, 0.1, 10.0), 1, 120.0, lambda line: None)
    assert failed == []
    assert [step.C for step in steps] == pytest.approx([1.0, 10.0, 100.0])
    path, fit = rows
    assert (path.training, fit.training) == ("path of 3 C, 1 .. 100", "fit from scratch, C = 100")
    assert fit.ratio == 1.0
    assert path.dual == pytest.approx(fit.dual, rel=1e-3)
    assert "| blobs | path of 3 C, 1 .. 100 | 1 |" in tables.as_markdown(costpath.COLUMNS, rows)
    assert "| blobs | 10 |" in tables.as_markdown(costpath.STEP_COLUMNS, steps)


def test_costs_of_a_path_are_a_geometric_series():
    assert costpath.costs_around(10.0, 3, 0.1, 10.0) == pytest.approx([1.0, 10.0, 100.0])
