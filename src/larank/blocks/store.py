"""Batches of examples, and the slots in which support patterns are kept, in the type they came in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from larank.blocks.pages import zeros

_Array = NDArray[Any]
_Float = NDArray[np.float64]
_Index = NDArray[np.int64]

_ENTRY = 128  # bytes of a dictionary from numbers to numbers, each


@dataclass
class Batch:
    """Examples prepared for products: their stream ids, squared norms and k(x, x)."""

    examples: Any
    ids: _Index
    diagonal: _Float
    norms: _Array
    # As they were given, where `examples` is not that; the kernel values among them, where they are known already.
    originals: Any = None
    among: _Array | None = None

    def __len__(self) -> int:
        return len(self.ids)


class Support:
    """What the slots hold, in slot order."""

    def __init__(self, rows: _Rows, dtype: Any, originals: _Rows | None = None) -> None:
        self._rows, self._originals = rows, originals
        self._ids = np.zeros(0, np.int64)
        self._diagonal = np.zeros(0)
        self._norms = np.zeros(0, dtype)
        self._slot_of: dict[int, int] = {}
        self._gone: list[tuple[_Index, Any]] | None = None  # ids and examples, where they are kept
        self.size = 0

    def keep_what_goes(self, is_kept: bool) -> None:
        """Whether examples whose slots are taken by others are kept from now on; those kept before are let go."""
        self._gone = [] if is_kept else None

    def recalled(self, ids: _Index) -> Iterator[tuple[NDArray[np.bool_], Any]]:
        """Examples by their ids, in parts: which of them, and the examples as they were given."""
        slots = np.array([self._slot_of.get(example, -1) for example in ids.tolist()], np.int64)
        yield slots >= 0, self.originals(slots[slots >= 0])
        for gone, examples in self._gone or []:
            order = np.argsort(gone)
            wanted = np.isin(ids, gone) & (slots < 0)
            yield wanted, examples[order[np.searchsorted(gone[order], ids[wanted])]]

    def expect(self, count: int) -> None:
        """Have room for so many patterns before long, which takes no memory until it is used."""
        for rows in filter(None, (self._rows, self._originals)):
            rows.expected = count

    @property
    def ids(self) -> _Index:
        """Stream ids; -1 where nothing was stored yet."""
        return self._ids[: self.size]

    @property
    def nbytes(self) -> int:
        """What is kept here."""
        kept = self._rows.nbytes + (self._originals.nbytes if self._originals else 0)
        return kept + self._ids.nbytes + self._diagonal.nbytes + self._norms.nbytes + _ENTRY * len(self._slot_of)

    def put(self, slots: _Index, batch: Batch, rows: _Index) -> None:
        """Let slot `slots[k]` hold example `rows[k]` of the batch."""
        size = max(self.size, int(slots.max()) + 1)
        if self._gone is not None:
            taken = slots[slots < self.size]
            self._gone.append((self._ids[taken].copy(), self.originals(taken)))
        self._ids = _grown(self._ids, size, fill=-1)
        self._diagonal, self._norms = _grown(self._diagonal, size), _grown(self._norms, size)
        for slot, new in zip(slots.tolist(), batch.ids[rows].tolist(), strict=True):
            old = int(self._ids[slot])
            if self._slot_of.get(old) == slot:
                del self._slot_of[old]
            self._slot_of[new] = slot
            self._ids[slot] = new
        self._diagonal[slots], self._norms[slots] = batch.diagonal[rows], batch.norms[rows]
        self._rows.put(slots, batch.examples, rows, size)
        if self._originals is not None:
            self._originals.put(slots, batch.originals, rows, size)
        self.size = size

    def find(self, ids: _Index) -> Iterator[tuple[int, int]]:
        """Those of the ids that have a slot, and it."""
        for i, example in enumerate(ids.tolist()):
            slot = self._slot_of.get(example)
            if slot is not None:
                yield i, slot

    def batch(self, slots: _Index | None = None) -> Batch:
        """The examples in these slots, or in all of them as they are now.

        Storing more does not change the batch, except that rows of an array may be those of a slot's next example.
        """
        size = self.size
        is_all = slots is None or (len(slots) == size and bool((slots == np.arange(size)).all()))
        slots = np.arange(size) if slots is None else slots
        rows, originals = (
            None if kept is None else kept.first(size) if is_all else kept.take(slots)
            for kept in (self._rows, self._originals)
        )
        return Batch(rows, self._ids[slots], self._diagonal[slots], self._norms[slots], originals)

    def originals(self, slots: _Index) -> Any:
        """The examples in these slots, as they were given."""
        return (self._originals or self._rows).take(slots)


class _Rows(ABC):
    """Examples in slot order, in the type they came in."""

    nbytes: int
    expected = 0  # so many before long

    @abstractmethod
    def put(self, slots: _Index, examples: Any, rows: _Index, size: int) -> None: ...
    @abstractmethod
    def first(self, size: int) -> Any: ...
    @abstractmethod
    def take(self, slots: _Index) -> Any: ...


class _ArrayRows(_Rows):
    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self._values = np.zeros((0, *shape), dtype)
        self._size = 0

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return int(self._size * self._values.dtype.itemsize * math.prod(self._values.shape[1:]))

    def put(self, slots: _Index, examples: Any, rows: _Index, size: int) -> None:
        if self._values.dtype == object:
            self._values = _grown(self._values, size, fill=examples[rows[0]])
        else:
            self._values = _grown(self._values, size, expected=self.expected)
        self._values[slots] = examples[rows]
        self._size = size

    def first(self, size: int) -> _Array:
        return self._values[:size]

    def take(self, slots: _Index) -> _Array:
        return self._values[slots]


class _ListRows(_Rows):
    def __init__(self) -> None:
        self._values: list[Any] = []

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return 8 * len(self._values)

    def put(self, slots: _Index, examples: Any, rows: _Index, size: int) -> None:
        self._values.extend([examples[int(rows[0])]] * (size - len(self._values)))
        for slot, row in zip(slots.tolist(), rows.tolist(), strict=True):
            self._values[slot] = examples[row]

    def first(self, size: int) -> list[Any]:
        return self._values[:size]

    def take(self, slots: _Index) -> list[Any]:
        return [self._values[slot] for slot in slots.tolist()]


class _CsrRows(_Rows):
    def __init__(self, features: int, dtype: Any) -> None:
        self._values = sparse.csr_matrix((0, features), dtype=dtype)

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return int(self._values.data.nbytes + self._values.indices.nbytes + self._values.indptr.nbytes)

    def put(self, slots: _Index, examples: Any, rows: _Index, size: int) -> None:
        old = self._values.shape[0]
        if len(slots) == size - old and (slots == np.arange(old, size)).all():
            self._values = sparse.vstack([self._values, examples[rows]], format="csr")
            return
        empty = sparse.csr_matrix((1, self._values.shape[1]), dtype=self._values.dtype)
        together = sparse.vstack([self._values, examples[rows], empty], format="csr")
        order = np.arange(size)
        order[old:] = old + len(rows)
        order[slots] = old + np.arange(len(rows))
        self._values = together[order]

    def first(self, size: int) -> Any:
        return self._values

    def take(self, slots: _Index) -> Any:
        return self._values[slots]


class GramRows(_Rows):
    """References to rows of kernel values: which matrix, and which of its rows. A matrix without slots is let go."""

    nbytes = 0

    def __init__(
        self, matrices: Sequence[_Array] = (), matrix: _Index | None = None, row: _Index | None = None
    ) -> None:
        self._matrices = list(matrices)
        self._matrix = np.zeros(0, np.int64) if matrix is None else matrix
        self._row = np.zeros(0, np.int64) if row is None else row

    @classmethod
    def without_rows(cls, count: int) -> GramRows:
        """Examples known by their ids alone."""
        return cls([np.zeros((1, 0))], np.zeros(count, np.int64), np.zeros(count, np.int64))

    def put(self, slots: _Index, examples: GramRows, rows: _Index, size: int) -> None:
        """Refer to the rows of a batch."""
        self._matrix, self._row = _grown(self._matrix, size, fill=-1), _grown(self._row, size)
        new = examples._matrices[0]
        number = next((i for i, known in enumerate(self._matrices) if known is new), len(self._matrices))
        self._matrix[slots], self._row[slots] = number, examples._row[rows]
        used, renamed = np.unique(self._matrix[:size], return_inverse=True)
        empty = int(used[0] < 0)
        self._matrices = [(*self._matrices, new)[number] for number in used[empty:].tolist()]
        self._matrix[:size] = renamed - empty

    def first(self, size: int) -> GramRows:
        """The first slots."""
        return self.take(np.arange(size))

    def take(self, slots: _Index) -> GramRows:
        """Some slots."""
        return GramRows(self._matrices, self._matrix[slots], self._row[slots])

    def gather(self, ids: _Index, out: _Array) -> None:
        """Entries of these rows in the columns of `ids`; zero where there is none."""
        for number, matrix in enumerate(self._matrices):
            mine = np.flatnonzero(self._matrix == number)
            if not len(mine):
                continue
            there = (ids >= 0) & (ids < matrix.shape[1])
            if there.all():
                out[mine] = matrix[self._row[mine][:, None], ids]
            else:
                out[mine] = 0
                out[np.ix_(mine, there)] = matrix[self._row[mine][:, None], ids[there]]


def rows_like(X: Any) -> _Rows:
    """An empty store for examples of the kind X holds."""
    if sparse.issparse(X):
        return _CsrRows(X.shape[1], X.dtype)
    return _ArrayRows(X.shape[1:], X.dtype) if isinstance(X, np.ndarray) else _ListRows()


def _grown(values: _Array, size: int, *, fill: Any = 0, expected: int = 0) -> _Array:
    """The same values with room for more: half as much again or what is expected, so that growing is rare."""
    if size <= len(values):
        return values
    shape = (max(size, len(values) * 3 // 2, expected, 16), *values.shape[1:])
    larger = zeros(shape, values.dtype)
    if np.ndim(fill) or fill != 0:
        larger[len(values) :] = fill
    larger[: len(values)] = values
    return larger
