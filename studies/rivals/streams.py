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
from studies.rivals.contest import Settings, met
from studies.study import Say
from studies.tables import Columns, figure

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

    problem: str
    solver: str
    rows: int
    wall: float
    cpu: float
    ratio: float
    cpu_ratio: float


FILE_COLUMNS: Columns = {
    "problem": figure("problem"),
    "solver": figure("solver"),
    "rows": figure("rows"),
    "wall s": figure("wall", ".3f"),
    "over reading": figure("ratio", ".2f"),
    "CPU s": figure("cpu", ".3f"),
    "over reading, CPU": figure("cpu_ratio", ".2f"),
}


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


def file_passes(settings: Settings, say: Say) -> tuple[list[FilePass], list[str]]:
    """Reading and training take turns, each in a process of its own."""
    megabytes = QUICK_MEGABYTES if settings.quick else MEGABYTES
    name = f"svmlight, {megabytes} MB"
    with tempfile.TemporaryDirectory(prefix="larank-svmlight-") as folder:
        path = Path(folder) / "examples.svm"
        write_svmlight(path, megabytes)

        def measure(task: str, **given: Any) -> dict[str, Any]:
            return ask(TASKS, task, Path(folder), 1, settings.limit, file=str(path), **given)

        runs: dict[str, list[dict[str, Any]]] = {}
        for _ in range(settings.repeats):
            runs.setdefault("reading", []).append(measure("read_file"))
            for algorithm in ALGORITHMS:
                runs.setdefault(algorithm, []).append(measure("fit_file", algorithm=algorithm))
        say(f"{name}: " + ", ".join(f"{key} {_least(found, 'wall'):.2f} s" for key, found in runs.items()))
    rows = [_file_pass(name, key, found, runs["reading"]) for key, found in runs.items()]
    lines = [
        f"{name}: a pass of {row.solver} takes {row.ratio:.2f} times reading it ({row.cpu_ratio:.2f} in CPU seconds of "
        f"all threads); bar {READING_BAR:g}, {met(row.ratio <= READING_BAR)}"
        for row in rows[1:]
    ]
    return rows, lines


def _least(runs: Sequence[dict[str, Any]], key: str) -> float:
    return min(float(run[key]) for run in runs)


def _file_pass(
    problem: str, solver: str, runs: Sequence[dict[str, Any]], reading: Sequence[dict[str, Any]]
) -> FilePass:
    wall, cpu = (_least(runs, key) for key in ("wall", "cpu"))
    ratios = wall / _least(reading, "wall"), cpu / _least(reading, "cpu")
    return FilePass(problem, solver, runs[0]["rows"], wall, cpu, *ratios)


# ---- Noise ----


@dataclass(frozen=True)
class Noise:
    """Test accuracy after one pass over noisy batches, by learner."""

    problem: str
    seed: int
    optimum: float
    larank: float
    dual: float
    plain: float
    averaged: float


NOISE_COLUMNS: Columns = {
    "problem": figure("problem"),
    "seed": figure("seed"),
    "optimum %": figure("optimum", ".2f", 100),
    "larank %": figure("larank", ".2f", 100),
    "LaRankClassifier %": figure("dual", ".2f", 100),
    "SGDClassifier %": figure("plain", ".2f", 100),
    "averaged %": figure("averaged", ".2f", 100),
}


def noise(settings: Settings, say: Say) -> tuple[list[Noise], list[str]]:
    """Defaults of `partial_fit`, against multinomial logistic regression on all rows at once."""
    count = QUICK_NOISE_ROWS if settings.quick else NOISE_ROWS
    rows = []
    with storage.stored("noise", {}, {}) as folder:
        for seed in range(1 if settings.quick else NOISE_SEEDS):
            found = ask(TASKS, "noise", folder, 1, settings.limit, rows=count, seed=seed)
            learners = "larank", "larankclassifier", "sgdclassifier", "sgdclassifier-averaged"
            accuracies = (found[name] for name in learners)
            rows.append(Noise(f"noise, {count} rows", seed, found["optimum"], *accuracies))
            say(f"noise, seed {seed}: " + ", ".join(f"{name} {value:.4f}" for name, value in found.items()))
    ours = {"larank": [row.larank for row in rows], "LaRankClassifier": [row.dual for row in rows]}
    return rows, [_below_optimum(name, rows, accuracies) for name, accuracies in ours.items()]


def _below_optimum(name: str, rows: Sequence[Noise], accuracies: Sequence[float]) -> str:
    below = [100 * (row.optimum - accuracy) for row, accuracy in zip(rows, accuracies, strict=True)]
    mean, worst = float(np.mean(below)), max(below)
    said = (
        f"noise: {name} is {mean:.2f} points below the optimum in the mean of {len(rows)} seeds, {worst:.2f} at worst"
    )
    return f"{said}; bar {POINTS_BAR:g}, {met(worst <= POINTS_BAR)}"


@dataclass(frozen=True)
class Prequential:
    """Each batch predicted, then learned: accuracy, and rows per second, those of learning alone and of both."""

    problem: str
    solver: str
    accuracy: float
    learning: float
    both: float


PREQUENTIAL_COLUMNS: Columns = {
    "problem": figure("problem"),
    "solver": figure("solver"),
    "prequential accuracy %": figure("accuracy", ".2f", 100),
    "rows/s learned": figure("learning", ",.0f"),
    "rows/s predicted and learned": figure("both", ",.0f"),
}
LEARNERS = ("larank", "sgdclassifier", "sgdclassifier-averaged")


def prequential(settings: Settings, say: Say) -> tuple[list[Prequential], list[str]]:
    """The seven cover types, in batches of a thousand; the learners take turns."""
    if not datasets.is_available(COVTYPE):
        say(f"{COVTYPE}: absent from the data directory, left out")
        return [], []
    X, y = datasets.load(COVTYPE, LINEAR).merged()
    rows = slice(QUICK_ROWS if settings.quick else None)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in LEARNERS}
    with storage.stored(COVTYPE, {"X_train": X[rows].toarray(), "y_train": y[rows]}, {}) as folder:
        for _ in range(settings.repeats):
            for name, runs in found.items():
                runs.append(ask(TASKS, "prequential", folder, 1, settings.limit, learner=name))
                say(f"{COVTYPE}: {name}: {runs[-1]['accuracy']:.4f}, {runs[-1]['both']:,.0f} rows/s")
    shown = [_prequential(name, runs) for name, runs in found.items()]
    ours, averaged = shown[0], shown[-1]
    lines = [
        f"{COVTYPE}: {ours.both:,.0f} rows/s predicted and learned; bar {ROWS_BAR:,}, {met(ours.both >= ROWS_BAR)}",
        f"{COVTYPE}: prequential accuracy {ours.accuracy:.4f}, averaged SGDClassifier {averaged.accuracy:.4f}; bar: no "
        f"lower, {met(ours.accuracy >= averaged.accuracy)}",
    ]
    return shown, lines


def _prequential(name: str, runs: Sequence[dict[str, Any]]) -> Prequential:
    rates = (max(float(run[key]) for run in runs) for key in ("learning", "both"))
    return Prequential(COVTYPE, name, runs[0]["accuracy"], *rates)


# ---- Memory ----


@dataclass(frozen=True)
class Length:
    """A stream of so many rows: peak bytes above the size after the imports, least and most of all runs; seconds."""

    problem: str
    rows: int
    least: int
    most: int
    wall: float


LENGTH_COLUMNS: Columns = {
    "problem": figure("problem"),
    "rows": figure("rows", ",d"),
    "least peak MB": figure("least", ".1f", 1e-6),
    "most": figure("most", ".1f", 1e-6),
    "wall s": figure("wall", ".2f"),
    "rows/s": lambda row: f"{row.rows / row.wall:,.0f}",
}


def lengths(settings: Settings, say: Say) -> tuple[list[Length], list[str]]:
    """Ten features, drawn on the fly in blocks; a process for each run of each length."""
    found: dict[int, list[dict[str, Any]]] = {}
    with storage.stored("stream", {}, {}) as folder:
        for _ in range(settings.repeats):
            for count in QUICK_LENGTHS if settings.quick else LENGTHS:
                run = ask(TASKS, "endless", folder, 1, settings.limit, rows=count)
                found.setdefault(count, []).append(run)
                say(f"stream of {count:,} rows: peak {run['peak'] / 1e6:.1f} MB, {run['wall']:.1f} s")
    rows = [_length(count, runs) for count, runs in found.items()]
    growth, least = rows[-1].most / rows[-2].most, rows[-1].least / rows[-2].least
    said = (
        f"stream: the highest peak of {rows[-1].rows:,} rows is {growth:.2f} times that of {rows[-2].rows:,}, the "
        f"lowest {least:.2f} times"
    )
    lines = [] if settings.quick else [f"{said}; bar {GROWTH_BAR:g}, {met(growth <= GROWTH_BAR)}"]
    return rows, lines


def _length(count: int, runs: Sequence[dict[str, Any]]) -> Length:
    peaks = [int(run["peak"]) for run in runs]
    return Length("stream", count, min(peaks), max(peaks), _least(runs, "wall"))
