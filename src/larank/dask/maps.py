"""Maps fitted on a sample of a Dask collection: with a linear machine behind them, a distributed kernel machine."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
from dask.delayed import delayed
from scipy.sparse import issparse, vstack
from sklearn.utils import check_random_state

from larank import parameters
from larank.dask.collections import partitions_of


def fit_on_sample(map: Any, X: Any, *, sample_size: int = 10_000, random_state: Any = None) -> Any:
    """Fit a `KernelPCAMap`, a `PivotedCholeskyMap` or another transformer on random rows of a Dask collection.

    The rows are drawn on the workers, and the map is fitted here. `larank.dask.transform` then applies it on the
    workers.

    Parameters
    ----------
    map : transformer
        What is fitted; it is returned, too.
    X : Dask array or data frame, or list of delayed partitions
        The examples.
    sample_size : int, default=10000
        How many rows to draw, without replacement; all of them where there are fewer.
    random_state : int, RandomState or None, default=None
        The seed of the draw.
    """
    parameters.whole_number("sample_size", sample_size, at_least=1)
    random = check_random_state(random_state)
    parts = partitions_of("X", X)
    sizes = np.array(dask.compute(*(delayed(_rows)(part) for part in parts)), np.int64)
    if not sizes.sum():
        raise ValueError("X must hold at least one example, got none")
    drawn = np.sort(random.permutation(int(sizes.sum()))[:sample_size])
    ends = np.cumsum(sizes)
    each = [
        delayed(_drawn)(part, drawn[(drawn >= end - size) & (drawn < end)] - (end - size))
        for part, size, end in zip(parts, sizes, ends, strict=True)
    ]
    return map.fit(_joined([some for some in dask.compute(*each) if _rows(some)]))


def _rows(part: Any) -> int:
    return int(part.shape[0])


def _drawn(part: Any, rows: Any) -> Any:
    return part.iloc[rows] if hasattr(part, "iloc") else part[rows]


def _joined(parts: list[Any]) -> Any:
    """The rows of several partitions in one."""
    if issparse(parts[0]):
        return vstack(parts, format="csr")
    if hasattr(parts[0], "iloc"):
        import pandas as pd  # data frames are here, and so is this

        return pd.concat(parts)
    return np.concatenate(parts)
