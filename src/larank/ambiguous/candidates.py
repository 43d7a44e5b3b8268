"""Candidate sets as users give them: labels, lists of sets, or a matrix; and how the machine numbers them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse

from larank.costs import example_costs
from larank.kernel.machine import OnlineClassifier, Settings, Targets, united_labels
from larank.sparse import check_sparse

_Float = NDArray[np.float64]

LEAST_WEIGHT = 1e-3  # of a candidate, against the best, where they are weighed by a model
LEAST_RATIO = 1e-12  # of weights that are given: less would be lost in rounding


@dataclass(frozen=True)
class Candidates(Targets):
    """The labels each example may have, with their weights.

    Parameters
    ----------
    weights : csr_matrix of shape (n_examples, n_labels)
        What each candidate weighs against the others of its example; labels that are no candidates have no entry.
    labels : ndarray of shape (n_labels,)
        The labels of the columns, sorted.
    """

    weights: csr_matrix
    labels: NDArray[Any]

    @classmethod
    def of(cls, y: Any, classes: ArrayLike | None = None) -> Candidates:
        """Candidates from a list of collections or mappings, or from a matrix whose columns are `classes`."""
        if is_matrix(y):
            return cls._of_matrix(y, classes)
        return cls._of_collections(y, classes)

    @classmethod
    def of_labels(cls, y: NDArray[Any], classes: ArrayLike | None) -> Candidates:
        """One candidate for each example."""
        labels = united_labels(y, None, classes)
        columns = np.searchsorted(labels, y)
        return cls(csr_matrix((np.ones(len(y)), columns, np.arange(len(y) + 1)), shape=(len(y), len(labels))), labels)

    @classmethod
    def _of_matrix(cls, y: Any, classes: ArrayLike | None) -> Candidates:
        if classes is None:
            classes = list(y.columns) if hasattr(y, "columns") else np.arange(y.shape[1])
        labels, order = _sorted(_as_labels(classes, "classes"))
        if len(labels) != y.shape[1]:
            raise ValueError(
                f"classes must name every column of the matrix of candidates, {y.shape[1]}; got {len(labels)} labels"
            )
        if issparse(y):
            check_sparse(y)
        try:
            weights = csr_matrix(y if issparse(y) else np.asarray(y), dtype=np.float64, copy=True)[:, order]
            weights.sum_duplicates()
        except (TypeError, ValueError):
            raise ValueError("a matrix of candidates must hold numbers: 0 and 1, or weights") from None
        bad = ~np.isfinite(weights.data) | (weights.data < 0)
        if bad.any():
            row = int(np.searchsorted(weights.indptr, int(np.argmax(bad)), side="right")) - 1
            raise ValueError(
                f"a matrix of candidates must hold finite numbers >= 0, got {weights.data[np.argmax(bad)]} "
                f"for example {row}"
            )
        weights.eliminate_zeros()
        return cls(weights, labels)._checked()

    @classmethod
    def _of_collections(cls, y: Any, classes: ArrayLike | None) -> Candidates:
        sets = [_weights_of(candidates, row) for row, candidates in enumerate(y)]
        used = {label for candidates in sets for label in candidates}
        if not used:
            raise ValueError("every example must have at least one candidate, got empty sets only")
        found = _as_labels(list(used), "candidates")
        labels = united_labels(found, None, None if classes is None else _as_labels(classes, "classes"))
        number = {label: n for n, label in enumerate(labels.tolist())}
        rows = [sorted((number[label], weight) for label, weight in candidates.items()) for candidates in sets]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        columns = np.array([column for row in rows for column, _ in row], dtype=np.int64)
        values = np.array([weight for row in rows for _, weight in row], dtype=np.float64)
        return cls(csr_matrix((values, columns, starts), shape=(len(rows), len(labels))), labels)._checked()

    def _checked(self) -> Candidates:
        """Itself, or an error if an example has no candidate, or weights that are too different to be compared."""
        empty = np.flatnonzero(np.diff(self.weights.indptr) == 0)
        if len(empty):
            raise ValueError(
                f"every example must have at least one candidate, got an empty set for example {empty[0]}"
                + (f" and {len(empty) - 1} others" if len(empty) > 1 else "")
            )
        largest = np.maximum.reduceat(self.weights.data, self.weights.indptr[:-1])
        light = self.weights.data / np.repeat(largest, np.diff(self.weights.indptr)) < LEAST_RATIO
        if light.any():
            row = int(np.searchsorted(self.weights.indptr, int(np.argmax(light)), side="right")) - 1
            raise ValueError(
                f"weights of candidates must not differ by more than {1 / LEAST_RATIO:g} times, got "
                f"{self.weights.data[np.argmax(light)]:g} beside {largest[row]:g} for example {row}"
            )
        return self

    def __len__(self) -> int:
        return int(self.weights.shape[0])

    def classes(self) -> NDArray[Any]:
        """The labels, two at least."""
        if len(self.labels) < 2:
            raise ValueError(f"y must hold at least two classes, got one class: {self.labels.tolist()[0]!r}")
        return self.labels

    def united(self, before: NDArray[Any] | None, announced: ArrayLike | None) -> NDArray[Any]:
        """All labels so far."""
        return united_labels(self.labels, before, announced)

    def are_full(self, n_classes: int) -> NDArray[np.bool_]:
        """Whether all of so many classes are candidates of an example, so that it says nothing."""
        full: NDArray[np.bool_] = np.diff(self.weights.indptr) == n_classes
        return full

    def costs(
        self, settings: Settings, X: Any, classes: NDArray[Any], sample_weight: ArrayLike | None
    ) -> NDArray[np.float64]:
        """`C` times the weights of the examples; those whose set is full have none."""
        costs = example_costs(settings.C, X, np.zeros(len(self)), np.zeros(1), sample_weight, None)
        costs[self.are_full(len(classes))] = 0
        return costs

    def warn_if_most_are_full(self, n_classes: int) -> None:
        """A matrix of labels, taken for one of weights, looks like that."""
        full = int(self.are_full(n_classes).sum())
        if 2 * full > len(self):
            warnings.warn(
                f"{full} of {len(self)} examples have all {n_classes} classes as candidates and are left out; an array "
                "with two dimensions is a matrix of weights: if it holds labels, give a list, such as y.tolist()",
                UserWarning,
                stacklevel=5,
            )

    def check(self, costs: NDArray[np.float64]) -> None:
        """Some example must tell its candidates from other classes, and not all have the same one."""
        if not costs.any():
            raise ValueError(
                "candidates must leave some example a class that is none of them, got full sets only; every weight "
                "above zero makes a candidate, and lists hold labels: a matrix of zeros and ones must be an array"
            )
        if len(np.unique(self.weights[costs > 0].indices)) < 2:
            raise ValueError(
                "candidates and sample_weight must leave at least two classes with a weight above zero in examples "
                f"that tell something, got {self.labels[self.weights[costs > 0].indices[0]].item()!r} alone"
            )

    def numbers(self, model: OnlineClassifier, session: Any, order: NDArray[np.intp]) -> NDArray[np.int32]:
        """The numbers of the sets; all classes of this call arrive at once."""
        arrived = set(model._arrived.tolist())
        new = [label for label in model.classes_.tolist() if label not in arrived]
        model._arrived = np.array([*model._arrived.tolist(), *new], dtype=model.classes_.dtype)
        for _ in new:
            session.add_class()
        place = {label: n for n, label in enumerate(model._arrived.tolist())}
        places = np.array([place[label] for label in self.labels.tolist()], dtype=np.int32)
        sets = csr_matrix((self.weights.data, places[self.weights.indices], self.weights.indptr))
        sets.sort_indices()
        return number_sets(session, sets, np.full(len(self), len(place)))


def is_matrix(y: Any) -> bool:
    """Whether candidates are an array, data frame or sparse matrix of weights."""
    return len(getattr(y, "shape", ())) == 2


def number_sets(session: Any, sets: csr_matrix, classes: NDArray[Any]) -> NDArray[np.int32]:
    """The numbers that a session has for sets with columns in its order, each among so many classes."""
    numbers: NDArray[np.int32] = session.number_sets(**_arrays(sets), classes=classes.astype(np.int64))
    return numbers


@dataclass(frozen=True)
class GivenSets:
    """The sets of all examples of a fit as they were given, to be weighed by what a model makes of them."""

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    labels: NDArray[np.int32]  # as the session numbers classes
    weights: _Float
    classes: NDArray[np.int64]

    @classmethod
    def of(cls, session: Any, ids: NDArray[np.int64], numbers: NDArray[np.int32]) -> GivenSets:
        """Those that the session has under these numbers."""
        return cls(ids, *session.sets(numbers))

    def weighed(self, session: Any, scores: _Float, sharpness: float) -> NDArray[np.int32]:
        """The numbers of new sets, in which a candidate weighs ``exp(sharpness * score)`` times what was given.

        No candidate is given up for good: the least it weighs is a thousandth of the best.
        """
        owners = np.repeat(np.arange(len(self.ids)), np.diff(self.starts))
        believed = sharpness * scores[owners, self.labels] + np.log(self.weights)
        behind = believed - np.maximum.reduceat(believed, self.starts[:-1])[owners]
        sets = csr_matrix((np.maximum(np.exp(behind), LEAST_WEIGHT), self.labels, self.starts))
        numbers: NDArray[np.int32] = session.replace_sets(ids=self.ids, **_arrays(sets), classes=self.classes)
        return numbers


def _arrays(sets: csr_matrix) -> dict[str, NDArray[Any]]:
    """As sessions take them."""
    return {
        "starts": sets.indptr.astype(np.int64),
        "labels": sets.indices.astype(np.int32),
        "weights": sets.data,
    }


def _weights_of(candidates: Any, row: int) -> Mapping[Any, float]:
    """Labels with weights; a label that is named twice counts once."""
    if isinstance(candidates, Mapping):
        for label, weight in candidates.items():
            if not isinstance(weight, Real) or not 0 <= float(weight) < math.inf:
                raise ValueError(
                    f"weights of candidates must be finite numbers >= 0, got {weight!r} for {label!r} of example {row}"
                )
        return {_plain(label): float(weight) for label, weight in candidates.items() if weight > 0}
    if isinstance(candidates, str | bytes) or not isinstance(candidates, Collection | np.ndarray):
        raise ValueError(
            f"candidates must be a list of collections of labels or of mappings from labels to weights, or a matrix; "
            f"got {candidates!r} for example {row}"
        )
    try:
        return dict.fromkeys(map(_plain, _each(candidates)), 1.0)
    except TypeError:
        raise ValueError(f"candidates must be labels, got {candidates!r} for example {row}") from None


def _each(candidates: Any) -> Iterable[Any]:
    return np.ravel(candidates).tolist() if isinstance(candidates, np.ndarray) else candidates


def _plain(label: Any) -> Any:
    """A label as Python has it, so that NumPy's numbers and ours are the same."""
    return label.item() if isinstance(label, np.generic) else label


def _as_labels(labels: Any, name: str) -> NDArray[Any]:
    """An array of labels, none of which is changed by being in it."""
    if isinstance(labels, Set | str) or not isinstance(labels, Collection | np.ndarray):
        raise ValueError(f"{name} must be a list or an array of labels, got {labels!r}")
    plain = [_plain(label) for label in labels]
    if len({isinstance(label, str) for label in plain}) > 1:
        raise ValueError(f"{name} must be labels of one type, got words and numbers")
    try:
        found = np.array(plain)
        is_kept = found.ndim == 1 and found.dtype.kind in "biufU" and found.tolist() == plain
    except (TypeError, ValueError):  # of different lengths, or not to be compared
        is_kept = False
    if not is_kept:
        odd = next((label for label in plain if not isinstance(label, str | int | float) or label != label), plain[0])
        raise ValueError(f"{name} must be words, or numbers that one array can hold; got {odd!r}")
    return found


def _sorted(classes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    labels, order = np.unique(classes, return_index=True)
    if classes.ndim != 1 or len(labels) < len(classes):
        raise ValueError("classes must be a list of labels, each named once")
    return labels, order
