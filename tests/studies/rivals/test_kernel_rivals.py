"""The yardstick of the kernel comparisons is itself right."""

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.svm import SVC

from studies import tables
from studies.rivals import kernel, kernels, memory, path, search
from studies.rivals.contest import Entrant
from studies.rivals.libraries import KERNEL, installed
from studies.rivals.libraries.solver import DENSE, TrainingSet
from studies.rivals.objectives import pair_by_pair, side_by_side, sum_of_binary_duals
from studies.rivals.products import block_shapes, equal_blocks, time_products
from studies.study import Scope


@pytest.fixture(scope="module")
def blobs():
    points, labels = make_blobs(90, 4, centers=3, cluster_std=0.5, random_state=0)
    points = points.astype(np.float32)
    parts = {DENSE: points[:60]}, labels[:60], {DENSE: points[60:]}, labels[60:]
    return kernels.Problem("blobs", *parts, C=10.0, gamma=0.1, dtype="float32")


@pytest.fixture
def only_blobs(blobs, monkeypatch):
    """Whatever problem is asked for, it is this one."""
    monkeypatch.setattr(kernels, "load", lambda kind, name, quick: blobs)


def skip_without(name):
    if not installed(KERNEL[name]):
        pytest.skip(f"{KERNEL[name].requires} is not installed")


def measured(problem, name, **details):
    with kernels.stored(problem) as folder:
        return kernels.measure_fit(folder, "kernel", Entrant(name, DENSE), 120.0, **details)


@pytest.mark.parametrize("name", KERNEL)
def test_kernel_solver_separates_blobs_in_a_process_of_its_own(name, blobs):
    skip_without(name)
    run = measured(blobs, name, products=True)
    assert run.error == 0.0
    assert 3 <= run.support_patterns <= run.support_vectors
    assert run.support_patterns < len(blobs.y_train)
    assert min(run.wall, run.predict, run.peak) > 0
    assert (run.product is not None) == ("kernel_values" in run.extra)
    assert run.dual > 0
    assert (run.primal is not None) == (name == "larank-exact")


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
    skip_without(name)
    data = TrainingSet(blobs.X_train[DENSE], blobs.y_train, blobs.C, blobs.gamma)
    reached, expected = (KERNEL[solver].fit(data, 1).objectives() for solver in (name, "svc"))
    assert reached.problem == "one-versus-one, summed"
    assert reached.dual == pytest.approx(expected.dual, rel=1e-3)


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
    return kernels.KernelRun(
        train, train, 10, 30, extra or {}, predict, predict, 0.1, 5, 8, *objectives, product, product
    )


OUR_EXTRA = {"kernel_values": 10**6, "breakdown": {"product": 1.0, "steps": 2.0}, "operations": {}}


@pytest.fixture
def contest(only_blobs, monkeypatch):
    """Compares with these runs, which `measure_fit` gives one after the other, and these turns."""

    def run(results, **settings):
        turns: list[str] = []

        def measure_fit(folder, kind, entrant, limit, **details):
            turns.append(entrant.name)
            answer = results[entrant.name].pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr("studies.rivals.libraries.installed", lambda solver: True)
        monkeypatch.setattr(kernels, "measure_fit", measure_fit)
        monkeypatch.setattr(kernel, "measure_certificate", lambda *asked: kernels.Certificate(0.5, 9.0, 7.0))
        solvers = [name for name in results if name in KERNEL]
        chosen = {"repeats": 2, "limit": 100.0, **settings}
        return kernel.compare(Scope(datasets=["blobs"], solvers=solvers, **chosen), lambda line: None).rows, turns

    return run


def test_kernel_solvers_take_turns_and_the_best_of_each_counts(contest):
    ours = [kernel_run(2.0, 0.5, OUR_EXTRA, 1.0), kernel_run(1.0, 1.0, OUR_EXTRA, 2.0)]
    found, turns = contest({"larank": ours, "svc": [kernel_run(4.0, 5.0), kernel_run(5.0, 4.0)]})
    assert turns == ["larank", "svc", "larank", "svc"]
    larank, svc = found["rows"]
    assert (larank.train, larank.predict, larank.train_ratio, larank.train_over) == (1.0, 0.5, 1.0, {"svc": 0.25})
    assert (larank.primal, larank.dual, larank.relative_gap) == (9.0, 7.0, pytest.approx(2 / 9))
    assert (svc.train, svc.predict, svc.train_ratio, svc.predict_ratio) == (4.0, 4.0, 4.0, 8.0)
    assert (svc.primal, svc.dual, svc.relative_gap) == (None, 6.0, None)
    assert [(work.train, work.product) for work in found["work"]] == [(1.0, 1.0)]


def test_memory_of_a_solver_with_its_own_copy_leaves_out_what_it_was_given(contest):
    found, _ = contest({name: [kernel_run(1.0, 1.0)] * 2 for name in ("svc", "libsvm")})
    assert [(row.peak, row.peak_without_input) for row in found["rows"]] == [(30, 30), (30, 20)]


def test_the_exact_solver_is_judged_by_the_rivals_of_the_same_run(contest):
    runs = {"larank-exact": 2.0, "svc": 4.0, "intelex": 2.5}
    results = {
        name: [kernel_run(seconds, 1.0, OUR_EXTRA if name == "larank-exact" else None)]
        for name, seconds in runs.items()
    }
    found, _ = contest(results, repeats=1)
    assert kernel.judged(found["rows"]) == []
    rows = [replace(row, problem="mnist") for row in found["rows"]]
    assert [str(claim) for claim in kernel.judged(rows)] == [
        "mnist: larank-exact takes 0.800 of intelex's training time; bar 0.5, missed",
    ]
    rows = [replace(row, problem="letter") for row in found["rows"]]
    assert [str(claim) for claim in kernel.judged(rows)] == [
        "letter: larank-exact takes 0.500 of svc's training time; bar 1.2, met"
    ]


@pytest.mark.usefixtures("only_blobs")
def test_exact_solver_under_limits_keeps_the_objective():
    said: list[str] = []
    rows = memory.compare([1e7, 1e9], Scope(datasets=["blobs"], repeats=1), said.append).rows["rows"]
    assert len(said) == 2
    assert [row.training for row in rows] == ["limit 10 MB", "limit 1000 MB"]
    assert rows[1].ratio == 1.0
    assert rows[0].dual == pytest.approx(rows[1].dual, rel=1e-3)
    assert all(0 <= row.relative_gap <= 1e-3 and row.peak >= 0 for row in rows)
    assert "| blobs | limit 10 MB | 1 |" in tables.of_rows("", rows, memory.COLUMNS).as_markdown()
    assert "| blobs | limit 10 MB |" in tables.of_breakdowns("", rows, "training").as_markdown()


@pytest.mark.usefixtures("only_blobs")
def test_a_limit_that_is_too_small_is_named():
    found = memory.compare([1.0], Scope(datasets=["blobs"], repeats=2), lambda line: None)
    assert found.rows["rows"] == []
    (line,) = found.to_lines()
    assert line.startswith("blobs: limit 1e-06 MB: ")
    assert "memory_limit" in line


@pytest.mark.usefixtures("only_blobs")
def test_a_path_ends_where_a_fit_at_its_largest_cost_does():
    found = path.compare((3, 0.1, 10.0), Scope(datasets=["blobs"], repeats=1), lambda line: None)
    assert found.to_lines() == []
    assert [step.C for step in found.rows["steps"]] == pytest.approx([1.0, 10.0, 100.0])
    whole, *fits = found.rows["rows"]
    fit = fits[-1]
    assert (whole.training, fit.training) == ("path of 3 C, 1 .. 100", "fit from scratch, C = 100")
    assert np.mean([each.ratio for each in fits]) == pytest.approx(1.0)
    assert max(each.ratio_to_most for each in fits) == 1.0
    assert whole.dual == pytest.approx(fit.dual, rel=1e-3)
    assert "| blobs | path of 3 C, 1 .. 100 | 1 |" in tables.of_rows("", [whole, fit]).as_markdown()
    assert "| blobs | 10 |" in tables.of_rows("", found.rows["steps"]).as_markdown()


@pytest.mark.usefixtures("only_blobs")
def test_a_search_on_shared_values_finds_what_a_grid_search_does():
    found = search.compare((3, 2, 3), Scope(datasets=["blobs"], repeats=1), lambda line: None)
    assert found.to_lines() == []
    shared, grid = found.rows["rows"]
    assert (shared.search, grid.search) == (search.SHARED, search.GRID)
    assert grid.ratio == 1.0
    assert shared.score == pytest.approx(grid.score, abs=0.02)
    assert shared.largest_difference <= 0.05
    assert f"| blobs | {search.SHARED} | 1 |" in tables.of_rows("", [shared, grid]).as_markdown()


def test_costs_of_a_path_are_a_geometric_series():
    assert path.costs_around(10.0, 3, 0.1, 10.0) == pytest.approx([1.0, 10.0, 100.0])
