"""The compiled concept labeller and its lexicon beside their formulas: scores, order of labelling, gradients, steps."""

from collections import defaultdict
from itertools import chain, permutations, product

import numpy as np
import pytest

from checks import IS_NIGHTLY
from larank import ConceptLabeler, _core, _core_hooks
from larank.ambiguous.house import make_triples
from references import concepts

STRATEGIES = ("order-free", "left-right", "independent")
WORDS, SYMBOLS, D, N, WINDOW = 5, 5, 2, 3, 5
CONCEPTS = range(1, SYMBOLS)


def random_labeler(seed, strategy="order-free", relations=2, margin=1.0, window=WINDOW):
    """A labeller in double precision with random weights, and these."""
    random = np.random.default_rng(seed)
    rows = {"D": WORDS, "C": SYMBOLS, "Wg": window * D * (2 + relations), "bg": 1, "Wh": D * (1 + relations), "bh": 1}
    weights = tuple(random.normal(size=(count, D if name in "DC" else N)) for name, count in rows.items())
    labeler = _core_hooks.ConceptLabelerInDouble(
        words=WORDS, symbols=SYMBOLS, relations=relations, d=D, N=N, window=window, strategy=strategy, margin=margin
    )
    labeler.weights = weights
    labeler.is_concept = np.array([0, *(1 for _ in CONCEPTS)], dtype=np.uint8)
    return labeler, tuple(np.array(array) for array in weights)


def random_sentence(seed, relations=2, length=4, absent=()):
    """Words, right labels and a universe; word -1 was never seen."""
    random = np.random.default_rng(seed + 1000)
    universe = random.integers(0, SYMBOLS, (relations, SYMBOLS))
    if relations:
        universe[0, list(absent)] = -1
    words = random.integers(-1, WORDS, length)
    return words.tolist(), random.choice([c for c in CONCEPTS if c not in absent], length).tolist(), universe


def corpus(words, labels, universe):
    return _core.ConceptCorpus(
        np.array([0, len(words)]),
        np.array(words, dtype=np.int32),
        np.array(labels, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        np.array(universe, dtype=np.int32)[None].reshape(1, len(universe), SYMBOLS),
    )


def checked(labeler, *sentence):
    """A corpus of one sentence that the labeller may learn from."""
    given = corpus(*sentence)
    labeler.check(given)
    return given


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("relations", [0, 1, 2])
@pytest.mark.parametrize("seed", range(10))
def test_words_are_labelled_in_the_order_of_the_strategy_by_what_labels_add_to_the_sum(strategy, relations, seed):
    labeler, weights = random_labeler(seed, strategy, relations)
    words, _, universe = random_sentence(seed, relations, length=1 + seed % 5)
    given, network = corpus(words, (), universe), concepts.Network(weights, words, universe, WINDOW)
    order, scores = labeler.trace(given, 0)
    steps = concepts.labelled(network, strategy, CONCEPTS)
    assert [j for j, _ in steps] == order.tolist()
    assert dict(steps) == dict(enumerate(labeler.predict(given, 0, 1).tolist()))
    labels = [None] * len(words)
    for (j, label), found in zip(steps, scores, strict=True):
        np.testing.assert_allclose(found[1:], [network.score(labels, j, c) for c in CONCEPTS], atol=1e-9)
        if strategy != "independent":
            labels[j] = label


@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_the_best_of_all_orders_and_labels(seed):
    """The sequence of scores is the largest of all, compared from the first step on: what a greedy search is."""
    labeler, weights = random_labeler(seed)
    words, _, universe = random_sentence(seed, length=3)
    network = concepts.Network(weights, words, universe, WINDOW)

    def scores(steps):
        labels = [None] * 3
        for j, c in steps:
            yield network.score(labels, j, c)
            labels[j] = c

    every = product(permutations(range(3)), product(CONCEPTS, repeat=3))
    best = max((list(zip(*pair, strict=True)) for pair in every), key=lambda steps: list(scores(steps)))
    found, _ = labeler.trace(corpus(words, (), universe), 0)
    labels = labeler.predict(corpus(words, (), universe), 0, 1)
    assert list(zip(found.tolist(), labels[found].tolist(), strict=True)) == best


@pytest.mark.parametrize("seed", range(5))
def test_without_context_every_order_gives_the_same_labels(seed):
    words, _, universe = random_sentence(seed)
    given, labelers = corpus(words, (), universe), [random_labeler(seed, name, window=1)[0] for name in STRATEGIES]
    first, *others = (labeler.predict(given, 0, 1).tolist() for labeler in labelers)
    assert others == [first, first]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("relations", [0, 2])
@pytest.mark.parametrize("margin", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(4 if IS_NIGHTLY else 2))
def test_a_step_goes_along_the_gradient(strategy, relations, margin, seed):
    labeler, weights = random_labeler(seed, strategy, relations, margin)
    words, labels, universe = random_sentence(seed, relations)
    network = concepts.Network(weights, words, universe, WINDOW)
    if seed % 2:  # mistakes come late
        steps = concepts.labelled(network, strategy, CONCEPTS)
        labels = [dict(steps)[j] for j in range(len(words))]
        labels[steps[-1][0]] = 1 + labels[steps[-1][0]] % (SYMBOLS - 1)
    good = concepts.Aligned(labels)
    terms, _ = concepts.violated(network, strategy, CONCEPTS, good, margin)
    assert terms
    labeler.learn(checked(labeler, words, labels, universe), FIRST, np.array([RATE]))
    assert_moved_along(labeler, weights, concepts.gradient(network, terms))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("margin", [0.0, 1.0])
@pytest.mark.parametrize("sharpness", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(6 if IS_NIGHTLY else 3))
def test_a_step_with_a_bag_raises_the_pairs_that_the_lexicon_allows(strategy, margin, sharpness, seed):
    labeler, weights = random_labeler(seed, strategy, 2, margin)
    words, bag, universe = random_sentence(seed, 2)
    words = np.maximum(words, 1).tolist()  # a lexicon knows all of them
    scores = sharpness * np.random.default_rng(seed).normal(size=(WORDS, SYMBOLS))
    network = concepts.Network(weights, words, universe, WINDOW)
    good = concepts.Bag(scores, words, bag)
    terms, _ = concepts.violated(network, strategy, CONCEPTS, good, margin)
    lexicon = lexicon_of(scores, np.isin(range(SYMBOLS), bag))
    labeler.learn_bags(checked(labeler, words, bag, universe), lexicon, FIRST, np.array([RATE]), 0.0)
    assert_moved_along(labeler, weights, concepts.gradient(network, terms))
    np.testing.assert_array_equal(lexicon.scores, scores)


FIRST, RATE = np.zeros(1, dtype=np.int64), 1e-7


def assert_moved_along(labeler, weights, gradient):
    for name, before, after, slopes in zip(
        ("D", "C", "Wg", "bg", "Wh", "bh"), weights, labeler.weights, gradient, strict=True
    ):
        np.testing.assert_allclose((before - after) / RATE, slopes, atol=1e-4, rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("seed", range(10))
def test_steps_are_bounded_however_large_the_rate(seed):
    labeler, weights = random_labeler(seed)
    given = checked(labeler, *random_sentence(seed))
    for _ in range(50):
        labeler.learn(given, FIRST, np.array([1e9]))
    assert all(np.isfinite(array).all() for array in labeler.weights)
    assert max(np.abs(array).max() for array in labeler.weights) < 100 * max(np.abs(array).max() for array in weights)


def test_what_is_not_in_the_universe_is_no_label():
    for seed in range(20):
        labeler, _ = random_labeler(seed)
        words, _, universe = random_sentence(seed, absent=(2, 3))
        assert not {0, 2, 3} & set(labeler.predict(corpus(words, (), universe), 0, 1).tolist())


@pytest.mark.parametrize("level", _core.simd_levels())
def test_all_instruction_sets_learn_the_same(level):
    def learned():
        labeler, _ = random_labeler(3)
        labeler.learn(checked(labeler, *random_sentence(3)), np.zeros(5, dtype=np.int64), np.full(5, 0.1))
        return labeler.weights

    expected = learned()
    _core_hooks.set_simd_level(level)
    try:
        for one, other in zip(learned(), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    finally:
        _core_hooks.set_simd_level(_core.simd_levels()[-1])


NOTHING = np.zeros((2, SYMBOLS), int)
REFUSED = [
    (lambda one: one.check(corpus([9], [2], NOTHING)), "words must be"),
    (lambda one: one.check(corpus([1], [0], NOTHING)), "labels must be symbols"),
    (lambda one: one.check(corpus([1], [7], NOTHING)), "labels must be symbols"),
    (lambda one: one.check(corpus([1], [2], NOTHING + 9)), "universes must lead to symbols"),
    (lambda one: one.check(corpus([1], [2], NOTHING[:1])), "a row per relation"),
    (lambda one: one.learn(corpus([1], [2], NOTHING), FIRST, np.ones(1)), "call check"),
    (lambda one: one.learn(checked(one, [1], [2], NOTHING), FIRST, np.array([np.nan])), "rates must be finite"),
    (lambda one: learn_lexicon(one, [1], [1], lexicon_of(np.zeros((2, SYMBOLS)))), "words and symbols of the labeler"),
    (lambda one: lexicon_of(np.zeros((2, 3)), is_met=np.zeros(2)), "one per symbol"),
]


@pytest.mark.parametrize(("call", "complaint"), REFUSED, ids=[complaint for _, complaint in REFUSED])
def test_what_cannot_be_learned_from_is_refused_and_changes_nothing(call, complaint):
    labeler, weights = random_labeler(0)
    with pytest.raises(ValueError, match=complaint):
        call(labeler)
    for one, other in zip(labeler.weights, weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_scores_that_overflow_are_refused():
    labeler, weights = random_labeler(0)
    given = checked(labeler, *random_sentence(0))
    labeler.weights = tuple(np.full_like(array, np.finfo(array.dtype).max) for array in weights)
    with pytest.raises(ValueError, match="scores overflow"):
        labeler.learn(given, FIRST, np.ones(1))


# The lexicon by which bags are shared out among words


def lexicon_of(scores, is_met=None):
    is_met = np.zeros(scores.shape[1]) if is_met is None else is_met
    return _core.ConceptLexicon(scores, np.asarray(is_met, dtype=np.uint8))


def learn_lexicon(labeler, words, bag, lexicon):
    given = checked(labeler, words, bag, np.zeros((2, SYMBOLS), int))
    labeler.learn_lexicon(given, lexicon, FIRST, np.array([0.3]))


def shared_out(scores, words, bag, is_met):
    """The probabilities of the symbols that were met, and the shares of the bag, of each word."""
    p = np.where(is_met, np.exp(scores[words]), 0)
    p /= p.sum(axis=1, keepdims=True)
    shares = p[:, bag]
    for _ in range(10):
        shares = shares / shares.sum(axis=0)
        shares /= shares.sum(axis=1, keepdims=True)
    return p, shares


@pytest.mark.parametrize("seed", range(10))
def test_a_step_of_the_lexicon_is_that_of_the_formulas(seed):
    random = np.random.default_rng(seed)
    length = 1 + seed % 5
    words, bag = random.integers(1, WORDS, length), random.integers(1, SYMBOLS, length)
    lexicon = lexicon_of(scores := random.normal(size=(WORDS, SYMBOLS)))
    learn_lexicon(random_labeler(seed)[0], words, bag, lexicon)
    is_met = np.isin(range(SYMBOLS), bag)
    p, shares = shared_out(scores, words, bag, is_met)
    for i, word in enumerate(words):
        scores[word] -= 0.3 * p[i]
        np.add.at(scores[word], bag, 0.3 * shares[i])
    np.testing.assert_allclose(lexicon.scores, scores, atol=1e-12)
    np.testing.assert_array_equal(lexicon.is_met, is_met)


def test_words_of_the_house_find_their_concepts():
    triples = make_triples(1000, random_state=3)
    labeler = ConceptLabeler((), supervision="bags", hidden_size=4, max_iter=1, random_state=0)
    learner = labeler.fit(triples.words, [sorted(names) for names in triples.concepts])._learner
    meant = defaultdict(set)
    for word, name in zip(chain(*triples.words), chain(*triples.concepts), strict=True):
        meant[word].add(name)
    unambiguous = {word: names for word, names in meant.items() if len(names) == 1}
    assert len(unambiguous) == 69  # all but six pronouns
    found = learner.lexicon.scores.argmax(axis=1)
    assert {word: {learner.names[found[learner.words[word]]]} for word in unambiguous} == unambiguous
