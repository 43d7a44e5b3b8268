"""Measurements: one is one fresh process (`studies.child`), and several take turns."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

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
    counts = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**dict.fromkeys(counts, str(threads)), "OMP_WAIT_POLICY": "passive"}


def ask(
    tasks: str, task: str, folder: Path, threads: int, limit: float | None, python: str = "", **details: Any
) -> dict[str, Any]:
    """Have a child do a task of the module `tasks` on the problem stored in `folder`.

    `python` is the interpreter, if it is another one: it runs this code with the larank that is installed there.
    """
    answer = folder / "answer.json"
    places = {"tasks": tasks, "task": task, "folder": str(folder), "answer": str(answer)}
    request = {**places, "threads": threads, **details}
    command = [python or sys.executable, "-m", "studies.child", json.dumps(request)]
    environment = {**os.environ, **thread_limits(threads)}
    if python:
        environment.pop("PYTHONPATH", None)  # where this larank may be found
    try:
        subprocess.run(command, env=environment, cwd=ROOT, timeout=limit, check=True, capture_output=True)
    except subprocess.TimeoutExpired as exceeded:
        raise TimeoutExceededError(f"stopped after {limit:g} s") from exceeded
    except subprocess.CalledProcessError as failed:
        raise ChildFailedError(failed.stderr.decode(errors="replace")[-2000:]) from failed
    found: dict[str, Any] = json.loads(answer.read_text())
    return found


def check_interpreter(python: str) -> None:
    """Raises ValueError if a larank cannot be imported there."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        subprocess.run([python, "-c", "import larank"], env=environment, cwd="/", check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as failed:
        raise ValueError(f"{python!r} is not an interpreter that can import larank: {failed}") from failed


Key = TypeVar("Key")
Found = TypeVar("Found")


def take_turns(
    measures: Mapping[Key, Callable[[], Found]],
    repeats: int,
    told: Callable[[Key, Found | str], None],
    is_slow: Callable[[Found], bool] = lambda run: False,
) -> tuple[dict[Key, list[Found]], dict[Key, str]]:
    """Measure each so often, in turns, so that a busy minute of the machine hits all of them alike.

    One that is slow, fails or exceeds its limit has no further turn. Returns what was measured, and why others failed.
    """
    found: dict[Key, list[Found]] = {}
    failed: dict[Key, str] = {}
    waiting = list(measures)
    for _ in range(repeats):
        for name in tuple(waiting):
            try:
                run = measures[name]()
            except (TimeoutExceededError, ChildFailedError) as failure:
                told(name, str(failure))
                failed[name] = str(failure).strip().splitlines()[-1]
                waiting.remove(name)
                continue
            told(name, run)
            found.setdefault(name, []).append(run)
            if is_slow(run):
                waiting.remove(name)
    return found, failed


def load_average() -> str:
    return "load average " + " ".join(f"{value:.2f}" for value in os.getloadavg()) + f" on {os.cpu_count()} cores"


def versions(libraries: Iterable[str]) -> dict[str, str]:
    found = {"python": platform.python_version(), "processor": _processor()}
    for library in libraries:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            found[library] = "absent"
    return found


def commit() -> str:
    """Return the commit of this checkout, marked if files were changed; "unknown" without git."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        found = ""
    return found or "unknown"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
