"""The primal multiclass SVM as the training loop sees it: a descent, the best biases, and the certificate.

With the gradient 0 in the biases, the objective P being 1-strongly convex in W gives
  P - P* <= 1/2 |gradient in W|^2.
It is the Fenchel gap, too. The dual point is the gradient G of the losses. By Fenchel and Young the losses and their
conjugates at G add up to <G, scores>, which leaves 1/2 |W|^2 + 1/2 |X'G L|^2 + <X'G L, W> = 1/2 |W + X'G L|^2. For the
maximum, G comes from weights pi of the wrong classes that sum up to 1, and the gap is larger by
sum_i c_i (max_u t_u - sum_u pi_u t_u).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from itertools import count, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.linear.biasbound import BiasBound
from larank.linear.descent import SOLVERS, Descent, newton
from larank.linear.primalobjective import Iterate, PrimalExamples, PrimalObjective, Table
from larank.linear.shrinking import ROUNDING
from larank.training import FromScratch, Objectives, completed
from larank.training.loop import ObjectiveValues

_BIAS_PRECISION = 1e-3  # of the gap to stop at: what may be left of the gradient in the biases
_LEAST_BIAS_PRECISION = 1e-13  # of the costs
_MOST_HIDDEN = 0.1  # of the gap to stop at: what the gradient in the biases may hide
_BIAS_PASSES = 200  # at most, over the scores
_VALUES_AT_ONCE = 1 << 17  # values of X that are converted to double precision together
_GROWTH, _LARGEST_SOFTMAX_GAMMA = 4.0, 1e12  # of the smooth functions that stand for the maximum
_SHRINKAGE, _ROUGHLY = 0.25, 0.05  # of the widths of smoother hinges, and how well they are minimised, relatively


class PrimalTraining:
    """A descent on the objective, from zero or from the weights of another model."""

    def __init__(
        self,
        objective: PrimalObjective,
        solver: str,
        tol: float,
        random: np.random.RandomState,
        start: NDArray[Any] | None,
    ) -> None:
        self._objective, self._tol = objective, tol
        self.is_convex = objective.loss.is_convex(objective.examples.n_classes)
        self.has_stalled = False
        self._at: Iterate | None = None
        self._is_new = False
        self._better: Iterate | None = None
        self._table = self._first_table(start)
        self._smoothing = objective.smoothing
        self._descent = self._descend(solver, random)

    def _first_table(self, start: NDArray[Any] | None) -> Table:
        table = self._objective.zeros()
        if start is not None:
            U = start.astype(np.float64)
            if self._objective.label_kernel is not None:  # V = U K
                U[:-1] = U[:-1] @ np.linalg.pinv(self._objective.label_kernel, hermitian=True)
            table[:, : U.shape[1]] = U
        return table

    def _descend(self, solver: str, random: np.random.RandomState) -> Descent:
        """The descent; before it, some on smoother hinges, and for the maximum a row of ever less smooth ones."""
        objective, minimise = self._objective, SOLVERS[solver]
        wanted, softmax_gamma = objective.smoothing, objective.softmax_gamma
        for smoothing in _smoother_hinges(objective):
            objective.smooth(softmax_gamma, smoothing)
            for found in minimise(objective, objective.evaluate(self._table), random):
                if found is not None:
                    self._table = found.table  # the one before was given back, so training must not end with it
                yield None  # this is another objective than that which was asked for
                if found is not None and found.bound <= _ROUGHLY * found.value:
                    break
        while True:
            objective.smooth(softmax_gamma, wanted)
            at = objective.evaluate(self._table)
            at = (yield at) or at
            at = yield from _until_smoothing_tells(minimise(objective, at, random), at)
            if not objective.is_smoothed or softmax_gamma > _LARGEST_SOFTMAX_GAMMA or at.hidden > at.slack:
                return  # rounding grows with softmax_gamma, and with it what the gradient in the biases may hide
            self._table, softmax_gamma = at.table, _GROWTH * softmax_gamma

    def advance(self) -> bool:
        """One pass over the data."""
        try:
            found = self._descent.send(self._better if self._at is not None else None)
        except StopIteration:
            self.has_stalled = True
            return True
        self._better = None
        if found is None:
            return False
        self._at, self._is_new = found, True
        return not self.is_convex and found.bound <= self._tol * found.primal and self._is_stationary()

    def _is_stationary(self) -> bool:
        completed(self.evaluate())
        return self.gap_is_closed(self._tol)

    def gap_is_closed(self, tol: float) -> bool:
        """Whether the bound is small enough."""
        assert self._at is not None
        return self._at.gap <= tol * self._at.primal

    def estimate(self) -> Objectives | None:
        """At a new iterate; the gradient in its biases is taken to be 0."""
        if not self._is_new:
            return None
        self._is_new = False
        assert self._at is not None
        return self._objectives(self._at)

    def evaluate(self) -> FromScratch:
        """With the best biases, from which the descent goes on."""
        if self._at is None:
            self._objective.smooth(self._objective.softmax_gamma, self._smoothing)
            self._at = self._objective.evaluate(self._table)
        with self._objective.timed("biases"):
            found = yield from with_best_biases(self._objective, self._at, self._tol)
        self._at = self._better = found
        if found.primal > self._primal_at_zero() * (1 + ROUNDING):
            # The bound holds for any model. The descent goes on from where it was.
            zero = self._objective.evaluate(self._objective.zeros())
            self._at = replace(zero, bound=zero.primal - (found.primal - found.gap), slack=0.0)
            self._better = self._objective.evaluate(found.table)
        return self._objectives(self._at)

    def _primal_at_zero(self) -> float:
        """Return the objective of w = 0 without biases, which a descent on smoother losses may end above."""
        objective = self._objective
        labels, n_classes = objective.examples.labels[:1], objective.examples.n_classes
        example = PrimalExamples(np.zeros((1, 0)), labels, np.ones(1), n_classes)
        one = PrimalObjective(example, objective.loss, None, fit_intercept=True, workers=objective.workers)
        one.smooth(objective.softmax_gamma, objective.smoothing)
        return float(objective.examples.costs.sum()) * one.evaluate(one.zeros()).primal

    def _objectives(self, at: Iterate) -> ObjectiveValues:
        dual = max(0.0, at.primal - at.gap) if self.is_convex else np.nan
        gradient = self._objective.weights(at.gradient)  # without what stands for nothing where K is singular
        return ObjectiveValues(at.primal, dual, float(max(gradient.max(), -gradient.min())))

    def iterations(self) -> float:
        """Passes over the data."""
        return float(self._objective.evaluations + self._objective.products)

    def details(self) -> Mapping[str, Any]:
        """Nothing more."""
        return {}

    def weights(self) -> NDArray[Any]:
        """A column per class, and the biases in the last row."""
        V: NDArray[Any] = self._objective.weights(self._last_table)[:, : self._objective.examples.n_classes].copy()
        return V

    @property
    def _last_table(self) -> Table:
        return self._table if self._at is None else self._at.table

    def published(self, at: Objectives, W: NDArray[Any], biases: NDArray[Any]) -> Objectives:
        """Return the objectives of a model that is published with these weights and biases, a row per class.

        Passes over data in single precision round scores; here they are computed in double precision.
        """
        if self._last_table.dtype == np.float64:
            return at
        losses = _of_biases(self._objective, _scores(self._objective.examples.X, W, biases))
        primal = self._objective.half_squared_norm(self._last_table) + losses.evaluate(losses.zeros()).primal
        return ObjectiveValues(primal, min(at.dual, primal), at.violation)


def _smoother_hinges(objective: PrimalObjective) -> list[float]:
    """From a width of 1 to that which is wanted: where a hinge is straight, it does not say how far to go."""
    steps = count() if objective.loss.margin == "smoothed_hinge" else ()
    return list(takewhile(lambda width: width > 2 * objective.smoothing, (_SHRINKAGE**step for step in steps)))


def _until_smoothing_tells(descent: Descent, at: Iterate) -> Generator[Iterate | None, Iterate | None, Iterate]:
    """The descent, until the smooth function is farther from the maximum than from its own minimum."""
    better: Iterate | None = None
    while True:
        try:
            found = descent.send(better)
        except StopIteration:
            return at
        better = yield found
        if found is not None:
            at = better or found
            if at.bound <= at.slack / 4:
                return at


def with_best_biases(objective: PrimalObjective, at: Iterate, tol: float) -> Generator[None, None, Iterate]:
    """The iterate with the biases that are best for its weights, and what the rest of their gradient may hide.

    They are those of the same problem without features, whose scores begin where the weights leave them.
    """
    examples = objective.examples
    if not objective.fit_intercept:
        return at
    if objective.latest is not at:
        at = objective.evaluate(at.table)
    scores = objective.scores()
    reach = BiasBound(objective, at.primal, scores)
    wanted = _BIAS_PRECISION * tol * at.primal
    rounding = _LEAST_BIAS_PRECISION * float(examples.costs.sum())

    def is_enough(gradient: Table, moves: Table) -> bool:
        largest = float(np.abs(gradient).max())
        return largest <= rounding or (
            largest <= wanted and reach.hidden(gradient, moves, at.bound + at.slack) <= _MOST_HIDDEN * tol * at.primal
        )

    k = examples.n_classes
    moves = np.zeros(k)
    if not is_enough(at.gradient[-1, :k], moves):
        biases = _of_biases(objective, scores)
        best = biases.evaluate(biases.zeros())
        for number, found in enumerate(newton(biases, best, np.random.RandomState(0))):
            yield
            best = found or best  # values of the last steps differ by rounding, and the tables before are used again
            if is_enough(best.gradient[-1, :k], best.table[-1, :k]) or number > _BIAS_PASSES:
                break
        table = at.table.copy()
        table[-1, :k] += best.table[-1, :k].astype(table.dtype)
        moves = table[-1, :k].astype(np.float64) - at.table[-1, :k]
        at = objective.evaluate(table)
    objective.latest = replace(at, hidden=reach.hidden(at.gradient[-1, :k], moves, at.bound + at.slack))
    return objective.latest


def _of_biases(objective: PrimalObjective, scores: NDArray[np.float64]) -> PrimalObjective:
    """Return the same losses as a function of biases that are added to these scores."""
    examples = objective.examples
    biases = PrimalObjective(
        PrimalExamples(np.zeros((objective.n_examples, 0)), examples.labels, examples.costs, examples.n_classes),
        objective.loss,
        None,
        fit_intercept=True,
        workers=objective.workers,
        offsets=scores,
    )
    biases.smooth(objective.softmax_gamma, objective.smoothing)
    return biases


def _scores(X: Any, W: NDArray[Any], biases: NDArray[Any]) -> NDArray[np.float64]:
    """Return the scores of all classes in double precision; two classes have one function, the score of the second."""
    scores = np.empty((X.shape[0], len(W)))
    wide = W.T.astype(np.float64)
    step = max(1, _VALUES_AT_ONCE // max(1, X.shape[1]))
    for first in range(0, len(scores), step):
        rows = slice(first, first + step)
        scores[rows] = X[rows].astype(np.float64) @ wide + biases
    return np.hstack([-scores / 2, scores / 2]) if len(W) == 1 else scores
