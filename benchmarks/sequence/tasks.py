"""What the measured process does: from text to a model, then from text to tags."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from benchmarks.memory import PeakMemory
from benchmarks.sequence import problems
from benchmarks.sequence.libraries import SOLVERS
from benchmarks.sequence.libraries.solver import Fit
from benchmarks.stopwatch import Stopwatch
from larank.sequence.entities import entity_report


def fit(request: dict[str, Any]) -> dict[str, Any]:
    """Train, note the memory, tag the test file."""
    folder = Path(request["folder"])
    solver = SOLVERS[request["solver"]]
    importlib.import_module(solver.requires)
    memory = PeakMemory()
    fitted = solver.fit(folder / problems.TRAIN)
    peak = memory.peak()
    with Stopwatch() as tagging:
        predicted = fitted.tag_file(folder / problems.TEST)
    _, true = problems.read(folder / problems.TEST)
    report = entity_report(true, predicted)
    return {
        "wall": fitted.seconds.wall,
        "cpu": fitted.seconds.cpu,
        "peak": peak,
        "breakdown": dict(fitted.breakdown),
        "tag": tagging.wall,
        "tag_prepared": _seconds_without_extraction(fitted, folder / problems.TEST),
        "tokens": report.tokens,
        "accuracy": report.accuracy,
        "f1": report.overall.f1,
        "extra": dict(fitted.extra),
    }


def _seconds_without_extraction(fitted: Fit, path: Path) -> float | None:
    if fitted.prepare is None or fitted.tag_prepared is None:
        return None
    prepared = fitted.prepare(path)
    with Stopwatch() as watch:
        fitted.tag_prepared(prepared)
    return watch.wall


def peak(request: dict[str, Any]) -> dict[str, Any]:
    """Only train, on one of the files, with other parameters."""
    solver = SOLVERS[request["solver"]].having(**request["settings"])
    importlib.import_module(solver.requires)
    memory = PeakMemory()
    fitted = solver.fit(Path(request["folder"]) / request["file"])
    return {"wall": fitted.seconds.wall, "peak": memory.peak()}
