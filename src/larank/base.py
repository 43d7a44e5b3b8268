"""What all estimators share: scores and labels, methods that exist under a condition, copies without a model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from types import MethodType
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from larank import declare
from larank.data.schema import Schema, Scope, count, optional, texts
from larank.declare import Declared, ParameterError, fitted
from larank.publishing import of_one_model
from larank.validation import on_host

_Estimator = TypeVar("_Estimator", bound=BaseEstimator)
_Method = TypeVar("_Method", bound=Callable[..., Any])

# Fitted attributes of every estimator whose examples are rows of features.
FEATURES: Schema = {"n_features_in_": count(1), "feature_names_in_": optional(texts("n_features_in_"))}


def functions(scope: Scope) -> int:
    """How many functions a saved classifier has: one for two classes, otherwise one for each."""
    n_classes = scope.sizes["n_classes"]
    return 1 if n_classes == 2 else n_classes


def available_unless(reason: Callable[[Any], str]) -> Callable[[_Method], _Method]:
    """Make a method available unless `reason(model)` says why it is not; a decorator.

    Where it is not, `hasattr` is False, and the AttributeError gives the reason and what to use instead.
    """

    def conditional(method: _Method) -> _Method:
        return cast(_Method, _Conditional(method, reason))

    return conditional


def absent(reason: str) -> Any:
    """Return a method that does not exist, for a class: the AttributeError says why, and what to use instead."""
    return _Conditional(None, lambda model: reason)


def of_streams(method: _Method) -> _Method:
    """Make `partial_fit` available unless `_why_no_stream` returns a reason; a decorator."""
    return available_unless(lambda model: model._why_no_stream())(method)


class _Conditional:
    """A method that an estimator has under a condition; None stands for a method that the class never has."""

    def __init__(self, method: Callable[..., Any] | None, reason: Callable[[Any], str]) -> None:
        self._method, self._reason = method, reason

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, kind: type) -> Any:
        if model is None and self._method is not None:
            return self._method
        reason = self._reason(model)
        if reason or self._method is None:
            raise AttributeError(f"{kind.__name__} has no {self._name} {reason}")
        return MethodType(self._method, model)


NO_PROBABILITIES = (
    "because its scores are not probabilities. Use sklearn.calibration.CalibratedClassifierCV with this estimator, or "
    "PrimalMulticlassSVC, which has predict_proba with its default loss"
)


_NO_STREAM = (
    "because it needs all examples at once. LaRankClassifier, LaSVMClassifier and LinearSGDClassifier learn from "
    "examples that come in parts"
)


class Estimator(BaseEstimator, Declared):  # type: ignore[misc]
    """What all estimators have in common with those of scikit-learn, and what they do not have."""

    set_callbacks: ClassVar[Any] = absent(
        "because its fit calls no callbacks of scikit-learn. Give them to the Pipeline or the search that contains it, "
        "which calls them before and after fit"
    )

    _UNUSED_SWITCHES: ClassVar[tuple[str, ...]] = ()  # switches of value objects that have no effect in this class

    def _check_together(self) -> None:
        """Raise a ParameterError for values of parameters that cannot be combined."""
        values = {name: value for name, value in declare.values_of(self).items() if isinstance(value, declare.Value)}
        for name, value in values.items():
            for switch, each in declare.parameters_of(type(value)).items():
                found = getattr(value, switch)
                if switch in self._UNUSED_SWITCHES and not each.is_default(found):
                    raise ParameterError(
                        name, f"has {switch}={found!r}, which has no effect in {type(self).__name__}. Remove {switch}"
                    )

    def _why_no_stream(self) -> str:
        """Return which parameter value rules out `partial_fit` and what to set instead, or "" if none does."""
        weights = getattr(self, "class_weight", None)
        if isinstance(weights, str) and weights == "balanced":
            return "with class_weight='balanced', which needs all examples at once; class_weight must be a dict or None"
        return ""


class ScoringClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """A classifier that has a score for every class."""

    classes_: NDArray[Any] = fitted()
    predict_proba: ClassVar[Any] = absent(NO_PROBABILITIES)
    partial_fit: ClassVar[Any] = absent(_NO_STREAM)

    @of_one_model
    def decision_function(self, X: Any) -> Any:
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
        return self._in_kind(X, self._finite_decisions(X))

    def _finite_decisions(self, X: Any) -> NDArray[np.floating[Any]]:
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._decisions(X)
        finite = np.isfinite(scores)
        if not finite.all():
            wrong = int(np.argwhere(~finite)[0][0])
            raise ValueError(
                f"X must have examples that scores can be computed of, but those of example {wrong} overflow"
            )
        return scores

    @abstractmethod
    def _decisions(self, X: Any) -> NDArray[np.floating[Any]]:
        """What `decision_function` returns, of a fitted model."""

    @of_one_model
    def predict(self, X: Any) -> Any:
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
        scores = self._finite_decisions(X)
        best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return self._in_kind(X, self.classes_[best.astype(np.intp)])

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The fraction of examples whose label is predicted; with `sample_weight`, of their weights.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
            As for `predict`.
        y : array of shape (n_samples,)
            The true labels.
        sample_weight : array of shape (n_samples,), optional
            How much each example counts.
        """
        y, sample_weight = on_host("y", y), on_host("sample_weight", sample_weight)
        return float(super().score(X, y, sample_weight))

    def _in_kind(self, X: Any, values: NDArray[Any]) -> Any:
        """What is returned for X: an array of the same library, where the estimator knows it."""
        return values


def unfitted(estimator: _Estimator, **changed: Any) -> _Estimator:
    """Return a copy without a model that has the same parameters except `changed`, also those a subclass hides."""
    copy: _Estimator = clone(estimator)
    for name, value in {**declare.values_of(estimator), **changed}.items():
        setattr(copy, name, clone(value, safe=False))
    return copy
