"""SVMs that track the optimum of a growing problem, by algorithms 15 and 16 of Bordes (thesis, section 4.4).

The session (`core/kernel/tracking.hpp`) keeps all examples with their coefficients alpha. The model is the average of
these after each of the steps that the last example was followed by.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from larank.base import functions
from larank.data.models import persistable
from larank.data.schema import floats
from larank.declare import parameter
from larank.docstrings import with_paragraphs
from larank.kernel.machine import (
    FITTED_ON_A_STREAM,
    WEIGHTS,
    Algorithm,
    Expansion,
    Machine,
    OnlineClassifier,
    StreamTraining,
    session_class,
    signs,
)
from larank.parameters import Stopping, Weighted
from larank.training import FromScratch, ObjectiveValues

_Float = NDArray[np.float64]


class Tracking(Algorithm):
    """A tracking algorithm, as the machine sees it."""

    solver = "tracking"
    title = "Tracking"
    fixed = (*Algorithm.fixed, "algorithm", "n_steps")
    end_of_stream = (
        "any more: it needs all examples of the stream, and a model that was loaded or copied, or whose last call of "
        "partial_fit failed, has only those with coefficients; use a new TrackingSVC"
    )

    def session(self, dtype: np.dtype[Any], seed: int) -> Any:
        """A compiled session that has seen nothing."""
        model = self.model
        options = {"algorithm": model.algorithm, "n_steps": int(model.n_steps), "seed": seed}
        return session_class("Tracking", dtype)(**options, memory_limit=int(model.memory_limit))

    def begin_training(self, training: StreamTraining) -> None:
        """The machine has all examples in it, which the model has not."""
        if self.model.kernel != "precomputed":
            self.model._machine = training.machine

    def estimate(self, training: StreamTraining) -> ObjectiveValues:
        """The objectives of the coefficients after the last step, and what lemma 5 says of them."""
        session = training.session
        primal, dual, expected, increases = session.objectives().T
        self._keep_bound(primal - dual, expected, increases, session.sum_of_costs, session.largest_diagonal)
        return ObjectiveValues(float(primal.sum()), float(dual.sum()), math.nan)

    def objectives(self, training: StreamTraining) -> FromScratch:
        """The objectives of the averaged coefficients, and what lemma 5 says of them."""
        expansion, provider = self.expansion(training.session), training.machine.provider
        coefficients = expansion.dense
        squared_norm, sums, losses, expected, increases = np.zeros((5, coefficients.shape[1]))
        total = largest = violation = 0.0
        for block, scores, signed in training.scanned(expansion, coefficients):
            y, C = signs(block.labels, len(sums)), block.costs[:, None]
            alpha = signed * y
            diagonal = provider.diagonal(provider.batch(block.X, block.ids))
            g = 1 - y * scores  # [thesis] eq. (4.17)
            increase = _increase(alpha, g, diagonal[:, None], C)
            squared_norm += (alpha * y * scores).sum(axis=0)
            losses += (C * np.maximum(0, g)).sum(axis=0)
            expected += (C * increase).sum(axis=0)
            increases += increase.sum(axis=0)
            total += float(C.sum())
            largest = max(largest, float(diagonal.max()))
            violation = max(violation, float(np.maximum(np.where(alpha < C, g, 0), np.where(alpha > 0, -g, 0)).max()))
            yield
        alpha = coefficients * signs(expansion.labels, len(sums))
        dual = alpha.sum(axis=0) - squared_norm / 2
        primal = squared_norm / 2 + losses
        half, at_zero = float(squared_norm.sum()) / 2, float(training.stream.examples.costs.sum()) * len(sums)
        training.machine.look_at_objectives(half, float(dual.sum()), at_zero)
        self._keep_bound(primal - dual, expected / total, increases, total, largest)
        return ObjectiveValues(float(primal.sum()), float(dual.sum()), violation)

    def _keep_bound(
        self, gap: _Float, expected: _Float, increases: _Float, costs: float, largest_diagonal: float
    ) -> None:
        """The normalized gap and the bound of lemma 5 on it.

        The lemma has |x| <= 1 and one C. With kappa = max |x|^2 above one it holds for the examples divided by
        sqrt(kappa) and C times kappa, which is the same problem with both objectives times kappa. With costs C_i its
        proof gives sqrt(2 E Delta) with i chosen in proportion to C_i, and sum Delta / sum C for E Delta / C.
        """
        kappa = max(1.0, largest_diagonal)
        self.model.gap_ = gap / costs
        self.model.bound_ = np.sqrt(2 * kappa * np.maximum(0, expected)) + increases / costs

    def withdraw_bounds(self) -> None:
        """Lemma 5 is about distances."""
        self.model.gap_ = np.full_like(self.model.gap_, np.nan)
        self.model.bound_ = np.full_like(self.model.bound_, np.nan)

    def expansion(self, session: Any) -> Expansion:
        """The averaged coefficients times the labels +1 and -1."""
        averages = Expansion.of(session)
        alpha = averages.dense
        return replace(averages, coefficients=csr_matrix(alpha * signs(averages.labels, alpha.shape[1])))

    def keep(self, session: Any, expansion: Expansion) -> None:
        """There is no bias."""
        self.model.intercept_ = self.model._intercepts(expansion, self.absent)

    def restore(self, machine: Machine) -> None:
        """It is not possible."""
        raise RuntimeError(self.end_of_stream)

    def operations(self, session: Any) -> dict[str, int]:
        """How often each operation was performed."""
        return {name: getattr(session.counters, name) for name in ("process", "reprocess", "steps")}


def _increase(alpha: _Float, g: _Float, diagonal: _Float, C: _Float) -> _Float:
    """Delta of lemma 5: what the best step on each coefficient alone would bring."""
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(diagonal > 0, g / diagonal, np.copysign(np.inf, g))
    step = np.clip(step, -alpha, C - alpha)  # [thesis] eq. (4.17)
    increase: _Float = step * (g - step / 2 * diagonal)
    return increase


@with_paragraphs
@persistable(
    **FITTED_ON_A_STREAM,
    coef_=WEIGHTS,
    intercept_=floats(functions),
    gap_=floats("n_problems", finite=False),
    bound_=floats("n_problems", finite=False),
)
class TrackingSVC(Weighted, Stopping, OnlineClassifier):
    """Support vector machine without bias whose models are near the optimum of the examples seen so far, at all times.

    After every example come `n_steps` steps on coefficients picked at random among all examples so far. The model is
    the average of the coefficients after each of them. On average over the stream it is provably close to the optimum;
    `gap_` and `bound_` show by how much, and how much the theory promises. All examples are kept with their kernel
    values: this is an algorithm to study, not one for large data. More than two classes are separated each from the
    rest.

    Attributes
    ----------
    [model]
    dual_coef_ : csr_matrix of shape (n_support, n_classes), or (n_support, 1) with two classes
        The averaged coefficients times the labels +1 and -1.
    intercept_ : ndarray
        Zeros: there is no bias.
    [coef_]
    gap_ : ndarray of shape (n_problems,)
        The duality gap of each problem, divided by the sum of the costs: ``C`` times the number of examples.
    bound_ : ndarray of shape (n_problems,)
        The bound of lemma 5 on it, from the expected increase of the dual by a next step.
    [result_]

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, section 4.4.

    Examples
    --------
    >>> from larank import TrackingSVC
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = TrackingSVC(n_steps=20, random_state=0).fit(scale(X), y)
    >>> bool(model.gap_[0] <= model.bound_[0])
    True
    >>> bool(model.score(scale(X), y) > 0.95)
    True
    """

    C: float = parameter(
        "Inverse regularisation strength: the cost of one unit of loss against ``1/2 |w|^2``. Larger values fit the "
        "training data more closely.",
        default=1.0,
        above=0,
    )
    algorithm: Literal["process-reprocess", "simple"] = parameter(
        '"process-reprocess" optimises the new example before random old ones (algorithm 16 of the thesis); "simple" '
        "optimises random examples only (algorithm 15).",
        default="process-reprocess",
    )
    n_steps: int = parameter(
        "Number of random coordinate steps after each example. More steps follow the optimum more closely: with ``8 C "
        "/ epsilon^2`` steps the normalised excess is at most epsilon on average (corollary 8 of the thesis).",
        default=10,
        least=1,
    )

    _ALGORITHM = Tracking
