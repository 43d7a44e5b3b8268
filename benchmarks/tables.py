"""The measurements as tables, for a terminal or as Markdown."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from rich.table import Table

from benchmarks.linear import Comparison, Epoch, Row

MEGABYTE = 1e6

ROW_COLUMNS: dict[str, Callable[[Row], str]] = {
    "problem": lambda row: row.problem,
    "objective": lambda row: row.formulation,
    "solver": lambda row: row.solver,
    "tolerance": lambda row: f"{row.tolerance:g}" + ("" if row.reached else " (missed)"),
    "CPU s": lambda row: f"{row.cpu:.3f}",
    "wall s": lambda row: f"{row.wall:.3f}",
    "ratio": lambda row: f"{row.ratio:.2f}" if row.ratio else "-",
    "primal": lambda row: f"{row.primal:.3f}",
    "off by": lambda row: f"{row.suboptimality:.1e}",
    "gap": lambda row: f"{row.gap:.2e}",
    "test error %": lambda row: f"{100 * row.error:.2f}",
    "peak MB": lambda row: f"{row.peak / MEGABYTE:.0f}",
    "own MB": lambda row: f"{row.peak_without_input / MEGABYTE:.0f}",
}
EPOCH_COLUMNS: dict[str, Callable[[Epoch], str]] = {
    "problem": lambda row: row.problem,
    "larank, one epoch, s": lambda row: f"{row.epoch:.4f}",
    "scipy X @ W, s": lambda row: f"{row.product:.4f}",
    "ratio": lambda row: f"{row.epoch / row.product:.2f}",
}
Columns = dict[str, Callable[[Any], str]]
LEFT = {"problem", "objective", "solver"}


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


def optima_lines(comparison: Comparison) -> list[str]:
    """How each optimum is known."""
    return [
        f"{problem}, {formulation}: optimum in [{optimum.lower:.4f}, {optimum.upper:.4f}], LIBLINEAR, tight: "
        + ("over the time limit" if optimum.confirmed is None else f"{optimum.confirmed:.4f}")
        for problem, found in comparison.optima.items()
        for formulation, optimum in found.items()
    ]
