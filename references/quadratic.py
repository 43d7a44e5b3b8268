"""A general solver of convex quadratic problems, precise rather than fast: Mehrotra's predictor-corrector method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_ITERATIONS = 150
_PATIENCE = 15  # iterations that bring nothing
_SHORT = 0.3  # of a predictor step: its correction is then worth nothing, and can make the iterates cycle
_CORRECTED = 60  # iterations, for the same reason
_ADDED = (1e-15, 1e-14, 1e-13, 1e-12)  # to the diagonal, where a matrix is not definite up to rounding
_REFINEMENTS = 2
_GOOD = 1e-9  # the error with which nothing else is tried
_SMALLEST = 1e-13  # of complementarity over the objective, at which no more is to be had


@dataclass(frozen=True)
class Quadratic:
    """min 1/2 x'Px - d'x with x >= 0, the sums of groups of x at most `most`, and A x = 0 if there is an `A`.

    `group` numbers the sum that each entry of x belongs to. P must be positive semi-definite, and the rows of A
    independent.
    """

    P: Matrix
    d: Vector
    group: NDArray[np.int64]
    most: Vector
    A: Matrix | None = None

    def sums(self, x: Vector) -> Vector:
        return np.bincount(self.group, weights=x, minlength=len(self.most))

    def feasible(self, x: Vector) -> Vector:
        """A point that keeps all constraints, next to one that nearly does; of equalities, a single one of signs."""
        x = np.maximum(x, 0)
        sums = self.sums(x)
        x = x * np.minimum(1, np.divide(self.most, sums, out=np.ones_like(sums), where=sums > 0))[self.group]
        if self.A is None or len(self.A) > 1:
            return x
        up, down = x @ (self.A[0] > 0), x @ (self.A[0] < 0)
        return x * np.where(self.A[0] > 0, min(1, down / up if up else 1), min(1, up / down if down else 1))

    def minimiser(self) -> tuple[Vector, Vector]:
        """The best point found, and the multipliers of A; from the middle of the bounds where a short start fails."""
        curvature = np.abs(self.P).sum(axis=1).max() or 1.0
        best, least = self._descend(np.abs(self.d).max() / curvature)
        if least > _GOOD:
            other, error = self._descend(np.inf)
            best = other if error < least else best
        return best.x, best.y

    def _descend(self, longest: float) -> tuple[_State, float]:
        """The best iterate, and its error; entries begin with `longest` at most."""
        state = _State.start(self, longest)
        best, least, found_at = state, np.inf, 0
        for iteration in range(_ITERATIONS):
            error = state.error()
            if error < least:
                best, least, found_at = state, error, iteration
            if error <= _SMALLEST or (least < 1 and iteration - found_at > _PATIENCE):
                break
            try:
                state = state.step(iteration < _CORRECTED)
            except np.linalg.LinAlgError:
                break
        return best, least


def _factor(M: Matrix) -> tuple[Matrix, bool]:
    """The Cholesky factor of a matrix with ones on its diagonal, a little larger ones where rounding demands it."""
    for added in (0.0, *_ADDED):
        try:
            found: tuple[Matrix, bool] = cho_factor(M + added * np.eye(len(M)), lower=True)
        except np.linalg.LinAlgError:
            continue
        return found
    raise np.linalg.LinAlgError("no Cholesky factor")


_Change = tuple[Vector, Vector, Vector, Vector, Vector]


@dataclass(frozen=True)
class _State:
    """x with the multipliers z of x >= 0, the slacks s of the sums with multipliers u, and y of A x = 0."""

    problem: Quadratic
    x: Vector
    z: Vector
    s: Vector
    u: Vector
    y: Vector

    @classmethod
    def start(cls, problem: Quadratic, longest: float) -> _State:
        """Well inside of everything."""
        sizes = np.bincount(problem.group, minlength=len(problem.most))
        x = np.minimum(0.5 * problem.most / sizes, longest)[problem.group]
        s = problem.most - problem.sums(x)
        slope = np.abs(problem.P @ x - problem.d).max()
        equalities = 0 if problem.A is None else len(problem.A)
        return cls(problem, x, np.full(len(x), slope), s, np.full(len(s), slope), np.zeros(equalities))

    @property
    def residual(self) -> Vector:
        p = self.problem
        r = p.P @ self.x - p.d - self.z + self.u[p.group]
        return r if p.A is None else r + self.y @ p.A

    @property
    def complementarity(self) -> float:
        return float(self.x @ self.z + self.s @ self.u)

    def error(self) -> float:
        """Complementarity and what the residuals may change of the objective, over the objective."""
        p = self.problem
        value = abs(0.5 * self.x @ p.P @ self.x - p.d @ self.x) or 1.0
        broken = np.abs(self.residual) @ self.x
        if p.A is not None:
            broken += np.abs(p.A @ self.x) @ np.abs(self.y)
        return float(self.complementarity + broken) / value

    def step(self, may_correct: bool) -> _State:
        mu = self.complementarity / (len(self.x) + len(self.s))
        newton = self._newton()
        predicted = newton(0.0, 0.0)
        length = self._longest(*predicted[:4])
        after = self._moved(predicted, length)
        sigma = max(0.0, after.complementarity / (len(self.x) + len(self.s)) / mu) ** 3
        corrected = length > _SHORT and may_correct
        dx, dz, ds, du, _ = predicted
        change = newton(sigma * mu - dx * dz, sigma * mu - ds * du) if corrected else newton(0.5 * mu, 0.5 * mu)
        return self._moved(change, min(1.0, 0.995 * self._longest(*change[:4])))

    def _newton(self) -> Callable[[Vector | float, Vector | float], _Change]:
        p, x, z, s, u = self.problem, self.x, self.z, self.s, self.u
        same = p.group[:, None] == p.group
        M = p.P + np.where(same, (u / s)[p.group][:, None], 0.0)
        M[np.diag_indices(len(x))] += z / x
        scale = 1 / np.sqrt(M.diagonal())
        factor = _factor(M * np.outer(scale, scale))

        def solve(right: Vector) -> Vector:
            found = scale * cho_solve(factor, scale * right)
            for _ in range(_REFINEMENTS):
                found = found + scale * cho_solve(factor, scale * (right - M @ found))
            return found

        residual = self.residual
        slack_residual = p.most - p.sums(x) - s
        of_equality = None if p.A is None else np.column_stack([solve(row) for row in p.A])

        def newton(xz: Vector | float, su: Vector | float) -> _Change:
            """The step after which, to first order, x z and s u have these values."""
            in_x, in_s = (xz - x * z) / x, (su - s * u) / s
            right = -residual + in_x - (in_s - u / s * slack_residual)[p.group]
            dx, dy = solve(right), np.zeros_like(self.y)
            if p.A is not None and of_equality is not None:
                dy = np.linalg.solve(p.A @ of_equality, p.A @ (dx + x))
                dx = dx - of_equality @ dy
            ds = slack_residual - p.sums(dx)
            return dx, in_x - z / x * dx, ds, in_s - u / s * ds, dy

        return newton

    def _longest(self, dx: Vector, dz: Vector, ds: Vector, du: Vector) -> float:
        longest = 1.0
        for value, change in ((self.x, dx), (self.z, dz), (self.s, ds), (self.u, du)):
            falling = change < 0
            longest = min(longest, (-value[falling] / change[falling]).min(initial=1.0))
        return longest

    def _moved(self, change: _Change, length: float) -> _State:
        dx, dz, ds, du, dy = change
        x, z, s, u = self.x + length * dx, self.z + length * dz, self.s + length * ds, self.u + length * du
        return _State(self.problem, x, z, s, u, self.y + length * dy)
