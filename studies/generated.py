"""Examples that are drawn, not read, of the shapes of sets that are not at hand; the same for the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Parts = tuple[Any, NDArray[np.int64], Any, NDArray[np.int64]]
"""Training examples and labels -1 and +1, then those of the test."""

FACTORS = 20
WORDS = 47_152
WORDS_PER_TEXT = 0.0016 * WORDS
_COMMON = 30.0  # the word of rank r comes with a probability in proportion to 1 / (r + this)
_DRAWS_PER_WORD = 1.035  # of a text; the others are repetitions
_TEXTS_AT_ONCE = 50_000

Random = np.random.Generator


def ill_conditioned(train: int, test: int, features: int = 500, seed: int = 0) -> Parts:
    """Dense float32 rows without zeros: common factors and noise, on scales that differ by orders of magnitude.

    Rows have a root mean square norm of one. Labels follow a linear function with logistic noise.
    """
    random = np.random.default_rng(seed)
    scales = np.exp(random.normal(size=features))
    loadings = (0.3 * random.normal(size=(FACTORS, features))).astype(np.float32)
    weights = random.normal(size=features) / scales / np.sqrt(features)
    count = train + test
    X = random.standard_normal((count, FACTORS), np.float32) @ loadings
    X += random.standard_normal((count, features), np.float32)
    X *= scales.astype(np.float32)
    scores = 1.5 * (X @ weights.astype(np.float32)) + 0.7 * random.logistic(size=count)
    X /= np.sqrt(np.einsum("ij,ij->", X, X, dtype=np.float64) / count)
    y = np.where(scores > 0, 1, -1)
    return X[:train], y[:train], X[train:], y[train:]


def text_like(train: int, test: int, words: int = WORDS, seed: int = 0) -> Parts:
    """CSR rows in float32 as texts have them: words by Zipf's law, weighted as tf-idf, of unit length.

    A tenth of the words have a weight in the function that labels follow, with noise; common words have larger ones.
    Which column a word has does not depend on how common it is.
    """
    random = np.random.default_rng(seed)
    chunks = range(0, train + test, _TEXTS_AT_ONCE)
    parts = [_texts(min(_TEXTS_AT_ONCE, train + test - first), words, random) for first in chunks]
    X = sparse.vstack(parts, format="csr")
    seen = np.bincount(X.indices, minlength=words) / X.shape[0]
    _weigh(X, seen)
    weights = np.where(random.random(words) < 0.1, random.normal(size=words), 0.0) * np.sqrt(seen)
    scores = X @ weights.astype(np.float32)
    scores += 0.05 * scores.std() * random.logistic(size=len(scores)).astype(np.float32)
    y = np.where(scores > np.median(scores), 1, -1)
    column = random.permutation(words).astype(X.indices.dtype)
    X.indices = column[X.indices]
    X.has_sorted_indices = False
    X.sort_indices()
    return X[:train], y[:train], X[train:], y[train:]


def _texts(count: int, words: int, random: Random) -> sparse.csr_matrix:
    """Counts of words, numbered by how common they are.

    The draws of a text come in order: spacings of sorted uniform numbers are exponential ones over their sum.
    """
    mean = WORDS_PER_TEXT * _DRAWS_PER_WORD
    lengths = np.maximum(1, random.lognormal(np.log(mean) - 0.125, 0.5, count)).astype(np.int64)
    ends = np.cumsum(lengths + 1)
    sums = np.cumsum(random.standard_exponential(int(ends[-1]), np.float32), dtype=np.float64)
    before = np.concatenate([[0.0], sums[ends[:-1] - 1]])
    totals = sums[ends - 1] - before
    drawn = np.ones(len(sums), bool)
    drawn[ends - 1] = False  # the spacing after the last draw
    text = np.repeat(np.arange(count, dtype=np.int32), lengths)
    uniform = (sums[drawn] - before[text]) / totals[text]
    rank = np.minimum(words - 1, _COMMON * np.exp(uniform * np.log1p(words / _COMMON)) - _COMMON).astype(np.int32)
    new = np.ones(len(rank), bool)
    new[1:] = (rank[1:] != rank[:-1]) | (text[1:] != text[:-1])
    at = np.flatnonzero(new)
    times = np.diff(at, append=len(rank)).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(np.bincount(text[at], minlength=count))])
    return sparse.csr_matrix((times, rank[at], starts), shape=(count, words))


def _weigh(X: sparse.csr_matrix, seen: NDArray[np.float64]) -> None:
    """Counts become tf-idf, in place, and rows get unit length; `seen` is the share of texts a word is in."""
    rarity = 1 - np.log(np.maximum(seen, 1 / X.shape[0])).astype(np.float32)
    X.data = (1 + np.log(X.data)) * rarity[X.indices]
    lengths = np.sqrt(np.add.reduceat(X.data * X.data, X.indptr[:-1]))
    X.data /= np.repeat(lengths, np.diff(X.indptr))
