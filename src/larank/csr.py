"""CSR matrices that can be handed to the core."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["sound_csr"]


def sound_csr(X: Any) -> Any:
    """X with sorted columns, each named once in its row; an error where it names rows or columns it does not have.

    SciPy lets such matrices pass, and the core would read and write where they point to.
    """
    _check_structure(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _check_structure(X: Any) -> None:
    low, high = (X.indices.min(), X.indices.max()) if X.indices.size else (0, 0)
    if low < 0 or high >= X.shape[1]:
        raise ValueError(
            f"X must have column indices from 0 to {X.shape[1] - 1}, its number of features less one; "
            f"got {low if low < 0 else high}"
        )
    stored = min(X.indices.size, X.data.size)
    sound = len(X.indptr) == X.shape[0] + 1 and X.indptr[0] == 0 and X.indptr[-1] <= stored
    if not sound or (np.diff(X.indptr) < 0).any():
        raise ValueError(
            "X must have an indptr that never decreases and ends within its indices, got one that does not"
        )
