"""What all multiclass estimators do with labels: the cost of each example, and from scores back to labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

__all__ = ["best_labels", "example_costs"]


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
