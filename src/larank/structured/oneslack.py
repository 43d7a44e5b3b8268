"""SVMstruct with one slack variable: cutting planes of all examples at once, after Joachims, Finley and Yu (2009).

The problem stands in steps.py. A plane a takes one output c_i^a for every example. With C the largest of the costs,
weights s_i = C_i / C, L_a = sum_i s_i Delta(c_i, c_i^a) and Psi_a = sum_i s_i (Phi(p_i, c_i) - Phi(p_i, c_i^a)):

    primal    min_w      1/2 |w|^2 + C xi   with   <w, Psi_a> >= L_a - xi for all a,  xi >= 0
    dual      max_alpha  sum_a alpha_a L_a - 1/2 |sum_a alpha_a Psi_a|^2   with   alpha >= 0,  sum_a alpha_a <= C

At given w the smallest xi is sum_i s_i xi_i: this is problem (2.18), with the same primal and dual objectives. The
coefficients are beta_i^c = - s_i times the sum of the alpha_a whose plane has c_i^a = c.

Outputs that arg max has found are kept with their joint features. The worst of them make planes too, at the price of a
product, and arg max is asked again when those planes bring little (section 5 of the paper). Two planes join at a time:
one at the w of the planes, and one near the best w so far, to which a line search leads, after Franc and Sonnenburg,
Optimized Cutting Plane Algorithm for Large-Scale Risk Minimization, JMLR 10, 2009.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.blocks.workers import one_blas_thread
from larank.structured.cuttingplanes import FINEST, CuttingPlanes
from larank.structured.pairs import Example, own
from larank.structured.rows import stacked
from larank.structured.simplex import ascend_on_simplex
from larank.structured.solver import JointSupport
from larank.structured.weights import FeatureWeights, Vector, Weights, augmented_batch, check_argmax
from larank.training import FromScratch, ObjectiveValues


@dataclass
class Plane:
    """One output for every example, by its number in the example's list, and what they sum up to."""

    choices: NDArray[np.int32]
    loss: float  # L_a
    row: NDArray[np.float64]  # Psi_a


@dataclass
class Outputs:
    """The different outputs that arg max has found for one example; the first one is its own."""

    example: Example
    vectors: list[Vector] = field(default_factory=list)
    numbers: dict[Hashable, int] = field(default_factory=dict)


class KnownOutputs:
    """All outputs found so far, as rows of one matrix: those of an example lie together, its own output first."""

    def __init__(self, outputs: list[Outputs], shares: NDArray[np.float64]) -> None:
        vectors = [v for known in outputs for v in known.vectors]
        self.shares = shares
        self.starts = np.cumsum([0, *(len(known.vectors) for known in outputs)])[:-1]
        self._counts = np.diff([*self.starts, len(vectors)])
        self._examples = np.repeat(np.arange(len(outputs)), self._counts)
        self._losses = np.array([v.loss for v in vectors])
        self._rows = stacked([v.row for v in vectors])

    def values(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Delta + S of each."""
        values: NDArray[np.float64] = self._losses + self._rows @ w
        return values

    def worst(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Where the output with the largest value is, example by example."""
        largest = np.repeat(np.maximum.reduceat(values, self.starts), self._counts)
        found = np.flatnonzero(values == largest)
        return found[np.searchsorted(self._examples[found], np.arange(len(self.starts)))]

    def plane(self, chosen: NDArray[np.int64]) -> Plane:
        """The plane of these outputs."""
        amounts = np.zeros(len(self._losses))
        amounts[self.starts] += self.shares
        amounts[chosen] -= self.shares
        choices = (chosen - self.starts).astype(np.int32)
        return Plane(choices, float(self.shares @ self._losses[chosen]), np.asarray(self._rows.T @ amounts))

    def sums(self, planes: list[NDArray[np.int32]], alpha: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each output, s_i times the coefficients of the planes that have chosen it."""
        found = np.zeros(len(self._losses))
        for choices, share in zip(planes, alpha, strict=True):
            found[self.starts + choices] += share * self.shares
        return found


class OneSlack(CuttingPlanes):
    """Planes of all examples at once; one is dropped when it had no coefficient for some rounds.

    Training ends if rounding errors hide what further planes could gain.
    """

    NAME = "svmstruct-1slack"
    _IDLE = 50
    _INNER = 0.05  # of the new plane's violation: how far the small problem is solved
    _KNOWN = 0.1  # of the violation that arg max has found: planes of known outputs that violate by less are not added
    _NEAR = 0.1  # how far from the best w to that of the planes the second plane is taken
    _HALVINGS = 7  # of a line search
    _BATCH = 256

    weights: FeatureWeights

    def __init__(self, weights: Weights, *arguments: Any) -> None:
        if not isinstance(weights, FeatureWeights):
            raise ValueError(
                "solver='svmstruct-1slack' needs a model with joint_feature: its planes are sums over all examples; "
                "with joint_kernel use 'larank' or 'svmstruct'"
            )
        super().__init__(weights, *arguments)
        self.C = float(self.pairs.costs.max())
        self.outputs: list[Outputs] = []
        self.best = np.zeros(len(weights.w))  # the w with the least primal objective on known outputs, so far
        self._known: KnownOutputs | None = None
        # Of all planes. The first one has all the right outputs: it takes the part of C that the others leave.
        self.choices = [np.zeros(len(self.pairs), np.int32)]
        self.losses = np.zeros(1)  # L_a
        self.rows = np.zeros((1, len(weights.w)))  # Psi_a
        self.gram = np.zeros((1, 1))
        self.alpha = np.array([self.C])
        self.idle = np.zeros(1)  # rounds without a coefficient
        self.counts = {"planes": 0, "dropped": 0, "steps": 0}

    def rounds(self) -> Iterator[None]:
        """A plane, then the problem of all planes, until the newest one is violated by less than epsilon."""
        for example in self.pairs:
            self._begin(example)
        while True:
            found: list[int] = []
            for _ in self._found(found):
                yield
            plane = self._plane_of(found)
            self.seen = self.exact = self._objectives(plane)
            violation = self._violation(plane)
            if self.epsilon is not None and violation <= self.epsilon * self.pairs.costs.sum() / self.C:
                return
            yield
            self.exact = None
            least = max(self._KNOWN * violation, FINEST * plane.loss)
            while violation > least:
                self._add([plane, self._plane_near_the_best()])
                if not self._solve(max(self._INNER * violation, FINEST * plane.loss)):
                    self.has_stalled = True
                    return
                self._drop_idle()
                yield
                known = self.known()
                plane = known.plane(known.worst(known.values(self.weights.w)))
                violation = self._violation(plane)

    def _begin(self, example: Example) -> None:
        key = self.weights.model.key(example.y, example.number)
        truth = self.weights.vector(example, example.y, key, 0.0)
        self.outputs.append(Outputs(example, [truth], {key: 0}))

    def _found(self, choices: list[int]) -> Iterator[None]:
        """Ask arg max about all examples; the numbers of the outputs it finds."""
        size = self._BATCH if self.weights.model.has_batches else 1
        for first in range(0, len(self.outputs), size):
            some = self.outputs[first : first + size]
            answers = augmented_batch(self.weights, [known.example for known in some])
            choices += [self._number(known, answer) for known, answer in zip(some, answers, strict=True)]
            self._visited += len(some)
            yield

    def _number(self, known: Outputs, output: Any) -> int:
        model, example = self.weights.model, known.example
        key = model.key(output, example.number)
        number = known.numbers.setdefault(key, len(known.vectors))
        if number == len(known.vectors):
            loss = model.loss(example.y, output, example.number)
            known.vectors.append(self.weights.vector(example, own(output), key, loss))
            self._known = None
        return number

    def known(self) -> KnownOutputs:
        """All outputs found so far."""
        if self._known is None:
            shares = np.array([known.example.cost for known in self.outputs]) / self.C
            self._known = KnownOutputs(self.outputs, shares)
        return self._known

    def _plane_of(self, found: list[int]) -> Plane:
        """The plane of what arg max has found, if none of it is worse than an output that is known."""
        known = self.known()
        values, chosen = known.values(self.weights.w), known.starts + np.array(found)
        better = known.worst(values)
        for k in np.flatnonzero(values[better] > values[chosen]):
            first, second = (self.outputs[k].vectors[n[k] - known.starts[k]] for n in (better, chosen))
            check_argmax(self.weights, first, second, float(values[better[k]]), float(values[chosen[k]]))
        return known.plane(chosen)

    def _plane_near_the_best(self) -> Plane:
        """Go from the best w towards that of the planes, as far as the primal objective falls, and a little further."""
        known, C = self.known(), self.C
        here, there = known.values(self.best), known.values(self.weights.w)
        change, move = there - here, self.weights.w - self.best
        least, most = 0.0, 1.0
        for _ in range(self._HALVINGS):
            middle = (least + most) / 2
            chosen = known.worst(here + middle * change)
            slope = float((self.best + middle * move) @ move)
            slope += C * float(known.shares @ (change[chosen] - change[known.starts]))
            least, most = (middle, most) if slope < 0 else (least, middle)
        self.best = self.best + least * move
        return known.plane(known.worst(here + (least + self._NEAR * (1 - least)) * change))

    def _excess(self, plane: Plane) -> float:
        """L_a - <w, Psi_a>: the derivative of the dual by alpha_a, and the slack that the plane asks for."""
        return plane.loss - float(plane.row @ self.weights.w)

    def _violation(self, plane: Plane) -> float:
        """How far the slack that a plane, or another one, asks for is above that of a plane with a coefficient."""
        excess = self.losses - self.rows @ self.weights.w
        return max(self._excess(plane), float(excess.max())) - float(excess[self.alpha > 0].min())

    def _add(self, planes: list[Plane]) -> None:
        for plane in planes:
            self.rows = np.vstack([self.rows, plane.row])
            self.gram = np.pad(self.gram, (0, 1))
            self.gram[-1] = self.gram[:, -1] = self.rows @ plane.row
            self.choices.append(plane.choices)
            self.losses = np.append(self.losses, plane.loss)
            self.alpha, self.idle = np.append(self.alpha, 0.0), np.append(self.idle, 0)
            self.counts["planes"] += 1

    def _solve(self, accuracy: float) -> bool:
        """Maximise the dual objective on the planes; False, and no change, if it does not increase."""
        alpha, dual = self.alpha.copy(), self._dual()
        with one_blas_thread():  # matrices this small do not gain from more
            self.counts["steps"] += ascend_on_simplex(self.gram, self.losses, self.alpha, accuracy)
        self.weights.w[:] = self.alpha @ self.rows
        if self._dual() > dual:
            return True
        self.alpha = alpha
        self.weights.w[:] = alpha @ self.rows
        return False

    def _dual(self) -> float:
        return float(self.alpha @ self.losses) - self.weights.squared_norm() / 2

    def _drop_idle(self) -> None:
        self.idle = np.where(self.alpha > 0, 0, self.idle + 1)
        self.idle[0] = 0
        stays = np.flatnonzero(self.idle < self._IDLE)
        self.counts["dropped"] += len(self.idle) - len(stays)
        if len(stays) < len(self.idle):
            self.choices = [self.choices[k] for k in stays]
            self.losses, self.rows, self.idle = self.losses[stays], self.rows[stays], self.idle[stays]
            self.alpha, self.gram = self.alpha[stays], self.gram[np.ix_(stays, stays)]

    def _objectives(self, worst: Plane) -> ObjectiveValues:
        """The objectives and the violation, if this is the plane that w violates most."""
        primal = self.weights.squared_norm() / 2 + self.C * max(0.0, self._excess(worst))
        return ObjectiveValues(primal, self._dual(), self._violation(worst))

    def _from_scratch(self) -> FromScratch:
        found: list[int] = []
        visited = self._visited
        try:
            yield from self._found(found)
        finally:
            self._visited = visited
        return self._objectives(self._plane_of(found))

    def support(self) -> JointSupport:
        """The support vectors."""
        known = self.known()
        coefficients = -known.sums(self.choices, self.alpha)
        examples, starts, outputs, beta = [], [0], [], []
        for one, first in zip(self.outputs, known.starts.tolist(), strict=True):
            part = coefficients[first : first + len(one.vectors)]
            part[0] = 0.0
            part[0] = -part.sum()
            if part[0] == 0:
                continue
            used = np.flatnonzero(part)
            examples.append(one.example)
            starts.append(starts[-1] + len(used))
            outputs += [one.vectors[n].output for n in used]
            beta += part[used].tolist()
        return JointSupport(examples, np.array(starts), outputs, np.array(beta), np.zeros(len(beta)))

    def operations(self) -> dict[str, int]:
        """How often each operation was performed."""
        return dict(self.counts)
