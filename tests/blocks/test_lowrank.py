"""Low-rank factors are those of dense linear algebra, and what they leave of the trace is what they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from larank import MemoryLimitError
from larank.blocks import provider_for
from larank.blocks.kernels import kernel_for
from larank.blocks.lowrank import (
    CholeskyOptions,
    _smallest_ritz_value,
    cholesky_features,
    eigen_factor,
    pivoted_cholesky,
    thinned,
)


def examples(n=200, d=5, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def provider(X, name="rbf", gamma=0.3, n_jobs=1):
    return provider_for(kernel_for(name, gamma=gamma, X=X), X, n_jobs=n_jobs)


def factor(X, name="rbf", *, gamma=0.3, rank=None, tolerance=0.0, greedy=False, block=256, limit=1e9, seed=0, jobs=1):
    options = CholeskyOptions(rank, tolerance, greedy, block, limit)
    return pivoted_cholesky(provider(X, name, gamma, jobs), X, options, np.random.RandomState(seed))


def test_one_pivot_at_a_time_the_greedy_choice_is_the_one_of_the_book():
    """It is the largest residual, one pivot after the other."""
    X = examples(60) * np.linspace(0.5, 2, 60)[:, None]
    K = X @ X.T + (X @ X.T) ** 2
    options = CholeskyOptions(12, 0.0, True, 1, 1e9)
    found = pivoted_cholesky(provider(K, "precomputed"), K, options, np.random.RandomState(0))
    L = np.zeros((60, 0))
    for pivot in found.pivots:
        left = K - L @ L.T
        assert pivot == left.diagonal().argmax()
        L = np.column_stack([L, left[:, pivot] / np.sqrt(left[pivot, pivot])])
    assert len(found.pivots) == 12
    np.testing.assert_allclose(found.table, L, atol=1e-9 * np.abs(L).max())


@pytest.mark.parametrize("greedy", [False, True])
def test_the_rows_of_the_pivots_are_the_cholesky_factor_of_their_kernel_values(greedy):
    X = examples()
    found = factor(X, rank=70, greedy=greedy, block=16)
    expected = np.linalg.cholesky(rbf_kernel(X[found.pivots], gamma=0.3))
    np.testing.assert_allclose(found.lower, expected, atol=1e-10)
    np.testing.assert_allclose(found.table[found.pivots], expected, atol=1e-10)
    assert np.array_equal(found.lower, np.tril(found.lower))


@pytest.mark.parametrize("greedy", [False, True])
def test_the_trace_error_is_exact_after_every_block(greedy):
    X = examples()
    found = factor(X, rank=80, greedy=greedy, block=16)
    assert len(found.trace_errors) == len(found.widths) == 5
    for columns, error in zip(np.cumsum(found.widths), found.trace_errors, strict=True):
        assert error == pytest.approx(1 - (found.table[:, :columns] ** 2).sum() / 200, abs=1e-12)
    assert found.trace_errors == sorted(found.trace_errors, reverse=True)
    best = np.linalg.eigvalsh(rbf_kernel(X, gamma=0.3))[:-80].sum() / 200
    assert found.trace_error >= best


def test_what_is_left_is_positive_semi_definite_and_bounded_by_its_diagonal():
    X = examples()
    found = factor(X, rank=60)
    left = rbf_kernel(X, gamma=0.3) - found.table @ found.table.T
    assert np.linalg.eigvalsh(left)[0] > -1e-10
    assert np.abs(left).max() <= left.diagonal().max() + 1e-12
    np.testing.assert_allclose(left[found.pivots], 0, atol=1e-10)


@pytest.mark.parametrize("tolerance", [0.5, 0.1, 0.01])
def test_a_tolerance_takes_no_pivot_more_than_it_needs(tolerance):
    X = examples(300)
    found = factor(X, tolerance=tolerance)
    assert found.trace_error <= tolerance
    out = np.empty((300, len(found.pivots)))
    blocks = provider(X)
    blocks.adopt(X[found.pivots], found.pivots)
    cholesky_features(blocks, X, blocks.stored(), found.lower, found.widths, out)
    assert 1 - (out**2).sum() / 300 == pytest.approx(found.trace_error, abs=1e-10)
    assert 1 - (out[:, :-1] ** 2).sum() / 300 > tolerance


@pytest.mark.parametrize("jobs", [2, 3])
def test_threads_change_neither_pivots_nor_columns_and_the_seed_decides(jobs):
    X = examples(1500, dtype=np.float32)
    for options in ({"rank": 150}, {"tolerance": 0.3}, {"rank": 150, "greedy": True}):
        one, other = factor(X, **options), factor(X, jobs=jobs, **options)
        np.testing.assert_array_equal(one.pivots, other.pivots)
        np.testing.assert_array_equal(one.lower, other.lower)
        assert one.trace_errors == other.trace_errors
    assert not np.array_equal(*(factor(X, rank=150, seed=seed).pivots for seed in (0, 1)))


def test_random_pivots_leave_less_than_as_many_examples_drawn_evenly():
    X = examples(2000, 8)
    K = rbf_kernel(X, gamma=0.05)
    ours, even = [], []
    for seed in range(4):
        ours.append(factor(X, gamma=0.05, rank=200, seed=seed).trace_error)
        some = np.random.default_rng(seed).choice(2000, 200, replace=False)
        L = np.linalg.cholesky(K[np.ix_(some, some)] + 1e-12 * np.eye(200))
        even.append(1 - (np.linalg.solve(L, K[some]) ** 2).sum() / 2000)
    assert np.mean(ours) < 0.98 * np.mean(even)


def test_thinning_drops_what_a_pivot_has_explained():
    X = examples(10)
    K = rbf_kernel(np.concatenate([X, X[:4]]), gamma=0.3)
    columns, chosen = thinned(K, np.full(14, 1e-12))
    assert sorted(np.asarray(chosen) % 10) == list(range(10))
    np.testing.assert_allclose(columns @ columns.T, K, atol=1e-12)


def test_more_columns_than_memory_are_refused_before_anything_is_computed(monkeypatch):
    X = examples(100)
    blocks = provider(X)
    monkeypatch.setattr(blocks, "measure", lambda X: pytest.fail("work was begun"))
    with pytest.raises(
        MemoryLimitError, match=r"at least 40000 bytes for 50 .* of 100 examples, got 9999; n_comp.*=12 "
    ):
        pivoted_cholesky(blocks, X, CholeskyOptions(50, 0.0, False, 256, 9999), np.random.RandomState(0))


@given(
    seed=st.integers(0, 2**16),
    rank=st.integers(1, 6),
    copies=st.integers(1, 4),
    scale=st.sampled_from([1e-4, 1.0, 1e3]),
    dtype=st.sampled_from([np.float32, np.float64]),
    greedy=st.booleans(),
    block=st.sampled_from([1, 3, 256]),
)
def test_a_kernel_matrix_of_low_rank_is_found_with_no_more_columns(seed, rank, copies, scale, dtype, greedy, block):
    random = np.random.default_rng(seed)
    X = scale * random.normal(size=(12, rank)) @ random.normal(size=(rank, 9))
    X = np.concatenate([np.repeat(X, copies, axis=0), np.zeros((2, 9))]).astype(dtype)
    found = factor(X, "linear", rank=len(X), greedy=greedy, block=block)
    # Pivots that are almost in the span of others leave residuals of rounding, times a condition: in single precision
    # often, in double precision now and then where they are drawn at random.
    most = rank if greedy else rank + 1
    assert len(found.pivots) <= (most if dtype == np.float64 else 2 * rank)
    Z = found.table.astype(np.float64)
    K = X.astype(np.float64) @ X.T.astype(np.float64)
    np.testing.assert_allclose(Z @ Z.T, K, atol=(1e-3 if dtype == np.float32 else 1e-9) * np.abs(K).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("unique", [1, 20])
def test_duplicates_are_no_pivots(unique, dtype, greedy):
    X = np.repeat(examples(unique, dtype=dtype), 10, axis=0)
    found = factor(X, rank=10 * unique, greedy=greedy)
    assert len(found.pivots) == len(set(found.pivots // 10)) == unique
    assert found.trace_error < (1e-5 if unique > 1 else 1e-6)


@pytest.mark.parametrize("given", [{}, {"rank": 5}])
def test_a_kernel_of_zeros_has_one_feature_that_is_zero(given):
    X = np.zeros((30, 4))
    found = factor(X, "linear", **given)
    assert found.trace_error == 0
    out, blocks = np.full((30, 1), np.nan), provider(X, "linear")
    blocks.adopt(X[:1], [0])
    cholesky_features(blocks, X, blocks.stored(), found.lower, found.widths, out)
    assert not out.any()
    assert found.table is None or not found.table.any()


@pytest.mark.parametrize("gamma", [1e-4, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("shift", [0.0, 30.0])
def test_rounding_in_single_precision_does_not_look_like_an_indefinite_kernel(gamma, shift):
    X = (examples(400, 10) + shift).astype(np.float32)
    for greedy in (False, True):
        Z = factor(X, gamma=gamma, greedy=greedy, rank=400).table.astype(np.float64)
        assert np.abs(Z @ Z.T - rbf_kernel(X.astype(np.float64), gamma=gamma)).max() < 2e-3


def test_the_pivot_that_shows_an_indefinite_kernel_is_named():
    K = np.eye(40)
    K[:3, :3] = [[1, 0.9, 0], [0.9, 1, 0.9], [0, 0.9, 1]]
    for greedy in (False, True):
        options = CholeskyOptions(None, 0.0, greedy, 8, 1e9)
        with pytest.raises(
            ValueError, match=r"pivot \d+, example [012], has a residual of -?[\d.e-]+ of k\(x, x\) = 1"
        ):
            pivoted_cholesky(provider(K, "precomputed"), K, options, np.random.RandomState(0))
    for count, eigenvalue in ((None, -0.27), (3, -0.2)):
        with pytest.raises(ValueError, match=rf"positive semi-definite, .* has the eigenvalue {eigenvalue}"):
            eigen_factor(provider(K, "precomputed"), K, np.arange(40), count)


def test_a_zero_diagonal_does_not_hide_what_stands_beside_it():
    kernel = kernel_for(lambda A, B: 1.0 * (A[:, :1] != B[:, 0]))
    X, options = np.arange(6.0)[:, None] % 2, CholeskyOptions(None, 0.0, False, 256, 1e9)
    with pytest.raises(ValueError, match=r"pivot 0, example \d, has a residual of 0 .* beside the 1 "):
        pivoted_cholesky(provider_for(kernel, X), X, options, np.random.RandomState(0))


def test_eigenvectors_are_those_of_the_whole_matrix():
    X = examples(150)
    K = rbf_kernel(X, gamma=0.3)
    values, vectors = np.linalg.eigh(K)
    for count in (None, 7):
        found = eigen_factor(provider(X), X, np.arange(150), count)
        kept = len(found.eigenvalues)
        assert kept == (count or 150)
        np.testing.assert_allclose(found.eigenvalues, values[::-1][:kept], atol=1e-10)
        np.testing.assert_allclose(found.factor.T @ K @ found.factor, np.eye(kept), atol=1e-8)
    np.testing.assert_allclose(
        np.abs(found.factor), np.abs(vectors[:, ::-1][:, :7] / np.sqrt(values[::-1][:7])), atol=1e-8
    )
    largest = np.abs(found.factor).argmax(axis=0)
    assert (found.factor[largest, np.arange(7)] > 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_eigenvalues_that_are_rounding_are_left_out(dtype):
    X = np.repeat(examples(25, dtype=dtype), 4, axis=0)
    for count in (None, 60):
        assert len(eigen_factor(provider(X), X, np.arange(100), count).eigenvalues) == 25
    nothing = eigen_factor(provider(0 * X, "linear"), 0 * X, np.arange(100), None)
    assert nothing.factor.shape == (100, 1)
    assert not nothing.factor.any()


def test_a_ritz_value_is_never_below_the_smallest_eigenvalue_and_near_one_that_stands_out():
    random = np.random.default_rng(0)
    Q = np.linalg.qr(random.normal(size=(300, 300)))[0]
    for lowest in (-5.0, -0.3, 0.0):
        K = (Q * np.r_[lowest, np.linspace(0, 1, 298), 10.0]) @ Q.T
        ritz = _smallest_ritz_value(K)
        assert lowest - 1e-9 <= ritz <= (lowest * 0.9 if lowest else 0.05)
