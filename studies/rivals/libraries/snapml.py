"""IBM Snap ML's `SupportVectorMachine`: hinge loss, solved in the dual, one-versus-rest.

It has no Crammer-Singer formulation, so it stands among the one-versus-rest solvers and is judged by their
objective. Its `regularizer` multiplies 1/2 |w|^2 and its losses are summed, so it equals 1 / C. One thread,
no GPU. It converts the data to float32 inside `fit`.
"""

from __future__ import annotations

from dataclasses import dataclass

from studies.rivals.libraries.solver import LinearFit, LinearSolver, TrainingSet, grid, linear_fit


@dataclass(frozen=True)
class SnapMl(LinearSolver):
    requires: str = "snapml"
    formulation: str = "one-vs-rest"
    tolerances: tuple[float, ...] = grid(1e-1, 1e-6)

    def fit(self, data: TrainingSet, tolerance: float) -> LinearFit:
        from snapml import SupportVectorMachine

        settings = {"tol": tolerance, "max_iter": 100_000, "n_jobs": 1, "fit_intercept": False, "random_state": 0}
        model = SupportVectorMachine(loss="hinge", regularizer=1.0 / data.C, **settings)
        return linear_fit(model, data)


LINEAR = (SnapMl("snapml"),)
