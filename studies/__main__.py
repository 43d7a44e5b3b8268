"""`python -m studies NAME`: run a study; without a name, or with `--list`, list them.

Tables go to standard output, progress and errors to standard error. Exit status: 0 done, 1 the study failed (one line
says why) or, with `--check`, missed a claim, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from larank.data.files import atomic_write
from studies import drawing
from studies.measure import commit, load_average, versions
from studies.study import Findings, Study, plain

_PAPERS = "larank mcsvm sdm sgdqn primal lasvm active sequence ospas concepts"
_RIVALS = "linear primal sgd kernel maps search binary active sequence tagging ambiguous"
_OTHERS = "agreement.campaign passes streams limits faults files invariant workers"
MODULES = (
    *(f"papers.{name}" for name in _PAPERS.split()),
    *(f"rivals.{name}" for name in _RIVALS.split()),
    *_OTHERS.split(),
)
"""Modules with one study or several, in the order of the list."""
USUAL_LIBRARIES = ("larank", "numpy", "scipy", "scikit-learn")
"""Packages whose versions are recorded for every study."""
STUDIES: dict[str, Study] = {
    study.name: study
    for module in (importlib.import_module(f"studies.{name}") for name in MODULES)
    for study in getattr(module, "STUDIES", None) or (module.STUDY,)
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one study; return the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words in ([], ["--list"]):
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
        if chosen.output and (chosen.output.suffix in drawing.KINDS or (study.draw and chosen.output.is_dir())):
            drawing.check_installed()
        before, began = load_average(), time.perf_counter()
        found = study.run(scope, _say)
        about = {
            "study": study.name,
            "title": study.title,
            "words": words,
            "quick": chosen.quick,
            "commit": commit(),
            "versions": versions(dict.fromkeys((*USUAL_LIBRARIES, *study.libraries))),
            "load": [before, load_average()],
            "seconds": round(time.perf_counter() - began, 1),
        }
        _show(found, about, chosen.markdown)
        if chosen.output:
            _write(chosen.output, study, found, about)
    except Exception as error:
        if chosen.debug:
            raise
        _say(f"error: {' '.join(str(error).split())} (--debug shows where)")
        return 1
    missed = [claim for claim in found.to_claims() if claim.holds is False]
    return int(found.has_failed or bool(chosen.check and missed))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m studies", description="Run a study of the library; without a name, or with --list, list them."
    )
    names = parser.add_subparsers(dest="study", metavar="NAME", required=True)
    for study in STUDIES.values():
        options = names.add_parser(study.name, help=study.title, description=study.title)
        options.add_argument("--quick", action="store_true", help="a small form, which only shows that it works")
        study.add_options(options)
        options.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
        kinds = f" or a plot ({' '.join(drawing.KINDS)})" if study.draw else ""
        both = " and NAME.svg" if study.draw else ""
        written = f"also write a file with the numbers (.json){kinds}, or into a folder NAME.json{both}"
        options.add_argument("--output", "--json", type=Path, metavar="PATH", help=written)
        options.add_argument("--check", action="store_true", help="exit with status 1 if a claim is missed")
        options.add_argument("--debug", action="store_true", help="if something fails, show the whole traceback")
    return parser


def _check_output(path: Path | None, study: Study) -> None:
    """Find out before the work, not after it, that the findings cannot be written."""
    if path is None or path.is_dir():
        return
    if path.suffix not in (".json", *drawing.KINDS):
        raise ValueError(f"{path}: must be a folder, or the extension must be one of .json {' '.join(drawing.KINDS)}")
    if not path.resolve().parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.resolve().parent}")
    if path.suffix != ".json" and study.draw is None:
        raise ValueError(f"{path}: {study.name} is a table, which can only be written as .json")


def _show(found: Findings, about: Mapping[str, Any], markdown: bool) -> None:
    """Print the tables that have rows, the lines, and what was run where."""
    if about["quick"]:
        print("Quick form: it only shows that the study works; its figures say nothing.")
    wide = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    for table in found.to_tables():
        if table.rows:
            print(f"\n{table.as_markdown()}") if markdown else wide.print(table.on_terminal())
    print("\n".join([*found.to_lines(), ", ".join(f"{name} {version}" for name, version in about["versions"].items())]))
    print(f"commit {about['commit']}, {about['seconds']} s; before: {about['load'][0]}; after: {about['load'][1]}")


def _write(path: Path, study: Study, found: Findings, about: Mapping[str, Any]) -> None:
    """Write one file, or into a folder all there is."""
    kinds = [".json", *([".svg"] if study.draw else [])]
    for file in [path / f"{study.name}{kind}" for kind in kinds] if path.is_dir() else [path]:
        if file.suffix == ".json":
            content = json.dumps(_page(found, about), indent=2, allow_nan=False).encode() + b"\n"
        else:
            assert study.draw is not None
            content = drawing.drawn(study.draw, found, file.suffix)
        with atomic_write(file) as target:
            target.write(content)
        print(f"written to {file}")


def _page(found: Findings, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return all there is to say of a run: what was run where, tables as they are printed, claims and numbers."""
    tables = [
        {"title": table.title, "headings": list(table.headings), "notes": list(table.notes)}
        | {"rows": [{"cells": list(cells), "style": style} for cells, style in table.rows], "ends": sorted(table.ends)}
        for table in found.to_tables()
        if table.rows
    ]
    claims = [claim.to_dict() for claim in found.to_claims()]
    page = {"about": about, "tables": tables, "lines": list(found.to_lines()), "claims": claims}
    return plain(page | {"numbers": found.to_dict()})  # type: ignore[no-any-return]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
