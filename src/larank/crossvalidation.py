"""Cross-validation of estimators that train many models together: folds, scores of what is held out, and the choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import signature
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv

from larank import parameters
from larank.base import ScoringClassifier
from larank.blocks.provider import length, rows_of
from larank.data.schema import Schema, floats, number

_Float = NDArray[np.float64]
_Index = NDArray[np.int64]

_LOWEST_COST, _HIGHEST_COST = 1e-2, 1e3

# The fitted attributes of a search over costs, before those of the model it has found.
SEARCHED: Schema = {"Cs_": floats("n_costs", least=0), "C_": number(above=0), "best_score_": number()}


def costs_of(Cs: Any) -> _Float:
    """The costs to try: those given or, of a number, so many from 0.01 to 1000, each the same multiple of the last."""
    if parameters.is_count(Cs):
        return np.geomspace(_LOWEST_COST, _HIGHEST_COST, int(Cs)) if Cs > 1 else np.ones(1)
    return np.array(parameters.costs_of_path(Cs))


@dataclass(frozen=True)
class Fold:
    """Examples to train on, and others to score the model with."""

    train: _Index
    test: _Index

    def classes(self, y: NDArray[Any], number: int) -> NDArray[Any]:
        """Those there are to train on, at least two; others are never predicted."""
        classes = np.unique(y[self.train])
        if len(classes) < 2:
            raise ValueError(
                "cv must leave examples of at least two classes to train on in every fold, got "
                f"{classes.tolist()!r} in fold {number}"
            )
        return classes


def folds_of(cv: Any, X: Any, y: NDArray[Any]) -> list[Fold]:
    """The folds of a splitter, of a number of them, or of an iterable of pairs of rows."""
    if isinstance(cv, str) or not (cv is None or hasattr(cv, "split") or isinstance(cv, Integral | Iterable)):
        raise _no_folds(cv)
    if isinstance(cv, Integral) and (isinstance(cv, bool) or cv < 2):
        raise _no_folds(cv)
    splitter = check_cv(cv, y, classifier=True)
    rows, every = X if hasattr(X, "shape") else np.zeros((len(X), 1)), np.arange(length(X))
    folds = [Fold(every[train], every[test]) for train, test in splitter.split(rows, y)]
    if not folds or any(not len(fold.train) or not len(fold.test) for fold in folds):
        raise ValueError(f"cv must have folds with examples to train on and examples to test with, got {cv!r}")
    return folds


def _no_folds(cv: Any) -> ValueError:
    return ValueError(f"cv must be None, an integer >= 2, a splitter or an iterable of pairs of rows, got {cv!r}")


class _HeldOut(ScoringClassifier):
    """A model as far as a scorer looks at it: it decides on the examples that were held out."""

    def __init__(self, classes: NDArray[Any], decisions: _Float) -> None:
        self.classes, self.decisions = classes, decisions
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> Self:
        """It is fitted; scikit-learn wants to see the method."""
        return self

    def _decisions(self, X: Any) -> _Float:
        return self.decisions


class Scoring:
    """How models are scored on held-out examples: by accuracy, or as scikit-learn's scorers do.

    Weights of examples count in the score as they do in training, where the scorer takes them.
    """

    def __init__(self, scoring: Any) -> None:
        try:
            self._scorer: Callable[..., Any] = get_scorer("accuracy" if scoring is None else scoring)
        except ValueError:
            names = "one of sklearn.metrics.get_scorer_names()"
            raise ValueError(f"scoring must be None, {names} or a callable, got {scoring!r}") from None
        self._is_weighted = "sample_weight" in signature(self._scorer).parameters

    def score(
        self, classes: NDArray[Any], scores: _Float, X: Any, y: NDArray[Any], weight: _Float | None, fold: Fold
    ) -> float:
        """Of a model with these classes, by its scores of a fold's held-out examples; NaN where none has a weight."""
        test = fold.test
        options = {}
        if weight is not None and self._is_weighted:
            options["sample_weight"] = weight[test]
            if not weight[test].any():
                return np.nan
        decisions = scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
        return float(self._scorer(_HeldOut(classes, decisions), rows_of(X, test), y[test], **options))


def best_of(scores: _Float) -> tuple[tuple[int, ...], float]:
    """Where the mean over folds, which come first, is largest, and that mean; the first of several.

    What was not scored on all folds, for training has ended early, is chosen only if nothing else was.
    """
    of_folds = scores.reshape(len(scores), -1)
    counted = of_folds[~np.isnan(of_folds).all(axis=1)]
    means = counted.mean(axis=0) if len(counted) else np.full(of_folds.shape[1], np.nan)
    best = 0 if np.isnan(means).all() else int(np.nanargmax(means))
    place = np.unravel_index(best, scores.shape[1:])
    return tuple(int(number) for number in place), float(means[best])
