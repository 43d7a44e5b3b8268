"""Examples that come block by block: files larger than memory, and blocks of the user's own."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, Literal, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_matrix, issparse, vstack

from larank.data.ahead import arrived, read_ahead
from larank.data.examples import check_options, read_npz, read_svmlight, reader_of
from larank.data.files import PathLike
from larank.data.rows import LabelText, SvmlightText, TableText
from larank.data.tables import TableBlock, TableFile
from larank.parameters import whole_number
from larank.sparse import check_sparse

# The kinds of NumPy: which labels may come where those of the first block were of this kind.
_FITTING = {"i": "i", "f": "fi", "U": "Ufi"}
_AHEAD = 0.75  # fraction of n_bytes up to which blocks are read ahead: one block of a file, or many small blocks
_NUMBERS = {"i": ("integer", "integers"), "f": ("number", "numbers")}


_Block = TypeVar("_Block")


class ExampleBlock(NamedTuple):
    """Some examples of a stream."""

    X: NDArray[Any] | csr_matrix
    y: NDArray[Any]
    sample_weight: NDArray[Any] | None
    share_read: float | None  # of a file, by its bytes, when this block was read
    where: str  # what an error about this block says: "path, lines 1 to 5000" or "block 3"


class ExampleFile:
    """A file of examples, read anew and block by block each time it is asked for; it may be larger than memory.

    Parameters
    ----------
    path : path-like
        `.svm`, `.svmlight`, `.libsvm` and `.txt` are in svmlight format, `.csv` and `.tsv` are delimited text; each may
        be followed by `.gz`, `.bz2` or `.xz`, and compression is recognised by the first bytes of the file. A pipe can
        be read once.
    n_features : int, optional
        svmlight: the number of columns of every block; a larger index is an error. By default a block has as many
        columns as the largest index up to its end asks for, so later blocks may be wider.
    zero_based : bool
        svmlight: whether indices count from zero.
    label : int or str
        Delimited text: the column of the labels, by position or by name.
    header : bool or "auto"
        Delimited text: whether the first line holds names. "auto" says yes if `label` is a name or if the features in
        the first line are words.
    delimiter : str, optional
        Delimited text: by default a tab for `.tsv` and a comma otherwise.
    dtype : float32 or float64
        The type of the features.

    Raises
    ------
    ValueError
        If the name tells no format that can be read in blocks, or an option does not act for the format.
    DataFormatError
        While reading, with path and line: all that `read_svmlight` and `read_csv` refuse, and a label of another type
        than those before it.

    Notes
    -----
    `read` looks at all labels before it says whether they are integers, floating-point numbers or words. A stream
    cannot: its first block says it, for each pass. A later label that is no integer where the first block has integers
    alone, or no number where it has numbers, is an error. Words may look like numbers, once the first block has a word
    that does not.

    Examples
    --------
    >>> file = ExampleFile("large.svm.gz", n_features=10_000)
    >>> for block in file.blocks(1 << 25):  # doctest: +SKIP
    ...     print(block.where, block.X.shape, block.share_read)
    """

    def __init__(
        self,
        path: PathLike,
        *,
        n_features: int | None = None,
        zero_based: bool = False,
        label: int | str = -1,
        header: bool | Literal["auto"] = "auto",
        delimiter: str | None = None,
        dtype: DTypeLike = np.float64,
    ) -> None:
        reader = reader_of(path)
        if reader is read_npz:
            raise ValueError(f"{path}: archives are not read in blocks; load it by larank.data.read, and pass X and y")
        options = {
            "n_features": n_features,
            "zero_based": zero_based,
            "label": label,
            "header": header,
            "delimiter": delimiter,
        }
        defaults = inspect.signature(ExampleFile).parameters
        check_options(path, reader, [name for name, value in options.items() if value != defaults[name].default])
        if zero_based not in (True, False):
            raise ValueError(
                f"{path}: zero_based must be True or False for a file that is read in blocks, got {zero_based!r}; the "
                "index 0, by which 'auto' decides, may come in its last line"
            )
        self.path = path
        self._text: SvmlightText | TableText
        if reader is read_svmlight:
            self._text = SvmlightText(n_features, zero_based, dtype)
        else:
            self._text = TableText(label, header, delimiter, dtype)
        self._was_read = False

    def __repr__(self) -> str:
        return f"ExampleFile({str(self.path)!r})"

    def blocks(self, n_bytes: int) -> Generator[ExampleBlock]:
        """Read the file from its beginning, in blocks of about so many bytes of X, one row at least.

        Parameters
        ----------
        n_bytes : int
            A small multiple of this is in memory at a time. Where blocks begin and end depends on the file and on this
            number alone.

        Returns
        -------
        generator of ExampleBlock
            CSR matrices from svmlight, dense arrays from delimited text. Close it to close the file early.
        """
        return self._read_if_possible(whole_number("n_bytes", n_bytes, at_least=1))

    def _read_if_possible(self, n_bytes: int) -> Generator[ExampleBlock]:
        if self._was_read and not can_be_read_again(self):
            raise ValueError(
                f"{self.path} is a pipe, which can be read once, but another pass needs it again; write it to a file"
            )
        self._was_read = True
        with closing(self._blocks(n_bytes)) as blocks:
            yield from blocks

    def _blocks(self, n_bytes: int) -> Generator[ExampleBlock]:
        with closing(self._text.rows(self.path, n_bytes, _SettledLabels().array)) as blocks:
            for rows in blocks:
                where = f"{self.path}, lines {rows.first_line} to {rows.last_line}"
                yield ExampleBlock(rows.X, rows.y, None, rows.share_read, where)


class EncodedTable(ExampleFile):
    """A table in a file, of whose blocks a function makes examples; it may be larger than memory.

    Parameters
    ----------
    file : TableFile
        The table.
    encode : callable
        From a `TableBlock` to X and y.
    numbers : sequence of str
        The columns that are known to hold plain numbers.
    """

    def __init__(
        self, file: TableFile, encode: Callable[[TableBlock], tuple[Any, NDArray[Any]]], numbers: Sequence[str]
    ) -> None:
        self.path, self._was_read = file.path, False
        self._file, self._encode, self._numbers = file, encode, numbers

    def _blocks(self, n_bytes: int) -> Generator[ExampleBlock]:
        with closing(self._file.blocks(numbers=self._numbers)) as blocks:
            yield from arrived(_resized(self._encoded(blocks), n_bytes))

    def _encoded(self, blocks: Iterator[TableBlock]) -> Iterator[ExampleBlock]:
        for block in blocks:
            X, y = self._encode(block)
            where = f"{self.path}, rows {block.first_row + 1} to {block.first_row + len(y)}"
            yield ExampleBlock(X, y, None, block.share_read, where)


def blocks_of(source: Any, n_bytes: int) -> Generator[ExampleBlock]:
    """The blocks of any source, of about so many bytes of X each.

    Blocks of the user's that are smaller are joined, until the kind or the width of X changes, or the kind of y; larger
    ones are cut into slices that share their memory. Blocks without rows are left out. Only the form of blocks is
    checked here, not their values. An exception of the user's iterator passes through.

    Parameters
    ----------
    source : path-like, ExampleFile, or iterable of tuples
        Tuples are (X, y) or (X, y, sample_weight).
    n_bytes : int
        The size of blocks; each has one row at least.

    Raises
    ------
    ValueError
        If the source is none of these, or when a block comes that has another form. Blocks count from one.
    """
    if isinstance(source, str | os.PathLike):
        source = ExampleFile(source)
    if isinstance(source, ExampleFile):
        return source.blocks(n_bytes)
    return arrived(_resized(_checked_blocks(source), whole_number("n_bytes", n_bytes, at_least=1)))


def arriving_blocks(
    source: Any, n_bytes: int, is_cut: Callable[[ExampleBlock | None], bool], *, reads_ahead: bool = True
) -> Generator[ExampleBlock | None]:
    """The blocks of `blocks_of`, read by a thread of their own; None whenever the next one has not come for a while.

    Parameters
    ----------
    source : path-like, ExampleFile, or iterable of tuples
        As for `blocks_of`.
    n_bytes : int
        As for `blocks_of`.
    is_cut : callable
        Called with each block of the source, and with None while the next one is waited for, if the stream goes on
        after it: whether the stream is to end there. Blocks of the user's that have come and were to be joined are the
        last block then.
    reads_ahead : bool
        Whether the thread reads the next block while the caller works on one.
    """
    is_file = isinstance(source, str | os.PathLike | ExampleFile)
    blocks = blocks_of(source, n_bytes) if is_file else _checked_blocks(source)
    ahead = read_ahead(blocks, ahead=_AHEAD * n_bytes if reads_ahead else 0, size=lambda block: _bytes(block.X))
    with closing(ahead):
        yield from until_cut(ahead, is_cut) if is_file else _resized(until_cut(ahead, is_cut), n_bytes)


def until_cut(blocks: Iterable[_Block], is_cut: Callable[[_Block], bool]) -> Iterator[_Block]:
    """Yield the blocks up to the one of which the function says that it is the last.

    The function is not called with a block that nothing follows, because then the stream is complete.
    """
    before: list[_Block] = []
    for block in blocks:
        if before and is_cut(before.pop()):
            return
        yield block
        before.append(block)


def can_be_read_again(source: Any) -> bool:
    """Whether a source of blocks has a second pass: files do, and iterables that are not their own iterator.

    Parameters
    ----------
    source : path-like, ExampleFile, or iterable of tuples
        What `blocks_of` takes.
    """
    if isinstance(source, ExampleFile):
        source = source.path
    if isinstance(source, str | os.PathLike):
        return os.path.isfile(source) or not os.path.exists(source)  # not a pipe; what is missing is open's business
    return _iterator(source) is not source


def brings_labels(X: Any, y: Any) -> bool:
    """Whether what `fit` was given brings its own labels: a file, or an iterable of blocks."""
    is_file = isinstance(X, str | os.PathLike | ExampleFile)
    if is_file and y is not None:
        raise ValueError("y must be None where X is a file, which has its own labels")
    return is_file or (y is None and isinstance(X, Iterable) and not hasattr(X, "shape"))


def check_no_weights(sample_weight: Any) -> None:
    """Raise where weights come beside blocks."""
    if sample_weight is not None:
        raise ValueError("sample_weight must be None where X is a stream: blocks (X, y, sample_weight) bring their own")


class _SettledLabels:
    """Labels of the type that those of the first block have."""

    def __init__(self) -> None:
        self._kind: str | None = None

    def array(self, labels: LabelText) -> NDArray[Any]:
        found = labels.array()
        if self._kind is None:
            self._kind = found.dtype.kind
        if found.dtype.kind == self._kind:
            return found
        if found.dtype.kind not in _FITTING[self._kind]:
            self._refuse(labels, self._kind)
        return labels.strings() if self._kind == "U" else found.astype(np.float64)

    def _refuse(self, labels: LabelText, kind: str) -> NoReturn:
        one, several = _NUMBERS[kind]
        line, word = next(
            (line, word)
            for line, word in zip(labels.lines, labels.words(), strict=True)
            if LabelText.of_cells([word], [line]).array().dtype.kind not in _FITTING[kind]
        )
        raise ValueError(
            f"line {line}: the label {word!r} is no {one}, but the labels before were {several}, and a file read in "
            "blocks cannot go back; write all labels alike, or read the whole file"
        )


def _checked_blocks(source: Iterable[Any]) -> Iterator[ExampleBlock]:
    return (_checked(block, number) for number, block in enumerate(_iterator(source), 1))


def _iterator(source: Any) -> Iterator[Any]:
    if not isinstance(source, Iterable):
        raise ValueError(
            "a source of examples must be the path of a file, an ExampleFile, or an iterable of tuples (X, y) or "
            f"(X, y, sample_weight); got {type(source).__name__}"
        )
    return iter(source)


def _checked(block: Any, number: int) -> ExampleBlock:
    """A block of the user's, if it has the form of one."""
    where = f"block {number}"
    if not isinstance(block, tuple | list) or len(block) not in (2, 3):
        came = f"{type(block).__name__} of {len(block)}" if isinstance(block, tuple | list) else type(block).__name__
        raise ValueError(f"{where} must be a tuple (X, y) or (X, y, sample_weight), got {came}")
    X, y, weight = (*block, None)[:3]
    X = _array(X, 2, f"X of {where}")
    y = _array(y, 1, f"y of {where}")
    weight = None if weight is None else _array(weight, 1, f"sample_weight of {where}")
    for name, values in (("y", y), ("sample_weight", weight)):
        if values is not None and len(values) != X.shape[0]:
            raise ValueError(f"{name} of {where} must have a value for each row of X, {X.shape[0]}, got {len(values)}")
    return ExampleBlock(X, y, weight, None, where)


def _array(values: Any, dimensions: int, name: str) -> Any:
    """An array of so many dimensions, or a CSR matrix where two are wanted."""
    if issparse(values) and dimensions == values.ndim == 2:
        check_sparse(values)
        return csr_matrix(values)
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths, for one
        raise ValueError(f"{name} must be an array, got {type(values).__name__}: {error}") from error
    if array.ndim != dimensions:
        wanted = "two dimensions" if dimensions == 2 else "one dimension"
        shape = getattr(values, "shape", array.shape)
        raise ValueError(f"{name} must have {wanted}, got {type(values).__name__} of shape {shape}")
    return array


def _resized(blocks: Iterable[ExampleBlock | None], n_bytes: int) -> Generator[ExampleBlock | None]:
    """Yield the same examples in blocks of about `n_bytes` bytes, and each None of `arriving_blocks`."""
    waiting, size = list[ExampleBlock](), 0
    for block in blocks:
        if block is None:
            yield None
            continue
        extra = _bytes(block.X)
        if waiting and (size + extra > n_bytes or not _fit_together(waiting[0], block)):
            joined, waiting, size = _joined(waiting), [], 0
            yield joined
        if not len(block.y):
            continue
        if extra > n_bytes:
            yield from _slices(block, n_bytes)
        else:
            waiting.append(block)
            size += extra
    if waiting:
        yield _joined(waiting)


def _bytes(X: Any) -> int:
    size: int = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if issparse(X) else X.nbytes
    return size


def _fit_together(first: ExampleBlock, other: ExampleBlock) -> bool:
    def form(block: ExampleBlock) -> tuple[Any, ...]:
        return issparse(block.X), block.X.shape[1], block.X.dtype, block.y.dtype.kind, block.sample_weight is None

    return form(first) == form(other)


def _joined(blocks: list[ExampleBlock]) -> ExampleBlock:
    first, last = blocks[0], blocks[-1]
    if first is last:
        return first
    Xs = [block.X for block in blocks]
    weights = [block.sample_weight for block in blocks if block.sample_weight is not None]
    return ExampleBlock(
        vstack(Xs, format="csr") if issparse(first.X) else np.concatenate(Xs),
        np.concatenate([block.y for block in blocks]),
        np.concatenate(weights) if weights else None,
        last.share_read,
        f"{first.where} to {last.where}",
    )


def _slices(block: ExampleBlock, n_bytes: int) -> Iterator[ExampleBlock]:
    """Slices of much the same size, each up to the row that reaches it, in the memory of the block."""
    X: Any = block.X
    y, weight = block.y, block.sample_weight
    before = _bytes_before(X)
    size = math.ceil(before[-1] / math.ceil(before[-1] / n_bytes))
    first = 0
    while first < len(y):
        last = min(len(y), int(np.searchsorted(before, before[first] + size)))
        rows = slice(first, last)
        part = _csr_rows(X, first, last) if issparse(X) else X[rows]
        yield ExampleBlock(part, y[rows], None if weight is None else weight[rows], None, block.where)
        first = last


def _bytes_before(X: Any) -> NDArray[np.int64]:
    """How many bytes come before each row, and how many there are."""
    before: NDArray[np.int64] = np.arange(X.shape[0] + 1)
    if not issparse(X):
        return before * np.int64(X.nbytes // X.shape[0])
    before *= X.indptr.itemsize
    before += X.indptr.astype(np.int64) * (X.data.itemsize + X.indices.itemsize)
    return before


def _csr_rows(X: Any, first: int, last: int) -> Any:
    """Rows of a CSR matrix in its memory; indexing copies them, and so does the constructor where they are few."""
    stored = slice(X.indptr[first], X.indptr[last])
    rows = csr_matrix((last - first, X.shape[1]), dtype=X.dtype)
    rows.data, rows.indices = X.data[stored], X.indices[stored]
    rows.indptr = X.indptr[first : last + 1] - X.indptr[first]
    return rows
