"""The primal multiclass SVM: optima of other solvers, certificate, label kernels, and what a person may get wrong."""

import contextlib
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from test_sdm import grid_examples

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
from larank import CertificateWarning, KernelPCAMap, PivotedCholeskyMap, SmoothedHinge, TrainingWarning
from larank.linear.labelkernel import tree_label_kernel
from larank.linear.primal import PrimalMulticlassSVC
from larank.linear.primalobjective import PrimalLoss
from properties import draws
from references import optima
from references import primal as reference

SOLVERS = ("newton", "cg")
GAMMAS = (0.0, 0.05, 0.5, 1.0, 2.0, 30.0, np.inf)
ALIKE = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])

every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_loss = pytest.mark.parametrize(("loss", "smoothing"), reference.LOSSES)
every_map = pytest.mark.parametrize("kernel_map", [PivotedCholeskyMap, KernelPCAMap])
not_convex = pytest.mark.filterwarnings("ignore:.*is not convex")
as_near_as_rounding_allows = pytest.mark.filterwarnings("ignore:training was ended by the precision")


def svc(**parameters):
    return PrimalMulticlassSVC(**{"tol": 1e-9, "random_state": 0, **parameters})


@cache
def noisy(n=60, classes=3, features=4):
    """Clouds that overlap so much that every loss is at work on both sides of its corners."""
    X, y = clouds(n, classes, features)
    return 0.6 * X, y


def loss_named(loss, smoothing):
    return SmoothedHinge(width=smoothing) if loss == "smoothed_hinge" else loss


def with_loss(loss, smoothing, **parameters):
    return svc(loss=loss_named(loss, smoothing), **parameters)


def centred(scores):
    return scores - scores.mean(axis=1, keepdims=True)


EXACTLY = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}


@every_solver
@pytest.mark.parametrize(("C", "fit_intercept"), [(0.1, True), (2.0, True), (1.0, False)])
@as_near_as_rounding_allows
def test_the_default_is_multinomial_logistic_regression_with_the_same_cost(solver, C, fit_intercept):
    X, y = noisy(120, 4)
    ours = svc(C=C, solver=solver, fit_intercept=fit_intercept, tol=1e-15).fit(X, y)
    theirs = LogisticRegression(C=C, fit_intercept=fit_intercept, **EXACTLY).fit(X, y)
    intercept = theirs.intercept_ - theirs.intercept_.mean()
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, intercept, atol=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), X @ theirs.coef_.T + intercept, atol=1e-6)


@pytest.mark.parametrize("softmax_gamma", GAMMAS)
@as_near_as_rounding_allows
def test_two_classes_are_binary_logistic_regression_of_twice_the_cost_whatever_softmax_gamma(softmax_gamma):
    X, y = noisy(80, 2)
    theirs = LogisticRegression(C=2 * 0.7, **EXACTLY).fit(X, y)
    ours = svc(C=0.7, softmax_gamma=softmax_gamma, tol=1e-15).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    if softmax_gamma == 1:
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


FORMULATIONS = (("crammer-singer", np.inf), ("weston-watkins", 0.0))


@pytest.mark.parametrize(("formulation", "softmax_gamma"), FORMULATIONS)
@pytest.mark.parametrize("fit_intercept", [False, True])
@every_solver
def test_smoothed_hinges_come_to_the_optimum_of_a_general_solver_from_below(
    formulation, softmax_gamma, fit_intercept, solver
):
    X, y = noisy(24, 3, 2)
    costs = np.random.default_rng(0).uniform(0.5, 2, len(y))
    if fit_intercept:
        optimum = reference.hinge_minimum(formulation, X, y, costs, 3)
    else:
        optimum = optima.optimum(formulation, X, y, costs, 3)[1]
    hinges = 2 if formulation == "weston-watkins" else 1  # the losses of an example that smoothing lowers
    tol = 1e-3 if solver == "cg" else 1e-6
    model = svc(solver=solver, softmax_gamma=softmax_gamma, tol=tol, max_iter=20_000)
    before = 0.0
    for width in (1.0, 0.1, 0.01, 0.001):
        model.set_params(fit_intercept=fit_intercept, loss=SmoothedHinge(width=width))
        result = model.fit(X, y, costs).result_
        assert before <= result.primal
        lowered = width / 2 * hinges * costs.sum()
        assert result.dual <= optimum * (1 + 1e-7) <= result.primal * (1 + 2e-6) + lowered
        before = result.dual
    assert before == pytest.approx(optimum, rel=0.02)


@every_loss
def test_every_solver_reaches_the_same_maximum(loss, smoothing):
    X, y = noisy(40, 4)
    tols = {"newton": 1e-6, "cg": 1e-3}
    models = [with_loss(loss, smoothing, softmax_gamma=np.inf, solver=name, tol=tol) for name, tol in tols.items()]
    results = [model.fit(X, y).result_ for model in models]
    for result, tol in zip(results, tols.values(), strict=True):
        assert result.status == "converged"
        assert max(r.dual for r in results) <= result.primal <= min(r.primal for r in results) * (1 + 2 * tol)


LABEL_KERNELS = {
    "identity": None,
    "scaled": 4 * np.eye(3),
    "alike": ALIKE,
    "any": np.array([[2.0, -0.5, 0.3], [-0.5, 1.0, 0.2], [0.3, 0.2, 0.7]]),
    "singular": np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]),
    "tree": tree_label_kernel([[0, 1], [2]]),
}

OBJECTIVES = [
    *(("identity", *loss, gamma, True) for loss in reference.LOSSES for gamma in (0.0, 0.5, 1.0, 30.0)),
    *(
        (name, *loss, intercept)
        for name in LABEL_KERNELS
        for loss in (("log_loss", 1.0, 1.0), ("squared_hinge", 1.0, 0.0))
        for intercept in (True, False)
    ),
]


@pytest.mark.parametrize(("name", "loss", "smoothing", "softmax_gamma", "intercept"), OBJECTIVES)
@not_convex
def test_every_solver_reaches_the_optimum_of_a_general_minimiser(name, loss, smoothing, softmax_gamma, intercept):
    X, y = noisy()
    kernel = {"label_kernel": LABEL_KERNELS[name]}
    wanted, scores = reference.minimum(
        X, y, np.full(len(y), 0.5), loss, smoothing, softmax_gamma, intercept=intercept, **kernel
    )
    for solver in SOLVERS:
        model = with_loss(loss, smoothing, softmax_gamma=softmax_gamma, C=0.5, solver=solver, **kernel)
        result = model.set_params(fit_intercept=intercept).fit(X, y).result_
        assert result.status == "converged"
        assert result.primal == pytest.approx(wanted, rel=1e-8)
        assert not result.dual > wanted + 1e-8  # it is not a number where the objective is not convex
        np.testing.assert_allclose(centred(model.decision_function(X)), centred(scores), atol=2e-3)


def test_classes_that_are_said_to_be_alike_share_strength():
    """A class with three examples borrows from one with many that lies the same way."""
    random = np.random.default_rng(0)
    centres = np.array([[2.0, 2.0, 0.5], [2.0, 2.0, -0.5], [-2.0, -2.0, 0.0]])
    y, truth = np.repeat(np.arange(3), [60, 3, 60]), np.repeat(np.arange(3), 300)
    X, fresh = (centres[labels] + random.normal(size=(len(labels), 3)) for labels in (y, truth))
    models = [svc(label_kernel=kernel, C=0.05).fit(X, y) for kernel in (None, ALIKE)]
    apart, alike = (np.dot(*m.coef_[:2]) / np.prod(np.linalg.norm(m.coef_[:2], axis=1)) for m in models)
    assert apart + 0.1 < alike
    # A rare class is not taken for the far one.
    apart, alike = ((m.predict(fresh)[truth < 2] < 2).mean() for m in models)
    assert alike >= apart


@pytest.mark.parametrize("name", LABEL_KERNELS)
def test_at_the_optimum_the_violation_vanishes_and_biases_and_weights_of_the_identity_sum_up_to_zero(name):
    X, y = noisy()
    model = svc(label_kernel=LABEL_KERNELS[name], tol=1e-13).fit(X, y)
    assert model.result_.violation <= 1e-4
    if name == "identity":
        assert abs(model.intercept_.sum()) <= 1e-12
        np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-5)


@st.composite
def problems(draw):
    X, y, weight = draw(grid_examples(features=3))
    classes, value = int(y.max()) + 1, st.integers(-8, 8).map(lambda v: v / 4)
    A = np.array(draw(st.lists(value, min_size=classes**2, max_size=classes**2))).reshape(classes, classes)
    parameters = {
        "loss": loss_named(*draw(st.sampled_from(reference.LOSSES))),
        "softmax_gamma": draw(st.sampled_from([*GAMMAS, 0.0, 1.0, np.inf])),
        "label_kernel": draw(st.sampled_from([None, None, A @ A.T + np.eye(classes) / 4])),
        "C": draw(st.sampled_from([0.01, 1.0, 10.0])),
        "fit_intercept": draw(st.booleans()),
        "solver": draw(st.sampled_from(SOLVERS)),
        "max_iter": draw(st.sampled_from([1, 3, 10, 300])),
        "tol": draw(st.sampled_from([1e-1, 1e-3, 1e-6])),
    }
    return X, y, weight, parameters


@draws(30)
@given(problems())
@pytest.mark.filterwarnings("ignore:training was ended")
def test_the_optimum_lies_between_dual_and_primal_wherever_training_ended(problem):
    X, y, weight, parameters = problem
    model, k = svc(**parameters), y.max() + 1
    loss, width = reference.loss_of(model)
    convex = PrimalLoss(loss, model.softmax_gamma, width).is_convex(k)
    with contextlib.nullcontext() if convex else pytest.warns(CertificateWarning, match="not convex"):
        model.fit(X, y, sample_weight=weight)
    result, costs = model.result_, parameters["C"] * weight
    assert np.isnan(result.dual) == (not convex)
    if k > 2 or model.label_kernel is None:  # the weights of two classes are kept as one
        primal = reference.objective_of(model, X, y, costs, model.label_kernel)
        assert result.primal == pytest.approx(primal, rel=1e-8)
    assert model.intercept_.shape == ((1,) if k == 2 else (k,))
    assert model.fit_intercept or not model.intercept_.any()
    if convex:
        assert 0 <= result.dual <= result.primal
        assert result.dual <= best_known(X, y, costs, model) * (1 + 1e-7) + 1e-9
        assert all(point.dual <= point.primal for point in result.history if point.exact)


def best_known(X, y, costs, model):
    """An objective that some model has: of a general minimiser, or for the maximum of one that looks long."""
    softmax_gamma = model.softmax_gamma if y.max() > 1 else 0.0
    if np.isfinite(softmax_gamma):
        arguments = (X, y, costs, *reference.loss_of(model), softmax_gamma)
        return reference.minimum(*arguments, label_kernel=model.label_kernel, intercept=model.fit_intercept)[0]
    longer = clone(model).set_params(C=1.0, tol=1e-7, max_iter=500, solver="newton")
    return reference.objective_of(longer.fit(X, y, sample_weight=costs), X, y, costs, model.label_kernel)


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge", "smoothed_hinge"])
@pytest.mark.parametrize("softmax_gamma", GAMMAS)
@pytest.mark.parametrize("classes", [2, 3, 6, 7])
def test_a_warning_and_no_dual_come_exactly_where_the_objective_is_not_convex(loss, softmax_gamma, classes):
    X, y = noisy(28, classes)
    is_bent = {"log_loss": softmax_gamma < 1, "squared_hinge": classes >= 7, "smoothed_hinge": True}[loss]
    not_convex = is_bent and 0 < softmax_gamma < np.inf and classes > 2
    model = svc(loss=loss, softmax_gamma=softmax_gamma, tol=1e-3)
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(X, y)
    assert [(warning.category, warning.filename) for warning in caught] == [(CertificateWarning, __file__)] * not_convex
    said = f"loss={loss!r} with softmax_gamma={softmax_gamma} is not convex with {classes} classes"
    assert all(said in str(warning.message) for warning in caught)
    assert np.isnan(model.result_.dual) == not_convex
    assert model.result_.status == "converged"


@not_convex
@every_solver
def test_a_local_optimum_has_no_gradient(solver):
    X, y = noisy(60, 5)
    for loss in ("log_loss", "smoothed_hinge"):
        result = svc(loss=loss, softmax_gamma=0.3, solver=solver, tol=1e-10).fit(X, y).result_
        assert result.status == "converged"
        assert result.violation <= 1e-3


@pytest.mark.parametrize("limit", [{"max_iter": 1}, {"time_limit": 1e-9}])
@pytest.mark.parametrize("softmax_gamma", [1.0, np.inf])
@every_solver
def test_a_limit_leaves_a_valid_model_with_a_certificate(limit, softmax_gamma, solver):
    X, y = noisy()
    model = svc(softmax_gamma=softmax_gamma, solver=solver, **limit)
    with pytest.warns(TrainingWarning, match="the model is valid, its relative duality gap is"):
        model.fit(X, y)
    assert {model.result_.status} == limit.keys()
    assert_valid(model, X, y)
    assert model.result_.exact
    assert model.result_.primal == pytest.approx(reference.objective_of(model, X, y, np.ones(len(y))), rel=1e-9)


@pytest.mark.parametrize("label_kernel", [None, ALIKE])
@pytest.mark.filterwarnings("ignore:training was ended")
def test_a_limit_on_the_way_through_smoother_hinges_leaves_the_best_model_so_far(label_kernel):
    X, y = noisy()
    before = np.inf
    for max_iter in range(1, 16):
        model = svc(loss=SmoothedHinge(width=0.01), softmax_gamma=0, label_kernel=label_kernel)
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
    np.testing.assert_allclose(model.decision_function(X), svc(tol=1e-12).fit(X, y).decision_function(X), atol=1e-2)


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge", "smoothed_hinge"])
@pytest.mark.parametrize("softmax_gamma", [0.0, np.inf])
def test_features_that_tell_nothing_leave_the_biases(loss, softmax_gamma):
    model = svc(loss=loss, softmax_gamma=softmax_gamma, tol=1e-6).fit(np.zeros((6, 2)), np.array([0, 0, 0, 1, 1, 2]))
    assert not model.coef_.any()
    assert model.result_.status == "converged"
    assert (model.predict(np.zeros((1, 2))) == [0]).all()


@every_solver
@pytest.mark.parametrize(("classes", "name"), [(2, "identity"), (3, "identity"), (3, "alike"), (3, "singular")])
def test_a_warm_start_takes_fewer_passes_to_the_same_optimum(solver, classes, name):
    X, y = noisy(60, classes)
    cold = svc(solver=solver, label_kernel=LABEL_KERNELS[name], tol=1e-8).fit(X, y)
    warm = clone(cold).set_params(C=0.99, warm_start=True).fit(X, y)
    warm.set_params(C=1.0).fit(X, y)
    assert warm.n_iter_ < cold.n_iter_
    assert warm.result_.primal == pytest.approx(cold.result_.primal, rel=1e-8)
    before = warm.coef_
    assert warm.fit(X, y).n_iter_ <= 3
    np.testing.assert_allclose(warm.coef_, before, atol=1e-5 if solver == "newton" else 1e-3)


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
@every_solver
def test_threads_do_not_change_the_model_by_a_bit(layout, n, solver):
    X, y = noisy(n)
    assert_same_model(*(svc(n_jobs=jobs, solver=solver, tol=1e-7).fit(layout(X), y) for jobs in (1, 2)))


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


@pytest.mark.parametrize("features", [200, 2500])  # one matrix for all classes; its diagonal
def test_more_features_than_a_matrix_is_formed_for_reach_the_same_optimum(features):
    random = np.random.default_rng(0)
    wide = sparse.random(60, features, 0.1, format="csr", random_state=random, data_rvs=random.standard_normal)
    newton, cg = (svc(solver=solver, tol=1e-8).fit(wide, noisy()[1]).result_ for solver in SOLVERS)
    assert newton.primal == pytest.approx(cg.primal, rel=1e-7)


@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_are_the_softmax_of_the_scores(classes):
    X, y = noisy(60, classes)
    model = svc(tol=1e-4).fit(X, y)
    f = model.decision_function(X)
    expected = softmax(np.column_stack([np.zeros_like(f), f]) if classes == 2 else f, axis=1)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)
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


@cache
def kernel_minimum(n, loss, softmax_gamma, name):
    """The minimum and the scores with a root of the kernel matrix as examples, by a general minimiser."""
    X, labels = noisy(n)
    label_kernel = LABEL_KERNELS[name]
    root = reference.root_of(gram(X))
    return reference.minimum(root, labels, np.ones(n), loss, 1.0, softmax_gamma, label_kernel=label_kernel)


@every_map
@pytest.mark.parametrize(("loss", "softmax_gamma"), [("log_loss", 1.0), ("squared_hinge", 0.0)])
@pytest.mark.parametrize("name", ["identity", "alike"])
def test_exact_maps_have_the_optimum_over_the_coefficients_of_all_examples(kernel_map, loss, softmax_gamma, name):
    X, y = noisy(12)
    wanted, scores = kernel_minimum(12, loss, softmax_gamma, name)
    linear = svc(loss=loss, softmax_gamma=softmax_gamma, label_kernel=LABEL_KERNELS[name])
    model = make_pipeline(kernel_map(gamma=GAMMA), linear).fit(X, y)
    assert linear.result_.primal == pytest.approx(wanted, rel=1e-7)
    assert linear.result_.dual <= wanted * (1 + 1e-9)
    np.testing.assert_allclose(centred(model.decision_function(X)), centred(scores), atol=1e-3)


@every_map
def test_fewer_features_have_a_higher_optimum_and_a_known_error(kernel_map):
    X, y = noisy(80)
    maps = [kernel_map(gamma=GAMMA, n_components=rank, random_state=0) for rank in (5, 20, 80)]
    found = np.array([(svc().fit(each.fit_transform(X), y).result_.primal, each.trace_error_) for each in maps])
    assert (np.diff(found, axis=0) <= 0).all()
    assert found[0, 1] > 0.1 > found[-1, 1]


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        (slice(None), slice(3), "the features and classes of the fit before, 4 .*got 3"),
        ([0, 1, 3, 4], slice(None), r".*\[0, 1, 2\]; got 4 and \[0, 1\]"),
    ],
)
def test_a_warm_start_from_another_problem_is_refused(rows, columns, message):
    X, y = noisy()
    model = svc(warm_start=True).fit(X, y)
    with unchanged(model, X), pytest.raises(ValueError, match=f"warm_start needs {message}"):
        model.fit(X[rows][:, columns], y[rows])


# Parameters, words of the error.
REFUSED = [
    ({"C": 1e304}, r"X times the square root of its costs must be at most 1e\+151"),
    ({"softmax_gamma": 1e300}, r"second derivatives that float32 can hold; got softmax_gamma=1e\+300"),
    ({"class_weight": {0: 1.0, 1: 0.0, 2: 1.0}}, "must leave every class some weight with fit_inter.*got none for 1"),
]


@pytest.mark.parametrize(("parameters", "message"), REFUSED)
def test_parameters_that_do_not_fit_the_examples_are_refused(parameters, message):
    X, y = noisy()
    model = svc(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X.astype(np.float32 if "softmax_gamma" in parameters else float), y)
    assert not hasattr(model, "coef_")


def test_a_class_may_have_no_weight_in_a_model_without_biases():
    X, y = noisy()
    with pytest.raises(ValueError, match=r"must leave every class some weight with fit_intercept=True.*got none for 2"):
        svc().fit(X, y, sample_weight=y != 2)
    model = svc(fit_intercept=False, tol=1e-6).fit(X, y, sample_weight=y != 2)
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
