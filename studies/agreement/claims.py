"""What must hold of every run: the certificate bounds the optimum, and a run that says it is done is."""

from __future__ import annotations

import math
from collections.abc import Iterator

from larank import Result
from studies.agreement.machines import Interval, Machine, Solution

EXCUSED = 10.0
"""How far above its tolerance a run may end where it says that the numbers allow no more."""
_ROUNDING = 1e-9  # of an objective
_INFEASIBLE = 1e-9  # of the largest cost

Claim = tuple[bool, str]
"""Whether it holds, and what is to be said if it does not."""


def broken(solution: Solution, result: Result, machine: Machine, interval: Interval) -> list[str]:
    """What is claimed in vain, one line each; distances are relative to the optimum."""
    rounding = interval.rounding + _ROUNDING * abs(interval.upper)
    if solution.coefficients is not None:
        rounding += machine.rounding(solution.coefficients)
    if (
        result.status == "precision"
        and math.isnan(result.dual)
        and interval.rounding > machine.problem.tol * interval.upper
    ):
        return []  # beyond float64: the bound was withdrawn, with a warning
    judged = machine, interval, rounding
    claims = [*_certificate(solution, result, *judged), *_status(solution, result, *judged), *_reference(*judged)]
    return [said for holds, said in claims if not holds]


def _certificate(
    solution: Solution, result: Result, machine: Machine, interval: Interval, rounding: float
) -> Iterator[Claim]:
    """Whatever ended training, primal >= optimum >= dual, and both are those of the model."""

    def apart(a: float, b: float) -> str:
        return f"{abs(a - b) / max(abs(interval.optimum), 1e-300):.1e}"

    is_finite = math.isfinite(result.primal) and math.isfinite(result.dual)
    yield is_finite, f"primal {result.primal}, dual {result.dual}"
    yield (
        result.primal >= interval.lower - rounding,
        f"primal below the optimum by {apart(result.primal, interval.lower)}",
    )
    yield result.dual <= interval.upper + rounding, f"dual above the optimum by {apart(result.dual, interval.upper)}"
    yield result.gap >= -rounding, f"the gap is negative: {result.relative_gap:.1e}"
    primal = machine.primal(solution)
    excess = primal - result.primal if machine.is_mean else abs(primal - result.primal)
    is_primal = excess <= rounding + _ROUNDING * abs(primal)
    yield is_primal, f"primal is not that of the decision values, by {apart(primal, result.primal)}"
    if solution.coefficients is None or not machine.has_dual:
        return
    dual, outside = machine.dual(solution.coefficients), machine.infeasibility(solution.coefficients)
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
    if result.status == "precision":
        is_near = result.gap <= EXCUSED * tol * abs(result.primal) + interval.rounding  # what other coefficients reach
        yield is_near, f"precision at a gap of {result.relative_gap / tol:.2g} tol"


def _reference(machine: Machine, interval: Interval, rounding: float) -> Iterator[Claim]:
    """The general solver is sure, and the other libraries do not contradict it."""
    is_sure = interval.upper - interval.lower <= machine.problem.tol / 2 * interval.upper + rounding
    yield is_sure, f"the reference is not sure: {interval.width:.1e}"
    for name, (value, kind) in interval.witnesses.items():
        is_inside = value <= interval.upper + rounding if kind == "dual" else value >= interval.lower - rounding
        yield is_inside, f"the reference disagrees with {name}: {kind} {value:.9g}, optimum {interval.optimum:.9g}"
