"""MCSVM as published: whatever is switched on, the rounds keep the constraints and end at the optimum."""

import contextlib
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from larank import _core
from larank.blocks import provider_for
from larank.blocks.kernels import kernel_for
from larank.declare import parameters_of
from larank.kernel.problem import Problem
from larank.kernel.published import Published, PublishedTraining
from larank.training import Limits, completed, train
from larank.training.progress import Progress
from properties import draws
from references.optima import infeasibility, kernel_optimum
from sessions import hooks

PLENTY = 2.0**40
COOLING, ROW_SOLVERS = (parameters_of(Published)[name].choices for name in ("cooling", "row_solver"))
BASE_LINE = {"selection": "cycle", "active_set": False, "cooling": "none"}
IMPROVEMENTS = [
    {"active_set": False, "cooling": "none"},
    *({"active_set": True, "cooling": cooling} for cooling in COOLING),
]

sizes = {"n": st.integers(4, 12), "k": st.integers(2, 5), "seed": st.integers(0, 10**6)}
costs = st.sampled_from([0.01, 1.0, 100.0])
row_solvers = st.sampled_from(ROW_SOLVERS)


def problem(n, k, seed, C=1.0):
    """Few directions, duplicates, zero rows, examples without cost and, half of the time, margins of all sizes."""
    random = np.random.default_rng(seed)
    points = max(2, 2 * n // 3)
    X = random.normal(size=(points, 2))[random.integers(0, points, n)]
    X[random.random(n) < 0.1] = 0
    labels = random.permutation(np.concatenate([np.arange(k), random.integers(0, k, n)])[:n]).astype(np.int32)
    weights = C * random.uniform(0.5, 2, n) * (random.random(n) > 0.1)
    weights[0] = C
    delta = np.ones((k, k)) - np.eye(k)
    if seed % 2:
        delta *= random.uniform(0.2, 3, (k, k))
    return Problem(X @ X.T, labels, weights, k, delta, "crammer-singer")


def clusters(n=90, k=4):
    random, labels = np.random.default_rng(0), (np.arange(n) % k).astype(np.int32)
    X = np.abs(random.normal(size=(n, 6)) + 1.5 * np.eye(k, 6)[labels]) * (random.random((n, 6)) < 0.6)
    return Problem(X, labels, np.full(n, 3.0), k, np.ones((k, k)) - np.eye(k), "crammer-singer")


def training(problem, memory_limit=PLENTY, kernel="precomputed", **switches):
    chosen = kernel_for(kernel, gamma=0.5, X=problem.X)
    return PublishedTraining(Published(**switches), problem, provider_for(chosen, problem.X), memory_limit)


def finished(session, passes=2e5):
    while not session.advance():
        assert session.iterations() < passes, "training does not end"
    return session


class Rounds:
    """A source of rows that stops a session at its choice, once for every round."""

    def __init__(self, K):
        self.K, self.is_known = K, False

    def rows(self, examples):
        self.chosen = int(examples[0])
        if not self.is_known:
            raise InterruptedError
        return np.ascontiguousarray(self.K[examples])


def rounds_of(problem, **switches):
    """The first rounds of a compiled session without a cache: the example it chose, and the session before its step."""
    usual = {"row_solver": "exact", "selection": "kkt", "active_set": False, "cooling": "none", "epsilon": 1e-4}
    session = _core.Mcsvm64(
        problem.labels,
        problem.costs,
        np.ascontiguousarray(problem.X.diagonal()),
        problem.delta,
        cache=False,
        cache_bytes=0,
        **{**usual, **switches},
    )
    rounds = Rounds(problem.X)
    for _ in range(300):
        with contextlib.suppress(InterruptedError):
            session.run(1, rounds)  # up to the choice of an example
        if session.is_done:
            return
        yield rounds.chosen, session
        rounds.is_known = True
        session.run(1, rounds)
        rounds.is_known = False


def violations(problem, session):
    """Psi of every example, [mcsvm] (32), from the coefficients alone."""
    beta, psi = session.coefficients(), np.full(len(problem.labels), -np.inf)
    F = problem.X @ beta - (1 - problem.delta[problem.labels])
    for i, label in enumerate(problem.labels):
        bounds = np.where(np.arange(problem.n_classes) == label, problem.costs[i], 0.0)
        if problem.costs[i] > 0:
            psi[i] = F[i].max() - F[i][beta[i] < bounds].min()
    return psi


@given(**sizes, C=st.sampled_from([0.01, 1.0, 10.0]), row_solver=row_solvers)
def test_every_version_ends_at_the_optimum_of_a_general_solver(n, k, seed, C, row_solver):
    at = problem(n, k, seed, C)
    best = kernel_optimum(at.X, at.labels, at.costs, at.delta)
    for switches in IMPROVEMENTS:
        session = finished(training(at, row_solver=row_solver, epsilon=1e-7, **switches))
        reached = completed(session.evaluate())
        assert reached.dual == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert reached.primal == pytest.approx(best, rel=1e-6, abs=1e-6 * at.costs.sum())
        assert reached.violation < 1e-6
        assert (session.coefficients[at.costs == 0] == 0).all()


@draws(10)
@given(**sizes, C=st.sampled_from([0.01, 1.0]), row_solver=row_solvers)
def test_all_in_turn_never_ends_and_comes_close(n, k, seed, C, row_solver):
    at = problem(n, k, seed, C)
    session = training(at, row_solver=row_solver, **BASE_LINE)
    while session.iterations() < 2000:
        assert not session.advance()
    best = kernel_optimum(at.X, at.labels, at.costs, at.delta)
    loose = 0.02 if row_solver == "fixed-point" else 1e-3  # half of epsilon is the accuracy of the rows
    assert completed(session.evaluate()).dual == pytest.approx(best, rel=loose)


@given(k=st.integers(2, 8), seed=st.integers(0, 10**6), C=costs)
def test_both_row_solvers_agree_on_one_row(k, seed, C):
    random = np.random.default_rng(seed)
    delta = random.uniform(0, 2, (k, k)) * (1 - np.eye(k))
    at = Problem(
        np.array([[random.uniform(0.01, 5)]]), np.zeros(1, np.int32), np.array([C]), k, delta, "crammer-singer"
    )
    beta = [finished(training(at, row_solver=name, epsilon=1e-10)).coefficients for name in ROW_SOLVERS]
    np.testing.assert_allclose(*beta, atol=1e-8 * C)


def test_half_of_the_accuracy_asked_for_saves_iterations_of_the_fixed_point():
    sessions = (finished(training(clusters(), kernel="rbf", epsilon=epsilon)) for epsilon in (0.5, 0.05, 0.005))
    used = [session.operations["fixed_point_iterations"] for session in sessions]
    assert used[0] < used[1] < used[2]


@given(**sizes, C=costs, row_solver=row_solvers, epsilon=st.sampled_from([0.9, 0.1, 1e-3]))
def test_the_dual_never_falls_and_the_constraints_hold_after_every_round(n, k, seed, C, row_solver, epsilon):
    at = problem(n, k, seed, C)
    for switches in IMPROVEMENTS:
        reached = 0.0
        for _, session in rounds_of(at, row_solver=row_solver, epsilon=epsilon, **switches):
            beta = session.coefficients()
            assert infeasibility("crammer-singer", beta, at.labels, at.costs) <= 1e-13
            assert (beta[at.costs == 0] == 0).all()
            value = -(at.delta[at.labels] * beta).sum() - 0.5 * (beta * (at.X @ beta)).sum()
            assert value >= reached - 1e-12 * max(1.0, reached)
            reached = value


@given(**sizes, C=costs)
def test_the_example_with_the_largest_violation_is_chosen(n, k, seed, C):
    at = problem(n, k, seed, C)
    for chosen, session in rounds_of(at):
        psi = violations(at, session)
        scale = max(1.0, np.abs(hooks.scores(session)).max())
        np.testing.assert_allclose(hooks.violations(session), psi, atol=1e-9 * scale)
        assert psi[chosen] >= psi.max() - 1e-9 * scale


@given(**sizes, C=costs, cooling=st.sampled_from(COOLING))
def test_others_are_chosen_only_when_the_active_set_is_exhausted(n, k, seed, C, cooling):
    at = problem(n, k, seed, C)
    for chosen, session in rounds_of(at, active_set=True, cooling=cooling):
        psi, active = violations(at, session), session.coefficients().any(axis=1)
        scale = 1e-9 * max(1.0, np.abs(hooks.scores(session)).max())
        among = psi[active] if active[chosen] else psi
        assert psi[chosen] >= max(among.max(), hooks.accuracy(session)) - scale
        if not active[chosen]:
            assert (psi[active] < hooks.accuracy(session) + scale).all()


@pytest.mark.parametrize("cooling", COOLING)
def test_the_accuracy_falls_from_the_warmest_and_ends_at_epsilon(cooling):
    at = problem(12, 4, 2)
    seen = [hooks.accuracy(session) for _, session in rounds_of(at, active_set=True, cooling=cooling, epsilon=0.01)]
    assert (np.diff(seen) <= 0).all()
    assert seen[0] == (0.01 if cooling == "none" else 0.999)
    assert seen[-1] >= 0.01
    ladder = {"exponential": lambda t: 0.999 * math.exp(-t), "linear": lambda t: 0.999 / (t + 1)}
    if cooling in ladder:
        steps = np.array([max(0.01, ladder[cooling](t)) for t in range(200)])
        assert all(np.isclose(steps, accuracy, rtol=1e-12).any() for accuracy in seen)


def test_cooling_saves_rounds():
    at = clusters(200)
    none, *cooled = (
        finished(training(at, kernel="rbf", epsilon=0.01, cooling=cooling)).operations["rounds"] for cooling in COOLING
    )
    assert all(rounds < none / 2 for rounds in cooled)


@pytest.mark.parametrize("row_solver", ROW_SOLVERS)
def test_the_cache_does_not_change_the_result(row_solver):
    at = clusters(60)
    at = replace(at, X=np.exp(-0.5 * ((at.X[:, None] - at.X) ** 2).sum(axis=2)))
    three_rows = 2 * 8 * 60 * 4 + 3 * 8 * 60  # with the state of the session
    ways = [{}, {"memory_limit": three_rows}, {"memory_limit": 0.0}, {"cache": False}]
    sessions = [finished(training(at, row_solver=row_solver, epsilon=0.01, **way)) for way in ways]
    for other in sessions[1:]:
        np.testing.assert_array_equal(other.coefficients, sessions[0].coefficients)
    counts = [session.operations for session in sessions]
    rows = [count["kernel_rows"] for count in counts]
    assert rows == sorted(rows)
    assert rows[0] <= 60
    assert rows[0] < rows[1]
    assert all(count["kernel_rows"] + count["cache_hits"] == count["rounds"] for count in counts)
    assert counts[-1]["cache_hits"] == 0
    assert [hooks.cached_rows(session._session) for session in sessions[1:3]] == [3, 1]


def test_a_callable_kernel_on_objects_is_called_piece_by_piece():
    at = clusters(150)
    largest = []

    def product(left, right):
        largest.append(max(len(left), len(right)))
        return np.array(left) @ np.array(right).T

    session = finished(training(replace(at, X=[tuple(row) for row in at.X]), kernel=product, epsilon=1e-5))
    assert max(largest[: len(largest) // 2]) <= 64
    same = finished(training(at, kernel="linear", epsilon=1e-5))
    assert completed(session.evaluate()).dual == pytest.approx(completed(same.evaluate()).dual, rel=1e-6)


def test_what_is_estimated_on_the_way_is_what_is_evaluated_and_changes_no_round():
    at = clusters()
    session, watched = (training(at, kernel="rbf", epsilon=0.01) for _ in range(2))
    assert not watched.scores(at.X).any()
    assert completed(watched.evaluate()).primal == pytest.approx(at.costs.sum())
    while not watched.advance():
        seen, exact = watched.estimate(), completed(watched.evaluate())
        assert (seen.primal, seen.dual) == pytest.approx((exact.primal, exact.dual), rel=1e-9)
        assert seen.violation == pytest.approx(exact.violation, abs=1e-9)
        assert watched.estimate() is None, "nothing is new"
    np.testing.assert_array_equal(finished(session).coefficients, watched.coefficients)


def test_all_in_turn_ends_by_the_limit_on_passes():
    session = training(clusters(), kernel="rbf", **BASE_LINE)
    outcome = train(session, Limits(gap=None, max_iter=3, time_limit=None), Progress())
    assert outcome.status == "max_iter"
    assert 3 <= outcome.history[-1].iterations < 3.2
    assert session.operations["rounds"] == round(outcome.history[-1].iterations * 90)


@pytest.mark.parametrize("row_solver", ROW_SOLVERS)
def test_a_negative_diagonal_takes_coefficients_to_their_bounds(row_solver):
    at = clusters()
    blocks = provider_for(kernel_for("sigmoid", gamma=0.01, coef0=-3.0, X=at.X), at.X)
    _, beta = finished(PublishedTraining(Published(row_solver=row_solver), at, blocks, PLENTY)).support()
    assert len(beta)
    assert np.isin(np.abs(beta), [0, *at.costs]).all()
