"""`python -m benchmarks cache`: an epoch of LaSVM with a small and a large cache of kernel values."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

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
SHARE_OF_BLOCKS = 0.25
"""Of the memory limit: blocks of kernel values that would take more are made shorter."""
FLOAT, SCALARS, GROWTH = 4, 128, 1.2
"""Bytes of a value, and of what is kept of a support pattern beside its features and kernel values; and the room for
patterns, which grows by half, over what they fill."""
AMPLE = 4e9
EPOCH, FINISHED = "epoch", "epoch and finishing"

Training = tuple[str, float]
"""With finishing or without, and the size of the cache."""


@dataclass(frozen=True)
class Row:
    """LaSVM with one size of the cache, in bytes: the shortest of its runs. `ratio` is to the largest cache.

    `limit` is the memory limit the estimator was given.
    """

    problem: str
    part: str
    cache: float
    limit: float
    runs: int
    train: float
    train_cpu: float
    ratio: float | None
    kernel_values: int
    support_vectors: int
    error: float
    dual: float
    breakdown: Mapping[str, float]

    @property
    def training(self) -> str:
        """Which it is, in words."""
        return _words((self.part, self.cache))


COLUMNS: dict[str, Callable[[Row], str]] = {
    "problem": lambda row: row.problem,
    "training": lambda row: row.training,
    "memory_limit MB": lambda row: f"{row.limit / MEGABYTE:.0f}",
    "runs": lambda row: str(row.runs),
    "train s": lambda row: f"{row.train:.3f}",
    "ratio": lambda row: optional(row.ratio),
    "train CPU s": lambda row: f"{row.train_cpu:.3f}",
    "million kernel values": lambda row: f"{row.kernel_values / 1e6:.1f}",
    "test error %": lambda row: f"{100 * row.error:.2f}",
    "vectors": lambda row: str(row.support_vectors),
    "dual": lambda row: f"{row.dual:.2f}",
}
NOTE = (
    "memory_limit also counts support patterns, coefficients and the two blocks of kernel values that are being worked "
    "on. Their size, with as many support patterns as an epoch with ample memory has at most, is added to the cache; "
    "up to a tenth of the small cache this is an estimate. Without the certificate, which needs no cache."
)


def limit_for(cache: float, patterns: int, features: int) -> float:
    """The memory limit that leaves so many bytes for kernel values beside so many support patterns and the blocks."""
    kept = patterns * (GROWTH * features * FLOAT + SCALARS)
    blocks = 2 * BATCH * (patterns + 2 * BATCH) * FLOAT
    return min(cache + kept + blocks, (cache + kept) / (1 - SHARE_OF_BLOCKS))


def compare_caches(
    name: str, caches: Sequence[float], repeats: int, seconds: float, log: Callable[[str], None]
) -> tuple[list[Row], list[str]]:
    """Two rows for each of the caches, in bytes, and a line for each training that failed; they take turns."""

    def tell(training: Training, found: BinaryRun | str) -> None:
        log(f"{name}: {_words(training)}: {found if isinstance(found, str) else f'{found.wall:.2f} s'}")

    problem = problems.load(name)
    form = problem.forms[0]
    with stored(problem) as folder:
        most = _measure(folder, form, EPOCH, AMPLE, seconds).extra["most_patterns"]
        limits = {cache: limit_for(cache, most, problem.X_train[form].shape[1]) for cache in caches}
        trainings = [(part, cache) for part in (EPOCH, FINISHED) for cache in caches]
        measures = {
            (part, cache): partial(_measure, folder, form, part, limits[cache], seconds) for part, cache in trainings
        }
        turns = take_turns(measures, repeats, tell)
    whole = {part: turns.found.get((part, max(caches)), []) for part in (EPOCH, FINISHED)}
    rows = [
        _row(name, training, limits[training[1]], runs, whole[training[0]]) for training, runs in turns.found.items()
    ]
    return rows, [f"{name}: {_words(training)}: {reason}" for training, reason in turns.failed.items()]


def _words(training: Training) -> str:
    part, cache = training
    return f"{part}, cache of {cache / MEGABYTE:g} MB"


def _measure(folder: Path, form: str, part: str, memory_limit: float, seconds: float) -> BinaryRun:
    settings = {"finish": part == FINISHED, "certify": False, "memory_limit": memory_limit, "batch_size": BATCH}
    return measure_ours(folder, form, settings, seconds)


def _row(
    problem: str, training: Training, limit: float, runs: Sequence[BinaryRun], largest: Sequence[BinaryRun]
) -> Row:
    best = min(runs, key=lambda run: run.wall)
    return Row(
        problem=problem,
        part=training[0],
        cache=training[1],
        limit=limit,
        runs=len(runs),
        train=best.wall,
        train_cpu=best.cpu,
        ratio=best.wall / min(run.wall for run in largest) if largest else None,
        kernel_values=best.extra["kernel_values"],
        support_vectors=best.support_vectors,
        error=best.error,
        dual=best.dual,
        breakdown=dict(best.extra["breakdown"]),
    )


def judged(rows: Sequence[Row]) -> list[str]:
    """How an epoch with the smallest cache stands to the bar, a line for each problem where that can be told."""
    smallest: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: -row.cache):
        if row.part == EPOCH:
            smallest[row.problem] = row
    return [
        f"{row.problem}: {row.training}, takes {row.ratio:.2f} times as long as with the largest; bar {BAR:g}, "
        f"{'met' if row.ratio <= BAR else 'missed'}"
        for row in smallest.values()
        if row.ratio is not None
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
