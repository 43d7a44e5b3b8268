"""larank's sequential dual method, stopped on the relative duality gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.linear.libraries.solver import Fit, TrainingSet, grid
from benchmarks.stopwatch import Stopwatch


@dataclass(frozen=True)
class LarankSdm:
    name: str
    formulation: str
    tolerances: tuple[float, ...] = grid(1e-1, 1e-6)
    requires: str = "larank.linear.sdm"
    copies_input: bool = False

    def fit(self, data: TrainingSet, tolerance: float) -> Fit:
        from larank.linear.sdm import LinearMulticlassSVC

        model = LinearMulticlassSVC(
            self.formulation, C=data.C, tol=tolerance, stop="gap", fit_intercept=False, random_state=0
        )
        with Stopwatch() as watch:
            model.fit(data.X, data.y)
        result = model.result_
        extra = {"primal": result.primal, "dual": result.dual, "iterations": result.iterations}
        return Fit(lambda: np.asarray(model.coef_, dtype=np.float64), watch, extra)


SOLVERS = (LarankSdm("larank", "crammer-singer"), LarankSdm("larank-ovr", "one-vs-rest"))
