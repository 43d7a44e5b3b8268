"""What comparisons with rivals have in common: what was chosen, and runs that gave no figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """What the command line chose."""

    problems: Sequence[str]
    solvers: Sequence[str]
    repeats: int
    once_above: float
    limit: float
    log: Callable[[str], None]


@dataclass(frozen=True)
class Unfinished:
    """A run that gave no figures, and why."""

    problem: str
    solver: str
    reason: str
