"""LIBSVM (libsvm-official): C-SVC, one-versus-one, one thread.

Only `svm_train` is timed. The conversion of the training set to LIBSVM's nodes, by Python code of the package, is
reported apart. `svm_predict` converts example by example, so there it counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.kernel.libraries.solver import CACHE_MEGABYTES, Fit, TrainingSet
from benchmarks.stopwatch import Stopwatch


@dataclass(frozen=True)
class Libsvm:
    name: str
    requires: str = "libsvm.svmutil"
    copies_input: bool = True

    def fit(self, data: TrainingSet, threads: int) -> Fit:
        from libsvm.svmutil import svm_parameter, svm_predict, svm_problem, svm_train

        C, gamma = data.parameters.C, data.parameters.gamma
        with Stopwatch() as conversion:
            nodes = svm_problem(data.y, data.X)
        with Stopwatch() as watch:
            model = svm_train(nodes, svm_parameter(f"-s 0 -t 2 -c {C!r} -g {gamma!r} -m {CACHE_MEGABYTES} -q"))

        def predict(X: NDArray[np.float32]) -> NDArray[Any]:
            labels, _, _ = svm_predict([], X, model, "-q")
            return np.asarray(labels)

        extra = {"conversion_cpu": conversion.cpu, "conversion_wall": conversion.wall}
        return Fit(predict, watch, model.l, _coefficients(model), extra=extra)


def _coefficients(model: Any) -> int:
    """How many are not zero, of the (classes - 1) x (support vectors) that LIBSVM stores."""
    rows = (np.ctypeslib.as_array(model.sv_coef[row], (model.l,)) for row in range(model.nr_class - 1))
    return sum(int(np.count_nonzero(row)) for row in rows)


SOLVERS = (Libsvm("libsvm"),)
