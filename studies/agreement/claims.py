"""What must hold of every run: the certificate bounds the optimum, and a run that says it is done is."""

from __future__ import annotations

import math
from collections.abc import Iterator

from larank import Result
from studies.agreement.machines import EPS, Interval, Machine, Solution

EXCUSED = 10.0
"""How far above its tolerance a run may end where it says that the numbers allow no more."""
_INFEASIBLE = 1e-9  # of the largest cost
_CLOSE = {"float64": 1e-9, "float32": 1e-6}  # relative difference of two ways to one objective

_LINEAR = ("LinearMulticlassSVC", "PrimalMulticlassSVC", "LinearSGDClassifier")
"""Estimators whose model is weights, not coefficients."""
_ROUNDINGS = 64.0
"""Units of rounding by which a sum of products may be off."""

Claim = tuple[bool, str]
"""Whether it holds, and what is to be said if it does not."""


def unsound(solution: Solution, result: Result, machine: Machine, interval: Interval) -> list[str]:
    """Return the broken parts of the rule that holds for every estimator, every precision and every scale.

    The primal objective is that of the published model, in float64; of a linear model, it is not above that of w = 0.
    The dual objective is not negative, and a lower bound of what any model has. A bound that was withdrawn is NaN. What
    was not computed from scratch says that it is not exact. Training that converged reached its tolerance.
    """
    if not result.exact:
        return []
    primal, at_zero, tol = machine.primal(solution), machine.primal_at_zero(), machine.problem.tol
    rounding = _rounding(solution, machine, interval) + _CLOSE[machine.problem.dtype] * abs(primal)
    least = min(interval.upper, primal, at_zero)
    is_above_zero = machine.problem.estimator in _LINEAR and not result.primal <= at_zero * (1 + tol) + rounding
    has_not_converged = result.status == "converged" and result.relative_gap > tol * (1 + 1e-9)
    claims = [
        (
            abs(primal - result.primal) <= rounding,
            f"primal {result.primal:.9g}, but the published model has {primal:.9g}",
        ),
        (not is_above_zero, f"primal {result.primal:.9g}, but w = 0 has {at_zero:.9g}"),
        (not result.dual < 0, f"dual {result.dual:.9g} is negative"),
        (not result.dual > least + rounding, f"dual {result.dual:.9g}, but a model has {least:.9g}"),
        (not has_not_converged, f"converged at a gap of {result.relative_gap / tol:.2g} tol"),
    ]
    return [said for holds, said in claims if not holds]


def broken(solution: Solution, result: Result, machine: Machine, interval: Interval) -> list[str]:
    """What is claimed in vain, one line each; distances are relative to the optimum."""
    rounding = _rounding(solution, machine, interval)
    is_beyond = interval.rounding > machine.problem.tol * interval.upper
    if is_beyond and result.status == "precision" and math.isnan(result.dual):
        return []  # beyond float64: the bound was withdrawn, with a warning
    judged = machine, interval, rounding
    claims = [*_certificate(solution, result, *judged), *_status(solution, result, *judged), *_reference(*judged)]
    return [said for holds, said in claims if not holds]


def _rounding(solution: Solution, machine: Machine, interval: Interval) -> float:
    """Return how far rounding may move the objectives of a solution and of the reference."""
    rounding = interval.rounding + _CLOSE[machine.problem.dtype] * abs(interval.upper)
    if solution.sizes is not None:
        losses = float((machine.costs[:, None] * solution.sizes).sum())
        rounding += _ROUNDINGS * EPS * (losses * machine.problem.classes + solution.half_squared_norm)
    if solution.coefficients is not None:
        rounding += machine.rounding(solution.coefficients)
    return rounding


def _certificate(
    solution: Solution, result: Result, machine: Machine, interval: Interval, rounding: float
) -> Iterator[Claim]:
    """Whatever ended training, primal >= optimum >= dual, and both are those of the model."""

    def apart(a: float, b: float) -> str:
        return f"{abs(a - b) / max(abs(interval.optimum), 1e-300):.1e}"

    is_finite = math.isfinite(result.primal) and math.isfinite(result.dual)
    yield is_finite, f"primal {result.primal}, dual {result.dual}"
    below = f"primal below the optimum by {apart(result.primal, interval.lower)}"
    yield result.primal >= interval.lower - rounding, below
    yield result.dual <= interval.upper + rounding, f"dual above the optimum by {apart(result.dual, interval.upper)}"
    yield result.gap >= -rounding, f"the gap is negative: {result.relative_gap:.1e}"
    primal = machine.primal(solution)
    excess = primal - result.primal if machine.is_mean else abs(primal - result.primal)
    is_primal = excess <= rounding + _CLOSE[machine.problem.dtype] * abs(primal)
    yield is_primal, f"primal is not that of the decision values, by {apart(primal, result.primal)}"
    if solution.coefficients is None or not machine.has_dual:
        return
    dual, outside = machine.dual(solution.coefficients), machine.infeasibility(solution.coefficients)
    dual = max(dual, 0.0)  # the dual objective of no coefficients is a better bound than a negative one
    yield abs(dual - result.dual) <= rounding, f"dual is not that of the coefficients, by {apart(dual, result.dual)}"
    yield outside <= _INFEASIBLE, f"coefficients are outside of their bounds by {outside:.1e} of the largest cost"


def _status(
    solution: Solution, result: Result, machine: Machine, interval: Interval, rounding: float
) -> Iterator[Claim]:
    """What converged is within its tolerance, and what gives up is not far from it."""
    tol, primal = machine.problem.tol, machine.primal(solution)
    if result.status == "converged":
        yield result.relative_gap <= tol * (1 + 1e-9), f"converged at a gap of {result.relative_gap / tol:.2g} tol"
        above = primal - interval.upper
        is_within = above <= tol * abs(primal) + rounding
        yield is_within, f"converged at {above / (tol * abs(primal) or 1.0):.2g} tol above the optimum"
    if result.status == "precision" and machine.problem.dtype == "float64":
        is_near = result.gap <= EXCUSED * tol * abs(result.primal) + interval.rounding  # what other coefficients reach
        yield is_near, f"precision at a gap of {result.relative_gap / tol:.2g} tol"


def _reference(machine: Machine, interval: Interval, rounding: float) -> Iterator[Claim]:
    """The general solver is sure, and the other libraries do not contradict it."""
    is_sure = interval.upper - interval.lower <= machine.problem.tol / 2 * interval.upper + rounding
    yield is_sure, f"the reference is not sure: {interval.width:.1e}"
    for name, (value, kind) in interval.witnesses.items():
        is_inside = value <= interval.upper + rounding if kind == "dual" else value >= interval.lower - rounding
        yield is_inside, f"the reference disagrees with {name}: {kind} {value:.9g}, optimum {interval.optimum:.9g}"
