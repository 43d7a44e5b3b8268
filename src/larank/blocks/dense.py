"""Dense rows: products in the core or by BLAS and the fused map of the kernel, or rows compared feature by feature."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank import _core
from larank.blocks.kernels import Kernel, ProductKernel, RowKernel
from larank.blocks.provider import BYTES, TiledProvider, ids_of, pieces, precision
from larank.blocks.store import Batch, Support, rows_like

_Array = NDArray[Any]
_Float = NDArray[np.float64]
_Index = NDArray[np.int64]


class DenseProvider(TiledProvider):
    """Dense rows: products and the fused map, or rows compared feature by feature.

    float32 rows far from the origin, compared with their spread, would leave nothing of |x|^2 + |z|^2 - 2x'z. They are
    moved there for the rbf kernel, which does not mind, and kept once more as they were.
    """

    # Squared distance of the mean from the origin over the variance, by precision.
    _FAR = MappingProxyType({np.dtype(np.float32): 16.0, np.dtype(np.float64): 1e8})
    _SAMPLE = 1024
    _ROWS_AT_ONCE = 64
    _CHEAP_FEATURES = 64
    # Left sides that BLAS takes longer to prepare the right side for than to multiply with it.
    _FEW_ROWS = range(2, 65)

    def __init__(self, kernel: Kernel, X: _Array, n_jobs: int | None) -> None:
        dtype = precision(X)
        self._features = int(X.shape[1])
        self._given = X.dtype
        self._origin = None
        if isinstance(kernel, ProductKernel) and kernel.of_distance and len(X):
            self._origin = self._far_origin(X)
        kind = np.empty((0, self._features), dtype)
        originals = None if self._origin is None else rows_like(kind)
        super().__init__(kernel, dtype, Support(rows_like(kind), dtype, originals), n_jobs)

    @staticmethod
    def serves(kernel: Kernel, X: Any) -> bool:
        """Whether this is the provider for such a kernel and data."""
        return isinstance(kernel, ProductKernel | RowKernel) and isinstance(X, np.ndarray) and X.ndim == 2

    @classmethod
    def _far_origin(cls, X: _Array) -> _Array | None:
        sample = X[:: max(1, len(X) // cls._SAMPLE)]
        mean = sample.mean(axis=0, dtype=np.float64)
        some = pieces(len(sample), cls._ROWS_AT_ONCE)  # in double precision all of them may be many bytes
        spread = sum(float(np.square(sample[rows] - mean).sum()) for rows in some) / len(sample)
        dtype = precision(X)
        return mean.astype(dtype) if float(mean @ mean) > cls._FAR[dtype] * spread else None

    def patterns(self, slots: Any) -> Any:
        """The examples in these slots, as they were given: bytes, unless a stream went on with other numbers."""
        return self._as_bytes(super().patterns(slots))

    def _as_bytes(self, rows: _Array) -> _Array:
        if self._given not in BYTES:
            return rows
        with np.errstate(invalid="ignore"):
            narrow = rows.astype(self._given)
        return narrow if (narrow == rows).all() else rows

    def keep_values(self, examples: int) -> None:
        """Keep kernel values, unless it is cheaper to compute them again."""
        if isinstance(self.kernel, RowKernel) or self._features >= self._CHEAP_FEATURES:
            super().keep_values(examples)

    def _prepared(self, X: Any, ids: Any, rows: Any, norms: _Array | None = None) -> Batch:
        with np.errstate(over="ignore"):  # tiles are checked
            originals = np.ascontiguousarray(X if rows is None else X[rows], self.dtype)
        if originals.shape[1] != self._features:
            raise ValueError(f"X must have {self._features} features, got {originals.shape[1]}")
        ids = ids_of(ids, len(originals))
        if isinstance(self.kernel, RowKernel):
            if norms is not None:
                return Batch(originals, ids, np.zeros(len(ids)), norms[rows])
            self._check_sign(originals, ids)
            return Batch(originals, ids, self.kernel.diagonal(originals), np.zeros(len(ids), self.dtype))
        assert isinstance(self.kernel, ProductKernel)
        examples = originals if self._origin is None else originals - self._origin
        if norms is not None:
            return Batch(examples, ids, self.kernel.diagonal(norms[rows]), norms[rows], originals)
        squares = np.einsum("ij,ij->i", examples, examples, dtype=np.float64)
        with np.errstate(over="ignore"):  # tiles are checked
            return Batch(examples, ids, self.kernel.diagonal(squares), squares.astype(self.dtype), originals)

    def _check_sign(self, rows: _Array, ids: _Index) -> None:
        assert isinstance(self.kernel, RowKernel)
        if self.kernel.non_negative and (rows < 0).any():
            i, j = np.argwhere(rows < 0)[0]
            raise ValueError(
                f"kernel={self.kernel.name!r} needs features >= 0; example {ids[i]} has {rows[i, j]} in feature {j}"
            )

    def _tile(self, left: Batch, rows: slice, right: Batch, columns: slice, out: _Array) -> tuple[float, float]:
        start = time.perf_counter()
        X, Z = left.examples[rows], right.examples[columns]
        if isinstance(self.kernel, RowKernel):
            self.kernel.compare(X, Z, out)
            return time.perf_counter() - start, 0.0
        assert isinstance(self.kernel, ProductKernel)
        if len(X) in self._FEW_ROWS:
            _core.dense_products(X, Z, out)
        elif len(X) > 1 and _core.has_wide_products():
            _core.wide_products(X, Z, out)
        else:
            np.matmul(X, Z.T, out=out)
        multiplied = time.perf_counter()
        self._map_tile(left, rows, right, columns, out)
        return multiplied - start, time.perf_counter() - multiplied

    def _squared_distances(self, left: Batch, rows: _Index, right: Batch, others: _Index) -> _Float:
        X, Z = (batch.examples if batch.originals is None else batch.originals for batch in (left, right))
        squared = np.empty(len(rows))
        _core.squared_distances(X, Z, rows, others, squared)
        return squared
