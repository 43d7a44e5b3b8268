"""The compiled LaRank sessions, fed by hand: every step keeps the dual problem's promises, whatever the memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from larank import _core
from larank.blocks import provider_for
from larank.blocks.kernels import kernel_for
from larank.kernel.stream import Examples, KernelFeed
from reference import kernel_certificate

PLENTY = 2**40


def session(dtype=np.float64, memory_limit=PLENTY, **settings):
    kind = _core.KernelLaRank32 if dtype == np.float32 else _core.KernelLaRank64
    usual = {"adaptive": True, "n_reprocess": 1, "operations": [True] * 3, "tau": 0.01, "seed": 7}
    return kind(**{**usual, **settings}, memory_limit=memory_limit)


def problem(n, k, seed=0, dimensions=2, points=None):
    """Kernel values with few directions, so that patterns come and go; `points` below n makes duplicates."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(points or n, dimensions))[random.integers(0, points or n, n)]
    X[random.random(n) < 0.1] = 0
    labels = random.integers(0, k, n).astype(np.int32)
    return X @ X.T, np.unique(labels, return_inverse=True)[1].astype(np.int32)


def in_order_of_arrival(labels):
    _, firsts, codes = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(firsts)).astype(np.int32)[codes]


class Drive:
    """Feeds a matrix of kernel values to a session and looks at it after every call."""

    def __init__(self, session, K, labels, costs, block=8, junk=0.0, look=lambda drive: None):
        self.session, self.K, self.labels, self.costs = session, K, labels, costs
        self.block, self.junk, self.look = block, junk, look
        self.rounds = 0  # in which rows had to be computed again

    def epoch(self, order=None, step=1):
        order = np.arange(len(self.labels)) if order is None else order
        for first in range(0, len(order), self.block):
            ids = order[first : first + self.block].astype(np.int64)
            self.session.feed(
                self.columns(ids, self.session.slots + len(ids)),
                np.ascontiguousarray(self.K[np.ix_(ids, ids)]),
                ids,
                self.labels[ids],
                self.costs[ids],
                self.K[ids, ids].astype(np.float64),
            )
            self.look(self)
            for end in range(step, len(ids) + step, step):
                while not self.session.run(min(end, len(ids))):
                    self.rounds += 1
                    self.look(self)
                    present = self.session.slot_ids()
                    needed = self.session.needed
                    self.session.provide(needed, self.columns(present[needed], len(present)))
                    self.look(self)
                self.look(self)
        return self

    def columns(self, ids, width):
        present = self.session.slot_ids()
        values = np.full((len(ids), width), self.junk, self.K.dtype)
        values[:, : len(present)][:, present >= 0] = self.K[np.ix_(ids, present[present >= 0])]
        return values

    def beta(self):
        _, ids, _, _, _, beta, classes, starts = self.session.table()
        dense = np.zeros((len(self.labels), max(int(self.labels.max()) + 1, self.session.classes)))
        dense[np.repeat(ids, np.diff(starts)), classes] = beta
        return dense


def assert_feasible(drive):
    slots, ids, labels, costs, diagonal, beta, classes, starts = drive.session.table()
    np.testing.assert_array_equal(labels, drive.labels[ids])
    np.testing.assert_array_equal(costs, drive.costs[ids])
    np.testing.assert_array_equal(diagonal, drive.K[ids, ids])
    assert len(set(ids.tolist())) == len(ids) == drive.session.support_patterns
    assert len(beta) == drive.session.support_vectors
    assert (np.diff(starts) >= 2).all(), "a pattern has at least two coefficients or none"
    assert (beta != 0).all()
    owner = np.repeat(np.arange(len(ids)), np.diff(starts))
    own = classes == labels[owner]
    assert (beta[own] > 0).all()
    assert (beta[own] <= costs[owner[own]]).all()
    assert (beta[~own] < 0).all()
    sums = np.bincount(owner, beta, minlength=len(ids)) if len(ids) else np.zeros(0)
    assert (np.abs(sums) <= 1e-14 * costs).all()
    np.testing.assert_array_equal(np.flatnonzero(drive.session.slot_ids() >= 0), slots)


sizes = st.tuples(st.integers(2, 60), st.integers(2, 6), st.integers(0, 10**6), st.sampled_from([1, 2, 5]))


@given(sizes, st.sampled_from([0.01, 0.3, 10.0]), st.booleans(), st.integers(1, 70))
def test_the_dual_never_decreases_and_the_constraints_hold_after_every_example(size, C, adaptive, block):
    n, k, seed, dimensions = size
    K, labels = problem(n, k, seed, dimensions, points=max(2, 2 * n // 3))
    labels = in_order_of_arrival(labels)
    costs = C * np.random.default_rng(seed).uniform(0.5, 2, n)
    reached = [0.0]

    def look(drive):
        assert_feasible(drive)
        reached.append(drive.session.dual)

    drive = Drive(session(adaptive=adaptive), K, labels, costs, block, look=look)
    for _ in range(3):
        drive.epoch(np.random.default_rng(seed).permutation(n))
        assert drive.session.loss >= 0
        drive.session.begin_another_epoch()
    assert (np.diff(reached) >= -1e-12 * max(reached)).all()
    plain = 1 - np.eye(int(labels.max()) + 1)
    primal, dual, _ = kernel_certificate(drive.beta(), K, labels, costs, plain)
    assert drive.session.dual == pytest.approx(dual, rel=1e-9, abs=1e-12)
    assert drive.session.half_squared_norm == pytest.approx(
        0.5 * (drive.beta() * (K @ drive.beta())).sum(), abs=1e-9 * C
    )
    assert primal >= dual - 1e-9 * abs(dual)


@given(sizes, st.sampled_from([0.05, 1.0]), st.sampled_from([np.float32, np.float64]))
def test_values_in_free_slots_and_the_size_of_blocks_do_not_matter(size, C, dtype):
    n, k, seed, dimensions = size
    K, labels = problem(n, k, seed, dimensions)
    labels, costs, K = in_order_of_arrival(labels), np.full(n, C), K.astype(dtype)
    drives = [Drive(session(dtype), K, labels, costs, block, junk) for block, junk in ((1, 0), (7, 1e6), (n, -3e4))]
    tables = [drive.epoch(step=3).epoch().session.table() for drive in drives]
    for other in tables[1:]:
        for one, same in zip(tables[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


def test_patterns_leave_and_their_slots_are_used_again():
    K, labels = problem(200, 3, seed=1)
    seen = set()
    drive = Drive(session(), K, in_order_of_arrival(labels), np.full(200, 1.0), block=16)
    drive.look = lambda d: seen.update(d.session.slot_ids().tolist())
    drive.epoch()
    assert len(seen - {-1}) > drive.session.slots
    assert drive.session.support_patterns < len(seen - {-1})


# Memory


def smallest_limit(K, labels, costs):
    """A limit at which one row of kernel values is about all there is room for."""
    free = Drive(session(), K, labels, costs).epoch().epoch()
    limit = free.session.bytes
    while True:
        try:
            Drive(session(memory_limit=int(limit * 0.9)), K, labels, costs).epoch().epoch()
        except ValueError:
            return int(limit)
        limit *= 0.9


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("block", [1, 5, 64])
def test_rows_that_were_dropped_are_asked_for_again_and_the_model_stays_the_same(block, adaptive):
    K, labels = problem(120, 4, seed=3, dimensions=6)
    labels, costs = in_order_of_arrival(labels), np.full(120, 1.0)
    free = Drive(session(adaptive=adaptive), K, labels, costs, block=block).epoch().epoch()
    assert free.session.keeps_sets
    assert free.rounds == 0
    limit = smallest_limit(K, labels, costs)
    for factor in (1, 1.5, 3):
        tight = Drive(session(adaptive=adaptive, memory_limit=int(limit * factor)), K, labels, costs, block)
        tight.epoch().epoch()
        assert not tight.session.keeps_sets
        assert tight.session.resident_rows < tight.session.support_patterns
        assert tight.rounds > 10
        assert tight.session.dual == free.session.dual
        for one, same in zip(free.session.table(), tight.session.table(), strict=True):
            np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize("share", [0.2, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("block", [1, 16, 128])
def test_the_memory_limit_is_never_exceeded(share, block):
    K, labels = problem(200, 4, seed=3, dimensions=8)
    labels, costs = in_order_of_arrival(labels), np.full(200, 1.0)
    limit = int(share * Drive(session(), K, labels, costs).epoch().session.bytes)
    peak = []
    drive = Drive(session(memory_limit=limit), K, labels, costs, block, look=lambda d: peak.append(d.session.bytes))
    drive.epoch().epoch()
    assert max(peak) <= limit


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("share", [0.25, 0.5])
def test_the_memory_limit_is_never_exceeded_while_a_feed_works_either(jobs, share):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 6))
    labels = in_order_of_arrival(random.integers(0, 4, 200))
    kernel = kernel_for("rbf", gamma=0.2, X=X)

    class Watched:
        def __init__(self, session):
            self.session, self.bytes = session, []

        def __getattr__(self, name):
            attribute = getattr(self.session, name)
            if not callable(attribute):
                return attribute

            def call(*arguments):
                result = attribute(*arguments)
                self.bytes.append(self.session.bytes)
                return result

            return call

    def run(limit):
        watched = Watched(session(memory_limit=limit))
        blocks = provider_for(kernel, X, n_jobs=jobs)
        ids = np.arange(200)
        for _ in range(2):
            stream = (
                Examples(X[part], part, labels[part], np.full(len(part), 2.0)) for part in np.array_split(ids, 20)
            )
            with blocks.threads():
                feed = KernelFeed(watched, blocks, stream)
                while feed.advance(3):
                    pass
                feed.close()
        return watched

    free = run(PLENTY)
    limit = int(share * max(free.bytes))
    tight = run(limit)
    assert tight.session.dual == pytest.approx(free.session.dual, rel=0.02)
    assert max(tight.bytes) <= limit


def test_a_limit_below_one_row_says_what_would_do():
    K, labels = problem(50, 3)
    drive = Drive(session(memory_limit=1000), K, in_order_of_arrival(labels), np.ones(50))
    with pytest.raises(ValueError, match=r"memory_limit must be at least \d+ bytes .*, got 1000"):
        drive.epoch()


# Operations


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("operations", [[True, False, False], [True, True, False], [True, False, True], [True] * 3])
def test_only_the_operations_allowed_are_carried_out(adaptive, operations):
    K, labels = problem(80, 3)
    drive = Drive(session(adaptive=adaptive, operations=operations), K, in_order_of_arrival(labels), np.ones(80))
    drive.epoch()
    made = drive.session.counters.operations
    assert [count > 0 for count in made] == operations
    assert made[0] == 80


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_the_fixed_schedule_repeats_its_reprocessing_after_every_example(rounds):
    K, labels = problem(80, 3)
    drive = Drive(session(adaptive=False, n_reprocess=rounds), K, in_order_of_arrival(labels), np.ones(80))
    drive.epoch()
    new, old, optimize = drive.session.counters.operations
    assert new == 80
    # Nothing can be reprocessed before the first pattern, nor after the last example.
    assert rounds * 70 <= old == optimize <= rounds * 80


def test_violations_up_to_tau_are_left_alone():
    K, labels = problem(60, 3)
    drive = Drive(session(tau=1.5), K, in_order_of_arrival(labels), np.ones(60)).epoch()
    assert drive.session.support_patterns == 0
    drive.session.set_tau(0.1)
    assert drive.epoch().session.support_patterns > 0


# Linear sessions


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 9, 33])
def test_the_weights_of_a_linear_session_are_its_coefficients_times_the_examples(dtype, k):
    random = np.random.default_rng(k)
    X = random.normal(size=(150, 7)).astype(dtype)
    labels = in_order_of_arrival(random.integers(0, k, 150))
    kind = _core.LinearLaRank32 if dtype == np.float32 else _core.LinearLaRank64
    linear = kind(adaptive=True, n_reprocess=1, operations=[True] * 3, tau=0.01, seed=0, features=7)
    for part in np.array_split(np.arange(150), 10):
        linear.feed(X[part], part, labels[part], np.ones(len(part)), (X[part].astype(float) ** 2).sum(axis=1))
        assert linear.run(len(part))
    _, ids, _, _, _, beta, classes, starts = linear.table()
    W = np.zeros((k, 7))
    np.add.at(W, classes, beta[:, None] * X[np.repeat(ids, np.diff(starts))])
    np.testing.assert_allclose(linear.weights(), W[: linear.classes], atol=1e-4 if dtype == np.float32 else 1e-12)
    values, columns, begins = linear.patterns()
    assert columns is None
    np.testing.assert_array_equal(values.reshape(len(ids), 7), X[ids])
    np.testing.assert_array_equal(np.diff(begins), 7)


def test_a_slot_of_a_linear_session_may_hold_sparse_and_then_dense_rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 2)) * (random.random((400, 2)) < 0.6)
    labels = in_order_of_arrival((X @ random.normal(size=(2, 3))).argmax(axis=1))
    linear = _core.LinearLaRank64(adaptive=True, n_reprocess=1, operations=[True] * 3, tau=0.01, seed=0, features=2)
    for number, part in enumerate(np.array_split(np.arange(400), 40)):
        rows = sparse.csr_matrix(X[part])
        values = (rows.data, rows.indices, rows.indptr.astype(np.int64), 2) if number % 2 else (X[part],)
        linear.feed(*values, part, labels[part], np.ones(len(part)), (X[part] ** 2).sum(axis=1))
        linear.run(len(part))
    assert linear.slots < 380, "slots were used again"
    _, ids, _, _, _, beta, classes, starts = linear.table()
    values, columns, begins = linear.patterns()
    kept = sparse.csr_matrix((values, columns, begins), shape=(len(ids), 2)).toarray()
    np.testing.assert_array_equal(kept, X[ids])
    W = np.zeros((3, 2))
    np.add.at(W, classes, beta[:, None] * X[np.repeat(ids, np.diff(starts))])
    np.testing.assert_allclose(linear.weights(), W, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": np.arange(3)}, "differ in length"),
        ({"labels": np.array([0, 1, -1, 0], np.int32)}, "labels must not be negative"),
        ({"within": np.ones((3, 4))}, "within must have one row and column per row"),
        ({"kernel": np.ones((4, 3))}, "too few columns"),
    ],
)
def test_blocks_that_do_not_fit_are_refused_and_not_read(change, message):
    block = {
        "kernel": np.ones((4, 4)),
        "within": np.ones((4, 4)),
        "ids": np.arange(4),
        "labels": np.zeros(4, np.int32),
        "costs": np.ones(4),
        "diagonal": np.ones(4),
    }
    with pytest.raises(ValueError, match=message):
        session().feed(**{**block, **change})
    fresh = session()
    with pytest.raises(ValueError, match="fewer examples"):
        fresh.run(1)
    fresh.feed(**block)
    with pytest.raises(ValueError, match="fewer examples"):
        fresh.run(5)
