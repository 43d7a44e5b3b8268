"""The factor by which a linear model is shrunk that is worse than w = 0; the classes that it decides for stay the same.

The objective is convex along the model, so a factor that is small enough is as good as 0, and one that is 16 times too
small still has a sixteenth of what can be gained.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SHRINKING = 1 / 16  # as in core/linear/shrinking.hpp
ROUNDING = 1e-12  # by which a loss may be above the loss at w = 0, as a fraction of it


def best_factor(half_square: float, losses: NDArray[np.float64], loss_at_zero: float) -> tuple[float, float]:
    """Return the best of the first powers of 1/16 as a factor of the weights, and the primal objective there.

    Parameters
    ----------
    half_square : float
        What the regularisation adds to the objective of the weights as they are.
    losses : ndarray
        The losses of the weights times 1/16, 1/256, ...
    loss_at_zero : float
        The loss of w = 0. The factor is 0 if all others are worse.
    """
    factors = _SHRINKING ** np.arange(1, len(losses) + 1)
    primals = losses + half_square * factors**2
    best = int(np.argmin(primals))
    if primals[best] > loss_at_zero * (1 + ROUNDING):
        return 0.0, loss_at_zero
    return float(factors[best]), float(primals[best])
