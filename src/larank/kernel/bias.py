"""The bias of least loss: where the support vectors leave it open, all examples decide."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 1e-12  # of a sum of costs

Floats = NDArray[np.float64]


def least_loss_bias(scores: Floats, y: Floats, costs: Floats) -> float:
    """The b that minimises sum_i C_i max(0, 1 - y_i (f_i + b)), or the middle of all such b.

    The loss of an example has its kink at b = y_i - f_i, and there the slope of the sum grows by C_i: on its left an
    example with y_i = 1 has the slope -C_i, on its right one with y_i = -1 has C_i. So the slope is zero, or changes
    its sign, where the costs of the kinks passed so far make up for those of all examples with y_i = 1.
    """
    order = np.argsort(y - scores, kind="stable")
    kinks = (y - scores)[order]
    slopes = np.cumsum(costs[order]) - costs[y > 0].sum()  # on the right of each kink
    tolerance = _ROUNDING * costs.sum()
    first = int(np.searchsorted(slopes, -tolerance))
    if first >= len(kinks) or abs(slopes[first]) > tolerance:
        return float(kinks[min(first, len(kinks) - 1)])
    return float(kinks[first : first + 2].mean())
