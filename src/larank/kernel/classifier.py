"""What all kernel machines share: checked data, costs, and scores from support patterns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from larank.base import best_labels, example_costs, sound_csr
from larank.blocks import provider_for
from larank.blocks.kernels import Kernel, kernel_for
from larank.blocks.workers import blas_threads
from larank.training import Outcome, warn_if_early
from larank.training.result import Result

__all__ = ["KernelClassifier", "checked_cost_matrix"]

_NO_LABELS = object()  # None is what a caller may pass by mistake


class KernelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A model of support patterns and their coefficients; subclasses train it."""

    kernel: str | Callable[[Any, Any], ArrayLike]
    C: float
    gamma: float | str
    degree: int
    coef0: float
    cost_matrix: ArrayLike | None
    class_weight: Mapping[Any, float] | str | None
    max_iter: int
    time_limit: float | None
    n_jobs: int | None
    classes_: NDArray[Any]
    support_: NDArray[np.int64]
    dual_coef_: csr_matrix
    result_: Result

    def __sklearn_tags__(self) -> Any:
        """Sparse input is welcome; precomputed kernels are pairwise."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not callable(self.kernel)
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the classes, or with two classes the score of the second against the first.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
            The examples; with ``kernel="precomputed"`` their kernel values with the training examples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            The label with the largest score is the prediction.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The label with the largest score for each example.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
            As for `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels out of `classes_`.
        """
        return best_labels(self.decision_function(X), self.classes_)

    def _validated(self, X: Any, y: Any = _NO_LABELS, *, reset: bool) -> Any:
        """Checked data: arrays and CSR matrices, or, for a callable kernel, any sequence."""
        if callable(self.kernel) and _is_sequence_of_objects(X):
            if isinstance(X, np.ndarray) and X.dtype.kind in "US":
                X = X.astype(object)  # an array of strings cannot hold longer ones
            if y is _NO_LABELS:
                return X
            if y is None:
                raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
            y = np.asarray(y)
            if len(y) != len(X):
                raise ValueError(f"X and y must be equally long, got {len(X)} and {len(y)}")
            if not len(y):
                raise ValueError("X must hold at least one example, got none")
        else:
            is_dense = callable(self.kernel) or self.kernel == "precomputed"
            checks: dict[str, Any] = {"accept_sparse": False if is_dense else "csr"}
            checks.update(dtype=[np.float64, np.float32], order="C", accept_large_sparse=True, reset=reset)
            if y is _NO_LABELS:
                X = validate_data(self, X, **checks)
                return sound_csr(X) if issparse(X) else X
            X, y = validate_data(self, X, y, **checks)
        check_classification_targets(y)
        return sound_csr(X) if issparse(X) else X, y

    def _costs(
        self,
        X: Any,
        y: NDArray[Any],
        classes: NDArray[Any],
        sample_weight: ArrayLike | None,
        class_weight: Mapping[Any, float] | str | None,
    ) -> NDArray[np.float64]:
        if self.cost_matrix is not None:
            checked_cost_matrix(self.cost_matrix, len(classes))
        return example_costs(self.C, X, y, classes, sample_weight, class_weight)

    def _resolved_kernel(self, X: Any) -> Kernel:
        gamma = getattr(self, "gamma_", self.gamma)
        return kernel_for(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0, X=X)

    def _threads(self) -> int:
        if self.n_jobs is not None:
            return self.n_jobs
        return blas_threads()

    def _scores(self, X: Any) -> NDArray[np.float64]:
        if self.kernel == "linear":
            scores = np.asarray(X @ self.coef_.T, dtype=np.float64)
            return np.column_stack([-scores / 2, scores / 2]) if len(self.classes_) == 2 else scores
        return self._expansions(X)

    def _expansions(self, X: Any) -> NDArray[np.float64]:
        """sum_i beta_i k(x_i, x), a column for each of `dual_coef_`."""
        if self.kernel == "precomputed":
            return np.asarray(self.dual_coef_.T.dot(X[:, self.support_].T).T, dtype=np.float64)
        support = self.support_vectors_
        if issparse(support) and not issparse(X):
            X = csr_matrix(X)
        elif issparse(X) and not issparse(support):
            support = csr_matrix(support)
        # Precision and, far from the origin, location are those of the support patterns, whatever is predicted.
        blocks = provider_for(self._resolved_kernel(X), support, n_jobs=self._threads())
        blocks.adopt(support, self.support_)
        with blocks.threads():
            return blocks.scores(X, np.arange(len(self.support_)), self.dual_coef_.toarray())

    def _check_definite(self, half_squared_norm: float, dual: float, costs: NDArray[np.float64], dtype: Any) -> None:
        """With a kernel that is one, no norm is negative and no dual objective exceeds the primal one of w = 0.

        There every wrong class is violated by all of its margin.
        """
        largest = 1.0 if self.cost_matrix is None else float(np.max(self.cost_matrix))
        at_zero = largest * float(costs.sum()) * self._losses_at_zero()
        tolerance = 1e-4 if dtype == np.float32 else 1e-9
        if half_squared_norm >= -tolerance * at_zero and dual <= at_zero * (1 + tolerance):
            return
        found = (
            f"|w|^2 is {2 * half_squared_norm:.3g}"
            if half_squared_norm < 0
            else f"the dual objective {dual:.3g} exceeds that of w = 0, {at_zero:.3g}"
        )
        message = f"kernel must be positive semi-definite, got one that is not on these examples: {found}"
        if self.kernel != "sigmoid":
            raise ValueError(message)
        warnings.warn(f"{message}; the certificate proves nothing", UserWarning, stacklevel=2)

    def _losses_at_zero(self) -> int:
        """Of an example, in margins."""
        return 1

    def _limit_of_precision(self) -> str:
        """Why training could not go on."""
        return "where kernel values are not precise enough to go on, float64 data may do"

    def _warn_if_early(self, outcome: Outcome, stacklevel: int) -> None:
        warn_if_early(
            outcome,
            self.result_,
            max_iter=getattr(self, "max_iter", None),
            time_limit=self.time_limit,
            limit_of_precision=self._limit_of_precision(),
            stacklevel=stacklevel + 1,
        )


def _is_sequence_of_objects(X: Any) -> bool:
    """Whether X is data of its own kind for a callable kernel: strings, graphs and the like, not rows of numbers."""
    if isinstance(X, np.ndarray):
        return X.dtype.kind in "OUS"
    if not isinstance(X, list | tuple):
        return False
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths
        return True
    return not (array.ndim == 2 and array.dtype.kind in "biuf")


def checked_cost_matrix(cost_matrix: ArrayLike, n_classes: int) -> NDArray[np.float64]:
    """The cost matrix as an array, or an error that says what is wrong with it."""
    try:
        delta = np.asarray(cost_matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"cost_matrix must be an array of numbers or None, got {cost_matrix!r}") from None
    if delta.shape != (n_classes, n_classes):
        raise ValueError(
            f"cost_matrix must have one row and column per class, shape {(n_classes, n_classes)}; got {delta.shape}"
        )
    if not np.isfinite(delta).all() or (delta < 0).any() or delta.diagonal().any():
        raise ValueError("cost_matrix must hold finite numbers >= 0 with zeros on the diagonal, got others")
    return delta
