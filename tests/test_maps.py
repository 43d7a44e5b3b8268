"""Kernel maps: features whose inner products are the kernel's values, or as near as their certificate says."""

import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, KernelPCA
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import pairwise
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import larank
from checks import refuses
from larank import KernelPCAMap, LinearMulticlassSVC, LinearSGDClassifier, MemoryLimitError, PivotedCholeskyMap
from larank.data import data_directory
from studies import datasets

MAPS = [KernelPCAMap, PivotedCholeskyMap]
PARAMETERS = {"gamma": 0.2, "degree": 3, "coef0": 0.5}
VALUES = {
    "linear": lambda X, Z: X @ Z.T,
    "rbf": lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.2),
    "poly": lambda X, Z: pairwise.polynomial_kernel(X, Z, gamma=0.2, coef0=0.5, degree=3),
    "laplacian": lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=0.2),
    "chi2": lambda X, Z: pairwise.chi2_kernel(X, Z, gamma=0.2),
    "intersection": lambda X, Z: np.minimum(X[:, None], Z[None]).sum(axis=2),
}
FORMS = [(name, np.asarray) for name in VALUES] + [(name, sparse.csr_matrix) for name in ("linear", "rbf", "poly")]
every_map = pytest.mark.parametrize("kind", MAPS)


def examples(n=90, d=6, seed=0):
    random = np.random.default_rng(seed)
    X = random.random((n, d))
    X[random.random(X.shape) < 0.3] = 0
    return X


X = examples()
new = examples(40, seed=1)


def overlap(A, B):
    return np.array([[len(set(a) & set(b)) for b in B] for a in A], float)


# Features


@every_map
@pytest.mark.parametrize(("name", "form"), FORMS)
def test_with_all_components_inner_products_are_the_kernel(kind, name, form):
    model = kind(name, **PARAMETERS)
    Z = model.fit_transform(form(X))
    K, across = VALUES[name](X, X), VALUES[name](new, X)
    scale = np.abs(K).max()
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-10 * scale)
    np.testing.assert_allclose(model.transform(form(X)), Z, atol=1e-6 * np.sqrt(scale))
    np.testing.assert_allclose(model.transform(form(new)) @ Z.T, across, atol=1e-9 * scale)
    assert model.trace_error_ < 1e-10
    assert Z.shape == (90, model.n_components_)
    assert Z.dtype == np.float64


@every_map
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(kind, dtype):
    for form in (np.asarray, sparse.csr_matrix):
        model = kind(gamma=0.2, n_components=30, random_state=0)
        Z = model.fit_transform(form(X.astype(dtype)))
        again = model.transform(form(X.astype(dtype)))
        assert Z.dtype == again.dtype == model.transform(new).dtype == dtype
        np.testing.assert_allclose(Z, again, atol=2e-4 if dtype == np.float32 else 1e-9)
        assert model.trace_error_ == pytest.approx(1 - (Z.astype(float) ** 2).sum() / 90, abs=1e-5)


@every_map
def test_precomputed_values_and_functions_make_the_features_of_the_kernel(kind):
    options = {"n_components": 25, "random_state": 0}
    K, across = VALUES["rbf"](X, X), VALUES["rbf"](new, X)
    K = (K + K.T) / 2
    by_name = kind("rbf", gamma=0.2, **options)
    by_values = kind("precomputed", **options)
    by_call = kind(VALUES["rbf"], **options)
    Z = by_name.fit_transform(X)
    np.testing.assert_allclose(by_values.fit_transform(K), Z, atol=1e-9)
    np.testing.assert_allclose(by_call.fit_transform(X), Z, atol=1e-9)
    for model, given in ((by_name, new), (by_values, across), (by_call, new)):
        np.testing.assert_allclose(model.transform(given), by_name.transform(new), atol=1e-9)
    np.testing.assert_array_equal(by_values.components_, getattr(by_name, "pivots_", np.arange(90)))
    assert not hasattr(by_values, "gamma_")
    assert by_name.gamma_ == 0.2


@every_map
@pytest.mark.parametrize("kind_of_sequence", [list, tuple, np.array, lambda some: np.array(some, dtype=object)])
def test_a_function_takes_objects(kind, kind_of_sequence):
    words = ["ant", "bee", "cat", "tacs", "ox", "taco", "bee"] * 5
    model = kind(overlap)
    Z = model.fit_transform(kind_of_sequence(words))
    np.testing.assert_allclose(Z @ Z.T, overlap(words, words), atol=1e-9)
    np.testing.assert_allclose(model.transform(["act", "be"]) @ Z.T, overlap(["act", "be"], words), atol=1e-9)
    assert set(model.components_) <= set(words)
    refuses("must hold at least one example, got none", kind(overlap).fit, [])


@every_map
def test_dense_and_sparse_examples_may_follow_each_other(kind):
    for first, then in ((np.asarray, sparse.csr_matrix), (sparse.csr_matrix, np.asarray)):
        model = kind(gamma=0.2, n_components=30, random_state=0).fit(first(X))
        np.testing.assert_allclose(model.transform(then(new)), model.transform(first(new)), atol=1e-9)
        assert sparse.issparse(model.components_) == (first is not np.asarray)


@every_map
def test_fitted_attributes_do_not_change_with_the_array_that_was_given(kind):
    given = X.copy()
    model = kind(gamma=0.2).fit(given)
    before = model.transform(new)
    given[:] = 0
    np.testing.assert_array_equal(model.transform(new), before)


@every_map
def test_threads_do_not_change_the_features_by_a_bit(kind):
    some = examples(1200)
    one, two = (kind(n_components=50, random_state=0, n_jobs=jobs).fit_transform(some) for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


# Pivots


def test_the_factor_turns_kernel_values_into_features():
    model = PivotedCholeskyMap(gamma=0.2, n_components=40, random_state=0).fit(X)
    np.testing.assert_array_equal(model.components_, X[model.pivots_])
    K = VALUES["rbf"](model.components_, model.components_)
    np.testing.assert_allclose(model.cholesky_ @ model.cholesky_.T, K, atol=1e-12)
    np.testing.assert_allclose(model.factor_.T @ K @ model.factor_, np.eye(40), atol=1e-7)
    np.testing.assert_allclose(VALUES["rbf"](new, model.components_) @ model.factor_, model.transform(new), atol=1e-8)


@pytest.mark.parametrize("pivots", ["random", "greedy"])
def test_a_tolerance_or_a_number_ends_it_whichever_comes_first(pivots):
    loose = PivotedCholeskyMap(gamma=0.2, tol=0.1, pivots=pivots, random_state=0).fit(X)
    assert loose.trace_error_ <= 0.1
    few = PivotedCholeskyMap(gamma=0.2, tol=0.1, n_components=3, pivots=pivots, random_state=0).fit(X)
    assert few.n_components_ == 3
    assert few.trace_error_ > 0.1
    both = PivotedCholeskyMap(gamma=0.2, tol=0.1, n_components=80, pivots=pivots, random_state=0)
    Z = both.fit_transform(X)
    assert Z.shape[1] == both.n_components_ == loose.n_components_ < 80
    assert both.trace_errors_[-1] == both.trace_error_


def test_fewer_features_than_asked_for_where_the_rank_is_lower():
    low = examples(50, 2) @ examples(2, 8)
    model = PivotedCholeskyMap("linear", n_components=20)
    Z = model.fit_transform(low)
    assert Z.shape == (50, 2)
    assert Z.flags.c_contiguous
    assert model.get_feature_names_out().tolist() == ["pivotedcholeskymap0", "pivotedcholeskymap1"]
    np.testing.assert_allclose(Z @ Z.T, low @ low.T, atol=1e-10)
    assert PivotedCholeskyMap("linear").fit(np.zeros((5, 2))).factor_.tolist() == [[0.0]]


# Eigenvectors


def test_a_subset_basis_is_nystroems_method():
    model = KernelPCAMap(gamma=0.2, basis_size=25, random_state=3).fit(X)
    rival = Nystroem(gamma=0.2, n_components=25).fit(X[model.basis_])
    for some in (X, new):
        Z, theirs = model.transform(some), rival.transform(some)
        np.testing.assert_allclose(Z @ Z.T, theirs @ theirs.T, atol=1e-8)
    assert model.trace_error_ == pytest.approx(1 - (rival.transform(X) ** 2).sum() / 90, abs=1e-8)
    np.testing.assert_array_equal(model.components_, X[model.basis_])


def test_no_map_of_as_many_features_leaves_less_than_the_leading_eigenvectors():
    errors = {
        size: KernelPCAMap(gamma=0.2, n_components=10, basis_size=size, random_state=0).fit(X).trace_error_
        for size in (None, 30, 10)
    }
    values = np.linalg.eigvalsh(VALUES["rbf"](X, X))
    assert errors[None] == pytest.approx(values[:-10].sum() / 90, abs=1e-10)
    assert errors[None] < errors[30] < errors[10]
    assert errors[None] < PivotedCholeskyMap(gamma=0.2, n_components=10, pivots="greedy").fit(X).trace_error_


def test_a_basis_of_pivots_spans_what_the_pivots_do():
    cholesky = PivotedCholeskyMap(gamma=0.2, n_components=20, random_state=0).fit(X)
    pca = KernelPCAMap(gamma=0.2).fit(cholesky.components_)
    one, other = cholesky.transform(new), pca.transform(new)
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-8)


# Wrong input


AT_MOST = "must be at most the number of examples"
TOO_MANY = f"n_components {AT_MOST}"
REFUSED = [
    (KernelPCAMap(n_components=91), ValueError, f"{TOO_MANY}.*90; got 91"),
    (PivotedCholeskyMap(n_components=91), ValueError, f"{TOO_MANY}.*90; got 91"),
    (KernelPCAMap(basis_size=91), ValueError, f"basis_size {AT_MOST}, n_samples=90; got 91"),
    (KernelPCAMap(basis_size=20, n_components=30), ValueError, f"{TOO_MANY} that make them, 20; got 30"),
    (
        PivotedCholeskyMap(n_components=50, memory_limit=9000),
        MemoryLimitError,
        r"memory_limit must be at least 36000 bytes .*n_components=1[23] or fitting",
    ),
    (
        KernelPCAMap(memory_limit=10_000),
        MemoryLimitError,
        r"memory_limit must be at least 129600 bytes .*; KernelPCAMap\(basis_size=25\) would do",
    ),
    (
        KernelPCAMap(memory_limit=10_000, n_components=30),
        MemoryLimitError,
        r"KernelPCAMap\(basis_size=25\) with n_components=25 would do",
    ),
    (
        PivotedCholeskyMap(tol=1e-3, memory_limit=9000),
        MemoryLimitError,
        r"n_components=\d+ or a larger tol or fitting",
    ),
    # Not enough for a single column
    (PivotedCholeskyMap(tol=1e-3, memory_limit=10), MemoryLimitError, "got 10$"),
]


@pytest.mark.parametrize(("model", "error", "message"), REFUSED)
def test_too_many_features_and_too_little_memory_are_refused(model, error, message):
    refuses(message, model.fit, X, error=error)


# Memory


def test_what_is_told_to_be_enough_memory_is_enough():
    KernelPCAMap(memory_limit=10_000, basis_size=25).fit(X)
    sample = PivotedCholeskyMap(n_components=50, memory_limit=9000 * 5, random_state=0).fit(X)
    assert sample.transform(np.repeat(X, 9, axis=0)).shape == (810, 50), "transform takes any number of examples"


def peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


TILES = 3e6  # two threads, with 512 rows and 128 columns, and a few vectors of n


@pytest.mark.parametrize(("given", "spare"), [({"n_components": 128}, 0), ({"tol": 0.2}, 32)])
def test_fitting_takes_the_memory_of_its_columns_and_tiles(monkeypatch, given, spare):
    if spare:
        monkeypatch.setattr(PivotedCholeskyMap, "_BLOCK_SIZE", spare)
    some = np.random.default_rng(0).normal(size=(20_000, 10)).astype(np.float32)
    model = PivotedCholeskyMap(gamma=0.02, random_state=0, n_jobs=2, **given)
    for fit in (model.fit, model.fit_transform):
        used = peak(lambda fit=fit: fit(some))
        assert used < 20_000 * 4 * (model.n_components_ + spare) + TILES
    assert peak(lambda: model.transform(some)) < 20_000 * 4 * model.n_components_ + TILES


@pytest.mark.parametrize("n_components", [None, 50])
def test_eigenvectors_take_no_more_memory_than_the_limit_they_are_held_against(n_components):
    some = np.random.default_rng(0).normal(size=(1000, 10))
    model = KernelPCAMap(gamma=10.0, n_components=n_components, random_state=0, n_jobs=1)
    needed = 8 * 1000 * (1000 + (n_components or 1000))
    for fit in (model.fit, model.fit_transform):
        assert peak(lambda fit=fit: fit(some)) < needed + 2 * TILES
    with pytest.raises(MemoryLimitError, match=f"at least {needed} bytes"):
        clone(model).set_params(memory_limit=needed - 1).fit(some)


def test_transforming_takes_the_memory_of_its_result_and_tiles():
    some = np.random.default_rng(0).normal(size=(20_000, 10)).astype(np.float32)
    model = KernelPCAMap(gamma=0.02, basis_size=200, n_components=50, random_state=0, n_jobs=2).fit(some[:2000])
    assert peak(lambda: model.transform(some)) < 20_000 * 4 * 50 + TILES
    assert peak(lambda: model.fit(some)) < TILES


# With others


@every_map
def test_a_pipeline_with_a_linear_classifier_is_near_to_the_kernel_machine(kind, tmp_path):
    digits, labels = load_digits(return_X_y=True)
    digits = (digits / 16).astype(np.float32)
    train, test = slice(0, 1200), slice(1200, None)
    exact = larank.MulticlassSVC(gamma=0.1, C=10.0).fit(digits[train], labels[train])
    model = make_pipeline(kind(gamma=0.1, n_components=400, random_state=0), LinearMulticlassSVC(C=10.0))
    model.fit(digits[train], labels[train])
    assert model.score(digits[test], labels[test]) > exact.score(digits[test], labels[test]) - 0.01
    larank.save(model[0], tmp_path / "map.larank")
    loaded = larank.load(tmp_path / "map.larank")
    np.testing.assert_array_equal(loaded.transform(digits[test]), model[0].transform(digits[test]))


def test_a_search_goes_through_kernels_and_ranks():
    digits, labels = load_digits(n_class=3, return_X_y=True)
    digits /= 16
    pipeline = make_pipeline(PivotedCholeskyMap(random_state=0), LinearMulticlassSVC())
    values = {"pivotedcholeskymap__n_components": [5, 100], "pivotedcholeskymap__kernel": ["linear", "rbf"]}
    search = GridSearchCV(pipeline, values, cv=3).fit(digits, labels)
    assert search.best_score_ > 0.98
    by_values = GridSearchCV(
        make_pipeline(PivotedCholeskyMap("precomputed"), LinearMulticlassSVC()),
        {"pivotedcholeskymap__n_components": [5, 100]},
        cv=3,
    ).fit(pairwise.rbf_kernel(digits, gamma=0.3), labels)
    assert by_values.best_score_ > 0.98


def test_a_map_of_a_sample_goes_beyond_memory_with_blocks():
    digits, labels = load_digits(return_X_y=True)
    sample = PivotedCholeskyMap(n_components=200, random_state=0).fit(digits[:600])
    model = LinearSGDClassifier(random_state=0, alpha=1e-5)
    for rows in np.split(np.arange(1200), 6):
        model.partial_fit(sample.transform(digits[rows]), labels[rows], classes=np.unique(labels))
    assert model.score(sample.transform(digits[1200:]), labels[1200:]) > 0.85


@pytest.mark.skipif(not datasets.is_available("mnist"), reason="needs mnist, which is not in the data folder")
def test_rank_1000_of_mnist_in_single_precision_is_no_trouble():
    X = np.load(data_directory() / "mnist" / "mnist.npz")["X_train"][:3000].astype(np.float32) / 255
    for gamma in (1e-4, 0.0134, 0.03):
        for pivots in ("random", "greedy"):
            model = PivotedCholeskyMap(gamma=gamma, n_components=1000, pivots=pivots, random_state=0)
            Z = model.fit_transform(X).astype(np.float64)
            assert abs(1 - (Z**2).sum() / 3000 - model.trace_error_) < 1e-5


def test_a_matrix_that_went_through_float32_has_a_map():
    rows = 3 * np.random.default_rng(0).uniform(size=(80, 5))
    rounded = (rows @ rows.T).astype(np.float32).astype(np.float64)
    cholesky = [PivotedCholeskyMap("precomputed", random_state=seed) for seed in range(60)]
    for one in (KernelPCAMap("precomputed"), *cholesky):
        features = one.fit_transform((rounded + rounded.T) / 2)
        np.testing.assert_allclose(features @ features.T, rows @ rows.T, atol=1e-3)


@pytest.mark.parametrize("pivots", ["random", "greedy"])
def test_where_pivots_are_rounding_a_map_ends_and_says_what_it_leaves(pivots):
    some = np.random.default_rng(0).normal(size=(1500, 2)).astype(np.float32)
    model = PivotedCholeskyMap(gamma=10.0, pivots=pivots, random_state=0).fit(some)
    assert 0 < model.trace_error_ < 2e-3
    features = model.transform(some).astype(np.float64)
    left = 1 - np.einsum("ij,ij->i", features, features)
    assert left.mean() == pytest.approx(model.trace_error_, abs=1e-4)
    np.testing.assert_allclose(features @ features.T, pairwise.rbf_kernel(some, gamma=10.0), atol=0.02)


def test_examples_whose_kernel_values_vanish_are_no_pivots():
    some = np.random.RandomState(0).randn(60, 4)
    some[30] *= 1e-35
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        features = PivotedCholeskyMap("poly", random_state=0).fit(some.astype(np.float32)).transform(some)
    assert np.isfinite(features).all()


def test_kernel_pca_does_not_centre_and_says_so():
    features = KernelPCAMap(gamma=0.2).fit_transform(X)
    assert np.abs(features.mean(axis=0)).max() > 0.1
    theirs = KernelPCA(n_components=3, kernel="rbf", gamma=0.2).fit_transform(X)
    centred = PCA(n_components=3).fit_transform(features)
    np.testing.assert_allclose(np.abs(centred), np.abs(theirs), atol=1e-9)
    page = Path(__file__).parents[1] / "docs" / "maps.md"
    for told in (page.read_text(encoding="utf-8"), KernelPCAMap.__doc__):
        assert "does not centre" in told
