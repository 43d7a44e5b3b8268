"""The compiled sessions on chains: against the algorithms written out, general solvers, and their own certificates."""

from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from larank import _core
from properties import draws
from references.chains import (
    Chain,
    Corpus,
    Grammar,
    Pattern,
    corpus,
    expansion,
    grammar_that_allows,
    hooks,
    possible_steps,
    state,
    stretches,
    weights,
)
from references.splitmix import SplitMix
from sessions import assert_same, on_every_level

PLENTY = 2**40
INFERENCE = ("exact", "greedy")
seeds, orders, inferences = st.integers(0, 10**6), st.integers(0, 3), st.sampled_from(INFERENCE)
both_inferences = pytest.mark.parametrize("inference", INFERENCE)
STEPS = (hooks.process_old, hooks.optimize)


def session(model, **settings):
    chosen = {"tau": 1e-4, "n_reprocess": 1, "memory_limit": PLENTY, "returns": True, "seed": 7, **settings}
    return _core.ChainLaRank(model, **chosen)


def perceptron_of(model, rule, averages=True):
    return _core.ChainPerceptron(model, rule=rule, averages=averages)


def numbers(data, inference):
    """Of the first stretch of each sequence."""
    return data.starts[:-1].copy() if inference == "greedy" else np.arange(len(data), dtype=np.int64)


def learn(to, data, costs, inference, order=None, history="true"):
    order = np.arange(len(data), dtype=np.int64) if order is None else np.atleast_1d(np.asarray(order, dtype=np.int64))
    to.learn(data.block, data.labels, costs, numbers(data, inference), order, inference, history)


def costs_of_patterns(data, costs, inference):
    return np.repeat(costs, np.diff(data.starts)) if inference == "greedy" else costs


def patterns_of(data, order, inference, costs):
    """All stretches and the costs of each."""
    cut = [x for i in range(len(data)) for x in stretches(*data.sequence(i), order, inference)]
    return cut, costs_of_patterns(data, costs, inference)


def random_problem(seed, order, *, labels=3, has_grammar=False, **settings):
    """Losses and values at random, so that no two outputs tie."""
    random = np.random.default_rng(seed)
    data = corpus(seed, labels=labels, **settings)
    delta = random.uniform(0.5, 2, (labels, labels)) * (1 - np.eye(labels))
    grammar = grammar_that_allows(random, labels, data) if has_grammar else None
    chain = Chain(order, data.X.shape[1], labels, delta, grammar)
    return chain, data, random.uniform(0.05, 1, len(data))


def check(larank, chain, model, costs_of):
    """Everything that must hold between two calls. Returns the dual."""
    patterns = state(larank, chain)
    assert len({pattern.id for pattern in patterns}) == len(patterns) == larank.support_patterns
    for pattern in patterns:
        assert pattern.alpha
        assert min(pattern.alpha.values()) > 0
        assert sum(pattern.alpha.values()) <= costs_of[pattern.id] * (1 + 1e-12)
        assert pattern.x.truth not in pattern.alpha
        for y in pattern.alpha:
            assert chain.grammar.allows(y, pattern.x.previous, pattern.x.remaining)
    w, linear = expansion(patterns, chain)
    np.testing.assert_allclose(weights(model), w, atol=1e-9)
    assert larank.linear == pytest.approx(linear, abs=1e-9)
    assert larank.dual == pytest.approx(linear - w @ w / 2, abs=1e-9)
    assert hooks.dual_from_weights(larank) == pytest.approx(larank.dual, abs=1e-9)
    assert larank.support_vectors == sum(1 + len(pattern.alpha) for pattern in patterns)
    return larank.dual


# LaRank


@draws(40)
@given(orders, inferences, st.booleans(), st.booleans(), st.sampled_from([0.0, 1e-3, 0.3]), seeds)
def test_operations_are_algorithms_17_to_20_written_out(order, inference, has_grammar, has_ties, tau, seed):
    chain, data, costs = random_problem(seed, order, sequences=6, longest=3, has_grammar=has_grammar)
    if has_ties:
        chain.delta = 1 - np.eye(chain.labels)
    model = chain.model()
    larank = session(model, n_reprocess=0, tau=tau, seed=seed)
    random = SplitMix(seed)
    for i in [*range(len(data))] * 3:
        before = Before(larank, chain, model)
        learn(larank, data, costs, inference, i)
        if inference == "exact" and i in [pattern.id for pattern in before.patterns]:
            assert str(state(larank, chain)) == str(before.patterns)
            np.testing.assert_array_equal(weights(model), before.w)
        elif inference == "exact":
            (x,) = stretches(*data.sequence(i), order, inference)
            before.must_have_stepped(Pattern(i, costs[i], x, {}), chain.outputs(x), tau)
        for operation, searches in zip(STEPS * 3, (True, False) * 3, strict=True):
            before = Before(larank, chain, model)
            operation(larank)
            if before.patterns:
                pattern = before.patterns[random.below(len(before.patterns))]
                known = [*pattern.alpha, pattern.x.truth]
                before.must_have_stepped(pattern, chain.outputs(pattern.x) if searches else known, tau)
    assert larank.random_state == random.state


class Before:
    """What a session was before an operation, to be compared with what it is after."""

    def __init__(self, larank, chain, model):
        self.larank, self.chain, self.model = larank, chain, model
        self.patterns, self.w, self.dual = state(larank, chain), weights(model), larank.dual

    def must_have_stepped(self, pattern, outputs, tau):
        now = {other.id: other.alpha for other in state(self.larank, self.chain)}
        alpha = now.pop(pattern.id, {})
        assert now == {other.id: other.alpha for other in self.patterns if other.id != pattern.id}
        found, dual = weights(self.model), self.larank.dual
        assert any(
            above_rounding(alpha) == pytest.approx(above_rounding(expected), abs=1e-9)
            and found == pytest.approx(w, abs=1e-9)
            and dual == pytest.approx(self.dual + increase, abs=1e-9)
            for w, expected, increase in possible_steps(self.chain, self.w, pattern, outputs, tau)
        )


def above_rounding(alpha):
    """Without the coefficients that a step has left where it should have left none."""
    return {output: value for output, value in alpha.items() if value > 1e-12}


@both_inferences
@pytest.mark.parametrize("n_reprocess", [0, 1, 3])
def test_the_schedule_is_algorithm_21(inference, n_reprocess):
    """One PROCESSNEW, then n_R times one PROCESSOLD and ten OPTIMIZE: the same by hand gives the same model."""
    chain, data, costs = random_problem(0, 1, sequences=10, longest=1 if inference == "greedy" else 4)
    models = chain.model(), chain.model()
    scheduled, by_hand = session(models[0], n_reprocess=n_reprocess), session(models[1], n_reprocess=0)
    for i in [*range(len(data))] * 2:
        learn(scheduled, data, costs, inference, i)
        learn(by_hand, data, costs, inference, i)
        for _ in range(n_reprocess):
            hooks.process_old(by_hand)
            for _ in range(10):
                hooks.optimize(by_hand)
        np.testing.assert_array_equal(*map(weights, models))
    assert scheduled.operations == by_hand.operations
    assert scheduled.operations["process_new"] == 2 * len(data)


@draws(40)
@given(orders, inferences, st.integers(0, 2), st.sampled_from([0.0, 1e-3, 0.5]), st.booleans(), st.booleans(), seeds)
def test_larank_is_feasible_ascends_and_bounds_the_optimum(order, inference, n_reprocess, tau, binary, bound, seed):
    """With ties, tokens without features, and Hamming losses."""
    chain, data, costs = random_problem(seed, order, is_binary=binary, has_grammar=bound)
    chain.delta = 1 - np.eye(chain.labels)
    model = chain.model()
    larank = session(model, n_reprocess=n_reprocess, tau=tau, seed=seed)
    costs_of, dual = costs_of_patterns(data, costs, inference), 0.0
    for i in np.random.default_rng(seed).integers(0, len(data), 15):
        for step in (partial(learn, data=data, costs=costs, inference=inference, order=i), *STEPS):
            step(larank)
            before, dual = dual, check(larank, chain, model, costs_of)
            assert dual >= before - 1e-12
        loss = model.losses(data.block, data.labels, costs, 0, len(data), inference)
        assert model.squared_norm / 2 + loss >= dual - 1e-9


@both_inferences
@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("has_grammar", [False, True])
def test_many_epochs_reach_the_optimum_of_a_general_solver(inference, order, has_grammar):
    for seed in range(3):
        chain, data, costs = random_problem(seed, order, sequences=5, longest=3, has_grammar=has_grammar)
        model = chain.model()
        larank = session(model, tau=1e-9)
        for _ in range(400):
            learn(larank, data, costs, inference)
        optimum, bound = chain.optimum(*patterns_of(data, order, inference, costs))
        np.testing.assert_allclose(weights(model), optimum, atol=1e-4)
        assert larank.dual == pytest.approx(bound, rel=1e-6)
        loss = model.losses(data.block, data.labels, costs, 0, len(data), inference)
        assert model.squared_norm / 2 + loss == pytest.approx(bound, rel=1e-5)


# Memory


@draws(30)
@given(st.integers(0, 2), inferences, seeds, st.integers(200, 2500))
def test_patterns_that_memory_cannot_hold_stay_in_the_weights_and_are_not_learnt_again(order, inference, seed, limit):
    chain, data, costs = random_problem(seed, order, sequences=6, longest=3)
    model = chain.model()
    larank = session(model, memory_limit=limit, seed=seed)
    _, bound = chain.optimum(*patterns_of(data, order, inference, costs))
    dual = 0.0
    for _ in range(30):
        for i in range(len(data)):
            learn(larank, data, costs, inference, i)
            assert hooks.bytes(larank) <= limit or larank.support_patterns == 1
            before, dual = dual, larank.dual
            assert before - 1e-12 <= dual <= bound + 1e-7
            assert dual == pytest.approx(hooks.dual_from_weights(larank), abs=1e-9)
            for pattern in state(larank, chain):
                assert sum(pattern.alpha.values()) <= pattern.cost * (1 + 1e-12)
    frozen = larank.operations["frozen"]
    assert frozen + larank.support_patterns <= len(costs_of_patterns(data, costs, inference))
    if frozen == 0:
        np.testing.assert_allclose(weights(model), expansion(state(larank, chain), chain)[0], atol=1e-9)


def test_memory_is_counted_in_full():
    """Longer sequences, more of them, more features, values and outputs take more bytes."""

    def used(sequences=5, length=2, features=3, is_binary=True, n_reprocess=0):
        random = np.random.default_rng(0)
        y = random.integers(0, 3, sequences * length).astype(np.int32)
        data = Corpus(np.arange(sequences + 1) * length, np.ones((len(y), features)), y, is_binary)
        model = _core.ChainModel(1)
        model.grow(features, 3)
        larank = session(model, n_reprocess=n_reprocess)
        learn(larank, data, np.ones(sequences), "exact")
        assert larank.support_patterns > 0.8 * sequences
        return hooks.bytes(larank)

    assert used(sequences=50) > 8 * used()
    assert used(length=200) > used() + 4 * 198 * (8 + 3 * 4 + 4 + 4)
    assert used(features=300) > used() + 4 * 2 * 297 * 4
    assert used(is_binary=False) > used() + 4 * 2 * 3 * 8
    assert used(n_reprocess=20) > used()


# Growth


@both_inferences
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("labels", [(3, 8, 9), (8, 16, 17), (7, 7, 26)])
@pytest.mark.parametrize("rule", [None, "perceptron", "passive-aggressive"])
def test_features_and_labels_that_come_later_give_the_model_that_knew_them_and_did_not_use_them(
    inference, order, labels, rule
):
    """A label that is not there yet is no rival of others, as one that is forbidden."""
    features = (4, 6, 12)
    random = np.random.default_rng(labels[0])
    lengths = random.integers(1, 5, 30)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    part = np.repeat(np.repeat([0, 1, 2], 10), lengths)
    y = (random.random(starts[-1]) * np.array(labels)[part]).astype(np.int32)
    X = random.normal(size=(starts[-1], features[-1])) * (np.arange(features[-1]) < np.array(features)[part][:, None])
    data = Corpus(starts, X, y)
    models, sessions = zip(
        *(grown(data, features, labels, inference, order, at_once=once, rule=rule) for once in (False, True)),
        strict=True,
    )
    np.testing.assert_allclose(*map(weights, models), atol=1e-9)
    assert models[0].squared_norm > 0
    if rule is None:
        chain = Chain(order, features[-1], labels[-1], LOSS[: labels[-1], : labels[-1]])
        one, other = (state(each, chain) for each in sessions)
        assert [pattern.id for pattern in one] == [pattern.id for pattern in other]
        for a, b in zip(one, other, strict=True):
            assert a.alpha == pytest.approx(b.alpha, abs=1e-9)
        for _ in range(20):
            hooks.process_old(sessions[0])
        check(sessions[0], chain, models[0], np.full(len(X), 0.3))
    else:
        means = [weights(each.average()) for each in sessions]
        np.testing.assert_allclose(*means, atol=1e-9)


def grown(data, features, labels, inference, order, *, at_once, rule):
    """Learns ten sequences, then ten others. Features and labels of later ones are not there yet, or forbidden."""
    model = _core.ChainModel(order)
    # Without REPROCESS, for after it derivatives are equal but for rounding, which the number of lanes decides.
    to = session(model, n_reprocess=0) if rule is None else perceptron_of(model, rule)
    for first, n_features, known in zip((0, 10, 20), features, labels, strict=True):
        n_features, n_labels = (features[-1], labels[-1]) if at_once else (n_features, known)
        is_known = np.arange(n_labels) < known
        model.grow(n_features, n_labels)
        model.set_grammar(np.tile(is_known, (n_labels + 1, 1)), is_known)
        model.set_loss(LOSS[:n_labels, :n_labels].copy())
        starts = data.starts[first : first + 11]
        tokens = slice(starts[0], starts[-1])
        part = Corpus(starts - starts[0], data.X[tokens, :n_features], data.labels[tokens])
        ids = starts[:-1].copy() if inference == "greedy" else np.arange(first, first + 10)
        to.learn(part.block, part.labels, np.full(10, 0.3), ids, np.arange(10), inference, "true")
    return model, to


LOSS = np.random.default_rng(5).uniform(0.5, 2, (30, 30)) * (1 - np.eye(30))


def test_patterns_longer_than_what_comes_later_obey_a_grammar_that_is_given_later():
    """The new grammar has to know how the ends of the earlier, longer sequences can be reached."""
    # Even and odd labels in turn, an odd one last: which labels can be completed depends on how many tokens are left.
    in_turn = np.arange(4)[:, None] % 2 != np.arange(4) % 2
    grammar = Grammar(np.vstack([np.ones((1, 4), dtype=bool), in_turn]), np.arange(4) % 2 == 1)
    random = np.random.default_rng(0)
    y = np.concatenate([(1 - np.arange(21) % 2) for _ in range(4)]) + 2 * random.integers(0, 2, 84)
    long = Corpus(np.arange(5) * 21, random.normal(size=(84, 3)), y.astype(np.int32))
    short = Corpus(np.array([0, 1, 3]), random.normal(size=(3, 3)), np.array([1, 0, 3], dtype=np.int32))
    model = _core.ChainModel(1)
    model.grow(3, 4)
    model.set_grammar(*grammar)
    larank = session(model)
    learn(larank, long, np.ones(4), "greedy")
    model.set_grammar(*grammar)
    larank.learn(short.block, short.labels, np.ones(2), np.array([100, 101]), np.arange(2), "greedy", "true")
    for _ in range(500):
        hooks.process_old(larank)
    patterns = state(larank, Chain(1, 3, 4))
    assert len(patterns) > 20
    for pattern in patterns:
        for output in pattern.alpha:
            assert grammar.allows(output, pattern.x.previous, pattern.x.remaining)


# What is kept


@both_inferences
@pytest.mark.parametrize("order", [0, 1, 3])
@pytest.mark.parametrize("returns", [False, True])
def test_a_restored_session_goes_on_as_the_one_it_was_taken_from(inference, order, returns):
    chain, data, costs = random_problem(2, order, sequences=8, longest=4, has_grammar=True)
    model, copy = chain.model(), chain.model()
    larank = session(model, returns=returns)
    learn(larank, data, costs, inference, range(4))
    copy.set_weights(*model.tokens(), model.transitions())
    np.testing.assert_array_equal(weights(copy), weights(model))
    restored = session(copy, returns=returns, seed=larank.random_state)
    ids, kept_costs, lengths, indptr, indices, values, *rest = larank.state()
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    block = _core.ChainSequences(starts, indptr, indices, values, chain.features)
    restored.restore(larank.linear, block, ids, kept_costs, *rest)
    assert restored.dual == pytest.approx(larank.dual)
    assert state(restored, chain) != []
    for one, other in zip(larank.state(), restored.state(), strict=True):
        np.testing.assert_array_equal(one, other)
    for i in [4, 5, 0, 1, 2, 6, 7, 3, 0] if returns else [4, 5, 6, 7]:
        for each in (larank, restored):
            learn(each, data, costs, inference, i)
        np.testing.assert_allclose(weights(copy), weights(model), atol=1e-9)
        check(restored, chain, copy, costs_of_patterns(data, costs, inference))
    assert restored.random_state == larank.random_state


# Perceptrons


class Online(NamedTuple):
    """What an online rule has come to."""

    w: np.ndarray
    sum_of_weights: np.ndarray
    seen_loss: float = 0.0
    linear: float = 0.0
    count: int = 0


def written_out(chain, now, x, cost, rule, rounding=1e-9):
    """A stretch of [thesis] algorithm 6 or the passive-aggressive rule, with each output that is best but for rounding.

    Steps of the passive-aggressive rule make derivatives equal, so that rounding alone chooses.
    """
    own, losses = chain.phi(x, x.truth), 0.0 if rule == "perceptron" else 1.0
    value = {y: losses * chain.loss(x, y) + now.w @ (chain.phi(x, y) - own) for y in chain.outputs(x)}
    for y in value:
        if value[y] < max(value.values()) - rounding:
            continue
        difference = own - chain.phi(x, y)
        curvature, h = difference @ difference, chain.h(now.w, x, y)
        step = cost if rule == "perceptron" or curvature == 0 else max(0.0, min(cost, h / curvature))
        if y == x.truth:
            step = h = 0.0
        w = now.w + step * difference
        linear = now.linear + step * chain.loss(x, y)
        yield Online(w, now.sum_of_weights + w, now.seen_loss + cost * max(h, 0.0), linear, now.count + 1)


@draws(100)
@given(orders, inferences, st.booleans(), st.sampled_from(["perceptron", "passive-aggressive"]), seeds)
def test_online_rules_are_what_they_are_written_out_and_average_all_weights(order, inference, is_own, rule, seed):
    """An own history is what the weights before the sequence predict."""
    is_own = is_own and inference == "greedy"
    chain, data, costs = random_problem(seed, order, has_grammar=bool(seed % 2), is_binary=bool(seed % 3))
    start = np.random.default_rng(seed).normal(size=chain.size) / 10
    model = chain.model(start)
    perceptron = perceptron_of(model, rule)
    possible = [Online(start, np.zeros(chain.size))]
    for i in [*range(len(data))] * 2:
        X, truth = data.sequence(i)
        for x in stretches(X, truth, order, inference, chain.greedy(weights(model), X) if is_own else None):
            possible = [after for now in possible for after in written_out(chain, now, x, costs[i], rule)]
        learn(perceptron, data, costs, inference, i, "predicted" if is_own else "true")
        found = weights(model)
        mean = weights(perceptron.average())
        possible = [
            now
            for now in possible
            if found == pytest.approx(now.w, abs=1e-9)
            and mean == pytest.approx(now.sum_of_weights / now.count, abs=1e-9)
            and perceptron.seen_loss == pytest.approx(now.seen_loss, abs=1e-7)
            and perceptron.linear == pytest.approx(now.linear, abs=1e-9)
        ][:1]
        assert possible
    assert perceptron.argmax_calls == possible[0].count


@both_inferences
def test_larank_without_reprocess_is_the_passive_aggressive_rule(inference):
    chain, data, costs = random_problem(4, 1, sequences=20)
    models = chain.model(), chain.model()
    larank = session(models[0], tau=0.0, n_reprocess=0)
    aggressive = perceptron_of(models[1], "passive-aggressive", averages=False)
    for each in (larank, aggressive):
        learn(each, data, costs, inference)
    np.testing.assert_allclose(*map(weights, models), atol=1e-12)
    assert aggressive.dual == pytest.approx(larank.dual)
    assert aggressive.seen_loss == pytest.approx(larank.seen_loss)


@both_inferences
@pytest.mark.parametrize("bound", [{}, {"max_patterns": 2}, {"memory_limit": 1}], ids=str)
def test_larank_averages_its_weights_and_late_ones_count_most(inference, bound):
    chain, data, costs = random_problem(5, 1, sequences=20)
    model = chain.model()
    larank = session(model, n_reprocess=3, averages=True, **bound)
    sum_of_weights = np.zeros(chain.size)
    for first in range(2 * len(data)):
        before = larank.stretches
        learn(larank, data, costs, inference, first % len(data))
        if inference == "exact":  # each sequence is one stretch
            assert larank.stretches == before + 1
            sum_of_weights += (float(before + 1) ** 16 - float(before) ** 16) * weights(model)
            expected = sum_of_weights / float(larank.stretches) ** 16
            np.testing.assert_allclose(weights(larank.average()), expected, atol=1e-9)
    assert np.abs(weights(larank.average()) - weights(model)).max() > 1e-3


@pytest.mark.parametrize(
    ("solver", "power", "fraction", "stretches", "counter"),
    [("larank", 16, 0.95, 5, "process_new"), ("perceptron", 1, 0.2, 4, "examples")],
)
def test_a_shortened_average_is_what_it_was_and_then_goes_on(solver, power, fraction, stretches, counter):
    chain, data, costs = random_problem(5, 1, sequences=20)
    model = chain.model()
    is_larank = solver == "larank"
    trained = session(model, n_reprocess=3, averages=True) if is_larank else perceptron_of(model, "perceptron")
    learn(trained, data, costs, "exact", range(15))
    average = weights(trained.average())
    assert np.abs(average - weights(model)).max() > 1e-3
    trained.shorten_average(1.0, 0.001)  # as if there had been more stretches than there were
    assert trained.stretches == 15
    trained.shorten_average(1.0, fraction)
    assert trained.stretches == stretches
    for sequence in range(15, 20):
        np.testing.assert_allclose(weights(trained.average()), average, atol=1e-12)
        before = trained.stretches
        learn(trained, data, costs, "exact", [sequence])
        rest = (before / trained.stretches) ** power
        average = rest * average + (1 - rest) * weights(model)
    assert dict(trained.operations)[counter] == 20


# Histories


def test_larank_keeps_its_own_history_with_the_pattern():
    chain, data, costs = random_problem(8, 2, sequences=12, longest=6)
    model = chain.model(np.random.default_rng(1).normal(size=chain.size))
    larank = session(model, n_reprocess=0)
    kept = {}
    for i in range(len(data)):
        X, truth = data.sequence(i)
        past = chain.greedy(weights(model), X)
        kept.update(enumerate(stretches(X, truth, 2, "greedy", past), int(data.starts[i])))
        learn(larank, data, costs, "greedy", i, history="predicted")
    true = [x for i in range(len(data)) for x in stretches(*data.sequence(i), 2, "greedy")]
    patterns = state(larank, chain)
    assert any(pattern.x.history != true[pattern.id].history for pattern in patterns)
    for pattern in patterns:
        assert pattern.x.history == kept[pattern.id].history
        assert pattern.x.previous == true[pattern.id].previous


# Machines


@pytest.mark.parametrize("labels", [3, 9, 20, 40, 70])
@both_inferences
def test_instruction_sets_do_not_change_the_model(labels, inference):
    data = corpus(1, sequences=20, longest=8, features=30, labels=labels)

    def learned():
        model = _core.ChainModel(1)
        model.grow(30, labels)
        larank = session(model)
        learn(larank, data, np.full(20, 0.2), inference, [*range(20)] * 3)
        return weights(model), model.predict(data.block, 0, 20, inference)[0], larank.dual

    expected = learned()
    for _ in on_every_level():
        assert_same(learned(), expected)
