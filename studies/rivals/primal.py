"""`python -m studies primal-rivals`: the primal multiclass SVM, to the objective of LogisticRegression in less time."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from studies import datasets, storage
from studies.datasets import LOGISTIC
from studies.measure import TimeoutExceededError, ask
from studies.rivals import libraries, linearruns, objectives
from studies.rivals.contest import ONCE_ABOVE, Entrant, beside_before, entrants, fastest, least, runs_in_turns
from studies.rivals.libraries.solver import CSR, DENSE
from studies.rivals.linearruns import TASKS, LinearRun
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import column, derived, of_breakdowns, of_rows

OURS = "larank"
BAR = 1 / 2
THREADS = os.cpu_count() or 1
QUICK_TRAIN, QUICK_TEST = 2_000, 500
QUICK_STEP = 4
"""In the quick form, only every so manyth tolerance."""


# ---- Problems and runs ----


@dataclass(frozen=True)
class Problem:
    """Training examples in float32, dense or CSR, and a C."""

    name: str
    X: Any
    y: NDArray[np.int64]
    C: float

    @property
    def form(self) -> str:
        return CSR if sparse.issparse(self.X) else DENSE

    def objective(self, W: NDArray[np.float64]) -> float:
        """Of weights with the biases in their last column, in double precision."""
        return objectives.multinomial(W, self.X, self.y, self.C)


@dataclass(frozen=True)
class Try:
    """An entrant with a tolerance of its own."""

    entrant: Entrant
    tolerance: float

    def __str__(self) -> str:
        return f"{self.entrant}, tol={self.tolerance:g}"


def load(name: str, quick: bool) -> Problem:
    data = datasets.load_small(name, LOGISTIC, QUICK_TRAIN, QUICK_TEST) if quick else datasets.load(name, LOGISTIC)
    return Problem(name, data.X_train, data.y_train, LOGISTIC[name].C)


def stored(problem: Problem) -> AbstractContextManager[Path]:
    arrays = {f"X_train_{problem.form}": problem.X, "y_train": problem.y}
    return storage.stored(problem.name, arrays, {"C": problem.C, "gamma": 1.0, "dtype": "float32"})


def measure_fit(folder: Path, form: str, tried: Try, limit: float | None) -> LinearRun:
    asked = {"form": form, "tolerance": tried.tolerance}
    return linearruns.measure("fit_linear", "logistic", folder, tried.entrant, THREADS, limit, **asked)


# ---- What is told ----


@dataclass(frozen=True)
class Row:
    """A rival with a tolerance, and ours with the largest tolerance that gets at least as low; seconds are the least.

    Ours is None where no tolerance does. `runs` counts the rival's: a slow one has a single run.
    """

    problem: str = column("problem")
    solver: str = column("solver")
    tolerance: float = column("tol", "g")
    iterations: int = column("iterations")
    runs: int = column("runs")
    wall: float = column("wall s", ".3f")
    cpu: float = column("CPU s", ".3f")
    objective: float = column("primal", ".3f")
    our_tolerance: float | None = column("larank, tol", "g", default=None)
    our_wall: float | None = column("wall s ", ".3f", default=None)
    our_cpu: float | None = column("CPU s ", ".3f", default=None)
    our_objective: float | None = column("primal ", ".3f", default=None)

    @derived("over rival", ".3f")
    def ratio(self) -> float | None:
        return None if self.our_wall is None else self.our_wall / self.wall

    @derived("over rival, CPU", ".3f")
    def cpu_ratio(self) -> float | None:
        return None if self.our_cpu is None else self.our_cpu / self.cpu


@dataclass(frozen=True)
class Bound:
    """What the time of ours consists of: its passes, their seconds, and those of the bare products with X."""

    problem: str = column("problem")

    @derived("training")
    def solver(self) -> str:
        return f"{OURS}, tol={self.tolerance:g}"

    tolerance: float
    megabytes: float = column("X, MB", ".0f")
    evaluations: int = column("evaluations")
    products: int = column("products")
    evaluation: float = column("s per evaluation", ".4f")
    product: float = column("s per product", ".4f")
    bare: float = column("X W and X'G, s", ".4f")

    @derived("GB/s of X", ".1f")
    def gigabytes(self) -> float:
        """Of X, read per second of a product with the Hessian."""
        return self.megabytes / 1e3 / self.product

    train: float = column("train s", ".3f")

    @derived("share in passes", ".2f")
    def share(self) -> float:
        """Of the training time, in passes."""
        return (self.evaluations * self.evaluation + self.products * self.product) / self.train

    breakdown: Mapping[str, float]


# ---- One problem ----

Runs = dict[Try, list[LinearRun]]


@dataclass(frozen=True)
class _Contest:
    """One problem, stored for the children."""

    problem: Problem
    folder: Path
    scope: Scope
    say: Say
    found: Findings

    def measure(self, tried: Try) -> LinearRun:
        return measure_fit(self.folder, self.problem.form, tried, self.scope.limit)

    def in_turns(self, tries: Iterable[Try], repeats: int) -> Runs:
        measures = {tried: partial(self.measure, tried) for tried in tries}
        return runs_in_turns(self.found, self.problem.name, measures, replace(self.scope, repeats=repeats), self.say)

    def tolerances(self, solver: str) -> tuple[float, ...]:
        """Those it is run with, from loose to tight."""
        known = libraries.LOGISTIC[solver].tolerances
        return known[::-QUICK_STEP][::-1] if self.scope.quick else known

    def ladder(self, target: float) -> dict[float, LinearRun]:
        """Runs of ours by tolerance, from the loosest to the first that gets no higher than the target."""
        found: dict[float, LinearRun] = {}
        for tolerance in self.tolerances(OURS):
            tried = Try(Entrant(OURS), tolerance)
            try:
                run = found[tolerance] = self.measure(tried)
            except TimeoutExceededError as exceeded:
                self.say(f"{self.problem.name}: {tried}: {exceeded}")
                break
            reached = self.problem.objective(run.W)
            self.say(f"{self.problem.name}: {tried}: {run.wall:.2f} s, primal {reached:.3f}")
            if reached <= target:
                break
        return found

    def more(self, runs: Runs, tries: Iterable[Try]) -> None:
        """The other runs of these and of the rivals, in turns, except of what is slow."""
        slow = {tried for tried, some in runs.items() if fastest(some).wall > self.scope.once_above}
        waiting = [tried for tried in dict.fromkeys((*runs, *tries)) if tried not in slow]
        for tried, some in self.in_turns(waiting, self.scope.repeats - 1).items():
            runs.setdefault(tried, []).extend(some)


def enough(ladder: Mapping[float, float], target: float) -> float | None:
    """The largest tolerance whose objective is no higher than the target."""
    return max((tolerance for tolerance, reached in ladder.items() if reached <= target), default=None)


def _compare(contest: _Contest, takers: Sequence[Entrant]) -> None:
    """The rivals once, ours with ever smaller tolerances, and then in turns the rivals and what ours needs."""
    found, problem = contest.found, contest.problem
    rivals = [taker for taker in takers if taker.solver != OURS]
    runs = contest.in_turns([Try(taker, tol) for taker in rivals for tol in contest.tolerances(taker.solver)], 1)
    if not runs:
        return
    targets = {tried: problem.objective(run.W) for tried, (run,) in runs.items()}
    ladder = contest.ladder(min(targets.values()))
    reached = {tolerance: problem.objective(run.W) for tolerance, run in ladder.items()}
    needed = {tried: enough(reached, target) for tried, target in targets.items()}
    wanted = sorted({tol for tol in needed.values() if tol is not None}, reverse=True)
    runs |= {Try(Entrant(OURS), tol): [ladder[tol]] for tol in wanted}
    contest.more(runs, [Try(taker, tol) for taker in takers if taker.python for tol in wanted[-1:]])
    found.add(rows=[_row(problem.name, tried, runs, targets[tried], needed[tried], reached) for tried in targets])
    if wanted:
        at_last = {taker: runs.get(Try(taker, wanted[-1]), []) for taker in takers if taker.solver == OURS}
        passes = ask(TASKS, "passes", contest.folder, THREADS, None, form=problem.form)
        bound = _bound(problem.name, wanted[-1], fastest(at_last[Entrant(OURS)]), passes)
        measured = {taker: some for taker, some in at_last.items() if some}
        found.add(bounds=[bound], before=beside_before(problem.name, measured))


def _row(
    problem: str, tried: Try, runs: Runs, target: float, tolerance: float | None, ladder: Mapping[float, float]
) -> Row:
    theirs = runs[tried]
    ours = runs.get(Try(Entrant(OURS), tolerance), []) if tolerance is not None else []
    iterations = int(theirs[0].extra["iterations"])
    their_figures = *least(theirs, "wall", "cpu"), target
    our_figures = (tolerance, *least(ours, "wall", "cpu"), ladder[tolerance]) if ours and tolerance is not None else ()
    return Row(*(problem, tried.entrant.name, tried.tolerance, iterations, len(theirs)), *their_figures, *our_figures)


def _bound(problem: str, tolerance: float, run: LinearRun, passes: Mapping[str, float]) -> Bound:
    return Bound(
        problem,
        tolerance,
        megabytes=passes["bytes"] / 1e6,
        **{name: int(run.extra["operations"][name]) for name in ("evaluations", "products")},
        **{name: passes[name] for name in ("evaluation", "product", "bare")},
        train=run.wall,
        breakdown=run.extra["breakdown"],
    )


# ---- All of them ----


def judged(rows: Sequence[Row]) -> list[Claim]:
    """Return how ours stands to the faster of the rivals at their default tolerance, on each problem."""
    default = {name: solver.tolerances[-1] for name, solver in libraries.LOGISTIC.items()}
    claims = []
    for problem in dict.fromkeys(row.problem for row in rows):
        usual = [row for row in rows if row.problem == problem and row.tolerance == default[row.solver]]
        if not usual:
            claims.append(Claim(f"{problem}: no rival came to its default tolerance", math.nan, most=BAR))
            continue
        best = min(usual, key=lambda row: row.wall)
        if best.ratio is None or best.cpu_ratio is None:
            said = f"{problem}: {OURS} does not come to the primal of {best.solver} at tol={best.tolerance:g}"
            claims.append(Claim(said, math.inf, most=BAR))
            continue
        said = (
            f"{problem}: {OURS} takes {best.ratio:.3f} ({best.cpu_ratio:.3f} in CPU seconds) of {best.solver}'s time "
            f"to the primal it has at tol={best.tolerance:g}"
        )
        claims.append(Claim(said, best.ratio, most=BAR, also=best.cpu_ratio))
    return claims


NOTES = (
    f"Multinomial logistic regression with free biases, C = 1, float32, {THREADS} threads, as each library takes them. "
    "The primal is computed from everybody's weights by the same code in float64. LogisticRegression stops by tol, "
    "whose default is 1e-4; its default limit of 100 iterations is lifted. Ours: defaults, with the largest tol, the "
    "relative duality gap, whose primal is no higher. Wall and CPU seconds: the least of the runs, in turns.",
    "What bounds the time: a pass reads X once and makes of each row its scores and its part of the gradient; these "
    "are the bare products X W and X'G, with the loss between them. GB/s of X is of a product with the Hessian. Passes "
    "are timed apart from training; what is not in passes are preconditioners, vectors and the checks of X.",
)


def run(scope: Scope, say: Say) -> Findings:
    if OURS not in scope.solvers or len(scope.solvers) < 2:
        raise ValueError(f"--solvers must have {OURS} and a rival of it, got {' '.join(scope.solvers)}")
    found = Findings()
    takers = entrants(scope, libraries.LOGISTIC, say)
    for name in scope.present((), (), say, lambda name: LOGISTIC[name].source):
        problem = load(name, scope.quick)
        with stored(problem) as folder:
            _compare(_Contest(problem, folder, scope, say, found), takers)
    rows, bounds = found.rows["rows"], found.rows["bounds"]
    found.tables = [
        of_rows("Time to the primal objective of LogisticRegression", rows),
        of_rows("What bounds the time", bounds),
        of_breakdowns("Where the time goes, s", [bound for bound in bounds if bound.breakdown], "solver"),
    ]
    found.claims, found.lines = [] if scope.quick else judged(rows), list(NOTES)
    return found


_TITLE = "The primal multiclass SVM against LogisticRegression, to the same objective"
_CHOICES: dict[str, Any] = {"solvers": libraries.LOGISTIC, "limit": 1200.0, "options": {"--once-above": ONCE_ABOVE}}
STUDY = Study("primal-rivals", _TITLE, run, tuple(LOGISTIC), ("news20", "mnist", "covtype"), ("letter",), **_CHOICES)
