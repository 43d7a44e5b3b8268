"""The Sequential Dual Method against a general QP solver, its own certificate and other libraries."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.svm import SVC, LinearSVC

from larank import LinearMulticlassSVC
from larank.data import load_letter
from larank.training import TrainingWarning
from references import optima
from references.optima import FORMULATIONS
from studies import datasets

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


def distance(model, other):
    return np.linalg.norm(all_weights(model) - all_weights(other))


def largest_distance(model, tol):
    """Between two models of relative gap `tol`: 1/2 |W - W*|^2 <= P(W) - P(W*), since P is strongly convex."""
    return 2 * np.sqrt(2 * tol * model.result_.primal)


# The optimum


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


@settings(max_examples=300)
@given(small_problems(), st.sampled_from(FORMULATIONS), st.booleans(), st.booleans(), st.integers(0, 5))
def test_the_optimum_is_that_of_a_general_qp_solver(problem, formulation, shrinking, cooling, seed):
    X, y, weight, C, intercept = problem
    model = svc(formulation, C=C, tol=1e-7, fit_intercept=intercept > 0, intercept_scaling=intercept or 1.0)
    model.set_params(shrinking=shrinking, cooling=cooling, random_state=seed).fit(X, y, sample_weight=weight)
    labels = np.searchsorted(model.classes_, y)
    Z = optima.with_constant(X, intercept)
    W, bound = optima.optimum(formulation, Z, labels, C * weight, len(model.classes_))
    best = optima.primal(formulation, W, Z, labels, C * weight)
    assert bound == pytest.approx(best, rel=1e-7)
    assert model.result_.primal == pytest.approx(best, rel=1e-6)
    assert model.result_.dual == pytest.approx(best, rel=1e-6)


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


@given(small_problems(), st.sampled_from(FORMULATIONS))
def test_single_precision_finds_the_same_optimum(problem, formulation):
    X, y, weight, C, intercept = problem
    assume(C <= 10)
    X = X.astype(np.float32)
    model = svc(formulation, C=C, tol=1e-4, fit_intercept=intercept > 0, intercept_scaling=intercept or 1.0)
    model.fit(X, y, sample_weight=weight)
    labels = np.searchsorted(model.classes_, y)
    Z = optima.with_constant(X.astype(float), intercept)
    _, best = optima.optimum(formulation, Z, labels, C * weight, len(model.classes_))
    assert -1e-5 * best <= model.result_.primal - best <= 1.1e-4 * best
    assert model.result_.dual <= best * (1 + 1e-5)


@formulations
def test_the_reference_agrees_with_another_general_solver(formulation):
    """SLSQP of SciPy on the primal with slacks written out, once per formulation."""
    X, y = clusters(1, examples=9, classes=3, features=2)
    _, bound = optima.optimum(formulation, X, y, np.ones(9), 3)
    rows = [(i, *c) for i in range(9) for c in optima.constraints(formulation, 3, y[i])]
    slack_of = {key: 6 + number for number, key in enumerate(dict.fromkeys((i, slack) for i, _, slack in rows))}

    def margins(v):
        scores = X @ v[:6].reshape(3, 2).T
        return [signs @ scores[i] - 1 + v[slack_of[i, slack]] for i, signs, slack in rows]

    size = 6 + len(slack_of)
    found = optimize.minimize(
        lambda v: 0.5 * v[:6] @ v[:6] + v[6:].sum(),
        np.r_[np.zeros(6), np.ones(len(slack_of))],
        jac=lambda v: np.r_[v[:6], np.ones(len(slack_of))],
        method="SLSQP",
        bounds=[(None, None)] * 6 + [(0, None)] * (size - 6),
        constraints={"type": "ineq", "fun": margins},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.success
    assert bound == pytest.approx(found.fun, rel=1e-6)


@formulations
def test_many_classes_reach_the_optimum_too(formulation):
    """Beyond 64 classes in float64, visits restrict themselves to few classes."""
    X, y = clusters(2, examples=600, classes=150, features=20, noise=0.7)
    model = svc(formulation, tol=1e-4).fit(X, y)
    primal, dual, infeasible = evaluated(model, X, y)
    assert model.result_.status == "converged"
    assert primal - dual <= 1.01e-4 * primal
    assert infeasible <= 1e-12
    other = svc(formulation, tol=1e-4, shrinking=False, cooling=False).fit(X, y)
    assert other.result_.primal == pytest.approx(primal, rel=2e-4)


def test_many_classes_store_few_coefficients():
    X, y = clusters(2, examples=600, classes=150, features=20, noise=0.7)
    model = svc(tol=1e-4).fit(X, y)
    assert model.dual_coef_.nnz < 0.1 * len(y) * 150
    assert model.result_.support_vectors == model.dual_coef_.nnz


def test_many_classes_with_an_intercept_and_sparse_rows_agree_with_dense_ones():
    X, y = clusters(3, examples=400, classes=100, features=30, empty=0.8)
    dense, rows = svc(tol=1e-5).fit(X, y), svc(tol=1e-5).fit(sparse.csr_matrix(X), y)
    assert rows.result_.primal == pytest.approx(dense.result_.primal, rel=1e-5)


# The certificate


@formulations
@pytest.mark.parametrize("intercept", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-8])
def test_the_certificate_is_what_an_independent_evaluation_finds(formulation, intercept, tol):
    X, y = clusters()
    weight = np.random.default_rng(5).random(len(y))
    model = svc(formulation, tol=tol, fit_intercept=intercept > 0, intercept_scaling=intercept or 1.0)
    primal, dual, infeasible = evaluated(model.fit(X, y, weight), X, y)
    assert infeasible <= 1e-12
    assert model.result_.primal == pytest.approx(primal, rel=1e-12)
    assert model.result_.dual == pytest.approx(dual, rel=1e-12)
    assert model.result_.gap == model.result_.primal - model.result_.dual
    assert -1e-12 * primal <= model.result_.gap <= tol * primal


@formulations
@pytest.mark.parametrize("parameters", [{"C": 300.0}, {"max_iter": 1}, {"max_iter": 7, "C": 1e3}])
def test_the_certificate_holds_for_models_that_are_far_from_done(formulation, parameters):
    X, y = clusters(features=3)
    model = svc(formulation, tol=1e-15, **{"max_iter": 3, **parameters})
    with pytest.warns(TrainingWarning):
        model.fit(X, y)
    primal, dual, infeasible = evaluated(model, X, y)
    assert infeasible <= 1e-12
    assert model.result_.primal == pytest.approx(primal, rel=1e-12)
    assert model.result_.dual == pytest.approx(dual, rel=1e-12, abs=1e-12 * primal)
    best = svc(formulation, C=model.C, tol=1e-2).fit(X, y).result_
    assert dual <= best.primal * (1 + 1e-12)
    assert best.dual <= primal * (1 + 1e-12)


@formulations
def test_the_gap_bounds_suboptimality(formulation):
    X, y = clusters(4)
    best = svc(formulation, tol=1e-10).fit(X, y).result_
    for tol in (0.5, 0.1, 1e-2, 1e-4):
        result = svc(formulation, tol=tol).fit(X, y).result_
        assert result.primal - best.dual <= result.gap + 1e-9 * best.primal
        assert result.dual <= best.primal
        assert result.primal >= best.dual


@formulations
def test_the_weights_are_the_coefficients_times_the_examples(formulation):
    """As many features as examples: no averaging of W, of which the documentation warns."""
    X, y = clusters(examples=30, features=40, classes=3)
    model = svc(formulation).fit(X, y)
    Z = optima.with_constant(X, 1.0)
    np.testing.assert_allclose(model.dual_coef_.T @ Z, all_weights(model), atol=1e-12)
    np.testing.assert_array_equal(model.support_, np.unique(model.dual_coef_.nonzero()[0]))
    assert model.result_.support_patterns == len(model.support_)


@formulations
def test_examples_without_features_cost_their_loss_at_zero(formulation):
    X, y = clusters(examples=60, classes=3)
    each = {"crammer-singer": 1, "weston-watkins": 2, "one-vs-rest": 3}[formulation]
    alone = svc(formulation, C=2.0, tol=1e-10, fit_intercept=False).fit(X, y)
    with_zeros = svc(formulation, C=2.0, tol=1e-10, fit_intercept=False)
    with_zeros.fit(np.vstack([X, np.zeros((5, X.shape[1]))]), np.r_[y, [0, 1, 2, 0, 0]])
    assert with_zeros.result_.primal == pytest.approx(alone.result_.primal + 5 * 2.0 * each, rel=1e-9)
    assert with_zeros.result_.dual == pytest.approx(alone.result_.dual + 5 * 2.0 * each, rel=1e-9)
    np.testing.assert_allclose(with_zeros.coef_, alone.coef_, atol=1e-3)


@pytest.mark.parametrize("stop", ["gap", "violation"])
@formulations
def test_nothing_but_zeros_is_legal(formulation, stop):
    each = {"crammer-singer": 1, "weston-watkins": 2, "one-vs-rest": 3}[formulation]
    model = svc(formulation, fit_intercept=False, stop=stop).fit(np.zeros((6, 2)), [0, 1, 2, 0, 1, 2])
    assert not model.coef_.any()
    assert (model.result_.primal, model.result_.dual) == (6 * each, 6 * each)


@formulations
def test_an_intercept_makes_zero_rows_act(formulation):
    y = np.array([0] * 8 + [1, 2])
    model = svc(formulation).fit(np.zeros((10, 2)), y)
    assert (model.predict(np.zeros((1, 2))) == 0).all()
    assert model.result_.primal < svc(formulation, fit_intercept=False).fit(np.zeros((10, 2)), y).result_.primal


# Things that change the time, not the solution


@formulations
@pytest.mark.parametrize(
    ("C", "parameters"),
    [(0.01, {"cooling": False}), (1.0, {"shrinking": False}), (10.0, {"shrinking": False, "cooling": False})],
)
def test_shrinking_and_cooling_do_not_change_the_solution(formulation, C, parameters):
    X, y = clusters(6, examples=80, features=4)
    model = svc(formulation, C=C, tol=1e-6).fit(X, y)
    other = svc(formulation, C=C, tol=1e-6, **parameters).fit(X, y)
    assert other.result_.primal == pytest.approx(model.result_.primal, rel=1e-6)
    assert distance(model, other) <= largest_distance(model, 1e-6)


def slow_problem(dtype=float):
    """Overlapping classes at a large cost, which take many phases of shrunk loops."""
    letter = load_letter()
    return (letter.X_train[:600] / 15).astype(dtype), letter.y_train[:600]


@formulations
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slow_problems_are_moved_on_to_the_same_optimum_in_fewer_visits(formulation, dtype):
    X, y = slow_problem(dtype)
    moved = svc(formulation, C=10.0, tol=1e-3).fit(X, y)
    other = svc(formulation, C=10.0, tol=1e-3, cooling=False).fit(X, y)
    assert moved.result_.operations["moves"] > 5
    assert other.result_.operations["moves"] == 0
    assert moved.result_.operations["visits"] < 0.7 * other.result_.operations["visits"]
    assert moved.result_.primal == pytest.approx(other.result_.primal, rel=1e-3)
    assert distance(moved, other) <= largest_distance(other, 1e-3)
    primal, dual, infeasible = evaluated(moved, X, y)
    assert infeasible <= 10.0 * np.finfo(dtype).eps * 26
    assert moved.result_.primal == pytest.approx(primal, rel=1e-5)
    assert moved.result_.dual == pytest.approx(dual, rel=1e-5)


@formulations
def test_a_slow_problem_has_one_optimum_in_both_precisions(formulation):
    X, y = slow_problem(np.float32)
    single, double = (svc(formulation, C=10.0, tol=1e-4).fit(data, y) for data in (X, X.astype(float)))
    assert single.result_.relative_gap <= 1e-4
    assert single.coef_.dtype == np.float32
    assert single.result_.dual <= double.result_.primal * (1 + 1e-6)
    assert double.result_.dual <= single.result_.primal * (1 + 1e-6)


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
    model = svc(shrinking=False, cooling=False, tol=1e-3).fit(container(X[order]), y[order])
    operations = model.result_.operations
    assert operations["visits"] == 9001 * operations["full_loops"]
    assert model.result_.relative_gap <= 1e-3
    assert model.result_.primal == pytest.approx(svc(tol=1e-4).fit(X, y).result_.primal, rel=1.1e-3)


@formulations
def test_violation_and_gap_stop_at_the_same_optimum(formulation):
    X, y = clusters(7)
    gap = svc(formulation, tol=1e-9).fit(X, y)
    violation = svc(formulation, stop="violation", tol=1e-9).fit(X, y)
    assert violation.result_.status == "converged"
    assert violation.result_.primal == pytest.approx(gap.result_.primal, rel=1e-8)


@formulations
@pytest.mark.parametrize("tol", [0.1, 1e-3, 1e-9])
def test_the_violation_reached_is_close_to_the_one_asked_for(formulation, tol):
    """Steps within the last loop may raise it a little, since examples are looked at one after the other."""
    X, y = clusters(8)
    assert svc(formulation, stop="violation", tol=tol).fit(X, y).result_.violation <= 10 * tol


@formulations
def test_single_precision_certifies_itself_honestly(formulation):
    X, y = clusters(10, features=20)
    X = X.astype(np.float32)
    model = svc(formulation, tol=1e-5).fit(X, y)
    primal, dual, infeasible = evaluated(model, X, y)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    assert infeasible <= 1e-6
    assert model.result_.primal == pytest.approx(primal, rel=1e-5)
    assert model.result_.dual == pytest.approx(dual, rel=1e-5)
    assert svc(formulation, tol=1e-9).fit(X.astype(float), y).result_.primal == pytest.approx(primal, rel=2e-5)


@formulations
@pytest.mark.parametrize("classes", [3, 100])
def test_dense_rows_that_are_mostly_zeros_equal_sparse_ones(formulation, classes):
    X, y = clusters(11, examples=300, classes=classes, features=200, empty=0.9)
    dense, rows = svc(formulation, tol=1e-6).fit(X, y), svc(formulation, tol=1e-6).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(dense.coef_, rows.coef_, atol=1e-2 * np.abs(rows.coef_).max())
    assert dense.result_.primal == pytest.approx(rows.result_.primal, rel=1e-6)


@formulations
def test_seeds_change_the_way_and_not_the_goal(formulation):
    X, y = clusters(12)
    models = [svc(formulation, random_state=seed).fit(X, y) for seed in range(4)]
    assert len({model.result_.operations["steps"] for model in models}) > 1
    for model in models:
        assert model.result_.primal == pytest.approx(models[0].result_.primal, rel=1e-7)


# Starting from a solution


@formulations
def test_a_path_equals_separate_fits_in_the_order_asked_for(formulation):
    X, y = clusters(14)
    Cs = [0.1, 1.0, 0.03, 10.0]
    models = svc(formulation).path(X, y, Cs)
    assert [model.C for model in models] == Cs
    for C, model in zip(Cs, models, strict=True):
        assert evaluated(model, X, y)[2] <= 1e-12
        assert model.result_.primal == pytest.approx(svc(formulation, C=C).fit(X, y).result_.primal, rel=2e-8)


@formulations
def test_the_order_of_the_costs_of_a_path_changes_nothing_but_the_order_of_its_models(formulation):
    X, y = clusters(14)
    by_cost = {model.C: model for model in svc(formulation, tol=1e-3).path(X, y, [0.03, 0.1, 1.0, 10.0])}
    for model in svc(formulation, tol=1e-3).path(X, y, [1.0, 0.03, 10.0, 0.1]):
        np.testing.assert_array_equal(model.coef_, by_cost[model.C].coef_)
        assert model.result_.operations == by_cost[model.C].result_.operations


def test_an_early_end_is_said_at_the_line_that_called():
    X, y = clusters(14)
    for call in (lambda: svc(max_iter=1).fit(X, y), lambda: svc(max_iter=1).path(X, y, [1.0])):
        with pytest.warns(TrainingWarning, match="ended by max_iter=1,.*relative duality gap is") as caught:
            call()
        assert caught[0].filename == __file__


def test_a_path_takes_weights_and_any_iterable_and_leaves_the_estimator_unfitted():
    X, y = clusters(14)
    weight = np.linspace(0, 2, len(y))
    estimator = svc()
    models = estimator.path(X, y, (10.0**e for e in (-1, 0)), sample_weight=weight)
    assert not hasattr(estimator, "coef_")
    assert models[1].result_.primal == pytest.approx(svc().fit(X, y, weight).result_.primal, rel=2e-8)


def test_a_path_takes_fewer_visits_than_separate_fits():
    X, y = clusters(14, examples=400, features=40)
    Cs = np.geomspace(0.1, 10, 15)
    together = sum(model.result_.operations["visits"] for model in svc(tol=1e-4).path(X, y, Cs))
    apart = sum(svc(tol=1e-4, C=C).fit(X, y).result_.operations["visits"] for C in Cs)
    assert together < apart


@formulations
def test_a_warm_start_at_the_solution_takes_fewer_visits(formulation):
    X, y = clusters(15)
    model = svc(formulation, warm_start=True, tol=1e-4).fit(X, y)
    cold = model.result_
    warm = model.fit(X, y).result_
    assert warm.operations["visits"] < 0.5 * cold.operations["visits"]
    assert warm.primal == pytest.approx(cold.primal, rel=2e-4)


@formulations
def test_a_warm_start_leaves_the_model_it_starts_from_alone(formulation):
    X, y = clusters(15)
    first, second, _ = svc(formulation).path(X, y, [0.1, 1.0, 0.03])
    for model in (first, second):
        primal, dual, infeasible = evaluated(model, X, y)
        assert infeasible <= 1e-12
        assert (model.result_.primal, model.result_.dual) == pytest.approx((primal, dual), rel=1e-12)
    model = svc(formulation, warm_start=True).fit(X, y)
    kept, copy = model.dual_coef_, model.dual_coef_.copy()
    model.fit(X, np.roll(y, 1))
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(kept, part), getattr(copy, part))


@formulations
def test_a_warm_start_survives_new_costs_and_weights(formulation):
    X, y = clusters(15)
    weight = np.random.default_rng(0).choice([0.0, 1.0, 5.0], len(y))
    model = svc(formulation, warm_start=True).fit(X, y, weight)
    model.set_params(C=0.05).fit(X, y, weight[::-1])
    expected = svc(formulation, C=0.05).fit(X, y, weight[::-1])
    assert evaluated(model, X, y)[2] <= 1e-12
    assert model.result_.primal == pytest.approx(expected.result_.primal, rel=2e-8)


@formulations
@pytest.mark.parametrize("max_iter", [1, 100_000])
def test_a_warm_start_survives_new_labels(formulation, max_iter):
    X, y = clusters(15)
    changed = np.roll(y, 1)
    model = svc(formulation, warm_start=True).fit(X, y)
    model.set_params(max_iter=max_iter)
    if max_iter == 1:
        with pytest.warns(TrainingWarning):
            model.fit(X, changed)
    else:
        model.fit(X, changed)
        expected = svc(formulation).fit(X, changed)
        assert model.result_.primal == pytest.approx(expected.result_.primal, rel=2e-8)
    primal, dual, infeasible = evaluated(model, X, changed)
    assert infeasible <= 1e-12
    assert (model.result_.primal, model.result_.dual) == pytest.approx((primal, dual), rel=1e-12)


@formulations
def test_a_warm_start_survives_examples_that_have_lost_their_features(formulation):
    X, y = clusters(15)
    emptied = X.copy()
    emptied[:40] = 0
    model = svc(formulation, warm_start=True, fit_intercept=False).fit(X, y).fit(emptied, y)
    expected = svc(formulation, fit_intercept=False).fit(emptied, y)
    assert model.result_.gap >= -1e-9 * model.result_.primal
    assert model.result_.primal == pytest.approx(expected.result_.primal, rel=2e-8)


@pytest.mark.parametrize("before", FORMULATIONS)
@formulations
def test_a_warm_start_from_another_formulation_is_refused_or_right(before, formulation):
    """Coefficients of one dual are not feasible for another."""
    X, y = clusters(15)
    model = svc(before, warm_start=True, C=10.0, tol=1e-4).fit(X, y).set_params(formulation=formulation)
    if before != formulation:
        with pytest.raises(ValueError, match=f"warm_start.*formulation.*{before}.*{formulation}"):
            model.fit(X, y)
    else:
        assert model.fit(X, y).result_.status == "converged"


@pytest.mark.parametrize("change", [lambda X, y: (X[:-1], y[:-1]), lambda X, y: (X, y % 3)])
def test_a_warm_start_with_another_shape_is_a_clear_error(change):
    X, y = clusters(15)
    model = svc(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"warm_start needs .* 150 examples and 4 classes; got (149 and 4|150 and 3)"):
        model.fit(*change(X, y))


# Weights


@formulations
def test_a_weight_of_k_equals_k_repetitions(formulation):
    X, y = clusters(16, examples=60)
    times = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = svc(formulation, tol=1e-10).fit(X, y, sample_weight=times)
    repeated = svc(formulation, tol=1e-10).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.result_.primal == pytest.approx(repeated.result_.primal, rel=1e-9)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-3)


@settings(max_examples=60)
@given(small_problems(), st.sampled_from([{}, {0: 0.0}, {0: 4.0, 1: 0.2, 2: 1.5}]), st.booleans(), st.integers(0, 5))
def test_one_versus_rest_weighs_a_class_in_its_own_problem(problem, factors, cooling, seed):
    """Its examples cost what its weight says where it is the positive class, and in other problems what others cost."""
    X, y, weight, C, intercept = problem
    classes, labels = np.unique(y, return_inverse=True)
    assume(len(classes) > 2)
    factors = {label: factor for label, factor in factors.items() if label in classes}
    own = C * weight * [factors.get(label, 1.0) for label in y.tolist()]
    assume(len(np.unique(y[own > 0])) > 1)
    model = svc("one-vs-rest", C=C, tol=1e-7, class_weight=factors, cooling=cooling, random_state=seed)
    model.set_params(fit_intercept=intercept > 0, intercept_scaling=intercept or 1.0).fit(X, y, sample_weight=weight)
    Z = optima.with_constant(X, intercept)
    costs = optima.one_vs_rest_costs(own, C * weight, labels, len(classes))
    _, bound = optima.optimum("one-vs-rest", Z, labels, costs, len(classes))
    primal, _, infeasible = evaluated(model, X, y)
    assert infeasible <= 1e-12
    assert model.result_.primal == pytest.approx(primal, rel=1e-9)
    assert (model.result_.primal, model.result_.dual) == pytest.approx((bound, bound), rel=1e-6)
    np.testing.assert_allclose(model.costs_, own, rtol=1e-15)
    np.testing.assert_allclose(model.rest_costs_, C * weight, rtol=1e-15)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("factors", [{0: 0.3, 1: 5.0}, "balanced"])
def test_class_weights_of_one_versus_rest_are_those_of_liblinear(classes, factors):
    X, y = clusters(19, examples=90, classes=classes)
    y[: 30 if classes == 3 else 20] = 0
    # `LinearSVC` balances by the weights of examples, too; `SVC` and we do not.
    weight = np.ones(len(y)) if factors == "balanced" else np.random.default_rng(0).uniform(0.2, 2, len(y))
    ours = svc("one-vs-rest", C=0.7, tol=1e-10, class_weight=factors).fit(X, y, weight)
    theirs = LinearSVC(loss="hinge", C=0.7, class_weight=factors, tol=1e-10, max_iter=10**6, random_state=0)
    theirs.fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)


def test_a_warm_start_and_a_path_survive_class_weights_of_one_versus_rest():
    X, y = clusters(15)
    weight = np.random.default_rng(0).choice([0.0, 1.0, 5.0], len(y))
    model = svc("one-vs-rest", warm_start=True, class_weight={0: 3.0, 1: 0.0}).fit(X, y, weight)
    model.set_params(class_weight={0: 0.1, 1: 2.0, 2: 0.0}, C=0.05).fit(X, y, weight[::-1])
    alone = svc("one-vs-rest", class_weight=model.class_weight, C=0.05)
    assert evaluated(model, X, y)[2] <= 1e-12
    assert model.result_.primal == pytest.approx(alone.fit(X, y, weight[::-1]).result_.primal, rel=2e-8)
    for each in alone.path(X, y, [2.0, 0.05, 0.5], weight):
        assert evaluated(each, X, y)[2] <= 1e-12
        expected = clone(each).fit(X, y, weight)
        assert each.result_.primal == pytest.approx(expected.result_.primal, rel=2e-8)


def test_scaling_weights_and_costs_against_each_other_changes_nothing():
    X, y = clusters(16, examples=60)
    assert svc(C=4.0).fit(X, y, np.full(60, 0.25)).coef_.tobytes() == svc(C=1.0).fit(X, y).coef_.tobytes()


# Other libraries


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


def test_two_classes_agree_with_libsvm():
    """The constant feature is not LIBSVM's bias: add it to the data and hold the bias at zero by symmetry."""
    X, y = clusters(18, examples=40, classes=2, features=3)
    mirrored, signs = np.vstack([X, -X]), np.r_[y, 1 - y]  # whatever is true of x and y is true of -x and 1 - y
    ours = svc(C=0.5, tol=1e-10, fit_intercept=False).fit(mirrored, signs)
    theirs = SVC(kernel="linear", C=1.0, tol=1e-9).fit(mirrored, signs)
    assert theirs.intercept_[0] == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_one_vs_rest_is_one_binary_svm_per_class(fit_intercept):
    X, y = load_iris(return_X_y=True)
    X = X / X.max(axis=0)
    ours = svc("one-vs-rest", tol=1e-9, fit_intercept=fit_intercept).fit(X, y)
    theirs = LinearSVC(loss="hinge", fit_intercept=fit_intercept, tol=1e-10, max_iter=10**6, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_crammer_singer_is_that_of_liblinear(fit_intercept):
    X, y = load_iris(return_X_y=True)
    X = X / X.max(axis=0)
    ours = svc(tol=1e-9, fit_intercept=fit_intercept).fit(X, y)
    theirs = LinearSVC(
        multi_class="crammer_singer", fit_intercept=fit_intercept, tol=1e-9, max_iter=10**6, random_state=0
    ).fit(X, y)
    W = np.column_stack([theirs.coef_, theirs.intercept_]) if fit_intercept else theirs.coef_
    Z = optima.with_constant(X, float(fit_intercept))
    objective = optima.primal("crammer-singer", W, Z, y, np.ones(len(y)))
    assert ours.result_.primal == pytest.approx(objective, rel=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-2)


@pytest.mark.skipif(not datasets.is_available("news20"), reason="no news20 in larank.data.data_directory()")
def test_news20_reaches_the_optimum_confirmed_with_liblinear():
    data = datasets.load("news20", datasets.LINEAR)
    model = svc(tol=1e-4, fit_intercept=False).fit(data.X_train, data.y_train)
    assert model.result_.status == "converged"
    assert model.result_.primal == pytest.approx(2029.525, rel=1e-3)
    assert model.result_.primal <= 2029.525 * (1 + 1.1e-4)
    assert model.result_.dual <= 2029.525 * (1 + 1e-6)
    scores = np.asarray(data.X_train @ model.coef_.T)
    objective = 0.5 * (model.coef_**2).sum() + optima.losses("crammer-singer", scores, data.y_train).sum()
    assert model.result_.primal == pytest.approx(objective, rel=1e-10)
    assert 1 - model.score(data.X_test, data.y_test) == pytest.approx(0.1529, abs=0.005)
