"""`python -m studies path`: the exact solver for a whole range of C, against a fit from scratch at each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from studies.datasets import KERNEL
from studies.measure import Measurement, ask
from studies.rivals import kernels
from studies.rivals.contest import Comparison, Entrant, Findings, Settings, fastest, runs_in_turns
from studies.rivals.kernels import TASKS, THREADS, KernelRun, measure_fit, stored
from studies.rivals.libraries.larank import EXACT
from studies.rivals.libraries.solver import DENSE
from studies.study import Say
from studies.tables import Columns, figure, of_breakdowns, of_rows

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
    """A path, or a fit at one of its C: the shortest of its runs.

    `ratio` is to the mean of the fits, `ratio_to_most` to that which takes longest.
    """

    problem: str
    training: str
    runs: int
    train: float
    train_cpu: float
    ratio: float | None
    ratio_to_most: float | None
    dual: float
    breakdown: dict[str, float]


COLUMNS: Columns = {
    "problem": figure("problem"),
    "training": figure("training"),
    "runs": figure("runs"),
    "train s": figure("train", ".3f"),
    "over the mean fit": figure("ratio", ".2f"),
    "over the longest fit": figure("ratio_to_most", ".2f"),
    "train CPU s": figure("train_cpu", ".3f"),
    "dual at the largest C": figure("dual", ".2f"),
}
STEP_COLUMNS: Columns = {
    "problem": figure("problem"),
    "C": figure("C", ".4g"),
    "seconds": figure("seconds", ".3f"),
    "dual": figure("dual", ".2f"),
    "relative gap": figure("relative_gap", ".1e"),
    "patterns": figure("support_patterns"),
}


def costs_around(C: float, values: int, lowest: float, highest: float) -> list[float]:
    """So many values of C from `lowest` to `highest` times it, each the same multiple of the one before."""
    return [float(cost) for cost in np.geomspace(lowest * C, highest * C, values)]


def _measure_path(folder: Path, costs: list[float], limit: float | None) -> Measurement:
    return Measurement(**ask(TASKS, "path", folder, THREADS, limit, form=DENSE, costs=costs))


def compare(shares: tuple[int, float, float], settings: Settings, say: Say) -> Findings:
    """Path and fits, and the steps of the fastest path, on every problem; `shares` as for `costs_around`."""
    found = Findings()
    for name in settings.problems:
        problem = kernels.load("kernel", name, settings.quick)
        costs = costs_around(problem.C, *shares)
        path = f"path of {len(costs)} C, {costs[0]:.4g} .. {costs[-1]:.4g}"
        with stored(problem) as folder:
            exact = Entrant(EXACT.name, DENSE)
            measures: dict[str, Callable[[], Measurement]] = {
                f"fit from scratch, C = {C:.4g}": partial(measure_fit, folder, "kernel", exact, settings.limit, C=C)
                for C in costs
            }
            measures = {path: partial(_measure_path, folder, costs, settings.limit), **measures}
            runs, unfinished = runs_in_turns(name, measures, settings, say)
        best = {training: fastest(of) for training, of in runs.items()}
        alone = [run.wall for training, run in best.items() if training != path]
        found.add(
            rows=[_row(name, training, len(runs[training]), run, alone) for training, run in best.items()],
            steps=[Step(problem=name, **step) for step in best[path].extra["steps"]] if path in best else [],
            unfinished=unfinished,
        )
    return found


def _row(problem: str, training: str, runs: int, best: Measurement, alone: list[float]) -> Row:
    dual = best.dual if isinstance(best, KernelRun) else best.extra["steps"][-1]["dual"]
    ratios = (best.wall / np.mean(alone).item(), best.wall / max(alone)) if alone else (None, None)
    return Row(problem, training, runs, best.wall, best.cpu, *ratios, dual, dict(best.extra["breakdown"]))


def run(settings: Settings, say: Say) -> Findings:
    chosen = settings.options
    found = compare((chosen.values, chosen.lowest, chosen.highest), settings, say)
    rows = found.rows["rows"]
    found.tables = [
        of_rows(f"A path of costs against a fit at each of them, {THREADS} threads, wall seconds", COLUMNS, rows),
        of_rows("The steps of the fastest path", STEP_COLUMNS, found.rows["steps"]),
        of_breakdowns("Where the time goes, thread-seconds", rows, "training"),
    ]
    return found


STUDY = Comparison(
    name="path",
    title="A path of costs with the exact kernel solver, against separate fits",
    datasets=tuple(KERNEL),
    default_datasets=("usps", "letter"),
    quick_datasets=("letter",),
    run=run,
    libraries=("larank", "numpy", "scipy"),
    options={
        "--values": {"type": int, "default": VALUES, "help": "how many values of C"},
        "--lowest": {"type": float, "default": LOWEST, "help": "the first, over the problem's C; 1/30"},
        "--highest": {"type": float, "default": HIGHEST, "help": "the last, over the problem's C; 3"},
    },
)
