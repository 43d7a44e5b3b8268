"""LaRankClassifier: one stream makes one model, it is feasible, its certificate true and its optimum the SVM's."""

import doctest
import itertools
import pickle
import re
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import estimator_checks_generator

from larank import LaRankClassifier, _core
from larank.data import models
from larank.training import TrainingWarning
from reference import kernel_certificate, kernel_optimum

iris, iris_labels = load_iris(return_X_y=True)
iris = (iris - iris.mean(axis=0)) / iris.std(axis=0)
names = np.array(["setosa", "versicolor", "virginica"])


def larank(kernel="rbf", **parameters):
    return LaRankClassifier(kernel, **{"random_state": 0, "n_jobs": 1, **parameters})


def data(n, k, seed=0, dimensions=4):
    """Examples of k overlapping classes, some of them twice with different labels, some of them zero."""
    random = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), random.integers(0, k, max(0, n - k))])[:n]
    X = random.normal(size=(k, dimensions))[y] + random.normal(size=(n, dimensions))
    X[random.random(n) < 0.1] = X[0]
    X[random.random(n) < 0.05] = 0
    order = random.permutation(n)
    return X[order], y[order]


def rbf(X, Z=None, gamma=0.3):
    Z = X if Z is None else Z
    return np.exp(-gamma * ((X[:, None] - Z[None]) ** 2).sum(axis=-1))


def assert_same_model(one, other):
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_array_equal(one.support_, other.support_)
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(one.dual_coef_, part), getattr(other.dual_coef_, part))


def coefficients(model, n):
    beta = np.zeros((n, len(model.classes_)))
    beta[model.support_] = model.dual_coef_.toarray()
    return beta


def assert_feasible(model, y, costs):
    """`costs` per example, or one for all."""
    beta, costs = model.dual_coef_.toarray(), np.broadcast_to(costs, np.shape(y))[model.support_]
    np.testing.assert_array_equal(model.support_costs_, costs)
    own = model.classes_ == np.asarray(y)[model.support_][:, None]
    assert len(np.unique(model.support_)) == len(model.support_)
    assert (beta[own] > 0).all(), "a pattern whose coefficients vanish leaves"
    assert (beta[own] <= costs).all()
    assert (beta[~own] <= 0).all()
    assert (np.abs(beta.sum(axis=1)) <= 1e-14 * costs).all()
    assert (model.dual_coef_.data != 0).all()


# One stream, one model

K, K_labels = (lambda X, y: (rbf(X), y))(*data(300, 4, dimensions=3))


def streamed(K, y, cuts, columns=None, **parameters):
    """A model of a stream cut at these places; `columns` says how many of them a call is given."""
    model = larank("precomputed", **parameters)
    for first, last in itertools.pairwise([0, *cuts, len(y)]):
        model.partial_fit(K[first:last, : columns and columns(last)], y[first:last])
    return model


@pytest.fixture(scope="module")
def plain():
    return larank("precomputed", shuffle=False).fit(K, K_labels)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("size", [1, 4, 16, 64, 256])
def test_the_size_of_batches_does_not_change_the_model(plain, size, jobs):
    assert_same_model(larank("precomputed", shuffle=False, batch_size=size, n_jobs=jobs).fit(K, K_labels), plain)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("cuts", [[], [1], [299], [100, 200], [3, 4, 5, 130, 299], list(range(10, 300, 10))])
def test_a_stream_in_parts_makes_the_same_model(plain, cuts, jobs):
    assert_same_model(streamed(K, K_labels, cuts, n_jobs=jobs), plain)


def test_a_part_needs_columns_for_the_examples_so_far_only(plain):
    assert_same_model(streamed(K, K_labels, [64, 150, 151], columns=lambda last: last), plain)


@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("schedule", ["adaptive", "fixed"])
def test_shuffled_epochs_do_not_depend_on_the_size_of_batches_either(dtype, schedule, epochs):
    models = [
        larank("precomputed", schedule=schedule, epochs=epochs, batch_size=size, n_jobs=jobs, C=0.5).fit(
            K.astype(dtype), K_labels
        )
        for size, jobs in ((1, 1), (7, 2), (64, 1), (256, 2))
    ]
    for model in models[1:]:
        assert_same_model(model, models[0])
        assert model.result_.dual == pytest.approx(models[0].result_.dual, rel=1e-12)


@settings(max_examples=40)
@given(
    n=st.integers(2, 80),
    k=st.integers(2, 6),
    seed=st.integers(0, 10**6),
    size=st.sampled_from([1, 4, 16, 64, 256]),
    jobs=st.sampled_from([1, 2]),
    cuts=st.lists(st.integers(1, 79), max_size=4, unique=True),
    ordered=st.booleans(),
)
def test_any_split_makes_the_same_model_also_with_classes_that_come_late(n, k, seed, size, jobs, cuts, ordered):
    X, y = data(n, min(n, k), seed, dimensions=2)
    if ordered:  # each class begins where the one before ends
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    y = np.array(["d", "a", "e", "b", "f", "c"])[y]
    gram = X @ X.T
    whole = larank("precomputed", shuffle=False).fit(gram, y)
    parts = streamed(gram, y, sorted(cut for cut in cuts if cut < n), batch_size=size, n_jobs=jobs)
    assert_same_model(parts, whole)
    assert_feasible(parts, y, 1.0)


def tight_limit(K, y, **parameters):
    """Bytes with which training just works: the errors say how many are needed so far."""
    limit = 1000
    while True:
        try:
            larank("precomputed", memory_limit=limit, **parameters).fit(K, y)
        except ValueError as error:
            said, got = re.search(r"memory_limit must be at least (\d+) bytes .*, got (\d+)", str(error)).groups()
            if int(got) != limit or int(said) <= limit:
                raise
            limit = int(1.1 * int(said))
        else:
            return limit


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("size", [1, 16, 256])
def test_a_tiny_memory_limit_does_not_change_the_model(size, jobs):
    k, y = K[:120, :120], K_labels[:120]
    parameters = {"shuffle": False, "batch_size": size, "n_jobs": jobs}
    free = larank("precomputed", **parameters).fit(k, y)
    limit = tight_limit(k, y, **parameters)
    for model in (
        larank("precomputed", memory_limit=limit, **parameters).fit(k, y),
        streamed(k, y, [50, 51], memory_limit=2 * limit, batch_size=size, n_jobs=jobs),
    ):
        assert_same_model(model, free)
    again = larank("precomputed", memory_limit=limit, **parameters).fit(k, y)
    rows = (again.result_.kernel_values - free.result_.kernel_values) / len(free.support_)
    assert rows > 20, "rows of kernel values were computed again"


def test_fit_and_partial_fit_agree_on_features_too():
    X, y = data(200, 3)
    for kernel in ("rbf", "linear"):
        whole = larank(kernel, shuffle=False, gamma=0.3, batch_size=200).fit(X, y)
        part = larank(kernel, gamma=0.3, batch_size=200).partial_fit(X, y)
        assert_same_model(whole, part)
        np.testing.assert_array_equal(whole.decision_function(X), part.decision_function(X))


def test_the_seed_decides():
    one, same, other = (larank(random_state=seed).fit(iris, iris_labels) for seed in (1, 1, 2))
    assert_same_model(one, same)
    assert one.support_.tolist() != other.support_.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_instruction_sets_do_not_change_the_model(dtype):
    before = _core.simd_level()
    models = []
    try:
        for level in _core.simd_levels():
            _core.set_simd_level(level)
            models.append(larank("precomputed", epochs=2).fit(K.astype(dtype), K_labels))
    finally:
        _core.set_simd_level(before)
    for model in models[1:]:
        assert_same_model(model, models[0])


# Certificates


@settings(max_examples=40)
@given(
    n=st.integers(2, 70),
    k=st.integers(2, 6),
    seed=st.integers(0, 10**6),
    C=st.sampled_from([0.01, 1.0, 30.0]),
    epochs=st.sampled_from([1, 4]),
    schedule=st.sampled_from(["adaptive", "fixed"]),
    weighted=st.booleans(),
    margins=st.booleans(),
)
def test_the_certificate_is_what_the_formulas_say(n, k, seed, C, epochs, schedule, weighted, margins):
    k = min(n, k)
    X, y = data(n, k, seed, dimensions=3)
    random = np.random.default_rng(seed)
    weight = random.choice([0, 0.5, 1, 3], n) if weighted else np.ones(n)
    weight[0] = 1
    weight[np.flatnonzero(y != y[0])[0]] = 1  # two classes at least
    delta = random.choice([0.5, 1, 2.5], (k, k)) * (1 - np.eye(k)) if margins else 1 - np.eye(k)
    gram = rbf(X)
    model = larank("precomputed", C=C, epochs=epochs, schedule=schedule, cost_matrix=delta if margins else None)
    model.fit(gram, y, weight)
    assert_feasible(model, y, C * weight)
    result = model.result_
    beta = coefficients(model, n)
    present = np.isin(np.arange(k), y[weight > 0])  # the other classes have no part in the problem
    primal, dual, violation = kernel_certificate(beta, gram, y, C * weight, delta)
    if present.all():
        assert result.primal == pytest.approx(primal, rel=1e-9, abs=1e-12)
        assert result.violation == pytest.approx(violation, abs=1e-9)
    assert result.dual == pytest.approx(dual, rel=1e-9, abs=1e-12)
    assert result.exact
    assert result.status == "completed"
    assert result.iterations == epochs
    assert result.support_patterns == len(model.support_)
    assert result.support_vectors == model.dual_coef_.nnz
    duals = [point.dual for point in result.history]
    assert (np.diff(duals) >= -1e-9 * max(duals)).all()
    for point in result.history:
        assert point.gap >= (-1e-9 * point.primal if point.exact else 0)
        assert point.primal >= result.dual * (1 - 1e-9) or not point.exact


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_certificate_of_kernels_computed_here_is_true_too(kernel, dtype):
    X, y = data(250, 4)
    X = X.astype(dtype)
    model = larank(kernel, gamma=0.3, epochs=2, C=2.0).fit(X, y)
    wide = X.astype(float)
    gram = rbf(wide) if kernel == "rbf" else wide @ wide.T
    primal, dual, violation = kernel_certificate(coefficients(model, 250), gram, y, np.full(250, 2.0), 1 - np.eye(4))
    close = 1e-4 if dtype == np.float32 else 1e-9
    assert model.result_.primal == pytest.approx(primal, rel=close)
    assert model.result_.dual == pytest.approx(dual, rel=close)
    assert model.result_.violation == pytest.approx(violation, abs=10 * close)


def test_without_a_certificate_the_result_says_so():
    exact, estimate = larank().fit(iris, iris_labels), larank(certify=False).fit(iris, iris_labels)
    assert_same_model(exact, estimate)
    assert exact.result_.exact
    assert not estimate.result_.exact
    assert not any(point.exact for point in estimate.result_.history)
    assert estimate.result_.primal >= estimate.result_.dual
    assert estimate.result_.dual == pytest.approx(exact.result_.dual, rel=1e-9)
    assert not larank().partial_fit(iris, iris_labels).result_.exact


def test_the_result_counts_the_work():
    X, y = data(400, 3)
    model = larank(batch_size=100).fit(X, y)
    counts = model.result_.operations
    assert counts["process_new"] == 400
    assert counts["process_old"] > 0
    assert counts["optimize"] > 0
    assert counts["steps"] >= len(model.support_)
    assert 400 <= model.result_.argmax_calls == counts["process_new"] + counts["process_old"]
    assert 0 < model.result_.kernel_values <= 400 * 400
    assert 20 <= len(model.result_.history) <= 402
    assert {"product", "map", "selection", "steps", "certificate"} <= set(model.result_.breakdown)


def test_the_history_has_the_error_on_held_out_examples():
    X, y = data(600, 3)
    model = larank(C=0.1).fit(X[:500], y[:500], validation=(X[500:], y[500:]))
    errors = [point.error for point in model.result_.history if point.error is not None]
    assert 10 <= len(errors) <= 30
    assert errors[-1] == np.mean(model.predict(X[500:]) != y[500:])
    assert_same_model(model, larank(C=0.1).fit(X[:500], y[:500]))


# The optimum


def converged(kernel="precomputed", tol=1e-7, **parameters):
    return larank(kernel, stop="gap", tol=tol, max_iter=100_000, **parameters)


@settings(max_examples=25)
@given(
    n=st.integers(4, 14),
    k=st.integers(2, 6),
    seed=st.integers(0, 10**6),
    C=st.sampled_from([0.1, 1.0, 10.0]),
    kernel=st.sampled_from(["rbf", "linear"]),
    weighted=st.booleans(),
    margins=st.booleans(),
)
def test_larank_gap_reaches_the_optimum_of_a_general_solver(n, k, seed, C, kernel, weighted, margins):
    k = min(n, k)
    X, y = data(n, k, seed, dimensions=3)  # with duplicates of conflicting labels and zero vectors
    random = np.random.default_rng(seed)
    gram = rbf(X) if kernel == "rbf" else X @ X.T
    weight = random.choice([0.5, 1, 3], n) if weighted else np.ones(n)
    delta = random.choice([0.5, 1, 2.5], (k, k)) * (1 - np.eye(k)) if margins else 1 - np.eye(k)
    best = kernel_optimum(gram, y, C * weight, delta)
    model = converged(C=C, cost_matrix=delta if margins else None).fit(gram, y, weight)
    assert model.result_.status == "converged"
    assert model.result_.relative_gap <= 1e-7
    assert model.result_.dual == pytest.approx(best, rel=2e-7)
    assert model.result_.primal == pytest.approx(best, rel=2e-7)


def test_by_default_the_gap_to_stop_at_is_the_cost():
    X, y = data(300, 3)
    for C in (0.1, 10.0):
        model = larank(stop="gap", C=C).fit(X, y)
        assert model.result_.gap <= C
        assert model.result_.status == "converged"


@pytest.mark.parametrize("seed", range(4))
def test_two_classes_are_the_binary_svm_without_intercept(seed):
    X, y = data(40, 2, seed)
    gram = rbf(X)
    C = 0.7
    # With (x, y) there is (-x, -y): by symmetry the intercept is zero, and each example counts twice.
    symmetric = np.block([[gram, -gram], [-gram, gram]])
    signs = np.where(y == 1, 1, -1)
    binary = SVC(kernel="precomputed", C=C, tol=1e-10).fit(symmetric, np.concatenate([signs, -signs]))
    model = converged(C=C, tol=1e-9).fit(gram, y)
    np.testing.assert_allclose(
        model.decision_function(gram), binary.decision_function(np.hstack([gram, -gram])), atol=2e-3
    )


def test_weights_of_classes_and_examples_multiply():
    X, y = data(60, 3)
    gram = rbf(X)
    weight = np.random.default_rng(0).uniform(0.5, 2, 60)
    by_class = converged(class_weight={0: 2.0, 1: 1.0, 2: 0.5}).fit(gram, y, weight)
    by_example = converged().fit(gram, y, weight * np.array([2, 1, 0.5])[y])
    assert by_class.result_.dual == pytest.approx(by_example.result_.dual, rel=1e-6)
    assert_feasible(by_class, y, weight * np.array([2, 1, 0.5])[y])
    balanced = converged(class_weight="balanced").fit(gram, y)
    assert_feasible(balanced, y, (60 / (3 * np.bincount(y)))[y])


def test_examples_without_weight_do_not_count():
    X, y = data(80, 3)
    weight = (np.arange(80) % 4 > 0).astype(float)
    model = converged().fit(rbf(X), y, weight)
    assert not set(model.support_) & set(np.flatnonzero(weight == 0))
    fewer = converged().fit(rbf(X[weight > 0]), y[weight > 0])
    assert model.result_.dual == pytest.approx(fewer.result_.dual, rel=1e-6)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_linear_kernel_has_the_optimum_of_the_precomputed_one(k):
    X, y = data(60, k)
    explicit = converged("linear").fit(X, y)
    assert explicit.result_.dual == pytest.approx(converged().fit(X @ X.T, y).result_.dual, rel=1e-6)
    general = converged("poly", degree=1, gamma=1.0).fit(X, y)
    assert explicit.result_.dual == pytest.approx(general.result_.dual, rel=1e-6)
    np.testing.assert_allclose(explicit.decision_function(X), general.decision_function(X), atol=1e-2)


def test_one_pass_comes_close_and_more_passes_closer():
    X, y = data(800, 4)
    best = larank(stop="gap", tol=1e-4).fit(X, y).result_.dual
    one, three = (larank(epochs=epochs).fit(X, y).result_.dual for epochs in (1, 3))
    assert 0.85 * best < one < three <= best * (1 + 1e-9)


# Schedules and operations


def test_without_reprocessing_it_is_the_passive_aggressive_algorithm():
    model = larank("precomputed", schedule="fixed", n_reprocess=0, shuffle=False).fit(K, K_labels)
    counts = model.result_.operations
    assert (counts["process_new"], counts["process_old"], counts["optimize"]) == (300, 0, 0)
    # Spelled out: each example once, one step between its label and the strongest class that has arrived.
    beta, arrived = np.zeros((300, 4)), []
    for i, label in enumerate(K_labels):
        arrived = arrived if label in arrived else [*arrived, label]
        if len(arrived) == 1:
            continue
        g = (np.arange(4) == label) - K[i] @ beta
        worst = min((other for other in arrived if other != label), key=lambda other: g[other])
        if g[label] - g[worst] > 0.08:
            step = min((g[label] - g[worst]) / (2 * K[i, i]), 1.0)
            beta[i, label], beta[i, worst] = step, -step
    np.testing.assert_allclose(coefficients(model, 300), beta, atol=1e-10)


@pytest.mark.parametrize(
    ("operations", "used"),
    [
        (("new",), {"process_new"}),
        ("new", {"process_new"}),
        (["new", "old"], {"process_new", "process_old"}),
        ({"optimize", "new"}, {"process_new", "optimize"}),
        (("new", "old", "optimize"), {"process_new", "process_old", "optimize"}),
    ],
)
@pytest.mark.parametrize("schedule", ["adaptive", "fixed"])
def test_operations_can_be_restricted(operations, used, schedule):
    X, y = data(200, 3)
    counts = larank(operations=operations, schedule=schedule).fit(X, y).result_.operations
    assert {name for name in ("process_new", "process_old", "optimize") if counts[name]} == used


def test_each_kind_of_reprocessing_helps():
    X, y = data(500, 4)
    new, old, every = (
        larank(operations=kinds).fit(X, y).result_.dual
        for kinds in (["new"], ["new", "old"], ["new", "old", "optimize"])
    )
    assert new < old < every


# What X may be

X, y = data(160, 3)
shapes = {
    "float32": lambda X: X.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "pandas": pd.DataFrame,
    "list": lambda X: X.tolist(),
    "csr": sparse.csr_matrix,
    "csr of 64 bit": lambda X: _wide(sparse.csr_matrix(X)),
    "csr array": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "read only": lambda X: _read_only(X.copy()),
}


def _wide(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _read_only(X):
    X.flags.writeable = False
    return X


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("shape", shapes.values(), ids=shapes)
@pytest.mark.filterwarnings("ignore:X .* feature names")
def test_the_layout_of_the_examples_does_not_matter(kernel, shape):
    plain = converged(kernel, tol=1e-5, gamma=0.3).fit(X, y)
    model = converged(kernel, tol=1e-5, gamma=0.3).fit(shape(X), y)
    assert model.result_.dual == pytest.approx(plain.result_.dual, rel=2e-5)
    for same in (X, sparse.csr_matrix(X), shape(X)):
        np.testing.assert_allclose(model.decision_function(same), plain.decision_function(X), atol=0.03)
    assert model.dual_coef_.dtype == np.float64
    if shape is shapes["float32"]:
        assert model.support_vectors_.dtype == np.float32


def test_examples_may_be_mapped_from_a_file(tmp_path):
    stored = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    stored[:] = X
    for kernel in ("rbf", "linear"):
        assert_same_model(larank(kernel).fit(stored, y), larank(kernel).fit(X, y))
    gram = np.memmap(tmp_path / "K", dtype=np.float64, mode="w+", shape=(len(X), len(X)))
    gram[:] = rbf(X)
    assert_same_model(larank("precomputed").fit(gram, y), larank("precomputed").fit(rbf(X), y))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_training_leaves_the_examples_as_they_are(kernel):
    given_, sparse_given = X.copy(), sparse.csr_matrix(X)
    larank(kernel).fit(given_, y)
    larank(kernel).fit(sparse_given, y)
    np.testing.assert_array_equal(given_, X)
    np.testing.assert_array_equal(sparse_given.toarray(), X)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_support_vectors_are_the_examples(layout):
    for kernel in ("rbf", "linear"):
        model = larank(kernel).fit(layout(X), y)
        assert sparse.issparse(model.support_vectors_) == sparse.issparse(layout(X))
        kept = model.support_vectors_
        np.testing.assert_array_equal(kept.toarray() if sparse.issparse(kept) else kept, X[model.support_])
    assert not hasattr(larank("precomputed").fit(rbf(X), y), "support_vectors_")


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_weights_are_the_coefficients_times_the_support_vectors(layout, classes):
    keep = y < classes
    model = larank("linear", epochs=2).fit(layout(X[keep]), y[keep])
    weights = np.asarray(model.dual_coef_.T @ model.support_vectors_)
    weights = weights if layout is np.asarray else (model.dual_coef_.T @ model.support_vectors_).toarray()
    expected = weights[1:] - weights[:1] if classes == 2 else weights
    assert model.coef_.shape == expected.shape
    np.testing.assert_allclose(model.coef_, expected, atol=1e-10)
    scores = X[keep] @ expected.T
    np.testing.assert_allclose(model.decision_function(layout(X[keep])), scores.ravel() if classes == 2 else scores)
    assert not hasattr(larank().fit(X, y), "coef_")


def test_rows_without_values_are_examples_like_others():
    dense = np.where(np.arange(160)[:, None] % 5 == 0, 0, X)
    for kernel in ("linear", "rbf"):
        models = [
            converged(kernel, tol=1e-6, gamma=0.3).fit(layout(dense), y) for layout in (np.asarray, sparse.csr_matrix)
        ]
        assert models[0].result_.dual == pytest.approx(models[1].result_.dual, rel=1e-5)
        assert models[1].support_vectors_.shape == (len(models[1].support_), 4)
    nothing = larank("linear").fit(sparse.csr_matrix(np.zeros((6, 4))), [0, 1] * 3)
    assert sparse.issparse(nothing.support_vectors_)
    assert nothing.support_vectors_.shape == (5, 4)  # the first example had no other class to be told apart from


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize(
    ("first", "then"),
    [
        (np.asarray, sparse.csr_matrix),
        (sparse.csr_matrix, np.asarray),
        (np.float32, np.float64),
        (np.float64, np.float32),
        (lambda X: _wide(sparse.csr_matrix(X)), sparse.csr_matrix),
    ],
    ids=["dense to csr", "csr to dense", "float32 to float64", "float64 to float32", "index widths"],
)
def test_parts_of_a_stream_may_differ_in_layout_and_precision(kernel, first, then):
    model = larank(kernel, gamma=0.3)
    for part, layout in zip(np.array_split(np.arange(160), 4), (first, then, first, then), strict=True):
        model.partial_fit(layout(X[part]), y[part])
    assert_feasible(model, y, 1.0)
    beta = coefficients(model, 160)
    gram = rbf(X) if kernel == "rbf" else X @ X.T
    np.testing.assert_allclose(model.decision_function(X), gram @ beta, atol=1e-4)
    assert model.result_.dual == pytest.approx(
        kernel_certificate(beta, gram, y, np.ones(160), 1 - np.eye(3))[1], rel=1e-4
    )


def overlap(A, B):
    """A kernel of strings: letters in common."""
    return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float)


words = ["ant", "bee", "cat", "dog", "antelope", "beetle", "cattle", "doge"] * 5


@pytest.mark.parametrize("kind", [list, tuple, lambda words: np.array(words, dtype=object), np.array])
def test_a_callable_kernel_takes_any_objects(kind):
    labels = np.arange(40) % 4
    model = larank(overlap, batch_size=7).fit(kind(words), labels)
    assert model.score(kind(words), labels) == 1.0
    assert [model.support_vectors_[0]] == [words[model.support_[0]]]
    streamed_ = larank(overlap, shuffle=False, batch_size=7).fit(kind(words), labels)
    parts = larank(overlap).partial_fit(kind(words[:11]), labels[:11]).partial_fit(kind(words[11:]), labels[11:])
    assert_same_model(streamed_, parts)
    assert_same_model(larank("precomputed", shuffle=False).fit(overlap(words, words), labels), parts)


def test_a_callable_kernel_equals_the_matrix_it_computes():
    gram = larank("precomputed").fit(rbf(X), y)
    assert_same_model(larank(lambda A, B: rbf(A, B)).fit(X, y), gram)


# Labels and shapes


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["ham", "spam", "eggs"]),
        np.array(["ham", "spam", "eggs"], dtype=object),
        np.array([0.0, 1.0, 2.0]),
        np.array([-5, 1000, 7]),
        np.array([2**53, 2**53 + 1, 2**53 + 2]),
        np.array([3, 1, 2], dtype=np.uint8),
    ],
    ids=str,
)
def test_labels_may_be_anything_that_can_be_told_apart(labels):
    plain = larank(shuffle=False).fit(X, np.argsort(np.argsort(labels))[y])
    for model in (
        larank(shuffle=False).fit(X, labels[y]),
        larank().partial_fit(X, labels[y]),
        larank(batch_size=80).partial_fit(X[:80], labels[y[:80]]).partial_fit(X[80:], labels[y[80:]]),
    ):
        np.testing.assert_array_equal(model.classes_, np.unique(labels))
        assert model.classes_.dtype == labels.dtype
        if len(model.support_) == len(plain.support_):
            np.testing.assert_array_equal(model.predict(X), np.sort(labels)[plain.predict(X)])
        assert model.score(X, labels[y]) > 0.5


def test_boolean_labels_are_two_classes():
    for model in (larank().fit(X, y == 0), larank().partial_fit(X, y == 0)):
        assert model.predict(X).dtype == bool
        assert model.score(X, y == 0) > 0.7


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("classes", [2, 3])
def test_shapes_are_those_documented(kernel, classes):
    keep = y < classes
    some = rbf(X[keep]) if kernel == "precomputed" else X[keep]
    model = larank(kernel).fit(some, y[keep])
    scores = model.decision_function(some[:9])
    assert scores.shape == ((9,) if classes == 2 else (9, 3))
    assert scores.dtype == np.float64
    best = (scores > 0).astype(int) if classes == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(some[:9]), model.classes_[best])
    assert model.dual_coef_.shape == (len(model.support_), classes)
    assert isinstance(model.n_iter_, int)
    assert model.n_features_in_ == some.shape[1]


def test_scores_are_the_sum_over_the_support_patterns():
    model = larank(gamma=0.3).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), rbf(X, model.support_vectors_) @ model.dual_coef_, atol=1e-9)
    gram = larank("precomputed").fit(rbf(X), y)
    np.testing.assert_allclose(gram.decision_function(rbf(X)), rbf(X)[:, gram.support_] @ gram.dual_coef_, atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_first_part_may_hold_one_class(kernel):
    model = larank(kernel).partial_fit(X[:20], np.zeros(20, int))
    assert len(model.support_) == 0
    np.testing.assert_array_equal(model.predict(X), np.zeros(160, int))
    assert model.result_.dual == 0
    for again in (model, pickle.loads(pickle.dumps(model))):
        again.partial_fit(X, y)
        assert again.score(X, y) > 0.5
        assert len(again.classes_) == 3


def test_announced_classes_have_a_column_before_they_come():
    model = larank().partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert model.decision_function(X).shape == (160, 3)
    assert not model.decision_function(X)[:, 2].any()
    same = larank().partial_fit(X[y < 2], y[y < 2])
    np.testing.assert_array_equal(model.decision_function(X)[:, :2], model.decision_function(X)[:, :2])
    np.testing.assert_array_equal(model.support_, same.support_)
    model.partial_fit(X[y == 2], y[y == 2])
    same.partial_fit(X[y == 2], y[y == 2])
    assert_same_model(model, same)


def test_partial_fit_makes_one_pass_whatever_epochs_says():
    model = larank(epochs=3).partial_fit(X, y)
    assert model.result_.iterations == 1
    assert_same_model(model, larank().partial_fit(X, y))


def test_the_weights_of_classes_to_come_may_be_given():
    weights = {0: 2.0, 2: 0.5}
    order = np.argsort(y, kind="stable")
    gram = rbf(X[order])
    whole = larank("precomputed", class_weight=weights, shuffle=False).fit(gram, y[order])
    assert_same_model(streamed(gram, y[order], [80], class_weight=weights), whole)


def test_what_stands_in_memory_that_was_never_written_does_not_matter(monkeypatch):
    gram, labels = (lambda X, y: (X @ X.T, y))(*data(200, 3, dimensions=2))
    clean = [larank("precomputed", n_jobs=jobs, batch_size=32, epochs=2).fit(gram, labels) for jobs in (1, 2)]
    allocate = np.empty

    def poisoned(shape, dtype=float, *arguments, **options):
        array = allocate(shape, dtype, *arguments, **options)
        if array.dtype.kind == "f":
            array[...] = np.nan
        return array

    monkeypatch.setattr(np, "empty", poisoned)
    for jobs, model in zip((1, 2), clean, strict=True):
        assert_same_model(larank("precomputed", n_jobs=jobs, batch_size=32, epochs=2).fit(gram, labels), model)


# Going on


def copies(model, path):
    models.save(model, path)
    return [pickle.loads(pickle.dumps(model)), models.load(path)]


kinds = ["rbf", "linear", "precomputed", "poly"]


@pytest.mark.parametrize("kernel", kinds)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_copies_and_saved_models_predict_the_same(kernel, layout, tmp_path):
    if kernel == "precomputed" and layout is not np.asarray:
        pytest.skip("kernel values are dense")
    some = rbf(X) if kernel == "precomputed" else layout(X)
    labels = names[y]
    for model in (larank(kernel).fit(some, labels), larank(kernel).partial_fit(some, labels)):
        for copy in copies(model, tmp_path / "model.larank"):
            assert type(copy) is LaRankClassifier
            assert copy.get_params() == model.get_params()
            assert repr(copy.result_) == repr(model.result_)
            assert_same_model(copy, model)
            np.testing.assert_array_equal(copy.decision_function(some), model.decision_function(some))
            np.testing.assert_array_equal(copy.predict(some), model.predict(some))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("memory_limit", [2e9, 70_000])
def test_training_goes_on_from_fitted_copied_and_saved_models(kernel, layout, memory_limit, tmp_path):
    limit = memory_limit if kernel != "linear" else 2e9
    begun = larank(kernel, gamma=0.3, memory_limit=limit, batch_size=16)
    fitted = clone(begun).fit(layout(X[:60]), y[:60])
    streamed_ = clone(begun).partial_fit(layout(X[:60]), y[:60])
    for model in (fitted, streamed_, *copies(fitted, tmp_path / "f"), *copies(streamed_, tmp_path / "s")):
        reached = model.result_.dual
        before = coefficients(model, 160)
        for part in np.array_split(np.arange(60, 160), 3):
            model.partial_fit(layout(X[part]), y[part])
            assert model.result_.dual >= reached
            reached = model.result_.dual
        assert (coefficients(model, 160) != before).any()
        assert_feasible(model, y, 1.0)
        gram = {"rbf": rbf(X), "linear": X @ X.T, "poly": (0.3 * X @ X.T) ** 3}[kernel]
        _, dual, _ = kernel_certificate(coefficients(model, 160), gram, y, np.ones(160), 1 - np.eye(3))
        assert model.result_.dual == pytest.approx(dual, rel=1e-6)
        np.testing.assert_allclose(model.decision_function(X), gram @ coefficients(model, 160), atol=1e-6)


def test_a_copy_goes_on_with_new_classes():
    model = pickle.loads(pickle.dumps(larank().fit(X[y > 0], names[y[y > 0]])))
    model.partial_fit(X, names[y])
    np.testing.assert_array_equal(model.classes_, names)
    assert model.score(X, names[y]) > 0.6
    assert model.support_.max() >= (y > 0).sum()


def test_going_on_with_a_precomputed_kernel_needs_the_stream():
    model = pickle.loads(pickle.dumps(larank("precomputed").fit(rbf(X), y)))
    with pytest.raises(ValueError, match=r"partial_fit cannot go on: with kernel='precomputed' .* from the start"):
        model.partial_fit(np.tile(rbf(X), 2), y)


def test_a_fit_forgets_what_was_before():
    model = larank().partial_fit(X, names[y])
    assert_same_model(model.fit(X, y), larank().fit(X, y))
    linear = larank("linear").fit(X, y).set_params(kernel="rbf").fit(X, y)
    assert not hasattr(linear, "coef_")
    np.testing.assert_array_equal(linear.predict(X), larank().fit(X, y).predict(X))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_model_interrupted_by_a_time_limit_is_valid(kernel, ordered):
    some, labels = data(700, 4, dimensions=3)
    if ordered:  # most classes have not been seen when it ends
        labels = np.sort(labels)
    examples = rbf(some) if kernel == "precomputed" else some
    model = larank(kernel, gamma=0.3, time_limit=1e-9, shuffle=not ordered)
    with pytest.warns(TrainingWarning, match=r"after time_limit=1e-09 seconds.*the model is valid"):
        model.fit(examples, labels)
    result = model.result_
    assert result.status == "time_limit"
    assert result.iterations < 0.1
    assert_feasible(model, labels, 1.0)
    gram = some @ some.T if kernel == "linear" else rbf(some)
    primal, dual, _ = kernel_certificate(coefficients(model, 700), gram, labels, np.ones(700), 1 - np.eye(4))
    assert result.primal == pytest.approx(primal, rel=1e-9)
    assert result.dual == pytest.approx(dual, rel=1e-9)
    assert model.predict(examples).shape == (700,)
    if kernel != "precomputed":
        model.set_params(time_limit=None).partial_fit(examples, labels)
        assert model.result_.dual > dual
        assert_feasible(model, np.tile(labels, 2), 1.0)


def test_max_iter_ends_with_a_warning():
    with pytest.warns(TrainingWarning, match=r"after max_iter=2 passes .* relative duality gap is"):
        model = larank(stop="gap", tol=1e-12, max_iter=2, C=10.0).fit(X, y)
    assert model.result_.status == "max_iter"
    assert model.result_.iterations == 2
    assert model.n_iter_ == 2


# scikit-learn

# These two demand 1e-7 of predictions, more than one pass promises.
EXACT = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")


def checks():
    for kernel in ("rbf", "linear"):
        usual = LaRankClassifier(kernel)
        tight = LaRankClassifier(kernel, gamma=0.2, stop="gap", tol=1e-13, max_iter=100_000)
        for estimator, wanted in ((usual, False), (tight, True)):
            for instance, check in estimator_checks_generator(estimator):
                name = getattr(check, "func", check).__name__
                if kernel == "linear" and name == "check_class_weight_classifiers":
                    continue  # no hyperplane through the origin has its examples on one side
                if (name in EXACT) == wanted:
                    yield pytest.param(instance, check, id=f"{kernel}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_check_estimator(estimator, check):
    check(estimator)


def test_it_is_a_classifier_that_says_what_it_takes():
    assert is_classifier(larank())
    assert larank().__sklearn_tags__().input_tags.sparse
    assert not larank(overlap).__sklearn_tags__().input_tags.sparse
    assert larank("precomputed").__sklearn_tags__().input_tags.pairwise
    assert not larank().__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_grid_search_finds_a_cost(kernel):
    search = GridSearchCV(larank(kernel), {"C": [1e-4, 1.0, 10.0]}, cv=3).fit(iris, names[iris_labels])
    assert search.best_score_ > (0.9 if kernel == "rbf" else 0.8)  # there is no intercept


def test_cross_validation_knows_precomputed_kernels():
    scores = cross_val_score(larank("precomputed"), rbf(iris), iris_labels, cv=3)
    np.testing.assert_allclose(scores, cross_val_score(larank(gamma=0.3), iris, iris_labels, cv=3), atol=0.05)
    assert scores.mean() > 0.9


def test_pipelines_pass_data_and_weights_through():
    pipeline = make_pipeline(StandardScaler(), larank())
    weight = np.linspace(0.5, 2, len(iris))
    pipeline.fit(iris, iris_labels, larankclassifier__sample_weight=weight)
    alone = larank().fit(StandardScaler().fit_transform(iris), iris_labels, weight)
    assert_same_model(pipeline[-1], alone)


def test_a_clone_has_the_parameters_and_nothing_else():
    model = larank(C=3.0, class_weight={0: 2.0}, operations=("new", "old")).fit(iris, iris_labels)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not [name for name in vars(copy) if name.endswith("_") or name.startswith("_")]
    assert_same_model(copy.fit(iris, iris_labels), model)


def test_feature_names_are_kept_and_checked():
    frame = pd.DataFrame(iris, columns=list("abcd"))
    model = larank().fit(frame, iris_labels)
    np.testing.assert_array_equal(model.feature_names_in_, list("abcd"))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c", "d"]])


def test_the_plan_for_the_memory_is_shown(capsys):
    larank(verbose=1, memory_limit=5e6).fit(iris, iris_labels)
    shown = capsys.readouterr()
    assert not shown.out
    assert "memory limit 5 MB" in shown.err


def test_the_example_of_the_documentation_is_true():
    results = doctest.testmod(sys.modules[LaRankClassifier.__module__])
    assert results.attempted > 0
    assert results.failed == 0
