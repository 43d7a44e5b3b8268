"""How large and how small numbers may be, and what to say of those beyond.

Solvers multiply kernel values with costs, and both with themselves. Within these bounds nothing of that overflows: not
the sum of ten million kernel values in float32, and not C^2 k(x, x) in float64. Squares of features far below the least
bound would vanish, and with them all differences between examples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

_Array = NDArray[Any]

# Of kernel values and squared norms, by precision; no entry of X may be so small that its square is below the least.
LARGEST: Mapping[np.dtype[Any], float] = MappingProxyType({np.dtype(np.float32): 1e30, np.dtype(np.float64): 1e100})
_LEAST: Mapping[np.dtype[Any], float] = MappingProxyType({np.dtype(np.float32): 1e-30, np.dtype(np.float64): 1e-100})
LARGEST_COST = 1e100  # of all examples together

_ROWS_AT_ONCE = 4096
_UNEVEN = 30.0  # times the usual size, from which on a feature makes a problem badly conditioned
_SMALL, _LARGE = 10.0, 100.0  # a size that never does, and one that always does: the constant feature is 1
_NAMED = 5


def check_features(X: Any, names: Sequence[str] | None = None, *, is_training: bool = True, dtype: Any = None) -> None:
    """Raise where features are too large to be multiplied with each other, or, in training, all too small.

    Parameters
    ----------
    X : array or CSR matrix of float32 or float64
        Finite numbers.
    names : sequence of str or None
        Of the features, where they have some.
    is_training : bool
        Whether X is all there is to learn from: a few examples may be as small as they like.
    dtype : dtype or None
        The precision they will be computed with; None is that of X.
    """
    dtype = np.dtype(X.dtype if dtype is None else dtype)
    values = X.data if issparse(X) else X
    flat = np.asarray(values).reshape(-1)
    with np.errstate(over="ignore", under="ignore"):
        squares = float(np.dot(flat, flat))  # no row has more than all of them: in most cases that is all to be done
    if _LEAST[dtype] <= squares <= LARGEST[dtype] or not len(flat):
        return
    norms = squared_norms(X)
    row = int(norms.argmax())
    if norms[row] > LARGEST[dtype]:
        raise ValueError(
            f"X must have examples whose squared norm is at most {LARGEST[dtype]:g} in {dtype}; example {row} has "
            f"{norms[row]:.3g}, and {_widest_feature(X, names)}; scale X, as StandardScaler does"
            f"{_or_float64(dtype, norms[row])}"
        )
    largest = float(np.abs(flat).max())
    least = _LEAST[dtype] ** 0.5
    if is_training and 0 < largest < least:
        raise ValueError(
            f"X must have entries of at least {least:g} in {dtype}, for squares of smaller ones vanish; "
            f"{_widest_feature(X, names)}; scale X, as StandardScaler does"
            f"{_or_float64(dtype, 1.0) if largest**2 >= _LEAST[np.dtype(np.float64)] else ''}"
        )


def check_kernel_values(values: _Array, what: str, ids: Any, others: Any = None) -> None:
    """Raise where a table of kernel values has some that are too large, or no numbers.

    `ids` are those of the examples of its rows and `others` of its columns; `what` they are values of.
    """
    within = np.abs(values) <= LARGEST[np.dtype(values.dtype)]
    if within.all():
        return
    place = np.argwhere(~within)[0]
    examples = [int(numbers[i]) for numbers, i in zip((ids, others), place, strict=False)]
    which = f"example {examples[0]} with itself" if len(examples) == 1 else f"examples {examples[0]} and {examples[1]}"
    raise ValueError(too_large(f"{what}: the kernel value of {which}", float(values[tuple(place)]), values.dtype))


def check_diagonal(diagonal: NDArray[np.float64], what: str, dtype: Any) -> None:
    """Raise where k(x, x), of all examples there are, is so small that others vanish beside it in this precision."""
    largest, least = float(diagonal.max(initial=0.0)), _LEAST[np.dtype(dtype)]
    if 0 < largest < least:
        raise ValueError(
            f"{what}: k(x, x) must be {least:g} or more for some example in {np.dtype(dtype)}, got {largest:.3g} at "
            f"most; scale X or choose other kernel parameters"
            f"{_or_float64(dtype, 1.0) if largest >= _LEAST[np.dtype(np.float64)] else ''}"
        )


def too_large(what: str, value: float, dtype: Any) -> str:
    """What to say of a kernel value in this precision."""
    return (
        f"{what} must be from -{LARGEST[np.dtype(dtype)]:g} to {LARGEST[np.dtype(dtype)]:g} in {np.dtype(dtype)}, got "
        f"{value:.3g}; scale X or choose other kernel parameters{_or_float64(dtype, abs(value))}"
    )


def check_kernel_parameters(kernel: Any, dtype: Any) -> None:
    """Raise where a parameter of a kernel is no number in the precision of the kernel values."""
    for name in ("gamma", "coef0"):
        value = float(getattr(kernel, name, 0.0))
        if abs(value) > float(np.finfo(dtype).max):
            raise ValueError(
                f"{name} must be from -{np.finfo(dtype).max:.3g} to {np.finfo(dtype).max:.3g} with X in "
                f"{np.dtype(dtype)}, got {value:.3g}{_or_float64(dtype, abs(value))}"
            )


def _or_float64(dtype: Any, value: float) -> str:
    return ", or give X in float64" if np.dtype(dtype) == np.float32 and value <= LARGEST[np.dtype(np.float64)] else ""


def squared_norms(X: Any) -> NDArray[np.float64]:
    """Of each example, in float64, without a copy of X."""
    norms = np.zeros(X.shape[0])
    with np.errstate(over="ignore"):
        for first in range(0, X.shape[0], _ROWS_AT_ONCE):
            rows = X[first : first + _ROWS_AT_ONCE].astype(np.float64)
            squares = rows.multiply(rows) if issparse(rows) else rows * rows
            norms[first : first + _ROWS_AT_ONCE] = np.asarray(squares.sum(axis=1)).ravel()
    return norms


def uneven_features(X: Any, names: Sequence[str] | None) -> str:
    """Which features are much larger than most, or than solvers like them, in words; "" where there are none."""
    squares = np.asarray(X.multiply(X).sum(axis=0)).ravel() if issparse(X) else np.einsum("ij,ij->j", X, X)
    sizes = np.sqrt(squares / max(1, X.shape[0]))
    usual = float(np.median(sizes[sizes > 0])) if sizes.any() else 0.0
    large = [j for j in np.argsort(-sizes, kind="stable") if sizes[j] > min(max(_UNEVEN * usual, _SMALL), _LARGE)]
    if not large:
        return ""
    listed = ", ".join(f"{j if names is None else repr(names[j])} (about {sizes[j]:.3g})" for j in large[:_NAMED])
    more = f" and {len(large) - _NAMED} more" if len(large) > _NAMED else ""
    return f"features of large values slow training down: {listed}{more}"


def _widest_feature(X: Any, names: Sequence[str] | None) -> str:
    """The feature with the entry of the largest size, and from where to where it goes."""
    low, high = (
        (X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel())
        if issparse(X)
        else (X.min(axis=0), X.max(axis=0))
    )
    j = int(np.maximum(-low, high).argmax())
    return f"feature {j if names is None else repr(names[j])} goes from {low[j]:.3g} to {high[j]:.3g}"
