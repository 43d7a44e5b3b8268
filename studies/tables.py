"""Tables of figures: rows whose fields are columns, their look on a terminal and as Markdown."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import rich.table
from rich import box
from rich.markup import escape

MEGABYTE = 1e6

Columns = Mapping[str, Callable[[Any], str]]
"""By heading, what a row has in this column."""
WORDS = {"problem", "objective", "solver", "training", "algorithm", "data", "how"}
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


def of_rows(title: str, rows: Sequence[Any], columns: Columns | None = None, notes: Sequence[str] = ()) -> Table:
    """Return a table with a line for each row; rows with the same first cell are a group.

    The columns are those the rows declare, if no others are given.
    """
    shown = list((columns_of(type(rows[0])) if columns is None else columns).items()) if rows else []
    table = Table(title, [heading for heading, _ in shown], notes)
    for _, group in itertools.groupby([[cell(row) for _, cell in shown] for row in rows], key=lambda cells: cells[0]):
        for cells in group:
            table.add(*cells)
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
    return of_rows(title, rows, columns)


# ---- Columns that rows declare ----

_PLACES = itertools.count()


def column(heading: str, form: str | Callable[[Any], str] = "", scale: float = 1, **given: Any) -> Any:
    """Return a field of a row that is a column: its heading and its format, or what makes a cell of the value."""
    return field(metadata={"column": (next(_PLACES), heading, form, scale)}, **given)


class _Derived(property):
    column: tuple[int, str, Any, float]


def derived(heading: str, form: str | Callable[[Any], str] = "", scale: float = 1) -> Callable[[Any], Any]:
    """Return a decorator: a property of a row that is a column, at the position where it is defined, and in JSON."""

    def made(method: Callable[[Any], Any]) -> Any:
        found = _Derived(method)
        found.column = next(_PLACES), heading, form, scale
        return found

    return made


def derived_of(kind: type) -> list[str]:
    """Return the names of the derived columns of a row."""
    return [name for name in dir(kind) if isinstance(getattr(kind, name), _Derived)]


def columns_of(kind: type) -> Columns:
    """Return the columns that a row declares, in the order of their definition."""
    found = [(*each.metadata["column"], each.name) for each in dataclasses.fields(kind) if "column" in each.metadata]
    found += [(*getattr(kind, name).column, name) for name in derived_of(kind)]
    return {heading: figure(name, form, scale) for _, heading, form, scale, name in sorted(found, key=lambda c: c[0])}


# ---- Cells ----


def figure(attribute: str, form: str | Callable[[Any], str] = "", scale: float = 1) -> Callable[[Any], str]:
    """A column: this attribute of a row, in this format."""
    return lambda row: optional(getattr(row, attribute), form, scale)


def item(attribute: str, key: str, form: str) -> Callable[[Any], str]:
    """A column: one item of an attribute that is a mapping."""
    return lambda row: optional(getattr(row, attribute).get(key), form)


def optional(value: Any, form: str | Callable[[Any], str] = "", scale: float = 1) -> str:
    """Return the cell of a value that not every row has."""
    if callable(form):
        return form(value)
    return "-" if value is None else format(value * scale if scale != 1 else value, form)


def yes(holds: bool | None) -> str:
    """Return whether something holds; what does not is in capitals."""
    return "-" if holds is None else "yes" if holds else "NO"


def digits(value: float) -> str:
    """Three significant digits, but no exponent."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def band(low: float, high: float) -> str:
    """From the lowest to the highest value; one of them may be infinite."""
    return f"≤ {high:g}" if low == -math.inf else f"≥ {low:g}" if high == math.inf else f"{low:g}–{high:g}"


def mean_and_deviation(values: Sequence[float], form: str = ".2f") -> str:
    if not len(values):
        return "-"
    return f"{np.mean(values):{form}}" + (f" ± {np.std(values, ddof=1):{form}}" if len(values) > 1 else "")
