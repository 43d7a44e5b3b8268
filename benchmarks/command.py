"""A comparison as a subcommand: its names and defaults, its own options, and what runs it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from benchmarks.report import Report


@dataclass(frozen=True)
class Command:
    """`libraries` are the packages whose versions are printed; every command has the options of `__main__`.

    A command without `solvers` has no choice of them.
    """

    name: str
    summary: str
    problems: Collection[str]
    default_problems: Sequence[str]
    solvers: Collection[str]
    default_limit: float
    libraries: Sequence[str]
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Callable[[str], None]], Report]


def add_once_above(parser: argparse.ArgumentParser) -> None:
    """The option of comparisons with slow rivals."""
    parser.add_argument(
        "--once-above", type=float, default=60.0, help="a solver whose first run takes more seconds has no other"
    )
