"""The curves of the LaRank paper keep their ends."""

from __future__ import annotations

import math

import numpy as np

from studies.papers.larank import GAP, Curve, Point


def test_thinned_curves_keep_their_ends() -> None:
    points = tuple(Point(k / 100, float(k), 50 / k, k) for k in range(1, 300))
    thinned = Curve("letter", GAP, 0, points).thinned(10)
    assert len(thinned) == 10
    assert (thinned[0], thinned[-1]) == (points[0], points[-1])
    steps = np.diff(np.log([point.kernels for point in thinned]))
    assert steps.max() < 2 * math.log(299) / 9
