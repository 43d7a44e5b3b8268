"""What the measured processes of streams do: read a file, train on it, learn batch by batch, learn without an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies import storage
from studies.trial import PeakMemory, Stopwatch, imported

OURS = "larank:LinearSGDClassifier"
DUAL = "larank:LaRankClassifier"
BUFFER = 64_000_000
"""Bytes of a block, as the estimator takes them from a file."""
BATCH = 1000
FEATURES, CLASSES = 20, 5  # of the noisy stream
TESTED = 100_000
NARROW, BLOCK = 10, 100_000  # features and rows of the blocks of the stream without an end

Batches = list[tuple[NDArray[Any], NDArray[np.int64]]]


# ---- A file ----


def read_file(request: dict[str, Any]) -> dict[str, Any]:
    """Wall and CPU seconds of reading, block by block."""
    from larank.data.stream import ExampleFile

    rows = 0
    with Stopwatch() as watch:
        for block in ExampleFile(request["file"]).blocks(BUFFER):
            rows += len(block.y)
    return {"wall": watch.wall, "cpu": watch.cpu, "rows": rows}


def fit_file(request: dict[str, Any]) -> dict[str, Any]:
    """Wall and CPU seconds of one pass of training."""
    model = imported(OURS)(algorithm=request["algorithm"], random_state=0)
    with Stopwatch() as watch:
        model.fit(request["file"])
    return {"wall": watch.wall, "cpu": watch.cpu, "rows": int(model.result_.operations["visits"])}


# ---- Batches ----


def noisy(rows: int, seed: int) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any], NDArray[np.int64]]:
    """A stream and a test set whose labels are the arg max of linear functions with Gumbel noise."""
    random = np.random.default_rng(seed)
    W = random.normal(size=(FEATURES, CLASSES))
    X = random.normal(size=(rows + TESTED, FEATURES))
    y = np.argmax(X @ W + random.gumbel(size=(len(X), CLASSES)), axis=1)
    return X[:rows], y[:rows], X[rows:], y[rows:]


def learners() -> dict[str, Callable[[], Any]]:
    """Those that learn batch by batch, with their defaults."""
    from sklearn.linear_model import SGDClassifier

    estimator, dual = imported(OURS), imported(DUAL)
    return {
        "larank": lambda: estimator(random_state=0),
        "larankclassifier": lambda: dual("linear", random_state=0),
        "sgdclassifier": lambda: SGDClassifier(random_state=0),
        "sgdclassifier-averaged": lambda: SGDClassifier(average=True, random_state=0),
    }


def _in_batches(X: Any, y: NDArray[np.int64]) -> Batches:
    return [(X[first : first + BATCH], y[first : first + BATCH]) for first in range(0, len(y), BATCH)]


def noise(request: dict[str, Any]) -> dict[str, Any]:
    """Test accuracy after one pass, of each learner, and of the optimum."""
    from sklearn.linear_model import LogisticRegression

    X, y, X_test, y_test = noisy(request["rows"], request["seed"])
    classes = np.unique(y)
    found = {"optimum": float(LogisticRegression(max_iter=1000).fit(X, y).score(X_test, y_test))}
    for name, made in learners().items():
        model = made()
        for batch in _in_batches(X, y):
            model.partial_fit(*batch, classes=classes)
        found[name] = float(model.score(X_test, y_test))
    return found


def prequential(request: dict[str, Any]) -> dict[str, Any]:
    """Predict each batch, then learn from it: accuracy, seconds of learning, and of both."""
    folder = Path(request["folder"])
    X, y = storage.matrix(folder, "X_train"), storage.array(folder, "y_train")
    classes, model, right = np.unique(y), learners()[request["learner"]](), 0
    learning, both = 0.0, 0.0
    for number, batch in enumerate(_in_batches(X, y)):
        with Stopwatch() as predicting:
            if number:
                right += int(np.count_nonzero(model.predict(batch[0]) == batch[1]))
        with Stopwatch() as watch:
            model.partial_fit(*batch, classes=classes)
        learning += watch.wall
        both += watch.wall + predicting.wall
    rows = len(y)
    return {"accuracy": right / max(1, rows - BATCH), "learning": rows / learning, "both": rows / both}


# ---- Without an end ----


def blocks(rows: int) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """Drawn on the fly, labels with noise."""
    random = np.random.default_rng(0)
    w = random.normal(size=NARROW).astype(np.float32)
    for first in range(0, rows, BLOCK):
        X = random.standard_normal((min(BLOCK, rows - first), NARROW), np.float32)
        yield X, (X @ w + random.standard_normal(len(X), np.float32) > 0).astype(np.int64)


def endless(request: dict[str, Any]) -> dict[str, Any]:
    """Peak bytes above the size after the imports, and seconds, of a pass over so many rows."""
    model = imported(OURS)(random_state=0)
    memory = PeakMemory()
    with Stopwatch() as watch:
        model.fit(blocks(request["rows"]))
    return {"peak": memory.peak(), "wall": watch.wall, "cpu": watch.cpu, "visits": model.result_.operations["visits"]}
