"""Time to train and to predict, for all kernel multiclass solvers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks.kernel import problems
from benchmarks.kernel.libraries import OURS, SOLVERS
from benchmarks.kernel.runs import Certificate, KernelRun, measure_certificate, measure_fit, stored
from benchmarks.measure import ChildFailedError, TimeoutExceededError


@dataclass(frozen=True)
class Settings:
    """What the command line chose."""

    problems: Sequence[str]
    solvers: Sequence[str]
    repeats: int
    once_above: float
    limit: float
    log: Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """One solver on one problem: the shortest training and the shortest prediction of its runs."""

    problem: str
    solver: str
    runs: int
    train: float
    train_cpu: float
    train_ratio: float | None
    predict: float
    predict_cpu: float
    predict_ratio: float | None
    error: float
    support_patterns: int
    support_vectors: int
    dual: float | None
    peak: int
    peak_without_input: int
    conversion: float


@dataclass(frozen=True)
class Work:
    """What larank's training consists of: the bare product of as many values, its parts, and the certificate."""

    problem: str
    train: float
    kernel_values: int
    product: float | None
    cpu_ratio: float | None
    breakdown: Mapping[str, float]
    operations: Mapping[str, int]
    dual: float
    certificate: Certificate | None


@dataclass(frozen=True)
class Unfinished:
    """A run that gave no figures, and why."""

    problem: str
    solver: str
    reason: str


@dataclass
class Comparison:
    """Everything that was measured."""

    rows: list[Row] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    unfinished: list[Unfinished] = field(default_factory=list)


def compare(settings: Settings) -> Comparison:
    """Run all solvers, problem by problem."""
    comparison = Comparison()
    for name in settings.problems:
        with stored(problems.load(name)) as folder:
            contest = Contest(name, folder, settings, comparison.unfinished)
            runs = contest.runs()
            ours = runs.get(OURS.name)
            comparison.rows += [_row(name, solver, found, ours) for solver, found in runs.items()]
            if ours:
                comparison.work.append(_work(name, ours, contest.certificate()))
    return comparison


Found = TypeVar("Found")


@dataclass(frozen=True)
class Contest:
    """All runs on one problem, which is stored in `folder`."""

    problem: str
    folder: Path
    settings: Settings
    unfinished: list[Unfinished]

    def runs(self) -> dict[str, list[KernelRun]]:
        """The solvers take turns; one that is slow, fails or exceeds the limit has no further turn."""
        found: dict[str, list[KernelRun]] = {}
        waiting = list(self.settings.solvers)
        for _ in range(self.settings.repeats):
            for solver in tuple(waiting):
                run = self._attempt(solver, partial(measure_fit, self.folder, solver, self.settings.limit))
                if run is not None:
                    self._log(f"{solver} trained in {run.wall:.2f} s, predicted in {run.predict:.2f} s")
                    found.setdefault(solver, []).append(run)
                if run is None or run.wall + run.predict > self.settings.once_above:
                    waiting.remove(solver)
        return found

    def certificate(self) -> Certificate | None:
        """What larank's certificate costs."""
        self._log("certificate")
        return self._attempt(OURS.name, partial(measure_certificate, self.folder, self.settings.limit))

    def _attempt(self, solver: str, measure: Callable[[], Found]) -> Found | None:
        try:
            return measure()
        except (TimeoutExceededError, ChildFailedError) as failed:
            self._log(f"{solver} {failed}")
            self.unfinished.append(Unfinished(self.problem, solver, str(failed).strip().splitlines()[-1]))
            return None

    def _log(self, line: str) -> None:
        self.settings.log(f"{self.problem}: {line}")


def _row(problem: str, solver: str, runs: Sequence[KernelRun], ours: Sequence[KernelRun] | None) -> Row:
    trained = _fastest_training(runs)
    predicted = min(runs, key=lambda run: run.predict)
    copies_input = SOLVERS[solver].copies_input
    return Row(
        problem=problem,
        solver=solver,
        runs=len(runs),
        train=trained.wall,
        train_cpu=trained.cpu,
        train_ratio=trained.wall / _fastest_training(ours).wall if ours else None,
        predict=predicted.predict,
        predict_cpu=predicted.predict_cpu,
        predict_ratio=predicted.predict / min(run.predict for run in ours) if ours else None,
        error=trained.error,
        support_patterns=trained.support_patterns,
        support_vectors=trained.support_vectors,
        dual=trained.extra.get("dual"),
        peak=min(run.peak for run in runs),
        peak_without_input=min(run.own_peak(copies_input) for run in runs),
        conversion=trained.extra.get("conversion_wall", 0.0),
    )


def _work(problem: str, runs: Sequence[KernelRun], certificate: Certificate | None) -> Work:
    trained = _fastest_training(runs)
    product = min((run.product for run in runs if run.product), default=None)
    product_cpu = min((run.product_cpu for run in runs if run.product_cpu), default=None)
    return Work(
        problem=problem,
        train=trained.wall,
        kernel_values=trained.extra["kernel_values"],
        product=product,
        cpu_ratio=min(run.cpu for run in runs) / product_cpu if product_cpu else None,
        breakdown=trained.extra["breakdown"],
        operations=trained.extra["operations"],
        dual=trained.extra["dual"],
        certificate=certificate,
    )


def _fastest_training(runs: Sequence[KernelRun]) -> KernelRun:
    return min(runs, key=lambda run: run.wall)
