"""The solvers that are compared: one file of adapters per library, all with the same face."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from studies.rivals.libraries import (
    crfsuite,
    intelex,
    larank,
    liblinear,
    libsvm,
    scikit_learn,
    scikit_weak,
    skactiveml,
    snapml,
    vowpal,
)
from studies.rivals.libraries.solver import AmbiguousLearner, GradientSolver, LinearSolver, Solver


def _by_name(*solvers: Any) -> dict[str, Any]:
    return {solver.name: solver for solver in solvers}


LINEAR: dict[str, LinearSolver] = _by_name(*larank.LINEAR, *liblinear.LINEAR, *scikit_learn.LINEAR, *snapml.LINEAR)
LOGISTIC: dict[str, LinearSolver] = _by_name(larank.PRIMAL, *scikit_learn.LOGISTIC)
GRADIENT: dict[str, GradientSolver] = _by_name(
    *larank.GRADIENT, *scikit_learn.GRADIENT, *liblinear.GRADIENT, *vowpal.GRADIENT
)
KERNEL = _by_name(larank.ONLINE, larank.EXACT, intelex.SVC, *scikit_learn.KERNEL, libsvm.SVC)
BINARY = _by_name(larank.LASVM, intelex.SVC, scikit_learn.SVC, libsvm.SVC)
LEARNERS = _by_name(*larank.LEARNERS, scikit_learn.RETRAIN, *skactiveml.LEARNERS)
TAGGERS = _by_name(*larank.TAGGERS, *crfsuite.TAGGERS)
AMBIGUOUS: dict[str, AmbiguousLearner] = _by_name(*larank.AMBIGUOUS, *scikit_weak.LEARNERS)

KINDS: dict[str, Mapping[str, Solver]] = {
    "linear": LINEAR,
    "logistic": LOGISTIC,
    "gradient": GRADIENT,
    "kernel": KERNEL,
    "binary": BINARY,
    "active": LEARNERS,
    "sequence": TAGGERS,
}
"""By the name under which a measured process is asked for them."""


def installed(solver: Solver) -> bool:
    """Whether the module this adapter drives can be found."""
    try:
        return importlib.util.find_spec(solver.requires.partition(":")[0]) is not None
    except ModuleNotFoundError:  # not even the package it is in
        return False


def usable(names: Iterable[str], solvers: Mapping[str, Solver], say: Callable[[str], None]) -> list[str]:
    present = []
    for name in names:
        if installed(solvers[name]):
            present.append(name)
        else:
            say(f"{name}: left out, {solvers[name].requires} is not installed")
    return present
