"""Providers give the kernel values of the examples they hold, whatever the data, the threads and the order of slots."""

import copy
import pickle
import threading
import time
import weakref

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import pairwise
from threadpoolctl import threadpool_info, threadpool_limits

from larank.blocks import check_gram, provider_for, workers
from larank.blocks.definite import indefinite_values
from larank.blocks.kernels import kernel_for, kernel_names
from larank.blocks.provider import read_only

DTYPES = [np.float32, np.float64]
PARAMETERS = {"gamma": 0.2, "degree": 3, "coef0": 0.5}
REFERENCE = {
    "linear": lambda X, Z: X @ Z.T,
    "rbf": lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.2),
    "poly": lambda X, Z: pairwise.polynomial_kernel(X, Z, gamma=0.2, coef0=0.5, degree=3),
    "sigmoid": lambda X, Z: pairwise.sigmoid_kernel(X, Z, gamma=0.2, coef0=0.5),
    "laplacian": lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=0.2),
    "chi2": lambda X, Z: pairwise.chi2_kernel(X, Z, gamma=0.2),
    "intersection": lambda X, Z: np.minimum(X[:, None], Z[None]).sum(axis=2),
}
ON_CSR = ["linear", "rbf", "poly", "sigmoid"]
CASES = [(name, np.asarray) for name in REFERENCE] + [(name, sparse.csr_matrix) for name in ON_CSR]


def examples(n, d=13, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    X[rng.random(X.shape) < 0.4] = 0
    return X.astype(dtype)


def provider(name, X, n_jobs=None, **parameters):
    return provider_for(kernel_for(name, X=X, **{**PARAMETERS, **parameters}), X, n_jobs=n_jobs)


def filled(name, X, n_jobs=None, **parameters):
    """A provider whose slots hold all of X, given in two batches, the later slots first."""
    blocks = provider(name, X, n_jobs, **parameters)
    n = X.shape[0]
    half = n // 2
    for rows in (slice(half, n), slice(0, half)):
        slots = np.arange(rows.start, rows.stop)
        blocks.store(slots, blocks.batch(X, slots, rows), np.arange(len(slots)))
    return blocks


def close(values, expected):
    tolerance = 1e-4 if np.asarray(values).dtype == np.float32 else 1e-12
    np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "layout"), CASES)
def test_values_are_those_of_scikit_learn(name, layout, dtype):
    X, Z = examples(40, dtype=dtype), examples(30, dtype=dtype, seed=1)
    expected = REFERENCE[name](Z.astype(np.float64), X.astype(np.float64))
    among = REFERENCE[name](Z.astype(np.float64), Z.astype(np.float64))
    blocks = filled(name, layout(X))
    batch = blocks.batch(layout(Z), 100)
    table = blocks.against_support(batch, 45)
    assert table.shape == (30, 45)
    assert table.dtype == dtype
    assert table.flags.c_contiguous
    close(table[:, :40], expected)
    close(blocks.diagonal(batch), among.diagonal())
    within = blocks.within(batch)
    close(within, among)
    assert (within == within.T).all()
    assert (within.diagonal() == blocks.diagonal(batch).astype(dtype)).all()
    other = blocks.batch(layout(X), 0, np.array([3, 1, 7]))
    close(blocks.cross(batch, other), expected[:, [3, 1, 7]])
    slots = np.array([5, 0, 39])
    rows = blocks.rows(slots)
    close(rows, REFERENCE[name](X.astype(np.float64), X.astype(np.float64))[slots])
    assert (rows[np.arange(3), slots] == blocks.diagonal(blocks.batch(layout(X), 0))[slots].astype(dtype)).all()
    assert blocks.kernel_values == 30 * 40 + 30 * 31 // 2 + 30 * 3 + 3 * 40
    assert blocks.seconds["product"] > 0


@pytest.mark.parametrize("coefficients", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "layout"), CASES)
def test_scores_are_kernel_values_times_coefficients(name, layout, dtype, coefficients):
    X, Z = examples(600, dtype=dtype), examples(530, dtype=dtype, seed=1)
    blocks = filled(name, layout(X))
    values = np.random.default_rng(2).normal(size=(600, 3))
    everything = blocks.scores(layout(Z), np.arange(600), coefficients(values))
    expected = REFERENCE[name](Z.astype(np.float64), X.astype(np.float64)) @ values
    scale = np.abs(expected).max()
    assert everything.dtype == np.float64
    assert np.abs(everything - expected).max() <= (1e-4 if dtype == np.float32 else 1e-12) * scale
    slots = np.array([500, 3, 77])
    some = REFERENCE[name](Z.astype(np.float64), X.astype(np.float64)[slots]) @ values[slots]
    assert np.abs(blocks.scores(layout(Z), slots, coefficients(values[slots])) - some).max() <= 1e-4 * scale
    assert blocks.kernel_values == 0
    assert blocks.scores(layout(Z), slots[:0], coefficients(values[:0])).tolist() == [[0, 0, 0]] * 530


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_exact_scores_have_the_digits_of_double_precision(name, layout):
    single, coefficients = examples(30, dtype=np.float32), np.random.default_rng(1).normal(size=(20, 2))
    X, double = layout(single), single.astype(np.float64)
    found = provider(name, X).exact_scores(X, X[:20], coefficients)
    np.testing.assert_allclose(found, REFERENCE[name](double, double[:20]) @ coefficients, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "layout"), CASES)
def test_threads_do_not_change_a_bit(name, layout, dtype):
    X, Z = layout(examples(3000, 40, dtype)), layout(examples(600, 40, dtype, seed=1))
    coefficients = np.random.default_rng(2).normal(size=(3000, 3))

    def everything(n_jobs):
        blocks = filled(name, X, n_jobs)
        batch = blocks.batch(Z, 5000)
        with blocks.threads():
            tables = blocks.against_support(batch), blocks.within(batch), blocks.rows(np.arange(0, 3000, 7))
            return [t.tobytes() for t in (*tables, blocks.scores(Z, np.arange(3000), coefficients))]

    alone = everything(None)
    assert everything(3) == alone
    with threadpool_limits(2, "blas"):
        assert everything(1) == alone


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_libraries_of_linear_algebra_are_found_without_looking_at_python_modules():
    found = [library.info()["filepath"] for library in workers._Threadpools().lib_controllers]
    assert sorted(found) == sorted(pool["filepath"] for pool in threadpool_info())


def test_blas_has_one_thread_while_a_block_of_any_provider_is_entered():
    one, two = provider("rbf", examples(5), 2), provider("rbf", examples(5), 2)
    with threadpool_limits(2, "blas"):
        with one.threads(), one.threads():
            assert blas_threads() == {1}
        assert blas_threads() == {2}
        first, second = one.threads(), two.threads()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == {2}


def test_an_error_in_a_worker_reaches_the_caller():
    X = examples(3000)
    Z = examples(3000, seed=1)
    Z[2900, 4] = -1
    with pytest.raises(ValueError, match=r"example 2900 has -1\.0 in feature 4"):
        filled("chi2", X, 3).scores(Z, np.arange(10), np.ones((10, 1)))


def test_slots_are_reused_and_appended():
    X = examples(50)
    for layout in (np.asarray, sparse.csr_matrix):
        blocks = provider("rbf", layout(X))
        batch = blocks.batch(layout(X), 0)
        holds = {}
        for slots, rows in [([0, 1, 2], [5, 6, 7]), ([1], [8]), ([4, 3, 0], [9, 10, 11]), ([30], [12]), ([2], [13])]:
            blocks.store(slots, batch, rows)
            holds.update(zip(slots, rows, strict=True))
        assert blocks.size == 31
        slots, rows = list(holds), list(holds.values())
        close(blocks.against_support(batch, 40)[:, slots], REFERENCE["rbf"](X, X[rows]))
        assert np.isfinite(blocks.against_support(batch)).all()
        patterns = blocks.patterns(slots)
        assert (patterns.toarray() if sparse.issparse(patterns) else patterns).tolist() == X[rows].tolist()
        assert blocks.nbytes > 0


def test_a_slot_that_holds_the_example_itself_has_the_exact_diagonal():
    X = (examples(20, dtype=np.float32) + 3).astype(np.float32)
    blocks = filled("rbf", X)
    batch = blocks.batch(X, 0)
    assert (blocks.against_support(batch).diagonal() == 1).all()
    blocks.store([0], batch, [1])  # twice now; example 0 is gone
    table = blocks.against_support(batch)
    assert table[1, 0] == 1
    close(table[:, 0], REFERENCE["rbf"](X.astype(np.float64), X[1:2].astype(np.float64))[:, 0])


def test_a_table_can_be_given_and_its_other_columns_stay():
    X = examples(20)
    blocks = filled("rbf", X)
    table = np.full((30, 25), 7.0)
    values = blocks.against_support(blocks.batch(X, 50), 25, table)
    assert np.shares_memory(values, table)
    close(table[:20, :20], REFERENCE["rbf"](X, X))
    assert (table[20:] == 7).all()
    assert (table[:, 20:] == 7).all()


def test_an_empty_support_leaves_the_table_alone():
    blocks = provider("rbf", examples(5))
    assert blocks.against_support(blocks.batch(examples(5), 0), 3).shape == (5, 3)


def test_values_may_be_computed_while_another_thread_stores():
    X = examples(4000, 50)
    blocks = filled("rbf", X[:2000], 2)
    batch = blocks.batch(X[:300], 9000)
    expected = blocks.against_support(batch)
    tables = []
    with blocks.threads():
        worker = threading.Thread(target=lambda: tables.extend(blocks.against_support(batch) for _ in range(5)))
        worker.start()
        slot = 2000
        while worker.is_alive():
            blocks.store([slot], blocks.batch(X, slot, slice(slot, slot + 1)), [0])
            slot = min(slot + 1, 3999)
            time.sleep(1e-4)
        worker.join()
    assert all((table[:, :2000] == expected).all() for table in tables)


def test_a_batch_of_precomputed_rows_does_not_change_when_slots_are_reused():
    K = gram(20)
    blocks, table = provider("precomputed", K), np.empty((20, 2))
    batch = blocks.batch(K, 0)
    blocks.store([0, 1], batch, [5, 6])
    held = blocks._held()
    blocks.store([0], batch, [9])
    blocks._values(batch, held, table)
    assert (table == K[:, [5, 6]]).all()


def test_precomputed_scores_need_only_the_ids():
    K, blocks = gram(20), provider("precomputed", gram(20))
    blocks.adopt([4, 9], [4, 9])
    close(blocks.scores(K[:7], [0, 1], np.eye(2)), K[:7][:, [4, 9]])
    with pytest.raises(ValueError, match="X must have a column for every training example, at least 10, got 9"):
        blocks.scores(K[:7, :9], [0, 1], np.eye(2))


@pytest.mark.parametrize("kind", ["dense", "csr", "callable"])
def test_patterns_can_be_adopted_elsewhere(kind):
    X = examples(40)
    data = sparse.csr_matrix(X) if kind == "csr" else X
    name = REFERENCE["rbf"] if kind == "callable" else "rbf"
    blocks = filled(name, data)
    slots = np.array([7, 3, 30])
    other = provider(name, data)
    other.adopt(blocks.patterns(slots), slots)
    coefficients = np.arange(6.0).reshape(3, 2)
    close(other.scores(data, np.arange(3), coefficients), blocks.scores(data, slots, coefficients))
    assert other.rows([1])[0, 1] == 1.0
    assert other.against_support(other.batch(data, 3, slice(3, 4)))[0, 1] == 1.0


def test_providers_can_be_copied_and_pickled():
    blocks = filled("rbf", examples(30), 2)
    for again in (copy.deepcopy(blocks), pickle.loads(pickle.dumps(blocks))):
        assert (again.rows([2]) == blocks.rows([2])).all()


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_wrong_data_is_named(layout):
    X = layout(examples(5))
    blocks = provider("rbf", X)
    with pytest.raises(ValueError, match="X must have 13 features, got 12"):
        blocks.batch(X[:, 1:], 0)
    with pytest.raises(ValueError, match="ids must be one per example, 5, got 2"):
        blocks.batch(X, [1, 2])
    with pytest.raises(ValueError, match="slots and rows must be equally many, got 2 and 1"):
        blocks.store([0, 1], blocks.batch(X, 0), [0])
    with pytest.raises(IndexError, match="slots must be from 0 to -1, got 3 to 3"):
        blocks.rows([3])
    with pytest.raises(ValueError, match="width must be at least the number of slots, 0, got -1"):
        blocks.against_support(blocks.batch(X, 50), -1)
    with pytest.raises(ValueError, match="X must hold float32 or float64, got int64"):
        provider("rbf", X.astype(np.int64))
    with pytest.raises(ValueError, match="X must be a 2d array or a CSR matrix with kernel='rbf', got list"):
        provider_for(kernel_for("rbf", gamma=1.0), ["a"])


def test_repeated_and_unsorted_columns_are_summed_up():
    X = sparse.csr_matrix((np.ones(4), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), (2, 3))
    blocks = provider("rbf", X)
    blocks.store([0, 1], blocks.batch(X, 0), [0, 1])
    close(blocks.rows([0]), REFERENCE["rbf"](X.toarray()[:1], X.toarray()))


# Precomputed values


def gram(n, dtype=np.float64):
    X = examples(n)
    return pairwise.rbf_kernel(X, gamma=0.2).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_precomputed_values_are_looked_up(dtype):
    K = gram(30, dtype)
    blocks = provider("precomputed", K)
    order = np.random.default_rng(0).permutation(30)
    first = blocks.batch(K, order[:12], order[:12])
    blocks.store(np.arange(12), first, np.arange(12))
    second = blocks.batch(K, order[12:20], order[12:20])
    assert (blocks.against_support(second, 15)[:, :12] == K[np.ix_(order[12:20], order[:12])]).all()
    assert (blocks.within(second) == K[np.ix_(order[12:20], order[12:20])]).all()
    assert (blocks.cross(second, first) == K[np.ix_(order[12:20], order[:12])]).all()
    assert (blocks.rows([4, 2]) == K[np.ix_(order[[4, 2]], order[:12])]).all()
    assert blocks.patterns([3, 1]).tolist() == order[[3, 1]].tolist()
    coefficients = np.arange(12.0).reshape(6, 2)
    slots = np.arange(0, 12, 2)
    close(blocks.scores(K, slots, coefficients), K[:, order[slots]].astype(np.float64) @ coefficients)
    assert blocks.nbytes < 2000


def test_a_value_is_taken_from_the_row_of_the_newer_example():
    K = np.eye(9) + 0.01 * np.arange(9)[:, None]  # the entry tells its row
    blocks = provider("precomputed", K)
    old = blocks.batch(K[:3, :3], 0)
    blocks.store([0, 1, 2], old, [2, 0, 1])
    new = blocks.batch(K[3:6, :6], 3)
    assert np.round(100 * blocks.against_support(new)).tolist() == [[3] * 3, [4] * 3, [5] * 3]
    assert np.round(100 * blocks.cross(old, new)).tolist() == [[3, 4, 5]] * 3
    blocks.store([3, 4], new, [0, 2])
    rows = np.round(100 * (blocks.rows([0, 4]) - np.eye(5)[[0, 4]])).tolist()
    assert rows == [[2, 2, 2, 3, 5], [5] * 5]
    within = blocks.within(new)
    assert (within == within.T).all()
    assert np.round(100 * within[0, 1:]).tolist() == [4, 5]


def test_rows_without_a_slot_are_released():
    K = gram(60)
    blocks, pieces = provider("precomputed", K), []
    for i in range(60):
        piece = K[i : i + 1, : i + 1].copy()
        pieces.append(weakref.ref(piece))
        blocks.store([i % 4], blocks.batch(piece, i), [0])
    del piece
    assert [piece() is not None for piece in pieces] == [False] * 56 + [True] * 4
    assert sorted(blocks.patterns([0, 1, 2, 3])) == [56, 57, 58, 59]
    assert (blocks.rows([3]) == K[59, [56, 57, 58, 59]]).all()


def test_a_precomputed_row_needs_a_column_for_itself():
    with pytest.raises(ValueError, match="X must have a column for every example so far, at least 7, got 6"):
        provider("precomputed", gram(6)).batch(gram(6)[4:], 5)
    with pytest.raises(ValueError, match="X must be a 2d array of kernel values"):
        provider("precomputed", gram(6)).batch([1, 2], 0)


def spoiled(entries):
    K = gram(700)
    for (i, j), value in entries.items():
        K[i, j] = value
    return K


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((3, 2)), r"X must be a square matrix of kernel values with kernel='precomputed', got \(3, 2\)"),
        ([[1.0]], r"X must be a square matrix .* got list"),
        (spoiled({(4, 4): np.nan}), "kernel value of examples 4 and 4 must be .*, got nan"),
        (spoiled({(650, 4): np.inf}), "kernel value of examples 650 and 4 must be .*, got inf"),
        (spoiled({(650, 4): 0.123}), r"X must be symmetric, got X\[4, 650\] = .* and X\[650, 4\] = 0.123"),
    ],
)
def test_a_matrix_that_is_no_kernel_is_refused_with_the_entry(matrix, message):
    with pytest.raises(ValueError, match=message):
        check_gram(matrix)


@pytest.mark.parametrize(
    ("matrix", "found"),
    [
        (spoiled({(4, 4): -0.5}), "k(x, x) = -0.5 for example 4"),
        (spoiled({(650, 4): 1.5, (4, 650): 1.5}), "k(x, z) = 1.5 for examples 4 and 650 with k(x, x) = 1.0"),
        (spoiled({(4, 4): 0.0}), "for examples 0 and 4 with k(x, x) = 1.0 and k(z, z) = 0.0"),
        (1.5 * np.eye(40) - 0.5, "eigenvalue -"),
        ((1.5 * np.eye(40) - 0.5).astype(np.float32), "eigenvalue -"),
    ],
)
def test_a_matrix_that_is_not_positive_semi_definite_is_found_out(matrix, found):
    assert found in indefinite_values(provider("precomputed", matrix), matrix, np.arange(len(matrix)))


def test_a_good_matrix_passes():
    zero = gram(20)
    zero[3] = zero[:, 3] = 0  # an example that is zero in the feature space
    by_way_of_float32 = gram(600, np.float32).astype(np.float64)
    for K in (gram(600), gram(600, np.float32), zero, by_way_of_float32):
        check_gram(K)
        assert indefinite_values(provider("precomputed", K), K, np.arange(len(K))) == ""


@pytest.mark.parametrize("kernel", kernel_names())
def test_kernels_that_are_known_are_not_looked_at(kernel):
    looked = []
    X = np.abs(np.random.default_rng(0).normal(size=(20, 20)))
    values = provider(kernel, X @ X.T)
    values.among = lambda X, rows: looked.append(rows) or np.eye(len(rows))
    indefinite_values(values, X @ X.T, np.arange(20))
    assert bool(looked) == (kernel in ("sigmoid", "precomputed"))


def test_precomputed_values_are_checked_as_they_are_used():
    K = gram(20)
    K[15, 3] = np.inf
    blocks = provider("precomputed", K)
    blocks.store(np.arange(10), blocks.batch(K, 0, slice(10)), np.arange(10))
    blocks.against_support(blocks.batch(K, 10, slice(10, 15)))
    with pytest.raises(ValueError, match=r"kernel value of examples 15 and 3 must be .*, got inf"):
        blocks.against_support(blocks.batch(K, 15, slice(15, 20)))


def test_kernel_values_of_two_examples_are_checked_too():
    X = np.array([[1.0], [-1.0]]) * 1.7e33**0.5  # (-2 * 1.7e33) ** 3 is too large for -1.7e33 + 1.7e33 beside it
    blocks = provider("poly", X, degree=3, gamma=1.0, coef0=-1.7e33)
    with pytest.raises(ValueError, match=r"kernel='poly': the kernel value of examples 0 and 1 .*, got -3.93e\+100"):
        blocks.within(blocks.batch(X, 0))


# Callables


def overlap(A, B):
    """Letters two words share: a kernel on strings."""
    return np.array([[len(set(a) & set(b)) for b in B] for a in A])


WORDS = ["apple", "pear", "plum", "cherry", "fig", "grape"]


@pytest.mark.parametrize("kind", [list, tuple, lambda words: np.array(words, object)])
def test_a_function_sees_the_objects_as_they_came(kind):
    words = kind(WORDS)
    seen = set()

    def kernel(A, B):
        seen.add(type(A))
        assert {type(word) for word in [*A, *B]} == {str}
        return overlap(A, B)

    blocks = provider(kernel, words)
    assert blocks.dtype == np.float64
    batch = blocks.batch(words, 0, [0, 1, 2, 3])
    blocks.store([1, 0, 3], batch, [0, 1, 2])
    later = blocks.batch(words, 4, slice(4, 6))
    held = [WORDS[1], WORDS[0], WORDS[0], WORDS[2]]
    table = blocks.against_support(later, 6)
    assert table[:, [0, 1, 3]].tolist() == overlap(WORDS[4:], held)[:, [0, 1, 3]].tolist()
    assert blocks.within(later).tolist() == overlap(WORDS[4:], WORDS[4:]).tolist()
    assert blocks.diagonal(batch).tolist() == [4, 4, 4, 5]
    assert blocks.rows([3])[0, [0, 1, 3]].tolist() == overlap([WORDS[2]], held)[0, [0, 1, 3]].tolist()
    assert list(blocks.patterns([0, 3])) == [WORDS[1], WORDS[2]]
    scores = blocks.scores(words, [0, 3], np.eye(2))
    assert scores.tolist() == overlap(WORDS, [WORDS[1], WORDS[2]]).tolist()
    assert seen <= {list, tuple, np.ndarray}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_a_function_of_arrays_gets_arrays_in_the_calling_thread(layout, dtype):
    X = layout(examples(30, dtype=dtype))
    threads = set()

    def kernel(A, B):
        threads.add(threading.get_ident())
        assert type(A) is type(B) is type(X)
        return A @ B.T

    blocks = filled(kernel, X, 2)
    table = blocks.against_support(blocks.batch(X, 50))
    assert table.dtype == dtype
    close(table, (X @ X.T) if layout is np.asarray else (X @ X.T).toarray())
    assert threads == {threading.get_ident()}


def test_a_function_is_probed_once_for_both_precisions():
    X, sizes = examples(30, dtype=np.float32), []

    def kernel(A, B):
        sizes.append((len(A), len(B)))
        return A @ B.T

    blocks = filled(kernel, X)
    for _ in range(2):
        blocks.exact_scores(X, X[:20], np.ones((20, 1)))
    assert sizes.count((2, 1)) == 1


@pytest.mark.parametrize("form", [np.copy, lambda X: read_only(list(X))])
def test_a_compiled_function_that_needs_memory_to_write_to_gets_a_copy(form):
    def kernel(A, B):
        return [[pairwise.chi2_kernel(a[None], b[None])[0, 0] for b in B] for a in A]

    X = examples(9)
    blocks = provider(kernel, form(X))
    np.testing.assert_allclose(blocks.within(blocks.batch(form(X), 0)), pairwise.chi2_kernel(X), atol=1e-12)
