"""Wall-clock and processor seconds of a block of code."""

from __future__ import annotations

import time


class Stopwatch:
    """`with Stopwatch() as watch: ...`, then `watch.wall` and `watch.cpu` (all threads together)."""

    wall = 0.0
    cpu = 0.0

    def __enter__(self) -> Stopwatch:
        self._started = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *exception: object) -> None:
        self.wall = time.perf_counter() - self._started[0]
        self.cpu = time.process_time() - self._started[1]
