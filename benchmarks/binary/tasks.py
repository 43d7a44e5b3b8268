"""What the measured process does: train and predict once, or learn from labels it asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import storage, trial
from benchmarks.binary.learners import LEARNERS
from benchmarks.binary.libraries import OURS, SOLVERS
from benchmarks.binary.libraries.solver import Solver, TrainingSet
from benchmarks.rbf import Parameters
from benchmarks.stopwatch import Stopwatch


def read(folder: Path, form: str, dtype: str) -> TrainingSet:
    """The training set that `benchmarks.binary.runs.stored` wrote."""
    parameters = Parameters(**storage.about(folder))
    X = storage.matrix(folder, f"X_train_{form}").astype(dtype, copy=False)
    return TrainingSet(X, storage.array(folder, "y_train"), parameters)


def fit(request: dict[str, Any]) -> dict[str, Any]:
    """Train, note the memory, predict the test set, and compute the dual."""
    return _fit(SOLVERS[request["solver"]], request)


def fit_ours(request: dict[str, Any]) -> dict[str, Any]:
    """The same for larank with other parameters."""
    return _fit(OURS.having(**request["settings"]), request)


def _fit(solver: Solver, request: dict[str, Any]) -> dict[str, Any]:
    folder, form, threads = Path(request["folder"]), request["form"], request["threads"]
    data, fitted, figures = trial.train(
        solver, lambda: read(folder, form, solver.dtype), lambda data: solver.fit(data, threads)
    )
    X = storage.matrix(folder, f"X_test_{form}").astype(solver.dtype, copy=False)
    with Stopwatch() as watch:
        labels = fitted.predict(X)
    return {
        **figures,
        "predict": watch.wall,
        "predict_cpu": watch.cpu,
        "error": float(np.mean(labels != storage.array(folder, "y_test"))),
        "support_vectors": len(fitted.support),
        "dual": fitted.dual(data),
    }


def active(request: dict[str, Any]) -> dict[str, Any]:
    """Learn from so many labels, then test."""
    folder, form = Path(request["folder"]), request["form"]
    learner = LEARNERS[request["learner"]]
    data = read(folder, form, learner.dtype)
    learned = learner.learn(data, request["labels"], request["threads"])
    X = storage.matrix(folder, f"X_test_{form}").astype(learner.dtype, copy=False)
    return {
        "wall": learned.seconds.wall,
        "cpu": learned.seconds.cpu,
        "labels": learned.labels,
        "error": float(np.mean(learned.predict(X) != storage.array(folder, "y_test"))),
        "support_vectors": learned.support_vectors,
    }
