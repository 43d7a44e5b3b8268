"""Kernel values of some training examples with the support patterns, kept from one look at them to the next."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.blocks.pages import zeros

_Array = NDArray[Any]
_Index = NDArray[np.int64]

_ROOM_TO_GROW = 1.2


class KernelTable:
    """A row per example kept and a column per slot, as many as memory allows.

    Slots are used again, and then their column is out of date. Two clocks tell: a value holds if its row was computed
    after the pattern came to the slot. Columns of slots that never held a pattern are zero.

    Rows are given out one after the other, out of room that takes no memory until it is written to.

    Parameters
    ----------
    examples : int
        How many there are; they are numbered from 0.
    size : int
        Slots that hold patterns already.
    dtype : dtype
        Of the values.
    """

    _COLUMNS = 1024  # of one part; parts are what is given up when memory is short

    def __init__(self, examples: int, size: int, dtype: Any) -> None:
        self._dtype = np.dtype(dtype)
        self._parts: list[_Array] = []
        self._most_rows = 0
        self._row_of = np.full(examples, -1, np.int64)
        self._rows = 0
        self._came = np.zeros(size, np.int64)  # when the pattern of a slot did
        self._computed = np.full(examples, -1, np.int64)  # when the rows were
        self._lock = threading.Lock()
        self.now = 0

    @property
    def columns(self) -> int:
        """Slots whose values are kept: those below this number."""
        return len(self._parts) * self._COLUMNS

    @property
    def nbytes(self) -> int:
        """What the values take."""
        return len(self._parts) * self._rows * self._bytes_per_row()

    def _bytes_per_row(self) -> int:
        return self._COLUMNS * int(self._dtype.itemsize)

    def stay_within(self, nbytes: float, size: int) -> None:
        """Keep no more than fits: columns for `size` slots and some more first, then rows."""
        pieces = max(0, int(nbytes / self._bytes_per_row()))  # of a row, each as wide as a part
        wanted = int(_ROOM_TO_GROW * size / self._COLUMNS) + 1
        most_parts = min(wanted, pieces // max(1, self._rows))
        self._most_rows = min(len(self._row_of), pieces // most_parts) if most_parts else 0
        del self._parts[most_parts:]
        while len(self._parts) < most_parts:
            self._add_part()
        self._most_rows = min([self._most_rows, *map(len, self._parts)])

    def _add_part(self) -> None:
        """A part in which nothing is known of anyone."""
        first = len(self._parts) * self._COLUMNS
        self._parts.append(zeros((self._most_rows, self._COLUMNS), self._dtype))
        self.now += 1
        self._came[first : first + self._COLUMNS] = self.now

    def note_arrivals(self, slots: _Index) -> None:
        """These slots hold other patterns from now on."""
        self.now += 1
        needed = int(slots.max()) + 1
        if needed > len(self._came):
            self._came = np.concatenate([self._came, np.zeros(needed - len(self._came), np.int64)])
        self._came[slots] = self.now

    def rows_of(self, ids: _Index) -> _Index:
        """The rows of these examples, -1 for those that are not kept."""
        rows: _Index = self._row_of[ids]
        return rows

    def new_rows(self, ids: _Index) -> _Index:
        """Rows for the first of these examples, which are not kept yet: as many as fit."""
        with self._lock:
            rows = np.arange(self._rows, max(self._rows, min(self._most_rows, self._rows + len(ids))))
            self._rows += len(rows)
        self._row_of[ids[: len(rows)]] = rows
        return rows

    def missing(self, rows: _Index, size: int) -> _Index:
        """Those of the first `size` slots whose values do not hold, or are not kept, for all of these rows."""
        is_missing = self._came[:size] > self._computed[rows].min(initial=self.now)
        is_missing[self.columns :] = True
        return np.flatnonzero(is_missing)

    def put(self, rows: _Index, slots: _Index, values: _Array, moment: int) -> None:
        """Keep the values of some slots; those of all others hold as of `moment` already."""
        if not len(slots):
            return
        most = min(self.columns, int(slots[-1]) + 1)
        ends = np.searchsorted(slots, np.arange(0, most + self._COLUMNS, self._COLUMNS))
        for part, (first, last) in enumerate(pairwise(ends.tolist())):
            if first == last:
                continue
            columns = slots[first:last] - part * self._COLUMNS
            if columns[-1] - columns[0] == last - first - 1:
                self._parts[part][rows, columns[0] : columns[-1] + 1] = values[:, first:last]
            else:
                self._parts[part][rows[:, None], columns] = values[:, first:last]
        self._computed[rows] = moment

    def take(self, rows: _Index, out: _Array) -> None:
        """Copy the columns that are kept; some of them may be out of date."""
        for part, columns in self._pieces(out.shape[1]):
            out[:, columns] = self._parts[part][rows, : columns.stop - columns.start]

    def products(self, rows: _Index, coefficients: _Array) -> NDArray[np.float64]:
        """The kept values of these rows, which are in increasing order, times coefficients, which have a row per slot.

        Where most of the rows in between are asked for, all are multiplied: that is cheaper than copying.
        """
        first, last = int(rows[0]), int(rows[-1]) + 1
        is_dense = last - first < 2 * len(rows)
        chosen = slice(first, last) if is_dense else rows
        out = np.zeros((last - first if is_dense else len(rows), coefficients.shape[1]))
        for part, columns in self._pieces(len(coefficients)):
            out += self._parts[part][chosen, : columns.stop - columns.start] @ coefficients[columns]
        return out[rows - first] if is_dense else out

    def _pieces(self, width: int) -> list[tuple[int, slice]]:
        ends = [(part, min(width, (part + 1) * self._COLUMNS)) for part in range(len(self._parts))]
        return [(part, slice(part * self._COLUMNS, end)) for part, end in ends if end > part * self._COLUMNS]
