"""The coefficients of one-versus-one and one-versus-rest solvers, a column for each binary machine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray


def pair_by_pair(dual_coef: NDArray[Any], classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """LIBSVM's (classes - 1) x (support vectors) coefficients as one column per pair of classes.

    `classes` are those of the support vectors, numbered as LIBSVM does. A vector of class a has its coefficient against
    class b in row b, or in row b - 1 where b is above a.
    """
    pairs = list(combinations(range(len(dual_coef) + 1), 2))
    columns = np.zeros((len(classes), len(pairs)))
    for column, (a, b) in enumerate(pairs):
        columns[classes == a, column] = dual_coef[b - 1, classes == a]
        columns[classes == b, column] = dual_coef[a, classes == b]
    return columns


def side_by_side(machines: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The support patterns of binary machines with the face of `SVC`, and one column of coefficients for each."""
    support = np.unique(np.concatenate([machine.support_ for machine in machines]))
    columns = np.zeros((len(support), len(machines)))
    for column, machine in enumerate(machines):
        columns[np.searchsorted(support, machine.support_), column] = machine.dual_coef_[0]
    return support, columns
