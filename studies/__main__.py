"""`python -m studies NAME`: run a study; without a name, list them.

Tables go to standard output, progress and errors to standard error. Exit status: 0 done, 1 the study failed (one line
says why), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from larank.data.files import atomic_write
from studies import drawing, epochs, faults, files, invariant, memorylimits, onepass, streams, timelimits, workers
from studies.agreement import campaign
from studies.measure import load_average, versions
from studies.papers import active as active_figures
from studies.papers import concepts, larank, lasvm, mcsvm, ospas, primal, sdm, sgdqn
from studies.papers import sequence as sequence_tables
from studies.rivals import (
    active,
    ambiguous,
    binary,
    cache,
    kernel,
    linear,
    maps,
    memory,
    path,
    search,
    sequence,
    sgd,
    tagging,
    threads,
)
from studies.rivals import primal as primal_rivals
from studies.study import Outcome, Study

_SINGLE = (
    sdm,
    sgdqn,
    primal,
    lasvm,
    active_figures,
    sequence_tables,
    ospas,
    concepts,
    linear,
    threads,
    primal_rivals,
    sgd,
    kernel,
    memory,
    maps,
    path,
    search,
    binary,
    cache,
    active,
    sequence,
    tagging,
    ambiguous,
    campaign,
    epochs,
    onepass,
    streams,
    memorylimits,
    timelimits,
    faults,
    files,
    invariant,
    workers,
)
STUDIES: dict[str, Study] = {
    study.name: study for study in (*larank.STUDIES, *mcsvm.STUDIES, *(module.STUDY for module in _SINGLE))
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one; the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if not words:
        width = max(map(len, STUDIES))
        print("\n".join(f"{name:{width}}  {study.title}" for name, study in STUDIES.items()))
        return 0
    parser = _parser()
    chosen = parser.parse_args(words)
    study = STUDIES[chosen.study]
    try:
        _check_output(chosen.output, study)
        scope = study.scope(chosen)
    except ValueError as error:
        parser.error(str(error))
    try:
        outcome = _run(study, scope, chosen)
    except Exception as error:
        if chosen.debug:
            raise
        _say(f"error: {' '.join(str(error).split())} (--debug shows where)")
        return 1
    return int(outcome.has_failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m studies", description="Run a study of the library; without a name, list them."
    )
    names = parser.add_subparsers(dest="study", metavar="NAME", required=True)
    for study in STUDIES.values():
        options = names.add_parser(study.name, help=study.title, description=study.title)
        options.add_argument("--quick", action="store_true", help="a small form, which only shows that it works")
        if study.datasets:
            options.add_argument(
                "--datasets",
                "--problems",
                nargs="+",
                default=(),
                metavar="NAME",
                help=f"only these of: {', '.join(study.datasets)}",
            )
        study.add_options(options)
        options.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
        options.add_argument(
            "--output",
            "--json",
            type=Path,
            metavar="FILE",
            help="also write the numbers (.json)" + (f" or a plot ({' '.join(drawing.KINDS)})" if study.draw else ""),
        )
        options.add_argument("--debug", action="store_true", help="if something fails, show the whole traceback")
    return parser


def _check_output(path: Path | None, study: Study) -> None:
    """Find out before the work, not after it, that the outcome cannot be written."""
    if path is None:
        return
    if path.suffix not in (".json", *drawing.KINDS):
        raise ValueError(f"{path}: the extension must be one of .json {' '.join(drawing.KINDS)}")
    if not path.resolve().parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.resolve().parent}")
    if path.suffix != ".json" and study.draw is None:
        raise ValueError(f"{path}: {study.name} is a table, which can only be written as .json")


def _run(study: Study, scope: Any, chosen: argparse.Namespace) -> Outcome:
    if chosen.output and chosen.output.suffix != ".json":
        drawing.check_installed()
    before = load_average()
    outcome = study.run(scope, _say)
    _show(outcome, chosen.markdown)
    numbers = outcome.to_dict()
    if study.libraries:
        numbers = {"versions": versions(study.libraries), **numbers}
        print(", ".join(f"{name} {version}" for name, version in numbers["versions"].items()))
        print(f"before: {before}; after: {load_average()}")
    if chosen.output:
        _write(chosen.output, study, outcome, numbers)
        print(f"written to {chosen.output}")
    return outcome


def _show(outcome: Outcome, markdown: bool) -> None:
    """Tables with no rows are left out."""
    wide = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    for table in outcome.to_tables():
        if table.rows:
            print(f"\n{table.as_markdown()}") if markdown else wide.print(table.on_terminal())
    for line in outcome.to_lines():
        print(line)


def _write(path: Path, study: Study, outcome: Outcome, numbers: dict[str, Any]) -> None:
    content = json.dumps(numbers, indent=2).encode() + b"\n"
    if path.suffix != ".json" and study.draw is not None:
        content = drawing.drawn(study.draw, outcome, path.suffix)
    with atomic_write(path) as file:
        file.write(content)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
