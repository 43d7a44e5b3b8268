"""The optimisation problem of a multiclass kernel machine, and its objectives at any point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.training import ObjectiveValues

_KAPPA = 1e-10  # a coefficient so close to its bound is at it, [larank] section 3.4

_Float = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Examples, their labels and costs, and what a wrong class costs.

    With scores S = K beta, one column per class, and y the label of example i::

        min     1/2 <beta, S> + sum_i C_i loss_i
        max     - sum_iy' Delta(y, y') beta_i^y' - 1/2 <beta, S>     with  sum_y' beta_i^y' = 0  and

        crammer-singer   loss_i = max_y' (Delta(y, y') + S_i^y' - S_i^y)            beta_i^y' <= C_i delta(y', y)
        weston-watkins   loss_i = sum_{y' != y} (Delta(y, y') + S_i^y' - S_i^y)_+   0 <= -beta_i^y' <= C_i, y' != y

    which are [larank] (3) and (7), the gains written with sum_y' beta_i^y' = 0, and [sdm] (14) and (16).

    Attributes
    ----------
    X : array, CSR matrix or sequence
        The examples; of a precomputed kernel, the square matrix.
    labels : ndarray of int32
        From 0 to `n_classes` - 1.
    costs : ndarray of float64
        C_i >= 0. An example without cost has no coefficients.
    n_classes : int
        At least two.
    delta : ndarray of shape (n_classes, n_classes)
        The margins Delta(y, y') >= 0, zero on the diagonal.
    formulation : str
        "crammer-singer" or "weston-watkins".
    is_hard : bool
        Whether the costs stand for infinity.
    """

    X: Any
    labels: NDArray[np.int32]
    costs: _Float
    n_classes: int
    delta: _Float
    formulation: str
    is_hard: bool = False

    def objectives(self, scores: _Float, beta: _Float) -> ObjectiveValues:
        """Primal, dual and largest violation, computed from scratch.

        Parameters
        ----------
        scores : ndarray of shape (n_samples, n_classes)
            S.
        beta : ndarray of shape (n_samples, n_classes)
            The coefficients.
        """
        margins = self.delta[self.labels]
        half_squared_norm = float((beta * scores).sum()) / 2
        losses, violations = self.losses_and_violations(scores, beta)
        return ObjectiveValues(
            half_squared_norm + float(self.costs @ losses),
            -float((margins * beta).sum()) - half_squared_norm,
            float(violations[self.costs > 0].max(initial=0.0)),
        )

    def losses_and_violations(self, scores: _Float, beta: _Float) -> tuple[_Float, _Float]:
        """What each example loses, and how far its coefficients are from optimal given those of the others."""
        slack = self.delta[self.labels] + scores - self._of_labels(scores)
        of_formulation = {"crammer-singer": self._crammer_singer, "weston-watkins": self._weston_watkins}
        return of_formulation[self.formulation](slack, beta)

    def _crammer_singer(self, slack: _Float, beta: _Float) -> tuple[_Float, _Float]:
        worst: _Float = slack.max(axis=1)
        bounds = np.where(self._is_label(), self.costs[:, None], 0.0)
        least = np.where(beta < bounds * (1 - _KAPPA), slack, np.inf).min(axis=1)
        return worst, worst - least  # [mcsvm] (32), and [sdm] (6): the shift by the label's score is of no account

    def _weston_watkins(self, slack: _Float, beta: _Float) -> tuple[_Float, _Float]:
        slack = np.where(self._is_label(), 0.0, slack)
        alpha = np.where(self._is_label(), 0.0, -beta)
        raised = np.where(alpha < self.costs[:, None] * (1 - _KAPPA), slack, 0.0)
        lowered = np.where(alpha > 0, -slack, 0.0)
        violations: _Float = np.maximum(raised, lowered).max(axis=1)  # [sdm] (18)
        return np.maximum(slack, 0.0).sum(axis=1), violations

    def _of_labels(self, table: _Float) -> _Float:
        return np.take_along_axis(table, self.labels[:, None].astype(np.intp), axis=1)

    def _is_label(self) -> NDArray[np.bool_]:
        is_label: NDArray[np.bool_] = np.arange(self.n_classes) == self.labels[:, None]
        return is_label
