"""`python -m studies epochs`: the passes that `epochs="auto"` makes on small and noisy data, against the optimum."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank import LaRankClassifier, LaSVMClassifier, MulticlassSVC
from studies.datasets import BINARY, GENERATED, SMALL, UNSPLIT, Dataset, load
from studies.study import Findings, Say, Scope, Study
from studies.tables import column, derived, of_rows

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
    return data.standardised().drawn(MOST_TRAIN, MOST_TEST)


@dataclass(frozen=True)
class Row:
    """One data set, means over costs, gammas and seeds: test errors in percent, and passes."""

    dataset: str = column("data")
    algorithm: str = column("algorithm")
    examples: int = column("examples")
    optimum: float = column("optimum", ".2f")
    one_pass: float = column("one pass", ".2f")
    auto: float = column("auto", ".2f")
    auto_epochs: float = column("passes", ".1f")

    @derived("over optimum", "+.2f")
    def over(self) -> float:
        return self.auto - self.optimum

    worst: float = column("worst C, gamma", "+.2f")  # of a cost and gamma, over the optimum's


# The costs, the gammas over the number of features, and the number of seeds.
WHOLE = (0.05, 1.0, 10.0, 100.0), (0.3, 1.0, 3.0), 10
QUICK = (0.05, 10.0), (1.0,), 2


def _errors(data: Dataset, make: Callable[[int], Any], seeds: int) -> tuple[float, float]:
    """Mean test error in percent, and mean passes."""
    errors, passes = [], []
    for seed in range(seeds):
        model = make(seed).fit(data.X_train, data.y_train)
        errors.append(100 * float(np.mean(model.predict(data.X_test) != data.y_test)))
        passes.append(model.result_.iterations)
    return float(np.mean(errors)), float(np.mean(passes))


def _row(name: str, algorithm: str, data: Dataset, is_quick: bool) -> Row:
    (online, exact), (costs, gammas, seeds) = ALGORITHMS[algorithm], QUICK if is_quick else WHOLE
    found: list[tuple[float, ...]] = []
    for C, gamma in itertools.product(costs, gammas):
        settings = {"C": C, "gamma": gamma / data.X_train.shape[1]}
        optimum, _ = _errors(data, lambda seed, given=settings: exact(**given, random_state=seed), 1)
        one, _ = _errors(
            data, lambda seed, given=settings: online(**given, epochs=1, random_state=seed), max(1, seeds // 3)
        )
        auto, passes = _errors(data, lambda seed, given=settings: online(**given, random_state=seed), seeds)
        found.append((optimum, one, auto, passes, auto - optimum))
    means: NDArray[np.float64] = np.mean(found, axis=0)
    return Row(name, algorithm, len(data.y_train), *map(float, means[:4]), worst=max(row[4] for row in found))


def run(scope: Scope, say: Say) -> Findings:
    """All data sets with both algorithms."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the optimum may be far off where costs are high
        for name in scope.present(STUDY.datasets, ("noisy-10d",), say, _source):
            data = _read(name)
            for algorithm in ALGORITHMS:
                rows.append(_row(name, algorithm, data, scope.quick))
                say(f"{name}, {algorithm}: {rows[-1].over:+.2f} points over the optimum")
    overs = {algorithm: [row.over for row in rows if row.algorithm == algorithm] for algorithm in ALGORITHMS}
    return Findings(
        rows={"rows": rows},
        tables=[of_rows("Test error in percent, means over C, gamma and seeds", rows)],
        lines=[
            f"{algorithm}: {np.mean(over):+.2f} points over the optimum, {max(over):+.2f} on one set"
            for algorithm, over in overs.items()
        ],
    )


def _source(name: str) -> str:
    return GENERATED if name in _GENERATED else _STORED[name].source


STUDY = Study(
    "epochs",
    "the passes of epochs='auto' on small and noisy data, against the exact machines",
    run,
    (*_GENERATED, *_STORED),
)
