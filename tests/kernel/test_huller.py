"""HullerClassifier: its optimum is the hard margin SVM, its certificate true, and one stream makes one model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from larank import HullerClassifier, TrainingWarning
from references.optima import hulls_optimum

iris, iris_labels = load_iris(return_X_y=True)
iris = (iris - iris.mean(axis=0)) / iris.std(axis=0)
# With a narrow kernel they are separable, but for one pair of twins.
_, first = np.unique(iris, axis=0, return_index=True)
X, y = iris[np.sort(first)], iris_labels[np.sort(first)]
names = np.array(["setosa", "versicolor", "virginica"])


def huller(kernel="rbf", **parameters):
    return HullerClassifier(kernel, **{"gamma": 2.0, "random_state": 0, "n_jobs": 1, **parameters})


def hard_margin(K, y):
    """Return decision values of the hard margin SVM of two classes, and half the squared distance of the hulls."""
    decision = SVC(kernel="precomputed", C=1e9, tol=1e-9).fit(K, y).decision_function(K)
    return decision, hulls_optimum(K, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_classes_reach_the_hard_margin_svm(dtype):
    some, labels = X[y > 0].astype(dtype), y[y > 0]
    model = huller(tol=1e-5).fit(some, names[labels])
    decision, optimum = hard_margin(rbf_kernel(X[y > 0], gamma=2.0), labels)
    np.testing.assert_allclose(model.decision_function(some), decision, atol=1e-2)
    assert model.result_.status == "converged"
    assert (model.result_.primal, model.result_.dual) == pytest.approx((optimum, optimum), rel=1e-4)
    assert model.result_.violation < 0.01


def test_three_classes_reach_the_hard_margin_svm_of_each_against_the_rest():
    model = huller(max_iter=300).fit(X, names[y])
    total = 0.0
    for place in range(3):
        decision, optimum = hard_margin(rbf_kernel(X, gamma=2.0), y == place)
        np.testing.assert_allclose(model.decision_function(X)[:, place], decision, atol=1e-3)
        total += optimum
    assert model.result_.primal == pytest.approx(total, rel=1e-5)
    assert model.result_.relative_gap < 1e-3
    assert model.score(X, names[y]) == 1.0


@given(st.integers(6, 40), st.integers(0, 10**6), st.sampled_from([0.2, 1.0, 5.0]), st.integers(1, 4))
def test_the_optimum_lies_between_primal_and_dual(n, seed, gamma, max_iter):
    random = np.random.default_rng(seed)
    some = random.normal(size=(n, 3))
    labels = np.concatenate([[0, 1], random.integers(0, 2, n - 2)])
    _, optimum = hard_margin(rbf_kernel(some, gamma=gamma), labels)
    model = huller(gamma=gamma, max_iter=max_iter).fit(some, labels)
    result = model.result_
    assert 0 <= result.dual <= optimum * (1 + 1e-6)
    assert optimum <= result.primal * (1 + 1e-6)
    # The objectives of the SVM itself: w rescaled to margin 1, and the dual at 2 alpha / |w|^2.
    f = model.decision_function(some) * np.where(labels == 1, 1, -1)
    margin = (f[labels == 1].min() + f[labels == 0].min()) / 2
    assert result.dual == pytest.approx(result.primal * max(0, margin) ** 2, rel=1e-6, abs=1e-12)


def test_without_a_separation_the_certificate_says_so_in_finite_numbers():
    random = np.random.default_rng(0)
    some, labels = random.normal(size=(60, 2)), random.integers(0, 2, 60)
    result = (model := huller("linear", max_iter=50).fit(some, labels)).result_
    assert result.dual == 0
    assert result.primal < 1e-3
    assert np.isfinite([(point.primal, point.dual) for point in result.history]).all()
    assert np.isfinite(model.decision_function(some)).all()


def test_hulls_that_meet_are_nothing_to_converge_to():
    random = np.random.default_rng(0)
    some, noise = random.normal(size=(60, 2)), random.integers(0, 2, 60)
    apart = np.vstack([some + 9, some - 9, some, some])  # of four classes, two are at the same place
    groups = np.repeat(np.arange(4), 60)
    for kernel, examples, labels in (("linear", some, noise), ("linear", apart, groups), ("rbf", apart, groups)):
        with pytest.warns(TrainingWarning, match=r"no margin between the convex hulls .* LaSVMClassifier\(C=1\)"):
            model = huller(kernel, tol=0.5).fit(examples, labels)
        assert model.result_.status == "precision"


def test_classes_at_the_same_place_make_a_constant_model():
    model = huller("linear", max_iter=3).fit(np.ones((8, 2)), [0, 1] * 4)
    np.testing.assert_array_equal(model.decision_function(np.ones((2, 2))), 0)
    assert model.result_.primal == pytest.approx(0, abs=1e-12)


def test_history_estimates_come_near_the_certificate():
    result = huller(max_iter=30).fit(X, y).result_
    estimate = result.history[-2]
    assert not estimate.exact
    assert estimate.primal == pytest.approx(result.primal, rel=1e-9)
    assert estimate.dual == pytest.approx(result.dual, rel=1e-3)
    primal = [point.primal for point in result.history if point.iterations > 1]
    assert (np.diff(primal) <= 1e-12).all()


def test_counts_add_up():
    result = huller(max_iter=2).fit(X[y > 0], y[y > 0]).result_
    assert result.solver == "huller"
    assert result.operations["insertions"] - result.operations["removals"] == result.support_vectors
    assert 2 * (y > 0).sum() - 20 < result.operations["reprocess"] <= 2 * (y > 0).sum() - 6
    assert 0 < result.operations["process"] < result.operations["reprocess"]


def test_a_weight_is_how_often_an_example_is_there():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    weights = np.random.default_rng(1).integers(0, 3, 60)
    model = huller(gamma=0.5, tol=1e-6)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = model.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-3)
    assert (weights[weighted.support_] > 0).all()


@pytest.mark.filterwarnings("error")
def test_a_matrix_that_went_through_float32_is_accepted():
    """It is neither symmetric to the last bit nor positive semi-definite, by rounding."""
    X, y = np.random.default_rng(0).normal(size=(80, 2)).astype(np.float32), np.arange(80) % 2  # not separable
    K = ((X @ X.T + 1) ** 2).astype(np.float64)
    K[np.triu_indices(80, 1)] *= 1 + 3e-7
    assert np.linalg.eigvalsh((K + K.T) / 2)[0] < 0
    model = huller("precomputed", max_iter=20).fit(K, y)
    assert np.isfinite([model.result_.gap, *model.decision_function(K)]).all()


@pytest.mark.parametrize("seed", [68, *range(4)])
def test_points_that_come_together_at_the_origin_give_a_finite_model(seed):
    random = np.random.RandomState(0)
    X = random.uniform(size=(40, 3))
    X[X < 0.6] = 0
    model = huller("linear", random_state=seed).fit(X, (4 * random.uniform(size=40)).astype(int))
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.result_.gap)


@pytest.mark.filterwarnings("ignore::larank.TrainingWarning")
def test_certificates_on_the_way_do_not_change_validation_errors():
    rng = np.random.default_rng(0)
    X, others = rng.normal(size=(300, 4)), rng.normal(size=(500, 4))
    y, labels = ((Z[:, 0] > 0).astype(int) + (Z[:, 1] > 1) for Z in (X, others))

    def errors(**parameters):
        model = huller(gamma=0.5, **parameters).fit(X, y, validation=(others, labels))
        return [point.error for point in model.result_.history if point.error is not None]

    assert errors(tol=1e-12, max_iter=5) == errors(max_iter=5)
