"""Time from text to a model and from text to tags, and how good the tags are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.contest import Settings, Unfinished
from benchmarks.sequence import problems
from benchmarks.sequence.libraries import OURS
from benchmarks.sequence.runs import PeakRun, TaggerRun, measure_fit, measure_peak
from benchmarks.turns import take_turns

REFERENCE = "crfsuite-pa"
"""Whose times all others are divided by."""
LONG_LIMIT = 5e7
"""The memory limit under which files of different lengths are trained on, in bytes."""


@dataclass(frozen=True)
class Row:
    """One tagger: the shortest training and the shortest tagging of its runs.

    `train_over` is the time over that of the reference, `cpu_over` the same of the least CPU seconds, `tag_over` tokens
    per second over those of the reference. `prepared_per_second` are tokens tagged per second once their features are
    there.
    """

    problem: str
    solver: str
    runs: int
    train: float
    train_cpu: float
    breakdown: Mapping[str, float]
    train_over: float | None
    cpu_over: float | None
    tokens_per_second: float
    prepared_per_second: float | None
    tag_over: float | None
    accuracy: float
    f1: float
    peak: int
    certificate: float
    extra: Mapping[str, object]


@dataclass(frozen=True)
class LongRow:
    """Training with a memory limit, in bytes, on the file and on one that is longer."""

    problem: str
    solver: str
    repetitions: int
    memory_limit: float
    seconds: float
    peak: int


@dataclass
class Comparison:
    """Everything that was measured."""

    rows: list[Row] = field(default_factory=list)
    long_rows: list[LongRow] = field(default_factory=list)
    unfinished: list[Unfinished] = field(default_factory=list)


def compare(settings: Settings) -> Comparison:
    """Run all taggers, problem by problem."""
    comparison = Comparison()
    for name in settings.problems:
        with problems.stored(name) as folder:
            runs = _runs(name, folder, settings, comparison.unfinished)
            comparison.rows += rows_of(name, runs)
            comparison.long_rows += _long_rows(name, folder, settings, comparison.unfinished)
    return comparison


def _runs(name: str, folder: Path, settings: Settings, unfinished: list[Unfinished]) -> dict[str, list[TaggerRun]]:
    """The taggers take turns; one that is slow, fails or exceeds the limit has no further turn."""

    def tell(solver: str, found: TaggerRun | str) -> None:
        said = found if isinstance(found, str) else f"trained in {found.wall:.2f} s, F1 {100 * found.f1:.2f} %"
        settings.log(f"{name}: {solver} {said}")

    turns = take_turns(
        {solver: partial(measure_fit, folder, solver, settings.limit) for solver in settings.solvers},
        settings.repeats,
        tell,
        lambda run: run.wall > settings.once_above,
    )
    unfinished.extend(Unfinished(name, solver, reason) for solver, reason in turns.failed.items())
    return turns.found


def rows_of(problem: str, runs: Mapping[str, Sequence[TaggerRun]]) -> list[Row]:
    """A row for each tagger, with what depends on the reference."""
    return [_row(problem, solver, found, runs.get(REFERENCE, ())) for solver, found in runs.items()]


def _row(problem: str, solver: str, runs: Sequence[TaggerRun], reference: Sequence[TaggerRun]) -> Row:
    wall, cpu, tag = (min((getattr(run, name) for run in reference), default=None) for name in ("wall", "cpu", "tag"))
    least_cpu = min(run.cpu for run in runs)
    trained = min(runs, key=lambda run: run.wall)
    tagged = min(run.tag for run in runs)
    prepared = min((run.tag_prepared for run in runs if run.tag_prepared is not None), default=None)
    return Row(
        problem=problem,
        solver=solver,
        runs=len(runs),
        train=trained.wall,
        train_cpu=least_cpu,
        breakdown=trained.breakdown,
        train_over=trained.wall / wall if wall else None,
        cpu_over=least_cpu / cpu if cpu else None,
        tokens_per_second=trained.tokens / tagged,
        prepared_per_second=trained.tokens / prepared if prepared else None,
        tag_over=tag / tagged if tag else None,
        accuracy=trained.accuracy,
        f1=trained.f1,
        peak=min(run.peak for run in runs),
        certificate=trained.breakdown.get("certificate", 0.0),
        extra=trained.extra,
    )


def _long_rows(name: str, folder: Path, settings: Settings, unfinished: list[Unfinished]) -> list[LongRow]:
    """Of larank, which reads its file block by block: memory should not grow with the file."""
    sizes = {problems.TRAIN: 1, problems.LONG: problems.REPETITIONS}
    ours = [solver.name for solver in OURS if solver.name in settings.solvers and solver.threads == 1]

    def tell(run: tuple[str, str], found: PeakRun | str) -> None:
        said = found if isinstance(found, str) else f"peak {found.peak / 1e6:.0f} MB in {found.wall:.1f} s"
        settings.log(f"{name}: {' on '.join(run)}: {said}")

    measures = {
        (solver, file): partial(measure_peak, folder, solver, file, {"memory_limit": LONG_LIMIT}, settings.limit)
        for solver in ours
        for file in sizes
    }
    turns = take_turns(measures, 1, tell)
    unfinished.extend(Unfinished(name, " on ".join(run), reason) for run, reason in turns.failed.items())
    return [
        LongRow(name, solver, sizes[file], LONG_LIMIT, found[0].wall, found[0].peak)
        for (solver, file), found in turns.found.items()
    ]
