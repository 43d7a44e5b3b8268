"""Text in columns, as in the shared tasks of CoNLL: a token per line, an empty line after each sentence.

    Confidence NN B-NP
    in IN B-PP

All lines have the same number of columns. One of them may hold the labels; the others are the columns that templates
speak of. CoNLL-U is recognised and refused. Nothing else is special: `-DOCSTART-` is a token like others, and lines are
comments only where the caller says how these begin, for `#` is a word too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from larank import _core
from larank.data.files import atomic_write, compressed, decompressed, located, share_read
from larank.parameters import whole_number

_PathLike = str | os.PathLike[str]
_BLOCK_BYTES = 1 << 18
_MOST_COLUMNS = 1_000  # each makes a dozen features of every token


class ConllFile:
    """A file in columns, read anew and block by block each time it is asked for; never more than a block is in memory.

    Parameters
    ----------
    path : path-like
        A text file in UTF-8; gzip, bzip2 and xz are recognised by their first bytes.
    columns : sequence of str, optional
        The names of the columns without that of the labels. By default word, pos, col2, col3, ..., as many as the
        first line has.
    label : int or None
        The column of the labels, counted from the end if negative. None: there are none.
    separator : None or "\\t"
        None: columns are separated by any number of blanks. With a tab, words may hold spaces.
    comment : str, optional
        Lines that begin with this are skipped.

    Attributes
    ----------
    share_read : float or None
        How much of the file the last call of `blocks` has read so far, between 0 and 1; None where that cannot be told.
    labels : _core.Dictionary
        The labels met so far, in the order in which they came. Labels in blocks are numbers of this list.

    Raises
    ------
    DataFormatError
        While reading, with path and line: lines with another number of columns than the first or with more than 1 000,
        CoNLL-U, text that is not UTF-8, NUL bytes, empty cells, a file without tokens, damaged compressed data.
    """

    def __init__(
        self,
        path: _PathLike,
        columns: Sequence[str] | None = None,
        label: int | None = -1,
        separator: str | None = None,
        comment: str | None = None,
    ) -> None:
        if label is not None and (not isinstance(label, int) or isinstance(label, bool)):
            raise ValueError(f"label must be the number of a column or None, got {label!r}")
        if separator not in (None, "\t"):
            raise ValueError(f"separator must be None (any blanks) or '\\t', got {separator!r}")
        if comment is not None and (not isinstance(comment, str) or not comment):
            raise ValueError(f"comment must be what comments begin with, such as '# ', or None; got {comment!r}")
        self.path = path
        self.label = label
        self.separator = separator
        self.comment = comment
        self.labels = _core.Dictionary()
        self.share_read: float | None = None
        self._was_read = False
        self._named_columns = None if columns is None else checked_columns(columns)

    def __repr__(self) -> str:
        return f"ConllFile({str(self.path)!r})"

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, without that of the labels."""
        if self._named_columns is not None:
            return self._named_columns
        return default_columns(next(self.blocks(1)).n_columns)

    def blocks(self, tokens: int = 20_000, labels: _core.Dictionary | None = None) -> Iterator[_core.Sentences]:
        """Read the file from its beginning; a block ends with the sentence that brings it to so many tokens.

        Labels are numbered by the list `labels`, which grows, or by the file's own. `len(block)` counts its sentences,
        `starts` says where they begin, `labels` has the number of each token's label (empty if there are none), `lines`
        the line each token stands in, and `sentences()` makes lists of str or of tuples of str.
        """
        reader = _core.ConllReader(
            self.labels if labels is None else labels,
            label=self.label,
            splits_at_tabs=self.separator == "\t",
            comment=self.comment or "",
            expected_cells=0 if self._named_columns is None else len(self._named_columns) + (self.label is not None),
            most_cells=_MOST_COLUMNS,
            block_tokens=whole_number("tokens", tokens, at_least=1),
        )
        return self._read(reader)

    def _read(self, reader: _core.ConllReader) -> Iterator[_core.Sentences]:
        with open(self.path, "rb") as file:
            self._check_first(file.seekable())
            with located(self.path, lambda: reader.lines), decompressed(file) as stream:
                while piece := stream.read1(_BLOCK_BYTES):
                    self.share_read = share_read(file)
                    yield from reader.feed(piece)
                yield from reader.finish()

    def _check_first(self, is_seekable: bool) -> None:
        """Raise where a pipe is read again: what came the first time would be missing."""
        if self._was_read and not is_seekable:
            raise ValueError(
                f"{self.path} is a pipe, which can be read once, but it is needed again, for its columns or another "
                "pass; write it to a file, or use read_conll"
            )
        self._was_read = True


def read_conll(
    path: _PathLike,
    *,
    columns: Sequence[str] | None = None,
    label: int | None = -1,
    separator: str | None = None,
    comment: str | None = None,
) -> tuple[list[list[Any]], list[list[str]] | None]:
    """Read a whole file in columns as lists; the arguments are those of `ConllFile`.

    Returns
    -------
    sentences : list of list
        Tokens are str where there is one column besides the labels, tuples of str where there are more.
    labels : list of list of str, or None
        None with `label=None`.
    """
    file = ConllFile(path, columns, label, separator, comment)
    sentences, labels = list[list[Any]](), list[list[str]]()
    for block in file.blocks():
        sentences += block.sentences()
        names = np.array(file.labels.words(), dtype=object)[block.labels].tolist()
        labels += [names[start:end] for start, end in pairwise(block.starts.tolist())]
    return sentences, None if label is None else labels


def write_conll(
    path: _PathLike,
    sentences: Sequence[Sequence[Any]],
    labels: Sequence[Sequence[str]] | None = None,
    *,
    separator: str = " ",
) -> None:
    """Write sentences in columns, the labels last, replacing the file as a whole.

    Parameters
    ----------
    path : path-like
        Compressed if it ends in `.gz`, `.bz2` or `.xz`.
    sentences : sequence of sequences of str or of tuples of str
        Tokens.
    labels : sequence of sequences of str, optional
        One label per token.
    separator : " " or "\\t"
        What stands between columns.

    Raises
    ------
    ValueError
        If a cell could not be read back (empty, or with white space; with a tab, spaces are allowed), or if lengths
        differ. The message says where; the file stays as it was.
    """
    if separator not in (" ", "\t"):
        raise ValueError(f"separator must be ' ' or '\\t', got {separator!r}")
    if labels is not None and len(labels) != len(sentences):
        raise ValueError(f"there are {len(sentences)} sentences, but {len(labels)} sequences of labels")
    width = 0
    with atomic_write(path) as file, compressed(path, file) as stream:
        for i, tokens in enumerate(sentences):
            rows = _rows(i, tokens, None if labels is None else labels[i])
            width = width or len(rows[0])
            _check_rows(i, rows, width, separator)
            text = "".join(separator.join(row) + "\n" for row in rows) + "\n"
            stream.write(text.encode())


def default_columns(count: int) -> tuple[str, ...]:
    """The names of so many columns: word, pos, col2, col3, ..."""
    return ("word", "pos", *(f"col{k}" for k in range(2, count)))[:count]


def checked_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """The names of columns, if they can be used in templates."""
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns) or not columns:
        raise ValueError(f"columns must be a sequence of names, one or more, such as ('word', 'pos'); got {columns!r}")
    for name in columns:
        if not re.fullmatch(r"[^\[\]()|\s]+", name):
            raise ValueError(f"columns must be names without blanks, brackets and '|', got {name!r}")
    if len(set(columns)) < len(columns):
        raise ValueError(f"columns must be distinct names, got {tuple(columns)!r}")
    return tuple(columns)


def _rows(i: int, tokens: Sequence[Any], labels: Sequence[str] | None) -> list[tuple[str, ...]]:
    """The lines of a sentence."""
    if not len(tokens):
        raise ValueError(f"sentences[{i}] is empty; every sentence needs at least one token")
    rows = [(token,) if isinstance(token, str) else tuple(token) for token in tokens]
    if labels is None:
        return rows
    if len(labels) != len(rows):
        raise ValueError(f"sentences[{i}] has {len(rows)} tokens, but labels[{i}] has {len(labels)}")
    return [(*row, label) for row, label in zip(rows, labels, strict=True)]


def _check_rows(i: int, rows: list[tuple[str, ...]], width: int, separator: str) -> None:
    cell_that_reads_back = re.compile(r"[^ \t\n\r\0]+" if separator == " " else r"(?! *\Z)[^\t\n\r\0]+")
    if i == 0 and rows[0][0][:1] == "\ufeff":
        raise ValueError(f"sentences[0][0]: {rows[0][0]!r} begins the file like a byte order mark, which is not read")
    if width > _MOST_COLUMNS:
        raise ValueError(f"sentences[{i}] makes {width} columns; at most {_MOST_COLUMNS} can be read back")
    for t, row in enumerate(rows):
        if len(row) != width:
            raise ValueError(f"sentences[{i}][{t}] makes {len(row)} columns, but the first token makes {width}")
        for cell in row:
            if not isinstance(cell, str) or not cell_that_reads_back.fullmatch(cell):
                raise ValueError(f"sentences[{i}][{t}]: {cell!r} cannot be written in a column")
