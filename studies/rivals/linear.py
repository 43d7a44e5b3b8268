"""`python -m studies linear`: time to a primal objective near the optimum, for all linear multiclass solvers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from studies.datasets import LINEAR
from studies.rivals import libraries, linearruns, objectives, optimum
from studies.rivals.contest import Comparison, Entrant, Findings, Settings, beside_before, entrants
from studies.rivals.linearruns import LinearRun, Problem, measure_epoch, stored
from studies.rivals.optimum import OURS, Optimum
from studies.rivals.sweep import Attempt, Contestant, sweep
from studies.study import Say
from studies.tables import Columns, figure, of_rows

Optima = dict[str, dict[str, Optimum]]
"""By problem and formulation."""


@dataclass(frozen=True)
class Row:
    """One solver on one problem, at the loosest tolerance that meets the target, else the tightest run."""

    problem: str
    formulation: str
    solver: str
    tolerance: float
    reached: bool
    cpu: float
    wall: float
    ratio: float | None
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

    problem: str
    epoch: float
    product: float

    @property
    def ratio(self) -> float:
        return self.epoch / self.product


ROW_COLUMNS: Columns = {
    "problem": figure("problem"),
    "objective": figure("formulation"),
    "solver": figure("solver"),
    "tolerance": lambda row: f"{row.tolerance:g}" + ("" if row.reached else " (missed)"),
    "CPU s": figure("cpu", ".3f"),
    "wall s": figure("wall", ".3f"),
    "ratio": figure("ratio", ".2f"),
    "primal": figure("primal", ".3f"),
    "off by": figure("suboptimality", ".1e"),
    "gap": figure("gap", ".2e"),
    "test error %": figure("error", ".2f", 100),
    "peak MB": figure("peak", ".0f", 1e-6),
    "own MB": figure("peak_without_input", ".0f", 1e-6),
}
EPOCH_COLUMNS: Columns = {
    "problem": figure("problem"),
    "larank, one epoch, s": figure("epoch", ".4f"),
    "scipy X @ W, s": figure("product", ".4f"),
    "ratio": figure("ratio", ".2f"),
}
WHAT_BOUNDS_THE_TIME = (
    "What bounds larank's time (perf, sampled by CPU clock): memory. news20 and reuters_r52: fetching the rows of W "
    "(10 to 14 MB, two to seven cache lines per stored value) from L3 for the scores of an example, about 3/4 of the "
    "time; the update finds the same rows in L1. mnist: W (100 kB) out of L2, scores 44 %, updates 18 %, row QPs 7 %, "
    "most of the rest fetching examples in random order. covtype: fetching examples and their coefficients in random "
    "order a third, scores a quarter, row QPs a tenth. The visits needed are bounded by the convergence of dual "
    "coordinate descent: about 12 per example on text, 15 on covtype, 260 on mnist, where C |x|^2 is near 100."
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


def compare(dtype: str, target: float, settings: Settings, say: Say) -> tuple[Findings, Optima]:
    """Run all contests, problem by problem."""
    found, optima = Findings(), {}
    takers = sorted(entrants(settings, libraries.LINEAR, say), key=_formulation)
    for name in settings.problems:
        problem = linearruns.load(name, settings.quick)
        optima[name] = _optima(problem, takers, settings, say)
        with stored(problem, dtype) as folder:
            contestants = [_contestant(taker, problem, optima[name], folder, target, settings, say) for taker in takers]
            contests = _contests(contestants, settings.repeats)
            found.add(
                rows=_rows(contests),
                before=beside_before(name, {contest.contestant.entrant: contest.runs for contest in contests}),
            )
            if OURS["crammer-singer"] in settings.solvers:
                say(f"{name}: one epoch")
                found.add(epochs=[Epoch(name, **measure_epoch(folder))])
    return found, optima


def _formulation(entrant: Entrant) -> str:
    return libraries.LINEAR[entrant.solver].formulation


def _optima(problem: Problem, takers: Iterable[Entrant], settings: Settings, say: Say) -> dict[str, Optimum]:
    found = {}
    for formulation in dict.fromkeys(map(_formulation, takers)):
        say(f"{problem.name}: optimum, {formulation}")
        of = optimum.compute if settings.quick else optimum.find
        found[formulation] = of(problem, formulation, settings.limit)
    return found


def _contestant(
    taker: Entrant,
    problem: Problem,
    optima: dict[str, Optimum],
    folder: Path,
    target: float,
    settings: Settings,
    say: Say,
) -> Contestant:
    solver = libraries.LINEAR[taker.solver]
    return Contestant(taker, solver, problem, optima[solver.formulation], folder, target, settings.limit, say)


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
    reached = (contest for contest in contests if contest.attempt.reached)
    seconds = {contest.contestant.entrant.name: contest.best.cpu for contest in reached}
    return [_row(contest, seconds.get(OURS[contest.contestant.solver.formulation])) for contest in contests]


def _row(contest: Contest, reference: float | None) -> Row:
    solver, problem = contest.contestant.solver, contest.contestant.problem
    attempt, best = contest.attempt, contest.best
    return Row(
        problem=problem.name,
        formulation=solver.formulation,
        solver=contest.contestant.entrant.name,
        tolerance=attempt.tolerance,
        reached=attempt.reached,
        cpu=best.cpu,
        wall=min(run.wall for run in contest.runs),
        ratio=best.cpu / reference if reference else None,
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


def run(settings: Settings, say: Say) -> Findings:
    dtype, target = settings.options.dtype, settings.options.target
    found, optima = compare(dtype, target, settings, say)
    found.others["optima"] = {
        problem: {formulation: asdict(known) for formulation, known in of.items()} for problem, of in optima.items()
    }
    title = f"Time to a primal objective within {target:g} of the optimum, {dtype}, one thread"
    found.tables = [
        of_rows(title, ROW_COLUMNS, found.rows["rows"]),
        of_rows("One epoch, CPU seconds", EPOCH_COLUMNS, found.rows.get("epochs", [])),
    ]
    found.lines = [*optima_lines(optima), WHAT_BOUNDS_THE_TIME]
    return found


STUDY = Comparison(
    name="linear",
    title="Linear multiclass SVMs against LIBLINEAR, scikit-learn and Snap ML",
    datasets=tuple(LINEAR),
    default_datasets=("news20", "reuters_r52", "mnist", "covtype"),
    quick_datasets=("letter",),
    run=run,
    libraries=("larank", "liblinear-official", "scikit-learn", "snapml", "numpy", "scipy"),
    solvers=libraries.LINEAR,
    limit=600.0,
    options={
        "--dtype": {"choices": ("float64", "float32"), "default": "float64", "help": "of the data handed over"},
        "--target": {"type": float, "default": 1e-3, "help": "relative distance to the optimum to reach"},
    },
)
