"""`python -m studies linear`: time to a primal objective near the optimum, for all linear multiclass solvers.

`python -m studies threads`: ours with one thread and with two, to the same gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from studies.datasets import LINEAR
from studies.measure import TimeoutExceededError, ask
from studies.rivals import libraries, linearruns, objectives, optimum
from studies.rivals.contest import Bars, Entrant, beside_before, chosen, entrants, judge, least, taken
from studies.rivals.libraries.solver import LinearSolver
from studies.rivals.linearruns import TASKS, LinearRun, Problem, measure_epoch, measure_fit, stored
from studies.rivals.optimum import OURS, Optimum
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import Columns, column, derived, item, of_rows

Optima = dict[str, dict[str, Optimum]]
"""By problem and formulation."""
PRECISIONS = ("float64", "float32")
TARGET = 1e-3
STRIDE = 3  # first every third tolerance, then those skipped before the first that sufficed


@dataclass(frozen=True)
class Row:
    """One solver on one problem, at the loosest tolerance that meets the target, else the tightest run.

    `over` are its CPU seconds over those of larank with the same objective, by the precision of larank's data.
    """

    problem: str = column("problem")
    formulation: str = column("objective")
    solver: str = column("solver")
    dtype: str = column("data")
    tolerance: float
    reached: bool
    cpu: float = column("CPU s", ".3f")
    wall: float = column("wall s", ".3f")
    over: Mapping[str, float]
    primal: float = column("primal", ".3f")
    suboptimality: float = column("off by", ".1e")
    gap: float = column("gap", ".2e")
    error: float = column("test error %", ".2f", 100)
    peak: int = column("peak MB", ".0f", 1e-6)
    peak_without_input: int = column("own MB", ".0f", 1e-6)
    conversion: float


@dataclass(frozen=True)
class Epoch:
    """CPU seconds of one full loop of larank and of X @ W by scipy."""

    problem: str = column("problem")
    dtype: str = column("data")
    epoch: float = column("larank, one epoch, s", ".4f")
    product: float = column("scipy X @ W, s", ".4f")

    @derived("ratio", ".2f")
    def ratio(self) -> float:
        return self.epoch / self.product


ROW_COLUMNS: Columns = {
    **chosen(Row, "problem", "objective", "solver", "data"),
    "tolerance": lambda row: f"{row.tolerance:g}" + ("" if row.reached else " (missed)"),
    **chosen(Row, "CPU s", "wall s"),
    **{f"over {dtype}": item("over", dtype, ".2f") for dtype in PRECISIONS},
    **chosen(Row, "primal", "off by", "gap", "test error %", "peak MB", "own MB"),
}
BARS: Bars = {
    (problem, "liblinear-s4"): bar
    for problem, bar in {"news20": 1 / 3.3, "reuters_r52": 1 / 3.3, "covtype": 1 / 5.5, "mnist": 1 / 4}.items()
}
EPOCH_BARS = {"covtype": 4.0}
"""What one full loop may take at most, in bare products."""
WHAT_BOUNDS_THE_TIME = (
    "What bounds larank's time (perf, sampled by CPU clock): memory on text, work on short rows. news20 and "
    "reuters_r52: fetching the rows of W (6 to 14 MB, two to seven cache lines per stored value) from L3 for the "
    "scores of an example, half of the time; the update finds the same rows in L1. mnist: scores 30 %, fetching "
    "examples 20 %, updates 20 %, row QPs 10 %. covtype, 12 values in a row: row QPs a third, fetching examples and "
    "their coefficients a fifth, keeping coefficients a fifth, scores and updates a sixth. The visits needed are "
    "bounded by the convergence of dual coordinate descent: 12 to 15 per example on text, 15 on covtype, 130 on "
    "mnist, where C |x|^2 is near 100 and coefficients are moved on between loops (280 without)."
)


# ---- The loosest tolerance that meets the target ----


@dataclass(frozen=True)
class Attempt:
    """Runs with one tolerance: the objective the first gave, and whether that is good enough."""

    tolerance: float
    primal: float
    suboptimality: float
    reached: bool
    runs: list[LinearRun]

    @property
    def best(self) -> LinearRun:
        return min(self.runs, key=lambda run: run.cpu)


@dataclass(frozen=True)
class Contestant:
    """One solver on one problem, whose training set is stored in `folder`."""

    entrant: Entrant
    solver: LinearSolver
    problem: Problem
    optimum: Optimum
    folder: Path
    target: float
    limit: float
    say: Say

    def run(self, tolerance: float, limit: float | None = None) -> LinearRun:
        return measure_fit(self.folder, self.entrant, tolerance, limit)

    def attempt(self, tolerance: float) -> Attempt | None:
        """Train and evaluate once; None when that took too long."""
        label = f"{self.problem.name}: {self.entrant} at {tolerance:g}"
        try:
            run = self.run(tolerance, self.limit)
        except TimeoutExceededError as exceeded:
            self.say(f"{label} {exceeded}")
            return None
        X, y, C = self.problem.X_train, self.problem.y_train, self.problem.C
        primal = objectives.primal(self.solver.formulation, run.W, X, y, C)
        self.optimum.check(primal, self.entrant.name)
        distance = self.optimum.suboptimality(primal)
        self.say(f"{label} {run.cpu:.2f} s, {distance:.2e} off")
        return Attempt(tolerance, primal, distance, distance <= self.target, [run])


def sweep(contestant: Contestant) -> Attempt | None:
    """Tighten the tolerance until the target is met or a run exceeds the limit; None if the first does."""
    tolerances = contestant.solver.tolerances
    missed: Attempt | None = None
    for position in range(0, len(tolerances), STRIDE):
        latest = contestant.attempt(tolerances[position])
        if latest is None or latest.reached:
            break
        missed = latest
    else:
        return missed
    for tolerance in tolerances[max(0, position - STRIDE + 1) : position]:
        between = contestant.attempt(tolerance)
        if between is None or between.reached:
            return between or latest or missed
        missed = between
    return latest or missed


# ---- Contests ----

Contest = tuple[Contestant, Attempt]
"""A contestant, and where its sweep ended."""


def compare(dtypes: Sequence[str], target: float, scope: Scope, say: Say) -> tuple[Findings, Optima]:
    """Run all contests, problem by problem: ours in each precision, others in the first, for they have one."""
    found, optima = Findings(), {}
    takers = sorted(entrants(scope, libraries.LINEAR, say), key=_formulation)
    ready = partial(Contestant, target=target, limit=scope.limit, say=say)
    for name in scope.datasets:
        problem = linearruns.load(name, scope.quick)
        optima[name] = {}
        for formulation in dict.fromkeys(map(_formulation, takers)):
            say(f"{name}: optimum, {formulation}")
            of = optimum.compute if scope.quick else optimum.find
            optima[name][formulation] = of(problem, formulation, scope.limit)
        with ExitStack() as stack:
            folders = {dtype: stack.enter_context(stored(problem, dtype)) for dtype in dtypes}
            contestants = [
                ready(replace(taker, form=dtype), solver, problem, optima[name][solver.formulation], folder)
                for taker in takers
                for solver in [libraries.LINEAR[taker.solver]]
                for dtype, folder in folders.items()
                if solver.is_ours or dtype == dtypes[0]
            ]
            contests = _contests(contestants, scope.repeats)
            found.add(
                rows=_rows(contests),
                before=beside_before(name, {contestant.entrant: ended.runs for contestant, ended in contests}),
            )
            if OURS["crammer-singer"] in scope.solvers:
                say(f"{name}: one epoch")
                found.add(epochs=[Epoch(name, dtype, **measure_epoch(folder)) for dtype, folder in folders.items()])
    return found, optima


def _formulation(entrant: Entrant) -> str:
    return libraries.LINEAR[entrant.solver].formulation


def _contests(contestants: Iterable[Contestant], repeats: int) -> list[Contest]:
    """Sweeps one after the other, then the remaining runs in turns; a sweep's last run is the first of n."""
    swept = ((contestant, sweep(contestant)) for contestant in contestants)
    contests = [(contestant, attempt) for contestant, attempt in swept if attempt is not None]
    for _ in range(repeats - 1):
        for contestant, attempt in contests:
            if attempt.reached:
                attempt.runs.append(contestant.run(attempt.tolerance))
    return contests


def _rows(contests: Sequence[Contest]) -> list[Row]:
    """One for each contest, its time over those of ours that reached the target."""
    ours: dict[str, dict[str, float]] = {}
    for contestant, attempt in contests:
        entrant, formulation = contestant.entrant, contestant.solver.formulation
        if attempt.reached and entrant.name == OURS[formulation]:
            ours.setdefault(formulation, {})[entrant.form] = attempt.best.cpu
    return [_row(*contest, ours.get(contest[0].solver.formulation, {})) for contest in contests]


def _row(contestant: Contestant, attempt: Attempt, ours: Mapping[str, float]) -> Row:
    taker, solver, problem = contestant.entrant, contestant.solver, contestant.problem
    best = attempt.best
    return Row(
        *(problem.name, solver.formulation, taker.name, taker.form, attempt.tolerance, attempt.reached, best.cpu),
        wall=least(attempt.runs, "wall"),
        over={dtype: best.cpu / seconds for dtype, seconds in ours.items()},
        **taken(attempt, "primal", "suboptimality"),
        gap=attempt.primal - best.extra.get("dual", contestant.optimum.lower),
        error=objectives.error(best.W, problem.X_test, problem.y_test),
        peak=least(attempt.runs, "peak"),
        peak_without_input=min(run.own_peak(solver.copies_input) for run in attempt.runs),
        conversion=best.extra.get("conversion_cpu", 0.0),
    )


def optima_lines(optima: Optima) -> list[str]:
    return [
        f"{problem}, {formulation}: optimum in [{known.lower:.4f}, {known.upper:.4f}], LIBLINEAR, tight: "
        + ("over the time limit" if known.confirmed is None else f"{known.confirmed:.4f}")
        for problem, found in optima.items()
        for formulation, known in found.items()
    ]


def judged(rows: Sequence[Row], epochs: Sequence[Epoch]) -> list[Claim]:
    claims = []
    for dtype in PRECISIONS:
        shares: dict[str, dict[str, float]] = {}
        for row in rows:
            if row.reached and row.over.get(dtype):
                shares.setdefault(row.problem, {})[row.solver] = 1 / row.over[dtype]
        claims += judge(f"{OURS['crammer-singer']} in {dtype}", shares, BARS)
    said = "{0.problem}: one epoch in {0.dtype} takes {0.ratio:.2f} bare products"
    return claims + [
        Claim(said.format(epoch), epoch.ratio, most=EPOCH_BARS[epoch.problem])
        for epoch in epochs
        if epoch.problem in EPOCH_BARS
    ]


def run(scope: Scope, say: Say) -> Findings:
    dtypes, target = scope.options.dtypes, scope.options.target
    found, optima = compare(dtypes, target, scope, say)
    found.others["optima"] = optima
    rows, epochs = found.rows["rows"], found.rows["epochs"]
    found.tables = [
        of_rows(f"Time to a primal objective within {target:g} of the optimum, one thread", rows, ROW_COLUMNS),
        of_rows("One epoch, CPU seconds", epochs),
    ]
    found.claims = [] if scope.quick or target != TARGET else judged(rows, epochs)
    found.lines = [*optima_lines(optima), WHAT_BOUNDS_THE_TIME]
    return found


# ---- One thread and two ----

THREADS = 2
THREADS_BARS = {"covtype": 0.65, "news20": 0.65, "mnist": 0.8}
"""The time of two threads over that of one."""


@dataclass(frozen=True)
class Threads:
    """Fits of one seed after another, both numbers of threads in turns in one process: the least wall seconds of each
    number, and the mean passes of all its fits."""

    problem: str = column("problem")
    dtype: str = column("data")
    alone: float = column("one thread, s", ".3f")
    together: float = column("two threads, s", ".3f")

    @derived("ratio", ".2f")
    def ratio(self) -> float:
        return self.together / self.alone

    passes_alone: float = column("passes", ".1f")
    passes_together: float = column("passes of two", ".1f")
    gap: float = column("largest relative gap", ".1e")


def run_threads(scope: Scope, say: Say) -> Findings:
    found = Findings()
    for name in scope.datasets:
        problem = linearruns.load(name, scope.quick)
        for dtype in PRECISIONS:
            say(f"{name}: {dtype}")
            with stored(problem, dtype) as folder:
                measured = ask(TASKS, "threads", folder, THREADS, scope.limit, repeats=scope.repeats)
            found.add(rows=[Threads(name, dtype, **measured)])
    rows = found.rows["rows"]
    found.tables = [of_rows("One thread and two, to a relative gap of 0.001, C = 1, no intercept", rows)]
    if not scope.quick:
        said = "{0.problem}: two threads take {0.ratio:.2f} of the time of one in {0.dtype}"
        found.claims = [
            Claim(said.format(row), row.ratio, most=THREADS_BARS[row.problem])
            for row in rows
            if row.problem in THREADS_BARS
        ]
    return found


_LINEAR = "Linear multiclass SVMs against LIBLINEAR, scikit-learn and Snap ML"
_CHOICES: dict[str, Any] = {"solvers": libraries.LINEAR, "libraries": ("liblinear-official", "snapml"), "limit": 600.0}
_DTYPES = "of the data handed to larank; other libraries are given the first"
_OPTIONS: dict[str, dict[str, Any]] = {
    "--dtypes": {"nargs": "+", "choices": PRECISIONS, "default": PRECISIONS, "help": _DTYPES},
    "--target": {"type": float, "default": TARGET, "help": "relative distance to the optimum to reach"},
}
_DEFAULT = ("news20", "reuters_r52", "mnist", "covtype")
_THREADS = "The linear multiclass solver with one thread and with two"
STUDIES = (
    Study("linear", _LINEAR, run, tuple(LINEAR), _DEFAULT, ("letter",), **_CHOICES, options=_OPTIONS),
    Study("threads", _THREADS, run_threads, tuple(LINEAR), tuple(THREADS_BARS), ("letter",), limit=600.0),
)
