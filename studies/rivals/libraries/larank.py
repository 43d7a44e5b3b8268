"""This library, through its public names alone: the same adapters drive older versions of it.

Every order is drawn from a fixed seed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from studies.rivals.libraries.solver import (
    BINARY,
    CRAMMER_SINGER,
    AmbiguousLearner,
    Fitted,
    GradientSet,
    GradientSolver,
    KernelFit,
    Learned,
    LinearFit,
    LinearSolver,
    Objectives,
    Predict,
    Predictor,
    Solver,
    TaggerFit,
    TrainingSet,
    grid,
    linear_fit,
    timed_fit,
)
from studies.rivals.objectives import sum_of_binary_duals
from studies.rivals.products import block_shapes, equal_blocks
from studies.trial import Stopwatch, imported

CANDIDATES = 50
"""Of these, active learners ask for the label of the least certain."""

COLUMNS = ("word", "pos")
CHUNKING = (
    *(f"word[{at}]" for at in (-2, -1, 0, 1, 2)),
    "word[-1]|word[0]",
    "word[0]|word[1]",
    *(f"pos[{at}]" for at in (-2, -1, 0, 1, 2)),
    *(f"pos[{at}]|pos[{at + 1}]" for at in (-2, -1, 0, 1)),
    *(f"pos[{at}]|pos[{at + 1}]|pos[{at + 2}]" for at in (-2, -1, 0)),
)
"""The library's templates for chunking, whose home has moved."""


# ---- Linear ----


def _told(result: Any, *names: str) -> dict[str, Any]:
    """Return what a result says, as JSON can hold it."""
    found = {name: getattr(result, name) for name in names}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in found.items()}


@dataclass(frozen=True)
class LarankSdm(LinearSolver):
    """`LinearMulticlassSVC`, stopped on the relative duality gap."""

    requires: str = "larank:LinearMulticlassSVC"
    tolerances: tuple[float, ...] = grid(1e-1, 1e-6)

    def fit(self, data: TrainingSet, tolerance: float) -> LinearFit:
        settings = {"tol": tolerance, "stop": "gap", "fit_intercept": False, "random_state": 0}
        model = imported(self.requires)(self.formulation, C=data.C, **settings)
        return linear_fit(model, data, lambda: _told(model.result_, "primal", "dual", "iterations"))


LINEAR = (LarankSdm("larank"), LarankSdm("larank-ovr", formulation="one-vs-rest"))


@dataclass(frozen=True)
class LarankPrimal(LinearSolver):
    """`PrimalMulticlassSVC` with its defaults, stopped on the relative duality gap."""

    requires: str = "larank:PrimalMulticlassSVC"
    dtype: str = "float32"
    formulation: str = "multinomial"
    tolerances: tuple[float, ...] = grid(1e-1, 1e-6, 2)

    def fit(self, data: TrainingSet, tolerance: float) -> LinearFit:
        model = imported(self.requires)(C=data.C, tol=tolerance, random_state=0)
        names = "iterations", "operations", "breakdown", "status"
        return linear_fit(model, data, lambda: _told(model.result_, *names), biases=True)


PRIMAL = LarankPrimal("larank")


# ---- Stochastic gradient ----


@dataclass(frozen=True)
class LarankGradient(GradientSolver):
    """`LinearSGDClassifier`; the time of training includes the search for t0 and the certificate, if there is one."""

    requires: str = "larank:LinearSGDClassifier"
    formulations: tuple[str, ...] = ("one-vs-rest", "joint")
    algorithm: str = "asgd"
    certify: bool = False

    def fit(self, data: GradientSet, effort: float) -> LinearFit:
        problem = {"formulation": data.formulation, "alpha": data.alpha, "fit_intercept": False}
        way = {"algorithm": self.algorithm, "max_iter": int(effort), "random_state": 0}
        model = imported(self.requires)(data.loss, **problem, **way)
        found = lambda: {"t0": float(model.t0_), **_told(model.result_, "breakdown")}  # noqa: E731
        return linear_fit(model, data, found, certify=self.certify)


_PLAIN = [
    LarankGradient("larank-asgd", algorithm="asgd", rival="sgdclassifier-averaged"),
    LarankGradient("larank-sgdqn", algorithm="sgdqn", rival="sgdclassifier"),
    LarankGradient("larank-svmsgd2", algorithm="svmsgd2", rival="sgdclassifier"),
]
GRADIENT = [*_PLAIN, *(replace(solver, name=f"{solver.name}-certified", certify=True) for solver in _PLAIN)]


# ---- Kernel ----


@dataclass(frozen=True)
class Estimator(Solver):
    """One of the estimators; `settings` are its parameters, and `options` are arguments of its `fit`."""

    dtype: str = "float32"
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def having(self, **settings: Any) -> Self:
        """Return the estimator with other parameters, or with another argument `certify`."""
        options = {name: settings.pop(name) for name in ("certify",) if name in settings}
        return replace(self, settings={**self.settings, **settings}, options={**self.options, **options})

    def model(self, data: TrainingSet, threads: int) -> Any:
        """Untrained, with the rbf kernel."""
        given = {"C": data.C, "gamma": data.gamma, "n_jobs": threads, "random_state": 0}
        return imported(self.requires)("rbf", **given, **self.settings)

    def fit(self, data: TrainingSet, threads: int) -> KernelFit:
        model = self.model(data, threads)
        watch, result = timed_fit(model, data, **self.options), model.result_
        fitted = KernelFit(
            watch,
            model.predict,
            support_patterns=result.support_patterns,
            support_vectors=result.support_vectors,
            objectives=lambda: Objectives(CRAMMER_SINGER, float(result.primal), float(result.dual)),
            extra=_told(result, "status", "kernel_values", "operations", "breakdown"),
        )
        return self.told(fitted, model, data)

    def told(self, fitted: KernelFit, model: Any, data: TrainingSet) -> KernelFit:
        """With what only this estimator knows."""
        return fitted


@dataclass(frozen=True)
class LarankOnline(Estimator):
    """`LaRankClassifier`: one pass over the examples, with the certificate that is the default, of a sample."""

    requires: str = "larank:LaRankClassifier"
    settings: Mapping[str, Any] = field(default_factory=lambda: {"max_iter": 1})

    def told(self, fitted: KernelFit, model: Any, data: TrainingSet) -> KernelFit:
        result = model.result_
        blocks = block_shapes(result, len(data.y), model._BATCH_SIZE)
        return replace(fitted, blocks=blocks, objectives=lambda: Objectives(CRAMMER_SINGER, None, float(result.dual)))

    def certify(self, data: TrainingSet, threads: int) -> dict[str, float]:
        """Train once more, with the certificate: its seconds, and the objectives it finds."""
        result = self.model(data, threads).fit(data.X, data.y, certify=True).result_
        objectives = {"primal": float(result.primal), "dual": float(result.dual)}
        return {"seconds": float(result.breakdown["certificate"]), **objectives}


@dataclass(frozen=True)
class LarankExact(Estimator):
    """`MulticlassSVC`: the problem of `LarankOnline`, solved until the duality gap is small.

    The gap is computed over all examples before training ends, so its time is in that of training.
    """

    requires: str = "larank:MulticlassSVC"
    settings: Mapping[str, Any] = field(default_factory=lambda: {"tol": 1e-3, "memory_limit": 4e9})

    def told(self, fitted: KernelFit, model: Any, data: TrainingSet) -> KernelFit:
        return replace(fitted, blocks=equal_blocks(model.result_.kernel_values, model.result_.support_patterns))

    def path(self, data: TrainingSet, threads: int, costs: Sequence[float]) -> Fitted:
        """One model per value of C, each started from the one before: the time of all together, and what each says."""
        model = self.model(data, threads)
        with Stopwatch() as watch:
            models = model.path(data.X, data.y, costs)
        names = "seconds", "dual", "relative_gap", "support_patterns"
        steps = [{"C": float(step.C), **_told(step.result_, *names)} for step in models]
        largest = max(models, key=lambda step: step.C)  # the last one trained, which tells of all
        return Fitted(watch, extra={"steps": steps, **_told(largest.result_, "breakdown")})

    def search(
        self, data: TrainingSet, threads: int, method: str, costs: list[float], gammas: list[float], folds: int
    ) -> Predictor:
        """C and gamma by cross-validation: on shared kernel values, or by scikit-learn's search over separate fits."""
        from sklearn.model_selection import GridSearchCV

        settings = {**self.settings, "random_state": 0}
        if method == "shared":
            single = imported(self.requires)(**settings)
            model = imported("larank:PathSearchCV")(single, Cs=costs, gammas=gammas, cv=folds, n_jobs=threads)
            watch = timed_fit(model, data)
            means, best = model.scores_.mean(axis=0), model.best_params_
        else:
            single = imported(self.requires)(n_jobs=threads, **settings)
            model = GridSearchCV(single, {"C": costs, "gamma": gammas}, cv=folds)
            watch = timed_fit(model, data)
            means = np.reshape(model.cv_results_["mean_test_score"], (len(costs), len(gammas)))
            best = model.best_params_
        found = {"scores": np.asarray(means).tolist(), "score": float(model.best_score_), **best}
        return Predictor(watch, model.predict, extra=found)


@dataclass(frozen=True)
class LarankLasvm(Estimator):
    """`LaSVMClassifier`: one epoch, finishing, and the certificate."""

    requires: str = "larank:LaSVMClassifier"
    settings: Mapping[str, Any] = field(default_factory=lambda: {"max_iter": 1})

    def told(self, fitted: KernelFit, model: Any, data: TrainingSet) -> KernelFit:
        result, support = model.result_, np.asarray(model.support_)
        coefficients = model.dual_coef_.T
        most = max([result.support_patterns, *(point.support_patterns for point in result.history)])
        extra = {"primal": float(result.primal), "dual": float(result.dual), "most_patterns": most}

        def objectives() -> Objectives:
            return Objectives(BINARY, extra["primal"], sum_of_binary_duals(data.X[support], coefficients, data.gamma))

        return replace(fitted, support_vectors=len(support), objectives=objectives, extra={**fitted.extra, **extra})


ONLINE, EXACT, LASVM = LarankOnline("larank"), LarankExact("larank-exact"), LarankLasvm("larank")


# ---- Labels asked for one by one ----


@dataclass(frozen=True)
class OwnSelection(Solver):
    """LaSVM that selects while it trains."""

    requires: str = LASVM.requires
    dtype: str = "float32"

    def learn(self, data: TrainingSet, labels: int, threads: int) -> Learned:
        selection = imported("larank.active:Active")(sample_size=CANDIDATES, budget=labels)
        model = LASVM.having(selection=selection).model(data, threads)
        return Learned(timed_fit(model, data, certify=False), model.predict, labels, model.result_.support_patterns)


@dataclass(frozen=True)
class QueryAndTeach(Solver):
    """LaSVM taught by `ActiveLearner`, one step of the solver per label."""

    requires: str = "larank:ActiveLearner"
    dtype: str = "float32"

    def learn(self, data: TrainingSet, labels: int, threads: int) -> Learned:
        model = LASVM.model(data, threads)
        with Stopwatch() as watch:
            selection = imported("larank.active:Active")(sample_size=CANDIDATES)
            learner = imported(self.requires)(model, data.X, selection=selection, random_state=0)
            for _ in range(labels):
                index, x = learner.query()
                learner.teach(x, data.y[index])
        return Learned(watch, learner.estimator.predict, labels, len(learner.estimator.support_))


LEARNERS = (OwnSelection("larank"), QueryAndTeach("larank-teach"))


# ---- Sequences ----


@dataclass(frozen=True)
class LarankTagger(Estimator):
    """`SequenceTagger`, straight from the file."""

    requires: str = "larank:SequenceTagger"

    def with_threads(self, threads: int) -> LarankTagger:
        return replace(self, name=f"{self.name}-{threads}", threads=threads)

    def fit(self, path: Path) -> TaggerFit:  # type: ignore[override]
        given = {"templates": CHUNKING, "columns": COLUMNS, "n_jobs": self.threads, "random_state": 0}
        model, file_of = imported(self.requires)(**{**given, **self.settings}), _conll_file()
        with Stopwatch() as watch:
            model.fit(file_of(path))
        told = _told(model.result_, "status", "primal", "dual", "breakdown")
        return TaggerFit(watch, lambda file: list(model.predict(file_of(file))), extra=told)


def _conll_file() -> Any:
    """The class of files in columns, which had another home before version 0.2."""
    try:
        return importlib.import_module("larank.data.columns").ConllFile
    except ModuleNotFoundError:
        return importlib.import_module("larank.structured.conll").ConllFile


_EXACT = LarankTagger("larank-exact", settings={"inference": "exact", "order": 1})
_GREEDY = LarankTagger("larank-greedy", settings={"inference": "greedy", "order": 2})
TAGGERS = (_EXACT, _GREEDY, _EXACT.with_threads(2), _GREEDY.with_threads(2))


# ---- Candidate labels ----


def _ambiguous(
    X: Any, candidates: Any, seed: int, C: float, kernel: str = "rbf", gamma: float = 1.0, sharpness: float = 0.0
) -> Predict:
    """`AmbiguousClassifier`; the kernel is selected like everything else, each with a grid of its own."""
    scale = {"gamma": gamma / X.shape[1]} if kernel == "rbf" else {}
    given = {"C": C, "sharpness": sharpness, "random_state": seed, "max_iter": 20, **scale}
    model = imported("larank:AmbiguousClassifier")(kernel, **given)

    def rows(X: Any) -> Any:  # a constant feature stands for an intercept
        return np.column_stack([X, np.ones(len(X))] if kernel == "linear" else [X]).astype(np.float32)

    model.fit(rows(X), candidates, certify=False)
    return lambda queries: np.asarray(model.predict(rows(queries))).astype(np.int64)


_LINEAR = {"kernel": ["linear"], "C": (1e-4, 1e-3, 1e-2, 1e-1, 1.0)}
_RBF = {"C": (1.0, 10.0, 100.0, 1000.0), "gamma": (0.1, 0.25, 0.5, 1.0, 2.0)}
_SHARP = {"sharpness": (0.0, 20.0)}
_OURS = AmbiguousLearner("larank-plain", "larank:AmbiguousClassifier", fit=_ambiguous, grids=[_LINEAR, _RBF])
AMBIGUOUS = (replace(_OURS, name="larank", grids=[{**one, **_SHARP} for one in _OURS.grids]), _OURS)
