"""The search over costs for the linear solver: along the costs of a fold each model starts from the model before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from larank import declare
from larank.base import unfitted
from larank.costs import example_costs
from larank.crossvalidation import (
    Fold,
    FoldedExamples,
    Request,
    Scoring,
    Tally,
    Trained,
    folds_of,
    follow,
    run_folds,
    time_of_search,
)
from larank.linear.sdm import LinearMulticlassSVC
from larank.training import Outcome
from larank.validation import classes_of, validated

_Float = NDArray[np.float64]


class WarmSearch:
    """The trainings of a search, on all examples and on the examples of each fold."""

    gammas: _Float | None = None

    def __init__(self, request: Request, X: Any, y: Any, sample_weight: Any) -> None:
        self.estimator, self.interrupt, self.time_limit = request.estimator, request.interrupt, request.time_limit
        self.threads = request.n_threads
        model = unfitted(self.estimator, C=1.0)
        declare.check(model)
        X, y = validated(model, X, y, reset=True)
        weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        self.examples = FoldedExamples(X, y, weight)
        classes = classes_of(y)
        example_costs(
            1.0, X, y, classes, sample_weight, model.class_weight
        )  # raises an error that all folds would raise
        self._of_data = {name: value for name, value in vars(model).items() if name.endswith("_")}
        self.seed = int(check_random_state(self.estimator.random_state).randint(2**31 - 1))
        self.folds = folds_of(request.cv, X, y)
        self.about = f"{model.formulation}, {X.shape[0]} examples, {X.shape[1]} features, {len(classes)} classes"

    def run(self, Cs: _Float, scoring: Scoring, scores: _Float, tally: Tally) -> None:
        """Write the scores for folds and costs."""
        y = self.examples.y

        def run(number: int) -> None:
            fold = self.folds[number]
            fold.classes(y, number)
            follow(_WarmFoldPath(self, fold), fold, Cs, self.examples, scoring, scores[number, :, 0], tally)

        run_folds(run, len(self.folds), min(self.threads, len(self.folds)))

    def refit(self, C: float, gamma: int) -> Trained:
        """Train a model on all examples."""
        model = self.model(C, self.time_limit)
        outcome = model._fit(*self.examples, None, interrupt=self.interrupt)
        model.__dict__ |= self._of_data  # names of features, which the checked examples do not have
        return Trained(model, outcome, lambda stacklevel: model._warn_if_early(outcome, stacklevel + 1))

    def model(self, C: float, time_limit: float | None, **changed: Any) -> LinearMulticlassSVC:
        """Return an estimator that is not fitted, with the seed of the search."""
        changed |= {"C": C, "random_state": self.seed, "time_limit": time_limit}
        model: LinearMulticlassSVC = unfitted(self.estimator, **changed)
        return model


class _WarmFoldPath:
    """The models of one fold, with larger and larger costs."""

    def __init__(self, search: WarmSearch, fold: Fold) -> None:
        X, y, weight = search.examples
        self._search, self._held_out = search, X[fold.test]
        self._data = X[fold.train], y[fold.train], None if weight is None else weight[fold.train]
        self._model: LinearMulticlassSVC | None = None
        self.classes = np.unique(self._data[1])

    def train(self, C: float) -> Outcome:
        """Train the next model, from the model before."""
        search, before = self._search, self._model
        self._model = search.model(C, time_of_search(search.time_limit), verbose=0)
        start = None if before is None else before._start()
        return self._model._fit(*self._data, start, interrupt=search.interrupt)

    def decisions(self) -> NDArray[Any]:
        """Return the decision function of this model on the held-out examples."""
        assert self._model is not None
        found: NDArray[Any] = self._model.decision_function(self._held_out)
        return found
