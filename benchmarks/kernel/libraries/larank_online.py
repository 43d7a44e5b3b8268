"""larank's `LaRankClassifier`: one pass over the examples, in an order drawn from a fixed seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.kernel.libraries.solver import CRAMMER_SINGER, Fit, Objectives, TrainingSet
from benchmarks.kernel.products import block_shapes
from benchmarks.stopwatch import Stopwatch


@dataclass(frozen=True)
class LarankOnline:
    name: str
    requires: str = "larank.kernel.larank"
    copies_input: bool = False

    def fit(self, data: TrainingSet, threads: int) -> Fit:
        """Without the certificate: a rival does not compute its objective either."""
        model = _model(data, threads, certify=False)
        with Stopwatch() as watch:
            model.fit(data.X, data.y)
        result = model.result_
        extra = {
            "kernel_values": int(result.kernel_values),
            "operations": dict(result.operations),
            "breakdown": dict(result.breakdown),
        }
        blocks = block_shapes(result, len(data.y), model.batch_size)
        return Fit(
            model.predict,
            watch,
            result.support_patterns,
            result.support_vectors,
            lambda: Objectives(CRAMMER_SINGER, None, float(result.dual)),
            blocks,
            extra,
        )

    def certify(self, data: TrainingSet, threads: int) -> dict[str, float]:
        """Train once more, with the certificate: its seconds, and the objectives it finds."""
        result = _model(data, threads, certify=True).fit(data.X, data.y).result_
        return {
            "seconds": float(result.breakdown["certificate"]),
            "primal": float(result.primal),
            "dual": float(result.dual),
        }


def _model(data: TrainingSet, threads: int, certify: bool) -> Any:
    from larank.kernel.larank import LaRankClassifier

    return LaRankClassifier(
        "rbf",
        C=data.parameters.C,
        gamma=data.parameters.gamma,
        certify=certify,
        n_jobs=threads,
        random_state=0,
    )


OURS = LarankOnline("larank")
"""The solver every ratio refers to."""

SOLVERS = (OURS,)
