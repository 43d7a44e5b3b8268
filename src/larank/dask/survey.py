"""What the partitions of a training set hold: each is checked on a worker, and a few numbers of it come back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

from larank.costs import check_weights, class_factors
from larank.validation import Anonymous, check_several_classes, validated


@dataclass(frozen=True)
class CheckedPartition:
    """Sound rows with their labels and weights; X is None where there are no rows."""

    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64] | None
    names: NDArray[Any] | None

    def __len__(self) -> int:
        return len(self.y)

    def __sizeof__(self) -> int:
        """What Dask takes for the bytes that it occupies."""
        arrays = (self.X.data, self.X.indices, self.X.indptr) if issparse(self.X) else (self.X,)
        return sum(array.nbytes for array in (*arrays, self.y, self.weights) if array is not None)


def checked(number: int, X: Any, y: Any, sample_weight: Any = None) -> CheckedPartition:
    """A partition that was looked at; what is wrong with it, an error says with its number."""
    try:
        return _checked(X, y, sample_weight)
    except (TypeError, ValueError) as error:
        raise type(error)(f"partition {number}: {error}") from error


def _checked(X: Any, y: Any, sample_weight: Any) -> CheckedPartition:
    rows, labels = X.shape[0] if hasattr(X, "shape") else len(X), np.asarray(y)
    weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)
    if labels.shape[:1] != (rows,):
        raise ValueError(f"X and y must be equally long, got {rows} and {len(labels)}")
    if weights is not None and weights.shape != (rows,):
        raise ValueError(f"sample_weight must have one entry per example, {rows}; got shape {weights.shape}")
    if weights is not None:
        check_weights(weights)
    if not rows:
        return CheckedPartition(None, labels, weights, None)
    probe = Anonymous()
    X, labels = validated(probe, X, labels, reset=True)
    return CheckedPartition(X, labels, weights, getattr(probe, "feature_names_in_", None))


class Summary(NamedTuple):
    """What a partition holds."""

    rows: int
    values: int  # that are stored
    n_features: int
    dtype: np.dtype[Any]
    is_sparse: bool
    names: NDArray[Any] | None
    classes: NDArray[Any]
    counts: NDArray[np.int64]
    weights: NDArray[np.float64]  # of the examples of each class together


def summary_of(part: CheckedPartition) -> Summary | None:
    """The summary of a partition that has rows."""
    if part.X is None:
        return None
    classes, codes, counts = np.unique(part.y, return_inverse=True, return_counts=True)
    weights = np.bincount(codes, part.weights).astype(np.float64)
    X, is_sparse = part.X, issparse(part.X)
    values = int(X.nnz if is_sparse else X.size)
    return Summary(len(part), values, X.shape[1], X.dtype, is_sparse, part.names, classes, counts, weights)


@dataclass(frozen=True)
class Survey:
    """What all partitions hold together: the rows of each, and the number and the weight of each class."""

    rows: tuple[int, ...]
    values: int
    n_features: int
    dtype: np.dtype[Any]
    names: NDArray[Any] | None
    classes: NDArray[Any]
    counts: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, summaries: list[Summary | None]) -> Survey:
        """The sum of the summaries, which must agree on features and on kinds of labels."""
        found = {number: each for number, each in enumerate(summaries) if each is not None}
        if not found:
            raise ValueError("X must hold at least one example, got partitions without any")
        numbers, each = list(found), list(found.values())
        for number in numbers[1:]:
            _check_alike(f"partition {number} must be like partition {numbers[0]}", found[number], each[0])
        classes = np.unique(np.concatenate([one.classes for one in each]))
        check_several_classes(classes.tolist())
        counts, weights = np.zeros(len(classes), np.int64), np.zeros(len(classes))
        for one in each:
            places = np.searchsorted(classes, one.classes)
            counts[places] += one.counts
            weights[places] += one.weights
        rows = tuple(0 if one is None else one.rows for one in summaries)
        dtype = np.result_type(*(one.dtype for one in each))
        values = sum(one.values for one in each)
        return cls(rows, values, each[0].n_features, dtype, each[0].names, classes, counts, weights)

    def class_factors(self, class_weight: Any) -> NDArray[np.float64]:
        """The factor of each class; what "balanced" means depends on the examples of all partitions."""
        return class_factors(class_weight, self.classes, self.counts, self.weights)

    def describe(self, estimator: Any) -> None:
        """Set what an estimator says about the features it was fitted on."""
        estimator.n_features_in_ = self.n_features
        vars(estimator).pop("feature_names_in_", None)
        if self.names is not None:
            estimator.feature_names_in_ = self.names


def _check_alike(wanted: str, one: Summary, other: Summary) -> None:
    if one.n_features != other.n_features:
        raise ValueError(f"{wanted}: it has {one.n_features} features, not {other.n_features}")
    if one.is_sparse != other.is_sparse:
        raise ValueError(f"{wanted}: all must be dense, or all sparse")
    names, wanted_names = ([] if each.names is None else each.names.tolist() for each in (one, other))
    if names != wanted_names:
        raise ValueError(f"{wanted}: it has the columns {names}, not {wanted_names}")
    if (one.classes.dtype.kind in "OUS") != (other.classes.dtype.kind in "OUS"):
        raise ValueError(f"{wanted}: its labels are of the type {one.classes.dtype}, not {other.classes.dtype}")


def joined(parts: list[CheckedPartition], dtype: np.dtype[Any]) -> CheckedPartition:
    """Several partitions as one; a single one in the right precision is used as it is."""
    parts = [part for part in parts if part.X is not None]
    Xs = [part.X.astype(dtype, copy=False) for part in parts]
    if len(parts) == 1:
        return replace(parts[0], X=Xs[0])
    X = vstack(Xs, format="csr") if issparse(Xs[0]) else np.concatenate(Xs)
    weights = None
    if parts[0].weights is not None:
        weights = np.concatenate([part.weights for part in parts if part.weights is not None])
    return CheckedPartition(X, np.concatenate([part.y for part in parts]), weights, parts[0].names)


class Costs(NamedTuple):
    """How the costs of examples come about: C, times the factor of the class, times the weight."""

    C: float
    classes: NDArray[Any]
    factors: NDArray[np.float64]
    rest_has_factors: bool  # whether those in the problems of other classes do

    def labels_of(self, part: CheckedPartition) -> NDArray[np.int32]:
        """The numbers of the labels."""
        return np.searchsorted(self.classes, part.y).astype(np.int32)

    def of(self, part: CheckedPartition) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The costs of examples in the problems of their own classes, and in those of others."""
        weights = np.ones(len(part)) if part.weights is None else part.weights
        own = self.C * (weights * self.factors[np.searchsorted(self.classes, part.y)])
        if not np.isfinite(own).all():
            raise ValueError("C times sample_weight and class_weight must be finite; choose a smaller C or weights")
        return own, own if self.rest_has_factors else self.C * weights
