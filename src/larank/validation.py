"""Checks of the data that every estimator trains on: examples, labels, held-out examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from larank.blocks.provider import BYTES, read_only
from larank.blocks.ranges import check_features, uneven_features
from larank.sparse import canonical_csr, check_sparse
from larank.training import Outcome


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


class Anonymous(BaseEstimator):  # type: ignore[misc]
    """An estimator without a name, for checks of data that belong to no model yet."""


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
