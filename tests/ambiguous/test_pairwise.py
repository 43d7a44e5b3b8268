"""One example under the mean pairwise loss: the step of algorithm 23 and the best coefficients."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from references import pairwise
from sessions import hooks


@st.composite
def examples(draw, most=8):
    """Scores, with ties and differences of exactly one among them, and weights of candidates."""
    k = draw(st.integers(2, most))
    score = st.one_of(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]), st.floats(-3, 3))
    scores = np.array(draw(st.lists(score, min_size=k, max_size=k)))
    size = draw(st.integers(1, k - 1))
    chosen = draw(st.permutations(range(k)))[:size]
    weights = np.zeros(k)
    equal = draw(st.booleans())
    weights[chosen] = 1.0 if equal else draw(st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=size, max_size=size))
    return scores, weights


@given(examples(most=40))
@settings(max_examples=300)
def test_the_sorted_step_is_the_maximum_over_all_pairs(example):
    scores, weights = example
    loss, delta, psi = hooks.pairwise_ascent(scores, weights)
    expected_loss, expected_delta, expected_psi = pairwise.ascent(scores, weights)
    assert loss == pytest.approx(expected_loss, abs=1e-12)
    assert loss == pytest.approx(pairwise.loss(scores, weights), abs=1e-12)
    assert delta == pytest.approx(expected_delta, abs=1e-12)
    np.testing.assert_allclose(psi, expected_psi, atol=1e-12)


def dual(beta, scores, weights, kappa):
    return beta[weights > 0].sum() - beta @ scores - kappa * beta @ beta / 2


@given(examples(), st.sampled_from([0.01, 1.0, 7.0]), st.sampled_from([0.01, 1.0, 100.0]))
@settings(max_examples=200)
def test_the_best_coefficients_are_those_of_a_general_solver(example, kappa, cost):
    scores, weights = example
    M, bounds = pairwise.to_pairs(weights, len(scores))
    found = minimize(
        lambda a: -dual(M @ a, scores, weights, kappa),
        np.zeros(len(bounds)),
        jac=lambda a: kappa * M.T @ (M @ a) + M.T @ scores - 1,
        bounds=[(0, cost * bound) for bound in bounds],
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-12},
    )
    beta = np.array(hooks.pairwise_solution(scores, weights, kappa, cost))
    best = dual(beta, scores, weights, kappa)
    assert best >= -found.fun - 1e-9 * (1 + abs(found.fun))
    assert best == pytest.approx(-found.fun, rel=1e-5, abs=1e-7)


@given(examples(most=60), st.sampled_from([1e-6, 1.0, 1e4]), st.sampled_from([1e-3, 1.0, 1e6]))
@settings(max_examples=300)
def test_the_best_coefficients_keep_their_bounds_and_leave_no_pair_for_more(example, kappa, cost):
    scores, weights = example
    beta = np.array(hooks.pairwise_solution(scores, weights, kappa, cost))
    right, wrong, of_pair = pairwise.pairs(weights)
    assert abs(beta.sum()) <= 1e-9 * cost
    assert (beta[right] >= 0).all()
    assert (beta[wrong] <= 0).all()
    assert (beta[right] <= cost * of_pair.sum(axis=1) * (1 + 1e-9)).all()
    assert (-beta[wrong] <= cost * of_pair.sum(axis=0) * (1 + 1e-9)).all()
    # The loss that the coefficients account for is all there is: complementary slackness of the whole example.
    after = scores + kappa * beta
    scale = 1 + np.abs(scores).max() + kappa * np.abs(beta).max()
    accounted = (beta[right].sum() - beta @ after) / cost
    assert pairwise.loss(after, weights) == pytest.approx(accounted, abs=1e-9 * scale)


def test_scores_far_from_zero_are_cut_as_those_around_it():
    scores, weights = np.array([0.3, -0.2, 0.1, 0.7, 0.65]), np.array([1.0, 0, 1, 0, 0])
    near = hooks.pairwise_solution(scores, weights, 1.0, 1.0)
    far = hooks.pairwise_solution(scores + 1e8, weights, 1.0, 1.0)
    np.testing.assert_allclose(far, near, atol=1e-6)
