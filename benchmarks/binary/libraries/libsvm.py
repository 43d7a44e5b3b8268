"""LIBSVM (libsvm-official): C-SVC, one thread.

Only `svm_train` is timed. The conversion of the training set to LIBSVM's nodes, by Python code of the package, is
reported apart. `svm_predict` converts example by example, so there it counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.binary.libraries.solver import Fit, TrainingSet
from benchmarks.binary.problems import CSR, Problem
from benchmarks.rbf import libsvm_options
from benchmarks.stopwatch import Stopwatch


@dataclass(frozen=True)
class Libsvm:
    name: str
    requires: str = "libsvm.svmutil"
    copies_input: bool = True
    dtype: str = "float64"

    def forms(self, problem: Problem) -> Sequence[str]:
        """Inside it is sparse, whatever it is given."""
        return [form for form in problem.forms if form == CSR] or problem.forms

    def fit(self, data: TrainingSet, threads: int) -> Fit:
        from libsvm.svmutil import svm_parameter, svm_predict, svm_problem, svm_train

        with Stopwatch() as conversion:
            nodes = svm_problem(data.y.astype(np.float64), data.X)
        with Stopwatch() as watch:
            model = svm_train(nodes, svm_parameter(libsvm_options(data.parameters)))

        def predict(X: Any) -> NDArray[Any]:
            labels, _, _ = svm_predict([], X, model, "-q")
            return np.asarray(labels)

        coefficients = np.ctypeslib.as_array(model.sv_coef[0], (model.l,)).copy()
        extra = {"conversion_cpu": conversion.cpu, "conversion_wall": conversion.wall}
        return Fit(predict, watch, np.array(model.get_sv_indices()) - 1, coefficients, extra)


SOLVERS = (Libsvm("libsvm"),)
