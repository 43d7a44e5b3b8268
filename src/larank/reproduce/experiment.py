"""What every reproduced experiment offers: a name, what it shows, and a run that returns a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from rich.table import Table

from larank.reproduce.datasets import available

__all__ = ["Entry", "Experiment", "Report", "Reproduction", "Scope", "present"]

Report = Callable[[str], None]
"""Receives one line of progress at a time."""


@dataclass(frozen=True)
class Scope:
    """How much of an experiment is wanted.

    Attributes
    ----------
    quick : bool
        A small form, in seconds, that only shows it works.
    seeds : int or None
        How often everything random is repeated; None leaves it to the experiment.
    datasets : tuple of str
        Only these of the experiment's data sets; empty for all.
    """

    quick: bool = False
    seeds: int | None = None
    datasets: tuple[str, ...] = ()


_Run = TypeVar("_Run")


@dataclass(frozen=True)
class Entry(Generic[_Run]):
    """One algorithm on one data set, over several seeds or folds; figures go by the names they have in its runs."""

    EXPECTED: ClassVar[Mapping[tuple[str, str], Mapping[str, tuple[float, float]]]] = {}
    """The lowest and the highest mean of a figure, by data set and algorithm."""

    dataset: str
    algorithm: str
    runs: tuple[_Run, ...]

    def values(self, figure: str) -> list[float]:
        """One figure of every run."""
        return [float(getattr(run, figure)) for run in self.runs]

    def mean(self, figure: str) -> float:
        """Mean over the runs."""
        return float(np.mean(self.values(figure)))

    def as_expected(self, figure: str) -> bool | None:
        """Whether the mean lies where it should; None where nothing is expected."""
        limits = self.EXPECTED.get((self.dataset, self.algorithm), {}).get(figure)
        return None if limits is None else limits[0] <= self.mean(figure) <= limits[1]


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
        The data sets it can read; those that are absent are left out with a report.
    run : callable
        `run(scope, report)` returns a `Reproduction`.
    draw : callable, optional
        `draw(reproduction, figure)` draws it on a matplotlib figure.
    """

    name: str
    title: str
    datasets: tuple[str, ...]
    run: Callable[[Scope, Report], Reproduction]
    draw: Callable[[Any, Any], None] | None = None


def present(datasets: Iterable[str], report: Report, is_present: Callable[[str], bool] = available) -> tuple[str, ...]:
    """Those of the data sets that can be read; the others are reported.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    wanted = tuple(datasets)
    found = tuple(name for name in wanted if is_present(name))
    for name in wanted:
        if name not in found:
            report(f"{name}: absent from the data directory, left out")
    if not found:
        raise FileNotFoundError(f"none of {', '.join(wanted)} is in the data directory; set LARANK_DATA")
    return found
