"""Whether objectives hold that were computed from kernel values in single precision.

A certificate is about the coefficients that are kept and the kernel as it is documented. An error eps of the scores
changes a loss by at most 2 eps, and half the squared norm by at most eps / 2 times the sum of the coefficients. Where
costs are large, coefficients are too, and the scores in single precision lose digits that matter. The error of the
scores is measured on some examples: those of the largest coefficients, and others spread over all.

Rounding errors of many examples cancel, except for what they have in common. So the mean error, with three standard
errors of this mean, counts for all examples. For the largest coefficients, the largest error counts in addition.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_Float = NDArray[np.float64]
_Index = NDArray[np.int64]

_LARGEST = 16  # members that are measured
_SPREAD = 48  # examples, spread over all, that are measured
_STANDARD_ERRORS = 3.0  # of the mean
_MOST_ERROR = 1e-4  # relative error of a primal objective
_SHARE_OF_TOLERANCE = 0.1  # fraction of tol that this error may reach


def examples_to_measure(members: _Index, coefficients: _Float, examples: int) -> _Index:
    """Return the examples whose scores tell the error of all: members by their coefficients, and others evenly."""
    largest = np.abs(coefficients).max(axis=1, initial=0.0)
    worst = members[np.argsort(-largest, kind="stable")[:_LARGEST]]
    return np.union1d(worst, np.linspace(0, examples - 1, min(_SPREAD, examples)).astype(np.int64))


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
    errors = quick(rows) - exact(rows)
    largest = np.abs(errors).max(axis=1, initial=0.0)
    of_mean = float(np.abs(errors.mean(axis=0)).max(initial=0.0))
    of_mean += _STANDARD_ERRORS * float(np.sqrt(np.square(largest).mean() / len(rows)))
    sizes = np.abs(coefficients)
    of_objectives = of_mean * (2 * costs + float(sizes.sum()) / 2)
    worst = np.sort(sizes.max(axis=1, initial=0.0))[::-1][:_LARGEST]
    of_objectives += 2.5 * float(worst.sum()) * float(largest.max(initial=0.0))
    allowed = _MOST_ERROR if tol is None else min(_MOST_ERROR, _SHARE_OF_TOLERANCE * tol)
    return not of_objectives <= allowed * abs(primal)
