"""MulticlassSVC: whatever the formulation, the data and the way there, the optimum is that of the QP, with proof."""

import functools
import itertools
import pickle
import signal

import numpy as np
import overlapping
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from overlapping import NAMED, PROBLEMS, assert_certificate, data, indefinite, margins_and_weights, rbf
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from checks import IS_NIGHTLY, coefficients
from larank import CertificateWarning, LaRankClassifier, MulticlassSVC
from larank.blocks.kernels import kernel_names
from larank.data import models
from larank.kernel.activeset import ActiveSetTraining
from larank.kernel.newton import Newton
from larank.kernel.problem import Problem
from larank.kernel.published import Published
from larank.training import TrainingWarning
from properties import draws
from references.optima import kernel_certificate, kernel_optimum

FORMULATIONS = ("crammer-singer", "weston-watkins")


def svc(kernel="rbf", *, init="larank", shrinking=True, **parameters):
    model = MulticlassSVC(kernel, **{"random_state": 0, "n_jobs": 1, "gamma": 0.3, **parameters})
    model._INIT, model._SHRINKING = init, shrinking
    return model


def assert_feasible(model, y, costs):
    """Each step between wrong classes rounds."""
    assert (np.diff(model.support_) > 0).all()
    overlapping.assert_feasible(model, y, costs, rounding=1e-14, sums=1e-11)


# The optimum


@draws(60)
@given(
    **PROBLEMS,
    tol=st.sampled_from([0.5, 0.03, 1e-4, 3e-7]),
    formulation=st.sampled_from(FORMULATIONS),
    init=st.sampled_from(["larank", "zero"]),
    shrinking=st.booleans(),
    weights=st.sampled_from([[1], [0.5, 1, 3], [0, 1, 2]]),
    with_margins=st.booleans(),
    fit_intercept=st.booleans(),
)
def test_the_optimum_is_that_of_a_general_solver_and_the_certificate_what_the_formulas_say(
    n, k, seed, C, tol, kernel, formulation, init, shrinking, weights, with_margins, fit_intercept
):
    k = min(n, k)
    X, y = data(n, k, seed, dimensions=3)  # with duplicates of conflicting labels and zero vectors
    delta, weight = margins_and_weights(k, n, y, seed, with_margins, weights)
    K = (rbf(X) if kernel == "rbf" else X @ X.T) + fit_intercept
    model = svc(kernel, C=C, formulation=formulation, init=init, shrinking=shrinking, tol=tol)
    model.set_params(fit_intercept=fit_intercept, label_costs=delta if with_margins else None).fit(X, y, weight)
    result = model.result_
    assert result.status == "converged"
    assert result.relative_gap <= tol
    assert_feasible(model, y, C * weight)
    assert_certificate(model, K, y, C * weight, delta, close=1e-8 if kernel == "rbf" else 1e-9)
    scores = model.scale_ * (K @ coefficients(model, n))
    expected = scores[:, 1] - scores[:, 0] if k == 2 else scores
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-8, atol=1e-9 * C)
    duals = [point.dual for point in result.history]
    assert (np.diff(duals) >= -1e-9 * max(duals)).all()
    assert all(point.primal >= result.dual * (1 - 1e-9) for point in result.history if point.exact)
    # Without the multiple the primal objective is no lower.
    plain = kernel_certificate(coefficients(model, n), K, y, C * weight, delta, formulation)[0]
    assert result.primal <= plain + 1e-6 * abs(plain)
    if n <= 14:
        try:
            best = kernel_optimum(K, y, C * weight, delta, formulation) if delta.any() else 0.0
        except ArithmeticError:  # the reference did not converge
            reject()
        assert result.dual <= best * (1 + 1e-6) + 1e-8 * C
        assert result.primal >= best * (1 - 1e-6) - 1e-8 * C
        assert tol > 3e-7 or (result.dual, result.primal) == pytest.approx((best, best), rel=1e-6, abs=1e-8 * C)


CHANGES = [
    *({"init": "zero"}, {"shrinking": False}, {"init": "zero", "shrinking": False}, {"n_jobs": 2}),
    *({"random_state": 1}, {"random_state": np.random.RandomState(3)}),
]


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_the_way_there_does_not_change_the_optimum(formulation):
    X, y = data(400, 4)
    plain, *others = (svc(formulation=formulation, C=3.0, tol=1e-6, **some).fit(X, y) for some in ({}, *CHANGES))
    expected = plain.result_.dual, plain.result_.primal
    for other in others:
        assert (other.result_.dual, other.result_.primal) == pytest.approx(expected, rel=2e-6)
        np.testing.assert_allclose(other.decision_function(X), plain.decision_function(X), atol=0.02)


@pytest.mark.parametrize("kind", [LaRankClassifier, MulticlassSVC])
def test_margins_of_pairs_of_labels_are_those_of_a_matrix(kind):
    (X, y), delta = data(100, 3), 1 - np.eye(3)
    delta[0, 2], delta[1, 0] = 2.5, 0.5
    of_pairs = {("ash", "oak"): 2.5, ("elm", "ash"): 0.5}
    one, other, plain = (
        kind(label_costs=costs, random_state=0).fit(X, np.array(["ash", "elm", "oak"])[y]).dual_coef_.toarray()
        for costs in (delta, of_pairs, None)
    )
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, plain)


@pytest.mark.parametrize("machine", [*FORMULATIONS, "larank"])
@pytest.mark.parametrize("seed", range(3))
def test_two_classes_are_the_binary_svm_without_intercept(seed, machine):
    X, y = data(40, 2, seed)
    K, signs, C = rbf(X), np.where(y == 1, 1, -1), 0.7
    # With (x, y) there is (-x, -y): by symmetry the intercept is zero, and each example counts twice.
    binary = SVC(kernel="precomputed", C=C, tol=1e-10).fit(np.block([[K, -K], [-K, K]]), np.r_[signs, -signs])
    if machine == "larank":
        model = LaRankClassifier("precomputed", C=C, tol=1e-9, max_iter=10**5, random_state=0)
    else:
        model = svc("precomputed", C=C, tol=1e-7, formulation=machine)
    expected = binary.decision_function(np.hstack([K, -K]))
    np.testing.assert_allclose(model.fit(K, y).decision_function(K), expected, atol=2e-3)


@pytest.mark.parametrize(
    ("examples", "dtype", "parameters"),
    [
        ((160, 3), np.float64, {"tol": 1e-11}),
        ((160, 3), np.float64, {"tol": 1e-11, "formulation": "weston-watkins"}),
        ((600, 26), np.float32, {}),
        ((200, 100, 0, 8), np.float64, {"formulation": "weston-watkins", "gamma": 0.05}),
    ],
)
def test_a_small_gap_and_the_default_gap_of_many_classes_are_reached(examples, dtype, parameters):
    X, y = data(*examples)
    model = svc(**parameters).fit(X.astype(dtype), y)
    assert model.result_.status == "converged"
    assert model.result_.relative_gap <= model.tol


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize(("C", "examples"), [(1e-6, (14, 3, 5)), (1e6, (14, 3, 5)), (2.0, (40, 10, 0, 3))])
def test_extreme_costs_and_many_classes_with_few_examples_reach_the_optimum(formulation, C, examples):
    X, y = data(*examples)
    K, k = rbf(X), examples[1]
    model = svc("precomputed", C=C, tol=1e-7, formulation=formulation, max_iter=10**6).fit(K, y)
    best = kernel_optimum(K, y, np.full(len(y), C), 1 - np.eye(k), formulation)
    assert model.result_.relative_gap <= 1e-7
    assert model.result_.dual == pytest.approx(best, rel=1e-6)


def test_the_primal_of_an_indefinite_kernel_is_computed_in_double_precision():
    random, labels = np.random.RandomState(4), np.arange(20) % 3
    X, gamma = (30 + random.randn(20, 3)).astype(np.float32), 0.3 / 901
    with pytest.warns(CertificateWarning):
        model = MulticlassSVC("sigmoid", gamma=gamma, C=1e6, max_iter=20, random_state=0).fit(X, labels)
    K = np.tanh(gamma * X.astype(np.float64) @ X.T.astype(np.float64))
    beta = coefficients(model, 20)
    costs, delta = np.full(20, 1e6), 1 - np.eye(3)
    primal = kernel_certificate(beta, K, labels, costs, delta, "crammer-singer", model.scale_)[0]
    assert model.result_.exact
    assert np.isnan(model.result_.dual)
    assert model.result_.primal == pytest.approx(primal, rel=1e-6)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize(("C", "tol", "gamma"), [(1e7, 1e-3, 0.05), (1.0, 1e-13, 0.3), (0.1, 1e-13, 0.3)])
def test_precision_that_ends_is_told_with_a_model_and_a_bound_that_hold(C, tol, gamma, formulation):
    random = np.random.RandomState(0)
    X, y = (random.randn(60, 3), random.randint(0, 3, 60)) if C == 1e7 else data(200, 3)
    X = X.astype(np.float32)
    model = svc(C=C, gamma=gamma, formulation=formulation, tol=tol, max_iter=10**6)
    with pytest.warns(TrainingWarning, match=r"not precise enough .* relative duality gap is"):
        model.fit(X, y)
    K, costs, beta = rbf(X.astype(np.float64), gamma=gamma), np.full(len(y), C), coefficients(model, len(y))
    found = kernel_certificate(beta, K, y, costs, 1 - np.eye(3), formulation, model.scale_)[:2]
    assert model.result_.status == "precision"
    assert (model.result_.primal, model.result_.dual) == pytest.approx(found, rel=1e-6)
    assert C > 1 or model.result_.relative_gap < 1e-3
    assert_feasible(model, y, C)
    best = svc(C=C, gamma=gamma, formulation=formulation, tol=1e-6).fit(X.astype(np.float64), y).result_
    assert model.result_.dual <= best.primal
    assert best.dual <= model.result_.primal


@given(
    n=st.integers(10, 40),
    k=st.integers(2, 5),
    seed=st.integers(0, 10**6),
    C=st.sampled_from([1.0, 1e3, 1e6]),
    kernel=st.sampled_from(["linear", "poly", "rbf", "laplacian"]),
    formulation=st.sampled_from(FORMULATIONS),
)
def test_badly_conditioned_kernels_and_high_costs_reach_the_gap(n, k, seed, C, kernel, formulation):
    X, y = data(n, k, seed, dimensions=2)
    model = svc(kernel, C=C, formulation=formulation, tol=1e-6).fit(X, y)
    assert model.result_.status == "converged"
    assert_feasible(model, y, C)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_polynomial_kernel_with_high_costs_is_not_given_up(formulation):
    random = np.random.default_rng(57)
    n, d, k = 40, int(random.integers(2, 6)), 5
    centers, y = 2 * random.normal(size=(k, d)), random.integers(0, k, n)
    y[:k] = np.arange(k)
    X = centers[y] + 2 * random.normal(size=(n, d))
    model = svc("poly", C=1000.0, formulation=formulation).fit(X, y)
    K = (0.3 * X @ X.T) ** 3
    best = kernel_optimum(K, y, np.full(n, 1000.0), 1 - np.eye(k), formulation)
    assert model.result_.status == "converged"
    assert model.result_.primal == pytest.approx(best, rel=1e-3)
    assert model.result_.operations["newton"] > 0


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_newtons_steps_alone_solve_the_problem_from_any_feasible_point(formulation):
    (X, y), n, k = data(30, 4), 30, 4
    K, costs, delta = rbf(X), np.full(n, 10.0), 1 - np.eye(k)
    beta = -np.random.default_rng(0).uniform(0, 2, (n, k))
    beta[np.arange(n), y] = 0
    beta[np.arange(n), y] = -beta.sum(axis=1)
    newton = Newton(Problem(None, y.astype(np.int32), costs, k, delta, formulation), beta.copy())
    for _ in range(5):
        for _ in newton.run(K, K @ newton.beta, 1e-9):
            pass
    _, dual, _ = kernel_certificate(newton.beta, K, y, costs, delta, formulation, 1.0, kappa=1e-10)
    assert dual == pytest.approx(kernel_optimum(K, y, costs, delta, formulation), rel=1e-8)
    np.testing.assert_allclose(newton.scores, K @ newton.beta, atol=1e-9)
    np.testing.assert_allclose(newton.beta.sum(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_zero_examples_and_zero_margins_are_legal(formulation):
    model = svc("linear", formulation=formulation, C=2.0).fit(np.zeros((6, 3)), [0, 1, 2] * 2)
    losses = 2 if formulation == "weston-watkins" else 1
    assert model.result_.dual == pytest.approx(6 * 2.0 * losses)
    assert model.result_.status == "converged"
    assert not model.coef_.any()
    free = svc(formulation=formulation, label_costs=np.zeros((3, 3))).fit(*data(50, 3))
    assert len(free.support_) == 0
    assert free.result_.primal == free.result_.dual == 0
    assert free.predict(data(50, 3)[0]).shape == (50,)


# Certificates


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("tol", [0.2, 1e-2, 1e-4])
def test_the_certificate_is_that_of_all_examples_also_where_too_many_were_left_out(formulation, tol, monkeypatch):
    def as_few_as_can_be(training, everything):
        return np.ones(len(training.excess), bool) if everything else training.excess >= 0

    monkeypatch.setattr(ActiveSetTraining, "_is_candidate", as_few_as_can_be)
    X, y = data(200, 3)
    model = svc(C=10.0, tol=tol, formulation=formulation).fit(X, y)
    assert model.result_.relative_gap <= tol
    assert_certificate(model, rbf(X), y, 10.0)


def test_the_result_counts_the_work():
    model = svc().fit(*data(200, 3))
    counts, parts = model.result_.operations, {"product", "map", "larank pass", "converge", "look", "extend"}
    assert counts["looks"] >= 2
    assert counts["process_new"] >= 200
    assert counts["steps"] >= len(model.support_)
    assert {*parts, "certificate"} <= set(model.result_.breakdown)
    assert model.result_.solver == "mcsvm"


# The published algorithm


@draws(15)
@given(
    n=st.integers(6, 60),
    k=st.integers(2, 5),
    seed=st.integers(0, 10**6),
    C=st.sampled_from([0.1, 10.0]),
    weights=st.sampled_from([[1], [0, 1, 2]]),
    with_margins=st.booleans(),
    fit_intercept=st.booleans(),
)
def test_the_published_algorithm_agrees_with_the_default(n, k, seed, C, weights, with_margins, fit_intercept):
    X, y = data(n, k, seed)
    delta, weight = margins_and_weights(k, n, y, seed, with_margins, weights)
    shared = {"C": C, "fit_intercept": fit_intercept, "label_costs": delta if with_margins else None}
    exact = svc(tol=1e-7, **shared).fit(X, y, weight)
    for row_solver in ("fixed-point", "exact"):
        published = svc(solver=Published(row_solver=row_solver, epsilon=1e-8), max_iter=10**6, **shared)
        published.fit(X, y, weight)
        assert published.result_.status == "converged"
        assert published.scale_ == 1.0
        assert published.result_.dual == pytest.approx(exact.result_.dual, rel=1e-6, abs=1e-9 * C)
        far = 1e-8 * C * weight.sum()  # a violation of epsilon costs an example no more than C times that
        assert published.result_.primal == pytest.approx(exact.result_.primal, rel=1e-6, abs=2 * far)
        assert_certificate(published, rbf(X) + fit_intercept, y, C * weight, delta, close=1e-8)
        assert (coefficients(published, n) * (np.arange(k) != y[:, None]) <= 0).all()


def test_published_by_name_is_published_with_its_defaults():
    X, y = data(120, 3)
    named, given_ = svc(solver="published").fit(X, y), svc(solver=Published()).fit(X, y)
    np.testing.assert_array_equal(named.dual_coef_.toarray(), given_.dual_coef_.toarray())
    assert named.result_.violation < 0.1
    assert {"rounds", "kernel_rows", "fixed_point_iterations"} <= set(named.result_.operations)


# Memory, threads, precision


MANY = data(1500, 3)


@functools.cache
def optimum_of_many():
    return svc(C=10.0, tol=1e-4, memory_limit=4e9).fit(*MANY).result_.dual


@pytest.mark.parametrize(
    ("init", "dtype", "memory_limit"),
    [
        ("larank", np.float32, 4e6),
        ("zero", np.float64, 9.5e6),
        ("zero", np.float64, 1.7e7),
        *((("larank", np.float32, 1.2e7), ("larank", np.float64, 2.5e7), ("zero", np.float64, 1.2e7)) * IS_NIGHTLY),
    ],
)
def test_memory_for_some_of_the_kernel_values_does_not_change_the_optimum(init, dtype, memory_limit):
    X, y = MANY[0].astype(dtype), MANY[1]
    model = svc(C=10.0, tol=1e-4, init=init, memory_limit=memory_limit, max_iter=40).fit(X, y)
    assert len(model.support_) > 512  # more than one part of the table
    assert model.result_.status == "converged"
    assert model.result_.dual == pytest.approx(optimum_of_many(), rel=2e-4)
    assert_certificate(model, rbf(X.astype(float)), y, 10.0, close=1e-4)


# Paths


@pytest.mark.parametrize(
    ("Cs", "memory_limit", "formulation"),
    [
        ([5.0, 0.1, 50.0, 5.0], 2e9, "crammer-singer"),
        ((2,), 2e9, "weston-watkins"),
        (np.array([10.0, 0.1, 1.0]), 1.4e6, "weston-watkins"),
    ],
)
def test_a_path_equals_separate_fits_in_the_order_asked_for(formulation, Cs, memory_limit):
    """Its fits share kernel values, unless memory is short."""
    X, y = data(300, 3)
    estimator = svc(formulation=formulation, tol=1e-6, fit_intercept=True, memory_limit=memory_limit)
    models = estimator.path(X, y, iter(Cs))
    assert [model.C for model in models] == list(Cs)
    assert not [name for name in vars(estimator) if name.endswith("_")]
    for model in models:
        alone = clone(estimator).set_params(C=model.C).fit(X, y)
        assert model.result_.status == "converged"
        assert model.result_.relative_gap <= 1e-6
        assert model.result_.dual == pytest.approx(alone.result_.dual, rel=2e-6)
        assert_feasible(model, y, model.C)
        assert_certificate(model, rbf(X) + 1, y, model.C)
        assert model.get_params() == alone.get_params()
        assert model.gamma_ == alone.gamma_
        np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=0.05)


@pytest.mark.parametrize(
    ("kernel", "layout"), [("linear", np.asarray), ("linear", sparse.csr_matrix), ("precomputed", rbf)]
)
def test_a_path_takes_every_kind_of_data_with_weights_and_margins(kernel, layout):
    X, y = data(150, 3)
    delta, weight = margins_and_weights(3, 150, y, 3, True, [0, 1, 2])
    estimator = svc(kernel, tol=1e-6, label_costs=delta, class_weight={0: 2.0, 1: 1.0, 2: 0.5})
    for model in estimator.path(layout(X), y, [30.0, 1.0], sample_weight=weight):
        alone = clone(estimator).set_params(C=model.C).fit(layout(X), y, weight)
        assert model.result_.dual == pytest.approx(alone.result_.dual, rel=2e-6)
        assert_feasible(model, y, model.C * weight * np.array([2, 1, 0.5])[y])
        assert hasattr(model, "coef_") == hasattr(model, "support_vectors_") == (kernel == "linear")


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_path_on_a_matrix_is_certified_in_either_precision(dtype, fit_intercept):
    labels, Cs = np.arange(24) % 3, [0.1, 1.0, 10.0]
    K = pairwise.rbf_kernel(np.random.RandomState(0).randn(24, 3)).astype(dtype)
    for model in svc("precomputed", fit_intercept=fit_intercept).path(K, labels, Cs):
        assert_certificate(model, K.astype(np.float64) + fit_intercept, labels, model.C)


def test_a_path_computes_fewer_kernel_values_than_separate_fits():
    X, y = data(600, 3)
    Cs = [1.0, 3.0, 10.0, 30.0]
    total = max(model.result_.kernel_values for model in svc().path(X, y, Cs))
    assert total < sum(svc(C=C).fit(X, y).result_.kernel_values for C in Cs)


def interrupted_at(call):
    """Return a kernel during one of whose calls Ctrl-C is pressed, and the sizes of its calls so far."""
    calls = []

    def kernel(A, B):
        calls.append(len(B))
        if len(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return rbf(A, B)

    return kernel, calls


def test_an_interrupt_ends_a_path_with_the_models_so_far():
    X, y = data(300, 3)
    kernel, calls = interrupted_at(None)
    tight = {"tol": 1e-4, "memory_limit": 1.4e6}  # no room for all kernel values
    svc(kernel, **tight).path(X, y, [1.0])
    kernel, _ = interrupted_at(len(calls) + 3)  # while the second model is trained
    with pytest.warns(TrainingWarning, match="ended by an interrupt"):
        models = svc(kernel, **tight).path(X, y, [1e3, 1.0, 1e2])
    assert [model.C for model in models] == [1.0, 1e2]
    assert [model.result_.status for model in models] == ["converged", "interrupted"]
    assert_certificate(models[1], rbf(X), y, 1e2)


def test_an_interrupt_while_shared_values_are_computed_ends_a_path_with_a_valid_model():
    X, y = data(300, 3)
    kernel, _ = interrupted_at(4)
    with pytest.warns(TrainingWarning, match="ended by an interrupt"):
        (model,) = svc(kernel).path(X, y, [1e3, 1.0, 1e2])
    assert model.C == 1.0
    assert_certificate(model, rbf(X), y, 1.0)


# What X may be

X, y = data(160, 3)


def test_every_kernel_is_tested():
    assert set(kernel_names()) == {*NAMED, "precomputed"}


@pytest.mark.parametrize(("kernel", "fit_intercept"), list(zip(NAMED, itertools.cycle([False, True]))))
def test_a_named_kernel_equals_the_matrix_and_the_callable_of_its_values(kernel, fit_intercept):
    function, parameters = NAMED[kernel]
    positive, new = np.abs(X), np.abs(data(30, 3, seed=9)[0])
    shared = {"formulation": FORMULATIONS[fit_intercept], "fit_intercept": fit_intercept, "tol": 1e-7, "C": 2.0}
    by_matrix = svc("precomputed", **shared).fit(function(positive, positive), y)
    expected = by_matrix.decision_function(function(new, positive))
    models = [svc(kernel, **shared, **parameters).fit(positive, y), svc(function, **shared).fit(positive, y)]
    if kernel in ("linear", "rbf", "poly", "sigmoid"):
        models.append(svc(kernel, **shared, **parameters).fit(sparse.csr_matrix(positive), y))
    for model in models:
        assert model.result_.dual == pytest.approx(by_matrix.result_.dual, rel=3e-7)
        np.testing.assert_allclose(model.decision_function(new), expected, atol=5e-3)


def test_features_in_which_all_agree_change_nothing_until_they_differ():
    constant = np.full((160, 3), 7.0)
    wide = np.hstack([X[:, :2], constant, X[:, 2:]])
    for fit_intercept in (False, True):
        plain, model = (svc(tol=1e-7, fit_intercept=fit_intercept).fit(rows, y) for rows in (X, wide))
        assert model.result_.dual == pytest.approx(plain.result_.dual, rel=3e-7)
        assert model.n_features_in_ == 7
        assert model.support_vectors_.shape[1] == 7
        other = wide + np.array([0, 0, 1, -1, 0.5, 0, 0])
        beta = model.scale_ * coefficients(model, 160)
        np.testing.assert_allclose(
            model.decision_function(other), rbf(other, wide) @ beta + beta.sum(axis=0) * fit_intercept, atol=1e-9
        )
    assert svc(gamma="scale").fit(wide, y).gamma_ == pytest.approx(1 / (7 * wide.var()))
    same = svc().fit(np.ones((6, 4)), [0, 1, 2] * 2)
    assert same.result_.dual == pytest.approx(6.0)


# Files, copies, scikit-learn


def test_switches_of_the_published_solver_survive_pickles_clones_and_files(tmp_path):
    model = svc(solver=Published(row_solver="exact", epsilon=0.01)).fit(X, y)
    models.save(model, tmp_path / "model.larank")
    assert pickle.loads(pickle.dumps(model)).solver == models.load(tmp_path / "model.larank").solver == model.solver
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    np.testing.assert_array_equal(copy.fit(X, y).dual_coef_.toarray(), model.dual_coef_.toarray())


def test_progress_names_the_problem(capsys):
    svc(verbose=1, memory_limit=5e6).fit(X, y)
    assert "crammer-singer, rbf, C=1, 160 examples, 3 classes, memory limit 5 MB" in capsys.readouterr().err


# Kernels that are not positive semi-definite


@pytest.mark.parametrize("formulation", ["crammer-singer", "weston-watkins"])
@pytest.mark.parametrize("init", ["larank", "zero"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_that_is_not_positive_semi_definite_makes_a_stationary_model(formulation, init, dtype):
    S, labels = indefinite(300).astype(dtype), np.arange(300) % 4
    with pytest.warns(CertificateWarning, match="their matrix has the eigenvalue -.*, on 256 of them"):
        model = svc("precomputed", C=10.0, formulation=formulation, init=init).fit(S, labels)
    assert model.result_.status == "converged"
    assert model.scale_ == 1
    beta = coefficients(model, 300)
    primal, dual = kernel_certificate(beta, S, labels, np.full(300, 10.0), 1 - np.eye(4), formulation, 1.0)[:2]
    assert abs(primal - dual) <= 2e-3 * abs(primal), "the gap is zero where no coefficient should move"


def test_a_path_warns_of_its_kernel_once():
    with pytest.warns(CertificateWarning) as caught:
        svc("precomputed").path(indefinite(60), np.arange(60) % 3, [1.0, 10.0])
    assert len(caught) == 1


def test_objectives_show_what_a_sample_of_the_matrix_does_not():
    S = np.eye(600)
    S[:8, :8] += 1.5 * (np.eye(8) - 1) / 7  # too few to be looked at together
    with pytest.warns(CertificateWarning, match=r"dual objective .* exceeds|\|w\|\^2 is -"):
        svc("precomputed", C=1000.0).fit(S, np.r_[np.zeros(8, int), np.arange(592) % 2])
