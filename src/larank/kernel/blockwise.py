"""Kernel multiclass SVMs by block steps: matrix products from end to end, on the host or on a device.

Support patterns, the kernel values K between them, coefficients beta and scores F = K beta lie on one device;
`kernel/blockstep.py` has the dual problem and the step that raises it on a block of patterns.

A stream comes in chunks. A chunk is scored; of the examples that violate their margin by more than tau some thousands
join as patterns, a block of them at a time, those of later blocks scored again before they do. A block step on the
newcomers and some on older patterns follow, half of which violate optimality most. Patterns whose coefficients vanish
leave.

K is kept as long as memory allows, and from there on computed again block by block.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank import _core
from larank.blocks.device import Array, DeviceKernel, Rows
from larank.kernel.blockstep import STEPS, Ascent, Constraints, ascended
from larank.kernel.stream import Examples

_NEWCOMERS = 2560  # of a chunk at most: examples are cheap on a device, and patterns are not
_OLDER_BLOCKS = 3  # steps on older patterns after each on newcomers
_SHARE_OF_MATRIX = 0.8  # of the memory limit
_GROWTH = 1.5
_MANY_ZEROS = 0.125  # of the patterns: then those without coefficients leave
_KAPPA = 1e-6  # of its bound: a coefficient so close to it is at it
_LEAST_CHUNK = 256
_SEEDS = 2**31  # there are so many
_SWEEPS_OF_FINISH = 3
_NO_GAIN = 1e-14  # of the dual objective

_Index = NDArray[np.int64]


@dataclass
class BlockCounters:
    """How often what was done."""

    examples: int = 0
    blocks: int = 0
    finishing_blocks: int = 0
    gradients: int = 0
    forgotten: int = 0
    left_out: int = 0  # violators of chunks that had too many
    selection_seconds: float = 0.0
    step_seconds: float = 0.0

    @property
    def operations(self) -> tuple[int, int, int]:
        """New examples, block steps and gradient steps."""
        return self.examples, self.blocks, self.gradients

    @property
    def steps(self) -> int:
        """Block steps."""
        return self.blocks

    @property
    def finishing_steps(self) -> int:
        """Those of them that finished a model."""
        return self.finishing_blocks

    @property
    def argmax(self) -> int:
        """One for each example."""
        return self.examples


@dataclass(frozen=True)
class BlockTable:
    """Patterns with coefficients: ids, labels, costs and the rows of a sparse matrix, as other sessions tell them."""

    slots: NDArray[np.int32]
    ids: _Index
    labels: NDArray[np.int32]
    costs: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    columns: NDArray[np.int32]
    starts: NDArray[np.int64]


class Blockwise:
    """The patterns of a kernel machine on a device, and what is done with them.

    Parameters
    ----------
    values : DeviceKernel
        The kernel, its precision and the device.
    memory_limit : float
        The bytes on the device for patterns and kernel values between them.
    tau : float
        Violations below it are left alone.
    seed : int
        Of what is drawn at random.
    keeps_originals : bool
        Whether patterns are kept as they were given, too, on the host.
    """

    averages = False

    def __init__(self, values: DeviceKernel, memory_limit: float, tau: float, seed: int, keeps_originals: bool) -> None:
        self.values, self.device, self.xp = values, values.device, values.device.xp
        self.dtype, self.memory_limit, self.tau = values.dtype, memory_limit, tau
        self.formulation = "crammer-singer"
        self.columns = 0
        self.counters = BlockCounters()
        self.kernel_values = 0
        self.loss = 0.0  # of the examples of this epoch, each as it came
        self.features = len(values.location)
        self.margins: NDArray[np.float64] = np.zeros((0, 0))  # Delta(y, y')
        self._seed, self._draws = seed, 0
        self._has_own_margins = False
        self._size = 0
        self._room = 0
        self._keeps_matrix = True
        self._unfinished = 0  # block steps until the model is finished
        self._at_rest = 0  # how many patterns there were when a step gained nothing
        self.ids: _Index = np.zeros(0, np.int64)
        self.labels: NDArray[np.int32] = np.zeros(0, np.int32)
        self.costs: NDArray[np.float64] = np.zeros(0)
        self.originals: list[NDArray[Any]] | None = [] if keeps_originals else None
        self._X: Array = None
        self._norms: Array = None
        self._largest_norm = 0.0  # of all patterns so far
        self._K: Array = None
        self._beta: Array = None
        self._F: Array = None
        self._constraints: Constraints | None = None
        self._ascent: Ascent | None = None  # of full blocks

    # What others ask.

    @property
    def slots(self) -> int:
        """Patterns, with coefficients or without."""
        return self._size

    @property
    def support_patterns(self) -> int:
        """Patterns with coefficients."""
        return int(np.count_nonzero(self._have_coefficients()))

    @property
    def half_squared_norm(self) -> float:
        """1/2 <beta, K beta>."""
        return float(self._product(self._used(self._beta), self._used(self._F))) / 2 if self._size else 0.0

    @property
    def dual(self) -> float:
        """The dual objective."""
        if not self._size:
            return 0.0
        return -self._product(self._used(self._beta), self._limits().margins) - self.half_squared_norm

    @property
    def state(self) -> tuple[float, float, float, list[float], int]:
        """What a model does not tell of a stream, in the form that other sessions have."""
        dual = self.dual
        return dual, dual + self.half_squared_norm, self.loss, [1.0, 1.0, 1.0], self._draws * _SEEDS + self._seed

    @state.setter
    def state(self, state: Any) -> None:
        _, _, self.loss, _, random = state
        self._draws, self._seed = divmod(int(random), _SEEDS)

    def plan(self) -> str:
        """What there is, and what the memory is for, in words."""
        matrix = "with" if self._keeps_matrix else "without"
        return (
            f"{self._size} patterns of {self.features} features, {matrix} the kernel values between them, take "
            f"{self._bytes_for(self._room) / 1e6:.0f} MB of memory_limit={self.memory_limit:.4g}, and "
            f"{self.device.examples_at_once} examples are scored at once; a smaller memory_limit leaves more room"
        )

    def table(self) -> BlockTable:
        """The patterns with coefficients, which lie exactly within their constraints."""
        beta = self.exact_coefficients()
        rows, columns = np.nonzero(beta)
        kept = np.unique(rows)
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self._size)[kept])]).astype(np.int64)
        return BlockTable(
            kept.astype(np.int32),
            self.ids[kept],
            self.labels[kept],
            self.costs[kept],
            beta[rows, columns],
            columns.astype(np.int32),
            starts,
        )

    def exact_coefficients(self) -> NDArray[np.float64]:
        """Those of all patterns in double precision: rows add up to zero, and no bound is exceeded."""
        if not self._size:
            return np.zeros((0, self.columns))
        beta = self._host_beta()
        own = np.arange(self._size), self.labels
        beta[own] = 0.0
        np.minimum(beta, 0.0, out=beta)
        beta[beta > _KAPPA * beta.min(axis=1, keepdims=True)] = 0.0  # what rounding has left
        bounds = self.costs[:, None]
        if self.formulation == "weston-watkins":
            beta[beta < -(1 - _KAPPA) * bounds] = 0.0
            beta -= np.where(self._host_beta() < -(1 - _KAPPA) * bounds, bounds, 0.0)
            beta[own] = 0.0
            beta[own] = -beta.sum(axis=1)
            return beta
        sums = -beta.sum(axis=1)
        is_bounded = sums > (1 - _KAPPA) * self.costs
        beta[is_bounded] *= (self.costs[is_bounded] / sums[is_bounded])[:, None]
        beta[own] = np.where(is_bounded, self.costs, sums)
        return beta

    def member_scores(self) -> NDArray[np.float64]:
        """F of all patterns, as it was kept on the way."""
        return self.device.get(self._used(self._F)).astype(np.float64) if self._size else np.zeros((0, self.columns))

    def patterns(self, slots: Any) -> NDArray[Any]:
        """The examples in these slots, as they were given."""
        assert self.originals is not None
        if len(self.originals) > 1:
            self.originals = [np.concatenate(self.originals)]
        if not self.originals:
            return np.zeros((0, self.features), self.dtype)
        chosen: NDArray[Any] = self.originals[0][np.asarray(slots)]
        return chosen

    def scores(self, X: Any, slots: Any, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of examples of the host, in double precision."""
        with self.device.within(self.plan()):
            if not self._size:
                return np.zeros((X.shape[0], coefficients.shape[1]))
            patterns = self._rows().at(self.device.index(slots))
            self.kernel_values += X.shape[0] * len(patterns)
            return self.values.scores(X, patterns, self.device.put(coefficients, np.float64))

    def quick_scores(self, X: Any) -> NDArray[np.float64]:
        """Of examples of the host by the coefficients as they are, in the precision of training."""
        with self.device.within(self.plan()):
            if not self._size:
                return np.zeros((X.shape[0], self.columns))
            self.kernel_values += X.shape[0] * self._size
            return self.values.scores(X, self._rows(), self._used(self._beta))

    def averaged_weights(self) -> NDArray[Any]:
        """With a linear kernel: those of the coefficients, a last column for the constant of a kernel with a bias."""
        beta = self.exact_coefficients()
        weights = beta.T @ self.patterns(np.arange(self._size)).astype(np.float64)
        return np.asarray(np.column_stack([weights, beta.sum(axis=0)]), self.dtype)

    # Classes, margins and costs.

    def add_class(self) -> None:
        """One more, with the margin of 1 to all others."""
        self._grow_classes(self.columns + 1)

    def set_margins(self, margins: NDArray[np.float64]) -> None:
        """1 - Delta, for so many classes."""
        self._grow_classes(len(margins))
        self.margins, self._has_own_margins = 1 - np.asarray(margins, np.float64), True
        self._constraints, self._at_rest = None, 0

    def set_tau(self, tau: float) -> None:
        """Look closer, or less close."""
        self.tau = tau

    def set_formulation(self, formulation: str) -> None:
        """What is within the constraints of Crammer and Singer is within those of Weston and Watkins."""
        self.formulation, self._constraints, self._at_rest = formulation, None, 0

    def set_coefficients(self, beta: NDArray[np.float64]) -> None:
        """Those of all patterns, within the constraints."""
        self._beta[: self._size] = self.device.put(beta, self.dtype)
        self.refresh()

    def kernel_matrix(self) -> NDArray[np.float64]:
        """Kernel values between all patterns, in double precision, on the host."""
        rows = self._rows()
        rows = self.values.cast(rows, np.float64)
        values = self.device.get(self.values.values(rows, rows))
        values = np.asarray((values + values.T) / 2, np.float64)
        np.fill_diagonal(values, self.device.get(self.values.diagonal(self._rows())))
        return values

    def set_costs(self, costs: NDArray[np.float64]) -> None:
        """Those of all examples, by their ids; none is lower than before."""
        self.costs, self._constraints, self._at_rest = costs[self.ids], None, 0

    def begin_another_epoch(self) -> None:
        """Losses are summed up anew."""
        self.loss = 0.0

    def _grow_classes(self, columns: int) -> None:
        if columns <= self.columns:
            return
        if not self._has_own_margins:
            self.margins = 1 - np.eye(columns)
        for name in ("_beta", "_F"):
            table = getattr(self, name)
            if table is not None:
                wider = self.device.zeros((self._room, columns), self.dtype)
                wider[:, : self.columns] = table
                setattr(self, name, wider)
        self.columns, self._constraints, self._at_rest = columns, None, 0

    # A stream.

    def chunk_size(self) -> int:
        """Examples to score at once: no more than there are patterns, for each may be changed by what joins."""
        return int(np.clip(self._size, _LEAST_CHUNK, self.device.examples_at_once))

    def process(self, block: Examples) -> Iterator[None]:
        """A chunk of the stream; every `yield` is room for looking at limits."""
        self._grow_classes(int(block.labels.max(initial=-1)) + 1)
        losses = self._losses(block, self.quick_scores(block.X))
        self.loss += float(block.costs @ losses)
        self.counters.examples += len(block)
        is_new = ~np.isin(block.ids, self.ids)
        waiting = np.flatnonzero((losses > self.tau) & is_new)
        # Who comes first is drawn, with odds of the losses.
        waiting = waiting[np.argsort(self._random().exponential(size=len(waiting)) / losses[waiting])]
        self.counters.left_out += len(waiting[_NEWCOMERS:])
        waiting = waiting[:_NEWCOMERS]
        at_once = self.device.patterns_at_once
        for first in range(0, len(waiting), at_once):
            some = block.at(waiting[first : first + at_once])
            if first:
                some = some.at(np.flatnonzero(self._losses(some, self.quick_scores(some.X)) > self.tau))
            if len(some):
                self.join(some)
                self.step(np.arange(self._size - len(some), self._size))
                yield
                for _ in range(_OLDER_BLOCKS):
                    self.step(self.worst_block()[0])
                    yield
        if not len(waiting) and self._size != self._at_rest:  # later epochs look closer at the patterns there are
            for _ in range(_OLDER_BLOCKS):
                older, worst = self.worst_block()
                if worst <= self.tau:
                    break
                if self.step(older) <= _NO_GAIN * self.dual:
                    self._at_rest = self._size
                    break
                yield
        self._unfinished = _SWEEPS_OF_FINISH * math.ceil(self._size / at_once)
        if self._share_of_zeros() > _MANY_ZEROS:
            self.prune()

    def finish_some(self) -> bool:
        """A block step on those who violate optimality most; True once none does by more than tau."""
        if self._unfinished <= 0 or not self._size:
            return True
        block, worst = self.worst_block()
        if worst <= self.tau:
            self._unfinished = 0
            return True
        self.step(block)
        self.counters.finishing_blocks += 1
        self._unfinished -= 1
        return False

    def _losses(self, block: Examples, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of Crammer and Singer: the largest violation of a margin."""
        slack = self.margins[block.labels] + scores
        losses: NDArray[np.float64] = slack.max(axis=1) - scores[np.arange(len(block)), block.labels]
        return losses

    def _random(self) -> np.random.Generator:
        """What is drawn follows from the seed and from how often something was drawn."""
        self._draws += 1
        return np.random.default_rng((self._seed, self._draws))

    # Patterns come and go.

    def join(self, examples: Examples) -> None:
        """These become patterns, without coefficients as yet."""
        count = len(examples)
        with self.device.within(self.plan()):
            self._make_room(self._size + count)
            new = self.values.rows(examples.X)
            if self._size:
                # All columns at once where they are kept, else a tile at a time for the scores alone.
                self.kernel_values += count * self._size
                old = self._rows()
                if self._K is not None:
                    between = self.values.values(new, old)
                    self._K[self._size : self._size + count, : self._size] = between
                    self._K[: self._size, self._size : self._size + count] = between.T
                    scores = between @ self._used(self._beta)
                else:
                    scores = self.values.sums(new, old, self._used(self._beta))
            else:
                scores = self.device.zeros((count, self.columns), self.dtype)
            places = slice(self._size, self._size + count)
            if self._K is not None:
                self.kernel_values += count * (count + 1) // 2
                self._K[places, places] = self._among(new)
            self._X[places], self._norms[places] = new.X, new.norms
            self._largest_norm = max(self._largest_norm, new.largest_norm)
            self._F[places] = scores
            self._beta[places] = 0
        self.ids = np.concatenate([self.ids, examples.ids])
        self.labels = np.concatenate([self.labels, examples.labels])
        self.costs = np.concatenate([self.costs, examples.costs])
        if self.originals is not None:
            self.originals.append(np.array(examples.X))  # a copy, from wherever it is
        self._size += count
        self._constraints = None

    def restore(self, examples: Examples, beta: NDArray[np.float64]) -> None:
        """Take over the patterns of a model."""
        at_once = self.device.patterns_at_once
        for first in range(0, len(examples), at_once):
            self.join(examples.at(np.arange(first, min(first + at_once, len(examples)))))
        if len(examples):
            self._beta[: self._size, : beta.shape[1]] = self.device.put(beta, self.dtype)
            self.refresh()

    def prune(self) -> None:
        """Patterns without coefficients leave."""
        kept = np.flatnonzero(self._have_coefficients())
        if len(kept) == self._size:
            return
        self.counters.forgotten += self._size - len(kept)
        at, size = self.device.index(kept), len(kept)
        for name in ("_X", "_norms", "_beta", "_F"):
            table = getattr(self, name)
            table[:size] = table[at]
        if self._K is not None:
            self._K[:size, : self._size] = self._K[at, : self._size]
            self._K[:size, :size] = self._K[:size][:, at]
        if self.originals is not None:
            self.originals = [self.patterns(kept)]
        self.ids, self.labels, self.costs = self.ids[kept], self.labels[kept], self.costs[kept]
        self._size, self._constraints = size, None

    def refresh(self) -> None:
        """F from the coefficients, without what rounding has added up to."""
        if not self._size:
            return
        beta = self._used(self._beta)
        with self.device.within(self.plan()):
            scores = (
                self._matrix() @ beta if self._K is not None else self.values.sums(self._rows(), self._rows(), beta)
            )
            self._F[: self._size] = scores

    def tidy(self) -> None:
        """Bring the patterns to where a model tells all of them: none without coefficients, all exactly feasible."""
        if self._size:
            self._beta[: self._size] = self.device.put(self.exact_coefficients(), self.dtype)
            self.prune()
            self.refresh()

    def _share_of_zeros(self) -> float:
        return 1 - self.support_patterns / self._size if self._size else 0.0

    def _bytes_for(self, patterns: int) -> int:
        of_pattern = self.features + 1 + 4 * self.columns
        matrix = patterns if self._keeps_matrix else 0
        return patterns * (of_pattern + matrix) * self.dtype.itemsize

    def _make_room(self, patterns: int) -> None:
        """For so many, and some more; the matrix goes where it would take too much."""
        if patterns <= self._room:
            return
        needed = patterns * (self.features + 1 + 4 * self.columns + self.device.patterns_at_once) * self.dtype.itemsize
        if needed > self.memory_limit:
            raise _core.MemoryLimitError(
                f"memory_limit must be at least {needed} bytes for {patterns} patterns and the kernel values of a "
                f"block of them with all others on device={self.device.name!r}, got {self.memory_limit:.0f}"
            )
        room = max(patterns, int(_GROWTH * self._room))
        size, limit = self.dtype.itemsize, _SHARE_OF_MATRIX * self.memory_limit
        if self._keeps_matrix and (room * room + self._size * self._size) * size > limit:
            room = patterns
        if self._keeps_matrix and (room * room + self._size * self._size) * size > limit:
            self._keeps_matrix, self._K = False, None
            self.device.release()
        shapes = {"_X": (room, self.features), "_norms": (room,), "_beta": (room, self.columns)}
        shapes |= {"_F": (room, self.columns)}
        for name, shape in shapes.items():
            setattr(self, name, self._widened(getattr(self, name), shape))
        if self._keeps_matrix:
            self._K = self._widened(self._K, (room, room), square=True)
        self._room = room

    def _widened(self, table: Array, shape: tuple[int, ...], *, square: bool = False) -> Array:
        wider = self.device.zeros(shape, self.dtype)
        if table is not None and self._size:
            if square:
                wider[: self._size, : self._size] = table[: self._size, : self._size]
            else:
                wider[: self._size] = table[: self._size]
        return wider

    # Block steps.

    def step(self, places: _Index, gradients: int = STEPS, tau: float = 0.0) -> float:
        """A block step on these patterns, of so many gradients or to this tau; what it adds to the dual objective."""
        began = time.perf_counter()
        at = self.device.index(places)
        with self.device.within(self.plan()):
            on = self._limits().at(at)
            columns = self._columns(at)
            K = columns[:, at]
            beta, slopes = self._used(self._beta)[at], on.margins + self._used(self._F)[at]
            d, gain, gradients, _ = ascended(self.device, K, beta, slopes, on, gradients, tau, self._ascent_for(on))
            if gain > 0:
                self._beta[at] = beta + d
                self._F[: self._size] = self._used(self._F) + columns.T @ d
        self.counters.blocks += 1
        self.counters.gradients += gradients
        self.counters.step_seconds += time.perf_counter() - began
        return gain

    def _ascent_for(self, on: Constraints) -> Ascent | None:
        """What is kept for full blocks."""
        if on.margins.shape[0] != self.device.patterns_at_once:
            return None
        if self._ascent is None or not self._ascent.is_for(on):
            self._ascent = Ascent(self.device, on)
            self._ascent.record()
        return self._ascent

    def violations(self) -> NDArray[np.float64]:
        """How far the coefficients of each pattern are from optimal, given those of the others."""
        on, beta = self._limits(), self._used(self._beta)
        slopes = on.margins + self._used(self._F)
        xp, bounds = self.xp, on.costs * (1 - _KAPPA)
        low, high = xp.min(slopes) - 1, xp.max(slopes) + 1
        may_rise = xp.where(on.is_label, (beta < bounds) | on.is_paired, beta < 0)
        may_fall = on.is_label | (beta > -bounds) if on.is_paired else slopes > low
        worst = xp.max(xp.where(may_fall, slopes, low), axis=1)
        least = xp.min(xp.where(may_rise, slopes, high), axis=1)
        return self.device.get(worst - least).astype(np.float64)

    def worst_block(self) -> tuple[_Index, float]:
        """Those who violate optimality most, filled up at random, and the largest violation."""
        began = time.perf_counter()
        violations = self.violations()
        at_once = self.device.patterns_at_once
        if self._size <= at_once:
            chosen = np.arange(self._size)
        else:
            worst = np.argpartition(-violations, at_once // 2)[: at_once // 2]
            is_other = np.ones(self._size, bool)
            is_other[worst] = False
            others = self._random().choice(np.flatnonzero(is_other), at_once - len(worst), replace=False)
            chosen = np.concatenate([worst, others])
        self.counters.selection_seconds += time.perf_counter() - began
        return chosen, float(violations.max())

    def _columns(self, at: Array) -> Array:
        """Kernel values of some patterns with all of them, a row for each."""
        if self._K is not None:
            return self._K[at, : self._size]
        rows = self._rows()
        chosen = rows.at(at)
        self.kernel_values += len(chosen) * len(rows)
        values = self.values.values(chosen, rows)
        values[self.device.index(np.arange(len(chosen))), at] = self.values.diagonal(chosen)
        return values

    def _among(self, rows: Rows) -> Array:
        """Kernel values of new patterns with each other, with an exact diagonal."""
        values = self.values.values(rows, rows)
        values = (values + values.T) / 2
        places = self.device.index(np.arange(len(rows)))
        values[places, places] = self.values.diagonal(rows)
        return values

    # The arrays, as far as they are used.

    def _used(self, table: Array) -> Array:
        return table[: self._size]

    def _rows(self) -> Rows:
        return Rows(self._used(self._X), self._used(self._norms), self._largest_norm)

    def _matrix(self) -> Array:
        return self._K[: self._size, : self._size]

    def _have_coefficients(self) -> NDArray[np.bool_]:
        """Which patterns do; that of the label is the sum of the others, but for rounding."""
        if not self._size:
            return np.zeros(0, bool)
        beta = self._host_beta()
        beta[np.arange(self._size), self.labels] = 0.0
        return np.asarray(beta.any(axis=1))

    def _host_beta(self) -> NDArray[np.float64]:
        return self.device.get(self._used(self._beta)).astype(np.float64)

    def _product(self, left: Array, right: Array) -> float:
        return float(self.xp.sum(self.device.cast(left, np.float64) * self.device.cast(right, np.float64)))

    def _limits(self) -> Constraints:
        """The constraints of all patterns."""
        if self._constraints is None:
            margins = self.margins[self.labels]
            self._constraints = Constraints.of(
                self.device, self.dtype, self.labels, self.costs, margins, self.formulation
            )
        return self._constraints
