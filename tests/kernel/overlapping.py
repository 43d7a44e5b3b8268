"""Examples of overlapping classes, and the constraints that every multiclass kernel model must keep."""

import numpy as np
import pytest
from hypothesis import strategies as st
from sklearn.metrics import pairwise

from checks import coefficients
from references.optima import kernel_certificate


def data(n, k, seed=0, dimensions=4):
    """Return examples of k overlapping classes, some of them twice with different labels, some of them zero."""
    random = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), random.integers(0, k, max(0, n - k))])[:n]
    X = random.normal(size=(k, dimensions))[y] + random.normal(size=(n, dimensions))
    X[random.random(n) < 0.1] = X[0]
    X[random.random(n) < 0.05] = 0
    order = random.permutation(n)
    return X[order], y[order]


def rbf(X, Z=None, gamma=0.3):
    return pairwise.rbf_kernel(X, X if Z is None else Z, gamma=gamma)


def indefinite(n):
    """Return a symmetric matrix that is no kernel, which no two of its rows show."""
    S = np.random.default_rng(0).uniform(-1, 1, (n, n))
    S = (S + S.T) / 2
    np.fill_diagonal(S, 1.0)
    return S


# Functions of named kernels, and their parameters.
# tanh has no kernel to offer in general; of products this small it is as good as linear.
NAMED = {
    "linear": (lambda X, Z: X @ Z.T, {}),
    "rbf": (lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.2), {"gamma": 0.2}),
    "poly": (lambda X, Z: (0.2 * X @ Z.T + 0.5) ** 2, {"gamma": 0.2, "coef0": 0.5, "degree": 2}),
    "sigmoid": (lambda X, Z: np.tanh(1e-4 * X @ Z.T), {"gamma": 1e-4}),
    "laplacian": (lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=0.2), {"gamma": 0.2}),
    "chi2": (lambda X, Z: pairwise.chi2_kernel(X, Z, gamma=0.2), {"gamma": 0.2}),
    "intersection": (lambda X, Z: np.minimum(X[:, None], Z[None]).sum(axis=2), {}),
}
# Strategies for problems; a general solver finds the optimum of the small ones.
PROBLEMS = {
    "n": st.integers(2, 14) | st.integers(15, 70),
    "k": st.integers(2, 6),
    "seed": st.integers(0, 10**6),
    "C": st.sampled_from([0.01, 1.0, 30.0]),
    "kernel": st.sampled_from(["rbf", "linear"]),
}


def margins_and_weights(k, n, y, seed, with_margins, weights, margins=(0, 0.5, 1, 2.5)):
    """Return random label costs, and weights that leave two classes."""
    random = np.random.default_rng(seed)
    delta = 1 - np.eye(k)
    if with_margins:
        delta = random.choice(margins, (k, k)) * delta
    weight = random.choice(weights, n).astype(float)
    weight[0] = 1
    weight[np.flatnonzero(y != y[0])[0]] = 1
    return delta, weight


def assert_certificate(model, K, y, costs, delta=None, close=1e-9, violated=10, kappa=1e-10):
    """Check that `result_` is what the formulas say of `dual_coef_` and `scale_`, and return the coefficients."""
    result, beta, labels = model.result_, coefficients(model, len(y)), np.searchsorted(model.classes_, y)
    delta, costs = 1 - np.eye(len(model.classes_)) if delta is None else delta, np.broadcast_to(costs, len(y))
    formulation, scale = getattr(model, "formulation", "crammer-singer"), getattr(model, "scale_", 1.0)
    *found, violation = kernel_certificate(beta, K, labels, costs, delta, formulation, scale, kappa)
    assert (result.primal, result.dual) == pytest.approx(found, rel=close, abs=1e-12)
    assert result.gap >= -close * result.primal
    assert result.violation == pytest.approx(violation, abs=violated * close)
    assert (result.support_patterns, result.support_vectors) == (len(model.support_), model.dual_coef_.nnz)
    last = result.history[-1]
    assert result.exact
    assert (last.exact, last.primal, last.dual) == (True, result.primal, result.dual)
    return beta


def assert_feasible(model, y, costs, rounding=0.0, sums=1e-14):
    """Check the constraints; `costs` are per example, or one for all."""
    beta, costs = model.dual_coef_.toarray(), np.broadcast_to(costs, np.shape(y))[model.support_]
    np.testing.assert_allclose(model.support_costs_, costs, rtol=rounding)
    own = model.classes_ == np.asarray(y)[model.support_][:, None]
    assert len(np.unique(model.support_)) == len(model.support_)
    assert (beta[own] > 0).all(), "a pattern whose coefficients vanish leaves"
    assert (beta[~own] <= 0).all()
    assert (np.abs(beta.sum(axis=1)) <= sums * costs).all()
    most = -beta.min(axis=1) if getattr(model, "formulation", "") == "weston-watkins" else beta[own]
    assert (most <= costs * (1 + rounding)).all()
    assert (model.dual_coef_.data != 0).all()
