"""Kernels: what they compute, found by name, with their parameters resolved and checked.

A kernel is one small class. It says how inner products become kernel values (`ProductKernel`) or how two rows compare
feature by feature (`RowKernel`); its dataclass fields are those of `gamma`, `degree` and `coef0` that it uses. Defining
the class with a `name` registers it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from larank import _core
from larank.parameters import finite, one_of, positive, whole_number

__all__ = [
    "CallableKernel",
    "Kernel",
    "PrecomputedKernel",
    "ProductKernel",
    "RowKernel",
    "kernel_for",
    "kernel_names",
    "kernels_with",
    "takes_bytes",
    "takes_sparse",
    "with_bias",
]

_Array = NDArray[Any]
_Index = NDArray[np.int64]
_NO_PAIRS: _Index = np.zeros(0, np.int64)
# The largest gamma (|x|^2 + |z|^2) for which a rounded distance does not matter, as in core/blocks/distances.hpp.
_HARMLESS = 16.0
_HUGE = 1e30  # gamma (|x|^2 + |z|^2) from which every digit of a distance may be wrong
_ROUNDING = 32  # units of rounding of |x|^2 + |z|^2, by which a squared distance may be off

_named: dict[str, type[Kernel]] = {}


@dataclass(frozen=True)
class Kernel:
    """A symmetric function of two examples."""

    name: ClassVar[str] = ""
    constant: ClassVar[float] = 0.0  # is added to the values of the kernel with this name
    is_definite: ClassVar[bool] = True  # positive semi-definite on whatever examples

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        """Register the class under its name; without one it is a kind of kernel, not a kernel."""
        super().__init_subclass__(**options)
        if name:
            cls.name = name
            _named[name] = cls


class ProductKernel(Kernel, ABC):
    """A function of the inner product of two examples and of their squared norms."""

    of_distance: ClassVar[bool] = False  # moving all examples alike changes nothing

    @abstractmethod
    def map(self, tile: _Array, row_norms: _Array, column_norms: _Array) -> _Index:
        """Turn a tile of inner products into kernel values, in place.

        Returns the positions in the tile of pairs whose distance has lost its digits: `map_distances` has their values.
        """

    def map_distances(self, squared: NDArray[np.float64], dtype: Any) -> _Array:
        """Return the kernel values of pairs at these squared distances, for a kernel of distances."""
        values = np.zeros((1, len(squared)), dtype)
        self.map(values, np.zeros(1, dtype), squared.astype(dtype))
        of_pairs: _Array = values[0]
        return of_pairs

    def mapped(self, xp: Any, products: Any, row_norms: Any, column_norms: Any) -> Any:
        """Return what `map` makes of arrays of any library, by its functions `xp`, in place."""
        raise ValueError(f"kernel={self.name!r} has no map for arrays on a device; train without BlockSteps")

    def may_cancel(self, norms: float) -> bool:
        """Whether distances of examples with these squared norms, at most, may lose digits that matter."""
        return False

    def cancelled(self, xp: Any, products: Any, row_norms: Any, column_norms: Any) -> Any:
        """Return a mask of the pairs whose distance has lost its digits, where `may_cancel` says so."""
        return products != products

    @abstractmethod
    def diagonal(self, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        """k(x, x) of examples with these squared norms."""


class RowKernel(Kernel, ABC):
    """A function that needs both examples feature by feature; no matrix product helps."""

    non_negative: ClassVar[bool] = False

    @abstractmethod
    def compare(self, X: _Array, Z: _Array, out: _Array) -> None:
        """Write the kernel values of rows of X with rows of Z to a tile."""

    @abstractmethod
    def diagonal(self, X: _Array) -> NDArray[np.float64]:
        """k(x, x) of dense rows."""


@dataclass(frozen=True)
class Linear(ProductKernel, name="linear"):
    """x'z."""

    def map(self, tile: _Array, row_norms: _Array, column_norms: _Array) -> _Index:
        return _NO_PAIRS

    def mapped(self, xp: Any, products: Any, row_norms: Any, column_norms: Any) -> Any:
        return products

    def diagonal(self, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        return norms


@dataclass(frozen=True)
class Rbf(ProductKernel, name="rbf"):
    """exp(-gamma |x - z|^2)."""

    of_distance = True
    gamma: float

    def map(self, tile: _Array, row_norms: _Array, column_norms: _Array) -> _Index:
        return _core.map_rbf(tile, row_norms, column_norms, self.gamma)

    def mapped(self, xp: Any, products: Any, row_norms: Any, column_norms: Any) -> Any:
        products -= row_norms / 2
        products -= column_norms / 2
        xp.minimum(products, 0 * row_norms[:1], out=products)  # no distance is below zero
        with np.errstate(over="ignore"):  # to values of zero
            products *= 2 * self.gamma
        return xp.exp(products, out=products)

    def may_cancel(self, norms: float) -> bool:
        return self.gamma * norms > _HARMLESS

    def cancelled(self, xp: Any, products: Any, row_norms: Any, column_norms: Any) -> Any:
        norms, one = row_norms + column_norms, 0 * row_norms[:1] + 1
        with np.errstate(over="ignore"):
            exponents = xp.minimum(xp.maximum(self.gamma * norms, _HARMLESS * one), _HUGE * one)
        near = 2 * (xp.sqrt(exponents / _HARMLESS) - 1) / exponents + _ROUNDING * float(xp.finfo(norms.dtype).eps)
        return (exponents > _HARMLESS) & (norms - 2 * products <= near * norms)

    def diagonal(self, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ones(len(norms))


@dataclass(frozen=True)
class Polynomial(ProductKernel, name="poly"):
    """(gamma x'z + coef0)^degree."""

    gamma: float
    coef0: float
    degree: int

    @property
    def is_definite(self) -> bool:  # type: ignore[override]
        return self.coef0 >= 0

    def map(self, tile: _Array, row_norms: _Array, column_norms: _Array) -> _Index:
        _core.map_polynomial(tile, self.gamma, self.coef0, self.degree)
        return _NO_PAIRS

    def mapped(self, xp: Any, products: Any, row_norms: Any, column_norms: Any) -> Any:
        products *= self.gamma
        products += self.coef0
        products **= self.degree
        return products

    def diagonal(self, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            values: NDArray[np.float64] = (self.gamma * norms + self.coef0) ** self.degree
        return values


@dataclass(frozen=True)
class Sigmoid(ProductKernel, name="sigmoid"):
    """tanh(gamma x'z + coef0), positive semi-definite for some parameters and examples only."""

    is_definite = False
    gamma: float
    coef0: float

    def map(self, tile: _Array, row_norms: _Array, column_norms: _Array) -> _Index:
        _core.map_sigmoid(tile, self.gamma, self.coef0)
        return _NO_PAIRS

    def mapped(self, xp: Any, products: Any, row_norms: Any, column_norms: Any) -> Any:
        products *= self.gamma
        products += self.coef0
        return xp.tanh(products, out=products)

    def diagonal(self, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            values: NDArray[np.float64] = np.tanh(self.gamma * norms + self.coef0)
        return values


@dataclass(frozen=True)
class Laplacian(RowKernel, name="laplacian"):
    """exp(-gamma |x - z|_1)."""

    gamma: float

    def compare(self, X: _Array, Z: _Array, out: _Array) -> None:
        _core.compare_laplacian(X, Z, self.gamma, out)

    def diagonal(self, X: _Array) -> NDArray[np.float64]:
        return np.ones(len(X))


@dataclass(frozen=True)
class ChiSquared(RowKernel, name="chi2"):
    """exp(-gamma sum (x - z)^2 / (x + z)), for features >= 0 such as histograms."""

    non_negative = True
    gamma: float

    def compare(self, X: _Array, Z: _Array, out: _Array) -> None:
        _core.compare_chi_squared(X, Z, self.gamma, out)

    def diagonal(self, X: _Array) -> NDArray[np.float64]:
        return np.ones(len(X))


@dataclass(frozen=True)
class Intersection(RowKernel, name="intersection"):
    """sum min(x, z), for features >= 0 such as histograms."""

    non_negative = True

    def compare(self, X: _Array, Z: _Array, out: _Array) -> None:
        _core.compare_intersection(X, Z, 0.0, out)

    def diagonal(self, X: _Array) -> NDArray[np.float64]:
        values: NDArray[np.float64] = X.sum(axis=1, dtype=np.float64)
        return values


@dataclass(frozen=True)
class PrecomputedKernel(Kernel, name="precomputed"):
    """Values the caller computed: X holds kernel values instead of features. `plus` is added to all of them."""

    plus: float = 0.0

    is_definite = False


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """The caller's function of two sets of examples, `function(A, B)` of shape (len(A), len(B)).

    `plus` is added to all values.
    """

    is_definite = False
    function: Callable[[Any, Any], Any]
    plus: float = 0.0


@dataclass(frozen=True)
class Products(ProductKernel):
    """Inner products as they are, for other kernels to be made of; perhaps of examples that were moved all alike."""

    moves: bool

    @property
    def of_distance(self) -> bool:  # type: ignore[override]
        return self.moves

    def map(self, tile: _Array, row_norms: _Array, column_norms: _Array) -> _Index:
        return _NO_PAIRS

    def diagonal(self, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        return norms


@dataclass(frozen=True)
class _BiasedProductKernel(ProductKernel):
    """Another kernel plus one."""

    constant = 1.0
    inner: ProductKernel

    @property
    def is_definite(self) -> bool:  # type: ignore[override]
        return self.inner.is_definite

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.inner.name

    @property
    def of_distance(self) -> bool:  # type: ignore[override]
        return self.inner.of_distance

    def map(self, tile: _Array, row_norms: _Array, column_norms: _Array) -> _Index:
        cancelled = self.inner.map(tile, row_norms, column_norms)
        tile += 1
        return cancelled

    def may_cancel(self, norms: float) -> bool:
        return self.inner.may_cancel(norms)

    def cancelled(self, xp: Any, products: Any, row_norms: Any, column_norms: Any) -> Any:
        return self.inner.cancelled(xp, products, row_norms, column_norms)

    def mapped(self, xp: Any, products: Any, row_norms: Any, column_norms: Any) -> Any:
        values = self.inner.mapped(xp, products, row_norms, column_norms)
        values += 1
        return values

    def diagonal(self, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.inner.diagonal(norms) + 1


@dataclass(frozen=True)
class _BiasedRowKernel(RowKernel):
    """Another kernel plus one."""

    inner: RowKernel

    @property
    def is_definite(self) -> bool:  # type: ignore[override]
        return self.inner.is_definite

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.inner.name

    @property
    def non_negative(self) -> bool:  # type: ignore[override]
        return self.inner.non_negative

    def compare(self, X: _Array, Z: _Array, out: _Array) -> None:
        self.inner.compare(X, Z, out)
        out += 1

    def diagonal(self, X: _Array) -> NDArray[np.float64]:
        return self.inner.diagonal(X) + 1


def with_bias(kernel: Kernel) -> Kernel:
    """The kernel k + 1, which gives every class a regularised bias ([mcsvm] section 3)."""
    if isinstance(kernel, ProductKernel):
        return _BiasedProductKernel(kernel)
    if isinstance(kernel, RowKernel):
        return _BiasedRowKernel(kernel)
    if isinstance(kernel, CallableKernel):
        return CallableKernel(kernel.function, plus=1.0)
    assert isinstance(kernel, PrecomputedKernel)
    return PrecomputedKernel(plus=1.0)


def kernel_names() -> tuple[str, ...]:
    """The names `kernel_for` accepts."""
    return tuple(_named)


def kernels_with(parameter: str) -> tuple[str, ...]:
    """The names of the kernels that have a parameter: gamma, degree or coef0."""
    return tuple(name for name, kind in _named.items() if parameter in {field.name for field in fields(kind)})


def takes_sparse(kernel: Any) -> bool:
    """Whether a kernel takes CSR matrices: those of inner products do, and the caller's functions are handed them."""
    return callable(kernel) or (isinstance(kernel, str) and issubclass(_named.get(kernel, Kernel), ProductKernel))


def takes_bytes(kernel: Any) -> bool:
    """Whether a kernel takes arrays of bytes as they are: those of inner products do, but for the product itself."""
    return isinstance(kernel, str) and kernel != "linear" and takes_sparse(kernel)


def kernel_for(kernel: Any, *, gamma: Any = "scale", degree: Any = 3, coef0: Any = 0.0, X: Any = None) -> Kernel:
    """The kernel an estimator's parameters describe.

    Parameters
    ----------
    kernel : str or callable
        A registered name, or a function `kernel(A, B)` that returns an array of shape (len(A), len(B)).
    gamma : {"scale", "auto"} or float
        "scale" is 1 / (number of features times the variance of X), "auto" 1 / number of features.
    degree : int
        Of "poly".
    coef0 : float
        The constant of "poly" and "sigmoid".
    X : array or CSR matrix of shape (n, d), or None
        What a named gamma is taken from.

    Raises
    ------
    ValueError
        For a parameter out of range, whether or not the kernel uses it.
    """
    if not (isinstance(gamma, str) and gamma in _GAMMAS):
        gamma = _checked_gamma(gamma)
    values = {"degree": whole_number("degree", degree, at_least=1), "coef0": finite("coef0", coef0)}
    if not isinstance(kernel, str) and callable(kernel):
        return CallableKernel(kernel)
    cls = _named[_checked_name(kernel)]
    used = {field.name for field in fields(cls)}
    if "gamma" in used:
        values["gamma"] = _GAMMAS[gamma](X) if isinstance(gamma, str) else gamma
    return cls(**{name: value for name, value in values.items() if name in used})


def _checked_name(kernel: Any) -> str:
    try:
        return one_of("kernel", kernel, tuple(_named))
    except ValueError as error:
        raise ValueError(f"{error}; a callable kernel(A, B) would do too") from None


def _checked_gamma(gamma: Any) -> float:
    try:
        return positive("gamma", gamma)
    except ValueError:
        raise ValueError(f"gamma must be 'scale', 'auto' or a finite number > 0, got {gamma!r}") from None


def _scale(X: Any) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        variance = _variance(X)
    if not math.isfinite(variance):
        raise ValueError(
            f"X must have entries whose variance is finite with gamma='scale', got {variance}; scale X, or let gamma "
            "be a number"
        )
    return 1.0 / (int(X.shape[1]) * variance) if variance > 0 else 1.0


def _auto(X: Any) -> float:
    return 1.0 / int(X.shape[1])


_GAMMAS: dict[str, Callable[[Any], float]] = {"scale": _scale, "auto": _auto}


def _variance(X: Any) -> float:
    """The variance of all entries, in float64, without a copy of X."""
    if hasattr(X, "variance"):  # it is on a device
        return float(X.variance())
    size = int(X.shape[0]) * int(X.shape[1])
    if issparse(X):
        mean = float(X.data.sum(dtype=np.float64)) / size
        stored = sum(float(np.square(part - mean).sum()) for part in _parts(X.data))
        return (stored + (size - int(X.data.size)) * mean * mean) / size
    mean = float(X.sum(dtype=np.float64)) / size
    return sum(float(np.square(part - mean).sum()) for part in _parts(X)) / size


def _parts(values: _Array) -> Iterator[NDArray[np.float64]]:
    step = max(1, (1 << 20) // max(1, values[:1].size))
    for first in range(0, len(values), step):
        yield values[first : first + step].astype(np.float64)
