"""Kernel values that are kept are those of the patterns the slots hold now, or are called missing."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import pairwise

from larank.blocks import DenseProvider, provider_for
from larank.blocks.kernels import kernel_for, kernel_names, with_bias
from larank.blocks.table import KernelTable

PLENTY = 1e9


class NarrowTable(KernelTable):
    """With parts so narrow that a few slots fill several of them."""

    _COLUMNS = 4


class Truth:
    """Examples, slots and all their values, beside the table that may keep some."""

    def __init__(self, examples, seed, dtype=np.float64):
        self.random = np.random.default_rng(seed)
        self.examples = examples
        self.table = NarrowTable(examples, 0, dtype)
        self.values = np.zeros((examples, 0), dtype)

    @property
    def size(self):
        return self.values.shape[1]

    def store(self, slots):
        """Let slots hold other patterns; those in between that never held one have the value zero."""
        slots = np.unique(slots)
        self.values = np.pad(self.values, ((0, 0), (0, max(0, int(slots.max()) + 1 - self.size))))
        self.values[:, slots] = self.random.normal(size=(self.examples, len(slots)))
        self.table.note_arrivals(slots)

    def look(self, ids):
        """What Provider does: bring known rows up to date and multiply, then keep as many others as fit."""
        table = self.table
        known = ids[table.rows_of(ids) >= 0]
        known = known[np.argsort(table.rows_of(known))]
        if len(known):
            rows = table.rows_of(known)
            missing = table.missing(rows, self.size)
            computed = self.values[np.ix_(known, missing)]
            table.put(rows, missing, computed, table.now)
            coefficients = self.random.normal(size=(self.size, 3))
            outside = np.searchsorted(missing, table.columns)
            products = table.products(rows, coefficients) + computed[:, outside:] @ coefficients[missing[outside:]]
            np.testing.assert_allclose(products, self.values[known] @ coefficients, atol=1e-12)
        unknown = ids[table.rows_of(ids) < 0]
        rows = table.new_rows(unknown)
        np.testing.assert_array_equal(table.rows_of(unknown[: len(rows)]), rows)
        assert (table.rows_of(unknown[len(rows) :]) < 0).all()
        if len(rows):
            table.put(rows, np.arange(self.size), self.values[unknown[: len(rows)]], table.now)

    def check(self):
        """What is not called missing is right."""
        table = self.table
        kept = np.flatnonzero(table.rows_of(np.arange(self.examples)) >= 0)
        rows = table.rows_of(kept)
        assert len(np.unique(rows)) == len(rows)
        for some in [*np.split(np.arange(len(kept)), len(kept)), np.arange(len(kept))] if len(kept) else []:
            holds = np.setdiff1d(np.arange(self.size), table.missing(rows[some], self.size))
            taken = np.full((len(some), self.size), np.nan, self.values.dtype)
            table.take(rows[some], taken)
            np.testing.assert_array_equal(taken[:, holds], self.values[np.ix_(kept[some], holds)])


def everything(ids, scores):
    """Say that all rows are to be kept."""
    return np.ones(len(ids), bool)


@given(
    examples=st.integers(1, 20),
    seed=st.integers(0, 10**6),
    limits=st.lists(st.sampled_from([0, 31, 200, 500, 1000, 3000, PLENTY]), min_size=1, max_size=10),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_what_is_kept_is_right_while_memory_stays_or_shrinks(examples, seed, limits, dtype):
    truth = Truth(examples, seed, dtype)
    for limit in sorted(limits, reverse=True):
        for _ in range(2):
            truth.table.stay_within(limit, truth.size)
            # Old slots again, and new ones at the end or a little beyond it.
            truth.store(truth.random.integers(0, truth.size + 3, truth.random.integers(1, 6)))
            truth.look(truth.random.permutation(examples)[: truth.random.integers(1, examples + 1)])
            truth.table.stay_within(limit, truth.size)
            assert truth.table.nbytes <= limit
            truth.check()


def test_what_is_kept_is_right_when_memory_shrinks_and_grows_again():
    truth = Truth(2, seed=0)
    truth.table.stay_within(PLENTY, 12)
    truth.store(np.arange(8))
    for ids in ([0], [1]):
        truth.look(np.array(ids))
    truth.table.stay_within(2 * 4 * 8, 8)  # the first part of both rows
    truth.check()
    truth.table.stay_within(PLENTY, 12)
    truth.look(np.array([0]))
    truth.check()  # the second part of the second row is zero


def test_what_is_kept_is_right_when_more_rows_leave_room_for_fewer_columns():
    truth = Truth(4, seed=0)
    truth.store(np.arange(5))
    truth.table.stay_within(4 * 1.2 * 5 * 8, 5)  # four rows fit, but two parts of no more than three
    for ids in ([0], [1, 2, 3]):
        truth.look(np.array(ids))
    truth.check()  # before anybody says again how much memory there is, as when examples join after a look


def test_a_table_without_room_keeps_nothing_and_memory_that_comes_later_is_used():
    truth, everything = Truth(5, seed=0), np.arange(5)
    truth.store(np.arange(6))
    truth.look(everything)
    assert (truth.table.rows_of(everything) == -1).all()
    assert truth.table.nbytes == truth.table.columns == 0
    truth.table.stay_within(PLENTY, 12)
    truth.look(everything)
    assert (truth.table.rows_of(everything) >= 0).all()
    truth.check()
    assert not len(truth.table.missing(truth.table.rows_of(everything), 6))


def test_only_slots_with_other_patterns_are_missing():
    truth = Truth(5, seed=0)
    truth.table.stay_within(PLENTY, 12)
    truth.store(np.arange(10))
    truth.look(np.arange(5))
    truth.store(np.array([7, 2]))
    rows = truth.table.rows_of(np.arange(5))
    np.testing.assert_array_equal(truth.table.missing(rows, 10), [2, 7])
    truth.look(np.array([0, 3]))
    np.testing.assert_array_equal(truth.table.missing(rows[[0, 3]], 10), [])
    np.testing.assert_array_equal(truth.table.missing(rows[[0, 1]], 10), [2, 7])
    truth.check()


# Providers

PARAMETERS = {"gamma": 0.2, "degree": 2, "coef0": 0.5}
LIMITS = {"nothing": [0.0], "little": [2e4], "enough": [PLENTY], "changing": [PLENTY, 90 * 8 * 8, PLENTY, 2e4]}


def shared_letters(A, B):
    return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float)


def dense(dtype):
    return np.random.default_rng(0).random((90, 5)).astype(dtype)


def kinds():
    for name in kernel_names():
        if name == "precomputed":
            yield pytest.param(name, lambda dtype: pairwise.rbf_kernel(dense(dtype)), id=name)
            continue
        yield pytest.param(name, dense, id=f"{name}-dense")
        if name in ("linear", "rbf", "poly", "sigmoid"):
            yield pytest.param(name, lambda dtype: sparse.csr_matrix(dense(dtype)), id=f"{name}-csr")
    yield pytest.param(lambda A, B: A @ B.T, dense, id="callable-dense")
    letters = np.random.default_rng(0).integers(97, 123, (90, 6))
    yield pytest.param(shared_letters, lambda dtype: ["".join(map(chr, row)) for row in letters], id="callable-strings")


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setattr(KernelTable, "_COLUMNS", 8)
    monkeypatch.setattr(DenseProvider, "_CHEAP_FEATURES", 0)


def rows_of(X, rows):
    return [X[i] for i in rows] if isinstance(X, list) else X[rows]


class Slots:
    """A provider, and which examples its slots hold."""

    def __init__(self, kernel, X, jobs=1, seed=0, biased=False):
        chosen = kernel_for(kernel, X=X, **PARAMETERS)
        self.blocks = provider_for(with_bias(chosen) if biased else chosen, X, n_jobs=jobs)
        self.X, self.random = X, np.random.default_rng(seed)
        self.n = len(X) if isinstance(X, list) else X.shape[0]
        self.blocks.keep_values(self.n)
        self.held = {}

    def store(self, count):
        """Old slots are used again, new ones come."""
        slots = np.unique(self.random.integers(0, len(self.held) + count, count))
        slots = np.unique(np.concatenate([slots[slots < len(self.held)], np.arange(len(self.held), slots.max() + 1)]))
        free = np.setdiff1d(np.arange(self.n), list(self.held.values()))
        ids = self.random.permutation(free)[: len(slots)]
        self.blocks.store(slots, self.batch(ids), np.arange(len(ids)))
        self.held.update(zip(slots.tolist(), ids.tolist(), strict=True))

    def batch(self, ids):
        return self.blocks.batch(self.X, ids, ids)

    def look(self, ids):
        """Scores of training examples must be those of prediction."""
        slots = self.random.permutation(sorted(self.held))[: max(1, 3 * len(self.held) // 4)]
        coefficients = self.random.normal(size=(len(slots), 3))
        keep = self.random.random(self.n) < 0.7
        scores = self.blocks.scores_in_training(self.X, ids, slots, coefficients, lambda ids, scores: keep[ids])
        self.assert_close(scores, self.blocks.scores(rows_of(self.X, ids), slots, coefficients))

    def join(self, ids):
        """Kernel values of a batch with the slots must not depend on what is kept."""
        held = np.array([self.held[slot] for slot in range(len(self.held))])
        table = self.blocks.against_support(self.batch(ids))
        self.assert_close(table, self.blocks.cross(self.batch(ids), self.batch(held)))

    def assert_close(self, found, expected):
        close = 1e-4 if self.blocks.dtype == np.float32 else 1e-10
        np.testing.assert_allclose(found, expected, rtol=close, atol=close * max(1.0, np.abs(expected).max()))

    def some(self):
        return self.random.permutation(self.n)[: self.random.integers(1, self.n + 1)]


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    ("limits", "dtype"),
    [("nothing", np.float32), ("little", np.float64), ("enough", np.float32), ("changing", np.float64)],
)
@pytest.mark.parametrize(("kernel", "make"), list(kinds()))
def test_scores_in_training_are_those_of_prediction(kernel, make, limits, dtype):
    for seed, jobs, biased in ((0, 1, False), (1, 2, False), (2, 1, True)):
        slots = Slots(kernel, make(dtype), jobs, seed, biased and kernel != "precomputed")
        with slots.blocks.threads():
            for round_, limit in zip(range(5), itertools.cycle(LIMITS[limits]), strict=False):
                slots.store(10 if round_ else 20)
                for ids in (np.arange(slots.n), slots.some()):
                    slots.blocks.share_memory(limit)
                    slots.look(ids)
                slots.blocks.share_memory(limit)
                slots.join(slots.some())
                assert slots.blocks.kept_nbytes <= limit


@pytest.mark.usefixtures("narrow")
def test_rows_kept_by_another_thread_meanwhile_do_not_change_scores(monkeypatch):
    slots = Slots("rbf", dense(np.float64))
    slots.store(20)
    size = slots.blocks.size
    slots.blocks.share_memory(60 * 1.2 * size * 8)
    coefficients = np.ones((size, 2))
    slots.blocks.scores_in_training(slots.X, np.arange(10), np.arange(size), coefficients, everything)
    slots.store(20)
    put = KernelTable.put

    def put_while_another_thread_keeps_rows(table, *arguments):
        put(table, *arguments)
        table.new_rows(np.arange(10, 60))

    monkeypatch.setattr(KernelTable, "put", put_while_another_thread_keeps_rows)
    slots.look(np.arange(10))


@pytest.mark.usefixtures("narrow")
def test_kept_values_are_not_computed_again():
    slots = Slots("rbf", dense(np.float64))
    slots.store(30)
    blocks, size = slots.blocks, slots.blocks.size
    blocks.share_memory(PLENTY)

    def computed():
        before = blocks.kernel_values
        blocks.scores_in_training(
            slots.X, np.arange(90), np.arange(size), np.ones((size, 2)), lambda ids, scores: ids % 2 == 0
        )
        return blocks.kernel_values - before

    assert [computed(), computed()] == [90 * size, 45 * size]
    blocks.store([3, 9], blocks.batch(slots.X, [0, 1], [0, 1]), [0, 1])
    assert computed() == 45 * size + 45 * 2
    before = blocks.kernel_values
    blocks.against_support(blocks.batch(slots.X, np.arange(0, 90, 2), np.arange(0, 90, 2)))
    assert blocks.kernel_values == before


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize(("kernel", "layout"), [("rbf", np.asarray), ("linear", sparse.csr_matrix)])
def test_without_slots_all_scores_are_zero(kernel, layout, keeps):
    X = layout(dense(np.float64))
    blocks = provider_for(kernel_for(kernel, X=X), X)
    if keeps:
        blocks.keep_values(90)
    scores = blocks.scores_in_training(X, np.arange(7), np.zeros(0, np.int64), np.zeros((0, 3)), everything)
    np.testing.assert_array_equal(scores, np.zeros((7, 3)))
