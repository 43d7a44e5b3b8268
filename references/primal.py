"""The primal multiclass SVM spelled out: [primal] (1.1) with every loss, aggregation and label kernel.

Losses of single examples are computed with sixty decimal digits and as they are printed, for what is tested is where
double precision could go wrong. Objectives of whole problems are in NumPy, for general minimisers.
"""

from decimal import Decimal, localcontext

import numpy as np
from scipy.optimize import minimize

from references import optima
from references.gradients import margin_loss

DIGITS = 60
LOSSES = (("log_loss", 1.0), ("squared_hinge", 1.0), ("smoothed_hinge", 1.0), ("smoothed_hinge", 0.1))


def with_digits(function):
    def wrapped(*arguments):
        with localcontext() as context:
            context.prec = DIGITS
            return function(*arguments)

    return wrapped


def _expm1(x):
    """exp(x) - 1; where the difference would leave no digits, the first terms of the series, which have them all."""
    if abs(x) < Decimal("1e-20"):
        return x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4)))
    return x.exp() - 1


def _log1p(x):
    if abs(x) < Decimal("1e-20"):
        return x * (1 - x * (Decimal(1) / 2 - x * (Decimal(1) / 3 - x / 4)))
    return (1 + x).ln()


def exact_margin_loss(loss, s, smoothing):
    """Value and slope at the margin s."""
    if loss == "log_loss":  # log(1 + exp(-s))
        if s >= 0:
            return _log1p((-s).exp()), -(-s).exp() / (1 + (-s).exp())
        return _log1p(s.exp()) - s, -1 / (1 + s.exp())
    short = max(Decimal(0), 1 - s)
    if loss == "squared_hinge":
        return short * short, -2 * short
    width = Decimal(smoothing)
    if short >= width:
        return short - width / 2, Decimal(-1)
    return short * short / (2 * width), -short / width


def exact_aggregation(t, g):
    """[primal] (1.4) and its derivatives; "sum", "max" and ("lse", g) are what it is between, and a smooth maximum."""
    if g == "sum":
        return sum(t), [Decimal(1)] * len(t)
    top = max(t)
    if g == "max":
        return top, None
    kind, g = g if isinstance(g, tuple) else ("smax", g)
    g = Decimal(g)
    shifted = [(g * (u - top)).exp() for u in t]
    if kind == "lse":
        return top + sum(shifted).ln() / g, [e / sum(shifted) for e in shifted]
    if g * top < 100:  # nothing overflows, and the constant is dealt out: sixty digits do not hold what is left of it
        excess = sum(_expm1(g * u) for u in t)
        return _log1p(excess) / g, [(g * u).exp() / (1 + excess) for u in t]
    total = (1 - len(t)) * (-g * top).exp() + sum(shifted)
    return top + total.ln() / g, [e / total for e in shifted]


def aggregation_of(softmax_gamma):
    return {0.0: "sum", np.inf: "max"}.get(softmax_gamma, softmax_gamma)


@with_digits
def exact_loss(scores, label, loss, smoothing, aggregation):
    """The loss of one example, as a Decimal."""
    return _exact_loss([Decimal(f) for f in np.asarray(scores, float).tolist()], label, loss, smoothing, aggregation)


def _exact_loss(f, label, loss, smoothing, aggregation):
    t = [exact_margin_loss(loss, f[label] - f[u], smoothing)[0] for u in range(len(f)) if u != label]
    return exact_aggregation(t, aggregation)[0]


@with_digits
def exact_gradient(scores, label, loss, smoothing, aggregation):
    """Its gradient in the scores, [primal] (1.5), (1.6)."""
    f = [Decimal(float(score)) for score in scores]
    wrong = [u for u in range(len(f)) if u != label]
    each = [exact_margin_loss(loss, f[label] - f[u], smoothing) for u in wrong]
    _, pi = exact_aggregation([t for t, _ in each], aggregation)
    gradient = np.zeros(len(f))
    total = Decimal(0)
    for u, share, (_, slope) in zip(wrong, pi, each, strict=True):
        gradient[u] = float(-share * slope)
        total += share * slope
    gradient[label] = float(total)
    return gradient


class ExactProblem:
    """The objective along directions: scores F + e Z with a number e of many digits, so that differences are exact."""

    STEP = Decimal("1e-15")  # the error of a central difference is its square, of a second one with sixty digits less

    def __init__(self, labels, costs, loss, smoothing, aggregation):
        self.labels, self.costs = labels, costs
        self.kind = (loss, smoothing, aggregation)

    def _losses(self, F, Z=None, first=0, second=0):
        total = Decimal(0)
        for i, label in enumerate(self.labels):
            if self.costs[i] == 0:
                continue
            f = [Decimal(value) for value in F[i].tolist()]
            if Z is not None:
                f = [a + first * Decimal(b) + second * Decimal(c) for a, b, c in zip(f, *Z(i), strict=True)]
            total += Decimal(float(self.costs[i])) * _exact_loss(f, label, *self.kind)
        return total

    @with_digits
    def losses(self, F):
        return float(self._losses(F))

    @with_digits
    def slope(self, F, A):
        """The derivative along A, by a central difference."""

        def along(i):
            return A[i].tolist(), [0.0] * A.shape[1]

        h = self.STEP
        return float((self._losses(F, along, h) - self._losses(F, along, -h)) / (2 * h))

    @with_digits
    def curvature(self, F, A, B):
        """The second derivative along A and B, by a central difference of central differences."""

        def along(i):
            return A[i].tolist(), B[i].tolist()

        h = self.STEP
        corners = sum(a * b * self._losses(F, along, a * h, b * h) for a in (1, -1) for b in (1, -1))
        return float(corners / (4 * h * h))


def root_of(label_kernel):
    """L with K = L L', without what is zero."""
    values, vectors = np.linalg.eigh(label_kernel)
    keep = values > 1e-12 * values.max()
    return vectors[:, keep] * np.sqrt(values[keep])


# ---- Whole problems, in double precision ----


def losses_of(F, labels, loss, smoothing, softmax_gamma):
    """The loss of each example and its gradient in the scores; that of the maximum is one of its slopes."""
    n, k = F.shape
    wrong = np.arange(k) != np.asarray(labels)[:, None]
    s = (F[np.arange(n), labels][:, None] - F)[wrong].reshape(n, k - 1)
    t, slopes = margin_loss(loss, s, smoothing)
    top = t.max(axis=1, keepdims=True)
    if softmax_gamma == 0:
        values, pi = t.sum(axis=1), np.ones_like(t)
    elif np.isinf(softmax_gamma):
        values, pi = top[:, 0], np.eye(k - 1)[t.argmax(axis=1)]
    else:
        shifted = np.exp(softmax_gamma * (t - top))
        total = (2 - k) * np.exp(-softmax_gamma * top) + shifted.sum(axis=1, keepdims=True)
        values, pi = top[:, 0] + np.log(total[:, 0]) / softmax_gamma, shifted / total
    G = np.zeros_like(F)
    G[wrong] = (-pi * slopes).ravel()
    G[np.arange(n), labels] = -G.sum(axis=1)
    return values, G


def loss_of(model):
    """The name of the loss of a model, and the width that it has if it is a smoothed hinge."""
    return ("smoothed_hinge", model.loss.width) if hasattr(model.loss, "width") else (model.loss, 1.0)


def objective_of(model, X, labels, costs, label_kernel=None):
    """[primal] (1.1) at the weights of a fitted model, whose W must be in the span of the label kernel."""
    V, b = model.coef_.astype(float), model.intercept_.astype(float)
    if len(model.classes_) == 2:
        V, b = np.vstack([-V / 2, V / 2]), np.array([-b[0] / 2, b[0] / 2])
    F = np.asarray(X @ V.T) + b
    inverse = np.eye(len(V)) if label_kernel is None else np.linalg.pinv(label_kernel, hermitian=True)
    values, _ = losses_of(F, labels, *loss_of(model), float(model.softmax_gamma))
    return 0.5 * np.trace(V.T @ inverse @ V) + costs @ values


def minimum(X, labels, costs, loss, smoothing, softmax_gamma, *, label_kernel=None, intercept=True):
    """The minimum of a smooth problem by a general minimiser, and the scores of X there."""
    X, k = np.asarray(X, float), int(np.max(labels)) + 1
    L = np.eye(k) if label_kernel is None else root_of(np.asarray(label_kernel, float))
    d, r = X.shape[1], L.shape[1]

    def scores(w):
        b = w[d * r :] if intercept else 0.0
        return X @ w[: d * r].reshape(d, r) @ L.T + b

    def objective(w):
        values, G = losses_of(scores(w), labels, loss, smoothing, softmax_gamma)
        G = costs[:, None] * G
        by_bias = G.sum(axis=0) if intercept else np.zeros(0)
        gradient = np.concatenate([w[: d * r] + (X.T @ G @ L).ravel(), by_bias])
        return 0.5 * w[: d * r] @ w[: d * r] + costs @ values, gradient

    # The objective is strongly convex in the weights: what is left of it is of the order of the square of the gradient.
    options = {"maxiter": 20_000, "maxfun": 20_000, "ftol": 1e-16, "gtol": 1e-7, "maxcor": 50}
    found = minimize(objective, np.zeros(d * r + intercept * k), jac=True, method="L-BFGS-B", options=options)
    return found.fun, scores(found.x)


def hinge_minimum(formulation, X, labels, costs, n_classes):
    """A lower bound of the minimum of [primal] (1.7) with free biases, from a general QP solver."""
    return optima.optimum(formulation, X, labels, costs, n_classes, free_biases=True)[1]
