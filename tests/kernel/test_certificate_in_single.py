"""Certificates on float32 data beyond a few kernel values: the primal objective is that of the published model."""

import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

import larank
from larank.kernel.rounding import is_too_large
from larank.training import CertificateWarning, TrainingWarning

VALUES = {
    "rbf": lambda A, B: rbf_kernel(A, B, gamma=0.05),
    "poly": lambda A, B: polynomial_kernel(A, B, degree=3, gamma=1.0, coef0=1.0),
}
KERNELS = {"rbf": {"kernel": "rbf", "gamma": 0.05}, "poly": {"kernel": "poly", "gamma": 1.0, "degree": 3, "coef0": 1.0}}


def published_primal(model, X, y):
    """Return the primal objective of the decision function that the attributes define, in double precision."""
    values, X, S = VALUES[model.kernel], X.astype(np.float64), model.support_vectors_.astype(np.float64)
    classes = np.arange(len(model.classes_))
    if isinstance(model, larank.LaSVMClassifier):
        beta = model.dual_coef_.T
        signs = np.where(y[:, None] == (classes[1:] if len(classes) == 2 else classes), 1.0, -1.0)
        losses = np.maximum(0, 1 - signs * (values(X, S) @ beta + model.intercept_)).sum()
    else:
        beta = getattr(model, "scale_", 1.0) * model.dual_coef_.toarray()
        scores = values(X, S) @ beta
        losses = ((scores + 1 - np.eye(len(classes))[y]).max(axis=1) - scores[np.arange(len(y)), y]).sum()
    return np.einsum("ik,ij,jk->", beta, values(S, S), beta) / 2 + model.C * losses


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("C", [1e2, 1e5, 1e8])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", [larank.LaRankClassifier, larank.LaSVMClassifier, larank.MulticlassSVC])
def test_the_primal_objective_is_that_of_the_published_model_though_scores_are_rounded(kind, kernel, C, seed):
    random, k = np.random.RandomState(seed), 2 + seed % 2
    y = np.arange(500) % k
    X = (random.randn(500, 3) + 1.5 * random.randn(k, 3)[y]).astype(np.float32)
    limit = {"max_iter": 20} if kind is larank.MulticlassSVC else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        warnings.simplefilter("ignore", CertificateWarning)  # rounded values may not be positive semi-definite
        model = kind(C=C, random_state=0, **KERNELS[kernel], **limit).fit(X, y)
    assert model.result_.exact
    assert model.result_.primal == pytest.approx(published_primal(model, X, y), rel=1e-4)
    assert not model.result_.dual > model.result_.primal  # it is NaN with a CertificateWarning


def test_three_standard_errors_of_the_mean_error_count_for_all_examples():
    errors = np.resize([1.0, -1.0], (64, 1))  # whose mean is zero, so 3 / sqrt(64) is what counts, twice per cost
    for primal, is_refused in ((7499.0, True), (7501.0, False)):
        found = is_too_large(
            np.arange(64), lambda rows: errors[rows], lambda rows: 0 * errors[rows], np.zeros((1, 1)), 1.0, primal, None
        )
        assert found == is_refused
