"""Compiled sessions fed by hand from a matrix of kernel values, and the hooks by which tests look inside them."""

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


def assert_same_table(one, other):
    for mine, theirs in zip(arrays(one), arrays(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def dense(table, rows, columns, values=None):
    """The coefficients, or other values that belong to them, with a row for every example."""
    whole = np.zeros((rows, columns))
    values = table.coefficients if values is None else values
    whole[np.repeat(table.ids, np.diff(table.starts)), table.columns] = values
    return whole


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
