"""What a comparison hands to the command line, and how that is printed."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import tables


@dataclass(frozen=True)
class Section:
    """One table."""

    title: str
    columns: tables.Columns
    rows: Sequence[Any]


@dataclass(frozen=True)
class Report:
    """Tables, lines to print below them, and all figures for the JSON file."""

    sections: Sequence[Section]
    lines: Sequence[str]
    figures: Mapping[str, Any]


def show(report: Report, markdown: bool) -> None:
    """Tables with no rows are left out."""
    wide = Console(width=None if sys.stdout.isatty() else 200)
    for section in report.sections:
        if not section.rows:
            continue
        if markdown:
            print(f"\n{section.title}\n\n{tables.as_markdown(section.columns, section.rows)}")
        else:
            wide.print(tables.on_terminal(section.title, section.columns, section.rows))
    for line in report.lines:
        print(line)


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Of Python, the processor and these packages."""
    found = {"python": platform.python_version(), "processor": _processor()}
    for library in libraries:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            found[library] = "absent"
    return found


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
