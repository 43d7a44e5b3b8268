"""The mean pairwise loss of chapter 6 spelled out over all pairs, and the optimum of its SVM by a general solver."""

import numpy as np

from references.optima import dual_optimum


def pairs(weights):
    """Candidates, wrong classes, and the weight of every pair of them."""
    weights = np.asarray(weights, float)
    right, wrong = np.flatnonzero(weights > 0), np.flatnonzero(weights == 0)
    of_pair = np.outer(weights[right] / weights.sum(), np.ones(len(wrong)) / max(1, len(wrong)))
    return right, wrong, of_pair


def loss(scores, weights):
    right, wrong, of_pair = pairs(weights)
    return float((of_pair * np.clip(1 - scores[right][:, None] + scores[wrong], 0, None)).sum())


def ascent(scores, weights):
    """The loss, Delta and psi of [thesis] (6.6) and (6.7) by the pairs that are violated."""
    right, wrong, of_pair = pairs(weights)
    c = of_pair * (1 - scores[right][:, None] + scores[wrong] > 0)
    psi = np.zeros(len(scores))
    psi[right], psi[wrong] = c.sum(axis=1), -c.sum(axis=0)
    return float(c.sum() - psi @ scores), float(c.sum()), psi


def step(scores, weights, kappa, cost):
    """[thesis] algorithm 23: the coefficients of a new example."""
    value, _, psi = ascent(scores, weights)
    norm = kappa * psi @ psi
    alpha = np.clip(value / norm, 0, cost) if norm > 0 else cost * (value > 0)
    return alpha * psi


def to_pairs(weights, n_classes):
    """The matrix from coefficients of pairs to those of classes, and the bounds per unit of cost."""
    right, wrong, of_pair = pairs(weights)
    M = np.zeros((n_classes, of_pair.size))
    for n, (y, z) in enumerate((y, z) for y in right for z in wrong):
        M[y, n], M[z, n] = 1, -1
    return M, of_pair.ravel()


def optimum(K, sets, costs):
    """The largest dual objective, by the coefficients of all pairs of all examples."""
    n_classes = sets.shape[1]
    blocks = [to_pairs(weights, n_classes) for weights in sets]
    owner = np.repeat(np.arange(len(sets)), [M.shape[1] for M, _ in blocks])
    M = np.hstack([M for M, _ in blocks])
    bounds = np.concatenate([cost * of_pair for (_, of_pair), cost in zip(blocks, costs, strict=True)])
    n = len(bounds)
    return dual_optimum((M.T @ M) * K[np.ix_(owner, owner)], np.ones(n), np.eye(n), bounds)


def certificate(beta, K, sets, costs):
    """Primal and dual objective of coefficients, a row for each example."""
    scores = K @ beta
    half = (beta * scores).sum() / 2
    losses = sum(cost * loss(s, w) for cost, s, w in zip(costs, scores, sets, strict=True))
    return half + losses, beta.clip(min=0).sum() - half
