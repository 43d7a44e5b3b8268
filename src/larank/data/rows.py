"""Rows of svmlight files and of tables in text, read block by block; a whole file is one block.

What is wrong in a file raises `DataFormatError` with path and line, when the block that has the line is read.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_matrix

from larank import _core
from larank.data.files import COMPRESSORS, PathLike, decompressed, located, share_read

_PIECE_BYTES = 1 << 22  # of text, at a time
_SMALLEST_PIECE = 1 << 16
_LABEL_BYTES, _LABEL_RATIO = 1 << 25, 100  # what strings of labels may take, and how many times their text besides
_PIECE_CELLS = 1 << 13  # of a table, as words; many more leave the cache


class FileRows(NamedTuple):
    """Some rows of a file, their labels, the lines they stand in, and how much of the file was read by then."""

    X: Any
    y: NDArray[Any]
    first_line: int
    last_line: int
    share_read: float | None


@dataclass(frozen=True)
class LabelText:
    """Labels as they are written, each followed by a line end, and the lines they stand in."""

    text: bytes
    lines: Sequence[int] | NDArray[np.int64]
    cells: list[str] | None = None  # of a table, where a label in quotes may have line ends of its own

    @classmethod
    def of_cells(cls, cells: list[str], lines: Sequence[int] | NDArray[np.int64]) -> LabelText:
        """Labels of a table."""
        return cls("".join(f"{cell}\n" for cell in cells).encode(), lines, cells)

    def array(self) -> NDArray[Any]:
        """Integers if all labels are written as integers, floating-point numbers if all are numbers, or words."""
        numbers = _core.label_numbers(self.text)
        return self.strings() if numbers is None or len(numbers) != len(self.lines) else numbers

    def strings(self) -> NDArray[Any]:
        """The labels as an array, in which each has the room of the longest: one line must not blow up all others."""
        words = self.words()
        longest = max(map(len, words))
        if 4 * longest * len(words) > _LABEL_BYTES + _LABEL_RATIO * len(self.text):
            line = self.lines[next(n for n, word in enumerate(words) if len(word) == longest)]
            raise ValueError(
                f"line {line}: a label of {longest} characters; as long a string for each of {len(words)} labels would "
                "take too much memory"
            )
        return np.array(words)

    def words(self) -> list[str]:
        """The labels one by one."""
        if self.cells is not None:
            return self.cells
        try:
            return self.text.decode().split("\n")[:-1]
        except UnicodeDecodeError as error:
            line = self.lines[self.text.count(b"\n", 0, error.start)]
            raise ValueError(f"line {line}: the label is not UTF-8") from None


Labelling = Callable[[LabelText], NDArray[Any]]


@dataclass(frozen=True)
class SvmlightText:
    """How a file in svmlight format is read; the options are those of `read_svmlight`."""

    n_features: int | None
    zero_based: bool | Literal["auto"]
    dtype: DTypeLike

    def __post_init__(self) -> None:
        if self.zero_based not in (True, False, "auto"):
            raise ValueError(f"zero_based={self.zero_based!r} is not supported; accepted are True, False and 'auto'")
        if self.n_features is not None and not 0 <= self.n_features < 2**31:
            raise ValueError(f"n_features={self.n_features!r} is out of range; accepted are None and 0 to 2147483647")
        floating(self.dtype)

    def rows(
        self, path: PathLike, n_bytes: int | None = None, labelling: Labelling = LabelText.array
    ) -> Generator[FileRows]:
        """Blocks that end with the row that brings them to so many bytes; by default one block."""
        base = "detect" if self.zero_based == "auto" else "zero" if self.zero_based else "one"
        kind = _core.SvmlightReader32 if floating(self.dtype) == np.float32 else _core.SvmlightReader64
        reader = kind(base=base, features=-1 if self.n_features is None else self.n_features, block_bytes=n_bytes)
        with open(path, "rb") as file, located(path, lambda: reader.lines), decompressed(file) as stream:
            for text in _whole_lines(stream, _piece_bytes(n_bytes)):
                end = reader.feed(text)
                while end < len(text):
                    yield _taken(reader, labelling, share_read(file))
                    end = reader.feed(text, end)
            yield _taken(reader, labelling, share_read(file))


@dataclass(frozen=True)
class TableText:
    """How delimited text is read; the options are those of `read_csv`."""

    label: int | str
    header: bool | Literal["auto"]
    delimiter: str | None
    dtype: DTypeLike

    def __post_init__(self) -> None:
        if self.header not in (True, False, "auto"):
            raise ValueError(f"header={self.header!r} is not supported; accepted are True, False and 'auto'")
        floating(self.dtype)

    def rows(
        self, path: PathLike, n_bytes: int | None = None, labelling: Labelling = LabelText.array
    ) -> Generator[FileRows]:
        """Blocks of as many rows as have so many bytes, at least one; by default one block."""
        delimiter = self.delimiter
        if delimiter is None:
            delimiter = "\t" if format_suffix(path) == ".tsv" else ","
        with open(path, "rb") as file, decompressed(file) as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            lines = csv.reader(text, delimiter=delimiter, strict=True)
            with located(path, lambda: lines.line_num):
                for X, labels in _table_blocks(lines, self, n_bytes):
                    yield FileRows(X, labelling(labels), int(labels.lines[0]), int(labels.lines[-1]), share_read(file))


def format_suffix(path: PathLike) -> str:
    """The part of a file's name that tells its format, in small letters and without that of its compression."""
    name = Path(path)
    return Path(name.stem if name.suffix.lower() in COMPRESSORS else name.name).suffix.lower()


def floating(dtype: DTypeLike) -> np.dtype[Any]:
    """The type of features: float32 or float64."""
    found = np.dtype(dtype)
    if found not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} is not supported; accepted are float32 and float64")
    return found


def is_not_finite(word: str) -> bool:
    """Whether a label is a word for a number that is not finite."""
    return word.lower().removeprefix("+").removeprefix("-") in ("nan", "inf", "infinity")


# ---- svmlight ----


def _piece_bytes(n_bytes: int | None) -> int:
    """How much text is read at a time: little where blocks are small."""
    return _PIECE_BYTES if n_bytes is None else min(_PIECE_BYTES, max(n_bytes, _SMALLEST_PIECE))


def _whole_lines(stream: Any, piece_bytes: int) -> Iterator[bytes]:
    """Pieces of text that end with a line end, each as soon as it is decompressed."""
    pending = bytearray()
    mark = codecs.BOM_UTF8  # at the beginning
    while piece := stream.read1(piece_bytes):
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield b"".join((pending, piece[:cut])).removeprefix(mark)
            mark = b""
            pending.clear()
        pending += piece[cut:]
    if pending:
        yield bytes(pending).removeprefix(mark) + b"\n"


def _taken(
    reader: _core.SvmlightReader32 | _core.SvmlightReader64, labelling: Labelling, share: float | None
) -> FileRows:
    values, indices, starts, columns, label_text, lines = reader.take()
    y = labelling(LabelText(label_text, lines))
    X = csr_matrix((values, indices, starts), shape=(len(y), columns))
    X.has_canonical_format = True
    return FileRows(X, y, int(lines[0]), int(lines[-1]), share)


# ---- Tables ----


def _table_blocks(lines: Any, table: TableText, n_bytes: int | None) -> Iterator[tuple[NDArray[Any], LabelText]]:
    first = next((row for row in lines if row), None)
    if first is None:
        raise ValueError("line 1: no examples")
    width, column = len(first), _label_column(first, table, lines.line_num)
    body = lines if _is_header(first, table, column) else chain([first], lines)
    records = ((lines.line_num, row) for row in body if row)
    dtype = floating(table.dtype)
    rows = None if n_bytes is None else max(1, n_bytes // (dtype.itemsize * (width - 1)))
    block = _table_block(islice(records, rows), width, column, dtype)
    if block is None:
        raise ValueError(f"line {lines.line_num}: no examples")
    while block is not None:
        yield block
        block = _table_block(islice(records, rows), width, column, dtype)


def _table_block(
    records: Iterator[tuple[int, list[str]]], width: int, column: int, dtype: np.dtype[Any]
) -> tuple[NDArray[Any], LabelText] | None:
    """The features and labels of numbered lines; None where there are no lines left."""
    labels, numbers, lines = list[str](), list[NDArray[Any]](), list[NDArray[np.int64]]()
    while piece := list(islice(records, max(1, _PIECE_CELLS // width))):
        labels += [_take_label(row, column, width, line) for line, row in piece]
        numbers.append(_feature_numbers(piece, dtype))
        lines.append(np.array([line for line, _ in piece]))
    if not labels:
        return None
    return np.concatenate(numbers).reshape(len(labels), width - 1), LabelText.of_cells(labels, np.concatenate(lines))


def _label_column(first: list[str], table: TableText, line: int) -> int:
    label = table.label
    if len(first) < 2:
        raise ValueError(f"line {line}: only one column, {first[0]!r}; is the delimiter right?")
    if isinstance(label, str):
        names = [cell.strip() for cell in first]
        if table.header is False:
            raise ValueError(f"line {line}: label={label!r} is a name, but header=False says that there are none")
        if label not in names:
            raise ValueError(f"line {line}: label={label!r} is none of the columns {names}")
        return names.index(label)
    if not -len(first) <= label < len(first):
        raise ValueError(f"line {line}: label={label} is out of range for {len(first)} columns")
    return label % len(first)


def _is_header(first: list[str], table: TableText, column: int) -> bool:
    if table.header != "auto":
        return table.header
    features = first[:column] + first[column + 1 :]
    return isinstance(table.label, str) or (all(features) and not any(map(_is_number, features)))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _feature_numbers(piece: list[tuple[int, list[str]]], dtype: np.dtype[Any]) -> NDArray[Any]:
    parse = _core.decimals32 if dtype == np.float32 else _core.decimals64
    cells = [cell for _, row in piece for cell in row]
    numbers = parse(("\n".join(cells) + "\n").encode())
    if numbers is not None and len(numbers) == len(cells):
        return numbers
    line, cell = next(
        (line, cell) for line, row in piece for cell in row if "\n" in cell or parse(f"{cell}\n".encode()) is None
    )
    raise ValueError(f"line {line}: {cell!r} is not a finite number in {dtype}")


def _take_label(row: list[str], column: int, width: int, line: int) -> str:
    if len(row) != width:
        raise ValueError(f"line {line}: {len(row)} columns, but the first line has {width}")
    word = row.pop(column).strip()
    if not word or is_not_finite(word):
        raise ValueError(f"line {line}: the label {word!r} is empty or not finite")
    if "\ufeff" in word:
        raise ValueError(f"line {line}: there is a byte order mark in the label {word!r}")
    return word
