"""The loosest tolerance with which a linear solver meets the target on a problem."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from studies.measure import TimeoutExceededError
from studies.rivals import objectives
from studies.rivals.contest import Entrant
from studies.rivals.libraries.solver import LinearSolver
from studies.rivals.linearruns import LinearRun, Problem, measure_fit
from studies.rivals.optimum import Optimum
from studies.study import Say

STRIDE = 3  # first every third tolerance, then those skipped before the first that sufficed


@dataclass(frozen=True)
class Attempt:
    """One run: the tolerance asked for, the objective it gave, and whether that is good enough."""

    tolerance: float
    primal: float
    suboptimality: float
    reached: bool
    run: LinearRun


@dataclass(frozen=True)
class Contestant:
    """One solver on one problem, whose training set is stored in `folder`."""

    entrant: Entrant
    solver: LinearSolver
    problem: Problem
    optimum: Optimum
    folder: Path
    target: float
    limit: float
    say: Say

    def run(self, tolerance: float, limit: float | None = None) -> LinearRun:
        """Train once."""
        return measure_fit(self.folder, self.entrant, tolerance, limit)

    def attempt(self, tolerance: float) -> Attempt | None:
        """Train and evaluate once; None when that took too long."""
        label = f"{self.problem.name}: {self.entrant} at {tolerance:g}"
        try:
            run = self.run(tolerance, self.limit)
        except TimeoutExceededError as exceeded:
            self.say(f"{label} {exceeded}")
            return None
        X, y, C = self.problem.X_train, self.problem.y_train, self.problem.C
        primal = objectives.primal(self.solver.formulation, run.W, X, y, C)
        self.optimum.check(primal, self.entrant.name)
        distance = self.optimum.suboptimality(primal)
        self.say(f"{label} {run.cpu:.2f} s, {distance:.2e} off")
        return Attempt(tolerance, primal, distance, distance <= self.target, run)


def sweep(contestant: Contestant) -> Attempt | None:
    """Tighten the tolerance until the target is met or a run exceeds the limit; None if the first does."""
    tolerances = contestant.solver.tolerances
    missed: Attempt | None = None
    for position in range(0, len(tolerances), STRIDE):
        latest = contestant.attempt(tolerances[position])
        if latest is None or latest.reached:
            break
        missed = latest
    else:
        return missed
    for tolerance in tolerances[max(0, position - STRIDE + 1) : position]:
        between = contestant.attempt(tolerance)
        if between is None or between.reached:
            return between or latest or missed
        missed = between
    return latest or missed
