"""`python -m benchmarks linear`: its options, tables and last lines."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict

from benchmarks.command import Command
from benchmarks.linear.compare import Comparison, Epoch, Row, Settings, compare
from benchmarks.linear.libraries import SOLVERS
from benchmarks.linear.problems import PROBLEMS
from benchmarks.report import Report, Section
from benchmarks.rivals import usable
from benchmarks.tables import megabytes, optional

ROW_COLUMNS: dict[str, Callable[[Row], str]] = {
    "problem": lambda row: row.problem,
    "objective": lambda row: row.formulation,
    "solver": lambda row: row.solver,
    "tolerance": lambda row: f"{row.tolerance:g}" + ("" if row.reached else " (missed)"),
    "CPU s": lambda row: f"{row.cpu:.3f}",
    "wall s": lambda row: f"{row.wall:.3f}",
    "ratio": lambda row: optional(row.ratio),
    "primal": lambda row: f"{row.primal:.3f}",
    "off by": lambda row: f"{row.suboptimality:.1e}",
    "gap": lambda row: f"{row.gap:.2e}",
    "test error %": lambda row: f"{100 * row.error:.2f}",
    "peak MB": lambda row: megabytes(row.peak),
    "own MB": lambda row: megabytes(row.peak_without_input),
}
EPOCH_COLUMNS: dict[str, Callable[[Epoch], str]] = {
    "problem": lambda row: row.problem,
    "larank, one epoch, s": lambda row: f"{row.epoch:.4f}",
    "scipy X @ W, s": lambda row: f"{row.product:.4f}",
    "ratio": lambda row: f"{row.epoch / row.product:.2f}",
}

WHAT_BOUNDS_THE_TIME = (
    "What bounds larank's time (perf, sampled by CPU clock): memory. news20 and reuters_r52: fetching the rows of W "
    "(10 to 14 MB, two to seven cache lines per stored value) from L3 for the scores of an example, about 3/4 of the "
    "time; the update finds the same rows in L1. mnist: W (100 kB) out of L2, scores 44 %, updates 18 %, row QPs 7 %, "
    "most of the rest fetching examples in random order. covtype: fetching examples and their coefficients in random "
    "order a third, scores a quarter, row QPs a tenth. The visits needed are bounded by the convergence of dual "
    "coordinate descent: about 12 per example on text, 15 on covtype, 260 on mnist, where C |x|^2 is near 100."
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64", help="of the data handed over")
    parser.add_argument("--target", type=float, default=1e-3, help="relative distance to the optimum to reach")


def _run(arguments: argparse.Namespace, log: Callable[[str], None]) -> Report:
    comparison = compare(
        Settings(
            problems=arguments.problems,
            solvers=usable(arguments.solvers, SOLVERS, log),
            repeats=arguments.repeats,
            dtype=arguments.dtype,
            target=arguments.target,
            limit=arguments.limit,
            log=log,
        )
    )
    title = f"Time to a primal objective within {arguments.target:g} of the optimum, {arguments.dtype}, one thread"
    sections = [
        Section(title, ROW_COLUMNS, comparison.rows),
        Section("One epoch, CPU seconds", EPOCH_COLUMNS, comparison.epochs),
    ]
    return Report(sections, [*optima_lines(comparison), WHAT_BOUNDS_THE_TIME], asdict(comparison))


def optima_lines(comparison: Comparison) -> list[str]:
    """How each optimum is known."""
    return [
        f"{problem}, {formulation}: optimum in [{optimum.lower:.4f}, {optimum.upper:.4f}], LIBLINEAR, tight: "
        + ("over the time limit" if optimum.confirmed is None else f"{optimum.confirmed:.4f}")
        for problem, found in comparison.optima.items()
        for formulation, optimum in found.items()
    ]


LINEAR = Command(
    name="linear",
    summary="linear multiclass SVMs",
    problems=PROBLEMS,
    default_problems=("news20", "reuters_r52", "mnist", "covtype"),
    solvers=SOLVERS,
    default_limit=600.0,
    libraries=("larank", "liblinear-official", "scikit-learn", "snapml", "numpy", "scipy"),
    add_options=_add_options,
    run=_run,
)
