"""Labelled sequences as training sees them: blocks, the same in every epoch, each in an order of its own.

Sequences in memory are one block. A file is read block by block while training works on the block before, so it may be
larger than memory. What was read stays there as long as it fits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from larank import _core
from larank.data.columns import ConllFile
from larank.sequence.features import Encoder
from larank.sequence.sequences import Sequences

__all__ = ["Corpus", "FileCorpus", "HeldCorpus", "LabelNumbers", "LabelledBlock"]

_Item = TypeVar("_Item")

_BLOCK_TOKENS = 50_000  # of a file: they are shuffled among themselves


class LabelNumbers:
    """Labels numbered in the order of their arrival."""

    def __init__(self, labels: Iterable[Any] = ()) -> None:
        self.labels: list[Any] = []
        self._number: dict[Any, int] = {}
        self.of(labels)

    def __len__(self) -> int:
        return len(self.labels)

    def of(self, labels: Iterable[Any]) -> NDArray[np.int32]:
        """The numbers of labels; new ones get the next."""
        number, known = self._number, self.labels
        numbers = []
        for label in labels:
            found = number.get(label)
            if found is None:
                found = number[label] = len(known)
                known.append(label)
            numbers.append(found)
        return np.array(numbers, dtype=np.int32)

    def known(self, labels: Iterable[Any]) -> NDArray[np.int32]:
        """The numbers of labels, -1 for those never seen."""
        return np.array([self._number.get(label, -1) for label in labels], dtype=np.int32)


class LabelledBlock(NamedTuple):
    """Some sequences, the numbers of their labels, the cost of each, and how many came before in the epoch."""

    sequences: Sequences
    labels: NDArray[np.int32]
    costs: NDArray[np.float64]
    sequences_before: int
    tokens_before: int
    n_labels: int
    path: str = ""  # of a file,
    lines: NDArray[np.int64] | None = None  # and the line of each token in it
    share_read: float | None = None  # of a file, when this block was read

    def place(self, sequence: int, position: int) -> str:
        """What an error calls a token."""
        if self.lines is not None:
            return f"{self.path}, line {self.lines[self.sequences.starts[sequence] + position]}"
        return f"y[{self.sequences_before + sequence}][{position}]"


class Corpus(Protocol):
    """Where labelled blocks come from."""

    n_tokens: int | None
    encoding_seconds: float

    def blocks(self) -> Iterator[LabelledBlock]:
        """The blocks of an epoch, always the same."""

    def blocks_so_far(self) -> Iterator[LabelledBlock]:
        """Those that were ever handed out."""


class HeldCorpus:
    """Sequences in memory: one block."""

    def __init__(
        self,
        sequences: Sequences,
        labels: NDArray[np.int32],
        costs: NDArray[np.float64],
        n_labels: int,
        encoding_seconds: float,
    ) -> None:
        self._block = LabelledBlock(sequences, labels, costs, 0, 0, n_labels)
        self.encoding_seconds = encoding_seconds
        self.n_tokens: int | None = sequences.n_tokens

    def blocks(self) -> Iterator[LabelledBlock]:
        """The one block."""
        yield self._block

    def blocks_so_far(self) -> Iterator[LabelledBlock]:
        """The one block."""
        yield self._block


class FileCorpus:
    """A file in columns. The first pass over it learns features and labels.

    Parameters
    ----------
    file : ConllFile
        With labels.
    encoder : Encoder
        Of the model.
    labels : LabelNumbers
        Of the model.
    cost : float
        Of every sequence.
    memory_limit : float
        Bytes of encoded blocks that are kept for the next pass. Where they are more, each pass reads the file.
    reads_ahead : bool
        Whether a thread reads the next block meanwhile.
    """

    def __init__(
        self,
        file: ConllFile,
        encoder: Encoder,
        labels: LabelNumbers,
        cost: float,
        memory_limit: float,
        reads_ahead: bool,
    ) -> None:
        self._file, self._encoder, self._labels = file, encoder, labels
        self._cost, self._memory_limit, self._reads_ahead = cost, memory_limit, reads_ahead
        self._kept: list[LabelledBlock] | None = []
        self._handed_out = 0
        self._encoding = threading.Lock()
        self.encoding_seconds = 0.0
        self.n_tokens: int | None = None

    def blocks(self) -> Iterator[LabelledBlock]:
        """The blocks of the file in their order."""
        if self.n_tokens is not None and self._kept is not None:
            yield from self._kept
            return
        is_first = self.n_tokens is None
        read = self._read(self._encoder.learn if is_first else self._encoder.encode)
        with closing(_ahead(read) if self._reads_ahead else read) as blocks:
            for block in blocks:
                if is_first:
                    self._keep(block)
                yield block
        self.n_tokens = block.tokens_before + block.sequences.n_tokens

    def blocks_so_far(self) -> Iterator[LabelledBlock]:
        """The blocks that were handed out, all of them once a pass is complete."""
        if self._kept is not None:
            return iter(tuple(self._kept))
        return islice(self._read(self._encoder.encode), self._handed_out)

    def _keep(self, block: LabelledBlock) -> None:
        self._handed_out += 1
        if self._kept is not None:
            self._kept.append(block)
            if sum(map(_bytes, self._kept)) > self._memory_limit:
                self._kept = None

    def _read(self, encode: Callable[[Any], Sequences]) -> Generator[LabelledBlock]:
        words = _core.Dictionary()
        number = np.empty(0, dtype=np.int32)
        sequences_before = tokens_before = 0
        for block in self._file.blocks(_BLOCK_TOKENS, words):
            if len(words) > len(number):
                number = self._labels.of(words.words())
            with self._encoding:
                began = time.perf_counter()
                encoded = encode(block)
                self.encoding_seconds += time.perf_counter() - began
            costs = np.full(len(encoded), self._cost)
            yield LabelledBlock(
                encoded,
                number[block.labels],
                costs,
                sequences_before,
                tokens_before,
                len(self._labels),
                str(self._file.path),
                block.lines,
                self._file.share_read,
            )
            sequences_before += len(encoded)
            tokens_before += encoded.n_tokens


def _bytes(block: LabelledBlock) -> int:
    sequences = block.sequences
    own = (block.labels, block.costs, block.lines)
    arrays = (sequences.starts, sequences.indptr, sequences.indices, sequences.values, *own)
    return sum(array.nbytes for array in arrays if array is not None)


def _ahead(items: Iterator[_Item]) -> Generator[_Item]:
    """The same items, the next one made by a thread while the caller is busy with this one."""
    nothing = object()
    with ThreadPoolExecutor(1, "larank-reading") as pool:
        coming = pool.submit(next, items, nothing)
        while True:
            item: Any = coming.result()
            if item is nothing:
                return
            coming = pool.submit(next, items, nothing)
            yield item
