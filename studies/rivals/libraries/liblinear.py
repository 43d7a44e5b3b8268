"""LIBLINEAR (liblinear-official): `-s 4` is Crammer-Singer, `-s 3` one-versus-rest with the hinge loss, `-s 1` squared.

Only `train` is timed. The conversion to LIBLINEAR's nodes, by Python code of the package, is reported apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from studies.rivals.libraries.solver import GradientSet, GradientSolver, LinearFit, LinearSolver, TrainingSet, grid
from studies.trial import Stopwatch


@dataclass(frozen=True)
class Liblinear(LinearSolver):
    requires: str = "liblinear.liblinearutil"
    copies_input: bool = True
    tolerances: tuple[float, ...] = grid(1.0, 1e-4)
    option: int = 4

    def fit(self, data: TrainingSet, tolerance: float) -> LinearFit:
        return _trained(data, self.option, tolerance, _weights)


@dataclass(frozen=True)
class LiblinearDual(GradientSolver):
    """Two classes, -1 and +1, by dual coordinate descent."""

    requires: str = "liblinear.liblinearutil"
    copies_input: bool = True
    dtype: str = "float64"
    efforts: tuple[float, ...] = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
    counts_epochs: bool = False
    option: int = 1

    def fit(self, data: GradientSet, effort: float) -> LinearFit:
        rows = TrainingSet(sparse.csr_matrix(data.X), data.y, data.cost)
        return _trained(rows, self.option, effort, _single_weights)


def _trained(data: TrainingSet, option: int, tolerance: float, weights: Callable[[Any], Any]) -> LinearFit:
    from liblinear.liblinearutil import problem, train

    with Stopwatch() as conversion:
        nodes = problem(data.y, data.X)
    with Stopwatch() as watch:
        model = train(nodes, f"-s {option} -c {data.C!r} -e {tolerance!r} -B -1 -q")
    extra = {"conversion_cpu": conversion.cpu, "conversion_wall": conversion.wall}
    return LinearFit(watch, lambda: weights(model), extra=extra)


def _single_weights(model: Any) -> NDArray[np.float64]:
    """Those of two classes, for +1: LIBLINEAR's are for the class that comes first."""
    sign = 1.0 if model.get_labels()[0] == 1 else -1.0
    w: NDArray[np.float64] = sign * np.ctypeslib.as_array(model.w, shape=(1, model.get_nr_feature()))
    return w


def _weights(model: Any) -> NDArray[np.float64]:
    """LIBLINEAR stores W by feature and numbers the classes in their order of appearance."""
    classes, features = model.get_nr_class(), model.get_nr_feature()
    by_feature = np.ctypeslib.as_array(model.w, shape=(features, classes))
    W = np.empty((classes, features))
    W[model.get_labels()] = by_feature.T
    return W


LINEAR = (Liblinear("liblinear-s4"), Liblinear("liblinear-s3", formulation="one-vs-rest", option=3))
GRADIENT = (
    LiblinearDual("liblinear-s1", losses=("squared_hinge",)),
    LiblinearDual("liblinear-s3", losses=("hinge",), option=3),
)
