"""What comparisons of one of our kernel solvers with itself share: the ways to train it take turns on a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from studies.rivals.contest import Unfinished, fastest, runs_in_turns
from studies.rivals.kernels import KernelRun
from studies.study import Say, Scope
from studies.tables import MEGABYTE


@dataclass(frozen=True)
class Way:
    """One way to train, in words, with its memory limit in bytes; `yardstick` is the way its time is compared with.

    `given` is what else makes it this way.
    """

    training: str
    limit: float
    yardstick: str
    measure: Callable[[], KernelRun]
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """The shortest training and the smallest peak of the runs of one way; `ratio` is to the time of its yardstick.

    `peak` is that of the resident set, above its level when the data were loaded.
    """

    problem: str
    training: str
    limit: float
    runs: int
    train: float
    train_cpu: float
    ratio: float | None
    peak: int
    kernel_values: int
    error: float
    primal: float | None
    dual: float
    support_patterns: int
    support_vectors: int
    breakdown: Mapping[str, float]
    given: Mapping[str, Any]

    @property
    def relative_gap(self) -> float | None:
        """(primal - dual) / primal, where both are known."""
        return (self.primal - self.dual) / self.primal if self.primal else None


def rows_of(problem: str, ways: Sequence[Way], scope: Scope, say: Say) -> tuple[list[Row], list[Unfinished]]:
    """A row for each of the ways, and what failed; they take turns."""
    runs, unfinished = runs_in_turns(problem, {way.training: way.measure for way in ways}, scope, say, _told)
    return [_row(problem, way, runs[way.training], runs) for way in ways if way.training in runs], unfinished


def _told(run: KernelRun) -> str:
    return f"{run.wall:.2f} s, {run.own_peak(copies_input=True) / MEGABYTE:.0f} MB"


def _row(problem: str, way: Way, mine: Sequence[KernelRun], runs: Mapping[str, Sequence[KernelRun]]) -> Row:
    best = fastest(mine)
    return Row(
        problem=problem,
        training=way.training,
        limit=way.limit,
        runs=len(mine),
        train=best.wall,
        train_cpu=best.cpu,
        ratio=best.wall / fastest(runs[way.yardstick]).wall if way.yardstick in runs else None,
        peak=min(run.own_peak(copies_input=True) for run in mine),
        kernel_values=best.extra["kernel_values"],
        error=best.error,
        primal=best.primal,
        dual=best.dual,
        support_patterns=best.support_patterns,
        support_vectors=best.support_vectors,
        breakdown=best.extra["breakdown"],
        given=way.given,
    )
