"""Examples of a pool of any kind: arrays, CSR matrices, data frames and sequences of objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from larank.sparse import check_sparse
from larank.training.checkpointfile import fingerprint

_Index = NDArray[np.int64]


def pool_size(X: Any) -> int:
    """How many examples X has, if it can be asked for single ones."""
    if issparse(X) and X.format != "csr":
        raise ValueError(f"X must be a CSR matrix if it is sparse, got format {X.format!r}; X.tocsr() would do")
    if issparse(X):
        check_sparse(X)
    if isinstance(X, np.ndarray) and X.ndim != 2 and X.dtype.kind not in "OUS":
        raise ValueError(f"X must have two dimensions, or be a sequence of objects; got shape {X.shape}")
    if isinstance(X, str) or not (hasattr(X, "shape") or isinstance(X, Sequence)):
        raise ValueError(f"X must be an array, a CSR matrix, a data frame or a sequence, got {type(X).__name__}")
    if not length(X):
        raise ValueError("X must hold at least one example, got none")
    return length(X)


def length(X: Any) -> int:
    """How many examples there are."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def is_frame(X: Any) -> bool:
    """Whether its columns have names."""
    return hasattr(X, "columns")


def rows(X: Any, numbers: _Index) -> Any:
    """Some examples, in a collection like X."""
    if isinstance(X, np.ndarray) or issparse(X):
        return X[numbers]
    return _safe_indexing(X, numbers) if is_frame(X) else [X[number] for number in numbers.tolist()]


def example(X: Any, number: int) -> Any:
    """One example; of a matrix with names or few values, a matrix of one row."""
    if issparse(X) or is_frame(X):
        return rows(X, np.array([number]))
    return X[number]


def one_row(x: Any, pool: Any) -> Any:
    """A collection of one example, like the pool."""
    if is_frame(x):
        return x
    if issparse(x):
        return x.reshape(1, -1)
    is_table = issparse(pool) or is_frame(pool) or (isinstance(pool, np.ndarray) and pool.ndim == 2)
    return np.asarray(x).reshape(1, -1) if is_table else [x]


def is_same(x: Any, other: Any) -> bool:
    """Whether x is the other example, or several of them, or equal to it."""
    if x is other:
        return True
    if issparse(other):
        return issparse(x) and x.shape == other.shape and not (x != other).nnz
    if isinstance(other, np.ndarray):
        return np.array_equal(np.asarray(x).reshape(-1), other.reshape(-1))
    if is_frame(other):
        return is_frame(x) and bool(other.equals(x))
    try:
        return bool(other == x)
    except ValueError:  # objects that hold arrays
        return False


def as_numbers(X: Any) -> Any:
    """The features of examples as an array or CSR matrix of numbers; None where they are not numbers."""
    if issparse(X):
        return X
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf":
        return X
    return None


def content_of(X: Any, numbers: _Index) -> str:
    """What tells some examples from others, where they are numbers or text; otherwise nothing."""
    some = rows(X, numbers)
    features = as_numbers(some)
    if features is not None and issparse(features):
        return fingerprint(features.indptr.astype(np.int64), features.indices.astype(np.int64), features.data)
    if features is None and not all(isinstance(each, str) for each in ([] if is_frame(some) else some)):
        return ""
    return "" if is_frame(some) else fingerprint(some)
