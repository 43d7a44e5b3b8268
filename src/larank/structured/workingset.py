"""A working set of outputs: patterns and vectors that stay, and the problem on them, which the core solves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from larank import _core
from larank.structured.steps import Pattern
from larank.structured.weights import CachedExpansion, FeatureWeights, Vector, Weights

_WORK = 20_000_000  # multiply-adds between two looks at the clock
_STEPS_PER_VECTOR = 1000  # of one solution; a pass of arg max comes before the next, and passes count


class Seen(NamedTuple):
    """Gradients of a pattern: of its own output, the largest that may grow, the smallest, and whose that is."""

    truth: float
    best: float
    worst: float
    worst_vector: Vector


class WorkingSet:
    """Patterns with outputs, with or without a coefficient; core/structured/workingset.hpp has the problem.

    The core has the coefficients; those of the vectors are as they were when `take_in` was called.
    """

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.patterns: dict[int, Pattern] = {}
        self._seen: tuple[list[float], list[float], list[float], list[int]] = ([], [], [], [])
        self._vectors: list[Vector] = []
        self._numbers: dict[int, int] = {}  # of the patterns in the core, by that of the example
        self._problem = _FeatureProblem(weights) if isinstance(weights, FeatureWeights) else _GramProblem(weights)

    @property
    def looks(self) -> int:
        """How often all patterns were looked at."""
        return self._problem.set.looks

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return self._problem.set.steps

    def add(self, pattern: Pattern) -> None:
        """Let a pattern join with all its vectors; the first one is that of its own output."""
        number = pattern.example.number
        self.patterns[number] = pattern
        self._numbers[number] = self._problem.set.add_pattern(pattern.example.cost)
        for v in pattern.vectors.values():
            self._add_vector(number, v)

    def extend(self, pattern: Pattern, v: Vector) -> None:
        """Let an output join."""
        if pattern.example.number not in self.patterns:
            self.add(pattern)
        pattern.vectors[v.key] = v
        self._add_vector(pattern.example.number, v)

    def _add_vector(self, number: int, v: Vector) -> None:
        self.weights.hold(v)
        self._problem.add(self._numbers[number], v)
        self._vectors.append(v)

    def optimize(self, accuracy: float, small: float) -> Iterator[None]:
        """Solve the problem on the set, until its gap is `small` or nothing violates by more than the accuracy."""
        most = self.steps + _STEPS_PER_VECTOR * len(self._vectors)
        while not self._problem.advance(accuracy, small) and self.steps < most:
            yield
        self.look()

    def look(self) -> None:
        """Sum up w or the scores from the coefficients, and look at all patterns with them."""
        self._problem.refresh(self._vectors)
        found = self._problem.set
        self._seen = (found.truths.tolist(), found.best.tolist(), found.worst.tolist(), found.worst_vectors.tolist())

    def seen(self, number: int) -> Seen:
        """What the last look has found of an example."""
        truths, best, worst, vectors = self._seen
        n = self._numbers[number]
        return Seen(truths[n], best[n], worst[n], self._vectors[vectors[n]])

    def linear(self) -> float:
        """- sum Delta beta."""
        return self._problem.set.linear

    def take_in(self) -> None:
        """Take the coefficients from the core, and look at all patterns with them."""
        for v, beta in zip(self._vectors, self._problem.set.coefficients.tolist(), strict=True):
            v.beta = beta
        for pattern in self.patterns.values():  # the coefficients of a pattern add up to zero in spite of rounding
            others = sum(v.beta for v in pattern.vectors.values()) - pattern.truth.beta
            pattern.truth.beta = min(pattern.example.cost, -others)
        self.look()

    def support(self) -> Iterable[Pattern]:
        """The patterns that have coefficients."""
        return (pattern for pattern in self.patterns.values() if pattern.truth.beta)


class _FeatureProblem:
    """Rows of joint features, and w."""

    def __init__(self, weights: FeatureWeights) -> None:
        self._w = weights.w
        self.set = _core.FeatureWorkingSet(0, len(weights.w))

    def add(self, pattern: int, v: Vector) -> None:
        self.set.add(pattern, v.loss, v.beta, v.row.values, v.row.columns())

    def advance(self, accuracy: float, small: float) -> bool:
        return self.set.advance(accuracy, small, _WORK, self._w)

    def refresh(self, vectors: list[Vector]) -> None:
        """Sum up w from the coefficients, and look at all patterns with it."""
        self._w[:] = 0
        self.set.sum_up(self._w)
        self.set.look(self._w)


class _GramProblem:
    """Kernel values and scores."""

    def __init__(self, weights: Weights) -> None:
        assert isinstance(weights, CachedExpansion)
        self._weights = weights
        self.set = _core.GramWorkingSet(0)

    def add(self, pattern: int, v: Vector) -> None:
        self.set.add(pattern, v.loss, v.beta, v.slot)

    def advance(self, accuracy: float, small: float) -> bool:
        return self.set.advance(accuracy, small, _WORK, *self._weights.arrays())

    def refresh(self, vectors: list[Vector]) -> None:
        """Sum up scores from the coefficients, and look at all patterns with them."""
        for v, beta in zip(vectors, self.set.coefficients.tolist(), strict=True):
            v.beta = beta
        self._weights.refresh(vectors)
        self.set.look(*self._weights.arrays())
