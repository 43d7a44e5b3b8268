"""What the linear estimators promise beyond the generic suite: warm starts and extreme numbers."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris

from checks import clouds
from larank import LinearMulticlassSVC, PrimalMulticlassSVC, TrainingWarning
from larank.data import models

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
