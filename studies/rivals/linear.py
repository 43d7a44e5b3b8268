"""`python -m studies linear`: time to a primal objective near the optimum, for all linear multiclass solvers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from studies.datasets import LINEAR
from studies.rivals import libraries, linearruns, objectives, optimum
from studies.rivals.contest import Bars, Entrant, beside_before, entrants, judge
from studies.rivals.linearruns import LinearRun, Problem, measure_epoch, stored
from studies.rivals.optimum import OURS, Optimum
from studies.rivals.sweep import Attempt, Contestant, sweep
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import Columns, column, derived, figure, item, of_rows

Optima = dict[str, dict[str, Optimum]]
"""By problem and formulation."""
PRECISIONS = ("float64", "float32")
TARGET = 1e-3


@dataclass(frozen=True)
class Row:
    """One solver on one problem, at the loosest tolerance that meets the target, else the tightest run.

    `over` are its CPU seconds over those of larank with the same objective, by the precision of larank's data.
    """

    problem: str
    formulation: str
    solver: str
    dtype: str
    tolerance: float
    reached: bool
    cpu: float
    wall: float
    over: Mapping[str, float]
    primal: float
    suboptimality: float
    gap: float
    error: float
    peak: int
    peak_without_input: int
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
    "problem": figure("problem"),
    "objective": figure("formulation"),
    "solver": figure("solver"),
    "data": figure("dtype"),
    "tolerance": lambda row: f"{row.tolerance:g}" + ("" if row.reached else " (missed)"),
    "CPU s": figure("cpu", ".3f"),
    "wall s": figure("wall", ".3f"),
    **{f"over {dtype}": item("over", dtype, ".2f") for dtype in PRECISIONS},
    "primal": figure("primal", ".3f"),
    "off by": figure("suboptimality", ".1e"),
    "gap": figure("gap", ".2e"),
    "test error %": figure("error", ".2f", 100),
    "peak MB": figure("peak", ".0f", 1e-6),
    "own MB": figure("peak_without_input", ".0f", 1e-6),
}
BARS: Bars = {
    ("news20", "liblinear-s4"): 1 / 3.3,
    ("reuters_r52", "liblinear-s4"): 1 / 3.3,
    ("covtype", "liblinear-s4"): 1 / 5.5,
    ("mnist", "liblinear-s4"): 1 / 4,
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


@dataclass(frozen=True)
class Contest:
    """Where a contestant's sweep ended, and all its runs at that tolerance."""

    contestant: Contestant
    attempt: Attempt
    runs: list[LinearRun]

    @property
    def best(self) -> LinearRun:
        return min(self.runs, key=lambda run: run.cpu)


def compare(dtypes: Sequence[str], target: float, scope: Scope, say: Say) -> tuple[Findings, Optima]:
    """Run all contests, problem by problem: ours in each precision, others in the first, for they have one."""
    found, optima = Findings(), {}
    takers = sorted(entrants(scope, libraries.LINEAR, say), key=_formulation)
    for name in scope.datasets:
        problem = linearruns.load(name, scope.quick)
        optima[name] = _optima(problem, takers, scope, say)
        with ExitStack() as stack:
            folders = {dtype: stack.enter_context(stored(problem, dtype)) for dtype in dtypes}
            contestants = [
                _contestant(replace(taker, form=dtype), problem, optima[name], folder, target, scope, say)
                for taker in takers
                for dtype, folder in folders.items()
                if libraries.LINEAR[taker.solver].is_ours or dtype == dtypes[0]
            ]
            contests = _contests(contestants, scope.repeats)
            found.add(
                rows=_rows(contests),
                before=beside_before(name, {contest.contestant.entrant: contest.runs for contest in contests}),
            )
            if OURS["crammer-singer"] in scope.solvers:
                say(f"{name}: one epoch")
                found.add(epochs=[Epoch(name, dtype, **measure_epoch(folder)) for dtype, folder in folders.items()])
    return found, optima


def _formulation(entrant: Entrant) -> str:
    return libraries.LINEAR[entrant.solver].formulation


def _optima(problem: Problem, takers: Iterable[Entrant], scope: Scope, say: Say) -> dict[str, Optimum]:
    found = {}
    for formulation in dict.fromkeys(map(_formulation, takers)):
        say(f"{problem.name}: optimum, {formulation}")
        of = optimum.compute if scope.quick else optimum.find
        found[formulation] = of(problem, formulation, scope.limit)
    return found


def _contestant(
    taker: Entrant,
    problem: Problem,
    optima: dict[str, Optimum],
    folder: Path,
    target: float,
    scope: Scope,
    say: Say,
) -> Contestant:
    solver = libraries.LINEAR[taker.solver]
    return Contestant(taker, solver, problem, optima[solver.formulation], folder, target, scope.limit, say)


def _contests(contestants: Iterable[Contestant], repeats: int) -> list[Contest]:
    """Sweeps one after the other, then the remaining runs in turns; a sweep's last run is the first of n."""
    contests = []
    for contestant in contestants:
        attempt = sweep(contestant)
        if attempt is not None:
            contests.append(Contest(contestant, attempt, [attempt.run]))
    for _ in range(repeats - 1):
        for contest in contests:
            if contest.attempt.reached:
                contest.runs.append(contest.contestant.run(contest.attempt.tolerance))
    return contests


def _rows(contests: Sequence[Contest]) -> list[Row]:
    """One for each contest, its time over those of ours that reached the target."""
    ours: dict[str, dict[str, float]] = {}
    for contest in contests:
        entrant, formulation = contest.contestant.entrant, contest.contestant.solver.formulation
        if contest.attempt.reached and entrant.name == OURS[formulation]:
            ours.setdefault(formulation, {})[entrant.form] = contest.best.cpu
    return [_row(contest, ours.get(contest.contestant.solver.formulation, {})) for contest in contests]


def _row(contest: Contest, ours: Mapping[str, float]) -> Row:
    solver, problem = contest.contestant.solver, contest.contestant.problem
    attempt, best = contest.attempt, contest.best
    return Row(
        problem=problem.name,
        formulation=solver.formulation,
        solver=contest.contestant.entrant.name,
        dtype=contest.contestant.entrant.form,
        tolerance=attempt.tolerance,
        reached=attempt.reached,
        cpu=best.cpu,
        wall=min(run.wall for run in contest.runs),
        over={dtype: best.cpu / seconds for dtype, seconds in ours.items()},
        primal=attempt.primal,
        suboptimality=attempt.suboptimality,
        gap=attempt.primal - best.extra.get("dual", contest.contestant.optimum.lower),
        error=objectives.error(best.W, problem.X_test, problem.y_test),
        peak=min(run.peak for run in contest.runs),
        peak_without_input=min(run.own_peak(solver.copies_input) for run in contest.runs),
        conversion=best.extra.get("conversion_cpu", 0.0),
    )


def optima_lines(optima: Optima) -> list[str]:
    """How each optimum is known."""
    return [
        f"{problem}, {formulation}: optimum in [{known.lower:.4f}, {known.upper:.4f}], LIBLINEAR, tight: "
        + ("over the time limit" if known.confirmed is None else f"{known.confirmed:.4f}")
        for problem, found in optima.items()
        for formulation, known in found.items()
    ]


def judged(rows: Sequence[Row], epochs: Sequence[Epoch]) -> list[Claim]:
    """Return what times and epochs of larank are held to."""
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


STUDY = Study(
    name="linear",
    title="Linear multiclass SVMs against LIBLINEAR, scikit-learn and Snap ML",
    datasets=tuple(LINEAR),
    default_datasets=("news20", "reuters_r52", "mnist", "covtype"),
    quick_datasets=("letter",),
    run=run,
    libraries=("liblinear-official", "snapml"),
    solvers=libraries.LINEAR,
    limit=600.0,
    options={
        "--dtypes": {
            "nargs": "+",
            "choices": PRECISIONS,
            "default": PRECISIONS,
            "help": "of the data handed to larank; other libraries are given the first",
        },
        "--target": {"type": float, "default": TARGET, "help": "relative distance to the optimum to reach"},
    },
)
