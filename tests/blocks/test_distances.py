"""Kernels of distances keep the digits of near rows, however large gamma |x|^2 is."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist

from larank import _core
from larank.blocks import provider_for
from larank.blocks.device import DeviceKernel, HostDevice
from larank.blocks.kernels import kernel_for, with_bias
from larank.blocks.shared import SharedValues

GAMMAS = 10.0 ** np.arange(-2, 13, 2)
DTYPES = (np.float32, np.float64)


def crowded(seed, far=0.0):
    """Rows of which some are equal, and others near to each other at two scales."""
    random = np.random.RandomState(seed)
    rows = random.randn(12, 5)
    near = [rows + scale * random.randn(*rows.shape) for scale in (1e-4, 1e-2)]
    X = np.vstack([rows, rows, *near]) * 10.0 ** random.uniform(-2, 2, 5) + far
    return X[random.permutation(len(X))]


def tolerance(dtype):
    return 100 * np.finfo(dtype).eps


def expected(X, gamma):
    X = X.astype(np.float64)
    return np.exp(-gamma * cdist(X, X, "sqeuclidean"))


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("far", [0, 1000], ids=["centred", "far from the origin"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_of_near_rows_are_right_for_every_gamma(kind, far, dtype):
    for seed, gamma in enumerate(GAMMAS):
        X = crowded(seed, far).astype(dtype)
        provider = provider_for(kernel_for("rbf", gamma=gamma), kind(X))
        provider.adopt(kind(X), np.arange(len(X)) + len(X))  # other ids, so that no diagonal is set
        values = provider.against_support(provider.batch(kind(X), 0))
        np.testing.assert_allclose(values, expected(X, gamma), rtol=0, atol=tolerance(dtype), err_msg=str(gamma))


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_of_near_rows_are_right_with_a_bias_and_in_shared_matrices(dtype):
    for seed, gamma in enumerate(GAMMAS):
        X, kernel = crowded(seed).astype(dtype), with_bias(kernel_for("rbf", gamma=gamma))
        shared = SharedValues(X, lambda kernel, X=X: provider_for(kernel, X), 1e9).of(kernel)
        np.testing.assert_allclose(shared, expected(X, gamma) + 1, rtol=0, atol=2 * tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_of_near_rows_are_right_on_a_device(dtype):
    for seed, gamma in enumerate(GAMMAS):
        for far in (0, 1000):
            X, kernel = crowded(seed, far).astype(dtype), with_bias(kernel_for("rbf", gamma=gamma))
            values = DeviceKernel(HostDevice(), kernel, np.dtype(dtype), X)
            rows = values.rows(X)
            # Rows are moved before they are subtracted from each other, which rounds some of them once.
            moved = np.exp(-gamma * cdist(*2 * [rows.X.astype(np.float64)], "sqeuclidean")) + 1
            np.testing.assert_allclose(values.values(rows, rows), moved, rtol=0, atol=2 * tolerance(dtype))
            if not far:
                assert np.abs(moved - expected(X, gamma) - 1).max() <= 1e-3


def test_which_distances_are_computed_again_does_not_depend_on_the_instruction_set():
    level, found = _core.simd_level(), []
    X = crowded(0).astype(np.float32)
    try:
        for _ in map(_core.set_simd_level, _core.simd_levels()):
            provider = provider_for(kernel_for("rbf", gamma=1e4), X)
            provider.adopt(X, np.arange(len(X)) + len(X))
            found.append(provider.against_support(provider.batch(X, 0)) == 1)
    finally:
        _core.set_simd_level(level)
    assert all((each == found[0]).all() for each in found)
    assert found[0].sum() >= 4 * 12 + 2 * 12  # each row with itself and with its copy


def test_only_near_pairs_of_examples_with_large_norms_are_computed_again():
    X = np.random.RandomState(0).randn(200, 5).astype(np.float32)
    norms = np.einsum("ij,ij->i", X, X)
    for gamma, pairs in ((0.1, 0), (1e6, 200)):  # of the second, each row with itself
        assert len(_core.map_rbf(X @ X.T, norms, norms, gamma)) == pairs


def test_pairs_are_checked_before_their_rows_are_read():
    X, out = np.zeros((2, 3)), np.zeros(1)
    for row in (-1, 2):
        with pytest.raises(ValueError, match="must be rows of X and Z"):
            _core.squared_distances(X, X, np.array([row]), np.array([0]), out)
