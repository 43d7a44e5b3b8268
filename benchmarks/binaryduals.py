"""The dual objective of binary machines, from the coefficients a library reports."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

_ROWS_AT_ONCE = 1024


def sum_of_binary_duals(X: Any, coefficients: NDArray[np.float64], gamma: float) -> float:
    """sum |b| - 1/2 sum_p b_p' K b_p, in float64.

    `X` are the support patterns, dense or CSR; `coefficients` has a row for each and a column for each binary problem,
    with the sign of the side the pattern is on. The sign of a whole column is of no account.
    """
    X = X.astype(np.float64)
    squared_norms = 0.0
    for first in range(0, X.shape[0], _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        squared_norms += float(np.sum(coefficients[rows] * (rbf_kernel(X[rows], X, gamma=gamma) @ coefficients)))
    return float(np.abs(coefficients).sum()) - squared_norms / 2
