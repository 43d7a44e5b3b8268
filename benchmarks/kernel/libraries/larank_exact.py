"""larank's `MulticlassSVC`: the problem of `larank_online`, solved until the duality gap is small.

The gap is computed over all examples before training ends, so its time is in that of training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.kernel.libraries.solver import CRAMMER_SINGER, Fit, Objectives, TrainingSet
from benchmarks.kernel.products import equal_blocks
from benchmarks.stopwatch import Stopwatch


@dataclass(frozen=True)
class CostPath:
    """Models for several values of C: the time of all of them together, and what each says."""

    seconds: Stopwatch
    extra: dict[str, Any]


@dataclass(frozen=True)
class LarankExact:
    name: str
    requires: str = "larank.kernel.exact"
    copies_input: bool = False
    tol: float = 1e-3
    memory_limit: float = 4e9

    def within(self, memory_limit: float) -> LarankExact:
        """The same with so many bytes."""
        return replace(self, memory_limit=memory_limit)

    def fit(self, data: TrainingSet, threads: int) -> Fit:
        model = self._model(data, threads)
        with Stopwatch() as watch:
            model.fit(data.X, data.y)
        result = model.result_
        extra = {
            "status": result.status,
            "kernel_values": int(result.kernel_values),
            "operations": dict(result.operations),
            "breakdown": dict(result.breakdown),
        }
        return Fit(
            model.predict,
            watch,
            result.support_patterns,
            result.support_vectors,
            lambda: Objectives(CRAMMER_SINGER, float(result.primal), float(result.dual)),
            equal_blocks(result.kernel_values, result.support_patterns),
            extra,
        )

    def path(self, data: TrainingSet, threads: int, costs: Sequence[float]) -> CostPath:
        """One model per value of C, each started from the one before."""
        model = self._model(data, threads)
        with Stopwatch() as watch:
            models = model.path(data.X, data.y, costs)
        steps = [
            {
                "C": float(step.C),
                "seconds": float(step.result_.seconds),
                "dual": float(step.result_.dual),
                "relative_gap": float(step.result_.relative_gap),
                "support_patterns": int(step.result_.support_patterns),
            }
            for step in models
        ]
        largest = max(models, key=lambda step: step.C)  # the last one trained, which tells of all
        return CostPath(watch, {"steps": steps, "breakdown": dict(largest.result_.breakdown)})

    def _model(self, data: TrainingSet, threads: int) -> Any:
        from larank.kernel.exact import MulticlassSVC

        return MulticlassSVC(
            "rbf",
            C=data.parameters.C,
            gamma=data.parameters.gamma,
            tol=self.tol,
            memory_limit=self.memory_limit,
            n_jobs=threads,
            random_state=0,
        )


EXACT = LarankExact("larank-exact")

SOLVERS = (EXACT,)
