"""The primal objectives, evaluated for everybody's solution by the same code in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Weights = NDArray[np.float64]
Labels = NDArray[np.int64]


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


def error(W: Weights, X: sparse.csr_matrix, y: Labels) -> float:
    """Share of examples whose best score is not that of their class."""
    return float(np.mean(np.argmax(X @ W.T, axis=1) != y))
