"""The losses of the primal multiclass SVM: values, gradients and Hessians against many digits, limits, convexity."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from larank import _core
from larank.blocks.workers import Workers
from larank.linear.labelkernel import tree_label_kernel
from larank.linear.primalobjective import PrimalExamples, PrimalLoss, PrimalObjective
from properties import draws
from references.primal import LOSSES, ExactProblem, aggregation_of, exact_gradient, exact_loss, losses_of, root_of

GAMMAS = (0.0, 0.05, 0.5, 1.0, 2.0, 30.0, np.inf)

every_loss = pytest.mark.parametrize(("loss", "smoothing"), LOSSES)
every_gamma = pytest.mark.parametrize("gamma", GAMMAS)


def label_kernels(k):
    """None is the identity."""
    random = np.random.default_rng(k)
    A, narrow = random.normal(size=(k, k)), random.normal(size=(k, max(1, k // 2)))
    tree = {"first": list(range(k // 2)), "second": {"left": [k // 2], "right": list(range(k // 2 + 1, k))}}
    return {"identity": None, "any": A @ A.T, "singular": narrow @ narrow.T, "tree": tree_label_kernel(tree)}


def objective_of(X, labels, costs, k, loss, label_kernel=None, *, intercept=True):
    examples = PrimalExamples(X, labels, costs, k)
    return PrimalObjective(examples, loss, label_kernel, fit_intercept=intercept, workers=Workers(1))


class Case:
    """A small problem with an objective of the library, a table and two directions."""

    def __init__(self, loss, smoothing, gamma, k, label_kernel, *, dtype=np.float64, layout=np.asarray, n=4, d=3):
        random = np.random.default_rng([n, k])
        self.X = (random.normal(size=(n, d)) * (random.random((n, d)) < 0.8)).astype(dtype)
        self.labels = random.integers(0, k, n).astype(np.int32)
        self.costs = random.uniform(0.2, 3.0, n)
        self.costs[-1] = 0.0  # an example without weight
        self.k, self.d, self.dtype = k, d, dtype
        self.L = np.eye(k) if label_kernel is None else root_of(label_kernel)
        losses = PrimalLoss(loss, gamma, smoothing)
        self.objective = objective_of(layout(self.X), self.labels, self.costs, k, losses, label_kernel)
        scale = 1 / np.sqrt(np.trace(self.L @ self.L.T) / k)
        self.U, self.A, self.B = (self.table(scale * random.normal(size=(d + 1, k))) for _ in range(3))
        aggregation = aggregation_of(gamma)
        if k > 2 and aggregation == "max":  # training sees a smooth function instead
            self.objective.smooth(5.0, smoothing)
            aggregation = ("lse", 5.0)
        self.exact = ExactProblem(self.labels, self.costs, loss, smoothing, "sum" if k == 2 else aggregation)
        self.largest = ExactProblem(self.labels, self.costs, loss, smoothing, "max")

    def table(self, values):
        table = self.objective.zeros()
        table[:, : self.k] = values
        return table

    def scores(self, table):
        """X W L' + 1 b'."""
        W, b = self.apart(table)
        return np.asarray(self.X, float) @ W @ self.L.T + b

    def apart(self, table):
        values = table[:, : self.k].astype(float)
        return values[:-1] @ self.L, values[-1]

    def inner(self, one, other):
        """Of what two tables stand for."""
        return sum((a * b).sum() for a, b in zip(self.apart(one), self.apart(other), strict=True))

    def check(self, tolerance):
        at = self.objective.evaluate(self.U)
        F, A, B = (self.scores(table) for table in (self.U, self.A, self.B))
        (W, _), (by_a, _), (by_b, _) = (self.apart(table) for table in (self.U, self.A, self.B))
        about = pytest.approx
        assert at.value == about(0.5 * (W**2).sum() + self.exact.losses(F), rel=tolerance)
        if self.exact.kind[2] != ("lse", 5.0):
            assert at.primal == at.value
            assert at.slack == 0
        else:
            assert at.primal == about(0.5 * (W**2).sum() + self.largest.losses(F), rel=tolerance)
            assert at.slack >= 0
        size = np.sqrt(self.inner(at.gradient, at.gradient) * self.inner(self.A, self.A))
        slope = (W * by_a).sum() + self.exact.slope(F, A)
        assert self.inner(at.gradient, self.A) == about(slope, abs=tolerance * size)
        assert at.bound == about(0.5 * (self.apart(at.gradient)[0] ** 2).sum(), rel=tolerance)
        product = self.objective.zeros()
        self.objective.product(self.A, product)
        size = np.sqrt(self.inner(product, product) * self.inner(self.B, self.B))
        bend = (by_a * by_b).sum() + self.exact.curvature(F, A, B)
        assert self.inner(product, self.B) == about(bend, abs=tolerance * size)


@every_loss
@every_gamma
@pytest.mark.parametrize("k", [2, 3, 7, 20])
def test_value_gradient_and_hessian_are_those_of_the_formula_for_every_label_kernel(loss, smoothing, gamma, k):
    for label_kernel in label_kernels(k).values():
        Case(loss, smoothing, gamma, k, label_kernel, n=4 if k < 20 else 3).check(1e-10)


@every_loss
@every_gamma
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_and_single_precision_have_as_many_digits_as_they_can(loss, smoothing, gamma, dtype):
    tolerance, kernels = (1e-10, ("any",)) if dtype == np.float64 else (2e-5, ("identity", "tree"))
    for name, layout in itertools.product(kernels, (np.asarray, sparse.csr_matrix)):
        Case(loss, smoothing, gamma, 7, label_kernels(7)[name], dtype=dtype, layout=layout).check(tolerance)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, np.inf])
@every_loss
def test_products_are_differences_of_gradients(loss, smoothing, gamma):
    case = Case(loss, smoothing, gamma, 5, label_kernels(5)["singular"], n=30)
    objective, h = case.objective, 1e-6
    ahead, behind = (objective.evaluate(case.U + e * case.A).gradient for e in (h, -h))
    product = objective.zeros()
    objective.evaluate(case.U)
    objective.product(case.A, product)
    np.testing.assert_allclose(product, (ahead - behind) / (2 * h), atol=1e-7 * np.abs(product).max())


@pytest.mark.parametrize("intercept", [True, False])
def test_without_an_intercept_there_is_no_gradient_in_the_biases(intercept):
    X, labels = np.random.default_rng(0).normal(size=(9, 2)), np.arange(9, dtype=np.int32) % 3
    objective = objective_of(X, labels, np.ones(9), 3, PrimalLoss("log_loss", 1.0, 1.0), intercept=intercept)
    table = objective.zeros()
    table[0, 0] = 1.0
    at, product = objective.evaluate(table), objective.zeros()
    objective.product(at.gradient, product)
    assert at.gradient[-1].any() == product[-1].any() == intercept


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_wide_sparse_examples_have_the_gradient_and_products_of_dense_ones(dtype):
    # Tables of more than a megabyte, which are passed over feature by feature; few of the features occur.
    random = np.random.default_rng(0)
    X = sparse.random(300, 40_000, density=1e-3, random_state=0, format="csr", dtype=dtype)
    labels, costs = random.integers(0, 5, 300).astype(np.int32), random.uniform(0, 2, 300) * (random.random(300) < 0.9)
    used = np.unique(X.indices)
    narrow = np.ascontiguousarray(X[:, used].toarray())
    loss, results = PrimalLoss("squared_hinge", 2.0, 1.0), []
    values, direction = random.normal(size=(2, len(used) + 1, 5))
    for examples, rows in ((X, np.append(used, X.shape[1])), (narrow, np.arange(len(used) + 1))):
        objective = objective_of(examples, labels, costs, 5, loss)
        U, D, product = objective.zeros(), objective.zeros(), objective.zeros()
        U[rows, :5], D[rows, :5] = values, direction
        at = objective.evaluate(U)
        objective.product(D, product)
        results.append((at.value, at.gradient[rows, :5], product[rows, :5]))
        assert at.gradient[:, :5].any(axis=1).sum() == len(rows)
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 2e-3, "atol": 2e-3}
    for wide, dense in zip(*results, strict=True):
        np.testing.assert_allclose(wide, dense, **close)


def evaluated(scores, labels, loss, smoothing, aggregation, gamma=1.0):
    """Loss, largest margin loss and gradient in the scores, of every row of scores on its own."""
    n, k = scores.shape
    options = {"loss": loss, "aggregation": aggregation, "softmax_gamma": gamma, "smoothing": smoothing}
    options |= {"classes": k, "intercept": False}

    def in_one_pass(rows):
        session = _core.primal_session(
            np.eye(len(rows), dtype=scores.dtype), np.asarray(labels, np.int32)[rows], np.ones(len(rows)), **options
        )
        V, part = session.table(), session.table()
        V[:-1, :k] = scores[rows]
        gradient, product = np.zeros((2, *V.shape))
        for stripe in range(session.stripes):
            sums = session.evaluate(stripe, V, part)
            gradient += part
            session.product(stripe, V, part)
            product += part
        return sums, gradient[:-1, :k], product[:-1, :k]  # the sums are those of the last stripe

    sums = [in_one_pass(np.array([i]))[0] for i in range(n)]
    _, gradient, product = in_one_pass(np.arange(n))
    return np.array([each.value for each in sums]), np.array([each.largest for each in sums]), gradient, product


def extreme_scores(k=4, n=70):
    """Rows of values from almost 0 to 1e4; the first are all the same, and two by two the same."""
    random = np.random.default_rng(k)
    values = np.array([0.0, 1e-8, -1e-8, 1.0, -1.0, 30.0, -30.0, 700.0, -700.0, 1e4, -1e4])
    same = np.repeat(values[:, None], k, axis=1)
    pairs = np.repeat(random.choice(values, (8, k // 2)), 2, axis=1)
    return np.vstack([same, pairs, random.choice(values, (n, k))])


def least_of(loss):
    """What is rounding: a hinge takes the difference of two scores from 1, the logistic loss has all digits."""
    return 1e-300 if loss == "log_loss" else 1e-14


@every_loss
@pytest.mark.parametrize("gamma", [0.0, 1e-12, 0.05, 1.0, 2.0, 30.0, 1e12])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_extreme_scores_have_the_loss_and_the_gradient_of_the_formula(loss, smoothing, gamma, dtype):
    scores = extreme_scores().astype(dtype)
    labels = np.random.default_rng(0).integers(0, scores.shape[1], len(scores))
    aggregation = "sum" if gamma == 0 else "interpolation"
    values, _, gradient, product = evaluated(scores, labels, loss, smoothing, aggregation, gamma)
    kind = (loss, smoothing, aggregation_of(gamma))
    exact = [exact_loss(f, label, *kind) for f, label in zip(scores, labels, strict=True)]
    least = least_of(loss)
    np.testing.assert_allclose(values, [float(value) for value in exact], rtol=1e-12, atol=least)
    slopes = [exact_gradient(f, label, *kind) for f, label in zip(scores, labels, strict=True)]
    digits, least = (1e-9, least) if dtype == np.float64 else (1e-6, max(1e-37, least))
    np.testing.assert_allclose(gradient, slopes, rtol=digits, atol=least)
    assert np.isfinite(product).all()


@every_loss
@pytest.mark.parametrize("gamma", [4.0, 1e12])
def test_the_smooth_maximum_is_right_at_extreme_scores_too(loss, smoothing, gamma):
    scores = extreme_scores()
    labels = np.random.default_rng(1).integers(0, scores.shape[1], len(scores))
    values, largest, gradient, product = evaluated(scores, labels, loss, smoothing, "smoothed-maximum", gamma)
    kind = (loss, smoothing, ("lse", gamma))
    exact = [float(exact_loss(f, label, *kind)) for f, label in zip(scores, labels, strict=True)]
    np.testing.assert_allclose(values, exact, rtol=1e-12, atol=1e-15)
    top = [float(exact_loss(f, label, loss, smoothing, "max")) for f, label in zip(scores, labels, strict=True)]
    np.testing.assert_allclose(largest, top, rtol=1e-12, atol=least_of(loss))
    slopes = [exact_gradient(f, label, *kind) for f, label in zip(scores, labels, strict=True)]
    # The shares of two classes that lose nearly the same depend on the rounding of their losses, times gamma.
    uncertain = np.clip(1e-15 * gamma * np.array(top), 1e-9, 1e-6)[:, None]
    assert (np.abs(gradient - slopes) <= uncertain * np.abs(slopes) + least_of(loss)).all()
    assert np.isfinite(product).all()


margins = st.one_of(st.floats(-50, 50), st.sampled_from([0.0, 1e-8, -1e-8, 700.0, -700.0, 1.0]))


@draws(60)
@given(st.lists(margins, min_size=3, max_size=6), st.sampled_from(LOSSES))
def test_the_aggregation_falls_from_the_sum_to_the_maximum(scores, kind):
    f = np.array([scores])
    values = [evaluated(f, [0], *kind, "interpolation", gamma)[0][0] for gamma in np.geomspace(1e-12, 1e12, 13)]
    (total,), (top,) = (evaluated(f, [0], *kind, "sum")[i] for i in (0, 1))
    around = 1e-12 * total + 1e-300
    assert all(later <= earlier + around for earlier, later in itertools.pairwise(values))
    assert top - around <= values[-1] <= values[0] + around <= total + 2 * around
    # What is between is of first order in gamma, or in its inverse: g/2 (sum t)^2, log(m) / g.
    assert values[0] == pytest.approx(total, rel=1e-12 * (1 + total), abs=1e-300)
    assert values[-1] == pytest.approx(top, rel=1e-12, abs=len(scores) * 1e-12)


@every_loss
def test_all_aggregations_are_the_same_for_two_classes(loss, smoothing):
    scores = np.random.default_rng(0).normal(size=(20, 2)) * 3
    labels = np.arange(20) % 2
    wanted, _, slopes, bends = evaluated(scores, labels, loss, smoothing, "sum")
    for gamma in (0.05, 1.0, 30.0):
        values, _, gradient, product = evaluated(scores, labels, loss, smoothing, "interpolation", gamma)
        np.testing.assert_allclose(values, wanted, rtol=1e-12)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-12)
        np.testing.assert_allclose(product, bends, rtol=1e-9, atol=1e-12)


def rise_of_the_middle(loss, smoothing, gamma, one, other):
    """The largest loss at a midpoint less the mean at the ends, relative, over pairs of scores."""
    labels = np.zeros(len(one), int)
    ends = [losses_of(f, labels, loss, smoothing, gamma)[0] for f in (one, other)]
    middle = losses_of((one + other) / 2, labels, loss, smoothing, gamma)[0]
    return ((middle - sum(ends) / 2) / (1 + sum(ends))).max()


def random_pairs(k, n=20_000):
    """Pairs of scores that are near and far, in all and in single classes, on small and large scales."""
    random = np.random.default_rng(k)
    centre = random.normal(size=(n, k)) * random.choice([0.3, 1, 4, 15], (n, 1))
    step = random.normal(size=(n, k)) * random.choice([0.03, 0.3, 1, 5], (n, 1))
    step *= random.random((n, k)) < random.choice([0.4, 1], (n, 1))
    return centre + step, centre - step


def pair_at_the_worst_point(k, loss, smoothing, gamma):
    """Where the condition of `PrimalLoss.is_convex` is broken most: all wrong classes alike, and all moving alike."""
    if loss == "squared_hinge":  # g z^2 = 1/2
        step = 0.02 / np.sqrt(gamma)
        margin = 1 - np.sqrt(0.5 / gamma)
    elif loss == "log_loss":  # far out
        margin, step = -12 / gamma, 1 / gamma
    else:  # where the straight part begins
        step = 0.3 / gamma
        margin = 1 - smoothing - step
    return [np.r_[margin + e * step, np.zeros(k - 1)] for e in (1, -1)]


BETWEEN = (0.05, 1.0, 30.0)
NOT_CONVEX = [
    *[("log_loss", 1.0, gamma, k) for gamma in (0.05, 0.3, 0.6, 0.9) for k in (3, 5)],
    *[("smoothed_hinge", width, gamma, k) for width in (1.0, 0.1) for gamma in BETWEEN for k in (3, 6)],
    *[("squared_hinge", 1.0, gamma, k) for gamma in BETWEEN for k in (7, 8, 12)],
]
CONVEX = [
    *[("log_loss", 1.0, gamma, k) for gamma in (0.0, 1.0, 1.5, 30.0, np.inf) for k in (2, 3, 8)],
    *[("log_loss", 1.0, gamma, 2) for gamma in (0.05, 0.9)],
    *[("squared_hinge", 1.0, gamma, k) for gamma in BETWEEN for k in (2, 3, 6)],
    *[("squared_hinge", 1.0, gamma, 8) for gamma in (0.0, np.inf)],
    *[("smoothed_hinge", 0.5, gamma, k) for gamma in (0.0, np.inf) for k in (2, 3, 8)],
    *[("smoothed_hinge", 0.5, gamma, 2) for gamma in (0.05, 1.0)],
]


@pytest.mark.parametrize(("loss", "smoothing", "gamma", "k"), NOT_CONVEX + CONVEX)
def test_a_midpoint_lies_above_its_ends_exactly_where_the_loss_is_said_not_to_be_convex(loss, smoothing, gamma, k):
    is_convex = PrimalLoss(loss, gamma, smoothing).is_convex(k)
    assert is_convex == ((loss, smoothing, gamma, k) in CONVEX)
    if is_convex:
        assert rise_of_the_middle(loss, smoothing, gamma, *random_pairs(k)) <= 1e-13
    if 0 < gamma < np.inf:
        ends = pair_at_the_worst_point(k, loss, smoothing, gamma)
        low, middle, high = (exact_loss(f, 0, loss, smoothing, gamma) for f in (ends[0], sum(ends) / 2, ends[1]))
        rise = float(middle - (low + high) / 2)
        assert rise <= 1e-25 if is_convex else rise > 1e-15
