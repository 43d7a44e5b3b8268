"""Rows of figures as tables, for a terminal or as Markdown."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from rich.table import Table

MEGABYTE = 1e6

Columns = dict[str, Callable[[Any], str]]
LEFT = {"problem", "objective", "solver", "training"}


def on_terminal(title: str, columns: Columns, rows: Sequence[Any]) -> Table:
    table = Table(title=title)
    for heading in columns:
        table.add_column(heading, justify="left" if heading in LEFT else "right", no_wrap=True)
    for _, group in itertools.groupby(rows, key=lambda row: row.problem):
        for row in group:
            table.add_row(*(cell(row) for cell in columns.values()))
        table.add_section()
    return table


def as_markdown(columns: Columns, rows: Sequence[Any]) -> str:
    lines = [list(columns), [":---" if heading in LEFT else "---:" for heading in columns]]
    lines += [[cell(row) for cell in columns.values()] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def breakdown_columns(rows: Sequence[Any], name: str) -> dict[str, Callable[[Any], str]]:
    """One column for every part some run reports; `name` is the attribute that says whose."""
    parts = dict.fromkeys(part for row in rows for part in row.breakdown)
    return {
        "problem": lambda row: row.problem,
        name: lambda row: str(getattr(row, name)),
        **{part: _seconds_of(part) for part in parts},
        "train s": lambda row: f"{row.train:.3f}",
    }


def _seconds_of(part: str) -> Callable[[Any], str]:
    return lambda row: optional(row.breakdown.get(part), 3)


def optional(value: float | None, digits: int = 2) -> str:
    """A number that not every row has."""
    return "-" if value is None else f"{value:.{digits}f}"


def megabytes(size: int) -> str:
    return f"{size / MEGABYTE:.0f}"
