"""Arguments that do not fit: the bindings of chains raise, say why, and leave everything as it was."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from larank import _core
from properties import draws
from references.chains import corpus, hooks, weights


def i32(*values):
    return np.array(values, dtype=np.int32)


def i64(*values):
    return np.array(values, dtype=np.int64)


DATA = corpus(0, sequences=3, longest=3, features=3, labels=3, empty=0.0)
COSTS = np.ones(3)
EVERY = np.arange(3, dtype=np.int64)


def model(order=1, features=3, labels=3):
    chain = _core.ChainModel(order)
    chain.grow(features, labels)
    return chain


def larank(chain, **settings):
    chosen = {"tau": 1e-3, "n_reprocess": 1, "memory_limit": 10**9, "returns": True, "seed": 0, **settings}
    return _core.ChainLaRank(chain, **chosen)


def perceptron(chain, rule="perceptron"):
    return _core.ChainPerceptron(chain, rule=rule, averages=True)


def learnt(order=1):
    session = larank(chain := model(order))
    teach(session)
    return chain, session


def state_of(order=1):
    """The arguments of `restore`."""
    _, session = learnt(order)
    ids, costs, lengths, indptr, indices, values, *rest = session.state()
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    names = ("truth", "history", "previous", "remaining", "outputs", "alpha", "labels")
    block = _core.ChainSequences(starts, indptr, indices, values, 3)
    return {
        "linear": session.linear,
        "sequences": block,
        "ids": ids,
        "costs": costs,
        **dict(zip(names, rest, strict=True)),
    }


WEIGHTS = (np.ones(2), i32(0, 2), i64(0, 1, 2, 2), np.zeros((1, 4, 3)))


def teach(to, **change):
    """Learn from DATA, with other arguments where they are given."""
    good = {"sequences": DATA.block, "labels": DATA.labels, "costs": COSTS, "ids": EVERY, "order": EVERY}
    to.learn(**{**good, "inference": "exact", "history": "true", **change})


def set_weights(chain, place=0, wrong=WEIGHTS[0]):
    chain.set_weights(*WEIGHTS[:place], wrong, *WEIGHTS[place + 1 :])


def restore(name, value, order=1):
    """Restore a state whose last value of one array is another one."""
    state = state_of(order)
    state[name][-1] = value
    larank(model(order)).restore(**state)


# The arguments of ChainSequences.
BLOCKS = [
    (i64(), i64(0), i32(), None, 1, "starts must begin with 0"),
    (i64(1, 2), i64(0, 0), i32(), None, 1, "starts must begin with 0"),
    (i64(0, 1), i64(), i32(), None, 1, "indptr must begin with 0"),
    (i64(0, 1), i64(1, 1), i32(0), None, 1, "indptr must begin with 0"),
    (i64(0, 0, 1), i64(0, 0), i32(), None, 1, "every sequence needs a token"),
    (i64(0, 2, 1), i64(0, 0), i32(), None, 1, "every sequence needs a token"),
    (i64(0, 2), i64(0, 0), i32(), None, 1, "starts must end with the tokens"),
    (i64(0, 2), i64(0, 2, 1), i32(0), None, 1, "indptr must not decrease"),
    (i64(0, 2), i64(0, 2**63 - 1, -(2**63)), i32(0), None, 1, "indptr must not decrease"),
    (i64(0, 1), i64(0, 2), i32(0), None, 1, "as many as indptr says"),
    (i64(0, 1), i64(0, 1), i32(0), np.ones(2), 1, "as many as indptr says"),
    (i64(0, 1), i64(0, 1), i32(1), None, 1, "from 0 to features - 1"),
    (i64(0, 1), i64(0, 1), i32(-1), None, 1, "from 0 to features - 1"),
    (i64(0, 1), i64(0, 1), i32(0), None, -1, "from 0 to features - 1"),
]
SIZES_OF_A_MODEL = [
    (-1, 3, "features must be from 0"),
    (2**31, 3, "features must be from 0"),
    (3, -1, "labels must be from 0"),
    (3, 2**24, "labels must be from 0"),
]
# Calls of a model and of a session that has learnt with it.
CALLS = [
    (lambda m, s: m.predict(DATA.block, -1, 1, "exact"), "no such sequences"),
    (lambda m, s: m.predict(DATA.block, 0, 4, "exact"), "no such sequences"),
    (lambda m, s: m.predict(DATA.block, 2, 1, "greedy"), "no such sequences"),
    (lambda m, s: m.predict(DATA.block, 0, 1, "best"), "'exact', 'greedy', got 'best'"),
    (lambda m, s: m.losses(DATA.block, DATA.labels, COSTS, 0, 1, ""), "'exact', 'greedy'"),
    (lambda m, s: m.path_without(DATA.block, 3, 0, 0, "exact"), "no sequence 3"),
    (lambda m, s: m.best_paths(DATA.block, 2**63 - 1, 1), "no sequence"),
    (lambda m, s: m.path_without(DATA.block, 0, 99, 0, "exact"), "no such position"),
    (lambda m, s: m.path_without(DATA.block, 0, 0, 3, "greedy"), "no such label"),
    (lambda m, s: m.path_without(DATA.block, 0, 0, -1, "exact"), "no such label"),
    (lambda m, s: m.best_paths(DATA.block, 0, 0), "count must be at least 1, got 0"),
    (lambda m, s: m.losses(DATA.block, i32(0), COSTS, 0, 3, "exact"), "one per token"),
    (lambda m, s: m.losses(DATA.block, DATA.labels, np.ones(2), 0, 3, "exact"), "one per sequence"),
    (lambda m, s: m.violation(DATA.block, DATA.labels + i32(3)), "from 0 to the labels"),
    (lambda m, s: m.set_grammar(np.ones((3, 3), bool), np.ones(3, bool)), "for the labels of the model"),
    (lambda m, s: m.set_grammar(np.ones((4, 3), bool), np.ones(2, bool)), "for the labels of the model"),
    (lambda m, s: m.set_loss(np.zeros((2, 3))), "a row and a column per label"),
    (lambda m, s: m.set_loss(np.eye(3) - 1), "0 on its diagonal and not negative"),
    (lambda m, s: m.set_loss(np.ones((3, 3))), "0 on its diagonal"),
    (lambda m, s: m.set_loss(np.full((3, 3), np.nan)), "0 on its diagonal"),
    (lambda m, s: m.set_loss(np.where(np.eye(3) > 0, 0.0, np.inf)), "0 on its diagonal"),
    (lambda m, s: larank(m, tau=-1e-9), "tau must not be negative"),
    (lambda m, s: larank(m, tau=np.nan), "tau must not be negative"),
    (lambda m, s: _core.ChainPerceptron(m, rule="", averages=True), "'perceptron', 'passive-aggressive'"),
    (lambda m, s: set_weights(m, 0, np.ones(3)), "as many"),
    (lambda m, s: set_weights(m, 1, i32(0)), "as many"),
    (lambda m, s: set_weights(m, 1, i32(0, 3)), "a CSR matrix"),
    (lambda m, s: set_weights(m, 1, i32(-1, 0)), "a CSR matrix"),
    (lambda m, s: set_weights(m, 2, i64(0, 1, 3, 3)), "a CSR matrix"),
    (lambda m, s: set_weights(m, 2, i64(-5, 1, 2, 2)), "a CSR matrix"),
    (lambda m, s: set_weights(m, 3, np.zeros((2, 4, 3))), "a table of labels"),
    (lambda m, s: set_weights(m, 3, np.zeros((1, 3, 3))), "a table of labels"),
    (lambda m, s: teach(s, ids=i64(0, 1)), "one per sequence"),
    (lambda m, s: teach(s, ids=i64(0, -1, 2)), "must not be negative"),
    (lambda m, s: restore("ids", -1), "ids and remaining must be counts"),
    (lambda m, s: restore("remaining", -1), "ids and remaining must be counts"),
    (lambda m, s: restore("remaining", 2**62), "ids and remaining must be counts"),
    (lambda m, s: _core.ChainModel(1).predict(NO_FEATURES, 0, 1, "greedy"), "the model has no labels"),
    # Arrays of another type are not copied.
    (lambda m, s: _core.ChainSequences(i32(0, 1), i64(0, 1), i32(0), None, 1), "incompatible function arguments"),
    (lambda m, s: m.violation(DATA.block, DATA.labels.astype(np.int64)), "incompatible function arguments"),
    (lambda m, s: teach(s, ids=EVERY.astype(np.int32)), "incompatible function arguments"),
]
NO_FEATURES = _core.ChainSequences(i64(0, 1), i64(0, 0), i32(), None, 0)
OTHER_FEATURES = _core.ChainSequences(i64(0, 1), i64(0, 1), i32(3), None, 4)
# The arguments of `learn` that do not fit.
LESSONS = [
    ({"labels": DATA.labels[:-1].copy()}, "one per token"),
    ({"labels": DATA.labels + i32(1)}, "from 0 to the labels"),
    ({"costs": np.ones(2)}, "one per sequence"),
    ({"order": i64(0, 3)}, "no sequence 3"),
    ({"order": i64(-1)}, "no sequence -1"),
    ({"inference": "viterbi"}, "'exact', 'greedy'"),
    (
        {"sequences": OTHER_FEATURES, "labels": i32(0), "costs": np.ones(1), "ids": i64(0), "order": i64(0)},
        "features that the model does not have",
    ),
]
# Values beyond the labels in arrays of a state.
OF_LABELS = "history, previous and labels must be labels of the model"
VALUES = {
    "truth": ([3, -1], "labels must be from 0 to the labels of the model - 1"),
    "history": ([3, -2], OF_LABELS),
    "previous": ([3, -2], OF_LABELS),
    "labels": ([3, -1], OF_LABELS),
    "outputs": ([0, -1, 2**62], "alpha and labels must be as many as outputs says"),
}
REFUSED = [
    *CALLS,
    *((lambda m, s, row=row: _core.ChainSequences(*row), message) for *row, message in BLOCKS),
    *((lambda m, s, n=n: _core.ChainModel(n), f"order must be from 0 to 255, got {n}") for n in (-1, 256, 2**40)),
    *((lambda m, s, row=row: m.grow(*row), message) for *row, message in SIZES_OF_A_MODEL),
    *((lambda m, s, change=change: teach(s, **change), message) for change, message in LESSONS),
    *((lambda m, s, change=change: teach(perceptron(m), **change), message) for change, message in LESSONS),
    *(
        (lambda m, s, name=name, value=value: restore(name, value), message)
        for name, (values, message) in VALUES.items()
        for value in values
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_calls_that_do_not_fit_are_refused_and_change_nothing(call, message):
    chain, session = learnt()
    before, state = weights(chain), str(session.state())
    with pytest.raises(TypeError if "incompatible" in message else ValueError, match=message):
        call(chain, session)
    np.testing.assert_array_equal(weights(chain), before)
    assert (chain.features, chain.labels, str(session.state())) == (3, 3, state)
    assert chain.predict(DATA.block, 0, 3, "exact")[1] == -1
    teach(session)
    teach(perceptron(chain))
    set_weights(chain)
    assert chain.squared_norm == 2


def test_a_grammar_or_a_loss_of_fewer_labels_is_refused_until_it_is_given_again():
    """Reading them for labels they do not have would be reading past their end."""
    for give, message in [
        (lambda m: m.set_grammar(np.ones((m.labels + 1, m.labels), bool), np.ones(m.labels, bool)), "the grammar"),
        (lambda m: m.set_loss(1 - np.eye(m.labels)), "delta"),
    ]:
        chain, session = learnt()
        give(chain)
        chain.grow(3, 40)
        for call in (
            lambda chain=chain: chain.predict(DATA.block, 0, 3, "greedy"),
            lambda chain=chain: chain.violation(DATA.block, DATA.labels),
            lambda chain=chain: chain.losses(DATA.block, DATA.labels, COSTS, 0, 3, "exact"),
            partial(teach, session),
            partial(hooks.process_old, session),
            partial(hooks.optimize, session),
        ):
            with pytest.raises(ValueError, match=f"{message} was given for 3 labels, the model has 40"):
                call()
        give(chain)
        hooks.process_old(session)
        assert chain.predict(DATA.block, 0, 3, "greedy")[1] == -1


def test_labels_that_the_grammar_forbids_are_not_learnt():
    chain = model()
    chain.set_grammar(np.zeros((4, 3), bool), np.zeros(3, bool))
    with pytest.raises(ValueError, match="the grammar does not allow the labels of sequence 1"):
        teach(larank(chain), order=i64(1))


def test_an_empty_session_steps_nowhere_and_has_an_empty_state_that_can_be_restored():
    session = larank(chain := model())
    hooks.process_old(session)
    hooks.optimize(session)
    assert (session.support_patterns, session.random_state, chain.squared_norm) == (0, 0, 0)
    state = session.state()
    assert [array.size for array in state] == [0, 0, 0, 1, *[0] * 9]
    block = _core.ChainSequences(i64(0), state[3], state[4], state[5], 3)
    larank(model()).restore(0.0, block, state[0], state[1], *state[6:])


PER_PATTERN = "ids, costs, previous, remaining and outputs must be one per pattern"
SUPPORT = "alpha and labels must be as many as outputs says"
SIZES = dict.fromkeys(("ids", "costs", "previous", "remaining", "outputs"), PER_PATTERN) | {
    "truth": "labels must be one per token",
    "history": "history must be the order many per pattern",
    "alpha": SUPPORT,
    "labels": SUPPORT,
}


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", SIZES)
def test_states_with_too_few_or_too_many_values_are_refused(name, order):
    good = state_of(order)
    session = larank(model(order))
    session.restore(**good)
    before = str(session.state())
    longer = np.append(good[name], good[name][:1] if good[name].size else 0).astype(good[name].dtype)
    for wrong in (longer, good[name][:-1].copy()):
        if wrong.shape != good[name].shape:  # as an empty one
            with pytest.raises(ValueError, match=SIZES[name]):
                session.restore(**{**good, name: wrong})
            assert str(session.state()) == before


small = st.integers(-2, 5) | st.sampled_from([-(2**63), 2**63 - 1, 2**31])


def arrays(dtype, values=None):
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if values is None else (None, None)
    values = small.filter(lambda v: low <= v <= high) if values is None else values
    return st.lists(values, max_size=6).map(lambda v: np.array(v, dtype=dtype))


floats = st.sampled_from([0.0, 1.0, -1.0, 1e300, np.inf, np.nan])


@draws(150)
@given(st.data())
def test_no_arguments_crash(data):
    """Whatever the integers, each call either works or raises; sanitizers look on."""
    draw = data.draw
    chain, session = learnt(draw(st.integers(0, 2)))
    online = perceptron(chain, "passive-aggressive")
    block = DATA.block
    name, history = (st.sampled_from([*right, "other"]) for right in (["exact", "greedy"], ["true", "predicted"]))
    longs, labels = arrays(np.int64), arrays(np.int32)
    lengths = st.sampled_from([DATA.labels, DATA.labels[:2].copy(), DATA.labels + i32(9)])
    calls = [
        lambda: _core.ChainSequences(draw(longs), draw(longs), draw(labels), None, draw(small)),
        lambda: chain.predict(block, draw(small), draw(small), draw(name)),
        lambda: chain.path_without(block, draw(small), draw(small), draw(st.integers(-2, 5)), draw(name)),
        lambda: chain.best_paths(block, draw(small), draw(st.integers(-2, 100))),
        lambda: chain.losses(block, draw(lengths), COSTS, draw(small), draw(small), draw(name)),
        lambda: chain.set_weights(draw(arrays(np.float64, floats)), draw(labels), draw(longs), WEIGHTS[3]),
        lambda: chain.grow(draw(st.integers(-1, 9)), draw(st.integers(-1, 20))),
        lambda: chain.set_grammar(
            draw(st.sampled_from([np.ones((4, 3), bool), np.eye(3, dtype=bool)])), np.ones(3, bool)
        ),
        lambda: chain.set_loss(1 - np.eye(draw(st.integers(0, 20)))),
        lambda: session.learn(block, draw(lengths), COSTS, draw(ids_of(3)), draw(longs), draw(name), draw(history)),
        lambda: online.learn(block, draw(lengths), COSTS, EVERY, draw(longs), draw(name), draw(history)),
        lambda: session.restore(**{**state_of(), draw(st.sampled_from(["truth", "labels", "history"])): draw(labels)}),
        partial(hooks.process_old, session),
        partial(hooks.optimize, session),
        online.average,
    ]
    for _ in range(draw(st.integers(1, 6))):
        try:
            draw(st.sampled_from(calls))()
        except (ValueError, TypeError):
            continue
    session.state()
    chain.tokens()


def ids_of(count):
    return st.lists(st.integers(-1, 50), min_size=count, max_size=count).map(lambda v: np.array(v, dtype=np.int64))
