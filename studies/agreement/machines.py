"""What the estimators solve, written down once more: objectives of any solution, and an interval around the optimum.

Nothing here is taken from the library. The interval comes from a general solver: any feasible point of the dual bounds
the optimum from below, and any scores from above; both bounds are computed from the point itself, however it was found.
LIBSVM and LIBLINEAR solve what they can again, and must not end outside.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from references import optima
from references.primal import losses_of
from references.quadratic import Quadratic
from studies.agreement.problems import Problem

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
_ROUNDINGS = 4  # of every product that is summed up
_FACTORS = 40  # of w that are tried
_WITNESS_PASSES = 100_000


@dataclass(frozen=True)
class Interval:
    """The optimum lies between `lower` and `upper`, up to `rounding`, which is what float64 can tell at best.

    `witnesses` are the objectives other libraries reached, by name, and which of the two they are: primal or dual.
    """

    lower: float
    upper: float
    rounding: float
    witnesses: Mapping[str, tuple[float, str]] = field(default_factory=dict)

    @property
    def width(self) -> float:
        return max(0.0, self.upper - self.lower) / self.upper if self.upper > 0 else 0.0

    @property
    def optimum(self) -> float:
        return (self.lower + self.upper) / 2


@dataclass(frozen=True)
class Solution:
    """What a model says: scores of the examples, half the squared norm of w, and dual coefficients if it has any.

    `sizes` bounds the sums of absolute values that scores are, and so what rounding may do to them.
    """

    scores: Array
    half_squared_norm: float
    coefficients: Array | None = None
    sizes: Array | None = None


class Machine(ABC):
    """A problem with its objectives.

    `has_dual` says whether a model's coefficients are those of the dual, `is_mean` whether its w is a mean of those its
    primal is claimed for, so that its own may be lower. Only machines with a dual have `dual`, `infeasibility` (how far
    coefficients are outside of the constraints, over the largest cost) and `at_bounds` (the coefficients of examples
    that violate all their margins).
    """

    has_dual = True
    is_mean = False

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.K, self.y, self.costs = problem.K, problem.y, problem.costs
        self.is_wrong = np.arange(problem.classes) != self.y[:, None]
        self.own = (np.arange(len(self.y)), self.y)

    @cached_property
    def signs(self) -> Array:
        """1 for the examples of a class and -1 for the rest, a column for each problem of two classes."""
        has_one = self.problem.classes == 2 and self.problem.formulation != "one-vs-rest"
        return np.where(self.is_wrong[:, :1] if has_one else ~self.is_wrong, 1.0, -1.0)

    @abstractmethod
    def interval(self) -> Interval:
        """Around the optimum."""

    @abstractmethod
    def primal(self, solution: Solution) -> float:
        """The objective of a model."""

    def primal_at_zero(self) -> float:
        """Return the objective of the model that has w = 0 and no bias."""
        columns = self.signs.shape[1] if isinstance(self, Binary) else self.problem.classes
        return self.primal(Solution(np.zeros((len(self.y), columns)), 0.0))

    def rounding(self, coefficients: Array) -> float:
        """Return what rounding may do to the objectives.

        In float64 that is a part of all products of coefficients, kernel values and costs. A given matrix was rounded
        before: it may have negative eigenvalues, by which a dual objective may be above the optimum.
        """
        sizes = np.abs(coefficients)
        sums = np.abs(self.K) @ sizes
        of_products = _ROUNDINGS * EPS * ((sizes + self.costs[:, None]) * sums).sum()
        return float(of_products + self._negative_eigenvalue / 2 * (coefficients**2).sum())

    @cached_property
    def _negative_eigenvalue(self) -> float:
        if self.problem.kernel != "precomputed":
            return 0.0
        return max(0.0, -float(np.linalg.eigvalsh(self.K)[0]))

    def witnesses(self) -> dict[str, tuple[float, str]]:
        """Return what other libraries reach. They need weight in every class."""
        weights = np.bincount(self.y, self.costs, self.problem.classes)
        return self._witnesses() if (weights > 0).all() else {}

    def _witnesses(self) -> dict[str, tuple[float, str]]:
        return {}

    def half_squared_norm(self, coefficients: Array) -> float:
        return 0.5 * float((coefficients * (self.K @ coefficients)).sum())


# ---- One loss for all classes: Crammer and Singer, Weston and Watkins ----


class Joint(Machine):
    """1/2 |w|^2 + sum_i C_i loss_i, the largest or the sum of max(0, Delta(y_i, m) + s_im - s_iy) over m != y_i."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.is_sum = problem.formulation == "weston-watkins"
        self.delta = problem.delta[self.y]
        self.example, self.wrong = np.nonzero(self.is_wrong & (self.costs > 0)[:, None])

    def losses(self, scores: Array) -> Array:
        hinges = np.where(self.is_wrong, np.maximum(0, self.delta + scores - scores[self.own][:, None]), 0)
        return np.asarray(hinges.sum(axis=1) if self.is_sum else hinges.max(axis=1))

    def primal(self, solution: Solution) -> float:
        return solution.half_squared_norm + float(self.costs @ self.losses(solution.scores))

    def dual(self, coefficients: Array) -> float:
        gains = -float((self.delta * np.where(self.is_wrong, coefficients, 0)).sum())
        return gains - self.half_squared_norm(coefficients)

    def infeasibility(self, coefficients: Array) -> float:
        return float(optima.infeasibility(self.problem.formulation, coefficients, self.y, self.costs))

    def at_bounds(self) -> Array:
        each = self.costs / (1 if self.is_sum else self.problem.classes - 1)
        found = np.where(self.is_wrong, -each[:, None], 0)
        found[self.own] = -found.sum(axis=1)
        return found

    def coefficients(self, x: Array) -> Array:
        """Those of a point of the quadratic problem, which has an entry per example and wrong class."""
        beta = np.zeros(self.is_wrong.shape)
        beta[self.example, self.wrong] = -x
        beta[self.own] = -beta.sum(axis=1)
        return beta

    def interval(self) -> Interval:
        quadratic = self.quadratic()
        beta = self.coefficients(quadratic.feasible(quadratic.minimiser()[0]))
        scores, half = self.K @ beta, self.half_squared_norm(beta)
        margins = (scores[self.own][:, None] - scores)[self.is_wrong]
        factors = _factors(np.divide(self.delta[self.is_wrong], margins, out=np.ones_like(margins), where=margins > 0))
        upper = min(self.primal(Solution(t * scores, t * t * half)) for t in factors)
        return Interval(self.dual(beta), upper, self.rounding(beta), self.witnesses())

    def quadratic(self) -> Quadratic:
        """The dual, with an entry per example and wrong class; sums over an example's classes are bounded, or each."""
        directions = self.directions()
        P = self.K[np.ix_(self.example, self.example)] * (directions @ directions.T)
        d = self.delta[self.example, self.wrong]
        used = np.flatnonzero(self.costs)
        group, most = np.searchsorted(used, self.example), self.costs[used]
        if self.is_sum:
            group, most = np.arange(len(d)), self.costs[self.example]
        return Quadratic(P, d, group, most)

    def directions(self) -> Array:
        """Of each entry, what it adds to the coefficients of the classes."""
        units = np.eye(self.problem.classes)
        return np.asarray(units[self.y[self.example]] - units[self.wrong])

    def _witnesses(self) -> dict[str, tuple[float, str]]:
        plain = np.array_equal(self.problem.delta, 1 - np.eye(self.problem.classes))
        if self.is_sum or not plain or self.problem.estimator != "LinearMulticlassSVC" or self.problem.classes == 2:
            return {}
        return _liblinear(self, "crammer_singer")


def _factors(at_margin: Array) -> Array:
    """1, and the factors of w nearest to it at which some example is just at its margin."""
    near = at_margin[(at_margin > 0.5) & (at_margin < 2)]
    return np.append(near[np.argsort(np.abs(np.log(near)))][:_FACTORS], 1.0)


# ---- One binary problem per class, or a single one ----


class Binary(Machine):
    """sum over problems of 1/2 |w|^2 + sum_i C_i max(0, 1 - y_i (f_i + b)), with a free bias b or none."""

    has_bias = False

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.is_mean = self.signs.shape[1] == 2  # of both vectors, one of them with the other sign

    def primal(self, solution: Solution) -> float:
        hinges = np.maximum(0, 1 - self.signs * solution.scores)
        return solution.half_squared_norm + float((self.costs @ hinges).sum())

    def dual(self, coefficients: Array) -> float:
        return float((coefficients * self.signs).sum()) - self.half_squared_norm(coefficients)

    def at_bounds(self) -> Array:
        return self.signs * self.costs[:, None]

    def infeasibility(self, coefficients: Array) -> float:
        alpha = coefficients * self.signs
        outside = max(0, -alpha.min(), (alpha - self.costs[:, None]).max())
        unequal = np.abs(coefficients.sum(axis=0)).max() if self.has_bias else 0.0
        return float(max(outside, unequal) / self.costs.max())

    def interval(self) -> Interval:
        found = np.zeros_like(self.signs)
        upper = 0.0
        used = np.flatnonzero(self.costs)
        K, costs = self.K[np.ix_(used, used)], self.costs[used]
        for column, sign in enumerate(self.signs[used].T):
            n, equality = len(sign), sign[None] if self.has_bias else None
            quadratic = Quadratic(K * np.outer(sign, sign), np.ones(n), np.arange(n), costs, equality)
            alpha = quadratic.feasible(quadratic.minimiser()[0]) * sign
            found[used, column] = alpha
            upper += _least_primal(alpha, K, sign, costs, self.has_bias)
        return Interval(self.dual(found), upper, self.rounding(found), self.witnesses())

    def _witnesses(self) -> dict[str, tuple[float, str]]:
        if self.problem.estimator == "LinearMulticlassSVC":
            return _liblinear(self, "ovr")
        return {}


class BinaryWithBias(Binary):
    """The same with a bias: what LIBSVM solves."""

    has_bias = True

    def _witnesses(self) -> dict[str, tuple[float, str]]:
        """The sum of the dual objectives of LIBSVM, from its coefficients."""
        found = np.zeros_like(self.signs)
        for column, sign in enumerate(self.signs.T):
            machine = SVC(kernel="precomputed", C=1.0, tol=1e-8, max_iter=_WITNESS_PASSES)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                machine.fit(self.K, sign, sample_weight=self.costs)
            found[machine.support_, column] = machine.dual_coef_[0]
        return {"LIBSVM": (self.dual(found), "dual")}


def _least_primal(alpha: Array, K: Array, sign: Array, costs: Array, has_bias: bool) -> float:
    """Return the least objective of multiples of the w of `alpha`, with the best bias if the machine has a bias."""
    f = K @ alpha
    half = 0.5 * float(alpha @ f)

    def with_best_bias(t: float) -> tuple[float, float]:
        biases = sign - t * f if has_bias else np.zeros(1)
        losses = costs @ np.maximum(0, 1 - sign[:, None] * (t * f[:, None] + biases[None, :]))
        return t * t * half + float(losses.min()), float(biases[losses.argmin()])

    margins, short = sign * f, 1 - sign * with_best_bias(1.0)[1]
    factors = _factors(np.divide(short, margins, out=np.ones_like(margins), where=margins != 0))
    return min(with_best_bias(t)[0] for t in factors)


def _liblinear(machine: Machine, multi_class: str) -> dict[str, tuple[float, str]]:
    """The primal objective that LIBLINEAR reaches where it ends in time."""
    problem = machine.problem
    scaling = problem.parameters["intercept_scaling"] if problem.parameters["fit_intercept"] else 0.0
    other = LinearSVC(
        loss="hinge", dual=True, multi_class=multi_class, tol=1e-8, max_iter=_WITNESS_PASSES // len(machine.y),
        fit_intercept=bool(scaling), intercept_scaling=scaling or 1.0, random_state=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.fit(problem.X, problem.y, sample_weight=machine.costs)
    primal = machine.primal(linear_solution(other.coef_, other.intercept_, problem))
    return {"LIBLINEAR": (primal, "primal")}


# ---- Smooth losses, with free biases ----


def _smooth_losses(problem: Problem, scores: Array) -> tuple[Array, Array]:
    """Return the loss of each example and its gradient in the scores."""
    given = problem.parameters
    values, gradients = losses_of(scores, problem.y, given["loss"], 1.0, given["softmax_gamma"])
    return np.asarray(values), np.asarray(gradients)


class Rounded(Joint):
    """1/2 |w|^2 + sum_i C_i loss_i with the squared or the smoothed hinge, free biases or none.

    The dual has a quadratic term more for what bends the loss: bend/2 (sum of entries)^2 / C_i, over the entries that
    share a loss. The bound of the squared hinge is one that no optimum comes to.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        given = problem.parameters
        self.is_sum = given["softmax_gamma"] == 0
        self.is_squared, self.has_bias = given["loss"] == "squared_hinge", given["fit_intercept"]

    def losses(self, scores: Array) -> Array:
        return np.asarray(_smooth_losses(self.problem, scores)[0])

    def interval(self) -> Interval:
        quadratic = self.quadratic()
        x, biases = quadratic.minimiser()
        x = quadratic.feasible(x)
        beta = self.coefficients(x)
        scores = self.K @ beta
        shift = np.append(biases, 0.0) if self.has_bias else np.zeros(self.problem.classes)
        upper = self.primal(Solution(scores + shift, self.half_squared_norm(beta)))
        lower = float(quadratic.d @ x - 0.5 * x @ quadratic.P @ x)
        if quadratic.A is not None:
            lower -= float(np.abs(quadratic.A @ x) @ (1 + np.abs(biases)))  # if the biases are right up to their size
        return Interval(lower, upper, self.rounding(beta))

    def quadratic(self) -> Quadratic:
        plain = super().quadratic()
        bend = 0.5 if self.is_squared else 1.0
        shared = plain.group[:, None] == plain.group
        P = plain.P + np.where(shared, bend / self.costs[self.example][:, None], 0)
        most = plain.most
        if self.is_squared:
            at_zero = float(self.costs.sum()) * (self.problem.classes - 1)
            most = 4 * np.sqrt(at_zero * most)
        A = self.directions()[:, :-1].T if self.has_bias else None
        return Quadratic(P, plain.d, plain.group, most, A)


class Logistic(Machine):
    """1/2 |W|^2 + sum_i C_i loss_i with the logistic loss, summed over the wrong classes or multinomial."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.has_bias = problem.parameters["fit_intercept"]

    def primal(self, solution: Solution) -> float:
        return solution.half_squared_norm + float(self.costs @ _smooth_losses(self.problem, solution.scores)[0])

    def _hessians(self, scores: Array) -> Array:
        """Return the second derivatives of each example's loss in its scores."""
        units = np.eye(self.problem.classes)
        if self.problem.parameters["softmax_gamma"] == 1:
            p = softmax(scores, axis=1)
            return np.asarray(np.einsum("im,mu->imu", p, units) - np.einsum("im,iu->imu", p, p))
        margins = scores[self.own][:, None] - scores
        directions = units - units[self.y][:, None]  # by example and class, in the scores
        return np.einsum("iu,ium,iuv->imv", expit(margins) * expit(-margins), directions, directions)

    def interval(self) -> Interval:
        """By Newton's method on features whose products are the kernel values.

        The objective is strongly convex in W, so that W with the gradient G is 1/2 |G|^2 from the optimum at most, but
        for what the gradient in the biases allows; there the biases are taken to be right up to their own size.
        Features that are too small for float64 are omitted: what they may lower the optimum by counts as rounding.
        """
        features, omitted = _features(self.K)
        r = features.shape[1]
        rows = np.hstack([features, np.ones((len(features), 1))]) if self.has_bias else features
        is_weight = (np.arange(rows.shape[1]) < r).astype(float)[:, None]
        V = np.zeros((rows.shape[1], self.problem.classes))
        value, gradient, hessian = self._at(rows, is_weight, V)
        for _ in range(200):
            step = -np.linalg.lstsq(hessian, gradient.ravel(), rcond=1e-15)[0].reshape(V.shape)
            slope, length = float((gradient * step).sum()), 1.0
            while length > 1e-10 and self._value(rows, is_weight, V + length * step) > value + 1e-4 * length * slope:
                length /= 2
            if length <= 1e-10 or slope > -1e-16 * value:
                break
            V = V + length * step
            value, gradient, hessian = self._at(rows, is_weight, V)
        below = 0.5 * float((gradient[:r] ** 2).sum()) + float((np.abs(gradient[r:]) * (1 + np.abs(V[r:]))).sum())
        costs, sizes = self.costs[:, None], np.abs(rows) @ np.abs(V)
        rounding = _ROUNDINGS * EPS * (value + float((costs * sizes).sum()))
        rounding += 0.5 * omitted * float(((costs * _smooth_losses(self.problem, rows @ V)[1]) ** 2).sum())
        return Interval(value - below, value, rounding)

    def _value(self, rows: Array, is_weight: Array, V: Array) -> float:
        return self.primal(Solution(rows @ V, 0.5 * float((is_weight * V**2).sum())))

    def _at(self, rows: Array, is_weight: Array, V: Array) -> tuple[float, Array, Array]:
        gradients, hessians = _smooth_losses(self.problem, rows @ V)[1], self._hessians(rows @ V)
        width, k = V.shape
        hessian = np.zeros((width, k, width, k))
        for m in range(k):
            for u in range(k):
                hessian[:, m, :, u] = rows.T @ ((self.costs * hessians[:, m, u])[:, None] * rows)
            hessian[np.arange(width), m, np.arange(width), m] += is_weight[:, 0]
        gradient = is_weight * V + rows.T @ (self.costs[:, None] * gradients)
        return self._value(rows, is_weight, V), gradient, hessian.reshape(width * k, width * k)


def _features(K: Array) -> tuple[Array, float]:
    """Return F with F F' = K up to a matrix that has no larger eigenvalue than the second value."""
    values, vectors = np.linalg.eigh(K)
    omitted = 4 * len(K) * EPS * float(values[-1])
    keep = values > omitted
    return np.asarray(vectors[:, keep] * np.sqrt(values[keep])), omitted


class Hulls(Machine):
    """1/2 |X_P - X_N|^2, summed over the problems: points of the convex hulls of a class and of the rest."""

    has_dual = False

    def primal(self, solution: Solution) -> float:
        """The decision function f has f = 1 and -1 at the points: its w is 2 (X_P - X_N) / |X_P - X_N|^2."""
        squared = np.einsum("ip,ij,jp->p", solution.coefficients, self.K, solution.coefficients)
        return float(np.divide(2, squared, out=np.zeros_like(squared), where=squared > 0).sum())

    def primal_at_zero(self) -> float:
        """Return infinity: w = 0 keeps no margin."""
        return np.inf

    def interval(self) -> Interval:
        """The sum of all shares is 2 where that pays: where each brings more than half the squared distance.

        That is below the one of the means.
        """
        n, lower, upper, rounding = len(self.y), 0.0, 0.0, 0.0
        for sign in self.signs.T:
            means = np.where(sign > 0, 1 / (sign > 0).sum(), -1 / (sign < 0).sum())
            worth = np.full(n, float(means @ self.K @ means))
            all_of_it = np.zeros(n, np.int64), np.array([2.0])
            quadratic = Quadratic(self.K * np.outer(sign, sign), worth, *all_of_it, sign[None])
            share = np.maximum(quadratic.minimiser()[0], 0)
            share = share if share.any() else np.abs(means)  # all examples are at one place
            signed = sign * share / np.where(sign > 0, share[sign > 0].sum(), share[sign < 0].sum())
            f = self.K @ signed
            squared = max(float(signed @ f), 0.0)
            upper += squared / 2
            gap = f[sign > 0].min() - f[sign < 0].max()
            lower += 0.5 * max(gap, 0.0) ** 2 / squared if squared > 0 else 0.0
            rounding += _ROUNDINGS * EPS * float(np.abs(signed) @ np.abs(self.K) @ np.abs(signed))
        return Interval(lower, upper, rounding)


MACHINES: dict[str, type[Machine]] = {
    "crammer-singer": Joint,
    "weston-watkins": Joint,
    "one-vs-rest": Binary,
    "binary": Binary,
    "binary-bias": BinaryWithBias,
    "log_loss": Logistic,
    "squared_hinge": Rounded,
    "smoothed_hinge": Rounded,
    "hulls": Hulls,
}
"""By formulation."""


# ---- What a model says ----


def solution_of(model: Any, machine: Machine) -> Solution:
    """Return what the published weights, coefficients and biases of a fitted model say, computed in float64."""
    problem = machine.problem
    if problem.estimator == "StructuredSVC":
        return _of_weights(_rows(problem), model.coef_.reshape(problem.classes, -1))
    if problem.estimator == "LinearMulticlassSVC":
        found = linear_solution(model.coef_, model.intercept_, problem)
        # Examples without features are never visited, and count as if they were at their bounds.
        is_empty = problem.K.diagonal() == 0
        coefficients = np.where(is_empty[:, None], machine.at_bounds(), model.dual_coef_.toarray())
        return replace(found, coefficients=coefficients)
    if problem.kernel == "linear" and hasattr(model, "coef_"):
        return _linear_machine(model, machine)
    if problem.estimator == "PrimalMulticlassSVC":
        share, scores = 0.25 if problem.classes == 2 else 0.5, _scores(model, problem)
        sizes = np.abs(scores) * (np.finfo(problem.dtype).eps / EPS)  # decision values have the precision of X
        return Solution(scores, share * float((model.coef_**2).sum()), None, sizes)
    coefficients, factor = _expansion(model, problem), getattr(model, "scale_", 1.0)
    scores, sizes = factor * problem.K @ coefficients, factor * _sizes(problem.K) @ np.abs(coefficients)
    if problem.formulation in ("binary-bias", "hulls"):
        scores, sizes = scores + model.intercept_, sizes + np.abs(model.intercept_)
    return Solution(scores, factor**2 * machine.half_squared_norm(coefficients), coefficients, sizes)


def _linear_machine(model: Any, machine: Machine) -> Solution:
    """Of weights for the features and a bias; the weights may be an average, which has no coefficients."""
    problem, rows = machine.problem, _rows(machine.problem)
    W = np.asarray(model.coef_, np.float64)
    bias = np.broadcast_to(np.reshape(getattr(model, "intercept_", 0.0), (-1, 1)), (len(W), 1)).astype(np.float64)
    is_joint = problem.formulation not in ("binary", "binary-bias", "hulls")
    if is_joint and len(W) == 1:
        W, bias = (np.vstack([-half, half]) for half in (W / 2, bias / 2))
    found = _of_weights(np.hstack([rows, np.ones((len(rows), 1))]), np.hstack([W, bias]))
    has_free_bias = problem.estimator == "PrimalMulticlassSVC" or problem.formulation in ("binary-bias", "hulls")
    is_regularised = problem.parameters.get("fit_intercept", True) and not has_free_bias
    half = 0.5 * float((W**2).sum() + is_regularised * (bias**2).sum())
    is_average = problem.parameters.get("tol") is None and problem.estimator == "LaRankClassifier"
    has_coefficients = hasattr(model, "dual_coef_") and not is_average
    coefficients = _expansion(model, problem) if has_coefficients else None
    return replace(found, half_squared_norm=half, coefficients=coefficients)


def _expansion(model: Any, problem: Problem) -> Array:
    """Return a row of dual coefficients for every example."""
    of_support = model.dual_coef_.T if problem.estimator == "LaSVMClassifier" else model.dual_coef_.toarray()
    coefficients = np.zeros((len(problem.y), of_support.shape[1]))
    coefficients[model.support_] = of_support
    return coefficients


def _sizes(K: Array) -> Array:
    """Return bounds of all kernel values, by the Cauchy-Schwarz inequality."""
    lengths = np.sqrt(np.abs(K.diagonal()))
    return np.asarray(np.maximum(np.outer(lengths, lengths), np.abs(K)))


def _rows(problem: Problem) -> Array:
    rows = problem.X.toarray() if hasattr(problem.X, "toarray") else problem.X
    return np.asarray(rows, np.float64)


def _of_weights(rows: Array, W: Array) -> Solution:
    W = np.asarray(W, np.float64)
    return Solution(rows @ W.T, 0.5 * float((W**2).sum()), None, np.abs(rows) @ np.abs(W.T))


def _scores(model: Any, problem: Problem) -> Array:
    """Return decision values: one column per class, or the second class against the first, shared out evenly."""
    decisions = np.asarray(model.decision_function(problem.X), dtype=np.float64)
    if decisions.ndim == 2:
        return decisions
    if problem.formulation in ("binary", "binary-bias", "hulls"):
        return decisions[:, None]
    return np.column_stack([-decisions / 2, decisions / 2])


def linear_solution(coef: Array, intercept: Array, problem: Problem) -> Solution:
    """Return the solution of weights in the shape that scikit-learn gives them: one row for two classes."""
    scaling = problem.parameters["intercept_scaling"] if problem.parameters["fit_intercept"] else 0.0
    bias = np.reshape(intercept, (-1, 1)).astype(np.float64)
    W = np.hstack([coef, bias / scaling]) if scaling else coef
    rows = _rows(problem)
    rows = np.hstack([rows, np.full((len(rows), 1), scaling)]) if scaling else rows
    if len(W) == 1:
        W = np.vstack([-W, W]) * (1.0 if problem.formulation == "one-vs-rest" else 0.5)
    return _of_weights(rows, W)
