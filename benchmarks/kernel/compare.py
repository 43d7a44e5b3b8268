"""Time to train and to predict, for all kernel multiclass solvers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.contest import Settings, Unfinished
from benchmarks.kernel import problems
from benchmarks.kernel.libraries import EXACT, OURS, SOLVERS
from benchmarks.kernel.runs import Certificate, KernelRun, measure_certificate, measure_fit, stored
from benchmarks.turns import take_turns

RIVALS = ("svc", "intelex")
"""Whose training times all others are divided by, beside those of larank."""


@dataclass(frozen=True)
class Row:
    """One solver on one problem: the shortest training and the shortest prediction of its runs.

    `train_over` has the training time over that of each of `RIVALS` that was run. `objective` is what `primal` and
    `dual` are of.
    """

    problem: str
    solver: str
    runs: int
    train: float
    train_cpu: float
    train_ratio: float | None
    train_over: Mapping[str, float]
    predict: float
    predict_cpu: float
    predict_ratio: float | None
    error: float
    support_patterns: int
    support_vectors: int
    objective: str
    primal: float | None
    dual: float
    peak: int
    peak_without_input: int
    conversion: float

    @property
    def relative_gap(self) -> float | None:
        """(primal - dual) / primal, where both are known."""
        return (self.primal - self.dual) / self.primal if self.primal else None


@dataclass(frozen=True)
class Work:
    """What training of a solver of larank consists of: the bare product of as many values, its parts, the certificate.

    The certificate of the exact solver is a part of its training, and has no seconds of its own.
    """

    problem: str
    solver: str
    train: float
    kernel_values: int
    product: float | None
    cpu_ratio: float | None
    breakdown: Mapping[str, float]
    operations: Mapping[str, int]
    certificate: float | None


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
            certificate = contest.certificate() if OURS.name in runs else None
        seconds = {solver: _fastest_training(found).wall for solver, found in runs.items()}
        comparison.rows += [_row(name, solver, runs, seconds, certificate) for solver in runs]
        if OURS.name in runs:
            comparison.work.append(_work(name, OURS.name, runs, certificate.seconds if certificate else None))
        if EXACT.name in runs:
            comparison.work.append(_work(name, EXACT.name, runs, None))
    return comparison


@dataclass(frozen=True)
class Contest:
    """All runs on one problem, which is stored in `folder`."""

    problem: str
    folder: Path
    settings: Settings
    unfinished: list[Unfinished]

    def runs(self) -> dict[str, list[KernelRun]]:
        """The solvers take turns; one that is slow, fails or exceeds the limit has no further turn."""
        limit, once_above = self.settings.limit, self.settings.once_above
        turns = take_turns(
            {solver: partial(measure_fit, self.folder, solver, limit) for solver in self.settings.solvers},
            self.settings.repeats,
            self._tell,
            lambda run: run.wall + run.predict > once_above,
        )
        self.unfinished.extend(Unfinished(self.problem, solver, reason) for solver, reason in turns.failed.items())
        return turns.found

    def certificate(self) -> Certificate | None:
        """What larank's certificate costs."""
        measure = partial(measure_certificate, self.folder, self.settings.limit)
        turns = take_turns({"certificate": measure}, 1, self._tell)
        self.unfinished.extend(Unfinished(self.problem, OURS.name, reason) for reason in turns.failed.values())
        return turns.found["certificate"][0] if turns.found else None

    def _tell(self, name: str, found: KernelRun | Certificate | str) -> None:
        said = str(found)
        if isinstance(found, KernelRun):
            said = f"trained in {found.wall:.2f} s, predicted in {found.predict:.2f} s"
        elif isinstance(found, Certificate):
            said = f"in {found.seconds:.2f} s"
        self.settings.log(f"{self.problem}: {name} {said}")


def _row(
    problem: str,
    solver: str,
    all_runs: Mapping[str, Sequence[KernelRun]],
    seconds: Mapping[str, float],
    certificate: Certificate | None,
) -> Row:
    runs, ours = all_runs[solver], all_runs.get(OURS.name)
    trained = _fastest_training(runs)
    predicted = min(runs, key=lambda run: run.predict)
    certified = certificate if solver == OURS.name and certificate else trained
    copies_input = SOLVERS[solver].copies_input
    return Row(
        problem=problem,
        solver=solver,
        runs=len(runs),
        train=trained.wall,
        train_cpu=trained.cpu,
        train_ratio=trained.wall / seconds[OURS.name] if ours else None,
        train_over={rival: trained.wall / seconds[rival] for rival in RIVALS if rival in seconds},
        predict=predicted.predict,
        predict_cpu=predicted.predict_cpu,
        predict_ratio=predicted.predict / min(run.predict for run in ours) if ours else None,
        error=trained.error,
        support_patterns=trained.support_patterns,
        support_vectors=trained.support_vectors,
        objective=trained.objective,
        primal=certified.primal,
        dual=certified.dual,
        peak=min(run.peak for run in runs),
        peak_without_input=min(run.own_peak(copies_input) for run in runs),
        conversion=trained.extra.get("conversion_wall", 0.0),
    )


def _work(problem: str, solver: str, all_runs: Mapping[str, Sequence[KernelRun]], certificate: float | None) -> Work:
    runs = all_runs[solver]
    trained = _fastest_training(runs)
    product = min((run.product for run in runs if run.product), default=None)
    product_cpu = min((run.product_cpu for run in runs if run.product_cpu), default=None)
    return Work(
        problem=problem,
        solver=solver,
        train=trained.wall,
        kernel_values=trained.extra["kernel_values"],
        product=product,
        cpu_ratio=min(run.cpu for run in runs) / product_cpu if product_cpu else None,
        breakdown=trained.extra["breakdown"],
        operations=trained.extra["operations"],
        certificate=certificate,
    )


def _fastest_training(runs: Sequence[KernelRun]) -> KernelRun:
    return min(runs, key=lambda run: run.wall)
