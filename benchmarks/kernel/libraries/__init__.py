"""The solvers that are compared: one adapter per library, all with the same face."""

from __future__ import annotations

from benchmarks.kernel.libraries import larank_exact, larank_online, libsvm, sklearn_svc, sklearnex_svc
from benchmarks.kernel.libraries.larank_exact import EXACT
from benchmarks.kernel.libraries.larank_online import OURS
from benchmarks.kernel.libraries.solver import Solver

SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (
        *larank_online.SOLVERS,
        *larank_exact.SOLVERS,
        *sklearnex_svc.SOLVERS,
        *sklearn_svc.SOLVERS,
        *libsvm.SOLVERS,
    )
}

__all__ = ["EXACT", "OURS", "SOLVERS"]
