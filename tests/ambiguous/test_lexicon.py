"""The lexicon by which bags are shared out among words, beside its formulas, and what it finds out of the house."""

import numpy as np
import pytest

from larank import ConceptLabeler, _core
from larank.ambiguous.house import make_triples

WORDS, SYMBOLS = 6, 5


def shared_out(scores, words, bag, is_met):
    """The probabilities of the symbols that were met, and the shares of the bag, of each word."""
    p = np.where(is_met, np.exp(scores[words]), 0)
    p /= p.sum(axis=1, keepdims=True)
    shares = p[:, bag]
    for _ in range(10):
        shares = shares / shares.sum(axis=0)
        shares /= shares.sum(axis=1, keepdims=True)
    return p, shares


def labeler_and_corpus(words, bag):
    labeler = _core.ConceptLabeler(
        words=WORDS, symbols=SYMBOLS, relations=0, d=2, N=2, window=1, strategy="order-free", margin=1.0
    )
    universes = np.zeros((1, 0, SYMBOLS), dtype=np.int32)
    starts, rows = np.array([0, len(words)]), np.zeros(1, dtype=np.int64)
    corpus = _core.ConceptCorpus(starts, np.int32(words), np.int32(bag), rows, universes)
    labeler.check(corpus)
    return labeler, corpus


@pytest.mark.parametrize("seed", range(10))
def test_a_step_is_that_of_the_formulas(seed):
    random = np.random.default_rng(seed)
    length = 1 + seed % 5
    words, bag = random.integers(1, WORDS, length), random.integers(1, SYMBOLS, length)
    scores, is_met = random.normal(size=(WORDS, SYMBOLS)), np.zeros(SYMBOLS, dtype=np.uint8)
    labeler, corpus = labeler_and_corpus(words, bag)
    lexicon = _core.ConceptLexicon(scores, is_met)
    labeler.learn_lexicon(corpus, lexicon, np.zeros(1, dtype=np.int64), np.array([0.3]))
    is_met[bag] = 1
    p, shares = shared_out(scores, words, bag, is_met)
    expected = scores.copy()
    for i, word in enumerate(words):
        expected[word] -= 0.3 * p[i]
        np.add.at(expected[word], bag, 0.3 * shares[i])
    np.testing.assert_allclose(lexicon.scores, expected, atol=1e-12)
    np.testing.assert_array_equal(lexicon.is_met, is_met)


def test_words_of_the_house_find_their_concepts():
    triples = make_triples(1000, random_state=3)
    labeler = ConceptLabeler((), supervision="bags", hidden_size=4, epochs=1, random_state=0)
    labeler.fit(triples.words, [sorted(names) for names in triples.concepts])
    learner = labeler._learner
    names, found = learner.names, learner.lexicon.scores.argmax(axis=1)
    meant = {}
    for words, concepts in zip(triples.words, triples.concepts, strict=True):
        for word, concept in zip(words, concepts, strict=True):
            meant.setdefault(word, set()).add(concept)
    unambiguous = {word: next(iter(concepts)) for word, concepts in meant.items() if len(concepts) == 1}
    assert len(unambiguous) == 69  # all but six pronouns
    assert {word: names[found[learner.words[word]]] for word in unambiguous} == unambiguous


def test_a_lexicon_must_fit_the_labeler():
    labeler, corpus = labeler_and_corpus([1], [1])
    small = _core.ConceptLexicon(np.zeros((2, SYMBOLS)), np.zeros(SYMBOLS, dtype=np.uint8))
    with pytest.raises(ValueError, match="words and symbols of the labeler"):
        labeler.learn_lexicon(corpus, small, np.zeros(1, dtype=np.int64), np.ones(1))
    with pytest.raises(ValueError, match="one per symbol"):
        _core.ConceptLexicon(np.zeros((2, 3)), np.zeros(2, dtype=np.uint8))
