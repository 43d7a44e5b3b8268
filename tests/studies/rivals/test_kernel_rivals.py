"""The yardsticks of the comparisons of kernel solvers, with many classes and with two, are right."""

from argparse import Namespace
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from at_hand import solvers
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from studies import storage, tables
from studies.measure import ChildFailedError
from studies.rivals import active, binary, kernel, kernels, search
from studies.rivals.contest import Entrant, judge
from studies.rivals.libraries import BINARY, KERNEL, LEARNERS, scikit_learn
from studies.rivals.libraries.solver import CSR, DENSE, TrainingSet
from studies.rivals.objectives import pair_by_pair, side_by_side, sum_of_binary_duals
from studies.rivals.products import block_shapes, equal_blocks, time_products
from studies.study import Scope

pytestmark = pytest.mark.usefixtures("in_this_process")

BLOBS = Scope(datasets=["blobs"], repeats=1)
ONE_VS_ONE = "one-versus-one, summed", None, 6.0


def blobs(classes, spread, forms, dtype=None):
    """Return 80 training and 40 test points of this many classes, those of two numbered -1 and 1."""
    points, labels = make_blobs(120, 4, centers=classes, cluster_std=spread, random_state=0)
    points, labels = points.astype(np.float32), 2 * labels - 1 if classes == 2 else labels
    parts = ({form: kernels.in_form(part, form) for form in forms} for part in (points[:80], points[80:]))
    return kernels.Problem("blobs", next(parts), labels[:80], next(parts), labels[80:], 10.0, 0.1, dtype)


@pytest.fixture(scope="module")
def three():
    return blobs(3, 0.5, (DENSE,), "float32")


@pytest.fixture(scope="module")
def two():
    return blobs(2, 0.7, (DENSE, CSR))


@pytest.fixture
def only_blobs(two, three, monkeypatch):
    """Whatever problem is asked for, it is one of these, and all libraries are installed."""
    monkeypatch.setattr(kernels, "load", lambda kind, name, quick: three if kind == "kernel" else two)
    monkeypatch.setattr("studies.rivals.libraries.installed", lambda solver: True)


@pytest.fixture
def runs(only_blobs, monkeypatch):
    """Have entrants measured by runs that are given; returns who is asked, in turns."""

    def replaced(results):
        turns = []

        def measure_fit(folder, kind, entrant, limit, **details):
            turns.append(str(entrant))
            answer = results[str(entrant)].pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(kernels, "measure_fit", measure_fit)
        return turns

    return replaced


def run_of(train, predict=0.5, extra=None, product=None, objectives=ONE_VS_ONE):
    figures = train, train, 10, 30, extra or {}, predict, predict, 0.1, 5, 8
    return kernels.KernelRun(*figures, *objectives, product, product)


OUR_EXTRA = {"kernel_values": 10**6, "breakdown": {"product": 1.0, "steps": 2.0}, "operations": {}}


# ---- Problems ----


def test_matrices_are_stored_and_read_as_they_were():
    X = sparse.random(7, 5, 0.3, "csr", dtype=np.float32, random_state=0)
    with storage.stored("test", {"dense": X.toarray(), "csr": X}) as folder:
        assert np.array_equal(storage.matrix(folder, "dense"), X.toarray())
        found = storage.matrix(folder, "csr")
    assert (sparse.issparse(found), found.dtype) == (True, np.float32)
    assert np.array_equal(found.toarray(), X.toarray())


def test_images_as_csr_have_the_kernel_values_they_had():
    X = np.where(np.arange(60).reshape(6, 10) % 3, -1.0, 0.25).astype(np.float32)
    moved = kernels.in_form(X, CSR)
    assert moved.nnz == np.count_nonzero(X > -1)
    np.testing.assert_allclose(rbf_kernel(moved, gamma=0.3), rbf_kernel(X, gamma=0.3), rtol=1e-6)
    assert kernels.in_form(X, DENSE) is X


def test_solvers_are_given_the_forms_that_may_be_their_fastest(two):
    empty = sparse.random(80, 4, 0.03, "csr", dtype=np.float32, random_state=0)
    nearly_empty = replace(two, X_train={DENSE: empty.toarray(), CSR: empty})
    dense_alone = replace(two, X_train={DENSE: two.X_train[DENSE]})
    problems = two, nearly_empty, dense_alone
    assert {name: [list(solver.forms(one)) for one in problems] for name, solver in BINARY.items()} == {
        "larank": [[DENSE, CSR], [DENSE, CSR], [DENSE]],
        "intelex": [[DENSE, CSR], [DENSE, CSR], [DENSE]],
        "svc": [[DENSE, CSR], [CSR], [DENSE]],
        "libsvm": [[CSR], [CSR], [DENSE]],
    }


# ---- Objectives ----


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


# ---- Solvers ----


@pytest.mark.parametrize("name", solvers(KERNEL))
def test_kernel_solver_separates_blobs(name, three):
    with kernels.stored(three) as folder:
        run = kernels.measure_fit(folder, "kernel", Entrant(name, DENSE), 120.0, products=True)
    assert run.error == 0.0
    assert 3 <= run.support_patterns <= min(run.support_vectors, len(three.y_train) - 1)
    assert min(run.wall, run.predict, run.dual) > 0
    assert (run.product is not None) == ("kernel_values" in run.extra)
    assert (run.primal is not None) == (name == "larank-exact")


@pytest.mark.parametrize("name", solvers(KERNEL, ["intelex", "libsvm"]))
def test_one_versus_one_solvers_reach_the_same_objective(name, three):
    data = TrainingSet(three.X_train[DENSE], three.y_train, three.C, three.gamma)
    reached, expected = (KERNEL[solver].fit(data, 1).objectives() for solver in (name, "svc"))
    assert reached.problem == expected.problem == ONE_VS_ONE[0]
    assert reached.dual == pytest.approx(expected.dual, rel=1e-3)


@pytest.mark.parametrize("name", solvers(BINARY))
@pytest.mark.parametrize("form", [DENSE, CSR])
def test_binary_solvers_reach_the_same_dual(name, form, two):
    data = TrainingSet(two.X_train[form].astype(BINARY[name].dtype), two.y_train, two.C, two.gamma)
    fitted = BINARY[name].fit(data, 1)
    reference = BINARY["svc"].fit(replace(data, X=two.X_train[DENSE].astype(np.float64)), 1)
    reached, expected = fitted.objectives(), reference.objectives()
    assert reached.problem == expected.problem == "binary, with a bias"
    assert reached.dual == pytest.approx(expected.dual, rel=2e-3)
    assert fitted.support_vectors == pytest.approx(reference.support_vectors, abs=3)
    assert np.array_equal(fitted.predict(two.X_test[form]), two.y_test)


# ---- Bare products ----


def grown(history, kernel_values):
    points = tuple(SimpleNamespace(iterations=passes, support_patterns=patterns) for passes, patterns in history)
    return SimpleNamespace(history=points, iterations=1.0, support_patterns=100, kernel_values=kernel_values)


def test_bare_products_follow_the_growth_of_the_support():
    # The middles of the batches are at 0.2, 0.6 and 0.9 of the pass, where 40, 80 and 95 patterns are known.
    result = grown([(0.2, 40), (0.4, 80), (0.6, 80), (1.0, 100)], kernel_values=40 * 40 + 40 * 80 + 20 * 95)
    assert block_shapes(result, 100, 40) == [(40, 40), (40, 80), (20, 95)]
    assert block_shapes(grown([], kernel_values=0), 100, 40) == []


@pytest.mark.parametrize(
    "shapes",
    [
        block_shapes(grown([], kernel_values=1_000_000), 10_000, 256),
        block_shapes(grown([(0.5, 90)], kernel_values=1_000_000), 10_000, 256),
        equal_blocks(1_000_000, 100),
    ],
)
def test_bare_products_make_about_as_many_kernel_values(shapes):
    assert sum(height * width for height, width in shapes) == pytest.approx(1_000_000, rel=0.02)


def test_equal_blocks_are_of_256_rows_with_all_patterns_and_may_be_wider_than_the_data():
    assert set(equal_blocks(1_000_000, 100)) == {(256, 100)}
    assert equal_blocks(0, 100) == equal_blocks(100, 0) == []
    assert time_products(np.ones((5, 3), dtype=np.float32), [(4, 7), (5, 2), (3, 20), (6, 1)], threads=2).wall > 0.0


# ---- Many classes ----


@pytest.fixture
def contest(runs, monkeypatch):
    """Compares with these runs of dense solvers."""

    def compared(repeats, **results):
        monkeypatch.setattr(kernel, "measure_certificate", lambda *asked: kernels.Certificate(0.5, 9.0, 7.0))
        by_name = {name.replace("_", "-"): found for name, found in results.items()}
        turns = runs({f"{name} dense": found for name, found in by_name.items()})
        scope = Scope(datasets=["blobs"], solvers=list(by_name), repeats=repeats, limit=100.0)
        return kernel.compare(scope, lambda line: None).rows, turns

    return compared


def test_kernel_solvers_take_turns_and_the_best_of_each_counts(contest):
    ours = [run_of(2.0, 0.5, OUR_EXTRA, 1.0), run_of(1.0, 1.0, OUR_EXTRA, 2.0)]
    found, turns = contest(2, larank=ours, svc=[run_of(4.0, 5.0), run_of(5.0, 4.0)])
    assert turns == ["larank dense", "svc dense"] * 2
    larank, svc = found["rows"]
    assert (larank.train, larank.predict, larank.train_ratio, larank.train_over) == (1.0, 0.5, 1.0, {"svc": 0.25})
    assert (larank.primal, larank.dual, larank.relative_gap) == (9.0, 7.0, pytest.approx(2 / 9))
    assert (svc.train, svc.predict, svc.train_ratio, svc.predict_ratio) == (4.0, 4.0, 4.0, 8.0)
    assert (svc.primal, svc.dual, svc.relative_gap) == (None, 6.0, None)
    assert [(work.train, work.product) for work in found["work"]] == [(1.0, 1.0)]


def test_memory_of_a_solver_with_its_own_copy_leaves_out_what_it_was_given(contest):
    found, _ = contest(1, svc=[run_of(1.0)], libsvm=[run_of(1.0)])
    assert [(row.peak, row.peak_without_input) for row in found["rows"]] == [(30, 30), (30, 20)]


def test_the_exact_solver_is_judged_by_the_rivals_of_the_same_run(contest):
    found, _ = contest(1, larank_exact=[run_of(2.0, 1.0, OUR_EXTRA)], svc=[run_of(4.0)], intelex=[run_of(2.5)])
    verdicts = {
        name: [str(claim) for claim in kernel.judged([replace(row, problem=name) for row in found["rows"]])]
        for name in ("blobs", "mnist", "letter")
    }
    assert verdicts == {
        "blobs": [],
        "mnist": ["mnist: larank-exact takes 0.800 of intelex's training time; bar 0.5, missed"],
        "letter": ["letter: larank-exact takes 0.500 of svc's training time; bar 1.2, met"],
    }


@pytest.mark.usefixtures("only_blobs")
def test_exact_solver_under_limits_keeps_the_objective():
    said: list[str] = []
    rows = kernel.compare_limits([1e7, 1e9], BLOBS, said.append).rows["rows"]
    assert len(said) == 2
    assert [row.training for row in rows] == ["limit 10 MB", "limit 1000 MB"]
    assert rows[1].ratio == 1.0
    assert rows[0].dual == pytest.approx(rows[1].dual, rel=1e-3)
    assert all(0 <= row.relative_gap <= 1e-3 for row in rows)
    assert "| blobs | limit 10 MB | 1 |" in tables.of_rows("", rows, kernel.MEMORY_COLUMNS).as_markdown()
    assert "| blobs | limit 10 MB |" in tables.of_breakdowns("", rows, "training").as_markdown()


@pytest.mark.usefixtures("only_blobs")
def test_a_limit_that_is_too_small_is_named():
    found = kernel.compare_limits([1.0], replace(BLOBS, repeats=2), lambda line: None)
    assert found.rows["rows"] == []
    (line,) = found.to_lines()
    assert line.startswith("blobs: limit 1e-06 MB: ")
    assert "memory_limit" in line


@pytest.mark.usefixtures("only_blobs")
def test_a_path_ends_where_a_fit_at_its_largest_cost_does():
    found = search.compare_path((3, 0.1, 10.0), BLOBS, lambda line: None)
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
    found = search.compare((3, 2, 3), BLOBS, lambda line: None)
    assert found.to_lines() == []
    shared, grid = found.rows["rows"]
    assert (shared.search, grid.search) == (search.SHARED, search.GRID)
    assert grid.ratio == 1.0
    assert shared.score == pytest.approx(grid.score, abs=0.02)
    assert shared.largest_difference <= 0.05
    assert f"| blobs | {search.SHARED} | 1 |" in tables.of_rows("", [shared, grid]).as_markdown()


# ---- Two classes ----


def test_ratios_are_to_the_fastest_form_of_a_rival():
    def binary_run(train, dual=10.0, extra=None):
        return run_of(train, 0.5, extra, None, ("binary, with a bias", extra and extra["primal"], dual))

    ours = {**OUR_EXTRA, "primal": 10.0}
    runs = {
        Entrant("larank", DENSE): [binary_run(2.0, 9.0, ours), binary_run(3.0, 9.0, ours)],
        Entrant("larank", CSR): [binary_run(1.0, 9.5, ours)],
        Entrant("svc", DENSE): [binary_run(20.0), binary_run(16.0)],
        Entrant("svc", CSR): [binary_run(8.0)],
        Entrant("intelex", DENSE): [binary_run(4.0)],
    }
    rows = kernels.rows_of("binary", "adult", runs, binary.RIVALS, {})
    assert [row.is_fastest for row in rows] == [False, True, False, True, True]
    assert [row.train for row in rows] == [2.0, 1.0, 16.0, 8.0, 4.0]
    assert rows[0].train_over == {"svc": 0.25, "intelex": 0.5}
    assert rows[2].train_over["svc"] == 2.0
    assert rows[0].short_of_best == pytest.approx(0.1)
    assert rows[1].relative_gap == pytest.approx(0.05)
    assert rows[2].relative_gap is None
    assert binary.ratios(rows) == {"adult": {"svc": 0.125, "intelex": 0.25}}
    assert [str(claim) for claim in judge("larank", binary.ratios(rows), binary.BARS)] == [
        "adult: larank takes 0.125 of svc's training time; bar 0.125, met",
        "adult: larank takes 0.250 of intelex's training time; bar 0.7, met",
    ]
    assert all(problem in kernels.FORMS and rival in binary.RIVALS for problem, rival in binary.BARS)


def test_binary_solvers_take_turns_and_slow_ones_run_once(runs):
    failed = ChildFailedError("trace\nKilled\n")
    turns = runs({"svc dense": [run_of(1.0), run_of(1.0)], "svc csr": [run_of(70.0)], "libsvm csr": [failed]})
    said: list[str] = []
    scope = replace(BLOBS, solvers=["svc", "libsvm"], repeats=2, options=Namespace(once_above=60.0))
    found = binary.compare(scope, said.append).rows
    assert turns == ["svc dense", "svc csr", "libsvm csr", "svc dense"]
    assert [row.runs for row in found["rows"]] == [2, 1]
    assert [(gone.solver, gone.reason) for gone in found["unfinished"]] == [("libsvm csr", "Killed")]
    assert said[0] == "blobs: svc dense: trained in 1.00 s, predicted in 0.50 s, error 10.00 %"


def test_the_memory_limit_has_room_for_patterns_and_blocks_beside_the_cache():
    # A thousand patterns of a hundred floats with their scalars; two blocks of 256 rows with them and with each other.
    kept, blocks = 1000 * (1.2 * 400 + 128), 2 * 256 * (1000 + 512) * 4
    assert binary.limit_for(1e9, 1000, 100) == pytest.approx(1e9 + kept + blocks)
    # Provider take a quarter at most.
    assert binary.limit_for(1e6, 1000, 100) == pytest.approx((1e6 + kept) * 4 / 3)


@pytest.mark.usefixtures("only_blobs")
def test_caches_are_compared_with_and_without_finishing(monkeypatch):
    limits: list[float] = []

    def measure_fit(folder, kind, entrant, limit, settings):
        limits.append(settings["memory_limit"])
        assert settings["certify"] is False
        train = (4.0 if settings["memory_limit"] < 1e8 else 2.0) + 10.0 * settings["finish"]
        return run_of(train, extra={"kernel_values": 10**6, "most_patterns": 10, "breakdown": {"product": 1.0}})

    monkeypatch.setattr(binary, "measure_fit", measure_fit)
    found = binary.compare_caches([8e6, 1e9], BLOBS, lambda line: None)
    rows = found.rows["rows"]
    small, large = (binary.limit_for(size, 10, 4) for size in (8e6, 1e9))
    assert found.to_lines() == []
    assert limits == [binary.AMPLE, small, large, small, large]
    assert [(row.train, row.ratio) for row in rows] == [(4.0, 2.0), (2.0, 1.0), (14.0, 14 / 12), (12.0, 1.0)]
    assert [str(claim) for claim in binary.judged_caches(rows)] == [
        "blobs: epoch, cache of 8 MB, takes 2.00 times as long as with the largest; bar 2.5, met"
    ]
    shown = tables.of_rows("", rows, binary.CACHE_COLUMNS).as_markdown()
    assert "| blobs | epoch, cache of 8 MB | 9 | 1 | 4.000 | 2.00 |" in shown


# ---- Active learning ----


@pytest.mark.parametrize("name", solvers(LEARNERS))
def test_a_learner_asks_for_so_many_labels_and_learns(name, two):
    with kernels.stored(two) as folder:
        run = active.measure_active(folder, Entrant(name), CSR, 60, 120.0)
    assert (run.labels, run.wall > 0, run.error <= 0.1) == (60, True, True)
    assert 2 <= run.support_vectors <= 60


@pytest.mark.parametrize("rival", solvers(LEARNERS, ["skactiveml"]))
def test_both_ways_of_training_anew_ask_for_the_same_labels(rival, two, monkeypatch):
    pools: list[scikit_learn.Pool] = []

    class Recorded(scikit_learn.Pool):
        def __init__(self, y):
            super().__init__(y)
            pools.append(self)

    monkeypatch.setattr(scikit_learn, "Pool", Recorded)
    monkeypatch.setattr("studies.rivals.libraries.skactiveml.Pool", Recorded)
    monkeypatch.setattr(scikit_learn, "CANDIDATES", 10)
    data = TrainingSet(two.X_train[CSR].astype(np.float64), two.y_train, two.C, two.gamma)
    for name in (active.RETRAINED, rival):
        LEARNERS[name].learn(data, 20, 1)
    assert pools[0].known == pools[1].known
    assert len(set(pools[0].known)) == 20


def test_a_pool_starts_with_both_labels_and_gives_each_example_once():
    y = np.repeat([-1, 1], [95, 5])
    pool = scikit_learn.Pool(y)
    assert set(y[pool.known]) == {-1, 1}
    assert len(set(y[pool.known[:-1]])) == 1
    while len(pool.known) < len(y):
        candidates = pool.candidates()
        assert len(set(candidates.tolist())) == len(candidates) <= scikit_learn.CANDIDATES
        assert not set(candidates.tolist()) & set(pool.known)
        pool.label(int(candidates[0]))
    assert sorted(pool.known) == list(range(len(y)))


@pytest.mark.usefixtures("only_blobs")
def test_learning_online_is_judged_by_training_anew(monkeypatch):
    seconds = {active.IN_FIT: 0.5, active.RETRAINED: 4.0}

    def measure_active(folder, entrant, form, labels, limit):
        return active.ActiveRun(seconds[entrant.solver], 1.0, 0, 0, {}, labels, 0.03, 40)

    monkeypatch.setattr(active, "measure_active", measure_active)
    found = active.compare(30, replace(BLOBS, solvers=list(seconds), repeats=2), lambda line: None)
    rows = found.rows["rows"]
    assert found.to_lines() == []
    assert [(row.solver, row.ratio, row.labels) for row in rows] == [("larank", 0.125, 30), ("svc-retrain", 1, 30)]
    assert [str(claim) for claim in active.judged(rows)] == [
        "blobs: larank takes 0.1250 of the time of svc-retrain; bar 0.05, missed"
    ]
    assert "| blobs | larank | 2 | 30 | 0.500 |" in tables.of_rows("", rows).as_markdown()
