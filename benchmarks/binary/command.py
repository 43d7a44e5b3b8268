"""`python -m benchmarks binary`: its tables and last lines."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict

from benchmarks.bars import Bars, judge
from benchmarks.binary.compare import RIVALS, Row, compare, ratios, ratios_of_training_alone
from benchmarks.binary.libraries import OURS, SOLVERS
from benchmarks.binary.problems import PROBLEMS
from benchmarks.command import Command, add_once_above
from benchmarks.contest import Settings
from benchmarks.rbf import CACHE_MEGABYTES, THREADS
from benchmarks.report import Report, Section
from benchmarks.rivals import usable
from benchmarks.tables import breakdown_columns, megabytes, optional
from larank.reproduce.datasets import BINARY

BARS: Bars = {
    ("adult", "svc"): 1 / 8,
    ("adult", "intelex"): 1.0,
    ("reuters", "intelex"): 1.0,
    ("mnist8", "intelex"): 1 / 3,
    ("covtype100k", "intelex"): 1 / 2,
    ("banana", "svc"): 1.0,
    ("waveform", "svc"): 1.0,
}
"""What larank's training, one epoch with finishing, may take at most, of that of a rival in the same run."""


def _training_over(rival: str) -> Callable[[Row], str]:
    return lambda row: optional(row.train_over.get(rival), 3)


def _part(name: str) -> Callable[[Row], str]:
    return lambda row: optional(row.breakdown.get(name), 3)


COLUMNS: dict[str, Callable[[Row], str]] = {
    "problem": lambda row: row.problem,
    "solver": lambda row: row.solver,
    "data": lambda row: f"{row.form} *" if row.is_fastest else row.form,
    "runs": lambda row: str(row.runs),
    "train s": lambda row: f"{row.train:.3f}",
    **{f"over {rival}": _training_over(rival) for rival in RIVALS},
    "finish s": _part("finish"),
    "certificate s": _part("certificate"),
    "train CPU s": lambda row: f"{row.train_cpu:.3f}",
    "predict s": lambda row: f"{row.predict:.3f}",
    "test error %": lambda row: f"{100 * row.error:.2f}",
    "vectors": lambda row: str(row.support_vectors),
    "peak MB": lambda row: megabytes(row.peak),
    "own MB": lambda row: megabytes(row.peak_without_input),
}
OBJECTIVE_COLUMNS: dict[str, Callable[[Row], str]] = {
    "problem": lambda row: row.problem,
    "solver": lambda row: row.solver,
    "data": lambda row: row.form,
    "dual": lambda row: f"{row.dual:.2f}",
    "short of best": lambda row: f"{row.short_of_best:.1e}",
    "primal": lambda row: optional(row.primal, 2),
    "relative gap": lambda row: "-" if row.relative_gap is None else f"{row.relative_gap:.1e}",
    "million kernel values": lambda row: "-" if row.kernel_values is None else f"{row.kernel_values / 1e6:.1f}",
}
WHAT_IS_COMPARED = (
    f"All solve the same problem. The rivals go on to their tolerance of 0.001 over all examples, with a cache of "
    f"{CACHE_MEGABYTES} MB; larank makes one epoch and finishes to 0.001 over the examples it kept. Its seconds "
    "include the certificate, which the rivals do not compute; the bars are judged with and without "
    "it. Data: * marks a solver's fastest form, which counts in the ratios."
)


def _run(arguments: argparse.Namespace, log: Callable[[str], None]) -> Report:
    comparison = compare(
        Settings(
            problems=arguments.problems,
            solvers=usable(arguments.solvers, SOLVERS, log),
            repeats=arguments.repeats,
            once_above=arguments.once_above,
            limit=arguments.limit,
            log=log,
        )
    )
    ours = [row for row in comparison.rows if row.solver == OURS.name]
    sections = [
        Section(f"Training and prediction of the test set, {THREADS} threads, wall seconds", COLUMNS, comparison.rows),
        Section("Objectives reached, and kernel values where they are told", OBJECTIVE_COLUMNS, comparison.rows),
        Section("Where larank's time goes, thread-seconds", breakdown_columns(ours, "form"), ours),
    ]
    lines = [f"{missing.problem}: {missing.solver} {missing.reason}" for missing in comparison.unfinished]
    lines += judge(OURS.name, ratios_of_training_alone(comparison.rows), BARS)
    lines += judge(f"{OURS.name} with its certificate", ratios(comparison.rows), BARS)
    notes = [f"{name}: {BINARY[name].note}." for name in arguments.problems if BINARY[name].note]
    return Report(sections, [*lines, *notes, WHAT_IS_COMPARED], asdict(comparison))


BINARY_COMMAND = Command(
    name="binary",
    summary="kernel binary SVMs",
    problems=PROBLEMS,
    default_problems=tuple(PROBLEMS),
    solvers=SOLVERS,
    default_limit=1800.0,
    libraries=("larank", "scikit-learn-intelex", "scikit-learn", "libsvm-official", "numpy", "scipy"),
    add_options=add_once_above,
    run=_run,
)
