"""Plain classes as a structured model: the smallest one, to start from and to compare with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from larank.data.models import persistable_value
from larank.parameters import whole_number
from larank.structured.model import StructuredModel


@persistable_value
@dataclass(frozen=True)
class MulticlassModel(StructuredModel):
    """Classes 0 .. `n_classes` - 1 with weights each: the features of a pair are x in the block of its class.

    With `StructuredSVC` this is the multiclass SVM of Crammer and Singer; `LinearMulticlassSVC` trains it much faster.

    Parameters
    ----------
    n_classes : int
        Labels are whole numbers below it.
    """

    n_classes: int

    def joint_feature(self, x: Any, y: Any) -> NDArray[np.float64]:
        """`x` in the block of class `y`, zeros elsewhere."""
        x = _dense(x)
        if not 0 <= y < self.n_classes:
            raise ValueError(f"labels must be whole numbers from 0 to {self.n_classes - 1}, got {y!r}")
        feature = np.zeros((self.n_classes, len(x)))
        feature[y] = x
        return feature.ravel()

    def argmax(self, x: Any, w: Any, y_true: Any = None) -> int:
        """The class with the largest score, or loss + score."""
        scores = w.reshape(self.n_classes, -1) @ _dense(x)
        if y_true is not None:
            scores += 1.0
            scores[y_true] -= 1.0
        return int(scores.argmax())

    def argmax_batch(self, X: Sequence[Any], w: Any, y_true: Sequence[Any] | None = None) -> list[int]:
        """The same for several inputs, by one product."""
        scores = np.array([_dense(x) for x in X]) @ w.reshape(self.n_classes, -1).T
        if y_true is not None:
            scores += 1.0
            scores[np.arange(len(X)), y_true] -= 1.0
        return scores.argmax(axis=1).tolist()  # type: ignore[no-any-return]

    def loss(self, y_true: Any, y: Any) -> float:
        """1 for the wrong class."""
        return float(y_true != y)

    def check_saved(
        self, inputs: Sequence[Any] = (), outputs: Sequence[Any] = (), n_features: int | None = None
    ) -> None:
        """Raise where labels are no classes, inputs no vectors, or weights not as many for each class."""
        whole_number("n_classes", self.n_classes, at_least=1)
        for label in outputs:
            whole_number("labels", label, at_least=0, at_most=self.n_classes - 1)
        if n_features is None:
            return
        if not n_features or n_features % self.n_classes:
            raise ValueError(f"coef_ must have as many weights for each of {self.n_classes} classes, got {n_features}")
        for x in inputs:
            is_vector = issparse(x) or (isinstance(x, np.ndarray) and x.dtype.kind in "biuf")
            if not is_vector or math.prod(x.shape) != n_features // self.n_classes or not np.isfinite(_dense(x)).all():
                raise ValueError(f"inputs must be vectors of {n_features // self.n_classes} finite numbers, got {x!r}")


def _dense(x: Any) -> NDArray[np.float64]:
    return np.asarray(x.toarray() if issparse(x) else x, dtype=np.float64).ravel()
