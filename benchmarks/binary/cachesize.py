"""`python -m benchmarks cache`: an epoch of LaSVM with a small and a large cache of kernel values."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.binary import problems
from benchmarks.binary.libraries import OURS
from benchmarks.binary.runs import BinaryRun, measure_ours, stored
from benchmarks.command import Command
from benchmarks.rbf import THREADS
from benchmarks.report import Report, Section
from benchmarks.tables import MEGABYTE, breakdown_columns, optional
from benchmarks.turns import take_turns

CACHES = (8.0, 1024.0)
BAR = 1.5
BATCH = 256
FLOAT, SCALARS = 4, 64
"""Bytes of a value, and of what is kept of a support pattern beside its features and kernel values."""
AMPLE = 4e9


@dataclass(frozen=True)
class Row:
    """LaSVM with one size of the cache, in bytes: the shortest epoch of its runs. Ratios are to the largest cache.

    `epoch` is training without finishing. `limit` is what the estimator was given.
    """

    problem: str
    cache: float
    limit: float
    runs: int
    epoch: float
    epoch_ratio: float | None
    train: float
    train_ratio: float | None
    train_cpu: float
    kernel_values: int
    support_vectors: int
    error: float
    dual: float
    breakdown: Mapping[str, float]

    @property
    def training(self) -> str:
        """Which it is, in words."""
        return f"cache of {self.cache / MEGABYTE:g} MB"


COLUMNS: dict[str, Callable[[Row], str]] = {
    "problem": lambda row: row.problem,
    "training": lambda row: row.training,
    "memory_limit MB": lambda row: f"{row.limit / MEGABYTE:.0f}",
    "runs": lambda row: str(row.runs),
    "epoch s": lambda row: f"{row.epoch:.3f}",
    "epoch ratio": lambda row: optional(row.epoch_ratio),
    "with finish s": lambda row: f"{row.train:.3f}",
    "ratio": lambda row: optional(row.train_ratio),
    "train CPU s": lambda row: f"{row.train_cpu:.3f}",
    "million kernel values": lambda row: f"{row.kernel_values / 1e6:.1f}",
    "test error %": lambda row: f"{100 * row.error:.2f}",
    "vectors": lambda row: str(row.support_vectors),
    "dual": lambda row: f"{row.dual:.2f}",
}
NOTE = (
    "memory_limit also counts support patterns, coefficients and the two blocks of kernel values that are being worked "
    "on. Their size, with as many support patterns as an epoch with ample memory has at most, is added to the cache. "
    "Without the certificate, which needs no cache."
)


def beside_the_cache(patterns: int, features: int) -> float:
    """Bytes of so many support patterns, of their coefficients, and of two blocks of kernel values with them."""
    kept_twice = 2 * features * FLOAT  # as they were given, and moved to the origin
    return patterns * (kept_twice + SCALARS) + 2 * BATCH * (patterns + 2 * BATCH) * FLOAT


def compare_caches(
    name: str, caches: Sequence[float], repeats: int, seconds: float, log: Callable[[str], None]
) -> tuple[list[Row], list[str]]:
    """A row for each of the caches, in bytes, and a line for each that failed; they take turns."""

    def tell(cache: float, found: BinaryRun | str) -> None:
        said = found if isinstance(found, str) else f"epoch {_epoch(found):.2f} s, with finish {found.wall:.2f} s"
        log(f"{name}: cache {cache / MEGABYTE:g} MB: {said}")

    problem = problems.load(name)
    form = problem.forms[0]
    with stored(problem) as folder:
        ample = _measure(folder, form, AMPLE, seconds)
        besides = beside_the_cache(ample.extra["most_patterns"], problem.X_train[form].shape[1])
        measures = {cache: partial(_measure, folder, form, cache + besides, seconds) for cache in caches}
        turns = take_turns(measures, repeats, tell)
    largest = turns.found.get(max(caches), [])
    rows = [_row(name, cache, cache + besides, runs, largest) for cache, runs in turns.found.items()]
    return rows, [f"{name}: cache {cache / MEGABYTE:g} MB: {reason}" for cache, reason in turns.failed.items()]


def _measure(folder: Path, form: str, memory_limit: float, seconds: float) -> BinaryRun:
    settings: dict[str, Any] = {"certify": False, "memory_limit": memory_limit, "batch_size": BATCH}
    return measure_ours(folder, form, settings, seconds)


def _epoch(run: BinaryRun) -> float:
    return run.wall - float(run.extra["breakdown"].get("finish", 0.0))


def _row(problem: str, cache: float, limit: float, runs: Sequence[BinaryRun], largest: Sequence[BinaryRun]) -> Row:
    best = min(runs, key=_epoch)
    train = min(run.wall for run in runs)
    return Row(
        problem=problem,
        cache=cache,
        limit=limit,
        runs=len(runs),
        epoch=_epoch(best),
        epoch_ratio=_epoch(best) / min(map(_epoch, largest)) if largest else None,
        train=train,
        train_ratio=train / min(run.wall for run in largest) if largest else None,
        train_cpu=min(run.cpu for run in runs),
        kernel_values=best.extra["kernel_values"],
        support_vectors=best.support_vectors,
        error=best.error,
        dual=best.dual,
        breakdown=dict(best.extra["breakdown"]),
    )


def judged(rows: Sequence[Row]) -> list[str]:
    """How the smallest cache stands to the bar, a line for each problem where that can be told."""
    smallest: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: -row.cache):
        smallest[row.problem] = row
    return [
        f"{row.problem}: an epoch with a {row.training} takes {row.epoch_ratio:.2f} times that with the largest; "
        f"bar {BAR:g}, {'met' if row.epoch_ratio <= BAR else 'missed'}"
        for row in smallest.values()
        if row.epoch_ratio is not None
    ]


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--caches", type=float, nargs="+", default=CACHES, metavar="MB", help="1e6 bytes each; 8 and 1024"
    )


def _run(arguments: argparse.Namespace, log: Callable[[str], None]) -> Report:
    rows: list[Row] = []
    lines: list[str] = []
    for name in arguments.problems:
        caches = [MEGABYTE * cache for cache in arguments.caches]
        found, failed = compare_caches(name, caches, arguments.repeats, arguments.limit, log)
        rows, lines = rows + found, lines + failed
    sections = [
        Section(f"{OURS.name} with caches of kernel values, {THREADS} threads, wall seconds", COLUMNS, rows),
        Section("Where the time goes, thread-seconds", breakdown_columns(rows, "training"), rows),
    ]
    return Report(sections, [*lines, *judged(rows), NOTE], {"rows": [asdict(row) for row in rows]})


CACHE = Command(
    name="cache",
    summary="LaSVM with a small and a large cache of kernel values",
    problems=problems.PROBLEMS,
    default_problems=("mnist8",),
    solvers=(),
    default_limit=1800.0,
    libraries=("larank", "numpy", "scipy"),
    add_options=_add_options,
    run=_run,
)
