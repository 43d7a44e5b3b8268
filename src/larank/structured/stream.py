"""Examples in the order of a stream, online solvers that visit them, and the epochs of their training."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from larank.structured.checked import own
from larank.structured.machine import Example, Machine
from larank.training import ObjectiveValues

__all__ = ["Examples", "OnlineSolver", "OnlineTraining", "SupportTable"]

_HISTORY_POINTS = 100  # of an epoch at most


@dataclass(frozen=True)
class Examples:
    """Inputs and outputs with their numbers in the stream and their costs; those that cost nothing are left out."""

    X: Any
    y: Any
    costs: NDArray[np.float64]
    first: int = 0  # the number of the first one

    def __len__(self) -> int:
        return int(np.count_nonzero(self.costs))

    def __iter__(self) -> Iterator[Example]:
        return map(self.at, self.places())

    def places(self) -> NDArray[np.intp]:
        """Of the examples in `X`."""
        return np.flatnonzero(self.costs)

    def at(self, place: int) -> Example:
        """The example in this place of `X`."""
        x, y = self.X[place], self.y[place]
        # A row of an array must survive what its owner does with the array.
        x = own(x) if isinstance(x, np.ndarray) and x.base is not None else x
        return Example(self.first + int(place), x, own(y), float(self.costs[place]))


@dataclass(frozen=True)
class SupportTable:
    """Support patterns and their vectors: pattern k has the vectors starts[k] : starts[k + 1], its own output first."""

    examples: list[Example]
    starts: NDArray[np.int64]
    outputs: list[Any]
    beta: NDArray[np.float64]
    early: NDArray[np.float64]


class OnlineSolver(ABC):
    """A solver that takes one example at a time and can be stopped and taken up again after any of them."""

    NAME: ClassVar[str]
    machine: Machine
    is_ahead = False  # of the model that was taken from it

    @abstractmethod
    def visit(self, example: Example) -> None:
        """Learn from the next example."""

    def begin_another_epoch(self) -> None:
        """The examples to come have been seen before."""

    @abstractmethod
    def loss(self) -> float:
        """Of the visits of this epoch, each at its time; not a number for solvers without objectives."""

    @abstractmethod
    def objectives(self, loss: float) -> ObjectiveValues:
        """Where training is, if this is the loss of all examples."""

    @abstractmethod
    def certificate(self, examples: Examples) -> ObjectiveValues:
        """The objectives from scratch."""

    def online_error(self) -> float | None:
        """Share of the visits with a wrong prediction, where it is known."""
        return None

    @abstractmethod
    def operations(self) -> dict[str, int]:
        """How often each operation was performed."""

    @abstractmethod
    def table(self) -> SupportTable:
        """The support vectors."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Numbers that `restore` needs beside the table."""

    @abstractmethod
    def restore(self, table: SupportTable, state: Mapping[str, Any]) -> None:
        """Take over what another solver of this kind had learnt."""

    @abstractmethod
    def weights(self) -> NDArray[np.float64] | None:
        """w, where there are joint features."""


class OnlineTraining:
    """An online solver as the training loop sees it: `advance` is a visit."""

    def __init__(
        self,
        solver: OnlineSolver,
        examples: Examples,
        *,
        epochs: float,
        shuffled: np.random.RandomState | None,
        is_whole: bool,
    ) -> None:
        self.solver, self.examples, self.epochs, self.shuffled = solver, examples, epochs, shuffled
        self.is_whole = is_whole  # whether the stream is all there will be
        self.size = len(examples)
        self.stretch = max(1, self.size // _HISTORY_POINTS)
        self.epoch = 0
        self.visited = 0
        self.loss_before = 0.0  # of the epoch before
        self.next_estimate = self.stretch
        self.certificate_calls = 0
        self.order = self._order()

    def _order(self) -> NDArray[np.intp]:
        places = self.examples.places()
        return places if self.shuffled is None else self.shuffled.permutation(places)

    def advance(self) -> bool:
        """Visit the next example; True once all epochs are over."""
        if self.visited == (self.epoch + 1) * self.size:
            self.epoch += 1
            self.loss_before = self.solver.loss()
            self.solver.begin_another_epoch()
            self.order = self._order()
        self.solver.visit(self.examples.at(self.order[self.visited - self.epoch * self.size]))
        self.visited += 1
        return self.visited >= self.epochs * self.size

    def estimate(self) -> ObjectiveValues | None:
        """The objectives as they were seen on the way."""
        if self.visited < self.next_estimate and self.visited % self.size:
            return None
        self.next_estimate = self.visited + self.stretch
        loss, left = self.solver.loss(), self.epoch + 1 - self.visited / self.size
        if self.is_whole and left < 1:
            # Examples not visited yet count as in the epoch before; in the first one, as those visited.
            loss += left * (self.loss_before if self.epoch else loss / (1 - left))
        return self.solver.objectives(loss)

    def evaluate(self) -> ObjectiveValues:
        """The objectives from scratch."""
        before = self.solver.machine.model.argmax_calls
        at = self.solver.certificate(self.examples)
        self.certificate_calls += self.solver.machine.model.argmax_calls - before
        return at

    def iterations(self) -> float:
        """Passes over the data so far."""
        return self.visited / self.size

    def details(self) -> Mapping[str, Any]:
        """Further fields of the checkpoint."""
        error = self.solver.online_error()
        return {} if error is None or math.isnan(error) else {"online_error": error}
