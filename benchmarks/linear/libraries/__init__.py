"""The solvers that are compared: one adapter per library, all with the same face."""

from __future__ import annotations

from benchmarks.linear.libraries import larank_sdm, liblinear, sklearn_linearsvc, snapml
from benchmarks.linear.libraries.solver import Solver

SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (
        *larank_sdm.SOLVERS,
        *liblinear.SOLVERS,
        *sklearn_linearsvc.SOLVERS,
        *snapml.SOLVERS,
    )
}

OURS = {"crammer-singer": "larank", "one-vs-rest": "larank-ovr"}
"""The solver every ratio refers to, by formulation."""
