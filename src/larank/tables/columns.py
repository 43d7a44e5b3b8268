"""Kinds of columns, and what each makes of its cells: features, their names, and a line that tells of it."""
# ruff: noqa: D102  `Column` documents what all kinds have.

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

from larank.data.models import persistable_value
from larank.data.tables import library
from larank.tables.values import (
    NumberStyle,
    dates_of,
    numbers_of,
    seconds_of,
    truths_of,
    words_of,
)

if TYPE_CHECKING:
    import polars

_Float = NDArray[np.float64]
Features = Any
"""An array or a CSR matrix with a row for each cell and a column for each feature."""

_SHOWN = 4  # categories in a line
_LARGEST = 1e300
MOST_HASHES = 1 << 24
_CYCLES = {"year": 365.2425 * 86400, "week": 7 * 86400.0, "day": 86400.0}
Cycle = Literal["year", "week", "day"]


class Column:
    """A column that was seen in training. Subclasses say what its cells become."""

    kind: ClassVar[str]
    name: str

    @property
    def feature_names(self) -> list[str]:
        """One for each feature."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """How many features there are."""
        return len(self.feature_names)

    @property
    def stored(self) -> int:
        """How many features of a row are not zero, by and large."""
        return self.width

    def features(self, series: polars.Series) -> Features:
        """The features of some cells."""
        raise NotImplementedError

    def told(self) -> str:
        """What was made of the column, in a few words."""
        raise NotImplementedError


def _is_sound(*numbers: float) -> bool:
    return all(map(math.isfinite, numbers))


def _refuse_unless(is_sound: bool, kind: Column) -> None:
    if not is_sound:
        raise ValueError(f"{type(kind).__name__} of {kind.name!r} must have values that training can leave, got others")


def _with_indicator(values: list[_Float], missing: NDArray[np.bool_], has_indicator: bool) -> _Float:
    columns = [*values, missing.astype(np.float64)] if has_indicator else values
    return np.column_stack(columns)


@persistable_value
@dataclass(frozen=True)
class NumberColumn(Column):
    """Numbers, less their centre and divided by their scale."""

    kind: ClassVar[str] = "number"

    name: str
    center: float
    scale: float
    fill: float
    has_indicator: bool
    style: NumberStyle
    method: Literal["standard", "robust", "none"]
    n_missing: int

    def __post_init__(self) -> None:
        _refuse_unless(_is_sound(self.center, self.scale, self.fill) and self.scale > 0, self)

    @property
    def feature_names(self) -> list[str]:
        return [self.name, f"{self.name} is missing"] if self.has_indicator else [self.name]

    def features(self, series: polars.Series) -> _Float:
        found = numbers_of(series, self.style)
        missing = found.is_null().to_numpy() if found.null_count() else None
        values = found.to_numpy()
        if missing is not None:
            values = np.where(missing, self.fill, values)
        with np.errstate(over="ignore"):
            values = values - self.center
            values /= self.scale
        if np.isinf(values[[values.argmin(), values.argmax()]]).any():
            values = np.clip(values, -_LARGEST, _LARGEST)
        if not self.has_indicator:
            return values[:, None]
        return _with_indicator([values], np.zeros(len(series), bool) if missing is None else missing, True)

    def told(self) -> str:
        how = {
            "standard": f"standardised (mean {self.center:.4g}, deviation {self.scale:.4g})",
            "robust": f"scaled (median {self.center:.4g}, quartiles {self.scale:.4g} apart)",
            "none": "as it is",
        }[self.method]
        filled = "mean" if self.method == "standard" else "median"
        return f"number, {how}{_told_missing(self.n_missing, f'given the {filled}', self.has_indicator)}"


def _told_missing(count: int, how: str, has_indicator: bool) -> str:
    if not count:
        return ""
    return f"; {count} missing, {how}{' and an indicator' if has_indicator else ''}"


@persistable_value
@dataclass(frozen=True)
class BooleanColumn(Column):
    """True and false, as 1 and 0."""

    kind: ClassVar[str] = "boolean"

    name: str
    fill: float
    has_indicator: bool
    n_missing: int

    def __post_init__(self) -> None:
        _refuse_unless(self.fill in (0.0, 1.0), self)

    @property
    def feature_names(self) -> list[str]:
        return [self.name, f"{self.name} is missing"] if self.has_indicator else [self.name]

    def features(self, series: polars.Series) -> _Float:
        found = truths_of(series)
        return _with_indicator([found.fill_null(self.fill).to_numpy()], found.is_null().to_numpy(), self.has_indicator)

    def told(self) -> str:
        how = f"taken as {'true' if self.fill else 'false'}"
        return f"true or false, as 1 and 0{_told_missing(self.n_missing, how, self.has_indicator)}"


@persistable_value
@dataclass(frozen=True)
class DateColumn(Column):
    """Dates: the time itself, standardised, and where it stands in the year, in the week and in the day."""

    kind: ClassVar[str] = "date"

    name: str
    center: float
    scale: float
    has_indicator: bool
    format: str
    cycles: tuple[str, ...]
    n_missing: int

    def __post_init__(self) -> None:
        sound = _is_sound(self.center, self.scale) and self.scale > 0 and set(self.cycles) <= _CYCLES.keys()
        _refuse_unless(sound, self)

    @property
    def feature_names(self) -> list[str]:
        turns = [f"{self.name}, {part} of the {cycle}" for cycle in self.cycles for part in ("sine", "cosine")]
        return [self.name, *turns, *([f"{self.name} is missing"] if self.has_indicator else [])]

    def features(self, series: polars.Series) -> _Float:
        seconds = seconds_of(dates_of(series, self.format))
        missing = np.isnan(seconds)
        values = [np.where(missing, 0.0, (seconds - self.center) / self.scale)]
        for cycle in self.cycles:
            angle = 2 * math.pi * (seconds / _CYCLES[cycle] % 1.0)
            values += [np.where(missing, 0.0, turn(angle)) for turn in (np.sin, np.cos)]
        return _with_indicator(values, missing, self.has_indicator)

    def told(self) -> str:
        parts = ", ".join(f"the {cycle}" for cycle in self.cycles)
        how = f"{f' (written as {self.format})' if self.format else ''}, standardised"
        missing = _told_missing(self.n_missing, "given the mean", self.has_indicator)
        return f"date{how}{f', and its place in {parts}' if parts else ''}{missing}"


@persistable_value
@dataclass(frozen=True)
class CategoryColumn(Column):
    """Words of which there are few: a feature for each, one for all rare ones, and one for missing ones."""

    kind: ClassVar[str] = "category"

    name: str
    categories: tuple[str, ...]
    n_rare: int
    has_missing: bool
    n_missing: int

    def __post_init__(self) -> None:
        sound = len(set(self.categories)) == len(self.categories) and bool(self.categories or self.n_rare)
        _refuse_unless(sound and self.n_rare >= 0, self)

    @property
    def feature_names(self) -> list[str]:
        names = [f"{self.name}={category}" for category in self.categories]
        return names + [f"{self.name} is rare"] * bool(self.n_rare) + [f"{self.name} is missing"] * self.has_missing

    @property
    def stored(self) -> int:
        return 1

    def features(self, series: polars.Series) -> csr_matrix:
        polars = library("polars")
        words = words_of(series)
        rare = len(self.categories) if self.n_rare else -1
        codes = words.replace_strict(
            list(self.categories), list(range(len(self.categories))), default=rare, return_dtype=polars.Int32
        )
        if words.has_nulls():
            missing = len(self.categories) + bool(self.n_rare) if self.has_missing else -1
            codes = codes.set(words.is_null(), missing)
        places = codes.to_numpy()
        starts = np.concatenate([[0], np.cumsum(places >= 0)])
        places = places[places >= 0]
        return csr_matrix((np.ones(len(places)), places, starts), shape=(len(series), self.width))

    def told(self) -> str:
        shown = ", ".join(self.categories[:_SHOWN])
        more = f", ... ({len(self.categories)} in all)" if len(self.categories) > _SHOWN else ""
        rare = f"; {self.n_rare} rare ones share a feature" if self.n_rare else ""
        return f"category: {shown}{more}{rare}{_told_missing(self.n_missing, 'a category of their own', False)}"


@persistable_value
@dataclass(frozen=True)
class TextColumn(Column):
    """Text, as the words in it: weighed by tf-idf, or hashed to a number of features."""

    kind: ClassVar[str] = "text"

    name: str
    method: Literal["tfidf", "hash"]
    size: int
    vocabulary: tuple[str, ...]
    weights: tuple[float, ...]
    has_indicator: bool
    n_missing: int

    def __post_init__(self) -> None:
        sound = 1 <= self.size <= MOST_HASHES and len(set(self.vocabulary)) == len(self.vocabulary) == len(self.weights)
        sound = sound and all(0 < weight < _LARGEST for weight in self.weights)
        _refuse_unless(sound and len(self.vocabulary) == (self.size if self.method == "tfidf" else 0), self)

    @property
    def feature_names(self) -> list[str]:
        words = self.vocabulary or [str(n) for n in range(self.size)]
        names = [f"{self.name}: {word}" for word in words]
        return [*names, f"{self.name} is missing"] if self.has_indicator else names

    @property
    def stored(self) -> int:
        return 1

    @property
    def width(self) -> int:
        return self.size + self.has_indicator

    @cached_property
    def _vectorizer(self) -> Any:
        if self.method == "hash":
            return HashingVectorizer(n_features=self.size)
        made = TfidfVectorizer(vocabulary=list(self.vocabulary))
        made.idf_ = np.array(self.weights)
        return made

    def features(self, series: polars.Series) -> csr_matrix:
        words = words_of(series)
        found = csr_matrix(self._vectorizer.transform(words.fill_null("").to_list()), dtype=np.float64)
        if not self.has_indicator:
            return found
        return hstack([found, csr_matrix(words.is_null().to_numpy()[:, None].astype(np.float64))], format="csr")

    def told(self) -> str:
        how = f"tf-idf of {self.size} words" if self.method == "tfidf" else f"its words hashed to {self.size} features"
        return f"text, {how}{_told_missing(self.n_missing, 'taken as empty', self.has_indicator)}"


@persistable_value
@dataclass(frozen=True)
class DroppedColumn(Column):
    """A column that is not used."""

    kind: ClassVar[str] = "drop"

    name: str
    reason: str

    @property
    def feature_names(self) -> list[str]:
        return []

    def told(self) -> str:
        return f"left out: {self.reason}"


COLUMNS = (NumberColumn, BooleanColumn, DateColumn, CategoryColumn, TextColumn, DroppedColumn)
KINDS = tuple(kind.kind for kind in COLUMNS)
