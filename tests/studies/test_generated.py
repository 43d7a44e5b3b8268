"""Examples that are drawn have the shapes and properties they stand in for, and are the same for the same seed."""

import numpy as np
import pytest
from scipy import sparse

from studies.datasets import GRADIENT, is_available, load, load_small
from studies.generated import ill_conditioned, text_like


def test_dense_examples_have_no_zeros_uneven_scales_and_rows_of_unit_length():
    X, y, X_test, y_test = ill_conditioned(3000, 1000, 60)
    assert (X.shape, X_test.shape) == ((3000, 60), (1000, 60))
    assert X.dtype == X_test.dtype == np.float32
    assert np.count_nonzero(X) == X.size
    scales = X.std(axis=0)
    assert scales.max() > 10 * scales.min()
    both = np.vstack([X, X_test])
    assert np.sqrt(np.mean(np.sum(both * both, axis=1))) == pytest.approx(1, rel=1e-3)
    assert set(y) == set(y_test) == {-1, 1}
    assert abs(y.mean()) < 0.1


def test_text_has_the_density_of_rcv1_common_words_and_rows_of_unit_length():
    X, y, X_test, _ = text_like(4000, 100)
    assert X.shape == (4000, 47_152)
    assert X_test.shape == (100, 47_152)
    assert X.dtype == np.float32
    assert X.nnz / np.prod(X.shape) == pytest.approx(0.0016, rel=0.03)
    assert X.has_canonical_format
    assert np.allclose(sparse.linalg.norm(X, axis=1), 1, atol=1e-5)
    seen = np.sort(np.bincount(X.indices))[::-1]
    assert 0.2 < seen[0] / 4000 < 0.6
    assert seen[100] > 10 * seen[5000]
    assert abs(y.mean()) < 0.05


@pytest.mark.parametrize("drawn", [ill_conditioned, text_like])
def test_the_same_seed_draws_the_same(drawn):
    first, again, other = (drawn(200, 50, 40, seed=seed) for seed in (1, 1, 2))
    assert abs(first[0] - again[0]).max() == 0
    assert np.array_equal(first[1], again[1])
    assert abs(first[0] - other[0]).max() > 0


@pytest.mark.parametrize("name", GRADIENT)
def test_small_forms_have_labels_of_two_signs_and_rows_in_single_precision(name):
    if not is_available(GRADIENT[name].source):
        pytest.skip(f"needs {GRADIENT[name].source} in the data directory (LARANK_DATA)")
    data = load_small(name, GRADIENT, 1000, 500)
    assert data.X_train.dtype == data.X_test.dtype == np.float32
    assert set(data.y_train) == {-1, 1}
    assert sparse.issparse(data.X_train) == (name in ("news20-0", "rcv1"))


@pytest.mark.skipif(not is_available("news20"), reason="needs news20 in the data directory (LARANK_DATA)")
def test_the_first_group_is_one_of_twenty():
    data = load("news20-0", GRADIENT)
    assert np.mean(data.y_train == 1) == pytest.approx(0.05, abs=0.02)
