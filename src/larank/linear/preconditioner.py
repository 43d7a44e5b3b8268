"""Preconditioners of Newton's equations of the primal multiclass SVM: the Hessian, with less between the classes.

The Hessian of an example is that of its loss in the scores, times x_i x_i'. Where features are few, that matrix is
formed, for every class or for the mean over the classes, with the constant feature of the bias and the regulariser; where
they are many, its diagonal is. What is formed from very many examples is formed from a part of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_matrix, issparse

from larank.blocks.provider import pieces
from larank.linear.primalobjective import PrimalObjective, Table

Preconditioner = Callable[[Table], Table]

_FEATURES_FOR_CLASSES = 128  # up to here there is a matrix for each class
_FEATURES_FOR_MATRIX = 2048  # up to here there is one matrix for all of them
_EXAMPLES = 50_000
_EXAMPLES_PER_FEATURE = 20
_ROWS_AT_ONCE = 4096
_LEAST_BIAS = 1e-9  # of the costs: the curvature in the biases may be none


def preconditioner_at(objective: PrimalObjective, damping: float, random: np.random.RandomState) -> Preconditioner:
    """The preconditioner at the table of the last evaluation; `damping` is added to the curvature in the biases."""
    d, k = objective.n_features, objective.examples.n_classes
    if d > _FEATURES_FOR_MATRIX:
        return _diagonal(objective, damping)
    sample = _sample(objective, random)
    if d > _FEATURES_FOR_CLASSES or objective.label_kernel is not None:
        scale = 1.0 if objective.label_kernel is None else float(np.trace(objective.label_kernel)) / k
        factor = cho_factor(_matrix(objective, sample, scale * objective.curvatures(), damping), lower=True)
        return lambda R: _like(R, cho_solve(factor, R))
    factors = [cho_factor(_matrix(objective, sample, objective.curvatures(u), damping), lower=True) for u in range(k)]

    def solve(R: Table) -> Table:
        Z = np.zeros_like(R)
        for u, factor in enumerate(factors):
            Z[:, u] = cho_solve(factor, R[:, u])
        return Z

    return solve


def _like(R: Table, Z: NDArray[Any]) -> Table:
    return np.ascontiguousarray(Z, R.dtype)


def _sample(objective: PrimalObjective, random: np.random.RandomState) -> NDArray[np.intp]:
    n = objective.n_examples
    wanted = max(_EXAMPLES, _EXAMPLES_PER_FEATURE * objective.n_features)
    return np.arange(n) if n <= wanted else np.sort(random.choice(n, wanted, replace=False))


def _matrix(
    objective: PrimalObjective, sample: NDArray[np.intp], curvatures: NDArray[np.float64], damping: float
) -> NDArray[np.float64]:
    """I + sum_i h_i x_i x_i', with a constant feature that is not regularised."""
    d = objective.n_features
    roots = np.sqrt(curvatures[sample] * (objective.n_examples / len(sample)))
    matrix = np.zeros((d + 1, d + 1))

    def add(part: slice) -> None:
        rows = objective.examples.X[sample[part]]
        rows = rows.toarray() if issparse(rows) else rows
        scaled = np.empty((len(rows), d + 1), rows.dtype)
        np.multiply(rows, roots[part, None], out=scaled[:, :d], casting="same_kind")
        scaled[:, d] = roots[part]
        products = scaled.T @ scaled
        with objective.workers.lock:
            matrix.__iadd__(products)

    objective.workers.run(add, pieces(len(sample), _ROWS_AT_ONCE))
    matrix[np.arange(d), np.arange(d)] += 1
    matrix[d, d] = _bias(objective, matrix[d, d] + damping)
    return matrix


def _diagonal(objective: PrimalObjective, damping: float) -> Preconditioner:
    X, h = objective.examples.X, objective.curvatures()
    squared = csr_matrix((np.square(X.data), X.indices, X.indptr), X.shape) if issparse(X) else np.square(X)
    diagonal = np.append(1 + np.asarray(squared.T @ h), _bias(objective, h.sum() + damping))
    by = (1 / diagonal).astype(X.dtype)[:, None]
    return lambda R: R * by


def _bias(objective: PrimalObjective, curvature: float) -> float:
    return curvature + _LEAST_BIAS * float(objective.examples.costs.sum())
