"""One training inside the measured process: import the library, note the memory, load the data, train."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from benchmarks.memory import PeakMemory
from benchmarks.rivals import Rival
from benchmarks.stopwatch import Stopwatch


class Trained(Protocol):
    """What an adapter hands back, as far as this file cares."""

    @property
    def seconds(self) -> Stopwatch: ...
    @property
    def extra(self) -> Mapping[str, Any]: ...


Data = TypeVar("Data")
Fit = TypeVar("Fit", bound=Trained)


def train(rival: Rival, read: Callable[[], Data], fit: Callable[[Data], Fit]) -> tuple[Data, Fit, dict[str, Any]]:
    """The data, the model, and what `benchmarks.measure.Measurement` holds of the training."""
    importlib.import_module(rival.requires)
    memory = PeakMemory()
    data = read()
    loaded = memory.peak()
    fitted = fit(data)
    figures = {
        "wall": fitted.seconds.wall,
        "cpu": fitted.seconds.cpu,
        "loaded": loaded,
        "peak": memory.peak(),
        "extra": dict(fitted.extra),
    }
    return data, fitted, figures
