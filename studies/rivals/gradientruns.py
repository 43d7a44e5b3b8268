"""Runs of stochastic gradient solvers and their rivals: problems, one training in a process of its own, its primal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies import datasets, storage
from studies.datasets import GRADIENT, LINEAR
from studies.measure import ask
from studies.rivals import linearruns
from studies.rivals.contest import Entrant
from studies.rivals.libraries import vowpal
from studies.rivals.linearruns import TASKS, THREADS, LinearRun

NEWS = "news20"  # all twenty groups
ALPHAS = {"alpha": 1e-5, "covtype2": 1e-5, "news20-0": 1e-4, "rcv1": 1e-4, NEWS: 1e-4}
QUICK_TRAIN, QUICK_TEST = 2_000, 500


@dataclass(frozen=True)
class GradientProblem:
    """Training examples in float32 with labels -1 and +1, or 0 .. k - 1, and the weight of the regularisation."""

    name: str
    X: Any
    y: NDArray[np.int64]
    alpha: float

    @property
    def is_binary(self) -> bool:
        return int(self.y.min()) < 0


def source(name: str) -> str:
    """The folder of its data."""
    return (GRADIENT if name in GRADIENT else LINEAR)[name].source


def load(name: str, quick: bool) -> GradientProblem:
    known = GRADIENT if name in GRADIENT else LINEAR
    data = datasets.load_small(name, known, QUICK_TRAIN, QUICK_TEST) if quick else datasets.load(name, known)
    return GradientProblem(name, data.X_train.astype(np.float32, copy=False), data.y_train, ALPHAS[name])


@contextmanager
def stored(problem: GradientProblem, as_text: bool) -> Iterator[Path]:
    """The examples for the children; as text, too, if someone reads nothing else."""
    with storage.stored(problem.name, {"X_train": problem.X, "y_train": problem.y}) as folder:
        if as_text:
            vowpal.write(folder / vowpal.TEXT, problem.X, problem.y)
        yield folder


def measure_fit(
    folder: Path, entrant: Entrant, effort: float, loss: str, alpha: float, limit: float | None
) -> LinearRun:
    """Train once; the form of the entrant is its formulation."""
    what = {"loss": loss, "alpha": alpha, "formulation": entrant.form, "effort": effort}
    return linearruns.measure("fit_gradient", "gradient", folder, entrant, THREADS, limit, **what)


def measure_product(folder: Path) -> tuple[float, float]:
    """Return the bytes of X, and the seconds of the bare product with it."""
    found = ask(TASKS, "product", folder, THREADS, None, loss="hinge", alpha=1.0, formulation="one-vs-rest")
    return found["bytes"], found["seconds"]


def primal(problem: GradientProblem, loss: str, w: NDArray[np.float64]) -> float:
    """alpha/2 |w|^2 plus the mean loss of two classes, in double precision."""
    short = np.maximum(0.0, 1.0 - problem.y * np.asarray(problem.X @ w))
    return problem.alpha / 2 * float(w @ w) + float(np.mean(short * short if loss == "squared_hinge" else short))


def least_primal(problem: GradientProblem, loss: str) -> float:
    """The optimum: by L-BFGS where the loss is smooth, else a lower bound on it from a certificate."""
    return _by_lbfgs(problem) if loss == "squared_hinge" else _by_dual_bound(problem)


def _by_lbfgs(problem: GradientProblem) -> float:
    from scipy.optimize import minimize

    X, y = problem.X.astype(np.float64), problem.y

    def value_and_gradient(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        short = np.maximum(0.0, 1.0 - y * (X @ w))
        value = problem.alpha / 2 * float(w @ w) + float(np.mean(short * short))
        return value, problem.alpha * w - 2 / len(y) * (X.T @ (y * short))

    settings = {"maxiter": 2000, "ftol": 1e-10, "gtol": 1e-9, "maxcor": 30}
    found = minimize(value_and_gradient, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options=settings)
    return float(found.fun)


def _by_dual_bound(problem: GradientProblem) -> float:
    """At most a tenth of a thousandth below the optimum; of two classes, one-versus-rest is the same problem twice."""
    from larank import LinearMulticlassSVC

    C = 1 / (problem.alpha * len(problem.y))
    settings: dict[str, Any] = {"C": C, "stop": "gap", "tol": 1e-4, "fit_intercept": False, "random_state": 0}
    model = LinearMulticlassSVC("one-vs-rest", **settings, max_iter=100_000).fit(problem.X, problem.y)
    return float(model.result_.dual) * problem.alpha / 2
