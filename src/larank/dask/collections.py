"""Dask collections as lists of partitions: arrays, data frames, bags, and lists of delayed partitions."""

from __future__ import annotations

import math
from typing import Any

import dask.array as da
from dask.bag import Bag
from dask.base import is_dask_collection
from dask.delayed import Delayed

_ACCEPTED = "a Dask array, data frame or bag, or a list of delayed partitions"


def is_frame(X: Any) -> bool:
    """Whether X is a Dask data frame or series, without an import of what may not be installed."""
    return is_dask_collection(X) and hasattr(X, "_meta_nonempty") and hasattr(X, "npartitions")


def is_list_of_delayed(X: Any) -> bool:
    """Whether X is a list of delayed partitions, one or more."""
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(part, Delayed) for part in X)


def is_collection(X: Any) -> bool:
    """Whether X is in partitions."""
    return isinstance(X, da.Array | Bag) or is_frame(X) or is_list_of_delayed(X)


def with_whole_rows(X: da.Array) -> da.Array:
    """The array in chunks of rows that are not cut."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got a Dask array of {X.ndim}")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def partitions_of(name: str, X: Any) -> list[Delayed]:
    """The partitions of a collection; `name` is what an error calls it."""
    if isinstance(X, da.Array):
        return list((with_whole_rows(X) if X.ndim == 2 else X).to_delayed().ravel())
    if isinstance(X, Bag) or is_frame(X):
        return list(X.to_delayed())
    if is_list_of_delayed(X):
        return list(X)
    raise TypeError(f"{name} must be {_ACCEPTED}; got {type(X).__name__}")


def aligned_partitions(**collections: Any) -> dict[str, list[Delayed]]:
    """The partitions of collections that belong together, by name; the first one says how they are cut.

    An array whose sizes are known is cut as the first one is. Others must have as many partitions; whether these are
    equally long, workers see. None stays out.
    """
    (first, X), *others = collections.items()
    found = {first: partitions_of(first, X)}
    rows = X.chunks[0] if isinstance(X, da.Array) else None
    for name, other in others:
        if other is None:
            continue
        if isinstance(other, da.Array) and rows is not None and other.chunks[0] != rows:
            other = _cut_alike(name, other, first, rows)
        parts = partitions_of(name, other)
        if len(parts) != len(found[first]):
            raise ValueError(
                f"{name} must have as many partitions as {first}, {len(found[first])}; got {len(parts)} of them"
            )
        found[name] = parts
    return found


def _cut_alike(name: str, other: da.Array, first: str, rows: tuple[float, ...]) -> da.Array:
    """The array in the chunks of the first one, where all sizes are known."""
    if any(math.isnan(size) for size in (*rows, *other.chunks[0])):
        return other
    if sum(rows) != sum(other.chunks[0]):
        raise ValueError(f"{name} must be as long as {first}, {sum(rows)}; got {sum(other.chunks[0])}")
    return other.rechunk({0: rows})
