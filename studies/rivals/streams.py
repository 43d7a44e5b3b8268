"""Linear models on streams: a file against reading it, noisy batches against the optimum, memory as a stream grows."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from studies import datasets, storage
from studies.datasets import LINEAR
from studies.measure import ask
from studies.study import Claim, Say, Scope
from studies.tables import column, derived

TASKS = "studies.rivals.streamtasks"
ALGORITHMS = ("asgd", "sgdqn", "svmsgd2")
MEGABYTES, QUICK_MEGABYTES = 200, 4
BLOCK_MEGABYTES = 20
NOISE_ROWS, QUICK_NOISE_ROWS = 100_000, 10_000
NOISE_SEEDS = 3
COVTYPE = "covtype"
QUICK_ROWS = 20_000
LENGTHS, QUICK_LENGTHS = (10**6, 10**7, 10**8), (10**5, 10**6)

READING_BAR = 1.3
POINTS_BAR = 0.5
ROWS_BAR = 100_000
GROWTH_BAR = 1.1
"""The peak memory of the longest stream over that of one a tenth as long, which fills all buffers."""


# ---- A pass over a file ----


@dataclass(frozen=True)
class FilePass:
    """Seconds of one pass of training on a file, the least, and over those of reading it."""

    problem: str = column("problem")
    solver: str = column("solver")
    rows: int = column("rows")
    wall: float = column("wall s", ".3f")
    ratio: float = column("over reading", ".2f")
    cpu: float = column("CPU s", ".3f")
    cpu_ratio: float = column("over reading, CPU", ".2f")


def write_svmlight(path: Path, megabytes: float) -> None:
    """Sparse examples of two classes; the same lines over and over."""
    random = np.random.default_rng(0)
    lines, size = [], 0.0
    w = random.normal(size=1000)
    while size < 1e6 * min(megabytes, BLOCK_MEGABYTES):
        at = np.unique(random.integers(1000, size=30))
        values = random.random(len(at))
        label = 1 if values @ w[at] > 0 else -1
        words = (f"{1 + j}:{value:.4f}" for j, value in zip(at.tolist(), values.tolist(), strict=True))
        lines.append(f"{label} {' '.join(words)}\n")
        size += len(lines[-1])
    block = "".join(lines)
    with path.open("w") as file:
        for _ in range(max(1, round(1e6 * megabytes / size))):
            file.write(block)


def file_passes(scope: Scope, say: Say) -> tuple[list[FilePass], list[Claim]]:
    """Reading and training take turns, each in a process of its own."""
    megabytes = QUICK_MEGABYTES if scope.quick else MEGABYTES
    problem = f"svmlight, {megabytes} MB"
    with tempfile.TemporaryDirectory(prefix="larank-svmlight-") as folder:
        path = Path(folder) / "examples.svm"
        write_svmlight(path, megabytes)

        def measure(task: str, **given: Any) -> dict[str, Any]:
            return ask(TASKS, task, Path(folder), 1, scope.limit, file=str(path), **given)

        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in ("reading", *ALGORITHMS)}
        for _ in range(scope.repeats):
            for name, of in runs.items():
                of.append(measure("read_file") if name == "reading" else measure("fit_file", algorithm=name))
        say(f"{problem}: " + ", ".join(f"{key} {_least(found, 'wall'):.2f} s" for key, found in runs.items()))
    wall, cpu = (_least(runs["reading"], key) for key in ("wall", "cpu"))
    rows = []
    for name, of in runs.items():
        seconds, cpu_seconds = _least(of, "wall"), _least(of, "cpu")
        rows.append(FilePass(problem, name, of[0]["rows"], seconds, seconds / wall, cpu_seconds, cpu_seconds / cpu))
    said = "{0.problem}: a pass of {0.solver} takes {0.ratio:.2f} times reading it"
    all_threads = "({0.cpu_ratio:.2f} in CPU seconds of all threads)"
    return rows, [Claim(f"{said} {all_threads}".format(row), row.ratio, most=READING_BAR) for row in rows[1:]]


def _least(runs: Sequence[dict[str, Any]], key: str) -> float:
    return min(float(run[key]) for run in runs)


# ---- Noise ----


@dataclass(frozen=True)
class Noise:
    """Test accuracy after one pass over noisy batches, by learner."""

    problem: str = column("problem")
    seed: int = column("seed")
    optimum: float = column("optimum %", ".2f", 100)
    larank: float = column("larank %", ".2f", 100)
    dual: float = column("LaRankClassifier %", ".2f", 100)
    plain: float = column("SGDClassifier %", ".2f", 100)
    averaged: float = column("averaged %", ".2f", 100)


def noise(scope: Scope, say: Say) -> tuple[list[Noise], list[Claim]]:
    """Defaults of `partial_fit`, against multinomial logistic regression on all rows at once."""
    count = QUICK_NOISE_ROWS if scope.quick else NOISE_ROWS
    rows = []
    with storage.stored("noise", {}) as folder:
        for seed in range(1 if scope.quick else NOISE_SEEDS):
            found = ask(TASKS, "noise", folder, 1, scope.limit, rows=count, seed=seed)
            learners = "larank", "larankclassifier", "sgdclassifier", "sgdclassifier-averaged"
            accuracies = (found[name] for name in learners)
            rows.append(Noise(f"noise, {count} rows", seed, found["optimum"], *accuracies))
            say(f"noise, seed {seed}: " + ", ".join(f"{name} {value:.4f}" for name, value in found.items()))
    claims = []
    for name, field in (("larank", "larank"), ("LaRankClassifier", "dual")):
        below = [100 * (row.optimum - getattr(row, field)) for row in rows]
        said = f"noise: {name} is {np.mean(below):.2f} points below the optimum in the mean of {len(rows)} seeds"
        claims.append(Claim(f"{said}, {max(below):.2f} at worst", max(below), most=POINTS_BAR))
    return rows, claims


@dataclass(frozen=True)
class Prequential:
    """Each batch predicted, then learned: accuracy, and rows per second, those of learning alone and of both."""

    problem: str = column("problem")
    solver: str = column("solver")
    accuracy: float = column("prequential accuracy %", ".2f", 100)
    learning: float = column("rows/s learned", ",.0f")
    both: float = column("rows/s predicted and learned", ",.0f")


LEARNERS = ("larank", "sgdclassifier", "sgdclassifier-averaged")


def prequential(scope: Scope, say: Say) -> tuple[list[Prequential], list[Claim]]:
    """The seven cover types, in batches of a thousand; the learners take turns."""
    if not datasets.is_available(COVTYPE):
        say(f"{COVTYPE}: absent from the data directory, left out")
        return [], []
    X, y = datasets.load(COVTYPE, LINEAR).merged()
    rows = slice(QUICK_ROWS if scope.quick else None)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in LEARNERS}
    with storage.stored(COVTYPE, {"X_train": X[rows].toarray(), "y_train": y[rows]}) as folder:
        for _ in range(scope.repeats):
            for name, runs in found.items():
                runs.append(ask(TASKS, "prequential", folder, 1, scope.limit, learner=name))
                say(f"{COVTYPE}: {name}: {runs[-1]['accuracy']:.4f}, {runs[-1]['both']:,.0f} rows/s")
    shown = []
    for name, runs in found.items():
        learning, both = (max(float(run[key]) for run in runs) for key in ("learning", "both"))
        shown.append(Prequential(COVTYPE, name, runs[0]["accuracy"], learning, both))
    ours, averaged = shown[0], shown[-1]
    said = f"{COVTYPE}: prequential accuracy {ours.accuracy:.4f}, averaged SGDClassifier {averaged.accuracy:.4f}"
    rate = f"{COVTYPE}: {ours.both:,.0f} rows/s predicted and learned"
    return shown, [
        Claim(rate, ours.both, least=ROWS_BAR, bar=f"{ROWS_BAR:,}"),
        Claim(said, ours.accuracy, least=averaged.accuracy, bar="no lower"),
    ]


# ---- Memory ----


@dataclass(frozen=True)
class Length:
    """A stream of so many rows: peak bytes above the size after the imports, least and most of all runs; seconds."""

    problem: str = column("problem")
    rows: int = column("rows", ",d")
    least: int = column("least peak MB", ".1f", 1e-6)
    most: int = column("most", ".1f", 1e-6)
    wall: float = column("wall s", ".2f")

    @derived("rows/s", ",.0f")
    def rate(self) -> float:
        return self.rows / self.wall


def lengths(scope: Scope, say: Say) -> tuple[list[Length], list[Claim]]:
    """Ten features, drawn on the fly in blocks; a process for each run of each length."""
    counts = QUICK_LENGTHS if scope.quick else LENGTHS
    found: dict[int, list[dict[str, Any]]] = {count: [] for count in counts}
    with storage.stored("stream", {}) as folder:
        for _ in range(scope.repeats):
            for count, runs in found.items():
                runs.append(ask(TASKS, "endless", folder, 1, scope.limit, rows=count))
                say(f"stream of {count:,} rows: peak {runs[-1]['peak'] / 1e6:.1f} MB, {runs[-1]['wall']:.1f} s")
    rows = []
    for count, runs in found.items():
        peaks = [int(run["peak"]) for run in runs]
        rows.append(Length("stream", count, min(peaks), max(peaks), _least(runs, "wall")))
    growth, least = rows[-1].most / rows[-2].most, rows[-1].least / rows[-2].least
    said = (
        f"stream: the highest peak of {rows[-1].rows:,} rows is {growth:.2f} times that of {rows[-2].rows:,}, the "
        f"lowest {least:.2f} times"
    )
    return rows, [Claim(said, growth, most=GROWTH_BAR)]
