"""scikit-learn-intelex's `SVC`: oneDAL's solver, one-versus-one, with threads, in the precision of the data."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.kernel.libraries.sklearn_svc import fit_svc
from benchmarks.kernel.libraries.solver import Fit, TrainingSet
from benchmarks.rbf import svc_settings


@dataclass(frozen=True)
class SklearnexSvc:
    name: str
    requires: str = "sklearnex.svm"
    copies_input: bool = False

    def fit(self, data: TrainingSet, threads: int) -> Fit:
        from sklearnex.svm import SVC

        return fit_svc(SVC(**svc_settings(data.parameters), n_jobs=threads), data)


SOLVERS = (SklearnexSvc("intelex"),)
