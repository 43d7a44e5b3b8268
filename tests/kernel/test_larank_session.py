"""The compiled LaRank sessions, fed by hand: every step keeps the dual problem's promises, whatever the memory."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from larank.blocks import provider_for
from larank.blocks.kernels import kernel_for
from larank.kernel.stream import Examples, KernelFeed
from references.optima import kernel_certificate
from sessions import ALL, PLENTY, Drive, hooks, in_order_of_arrival, linear_session, problem
from sessions import larank_session as session

SCHEDULES = ["adaptive", "fixed"]


def assert_feasible(drive):
    table = drive.session.table()
    ids, labels, costs, beta = table.ids, table.labels, table.costs, table.coefficients
    np.testing.assert_array_equal(labels, drive.labels[ids])
    np.testing.assert_array_equal(costs, drive.costs[ids])
    np.testing.assert_array_equal(table.diagonal, drive.K[ids, ids])
    assert len(set(ids.tolist())) == len(ids) == drive.session.support_patterns
    assert len(beta) == hooks.support_vectors(drive.session)
    assert (np.diff(table.starts) >= 2).all(), "a pattern has at least two coefficients or none"
    owner = np.repeat(np.arange(len(ids)), np.diff(table.starts))
    own = table.columns == labels[owner]
    assert (beta[own] > 0).all()
    assert (beta[own] <= costs[owner[own]]).all()
    assert (beta[~own] < 0).all()
    assert (np.abs(np.bincount(owner, beta, minlength=len(ids))) <= 1e-14 * costs).all()
    np.testing.assert_array_equal(np.flatnonzero(hooks.slot_ids(drive.session) >= 0), table.slots)


sizes = st.tuples(st.integers(2, 60), st.integers(2, 6), st.integers(0, 10**6), st.sampled_from([1, 2, 5]))


@given(sizes, st.sampled_from([0.01, 0.3, 10.0]), st.sampled_from(SCHEDULES), st.integers(1, 70))
def test_the_dual_never_decreases_and_the_constraints_hold_after_every_example(size, C, schedule, block):
    n, k, seed, dimensions = size
    K, labels = problem(n, k, seed, dimensions, points=max(2, 2 * n // 3))
    labels = in_order_of_arrival(labels)
    costs = C * np.random.default_rng(seed).uniform(0.5, 2, n)
    reached = [0.0]

    def look(drive):
        assert_feasible(drive)
        reached.append(drive.session.dual)

    drive = Drive(session(schedule=schedule), K, labels, costs, block, look=look)
    for _ in range(3):
        drive.epoch(np.random.default_rng(seed).permutation(n))
        assert drive.session.loss >= 0
        drive.session.begin_another_epoch()
    assert (np.diff(reached) >= -1e-12 * max(reached)).all()
    beta, norm = drive.beta(), drive.session.half_squared_norm
    primal, dual, _ = kernel_certificate(beta, K, labels, costs, 1 - np.eye(int(labels.max()) + 1))
    assert drive.session.dual == pytest.approx(dual, rel=1e-9, abs=1e-12)
    assert norm == pytest.approx(0.5 * (beta * (K @ beta)).sum(), abs=1e-9 * C)
    assert primal >= dual - 1e-9 * abs(dual)


def test_patterns_leave_and_their_slots_are_used_again():
    K, labels = problem(200, 3, seed=1)
    seen = set()
    drive = Drive(session(), K, in_order_of_arrival(labels), np.full(200, 100.0), block=16)
    drive.look = lambda d: seen.update(hooks.slot_ids(d.session).tolist())
    drive.epoch()
    assert len(seen - {-1}) > drive.session.slots
    assert drive.session.support_patterns < len(seen - {-1})


class Watched:
    """A session, and the bytes that it holds before each use, which are those after the one before."""

    def __init__(self, session):
        self.session, self.bytes = session, []

    def __getattr__(self, name):
        self.bytes.append(self.session.bytes)
        return getattr(self.session, name)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("share", [0.25, 0.5])
def test_the_memory_limit_is_never_exceeded_while_a_feed_works_either(jobs, share):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 6))
    labels = in_order_of_arrival(random.integers(0, 4, 200))
    kernel = kernel_for("rbf", gamma=0.2, X=X)

    def run(limit):
        watched, blocks = Watched(session(memory_limit=limit)), provider_for(kernel, X, n_jobs=jobs)
        for _ in range(2):
            parts = np.array_split(np.arange(200), 20)
            stream = (Examples(X[part], part, labels[part], np.full(len(part), 2.0)) for part in parts)
            with blocks.threads():
                feed = KernelFeed(watched, blocks, stream)
                while feed.advance(3):
                    pass
                feed.flush()
        return watched, watched.dual

    free, expected = run(PLENTY)
    limit = int(share * max(free.bytes))
    tight, dual = run(limit)
    assert dual == pytest.approx(expected, rel=0.02)
    assert max(tight.bytes) <= limit
    assert hooks.keeps_sets(free.session)
    assert not hooks.keeps_sets(tight.session)


def trained(**settings):
    K, labels = problem(80, 3)
    return Drive(session(**settings), K, in_order_of_arrival(labels), np.ones(80)).epoch().session


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("operations", [["new"], ["new", "old"], ["new", "optimize"], ALL])
def test_only_the_operations_allowed_are_carried_out(schedule, operations):
    made = trained(schedule=schedule, operations=operations).counters.operations
    assert [name for name, count in zip(ALL, made, strict=True) if count > 0] == operations
    assert made[0] == 80


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_the_fixed_schedule_repeats_its_reprocessing_after_every_example(rounds):
    new, old, optimize = trained(schedule="fixed", n_reprocess=rounds).counters.operations
    assert new == 80
    # Nothing can be reprocessed before the first pattern, nor after the last example.
    assert rounds * 70 <= old == optimize <= rounds * 80


def test_violations_up_to_tau_are_left_alone():
    K, labels = problem(60, 3)
    drive = Drive(session(tau=1.5), K, in_order_of_arrival(labels), np.ones(60)).epoch()
    assert drive.session.support_patterns == 0
    drive.session.set_tau(0.1)
    assert drive.epoch().session.support_patterns > 0


averaging = partial(linear_session, averages=True)


def train(linear, X, labels, rows, *values, intercept=False):
    """Process these rows, which are `values` if they are not dense."""
    lengths = (X[rows].astype(float) ** 2).sum(axis=1)
    linear.feed(*(values or (X[rows],)), rows, labels[rows], np.ones(len(rows)), lengths + intercept)
    linear.run(len(rows))


def weights(table, X, k):
    """Return the weights that the coefficients of a table make of its examples."""
    W = np.zeros((k, X.shape[1]))
    np.add.at(W, table.columns, table.coefficients[:, None] * X[np.repeat(table.ids, np.diff(table.starts))])
    return W


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 9, 33])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_weights_of_a_linear_session_are_its_coefficients_times_the_examples(dtype, k, intercept):
    random = np.random.default_rng(k)
    X = random.normal(size=(150, 7)).astype(dtype)
    labels = in_order_of_arrival(random.integers(0, k, 150))
    linear = linear_session(dtype, intercept=intercept)
    for part in np.array_split(np.arange(150), 10):
        train(linear, X, labels, part, intercept=intercept)
    table = linear.table()
    W = weights(table, np.column_stack([X, np.ones(150)]) if intercept else X, k)
    np.testing.assert_allclose(linear.weights(), W[: linear.classes], atol=1e-4 if dtype == np.float32 else 1e-12)
    values, columns, begins = linear.patterns(table.slots)
    assert columns is None
    np.testing.assert_array_equal(values.reshape(len(table.ids), 7), X[table.ids])
    np.testing.assert_array_equal(np.diff(begins), 7)


def test_a_slot_of_a_linear_session_may_hold_sparse_and_then_dense_rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 2)) * (random.random((400, 2)) < 0.6)
    labels = in_order_of_arrival((X @ random.normal(size=(2, 3))).argmax(axis=1))
    linear = linear_session(features=2)
    for number, part in enumerate(np.array_split(np.arange(400), 40)):
        rows = sparse.csr_matrix(X[part])
        values = (rows.data, rows.indices, rows.indptr.astype(np.int64), 2) if number % 2 else ()
        train(linear, X, labels, part, *values)
    assert linear.slots < 380, "slots were used again"
    table = linear.table()
    kept = sparse.csr_matrix(linear.patterns(table.slots), shape=(len(table.ids), 2)).toarray()
    np.testing.assert_array_equal(kept, X[table.ids])
    np.testing.assert_allclose(linear.weights(), weights(table, X, 3), atol=1e-12)


def noisy_rows(n, k, features=7):
    random = np.random.default_rng(k)
    X = random.normal(size=(n, features))
    return X, in_order_of_arrival((X @ random.normal(size=(features, k)) + random.gumbel(size=(n, k))).argmax(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_in_the_average_of_weights_those_after_s_examples_count_like_the_15th_power_of_s(dtype):
    X, labels = noisy_rows(600, 3)
    linear, average = averaging(dtype, schedule="fixed", n_reprocess=50), np.zeros((3, 7))
    for i in range(600):  # so much work between them that there is a look after every one
        train(linear, X.astype(dtype), labels, np.array([i]))
        W = np.zeros((3, 7))
        W[: linear.classes] = linear.weights()
        average += (1 - (i / (i + 1)) ** 16) * (W - average)
    assert np.linalg.norm(W - average) > 0.1
    np.testing.assert_allclose(linear.averaged_weights(), average, atol=1e-12 if dtype == np.float64 else 1e-4)


def test_the_average_of_weights_does_not_depend_on_how_often_it_is_asked_for_nor_on_finishing():
    X, labels = noisy_rows(300, 5)
    whole, parts = averaging(), averaging()
    train(whole, X, labels, np.arange(300))
    for rows in np.array_split(np.arange(300), 60):
        train(parts, X, labels, rows)
        before = parts.averaged_weights()
        parts.finish()
        parts.go_on()
        np.testing.assert_array_equal(parts.averaged_weights(), before)
    np.testing.assert_array_equal(parts.averaged_weights(), whole.averaged_weights())


def test_an_average_of_weights_goes_on_from_a_snapshot_and_from_itself():
    X, labels = noisy_rows(400, 9)  # the ninth class needs more lanes
    linear, read, taken = averaging(), averaging(), averaging()
    train(linear, X, labels, np.arange(300))
    read.read_snapshot(linear.snapshot())
    slots, ids = read.present()
    read.feed(X[ids], ids, labels[ids], np.ones(len(ids)), (X[ids] ** 2).sum(axis=1))
    read.take_patterns(slots)
    for some in (linear, read):
        train(some, X, labels, np.arange(300, 400))
    np.testing.assert_array_equal(read.averaged_weights(), linear.averaged_weights())
    for _ in range(9):
        taken.add_class()
    taken.set_average(linear.averaged_weights(), 400)
    np.testing.assert_array_equal(taken.averaged_weights(), linear.averaged_weights())


def test_without_an_average_the_weights_are_the_last_ones():
    linear = linear_session()
    train(linear, *noisy_rows(100, 3), np.arange(100))
    assert not linear.averages
    np.testing.assert_array_equal(linear.averaged_weights(), linear.weights())


def test_weston_watkins_coefficients_that_reach_their_bound_are_exactly_there():
    K, labels = problem(200, 4, seed=0)
    drive = Drive(session(), K, in_order_of_arrival(labels), np.random.default_rng(0).uniform(0.1, 2.0, 200))
    drive.session.set_formulation("weston-watkins")
    for _ in range(5):
        drive.epoch()
        drive.session.begin_another_epoch()
    table = drive.session.table()
    counts = np.diff(table.starts)
    is_wrong = table.columns != np.repeat(table.labels, counts)
    wrong, bounds = table.coefficients[is_wrong], -np.repeat(table.costs, counts)[is_wrong]
    is_there = np.abs(wrong - bounds) < 1e-12
    assert is_there.sum() > 20
    np.testing.assert_array_equal(wrong[is_there], bounds[is_there])


def test_the_loss_of_weston_watkins_is_the_sum_over_the_wrong_classes_known_by_then():
    K, labels = problem(30, 4, seed=0)
    labels = in_order_of_arrival(labels)
    drive = Drive(session(tau=10.0), K, labels, np.full(30, 0.5))  # no step is taken, so all scores are zero
    drive.session.set_formulation("weston-watkins")
    drive.epoch()
    assert drive.session.loss == pytest.approx(0.5 * np.maximum.accumulate(labels).sum())
