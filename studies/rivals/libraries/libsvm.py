"""LIBSVM (libsvm-official): C-SVC, one-versus-one, one thread.

Only `svm_train` is timed. The conversion of the training set to LIBSVM's nodes, by Python code of the package, is
reported apart. `svm_predict` converts example by example, so there it counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.rivals.libraries.solver import (
    BINARY,
    CACHE_MEGABYTES,
    CSR,
    ONE_VS_ONE,
    KernelFit,
    Objectives,
    Solver,
    TrainingSet,
)
from studies.rivals.objectives import pair_by_pair, sum_of_binary_duals
from studies.trial import Stopwatch


@dataclass(frozen=True)
class Libsvm(Solver):
    requires: str = "libsvm.svmutil"
    copies_input: bool = True

    def forms(self, problem: Any) -> Sequence[str]:
        """Inside it is sparse, whatever it is given."""
        return [form for form in problem.forms if form == CSR] or problem.forms

    def fit(self, data: TrainingSet, threads: int) -> KernelFit:
        from libsvm.svmutil import svm_parameter, svm_predict, svm_problem, svm_train

        options = f"-s 0 -t 2 -c {data.C!r} -g {data.gamma!r} -m {CACHE_MEGABYTES} -q"
        with Stopwatch() as conversion:
            nodes = svm_problem(data.y.astype(np.float64), data.X)
        with Stopwatch() as watch:
            model = svm_train(nodes, svm_parameter(options))

        def predict(X: Any) -> NDArray[Any]:
            labels, _, _ = svm_predict([], X, model, "-q")
            return np.asarray(labels)

        def objectives() -> Objectives:
            support = np.array(model.get_sv_indices()) - 1
            classes = np.array(model.get_labels())  # numbered in the order in which LIBSVM meets them
            numbers = np.argsort(classes)[np.searchsorted(np.sort(classes), data.y[support])]
            dual = sum_of_binary_duals(data.X[support], pair_by_pair(_coefficients(model), numbers), data.gamma)
            return Objectives(BINARY if len(classes) == 2 else ONE_VS_ONE, None, dual)

        extra = {"conversion_cpu": conversion.cpu, "conversion_wall": conversion.wall}
        vectors = int(np.count_nonzero(_coefficients(model)))
        return KernelFit(watch, predict, model.l, vectors, objectives, extra=extra)


def _coefficients(model: Any) -> NDArray[np.float64]:
    """The (classes - 1) x (support vectors) that LIBSVM stores."""
    return np.array([np.ctypeslib.as_array(model.sv_coef[row], (model.l,)) for row in range(model.nr_class - 1)])


SVC = Libsvm("libsvm")
