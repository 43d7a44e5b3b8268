"""Kernel values that the caller has computed already, used in place."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.blocks.kernels import Kernel, PrecomputedKernel
from larank.blocks.provider import ROWS_AT_ONCE, Provider, ids_of, pieces, precision, tolerance
from larank.blocks.ranges import check_kernel_values
from larank.blocks.store import Batch, GramRows, Support

_Array = NDArray[Any]
_Float = NDArray[np.float64]
_Index = NDArray[np.int64]


class PrecomputedProvider(Provider):
    """Rows of kernel values, used in place. Column j of a row belongs to example j of the stream.

    The value of two examples is always taken from the row of the newer one, that with the higher id: a row given to
    `partial_fit` cannot know columns of examples to come. Values are checked as they are used; `check_gram` checks a
    whole matrix.
    """

    def __init__(self, kernel: Kernel, X: Any, n_jobs: int | None) -> None:
        dtype = precision(X)
        super().__init__(kernel, dtype, Support(GramRows(), dtype), n_jobs)
        assert isinstance(kernel, PrecomputedKernel)
        self._plus = dtype.type(kernel.plus)

    @staticmethod
    def serves(kernel: Kernel, X: Any) -> bool:
        """Whether this is the provider for such a kernel and data."""
        return isinstance(kernel, PrecomputedKernel)

    def batch(self, X: Any, ids: Any, rows: Any = None) -> Batch:
        """Examples prepared for products, checked."""
        if not isinstance(X, np.ndarray) or X.ndim != 2:
            raise ValueError(f"X must be a 2d array of kernel values with kernel='precomputed', got {type(X).__name__}")
        chosen = np.arange(len(X))[slice(None) if rows is None else rows]
        ids = ids_of(ids, len(chosen))
        if len(ids) and ids.max() >= X.shape[1]:
            raise ValueError(
                f"X must have a column for every example so far, at least {ids.max() + 1}, got {X.shape[1]}"
            )
        diagonal = X[chosen, ids].astype(np.float64)
        examples = GramRows([X], np.zeros(len(ids), np.int64), chosen)
        return Batch(examples, ids, diagonal + self._plus, np.zeros(len(ids), self.dtype))

    def adopt(self, patterns: Any, ids: Any) -> None:
        """Let slots 0, 1, ... hold these examples, for prediction: the rows that training needs are not there."""
        ids = np.asarray(ids, np.int64)
        slots, nothing = np.arange(len(ids)), np.zeros(len(ids))
        self.store(slots, Batch(GramRows.without_rows(len(ids)), ids, nothing, nothing), slots)

    def patterns(self, slots: Any) -> _Index:
        """The stream ids of the examples in these slots."""
        return self._support.ids[self._checked(slots)]

    def keep_values(self, examples: int) -> None:
        """All values are kept by the caller."""

    def patterns_among(self, X: Any, rows: _Index) -> _Index:
        """Return the numbers themselves, because the columns of a square matrix have the order of its rows."""
        return rows

    def exact_scores(self, X: Any, patterns: _Index, coefficients: _Float) -> _Float:
        """Return the scores of rows of X, of which no value is computed; `patterns` are stream ids."""
        values = X[:, patterns].astype(np.float64) + self._plus
        return np.asarray(values @ coefficients)

    def scores(self, X: Any, slots: Any, coefficients: Any) -> _Float:
        """Scores of any examples, some rows at a time."""
        ids = self.patterns(slots)
        if len(ids) and ids.max() >= X.shape[1]:
            raise ValueError(
                f"X must have a column for every training example, at least {ids.max() + 1}, got {X.shape[1]}"
            )
        out = np.zeros((len(X), coefficients.shape[1]))
        for rows in pieces(len(X), ROWS_AT_ONCE):
            out[rows] = np.asarray((X[rows][:, ids].astype(np.float64) + self._plus) @ coefficients)
        return out

    def sweep(self, X: Any, right: Batch, work: Callable[[slice, _Array], None], norms: _Array | None = None) -> None:
        """Values straight from the rows of X: those of training were checked as a whole, others have no partner."""

        def fill(rows: slice) -> None:
            values = X[rows].take(right.ids, axis=1)
            values += self._plus
            work(rows, values)

        self.each(fill, pieces(len(X), ROWS_AT_ONCE))

    def part(self, X: Any, rows: Any, norms: _Array | None) -> Batch:
        """Rows of X for products with others."""
        ids = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        return self.batch(X, ids, rows)

    def _values(self, left: Batch, right: Batch, out: _Array) -> None:
        start = time.perf_counter()
        left.examples.gather(right.ids, out)
        newer = np.flatnonzero(right.ids > left.ids.min()) if len(left) else np.zeros(0, np.int64)
        if len(newer):
            other = np.empty((len(newer), len(left)), self.dtype)
            right.examples.take(newer).gather(left.ids, other)
            out[:, newer] = np.where(right.ids[newer] > left.ids[:, None], other.T, out[:, newer])
        out += np.where(right.ids < 0, 0, self._plus)  # a slot that is free has the id -1
        self._count(0, time.perf_counter() - start)
        check_kernel_values(out, "kernel='precomputed'", left.ids, right.ids)


def check_gram(X: Any) -> None:
    """Check the whole matrix of a precomputed kernel.

    Raises
    ------
    ValueError
        Naming the first entry where it is not square, finite or symmetric.
    """
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.shape[0] != X.shape[1]:
        shape = getattr(X, "shape", type(X).__name__)
        raise ValueError(f"X must be a square matrix of kernel values with kernel='precomputed', got {shape}")
    ids, lengths = np.arange(len(X)), np.sqrt(np.abs(X.diagonal().astype(np.float64)))
    for rows in pieces(len(X), ROWS_AT_ONCE):
        check_kernel_values(X[rows], "kernel='precomputed'", ids[rows], ids)
    for rows in pieces(len(X), ROWS_AT_ONCE):
        scale = np.maximum(np.outer(lengths[rows], lengths), np.abs(X[rows]))
        apart = np.abs(X[rows] - X[:, rows].T) > tolerance(X.dtype) * scale
        if apart.any():
            i, j = np.argwhere(apart)[0]
            i += rows.start
            raise ValueError(
                f"kernel='precomputed': X must be symmetric, got X[{i}, {j}] = {X[i, j]} and X[{j}, {i}] = {X[j, i]}"
            )


def indefinite_pair(X: _Array, rows: _Index, plus: float) -> str:
    """Two of these examples that show that a matrix, plus a constant, is not positive semi-definite, or nothing.

    A minor of theirs is below zero: k(x, z)^2 > k(x, x) k(z, z).
    """
    diagonal = X.diagonal()[rows].astype(np.float64) + plus
    if (diagonal < 0).any():
        i = int(np.argmin(diagonal))
        return f"k(x, x) = {diagonal[i]} for example {rows[i]}"
    lengths = np.sqrt(diagonal)
    for some in pieces(len(rows), ROWS_AT_ONCE):
        values = X[rows[some]][:, rows] + plus
        wrong = np.abs(values) > (1 + tolerance(X.dtype)) * np.outer(lengths[some], lengths)
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            return (
                f"k(x, z) = {values[i, j]} for examples {rows[some][i]} and {rows[j]} with "
                f"k(x, x) = {diagonal[some][i]} and k(z, z) = {diagonal[j]}"
            )
    return ""
