"""What every reproduced experiment offers: a name, what it shows, and a run that returns a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from rich.table import Table

__all__ = ["Experiment", "Report", "Reproduction"]

Report = Callable[[str], None]
"""Receives one line of progress at a time."""


class Reproduction(Protocol):
    """The outcome of an experiment, beside what the paper printed."""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        ...

    def to_table(self) -> Table:
        """The paper's table with our numbers in it."""
        ...


@dataclass(frozen=True)
class Experiment:
    """One experiment of one paper.

    Attributes
    ----------
    name : str
        What the command line calls it.
    title : str
        What it shows, in one line.
    datasets : tuple of str
        The data sets the full form reads; those that are absent are left out with a report.
    run : callable
        `run(quick, report)` returns a `Reproduction`; the quick form, in seconds, only shows it works.
    """

    name: str
    title: str
    datasets: tuple[str, ...]
    run: Callable[[bool, Report], Reproduction]
