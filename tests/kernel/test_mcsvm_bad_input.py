"""What a person may get wrong with MulticlassSVC is answered by an error that names it and says what would do."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from larank import MulticlassSVC
from larank.kernel.published import Published

X = np.random.default_rng(0).normal(size=(30, 4))
y = np.arange(30) % 3
K = X @ X.T
KERNELS = ("rbf", "linear", "poly", "precomputed")
CALLS = {"fit": lambda model, *data: model.fit(*data), "path": lambda model, X, y: model.path(X, y, [1.0, 2.0])}


def svc(kernel="rbf", **parameters):
    return MulticlassSVC(kernel, **{"random_state": 0, "n_jobs": 1, **parameters})


def examples(kernel):
    return K if kernel == "precomputed" else X


# Parameters

NUMBER = "must be a finite number > 0, got"
GAMMA = "gamma must be 'scale', 'auto' or a finite number > 0, got"
FLAG = "must be True or False, got"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *[("tol", value, f"tol {NUMBER} {value!r}") for value in (-1.0, 0, np.nan, np.inf, "1", None, True)],
        *[("memory_limit", value, f"memory_limit {NUMBER} {value!r}") for value in (0, -1, np.nan, "2GB", None)],
        *[("time_limit", value, f"time_limit {NUMBER} {value!r}") for value in (0, -1, "1h", np.inf)],
        *[("max_iter", value, f"max_iter must be an integer >= 1, got {value!r}") for value in (0, 1.5, "9", True)],
        *[("verbose", value, f"verbose must be an integer >= 0, got {value!r}") for value in (-1, "yes", None)],
        *[("shrinking", value, f"shrinking {FLAG} {value!r}") for value in ("no", 1, None)],
        *[("fit_intercept", value, f"fit_intercept {FLAG} {value!r}") for value in ("no", 1, None)],
        *[("gamma", value, f"{GAMMA} {value!r}") for value in (0, -1.0, np.nan, np.inf, "big", None)],
        *[("degree", value, f"degree must be an integer >= 1, got {value!r}") for value in (0, 1.5, "3")],
        *[("coef0", value, f"coef0 must be a finite number, got {value!r}") for value in (np.nan, np.inf, "0")],
        *[("n_jobs", n, f"n_jobs must be None or an integer other than 0, got {n!r}") for n in (0, 1.5, "a")],
        *[("init", value, f"init must be one of 'larank', 'zero'; got {value!r}") for value in ("random", None)],
        ("formulation", "one-vs-rest", "formulation must be one of 'crammer-singer', 'weston-watkins'; got 'one-vs-"),
        ("formulation", 2, "formulation must be one of 'crammer-singer', 'weston-watkins'; got 2"),
        ("kernel", "gauss", "kernel must be one of 'linear', 'rbf', .*'precomputed'; got 'gauss'.*callable"),
        ("kernel", None, "kernel must be one of .*; got None"),
        ("class_weight", "even", "class_weight.*'even'"),
        ("class_weight", {0: -1.0}, r"class_weight must not be negative or infinite, got {0: -1.0}"),
        ("class_weight", {0: np.inf}, r"class_weight must not be negative or infinite, got {0: inf}"),
        ("random_state", "lucky", "'lucky' cannot be used to seed"),
    ],
)
def test_a_bad_parameter_is_named_with_its_value_and_what_would_do(name, value, message, call):
    with pytest.raises(ValueError, match=message):
        call(svc(**{name: value}), X, y)


@pytest.mark.parametrize("C", [-1.0, 0, np.nan, np.inf, "1", None, True])
def test_a_bad_cost_is_named(C):
    with pytest.raises(ValueError, match=re.escape(f"C {NUMBER} {C!r}")):
        svc(C=C).fit(X, y)


@pytest.mark.parametrize("solver", ["smo", None, Published, 3])
def test_a_solver_that_is_none_is_named(solver):
    with pytest.raises(ValueError, match=r"solver must be one of 'active-set', 'published' or a Published\(...\), got"):
        svc(solver=solver).fit(X, y)


@pytest.mark.parametrize("solver", ["published", Published(epsilon=0.01)])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"init": "zero"}, "init acts with solver='active-set' only; got init='zero' with solver="),
        ({"shrinking": False}, "shrinking acts with solver='active-set' only; got shrinking=False with solver="),
        ({"tol": 0.1}, "tol acts with solver='active-set' only; got tol=0.1 with solver="),
        (
            {"formulation": "weston-watkins"},
            "formulation='weston-watkins' acts with solver='active-set' only; got .* with solver=",
        ),
    ],
)
def test_what_cannot_act_with_the_published_solver_is_refused(solver, parameters, message):
    with pytest.raises(ValueError, match=message):
        svc(solver=solver, **parameters).fit(X, y)


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ({"row_solver": "newton"}, "row_solver must be one of 'fixed-point', 'exact'; got 'newton'"),
        ({"selection": "random"}, "selection must be one of 'cycle', 'kkt'; got 'random'"),
        ({"cooling": "fast"}, "cooling must be one of 'none', 'exponential', 'linear', 'logarithmic'; got 'fast'"),
        ({"active_set": 1}, "active_set must be True or False, got 1"),
        ({"cache": "yes"}, "cache must be True or False, got 'yes'"),
        ({"epsilon": 0}, f"epsilon {NUMBER} 0"),
        ({"epsilon": np.nan}, f"epsilon {NUMBER} nan"),
        ({"selection": "cycle"}, "active_set must be False with selection='cycle'"),
        ({"active_set": False}, "cooling must be 'none' with active_set=False, got 'logarithmic'"),
        ({"epsilon": 1.0}, "epsilon must be below 0.999.*cooling='none' would do"),
    ],
)
def test_switches_of_the_published_solver_are_checked(switches, message):
    with pytest.raises(ValueError, match=message):
        svc(solver=Published(**switches)).fit(X, y)


@pytest.mark.parametrize("gamma", [0, -1.0, "big"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_bad_gamma_is_refused_by_every_kernel(kernel, gamma):
    with pytest.raises(ValueError, match=re.escape(f"{GAMMA} {gamma!r}")):
        svc(kernel, gamma=gamma).fit(examples(kernel), y)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
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
        call(svc(cost_matrix=matrix), X, y)


# Kernels


@pytest.mark.parametrize("solver", ["active-set", "published"])
@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((3, 7), 2.5, r"symmetric, got X\[3, 7\] = 2.5 and X\[7, 3\] ="),
        ((3, 3), -1.0, r"k\(x, x\) must be >= 0, got -1.0 for example 3"),
        ((3, 7), np.nan, "Input X contains NaN"),
        ((3, 7), np.inf, "Input X contains infinity"),
    ],
)
def test_a_matrix_that_is_no_kernel_is_refused(place, value, message, solver):
    damaged = K / np.sqrt(np.outer(K.diagonal(), K.diagonal())) + 3 * (np.eye(30) + 1)
    damaged[place] = value
    with pytest.raises(ValueError, match=message):
        svc("precomputed", solver=solver).fit(damaged, y)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_pair_that_no_kernel_has_is_named(fit_intercept):
    damaged = K.copy()
    damaged[3, 7] = damaged[7, 3] = 1000.0
    with pytest.raises(ValueError, match=r"positive semi-definite, got .* = 1000.0 for examples (3 and 7|7 and 3)"):
        svc("precomputed", fit_intercept=fit_intercept).fit(damaged, y)
    damaged[3, 7] = damaged[7, 3] = K[3, 7]
    damaged[5, 5] = 0.0  # a zero diagonal needs a zero row
    with pytest.raises(ValueError, match=r"positive semi-definite, got .* for examples"):
        svc("precomputed", fit_intercept=fit_intercept).fit(damaged, y)


def indefinite(n):
    """No two examples give it away."""
    S = np.random.default_rng(0).uniform(-1, 1, (n, n))
    S = (S + S.T) / 2
    np.fill_diagonal(S, 1.0)
    return S


@pytest.mark.parametrize("formulation", ["crammer-singer", "weston-watkins"])
@pytest.mark.parametrize("init", ["larank", "zero"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_that_is_not_positive_semi_definite_is_found_out(formulation, init, dtype):
    S, labels = indefinite(300).astype(dtype), np.arange(300) % 4
    with pytest.raises(ValueError, match="kernel must be positive semi-definite, got one that is not"):
        svc("precomputed", C=10.0, formulation=formulation, init=init).fit(S, labels)
    with pytest.raises(ValueError, match="kernel must be positive semi-definite, got one that is not"):
        svc("precomputed", formulation=formulation, init=init).path(S, labels, [1.0, 10.0])


def test_the_published_solver_finds_it_out_too():
    with pytest.raises(ValueError, match="kernel must be positive semi-definite, got one that is not"):
        svc("precomputed", C=10.0, solver="published").fit(indefinite(300), np.arange(300) % 4)


def test_a_sigmoid_that_is_no_kernel_warns():
    with pytest.warns(UserWarning, match="positive semi-definite.*the certificate proves nothing"):
        svc("sigmoid", gamma=2.0, coef0=-1.0, C=10.0).fit(np.tile(X, (5, 1)), np.tile(y, 5))


def test_zeros_on_the_diagonal_are_legal_in_rows_of_zeros():
    gram = K.copy()
    gram[5], gram[:, 5] = 0, 0
    model = svc("precomputed").fit(gram, y)
    assert np.isfinite([model.result_.primal, model.result_.dual]).all()
    largest = model.dual_coef_[np.flatnonzero(model.support_ == 5)].max()
    assert largest == 1.0, "nothing holds its coefficient back but C"


def test_the_matrix_of_a_precomputed_kernel_is_square_and_dense():
    with pytest.raises(ValueError, match=r"X must be a square matrix .*kernel='precomputed', got \(30, 20\)"):
        svc("precomputed").fit(K[:, :20], y)
    with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
        svc("precomputed").fit(sparse.csr_matrix(K), y)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("solver", ["active-set", "published"])
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            lambda A, B: np.ones((len(A), len(B) + 1)),
            r"kernel must return an array of shape \(\d+, \d+\) .*, got shape",
        ),
        (lambda A, B: np.ones(len(A)), r"kernel must return an array of shape \(\d+, \d+\) .*, got shape \(\d+,\)"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), r"finite numbers, got nan for examples \d+ and \d+"),
        (lambda A, B: np.where(A[:, :1] == X[7, 0], np.inf, A @ B.T), r"finite numbers, got inf for examples 7 and"),
        (lambda A, B: [["one"] * len(B)] * len(A), "kernel must return numbers, got list"),
        (lambda A, B: None, r"kernel must return .*"),
        (lambda A, B: A[:, :1] + 0 * B[:, 0], r"kernel must be symmetric, got .* for examples \d+ and \d+"),
        (lambda A, B: -A @ B.T - 1, r"kernel must have k\(x, x\) >= 0, got -"),
    ],
)
def test_a_kernel_that_returns_nonsense_is_named_with_the_examples(kernel, message, solver, fit_intercept):
    with pytest.raises(ValueError, match=message):
        svc(kernel, solver=solver, fit_intercept=fit_intercept).fit(X, y)


@pytest.mark.parametrize("kernel", ["chi2", "intersection"])
def test_kernels_of_histograms_refuse_negative_features(kernel):
    for fit_intercept in (False, True):
        with pytest.raises(ValueError, match=f"kernel='{kernel}' needs features >= 0; example .* has -"):
            svc(kernel, fit_intercept=fit_intercept).fit(X, y)
    with pytest.raises(ValueError, match=f"kernel='{kernel}' needs features >= 0; example .* has -"):
        svc(kernel).fit(np.abs(X), y).predict(X)


@pytest.mark.parametrize("kernel", ["chi2", "intersection", "laplacian"])
def test_kernels_that_compare_features_refuse_sparse_data(kernel):
    for fit_intercept in (False, True):
        with pytest.raises(ValueError, match=rf"kernel='{kernel}' needs a dense X.*toarray"):
            svc(kernel, fit_intercept=fit_intercept).fit(sparse.csr_matrix(np.abs(X)), y)


def test_values_too_large_for_their_precision_are_named():
    with pytest.raises(ValueError, match=r"kernel='poly': k\(x, x\) of example \d+ is .* too large for float32"):
        svc("poly", degree=30, gamma=100.0).fit(X.astype(np.float32), y)


# Examples


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(kernel, value):
    damaged = examples(kernel).copy()
    damaged[3, 2] = value
    for call in CALLS.values():
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            call(svc(kernel), damaged, y)
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        svc(kernel).fit(examples(kernel), y).predict(damaged)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_no_examples_and_no_features_are_refused(layout, call):
    with pytest.raises(ValueError, match=r"0 sample\(s\).*minimum of 1"):
        call(svc(), layout(X[:0]), y[:0])
    with pytest.raises(ValueError, match=r"0 feature\(s\).*minimum of 1"):
        call(svc(), layout(X[:, :0]), y)


def test_what_is_no_matrix_of_numbers_is_refused():
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        svc().fit(X[:, 0], y)
    with pytest.raises(ValueError, match="could not convert string to float: 'red'"):
        svc().fit([["red"], ["green"]], [0, 1])
    with pytest.raises(ValueError, match="Complex data not supported"):
        svc().fit(X + 1j, y)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("spoil", ["column", "order", "begin", "rows", "values"])
def test_a_malformed_csr_matrix_is_refused_and_not_read(kernel, spoil):
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
    with pytest.raises(ValueError, match=r"X must have (column indices|an indptr)|data"):
        svc(kernel).fit(bad, y)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_repeated_features_of_a_row_are_summed_and_the_callers_matrix_kept(kernel):
    columns = np.tile(np.repeat(np.arange(4)[::-1], 2), 30).astype(np.int32)
    values = np.repeat(X[:, ::-1], 2, axis=1).ravel() / 2
    halves = sparse.csr_matrix((values, columns, np.arange(31, dtype=np.int32) * 8), shape=X.shape)
    plain = svc(kernel, gamma=0.3, tol=1e-6).fit(sparse.csr_matrix(X), y)
    model = svc(kernel, gamma=0.3, tol=1e-6).fit(halves, y)
    assert model.result_.dual == pytest.approx(plain.result_.dual, rel=2e-6)
    np.testing.assert_allclose(plain.decision_function(halves), plain.decision_function(X), atol=1e-9)
    np.testing.assert_array_equal(halves.data, values)


# Labels and weights


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_labels_that_do_not_fit_are_refused(kernel, call):
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[30, 5\]"):
        call(svc(kernel), examples(kernel), y[:5])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        call(svc(kernel), examples(kernel), X[:, 0])
    with pytest.raises(ValueError, match="Input y contains NaN"):
        call(svc(kernel), examples(kernel), np.where(y == 0, np.nan, y))
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        call(svc(kernel), examples(kernel), None)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        call(svc(kernel), examples(kernel), np.column_stack([y, y]))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(("labels", "shown"), [(np.zeros(30, int), "0"), (["spam"] * 30, "'spam'")])
def test_one_class_is_refused(labels, shown, call):
    with pytest.raises(ValueError, match=f"y must hold at least two classes, got one class: {shown}$"):
        call(svc(), X, labels)


def strings(A, B):
    return np.array([[float(a == b) for b in B] for a in A])


def test_sequences_of_objects_are_checked_too():
    words = ["a", "b", "c"] * 10
    with pytest.raises(ValueError, match="X and y must be equally long, got 30 and 5"):
        svc(strings).fit(words, y[:5])
    with pytest.raises(ValueError, match="must hold at least one example, got none"):
        svc(strings).fit([], [])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        svc(strings).fit(words, X[:, 0])
    with pytest.raises(ValueError, match="sample_weight must have one entry per example, 30; got shape"):
        svc(strings).fit(words, y, sample_weight=np.ones(5))
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        svc(strings).fit(words, None)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.r_[np.ones(7), -0.5, np.ones(22)], "sample_weight must be finite and not negative, got -0.5 for example 7"),
        (np.zeros(30), "(?i)sample.weight"),
        (np.ones(29), r"sample_weight.shape == \(29,\), expected \(30,\)"),
        (np.full(30, np.nan), "Input sample_weight contains NaN"),
        (np.full(30, np.inf), "Input sample_weight contains infinity"),
        ((y == 1).astype(float), "must leave at least two classes with a weight above zero"),
    ],
)
def test_bad_weights_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        svc().fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match=message):
        svc().path(X, y, [1.0], sample_weight=weight)


def test_class_weights_must_leave_two_classes():
    with pytest.raises(ValueError, match="must leave at least two classes with a weight above zero"):
        svc(class_weight={0: 0.0, 1: 0.0}).fit(X, y)


# Prediction


def test_a_model_that_is_not_fitted_says_so():
    for call in ("predict", "decision_function"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(svc(), call)(X)


@pytest.mark.parametrize("kernel", KERNELS)
def test_examples_with_other_features_are_refused(kernel):
    model = svc(kernel).fit(examples(kernel), y)
    wanted = examples(kernel).shape[1]
    with pytest.raises(ValueError, match=f"X has 3 features, but MulticlassSVC is expecting {wanted} features"):
        model.predict(examples(kernel)[:, :3])


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = svc().fit(X, y)
    before = vars(model).copy()
    for bad in ((X, np.zeros(30)), (np.where(X > 1, np.nan, X), y), (X, y[:3])):
        with pytest.raises(ValueError, match=r"y must|NaN|inconsistent"):
            model.fit(*bad)
        assert vars(model).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(model).items())
