"""The machine of the linear kernel: it feeds a session the examples themselves, and the session keeps weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from larank import _core
from larank.blocks.provider import summed_weights
from larank.kernel.machine import Expansion, Machine, OnlineClassifier, support_table
from larank.kernel.stream import Examples, Feed, LinearFeed, feed_linear, linear_diagonal

_Float = NDArray[np.float64]


class LinearMachine(Machine):
    """A session that is fed the examples themselves and keeps weights: no provider, no kernel values."""

    def __init__(self, session: Any, X: Any) -> None:
        self.session, self._is_sparse = session, issparse(X)

    @property
    def indefinite(self) -> str:
        """Nothing: inner products are positive semi-definite."""
        return ""

    def diagonal(self, X: Any) -> NDArray[np.float64]:
        """k(x, x) of these examples."""
        return linear_diagonal(self.session, X)

    def recall(self, indefinite: str) -> None:
        """There is nothing to."""

    def look_at_kernel(self, X: Any, rows: NDArray[np.intp]) -> None:
        """It is known."""

    def look_at_objectives(self, half_squared_norm: float, dual: float, at_zero: float) -> None:
        """They tell nothing new."""

    def feed(self, blocks: Iterator[Examples]) -> Feed:
        """Work on a part of a stream."""
        return LinearFeed(self.session, blocks)

    def scores(self, X: Any, expansion: Expansion, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """By the weights, whatever the coefficients."""
        return self._scores(X, self.session.weights(), coefficients.shape[1])

    is_rounded = True  # weights were summed up on the way, in whatever precision

    def is_cheap_in_double(self, values: int) -> bool:
        """Yes: it takes a product of X with weights."""
        return True

    def exact_scores(self, expansion: Expansion, coefficients: _Float) -> Callable[[Any], _Float]:
        """Return a function that computes scores by weights that are summed up from the coefficients."""
        of_constant = self.session.intercept * coefficients.sum(axis=0)
        weights = np.column_stack([summed_weights(self.patterns(expansion), coefficients).T, of_constant])
        return lambda X: self._scores(X, weights, coefficients.shape[1])

    def model_scores(self, X: Any, scores: _Float) -> _Float:
        """Return scores by the published weights, which are averages if the session keeps averages."""
        return self._scores(X, self._published(), scores.shape[1])

    def model_half_squared_norm(self, half_squared_norm: float) -> float:
        """Return half the squared norm of the published weights."""
        return float(np.square(self._published(), dtype=np.float64).sum()) / 2

    def _published(self) -> NDArray[Any]:
        has_average = getattr(self.session, "averages", False)  # not every algorithm can
        weights: NDArray[Any] = self.session.averaged_weights() if has_average else self.session.weights()
        if len(weights) != 2:
            return weights
        of_second = (weights[1] - weights[0]).astype(np.float64) / 2  # `coef_` of two classes is the difference
        return np.stack([-of_second, of_second])

    def _scores(self, X: Any, weights: NDArray[Any], columns: int) -> _Float:
        weights, features = weights.astype(np.float64, copy=False), self.session.features
        scores = np.zeros((X.shape[0], columns))
        scores[:, : len(weights)] = X @ weights[:, :features].T
        if self.session.intercept:
            scores[:, : len(weights)] += self.session.intercept * weights[:, features]
        return scores

    def patterns(self, expansion: Expansion) -> Any:
        """The examples with coefficients, as they were given."""
        return self._matrix(self.session.patterns(expansion.slots))

    def _matrix(self, parts: Any) -> Any:
        values, columns, starts = parts
        if columns is None and not self._is_sparse:
            return values.reshape(len(starts) - 1, self.session.features)
        columns = np.empty(0, np.int32) if columns is None else columns
        return csr_matrix((values, columns, starts), shape=(len(starts) - 1, self.session.features))

    def restore(self, model: OnlineClassifier, labels: Any, costs: Any, coefficients: csr_matrix) -> None:
        """The rows of a block are what the session takes the patterns from."""
        X, ids = model.support_vectors_, model.support_
        diagonal = linear_diagonal(self.session, X)
        feed_linear(self.session, Examples(X, ids, np.zeros(len(ids), np.int32), costs), diagonal)
        self.session.restore(support_table(ids, labels, costs, diagonal, coefficients))

    def count(self, kernel_values: int) -> None:
        """There are none."""

    def _take_patterns(self, slots: NDArray[np.int32], X: Any, ids: NDArray[np.int64]) -> None:
        nothing = Examples(X, ids, np.zeros(len(ids), np.int32), np.zeros(len(ids)))
        feed_linear(self.session, nothing, linear_diagonal(self.session, X))
        self.session.take_patterns(slots)

    def _bring_rows(self) -> None:
        pass

    def waiting(self, support: NDArray[np.int64]) -> Any:
        """The patterns of the session that have no coefficients in the model, in the order of their slots."""
        slots, ids = self.session.present()
        return self._matrix(self.session.patterns(slots[~np.isin(ids, support)]))

    def block_values(self, memory_limit: float) -> float:
        """There are none that could be too many."""
        return math.inf

    def rows_for(self, memory_limit: float) -> int | None:
        """It keeps no kernel values."""
        return None

    def make_room_for_model(self) -> None:
        """There are no rows."""

    def check_memory(self, memory_limit: float) -> None:
        """There is nothing it could do without."""
        if self.session.bytes > memory_limit:
            raise _core.MemoryLimitError(
                f"memory_limit must be at least {self.session.bytes} bytes for the weights and "
                f"{self.session.support_patterns} support patterns, got {memory_limit:.0f}"
            )

    @property
    def kernel_values(self) -> int:
        """None."""
        return 0

    @property
    def seconds(self) -> dict[str, float]:
        """There is no provider that takes any."""
        return {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: Any) -> None:
        pass


def weights_of(model: OnlineClassifier, weights: NDArray[Any]) -> NDArray[Any]:
    """Weights of a session for the model, classes in its order; with two, those of the second minus those of the first.

    The last column is that of the constant feature, where the session has one.
    """
    coef = np.zeros((len(model.classes_), weights.shape[1]), weights.dtype)
    coef[model._columns()] = weights
    return coef[1:] - coef[:1] if len(coef) == 2 else coef
