"""Tables in files: delimited text, Parquet and Arrow, read by polars in blocks, with the place of every row.

Text is read as it stands, a string for each cell; what the strings mean is the business of `larank.tables`. What is
wrong in a file raises `DataFormatError` with the path and, in text, the line.
"""

from __future__ import annotations

import codecs
import csv
import importlib
import io
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from larank.data.files import DataFormatError, PathLike, decompressed, located, opened, share_read
from larank.data.rows import LabelText, format_suffix, is_not_finite

if TYPE_CHECKING:
    import polars

TEXT_FORMATS = (".csv", ".tsv")
BINARY_FORMATS = (".parquet", ".arrow", ".feather", ".ipc")

_DELIMITERS = (",", ";", "\t", "|")
_BLOCK_BYTES = 1 << 22  # more is slower: memory that is asked for anew each time
_HEAD_BYTES = 1 << 16  # by which the delimiter is found, and the smallest block of text
_LONGEST_RECORD = 1 << 27  # bytes, after which a quote is one that nobody closed
_MOST_LABELS = 10_000
_BLANK_LINES = re.compile(rb"\n(?:\r?\n)+")
_QUOTED_OR_BLANK_LINES = re.compile(rb'"[^"]*"|\n(?:\r?\n)+')


class CellError(ValueError):
    """What is wrong with a cell, by the number of its row, from 0 on, and the name of its column."""

    def __init__(self, row: int, column: str, problem: str) -> None:
        super().__init__(f"row {row}, column {column!r}: {problem}")
        self.row, self.column, self.problem = row, column, problem


class ColumnError(ValueError):
    """What is wrong with the columns of a table."""


def library(name: str) -> Any:
    """A library of the extra `tables`.

    Raises
    ------
    ValueError
        If it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ValueError(f"tables need the package {name}; pip install 'larank[tables]' brings it") from None


def first_of(is_wrong: polars.Series) -> int:
    """The first row of which it is true."""
    return is_wrong.fill_null(False).to_list().index(True)


def is_table(path: PathLike) -> bool:
    """Whether the name of a file is one of a table with columns of any kind."""
    return format_suffix(path) in (*TEXT_FORMATS, *BINARY_FORMATS)


class TableBlock(NamedTuple):
    """Some rows of a table."""

    frame: polars.DataFrame
    file: TableFile
    first_row: int = 0  # its number in the file, from 0 on
    step: int = 1  # from a row to the next
    share_read: float | None = None  # of the file, by its bytes or rows, when this block was read

    @contextmanager
    def located(self) -> Iterator[None]:
        """Say of a cell that is wrong, or of a column, where it stands in the file."""
        try:
            yield
        except CellError as error:
            place = self.file.place(self.first_row + self.step * error.row)
            raise DataFormatError(f"{place}, column {error.column!r}: {error.problem}") from None
        except ColumnError as error:
            raise DataFormatError(f"{self.file.path}{', line 1' if self.file.is_text else ''}: {error}") from None


@dataclass(frozen=True)
class TableFile:
    """A table in a file, read anew and block by block each time it is asked for.

    Parameters
    ----------
    path : path-like
        `.csv` and `.tsv` are delimited text, perhaps followed by `.gz`, `.bz2` or `.xz`; `.parquet` is Parquet;
        `.arrow`, `.feather` and `.ipc` are Arrow files, of which Feather is one.
    delimiter : str, optional
        Of text: by default a tab for `.tsv`, and else whichever of comma, semicolon, tab and bar the first two lines
        have most of.
    header : bool or "auto"
        Of text: whether the first line holds names. "auto" says yes unless some cell of it is a number. Without names,
        columns are called "column 1", "column 2" and so on.
    encoding : str
        Of text; UTF-16 is recognised by its byte order mark.
    """

    path: PathLike
    delimiter: str | None = None
    header: bool | Literal["auto"] = "auto"
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        suffix = format_suffix(self.path)
        if suffix not in (*TEXT_FORMATS, *BINARY_FORMATS):
            accepted = " ".join((*TEXT_FORMATS, *BINARY_FORMATS))
            raise ValueError(f"{self.path}: not the name of a table; accepted are {accepted}")
        if self.delimiter is not None and (len(self.delimiter.encode()) != 1 or self.delimiter in '"\r\n'):
            raise ValueError(f"delimiter must be one ASCII character, no quote or line end; got {self.delimiter!r}")
        if self.header not in (True, False, "auto"):
            raise ValueError(f"header must be True, False or 'auto', got {self.header!r}")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise ValueError(f"encoding must be the name of one, such as 'cp1252'; got {self.encoding!r}") from None
        for name, value, usual in (("delimiter", self.delimiter, None), ("header", self.header, "auto")):
            if not self.is_text and value != usual:
                raise ValueError(f"{self.path}: {name} cannot be set for a file of this format")

    @property
    def is_text(self) -> bool:
        """Whether a cell has a line."""
        return format_suffix(self.path) in TEXT_FORMATS

    def read(self) -> TableBlock:
        """The whole table."""
        frames = [block.frame for block in self.blocks()]
        return TableBlock(library("polars").concat(frames), self)

    def columns(self) -> list[str]:
        """The names of the columns, as the beginning of the file tells them."""
        with closing(self.blocks(1)) as blocks:
            return next(blocks).frame.columns

    def sample(self, n_cells: int, meet: Callable[[TableBlock], None]) -> TableBlock:
        """Rows from all of the table, the same distance apart, of so many cells at most.

        Parameters
        ----------
        n_cells : int
            Of the rows that are returned; all others are read and forgotten.
        meet : callable
            It is shown every block.
        """
        concat, step = library("polars").concat, 1
        kept: list[polars.DataFrame] = []
        for block in self.blocks():
            meet(block)
            kept.append(block.frame.gather_every(step, -block.first_row % step))
            while sum(len(frame) for frame in kept) * block.frame.width > n_cells:
                kept, step = [concat(kept).gather_every(2)], 2 * step
        return TableBlock(concat(kept), self, step=step)

    def blocks(self, n_bytes: int = _BLOCK_BYTES, numbers: Sequence[str] = ()) -> Generator[TableBlock]:
        """Read the table from its beginning, in blocks of about so many bytes, one row at least in all.

        Parameters
        ----------
        n_bytes : int
            Of the text of a block; of binary files, of eight bytes for each cell.
        numbers : sequence of str
            Columns of text that are known to hold plain numbers, which are made at once then. In a block where some
            are no numbers they stay text.

        Raises
        ------
        DataFormatError
            With path and line, for lines that are too short or too long, quotes that are not closed, text in another
            encoding, names that come twice, tables without rows, and damaged data.
        """
        polars = library("polars")
        if self.is_text:
            return self._text_blocks(n_bytes, numbers)
        return self._binary_blocks(polars, n_bytes)

    def place(self, row: int) -> str:
        """Where a row stands: the path and, in text that can be read again, the line."""
        if not self.is_text or not Path(self.path).is_file():
            return f"{self.path}, row {row + 1}"
        with opened(self.path) as stream:
            text = io.TextIOWrapper(stream, encoding=_encoding(stream.peek(2), self.encoding), newline="")
            try:
                return f"{self.path}, line {self._line(row, text)}"
            except (csv.Error, UnicodeError):  # what polars reads another way, such as carriage returns within cells
                return f"{self.path}, row {row + 1}"
            finally:
                text.detach()

    # ---- Text ----

    def _line(self, row: int, text: io.TextIOWrapper) -> int:
        """The line in which a row begins."""
        head = text.read(_HEAD_BYTES)
        layout = _layout(head, self)
        number, begin = -layout.records_before, 1
        with closing(_lines_after(head, text)) as pieces:
            lines = csv.reader(pieces, delimiter=layout.delimiter)
            for record in lines:
                if record and number == row:
                    break
                number += bool(record)
                begin = lines.line_num + 1
        return begin

    def _text_blocks(self, n_bytes: int, numbers: Sequence[str]) -> Generator[TableBlock]:
        with open(self.path, "rb") as file, located(self.path), decompressed(file) as stream:
            n_bytes = max(n_bytes, _HEAD_BYTES)
            texts = _whole_records(_with_line_ends(_in_utf8(stream, n_bytes, self)), n_bytes)
            first = next(texts, b"")
            if not first or first.isspace():
                raise DataFormatError(f"{self.path}, line 1: no rows")
            layout = _layout(first.decode(errors="replace"), self)  # what is no UTF-8 is found where it stands
            parser = _Parser(self.path, layout, numbers)
            row = 0
            for text in _and_then(parser.without_header(first), texts):
                frame = parser.frame(text)
                if len(frame):
                    yield TableBlock(frame, self, row, share_read=share_read(file))
                    row += len(frame)
            if not row:
                raise DataFormatError(f"{self.path}, line {parser.line}: no rows")

    # ---- Parquet and Arrow ----

    def _binary_blocks(self, polars: Any, n_bytes: int) -> Generator[TableBlock]:
        with open(self.path, "rb"):  # a file that is not there, or may not be read, is told of as everywhere
            pass
        scan = polars.scan_parquet if format_suffix(self.path) == ".parquet" else polars.scan_ipc
        with _damaged_by(self.path, polars):
            table = scan(str(self.path), glob=False)
            n_rows = table.select(polars.len()).collect().item()
            width = len(table.collect_schema())
        if not n_rows or not width:
            raise DataFormatError(f"{self.path}: no rows")
        step = max(1, n_bytes // (8 * width))
        for row in range(0, n_rows, step):
            with _damaged_by(self.path, polars):
                frame = table.slice(row, step).collect()
            yield TableBlock(frame, self, row, share_read=min(1.0, (row + step) / n_rows))


@contextmanager
def _damaged_by(path: PathLike, polars: Any) -> Iterator[None]:
    """Say of whatever polars makes of a damaged file that it is one; a panic of its is no Exception."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        first = str(error).partition("\n")[0]
        raise DataFormatError(f"{path}: not a file of its format, or damaged ({first})") from None


def _and_then(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from others


def _lines_after(head: str, text: io.TextIOWrapper) -> Generator[str]:
    """The lines of a text whose head was read."""
    *whole, part = re.split(r"(?<=\n)", head)
    yield from whole
    yield part + text.readline()
    while line := text.readline():
        yield line


def _encoding(head: bytes, encoding: str) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding


def _in_utf8(stream: Any, n_bytes: int, table: TableFile) -> Iterator[bytes]:
    """The text of a table in UTF-8, without a byte order mark."""
    encoding = _encoding(stream.peek(2), table.encoding)
    if encoding == "utf-8-sig":
        mark = codecs.BOM_UTF8
        while piece := stream.read(n_bytes):
            yield piece.removeprefix(mark)
            mark = b""
        return
    text = io.TextIOWrapper(stream, encoding=encoding, newline="")
    try:
        while words := text.read(n_bytes):
            yield words.encode()
    except UnicodeError as error:
        raise ValueError(f"the text is not {encoding} ({error})") from None
    finally:
        text.detach()  # who opened the stream closes it


def _with_line_ends(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Text whose lines end with line feeds; those of old computers end with carriage returns alone."""
    is_old = None
    for piece in pieces:
        if is_old is None:
            is_old = b"\r" in piece and b"\n" not in piece
        yield piece.replace(b"\r", b"\n") if is_old else piece


def _whole_records(pieces: Iterator[bytes], n_bytes: int) -> Iterator[bytes]:
    """Pieces that end with a line end outside quotes."""
    pending, line = b"", 1
    for piece in pieces:
        pending = pending + piece if pending else piece
        if len(pending) < n_bytes:
            continue
        cut = _last_line_end(pending)
        if cut:
            whole, pending = pending[:cut], pending[cut:]
            line += _count(whole, b"\n")
            yield whole
        elif len(pending) > _LONGEST_RECORD:
            opens = line + pending.count(b"\n", 0, pending.index(b'"')) if b'"' in pending else line
            raise ValueError(f"line {opens}: a quote or a line does not end within {len(pending)} bytes")
    if pending:
        yield pending if pending.endswith(b"\n") else pending + b"\n"


def _last_line_end(text: bytes) -> int:
    """Where the last record ends that is whole: after a line end with an even number of quotes before it."""
    quotes = text.count(b'"')
    cut = text.rfind(b"\n") + 1
    before = quotes - text.count(b'"', cut)
    while cut and before % 2:
        earlier = text.rfind(b"\n", 0, cut - 1) + 1
        before -= text.count(b'"', earlier, cut)
        cut = earlier
    return cut


class _Layout(NamedTuple):
    """What the first lines of a text tell."""

    delimiter: str
    names: list[str]
    records_before: int  # the first row
    lines_before: int


def _layout(text: str, table: TableFile) -> _Layout:
    path = table.path
    delimiter = table.delimiter or ("\t" if format_suffix(path) == ".tsv" else _delimiter_of(text))
    read: list[str] = []
    lines = csv.reader(_noted(io.StringIO(text, newline=""), read), delimiter=delimiter)
    try:
        first, skipped, line = next((record for record in lines if record), []), 0, 0
        if _names_delimiter(first, delimiter):
            skipped, line = 1, _line_ends(read)
            first = next((record for record in lines if record), [])
    except csv.Error as error:
        raise DataFormatError(f"{path}, line {lines.line_num}: {error}") from None
    cells = [cell.strip() for cell in first]
    if not any(cells):
        raise DataFormatError(f"{path}, line {max(1, lines.line_num)}: no names of columns and no values")
    has_header = not any(map(_is_number, cells)) if table.header == "auto" else table.header
    if not has_header:
        return _Layout(delimiter, [f"column {n}" for n in range(1, len(cells) + 1)], skipped, line)
    names = [cell or f"column {n}" for n, cell in enumerate(cells, 1)]
    twice = next((name for n, name in enumerate(names) if name in names[:n]), None)
    if twice is not None:
        raise DataFormatError(
            f"{path}, line {lines.line_num}, column {twice!r}: two columns have this name; if the first line holds no "
            "names, say so by header=False (--no-header)"
        )
    return _Layout(delimiter, names, skipped + 1, _line_ends(read))


def _noted(lines: Iterable[str], read: list[str]) -> Iterator[str]:
    """Yield lines, and append each to those that were read."""
    for line in lines:
        read.append(line)
        yield line


def _line_ends(read: Sequence[str]) -> int:
    """Return how many line feeds were read. The reader also counts carriage returns, which a quoted name may have."""
    return sum(line.count("\n") for line in read)


def _names_delimiter(record: list[str], delimiter: str) -> bool:
    """Whether a line says what is between cells, for office programs: sep=; and nothing else."""
    return delimiter.join(record).strip().lower() in (f"sep={delimiter}", "sep=")


def _delimiter_of(text: str) -> str:
    """The one that the first two lines have as often, or else the first line most often; not that within quotes."""
    if said := re.match(r"(?i)sep=([,;\t|])\s*\r?\n", text):
        return said[1]
    lines = [line for line in re.sub(r'"[^"]*"', "", text[:_HEAD_BYTES]).splitlines() if line.strip()][:2]
    counts = {each: [line.count(each) for line in lines] for each in _DELIMITERS}
    agreeing = [each for each, found in counts.items() if found and found[0] and len(set(found)) == 1]
    return max(agreeing or _DELIMITERS, key=lambda each: counts[each][:1])


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


class _Parser:
    """Frames of text whose layout is known; `line` is where the next one begins."""

    def __init__(self, path: PathLike, layout: _Layout, numbers: Sequence[str]) -> None:
        self.polars = library("polars")
        self.path, self.layout = path, layout
        self.line = 1
        self._numbers = set(numbers) & set(layout.names)

    def without_header(self, text: bytes) -> bytes:
        """The text after the line of names."""
        start = 0
        for _ in range(self.layout.lines_before):
            start = text.index(b"\n", start) + 1
        try:
            text[:start].decode()
        except UnicodeDecodeError as error:
            self._refuse_encoding(text, error)
        self.line += self.layout.lines_before
        return text[start:]

    def frame(self, text: bytes) -> polars.DataFrame:
        """The rows of some text that ends with a line end."""
        found = None
        if len(self.layout.names) > 1:  # else a blank line would be a cell
            found = self._quickly(text)
        if found is None:
            plain = _without_blank_lines(text)
            found = self._quickly(plain) if plain else self._of_rows([])
        if found is None:
            found = self._carefully(text)
        self.line += _count(text, b"\n")
        return found

    def _quickly(self, text: bytes) -> polars.DataFrame | None:
        """By polars; None where something is odd, which it may fill up, cut, or speak of without a line."""
        polars, names = self.polars, self.layout.names
        for kind in (polars.Float64, polars.String):
            if kind == polars.Float64 and not self._numbers:
                continue
            schema = {name: kind if name in self._numbers else polars.String for name in names}
            try:
                frame = polars.read_csv(text, has_header=False, schema=schema, separator=self.layout.delimiter)
            except polars.exceptions.PolarsError:
                continue
            return frame if self._has_all_cells(frame, text) else None
        return None

    def _has_all_cells(self, frame: polars.DataFrame, text: bytes) -> bool:
        """Whether no line was too short: by the number of delimiters, those within cells aside."""
        delimiter = self.layout.delimiter
        found = _count(text, delimiter.encode())
        if b'"' in text:
            words = [series for series in frame if series.dtype == self.polars.String]
            found -= sum(int(series.str.count_matches(delimiter, literal=True).sum()) for series in words)
        return found == len(frame) * (len(self.layout.names) - 1)

    def _carefully(self, text: bytes) -> polars.DataFrame:
        """Record by record, which finds the line of what is wrong, and reads what is only unusual."""
        names = self.layout.names
        try:
            words = text.decode()
        except UnicodeDecodeError as error:
            self._refuse_encoding(text, error)
        lines = csv.reader(io.StringIO(words, newline=""), delimiter=self.layout.delimiter, strict=True)
        rows, begin = [], self.line
        try:
            for record in lines:
                if record and len(record) != len(names):
                    self._refuse_width(begin, record)
                rows += [record] if record else []
                begin = self.line + lines.line_num
        except csv.Error as error:
            raise DataFormatError(f"{self.path}, line {begin}: {error}; is a quote not closed?") from None
        return self._of_rows(rows)

    def _of_rows(self, rows: list[list[str]]) -> polars.DataFrame:
        cells = [[cell or None for cell in row] for row in rows]
        made: polars.DataFrame = self.polars.DataFrame(
            cells, dict.fromkeys(self.layout.names, self.polars.String), orient="row"
        )
        return made

    def _refuse_width(self, line: int, record: list[str]) -> NoReturn:
        names = self.layout.names
        if len(record) < len(names):
            problem = f"column {names[len(record)]!r}: the line ends before it"
        else:
            problem = f"column {len(record)}: {record[len(names)]!r} has no column"
        listed = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
        raise DataFormatError(
            f"{self.path}, line {line}, {problem}; {len(record)} cells, but {len(names)} columns: {listed}"
        )

    def _refuse_encoding(self, text: bytes, error: UnicodeDecodeError) -> NoReturn:
        begin = text.rfind(b"\n", 0, error.start) + 1
        number = text[begin : error.start].count(self.layout.delimiter.encode())
        name = self.layout.names[min(number, len(self.layout.names) - 1)]
        line = self.line + text.count(b"\n", 0, error.start)
        raise DataFormatError(
            f"{self.path}, line {line}, column {name!r}: the text is not UTF-8; if it comes from an office program, "
            "encoding='cp1252' (--encoding cp1252) may do"
        )


def _count(text: bytes, byte: bytes) -> int:
    """How often a byte is there; quicker than `bytes.count` where it is often."""
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord(byte)))


def _without_blank_lines(text: bytes) -> bytes:
    text = text.lstrip(b"\r\n")
    if b'"' not in text:
        return _BLANK_LINES.sub(b"\n", text)
    return _QUOTED_OR_BLANK_LINES.sub(lambda match: match[0] if match[0].startswith(b'"') else b"\n", text)


# ---- Labels ----


class ColumnLabels:
    """What the labels of a table are: integers, if all of them are written so, numbers, or words.

    Parameters
    ----------
    column : str
        The name of their column.
    """

    def __init__(self, column: str) -> None:
        self.column = column
        self.n_rows = 0
        self._words: set[str] = set()
        self._values: NDArray[Any] | None = None

    @property
    def known(self) -> list[str]:
        """The labels that were met, as they are written."""
        return sorted(self._words)

    @property
    def classes(self) -> list[Any]:
        """The labels that were met, in order, in the type that all of them have."""
        known = self.known
        classes: list[Any] = np.unique(LabelText.of_cells(known, range(len(known))).array()).tolist()
        return classes

    def words(self, block: TableBlock) -> Any:
        """The labels of a block as they are written; a row without one is an error."""
        polars = library("polars")
        series = block.frame[self.column]
        if series.dtype.is_nested() or series.dtype in (polars.Binary, polars.Object):
            raise CellError(0, self.column, f"labels must be words or numbers, got values of type {series.dtype}")
        if series.dtype == polars.Float64 or series.dtype == polars.Float32:
            series = series.fill_nan(None)
        words = series.cast(polars.String).str.strip_chars()
        wrong = words.is_null() | (words == "")
        if wrong.any():
            raise CellError(first_of(wrong), self.column, "there is no label")
        return words

    def meet(self, block: TableBlock) -> None:
        """Take note of the labels of a block."""
        with block.located():
            words = self.words(block)
            found = set(words.unique().to_list())
            for word in filter(is_not_finite, found):
                raise CellError(words.to_list().index(word), self.column, f"the label {word!r} is not finite")
        self.n_rows += len(words)
        self._words |= found
        self._values = None
        if len(self._words) > _MOST_LABELS:
            raise DataFormatError(
                f"{block.file.path}, column {self.column!r}: more than {_MOST_LABELS} different labels; is it a number "
                "to be estimated? Classifiers need classes"
            )

    def array(self, block: TableBlock) -> NDArray[Any]:
        """The labels of a block, which were met before, in the type that all of them have."""
        known = self.known
        if self._values is None:
            self._values = LabelText.of_cells(known, range(len(known))).array()
        with block.located():
            words = self.words(block)
        numbers = words.replace_strict(known, range(len(known)), return_dtype=library("polars").Int32)
        found: NDArray[Any] = self._values[numbers.to_numpy()]
        return found
