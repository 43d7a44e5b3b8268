"""The small quadratic problem of cutting planes with one slack: coefficients >= 0 whose sum stays as it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

_Numbers = NDArray[np.float64]
_MOST_STEPS = 10_000  # of one ascent; gradients are computed anew in the next
_FLAT = 1e-12  # relative to the largest curvature: below this the Cholesky factor is not accurate
_LEAST = 1e-200  # of a curvature, so that no division is by 0
_ROUNDING = float(np.finfo(np.float64).eps)


def ascend_on_simplex(G: _Numbers, L: _Numbers, alpha: _Numbers, accuracy: float) -> int:
    """Maximise L'a - 1/2 a'Ga over a >= 0 with its sum as it is, in place; the number of steps.

    A step moves two entries against each other: that with the largest gradient up, and down that which brings most.
    Then all entries above 0 go to the maximum between them, as far as none falls below 0. It ends if no two
    gradients of entries that can move differ by more than `accuracy`, or by more than their rounding errors.
    """
    sizes = np.abs(G)
    for step in range(_MOST_STEPS):
        g = L - G @ alpha
        up = int(g.argmax())
        rise = np.where(alpha > 0, g[up] - g, 0.0)
        if rise.max() <= max(accuracy, _ROUNDING * float((sizes @ alpha).max())):
            return step
        _step_of_two(G, alpha, rise, up)
        while _step_on_the_face(G, L, alpha):
            pass
    return _MOST_STEPS


def _step_of_two(G: _Numbers, alpha: _Numbers, rise: _Numbers, up: int) -> None:
    diagonal = np.diag(G)
    squared = np.maximum(diagonal[up] + diagonal - 2 * G[up], _LEAST)
    step = np.minimum(rise / squared, alpha)
    down = int((step * (rise - step * squared / 2)).argmax())
    size = step[down]
    alpha[down] = 0.0 if size == alpha[down] else alpha[down] - size
    alpha[up] += size


def _step_on_the_face(G: _Numbers, L: _Numbers, alpha: _Numbers) -> bool:
    """Newton's step of the entries above 0, their sum fixed; True if one of them came to 0 on the way."""
    face = np.flatnonzero(alpha > 0)
    if len(face) < 2:
        return False
    last = int(alpha[face].argmax())  # it takes what the others give: they are free
    others = np.delete(np.arange(len(face)), last)
    part = G[face[:, None], face]
    g = L[face] - G[face] @ alpha
    H = part[others[:, None], others] - part[others, last][:, None] - part[last, others] + part[last, last]
    h = g[others] - g[last]
    direction = np.empty(len(face))
    free = _newton(H, h)
    direction[others] = free
    direction[last] = -free.sum()
    falls = np.flatnonzero(direction < 0)
    if not len(falls):
        return False
    lengths = alpha[face[falls]] / -direction[falls]
    first = int(lengths.argmin())
    is_blocked = bool(lengths[first] <= 1.0)
    length = min(lengths[first], 1.0)
    alpha[face] = np.maximum(0.0, alpha[face] + length * direction)
    if is_blocked:
        alpha[face[falls[first]]] = 0.0
    return is_blocked


def _newton(H: _Numbers, h: _Numbers) -> _Numbers:
    """Return the d with the largest h'd - 1/2 d'Hd.

    If planes depend on each other, H is singular except for rounding. A curvature that rounding hides counts as the
    least one that it does not hide, so d is long in that direction, and a bound stops it.
    """
    try:
        factor = cho_factor(H, check_finite=False)
        curved = factor[0].diagonal() ** 2
        if curved.min() > _FLAT * curved.max():
            return np.asarray(cho_solve(factor, h, check_finite=False))
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(H)
    least = max(len(values) * _ROUNDING * float(values[-1]), _LEAST)
    return np.asarray(vectors @ ((vectors.T @ h) / np.maximum(values, least)))
