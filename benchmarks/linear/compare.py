"""Time to a primal objective within a target of the optimum, for all linear multiclass solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.linear import objectives, optimum, problems
from benchmarks.linear.libraries import OURS, SOLVERS
from benchmarks.linear.libraries.solver import Solver
from benchmarks.linear.optimum import Optimum
from benchmarks.linear.problems import Problem
from benchmarks.linear.runs import LinearRun, measure_epoch, stored
from benchmarks.linear.sweep import Attempt, Contestant, sweep


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
    runs: list[LinearRun]

    @property
    def best(self) -> LinearRun:
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
        peak=min(run.peak for run in contest.runs),
        peak_without_input=min(run.own_peak(solver.copies_input) for run in contest.runs),
        conversion=best.extra.get("conversion_cpu", 0.0),
    )
