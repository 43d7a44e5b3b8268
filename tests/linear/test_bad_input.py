"""What a person may get wrong is answered by an error that names the argument, the value and what would do."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from larank import LinearMulticlassSVC

X = np.random.default_rng(0).normal(size=(30, 4))
y = np.arange(30) % 3


def svc(**parameters):
    return LinearMulticlassSVC(**{"random_state": 0, **parameters})


# Parameters

NUMBER = "must be a finite number > 0, got"
COST = "must be a finite number > 0, or infinity for hard margins; got"
FLAG = "must be True or False, got"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *[("C", value, f"C {COST} {value!r}") for value in (-1.0, 0, np.nan, "1", None, True, [1.0])],
        *[("tol", value, f"tol {NUMBER} {value!r}") for value in (0, -1e-3, np.nan, "tight")],
        *[("intercept_scaling", value, f"intercept_scaling {NUMBER} {value!r}") for value in (0, -1, None)],
        *[("time_limit", value, f"time_limit {NUMBER} {value!r}") for value in (0, -1, "1h", np.inf)],
        *[("max_iter", value, f"max_iter must be an integer >= 1, got {value!r}") for value in (0, -1, 2.5, "9", True)],
        *[("verbose", value, f"verbose must be an integer >= 0, got {value!r}") for value in (-1, 1.5, "yes", None)],
        *[
            (name, value, f"{name} {FLAG} {value!r}")
            for name in ("fit_intercept", "shrinking", "cooling", "warm_start")
            for value in ("no", 1, None, 0.0)
        ],
        (
            "formulation",
            "cs",
            "formulation must be one of 'crammer-singer', 'weston-watkins', 'one-vs-rest'; got 'cs'",
        ),
        ("formulation", None, "formulation must be one of .*; got None"),
        ("stop", "never", "stop must be one of 'gap', 'violation'; got 'never'"),
        ("class_weight", "even", "class_weight.*'balanced'.*Got 'even'"),
        ("class_weight", {0: -1.0}, r"class_weight must not be negative or infinite, got {0: -1.0}"),
        ("class_weight", {0: np.inf}, r"class_weight must not be negative or infinite, got {0: inf}"),
        ("class_weight", {17: 1.0}, "not in class_weight"),
        ("random_state", "lucky", "'lucky' cannot be used to seed"),
    ],
)
def test_a_bad_parameter_is_named_with_its_value_and_what_would_do(name, value, message):
    with pytest.raises(ValueError, match=message.replace("[1.0]", r"\[1.0\]")):
        svc(**{name: value}).fit(X, y)


def test_parameters_are_checked_by_fit_and_path_and_not_by_the_constructor():
    model = svc(C=-1.0)
    with pytest.raises(ValueError, match="C must be"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="tol must be"):
        svc(tol=0).path(X, y, [1.0])


@pytest.mark.parametrize("value", [np.True_, np.False_])
def test_flags_of_numpy_are_flags(value):
    svc(fit_intercept=value, shrinking=value).fit(X, y)


@pytest.mark.parametrize("C", [np.float32(0.5), np.int64(2), 3])
def test_numbers_of_any_kind_are_numbers(C):
    svc(C=C, max_iter=np.int32(1000)).fit(X, y)


@pytest.mark.parametrize(
    ("Cs", "message"),
    [
        ([], "Cs must hold at least one value, got none"),
        (1.0, "Cs must be a sequence of numbers, got 1.0"),
        ([1.0, -2.0], r"Cs\[1\] must be a finite number > 0, got -2.0"),
        ("ab", r"Cs\[0\] must be a finite number > 0, got 'a'"),
    ],
)
def test_bad_costs_of_a_path_are_refused_before_anything_is_trained(Cs, message, monkeypatch):
    monkeypatch.setattr(LinearMulticlassSVC, "_fit", lambda *arguments: pytest.fail("trained"))
    with pytest.raises(ValueError, match=message):
        svc().path(X, y, Cs)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 1e39}, r"C times the weights .* below 3.4e\+38.*float32; got 1e\+39"),
        (
            {"intercept_scaling": 1e-50},
            "intercept_scaling must be .* in the precision of X, float32; got 1e-50",
        ),
        ({"intercept_scaling": 1e50}, r"intercept_scaling must be .* float32; got 1e\+50"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_numbers_beyond_the_precision_of_the_examples_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        svc(**parameters).fit(X.astype(np.float32), y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("magnitude", [1e-14, 1e-12, 1e12, 1e14])
@pytest.mark.filterwarnings("ignore:training was ended")
def test_examples_of_any_magnitude_give_a_finite_model_and_an_honest_gap(dtype, magnitude):
    model = svc(max_iter=20, fit_intercept=False).fit((X * magnitude).astype(dtype), y)
    assert np.isfinite(model.coef_).all()
    assert 0 <= model.result_.relative_gap + 1e-6 <= 1 + 1e-5
    assert np.isfinite([model.result_.primal, model.result_.dual]).all()


# Examples


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(layout, value):
    damaged = X.copy()
    damaged[3, 2] = value
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        svc().fit(layout(damaged), y)
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        svc().fit(X, y).predict(layout(damaged))


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_no_examples_and_no_features_are_refused(layout):
    with pytest.raises(ValueError, match=r"0 sample\(s\).*minimum of 1"):
        svc().fit(layout(X[:0]), y[:0])
    with pytest.raises(ValueError, match=r"0 feature\(s\).*minimum of 1"):
        svc().fit(layout(X[:, :0]), y)


def test_a_vector_is_not_a_matrix():
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        svc().fit(X[:, 0], y)


def test_words_are_not_features():
    with pytest.raises(ValueError, match="could not convert string to float: 'red'"):
        svc().fit([["red"], ["green"]], [0, 1])


def test_complex_numbers_are_refused():
    with pytest.raises(ValueError, match="Complex data not supported"):
        svc().fit(X + 1j, y)


@pytest.mark.parametrize("kind", ["csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("family", ["matrix", "array"])
def test_other_sparse_formats_are_converted(kind, family):
    stored = getattr(sparse, f"{kind}_{family}")(np.round(X))
    expected = svc().fit(sparse.csr_matrix(np.round(X)), y)
    model = svc().fit(stored, y)
    assert model.coef_.tobytes() == expected.coef_.tobytes()
    np.testing.assert_array_equal(model.predict(stored), expected.predict(np.round(X)))


def doubled():
    """Every value in two halves, stored in descending order of columns."""
    columns = np.tile(np.repeat(np.arange(4)[::-1], 2), 30).astype(np.int32)
    values = np.repeat(X[:, ::-1], 2, axis=1).ravel() / 2
    return sparse.csr_matrix((values, columns, np.arange(31, dtype=np.int32) * 8), shape=X.shape)


def test_repeated_features_of_a_row_are_summed_and_the_callers_matrix_kept():
    stored = doubled()
    parts = {name: getattr(stored, name).copy() for name in ("data", "indices", "indptr")}
    model = svc().fit(stored, y)
    assert model.coef_.tobytes() == svc().fit(sparse.csr_matrix(X), y).coef_.tobytes()
    for name, part in parts.items():
        np.testing.assert_array_equal(getattr(stored, name), part)


@pytest.mark.parametrize("column", [4, 1000, -1])
def test_columns_out_of_range_are_refused_and_not_read(column):
    stored = sparse.csr_matrix(X)
    stored.indices[5] = column
    with pytest.raises(ValueError, match=f"X must have column indices from 0 to 3, .*; got {column}"):
        svc().fit(stored, y)


def test_rows_that_run_backwards_are_refused():
    stored = sparse.csr_matrix(X)
    stored.indptr[5] = 100
    with pytest.raises(ValueError, match="X must have an indptr that never decreases"):
        svc().fit(stored, y)


def test_integers_and_booleans_are_numbers():
    whole = np.round(3 * X).astype(int)
    assert svc().fit(whole, y).coef_.tobytes() == svc().fit(whole.astype(float), y).coef_.tobytes()
    svc().fit(X > 0, y)


# Labels


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[30, 5\]"):
        svc().fit(X, y[:5])


@pytest.mark.parametrize(("labels", "shown"), [(np.zeros(30, int), "0"), (["spam"] * 30, "'spam'")])
def test_one_class_is_refused(labels, shown):
    with pytest.raises(ValueError, match=f"y must hold at least two classes, got one class: {shown}$"):
        svc().fit(X, labels)


def test_continuous_labels_are_refused():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        svc().fit(X, X[:, 0])


def test_missing_labels_are_refused():
    with pytest.raises(ValueError, match="Input y contains NaN"):
        svc().fit(X, np.where(y == 0, np.nan, y))
    with pytest.raises(ValueError, match="y"):
        svc().fit(X, None)


def test_two_columns_of_labels_are_refused():
    with pytest.raises(ValueError, match="y should be a 1d array"):
        svc().fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize(
    "names",
    [
        np.array(["ham", "spam", "eggs"]),
        np.array(["ham", "spam", "eggs"], dtype=object),
        np.array([0.0, 1.0, 2.0]),
        np.array([-5, 1000, 7]),
        np.array([0, 2**40, 1], dtype=np.int64),
        np.array([3, 1, 2], dtype=np.uint8),
    ],
    ids=str,
)
def test_labels_may_be_anything_that_can_be_told_apart(names):
    model = svc().fit(X, names[y])
    np.testing.assert_array_equal(model.classes_, np.unique(names))
    plain = svc().fit(X, np.argsort(np.argsort(names))[y])
    np.testing.assert_array_equal(model.predict(X), np.sort(names)[plain.predict(X)])


def test_boolean_labels_are_two_classes():
    model = svc().fit(X, y == 0)
    assert model.predict(X).dtype == bool


# Weights


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.r_[np.ones(7), -0.5, np.ones(22)], "sample_weight must be finite and not negative, got -0.5 for example 7"),
        (np.zeros(30), "Sample weights must contain at least one non-zero number"),
        (np.ones(29), r"sample_weight.shape == \(29,\), expected \(30,\)"),
        (np.full(30, np.nan), "Input sample_weight contains NaN"),
        (np.full(30, np.inf), "Input sample_weight contains infinity"),
        (np.ones((30, 2)), "[Ss]ample.weight"),
    ],
)
def test_bad_weights_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        svc().fit(X, y, sample_weight=weight)


def test_class_weights_that_leave_nothing_are_refused():
    with pytest.raises(ValueError, match="leave no example with a weight above zero"):
        svc(class_weight={0: 0, 1: 0, 2: 0}).fit(X, y)


# Prediction


@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_prediction_before_training_is_refused(method):
    with pytest.raises(NotFittedError, match="LinearMulticlassSVC instance is not fitted yet"):
        getattr(svc(), method)(X)


@pytest.mark.parametrize("method", ["predict", "decision_function"])
@pytest.mark.parametrize("width", [3, 5])
def test_prediction_for_another_number_of_features_is_refused(method, width):
    with pytest.raises(ValueError, match=f"X has {width} features, but LinearMulticlassSVC is expecting 4 features"):
        getattr(svc().fit(X, y), method)(np.zeros((2, width)))


def test_a_failed_fit_leaves_the_model_before_it_usable():
    model = svc().fit(X, y)
    before = model.predict(X)
    for labels in (np.zeros(30, int), y[:5]):
        with pytest.raises(ValueError, match=r"class|samples"):
            model.fit(X, labels)
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_malformed_csr_matrix_is_refused_and_not_read():
    X = sparse.csr_matrix(np.arange(12.0).reshape(4, 3))
    y = [0, 1, 0, 1]
    for spoil in ("begins before the data", "too many rows", "too few values"):
        bad = X.copy()
        if spoil == "begins before the data":
            bad.indptr[0] = -2_000_000_000
        elif spoil == "too many rows":
            bad.indptr = np.concatenate([bad.indptr, np.full(1000, bad.indptr[-1], dtype=bad.indptr.dtype)])
        else:
            bad.data = bad.data[:3].copy()
        with pytest.raises(ValueError, match=r"X must have|indptr|data"):
            LinearMulticlassSVC(max_iter=3).fit(bad, y)
