"""`python -m benchmarks path`: the exact solver for a whole range of C, against a single fit at the largest."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from benchmarks.command import Command
from benchmarks.kernel import problems
from benchmarks.kernel.runs import measure_from_scratch, measure_path, stored
from benchmarks.measure import Measurement
from benchmarks.rbf import THREADS
from benchmarks.report import Report, Section
from benchmarks.tables import breakdown_columns
from benchmarks.turns import take_turns

LOWEST, HIGHEST = 1 / 30, 3.0
VALUES = 10


@dataclass(frozen=True)
class Step:
    """One value of C on a path: what it took after the one before."""

    problem: str
    C: float
    seconds: float
    dual: float
    relative_gap: float
    support_patterns: int


@dataclass(frozen=True)
class Row:
    """A path, or a fit at its largest C: the shortest of its runs. `ratio` is to the fit."""

    problem: str
    training: str
    runs: int
    train: float
    train_cpu: float
    ratio: float | None
    dual: float
    breakdown: dict[str, float]


COLUMNS: dict[str, Callable[[Row], str]] = {
    "problem": lambda row: row.problem,
    "training": lambda row: row.training,
    "runs": lambda row: str(row.runs),
    "train s": lambda row: f"{row.train:.3f}",
    "ratio": lambda row: "-" if row.ratio is None else f"{row.ratio:.2f}",
    "train CPU s": lambda row: f"{row.train_cpu:.3f}",
    "dual at the largest C": lambda row: f"{row.dual:.2f}",
}
STEP_COLUMNS: dict[str, Callable[[Step], str]] = {
    "problem": lambda step: step.problem,
    "C": lambda step: f"{step.C:.4g}",
    "seconds": lambda step: f"{step.seconds:.3f}",
    "dual": lambda step: f"{step.dual:.2f}",
    "relative gap": lambda step: f"{step.relative_gap:.1e}",
    "patterns": lambda step: str(step.support_patterns),
}


def costs_around(C: float, values: int, lowest: float, highest: float) -> list[float]:
    """So many values of C from `lowest` to `highest` times it, each the same multiple of the one before."""
    return [float(cost) for cost in np.geomspace(lowest * C, highest * C, values)]


def compare_path(
    name: str, shares: tuple[int, float, float], repeats: int, seconds: float, log: Callable[[str], None]
) -> tuple[list[Row], list[Step], list[str]]:
    """Path and fit, the steps of the path, and a line for what failed; `shares` as for `costs_around`."""
    problem = problems.load(name)
    costs = costs_around(problem.parameters.C, *shares)
    path = f"path of {len(costs)} C, {costs[0]:.4g} .. {costs[-1]:.4g}"
    fit = f"fit from scratch, C = {costs[-1]:.4g}"

    def tell(training: str, found: Measurement | str) -> None:
        log(f"{name}: {training}: {found if isinstance(found, str) else f'{found.wall:.2f} s'}")

    with stored(problem) as folder:
        measures = {
            path: partial(measure_path, folder, costs, seconds),
            fit: partial(measure_from_scratch, folder, costs[-1], seconds),
        }
        turns = take_turns(measures, repeats, tell)
    best = {training: min(runs, key=lambda run: run.wall) for training, runs in turns.found.items()}
    alone = best[fit].wall if fit in best else None
    rows = [_row(name, training, len(turns.found[training]), run, alone) for training, run in best.items()]
    steps = [Step(problem=name, **step) for step in best[path].extra["steps"]] if path in best else []
    return rows, steps, [f"{name}: {training}: {reason}" for training, reason in turns.failed.items()]


def _row(problem: str, training: str, runs: int, best: Measurement, alone: float | None) -> Row:
    steps = best.extra.get("steps")
    return Row(
        problem=problem,
        training=training,
        runs=runs,
        train=best.wall,
        train_cpu=best.cpu,
        ratio=best.wall / alone if alone else None,
        dual=steps[-1]["dual"] if steps else best.extra["dual"],
        breakdown=dict(best.extra["breakdown"]),
    )


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--values", type=int, default=VALUES, help="how many values of C")
    parser.add_argument("--lowest", type=float, default=LOWEST, help="the first, over the problem's C; 1/30")
    parser.add_argument("--highest", type=float, default=HIGHEST, help="the last, over the problem's C; 3")


def _run(arguments: argparse.Namespace, log: Callable[[str], None]) -> Report:
    shares = (arguments.values, arguments.lowest, arguments.highest)
    rows: list[Row] = []
    steps: list[Step] = []
    lines: list[str] = []
    for name in arguments.problems:
        found = compare_path(name, shares, arguments.repeats, arguments.limit, log)
        rows, steps, lines = rows + found[0], steps + found[1], lines + found[2]
    sections = [
        Section(f"A path of costs against one fit at the largest, {THREADS} threads, wall seconds", COLUMNS, rows),
        Section("The steps of the fastest path", STEP_COLUMNS, steps),
        Section("Where the time goes, thread-seconds", breakdown_columns(rows, "training"), rows),
    ]
    figures = {"rows": [asdict(row) for row in rows], "steps": [asdict(step) for step in steps]}
    return Report(sections, lines, figures)


PATH = Command(
    name="path",
    summary="a path of costs with the exact kernel solver",
    problems=problems.PROBLEMS,
    default_problems=("usps", "letter"),
    solvers=(),
    default_limit=3600.0,
    libraries=("larank", "numpy", "scipy"),
    add_options=_add_options,
    run=_run,
)
