"""scikit-learn's `SVC`, a LIBSVM for dense data: one-versus-one, and one-versus-rest by `OneVsRestClassifier`.

It converts the data to float64 inside `fit` and `predict`, so there it counts. `SVC` itself has one thread. The binary
problems of one-versus-rest are spread over threads, not processes: LIBSVM runs without the GIL, no worker has to be
started and the data are not copied to one. Their predictions are made one after the other, as scikit-learn does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.binaryduals import sum_of_binary_duals
from benchmarks.kernel.libraries.solver import ONE_VS_ONE, ONE_VS_REST, Fit, Objectives, TrainingSet
from benchmarks.kernel.objectives import pair_by_pair, side_by_side
from benchmarks.rbf import svc_settings
from benchmarks.stopwatch import Stopwatch


def fit_svc(model: Any, data: TrainingSet) -> Fit:
    """Train anything with the face of `SVC`."""
    with Stopwatch() as watch:
        model.fit(data.X, data.y)

    def objectives() -> Objectives:
        columns = pair_by_pair(np.asarray(model.dual_coef_), data.y[model.support_])
        dual = sum_of_binary_duals(data.X[model.support_], columns, data.parameters.gamma)
        return Objectives(ONE_VS_ONE, None, dual)

    return Fit(model.predict, watch, len(model.support_), int(np.count_nonzero(model.dual_coef_)), objectives)


@dataclass(frozen=True)
class SklearnSvc:
    name: str
    requires: str = "sklearn.svm"
    copies_input: bool = False

    def fit(self, data: TrainingSet, threads: int) -> Fit:
        from sklearn.svm import SVC

        return fit_svc(SVC(**svc_settings(data.parameters)), data)


@dataclass(frozen=True)
class SklearnOneVsRest:
    name: str
    requires: str = "sklearn.multiclass"
    copies_input: bool = False

    def fit(self, data: TrainingSet, threads: int) -> Fit:
        from joblib import parallel_config
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.svm import SVC

        model = OneVsRestClassifier(SVC(**svc_settings(data.parameters)), n_jobs=threads)
        with Stopwatch() as watch, parallel_config("threading"):
            model.fit(data.X, data.y)
        support, columns = side_by_side(model.estimators_)

        def objectives() -> Objectives:
            dual = sum_of_binary_duals(data.X[support], columns, data.parameters.gamma)
            return Objectives(ONE_VS_REST, None, dual)

        return Fit(model.predict, watch, len(support), int(np.count_nonzero(columns)), objectives)


SOLVERS = (SklearnSvc("svc"), SklearnOneVsRest("svc-ovr"))
