"""Rounds over partitions against a general QP solver and against the solver of all rows at once."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from test_sdm import clusters, small_problems, svc

from larank.linear.rounds import LinearProblem, LocalExecutor, Partition, Rounds, dual_coefficients, partitions_of
from larank.training import Limits, train
from larank.training.progress import progress_for
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


@settings(max_examples=60)
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
    Z = optima.with_constant(X, intercept)
    _, best = optima.optimum(formulation, Z, labels, C * weight, len(classes))
    if not cooling and outcome.status == "max_iter":  # nothing moves on between phases then: it may take very long
        assert outcome.objectives.dual <= best * (1 + 1e-9) <= outcome.objectives.primal * (1 + 2e-9)
        return
    assert outcome.status == "converged"
    assert outcome.objectives.primal == pytest.approx(best, rel=1e-6)
    assert outcome.objectives.dual == pytest.approx(best, rel=1e-6)


@formulations
@pytest.mark.parametrize("n_partitions", [1, 2, 8, 64])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
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
    weight = np.linspace(0.5, 2, 90)
    model = svc(formulation, class_weight={1: 3.0}, tol=1e-7).fit(X, y, sample_weight=weight)
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
