"""`python -m benchmarks memory`: what the exact solver needs, in memory and time, under different limits."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from benchmarks.command import Command
from benchmarks.kernel import problems
from benchmarks.kernel.runs import measure_limited, stored
from benchmarks.measure import Measurement
from benchmarks.rbf import THREADS
from benchmarks.report import Report, Section
from benchmarks.tables import MEGABYTE, breakdown_columns, megabytes
from benchmarks.turns import take_turns

LIMITS = (500.0, 4000.0)


@dataclass(frozen=True)
class Row:
    """The exact solver under one limit, in bytes: the shortest training and the smallest peak of its runs.

    `peak` is that of the resident set, above its level when the data were loaded. `ratio` is to the training time under
    the largest limit.
    """

    problem: str
    limit: float
    runs: int
    train: float
    train_cpu: float
    ratio: float | None
    peak: int
    kernel_values: int
    primal: float
    dual: float
    support_patterns: int
    breakdown: dict[str, float]

    @property
    def training(self) -> str:
        """Which it is, in words."""
        return f"limit {self.limit / MEGABYTE:g} MB"

    @property
    def relative_gap(self) -> float:
        """(primal - dual) / primal."""
        return (self.primal - self.dual) / self.primal


COLUMNS: dict[str, Callable[[Row], str]] = {
    "problem": lambda row: row.problem,
    "training": lambda row: row.training,
    "runs": lambda row: str(row.runs),
    "peak MB": lambda row: megabytes(row.peak),
    "train s": lambda row: f"{row.train:.3f}",
    "ratio": lambda row: "-" if row.ratio is None else f"{row.ratio:.2f}",
    "train CPU s": lambda row: f"{row.train_cpu:.3f}",
    "million kernel values": lambda row: f"{row.kernel_values / 1e6:.1f}",
    "dual": lambda row: f"{row.dual:.2f}",
    "relative gap": lambda row: f"{row.relative_gap:.1e}",
    "patterns": lambda row: str(row.support_patterns),
}
NOTE = (
    "Peak: of the resident set during training, above its level when the data were loaded. The limit holds for support "
    "patterns, coefficients, scores and kept kernel values; Python, working memory of products and the copy of the "
    "data without constant features come on top."
)


def compare_limits(
    name: str, limits: Sequence[float], repeats: int, seconds: float, log: Callable[[str], None]
) -> tuple[list[Row], list[str]]:
    """A row for each of the limits, in bytes, and a line for each that failed; they take turns."""

    def tell(limit: float, found: Measurement | str) -> None:
        said = found if isinstance(found, str) else f"{found.wall:.2f} s, {megabytes(found.own_peak(True))} MB"
        log(f"{name}: limit {limit / MEGABYTE:g} MB: {said}")

    with stored(problems.load(name)) as folder:
        turns = take_turns({limit: partial(measure_limited, folder, limit, seconds) for limit in limits}, repeats, tell)
    whole = min((run.wall for run in turns.found.get(max(limits), [])), default=None)
    rows = [_row(name, limit, runs, whole) for limit, runs in turns.found.items()]
    return rows, [f"{name}: limit {limit / MEGABYTE:g} MB: {reason}" for limit, reason in turns.failed.items()]


def _row(problem: str, limit: float, runs: Sequence[Measurement], whole: float | None) -> Row:
    best = min(runs, key=lambda run: run.wall)
    return Row(
        problem=problem,
        limit=limit,
        runs=len(runs),
        train=best.wall,
        train_cpu=best.cpu,
        ratio=best.wall / whole if whole else None,
        peak=min(run.own_peak(copies_input=True) for run in runs),
        kernel_values=best.extra["kernel_values"],
        primal=best.extra["primal"],
        dual=best.extra["dual"],
        support_patterns=best.extra["support_patterns"],
        breakdown=dict(best.extra["breakdown"]),
    )


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--memory-limits", type=float, nargs="+", default=LIMITS, metavar="MB", help="1e6 bytes each; 500 and 4000"
    )


def _run(arguments: argparse.Namespace, log: Callable[[str], None]) -> Report:
    rows, lines = [], []
    for name in arguments.problems:
        limits = [MEGABYTE * limit for limit in arguments.memory_limits]
        found, failed = compare_limits(name, limits, arguments.repeats, arguments.limit, log)
        rows, lines = rows + found, lines + failed
    sections = [
        Section(f"The exact solver under limits on memory, {THREADS} threads, wall seconds", COLUMNS, rows),
        Section("Where the time goes, thread-seconds", breakdown_columns(rows, "training"), rows),
    ]
    return Report(sections, [*lines, NOTE], {"rows": [asdict(row) for row in rows]})


MEMORY = Command(
    name="memory",
    summary="the exact kernel solver under limits on memory",
    problems=problems.PROBLEMS,
    default_problems=("mnist",),
    solvers=(),
    default_limit=3600.0,
    libraries=("larank", "numpy", "scipy"),
    add_options=_add_options,
    run=_run,
)
