"""Examples given as bytes are taken as they are, and make the model that the same numbers in float32 make."""

import warnings

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import larank
from checks import VARIANTS, expansion
from larank import LaRankClassifier, LaSVMClassifier, MulticlassSVC, _core

MODELS = [LaRankClassifier, LaSVMClassifier, MulticlassSVC]
KERNELS = ["rbf", "poly", "sigmoid"]


@pytest.fixture(params=[True, False], ids=["integers", "floats"], autouse=True)
def _products(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(_core, "has_integer_products", lambda: False)
    elif not _core.has_integer_products():
        pytest.skip("this machine has no integer products that pay")


def data(dtype, n=200, d=7):
    info, random = np.iinfo(dtype), np.random.RandomState(0)
    X = random.randint(info.min, info.max + 1, (n, d)).astype(dtype)
    return X, (X[:, 0] > X[:, 1]).astype(int) + (X[:, 2] > (info.min + info.max) // 2)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("model", MODELS)
def test_bytes_make_the_model_of_the_same_numbers(model, dtype):
    X, y = data(dtype)
    K, fits = rbf_kernel(X.astype(float), gamma=1e-5), []
    for given in (X, X.astype(np.float32)):
        fits.append(model(C=10.0, gamma=1e-5, random_state=0).fit(given, y))
        certificate = VARIANTS[model.__name__][""][1].certificate(fits[-1], K, y, np.full(200, 10.0))
        assert (fits[-1].result_.primal, fits[-1].result_.dual) == pytest.approx(certificate, rel=1e-4)
    of_bytes, of_floats = fits
    assert of_bytes.result_.dual == pytest.approx(of_floats.result_.dual, rel=0.01)
    assert of_bytes.support_vectors_.dtype == dtype
    np.testing.assert_array_equal(of_bytes.support_vectors_, X[of_bytes.support_])
    beta, bias = getattr(of_bytes, "scale_", 1.0) * expansion(of_bytes), getattr(of_bytes, "intercept_", 0.0)
    for given in (X, X.astype(np.float64), X.astype(np.float32), X.astype(int), X + 0.5):
        scores = rbf_kernel(given.astype(float), of_bytes.support_vectors_.astype(float), gamma=1e-5) @ beta + bias
        np.testing.assert_allclose(of_bytes.decision_function(given), scores, atol=2e-5 * np.abs(scores).max())


@pytest.mark.parametrize("kernel", KERNELS)
def test_bytes_are_not_converted(kernel, monkeypatch):
    X, y = data(np.uint8, n=600)
    largest = []
    convert = np.ascontiguousarray

    def watched(array, dtype=None):
        converted = convert(array, dtype)
        if converted.dtype.kind == "f":
            largest.append(converted.size)
        return converted

    monkeypatch.setattr(np, "ascontiguousarray", watched)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", larank.CertificateWarning)
        LaRankClassifier(kernel, gamma=1e-5, random_state=0, batch_size=10).fit(X, y, certify=False)
    assert max(largest, default=0) <= X.size / 2


@pytest.mark.parametrize("kernel", ["linear", "laplacian", "chi2", "intersection"])
def test_other_kernels_convert_bytes(kernel):
    X, y = data(np.uint8)
    model = LaRankClassifier(kernel, gamma=1e-3, random_state=0).fit(X, y)
    assert model.support_vectors_.dtype == np.float64


@pytest.mark.parametrize("model", MODELS)
def test_models_of_bytes_are_saved_and_go_on_with_bytes_and_other_numbers(model, tmp_path):
    X, y = data(np.uint8)
    fitted = model(gamma=1e-5, random_state=0).fit(X, y)
    larank.save(fitted, tmp_path / "model")
    loaded = larank.load(tmp_path / "model")
    assert loaded.support_vectors_.dtype == np.uint8
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    if hasattr(model, "partial_fit"):
        streamed = model(gamma=1e-5, random_state=0).partial_fit(X, y)
        streamed.partial_fit(X[:20], y[:20])
        loaded.partial_fit(X[:20], y[:20])
        assert loaded.support_vectors_.dtype == streamed.support_vectors_.dtype == np.uint8
        given = np.concatenate([X, X[:20], X[:20] + 0.25])
        for each in (loaded, streamed):
            each.partial_fit(given[-20:], y[:20])
            np.testing.assert_array_equal(each.support_vectors_, given[each.support_])
