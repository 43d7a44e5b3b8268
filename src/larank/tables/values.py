"""Cells as numbers, truth values, dates and words; a cell that is none of what is wanted is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from larank.data.tables import CellError, ColumnError, first_of, library

if TYPE_CHECKING:
    import polars

# What people write where there is no value; a number or a category is none of these.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "?", "-", "--")

NumberStyle = Literal["point", "comma", "grouped"]
"""12.5 and 1e3; 1.234,5 as in much of Europe; 1,234.5."""
STYLES: tuple[NumberStyle, ...] = ("point", "grouped", "comma")
_SIGNS = " %$€£¥°"  # around numbers
_GROUPED = r"^[+-]?(0|[1-9]\d{0,2}(,\d{3})*)(\.\d*)?$"
_COMMA = r"^[+-]?(\d{1,3}(\.\d{3})+|\d+)?(,\d*)?$"

DATE_FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.fZ",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M",
)


def words_of(series: polars.Series) -> polars.Series:
    """Text without white space around it, null where it says that there is none."""
    polars = library("polars")
    dtype = series.dtype
    if dtype.is_float():
        series = series.fill_nan(None)
        present = series.drop_nulls()
        if (present == present.floor()).all() and (present.abs() < 2**53).all():
            series = series.cast(polars.Int64)  # 3 is 3, also where a missing value made the column 3.0
    words = series.cast(polars.String)
    if dtype in (polars.String, polars.Categorical, polars.Enum):
        words = words.str.strip_chars()
        words = words.set(words.is_in(list(MISSING)), None)
    return words


def numbers_in(words: polars.Series, style: NumberStyle) -> polars.Series:
    """The numbers that words are, written in a style; null where they are none."""
    polars = library("polars")
    words = words.str.strip_chars(_SIGNS)
    if style == "grouped":
        words = words.set(~words.str.contains(_GROUPED), None).str.replace_all(",", "", literal=True)
    elif style == "comma":
        words = words.set(~words.str.contains(_COMMA), None).str.replace_all(".", "", literal=True)
        words = words.str.replace(",", ".", literal=True)
    return words.cast(polars.Float64, strict=False)


def plain_numbers_in(series: polars.Series) -> polars.Series | None:
    """The numbers that text is, if all of it is, as it stands: the usual case, and quick."""
    polars = library("polars")
    if series.dtype != polars.String:
        return None
    found = series.cast(polars.Float64, strict=False)
    return found if found.null_count() == series.null_count() else None


def has_leading_zeros(series: polars.Series) -> bool:
    """Whether some number is written as 007 is: then all of them are codes, and not to be computed with."""
    return bool(series.str.contains(r"^\s*0\d").any())


def dates_in(words: polars.Series, format: str) -> polars.Series:
    """The moments that words are, written in a format; null where they are none."""
    polars = library("polars")
    if "%H" not in format:
        return words.str.to_date(format, strict=False).cast(polars.Datetime("us"))
    return words.str.to_datetime(format, time_unit="us", strict=False)


def numbers_of(series: polars.Series, style: NumberStyle) -> polars.Series:
    """A column as finite numbers; a cell that is none is an error."""
    polars = library("polars")
    dtype = series.dtype
    if dtype in (polars.String, polars.Categorical, polars.Enum):
        found = plain_numbers_in(series) if style == "point" else None
        if found is None:
            words = words_of(series)
            found = numbers_in(words, style)
            _check(found, words, series.name, "is not a number")
    elif dtype.is_numeric() or dtype in (polars.Boolean, polars.Null):
        found = series.cast(polars.Float64)
    elif dtype in (polars.Duration, polars.Time):
        found = (
            series.cast(polars.Int64) / 1e9 if dtype == polars.Time else series.dt.total_microseconds() / 1e6
        ).cast(polars.Float64)
    else:
        raise _of_another_kind(series, "numbers")
    if not found.null_count() and np.isfinite(found.to_numpy()).all():
        return found
    found = found.fill_nan(None)
    if found.is_infinite().any():
        row = first_of(found.is_infinite())
        raise CellError(row, series.name, f"{series[row]!r} is not finite")
    return found


def truths_of(series: polars.Series) -> polars.Series:
    """A column as 0 and 1; a cell that is neither true nor false is an error."""
    polars = library("polars")
    if series.dtype in (polars.Boolean, polars.Null):
        return series.cast(polars.Float64)
    if not (series.dtype.is_numeric() or series.dtype in (polars.String, polars.Categorical, polars.Enum)):
        raise _of_another_kind(series, "true and false")
    words = words_of(series)
    found = words.str.to_lowercase().replace_strict(
        {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}, default=None, return_dtype=polars.Float64
    )
    _check(found, words, series.name, "is neither true nor false")
    return found


def dates_of(series: polars.Series, format: str) -> polars.Series:
    """A column as moments without a time zone, those with one in UTC; a cell that is none is an error."""
    polars = library("polars")
    dtype: Any = series.dtype
    if dtype == polars.Datetime:
        if dtype.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return series.cast(polars.Datetime("us"))
    if dtype in (polars.Date, polars.Null):
        return series.cast(polars.Datetime("us"))
    if dtype not in (polars.String, polars.Categorical, polars.Enum):
        raise _of_another_kind(series, "dates")
    words = words_of(series)
    found = dates_in(words, format or DATE_FORMATS[0])
    _check(found, words, series.name, f"is not a date written as {format or DATE_FORMATS[0]}")
    return found


def _check(found: polars.Series, words: polars.Series, column: str, problem: str) -> None:
    if found.null_count() > words.null_count():
        row = first_of(found.is_null() & words.is_not_null())
        raise CellError(row, column, f"{words[row]!r} {problem}")


def _of_another_kind(series: polars.Series, wanted: str) -> Exception:
    return ColumnError(f"column {series.name!r} must hold {wanted}; got values of type {series.dtype}")


def raw_numbers(frame: polars.DataFrame) -> polars.DataFrame:
    """A table of numbers as they are; a cell that is none, or is missing, is an error."""
    found = frame.with_columns(numbers_of(series, "point") for series in frame)
    for series in found:
        if series.has_nulls():
            raise CellError(first_of(series.is_null()), series.name, "there is no number")
    return found


def seconds_of(moments: polars.Series) -> Any:
    """Seconds since 1970, NaN where there is no moment."""
    return moments.dt.epoch("us").cast(library("polars").Float64).to_numpy() / 1e6
