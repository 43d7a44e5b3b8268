"""The compiled sessions of the Huller, fed by hand: the points stay in their hulls, and every step is the best one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from sessions import Drive, Rows, dense, in_order_of_arrival, problem
from sessions import huller_session as session


def separable(n, k=2, seed=0, dimensions=3, margin=0.3):
    """Examples of k classes, each apart from all others, in the order of the classes' arrival."""
    random = np.random.default_rng(seed)
    centres = 4 * random.normal(size=(k, max(dimensions, k)))
    labels = np.concatenate([np.arange(k), random.integers(0, k, n - k)])
    X = random.normal(size=(n, centres.shape[1]))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    X += centres[labels] * (1 + margin)
    return X @ X.T, labels.astype(np.int32)


def coefficients(drive):
    """Alpha, one column per problem and positive on both sides, and which side every example is on."""
    alpha = dense(drive.session.table(), len(drive.labels), drive.session.columns)
    if drive.session.classes <= 2:  # the only problem is that of the second class
        alpha = np.column_stack([np.zeros(len(alpha)), alpha])
    return alpha, drive.labels[:, None] == np.arange(alpha.shape[1])


def problems_of(drive):
    return range(1, 2) if drive.session.classes <= 2 else range(drive.session.classes)


def products_from_scratch(drive, p):
    alpha, sides = coefficients(drive)
    negative, positive = np.where(sides[:, p], 0, alpha[:, p]), np.where(sides[:, p], alpha[:, p], 0)
    return negative @ drive.K @ negative, negative @ drive.K @ positive, positive @ drive.K @ positive


def assert_in_the_hulls(drive):
    alpha, sides = coefficients(drive)
    table = drive.session.table()
    np.testing.assert_array_equal(table.labels, drive.labels[table.ids])
    np.testing.assert_array_equal(table.diagonal, drive.K[table.ids, table.ids])
    assert (table.coefficients > 0).all()
    assert len(table.ids) == drive.session.support_patterns, "a pattern is used by some problem"
    for p in problems_of(drive):
        for side in (False, True):
            mine = alpha[sides[:, p] == side, p]
            assert not mine.any() or mine.sum() == pytest.approx(1, abs=1e-9)


@given(st.integers(2, 40), st.integers(2, 5), st.integers(0, 10**6), st.booleans(), st.integers(1, 50))
def test_points_stay_in_their_hulls_recursions_are_exact_and_no_distance_increases(n, k, seed, apart, block):
    K, labels = separable(max(n, k), k, seed) if apart else problem(n, 2, seed)  # whose hulls intersect
    labels, scale, distances = in_order_of_arrival(labels), np.abs(K).max(), []

    def look(drive):
        assert_in_the_hulls(drive)
        _, _, products, averaged = drive.session.state
        for p in problems_of(drive):
            np.testing.assert_allclose(products[p], products_from_scratch(drive, p), atol=1e-9 * scale)
        if drive.session.classes == 2 and averaged[1][2]:
            distances.append(drive.session.objective)

    drive = Drive(session(), K, labels, np.ones(len(labels)), block, look=look)
    for epoch in range(4):
        drive.epoch(np.random.default_rng(epoch).permutation(len(labels)) if epoch else None)
        drive.session.begin_another_epoch()
    assert (np.diff(distances) <= 1e-12 * scale).all()


def best_update(alpha, K, is_own, k):
    """HULLERUPDATE(k) by a line search on the distance itself."""
    own, other, unit = np.where(is_own, alpha, 0), np.where(is_own, 0, alpha), np.eye(len(alpha))[k]
    if alpha[k] > 1 - 1e-9:
        return alpha  # it is the point itself

    def moved(step):
        return (1 - step) * own + step * unit

    def distance(step):
        return (moved(step) - other) @ K @ (moved(step) - other)

    lowest = -alpha[k] / (1 - alpha[k])
    found = minimize_scalar(distance, bounds=(lowest, 1), method="bounded", options={"xatol": 1e-13}).x
    return other + moved(min((lowest, found, 1.0), key=distance))


@pytest.mark.parametrize("seed", range(6))
def test_an_example_is_processed_and_a_support_vector_reprocessed_each_by_the_best_step(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(24, 3))
    labels = in_order_of_arrival(X[:, 0] + 0.3 * random.normal(size=24) > 0)
    X[:, 0] += np.where(labels == labels[np.argmax(X[:, 0])], 1, -1)
    drive = Drive(session(seed=seed), X @ X.T, labels, np.ones(24), block=1)
    drive.epoch(np.arange(12))
    compared = 0
    for k in np.concatenate([np.arange(12, 24), random.permutation(24)]):
        before = coefficients(drive)[0][:, 1]
        assert drive.session.state[3][1][2], "the first points are averaged"
        drive.epoch(np.array([k]))
        after = coefficients(drive)[0][:, 1]
        processed = best_update(before, drive.K, labels == labels[k], k) if before[k] == 0 else before
        processed[processed < 1e-9] = 0
        candidates = [best_update(processed, drive.K, labels == labels[r], r) for r in np.flatnonzero(processed)]
        nearest = min(np.abs(candidate - after).max() for candidate in candidates)
        assert nearest < 1e-5
        compared += np.abs(after - before).max() > 1e-3
    assert compared > 5


def test_the_first_points_are_averages_of_three_examples_and_support_vectors_are_not_processed_again():
    K, labels = separable(40, seed=3)
    ahead = np.concatenate([np.flatnonzero(labels == label)[:3] for label in (0, 1)])
    drive = Drive(session(), K, labels, np.ones(40)).epoch(np.flatnonzero(labels == 0))
    assert drive.session.support_patterns == 3, "nothing happens until another class arrives"
    drive.epoch(ahead[3:])
    np.testing.assert_allclose(coefficients(drive)[0][ahead, 1], 1 / 3)
    assert drive.session.counters.process == drive.session.counters.reprocess == 0
    drive.epoch(ahead[:1])
    assert drive.session.counters.process == 0
    drive.epoch(np.flatnonzero(labels == 1))
    assert drive.session.counters.process > 0


def test_a_third_class_begins_with_what_two_classes_have_learnt():
    K, labels = separable(60, 3, seed=5)
    order = np.argsort(labels == 2, kind="stable")
    drive = Drive(session(), K, labels, np.ones(60), block=1)
    *two, first = order[: int((labels != 2).sum()) + 1]
    drive.epoch(np.array(two))
    products = drive.session.state[2][1]
    drive.epoch(np.array([first]))
    assert drive.session.classes == 3
    assert coefficients(drive)[0].shape == (60, 3)
    # The new example is among the rest in problems 0 and 1 and may have moved their points, but not away.
    for p, before in ((0, products[::-1]), (1, products)):
        apart = [values[0] - 2 * values[1] + values[2] for values in (before, drive.session.state[2][p])]
        assert 0 < apart[1] <= apart[0] + 1e-12


def test_coefficients_that_shrink_again_and_again_still_add_up_to_one():
    """Every example is so much nearer to the other class that nine tenths of the point move there."""
    n = 250
    K = np.diag(np.concatenate([[0.0], 10.0 ** -np.arange(n)]))
    labels = np.concatenate([[0], np.ones(n)]).astype(np.int32)
    drive = Drive(session(), K, labels, np.ones(n + 1), look=assert_in_the_hulls).epoch()
    alpha, _ = coefficients(drive)
    nearest = 10.0 ** np.arange(n)  # the point of the simplex nearest to the origin has alpha proportional to 1 / K
    np.testing.assert_allclose(alpha[-3:, 1], nearest[-3:] / nearest.sum(), rtol=0.5)
    np.testing.assert_allclose(drive.session.state[2][1], products_from_scratch(drive, 1), rtol=1e-9)
    assert alpha[alpha > 0].min() < 1e-100


def test_a_restored_session_goes_on_where_the_other_stopped():
    K, labels = separable(120, 3, seed=6, dimensions=10)
    labels = in_order_of_arrival(labels)
    whole = Drive(session(), K, labels, np.ones(120)).epoch(np.arange(80))
    table = whole.session.table()
    again = Drive(session(seed=1), K, labels, np.ones(120))
    again.session.state = whole.session.state
    again.session.restore(table, Rows(K, table.ids))
    np.testing.assert_array_equal(coefficients(whole)[0], coefficients(again)[0])
    assert again.session.objective == whole.session.objective
