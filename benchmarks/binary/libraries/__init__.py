"""The solvers that are compared: one adapter per library, all with the same face."""

from __future__ import annotations

from benchmarks.binary.libraries import larank_lasvm, libsvm, sklearn_svc, sklearnex_svc
from benchmarks.binary.libraries.larank_lasvm import OURS
from benchmarks.binary.libraries.solver import Solver

SOLVERS: dict[str, Solver] = {
    solver.name: solver for solver in (OURS, *sklearnex_svc.SOLVERS, *sklearn_svc.SOLVERS, *libsvm.SOLVERS)
}

__all__ = ["OURS", "SOLVERS", "larank_lasvm"]
