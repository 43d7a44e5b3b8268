"""Time to train and what was reached, for all solvers of the binary SVM with a bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from benchmarks.binary import problems
from benchmarks.binary.libraries import OURS, SOLVERS
from benchmarks.binary.runs import BinaryRun, measure_fit, stored
from benchmarks.contest import Settings, Unfinished
from benchmarks.turns import take_turns

RIVALS = ("svc", "intelex", "libsvm")
"""Whose training times all others are divided by."""

Entrant = tuple[str, str]
"""A solver, and the form of the data it is given."""


@dataclass(frozen=True)
class Row:
    """One solver on one problem in one form: the shortest training and the shortest prediction of its runs.

    `train_over` has the training time over that of each of `RIVALS` that was run, in its fastest form. `is_fastest`
    says whether this is the solver's fastest form. `short_of_best` is how far the dual lies below the largest of all
    rows, as a share of it. `primal`, `kernel_values` and `breakdown` are known of larank alone.
    """

    problem: str
    solver: str
    form: str
    is_fastest: bool
    runs: int
    train: float
    train_cpu: float
    train_over: Mapping[str, float]
    predict: float
    predict_cpu: float
    error: float
    support_vectors: int
    dual: float
    short_of_best: float
    primal: float | None
    kernel_values: int | None
    breakdown: Mapping[str, float]
    operations: Mapping[str, int]
    peak: int
    peak_without_input: int
    conversion: float

    @property
    def relative_gap(self) -> float | None:
        """(primal - dual) / primal, where both are known."""
        return (self.primal - self.dual) / self.primal if self.primal else None


@dataclass
class Comparison:
    """Everything that was measured."""

    rows: list[Row] = field(default_factory=list)
    unfinished: list[Unfinished] = field(default_factory=list)


def compare(settings: Settings) -> Comparison:
    """Run all solvers, problem by problem."""
    comparison = Comparison()
    for name in settings.problems:
        runs = _runs(name, settings, comparison.unfinished)
        comparison.rows += rows_of(name, runs)
    return comparison


def _runs(name: str, settings: Settings, unfinished: list[Unfinished]) -> dict[Entrant, list[BinaryRun]]:
    """The entrants take turns; one that is slow, fails or exceeds the limit has no further turn."""

    def tell(entrant: Entrant, found: BinaryRun | str) -> None:
        said = found if isinstance(found, str) else f"trained in {found.wall:.2f} s, error {100 * found.error:.2f} %"
        settings.log(f"{name}: {' '.join(entrant)} {said}")

    problem = problems.load(name)
    entrants = [(solver, form) for solver in settings.solvers for form in SOLVERS[solver].forms(problem)]
    with stored(problem) as folder:
        turns = take_turns(
            {(solver, form): partial(measure_fit, folder, solver, form, settings.limit) for solver, form in entrants},
            settings.repeats,
            tell,
            lambda run: run.wall + run.predict > settings.once_above,
        )
    unfinished.extend(Unfinished(name, " ".join(entrant), reason) for entrant, reason in turns.failed.items())
    return turns.found


def rows_of(problem: str, runs: Mapping[Entrant, Sequence[BinaryRun]]) -> list[Row]:
    """A row for each entrant, with what depends on the others."""
    seconds = {entrant: min(run.wall for run in found) for entrant, found in runs.items()}
    fastest: dict[str, float] = {}
    for (solver, _), taken in seconds.items():
        fastest[solver] = min(taken, fastest.get(solver, taken))
    best_dual = max((run.dual for found in runs.values() for run in found), default=0.0)
    return [_row(problem, entrant, found, fastest, best_dual) for entrant, found in runs.items()]


def _row(
    problem: str, entrant: Entrant, runs: Sequence[BinaryRun], fastest: Mapping[str, float], best_dual: float
) -> Row:
    solver, form = entrant
    trained = min(runs, key=lambda run: run.wall)
    predicted = min(runs, key=lambda run: run.predict)
    return Row(
        problem=problem,
        solver=solver,
        form=form,
        is_fastest=trained.wall <= fastest[solver],
        runs=len(runs),
        train=trained.wall,
        train_cpu=trained.cpu,
        train_over={rival: trained.wall / fastest[rival] for rival in RIVALS if rival in fastest},
        predict=predicted.predict,
        predict_cpu=predicted.predict_cpu,
        error=trained.error,
        support_vectors=trained.support_vectors,
        dual=trained.dual,
        short_of_best=(best_dual - trained.dual) / best_dual if best_dual else 0.0,
        primal=trained.extra.get("primal"),
        kernel_values=trained.extra.get("kernel_values"),
        breakdown=trained.extra.get("breakdown", {}),
        operations=trained.extra.get("operations", {}),
        peak=min(run.peak for run in runs),
        peak_without_input=min(run.own_peak(SOLVERS[solver].copies_input) for run in runs),
        conversion=trained.extra.get("conversion_wall", 0.0),
    )


def ratios(rows: Sequence[Row]) -> dict[str, Mapping[str, float]]:
    """Of larank in its fastest form, by problem and rival."""
    return {row.problem: row.train_over for row in rows if row.solver == OURS.name and row.is_fastest}


def ratios_of_training_alone(rows: Sequence[Row]) -> dict[str, Mapping[str, float]]:
    """The same without the certificate, which the rivals do not compute."""
    alone = {row.problem: 1 - row.breakdown["certificate"] / row.train for row in rows if row.solver == OURS.name}
    return {
        problem: {rival: ratio * alone[problem] for rival, ratio in over.items()}
        for problem, over in ratios(rows).items()
    }
