"""What searches by cross-validation share: folds, scores of held-out examples, the loop over costs, and the choice."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Integral
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv

from larank import declare, parameters
from larank.base import ScoringClassifier
from larank.blocks.provider import length, read_only, rows_of
from larank.blocks.workers import Workers
from larank.training import Interrupt, Outcome, Progress, Result, Status, TrainingWarning, raises

_Float = NDArray[np.float64]
_Index = NDArray[np.int64]

_LOWEST_COST, _HIGHEST_COST = 1e-2, 1e3
_MOST_OF_TIME = 0.75  # fraction of a time limit for the search


def costs_of(Cs: Any) -> _Float:
    """The costs to try: those given or, of a number, so many from 0.01 to 1000, each the same multiple of the last."""
    if declare.is_whole(Cs):
        return np.geomspace(_LOWEST_COST, _HIGHEST_COST, int(Cs)) if Cs > 1 else np.ones(1)
    return np.array(parameters.costs_of_path(Cs), np.float64)


class FoldedExamples(NamedTuple):
    """The checked examples of a search."""

    X: Any
    y: NDArray[Any]
    weight: _Float | None


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
    try:
        folds = [Fold(every[train], every[test]) for train, test in splitter.split(read_only(rows), read_only(y))]
    except ValueError as error:
        pairs = "; give its pairs of rows instead, cv=list(splitter.split(X, y, groups))"
        hint = pairs if _requests(splitter, "split").get("groups") else ""
        raise ValueError(
            f"cv must be such that these examples can be split by it, got {cv!r}: {error}{hint}"
        ) from error
    if not folds or any(not len(fold.train) or not len(fold.test) for fold in folds):
        raise ValueError(f"cv must have folds with examples to train on and examples to test with, got {cv!r}")
    return folds


def _no_folds(cv: Any) -> ValueError:
    return ValueError(f"cv must be None, an integer >= 2, a splitter or an iterable of pairs of rows, got {cv!r}")


class _HeldOut(ScoringClassifier):
    """A model as far as a scorer looks at it: it decides on the examples that were held out."""

    def __init__(self, classes: NDArray[Any], decisions: NDArray[Any]) -> None:
        self.classes, self.decisions = classes, decisions
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> Self:
        """It is fitted; scikit-learn wants to see the method."""
        return self

    def _decisions(self, X: Any) -> NDArray[Any]:
        return self.decisions


def _takes_weights(scorer: Any) -> bool:
    """Return whether a scorer is given weights of examples: its function takes them, and its request is not False."""
    if "sample_weight" not in signature(getattr(scorer, "_score_func", scorer)).parameters:
        return False
    request = _requests(scorer, "score").get("sample_weight")
    if isinstance(request, str):
        raise ValueError(
            f"scoring requests the metadata {request!r}, but fit takes sample_weight only. Call "
            "set_score_request(sample_weight=True) on the scorer, or False for scores without weights"
        )
    return request is not False


def _requests(consumer: Any, method: str) -> Mapping[str, Any]:
    """Return the metadata that a scorer or a splitter requests for one of its methods."""
    if not hasattr(consumer, "get_metadata_routing"):
        return {}
    try:
        found: Mapping[str, Any] = getattr(consumer.get_metadata_routing(), method).requests
    except ValueError:  # scikit-learn expects that `split` of a subclass has the parameter `groups`
        return {}
    return found


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
        self._is_weighted = _takes_weights(self._scorer)

    def score(self, classes: NDArray[Any], decisions: Any, examples: FoldedExamples, fold: Fold) -> float:
        """Return the score of a model with these classes, by its decisions on the held-out examples of a fold.

        The score is NaN if no held-out example has a weight.
        """
        X, y, weight = examples
        test = fold.test
        options = {}
        if weight is not None and self._is_weighted:
            options["sample_weight"] = weight[test]
            if not weight[test].any():
                return np.nan
        rows, labels = read_only(rows_of(X, test)), read_only(y[test])
        found = self._scorer(_HeldOut(classes, decisions), rows, labels, **options)
        try:
            return float(found)
        except (TypeError, ValueError):
            raise ValueError(f"scoring must return a number, got {found!r}") from None


class Tally:
    """The trainings of a search that have ended, some of which may run at the same time, and what is shown of them."""

    def __init__(self, progress: Progress, count: int) -> None:
        self._progress, self._count, self._done = progress, count, 0
        self._passes, self._began = 0.0, time.perf_counter()
        self._lock = threading.Lock()
        self.status: Status = "completed"  # of the search

    @property
    def is_over(self) -> bool:
        """Whether an interrupt or a limit has ended the search."""
        return self.status != "completed"

    def counts(self, outcome: Outcome) -> bool:
        """Return whether a training that has ended is scored; if it is not, the search is over."""
        with self._lock:
            if outcome.status in ("interrupted", "time_limit"):
                if self.status != "interrupted":  # a limit of another fold does not hide Ctrl-C
                    self.status = outcome.status
                return False
            last = outcome.history[-1]
            self._done += 1
            self._passes += last.iterations
            at = replace(last, seconds=time.perf_counter() - self._began, iterations=self._passes)
            self._progress.update(at, self._done / self._count)
        return True


@dataclass(frozen=True)
class BestSetting:
    """The setting with the best mean score over folds, and how the search for it ended."""

    place: tuple[int, ...]  # in the scores of a fold
    score: float
    status: Status
    cut: str  # what ended the search early and how much was scored by then; empty if all settings were scored

    @classmethod
    def of(cls, scores: _Float, status: Status, time_limit: float | None) -> BestSetting:
        """Return the first setting with the largest mean over folds, which come first in `scores`.

        Only settings that have a score on each fold that has scores are compared.

        Raises
        ------
        KeyboardInterrupt
            If an interrupt has ended the search, unless `on_interrupt("return")` holds.
        ValueError
            If no setting was scored.
        """
        of_folds = scores.reshape(len(scores), -1)
        counted = of_folds[~np.isnan(of_folds).all(axis=1)]
        means = counted.mean(axis=0) if len(counted) else np.full(of_folds.shape[1], np.nan)
        scored, count = int(np.count_nonzero(~np.isnan(means))), len(means)
        ending = {"time_limit": f"time_limit={time_limit} ended", "interrupted": "an interrupt ended"}.get(status, "")
        on_folds = f" on {len(counted)} of {len(scores)} folds" if len(counted) < len(scores) else ""
        cut = f"{ending} the search; {scored} of {count} settings were scored{on_folds}" if ending else ""
        if status == "interrupted" and raises(is_one_of_many=True):
            raise KeyboardInterrupt(f"{cut}, and the estimator is as it was before")
        if not scored and cut:
            raise ValueError(f"{cut}, so none can be chosen. Allow more time, or try fewer settings")
        if not scored:
            raise ValueError(f"scoring must return numbers, got NaN for each of {count} settings")
        best = int(np.nanargmax(means))
        place = tuple(int(number) for number in np.unravel_index(best, scores.shape[1:]))
        return cls(place, float(means[best]), status, cut)

    def mark(self, result: Result) -> Result:
        """Return the certificate of the model that was chosen; its status is not better than that of the search."""
        is_worse = bool(self.cut) and result.status != "interrupted"
        return replace(result, status=self.status) if is_worse else result

    def warn_if_cut(self, stacklevel: int) -> None:
        """Warn if a limit or an interrupt has ended the search."""
        if self.cut:
            warnings.warn(self.cut, TrainingWarning, stacklevel=stacklevel + 1)


class Path(Protocol):
    """The models of one fold, with larger and larger costs."""

    classes: NDArray[Any]

    def train(self, C: float) -> Outcome:
        """Train the next model, from the model before."""

    def decisions(self) -> NDArray[Any]:
        """Return the decision function of this model on the held-out examples."""


@dataclass(frozen=True)
class Request:
    """What a search is asked to do: the parameters of `PathSearchCV` that its trainings depend on."""

    estimator: Any
    gammas: Any
    cv: Any
    time_limit: float | None
    n_threads: int
    interrupt: Interrupt


class Trained(NamedTuple):
    """The model of all examples, how its training ended, and a function that gives its warnings."""

    model: Any
    outcome: Outcome
    warn: Callable[[int], None]


class Search(Protocol):
    """The trainings of one search; the constructor takes a `Request`, X, y and weights of examples."""

    examples: FoldedExamples
    folds: list[Fold]
    gammas: _Float | None  # the values of gamma to try; None if only the gamma of the estimator is used
    about: str  # description of the problem, for progress

    def run(self, Cs: _Float, scoring: Scoring, scores: _Float, tally: Tally) -> None:
        """Write the scores for folds, costs and values of gamma."""

    def refit(self, C: float, gamma: int) -> Trained:
        """Train a model on all examples, with the value of gamma of this index."""


def follow(
    path: Path, fold: Fold, Cs: _Float, examples: FoldedExamples, scoring: Scoring, scores: _Float, tally: Tally
) -> None:
    """Train the models of a fold from the smallest cost to the largest, and write their scores."""
    for index in np.argsort(Cs, kind="stable"):
        if tally.is_over or not tally.counts(path.train(float(Cs[index]))):
            return
        scores[index] = scoring.score(path.classes, path.decisions(), examples, fold)


def run_folds(work: Callable[[int], None], count: int, at_once: int) -> None:
    """Do the work of each fold, of some at the same time; a limit of time counts from when the call began."""
    contexts = [copy_context() for _ in range(count)]

    def run(number: int) -> None:
        contexts[number].run(work, number)

    if at_once > 1:
        Workers(at_once).run(run, range(count))
    else:
        for number in range(count):
            run(number)


def time_of_search(time_limit: float | None) -> float | None:
    """How much of a limit of time is for the search; the rest is for the model."""
    return None if time_limit is None else _MOST_OF_TIME * time_limit


def forget_fitted(model: Any) -> None:
    """Remove what a fit before has left."""
    for name in [name for name in vars(model) if name.endswith("_")]:
        delattr(model, name)
