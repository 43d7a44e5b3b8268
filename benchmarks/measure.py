"""One measurement is one fresh process: see `benchmarks.child`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


class TimeoutExceededError(Exception):
    """A child was stopped because it exceeded the limit."""


class ChildFailedError(Exception):
    """A child ended with an error; the message is its last lines."""


@dataclass(frozen=True)
class Measurement:
    """One training run: seconds, bytes above the level after the imports, and what the library tells."""

    wall: float
    cpu: float
    loaded: int
    peak: int
    extra: Mapping[str, Any]

    def own_peak(self, copies_input: bool) -> int:
        """The peak without the data a library was given, if it trains on a copy of its own."""
        return self.peak - self.loaded if copies_input else self.peak


def thread_limits(threads: int) -> dict[str, str]:
    """The environment of a process whose libraries use this many threads."""
    counts = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**dict.fromkeys(counts, str(threads)), "OMP_WAIT_POLICY": "passive"}


def ask(tasks: str, task: str, folder: Path, threads: int, limit: float | None, **details: Any) -> dict[str, Any]:
    """Have a child do a task of the module `tasks` on the problem stored in `folder`."""
    answer = folder / "answer.json"
    places = {"tasks": tasks, "task": task, "folder": str(folder), "answer": str(answer)}
    request = {**places, "threads": threads, **details}
    command = [sys.executable, "-m", "benchmarks.child", json.dumps(request)]
    environment = {**os.environ, **thread_limits(threads)}
    try:
        subprocess.run(command, env=environment, cwd=ROOT, timeout=limit, check=True, capture_output=True)
    except subprocess.TimeoutExpired as exceeded:
        raise TimeoutExceededError(f"stopped after {limit:g} s") from exceeded
    except subprocess.CalledProcessError as failed:
        raise ChildFailedError(failed.stderr.decode(errors="replace")[-2000:]) from failed
    found: dict[str, Any] = json.loads(answer.read_text())
    return found


def load_average() -> str:
    """The machine's load, in one line."""
    return "load average " + " ".join(f"{value:.2f}" for value in os.getloadavg()) + f" on {os.cpu_count()} cores"
