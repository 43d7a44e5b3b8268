"""SVMstruct: cutting planes for the problem that stands in steps.py, with a slack variable per example.

[thesis] algorithm 5. The working set holds outputs of examples. With H_i(c) = Delta(c_i, c) + S(p_i, c) -
S(p_i, c_i), an example whose arg max has H_i(c) >= xi_i + epsilon, where xi_i is the largest H_i of its outputs in the
set, adds it. The dual is then optimized on the set by steps on two outputs of one example.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from larank.structured.pairs import Example, TrainingPairs, own
from larank.structured.solver import JointSupport, Solver
from larank.structured.steps import Pattern, pattern_of
from larank.structured.weights import Vector, Weights, augmented_batch, check_argmax
from larank.structured.workingset import WorkingSet
from larank.training import FromScratch, Objectives, ObjectiveValues

FINEST = 1e-13  # relative to losses: more precision than this is not asked for


class CuttingPlanes(Solver):
    """A batch solver as the training loop sees it; a generator does the rounds.

    `epsilon` is what ends training by itself; None where the duality gap does.
    """

    has_stalled = False  # rounding errors hide any further gain

    def __init__(
        self, weights: Weights, pairs: TrainingPairs, epsilon: float | None, shuffled: np.random.RandomState | None
    ) -> None:
        self.weights, self.pairs, self.epsilon, self.shuffled = weights, pairs, epsilon, shuffled
        self.seen: ObjectiveValues | None = None
        self.exact: Objectives | None = None  # where a round has looked at all examples with w as it is now
        self.certificate_calls = 0
        self._visited = 0
        self._rounds = self.rounds()

    @abstractmethod
    def rounds(self) -> Iterator[None]:
        """Work; limits are looked at after each `yield`."""

    @abstractmethod
    def _from_scratch(self) -> FromScratch:
        """The objectives as they are."""

    def advance(self) -> bool:
        """Go on to the next `yield`; True once no output violates by epsilon."""
        try:
            next(self._rounds)
        except StopIteration:
            return True
        return False

    def estimate(self) -> ObjectiveValues | None:
        """What the last round has seen."""
        seen, self.seen = self.seen, None
        return seen

    def evaluate(self) -> FromScratch:
        """The objectives from scratch."""
        if self.exact is None:
            before = self.weights.model.argmax_calls
            self.exact = yield from self._from_scratch()
            self.certificate_calls += self.weights.model.argmax_calls - before
        return self.exact

    def iterations(self) -> float:
        """Passes over the data so far."""
        return self._visited / len(self.pairs)

    def details(self) -> Mapping[str, Any]:
        """Nothing more."""
        return {}


class NSlack(CuttingPlanes):
    """Algorithm 5 of [thesis].

    The set is optimized when it has grown by a tenth of the examples or by `_MOST_NEW` outputs, and at the end of a
    pass. On the way epsilon is a share of the gap per unit of cost, so that no pass looks for what does not matter yet.
    Where the gap of the problem on the set is `_INNER` epsilon, and the set lacks nothing that violates by epsilon
    more, the gap is (1 + `_INNER`) epsilon at most; so there is always something to do if (1 + `_INNER`) `_SHARE` < 1.
    """

    NAME = "svmstruct"
    _MOST_NEW = 100
    _SHARE = 0.5
    _INNER = 0.1  # the set is optimized to this share of epsilon per unit of cost

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.set = WorkingSet(self.weights)
        self.joined = 0
        self._first_epsilon = 0.0
        self._largest_loss = 0.0
        # Of this pass: the sum of C_i xi_i and the largest violation, each as it was when its example was visited.
        self._losses = self._violation = 0.0

    def begin_with(self, patterns: Iterable[Pattern], gap: float) -> None:
        """Start from what another solver has found, where its gap is about this."""
        for pattern in patterns:
            self.set.add(pattern)
            self._largest_loss = max(self._largest_loss, *(v.loss for v in pattern.vectors.values()))
        self.set.look()
        self._first_epsilon = self._SHARE * gap / float(self.pairs.costs.sum())

    def rounds(self) -> Iterator[None]:
        """Passes over the examples until one finds nothing."""
        most_new = min(self._MOST_NEW, math.ceil(len(self.pairs) / 10))
        epsilon = 0.0
        if self._first_epsilon > 0:
            yield from self._optimize(self._first_epsilon)
        while True:
            before, unsettled, is_still = self.joined, 0, True
            self._losses = self._violation = 0.0
            for examples in self._in_batches(most_new):
                unsettled += self._have_grown(examples, epsilon)
                yield
                if unsettled >= most_new:
                    unsettled, is_still = 0, False
                    yield from self._optimize(epsilon or self._SHARE * self._largest_loss)
            looked_for, epsilon = epsilon, self._smaller(epsilon, is_still=is_still)
            yield
            if self.joined == before and is_still and looked_for == self.epsilon:
                return
            yield from self._optimize(epsilon)

    def _in_batches(self, size: int) -> Iterator[Sequence[Example]]:
        """All examples, several at a time where the model has batches."""
        examples = map(self._example, self.pairs.order(self.shuffled).tolist())
        size = size if self.weights.model.has_batches else 1
        while batch := list(islice(examples, size)):
            yield batch

    def _example(self, index: int) -> Example:
        known = self.set.patterns.get(self.pairs.first + index)
        return self.pairs.at(index) if known is None else known.example

    def _have_grown(self, examples: Sequence[Example], epsilon: float) -> int:
        """Look for the outputs that violate most, and let those join that the set lacks; lines 4 to 8."""
        joined = self.joined
        for example, output in zip(examples, augmented_batch(self.weights, examples), strict=True):
            self._visited += 1
            found = self._judged(example, output)
            if found is None:
                continue
            pattern, worst, excess = found
            self._largest_loss = max(self._largest_loss, worst.loss)
            if worst.key not in pattern.vectors and excess > 0 and excess >= epsilon:
                self.set.extend(pattern, worst)
                self.joined += 1
        return self.joined - joined

    def _judged(self, example: Example, output: Any) -> tuple[Pattern, Vector, float] | None:
        """Take note of what the arg max has found: its vector, and how far it is below what the set knows.

        None where it is the example's own output and the set knows no other.
        """
        model, number = self.weights.model, example.number
        key = model.key(output, number)
        pattern = self.set.patterns.get(number)
        if pattern is None:
            if key == model.key(example.y, number):
                return None
            pattern = pattern_of(self.weights, example)
            g_truth = best = g_known = -self.weights.score(pattern.truth)
            known = pattern.truth
        else:
            g_truth, best, g_known, known = self.set.seen(number)
        worst = pattern.vectors.get(key)
        if worst is None:
            worst = self.weights.vector(example, own(output), key, model.loss(example.y, output, number))
        g_worst = g_known if worst is known else -worst.loss - self.weights.score(worst)
        check_argmax(self.weights, known, worst, -g_known, -g_worst)
        self._losses += example.cost * max(0.0, g_truth - g_worst)
        self._violation = max(self._violation, best - g_worst)
        return pattern, worst, g_known - g_worst

    def _smaller(self, epsilon: float, *, is_still: bool) -> float:
        """Record what a pass has seen; the epsilon of the next one."""
        half = self.weights.squared_norm() / 2
        dual = self.set.linear() - half
        if is_still:  # all examples have seen the same w
            self.seen = self.exact = ObjectiveValues(half + self._losses, dual, self._violation)
        else:
            self.seen = ObjectiveValues(max(dual, half + self._losses), dual, self._violation)
        share = self._SHARE * (self.seen.primal - self.seen.dual) / float(self.pairs.costs.sum())
        return max(min(share, epsilon or share), self.epsilon or 0.0, FINEST * self._largest_loss)

    def _optimize(self, epsilon: float) -> Iterator[None]:
        """Steps on the set until the gap of its problem is a share of epsilon per unit of cost; line 9."""
        if self.set.patterns:
            self.exact = None
            accuracy = self._INNER * epsilon
            yield from self.set.optimize(accuracy, accuracy * float(self.pairs.costs.sum()))

    def _from_scratch(self) -> FromScratch:
        before = self._losses, self._violation
        self._losses = self._violation = 0.0
        self.set.look()
        try:
            for examples in self._in_batches(self._MOST_NEW):
                for example, output in zip(examples, augmented_batch(self.weights, examples), strict=True):
                    self._judged(example, output)
                yield
            half = self.weights.squared_norm() / 2
            return ObjectiveValues(half + self._losses, self.set.linear() - half, self._violation)
        finally:
            self._losses, self._violation = before

    def support(self) -> JointSupport:
        """The support vectors."""
        self.set.take_in()
        return JointSupport.of(
            (pattern.example, [v for v in pattern.vectors.values() if v.beta]) for pattern in self.set.support()
        )

    def operations(self) -> dict[str, int]:
        """How often each operation was performed."""
        return {"planes": self.joined, "looks": self.set.looks, "steps": self.set.steps}
