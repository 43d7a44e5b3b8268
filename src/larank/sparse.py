"""Sparse matrices from outside, of users and of files: checked before anything follows their indices.

SciPy lets matrices pass that name rows and columns they do not have, and whoever reads one then reads and writes where
it points to. Nothing here does arithmetic on indices, which might wrap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix


def sound_csr(X: Any) -> Any:
    """X as a CSR matrix with sorted columns, each named once in its row; as it is if it is one.

    Raises
    ------
    ValueError
        If it names rows or columns it does not have.
    """
    check_sparse(X)
    return canonical_csr(X.tocsr())


def canonical_csr(X: Any) -> Any:
    """A CSR matrix that was checked, with sorted columns, each named once in its row; as it is if it is one."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_sparse(X: Any) -> None:
    """Raise a ValueError where a sparse matrix names rows or columns it does not have."""
    if X.ndim == 2 and X.format == "coo":
        _check_range(X.row, X.shape[0], "row")
        _check_range(X.col, X.shape[1], "column")
    elif X.ndim == 2 and X.format in ("csr", "csc", "bsr"):
        height, width = X.blocksize if X.format == "bsr" else (1, 1)
        sizes = (X.shape[0] // height, X.shape[1] // width)
        rows, columns = sizes[::-1] if X.format == "csc" else sizes
        _check_compressed(X.indices, X.indptr, min(len(X.indices), len(X.data)), rows, columns, X.format == "csc")


def csr_of(data: Any, indices: Any, indptr: Any, shape: Any, kind: Any = csr_matrix) -> Any:
    """A CSR matrix from the arrays of a file, whose types are as doubtful as their values.

    Raises
    ------
    ValueError
        If the arrays are not those of a CSR matrix of this shape.
    """
    sizes = np.asarray(shape)
    if sizes.shape != (2,) or sizes.dtype.kind not in "iu" or not all(0 <= size < 2**62 for size in sizes.tolist()):
        raise ValueError(f"shape must be two numbers of rows and columns, got {sizes.tolist()}")
    for name, array, types in (("data", data, "biuf"), ("indices", indices, "iu"), ("indptr", indptr, "iu")):
        if array.ndim != 1 or array.dtype.kind not in types:
            raise ValueError(f"{name} must be a list of numbers, got {array.dtype} of shape {array.shape}")
    if len(data) != len(indices):
        raise ValueError(f"data and indices must be equally long, got {len(data)} and {len(indices)}")
    rows, columns = sizes.tolist()
    _check_compressed(indices, indptr, len(data), rows, columns, False)
    return kind((data, indices, indptr), shape=(rows, columns))


def _check_compressed(
    indices: NDArray[Any], indptr: NDArray[Any], stored: int, rows: int, columns: int, by_columns: bool
) -> None:
    _check_range(indices, columns, "row" if by_columns else "column")
    if len(indptr) != rows + 1 or indptr[0] != 0 or indptr[-1] > stored or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(
            f"X must have an indptr that never decreases, from 0 up to its {stored} indices at most, in {rows + 1} "
            "entries; got one that does not"
        )


def _check_range(indices: NDArray[Any], size: int, what: str) -> None:
    low, high = (indices.min(), indices.max()) if len(indices) else (0, -1)
    if low < 0 or high >= size:
        raise ValueError(
            f"X must have {what} indices from 0 to {size - 1}, one less than it has {what}s; "
            f"got {low if low < 0 else high}"
        )
