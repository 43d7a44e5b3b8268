"""The measured processes of this comparison: two threads each."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import storage
from benchmarks.kernel.problems import Problem
from benchmarks.measure import Measurement, ask
from benchmarks.rbf import THREADS

TASKS = "benchmarks.kernel.tasks"


@dataclass(frozen=True)
class KernelRun(Measurement):
    """One training and one prediction of the test set, in wall-clock seconds; `product` is the bare product's.

    `objective` is what `primal` and `dual` are of.
    """

    predict: float
    predict_cpu: float
    error: float
    support_patterns: int
    support_vectors: int
    objective: str
    primal: float | None
    dual: float
    product: float | None
    product_cpu: float | None


@dataclass(frozen=True)
class Certificate:
    """What computing it took, and the objectives it found."""

    seconds: float
    primal: float
    dual: float


def stored(problem: Problem) -> AbstractContextManager[Path]:
    """Both parts, for the children."""
    keys = ("X_train", "y_train", "X_test", "y_test")
    return storage.stored(problem.name, {key: getattr(problem, key) for key in keys}, asdict(problem.parameters))


def measure_fit(folder: Path, solver: str, limit: float | None) -> KernelRun:
    """Train and predict once in a process of its own."""
    return KernelRun(**ask(TASKS, "fit", folder, THREADS, limit, solver=solver))


def measure_certificate(folder: Path, limit: float | None) -> Certificate:
    """Train larank once more, with the certificate."""
    return Certificate(**ask(TASKS, "certificate", folder, THREADS, limit))


def measure_limited(folder: Path, memory_limit: float, limit: float | None) -> Measurement:
    """Train the exact solver once with so many bytes."""
    return Measurement(**ask(TASKS, "fit_limited", folder, THREADS, limit, memory_limit=memory_limit))


def measure_path(folder: Path, costs: Sequence[float], limit: float | None) -> Measurement:
    """Train the exact solver for several values of C, one after the other."""
    return Measurement(**ask(TASKS, "path", folder, THREADS, limit, costs=list(costs)))


def measure_from_scratch(folder: Path, C: float, limit: float | None) -> Measurement:
    """Train the exact solver for one value of C."""
    return Measurement(**ask(TASKS, "fit_at", folder, THREADS, limit, C=C))
