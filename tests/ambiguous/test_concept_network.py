"""The compiled concept labeller beside its formulas: scores, order of labelling, gradients and steps."""

import itertools

import numpy as np
import pytest

from larank import _core, _core_hooks
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
@pytest.mark.parametrize("seed", range(5))
def test_scores_are_what_a_label_adds_to_the_sum_over_words(strategy, relations, seed):
    labeler, weights = random_labeler(seed, strategy, relations)
    words, _, universe = random_sentence(seed, relations, length=1 + seed % 5)
    order, scores = labeler.trace(corpus(words, (), universe), 0)
    network = concepts.Network(weights, words, universe, WINDOW)
    labels = [None] * len(words)
    for place, of_symbols in zip(order, scores, strict=True):
        expected = [network.score(labels, place, c) for c in CONCEPTS]
        np.testing.assert_allclose(of_symbols[1:], expected, atol=1e-9)
        if strategy != "independent":
            labels[place] = 1 + int(of_symbols[1:].argmax())


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(10))
def test_words_are_labelled_in_the_order_of_the_strategy(strategy, seed):
    labeler, weights = random_labeler(seed, strategy)
    words, _, universe = random_sentence(seed)
    order, _ = labeler.trace(corpus(words, (), universe), 0)
    found = labeler.predict(corpus(words, (), universe), 0, 1)
    network = concepts.Network(weights, words, universe, WINDOW)
    steps = concepts.labelled(network, strategy, CONCEPTS)
    assert [j for j, _ in steps] == order.tolist()
    assert dict(steps) == dict(enumerate(found.tolist()))


@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_the_best_of_all_orders_and_labels(seed):
    """The sequence of scores is the largest of all, compared from the first step on: what a greedy search is."""
    labeler, weights = random_labeler(seed)
    words, _, universe = random_sentence(seed, length=3)
    network = concepts.Network(weights, words, universe, WINDOW)

    def sequence(order, symbols):
        labels, scores = [None] * 3, []
        for j, c in zip(order, symbols, strict=True):
            scores.append(network.score(labels, j, c))
            labels[j] = c
        return scores

    every = itertools.product(itertools.permutations(range(3)), itertools.product(CONCEPTS, repeat=3))
    order, symbols = max(every, key=lambda pair: sequence(*pair))
    found, _ = labeler.trace(corpus(words, (), universe), 0)
    assert found.tolist() == list(order)
    assert labeler.predict(corpus(words, (), universe), 0, 1)[found].tolist() == list(symbols)


@pytest.mark.parametrize("seed", range(5))
def test_without_context_every_order_gives_the_same_labels(seed):
    predicted = []
    for strategy in STRATEGIES:
        labeler, _ = random_labeler(seed, strategy, window=1)
        words, _, universe = random_sentence(seed)
        predicted.append(labeler.predict(corpus(words, (), universe), 0, 1).tolist())
    assert predicted[0] == predicted[1] == predicted[2]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("relations", [0, 2])
@pytest.mark.parametrize("margin", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(4))
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
@pytest.mark.parametrize("seed", range(6))
def test_a_step_with_a_bag_raises_the_pairs_that_the_lexicon_allows(strategy, margin, sharpness, seed):
    labeler, weights = random_labeler(seed, strategy, 2, margin)
    words, bag, universe = random_sentence(seed, 2)
    words = np.maximum(words, 1).tolist()  # a lexicon knows all of them
    scores = sharpness * np.random.default_rng(seed).normal(size=(WORDS, SYMBOLS))
    network = concepts.Network(weights, words, universe, WINDOW)
    good = concepts.Bag(scores, words, bag)
    terms, _ = concepts.violated(network, strategy, CONCEPTS, good, margin)
    lexicon = _core.ConceptLexicon(scores, np.isin(range(SYMBOLS), bag).astype(np.uint8))
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


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"words": [9]}, "words must be"),
        ({"labels": [0]}, "labels must be symbols"),
        ({"labels": [7]}, "labels must be symbols"),
        ({"universe": np.full((2, SYMBOLS), 9)}, "universes must lead to symbols"),
        ({"universe": np.zeros((1, SYMBOLS), int)}, "a row per relation"),
    ],
)
def test_what_would_be_read_beyond_the_tables_is_refused(change, complaint):
    labeler, _ = random_labeler(0)
    given = {"words": [1], "labels": [2], "universe": np.zeros((2, SYMBOLS), int)} | change
    with pytest.raises(ValueError, match=complaint):
        labeler.check(corpus(given["words"], given["labels"], given["universe"]))


def test_what_cannot_be_learned_from_is_no_silent_success():
    labeler, weights = random_labeler(0)
    unchecked = corpus(*random_sentence(0))
    with pytest.raises(ValueError, match="call check"):
        labeler.learn(unchecked, FIRST, np.ones(1))
    labeler.check(unchecked)
    labeler.weights = tuple(np.full_like(array, np.finfo(array.dtype).max) for array in weights)
    for rate, message in ((1.0, "scores overflow"), (np.nan, "rates must be finite")):
        with pytest.raises(ValueError, match=message):
            labeler.learn(unchecked, FIRST, np.array([rate]))
