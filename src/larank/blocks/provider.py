"""The provider of kernel values, and how it fills tables of them tile by tile.

A solver never evaluates a kernel. It asks a provider, of which there is one class per kind of data, for the kernel
values of a batch of examples with all support patterns at once, so that almost all work is matrix products. Support
patterns live in numbered slots, which the solver gives out and uses again.

Values are computed tile by tile: a product, then the kernel's map while the tile is in cache. The tiles depend on the
shapes alone and each is worked on by one thread, so the values do not depend on the number of threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from copy import copy
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from larank import _core
from larank.blocks.kernels import Kernel, ProductKernel
from larank.blocks.pages import zeros
from larank.blocks.ranges import LARGEST, check_diagonal, check_kernel_parameters, check_kernel_values
from larank.blocks.store import Batch, Support
from larank.blocks.table import KernelTable
from larank.blocks.workers import Background, Workers

_Array = NDArray[Any]
_Result = TypeVar("_Result")
_Float = NDArray[np.float64]
_Index = NDArray[np.int64]

_IsWorthKeeping = Callable[[_Index, _Array], NDArray[np.bool_]]
_NONE: _Index = np.zeros(0, np.int64)
ROWS_AT_ONCE = 512
_HALF_TILE = 128
_PATTERNS_AT_ONCE = 1024
_PAIRS_AT_ONCE = 1 << 14
_FEW_VALUES = 1 << 14
_MOST_SLOTS = 0.75  # of all, from where all of them are multiplied
_TILE_BYTES = 1 << 19  # half of a small L2 cache: the map finds the products still there


class Provider(ABC):
    """What a solver asks of kernel values.

    Products run in `n_jobs` threads, the calling one among them, with one BLAS thread each. Limiting BLAS and starting
    the threads takes a moment, so enter `with provider.threads():` once around a training; a call outside does it for
    itself. The limit holds for the whole process while a block is entered. Calls may come from several threads at the
    same time. What is stored while a table with the support is computed may or may not be in it: the table's columns of
    slots stored meanwhile have some finite value.
    """

    _rows_measured = ROWS_AT_ONCE

    def __init__(self, kernel: Kernel, dtype: Any, support: Support, n_jobs: int | None) -> None:
        self.kernel, self.n_jobs = kernel, n_jobs
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        check_kernel_parameters(kernel, self.dtype)
        self.kernel_values = 0
        self.indefinite = ""  # what shows that the kernel is not positive semi-definite, in words, once something has
        self.seconds = {"product": 0.0, "map": 0.0}
        self._support = support
        self._table: KernelTable | None = None
        self._workers = Workers(n_jobs)

    @property
    def concurrent(self) -> bool:
        """Whether values may be computed in another thread while the calling one works."""
        return self._workers.count > 1

    def background(self, function: Callable[[], _Result]) -> Background[_Result]:
        """Let another thread compute values meanwhile; inside `with provider.threads():`."""
        return self._workers.background(function)

    @property
    def size(self) -> int:
        """Slots in use or used before: one more than the highest stored."""
        return self._support.size

    @property
    def nbytes(self) -> int:
        """What the support patterns take."""
        return self._support.nbytes

    def expect(self, X: Any, memory_limit: float) -> None:
        """All examples of X may become support patterns, as far as memory allows."""
        self._support.expect(self.size + min(length(X), int(memory_limit / max(1.0, row_nbytes(X)))))

    def keep_values(self, examples: int) -> None:
        """From now on keep kernel values of training examples, of which there are so many, numbered from 0."""
        self._table = KernelTable(examples, self.size, self.dtype)

    def share_memory(self, nbytes: float) -> None:
        """So much memory is there for kernel values of training examples."""
        if self._table is not None:
            self._table.stay_within(nbytes, self.size)

    @property
    def kept_nbytes(self) -> int:
        """What the kernel values of training examples take."""
        return 0 if self._table is None else self._table.nbytes

    def threads(self) -> AbstractContextManager[None]:
        """Keep the worker threads and the limit on BLAS threads until the block is left."""
        return self._workers.entered()

    def each(self, work: Callable[[Any], None], tasks: list[Any]) -> None:
        """Do all tasks, in the threads that values may be computed in."""
        if self.concurrent:
            self._workers.run(work, tasks)
        else:
            for task in tasks:
                work(task)

    @abstractmethod
    def batch(self, X: Any, ids: Any, rows: Any = None) -> Batch:
        """Prepare the examples of X, or some of its rows, for products.

        Parameters
        ----------
        X : array, CSR matrix or sequence
            Examples.
        ids : int or array of int
            Their numbers in the stream, or the first of numbers in a row.
        rows : slice, array of int or None
            Which rows of X; None is all. Precomputed values are then used in place.
        """

    def diagonal(self, batch: Batch) -> _Float:
        """k(x, x), exact."""
        return batch.diagonal

    def against_support(self, batch: Batch, width: int | None = None, out: _Array | None = None) -> _Array:
        """Kernel values of a batch with all slots, in the first columns of a table.

        Parameters
        ----------
        batch : Batch
            Examples.
        width : int or None
            Columns of the table, at least `size`: room for slots born later. What is there is not defined.
        out : array of shape (at least len(batch), width) or None
            A table to write to instead of a new one.

        Returns
        -------
        array of shape (len(batch), width)
            A slot that holds the example itself has the exact k(x, x). Free slots have some finite value.
        """
        support = self._held()
        size = len(support)
        width = size if width is None else width
        if width < size:
            raise ValueError(f"width must be at least the number of slots, {size}, got {width}")
        table = np.empty((len(batch), width), self.dtype) if out is None else out[: len(batch), :width]
        if size:
            self._count(len(batch) * self._fill_against(batch, support, table[:, :size]))
            self._set_diagonal(batch, table, size)
        return table

    def _set_diagonal(self, batch: Batch, table: _Array, size: int) -> None:
        """The exact k(x, x) where a slot holds the example itself."""
        for i, slot in self._support.find(batch.ids):
            if slot < size:
                table[i, slot] = batch.diagonal[i]

    def against_slots(self, batch: Batch, slots: Any) -> _Array:
        """Kernel values of a batch with some slots."""
        return self.cross(batch, self._held(self._checked(slots)))

    def between(self, slots: Any, others: Any) -> _Array:
        """Kernel values of some slots with others, none of which is among them."""
        left, columns = self._held(self._checked(slots)), self._checked(others)
        table = zeros((len(left), len(columns)), self.dtype)
        for some in pieces(len(columns), _PATTERNS_AT_ONCE):  # for they are copied
            self._values(left, self._held(columns[some]), table[:, some])
        self._count(table.size)
        return table

    def _fill_against(self, batch: Batch, support: Batch, out: _Array) -> int:
        """Kernel values with all slots; returns how many of these had to be computed."""
        table, size = self._table, len(support)
        rows = _NONE if table is None else table.rows_of(batch.ids)
        missing = np.arange(size) if table is None or (rows < 0).any() else table.missing(rows, size)
        if table is None or len(missing) > size // 2:
            self._values(batch, support, out)
            return size
        table.take(rows, out)
        if len(missing):
            values = np.empty((len(batch), len(missing)), self.dtype)
            self._values(batch, self._held(missing), values)
            out[:, missing] = values
        return len(missing)

    def scores_in_training(
        self, X: Any, ids: _Index, slots: Any, coefficients: _Float, is_worth_keeping: _IsWorthKeeping
    ) -> _Float:
        """As `scores`, for the training examples of these numbers, which are rows of X.

        Kernel values that are kept are used. `is_worth_keeping` is given numbers and scores of examples and says whose
        values are to be kept.
        """
        if self._table is None or not self._table.columns or not len(slots):
            self._count(len(ids) * len(slots))
            return self.scores(rows_of(X, ids), slots, coefficients)
        scale = _scale_of(coefficients)
        dense = np.zeros((self.size, coefficients.shape[1]), self.dtype)
        dense[self._checked(slots)] = coefficients / scale
        out = np.zeros((len(ids), coefficients.shape[1]))

        rows = self._table.rows_of(ids)
        known = np.flatnonzero(rows >= 0)
        known = known[np.argsort(rows[known])]
        unknown = np.flatnonzero(rows < 0)
        tasks: list[tuple[Callable[..., _Array], _Index]] = []
        tasks += [(self._look_again, known[some]) for some in pieces(len(known), ROWS_AT_ONCE)]
        tasks += [(self._look_anew, unknown[some]) for some in pieces(len(unknown), ROWS_AT_ONCE)]

        def fill(task: tuple[Callable[..., _Array], _Index]) -> None:
            look, chosen = task
            out[chosen] = look(X, ids[chosen], dense, lambda some, scores: is_worth_keeping(some, scale * scores))

        self.each(fill, tasks)
        out *= scale
        return out

    def _look_anew(self, X: Any, ids: _Index, coefficients: _Array, is_worth_keeping: _IsWorthKeeping) -> _Array:
        """Scores of examples that are not in the table; some of them are put there."""
        table, everything = self._table, np.arange(len(coefficients))
        assert table is not None
        moment = table.now
        values = self._computed(X, ids, everything)
        scores: _Array = values @ coefficients
        kept = np.flatnonzero(is_worth_keeping(ids, scores))
        rows = table.new_rows(ids[kept])
        if len(rows):
            table.put(rows, everything, values[kept[: len(rows)]], moment)
        return scores

    def _look_again(self, X: Any, ids: _Index, coefficients: _Array, _: _IsWorthKeeping) -> _Float:
        """Scores of examples that are in the table, which is brought up to date."""
        table = self._table
        assert table is not None
        rows, moment = table.rows_of(ids), table.now
        missing = table.missing(rows, len(coefficients))
        if not len(missing):
            return table.products(rows, coefficients)
        values = self._computed(X, ids, missing)
        table.put(rows, missing, values, moment)
        outside = np.searchsorted(missing, table.columns)  # there is no room for these
        scores = table.products(rows, coefficients)
        scores += values[:, outside:] @ coefficients[missing[outside:]]
        return scores

    def _computed(self, X: Any, ids: _Index, slots: _Index) -> _Array:
        """Kernel values of training examples with some slots, computed in the calling thread and soon overwritten."""
        values = self._workers.scratch(len(ids), len(slots), self.dtype)
        self._values_alone(self._batch_for_scores(X, ids), self._held(slots), values)
        self._count(values.size)
        return values

    def _batch_for_scores(self, X: Any, ids: _Index) -> Batch:
        return self.batch(X, ids, ids)

    def measure(self, X: Any) -> tuple[_Float, _Array]:
        """k(x, x) and the squared norm of every example of X, checked as batches are."""
        count = length(X)
        diagonal, norms = np.empty(count), np.empty(count, self.dtype)

        def fill(rows: slice) -> None:
            batch = self.batch(X, np.arange(rows.start, rows.stop), rows)
            diagonal[rows], norms[rows] = batch.diagonal, batch.norms

        self.each(fill, pieces(count, self._rows_measured))
        check_diagonal(diagonal, f"kernel={self.kernel.name!r}", self.dtype)
        return diagonal, norms

    def sweep(self, X: Any, right: Batch, work: Callable[[slice, _Array], None], norms: _Array | None = None) -> None:
        """Kernel values of all examples of X with those of a batch, a tile of rows at a time, in all threads.

        Parameters
        ----------
        X : array, CSR matrix or sequence
            Examples of training or others.
        right : Batch
            What they are compared with.
        work : callable
            Is given rows of X and their values, in the thread that computed them, and may write to the values. They
            are overwritten by the next tile.
        norms : array or None
            What `measure` found, so that it need not be found again.
        """

        def fill(rows: slice) -> None:
            values = self._workers.scratch(rows.stop - rows.start, len(right), self.dtype)
            self._values_alone(self.part(X, rows, norms), right, values)
            self._count(values.size)
            work(rows, values)

        self.each(fill, pieces(length(X), ROWS_AT_ONCE))

    @abstractmethod
    def part(self, X: Any, rows: Any, norms: _Array | None) -> Batch:
        """Rows of X for products with others: their k(x, x) may be missing.

        Where norms are known, as `measure` found them, the rows are not checked again.
        """

    def within(self, batch: Batch) -> _Array:
        """Kernel values of a batch with itself: symmetric, with the exact diagonal."""
        table = batch.among
        if table is None:
            table = np.empty((len(batch), len(batch)), self.dtype)
            self._values(batch, batch, table)
            self._complete(batch, table)
        return table

    def _complete(self, batch: Batch, within: _Array) -> None:
        """From the lower half of a table of a batch with itself to all of it."""
        np.copyto(within, within.T.copy(), where=np.triu(np.ones(within.shape, bool), 1))
        np.fill_diagonal(within, batch.diagonal)
        self._count(len(batch) * (len(batch) + 1) // 2)

    def among(self, X: Any, rows: _Index) -> _Array:
        """Kernel values of some rows of X with each other, for looking at: they are not counted."""
        batch = self.part(X, rows, None)
        table = np.empty((len(rows), len(rows)), self.dtype)
        self._values(batch, batch, table)
        return table

    def tables(self, batch: Batch, width: int, out: _Array) -> tuple[_Array, _Array]:
        """What `against_support` and `within` return, computed together where that takes less time."""
        return self.against_support(batch, width, out), self.within(batch)

    def cross(self, batch: Batch, other: Batch) -> _Array:
        """Kernel values of a batch with another one."""
        table = np.empty((len(batch), len(other)), self.dtype)
        self._values(batch, other, table)
        self._count(table.size)
        return table

    def rows(self, slots: Any, out: _Array | None = None) -> _Array:
        """Kernel values of some slots with all of them, with the exact diagonal, in a new table or in `out`."""
        slots = self._checked(slots)
        chosen, support = self._held(slots), self._held()
        table = np.empty((len(slots), len(support)), self.dtype) if out is None else out
        self._values(chosen, support, table)
        table[np.arange(len(slots)), slots] = chosen.diagonal
        self._count(table.size)
        return table

    def store(self, slots: Any, batch: Batch, rows: Any) -> None:
        """Let slot `slots[k]` hold example `rows[k]` of the batch."""
        slots, rows = np.asarray(slots, np.int64), np.asarray(rows, np.int64)
        if len(slots) != len(rows):
            raise ValueError(f"slots and rows must be equally many, got {len(slots)} and {len(rows)}")
        if len(slots):
            with self._workers.lock:
                self._support.put(slots, batch, rows)
                if self._table is not None:
                    self._table.note_arrivals(slots)

    def adopt(self, patterns: Any, ids: Any) -> None:
        """Let slots 0, 1, ... hold what `patterns` returned, perhaps in another process."""
        batch = self.batch(patterns, ids)
        self.store(np.arange(len(batch)), batch, np.arange(len(batch)))

    def stored(self) -> Batch:
        """The examples in all slots, for products."""
        return self._held()

    def patterns(self, slots: Any) -> Any:
        """The examples in these slots, as they were given."""
        return self._support.originals(self._checked(slots))

    def keep_what_goes(self, is_kept: bool) -> None:
        """Whether examples whose slots are taken by others are kept from now on; those kept before are let go."""
        self._support.keep_what_goes(is_kept)

    def recalled(self, ids: _Index) -> Iterator[tuple[NDArray[np.bool_], Any]]:
        """Examples by their ids, in slots or kept after that, in parts: which of them, and the examples as given."""
        return self._support.recalled(ids)

    @abstractmethod
    def scores(self, X: Any, slots: Any, coefficients: Any) -> _Float:
        """sum_j coefficients[j, y] k(pattern in slots[j], x) for every x of X and every y, for prediction.

        `coefficients` is an array or a CSR matrix with a row per slot. What is computed here does not count as a kernel
        value of training.
        """

    @property
    def is_rounded(self) -> bool:
        """Whether `exact_scores` has more digits than `scores`.

        Sums of linear kernel values lose digits in any precision if they cancel and the weights do not.
        """
        return self.dtype == np.float32 or self.kernel.name == "linear"

    def is_cheap_in_double(self, values: int) -> bool:
        """Whether `exact_scores`, by so many kernel values, take so little time that they need no reason."""
        return values <= _FEW_VALUES or self.kernel.name == "linear"

    def exact_scores(self, X: Any, patterns: Any, coefficients: _Float) -> _Float:
        """Return sum_j coefficients[j, y] k(patterns[j], x) with kernel values in double precision.

        `patterns` are examples as they were given. Nothing is counted as a kernel value of training.
        """
        out = np.zeros((length(X), coefficients.shape[1]))
        if self.kernel.name == "linear":
            weights = summed_weights(patterns, coefficients)
            for rows in pieces(length(X), ROWS_AT_ONCE):
                out[rows] = in_double(X[rows]) @ weights
            out += self.kernel.constant * coefficients.sum(axis=0)
            return out
        for some in pieces(len(coefficients), _PATTERNS_AT_ONCE):
            chosen = in_double(rows_of(patterns, some))
            double = self._in_double(chosen)
            double.adopt(chosen, np.arange(length(chosen)))
            with double.threads():
                for rows in pieces(length(X), ROWS_AT_ONCE):
                    found = double.scores(in_double(rows_of(X, rows)), np.arange(length(chosen)), coefficients[some])
                    out[rows] += found
        return out

    def patterns_among(self, X: Any, rows: _Index) -> Any:
        """Return these examples of X in the form in which `exact_scores` takes patterns."""
        return rows_of(X, rows)

    def _in_double(self, patterns: Any) -> Provider:
        """Return a provider of the same kernel for such examples in double precision."""
        constructor: Any = type(self)
        double: Provider = constructor(self.kernel, patterns, self.n_jobs)
        return double

    @abstractmethod
    def _values(self, left: Batch, right: Batch, out: _Array) -> None:
        """Fill a table; the diagonal need not be exact."""

    def _values_alone(self, left: Batch, right: Batch, out: _Array) -> None:
        """The same in the calling thread."""
        self._values(left, right, out)

    def _held(self, slots: _Index | None = None) -> Batch:
        with self._workers.lock:
            return self._support.batch(slots)

    def _checked(self, slots: Any) -> _Index:
        numbers: _Index = np.asarray(slots, np.int64)
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < self.size):
            raise IndexError(f"slots must be from 0 to {self.size - 1}, got {numbers.min()} to {numbers.max()}")
        return numbers

    def _count(self, values: int, product: float = 0.0, mapped: float = 0.0) -> None:
        with self._workers.lock:
            self.kernel_values += values
            self.seconds["product"] += product
            self.seconds["map"] += mapped


class TiledProvider(Provider):
    """Provider whose values are computed here, tile by tile."""

    _tile_rows = ROWS_AT_ONCE
    _tile_columns = 1024

    def _values(self, left: Batch, right: Batch, out: _Array) -> None:
        def fill(tile: tuple[slice, slice]) -> None:
            self._count(0, *self._fill_tile(left, tile[0], right, tile[1], out[tile]))

        self._workers.run(fill, self._tiles(left, right))

    def tables(self, batch: Batch, width: int, out: _Array) -> tuple[_Array, _Array]:
        """As one job, so that no thread waits for the last tile of the first one."""
        support = self._held()
        if self._table is not None or batch.among is not None or not len(support):
            return super().tables(batch, width, out)
        kernel, within = out[: len(batch), :width], np.zeros((len(batch), len(batch)), self.dtype)
        tasks = [(support, tile, kernel[tile]) for tile in self._tiles(batch, support)]
        for first in range(0, len(batch), _HALF_TILE):  # of the lower half
            tile = slice(first, len(batch)), slice(first, first + _HALF_TILE)
            tasks.append((batch, tile, within[tile]))

        def fill(task: tuple[Batch, tuple[slice, slice], _Array]) -> None:
            right, (rows, columns), values = task
            self._count(0, *self._fill_tile(batch, rows, right, columns, values))

        self._workers.run(fill, tasks)
        self._count(len(batch) * len(support))
        self._set_diagonal(batch, kernel, len(support))
        self._complete(batch, within)
        return kernel, within

    def _values_alone(self, left: Batch, right: Batch, out: _Array) -> None:
        for tile in self._tiles(left, right):
            self._count(0, *self._fill_tile(left, tile[0], right, tile[1], out[tile]))

    def _tiles(self, left: Batch, right: Batch) -> list[tuple[slice, slice]]:
        columns = self._columns(min(len(left), self._tile_rows), len(right))
        return [(rows, some) for rows in pieces(len(left), self._tile_rows) for some in columns]

    def scores(self, X: Any, slots: Any, coefficients: Any) -> _Float:
        """Scores of any examples, some rows at a time."""
        scale = _scale_of(coefficients)
        out = np.zeros((X.shape[0], coefficients.shape[1]))
        for right, weights in self._expansions(self._checked(slots), coefficients / scale):
            self._workers.run(partial(self._add_scores, X, right, weights, out), pieces(X.shape[0], ROWS_AT_ONCE))
        out *= scale
        return out

    def _add_scores(self, X: Any, right: Batch, coefficients: Any, out: _Float, rows: slice) -> None:
        left = self._prepared(X, np.arange(rows.start, rows.stop), rows)
        columns = self._columns(len(left), len(right))
        scratch = np.empty((len(left), columns[0].stop if columns else 0), self.dtype)
        for part in columns:
            tile = scratch[:, : part.stop - part.start]
            self._fill_tile(left, slice(0, len(left)), right, part, tile)
            weights = coefficients[part]
            out[rows] += tile @ (weights.toarray() if sparse.issparse(weights) else weights)

    def _expansions(self, slots: _Index, coefficients: Any) -> Iterator[tuple[Batch, Any]]:
        """Patterns and their coefficients: all at once where none are copied, otherwise some at a time.

        A few zeros more cost less than a copy of nearly all patterns.
        """
        if len(slots) == self.size and (slots == np.arange(self.size)).all():
            yield self._held(), coefficients.astype(self.dtype)
        elif sparse.issparse(coefficients) or len(slots) < _MOST_SLOTS * self.size:
            for some in pieces(len(slots), _PATTERNS_AT_ONCE):
                yield self._held(slots[some]), coefficients[some].astype(self.dtype)
        else:
            support = self._held()
            dense = np.zeros((len(support), coefficients.shape[1]), self.dtype)
            dense[slots] = coefficients
            yield support, dense

    def _columns(self, rows: int, columns: int) -> list[slice]:
        step = _TILE_BYTES // (self.dtype.itemsize * min(max(rows, 1), ROWS_AT_ONCE))
        return pieces(columns, min(max(step, 64), self._tile_columns))

    def _fill_tile(self, left: Batch, rows: slice, right: Batch, columns: slice, out: _Array) -> tuple[float, float]:
        """Fill one tile and check it: no value that is too large, or no number, goes out of here."""
        with np.errstate(over="ignore", invalid="ignore"):
            seconds = self._tile(left, rows, right, columns, out)
        if not _core.is_within(out, LARGEST[self.dtype]):
            check_kernel_values(out, f"kernel={self.kernel.name!r}", left.ids[rows], right.ids[columns])
        return seconds

    @abstractmethod
    def _tile(self, left: Batch, rows: slice, right: Batch, columns: slice, out: _Array) -> tuple[float, float]:
        """Fill one tile, in the calling thread; returns the seconds of product and map."""

    def _map_tile(self, left: Batch, rows: slice, right: Batch, columns: slice, out: _Array) -> None:
        """Turn the inner products in a tile into kernel values."""
        assert isinstance(self.kernel, ProductKernel)
        cancelled = self.kernel.map(out, left.norms[rows], right.norms[columns])
        if len(cancelled):
            self.set_near(self.kernel, cancelled, left, rows.start or 0, right, columns.start or 0, out)

    def set_near(
        self, kernel: ProductKernel, cancelled: _Index, left: Batch, row: int, right: Batch, column: int, out: _Array
    ) -> None:
        """Compute the kernel values of some pairs again, from the differences of their features.

        `cancelled` are positions in the tile `out`, whose first row and column are `row` and `column` of the batches.
        """
        for some in pieces(len(cancelled), _PAIRS_AT_ONCE):
            i, j = np.divmod(cancelled[some], out.shape[1])
            out[i, j] = kernel.map_distances(self._squared_distances(left, row + i, right, column + j), self.dtype)

    @abstractmethod
    def _squared_distances(self, left: Batch, rows: _Index, right: Batch, others: _Index) -> _Float:
        """Return |x - z|^2 of pairs of examples, from the differences of their features."""

    @abstractmethod
    def _prepared(self, X: Any, ids: Any, rows: Any, norms: _Array | None = None) -> Batch:
        """The batch, whether or not its kernel values can be represented; `norms` are squared ones of all X."""

    def part(self, X: Any, rows: Any, norms: _Array | None) -> Batch:
        """Rows of X for products with others."""
        ids = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        return self._prepared(X, ids, rows, norms)

    def batch(self, X: Any, ids: Any, rows: Any = None) -> Batch:
        """Examples prepared for products, checked."""
        batch = self._prepared(X, ids, rows)
        with np.errstate(over="ignore"):
            diagonal = batch.diagonal.astype(self.dtype)
        check_kernel_values(diagonal, f"kernel={self.kernel.name!r}", batch.ids)
        return batch


def tolerance(dtype: Any) -> float:
    """How far apart two numbers of this precision may be and still count as the same."""
    return 1e-4 if np.dtype(dtype) == np.float32 else 1e-6


def _scale_of(coefficients: Any) -> float:
    """A power of two near the largest of them: divided by it they fit in any precision, and are rounded as before."""
    values = coefficients.data if sparse.issparse(coefficients) else coefficients
    return 2.0 ** min(int(np.frexp(np.abs(values).max(initial=0.0))[1]), 1023)  # the largest power that is a float


def pieces(count: int, step: int) -> list[slice]:
    """So many things in pieces of `step`, the last one perhaps shorter."""
    return [slice(first, min(first + step, count)) for first in range(0, count, step)]


def ids_of(ids: Any, count: int) -> _Index:
    """Stream ids as an array: those given, or numbers in a row from a first one."""
    if np.ndim(ids) == 0:
        return np.arange(int(ids), int(ids) + count)
    numbers: _Index = np.asarray(ids, np.int64)
    if len(numbers) != count:
        raise ValueError(f"ids must be one per example, {count}, got {len(numbers)}")
    return numbers


BYTES = (np.dtype(np.uint8), np.dtype(np.int8))
"""Types of dense examples that are taken as they are; their kernel values are float32."""


def precision(X: Any) -> Any:
    """The precision of the examples, which is that of their kernel values."""
    dtype = getattr(X, "dtype", None)
    if dtype in BYTES:
        return np.dtype(np.float32)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"X must hold float32 or float64, got {dtype or type(X).__name__}")
    return dtype


def rows_of(X: Any, rows: Any) -> Any:
    """Some examples of an array, a CSR matrix or a sequence."""
    if isinstance(rows, slice) or hasattr(X, "shape"):
        return X[rows]
    return [X[row] for row in np.asarray(rows).tolist()]


def read_only(value: Any) -> Any:
    """Return arrays and sparse matrices as views that cannot be written to, also those in lists and tuples.

    Functions of the caller's are handed such views, so that they cannot change examples. Other objects are returned
    unchanged.
    """
    if isinstance(value, np.ndarray):
        if not value.flags.writeable:
            return value
        view = value.view()
        view.flags.writeable = False
        return view
    if sparse.issparse(value):
        matrix = copy(value)
        for name, part in vars(value).items():
            setattr(matrix, name, read_only(part))
        return matrix
    if type(value) in (list, tuple):
        items = [read_only(item) for item in value]
        is_same = all(item is other for item, other in zip(items, value, strict=True))
        return value if is_same else type(value)(items)
    return value


def row_nbytes(X: Any) -> float:
    """The memory of an example of X, on average; of an object what refers to it."""
    if sparse.issparse(X):
        return float((X.data.nbytes + X.indices.nbytes) / max(1, X.shape[0]) + X.indptr.itemsize)
    return float(X.nbytes) / max(1, len(X)) if hasattr(X, "nbytes") else 8.0


def summed_weights(patterns: Any, coefficients: _Float) -> _Float:
    """Return sum_j patterns[j] coefficients[j, y] in double precision, a column for each y."""
    weights = np.zeros((patterns.shape[1], coefficients.shape[1]))
    for some in pieces(len(coefficients), ROWS_AT_ONCE):
        weights += np.asarray(in_double(patterns[some]).T @ coefficients[some])
    return weights


def in_double(X: Any) -> Any:
    """Return an array or a CSR matrix in float64; other examples stay as they are."""
    return X.astype(np.float64) if hasattr(X, "astype") and X.dtype != object else X


def length(X: Any) -> int:
    """How many examples X holds."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
