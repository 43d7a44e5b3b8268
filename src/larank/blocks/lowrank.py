"""Low-rank factors of kernel matrices: pivoted Cholesky and eigenvectors, computed tile by tile by a provider.

Both make features z(x) = A' k(., x) of the kernel values of x with some basis examples, with A'KA = I ([primal] section
1.2.3), so that z(x)'z(x') is k(x, x'), or nearest to it in the span of the basis. What they leave of the trace of K,
sum_i k(x_i, x_i) - |z(x_i)|^2, is their certificate: no entry of K - ZZ' is larger than its largest term, and none of
the terms is negative.

Cholesky, in blocks of pivots P, with the columns L made so far (left-looking):

    T       = K(X, P) - L L_P'          what is left of the pivots' columns
    F F'    = T_P                       Cholesky of the pivots among themselves
    new L   = T F^-T,   d -= |rows of new L|^2

A new example goes the same way through the blocks, which is a substitution with L_P, row by row as in training.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, solve_triangular

from larank import _core
from larank.blocks.provider import ROWS_AT_ONCE, Provider, length, pieces
from larank.blocks.store import Batch

_Array = NDArray[Any]
_Float = NDArray[np.float64]
_Index = NDArray[np.int64]

# By precision, as shares of k(x, x): a residual up to the first is rounding and makes no pivot; one below minus the
# second is none, and the kernel is not positive semi-definite. Values in float64 may have gone through float32: where
# residuals turn out to be less precise, the first share is raised.
_ROUNDING = MappingProxyType({np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12})
_NEGATIVE = MappingProxyType({np.dtype(np.float32): 2e-2, np.dtype(np.float64): 1e-5})
_FLOOR_RAISED = 4.0
# Of the largest eigenvalue: one below minus this is not rounding.
_NEGATIVE_EIGENVALUE = MappingProxyType({np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-6})
_LANCZOS_STEPS = 30

_CANDIDATES_PER_PIVOT = 1.5  # drawn at random, of which the best are kept; more would take longer than they help
_SMALLEST_BLOCK = 16
_SAMPLE = 512  # examples on which candidates are compared,
_SHARE_OF_SAMPLE = 8  # or one of so many
_TRIANGLE_COLUMNS = 128  # at a time: fewer would save more of the product and slow the rest


# ---- Pivoted Cholesky ----


@dataclass
class CholeskyFactor:
    """Pivots, the lower triangle L_P of their rows, and the widths of the blocks in which they were chosen."""

    pivots: _Index
    lower: _Float
    widths: list[int]
    trace_errors: list[float]
    table: _Array | None = None  # L, where there was one table from the start

    @property
    def trace_error(self) -> float:
        """The share of the trace of K that is left."""
        return self.trace_errors[-1]


@dataclass(frozen=True)
class CholeskyOptions:
    """When to stop, how to choose, and how many bytes L may take; `rank` is None where only the others end it."""

    rank: int | None
    tolerance: float
    greedy: bool
    block_size: int
    memory_limit: float


def pivoted_cholesky(
    provider: Provider, X: Any, options: CholeskyOptions, random: np.random.RandomState
) -> CholeskyFactor:
    """The incomplete Cholesky factor of the kernel matrix of X.

    Raises
    ------
    MemoryLimitError
        Where the columns would take more than the limit: before any work if the rank is given.
    ValueError
        Where a residual shows that the kernel is not positive semi-definite.
    """
    work = _Cholesky(provider, X, options, random)
    with provider.threads():
        work.begin()
        while work.wants_more():
            work.add_block()
    return work.factor()


class _Cholesky:
    """A factorisation on its way: the columns of L so far, and the residual diagonal d."""

    def __init__(self, provider: Provider, X: Any, options: CholeskyOptions, random: np.random.RandomState) -> None:
        self.provider, self.X, self.options, self.random = provider, X, options, random
        self.n = length(X)
        self.most = self.n if options.rank is None else options.rank
        self.table: _Array | None = None
        if options.rank is not None:
            self._check_memory(options.rank)
            self.table = np.empty((self.n, options.rank), provider.dtype)
        self.blocks: list[_Array] = []  # of columns; in the table they are one
        self.pivots = np.zeros(0, np.int64)
        self.triangles: list[tuple[_Array, _Float]] = []  # L_P of each block: its columns before, and F
        self.trace_errors: list[float] = []

    def begin(self) -> None:
        """Look at k(x, x) of all examples; no block is chosen yet."""
        self.diagonal, self.norms = self.provider.measure(self.X)
        self.residual = self.diagonal.copy()
        self.floor = _ROUNDING[self.provider.dtype] * self.diagonal
        self.least = float(np.finfo(self.provider.dtype).tiny)  # what is below has no inverse in this precision
        self.trace = float(self.diagonal.sum())
        self.sample = self._drawn_sample()
        self.sample_batch = self.provider.part(self.X, self.sample, self.norms)
        some = np.linspace(0, self.n - 1, min(self.n, self.options.block_size)).astype(np.int64)
        self._left_among(self.provider.batch(self.X, some, some))

    def wants_more(self) -> bool:
        """Whether there are pivots left, and a reason to take them."""
        if len(self.pivots) >= self.most or not self._is_open().any():
            return False
        return not self.trace_errors or self.trace_errors[-1] > self.options.tolerance

    def _is_open(self) -> NDArray[np.bool_]:
        """Which examples may become pivots."""
        return self.residual > np.maximum(self.floor, self.least)

    def add_block(self) -> None:
        """Choose pivots, and make their columns of L."""
        candidates = self._candidates()
        left = self._left_among(self.provider.batch(self.X, candidates, candidates))
        before = self.residual.copy()
        lower, chosen = thinned(left, np.maximum(self.floor[candidates], self.least))
        while chosen:
            block = self._block(candidates[chosen], np.tril(lower[chosen]))
            if not (self.residual < -self.floor).any():
                self._keep(*block)
                return
            # What is left of the pivots is as small as rounding, and so is no measure of the rest: without these.
            self._raise_floor()
            self.residual = before.copy()
            lower, chosen = thinned(left, np.maximum(self.floor[candidates], self.least))

    def _block(self, pivots: _Index, triangle: _Float) -> tuple[_Index, _Array, _Array, _Float]:
        """Pivots with their columns, and of the triangle L_P the columns before and F."""
        before, width = len(self.pivots), len(pivots)
        if self.table is None:
            self._check_memory(before + width)
            new = np.empty((self.n, width), self.provider.dtype)
        else:
            new = self.table[:, before : before + width]
        earlier = self._rows(pivots)
        width = self._fill(_Step(earlier, triangle, self.provider.dtype), pivots, new)
        self.residual[pivots[:width]] = 0.0
        return pivots[:width], new[:, :width], earlier[:width], triangle[:width, :width]

    def _keep(self, pivots: _Index, new: _Array, earlier: _Array, triangle: _Float) -> None:
        self.pivots = np.concatenate([self.pivots, pivots])
        self.blocks = [*self.blocks, new] if self.table is None else [self.table[:, : len(self.pivots)]]
        self.triangles.append((earlier, triangle))
        self.trace_errors.append(max(0.0, float(self.residual.sum())) / self.trace)

    def factor(self) -> CholeskyFactor:
        """What was found. A kernel of zeros has one feature, which is zero."""
        rank = len(self.pivots)
        if not rank:
            table = None if self.table is None else np.zeros((self.n, 1), self.provider.dtype)
            return CholeskyFactor(np.zeros(1, np.int64), np.zeros((1, 1)), [1], [0.0], table)
        lower, first, widths = np.zeros((rank, rank)), 0, []
        for earlier, triangle in self.triangles:
            last = first + len(triangle)
            lower[first:last, :first], lower[first:last, first:last] = earlier, triangle
            widths.append(len(triangle))
            first = last
        table = None if self.table is None else _narrowed(self.table, rank)
        return CholeskyFactor(self.pivots, lower, widths, self.trace_errors, table)

    # The choice of pivots

    def _drawn_sample(self) -> _Index:
        size = 0 if self.options.greedy else min(_SAMPLE, self.n // _SHARE_OF_SAMPLE)
        return np.sort(self.random.choice(self.n, size, replace=False)) if size else np.zeros(0, np.int64)

    def _candidates(self) -> _Index:
        """Examples that may be the next pivots, best first."""
        is_open = self._is_open()
        weights = np.where(is_open, self.residual, 0.0)
        wanted = min(self._block_size(), self.most - len(self.pivots), int(is_open.sum()))
        if self.options.greedy:
            return np.argsort(-weights, kind="stable")[:wanted]
        drawn = min(math.ceil(_CANDIDATES_PER_PIVOT * wanted), int(is_open.sum()))
        chosen = self.random.choice(self.n, drawn, replace=False, p=weights / weights.sum())
        return chosen[np.argsort(-self._gains(chosen), kind="stable")[:wanted]]

    def _block_size(self) -> int:
        """A quarter of the pivots, or half of those so far where their number is not known; so the choice learns."""
        is_known = self.options.rank is not None and not self.options.tolerance
        share = self.most / 4 if is_known else len(self.pivots) / 2
        return min(self.options.block_size, max(_SMALLEST_BLOCK, math.ceil(share)))

    def _gains(self, candidates: _Index) -> _Float:
        """By how much each alone would lower the trace of the residual R, by |R_p|^2 / R_pp.

        The column R_p is known on the sample, and its own entry in full.
        """
        residual = self.residual[candidates]
        left = self.provider.cross(self.sample_batch, self.provider.part(self.X, candidates, self.norms))
        left -= self._rows(self.sample) @ self._rows(candidates).T
        squares = np.einsum("ij,ij->j", left, left, dtype=np.float64)
        gains: _Float = squares / residual + len(self.sample) / self.n * residual
        return gains

    def _left_among(self, batch: Batch) -> _Float:
        """What is left of the kernel values among some examples; squares of these are below those on the diagonal."""
        chosen = batch.ids
        left = self.provider.within(batch).astype(np.float64)
        earlier = self._rows(chosen).astype(np.float64)
        left -= earlier @ earlier.T
        np.fill_diagonal(left, self.residual[chosen])
        rounding = _NEGATIVE[self.provider.dtype] * np.abs(self.diagonal[chosen])
        bound = np.sqrt(np.maximum(self.residual[chosen], 0) + rounding)
        wrong = np.abs(left) > np.outer(bound, bound)
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise ValueError(
                f"{self._not_definite(chosen[i])}, which is too small beside the {left[i, j]:.3g} that is left of "
                f"its kernel value with example {chosen[j]}"
            )
        return left

    def _raise_floor(self) -> None:
        """Take more for rounding, or, where residuals are below what it can be, the kernel for none."""
        self.floor *= _FLOOR_RAISED
        wrong = self.residual < -_NEGATIVE[self.provider.dtype] * self.diagonal
        if wrong.any() and (self.floor > _NEGATIVE[self.provider.dtype] * self.diagonal).any():
            raise ValueError(self._not_definite(int(np.argmin(np.where(wrong, self.residual, 0)))))

    def _not_definite(self, example: int) -> str:
        return (
            f"kernel must be positive semi-definite, got one that is not on these examples: pivot "
            f"{len(self.pivots)}, example {example}, has a residual of {self.residual[example]:.3g} "
            f"of k(x, x) = {self.diagonal[example]:.3g}"
        )

    # Columns

    def _fill(self, step: _Step, pivots: _Index, new: _Array) -> int:
        """Make new columns and lower the residual by them; returns how many of them the tolerance asks for."""
        right, before = self.provider.part(self.X, pivots, self.norms), self.residual.copy()
        sums = np.zeros((-(-self.n // ROWS_AT_ONCE), len(pivots)))  # by tile, so that threads do not change them

        def fill(rows: slice, values: _Array) -> None:
            step.apply([block[rows] for block in self.blocks], values, new[rows])
            self.residual[rows] -= np.einsum("ij,ij->i", new[rows], new[rows])
            if self.options.tolerance:
                sums[rows.start // ROWS_AT_ONCE] = np.einsum("ij,ij->j", new[rows], new[rows])

        self.provider.sweep(self.X, right, fill, self.norms)
        left = float(before.sum()) - np.cumsum(sums.sum(axis=0))
        enough = np.flatnonzero(left <= self.options.tolerance * self.trace)
        if not self.options.tolerance or not len(enough) or enough[0] + 1 == len(pivots):
            return len(pivots)
        width = int(enough[0]) + 1
        self.residual = before - np.einsum("ij,ij->i", new[:, :width], new[:, :width])
        return width

    def _rows(self, examples: _Index) -> _Array:
        """Of L, so far."""
        rows = [block[examples] for block in self.blocks]
        return np.concatenate(rows, axis=1) if rows else np.zeros((len(examples), 0), self.provider.dtype)

    def _check_memory(self, columns: int) -> None:
        limit, column = self.options.memory_limit, self.n * self.provider.dtype.itemsize
        if columns * column <= limit:
            return
        rows = int(limit // (columns * self.provider.dtype.itemsize))
        ways = [f"n_components={int(limit // column)}"] if limit >= column else []
        ways += ["a larger tol"] if self.options.tolerance and limit >= column else []
        ways += [f"fitting on {rows} of them, for transform takes any number"] if rows else []
        raise _core.MemoryLimitError(
            f"memory_limit must be at least {columns * column} bytes for {columns} components of {self.n} examples, "
            f"got {int(limit)}" + (f"; {' or '.join(ways)} would do" if ways else "")
        )


def _narrowed(table: _Array, columns: int) -> _Array:
    """The first columns side by side, in the memory of the table: what is to be moved lies behind where it goes."""
    if columns == table.shape[1]:
        return table
    values = table.reshape(-1)
    for rows in pieces(len(table), ROWS_AT_ONCE):
        values[rows.start * columns : rows.stop * columns] = table[rows, :columns].copy().reshape(-1)
    return values[: len(table) * columns].reshape(-1, columns)


def thinned(left: _Float, floor: _Float) -> tuple[_Float, list[int]]:
    """A pivoted Cholesky of a small matrix: its columns and its pivots, the largest residual first.

    Near-duplicates of a pivot fall to `floor` or below and are dropped.
    """
    d, columns = left.diagonal().copy(), np.zeros_like(left)
    chosen: list[int] = []
    while (is_open := d > floor).any():
        k, p = len(chosen), int(np.argmax(np.where(is_open, d, -np.inf)))
        columns[:, k] = (left[:, p] - columns[:, :k] @ columns[p, :k]) / math.sqrt(d[p])
        d -= np.square(columns[:, k])
        d[p] = -np.inf
        chosen.append(p)
    return columns[:, : len(chosen)], chosen


class _Step:
    """What one block of pivots does to a tile of kernel values: T F^-T with T = K - L L_P'."""

    def __init__(self, earlier: _Array, triangle: _Float, dtype: np.dtype[Any]) -> None:
        self._earlier = np.ascontiguousarray(earlier, dtype)
        identity = np.eye(len(triangle))
        # A triangle of zeros is that of a kernel of zeros.
        inverse = solve_triangular(triangle, identity, lower=True) if triangle.any() else np.zeros_like(triangle)
        self._inverse = np.ascontiguousarray(inverse.T, dtype)

    def apply(self, parts: list[_Array], values: _Array, out: _Array) -> None:
        """From the columns before, which may come in several parts, and kernel values to new columns."""
        first = 0
        for part in parts:
            last = first + part.shape[1]
            values -= part @ self._earlier[:, first:last].T
            first = last
        for some in pieces(len(self._inverse), _TRIANGLE_COLUMNS):  # below them the triangle has zeros
            np.matmul(values[:, : some.stop], self._inverse[: some.stop, some], out=out[:, some])


def cholesky_features(provider: Provider, X: Any, basis: Batch, lower: _Float, widths: list[int], out: _Array) -> None:
    """Features of any examples by the blocks of a factor: A' k(., x) with A = L_P^-T ([primal] (1.3))."""
    steps, spans = [], []
    first = 0
    for width in widths:
        last = first + width
        steps.append(_Step(lower[first:last, :first], lower[first:last, first:last], provider.dtype))
        spans.append(slice(first, last))
        first = last

    def fill(rows: slice, values: _Array) -> None:
        for step, span in zip(steps, spans, strict=True):
            step.apply([out[rows, : span.start]] if span.start else [], values[:, span], out[rows, span])

    with provider.threads():
        provider.sweep(X, basis, fill)


# ---- Eigenvectors ----


@dataclass
class EigenFactor:
    """The leading eigenvalues, from the largest on, and A = V D^-1/2; KA = A D."""

    eigenvalues: _Float
    factor: _Float


def eigen_factor(provider: Provider, X: Any, basis: _Index, n_components: int | None) -> EigenFactor:
    """The leading eigenvectors of the kernel matrix of some examples, those of eigenvalues that are rounding left out.

    Raises
    ------
    ValueError
        Where an eigenvalue shows that the kernel is not positive semi-definite.
    """
    with provider.threads():
        K = _kernel_matrix(provider, X, basis)
    largest = float(K.diagonal().max())
    n, dtype = len(K), provider.dtype
    count = n if n_components is None else n_components
    lowest = _smallest_ritz_value(K) if count < n else 0.0
    # Transposed, K is in the order of columns that LAPACK wants, and is not copied.
    values, vectors = eigh(K.T, subset_by_index=(n - count, n - 1), driver="evr", overwrite_a=True, check_finite=False)
    del K
    values, vectors = values[::-1], vectors[:, ::-1]
    noise = 32 * float(np.finfo(dtype).eps) * math.sqrt(n) * largest  # the norm of a matrix of rounding errors
    rounding = max(noise, n * float(np.finfo(np.float64).eps) * float(values[0]))
    _check_eigenvalues(min(lowest, float(values[-1])), float(values[0]), rounding, dtype)
    kept = max(1, int((values > rounding).sum()))
    values, vectors = np.maximum(values[:kept], 0.0), vectors[:, :kept]
    signs = np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(kept)] < 0, -1.0, 1.0)
    with np.errstate(divide="ignore"):
        vectors *= np.where(values > rounding, signs / np.sqrt(values), 0.0)  # [primal] section 1.2.3
    return EigenFactor(values, np.ascontiguousarray(vectors))


def _check_eigenvalues(lowest: float, largest: float, rounding: float, dtype: np.dtype[Any]) -> None:
    if lowest < -max(_NEGATIVE_EIGENVALUE[dtype] * largest, rounding):
        raise ValueError(
            "kernel must be positive semi-definite, got one that is not on these examples: it has the eigenvalue "
            f"{lowest:.3g} beside the largest, {largest:.3g}"
        )


def _kernel_matrix(provider: Provider, X: Any, basis: _Index) -> _Float:
    """All kernel values among some examples, in double precision."""
    K = np.empty((len(basis), len(basis)))
    parts = pieces(len(basis), ROWS_AT_ONCE)
    for number, rows in enumerate(parts):
        left = provider.part(X, basis[rows], None)
        for columns in parts[:number]:
            K[rows, columns] = provider.cross(left, provider.part(X, basis[columns], None))
            K[columns, rows] = K[rows, columns].T
        K[rows, rows] = provider.within(provider.batch(X, basis[rows], basis[rows]))
    return K


def _smallest_ritz_value(K: _Float) -> float:
    """An upper bound of the smallest eigenvalue, which a few steps of Lanczos' method bring near to it."""
    steps = min(_LANCZOS_STEPS, len(K))
    Q = np.zeros((steps + 1, len(K)))
    start = np.random.default_rng(0).normal(size=len(K))
    Q[0] = start / np.linalg.norm(start)
    for k in range(steps):
        following = K @ Q[k]
        for _ in range(2):  # once is not enough to be orthogonal
            following -= Q[: k + 1].T @ (Q[: k + 1] @ following)
        norm = float(np.linalg.norm(following))
        if norm <= 1e-12 * np.abs(K[0]).max():
            steps = k + 1
            break
        Q[k + 1] = following / norm
    Q = Q[:steps]
    return float(np.linalg.eigvalsh(Q @ (K @ Q.T))[0])


def eigen_features(provider: Provider, X: Any, basis: Batch, factor: _Float, out: _Array) -> None:
    """Features of any examples: A' k(., x) ([primal] (1.3))."""
    weights = factor.astype(provider.dtype)

    def fill(rows: slice, values: _Array) -> None:
        np.matmul(values, weights, out=out[rows])

    with provider.threads():
        provider.sweep(X, basis, fill)


def eigen_squares(provider: Provider, X: Any, basis: Batch, factor: _Float) -> float:
    """The sum of the squares of all features of these examples, which are not kept."""
    weights, sums = factor.astype(provider.dtype), np.zeros(-(-length(X) // ROWS_AT_ONCE))

    def fill(rows: slice, values: _Array) -> None:
        sums[rows.start // ROWS_AT_ONCE] = np.square(values @ weights, dtype=np.float64).sum()

    with provider.threads():
        provider.sweep(X, basis, fill)
    return float(sums.sum())
