"""scikit-learn: `SVC`, `LinearSVC`, `SGDClassifier`, `LogisticRegression`, and `SVC` trained again after each label.

`SVC` is a LIBSVM for dense data and one for CSR, with one thread: one-versus-one, and one-versus-rest by
`OneVsRestClassifier`. It converts the data to float64 inside `fit` and `predict`, so there it counts. The binary
problems of one-versus-rest are spread over threads, not processes: LIBSVM runs without the GIL, no worker has to be
started and the data are not copied to one. Their predictions are made one after the other, as scikit-learn does.

`LinearSVC` is a wrapper of an older LIBLINEAR that also accepts sample weights. Its `fit` is timed as a whole, because
the conversion to LIBLINEAR's nodes happens inside. One-versus-rest uses `loss="hinge"`, as the others do; the default,
the squared hinge, is another objective.

`SGDClassifier` has its own schedule of steps, `learning_rate="optimal"`, and trains the classes one after the other.

`LogisticRegression` stops by its tolerance on the gradient: the limit on its iterations, by default 100, is lifted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from studies.rivals.libraries.larank import CANDIDATES
from studies.rivals.libraries.solver import (
    BINARY,
    CACHE_MEGABYTES,
    CSR,
    ONE_VS_ONE,
    ONE_VS_REST,
    GradientSet,
    GradientSolver,
    KernelFit,
    Learned,
    LinearFit,
    LinearSolver,
    Objectives,
    Solver,
    TrainingSet,
    grid,
    linear_fit,
    timed_fit,
)
from studies.rivals.objectives import pair_by_pair, side_by_side, sum_of_binary_duals
from studies.trial import Stopwatch

SPARSE = 0.05
"""Share of values that are not zero, up to which nobody would think of dense rows."""


def svc_settings(data: TrainingSet) -> dict[str, Any]:
    """Of anything with the face of `SVC`: same kernel and C; everything but the cache is left at its default."""
    return {"kernel": "rbf", "C": data.C, "gamma": data.gamma, "cache_size": CACHE_MEGABYTES}


def fit_svc(model: Any, data: TrainingSet) -> KernelFit:
    """Train anything with the face of `SVC`."""
    watch = timed_fit(model, data)
    coefficients = model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else np.asarray(model.dual_coef_)

    def objectives() -> Objectives:
        columns = pair_by_pair(coefficients, np.searchsorted(model.classes_, data.y[model.support_]))
        dual = sum_of_binary_duals(data.X[model.support_], columns, data.gamma)
        return Objectives(BINARY if len(model.classes_) == 2 else ONE_VS_ONE, None, dual)

    return KernelFit(watch, model.predict, len(model.support_), int(np.count_nonzero(coefficients)), objectives)


@dataclass(frozen=True)
class SklearnSvc(Solver):
    requires: str = "sklearn.svm"

    def forms(self, problem: Any) -> Sequence[str]:
        """Rows that are nearly empty take ten times as long when dense."""
        return [form for form in problem.forms if form == CSR or problem.density > SPARSE]

    def fit(self, data: TrainingSet, threads: int) -> KernelFit:
        from sklearn.svm import SVC

        return fit_svc(SVC(**svc_settings(data)), data)


@dataclass(frozen=True)
class SklearnOneVsRest(Solver):
    requires: str = "sklearn.multiclass"

    def fit(self, data: TrainingSet, threads: int) -> KernelFit:
        from joblib import parallel_config
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.svm import SVC

        model = OneVsRestClassifier(SVC(**svc_settings(data)), n_jobs=threads)
        with parallel_config("threading"):
            watch = timed_fit(model, data)
        support, columns = side_by_side(model.estimators_)

        def objectives() -> Objectives:
            return Objectives(ONE_VS_REST, None, sum_of_binary_duals(data.X[support], columns, data.gamma))

        return KernelFit(watch, model.predict, len(support), int(np.count_nonzero(columns)), objectives)


@dataclass(frozen=True)
class SklearnLinearSvc(LinearSolver):
    requires: str = "sklearn.svm"
    tolerances: tuple[float, ...] = grid(1.0, 1e-4)
    multi_class: str = "crammer_singer"

    def fit(self, data: TrainingSet, tolerance: float) -> LinearFit:
        from sklearn.svm import LinearSVC

        settings = {"tol": tolerance, "fit_intercept": False, "max_iter": 1_000_000, "random_state": 0}
        return linear_fit(LinearSVC(loss="hinge", multi_class=self.multi_class, C=data.C, **settings), data)


@dataclass(frozen=True)
class SklearnGradient(GradientSolver):
    requires: str = "sklearn.linear_model"
    average: bool = False

    def fit(self, data: GradientSet, effort: float) -> LinearFit:
        from sklearn.linear_model import SGDClassifier

        settings = {"loss": data.loss, "alpha": data.alpha, "fit_intercept": False, "average": self.average}
        return linear_fit(SGDClassifier(**settings, max_iter=int(effort), tol=None, random_state=0), data)


@dataclass(frozen=True)
class SklearnLogistic(LinearSolver):
    requires: str = "sklearn.linear_model"
    dtype: str = "float32"
    formulation: str = "multinomial"
    tolerances: tuple[float, ...] = (1e-2, 1e-4)  # the last is the default
    solver: str = "lbfgs"

    def fit(self, data: TrainingSet, tolerance: float) -> LinearFit:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=data.C, solver=self.solver, tol=tolerance, max_iter=100_000)
        return linear_fit(model, data, lambda: {"iterations": int(model.n_iter_[0])}, biases=True)


@dataclass(frozen=True)
class Retrain(Solver):
    """`SVC`, trained again from scratch after each label; it cannot start from another solution."""

    requires: str = "sklearn.svm"

    def learn(self, data: TrainingSet, labels: int, threads: int) -> Learned:
        from sklearn.svm import SVC

        model = SVC(**svc_settings(data))
        with Stopwatch() as watch:
            pool = Pool(data.y)
            model.fit(data.X[pool.known], data.y[pool.known])
            while len(pool.known) < labels:
                candidates = pool.candidates()
                margins = np.abs(model.decision_function(data.X[candidates]))
                pool.label(int(candidates[np.argmin(margins)]))
                model.fit(data.X[pool.known], data.y[pool.known])
        return Learned(watch, model.predict, len(pool.known), len(model.support_))


class Pool:
    """The examples whose label is known, at first random ones until both labels are among them, and the others."""

    def __init__(self, y: NDArray[np.int64]) -> None:
        self._random = np.random.default_rng(0)
        order = self._random.permutation(len(y))
        enough = 1 + max(int(np.argmax(y[order] == label)) for label in (-1, 1))
        self.known = order[:enough].tolist()
        self._unknown = order[enough:].tolist()

    def candidates(self) -> NDArray[np.int64]:
        drawn = self._random.choice(len(self._unknown), min(CANDIDATES, len(self._unknown)), replace=False)
        return np.array([self._unknown[position] for position in drawn])

    def label(self, example: int) -> None:
        self._unknown.remove(example)
        self.known.append(example)


SVC = SklearnSvc("svc")
KERNEL = (SVC, SklearnOneVsRest("svc-ovr"))
LINEAR = (
    SklearnLinearSvc("linearsvc-cs"),
    SklearnLinearSvc("linearsvc-ovr", formulation="one-vs-rest", multi_class="ovr"),
)
GRADIENT = (SklearnGradient("sgdclassifier"), SklearnGradient("sgdclassifier-averaged", average=True))
LOGISTIC = (SklearnLogistic("lbfgs"), SklearnLogistic("newton-cg", solver="newton-cg"))
RETRAIN = Retrain("svc-retrain")
