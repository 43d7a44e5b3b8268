"""Compiled sessions fed by hand from a matrix of kernel values, and the hooks by which tests look inside them."""

import functools

import numpy as np
import pytest

from larank import _core

hooks = pytest.importorskip("larank._core_hooks", reason="larank was built without LARANK_TEST_HOOKS")

PLENTY = 2**40


def compiled(name, dtype):
    """The compiled class of this name and precision."""
    return getattr(_core, f"{name}{32 if dtype == np.float32 else 64}")


def arrays(table):
    """All that a support table says."""
    names = ("slots", "ids", "labels", "costs", "diagonal", "coefficients", "columns", "starts")
    return [getattr(table, name) for name in names]


def assert_same(one, other):
    """Check that two lists of arrays or numbers are equal to the last bit."""
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def on_every_level():
    """Yield each instruction set while the core computes with it."""
    before = _core.simd_level()
    try:
        for level in _core.simd_levels():
            _core.set_simd_level(level)
            yield level
    finally:
        _core.set_simd_level(before)


def dense(table, rows, columns, values=None):
    """The coefficients, or other values that belong to them, with a row for every example."""
    whole = np.zeros((rows, columns))
    values = table.coefficients if values is None else values
    whole[np.repeat(table.ids, np.diff(table.starts)), table.columns] = values
    return whole


def orders_of_fit(n, passes=1):
    """The orders in which `fit` of a kernel machine with random_state=0 takes n examples."""
    random = np.random.RandomState(0)
    random.randint(2**31 - 1)  # the seed of the session
    random = np.random.RandomState(random.randint(2**31 - 1))
    first = random.permutation(n)
    return [first, *(random.permutation(first) for _ in range(passes - 1))]


def in_order_of_arrival(labels):
    _, firsts, codes = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(firsts)).astype(np.int32)[codes]


class Drive:
    """Feeds a matrix of kernel values to a session, is the source of its rows, and looks at it after every call."""

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
                self.session.run(min(end, len(ids)), self)
                self.look(self)
        return self

    def rows(self, slots):
        """What the session asks for in the middle of its work, when everything must be in order too."""
        self.rounds += 1
        self.look(self)
        present = hooks.slot_ids(self.session)
        return self.columns(present[slots], len(present))

    def between(self, slots, others):
        ids = hooks.slot_ids(self.session)
        return np.ascontiguousarray(self.K[np.ix_(ids[slots], ids[others])])

    def columns(self, ids, width):
        present = hooks.slot_ids(self.session)
        values = np.full((len(ids), width), self.junk, self.K.dtype)
        values[:, : len(present)][:, present >= 0] = self.K[np.ix_(ids, present[present >= 0])]
        return values

    def beta(self):
        columns = max(int(self.labels.max()) + 1, self.session.classes)
        return dense(self.session.table(), len(self.labels), columns)


class Rows:
    """The source of rows for a session that takes over the patterns of these ids."""

    def __init__(self, K, ids):
        self.K, self.ids = K, ids

    def rows(self, slots):
        return np.ascontiguousarray(self.K[np.ix_(self.ids[slots], self.ids)])


def table_of(ids, labels, costs, diagonal, coefficients):
    """A support table with these coefficients, a row per pattern and a column each."""
    rows, columns = np.nonzero(coefficients)
    return _core.SupportTable(
        ids=np.asarray(ids, np.int64),
        labels=np.asarray(labels, np.int32),
        costs=np.asarray(costs, np.float64),
        diagonal=np.asarray(diagonal, np.float64),
        coefficients=np.ascontiguousarray(coefficients[rows, columns]),
        columns=columns.astype(np.int32),
        starts=np.searchsorted(rows, np.arange(len(ids) + 1)),
    )


# Sessions

ALL = ["new", "old", "optimize"]


def maker(name, **usual):
    """Return a function that makes a session of this class, with these settings unless others are given."""
    return lambda dtype=np.float64, **settings: compiled(name, dtype)(**{**usual, **settings})


with_memory = functools.partial(maker, memory_limit=PLENTY)
usual = {"schedule": "adaptive", "n_reprocess": 1, "operations": ALL, "tau": 0.01}
larank_session = with_memory("KernelLaRank", seed=7, **usual)
linear_session = maker("LinearLaRank", seed=0, intercept=False, features=7, **usual)
lasvm_session = with_memory("LaSVM", tau=1e-3, delta_max=0.0)
huller_session = with_memory("Huller", seed=7)
tracking_session = with_memory("Tracking", algorithm="process-reprocess", n_steps=5, seed=7)
perceptron_session = with_memory("KernelPerceptron", margin=0.0, budget=None)
passive_aggressive_session = with_memory("KernelPassiveAggressive", loss="hinge")


# Problems


def problem(n, k, seed=0, dimensions=2, points=None):
    """Kernel values with few directions, so that patterns come and go; `points` below n makes duplicates."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(points or n, dimensions))[random.integers(0, points or n, n)]
    X[random.random(n) < 0.1] = 0
    labels = random.integers(0, k, n).astype(np.int32)
    return X @ X.T, np.unique(labels, return_inverse=True)[1].astype(np.int32)


def noisy(n, k=2, seed=0, dimensions=3, gamma=0.5, points=None):
    """Gaussian kernel values of classes that overlap, in the order of their arrival; `points` below n makes twins."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(points or n, dimensions))
    X = X[random.integers(0, points, n)] if points else X
    labels = (X @ random.normal(size=(dimensions, k)) + random.normal(size=(n, k))).argmax(axis=1)
    labels[:k] = np.arange(k)
    squares = (X**2).sum(axis=1)
    return np.exp(-gamma * (squares[:, None] + squares - 2 * X @ X.T)), in_order_of_arrival(labels)


# Drives


class Lasvm(Drive):
    """A drive that computes coefficients, gradients and objectives of LaSVM from scratch."""

    def finish(self, steps=None):
        if steps is None:
            self.session.finish(self)
            return self
        while not self.session.finish_some(steps, self):
            self.look(self)
        return self

    @property
    def problems(self):
        return 1 if self.session.classes <= 2 else self.session.classes

    def signs(self):
        """+1 where an example is of a problem's class: [problem][example]."""
        positive = np.array([1]) if self.session.classes <= 2 else np.arange(self.session.classes)
        return np.where(self.labels == positive[:, None], 1.0, -1.0)

    def members(self):
        """Coefficients and gradients, [problem][example], NaN for examples that are not members."""
        alpha, g = np.full((2, self.problems, len(self.labels)), np.nan)
        ids = hooks.slot_ids(self.session)
        for whole, by_slot in zip((alpha, g), hooks.members(self.session), strict=True):
            whole[:, ids[ids >= 0]] = by_slot[:, ids >= 0]
        return alpha, g

    def model(self):
        """Coefficients of the model that may be taken, [problem][example], biases and uncertainties."""
        table = self.session.table()
        np.testing.assert_array_equal(table.labels, self.labels[table.ids])
        np.testing.assert_array_equal(table.costs, self.costs[table.ids])
        return dense(table, len(self.labels), self.problems).T, self.session.bias, self.session.delta

    def state(self):
        session = self.session
        model = [*arrays(session.table()), session.bias, session.delta]
        return [hooks.slot_ids(session), *hooks.members(session), *model, session.dual]

    def dual(self, alpha):
        """The objective (4.1), all problems together."""
        return (alpha * self.signs()).sum() - 0.5 * ((alpha @ self.K) * alpha).sum()

    def gradients(self, alpha):
        """g_k = y_k - sum_i alpha_i k(x_i, x_k), (4.2)."""
        return self.signs() - alpha @ self.K


class Perceptron(Drive):
    """A drive that reads the coefficients of a perceptron, or their average over all decision functions."""

    def __init__(self, session, K, labels, costs=None, **options):
        super().__init__(session, K, labels, np.ones(len(labels)) if costs is None else costs, **options)
        if labels.max() > 1:
            session.split_column()

    def beta(self):
        return self.whole(self.session.table().coefficients)

    def average(self):
        session = self.session
        return self.whole(session.table().coefficients - session.early / session.counters.visits)

    def whole(self, values):
        columns = 1 if hooks.is_single(self.session) else self.labels.max() + 1
        return dense(self.session.table(), len(self.labels), columns, values)
