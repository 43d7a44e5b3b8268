"""Kernel values of all examples, computed once and read by many trainings on parts of them.

Where one data set is trained on again and again, as in a search over folds, costs and values of gamma, its kernel
values are a symmetric matrix that all trainings read. Their examples are numbers of its rows. A look at the examples is
a sum of its rows, and nothing is computed twice.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank import _core
from larank.blocks.kernels import Kernel, PrecomputedKernel, ProductKernel, Products
from larank.blocks.pages import zeros
from larank.blocks.provider import Provider, TiledProvider, ids_of, length, pieces, rows_of
from larank.blocks.ranges import LARGEST, check_kernel_values
from larank.blocks.store import Batch, Support, rows_like

_Array = NDArray[Any]
_Float = NDArray[np.float64]
_Index = NDArray[np.int64]

_ROWS_AT_ONCE = 64
_COLUMNS_AT_ONCE = 1008  # no power of two, or the columns of a tile would be in few lines of the cache when transposed


class SharedValues:
    """The kernel values of all pairs of examples, for one kernel after another.

    Inner products serve all kernels that are made of them, where there is memory for them beside the values.

    Parameters
    ----------
    examples : array, CSR matrix or sequence
        What the values are of; of a precomputed kernel, the matrix itself.
    provider : callable
        From a kernel to a provider of its values.
    nbytes : float
        The memory that may be taken.
    """

    def __init__(self, examples: Any, provider: Any, nbytes: float) -> None:
        self._examples, self._provider = examples, provider
        self._nbytes = nbytes
        self._values: list[_Array] = []
        self._products: _Array | None = None

    @property
    def nbytes(self) -> int:
        """What is kept here."""
        return sum(matrix.nbytes for matrix in (*self._values, self._products) if matrix is not None)

    def of(self, kernel: Kernel, place: int = 0) -> _Array:
        """The matrix for a kernel, in the place of the one that was there; places are taken one after another."""
        if isinstance(kernel, PrecomputedKernel) and not kernel.plus:
            return np.ascontiguousarray(self._examples)
        provider = self._provider(kernel)
        size = length(self._examples)
        if place == len(self._values):
            self._values.append(zeros((size, size), provider.dtype))
        values = self._values[place]
        with provider.threads():
            if isinstance(kernel, ProductKernel) and 2 * values.nbytes <= self._nbytes:
                self._map_products(kernel, provider, values)
            else:
                _fill(provider, self._examples, values)
        return values

    def _map_products(self, kernel: ProductKernel, provider: Provider, values: _Array) -> None:
        assert isinstance(provider, TiledProvider)
        size = length(self._examples)
        diagonal, norms = provider.measure(self._examples)
        if self._products is None:
            self._products = zeros((size, size), provider.dtype)
            _fill(self._provider(Products(kernel.of_distance)), self._examples, self._products)
        products = self._products

        def fill(rows: slice) -> None:
            values[rows] = products[rows]
            with np.errstate(over="ignore", invalid="ignore"):
                cancelled = kernel.map(values[rows], norms[rows], norms)
            if len(cancelled):
                some, every = (provider.part(self._examples, part, norms) for part in (rows, slice(0, size)))
                provider.set_near(kernel, cancelled, some, 0, every, 0, values[rows])
            if not _core.is_within(values[rows], LARGEST[provider.dtype]):
                check_kernel_values(values[rows], f"kernel={kernel.name!r}", np.arange(size)[rows], np.arange(size))

        provider.each(fill, pieces(size, _ROWS_AT_ONCE))
        np.fill_diagonal(values, diagonal)


def _fill(provider: Provider, X: Any, out: _Array) -> None:
    """All values, each computed once."""
    diagonal, norms = provider.measure(X)
    for columns in pieces(length(X), _COLUMNS_AT_ONCE):
        below = slice(columns.start, None)

        def keep(rows: slice, values: _Array, columns: slice = columns) -> None:
            rows = slice(columns.start + rows.start, columns.start + rows.stop)
            out[rows, columns] = values
            out[columns, rows] = values.T

        provider.sweep(X[below], provider.part(X, columns, norms), keep, norms[below])
    np.fill_diagonal(out, diagonal)


def matrix_nbytes(X: Any, dtype: Any) -> int:
    """What the kernel values of all pairs of examples take."""
    return length(X) ** 2 * int(np.dtype(dtype).itemsize)


class SharedProvider(Provider):
    """Values that are in a matrix already; the examples are numbers of its rows, in an array of one dimension."""

    def __init__(
        self, kernel: Kernel, values: _Array, n_jobs: int | None, source: Provider | None = None, examples: Any = None
    ) -> None:
        super().__init__(kernel, values.dtype, Support(rows_like(np.zeros(0, np.int64)), values.dtype), n_jobs)
        self.matrix = values
        self._source, self._examples = source, examples  # where more precise values come from

    def batch(self, X: _Index, ids: Any, rows: Any = None) -> Batch:
        """Examples prepared for looking them up."""
        numbers = X if rows is None else X[rows]
        diagonal = self.matrix[numbers, numbers].astype(np.float64)
        return Batch(numbers, ids_of(ids, len(numbers)), diagonal, np.zeros(len(numbers), self.dtype))

    def part(self, X: _Index, rows: Any, norms: _Array | None) -> Batch:
        """Rows of X for products with others."""
        return self.batch(X, np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows, rows)

    def exact_scores(self, X: _Index, patterns: _Index, coefficients: _Float) -> _Float:
        """Return scores in double precision; `patterns` are numbers of rows, too."""
        if self._source is None:
            return np.asarray(self.matrix[np.ix_(X, patterns)].astype(np.float64) @ coefficients)
        others = self._source.patterns_among(self._examples, patterns)
        return self._source.exact_scores(rows_of(self._examples, X), others, coefficients)

    def scores(self, X: _Index, slots: Any, coefficients: Any) -> _Float:
        """Scores of any examples, by their rows."""
        numbers = self._held(self._checked(slots)).examples
        return np.asarray(self.matrix[np.ix_(X, numbers)].astype(np.float64) @ coefficients)

    def _values(self, left: Batch, right: Batch, out: _Array) -> None:
        start = time.perf_counter()
        for some in pieces(len(left), _ROWS_AT_ONCE):
            np.take(self.matrix[left.examples[some]], right.examples, axis=1, out=out[some], mode="clip")
        self._count(0, time.perf_counter() - start)
