"""LaRankClassifier(average=...): linear models of noisy streams are averages, and their certificate is their own."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from larank import LaRankClassifier, LinearMulticlassSVC
from larank.data import models
from references.optima import primal


def noisy(rows=4000, classes=5, seed=0, features=20):
    """Labels that are the best of linear functions with Gumbel noise."""
    random = np.random.default_rng(seed)
    W = random.normal(size=(features, classes))
    X = random.normal(size=(rows, features))
    return X, (X @ W + random.gumbel(size=(rows, classes))).argmax(axis=1)


def linear(**parameters):
    return LaRankClassifier("linear", **{"epochs": 1, "random_state": 0, **parameters})


def weights(model):
    """A row per class."""
    return model.coef_ if len(model.classes_) > 2 else np.vstack([-model.coef_, model.coef_]) / 2


@pytest.mark.parametrize("seed", range(2))
def test_one_pass_of_a_noisy_stream_is_within_half_a_point_of_the_optimum(seed):
    X, y = noisy(60_000, seed=seed)
    train, test = slice(20_000), slice(20_000, None)
    best = LinearMulticlassSVC(C=1, random_state=0).fit(X[train], y[train]).score(X[test], y[test])
    last, averaged = (
        linear(average=average).fit(X[train], y[train]).score(X[test], y[test]) for average in (False, True)
    )
    assert averaged > best - 0.005
    assert last < best - 0.02


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_the_primal_objective_is_that_of_the_average_and_bounds_the_optimum(classes, layout):
    X, y = noisy(1000, classes)
    best = linear(tol=1e-4, average=False).fit(X, y).result_
    for parameters in ({}, {"epochs": 3}, {"stop": "gap", "tol": 0.01, "epochs": "auto"}):
        model = linear(**parameters).fit(layout(X), y)
        expected = primal("crammer-singer", weights(model), X, y, np.ones(1000))
        assert model.result_.exact
        assert model.result_.primal == pytest.approx(expected, rel=1e-9)
        assert model.result_.dual <= best.primal
        assert model.result_.primal >= best.dual


def test_the_average_changes_the_model_and_nothing_on_the_way():
    X, y = noisy()
    averaged, last = (linear(average=average).fit(X, y) for average in (True, False))
    assert np.abs(averaged.coef_ - last.coef_).max() > 0.01
    np.testing.assert_array_equal(averaged.dual_coef_.toarray(), last.dual_coef_.toarray())
    assert averaged.result_.dual == last.result_.dual
    assert averaged.result_.primal < last.result_.primal


@pytest.mark.parametrize(("classes", "intercept"), [(2, True), (5, False)])
def test_the_average_of_a_fit_goes_on_in_a_stream(classes, intercept, tmp_path):
    X, y = noisy(6000, classes)
    fitted = linear(fit_intercept=intercept).fit(X[:4000], y[:4000])
    models.save(fitted, tmp_path / "model")
    for model in (fitted, models.load(tmp_path / "model")):
        before = weights(model)
        model.partial_fit(X[4000:4001], y[4000:4001])
        np.testing.assert_allclose(weights(model), before, atol=0.02 * np.abs(before).max())
        model.partial_fit(X[4001:], y[4001:])
        last = clone(model).set_params(average=False).fit(X[:4000], y[:4000]).partial_fit(X[4000:], y[4000:])
        losses = [primal("crammer-singer", weights(some), X, y, np.ones(6000)) for some in (model, last)]
        assert losses[0] < losses[1]


def test_a_class_may_arrive_when_the_average_is_old():
    X, y = noisy(classes=9)
    model = linear().partial_fit(X[y < 8], y[y < 8])
    model.partial_fit(X, y)
    assert model.coef_.shape == (9, 20)
    assert np.isfinite(model.coef_).all()
    assert np.abs(model.coef_[8]).max() > 0


def test_the_error_on_held_out_examples_is_that_of_the_average():
    X, y = noisy(3000)
    model = linear().fit(X[:2000], y[:2000], validation=(X[2000:], y[2000:]))
    errors = [point.error for point in model.result_.history if point.error is not None]
    assert errors[-1] == pytest.approx(1 - model.score(X[2000:], y[2000:]), abs=0.01)


def test_hard_margins_are_those_of_the_last_weights():
    X, y = noisy(100)
    y = (X @ np.random.default_rng(1).normal(size=(20, 3))).argmax(axis=1)
    hard = {"C": np.inf, "epochs": "auto", "stop": "gap", "tol": 0.01}
    models = [linear(**hard, average=average).fit(X, y) for average in ("auto", False)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
