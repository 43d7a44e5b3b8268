"""`python -m studies search`: C and gamma by cross-validation on shared kernel values, against a search over fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from studies.datasets import KERNEL
from studies.measure import Measurement, ask
from studies.rivals import kernels
from studies.rivals.contest import ONCE_ABOVE, fastest, runs_in_turns
from studies.rivals.kernels import TASKS, THREADS
from studies.rivals.libraries.solver import DENSE
from studies.study import Findings, Say, Scope, Study
from studies.tables import column, of_rows

COSTS, GAMMAS, FOLDS = 8, 3, 5
LOWEST, HIGHEST = 0.1, 1000.0
"""Of the costs; those of gamma lie around the problem's, each three times the one before."""
LIQUID = (10, 10, 5)
"""Costs, gammas and folds of liquidSVM's default grid; gamma from a tenth of the problem's to ten times it."""
SHARED, GRID = "MulticlassSVCCV", "GridSearchCV over MulticlassSVC"
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


STUDY = Study(
    name="search",
    title="C and gamma by cross-validation on shared kernel values, against a search over separate fits",
    datasets=tuple(KERNEL),
    default_datasets=("usps", "letter"),
    quick_datasets=("letter",),
    run=run,
    limit=3600.0,
    options={
        "--costs": {"type": int, "default": COSTS, "help": "how many values of C, from 0.1 to 1000"},
        "--gammas": {"type": int, "default": GAMMAS, "help": "how many values of gamma, around the problem's"},
        "--folds": {"type": int, "default": FOLDS, "help": "how many folds"},
        "--examples": {"type": int, "help": "how many examples to train on, the first of the problem's; all"},
        "--grid": {
            "choices": ("own", "liquid"),
            "default": "own",
            "help": "liquid: liquidSVM's 10 x 10 x 5, without the search over fits, which would take hours",
        },
        "--once-above": ONCE_ABOVE,
    },
)
