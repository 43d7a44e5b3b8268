"""`python -m studies path`: the exact solver for a whole range of C, against a fit from scratch at each of them.

`python -m studies search`: C and gamma by cross-validation on shared kernel values, against a search over fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from studies.datasets import KERNEL
from studies.measure import Measurement, ask
from studies.rivals import kernels
from studies.rivals.contest import ONCE_ABOVE, Entrant, fastest, runs_in_turns
from studies.rivals.kernels import TASKS, THREADS, KernelRun, measure_fit
from studies.rivals.libraries.larank import EXACT
from studies.rivals.libraries.solver import DENSE
from studies.study import Findings, Say, Scope, Study
from studies.tables import column, of_breakdowns, of_rows

# ---- A path ----

LEAST_COST, LARGEST_COST = 1 / 30, 3.0
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
class PathRow:
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


def compare_path(shares: tuple[int, float, float], scope: Scope, say: Say) -> Findings:
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
            rows=[_path_row(problem.name, training, len(runs[training]), run, alone) for training, run in best.items()],
            steps=[Step(problem=problem.name, **step) for step in best[path].extra["steps"]] if path in best else [],
        )
    return found


def _path_row(problem: str, training: str, runs: int, best: Measurement, alone: list[float]) -> PathRow:
    dual = best.dual if isinstance(best, KernelRun) else best.extra["steps"][-1]["dual"]
    ratios = (best.wall / np.mean(alone).item(), best.wall / max(alone)) if alone else (None, None)
    return PathRow(problem, training, runs, best.wall, *ratios, best.cpu, dual, dict(best.extra["breakdown"]))


def run_path(scope: Scope, say: Say) -> Findings:
    chosen = scope.options
    found = compare_path((chosen.values, chosen.lowest, chosen.highest), scope, say)
    rows = found.rows["rows"]
    found.tables = [
        of_rows(f"A path of costs against a fit at each of them, {THREADS} threads, wall seconds", rows),
        of_rows("The steps of the fastest path", found.rows["steps"]),
        of_breakdowns("Where the time goes, thread-seconds", rows, "training"),
    ]
    return found


# ---- A search ----

COSTS, GAMMAS, FOLDS = 8, 3, 5
LOWEST, HIGHEST = 0.1, 1000.0
"""Of the costs; those of gamma lie around the problem's, each three times the one before."""
LIQUID = (10, 10, 5)
"""Costs, gammas and folds of liquidSVM's default grid; gamma from a tenth of the problem's to ten times it."""
SHARED, GRID = "PathSearchCV over MulticlassSVC", "GridSearchCV over MulticlassSVC"
METHODS = {SHARED: "shared", GRID: "grid"}


@dataclass(frozen=True)
class SearchRun(Measurement):
    """One search, with the training of the model it has found; `error` is that model's on the test set."""

    error: float


@dataclass(frozen=True)
class Row:
    """A search: the shortest of its runs. `ratio` is to scikit-learn's, `largest_difference` of mean scores."""

    problem: str = column("problem")
    search: str = column("search")
    runs: int = column("runs")
    train: float = column("seconds", ".2f")
    ratio: float | None = column("ratio", ".3f")
    train_cpu: float = column("CPU s", ".2f")
    C: float = column("C", ".4g")
    gamma: float = column("gamma", ".4g")
    score: float = column("score", ".4f")
    largest_difference: float = column("largest difference of scores", ".4f")
    error: float = column("test error", ".2%")


def compare(
    sizes: tuple[int, int, int],
    scope: Scope,
    say: Say,
    methods: Mapping[str, str] = METHODS,
    examples: int | None = None,
) -> Findings:
    """Searches on every problem, with so many costs, values of gamma and folds, on the first so many examples."""
    costs, gammas, folds = sizes
    found = Findings()
    for problem, folder in kernels.problems("kernel", scope, examples):
        factors = np.geomspace(0.1, 10, gammas) if sizes == LIQUID else 3.0 ** (np.arange(gammas) - (gammas - 1) / 2)
        around = problem.gamma * factors
        grid = {"costs": np.geomspace(LOWEST, HIGHEST, costs).tolist(), "gammas": around.tolist(), "folds": folds}
        asked = partial(ask, TASKS, "search", folder, THREADS, scope.limit, form=DENSE, **grid)
        measures = {
            search: lambda asked=asked, method=method: SearchRun(**asked(method=method))
            for search, method in methods.items()
        }
        runs = runs_in_turns(found, problem.name, measures, scope, say)
        best = {search: fastest(of) for search, of in runs.items()}
        found.add(
            rows=[_row(problem.name, search, len(runs[search]), run, best.get(GRID)) for search, run in best.items()]
        )
    return found


def _row(problem: str, search: str, runs: int, best: SearchRun, grid: SearchRun | None) -> Row:
    told = best.extra
    others = np.array(told["scores"] if grid is None else grid.extra["scores"])
    apart = float(np.abs(np.array(told["scores"]) - others).max())
    ratio = best.wall / grid.wall if grid else None
    chosen = float(told["C"]), float(told["gamma"]), float(told["score"])
    return Row(problem, search, runs, best.wall, ratio, best.cpu, *chosen, apart, best.error)


def run(scope: Scope, say: Say) -> Findings:
    chosen = scope.options
    sizes, methods = (chosen.costs, chosen.gammas, chosen.folds), METHODS
    if chosen.grid == "liquid":
        sizes, methods = LIQUID, {SHARED: METHODS[SHARED]}
    found = compare(sizes, scope, say, methods, chosen.examples)
    title = f"{sizes[0]} C x {sizes[1]} gamma x {sizes[2]} folds and the model, {THREADS} threads"
    found.tables = [of_rows(title, found.rows["rows"])]
    return found


_PATH = "A path of costs with the exact kernel solver, against separate fits"
_PATH_OPTIONS: dict[str, dict[str, Any]] = {
    "--values": {"type": int, "default": VALUES, "help": "how many values of C"},
    "--lowest": {"type": float, "default": LEAST_COST, "help": "the first, over the problem's C; 1/30"},
    "--highest": {"type": float, "default": LARGEST_COST, "help": "the last, over the problem's C; 3"},
}
_SEARCH = "C and gamma by cross-validation on shared kernel values, against a search over separate fits"
_LIQUID = "liquid: liquidSVM's 10 x 10 x 5, without the search over fits, which would take hours"
_OPTIONS: dict[str, dict[str, Any]] = {
    "--costs": {"type": int, "default": COSTS, "help": "how many values of C, from 0.1 to 1000"},
    "--gammas": {"type": int, "default": GAMMAS, "help": "how many values of gamma, around the problem's"},
    "--folds": {"type": int, "default": FOLDS, "help": "how many folds"},
    "--examples": {"type": int, "help": "how many examples to train on, the first of the problem's; all"},
    "--grid": {"choices": ("own", "liquid"), "default": "own", "help": _LIQUID},
    "--once-above": ONCE_ABOVE,
}
_DATASETS = tuple(KERNEL), ("usps", "letter"), ("letter",)
STUDIES = (
    Study("path", _PATH, run_path, *_DATASETS, limit=3600.0, options=_PATH_OPTIONS),
    Study("search", _SEARCH, run, *_DATASETS, limit=3600.0, options=_OPTIONS),
)
