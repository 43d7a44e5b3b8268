"""The yardstick of the binary benchmarks is itself right."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks import storage, tables
from benchmarks.bars import judge
from benchmarks.binary import activelearning, cachesize, learners
from benchmarks.binary import command as binary_command
from benchmarks.binary import compare as binary_compare
from benchmarks.binary import problems as binary_problems
from benchmarks.binary import runs as binary_runs
from benchmarks.binary.libraries import SOLVERS
from benchmarks.binary.libraries.solver import TrainingSet
from benchmarks.contest import Settings
from benchmarks.measure import ChildFailedError
from benchmarks.rbf import Parameters
from benchmarks.rivals import installed
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

DENSE, CSR = binary_problems.DENSE, binary_problems.CSR


@pytest.fixture(scope="module")
def blobs():
    points, labels = make_blobs(120, 4, centers=2, cluster_std=0.7, random_state=0)
    points, labels = points.astype(np.float32), 2 * labels - 1
    parts = ({DENSE: part, CSR: sparse.csr_matrix(part)} for part in (points[:80], points[80:]))
    return binary_problems.Problem("blobs", next(parts), labels[:80], next(parts), labels[80:], Parameters(10.0, 0.1))


def skip_without(name, entries=SOLVERS):
    if not installed(entries[name]):
        pytest.skip(f"{entries[name].requires} is not installed")


# ---- Problems ----


def test_matrices_are_stored_and_read_as_they_were():
    X = sparse.random(7, 5, 0.3, "csr", dtype=np.float32, random_state=0)
    arrays = {**storage.matrix_arrays("dense", X.toarray()), **storage.matrix_arrays("csr", X)}
    with storage.stored("test", arrays, {}) as folder:
        assert np.array_equal(storage.matrix(folder, "dense"), X.toarray())
        found = storage.matrix(folder, "csr")
    assert sparse.issparse(found)
    assert found.dtype == np.float32
    assert np.array_equal(found.toarray(), X.toarray())


def test_images_as_csr_have_the_kernel_values_they_had():
    X = np.where(np.arange(60).reshape(6, 10) % 3, -1.0, 0.25).astype(np.float32)
    moved = binary_problems._in_form(X, CSR)
    assert moved.nnz == np.count_nonzero(X > -1)
    np.testing.assert_allclose(rbf_kernel(moved, gamma=0.3), rbf_kernel(X, gamma=0.3), rtol=1e-6)
    assert binary_problems._in_form(X, DENSE) is X


def test_solvers_are_given_the_forms_that_may_be_their_fastest(blobs):
    empty = sparse.random(80, 4, 0.03, "csr", dtype=np.float32, random_state=0)
    nearly_empty = replace(blobs, X_train={DENSE: empty.toarray(), CSR: empty})
    dense_alone = replace(blobs, X_train={DENSE: blobs.X_train[DENSE]})
    forms = {
        name: [list(solver.forms(one)) for one in (blobs, nearly_empty, dense_alone)]
        for name, solver in SOLVERS.items()
    }
    assert forms == {
        "larank": [[DENSE, CSR], [DENSE, CSR], [DENSE]],
        "intelex": [[DENSE, CSR], [DENSE, CSR], [DENSE]],
        "svc": [[DENSE, CSR], [CSR], [DENSE]],
        "libsvm": [[CSR], [CSR], [DENSE]],
    }


# ---- Solvers ----


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("form", [DENSE, CSR])
def test_binary_solvers_reach_the_same_dual(name, form, blobs):
    skip_without(name)
    data = TrainingSet(blobs.X_train[form].astype(SOLVERS[name].dtype), blobs.y_train, blobs.parameters)
    fitted = SOLVERS[name].fit(data, 1)
    reference = SOLVERS["svc"].fit(replace(data, X=blobs.X_train[DENSE].astype(np.float64)), 1)
    assert fitted.dual(data) == pytest.approx(reference.dual(data), rel=2e-3)
    assert len(fitted.support) == len(fitted.coefficients)
    assert fitted.coefficients.sum() == pytest.approx(0.0, abs=1e-4)  # the bias
    assert np.array_equal(fitted.predict(blobs.X_test[form]), blobs.y_test)


@pytest.mark.parametrize("name", SOLVERS)
def test_binary_solver_is_measured_in_a_process_of_its_own(name, blobs):
    skip_without(name)
    with binary_runs.stored(blobs) as folder:
        run = binary_runs.measure_fit(folder, name, CSR, 120.0)
    assert run.error == 0.0
    assert 2 <= run.support_vectors < len(blobs.y_train)
    assert min(run.wall, run.predict, run.peak, run.dual) > 0
    assert ("kernel_values" in run.extra) == (name == "larank")


def test_larank_is_measured_with_its_certificate(blobs):
    skip_without("larank")
    with binary_runs.stored(blobs) as folder:
        run = binary_runs.measure_fit(folder, "larank", DENSE, 120.0)
    assert run.extra["breakdown"]["certificate"] > 0
    assert run.extra["dual"] == pytest.approx(run.dual, rel=1e-4)
    assert run.extra["primal"] >= run.extra["dual"] * (1 - 1e-6)


# ---- Comparison ----


def binary_run(train, dual=10.0, extra=None, predict=0.5):
    return binary_runs.BinaryRun(train, train, 10, 30, extra or {}, predict, predict, 0.1, 5, dual)


OUR_EXTRA = {
    "primal": 10.0,
    "kernel_values": 2 * 10**6,
    "breakdown": {"product": 0.5, "finish": 0.25, "certificate": 0.125},
    "operations": {},
}


def test_ratios_are_to_the_fastest_form_of_a_rival():
    runs = {
        ("larank", DENSE): [binary_run(2.0, 9.0, OUR_EXTRA), binary_run(3.0, 9.0, OUR_EXTRA)],
        ("larank", CSR): [binary_run(1.0, 9.5, OUR_EXTRA)],
        ("svc", DENSE): [binary_run(20.0), binary_run(16.0)],
        ("svc", CSR): [binary_run(8.0)],
        ("intelex", DENSE): [binary_run(4.0)],
    }
    rows = binary_compare.rows_of("adult", runs)
    assert [row.is_fastest for row in rows] == [False, True, False, True, True]
    assert [row.train for row in rows] == [2.0, 1.0, 16.0, 8.0, 4.0]
    assert rows[0].train_over == {"svc": 0.25, "intelex": 0.5}
    assert rows[2].train_over["svc"] == 2.0
    assert rows[0].short_of_best == pytest.approx(0.1)
    assert rows[1].relative_gap == pytest.approx(0.05)
    assert rows[2].relative_gap is None
    assert binary_compare.ratios(rows) == {"adult": {"svc": 0.125, "intelex": 0.25}}
    assert judge("larank", binary_compare.ratios(rows), binary_command.BARS) == [
        "adult: larank takes 0.125 of svc's training time; bar 0.125, met",
        "adult: larank takes 0.250 of intelex's training time; bar 1, met",
    ]


def test_binary_tables_show_finish_and_certificate_apart():
    rows = binary_compare.rows_of("adult", {("larank", CSR): [binary_run(2.0, 9.0, OUR_EXTRA)]})
    shown = tables.as_markdown(binary_command.COLUMNS, rows)
    assert "| adult | larank | csr * | 1 | 2.000 | - | - | - | 0.250 | 0.125 | 2.000 | 0.500 | 10.00 | 5 |" in shown
    objectives = tables.as_markdown(binary_command.OBJECTIVE_COLUMNS, rows)
    assert "| adult | larank | csr | 9.00 | 0.0e+00 | 10.00 | 1.0e-01 | 2.0 |" in objectives


def test_every_bar_is_of_a_problem_and_a_rival():
    assert all(problem in binary_problems.PROBLEMS for problem, _ in binary_command.BARS)
    assert all(rival in binary_compare.RIVALS for _, rival in binary_command.BARS)


def test_binary_solvers_take_turns_and_slow_ones_run_once(blobs, monkeypatch):
    turns: list[tuple[str, str]] = []

    def measure_fit(folder, solver, form, limit):
        turns.append((solver, form))
        if solver == "libsvm":
            raise ChildFailedError("trace\nKilled\n")
        return binary_run(70.0 if form == CSR else 1.0)

    monkeypatch.setattr(binary_problems, "load", lambda name: blobs)
    monkeypatch.setattr(binary_compare, "measure_fit", measure_fit)
    said: list[str] = []
    comparison = binary_compare.compare(Settings(["blobs"], ["svc", "libsvm"], 2, 60.0, 100.0, said.append))
    assert turns == [("svc", DENSE), ("svc", CSR), ("libsvm", CSR), ("svc", DENSE)]
    assert [row.runs for row in comparison.rows] == [2, 1]
    assert [(gone.solver, gone.reason) for gone in comparison.unfinished] == [("libsvm csr", "Killed")]
    assert said[0] == "blobs: svc dense trained in 1.00 s, error 10.00 %"


# ---- Cache ----


def test_the_memory_limit_has_room_for_patterns_and_blocks_beside_the_cache():
    # A thousand patterns of a hundred floats with their scalars; two blocks of 256 rows with them and with each other.
    kept, blocks = 1000 * (1.2 * 400 + 128), 2 * 256 * (1000 + 512) * 4
    assert cachesize.limit_for(1e9, 1000, 100) == pytest.approx(1e9 + kept + blocks)
    # Provider take a quarter at most.
    assert cachesize.limit_for(1e6, 1000, 100) == pytest.approx((1e6 + kept) * 4 / 3)


def test_caches_are_compared_with_and_without_finishing(blobs, monkeypatch):
    limits: list[float] = []

    def measure_ours(folder, form, settings, limit):
        limits.append(settings["memory_limit"])
        assert settings["certify"] is False
        train = (4.0 if settings["memory_limit"] < 1e8 else 2.0) + 10.0 * settings["finish"]
        return binary_run(train, extra={"kernel_values": 10**6, "most_patterns": 10, "breakdown": {"product": 1.0}})

    monkeypatch.setattr(binary_problems, "load", lambda name: blobs)
    monkeypatch.setattr(cachesize, "measure_ours", measure_ours)
    rows, failed = cachesize.compare_caches("blobs", [8e6, 1e9], 1, 120.0, lambda line: None)
    small, large = (cachesize.limit_for(cache, 10, 4) for cache in (8e6, 1e9))
    assert failed == []
    assert limits == [cachesize.AMPLE, small, large, small, large]
    assert [(row.train, row.ratio) for row in rows] == [(4.0, 2.0), (2.0, 1.0), (14.0, 14 / 12), (12.0, 1.0)]
    assert cachesize.judged(rows) == [
        "blobs: epoch, cache of 8 MB, takes 2.00 times as long as with the largest; bar 1.5, missed"
    ]
    assert "| blobs | epoch, cache of 8 MB | 9 | 1 | 4.000 | 2.00 |" in tables.as_markdown(cachesize.COLUMNS, rows)


# ---- Active learning ----


@pytest.mark.parametrize("name", learners.LEARNERS)
def test_a_learner_asks_for_so_many_labels_and_learns(name, blobs):
    skip_without(name, learners.LEARNERS)
    with binary_runs.stored(blobs) as folder:
        run = binary_runs.measure_active(folder, name, CSR, 60, 120.0)
    assert run.labels == 60
    assert run.error <= 0.1
    assert 2 <= run.support_vectors <= 60
    assert run.wall > 0


def test_both_ways_of_training_anew_ask_for_the_same_labels(blobs, monkeypatch):
    skip_without("skactiveml", learners.LEARNERS)
    pools: list[learners._Pool] = []

    class Recorded(learners._Pool):
        def __init__(self, y):
            super().__init__(y)
            pools.append(self)

    monkeypatch.setattr(learners, "_Pool", Recorded)
    monkeypatch.setattr(learners, "CANDIDATES", 10)
    data = TrainingSet(blobs.X_train[CSR].astype(np.float64), blobs.y_train, blobs.parameters)
    for name in (learners.RETRAINED, "skactiveml"):
        learners.LEARNERS[name].learn(data, 20, 1)
    assert pools[0].known == pools[1].known
    assert len(set(pools[0].known)) == 20


def test_a_pool_starts_with_both_labels_and_gives_each_example_once():
    y = np.repeat([-1, 1], [95, 5])
    pool = learners._Pool(y)
    assert set(y[pool.known]) == {-1, 1}
    assert len(set(y[pool.known[:-1]])) == 1
    while len(pool.known) < len(y):
        candidates = pool.candidates()
        assert len(set(candidates.tolist())) == len(candidates) <= learners.CANDIDATES
        assert not set(candidates.tolist()) & set(pool.known)
        pool.label(int(candidates[0]))
    assert sorted(pool.known) == list(range(len(y)))


def test_learning_online_is_judged_by_training_anew(blobs, monkeypatch):
    seconds = {learners.IN_FIT: 0.5, learners.RETRAINED: 4.0}
    monkeypatch.setattr(binary_problems, "load", lambda name: blobs)
    monkeypatch.setattr(
        activelearning,
        "measure_active",
        lambda folder, learner, form, labels, limit: binary_runs.ActiveRun(seconds[learner], 1.0, labels, 0.03, 40),
    )
    settings = Settings(["blobs"], list(seconds), 2, 60.0, 100.0, lambda line: None)
    rows, failed = activelearning.compare_learners("blobs", 30, settings)
    assert failed == []
    assert [(row.solver, row.ratio, row.labels) for row in rows] == [("larank", 0.125, 30), ("svc-retrain", 1, 30)]
    assert activelearning.judged(rows) == ["blobs: larank takes 0.1250 of the time of svc-retrain; bar 0.05, missed"]
    assert "| blobs | larank | 2 | 30 | 0.500 |" in tables.as_markdown(activelearning.COLUMNS, rows)
