"""Weights in the space of joint features: explicit, or as an expansion on support vectors with a joint kernel.

    w  =  sum_i,c beta_i^c Phi(p_i, c)          S(p, c)  =  <w, Phi(p, c)>  =  sum_i,c' beta_i^c' K(p_i, c', p, c)

Solvers give coefficients to the vectors they `hold`, ask for scores, and do not know which of the two they work on.
`work` counts what was done, in units that do not depend on the computer.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.structured.checked import CheckedModel
from larank.structured.pairs import Example
from larank.structured.rows import NO_ROW, Row


@dataclass(eq=False, slots=True)
class Vector:
    """A pair (p_i, c) with its loss Delta(c_i, c) and its coefficient beta_i^c; the rest belongs to the weights."""

    number: int
    x: Any
    output: Any
    key: Hashable
    loss: float
    beta: float = 0.0
    early: float = 0.0  # of averages, see perceptrons.py
    row: Row = NO_ROW
    diagonal: float | None = None
    slot: int = -1
    products: NDArray[np.float64] | None = None
    time: int = -1


class FeatureWeights:
    """A number for each joint feature. Scores are computed when they are wanted, [thesis] section 5.1.

    Work is counted in joint features.
    """

    _ARGMAX = 10.0  # an arg max costs as much as so many joint features
    _PRODUCT = 0.1

    def __init__(self, model: CheckedModel, w: NDArray[np.float64]) -> None:
        self.model, self.w, self.work = model, w, 0.0
        self._scratch = np.zeros(len(w))

    def vector(self, example: Example, output: Any, key: Hashable, loss: float) -> Vector:
        """A pair whose score may be asked for, with its joint feature."""
        self.work += 1
        row = self.model.feature(example.x, output, example.number)
        return Vector(example.number, example.x, output, key, loss, row=row)

    def scorer(self, x: Any, number: int) -> NDArray[np.float64]:
        """What the model's `argmax` is handed: w, which it cannot change."""
        self.work += self._ARGMAX
        w = self.w.view()
        w.flags.writeable = False
        return w

    def score(self, v: Vector) -> float:
        """<w, Phi(p, c)>."""
        self.work += self._PRODUCT
        return v.row.dot(self.w)

    def squared_distance(self, a: Vector, b: Vector) -> float:
        """|Phi(p, a) - Phi(p, b)|^2."""
        a.row.add_to(self._scratch, 1.0)
        b.row.add_to(self._scratch, -1.0)
        return a.row.take_squares(self._scratch) + b.row.take_squares(self._scratch)

    def squared_norm_of(self, v: Vector) -> float:
        """|Phi(p, c)|^2."""
        v.row.add_to(self._scratch, 1.0)
        return v.row.take_squares(self._scratch)

    def hold(self, v: Vector) -> None:
        """Make it a support vector, of which w needs to know nothing."""

    def release(self, v: Vector) -> None:
        """It has no coefficient any more."""

    def set_coefficient(self, v: Vector, beta: float) -> None:
        """Give a vector that is held another coefficient."""
        v.row.add_to(self.w, beta - v.beta)
        v.beta = beta

    def squared_norm(self) -> float:
        """|w|^2."""
        return float(self.w @ self.w)

    def refresh(self, vectors: Iterable[Vector]) -> None:
        """Sum up from the coefficients of all support vectors what steps have changed a little at a time."""
        self.w[:] = 0
        for v in vectors:
            v.row.add_to(self.w, v.beta)


class KernelExpansion:
    """Support vectors and a joint kernel. No kernel values are kept. Work is counted in kernel values."""

    def __init__(self, model: CheckedModel) -> None:
        self.model, self.work = model, 0.0
        self._held: dict[tuple[int, Hashable], Vector] = {}

    def support(self) -> Iterator[Vector]:
        """The vectors that are held and have a coefficient."""
        return (v for v in self._held.values() if v.beta)

    def kernel(self, v: Vector, x: Any, y: Any, number: int) -> float:
        """K(v, (x, y))."""
        self.work += 1
        return self.model.kernel(v.x, v.output, x, y, number)

    def score_of(self, x: Any, y: Any, number: int) -> float:
        """S(x, y)."""
        return sum(v.beta * self.kernel(v, x, y, number) for v in self.support())

    def vector(self, example: Example, output: Any, key: Hashable, loss: float) -> Vector:
        """A pair whose score may be asked for."""
        return Vector(example.number, example.x, output, key, loss)

    def scorer(self, x: Any, number: int) -> _ScoresOfInput:
        """What the model's `argmax` is handed: the scores of this input."""
        return _ScoresOfInput(self, x, number)

    def score(self, v: Vector) -> float:
        """S(p, c)."""
        return self.score_of(v.x, v.output, v.number)

    def product(self, a: Vector, b: Vector) -> float:
        """K(a, b)."""
        return self.kernel(a, b.x, b.output, b.number)

    def squared_norm_of(self, v: Vector) -> float:
        """K(v, v)."""
        if v.diagonal is None:
            v.diagonal = self.kernel(v, v.x, v.output, v.number)
            if v.diagonal < 0:
                raise self._not_definite(v, f"K((x, y), (x, y)) is {v.diagonal:.3g} for output {v.output!r}")
        return v.diagonal

    def squared_distance(self, a: Vector, b: Vector) -> float:
        """K(a, a) - 2 K(a, b) + K(b, b)."""
        norms = self.squared_norm_of(a) + self.squared_norm_of(b)
        squared = norms - 2 * self.product(a, b)
        if squared < -1e-9 * norms:
            raise self._not_definite(a, f"|Phi(x, y) - Phi(x, y')|^2 is {squared:.3g}")
        return max(0.0, squared)

    def hold(self, v: Vector) -> None:
        """Make it a support vector."""
        self._held[v.number, v.key] = v

    def release(self, v: Vector) -> None:
        """It has no coefficient any more."""
        self._held.pop((v.number, v.key), None)

    def set_coefficient(self, v: Vector, beta: float) -> None:
        """Give a vector that is held another coefficient."""
        v.beta = beta

    def squared_norm(self) -> float:
        """|w|^2."""
        support = list(self.support())
        return max(0.0, sum(v.beta * self.score(v) for v in support))

    def refresh(self, vectors: Iterable[Vector]) -> None:
        """Nothing is kept that could have changed."""

    def _not_definite(self, v: Vector, found: str) -> ValueError:
        name = f"{type(self.model.model).__name__}.joint_kernel"
        return ValueError(f"{name} must be positive semi-definite; {found} for example {v.number}")


class _ScoresOfInput:
    """The scores of one input, as a function of the output."""

    def __init__(self, expansion: KernelExpansion, x: Any, number: int) -> None:
        self._expansion, self._x, self._number = expansion, x, number

    def __call__(self, y: Any) -> float:
        """S(x, y)."""
        return self._expansion.score_of(self._x, y, self._number)

    def terms(self) -> Iterator[tuple[float, Any, Any]]:
        """The coefficients, inputs and outputs that a score is the sum of: beta K(x', y', x, y)."""
        return ((v.beta, v.x, v.output) for v in self._expansion.support())


class CachedExpansion(KernelExpansion):
    """Support vectors with their kernel values and their scores, both of which are kept, [thesis] (5.4).

    Vectors live in slots. A new one is compared with all others to have its score, so the kernel values between all
    support vectors are there when they are wanted, at 8 bytes each.
    """

    def __init__(self, model: CheckedModel) -> None:
        super().__init__(model)
        self._K = np.zeros((0, 0))
        self._beta, self._scores = np.zeros(0), np.zeros(0)
        self._born = np.zeros(0, dtype=np.int64)  # when the vector in a slot came to it, -1 without one
        self._vectors: list[Vector | None] = []
        self._free: list[int] = []
        self._clock = 0

    def score(self, v: Vector) -> float:
        """S(p, c), kept for support vectors."""
        if v.slot >= 0:
            return float(self._scores[v.slot])
        return float(self._products(v) @ self._beta)

    def product(self, a: Vector, b: Vector) -> float:
        """K(a, b)."""
        return float(self._K[a.slot, b.slot]) if a.slot >= 0 and b.slot >= 0 else super().product(a, b)

    def set_coefficient(self, v: Vector, beta: float) -> None:
        """Give a vector that is held another coefficient, and all their scores."""
        self._scores += (beta - v.beta) * self._K[v.slot]
        self._beta[v.slot] = v.beta = beta

    def hold(self, v: Vector) -> None:
        """Make it a support vector."""
        if v.slot >= 0:
            return
        super().hold(v)
        if not self._free:
            self._grow()
        products = self._products(v)
        slot = self._free.pop()
        self._K[slot], self._K[:, slot] = products, products
        self._K[slot, slot] = self.squared_norm_of(v)
        self._beta[slot], self._scores[slot] = v.beta, products @ self._beta
        self._clock += 1
        self._born[slot], self._vectors[slot] = self._clock, v
        v.slot, v.products = slot, None

    def release(self, v: Vector) -> None:
        """Free its slot."""
        super().release(v)
        self._free.append(v.slot)
        self._born[v.slot], self._beta[v.slot], self._vectors[v.slot] = -1, 0.0, None
        v.slot = -1

    def squared_norm(self) -> float:
        """|w|^2."""
        return max(0.0, float(self._beta @ self._scores))

    def refresh(self, vectors: Iterable[Vector]) -> None:
        """Sum up the scores from the coefficients."""
        for v in vectors:
            self._beta[v.slot] = v.beta
        self._scores = self._K @ self._beta

    def arrays(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The kernel values and the scores of all slots, to work on; `refresh` is told the coefficients afterwards."""
        return self._K, self._scores

    def _products(self, v: Vector) -> NDArray[np.float64]:
        """K(v, .) slot by slot; values of free slots mean nothing, their coefficients are 0."""
        if v.products is None or len(v.products) != len(self._born):
            v.products, v.time = np.zeros(len(self._born)), 0
        for slot in np.flatnonzero(self._born > v.time):
            other = self._vectors[slot]
            assert other is not None
            v.products[slot] = self.kernel(other, v.x, v.output, v.number)
        v.time = self._clock
        return v.products

    def _grow(self) -> None:
        slots = len(self._born)
        more = max(16, slots)
        self._K = np.pad(self._K, (0, more))
        self._beta, self._scores = np.pad(self._beta, (0, more)), np.pad(self._scores, (0, more))
        self._born = np.pad(self._born, (0, more), constant_values=-1)
        self._vectors += [None] * more
        self._free = list(range(slots + more - 1, slots - 1, -1))


Weights = FeatureWeights | KernelExpansion


def augmented(weights: Weights, example: Example) -> Any:
    """The output with the largest Delta(c_i, c) + S(p_i, c)."""
    scorer = weights.scorer(example.x, example.number)
    return weights.model.argmax(example.x, scorer, example.number, example.y)


def augmented_batch(weights: Weights, examples: Sequence[Example]) -> Sequence[Any]:
    """The same for several examples, in one call where the model offers it."""
    if not (weights.model.has_batches and isinstance(weights, FeatureWeights)):
        return [augmented(weights, example) for example in examples]
    numbers = [example.number for example in examples]
    scorer = weights.scorer(None, numbers[0])
    return weights.model.argmax_batch([e.x for e in examples], scorer, numbers, [e.y for e in examples])


def check_argmax(
    weights: Weights, known: Vector, found: Vector, better: float, worse: float, what: str = "loss + score"
) -> None:
    """Raise if the model found an output that is worse than a known one by more than rounding explains."""
    if better <= worse:
        return
    w = math.sqrt(weights.squared_norm())
    rounding = 1e-6 * sum(v.loss + w * math.sqrt(weights.squared_norm_of(v)) for v in (known, found))
    if better > worse + rounding:
        raise weights.model.missed(known.output, found.output, better, worse, found.number, what)
