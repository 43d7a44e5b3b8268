"""The bare products behind a run of larank: what its kernel values cost before anything is done with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.stopwatch import Stopwatch


def block_shapes(result: Any, examples: int, batch_size: int) -> list[tuple[int, int]]:
    """Rows and columns of the products that make as many values as the run computed kernel values.

    Every batch meets the support patterns of its time, which the history of `result` tells. These widths are then
    stretched by one factor, which accounts for kernel values inside the batches and among the support patterns.
    """
    points = [(point.iterations, getattr(point, "support_patterns", 0)) for point in result.history]
    points = [(0.0, 0), *(point for point in points if point[1]), (result.iterations, result.support_patterns)]
    passes, patterns = np.transpose(points)
    total = max(1, round(result.iterations * examples))
    starts = np.arange(0, total, batch_size)
    rows = np.minimum(batch_size, total - starts)
    met = np.interp(starts / examples, passes, patterns)
    values = float(rows @ met)
    widths = np.rint(met * (result.kernel_values / values)) if values else met
    return [(int(height), int(width)) for height, width in zip(rows, widths, strict=True) if width]


def time_products(X: NDArray[np.float32], shapes: Sequence[tuple[int, int]]) -> Stopwatch:
    """Multiply blocks of examples with blocks of examples by `np.matmul`, into memory that is already there."""
    widest = max(width for _, width in shapes)
    support = np.resize(X, (widest, X.shape[1]))
    values = np.zeros(max(height * width for height, width in shapes), dtype=X.dtype)
    first = 0
    with Stopwatch() as watch:
        for height, width in shapes:
            first = first if first + height <= len(X) else 0
            batch = X[first : first + height]
            np.matmul(batch, support[:width].T, out=values[: height * width].reshape(height, width))
            first += height
    return watch
