"""The solvers that are compared: one adapter per library, all with the same face."""

from __future__ import annotations

import importlib.util

from benchmarks.libraries import larank_sdm, liblinear, sklearn_linearsvc, snapml
from benchmarks.libraries.solver import Solver

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


def installed(solver: Solver) -> bool:
    """Whether the library this adapter drives can be imported."""
    return importlib.util.find_spec(solver.requires.partition(".")[0]) is not None
