"""`python -m benchmarks sequence`: its tables and last lines."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict

from benchmarks.command import Command, add_once_above
from benchmarks.contest import Settings
from benchmarks.report import Report, Section
from benchmarks.rivals import usable
from benchmarks.sequence.compare import REFERENCE, LongRow, Row, compare
from benchmarks.sequence.libraries import OURS, SOLVERS
from benchmarks.sequence.libraries.crfsuite import LBFGS_ITERATIONS
from benchmarks.sequence.problems import PROBLEMS
from benchmarks.tables import breakdown_columns, megabytes, optional

TRAIN_BAR = 1 / 3
TAG_BAR = 3.0
F1_BAR = 0.934

COLUMNS: dict[str, Callable[[Row], str]] = {
    "problem": lambda row: row.problem,
    "solver": lambda row: row.solver,
    "runs": lambda row: str(row.runs),
    "text to model s": lambda row: f"{row.train:.3f}",
    f"over {REFERENCE}": lambda row: optional(row.train_over, 3),
    "CPU s": lambda row: f"{row.train_cpu:.3f}",
    "over it in CPU s": lambda row: optional(row.cpu_over, 3),
    "F1 %": lambda row: f"{100 * row.f1:.2f}",
    "accuracy %": lambda row: f"{100 * row.accuracy:.2f}",
    "tokens/s": lambda row: f"{row.tokens_per_second:,.0f}",
    f"times {REFERENCE}": lambda row: optional(row.tag_over, 1),
    "tokens/s, features ready": lambda row: (
        "-" if row.prepared_per_second is None else f"{row.prepared_per_second:,.0f}"
    ),
    "peak MB": lambda row: megabytes(row.peak),
}
LONG_COLUMNS: dict[str, Callable[[LongRow], str]] = {
    "problem": lambda row: row.problem,
    "solver": lambda row: row.solver,
    "file": lambda row: "as it is" if row.repetitions == 1 else f"{row.repetitions} times over",
    "memory_limit MB": lambda row: megabytes(int(row.memory_limit)),
    "text to model s": lambda row: f"{row.seconds:.2f}",
    "peak MB": lambda row: megabytes(row.peak),
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


def judged(rows: Sequence[Row]) -> list[str]:
    """How larank stands to the bars, where that can be told."""
    lines = []
    ours = {solver.name for solver in OURS}
    for row in rows:
        if row.solver not in ours or row.tag_over is None:
            continue
        f1 = next(other.f1 for other in rows if other.problem == row.problem and other.solver == REFERENCE)
        said = f"{row.problem}: {row.solver}"
        lines += [
            f"{said} {_judged_training(row)}",
            f"{said} has F1 {100 * row.f1:.2f}, {REFERENCE} {100 * f1:.2f}; bar {100 * F1_BAR:.1f} and no less than "
            f"{REFERENCE}, {_met(row.f1 >= max(F1_BAR, f1))}",
            f"{said} tags {row.tag_over:.1f} times as fast as {REFERENCE}; bar {TAG_BAR:g}, "
            f"{_met(row.tag_over >= TAG_BAR)}",
        ]
    return lines


def _judged_training(row: Row) -> str:
    """By wall seconds; where CPU seconds say otherwise, other work on the machine has decided, and nothing is told."""
    alone = 1 - row.certificate / row.train
    wall, cpu = alone * (row.train_over or 0.0), alone * (row.cpu_over or 0.0)
    agree = (wall <= TRAIN_BAR) == (cpu <= TRAIN_BAR)
    verdict = _met(wall <= TRAIN_BAR) if agree else "undecided (the two disagree; run it on a quiet machine)"
    return (
        f"takes {wall:.3f} of {REFERENCE}'s time from text to model, {cpu:.3f} in CPU seconds ({row.train_over:.3f} "
        f"and {row.cpu_over:.3f} with its certificate); bar {TRAIN_BAR:.3f}, {verdict}"
    )


def _met(holds: bool) -> str:
    return "met" if holds else "missed"


def _run(arguments: argparse.Namespace, log: Callable[[str], None]) -> Report:
    solvers = usable(arguments.solvers, SOLVERS, log)
    choice = (arguments.repeats, arguments.once_above, arguments.limit, log)
    comparison = compare(Settings(arguments.problems, solvers, *choice))
    sections = [
        Section("From text to a model, and from text to tags, wall seconds", COLUMNS, comparison.rows),
        Section("Where the time goes, seconds", breakdown_columns(comparison.rows, "solver"), comparison.rows),
        Section("Memory as the file grows", LONG_COLUMNS, comparison.long_rows),
    ]
    lines = [f"{missing.problem}: {missing.solver} {missing.reason}" for missing in comparison.unfinished]
    lines += [*judged(comparison.rows), WHAT_IS_COMPARED, WHAT_BOUNDS_THE_TIME]
    return Report(sections, lines, asdict(comparison))


SEQUENCE = Command(
    name="sequence",
    summary="tagging of text, from files",
    problems=PROBLEMS,
    default_problems=PROBLEMS,
    solvers=SOLVERS,
    default_limit=600.0,
    libraries=("larank", "python-crfsuite", "numpy", "scipy"),
    add_options=add_once_above,
    run=_run,
)
