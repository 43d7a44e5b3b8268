"""The block step of kernel multiclass SVMs: the coefficients of some patterns, raised together against all others.

    max   -<beta, Delta> - 1/2 <beta, K beta>,   Delta_i^y = Delta(y_i, y),   sum_y beta_i^y = 0 and      [larank] (7)
    crammer-singer   beta_i^y <= C_i delta(y, y_i)
    weston-watkins   -C_i <= beta_i^y <= 0  for y != y_i                                                [sdm] (16)

With scores F = K beta, the step holds all coefficients but those of a block B of patterns, and raises

    -<d, Delta_B + F_B> - 1/2 <d, K_BB d>,   beta_B + d within the constraints,

by accelerated projected gradient: steps of 1 / D_i for row i, where D_i is the largest value in row i of K_BB times the
largest eigenvalue of diag(D)^-1 K_BB, with Nesterov's momentum, which begins anew where it leads astray. A row is
projected on its constraints by a sort over the classes. Of the way d that this has gone the best part is taken,
s = -<d, Delta_B + F_B> / <d, K_BB d> or all of it, so the dual objective never falls; a way that leads down gives place
to one plain step, with bounds D_i that hold.

Arrays may be of any library; `xp` are its functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.blocks.device import Array, Device

STEPS = 120  # of a block step at most,
_LOOKS = 10  # and from one look at where they lead to the next
_POWER_ITERATIONS = 6
_MARGIN_OF_POWER = 1.05  # by which the largest eigenvalue may be above what they found
_NEWTON_STEPS = 12
_FINEST = 1e-7  # of the largest cost: smaller moves are not worth another step


@dataclass
class Constraints:
    """The rows of a block: margins, and the bounds of coefficients whose sum is zero."""

    margins: Array  # Delta(y_i, y)
    lower: Array | None  # none for Crammer-Singer
    upper: Array
    costs: Array  # C_i, one column
    ranks: Array  # 1, 2, ... in a row, one for each class
    zero: Array

    @classmethod
    def of(
        cls,
        device: Device,
        dtype: Any,
        labels: NDArray[np.int32],
        costs: NDArray[np.float64],
        margins: NDArray[np.float64],
        formulation: str,
    ) -> Constraints:
        """Those of patterns with these labels and costs; `margins` has a row for each of them."""
        classes = np.arange(margins.shape[1])
        is_label, C = labels[:, None] == classes, costs[:, None]
        lower, upper = None, np.where(is_label, C, 0.0)
        if formulation == "weston-watkins":
            lower, upper = np.where(is_label, -np.inf, -C), np.where(is_label, np.inf, 0.0)
            lower = device.put(lower, dtype)
        return cls(
            *(
                device.put(margins, dtype),
                lower,
                device.put(upper, dtype),
                device.put(C, dtype),
                device.put(classes[None] + 1, dtype),
                device.put(np.zeros(()), dtype),
            )
        )

    def at(self, places: Array) -> Constraints:
        """Those of some patterns."""
        lower = None if self.lower is None else self.lower[places]
        chosen = self.margins[places], lower, self.upper[places], self.costs[places]
        return Constraints(*chosen, self.ranks, self.zero)


def projected(xp: Any, V: Array, on: Constraints) -> Array:
    """The nearest coefficients within the constraints, row by row."""
    if on.lower is not None:
        return _projected_on_box(xp, V, on)
    # upper - beta is not negative and adds up to C_i: a point of a simplex, found by a sort.
    W = V - on.upper
    theta = xp.min((xp.cumsum(xp.sort(W, axis=1), axis=1) + on.costs) / on.ranks, axis=1, keepdims=True)
    return on.upper + xp.minimum(W - theta, on.zero)


def _projected_on_box(xp: Any, V: Array, on: Constraints) -> Array:
    """V - theta, cut off at the bounds, with theta such that rows add up to zero: Newton's method within a bracket."""
    assert on.lower is not None
    one, size = 0 * V + 1, xp.sum(xp.abs(V), axis=1, keepdims=True) + on.costs * V.shape[1]
    low, high, theta = -size, size, 0 * size
    for _ in range(_NEWTON_STEPS):
        moved = V - theta
        is_free = (moved > on.lower) & (moved < on.upper)
        cut = xp.where(is_free, moved, xp.where(moved > on.lower, on.upper, on.lower))
        rest = xp.sum(cut, axis=1, keepdims=True)
        low, high = xp.where(rest > 0, theta, low), xp.where(rest > 0, high, theta)
        theta = theta + rest / xp.sum(xp.where(is_free, one, 0 * one), axis=1, keepdims=True)  # the label is free
        theta = xp.where((theta >= low) & (theta <= high), theta, (low + high) / 2)
    return xp.where(is_free, V - theta, cut)


def ascended(
    xp: Any, K: Array, beta: Array, slopes: Array, on: Constraints, steps: int = STEPS
) -> tuple[Array, float, int, bool]:
    """The block step: a change d of beta, what it adds to the dual, the gradients it took, and if it was a plain one.

    Parameters
    ----------
    xp : namespace
        Functions of the arrays.
    K : array of shape (n, n)
        Kernel values of the block.
    beta : array of shape (n, classes)
        Its coefficients, within the constraints.
    slopes : array of shape (n, classes)
        Delta + F, by which the dual falls.
    on : Constraints
        Of the block.
    steps : int
        Gradients at most.
    """
    bounds = xp.sum(xp.abs(K), axis=1)[:, None]  # of D, such that K <= diag(D): no step of 1 / D leads down
    scales = xp.max(xp.abs(K), axis=1)[:, None]
    gradients, L = 0, _largest_eigenvalue(xp, K, scales)
    if 0 < L < math.inf:
        d, gradients = _accelerated(xp, K, beta, slopes, on, L * scales, steps)
        taken, gain = _best_part(xp, K, d, slopes)
        if gain > 0:
            return taken, gain, gradients, False
    if not 0 < float(xp.min(bounds)) <= float(xp.max(bounds)) < math.inf:
        return 0 * beta, 0.0, gradients, True
    taken, gain = _best_part(xp, K, projected(xp, beta - slopes / bounds, on) - beta, slopes)
    return taken, gain, gradients + 1, True


def _largest_eigenvalue(xp: Any, K: Array, scales: Array) -> float:
    """Of K / scales, by power iterations, with some room; 0 where there is none."""
    if not float(xp.min(scales)) > 0:
        return 0.0
    v = 0 * scales + 1
    for _ in range(_POWER_ITERATIONS):
        v = K @ v / scales
        v = v / xp.max(xp.abs(v))
    return _MARGIN_OF_POWER * float(xp.sum(v * (K @ v))) / float(xp.sum(v * v * scales))


def _accelerated(
    xp: Any, K: Array, beta: Array, slopes: Array, on: Constraints, D: Array, steps: int
) -> tuple[Array, int]:
    """Where projected gradients with momentum lead: the change, and how many there were."""
    now = there = beta
    momentum, least = 1.0, _FINEST * float(xp.max(on.costs))
    for done in range(1, steps + 1):
        following = projected(xp, there - (slopes + K @ (there - beta)) / D, on)
        moved, pulled = following - now, there - following
        further = (1 + math.sqrt(1 + 4 * momentum * momentum)) / 2
        there = following + (momentum - 1) / further * moved
        now, momentum = following, further
        if done % _LOOKS == 0:  # for a look waits for the device
            if float(xp.max(xp.abs(moved))) <= least:
                break
            if float(xp.sum(D * pulled * moved)) > 0:
                there, momentum = now, 1.0
    return now - beta, done


def _best_part(xp: Any, K: Array, d: Array, slopes: Array) -> tuple[Array, float]:
    """Of the way d, as much as raises the dual most, and by how much it does."""
    down, curved = float(xp.sum(d * slopes)), float(xp.sum(d * (K @ d)))
    if not down < 0:  # also where it is no number
        return 0 * d, 0.0
    s = min(1.0, -down / curved) if curved > 0 else 1.0
    gain = -s * down - s * s * curved / 2
    return s * d, gain if gain > 0 else 0.0
