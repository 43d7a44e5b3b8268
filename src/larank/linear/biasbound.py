"""How far the optimum of the primal multiclass SVM may be below a bound that takes the biases to be the best.

With the gradient h in the biases, the objective P at (W, b) and an optimum (W*, b*), beta = b* - b,
  P* >= P - bound + <h, beta>,
because P is convex, and 1-strongly convex in W. The entries of h add up to 0, so
  -<h, beta> = sum_m h_m (beta_z - beta_m) for any class z, here the class with the largest costs.
The losses bound the differences. Every aggregation of every margin loss has loss_i >= a - s_iu with a constant a, and
at the optimum the losses of the examples of class m, whose costs add up to C_m, are at most P. Therefore
  beta_u - beta_m <= P / C_m - a + mean of s_iu at (W, b) + r_mu |W - W*|,
where r_mu bounds the effect of the weights on the mean margin, by the mean length of the examples of class m. As
1/2 |W - W*|^2 <= P - P*, the distance P - P* is at most the larger root of a quadratic equation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix

from larank.linear.primalobjective import PrimalObjective

_Float = NDArray[np.float64]


class BiasBound:
    """What a gradient in the biases may hide, for given weights."""

    def __init__(self, objective: PrimalObjective, primal: float, scores: _Float) -> None:
        examples = objective.examples
        n, k = scores.shape
        by_class = csc_matrix((examples.costs, examples.labels, np.arange(n + 1)), (k, n))
        costs = np.bincount(examples.labels, examples.costs, k)
        means = by_class @ scores / costs[:, None]
        lengths = by_class @ objective.lengths / costs
        K = np.eye(k) if objective.label_kernel is None else objective.label_kernel
        own = np.diagonal(K)
        apart = np.sqrt(np.maximum(0.0, own[:, None] + own - 2 * K))
        margins = np.diagonal(means)[:, None] - means
        differences = primal / costs[:, None] - _least_sum(objective) + margins  # [m, u]: beta_u - beta_m
        by_weights = lengths[:, None] * apart
        self._largest = largest = int(costs.argmax())
        self._below, self._above = differences[:, largest], differences[largest]
        self._below_by_weights, self._above_by_weights = by_weights[:, largest], by_weights[largest]

    def hidden(self, gradient: NDArray[Any], moves: NDArray[Any], gap: float) -> float:
        """Return by how much P - P* may be larger than `gap`, which holds for biases without a gradient.

        `moves` is how far the biases have moved since the scores were computed.
        """
        h, moves = gradient.astype(np.float64), moves - moves[self._largest]
        is_below = h > 0
        sizes = np.abs(h)
        sizes[self._largest] = 0.0
        differences = np.where(is_below, self._below + moves, self._above - moves)
        constant = float(sizes @ np.maximum(0.0, differences))
        linear = float(sizes @ np.where(is_below, self._below_by_weights, self._above_by_weights)) * math.sqrt(2)
        root = (linear + math.sqrt(linear**2 + 4 * (gap + constant))) / 2  # of P - P* = gap + constant + linear root
        return constant + linear * root


def _least_sum(objective: PrimalObjective) -> float:
    """Return the largest a with l(s) >= a - s for the margin loss l."""
    return {"log_loss": 0.0, "squared_hinge": 0.75, "smoothed_hinge": 1 - objective.smoothing / 2}[
        objective.loss.margin
    ]
