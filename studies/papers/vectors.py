"""Table 3.3 of [thesis], measured: what operations on full and on sparse vectors cost, as they grow."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from studies.tables import Table

GROWTH = 10
LEAST_SECONDS = 0.01
TRIALS = 5


@dataclass(frozen=True)
class Sizes:
    """Of a vector of so many coefficients, those that are not zero, and those of another one it is added to."""

    d: int = 200_000
    s: int = 5_000
    others: int = 5_000

    def grown(self, name: str) -> Sizes:
        """The same with one of them ten times as large."""
        return replace(self, **{name: GROWTH * getattr(self, name)})


@dataclass(frozen=True)
class Cost:
    """Nanoseconds of an operation, and by which factor they grow with each of the sizes; `order` is the thesis's."""

    operation: str
    form: str
    order: str
    nanoseconds: float
    growth: tuple[float, float, float]


class _Vectors:
    """A vector in both forms, a full and a sparse one to add it to."""

    def __init__(self, sizes: Sizes) -> None:
        random = np.random.default_rng(0)
        self.at, self.into_at = (
            np.sort(random.choice(sizes.d, count, replace=False)).astype(np.int32) for count in (sizes.s, sizes.others)
        )
        self.values, self.into_values = (np.ones(count, np.float32) for count in (sizes.s, sizes.others))
        self.full = np.ones(sizes.d, np.float32)
        self.w, self.total = np.zeros(sizes.d, np.float32), np.empty(sizes.d, np.float32)
        self.row, self.into = (
            sparse.csr_matrix((values, at, [0, len(at)]), shape=(1, sizes.d))
            for values, at in ((self.values, self.at), (self.into_values, self.into_at))
        )
        self.places = random.integers(sizes.d, size=1000)

    def add_sparse(self) -> None:
        self.w[self.at] += self.values

    def add_full_to_sparse(self) -> None:
        np.copyto(self.total, self.full)
        self.total[self.into_at] += self.into_values
        np.flatnonzero(self.total)


ACCESS, INTO_FULL, INTO_SPARSE = "random access to a coefficient", "addition into a full one", "into a sparse one"
_OPERATIONS: tuple[tuple[str, str, str, Callable[[_Vectors], Any], int], ...] = (
    (ACCESS, "full", "O(1)", lambda of: of.full[of.places], 1000),
    (ACCESS, "sparse", "O(s)", lambda of: np.flatnonzero(of.at == of.places[0]), 1),
    (INTO_FULL, "full", "O(d)", lambda of: np.add(of.w, of.full, out=of.w), 1),
    (INTO_FULL, "sparse", "O(s)", _Vectors.add_sparse, 1),
    (INTO_SPARSE, "full", "O(d + s')", _Vectors.add_full_to_sparse, 1),
    (INTO_SPARSE, "sparse", "O(s + s')", lambda of: of.row + of.into, 1),
)
"""The thesis's operations and orders, how each is made, and how many coefficients a call touches."""


def costs(sizes: Sizes) -> list[Cost]:
    """Of all operations, by NumPy and SciPy in float32."""
    vectors = _Vectors(sizes)
    larger = [_Vectors(sizes.grown(name)) for name in ("d", "s", "others")]
    found = []
    for operation, form, order, run, count in _OPERATIONS:
        _seconds(run, larger[0])  # memory that is asked for the first time takes longer
        seconds = _seconds(run, vectors)
        by_d, by_s, by_others = (_seconds(run, grown) / seconds for grown in larger)
        found.append(Cost(operation, form, order, 1e9 * seconds / count, (by_d, by_s, by_others)))
    return found


def _seconds(run: Callable[[_Vectors], Any], vectors: _Vectors) -> float:
    """Of one call, the best of a few trials."""
    trials = []
    for _ in range(TRIALS):
        calls, began = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - began) < LEAST_SECONDS:
            run(vectors)
            calls += 1
        trials.append(elapsed / calls)
    return min(trials)


def table(found: list[Cost], sizes: Sizes) -> Table:
    notes = [
        f"d = {sizes.d} coefficients, s = {sizes.s} of them not zero, s' = {sizes.others} in the vector added to; "
        "NumPy and SciPy, float32. The last columns are the time with one of them ten times as large, over this one. "
        "A sparse vector is a list of indices and values, and a coefficient is looked for in all of it.",
    ]
    headings = ("operation", "vector", "thesis", "ns", "10 d", "10 s", "10 s'")
    shown = Table("Costs of vector operations (thesis, table 3.3)", headings, notes)
    for cost in found:
        growth = (f"x {factor:.1f}" for factor in cost.growth)
        shown.add(cost.operation, cost.form, cost.order, f"{cost.nanoseconds:.0f}", *growth)
    return shown
