"""The yardstick of the binary benchmarks is itself right."""

from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

from studies import storage, tables
from studies.measure import ChildFailedError
from studies.rivals import active, binary, cache, kernels
from studies.rivals.contest import Entrant, judge
from studies.rivals.libraries import BINARY, LEARNERS, installed, scikit_learn
from studies.rivals.libraries.solver import CSR, DENSE, TrainingSet
from studies.study import Scope


@pytest.fixture(scope="module")
def blobs():
    points, labels = make_blobs(120, 4, centers=2, cluster_std=0.7, random_state=0)
    points, labels = points.astype(np.float32), 2 * labels - 1
    parts = ({DENSE: part, CSR: sparse.csr_matrix(part)} for part in (points[:80], points[80:]))
    return kernels.Problem("blobs", next(parts), labels[:80], next(parts), labels[80:], 10.0, 0.1)


@pytest.fixture
def only_blobs(blobs, monkeypatch):
    """Whatever problem is asked for, it is this one, and all libraries are installed."""
    monkeypatch.setattr(kernels, "load", lambda kind, name, quick: blobs)
    monkeypatch.setattr("studies.rivals.libraries.installed", lambda solver: True)


def skip_without(name, entries=BINARY):
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
    moved = kernels.in_form(X, CSR)
    assert moved.nnz == np.count_nonzero(X > -1)
    np.testing.assert_allclose(rbf_kernel(moved, gamma=0.3), rbf_kernel(X, gamma=0.3), rtol=1e-6)
    assert kernels.in_form(X, DENSE) is X


def test_solvers_are_given_the_forms_that_may_be_their_fastest(blobs):
    empty = sparse.random(80, 4, 0.03, "csr", dtype=np.float32, random_state=0)
    nearly_empty = replace(blobs, X_train={DENSE: empty.toarray(), CSR: empty})
    dense_alone = replace(blobs, X_train={DENSE: blobs.X_train[DENSE]})
    forms = {
        name: [list(solver.forms(one)) for one in (blobs, nearly_empty, dense_alone)] for name, solver in BINARY.items()
    }
    assert forms == {
        "larank": [[DENSE, CSR], [DENSE, CSR], [DENSE]],
        "intelex": [[DENSE, CSR], [DENSE, CSR], [DENSE]],
        "svc": [[DENSE, CSR], [CSR], [DENSE]],
        "libsvm": [[CSR], [CSR], [DENSE]],
    }


# ---- Solvers ----


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("form", [DENSE, CSR])
def test_binary_solvers_reach_the_same_dual(name, form, blobs):
    skip_without(name)
    data = TrainingSet(blobs.X_train[form].astype(BINARY[name].dtype), blobs.y_train, blobs.C, blobs.gamma)
    fitted = BINARY[name].fit(data, 1)
    reference = BINARY["svc"].fit(replace(data, X=blobs.X_train[DENSE].astype(np.float64)), 1)
    reached, expected = fitted.objectives(), reference.objectives()
    assert reached.problem == expected.problem == "binary, with a bias"
    assert reached.dual == pytest.approx(expected.dual, rel=2e-3)
    assert fitted.support_vectors == pytest.approx(reference.support_vectors, abs=3)
    assert np.array_equal(fitted.predict(blobs.X_test[form]), blobs.y_test)


# ---- Comparison ----


def binary_run(train, dual=10.0, extra=None, predict=0.5):
    extra = extra or {}
    objectives = "binary, with a bias", extra.get("primal"), dual
    return kernels.KernelRun(train, train, 10, 30, extra, predict, predict, 0.1, 5, 5, *objectives)


OUR_EXTRA = {
    "primal": 10.0,
    "kernel_values": 2 * 10**6,
    "breakdown": {"product": 0.5, "finish": 0.25, "certificate": 0.125},
    "operations": {},
}


def test_ratios_are_to_the_fastest_form_of_a_rival():
    runs = {
        Entrant("larank", DENSE): [binary_run(2.0, 9.0, OUR_EXTRA), binary_run(3.0, 9.0, OUR_EXTRA)],
        Entrant("larank", CSR): [binary_run(1.0, 9.5, OUR_EXTRA)],
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


def test_every_bar_is_of_a_problem_and_a_rival():
    assert all(problem in kernels.FORMS for problem, _ in binary.BARS)
    assert all(rival in binary.RIVALS for _, rival in binary.BARS)


@pytest.mark.usefixtures("only_blobs")
def test_binary_solvers_take_turns_and_slow_ones_run_once(monkeypatch):
    turns: list[tuple[str, str]] = []

    def measure_fit(folder, kind, entrant, limit, **details):
        turns.append((entrant.solver, entrant.form))
        if entrant.solver == "libsvm":
            raise ChildFailedError("trace\nKilled\n")
        return binary_run(70.0 if entrant.form == CSR else 1.0)

    monkeypatch.setattr(kernels, "measure_fit", measure_fit)
    said: list[str] = []
    settings = Scope(datasets=["blobs"], solvers=["svc", "libsvm"], repeats=2, options=Namespace(once_above=60.0))
    found = binary.compare(settings, said.append).rows
    assert turns == [("svc", DENSE), ("svc", CSR), ("libsvm", CSR), ("svc", DENSE)]
    assert [row.runs for row in found["rows"]] == [2, 1]
    assert [(gone.solver, gone.reason) for gone in found["unfinished"]] == [("libsvm csr", "Killed")]
    assert said[0] == "blobs: svc dense: trained in 1.00 s, predicted in 0.50 s, error 10.00 %"


# ---- Cache ----


def test_the_memory_limit_has_room_for_patterns_and_blocks_beside_the_cache():
    # A thousand patterns of a hundred floats with their scalars; two blocks of 256 rows with them and with each other.
    kept, blocks = 1000 * (1.2 * 400 + 128), 2 * 256 * (1000 + 512) * 4
    assert cache.limit_for(1e9, 1000, 100) == pytest.approx(1e9 + kept + blocks)
    # Provider take a quarter at most.
    assert cache.limit_for(1e6, 1000, 100) == pytest.approx((1e6 + kept) * 4 / 3)


@pytest.mark.usefixtures("only_blobs")
def test_caches_are_compared_with_and_without_finishing(monkeypatch):
    limits: list[float] = []

    def measure_fit(folder, kind, entrant, limit, settings):
        limits.append(settings["memory_limit"])
        assert settings["certify"] is False
        train = (4.0 if settings["memory_limit"] < 1e8 else 2.0) + 10.0 * settings["finish"]
        return binary_run(train, extra={"kernel_values": 10**6, "most_patterns": 10, "breakdown": {"product": 1.0}})

    monkeypatch.setattr(cache, "measure_fit", measure_fit)
    found = cache.compare([8e6, 1e9], Scope(datasets=["blobs"], repeats=1), lambda line: None)
    rows = found.rows["rows"]
    small, large = (cache.limit_for(size, 10, 4) for size in (8e6, 1e9))
    assert found.to_lines() == []
    assert limits == [cache.AMPLE, small, large, small, large]
    assert [(row.train, row.ratio) for row in rows] == [(4.0, 2.0), (2.0, 1.0), (14.0, 14 / 12), (12.0, 1.0)]
    assert [str(claim) for claim in cache.judged(rows)] == [
        "blobs: epoch, cache of 8 MB, takes 2.00 times as long as with the largest; bar 2.5, met"
    ]
    shown = tables.of_rows("", rows, cache.COLUMNS).as_markdown()
    assert "| blobs | epoch, cache of 8 MB | 9 | 1 | 4.000 | 2.00 |" in shown


# ---- Active learning ----


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_asks_for_so_many_labels_and_learns(name, blobs):
    skip_without(name, LEARNERS)
    with kernels.stored(blobs) as folder:
        run = active.measure_active(folder, Entrant(name), CSR, 60, 120.0)
    assert run.labels == 60
    assert run.error <= 0.1
    assert 2 <= run.support_vectors <= 60
    assert run.wall > 0


def test_both_ways_of_training_anew_ask_for_the_same_labels(blobs, monkeypatch):
    skip_without("skactiveml", LEARNERS)
    pools: list[scikit_learn.Pool] = []

    class Recorded(scikit_learn.Pool):
        def __init__(self, y):
            super().__init__(y)
            pools.append(self)

    monkeypatch.setattr(scikit_learn, "Pool", Recorded)
    monkeypatch.setattr("studies.rivals.libraries.skactiveml.Pool", Recorded)
    monkeypatch.setattr(scikit_learn, "CANDIDATES", 10)
    data = TrainingSet(blobs.X_train[CSR].astype(np.float64), blobs.y_train, blobs.C, blobs.gamma)
    for name in (active.RETRAINED, "skactiveml"):
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
    found = active.compare(30, Scope(datasets=["blobs"], solvers=list(seconds), repeats=2), lambda line: None)
    rows = found.rows["rows"]
    assert found.to_lines() == []
    assert [(row.solver, row.ratio, row.labels) for row in rows] == [("larank", 0.125, 30), ("svc-retrain", 1, 30)]
    assert [str(claim) for claim in active.judged(rows)] == [
        "blobs: larank takes 0.1250 of the time of svc-retrain; bar 0.05, missed"
    ]
    assert "| blobs | larank | 2 | 30 | 0.500 |" in tables.of_rows("", rows).as_markdown()
