"""Files of arrays and a description: the safetensors format, with a SHA-256 digest of every byte of the file.

Models and checkpoints are such files. The description is a JSON object in the metadata entry `larank`. Its first entry
is the digest, which is computed with zeros in its own place. A reader gets the arrays only if the digest is right.

Reading a file takes at most 64 MB and 4 times the size of the file: arrays are read once, each to its own memory, and
JSON whose lists, dicts and strings would take much more memory than their text is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as to_bytes

from larank.data.files import PathLike

_LONGEST_HEADER = 100_000_000  # bytes, the limit of safetensors itself
_UNSEALED = "0" * 64
# A header of ours begins with these bytes, after its length; the digest follows.
_BEFORE_DESCRIPTION = b'{"__metadata__":{"larank":"'
_BEFORE_DIGEST = _BEFORE_DESCRIPTION + rb"{\"digest\": \""
_DIGEST_AT = 8 + len(_BEFORE_DIGEST)
_DTYPES = {"BOOL": np.dtype(np.bool_), "F16": np.dtype(np.float16)} | {
    f"{letter}{8 * size}": np.dtype(f"{kind}{size}")
    for letter, kind, sizes in (("F", "f", (4, 8)), ("I", "i", (1, 2, 4, 8)), ("U", "u", (1, 2, 4, 8)))
    for size in sizes
}
# What reading a file can raise if its content is damaged.
DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

# Bytes of memory for the values of parsed JSON and what is made of them, at least; measured.
_BYTES_OF_LIST, _BYTES_OF_DICT, _BYTES_OF_KEY = 150, 140, 60
_BYTES_OF_TEXT, _BYTES_OF_NUMBER, _BYTES_OF_ITEM = 64, 32, 10
_NUMBER = re.compile(rb"[-+.\deE]{3,}|-[6-9]")  # others are objects that Python shares
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+"')
_MEMORY_FOR_JSON = 40_000_000  # bytes, and twice the size of the file
_AT_ONCE = 1 << 20  # bytes that are read at once
_LONGEST_MESSAGE = 1_000  # characters of what is wrong with a file, which may repeat much of it


class ModelFileError(ValueError):
    """A file that is not a model or a checkpoint, or that this version cannot read."""


class OlderFileError(ModelFileError):
    """A file that an older build has written."""


class _TooLargeError(ValueError):
    """JSON whose values take too much memory."""


class ArrayInfo(NamedTuple):
    """Type and shape of an array in a file."""

    dtype: str
    shape: tuple[int, ...]


class Contents(NamedTuple):
    """The description of a file, the types of all its arrays, and the arrays that were asked for."""

    description: dict[str, Any]
    entries: Mapping[str, ArrayInfo]
    arrays: dict[str, NDArray[Any]]


class Format(NamedTuple):
    """The name and the version of a format, as they stand in the description."""

    name: str
    version: int

    @property
    def kind(self) -> str:
        """The name in words."""
        return self.name.replace("-", " ")


def write(file: IO[bytes], form: Format, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays and their description.

    Raises
    ------
    ValueError
        If the description is so large that the file could not be read within its limit of memory.
    """
    whole = {"digest": _UNSEALED, "format": form.name, "format_version": form.version, **description}
    content = memoryview(to_bytes(dict(arrays), metadata={"larank": json.dumps(whole, allow_nan=False)}))
    length = int.from_bytes(content[:8], "little")
    header = bytes(content[8 : 8 + length])
    if not header.startswith(_BEFORE_DIGEST):  # this would be a change in safetensors
        raise AssertionError(f"the header begins with {header[:60]!r}")
    _check_entries(header, len(content))
    _check_memory(json.loads(header)["__metadata__"]["larank"].encode(), len(content))
    digest = hashlib.sha256(content).hexdigest().encode()
    file.write(content[:_DIGEST_AT])
    file.write(digest)
    file.write(content[_DIGEST_AT + len(digest) :])


def read(path: PathLike, form: Format, wanted: Callable[[str], bool] = lambda name: True) -> Contents:
    """Read the description and the arrays whose names are `wanted`.

    Raises
    ------
    ModelFileError
        If the file is not of this format or version, is cut short, or is not as it was written.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start, header, digest = _read_header(file, path, form, size)
        places, description = _parsed_header(header, path, form, size)
        del header
        promised = len(start) + max((place.last for place in places.values()), default=0)
        _check_version(description, path, form, has_digest=digest is not None)
        if size < promised:
            raise ModelFileError(f"{path} is cut short: {size} bytes where {promised} are needed")
        with reading(path):
            seal = hashlib.sha256(start)
            arrays = _read_arrays(file, places, wanted, seal)
        if size > promised or file.read(1):
            raise ModelFileError(f"{path} is damaged: it goes on after its {promised} bytes")
        if seal.hexdigest().encode() != digest:
            raise ModelFileError(f"{path} is damaged: its SHA-256 digest is not the one that was written with it")
    return Contents(description, {name: place.info for name, place in places.items()}, arrays)


@contextmanager
def reading(path: PathLike) -> Iterator[None]:
    """Raise whatever is wrong with the content of a file as a ModelFileError that names the file."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)} {_shortened(str(error))}") from error.__cause__
    except DAMAGE as error:
        why = _shortened(str(error) or type(error).__name__)
        raise ModelFileError(f"{os.fspath(path)} is damaged: {why}") from error


def _shortened(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}..."


def checked_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape that was read from JSON as a tuple."""
    if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 2**62 for n in shape):
        raise ValueError(f"a shape must be a list of sizes, got {shape!r}")
    return tuple(shape)


class _Place(NamedTuple):
    """An array in a file: its type, its shape, and the bytes from `first` to `last` - 1 of the data."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    first: int
    last: int

    @property
    def info(self) -> ArrayInfo:
        return ArrayInfo(self.dtype.name, self.shape)


def _read_header(file: IO[bytes], path: PathLike, form: Format, size: int) -> tuple[bytes, bytes, bytes | None]:
    """Return the bytes before the data with zeros for the digest, the header among them, and the digest."""
    start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    if len(start) < 9 or start[8:] != b"{" or length > _LONGEST_HEADER:
        raise ModelFileError(f"{path} is not a {form.kind}")
    if size < 8 + length:
        raise ModelFileError(f"{path} is not a {form.kind}, or cut short within its header")
    header = b"{" + file.read(length - 1)
    if not header.startswith(_BEFORE_DIGEST):
        return start[:8] + header, header, None
    at = len(_BEFORE_DIGEST)
    digest = header[at : at + len(_UNSEALED)]
    header = header[:at] + _UNSEALED.encode() + header[at + len(_UNSEALED) :]
    return start[:8] + header, header, digest


def _parsed_header(header: bytes, path: PathLike, form: Format, size: int) -> tuple[dict[str, _Place], dict[str, Any]]:
    """Return the places of the arrays and the description."""
    try:
        _check_entries(header, size)
        entries = _parsed(header)
        text = entries.pop("__metadata__")["larank"].encode("ascii")
        places = {name: _place(entry) for name, entry in entries.items()}
        _check_memory(text, size)
        description = _parsed(text)
        description.pop("digest", None)
        if description["format"] != form.name:
            raise ValueError("another format")
    except _TooLargeError as error:
        raise ModelFileError(f"{path} is damaged, or not a {form.kind}: {error}") from error
    except DAMAGE as error:
        raise ModelFileError(f"{path} is not a {form.kind}, or its header is damaged") from error
    return places, description


def _place(entry: Mapping[str, Any]) -> _Place:
    dtype, shape, (first, last) = _DTYPES[entry["dtype"]], checked_shape(entry["shape"]), entry["data_offsets"]
    if type(first) is not int or type(last) is not int or last - first != dtype.itemsize * math.prod(shape):
        raise ValueError(f"bytes {first} to {last} are not an array of {dtype} and shape {shape}")
    return _Place(dtype, shape, first, last)


def _check_version(description: Mapping[str, Any], path: PathLike, form: Format, *, has_digest: bool) -> None:
    found, ours = description.get("format_version"), f"larank {version('larank')} reads version {form.version}"
    if type(found) is not int or not 1 <= found <= form.version:
        raise ModelFileError(f"{path} has format version {found!r}; {ours}")
    if found < form.version or not has_digest:
        lacks = "" if has_digest else " without a digest"
        raise OlderFileError(
            f"{path} was written by an older build of larank, in format version {found}{lacks}; {ours} "
            f"only. Train again and write the {form.kind.rpartition(' ')[2]} again"
        )


def _read_arrays(
    file: IO[bytes], places: Mapping[str, _Place], wanted: Callable[[str], bool], seal: Any
) -> dict[str, NDArray[Any]]:
    """Read the arrays, one after the other, and add all their bytes to the digest."""
    found: dict[str, NDArray[Any]] = {}
    at = 0
    for name, place in sorted(places.items(), key=lambda item: (item[1].first, item[1].last)):
        if place.first != at:
            raise ValueError(f"the bytes of the array {name!r} begin at {place.first}, but those before end at {at}")
        at = place.last
        if wanted(name):
            array = np.empty(place.shape, place.dtype)
            content = array.reshape(-1).view(np.uint8)
            _fill(file, memoryview(content), seal)  # type: ignore[arg-type]
            if place.dtype == np.bool_ and (content > 1).any():
                raise ValueError(f"the array {name!r} has bytes that are not booleans")
            found[name] = array
        else:
            _skip(file, place.last - place.first, seal)
    return found


def _fill(file: IO[bytes], content: memoryview, seal: Any) -> None:
    for begin in range(0, len(content), _AT_ONCE):
        part = content[begin : begin + _AT_ONCE]
        if file.readinto(part) < len(part):  # type: ignore[attr-defined]
            raise ValueError("it has become shorter while it was read")
        seal.update(part)


def _skip(file: IO[bytes], count: int, seal: Any) -> None:
    for begin in range(0, count, _AT_ONCE):
        seal.update(file.read(min(_AT_ONCE, count - begin)))


def _check_entries(header: bytes, size: int) -> None:
    """Check the memory of what a header holds in addition to the description."""
    if not header.isascii():  # one other character can make a text take 4 times its size
        raise ValueError("the header must be ASCII")
    found = _STRING.match(header, len(_BEFORE_DESCRIPTION)) if header.startswith(_BEFORE_DESCRIPTION) else None
    # Each entry takes its memory twice: as JSON, and as the place and the array that are made from it.
    _check_memory(header[found.end() if found else 0 :], size, times=2)


def _check_memory(text: bytes, size: int, times: int = 1) -> None:
    """Raise if the values of a JSON text may take much more memory than a file of this size should."""
    numbers = sum(1 for _ in _NUMBER.finditer(text)) if len(text) > _MEMORY_FOR_JSON // 100 else 0
    needed = times * (
        _BYTES_OF_LIST * text.count(b"[")
        + _BYTES_OF_DICT * text.count(b"{")
        + _BYTES_OF_KEY * text.count(b":")
        + _BYTES_OF_TEXT * text.count(b'"') // 2
        + _BYTES_OF_NUMBER * numbers
        + _BYTES_OF_ITEM * text.count(b",")
    )
    allowed = _MEMORY_FOR_JSON + 2 * size
    if needed > allowed:
        raise _TooLargeError(
            f"the lists, texts and numbers of its description take about {needed} bytes of memory, where {allowed} are "
            f"allowed for a file of {size} bytes"
        )


def _parsed(text: bytes) -> dict[str, Any]:
    """Parse a JSON object; NaN and Infinity are refused because they are not JSON."""
    found: dict[str, Any] = json.loads(text, parse_constant=_no_constant)
    if not isinstance(found, dict):
        raise ValueError(f"there must be a JSON object, got a {type(found).__name__}")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
