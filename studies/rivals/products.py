"""The bare products behind a run of larank: what its kernel values cost before anything is done with them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from studies.trial import Stopwatch


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
    met = np.interp((starts + rows / 2) / examples, passes, patterns)
    values = float(rows @ met)
    widths = np.rint(met * (result.kernel_values / values)) if values else met
    return [(int(height), int(width)) for height, width in zip(rows, widths, strict=True) if width]


def equal_blocks(kernel_values: int, patterns: int, rows: int = 256) -> list[tuple[int, int]]:
    """Products of so many rows with all support patterns, as many as make so many values, up to one product."""
    return [(rows, patterns)] * max(1, round(kernel_values / (rows * patterns))) if kernel_values and patterns else []


def time_products(X: NDArray[np.float32], shapes: Sequence[tuple[int, int]], threads: int) -> Stopwatch:
    """`np.matmul` of blocks of examples with blocks of examples, the faster of two ways.

    Either each thread makes whole products of its own, or BLAS spreads each product over the threads. On a busy
    machine the second can be several times slower than a single thread, because BLAS's threads wait for each other.
    It comes last, because they go on waiting for a while after it.
    """
    products = _Products(X, shapes, threads)
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool, Stopwatch() as beside:
        list(pool.map(products.share, range(threads), [threads] * threads))
    with Stopwatch() as inside:
        products.share(0, 1)
    return min(inside, beside, key=lambda watch: watch.wall)


class _Products:
    """The operands, and memory for one product per thread, all of it touched before the clock runs."""

    def __init__(self, X: NDArray[np.float32], shapes: Sequence[tuple[int, int]], threads: int) -> None:
        tallest, widest = np.max(shapes, axis=0)
        self._shapes = shapes
        self._examples = np.resize(X, (max(len(X), int(tallest)), X.shape[1]))
        self._support = np.resize(X, (int(widest), X.shape[1]))
        self._values = np.full((threads, int(tallest * widest)), np.nan, dtype=X.dtype)

    def share(self, first: int, step: int) -> None:
        """Every `step`-th product."""
        values, last = self._values[first], len(self._examples)
        for position in range(first, len(self._shapes), step):
            height, width = self._shapes[position]
            start = position * height % (last - height + 1)
            product = values[: height * width].reshape(height, width)
            np.matmul(self._examples[start : start + height], self._support[:width].T, out=product)
