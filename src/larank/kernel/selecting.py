"""Training that chooses its next example: a feed that draws candidates, looks at their decisions and takes one of them.

[thesis] algorithm 14. The kernel values of the candidates with the support patterns serve twice: for their decisions,
and, those of the chosen one, for its PROCESS.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from larank.blocks import Batch, Provider
from larank.kernel.selection import GradualStrategy, Pool, Strategy, label_margin, uncertainty_margin
from larank.kernel.stream import KernelSession, SessionFeed, Stream

__all__ = ["SelectingFeed"]


class DecidingSession(KernelSession, Protocol):
    """A session that also decides on examples that it was not fed."""

    @property
    def reach(self) -> float: ...
    def decide(self, kernel: Any) -> NDArray[np.float64]: ...


class SelectingFeed(SessionFeed):
    """Feeds a session the examples of a stream in the order a strategy chooses, one at a time."""

    def __init__(
        self,
        session: DecidingSession,
        blocks: Provider,
        stream: Stream,
        order: NDArray[np.intp],
        strategy: Strategy,
        random: np.random.RandomState,
        budget: int,
    ) -> None:
        super().__init__(session, blocks)
        self._deciding, self._stream, self._order = session, stream, order
        self._strategy, self._left = strategy, budget
        self._gradual = strategy if isinstance(strategy, GradualStrategy) else None
        self._pool = Pool(len(order), random)
        self._at: tuple[Batch, int] | None = None  # the example at hand

    def advance(self, examples: int) -> int:
        """Choose and work on up to so many examples; how many were done, 0 once the budget is spent."""
        todo = min(examples, self._left)
        for _ in range(todo):
            self._process(*self._chosen())
        self._left -= todo
        self._session.set_foreign_bytes(self._blocks.nbytes)
        return todo

    def flush(self) -> None:
        """Let the provider know the pattern that the example at hand may have become."""
        slots, _ = self._session.newborn()
        if self._at is not None and len(slots):
            batch, place = self._at
            self._blocks.store(slots, batch, [place])

    def wait(self) -> None:
        """Nothing runs in the background."""

    def close(self) -> None:
        """Nothing runs in the background."""

    def _chosen(self) -> tuple[int, Batch, int, NDArray[Any]]:
        """An example out of the pool: its row in the stream, its batch and place there, and its kernel values."""
        drawn = self._pool.draw(self._strategy.draws)
        rows = self._order[drawn]
        looks: list[tuple[Batch, NDArray[Any]]] = []
        margins = np.empty(0)
        ends = [0]
        while ends[-1] < len(rows):
            size = len(rows) if self._gradual is None else self._gradual.looks << len(looks)
            part = rows[ends[-1] : ends[-1] + size]
            batch, kernel = self._look(part)
            looks.append((batch, kernel))
            ends.append(ends[-1] + len(part))
            margins = np.concatenate([margins, self._margins(kernel, part)])
            if self._gradual is not None and self._gradual.is_decided(margins, self._deciding.reach):
                break
        place = self._strategy.choose(margins, self._deciding.reach)
        if not 0 <= place < len(margins):
            raise ValueError(
                f"selection must choose a place from 0 to {len(margins) - 1}, got {place} from {self._strategy!r}"
            )
        self._pool.remove(int(drawn[place]))
        look = int(np.searchsorted(ends, place, side="right")) - 1
        batch, kernel = looks[look]
        place -= ends[look]
        return int(rows[ends[look] + place]), batch, place, kernel[place : place + 1]

    def _look(self, rows: NDArray[np.intp]) -> tuple[Batch, NDArray[Any]]:
        stream = self._stream
        X = [stream.X[row] for row in rows] if isinstance(stream.X, list | tuple) else stream.X[rows]
        batch = self._blocks.batch(X, stream.ids[rows])
        return batch, self._blocks.against_support(batch, self._session.slots + 1)

    def _margins(self, kernel: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
        decisions = self._deciding.decide(kernel)
        if not decisions.shape[1]:
            return np.zeros(len(rows))
        if not self._strategy.needs_labels:
            return uncertainty_margin(decisions)
        labels = self._stream.labels[rows]
        classes = 2 if decisions.shape[1] == 1 else decisions.shape[1]
        known = labels < classes
        margins = np.full(len(rows), -np.inf)  # nothing is as wrong as not to know of the class
        margins[known] = label_margin(decisions[known], labels[known])
        return margins

    def _process(self, row: int, batch: Batch, place: int, kernel: NDArray[Any]) -> None:
        stream = self._stream
        diagonal = self._blocks.diagonal(batch)[place : place + 1]
        one = slice(row, row + 1)
        within = diagonal.astype(self._blocks.dtype)[:, None]
        self._session.feed(kernel, within, stream.ids[one], stream.labels[one], stream.costs[one], diagonal)
        self._at = batch, place
        self._session.run(1, self)
        self.flush()
