"""Tables of any library as polars frames, through narwhals."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from larank.data.tables import library
from larank.validation import on_host

if TYPE_CHECKING:
    import polars


class Table(NamedTuple):
    """A frame, and whether its columns had names, or were given some by their position: x0, x1, ..."""

    frame: polars.DataFrame
    has_names: bool


def table_of(X: Any) -> Table:
    """A table as a polars frame.

    Parameters
    ----------
    X : data frame or array of shape (n_samples, n_columns)
        A frame of polars, pandas, pyarrow or any other library that narwhals knows, or rows of anything.

    Raises
    ------
    ValueError
        If it is no table, or two columns have one name.
    """
    polars = library("polars")
    X = on_host("X", X)
    if isinstance(X, polars.DataFrame):
        return Table(X, True)
    if issparse(X):
        raise TypeError("X must be a table, for whose columns sparse matrices have no kinds; got a sparse matrix")
    narwhals = library("narwhals")
    if isinstance(X, np.ndarray | list | tuple):
        return Table(_of_rows(X), False)
    frame = narwhals.from_native(X, pass_through=True)
    if isinstance(frame, narwhals.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, narwhals.DataFrame):
        return Table(_of_rows(X), False)
    names = [str(name) for name in frame.columns]
    twice = next((name for n, name in enumerate(names) if name in names[:n]), None)
    if twice is not None:
        raise ValueError(f"X must have columns of different names, got {twice!r} twice")
    series = [_of_series(frame.get_column(name), str(name)) for name in frame.columns]
    return Table(polars.DataFrame(series), True)


def _of_rows(X: Any) -> Any:
    polars = library("polars")
    rows = np.asarray(X) if isinstance(X, np.ndarray) else np.asarray(X, dtype=_kind_of(X))
    if rows.dtype.kind == "c":
        raise ValueError("X must hold real numbers, words or dates; Complex data not supported")
    if rows.ndim == 0:
        raise ValueError(
            f"X must be a data frame or an array of rows, got a {type(X).__name__}; pandas.DataFrame makes one of a "
            "dict, and larank.data.TableFile(path).read().frame is that of a file"
        )
    if rows.ndim != 2:
        raise ValueError(
            f"X must be a table of two dimensions. Expected 2D array, got {rows.ndim}D array of shape {rows.shape} "
            "instead. Reshape your data either using array.reshape(-1, 1) if it has a single column, or "
            "array.reshape(1, -1) if it is a single row"
        )
    columns = [rows[:, n] for n in range(rows.shape[1])]
    return polars.DataFrame([_of_values(f"x{n}", values) for n, values in enumerate(columns)])


def _kind_of(X: Any) -> Any:
    """Rows in which there are words beside numbers must not become words as a whole."""
    try:
        return None if np.asarray(X).dtype.kind in "biufc" else object
    except ValueError:  # rows of different lengths
        return object


def _of_series(series: Any, name: str) -> Any:
    """By NumPy where values are numbers, which is quick, or else value by value."""
    if series.dtype.is_numeric():
        values = series.to_numpy()
        if values.dtype.kind in "biuf":
            return _of_values(name, values)
    return _of_values(name, series.to_list())


def _of_values(name: str, values: Any) -> Any:
    polars = library("polars")
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        values = values.astype(np.float32) if values.dtype == np.float16 else values
        return polars.Series(name, np.ascontiguousarray(values), nan_to_null=True)
    if isinstance(values, np.ndarray):
        values = values.tolist()
    present = [None if _is_missing(value) else value for value in values]
    kinds = {type(value) for value in present if value is not None}
    if kinds <= {bool, np.bool_}:
        return polars.Series(name, present, polars.Boolean if kinds else polars.Null)
    if all(issubclass(kind, int | float | Decimal | np.integer | np.floating) for kind in kinds):
        return polars.Series(name, [None if value is None else float(value) for value in present], polars.Float64)
    if len(kinds) == 1 and not kinds <= {str, bytes, dict, list, tuple, set}:
        try:
            return polars.Series(name, present)
        except (TypeError, polars.exceptions.PolarsError):  # objects that it has no type for
            pass
    if kinds & {dict, list, tuple, set}:
        raise TypeError(f"column {name!r} must hold single values, got {min(kinds, key=str).__name__}")
    return polars.Series(name, [None if value is None else str(value) for value in present], polars.String)


def _is_missing(value: Any) -> bool:
    """None, NaN, and what pandas has for them: all that is not equal to itself, or says no to it."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"
