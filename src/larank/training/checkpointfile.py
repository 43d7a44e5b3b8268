"""Checkpoint files: the state of a training on disk, from which the same training goes on in another process.

A checkpoint file is a safetensors file, never a pickle. Beside the state it names what it is of: the class, its
parameters, the library's version and fingerprints of the data. One that is damaged, or of anything else, is refused
with what differs. The loop writes it now and then; a training says what its state is:

- plain values, lists and dicts of them, and arrays, which may be nested
- whatever is in it is checked by who reads it: the file may come from anywhere
"""

from __future__ import annotations

import hashlib
import math
import os
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from larank.data import arrayfile
from larank.data.arrayfile import ModelFileError
from larank.data.files import PathLike, atomic_write
from larank.declare import values_of

State = Mapping[str, Any]
"""Plain values, arrays, and lists and dicts of them."""

_FORMAT = arrayfile.Format("larank-checkpoint", 4)
_MAY_DIFFER = ("time_limit", "max_iter", "n_jobs", "verbose", "on_interrupt")  # from the run that is gone on with
_MOST_OF_TIME = 0.02  # that checkpoints take
_SENSELESS = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)


_EVERY = 30.0  # seconds


def _check_place(path: str) -> None:
    """Before training, not after it."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise ValueError(f"checkpoint must be a file in a folder that is there; got {path!r}, and {folder!r} is none")
    if os.path.isdir(path):
        raise ValueError(f"checkpoint must be the path of a file; got {path!r}, which is a folder")


class NotResumedError(ValueError):
    """A limit that came before the data were read up to the position of a checkpoint."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the training itself is not affected."""


class CheckpointRequest(NamedTuple):
    """The arguments of `fit` that ask for checkpoints."""

    checkpoint: PathLike | None = None
    every: float = _EVERY
    resume: bool = False

    def checked(self) -> CheckpointRequest:
        """Itself; raises where the arguments make no sense."""
        path, every, resume = self
        if path is not None and (not isinstance(path, str | os.PathLike) or not os.fspath(path)):
            raise ValueError(f"checkpoint must be the path of a file, or None; got {path!r}")
        if isinstance(every, bool) or not isinstance(every, int | float | np.number) or not 0 <= every < math.inf:
            raise ValueError(f"every must be a number of seconds >= 0; got {every!r}")
        if not isinstance(resume, bool | np.bool_):
            raise ValueError(f"resume must be True or False; got {resume!r}")
        if resume and path is None:
            raise ValueError("resume=True needs checkpoint, the file to go on from")
        if path is None and every != _EVERY:
            raise ValueError(f"every={every!r} needs checkpoint, the file to write to")
        if path is not None:
            _check_place(os.fspath(path))
        return self


class CheckpointFile:
    """Where the state of a training is written, and how often."""

    def __init__(self, path: PathLike, every: float, of: Mapping[str, Any]) -> None:
        self.path, self.every, self.of = path, every, of
        self.resumed: State | None = None  # what to go on from
        self._due_at = time.perf_counter() + every

    @classmethod
    def asked_for(
        cls, request: CheckpointRequest | None, estimator: BaseEstimator, **data: Any
    ) -> CheckpointFile | None:
        """That of a training of this estimator on these data, by their names; None if there is none.

        Raises
        ------
        ValueError
            If the arguments make no sense, or the file is there already and `resume` is False.
        ModelFileError
            If the file is no checkpoint, damaged, or of another training; the message says what differs.
        """
        path = None if request is None else request.checked().checkpoint
        if request is None or path is None:
            return None
        parameters = _stored_by_constructor(estimator) | values_of(estimator)
        # Training that has made all its passes has ended, so that a larger number of passes would have no effect.
        counts_passes = parameters.get("tol") is None
        may_differ = [name for name in _MAY_DIFFER if not (counts_passes and name == "max_iter")]
        of = {
            "class": type(estimator).__name__,
            "parameters": {name: described(value) for name, value in parameters.items() if name not in may_differ},
            "library version": version("larank"),
            "data": {name: _identity(part) for name, part in data.items()},
        }
        file = cls(path, float(request.every), of)
        if os.path.lexists(path):
            if not request.resume:
                raise ValueError(
                    f"checkpoint={os.fspath(path)!r} is there already: resume=True goes on from it; to begin anew, "
                    "remove it or name another file"
                )
            file.resumed = file._read()
        return file

    def is_due(self) -> bool:
        """Whether it is time to write it."""
        return time.perf_counter() >= self._due_at

    def write(self, state: State, *, is_last: bool) -> None:
        """Replace the state in the file.

        If the disk is full or fails, or the state is too large for a file, a warning is issued and the previous state
        stays in the file. `is_last` says for the warning that training has ended.
        """
        arrays: dict[str, NDArray[Any]] = {}
        description = {"of": self.of, "state": _encoded(state, "state", arrays)}
        try:
            with atomic_write(self.path) as file:
                arrayfile.write(file, _FORMAT, description, arrays)
        except (OSError, ValueError) as error:
            kept = "the previous checkpoint stays" if os.path.exists(self.path) else "no checkpoint exists"
            follows = "training goes on, and the next checkpoint is tried when it is due"
            if is_last:
                follows = "training has ended, so that no other checkpoint will be written"
            warnings.warn(
                f"the checkpoint {os.fspath(self.path)!r} cannot be written: "
                f"{getattr(error, 'strerror', None) or error}; {kept}, {follows}",
                CheckpointWarning,
                stacklevel=2,
            )

    def wait(self, seconds: float) -> None:
        """The last one took so long, the state included: the next is due when that is little beside the time since."""
        self._due_at = time.perf_counter() + max(self.every, seconds / _MOST_OF_TIME)

    def _read(self) -> State:
        description, _, arrays = arrayfile.read(self.path, _FORMAT)
        with self.reading():
            self._compare(description["of"])
            state: State = _decoded(description["state"], arrays)
        return state

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raise an error that names the file as damaged if its content makes no sense."""
        try:
            yield
        except (ModelFileError, NotResumedError):
            raise
        except _SENSELESS as error:
            raise ModelFileError(f"{os.fspath(self.path)} is damaged: {error}") from error

    def _compare(self, theirs: Mapping[str, Any]) -> None:
        """Raise where it is the checkpoint of another training."""
        for what, mine in self.of.items():
            if theirs[what] == mine:
                continue
            if what == "data":
                raise ModelFileError(f"{os.fspath(self.path)} is of other data: {_difference(theirs[what], mine)}")
            if what != "parameters":
                raise ModelFileError(f"{os.fspath(self.path)} is of other {what}: {theirs[what]}; got {mine}")
            for name in sorted(mine.keys() | theirs[what].keys()):
                before, now = theirs[what].get(name, "nothing"), mine.get(name, "nothing")
                if before != now:
                    raise ModelFileError(f"{os.fspath(self.path)} was written with {name}={before}; got {name}={now}")


def _stored_by_constructor(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the arguments of the constructor that are attributes; a subclass may have other ones than the library."""
    names = signature(type(estimator)).parameters
    return {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}


class DataPart(NamedTuple):
    """Data that are no array: what they are, in words, and all that tells them from others."""

    kind: str
    content: tuple[Any, ...]


def file_as_data(path: PathLike) -> DataPart:
    """A file that is read in training, with all its bytes."""
    if not os.path.isfile(path):
        raise ValueError(f"checkpoint needs data that can be read again; {os.fspath(path)} is no file")
    size = os.path.getsize(path)
    content = np.memmap(path, np.uint8, "r") if size else np.zeros(0, np.uint8)
    return DataPart(f"a file of {size} bytes", (content,))


def _identity(part: Any) -> dict[str, str]:
    """What some data are, and a number that tells them from others."""
    kind, content = part if isinstance(part, DataPart) else (_kind(part), (part,))
    return {"kind": kind, "fingerprint": fingerprint(*content)}


def _kind(value: Any) -> str:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{'a sparse matrix' if issparse(value) else 'an array'} of {value.dtype} and shape {value.shape}"
    return f"a {type(value).__name__} of {len(value)}" if hasattr(value, "__len__") else repr(value)


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Which parts of the data are others, and what is known of them."""
    differences = []
    for name in now:
        was, is_now = before[name]["kind"], now[name]["kind"]
        if was != is_now:
            differences.append(f"{name} was {was}, and is {is_now}")
        elif before[name] != now[name]:
            differences.append(f"{name} is {is_now} as it was, with other values")
    return "; ".join(differences)


def random_state_of(random: np.random.RandomState) -> list[Any]:
    """Where a random generator stands."""
    return list(random.get_state())


def set_random_state(random: np.random.RandomState, state: Any) -> None:
    """Let it go on from there; NumPy takes any place among its numbers, also one beyond them."""
    name, keys, place, has_gauss, gauss = state
    if name != "MT19937" or keys.dtype != np.uint32 or keys.shape != (624,) or not 0 <= int(place) <= len(keys):
        raise ValueError("it has no state of a random generator")
    random.set_state((name, keys, int(place), int(bool(has_gauss)), float(gauss)))


def described(value: Any) -> str:
    """A parameter in words that are the same in another process."""
    if isinstance(value, np.random.RandomState):
        return f"RandomState at {fingerprint(*value.get_state())}"
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return repr(value.tolist() if isinstance(value, np.ndarray | np.generic) else value)


def fingerprint(*data: Any) -> str:
    """A number that tells data from others: of all bytes, types and shapes."""
    digest = hashlib.blake2b(digest_size=16)
    for each in data:
        _add(digest, each)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if issparse(value):
        digest.update(f"sparse {value.shape}".encode())
        for part in (value.indptr, value.indices, value.data):
            _add(digest, part)
    elif isinstance(value, np.ndarray) and value.dtype.kind not in "OUS":
        digest.update(f"{value.dtype.str} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    elif isinstance(value, Mapping):
        _add(digest, [each for item in value.items() for each in item])
    elif isinstance(value, np.ndarray | list | tuple):
        digest.update(f"{len(value)} in all".encode())
        for each in value.tolist() if isinstance(value, np.ndarray) else value:
            _add(digest, each)
    else:
        digest.update(repr(value).encode())


def _encoded(value: Any, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    if isinstance(value, np.ndarray):
        arrays[name] = np.ascontiguousarray(value)
        return {"$array": name}
    if isinstance(value, Mapping):
        return {key: _encoded(each, f"{name}/{key}", arrays) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_encoded(each, f"{name}/{number}", arrays) for number, each in enumerate(value)]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(value)}
    return value


def _decoded(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if isinstance(value, dict):
        if "$array" in value:
            return arrays[value["$array"]]
        if "$float" in value:
            return float(value["$float"])
        return {key: _decoded(each, arrays) for key, each in value.items()}
    if isinstance(value, list):
        return [_decoded(each, arrays) for each in value]
    return value
