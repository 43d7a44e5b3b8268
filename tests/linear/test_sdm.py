"""The Sequential Dual Method against a general QP solver, its own certificate and other libraries."""

import contextlib
import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC

from larank import SDM, LinearMulticlassSVC
from larank.data import load_letter
from larank.training import TrainingWarning
from properties import draws
from references import optima
from references.optima import FORMULATIONS
from studies import datasets
from studies.rivals.optimum import STORE

formulations = pytest.mark.parametrize("formulation", FORMULATIONS)


def svc(formulation="crammer-singer", **parameters):
    return LinearMulticlassSVC(formulation, **{"random_state": 0, "tol": 1e-8, "max_iter": 100_000, **parameters})


def clusters(seed=0, examples=150, classes=4, features=6, noise=1.0, empty=0.0):
    """Overlapping clouds, one per class; `empty` is the share of values set to zero."""
    rng = np.random.default_rng(seed)
    y = np.arange(examples) % classes
    X = rng.normal(size=(classes, features))[y] + noise * rng.normal(size=(examples, features))
    X[rng.random(X.shape) < empty] = 0
    return X, y


def all_weights(model):
    """W with the weight of the constant feature as its last column; more than two classes."""
    if not model.fit_intercept:
        return model.coef_.astype(float)
    return np.column_stack([model.coef_, model.intercept_ / model.intercept_scaling]).astype(float)


def evaluated(model, X, y):
    """Primal and dual objective and infeasibility, by code that has nothing to do with the core."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    Z = optima.with_constant(X.astype(float), model.intercept_scaling if model.fit_intercept else 0)
    labels = np.searchsorted(model.classes_, y)
    a, costs = model.dual_coef_.toarray(), model.costs_
    if model.formulation == "one-vs-rest":
        costs = optima.one_vs_rest_costs(costs, model.rest_costs_, labels, a.shape[1])
    return (
        optima.primal(model.formulation, all_weights(model), Z, labels, costs),
        optima.dual(model.formulation, a, Z, labels),
        optima.infeasibility(model.formulation, a, labels, costs),
    )


@st.composite
def grid_examples(draw, least=4, most=12, features=4, classes=4):
    """Few examples on a coarse grid, with labels 0, 1, ... and weights."""
    n, features, classes = draw(st.integers(least, most)), draw(st.integers(1, features)), draw(st.integers(2, classes))
    value = st.integers(-8, 8).map(lambda v: v / 4)
    X = np.array(draw(st.lists(st.lists(value, min_size=features, max_size=features), min_size=n, max_size=n)))
    y = np.r_[np.arange(classes), draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))][:n]
    return X, y, np.array(draw(st.lists(st.sampled_from([0.25, 1.0, 4.0]), min_size=n, max_size=n)))


@st.composite
def small_problems(draw):
    """Few examples on a coarse grid: ties, duplicates, zero rows and contradictory labels are common."""
    n, features, classes = draw(st.integers(2, 12)), draw(st.integers(1, 4)), draw(st.integers(2, 4))
    value = st.integers(-2, 2).map(float) if draw(st.booleans()) else st.integers(-24, 24).map(lambda v: v / 8)
    row = st.lists(value, min_size=features, max_size=features)
    pool = draw(st.lists(row, min_size=1, max_size=n))
    X = np.array([draw(st.sampled_from(pool)) for _ in range(n)])
    y = np.array(draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n)))
    weight = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.0, 1.0, 3.0]), min_size=n, max_size=n)))
    assume(len(np.unique(y[weight > 0])) > 1)
    C = draw(st.sampled_from([0.01, 0.1, 1.0, 1.0, 10.0, 100.0]))
    return X, y, weight, C, draw(st.sampled_from([0.0, 0.5, 1.0]))


@draws(160)
@given(
    small_problems(),
    st.sampled_from(FORMULATIONS),
    st.sampled_from([float, float, np.float32]),
    st.sampled_from([{}, {}, {0: 0.0}, {0: 4.0, 1: 0.2, 2: 1.5}]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 5),
)
def test_the_optimum_is_that_of_a_general_qp_solver(problem, formulation, dtype, factors, shrinking, cooling, seed):
    """One-versus-rest, a class weight is a factor where the class is the positive one, and not in other problems."""
    X, y, weight, C, intercept = problem
    classes, labels = np.unique(y, return_inverse=True)
    factors = {label: factor for label, factor in factors.items() if label in classes}
    own = C * weight * [factors.get(label, 1.0) for label in y.tolist()]
    assume(len(np.unique(y[own > 0])) > 1)
    assume(dtype is float or C <= 10)
    is_per_class = formulation == "one-vs-rest" and len(classes) > 2
    tol, close, X = (1e-7, 1e-6, X) if dtype is float else (1e-4, 1.1e-4, X.astype(dtype))
    model = svc(formulation, C=C, tol=tol, class_weight=factors, solver=SDM(shrinking=shrinking, cooling=cooling))
    model.set_params(fit_intercept=intercept > 0, intercept_scaling=intercept or 1.0, random_state=seed)
    model.fit(X, y, sample_weight=weight)
    Z = optima.with_constant(X.astype(float), intercept)
    costs = optima.one_vs_rest_costs(own, C * weight, labels, len(classes)) if is_per_class else own
    W, bound = optima.optimum(formulation, Z, labels, costs, len(classes))
    best = optima.primal(formulation, W, Z, labels, costs)
    assert bound == pytest.approx(best, rel=1e-7)
    assert best * (1 - min(close, 1e-5)) <= model.result_.primal <= best * (1 + close)
    assert best * (1 - close) <= model.result_.dual <= best * (1 + min(close, 1e-5))
    if is_per_class:
        np.testing.assert_allclose(model.costs_, own, rtol=1e-15 if dtype is float else 1e-6)
        np.testing.assert_allclose(model.rest_costs_, C * weight, rtol=1e-15 if dtype is float else 1e-6)
    if len(classes) > 2:
        primal, _, infeasible = evaluated(model, X, y)
        assert infeasible <= (1e-12 if dtype is float else 1e-6)
        assert model.result_.primal == pytest.approx(primal, rel=1e-9 if dtype is float else 1e-5)


@formulations
@pytest.mark.parametrize(
    ("dtype", "C", "tol"), [(np.float32, 1.0, 1e-4), (np.float32, 100.0, 1e-2), (float, 1e6, 1e-6)]
)
def test_a_cost_far_above_all_coefficients_loses_no_precision(formulation, dtype, C, tol):
    """Separable data: above some C the solution stays the same."""
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = 3 * rng.normal(size=(3, 20))[y] + rng.normal(size=(30, 20))
    model = svc(formulation, C=C, tol=tol, max_iter=3000).fit(X.astype(dtype), y)
    assert model.result_.primal == pytest.approx(svc(formulation, C=1.0).fit(X, y).result_.primal, rel=1.1 * tol)


@formulations
def test_many_classes_reach_the_optimum_too(formulation):
    """Beyond 64 classes in float64, visits restrict themselves to few classes."""
    X, y = clusters(2, examples=300, classes=150, features=20, noise=0.7)
    model = svc(formulation, tol=1e-4).fit(X, y)
    primal, dual, infeasible = evaluated(model, X, y)
    assert model.result_.status == "converged"
    assert primal - dual <= 1.01e-4 * primal
    assert infeasible <= 1e-12
    other = svc(formulation, tol=1e-4, solver=SDM(shrinking=False, cooling=False)).fit(X, y)
    assert other.result_.primal == pytest.approx(primal, rel=2e-4)
    assert model.result_.support_vectors == model.dual_coef_.nnz
    if formulation == "crammer-singer":
        assert model.dual_coef_.nnz < 0.1 * len(y) * 150


# Near and far from the optimum.
ENDS = [{"tol": 0.5, "fit_intercept": False}, {"tol": 1e-2, "intercept_scaling": 3.0}, {"tol": 1e-8}]
ENDS += [{"C": C, "tol": 1e-15, "max_iter": max_iter} for C, max_iter in ((300.0, 3), (1.0, 1), (1e3, 7))]


@formulations
@pytest.mark.parametrize("parameters", ENDS)
def test_the_certificate_is_what_an_independent_evaluation_finds(formulation, parameters):
    X, y = clusters(features=3)
    weight = np.random.default_rng(5).random(len(y))
    model = svc(formulation, **parameters)
    with contextlib.nullcontext() if model.max_iter > 7 else pytest.warns(TrainingWarning):
        model.fit(X, y, weight)
    result, (primal, dual, infeasible) = model.result_, evaluated(model, X, y)
    assert infeasible <= 1e-12
    assert result.primal == pytest.approx(primal, rel=1e-12)
    assert result.dual == pytest.approx(dual, rel=1e-12, abs=1e-12 * primal)
    assert result.gap == result.primal - result.dual >= -1e-12 * primal
    assert model.max_iter <= 7 or result.gap <= model.tol * primal
    best = clone(model).set_params(tol=1e-2, max_iter=100_000).fit(X, y, weight).result_
    assert dual <= best.primal * (1 + 1e-12)
    assert best.dual <= primal * (1 + 1e-12)


@formulations
def test_the_weights_are_the_coefficients_times_the_examples(formulation):
    """As many features as examples: no averaging of W, of which the documentation warns."""
    X, y = clusters(examples=30, features=40, classes=3)
    model = svc(formulation).fit(X, y)
    np.testing.assert_allclose(model.dual_coef_.T @ optima.with_constant(X, 1.0), all_weights(model), atol=1e-12)
    np.testing.assert_array_equal(model.support_, np.unique(model.dual_coef_.nonzero()[0]))
    assert model.result_.support_patterns == len(model.support_)


@formulations
def test_examples_without_features_cost_their_loss_at_zero(formulation):
    X, y = clusters(examples=60, classes=3)
    loss = {"crammer-singer": 1, "weston-watkins": 2, "one-vs-rest": 3}[formulation]
    model = svc(formulation, C=2.0, tol=1e-10, fit_intercept=False)
    alone, with_zeros = (
        clone(model).fit(np.vstack([X, np.zeros((zeros, X.shape[1]))]), np.r_[y, [0, 1, 2, 0, 0][:zeros]])
        for zeros in (0, 5)
    )
    for name in ("primal", "dual"):
        expected = getattr(alone.result_, name) + 5 * 2.0 * loss
        assert getattr(with_zeros.result_, name) == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(with_zeros.coef_, alone.coef_, atol=1e-3)
    for stop in ("gap", "violation"):
        nothing = clone(model).set_params(C=1.0, stop=stop).fit(np.zeros((6, 2)), [0, 1, 2, 0, 1, 2])
        assert not nothing.coef_.any()
        assert (nothing.result_.primal, nothing.result_.dual) == (6 * loss, 6 * loss)


@formulations
def test_an_intercept_makes_zero_rows_act(formulation):
    y = np.array([0] * 8 + [1, 2])
    model = svc(formulation).fit(np.zeros((10, 2)), y)
    assert (model.predict(np.zeros((1, 2))) == 0).all()
    assert model.result_.primal < svc(formulation, fit_intercept=False).fit(np.zeros((10, 2)), y).result_.primal


def slow_problem(dtype=float):
    """Overlapping classes at a large cost, which take many phases of shrunk loops."""
    letter = load_letter()
    return (letter.X_train[:400] / 15).astype(dtype), letter.y_train[:400]


@formulations
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slow_problems_are_moved_on_to_the_same_optimum_in_fewer_visits(formulation, dtype):
    X, y = slow_problem(dtype)
    moved = svc(formulation, C=10.0, tol=1e-3).fit(X, y)
    other = svc(formulation, C=10.0, tol=1e-3, solver=SDM(cooling=False)).fit(X, y)
    assert moved.result_.operations["moves"] > 5
    assert other.result_.operations["moves"] == 0
    assert moved.result_.operations["visits"] < 0.7 * other.result_.operations["visits"]
    assert moved.result_.primal == pytest.approx(other.result_.primal, rel=1e-3)
    # 1/2 |W - W*|^2 <= P(W) - P(W*) for both, because P is strongly convex.
    assert np.linalg.norm(all_weights(moved) - all_weights(other)) <= 2 * np.sqrt(2 * 1e-3 * other.result_.primal)
    primal, dual, infeasible = evaluated(moved, X, y)
    assert infeasible <= 10.0 * np.finfo(dtype).eps * 26
    assert moved.result_.primal == pytest.approx(primal, rel=1e-5)
    assert moved.result_.dual == pytest.approx(dual, rel=1e-5)


def test_the_phases_after_moves_keep_the_dual_from_falling_for_good():
    """What lowers it is taken back, so of any two full loops one at least has raised it."""
    X, y = slow_problem()
    model = svc(C=30.0, tol=1e-4).fit(X, y)
    duals = [point.dual for point in model.result_.history if not point.exact]
    highest = np.maximum.accumulate(duals)
    assert all(max(duals[n + 1 : n + 3]) >= highest[n] for n in range(len(duals) - 2))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_every_example_is_visited_once_in_a_full_loop_however_many_there_are(container):
    """More rows than a window of the cache holds, sorted by class."""
    X, y = clusters(14, examples=9001, classes=3)
    order = np.argsort(y, kind="stable")
    model = svc(solver=SDM(shrinking=False, cooling=False), tol=1e-3).fit(container(X[order]), y[order])
    operations = model.result_.operations
    assert operations["visits"] == 9001 * operations["full_loops"]
    assert model.result_.relative_gap <= 1e-3
    assert model.result_.primal == pytest.approx(svc(tol=1e-4).fit(X, y).result_.primal, rel=1.1e-3)


@formulations
@pytest.mark.parametrize("tol", [0.1, 1e-3, 1e-9])
def test_the_violation_reached_is_close_to_the_one_asked_for_and_its_optimum_that_of_the_gap(formulation, tol):
    """Steps within the last loop may raise it a little, since examples are looked at one after the other."""
    X, y = clusters(8)
    result = svc(formulation, stop="violation", tol=tol).fit(X, y).result_
    assert result.status == "converged"
    assert result.violation <= 10 * tol
    if tol == 1e-9:
        assert result.primal == pytest.approx(svc(formulation, tol=tol).fit(X, y).result_.primal, rel=1e-8)


@formulations
@pytest.mark.parametrize(("classes", "features", "empty"), [(3, 200, 0.9), (100, 200, 0.9), (100, 30, 0.8)])
def test_dense_rows_that_are_mostly_zeros_equal_sparse_ones(formulation, classes, features, empty):
    X, y = clusters(11, examples=300, classes=classes, features=features, empty=empty)
    dense, rows = (svc(formulation, tol=1e-6).fit(layout(X), y) for layout in (np.asarray, sparse.csr_matrix))
    np.testing.assert_allclose(dense.coef_, rows.coef_, atol=1e-2 * np.abs(rows.coef_).max())
    assert dense.result_.primal == pytest.approx(rows.result_.primal, rel=1e-6)


@formulations
def test_seeds_change_the_way_and_not_the_goal(formulation):
    X, y = clusters(12)
    results = [svc(formulation, random_state=seed).fit(X, y).result_ for seed in range(4)]
    assert len({result.operations["steps"] for result in results}) > 1
    assert [result.primal for result in results] == pytest.approx([results[0].primal] * 4, rel=1e-7)


@pytest.mark.parametrize(
    ("formulation", "factors"), [*((name, None) for name in FORMULATIONS), ("one-vs-rest", {0: 0.1, 1: 2.0, 2: 0.0})]
)
def test_a_path_equals_separate_fits_in_the_order_asked_for(formulation, factors):
    X, y = clusters(14)
    Cs, weight, estimator = [0.1, 1.0, 0.03, 10.0], np.linspace(0, 2, len(y)), svc(formulation, class_weight=factors)
    models = estimator.path(X, y, iter(Cs), sample_weight=weight)
    assert not hasattr(estimator, "coef_")
    assert [model.C for model in models] == Cs
    for model in models:  # also those that others have started from
        primal, dual, infeasible = evaluated(model, X, y)
        assert infeasible <= 1e-12
        assert (model.result_.primal, model.result_.dual) == pytest.approx((primal, dual), rel=1e-12)
        assert primal == pytest.approx(clone(model).fit(X, y, weight).result_.primal, rel=2e-8)


@formulations
def test_the_order_of_the_costs_of_a_path_changes_nothing_but_the_order_of_its_models(formulation):
    X, y = clusters(14)
    by_cost = {model.C: model for model in svc(formulation, tol=1e-3).path(X, y, [0.03, 0.1, 1.0, 10.0])}
    for model in svc(formulation, tol=1e-3).path(X, y, [1.0, 0.03, 10.0, 0.1]):
        np.testing.assert_array_equal(model.coef_, by_cost[model.C].coef_)
        assert model.result_.operations == by_cost[model.C].result_.operations


def test_a_path_takes_fewer_visits_than_separate_fits():
    X, y = clusters(14, examples=400, features=40)
    Cs = np.geomspace(0.1, 10, 15)
    together = sum(model.result_.operations["visits"] for model in svc(tol=1e-4).path(X, y, Cs))
    apart = sum(svc(tol=1e-4, C=C).fit(X, y).result_.operations["visits"] for C in Cs)
    assert together < apart


@formulations
def test_a_warm_start_at_the_solution_takes_fewer_visits(formulation):
    model = svc(formulation, warm_start=True, tol=1e-4)
    cold, warm = (model.fit(X15, y15).result_ for _ in range(2))
    assert warm.operations["visits"] < 0.5 * cold.operations["visits"]
    assert warm.primal == pytest.approx(cold.primal, rel=2e-4)


X15, y15 = clusters(15)
COSTS = np.random.default_rng(0).choice([0.0, 1.0, 5.0], len(y15))
# Parameters, examples and labels, weights, of the first fit and of the second.
CHANGES = {
    "costs and weights": (({}, (X15, y15, COSTS)), ({"C": 0.05}, (X15, y15, COSTS[::-1]))),
    "labels": (({}, (X15, y15)), ({}, (X15, np.roll(y15, 1)))),
    "labels, in one pass": (({}, (X15, y15)), ({"max_iter": 1}, (X15, np.roll(y15, 1)))),
    "features": (
        ({"fit_intercept": False}, (X15, y15)),
        ({"fit_intercept": False}, (np.where(np.arange(len(X15))[:, None] < 40, 0, X15), y15)),
    ),
    "weights of classes": (
        ({"class_weight": {0: 3.0, 1: 0.0}}, (X15, y15, COSTS)),
        ({"class_weight": {0: 0.1, 1: 2.0, 2: 0.0}, "C": 0.05}, (X15, y15, COSTS[::-1])),
    ),
}


@formulations
@pytest.mark.parametrize("change", CHANGES)
def test_a_warm_start_survives_new(formulation, change):
    (before, data), (after, others) = CHANGES[change]
    model = svc(formulation, warm_start=True, **before).fit(*data)
    kept, copy = model.dual_coef_, model.dual_coef_.copy()
    model.set_params(**after)
    with pytest.warns(TrainingWarning) if model.max_iter == 1 else contextlib.nullcontext():
        model.fit(*others)
    primal, dual, infeasible = evaluated(model, *others[:2])
    assert infeasible <= 1e-12
    assert model.result_.primal == pytest.approx(primal, rel=1e-12)
    if change != "features":  # an example without features has no coefficients
        assert model.result_.dual == pytest.approx(dual, rel=1e-12)
    assert model.result_.gap >= -1e-9 * primal
    if model.max_iter > 1:
        assert primal == pytest.approx(svc(formulation, **after).fit(*others).result_.primal, rel=2e-8)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(kept, part), getattr(copy, part))


@pytest.mark.parametrize(
    ("parameters", "data", "message"),
    [
        ({}, (X15[:-1], y15[:-1]), "150 examples and 4 classes; got 149 and 4"),
        ({}, (X15, y15 % 3), "150 examples and 4 classes; got 150 and 3"),
        *(  # coefficients of one dual are not feasible for another
            ({"formulation": name}, (X15, y15), f"formulation.*crammer-singer.*{name}") for name in FORMULATIONS[1:]
        ),
    ],
)
def test_a_warm_start_from_another_problem_is_a_clear_error(parameters, data, message):
    model = svc(warm_start=True, tol=1e-4).fit(X15, y15).set_params(**parameters)
    with pytest.raises(ValueError, match=f"warm_start needs .*{message}"):
        model.fit(*data)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("factors", "fit_intercept"), [({0: 0.3, 1: 5.0}, True), ("balanced", True), (None, True), (None, False)]
)
def test_one_versus_rest_is_a_binary_svm_of_liblinear_per_class(classes, factors, fit_intercept):
    X, y = clusters(19, examples=90, classes=classes)
    y[: 30 if classes == 3 else 20] = 0
    # `LinearSVC` balances by the weights of examples, too; `SVC` and we do not.
    weight = np.ones(len(y)) if factors == "balanced" else np.random.default_rng(0).uniform(0.2, 2, len(y))
    alike = {"C": 0.7, "tol": 1e-10, "class_weight": factors, "fit_intercept": fit_intercept}
    ours = svc("one-vs-rest", **alike).fit(X, y, weight)
    theirs = LinearSVC(loss="hinge", **alike, max_iter=10**6, random_state=0).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)


def test_scaling_weights_and_costs_against_each_other_changes_nothing():
    X, y = clusters(16, examples=60)
    assert svc(C=4.0).fit(X, y, np.full(60, 0.25)).coef_.tobytes() == svc(C=1.0).fit(X, y).coef_.tobytes()


@formulations
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_two_classes_are_the_binary_svm(formulation, C):
    """W = [-w/2, w/2]: 1/2 |W|^2 = |w|^2 / 4, so the binary cost is 2 C; the binary problems of "one-vs-rest" are
    mirror images with cost C."""
    X, y = clusters(17, examples=80, classes=2, features=4)
    ours = svc(formulation, C=C, tol=1e-10, fit_intercept=False).fit(X, y)
    cost = C if formulation == "one-vs-rest" else 2 * C
    binary = LinearSVC(loss="hinge", C=cost, fit_intercept=False, tol=1e-10, max_iter=10**6, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), binary.decision_function(X), atol=1e-3)
    assert ours.coef_.shape == (1, 4)
    w = ours.coef_.ravel()
    objective = 0.5 * w @ w + cost * np.maximum(1 - (2 * y - 1) * (X @ w), 0).sum()
    assert ours.result_.primal == pytest.approx(objective * (2 if formulation == "one-vs-rest" else 0.5), rel=1e-8)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_crammer_singer_is_that_of_liblinear(fit_intercept):
    X, y = load_iris(return_X_y=True)
    X, alike = X / X.max(axis=0), {"fit_intercept": fit_intercept, "tol": 1e-9, "max_iter": 10**6, "random_state": 0}
    ours, theirs = svc(**alike).fit(X, y), LinearSVC(multi_class="crammer_singer", **alike).fit(X, y)
    W = np.column_stack([theirs.coef_, theirs.intercept_]) if fit_intercept else theirs.coef_
    objective = optima.primal("crammer-singer", W, optima.with_constant(X, float(fit_intercept)), y, np.ones(len(y)))
    assert ours.result_.primal == pytest.approx(objective, rel=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-2)


@pytest.mark.skipif(not datasets.is_available("news20"), reason="no news20 in larank.data.data_directory()")
def test_news20_reaches_the_optimum_confirmed_with_liblinear():
    data = datasets.load("news20", datasets.LINEAR)
    model = svc(tol=1e-4, fit_intercept=False).fit(data.X_train, data.y_train)
    assert model.result_.status == "converged"
    known = json.loads(STORE.read_text())["news20"]["crammer-singer"]
    assert known["lower"] * (1 - 1e-9) <= model.result_.primal <= known["confirmed"] * (1 + 1.1e-4)
    assert model.result_.dual <= known["confirmed"]
    scores = np.asarray(data.X_train @ model.coef_.T)
    objective = 0.5 * (model.coef_**2).sum() + optima.losses("crammer-singer", scores, data.y_train).sum()
    assert model.result_.primal == pytest.approx(objective, rel=1e-10)
    assert 1 - model.score(data.X_test, data.y_test) == pytest.approx(0.153, abs=0.005)  # LIBLINEAR's
