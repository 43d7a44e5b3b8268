"""Ways to learn from labels that are asked for one by one, each time for the least certain of 50 random examples.

All start with random examples until both labels were seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.binary.libraries import OURS
from benchmarks.binary.libraries.solver import TrainingSet
from benchmarks.rbf import svc_settings
from benchmarks.stopwatch import Stopwatch

CANDIDATES = 50


@dataclass(frozen=True)
class Learned:
    """What asking led to; `labels` is how many were asked for."""

    predict: Callable[[Any], NDArray[Any]]
    seconds: Stopwatch
    labels: int
    support_vectors: int


class Learner(Protocol):
    """`requires` is the module it needs."""

    @property
    def name(self) -> str: ...
    @property
    def requires(self) -> str: ...
    @property
    def dtype(self) -> str: ...

    def learn(self, data: TrainingSet, labels: int, threads: int) -> Learned: ...


@dataclass(frozen=True)
class OwnSelection:
    """LaSVM that selects while it trains."""

    name: str
    requires: str = "larank.kernel.lasvm"
    dtype: str = "float32"

    def learn(self, data: TrainingSet, labels: int, threads: int) -> Learned:
        settings = {"selection": "active", "sample_size": CANDIDATES, "label_budget": labels, "certify": False}
        model = OURS.having(**settings).model(data, threads)
        with Stopwatch() as watch:
            model.fit(data.X, data.y)
        return Learned(model.predict, watch, labels, model.result_.support_patterns)


@dataclass(frozen=True)
class QueryAndTeach:
    """LaSVM taught by `ActiveLearner`, one step of the solver per label."""

    name: str
    requires: str = "larank.active"
    dtype: str = "float32"

    def learn(self, data: TrainingSet, labels: int, threads: int) -> Learned:
        from larank.active import ActiveLearner

        model = OURS.having(certify=False).model(data, threads)
        with Stopwatch() as watch:
            learner = ActiveLearner(model, data.X, selection="active", sample_size=CANDIDATES, random_state=0)
            for _ in range(labels):
                index, x = learner.query()
                learner.teach(x, data.y[index])
        return Learned(learner.estimator.predict, watch, labels, len(learner.estimator.support_))


@dataclass(frozen=True)
class Retrain:
    """scikit-learn's `SVC`, trained again from scratch after each label; it cannot start from another solution."""

    name: str
    requires: str = "sklearn.svm"
    dtype: str = "float64"

    def learn(self, data: TrainingSet, labels: int, threads: int) -> Learned:
        from sklearn.svm import SVC

        model = SVC(**svc_settings(data.parameters))
        with Stopwatch() as watch:
            pool = _Pool(data.y)
            model.fit(data.X[pool.known], data.y[pool.known])
            while len(pool.known) < labels:
                candidates = pool.candidates()
                margins = np.abs(model.decision_function(data.X[candidates]))
                pool.label(int(candidates[np.argmin(margins)]))
                model.fit(data.X[pool.known], data.y[pool.known])
        return Learned(model.predict, watch, len(pool.known), len(model.support_))


@dataclass(frozen=True)
class Skactiveml:
    """scikit-activeml's `UncertaintySampling`, which trains an `SVC` on what is labelled and ranks the candidates.

    It takes dense data only, and ranks by probability: the logistic function of the decision value, which prefers the
    same examples as |f| and costs nothing, stands for the cross-validation of `SVC(probability=True)`.
    """

    name: str
    requires: str = "skactiveml.pool"
    dtype: str = "float64"

    def learn(self, data: TrainingSet, labels: int, threads: int) -> Learned:
        from skactiveml.classifier import SklearnClassifier
        from skactiveml.pool import UncertaintySampling

        model = SklearnClassifier(_with_probabilities(data), classes=[-1, 1], random_state=0)
        strategy = UncertaintySampling(method="least_confident", random_state=0)
        with Stopwatch() as watch:
            pool = _Pool(data.y)
            while len(pool.known) < labels:
                candidates = pool.candidates()
                known = _dense(data.X[pool.known]), data.y[pool.known].astype(np.float64)
                chosen = strategy.query(*known, model, candidates=_dense(data.X[candidates]))
                pool.label(int(candidates[chosen[0]]))
            model.fit(_dense(data.X[pool.known]), data.y[pool.known].astype(np.float64))
        return Learned(lambda X: model.predict(_dense(X)), watch, len(pool.known), len(model.estimator_.support_))


def _with_probabilities(data: TrainingSet) -> Any:
    from scipy.special import expit
    from sklearn.svm import SVC

    class Logistic(SVC):  # type: ignore[misc]
        def predict_proba(self, X: Any) -> NDArray[np.float64]:
            positive = expit(self.decision_function(X))
            return np.column_stack([1 - positive, positive])

    return Logistic(**svc_settings(data.parameters))


def _dense(X: Any) -> NDArray[Any]:
    return X.toarray() if sparse.issparse(X) else X


class _Pool:
    """The examples whose label is known, at first random ones until both labels are among them, and the others."""

    def __init__(self, y: NDArray[np.int64]) -> None:
        self._random = np.random.default_rng(0)
        order = self._random.permutation(len(y))
        enough = 1 + max(int(np.argmax(y[order] == label)) for label in (-1, 1))
        self.known = order[:enough].tolist()
        self._unknown = order[enough:].tolist()

    def candidates(self) -> NDArray[np.int64]:
        drawn = self._random.choice(len(self._unknown), min(CANDIDATES, len(self._unknown)), replace=False)
        return np.array([self._unknown[place] for place in drawn])

    def label(self, example: int) -> None:
        self._unknown.remove(example)
        self.known.append(example)


IN_FIT, TAUGHT, RETRAINED = "larank", "larank-teach", "svc-retrain"

LEARNERS: dict[str, Learner] = {
    learner.name: learner
    for learner in (OwnSelection(IN_FIT), QueryAndTeach(TAUGHT), Retrain(RETRAINED), Skactiveml("skactiveml"))
}
