"""`python -m studies epochs`: the passes that `epochs="auto"` makes on small and noisy data, against the optimum."""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from larank import LaRankClassifier, LaSVMClassifier, MulticlassSVC
from studies.datasets import BINARY, SMALL, UNSPLIT, Dataset, is_available, load
from studies.study import Outcome, Say, Study
from studies.tables import Table

COSTS, GAMMAS, SEEDS = (0.05, 1.0, 10.0, 100.0), (0.3, 1.0, 3.0), 10  # gammas are over the number of features
QUICK_COSTS, QUICK_GAMMAS, QUICK_SEEDS = (0.05, 10.0), (1.0,), 2
MOST_TRAIN, MOST_TEST = 4000, 2000
ALGORITHMS: Mapping[str, tuple[type, Callable[..., Any]]] = {
    "larank": (LaRankClassifier, lambda **given: MulticlassSVC(**given, tol=1e-4)),
    "lasvm": (LaSVMClassifier, lambda **given: LaSVMClassifier(**given, stop="gap", tol=1e-4, max_iter=1000)),
}


def _noisy(features: int, classes: int, noise: float, train: int) -> Dataset:
    """Classes by the largest of some linear functions, to which noise is added."""
    random = np.random.default_rng([features, classes, train])
    X = random.normal(size=(train + MOST_TEST, features))
    y = (X @ random.normal(size=(features, classes)) + noise * random.normal(size=(len(X), classes))).argmax(axis=1)
    return Dataset(X[:train], y[:train], X[train:], y[train:])


_GENERATED: Mapping[str, Callable[[], Dataset]] = {
    "noisy-2d": lambda: _noisy(2, 2, 1.5, 1000),
    "noisy-10d": lambda: _noisy(10, 2, 3.0, 500),
    "noisy-5-classes": lambda: _noisy(10, 5, 2.0, 500),
    "noisy-11-classes": lambda: _noisy(10, 11, 1.0, 528),
}
_STORED = {**SMALL, **UNSPLIT, "banana": BINARY["banana"]}


def _read(name: str) -> Dataset:
    data = _GENERATED[name]() if name in _GENERATED else load(name, _STORED)
    scaler = StandardScaler().fit(data.X_train)
    scaled = Dataset(scaler.transform(data.X_train), data.y_train, scaler.transform(data.X_test), data.y_test)
    return scaled.drawn(MOST_TRAIN, MOST_TEST)


@dataclass(frozen=True)
class Row:
    """One data set, means over costs, gammas and seeds: test errors in percent, and passes."""

    dataset: str
    algorithm: str
    examples: int
    optimum: float
    one_pass: float
    auto: float
    auto_epochs: float
    worst: float  # of a cost and gamma, over the optimum's


@dataclass(frozen=True)
class Found(Outcome):
    """All rows."""

    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        """The rows."""
        return {"rows": [asdict(row) for row in self.rows]}

    def to_tables(self) -> Sequence[Table]:
        """One, with the difference that counts at the end."""
        table = Table(
            "Test error in percent, means over C, gamma and seeds",
            [
                "data",
                "algorithm",
                "examples",
                "optimum",
                "one pass",
                "auto",
                "passes",
                "over optimum",
                "worst C, gamma",
            ],
        )
        for row in self.rows:
            errors = [f"{value:.2f}" for value in (row.optimum, row.one_pass, row.auto)]
            ends = [f"{row.auto_epochs:.1f}", f"{row.auto - row.optimum:+.2f}", f"{row.worst:+.2f}"]
            table.add(row.dataset, row.algorithm, str(row.examples), *errors, *ends)
        return [table]

    def to_lines(self) -> Sequence[str]:
        """The means over all sets."""
        lines = []
        for algorithm in ALGORITHMS:
            over = [row.auto - row.optimum for row in self.rows if row.algorithm == algorithm]
            if over:
                lines.append(f"{algorithm}: {np.mean(over):+.2f} points over the optimum, {max(over):+.2f} on one set")
        return lines


@dataclass(frozen=True)
class _Scope:
    datasets: tuple[str, ...]
    costs: tuple[float, ...]
    gammas: tuple[float, ...]
    seeds: int


def _errors(data: Dataset, make: Callable[[int], Any], seeds: int) -> tuple[float, float]:
    """Mean test error in percent, and mean passes."""
    errors, passes = [], []
    for seed in range(seeds):
        model = make(seed).fit(data.X_train, data.y_train)
        errors.append(100 * float(np.mean(model.predict(data.X_test) != data.y_test)))
        passes.append(model.result_.iterations)
    return float(np.mean(errors)), float(np.mean(passes))


def _row(name: str, algorithm: str, data: Dataset, scope: _Scope) -> Row:
    online, exact = ALGORITHMS[algorithm]
    found: list[tuple[float, ...]] = []
    for C, gamma in itertools.product(scope.costs, scope.gammas):
        settings = {"C": C, "gamma": gamma / data.X_train.shape[1]}
        fewer = max(1, scope.seeds // 3)
        optimum, _ = _errors(data, lambda seed, given=settings: exact(**given, random_state=seed), 1)
        one, _ = _errors(data, lambda seed, given=settings: online(**given, epochs=1, random_state=seed), fewer)
        auto, passes = _errors(data, lambda seed, given=settings: online(**given, random_state=seed), scope.seeds)
        found.append((optimum, one, auto, passes, auto - optimum))
    means: NDArray[np.float64] = np.mean(found, axis=0)
    return Row(name, algorithm, len(data.y_train), *map(float, means[:4]), worst=max(row[4] for row in found))


def run(scope: _Scope, say: Say) -> Found:
    """All data sets with both algorithms."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the optimum may be far off where costs are high
        for name in scope.datasets:
            data = _read(name)
            for algorithm in ALGORITHMS:
                rows.append(_row(name, algorithm, data, scope))
                say(f"{name}, {algorithm}: {rows[-1].auto - rows[-1].optimum:+.2f} points over the optimum")
    return Found(tuple(rows))


class _Epochs(Study):
    def scope(self, arguments: argparse.Namespace) -> _Scope:
        """All sets that are here, or the smallest with `--quick`."""
        chosen = self.chosen_datasets(arguments)
        if arguments.quick:
            return _Scope(chosen or ("noisy-10d",), QUICK_COSTS, QUICK_GAMMAS, QUICK_SEEDS)
        here = [name for name in self.datasets if name in _GENERATED or is_available(_STORED[name].source)]
        return _Scope(chosen or tuple(here), COSTS, GAMMAS, SEEDS)


STUDY = _Epochs(
    "epochs",
    "the passes of epochs='auto' on small and noisy data, against the exact machines",
    (*_GENERATED, *_STORED),
    run,
)
