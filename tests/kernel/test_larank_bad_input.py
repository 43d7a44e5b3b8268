"""What a person may get wrong with LaRankClassifier is answered by an error that names it and says what would do."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from larank import LaRankClassifier

X = np.random.default_rng(0).normal(size=(30, 4))
y = np.arange(30) % 3
K = X @ X.T
KERNELS = ("rbf", "linear", "poly", "precomputed")


def larank(kernel="rbf", **parameters):
    return LaRankClassifier(kernel, **{"random_state": 0, "n_jobs": 1, **parameters})


def examples(kernel):
    return K if kernel == "precomputed" else X


# Parameters

NUMBER = "must be a finite number > 0, got"
GAMMA = "gamma must be 'scale', 'auto' or a finite number > 0, got"


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *[("C", value, f"C {NUMBER} {value!r}") for value in (-1.0, 0, np.nan, np.inf, "1", None, True)],
        *[("memory_limit", value, f"memory_limit {NUMBER} {value!r}") for value in (0, -1, np.nan, "2GB", None)],
        *[("time_limit", value, f"time_limit {NUMBER} {value!r}") for value in (0, -1, "1h", np.inf)],
        *[("epochs", value, f"epochs must be an integer >= 1, got {value!r}") for value in (0, -1, 2.5, "9", True)],
        *[("batch_size", value, f"batch_size must be an integer >= 1, got {value!r}") for value in (0, 2.5, None)],
        *[("max_iter", value, f"max_iter must be an integer >= 1, got {value!r}") for value in (0, 1.5)],
        *[("n_reprocess", value, f"n_reprocess must be an integer >= 0, got {value!r}") for value in (-1, 0.5, None)],
        *[("verbose", value, f"verbose must be an integer >= 0, got {value!r}") for value in (-1, "yes", None)],
        *[("shuffle", value, f"shuffle must be True or False, got {value!r}") for value in ("no", 1, None)],
        *[("certify", value, f"certify must be True or False, got {value!r}") for value in ("no", 1, None)],
        *[("gamma", value, f"{GAMMA} {value!r}") for value in (0, -1.0, np.nan, np.inf, "big", None)],
        *[("degree", value, f"degree must be an integer >= 1, got {value!r}") for value in (0, 1.5, "3")],
        *[("coef0", value, f"coef0 must be a finite number, got {value!r}") for value in (np.nan, np.inf, "0")],
        *[("n_jobs", value, f"n_jobs must be None or an integer other than 0, got {value!r}") for value in (0, 1.5)],
        ("schedule", "random", "schedule must be one of 'adaptive', 'fixed'; got 'random'"),
        ("stop", "never", "stop must be one of 'epochs', 'gap'; got 'never'"),
        ("kernel", "gauss", "kernel must be one of 'linear', 'rbf', .*'precomputed'; got 'gauss'.*callable"),
        ("kernel", None, "kernel must be one of .*; got None"),
        ("kernel", 3, "kernel must be one of .*; got 3"),
        ("operations", ("old",), r"operations must contain 'new', got \('old',\)"),
        ("operations", (), r"operations must contain 'new', got \(\)"),
        ("operations", ("new", "grow"), "operations must be one of 'new', 'old', 'optimize'; got 'grow'"),
        ("operations", "grow", "operations must be one of 'new', 'old', 'optimize'; got 'grow'"),
        ("operations", None, "operations must .*None"),
        ("operations", 3, "operations must .*3"),
        ("class_weight", "even", "class_weight.*'even'"),
        ("class_weight", {0: -1.0}, r"class_weight must not be negative or infinite, got {0: -1.0}"),
        ("class_weight", {0: np.inf}, r"class_weight must not be negative or infinite, got {0: inf}"),
        ("random_state", "lucky", "'lucky' cannot be used to seed"),
    ],
)
def test_a_bad_parameter_is_named_with_its_value_and_what_would_do(name, value, message, call):
    with pytest.raises(ValueError, match=message):
        getattr(larank(**{name: value}), call)(X, y)


@pytest.mark.parametrize("gamma", [0, -1.0, "big"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_bad_gamma_is_refused_by_every_kernel(kernel, gamma):
    with pytest.raises(ValueError, match=re.escape(f"{GAMMA} {gamma!r}")):
        larank(kernel, gamma=gamma).fit(examples(kernel), y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tol": 0.1}, "tol acts with stop='gap' only; got tol=0.1 with stop='epochs'"),
        ({"stop": "gap", "epochs": 2}, "epochs acts with stop='epochs' only; got epochs=2 with stop='gap'"),
        ({"stop": "gap", "certify": False}, "certify=False acts with stop='epochs' only"),
        ({"n_reprocess": 3}, "n_reprocess acts with schedule='fixed' only; got n_reprocess=3"),
        *[({"stop": "gap", "tol": tol}, f"tol {NUMBER} {tol!r}") for tol in (0, -1e-3, np.nan, "tight")],
    ],
)
def test_parameters_that_cannot_act_together_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        larank(**parameters).fit(X, y)


def test_partial_fit_refuses_what_needs_the_whole_stream():
    with pytest.raises(ValueError, match=r"partial_fit makes one pass .*; stop must be 'epochs', got 'gap'"):
        larank(stop="gap").partial_fit(X, y)
    with pytest.raises(ValueError, match=r"class_weight='balanced' needs all examples at once; .* a dict or None"):
        larank(class_weight="balanced").partial_fit(X, y)


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), r"cost_matrix must have one row and column per class, shape \(3, 3\); got \(2, 3\)"),
        (np.ones((2, 2)), r"cost_matrix must have one row and column per class, shape \(3, 3\); got \(2, 2\)"),
        (np.ones((3, 3)), "cost_matrix must .* zeros on the diagonal"),
        (np.eye(3) - 1, "cost_matrix must hold finite numbers >= 0"),
        (np.where(np.eye(3), 0, np.nan), "cost_matrix must hold finite numbers >= 0"),
        ("high", "cost_matrix must .*'high'"),
    ],
)
def test_bad_cost_matrices_are_refused(matrix, message, call):
    with pytest.raises(ValueError, match=message):
        getattr(larank(cost_matrix=matrix), call)(X, y)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_memory_limit_that_is_too_small_is_told_the_minimum(kernel):
    with pytest.raises(ValueError, match=r"memory_limit must be at least \d+ bytes for .*, got 100$"):
        larank(kernel, memory_limit=100).fit(examples(kernel), y)


# Kernels


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((3, 7), 2.5, r"symmetric, got X\[3, 7\] = 2.5 and X\[7, 3\] ="),
        ((3, 3), -1.0, r"k\(x, x\) must be >= 0, got -1.0 for example 3"),
        ((3, 7), np.nan, "Input X contains NaN"),
        ((3, 7), np.inf, "Input X contains infinity"),
    ],
)
def test_a_matrix_that_is_no_kernel_is_refused(place, value, message):
    damaged = K / np.sqrt(np.outer(K.diagonal(), K.diagonal())) + 3 * (np.eye(30) + 1)
    damaged[place] = value
    with pytest.raises(ValueError, match=message):
        larank("precomputed").fit(damaged, y)


def test_a_matrix_that_is_not_positive_semi_definite_is_refused():
    damaged = K.copy()
    damaged[3, 7] = damaged[7, 3] = 1000.0
    for call in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=r"positive semi-definite, got .* = 1000.0 for examples (3 and 7|7 and 3)"):
            getattr(larank("precomputed"), call)(damaged, y)
    damaged[3, 7] = damaged[7, 3] = K[3, 7]
    damaged[5, 5] = 0.0  # a zero diagonal needs a zero row
    with pytest.raises(ValueError, match=r"positive semi-definite, got .* for examples"):
        larank("precomputed").fit(damaged, y)


def test_zeros_on_the_diagonal_are_legal_in_rows_of_zeros():
    gram = K.copy()
    gram[5], gram[:, 5] = 0, 0
    model = larank("precomputed", epochs=3).fit(gram, y)
    assert np.isfinite(model.dual_coef_.data).all()
    assert np.isfinite([model.result_.primal, model.result_.dual]).all()
    largest = model.dual_coef_[np.flatnonzero(model.support_ == 5)].max()
    assert largest == 1.0, "nothing holds its coefficient back but C"


def test_the_same_point_with_different_labels_is_legal():
    model = larank(C=2.0, stop="gap", tol=1e-4).fit(np.repeat(X[:5], 3, axis=0), np.tile([0, 1, 2], 5))
    assert model.result_.status == "converged"
    assert np.abs(model.decision_function(X)).max() < 0.05
    assert model.result_.dual == pytest.approx(15 * 2.0, rel=1e-3)


def test_the_matrix_of_a_precomputed_kernel_is_square_and_dense():
    with pytest.raises(ValueError, match=r"X must be a square matrix .*kernel='precomputed', got \(30, 20\)"):
        larank("precomputed").fit(K[:, :20], y)
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        larank("precomputed").fit(sparse.csr_matrix(K), y)


def test_parts_of_a_precomputed_stream_have_a_column_for_every_example_so_far():
    model = larank("precomputed").partial_fit(K[:10, :10], y[:10])
    with pytest.raises(ValueError, match=r"X must have a column for every example .* at least 20; got 10"):
        model.partial_fit(K[10:20, :10], y[10:20])
    model.partial_fit(K[10:20, :20], y[10:20])
    with pytest.raises(ValueError, match=r"X must have a column for every example .* at least 5; got 3"):
        larank("precomputed").partial_fit(K[:5, :3], y[:5])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            lambda A, B: np.ones((len(A), len(B) + 1)),
            r"kernel must return an array of shape \(\d+, \d+\) .*, got shape",
        ),
        (lambda A, B: np.ones(len(A)), r"kernel must return an array of shape \(\d+, \d+\) .*, got shape \(\d+,\)"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), r"finite numbers, got nan for examples \d+ and \d+"),
        (
            lambda A, B: np.where(A[:, :1] == X[7, 0], np.inf, A @ B.T),
            r"finite numbers, got inf for examples 7 and \d+",
        ),
        (lambda A, B: [["one"] * len(B)] * len(A), "kernel must return numbers, got list"),
        (lambda A, B: None, r"kernel must return .*"),
        (lambda A, B: A[:, :1] + 0 * B[:, 0], r"kernel must be symmetric, got .* for examples \d+ and \d+"),
    ],
)
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_a_kernel_that_returns_nonsense_is_named_with_the_examples(kernel, message, call):
    with pytest.raises(ValueError, match=message):
        getattr(larank(kernel), call)(X, y)


def test_an_exception_in_a_kernel_comes_through():
    def broken(A, B):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        larank(broken).fit(X, y)


@pytest.mark.parametrize("kernel", ["chi2", "intersection"])
def test_kernels_of_histograms_refuse_negative_features(kernel):
    with pytest.raises(ValueError, match=f"kernel='{kernel}' needs features >= 0; example .* has -"):
        larank(kernel).fit(X, y)


@pytest.mark.parametrize("kernel", ["chi2", "intersection", "laplacian"])
def test_kernels_that_compare_features_refuse_sparse_data(kernel):
    with pytest.raises(ValueError, match=rf"kernel='{kernel}' needs a dense X.*toarray"):
        larank(kernel).fit(sparse.csr_matrix(np.abs(X)), y)


def test_values_too_large_for_their_precision_are_named():
    with pytest.raises(ValueError, match=r"kernel='poly': k\(x, x\) of example \d+ is .* too large for float32"):
        larank("poly", degree=30, gamma=100.0).fit(X.astype(np.float32), y)


# Examples


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(kernel, value):
    damaged = examples(kernel).copy()
    damaged[3, 2] = value
    for call in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            getattr(larank(kernel), call)(damaged, y)
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        larank(kernel).fit(examples(kernel), y).predict(damaged)


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_no_examples_and_no_features_are_refused(layout, call):
    with pytest.raises(ValueError, match=r"0 sample\(s\).*minimum of 1"):
        getattr(larank(), call)(layout(X[:0]), y[:0])
    with pytest.raises(ValueError, match=r"0 feature\(s\).*minimum of 1"):
        getattr(larank(), call)(layout(X[:, :0]), y)


def test_what_is_no_matrix_of_numbers_is_refused():
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        larank().fit(X[:, 0], y)
    with pytest.raises(ValueError, match="could not convert string to float: 'red'"):
        larank().fit([["red"], ["green"]], [0, 1])
    with pytest.raises(ValueError, match="Complex data not supported"):
        larank().fit(X + 1j, y)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_malformed_csr_matrix_is_refused_and_not_read(kernel):
    for spoil in ("column", "order", "begin", "rows", "values"):
        bad = sparse.csr_matrix(X)
        if spoil == "column":
            bad.indices[5] = 1000
        elif spoil == "order":
            bad.indptr[5] = 100
        elif spoil == "begin":
            bad.indptr[0] = -2_000_000_000
        elif spoil == "rows":
            bad.indptr = np.concatenate([bad.indptr, np.full(1000, bad.indptr[-1], dtype=bad.indptr.dtype)])
        else:
            bad.data = bad.data[:3].copy()
        for call in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match=r"X must have (column indices|an indptr)|data"):
                getattr(larank(kernel), call)(bad, y)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_repeated_features_of_a_row_are_summed_and_the_callers_matrix_kept(kernel):
    columns = np.tile(np.repeat(np.arange(4)[::-1], 2), 30).astype(np.int32)
    values = np.repeat(X[:, ::-1], 2, axis=1).ravel() / 2
    halves = sparse.csr_matrix((values, columns, np.arange(31, dtype=np.int32) * 8), shape=X.shape)
    plain = larank(kernel).fit(sparse.csr_matrix(X), y)
    model = larank(kernel).fit(halves, y)
    np.testing.assert_array_equal(model.support_, plain.support_)
    np.testing.assert_allclose(model.dual_coef_.data, plain.dual_coef_.data)
    np.testing.assert_allclose(plain.decision_function(halves), plain.decision_function(X))
    np.testing.assert_array_equal(halves.data, values)


# Labels and weights


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_labels_that_do_not_fit_are_refused(kernel, call):
    train = getattr(larank(kernel), call)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[30, 5\]"):
        train(examples(kernel), y[:5])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        train(examples(kernel), X[:, 0])
    with pytest.raises(ValueError, match="Input y contains NaN"):
        train(examples(kernel), np.where(y == 0, np.nan, y))
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        train(examples(kernel), None)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        train(examples(kernel), np.column_stack([y, y]))


@pytest.mark.parametrize(("labels", "shown"), [(np.zeros(30, int), "0"), (["spam"] * 30, "'spam'")])
def test_one_class_is_refused_by_fit(labels, shown):
    with pytest.raises(ValueError, match=f"y must hold at least two classes, got one class: {shown}$"):
        larank().fit(X, labels)


def test_labels_keep_their_type_through_a_stream():
    model = larank().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y must hold labels of the same type as those of the calls before, int64"):
        model.partial_fit(X, np.array(["a", "b", "c"])[y])
    with pytest.raises(ValueError, match=r"y must hold labels of the same type as those in classes, <U1"):
        larank().partial_fit(X, y, classes=["a", "b"])
    assert model.partial_fit(X, y + 1.0).classes_.tolist() == [0, 1, 2, 3]


def strings(A, B):
    return np.array([[float(a == b) for b in B] for a in A])


def test_sequences_of_objects_are_checked_too():
    words = ["a", "b", "c"] * 10
    model = larank(strings)
    with pytest.raises(ValueError, match="X and y must be equally long, got 30 and 5"):
        model.fit(words, y[:5])
    with pytest.raises(ValueError, match="must hold at least one example, got none"):
        model.fit([], [])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        model.fit(words, X[:, 0])
    with pytest.raises(ValueError, match="sample_weight must have one entry per example, 30; got shape"):
        model.fit(words, y, sample_weight=np.ones(5))
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        model.fit(words, None)


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.r_[np.ones(7), -0.5, np.ones(22)], "sample_weight must be finite and not negative, got -0.5 for example 7"),
        (np.zeros(30), "(?i)sample.weight"),
        (np.ones(29), r"sample_weight.shape == \(29,\), expected \(30,\)"),
        (np.full(30, np.nan), "Input sample_weight contains NaN"),
        (np.full(30, np.inf), "Input sample_weight contains infinity"),
        (np.ones((30, 2)), "[Ss]ample.weight"),
    ],
)
def test_bad_weights_are_refused(weight, message, call):
    with pytest.raises(ValueError, match=message):
        getattr(larank(), call)(X, y, sample_weight=weight)


def test_class_weights_of_unknown_classes_or_that_leave_nothing_are_refused():
    with pytest.raises(ValueError, match="not in class_weight"):
        larank(class_weight={17: 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="leave no example with a weight above zero"):
        larank(class_weight={0: 0, 1: 0, 2: 0}).fit(X, y)


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        (X, r"validation must be a pair \(X, y\), got ndarray"),
        (3, r"validation must be a pair \(X, y\), got int"),
        ((X[:, :2], y), "X has 2 features, but LaRankClassifier is expecting 4"),
        ((X, y[:5]), "inconsistent numbers of samples"),
    ],
)
def test_bad_validation_examples_are_refused(validation, message):
    with pytest.raises(ValueError, match=message):
        larank().fit(X, y, validation=validation)


# Prediction


@pytest.mark.parametrize("method", ["predict", "decision_function"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_prediction_before_training_is_refused(method, kernel):
    with pytest.raises(NotFittedError, match="LaRankClassifier instance is not fitted yet"):
        getattr(larank(kernel), method)(X)


@pytest.mark.parametrize("method", ["predict", "decision_function", "partial_fit"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_another_number_of_features_is_refused(method, kernel):
    if (method, kernel) == ("partial_fit", "precomputed"):
        pytest.skip("columns are examples there")
    model = larank(kernel).fit(examples(kernel), y)
    for width in (model.n_features_in_ - 1, model.n_features_in_ + 1):
        arguments = (np.zeros((2, width)), [0, 1]) if method == "partial_fit" else (np.zeros((2, width)),)
        with pytest.raises(ValueError, match=f"X has {width} features, but LaRankClassifier is expecting"):
            getattr(model, method)(*arguments)


# What a failure leaves behind


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "bad",
    [
        {"y": np.zeros(30, int)},
        {"y": y[:5]},
        {"sample_weight": -np.ones(30)},
        {"cost_matrix": np.ones((2, 2))},
        {"gamma": -1.0},
        {"memory_limit": 100},
    ],
    ids=lambda bad: next(iter(bad)),
)
def test_a_failed_fit_leaves_the_model_before_it_usable(kernel, bad):
    model = larank(kernel).fit(examples(kernel), y)
    before = model.predict(examples(kernel))
    parameters = model.get_params()
    given_ = {"y": y, "sample_weight": None, **bad}
    model.set_params(**{name: value for name, value in bad.items() if name in parameters})
    with pytest.raises(ValueError, match=r"class|samples|weight|cost_matrix|gamma|memory_limit"):
        model.fit(examples(kernel), given_["y"], given_["sample_weight"])
    model.set_params(**parameters)
    np.testing.assert_array_equal(model.predict(examples(kernel)), before)


@pytest.mark.parametrize("bad", [{"sample_weight": -np.ones(30)}, {"cost_matrix": np.ones((9, 9))}, {"C": -1.0}])
def test_a_failed_partial_fit_changes_nothing(bad):
    for begun in (False, True):
        model = larank(gamma=0.5)
        if begun:
            model.partial_fit(X, y)
        model.set_params(**{name: value for name, value in bad.items() if name != "sample_weight"})
        with pytest.raises(ValueError, match=r"weight|cost_matrix|C must be"):
            model.partial_fit(X, 10 * y, sample_weight=bad.get("sample_weight"))
        model.set_params(cost_matrix=None, C=1.0)
        clean = larank(gamma=0.5)
        for one in (model, clean) if not begun else (model, clean.partial_fit(X, y)):
            one.partial_fit(X, y + 1)
        assert model.classes_.tolist() == clean.classes_.tolist() == ([0, 1, 2, 3] if begun else [1, 2, 3])
        np.testing.assert_array_equal(model.support_, clean.support_)
        np.testing.assert_array_equal(model.dual_coef_.data, clean.dual_coef_.data)
