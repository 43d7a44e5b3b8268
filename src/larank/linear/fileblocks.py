"""Files larger than memory: the optimum of `LinearMulticlassSVC` by passes over blocks of rows on a disk.

The dual of core/linear/sdmrows.hpp is maximised over the coefficients of one block after the other, those of all other
rows held fixed:

    max_d  sum_{i in block} gain(a_i + d_i, y_i) - 1/2 |W + sum_{i in block} x_i d_i'|^2

by `Partition`, with sigma = 1: a full loop of the Sequential Dual Method over the block and shrunk loops after it, up
to `_PASSES` passes in all, since reading a block takes as long as a few of them. W follows at once, so the dual never
falls.

Blocks are mixed anew for every pass. Were they always the same, each would pull the directions that all rows share its
own way, back from where the block before has left them, and W would swing for long though the dual is nearly optimal:
on news20 in five blocks the gap was 0.045 after forty passes. So rows are read by stripes, 16 to a block, and a pass
draws which stripes are a block. The mean of W over the ends of blocks of the last pass is a candidate for the model.

Epsilon follows the violations, and costs are raised in stages, from pass to pass as in `larank.linear.rounds`.
Coefficients lie on the disk beside their stripe, at full costs: those of lowered costs are a share of them, so raising
costs touches no file. What is in memory: W in `_TABLES` arrays, and one block with its coefficients.

A stream may have no end. Reading ends with half of the time limit or with Ctrl-C, and the rows read so far are the
problem that is solved.
"""

from __future__ import annotations

import math
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import check_random_state

from larank._core import MemoryLimitError, trim_heap
from larank.blocks.ranges import LARGEST_COST
from larank.costs import check_weights, class_factors
from larank.data.ahead import arrived
from larank.data.files import DiskLimitError, TemporaryFolder, file_to_write, temporary_folder
from larank.data.rowstore import RowStore, StoredRows, place_of
from larank.data.stream import ExampleBlock, ExampleFile, arriving_blocks, until_cut
from larank.declare import ParameterError
from larank.linear.labels import StreamLabels
from larank.linear.rounds import (
    Coefficients,
    LinearProblem,
    Partition,
    Rounds,
    Weights,
    as_published,
    shrunk,
    square,
)
from larank.training import (
    FromScratch,
    Interrupt,
    Objectives,
    ObjectiveValues,
    Outcome,
    Status,
    check_arrived,
    cut_by,
    first_interrupt,
    train,
)
from larank.training.progress import progress_for
from larank.training.result import Result
from larank.validation import validated

_PASSES = 3  # over a block that was read
_STRIPES = 16  # of a block
_TABLES = 5  # W, its mean, its change, that of the session, and one to sum up in
_ROW_BYTES = 200  # of a row with its label, costs and a few coefficients, beside the values of X
_CLASS_BYTES, _MOST_CLASSES = 24, 16  # and for each class, up to so many: most coefficients are zero
_BUFFERS = 8  # that the reader of a text fills at a time, at most
_BUFFER_BYTES = 32e6
_WORK = 100_000_000  # multiply-adds between two looks at limits


# ---- Rows and labels: the first pass ----


class _Gathered(NamedTuple):
    """What the first pass has found."""

    store: RowStore
    classes: NDArray[Any]
    ranks: NDArray[np.int32]  # of the numbers that labels got as they came, among the sorted classes
    counts: NDArray[np.int64]
    weights: NDArray[np.float64]  # of the rows of each class together
    largest: NDArray[np.float64]  # weight of a row of each class
    cut_by: Status | None  # the limit that ended reading, if one did


class _Counts:
    """Rows, their weights, and the largest of them, class by class, as labels are numbered."""

    def __init__(self) -> None:
        self.rows: NDArray[np.int64] = np.zeros(0, np.int64)
        self.total: NDArray[np.float64] = np.zeros(0)
        self.largest: NDArray[np.float64] = np.zeros(0)

    def add(self, numbers: NDArray[np.int32], weights: NDArray[np.float64], n_labels: int) -> None:
        more = (0, n_labels - len(self.rows))
        self.rows, self.total = np.pad(self.rows, more), np.pad(self.total, more)
        self.largest = np.pad(self.largest, more)
        self.rows += np.bincount(numbers, minlength=n_labels)
        self.total += np.bincount(numbers, weights, n_labels)
        np.maximum.at(self.largest, numbers, weights)


def is_mapped(X: Any, memory_limit: float) -> bool:
    """Whether X is a memory-mapped array that is to be trained on block by block."""
    return isinstance(X, np.memmap) and X.ndim == 2 and X.nbytes > memory_limit


def _slices(source: Any, y: Any, sample_weight: Any, n_bytes: int) -> Generator[ExampleBlock]:
    """Blocks of an array with its labels."""
    labels = np.asarray(y)
    weights = None if sample_weight is None else np.asarray(sample_weight)
    for name, values in (("y", labels), ("sample_weight", weights)):
        if values is not None and values.shape != source.shape[:1]:
            raise ValueError(f"{name} must have a value for each row of X, {len(source)}; got shape {values.shape}")
    size = max(1, n_bytes // max(1, source.itemsize * source.shape[1]))
    for first in range(0, len(source), size):
        rows = slice(first, min(first + size, len(source)))
        weight = None if weights is None else weights[rows]
        where = f"rows {rows.start} to {rows.stop - 1}"
        yield ExampleBlock(_slice(source, rows), labels[rows], weight, None, where)


def _slice(X: NDArray[Any], rows: slice) -> NDArray[Any]:
    """Mapped anew where that can be, so that its pages do not stay with the process."""
    place = place_of(X)
    if place is None:
        return X[rows]
    offset = place.offset + rows.start * X.strides[0]
    return np.memmap(place.path, X.dtype, "r", offset, (rows.stop - rows.start, X.shape[1]))


class _Reading:
    """Blocks of rows, until a limit cuts them."""

    def __init__(self, time_limit: float | None, interrupt: Interrupt) -> None:
        self.cut_by: Status | None = None
        self._time_limit, self._interrupt = time_limit, interrupt
        self._label: Any = None  # the first one
        self._has_classes = False

    def blocks(self, source: Any, y: Any, sample_weight: Any, memory_limit: float) -> Generator[ExampleBlock]:
        """Yield the blocks of a stream, or slices of an array with its labels."""
        is_text = isinstance(source, str | os.PathLike | ExampleFile)
        n_bytes = max(1, int(min(_BUFFER_BYTES, memory_limit / (_BUFFERS if is_text else 4))))
        if y is not None:
            yield from until_cut(_slices(source, y, sample_weight, n_bytes), self._is_cut)
            return
        with closing(arriving_blocks(source, n_bytes, self._is_cut, reads_ahead=False)) as blocks:
            yield from arrived(blocks)

    def _is_cut(self, block: ExampleBlock | None) -> bool:
        if block is not None and len(block.y) and not self._has_classes:
            self._label = block.y[0] if self._label is None else self._label
            self._has_classes = bool(np.any(block.y != self._label))
        self.cut_by = cut_by(self._time_limit, self._interrupt, has_classes=self._has_classes)
        return self.cut_by is not None


def _gathered(
    model: Any, source: Any, y: Any, sample_weight: Any, folder: TemporaryFolder, interrupt: Interrupt
) -> _Gathered:
    """Check all rows and write them down, or those that come until a limit ends reading."""
    for name in ("n_features_in_", "feature_names_in_"):
        vars(model).pop(name, None)
    stripe_bytes = max(1, int(model.memory_limit / (2 * _STRIPES)))
    labels, counts, reading = StreamLabels(), _Counts(), _Reading(model.time_limit, interrupt)
    values = None if y is None else place_of(source)
    store = RowStore(folder, stripe_bytes, _ROW_BYTES, values)
    with closing(store), closing(reading.blocks(source, y, sample_weight, model.memory_limit)) as blocks:
        for block in blocks:
            try:
                X, own, weights = _checked(model, block)
                numbers = labels.numbered(own)
                store.append(X, numbers, weights)
                counts.add(numbers, weights, len(labels))
                _check_memory(model, store, len(labels))
            except DiskLimitError:  # no block is at fault
                raise
            except ValueError as error:
                kind = MemoryLimitError if isinstance(error, MemoryLimitError) else ValueError
                raise kind(f"{block.where}: {error}") from error
    check_arrived(labels.listed(), 2, reading.cut_by, model.time_limit)
    if not store.rows:
        raise ValueError("the stream must hold at least one example, got none")
    if len(labels) < 2:
        raise ValueError(f"the stream must hold at least two classes, got one: {labels.arrived[0].item()!r}")
    order = np.argsort(labels.arrived)
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    figures = counts.rows[order], counts.total[order], counts.largest[order]
    return _Gathered(store, labels.arrived[order], ranks, *figures, reading.cut_by)


def _checked(model: Any, block: ExampleBlock) -> tuple[Any, NDArray[Any], NDArray[np.float64]]:
    """The arrays of a block, if they are sound; sparse ones may be wider than those before."""
    X: Any = block.X
    is_first = not hasattr(model, "n_features_in_")
    if issparse(X) and not is_first:
        model.n_features_in_ = max(model.n_features_in_, X.shape[1])
        if X.shape[1] < model.n_features_in_:
            X = csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], model.n_features_in_))
    X, y = validated(model, X, block.y, reset=is_first)
    weights = np.ones(len(y)) if block.sample_weight is None else np.asarray(block.sample_weight, np.float64)
    check_weights(weights)
    return X, y, weights


def _check_memory(model: Any, store: RowStore, n_labels: int) -> None:
    assert store.dtype is not None
    lanes = math.ceil(max(2, n_labels) * store.dtype.itemsize / 64) * 64
    needed = _TABLES * (store.n_features + 1) * lanes
    if needed > model.memory_limit:
        raise MemoryLimitError(
            f"memory_limit={model.memory_limit:.3g} bytes do not hold the weights of {store.n_features} features and "
            f"{n_labels} classes so far; at least {needed} bytes for these, and more for those to come"
        )


# ---- Blocks ----


@dataclass(frozen=True)
class _Costs:
    """C times the factors of classes, in the problems of their own and in those of others."""

    own: NDArray[np.float64]
    rest: NDArray[np.float64]

    @classmethod
    def of(cls, model: Any, found: _Gathered) -> _Costs:
        factors = class_factors(model.class_weight, found.classes, found.counts, found.weights)
        has_rest = model.formulation == "one-vs-rest" and len(found.classes) > 2
        own, rest = model.C * factors, model.C * (np.ones_like(factors) if has_rest else factors)
        total = float((found.weights * np.maximum(own, rest)).sum())
        if not total <= LARGEST_COST:
            raise ValueError(
                f"C times sample_weight and class_weight must sum to at most {LARGEST_COST:g} over all examples, got "
                f"{total:.3g}; choose a smaller C or smaller weights"
            )
        model._check_precision(found.store.dtype, found.largest * np.maximum(own, rest))
        return cls(own, rest)


class _Blocks:
    """Stripes with their coefficients, opened as partitions."""

    def __init__(self, found: _Gathered, costs: _Costs, problem: LinearProblem, folder: TemporaryFolder) -> None:
        self._found, self._costs, self._problem, self._folder = found, costs, problem, folder
        self.stripes, self.n_classes = found.store.stripes, problem.n_classes
        self._rows_with, self._coefficients, self._bytes = (np.zeros(len(self.stripes), np.int64) for _ in range(3))
        self.reads = 0

    def opened(self, chosen: Sequence[int], number: int, ramp: float) -> Partition:
        """The rows of these stripes with their coefficients, costs lowered to the share `ramp`."""
        trim_heap()
        self.reads += 1
        rows: StoredRows = self._found.store.read([self.stripes[each] for each in chosen])
        labels = self._found.ranks[rows.numbers]
        own, rest = rows.weights * self._costs.own[labels], rows.weights * self._costs.rest[labels]
        partition = Partition(rows.X, labels, own, rest, self._problem, number, self._read(chosen))
        if ramp < 1:
            partition.scale_costs(ramp)
        return partition

    def keep(self, chosen: Sequence[int], partition: Partition, ramp: float) -> None:
        """Write the coefficients of a partition that was opened."""
        values, classes, starts = partition.coefficients()
        first = 0
        for each in chosen:
            last = first + self.stripes[each].rows
            stored, own = slice(starts[first], starts[last]), np.diff(starts[first : last + 1])
            arrays = own.astype(np.int32), classes[stored], values[stored] / ramp
            self._folder.take(sum(array.nbytes for array in arrays) - self._bytes[each])
            self._bytes[each] = sum(array.nbytes for array in arrays)
            with file_to_write(self._path(each)) as file:
                for array in arrays:
                    file.write(array.view(np.uint8).data)
            self._rows_with[each], self._coefficients[each] = np.count_nonzero(own), own.sum()
            first = last

    def support(self) -> tuple[int, int]:
        """Examples with coefficients, and coefficients."""
        return int(self._rows_with.sum()), int(self._coefficients.sum())

    def divided(self, order: Sequence[int], memory: float) -> list[list[int]]:
        """The stripes in this order, joined to blocks that fit this memory; each has one stripe at least."""
        row_bytes = _ROW_BYTES + _CLASS_BYTES * min(self._problem.n_classes, _MOST_CLASSES)
        groups: list[list[int]] = []
        room = 0.0
        for each in order:
            needed = self._found.store.bytes_of(self.stripes[each], row_bytes)
            if not groups or needed > room:
                groups.append([])
                room = memory
            groups[-1].append(each)
            room -= needed
        return groups

    def _read(self, chosen: Sequence[int]) -> Coefficients:
        counts, classes, values = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], [np.zeros(0)]
        for each in chosen:
            n_rows, n_stored = self.stripes[each].rows, int(self._coefficients[each])
            if n_stored == 0:
                counts.append(np.zeros(n_rows, np.int32))
                continue
            with self._path(each).open("rb") as file:
                counts.append(np.fromfile(file, np.int32, n_rows))
                classes.append(np.fromfile(file, np.int32, n_stored))
                values.append(np.fromfile(file, np.float64, n_stored))
        starts = np.concatenate([[0], np.cumsum(np.concatenate(counts), dtype=np.int64)])
        return np.concatenate(values), np.concatenate(classes), starts

    def _path(self, stripe: int) -> Path:
        return self._folder.path / f"coefficients-{stripe}"


# ---- Passes ----


@dataclass
class _Seen:
    """What the full loops of a pass saw."""

    losses: float = 0.0
    violations: float = 0.0
    violation: float = 0.0


class _Open(NamedTuple):
    """The block that is worked on."""

    chosen: list[int]
    partition: Partition
    visits_left: int
    piece: int  # visits between two looks at limits


class BlockPasses:
    """Training as the loop sees it: W, and which block comes next."""

    def __init__(self, blocks: _Blocks, *, memory: float, seed: int, cooling: bool, epsilon: float) -> None:
        self._blocks, self._memory, self._seed, self._cooling, self._least = blocks, memory, seed, cooling, epsilon
        self.rows = sum(stripe.rows for stripe in blocks.stripes)
        self.visits = self.steps = self.passes = 0
        self.W: Weights = np.zeros((0, 0))
        self._acting, self._way = 0, 0.0
        self._constant_loss = self._loss_at_zero = self._gain = self._square = 0.0
        self._unseen = blocks.divided(range(len(blocks.stripes)), memory)[::-1]  # their sizes are not summed up so far
        self._n_classes = blocks.n_classes
        self._ramp = self._cooling_rate = 1.0
        self._sum_up_sizes()
        self._average, self._averaged = np.zeros_like(self.W), 0
        self._model: Weights | None = None  # what the last evaluation found, if nothing has changed since
        self._epsilon = max(1.0, epsilon) if cooling else epsilon
        self._passes_of_stage = 0
        self._waiting: list[list[int]] = []
        self._open: _Open | None = None
        self._seen = _Seen()
        self._estimate: Objectives | None = None

    # What the training loop calls.

    def advance(self) -> bool:
        """Some tens of milliseconds of visits; True once a pass met no violation of `epsilon` or more."""
        if self._unseen:
            self._sum_up_sizes()
            return False
        if self._open is None:
            if not self._waiting:
                self._begin_pass()
            self._open_block(self._waiting.pop())
        assert self._open is not None
        self._model = None
        chosen, partition, left, piece = self._open
        done = partition.visit_rows(self.W, 1.0, min(left, piece))
        self.W += partition.change()
        self._gain += done.gain_change
        self._square = square(self.W)
        self.visits += done.visits
        self._open = _Open(chosen, partition, left - done.visits, piece)
        if not done.is_idle and done.visits and left > done.visits:
            return False
        self._close_block()
        return not self._waiting and self._end_pass()

    def estimate(self) -> Objectives | None:
        """The exact dual of all coefficients, and losses as the last pass saw them."""
        found, self._estimate = self._estimate, None
        return found

    def evaluate(self) -> FromScratch:
        """W from the coefficients, then the terms of all blocks there, and at the average of W."""
        while self._unseen:
            self._sum_up_sizes()
            yield
        self._close_block()
        groups = self._blocks.divided(range(len(self._blocks.stripes)), self._memory)
        W = np.zeros(self.W.shape)
        for chosen in groups:
            yield
            self._blocks.opened(chosen, 0, self._ramp).session.add_weights(W)
        square_of_dual = float(np.vdot(W, W))
        self.W = W.astype(self.W.dtype)
        del W
        candidates = [as_published(self.W, self._n_classes)]
        if self._averaged:
            candidates.append(as_published(self._average, self._n_classes))
        primals, gain, violation = [0.5 * square(candidate) for candidate in candidates], 0.0, 0.0
        for chosen in groups:
            yield
            partition = self._blocks.opened(chosen, 0, self._ramp)
            terms = [partition.terms(candidate) for candidate in candidates]
            primals = [primal + each.losses for primal, each in zip(primals, terms, strict=True)]
            gain, violation = gain + terms[0].gain, max(violation, terms[0].violation)
        self._square, self._gain = square_of_dual, gain - self._constant_loss
        best = int(np.argmin(primals))
        model, primal = candidates[best], primals[best]
        if primal > self._loss_at_zero:
            losses = np.zeros(1)
            for chosen in groups:
                yield
                losses = losses + self._blocks.opened(chosen, 0, self._ramp).shrunk_losses(model)
            model, primal = shrunk(model, losses, self._loss_at_zero)
        self._model = model
        return ObjectiveValues(primal, gain - 0.5 * square_of_dual, violation)

    def iterations(self) -> float:
        """Passes over the data, by visits."""
        return self.visits / max(1, self.rows)

    def details(self) -> Mapping[str, Any]:
        """Nothing beside the objectives."""
        return {}

    # What the caller takes in the end.

    def weights(self) -> Weights:
        """The model as it is published, a column per lane; the best that the last evaluation found."""
        return as_published(self.W, self._n_classes) if self._model is None else self._model

    def operations(self) -> dict[str, int]:
        """Counts for the result."""
        return {"visits": self.visits, "steps": self.steps, "passes": self.passes, "blocks_read": self._blocks.reads}

    # Passes.

    def _sum_up_sizes(self) -> None:
        """Add the sizes of another block. After the last block, lower the costs if coefficients have far to go."""
        size = self._blocks.opened(self._unseen.pop(), 0, 1.0).size()
        self._acting += size.rows_that_act
        self._constant_loss += size.constant_loss
        self._loss_at_zero += size.loss_at_zero
        self._way += size.way
        if not self.W.size:
            self.W = np.zeros((size.weight_rows, size.lanes), size.dtype)
        mean_way = self._way / max(1, self._acting)
        if not self._unseen and self._cooling and mean_way > 2:
            self._ramp, self._cooling_rate = min(0.01, 1 / mean_way), 0.1

    def _begin_pass(self) -> None:
        order = np.random.default_rng((self._seed, self.passes)).permutation(len(self._blocks.stripes))
        self._waiting = self._blocks.divided(order.tolist(), self._memory)
        self._seen = _Seen()
        self._averaged = 0

    def _open_block(self, chosen: list[int]) -> None:
        partition = self._blocks.opened(chosen, chosen[0], self._ramp)
        rate = self._cooling_rate if self._cooling else math.inf
        least = self._least if self._cooling else self._epsilon
        partition.begin_phase(self._seed, self.passes, self._epsilon, rate, least, -1.0)
        size = partition.size()
        work = size.lanes * (8 + size.stored / max(1, size.rows)) + self.W.size / 100
        self._open = _Open(chosen, partition, _PASSES * size.rows_that_act, max(1000, int(_WORK / work)))

    def _close_block(self) -> None:
        if self._open is None:
            return
        chosen, partition, *_ = self._open
        loop, self._open = partition.session.loop, None
        seen = self._seen
        seen.losses, seen.violations = seen.losses + loop.losses, seen.violations + loop.violations
        seen.violation = max(seen.violation, loop.violation)
        self.steps += partition.counters()["steps"]
        self._blocks.keep(chosen, partition, self._ramp)
        self._averaged += 1
        change = np.subtract(self.W, self._average)
        change /= self._averaged
        self._average += change

    def _end_pass(self) -> bool:
        """Note what it saw, cool, and raise costs where it is time; True once the violation stop holds."""
        self.passes += 1
        self._passes_of_stage += 1
        seen, half, constant = self._seen, 0.5 * self._square, self._ramp * self._constant_loss
        at = ObjectiveValues(half + seen.losses + constant, self._gain - half + constant, seen.violation)
        if self._cooling:
            mean = seen.violations / max(1, self._acting)
            self._epsilon = max(self._least, min(self._epsilon, self._cooling_rate * mean))
        if self._ramp == 1.0:
            self._estimate = at
            return seen.violation < self._least
        if at.primal - at.dual < Rounds.RAMP_GAP * at.primal or self._passes_of_stage >= Rounds.RAMP_PATIENCE:
            self._raise_costs()
        return False

    def _raise_costs(self) -> None:
        old, raised = self._ramp, self._ramp * Rounds.RAMP_FACTOR
        self._ramp = raised if raised < 0.99 else 1.0
        factor = self._ramp / old
        self.W *= self.W.dtype.type(factor)
        self._gain, self._square = self._gain * factor, self._square * factor**2
        self._passes_of_stage, self._epsilon = 0, max(1.0, self._least)


# ---- The fit ----


def fit_blocks(model: Any, source: Any, y: Any, sample_weight: Any) -> Outcome:
    """Train a `LinearMulticlassSVC` on a stream, or on an array that is a memory map, and set what it has fitted."""
    _check_acts_on_blocks(model)
    with first_interrupt() as interrupt, temporary_folder(model.disk_limit) as folder:
        found = _gathered(model, source, y, sample_weight, folder, interrupt)
        intercept = float(model.intercept_scaling) if model.fit_intercept else 0.0
        problem = LinearProblem(model.formulation, len(found.classes), intercept, bool(model._switches.shrinking))
        on_disk = _Blocks(found, _Costs.of(model, found), problem, folder)
        return _trained(model, found, on_disk, interrupt)


def _trained(model: Any, found: _Gathered, blocks: _Blocks, interrupt: Interrupt) -> Outcome:
    store = found.store
    assert store.dtype is not None
    lanes = math.ceil(len(found.classes) * store.dtype.itemsize / 64) * 64
    with progress_for(model.verbose) as progress:
        progress.start(
            f"{model.formulation}, {store.rows} examples on disk, {store.n_features} features, "
            f"{len(found.classes)} classes"
        )
        training = BlockPasses(
            blocks,
            memory=model.memory_limit - _TABLES * (store.n_features + 1) * lanes,
            seed=int(check_random_state(model.random_state).randint(2**31 - 1)),
            cooling=bool(model._switches.cooling),
            epsilon=model._epsilon,
        )
        outcome = train(training, model._limits(), progress, interrupt=interrupt)
    if found.cut_by is not None:
        status = "interrupted" if interrupt.has_come else found.cut_by
        advice = f"reading was ended after {store.rows} examples, and the model is of these"
        outcome = replace(outcome, status=status, advice=advice)
    for name in ("dual_coef_", "support_", "costs_", "rest_costs_"):
        vars(model).pop(name, None)
    model.classes_, model._formulation = found.classes, model.formulation
    model._keep_weights(training.weights()[:, : len(found.classes)].T)
    support = blocks.support()
    model.result_ = Result.of(
        outcome,
        solver="sdm",
        iterations=training.iterations(),
        support_patterns=support[0],
        support_vectors=support[1],
        operations=training.operations(),
        breakdown={},
    )
    model.n_iter_ = math.ceil(model.result_.iterations)
    return outcome


def _check_acts_on_blocks(model: Any) -> None:
    if model.warm_start:
        raise ParameterError("warm_start", "must be False with a file or blocks, which keep no coefficients; got True")
    if model.n_jobs is not None and model.n_jobs != 1:
        raise ParameterError("n_jobs", f"must be None or 1 with a file or blocks; got {model.n_jobs!r}")
    if math.isinf(model.C):
        raise ParameterError("C", "must be finite with a file or blocks; got infinity. Use a large number instead")
