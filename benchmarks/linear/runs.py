"""The measured processes of this comparison: one thread each."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import storage
from benchmarks.linear.problems import Problem
from benchmarks.measure import Measurement, ask

TASKS = "benchmarks.linear.tasks"
THREADS = 1


@dataclass(frozen=True)
class LinearRun(Measurement):
    """One training run and its solution."""

    W: NDArray[np.float64]


def stored(problem: Problem, dtype: str) -> AbstractContextManager[Path]:
    """The training part, for the children."""
    X = problem.X_train
    arrays = {"data": X.data.astype(dtype), "indices": X.indices, "indptr": X.indptr, "y": problem.y_train}
    return storage.stored(problem.name, arrays, {"shape": X.shape, "C": problem.C})


def measure_fit(folder: Path, solver: str, tolerance: float, limit: float | None) -> LinearRun:
    """Train once in a process of its own."""
    weights = folder / "weights.npy"
    details = {"solver": solver, "tolerance": tolerance, "weights": str(weights)}
    return LinearRun(**ask(TASKS, "fit", folder, THREADS, limit, **details), W=np.load(weights))


def measure_epoch(folder: Path) -> dict[str, float]:
    """CPU seconds of one epoch of larank and of the bare product."""
    return ask(TASKS, "epoch", folder, THREADS, limit=None)
