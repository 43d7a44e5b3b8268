"""What every study offers: a name, its options, a run, and an outcome as tables, numbers and a drawing."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from studies.tables import Table

Say = Callable[[str], None]
"""Receives one line of progress at a time."""


class Outcome:
    """What a study found."""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        raise NotImplementedError

    def to_tables(self) -> Sequence[Table]:
        """What is printed."""
        raise NotImplementedError

    def to_lines(self) -> Sequence[str]:
        """What is said below the tables."""
        return ()

    @property
    def has_failed(self) -> bool:
        """Whether something that must hold does not; the exit status tells."""
        return False


@dataclass(frozen=True)
class Study:
    """One study.

    `title` is what it shows, in a line; `datasets` are those that may be chosen; `run(scope, say)` returns an
    `Outcome`, where the scope says how much is wanted; `draw(outcome, figure)`, if there is one, draws it on a
    matplotlib figure. `libraries` are the packages whose versions are told beside the figures.
    """

    name: str
    title: str
    datasets: tuple[str, ...]
    run: Callable[[Any, Say], Outcome]
    draw: Callable[[Any, Any], None] | None = None
    libraries: tuple[str, ...] = ()

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Those it has beside `--quick`, `--datasets` and what says where the outcome goes."""

    def scope(self, arguments: argparse.Namespace) -> Any:
        """What was chosen; raises ValueError if that cannot be."""
        raise NotImplementedError

    def chosen_datasets(self, arguments: argparse.Namespace) -> tuple[str, ...]:
        """Those named, separated by spaces or commas; none for what the study takes by itself."""
        names = tuple(name.strip() for word in arguments.datasets for name in word.split(","))
        for name in names:
            if name not in self.datasets:
                raise ValueError(f"{self.name} has no data set '{name}'; it has: {', '.join(self.datasets)}")
        return names
