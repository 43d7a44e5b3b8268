"""The primal multiclass SVM: optima of other solvers, certificate, label kernels, and what a person may get wrong."""

import tracemalloc
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import larank
from checks import (
    GAMMA,
    assert_same_model,
    assert_same_result,
    assert_valid,
    clouds,
    gram,
    interrupt_when_training,
    unchanged,
)
from larank import CertificateWarning, LinearMulticlassSVC, MulticlassSVC, TrainingWarning
from larank.linear.labelkernel import tree_label_kernel
from larank.linear.primal import PrimalMulticlassSVC
from larank.linear.primalobjective import PrimalLoss
from references import primal as reference

SOLVERS = ("newton", "lbfgs", "cg")
GAMMAS = (0.0, 0.05, 0.5, 1.0, 2.0, 30.0, np.inf)
ALIKE = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])

every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_loss = pytest.mark.parametrize(("loss", "smoothing"), reference.LOSSES)
not_convex = pytest.mark.filterwarnings("ignore:.*is not convex")
as_near_as_rounding_allows = pytest.mark.filterwarnings("ignore:training was ended by the precision")


def svc(**parameters):
    return PrimalMulticlassSVC(**{"tol": 1e-9, "random_state": 0, **parameters})


@cache
def noisy(n=60, classes=3, features=4):
    """Clouds that overlap so much that every loss is at work on both sides of its corners."""
    X, y = clouds(n, classes, features)
    return 0.6 * X, y


def with_loss(loss, smoothing, **parameters):
    if loss == "smoothed_hinge":
        parameters["smoothing"] = smoothing
    return svc(loss=loss, **parameters)


# The optimum: logistic regression


@every_solver
@as_near_as_rounding_allows
def test_the_default_is_multinomial_logistic_regression_with_the_same_cost(solver):
    X, y = noisy(120, 4)
    for C in (0.1, 2.0):
        theirs = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(X, y)
        ours = svc(C=C, solver=solver, tol=1e-15).fit(X, y)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_ - theirs.intercept_.mean(), atol=1e-6)
        np.testing.assert_allclose(
            ours.decision_function(X), X @ theirs.coef_.T + theirs.intercept_ - theirs.intercept_.mean(), atol=1e-6
        )


@pytest.mark.parametrize("softmax_gamma", GAMMAS)
@as_near_as_rounding_allows
def test_two_classes_are_binary_logistic_regression_of_twice_the_cost_whatever_softmax_gamma(softmax_gamma):
    X, y = noisy(80, 2)
    theirs = LogisticRegression(C=2 * 0.7, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(X, y)
    ours = svc(C=0.7, softmax_gamma=softmax_gamma, tol=1e-15).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    if softmax_gamma == 1:
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


@every_solver
@as_near_as_rounding_allows
def test_logistic_regression_without_an_intercept_is_the_same_too(solver):
    X, y = noisy(120, 4)
    theirs = LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=1000, fit_intercept=False).fit(X, y)
    ours = svc(solver=solver, fit_intercept=False, tol=1e-15).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


# The optimum: hinges

FORMULATIONS = (("crammer-singer", np.inf), ("weston-watkins", 0.0))


@pytest.mark.parametrize(("formulation", "softmax_gamma"), FORMULATIONS)
@every_solver
def test_smoothed_hinges_come_to_the_optimum_of_the_dual_solvers_from_below(formulation, softmax_gamma, solver):
    X, y = noisy(40, 4, 3)
    exact = MulticlassSVC(kernel="linear", formulation=formulation, tol=1e-8, max_iter=10**5, random_state=0)
    linear = LinearMulticlassSVC(
        formulation=formulation, fit_intercept=False, tol=1e-8, max_iter=10**5, random_state=0
    ).fit(X, y)
    optimum = exact.fit(X, y).result_.dual
    assert linear.result_.dual == pytest.approx(optimum, rel=1e-7)
    hinges = 3 if formulation == "weston-watkins" else 1  # the losses of an example that smoothing lowers
    before = 0.0
    tol = 1e-3 if solver == "cg" else 1e-6
    for smoothing in (1.0, 0.1, 0.01):
        model = with_loss("smoothed_hinge", smoothing, softmax_gamma=softmax_gamma, fit_intercept=False)
        result = model.set_params(solver=solver, tol=tol, max_iter=5000).fit(X, y).result_
        assert before <= result.primal
        assert result.dual <= optimum * (1 + 1e-9) <= result.primal + smoothing / 2 * hinges * len(y)
        before = result.dual
    assert before == pytest.approx(optimum, rel=0.02)


@pytest.mark.parametrize(("formulation", "softmax_gamma"), FORMULATIONS)
def test_smoothed_hinges_with_free_biases_come_to_the_optimum_of_a_general_solver(formulation, softmax_gamma):
    X, y = noisy(24, 3, 2)
    costs = np.random.default_rng(0).uniform(0.5, 2, len(y))
    optimum = reference.hinge_minimum(formulation, X, y, costs, 3)
    hinges = 2 if formulation == "weston-watkins" else 1
    for smoothing in (0.1, 0.001):
        model = with_loss("smoothed_hinge", smoothing, softmax_gamma=softmax_gamma, tol=1e-6, max_iter=20_000)
        result = model.fit(X, y, sample_weight=costs).result_
        assert result.dual <= optimum * (1 + 1e-7) <= result.primal * (1 + 2e-6) + smoothing / 2 * hinges * costs.sum()


# The optimum: every loss, aggregation, solver and label kernel


@every_loss
@pytest.mark.parametrize("softmax_gamma", [0.0, 0.5, 1.0, 30.0])
@not_convex
def test_every_solver_reaches_the_optimum_of_a_general_minimiser(loss, smoothing, softmax_gamma):
    X, y = noisy(40, 4)
    wanted, scores = reference.minimum(X, y, np.full(len(y), 0.5), loss, smoothing, softmax_gamma)
    for solver in SOLVERS:
        model = with_loss(loss, smoothing, softmax_gamma=softmax_gamma, C=0.5, solver=solver).fit(X, y)
        assert model.result_.primal == pytest.approx(wanted, rel=1e-8)
        f = model.decision_function(X)
        centred = scores - scores.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(f - f.mean(axis=1, keepdims=True), centred, atol=2e-3)


@every_loss
def test_every_solver_reaches_the_same_maximum(loss, smoothing):
    X, y = noisy(40, 4)
    results = [
        with_loss(loss, smoothing, softmax_gamma=np.inf, solver=solver, tol=tol).fit(X, y).result_
        for solver, tol in (("newton", 1e-6), ("lbfgs", 1e-6), ("cg", 1e-3))
    ]
    for result, tol in zip(results, (1e-6, 1e-6, 1e-3), strict=True):
        assert result.status == "converged"
        assert max(r.dual for r in results) <= result.primal <= min(r.primal for r in results) * (1 + 2 * tol)


LABEL_KERNELS = {
    "alike": ALIKE,
    "any": np.array([[2.0, -0.5, 0.3], [-0.5, 1.0, 0.2], [0.3, 0.2, 0.7]]),
    "singular": np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]),
    "tree": tree_label_kernel([[0, 1], [2]]),
}


@pytest.mark.parametrize("name", LABEL_KERNELS)
@pytest.mark.parametrize(("loss", "softmax_gamma"), [("log_loss", 1.0), ("squared_hinge", 0.0)])
@pytest.mark.parametrize("intercept", [True, False])
def test_label_kernels_have_the_optimum_of_a_general_minimiser(name, loss, softmax_gamma, intercept):
    X, y = noisy()
    K = LABEL_KERNELS[name]
    wanted, scores = reference.minimum(
        X, y, np.ones(len(y)), loss, 1.0, softmax_gamma, label_kernel=K, intercept=intercept
    )
    for solver in SOLVERS:
        model = svc(loss=loss, softmax_gamma=softmax_gamma, label_kernel=K, solver=solver, fit_intercept=intercept)
        result = model.fit(X, y).result_
        assert result.status == "converged"
        assert result.dual - 1e-8 <= wanted <= result.primal + 1e-8
        f = model.decision_function(X)
        centred = scores - scores.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(f - f.mean(axis=1, keepdims=True), centred, atol=2e-3)


def test_classes_that_are_said_to_be_alike_share_strength():
    """A class with three examples borrows from one with many that lies the same way."""
    random = np.random.default_rng(0)
    centres = np.array([[2.0, 2.0, 0.5], [2.0, 2.0, -0.5], [-2.0, -2.0, 0.0]])
    counts = [60, 3, 60]
    y = np.repeat(np.arange(3), counts)
    X = centres[y] + random.normal(size=(len(y), 3))
    apart, alike = (svc(label_kernel=kernel, C=0.05).fit(X, y) for kernel in (None, ALIKE))
    cosine = [np.dot(m.coef_[0], m.coef_[1]) / np.prod(np.linalg.norm(m.coef_[:2], axis=1)) for m in (apart, alike)]
    assert cosine[0] + 0.1 < cosine[1]
    fresh = centres[np.repeat(np.arange(3), 300)] + random.normal(size=(900, 3))
    truth = np.repeat(np.arange(3), 300)
    upper = truth < 2  # that a rare class is not taken for the far one
    assert (alike.predict(fresh)[upper] < 2).mean() >= (apart.predict(fresh)[upper] < 2).mean()


def test_the_identity_as_label_kernel_changes_nothing():
    X, y = noisy()
    np.testing.assert_allclose(svc(label_kernel=np.eye(3)).fit(X, y).coef_, svc().fit(X, y).coef_, atol=1e-4)
    np.testing.assert_allclose(
        svc(label_kernel=4 * np.eye(3)).fit(X, y).coef_, svc(C=4.0).fit(X, y).coef_, atol=1e-4
    )  # f = X W 2, so the same scores take a quarter of |W|^2


@pytest.mark.parametrize("name", LABEL_KERNELS)
def test_the_violation_vanishes_at_the_optimum_of_every_label_kernel(name):
    X, y = noisy()
    assert svc(label_kernel=LABEL_KERNELS[name], tol=1e-13).fit(X, y).result_.violation <= 1e-4


# The certificate


@st.composite
def problems(draw):
    n, features, classes = draw(st.integers(4, 12)), draw(st.integers(1, 3)), draw(st.integers(2, 4))
    value = st.integers(-8, 8).map(lambda v: v / 4)
    X = np.array(draw(st.lists(st.lists(value, min_size=features, max_size=features), min_size=n, max_size=n)))
    y = np.r_[np.arange(classes), draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))][:n]
    weight = np.array(draw(st.lists(st.sampled_from([0.25, 1.0, 4.0]), min_size=n, max_size=n)))
    loss, smoothing = draw(st.sampled_from(reference.LOSSES))
    A = np.array(draw(st.lists(value, min_size=classes**2, max_size=classes**2))).reshape(classes, classes)
    parameters = {
        "loss": loss,
        **({"smoothing": smoothing} if loss == "smoothed_hinge" else {}),
        "softmax_gamma": draw(st.sampled_from([*GAMMAS, 0.0, 1.0, np.inf])),
        "label_kernel": draw(st.sampled_from([None, None, A @ A.T + np.eye(classes) / 4])),
        "C": draw(st.sampled_from([0.01, 1.0, 10.0])),
        "fit_intercept": draw(st.booleans()),
        "solver": draw(st.sampled_from(SOLVERS)),
        "max_iter": draw(st.sampled_from([1, 3, 10, 300])),
        "tol": draw(st.sampled_from([1e-1, 1e-3, 1e-6])),
    }
    return X, y, weight, parameters


@settings(max_examples=30)
@given(problems())
def test_the_optimum_lies_between_dual_and_primal_wherever_training_ended(problem):
    X, y, weight, parameters = problem
    model, k = svc(**parameters), y.max() + 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sample_weight=weight)
    result, costs = model.result_, parameters["C"] * weight
    convex = PrimalLoss(model.loss, model.softmax_gamma, model.smoothing).is_convex(k)
    assert any("not convex" in str(warning.message) for warning in caught) == (not convex)
    assert np.isnan(result.dual) == (not convex)
    if k > 2 or model.label_kernel is None:  # the weights of two classes are kept as one
        primal = reference.objective_of(model, X, y, costs, model.label_kernel)
        assert result.primal == pytest.approx(primal, rel=1e-8)
    if model.fit_intercept:
        assert model.intercept_.shape == ((1,) if k == 2 else (k,))
    else:
        assert not model.intercept_.any()
    if not convex:
        return
    assert 0 <= result.dual <= result.primal
    softmax_gamma = model.softmax_gamma if k > 2 else 0.0
    lowest = best_known(X, y, costs, model, softmax_gamma)
    assert result.dual <= lowest * (1 + 1e-7) + 1e-9
    for point in result.history:
        assert point.dual <= point.primal or not point.exact


def best_known(X, y, costs, model, softmax_gamma):
    """An objective that some model has: of a general minimiser, or for the maximum of one that looks long."""
    if np.isfinite(softmax_gamma):
        arguments = (X, y, costs, model.loss, model.smoothing, softmax_gamma)
        return reference.minimum(*arguments, label_kernel=model.label_kernel, intercept=model.fit_intercept)[0]
    longer = clone(model).set_params(C=1.0, tol=1e-7, max_iter=500, solver="lbfgs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        longer.fit(X, y, sample_weight=costs)
    return reference.objective_of(longer, X, y, costs, model.label_kernel) if y.max() > 1 else longer.result_.primal


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge", "smoothed_hinge"])
@pytest.mark.parametrize("softmax_gamma", GAMMAS)
@pytest.mark.parametrize("classes", [2, 3, 6, 7])
def test_a_warning_and_no_dual_come_exactly_where_the_objective_is_not_convex(loss, softmax_gamma, classes):
    X, y = noisy(28, classes)
    between = 0 < softmax_gamma < np.inf and classes > 2
    not_convex = {
        "log_loss": softmax_gamma < 1,
        "squared_hinge": classes >= 7,
        "smoothed_hinge": True,
    }[loss] and between
    model = svc(loss=loss, softmax_gamma=softmax_gamma, tol=1e-3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert [warning.category for warning in caught] == [CertificateWarning] * not_convex
    assert np.isnan(model.result_.dual) == not_convex
    assert model.result_.status == "converged"
    for warning in caught:
        assert f"loss={loss!r} with softmax_gamma={softmax_gamma} is not convex with {classes} classes" in str(
            warning.message
        )
        assert warning.filename == __file__


@not_convex
@every_solver
def test_a_local_optimum_has_no_gradient(solver):
    X, y = noisy(60, 5)
    for loss in ("log_loss", "smoothed_hinge"):
        result = svc(loss=loss, softmax_gamma=0.3, solver=solver, tol=1e-10).fit(X, y).result_
        assert result.status == "converged"
        assert result.violation <= 1e-3


def test_biases_and_the_weights_of_the_identity_sum_up_to_zero():
    X, y = noisy(60, 4)
    model = svc(tol=1e-12).fit(X, y)
    assert abs(model.intercept_.sum()) <= 1e-12
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-5)


# How training ends


@pytest.mark.parametrize(
    ("parameters", "status"), [({"max_iter": 1}, "max_iter"), ({"time_limit": 1e-9}, "time_limit")]
)
@pytest.mark.parametrize("softmax_gamma", [1.0, np.inf])
@every_solver
def test_a_limit_leaves_a_valid_model_with_a_certificate(parameters, status, softmax_gamma, solver):
    X, y = noisy()
    model = svc(softmax_gamma=softmax_gamma, solver=solver, **parameters)
    with pytest.warns(TrainingWarning, match="the model is valid, its relative duality gap is"):
        model.fit(X, y)
    assert model.result_.status == status
    assert_valid(model, X, y)
    assert model.result_.exact
    assert model.result_.primal == pytest.approx(reference.objective_of(model, X, y, np.ones(len(y))), rel=1e-9)


@pytest.mark.parametrize("label_kernel", [None, ALIKE])
@pytest.mark.filterwarnings("ignore:training was ended")
def test_a_limit_on_the_way_through_smoother_hinges_leaves_the_best_model_so_far(label_kernel):
    X, y = noisy()
    before = np.inf
    for max_iter in range(1, 16):
        model = svc(loss="smoothed_hinge", smoothing=0.01, softmax_gamma=0, label_kernel=label_kernel)
        primal = model.set_params(max_iter=max_iter).fit(X, y).result_.primal
        assert primal <= 1.05 * before, "smoother hinges may disagree a little"
        before = primal


def test_ctrl_c_ends_a_path_with_the_models_so_far():
    X, y = noisy()
    with interrupt_when_training(), pytest.warns(TrainingWarning, match="ended by an interrupt"):
        models = svc(tol=1e-14).path(X, y, [1.0, 0.1, 10.0])
    assert [(model.C, model.result_.status) for model in models] == [(0.1, "interrupted")]


@every_solver
def test_a_gap_below_the_precision_of_the_examples_is_told(solver):
    X, y = noisy()
    model = svc(tol=1e-17, solver=solver)
    with pytest.warns(TrainingWarning, match="ended by the precision of X"):
        model.fit(X.astype(np.float32), y)
    assert model.result_.status == "precision"
    assert model.result_.relative_gap <= 1e-5
    assert model.coef_.dtype == np.float32
    exact = svc(tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-2)


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge", "smoothed_hinge"])
@pytest.mark.parametrize("softmax_gamma", [0.0, np.inf])
def test_features_that_tell_nothing_leave_the_biases(loss, softmax_gamma):
    y = np.array([0, 0, 0, 1, 1, 2])
    model = svc(loss=loss, softmax_gamma=softmax_gamma, tol=1e-6).fit(np.zeros((6, 2)), y)
    assert not model.coef_.any()
    assert model.result_.status == "converged"
    assert (model.predict(np.zeros((1, 2))) == [0]).all()


# Weights, starts, paths, threads


@pytest.mark.parametrize("softmax_gamma", [0.0, 1.0, np.inf])
def test_weights_of_examples_count_them_as_often(softmax_gamma):
    X, y = noisy()
    often = np.random.default_rng(0).integers(0, 4, len(y))
    often[:3] = 1
    tol = 1e-11 if np.isfinite(softmax_gamma) else 1e-7
    weighted = svc(softmax_gamma=softmax_gamma, tol=tol).fit(X, y, sample_weight=often)
    repeated = svc(softmax_gamma=softmax_gamma, tol=tol).fit(np.repeat(X, often, axis=0), np.repeat(y, often))
    assert weighted.result_.primal == pytest.approx(repeated.result_.primal, rel=2 * tol)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=10 * np.sqrt(tol))


@every_solver
@pytest.mark.parametrize(
    "label_kernel", [None, ALIKE, LABEL_KERNELS["singular"]], ids=["identity", "alike", "singular"]
)
def test_a_warm_start_takes_fewer_passes_to_the_same_optimum(solver, label_kernel):
    X, y = noisy()
    cold = svc(solver=solver, label_kernel=label_kernel, tol=1e-8).fit(X, y)
    warm = svc(solver=solver, label_kernel=label_kernel, tol=1e-8, C=0.99, warm_start=True).fit(X, y)
    warm.set_params(C=1.0).fit(X, y)
    assert warm.n_iter_ < cold.n_iter_
    assert warm.result_.primal == pytest.approx(cold.result_.primal, rel=1e-8)
    again = warm.fit(X, y)
    assert again.n_iter_ <= 3


def test_a_warm_start_with_two_classes_begins_at_the_model_before():
    X, y = noisy(60, 2)
    model = svc(warm_start=True).fit(X, y)
    before = model.coef_
    assert model.fit(X, y).n_iter_ <= 3
    np.testing.assert_allclose(model.coef_, before, atol=1e-5)


def test_a_warm_start_needs_the_features_and_classes_of_the_fit_before():
    X, y = noisy()
    model = svc(warm_start=True).fit(X, y)
    with (
        unchanged(model, X),
        pytest.raises(ValueError, match=r"warm_start needs the features and classes of the fit before, 4 .*got 3"),
    ):
        model.fit(X[:, :3], y)
    with unchanged(model, X), pytest.raises(ValueError, match=r"warm_start needs .*\[0, 1, 2\]; got 4 and \[0, 1\]"):
        model.fit(X[y < 2], y[y < 2])


@pytest.mark.parametrize("label_kernel", [None, ALIKE], ids=["identity", "alike"])
def test_a_path_has_the_optima_of_single_fits_in_the_order_of_its_costs(label_kernel):
    X, y = noisy()
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    Cs = [1.0, 0.01, 30.0]
    path = svc(label_kernel=label_kernel).path(X, y, Cs, sample_weight=weight)
    assert [model.C for model in path] == Cs
    for model in path:
        single = clone(model).fit(X, y, sample_weight=weight)
        assert model.result_.primal == pytest.approx(single.result_.primal, rel=1e-8)
        np.testing.assert_allclose(model.coef_, single.coef_, atol=1e-3)
        assert_valid(model, X, y)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("n", [200, 9000])
def test_threads_do_not_change_the_model_by_a_bit(layout, n):
    X, y = noisy(n)
    for solver in SOLVERS[:2]:
        one, two = (svc(n_jobs=n_jobs, solver=solver, tol=1e-7).fit(layout(X), y) for n_jobs in (1, 2))
        assert_same_model(one, two)


@pytest.mark.parametrize("softmax_gamma", [0.0, 1.0, np.inf])
def test_sparse_rows_and_single_precision_make_the_model_of_dense_ones(softmax_gamma):
    X, y = noisy()
    X = np.where(np.abs(X) > 0.4, X, 0)
    dense = svc(softmax_gamma=softmax_gamma, tol=1e-7).fit(X, y)
    for other in (sparse.csr_matrix(X), sparse.csr_matrix(X.astype(np.float32)), X.astype(np.float32)):
        model = svc(softmax_gamma=softmax_gamma, tol=2e-5).fit(other, y)
        assert model.coef_.dtype == other.dtype
        assert model.result_.primal == pytest.approx(dense.result_.primal, rel=2e-5)
        np.testing.assert_allclose(model.decision_function(other), dense.decision_function(X), atol=0.05)


@as_near_as_rounding_allows
@pytest.mark.parametrize("C", [1e3, 1e6])
@every_loss
def test_in_single_precision_the_primal_objective_is_that_of_the_published_weights(loss, smoothing, C):
    for classes in (2, 3):
        X, y = noisy(classes=classes)
        X = np.hstack([X, np.full((len(X), 1), 3.0)]).astype(np.float32)
        model = with_loss(loss, smoothing, C=C, softmax_gamma=0, tol=1e-3).fit(X, y)
        expected = reference.objective_of(model, X, np.unique(y, return_inverse=True)[1], np.full(len(y), C))
        assert model.result_.primal == pytest.approx(expected, rel=2e-9)
        assert model.result_.status != "converged" or model.result_.relative_gap <= 1e-3


def test_more_features_than_a_matrix_is_formed_for_reach_the_same_optimum():
    _, y = noisy()
    random = np.random.default_rng(0)
    for features in (200, 2500):  # one matrix for all classes; its diagonal
        wide = random.normal(size=(len(y), features)) * (random.random((len(y), features)) < 0.1)
        wide = sparse.csr_matrix(wide)
        newton, lbfgs = (svc(solver=solver, tol=1e-8).fit(wide, y).result_ for solver in ("newton", "lbfgs"))
        assert newton.primal == pytest.approx(lbfgs.primal, rel=1e-7)


def test_wide_dense_examples_are_not_copied():
    wide = np.random.default_rng(0).normal(size=(1000, 3000)).astype(np.float32)
    tracemalloc.start()
    try:
        svc(tol=1e-2).fit(wide, np.arange(1000) % 3)
        assert tracemalloc.get_traced_memory()[1] < wide.nbytes / 2
    finally:
        tracemalloc.stop()


# Probabilities


@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_are_the_softmax_of_the_scores(classes):
    X, y = noisy(60, classes)
    model = svc(tol=1e-4).fit(X, y)
    probabilities, f = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(
        probabilities, softmax(np.column_stack([np.zeros_like(f), f]) if classes == 2 else f, axis=1), rtol=1e-12
    )
    far = model.predict_proba(1e6 * X)
    assert np.isfinite(far).all()
    np.testing.assert_allclose(far.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [("loss", "squared_hinge"), ("loss", "smoothed_hinge"), ("softmax_gamma", 2.0), ("softmax_gamma", 0.0)],
)
@not_convex
def test_other_losses_have_no_probabilities_and_say_why(name, value):
    X, y = noisy()
    model = svc(tol=1e-2, **{name: value}).fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match=f"{name}={value!r}.* Set loss='log_loss' and softmax_gamma=1"):
        model.predict_proba(X)


# Kernels, through maps


@cache
def kernel_minimum(n, loss, softmax_gamma, name):
    """The minimum over the coefficients of the representer theorem, f = K alpha K_Y + b, by a general minimiser."""
    X, labels = noisy(n)
    K, k, label_kernel = gram(X), 3, LABEL_KERNELS.get(name, np.eye(3))

    def objective(values):
        alpha, b = values[: n * k].reshape(n, k), values[n * k :]
        V = alpha @ label_kernel
        each, G = reference.losses_of(K @ V + b, labels, loss, 1.0, softmax_gamma)
        gradient = K @ (alpha + G) @ label_kernel
        return 0.5 * (alpha * (K @ V)).sum() + each.sum(), np.concatenate([gradient.ravel(), G.sum(axis=0)])

    options = {"maxiter": 10_000, "maxfun": 10_000, "ftol": 1e-14, "gtol": 1e-7, "maxcor": 80}
    found = minimize(objective, np.zeros(n * k + k), jac=True, method="L-BFGS-B", options=options)
    f = K @ found.x[: n * k].reshape(n, k) @ label_kernel + found.x[n * k :]
    return found.fun, f - f.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("feature_map", ["cholesky", "kpca"])
@pytest.mark.parametrize(("loss", "softmax_gamma"), [("log_loss", 1.0), ("squared_hinge", 0.0)])
@pytest.mark.parametrize("name", ["identity", "alike"])
def test_exact_maps_have_the_optimum_over_the_coefficients_of_all_examples(feature_map, loss, softmax_gamma, name):
    X, y = noisy(12)
    wanted, scores = kernel_minimum(12, loss, softmax_gamma, name)
    model = svc(kernel="rbf", gamma=GAMMA, feature_map=feature_map, loss=loss, softmax_gamma=softmax_gamma)
    model.set_params(label_kernel=LABEL_KERNELS.get(name)).fit(X, y)
    assert model.result_.primal == pytest.approx(wanted, rel=1e-7)
    assert model.result_.dual <= wanted * (1 + 1e-9)
    f = model.decision_function(X)
    np.testing.assert_allclose(f - f.mean(axis=1, keepdims=True), scores, atol=1e-3)
    assert model.map_.trace_error_ <= 1e-9


@pytest.mark.parametrize(
    "kernel", [{"kernel": "rbf"}, {"kernel": "poly", "degree": 2, "coef0": 1.0}, {"kernel": "laplacian"}]
)
def test_full_cholesky_and_full_kernel_pca_make_the_same_predictions(kernel):
    X, y = noisy(80)
    fresh = np.random.default_rng(1).normal(size=(200, 4))
    cholesky, kpca = (svc(feature_map=name, tol=1e-11, **kernel).fit(X, y) for name in ("cholesky", "kpca"))
    assert cholesky.result_.primal == pytest.approx(kpca.result_.primal, rel=1e-8)
    np.testing.assert_allclose(cholesky.decision_function(fresh), kpca.decision_function(fresh), atol=1e-3)
    np.testing.assert_array_equal(cholesky.predict(fresh), kpca.predict(fresh))


def test_all_ways_to_give_a_kernel_make_the_same_model():
    X, y = noisy()
    fresh = np.random.default_rng(1).normal(size=(20, 4))
    named = svc(kernel="rbf", gamma=GAMMA).fit(X, y)
    called = svc(kernel=gram).fit(X, y)
    given = svc(kernel="precomputed").fit(gram(X), y)
    sparse_rows = svc(kernel="rbf", gamma=GAMMA).fit(sparse.csr_matrix(X), y)
    for model, values in ((called, fresh), (given, gram(fresh, X)), (sparse_rows, sparse.csr_matrix(fresh))):
        assert model.result_.primal == pytest.approx(named.result_.primal, rel=1e-7)
        np.testing.assert_allclose(model.decision_function(values), named.decision_function(fresh), atol=1e-3)


def test_a_map_of_the_linear_kernel_makes_the_linear_model():
    X, y = noisy()
    mapped, plain = svc(feature_map="cholesky").fit(X, y), svc().fit(X, y)
    assert mapped.map_.n_components_ == 4
    assert mapped.result_.primal == pytest.approx(plain.result_.primal, rel=1e-8)
    np.testing.assert_allclose(mapped.decision_function(X), plain.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("feature_map", ["cholesky", "kpca"])
def test_fewer_features_have_a_higher_optimum_and_a_known_error(feature_map):
    X, y = noisy(80)
    models = [
        svc(kernel="rbf", gamma=GAMMA, feature_map=feature_map, n_components=rank).fit(X, y) for rank in (5, 20, 80)
    ]
    primal = [model.result_.primal for model in models]
    assert primal == sorted(primal, reverse=True)
    errors = [model.map_.trace_error_ for model in models]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.1 > errors[-1]
    assert [model.coef_.shape for model in models[:2]] == [(3, 5), (3, 20)]


def test_a_linear_fit_after_one_with_a_map_forgets_the_map():
    X, y = noisy()
    model = svc(kernel="rbf", n_components=20, tol=1e-3).fit(X, y)
    model.set_params(kernel="linear", n_components=None).fit(X, y)
    assert not hasattr(model, "map_")
    assert model.decision_function(X).shape == (60, 3)


def test_threads_do_not_change_a_model_behind_a_map():
    X, y = noisy(300)
    one, two = (svc(kernel="rbf", n_components=50, n_jobs=n_jobs, tol=1e-6).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize(
    ("change", "name"),
    [({"kernel": "poly"}, "kernel"), ({"n_components": 5}, "n_components"), ({"feature_map": "kpca"}, "feature_map")],
)
def test_a_path_has_one_map_and_a_warm_start_keeps_it_and_refuses_another(change, name):
    X, y = noisy()
    path = svc(kernel="rbf", n_components=20).path(X, y, [1.0, 0.1])
    assert path[0].map_ is path[1].map_
    model = svc(kernel="rbf", n_components=20, warm_start=True).fit(X, y)
    assert path[0].result_.primal == pytest.approx(model.result_.primal, rel=1e-8)
    first = model.map_
    assert model.fit(X, y).map_ is first
    assert model.n_iter_ <= 3
    assert model.set_params(C=2.0).fit(X, y).map_ is first
    with pytest.raises(ValueError, match=f"warm_start needs the map of the fit before.*{name}"):
        model.set_params(**change).fit(X, y)
    assert model.map_ is first


# Errors


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 1e304}, r"X times the square root of its costs must be at most 1e\+151"),
        ({"softmax_gamma": 1e300}, r"second derivatives that float32 holds, got softmax_gamma=1e\+300"),
        ({"kernel": "rbf", "n_components": 61}, r"n_components must be at most the number of examples.*60; got 61"),
        (
            {"kernel": "rbf", "feature_map": "kpca", "n_components": 61},
            r"n_components must be at most the number of examples.*60; got 61",
        ),
        ({"kernel": "sigmoid", "gamma": 5.0, "coef0": -3.0}, r"positive semi-definite.*pivot \d+"),
        ({"kernel": "rbf", "memory_limit": 1000}, r"memory_limit.*; n_components=\d+ or fitting on \d+"),
        ({"class_weight": {0: 1.0, 1: 0.0, 2: 1.0}}, "must leave every class some weight.*got none for 1"),
    ],
)
def test_parameters_that_do_not_fit_the_examples_are_refused(parameters, message):
    X, y = noisy()
    model = svc(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X.astype(np.float32 if "softmax_gamma" in parameters else float), y)
    assert not hasattr(model, "coef_")


def test_a_class_without_weight_needs_a_model_without_biases():
    X, y = noisy()
    weight = np.where(y == 2, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"must leave every class some weight with fit_intercept=True.*got none for 2"):
        svc().fit(X, y, sample_weight=weight)
    model = svc(fit_intercept=False, solver="lbfgs", tol=1e-6).fit(X, y, sample_weight=weight)
    assert_valid(model, X, y)
    assert model.coef_.shape == (3, 4)


def test_a_loaded_model_with_a_label_kernel_is_the_same_and_warm_starts(tmp_path):
    X, y = noisy()
    model = svc(label_kernel=ALIKE).fit(X, y)
    larank.save(model, tmp_path / "model.larank")
    loaded = larank.load(tmp_path / "model.larank")
    assert_same_model(model, loaded)
    assert_same_result(model, loaded)
    loaded.set_params(warm_start=True).fit(X, y)
    assert loaded.n_iter_ <= model.n_iter_
