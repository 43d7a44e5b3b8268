"""One training inside the measured process: import the library, note the memory, load the data, train."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Stopwatch:
    """`with Stopwatch() as watch: ...`, then `watch.wall` and `watch.cpu` seconds (all threads together)."""

    wall = 0.0
    cpu = 0.0

    def __enter__(self) -> Stopwatch:
        self._started = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *exception: object) -> None:
        self.wall = time.perf_counter() - self._started[0]
        self.cpu = time.process_time() - self._started[1]


class PeakMemory:
    """The most bytes used since construction, above the size at construction.

    `VmHWM` is what `ru_maxrss` reports, but it belongs to the program alone: `ru_maxrss` of a child also remembers the
    size its parent had when it was started. Writing 5 to `clear_refs` sets the mark back to the present size, so that
    what importing a library needed for a moment is not counted.
    """

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")
        self._start = _status("VmRSS")

    def peak(self) -> int:
        return _status("VmHWM") - self._start


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith(key + ":"))
    return 1024 * int(kilobytes)


def imported(requires: str) -> Any:
    """A module, or what `module:name` has by this name."""
    module, _, name = requires.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


def train(requires: str, read: Callable[[], Any], fit: Callable[[Any], Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Return the data, the `Fitted` model, and what `studies.measure.Measurement` holds of the training."""
    imported(requires)
    memory = PeakMemory()
    data = read()
    loaded = memory.peak()
    fitted = fit(data)
    figures = {"wall": fitted.seconds.wall, "cpu": fitted.seconds.cpu, "loaded": loaded, "peak": memory.peak()}
    return data, fitted, {**figures, "extra": dict(fitted.extra)}
