"""scikit-learn-intelex's `SVC`: oneDAL's solver, with threads, in the precision of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.binary.libraries.sklearn_svc import fit_svc
from benchmarks.binary.libraries.solver import Fit, TrainingSet
from benchmarks.binary.problems import Problem
from benchmarks.rbf import svc_settings


@dataclass(frozen=True)
class SklearnexSvc:
    name: str
    requires: str = "sklearnex.svm"
    copies_input: bool = False
    dtype: str = "float32"

    def forms(self, problem: Problem) -> Sequence[str]:
        return problem.forms

    def fit(self, data: TrainingSet, threads: int) -> Fit:
        from sklearnex.svm import SVC

        return fit_svc(SVC(**svc_settings(data.parameters), n_jobs=threads), data)


SOLVERS = (SklearnexSvc("intelex"),)
