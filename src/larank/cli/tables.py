"""Tables as commands meet them: which column has the labels, and what becomes of the others."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import typer
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline

from larank.cli.console import say, short
from larank.data.files import DataFormatError
from larank.data.stream import EncodedTable
from larank.data.tables import ColumnLabels, TableBlock, TableFile, library
from larank.tables.columns import KINDS
from larank.tables.encoder import TableEncoder
from larank.tables.recognition import are_dates, have_fractions
from larank.tables.values import raw_numbers

_SAMPLE_CELLS = 4_000_000  # of a table larger than memory, by which its columns are recognised
_FEW_CLASSES = 10  # more of them, with fewer than two rows each, are unique values
_MANY_CLASSES = 100  # more than this are not taken for classes unless --label is given
_STEP_OF_PIPELINE = ("encoder", "classifier")

# ---- Options ----

Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="Tables: the column of the labels, by name or position (1, 2, ...); by default the last one.",
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER", help="CSV: what is between cells; found out by default. tab is a tab.", show_default=False
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="CSV: whether the first line holds names; found out by default.",
        show_default=False,
    ),
]
Encoding = Annotated[str, typer.Option(metavar="NAME", help="CSV: its encoding, such as cp1252 or latin-1.")]


@dataclass(frozen=True)
class Reading:
    """The options by which tables are read."""

    delimiter: str | None
    header: bool | None
    encoding: str

    def file(self, path: Path) -> TableFile:
        """A table in a file."""
        delimiter = "\t" if self.delimiter in ("tab", "\\t") else self.delimiter
        return TableFile(path, delimiter, "auto" if self.header is None else self.header, self.encoding)

    def check_acts(self, path: Path, **others: object) -> None:
        """Refuse options of tables where a file is none; `others` are those that a command has beside."""
        given = {"delimiter": self.delimiter, "header": self.header, **others}
        given |= {"encoding": None if self.encoding == "utf-8" else self.encoding}
        for name, value in given.items():
            if value not in (None, False, []):
                raise typer.BadParameter(f"--{name} cannot act: {path} is not a table (.csv, .tsv, .parquet, .arrow)")


def label_column(file: TableFile, columns: Sequence[str], wanted: str | None) -> str:
    """The name of the column that has the labels."""
    if wanted is None:
        named = [name for name in columns if not _are_unnamed([name])]  # lines may end with a delimiter
        return (named or columns)[-1]
    if wanted in columns:
        return wanted
    if wanted.lstrip("-").isdigit() and 1 <= abs(int(wanted)) <= len(columns):
        place = int(wanted)
        return columns[place - 1 if place > 0 else place]
    known = ", ".join(map(repr, columns[:20]))
    raise ValueError(f"{file.path}, line 1: there is no column {wanted!r} for --label; the columns are {known}")


def kinds_of(given: Sequence[str]) -> dict[str, str]:
    """What --column NAME=KIND says."""
    kinds = {}
    for each in given:
        name, _, kind = each.rpartition("=")
        if not name or kind not in KINDS:
            raise typer.BadParameter(f"--column must be NAME=KIND with a KIND of {', '.join(KINDS)}; got {each!r}")
        kinds[name] = kind
    return kinds


# ---- Training ----


class Encoded(NamedTuple):
    """Examples of a table."""

    X: Any
    y: npt.NDArray[Any]


class TableData:
    """A table to be trained on, and others like it to be tested on.

    Parameters
    ----------
    reading : Reading
        How files are read.
    path : Path
        The table.
    label : str, optional
        What --label says.
    encoder : TableEncoder, optional
        What makes features; without one columns are taken as they are.
    """

    def __init__(self, reading: Reading, path: Path, label: str | None, encoder: TableEncoder | None) -> None:
        self._reading, self.encoder = reading, encoder
        self.file, self._wanted = reading.file(path), label

    def read(self) -> Encoded:
        """All examples."""
        block = self.file.read()  # once, for it may be a pipe
        self._begin(block.frame.columns)
        self._meet(block)
        self._check_classes()
        y = self._labels.array(block)
        if self.encoder is None:
            return Encoded(self._features(block), y)
        with block.located():
            return Encoded(self.encoder.fit_transform(block.frame), y)

    def stream(self) -> EncodedTable:
        """The examples block by block; columns are recognised by rows from all of the file."""
        self._begin(self.file.columns())
        sample = self.file.sample(_SAMPLE_CELLS, self._meet)
        self._check_classes()
        if self.encoder is not None:
            with sample.located():
                self.encoder.fit(sample.frame)
        numbers = self._names if self.encoder is None else self.encoder.plain_numbers
        return EncodedTable(self.file, self._encoded, numbers)

    def read_test(self, path: Path) -> Encoded:
        """Examples of another file, encoded alike."""
        file = self._reading.file(path)
        block = file.read()
        labels = ColumnLabels(label_in(file, block.frame.columns, self.label, self._names))
        labels.meet(block)
        return Encoded(self._features(block), labels.array(block))

    def model(self, classifier: Any) -> Any:
        """What is saved: the encoder and the classifier, or the classifier alone."""
        if self.encoder is None:
            classifier.feature_names_in_ = np.array(self._names, dtype=object)  # which blocks of a stream do not have
            return classifier
        return Pipeline(list(zip(_STEP_OF_PIPELINE, (self.encoder, classifier), strict=True)))

    def say_columns(self) -> None:
        """Report the column of the labels and, in a line for each other column, what was made of it."""
        which = "the last column," if self._wanted is None else "column"
        classes = self._labels.classes
        say(f"the label is {which} {self.label!r}, with {len(classes)} classes: {short(classes, shown=5)}")
        if self.encoder is not None:
            for line in self.encoder.summary().splitlines():
                say(f"  {line}")

    def _begin(self, columns: Sequence[str]) -> None:
        """Find the label among the columns."""
        self.label = label_column(self.file, columns, self._wanted)
        if len(columns) < 2:
            raise ValueError(f"{self.file.path}, line 1: only one column, {columns[0]!r}; is the delimiter right?")
        self._names = [name for name in columns if name != self.label]
        self._labels = ColumnLabels(self.label)
        if self.encoder is not None:
            self.encoder.set_params(label=self.label)
            for name in (self.encoder.kinds or {}).keys() - set(columns):
                known = ", ".join(map(repr, columns[:20]))
                raise ValueError(f"{self.file.path}, line 1: there is no column {name!r} for --column; it has {known}")

    def _meet(self, block: TableBlock) -> None:
        """Note the labels of a block. If the command line does not name their column, the error asks for --label."""
        try:
            self._labels.meet(block)
        except DataFormatError as error:
            if self._wanted is not None:
                raise
            self._ask_for_label(str(error))

    def _check_classes(self) -> None:
        place, known = f"{self.file.path}, column {self.label!r}", self._labels.known
        if len(known) < 2:
            raise ValueError(
                f"{place}: all labels are {known[0]!r}, but there must be two classes or more; --label names another "
                "column"
            )
        if self._wanted is None and (found := _why_no_labels(self._labels)):
            self._ask_for_label(f"{place}: {found}, which does not look like labels")

    def _ask_for_label(self, problem: str) -> NoReturn:
        others = ", ".join(map(repr, self._names[:20]))
        raise typer.BadParameter(
            f"{problem}. Without --label the last column is the label. Give --label COLUMN, one of {others}, or "
            f"--label {shlex.quote(self.label)} if that is right"
        )

    def _encoded(self, block: TableBlock) -> Encoded:
        X = self._features(block)
        return Encoded(X if issparse(X) else np.ascontiguousarray(X), self._labels.array(block))

    def _features(self, block: TableBlock) -> Any:
        return features_of(block, self.encoder, self._names)


def _why_no_labels(labels: ColumnLabels) -> str:
    """Return what a column looks like instead of labels; nothing if it may hold labels."""
    words, count = library("polars").Series(labels.known), len(labels.classes)
    if are_dates(words):
        return f"{count} different dates"
    is_unique = count > _FEW_CLASSES and count > labels.n_rows / 2
    if is_unique or count > _MANY_CLASSES:
        return f"{count} different values in {labels.n_rows} rows"
    return "numbers with fractions" if have_fractions(words) else ""


def features_of(block: TableBlock, encoder: TableEncoder | None, names: Sequence[str]) -> Any:
    """The features of a block: by an encoder, or columns of these names as they are."""
    block = _renamed(block, names)
    with block.located():
        if encoder is not None:
            return encoder.transform(block.frame)
        return raw_numbers(block.frame.select(_chosen(block, names)))


def _chosen(block: TableBlock, names: Sequence[str]) -> list[str]:
    found = block.frame.columns
    missing = [name for name in names if name not in found]
    if missing:
        listed = ", ".join(map(repr, missing[:10]))
        raise ValueError(f"{block.file.path}, line 1: there is no column {listed}, which the model needs")
    return list(names)


def _renamed(block: TableBlock, names: Sequence[str]) -> TableBlock:
    """Columns without names, as many as the model has, are the model's by position."""
    found = block.frame.columns
    if len(found) != len(names) or list(names) == found or not (_are_unnamed(found) and _are_unnamed(names)):
        return block
    return block._replace(frame=block.frame.rename(dict(zip(found, names, strict=True))))


def _are_unnamed(names: Sequence[str]) -> bool:
    return all(name.startswith("column ") and name[7:].isdigit() for name in names)


# ---- Models ----


class TableModel(NamedTuple):
    """A model by its parts: what makes features of a table, if anything does, and the classifier."""

    encoder: TableEncoder | None
    classifier: Any

    @classmethod
    def of(cls, model: Any) -> TableModel:
        """The parts of a model that was loaded."""
        if isinstance(model, Pipeline) and isinstance(model[0], TableEncoder):
            return cls(model[0], model[-1] if len(model) == 2 else model[1:])
        return cls(None, model)

    @property
    def names(self) -> list[str]:
        """The columns that the model was trained on, if they had names."""
        found = getattr(self.encoder or self.classifier, "feature_names_in_", ())
        return [str(name) for name in found]

    def columns(self, block: TableBlock) -> list[str]:
        """The columns of a file that are features; by position where the model knows no names."""
        found = block.frame.columns
        if self.names:
            return self.names
        width = self.classifier.n_features_in_
        if len(found) not in (width, width + 1):
            taken = "; its last column was taken as the label"
            raise ValueError(f"{block.file.path} has {len(found) - 1} features, the model {width}{taken}")
        return found[:width]

    def features(self, block: TableBlock) -> Any:
        """What the classifier is asked with."""
        found = features_of(block, self.encoder, self.columns(block))
        return found if self.names else np.ascontiguousarray(found)

    def read_labelled(self, file: TableFile, label: str | None) -> Encoded:
        """The examples of a file with their labels."""
        block = file.read()
        known = None if self.encoder is None else self.encoder.label
        labels = ColumnLabels(label_in(file, block.frame.columns, label or known, self.names))
        labels.meet(block)
        return Encoded(self.features(block), labels.array(block))

    def width_of_matrices(self, model_file: Path) -> int:
        """How many features a matrix must have; a model of tables takes none."""
        if self.encoder is not None:
            columns = ", ".join(map(repr, self.names[:5]))
            raise ValueError(f"{model_file} takes tables with the columns {columns}, ...; got a file that is no table")
        width: int = self.classifier.n_features_in_
        return width

    def blocks(self, file: TableFile) -> Iterator[TableBlock]:
        """A file block by block."""
        return file.blocks(numbers=self.names if self.encoder is None else self.encoder.plain_numbers)


def label_in(file: TableFile, columns: Sequence[str], wanted: str | None, names: Sequence[str]) -> str:
    """The column of the labels of a file that a model meets: as in training, or the only one that is no feature."""
    if wanted is not None:
        return label_column(file, columns, wanted)
    others = [name for name in columns if name not in names]
    if names and len(others) == 1:
        return others[0]
    if names and len(others) != 1:
        found = ", ".join(map(repr, others[:10])) or "none"
        raise ValueError(f"{file.path}, line 1: which column has the labels? --label names it; beside features {found}")
    return columns[-1]
