"""A joint feature as a row of numbers, dense or sparse, beside weights that are always dense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

_FEW = 0.25  # a dense row with no more numbers than this is kept as a sparse one
_Numbers = NDArray[np.float64]


class Row:
    """Numbers at distinct `indices` of a vector of this length; a dense row has the slice of all of them."""

    __slots__ = ("indices", "length", "values")

    def __init__(self, values: _Numbers, indices: Any = slice(None), length: int | None = None) -> None:
        self.values, self.indices = values, indices
        self.length = len(values) if length is None else length

    def dot(self, w: _Numbers) -> float:
        """The inner product with `w`."""
        return float(self.values @ w[self.indices])

    def add_to(self, w: _Numbers, amount: float) -> None:
        """Add `amount` times this row."""
        w[self.indices] += amount * self.values

    def take_squares(self, w: _Numbers) -> float:
        """The sum of squares of `w` where this row has numbers; those entries are zero afterwards."""
        part = w[self.indices]
        squares = float(part @ part)
        w[self.indices] = 0
        return squares

    def is_dense(self) -> bool:
        """Whether all numbers are kept."""
        return isinstance(self.indices, slice)

    def columns(self) -> NDArray[np.int64]:
        """Where the numbers are."""
        return np.arange(self.length) if self.is_dense() else self.indices


NO_ROW = Row(np.zeros(0))


def stacked(rows: Sequence[Row]) -> Any:
    """Rows as a matrix, dense if all of them are."""
    if all(row.is_dense() for row in rows):
        return np.array([row.values for row in rows])
    sparse = [_without_zeros(row.values) if row.is_dense() else row for row in rows]
    starts = np.cumsum([0, *(len(row.values) for row in sparse)])
    values, indices = np.concatenate([row.values for row in sparse]), np.concatenate([row.indices for row in sparse])
    return csr_array((values, indices, starts), shape=(len(rows), rows[0].length))


def row_of(feature: Any) -> Row:
    """A copy of what `joint_feature` returned; a ValueError says what is wrong with it."""
    if issparse(feature):
        return _sparse_row(feature)
    try:
        values = np.array(feature, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"an array of numbers, got a {type(feature).__name__}") from None
    if values.ndim != 1 or not len(values):
        raise ValueError(f"one dimension and at least one entry, got shape {values.shape}")
    sparse = _without_zeros(values)
    return sparse if len(sparse.values) <= _FEW * len(values) else Row(values)


def _without_zeros(values: _Numbers) -> Row:
    indices = np.flatnonzero(values)
    return Row(values[indices], indices, len(values))


def _sparse_row(feature: Any) -> Row:
    shape = feature.shape
    if shape[-1] == 0 or any(size != 1 for size in shape[:-1]):
        raise ValueError(f"a single row of at least one entry, got shape {shape}")
    entries = feature.tocoo(copy=True)
    entries.sum_duplicates()
    indices = entries.col if len(shape) == 2 else entries.coords[0]
    return Row(entries.data.astype(np.float64), indices.astype(np.intp), int(shape[-1]))
