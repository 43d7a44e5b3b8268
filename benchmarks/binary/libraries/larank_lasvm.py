"""larank's `LaSVMClassifier`: one epoch in an order drawn from a fixed seed, finishing, and the certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.binary.libraries.solver import Fit, TrainingSet
from benchmarks.binary.problems import Problem
from benchmarks.stopwatch import Stopwatch


@dataclass(frozen=True)
class LarankLasvm:
    name: str
    requires: str = "larank.kernel.lasvm"
    copies_input: bool = False
    dtype: str = "float32"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def having(self, **settings: Any) -> LarankLasvm:
        """The same with other parameters of the estimator."""
        return replace(self, settings={**self.settings, **settings})

    def forms(self, problem: Problem) -> Sequence[str]:
        return problem.forms

    def fit(self, data: TrainingSet, threads: int) -> Fit:
        model = self.model(data, threads)
        with Stopwatch() as watch:
            model.fit(data.X, data.y)
        result = model.result_
        extra = {
            "status": result.status,
            "primal": float(result.primal),
            "dual": float(result.dual),
            "kernel_values": int(result.kernel_values),
            "most_patterns": max([result.support_patterns, *(point.support_patterns for point in result.history)]),
            "operations": dict(result.operations),
            "breakdown": dict(result.breakdown),
        }
        coefficients = np.asarray(model.dual_coef_.toarray(), dtype=np.float64)[:, 0]
        return Fit(model.predict, watch, np.asarray(model.support_), coefficients, extra)

    def model(self, data: TrainingSet, threads: int) -> Any:
        """Untrained."""
        from larank.kernel.lasvm import LaSVMClassifier

        given = {"C": data.parameters.C, "gamma": data.parameters.gamma, "n_jobs": threads, "random_state": 0}
        return LaSVMClassifier("rbf", **{**given, **self.settings})


OURS = LarankLasvm("larank")
"""The solver every ratio refers to."""
