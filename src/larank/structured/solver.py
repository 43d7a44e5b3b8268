"""What solvers of structured problems are: state with support vectors, and for online ones, visits of one example."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from larank.structured.pairs import Example, TrainingPairs
from larank.structured.weights import FeatureWeights, Vector, Weights
from larank.training import FromScratch, ObjectiveValues

_HISTORY_POINTS = 100  # of an epoch at most


@dataclass(frozen=True)
class JointSupport:
    """Support patterns and their vectors: pattern k has the vectors starts[k] : starts[k + 1]."""

    examples: list[Example]
    starts: NDArray[np.int64]
    outputs: list[Any]
    beta: NDArray[np.float64]
    early: NDArray[np.float64]

    @classmethod
    def of(cls, patterns: Iterable[tuple[Example, list[Vector]]]) -> Self:
        """The vectors of examples."""
        patterns = list(patterns)
        vectors = [v for _, some in patterns for v in some]
        return cls(
            [example for example, _ in patterns],
            np.cumsum([0, *(len(some) for _, some in patterns)]),
            [v.output for v in vectors],
            np.array([v.beta for v in vectors]),
            np.array([v.early for v in vectors]),
        )


class Solver(ABC):
    """What training leaves behind, whichever solver did it."""

    NAME: ClassVar[str]
    weights: Weights

    @abstractmethod
    def support(self) -> JointSupport:
        """The support vectors."""

    @abstractmethod
    def operations(self) -> dict[str, int]:
        """How often each operation was performed."""

    def explicit_weights(self) -> NDArray[np.float64] | None:
        """A copy of w, where there are joint features."""
        return self.weights.w.copy() if isinstance(self.weights, FeatureWeights) else None


class OnlineSolver(Solver):
    """A solver that takes one example at a time and can be stopped and taken up again after any of them."""

    is_ahead = False  # of the model that was taken from it

    @abstractmethod
    def visit(self, example: Example) -> None:
        """Learn from the next example."""

    def begin_another_epoch(self) -> None:
        """The examples to come have been seen before."""

    def loss(self) -> float:
        """Of the visits of this epoch, each at its time; not a number for solvers without objectives."""
        return math.nan

    def objectives(self, loss: float) -> ObjectiveValues:
        """Where training is, if this is the loss of all examples."""
        return ObjectiveValues(math.nan, math.nan, math.nan)

    def certificate(self, pairs: TrainingPairs) -> FromScratch:
        """The objectives from scratch."""
        yield from ()
        return self.objectives(math.nan)

    def online_error(self) -> float | None:
        """Share of the visits with a wrong prediction, where it is known."""
        return None

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Numbers that `restore` needs beside the support vectors."""

    @abstractmethod
    def restore(self, support: JointSupport, state: Mapping[str, Any]) -> None:
        """Take over what another solver of this kind had learnt."""


class Visits:
    """An online solver and the pairs it visits, as the training loop sees them: `advance` is a visit."""

    def __init__(
        self,
        solver: OnlineSolver,
        pairs: TrainingPairs,
        *,
        epochs: float,
        shuffled: np.random.RandomState | None,
        is_whole: bool,
    ) -> None:
        self.solver, self.pairs, self.epochs, self.shuffled = solver, pairs, epochs, shuffled
        self.is_whole = is_whole  # whether the stream is all there will be
        self.size = len(pairs)
        self.between_estimates = max(1, self.size // _HISTORY_POINTS)
        self.epoch = 0
        self.visited = 0
        self.loss_before = 0.0  # of the epoch before
        self.next_estimate = self.between_estimates
        self.certificate_calls = 0
        self.order = pairs.order(shuffled)

    def advance(self) -> bool:
        """Visit the next example; True once all epochs are over."""
        if self.visited == (self.epoch + 1) * self.size:
            self.epoch += 1
            self.loss_before = self.solver.loss()
            self.solver.begin_another_epoch()
            self.order = self.pairs.order(self.shuffled)
        self.solver.visit(self.pairs.at(self.order[self.visited - self.epoch * self.size]))
        self.visited += 1
        return self.visited >= self.epochs * self.size

    def estimate(self) -> ObjectiveValues | None:
        """The objectives as they were seen on the way."""
        if self.visited < self.next_estimate and self.visited % self.size:
            return None
        self.next_estimate = self.visited + self.between_estimates
        loss, left = self.solver.loss(), self.epoch + 1 - self.visited / self.size
        if self.is_whole and left < 1:
            # Examples not visited yet count as in the epoch before; in the first one, as those visited.
            loss += left * (self.loss_before if self.epoch else loss / (1 - left))
        return self.solver.objectives(loss)

    def evaluate(self) -> FromScratch:
        """The objectives from scratch."""
        before = self.solver.weights.model.argmax_calls
        at = yield from self.solver.certificate(self.pairs)
        self.certificate_calls += self.solver.weights.model.argmax_calls - before
        return at

    def iterations(self) -> float:
        """Passes over the data so far."""
        return self.visited / self.size

    def details(self) -> Mapping[str, Any]:
        """Further fields of the checkpoint."""
        error = self.solver.online_error()
        return {} if error is None or math.isnan(error) else {"online_error": error}
