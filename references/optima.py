"""What solvers are tested against: a general QP solver, and the formulations spelled out in NumPy.

Nothing here knows how the core works. Scores are ``X @ W.T`` with an intercept as a last column of `X`.
"""

import numpy as np
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


def slack_optimum(margins, losses, slack_of, costs, regularised):
    """Return weights w and a lower bound of the minimum of 1/2 |w|^2 + costs @ slacks.

    Each ``margins @ w`` is at least its loss minus the slack that `slack_of` numbers. The norm is that of the first
    `regularised` weights; biases after them are free.
    """
    weights, slacks = len(margins[0]), np.eye(len(costs))
    P = np.diag((np.arange(weights + len(costs)) < regularised).astype(float))
    G = -np.block([[np.array(margins), slacks[list(slack_of)]], [np.zeros((len(costs), weights)), slacks]])
    q, h = np.concatenate([np.zeros(weights), costs]), np.concatenate([-np.array(losses), np.zeros(len(costs))])
    x, bound = interior_point(P, q, G, h)
    return x[:weights], bound


def optimum(formulation, X, labels, costs, n_classes, *, free_biases=False):
    """W and a lower bound of the primal's minimum: problems (1), (14) and k binary ones, with explicit slacks.

    All free biases may rise together, so that of the last class is 0.
    """
    costs = costs if costs.ndim == 2 else np.repeat(costs[:, None], n_classes, axis=1)
    slacks, margins, slack_of = {}, [], []
    for i in np.flatnonzero(costs.any(axis=1)):
        for signs, slack in constraints(formulation, n_classes, labels[i]):
            if costs[i, slack] > 0:
                margins.append(np.concatenate([np.kron(signs, X[i]), signs[: (n_classes - 1) * free_biases]]))
                slack_of.append(slacks.setdefault((i, slack), len(slacks)))
    regularised = n_classes * X.shape[1]
    w, bound = slack_optimum(margins, np.ones(len(margins)), slack_of, [costs[at] for at in slacks], regularised)
    return w[:regularised].reshape(n_classes, -1), bound


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


def dual_optimum(P, gains, sums, bounds):
    """The maximum of gains @ a - 1/2 a'Pa with a >= 0 and sums @ a <= bounds."""
    n = len(gains)
    return -interior_point(P, -gains, np.vstack([-np.eye(n), sums]), np.concatenate([np.zeros(n), bounds]))[1]


def kernel_optimum(K, labels, costs, delta, formulation="crammer-singer"):
    """The maximum of the kernel dual with margins `delta`, [larank] (4) or that of [sdm] (14).

    There is a variable per example and wrong class. Crammer-Singer bounds their sum, Weston-Watkins each of them.
    """
    n_classes = len(delta)
    pairs = [(i, m) for i in np.flatnonzero(costs) for m in range(n_classes) if m != labels[i]]
    directions = np.array([np.eye(n_classes)[labels[i]] - np.eye(n_classes)[m] for i, m in pairs])
    examples = np.array([i for i, _ in pairs])
    P = K[np.ix_(examples, examples)] * (directions @ directions.T)
    gains = np.array([delta[labels[i], m] for i, m in pairs])
    bounded, bounds = (examples == np.flatnonzero(costs)[:, None]).astype(float), costs[costs > 0]
    if formulation == "weston-watkins":
        bounded, bounds = np.eye(len(pairs)), costs[examples]
    return dual_optimum(P, gains, bounded, bounds)


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


def one_vs_rest_certificate(alpha, scores, K, signs, costs):
    """Primal and dual of a binary SVM per column; `scores` hold the bias, where there is one."""
    half_squared_norm = 0.5 * (alpha * (K @ alpha)).sum()
    losses = (costs[:, None] * np.maximum(0, 1 - signs * scores)).sum()
    return half_squared_norm + losses, (alpha * signs).sum() - half_squared_norm


def binary_optimum(K, signs, costs, *, bias):
    """The optimum of the binary SVM: of a general solver without a bias, of libsvm with one."""
    if not bias:
        return dual_optimum(K * np.outer(signs, signs), np.ones(len(signs)), np.eye(len(signs)), costs)
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
