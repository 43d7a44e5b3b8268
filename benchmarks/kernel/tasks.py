"""What the measured process does: train and predict once, compute the certificate, or train the exact solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import storage, trial
from benchmarks.kernel.libraries import EXACT, OURS, SOLVERS
from benchmarks.kernel.libraries.larank_exact import LarankExact
from benchmarks.kernel.libraries.solver import TrainingSet
from benchmarks.kernel.products import time_products
from benchmarks.rbf import Parameters
from benchmarks.stopwatch import Stopwatch


def read(folder: Path) -> TrainingSet:
    """The training set that `benchmarks.kernel.runs.stored` wrote."""
    parameters = Parameters(**storage.about(folder))
    return TrainingSet(storage.array(folder, "X_train"), storage.array(folder, "y_train"), parameters)


def fit(request: dict[str, Any]) -> dict[str, Any]:
    """Train, note the memory, predict the test set; then time the bare products where their shapes are known."""
    solver, folder = SOLVERS[request["solver"]], Path(request["folder"])
    data, fitted, figures = trial.train(solver, lambda: read(folder), lambda data: solver.fit(data, request["threads"]))
    X, y = storage.array(folder, "X_test"), storage.array(folder, "y_test")
    with Stopwatch() as watch:
        labels = fitted.predict(X)
    reached = fitted.objectives()
    product = time_products(data.X, fitted.blocks, request["threads"]) if fitted.blocks else None
    return {
        **figures,
        "predict": watch.wall,
        "predict_cpu": watch.cpu,
        "error": float(np.mean(labels != y)),
        "support_patterns": int(fitted.support_patterns),
        "support_vectors": int(fitted.support_vectors),
        "objective": reached.problem,
        "primal": reached.primal,
        "dual": reached.dual,
        "product": product.wall if product else None,
        "product_cpu": product.cpu if product else None,
    }


def certificate(request: dict[str, Any]) -> dict[str, float]:
    """Seconds and objectives of larank's certificate."""
    return OURS.certify(read(Path(request["folder"])), request["threads"])


def fit_limited(request: dict[str, Any]) -> dict[str, Any]:
    """Train the exact solver with another limit on memory."""
    return _exact(request, EXACT.within(request["memory_limit"]), lambda data: data)


def fit_at(request: dict[str, Any]) -> dict[str, Any]:
    """Train the exact solver with another C."""
    return _exact(request, EXACT, lambda data: replace(data, parameters=replace(data.parameters, C=request["C"])))


def path(request: dict[str, Any]) -> dict[str, Any]:
    """Train the exact solver for several values of C."""
    folder, threads, costs = Path(request["folder"]), request["threads"], request["costs"]
    _, _, figures = trial.train(EXACT, lambda: read(folder), lambda data: EXACT.path(data, threads, costs))
    return figures


def _exact(
    request: dict[str, Any], solver: LarankExact, changed: Callable[[TrainingSet], TrainingSet]
) -> dict[str, Any]:
    folder, threads = Path(request["folder"]), request["threads"]
    _, fitted, figures = trial.train(solver, lambda: changed(read(folder)), lambda data: solver.fit(data, threads))
    reached = fitted.objectives()
    told = {"primal": reached.primal, "dual": reached.dual, "support_patterns": fitted.support_patterns}
    return {**figures, "extra": {**figures["extra"], **told}}
