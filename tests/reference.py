"""What solvers are tested against: a general QP solver, and the formulations spelled out in NumPy.

Nothing here knows how the core works. Scores are ``X @ W.T`` with an intercept as a last column of `X`.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

FORMULATIONS = ("crammer-singer", "weston-watkins", "one-vs-rest")


@threadpool_limits.wrap(limits=1)
def interior_point(P, q, G, h, accuracy=1e-9):
    """Minimise 1/2 x'Px + q'x subject to Gx <= h: Mehrotra's predictor-corrector method.

    Returns the minimiser and a lower bound of the minimum, from the multipliers.
    """
    x, s, z = np.zeros(len(q)), np.ones(len(h)), np.ones(len(h))
    for iteration in range(150):
        dual_residual, primal_residual = P @ x + q + G.T @ z, G @ x + s - h
        value = 0.5 * x @ P @ x + q @ x
        errors = s @ z / abs(value or 1), np.abs(dual_residual).max() / np.abs(q).max(), np.abs(primal_residual).max()
        if max(errors) <= accuracy:
            return x, value - s @ z
        system = np.block([[P, G.T], [G, -np.diag(s / z)]])

        def newton(target, system=system, rd=dual_residual, rp=primal_residual, s=s, z=z):
            both = np.linalg.solve(system, np.concatenate([-rd, -rp - (target - s * z) / z]))
            dx, dz = both[: len(q)], both[len(q) :]
            return dx, (target - s * z - s * dz) / z, dz

        mu = s @ z / len(h)
        _, ds, dz = newton(0.0)
        step = longest_step(s, ds, z, dz)
        sigma = max(0.0, (s + step * ds) @ (z + step * dz) / len(h) / mu) ** 3
        # After a short predictor step its correction is worth nothing, and can make the iterates cycle.
        corrected = step > 0.3 and iteration < 40
        dx, ds, dz = newton(sigma * mu - ds * dz if corrected else 0.5 * mu)
        step = min(1.0, 0.99 * longest_step(s, ds, z, dz))
        x, s, z = x + step * dx, s + step * ds, z + step * dz
    raise ArithmeticError("the reference solver did not converge")


def longest_step(s, ds, z, dz):
    steps = [1.0]
    for value, change in ((s, ds), (z, dz)):
        falling = change < 0
        steps.append((-value[falling] / change[falling]).min(initial=1.0))
    return min(steps)


def constraints(formulation, n_classes, label):
    """Margin requirements of one example: sum(signs * scores) >= 1 - slack, as (signs, slack number)."""
    unit = np.eye(n_classes)
    if formulation == "one-vs-rest":
        return [(unit[m] if m == label else -unit[m], m) for m in range(n_classes)]
    others = [m for m in range(n_classes) if m != label]
    shared = formulation == "crammer-singer"
    return [(unit[label] - unit[m], 0 if shared else m) for m in others]


def one_vs_rest_costs(costs, rest_costs, labels, n_classes):
    """The cost of each example in the problem of each class, as the functions below take them, too."""
    is_label = np.arange(n_classes) == labels[:, None]
    return np.where(is_label, costs[:, None], rest_costs[:, None])


def optimum(formulation, X, labels, costs, n_classes):
    """W and a lower bound of the primal's minimum: problems (1), (14) and k binary ones, with explicit slacks."""
    costs = costs if costs.ndim == 2 else np.repeat(costs[:, None], n_classes, axis=1)
    features = X.shape[1]
    weights = n_classes * features
    slacks, rows = {}, []
    for i in np.flatnonzero(costs.any(axis=1)):
        x, label = X[i], labels[i]
        for signs, slack in constraints(formulation, n_classes, label):
            if costs[i, slack] == 0:
                continue
            rows.append((np.kron(signs, x), slacks.setdefault((i, slack), len(slacks))))
    n = weights + len(slacks)
    P, q = np.zeros((n, n)), np.zeros(n)
    P[np.diag_indices(weights)] = 1
    for (i, m), slack in slacks.items():
        q[weights + slack] = costs[i, m]
    G, h = np.zeros((len(rows) + len(slacks), n)), np.zeros(len(rows) + len(slacks))
    for r, (margin, slack) in enumerate(rows):
        G[r, :weights], G[r, weights + slack], h[r] = -margin, -1, -1
    G[len(rows) :, weights:] = -np.eye(len(slacks))
    x, bound = interior_point(P, q, G, h)
    return x[:weights].reshape(n_classes, features), bound


def one_vs_rest_losses(scores, labels):
    """The loss of each example in the problem of each class."""
    is_label = np.arange(scores.shape[1]) == labels[:, None]
    return np.maximum(1 - np.where(is_label, scores, -scores), 0)


def losses(formulation, scores, labels):
    """The loss of each example."""
    if formulation == "one-vs-rest":
        return one_vs_rest_losses(scores, labels).sum(axis=1)
    own = scores[np.arange(len(labels)), labels]
    is_label = np.arange(scores.shape[1]) == labels[:, None]
    hinges = np.where(is_label, 0, np.maximum(1 + scores - own[:, None], 0))
    return hinges.max(axis=1) if formulation == "crammer-singer" else hinges.sum(axis=1)


def primal(formulation, W, X, labels, costs):
    """The primal objective."""
    scores = np.asarray(X @ W.T)
    if costs.ndim == 2:
        return 0.5 * (W**2).sum() + (costs * one_vs_rest_losses(scores, labels)).sum()
    return 0.5 * (W**2).sum() + costs @ losses(formulation, scores, labels)


def dual(formulation, a, X, labels):
    """The dual objective of coefficients `a` with W = a.T @ X."""
    W = a.T @ X
    own = a[np.arange(len(labels)), labels]
    gain = np.abs(a).sum() if formulation == "one-vs-rest" else own.sum()
    return gain - 0.5 * (W**2).sum()


def infeasibility(formulation, a, labels, costs):
    """How far `a` is outside the constraints of the dual, relative to the costs."""
    is_label = np.arange(a.shape[1]) == labels[:, None]
    C = costs if costs.ndim == 2 else costs[:, None]
    if formulation == "one-vs-rest":
        signed = np.where(is_label, a, -a)
        excess = np.maximum(-signed, signed - C)
    elif formulation == "crammer-singer":
        excess = a - np.where(is_label, C, 0)
    else:
        excess = np.where(is_label, -np.inf, np.maximum(a, -C - a))
    if formulation != "one-vs-rest":
        excess = np.hstack([excess, np.abs(a.sum(axis=1, keepdims=True))])
    return max(0.0, (excess / costs.max()).max())


def with_constant(X, value):
    """`X` with a constant last column, or as it is where the value is 0."""
    return X if value == 0 else np.hstack([X, np.full((len(X), 1), value)])


def kernel_optimum(K, labels, costs, delta, formulation="crammer-singer"):
    """The maximum of the kernel dual with margins `delta`, [larank] (4) or that of [sdm] (14).

    There is a variable per example and wrong class. Crammer-Singer bounds their sum, Weston-Watkins each of them.
    """
    n_classes = len(delta)
    pairs = [(i, m) for i in np.flatnonzero(costs) for m in range(n_classes) if m != labels[i]]
    directions = np.array([np.eye(n_classes)[labels[i]] - np.eye(n_classes)[m] for i, m in pairs])
    examples = np.array([i for i, _ in pairs])
    P = K[np.ix_(examples, examples)] * (directions @ directions.T)
    q = -np.array([delta[labels[i], m] for i, m in pairs])
    bounded, bounds = (examples == np.flatnonzero(costs)[:, None]).astype(float), costs[costs > 0]
    if formulation == "weston-watkins":
        bounded, bounds = np.eye(len(pairs)), costs[examples]
    G = np.vstack([-np.eye(len(pairs)), bounded])
    h = np.concatenate([np.zeros(len(pairs)), bounds])
    _, bound = interior_point(P, q, G, h)
    return -bound


def kernel_certificate(beta, K, labels, costs, delta, formulation="crammer-singer", scale=1.0, kappa=0.0):
    """Primal (3) at `scale` times w, dual (7) and the largest violation of [larank] section 3.4, example by example.

    For Weston-Watkins, those of [sdm] (14), (16) and (18). A coefficient is at its bound if it is as close as `kappa`.
    """
    scores = K @ beta
    half_squared_norm = 0.5 * (beta * scores).sum()
    gains, losses, violation = 0.0, 0.0, 0.0
    for i, label in enumerate(labels):
        if costs[i] == 0:
            continue
        others = [m for m in range(len(delta)) if m != label]
        gains -= sum(delta[label, m] * beta[i, m] for m in others)
        hinges = [max(0.0, delta[label, m] + scale * (scores[i, m] - scores[i, label])) for m in others]
        losses += costs[i] * (max(hinges, default=0.0) if formulation == "crammer-singer" else sum(hinges))
        g = [-delta[label, m] - scores[i, m] for m in range(len(delta))]
        most = costs[i] * (1 - kappa)
        if formulation == "crammer-singer":
            can_grow = [m for m in range(len(delta)) if beta[i, m] < (most if m == label else 0)]
            violation = max(violation, max([g[m] for m in can_grow], default=-np.inf) - min(g))
            continue
        for m in others:
            violation = max(violation, g[label] - g[m] if -beta[i, m] < most else 0.0)
            violation = max(violation, g[m] - g[label] if beta[i, m] < 0 else 0.0)
    return scale * scale * half_squared_norm + losses, gains - half_squared_norm, violation


class SplitMix:
    """The random numbers of the core."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        mask = 2**64 - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        return ((z >> 32) * n) >> 32


def one_vs_rest_certificate(alpha, scores, K, signs, costs):
    """Primal and dual of a binary SVM per column; `scores` hold the bias, where there is one."""
    half_squared_norm = 0.5 * (alpha * (K @ alpha)).sum()
    losses = (costs[:, None] * np.maximum(0, 1 - signs * scores)).sum()
    return half_squared_norm + losses, (alpha * signs).sum() - half_squared_norm


def binary_optimum(K, signs, costs, *, bias):
    """The optimum of the binary SVM: of a general solver without a bias, of libsvm with one."""
    n = len(signs)
    if not bias:
        box = np.vstack([np.eye(n), -np.eye(n)])
        return -interior_point(K * np.outer(signs, signs), -np.ones(n), box, np.concatenate([costs, np.zeros(n)]))[1]
    binary = SVC(kernel="precomputed", C=1.0, tol=1e-9).fit(K, signs, sample_weight=costs)
    beta = binary.dual_coef_[0]
    return np.abs(beta).sum() - 0.5 * beta @ K[np.ix_(binary.support_, binary.support_)] @ beta


def hulls_certificate(alpha, scores, K, signs):
    """Half the squared distance between the points that `alpha` names in the hulls, and a bound from their margins."""
    primal = dual = 0.0
    for a, f, sign in zip(alpha.T, scores.T, signs.T, strict=True):
        half_squared_distance = 0.5 * (a @ K @ a) / (np.abs(a).sum() / 2) ** 2
        margin = ((f[sign > 0]).min() + (-f[sign < 0]).min()) / 2  # in units where the points found are at 1 and -1
        primal += half_squared_distance
        dual += half_squared_distance * max(0.0, margin) ** 2
    return primal, dual


def hulls_optimum(K, signs):
    """Half the squared distance between the hulls of two classes, from libsvm without slack."""
    hard = SVC(kernel="precomputed", C=1e9, tol=1e-9).fit(K, signs)
    beta = hard.dual_coef_[0]
    return 2 / (beta @ K[np.ix_(hard.support_, hard.support_)] @ beta)


# Stochastic gradient descent: W has a row per feature and a column per function. Two classes have one function.

LOSSES = ("hinge", "squared_hinge", "smoothed_hinge", "log_loss", "modified_huber")


def margin_loss(loss, z):
    """Value and derivative of a loss of margins z."""
    z = np.asarray(z, float)
    short = np.maximum(0, 1 - z)
    if loss == "hinge":
        return short, -(z < 1).astype(float)
    if loss == "squared_hinge":
        return short**2, -2 * short
    if loss == "smoothed_hinge":
        return np.where(z <= 0, 0.5 - z, short**2 / 2), -np.minimum(short, 1)
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
