"""The block step of kernel multiclass SVMs: the coefficients of some patterns, raised together against all others.

    max   -<beta, Delta> - 1/2 <beta, K beta>,   Delta_i^y = Delta(y_i, y),   sum_y beta_i^y = 0 and      [larank] (7)
    crammer-singer   beta_i^y <= C_i delta(y, y_i)
    weston-watkins   -C_i <= beta_i^y <= 0  for y != y_i                                                [sdm] (16)

With scores F = K beta, the step holds all coefficients but those of a block B of patterns, and raises

    -<d, Delta_B + F_B> - 1/2 <d, K_BB d>,   beta_B + d within the constraints,

by accelerated projected gradient: steps of 1 / D_i for row i, where D_i is the largest value in row i of K_BB times the
largest eigenvalue of diag(D)^-1 K_BB, with Nesterov's momentum, which begins anew where it leads astray. A row is
projected on its constraints by a sort over the classes. Once nothing pulls at a row by more than half of tau, or after
so many gradients, the way ends. Of the way d that this has gone the best part is taken,
s = -<d, Delta_B + F_B> / <d, K_BB d> or all of it, so the dual objective never falls; a way that leads down gives place
to one plain step, with bounds D_i that hold.

Arrays may be of any library; `xp` are its functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
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
_SHARE_OF_TAU = 0.5  # a smaller pull of the gradient leaves hardly a violation above tau


@dataclass
class Constraints:
    """The rows of a block: margins, and what bounds coefficients whose sum is zero."""

    margins: Array  # Delta(y_i, y)
    is_label: Array
    costs: Array  # C_i, one column
    bounds: Array  # of Crammer and Singer: C_i for the label, zero for others
    ranks: Array  # 2, 3, ... and 1, 2, ...: two rows, with a column for each class but one
    zero: Array
    infinity: Array
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
        is_label = labels[:, None] == classes
        return cls(
            device.put(margins, dtype),
            device.put(is_label, np.bool_),
            device.put(costs[:, None], dtype),
            device.put(costs[:, None] * is_label, dtype),
            device.put(np.stack([classes[1:] + 1, classes[1:]]), dtype),
            device.put(np.zeros(()), dtype),
            device.put(np.full((), np.inf), dtype),
            formulation == "weston-watkins",
        )

    def at(self, places: Array) -> Constraints:
        """Those of some patterns."""
        return replace(self, **{name: getattr(self, name)[places] for name in _OF_ROWS})

    def take(self, others: Constraints) -> None:
        """Become those of as many other patterns, in the same memory."""
        for name in _OF_ROWS:
            getattr(self, name)[...] = getattr(others, name)


_OF_ROWS = ("margins", "is_label", "costs", "bounds")


def projected(xp: Any, V: Array, on: Constraints) -> Array:
    """The nearest coefficients within the constraints, row by row: V - theta, cut off at the bounds.

    What is left of a row adds up to zero. That sum is the smallest of linear functions of theta, all falling: the j
    smallest V of wrong classes minus theta each, with V - theta of the label or with C. So theta is the smallest of
    their roots, and a sort over the classes finds it, without differences from a large C. Where each wrong class has a
    bound of its own, theta is between two corners of the sum.
    """
    if V.shape[1] == 1:
        return 0 * V
    own = xp.sum(xp.where(on.is_label, V, on.zero), axis=1, keepdims=True)
    others = xp.sort(xp.where(on.is_label, on.infinity, V), axis=1)[:, :-1]
    if on.is_paired:
        theta = _paired_theta(xp, own, others, on)
        cut = xp.maximum(xp.minimum(V - theta, on.zero), -on.costs)
        return xp.where(on.is_label, -xp.sum(xp.where(on.is_label, on.zero, cut), axis=1, keepdims=True), cut)
    heads = xp.concatenate([own, on.costs], axis=1)
    roots = (xp.cumsum(others, axis=1)[:, None, :] + heads[:, :, None]) / on.ranks
    theta = xp.minimum(own, xp.min(roots, axis=(1, 2))[:, None])
    return xp.minimum(V - theta, on.bounds)


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


class Ascent:
    """Projected gradients with momentum on blocks of one shape.

    From one look at where they lead to the next they work in memory that stays where it is, so a device can record
    them once and play them again.
    """

    def __init__(self, device: Device, on: Constraints) -> None:
        self._device, self._xp = device, device.xp
        self._dtype = device.get(on.zero).dtype
        self._everybody = device.index(np.arange(on.margins.shape[0]))
        self._on = on.at(self._everybody)
        self._beta, self._base, self._there, self._now = (0 * on.margins for _ in range(4))
        self._D = 0 * on.costs
        self._iteration = self._D @ self._D.T
        self._momenta = device.zeros((_LOOKS,), self._dtype)
        self._look = device.zeros((4,), self._dtype)
        self._play: Callable[[], None] | None = None

    def record(self) -> None:
        """For there will be many blocks of this shape."""
        play = self._device.recorded(self._advance)
        if play is not None:
            self._look[...] = math.nan
            play()
            if np.isfinite(self._device.get(self._look)).all():  # it does something
                self._play = play

    def is_for(self, on: Constraints) -> bool:
        """Whether these constraints have its shape and kind."""
        return self._beta.shape == on.margins.shape and self._on.is_paired == on.is_paired

    def run(
        self, K: Array, beta: Array, slopes: Array, on: Constraints, D: Array, steps: int, tau: float
    ) -> tuple[Array, int]:
        """Where they lead from beta if row i steps by 1 / D_i: the change, until the next run, and their number."""
        self._on.take(on)
        self._beta[...], self._D[...] = beta, D
        # A gradient step from beta + e leads to beta + e - (slopes + K e) / D.
        self._base[...] = beta - slopes / D
        self._iteration[...] = -K / D
        self._iteration[self._everybody, self._everybody] += 1
        self._there[...] = 0
        self._now[...] = 0
        momentum, done = 1.0, 0
        while done < steps:
            momenta = np.zeros(_LOOKS)
            for step in range(_LOOKS):
                further = (1 + math.sqrt(1 + 4 * momentum * momentum)) / 2
                momenta[step], momentum = (momentum - 1) / further, further
            self._momenta[...] = self._device.put(momenta, self._dtype)
            if steps - done < _LOOKS:
                self._advance(steps - done)
                return self._now, steps
            (self._play or self._advance)()
            done += _LOOKS
            moved, largest, pull, astray = self._device.get(self._look)
            if moved <= _FINEST * largest or pull <= _SHARE_OF_TAU * tau:
                break
            if astray > 0:
                self._there[...] = self._now
                momentum = 1.0
        return self._now, done

    def _advance(self, steps: int = _LOOKS) -> None:
        """So many of them; and of the last one the move, the pull of the gradient, and if the two were at odds."""
        xp, there, now = self._xp, self._there, self._now
        for step in range(steps):
            began, before = there, now
            coefficients = projected(xp, self._iteration @ there + self._base, self._on)
            now = coefficients - self._beta
            there = now + self._momenta[step] * (now - before)
        moved = now - before
        pulls = self._D * (began - now)
        sizes = [xp.max(xp.abs(each)) for each in (moved, coefficients, pulls)]
        self._look[...] = xp.stack([*sizes, xp.sum(pulls * moved)])
        self._there[...], self._now[...] = there, now


def ascended(
    device: Device,
    K: Array,
    beta: Array,
    slopes: Array,
    on: Constraints,
    steps: int = STEPS,
    tau: float = 0.0,
    ascent: Ascent | None = None,
) -> tuple[Array, float, int, bool]:
    """The block step: a change d of beta, what it adds to the dual, the gradients it took, and if it was a plain one.

    Parameters
    ----------
    device : Device
        Where the arrays are.
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
    tau : float
        Violations of the block that are left alone.
    ascent : Ascent, optional
        That of an earlier block of the same shape.
    """
    xp = device.xp
    # A row without kernel values may step as far as it likes.
    scales = _or_ones(xp, xp.max(xp.abs(K), axis=1)[:, None])
    gradients, L = 0, _largest_eigenvalue(device, K, scales)
    if 0 < L < math.inf:
        d, gradients = (ascent or Ascent(device, on)).run(K, beta, slopes, on, L * scales, steps, tau)
        taken, gain = _best_part(device, K, d, slopes)
        if gain > 0:
            return taken, gain, gradients, False
    bounds = _or_ones(xp, xp.sum(xp.abs(K), axis=1)[:, None])  # D, with K <= diag(D): no step of 1 / D leads down
    if not float(xp.max(bounds)) < math.inf:
        return 0 * beta, 0.0, gradients, True
    taken, gain = _best_part(device, K, projected(xp, beta - slopes / bounds, on) - beta, slopes)
    return taken, gain, gradients + 1, True


def _or_ones(xp: Any, sizes: Array) -> Array:
    """Sizes, the largest of them in place of zeros, and 1 where all are zero."""
    largest = xp.max(sizes)
    return xp.where(sizes > 0, sizes, xp.where(largest > 0, largest, 1 + 0 * largest))


def _largest_eigenvalue(device: Device, K: Array, scales: Array) -> float:
    """Of K / scales, by power iterations, with some room."""
    xp, v = device.xp, 0 * scales + 1
    for _ in range(_POWER_ITERATIONS):
        v = K @ v / scales
        v = v / (xp.max(xp.abs(v)) + _TINY)
    curved, length = device.get(xp.stack([xp.sum(v * (K @ v)), xp.sum(v * v * scales)]))
    return _MARGIN_OF_POWER * float(curved) / (float(length) + _TINY) or 1.0


def _best_part(device: Device, K: Array, d: Array, slopes: Array) -> tuple[Array, float]:
    """Of the way d, as much as raises the dual most, and by how much it does."""
    xp = device.xp
    down, curved = (float(each) for each in device.get(xp.stack([xp.sum(d * slopes), xp.sum(d * (K @ d))])))
    if not down < 0:  # also where it is no number
        return 0 * d, 0.0
    s = min(1.0, -down / curved) if curved > 0 else 1.0
    gain = -s * down - s * s * curved / 2
    return s * d, gain if gain > 0 else 0.0
