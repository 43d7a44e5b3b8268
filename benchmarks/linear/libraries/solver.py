"""What an adapter must offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.stopwatch import Stopwatch


@dataclass(frozen=True)
class TrainingSet:
    """What a solver is given: examples in the precision that is measured, labels 0 .. k - 1, and C."""

    X: sparse.csr_matrix
    y: NDArray[np.int64]
    C: float


@dataclass(frozen=True)
class Fit:
    """A trained model: the time it took, what else the library tells, and how to get W, one row per class.

    W is fetched after memory was looked at, so that turning it into the common form costs nobody anything.
    """

    weights: Callable[[], NDArray[np.float64]]
    seconds: Stopwatch
    extra: Mapping[str, float] = field(default_factory=dict)


class Solver(Protocol):
    """One algorithm of one library.

    `tolerances` runs from loose to tight. `requires` is the module imported before memory is first looked at.
    `copies_input`: the library trains on a copy in a format of its own and does not need what it was given.
    """

    @property
    def name(self) -> str: ...
    @property
    def formulation(self) -> str: ...
    @property
    def tolerances(self) -> tuple[float, ...]: ...
    @property
    def requires(self) -> str: ...
    @property
    def copies_input(self) -> bool: ...

    def fit(self, data: TrainingSet, tolerance: float) -> Fit: ...


def grid(first: float, last: float, per_decade: int = 6) -> tuple[float, ...]:
    """Tolerances from `first` down to `last`, evenly spaced on a logarithmic scale, two digits each."""
    count = round(per_decade * np.log10(first / last)) + 1
    return tuple(float(f"{value:.2g}") for value in np.geomspace(first, last, count))
