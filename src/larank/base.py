"""What all estimators share: sound data, the cost of each example, and the way from scores back to labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

__all__ = ["best_labels", "example_costs", "sound_csr"]


def example_costs(
    C: float,
    X: Any,
    y: NDArray[Any],
    classes: NDArray[Any],
    sample_weight: ArrayLike | None,
    class_weight: Mapping[Any, float] | str | None,
) -> NDArray[np.float64]:
    """`C` times the weights of each example, which must not all be zero.

    Parameters
    ----------
    C : float
        The cost of an example of weight one.
    X : array, CSR matrix or sequence
        The examples.
    y : ndarray
        Their labels, all of them in `classes`.
    classes : ndarray
        Sorted.
    sample_weight, class_weight
        As the estimators take them.
    """
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if sample_weight is not None and hasattr(X, "shape"):
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if weight.shape != (len(y),):
        raise ValueError(f"sample_weight must have one entry per example, {len(y)}; got shape {weight.shape}")
    bad = (weight < 0) | ~np.isfinite(weight)
    if bad.any():
        where = int(np.argmax(bad))
        raise ValueError(f"sample_weight must be finite and not negative, got {weight[where]} for example {where}")
    factors = np.ones(len(classes))
    if class_weight is not None:
        factors = compute_class_weight(class_weight, classes=classes, y=y)
    if (factors < 0).any() or not np.isfinite(factors).all():
        raise ValueError(f"class_weight must not be negative or infinite, got {class_weight!r}")
    costs: NDArray[np.float64] = C * weight * factors[np.searchsorted(classes, y)]
    if not costs.any():
        raise ValueError("sample_weight and class_weight leave no example with a weight above zero")
    return costs


def best_labels(scores: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """The label with the largest score; with two classes, scores of the second against the first."""
    best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
    labels: NDArray[Any] = classes[best.astype(np.intp)]
    return labels


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
