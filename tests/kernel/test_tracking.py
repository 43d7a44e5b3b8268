"""TrackingSVC: it follows the optimum of the SVM without bias, and lemma 5 bounds its gap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel

from larank import CertificateWarning, TrackingSVC
from references.optima import interior_point

X, y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
names = np.array(["setosa", "versicolor", "virginica"])


def tracking(kernel="rbf", **parameters):
    return TrackingSVC(kernel, **{"gamma": 0.3, "random_state": 0, "n_jobs": 1, **parameters})


# The optimum and the bound


def without_bias(K, labels, costs):
    """Minimum of the primal and the scores there."""
    n = len(labels)
    Q = K * np.outer(labels, labels)
    alpha, bound = interior_point(
        Q, -np.ones(n), np.vstack([np.eye(n), -np.eye(n)]), np.concatenate([costs, np.zeros(n)])
    )
    return -bound, K @ (alpha * labels)


@pytest.mark.parametrize("algorithm", ["process-reprocess", "simple"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_passes_reach_the_svm_without_bias(algorithm, dtype):
    two = y > 0
    some = X[two][::2].astype(dtype)
    labels = y[two][::2]
    model = tracking(algorithm=algorithm, epochs=200, n_steps=50).fit(some, labels)
    optimum, scores = without_bias(rbf_kernel(some, gamma=0.3), np.where(labels == 2, 1.0, -1.0), np.ones(len(labels)))
    assert model.result_.primal == pytest.approx(optimum, rel=1e-4)
    assert model.result_.dual == pytest.approx(optimum, rel=1e-4)
    np.testing.assert_allclose(model.decision_function(some), scores, atol=1e-2)
    assert (model.intercept_ == 0).all()


def test_it_stops_at_a_gap():
    model = tracking(stop="gap", tol=1e-3).fit(X, y)
    assert model.result_.status == "converged"
    assert model.result_.exact
    assert model.result_.relative_gap <= 1e-3


def test_three_classes_are_three_problems_with_costs():
    weight = np.random.default_rng(0).uniform(0.3, 3, 75)
    model = tracking(epochs=200, n_steps=50, C=2.0).fit(X[::2], names[y[::2]], sample_weight=weight)
    total = 0.0
    for place in range(3):
        signs = np.where(y[::2] == place, 1.0, -1.0)
        optimum, scores = without_bias(rbf_kernel(X[::2], gamma=0.3), signs, 2.0 * weight)
        np.testing.assert_allclose(model.decision_function(X[::2])[:, place], scores, atol=1e-2)
        total += optimum
    assert model.result_.primal == pytest.approx(total, rel=1e-4)
    assert model.gap_.shape == model.bound_.shape == (3,)


@given(
    st.integers(3, 40),
    st.integers(0, 10**6),
    st.sampled_from(["rbf", "linear"]),
    st.sampled_from([0.05, 1.0, 30.0]),
    st.booleans(),
)
def test_the_gap_is_below_the_bound_for_any_norms_and_costs(n, seed, kernel, C, weighted):
    random = np.random.default_rng(seed)
    some = 5 * random.normal(size=(n, 3))
    labels = np.concatenate([[0, 1], random.integers(0, 3, n - 2)])
    weight = random.uniform(0.1, 3, n) if weighted else None
    for certify in (True, False):
        model = tracking(kernel, C=C, n_steps=2, certify=certify).fit(some, labels, sample_weight=weight)
        assert (model.gap_ >= -1e-12).all()
        assert (model.gap_ <= model.bound_ + 1e-12).all()
        total = C * (n if weight is None else weight.sum())
        assert model.gap_.sum() * total == pytest.approx(model.result_.gap, rel=1e-6, abs=1e-9)


def test_more_steps_track_more_closely():
    gaps = [tracking(n_steps=n_steps).fit(X, y).gap_.sum() for n_steps in (1, 10, 100)]
    assert gaps[0] > gaps[1] > gaps[2]


def test_process_pays():
    with_process, without = (
        np.mean([tracking(algorithm=name, n_steps=2, random_state=seed).fit(X, y).gap_ for seed in range(5)])
        for name in ("process-reprocess", "simple")
    )
    assert with_process < without


# Bad input


def test_a_kernel_that_is_none_has_no_bounds():
    K = -np.ones((len(y), len(y))) + 2 * np.eye(len(y))
    with pytest.warns(CertificateWarning, match="not positive semi-definite"):
        model = tracking("precomputed", n_steps=50, epochs=5).fit(K, y)
    assert np.isnan([*model.gap_, *model.bound_]).all()
