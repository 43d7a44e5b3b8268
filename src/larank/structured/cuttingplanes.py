"""SVMstruct: cutting planes for the problem that stands in steps.py, with n slack variables or with one.

n slacks, [thesis] algorithm 5. The working set holds outputs of examples. With H_i(c) = Delta(c_i, c) + S(p_i, c) -
S(p_i, c_i), an example whose arg max has H_i(c) >= xi_i + epsilon, where xi_i is the largest H_i of its outputs in the
set, adds it. The dual is then optimized on the set by steps on two outputs of one example.

One slack, after Joachims, Finley and Yu (2009). A plane a takes one output c_i^a for every example. With C the largest
of the costs, weights s_i = C_i / C, L_a = sum_i s_i Delta(c_i, c_i^a) and
Psi_a = sum_i s_i (Phi(p_i, c_i) - Phi(p_i, c_i^a)):

    primal    min_w      1/2 |w|^2 + C xi   with   <w, Psi_a> >= L_a - xi for all a,  xi >= 0
    dual      max_alpha  sum_a alpha_a L_a - 1/2 |sum_a alpha_a Psi_a|^2   with   alpha >= 0,  sum_a alpha_a <= C

At given w the smallest xi is sum_i s_i xi_i: this is problem (2.18), with the same primal and dual objectives. The
coefficients are beta_i^c = - s_i times the sum of the alpha_a whose plane has c_i^a = c.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.structured.larank import support_of
from larank.structured.pairs import Example, TrainingPairs, own
from larank.structured.solver import Solver, Support
from larank.structured.steps import KAPPA, DualSteps, Pattern
from larank.structured.weights import FeatureWeights, Vector, Weights, augmented, check_argmax
from larank.training import ObjectiveValues

_FINEST = 1e-13  # relative to losses: more precision than this is not asked for


class CuttingPlanes(Solver):
    """A batch solver as the training loop sees it; a generator does the rounds.

    `epsilon` is what ends training by itself; None where the duality gap does.
    """

    def __init__(
        self, weights: Weights, pairs: TrainingPairs, epsilon: float | None, shuffled: np.random.RandomState | None
    ) -> None:
        self.weights, self.pairs, self.epsilon, self.shuffled = weights, pairs, epsilon, shuffled
        self.seen: ObjectiveValues | None = None
        self.exact: ObjectiveValues | None = None  # where a round has looked at all examples with w as it is now
        self.certificate_calls = 0
        self._visited = 0
        self._rounds = self.rounds()

    @abstractmethod
    def rounds(self) -> Iterator[None]:
        """Work; limits are looked at after each `yield`."""

    @abstractmethod
    def _from_scratch(self) -> ObjectiveValues:
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

    def evaluate(self) -> ObjectiveValues:
        """The objectives from scratch."""
        if self.exact is None:
            before = self.weights.model.argmax_calls
            self.exact = self._from_scratch()
            self.certificate_calls += self.weights.model.argmax_calls - before
        return self.exact

    def iterations(self) -> float:
        """Passes over the data so far."""
        return self._visited / len(self.pairs)

    def details(self) -> Mapping[str, Any]:
        """Nothing more."""
        return {}


class WorkingSet(DualSteps):
    """Patterns and vectors that stay, with or without a coefficient."""

    def settle(self, pattern: Pattern) -> None:
        """Nothing leaves the set."""

    def extend(self, pattern: Pattern, v: Vector) -> None:
        """Let an output join."""
        if pattern.example.number not in self.patterns:
            self.add(pattern)
            self.weights.hold(pattern.truth)
        pattern.vectors[v.key] = v
        self.weights.hold(v)

    def look(self) -> Callable[[float], tuple[list[Pattern], float]]:
        """A function that finds the patterns whose vectors violate by more than its argument, and the gap on the set.

        It may be called until the set grows.
        """
        patterns, vectors = list(self.patterns.values()), list(self.vectors())
        starts = np.cumsum([0, *(len(pattern.vectors) for pattern in patterns)])[:-1]
        losses, scores = np.array([v.loss for v in vectors]), self.weights.scores_of(vectors)
        costs = np.array([pattern.example.cost for pattern in patterns])
        bounds = np.zeros(len(vectors))
        bounds[starts] = costs * (1 - KAPPA)  # the truth comes first

        def found(accuracy: float) -> tuple[list[Pattern], float]:
            g = -losses - scores()
            can_grow = np.array([v.beta for v in vectors]) < bounds
            best = np.maximum.reduceat(np.where(can_grow, g, -np.inf), starts)
            worst = np.minimum.reduceat(g, starts)
            primal = self.linear - self.dual + float(costs @ (g[starts] - worst))
            return [patterns[k] for k in np.flatnonzero(best - worst > accuracy)], primal - self.dual

        return found


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
    _INNER = 0.1  # the set is optimized to this share of epsilon per unit of cost,
    _MOST_LOOKS = 1000  # in at most so many looks at the set: below rounding there is no end,
    _SWEEPS = 10  # and as many sweeps over what each of them finds

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.accuracy = math.inf  # of the problem on the set
        self.steps = WorkingSet(self.weights, lambda up, down: self.accuracy)
        self.looks = 0
        self.joined = 0
        self._largest_loss = 0.0
        # Of this pass: the sum of C_i xi_i and the largest violation, each as it was when its example was visited.
        self._losses = self._violation = 0.0

    def rounds(self) -> Iterator[None]:
        """Passes over the examples until one finds nothing."""
        batch = min(self._MOST_NEW, math.ceil(len(self.pairs) / 10))
        epsilon = 0.0
        while True:
            self.weights.refresh(self.steps.vectors())
            before, unsettled, is_still = self.joined, 0, True
            self._losses = self._violation = 0.0
            for index in self.pairs.order(self.shuffled):
                unsettled += self._has_grown(self.pairs.at(index), epsilon)
                yield
                if unsettled >= batch:
                    unsettled, is_still = 0, False
                    yield from self._optimize(epsilon or self._SHARE * self._largest_loss)
            looked_for, epsilon = epsilon, self._smaller(epsilon, is_still=is_still)
            yield
            if self.joined == before and is_still and looked_for == self.epsilon:
                return
            yield from self._optimize(epsilon)

    def _has_grown(self, example: Example, epsilon: float) -> bool:
        """Look for the output that violates most, and let it join if the set lacks it; lines 4 to 8."""
        pattern = self.steps.patterns.get(example.number) or self.steps.pattern_of(example)
        choice = self.steps.choose(pattern)
        worst = self.steps.most_violating(pattern, choice.down)
        g_known, g_worst = self.steps.gradient(choice.down), self.steps.gradient(worst)
        self._losses += example.cost * (self.steps.gradient(pattern.truth) - g_worst)
        self._violation = max(self._violation, choice.violation + g_known - g_worst)
        self._largest_loss = max(self._largest_loss, worst.loss)
        self._visited += 1
        if worst.key in pattern.vectors or g_known - g_worst <= 0 or g_known - g_worst < epsilon:
            return False
        self.steps.extend(pattern, worst)
        self.joined += 1
        return True

    def _smaller(self, epsilon: float, *, is_still: bool) -> float:
        """Record what a pass has seen; the epsilon of the next one."""
        if is_still:  # all examples have seen the same w, which was summed up before the pass
            half, dual = self.weights.squared_norm() / 2, self.steps.dual_from_scratch()
            self.seen = self.exact = ObjectiveValues(half + self._losses, dual, self._violation)
        else:
            half, dual = self.steps.linear - self.steps.dual, self.steps.dual
            self.seen = ObjectiveValues(max(dual, half + self._losses), dual, self._violation)
        share = self._SHARE * (self.seen.primal - self.seen.dual) / float(self.pairs.costs.sum())
        return max(min(share, epsilon or share), self.epsilon or 0.0, _FINEST * self._largest_loss)

    def _optimize(self, epsilon: float) -> Iterator[None]:
        """Steps on the set until the gap of its problem is a share of epsilon per unit of cost; line 9.

        A look at the whole set finds the examples that violate by more than that; as long as the gap is larger, there
        are some. They take steps among themselves before the next look.
        """
        self.exact = None
        accuracy = self.accuracy = self._INNER * epsilon
        small = accuracy * float(self.pairs.costs.sum())
        if not self.steps.patterns:
            return
        look = self.steps.look()
        for _ in range(self._MOST_LOOKS):
            self.looks += 1
            moved, gap = look(accuracy)
            if not moved or gap <= small:
                return
            for _ in range(self._SWEEPS):
                moved = [pattern for pattern in moved if self.steps.optimize(pattern) > 0]
                yield

    def _from_scratch(self) -> ObjectiveValues:
        return self.steps.certificate(self.pairs)

    def support(self) -> Support:
        """The support vectors."""
        return support_of(self.steps)

    def operations(self) -> dict[str, int]:
        """How often each operation was performed."""
        return {"planes": self.joined, "looks": self.looks, "steps": self.steps.steps}


@dataclass
class Plane:
    """One output for every example, by its number in the example's list, and what they sum up to."""

    choices: NDArray[np.int32]
    loss: float  # L_a
    row: NDArray[np.float64]  # Psi_a
    idle: int = 0  # rounds without a coefficient


@dataclass
class Outputs:
    """The different outputs that arg max has found for one example; the first one is its own."""

    found: list[Any]
    numbers: dict[Hashable, int] = field(default_factory=dict)


class OneSlack(CuttingPlanes):
    """Planes of all examples at once; one is dropped when it had no coefficient for some rounds."""

    NAME = "svmstruct-1slack"
    _IDLE = 50
    _INNER = 0.05  # of the new plane's violation: how far the small problem is solved

    weights: FeatureWeights

    def __init__(self, weights: Weights, *arguments: Any) -> None:
        if not isinstance(weights, FeatureWeights):
            raise ValueError(
                "solver='svmstruct-1slack' needs a model with joint_feature: its planes are sums over all examples; "
                "with joint_kernel use 'larank' or 'svmstruct'"
            )
        super().__init__(weights, *arguments)
        self.C = float(self.pairs.costs.max())
        # The first plane has all the right outputs: it takes the part of C that the others leave.
        self.outputs: list[Outputs] = []
        self.planes = [self._empty_plane()]
        self.gram = np.zeros((1, 1))
        self.alpha = np.array([self.C])
        self.counts = {"planes": 0, "dropped": 0, "steps": 0}

    def rounds(self) -> Iterator[None]:
        """A plane, then the problem of all planes, until the newest one is violated by less than epsilon."""
        model = self.weights.model
        self.outputs = [Outputs([e.y], {model.key(e.y, e.number): 0}) for e in self.pairs]
        while True:
            plane = self._empty_plane()
            for k, example in enumerate(self.pairs):
                self._let_join(plane, k, example)
                self._visited += 1
                yield
            self.seen = self.exact = self._objectives(plane)
            excess, slack = self._excess(plane), max(map(self._excess, self.planes))
            if self.epsilon is not None and excess <= slack + self.epsilon * self.pairs.costs.sum() / self.C:
                return
            yield
            self.exact = None
            self._add(plane)
            self._solve(max(self._INNER * (excess - slack), _FINEST * plane.loss))
            self._drop_idle()

    def _empty_plane(self) -> Plane:
        return Plane(np.zeros(len(self.pairs), np.int32), 0.0, np.zeros(len(self.weights.w)))

    def _excess(self, plane: Plane) -> float:
        """L_a - <w, Psi_a>: the derivative of the dual by alpha_a, and the slack that the plane asks for."""
        return plane.loss - float(plane.row @ self.weights.w)

    def _let_join(self, plane: Plane, k: int, example: Example) -> None:
        model, outputs = self.weights.model, self.outputs[k]
        output = augmented(self.weights, example)
        key = model.key(output, example.number)
        choice = outputs.numbers.setdefault(key, len(outputs.found))
        if choice == len(outputs.found):
            outputs.found.append(own(output))
        if choice == 0:
            return
        loss = model.loss(example.y, output, example.number)
        truth = self.weights.vector(example, example.y, key, 0.0)
        v = self.weights.vector(example, output, key, loss)
        check_argmax(self.weights, truth, v, self.weights.score(truth), loss + self.weights.score(v))
        weight = example.cost / self.C
        plane.choices[k] = choice
        plane.loss += weight * loss
        truth.row.add_to(plane.row, weight)
        v.row.add_to(plane.row, -weight)

    def _add(self, plane: Plane) -> None:
        products = np.array([plane.row @ p.row for p in [*self.planes, plane]])
        self.gram = np.pad(self.gram, (0, 1))
        self.gram[-1], self.gram[:, -1] = products, products
        self.planes.append(plane)
        self.alpha = np.append(self.alpha, 0.0)
        self.counts["planes"] += 1

    def _solve(self, accuracy: float) -> None:
        losses = np.array([p.loss for p in self.planes])
        self.counts["steps"] += ascend_on_simplex(self.gram, losses, self.alpha, accuracy)
        self.weights.w[:] = self.alpha @ np.array([p.row for p in self.planes])

    def _drop_idle(self) -> None:
        for plane, alpha in zip(self.planes, self.alpha, strict=True):
            plane.idle = plane.idle + 1 if alpha == 0 else 0
        stays = [k for k, plane in enumerate(self.planes) if k == 0 or plane.idle < self._IDLE]
        self.counts["dropped"] += len(self.planes) - len(stays)
        if len(stays) < len(self.planes):
            self.planes = [self.planes[k] for k in stays]
            self.alpha, self.gram = self.alpha[stays], self.gram[np.ix_(stays, stays)]

    def _objectives(self, worst: Plane) -> ObjectiveValues:
        """The objectives and the violation, if this is the plane that w violates most."""
        half = self.weights.squared_norm() / 2
        linear = sum(alpha * plane.loss for alpha, plane in zip(self.alpha.tolist(), self.planes, strict=True))
        used = [self._excess(plane) for alpha, plane in zip(self.alpha, self.planes, strict=True) if alpha > 0]
        excess = max(0.0, self._excess(worst))
        return ObjectiveValues(half + self.C * excess, linear - half, max(0.0, excess - min(used)))

    def _from_scratch(self) -> ObjectiveValues:
        plane = self._empty_plane()
        for k, example in enumerate(self.pairs):
            self._let_join(plane, k, example)
        return self._objectives(plane)

    def support(self) -> Support:
        """The support vectors."""
        examples, starts, outputs, beta = [], [0], [], []
        for k, example in enumerate(self.pairs):
            shares = np.zeros(len(self.outputs[k].found))
            for alpha, plane in zip(self.alpha, self.planes, strict=True):
                shares[plane.choices[k]] -= alpha * example.cost / self.C
            shares[0] = 0.0
            shares[0] = -shares.sum()
            if shares[0] == 0:
                continue
            used = np.flatnonzero(shares)
            examples.append(example)
            starts.append(starts[-1] + len(used))
            outputs += [self.outputs[k].found[n] for n in used]
            beta += shares[used].tolist()
        return Support(examples, np.array(starts), outputs, np.array(beta), np.zeros(len(beta)))

    def operations(self) -> dict[str, int]:
        """How often each operation was performed."""
        return dict(self.counts)


def ascend_on_simplex(
    G: NDArray[np.float64], L: NDArray[np.float64], alpha: NDArray[np.float64], accuracy: float
) -> int:
    """Maximise L'a - 1/2 a'Ga over a >= 0 with its sum as it is, in place; the number of steps.

    A step moves two entries against each other: that with the largest gradient up, and down that which brings most. It
    ends where no two gradients of entries that can move differ by more than `accuracy`.
    """
    diagonal = np.diag(G)
    g = L - G @ alpha
    for steps in range(_MOST_STEPS):
        up = int(g.argmax())
        rise = np.where(alpha > 0, g[up] - g, 0.0)
        if rise.max() <= accuracy:
            return steps
        squared = np.maximum(diagonal[up] + diagonal - 2 * G[up], 1e-300)
        step = np.minimum(rise / squared, alpha)
        down = int((step * (rise - step * squared / 2)).argmax())
        alpha[up] += step[down]
        alpha[down] = 0.0 if step[down] == alpha[down] else alpha[down] - step[down]
        g -= step[down] * (G[up] - G[down])
    return _MOST_STEPS


_MOST_STEPS = 100_000  # of one ascent; gradients are computed anew in the next
