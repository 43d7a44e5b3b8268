"""The taggers that are compared: one adapter per library, all with the same face."""

from __future__ import annotations

from benchmarks.sequence.libraries import crfsuite, larank_tagger
from benchmarks.sequence.libraries.solver import Solver

OURS = larank_tagger.SOLVERS
SOLVERS: dict[str, Solver] = {solver.name: solver for solver in (*OURS, *crfsuite.SOLVERS)}

__all__ = ["OURS", "SOLVERS"]
