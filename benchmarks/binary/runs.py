"""The measured processes of this comparison: two threads each."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import storage
from benchmarks.binary.problems import Problem
from benchmarks.measure import Measurement, ask
from benchmarks.rbf import THREADS

TASKS = "benchmarks.binary.tasks"


@dataclass(frozen=True)
class BinaryRun(Measurement):
    """One training and one prediction of the test set, in wall-clock seconds, and the dual objective reached."""

    predict: float
    predict_cpu: float
    error: float
    support_vectors: int
    dual: float


@dataclass(frozen=True)
class ActiveRun:
    """So many labels asked for: seconds without the test, and what was learned from them."""

    wall: float
    cpu: float
    labels: int
    error: float
    support_vectors: int


def stored(problem: Problem) -> AbstractContextManager[Path]:
    """Both parts in all forms, for the children."""
    arrays = {"y_train": problem.y_train, "y_test": problem.y_test}
    for part, forms in (("X_train", problem.X_train), ("X_test", problem.X_test)):
        for form, X in forms.items():
            arrays |= storage.matrix_arrays(f"{part}_{form}", X)
    return storage.stored(problem.name, arrays, asdict(problem.parameters))


def measure_fit(folder: Path, solver: str, form: str, limit: float | None) -> BinaryRun:
    """Train and predict once in a process of its own."""
    return BinaryRun(**ask(TASKS, "fit", folder, THREADS, limit, solver=solver, form=form))


def measure_ours(folder: Path, form: str, settings: Mapping[str, Any], limit: float | None) -> BinaryRun:
    """The same for larank with other parameters."""
    return BinaryRun(**ask(TASKS, "fit_ours", folder, THREADS, limit, form=form, settings=dict(settings)))


def measure_active(folder: Path, learner: str, form: str, labels: int, limit: float | None) -> ActiveRun:
    """Let a learner ask for so many labels."""
    return ActiveRun(**ask(TASKS, "active", folder, THREADS, limit, learner=learner, form=form, labels=labels))
