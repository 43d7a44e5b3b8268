"""What an adapter must offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.binary.problems import Problem
from benchmarks.binaryduals import sum_of_binary_duals
from benchmarks.rbf import Parameters
from benchmarks.stopwatch import Stopwatch


@dataclass(frozen=True)
class TrainingSet:
    """What a solver is given: dense or CSR examples, labels -1 and +1, the kernel and C."""

    X: Any
    y: NDArray[np.int64]
    parameters: Parameters


@dataclass(frozen=True)
class Fit:
    """A trained model: how it predicts labels, the time it took, its expansion, and what else the library tells.

    `coefficients` are those of the examples numbered `support`, with the sign of their side.
    """

    predict: Callable[[Any], NDArray[Any]]
    seconds: Stopwatch
    support: NDArray[Any]
    coefficients: NDArray[np.float64]
    extra: Mapping[str, Any] = field(default_factory=dict)

    def dual(self, data: TrainingSet) -> float:
        """The objective all of the solvers maximise, by the same code and in float64."""
        return sum_of_binary_duals(data.X[self.support], self.coefficients[:, None], data.parameters.gamma)


class Solver(Protocol):
    """One algorithm of one library.

    `requires` is the module imported before memory is first looked at. `copies_input`: the library trains on a copy in
    a format of its own and does not need what it was given. `dtype` is the precision it likes its data in.
    """

    @property
    def name(self) -> str: ...
    @property
    def requires(self) -> str: ...
    @property
    def copies_input(self) -> bool: ...
    @property
    def dtype(self) -> str: ...

    def forms(self, problem: Problem) -> Sequence[str]:
        """Those of the problem's forms that may be its fastest."""
        ...

    def fit(self, data: TrainingSet, threads: int) -> Fit: ...
