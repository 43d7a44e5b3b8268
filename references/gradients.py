"""Mean losses of linear models and the stochastic gradient descent of [thesis] chapter 3, spelled out in NumPy.

W has a row per feature and a column per function. Two classes have one function.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

LOSSES = ("hinge", "squared_hinge", "smoothed_hinge", "log_loss", "modified_huber")


def margin_loss(loss, z, smoothing=1.0):
    """Value and derivative of a loss of margins z; `smoothing` is the width of the bend of "smoothed_hinge"."""
    z = np.asarray(z, float)
    short = np.maximum(0, 1 - z)
    if loss == "hinge":
        return short, -(z < 1).astype(float)
    if loss == "squared_hinge":
        return short**2, -2 * short
    if loss == "smoothed_hinge":
        bent = np.where(short < smoothing, short**2 / (2 * smoothing), short - smoothing / 2)
        return bent, -np.minimum(1, short / smoothing)
    if loss == "modified_huber":
        return np.where(z < -1, -4 * z, short**2), -np.minimum(2 * short, 4)
    return np.logaddexp(0, -z), -expit(-z)


def scores_loss(loss, joint, scores, label, cost=1.0):
    """Value and gradient of the loss of one example, by its scores; one-versus-rest, costs may be per class."""
    k = len(scores)
    if joint and loss == "log_loss":
        return cost * logsumexp(scores - scores[label]), cost * (softmax(scores) - np.eye(k)[label])
    if joint:
        other = max((m for m in range(k) if m != label), key=lambda m: scores[m])
        value, slope = margin_loss(loss, scores[label] - scores[other])
        return cost * value, cost * slope * (np.eye(k)[label] - np.eye(k)[other])
    signs = np.where(np.arange(k) == (label - 1 if k == 1 else label), 1.0, -1.0)
    values, slopes = margin_loss(loss, signs * scores)
    return (cost * values).sum(), cost * signs * slopes


def mean_loss_primal(loss, joint, alpha, W, X, labels, costs=None):
    """``alpha/2 |W|^2`` plus the mean loss, and its gradient."""
    costs = np.ones(len(X)) if costs is None else costs
    each = [scores_loss(loss, joint, s, label, cost) for s, label, cost in zip(X @ W, labels, costs, strict=True)]
    values, slopes = np.array([v for v, _ in each]), np.array([g for _, g in each])
    primal = alpha / 2 * (W**2).sum() + values.sum() / len(X)
    return primal, alpha * W + X.T @ slopes / len(X)


def mean_loss_optimum(loss, joint, alpha, X, labels, costs=None, functions=1):
    """The minimum of a smooth one, by L-BFGS, and W there."""

    def objective(w):
        primal, gradient = mean_loss_primal(loss, joint, alpha, w.reshape(shape), X, labels, costs)
        return primal, gradient.ravel()

    shape = (X.shape[1], functions)
    options = {"maxiter": 10_000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-10}
    found = minimize(objective, np.zeros(X.shape[1] * functions), jac=True, method="L-BFGS-B", options=options)
    return found.fun, found.x.reshape(shape)


class Descent:
    """The algorithms of [thesis] chapter 3 and averaged SGD as they are printed: dense, one example at a time.

    Each is a generator of the weights after every visit to the examples, which come in their order.
    """

    def __init__(self, loss, joint, functions, alpha, t0, X, labels, costs=None):
        self.loss, self.joint, self.functions = loss, joint, functions
        self.alpha, self.t0 = alpha, t0
        self.X, self.labels = X, labels
        self.costs = np.ones(len(X)) if costs is None else costs

    def slopes(self, t, w):
        """The derivatives of the loss of example t by the scores of all functions."""
        return self.costs[t] * scores_loss(self.loss, self.joint, self.X[t] @ w, self.labels[t])[1]

    def pattern_gradient(self, t, w):
        return np.outer(self.X[t], self.slopes(t, w))

    def gradient(self, t, w):
        """g_t(w), [thesis] (3.2)."""
        return self.alpha * w + self.pattern_gradient(t, w)

    def visits(self):
        return range(len(self.X))

    @property
    def start(self):
        return np.zeros((self.X.shape[1], self.functions))

    def sgd(self, w=None):
        """Algorithm 7, left: line 3 has both terms at w_t."""
        w = self.start if w is None else w
        for t in self.visits():
            w = w - self.gradient(t, w) / (self.alpha * (t + self.t0))
            yield w

    def svmsgd2(self, skip, w=None):
        """Algorithm 7, right: the pattern first, then, every `skip` visits, the regularisation of the new w."""
        w, count = self.start if w is None else w, skip
        for t in self.visits():
            w = w - self.pattern_gradient(t, w) / (self.alpha * (t + self.t0))
            count -= 1
            if count == 0:
                w = w - skip / (t + self.t0) * w
                count = skip
            yield w

    def sgdqn(self, skip):
        """Algorithm 8, right; yields w and B.

        Where the ratio is 0/0, and where a joint loss bends downwards along a function, it is that of the
        regularisation alone. Of a mean, no more than all of it is replaced.
        """
        w, count, update_B, r = self.start, skip, False, self.t0 / skip
        B = np.full_like(w, 1 / self.alpha)
        for t in self.visits():
            before = w
            w = before - B * self.pattern_gradient(t, before) / (t + self.t0)
            if update_B:
                change, p = w - before, self.gradient(t, w) - self.gradient(t, before)
                curvature = np.divide(p, change, out=np.full_like(p, self.alpha), where=change != 0)
                B = B + min(1, 2 / r) * (1 / np.maximum(curvature, self.alpha) - B)
                B = np.maximum(B, 1e-2 / self.alpha)
                r, update_B = r + 1, False
            count -= 1
            if count == 0:
                w = w - skip / (t + self.t0) * self.alpha * B * w
                count, update_B = skip, True
            yield w, B

    def olbfgs(self, rank=10, cooling=1e4):
        """Section 3.2.1, with the inverse Hessian as a matrix, made from all pairs anew at each visit.

        Pairs are those of examples whose loss bends. The rate is t0's share of the steps of Newton, which fall slowly.
        """
        w, pairs = self.start, []
        for t in self.visits():
            g, slopes = self.gradient(t, w), self.slopes(t, w)
            size = w.size
            first = 1 / (self.alpha + self.costs[t] * self.X[t] @ self.X[t])
            H = np.eye(size) * (np.mean([s @ y / (y @ y) for s, y in pairs]) if pairs else first)
            for s, y in pairs:
                left = np.eye(size) - np.outer(s, y) / (s @ y)
                H = left @ H @ left.T + np.outer(s, s) / (s @ y)
            after = w - (H @ g.ravel()).reshape(w.shape) / (self.t0 * (1 + t / cooling))
            s, y = (after - w).ravel(), (self.gradient(t, after) - g).ravel()
            if s @ y > 0 and (self.slopes(t, after) != slopes).any():
                pairs = [*pairs, (s, y)][-rank:]
            w = after
            yield w

    def asgd(self, skip, scaling=1.0, held=16):
        """Averaged SGD; yields w and the average. The rate is computed anew every `held` visits."""
        w, average, count = self.start, self.start, skip
        D = np.broadcast_to(scaling, len(w))[:, None]
        for t in self.visits():
            rate = (1 + (t - t % held) / self.t0) ** -0.75 / (self.alpha * self.t0)
            w = w - rate * D * self.pattern_gradient(t, w)
            count -= 1
            if count == 0:
                w = w / (1 + skip * rate * self.alpha * D)
                count = skip
            average = average + 4 / (t + 5) * (w - average)
            yield w, average
