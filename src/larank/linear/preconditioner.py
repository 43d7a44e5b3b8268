"""Preconditioners of Newton's equations of the primal multiclass SVM: the Hessian, with less between the classes.

The Hessian of an example is that of its loss in the scores, times x_i x_i'. Where features are few, that matrix is
formed, for every class or for the mean over the classes, with the constant feature of the bias and the regulariser.
Where they are many, its diagonal is. What is formed from very many examples is formed from a part of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_matrix, issparse

from larank.blocks.provider import pieces
from larank.linear.primalobjective import PrimalObjective, Table

Preconditioner = Callable[[Table, Table], None]  # of a residual, and where to write the result

_WEIGHTS_FOR_CLASSES = 1024  # features times classes; up to here there is a matrix for each class
_FEATURES_FOR_MATRIX = 2048  # up to here there is one matrix for all of them
_EXAMPLES_FOR_CLASSES = 50_000
_LEAST_EXAMPLES, _EXAMPLES_PER_FEATURE = 5000, 20
_ROWS_AT_ONCE, _GROUPS = 4096, 4
_ROWS_FOR_DIAGONAL = 64  # which are wide
_LARGEST = 1e151  # whose squares, of very many examples, float64 holds
_MOST_JITTER = 1e3  # times the diagonal; more would hide that there is none
_LEAST_BIAS = 1e-9  # of the costs: the curvature in the biases may be none


def preconditioner_at(objective: PrimalObjective, damping: float, random: np.random.RandomState) -> Preconditioner:
    """The preconditioner at the table of the last evaluation; `damping` is added to the curvature in the biases."""
    d, k = objective.n_features, objective.examples.n_classes
    if d > _FEATURES_FOR_MATRIX:
        return _diagonal(objective, damping)
    sample = _sample(objective, random)
    curvatures = objective.curvatures(sample)
    if not np.isfinite(curvatures).all():
        raise ValueError(
            "softmax_gamma and the width of SmoothedHinge must leave second derivatives that "
            f"{objective.examples.X.dtype} can hold; got softmax_gamma={objective.softmax_gamma} and "
            f"width={objective.smoothing}. Use softmax_gamma=numpy.inf, the maximum itself"
        )
    if d == 0:
        return _of_biases(objective, sample, curvatures, damping)
    if not _is_by_class(objective):
        alike = 1.0 if objective.label_kernel is None else float(np.trace(objective.label_kernel)) / k
        matrix = _matrix(objective, sample, curvatures.sum(axis=1) * (alike / (k - 1)), damping)
        if objective.label_kernel is not None:  # the biases are not in its geometry: what couples them is not symmetric
            matrix[d:, :d] = matrix[:d, d:] = 0
        factor = _factor(matrix)
        return lambda R, Z: _solve(objective, R, Z, lambda rows: cho_solve(factor, rows))
    factors = [_factor(_matrix(objective, sample, of_class, damping)) for of_class in curvatures.T]
    return lambda R, Z: _solve(
        objective,
        R,
        Z,
        lambda rows: np.column_stack([cho_solve(factor, rows[:, u]) for u, factor in enumerate(factors)]),
    )


def _is_by_class(objective: PrimalObjective) -> bool:
    few = objective.n_features * objective.examples.n_classes <= _WEIGHTS_FOR_CLASSES
    return few and objective.label_kernel is None


def _of_biases(
    objective: PrimalObjective, sample: NDArray[np.int64], curvatures: NDArray[np.float64], damping: float
) -> Preconditioner:
    k, share = objective.examples.n_classes, objective.n_examples / len(sample)
    diagonal = curvatures.sum(axis=0) * share + _bias(objective, damping)

    def scale(R: Table, Z: Table) -> None:
        np.divide(R[:, :k], diagonal, out=Z[:, :k], casting="same_kind")

    return scale


def _solve(objective: PrimalObjective, R: Table, Z: Table, solve: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
    """Where there are no biases, the last row of Z stays 0."""
    found = solve(R[: objective.n_features + objective.fit_intercept])
    Z[: len(found), : found.shape[1]] = found


def _factor(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
    """The Cholesky factor, of a matrix that may be positive definite up to rounding only."""
    jitter = 0.0
    while np.isfinite(matrix).all() and jitter < _MOST_JITTER:
        try:
            found: tuple[NDArray[np.float64], bool] = cho_factor(
                matrix + jitter * np.diag(matrix.diagonal()), lower=True, check_finite=False
            )
            return found
        except LinAlgError:
            jitter = max(1e-7, 10 * jitter)
    raise ValueError(
        "C, sample_weight and class_weight must leave second derivatives that are numbers, but those of some class "
        "vanish or overflow; choose C and weights nearer to one"
    )


def _sample(objective: PrimalObjective, random: np.random.RandomState) -> NDArray[np.int64]:
    n, d = objective.n_examples, objective.n_features
    wanted = (
        _EXAMPLES_FOR_CLASSES if d == 0 or _is_by_class(objective) else max(_LEAST_EXAMPLES, _EXAMPLES_PER_FEATURE * d)
    )
    return np.arange(n) if n <= wanted else np.sort(random.choice(n, wanted, replace=False))


def _matrix(
    objective: PrimalObjective, sample: NDArray[np.int64], curvatures: NDArray[np.float64], damping: float
) -> NDArray[np.float64]:
    """I + sum_i h_i x_i x_i', with a constant feature that is not regularised where there are biases."""
    d, size = objective.n_features, objective.n_features + objective.fit_intercept
    roots = np.sqrt(curvatures * (objective.n_examples / len(sample)))
    groups = np.array_split(np.arange(len(sample)), _GROUPS)  # whose sums do not depend on threads
    sums = [np.zeros((size, size)) for _ in groups]

    def add(group: int) -> None:
        for part in pieces(len(groups[group]), _ROWS_AT_ONCE):
            chosen = groups[group][part]
            rows = objective.examples.X[sample[chosen]]
            rows = rows.toarray() if issparse(rows) else rows
            # Scaled to 1, so that no square leaves the range of float32.
            top, most = float(np.abs(rows).max(initial=0.0)) or 1.0, float(roots[chosen].max(initial=0.0)) or 1.0
            if top * most > _LARGEST:
                raise ValueError(
                    f"X times the square root of its costs must be at most {_LARGEST:g}, for float64 must hold its "
                    f"squares; got {top:.3g} in X; scale X, or choose a smaller C"
                )
            scaled = np.empty((len(rows), size), rows.dtype)
            shares = (roots[chosen] / most).astype(rows.dtype)
            np.multiply(rows / rows.dtype.type(top), shares[:, None], out=scaled[:, :d])
            units = np.full(size, top * most)
            if size > d:
                scaled[:, d], units[d] = shares, most
            sums[group] += (scaled.T @ scaled) * np.outer(units, units)

    objective.workers.run(add, range(len(groups)))
    matrix: NDArray[np.float64] = sum(sums[1:], sums[0])
    matrix[np.arange(d), np.arange(d)] += 1
    if size > d:
        matrix[d, d] = _bias(objective, matrix[d, d] + damping)
    return matrix


def _diagonal(objective: PrimalObjective, damping: float) -> Preconditioner:
    X, h = objective.examples.X, objective.mean_curvatures()
    if issparse(X):
        squares = csr_matrix((np.square(X.data), X.indices, X.indptr), X.shape).T @ h
    else:  # a few rows at a time: X may be all that memory holds
        squares = sum(h[rows] @ np.square(X[rows], dtype=np.float64) for rows in pieces(len(X), _ROWS_FOR_DIAGONAL))
    diagonal = np.append(1 + np.asarray(squares), _bias(objective, h.sum() + damping))
    by = objective.zeros()
    by += (1 / diagonal).astype(X.dtype)[:, None]  # as a whole table, whose products take half the time

    def scale(R: Table, Z: Table) -> None:
        np.multiply(R, by, out=Z)

    return scale


def _bias(objective: PrimalObjective, curvature: float) -> float:
    return curvature + _LEAST_BIAS * float(objective.examples.costs.sum())
