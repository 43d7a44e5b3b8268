"""The best known optimum of a linear problem: between a dual objective and the best primal objective found.

The lower end is the dual objective of larank's certificate at a tight gap. LIBLINEAR at a tight tolerance
confirms it from above, and so does every other solution: one that fell below the bound would prove it wrong,
and `check` would say so.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from studies.measure import TimeoutExceededError
from studies.rivals import objectives
from studies.rivals.contest import Entrant
from studies.rivals.libraries import LINEAR, installed
from studies.rivals.linearruns import LinearRun, Problem, measure_fit, stored

STORE = Path(__file__).with_name("optima.json")
OURS = {"crammer-singer": "larank", "one-vs-rest": "larank-ovr"}
"""The solver every ratio refers to, by formulation."""
TIGHT_GAP = 1e-5
CONFIRMED_BY = {"crammer-singer": ("liblinear-s4", 1e-3), "one-vs-rest": ("liblinear-s3", 1e-3)}
ROUNDING = 1e-9


@dataclass(frozen=True)
class Optimum:
    """The optimum lies in [lower, upper]; `confirmed` is LIBLINEAR's objective, None if it took too long."""

    C: float
    lower: float
    upper: float
    confirmed: float | None

    def suboptimality(self, primal: float) -> float:
        """Relative distance to the lower end: at least the true distance, measured alike for all."""
        return primal / self.lower - 1.0

    def check(self, primal: float, solver: str) -> None:
        """No solution can be below the lower end."""
        if primal < self.lower * (1.0 - ROUNDING):
            raise ArithmeticError(f"{solver} reached {primal!r}, below the bound {self.lower!r}: the bound is wrong")


def find(problem: Problem, formulation: str, limit: float | None) -> Optimum:
    """Read the optimum from the store, or compute and store it."""
    known = json.loads(STORE.read_text()) if STORE.exists() else {}
    entry = known.get(problem.name, {}).get(formulation)
    if entry is None or entry["C"] != problem.C:
        entry = asdict(compute(problem, formulation, limit))
        known.setdefault(problem.name, {})[formulation] = entry
        STORE.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
    return Optimum(**entry)


def compute(problem: Problem, formulation: str, limit: float | None) -> Optimum:
    """Without the store."""

    def primal(fit: LinearRun) -> float:
        return objectives.primal(formulation, fit.W, problem.X_train, problem.y_train, problem.C)

    with stored(problem, "float64") as folder:
        ours = measure_fit(folder, Entrant(OURS[formulation]), TIGHT_GAP, None)
        confirmed = None
        name, tolerance = CONFIRMED_BY[formulation]
        if installed(LINEAR[name]):
            try:
                confirmed = primal(measure_fit(folder, Entrant(name), tolerance, limit))
            except TimeoutExceededError:
                confirmed = None
    upper = min(value for value in (primal(ours), confirmed) if value is not None)
    optimum = Optimum(problem.C, ours.extra["dual"], upper, confirmed)
    optimum.check(upper, name)
    return optimum
