"""The problems solvers are compared on, by name: those of the LaRank paper, with its kernels and costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.rbf import Parameters
from larank.reproduce import datasets


@dataclass(frozen=True)
class Problem:
    """Dense examples in float32 and labels 0 .. k - 1."""

    name: str
    X_train: NDArray[np.float32]
    y_train: NDArray[np.int64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]
    parameters: Parameters


PROBLEMS: dict[str, Parameters] = {
    "mnist": Parameters(C=1000.0, gamma=0.005),
    "usps": Parameters(C=10.0, gamma=0.037),
    "letter": Parameters(C=10.0, gamma=0.025),
}
"""[larank] table 1, for the scalings of `larank.reproduce.datasets.DENSE_DATASETS`; usps, whose preprocessing the paper
does not state, with the gamma that has the paper's optimum in [0, 1]."""


def load(name: str) -> Problem:
    data = datasets.load_dense(name)
    return Problem(name, data.X_train, data.y_train, data.X_test, data.y_test, PROBLEMS[name])
