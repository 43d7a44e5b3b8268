"""The best label sequences of greedy inference, found by a beam.

Greedy inference takes the best label after the other, and so it was trained: sums of its scores over different
histories do not compare. What compares is how much a sequence gave away: the sum, over tokens, of how far its label is
behind the best one after the same labels. The labels of greedy inference give nothing away.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from larank.sequence.confidence import finishing
from larank.sequence.constraints import Follows

_FEWEST = 16  # sequences that are followed,
_TIMES = 4  # or so many times those wanted

_Float = NDArray[np.float64]


def beam_paths(
    nodes: _Float, pairs: _Float, allowed: Follows | None, count: int
) -> list[tuple[NDArray[np.int32], float]]:
    """The `count` best label sequences of those that are among the best all the way, and minus what they gave away."""
    length, labels = nodes.shape
    width, first = max(_FEWEST, _TIMES * count), max(len(pairs), 1)
    paths = np.full((1, first + length), -1, dtype=np.int32)  # before the first token stands no label
    scores = np.zeros(1)
    ways = None if allowed is None else finishing(allowed, length)
    for t in range(length):
        local = np.repeat(nodes[t][None], len(paths), axis=0)
        for lag, table in enumerate(pairs, start=1):
            local += table[1 + paths[:, first + t - lag]]
        if allowed is not None and ways is not None:
            local[~(allowed.after[1 + paths[:, first + t - 1]] & ways[t])] = -np.inf
            if not np.isfinite(local).any():
                return []
        totals = scores[:, None] + local - local.max(axis=1, keepdims=True)
        best = np.argsort(-totals, axis=None, kind="stable")[:width]
        best = best[totals.ravel()[best] > -np.inf]
        paths, scores = paths[best // labels], totals.ravel()[best]
        paths[:, first + t] = best % labels
    return [(path[first:], float(score)) for path, score in zip(paths[:count], scores[:count], strict=True)]
