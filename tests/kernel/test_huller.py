"""HullerClassifier: its optimum is the hard margin SVM, its certificate true, and one stream makes one model."""

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
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import estimator_checks_generator

from larank import HullerClassifier
from larank.data import models
from larank.training import TrainingWarning

iris, iris_labels = load_iris(return_X_y=True)
iris = (iris - iris.mean(axis=0)) / iris.std(axis=0)
# With a narrow kernel they are separable, but for one pair of twins.
_, first = np.unique(iris, axis=0, return_index=True)
X, y = iris[np.sort(first)], iris_labels[np.sort(first)]
names = np.array(["setosa", "versicolor", "virginica"])


def huller(kernel="rbf", **parameters):
    return HullerClassifier(kernel, **{"gamma": 2.0, "random_state": 0, "n_jobs": 1, **parameters})


def checks():
    for kernel in ("rbf", "linear"):
        for instance, check in estimator_checks_generator(HullerClassifier(kernel)):
            name = getattr(check, "func", check).__name__
            if kernel == "linear" and name == "check_classifiers_train":
                continue  # no hyperplane separates its classes
            yield pytest.param(instance, check, id=f"{kernel}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_check_estimator(estimator, check):
    check(estimator)


def test_python_on_its_page_runs(capsys):
    page = (Path(__file__).parents[2] / "docs" / "kernel" / "huller.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    exec(block, {})
    assert len(capsys.readouterr().out.splitlines()) >= 3


def test_the_example_of_the_documentation_is_true():
    results = doctest.testmod(sys.modules[HullerClassifier.__module__])
    assert results.attempted > 0
    assert results.failed == 0


# The optimum


def hard_margin(K, y):
    """The hard margin SVM of two classes: decision values, and half the squared distance of the hulls."""
    reference = SVC(kernel="precomputed", C=1e9, tol=1e-9).fit(K, y)
    beta = reference.dual_coef_[0]
    squared_norm = beta @ K[np.ix_(reference.support_, reference.support_)] @ beta
    return reference.decision_function(K), 2 / squared_norm


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_classes_reach_the_hard_margin_svm(dtype):
    two = y > 0
    model = huller(stop="gap", tol=1e-5).fit(X[two].astype(dtype), names[y[two]])
    decision, optimum = hard_margin(rbf_kernel(X[two], gamma=2.0), y[two])
    np.testing.assert_allclose(model.decision_function(X[two].astype(dtype)), decision, atol=1e-2)
    assert model.result_.status == "converged"
    assert model.result_.primal == pytest.approx(optimum, rel=1e-4)
    assert model.result_.dual == pytest.approx(optimum, rel=1e-4)
    assert model.result_.violation < 0.01


def test_three_classes_reach_the_hard_margin_svm_of_each_against_the_rest():
    model = huller(epochs=300).fit(X, names[y])
    total = 0.0
    for place in range(3):
        decision, optimum = hard_margin(rbf_kernel(X, gamma=2.0), y == place)
        np.testing.assert_allclose(model.decision_function(X)[:, place], decision, atol=1e-3)
        total += optimum
    assert model.result_.primal == pytest.approx(total, rel=1e-5)
    assert model.result_.relative_gap < 1e-3
    assert model.score(X, names[y]) == 1.0


@settings(max_examples=30)
@given(st.integers(6, 40), st.integers(0, 10**6), st.sampled_from([0.2, 1.0, 5.0]), st.integers(1, 4))
def test_the_optimum_lies_between_primal_and_dual(n, seed, gamma, epochs):
    random = np.random.default_rng(seed)
    some = random.normal(size=(n, 3))
    labels = np.concatenate([[0, 1], random.integers(0, 2, n - 2)])
    _, optimum = hard_margin(rbf_kernel(some, gamma=gamma), labels)
    model = huller(gamma=gamma, epochs=epochs).fit(some, labels)
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
    model = huller("linear", epochs=50).fit(some, labels)
    assert model.result_.dual == 0
    assert model.result_.primal < 1e-3
    assert all(np.isfinite([point.primal, point.dual]).all() for point in model.result_.history)
    assert np.isfinite(model.decision_function(some)).all()


def test_a_gap_that_stays_open_is_warned_of():
    with pytest.warns(TrainingWarning, match="max_iter=2"):
        model = huller(stop="gap", tol=1e-9, max_iter=2).fit(X, y)
    assert model.result_.status == "max_iter"
    assert 1e-9 < model.result_.relative_gap <= 1


def test_classes_at_the_same_place_make_a_constant_model():
    model = huller("linear", epochs=3).fit(np.ones((8, 2)), [0, 1] * 4)
    np.testing.assert_array_equal(model.decision_function(np.ones((2, 2))), 0)
    assert model.result_.primal == pytest.approx(0, abs=1e-12)


def test_history_estimates_come_near_the_certificate():
    result = huller(epochs=30).fit(X, y).result_
    estimate = result.history[-2]
    assert not estimate.exact
    assert estimate.primal == pytest.approx(result.primal, rel=1e-9)
    assert estimate.dual == pytest.approx(result.dual, rel=0.1)
    primal = [point.primal for point in result.history if point.iterations > 1]
    assert (np.diff(primal) <= 1e-12).all()


# One stream, one model


def assert_same(one, other, atol=1e-9):
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_array_equal(np.sort(one.support_), np.sort(other.support_))
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=atol)


@pytest.mark.parametrize("parts", [1, 4, 30])
def test_parts_of_a_stream_make_the_model_of_all_of_it(parts):
    order = np.random.default_rng(0).permutation(len(y))
    whole = huller(shuffle=False).fit(X[order], names[y[order]])
    model = huller()
    for part in np.array_split(order, parts):
        model.partial_fit(X[part], names[y[part]])
    assert_same(whole, model)


@pytest.mark.parametrize("classes", [None, names])
def test_classes_may_arrive_one_after_another(classes):
    model = huller()
    for label in (2, 0, 1):
        model.partial_fit(X[y == label], names[y[y == label]], classes=classes)
        seen = np.unique(names[y[y == label]])
        assert model.decision_function(X).shape == (
            (len(X),) if len(model.classes_) == 2 else (len(X), len(model.classes_))
        )
        assert np.isin(model.predict(X[y == label]), seen).mean() > 0.5
    for _ in range(20):
        model.partial_fit(X, names[y])
    assert model.score(X, names[y]) > 0.95


@pytest.mark.parametrize("path", ["pickle", "file"])
def test_a_saved_model_predicts_the_same_and_goes_on(path, tmp_path):
    part = np.random.default_rng(1).permutation(len(y))[:75]
    model = huller().partial_fit(X[part], names[y[part]])
    if path == "pickle":
        copy = pickle.loads(pickle.dumps(model))
    else:
        models.save(model, tmp_path / "model.larank")
        copy = models.load(tmp_path / "model.larank")
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    # Which support vectors it picks depends on their order in memory; where it leads does not.
    for _ in range(50):
        for each in (copy, model):
            each.partial_fit(X, names[y])
    np.testing.assert_allclose(copy.decision_function(X), model.decision_function(X), atol=0.01)


def test_a_fitted_model_goes_on_with_partial_fit():
    model = huller(epochs=2).fit(X[:100], y[:100])
    before = model.decision_function(X)
    model.partial_fit(X[100:], y[100:])
    assert model.decision_function(X).shape != before.shape or not np.allclose(before, model.decision_function(X))


@pytest.mark.parametrize("change", [{"batch_size": 3}, {"n_jobs": 2}, {"memory_limit": 1.2e5}])
def test_blocks_threads_and_memory_do_not_change_the_model(change):
    assert_same(huller(epochs=3).fit(X, y), huller(epochs=3, **change).fit(X, y))


def test_sparse_precomputed_and_callable_kernels_make_the_same_model():
    model = huller(epochs=3).fit(X, y)
    assert_same(model, huller(epochs=3).fit(sparse.csr_matrix(X), y), atol=1e-6)
    K = rbf_kernel(X, gamma=2.0)
    precomputed = huller("precomputed", epochs=3).fit(K, y)
    np.testing.assert_allclose(precomputed.decision_function(K), model.decision_function(X), atol=1e-6)
    assert_same(model, huller(lambda a, b: rbf_kernel(a, b, gamma=2.0), epochs=3).fit(X, y), atol=1e-6)


def test_the_error_on_a_validation_set_is_in_the_history():
    model = huller(epochs=5).fit(X[::2], y[::2], validation=(X[1::2], y[1::2]))
    errors = [point.error for point in model.result_.history if point.error is not None]
    assert errors[-1] == pytest.approx(1 - model.score(X[1::2], y[1::2]))


def test_counts_add_up():
    result = huller(epochs=2).fit(X[y > 0], y[y > 0]).result_
    assert result.solver == "huller"
    assert result.operations["insertions"] - result.operations["removals"] == result.support_vectors
    assert 2 * (y > 0).sum() - 20 < result.operations["reprocess"] <= 2 * (y > 0).sum() - 6
    assert 0 < result.operations["process"] < result.operations["reprocess"]


def test_a_stream_of_precomputed_values_has_a_column_for_every_example_so_far():
    order = np.random.default_rng(3).permutation(len(y))
    K = rbf_kernel(X[order], gamma=2.0)
    whole = huller(shuffle=False).fit(X[order], y[order])
    model = huller("precomputed")
    for part in np.array_split(np.arange(len(y)), 5):
        model.partial_fit(np.ascontiguousarray(K[part, : part[-1] + 1]), y[order][part])
    np.testing.assert_allclose(model.decision_function(K), whole.decision_function(X[order]), atol=1e-6)


def test_a_training_that_is_cut_short_leaves_a_valid_model():
    with pytest.warns(TrainingWarning, match="time_limit"):
        model = huller(epochs=1000, time_limit=1e-9).fit(X, names[y])
    assert model.result_.status == "time_limit"
    assert model.decision_function(X).shape == (len(X), 3)
    assert np.isfinite(model.decision_function(X)).all()
    assert 0 <= model.result_.dual <= model.result_.primal


# Bad input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"stop": "gap"}, r"tol must be a number above 0 and below 1 with stop='gap', got None"),
        ({"stop": "gap", "tol": 1.5}, r"tol must be a number above 0 and below 1 with stop='gap', got 1\.5"),
        ({"tol": 0.1}, r"tol acts with stop='gap' only"),
        ({"stop": "never"}, r"stop must be one of"),
        ({"epochs": 0}, r"epochs must be .*, got 0"),
        ({"memory_limit": -1}, r"memory_limit must be .*, got -1"),
        ({"memory_limit": 100}, r"memory_limit must be at least \d+ bytes"),
        ({"certify": "yes"}, r"certify must be True or False, got 'yes'"),
        ({"kernel": "cubic"}, r"kernel must be"),
    ],
)
def test_a_bad_parameter_is_named_with_what_would_do(parameters, message):
    with pytest.raises(ValueError, match=message):
        huller(**parameters).fit(X, y)


def test_weights_are_not_accepted():
    with pytest.raises(TypeError, match="sample_weight"):
        huller().fit(X, y, sample_weight=np.ones(len(y)))


def test_one_class_is_not_enough_for_fit():
    with pytest.raises(ValueError, match="at least two classes"):
        huller().fit(X[:5], np.zeros(5))


def test_a_failed_call_leaves_the_model_as_it_was():
    model = huller().partial_fit(X[:100], names[y[:100]])
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="2 features"):
        model.partial_fit(X[100:, :2], names[y[100:]])
    np.testing.assert_array_equal(model.decision_function(X), before)
    model.partial_fit(X[100:], names[y[100:]])
    assert len(model.classes_) == 3
