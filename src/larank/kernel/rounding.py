"""Whether objectives hold that were computed from kernel values in single precision.

A certificate is about the coefficients that are kept and the kernel as it is documented. An error eps of the scores
changes a loss by at most 2 eps, and half the squared norm by at most eps / 2 times the sum of the coefficients. Where
costs are large, coefficients are too, and the scores in single precision lose digits that matter. The error of the
scores is measured on some examples: those of the largest coefficients, and some from everywhere.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_Float = NDArray[np.float64]
_Index = NDArray[np.int64]

_MEASURED = 16  # examples of each sort
_SAFETY = 2.0  # times the largest error that was seen
_MOST_ERROR = 1e-4  # relative error of a primal objective
_SHARE_OF_TOLERANCE = 0.1  # fraction of tol that this error may reach


def examples_to_measure(members: _Index, coefficients: _Float, examples: int) -> _Index:
    """Return the examples whose scores tell the error of all: members by their coefficients, and others evenly."""
    largest = np.abs(coefficients).max(axis=1, initial=0.0)
    worst = members[np.argsort(-largest, kind="stable")[:_MEASURED]]
    return np.union1d(worst, np.linspace(0, examples - 1, min(_MEASURED, examples)).astype(np.int64))


def is_too_large(
    rows: _Index,
    quick: Callable[[_Index], _Float],
    exact: Callable[[_Index], _Float],
    coefficients: _Float,
    costs: float,
    primal: float,
    tol: float | None,
) -> bool:
    """Whether the error of scores makes objectives wrong by more than is allowed.

    Parameters
    ----------
    rows : ndarray of int64
        The examples from `examples_to_measure`.
    quick, exact : callable
        Return the scores of such examples, in single and in double precision.
    coefficients : ndarray of shape (n_members, n_functions)
        What the scores are made with.
    costs : float
        The sum of the costs of all examples with a loss.
    primal : float
        The primal objective.
    tol : float or None
        The relative gap that ends training, if one does.
    """
    error = _SAFETY * float(np.abs(quick(rows) - exact(rows)).max(initial=0.0))
    of_objectives = error * (2 * costs + float(np.abs(coefficients).sum()) / 2)
    allowed = _MOST_ERROR if tol is None else min(_MOST_ERROR, _SHARE_OF_TOLERANCE * tol)
    return not of_objectives <= allowed * abs(primal)
