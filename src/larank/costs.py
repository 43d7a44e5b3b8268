"""The cost of each example: `C` times weights of examples and classes, and margins between classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from larank.blocks.ranges import LARGEST_COST
from larank.declare import ParameterError, as_float
from larank.validation import on_host

# What C=inf is in a solver where k(x, x) is 1: far above coefficients of hard margins, and below where margins round.
HARD_COST = 1e8


def check_two_classes(y: NDArray[Any], costs: NDArray[np.float64]) -> None:
    """Raise where weights of zero leave fewer."""
    if len(np.unique(y[costs > 0])) < 2:
        raise ValueError("sample_weight and class_weight must leave at least two classes with a weight above zero")


def checked_label_costs(
    label_costs: ArrayLike | Mapping[tuple[Any, Any], float], classes: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the required margins as a matrix in the order of the classes, or raise if something is wrong with them."""
    n_classes = len(classes)
    if isinstance(label_costs, Mapping):
        delta = 1 - np.eye(n_classes)
        columns = {label: column for column, label in enumerate(classes.tolist())}
        for pair, cost in label_costs.items():
            if not isinstance(pair, tuple) or len(pair) != 2 or any(label not in columns for label in pair):
                raise ParameterError(
                    "label_costs", f"must map pairs of labels to margins; got the key {pair!r} with labels {[*columns]}"
                )
            delta[columns[pair[0]], columns[pair[1]]] = as_float(cost)
    else:
        try:
            delta = np.ascontiguousarray(label_costs, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(
                "label_costs", f"must be a mapping, an array of numbers or None; got {label_costs!r}"
            ) from None
    if delta.shape != (n_classes, n_classes):
        raise ParameterError(
            "label_costs", f"must have one row and column per class, shape {(n_classes, n_classes)}; got {delta.shape}"
        )
    if not np.isfinite(delta).all() or (delta < 0).any() or delta.diagonal().any():
        raise ParameterError("label_costs", "must hold finite numbers >= 0 with zeros on the diagonal; got others")
    return delta


def check_weights(weights: NDArray[np.float64]) -> None:
    """Raise a ValueError for the first weight that is negative or not finite."""
    bad = (weights < 0) | ~np.isfinite(weights)
    if bad.any():
        where = int(np.argmax(bad))
        reason = "; a negative weight would reward errors. Use 0 to omit an example" if weights[where] < 0 else ""
        raise ValueError(
            f"sample_weight must be finite and not negative, got {weights[where]} for example {where}{reason}"
        )


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
        The cost of an example of weight one; infinity is `HARD_COST`, whatever the weight, if it is not zero.
    X : array, CSR matrix or sequence
        The examples.
    y : ndarray
        Their labels, all of them in `classes`.
    classes : ndarray
        Sorted.
    sample_weight, class_weight
        As the estimators take them.
    """
    sample_weight = on_host("sample_weight", sample_weight)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if sample_weight is not None and hasattr(X, "shape"):
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if weight.shape != (len(y),):
        raise ValueError(f"sample_weight must have one entry per example, {len(y)}; got shape {weight.shape}")
    check_weights(weight)
    factors = np.ones(len(classes))
    if class_weight is not None:
        factors = compute_class_weight(class_weight, classes=classes, y=y)
    return _costs(C, weight, factors[np.searchsorted(classes, y)])


def class_factors(
    class_weight: Mapping[Any, float] | str | None,
    classes: NDArray[Any],
    counts: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The factors of sorted classes, by the number of examples of each and their weights together."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        factors: NDArray[np.float64] = counts.sum() / (len(classes) * counts)
    else:
        factors = compute_class_weight(class_weight, classes=classes, y=classes)
    if np.count_nonzero(weights * factors) < 2:
        raise ValueError("sample_weight and class_weight must leave at least two classes with a weight above zero")
    return factors


def _costs(C: float, weight: NDArray[np.float64], factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """`C` times the weights of examples and the factors of their classes, neither too large nor lost by rounding."""
    counts = (weight > 0) & (factors > 0)
    if not counts.any():
        raise ValueError("sample_weight and class_weight leave no example with a weight above zero")
    with np.errstate(over="ignore", under="ignore"):
        costs: NDArray[np.float64] = np.where(counts, HARD_COST, 0.0) if math.isinf(C) else C * (weight * factors)
        total = float(costs.sum())
    if not total <= LARGEST_COST:
        raise ValueError(
            f"C times sample_weight and class_weight must sum to at most {LARGEST_COST:g} over all examples, got "
            f"{total:.3g}; choose a smaller C or smaller weights"
        )
    lost = counts & (costs == 0)
    if lost.any():
        i = int(np.argmax(lost))
        raise ValueError(
            f"C times sample_weight and class_weight must be above zero where none of them is zero, but {C:g} times "
            f"{weight[i]:g} times {factors[i]:g}, of example {i}, vanishes; choose a larger C or larger weights"
        )
    return costs


def hardened(costs: NDArray[np.float64], diagonal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Costs that stand for infinity, where kernel values are smaller: coefficients of hard margins grow with 1 / k."""
    largest = float(diagonal.max(initial=0.0))
    return costs / largest if 0 < largest < 1 else costs


def smallest_margin(scores: NDArray[np.float64], labels: NDArray[Any], delta: NDArray[np.float64]) -> float:
    """Return the smallest (S_i^y - S_i^y') / Delta(y, y') of hard margins.

    Scores divided by it keep all of them. Where it is not above zero, no multiple does.
    """
    wanted = delta[labels]
    found = np.take_along_axis(scores, labels[:, None].astype(np.intp), axis=1) - scores
    at_once = np.where(found < 0, -np.inf, np.inf)  # what a margin of zero asks for, it has or it has not
    return float(np.divide(found, wanted, out=at_once, where=wanted > 0).min(initial=np.inf))


def hard_objective(half_squared_norm: float, margin: float) -> float:
    """The primal objective of hard margins, 1/2 |w|^2, of the multiple of w whose smallest margin is one."""
    return half_squared_norm / margin / margin if margin > 0 else math.inf  # the square may be rounded to 0
