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


def without_bias(K, labels, costs):
    """Minimum of the primal and the scores there."""
    n = len(labels)
    G, h = np.vstack([np.eye(n), -np.eye(n)]), np.concatenate([costs, np.zeros(n)])
    alpha, bound = interior_point(K * np.outer(labels, labels), -np.ones(n), G, h)
    return -bound, K @ (alpha * labels)


@pytest.mark.parametrize("algorithm", ["process-reprocess", "simple"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [(1, 2), (0, 1, 2)], ids=len)
def test_many_passes_reach_the_svm_without_bias(classes, algorithm, dtype):
    """Three classes are three problems with costs."""
    keep = np.flatnonzero(y >= classes[0])[::2]
    some, labels, weight = X[keep].astype(dtype), y[keep], np.random.default_rng(0).uniform(0.3, 3, len(keep))
    model = tracking(algorithm=algorithm, max_iter=200, n_steps=50, C=2.0).fit(
        some, names[labels], sample_weight=weight
    )
    scores, total = model.decision_function(some).reshape(len(keep), -1), 0.0
    for column, place in enumerate(classes if len(classes) > 2 else classes[1:]):
        signs = np.where(labels == place, 1.0, -1.0)
        optimum, wanted = without_bias(rbf_kernel(some, gamma=0.3), signs, 2.0 * weight)
        np.testing.assert_allclose(scores[:, column], wanted, atol=1e-2)
        total += optimum
    assert model.result_.primal == pytest.approx(total, rel=1e-4)
    assert model.result_.dual == pytest.approx(total, rel=1e-4)
    assert (model.intercept_ == 0).all()


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


def test_more_steps_and_process_track_more_closely():
    gaps = [tracking(n_steps=n_steps).fit(X, y).gap_.sum() for n_steps in (1, 10, 100)]
    assert gaps[0] > gaps[1] > gaps[2]
    with_process, without = (
        np.mean([tracking(algorithm=name, n_steps=2, random_state=seed).fit(X, y).gap_ for seed in range(5)])
        for name in ("process-reprocess", "simple")
    )
    assert with_process < without


def test_a_kernel_that_is_none_has_no_bounds():
    K = -np.ones((len(y), len(y))) + 2 * np.eye(len(y))
    with pytest.warns(CertificateWarning, match="not positive semi-definite"):
        model = tracking("precomputed", n_steps=50, max_iter=5).fit(K, y)
    assert np.isnan([*model.gap_, *model.bound_]).all()
