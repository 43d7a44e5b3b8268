"""scikit-learn-intelex's `SVC`: oneDAL's solver, one-versus-one, with threads, in the precision of the data."""

from __future__ import annotations

from dataclasses import dataclass

from studies.rivals.libraries.scikit_learn import fit_svc, svc_settings
from studies.rivals.libraries.solver import KernelFit, Solver, TrainingSet


@dataclass(frozen=True)
class IntelexSvc(Solver):
    requires: str = "sklearnex.svm"
    dtype: str = "float32"

    def fit(self, data: TrainingSet, threads: int) -> KernelFit:
        from sklearnex.svm import SVC

        return fit_svc(SVC(**svc_settings(data), n_jobs=threads), data)


SVC = IntelexSvc("intelex")
