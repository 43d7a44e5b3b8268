"""Passes over sentences, as the training loop drives them: for learners that have no objective."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.training import FromScratch, Limits, ObjectiveValues, Outcome, progress_for, train

_NOT_SEEN = ObjectiveValues(math.nan, math.nan, math.nan)
_STEP_SECONDS = 0.05  # after which the training loop may look at limits
_POINTS_PER_EPOCH = 50  # of the history


class SentencePasses:
    """Some sentences after another, in passes.

    Parameters
    ----------
    n : int
        How many sentences there are.
    epochs : int
        How many passes.
    orders : RandomState or None
        Draws an order for each pass; without it, sentences come in their own.
    learn : callable
        Learns from the sentences of these numbers, one after another.
    counts : callable
        How often something was looked at so far, and how often wrong.
    batch : int
        How many sentences `learn` is handed at most.
    prelude : iterator, optional
        What is done before the first pass, a little with each item.
    """

    def __init__(
        self,
        n: int,
        epochs: int,
        orders: np.random.RandomState | None,
        learn: Callable[[NDArray[np.int64]], None],
        counts: Callable[[], tuple[int, int]],
        batch: int = 1,
        prelude: Iterator[None] | None = None,
    ) -> None:
        self.n, self.epochs, self.batch = n, epochs, batch
        self.learnt = 0
        self._orders, self._learn, self._counts, self._prelude = orders, learn, counts, prelude or iter(())
        self._before = counts()
        self._order = np.arange(0)
        self._recorded_at = -1

    def run(self, title: str, time_limit: float | None, verbose: int) -> Outcome:
        """All passes, or as many as there is time for."""
        limits = Limits(None, math.inf, time_limit, passes=self.epochs, certify=False)
        with progress_for(verbose) as progress:
            progress.start(f"{title}, {self.n} sentences")
            return train(self, limits, progress)

    def advance(self) -> bool:
        """Learn for a while; True once the passes are over."""
        end = time.perf_counter() + _STEP_SECONDS
        for _ in self._prelude:
            if time.perf_counter() > end:
                return False
        while self.learnt < self.epochs * self.n:
            at = self.learnt % self.n
            if at == 0:
                self._order = np.arange(self.n) if self._orders is None else self._orders.permutation(self.n)
            rows = self._order[at : at + self.batch]
            self._learn(rows)
            self.learnt += len(rows)
            if time.perf_counter() > end:
                break
        return self.learnt >= self.epochs * self.n

    def estimate(self) -> ObjectiveValues | None:
        """There are no objectives, but a point of the history now and then."""
        between = max(1, self.n // _POINTS_PER_EPOCH)
        is_over = self.learnt >= self.epochs * self.n
        if self.learnt - self._recorded_at < between and not (is_over and self.learnt != self._recorded_at):
            return None
        self._recorded_at = self.learnt
        return _NOT_SEEN

    def evaluate(self) -> FromScratch:
        """There are none."""
        yield from ()
        return _NOT_SEEN

    def iterations(self) -> float:
        """Passes over the sentences so far."""
        return self.learnt / self.n if self.n else float(self.epochs)

    def details(self) -> Mapping[str, Any]:
        """The share of looks that were wrong, in this call."""
        looks, wrong = (now - before for now, before in zip(self._counts(), self._before, strict=True))
        return {"online_error": wrong / looks if looks else None}
