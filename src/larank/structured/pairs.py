"""Pairs of inputs and outputs to learn from, each with its number in the stream and its cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from larank.blocks.provider import read_only
from larank.sparse import sound_csr
from larank.validation import on_host


@dataclass(frozen=True, slots=True)
class Example:
    """A pattern p_i, its output c_i, its number in the stream, and its cost C_i."""

    number: int
    x: Any
    y: Any
    cost: float


@dataclass(frozen=True)
class TrainingPairs:
    """Inputs and outputs with their costs, numbered from `first` on; those that cost nothing are left out."""

    X: Any
    y: Any
    costs: NDArray[np.float64]
    first: int = 0

    def __len__(self) -> int:
        return int(np.count_nonzero(self.costs))

    def __iter__(self) -> Iterator[Example]:
        return map(self.at, self.order(None).tolist())

    def order(self, shuffled: np.random.RandomState | None) -> NDArray[np.intp]:
        """Indices of the pairs in `X`, in their own order or in a random one."""
        indices = np.flatnonzero(self.costs)
        return indices if shuffled is None else shuffled.permutation(indices)

    def at(self, index: int) -> Example:
        """The pair with this index in `X`."""
        x, y = self.X[index], self.y[index]
        # A row of an array must survive what its owner does with the array, even if the array has no other row.
        is_row = isinstance(self.X, np.ndarray) or (isinstance(x, np.ndarray) and _is_part(x))
        x = own(x) if is_row else x
        return Example(self.first + int(index), x, own(y), float(self.costs[index]))


def own(value: Any) -> Any:
    """Return a read-only copy of an array that others may write to; other objects are returned unchanged."""
    return read_only(value.copy()) if isinstance(value, np.ndarray) else value


def _is_part(x: NDArray[Any]) -> bool:
    """Whether an array is a part of a larger array."""
    return x.base is not None and not (isinstance(x.base, np.ndarray) and x.base.size == x.size)


def checked_pairs(X: Any, y: Any) -> tuple[Any, Any]:
    """Two sequences of the same length."""
    X, y = checked_sequence("X", X), checked_sequence("y", y)
    if len(X) != len(y):
        raise ValueError(f"X and y must be equally long, got {len(X)} and {len(y)}")
    return X, y


def checked_sequence(name: str, values: Any) -> Any:
    """Return something with a length and items, whose arrays are read-only: the model's methods are the caller's."""
    values = on_host(name, values)
    if hasattr(values, "to_numpy"):  # pandas counts by labels
        values = values.to_numpy()
    if issparse(values):
        return _SparseRows(values)
    is_sequence = hasattr(values, "__len__") and hasattr(values, "__getitem__")
    if not is_sequence or isinstance(values, str | bytes | Mapping) or getattr(values, "ndim", 1) == 0:
        raise TypeError(f"{name} must be a sequence with an entry per example, got a {type(values).__name__}")
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = list(values)
    return read_only(values) if isinstance(values, np.ndarray | list | tuple) else _Items(values)


class _Items:
    """A sequence of the caller's own kind; its arrays are read-only."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> Any:
        return read_only(self._values[index])


class _SparseRows:
    def __init__(self, matrix: Any) -> None:
        self._matrix = sound_csr(matrix)

    def __len__(self) -> int:
        return int(self._matrix.shape[0])

    def __getitem__(self, index: int) -> Any:
        return read_only(self._matrix[[index]])
