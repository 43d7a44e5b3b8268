"""Published ways to learn from candidate labels that have no package: votes of neighbours, CLPL, a random candidate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.partiallabels import Candidates
from studies.rivals.libraries.solver import AmbiguousLearner, Predict

TOLERANCE = 1e-2  # relative duality gap; with wrong labels and a large C, less takes thousands of passes
FEATURES = 600  # at most so many pivots of the kernel matrix

Rows = NDArray[np.float64]


def with_constant(X: Rows) -> Rows:
    """One more feature that is always 1: an intercept that is regularised."""
    return np.column_stack([X, np.ones(len(X))])


def neighbours(X: Rows, candidates: Candidates, seed: int, k: int) -> Predict:
    """Huellermeier and Beringer: the k nearest vote for all their candidates, the nearer the more.

    The weight of a neighbour is 1 less its share of the sum of the distances.
    """
    from sklearn.neighbors import NearestNeighbors

    index = NearestNeighbors(n_neighbors=min(k, len(X))).fit(X)

    def predict(queries: Rows) -> NDArray[np.int64]:
        distances, nearest = index.kneighbors(queries)
        total = distances.sum(axis=1, keepdims=True)
        weights = 1 - distances / np.where(total > 0, total, 1)
        return np.einsum("ij,ijk->ik", weights, candidates[nearest]).argmax(axis=1)

    return predict


def clpl_weights(Z: Rows, candidates: Candidates, C: float, iterations: int = 300) -> Rows:
    """Minimise 1/2 |W|^2 + C sum_i (h(mean score of the candidates) + sum over the others of h(- score)).

    h is the squared hinge; the minimiser is L-BFGS. A column of W for each class. [Cour, Sapp and Taskar 2011]
    """
    from scipy.optimize import minimize

    classes = candidates.shape[1]
    mean = candidates / candidates.sum(axis=1, keepdims=True)
    other = ~candidates

    def objective(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        W = flat.reshape(-1, classes)
        scores = Z @ W
        missing = np.maximum(1 - np.einsum("ij,ij->i", scores, mean), 0)
        excess = np.maximum(1 + scores, 0) * other
        slope = 2 * C * (excess - missing[:, None] * mean)
        value = 0.5 * flat @ flat + C * (missing @ missing + np.vdot(excess, excess))
        return float(value), (W + Z.T @ slope).ravel()

    start = np.zeros(Z.shape[1] * classes)
    options = {"maxiter": iterations, "ftol": 1e-7}
    found: Rows = minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x.reshape(-1, classes)
    return found


def linear_clpl(X: Rows, candidates: Candidates, seed: int, C: float) -> Predict:
    """The convex loss for partial labels of Cour, Sapp and Taskar."""
    W = clpl_weights(with_constant(X), candidates, C)
    return lambda queries: (with_constant(queries) @ W).argmax(axis=1)


def kernel_clpl(X: Rows, candidates: Candidates, seed: int, C: float, gamma: float) -> Predict:
    """The convex loss for partial labels on the features of a kernel map, those of pivots of the kernel matrix."""
    from larank import PivotedCholeskyMap

    pivots = min(FEATURES, len(X))
    features = PivotedCholeskyMap("rbf", gamma=gamma / X.shape[1], n_components=pivots, random_state=seed)
    W = clpl_weights(features.fit_transform(X), candidates, C)
    return lambda queries: (features.transform(queries) @ W).argmax(axis=1)


def drawn_labels(candidates: Candidates, seed: int) -> NDArray[np.int64]:
    """A random candidate of each example."""
    drawn = np.random.default_rng((seed, 1)).random(candidates.shape)  # not the numbers candidates were made with
    labels: NDArray[np.int64] = np.where(candidates, drawn, -1).argmax(axis=1)
    return labels


def linear_random(X: Rows, candidates: Candidates, seed: int, C: float) -> Predict:
    """A linear multiclass SVM that takes a random candidate for the label."""
    from larank import LinearMulticlassSVC

    model = LinearMulticlassSVC(C=C, tol=TOLERANCE, random_state=seed)
    model.fit(with_constant(X), drawn_labels(candidates, seed))
    return lambda queries: model.predict(with_constant(queries))


def kernel_random(X: Rows, candidates: Candidates, seed: int, C: float, gamma: float) -> Predict:
    """A kernel multiclass SVM that takes a random candidate for the label."""
    from larank import LaRankClassifier

    settings: dict[str, Any] = {"gamma": gamma / X.shape[1], "max_iter": 1, "random_state": seed}
    model = LaRankClassifier("rbf", C=C, **settings).fit(X, drawn_labels(candidates, seed), certify=False)
    predict: Predict = model.predict
    return predict


_LINEAR = {"C": (1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1)}
_KERNEL = {"C": (0.1, 1.0, 10.0, 100.0), "gamma": (0.1, 0.25, 0.5, 1.0, 2.0)}
_NEIGHBOURS = {"k": (30, 20, 15, 10, 7, 5)}  # 10 in the published comparisons
LEARNERS = (
    AmbiguousLearner("clpl-linear", "scipy.optimize", fit=linear_clpl, grids=[_LINEAR]),
    AmbiguousLearner("clpl-rbf", "larank:PivotedCholeskyMap", fit=kernel_clpl, grids=[_KERNEL]),
    AmbiguousLearner("random-linear", "larank:LinearMulticlassSVC", fit=linear_random, grids=[_LINEAR]),
    AmbiguousLearner("random-rbf", "larank:LaRankClassifier", fit=kernel_random, grids=[_KERNEL]),
    AmbiguousLearner("pl-knn", "sklearn.neighbors", fit=neighbours, grids=[_NEIGHBOURS]),
)
