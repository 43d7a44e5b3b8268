"""Rows on a disk: written once as they come, read again in any choice of their stripes.

A stripe is a run of rows of about the same number of bytes, the smallest thing that is read. The arrays of all rows lie
in one file each, as NumPy has them in memory, in a folder of the caller's. Dense rows may stay in a file of the user's.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from larank.data.files import TemporaryFolder, file_to_write


@dataclass(frozen=True)
class Stripe:
    """Rows `first` to `last` - 1, whose stored values are `start` to `end` - 1 of all."""

    first: int
    last: int
    start: int
    end: int

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.last - self.first

    @property
    def stored(self) -> int:
        """The values of X in them."""
        return self.end - self.start


class StoredRows(NamedTuple):
    """Some rows as they were written; `numbers` are those of their labels."""

    X: Any
    numbers: NDArray[np.int32]
    weights: NDArray[np.float64]


class PlaceInFile(NamedTuple):
    """Where the values of a dense array lie in a file of the user's."""

    path: str
    offset: int


def place_of(X: Any) -> PlaceInFile | None:
    """That of a memory-mapped array whose values a file has just as they are; None for other arrays."""
    mapped = getattr(X, "_mmap", None) if isinstance(X, np.memmap) else None
    if mapped is None or X.filename is None or X.mode == "c" or X.ndim != 2:
        return None
    if not X.flags.c_contiguous or X.dtype not in (np.float32, np.float64) or not X.dtype.isnative:
        return None
    # A slice has the offset of the array that it was taken from.
    begins = np.frombuffer(mapped, np.uint8).__array_interface__["data"][0]
    ahead = X.__array_interface__["data"][0] - begins
    return PlaceInFile(str(X.filename), X.offset - X.offset % mmap.ALLOCATIONGRANULARITY + ahead)


class RowStore:
    """Rows with the numbers of their labels and their weights, in files.

    Parameters
    ----------
    folder : TemporaryFolder
        Where the files go; the caller removes it.
    stripe_bytes : int
        A stripe ends with the row that reaches so many bytes.
    row_bytes : int
        What a row counts beside the values stored in it.
    values : PlaceInFile, optional
        Where the values lie already, of dense rows that come in their order.
    """

    def __init__(
        self, folder: TemporaryFolder, stripe_bytes: int, row_bytes: int, values: PlaceInFile | None = None
    ) -> None:
        self._folder, self._stripe_bytes, self._row_bytes, self._values = folder, stripe_bytes, row_bytes, values
        self.stripes: list[Stripe] = []
        self.rows = self.stored = self.n_features = 0
        self.dtype: np.dtype[Any] | None = None
        self.is_sparse = False
        with ExitStack() as opened:
            self._files = {
                name: opened.enter_context(file_to_write(folder.path / name))
                for name in ("values", "columns", "ends", "numbers", "weights")
            }
            self._opened = opened.pop_all()

    def append(self, X: Any, numbers: NDArray[np.int32], weights: NDArray[np.float64]) -> None:
        """Write rows after those that there are; they must be of the same kind and precision."""
        if self.dtype is None:
            self.dtype, self.is_sparse = X.dtype, bool(issparse(X))
        if bool(issparse(X)) != self.is_sparse:
            raise ValueError("all blocks must be dense, or all sparse, as the first one is")
        if X.dtype != self.dtype:
            raise ValueError(f"all blocks must have the precision of the first one, {self.dtype}; got {X.dtype}")
        self.n_features = max(self.n_features, X.shape[1])
        if self.is_sparse:
            ends = X.indptr[1:].astype(np.int64) - int(X.indptr[0])
            kept = slice(X.indptr[0], X.indptr[-1])
            self._write("values", X.data[kept])
            self._write("columns", X.indices[kept].astype(np.int32, copy=False))
            self._write("ends", ends + self.stored)
        else:
            ends = np.arange(1, X.shape[0] + 1, dtype=np.int64) * X.shape[1]
            if self._values is None:
                self._write("values", X)
        self._write("numbers", numbers)
        self._write("weights", weights)
        self._cut(ends)
        self.rows += X.shape[0]
        self.stored += int(ends[-1])

    def close(self) -> None:
        """Close all files, even if some of them cannot be written; then raise the error."""
        self._opened.close()

    def read(self, stripes: Sequence[Stripe]) -> StoredRows:
        """The rows of these stripes, one after the other."""
        n_rows = sum(stripe.rows for stripe in stripes)
        numbers = self._read("numbers", np.dtype(np.int32), [(s.first, s.last) for s in stripes])
        weights = self._read("weights", np.dtype(np.float64), [(s.first, s.last) for s in stripes])
        assert self.dtype is not None
        values = self._read("values", self.dtype, [(s.start, s.end) for s in stripes])
        if not self.is_sparse:
            return StoredRows(values.reshape(n_rows, self.n_features), numbers, weights)
        columns = self._read("columns", np.dtype(np.int32), [(s.start, s.end) for s in stripes])
        ends = self._read("ends", np.dtype(np.int64), [(s.first, s.last) for s in stripes])
        indptr = np.zeros(n_rows + 1, np.int64)
        row = stored = 0
        for stripe in stripes:  # ends count from the first row of all
            indptr[row + 1 : row + stripe.rows + 1] = ends[row : row + stripe.rows] + (stored - stripe.start)
            row, stored = row + stripe.rows, stored + stripe.stored
        X = csr_matrix((n_rows, self.n_features), dtype=self.dtype)
        X.data, X.indices, X.indptr = values, columns, indptr
        return StoredRows(X, numbers, weights)

    def bytes_of(self, stripe: Stripe, row_bytes: int) -> int:
        """What it takes in memory, where a row takes so much beside its values."""
        assert self.dtype is not None
        return stripe.stored * self._value_bytes() + stripe.rows * row_bytes

    def _value_bytes(self) -> int:
        assert self.dtype is not None
        return self.dtype.itemsize + (4 if self.is_sparse else 0)

    def _cut(self, ends: NDArray[np.int64]) -> None:
        """Stripes of the rows just written, whose values end there."""
        before = np.concatenate([[0], ends * self._value_bytes() + np.arange(1, len(ends) + 1) * self._row_bytes])
        count = max(1, round(float(before[-1]) / self._stripe_bytes))
        size, first = before[-1] / count, 0
        while first < len(ends):
            last = max(first + 1, int(np.searchsorted(before, before[first] + size * (1 - 1e-9))))
            last = min(last, len(ends))
            start = int(ends[first - 1]) if first else 0
            self.stripes.append(
                Stripe(self.rows + first, self.rows + last, self.stored + start, self.stored + int(ends[last - 1]))
            )
            first = last

    def _write(self, name: str, array: NDArray[Any]) -> None:
        self._folder.take(array.nbytes)
        self._files[name].write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    def _read(self, name: str, dtype: np.dtype[Any], ranges: Sequence[tuple[int, int]]) -> NDArray[Any]:
        """The values in these ranges of an array, side by side."""
        path, offset = self._folder.path / name, 0
        if name == "values" and self._values is not None:
            path, offset = Path(self._values.path), self._values.offset
        found = np.empty(sum(last - first for first, last in ranges), dtype)
        room, at = memoryview(found.view(np.uint8)), 0  # type: ignore[arg-type]
        with path.open("rb", buffering=0) as file:
            for first, last in ranges:
                file.seek(offset + first * dtype.itemsize)
                end = at + (last - first) * dtype.itemsize
                while at < end:
                    got = file.readinto(room[at:end])
                    if not got:
                        raise OSError(f"{path} has become shorter while it was read")
                    at += got
        return found
