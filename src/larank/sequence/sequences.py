"""Token sequences with sparse features: what every sequence model is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from larank.blocks.ranges import LARGEST


@dataclass(frozen=True, eq=False)
class Sequences:
    """Token sequences, each token a sparse row of features.

    Attributes
    ----------
    starts : ndarray of int64
        Sequence i is tokens `starts[i] : starts[i + 1]`, perhaps none; `starts[0] == 0`.
    indptr : ndarray of int64
        Token t has the features `indices[indptr[t] : indptr[t + 1]]`.
    indices : ndarray of int32
        Distinct within a token.
    values : ndarray of float64 or None
        One per index; None: all are 1.
    n_features : int
        Features known so far: indices are below it.
    """

    starts: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float64] | None
    n_features: int

    def __post_init__(self) -> None:
        """Check that values can be multiplied with each other; that they are finite is known."""
        if self.values is None:
            return
        with np.errstate(over="ignore"):
            squares = float(self.values @ self.values)
        largest = LARGEST[np.dtype(np.float64)]
        if squares > largest:
            at = int(np.abs(self.values).argmax())
            token = int(np.searchsorted(self.indptr, at, side="right")) - 1
            sequence = int(np.searchsorted(self.starts, token, side="right")) - 1
            raise ValueError(
                f"X must have values whose squares sum to at most {largest:g}, got {squares:.3g}; the largest is "
                f"{self.values[at]:.3g}, in token {token - self.starts[sequence]} of sequence {sequence}; scale X"
            )

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_tokens(self) -> int:
        """Tokens of all sequences."""
        return len(self.indptr) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each sequence."""
        return np.diff(self.starts)

    def without_empty(self) -> tuple[Sequences, NDArray[np.int64]]:
        """Those that have tokens, and their numbers among all."""
        numbers = np.flatnonzero(self.lengths)
        if len(numbers) == len(self):
            return self, numbers
        return replace(self, starts=np.append(self.starts[numbers], self.starts[-1])), numbers

    def up_to(self, n_features: int) -> Sequences:
        """The same without features of higher numbers, which another thread may have learnt meanwhile."""
        if self.n_features <= n_features:
            return self
        is_known = self.indices < n_features
        before = np.concatenate([[0], np.cumsum(is_known)])
        values = None if self.values is None else self.values[is_known]
        return Sequences(self.starts, before[self.indptr], self.indices[is_known], values, n_features)

    @staticmethod
    def joined(parts: Sequence[Sequences]) -> Sequences:
        """All sequences of several parts, in their order; features are numbered alike in all of them."""
        indices = np.concatenate([part.indices for part in parts])
        values = None
        if any(part.values is not None for part in parts):
            ones = (np.ones(len(part.indices)) if part.values is None else part.values for part in parts)
            values = np.concatenate(list(ones))
        starts = _end_to_end([part.starts for part in parts])
        indptr = _end_to_end([part.indptr for part in parts])
        return Sequences(starts, indptr, indices, values, max(part.n_features for part in parts))


def _end_to_end(pointers: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Pointers into arrays that are concatenated."""
    before = np.cumsum([0, *(pointer[-1] for pointer in pointers)])
    shifted = [pointer[1:] + shift for pointer, shift in zip(pointers, before[:-1], strict=True)]
    return np.concatenate([np.zeros(1, np.int64), *shifted])
