"""Runs that take turns, so that a busy minute of the machine hits all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from benchmarks.measure import ChildFailedError, TimeoutExceededError

Key = TypeVar("Key")
Found = TypeVar("Found")


@dataclass
class Turns(Generic[Key, Found]):
    """What was measured, by name, and what failed and why."""

    found: dict[Key, list[Found]] = field(default_factory=dict)
    failed: dict[Key, str] = field(default_factory=dict)


def take_turns(
    measures: Mapping[Key, Callable[[], Found]],
    repeats: int,
    told: Callable[[Key, Found | str], None],
    is_slow: Callable[[Found], bool] = lambda run: False,
) -> Turns[Key, Found]:
    """Measure each so often; one that is slow, fails or exceeds its limit has no further turn."""
    turns: Turns[Key, Found] = Turns()
    waiting = list(measures)
    for _ in range(repeats):
        for name in tuple(waiting):
            try:
                run = measures[name]()
            except (TimeoutExceededError, ChildFailedError) as failure:
                told(name, str(failure))
                turns.failed[name] = str(failure).strip().splitlines()[-1]
                waiting.remove(name)
                continue
            told(name, run)
            turns.found.setdefault(name, []).append(run)
            if is_slow(run):
                waiting.remove(name)
    return turns
