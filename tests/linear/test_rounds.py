"""Rounds over partitions and several threads against a general QP solver, one thread and itself."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from test_sdm import clusters, small_problems, svc

from larank import SDM
from larank.linear.rounds import LinearProblem, LocalExecutor, Partition, Rounds, dual_coefficients, partitions_of
from larank.training import Limits, TrainingWarning, train
from larank.training.progress import progress_for
from properties import draws
from references import optima
from references.optima import FORMULATIONS

formulations = pytest.mark.parametrize("formulation", FORMULATIONS)


def partitions(X, labels, costs, cuts, problem, rest_costs=None):
    """Return partitions with the rows between one cut and the next."""
    rest_costs = costs if rest_costs is None else rest_costs
    parts = [slice(first, last) for first, last in itertools.pairwise([0, *cuts, X.shape[0]])]
    return [
        Partition(X[p], labels[p].astype(np.int32), costs[p], rest_costs[p], problem, number)
        for number, p in enumerate(parts)
    ]


def outcome_of(rounds, gap=1e-8, passes=50_000):
    with progress_for(0) as progress:
        return train(rounds, Limits(gap, passes, None), progress)


def executor_of(X, labels, costs, cuts, formulation="crammer-singer", intercept=0.0, n_jobs=1):
    problem = LinearProblem(formulation, int(labels.max()) + 1, intercept)
    return LocalExecutor(partitions(X, labels, costs, cuts, problem), n_jobs)


@draws(60)
@given(small_problems(), st.sampled_from(FORMULATIONS), st.data())
def test_the_optimum_is_that_of_a_general_qp_solver(problem, formulation, data):
    """However rows are divided: unequally, into empty partitions, into such that miss a class."""
    X, y, weight, C, intercept = problem
    classes, labels = np.unique(y, return_inverse=True)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(y)), max_size=6)))
    passes = data.draw(st.sampled_from([0.3, 1.0, 4.0]))
    cooling = data.draw(st.booleans())
    executor = executor_of(X, labels, C * weight, cuts, formulation, intercept)
    outcome = outcome_of(Rounds(executor, seed=0, passes_per_round=passes, cooling=cooling), 1e-7)
    _, best = optima.optimum(formulation, optima.with_constant(X, intercept), labels, C * weight, len(classes))
    if not cooling and outcome.status == "max_iter":  # nothing moves on between phases then: it may take very long
        assert outcome.objectives.dual <= best * (1 + 1e-9) <= outcome.objectives.primal * (1 + 2e-9)
        return
    assert outcome.status == "converged"
    assert outcome.objectives.primal == pytest.approx(best, rel=1e-6)
    assert outcome.objectives.dual == pytest.approx(best, rel=1e-6)


@formulations
@pytest.mark.parametrize(
    ("n_partitions", "storage"),
    [(1, sparse.csr_matrix), (2, np.asarray), (8, sparse.csr_matrix), (64, np.asarray)],
)
def test_any_number_of_partitions_finds_the_optimum_of_one_solver(formulation, n_partitions, storage):
    X, y = clusters(examples=150, empty=0.4)
    X[~X.any(axis=1), 0] = 1.0
    cuts = np.linspace(0, 150, n_partitions + 1).astype(int)[1:-1].tolist()
    executor = executor_of(storage(X), y, np.ones(150), cuts, formulation)
    rounds = Rounds(executor, seed=0)
    outcome = outcome_of(rounds, 1e-6)
    model = svc(formulation, fit_intercept=False, tol=1e-7).fit(X, y)
    assert outcome.objectives.primal == pytest.approx(model.result_.primal, rel=2e-6)
    assert outcome.objectives.dual == pytest.approx(model.result_.dual, rel=2e-6)
    a = dual_coefficients(executor.each("coefficients"), 4).toarray()
    W = rounds.weights()[:, :4].T
    assert optima.infeasibility(formulation, a, y, np.ones(150)) < 1e-9
    assert outcome.objectives.dual == pytest.approx(optima.dual(formulation, a, X, y), rel=1e-9)
    assert outcome.objectives.primal == pytest.approx(optima.primal(formulation, W, X, y, np.ones(150)), rel=1e-9)


def test_the_dual_never_falls_and_stays_below_the_optimum():
    X, y = clusters(examples=90, noise=2.0)
    executor = executor_of(X, y, np.ones(90), [10, 50], intercept=1.0)
    rounds = Rounds(executor, seed=0, passes_per_round=0.5, cooling=False)
    best = svc().fit(X, y).result_.primal
    before = 0.0
    for _ in range(20):
        rounds.advance()
        a = dual_coefficients(executor.each("coefficients"), 4).toarray()
        at = optima.dual("crammer-singer", a, optima.with_constant(X, 1.0), y)
        assert before - 1e-9 <= at <= best + 1e-6
        before = at


def test_the_same_seed_gives_the_same_model_with_any_number_of_threads():
    X, y = clusters(examples=120, noise=2.0)
    found = []
    for n_jobs in (1, 2):
        executor = executor_of(X, y, np.ones(120), [40, 80], "weston-watkins", n_jobs=n_jobs)
        with executor.entered():
            rounds = Rounds(executor, seed=0, passes_per_round=0.2)
            outcome_of(rounds, 1e-4)
            found.append(rounds.weights())
    np.testing.assert_array_equal(*found)


def test_a_lost_partition_is_rebuilt_from_its_rows_and_coefficients():
    X, y = clusters(examples=120)
    executor = executor_of(X, y, np.ones(120), [40, 80])
    rounds = Rounds(executor, seed=0)
    for _ in range(3):
        rounds.advance()
    saved = pickle.dumps(executor.partitions[1])
    rounds.advance()
    executor.partitions[1] = pickle.loads(saved)
    rounds.rebuild()
    outcome = outcome_of(rounds, 1e-6, 1000)
    assert outcome.objectives.primal == pytest.approx(svc(fit_intercept=False).fit(X, y).result_.primal, rel=2e-6)


def test_a_partition_that_was_made_anew_has_no_way_to_go_on():
    X, labels = np.eye(4), np.array([0, 1, 0, 1], np.int32)
    problem = LinearProblem("crammer-singer", 2, 0.0)
    part, plain = (Partition(X, labels, np.ones(4), np.ones(4), problem, 0) for _ in range(2))
    part.begin_phase(0, 1, 0.1, 1.0, 0.0, 0.5)
    plain.begin_phase(0, 1, 0.1, 1.0, 0.0, 0.0)
    W = np.zeros((4, part.session.lanes))
    assert part.visit(W, 1.0, 1.0) == plain.visit(W, 1.0, 1.0)


def test_partitions_must_be_alike():
    problem = LinearProblem("crammer-singer", 2, 0.0)
    labels, costs = np.array([0, 1], np.int32), np.ones(2)
    parts = [Partition(np.ones((2, width)), labels, costs, costs, problem, 0) for width in (3, 4)]
    with pytest.raises(ValueError, match="as many features and the same precision"):
        Rounds(LocalExecutor(parts), seed=0)


@formulations
def test_costs_and_rest_costs_act_as_in_one_solver(formulation):
    X, y = clusters(examples=90)
    model = svc(formulation, class_weight={1: 3.0}, tol=1e-7).fit(X, y, sample_weight=np.linspace(0.5, 2, 90))
    problem = LinearProblem(formulation, 4, 1.0)
    parts = partitions(X, y, model.costs_, [20, 60], problem, model.rest_costs_)
    outcome = outcome_of(Rounds(LocalExecutor(parts), seed=0), 1e-6)
    assert outcome.objectives.primal == pytest.approx(model.result_.primal, rel=2e-6)
    assert outcome.objectives.dual == pytest.approx(model.result_.dual, rel=2e-6)


def test_single_precision_stops_at_a_violation():
    X, y = clusters(examples=120)
    executor = executor_of(X.astype(np.float32), y, np.ones(120), [60], intercept=1.0)
    rounds = Rounds(executor, seed=0, epsilon=1e-2, passes_per_round=0.2)
    outcome = outcome_of(rounds, None, 1000)
    assert outcome.status == "converged"
    assert rounds.weights().dtype == np.float32
    assert outcome.objectives.primal == pytest.approx(svc().fit(X, y).result_.primal, rel=1e-2)


def test_training_goes_on_from_coefficients():
    X, y = clusters(examples=120)
    labels, costs, problem = y.astype(np.int32), np.full(120, 5.0), LinearProblem("crammer-singer", 4, 1.0)
    executor = LocalExecutor(partitions(X, y, costs, [30, 70], problem))
    first = Rounds(executor, seed=0)
    outcome_of(first, 1e-6)
    coefficients = executor.each("coefficients")
    values, classes, starts = coefficients[0][:3]
    assert len(starts) == 31
    assert len(values) == len(classes) == starts[-1]
    whole = dual_coefficients(coefficients, 4)
    arrays = whole.data, whole.indices.astype(np.int32), whole.indptr.astype(np.int64)
    again = LocalExecutor(partitions_of(X, labels, costs, costs, problem, 4, arrays))
    rounds = Rounds(again, seed=0, is_warm=True)
    assert outcome_of(rounds, 1e-6).status == "converged"
    assert rounds.visits < first.visits / 2


threads = pytest.mark.parametrize("n_jobs", [2, 3, 8])


def sorted_clouds(examples, classes=4, features=6):
    """Overlapping clouds, sorted by class, some rows empty, others twice."""
    X, y = clusters(0, examples, classes, features, empty=0.3)
    X, y = X[np.argsort(y, kind="stable")], np.sort(y)
    X[::17] = 0
    X[1::19] = X[2]
    return X, y


def assert_agree(together, alone, tol):
    assert together.relative_gap <= tol
    assert together.dual <= alone.primal * (1 + 1e-9)
    assert alone.dual <= together.primal * (1 + 1e-9)


@formulations
def test_the_optimum_of_several_threads_is_that_of_a_general_qp_solver(formulation):
    X, y = sorted_clouds(120)
    costs = 0.5 * np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], size=len(y))
    Z = optima.with_constant(X, 1.0)
    W, bound = optima.optimum(formulation, Z, y, costs, 4)
    for n_jobs in (2, 3, 8):
        result = svc(formulation, n_jobs=n_jobs, C=0.5, tol=1e-7).fit(X, y, sample_weight=2 * costs).result_
        assert result.dual <= bound * (1 + 1e-6)
        assert result.primal == pytest.approx(optima.primal(formulation, W, Z, y, costs), rel=1e-6)
        assert result.relative_gap <= 1e-7


@pytest.mark.parametrize(
    ("formulation", "n_jobs", "dtype", "shrinking"),
    [
        ("crammer-singer", 2, np.float64, True),
        ("crammer-singer", 8, np.float32, False),
        ("weston-watkins", 3, np.float32, True),
        ("weston-watkins", 2, np.float64, False),
        ("one-vs-rest", 8, np.float64, True),
        ("one-vs-rest", 3, np.float32, False),
    ],
)
def test_certificates_agree_with_those_of_one_thread(formulation, n_jobs, dtype, shrinking):
    X, y = sorted_clouds(1000)
    X = sparse.csr_matrix(X, dtype=dtype)
    tol = 1e-4 if dtype == np.float32 else 1e-6
    model = svc(formulation, tol=tol, solver=SDM(shrinking=shrinking))
    alone = model.fit(X, y).result_
    assert_agree(model.set_params(n_jobs=n_jobs).fit(X, y).result_, alone, tol)


@threads
def test_coefficients_are_feasible_and_weights_are_theirs(n_jobs):
    X, y = sorted_clouds(3000)
    X[~X.any(axis=1)] = 1  # empty rows have no coefficients
    model = svc(n_jobs=n_jobs, tol=1e-3, max_iter=3, C=10.0, fit_intercept=False)
    with pytest.warns(TrainingWarning):
        model.fit(X, y)
    a = model.dual_coef_.toarray()
    assert optima.infeasibility("crammer-singer", a, y, model.costs_) < 1e-10
    assert model.result_.dual == pytest.approx(optima.dual("crammer-singer", a, X, y), rel=1e-9)
    assert model.result_.primal == pytest.approx(
        optima.primal("crammer-singer", model.coef_, X, y, model.costs_), rel=1e-9
    )


@threads
def test_the_same_seed_and_threads_give_the_same_bits_and_one_thread_is_the_default(n_jobs):
    X, y = sorted_clouds(5000)
    first, second = (svc(tol=1e-5, n_jobs=n_jobs).fit(X, y) for _ in range(2))
    assert np.array_equal(first.coef_, second.coef_)
    assert (first.dual_coef_ != second.dual_coef_).nnz == 0
    assert first.result_.operations == second.result_.operations
    X, y = sorted_clouds(2000)
    assert np.array_equal(svc(n_jobs=1).fit(X, y).coef_, svc().fit(X, y).coef_)


@threads
def test_fewer_rows_than_threads_will_do(n_jobs):
    X, y = np.array([[1.0], [-1.0]]), np.array([0, 1])
    assert svc(n_jobs=n_jobs).fit(X, y).score(X, y) == 1
    X, y = np.repeat(np.eye(2), 200, axis=0) * 3, np.repeat([0, 1], 200)
    X[2:200] = X[202:] = 0  # two rows act
    assert svc(n_jobs=n_jobs, tol=1e-7).fit(X, y).result_.relative_gap <= 1e-7


@threads
def test_many_classes_and_those_of_a_path_come_to_the_same_optimum(n_jobs):
    X, y = sorted_clouds(6000, classes=70, features=8)
    assert_agree(*(svc(tol=1e-3, n_jobs=jobs).fit(X, y).result_ for jobs in (n_jobs, 1)), 1e-3)
    X, y = sorted_clouds(2000)
    for one, many in zip(*(svc(tol=1e-7, n_jobs=jobs).path(X, y, [0.1, 1.0]) for jobs in (1, n_jobs)), strict=True):
        assert many.result_.primal == pytest.approx(one.result_.primal, rel=1e-6)


@threads
def test_a_fit_that_goes_on_from_a_checkpoint_ends_with_the_same_bits(n_jobs, tmp_path):
    X, y = sorted_clouds(4000)
    whole = svc(tol=1e-6, n_jobs=n_jobs).fit(X, y)
    with pytest.warns(TrainingWarning):
        svc(tol=1e-6, n_jobs=n_jobs, max_iter=4).fit(X, y, checkpoint=tmp_path / "fit", every=0)
    resumed = svc(tol=1e-6, n_jobs=n_jobs).fit(X, y, checkpoint=tmp_path / "fit", resume=True)
    assert np.array_equal(resumed.coef_, whole.coef_)
