"""Sentences about the house as rows of binary features, for taggers that know nothing of universes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Rows = tuple[csr_matrix, NDArray[np.int64]]
"""A row for each token of all sentences, and how many tokens each sentence has: what a `SequenceTagger` takes."""


class TokenRows:
    """Which words stand where in the window of a token, and which facts hold in the whole universe.

    A token has a feature for each position of the window: the word there, or that the sentence does not reach so far.
    For each relation and each concept it has a feature for what the relation gives, if it gives something. These are
    the same for all tokens of a sentence.
    """

    def __init__(self, sentences: Iterable[Sequence[str]], window: int, relations: Sequence[str]) -> None:
        words = sorted({word for sentence in sentences for word in sentence})
        self._numbers = {word: number for number, word in enumerate(words)}
        self._window, self._relations = window, tuple(relations)

    def of(self, triples: Any) -> Rows:
        """The rows of sentences with their universes."""
        lengths = np.array([len(sentence) for sentence in triples.words], dtype=np.int64)
        features, width = self._words(triples.words, lengths)
        is_there = np.ones(features.shape, dtype=bool)
        for relation in self._relations:
            table = getattr(triples, relation).astype(np.int64)
            n_concepts = table.shape[1]
            found = np.repeat(width + table + n_concepts * np.arange(n_concepts), lengths, axis=0)
            features = np.concatenate([features, found], axis=1)
            is_there = np.concatenate([is_there, np.repeat(table >= 0, lengths, axis=0)], axis=1)
            width += n_concepts**2
        starts = np.concatenate([[0], np.cumsum(is_there.sum(axis=1))])
        ones = np.ones(starts[-1], dtype=np.float32)
        return csr_matrix((ones, features[is_there], starts), shape=(len(features), width)), lengths

    def _words(self, sentences: Sequence[Sequence[str]], lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
        """The features of the window of every token, and how many there are. Unknown words count as the end."""
        beyond = len(self._numbers)
        numbers = np.array([self._numbers.get(word, beyond) for sentence in sentences for word in sentence])
        whole = np.repeat(lengths, lengths)
        place = np.arange(len(numbers)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        columns = []
        for position in range(self._window):
            offset = position - self._window // 2
            inside = (place + offset >= 0) & (place + offset < whole)
            word = np.full(len(numbers), beyond)
            word[inside] = numbers[np.flatnonzero(inside) + offset]
            columns.append(position * (beyond + 1) + word)
        return np.stack(columns, axis=1), self._window * (beyond + 1)


def sentence_errors(found: NDArray[Any], right: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which sentences have a wrong label, by the labels of all tokens."""
    return np.logical_or.reduceat(found != right, np.cumsum(lengths) - lengths)
