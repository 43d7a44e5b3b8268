"""Minimisers of the primal multiclass SVM: truncated Newton and non-linear conjugate gradient.

A minimiser is a generator. It yields after every pass over the data: an `Iterate` where it has got to a new one, None
otherwise. Who drives it may send back another iterate to go on from, which must be the last one that was evaluated. It
ends where rounding leaves no way down. All inner products are those of the objective, so that the label kernel is in
the geometry and in none of the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from itertools import count
from typing import NamedTuple

import numpy as np
from scipy.linalg import get_blas_funcs

from larank.blocks.provider import pieces
from larank.linear.preconditioner import Preconditioner, preconditioner_at
from larank.linear.primalobjective import Iterate, PrimalObjective, Table

Descent = Generator[Iterate | None, Iterate | None, None]
_Search = Generator[None, None, Iterate | None]

_DECREASE, _CURVATURE = 1e-4, 0.4  # of the slope: what a step must gain, and what slope it may leave
_FORCING = 0.3  # the residual of Newton's equations, relative to the gradient
_MOST_PRODUCTS = 300
_PRODUCTS_TO_KEEP = 4  # a preconditioner that needs no more serves for the next step, too
_MOST_TRIALS = 40


def newton(objective: PrimalObjective, at: Iterate, random: np.random.RandomState) -> Descent:
    """Truncated Newton: conjugate gradient on Newton's equations, by products with the Hessian."""
    precondition: Preconditioner | None = None
    scratch = _Scratch(*(objective.zeros() for _ in range(5)))  # large tables are slow to get new
    while True:
        # Biases may have no curvature at all. So much of it lets none of them move by more than 100, and goes to 0.
        damping = 0.01 * float(np.abs(at.gradient[-1]).max())
        if precondition is None:
            with objective.timed("preconditioner"):
                precondition = preconditioner_at(objective, damping, random)
        before = objective.products
        yield from _newton_direction(objective, at, precondition, damping, scratch)
        if objective.products - before > _PRODUCTS_TO_KEEP:
            precondition = None
        found = yield from _backtrack(objective, at, scratch.direction)
        if found is None:
            return
        objective.give_back(at)
        at = (yield found) or found


class _Scratch(NamedTuple):
    direction: Table
    toward: Table
    product: Table
    residual: Table
    step: Table


def _newton_direction(
    objective: PrimalObjective, at: Iterate, precondition: Preconditioner, damping: float, scratch: _Scratch
) -> Generator[None, None, None]:
    """An approximate solution d of H d = -gradient, with damped biases, along which the objective falls."""
    direction, toward, product, residual, step = scratch
    direction[...] = 0
    np.negative(at.gradient, out=residual)
    precondition(residual, step)
    toward[...] = step
    left = first = objective.dot(residual, step)
    for number in count(1):
        objective.product(toward, product)
        product[-1] += damping * toward[-1]
        yield
        curvature = objective.dot(toward, product)
        if not curvature > 0:  # only where the objective is not convex, or by rounding
            if number == 1:
                direction[...] = toward
            return
        length = left / curvature
        _add(direction, length, toward)
        _add(residual, -length, product)
        precondition(residual, step)
        before, left = left, objective.dot(residual, step)
        if left <= _FORCING**2 * first or number == _MOST_PRODUCTS:
            return
        toward *= toward.dtype.type(left / before)
        toward += step


def _backtrack(objective: PrimalObjective, at: Iterate, direction: Table) -> _Search:
    """The first step that gains enough, from 1 down; after one too long, the least of a parabola is tried."""
    slope = objective.dot(at.gradient, direction)
    length = 1.0
    while slope < 0 and length > 1e-12:
        moved = objective.unset()
        np.multiply(direction, direction.dtype.type(length), out=moved)
        moved += at.table
        found = objective.evaluate(moved)
        if found.value <= at.value + _DECREASE * length * slope:
            return found
        if abs(length * slope) <= _rounding(at):  # values tell nothing any more, but gradients do
            left = objective.dot(found.gradient, found.gradient)
            return found if left < objective.dot(at.gradient, at.gradient) / 4 else None
        yield
        rise = found.value - at.value - length * slope
        shorter = -slope * length / (2 * rise) if np.isfinite(rise) else 0.0
        length *= min(0.5, max(0.05, shorter))
    return None


def conjugate_gradient(objective: PrimalObjective, at: Iterate, random: np.random.RandomState) -> Descent:
    """Non-linear conjugate gradient of Polak and Ribiere, as in [primal] section 1.2.4."""
    direction = -at.gradient
    slope = objective.dot(at.gradient, direction)
    length = _first_length(objective, at)
    while True:
        found = yield from _wolfe(objective, at, direction, slope, length)
        is_steepest = slope == -objective.dot(at.gradient, at.gradient)
        if found is None:
            if is_steepest:
                return
            direction = -at.gradient
            slope, length = objective.dot(at.gradient, direction), _first_length(objective, at)
            continue
        taken = objective.dot(found.table - at.table, direction) / objective.dot(direction, direction)
        found = (yield found) or found
        change = objective.dot(found.gradient, found.gradient) - objective.dot(found.gradient, at.gradient)
        share = max(0.0, change / objective.dot(at.gradient, at.gradient))
        direction *= direction.dtype.type(share)
        direction -= found.gradient
        before, slope = slope, objective.dot(found.gradient, direction)
        if slope >= 0:
            direction, slope = -found.gradient, -objective.dot(found.gradient, found.gradient)
        length, at = taken * min(10.0, before / slope), found


def _wolfe(objective: PrimalObjective, at: Iterate, direction: Table, slope: float, length: float) -> _Search:
    """A step that gains enough and leaves little of the slope, bracketed and then interpolated.

    Yields after every evaluation but that of the step it returns.
    """
    low, low_value, low_slope = 0.0, at.value, slope
    high: float | None = None
    for trial in range(_MOST_TRIALS):
        if not slope < 0:
            return None
        found = objective.evaluate(_moved(at.table, length, direction))
        now = objective.dot(found.gradient, direction)
        too_far = not found.value <= at.value + _DECREASE * length * slope or (trial and found.value >= low_value)
        if too_far and abs(length * slope) <= _rounding(at):
            return None
        if not too_far and abs(now) <= -_CURVATURE * slope:
            return found
        yield
        if too_far:
            high = length
        elif now >= 0 or (high is not None and now * (high - low) >= 0):
            high, low, low_value, low_slope = low, length, found.value, now
        else:
            low, low_value, low_slope = length, found.value, now
        length = _next_length(low, low_slope, low_value, high, length, found.value)
    return None


def _next_length(
    low: float, low_slope: float, low_value: float, high: float | None, tried: float, value: float
) -> float:
    """Farther while there is no bracket; in it, the least of the parabola through what is known, kept inside."""
    if high is None:
        return 3 * low
    span = high - low
    rise = value - low_value - low_slope * (tried - low) if tried == high else 0.0
    inside = -low_slope * (tried - low) ** 2 / (2 * rise) / span if rise > 0 and np.isfinite(rise) else 0.5
    return low + min(0.9, max(0.1, inside)) * span


def _first_length(objective: PrimalObjective, at: Iterate) -> float:
    """A step of length 1 / |gradient|, for nothing is known about the scale yet."""
    return min(1.0, 1 / max(1e-300, float(np.sqrt(objective.dot(at.gradient, at.gradient)))))


def _moved(table: Table, length: float, direction: Table) -> Table:
    moved: Table = direction * direction.dtype.type(length)
    moved += table
    return moved


def _add(table: Table, factor: float, other: Table) -> None:
    """table += factor other, in place."""
    axpy = get_blas_funcs("axpy", dtype=table.dtype)
    left, right = other.reshape(-1), table.reshape(-1)
    for part in pieces(len(left), 1 << 30):  # some libraries count in 32 bits
        axpy(left[part], right[part], a=factor)


def _rounding(at: Iterate) -> float:
    """What of the objective may be rounding."""
    return 10 * float(np.finfo(at.table.dtype).eps) * abs(at.value)


SOLVERS: dict[str, Callable[[PrimalObjective, Iterate, np.random.RandomState], Descent]] = {
    "newton": newton,
    "cg": conjugate_gradient,
}
