"""`python -m studies sequence`: time from text to a model and from text to tags, and how good the tags are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from larank.data import data_directory
from larank.sequence.entities import entity_report
from studies.measure import Measurement, ask
from studies.rivals import libraries, text
from studies.rivals.contest import (
    ONCE_ABOVE,
    Comparison,
    Entrant,
    Findings,
    Settings,
    Unfinished,
    beside_before,
    entrants,
    fastest,
    met,
    met_in_time,
    runs_in_turns,
)
from studies.rivals.libraries.crfsuite import LBFGS_ITERATIONS
from studies.study import Say
from studies.tables import Columns, figure, of_breakdowns, of_rows

PROBLEMS = ("conll2000",)
REFERENCE = "crfsuite-pa"
"""Whose times all others are divided by."""
LONG_LIMIT = 5e7
"""The memory limit under which files of different lengths are trained on, in bytes."""
TRAIN_BAR = 1 / 3
TAG_BAR = 3.0
F1_BAR = 0.934
QUICK_SENTENCES = 400


@dataclass(frozen=True)
class TaggerRun(Measurement):
    """One training and one tagging of the test file, from text each, in wall-clock seconds.

    `tag_prepared` are the seconds of tagging alone, of features made before, where a library keeps the two apart.
    """

    tag: float
    tag_prepared: float | None
    tokens: int
    accuracy: float
    f1: float


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


COLUMNS: Columns = {
    "problem": figure("problem"),
    "solver": figure("solver"),
    "runs": figure("runs"),
    "text to model s": figure("train", ".3f"),
    f"over {REFERENCE}": figure("train_over", ".3f"),
    "CPU s": figure("train_cpu", ".3f"),
    "over it in CPU s": figure("cpu_over", ".3f"),
    "F1 %": figure("f1", ".2f", 100),
    "accuracy %": figure("accuracy", ".2f", 100),
    "tokens/s": figure("tokens_per_second", ",.0f"),
    f"times {REFERENCE}": figure("tag_over", ".1f"),
    "tokens/s, features ready": figure("prepared_per_second", ",.0f"),
    "peak MB": figure("peak", ".0f", 1e-6),
}
LONG_COLUMNS: Columns = {
    "problem": figure("problem"),
    "solver": figure("solver"),
    "file": lambda row: "as it is" if row.repetitions == 1 else f"{row.repetitions} times over",
    "memory_limit MB": figure("memory_limit", ".0f", 1e-6),
    "text to model s": figure("seconds", ".2f"),
    "peak MB": figure("peak", ".0f", 1e-6),
}
WHAT_IS_COMPARED = (
    "All have the same 19 templates over words and parts of speech. Text to model begins with the training file and "
    "ends with a trained model, tokens/s are those from the test file to tags: both include reading and feature "
    "extraction, in Python for CRFsuite. crfsuite-pa and -ap make 10 iterations, crfsuite-lbfgs "
    f"{LBFGS_ITERATIONS} (it converges after about 160, which takes five times as long); everything else is CRFsuite's "
    "default, rand() is seeded with 0. CRFsuite has one thread; larank has one, and two where its name ends in -2."
)
WHAT_BOUNDS_THE_TIME = (
    "What bounds larank (perf, one thread): waiting for memory. Steps visit support patterns in random order and read "
    "the weights of their features from a table of 65 MB; patterns that come next are asked for ahead. Exact "
    "inference: a quarter of the time Viterbi and the scores it needs, the rest OPTIMIZE on the labels in which "
    "outputs differ. Reading and features are at most a tenth."
)


def _ask(folder: Path, entrant: Entrant, limit: float | None, **details: Any) -> dict[str, Any]:
    """Have a tagger trained in a process of its own."""
    asked = {"kind": "sequence", "solver": entrant.solver, "python": entrant.python, **details}
    return ask("studies.rivals.tasks", "fit_tagger", folder, libraries.TAGGERS[entrant.solver].threads, limit, **asked)


def measure_fit(folder: Path, entrant: Entrant, limit: float | None) -> TaggerRun:
    """Train and tag once; the tags are scored here, by the same code for all."""
    tags = folder / "tags.json"
    found = _ask(folder, entrant, limit, file=text.TRAIN, test=text.TEST, tags=str(tags))
    _, true = text.read(folder / text.TEST)
    report = entity_report(true, json.loads(tags.read_text()))
    return TaggerRun(**found, tokens=report.tokens, accuracy=report.accuracy, f1=report.f1)


def measure_peak(
    folder: Path, entrant: Entrant, file: str, settings: Mapping[str, Any], limit: float | None
) -> Measurement:
    """Train once on one of the files, with other parameters of the solver."""
    return Measurement(**_ask(folder, entrant, limit, file=file, settings=dict(settings)))


def compare(settings: Settings, say: Say) -> Findings:
    """Run all taggers, problem by problem."""
    found = Findings()
    for name in settings.problems:
        takers = entrants(settings, libraries.TAGGERS, say)
        with text.stored(data_directory() / name, QUICK_SENTENCES if settings.quick else None) as folder:
            measures = {taker: partial(measure_fit, folder, taker, settings.limit) for taker in takers}
            runs, unfinished = runs_in_turns(name, measures, settings, say, _told)
            long_rows, failed = long_rows_of(name, folder, takers, settings, say)
        found.add(
            rows=rows_of(name, runs),
            long_rows=long_rows,
            unfinished=[*unfinished, *failed],
            before=beside_before(name, runs),
        )
    return found


def _told(run: TaggerRun) -> str:
    return f"trained in {run.wall:.2f} s, F1 {100 * run.f1:.2f} %"


def rows_of(problem: str, runs: Mapping[Entrant, Sequence[TaggerRun]]) -> list[Row]:
    """A row for each tagger, with what depends on the reference."""
    return [_row(problem, taker, found, runs.get(Entrant(REFERENCE), ())) for taker, found in runs.items()]


def _row(problem: str, taker: Entrant, runs: Sequence[TaggerRun], reference: Sequence[TaggerRun]) -> Row:
    wall, cpu, tag = (min((getattr(run, name) for run in reference), default=None) for name in ("wall", "cpu", "tag"))
    least_cpu = min(run.cpu for run in runs)
    trained = fastest(runs)
    tagged = min(run.tag for run in runs)
    prepared = min((run.tag_prepared for run in runs if run.tag_prepared is not None), default=None)
    breakdown = trained.extra["breakdown"]
    return Row(
        problem=problem,
        solver=taker.name,
        runs=len(runs),
        train=trained.wall,
        train_cpu=least_cpu,
        breakdown=breakdown,
        train_over=trained.wall / wall if wall else None,
        cpu_over=least_cpu / cpu if cpu else None,
        tokens_per_second=trained.tokens / tagged,
        prepared_per_second=trained.tokens / prepared if prepared else None,
        tag_over=tag / tagged if tag else None,
        accuracy=trained.accuracy,
        f1=trained.f1,
        peak=min(run.peak for run in runs),
        certificate=breakdown.get("certificate", 0.0),
        extra={name: value for name, value in trained.extra.items() if name != "breakdown"},
    )


def long_rows_of(
    name: str, folder: Path, takers: Sequence[Entrant], settings: Settings, say: Say
) -> tuple[list[LongRow], list[Unfinished]]:
    """Of larank, which reads its file block by block: memory should not grow with the file."""
    sizes = {text.TRAIN: 1, text.LONG: text.REPETITIONS}
    solvers = libraries.TAGGERS
    ours = [taker for taker in takers if solvers[taker.solver].is_ours and solvers[taker.solver].threads == 1]
    rows, unfinished = [], []
    for taker in ours:
        measures = {
            f"{taker} on {file}": partial(
                measure_peak, folder, taker, file, {"memory_limit": LONG_LIMIT}, settings.limit
            )
            for file in sizes
        }
        once = Settings((name,), repeats=1)
        runs, failed = runs_in_turns(
            name, measures, once, say, lambda run: f"{run.wall:.1f} s, {run.peak / 1e6:.0f} MB"
        )
        rows += [
            LongRow(name, taker.name, repetitions, LONG_LIMIT, run.wall, run.peak)
            for file, repetitions in sizes.items()
            for run in runs.get(f"{taker} on {file}", ())
        ]
        unfinished += failed
    return rows, unfinished


def judged(rows: Sequence[Row]) -> list[str]:
    """How larank stands to the bars, where that can be told."""
    lines = []
    for row in rows:
        solver = libraries.TAGGERS.get(row.solver)
        if solver is None or not solver.is_ours or row.tag_over is None:
            continue
        f1 = next(other.f1 for other in rows if other.problem == row.problem and other.solver == REFERENCE)
        said = f"{row.problem}: {row.solver}"
        lines += [
            f"{said} {_judged_training(row)}",
            f"{said} has F1 {100 * row.f1:.2f}, {REFERENCE} {100 * f1:.2f}; bar {100 * F1_BAR:.1f} and no less than "
            f"{REFERENCE}, {met(row.f1 >= max(F1_BAR, f1))}",
            f"{said} tags {row.tag_over:.1f} times as fast as {REFERENCE}; bar {TAG_BAR:g}, "
            f"{met(row.tag_over >= TAG_BAR)}",
        ]
    return lines


def _judged_training(row: Row) -> str:
    """Without the certificate, which the rival does not compute."""
    alone = 1 - row.certificate / row.train
    wall, cpu = alone * (row.train_over or 0.0), alone * (row.cpu_over or 0.0)
    return (
        f"takes {wall:.3f} of {REFERENCE}'s time from text to model, {cpu:.3f} in CPU seconds ({row.train_over:.3f} "
        f"and {row.cpu_over:.3f} with its certificate); bar {TRAIN_BAR:.3f}, {met_in_time(wall, cpu, TRAIN_BAR)}"
    )


def run(settings: Settings, say: Say) -> Findings:
    found = compare(settings, say)
    rows = found.rows["rows"]
    found.tables = [
        of_rows("From text to a model, and from text to tags, wall seconds", COLUMNS, rows),
        of_breakdowns("Where the time goes, seconds", rows, "solver"),
        of_rows("Memory as the file grows", LONG_COLUMNS, found.rows["long_rows"]),
    ]
    found.lines = [*([] if settings.quick else judged(rows)), WHAT_IS_COMPARED, WHAT_BOUNDS_THE_TIME]
    return found


STUDY = Comparison(
    name="sequence",
    title="Tagging of text, from files, against CRFsuite",
    datasets=PROBLEMS,
    default_datasets=PROBLEMS,
    quick_datasets=PROBLEMS,
    run=run,
    libraries=("larank", "python-crfsuite", "numpy", "scipy"),
    solvers=libraries.TAGGERS,
    limit=600.0,
    options={"--once-above": ONCE_ABOVE},
)
