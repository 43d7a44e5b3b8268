"""LaRankClassifier after something went wrong, or was changed, or looked like something else."""

import threading

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info

from larank import LaRankClassifier


def clouds(examples=200, classes=3, features=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(examples) % classes
    return 2 * rng.normal(size=(classes, features))[y] + rng.normal(size=(examples, features)), y


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_a_failed_partial_fit_leaves_the_model_as_it_was():
    X, y = clouds()
    X = np.abs(X)
    model = LaRankClassifier("chi2", gamma=0.5, random_state=0).partial_fit(X[y > 0], y[y > 0])
    before = model.predict(X)
    bad = X.copy()
    bad[7, 1] = -1
    with pytest.raises(ValueError, match="chi2"):
        model.partial_fit(bad, y)
    assert model.classes_.tolist() == [1, 2]
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.partial_fit(X, y).score(X, y) > 0.8


def test_a_memory_error_leaves_no_thread_and_no_limit_behind():
    X, y = clouds(1500, 4, 8)
    before, threads = blas_threads(), threading.active_count()
    for limit in (20_000, 26_729, 60_000, 100_000):
        with pytest.raises(ValueError, match="memory_limit must be at least"):
            LaRankClassifier(memory_limit=limit, random_state=0, n_jobs=2, gamma=0.1, C=10).fit(X, y)
    assert blas_threads() == before
    assert threading.active_count() == threads


def test_predictions_do_not_depend_on_the_other_rows():
    X, y = clouds(300)
    far = (X + 1e4).astype(np.float32)
    model = LaRankClassifier(gamma=0.1, random_state=0).fit(far, y)
    alone = model.predict(far)
    outlier = np.vstack([far, np.full((1, 4), -1e6, np.float32)])
    np.testing.assert_array_equal(model.predict(outlier)[:-1], alone)
    assert model.score(far, y) > 0.8


def test_a_matrix_that_is_no_kernel_is_found_out():
    rng = np.random.default_rng(0)
    S = rng.uniform(-1, 1, (300, 300))
    S = (S + S.T) / 2
    np.fill_diagonal(S, 1.0)
    with pytest.raises(ValueError, match="kernel must be positive semi-definite"):
        LaRankClassifier("precomputed", C=10, epochs=3, random_state=0).fit(S, np.arange(300) % 4)


def test_a_sigmoid_that_is_no_kernel_warns():
    X, y = clouds(300)
    with pytest.warns(UserWarning, match="proves nothing"):
        LaRankClassifier("sigmoid", gamma=2, coef0=-1, C=10, epochs=3, random_state=0).fit(X, y)


def test_a_callable_with_a_negative_diagonal_is_refused():
    with pytest.raises(ValueError, match=r"kernel must have k\(x, x\) >= 0"):
        LaRankClassifier(lambda A, B: -A @ B.T).fit(*clouds())


@pytest.mark.parametrize(
    "objects",
    [
        [{"a", "b"}, {"a"}, {"x"}, {"x", "y"}] * 5,
        [{"a": 1}, {"a": 2}, {"x": 1}, {"y": 1, "x": 1}] * 5,
        [[1, 2], [1], [7], [7, 8, 9]] * 5,
        [(("a", "b"),), (("a",),), (("x",),), (("x", "y"),)] * 5,
    ],
)
def test_callable_kernels_take_any_objects(objects):
    def words(one):
        flat = one[0] if isinstance(one, tuple) else one
        return set(flat)

    def shared(A, B):
        return np.array([[len(words(a) & words(b)) for b in B] for a in A], dtype=float)

    labels = ["left", "left", "right", "right"] * 5
    model = LaRankClassifier(shared, C=10, epochs=3, random_state=0).fit(objects, labels)
    assert model.score(objects, labels) == 1.0


def test_a_sparse_stream_stays_sparse_from_a_first_batch_of_one_class():
    X = sparse.random(200, 5000, density=1e-3, format="csr", random_state=0)
    y = np.arange(200) % 3
    model = LaRankClassifier("linear", random_state=0).partial_fit(X[y == 0], y[y == 0])
    assert sparse.issparse(model.support_vectors_)
    model.partial_fit(X, y)
    assert sparse.issparse(model.support_vectors_)
    assert model.support_vectors_.shape[1] == 5000


@pytest.mark.parametrize(
    "change",
    [
        {"gamma": 0.7},
        {"kernel": "poly"},
        {"degree": 2},
        {"memory_limit": 1e6},
        {"schedule": "fixed"},
        {"cost_matrix": np.ones((3, 3)) - np.eye(3)},
    ],
)
def test_a_stream_keeps_what_it_began_with(change):
    X, y = clouds()
    model = LaRankClassifier(gamma=0.5, random_state=0).partial_fit(X, y)
    with pytest.raises(ValueError, match=f"{next(iter(change))} must stay as it was"):
        model.set_params(**change).partial_fit(X, y)


def test_operations_must_be_a_collection():
    with pytest.raises(ValueError, match="operations must be a collection"):
        LaRankClassifier(operations=(name for name in ("new", "old"))).fit(*clouds())


@pytest.mark.parametrize("n_jobs", [0, "a", 1.5])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_n_jobs_is_checked_with_every_kernel(kernel, n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be None or an integer other than 0"):
        LaRankClassifier(kernel, n_jobs=n_jobs).fit(*clouds())


def test_weights_must_leave_two_classes():
    X, y = clouds()
    with pytest.raises(ValueError, match="at least two classes with a weight above zero"):
        LaRankClassifier().fit(X, y, sample_weight=(y == 1).astype(float))


def test_validation_labels_must_be_labels():
    X, y = clouds()
    with pytest.raises(ValueError, match="validation must have labels that y has too"):
        LaRankClassifier().fit(X, y, validation=(X, y.astype(str)))


def test_a_large_batch_size_is_no_slower_than_the_memory_allows():
    X, y = clouds(500)
    model = LaRankClassifier(batch_size=10**8, gamma=0.5, random_state=0, n_jobs=1).fit(X, y)
    assert model.result_.kernel_values == 500 * 501 // 2  # one block
