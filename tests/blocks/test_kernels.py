"""Kernels are found by name, with their parameters resolved, or refused with a reason."""

from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

from larank.blocks import kernels
from larank.blocks.kernels import ProductKernel, kernel_for

X = np.random.default_rng(0).normal(3.0, 2.0, (50, 4))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_a_named_gamma_is_that_of_svc(gamma, layout, dtype):
    data = X.astype(dtype) * (X > 2)
    expected = SVC(gamma=gamma).fit(data, X[:, 0] > 3)._gamma
    assert kernel_for("rbf", gamma=gamma, X=layout(data.astype(dtype))).gamma == pytest.approx(expected, rel=1e-6)


def test_gamma_of_constant_data_is_one():
    assert kernel_for("rbf", X=np.ones((3, 2))).gamma == 1.0


def test_the_variance_of_many_rows_is_summed_up_in_parts():
    many = np.random.default_rng(1).normal(1e3, 1.0, (200_000, 8)).astype(np.float32)
    assert kernel_for("rbf", X=many).gamma == pytest.approx(1 / (8 * many.astype(np.float64).var()), rel=1e-9)


def test_a_kernel_has_the_parameters_it_uses():
    poly = kernel_for("poly", gamma=0.5, degree=np.int64(2), coef0=1, X=X)
    assert (poly.gamma, poly.degree, poly.coef0) == (0.5, 2, 1.0)
    assert not hasattr(kernel_for("linear", X=X), "gamma")
    with pytest.raises(FrozenInstanceError):
        poly.gamma = 1.0


def test_adding_a_kernel_is_adding_a_class(monkeypatch):
    monkeypatch.setattr(kernels, "_named", dict(kernels._named))

    @dataclass(frozen=True)
    class Cosine(ProductKernel, name="cosine"):
        def map(self, tile, row_norms, column_norms):
            tile /= np.sqrt(np.outer(row_norms, column_norms))

        def diagonal(self, norms):
            return np.ones(len(norms))

    assert kernel_for("cosine") == Cosine()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_gamma_by_scale_needs_a_finite_variance(kind):
    X = np.finfo(np.float64).max * np.random.default_rng(0).uniform(size=(10, 2))
    with pytest.raises(ValueError, match=r"variance is finite with gamma='scale', got (inf|nan); scale X, or let"):
        kernel_for("rbf", gamma="scale", X=kind(X))
