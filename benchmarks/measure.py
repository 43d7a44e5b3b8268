"""One measurement is one fresh process: see `benchmarks.child`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.problems import Problem

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
}

ROOT = Path(__file__).resolve().parent.parent


class TimeoutExceededError(Exception):
    """A child was stopped because it exceeded the limit."""


class ChildFailedError(Exception):
    """A child ended with an error; the message is its last lines."""


@dataclass(frozen=True)
class Measurement:
    """One training run: seconds, bytes above the level after the imports, and the solution."""

    wall: float
    cpu: float
    loaded: int
    peak: int
    extra: Mapping[str, float]
    W: NDArray[np.float64]


@contextmanager
def stored(problem: Problem, dtype: str) -> Iterator[Path]:
    """The training part as plain `.npy` files, so that no child pays for preparing it."""
    with tempfile.TemporaryDirectory(prefix=f"larank-{problem.name}-") as name:
        folder, X = Path(name), problem.X_train
        np.save(folder / "data.npy", X.data.astype(dtype))
        np.save(folder / "indices.npy", X.indices)
        np.save(folder / "indptr.npy", X.indptr)
        np.save(folder / "y.npy", problem.y_train)
        (folder / "about.json").write_text(json.dumps({"shape": X.shape, "C": problem.C}))
        yield folder


def _ask(request: dict[str, Any], limit: float | None) -> dict[str, Any]:
    answer = Path(request["folder"]) / "answer.json"
    command = [sys.executable, "-m", "benchmarks.child", json.dumps({**request, "answer": str(answer)})]
    environment = {**os.environ, **ONE_THREAD}
    try:
        subprocess.run(command, env=environment, cwd=ROOT, timeout=limit, check=True, capture_output=True)
    except subprocess.TimeoutExpired as exceeded:
        raise TimeoutExceededError(f"stopped after {limit:g} s") from exceeded
    except subprocess.CalledProcessError as failed:
        raise ChildFailedError(failed.stderr.decode(errors="replace")[-2000:]) from failed
    found: dict[str, Any] = json.loads(answer.read_text())
    return found


def measure_fit(folder: Path, solver: str, tolerance: float, limit: float | None) -> Measurement:
    """Train once in a process of its own."""
    weights = folder / "weights.npy"
    request = {
        "task": "fit",
        "folder": str(folder),
        "solver": solver,
        "tolerance": tolerance,
        "weights": str(weights),
    }
    return Measurement(**_ask(request, limit), W=np.load(weights))


def measure_epoch(folder: Path) -> dict[str, float]:
    """CPU seconds of one epoch of larank and of the bare product."""
    return _ask({"task": "epoch", "folder": str(folder)}, limit=None)


def load_average() -> str:
    """The machine's load, in one line."""
    return "load average " + " ".join(f"{value:.2f}" for value in os.getloadavg()) + f" on {os.cpu_count()} cores"
