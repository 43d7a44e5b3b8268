"""Candidate labels: false ones made for labelled examples, splits, and selection that never sees a true label."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from studies.datasets import AmbiguousSet, Labels

TRAIN = 0.8  # share of the examples a split trains on
FOLDS = 3  # of the training part, for selection
DISTRACTED = 0.9  # how often the fixed distractor of a class is a candidate

Candidates = NDArray[np.bool_]


def with_random_candidates(X: Any, y: Labels, classes: int, false: int, seed: int = 0) -> AmbiguousSet:
    """The true label and so many others, drawn for each example."""
    random = np.random.default_rng(seed)
    drawn = random.random((len(y), classes))
    drawn[np.arange(len(y)), y] = np.inf  # the true one is always among them
    candidates = np.zeros(drawn.shape, bool)
    np.put_along_axis(candidates, np.argsort(-drawn, axis=1)[:, : false + 1], True, axis=1)
    return AmbiguousSet(X, y, candidates)


def with_distractors(X: Any, y: Labels, classes: int, seed: int = 0) -> AmbiguousSet:
    """The true label and, nearly always, one other that is the same for all examples of a class."""
    random = np.random.default_rng(seed)
    order = random.permutation(classes)
    distractor = np.empty(classes, np.int64)
    distractor[order] = np.roll(order, 1)  # a cycle: no class is its own
    candidates = np.eye(classes, dtype=bool)[y]
    distracted = np.flatnonzero(random.random(len(y)) < DISTRACTED)
    candidates[distracted, distractor[y[distracted]]] = True
    return AmbiguousSet(X, y, candidates)


@dataclass(frozen=True)
class Split:
    """Standardised examples with candidates to learn from, and others with true labels to test on."""

    X: NDArray[np.float64]
    candidates: Candidates
    X_test: NDArray[np.float64]
    y_test: Labels

    @classmethod
    def of(cls, data: AmbiguousSet, seed: int, most: int | None = None) -> Split:
        """A random share of the examples, or at most so many, is trained on; mean and deviation are those of it.

        Not more than `most` are tested on either.
        """
        order = np.random.default_rng(seed).permutation(len(data.y))
        size = round(TRAIN * len(order))
        train, test = order[: min(size, most or size)], order[size:][:most]
        deviation = data.X[train].std(axis=0)
        X = [
            (data.X[rows] - data.X[train].mean(axis=0)) / np.where(deviation > 0, deviation, 1)
            for rows in (train, test)
        ]
        return cls(X[0], data.candidates[train], X[1], data.y[test])


def share_among_candidates(predicted: Labels, candidates: Candidates) -> float:
    """How many predictions are candidates: 1 - err^{0/1} of [thesis] section 6.1.1."""
    return float(np.mean(candidates[np.arange(len(predicted)), predicted]))


def folds(examples: int, count: int, seed: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    parts = np.array_split(np.random.default_rng(seed).permutation(examples), count)
    for held_out in parts:
        yield np.concatenate([part for part in parts if part is not held_out]), held_out


Chosen = TypeVar("Chosen")
Fit = Callable[[Any, Any, Any], Callable[[Any], Labels]]


def select(
    fit: Fit, settings: Iterable[Chosen], X: NDArray[Any], candidates: Candidates, seed: int, count: int = FOLDS
) -> tuple[Chosen, float]:
    """Those settings whose predictions are most often candidates of held-out examples, and that share.

    `fit(X, candidates, settings)` returns how labels are predicted. Among equals the first wins.
    """
    parts = list(folds(len(X), count, seed))
    best, most = None, -1.0
    for these in settings:
        shares = []
        for train, valid in parts:
            predict = fit(X[train], candidates[train], these)
            shares.append(share_among_candidates(predict(X[valid]), candidates[valid]))
        if (mean := float(np.mean(shares))) > most:
            best, most = these, mean
    if best is None:
        raise ValueError("settings is empty; at least one is needed")
    return best, most
