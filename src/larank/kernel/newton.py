"""Newton's steps for the members of the exact solver: all coefficients that are free to move, at once.

Steps on two coefficients of one pattern are cheap, but where kernel values are badly conditioned, which high costs
bring to light, millions of them get nowhere. On the face of the coefficients that are not at a bound the dual is a
quadratic function, and one linear system finds its maximum:

    move        beta_i += d_n z_n,  z_n = e_y - e_b,  one n for each free y of row i but one, b
    gradient    r_n = g_i(y) - g_i(b),  g_i(y) = 1 - Delta(y_i, y) - S(x_i, y), [larank] (8)
    curvature   H_np = k(x_i, x_j) <z_n, z_p>
    step        d = H^-1 r, with a little on the diagonal of H, which need not have full rank

A coefficient that meets its bound leaves the face, and the next system is that of the smaller one. At the maximum of a
face, each pattern lets the coefficient go that violates optimality most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from larank.kernel.problem import Problem

_Float = NDArray[np.float64]
_Index = NDArray[np.intp]
_Mask = NDArray[np.bool_]

_AT_BOUND = 1e-12  # relative to the cost, [larank] section 3.4
_RIDGE = 8 * float(np.finfo(np.float64).eps)  # per row of the linear system
_MOST_FACES = 60


class _Moves(NamedTuple):
    """Pattern, class and base of every move."""

    rows: _Index
    columns: _Index
    bases: _Index


class Newton:
    """Patterns whose coefficients move against each other.

    Parameters
    ----------
    problem : Problem
        Of these patterns alone.
    beta : ndarray of shape (n, n_classes)
        Their coefficients.
    """

    def __init__(self, problem: Problem, beta: _Float) -> None:
        is_paired = problem.formulation == "weston-watkins"
        costs = np.broadcast_to(problem.costs[:, None], beta.shape)
        self.problem, self.beta = problem, beta
        self.is_label = np.arange(problem.n_classes) == problem.labels[:, None]
        self.high = np.where(self.is_label, np.inf if is_paired else costs, 0.0)
        self.low = np.where(self.is_label | (not is_paired), -np.inf, -costs)

    def free(self) -> _Mask:
        """Which coefficients are not at a bound."""
        slack = _AT_BOUND * self.problem.costs[:, None]
        return np.asarray((self.beta < self.high - slack) & (self.beta > self.low + slack))

    def run(self, kernel: _Float, scores: _Float, tau: float) -> Iterator[None]:
        """Go from face to face, one at a time, until at the maximum of one no violation is above tau.

        Parameters
        ----------
        kernel : ndarray of shape (n, n)
            Kernel values of the patterns.
        scores : ndarray of shape (n, n_classes)
            Their scores, which are changed along with `beta`.
        tau : float
            Smaller violations are left alone.
        """
        self.kernel, self.scores = kernel, scores
        released, gained = np.zeros(self.beta.shape, bool), np.inf
        for _ in range(_MOST_FACES):
            yield
            moves = self._moves(released)
            if len(moves.rows):
                direction = self._direction(moves)
                reach = self._reach(direction)
                gain, met = self._move(direction, reach)
                gained += gain
                released[met] = False
                if met.any():
                    continue
            released = self._violating(tau)
            if gained <= 0 or not released.any():
                return
            gained = 0.0

    def _bases(self, is_free: _Mask) -> _Index:
        """For each pattern the free coefficient that pays for all moves: the label's, or the largest of the others."""
        of_label = self.is_label & self.free()
        return np.asarray(np.where(is_free, np.where(of_label, np.inf, np.abs(self.beta)), -1.0).argmax(axis=1))

    def _moves(self, released: _Mask) -> _Moves:
        is_free = self.free() | released
        bases = self._bases(self.free())
        is_free[np.arange(len(bases)), bases] = False
        rows, columns = np.nonzero(is_free)
        return _Moves(rows, columns, bases[rows])

    def _violating(self, tau: float) -> _Mask:
        """The coefficient at a bound that would move most eagerly, of each pattern where one would."""
        gradient, each = self._gradient(), np.arange(len(self.beta))
        r = gradient - gradient[each, self._bases(self.free())][:, None]
        slack = _AT_BOUND * self.problem.costs[:, None]
        inward = np.where(self.beta >= self.high - slack, -r, np.where(self.beta <= self.low + slack, r, 0.0))
        worst = inward.argmax(axis=1)
        violating = np.zeros(self.beta.shape, bool)
        violating[each, worst] = inward[each, worst] > tau
        return violating

    def _gradient(self) -> _Float:
        return np.asarray(-self.problem.delta[self.problem.labels] - self.scores)

    def _direction(self, moves: _Moves) -> _Float:
        """From here to the maximum on the face. Rows of the system are brought to one scale first."""
        rows, columns, bases = moves
        gradient, each = self._gradient(), np.arange(len(rows))
        z = np.zeros((len(rows), self.problem.n_classes))
        z[each, columns], z[each, bases] = 1.0, -1.0
        r = gradient[rows, columns] - gradient[rows, bases]
        curvature = self.kernel[np.ix_(rows, rows)] * (z @ z.T)
        sizes = np.sqrt(np.where(curvature.diagonal() > 0, curvature.diagonal(), 1.0))
        curvature /= sizes[:, None] * sizes
        d = _solve(curvature, r / sizes) / sizes
        direction = np.zeros_like(self.beta)
        np.add.at(direction, rows, d[:, None] * z)
        return direction

    def _reach(self, direction: _Float) -> _Float:
        """How much of its direction each pattern can go."""
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(direction > 0, self.high - self.beta, self.low - self.beta) / direction
        room[direction == 0] = np.inf
        return np.asarray(room.min(axis=1))

    def _move(self, direction: _Float, reach: _Float) -> tuple[float, _Mask]:
        """Follow the path on which each pattern stops at its bound, as far as the dual rises most.

        It is tried where 1, 2, 4, ... patterns have met theirs. Up to the first bound the path is straight, and there
        the dual rises. Returned are the gain and the patterns that met a bound.
        """
        bounds = np.sort(reach[reach < 1])
        counts = np.minimum(2 ** np.arange(len(bounds).bit_length() + 1), len(bounds))
        gradient, most, last = self._gradient(), -np.inf, 0.0
        chosen = np.zeros_like(direction), np.zeros_like(direction)
        for end in bounds[counts - 1] if len(bounds) else [1.0]:
            change = np.minimum(end, reach)[:, None] * direction
            raised = self.kernel @ change
            slope, bend = float((gradient * change).sum()), float((raised * change).sum())
            if slope - bend / 2 > most and (slope >= bend or most == -np.inf):
                most, last, chosen = slope - bend / 2, end, (change, raised)
        if most == -np.inf:  # values that are not finite lead nowhere
            return 0.0, np.zeros(len(reach), bool)
        self.beta += chosen[0]
        self.scores += chosen[1]
        met = np.asarray(reach <= min(last, bounds[-1])) if len(bounds) else np.zeros(len(reach), bool)
        self._settle(direction, met)
        return most, met

    def _settle(self, direction: _Float, met: _Mask) -> None:
        """What met its bound is exactly there, and the label's coefficient minus the sum of the others."""
        slack = _AT_BOUND * self.problem.costs[:, None]
        at_high = met[:, None] & (direction > 0) & (self.beta > self.high - slack)
        at_low = met[:, None] & (direction < 0) & (self.beta < self.low + slack)
        np.copyto(self.beta, self.high, where=at_high)
        np.copyto(self.beta, self.low, where=at_low)
        np.clip(self.beta, self.low, self.high, out=self.beta)
        sums = -np.where(self.is_label, 0.0, self.beta).sum(axis=1)
        bounds = self.high[self.is_label]
        with np.errstate(divide="ignore", invalid="ignore"):
            self.beta *= np.where(sums > bounds, bounds / sums, 1.0)[:, None]  # rounding takes rows beyond, a little
        moved = (direction != 0).any(axis=1)
        self.beta[self.is_label & moved[:, None]] = np.minimum(sums, bounds)[moved]


def _solve(curvature: _Float, r: _Float) -> _Float:
    """With as much on the diagonal, which is 1, as rounding asks for."""
    ridge = _RIDGE * len(r)
    while ridge < 1:
        curvature[np.diag_indices(len(r))] = 1 + ridge
        try:
            return np.asarray(cho_solve(cho_factor(curvature, lower=True, check_finite=False), r, check_finite=False))
        except LinAlgError:
            ridge *= 10
    return r
