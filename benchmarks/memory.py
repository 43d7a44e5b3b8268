"""Peak memory of this process, from the high-water mark the kernel keeps of its resident set.

`VmHWM` is what `ru_maxrss` reports, but it belongs to the program alone: `ru_maxrss` of a child also
remembers the size its parent had when it was started. Writing 5 to `clear_refs` sets the mark back to the
present size, so that what importing a library needed for a moment is not counted.
"""

from __future__ import annotations

from pathlib import Path


class PeakMemory:
    """The most bytes used since construction, above the size at construction."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")
        self._start = _status("VmRSS")

    def peak(self) -> int:
        return _status("VmHWM") - self._start


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith(key + ":"))
    return 1024 * int(kilobytes)
