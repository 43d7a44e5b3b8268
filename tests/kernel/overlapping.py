"""Examples of overlapping classes, and the constraints that every multiclass kernel model must keep."""

import numpy as np
from sklearn.metrics import pairwise


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


def margins_and_weights(k, n, y, seed, with_margins, weights, margins=(0, 0.5, 1, 2.5)):
    """Return a random cost matrix, and weights that leave two classes."""
    random = np.random.default_rng(seed)
    delta = 1 - np.eye(k)
    if with_margins:
        delta = random.choice(margins, (k, k)) * delta
    weight = random.choice(weights, n).astype(float)
    weight[0] = 1
    weight[np.flatnonzero(y != y[0])[0]] = 1
    return delta, weight


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
