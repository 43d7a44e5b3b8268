"""The base class of linear classifiers: a model with a weight for each feature and function."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.base import FEATURES, ScoringClassifier, functions
from larank.data.schema import RESULT, Schema, floats, integer, labels
from larank.declare import fitted
from larank.validation import validated

# The fitted attributes that predictions are made of; a file of a model holds them.
FITTED_LINEARLY: Schema = {
    "classes_": labels("n_classes"),
    **FEATURES,
    "coef_": floats(functions, "n_features_in_", single=True),
    "intercept_": floats(functions, single=True),
    "n_iter_": integer(),
    "result_": RESULT,
}


class LinearClassifier(ScoringClassifier):
    """A model of weights per feature."""

    coef_: NDArray[np.floating[Any]] = fitted()
    intercept_: NDArray[np.floating[Any]] = fitted()

    def __sklearn_tags__(self) -> Any:
        """Accept sparse input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _decisions(self, X: Any) -> NDArray[np.floating[Any]]:
        X = validated(self, X, reset=False)
        scores: NDArray[np.floating[Any]] = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores.ravel() if len(self.classes_) == 2 else scores
