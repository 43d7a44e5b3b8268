"""`python -m benchmarks kernel`: its options, tables and last lines."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict

from benchmarks.bars import judge
from benchmarks.command import Command, add_once_above
from benchmarks.contest import Settings
from benchmarks.kernel.compare import RIVALS, Row, Work, compare
from benchmarks.kernel.libraries import EXACT, SOLVERS
from benchmarks.kernel.problems import PROBLEMS
from benchmarks.rbf import THREADS
from benchmarks.report import Report, Section
from benchmarks.rivals import usable
from benchmarks.tables import breakdown_columns, megabytes, optional


def _training_over(rival: str) -> Callable[[Row], str]:
    return lambda row: optional(row.train_over.get(rival), 3)


ROW_COLUMNS: dict[str, Callable[[Row], str]] = {
    "problem": lambda row: row.problem,
    "solver": lambda row: row.solver,
    "runs": lambda row: str(row.runs),
    "train s": lambda row: f"{row.train:.3f}",
    "train ratio": lambda row: optional(row.train_ratio),
    **{f"over {rival}": _training_over(rival) for rival in RIVALS},
    "predict s": lambda row: f"{row.predict:.3f}",
    "predict ratio": lambda row: optional(row.predict_ratio),
    "train CPU s": lambda row: f"{row.train_cpu:.3f}",
    "test error %": lambda row: f"{100 * row.error:.2f}",
    "patterns": lambda row: str(row.support_patterns),
    "vectors": lambda row: str(row.support_vectors),
    "peak MB": lambda row: megabytes(row.peak),
    "own MB": lambda row: megabytes(row.peak_without_input),
}
OBJECTIVE_COLUMNS: dict[str, Callable[[Row], str]] = {
    "problem": lambda row: row.problem,
    "solver": lambda row: row.solver,
    "objective": lambda row: row.objective,
    "primal": lambda row: optional(row.primal, 2),
    "dual": lambda row: optional(row.dual, 2),
    "relative gap": lambda row: "-" if row.relative_gap is None else f"{row.relative_gap:.1e}",
}
WORK_COLUMNS: dict[str, Callable[[Work], str]] = {
    "problem": lambda work: work.problem,
    "solver": lambda work: work.solver,
    "train s": lambda work: f"{work.train:.3f}",
    "million kernel values": lambda work: f"{work.kernel_values / 1e6:.1f}",
    "bare GEMM s": lambda work: optional(work.product, 3),
    "train / GEMM": lambda work: optional(work.train / work.product if work.product else None),
    "in CPU s": lambda work: optional(work.cpu_ratio),
    "certificate s": lambda work: optional(work.certificate, 3),
}
DIFFERENT_OBJECTIVES = (
    "The rivals solve one-versus-one or one-versus-rest problems with a bias, to their own tolerance; larank makes one "
    "pass over a single multiclass problem without a bias, and larank-exact solves that problem, its certificate "
    "included in its time. Compare time at the error reached, and objectives only where they are of the same problem."
)
BARS: dict[tuple[str, str], float] = {
    ("mnist", "svc"): 1 / 8,
    ("mnist", "intelex"): 3 / 4,
    ("usps", "svc"): 1.0,
    ("letter", "svc"): 1.5,
}
"""What the exact solver's training may take at most, of that of a rival in the same run."""
WHAT_BOUNDS_THE_TIME = (
    "What bounds the time of larank's one pass: on mnist the float32 products, 6.9 of 12.0 CPU seconds; by a sample "
    "of the operations 1.8 go into steps and 1.2 into selection, the rest is kernel map, upkeep of the gram and "
    "Python. Prediction of its test set takes 0.92 s where the bare product takes 0.82. On letter, with 16 features, "
    "perf shows scores, updates of a class and random access to patterns about alike, and a fifth of the session in "
    "the upkeep of the gram. Tried without gain: gather instructions for the scores, prefetching further ahead."
)


def judged(rows: Sequence[Row]) -> list[str]:
    """How the exact solver's training times stand to what they may be, a line for each that can be told."""
    return judge(EXACT.name, {row.problem: row.train_over for row in rows if row.solver == EXACT.name}, BARS)


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
    sections = [
        Section(
            f"Training and prediction of the test set, {THREADS} threads, wall seconds", ROW_COLUMNS, comparison.rows
        ),
        Section("Objectives reached; rows of different objectives do not compare", OBJECTIVE_COLUMNS, comparison.rows),
        Section("larank against the bare product of as many values", WORK_COLUMNS, comparison.work),
        Section(
            "Where larank's time goes, thread-seconds", breakdown_columns(comparison.work, "solver"), comparison.work
        ),
    ]
    lines = [f"{missing.problem}: {missing.solver} {missing.reason}" for missing in comparison.unfinished]
    return Report(
        sections, [*lines, *judged(comparison.rows), DIFFERENT_OBJECTIVES, WHAT_BOUNDS_THE_TIME], asdict(comparison)
    )


KERNEL = Command(
    name="kernel",
    summary="kernel multiclass SVMs",
    problems=PROBLEMS,
    default_problems=tuple(PROBLEMS),
    solvers=SOLVERS,
    default_limit=3600.0,
    libraries=("larank", "scikit-learn-intelex", "scikit-learn", "libsvm-official", "numpy", "scipy"),
    add_options=add_once_above,
    run=_run,
)
