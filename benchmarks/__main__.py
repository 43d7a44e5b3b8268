"""`python -m benchmarks COMMAND`: larank against other libraries, or against itself with other settings."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.binary.activelearning import ACTIVE
from benchmarks.binary.cachesize import CACHE
from benchmarks.binary.command import BINARY_COMMAND
from benchmarks.kernel.command import KERNEL
from benchmarks.kernel.costpath import PATH
from benchmarks.kernel.memorylimit import MEMORY
from benchmarks.linear.command import LINEAR
from benchmarks.measure import load_average
from benchmarks.sequence.command import SEQUENCE

COMMANDS = (LINEAR, KERNEL, MEMORY, PATH, BINARY_COMMAND, CACHE, ACTIVE, SEQUENCE)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for command in COMMANDS:
        options = commands.add_parser(command.name, help=command.summary)
        options.set_defaults(command=command)
        options.add_argument(
            "--problems", nargs="+", choices=command.problems, default=command.default_problems, metavar="NAME"
        )
        if command.solvers:
            options.add_argument(
                "--solvers", nargs="+", choices=command.solvers, default=tuple(command.solvers), metavar="NAME"
            )
        options.add_argument("--repeats", type=int, default=3, help="runs of each kind, the best counts")
        options.add_argument(
            "--limit", type=float, default=command.default_limit, help="seconds after which a single run is given up"
        )
        options.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
        options.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
        command.add_options(options)
    arguments = parser.parse_args()
    if arguments.repeats < 1:
        parser.error(f"--repeats {arguments.repeats}: must be at least 1")
    return arguments


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    arguments = _arguments()
    before = load_average()
    found: report.Report = arguments.command.run(arguments, _log)
    report.show(found, arguments.markdown)
    versions = report.versions(arguments.command.libraries)
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    print(f"before: {before}; after: {load_average()}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"versions": versions, **found.figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
