"""The problems solvers are compared on, by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from larank.reproduce import datasets


@dataclass(frozen=True)
class Problem:
    """A data set and a C. No intercept: LIBLINEAR's default."""

    name: str
    X_train: sparse.csr_matrix
    y_train: NDArray[np.int64]
    X_test: sparse.csr_matrix
    y_test: NDArray[np.int64]
    C: float

    @property
    def classes(self) -> int:
        return int(self.y_train.max()) + 1


PROBLEMS: dict[str, float] = {"news20": 1.0, "reuters_r52": 1.0, "mnist": 1.0, "covtype": 1.0, "letter": 1.0}
"""The value of C for each data set of `larank.reproduce.datasets`."""


def load(name: str) -> Problem:
    """The problem in float64; its classes are 0, 1, ..., k - 1, each with training examples."""
    data = datasets.load(name)
    present = np.unique(data.y_train)
    if not np.array_equal(present, np.arange(len(present))):
        raise ValueError(f"problem {name!r}: classes must be 0 .. k - 1, found {present.tolist()}")
    return Problem(name, data.X_train, data.y_train, data.X_test, data.y_test, PROBLEMS[name])
