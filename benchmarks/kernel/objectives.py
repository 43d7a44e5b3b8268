"""The dual objective behind a set of binary machines: what one-versus-one and one-versus-rest solvers maximise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

_ROWS_AT_ONCE = 1024


def sum_of_binary_duals(X: NDArray[Any], coefficients: NDArray[np.float64], gamma: float) -> float:
    """sum |b| - 1/2 sum_p b_p' K b_p, in float64.

    `X` are the support patterns; `coefficients` has a row for each and a column for each binary problem, with the sign
    of the side the pattern is on. The sign of a whole column is of no account.
    """
    X = X.astype(np.float64)
    squared_norms = 0.0
    for first in range(0, len(X), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        squared_norms += float(np.sum(coefficients[rows] * (rbf_kernel(X[rows], X, gamma=gamma) @ coefficients)))
    return float(np.abs(coefficients).sum()) - squared_norms / 2


def pair_by_pair(dual_coef: NDArray[Any], classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """LIBSVM's (classes - 1) x (support vectors) coefficients as one column per pair of classes.

    `classes` are those of the support vectors, numbered as LIBSVM does. A vector of class a has its coefficient against
    class b in row b, or in row b - 1 where b is above a.
    """
    pairs = list(combinations(range(len(dual_coef) + 1), 2))
    columns = np.zeros((len(classes), len(pairs)))
    for column, (a, b) in enumerate(pairs):
        columns[classes == a, column] = dual_coef[b - 1, classes == a]
        columns[classes == b, column] = dual_coef[a, classes == b]
    return columns


def side_by_side(machines: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The support patterns of binary machines with the face of `SVC`, and one column of coefficients for each."""
    support = np.unique(np.concatenate([machine.support_ for machine in machines]))
    columns = np.zeros((len(support), len(machines)))
    for column, machine in enumerate(machines):
        columns[np.searchsorted(support, machine.support_), column] = machine.dual_coef_[0]
    return support, columns
