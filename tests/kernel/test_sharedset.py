"""The active set on a matrix of kernel values: its scores are sums of rows, its optimum that of a general solver."""

import numpy as np
import pytest

from checks import clouds, gram
from larank import MulticlassSVC, _core
from larank.kernel.machine import Expansion
from references import optima


def begun(kind, K, labels, costs, tau, formulation="crammer-singer", memory_limit=10**9, delta=None):
    """Return a session that has processed all examples."""
    session = kind(K, labels, 1 - np.eye(labels.max() + 1) if delta is None else delta, memory_limit)
    session.set_costs(np.broadcast_to(costs, len(labels)).astype(float))
    session.set_formulation(formulation)
    session.set_tau(tau)
    session.process(np.flatnonzero(np.broadcast_to(costs, len(labels)) > 0))
    return session


def looked(session, labels, scores):
    session.begin_look()
    session.look(0, len(labels), scores)
    return scores


def trained(K, labels, costs, **settings):
    """A session after as many rounds as it takes, and the scores of its last look."""
    session = begun(_core.SharedSet64, K, labels, costs, 1e-7, **settings)
    scores = np.zeros((len(labels), labels.max() + 1))
    for _ in range(100):
        while not session.converge(10**5):
            pass
        session.prune()
        at = session.judge(looked(session, labels, scores), 0.9, 1.1, 1e-9)
        if at.primal - (at.linear - at.half_squared_norm) <= 1e-6 * at.primal:
            return session, scores, at
        session.extend(scores)
    raise AssertionError("the gap did not close")


def zigzagging(seed, classes=3, features=4):
    """Kernel values of few features and labels that noise has mixed: steps get nowhere soon."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, features)) * np.geomspace(1, 0.05, features)
    labels = (X @ rng.normal(size=(features, classes)) + 0.01 * rng.normal(size=(80, classes))).argmax(axis=1)
    return X, labels.astype(np.int32)


@pytest.mark.parametrize("formulation", ["crammer-singer", "weston-watkins"])
@pytest.mark.parametrize("needs_moves", [False, True])
def test_the_optimum_is_that_of_a_general_solver(needs_moves, formulation):
    X, y = zigzagging(0) if needs_moves else clouds(40, 3, seed=2)
    labels, random = y.astype(np.int32), np.random.default_rng(0)
    costs = np.full(len(y), 20.0) if needs_moves else random.choice([0.0, 0.5, 3.0], len(y))
    session, _, at = trained(np.ascontiguousarray(X @ X.T), labels, costs, formulation=formulation)
    _, wanted = optima.optimum(formulation, X, labels, costs, 3)
    assert session.moves > 0 or not needs_moves
    assert at.linear - at.half_squared_norm == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("examples", [60, 400])  # many of them are support vectors of each class, or few
def test_squares_of_kernel_values_are_for_speed_alone(examples):
    X, y = clouds(examples, 4, seed=3)
    K, labels, costs = gram(X), y.astype(np.int32), np.full(len(y), 2.0)
    delta = np.random.default_rng(0).uniform(0.5, 2, (4, 4)) * (1 - np.eye(4))
    sessions = [trained(K, labels, costs, memory_limit=limit, delta=delta) for limit in (0, 10**9)]
    for session, scores, _ in sessions:
        members = Expansion.of(session)
        np.testing.assert_allclose(scores, K[:, members.ids] @ members.dense, atol=1e-9)
        assert members.dense.sum(axis=1) == pytest.approx(0, abs=1e-12)
        assert members.dense.max() <= 2.0
    assert sessions[0][2].primal == pytest.approx(sessions[1][2].primal, rel=1e-5)
    assert sessions[0][0].bytes <= sessions[1][0].bytes


def test_coefficients_can_be_set_and_scores_follow():
    X, y = clouds(200, 3, seed=4)
    K, labels = gram(X), y.astype(np.int32)
    session, scores, _ = trained(K, labels, np.ones(len(y)))
    members = Expansion.of(session)
    session.set_coefficients(members.ids, 0.5 * members.dense)
    np.testing.assert_allclose(looked(session, labels, scores), 0.5 * K[:, members.ids] @ members.dense, atol=1e-9)


@pytest.mark.parametrize("formulation", ["crammer-singer", "weston-watkins"])
@pytest.mark.parametrize("memory_limit", [0, 10**9])
@pytest.mark.parametrize("seed", range(3))
def test_moves_of_all_coefficients_are_feasible_raise_the_dual_and_keep_scores_right(formulation, memory_limit, seed):
    X, labels = zigzagging(seed)
    X, labels = np.tile(X, (6, 1)), np.tile(labels, 6)  # so that few are support vectors
    X = X + 0.01 * np.random.default_rng(seed).normal(size=X.shape)
    K, costs = np.ascontiguousarray(X @ X.T), np.where(np.arange(len(X)) % 2, 30.0, 100.0)
    delta = 1 - np.eye(labels.max() + 1)
    session = begun(_core.SharedSet64, K, labels, costs, 0.1, formulation, memory_limit)
    while not session.converge(10**5):
        pass
    session.prune()
    session.set_tau(1e-6)
    scores, before = np.zeros((len(labels), len(delta))), -np.inf
    for _ in range(400):
        rested = session.converge(1)
        members = Expansion.of(session)
        beta, is_label = members.dense, np.arange(len(delta)) == labels[members.ids][:, None]
        bounds = costs[members.ids][:, None]
        assert np.abs(beta.sum(axis=1)).max() <= 1e-12 * 100
        assert (beta[~is_label] <= 0).all()
        largest = beta if formulation == "crammer-singer" else -np.where(is_label, 0, beta)
        assert (largest <= bounds).all()
        np.testing.assert_allclose(looked(session, labels, scores), K[:, members.ids] @ beta, atol=1e-7)
        at = session.judge(scores, 1.0, 1.0, 1e-9)
        dual = at.linear - at.half_squared_norm
        assert dual >= before - 1e-9 * abs(dual)
        before = dual
        if rested:
            break
    assert session.moves > 0


def test_a_look_in_single_precision_is_right_where_large_coefficients_cancel():
    X, labels = zigzagging(1)
    K = gram(X).astype(np.float32)
    session = begun(_core.SharedSet32, K, labels, 1e6, 1e-3)
    session.prune()
    members = Expansion.of(session)
    pushed = 1e5 * np.sign(members.dense)
    pushed[np.arange(len(pushed)), labels[members.ids]] -= pushed.sum(axis=1)
    session.set_coefficients(members.ids, pushed)
    wanted = K[:, members.ids].astype(np.float64) @ pushed
    np.testing.assert_allclose(looked(session, labels, np.zeros((len(X), 3))), wanted, atol=1e-6)


def test_rounding_does_not_add_up_from_look_to_look():
    X, labels = zigzagging(2)
    K = gram(X).astype(np.float32)
    session = begun(_core.SharedSet32, K, labels, 1e4, 1.0)
    session.prune()
    members = Expansion.of(session)
    scores, rng = np.zeros((len(X), 3)), np.random.default_rng(0)
    for tau in [1.0] * 50 + [1e-5]:  # coarse sums will do for the first, but not for the last
        session.set_tau(tau)
        beta = 1e3 * rng.uniform(0, 1, len(members.ids))[:, None] * np.sign(members.dense)
        beta[np.arange(len(beta)), labels[members.ids]] -= beta.sum(axis=1)
        session.set_coefficients(members.ids, beta)
        wanted = K[:, members.ids].astype(np.float64) @ beta
        np.testing.assert_allclose(looked(session, labels, scores), wanted, atol=tau)


def test_costs_that_bind_nobody_need_no_further_look():
    X, y = clouds(150, 3, seed=5)
    models = MulticlassSVC(gamma=5.0, tol=1e-3, random_state=0).path(X, y, [1.0, 1e4, 1e5, 1e6])
    assert models[-1].result_.operations["looks"] == models[-1].result_.operations["steps"] == 0
    assert models[-1].result_.relative_gap <= 1e-3


def test_what_overflows_is_an_error():
    labels = np.arange(30, dtype=np.int32) % 3
    with pytest.raises(ValueError, match="overflowed"):
        trained(1e200 * (1 - np.eye(30)), labels, np.full(30, 1e200))
