"""TrackingSVC: it follows the optimum of the SVM without bias, and lemma 5 bounds its gap."""

import doctest
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import estimator_checks_generator

from larank import TrackingSVC
from larank.data import models
from larank.training import TrainingWarning
from reference import interior_point

X, y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
names = np.array(["setosa", "versicolor", "virginica"])

# These two demand 1e-7 of predictions, more than a few passes promise.
EXACT = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")


def tracking(kernel="rbf", **parameters):
    return TrackingSVC(kernel, **{"gamma": 0.3, "random_state": 0, "n_jobs": 1, **parameters})


def checks():
    for kernel in ("rbf", "linear"):
        usual = TrackingSVC(kernel)
        tight = TrackingSVC(kernel, gamma=0.2, epochs=2000, n_steps=30)
        for estimator, wanted in ((usual, False), (tight, True)):
            for instance, check in estimator_checks_generator(estimator):
                name = getattr(check, "func", check).__name__
                if kernel == "linear" and name == "check_class_weight_classifiers":
                    continue  # no hyperplane through the origin has its examples on one side
                if (name in EXACT) == wanted:
                    yield pytest.param(instance, check, id=f"{kernel}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_check_estimator(estimator, check):
    check(estimator)


def test_python_on_its_page_runs(capsys):
    page = (Path(__file__).parents[2] / "docs" / "kernel" / "tracking.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    exec(block, {})
    assert len(capsys.readouterr().out.splitlines()) >= 3


def test_the_example_of_the_documentation_is_true():
    results = doctest.testmod(sys.modules[TrackingSVC.__module__])
    assert results.attempted > 0
    assert results.failed == 0


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


@settings(max_examples=40)
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


def test_the_certificate_is_that_of_the_model():
    model = tracking(n_steps=3, C=0.7).fit(X, y)
    alpha = np.zeros((len(y), 3))
    alpha[model.support_] = model.dual_coef_.toarray()
    scores = model.decision_function(X)
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    half = (alpha * scores).sum() / 2
    assert model.result_.primal == pytest.approx(half + 0.7 * np.maximum(0, 1 - signs * scores).sum())
    assert model.result_.dual == pytest.approx((alpha * signs).sum() - half)
    assert (alpha * signs >= -1e-12).all()
    assert (alpha * signs <= 0.7 + 1e-12).all()


def test_more_steps_track_more_closely():
    gaps = [tracking(n_steps=n_steps).fit(X, y).gap_.sum() for n_steps in (1, 10, 100)]
    assert gaps[0] > gaps[1] > gaps[2]


def test_process_pays():
    with_process, without = (
        np.mean([tracking(algorithm=name, n_steps=2, random_state=seed).fit(X, y).gap_ for seed in range(5)])
        for name in ("process-reprocess", "simple")
    )
    assert with_process < without


# One stream, one model


@pytest.mark.parametrize("parts", [1, 4, 30])
def test_parts_of_a_stream_make_the_model_of_all_of_it(parts):
    order = np.random.default_rng(0).permutation(len(y))
    whole = tracking(shuffle=False).fit(X[order], names[y[order]])
    model = tracking()
    for part in np.array_split(order, parts):
        model.partial_fit(X[part], names[y[part]])
    np.testing.assert_array_equal(whole.support_, model.support_)
    np.testing.assert_allclose(whole.decision_function(X), model.decision_function(X), atol=1e-9)


def test_classes_may_arrive_one_after_another():
    model = tracking(n_steps=50)
    for label in (2, 0, 1):
        model.partial_fit(X[y == label], names[y[y == label]])
    assert model.score(X, names[y]) > 0.9


@pytest.mark.parametrize("change", [{"batch_size": 3}, {"n_jobs": 2}, {"memory_limit": 1.3e5}])
def test_blocks_threads_and_memory_do_not_change_the_model(change):
    one, other = tracking().fit(X, y), tracking(**change).fit(X, y)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-9)


def test_sparse_precomputed_and_callable_kernels_make_the_same_model():
    model = tracking().fit(X, y)
    K = rbf_kernel(X, gamma=0.3)
    others = [
        tracking().fit(sparse.csr_matrix(X), y).decision_function(X),
        tracking("precomputed").fit(K, y).decision_function(K),
        tracking(lambda a, b: rbf_kernel(a, b, gamma=0.3)).fit(X, y).decision_function(X),
    ]
    for other in others:
        np.testing.assert_allclose(other, model.decision_function(X), atol=1e-6)


def test_a_fitted_model_goes_on_and_a_copy_says_why_it_cannot(tmp_path):
    model = tracking().fit(X[:120], names[y[:120]])
    models.save(model, tmp_path / "model.larank")
    for copy in (pickle.loads(pickle.dumps(model)), models.load(tmp_path / "model.larank")):
        np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(copy.bound_, model.bound_)
        with pytest.raises(ValueError, match="needs all examples of the stream"):
            copy.partial_fit(X[120:], names[y[120:]])
    model.partial_fit(X[120:], names[y[120:]])
    assert model.support_.max() >= 120


def test_a_stream_of_precomputed_values_has_a_column_for_every_example_so_far():
    order = np.random.default_rng(3).permutation(len(y))
    K = rbf_kernel(X[order], gamma=0.3)
    whole = tracking(shuffle=False).fit(X[order], y[order])
    model = tracking("precomputed")
    for part in np.array_split(np.arange(len(y)), 5):
        model.partial_fit(np.ascontiguousarray(K[part, : part[-1] + 1]), y[order][part])
    np.testing.assert_allclose(model.decision_function(K), whole.decision_function(X[order]), atol=1e-6)


def test_a_training_that_is_cut_short_leaves_a_valid_model():
    with pytest.warns(TrainingWarning, match="time_limit"):
        model = tracking(epochs=1000, time_limit=1e-9).fit(X, names[y])
    assert model.result_.status == "time_limit"
    assert model.decision_function(X).shape == (len(X), 3)
    assert np.isfinite(model.decision_function(X)).all()
    assert 0 <= model.result_.dual <= model.result_.primal


# Bad input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"algorithm": "other"}, r"algorithm must be one of .*; got 'other'"),
        ({"n_steps": 0}, r"n_steps must be .*, got 0"),
        ({"n_steps": 1.5}, r"n_steps must be .*, got 1\.5"),
        ({"C": -1.0}, r"C must be .*, got -1\.0"),
        ({"epochs": 0}, r"epochs must be .*, got 0"),
        ({"memory_limit": 100}, r"memory_limit must be at least \d+ bytes"),
    ],
)
def test_a_bad_parameter_is_named_with_what_would_do(parameters, message):
    with pytest.raises(ValueError, match=message):
        tracking(**parameters).fit(X, y)


def test_parameters_of_a_stream_cannot_change_on_the_way():
    model = tracking().partial_fit(X, y)
    with pytest.raises(ValueError, match="n_steps must stay as it was"):
        model.set_params(n_steps=3).partial_fit(X, y)


def test_a_kernel_that_is_none_is_found_out():
    K = -np.ones((len(y), len(y))) + 2 * np.eye(len(y))
    with pytest.raises(ValueError, match="positive semi-definite"):
        tracking("precomputed", n_steps=50, epochs=5).fit(K, y)
