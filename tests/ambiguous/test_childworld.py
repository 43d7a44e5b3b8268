"""Sentences with nested meanings tell what they mean, in many ways."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from larank.ambiguous.childworld import make_child_world


@pytest.fixture(scope="module")
def told():
    return make_child_world(0, 4000, random_state=0)[1]


def test_symbols_of_words_are_those_of_the_meaning(told):
    for example in told:
        assert len(example.words) == len(example.symbols)
        assert Counter(s for s in example.symbols if s != "-") == Counter(example.meaning.symbols())


def test_a_meaning_has_one_to_four_relations(told):
    counts = Counter(len(example.meaning.relations()) for example in told)
    assert set(counts) == {1, 2, 3, 4}
    assert min(counts.values()) > 0.05 * len(told)


def test_only_three_words_mean_two_symbols(told):
    meant = defaultdict(set)
    for example in told:
        for word, symbol in zip(example.words, example.symbols, strict=True):
            meant[word].add(symbol)
    assert {word: names for word, names in meant.items() if len(names) > 1} == {
        "saw": {"see", "handsaw"},
        "bat": {"bat", "stick"},
        "duck": {"duck", "duck_down"},
    }


def test_roles_cannot_be_told_by_position(told):
    """Relations with the same arguments put them in different orders."""
    orders = defaultdict(set)
    for example in told:
        meaning = example.meaning
        places = [example.symbols.index(name) for name, _ in meaning.pairs()]
        if len(meaning.relations()) == 1 and len(set(places)) == len(meaning.arguments):
            orders[meaning.symbol].add(tuple(np.argsort(places).tolist()))
    assert orders["break"] == {(0, 1), (1, 0)}
    assert orders["give"] == {(0, 1, 2), (0, 2, 1), (1, 2, 0)}
    assert orders["put"] == {(0, 1, 2), (1, 2, 0)}


def test_most_test_meanings_were_not_seen_in_training():
    train, test = make_child_world(900, 200, random_state=1)
    seen = {example.candidates[0] for example in train}
    assert sum(example.meaning not in seen for example in test) > 100
    symbols = {symbol for meaning in seen for symbol in meaning.symbols()}
    assert {symbol for example in test for symbol in example.meaning.symbols()} <= symbols
