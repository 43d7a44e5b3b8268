"""Runs of linear solvers: the problems, one training in a process of its own with one thread, and its weights."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from studies import datasets, storage
from studies.measure import Measurement, ask
from studies.rivals.contest import Entrant

TASKS = "studies.rivals.tasks"
THREADS = 1
QUICK_TRAIN, QUICK_TEST = 1500, 500


@dataclass(frozen=True)
class Problem:
    """A data set, in float64, and a C. No intercept: LIBLINEAR's default."""

    name: str
    X_train: sparse.csr_matrix
    y_train: NDArray[np.int64]
    X_test: sparse.csr_matrix
    y_test: NDArray[np.int64]
    C: float


@dataclass(frozen=True)
class LinearRun(Measurement):
    """One training run and its weights, a row per class or a single one; objectives as the solver tells them."""

    W: NDArray[np.float64]

    @property
    def primal(self) -> Any:
        return self.extra.get("primal")

    @property
    def dual(self) -> Any:
        return self.extra.get("dual")


def load(name: str, quick: bool) -> Problem:
    """Its classes are 0, 1, ..., k - 1, each with training examples."""
    data = datasets.load(name, datasets.LINEAR)
    data = data.drawn(QUICK_TRAIN, QUICK_TEST) if quick else data
    present = np.unique(data.y_train)
    if not np.array_equal(present, np.arange(len(present))):
        raise ValueError(f"problem {name!r}: classes must be 0 .. k - 1, found {present.tolist()}")
    return Problem(name, data.X_train, data.y_train, data.X_test, data.y_test, datasets.LINEAR[name].C)


def stored(problem: Problem, dtype: str) -> AbstractContextManager[Path]:
    """The training part, for the children."""
    arrays = {"X_train_csr": problem.X_train.astype(dtype), "y_train": problem.y_train}
    return storage.stored(problem.name, arrays, {"C": problem.C, "gamma": 1.0, "dtype": dtype})


def measure(
    task: str, kind: str, folder: Path, entrant: Entrant, threads: int, limit: float | None, **details: Any
) -> LinearRun:
    """Train once in a process of its own, by one of the tasks that leave the weights in a file."""
    weights = folder / "weights.npy"
    asked = {"kind": kind, "solver": entrant.solver, "python": entrant.python, "weights": str(weights), **details}
    found = ask(TASKS, task, folder, threads, limit, **asked)
    return LinearRun(**found, W=np.load(weights))


def measure_fit(folder: Path, entrant: Entrant, tolerance: float, limit: float | None) -> LinearRun:
    return measure("fit_linear", "linear", folder, entrant, THREADS, limit, tolerance=tolerance)


def measure_epoch(folder: Path) -> dict[str, float]:
    """CPU seconds of one epoch of larank and of the bare product."""
    return ask(TASKS, "epoch", folder, THREADS, limit=None)
