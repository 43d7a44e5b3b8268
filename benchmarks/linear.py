"""Time to a primal objective within a target of the optimum, for all linear multiclass solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import objectives, optimum, problems
from benchmarks.libraries import OURS, SOLVERS, installed
from benchmarks.libraries.solver import Solver
from benchmarks.measure import Measurement, measure_epoch, stored
from benchmarks.optimum import Optimum
from benchmarks.problems import Problem
from benchmarks.sweep import Attempt, Contestant, sweep

WHAT_BOUNDS_THE_TIME = (
    "What bounds larank's time (perf, sampled by CPU clock): memory. news20 and reuters_r52: fetching the rows of W "
    "(10 to 14 MB, two to seven cache lines per stored value) from L3 for the scores of an example, about 3/4 of the "
    "time; the update finds the same rows in L1. mnist: W (100 kB) out of L2, scores 44 %, updates 18 %, row QPs 7 %, "
    "most of the rest fetching examples in random order. covtype: fetching examples and their coefficients in random "
    "order a third, scores a quarter, row QPs a tenth. The visits needed are bounded by the convergence of dual "
    "coordinate descent: about 12 per example on text, 15 on covtype, 260 on mnist, where C |x|^2 is near 100."
)


@dataclass(frozen=True)
class Settings:
    """What the command line chose."""

    problems: Sequence[str]
    solvers: Sequence[str]
    repeats: int
    dtype: str
    target: float
    limit: float
    log: Callable[[str], None]


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


@dataclass
class Comparison:
    """Everything that was measured."""

    rows: list[Row] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    optima: dict[str, dict[str, Optimum]] = field(default_factory=dict)


@dataclass(frozen=True)
class Contest:
    """Where a contestant's sweep ended, and all its runs at that tolerance."""

    contestant: Contestant
    attempt: Attempt
    runs: list[Measurement]

    @property
    def best(self) -> Measurement:
        return min(self.runs, key=lambda run: run.cpu)


def compare(settings: Settings) -> Comparison:
    """Run all contests, problem by problem."""
    comparison = Comparison()
    solvers = sorted((SOLVERS[name] for name in settings.solvers), key=lambda solver: solver.formulation)
    for name in settings.problems:
        problem = problems.load(name)
        comparison.optima[name] = _optima(problem, solvers, settings)
        with stored(problem, settings.dtype) as folder:
            contestants = _contestants(problem, solvers, comparison.optima[name], folder, settings)
            comparison.rows += _rows(_contests(contestants, settings.repeats))
            if OURS["crammer-singer"] in settings.solvers:
                settings.log(f"{name}: one epoch")
                comparison.epochs.append(Epoch(name, **measure_epoch(folder)))
    return comparison


def _optima(problem: Problem, solvers: Iterable[Solver], settings: Settings) -> dict[str, Optimum]:
    found = {}
    for formulation in dict.fromkeys(solver.formulation for solver in solvers):
        settings.log(f"{problem.name}: optimum, {formulation}")
        found[formulation] = optimum.find(problem, formulation, settings.limit)
    return found


def _contestants(
    problem: Problem, solvers: Iterable[Solver], optima: dict[str, Optimum], folder: Path, settings: Settings
) -> list[Contestant]:
    rules = settings.target, settings.limit, settings.log
    return [Contestant(solver, problem, optima[solver.formulation], folder, *rules) for solver in solvers]


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
    seconds = {contest.contestant.solver.name: contest.best.cpu for contest in reached}
    return [_row(contest, seconds.get(OURS[contest.contestant.solver.formulation])) for contest in contests]


def _row(contest: Contest, reference: float | None) -> Row:
    solver, problem = contest.contestant.solver, contest.contestant.problem
    attempt, best = contest.attempt, contest.best
    peak = min(run.peak for run in contest.runs)
    return Row(
        problem=problem.name,
        formulation=solver.formulation,
        solver=solver.name,
        tolerance=attempt.tolerance,
        reached=attempt.reached,
        cpu=best.cpu,
        wall=min(run.wall for run in contest.runs),
        ratio=best.cpu / reference if reference else None,
        primal=attempt.primal,
        suboptimality=attempt.suboptimality,
        gap=attempt.primal - best.extra.get("dual", contest.contestant.optimum.lower),
        error=objectives.error(best.W, problem.X_test, problem.y_test),
        peak=peak,
        peak_without_input=peak - best.loaded if solver.copies_input else peak,
        conversion=best.extra.get("conversion_cpu", 0.0),
    )


def usable(names: Iterable[str], log: Callable[[str], None]) -> list[str]:
    """Those solvers whose library is installed."""
    present = []
    for name in names:
        if installed(SOLVERS[name]):
            present.append(name)
        else:
            log(f"{name}: left out, {SOLVERS[name].requires} is not installed")
    return present
