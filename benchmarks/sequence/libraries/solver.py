"""What an adapter must offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.stopwatch import Stopwatch

Tags = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Fit:
    """A trained tagger: the time from text to model and its parts, and how it tags a file.

    `prepare` has the features of a file's sentences, and `tag_prepared` their tags, where the library keeps the two
    apart.
    """

    seconds: Stopwatch
    breakdown: Mapping[str, float]
    tag_file: Callable[[Path], Tags]
    prepare: Callable[[Path], Any] | None = None
    tag_prepared: Callable[[Any], Tags] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class Solver(Protocol):
    """One algorithm of one library; `requires` is the module imported before memory is first looked at."""

    @property
    def name(self) -> str: ...
    @property
    def requires(self) -> str: ...
    @property
    def threads(self) -> int: ...

    def having(self, **settings: Any) -> Solver:
        """The same with other parameters of the library."""
        ...

    def fit(self, path: Path) -> Fit:
        """From a file of text to a trained model."""
        ...
