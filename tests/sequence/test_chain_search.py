"""Searches on chain models: exact and greedy inference, n-best and grammars, against all outputs enumerated."""

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
seeds = st.integers(0, 10**6)


def model_and_corpus(order, labels, seed, share=None, longest=4):
    """Random weights, and a random grammar where `share` of it is allowed."""
    random = np.random.default_rng(seed)
    data = corpus(seed, labels=labels, longest=longest, is_binary=bool(seed % 2))
    grammar = None if share is None else random_grammar(random, labels, share)
    chain = Chain(order, data.X.shape[1], labels, grammar=grammar)
    return chain, random.normal(size=chain.size), data


def core_model(chain, w, data):
    """With a grammar only where there is one; prepared for the data."""
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


@given(orders, st.integers(1, 3), seeds, st.sampled_from([None, 0.3, 0.6, 0.9]))
@example(3, 2, 5, None)
def test_the_exact_search_finds_the_best_of_all_outputs(order, labels, seed, share):
    chain, w, data = model_and_corpus(order, labels, seed, share)
    model = core_model(chain, w, data)
    for i in range(len(data)):
        X, _ = data.sequence(i)
        ranked = chain.ranked(w, X)
        found, failed = model.predict(data.block, i, i + 1, "exact")
        assert failed == (-1 if ranked else i)
        if ranked:
            assert score(chain, w, X, found) == pytest.approx(ranked[0][0], abs=1e-9)


@given(orders, st.integers(1, 4), seeds, st.sampled_from([None, 0.3, 0.6, 0.9]))
def test_the_greedy_search_looks_far_enough_ahead_never_to_be_stuck(order, labels, seed, share):
    chain, w, data = model_and_corpus(order, labels, seed, share, longest=6)
    model = core_model(chain, w, data)
    for i in range(len(data)):
        X, _ = data.sequence(i)
        expected = chain.greedy(w, X)
        found, failed = model.predict(data.block, i, i + 1, "greedy")
        assert failed == (-1 if expected else i)
        assert model.predict(data.block, i, i + 1, "exact")[1] == failed
        if expected:
            assert tuple(found.tolist()) == expected


@given(orders, st.integers(1, 3), seeds, st.sampled_from([None, 0.5]), st.integers(1, 100))
def test_the_best_paths_are_the_enumeration_in_order(order, labels, seed, share, count):
    chain, w, data = model_and_corpus(order, labels, seed, share)
    model = core_model(chain, w, data)
    for i in range(len(data)):
        ranked = chain.ranked(w, data.sequence(i)[0])
        paths = model.best_paths(data.block, i, count)
        assert len(paths) == min(count, len(ranked))
        assert len({tuple(path.tolist()) for path, _ in paths}) == len(paths)
        for (path, found), (expected, _) in zip(paths, ranked, strict=False):
            assert found == pytest.approx(expected, abs=1e-9)
            assert score(chain, w, data.sequence(i)[0], path) == pytest.approx(expected, abs=1e-9)


@given(orders, st.integers(1, 3), seeds, st.sampled_from([None, 0.6]))
def test_a_path_without_a_label_is_the_best_of_those_that_do_not_have_it(order, labels, seed, share):
    chain, w, data = model_and_corpus(order, labels, seed, share)
    model = core_model(chain, w, data)
    random = np.random.default_rng(seed)
    for i in range(len(data)):
        X, _ = data.sequence(i)
        position, label = int(random.integers(len(X))), int(random.integers(labels))
        others = [value for value, y in chain.ranked(w, X) if y[position] != label]
        found = model.path_without(data.block, i, position, label, "exact")
        assert (found is None) == (not others)
        if others:
            assert found[position] != label
            assert score(chain, w, X, found) == pytest.approx(others[0], abs=1e-9)
        found = model.path_without(data.block, i, position, label, "greedy")
        assert (None if found is None else tuple(found.tolist())) == chain.greedy(w, X, {(position, label)})


@given(orders, st.integers(2, 3), seeds, st.booleans(), st.booleans())
def test_losses_are_those_of_the_worst_outputs(order, labels, seed, has_delta, has_grammar):

    chain, w, data = model_and_corpus(order, labels, seed)
    random = np.random.default_rng(seed)
    if has_delta:
        chain.delta = random.uniform(0, 3, (labels, labels)) * (1 - np.eye(labels))
    if has_grammar:
        chain.grammar = grammar_that_allows(random, labels, data)
    model = chain.model(w)
    model.prepare(data.block.longest)
    costs = random.uniform(0, 2, len(data))
    for inference in ("exact", "greedy"):
        expected = 0.0
        for i in range(len(data)):
            for x in stretches(*data.sequence(i), order, inference):
                h = chain.h(w, x, chain.worst(w, x))
                assert h >= 0
                expected += costs[i] * h
        found = model.losses(data.block, data.labels, costs, 0, len(data), inference)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
        halves = [model.losses(data.block, data.labels, costs, a, b, inference) for a, b in ((0, 2), (2, len(data)))]
        assert sum(halves) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def one_sequence(X):
    X = np.asarray(X, dtype=float)
    return Corpus(np.array([0, len(X)], dtype=np.int64), X, np.zeros(len(X), dtype=np.int32))


@pytest.mark.parametrize("inference", ["exact", "greedy"])
@pytest.mark.parametrize("labels", [1, 7, 8, 9, 16, 17, 24, 25, 33, 70])
def test_padding_is_never_chosen(inference, labels):
    """All weights are negative, so that the zeros of the padding would be better."""
    data = one_sequence(np.ones((5, 2)))
    chain = Chain(2 if labels < 30 else 1, 2, labels)
    w = -1 - np.random.default_rng(labels).random(chain.size)
    model = core_model(chain, w, data)
    found, failed = model.predict(data.block, 0, 1, inference)
    assert failed == -1
    assert found.max() < labels
    if inference == "greedy":
        assert tuple(found.tolist()) == chain.greedy(w, data.X)


@given(st.integers(5, 40), seeds)
def test_first_order_search_is_right_with_many_labels(labels, seed):
    """Against the recursion over all pairs of labels, written in NumPy."""
    chain, w, data = model_and_corpus(1, labels, seed, 0.5, longest=8)
    model = core_model(chain, w, data)
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


def test_ties_go_to_the_first_label():
    data = one_sequence(np.ones((4, 1)))
    for order in range(4):
        model = core_model(Chain(order, 1, 3), np.zeros(Chain(order, 1, 3).size), data)
        for inference in ("exact", "greedy"):
            assert model.predict(data.block, 0, 1, inference)[0].tolist() == [0, 0, 0, 0]


def test_an_order_larger_than_the_sequence_has_absent_labels_before_it():
    data = one_sequence([[1.0]])
    chain = Chain(3, 1, 2)
    w = np.zeros(chain.size).reshape(-1)
    w[chain.features * 2 + 1] = 1.0  # T_1[absent][label 1]
    model = core_model(chain, w, data)
    assert model.predict(data.block, 0, 1, "exact")[0].tolist() == [1]
    assert model.best_paths(data.block, 0, 2)[0][1] == 1.0


def test_a_greedy_order_can_be_long_and_an_exact_one_is_refused_where_it_cannot_be():
    data = one_sequence(np.ones((3, 1)))
    model = _core.ChainModel(100)
    model.grow(1, 5)
    assert model.predict(data.block, 0, 1, "greedy")[1] == -1
    for refused in (
        lambda: model.predict(data.block, 0, 1, "exact"),
        lambda: model.best_paths(data.block, 0, 1),
        lambda: model.losses(data.block, data.labels, np.ones(1), 0, 1, "exact"),
    ):
        with pytest.raises(ValueError, match="states"):
            refused()


def alternating(labels=2):
    """Labels come in turn and the last must end: what can be completed has a period and never settles."""
    follows = np.zeros((labels + 1, labels), dtype=bool)
    follows[0] = True
    for p in range(labels):
        follows[p + 1, (p + 1) % labels] = True
    ends = np.arange(labels) == labels - 1
    return Grammar(follows, ends)


@pytest.mark.parametrize("labels", [2, 3, 9])
@pytest.mark.parametrize("length", [1, 2, 3, 10, 41])
def test_a_grammar_with_a_period_is_followed_to_the_end(labels, length):
    data = one_sequence(np.ones((length, 1)))
    chain = Chain(1, 1, labels, grammar=alternating(labels))
    w = np.random.default_rng(0).normal(size=chain.size)
    model = core_model(chain, w, data)
    for inference in ("exact", "greedy"):
        found, failed = model.predict(data.block, 0, 1, inference)
        assert failed == -1
        assert found[-1] == labels - 1
        assert np.diff(found).tolist() == [(-labels + 1 if y == labels - 1 else 1) for y in found[:-1]]


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


def test_violation_names_the_first_sequence_and_the_position():
    grammar = alternating()
    model = _core.ChainModel(0)
    model.grow(1, 2)
    labels = {"allowed": [0, 1], "inside": [1, 1], "at the end": [1, 0]}
    starts = np.array([0, 2, 4], dtype=np.int64)
    for second, expected in (("allowed", (-1, -1)), ("inside", (1, 1)), ("at the end", (1, 2))):
        data = Corpus(starts, np.ones((4, 1)), np.array(labels["allowed"] + labels[second], dtype=np.int32))
        model.set_grammar(*anything(2))
        assert model.violation(data.block, data.labels) == (-1, -1)
        model.set_grammar(*grammar)
        assert model.violation(data.block, data.labels) == expected


@given(orders, st.integers(1, 20), st.integers(1, 6), st.integers(0, 20), st.integers(0, 6), seeds)
def test_growing_keeps_the_weights_and_adds_zeros(order, labels, features, more_labels, more_features, seed):
    chain = Chain(order, features, labels)
    w = np.random.default_rng(seed).normal(size=chain.size)
    model = _core.ChainModel(order)
    model.set_weights(*parts(w, chain))
    np.testing.assert_array_equal(weights(model), w)
    model.grow(features + more_features, labels + more_labels)
    model.grow(1, 1)  # never shrinks
    assert (model.features, model.labels) == (features + more_features, labels + more_labels)
    values, columns, starts = model.tokens()
    tokens = w[: features * labels].reshape(features, labels)
    assert starts.tolist() == [min(f, features) * labels for f in range(features + more_features + 1)]
    np.testing.assert_array_equal(values.reshape(features, labels), tokens)
    np.testing.assert_array_equal(columns.reshape(features, labels), np.tile(np.arange(labels), (features, 1)))
    lags = model.transitions()
    np.testing.assert_array_equal(lags[:, : labels + 1, :labels], w[tokens.size :].reshape(order, labels + 1, labels))
    assert np.count_nonzero(lags) == order * (labels + 1) * labels
    assert model.squared_norm == pytest.approx(w @ w)


def test_set_weights_forgets_the_weights_before():
    chain = Chain(1, 3, 4)
    model = chain.model(np.ones(chain.size))
    smaller = Chain(1, 2, 2)
    model.set_weights(*parts(np.full(smaller.size, 2.0), smaller))
    assert (model.features, model.labels) == (3, 4)
    assert model.squared_norm == 4 * smaller.size
