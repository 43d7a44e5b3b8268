"""The objectives solutions are compared by, evaluated for everybody by the same code in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp
from sklearn.metrics.pairwise import rbf_kernel

Weights = NDArray[np.float64]
Labels = NDArray[np.int64]

_ROWS_AT_ONCE = 1024


# ---- Linear: primal objectives from weights ----


def _crammer_singer(scores: Weights, y: Labels) -> float:
    """sum_i max_m (e_i^m + s_i^m) - s_i^y.    [sdm] (1)"""
    own = scores[np.arange(len(y)), y]
    margins = scores + 1.0
    margins[np.arange(len(y)), y] = own
    return float(np.sum(margins.max(axis=1) - own))


def _one_vs_rest(scores: Weights, y: Labels) -> float:
    """Sum over the k binary problems of their hinge losses.    [sdm] section 4"""
    margins = -scores
    margins[np.arange(len(y)), y] *= -1.0
    return float(np.sum(np.maximum(0.0, 1.0 - margins)))


LOSSES: dict[str, Callable[[Weights, Labels], float]] = {
    "crammer-singer": _crammer_singer,
    "one-vs-rest": _one_vs_rest,
}


def primal(formulation: str, W: Weights, X: sparse.csr_matrix, y: Labels, C: float) -> float:
    """1/2 |W|^2 + C times the loss; W has one row per class."""
    return 0.5 * float(np.sum(W * W)) + C * LOSSES[formulation](X @ W.T, y)


def multinomial(W: Weights, X: Any, y: Labels, C: float) -> float:
    """1/2 |W|^2 + C sum_i log sum_u exp(s_iu - s_iy).    [primal] (1.1) with (1.4), g = 1, and the logistic loss

    W has one row per class, whose last entry is the bias; it is not regularised.
    """
    total = 0.5 * float(np.sum(W[:, :-1] ** 2))
    for first in range(0, len(y), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        scores = np.asarray(X[rows].astype(np.float64) @ W[:, :-1].T) + W[:, -1]
        own = scores[np.arange(len(scores)), y[rows]]
        total += C * float(np.sum(logsumexp(scores, axis=1) - own))
    return total


def error(W: Weights, X: sparse.csr_matrix, y: Labels) -> float:
    """Share of examples whose best score is not that of their class."""
    return float(np.mean(np.argmax(X @ W.T, axis=1) != y))


# ---- Kernel: dual objectives from the coefficients a library reports ----


def sum_of_binary_duals(X: Any, coefficients: NDArray[np.float64], gamma: float) -> float:
    """sum |b| - 1/2 sum_p b_p' K b_p.

    `X` are the support patterns, dense or CSR; `coefficients` has a row for each and a column for each binary problem,
    with the sign of the side the pattern is on. The sign of a whole column is of no account.
    """
    X = X.astype(np.float64)
    squared_norms = 0.0
    for first in range(0, X.shape[0], _ROWS_AT_ONCE):
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
