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
_TINY = 1e-30
_FINEST = 1e-7  # of the largest coefficient: smaller moves are not worth another step


@dataclass
class Constraints:
    """The rows of a block: margins, and what bounds coefficients whose sum is zero."""

    margins: Array  # Delta(y_i, y)
    is_label: Array
    costs: Array  # C_i, one column
    ranks: Array  # 1, 2, ... in a row, one for each class but one
    zero: Array
    is_paired: bool  # whether each wrong class has its own bound, as Weston and Watkins have it

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
        return cls(
            device.put(margins, dtype),
            device.put(labels[:, None] == classes, np.bool_),
            device.put(costs[:, None], dtype),
            device.put(classes[None, 1:], dtype),
            device.put(np.zeros(()), dtype),
            formulation == "weston-watkins",
        )

    def at(self, places: Array) -> Constraints:
        """Those of some patterns."""
        chosen = self.margins[places], self.is_label[places], self.costs[places]
        return Constraints(*chosen, self.ranks, self.zero, self.is_paired)


def projected(xp: Any, V: Array, on: Constraints) -> Array:
    """The nearest coefficients within the constraints, row by row.

    Those of wrong classes are V - theta, cut off at zero and, where each has its own bound, at -C. That of the label is
    V - theta, or C where that bounds it. A sort over the classes finds theta, without differences from a large C.
    """
    if V.shape[1] == 1:
        return 0 * V
    own = xp.sum(xp.where(on.is_label, V, on.zero), axis=1, keepdims=True)
    others = xp.sort(xp.where(on.is_label, xp.max(V) + 1, V), axis=1)[:, :-1]
    if on.is_paired:
        theta = _paired_theta(xp, own, others, on)
        cut = xp.maximum(xp.minimum(V - theta, on.zero), -on.costs)
        return xp.where(on.is_label, -xp.sum(xp.where(on.is_label, on.zero, cut), axis=1, keepdims=True), cut)
    sums = xp.cumsum(others, axis=1)
    free = xp.minimum(own, xp.min((sums + own) / (on.ranks + 1), axis=1, keepdims=True))
    bounded = xp.min((sums + on.costs) / on.ranks, axis=1, keepdims=True)
    theta = xp.where(own - free > on.costs, bounded, free)
    return xp.where(on.is_label, xp.minimum(own - theta, on.costs), xp.minimum(V - theta, on.zero))


def _paired_theta(xp: Any, own: Array, others: Array, on: Constraints) -> Array:
    """Where theta + sum_y (theta - V_y, cut off at 0 and C) is V of the label: on a line between two of its corners."""
    corners = xp.concatenate([others, others + on.costs], axis=1)
    order = xp.argsort(corners, axis=1)
    corners = xp.take_along_axis(corners, order, axis=1)
    turns = xp.where(order < others.shape[1], 1 + 0 * corners, -1 + 0 * corners)
    slopes = 1 + xp.cumsum(turns, axis=1)
    risen = xp.cumsum(slopes[:, :-1] * (corners[:, 1:] - corners[:, :-1]), axis=1)
    values = xp.concatenate([corners[:, :1], corners[:, :1] + risen], axis=1)
    theta = corners + (own - values) / slopes  # of the line after each corner
    is_after = own >= values
    last = xp.sum(xp.where(is_after, 1 + 0 * values, 0 * values), axis=1, keepdims=True)
    place = xp.where(last > 0, last - 1, 0 * last)
    found = xp.sum(xp.where(_counted(xp, values) == place, theta, on.zero), axis=1, keepdims=True)
    return xp.where(last > 0, found, own)


def _counted(xp: Any, table: Array) -> Array:
    """0, 1, 2, ... in every row."""
    return xp.cumsum(0 * table + 1, axis=1) - 1


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
    # A row without kernel values may step as far as it likes.
    scales = _or_ones(xp, xp.max(xp.abs(K), axis=1)[:, None])
    bounds = _or_ones(xp, xp.sum(xp.abs(K), axis=1)[:, None])  # D, with K <= diag(D): no step of 1 / D leads down
    gradients, L = 0, _largest_eigenvalue(xp, K, scales)
    if 0 < L < math.inf:
        d, gradients = _accelerated(xp, K, beta, slopes, on, L * scales, steps)
        taken, gain = _best_part(xp, K, d, slopes)
        if gain > 0:
            return taken, gain, gradients, False
    if not float(xp.max(bounds)) < math.inf:
        return 0 * beta, 0.0, gradients, True
    taken, gain = _best_part(xp, K, projected(xp, beta - slopes / bounds, on) - beta, slopes)
    return taken, gain, gradients + 1, True


def _or_ones(xp: Any, sizes: Array) -> Array:
    """Sizes, the largest of them in place of zeros, and 1 where all are zero."""
    largest = xp.max(sizes)
    return xp.where(sizes > 0, sizes, xp.where(largest > 0, largest, 1 + 0 * largest))


def _largest_eigenvalue(xp: Any, K: Array, scales: Array) -> float:
    """Of K / scales, by power iterations, with some room."""
    v = 0 * scales + 1
    for _ in range(_POWER_ITERATIONS):
        v = K @ v / scales
        v = v / (xp.max(xp.abs(v)) + _TINY)
    return _MARGIN_OF_POWER * float(xp.sum(v * (K @ v))) / (float(xp.sum(v * v * scales)) + _TINY) or 1.0


def _accelerated(
    xp: Any, K: Array, beta: Array, slopes: Array, on: Constraints, D: Array, steps: int
) -> tuple[Array, int]:
    """Where projected gradients with momentum lead: the change, and how many there were."""
    now = there = beta
    momentum = 1.0
    for done in range(1, steps + 1):
        following = projected(xp, there - (slopes + K @ (there - beta)) / D, on)
        moved, pulled = following - now, there - following
        further = (1 + math.sqrt(1 + 4 * momentum * momentum)) / 2
        there = following + (momentum - 1) / further * moved
        now, momentum = following, further
        if done % _LOOKS == 0:  # for a look waits for the device
            if float(xp.max(xp.abs(moved))) <= _FINEST * float(xp.max(xp.abs(now))):
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
