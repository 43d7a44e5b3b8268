"""Stochastic gradient descent as the training loop sees it: a search for the first step, then pass after pass."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larank.linear.gradientmachine import (
    GradientMachine,
    GradientProblem,
    LabelledRows,
    Start,
    precision_of_weights,
    visits_per_regularisation,
)
from larank.linear.gradientstart import StartSearch, sample_size
from larank.training import FromScratch, ObjectiveValues

_WORK = 50_000_000  # multiply-adds between two looks at the limits: some tens of milliseconds
_VISITS_BETWEEN_ESTIMATES = 200_000


class Part(NamedTuple):
    """Some examples of a pass, the number of labels known by now, and how much of the pass is over after them."""

    rows: LabelledRows
    n_labels: int
    share: float | None


@dataclass(frozen=True)
class Plan:
    """What a training is to do.

    `parts` begins a pass over the data; None in it says that the next part has not come yet. Its argument is a function
    that returns whether the stream is cut: the pass then ends with the examples that have arrived. Without `t0` it is
    searched for; `weights` are those to begin with. `certify` asks for a lower bound, and `held` are all examples, if
    they are in memory. `error` returns the fraction of held-out examples that are misclassified, and training ends when
    it has not fallen for `patience` passes.
    """

    problem: GradientProblem
    parts: Callable[[Callable[[], bool]], Generator[Part | None]]
    epochs: int
    shuffled: bool
    seed: int
    certify: bool
    t0: float | None = None
    weights: NDArray[Any] | None = None
    held: LabelledRows | None = None
    error: Callable[[GradientMachine], float] | None = None
    patience: float = math.inf


class GradientTraining:
    """The passes of a plan, a little at a time; `machine` is what has come out so far."""

    def __init__(self, plan: Plan, machine: GradientMachine | None = None) -> None:
        self.plan = plan
        self.machine = machine
        self.seconds = {"search": 0.0, "reading": 0.0}
        self.search_visits = 0
        self._epoch = 0
        self._share = 0.0  # of this pass that is over
        self._is_over = self._is_between_passes = self._is_cut = False
        self._bounds = False  # whether derivatives are summed up for one
        self._dual = 0.0  # the best lower bound so far, which no loss is below
        self._seen_before = (0.0, 0) if machine is None else self._seen(machine)  # of this pass
        self._estimated_at = -_VISITS_BETWEEN_ESTIMATES  # the first as soon as there is one
        self._error: float | None = None
        self._lowest_error, self._passes_since = math.inf, 0
        self._end_search: Callable[[], None] | None = None
        self._work = self._passes()

    def close(self) -> None:
        """End what the source of the examples has begun."""
        self._work.close()

    @property
    def has_examples(self) -> bool:
        """Whether any has come, in this training or before."""
        return self.machine is not None or self._end_search is not None

    def settle(self) -> GradientMachine:
        """The machine, also where training has ended before the search for its first step has; it needs examples."""
        if self.machine is None:
            assert self._end_search is not None
            self._end_search()
        assert self.machine is not None
        return self.machine

    # ---- What the loop calls ----

    def cut(self) -> bool:
        """End the stream with what has arrived; True if nothing was learned so far: there is a moment for the first."""
        self._is_cut = True
        return self.machine is None and self.plan.held is None

    def advance(self) -> bool:
        """Work for some tens of milliseconds; True once all passes are made."""
        return next(self._work)

    def estimate(self) -> ObjectiveValues | None:
        """The objective by the losses of this pass, each as it was when its example came."""
        if self.machine is None:
            return None
        visits = self.machine.session.counters.visits
        if visits < self._estimated_at + _VISITS_BETWEEN_ESTIMATES and not self._is_between_passes:
            return None
        is_old = visits == self._estimated_at and self._error is None and not self._is_over
        if is_old or not self._of_this_pass()[1]:
            return None
        self._estimated_at = visits
        return self._estimate()

    def evaluate(self) -> FromScratch:
        """The objective from scratch, and a lower bound from the derivatives of the losses there."""
        machine = self.settle()
        if self.plan.held is None:
            return self._estimate()
        at = yield from machine.objectives_of_model(self.plan.held, with_dual=True)
        self._dual = max(self._dual, at.dual)
        return ObjectiveValues(max(at.primal, self._dual), self._dual, at.violation)

    def look(self) -> FromScratch:
        """The objective from scratch, with the lower bound there is."""
        assert self.machine is not None
        assert self.plan.held is not None
        self._estimated_at = self.machine.session.counters.visits
        primal = (yield from self.machine.objectives_of_model(self.plan.held, with_dual=False)).primal
        return ObjectiveValues(max(primal, self._dual), self._dual, math.nan)

    def iterations(self) -> float:
        """Passes over the data so far."""
        return self._epoch + self._share

    def details(self) -> Mapping[str, Any]:
        """Further fields of a point of the history."""
        _, visits = self._of_this_pass()
        error, self._error = self._error, None
        if self.machine is None or not visits:
            return {"error": error}
        return {"error": error, "online_error": self.machine.session.counters.errors / self._seen(self.machine)[1]}

    # ---- The work ----

    def _passes(self) -> Generator[bool, None, None]:
        while not self._is_over:
            if self.machine is not None:
                self._begin_bound_if_due()
            yield from self._pass()
            if self._is_cut:
                yield True
                return
            if self.machine is None:
                raise ValueError("X must hold at least one example, got a stream without any")
            self._epoch += 1
            self._share = 0.0
            self._validate()
            self._is_over = self._epoch >= self.plan.epochs or self._passes_since >= self.plan.patience
            if self._is_over and self._bounds:
                self._dual = max(self._dual, self.machine.session.bound())
            self._is_between_passes = True
            yield self._is_over
            self._is_between_passes = False
            self._seen_before = self._seen(self.machine)

    def _pass(self) -> Generator[bool, None, None]:
        with closing(self.plan.parts(lambda: self._is_cut)) as parts:
            for part in self._timed(parts):
                if part is None:
                    yield False
                    continue
                if self.machine is None or self.machine.n_labels < 2 <= part.n_labels:  # one class teaches nothing
                    yield from self._begin(part)
                yield from self._visit(part)
                if part.share != 1:  # the end of a pass has a look at the limits of its own
                    yield False

    def _timed(self, parts: Iterator[Part | None]) -> Iterator[Part | None]:
        """The parts, and how long they were waited for."""
        began = time.perf_counter()
        for part in parts:
            self.seconds["reading"] += time.perf_counter() - began
            yield part
            began = time.perf_counter()
        self.seconds["reading"] += time.perf_counter() - began

    def _visit(self, part: Part) -> Generator[bool, None, None]:
        assert self.machine is not None
        if self.machine.grow(part.rows.X.shape[1], part.n_labels) and self._bounds:
            self.machine.session.begin_bound()  # again: that of the examples from here on
        self.machine.feed(part.rows, shuffled=self.plan.shuffled)
        share_before, visits_before = self._share, self.machine.session.counters.visits
        is_done = False
        while not is_done:
            is_done = self.machine.session.run(_WORK)
            if part.share is not None:
                done = (self.machine.session.counters.visits - visits_before) / len(part.rows)
                self._share = share_before + done * (part.share - share_before)
            if not is_done:
                yield False

    def _begin(self, part: Part) -> Generator[bool, None, None]:
        """Make the machine; a search for its first step may come before."""
        plan, rows = self.plan, part.rows
        start = None
        if plan.t0 is not None:
            start = Start(plan.t0, visits_per_regularisation(rows.X, plan.problem.algorithm))
        began = time.perf_counter()
        if start is None:
            search = StartSearch(plan.problem, self._sample(rows), part.n_labels, plan.weights, plan.seed)
            self._end_search = partial(self._use, search, part)
            for _ in search.trials():
                self.seconds["search"] = time.perf_counter() - began
                self.search_visits = search.visits
                yield False
            self._end_search()
        else:
            self.machine = self._fresh(part, start)
        self._begin_bound_if_due()

    def _use(self, search: StartSearch, part: Part) -> None:
        self.machine = self._fresh(part, search.start(part.rows.X.shape[1]))

    def _begin_bound_if_due(self) -> None:
        """The lower bound is that of the derivatives in the second half of the passes, at better weights."""
        assert self.machine is not None
        if self.plan.certify and self._epoch == self.plan.epochs // 2:
            self._bounds = True
            self.machine.session.begin_bound()

    def _fresh(self, part: Part, start: Start) -> GradientMachine:
        X, plan = part.rows.X, self.plan
        dtype = precision_of_weights(X, part.n_labels)
        machine = GradientMachine(plan.problem, dtype, X.shape[1], part.n_labels, start, plan.seed)
        if plan.weights is not None:
            machine.start_from(plan.weights)
        return machine

    def _sample(self, rows: LabelledRows) -> LabelledRows:
        size = sample_size(len(rows))
        if size == len(rows):
            return rows
        return rows.at(np.sort(np.random.RandomState(self.plan.seed).permutation(len(rows))[:size]))

    def _validate(self) -> None:
        if self.plan.error is None or self.machine is None:
            return
        self._error = self.plan.error(self.machine)
        self._passes_since += 1
        if self._error < self._lowest_error:
            self._lowest_error, self._passes_since = self._error, 0

    # ---- What was seen on the way ----

    @staticmethod
    def _seen(machine: GradientMachine) -> tuple[float, int]:
        counters = machine.session.counters
        return counters.loss, counters.visits

    def _of_this_pass(self) -> tuple[float, int]:
        """Losses and visits."""
        if self.machine is None:
            return 0.0, 0
        loss, visits = self._seen(self.machine)
        return loss - self._seen_before[0], visits - self._seen_before[1]

    def _estimate(self) -> ObjectiveValues:
        machine = self.settle()
        loss, visits = self._of_this_pass()
        norm = self.plan.problem.alpha / 2 * machine.session.squared_norm
        primal = norm + loss / visits if visits else math.nan
        return ObjectiveValues(max(primal, self._dual), self._dual, math.nan)
