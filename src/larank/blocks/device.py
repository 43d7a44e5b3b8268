"""Arrays on a device: NumPy on the host, PyTorch or CuPy on a GPU, and kernel values of rows that lie there.

What is computed on a device is written once, in the functions that the three libraries share. A `Device` has these
functions as `xp` and the few calls in which they differ.
"""

from __future__ import annotations

import importlib
import math
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from larank.blocks.kernels import Kernel, ProductKernel
from larank.blocks.provider import precision

__all__ = [
    "Device",
    "DeviceArray",
    "DeviceKernel",
    "DeviceMemoryError",
    "check_is_dense",
    "device_for",
    "device_scores",
    "on_device",
]

Array = Any  # of whatever library
_TILE = 1 << 26  # kernel values that are there at once, beside those that are kept
_SOME = 4096  # examples whose mean is taken
_DIGITS_OF_LOCATION = 1 << 8


# Of CUDA graphs. One is recorded at a time in a process, on a stream for each GPU, for libraries keep memory for every
# stream they have seen. After a graph that could not be recorded there are no others; it is kept, since the allocator
# of PyTorch may still refer to it.
_recording = threading.Lock()
_streams: dict[str, Any] = {}
_unrecorded: list[Any] = []


class DeviceMemoryError(MemoryError):
    """The memory of a device is used up; the message has the plan, and the model is as it was before."""


class Device(ABC):
    """A library of arrays, and the way to its arrays and back."""

    name: str
    xp: Any
    # What keeps it busy: patterns of a block step, and examples that are scored at once.
    patterns_at_once = 2560
    examples_at_once = 1 << 18

    @abstractmethod
    def put(self, values: Any, dtype: Any) -> Array:
        """An array there with these numbers; what lies there already in this type is not copied."""

    @abstractmethod
    def get(self, array: Array) -> NDArray[Any]:
        """The same numbers on the host."""

    @abstractmethod
    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Of a type of NumPy's."""

    @abstractmethod
    def cast(self, array: Array, dtype: Any) -> Array:
        """The same numbers in another type of NumPy's."""

    @abstractmethod
    def is_exhausted(self, error: BaseException) -> bool:
        """Whether the error says that there is no memory left."""

    def recorded(self, work: Callable[[], None]) -> Callable[[], None] | None:
        """What does the same to the same arrays for less, without Python; None where launches cannot be recorded."""
        return None

    def index(self, places: Any) -> Array:
        """Rows or columns to choose."""
        return self.put(np.asarray(places, np.int64), np.int64)

    @contextmanager
    def within(self, plan: str) -> Iterator[None]:
        """Say what was planned where memory is used up, or a copy to the device fails."""
        try:
            yield
        except DeviceMemoryError:
            raise
        except Exception as error:
            if not self.is_exhausted(error):
                raise
            self.release()
            raise DeviceMemoryError(f"the memory of device={self.name!r} is used up: {plan}") from error

    def release(self) -> None:
        """Let memory go that a library keeps for later."""


class HostDevice(Device):
    """NumPy."""

    name, xp = "cpu", np
    patterns_at_once = 256
    examples_at_once = 2048

    def put(self, values: Any, dtype: Any) -> Array:
        return np.asarray(values, dtype)

    def get(self, array: Array) -> NDArray[Any]:
        return np.asarray(array)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array:
        return np.zeros(shape, dtype)

    def cast(self, array: Array, dtype: Any) -> Array:
        return array.astype(dtype, copy=False)

    def is_exhausted(self, error: BaseException) -> bool:
        return isinstance(error, MemoryError)


class TorchDevice(Device):
    """PyTorch, on whichever of its devices."""

    def __init__(self, device: Any) -> None:
        self._torch: Any = importlib.import_module("torch")
        self.xp = importlib.import_module("array_api_compat.torch")
        self._device = self._torch.device(device)
        self.name = str(self._device)
        if self._device.type == "cpu":
            self.patterns_at_once, self.examples_at_once = HostDevice.patterns_at_once, HostDevice.examples_at_once

    def put(self, values: Any, dtype: Any) -> Array:
        wanted, values = self._type(dtype), values.array if isinstance(values, DeviceArray) else values
        if isinstance(values, self._torch.Tensor):
            values = values.detach()
        else:
            values = self._torch.from_numpy(np.require(values, requirements=["C", "W"]))
            if self._device.type == "cuda" and values.numel() > 1 << 16:
                values = values.pin_memory()  # is copied while the device works
        return values.to(device=self._device, non_blocking=True).to(wanted)

    def get(self, array: Array) -> NDArray[Any]:
        values: NDArray[Any] = array.detach().cpu().numpy()
        return values

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array:
        return self._torch.zeros(shape, dtype=self._type(dtype), device=self._device)

    def cast(self, array: Array, dtype: Any) -> Array:
        return array.to(self._type(dtype))

    def is_exhausted(self, error: BaseException) -> bool:
        return isinstance(error, self._torch.cuda.OutOfMemoryError | MemoryError)

    def release(self) -> None:
        if self._device.type == "cuda":
            self._torch.cuda.empty_cache()

    def recorded(self, work: Callable[[], None]) -> Callable[[], None] | None:
        """As a CUDA graph: one launch for all of them."""
        if self._device.type != "cuda" or _unrecorded:
            return None
        cuda = self._torch.cuda
        here = cuda.current_stream(self._device)
        # A capture that fails does not bring the current stream back; the context around it does.
        with _recording, cuda.device(self._device), cuda.stream(here):
            if self.name not in _streams:
                _streams[self.name] = cuda.Stream(self._device)
            beside, graph = _streams[self.name], cuda.CUDAGraph()
            try:
                beside.wait_stream(here)
                with cuda.stream(beside):
                    work()  # what libraries do when they are first called must not be recorded
                here.wait_stream(beside)
                with cuda.graph(graph, stream=beside, capture_error_mode="thread_local"):
                    work()
            except RuntimeError as error:
                _unrecorded.append(graph)
                if self.is_exhausted(error):
                    raise
                warnings.warn(f"device={self.name!r} works without CUDA graphs: {error}", RuntimeWarning, stacklevel=2)
                return None
        replay: Callable[[], None] = graph.replay
        return replay

    def _type(self, dtype: Any) -> Any:
        return getattr(self._torch, np.dtype(dtype).name)  # they have NumPy's names


class CupyDevice(Device):
    """CuPy, on one GPU."""

    def __init__(self, number: int) -> None:
        self.xp = importlib.import_module("cupy")
        self.xp.cuda.Device(number).use()
        self.name = f"cuda:{number}"

    def put(self, values: Any, dtype: Any) -> Array:
        return self.xp.asarray(values.array if isinstance(values, DeviceArray) else values, dtype)

    def get(self, array: Array) -> NDArray[Any]:
        values: NDArray[Any] = self.xp.asnumpy(array)
        return values

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array:
        return self.xp.zeros(shape, dtype)

    def cast(self, array: Array, dtype: Any) -> Array:
        return array.astype(dtype, copy=False)

    def is_exhausted(self, error: BaseException) -> bool:
        return isinstance(error, self.xp.cuda.memory.OutOfMemoryError | MemoryError)

    def release(self) -> None:
        self.xp.get_default_memory_pool().free_all_blocks()


def device_for(device: Any) -> Device:
    """The device that an estimator's parameter names: "cpu", "cuda", "cuda:1" or a `torch.device`.

    Raises
    ------
    ValueError
        Where it is not there; the message says what is missing, and what would do.
    """
    if isinstance(device, str) and device == "cpu":
        return HostDevice()
    if not isinstance(device, str):
        return _of_torch(device)
    reasons = []
    for library in ("torch", "cupy"):
        try:
            found = importlib.import_module(library)
        except ImportError:
            reasons.append(f"{library} is not installed")
            continue
        number = int(device.partition(":")[2] or 0)
        count = _cuda_devices(library, found)
        if number < count:
            return _of_torch(f"cuda:{number}") if library == "torch" else CupyDevice(number)
        reasons.append(f"{library} {found.__version__} finds {count or 'no'} CUDA device{'s' if count != 1 else ''}")
    raise ValueError(
        f"device={device!r} is not there: {', '.join(reasons)}. PyTorch or CuPy come with pip install 'larank[gpu]'; "
        "device='cpu' takes the same block steps with NumPy, and without BlockSteps the compiled machine trains"
    )


def _of_torch(device: Any) -> Device:
    try:
        return TorchDevice(device)
    except ImportError as error:
        raise ValueError(f"device={device!r} needs {error.name}: pip install 'larank[gpu]'") from None


def _cuda_devices(library: str, found: Any) -> int:
    if library == "torch":
        return int(found.cuda.device_count()) if found.cuda.is_available() else 0
    try:
        return int(found.cuda.runtime.getDeviceCount())
    except found.cuda.runtime.CUDARuntimeError:
        return 0


class DeviceArray:
    """Examples that a caller has on a device already: an array of PyTorch or CuPy, with what is asked of NumPy's."""

    ndim = 2

    def __init__(self, array: Array) -> None:
        self.array = array.detach() if _library(array) == "torch" else array
        self.shape = tuple(int(size) for size in array.shape)
        self.dtype = np.dtype(str(array.dtype).removeprefix("torch."))
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> DeviceArray:
        return DeviceArray(self.array[rows if isinstance(rows, slice) else self._put(np.asarray(rows))])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """A copy on the host."""
        array = self.array
        values = array.detach().cpu().numpy() if self._is_torch else array.get()
        return np.array(values, dtype)

    def largest_squared_norm(self) -> float:
        """Of a row, in double precision; no number where one is none."""
        values = self._doubles()
        return float((values * values).sum(1).max())

    def variance(self) -> float:
        """Of all numbers, in double precision."""
        values = self._doubles()
        return float(((values - values.mean()) ** 2).mean())

    def _doubles(self) -> Array:
        return self.array.double() if self._is_torch else self.array.astype(np.float64)

    def like(self, values: NDArray[Any]) -> Any:
        """These numbers in an array of the same library on the same device; what are no numbers stay as they are."""
        return self._put(values) if values.dtype.kind in "biuf" else values

    @property
    def _is_torch(self) -> bool:
        return _library(self.array) == "torch"

    @property
    def _xp(self) -> Any:
        return importlib.import_module(_library(self.array))

    def _put(self, values: NDArray[Any]) -> Array:
        if self._is_torch:
            return self._xp.from_numpy(np.ascontiguousarray(values)).to(self.array.device)
        with self.array.device:
            return self._xp.asarray(values)


def _library(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


def on_device(array: Any) -> DeviceArray | None:
    """An array of PyTorch or CuPy with what is asked of NumPy's; None for others."""
    library = _library(array)
    if library not in ("torch", "cupy") or not hasattr(array, "shape"):
        return None
    if library == "torch":
        torch = importlib.import_module("torch")
        if array.layout != torch.strided:
            raise ValueError(f"X must be a dense tensor, got the layout {array.layout}")
        if array.dtype in (torch.float16, torch.bfloat16):
            array = array.float()
        elif not array.dtype.is_floating_point and array.dtype not in (torch.uint8, torch.int8):
            array = array.double()
    return DeviceArray(array)


@dataclass(frozen=True)
class Rows:
    """Examples on a device, with their squared norms and a bound of these."""

    X: Array
    norms: Array
    largest_norm: float

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def at(self, places: Array) -> Rows:
        """Those in these places."""
        return Rows(self.X[places], self.norms[places], self.largest_norm)


class DeviceKernel:
    """Kernel values of rows on a device, of kernels that are functions of inner products and norms.

    Rows are moved to where `X` has its mean, if the kernel is one of distances: far from the origin norms are large,
    and distances are small differences of them.
    """

    def __init__(self, device: Device, kernel: Kernel, dtype: np.dtype[Any], X: Any) -> None:
        if not isinstance(kernel, ProductKernel):
            raise ValueError(
                f"device={device.name!r} takes kernels of inner products and distances only: 'linear', 'poly', 'rbf' "
                f"or 'sigmoid'; got {kernel.name or 'a callable kernel'!r}; train without BlockSteps"
            )
        self.device, self.kernel, self.dtype = device, kernel, dtype
        self.location = np.zeros(X.shape[1])
        if kernel.of_distance and X.shape[0]:
            mantissas, exponents = np.frexp(np.asarray(X[:_SOME], np.float64).mean(axis=0))
            # So few digits that most differences x - location are exact.
            self.location = np.ldexp(np.rint(mantissas * _DIGITS_OF_LOCATION) / _DIGITS_OF_LOCATION, exponents)

    def rows(self, X: Any, dtype: Any = None) -> Rows:
        """Examples of the host, for products in the precision of the kernel or in another."""
        dtype = dtype or self.dtype
        return self._measured(self.device.put(X, dtype) - self.device.put(self.location, dtype))

    def cast(self, rows: Rows, dtype: Any) -> Rows:
        """Examples that are there already, in another precision."""
        return rows if self.device.get(rows.X[:0]).dtype == dtype else self._measured(self.device.cast(rows.X, dtype))

    def _measured(self, X: Array) -> Rows:
        norms = self.device.xp.sum(X * X, axis=1)
        return Rows(X, norms, float(self.device.xp.max(norms)) if len(norms) and self.kernel.of_distance else 0.0)

    def values(self, left: Rows, right: Rows) -> Array:
        """All pairs; the diagonal of a set with itself need not be exact."""
        xp, products = self.device.xp, left.X @ right.X.T
        norms = left.norms[:, None], right.norms[None, :]
        if not self.kernel.may_cancel(left.largest_norm + right.largest_norm):
            return self.kernel.mapped(xp, products, *norms)
        near = xp.nonzero(self.kernel.cancelled(xp, products, *norms))
        values = self.kernel.mapped(xp, products, *norms)
        at_once = max(1, _TILE // max(1, len(self.location)))
        for first in range(0, len(near[0]), at_once):
            i, j = (places[first : first + at_once] for places in near)
            differences = left.X[i] - right.X[j]
            squared = xp.sum(differences * differences, axis=1)[None, :]
            values[i, j] = self.kernel.mapped(xp, 0 * squared, 0 * squared[:, :1], squared)[0]
        return values

    def diagonal(self, rows: Rows) -> Array:
        """k(x, x)."""
        exact = self.kernel.diagonal(self.device.get(rows.norms).astype(np.float64))
        return self.device.put(exact, self.dtype)

    def sums(self, left: Rows, right: Rows, coefficients: Array) -> Array:
        """sum_j coefficients[j, y] k(right_j, left_i), a tile of rows at a time."""
        xp, at_once = self.device.xp, max(1, _TILE // max(1, len(right)))
        tiles = [slice(n, min(n + at_once, len(left))) for n in range(0, len(left), at_once)]
        parts = [self.values(left.at(tile), right) @ coefficients for tile in tiles]
        return xp.concatenate(parts)

    def scores(self, X: Any, patterns: Rows, coefficients: Array) -> NDArray[np.float64]:
        """The same for examples of the host, which go there some at a time, in the precision of the coefficients."""
        size, dtype = int(X.shape[0]), self.device.get(coefficients[:0]).dtype
        right = self.cast(patterns, dtype)
        at_once = max(1, min(self.device.examples_at_once, _TILE // max(len(patterns), len(self.location))))
        found, scores = [], None
        for cut in range(0, size, at_once):
            some = self.rows(X[cut : cut + at_once], dtype)  # made ready while the device works on those before
            if scores is not None:
                found.append(self.device.get(scores))
            scores = self.sums(some, right, coefficients)
        return np.concatenate([*found, self.device.get(scores)]).astype(np.float64)


def check_is_dense(device: Any, X: Any) -> None:
    """Raise for data that have no place on a device."""
    if issparse(X):
        raise ValueError(f"device={device!r} takes dense arrays, got a sparse matrix; train without BlockSteps")


def device_scores(device: Any, kernel: Kernel, X: Any, support: Any, coefficients: csr_matrix) -> NDArray[np.float64]:
    """sum_i beta_i k(x_i, x) of all examples, computed on a device."""
    check_is_dense(device, X)
    check_is_dense(device, support)
    there = device_for(device)
    values = DeviceKernel(there, kernel, precision(support), support)
    with there.within(f"{len(support)} patterns of {X.shape[1]} features, to score {len(X)} examples"):
        return values.scores(X, values.rows(support), there.put(coefficients.toarray(), values.dtype))
