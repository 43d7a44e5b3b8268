"""Labelled sequences as training sees them: blocks, the same in every epoch, each in an order of its own.

Sequences in memory are one block. A file is read block by block, by a thread, so it may be larger than memory and its
reader may be waited for. What was read stays there as long as it fits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larank import _core
from larank.data.ahead import read_ahead
from larank.data.columns import ConllFile
from larank.sequence.features import Encoder
from larank.sequence.labels import LabelNumbers
from larank.sequence.sequences import Sequences
from larank.sequence.wronglabels import mended

_BLOCK_TOKENS = 50_000  # of a file: they are shuffled among themselves


class LabelledSequences(NamedTuple):
    """Some sequences, the numbers of their labels, the cost of each, and how many came before in the epoch."""

    sequences: Sequences
    labels: NDArray[np.int32]
    costs: NDArray[np.float64]
    sequences_before: int
    tokens_before: int
    n_labels: int
    numbers: NDArray[np.int64] | None = None  # of the sequences among those given, where some of these were empty
    share_read: float | None = None  # of a file, when these were read

    def name_of(self, sequence: int, position: int) -> str:
        """What an error calls a token."""
        number = sequence if self.numbers is None else self.numbers[sequence]
        return f"y[{self.sequences_before + number}][{position}]"


class HeldCorpus:
    """Sequences in memory: every epoch has this one block."""

    def __init__(self, held: LabelledSequences, encoding_seconds: float) -> None:
        self.held, self.encoding_seconds = held, encoding_seconds
        self.n_tokens: int | None = held.sequences.n_tokens
        self.has_values = held.sequences.values is not None  # of features, that are not all 1

    def blocks(self) -> Iterator[LabelledSequences | None]:
        """The one block."""
        yield self.held

    def blocks_so_far(self) -> Iterator[LabelledSequences]:
        """The one block."""
        yield self.held


@dataclass
class FileCorpus:
    """A file in columns. The first pass over it learns features and labels of the model.

    Encoded blocks of up to `memory_limit` bytes are kept for the next pass. Where they are more, each pass reads the
    file. A thread does, and may read the next block meanwhile.
    """

    file: ConllFile
    encoder: Encoder
    labels: LabelNumbers
    cost: float  # of every sequence
    scheme: str | None  # that its labels are mended in
    memory_limit: float
    reads_ahead: bool
    encoding_seconds: float = 0.0
    n_tokens: int | None = None
    has_values: ClassVar[bool] = False  # text has features with the value 1
    _kept: list[LabelledSequences] | None = field(default_factory=list)
    _handed_out: int = 0
    _encoding: threading.Lock = field(default_factory=threading.Lock)

    def blocks(self) -> Iterator[LabelledSequences | None]:
        """The blocks of an epoch: those of the file, always the same. None says that the next one has not come yet."""
        if self.n_tokens is not None and self._kept is not None:
            yield from self._kept
            return
        is_first = self.n_tokens is None
        is_over, n_tokens = threading.Event(), 0
        read = self._read(self.encoder.learn if is_first else self.encoder.encode, is_over)
        with closing(read_ahead(read, ahead=int(self.reads_ahead))) as blocks:
            try:
                for block in blocks:
                    if block is not None:
                        n_tokens = block.tokens_before + block.sequences.n_tokens
                        if is_first:
                            self._keep(block)
                    yield block
            finally:
                with self._encoding:  # a thread that is waiting for the file may not learn from it later
                    is_over.set()
        self.n_tokens = n_tokens

    def blocks_so_far(self) -> Iterator[LabelledSequences]:
        """The blocks that were handed out, all of them once a pass is complete."""
        if self._kept is not None:
            return iter(tuple(self._kept))
        return islice(self._read(self.encoder.encode, threading.Event()), self._handed_out)

    def _keep(self, block: LabelledSequences) -> None:
        self._handed_out += 1
        if self._kept is not None:
            self._kept.append(block)
            if sum(map(_bytes, self._kept)) > self.memory_limit:
                self._kept = None

    def _read(self, encode: Callable[[Any], Sequences], is_over: threading.Event) -> Generator[LabelledSequences]:
        words = _core.Dictionary()
        number = np.empty(0, dtype=np.int32)
        sequences_before = tokens_before = 0
        for block in self.file.blocks(_BLOCK_TOKENS, words):
            with self._encoding:
                if is_over.is_set():
                    return
                if self.scheme is not None:
                    names = np.array(words.words(), dtype=object)[block.labels]
                    labels = self.labels.of(mended(names, np.diff(block.starts), self.scheme))
                else:
                    if len(words) > len(number):
                        number = self.labels.of(words.words())
                    labels = number[block.labels]
                began = time.perf_counter()
                encoded = encode(block)
                self.encoding_seconds += time.perf_counter() - began
            costs = np.full(len(encoded), self.cost)
            yield LabelledSequences(
                encoded,
                labels,
                costs,
                sequences_before,
                tokens_before,
                len(self.labels),
                share_read=self.file.share_read,
            )
            sequences_before += len(encoded)
            tokens_before += encoded.n_tokens


Corpus = HeldCorpus | FileCorpus


def _bytes(block: LabelledSequences) -> int:
    sequences = block.sequences
    arrays = (sequences.starts, sequences.indptr, sequences.indices, sequences.values, block.labels, block.costs)
    return sum(array.nbytes for array in arrays if array is not None)
