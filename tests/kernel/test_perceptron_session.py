"""The compiled perceptrons, fed by hand, against the algorithms of the thesis spelled out in NumPy."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from references.perceptrons import PASSIVE_AGGRESSIVE_RULES, more_classes, perceptron_rule, reference
from sessions import Drive as LaRankDrive
from sessions import Perceptron as Drive
from sessions import Rows, hooks, in_order_of_arrival, larank_session
from sessions import passive_aggressive_session as passive_aggressive
from sessions import perceptron_session as perceptron


def problem(n, k, seed=0):
    """Kernel values without ties, and labels that have something to do with them."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    labels = np.abs(X @ random.normal(size=(3, k)) + random.normal(size=(n, k))).argmax(axis=1)
    return rbf_kernel(X, gamma=0.3), in_order_of_arrival(labels)


def orders_of(n, epochs, seed=5):
    """The labels are numbered as they arrive in the first epoch."""
    return [np.arange(n), *(np.random.default_rng(seed + epoch).permutation(n) for epoch in range(epochs - 1))]


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (perceptron, perceptron_rule()),
        (lambda: perceptron(margin=0.5), perceptron_rule(0.5)),
        *((partial(passive_aggressive, loss=loss), rule) for loss, rule in PASSIVE_AGGRESSIVE_RULES.items()),
    ],
    ids=["perceptron", "margin", *PASSIVE_AGGRESSIVE_RULES],
)
@given(st.integers(2, 80), st.integers(2, 5), st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 100.0]))
def test_sessions_are_algorithms_2_and_3_and_their_average_that_of_all_decision_functions(make, rule, n, k, seed, C):
    K, labels = problem(n, k, seed)
    costs = np.ones(n)
    if rule in PASSIVE_AGGRESSIVE_RULES.values():
        K *= np.outer(s := np.random.default_rng(seed).uniform(0.5, 2, n), s)
        costs = C * np.random.default_rng(seed + 1).uniform(0.5, 2, n)
    orders = orders_of(n, 3)
    drive = Drive(make(), K, labels, costs, block=16)
    for order in orders:
        drive.epoch(order)
    history = reference(K, labels, costs, orders, rule)
    close, mean = (1e-9, 1e-9) if rule in PASSIVE_AGGRESSIVE_RULES.values() else (0, 1e-12)
    np.testing.assert_allclose(drive.beta(), history[-1], rtol=close, atol=close)
    np.testing.assert_allclose(drive.average(), history.mean(axis=0), rtol=close, atol=mean)


def margins(beta, K, labels, arrived):
    """Of all examples with these coefficients."""
    scores = K @ beta
    if beta.shape[1] == 1:
        return (2 * labels - 1) * scores[:, 0]
    own = scores[np.arange(len(labels)), labels]
    scores[np.arange(len(labels)), labels] = -np.inf
    return own - scores[:, :arrived].max(axis=1)


@given(st.integers(2, 80), st.integers(2, 4), st.integers(0, 10**6), st.integers(1, 20), st.sampled_from([0.0, 0.3]))
def test_over_the_budget_the_pattern_that_needs_itself_least_leaves(n, k, seed, budget, margin):
    """Algorithm 4, one example at a time: ties may go either way."""
    K, labels = problem(n, k, seed)
    drive = Drive(perceptron(margin=margin, budget=budget), K, labels, block=1)
    before = drive.beta()
    for t in np.concatenate(orders_of(n, 2)):
        after = drive.epoch(np.array([t])).beta()
        arrived = drive.session.columns
        m = margins(before, K, labels, arrived)[t]
        grown = before.copy()
        if m <= margin:
            step = np.array([2.0 * labels[t] - 1])
            if not hooks.is_single(drive.session):
                scores = np.where(np.arange(arrived) == labels[t], -np.inf, (K[t] @ before)[:arrived])
                step = np.eye(before.shape[1])[labels[t]] - np.eye(before.shape[1])[scores.argmax()]
            grown[t] += step
        left = np.flatnonzero((after != grown).any(axis=1))
        support = np.flatnonzero(grown.any(axis=1))
        if abs(m - margin) > 1e-12:
            assert len(left) == max(0, len(support) - budget)
        if len(support) > budget:
            alone = [margins(np.where(np.arange(n)[:, None] == i, 0, grown), K, labels, arrived)[i] for i in support]
            assert not after[left].any()
            assert alone[support.tolist().index(left[0])] >= max(alone) - 1e-12
        before = after
    assert drive.session.support_patterns <= budget


def test_what_is_counted_is_what_happened():
    K, labels = problem(100, 2, seed=4)
    drive = Drive(perceptron(margin=0.4, budget=10), K, labels, block=7).epoch()
    visits, mistakes, updates, removals = drive.session.state
    assert removals == drive.session.counters.removals
    assert visits == 100
    assert 0 < mistakes < updates < visits
    assert removals == updates - drive.session.support_patterns
    assert drive.session.support_patterns == 10


def test_the_perceptron_stops_making_mistakes_where_a_solution_exists():
    K, labels = problem(60, 2, seed=1)
    K += 0.2 * np.eye(60)  # then one does, with a margin
    drive = Drive(perceptron(), K, labels)
    mistakes = [drive.epoch().session.counters.mistakes for _ in range(200)]
    assert mistakes[-1] == mistakes[-2]
    assert ((2 * labels - 1) * (K @ drive.beta())[:, 0] > 0).all()


def test_without_a_budget_no_rows_are_kept_and_memory_is_linear():
    drives = [Drive(passive_aggressive(), *problem(n, 3, seed=7), block=32).epoch() for n in (200, 400)]
    assert [drive.session.resident_rows for drive in drives] == [0, 0]
    few, many = (drive.session.bytes / drive.session.support_patterns for drive in drives)
    assert many < 1.5 * few


@pytest.mark.parametrize("budget", [None, 15])
def test_a_perceptron_that_meets_a_third_class_goes_on_as_if_it_had_been_there(budget):
    K, labels = problem(120, 2, seed=8)
    late = labels.copy()
    late[80:] = np.random.default_rng(0).integers(0, 3, 40)
    late[0], late[1] = 0, 1
    split = Drive(perceptron(budget=budget), K, late.clip(max=1), block=10).epoch(np.arange(80))
    scores = (K @ split.beta())[:, 0]
    split.session.split_column()
    np.testing.assert_allclose(K @ split.beta() @ [-1, 1], 2 * scores)
    split.labels = late
    split.epoch(np.arange(80, 120))
    # Two classes take part from the start where one column stands for both.
    whole = more_classes(K, late, np.ones(120), [np.arange(120)], perceptron_rule(), budget or np.inf, arrived=2)
    np.testing.assert_array_equal(split.beta(), whole[-1])
    if budget is None:
        np.testing.assert_allclose(split.average(), whole.mean(axis=0), atol=1e-12)


def test_splitting_leaves_the_decision_of_passive_aggressive_as_it_is():
    drive = Drive(passive_aggressive(), *problem(100, 2, seed=9)).epoch()
    before = (drive.K @ drive.beta())[:, 0]
    drive.session.split_column()
    np.testing.assert_allclose(drive.K @ drive.beta() @ [-1, 1], before)
    assert drive.session.columns == 2


@pytest.mark.parametrize("C", [0.2, 10.0])
def test_process_new_alone_is_multiclass_passive_aggressive_at_the_first_visit(C):
    """[larank] section 4.4; at later ones LaRank leaves support patterns alone and keeps coefficients below C."""
    data = *problem(200, 5, seed=11), np.full(200, C)
    larank = LaRankDrive(larank_session(operations=["new"], tau=0.0), *data, block=16).epoch()
    ours = Drive(passive_aggressive(), *data, block=16).epoch()
    np.testing.assert_allclose(larank.beta(), ours.beta(), atol=1e-12)
    assert larank.session.counters.argmax == ours.session.counters.visits == 200
    assert larank.epoch().beta().max() <= C
    assert np.abs(larank.beta() - ours.epoch().beta()).max() > 0.01


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("budget", [None, 20])
def test_a_session_rebuilt_from_its_table_goes_on_in_the_same_way(k, budget):
    K, labels = problem(200, k, seed=10)
    first = Drive(perceptron(budget=budget), K, labels).epoch(np.arange(100))
    again = Drive(perceptron(budget=budget), K, labels)
    table = first.session.table()
    again.session.restore(table, None if budget is None else Rows(K, table.ids))
    again.session.early, again.session.state = first.session.early, first.session.state
    for drive in (first, again):
        drive.epoch(np.arange(100, 200)).epoch()
    np.testing.assert_array_equal(first.beta(), again.beta())
    np.testing.assert_array_equal(first.average(), again.average())
    assert first.session.state == again.session.state
