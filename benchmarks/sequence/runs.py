"""The measured processes of this comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import ask
from benchmarks.sequence.libraries import SOLVERS

TASKS = "benchmarks.sequence.tasks"


@dataclass(frozen=True)
class TaggerRun:
    """One training and one tagging of the test file, from text each, in wall-clock seconds; the peak in bytes.

    `tag_prepared` are the seconds of tagging alone, of features made before, where a library keeps the two apart.
    """

    wall: float
    cpu: float
    peak: int
    breakdown: Mapping[str, float]
    tag: float
    tag_prepared: float | None
    tokens: int
    accuracy: float
    f1: float
    extra: Mapping[str, Any]


@dataclass(frozen=True)
class PeakRun:
    """Seconds and peak memory, in bytes, of one training."""

    wall: float
    peak: int


def measure_fit(folder: Path, solver: str, limit: float | None) -> TaggerRun:
    """Train and tag once in a process of its own."""
    return TaggerRun(**ask(TASKS, "fit", folder, SOLVERS[solver].threads, limit, solver=solver))


def measure_peak(folder: Path, solver: str, file: str, settings: Mapping[str, Any], limit: float | None) -> PeakRun:
    """Train once on one of the files, with other parameters of the solver."""
    details = {"solver": solver, "file": file, "settings": dict(settings)}
    return PeakRun(**ask(TASKS, "peak", folder, SOLVERS[solver].threads, limit, **details))
