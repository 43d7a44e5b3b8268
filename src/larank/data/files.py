"""Files of any kind: written as a whole or not at all, compressed or not, and errors that say where they were."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import re
import secrets
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any

PathLike = str | os.PathLike[str]

COMPRESSORS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": partial(gzip.GzipFile, "", "wb", 6, mtime=0),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
}
_DECOMPRESSORS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    rb"\x1f\x8b": gzip.open,
    rb"BZh[1-9](1AY&SY|\x17rE8P\x90)": bz2.open,
    rb"\xfd7zXZ\x00": lzma.open,
}


class DataFormatError(ValueError):
    """A file that does not hold what its format demands."""


@contextmanager
def atomic_write(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a binary file that takes the place of `path` only once it is complete and on disk.

    If anything fails, a full disk included, the old file stays as it was and nothing else is left behind.

    Parameters
    ----------
    path : path-like
        The file to write; of a symbolic link, what it points to.

    Examples
    --------
    >>> with atomic_write("model.bin") as file:  # doctest: +SKIP
    ...     file.write(b"...")
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".larank-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def opened(path: PathLike) -> Iterator[Any]:
    """Open a file for reading bytes; gzip, bzip2 and xz are recognised by their first bytes."""
    with open(path, "rb") as file, decompressed(file) as stream:
        yield stream


def decompressed(file: io.BufferedReader) -> Any:
    """What a file holds: gzip, bzip2 and xz are recognised by their first bytes. A context manager."""
    head = file.peek(10)
    openers = (opener for magic, opener in _DECOMPRESSORS.items() if re.match(magic, head))
    return next(openers, nullcontext)(file)


def read_text(path: PathLike) -> str:
    """The text of a file in UTF-8, compressed or not, without a byte order mark.

    Raises
    ------
    DataFormatError
        If it is not UTF-8, or the compressed data are damaged.
    """
    with located(path), opened(path) as file:
        content: bytes = file.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataFormatError(f"{path}, line {line}: the text is not UTF-8") from None


def share_read(file: IO[bytes]) -> float | None:
    """How much of a file was read so far, between 0 and 1; None where that cannot be told, as of a pipe."""
    size = os.fstat(file.fileno()).st_size
    return file.tell() / size if size else None


def compressed(path: PathLike, file: IO[bytes]) -> Any:
    """Write to a file compressed as its name says: `.gz`, `.bz2` or `.xz`."""
    compressor = COMPRESSORS.get(Path(path).suffix.lower(), nullcontext)
    return compressor(file)


@contextmanager
def located(path: PathLike, lines: Callable[[], int] | None = None) -> Iterator[None]:
    """Say in which file reading failed, and after how many lines if the error does not name its own."""
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        where = f", after line {lines()}" if lines else ""
        raise DataFormatError(f"{path}{where}: damaged data ({error})") from error
    except csv.Error as error:
        raise DataFormatError(f"{path}, line {lines() if lines else 0}: {error}") from None
    except ValueError as error:
        raise DataFormatError(f"{path}{', ' if lines else ': '}{error}") from None
