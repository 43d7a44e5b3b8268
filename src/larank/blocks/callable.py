"""Kernel values by a function of the caller's, on examples of whatever type they came in."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from larank.blocks.kernels import CallableKernel, Kernel
from larank.blocks.provider import ROWS_AT_ONCE, Provider, ids_of, length, pieces, read_only, rows_of, tolerance
from larank.blocks.ranges import check_kernel_values
from larank.blocks.store import Batch, Support, rows_like
from larank.sparse import sound_csr

_Array = NDArray[Any]
_Float = NDArray[np.float64]
_Index = NDArray[np.int64]


class CallableProvider(Provider):
    """The caller's function, always called in the calling thread, on examples of whatever type they came in."""

    kernel: CallableKernel

    _rows_measured = 16  # only the diagonal is needed, so no table of many with many
    _is_probed = False  # whether the function has been called with two sets of different sizes

    def __init__(self, kernel: Kernel, X: Any, n_jobs: int | None) -> None:
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        super().__init__(kernel, dtype, Support(rows_like(X), dtype), n_jobs)

    @staticmethod
    def serves(kernel: Kernel, X: Any) -> bool:
        """Whether this is the provider for such a kernel and data."""
        return isinstance(kernel, CallableKernel)

    @property
    def concurrent(self) -> bool:
        """The caller's function is called in the calling thread only."""
        return False

    def batch(self, X: Any, ids: Any, rows: Any = None) -> Batch:
        """Examples prepared for products, checked."""
        examples = X if rows is None else rows_of(X, rows)
        count = length(examples)
        ids = ids_of(ids, count)
        batch = Batch(examples, ids, np.zeros(count), np.zeros(count, self.dtype))
        table = np.empty((count, count), self.dtype)
        self._values(batch, batch, table)
        self._check_symmetry(table, ids)
        upper = np.triu(np.ones(table.shape, bool), 1)
        np.copyto(table, table.T.copy(), where=upper)
        self._count(count * (count + 1) // 2)
        batch.diagonal, batch.among = table.diagonal().astype(np.float64), table
        return batch

    def adopt(self, patterns: Any, ids: Any) -> None:
        """Let slots 0, 1, ... hold what `patterns` returned, a few at a time."""
        ids = ids_of(ids, length(patterns))
        for rows in pieces(len(ids), self._rows_measured):
            batch = self.batch(patterns, ids[rows], rows)
            self.store(np.arange(rows.start, rows.stop), batch, np.arange(len(batch)))

    def _batch_for_scores(self, X: Any, ids: _Index) -> Batch:
        return self.part(X, ids, None)

    def part(self, X: Any, rows: Any, norms: _Array | None) -> Batch:
        """Rows of X for products with others."""
        ids = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        return _unmeasured(rows_of(X, rows), ids)

    def _check_symmetry(self, table: _Array, ids: _Index) -> None:
        apart = np.abs(table - table.T) > tolerance(self.dtype) * max(float(np.abs(table).max(initial=0.0)), 1e-300)
        if apart.any():
            i, j = np.argwhere(apart)[0]
            raise ValueError(
                f"kernel must be symmetric, got k(x, z) = {table[i, j]} but k(z, x) = {table[j, i]} for examples "
                f"{ids[i]} and {ids[j]}"
            )

    def _in_double(self, patterns: Any) -> CallableProvider:
        """Return a provider of the same function, which is not probed again, for examples in double precision."""
        double = CallableProvider(self.kernel, patterns, self.n_jobs)
        double._is_probed = self._is_probed
        return double

    def scores(self, X: Any, slots: Any, coefficients: Any) -> _Float:
        """Scores of any examples, some rows at a time."""
        right = self._held(self._checked(slots))
        out = np.zeros((length(X), coefficients.shape[1]))
        for rows in pieces(length(X), ROWS_AT_ONCE):
            left = self.part(X, rows, None)
            table = np.empty((len(left), len(right)), self.dtype)
            if table.size:
                self._fill(left, right, table)
            out[rows] = table.astype(np.float64) @ coefficients
        return out

    def _values(self, left: Batch, right: Batch, out: _Array) -> None:
        start = time.perf_counter()
        if out.size:
            self._fill(left, right, out)
        self._count(0, time.perf_counter() - start)

    def _fill(self, left: Batch, right: Batch, out: _Array) -> None:
        if not self._is_probed and len(left) == len(right):
            self._probe(left)
        values = self._returned(left, right)
        with np.errstate(over="ignore"):
            out[...] = values
        check_kernel_values(out, "kernel", left.ids, right.ids)

    def _probe(self, batch: Batch) -> None:
        """Compare two examples with one: a function that ignores an argument is right only for sets of equal size."""
        self._is_probed = True
        two, one = np.array([0, min(1, len(batch) - 1)]), np.array([0])
        first, second = (_unmeasured(rows_of(batch.examples, rows), batch.ids[rows]) for rows in (two, one))
        self._returned(first, second)

    def _returned(self, left: Batch, right: Batch) -> _Float:
        """Return what the caller's function returns for two sets of examples, checked."""
        returned = self._called(left.examples, right.examples)
        first, last = left.ids.min(), left.ids.max()
        span = f"examples {first} to {last}"
        if last - first + 1 != len(left):
            span = f"{len(left)} of the {span}"
        try:
            values = _real_numbers(returned)
        except (TypeError, ValueError) as error:
            raise ValueError(f"kernel must return numbers, got {error} for {span}") from None
        shape = len(left), len(right)
        if values.shape != shape:
            raise ValueError(
                f"kernel must return an array of shape {shape} = (len(A), len(B)) for {span}, got shape "
                f"{values.shape}. kernel(A, B) must compare each example of A with each example of B"
            )
        if not np.isfinite(values).all():
            i, j = np.argwhere(~np.isfinite(values))[0]
            raise ValueError(
                f"kernel must return finite numbers, got {values[i, j]} for examples {left.ids[i]} and {right.ids[j]}"
            )
        return values + self.kernel.plus if self.kernel.plus else values

    def _called(self, left: Any, right: Any) -> Any:
        function, is_same = self.kernel.function, left is right  # which functions may look at
        A = _handed_over(left)
        try:
            return function(A, A if is_same else _handed_over(right))
        except ValueError as error:
            if _NEEDS_BUFFER not in str(error):
                raise
        A = _copied(left)  # the function does not write, but is compiled for memory that can be written to
        return function(A, A if is_same else _copied(right))


def _unmeasured(examples: Any, ids: _Index) -> Batch:
    """Return a batch whose diagonal and norms are zeros, because the caller's function needs neither."""
    nothing = np.zeros(len(ids))
    return Batch(examples, ids, nothing, nothing)


_NEEDS_BUFFER = "buffer source array is read-only"  # what compiled functions of Cython say, scikit-learn's among them


def _copied(examples: Any) -> Any:
    if isinstance(examples, list):
        return [_copied(example) for example in examples]
    return examples.copy() if isinstance(examples, np.ndarray) or sparse.issparse(examples) else examples


def _handed_over(examples: Any) -> Any:
    """Return examples as the caller's function may have them: it can change neither X nor what is kept of it."""
    return list(examples) if isinstance(examples, list) else read_only(examples)


def _real_numbers(returned: Any) -> _Float:
    """Return what a kernel returned as an array of float64; an error names what it is instead."""
    rows = returned if isinstance(returned, list | tuple) else [returned]
    if any(np.ma.isMaskedArray(row) for row in rows):
        raise TypeError("a masked array; fill the masked entries with numbers,")
    try:
        values = np.asarray(sound_csr(returned).toarray() if sparse.issparse(returned) else returned)
    except ValueError:  # rows of different lengths
        values = np.empty(0, object)
    if values.dtype.kind not in "biuf":
        kind = type(returned).__name__
        raise TypeError(kind if values.dtype.kind == "O" else f"{kind} of {values.dtype}")
    return values.astype(np.float64, copy=False)
