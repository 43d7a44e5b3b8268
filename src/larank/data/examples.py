"""Examples and labels from files: svmlight, CSV and NumPy archives, plain or compressed.

Every reader returns `(X, y)`. Labels are integers if all of them are written as integers, floating-point
numbers if all are numbers, strings otherwise. What is wrong in a file raises `DataFormatError` with the path
and, in text, the line.
"""

from __future__ import annotations

import inspect
import io
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from larank import _core
from larank.data.files import PathLike, atomic_write, check_unpacked, compressed, decompressed, located
from larank.data.rows import SvmlightText, TableText, floating, format_suffix, is_not_finite
from larank.data.tables import BINARY_FORMATS
from larank.sparse import check_sparse, csr_of

_Labels = NDArray[Any]

_BLOCK_PAIRS = 1 << 17


def read(path: PathLike, **options: Any) -> tuple[Any, _Labels]:
    """Read examples and labels in the format the file's name tells.

    Parameters
    ----------
    path : path-like
        `.svm`, `.svmlight`, `.libsvm` and `.txt` are read by `read_svmlight`, `.csv` and `.tsv` by
        `read_csv`, `.npz` by `read_npz`; each may be followed by `.gz`, `.bz2` or `.xz`.
    **options
        Passed on to that function.

    Returns
    -------
    X : ndarray or csr_matrix of shape (n_examples, n_features)
    y : ndarray of shape (n_examples,)

    Raises
    ------
    ValueError
        If the name has none of these extensions.
    DataFormatError
        If the contents are not what the extension promises.
    """
    reader = reader_of(path)
    check_options(path, reader, options)
    return reader(path, **options)


def reader_of(path: PathLike) -> Callable[..., tuple[Any, _Labels]]:
    """The function that reads files of this name."""
    reader = _READERS.get(format_suffix(path))
    if reader is None:
        accepted = " ".join(_READERS)
        raise ValueError(
            f"{path}: no format is known by this extension; accepted are {accepted} (also .gz .bz2 .xz), and on the "
            f"command line tables, {' '.join(BINARY_FORMATS)}"
        )
    return reader


def check_options(path: PathLike, reader: Callable[..., Any], options: Iterable[str]) -> None:
    """Raise where some option does not act for a file of this format."""
    strange = set(options) - set(inspect.signature(reader).parameters)
    if strange:
        raise ValueError(f"{path}: {', '.join(sorted(strange))} cannot be set for a file of this format")


def read_svmlight(
    path: PathLike,
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = False,
    dtype: DTypeLike = np.float64,
) -> tuple[Any, _Labels]:
    """Read a sparse matrix and labels from a file in svmlight / libsvm format.

    Parameters
    ----------
    path : path-like
        A text file; gzip, bzip2 and xz are recognised by their first bytes.
    n_features : int, optional
        The number of columns; by default the largest index in the file decides.
    zero_based : bool or "auto"
        Whether indices count from zero. "auto" says yes if the index 0 occurs in this file, so two files of one
        data set can end up a column apart; the default refuses an index 0 instead.
    dtype : float32 or float64
        The type of the values, rounded correctly from the text.

    Returns
    -------
    X : csr_matrix of shape (n_examples, n_features)
        Explicit zeros of the file are kept.
    y : ndarray of shape (n_examples,)

    Raises
    ------
    DataFormatError
        For indices out of range, unsorted or repeated, malformed pairs, values that are not finite, `qid:`
        groups and damaged compressed data.
    """
    (rows,) = SvmlightText(n_features, zero_based, dtype).rows(path)
    return rows.X, rows.y


def write_svmlight(path: PathLike, X: Any, y: Any, *, zero_based: bool = False) -> None:
    """Write examples and labels in svmlight / libsvm format, replacing the file as a whole.

    Every number is written with the fewest digits that read back to the same value.

    Parameters
    ----------
    path : path-like
        Compressed if it ends in `.gz`, `.bz2` or `.xz`.
    X : array-like or sparse matrix of shape (n_examples, n_features)
        float32 or float64; anything else is converted to float64. Zeros of a dense matrix are left out.
    y : array-like of shape (n_examples,)
        Numbers or strings; booleans become 1 and 0.
    zero_based : bool
        Whether indices count from zero.

    Raises
    ------
    ValueError
        If a value is not finite, or a label could not be read back: empty, with white space, `:` or `#`, or a
        word for a number that is not finite.
    """
    if issparse(X):
        check_sparse(X)
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    labels = _label_words(column_or_1d(y))
    check_consistent_length(X, labels)
    X = _canonical(X)
    starts = X.indptr.astype(np.int64)
    indices = X.indices.astype(np.int32, copy=False)
    rows = max(1, len(labels) * _BLOCK_PAIRS // max(1, X.nnz))
    with atomic_write(path) as file, compressed(path, file) as stream:
        for first in range(0, len(labels), rows):
            words = labels[first : first + rows]
            text = "".join(f"{word}\n" for word in words).encode()
            last = first + len(words)
            stream.write(_core.svmlight_text(X.data, indices, starts, first, last, text, 1 - zero_based))


def read_csv(
    path: PathLike,
    *,
    label: int | str = -1,
    header: bool | Literal["auto"] = "auto",
    delimiter: str | None = None,
    dtype: DTypeLike = np.float64,
) -> tuple[NDArray[Any], _Labels]:
    """Read a dense matrix and labels from delimited text.

    Parameters
    ----------
    path : path-like
        A text file in UTF-8; gzip, bzip2 and xz are recognised by their first bytes.
    label : int or str
        The column of the labels, by position or by name; all others are numeric features.
    header : bool or "auto"
        Whether the first line holds names. "auto" says yes if `label` is a name or if some feature in the
        first line is not a number.
    delimiter : str, optional
        By default a tab for `.tsv` and a comma otherwise.
    dtype : float32 or float64
        The type of the features.

    Returns
    -------
    X : ndarray of shape (n_examples, n_features)
    y : ndarray of shape (n_examples,)

    Raises
    ------
    DataFormatError
        For lines of different lengths, features that are not finite numbers, labels that are empty or not
        finite, and damaged compressed data.
    """
    (rows,) = TableText(label, header, delimiter, dtype).rows(path)
    return rows.X, rows.y


def read_npz(path: PathLike, *, split: str | None = None, dtype: DTypeLike = np.float64) -> tuple[Any, _Labels]:
    """Read examples and labels from a NumPy archive.

    Parameters
    ----------
    path : path-like
        An archive with `y` and either a dense `X`, the parts `X_data`, `X_indices`, `X_indptr` and `X_shape`
        of a CSR matrix, or these parts as `scipy.sparse.save_npz` names them: `data`, `indices`, `indptr`,
        `shape`.
    split : str, optional
        Read `X_train` and `y_train` (or `X_train_data` ...) for `split="train"`.
    dtype : float32 or float64
        The type of the features.

    Returns
    -------
    X : ndarray or csr_matrix of shape (n_examples, n_features)
    y : ndarray of shape (n_examples,)

    Raises
    ------
    DataFormatError
        If arrays are missing, do not fit together, hold objects or what is not finite, or the archive is damaged.
    """
    dtype = floating(dtype)
    suffix = "" if split is None else f"_{split}"
    with open(path, "rb") as file, located(path), decompressed(file) as stream:
        # An archive is read from its end, and a decompressor would begin anew each time.
        return _archived(stream if stream is file else io.BytesIO(stream.read()), suffix, dtype)


def _label_words(y: NDArray[Any]) -> list[str]:
    """Labels as words that `read_svmlight` reads back."""
    if y.dtype.kind == "b":
        y = y.astype(np.int64)
    if y.dtype.kind in "iu":
        return [str(label) for label in y.tolist()]
    if y.dtype.kind == "f":
        words = [repr(float(label)) for label in y]
    elif all(isinstance(label, str) for label in y):
        words = y.tolist()
    else:
        raise ValueError(f"y holds labels of type {y.dtype}; accepted are numbers and strings")
    for word in set(words):
        if not re.fullmatch(r"[^\s:#\0\ufeff]+", word) or is_not_finite(word):
            raise ValueError(f"the label {word!r} cannot be written in svmlight format")
    return words


def _canonical(X: Any) -> Any:
    if X.shape[1] >= 2**31:
        raise ValueError(f"X has {X.shape[1]} columns; the format allows at most 2147483647")
    if not issparse(X):
        return csr_matrix(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _archived(file: Any, suffix: str, dtype: np.dtype[Any]) -> tuple[Any, _Labels]:
    with _archive(file) as archive:
        X = _archived_matrix(archive, f"X{suffix}", dtype)
        y = _member(archive, f"y{suffix}", "biufSU")
    stored = X.data if issparse(X) else X
    if not np.isfinite(stored).all():
        raise ValueError(f"X{suffix} holds values that are not finite in {dtype}")
    if y.shape != X.shape[:1]:
        raise ValueError(f"y{suffix} has shape {y.shape}, but X{suffix} has {X.shape[0]} rows")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"y{suffix} holds labels that are not finite")
    return X, y


def _archived_matrix(archive: zipfile.ZipFile, name: str, dtype: np.dtype[Any]) -> Any:
    names = _names(archive)
    if name in names:
        X = _member(archive, name, "biuf")
        if X.ndim != 2:
            raise ValueError(f"{name} has shape {X.shape} and type {X.dtype}; expected two dimensions and numbers")
        with np.errstate(over="ignore"):
            return X.astype(dtype, copy=False)
    prefix = "" if name == "X" and "data" in names else f"{name}_"
    if not prefix and "format" in names:
        kind = _member(archive, "format", "SU").astype(str).ravel()[:1].tolist()
        if kind != ["csr"]:
            raise ValueError(f"a sparse matrix in {' '.join(kind)} format; expected csr")
    data, indices, indptr, shape = (
        _member(archive, f"{prefix}{part}", "biuf", name) for part in ("data", "indices", "indptr", "shape")
    )
    with np.errstate(over="ignore"):
        return csr_of(data.astype(dtype, copy=False), indices, indptr, shape)


# ---- Archives, of which nothing is believed before it is checked ----


def _archive(file: Any) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except Exception as error:  # of many kinds, from numbers that are no sizes and offsets of a file
        raise ValueError(f"not a NumPy archive, or cut short ({error})") from error


def _size(archive: zipfile.ZipFile) -> int:
    assert archive.fp is not None
    return archive.fp.seek(0, os.SEEK_END)


def _names(archive: zipfile.ZipFile) -> list[str]:
    return [name.removesuffix(".npy") for name in archive.namelist()]


def _member(archive: zipfile.ZipFile, name: str, kinds: str, *others: str) -> NDArray[Any]:
    """An array of an archive, of one of these kinds; `others` are names that it might have had."""
    if f"{name}.npy" not in archive.NameToInfo:
        wanted = " nor ".join((name, *others))
        raise ValueError(f"no {wanted}; the archive holds {', '.join(_names(archive))}")
    info = archive.getinfo(f"{name}.npy")
    try:
        check_unpacked(info.file_size, min(info.compress_size, _size(archive)))
        with archive.open(info) as file:
            shape, _, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
            promised = math.prod(shape) * dtype.itemsize
            held = info.file_size - file.tell()
    except Exception as error:  # as above; a header is text that NumPy has Python read
        raise ValueError(f"{name} is no array, or damaged ({error})") from error
    if dtype.kind not in kinds or not dtype.itemsize:
        wanted = "numbers" if kinds == "biuf" else "numbers or strings" if "f" in kinds else "strings"
        raise ValueError(f"{name} has shape {shape} and type {dtype}; expected {wanted}")
    if promised != held or any(size < 0 for size in shape):
        raise ValueError(f"{name} is damaged: {held} bytes where shape {shape} and type {dtype} need {promised}")
    with archive.open(info) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
    # 3.0 differs in names of fields alone, which the arrays of examples do not have.
    (3, 0): np.lib.format.read_array_header_2_0,
}


_READERS: dict[str, Callable[..., tuple[Any, _Labels]]] = {
    **dict.fromkeys((".svm", ".svmlight", ".libsvm", ".txt"), read_svmlight),
    **dict.fromkeys((".csv", ".tsv"), read_csv),
    ".npz": read_npz,
}
