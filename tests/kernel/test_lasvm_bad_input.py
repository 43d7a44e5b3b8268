"""What a person may get wrong with LaSVMClassifier is answered by an error that names it and says what would do."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from larank import LaSVMClassifier
from larank.training import TrainingWarning

X = np.random.default_rng(0).normal(size=(30, 4))
y = np.arange(30) % 3
K = X @ X.T


def lasvm(kernel="rbf", **parameters):
    return LaSVMClassifier(kernel, **{"random_state": 0, "n_jobs": 1, **parameters})


# Parameters

NUMBER = "must be a finite number > 0, got"
GAMMA = "gamma must be 'scale', 'auto' or a finite number > 0, got"


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *[("C", value, f"C {NUMBER} {value!r}") for value in (-1.0, 0, np.nan, np.inf, "1", None, True)],
        *[("tau", value, f"tau {NUMBER} {value!r}") for value in (-1.0, 0, np.nan, np.inf, "1", None, True)],
        *[("delta_max", value, f"delta_max {NUMBER} {value!r}") for value in (-1.0, 0, np.nan, np.inf, "1", True)],
        *[("memory_limit", value, f"memory_limit {NUMBER} {value!r}") for value in (0, -1, np.nan, "2GB", None)],
        *[("time_limit", value, f"time_limit {NUMBER} {value!r}") for value in (0, -1, "1h", np.inf)],
        *[("epochs", value, f"epochs must be an integer >= 1, got {value!r}") for value in (0, -1, 2.5, "9", True)],
        *[("batch_size", value, f"batch_size must be an integer >= 1, got {value!r}") for value in (0, 2.5, None)],
        *[("max_iter", value, f"max_iter must be an integer >= 1, got {value!r}") for value in (0, 1.5)],
        *[("verbose", value, f"verbose must be an integer >= 0, got {value!r}") for value in (-1, "yes", None)],
        *[("shuffle", value, f"shuffle must be True or False, got {value!r}") for value in ("no", 1, None)],
        *[("certify", value, f"certify must be True or False, got {value!r}") for value in ("no", 1, None)],
        *[("finish", value, f"finish must be True or False, got {value!r}") for value in ("no", 1, None)],
        *[("gamma", value, f"{GAMMA} {value!r}") for value in (0, -1.0, np.nan, np.inf, "big", None)],
        *[("degree", value, f"degree must be an integer >= 1, got {value!r}") for value in (0, 1.5, "3")],
        *[("coef0", value, f"coef0 must be a finite number, got {value!r}") for value in (np.nan, np.inf, "0")],
        *[("n_jobs", value, f"n_jobs must be None or an integer other than 0, got {value!r}") for value in (0, 1.5)],
        *[("label_budget", v, f"label_budget must be an integer >= 1, got {v!r}") for v in (0, -1, 2.5, "9", True)],
        ("selection", "best", "selection must be one of 'random', 'gradient', 'active', 'autoactive'; got 'best'"),
        ("selection", None, "selection must be one of .* or a strategy .*; got None"),
        ("sample_size", 9, "sample_size cannot act with selection='random'; got sample_size=9"),
        ("stop", "never", "stop must be one of 'epochs', 'gap'; got 'never'"),
        ("kernel", "gauss", "kernel must be one of 'linear', 'rbf', .*'precomputed'; got 'gauss'.*callable"),
        ("kernel", None, "kernel must be one of .*; got None"),
        ("class_weight", "even", "class_weight.*'even'"),
        ("class_weight", {0: -1.0}, r"class_weight must not be negative or infinite, got {0: -1.0}"),
        ("random_state", "lucky", "'lucky' cannot be used to seed"),
    ],
)
def test_a_bad_parameter_is_named_with_its_value_and_what_would_do(name, value, message, call):
    with pytest.raises(ValueError, match=message):
        getattr(lasvm(**{name: value}), call)(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tol": 0.1}, "tol acts with stop='gap' only; got tol=0.1 with stop='epochs'"),
        ({"stop": "gap", "epochs": 2}, "epochs acts with stop='epochs' only; got epochs=2 with stop='gap'"),
        ({"stop": "gap", "certify": False}, "certify=False acts with stop='epochs' only"),
        ({"stop": "gap", "finish": False}, "finish=False acts with stop='epochs' only"),
        ({"label_budget": 9, "epochs": 2}, "label_budget acts with stop='epochs' and epochs=1 only"),
        ({"label_budget": 9, "stop": "gap"}, "label_budget acts with stop='epochs' and epochs=1 only"),
        *[({"stop": "gap", "tol": tol}, f"tol {NUMBER} {tol!r}") for tol in (0, -1e-3, np.nan, "tight")],
    ],
)
def test_parameters_that_cannot_act_together_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        lasvm(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"stop": "gap"}, "partial_fit makes one pass .*; stop must be 'epochs', got 'gap'"),
        ({"class_weight": "balanced"}, "class_weight='balanced' needs all examples at once; .* a dict or None"),
        ({"selection": "active"}, "selection and label_budget act in fit only"),
        ({"label_budget": 5}, "selection and label_budget act in fit only"),
    ],
)
def test_partial_fit_refuses_what_needs_the_whole_stream(parameters, message):
    with pytest.raises(ValueError, match=message):
        lasvm(**parameters).partial_fit(X, y)


@pytest.mark.parametrize("name", ["tau", "delta_max", "gamma", "memory_limit", "kernel"])
def test_what_a_stream_began_with_cannot_change(name):
    model = lasvm().partial_fit(X, y)
    changed = {"tau": 0.1, "delta_max": 0.5, "gamma": 2.0, "memory_limit": 1e9, "kernel": "linear"}[name]
    with pytest.raises(ValueError, match=f"{name} must stay as it was .*; got {changed!r}"):
        model.set_params(**{name: changed}).partial_fit(X, y)


@pytest.mark.parametrize("labels", [y, y % 2], ids=["three", "two"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "precomputed"])
def test_a_memory_limit_that_is_too_small_is_told_the_minimum(kernel, labels):
    with pytest.raises(ValueError, match=r"memory_limit must be at least \d+ bytes for .*, got 100$"):
        lasvm(kernel, memory_limit=100).fit(K if kernel == "precomputed" else X, labels)


@pytest.mark.parametrize("labels", [y, y % 2], ids=["three", "two"])
def test_the_minimum_that_is_told_leads_to_one_that_does(labels):
    limit = 100
    for _ in range(100):
        try:
            model = lasvm(memory_limit=limit, C=100.0).fit(X, labels)
        except (ValueError, TrainingWarning) as error:  # while it trains, or finishes
            told = int(re.search(r"at least (\d+) bytes", str(error)).group(1))
            assert told > limit
            limit = told
        else:
            break
    plenty = lasvm(C=100.0).fit(X, labels)
    np.testing.assert_allclose(model.decision_function(X), plenty.decision_function(X), atol=1e-9)


# Data


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        (X[:0], y[:0], "minimum of 1 is required"),
        (X, y[:-1], "inconsistent numbers of samples"),
        (np.where(np.eye(30, 4), np.nan, X), y, "contains NaN"),
        (np.where(np.eye(30, 4), np.inf, X), y, "contains infinity"),
        (X[0], y, "Expected 2D array"),
        (X, y + 0.5, "Unknown label type"),
        (X, np.where(y == 0, np.nan, y), "contains NaN"),
    ],
)
def test_bad_data_is_refused(data, labels, message, call):
    with pytest.raises(ValueError, match=message):
        getattr(lasvm(), call)(data, labels)


@pytest.mark.parametrize("weights", [[1.0], -np.ones(30), np.full(30, np.nan), np.zeros(30)])
def test_bad_weights_are_refused(weights):
    with pytest.raises(ValueError, match=r"[Ss]ample.?weight|weights"):
        lasvm().fit(X, y, sample_weight=weights)


def test_weights_that_leave_one_class_are_refused():
    with pytest.raises(ValueError, match="must leave at least two classes"):
        lasvm().fit(X, y, sample_weight=(y == 1).astype(float))


def test_one_class_is_not_enough_for_fit():
    with pytest.raises(ValueError, match="at least two classes, got one class: 0"):
        lasvm().fit(X, np.zeros(30, int))


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_another_number_of_features_is_refused_and_leaves_the_model_as_it_was(layout):
    model = lasvm().partial_fit(X, y)
    before = model.decision_function(X)
    for call in (lambda: model.partial_fit(layout(X[:, :3]), y), lambda: model.predict(layout(X[:, :3]))):
        with pytest.raises(ValueError, match="3 features"):
            call()
    np.testing.assert_array_equal(model.decision_function(X), before)
    model.partial_fit(X, y)


def test_labels_of_another_kind_are_refused_in_a_stream():
    model = lasvm().partial_fit(X, y)
    with pytest.raises(ValueError, match="y must hold labels of the same type as those of the calls before"):
        model.partial_fit(X, np.array(["a", "b", "c"])[y])


def test_a_model_that_was_not_fitted_says_so():
    for call in ("predict", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(lasvm(), call)(X)


# Kernels


def test_a_precomputed_matrix_must_be_square_in_fit_and_wide_enough_in_a_stream():
    with pytest.raises(ValueError, match="square"):
        lasvm("precomputed").fit(K[:, :20], y)
    model = lasvm("precomputed").partial_fit(K[:20, :20], y[:20])
    with pytest.raises(ValueError, match=r"a column for every example of the stream so far .* at least 30; got 20"):
        model.partial_fit(K[20:, :20], y[20:])
    model.partial_fit(K[20:], y[20:])


def test_a_precomputed_model_that_was_fitted_cannot_go_on():
    with pytest.raises(ValueError, match="partial_fit cannot go on: with kernel='precomputed'"):
        lasvm("precomputed").fit(K, y).partial_fit(np.hstack([K, K]), y)


def test_a_matrix_that_is_not_positive_semi_definite_is_refused():
    damaged = K.copy()
    damaged[3, 7] = damaged[7, 3] = 1000.0
    with pytest.raises(ValueError, match=r"positive semi-definite"):
        lasvm("precomputed", C=10.0).fit(damaged, y)


def test_a_callable_kernel_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match="kernel"):
        lasvm(lambda a, b: np.ones((len(a), len(b) + 1))).fit(X, y)


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        (X, "validation must be a pair"),
        ((X, np.full(30, 9)), "validation must have labels that y has too"),
        ((X[:, :2], y), "2 features"),
    ],
)
def test_bad_validation_sets_are_refused(validation, message):
    with pytest.raises(ValueError, match=message):
        lasvm().fit(X, y, validation=validation)


@pytest.mark.parametrize("value", [0.0, 1e-300, 1e150])
def test_constant_features_make_finite_models(value):
    model = lasvm(gamma=1.0).fit(np.full((12, 2), value), np.arange(12) % 2)
    assert np.isfinite(model.decision_function(np.full((2, 2), value))).all()
    assert np.isfinite([model.result_.primal, model.result_.dual]).all()


@pytest.mark.parametrize("C", [1e-12, 1e12])
def test_extreme_costs_make_finite_models(C):
    model = lasvm(C=C).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.result_.gap >= -1e-9 * model.result_.primal
