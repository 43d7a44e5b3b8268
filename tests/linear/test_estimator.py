"""What the linear estimators promise beyond the generic suite: warm starts, extreme numbers, the search over costs."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold

from checks import clouds
from larank import LinearMulticlassSVC, PathSearchCV, PrimalMulticlassSVC, TrainingWarning
from larank.data import models
from references import optima

X, y = load_iris(return_X_y=True)
X = X / X.max(axis=0)
names = np.array(["setosa", "versicolor", "virginica"])


def svc(**parameters):
    return LinearMulticlassSVC(**{"random_state": 0, **parameters})


def test_a_pickle_warm_starts_alike_and_a_loaded_model_is_trained_again(tmp_path):
    model = svc(warm_start=True).fit(X, names[y])
    models.save(model, tmp_path / "iris.larank")
    loaded, pickled = models.load(tmp_path / "iris.larank"), pickle.loads(pickle.dumps(model))
    assert pickled.fit(X, names[y]).coef_.tobytes() == model.fit(X, names[y]).coef_.tobytes()
    with pytest.raises(ValueError, match="warm_start needs the coefficients of the fit before, which a loaded model"):
        loaded.fit(X, names[y])
    loaded.set_params(warm_start=False)
    assert loaded.fit(X[:-1], names[y[:-1]]).result_.status == "converged"


def test_the_intercept_includes_its_scaling():
    exactly = {"tol": 1e-8, "max_iter": 10**5}
    model = svc(intercept_scaling=3.0, **exactly).fit(X, y)
    constant = svc(fit_intercept=False, **exactly).fit(np.column_stack([X, np.full(len(X), 3.0)]), y)
    np.testing.assert_array_equal(constant.intercept_, np.zeros(3))
    np.testing.assert_allclose(model.intercept_, 3.0 * constant.coef_[:, -1], atol=1e-3)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 1e39}, r"C times the weights .* below 3.4e\+38.*float32; got 1e\+39"),
        ({"intercept_scaling": 1e-50}, "intercept_scaling must be .* in the precision of X, float32; got 1e-50"),
        ({"intercept_scaling": 1e50}, r"intercept_scaling must be .* float32; got 1e\+50"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_numbers_beyond_the_precision_of_the_examples_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        svc(**parameters).fit(X.astype(np.float32), y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("magnitude", [1e-14, 1e-12, 1e6, 1e12, 1e14])
@pytest.mark.parametrize("model", [svc(max_iter=20, fit_intercept=False), PrimalMulticlassSVC(tol=1e-9, max_iter=100)])
@pytest.mark.filterwarnings("ignore:training was ended")
def test_examples_of_any_magnitude_give_a_finite_model_and_an_honest_gap(model, dtype, magnitude):
    some, labels = clouds(30)
    model = clone(model).fit((some * magnitude).astype(dtype), labels)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite([model.result_.primal, model.result_.dual]).all()
    assert -1e-6 <= model.result_.relative_gap <= 1 + 1e-5


@pytest.mark.parametrize("kind", [LinearMulticlassSVC, PrimalMulticlassSVC])
@pytest.mark.parametrize(
    ("form", "name"),
    [(np.asarray, "2"), (sparse.csr_matrix, "2"), (lambda X: pd.DataFrame(X, columns=list("abcd")), "'c'")],
)
def test_training_that_ends_early_names_the_features_that_are_too_large(kind, form, name):
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    model = kind(max_iter=1, tol=1e-12, random_state=0)
    with pytest.warns(TrainingWarning) as said:
        model.fit(form(X), y)
    assert all("scale X" not in str(warning.message) for warning in said), "they are alike"
    X[:, 2] *= 5000
    too_large = rf"slow training down: {name} \(about [\d.e+]+\); scale X, as larank.TableEnc"
    with pytest.warns(TrainingWarning, match=too_large):
        model.fit(form(X), y)


CS = [0.01, 0.3, 10.0]
TIGHT = {"tol": 1e-9, "max_iter": 10**6, "random_state": 0}
X4, y4 = clouds(120, 4, seed=1)


@pytest.mark.parametrize("formulation", optima.FORMULATIONS)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(("form", "class_weight"), [(np.asarray, "balanced"), (sparse.csr_matrix, None)])
def test_the_scores_are_those_of_separate_fits(formulation, classes, form, class_weight):
    some, labels, weight = form(X4), y4 % classes, np.random.default_rng(0).choice([0.0, 0.5, 2.0], len(y4))
    options = {**TIGHT, "class_weight": class_weight, "formulation": formulation}
    model = PathSearchCV(LinearMulticlassSVC(**options), Cs=CS, cv=3).fit(some, labels, weight)
    for fold, (train, test) in enumerate(StratifiedKFold(3).split(X4, labels)):
        for place, C in enumerate(CS):
            single = LinearMulticlassSVC(C=C, **options).fit(some[train], labels[train], weight[train])
            score = single.score(some[test], labels[test], weight[test])
            assert model.scores_[fold, place] == pytest.approx(score, abs=1e-12)
    single = LinearMulticlassSVC(**model.best_params_, **options).fit(some, labels, weight)
    np.testing.assert_allclose(model.decision_function(some), single.decision_function(some), atol=1e-2)


def test_it_finds_what_a_grid_search_finds():
    estimator, options = LinearMulticlassSVC(**TIGHT), {"cv": 4, "scoring": "f1_macro"}
    search = GridSearchCV(estimator, {"C": CS}, **options).fit(X4, y4)
    for jobs in (1, 2):
        model = PathSearchCV(estimator, Cs=CS[::-1], n_jobs=jobs, **options).fit(X4, y4)
        assert model.best_score_ == pytest.approx(search.best_score_)
        found = search.cv_results_["mean_test_score"][::-1]
        np.testing.assert_allclose(model.scores_.mean(axis=0), found, atol=1e-12)


def test_a_class_that_a_fold_lacks_is_never_predicted_there():
    folds = PredefinedSplit(np.where(y4 == 3, 0, np.arange(len(y4)) // 4 % 2 + 1))
    model = PathSearchCV(LinearMulticlassSVC(), Cs=[1.0], cv=folds).fit(X4, y4)
    assert model.scores_[0, 0] == 0
    assert (model.scores_[1:] > 0.5).all()
    with pytest.raises(ValueError, match=r"cv must leave examples of at least two classes .*got \[1\] in fold 0"):
        PathSearchCV(LinearMulticlassSVC(), cv=PredefinedSplit(y4 % 2)).fit(X4, y4 % 2)


def test_without_a_refit_there_is_a_choice_and_no_model():
    model = PathSearchCV(LinearMulticlassSVC(), Cs=3, cv=3, refit=False).fit(X4, y4)
    np.testing.assert_allclose(model.Cs_, [0.01, np.sqrt(10), 1000])
    assert model.best_params_["C"] in model.Cs_
    with pytest.raises(NotFittedError):
        model.predict(X4)
