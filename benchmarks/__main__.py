"""`python -m benchmarks linear`: larank against other linear multiclass solvers."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import linear, tables
from benchmarks.libraries import SOLVERS
from benchmarks.measure import load_average
from benchmarks.problems import PROBLEMS

DEFAULT_PROBLEMS = ("news20", "reuters_r52", "mnist", "covtype")
LIBRARIES = ("larank", "liblinear-official", "scikit-learn", "snapml", "numpy", "scipy")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    command = parser.add_subparsers(required=True).add_parser("linear", help="linear multiclass SVMs")
    command.add_argument("--problems", nargs="+", choices=PROBLEMS, default=DEFAULT_PROBLEMS, metavar="NAME")
    command.add_argument("--solvers", nargs="+", choices=SOLVERS, default=tuple(SOLVERS), metavar="NAME")
    command.add_argument("--repeats", type=int, default=3, help="runs at the chosen tolerance, the best counts")
    command.add_argument("--dtype", choices=("float64", "float32"), default="float64", help="of the data handed over")
    command.add_argument("--target", type=float, default=1e-3, help="relative distance to the optimum to reach")
    command.add_argument("--limit", type=float, default=600.0, help="seconds after which a single run is given up")
    command.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    command.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    arguments = parser.parse_args()
    if arguments.repeats < 1:
        parser.error(f"--repeats {arguments.repeats}: must be at least 1")
    return arguments


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "processor": _processor()}
    for library in LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            found[library] = "absent"
    return found


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _show(comparison: linear.Comparison, title: str, markdown: bool) -> None:
    sections: list[tuple[str, tables.Columns, Sequence[Any]]] = [
        (title, tables.ROW_COLUMNS, comparison.rows),
        ("One epoch, CPU seconds", tables.EPOCH_COLUMNS, comparison.epochs),
    ]
    wide = Console(width=None if sys.stdout.isatty() else 200)
    for heading, columns, rows in sections:
        if not rows:
            continue
        if markdown:
            print(f"\n{heading}\n\n{tables.as_markdown(columns, rows)}")
        else:
            wide.print(tables.on_terminal(heading, columns, rows))


def main() -> None:
    arguments = _arguments()

    def log(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    settings = linear.Settings(
        problems=arguments.problems,
        solvers=linear.usable(arguments.solvers, log),
        repeats=arguments.repeats,
        dtype=arguments.dtype,
        target=arguments.target,
        limit=arguments.limit,
        log=log,
    )
    before = load_average()
    comparison = linear.compare(settings)
    title = f"Time to a primal objective within {settings.target:g} of the optimum, {settings.dtype}, one thread"
    _show(comparison, title, arguments.markdown)
    versions = _versions()
    print("\n".join(tables.optima_lines(comparison)))
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    print(f"before: {before}; after: {load_average()}")
    print(linear.WHAT_BOUNDS_THE_TIME)
    if arguments.json:
        arguments.json.write_text(json.dumps({"versions": versions, **asdict(comparison)}, indent=2) + "\n")


if __name__ == "__main__":
    main()
