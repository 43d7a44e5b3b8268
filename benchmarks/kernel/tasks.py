"""What the measured process does: train and predict once, or compute the certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import storage, trial
from benchmarks.kernel.libraries import OURS, SOLVERS
from benchmarks.kernel.libraries.solver import TrainingSet
from benchmarks.kernel.problems import Parameters
from benchmarks.kernel.products import time_products
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
    product = time_products(data.X, fitted.blocks, request["threads"]) if fitted.blocks else None
    return {
        **figures,
        "predict": watch.wall,
        "predict_cpu": watch.cpu,
        "error": float(np.mean(labels != y)),
        "support_patterns": int(fitted.support_patterns),
        "support_vectors": int(fitted.support_vectors),
        "product": product.wall if product else None,
        "product_cpu": product.cpu if product else None,
    }


def certificate(request: dict[str, Any]) -> dict[str, float]:
    """Seconds and primal objective of larank's certificate."""
    return OURS.certify(read(Path(request["folder"])), request["threads"])
