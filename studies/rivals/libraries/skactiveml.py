"""scikit-activeml's `UncertaintySampling`, which trains an `SVC` on what is labelled and ranks the candidates.

It takes dense data only, and ranks by probability: the logistic function of the decision value, which prefers the same
examples as |f| and costs nothing, stands for the cross-validation of `SVC(probability=True)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from studies.rivals.libraries.scikit_learn import Pool, svc_settings
from studies.rivals.libraries.solver import Learned, Solver, TrainingSet
from studies.trial import Stopwatch


@dataclass(frozen=True)
class Skactiveml(Solver):
    requires: str = "skactiveml.pool"

    def learn(self, data: TrainingSet, labels: int, threads: int) -> Learned:
        from skactiveml.classifier import SklearnClassifier
        from skactiveml.pool import UncertaintySampling

        model = SklearnClassifier(_with_probabilities(data), classes=[-1, 1], random_state=0)
        strategy = UncertaintySampling(method="least_confident", random_state=0)
        with Stopwatch() as watch:
            pool = Pool(data.y)
            while len(pool.known) < labels:
                candidates = pool.candidates()
                known = _dense(data.X[pool.known]), data.y[pool.known].astype(np.float64)
                chosen = strategy.query(*known, model, candidates=_dense(data.X[candidates]))
                pool.label(int(candidates[chosen[0]]))
            model.fit(_dense(data.X[pool.known]), data.y[pool.known].astype(np.float64))
        return Learned(watch, lambda X: model.predict(_dense(X)), len(pool.known), len(model.estimator_.support_))


def _with_probabilities(data: TrainingSet) -> Any:
    from scipy.special import expit
    from sklearn.svm import SVC

    class Logistic(SVC):  # type: ignore[misc]
        def predict_proba(self, X: Any) -> NDArray[np.float64]:
            positive = expit(self.decision_function(X))
            return np.column_stack([1 - positive, positive])

    return Logistic(**svc_settings(data))


def _dense(X: Any) -> NDArray[Any]:
    return X.toarray() if sparse.issparse(X) else X


LEARNERS = (Skactiveml("skactiveml"),)
