"""What an adapter must offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.rbf import Parameters
from benchmarks.stopwatch import Stopwatch

CRAMMER_SINGER = "Crammer-Singer"
ONE_VS_ONE = "one-versus-one, summed"
ONE_VS_REST = "one-versus-rest, summed"


@dataclass(frozen=True)
class TrainingSet:
    """What a solver is given: dense examples in float32, labels 0 .. k - 1, the kernel and C."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    parameters: Parameters


@dataclass(frozen=True)
class Objectives:
    """What was reached, of the problem that was solved: objectives of different problems say nothing together.

    Of binary problems, `dual` is the sum of theirs. `primal` is known to solvers that compute it.
    """

    problem: str
    primal: float | None
    dual: float


@dataclass(frozen=True)
class Fit:
    """A trained model: how it predicts labels, the time it took, its size, and what else the library tells.

    `support_patterns` counts examples with some coefficient, `support_vectors` the coefficients that are not zero.
    `objectives` may take a while to compute. `blocks` are the shapes of the products training needed, if it is known to
    have computed them in blocks.
    """

    predict: Callable[[NDArray[np.float32]], NDArray[Any]]
    seconds: Stopwatch
    support_patterns: int
    support_vectors: int
    objectives: Callable[[], Objectives]
    blocks: Sequence[tuple[int, int]] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


class Solver(Protocol):
    """One algorithm of one library.

    `requires` is the module imported before memory is first looked at. `copies_input`: the library trains on a copy in
    a format of its own and does not need what it was given.
    """

    @property
    def name(self) -> str: ...
    @property
    def requires(self) -> str: ...
    @property
    def copies_input(self) -> bool: ...

    def fit(self, data: TrainingSet, threads: int) -> Fit: ...
