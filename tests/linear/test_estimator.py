"""The estimator keeps the contract of scikit-learn."""

import doctest
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from larank import LinearMulticlassSVC, PrimalMulticlassSVC, TrainingWarning
from larank.data import models
from reference import FORMULATIONS

X, y = load_iris(return_X_y=True)
X = X / X.max(axis=0)
names = np.array(["setosa", "versicolor", "virginica"])


def svc(**parameters):
    return LinearMulticlassSVC(**{"random_state": 0, **parameters})


def test_it_is_a_classifier_that_accepts_sparse_input():
    assert is_classifier(svc())
    assert svc().__sklearn_tags__().input_tags.sparse


def test_pipelines_pass_data_and_weights_through():
    pipeline = make_pipeline(MinMaxScaler(), svc())
    weight = np.linspace(0.5, 2, len(y))
    pipeline.fit(X, y, linearmulticlasssvc__sample_weight=weight)
    alone = svc().fit(MinMaxScaler().fit_transform(X), y, weight)
    np.testing.assert_array_equal(pipeline[-1].coef_, alone.coef_)
    assert pipeline.score(X, y) > 0.9


def test_a_grid_search_finds_a_cost():
    search = GridSearchCV(svc(), {"C": [1e-4, 1.0, 10.0], "formulation": list(FORMULATIONS)}, cv=3).fit(X, y)
    assert search.best_params_["C"] > 1e-4
    assert search.best_score_ > 0.9


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_cross_validation_scores_well(formulation):
    scores = cross_val_score(make_pipeline(StandardScaler(), svc(formulation=formulation)), X, names[y], cv=5)
    assert scores.mean() > 0.85


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_cross_validation_scores_sparse_rows_like_dense_ones(formulation):
    estimator = svc(formulation=formulation, tol=1e-6, max_iter=10_000)
    scores = [cross_val_score(estimator, layout(X), y, cv=3) for layout in (np.asarray, sparse.csr_matrix)]
    np.testing.assert_allclose(*scores, atol=0.021)  # one example of fifty


def test_a_clone_has_the_parameters_and_nothing_else():
    model = svc(C=3.0, class_weight={0: 2.0}, stop="violation", time_limit=60.0).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not [name for name in vars(copy) if name.endswith("_") or name.startswith("_")]
    assert copy.fit(X, y).coef_.tobytes() == model.coef_.tobytes()


def test_set_params_refuses_unknown_names():
    with pytest.raises(ValueError, match="Invalid parameter 'epsilon'"):
        svc().set_params(epsilon=0.1)


def test_a_pickle_predicts_and_warm_starts_alike():
    model = svc(warm_start=True).fit(X, names[y])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    assert copy.result_ == model.result_
    assert copy.fit(X, names[y]).coef_.tobytes() == model.fit(X, names[y]).coef_.tobytes()


def test_feature_names_are_kept_and_checked():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = svc().fit(frame, y)
    np.testing.assert_array_equal(model.feature_names_in_, ["a", "b", "c", "d"])
    np.testing.assert_array_equal(model.predict(frame), svc().fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c", "d"]])


def test_frames_from_set_output_are_welcome():
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), svc())
    pipeline.fit(pd.DataFrame(X, columns=list("abcd")), pd.Series(names[y]))
    np.testing.assert_array_equal(pipeline[-1].feature_names_in_, list("abcd"))
    assert set(pipeline.predict(pd.DataFrame(X, columns=list("abcd")))) <= set(names)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shapes_and_types_are_those_documented(formulation, classes, dtype):
    keep = y < classes
    model = svc(formulation=formulation).fit(X[keep].astype(dtype), y[keep])
    rows = 1 if classes == 2 else classes
    assert model.coef_.shape == (rows, 4)
    assert model.intercept_.shape == (rows,)
    assert model.coef_.dtype == model.intercept_.dtype == dtype
    assert model.dual_coef_.shape == (keep.sum(), classes)
    assert model.costs_.shape == (keep.sum(),)
    assert isinstance(model.n_iter_, int)
    scores = model.decision_function(X[keep].astype(dtype))
    assert scores.shape == ((keep.sum(),) if classes == 2 else (keep.sum(), classes))
    best = (scores > 0).astype(int) if classes == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X[keep].astype(dtype)), model.classes_[best])


def test_without_an_intercept_there_is_none():
    model = svc(fit_intercept=False).fit(X, y)
    assert not model.intercept_.any()
    assert model.intercept_.shape == (3,)


def test_the_intercept_includes_its_scaling():
    model = svc(intercept_scaling=3.0, tol=1e-8, max_iter=10**5).fit(X, y)
    constant = svc(fit_intercept=False, tol=1e-8, max_iter=10**5).fit(np.column_stack([X, np.full(len(X), 3.0)]), y)
    np.testing.assert_allclose(model.intercept_, 3.0 * constant.coef_[:, -1], atol=1e-2)
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_saved_model_predicts_the_same_labels(formulation, classes, tmp_path):
    keep = y < classes
    frame = pd.DataFrame(X[keep], columns=list("abcd"))
    model = svc(formulation=formulation, C=2.0, class_weight={"setosa": 2.0, "versicolor": 1.0, "virginica": 0.5})
    if classes == 2:
        model.set_params(class_weight="balanced")
    model.fit(frame, names[y[keep]])
    models.save(model, tmp_path / "iris.larank")
    loaded = models.load(tmp_path / "iris.larank")
    assert type(loaded) is LinearMulticlassSVC
    assert loaded.get_params() == model.get_params()
    assert loaded.result_ == model.result_
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(loaded.decision_function(frame), model.decision_function(frame))


def test_a_loaded_model_can_be_trained_again(tmp_path):
    model = svc(warm_start=True).fit(X, names[y])
    models.save(model, tmp_path / "iris.larank")
    loaded = models.load(tmp_path / "iris.larank")
    with pytest.raises(ValueError, match="warm_start needs the coefficients of the fit before, which a loaded model"):
        loaded.fit(X, names[y])
    loaded.set_params(warm_start=False)
    assert loaded.fit(X[:-1], names[y[:-1]]).result_.status == "converged"


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        models.save(svc(), tmp_path / "iris.larank")
    assert not list(tmp_path.iterdir())


def test_the_example_of_the_documentation_is_true():
    results = doctest.testmod(sys.modules[LinearMulticlassSVC.__module__])
    assert results.attempted > 0
    assert results.failed == 0


# Badly scaled features


@pytest.mark.parametrize("kind", [LinearMulticlassSVC, PrimalMulticlassSVC])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_training_that_ends_early_names_the_features_that_are_too_large(kind, form):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 4)), np.arange(60) % 3
    X[:, 2] *= 5000
    with pytest.warns(TrainingWarning, match=r"slow training down: 2 \(about [\d.e+]+\); scale X, as larank.TableEnc"):
        kind(max_iter=1, tol=1e-12, random_state=0).fit(form(X), y)
    frame = pd.DataFrame(X, columns=["age", "size", "income", "rooms"])
    with pytest.warns(TrainingWarning, match=r"slow training down: 'income' \(about"):
        kind(max_iter=1, tol=1e-12, random_state=0).fit(frame, y)


def test_training_that_ends_early_says_nothing_of_features_that_are_alike():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 4)), np.arange(60) % 3
    with pytest.warns(TrainingWarning) as said:
        LinearMulticlassSVC(max_iter=1, tol=1e-12, random_state=0).fit(X, y)
    assert all("scale X" not in str(warning.message) for warning in said)
