"""Joint features as rows, dense or sparse, beside weights that are always dense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

__all__ = ["DenseRow", "Row", "SparseRow", "row_of", "stacked"]

_FEW = 0.25  # a dense row with no more numbers than this is kept as a sparse one
_Vector = NDArray[np.float64]


class Row(Protocol):
    """A row of numbers that meets dense vectors of its length."""

    length: int

    def dot(self, w: _Vector) -> float:
        """The inner product with `w`."""

    def add_to(self, w: _Vector, amount: float) -> None:
        """Add `amount` times this row."""

    def take_squares(self, w: _Vector) -> float:
        """The sum of squares of `w` where this row is not zero; those entries are zero afterwards."""

    def is_finite(self) -> bool:
        """Whether all numbers are."""

    def entries(self) -> tuple[NDArray[np.intp], _Vector]:
        """The places of the numbers that are not zero, and these."""


class DenseRow:
    """All numbers of the row."""

    __slots__ = ("length", "values")

    def __init__(self, values: _Vector) -> None:
        self.values, self.length = values, len(values)

    def dot(self, w: _Vector) -> float:
        """The inner product with `w`."""
        return float(self.values @ w)

    def add_to(self, w: _Vector, amount: float) -> None:
        """Add `amount` times this row."""
        w += amount * self.values

    def take_squares(self, w: _Vector) -> float:
        """The sum of all squares of `w`, which is zero afterwards."""
        squares = float(w @ w)
        w[:] = 0
        return squares

    def is_finite(self) -> bool:
        """Whether all numbers are."""
        return bool(np.isfinite(self.values).all())

    def entries(self) -> tuple[NDArray[np.intp], _Vector]:
        """The places of the numbers that are not zero, and these."""
        places = np.flatnonzero(self.values)
        return places, self.values[places]


class SparseRow:
    """The numbers that are not zero, at distinct places."""

    __slots__ = ("indices", "length", "values")

    def __init__(self, indices: NDArray[np.intp], values: _Vector, length: int) -> None:
        self.indices, self.values, self.length = indices, values, length

    def dot(self, w: _Vector) -> float:
        """The inner product with `w`."""
        return float(self.values @ w[self.indices])

    def add_to(self, w: _Vector, amount: float) -> None:
        """Add `amount` times this row."""
        w[self.indices] += amount * self.values

    def take_squares(self, w: _Vector) -> float:
        """The sum of squares of `w` where this row is not zero; those entries are zero afterwards."""
        part = w[self.indices]
        w[self.indices] = 0
        return float(part @ part)

    def is_finite(self) -> bool:
        """Whether all numbers are."""
        return bool(np.isfinite(self.values).all())

    def entries(self) -> tuple[NDArray[np.intp], _Vector]:
        """The places of the numbers that are kept, and these."""
        return self.indices, self.values


def stacked(rows: Sequence[Row]) -> Any:
    """Rows as a matrix, dense if all of them are."""
    if all(isinstance(row, DenseRow) for row in rows):
        return np.array([row.values for row in rows if isinstance(row, DenseRow)])
    parts = [row.entries() for row in rows]
    starts = np.cumsum([0, *(len(values) for _, values in parts)])
    indices, values = (np.concatenate(some) for some in zip(*parts, strict=True))
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
    places = np.flatnonzero(values)
    if len(places) <= _FEW * len(values):
        return SparseRow(places, values[places], len(values))
    return DenseRow(values)


def _sparse_row(feature: Any) -> SparseRow:
    shape = feature.shape
    if shape[-1] == 0 or any(size != 1 for size in shape[:-1]):
        raise ValueError(f"a single row of at least one entry, got shape {shape}")
    entries = feature.tocoo(copy=True)
    entries.sum_duplicates()
    indices = entries.col if len(shape) == 2 else entries.coords[0]
    return SparseRow(indices.astype(np.intp), entries.data.astype(np.float64), int(shape[-1]))
