"""What online machines of binary problems share: one problem for two classes, one per class for more.

Compiled sessions number the classes as they arrive. While there are two, their only problem has the second one as the
positive class; from the third on there is a problem for each class against the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from larank.kernel.machine import OnlineClassifier, OnlineTraining, Running

__all__ = ["OneVersusRestClassifier", "OneVersusRestTraining", "for_all_classes", "signs"]


class OneVersusRestClassifier(OnlineClassifier):
    """A model with a score per class, or with two classes one score, of the second."""

    intercept_: NDArray[np.float64]

    def _scores(self, X: Any) -> NDArray[np.float64]:
        scores = self._expansions(X) + self.intercept_
        return np.column_stack([-scores / 2, scores / 2]) if len(self.classes_) == 2 else scores

    def _by_class(self, values: NDArray[np.float64], n_arrived: int, absent: float) -> NDArray[np.float64]:
        """From a column per problem of a session to a column per class, or with two classes to one column.

        `absent` is for classes that were announced and have no examples yet.
        """
        columns = self._columns()[:n_arrived]
        if len(self.classes_) == 2:
            return values if not len(columns) or columns[0] == 0 else -values
        table = np.full((len(values), len(self.classes_)), absent)
        if n_arrived > 2:
            table[:, columns] = values
        else:
            table[:, columns[:1]] = -values
            table[:, columns[1:]] = values
        return table

    def _by_problem(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inverse of `_by_class`, for the classes that have arrived."""
        columns = self._columns()
        if len(self.classes_) == 2:
            return values if columns[0] == 0 else -values
        arrived = values[:, columns]
        return np.ascontiguousarray(arrived if len(columns) > 2 else arrived[:, 1:2])

    def _keep_support(
        self,
        running: Running,
        slots: NDArray[Any],
        ids: NDArray[np.int64],
        coefficients: NDArray[np.float64],
        intercepts: NDArray[np.float64],
        absent: float,
    ) -> None:
        """The model of these patterns, with coefficients and an intercept for each problem of the session."""
        n_arrived = running.session.classes
        self.support_ = ids
        self.dual_coef_ = csr_matrix(self._by_class(coefficients, n_arrived, 0.0))
        self.intercept_ = self._by_class(intercepts[None], n_arrived, absent)[0]
        if self.kernel != "precomputed":
            self.support_vectors_ = running.blocks.patterns(slots)


class OneVersusRestTraining(OnlineTraining):
    """A session of binary problems as the training loop sees it."""

    def _predicted_by(
        self,
        X: Any,
        slots: NDArray[Any],
        coefficients: NDArray[np.float64],
        intercepts: NDArray[np.float64],
    ) -> NDArray[Any]:
        """Labels among those that have arrived."""
        scores = self.running.blocks.scores(X, slots, coefficients) + intercepts
        best = scores.argmax(axis=1) if self.session.classes > 2 else (scores[:, 0] > 0).astype(np.intp)
        labels: NDArray[Any] = self.model._arrived[best]
        return labels


def signs(labels: NDArray[np.int32], n_arrived: int) -> NDArray[np.float64]:
    """1 where a label is the positive class of a problem and -1 elsewhere, a column per problem of a session."""
    problems = np.arange(n_arrived) if n_arrived > 2 else np.array([1])
    return np.where(labels[:, None] == problems, 1.0, -1.0)


def for_all_classes(values: NDArray[np.float64], n_arrived: int, n_classes: int, absent: float) -> NDArray[np.float64]:
    """A column per problem of all classes of a stream, from one per problem of those that have arrived so far."""
    if n_classes <= max(2, n_arrived):
        return values
    known = np.hstack([-values, values]) if n_arrived <= 2 else values
    table = np.full((len(values), n_classes), absent)
    table[:, : known.shape[1]] = known
    return table
