"""The compiled kernel maps are right, exact where they should be, and the same on every instruction set."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import pairwise

from larank import _core

LEVELS = _core.simd_levels()
DTYPES = [np.float32, np.float64]
pytestmark = pytest.mark.usefixtures("level_restored")


@pytest.fixture(scope="module")
def level_restored():
    level = _core.simd_level()
    yield
    _core.set_simd_level(level)


def squared(X):
    return np.einsum("ij,ij->i", X, X)


FILL = {
    "rbf": lambda tile, X, Z: _core.map_rbf(tile, squared(X), squared(Z), 0.3),
    "poly": lambda tile, X, Z: _core.map_polynomial(tile, 0.3, 0.5, 3),
    "sigmoid": lambda tile, X, Z: _core.map_sigmoid(tile, 0.3, -0.5),
    "laplacian": lambda tile, X, Z: _core.compare_laplacian(X, Z, 0.3, tile),
    "chi2": lambda tile, X, Z: _core.compare_chi_squared(X, Z, 0.3, tile),
    "intersection": lambda tile, X, Z: _core.compare_intersection(X, Z, 0.0, tile),
}
REFERENCE = {
    "rbf": lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.3),
    "poly": lambda X, Z: pairwise.polynomial_kernel(X, Z, gamma=0.3, coef0=0.5, degree=3),
    "sigmoid": lambda X, Z: pairwise.sigmoid_kernel(X, Z, gamma=0.3, coef0=-0.5),
    "laplacian": lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=0.3),
    "chi2": lambda X, Z: pairwise.chi2_kernel(X, Z, gamma=0.3),
    "intersection": lambda X, Z: np.minimum(X[:, None], Z[None]).sum(axis=2),
}


@st.composite
def pairs_of_rows(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, others, features = (draw(st.integers(1, 40)) for _ in range(3))
    dtype = draw(st.sampled_from(DTYPES))
    X, Z = rng.random((rows, features)), rng.random((others, features))
    X[rng.random(X.shape) < 0.3] = 0
    Z[rng.random(Z.shape) < 0.3] = 0
    return X.astype(dtype), Z.astype(dtype)


def values_of(kernel, X, Z, tile):
    tile[...] = X @ Z.T
    FILL[kernel](tile, X, Z)
    return tile


def same_on_every_level(compute):
    """Return what is computed with each instruction set, which must be the same to the last bit."""
    found = {}
    for level in LEVELS:
        _core.set_simd_level(level)
        found[level] = compute()
        assert found[level].tobytes() == found["scalar"].tobytes(), level
    return found["scalar"]


@pytest.mark.parametrize("kernel", REFERENCE)
@given(pairs_of_rows())
def test_values_are_those_of_scikit_learn_and_bit_identical_at_every_level(kernel, rows):
    X, Z = rows
    found = same_on_every_level(lambda: values_of(kernel, X, Z, np.empty((len(X), len(Z)), X.dtype)))
    tolerance = 2e-5 if X.dtype == np.float32 else 1e-13
    expected = REFERENCE[kernel](X.astype(np.float64), Z.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kernel", REFERENCE)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tile_of_a_larger_table_is_filled_and_nothing_else(kernel, dtype):
    rng = np.random.default_rng(0)
    X, Z = rng.random((5, 33)).astype(dtype), rng.random((21, 33)).astype(dtype)
    table = np.full((7, 40), -7, dtype)
    values_of(kernel, X, Z, table[1:6, 3:24])
    assert table[1:6, 3:24].tobytes() == values_of(kernel, X, Z, np.empty((5, 21), dtype)).tobytes()
    table[1:6, 3:24] = -7
    assert (table == -7).all()


def exp_of_minus(x, level):
    """The map itself: rows at distance x."""
    _core.set_simd_level(level)
    tile = np.zeros((1, len(x)), x.dtype)
    _core.map_rbf(tile, np.zeros(1, x.dtype), x, 1.0)
    return tile[0]


def ulps(values, exact):
    return float(np.max(np.abs(values - exact) / np.spacing(np.abs(exact).astype(values.dtype))))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("dtype", "last"), [(np.float32, 87.3), (np.float64, 708.3)])
def test_the_exponential_is_accurate_to_two_units_in_the_last_place(dtype, last, level):
    rng = np.random.default_rng(1)
    x = np.concatenate([np.linspace(0, last, 20000), 10.0 ** rng.uniform(-12, 1.9, 20000)]).astype(dtype)
    assert ulps(exp_of_minus(x, level), np.exp(-x.astype(np.longdouble))) < 2


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_exponential_is_one_at_zero_and_underflows_to_zero(dtype, level):
    values = exp_of_minus(np.array([0.0, -1.0, 709.0, 1e30, np.inf], dtype), level)
    assert values.tolist() == [1, 1, 0, 0, 0]  # a distance below zero is rounding: clamped


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_that_are_none_stay_none(dtype):
    assert np.isnan(exp_of_minus(np.array([np.nan], dtype), LEVELS[-1])).all()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_tanh_is_accurate_near_zero_and_far(dtype, level):
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(size=20000), rng.uniform(-30, 30, 20000), rng.normal(size=2000) * 1e-8]).astype(
        dtype
    )
    _core.set_simd_level(level)
    tile = x[None].copy()
    _core.map_sigmoid(tile, 1.0, 0.0)
    assert ulps(tile[0], np.tanh(x.astype(np.longdouble))) < 3


@pytest.mark.parametrize("degree", [1, 2, 5, 8])
def test_powers_are_products(degree):
    tile = np.array([[1.5, -2.0, 0.0]])
    _core.map_polynomial(tile, 2.0, 1.0, degree)
    assert tile.tolist() == [[4.0**degree, (-3.0) ** degree, 1.0]]


def products(compute, X, Z):
    """Return products of rows that were written to a part of a wider table, of which nothing else may change."""
    table = np.full((X.shape[0], Z.shape[0] + 3), np.nan, X.dtype)
    sides = [(M.data, M.indices.astype(np.int32), M.indptr.astype(np.int64)) for M in (X, Z) if sparse.issparse(M)]
    compute(*([*sides[0], *sides[1], X.shape[1]] if sides else [X, Z]), table[:, :-3])
    assert np.isnan(table[:, -3:]).all()
    return table[:, :-3].copy()


many, few, features = st.integers(1, 300), st.integers(1, 70), st.integers(0, 80)


@given(st.integers(0, 2**32), many, many, st.integers(1, 80), st.sampled_from(DTYPES))
def test_products_of_sparse_rows_are_right_and_bit_identical_at_every_level(seed, rows, others, features, dtype):
    rng = np.random.default_rng(seed)
    X, Z = (sparse.random(count, features, 0.2, "csr", dtype, rng) for count in (rows, others))
    found = same_on_every_level(lambda: products(_core.sparse_products, X, Z))
    np.testing.assert_allclose(found, (X @ Z.T).toarray(), rtol=1e-5, atol=1e-6)


@given(st.integers(0, 2**32), few, few, features, st.sampled_from(DTYPES))
def test_products_of_dense_rows_are_right_symmetric_and_bit_identical_at_every_level(seed, rows, others, width, dtype):
    rng = np.random.default_rng(seed)
    X, Z = (rng.normal(size=(count, width)).astype(dtype) for count in (rows, others))
    found = same_on_every_level(lambda: products(_core.dense_products, X, Z))
    np.testing.assert_allclose(found, X @ Z.T, rtol=1e-5, atol=1e-4)
    assert products(_core.dense_products, Z, X).T.tobytes() == found.tobytes()


@pytest.mark.skipif(not _core.has_wide_products(), reason="this machine has no wide products (AVX-512)")
@given(st.integers(0, 2**32), few, few, features, st.sampled_from(DTYPES))
def test_wide_products_are_right_symmetric_and_depend_on_the_two_rows_alone(seed, rows, others, width, dtype):
    rng = np.random.default_rng(seed)
    X, Z = (rng.normal(size=(count, width)).astype(dtype) for count in (rows, others))
    _core.set_simd_level(LEVELS[-1])
    found = products(_core.wide_products, X, Z)
    rounding = max(1, width) * np.finfo(dtype).eps
    size = np.abs(X).astype(float) @ np.abs(Z).T.astype(float)
    assert (np.abs(found - X.astype(float) @ Z.T.astype(float)) <= rounding * size).all()
    assert products(_core.wide_products, Z, X).T.tobytes() == found.tobytes()
    some, rest = rng.permutation(rows)[: (rows + 1) // 2], rng.permutation(others)[: (others + 1) // 2]
    assert products(_core.wide_products, X[some], Z[rest]).tobytes() == found[np.ix_(some, rest)].tobytes()


def test_wide_products_are_an_error_where_there_are_none():
    _core.set_simd_level("scalar")
    with pytest.raises(ValueError, match="AVX-512, got the SIMD level 'scalar'"):
        _core.wide_products(np.zeros((2, 4)), np.zeros((3, 4)), np.zeros((2, 3)))


def test_wrong_types_and_shapes_are_errors_and_never_copies():
    tile, norms = np.zeros((2, 3)), np.zeros(3)
    with pytest.raises(ValueError, match="same features"):
        _core.dense_products(np.zeros((2, 4)), np.zeros((3, 5)), tile)
    with pytest.raises(TypeError):
        _core.map_rbf(tile.astype(np.int64), norms[:2], norms, 1.0)
    with pytest.raises(TypeError):
        _core.map_rbf(tile, norms[:2].astype(np.float32), norms, 1.0)
    with pytest.raises(ValueError, match="one entry per row and column"):
        _core.map_rbf(tile, norms, norms, 1.0)
    with pytest.raises(ValueError, match="side by side"):
        _core.map_sigmoid(tile.T, 1.0, 0.0)
    with pytest.raises(ValueError, match="same features"):
        _core.compare_laplacian(np.zeros((2, 4)), np.zeros((3, 5)), 1.0, tile)
    starts, columns = np.array([0, 1]), np.array([9], np.int32)
    with pytest.raises(ValueError, match="columns must count"):
        _core.sparse_products(np.ones(1), columns, starts, np.ones(1), columns, starts, 9, tile[:1, :1])
    with pytest.raises(ValueError, match="starts must ascend"):
        _core.sparse_products(np.ones(1), columns, starts[::-1].copy(), np.ones(1), columns, starts, 10, tile[:1, :1])
