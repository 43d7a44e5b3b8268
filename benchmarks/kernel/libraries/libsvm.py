"""LIBSVM (libsvm-official): C-SVC, one-versus-one, one thread.

Only `svm_train` is timed. The conversion of the training set to LIBSVM's nodes, by Python code of the package, is
reported apart. `svm_predict` converts example by example, so there it counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.binaryduals import sum_of_binary_duals
from benchmarks.kernel.libraries.solver import ONE_VS_ONE, Fit, Objectives, TrainingSet
from benchmarks.kernel.objectives import pair_by_pair
from benchmarks.rbf import libsvm_options
from benchmarks.stopwatch import Stopwatch


@dataclass(frozen=True)
class Libsvm:
    name: str
    requires: str = "libsvm.svmutil"
    copies_input: bool = True

    def fit(self, data: TrainingSet, threads: int) -> Fit:
        from libsvm.svmutil import svm_parameter, svm_predict, svm_problem, svm_train

        with Stopwatch() as conversion:
            nodes = svm_problem(data.y, data.X)
        with Stopwatch() as watch:
            model = svm_train(nodes, svm_parameter(libsvm_options(data.parameters)))

        def predict(X: NDArray[np.float32]) -> NDArray[Any]:
            labels, _, _ = svm_predict([], X, model, "-q")
            return np.asarray(labels)

        def objectives() -> Objectives:
            support = np.array(model.get_sv_indices()) - 1
            order = np.argsort(model.get_labels())  # LIBSVM numbers classes in the order in which it meets them
            columns = pair_by_pair(_coefficients(model), order[data.y[support]])
            return Objectives(ONE_VS_ONE, None, sum_of_binary_duals(data.X[support], columns, data.parameters.gamma))

        extra = {"conversion_cpu": conversion.cpu, "conversion_wall": conversion.wall}
        return Fit(predict, watch, model.l, int(np.count_nonzero(_coefficients(model))), objectives, extra=extra)


def _coefficients(model: Any) -> NDArray[np.float64]:
    """The (classes - 1) x (support vectors) that LIBSVM stores."""
    return np.array([np.ctypeslib.as_array(model.sv_coef[row], (model.l,)) for row in range(model.nr_class - 1)])


SOLVERS = (Libsvm("libsvm"),)
