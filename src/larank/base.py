"""What all estimators share: scores and labels, sound data, classes, and the cost of each example."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from types import MethodType
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from larank import declare
from larank.blocks.provider import BYTES, read_only
from larank.blocks.ranges import LARGEST_COST, check_features, uneven_features
from larank.data.schema import Schema, Scope, count, optional, texts
from larank.declare import Declared, ParameterError, as_float, fitted
from larank.publishing import of_one_model
from larank.sparse import canonical_csr, check_sparse
from larank.training import Outcome

# What C=inf is in a solver where k(x, x) is 1: far above coefficients of hard margins, and below where margins round.
HARD_COST = 1e8
_Estimator = TypeVar("_Estimator", bound=BaseEstimator)
_Method = TypeVar("_Method", bound=Callable[..., Any])


# Of every estimator whose examples are rows of features.
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

    def _check_together(self) -> None:
        """Raise a ParameterError for values of parameters that cannot be combined."""

    def _why_no_stream(self) -> str:
        """Return which parameter value rules out `partial_fit` and what to set instead, or "" if none does."""
        if isinstance(getattr(self, "class_weight", None), str):
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


def on_host(name: str, values: Any) -> Any:
    """Return an array of another library, such as PyTorch, as a NumPy array, and anything else unchanged.

    Raises
    ------
    TypeError
        If NumPy cannot read the array because it is in the memory of a device.
    """
    if isinstance(values, np.ndarray) or not hasattr(values, "__dlpack__"):
        return values
    try:
        return np.asarray(values)
    except (TypeError, RuntimeError, ValueError) as error:
        kind = f"{type(values).__module__.partition('.')[0]}.{type(values).__name__}"
        where = f" on device {values.device}" if hasattr(values, "device") else ""
        raise TypeError(
            f"{name} must be an array that NumPy can read, got {kind}{where}. Copy it to the memory of the host, for "
            f"example by {name}.detach().cpu() in PyTorch, {name}.get() in CuPy, {name}.to_device(...) in others"
        ) from error


def validated(
    estimator: BaseEstimator,
    X: Any,
    *y: Any,
    reset: bool,
    sparse: bool = True,
    objects: bool = False,
    as_bytes: bool = False,
) -> Any:
    """Checked data: X, or with labels (X, y).

    Parameters
    ----------
    estimator : estimator
        Whose data they are.
    X : array, CSR matrix or sequence
        The examples; arrays and CSR matrices of floating-point numbers are used as they are, others are converted.
        Arrays of other libraries are converted to NumPy, also under scikit-learn's ``array_api_dispatch``.
    *y : array
        The labels, if there are to be any. None is what a caller may pass by mistake.
    reset : bool
        Whether these data say how many features there are, or must have as many as those before.
    sparse : bool
        Whether sparse matrices are accepted.
    objects : bool
        Whether sequences of anything else than numbers are.
    as_bytes : bool
        Whether arrays of bytes are used as they are, too.
    """
    if isinstance(X, str | PathLike):
        raise ValueError(
            f"X must hold examples, got {str(X)!r}. Read a file with larank.data.read, or use LinearMulticlassSVC or "
            "LinearSGDClassifier, whose fit takes the path of a file"
        )
    X, y = on_host("X", X), tuple(on_host("y", each) for each in y)
    if objects and _is_sequence_of_objects(X):
        if isinstance(X, np.ndarray) and X.dtype.kind in "US":
            X = X.astype(object)  # an array of strings cannot hold longer ones
        X = list(read_only(X)) if isinstance(X, list) else read_only(X)  # once, so that examples keep their identity
        if not y:
            return X
        labels: Any = _labels_of_objects(estimator, X, *y)
    else:
        if issparse(X):
            check_sparse(X)
        types: list[Any] = [np.float64, np.float32, *(BYTES if as_bytes and isinstance(X, np.ndarray) else ())]
        checks = {"dtype": types, "order": "C", "accept_large_sparse": True, "reset": reset}
        # It sums up X, to see whether all is finite.
        with _names_wrong_column(X), np.errstate(over="ignore", invalid="ignore"):
            found = validate_data(estimator, X, *y, accept_sparse="csr" if sparse else False, **checks)
        X, labels = found if y else (found, None)
        X = canonical_csr(X) if issparse(X) else X
        if not _has_values_of_the_caller(estimator) and X.dtype not in BYTES:
            check_features(X, getattr(estimator, "feature_names_in_", None), is_training=reset)
        if not y:
            return X
    check_classification_targets(labels)
    return X, labels


@contextmanager
def _names_wrong_column(X: Any) -> Iterator[None]:
    """Let an error about values of X say in which column the first of them is, which scikit-learn does not."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        found = _wrong_entry(X)
        if found is None:
            raise
        column, value, row = found
        told = value.item() if isinstance(value, np.generic) else value
        kind = TypeError if isinstance(error, TypeError) else ValueError
        first, _, _ = str(error).partition("\n")
        hint = "" if issparse(X) or not _is_word_or_gap(value) else _TABLES
        where = f"column {column!r} holds {told!r} in row {row}"
        raise kind(f"X must hold finite numbers, but {where}{hint}. {first}") from error


_TABLES = ". larank.TableEncoder makes numbers of words and missing values; put it before the estimator in a pipeline"


def _wrong_entry(X: Any) -> tuple[Any, Any, int] | None:
    """Return the column, value and row of the first value in the first column that does not hold finite numbers."""
    names: Any = getattr(X, "columns", None)
    if issparse(X):
        entries = X.tocoo()
        wrong = next((at for at, value in enumerate(entries.data) if not _is_finite_number(value)), None)
        return None if wrong is None else (int(entries.col[wrong]), entries.data[wrong], int(entries.row[wrong]))
    table = np.asarray(X) if names is None else X
    for place in range(table.shape[1] if len(table.shape) == 2 and len(table) else 0):
        column = np.asarray(table[:, place] if names is None else table[names[place]])
        is_right = np.isfinite(column) if column.dtype.kind in "biuf" else np.vectorize(_is_finite_number)(column)
        if not is_right.all():
            row = int(is_right.argmin())
            return (place if names is None else names[place]), column[row], row
    return None


def _is_word_or_gap(value: Any) -> bool:
    """Whether a value that is not a finite number is text or a missing value."""
    try:
        return not isinstance(value, complex) and math.isnan(float(value))
    except OverflowError:
        return False
    except (TypeError, ValueError):
        return True


def _is_finite_number(value: Any) -> bool:
    try:
        return not isinstance(value, complex) and math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def _has_values_of_the_caller(estimator: BaseEstimator) -> bool:
    """Whether kernel values are the caller's, and not made of features, whose sizes then matter."""
    kernel = getattr(estimator, "kernel", None)
    return kernel == "precomputed" if isinstance(kernel, str) else callable(kernel)


def _labels_of_objects(estimator: BaseEstimator, X: Any, y: Any) -> NDArray[Any]:
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    labels = np.asarray(y)
    if len(labels) != len(X):
        raise ValueError(f"X and y must be equally long, got {len(X)} and {len(labels)}")
    if not len(labels):
        raise ValueError("X must hold at least one example, got none")
    return labels


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


def unfitted(estimator: _Estimator, **changed: Any) -> _Estimator:
    """Return a copy without a model that has the same parameters except `changed`, also those a subclass hides."""
    copy: _Estimator = clone(estimator)
    for name, value in {**declare.values_of(estimator), **changed}.items():
        setattr(copy, name, clone(value, safe=False))
    return copy


def classes_of(y: NDArray[Any]) -> NDArray[Any]:
    """The classes in y, of which there must be two or more."""
    classes = np.unique(y)
    check_several_classes(classes.tolist())
    return classes


def check_several_classes(classes: Sequence[Any]) -> None:
    """Raise where all labels are one class."""
    if len(classes) == 1:
        raise ValueError(f"y must hold at least two classes, got one class: {classes[0]!r}")


def check_same_type(y: NDArray[Any], others: NDArray[Any], where: str) -> None:
    """Raise where words are among numbers, which NumPy would make words too; `where` the others are."""
    if (others.dtype.kind in "OUS") != (y.dtype.kind in "OUS"):
        raise ValueError(f"y must hold labels of the same type as those {where}, {others.dtype}; got {y.dtype}")


def check_two_classes(y: NDArray[Any], costs: NDArray[np.float64]) -> None:
    """Raise where weights of zero leave fewer."""
    if len(np.unique(y[costs > 0])) < 2:
        raise ValueError("sample_weight and class_weight must leave at least two classes with a weight above zero")


def checked_label_costs(
    label_costs: ArrayLike | Mapping[tuple[Any, Any], float], classes: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the required margins as a matrix in the order of the classes, or raise if something is wrong with them."""
    n_classes = len(classes)
    if isinstance(label_costs, Mapping):
        delta = 1 - np.eye(n_classes)
        columns = {label: column for column, label in enumerate(classes.tolist())}
        for pair, cost in label_costs.items():
            if not isinstance(pair, tuple) or len(pair) != 2 or any(label not in columns for label in pair):
                raise ParameterError(
                    "label_costs", f"must map pairs of labels to margins; got the key {pair!r} with labels {[*columns]}"
                )
            delta[columns[pair[0]], columns[pair[1]]] = as_float(cost)
    else:
        try:
            delta = np.asarray(label_costs, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(
                "label_costs", f"must be a mapping, an array of numbers or None; got {label_costs!r}"
            ) from None
    if delta.shape != (n_classes, n_classes):
        raise ParameterError(
            "label_costs", f"must have one row and column per class, shape {(n_classes, n_classes)}; got {delta.shape}"
        )
    if not np.isfinite(delta).all() or (delta < 0).any() or delta.diagonal().any():
        raise ParameterError("label_costs", "must hold finite numbers >= 0 with zeros on the diagonal; got others")
    return delta


def check_weights(weights: NDArray[np.float64]) -> None:
    """Raise a ValueError for the first weight that is negative or not finite."""
    bad = (weights < 0) | ~np.isfinite(weights)
    if bad.any():
        where = int(np.argmax(bad))
        reason = "; a negative weight would reward errors. Use 0 to omit an example" if weights[where] < 0 else ""
        raise ValueError(
            f"sample_weight must be finite and not negative, got {weights[where]} for example {where}{reason}"
        )


def example_costs(
    C: float,
    X: Any,
    y: NDArray[Any],
    classes: NDArray[Any],
    sample_weight: ArrayLike | None,
    class_weight: Mapping[Any, float] | str | None,
) -> NDArray[np.float64]:
    """`C` times the weights of each example, which must not all be zero.

    Parameters
    ----------
    C : float
        The cost of an example of weight one; infinity is `HARD_COST`, whatever the weight, if it is not zero.
    X : array, CSR matrix or sequence
        The examples.
    y : ndarray
        Their labels, all of them in `classes`.
    classes : ndarray
        Sorted.
    sample_weight, class_weight
        As the estimators take them.
    """
    sample_weight = on_host("sample_weight", sample_weight)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if sample_weight is not None and hasattr(X, "shape"):
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if weight.shape != (len(y),):
        raise ValueError(f"sample_weight must have one entry per example, {len(y)}; got shape {weight.shape}")
    check_weights(weight)
    factors = np.ones(len(classes))
    if class_weight is not None:
        factors = compute_class_weight(class_weight, classes=classes, y=y)
    return _costs(C, weight, factors[np.searchsorted(classes, y)])


def class_factors(
    class_weight: Mapping[Any, float] | str | None,
    classes: NDArray[Any],
    counts: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The factors of sorted classes, by the number of examples of each and their weights together."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        factors: NDArray[np.float64] = counts.sum() / (len(classes) * counts)
    else:
        factors = compute_class_weight(class_weight, classes=classes, y=classes)
    if np.count_nonzero(weights * factors) < 2:
        raise ValueError("sample_weight and class_weight must leave at least two classes with a weight above zero")
    return factors


def _costs(C: float, weight: NDArray[np.float64], factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """`C` times the weights of examples and the factors of their classes, neither too large nor lost by rounding."""
    counts = (weight > 0) & (factors > 0)
    if not counts.any():
        raise ValueError("sample_weight and class_weight leave no example with a weight above zero")
    with np.errstate(over="ignore", under="ignore"):
        costs: NDArray[np.float64] = np.where(counts, HARD_COST, 0.0) if math.isinf(C) else C * (weight * factors)
        total = float(costs.sum())
    if not total <= LARGEST_COST:
        raise ValueError(
            f"C times sample_weight and class_weight must sum to at most {LARGEST_COST:g} over all examples, got "
            f"{total:.3g}; choose a smaller C or smaller weights"
        )
    lost = counts & (costs == 0)
    if lost.any():
        i = int(np.argmax(lost))
        raise ValueError(
            f"C times sample_weight and class_weight must be above zero where none of them is zero, but {C:g} times "
            f"{weight[i]:g} times {factors[i]:g}, of example {i}, vanishes; choose a larger C or larger weights"
        )
    return costs


def hardened(costs: NDArray[np.float64], diagonal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Costs that stand for infinity, where kernel values are smaller: coefficients of hard margins grow with 1 / k."""
    largest = float(diagonal.max(initial=0.0))
    return costs / largest if 0 < largest < 1 else costs


def smallest_margin(scores: NDArray[np.float64], labels: NDArray[Any], delta: NDArray[np.float64]) -> float:
    """Of hard margins, the smallest (S_i^y - S_i^y') / Delta(y, y').

    Scores divided by it keep all of them. Where it is not above zero, no multiple does.
    """
    wanted = delta[labels]
    found = np.take_along_axis(scores, labels[:, None].astype(np.intp), axis=1) - scores
    at_once = np.where(found < 0, -np.inf, np.inf)  # what a margin of zero asks for, it has or it has not
    return float(np.divide(found, wanted, out=at_once, where=wanted > 0).min(initial=np.inf))


def hard_objective(half_squared_norm: float, margin: float) -> float:
    """The primal objective of hard margins, 1/2 |w|^2, of the multiple of w whose smallest margin is one."""
    return half_squared_norm / margin / margin if margin > 0 else math.inf  # the square may be rounded to 0


def advised(outcome: Outcome, X: Any, estimator: BaseEstimator) -> Outcome:
    """The outcome; where a limit ended training, with a word on features whose size may be the reason."""
    is_matrix = issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f")
    if outcome.status not in ("max_iter", "time_limit") or not is_matrix or _has_values_of_the_caller(estimator):
        return outcome
    uneven = uneven_features(X, getattr(estimator, "feature_names_in_", None))
    if not uneven:
        return outcome
    return replace(outcome, advice=f"{uneven}; scale X, as larank.TableEncoder and StandardScaler do")


def held_out_examples(
    validation: tuple[Any, ArrayLike], validate: Callable[[Any, NDArray[Any]], Any], classes: NDArray[Any] | None
) -> tuple[Any, NDArray[Any]]:
    """The examples that `fit` is given to validate with, checked; some label must be known, if any is."""
    try:
        X, y = validation
    except (TypeError, ValueError):
        what = f"{len(validation)} of them" if isinstance(validation, tuple) else type(validation).__name__
        raise ValueError(f"validation must be a pair (X, y), got {what}") from None
    X, y = validate(X, np.asarray(on_host("validation[1]", y)))
    if classes is not None and not np.isin(y, classes).any():
        raise ValueError(f"validation must have labels that y has too, such as {classes[0]!r}; got {y[0]!r}")
    return X, y
