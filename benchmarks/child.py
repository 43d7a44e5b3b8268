"""The measured process: imports one library, notes its memory, loads the data, trains, writes what it saw.

Started by `benchmarks.measure` as `python -m benchmarks.child REQUEST`, REQUEST being a JSON object.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.libraries import SOLVERS
from benchmarks.libraries.solver import TrainingSet
from benchmarks.memory import PeakMemory
from benchmarks.stopwatch import Stopwatch

EPOCHS = 10
TRIALS = 3


def read(folder: Path) -> TrainingSet:
    """The arrays of a training set straight into memory, with no temporary beside them."""
    arrays = tuple(np.load(folder / f"{key}.npy") for key in ("data", "indices", "indptr"))
    about = json.loads((folder / "about.json").read_text())
    X = sparse.csr_matrix(arrays, shape=tuple(about["shape"]), copy=False)
    return TrainingSet(X, np.load(folder / "y.npy"), about["C"])


def fit(request: dict[str, Any]) -> dict[str, Any]:
    """Train once; the weights go to a file."""
    solver = SOLVERS[request["solver"]]
    importlib.import_module(solver.requires)
    memory = PeakMemory()
    data = read(Path(request["folder"]))
    loaded = memory.peak()
    fitted = solver.fit(data, request["tolerance"])
    peak = memory.peak()
    np.save(request["weights"], fitted.weights())
    return {
        "wall": fitted.seconds.wall,
        "cpu": fitted.seconds.cpu,
        "loaded": loaded,
        "peak": peak,
        "extra": dict(fitted.extra),
    }


def epoch(request: dict[str, Any]) -> dict[str, Any]:
    """CPU seconds of one full loop of larank and of X @ W by scipy, best of a few interleaved trials."""
    from larank.multiclass.sdm import LinearMulticlassSVC

    data = read(Path(request["folder"]))
    W = np.ones((data.X.shape[1], int(data.y.max()) + 1), dtype=data.X.dtype)
    settings: dict[str, Any] = {
        "stop": "violation",
        "tol": 1e-12,
        "shrinking": False,
        "cooling": False,
        "fit_intercept": False,
    }

    def loops(count: int) -> float:
        model = LinearMulticlassSVC("crammer-singer", C=data.C, max_iter=count, random_state=0, **settings)
        with Stopwatch() as watch:
            model.fit(data.X, data.y)
        return watch.cpu

    def product() -> float:
        with Stopwatch() as watch:
            for _ in range(EPOCHS):
                data.X @ W
        return watch.cpu / EPOCHS

    trials = [(loops(1), loops(1 + EPOCHS), product()) for _ in range(TRIALS)]
    one, many, bare = (min(times) for times in zip(*trials, strict=True))
    return {"epoch": (many - one) / EPOCHS, "product": bare}


TASKS = {"fit": fit, "epoch": epoch}


def main() -> None:
    request = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")  # what was reached is measured by the parent
    answer = TASKS[request["task"]](request)
    Path(request["answer"]).write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
