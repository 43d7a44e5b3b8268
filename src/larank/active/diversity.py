"""Questions for one sitting: examples that promise much, and that differ from each other.

The examples that a model knows least about are often alike, and the label of one then tells those of the others. So the
strategy chooses more examples than are wanted, and of these the first is taken, and then again and again
the one that is farthest from all that were taken (farthest-first traversal).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances

from larank.kernel.selection import Strategy

CHOICES = 2
"""So many times the questions wanted are chosen by the strategy; see docs/active.md for what that brings."""

_Index = NDArray[np.int64]
_Float = NDArray[np.float64]


def shortlist(strategy: Strategy, margins: _Float, reach: float, count: int) -> _Index:
    """The places of `count` candidates that a strategy chooses one after the other, each in a sample of its own.

    Where the strategy looks at all candidates, these are the sample each time, less those that were chosen.
    """
    places = np.arange(len(margins))
    if strategy.draws is not None:
        samples = np.array_split(places, min(count, len(places)))
        return np.array([sample[strategy.choose(margins[sample], reach)] for sample in samples])
    chosen = []
    for _ in range(min(count, len(places))):
        at = strategy.choose(margins[places], reach)
        chosen.append(places[at])
        places = np.delete(places, at)
    return np.array(chosen)


def spread_out(points: Any, count: int) -> _Index:
    """The places of `count` points far from each other: the first, then always the one farthest from those taken."""
    taken = [0]
    nearest = _distances(points, 0)
    while len(taken) < min(count, points.shape[0]):
        nearest[taken[-1]] = -1.0  # of several equal points each is taken once
        taken.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, _distances(points, taken[-1]))
    return np.array(taken)


def _distances(points: Any, place: int) -> _Float:
    found: _Float = pairwise_distances(points, points[[place]]).reshape(-1)
    return found
