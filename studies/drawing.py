"""Figures of studies, drawn by matplotlib without a window."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

KINDS = (".png", ".svg", ".pdf")
PALETTE = ("#1d4ed8", "#c2410c", "#047857", "#7c3aed", "#be185d")


def check_installed() -> None:
    """Raises ModuleNotFoundError, before any work is done, if nothing can be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ModuleNotFoundError('a figure is drawn by matplotlib, which is not installed: pip install "larank[plot]"')


def panels(figure: Any, items: Mapping[str, Any], columns: int = 0) -> Iterator[tuple[Any, str, Any]]:
    """Return axes for each item: panels side by side, or a row of `columns` panels for each item."""
    shape = (len(items), columns) if columns else (1, len(items))
    axes = figure.subplots(*shape, squeeze=False)
    for found, (name, item) in zip(axes if columns else axes[0], items.items(), strict=True):
        yield found, name, item


def drawn(draw: Callable[[Any, Any], None], outcome: Any, kind: str) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")  # needs no pyplot and leaves the backend alone
    draw(outcome, figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind.removeprefix("."), dpi=150)
    return buffer.getvalue()
