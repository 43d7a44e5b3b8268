"""The dual of the structured SVM and its steps, one pattern at a time.

    primal    min_w  1/2 |w|^2 + sum_i C_i max_c ( Delta(c_i, c) + S(p_i, c) - S(p_i, c_i) )             [thesis] (2.18)
    dual      max_beta  - sum_i,c Delta(c_i, c) beta_i^c - 1/2 |w(beta)|^2                                [thesis] (5.3)
              with  beta_i^c <= C_i delta(c, c_i),  sum_c beta_i^c = 0
    gradient  g_i(c) = - Delta(c_i, c) - S(p_i, c)                   (5.4), with the sign that the derivative has

SMOSTEP (algorithm 17) moves two coefficients of one pattern against each other. PROCESSNEW (18) steps on an example
that is no support pattern, PROCESSOLD (19) on a support pattern and all outputs, OPTIMIZE (20) on a support pattern and
its support vectors. The smallest gradient is that of the loss-augmented arg max.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from larank.structured.checked import CheckedModel
from larank.structured.pairs import Example, own
from larank.structured.weights import Vector, Weights, augmented, check_argmax
from larank.training import FromScratch, ObjectiveValues

KAPPA = 1e-12  # relative to C_i: how far below its bound a coefficient must be to grow, [thesis] section 5.1.5

# The gradients of a step's two outputs are equal afterwards, up to rounding, which must not decide what comes next.
_TIE = 1e-10


@dataclass(eq=False, slots=True)
class Pattern:
    """An example and those of its vectors that are known; the one of its own output is always among them."""

    example: Example
    truth: Vector
    vectors: dict[Hashable, Vector] = field(default_factory=dict)


class StepChoice(NamedTuple):
    """Two vectors of a pattern, c+ and c-, and g(c+) - g(c-)."""

    up: Vector
    down: Vector
    violation: float


def pattern_of(weights: Weights, example: Example) -> Pattern:
    """An example with its own output and no other."""
    key = weights.model.key(example.y, example.number)
    truth = weights.vector(example, example.y, key, 0.0)
    return Pattern(example, truth, {key: truth})


class DualSteps:
    """Support patterns, their vectors, and the steps on them. Violations up to `accepted(c+, c-)` are left alone."""

    def __init__(self, weights: Weights, accepted: Callable[[Vector, Vector], float]) -> None:
        self.weights, self.accepted = weights, accepted
        self.patterns: dict[int, Pattern] = {}
        self.order: list[int] = []  # their numbers, to draw from
        self._index: dict[int, int] = {}  # of a number in that list
        self.dual = 0.0
        self.linear = 0.0  # - sum Delta beta
        self.loss = 0.0  # sum of C_i xi_i of visits, each at its time
        self.steps = 0

    @property
    def model(self) -> CheckedModel:
        """The model that is asked."""
        return self.weights.model

    def vectors(self) -> Iterator[Vector]:
        """All vectors of all support patterns."""
        return (v for pattern in self.patterns.values() for v in pattern.vectors.values())

    def process_new(self, example: Example) -> None:  # [thesis] algorithm 18
        """Step on an example, unless it is a support pattern already."""
        known = self.patterns.get(example.number)
        if known is not None:
            self.loss += example.cost * self.slack_among_vectors(known)
            return
        pattern = self.pattern_of(example)
        worst = self.most_violating(pattern, pattern.truth)
        choice = StepChoice(pattern.truth, worst, self.gradient(pattern.truth) - self.gradient(worst))
        self.loss += example.cost * max(0.0, choice.violation)
        if choice.violation > self.accepted(pattern.truth, worst):
            self.add(pattern)
            self.smo_step(pattern, choice)

    def process_old(self, pattern: Pattern) -> None:  # [thesis] algorithm 19
        """Step on a support pattern with the best direction there is."""
        choice = self.choose(pattern)
        worst = self.most_violating(pattern, choice.down)
        violation = choice.violation + self.gradient(choice.down) - self.gradient(worst)
        if violation > choice.violation:
            choice = StepChoice(choice.up, worst, violation)
        if choice.violation > self.accepted(choice.up, choice.down):
            self.smo_step(pattern, choice)

    def optimize(self, pattern: Pattern) -> float:  # [thesis] algorithm 20
        """Step on a support pattern with the best direction among its vectors; the violation that was found."""
        choice = self.choose(pattern)
        if choice.violation <= self.accepted(choice.up, choice.down):
            return 0.0
        self.smo_step(pattern, choice)
        return choice.violation

    def pattern_of(self, example: Example) -> Pattern:
        """An example that is no support pattern yet."""
        return pattern_of(self.weights, example)

    def most_violating(self, pattern: Pattern, known: Vector) -> Vector:
        """The vector with the smallest gradient of all outputs; an error if that of one that is known is smaller."""
        example = pattern.example
        output = augmented(self.weights, example)
        key = self.model.key(output, example.number)
        found = pattern.vectors.get(key)
        if found is None:
            loss = self.model.loss(example.y, output, example.number)
            found = self.weights.vector(example, own(output), key, loss)
        check_argmax(self.weights, known, found, -self.gradient(known), -self.gradient(found))
        return found

    def gradient(self, v: Vector) -> float:
        """g_i(c), [thesis] (5.4)."""
        return -v.loss - self.weights.score(v)

    def choose(self, pattern: Pattern) -> StepChoice:
        """The feasible direction with the highest gradient among the vectors of a pattern."""
        up = down = pattern.truth
        worst = self.gradient(pattern.truth)
        best = worst if up.beta < pattern.example.cost * (1 - KAPPA) else -math.inf
        for v in pattern.vectors.values():
            if v is pattern.truth:
                continue
            g = self.gradient(v)
            if v.beta < 0 and g - best > _TIE * abs(g):
                best, up = g, v
            if worst - g > _TIE * abs(g):
                worst, down = g, v
        return StepChoice(up, down, best - worst)

    def slack_among_vectors(self, pattern: Pattern) -> float:
        """xi_i as far as its vectors tell."""
        return self.gradient(pattern.truth) - min(map(self.gradient, pattern.vectors.values()))

    def smo_step(self, pattern: Pattern, choice: StepChoice) -> None:  # [thesis] algorithm 17
        """Move two coefficients to the maximum of the dual along their direction."""
        up, down, violation = choice
        truth, cost = pattern.truth, pattern.example.cost
        for v in (up, down):
            pattern.vectors.setdefault(v.key, v)
            self.weights.hold(v)
        room = cost - up.beta if up is truth else -up.beta
        squared = self.weights.squared_distance(up, down)
        step = min(violation / squared if squared > 0 else room, room)  # (5.6), (5.7)
        self.dual += step * (violation - step * squared / 2)
        self.linear += step * (down.loss - up.loss)
        self.steps += 1

        is_at_bound = step == room
        raised = (cost if up is truth else 0.0) if is_at_bound else up.beta + step
        lowered = down.beta - step
        # The coefficient of the truth is the sum of the others, so that all vanish together in spite of rounding.
        others = sum(v.beta for v in pattern.vectors.values() if v is not up and v is not down)
        if up is truth:
            raised = min(cost, -(lowered + others))
        elif down is truth:
            lowered = -(raised + others)
        self.weights.set_coefficient(up, raised)
        self.weights.set_coefficient(down, lowered)
        self.settle(pattern)

    def settle(self, pattern: Pattern) -> None:
        """Let go of vectors without a coefficient, and of a pattern without vectors."""
        for v in [v for v in pattern.vectors.values() if v.beta == 0 and v is not pattern.truth]:
            del pattern.vectors[v.key]
            self.weights.release(v)
        if len(pattern.vectors) == 1:
            self.weights.release(pattern.truth)
            self.remove(pattern)

    def add(self, pattern: Pattern) -> None:
        """Make it a support pattern."""
        number = pattern.example.number
        self.patterns[number] = pattern
        self._index[number] = len(self.order)
        self.order.append(number)

    def remove(self, pattern: Pattern) -> None:
        """It is no support pattern any more."""
        number = pattern.example.number
        del self.patterns[number]
        index, last = self._index.pop(number), self.order.pop()
        if last != number:
            self.order[index], self._index[last] = last, index

    def certificate(self, examples: Iterable[Example]) -> FromScratch:
        """Both objectives and the largest violation from scratch: an arg max for every example."""
        self.weights.refresh(self.vectors())
        losses = violation = 0.0
        for example in examples:
            pattern = self.patterns.get(example.number) or self.pattern_of(example)
            choice = self.choose(pattern)
            worst = self.gradient(self.most_violating(pattern, choice.down))
            losses += example.cost * max(0.0, self.gradient(pattern.truth) - worst)
            violation = max(violation, self.gradient(choice.up) - worst)
            yield
        return ObjectiveValues(self.weights.squared_norm() / 2 + losses, self.dual_from_scratch(), violation)

    def dual_from_scratch(self) -> float:
        """The dual objective, if scores have just been refreshed."""
        return -sum(v.loss * v.beta for v in self.vectors()) - self.weights.squared_norm() / 2
