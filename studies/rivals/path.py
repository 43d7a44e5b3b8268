"""`python -m studies path`: the exact solver for a whole range of C, against a fit from scratch at each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from studies.datasets import KERNEL
from studies.measure import Measurement, ask
from studies.rivals import kernels
from studies.rivals.contest import Entrant, fastest, runs_in_turns
from studies.rivals.kernels import TASKS, THREADS, KernelRun, measure_fit
from studies.rivals.libraries.larank import EXACT
from studies.rivals.libraries.solver import DENSE
from studies.study import Findings, Say, Scope, Study
from studies.tables import column, of_breakdowns, of_rows

LOWEST, HIGHEST = 1 / 30, 3.0
VALUES = 10


@dataclass(frozen=True)
class Step:
    """One value of C on a path: what it took after the one before."""

    problem: str = column("problem")
    C: float = column("C", ".4g")
    seconds: float = column("seconds", ".3f")
    dual: float = column("dual", ".2f")
    relative_gap: float = column("relative gap", ".1e")
    support_patterns: int = column("patterns")


@dataclass(frozen=True)
class Row:
    """A path, or a fit at one of its C: the shortest of its runs.

    `ratio` is to the mean of the fits, `ratio_to_most` to that which takes longest.
    """

    problem: str = column("problem")
    training: str = column("training")
    runs: int = column("runs")
    train: float = column("train s", ".3f")
    ratio: float | None = column("over the mean fit", ".2f")
    ratio_to_most: float | None = column("over the longest fit", ".2f")
    train_cpu: float = column("train CPU s", ".3f")
    dual: float = column("dual at the largest C", ".2f")
    breakdown: dict[str, float]


def costs_around(C: float, values: int, lowest: float, highest: float) -> list[float]:
    """So many values of C from `lowest` to `highest` times it, each the same multiple of the one before."""
    return [float(cost) for cost in np.geomspace(lowest * C, highest * C, values)]


def compare(shares: tuple[int, float, float], scope: Scope, say: Say) -> Findings:
    """Path and fits, and the steps of the fastest path, on every problem; `shares` as for `costs_around`."""
    found = Findings()
    for problem, folder in kernels.problems("kernel", scope):
        costs = costs_around(problem.C, *shares)
        path = f"path of {len(costs)} C, {costs[0]:.4g} .. {costs[-1]:.4g}"
        asked = partial(ask, TASKS, "path", folder, THREADS, scope.limit, form=DENSE, costs=costs)
        measures: dict[str, Callable[[], Measurement]] = {path: lambda asked=asked: Measurement(**asked())}
        for C in costs:
            fit = partial(measure_fit, folder, "kernel", Entrant(EXACT.name, DENSE), scope.limit, C=C)
            measures[f"fit from scratch, C = {C:.4g}"] = fit
        runs = runs_in_turns(found, problem.name, measures, scope, say)
        best = {training: fastest(of) for training, of in runs.items()}
        alone = [run.wall for training, run in best.items() if training != path]
        found.add(
            rows=[_row(problem.name, training, len(runs[training]), run, alone) for training, run in best.items()],
            steps=[Step(problem=problem.name, **step) for step in best[path].extra["steps"]] if path in best else [],
        )
    return found


def _row(problem: str, training: str, runs: int, best: Measurement, alone: list[float]) -> Row:
    dual = best.dual if isinstance(best, KernelRun) else best.extra["steps"][-1]["dual"]
    ratios = (best.wall / np.mean(alone).item(), best.wall / max(alone)) if alone else (None, None)
    return Row(problem, training, runs, best.wall, *ratios, best.cpu, dual, dict(best.extra["breakdown"]))


def run(scope: Scope, say: Say) -> Findings:
    chosen = scope.options
    found = compare((chosen.values, chosen.lowest, chosen.highest), scope, say)
    rows = found.rows["rows"]
    found.tables = [
        of_rows(f"A path of costs against a fit at each of them, {THREADS} threads, wall seconds", rows),
        of_rows("The steps of the fastest path", found.rows["steps"]),
        of_breakdowns("Where the time goes, thread-seconds", rows, "training"),
    ]
    return found


STUDY = Study(
    name="path",
    title="A path of costs with the exact kernel solver, against separate fits",
    datasets=tuple(KERNEL),
    default_datasets=("usps", "letter"),
    quick_datasets=("letter",),
    run=run,
    limit=3600.0,
    options={
        "--values": {"type": int, "default": VALUES, "help": "how many values of C"},
        "--lowest": {"type": float, "default": LOWEST, "help": "the first, over the problem's C; 1/30"},
        "--highest": {"type": float, "default": HIGHEST, "help": "the last, over the problem's C; 3"},
    },
)
