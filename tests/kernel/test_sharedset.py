"""The active set on a matrix of kernel values: its scores are sums of rows, its optimum that of a general solver."""

import numpy as np
import pytest

import reference
from checks import clouds, gram
from larank import MulticlassSVC, _core
from larank.kernel.machine import Expansion

TAU = 1e-7


def trained(K, labels, costs, formulation="crammer-singer", memory_limit=10**9, delta=None):
    """A session after as many rounds as it takes, and the scores of its last look."""
    classes = labels.max() + 1
    delta = 1 - np.eye(classes) if delta is None else delta
    session = _core.SharedSet64(K, labels, delta, memory_limit)
    session.set_costs(costs)
    session.set_formulation(formulation)
    session.set_tau(TAU)
    session.process(np.flatnonzero(costs > 0))
    scores = np.zeros((len(labels), classes))
    for _ in range(100):
        while not session.converge(10**5):
            pass
        session.prune()
        session.look(0, len(labels), scores)
        at = session.judge(scores, 0.9, 1.1, 1e-9)
        if at.primal - (at.linear - at.half_squared_norm) <= 1e-6 * at.primal:
            return session, scores, at
        session.extend(scores)
    raise AssertionError("the gap did not close")


@pytest.mark.parametrize("formulation", ["crammer-singer", "weston-watkins"])
def test_the_optimum_is_that_of_a_general_solver(formulation):
    X, y = clouds(40, 3, seed=2)
    labels, costs = y.astype(np.int32), np.random.default_rng(0).choice([0.0, 0.5, 3.0], len(y))
    _, _, at = trained(np.ascontiguousarray(X @ X.T), labels, costs, formulation)
    _, wanted = reference.optimum(formulation, X, labels, costs, 3)
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
    session.look(0, len(y), scores)
    np.testing.assert_allclose(scores, 0.5 * K[:, members.ids] @ members.dense, atol=1e-9)


def test_costs_that_bind_nobody_need_no_further_look():
    X, y = clouds(150, 3, seed=5)
    models = MulticlassSVC(gamma=5.0, tol=1e-3, random_state=0).path(X, y, [1.0, 1e4, 1e5, 1e6])
    assert models[-1].result_.operations["looks"] == models[-1].result_.operations["steps"] == 0
    assert models[-1].result_.relative_gap <= 1e-3


def test_what_overflows_is_an_error():
    labels = np.arange(30, dtype=np.int32) % 3
    with pytest.raises(ValueError, match="overflowed"):
        trained(1e200 * (1 - np.eye(30)), labels, np.full(30, 1e200))


def test_what_does_not_fit_is_refused():
    K, labels, delta = np.eye(4), np.array([0, 1, 2, 0], np.int32), 1 - np.eye(3)
    with pytest.raises(ValueError, match="row and a column per label"):
        _core.SharedSet64(np.zeros((4, 3)), labels, delta, 0)
    with pytest.raises(ValueError, match="labels must count"):
        _core.SharedSet64(K, labels + 1, delta, 0)
    session = _core.SharedSet64(K, labels, delta, 0)
    for call in (
        lambda: session.set_costs(np.ones(3)),
        lambda: session.process(np.array([4])),
        lambda: session.look(0, 5, np.zeros((4, 3))),
        lambda: session.extend(np.zeros((4, 2))),
        lambda: session.set_coefficients(np.array([0]), np.zeros((1, 2))),
    ):
        with pytest.raises(ValueError, match="must"):
            call()
