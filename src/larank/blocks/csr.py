"""Sparse rows: products in the core, where a few rows of the batch at a time are spread out."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from larank import _core
from larank.blocks.kernels import Kernel, ProductKernel, RowKernel
from larank.blocks.provider import TiledProvider, ids_of, precision
from larank.blocks.store import Batch, Support, rows_like

_Array = NDArray[Any]
_Float = NDArray[np.float64]
_Index = NDArray[np.int64]


class CsrProvider(TiledProvider):
    """Sparse rows: products in the core, where a few rows of the batch at a time are spread out."""

    _tile_rows = 128  # as many as are spread out at a time,
    _tile_columns = 4096  # and every tile spreads them out again

    def __init__(self, kernel: Kernel, X: Any, n_jobs: int | None) -> None:
        if not isinstance(kernel, ProductKernel):
            raise ValueError(f"kernel={kernel.name!r} needs a dense X, got a sparse matrix; X.toarray() would do")
        dtype = precision(X)
        self._features = int(X.shape[1])
        super().__init__(kernel, dtype, Support(rows_like(X), dtype), n_jobs)

    @staticmethod
    def serves(kernel: Kernel, X: Any) -> bool:
        """Whether this is the provider for such a kernel and data."""
        return isinstance(kernel, ProductKernel | RowKernel) and sparse.issparse(X)

    def _prepared(self, X: Any, ids: Any, rows: Any, norms: _Array | None = None) -> Batch:
        assert isinstance(self.kernel, ProductKernel)
        examples = X if rows is None else X[rows]
        if examples.dtype != self.dtype or examples.format != "csr":
            with np.errstate(over="ignore"):  # tiles are checked
                examples = sparse.csr_matrix(examples, dtype=self.dtype)
        if examples.shape[1] != self._features:
            raise ValueError(f"X must have {self._features} features, got {examples.shape[1]}")
        if not examples.has_canonical_format:
            examples = examples.copy()
            examples.sum_duplicates()
        squares = _squared_norms(examples) if norms is None else norms[rows]
        diagonal = self.kernel.diagonal(squares)
        with np.errstate(over="ignore"):
            norms = squares.astype(self.dtype)
        return Batch(examples, ids_of(ids, examples.shape[0]), diagonal, norms)

    def _tile(self, left: Batch, rows: slice, right: Batch, columns: slice, out: _Array) -> tuple[float, float]:
        assert isinstance(self.kernel, ProductKernel)
        start = time.perf_counter()
        _core.sparse_products(
            *_csr_arrays(left.examples, rows), *_csr_arrays(right.examples, columns), self._features, out
        )
        multiplied = time.perf_counter()
        self._map_tile(left, rows, right, columns, out)
        return multiplied - start, time.perf_counter() - multiplied

    def _squared_distances(self, left: Batch, rows: _Index, right: Batch, others: _Index) -> _Float:
        return _squared_norms(sparse.csr_matrix(left.examples[rows].astype(np.float64) - right.examples[others]))


def _squared_norms(rows: Any) -> _Float:
    """x'x of CSR rows."""
    norms = np.zeros(rows.shape[0])
    filled = np.flatnonzero(np.diff(rows.indptr))
    if len(filled):
        norms[filled] = np.add.reduceat(rows.data.astype(np.float64) ** 2, rows.indptr[filled])
    return norms


def _csr_arrays(X: Any, rows: slice) -> tuple[_Array, _Array, _Array]:
    starts = X.indptr[rows.start : rows.stop + 1]
    return X.data, X.indices.astype(np.int32, copy=False), starts.astype(np.int64, copy=False)
