"""LaRankClassifier: one stream makes one model, it is feasible, its certificate true and its optimum the SVM's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from overlapping import PROBLEMS, assert_certificate, assert_feasible, data, indefinite, margins_and_weights, rbf
from scipy import sparse
from sklearn.base import clone

from checks import assert_same_model, clouds, coefficients
from larank import CertificateWarning, LaRankClassifier
from larank.data import models
from properties import draws
from references.optima import kernel_certificate, kernel_optimum


def larank(kernel="rbf", **parameters):
    """In one pass, unless something else is said."""
    passes = {} if parameters.get("stop") == "gap" else {"epochs": 1}
    return LaRankClassifier(kernel, **{"random_state": 0, "n_jobs": 1, **passes, **parameters})


def converged(kernel="precomputed", tol=1e-7, **parameters):
    return larank(kernel, tol=tol, max_iter=100_000, **parameters)


@draws(60)
@given(
    **PROBLEMS,
    max_iter=st.sampled_from([1, 4, None]),
    schedule=st.sampled_from(["adaptive", "fixed"]),
    weights=st.sampled_from([[1], [0, 0.5, 1, 3]]),
    margins=st.booleans(),
)
def test_the_certificate_is_what_the_formulas_say_and_a_small_gap_the_optimum_of_a_general_solver(
    n, k, seed, C, kernel, epochs, schedule, weights, margins
):
    k = min(n, k)
    X, y = data(n, k, seed, dimensions=3)  # with duplicates of conflicting labels and zero vectors
    delta, weight = margins_and_weights(k, n, y, seed, margins, weights, (0.5, 1, 2.5))
    K = rbf(X) if kernel == "rbf" else X @ X.T
    settings = {"C": C, "schedule": schedule, "cost_matrix": delta if margins else None}
    model = converged(**settings) if epochs is None else larank("precomputed", max_iter=epochs, **settings)
    result = model.fit(K, y, weight).result_
    assert_feasible(model, y, C * weight)
    assert_certificate(model, K, y, C * weight, delta, violated=1, kappa=0.0)
    assert result.status == ("converged" if epochs is None else "completed")
    assert result.iterations == epochs or not epochs
    duals = [point.dual for point in result.history]
    assert (np.diff(duals) >= -1e-9 * max(duals)).all()
    for point in result.history:
        assert point.gap >= (-1e-9 * point.primal if point.exact else 0)
        assert point.primal >= result.dual * (1 - 1e-9) or not point.exact
    if n <= 14:
        best = kernel_optimum(K, y, C * weight, delta)
        assert result.dual <= best * (1 + 2e-7) + 1e-9 * C
        assert result.primal >= best * (1 - 2e-7) - 1e-9 * C
        assert epochs or (result.dual, result.primal) == pytest.approx((best, best), rel=2e-7, abs=1e-9 * C)
    assert epochs or result.relative_gap <= 1e-7


def test_the_result_counts_the_work():
    X, y = data(400, 3)
    model = larank(batch_size=100).fit(X, y)
    counts = model.result_.operations
    assert counts["process_new"] == 400
    assert counts["process_old"] > 0
    assert counts["optimize"] > 0
    assert counts["steps"] >= len(model.support_)
    assert 400 <= model.result_.argmax_calls == counts["process_new"] + counts["process_old"]
    assert 0 < model.result_.kernel_values <= 400 * 400
    assert 20 <= len(model.result_.history) <= 402
    assert {"product", "map", "selection", "steps", "certificate"} <= set(model.result_.breakdown)


def test_the_steps_of_a_linear_stream_are_counted_once_however_often_a_model_is_taken():
    X, y = data(120, 3)
    whole = larank("linear").partial_fit(X, y, classes=np.unique(y)).result_.operations
    model = larank("linear")
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.unique(y))
    counts = model.result_.operations
    assert all(counts[name] == whole[name] for name in ("process_new", "process_old", "optimize"))
    assert counts["steps"] == pytest.approx(whole["steps"], rel=0.05)
    assert 0 < counts["finishing_steps"] < 10 * whole["finishing_steps"]  # of the last call, not of all 120


def test_by_default_the_gap_to_stop_at_is_the_cost():
    X, y = data(300, 3)
    for C in (0.1, 10.0):
        model = larank(C=C).fit(X, y)
        assert model.result_.gap <= C
        assert model.result_.status == "converged"


def test_one_pass_comes_close_and_more_passes_closer():
    X, y = data(400, 4)
    best = larank(tol=1e-4).fit(X, y).result_.dual
    one, three = (larank(max_iter=epochs).fit(X, y).result_.dual for epochs in (1, 3))
    assert 0.85 * best < one < three <= best * (1 + 1e-9)


def test_without_reprocessing_it_is_process_new_alone():
    """test_forgetting spells the algorithm out, test_perceptron_session compares it with passive-aggressive."""
    (X, labels), settings = data(300, 4, dimensions=3), {"shuffle": False}
    model = larank("precomputed", schedule="fixed", n_reprocess=0, **settings).fit(rbf(X), labels)
    counts = model.result_.operations
    assert (counts["process_new"], counts["process_old"], counts["optimize"]) == (300, 0, 0)
    assert_same_model(model, larank("precomputed", operations="new", **settings).fit(rbf(X), labels))


def test_operations_are_a_name_or_any_collection_of_names_and_each_kind_helps():
    given = ["new", ["new", "old"], {"optimize", "new"}, ("old", "new", "optimize")]
    results = [larank(operations=operations).fit(*data(500, 4)).result_ for operations in given]
    names = {"process_new": "new", "process_old": "old", "optimize": "optimize"}
    for operations, result in zip(given, results, strict=True):
        made = {names[name] for name in names if result.operations[name]}
        assert made == ({"new"} if operations == "new" else {*operations})
    new, old, _, every = (result.dual for result in results)
    assert new < old < every


X, y = data(160, 3)


def test_rows_without_values_are_examples_like_others():
    some = np.where(np.arange(160)[:, None] % 5 == 0, 0, X)
    for kernel in ("linear", "rbf"):
        model = converged(kernel, tol=1e-6, gamma=0.3)
        dense, stored = (clone(model).fit(layout(some), y) for layout in (np.asarray, sparse.csr_matrix))
        assert dense.result_.dual == pytest.approx(stored.result_.dual, rel=1e-5)
        assert stored.support_vectors_.shape == (len(stored.support_), 4)
    nothing = larank("linear").fit(sparse.csr_matrix(np.zeros((6, 4))), [0, 1] * 3)
    assert sparse.issparse(nothing.support_vectors_)
    assert nothing.support_vectors_.shape == (5, 4)  # the first example had no other class to be told apart from


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_stands_in_memory_that_was_never_written_does_not_matter(jobs, monkeypatch):
    some, labels = data(200, 3, dimensions=2)
    model, allocate = larank("precomputed", n_jobs=jobs, batch_size=32, max_iter=2), np.empty
    clean = clone(model).fit(some @ some.T, labels)

    def poisoned(shape, dtype=float, *arguments, **options):
        array = allocate(shape, dtype, *arguments, **options)
        array[...] = np.nan if array.dtype.kind == "f" else array
        return array

    monkeypatch.setattr(np, "empty", poisoned)
    assert_same_model(model.fit(some @ some.T, labels), clean)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("begin", ["fit", "partial_fit"])
def test_the_dual_never_falls_when_a_saved_model_goes_on(kernel, begin, tmp_path):
    model = getattr(larank(kernel, gamma=0.3, memory_limit=2e5, batch_size=16, average=False), begin)(X[:60], y[:60])
    models.save(model, tmp_path / "model.larank")
    gram = rbf(X) if kernel == "rbf" else X @ X.T
    for each in (model, models.load(tmp_path / "model.larank")):
        reached = each.result_.dual
        for part in np.array_split(np.arange(60, 160), 3):
            each.partial_fit(X[part], y[part])
            assert each.result_.dual >= reached
            reached = each.result_.dual
        assert_feasible(each, y, 1.0)
        _, dual, _ = kernel_certificate(coefficients(each, 160), gram, y, np.ones(160), 1 - np.eye(3))
        assert each.result_.dual == pytest.approx(dual, rel=1e-6)


def test_predictions_do_not_depend_on_the_other_rows():
    X, y = clouds(300)
    far = (X + 1e4).astype(np.float32)
    model = LaRankClassifier(gamma=0.1, random_state=0).fit(far, y)
    alone = model.predict(far)
    outlier = np.vstack([far, np.full((1, 4), -1e6, np.float32)])
    np.testing.assert_array_equal(model.predict(outlier)[:-1], alone)
    assert model.score(far, y) > 0.8


def test_training_to_a_gap_ends_with_a_kernel_that_is_none():
    with pytest.warns(CertificateWarning, match="not positive semi-definite"):
        model = larank("precomputed", C=10, tol=0.01).fit(indefinite(300), np.arange(300) % 4)
    assert model.result_.status == "converged"
    assert model.result_.iterations < 100


def test_a_sparse_stream_stays_sparse_from_a_first_batch_of_one_class():
    X = sparse.random(200, 5000, density=1e-3, format="csr", random_state=0)
    y = np.arange(200) % 3
    model = LaRankClassifier("linear", random_state=0).partial_fit(X[y == 0], y[y == 0])
    assert sparse.issparse(model.support_vectors_)
    model.partial_fit(X, y)
    assert sparse.issparse(model.support_vectors_)
    assert model.support_vectors_.shape[1] == 5000


def test_a_large_batch_size_is_no_slower_than_the_memory_allows():
    X, y = clouds(500)
    model = LaRankClassifier(batch_size=10**8, gamma=0.5, max_iter=1, random_state=0, n_jobs=1).fit(X, y)
    assert model.result_.kernel_values == 500 * 501 // 2  # one block


@pytest.mark.parametrize("seed", [5, 8, 18])
def test_hard_margins_whose_square_is_rounded_to_zero_end_training(seed):
    random, labels = np.random.RandomState(seed), np.arange(12) % 3
    X = random.randn(12, 2)
    weights = np.where(random.rand(12) < 0.3, 0.0, 1.0)
    weights[:3] = 1.0
    machine = LaRankClassifier("laplacian", gamma=400.0, C=np.inf, tol=1e-3, max_iter=20, random_state=0)
    assert machine.fit(X, labels, sample_weight=weights).result_.status == "converged"
