"""Structured models and their solvers, against enumeration of all outputs, a general QP solver and other estimators."""

import pickle
import signal
from collections import UserList
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array, csr_matrix
from sklearn.model_selection import GridSearchCV

from checks import clouds, unchanged
from larank import LaRank, LinearMulticlassSVC, MulticlassModel, StructuredModel, StructuredSVC
from larank.data import models
from larank.structured.checked import CheckedModel
from larank.structured.larank import AdaptiveSchedule, FixedSchedule, LaRankSolver
from larank.structured.pairs import Example, TrainingPairs
from larank.structured.rows import row_of
from larank.structured.simplex import ascend_on_simplex
from larank.structured.weights import CachedExpansion, FeatureWeights
from larank.training import TrainingWarning, completed
from references.optima import interior_point

LABELS = 3
EXACT = ("larank", "svmstruct", "svmstruct-1slack")
ONLINE = ("larank", "perceptron", "passive-aggressive")
SOLVERS = (*EXACT, "perceptron", "passive-aggressive")
STREAMS = [*((solver, {}) for solver in ONLINE), *((solver, {"average": True}) for solver in ONLINE[1:])]


class Enumerated(StructuredModel):
    """Label sequences of the length of x, with features of labels and of neighbours; arg max tries every one."""

    def outputs(self, x):
        return list(product(range(LABELS), repeat=len(x)))

    def joint_feature(self, x, y):
        tokens, neighbours = np.zeros((LABELS, x.shape[1])), np.zeros((LABELS, LABELS))
        np.add.at(tokens, list(y), x)
        np.add.at(neighbours, (list(y[:-1]), list(y[1:])), 1)
        return np.concatenate([tokens.ravel(), neighbours.ravel()])

    def loss(self, y_true, y):
        return sum(a != b for a, b in zip(y_true, y, strict=True))

    def value(self, x, y, w, y_true):
        return self.joint_feature(x, y) @ w + (0 if y_true is None else self.loss(y_true, y))

    def argmax(self, x, w, y_true=None):
        # Rounded, so that of equal outputs the first is taken by all variants.
        return max(self.outputs(x), key=lambda y: round(float(self.value(x, y, w, y_true)), 9))


class WithKernel(Enumerated):
    """The same by inner products alone."""

    def joint_feature(self, x, y):
        raise AssertionError("a model with a joint kernel is not asked for features")

    def joint_kernel(self, x, y, x2, y2):
        return super().joint_feature(x, y) @ super().joint_feature(x2, y2)

    def value(self, x, y, score, y_true):
        return score(y) + (0 if y_true is None else self.loss(y_true, y))


class WithSparseRows(Enumerated):
    def joint_feature(self, x, y):
        return csr_matrix(super().joint_feature(x, y))

    def value(self, x, y, w, y_true):
        return (self.joint_feature(x, y) @ w)[0] + (0 if y_true is None else self.loss(y_true, y))


def argmax_of(augmented, maximize=True):
    """Return an arg max of the score plus so many times the loss."""

    def argmax(self, x, w, y_true=None):
        scores = x @ w
        if y_true is not None:
            scores[np.arange(len(scores)), y_true] -= augmented / len(scores)
        return linear_sum_assignment(scores, maximize=maximize)[1]

    return argmax


class Matching(StructuredModel):
    argmax = argmax_of(1)

    def joint_feature(self, x, y):
        return x[np.arange(len(y)), y].sum(axis=0)

    def loss(self, y_true, y):
        return np.mean(np.asarray(y_true) != y)


@models.persistable_value
@dataclass(frozen=True)
class ScaledMatching(Matching):
    scale: float = 1.0

    def joint_feature(self, x, y):
        return self.scale * super().joint_feature(x, y)

    def argmax(self, x, w, y_true=None):
        return super().argmax(self.scale * x, w, y_true)


def sequences(count=12, length=3, features=2, seed=0):
    """Noisy label sequences, as tuples."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=LABELS * features + LABELS * LABELS)
    X = [rng.normal(size=(rng.integers(1, length + 1), features)) for _ in range(count)]
    return X, [Enumerated().argmax(x + rng.normal(size=x.shape), w) for x in X]


def matchings(count=30, points=5, features=3, seed=0):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=features)
    X = rng.normal(size=(count, points, points, features))
    return X, np.array([Matching().argmax(x + 0.5 * rng.normal(size=x.shape), w) for x in X])


def exact(solver, tol=1e-6, **settings):
    """The parameters that make a solver go on to the optimum."""
    return {"solver": solver, "tol": tol, "random_state": 0, "max_iter": 10_000, **settings}


def optimum(model, X, y, costs):
    """The maximum of the dual of all outputs, [thesis] (2.19), by a general QP solver."""
    wrong = [(i, output) for i, x in enumerate(X) for output in model.outputs(x) if output != y[i]]
    rows = np.array([model.joint_feature(X[i], y[i]) - model.joint_feature(X[i], output) for i, output in wrong])
    losses = np.array([model.loss(y[i], output) for i, output in wrong], float)
    sums = [[float(i == k) for i, _ in wrong] for k in range(len(y))]
    G, h = np.vstack([-np.eye(len(wrong)), sums]), np.r_[np.zeros(len(wrong)), costs]
    return -interior_point(rows @ rows.T, -losses, G, h)[1]


def objectives(model, enumerated, X, y, costs):
    """Primal and dual of a fitted model: losses by enumeration, w from the coefficients."""
    phi, found = enumerated.joint_feature, list(zip(model.dual_coef_, model.support_vectors_, strict=True))
    w = sum(b * phi(X[i], o) for b, (i, o) in found)
    gain = -sum(b * enumerated.loss(y[i], o) for b, (i, o) in found)
    losses = [
        max(enumerated.value(x, o, w, t) for o in enumerated.outputs(x)) - phi(x, t) @ w
        for x, t in zip(X, y, strict=True)
    ]
    return w @ w / 2 + costs @ losses, gain - w @ w / 2, w


def assert_feasible(model, y, costs):
    """beta <= C delta, and the coefficients of an example add up to zero."""
    beta, rows = np.array(model.dual_coef_), [i for i, _ in model.support_vectors_]
    own = [tuple(output) == tuple(y[i]) for i, output in model.support_vectors_]
    assert (beta <= np.where(own, costs[rows] * (1 + 1e-12), 0)).all()
    assert np.abs(np.bincount(rows, beta)).max() <= 1e-9 * costs.max()


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("C", [0.1, 3.0])
def test_exact_solvers_certify_their_coefficients_and_reach_the_optimum_of_a_general_solver(solver, C):
    X, y = sequences()
    costs = C * np.tile([0.0, 2.0, 0.5, 1.0, 3.0, 1.0], 2)  # weights of examples are factors on their costs
    best = optimum(Enumerated(), X, y, costs)
    for tol in (1e-2, 1e-6):
        model = StructuredSVC(Enumerated(), C=C, **exact(solver, tol)).fit(X, y, sample_weight=costs / C)
        result = model.result_
        assert result.status == "converged"
        assert result.exact
        primal, dual, w = objectives(model, Enumerated(), X, y, costs)
        np.testing.assert_allclose(model.coef_, w, rtol=1e-9, atol=1e-12)
        assert (result.primal, result.dual) == pytest.approx((primal, dual), rel=1e-9)
        assert dual <= best * (1 + 1e-7)
        assert primal >= best * (1 - 1e-7)
        assert (primal, dual) == pytest.approx((best, best), rel=2 * tol)
        assert result.support_vectors == len(model.dual_coef_) == len(model.support_vectors_)
        assert result.support_patterns == len(model.support_)
        assert sorted({i for i, _ in model.support_vectors_}) == sorted(model.support_.tolist())
        assert not {0, 6} & set(model.support_.tolist())
        duals = np.array([point.dual for point in result.history])
        assert len(duals) > 3 or tol > 1e-6
        assert (np.diff(duals) >= -1e-9 * duals[-1]).all()
        assert all(point.gap >= -1e-9 * point.primal for point in result.history)
        assert_feasible(model, y, costs)


class OneByOne(MulticlassModel):
    asked = 0

    def argmax(self, x, w, y_true=None):  # the inherited argmax_batch is that of another arg max
        OneByOne.asked += 1
        return super().argmax(x, w, y_true)


@pytest.mark.parametrize("solver", EXACT)
def test_classes_are_the_multiclass_svm(solver):
    X, y = clouds(60)
    OneByOne.asked = 0
    plain = LinearMulticlassSVC("crammer-singer", fit_intercept=False, tol=1e-7, random_state=0).fit(X, y)
    ways = (MulticlassModel(3), X), (MulticlassModel(3), csr_matrix(X)), (OneByOne(3), X)
    dense, sparse, single = (StructuredSVC(model, **exact(solver)).fit(some, y) for model, some in ways)
    for model in (dense, sparse, single):
        assert model.result_.primal == pytest.approx(plain.result_.primal, rel=2e-6)
        np.testing.assert_allclose(model.coef_.reshape(3, 4), plain.coef_, atol=5e-3)
        assert model.predict(X) == dense.predict(X)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-12)
    assert OneByOne.asked >= single.result_.argmax_calls + len(X)


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("C", [1.0, 10.0, 100.0])
def test_a_gap_is_reached_in_a_few_passes_of_arg_max(solver, C):
    rng = np.random.default_rng(0)
    y = np.arange(210) % 3
    X = rng.normal(size=(3, 3))[y] + 1.5 * rng.normal(size=(210, 3))
    model = StructuredSVC(MulticlassModel(3), C=C, **exact(solver, 1e-3, max_iter=12)).fit(X, y)
    assert model.result_.status == "converged"
    assert model.result_.argmax_calls + model.result_.operations["certificate_argmax"] <= 12 * len(y)


@pytest.mark.parametrize("solver", ["svmstruct", "svmstruct-1slack"])
def test_a_violation_bounds_the_gap(solver):
    X, y = matchings()
    model = StructuredSVC(Matching(), solver=solver, C=5, stop="violation", tol=1e-3, random_state=0).fit(X, y)
    assert model.result_.status == "converged"
    assert 0 <= model.result_.gap <= 5 * len(y) * 1e-3 * 1.1
    assert model.result_.gap > 1e-8  # not by going on to the end


def test_planes_that_are_not_used_are_dropped_without_harm(monkeypatch):
    monkeypatch.setattr("larank.structured.oneslack.OneSlack._IDLE", 3)
    X, y = matchings(40)
    result, other = (StructuredSVC(Matching(), C=3, **exact(solver)).fit(X, y).result_ for solver in EXACT[:0:-1])
    assert result.operations["dropped"] > 0
    assert result.primal == pytest.approx(other.primal, rel=2e-6)


def test_ascent_on_the_simplex_reaches_the_maximum():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, 5))
    G, L, alpha = A @ A.T, rng.normal(size=12), np.eye(12)[0] * 2.0
    ascend_on_simplex(G, L, alpha, 1e-10)
    constraints = np.vstack([-np.eye(12), np.ones(12), -np.ones(12)])
    _, bound = interior_point(G, -L, constraints, np.r_[np.zeros(12), 2.0 + 1e-9, -2.0])
    assert L @ alpha - alpha @ G @ alpha / 2 == pytest.approx(-bound, rel=1e-6)
    assert alpha.sum() == pytest.approx(2.0)
    assert alpha.min() >= 0


@pytest.mark.parametrize("seed", range(6))
def test_ascent_on_the_simplex_ends_where_rounding_hides_the_gain(seed):
    rng = np.random.default_rng(seed)
    rows, shifts = rng.normal(size=(20, 40)), rng.normal(size=(20, 1)) * (np.arange(40) < 8)
    losses, found = np.r_[0, rng.uniform(0.5, 1, 24)], []
    for shift in (1e4, 1e6):
        planes = rows + shift * shifts
        planes[0] = 0
        planes = np.vstack([planes, planes[1:6] + 1e-3 * np.random.default_rng(0).normal(size=(5, 40))])
        alpha = np.eye(25)[0] * 1e6
        assert ascend_on_simplex(planes @ planes.T, losses, alpha, 1e-6) < 100
        found.append(losses @ alpha - ((alpha @ planes) ** 2).sum() / 2)
    assert found[1] == pytest.approx(found[0], rel=2e-3)


def test_a_fit_whose_gap_is_hidden_by_rounding_ends_by_precision():
    X, y = 1.4e8 + 4e6 * np.random.default_rng(0).normal(size=(22, 5)), np.arange(22) % 3
    model = StructuredSVC(MulticlassModel(3), C=100.0, solver="svmstruct-1slack", tol=1e-3)
    with pytest.warns(TrainingWarning, match="ended by rounding errors"):
        model.fit(X, y)
    assert model.result_.status == "precision"
    assert 0 <= model.result_.dual <= model.result_.primal


def new_solver(model, schedule):
    """Return LaRank with the weights that the model needs."""
    checked = CheckedModel(model)
    is_kernel = isinstance(model, WithKernel)
    weights = CachedExpansion(checked) if is_kernel else FeatureWeights(checked, np.zeros(LABELS * 2 + LABELS**2))
    return LaRankSolver(weights, schedule, seed=0)


@pytest.mark.parametrize("schedule", [lambda: FixedSchedule(1), AdaptiveSchedule])
@pytest.mark.parametrize("model", [Enumerated(), WithKernel()])
def test_every_step_raises_the_dual_and_the_account_of_it_is_right(model, schedule):
    X, y = sequences(8)
    solver = new_solver(model, schedule())
    examples, before, step = [Example(i, X[i], y[i], 1.5) for i in range(8)], 0.0, solver.steps.smo_step

    def watched(pattern, choice):
        nonlocal before
        step(pattern, choice)
        assert solver.steps.dual >= before
        before = solver.steps.dual

    solver.steps.smo_step = watched
    for example in examples * 5:
        solver.visit(example)
        for pattern in solver.steps.patterns.values():
            assert 0 < pattern.truth.beta <= 1.5
            assert sum(v.beta for v in pattern.vectors.values()) == pytest.approx(0, abs=1e-12)
            assert all(v.beta < 0 for v in pattern.vectors.values() if v is not pattern.truth)
    assert solver.steps.steps > 20
    assert completed(solver.certificate(examples)).dual == pytest.approx(solver.steps.dual, rel=1e-9)
    assert sorted(solver.steps.order) == sorted(solver.steps.patterns)


def test_an_output_with_the_same_features_takes_all_the_cost():
    class Blind(MulticlassModel):
        def joint_feature(self, x, y):
            return np.zeros(2)

        def argmax(self, x, w, y_true=None):
            return 0 if y_true is None else 1 - y_true

    model = StructuredSVC(Blind(2), C=3, tol=1e-3, random_state=0).fit([0, 0], [0, 1])
    assert model.result_.primal == model.result_.dual == 6
    assert not StructuredSVC(Blind(2), solver="passive-aggressive").fit([0, 0], [0, 1]).coef_.any()


@pytest.mark.parametrize(
    ("solver", "settings"),
    [("larank", {}), *product(EXACT, [{"tol": 1e-3}]), *product(EXACT[1:], [{"stop": "violation"}])],
)
def test_where_there_is_one_output_there_is_nothing_to_learn(solver, settings):
    model = StructuredSVC(MulticlassModel(1), solver=solver, **settings).fit(np.ones((3, 2)), [0, 0, 0])
    assert model.result_.status == ("converged" if settings else "completed")
    assert model.result_.primal == model.result_.dual == 0
    assert model.predict(np.ones((2, 2))) == [0, 0]
    assert len(model.support_) == len(model.dual_coef_) == 0


@pytest.mark.parametrize(("solver", "settings"), [*STREAMS, ("svmstruct", {})])
def test_a_linear_joint_kernel_makes_the_model_of_joint_features(solver, settings):
    X, y = sequences(10)
    explicit, kernel = (
        StructuredSVC(model, solver=solver, random_state=0, **settings).fit(X, y)
        for model in (Enumerated(), WithKernel())
    )
    assert kernel.support_vectors_ == explicit.support_vectors_
    np.testing.assert_allclose(kernel.dual_coef_, explicit.dual_coef_, atol=1e-9)
    assert kernel.predict(X) == explicit.predict(X)
    np.testing.assert_allclose(kernel.joint_scores(X, y), explicit.joint_scores(X, y), atol=1e-9)
    assert not hasattr(kernel, "coef_")
    assert kernel.result_.kernel_values > 0
    if explicit.result_.has_objective:
        assert kernel.result_.primal == pytest.approx(explicit.result_.primal, rel=1e-9)


def test_the_scores_handed_to_argmax_name_their_terms():
    class Curious(WithKernel):
        def argmax(self, x, score, y_true=None):
            for y in self.outputs(x):
                terms = sum(beta * self.joint_kernel(x2, y2, x, y) for beta, x2, y2 in score.terms())
                assert terms == pytest.approx(score(y))
            return super().argmax(x, score, y_true)

    X, y = sequences(5)
    StructuredSVC(Curious(), random_state=0).fit(X, y).predict(X[:2])


def test_the_adaptive_schedule_reaches_the_same_optimum_with_a_kernel_and_counts_work_in_other_units():
    X, y = sequences(10)

    def fitted(**settings):
        models, solver = (Enumerated(), WithKernel()), LaRank(schedule="adaptive")
        return [StructuredSVC(model, **{"solver": solver, **settings}).fit(X, y).result_ for model in models]

    explicit, kernel = fitted(**exact(LaRank(schedule="adaptive"), 1e-5))
    assert kernel.dual == pytest.approx(explicit.dual, rel=2e-5)
    explicit, kernel = fitted(max_iter=5, random_state=0)
    assert kernel.operations != explicit.operations


@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_rows_make_the_model_of_dense_ones(solver):
    X, y = sequences(10)
    dense, sparse = (
        StructuredSVC(m, solver=solver, random_state=0).fit(X, y) for m in (Enumerated(), WithSparseRows())
    )
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-9)
    assert sparse.support_vectors_ == dense.support_vectors_


def in_halves(row):
    """Return a sparse row with two entries for each value, which are summed up."""
    return coo_array((np.tile(row / 2, 2), (np.zeros(8, int), np.tile(np.arange(4), 2))), shape=(1, 4))


@pytest.mark.parametrize("other", [csr_matrix, lambda row: csr_array(row[None]), coo_array, list, in_halves])
def test_rows_of_any_kind_mean_the_same(other):
    first, second, w = np.array([1.0, 0, -2, 0]), np.array([0.0, 3, 1, 0]), np.arange(4.0)
    a, b = row_of(other(first)), row_of(second)
    assert a.dot(w) == first @ w
    scratch = np.zeros(4)
    a.add_to(scratch, 1.0)
    assert scratch.tolist() == first.tolist()
    b.add_to(scratch, -1.0)
    assert a.take_squares(scratch) + b.take_squares(scratch) == ((first - second) ** 2).sum()
    assert not scratch.any()


@pytest.fixture
def as_given(monkeypatch):
    """Make `fit` take the examples in their own order, as `partial_fit` does."""
    monkeypatch.setattr(TrainingPairs, "order", lambda self, shuffled: np.flatnonzero(self.costs))


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("solver", ["perceptron", "passive-aggressive"])
def test_online_steps_are_those_written_by_hand(solver, average, as_given):
    X, y = matchings()
    is_perceptron, phi = solver == "perceptron", Matching().joint_feature
    costs = 0.05 * np.random.default_rng(0).uniform(0.5, 2, len(y))
    given = ({}, None) if is_perceptron else ({"C": 0.05}, costs / 0.05)
    model = StructuredSVC(Matching(), solver=solver, average=average, max_iter=3, **given[0]).fit(X, y, given[1])
    w, total, updates = np.zeros(3), np.zeros(3), 0
    for x, truth, c in zip([*X] * 3, [*y] * 3, [*costs] * 3, strict=True):
        answer = Matching().argmax(x, w, None if is_perceptron else truth)
        difference = phi(x, truth) - phi(x, answer)
        loss = Matching().loss(truth, answer) - w @ difference
        if is_perceptron and (answer != truth).any():
            w, updates = w + difference, updates + 1
        elif not is_perceptron and loss > 0:
            w = w + min(c, loss / (difference @ difference)) * difference
        total += w
    np.testing.assert_allclose(model.coef_, total / 90 if average else w, rtol=1e-9)
    if is_perceptron:
        assert model.result_.operations["updates"] == updates
        assert model.result_.argmax_calls == 90
        assert model.result_.history[-1].online_error == updates / 90
        assert not model.result_.has_objective


def test_the_perceptron_needs_no_loss_augmented_argmax_and_the_others_say_so():
    class Plain(Matching):
        def argmax(self, x, w, y_true=None):
            if y_true is not None:
                raise NotImplementedError("no loss-augmented argmax here")
            return super().argmax(x, w)

    X, y = matchings(10)
    StructuredSVC(Plain(), solver="perceptron").fit(X, y)
    for solver in ("larank", "svmstruct", "svmstruct-1slack", "passive-aggressive"):
        with pytest.raises(NotImplementedError, match="no loss-augmented argmax") as caught:
            StructuredSVC(Plain(), solver=solver).fit(X, y)
        assert "raised by Plain.argmax for example" in caught.value.__notes__[0]


@pytest.mark.parametrize(("solver", "settings"), [*STREAMS, (LaRank(schedule="adaptive"), {})])
@pytest.mark.parametrize("model", [Enumerated(), WithKernel()])
def test_parts_of_a_stream_make_the_model_of_the_whole(solver, model, settings, as_given):
    X, y = sequences(12)
    whole = StructuredSVC(model, solver=solver, random_state=0, **settings).partial_fit(X, y)
    fitted = StructuredSVC(model, solver=solver, random_state=0, **settings).fit(X, y)
    parts = StructuredSVC(model, solver=solver, random_state=0, **settings)
    for first, last in ((0, 1), (1, 5), (5, 12)):
        parts.partial_fit(X[first:last], y[first:last])
        parts = pickle.loads(pickle.dumps(parts)) if first == 1 else parts
    for other in (fitted, parts):
        assert other.support_vectors_ == whole.support_vectors_
        np.testing.assert_allclose(other.dual_coef_, whole.dual_coef_, rtol=1e-7)
    assert parts.predict(X) == whole.predict(X)


def test_a_stream_goes_on_after_a_fit_to_a_gap():
    X, y = matchings(40)
    model = StructuredSVC(Matching(), tol=1e-3, random_state=0).fit(X[:20], y[:20])
    assert model.result_.operations["optimize"] == 0  # what takes its place comes after the pass
    assert_feasible(model, y, np.ones(20))
    model.set_params(tol=None).partial_fit(X[20:], y[20:])
    assert model.support_.max() >= 20
    assert model.result_.operations["optimize"] > 0


def test_a_failure_leaves_the_model_as_it_was():
    class Failing(Matching):
        fails_at = 7.0

        def argmax(self, x, w, y_true=None):
            if x[0, 0, 0] == self.fails_at:
                raise RuntimeError("out of order")
            return super().argmax(x, w, y_true)

    X, y = matchings(30)
    X[15, 0, 0, 0] = 7
    structure = Failing()
    model = StructuredSVC(structure, random_state=0).partial_fit(X[:10], y[:10])
    with unchanged(model, X[:10]), pytest.raises(RuntimeError, match="out of order"):
        model.partial_fit(X[10:], y[10:])
    structure.fails_at = None
    undisturbed = StructuredSVC(Matching(), random_state=0).partial_fit(X, y)
    np.testing.assert_allclose(model.partial_fit(X[10:], y[10:]).coef_, undisturbed.coef_, rtol=1e-7)


@pytest.mark.parametrize("rows", [1, 5])
def test_a_buffer_that_is_used_again_does_not_change_the_model(rows):
    X, y = matchings(20)
    buffer, answers, model = X[:rows].copy(), y[:rows].copy(), StructuredSVC(Matching(), random_state=0)
    for first in range(0, 20, rows):
        buffer[:], answers[:] = X[first : first + rows], y[first : first + rows]
        model.partial_fit(buffer, answers)
    steady = StructuredSVC(Matching(), random_state=0).partial_fit(X, y)
    np.testing.assert_allclose(model.coef_, steady.coef_, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "value"), [("solver", "perceptron"), ("solver", LaRank(schedule="adaptive")), ("model", Matching())]
)
def test_a_stream_keeps_some_parameters(name, value, tmp_path):
    X, y = matchings(10)
    streamed, fitted = (StructuredSVC(ScaledMatching(), random_state=0) for _ in range(2))
    models.save(fitted.fit(X, y), tmp_path / "model.larank")
    begun = [streamed.partial_fit(X, y)] + [fitted, models.load(tmp_path / "model.larank")] * (value == "perceptron")
    for model in begun:
        with pytest.raises(ValueError, match=f"{name} must stay as it was in the calls before, .*; got"):
            model.set_params(**{name: value}).partial_fit(X, y)


class Interrupting(Matching):
    def __init__(self):
        self.calls = 0

    def argmax(self, x, w, y_true=None):
        self.calls += 1
        if self.calls == 17:
            signal.raise_signal(signal.SIGINT)
        return super().argmax(x, w, y_true)


@pytest.mark.parametrize(
    ("solver", "status"),
    [*product(SOLVERS, ("time_limit", "interrupted")), *((solver, "max_iter") for solver in EXACT)],
)
def test_an_early_end_leaves_a_valid_model(solver, status):
    passes = {} if solver in EXACT[1:] else {"max_iter": 5}
    structure, parameters, message = {
        "time_limit": (Matching(), {"time_limit": 1e-9}, "after time_limit=1e-09 seconds"),
        "interrupted": (Interrupting(), passes, "ended by an interrupt"),
        "max_iter": (Matching(), {**exact(solver, 1e-12, max_iter=2), "C": 10}, "by max_iter=2, after 2 passes"),
    }[status]
    X, y = matchings(30)
    model = StructuredSVC(structure, **{"solver": solver, "random_state": 0, **parameters})
    with pytest.warns(TrainingWarning, match=message):
        result = model.fit(X, y).result_
    assert result.status == status
    assert len(model.predict(X)) == 30
    assert status != "interrupted" or result.iterations < 1
    assert status != "max_iter" or model.n_iter_ == 2
    if result.has_objective:
        assert result.gap >= 0
        assert status != "interrupted" or (result.exact and result.gap > 0)


def test_progress_is_shown_and_with_verbose_2_every_update(capsys):
    lines = []
    for verbose in (1, 2):
        StructuredSVC(Matching(), verbose=verbose, max_iter=3, random_state=0).fit(*matchings(10))
        lines.append(capsys.readouterr().err.splitlines())
        assert "Matching by larank, 10 examples" in lines[-1][0]
    assert len(lines[0]) < 30 <= len(lines[1])  # an update after each example


def test_argmax_calls_are_those_of_training():
    X, y = matchings(30)
    estimated = StructuredSVC(Matching(), random_state=0).fit(X, y, certify=False)
    assert estimated.result_.operations["certificate_argmax"] == 0
    model = StructuredSVC(Matching(), solver=LaRank(n_reprocess=3), random_state=0).fit(X, y)
    operations = model.result_.operations
    assert operations["process_new"] == 30
    assert model.result_.argmax_calls == 30 + operations["process_old"]
    assert operations["certificate_argmax"] == 30
    assert set(model.result_.breakdown) >= {"argmax", "joint_feature", "certificate"}


def test_score_is_one_minus_the_mean_loss_and_pairs_of_inputs_and_outputs_have_scores():
    X, y = matchings()
    model = StructuredSVC(Matching(), random_state=0).fit(X, y)
    predicted, weight = model.predict(X), np.arange(30.0)
    losses = [Matching().loss(t, p) for t, p in zip(y, predicted, strict=True)]
    assert model.score(X, y) == pytest.approx(1 - np.mean(losses))
    assert model.score(X, y, weight) == pytest.approx(1 - np.average(losses, weights=weight))
    assert (model.joint_scores(X, predicted) >= model.joint_scores(X, y) - 1e-9).all()
    assert not hasattr(model, "decision_function")  # which scikit-learn calls with X alone
    assert model.joint_scores(X[:1], y[:1]) == pytest.approx(Matching().joint_feature(X[0], y[0]) @ model.coef_)


def test_parameters_are_searched():
    X, y = matchings()
    search = GridSearchCV(StructuredSVC(Matching(), random_state=0), {"C": [1e-6, 1.0]}, cv=3).fit(list(X), list(y))
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_copies_in_files_and_pickles_predict_alike_and_go_on(solver, tmp_path):
    X, y = matchings(40)
    model = StructuredSVC(ScaledMatching(0.5), solver=solver, random_state=0).fit(X[:20], y[:20])
    models.save(model, tmp_path / "model.larank")
    copies = models.load(tmp_path / "model.larank"), pickle.loads(pickle.dumps(model))
    for again in copies:
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.model == ScaledMatching(0.5)
        assert again.result_.operations == model.result_.operations
    if solver in ONLINE:
        model.partial_fit(X[20:], y[20:])
        for again in copies:
            np.testing.assert_allclose(again.partial_fit(X[20:], y[20:]).coef_, model.coef_, rtol=1e-9)


def test_outputs_with_equal_entries_are_the_same():
    key = Matching().key
    for one, other in (([0, 1], (0, 1)), ([0, 1], np.array([0, 1])), (1, np.int64(1)), ({1, 2}, {2, 1}), (2.5, 2.5)):
        assert key(one) == key(other)
        assert hash(key(one)) == hash(key(other))
    for one, other in (([0, 1], [1, 0]), ("a", "b"), ({"a": 1}, {"a": 2}), ([[0], [1]], [[0, 1]])):
        assert key(one) != key(other)


def changed(**methods):
    """A matching model with other methods."""
    return type("Changed", (Matching,), methods)()


def worst_of_a_batch(self, X, w, y_true=None):
    argmax = argmax_of(0, maximize=False) if w.any() else Matching.argmax
    return [argmax(self, x, w, truth) for x, truth in zip(X, y_true, strict=True)]


def careless(self, x, w, y_true=None):
    w += 1
    return Matching.argmax(self, x, w, y_true)


def returns(value):
    return lambda *arguments: value


def batch(answer):
    """Methods and parameters of a model that answers for several inputs at once."""
    methods = {"argmax": Matching.argmax, "argmax_batch": lambda self, X, w, y_true=None: answer(X)}
    return methods, {"solver": "svmstruct"}


LARGEST = r"Changed.argmax must return the output with the largest .* for example \d+, where"
SUM = r"argmax must return the output with the largest loss \+ score"
SLOWLY = {"C": 0.01, "tol": 1e-3, "max_iter": 60}
BATCH = {"argmax": Matching.argmax, "argmax_batch": worst_of_a_batch}
# Methods, parameters, words of the error.
BROKEN = [
    *(({"argmax": argmax_of(0, maximize=False)}, {"solver": solver}, LARGEST) for solver in SOLVERS),
    *(({"argmax": argmax_of(augmented)}, SLOWLY, SUM) for augmented in (0, -1)),
    *((BATCH, {"solver": solver}, LARGEST) for solver in EXACT[1:]),
    (*batch(lambda X: [0] * (len(X) - 1)), r"Changed.argmax_batch must return an output per input, \d+; got \d+"),
    (*batch(lambda X: 0), "Changed.argmax_batch must return an output per input, 10; got a int"),
    (*batch(lambda X: [None] * len(X)), "Changed.argmax_batch must return outputs, got None for example"),
    ({"argmax": lambda self, x, w, y_true=None: None}, {}, "Changed.argmax must return an output, got None"),
    ({"argmax": careless}, {}, "read-only"),
    ({"loss": returns(1.0)}, {}, "Changed.loss of an output with itself must be 0, got 1.0 for example 0"),
    ({"loss": lambda self, y, z: -np.mean(y != z)}, {}, "Changed.loss must be >= 0, got -"),
    ({"loss": returns("much")}, {}, "Changed.loss must return a number, got 'much'"),
    ({"loss": returns(np.nan)}, {}, "Changed.loss must return a finite number"),
    ({"joint_feature": returns(np.full(3, np.inf))}, {}, "joint_feature must return finite numbers"),
    ({"joint_feature": returns(np.zeros((1, 3)))}, {}, r"one dimension and at least one entry, got shape \(1, 3"),
    ({"joint_feature": returns(csr_matrix((2, 3)))}, {}, r"a single row of at least one entry, got shape \(2, 3"),
    ({"joint_feature": returns("abc")}, {}, "an array of numbers, got a str"),
    ({"joint_feature": lambda self, x, y: np.ones(2 + y[0] % 2)}, {}, r"as many features as before, \d; got \d for"),
    ({"joint_kernel": returns(np.nan)}, {}, "joint_kernel must return a finite number"),
]


class Indefinite(WithKernel):
    def joint_kernel(self, x, y, x2, y2):
        return -super().joint_kernel(x, y, x2, y2)


class Crossed(WithKernel):
    def joint_kernel(self, x, y, x2, y2):
        return super().joint_kernel(x, y, x2, y2) * (1 if list(y) == list(y2) else 9) + 1


class Empty(StructuredModel):
    def argmax(self, x, w, y_true=None):
        return 0

    def loss(self, y_true, y):
        return 0.0


X5, y5 = matchings(5)
NO_SEQUENCE = "X must be a sequence with an entry per example"
# Model, examples and outputs, the error and its words, other parameters.
IMPOSSIBLE = [
    (Indefinite(), sequences(5), ValueError, "joint_kernel must be positive semi-definite"),
    (Crossed(), sequences(5), ValueError, r"positive semi-definite; \|Phi\(x, y\) - Phi\(x, y'\)\|\^2 is -"),
    (WithKernel(), sequences(5), ValueError, "needs a model with joint_feature", {"solver": "svmstruct-1slack"}),
    (Empty(), ([1], [0]), NotImplementedError, "Empty has no joint_feature"),
    (object(), ([1], [0]), TypeError, "model must be an instance of a subclass of StructuredModel"),
    (Matching(), ([0], [Empty()]), TypeError, r"outputs that are a Empty need a method key\(y\)"),
    (Matching(), (X5, y5[:4]), ValueError, "X and y must be equally long, got 5 and 4"),
    (Matching(), ([], []), ValueError, "at least one example, got none"),
    *((Matching(), (X, y5), TypeError, NO_SEQUENCE) for X in (iter(X5), "text", {0: X5[0]}, 3, np.array(3.0))),
    (Matching(), (X5, y5, [1, 2]), ValueError, "sample_weight must have one entry per example, 5; got shape"),
    (MulticlassModel(2), ([[1.0]], [2]), ValueError, "labels must be whole numbers from 0 to 1, got 2"),
    *((changed(**methods), matchings(100), ValueError, message, more) for methods, more, message in BROKEN),
]


@pytest.mark.parametrize("row", IMPOSSIBLE)
def test_models_and_data_that_cannot_be_are_told(row):
    model, data, error, message, *parameters = row
    with pytest.raises(error, match=message):
        StructuredSVC(model, random_state=0, **dict(*parameters)).fit(*data)


def test_a_batch_is_answered_one_by_one_by_default():
    (X, _), w, model = matchings(5), np.random.default_rng(0).normal(size=3), Matching()
    assert [list(y) for y in model.argmax_batch(X, w)] == [list(model.argmax(x, w)) for x in X]


def test_what_a_model_lacks_is_told(tmp_path):
    with pytest.raises(TypeError, match="need a method key"):
        Empty().key(bytearray(b"a"))
    with pytest.raises(TypeError, match="abstract"):
        StructuredModel()
    with pytest.raises(TypeError, match="parameter 'model' is a WithKernel"):
        models.save(StructuredSVC(WithKernel()).fit(*sequences(5)), tmp_path / "model.larank")
    for solver in EXACT[1:]:
        model = StructuredSVC(Matching(), solver=solver)
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError, match=r"needs all examples at once.*'larank', 'perceptron'"):
            model.partial_fit(X5, y5)


def test_tables_of_pandas_are_taken_row_by_row():
    pandas = pytest.importorskip("pandas")
    X, y = clouds(20, 2, 2)
    index = np.random.default_rng(0).permutation(20) + 100
    frame = StructuredSVC(MulticlassModel(2), random_state=0).fit(pandas.DataFrame(X, index), pandas.Series(y, index))
    np.testing.assert_array_equal(frame.coef_, StructuredSVC(MulticlassModel(2), random_state=0).fit(X, y).coef_)


def writing(method):
    """Return a model of which one method sets the features of its input to zero."""

    def wrong(self, x, *arguments, **more):
        some = x[0] if method == "argmax_batch" else x
        (some.data if hasattr(some, "indptr") else some)[:] = 0.0
        return getattr(MulticlassModel, method)(self, x, *arguments, **more)

    return type("Writing", (MulticlassModel,), {method: wrong})(3)


@pytest.mark.parametrize("form", [np.copy, list, UserList, csr_matrix, lambda X: np.fromiter(X, object)])
@pytest.mark.parametrize("method", ["joint_feature", "argmax", "argmax_batch"])
def test_methods_of_a_model_cannot_write_to_the_inputs(form, method):
    X, y = clouds(n=12)
    kept, some = X.copy(), form(X)
    with pytest.raises(ValueError, match="read-only"):
        StructuredSVC(writing(method), solver="svmstruct").fit(some, y)
    svc = StructuredSVC(MulticlassModel(3), solver="svmstruct").fit(some, y).set_params(model=writing(method))
    with pytest.raises(ValueError, match="read-only"):
        svc.joint_scores(some, y) if method == "joint_feature" else svc.predict(some)
    np.testing.assert_array_equal(X, kept)
    if form in (np.copy, csr_matrix):
        np.testing.assert_array_equal(some.toarray() if form is csr_matrix else some, kept)
