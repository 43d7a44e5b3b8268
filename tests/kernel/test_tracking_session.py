"""The compiled sessions of the tracking algorithms, against algorithms 15 and 16 written out, and their theorems."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from references.optima import binary_optimum
from references.splitmix import SplitMix
from sessions import Drive, dense, hooks, in_order_of_arrival
from sessions import tracking_session as session

ALGORITHMS = ("simple", "process-reprocess")


def problem(n, k=2, seed=0, dimensions=3):
    """Overlapping classes with |x| <= 1, some examples twice, some zero."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, dimensions))[random.integers(0, n, n)]
    X[random.random(n) < 0.1] = 0
    X /= max(1, np.linalg.norm(X, axis=1).max())
    return X @ X.T, in_order_of_arrival(random.integers(0, k, n))


def objectives(alpha, K, y, costs):
    w = alpha * y
    squared_norm = w @ K @ w
    return squared_norm / 2 + costs @ np.maximum(0, 1 - y * (K @ w)), alpha.sum() - squared_norm / 2


def written_out(algorithm, K, y, costs, n_steps, seed):
    """Algorithms 15 and 16 line by line; yields alpha and its average at every t, and what PROCESS brought."""
    random = SplitMix(seed)
    alpha = np.zeros(len(y))
    process_increase = 0.0

    def ascend(i):
        g = 1 - y[i] * (K[i] @ (alpha * y))
        step = g / K[i, i] if K[i, i] > 0 else np.sign(g) * np.inf
        step = max(-alpha[i], min(costs[i] - alpha[i], step))
        alpha[i] += step
        return step * (g - step / 2 * K[i, i])

    for t in range(1, len(y) + 1):
        if algorithm == "process-reprocess":
            process_increase += ascend(t - 1)
        average = np.zeros(len(y))
        for k in range(1, n_steps + 1):
            ascend(random.below(t))
            average = (k - 1) / k * average + alpha / k
        yield alpha.copy(), average, process_increase


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("n_steps", [1, 2, 9])
def test_every_average_is_that_of_the_algorithm_written_out(algorithm, n_steps):
    K, labels = problem(60, seed=n_steps)
    y = np.where(labels == 1, 1.0, -1.0)
    costs = np.random.default_rng(0).uniform(0.5, 3, 60)
    drive = Drive(session(algorithm=algorithm, n_steps=n_steps), K, labels, costs, block=1)
    expected = written_out(algorithm, K, y, costs, n_steps, 7)
    for t, (alpha, average, process_increase) in enumerate(expected):
        drive.epoch(np.array([t]))
        np.testing.assert_allclose(hooks.alpha(drive.session)[:, 0], alpha[: t + 1], atol=1e-10)
        np.testing.assert_allclose(hooks.averaged(drive.session)[:, 0], average[: t + 1], atol=1e-10)
        dual, by_process = hooks.increases(drive.session)[0]
        assert dual == pytest.approx(objectives(alpha, K, y, costs)[1], abs=1e-9)
        assert by_process == pytest.approx(process_increase, abs=1e-9)
    counters = drive.session.counters
    assert counters.reprocess == 60 * n_steps
    assert counters.process == (60 if algorithm == "process-reprocess" else 0)
    assert counters.steps < counters.process + counters.reprocess


@given(st.integers(2, 40), st.integers(2, 4), st.integers(0, 10**6), st.sampled_from(ALGORITHMS))
def test_coefficients_stay_in_their_box_the_dual_grows_and_scores_and_objectives_are_exact(n, k, seed, algorithm):
    K, labels = problem(n, k, seed)
    costs = np.random.default_rng(seed).uniform(0.1, 5, n)
    duals = [0.0]

    def look(drive):
        alpha, seen = hooks.alpha(drive.session), hooks.slot_ids(drive.session)
        assert (alpha >= 0).all()
        assert (alpha <= costs[seen][:, None]).all()
        average = hooks.averaged(drive.session)
        assert (average >= -1e-12).all()
        assert (average <= costs[seen][:, None] * (1 + 1e-12)).all()
        if drive.session.classes == 2:
            duals.append(hooks.increases(drive.session)[:, 0].sum())

    drive = Drive(session(algorithm=algorithm), K, labels, costs, look=look)
    drive.epoch(step=1)
    assert (np.diff(duals) >= -1e-12).all()
    seen = hooks.slot_ids(drive.session)
    for column, p in enumerate([1] if drive.session.classes <= 2 else range(drive.session.classes)):
        y = np.where(labels[seen] == p, 1.0, -1.0)
        alpha = hooks.alpha(drive.session)[:, column]
        among = K[np.ix_(seen, seen)]
        np.testing.assert_allclose(hooks.scores(drive.session)[:, column], among @ (alpha * y), atol=1e-9)
        primal, dual = objectives(alpha, among, y, costs[seen])
        np.testing.assert_allclose(drive.session.objectives()[column, :2], [primal, dual], atol=1e-9)


@given(st.integers(1, 25), st.integers(0, 10**6), st.sampled_from([0.05, 0.7, 1.5, 20.0]))
def test_the_gap_is_at_most_the_bound_of_lemma_5(n, seed, C):
    """At the session's own coefficients, and the quantities in it are what the lemma says."""
    K, labels = problem(n, seed=seed)
    y, costs = np.where(labels == 1, 1.0, -1.0), np.full(n, C)

    def look(drive):
        t = len(hooks.slot_ids(drive.session))
        primal, dual, expected, total = drive.session.objectives()[0]
        assert total == pytest.approx(t * expected, abs=1e-9)
        assert (primal - dual) / (C * max(1, t)) <= np.sqrt(2 * expected) + expected / C + 1e-9

    drive = Drive(session(), K, labels, costs, look=look).epoch(step=1)
    alpha, increases = hooks.alpha(drive.session)[:, 0], []
    for i in range(n):
        trial = np.repeat(alpha[None], 201, axis=0)
        trial[:, i] = np.linspace(0, C, 201)
        increases.append(max(objectives(a, K, y, costs)[1] for a in trial) - objectives(alpha, K, y, costs)[1])
    found = drive.session.objectives()[0, 2]
    assert np.mean(increases) <= found + 1e-9
    assert found == pytest.approx(np.mean(increases), abs=(C / 200) ** 2 + 1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("n_steps", [1, 4])
def test_the_average_excess_is_below_the_bound_of_theorems_6_and_7(algorithm, n_steps):
    T, C = 30, 1.0
    K, labels = problem(T, seed=11)
    y, costs = np.where(labels == 1, 1.0, -1.0), np.full(T, C)
    best = [binary_optimum(K[:t, :t], y[:t], costs[:t], bias=False) for t in range(1, T + 1)]
    excess, saved = [], []
    for seed in range(20):
        drive = Drive(session(algorithm=algorithm, n_steps=n_steps, seed=seed), K, labels, costs, block=1)
        suboptimal = []
        for t in range(1, T + 1):
            average = hooks.averaged(drive.epoch(np.array([t - 1])).session)[:, 0]
            primal, _ = objectives(average, K[:t, :t], y[:t], costs[:t])
            suboptimal.append((primal - best[t - 1]) / (C * t))
        assert min(suboptimal) >= -1e-6
        excess.append(np.mean(suboptimal))
        saved.append(hooks.increases(drive.session)[0, 1])
    x = (best[-1] - np.mean(saved)) / (n_steps * T)
    assert (np.mean(saved) > 0) == (algorithm == "process-reprocess")
    assert np.mean(excess) <= np.sqrt(2 * x) + x / C


@pytest.mark.parametrize("k", [2, 3])
def test_the_table_holds_the_averages_of_the_examples_that_have_any(k):
    K, labels = problem(60, k, seed=2)
    drive = Drive(session(), K, labels, np.ones(60)).epoch()
    table = drive.session.table()
    seen = hooks.slot_ids(drive.session)
    np.testing.assert_array_equal(dense(table, 60, drive.session.columns)[seen], hooks.averaged(drive.session))
    np.testing.assert_array_equal(table.labels, labels[table.ids])
    assert len(table.ids) == drive.session.support_patterns
