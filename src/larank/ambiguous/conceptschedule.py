"""How fast a concept labeller learns, and what a lexicon learns from before it; see core/ambiguous/lexicon.hpp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

SENTENCES_AT_ONCE = 64
_LEXICON_RATE = 0.5
_LEXICON_LOOKS, _LEXICON_PASSES = 20_000, 20  # whichever is less, but one pass at least

Looks = tuple[NDArray[np.int64], NDArray[np.float64]]


class Schedule(Protocol):
    """The rates of a training run, and the sentences from which a lexicon learns before it."""

    epochs: int
    lexicon_rate: float  # on the way

    def rates(self, done: int, n: int) -> NDArray[np.float64]:
        """Of the next n sentences."""
        ...

    def lexicon_looks(self, orders: np.random.RandomState | None) -> Iterator[Looks]:
        """Sentences and rates, some at a time."""
        ...


class Steady:
    """On a stream rates are constant, and the lexicon learns from each sentence as it comes."""

    epochs, lexicon_rate = 1, _LEXICON_RATE

    def __init__(self, rate: float) -> None:
        self._rate = rate

    def rates(self, done: int, n: int) -> NDArray[np.float64]:
        """All the same."""
        return np.full(n, self._rate, dtype=np.float64)

    def lexicon_looks(self, orders: np.random.RandomState | None) -> Iterator[Looks]:
        """None."""
        yield from ()


class Decaying:
    """With all sentences at hand, rates go down to zero, and the lexicon comes first."""

    lexicon_rate = 0.0

    def __init__(self, rate: float, epochs: int, n: int) -> None:
        self.epochs, self._rate, self._n = epochs, rate, n

    def rates(self, done: int, n: int) -> NDArray[np.float64]:
        """In proportion to what is left to do."""
        return self._rate * (1 - (done + np.arange(n)) / (self.epochs * self._n))

    def lexicon_looks(self, orders: np.random.RandomState | None) -> Iterator[Looks]:
        """In passes, in the orders that are drawn or that of the sentences."""
        n = self._n
        looks = max(n, min(_LEXICON_LOOKS, _LEXICON_PASSES * n))
        for begin in range(0, looks, n):
            order = (np.arange(n) if orders is None else orders.permutation(n))[: looks - begin]
            for at in range(0, len(order), SENTENCES_AT_ONCE):
                rows = order[at : at + SENTENCES_AT_ONCE]
                yield rows, _LEXICON_RATE * (1 - (begin + at + np.arange(len(rows))) / looks)
