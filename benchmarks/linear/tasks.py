"""What the measured process does: train once, or time one epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import storage, trial
from benchmarks.linear.libraries import SOLVERS
from benchmarks.linear.libraries.solver import TrainingSet
from benchmarks.stopwatch import Stopwatch

EPOCHS = 10
TRIALS = 3


def read(folder: Path) -> TrainingSet:
    """The training set that `benchmarks.linear.runs.stored` wrote."""
    parts = tuple(storage.array(folder, key) for key in ("data", "indices", "indptr"))
    about = storage.about(folder)
    X = sparse.csr_matrix(parts, shape=tuple(about["shape"]), copy=False)
    return TrainingSet(X, storage.array(folder, "y"), about["C"])


def fit(request: dict[str, Any]) -> dict[str, Any]:
    """Train once; the weights go to a file."""
    solver, folder = SOLVERS[request["solver"]], Path(request["folder"])
    _, fitted, figures = trial.train(solver, lambda: read(folder), lambda data: solver.fit(data, request["tolerance"]))
    np.save(request["weights"], fitted.weights())
    return figures


def epoch(request: dict[str, Any]) -> dict[str, Any]:
    """CPU seconds of one full loop of larank and of X @ W by scipy, best of a few interleaved trials."""
    from larank.linear.sdm import LinearMulticlassSVC

    data = read(Path(request["folder"]))
    W = np.ones((data.X.shape[1], int(data.y.max()) + 1), dtype=data.X.dtype)
    settings: dict[str, Any] = {
        "stop": "violation",
        "tol": 1e-12,
        "shrinking": False,
        "cooling": False,
        "fit_intercept": False,
    }

    def loops(count: int) -> float:
        model = LinearMulticlassSVC("crammer-singer", C=data.C, max_iter=count, random_state=0, **settings)
        with Stopwatch() as watch:
            model.fit(data.X, data.y)
        return watch.cpu

    def product() -> float:
        with Stopwatch() as watch:
            for _ in range(EPOCHS):
                data.X @ W
        return watch.cpu / EPOCHS

    trials = [(loops(1), loops(1 + EPOCHS), product()) for _ in range(TRIALS)]
    one, many, bare = (min(times) for times in zip(*trials, strict=True))
    return {"epoch": (many - one) / EPOCHS, "product": bare}
