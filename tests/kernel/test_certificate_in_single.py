"""Certificates on float32 data beyond a few kernel values: the primal objective is that of the published model."""

import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from checks import IS_NIGHTLY, VARIANTS
from larank import CertificateWarning, LaRankClassifier, LaSVMClassifier, MulticlassSVC, TrainingWarning
from larank.kernel.rounding import is_too_large

KERNELS = {"rbf": (rbf_kernel, {"gamma": 0.05}), "poly": (polynomial_kernel, {"gamma": 1.0, "degree": 3, "coef0": 1.0})}
PROBLEMS = [*product([1e2, 1e5, 1e8], range(2))] if IS_NIGHTLY else [(1e2, 1), (1e5, 0), (1e5, 1), (1e8, 0)]


@pytest.mark.parametrize(("C", "seed"), PROBLEMS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kind", [LaRankClassifier, LaSVMClassifier, MulticlassSVC])
def test_the_primal_objective_is_that_of_the_published_model_though_scores_are_rounded(kind, kernel, C, seed):
    """With C=1e5 and two classes, it is wrong if only examples with a loss in single precision are scored again."""
    random, k, (values, parameters) = np.random.RandomState(seed), 2 + seed % 2, KERNELS[kernel]
    y = np.arange(500) % k
    X = (random.randn(500, 3) + 1.5 * random.randn(k, 3)[y]).astype(np.float32)
    limit = {"max_iter": 5} if kind is MulticlassSVC else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        warnings.simplefilter("ignore", CertificateWarning)  # rounded values may not be positive semi-definite
        model = kind(kernel, C=C, random_state=0, **parameters, **limit).fit(X, y)
    K = values(X.astype(np.float64), **parameters)
    primal, _ = VARIANTS[kind.__name__][""][1].certificate(model, K, y, np.full(500, C))
    assert model.result_.exact
    assert model.result_.primal == pytest.approx(primal, rel=1e-4)
    assert not model.result_.dual > model.result_.primal  # it is NaN with a CertificateWarning


def test_three_standard_errors_of_the_mean_error_count_for_all_examples():
    errors = np.resize([1.0, -1.0], (64, 1))  # whose mean is zero, so 3 / sqrt(64) is what counts, twice per cost
    for primal, is_refused in ((7499.0, True), (7501.0, False)):
        found = is_too_large(
            np.arange(64), lambda rows: errors[rows], lambda rows: 0 * errors[rows], np.zeros((1, 1)), 1.0, primal, None
        )
        assert found == is_refused
