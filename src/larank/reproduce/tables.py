"""Tables of experiments: their look, numbers in few digits, and bands in which a mean should lie."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rich import box
from rich.table import Table

__all__ = ["band", "digits", "new_table"]


def new_table(title: str, headings: Iterable[str], notes: Iterable[str]) -> Table:
    """One without rows: a first column of names, numbers to the right of it, and notes below."""
    table = Table(title=title, caption="\n".join(notes), box=box.SIMPLE_HEAD, title_justify="left")
    table.caption_justify = "left"
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", no_wrap=number == 0)
    return table


def digits(value: float) -> str:
    """Three significant digits, but no exponent."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def band(low: float, high: float) -> str:
    """From the lowest to the highest value; one of them may be infinite."""
    return f"≤ {high:g}" if low == -math.inf else f"≥ {low:g}" if high == math.inf else f"{low:g}–{high:g}"
