"""Files of any kind: written as a whole or not at all, compressed or not, and errors that say where they were."""

from __future__ import annotations

import bz2
import csv
import fcntl
import gzip
import io
import lzma
import os
import re
import secrets
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

PathLike = str | os.PathLike[str]

# A compressed file may unpack to so many bytes, and so many times its own size besides.
MOST_UNPACKED = 1 << 22
UNPACKED_RATIO = 200

_SHARE_OF_FREE = 0.5  # fraction of the free bytes of a disk that temporary files may take

_FOLDER, _LOCK = "larank-fit-", "lock"  # a temporary folder, and the file in it that its process holds locked

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
# The first bytes of compressed files, by the end of their names.
_STARTS = {
    ".gz": (b"\x1f\x8b\x08",),
    ".bz2": tuple(b"BZh%d" % size + rest for size in range(1, 10) for rest in (b"1AY&SY", b"\x17rE8P\x90")),
    ".xz": (b"\xfd7zXZ\x00",),
}


class DataFormatError(ValueError):
    """A file that does not hold what its format demands."""


class DiskLimitError(ValueError):
    """Temporary files that would take more bytes than `disk_limit` allows."""


@contextmanager
def atomic_write(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a binary file that takes the place of `path` only once it is complete and on disk.

    If anything fails, a full disk included, the old file stays as it was and nothing else is left behind. An error of
    the system while bytes are written names `path`. What a killed process leaves beside it is removed when the same
    file is written again.

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
    stem = f".larank-{sha256(os.fsencode(target.name)).hexdigest()[:16]}-"
    for left in target.parent.glob(f"{stem}*.tmp"):
        _remove_abandoned(left)
    with _locked_file(target.with_name(f"{stem}{secrets.token_hex(8)}.tmp"), path) as file:
        temporary = Path(file.name)
        try:
            yield file
            with naming(path):
                file.flush()
                os.fsync(file.fileno())
                if target.exists():
                    temporary.chmod(stat.S_IMODE(target.stat().st_mode))
                os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):  # the error that is on its way says more
                temporary.unlink(missing_ok=True)
            raise


class TemporaryFolder:
    """A folder for temporary files, with a bound on their bytes.

    Parameters
    ----------
    path : Path
        The folder.
    disk_limit : float, optional
        The bound, by the parameter of that name; by default half of the bytes that are free now.
    """

    def __init__(self, path: Path, disk_limit: float | None) -> None:
        self.path, self._disk_limit, self._taken = path, disk_limit, 0
        self._most = _SHARE_OF_FREE * shutil.disk_usage(path).free if disk_limit is None else disk_limit

    def take(self, n_bytes: int) -> None:
        """Count bytes that are about to be written, or given back if negative; raise if they are too many."""
        self._taken += n_bytes
        if self._taken <= self._most:
            return
        bound = f"{self._most:.0f} bytes, half of what was free in {self.path.parent}"
        if self._disk_limit is not None:
            bound = f"{self._most:.0f} bytes in {self.path.parent}"
        raise DiskLimitError(
            f"disk_limit={self._disk_limit!r} lets temporary files take {bound}, but at least {self._taken} bytes are "
            "needed so far. Choose a larger disk_limit, or set the environment variable TMPDIR to a folder with more "
            "space."
        )


@contextmanager
def temporary_folder(disk_limit: float | None = None) -> Iterator[TemporaryFolder]:
    """A folder for temporary files, which is removed in the end; they may take `disk_limit` bytes.

    A process that is killed leaves its folder behind. The next call finds that nothing holds its lock, and removes it.
    The folder of a process that lives is locked, and a folder of another user is not touched.
    """
    parent = Path(tempfile.gettempdir())
    for left in parent.glob(f"{_FOLDER}*"):
        _remove_abandoned_folder(left)
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER, dir=parent))
    try:
        with _locked_folder(folder):
            yield TemporaryFolder(folder, disk_limit)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a new folder; the system releases it when the process ends, however that happens."""
    unlocked = folder / f"{_LOCK}-to-be"
    lock = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError):  # a file system without locks: no folder there is ever taken for abandoned
            fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(unlocked, folder / _LOCK)  # so that no other process finds it before it is locked
        yield
    finally:
        os.close(lock)


def _remove_abandoned_folder(folder: Path) -> None:
    """Remove a temporary folder of this user whose lock no process holds; one without a lock may be about to get it."""
    with suppress(OSError):
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def file_to_write(path: PathLike) -> IO[bytes]:
    """Open a new binary file; an error of the system while bytes are written names the file."""
    return io.BufferedWriter(_NamedFile(path, "wb", path))


class _NamedFile(io.FileIO):
    """A file whose errors name it, or the file that it stands for."""

    def __init__(self, path: PathLike, mode: str, stands_for: PathLike) -> None:
        try:
            super().__init__(path, mode)
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(stands_for)) from error
        self._stands_for = stands_for

    def write(self, data: Any) -> int:
        with naming(self._stands_for):
            return super().write(data)


@contextmanager
def naming(path: PathLike) -> Iterator[None]:
    """Let an error of the system, such as a full disk, name what is written, with its number and its text."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _locked_file(path: Path, stands_for: PathLike) -> IO[bytes]:
    """A new file with a lock, which lasts as long as its process: so long, nobody takes it for abandoned."""
    while True:
        file = io.BufferedWriter(_NamedFile(path, "xb", stands_for))
        with suppress(OSError):  # a file system without locks: no file there is ever taken for abandoned
            fcntl.flock(file, fcntl.LOCK_EX)
        if path.exists():  # and was not taken for abandoned before it was locked
            return file
        file.close()


def _remove_abandoned(temporary: Path) -> None:
    """Remove a temporary file, unless a process is still writing it."""
    with suppress(OSError), open(temporary, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        temporary.unlink()


@contextmanager
def opened(path: PathLike) -> Iterator[Any]:
    """Open a file for reading bytes; gzip, bzip2 and xz are recognised by their first bytes."""
    with open(path, "rb") as file, decompressed(file) as stream:
        yield stream


def decompressed(file: io.BufferedReader) -> Any:
    """What a file holds: gzip, bzip2 and xz are recognised by their first bytes. A context manager.

    A few bytes can unpack to more than any memory holds. What unpacks to much more than its size is refused as damaged;
    a pipe has no size to compare with. A file whose name ends in `.gz`, `.bz2` or `.xz` and that is cut
    within the first bytes of the compressed data, or is empty, is refused, too. If the first bytes of a pipe may begin
    compressed data, this function waits until they are complete.
    """
    head, stream = file.peek(10), file
    if not file.seekable() and any(_is_cut(head, suffix) for suffix in _STARTS):
        head = file.read(10)
        stream = io.BufferedReader(_Continued(head, file))
    _check_complete(head, str(file.name))
    openers = (opener for magic, opener in _DECOMPRESSORS.items() if re.match(magic, head))
    opener = next(openers, None)
    return nullcontext(stream) if opener is None else io.BufferedReader(_Unpacked(opener(stream), file))


def _is_cut(head: bytes, suffix: str) -> bool:
    """Return whether bytes are some, but not all, of the first bytes of a compressed file with this suffix."""
    return any(start.startswith(head) and len(head) < len(start) for start in _STARTS.get(suffix, ()))


def _check_complete(head: bytes, name: str) -> None:
    """Raise if a file that should be compressed, by its name, ends within the first bytes of its format."""
    suffix = Path(name).suffix.lower()
    if _is_cut(head, suffix):
        where = (
            f"after {len(head)} bytes, within the first bytes of a {suffix} file" if head else "before its first byte"
        )
        raise DataFormatError(f"{name}: damaged data (the file ends {where}); write or copy it again")


class _Continued(io.RawIOBase):
    """The bytes of a pipe, of which the first ones were read before."""

    def __init__(self, head: bytes, file: io.BufferedReader) -> None:
        self._head, self._file = head, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            return self._file.readinto1(buffer)
        count = min(len(buffer), len(self._head))
        buffer[:count], self._head = self._head[:count], self._head[count:]
        return count


class _Unpacked(io.RawIOBase):
    """The bytes of a decompressor, as far as they are in proportion to the file."""

    def __init__(self, stream: Any, file: IO[bytes]) -> None:
        self._stream, self._count = stream, 0
        self._size = os.fstat(file.fileno()).st_size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._stream.readinto1(buffer)
        self._count += count
        if self._size:
            check_unpacked(self._count, self._size)
        return count


def check_unpacked(count: int, size: int) -> None:
    """Raise where so many bytes came from too few."""
    if count > MOST_UNPACKED + UNPACKED_RATIO * size:
        raise OSError(f"{size} bytes unpack to {count} or more; if that is meant, unpack them before they are read")


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
    except DataFormatError:  # it says so already
        raise
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        where = f", after line {lines()}" if lines else ""
        raise DataFormatError(f"{path}{where}: damaged data ({error})") from error
    except csv.Error as error:
        raise DataFormatError(f"{path}, line {lines() if lines else 0}: {error}") from None
    except ValueError as error:
        raise DataFormatError(f"{path}{', ' if lines else ': '}{error}") from None
