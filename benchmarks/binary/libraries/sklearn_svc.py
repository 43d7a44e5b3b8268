"""scikit-learn's `SVC`, a LIBSVM for dense data and one for CSR: one thread, in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.binary.libraries.solver import Fit, TrainingSet
from benchmarks.binary.problems import CSR, Problem
from benchmarks.rbf import svc_settings
from benchmarks.stopwatch import Stopwatch

SPARSE = 0.05
"""Share of values that are not zero, up to which nobody would think of dense rows."""


def fit_svc(model: Any, data: TrainingSet) -> Fit:
    """Train anything with the face of `SVC`."""
    with Stopwatch() as watch:
        model.fit(data.X, data.y)
    found = model.dual_coef_
    coefficients = found.toarray() if sparse.issparse(found) else found
    return Fit(model.predict, watch, np.asarray(model.support_), np.asarray(coefficients, dtype=np.float64)[0])


@dataclass(frozen=True)
class SklearnSvc:
    name: str
    requires: str = "sklearn.svm"
    copies_input: bool = False
    dtype: str = "float64"

    def forms(self, problem: Problem) -> Sequence[str]:
        """Rows that are nearly empty take ten times as long when dense."""
        return [form for form in problem.forms if form == CSR or problem.density > SPARSE]

    def fit(self, data: TrainingSet, threads: int) -> Fit:
        from sklearn.svm import SVC

        return fit_svc(SVC(**svc_settings(data.parameters)), data)


SOLVERS = (SklearnSvc("svc"),)
