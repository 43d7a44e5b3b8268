"""`python -m studies epochs`: the passes that the default makes on small and noisy data, compared with the optimum.

`python -m studies one-pass`: how far one pass of `partial_fit` is from the optimum, on noisy and other data.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline

from larank import LaRankClassifier, LaSVMClassifier, LinearMulticlassSVC, MulticlassSVC, SequenceTagger
from larank.sequence.entities import entity_report
from studies.datasets import BINARY, GENERATED, KERNEL, LINEAR, SMALL, UNSPLIT, Dataset, load, load_sequences
from studies.rivals.streamtasks import noisy
from studies.streams import Drawn
from studies.study import Findings, Say, Scope, Study
from studies.tables import column, derived, of_rows

# ---- Epochs ----

MOST_TRAIN, MOST_TEST = 4000, 2000
ALGORITHMS: Mapping[str, tuple[type, Callable[..., Any]]] = {
    "larank": (LaRankClassifier, lambda **given: MulticlassSVC(**given, tol=1e-4)),
    "lasvm": (LaSVMClassifier, lambda **given: LaSVMClassifier(**given, tol=1e-4)),
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
EPOCHS_ON = (*_GENERATED, *_STORED)


def _read(name: str) -> Dataset:
    data = _GENERATED[name]() if name in _GENERATED else load(name, _STORED)
    return data.standardised().drawn(MOST_TRAIN, MOST_TEST)


@dataclass(frozen=True)
class EpochsRow:
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
WHOLE_EPOCHS = (0.05, 1.0, 10.0, 100.0), (0.3, 1.0, 3.0), 10
QUICK_EPOCHS = (0.05, 10.0), (1.0,), 2


def _errors(data: Dataset, make: Callable[[int], Any], seeds: int) -> tuple[float, float]:
    """Mean test error in percent, and mean passes."""
    errors, passes = [], []
    for seed in range(seeds):
        model = make(seed).fit(data.X_train, data.y_train)
        errors.append(100 * float(np.mean(model.predict(data.X_test) != data.y_test)))
        passes.append(model.result_.iterations)
    return float(np.mean(errors)), float(np.mean(passes))


def _epochs_row(name: str, algorithm: str, data: Dataset, is_quick: bool) -> EpochsRow:
    (online, exact), (costs, gammas, seeds) = ALGORITHMS[algorithm], QUICK_EPOCHS if is_quick else WHOLE_EPOCHS
    found: list[tuple[float, ...]] = []
    for C, gamma in itertools.product(costs, gammas):
        settings = {"C": C, "gamma": gamma / data.X_train.shape[1]}
        optimum, _ = _errors(data, lambda seed, given=settings: exact(**given, random_state=seed), 1)
        one, _ = _errors(
            data, lambda seed, given=settings: online(**given, max_iter=1, random_state=seed), max(1, seeds // 3)
        )
        auto, passes = _errors(data, lambda seed, given=settings: online(**given, random_state=seed), seeds)
        found.append((optimum, one, auto, passes, auto - optimum))
    means: NDArray[np.float64] = np.mean(found, axis=0)
    return EpochsRow(name, algorithm, len(data.y_train), *map(float, means[:4]), worst=max(row[4] for row in found))


def run_epochs(scope: Scope, say: Say) -> Findings:
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the optimum may be far off where costs are high
        for name in scope.present(EPOCHS_ON, ("noisy-10d",), say, _source_of_epochs):
            data = _read(name)
            for algorithm in ALGORITHMS:
                rows.append(_epochs_row(name, algorithm, data, scope.quick))
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


def _source_of_epochs(name: str) -> str:
    return GENERATED if name in _GENERATED else _STORED[name].source


# ---- One pass ----

BATCH, SEEDS, BAR = 1000, 3, 0.5
NOISY_ROWS, KERNEL_ROWS, MOST_ROWS, TESTED = 50_000, 10_000, 60_000, 20_000
QUICK_ROWS, QUICK_SEQUENCES = 1000, 100
PATTERNS, FOURIER = 1000, 1000
DRAWN = 31  # the first kernel stream; constants were chosen on others
EPOCHS = 10
"""Of a tagger that is taken for the optimum; further ones change nothing."""
LINEAR_SETS = {"covtype": LINEAR, "news20": LINEAR, "adult": BINARY}
KERNEL_SETS = {"sat": SMALL, "seg": SMALL, "wav": SMALL, "letter": KERNEL}
SEQUENCE_SETS = ("conll2000", "ud_ewt", "ocr_words")
NOISY, NOISY_KERNEL = "noisy", "noisy-kernel"
DATASETS = (NOISY, *LINEAR_SETS, NOISY_KERNEL, *KERNEL_SETS, *SEQUENCE_SETS)
TAGGERS: dict[str, dict[str, Any]] = {
    "larank": {},
    "last weights": {"average": False},
    "averaged perceptron": {"solver": "perceptron", "average": True},
}
Learners = dict[str, Callable[[int], Any]]


@dataclass(frozen=True)
class Row:
    """A learner on a set: its test accuracy, or F1 of chunks, in percent, and that of the optimum; means over seeds."""

    problem: str = column("data")
    learner: str = column("learner")
    quality: float = column("accuracy or F1 %", ".2f")
    deviation: float = column("deviation", ".2f")
    optimum: float = column("optimum", ".2f")

    @derived("points below", "+.2f")
    def below(self) -> float:
        return self.optimum - self.quality


# ---- Rows ----


def _linear(name: str, seed: int, scope: Scope) -> Dataset:
    if name == NOISY:
        return Dataset(*noisy(QUICK_ROWS if scope.quick else NOISY_ROWS, seed))
    data = load(name, LINEAR_SETS[name])
    return data.drawn(QUICK_ROWS, QUICK_ROWS) if scope.quick else data.drawn(MOST_ROWS, TESTED)


def _kernel(name: str, seed: int, scope: Scope) -> Dataset:
    rows = QUICK_ROWS if scope.quick else KERNEL_ROWS
    if name == NOISY_KERNEL:
        parts = [Drawn(DRAWN + seed, stream).rows(count)[:2] for stream, count in ((1, rows), (2, TESTED))]
        return Dataset(*parts[0], *parts[1])
    data = load(name, KERNEL_SETS[name])
    data = data if name == "letter" else data.standardised()
    return data.drawn(rows, rows) if scope.quick else data


def _of_rows(data: Dataset, learners: Learners, optimum: Any, seed: int) -> dict[str, tuple[float, float]]:
    best = float(optimum.fit(data.X_train, data.y_train).score(data.X_test, data.y_test))
    order, found = np.random.RandomState(seed).permutation(len(data.y_train)), {}
    for name, make in learners.items():
        model = make(seed)
        for first in range(0, len(order), BATCH):
            rows = order[first : first + BATCH]
            _learn(model, data.X_train[rows], data.y_train[rows], np.unique(data.y_train))
        found[name] = 100 * float(model.score(data.X_test, data.y_test)), 100 * best
    return found


def _learn(model: Any, X: Any, y: Any, classes: Any) -> None:
    """A pipeline has no `partial_fit` of its own."""
    if hasattr(model, "steps"):
        X, model = model[0].fit_transform(X), model[-1]
    model.partial_fit(X, y, classes=classes)


def _sgd(seed: int) -> SGDClassifier:
    return SGDClassifier(average=True, random_state=seed)


def _of_linear(name: str, seed: int, scope: Scope) -> dict[str, tuple[float, float]]:
    learners: Learners = {
        "larank": lambda seed: LaRankClassifier("linear", random_state=seed),
        "last weights": lambda seed: LaRankClassifier("linear", average=False, random_state=seed),
        "SGDClassifier, averaged": _sgd,
    }
    optimum = LinearMulticlassSVC("crammer-singer", fit_intercept=False, random_state=0)
    return _of_rows(_linear(name, seed, scope), learners, optimum, seed)


def _of_kernel(name: str, seed: int, scope: Scope) -> dict[str, tuple[float, float]]:
    data = _kernel(name, seed, scope)
    given = {"C": 10.0, "gamma": 0.025} if name == "letter" else {"C": 1.0, "gamma": 1 / data.X_train.shape[1]}
    costs = (given["C"],) if name in ("letter", NOISY_KERNEL) else (given["C"], 100.0)
    found = {}
    for C in costs:
        learners, optimum = _kernel_learners({**given, "C": C}), MulticlassSVC(**{**given, "C": C}, tol=1e-3)
        of_cost = _of_rows(data, learners, optimum, seed)
        found |= {f"{learner}, C = {C:g}": value for learner, value in of_cost.items()}
    return found


def _kernel_learners(given: dict[str, float]) -> Learners:
    def mapped(seed: int) -> Any:
        return make_pipeline(RBFSampler(gamma=given["gamma"], n_components=FOURIER, random_state=seed), _sgd(seed))

    bounded = {**given, "max_support": PATTERNS}
    return {
        "larank": lambda seed: LaRankClassifier(random_state=seed, **given),
        f"larank, {PATTERNS} patterns": lambda seed: LaRankClassifier(random_state=seed, **bounded),
        f"SGDClassifier, averaged, {FOURIER} Fourier features": mapped,
    }


# ---- Sequences ----


def _of_sequences(name: str, seed: int, scope: Scope) -> dict[str, tuple[float, float]]:
    data = load_sequences(name)
    if scope.quick and name != "ocr_words":  # which has 600 words
        data = data.first(QUICK_SEQUENCES, QUICK_SEQUENCES)
    found = {}
    for inference, order in (("exact", 1), ("greedy", 10 if name == "ocr_words" else 2)):
        settings = {"inference": inference, "order": order, "random_state": seed}
        best = _quality(name, data, {**settings, "max_iter": EPOCHS})
        for learner, others in TAGGERS.items():
            found[f"{learner}, {inference}"] = _quality(name, data, {**settings, **others}), best
    return found


def _quality(name: str, data: Dataset, settings: dict[str, Any]) -> float:
    tagger = SequenceTagger(**settings).fit(data.X_train, data.y_train, certify=False)
    if name != "conll2000":
        return 100 * tagger.score(data.X_test, data.y_test)
    return 100 * entity_report(data.y_test, tagger.predict(data.X_test)).f1


# ---- All of them ----


def _of(name: str) -> Callable[[str, int, Scope], dict[str, tuple[float, float]]]:
    if name in SEQUENCE_SETS:
        return _of_sequences
    return _of_kernel if name in KERNEL_SETS or name == NOISY_KERNEL else _of_linear


def _rows(name: str, scope: Scope) -> Iterator[Row]:
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in scope.seed_range(SEEDS):
        for learner, pair in _of(name)(name, seed, scope).items():
            found.setdefault(learner, []).append(pair)
    for learner, pairs in found.items():
        quality, optimum = np.mean(pairs, axis=0)
        yield Row(name, learner, float(quality), float(np.std([each for each, _ in pairs])), float(optimum))


def run(scope: Scope, say: Say) -> Findings:
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the optimum may be far off where costs are high
        for name in scope.present(DATASETS, (NOISY, NOISY_KERNEL, "letter"), say, _source):
            for row in _rows(name, scope):
                rows.append(row)
                say(f"{name}, {row.learner}: {row.quality:.2f}, {row.below:+.2f} below the optimum")
    ours = [row for row in rows if row.learner.startswith("larank")]
    far = [f"{row.problem}, {row.learner} ({row.below:.2f})" for row in ours if row.below > BAR]
    return Findings(
        rows={"rows": rows},
        tables=[of_rows("One pass, and the optimum", rows)],
        lines=[f"{len(ours) - len(far)} of {len(ours)} within {BAR} points of the optimum; not: {'; '.join(far)}"],
    )


def _source(name: str) -> str:
    problems = {**LINEAR_SETS, **KERNEL_SETS}
    generated = GENERATED if name in (NOISY, NOISY_KERNEL) else name
    return problems[name][name].source if name in problems else generated


_EPOCHS = "the passes that the default makes on small and noisy data, compared with the exact solvers"
_ONE_PASS = "one pass of streams, of rows and of sequences, against the optimum"
STUDIES = (
    Study("epochs", _EPOCHS, run_epochs, EPOCHS_ON),
    Study("one-pass", _ONE_PASS, run, DATASETS, has_seeds=True),
)
