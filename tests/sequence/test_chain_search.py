"""Searches on chain models: exact and greedy inference, n-best and grammars, against all outputs enumerated."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from larank import _core
from references.chains import (
    Chain,
    Corpus,
    Grammar,
    anything,
    corpus,
    grammar_that_allows,
    parts,
    random_grammar,
    stretches,
    weights,
)

orders = st.integers(0, 3)
seeds, shares = st.integers(0, 10**6), st.sampled_from([None, 0.3, 0.6, 0.9])
both_inferences = pytest.mark.parametrize("inference", ["exact", "greedy"])


def problem(order, labels, seed, share=None, longest=4):
    """Random weights, a random grammar if a share of it is allowed, and a model prepared for random sequences."""
    random = np.random.default_rng(seed)
    data = corpus(seed, labels=labels, longest=longest, is_binary=bool(seed % 2))
    grammar = None if share is None else random_grammar(random, labels, share)
    chain = Chain(order, data.X.shape[1], labels, grammar=grammar)
    w = random.normal(size=chain.size)
    return chain, w, data, prepared(chain, w, data)


def prepared(chain, w, data):
    """A model that has a grammar only if it forbids something, prepared for the data."""
    if chain.grammar.follows.all() and chain.grammar.ends.all():
        model = _core.ChainModel(chain.order)
        model.grow(chain.features, chain.labels)
        model.set_weights(*parts(w, chain))
    else:
        model = chain.model(w)
    model.prepare(data.block.longest)
    return model


def score(chain, w, X, y):
    """Of labels that must be allowed."""
    y = tuple(y.tolist())
    assert chain.grammar.allows(y)
    return w @ chain.phi(chain.unlabelled(X), y)


@given(orders, st.integers(1, 3), seeds, shares, st.integers(1, 100))
@example(3, 2, 5, None, 1)
def test_exact_searches_find_what_the_enumeration_finds(order, labels, seed, share, count):
    chain, w, data, model = problem(order, labels, seed, share)
    random = np.random.default_rng(seed)
    for i in range(len(data)):
        X, _ = data.sequence(i)
        ranked = chain.ranked(w, X)
        found, failed = model.predict(data.block, i, i + 1, "exact")
        assert failed == (-1 if ranked else i)
        if ranked:
            assert score(chain, w, X, found) == pytest.approx(ranked[0][0], abs=1e-9)
        paths = model.best_paths(data.block, i, count)
        assert len(paths) == min(count, len(ranked)) == len({tuple(path.tolist()) for path, _ in paths})
        for (path, found), (expected, _) in zip(paths, ranked, strict=False):
            assert found == pytest.approx(expected, abs=1e-9)
            assert score(chain, w, X, path) == pytest.approx(expected, abs=1e-9)
        position, label = int(random.integers(len(X))), int(random.integers(labels))
        others = [value for value, y in ranked if y[position] != label]
        found = model.path_without(data.block, i, position, label, "exact")
        assert (found is None) == (not others)
        if others:
            assert found[position] != label
            assert score(chain, w, X, found) == pytest.approx(others[0], abs=1e-9)


@given(orders, st.integers(1, 4), seeds, shares)
def test_the_greedy_search_looks_far_enough_ahead_never_to_be_stuck(order, labels, seed, share):
    chain, w, data, model = problem(order, labels, seed, share, longest=6)
    random = np.random.default_rng(seed)
    for i in range(len(data)):
        X, _ = data.sequence(i)
        expected = chain.greedy(w, X)
        found, failed = model.predict(data.block, i, i + 1, "greedy")
        assert failed == (-1 if expected else i) == model.predict(data.block, i, i + 1, "exact")[1]
        if expected:
            assert tuple(found.tolist()) == expected
        position, label = int(random.integers(len(X))), int(random.integers(labels))
        found = model.path_without(data.block, i, position, label, "greedy")
        assert (None if found is None else tuple(found.tolist())) == chain.greedy(w, X, {(position, label)})


@given(orders, st.integers(2, 3), seeds, st.booleans(), st.booleans())
def test_losses_are_those_of_the_worst_outputs(order, labels, seed, has_delta, has_grammar):
    chain, w, data, _ = problem(order, labels, seed)
    random = np.random.default_rng(seed)
    if has_delta:
        chain.delta = random.uniform(0, 3, (labels, labels)) * (1 - np.eye(labels))
    if has_grammar:
        chain.grammar = grammar_that_allows(random, labels, data)
    model = chain.model(w)
    model.prepare(data.block.longest)
    costs = random.uniform(0, 2, len(data))
    for inference in ("exact", "greedy"):
        cut = [(i, x) for i in range(len(data)) for x in stretches(*data.sequence(i), order, inference)]
        expected = sum(costs[i] * chain.h(w, x, chain.worst(w, x)) for i, x in cut)
        for ends in ((0, len(data)), (0, 2, len(data))):
            found = [model.losses(data.block, data.labels, costs, a, b, inference) for a, b in pairwise(ends)]
            assert min(found) >= 0
            assert sum(found) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def one_sequence(X):
    X = np.asarray(X, dtype=float)
    return Corpus(np.array([0, len(X)], dtype=np.int64), X, np.zeros(len(X), dtype=np.int32))


@both_inferences
@pytest.mark.parametrize("labels", [1, 7, 8, 9, 16, 17, 24, 25, 33, 70])
def test_padding_is_never_chosen(inference, labels):
    """All weights are negative, so that the zeros of the padding would be better."""
    data = one_sequence(np.ones((5, 2)))
    chain = Chain(2 if labels < 30 else 1, 2, labels)
    w = -1 - np.random.default_rng(labels).random(chain.size)
    found, failed = prepared(chain, w, data).predict(data.block, 0, 1, inference)
    assert failed == -1
    assert found.max() < labels
    if inference == "greedy":
        assert tuple(found.tolist()) == chain.greedy(w, data.X)


@given(st.integers(5, 40), seeds)
def test_first_order_search_is_right_with_many_labels(labels, seed):
    """Against the recursion over all pairs of labels, written in NumPy."""
    chain, w, data, model = problem(1, labels, seed, 0.5, longest=8)
    tokens, lag = w[: chain.features * labels].reshape(-1, labels), w[chain.features * labels :].reshape(-1, labels)
    with np.errstate(divide="ignore"):
        lag, ends = lag + np.log(chain.grammar.follows), np.log(chain.grammar.ends)
    for i in range(len(data)):
        nodes = data.sequence(i)[0] @ tokens
        scores = lag[0] + nodes[0]
        for node in nodes[1:]:
            scores = (scores[:, None] + lag[1:]).max(axis=0) + node
        best = (scores + ends).max()
        found, failed = model.predict(data.block, i, i + 1, "exact")
        assert failed == (-1 if np.isfinite(best) else i)
        paths = model.best_paths(data.block, i, 3)
        assert bool(paths) == np.isfinite(best)
        if paths:
            assert paths[0][1] == pytest.approx(best, abs=1e-9)
            for y in (found, paths[0][0]):
                assert score(chain, w, data.sequence(i)[0], y) == pytest.approx(best, abs=1e-9)


@both_inferences
@pytest.mark.parametrize("order", range(4))
def test_ties_go_to_the_first_label(order, inference):
    data, chain = one_sequence(np.ones((4, 1))), Chain(order, 1, 3)
    model = prepared(chain, np.zeros(chain.size), data)
    assert model.predict(data.block, 0, 1, inference)[0].tolist() == [0, 0, 0, 0]


def test_a_greedy_order_can_be_long_and_an_exact_one_is_refused_where_it_cannot_be():
    data = one_sequence(np.ones((3, 1)))
    model = _core.ChainModel(100)
    model.grow(1, 5)
    assert model.predict(data.block, 0, 1, "greedy")[1] == -1
    losses = data.labels, np.ones(1), 0, 1, "exact"
    for refused, arguments in ((model.predict, (0, 1, "exact")), (model.best_paths, (0, 1)), (model.losses, losses)):
        with pytest.raises(ValueError, match="states"):
            refused(data.block, *arguments)


def test_a_greedy_search_is_refused_as_long_as_the_model_is_not_prepared_for_the_length():
    data = one_sequence(np.ones((5, 1)))
    model = _core.ChainModel(0)
    model.grow(1, 2)
    model.set_grammar(*alternating())
    with pytest.raises(ValueError, match="prepared for sequences of 5"):
        model.predict(data.block, 0, 1, "greedy")
    model.prepare(5)
    assert model.predict(data.block, 0, 1, "greedy")[1] == -1
    model.set_grammar(*alternating())  # another grammar is prepared for what came before
    assert model.predict(data.block, 0, 1, "greedy")[0].tolist() == [1, 0, 1, 0, 1]


def alternating(labels=2):
    """Labels come in turn and the last must end: what can be completed has a period and never settles."""
    in_turn = np.roll(np.eye(labels, dtype=bool), 1, axis=1)
    return Grammar(np.vstack([np.ones((1, labels), dtype=bool), in_turn]), np.arange(labels) == labels - 1)


@both_inferences
@pytest.mark.parametrize("labels", [2, 3, 9])
@pytest.mark.parametrize("length", [1, 2, 3, 10, 41])
def test_a_grammar_with_a_period_is_followed_to_the_end(length, labels, inference):
    data, chain = one_sequence(np.ones((length, 1))), Chain(1, 1, labels, grammar=alternating(labels))
    model = prepared(chain, np.random.default_rng(0).normal(size=chain.size), data)
    found, failed = model.predict(data.block, 0, 1, inference)
    assert failed == -1
    assert found.tolist() == [place % labels for place in range(-length, 0)]


@pytest.mark.parametrize(("second", "expected"), [([0, 1], (-1, -1)), ([1, 1], (1, 1)), ([1, 0], (1, 2))])
def test_violation_names_the_first_sequence_and_the_position(second, expected):
    model = _core.ChainModel(0)
    model.grow(1, 2)
    data = Corpus(np.array([0, 2, 4]), np.ones((4, 1)), np.array([0, 1, *second], dtype=np.int32))
    for grammar, found in ((anything(2), (-1, -1)), (alternating(), expected)):
        model.set_grammar(*grammar)
        assert model.violation(data.block, data.labels) == found


@given(orders, st.integers(1, 20), st.integers(1, 6), st.integers(0, 20), st.integers(0, 6), seeds)
def test_growing_keeps_the_weights_and_adds_zeros(order, labels, features, more_labels, more_features, seed):
    chain = Chain(order, features, labels)
    w = np.random.default_rng(seed).normal(size=chain.size)
    model = _core.ChainModel(order)
    model.set_weights(*parts(w, chain))
    np.testing.assert_array_equal(weights(model), w)
    model.grow(features + more_features, labels + more_labels)
    model.grow(1, 1)  # never shrinks
    larger = features + more_features, labels + more_labels
    assert (model.features, model.labels) == larger
    values, columns, starts = model.tokens()
    tokens = w[: features * labels].reshape(features, labels)
    assert starts.tolist() == [min(f, features) * labels for f in range(features + more_features + 1)]
    np.testing.assert_array_equal(values.reshape(features, labels), tokens)
    np.testing.assert_array_equal(columns.reshape(features, labels), np.tile(np.arange(labels), (features, 1)))
    lags = model.transitions()
    np.testing.assert_array_equal(lags[:, : labels + 1, :labels], w[tokens.size :].reshape(order, labels + 1, labels))
    assert np.count_nonzero(lags) == order * (labels + 1) * labels
    assert model.squared_norm == pytest.approx(w @ w)
    smaller = Chain(order, 1, 1)
    model.set_weights(*parts(np.full(smaller.size, 2.0), smaller))  # which forgets the weights before
    assert (model.features, model.labels, model.squared_norm) == (*larger, 4 * smaller.size)
