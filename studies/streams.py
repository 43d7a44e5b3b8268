"""`python -m studies streams`: kernel streams without an end, or that drift, beside scikit-learn's and river's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from larank import LaRank, LaRankClassifier
from studies.study import Findings, Say, Scope, Study
from studies.tables import MEGABYTE, Columns, column, figure, of_rows

FEATURES, CLASSES, CENTERS = 12, 5, 50
C, GAMMA = 1.0, 1 / FEATURES
ALPHA = 1e-4  # of SGDClassifier, its default; 1e-5 and 1e-6 were no better on another stream
TESTED = 20_000
MOST_UNBOUNDED = 50_000  # rows of the learner without a bound: it takes longer with every row
_Labels = NDArray[np.int64]


class Drawn:
    """Rows on the fly, whose labels are the best of smooth functions with Gumbel noise."""

    def __init__(self, seed: int, stream: int) -> None:
        random = np.random.default_rng(seed)
        self._centers = random.normal(size=(CENTERS, FEATURES))
        self._heights = 5 * random.normal(size=(CENTERS, CLASSES))
        self._random = np.random.default_rng([seed, stream])

    def rows(self, count: int) -> tuple[NDArray[np.float32], _Labels, _Labels]:
        """Examples, labels, and the best that can be said of the labels."""
        X = self._random.normal(size=(count, FEATURES)).astype(np.float32)
        squares = np.square(X).sum(axis=1)[:, None] + np.square(self._centers).sum(axis=1) - 2 * X @ self._centers.T
        scores = np.exp(-squares / FEATURES) @ self._heights
        return X, (scores + self._random.gumbel(size=scores.shape)).argmax(axis=1), scores.argmax(axis=1)


# ---- Learners ----


class Mapped:
    """SGDClassifier on a kernel map, which is fitted to the first rows."""

    def __init__(self, kernel_map: Any) -> None:
        self._map = kernel_map
        self._model = SGDClassifier(alpha=ALPHA, average=True, random_state=0)
        self._is_new = True

    def partial_fit(self, X: Any, y: _Labels) -> None:
        if self._is_new:
            self._map.fit(X)
        self._is_new = False
        self._model.partial_fit(self._map.transform(X), y, classes=np.arange(CLASSES))

    def predict(self, X: Any) -> Any:
        return self._model.predict(self._map.transform(X))


class Window:
    """A batch learner, fitted anew to the last rows."""

    def __init__(self, model: Any, rows: int) -> None:
        self._model, self._rows = model, rows
        self._X, self._y = np.empty((0, FEATURES), np.float32), np.empty(0, np.int64)

    def partial_fit(self, X: Any, y: _Labels) -> None:
        self._X = np.concatenate([self._X, X])[-self._rows :]
        self._y = np.concatenate([self._y, y])[-self._rows :]
        self._model.fit(self._X, self._y)

    def predict(self, X: Any) -> Any:
        return self._model.predict(X)


class River:
    """A model of river, which learns and predicts one row at a time."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def partial_fit(self, X: Any, y: _Labels) -> None:
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            self._model.learn_one(dict(enumerate(row)), label)

    def predict(self, X: Any) -> Any:
        return np.array([self._model.predict_one(dict(enumerate(row))) for row in X.tolist()])


def _river() -> Mapping[str, Callable[[], Any]]:
    """Those that follow drift, with their defaults, if river is installed."""
    try:
        from river import forest, linear_model, preprocessing, tree
    except ImportError:
        return {}
    return {
        "river, adaptive random forest": lambda: River(forest.ARFClassifier(seed=0)),
        "river, Hoeffding adaptive tree": lambda: River(tree.HoeffdingAdaptiveTreeClassifier(seed=0)),
        "river, scaled softmax": lambda: River(preprocessing.StandardScaler() | linear_model.SoftmaxRegression()),
    }


def larank(max_support: int | None, forget: Literal["least", "oldest"] = "least") -> LaRankClassifier:
    solver = LaRank(forget=forget)
    return LaRankClassifier(C=C, gamma=GAMMA, max_support=max_support, solver=solver, n_jobs=1, random_state=0)


def fourier(components: int) -> Mapped:
    return Mapped(RBFSampler(gamma=GAMMA, n_components=components, random_state=0))


# ---- Without an end ----


@dataclass(frozen=True)
class Length:
    """A learner after so many rows: test error, CPU microseconds per row since the last look, resident memory."""

    learner: str = column("learner")
    rows: int = column("rows", ",d")
    error: float = column("test error %", ".2f", 100)
    micros: float = column("CPU us per row", ".1f")
    megabytes: float = column("resident MB", ".0f")
    patterns: int = column("patterns", "d")


def _endless(name: str, model: Any, looks: Sequence[int], chunk: int, say: Say) -> list[Length]:
    stream, (X_test, y_test, _) = Drawn(SEED, 1), Drawn(SEED, 2).rows(TESTED)
    found: list[Length] = []
    for before, look in pairwise((0, *looks)):
        seconds = 0.0
        for _ in range(before, look, chunk):
            X, y, _ = stream.rows(chunk)
            began = time.process_time()
            model.partial_fit(X, y)
            seconds += time.process_time() - began
        error = float(np.mean(model.predict(X_test) != y_test))
        patterns = len(getattr(model, "support_", ()))
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / MEGABYTE
        found.append(Length(name, look, error, 1e6 * seconds / (look - before), resident, patterns))
        say(f"{name}: {look:,} rows, error {100 * error:.2f} %, {found[-1].micros:.1f} us per row")
    return found


# ---- Drift ----


@dataclass(frozen=True)
class Drift:
    """Prequential errors: before the labels change places, in parts after it, and in the end; CPU seconds."""

    learner: str
    before: float
    after: tuple[float, ...]
    end: float
    seconds: float


def _drift(name: str, model: Any, rows: int, chunk: int, say: Say) -> Drift:
    """Each chunk is predicted, then learned. In the middle every label becomes the next one."""
    stream, errors, began = Drawn(SEED, 3), [], time.process_time()
    for first in range(0, rows, chunk):
        X, y, _ = stream.rows(chunk)
        y = (y + (first >= rows // 2)) % CLASSES
        errors.append(float(np.mean(model.predict(X) != y)) if first else 1.0)
        model.partial_fit(X, y)
    middle = len(errors) // 2
    last = middle // 4
    means = float(np.mean(errors[middle - last : middle])), float(np.mean(errors[-last:]))
    found = Drift(name, means[0], tuple(errors[middle : middle + 8]), means[1], time.process_time() - began)
    say(f"{name}: {100 * means[0]:.1f} % before the change, {100 * means[1]:.1f} % in the end")
    return found


# ---- The study ----


# After how many rows the first part looks, its chunks, rows and chunks of the second, and the size of models.
WHOLE = (10_000, 50_000, 100_000, 500_000, 1_000_000), 10_000, 40_000, 500, 1000
QUICK = (1000, 2000), 1000, 4800, 300, 100
SEED = 11  # the constants were chosen on other streams


def _learners(size: int) -> Mapping[str, Callable[[], Any]]:
    return {
        "LaRankClassifier": lambda: larank(None),
        f"max_support={size // 2}": lambda: larank(size // 2),
        f"max_support={size}": lambda: larank(size),
        f"max_support={2 * size}": lambda: larank(2 * size),
        f"SGD, {size} Fourier features": lambda: fourier(size),
        f"SGD, Nystroem of {size}": lambda: Mapped(Nystroem(gamma=GAMMA, n_components=size, random_state=0)),
    }


def _followers(size: int) -> Mapping[str, Callable[[], Any]]:
    return {
        f"max_support={size}, oldest": lambda: larank(size, "oldest"),
        f"max_support={size}, least": lambda: larank(size),
        f"SVC, last {2 * size} rows": lambda: Window(SVC(C=C, gamma=GAMMA), 2 * size),
        f"15 neighbours, last {2 * size} rows": lambda: Window(KNeighborsClassifier(15), 2 * size),
        f"SGD, {size} Fourier features": lambda: fourier(size),
        **_river(),
    }


def run(scope: Scope, say: Say) -> Findings:
    looks, chunk, drift_rows, drift_chunk, size = QUICK if scope.quick else WHOLE
    _, y, best = Drawn(SEED, 2).rows(TESTED)
    lengths: list[Length] = []
    for name, make in _learners(size).items():
        most = MOST_UNBOUNDED if name == "LaRankClassifier" else looks[-1]
        lengths += _endless(name, make(), [look for look in looks if look <= most], chunk, say)
    if not _river():
        say("river is not installed, left out")
    drifts = [_drift(name, make(), drift_rows, drift_chunk, say) for name, make in _followers(size).items()]
    best_error = float(np.mean(best != y))
    return Findings(
        rows={"lengths": lengths, "drifts": drifts},
        others={"best": best_error},
        tables=[
            of_rows("A noisy stream without an end", lengths),
            of_rows(
                "Prequential error in percent, before and after labels have changed places",
                drifts,
                _drift_columns(len(drifts[0].after), drift_chunk),
            ),
        ],
        lines=[f"the best that can be said of the labels has {100 * best_error:.2f} % of errors"],
    )


def _drift_columns(parts: int, chunk: int) -> Columns:
    after: Columns = {
        f"+{number * chunk:,}": lambda row, number=number: f"{100 * row.after[number]:.1f}" for number in range(parts)
    }
    first: Columns = {"learner": figure("learner"), "before": figure("before", ".1f", 100)}
    return {**first, **after, "end": figure("end", ".1f", 100), "CPU s": figure("seconds", ".1f")}


STUDY = Study("streams", "kernel streams without an end, and streams that drift", run, libraries=("river",))
