"""Tables of figures: their look on a terminal and as Markdown, and how numbers become cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import rich.table
from rich import box
from rich.markup import escape

MEGABYTE = 1e6

Columns = Mapping[str, Callable[[Any], str]]
"""By heading, what a row has in this column."""
WORDS = {"problem", "objective", "solver", "training"}
"""Headings of columns that are aligned left, as the first column always is."""


@dataclass
class Table:
    """A title, rows of cells in groups, and notes below."""

    title: str
    headings: Sequence[str]
    notes: Sequence[str] = ()
    rows: list[tuple[Sequence[str], str]] = field(default_factory=list)
    ends: set[int] = field(default_factory=set)

    def add(self, *cells: str, style: str = "") -> None:
        """One more row; `style` is "bold" for a heading of a group, "dim" for what is not ours."""
        self.rows.append((cells, style))

    def end_group(self) -> None:
        """What follows stands apart."""
        self.ends.add(len(self.rows) - 1)

    def on_terminal(self) -> rich.table.Table:
        table = rich.table.Table(
            title=escape(self.title),
            caption=escape("\n".join(self.notes)),
            box=box.SIMPLE_HEAD,
            title_justify="left",
            caption_justify="left",
        )
        for number, heading in enumerate(self.headings):
            left = self._is_left(number)
            table.add_column(escape(heading), justify="left" if left else "right", no_wrap=left)
        for number, (cells, style) in enumerate(self.rows):
            table.add_row(*map(escape, cells), style=style, end_section=number in self.ends)
        return table

    def as_markdown(self) -> str:
        width = len(self.headings)
        lines = [list(self.headings), [":---" if self._is_left(number) else "---:" for number in range(width)]]
        for cells, style in self.rows:
            shown = [f"**{cell}**" if style == "bold" and cell else cell for cell in cells]
            lines.append([*shown, *[""] * (width - len(cells))])
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n\n".join([self.title, table, *self.notes])

    def _is_left(self, number: int) -> bool:
        return number == 0 or self.headings[number] in WORDS


def of_rows(title: str, columns: Columns, rows: Sequence[Any]) -> Table:
    """A row for each of them, those of a problem in a group."""
    table = Table(title, tuple(columns))
    for _, group in itertools.groupby(rows, key=lambda row: row.problem):
        for row in group:
            table.add(*(cell(row) for cell in columns.values()))
        table.end_group()
    return table


def of_breakdowns(title: str, rows: Sequence[Any], name: str) -> Table:
    """The seconds of every part some row reports; `name` is the attribute that says whose."""
    parts = dict.fromkeys(part for row in rows for part in row.breakdown)
    columns = {
        "problem": figure("problem"),
        name: figure(name),
        **{part: item("breakdown", part, ".3f") for part in parts},
        "train s": figure("train", ".3f"),
    }
    return of_rows(title, columns, rows)


# ---- Cells ----


def figure(attribute: str, form: str = "", scale: float = 1) -> Callable[[Any], str]:
    """A column: this attribute of a row, in this format."""
    return lambda row: optional(getattr(row, attribute), form, scale)


def item(attribute: str, key: str, form: str) -> Callable[[Any], str]:
    """A column: one item of an attribute that is a mapping."""
    return lambda row: optional(getattr(row, attribute).get(key), form)


def optional(value: Any, form: str = "", scale: float = 1) -> str:
    """A value that not every row has."""
    return "-" if value is None else format(value * scale if scale != 1 else value, form)


def digits(value: float) -> str:
    """Three significant digits, but no exponent."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def band(low: float, high: float) -> str:
    """From the lowest to the highest value; one of them may be infinite."""
    return f"≤ {high:g}" if low == -math.inf else f"≥ {low:g}" if high == math.inf else f"{low:g}–{high:g}"
