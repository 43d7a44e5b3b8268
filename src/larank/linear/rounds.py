"""Rounds over partitions: one linear multiclass SVM, trained on rows that lie in several places.

`Partition` holds some rows and their dual coefficients, and stays where they are; `Rounds` holds W and drives them. It
knows neither threads nor machines: whatever offers the two calls of `Executor` will do.

A round, which is one of CoCoA+ with the Sequential Dual Method as its local solver (docs/linear/sdm.md):

1. `executor.each("visit", W, sigma, passes)`: every partition maximises its own part of the dual from W on, the
   quadratic term counted `sigma` times, for so many passes over its rows. It answers with a `RoundReport`.
2. `executor.total("change")`: D, the sum over partitions of X_p' d_p, where d_p is how its coefficients changed.
3. The dual along the common direction is a concave quadratic of the step s, with its maximum at
       s = (sum of gain_change - <W, D>) / |D|^2,
   clipped to [0, 1], where a + s d is feasible. W becomes W + s D, and `executor.each("take", s)` follows if s < 1.

Full loops, shrunk loops, epsilon, lowered costs, averages of W and moves are those of docs/linear/sdm.md, decided here
for all partitions. `Rounds` is a `Training` for `larank.training.train`: limits, history, progress and the certificate
are those of every solver. A seed and a division into partitions determine the model.

An executor for partitions elsewhere
    makes each `Partition` where its rows are (all get the same `LinearProblem`, and `number` counts from 0), keeps
    them there, and forwards calls by name. Arguments and answers are NumPy arrays, numbers and named tuples; a
    `Partition` can be pickled, with rows and coefficients. W has the shape `(weight_rows, lanes)` of `size()`: rows of
    features, a last one for the constant feature, and classes padded with zeros.
A partition that was lost
    is made anew from its rows with `coefficients=` those it last told (`each("coefficients")`), followed by
    `rounds.rebuild()`, which begins a new phase at the W of the coefficients that there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from larank import _core
from larank.blocks.workers import Workers
from larank.linear.shrinking import best_factor
from larank.training import FromScratch, Objectives, ObjectiveValues

_SMALL = 1 << 16  # values of W that one thread adds up sooner than several
Weights = NDArray[np.floating[Any]]
Coefficients = tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int64]]


@dataclass(frozen=True)
class LinearProblem:
    """What all partitions must agree on."""

    formulation: str
    n_classes: int
    intercept: float  # the value of the constant feature; 0 for none
    shrinking: bool = True


class PartitionSize(NamedTuple):
    """What a partition is made of."""

    rows: int
    rows_that_act: int  # those with a feature and a cost
    stored: int  # values of X
    way: float  # the sum of C_i |x_i|^2
    constant_loss: float  # of rows that do not act
    loss_at_zero: float  # of all rows at W = 0
    weight_rows: int
    lanes: int
    dtype: str
    n_classes: int


class RoundReport(NamedTuple):
    """What a partition did in a round, and what its last full loop saw on the way."""

    visits: int
    gain_change: float  # of the linear part of the dual, if the whole step is taken
    full_loop_is_over: bool
    is_idle: bool  # nothing is left to visit in this phase
    losses: float
    violations: float
    violation: float


class Terms(NamedTuple):
    """The share of a partition in the objectives at a given W, from scratch and at full costs."""

    losses: float
    gain: float  # the linear part of the dual
    violation: float


class Partition:
    """Some rows of the data with their dual coefficients.

    Parameters
    ----------
    X : array in C order or CSR matrix, float32 or float64
        The rows; there may be none.
    labels : array of int32
        Classes, counted from 0. Some may be missing.
    costs, rest_costs : array of float64
        The cost of each row, and that in the problems of the classes that are not its own, for "one-vs-rest".
    problem : LinearProblem
        What is the same for all partitions.
    number : int
        Which of the partitions this is, from 0.
    coefficients : tuple of arrays, optional
        Values, classes and where those of each row begin, to start from; they must be feasible.
    """

    def __init__(
        self,
        X: Any,
        labels: NDArray[np.int32],
        costs: NDArray[np.float64],
        rest_costs: NDArray[np.float64],
        problem: LinearProblem,
        number: int,
        coefficients: Coefficients | None = None,
    ) -> None:
        self._made_from = (X, labels, costs, rest_costs, problem, number)
        arrays: tuple[Any, ...] = (X,)
        if issparse(X):
            arrays = (X.data, X.indices, X.indptr.astype(np.int64, copy=False), X.shape[1])
        session: Callable[..., Any] = _core.sdm_part
        self.session = session(
            *arrays,
            labels,
            costs,
            rest_costs,
            intercept=problem.intercept,
            formulation=problem.formulation,
            classes=problem.n_classes,
            shrinking=problem.shrinking,
        )
        self._W: Weights | None = None  # where the last round began
        self._number = number
        if coefficients is not None:
            self.session.start_from(*coefficients)

    def __reduce__(self) -> tuple[Any, ...]:
        """From its rows and its coefficients; a phase that it is in the middle of is not kept."""
        return Partition, (*self._made_from, self.coefficients())

    def size(self) -> PartitionSize:
        """What it is made of."""
        s, X = self.session, self._made_from[0]
        counts = (X.shape[0], s.rows_that_act, s.stored, s.total_way, s.constant_loss, s.loss_at_zero)
        return PartitionSize(*counts, s.weight_rows, s.lanes, str(X.dtype), self._made_from[4].n_classes)

    def begin_phase(self, seed: int, phase: int, epsilon: float, cooling: float, least: float, momentum: float) -> None:
        """Begin a full loop; shrunk loops follow, with an epsilon of `cooling` times the mean violation, if lower.

        Before that coefficients go on in the direction they took since the last phase began, by the share `momentum` of
        that way, which counts as a change of the next round; below 0 nothing is kept to go on from.
        """
        own = int(np.random.SeedSequence((seed, phase, self._number)).generate_state(1, np.uint64)[0])
        self.session.begin_phase(own, epsilon, cooling, least, momentum)

    def visit(self, W: Weights, sigma: float, passes: float) -> RoundReport:
        """A round from W on: go on with the phase for so many passes over the rows, or such a part of one."""
        return self.visit_rows(W, sigma, math.ceil(passes * self.session.rows_that_act))

    def visit_rows(self, W: Weights, sigma: float, visits: int) -> RoundReport:
        """The same for so many visits."""
        done = self.session.visit(W, sigma, visits)
        self._W = W
        return self._report(done)

    def began_at(self) -> Weights:
        """Where the last round began."""
        assert self._W is not None
        return self._W

    def change(self) -> Weights:
        """X' d for the change d of the coefficients in the last round; the array it began at must be as it was."""
        W = self.began_at()
        D = np.empty_like(W)
        _core.sum_changes([self.session], W, D, 0, len(D))
        return D

    def take(self, step: float) -> None:
        """Keep this share of the last change of the coefficients, 0 to 1."""
        self.session.take(step)

    def scale_costs(self, share: float) -> None:
        """Lower costs to this share of their full value, and coefficients with them."""
        self.session.scale_costs(share)

    def weights(self) -> NDArray[np.float64]:
        """X' a, summed up from the coefficients."""
        W = np.zeros((self.session.weight_rows, self.session.lanes))
        self.session.add_weights(W)
        return W

    def terms(self, W: Weights) -> Terms:
        """The share in the certificate at W."""
        at = self.session.terms(W)
        return Terms(at.losses, at.gain, at.violation)

    def shrunk_losses(self, W: Weights) -> NDArray[np.float64]:
        """Return the losses of all rows at W times the first powers of 1/16."""
        return np.array(self.session.shrunk_losses(W))

    def coefficients(self) -> Coefficients:
        """Values, classes and where those of each row begin."""
        values, classes, starts = self.session.coefficients()
        return values, classes, starts

    def counters(self) -> dict[str, int]:
        """Steps and loops so far."""
        names = ("visits", "steps", "full_loops", "shrunk_loops", "moves")
        return {name: getattr(self.session.counters, name) for name in names}

    def _report(self, done: Any) -> RoundReport:
        loop = self.session.loop
        seen = (loop.losses, loop.violations, loop.violation)
        return RoundReport(done.visits, done.gain_change, done.full_loop_is_over, done.is_idle, *seen)


class Executor(Protocol):
    """Calls the methods of partitions, wherever they are."""

    def each(self, call: str, *arguments: Any) -> list[Any]:
        """Call this method of every partition with the same arguments; the answers, in the order of partitions."""

    def total(self, call: str) -> NDArray[Any]:
        """The sum of the arrays that this method of all partitions returns; the next call may overwrite it."""


class LocalExecutor:
    """Partitions in this process, worked on by one thread or several; `entered` keeps the threads."""

    def __init__(self, partitions: Sequence[Partition], n_jobs: int | None = 1) -> None:
        self.partitions = list(partitions)
        self._workers = Workers(n_jobs)
        self._D: NDArray[Any] | None = None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Keep the threads for the calls within."""
        with self._workers.entered():
            yield

    def each(self, call: str, *arguments: Any) -> list[Any]:
        """Partition by partition, each in some thread."""
        answers: list[Any] = [None] * len(self.partitions)

        def answer(number: int) -> None:
            answers[number] = getattr(self.partitions[number], call)(*arguments)

        if self._workers.count == 1:
            for number in range(len(answers)):
                answer(number)
        else:
            self._workers.run(answer, range(len(answers)))
        return answers

    def total(self, call: str) -> NDArray[Any]:
        """In the order of partitions, so that it is always rounded alike."""
        if call == "change":
            return self._total_change()
        total: NDArray[Any] = getattr(self.partitions[0], call)()
        for partition in self.partitions[1:]:
            total += getattr(partition, call)()
        return total

    def _total_change(self) -> NDArray[Any]:
        """Without an array for each partition, the rows of W divided among the threads."""
        W = self.partitions[0].began_at()
        if self._D is None or self._D.shape != W.shape:
            self._D = np.empty_like(W)
        D, sessions, count = self._D, [partition.session for partition in self.partitions], self._workers.count

        def add_up(part: int) -> None:
            _core.sum_changes(sessions, W, D, len(D) * part // count, len(D) * (part + 1) // count)

        if count == 1 or D.size < _SMALL:
            _core.sum_changes(sessions, W, D, 0, len(D))
        else:
            self._workers.run(add_up, range(count))
        return D


class Rounds:
    """The driver: W of all partitions, and what they do next.

    Parameters
    ----------
    executor : Executor
        Where the partitions are.
    seed : int
        Of the order of visits.
    cooling : bool
        Whether to begin with loose tolerances and, where C |x|^2 is large, low costs.
    epsilon : float
        The largest violation to stop at; 0 where the gap decides.
    passes_per_round : float
        The local work. From 1 on: passes over its rows that a partition makes in one round, where rounds are dear;
        coefficients then move on in every round, at once where W is large beside the data, and the mean of the last
        two W is a candidate for the model. Below 1: the share of a pass, where rounds are cheap and there are
        many to a loop.
    is_warm : bool
        Whether partitions came with coefficients to go on from; costs are not lowered at first, then.
    target : float
        The relative gap that training will stop at. It is known after full loops only, so close to it they come soon.
    """

    _LEAST_STEP = 0.1
    _NEAR = 3.0  # times the target
    RAMP_FACTOR, RAMP_GAP, RAMP_PATIENCE = 3.2, 0.2, 4  # as in core/linear/sdm.hpp

    def __init__(
        self,
        executor: Executor,
        *,
        seed: int,
        cooling: bool = True,
        epsilon: float = 0.0,
        passes_per_round: float = 1.0,
        is_warm: bool = False,
        target: float = 0.0,
    ) -> None:
        self._target, self._is_near = target, False
        self._executor, self._seed, self._cooling, self._least = executor, seed, cooling, epsilon
        self.passes_per_round = passes_per_round
        sizes: list[PartitionSize] = executor.each("size")
        shapes = {(size.weight_rows, size.lanes, size.dtype) for size in sizes}
        if len(shapes) != 1:
            raise ValueError(f"partitions must have as many features and the same precision, got {sorted(shapes)}")
        first = sizes[0]
        self.n_partitions, self.rows = len(sizes), sum(size.rows for size in sizes)
        self._acting = max(1, sum(size.rows_that_act for size in sizes))
        self._constant_loss = sum(size.constant_loss for size in sizes)
        self._loss_at_zero, self._n_classes = sum(size.loss_at_zero for size in sizes), first.n_classes
        self.W: Weights = np.zeros((first.weight_rows, first.lanes), first.dtype)
        keeps_average = self.W.size <= sum(size.stored for size in sizes) // 8
        self._is_long = passes_per_round >= 1
        self._average: Weights | None = np.zeros_like(self.W) if keeps_average or self._is_long else None
        self._average_weight = 0.0
        self._model: Weights | None = None  # what the last evaluation found, if nothing has changed since
        self._gain = self._square = 0.0  # the linear part of the dual, |W|^2
        self._most_sigma = float(max(1, sum(size.rows_that_act > 0 for size in sizes)))
        self.sigma = max(1.0, self._most_sigma / 2) if self._is_long else 1.0
        mean_way = sum(size.way for size in sizes) / self._acting
        self._ramp = min(0.01, 1 / mean_way) if cooling and mean_way > 2 and not is_warm else 1.0
        self._cooling_rate = 0.1 if self._ramp < 1 else 1.0
        self._epsilon = max(1.0, epsilon) if cooling else epsilon
        if self._ramp < 1:
            executor.each("scale_costs", self._ramp)
        self.rounds = self.visits = self.phases = self.moves = 0
        self._in_phase = False
        self._full_loop_is_over = False
        self._shrunk_visits = self._ramp_loops = 0
        self._patience = 15
        if self._is_long:  # on text moves halve the rounds, elsewhere they lead astray at first
            self._patience = 30 if keeps_average else 0
        self._moves_in_row = 0
        self._before = self.W
        self._start: Weights | None = None  # where the next round begins, if not at W
        self._estimate: Objectives | None = None
        if is_warm:
            self.rebuild()

    # What the training loop calls.

    def advance(self) -> bool:
        """One round; True once a full loop met no violation of `epsilon` or more."""
        if not self._in_phase:
            self._begin_phase()
        self._model = None
        start, self._start = self.W if self._start is None else self._start, None
        reports: list[RoundReport] = self._executor.each("visit", start, self.sigma, self.passes_per_round)
        visits = sum(report.visits for report in reports)
        self.rounds += 1
        self.visits += visits
        self._add_change(sum(report.gain_change for report in reports))
        converged = False
        was_shrunk = self._full_loop_is_over
        if not was_shrunk and all(report.full_loop_is_over for report in reports):
            converged = self._end_full_loop(reports)
            visits = max(0, visits - self._acting) if self._is_long else 0
        if self._full_loop_is_over and self._in_phase:
            self._go_on_shrunk(visits, is_first=not was_shrunk, is_idle=all(report.is_idle for report in reports))
        return converged

    def estimate(self) -> Objectives | None:
        """The exact dual of all coefficients, and losses as the last full loop saw them."""
        found, self._estimate = self._estimate, None
        return found

    def evaluate(self) -> FromScratch:
        """W from the coefficients, then the terms of all partitions there, and at the average of W."""
        yield
        self._set_weights()
        yield
        model = as_published(self.W, self._n_classes)
        losses, gain, violation = self._terms(model)
        primal, dual = losses + 0.5 * square(model), gain - 0.5 * self._square
        self._gain = gain - self._constant_loss
        if self._average is not None and self._average_weight > 0:
            yield
            average = as_published(self._average, self._n_classes)
            of_average = self._terms(average)[0] + 0.5 * square(average)
            if of_average < primal:
                model, primal = average, of_average
        if primal > self._loss_at_zero:
            yield
            model, primal = shrunk(model, sum(self._executor.each("shrunk_losses", model)), self._loss_at_zero)
        self._model = model
        return ObjectiveValues(primal, dual, violation)

    def iterations(self) -> float:
        """Passes over the data."""
        return self.visits / max(1, self.rows)

    def details(self) -> Mapping[str, Any]:
        """Nothing beside the objectives."""
        return {}

    # What the caller takes in the end.

    def weights(self) -> Weights:
        """The model as it is published, a column per lane; the best that the last evaluation found."""
        return as_published(self.W, self._n_classes) if self._model is None else self._model

    def rebuild(self) -> None:
        """Take W from the coefficients that there are now, and begin a new phase."""
        self._set_weights()
        self._gain = self._terms(self.W)[1] - self._constant_loss
        self._in_phase = False
        self._moves_in_row = 0

    # Phases.

    def _begin_phase(self) -> None:
        """With Nesterov's extrapolation from phase to phase, where it is due; the step decides whether it is good."""
        self.phases += 1
        if self.W.dtype == np.float32 and self.phases % 10 == 0:
            self._set_weights()  # rounding adds up
        cooling = self._cooling_rate if self._cooling else math.inf
        least = self._least if self._cooling else self._epsilon
        momentum = -1.0
        if self._is_slow():
            momentum = self._moves_in_row / (self._moves_in_row + (2 if self._is_long else 3))
            self.moves += momentum > 0
            self._start = self.W + self.W.dtype.type(momentum) * (self.W - self._before)
            self._before = self.W.copy()
            self._moves_in_row += 1
        self._executor.each("begin_phase", self._seed, self.phases, self._epsilon, cooling, least, momentum)
        self._in_phase, self._full_loop_is_over, self._shrunk_visits = True, False, 0

    def _end_full_loop(self, reports: Sequence[RoundReport]) -> bool:
        """Note what it saw, cool, and raise costs where it is time; True once the violation stop holds."""
        self._full_loop_is_over = True
        self._ramp_loops += 1
        constant, half = self._ramp * self._constant_loss, 0.5 * self._square
        losses, violation = sum(r.losses for r in reports), max(r.violation for r in reports)
        at = ObjectiveValues(half + losses + constant, self._gain - half + constant, violation)
        if self._cooling:
            mean = sum(r.violations for r in reports) / self._acting
            self._epsilon = max(self._least, min(self._epsilon, self._cooling_rate * mean))
        if self._ramp == 1.0:
            self._estimate = at
            self._is_near = at.primal - at.dual < self._NEAR * self._target * at.primal
            return violation < self._least
        if at.primal - at.dual < self.RAMP_GAP * at.primal or self._ramp_loops >= self.RAMP_PATIENCE:
            self._raise_costs()
        return False

    def _go_on_shrunk(self, visits: int, *, is_first: bool, is_idle: bool) -> None:
        """Average W over the shrunk loops, and end the phase when they are over."""
        self._shrunk_visits += visits
        if self._average is not None and not self._is_long and not is_first and self._ramp == 1.0:
            if self._shrunk_visits == visits:
                kept = 5.0 * self._acting if self._is_slow() else 0.0
                self._average_weight = min(self._average_weight, kept)
            self._average_weight += max(visits, 1)
            self._average += (max(visits, 1) / self._average_weight) * (self.W - self._average)
        passes = 2 if self._is_near or self._is_slow() else 5
        is_used_up = self._shrunk_visits > passes * self._acting
        if is_used_up or is_idle:
            self._in_phase = False
            if self._ramp == 1.0:
                self._patience = max(0, self._patience - (5 if is_used_up else 1))

    def _raise_costs(self) -> None:
        old = self._ramp
        self._ramp = old * self.RAMP_FACTOR if old * self.RAMP_FACTOR < 0.99 else 1.0
        self._executor.each("scale_costs", self._ramp)
        factor = self._ramp / old
        self.W *= self.W.dtype.type(factor)
        self._gain, self._square = self._gain * factor, self._square * factor**2
        self._ramp_loops, self._epsilon = 0, max(1.0, self._least)
        self._in_phase = False
        self._moves_in_row = 0  # the last phase had other costs

    def _is_slow(self) -> bool:
        """After three phases that used up their visits, or fifteen that did not."""
        return self._cooling and self._patience <= 0

    # W.

    def _add_change(self, gain_change: float) -> None:
        """The step along the common direction that is best for the dual."""
        D = self._executor.total("change")
        product, square = _products(self.W, D)
        if square == 0:  # changes that cancel each other cost nothing
            self._gain += gain_change
            return
        best = (gain_change - product) / square
        rounding = 4 * np.finfo(D.dtype).eps * math.sqrt(max(0.0, self._square) * square) + 1e-15 * abs(self._gain)
        if rounding > 0.1 * square:
            step = self.sigma / self._most_sigma  # safe without a look: all of it, or the mean of what each would do
        else:
            step = min(1.0, max(0.0, best))
            self._adapt(best)
        if best < self._LEAST_STEP:
            self._moves_in_row = 0  # momentum has led astray
        if step < 1:
            self._executor.each("take", step)
        if self._average is not None and self._is_long:
            np.add(self.W, self.W.dtype.type(step / 2) * D, out=self._average)  # W swings from round to round
            self._average_weight = 1.0
        self.W += self.W.dtype.type(step) * D
        self._gain += step * gain_change
        self._square += step * (2 * product + step * square)

    def _adapt(self, best: float) -> None:
        """Partitions that agree need sigma near their number, those that do not meet sigma = 1: the step tells."""
        factor = min(2.0, max(0.5, best)) ** 0.3
        self.sigma = min(self._most_sigma, max(1.0, self.sigma / factor))

    def _set_weights(self) -> None:
        W = self._executor.total("weights")
        self._square = float(np.vdot(W, W))
        self.W[:] = W

    def _terms(self, W: Weights) -> Terms:
        """Return what all partitions have in the objectives at W together."""
        terms: list[Terms] = self._executor.each("terms", W)
        losses, gain = sum(term.losses for term in terms), sum(term.gain for term in terms)
        return Terms(losses, gain, max(term.violation for term in terms))


def as_published(W: Weights, n_classes: int) -> Weights:
    """Return the weights that a model publishes: two classes have one function, which is rounded as one."""
    if n_classes != 2:
        return W
    paired = W.copy()
    paired[:, 1] = (W[:, 1].astype(np.float64) - W[:, 0]) / 2
    paired[:, 0] = -paired[:, 1]
    return paired


def shrunk(W: Weights, losses: NDArray[np.float64], loss_at_zero: float) -> tuple[Weights, float]:
    """Return a W that is worse than W = 0 times a factor, and its primal objective; see `best_factor`."""
    factor, primal = best_factor(0.5 * square(W), losses, loss_at_zero)
    return W * W.dtype.type(factor), primal


def square(W: Weights) -> float:
    """Return |W|^2, summed up in double precision."""
    return float(np.einsum("ij,ij->", W, W, dtype=np.float64))


def _products(W: Weights, D: Weights) -> tuple[float, float]:
    """<W, D> and |D|^2, summed up in double precision."""
    product = np.einsum("ij,ij->", W, D, dtype=np.float64)
    return float(product), square(D)


def partitions_of(
    X: Any,
    labels: NDArray[np.int32],
    costs: NDArray[np.float64],
    rest_costs: NDArray[np.float64],
    problem: LinearProblem,
    count: int,
    coefficients: Coefficients | None = None,
) -> list[Partition]:
    """Rows in memory, cut into so many partitions of one size; those of an array stay where they are."""
    parts: list[Partition] = []
    cuts = [X.shape[0] * number // count for number in range(count + 1)]
    for number, (first, last) in enumerate(pairwise(cuts)):
        own = None
        if coefficients is not None:
            values, classes, starts = coefficients
            stored = slice(starts[first], starts[last])
            own = values[stored], classes[stored], starts[first : last + 1] - starts[first]
        rows = slice(first, last)
        parts.append(Partition(X[rows], labels[rows], costs[rows], rest_costs[rows], problem, number, own))
    return parts


def dual_coefficients(parts: Sequence[Coefficients], n_classes: int) -> csr_matrix:
    """The coefficients of partitions in their order, a row per example."""
    values, classes = (np.concatenate([part[n] for part in parts]) for n in (0, 1))
    counts = np.concatenate([np.diff(part[2]) for part in parts])
    starts = np.concatenate([[0], np.cumsum(counts)])
    return csr_matrix((values, classes, starts), shape=(len(counts), n_classes))
