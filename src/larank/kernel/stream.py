"""A stream of examples for a compiled session, block by block, in the order they come or in one that is chosen.

A kernel session is handed the kernel values of a few new examples with every pattern in its table, and among
themselves. Those of the next block are computed in the background against the table as it was when this block began;
the columns of patterns born since then are added when this block is done. A linear session is handed the examples
themselves. Where a strategy chooses the next example, [thesis] algorithm 14, the kernel values of the candidates with
the support patterns serve twice: for their decisions, and, those of the chosen one, for its PROCESS.

A feed is also the source that a session asks for rows of kernel values that fell out of the memory limit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from larank import _core
from larank.blocks import Batch, Provider
from larank.blocks.pages import zeros
from larank.blocks.provider import rows_of
from larank.blocks.workers import Background
from larank.kernel.selection import GradualStrategy, Pool, Strategy, label_margin, uncertainty_margin

_Index = NDArray[np.intp]

_NOBODY = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Examples:
    """Some examples: as the provider wants them, with their ids, labels and costs."""

    X: Any
    ids: NDArray[np.int64]
    labels: NDArray[np.int32]
    costs: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ids)

    def at(self, rows: _Index) -> Examples:
        """Those in these rows."""
        return Examples(rows_of(self.X, rows), self.ids[rows], self.labels[rows], self.costs[rows])


@dataclass(frozen=True)
class Stream:
    """Examples, and the order in which to visit them."""

    examples: Examples
    order: _Index
    orders: np.random.RandomState | None = None  # of the epochs after the first
    draws: np.random.RandomState | None = None  # of candidates, where the next example is chosen

    def blocks(self, order: _Index, size: Callable[[], int]) -> Iterator[Examples]:
        """The examples in this order, in blocks as long as `size` says when each begins."""
        done = 0
        while done < len(order):
            rows = order[done : done + size()]
            done += len(rows)
            yield self.examples.at(rows)

    def next_order(self) -> _Index:
        """The order of another epoch."""
        if self.orders is None:
            return self.order
        shuffled: _Index = self.orders.permutation(self.order)
        return shuffled


class Feed(ABC):
    """Works on a part of the stream, a little at a time."""

    computed_again = 0  # kernel values that there was no room to keep

    @abstractmethod
    def advance(self, examples: int) -> int:
        """Work on up to so many examples of the block at hand; how many were done, 0 at the end."""

    @abstractmethod
    def finish_some(self, visits: int) -> bool:
        """Bring the session's coefficients to where a model can be taken from them, by so many visits; True if done."""

    def flush(self) -> None:
        """Let the provider know all patterns that the session has now."""

    def wait(self) -> None:
        """Wait for what runs in the background."""

    def release(self) -> None:
        """There will be no other block: let go of what was kept for it."""


@dataclass
class _Block:
    """Examples that a session works on, where in a batch they begin, and their kernel values."""

    examples: Examples
    batch: Batch
    kernel: NDArray[Any]
    within: NDArray[Any]
    first: int = 0

    def feed(self, session: Any) -> None:
        """Hand it over."""
        e = self.examples
        diagonal = self.batch.diagonal[self.first : self.first + len(e)]
        session.feed(self.kernel, self.within, e.ids, e.labels, e.costs, diagonal)

    def where(self, slots: NDArray[np.int32], ids: NDArray[np.int64]) -> tuple[_Index, _Index]:
        """Of examples that have become support patterns their slots, and their rows in the batch."""
        order = np.argsort(self.examples.ids, kind="stable")
        rows = order[np.searchsorted(self.examples.ids, ids, sorter=order)]
        assert np.array_equal(self.examples.ids[rows], ids)
        return slots.astype(np.intp), self.first + rows


class KernelSource:
    """Kernel values between support patterns, for a session that has dropped them."""

    def __init__(self, session: Any, provider: Provider) -> None:
        self.session, self.provider = session, provider
        self._block: _Block | None = None  # what the session works on
        self._stored: tuple[NDArray[Any], NDArray[Any]] = (_NOBODY, _NOBODY)  # slots and ids that the provider knows
        self._rows = np.zeros(0, provider.dtype)  # memory that is used again; what stands in it is finite
        self.computed_again = 0  # kernel values that there was no room to keep

    def rows(self, slots: NDArray[np.int32]) -> NDArray[Any]:
        """Of some slots with all of them, until the next call."""
        self.flush()
        # Patterns of examples that were chosen and left again may have had slots that the provider never saw.
        shape = len(slots), max(self.session.slots, self.provider.size)
        if len(self._rows) < shape[0] * shape[1]:
            self._rows = self._rows[:0].copy()  # not both at once
            self._rows = zeros(shape[0] * shape[1] * 5 // 4, self.provider.dtype)
        values = self._rows[: shape[0] * shape[1]].reshape(shape)
        self.provider.rows(slots, out=values[:, : self.provider.size])
        self.computed_again += values.size
        return values

    @property
    def nbytes(self) -> int:
        """What is kept for the next rows."""
        return int(self._rows.nbytes)

    def between(self, slots: NDArray[np.int32], others: NDArray[np.int32]) -> NDArray[Any]:
        """Of some slots with others, none of which is among them."""
        return self.provider.between(slots, others)

    def finish_some(self, visits: int) -> bool:
        """Bring the session's coefficients to where a model can be taken from them, by so many visits; True if done."""
        is_done: bool = self.session.finish_some(visits, self)
        return is_done

    def flush(self) -> None:
        """Let the provider know all patterns that the session has now."""
        if self._block is None:
            return
        born = self.session.newborn()
        if all(map(np.array_equal, born, self._stored)):
            return
        slots, rows = self._block.where(*born)
        self.provider.store(slots, self._block.batch, rows)
        self._stored = born


class KernelFeed(KernelSource, Feed):
    """Feeds a part of the stream to a kernel session."""

    def __init__(self, session: Any, provider: Provider, blocks: Iterator[Examples]) -> None:
        super().__init__(session, provider)
        self._blocks = blocks
        self._next: Background[_Block] | None = None
        self._births = np.empty(0, np.intp)  # slots of the block before, which the next one's values lack
        self._done = 0
        # The values of the next block are written while those of this one are read, if another thread does it.
        self._tables = [np.zeros(0, provider.dtype), np.zeros(0, provider.dtype)]

    def advance(self, examples: int) -> int:
        """Work on up to so many examples of the block at hand; how many were done, 0 at the end."""
        if self._block is None and not self._begin_block():
            return 0
        block = self._block
        assert block is not None
        end = min(len(block.examples), self._done + examples)
        self.session.run(end, self)
        worked, self._done = end - self._done, end
        if end == len(block.examples):
            self._end_block(block)
        return worked

    def wait(self) -> None:
        """Wait for what runs in the background."""
        if self._next is not None:
            self._next.wait()

    def flush(self) -> None:
        """Let the provider know all patterns that the session has now."""
        self.wait()  # the background reads the store
        super().flush()

    def _begin_block(self) -> bool:
        block = self._take_next()
        if block is None:
            return False
        self._done = 0
        self.session.set_foreign_bytes(self._nbytes())
        upcoming = next(self._blocks, None) if self.provider.concurrent else None
        if upcoming is not None:
            room = self.session.slots + len(block.examples)
            self._next = self.provider.background(partial(self._prepare, upcoming, room))
        block.feed(self.session)
        self._block, self._stored = block, (_NOBODY, _NOBODY)
        return True

    def _nbytes(self) -> int:
        """What is kept here and by the provider."""
        return int(self.provider.nbytes + self._rows.nbytes + sum(table.nbytes for table in self._tables))

    def release(self) -> None:
        """There will be no other block: let go of what was kept for it."""
        self._blocks = iter(())  # they refer to whoever cuts them, and that to this feed
        self._tables = [table[:0].copy() for table in self._tables]
        self._rows = self._rows[:0].copy()
        with suppress(_core.MemoryLimitError):  # it was short before
            self.session.set_foreign_bytes(self._nbytes())

    def _take_next(self) -> _Block | None:
        if self._next is not None:
            ready, self._next = self._next.result(), None
            if len(self._births):
                ready.kernel[:, self._births] = self.provider.against_slots(ready.batch, self._births)
            return ready
        upcoming = next(self._blocks, None)
        return None if upcoming is None else self._prepare(upcoming, self.session.slots)

    def _prepare(self, examples: Examples, slots: int) -> _Block:
        """The block and its kernel values, with room for its births beside so many slots."""
        batch = self.provider.batch(examples.X, examples.ids)
        room = slots + len(examples)
        kernel, within = self.provider.tables(batch, room, self._table(len(examples), room))
        return _Block(examples, batch, kernel, within)

    def _table(self, rows: int, columns: int) -> NDArray[Any]:
        """Memory for a block: what stands in it is finite, and it is used again for the block after the next."""
        if self.provider.concurrent:
            self._tables.reverse()
        if len(self._tables[0]) < rows * columns:
            self._tables[0] = self._tables[0][:0].copy()  # not both at once
            self._tables[0] = zeros(rows * columns * 5 // 4, self.provider.dtype)
        return self._tables[0][: rows * columns].reshape(rows, columns)

    def _end_block(self, block: _Block) -> None:
        self.flush()
        self._births = self.session.newborn()[0].astype(np.intp)
        self._block = None


class LinearFeed(Feed):
    """Feeds a part of the stream to a linear session, which needs no source."""

    def __init__(self, session: Any, blocks: Iterator[Examples]) -> None:
        self._session, self._blocks = session, blocks
        self._length = self._done = 0

    def advance(self, examples: int) -> int:
        """Work on up to so many examples of the block at hand; how many were done, 0 at the end."""
        if self._done == self._length:
            block = next(self._blocks, None)
            if block is None:
                return 0
            feed_linear(self._session, block, linear_diagonal(self._session, block.X))
            self._length, self._done = len(block), 0
        end = min(self._length, self._done + examples)
        self._session.run(end)
        worked, self._done = end - self._done, end
        return worked

    def finish_some(self, visits: int) -> bool:
        """Bring the session's coefficients to where a model can be taken from them, by so many visits; True if done."""
        is_done: bool = self._session.finish_some(visits)
        return is_done

    def release(self) -> None:
        """There will be no other block: let go of what was kept for it."""
        self._blocks = iter(())


def feed_linear(session: Any, block: Examples, diagonal: NDArray[np.float64]) -> None:
    """Hand a block of dense or CSR rows to a linear session."""
    X = block.X
    arrays = (X.data, X.indices, X.indptr.astype(np.int64, copy=False), X.shape[1]) if issparse(X) else (X,)
    session.feed(*arrays, block.ids, block.labels, block.costs, diagonal)


def linear_diagonal(session: Any, X: Any) -> NDArray[np.float64]:
    """k(x, x) of dense or CSR rows, in float64, with the constant feature of the session."""
    if issparse(X):
        squares = X.copy()
        squares.data = squares.data.astype(np.float64) ** 2
        norms = np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()
    else:
        norms = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    diagonal: NDArray[np.float64] = norms + session.intercept**2
    return diagonal


class ChoosingFeed(KernelSource, Feed):
    """Feeds a session the examples of a stream in the order a strategy chooses, one at a time.

    Parameters
    ----------
    session, provider
        The session must also decide on examples that it was not fed: `decide` and `reach`.
    stream : Stream
        With `draws`.
    order : array of int
        The rows to choose from.
    strategy : Strategy
        What chooses among random candidates.
    count : int
        How many examples to take.
    """

    def __init__(
        self, session: Any, provider: Provider, stream: Stream, order: _Index, strategy: Strategy, count: int
    ) -> None:
        super().__init__(session, provider)
        assert stream.draws is not None
        self._examples, self._order = stream.examples, order
        self._strategy, self._left = strategy, count
        self._gradual = strategy if isinstance(strategy, GradualStrategy) else None
        self._pool = Pool(len(order), stream.draws)

    def advance(self, examples: int) -> int:
        """Choose and work on up to so many examples; how many were done, 0 once all are taken."""
        todo = min(examples, self._left)
        for _ in range(todo):
            self._block, self._stored = self._chosen(), (_NOBODY, _NOBODY)
            self._block.feed(self.session)
            self.session.run(1, self)
            self.flush()
            self._block = None
        self._left -= todo
        self.session.set_foreign_bytes(self.provider.nbytes)
        return todo

    def _chosen(self) -> _Block:
        """An example out of the pool, with its kernel values."""
        drawn = self._pool.draw(self._strategy.draws)
        rows = self._order[drawn]
        looks: list[tuple[Batch, NDArray[Any]]] = []
        margins = np.empty(0)
        ends = [0]
        while ends[-1] < len(rows):
            size = len(rows) if self._gradual is None else self._gradual.looks << len(looks)
            part = rows[ends[-1] : ends[-1] + size]
            batch = self.provider.batch(rows_of(self._examples.X, part), self._examples.ids[part])
            kernel = self.provider.against_support(batch, self.session.slots + 1)
            looks.append((batch, kernel))
            ends.append(ends[-1] + len(part))
            margins = np.concatenate([margins, self._margins(kernel, part)])
            if self._gradual is not None and self._gradual.is_decided(margins, self.session.reach):
                break
        choice = self._strategy.choose(margins, self.session.reach)
        if not 0 <= choice < len(margins):
            raise ValueError(
                f"selection must choose a place from 0 to {len(margins) - 1}, got {choice} from {self._strategy!r}"
            )
        self._pool.remove(int(drawn[choice]))
        look = int(np.searchsorted(ends, choice, side="right")) - 1
        batch, kernel = looks[look]
        first = choice - ends[look]
        one = slice(first, first + 1)
        within = batch.diagonal[one].astype(self.provider.dtype)[:, None]
        return _Block(self._examples.at(rows[choice : choice + 1]), batch, kernel[one], within, first)

    def _margins(self, kernel: NDArray[Any], rows: _Index) -> NDArray[Any]:
        decisions = self.session.decide(kernel)
        if not decisions.shape[1]:
            return np.zeros(len(rows))
        if not self._strategy.needs_labels:
            return uncertainty_margin(decisions)
        labels = self._examples.labels[rows]
        classes = 2 if decisions.shape[1] == 1 else decisions.shape[1]
        known = labels < classes
        margins = np.full(len(rows), -np.inf)  # nothing is as wrong as not to know of the class
        margins[known] = label_margin(decisions[known], labels[known])
        return margins
