"""LIBLINEAR (liblinear-official): `-s 4` is Crammer-Singer, `-s 3` one-versus-rest with the hinge loss.

Only `train` is timed. The conversion to LIBLINEAR's nodes, by Python code of the package, is reported apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.rivals.libraries.solver import LinearFit, LinearSolver, TrainingSet, grid
from studies.trial import Stopwatch


@dataclass(frozen=True)
class Liblinear(LinearSolver):
    requires: str = "liblinear.liblinearutil"
    copies_input: bool = True
    tolerances: tuple[float, ...] = grid(1.0, 1e-4)
    option: int = 4

    def fit(self, data: TrainingSet, tolerance: float) -> LinearFit:
        from liblinear.liblinearutil import problem, train

        with Stopwatch() as conversion:
            nodes = problem(data.y, data.X)
        with Stopwatch() as watch:
            model = train(nodes, f"-s {self.option} -c {data.C!r} -e {tolerance!r} -B -1 -q")
        extra = {"conversion_cpu": conversion.cpu, "conversion_wall": conversion.wall}
        return LinearFit(lambda: _weights(model), watch, extra)


def _weights(model: Any) -> NDArray[np.float64]:
    """LIBLINEAR stores W by feature and numbers the classes in their order of appearance."""
    classes, features = model.get_nr_class(), model.get_nr_feature()
    by_feature = np.ctypeslib.as_array(model.w, shape=(features, classes))
    W = np.empty((classes, features))
    W[model.get_labels()] = by_feature.T
    return W


LINEAR = (Liblinear("liblinear-s4"), Liblinear("liblinear-s3", formulation="one-vs-rest", option=3))
