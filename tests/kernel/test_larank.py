"""LaRankClassifier: one stream makes one model, it is feasible, its certificate true and its optimum the SVM's."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from checks import clouds, coefficients
from larank import CertificateWarning, LaRankClassifier
from larank.data import models
from references.optima import kernel_certificate, kernel_optimum


def larank(kernel="rbf", **parameters):
    """In one pass, unless something else is said."""
    passes = {} if parameters.get("stop") == "gap" else {"epochs": 1}
    return LaRankClassifier(kernel, **{"random_state": 0, "n_jobs": 1, **passes, **parameters})


def data(n, k, seed=0, dimensions=4):
    """Examples of k overlapping classes, some of them twice with different labels, some of them zero."""
    random = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), random.integers(0, k, max(0, n - k))])[:n]
    X = random.normal(size=(k, dimensions))[y] + random.normal(size=(n, dimensions))
    X[random.random(n) < 0.1] = X[0]
    X[random.random(n) < 0.05] = 0
    order = random.permutation(n)
    return X[order], y[order]


def rbf(X, Z=None, gamma=0.3):
    Z = X if Z is None else Z
    return np.exp(-gamma * ((X[:, None] - Z[None]) ** 2).sum(axis=-1))


def assert_same_model(one, other):
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_array_equal(one.support_, other.support_)
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(one.dual_coef_, part), getattr(other.dual_coef_, part))


def assert_feasible(model, y, costs):
    """`costs` per example, or one for all."""
    beta, costs = model.dual_coef_.toarray(), np.broadcast_to(costs, np.shape(y))[model.support_]
    np.testing.assert_array_equal(model.support_costs_, costs)
    own = model.classes_ == np.asarray(y)[model.support_][:, None]
    assert len(np.unique(model.support_)) == len(model.support_)
    assert (beta[own] > 0).all(), "a pattern whose coefficients vanish leaves"
    assert (beta[own] <= costs).all()
    assert (beta[~own] <= 0).all()
    assert (np.abs(beta.sum(axis=1)) <= 1e-14 * costs).all()
    assert (model.dual_coef_.data != 0).all()


# One stream, one model

K, K_labels = (lambda X, y: (rbf(X), y))(*data(300, 4, dimensions=3))


def streamed(K, y, cuts, columns=None, **parameters):
    """A model of a stream cut at these places; `columns` says how many of them a call is given."""
    model = larank("precomputed", **parameters)
    for first, last in itertools.pairwise([0, *cuts, len(y)]):
        model.partial_fit(K[first:last, : columns and columns(last)], y[first:last])
    return model


@given(
    n=st.integers(2, 80),
    k=st.integers(2, 6),
    seed=st.integers(0, 10**6),
    size=st.sampled_from([1, 4, 16, 64, 256]),
    jobs=st.sampled_from([1, 2]),
    cuts=st.lists(st.integers(1, 79), max_size=4, unique=True),
    ordered=st.booleans(),
)
def test_any_split_makes_the_same_model_also_with_classes_that_come_late(n, k, seed, size, jobs, cuts, ordered):
    X, y = data(n, min(n, k), seed, dimensions=2)
    if ordered:  # each class begins where the one before ends
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    y = np.array(["d", "a", "e", "b", "f", "c"])[y]
    gram = X @ X.T
    whole = larank("precomputed", shuffle=False).fit(gram, y)
    parts = streamed(gram, y, sorted(cut for cut in cuts if cut < n), batch_size=size, n_jobs=jobs)
    assert_same_model(parts, whole)
    assert_feasible(parts, y, 1.0)


# Certificates


@given(
    n=st.integers(2, 70),
    k=st.integers(2, 6),
    seed=st.integers(0, 10**6),
    C=st.sampled_from([0.01, 1.0, 30.0]),
    epochs=st.sampled_from([1, 4]),
    schedule=st.sampled_from(["adaptive", "fixed"]),
    weighted=st.booleans(),
    margins=st.booleans(),
)
def test_the_certificate_is_what_the_formulas_say(n, k, seed, C, epochs, schedule, weighted, margins):
    k = min(n, k)
    X, y = data(n, k, seed, dimensions=3)
    random = np.random.default_rng(seed)
    weight = random.choice([0, 0.5, 1, 3], n) if weighted else np.ones(n)
    weight[0] = 1
    weight[np.flatnonzero(y != y[0])[0]] = 1  # two classes at least
    delta = random.choice([0.5, 1, 2.5], (k, k)) * (1 - np.eye(k)) if margins else 1 - np.eye(k)
    gram = rbf(X)
    model = larank("precomputed", C=C, epochs=epochs, schedule=schedule, cost_matrix=delta if margins else None)
    model.fit(gram, y, weight)
    assert_feasible(model, y, C * weight)
    result = model.result_
    beta = coefficients(model, n)
    present = np.isin(np.arange(k), y[weight > 0])  # the other classes have no part in the problem
    primal, dual, violation = kernel_certificate(beta, gram, y, C * weight, delta)
    if present.all():
        assert result.primal == pytest.approx(primal, rel=1e-9, abs=1e-12)
        assert result.violation == pytest.approx(violation, abs=1e-9)
    assert result.dual == pytest.approx(dual, rel=1e-9, abs=1e-12)
    assert result.exact
    assert result.status == "completed"
    assert result.iterations == epochs
    assert result.support_patterns == len(model.support_)
    assert result.support_vectors == model.dual_coef_.nnz
    duals = [point.dual for point in result.history]
    assert (np.diff(duals) >= -1e-9 * max(duals)).all()
    for point in result.history:
        assert point.gap >= (-1e-9 * point.primal if point.exact else 0)
        assert point.primal >= result.dual * (1 - 1e-9) or not point.exact


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


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_steps_of_a_stream_are_counted_once_however_often_a_model_is_taken(kernel):
    X, y = data(120, 3)
    whole = larank(kernel).partial_fit(X, y, classes=np.unique(y)).result_.operations
    model = larank(kernel)
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.unique(y))
    counts = model.result_.operations
    assert {name: counts[name] for name in ("process_new", "process_old", "optimize")} == {
        name: whole[name] for name in ("process_new", "process_old", "optimize")
    }
    assert counts["steps"] == pytest.approx(whole["steps"], rel=0.05)
    assert 0 < counts["finishing_steps"] < 10 * whole["finishing_steps"]  # of the last call, not of all 120


# The optimum


def converged(kernel="precomputed", tol=1e-7, **parameters):
    return larank(kernel, stop="gap", tol=tol, max_iter=100_000, **parameters)


@given(
    n=st.integers(4, 14),
    k=st.integers(2, 6),
    seed=st.integers(0, 10**6),
    C=st.sampled_from([0.1, 1.0, 10.0]),
    kernel=st.sampled_from(["rbf", "linear"]),
    weighted=st.booleans(),
    margins=st.booleans(),
)
def test_larank_gap_reaches_the_optimum_of_a_general_solver(n, k, seed, C, kernel, weighted, margins):
    k = min(n, k)
    X, y = data(n, k, seed, dimensions=3)  # with duplicates of conflicting labels and zero vectors
    random = np.random.default_rng(seed)
    gram = rbf(X) if kernel == "rbf" else X @ X.T
    weight = random.choice([0.5, 1, 3], n) if weighted else np.ones(n)
    delta = random.choice([0.5, 1, 2.5], (k, k)) * (1 - np.eye(k)) if margins else 1 - np.eye(k)
    best = kernel_optimum(gram, y, C * weight, delta)
    model = converged(C=C, cost_matrix=delta if margins else None).fit(gram, y, weight)
    assert model.result_.status == "converged"
    assert model.result_.relative_gap <= 1e-7
    assert model.result_.dual == pytest.approx(best, rel=2e-7)
    assert model.result_.primal == pytest.approx(best, rel=2e-7)


def test_by_default_the_gap_to_stop_at_is_the_cost():
    X, y = data(300, 3)
    for C in (0.1, 10.0):
        model = larank(stop="gap", C=C).fit(X, y)
        assert model.result_.gap <= C
        assert model.result_.status == "converged"


def test_one_pass_comes_close_and_more_passes_closer():
    X, y = data(800, 4)
    best = larank(stop="gap", tol=1e-4).fit(X, y).result_.dual
    one, three = (larank(epochs=epochs).fit(X, y).result_.dual for epochs in (1, 3))
    assert 0.85 * best < one < three <= best * (1 + 1e-9)


# Schedules and operations


def test_without_reprocessing_it_is_the_passive_aggressive_algorithm():
    model = larank("precomputed", schedule="fixed", n_reprocess=0, shuffle=False).fit(K, K_labels)
    counts = model.result_.operations
    assert (counts["process_new"], counts["process_old"], counts["optimize"]) == (300, 0, 0)
    # Spelled out: each example once, one step between its label and the strongest class that has arrived.
    beta, arrived = np.zeros((300, 4)), []
    for i, label in enumerate(K_labels):
        arrived = arrived if label in arrived else [*arrived, label]
        if len(arrived) == 1:
            continue
        g = (np.arange(4) == label) - K[i] @ beta
        worst = min((other for other in arrived if other != label), key=lambda other: g[other])
        if g[label] - g[worst] > 0.08:
            step = min((g[label] - g[worst]) / (2 * K[i, i]), 1.0)
            beta[i, label], beta[i, worst] = step, -step
    np.testing.assert_allclose(coefficients(model, 300), beta, atol=1e-10)


@pytest.mark.parametrize("operations", ["new", ["new", "old"], {"optimize", "new"}])
def test_operations_are_a_name_or_any_collection_of_names(operations):
    counts = larank(operations=operations).fit(X, y).result_.operations
    names = {"process_new": "new", "process_old": "old", "optimize": "optimize"}
    assert {names[name] for name in names if counts[name]} == ({operations} if operations == "new" else {*operations})


def test_each_kind_of_reprocessing_helps():
    X, y = data(500, 4)
    new, old, every = (
        larank(operations=kinds).fit(X, y).result_.dual
        for kinds in (["new"], ["new", "old"], ["new", "old", "optimize"])
    )
    assert new < old < every


# What X may be

X, y = data(160, 3)


def test_rows_without_values_are_examples_like_others():
    dense = np.where(np.arange(160)[:, None] % 5 == 0, 0, X)
    for kernel in ("linear", "rbf"):
        models = [
            converged(kernel, tol=1e-6, gamma=0.3).fit(layout(dense), y) for layout in (np.asarray, sparse.csr_matrix)
        ]
        assert models[0].result_.dual == pytest.approx(models[1].result_.dual, rel=1e-5)
        assert models[1].support_vectors_.shape == (len(models[1].support_), 4)
    nothing = larank("linear").fit(sparse.csr_matrix(np.zeros((6, 4))), [0, 1] * 3)
    assert sparse.issparse(nothing.support_vectors_)
    assert nothing.support_vectors_.shape == (5, 4)  # the first example had no other class to be told apart from


def test_what_stands_in_memory_that_was_never_written_does_not_matter(monkeypatch):
    gram, labels = (lambda X, y: (X @ X.T, y))(*data(200, 3, dimensions=2))
    clean = [larank("precomputed", n_jobs=jobs, batch_size=32, epochs=2).fit(gram, labels) for jobs in (1, 2)]
    allocate = np.empty

    def poisoned(shape, dtype=float, *arguments, **options):
        array = allocate(shape, dtype, *arguments, **options)
        if array.dtype.kind == "f":
            array[...] = np.nan
        return array

    monkeypatch.setattr(np, "empty", poisoned)
    for jobs, model in zip((1, 2), clean, strict=True):
        assert_same_model(larank("precomputed", n_jobs=jobs, batch_size=32, epochs=2).fit(gram, labels), model)


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


# Robustness


def test_the_same_point_with_different_labels_is_legal():
    model = larank(C=2.0, stop="gap", tol=1e-4).fit(np.repeat(X[:5], 3, axis=0), np.tile([0, 1, 2], 5))
    assert model.result_.status == "converged"
    assert np.abs(model.decision_function(X)).max() < 0.05
    assert model.result_.dual == pytest.approx(15 * 2.0, rel=1e-3)


def test_predictions_do_not_depend_on_the_other_rows():
    X, y = clouds(300)
    far = (X + 1e4).astype(np.float32)
    model = LaRankClassifier(gamma=0.1, random_state=0).fit(far, y)
    alone = model.predict(far)
    outlier = np.vstack([far, np.full((1, 4), -1e6, np.float32)])
    np.testing.assert_array_equal(model.predict(outlier)[:-1], alone)
    assert model.score(far, y) > 0.8


def test_training_to_a_gap_ends_with_a_kernel_that_is_none():
    rng = np.random.default_rng(0)
    S = rng.uniform(-1, 1, (300, 300))
    S = (S + S.T) / 2
    np.fill_diagonal(S, 1.0)
    with pytest.warns(CertificateWarning, match="not positive semi-definite"):
        model = LaRankClassifier("precomputed", C=10, stop="gap", tol=0.01, random_state=0).fit(S, np.arange(300) % 4)
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
    model = LaRankClassifier(batch_size=10**8, gamma=0.5, epochs=1, random_state=0, n_jobs=1).fit(X, y)
    assert model.result_.kernel_values == 500 * 501 // 2  # one block


@pytest.mark.parametrize("seed", [5, 8, 18])
def test_hard_margins_whose_square_is_rounded_to_zero_end_training(seed):
    random, labels = np.random.RandomState(seed), np.arange(12) % 3
    X = random.randn(12, 2)
    weights = np.where(random.rand(12) < 0.3, 0.0, 1.0)
    weights[:3] = 1.0
    machine = LaRankClassifier("laplacian", gamma=400.0, C=np.inf, stop="gap", tol=1e-3, max_iter=20, random_state=0)
    assert machine.fit(X, labels, sample_weight=weights).result_.status == "converged"
