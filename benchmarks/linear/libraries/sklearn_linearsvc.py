"""scikit-learn's `LinearSVC`, a wrapper of an older LIBLINEAR that also accepts sample weights.

Its `fit` is timed as a whole, because the conversion to LIBLINEAR's nodes happens inside. One-versus-rest
uses `loss="hinge"`, as the others do; the default, the squared hinge, is another objective.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.linear.libraries.solver import Fit, TrainingSet, grid
from benchmarks.stopwatch import Stopwatch


@dataclass(frozen=True)
class SklearnLinearSvc:
    name: str
    formulation: str
    multi_class: str
    tolerances: tuple[float, ...] = grid(1.0, 1e-4)
    requires: str = "sklearn.svm"
    copies_input: bool = False

    def fit(self, data: TrainingSet, tolerance: float) -> Fit:
        from sklearn.svm import LinearSVC

        model = LinearSVC(
            multi_class=self.multi_class,
            loss="hinge",
            C=data.C,
            tol=tolerance,
            fit_intercept=False,
            max_iter=1_000_000,
            random_state=0,
        )
        with Stopwatch() as watch:
            model.fit(data.X, data.y)
        return Fit(lambda: np.asarray(model.coef_, dtype=np.float64), watch)


SOLVERS = (
    SklearnLinearSvc("linearsvc-cs", "crammer-singer", "crammer_singer"),
    SklearnLinearSvc("linearsvc-ovr", "one-vs-rest", "ovr"),
)
