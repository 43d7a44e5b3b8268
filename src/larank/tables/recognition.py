"""What kind of column some cells make, and what is learned of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import RobustScaler, StandardScaler

from larank.data.tables import CellError, first_of, library
from larank.tables.columns import (
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    DroppedColumn,
    NumberColumn,
    TextColumn,
)
from larank.tables.values import (
    DATE_FORMATS,
    STYLES,
    NumberStyle,
    dates_in,
    dates_of,
    has_leading_zeros,
    numbers_in,
    numbers_of,
    seconds_of,
    truths_of,
    words_of,
)

if TYPE_CHECKING:
    import polars

_MOSTLY = 0.9  # of the words: then the others are mistakes, not a reason to take all of them for words
_FEW_WORDS = 20  # different ones: those are categories, also if most of them are numbers
_IDENTIFIED = 20  # values, from which on it is no chance that all of them are different
_DISTINCT = 0.95  # of them, at least, where words are identifiers
_OF_TEXT = 0.5  # of them, at least, where words are text
_WORDS_OF_TEXT, _WORDS_OF_LITTLE_TEXT = 2.0, 3.0  # in a cell, on average, of many cells and of few
_TRIED = 1000  # words that a style or a format must fit before all are tried


@dataclass(frozen=True)
class Wishes:
    """How columns are to be encoded: the parameters of `TableEncoder`."""

    scale: str
    min_frequency: int
    max_categories: int
    text: str
    text_features: int


def recognised(series: polars.Series, wanted: str | None, wishes: Wishes) -> Column:
    """The column that some cells make; `wanted` is the kind that was asked for, if any.

    Raises
    ------
    CellError
        If most of the cells are numbers, or dates, but not all.
    """
    polars = library("polars")
    if wanted == "drop":
        return DroppedColumn(series.name, "as asked")
    dtype = series.dtype
    if dtype.is_nested() or dtype in (polars.Binary, polars.Object):
        return DroppedColumn(series.name, f"values of type {dtype}")
    if series.null_count() == len(series):
        return DroppedColumn(series.name, "no values")
    if wanted is not None:
        has_values = dtype != polars.String or words_of(series).null_count() < len(series)
        return _MAKERS[wanted](series, wishes) if has_values else DroppedColumn(series.name, "no values")
    if dtype in (polars.Date, polars.Datetime):
        return _date(series, wishes)
    if dtype == polars.Boolean:
        return _boolean(series, wishes)
    if dtype.is_numeric() or dtype in (polars.Duration, polars.Time):
        return _number_or_identifier(series, numbers_of(series, "point"), "point", wishes)
    if dtype in (polars.Categorical, polars.Enum):
        return _category(series, wishes)
    return _from_words(series, wishes)


def _from_words(series: polars.Series, wishes: Wishes) -> Column:
    words = words_of(series)
    present = words.drop_nulls()
    if not len(present):
        return DroppedColumn(series.name, "no values")
    if set(present.str.to_lowercase().unique().head(3).to_list()) <= {"true", "false"}:
        return _boolean(series, wishes)
    style = None if has_leading_zeros(present) else _style_of(series.name, words, present)
    if style is not None:
        return _number_or_identifier(series, numbers_of(series, style), style, wishes)
    if _date_format_of(series.name, words, present) is not None:
        return _date(series, wishes)
    n_words = float(np.mean(present.str.count_matches(r"\s+").to_numpy() + 1))
    distinct = present.n_unique() / len(present)
    is_large = len(present) >= _IDENTIFIED
    if n_words >= (_WORDS_OF_TEXT if is_large else _WORDS_OF_LITTLE_TEXT) and distinct >= _OF_TEXT:
        return _text(series, wishes)
    if is_large and distinct >= _DISTINCT:
        return DroppedColumn(series.name, f"an identifier, {present.n_unique()} different values in {len(series)} rows")
    return _category(series, wishes)


# ---- Numbers ----


def _style_of(name: str, words: polars.Series, present: polars.Series) -> NumberStyle | None:
    """How numbers are written; None where words are no numbers."""
    for style in STYLES:
        if numbers_in(present.head(_TRIED), style).null_count() == 0 == numbers_in(present, style).null_count():
            return style
    found = numbers_in(words, "point")
    _check_not_mostly(name, words, found, "a number", "number")
    return None


def _check_not_mostly(name: str, words: polars.Series, found: polars.Series, what: str, kind: str) -> None:
    """Raise where a few cells are not what all others are."""
    n_present, n_found = len(words) - words.null_count(), len(found) - found.null_count()
    if n_found >= _MOSTLY * n_present and words.n_unique() > _FEW_WORDS:
        row = first_of(found.is_null() & words.is_not_null())
        raise CellError(
            row,
            name,
            f"{words[row]!r} is not {what}, but {n_found} of {n_present} values are; mend it, or say that the column "
            f"is of another kind: kinds={{{name!r}: 'category'}} (--column '{name}=category')",
        )


def _number_or_identifier(series: Any, found: Any, style: NumberStyle, wishes: Wishes) -> Column:
    if _is_identifier(series.name, found):
        return DroppedColumn(series.name, f"an identifier, a different whole number in each of {len(found)} rows")
    return _number(series, wishes, style, found)


def _is_identifier(name: str, found: polars.Series) -> bool:
    """Whether rows are numbered by it: all different, and in order, without gaps, or called so."""
    if found.has_nulls() or len(found) < _IDENTIFIED or not (found == found.floor()).all():
        return False
    if found.n_unique() < len(found):
        return False
    steps = found.diff().drop_nulls()
    low, high = found.to_numpy().min(), found.to_numpy().max()
    is_called_so = name.lower() in ("id", "index", "row") or name.lower().endswith(("_id", " id", "-id"))
    is_called_so = is_called_so or name.endswith(("Id", "ID"))
    return is_called_so or bool((steps == 1).all()) or high - low + 1 == len(found)


def _number(
    series: polars.Series, wishes: Wishes, style: NumberStyle | None = None, found: polars.Series | None = None
) -> Column:
    if style is None:
        words = words_of(series)
        style = _style_of(series.name, words, words.drop_nulls()) if series.dtype == library("polars").String else None
    style = style or "point"
    found = numbers_of(series, style) if found is None else found
    present = found.drop_nulls().to_numpy()
    n_missing = found.null_count()
    if present.min() == present.max() and not n_missing:
        return DroppedColumn(series.name, f"the same in all rows, {present[0]:g}")
    center, scale = _location(present, wishes.scale)
    fill = float(np.median(present)) if wishes.scale == "none" else center
    return NumberColumn(series.name, center, scale, fill, n_missing > 0, style, wishes.scale, n_missing)  # type: ignore[arg-type]


def _location(present: Any, method: str) -> tuple[float, float]:
    if method == "none":
        return 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        if method == "robust":
            robust = RobustScaler().fit(present[:, None])
            center, scale = float(robust.center_[0]), float(robust.scale_[0])
        else:
            standard = StandardScaler().fit(present[:, None])
            center, scale = float(standard.mean_[0]), float(standard.scale_[0])
    if not np.isfinite([center, scale]).all():  # squares of numbers near the largest there are
        center, scale = 0.0, float(np.abs(present).max())
    return center, scale if scale > 0 else 1.0


def _boolean(series: polars.Series, wishes: Wishes) -> Column:
    found = truths_of(series)
    if not found.has_nulls() and found.n_unique() == 1:
        return DroppedColumn(series.name, f"the same in all rows, {'true' if found[0] else 'false'}")
    return BooleanColumn(series.name, float(np.nanmean(found.to_numpy()) >= 0.5), found.has_nulls(), found.null_count())


def have_fractions(words: polars.Series) -> bool:
    """Return whether all words are numbers in one of the known styles, and some of them are not whole."""
    for style in STYLES:
        found = numbers_in(words, style)
        if not found.null_count():
            return bool((found != found.floor()).any())
    return False


# ---- Dates ----


def _date_format_of(name: str, words: polars.Series, present: polars.Series) -> str | None:
    """The format that all words have, or None."""
    tried = present.head(_TRIED)
    for format in DATE_FORMATS:
        some = dates_in(tried, format)
        if some.null_count() > (1 - _MOSTLY) * len(tried):
            continue
        found = dates_in(words, format)
        if found.null_count() == words.null_count():
            return format
        if format not in _AMBIGUOUS:
            _check_not_mostly(name, words, found, f"a date written as {format}", "date")
    return None


def are_dates(words: polars.Series) -> bool:
    """Return whether all words are dates in one of the known formats."""
    return any(not dates_in(words, format).null_count() for format in DATE_FORMATS)


_AMBIGUOUS = tuple(format for format in DATE_FORMATS if "/%d/" in format or "/%m/%Y" in format)


def _date(series: polars.Series, wishes: Wishes) -> Column:
    format = ""
    if series.dtype == library("polars").String:
        words = words_of(series)
        format = _date_format_of(series.name, words, words.drop_nulls()) or ""
    moments = dates_of(series, format)
    seconds = seconds_of(moments)
    present = seconds[~np.isnan(seconds)]
    n_missing = len(seconds) - len(present)
    if present.min() == present.max() and not n_missing:
        return DroppedColumn(series.name, f"the same in all rows, {moments[0]}")
    center, scale = _location(present, "standard")
    spread = float(present.max() - present.min())
    cycles = [
        cycle
        for cycle, is_there in (
            ("year", spread > 90 * 86400),
            ("week", spread > 6 * 86400),
            ("day", bool((present % 86400 != 0).any())),
        )
        if is_there
    ]
    return DateColumn(series.name, center, scale, n_missing > 0, format, tuple(cycles), n_missing)


# ---- Words ----


def _category(series: polars.Series, wishes: Wishes) -> Column:
    words = words_of(series)
    n_missing = words.null_count()
    counts = (
        words.drop_nulls()
        .value_counts(sort=True, name="times")
        .sort(["times", words.name or ""], descending=[True, False])
    )
    if len(counts) < 2 and not n_missing:
        return DroppedColumn(series.name, f"the same in all rows, {counts[words.name][0]!r}")
    common = counts.filter(counts["times"] >= wishes.min_frequency).head(wishes.max_categories)
    if not len(common):
        return DroppedColumn(series.name, f"{len(counts)} different values, and none more than once")
    categories = tuple(sorted(common[words.name].to_list()))
    return CategoryColumn(series.name, categories, len(counts) - len(common), n_missing > 0, n_missing)


def _text(series: polars.Series, wishes: Wishes) -> Column:
    words = words_of(series)
    n_missing = words.null_count()
    if wishes.text == "hash":
        return TextColumn(series.name, "hash", wishes.text_features, (), (), n_missing > 0, n_missing)
    vectorizer = TfidfVectorizer(min_df=2, max_features=wishes.text_features)
    try:
        vectorizer.fit(words.fill_null("").to_list())
    except ValueError:  # no word comes twice
        return DroppedColumn(series.name, "text in which no word comes in two rows")
    vocabulary = vectorizer.get_feature_names_out().tolist()
    weights = tuple(map(float, vectorizer.idf_))
    return TextColumn(series.name, "tfidf", len(vocabulary), tuple(vocabulary), weights, n_missing > 0, n_missing)


_MAKERS = {"number": _number, "boolean": _boolean, "date": _date, "category": _category, "text": _text}
