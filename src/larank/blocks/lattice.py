"""Dense rows whose values lie on a lattice, such as bytes and counts: products of whole numbers, exactly.

Values x = a + b q with whole numbers q of 8 or 16 bits have products of whole numbers, which processors with such
instructions (AVX-512 VNNI) multiply two to four times as fast as floating-point numbers, and which are exact. With
S = sum q and N = sum q^2 of a row, and d features,

    |x - z|^2 = b^2 (N_x + N_z - 2 q_x'q_z)
    x'z = (b / h)^2 (h^2 q_x'q_z - h o (S_x + S_z) + d o^2),    h a = -o b,

where h = 1 if the origin is on the lattice and h = 2 if it is half-way between two of its numbers. A lattice with an
origin elsewhere serves kernels of distances only. What the two sides add besides q_x'q_z are their terms, which stand
at the end of each row; `core/blocks/lattice.hpp` has the sums and why they cannot overflow.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larank import _core
from larank.blocks.dense import DenseProvider
from larank.blocks.kernels import Kernel, ProductKernel
from larank.blocks.provider import BYTES, ROWS_AT_ONCE, ids_of, pieces
from larank.blocks.store import Batch, Support, rows_like

_Array = NDArray[Any]
_Float = NDArray[np.float64]
_Index = NDArray[np.int64]
_Words = NDArray[np.uint32]

_BYTES, _HALF_WORDS = 256, 65536  # how many numbers a lattice of each kind has at most
_PER_WORD = {"byte": 4, "half-word": 2}
_TERMS = 2  # words at the end of a row
_LARGEST = 2**31 - 1  # of the sums, in absolute value
_SAMPLE = 256  # rows that are looked at first
_TRIALS = 8
_ROUNDING = 4  # units in the last place of the largest value, that a value may be from its number


def _rounding(values: _Array) -> float:
    """What rounding may have done to numbers as large as the first and the last of these."""
    return _ROUNDING * float(np.finfo(values.dtype).eps) * float(np.nanmax(np.abs(values[[0, -1]])))


class _Form(NamedTuple):
    """scale * (factor q_x'q_z + terms) is what the kernel is a function of."""

    factor: int
    scale: float
    of_sum: int  # what a row's terms are: so many times its sum,
    of_squares: int  # its sum of squares,
    constant: int  # and for one of the two sides this
    largest: float  # the sum in absolute value


@dataclass(frozen=True)
class Lattice:
    """The values x = low + step k for k = 0, 1, ..., and which of them data have."""

    low: float
    step: float
    values: _Array  # in their place, as they are in the data; NaN where none was met

    @classmethod
    def of(cls, X: _Array) -> Lattice | None:
        """The lattice with the largest step on which all values of X are, to rounding; None if there is none."""
        if X.dtype in BYTES:
            low = np.iinfo(X.dtype).min
            return cls(float(low), 1.0, np.arange(low, low + _BYTES, dtype=np.float32))
        seen = np.unique(X[:: max(1, len(X) // _SAMPLE)])
        for _ in range(_TRIALS):
            lattice = cls._through(seen)
            if lattice is None:
                return None
            at = _core.fill_lattice(X, lattice.values, lattice.low, lattice.step)
            if at < 0:
                return lattice if lattice._is_near() else None
            # Lower, higher or between two numbers: the next lattice is wider or finer.
            more = X[at // X.shape[1] : at // X.shape[1] + _SAMPLE]
            seen = np.unique(np.concatenate([seen, more.ravel(), [X.min(), X.max()]]))
        return None

    @classmethod
    def _through(cls, values: _Array) -> Lattice | None:
        """The one that has all of these values, which are in order, if it is not too fine; it is not checked."""
        if not 2 <= len(values) <= _HALF_WORDS or not np.isfinite(values[[0, -1]]).all():
            return None
        rounding = _rounding(values)
        above = values.astype(np.float64) - float(values[0])
        step = rest = float(np.diff(above).min())
        while rest > 0 and above[-1] < _HALF_WORDS * step:  # Euclid's algorithm for all of them at once
            multiples = np.rint(above / step)
            rests = np.abs(above - step * multiples)
            rests = rests[rests > 2 * rounding * (1 + multiples)]
            rest = float(rests.min()) if len(rests) else 0.0
            step = rest or step
        steps = round(above[-1] / step) if above[-1] < _HALF_WORDS * step else _HALF_WORDS
        if steps >= _HALF_WORDS:
            return None
        return cls(float(values[0]), float(above[-1]) / steps, np.full(steps + 1, np.nan, values.dtype))

    def _is_near(self) -> bool:
        off = np.abs(self.low + self.step * np.arange(len(self.values)) - self.values.astype(np.float64))
        rounding = _rounding(self.values[[0, -1]])
        return bool(np.nanmax(off) <= rounding < self.step / 8)

    def extended(self, X: _Array) -> Lattice | None:
        """The same lattice with the values of X too; None if some of them are not on it."""
        more = Lattice(self.low, self.step, self.values.copy())
        at = _core.fill_lattice(X, more.values, self.low, self.step)
        return more if at < 0 and more._is_near() else None

    @property
    def number(self) -> str:
        """How its numbers are stored."""
        return "byte" if len(self.values) <= _BYTES else "half-word"

    @property
    def lowest(self) -> int:
        """The number of the lowest value: bytes begin at 0, half-words are centred."""
        return 0 if self.number == "byte" else -(len(self.values) // 2)

    def form(self, kernel: ProductKernel, features: int) -> _Form | None:
        """How the kernel's products are made of numbers; None if they cannot, or if sums could overflow."""
        last = self.lowest + len(self.values) - 1
        if kernel.of_distance:
            form = _Form(2, self.step**2 / 2, 0, -1, 0, features * float(last - self.lowest) ** 2)
        else:
            origin = self.lowest - self.low / self.step  # its number, which need not be whole
            rounding = 8 * float(np.finfo(self.values.dtype).eps) * max(1.0, abs(origin), len(self.values))
            halves = next((h for h in (1, 2) if abs(h * origin - round(h * origin)) <= rounding), None)
            if halves is None:
                return None
            o = round(halves * origin)
            widest = max(abs(halves * self.lowest - o), abs(halves * last - o))
            scale = (self.step / halves) ** 2
            form = _Form(halves**2, scale, -halves * o, 0, features * o * o, features * float(widest) ** 2)
        return form if form.largest <= _LARGEST else None


class LatticeProvider(DenseProvider):
    """Dense rows on a lattice.

    Rows that come later and are not on it are multiplied as they are; when one of them is to be stored as a pattern,
    all patterns become what they were, and the provider goes on as one of floating-point rows.
    """

    def __init__(self, kernel: ProductKernel, X: _Array, lattice: Lattice, n_jobs: int | None) -> None:
        super().__init__(kernel, X, n_jobs)
        form = lattice.form(kernel, self._features)
        assert form is not None
        self._form = form
        self._number = lattice.number
        self._words = -(-self._features // _PER_WORD[lattice.number])
        self._lattice = lattice
        self._has_left = False
        self._support_as_given = self._support
        self._support = Support(rows_like(np.zeros((0, self._words + _TERMS), np.uint32)), self.dtype)

    @classmethod
    def found_for(cls, kernel: Kernel, X: Any, n_jobs: int | None) -> LatticeProvider | None:
        """The provider, where data, kernel and processor are such that integer products serve."""
        if not (DenseProvider.serves(kernel, X) and isinstance(kernel, ProductKernel) and _core.has_integer_products()):
            return None
        if not X.size or not X.flags.c_contiguous:
            return None
        lattice = Lattice.of(X)
        if lattice is None or lattice.form(kernel, X.shape[1]) is None:
            return None
        return cls(kernel, X, lattice, n_jobs)

    def expect(self, X: Any, memory_limit: float) -> None:
        """All examples of X may become support patterns, in the room that they take here."""
        super().expect(np.broadcast_to(np.uint32(0), (len(X), self._words + _TERMS)), memory_limit)

    def _prepared(self, X: Any, ids: Any, rows: Any, norms: _Array | None = None) -> Batch:
        if self._has_left:
            return super()._prepared(X, ids, rows, norms)
        given = np.ascontiguousarray(X if rows is None else X[rows])
        if given.dtype not in BYTES or given.dtype != self._given:
            given = np.asarray(given, self.dtype)
        numbers = self._numbers(given)
        if numbers is None:  # norms that are known were found on the lattice, where there are none
            return super()._prepared(given, ids, None)
        return self._on_lattice(numbers, ids)

    def _numbers(self, X: _Array) -> _Words | None:
        """The rows of the lattice, yet without terms; None if there are none."""
        if X.shape[1] != self._features:
            return None
        if X.dtype in BYTES:
            rows = np.zeros((len(X), self._words + _TERMS), np.uint32)
            np.subtract(X, np.iinfo(X.dtype).min, out=rows.view(np.uint8)[:, : self._features], casting="unsafe")
            return rows
        rows = np.empty((len(X), self._words + _TERMS), np.uint32)
        if not self._is_numbered(X, self._lattice, rows):
            with self._workers.lock:  # values may be on the lattice that were not met before
                lattice = self._lattice.extended(X)
                if lattice is None:
                    return None
                self._lattice = lattice
            self._is_numbered(X, lattice, rows)
        return rows

    @staticmethod
    def _is_numbered(X: _Array, lattice: Lattice, rows: _Words) -> bool:
        place = lattice.lowest, lattice.low, lattice.step
        return _core.lattice_numbers(X, lattice.number, lattice.values, *place, rows)

    def _on_lattice(self, numbers: _Words, ids: Any) -> Batch:
        count, form = len(numbers), self._form
        sums, squares = np.empty(count, np.int64), np.empty(count, np.int64)
        _core.lattice_sums(numbers, self._number, sums, squares)
        terms = form.of_sum * sums + form.of_squares * squares
        offset = 128 * form.factor * sums if self._number == "byte" else 0  # the core takes 128 from bytes of a row
        numbers[:, self._words] = (terms + form.constant).astype(np.uint32)
        numbers[:, self._words + 1] = (terms + offset).astype(np.uint32)
        assert isinstance(self.kernel, ProductKernel)
        with np.errstate(over="ignore"):  # tiles are checked
            diagonal = self.kernel.diagonal(form.scale * (form.factor * squares + 2 * terms + form.constant))
        return Batch(numbers, ids_of(ids, count), diagonal, np.zeros(count, self.dtype))

    def _in_double(self, patterns: _Array) -> DenseProvider:
        """Return a provider of the same kernel for such rows in double precision, which need not be on the lattice."""
        return DenseProvider(self.kernel, patterns, self.n_jobs)

    def _tile(self, left: Batch, rows: slice, right: Batch, columns: slice, out: _Array) -> tuple[float, float]:
        if not (_is_on_lattice(left) and _is_on_lattice(right)):
            left, right = self._as_given(left, rows), self._as_given(right, columns)
            return super()._tile(left, slice(len(left)), right, slice(len(right)), out)
        assert isinstance(self.kernel, ProductKernel)
        start = time.perf_counter()
        X, Z = left.examples[rows], right.examples[columns]
        _core.lattice_products(X, Z, self._number, self._form.factor, self._form.scale, out)
        multiplied = time.perf_counter()
        self.kernel.map(out, left.norms[rows], right.norms[columns])  # of exact distances
        return multiplied - start, time.perf_counter() - multiplied

    def _as_given(self, batch: Batch, rows: Any) -> Batch:
        """Some rows of a batch as floating-point numbers."""
        if _is_on_lattice(batch):
            return super()._prepared(self._values_of(batch.examples[rows]), batch.ids[rows], None)
        originals = None if batch.originals is None else batch.originals[rows]
        return Batch(batch.examples[rows], batch.ids[rows], batch.diagonal[rows], batch.norms[rows], originals)

    def _values_of(self, numbers: _Words) -> _Array:
        """What rows of the lattice were."""
        kind = np.uint8 if self._number == "byte" else np.int16
        places = numbers.view(kind)[:, : self._features].astype(np.intp) - self._lattice.lowest
        values: _Array = self._lattice.values[places]
        return values

    def store(self, slots: Any, batch: Batch, rows: Any) -> None:
        """Let slot `slots[k]` hold example `rows[k]` of the batch; if that is not on the lattice, leave it."""
        if len(slots) and not self._has_left and not _is_on_lattice(batch):
            self._leave()
        if self._has_left and _is_on_lattice(batch):
            batch, rows = self._as_given(batch, np.asarray(rows, np.int64)), np.arange(len(rows))
        super().store(slots, batch, rows)

    def _leave(self) -> None:
        """Keep floating-point patterns from now on, in the same slots."""
        with self._workers.lock:
            support = self._support_as_given
            for some in pieces(self._support.size, ROWS_AT_ONCE):
                slots = np.arange(some.start, some.stop)
                support.put(slots, self._as_given(self._support.batch(slots), slice(None)), np.arange(len(slots)))
            self._support, self._has_left = support, True

    def patterns(self, slots: Any) -> Any:
        """The examples in these slots, as they were given."""
        if self._has_left:
            return super().patterns(slots)
        return self._as_bytes(self._values_of(self._support.originals(self._checked(slots))))


def _is_on_lattice(batch: Batch) -> bool:
    return bool(batch.examples.dtype == np.uint32)
