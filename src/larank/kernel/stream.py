"""A stream of examples for a compiled session, block by block.

A linear session is handed the examples themselves. For a kernel session the kernel values of the next block are
computed while it works on this one.

It is handed the kernel values of a few new examples with every pattern in its table, and among themselves. Those of the
next block are computed in the background against the table as it was when this block began; the columns of patterns
born since then are added when this block is done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from larank.blocks import Batch, Provider
from larank.blocks.workers import Background

__all__ = [
    "Examples",
    "Feed",
    "GradualSession",
    "KernelFeed",
    "KernelSession",
    "KernelSource",
    "LinearFeed",
    "SessionFeed",
    "Stream",
    "feed_linear",
    "squared_norms",
]


class KernelSource(Protocol):
    """Where a session asks for kernel values that it does not keep."""

    def rows(self, slots: NDArray[np.int32]) -> NDArray[Any]: ...  # noqa: D102
    def between(self, slots: NDArray[np.int32], others: NDArray[np.int32]) -> NDArray[Any]: ...  # noqa: D102


class KernelSession(Protocol):
    """What the compiled sessions of all kernel solvers offer."""

    @property
    def slots(self) -> int: ...  # noqa: D102
    def newborn(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...  # noqa: D102
    def feed(self, kernel: Any, within: Any, ids: Any, labels: Any, costs: Any, diagonal: Any) -> None: ...  # noqa: D102
    def run(self, end: int, source: KernelSource | None) -> None: ...  # noqa: D102
    def finish(self, source: KernelSource | None) -> None: ...  # noqa: D102
    def set_foreign_bytes(self, bytes: int) -> None: ...  # noqa: D102


class GradualSession(KernelSession, Protocol):
    """A session whose finish takes long enough to be looked at on the way."""

    def finish_some(self, steps: int, source: KernelSource) -> bool: ...  # noqa: D102


@dataclass(frozen=True)
class Examples:
    """A block of the stream: the examples as the provider wants them, their numbers, labels and costs."""

    X: Any
    ids: NDArray[np.int64]
    labels: NDArray[np.int32]
    costs: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Stream:
    """Examples with their numbers, labels and costs, and the order in which to visit them."""

    X: Any
    ids: NDArray[np.int64]
    labels: NDArray[np.int32]
    costs: NDArray[np.float64]
    order: NDArray[np.intp]
    orders: np.random.RandomState | None  # of the epochs after the first
    draws: np.random.RandomState | None = None  # of candidates, where the next example is chosen

    def blocks(self, order: NDArray[np.intp], size: Callable[[], int]) -> Iterator[Examples]:
        """The examples in this order, in blocks as long as `size` says when each begins."""
        done = 0
        while done < len(order):
            rows = order[done : done + size()]
            done += len(rows)
            X = [self.X[row] for row in rows] if isinstance(self.X, list | tuple) else self.X[rows]
            yield Examples(X, self.ids[rows], self.labels[rows], self.costs[rows])

    def next_order(self) -> NDArray[np.intp]:
        """The order of another epoch."""
        if self.orders is None:
            return self.order
        shuffled: NDArray[np.intp] = self.orders.permutation(self.order)
        return shuffled


class Feed(Protocol):
    """Work on a stretch of the stream, a little at a time."""

    def advance(self, examples: int) -> int:
        """Work on up to so many examples of the block at hand; how many were done, 0 at the end of the stretch."""

    def finish(self) -> None:
        """Bring the session's coefficients to where a model can be taken from them."""

    def flush(self) -> None:
        """Let the provider know all patterns that the session has now."""

    def wait(self) -> None:
        """Wait for what runs in the background."""

    def close(self) -> None:
        """Flush, and wait for what runs in the background."""


@dataclass
class _Block:
    examples: Examples
    batch: Batch
    kernel: NDArray[Any]
    within: NDArray[Any]
    diagonal: NDArray[np.float64]


class SessionFeed(ABC):
    """A kernel session and the provider of its rows."""

    def __init__(self, session: KernelSession, blocks: Provider) -> None:
        self._session, self._blocks = session, blocks
        self._rows = np.zeros(0, blocks.dtype)

    @abstractmethod
    def flush(self) -> None:
        """Let the provider know all patterns that the session has now."""

    def finish(self) -> None:
        """Bring the session's coefficients to where a model can be taken from them."""
        self._session.finish(self)

    def finish_some(self, steps: int) -> bool:
        """The same, a bounded number of steps at a time; True once it is done."""
        return cast(GradualSession, self._session).finish_some(steps, self)

    def rows(self, slots: NDArray[np.int32]) -> NDArray[Any]:
        """Rows of kernel values that fell out of the memory budget, in one product."""
        self.flush()
        shape = (len(slots), max(self._session.slots, self._blocks.size))
        if len(self._rows) < shape[0] * shape[1]:
            self._rows = np.zeros(shape[0] * shape[1] * 5 // 4, self._blocks.dtype)
        rows = self._rows[: shape[0] * shape[1]].reshape(shape)
        self._blocks.rows(slots, out=rows[:, : self._blocks.size])
        return rows

    def between(self, slots: NDArray[np.int32], others: NDArray[np.int32]) -> NDArray[Any]:
        """Kernel values of some patterns with others."""
        return self._blocks.between(slots, others)


class KernelFeed(SessionFeed):
    """Feeds a stretch of the stream to a kernel session."""

    def __init__(self, session: KernelSession, blocks: Provider, stream: Iterator[Examples]) -> None:
        super().__init__(session, blocks)
        self._stream = stream
        self._next: Background[_Block] | None = None
        self._block: _Block | None = None
        self._births = np.empty(0, np.intp)  # slots of the block before, which `kernel` does not have yet
        self._done = 0
        # The values of the next block are written while those of this one are read.
        self._tables = [np.zeros(0, blocks.dtype), np.zeros(0, blocks.dtype)]

    def advance(self, examples: int) -> int:
        """Work on up to so many examples of the block at hand; how many were done, 0 at the end of the stretch."""
        if self._block is None and not self._begin_block():
            return 0
        block = self._block
        assert block is not None
        end = min(len(block.examples), self._done + examples)
        self._session.run(end, self)
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
        if self._block is not None:
            self._store_births(self._block)

    def close(self) -> None:
        """Flush, and wait for what runs in the background."""
        self.flush()

    def _begin_block(self) -> bool:
        block = self._take_next()
        if block is None:
            return False
        self._done = 0
        self._session.set_foreign_bytes(self._blocks.nbytes + sum(table.nbytes for table in self._tables))
        upcoming = next(self._stream, None) if self._blocks.concurrent else None
        if upcoming is not None:
            room = self._session.slots + len(block.examples)
            self._next = self._blocks.background(partial(self._prepare, upcoming, room))
        examples = block.examples
        self._session.feed(block.kernel, block.within, examples.ids, examples.labels, examples.costs, block.diagonal)
        self._block = block
        return True

    def _take_next(self) -> _Block | None:
        if self._next is not None:
            ready, self._next = self._next.result(), None
            if len(self._births):
                ready.kernel[:, self._births] = self._blocks.against_slots(ready.batch, self._births)
            return ready
        upcoming = next(self._stream, None)
        return None if upcoming is None else self._prepare(upcoming, self._session.slots)

    def _prepare(self, examples: Examples, slots: int) -> _Block:
        """The block and its kernel values, with room for its births beside so many slots."""
        batch = self._blocks.batch(examples.X, examples.ids)
        room = slots + len(examples)
        kernel, within = self._blocks.tables(batch, room, self._table(len(examples), room))
        return _Block(examples, batch, kernel, within, self._blocks.diagonal(batch))

    def _table(self, rows: int, columns: int) -> NDArray[Any]:
        """Memory for a block: what stands in it is finite, and it is used again for the block after the next."""
        self._tables.reverse()
        if len(self._tables[0]) < rows * columns:
            self._tables[0] = np.zeros(rows * columns * 5 // 4, self._blocks.dtype)
        return self._tables[0][: rows * columns].reshape(rows, columns)

    def _end_block(self, block: _Block) -> None:
        self.flush()
        self._births, _ = self._births_of(block)
        self._block = None

    def _births_of(self, block: _Block) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The examples of the block that are support patterns now: their slots and their rows in the block."""
        slots, born = self._session.newborn()
        ids = block.examples.ids
        order = np.argsort(ids, kind="stable")
        rows = order[np.searchsorted(ids, born, sorter=order)]
        assert np.array_equal(ids[rows], born)
        return slots.astype(np.intp), rows

    def _store_births(self, block: _Block) -> None:
        slots, rows = self._births_of(block)
        self._blocks.store(slots, block.batch, rows)


class LinearFeed:
    """Feeds a stretch of the stream to a linear session."""

    def __init__(self, session: Any, stream: Iterator[Examples]) -> None:
        self._session, self._stream = session, stream
        self._length = self._done = 0

    def advance(self, examples: int) -> int:
        """Work on up to so many examples of the block at hand; how many were done, 0 at the end of the stretch."""
        if self._done == self._length:
            block = next(self._stream, None)
            if block is None:
                return 0
            feed_linear(self._session, block, squared_norms(block.X))
            self._length, self._done = len(block), 0
        end = min(self._length, self._done + examples)
        self._session.run(end)
        worked, self._done = end - self._done, end
        return worked

    def finish(self) -> None:
        """Bring the session's coefficients to where a model can be taken from them."""
        self._session.finish()

    def flush(self) -> None:
        """Nothing to tell anyone."""

    def wait(self) -> None:
        """Nothing runs in the background."""

    def close(self) -> None:
        """Nothing runs in the background."""


def feed_linear(session: Any, block: Examples, diagonal: NDArray[np.float64]) -> None:
    """Hand a block of dense or CSR rows to a linear session."""
    X = block.X
    arrays = (X.data, X.indices, X.indptr.astype(np.int64, copy=False), X.shape[1]) if issparse(X) else (X,)
    session.feed(*arrays, block.ids, block.labels, block.costs, diagonal)


def squared_norms(X: Any) -> NDArray[np.float64]:
    """x'x of dense or CSR rows, in float64."""
    if issparse(X):
        squares = X.copy()
        squares.data = squares.data.astype(np.float64) ** 2
        return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()
    norms: NDArray[np.float64] = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return norms
