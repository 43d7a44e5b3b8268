"""The structured perceptron and passive-aggressive steps: an example changes its own coefficients and no others.

    perceptron           c = argmax S(p_t, c);  if c != c_t:  w += Phi(p_t, c_t) - Phi(p_t, c)        [thesis] alg. 6
    passive-aggressive   c = argmax Delta(c_t, c) + S(p_t, c);  l = Delta(c_t, c) + S(p_t, c) - S(p_t, c_t)
                         w += min(C_t, l / |Phi(p_t, c_t) - Phi(p_t, c)|^2) (Phi(p_t, c_t) - Phi(p_t, c))

The average of all weights, one after each example, costs next to nothing on the way: what example t = 1, 2, ... adds is
in T - t + 1 of T weights, so the average is w - early / T, where `early` sums up (t - 1) times what was added.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.data.schema import floats, integer, nullable, record
from larank.structured.pairs import Example, own
from larank.structured.rows import NO_ROW, Row
from larank.structured.solver import JointSupport, OnlineSolver
from larank.structured.steps import Pattern
from larank.structured.weights import FeatureWeights, Vector, Weights, augmented, check_argmax

# Of a solver, as `StepPerExample.state` has it.
STATE = record(
    visits=integer(),
    updates=integer(),
    mistakes=integer(),
    w=nullable(floats("n_joint_features")),
    early=nullable(floats("n_joint_features")),
)


class StepPerExample(OnlineSolver):
    """What both share: visits, the average, and the support vectors that steps have left."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.model = weights.model
        self.patterns: dict[int, Pattern] = {}
        self.early = np.zeros(len(weights.w)) if isinstance(weights, FeatureWeights) else None
        self.visits = self.updates = self.mistakes = 0

    def visit(self, example: Example) -> None:
        """Learn from the next example."""
        output = self._found(example)
        wrong, right = (self.model.key(y, example.number) for y in (output, example.y))
        if wrong != right:
            truth = self.weights.vector(example, example.y, right, 0.0)
            loss = self.model.loss(example.y, output, example.number)
            self._learn(example, truth, self.weights.vector(example, own(output), wrong, loss))
        self.visits += 1

    @abstractmethod
    def _found(self, example: Example) -> Any:
        """The output that the example is compared with."""

    @abstractmethod
    def _learn(self, example: Example, truth: Vector, wrong: Vector) -> None:
        """Make the step of an example and an output that is not its own."""

    def _step(self, example: Example, truth: Vector, wrong: Vector, size: float) -> None:
        pattern = self.patterns.setdefault(example.number, Pattern(example, truth, {}))
        for v, change in ((truth, size), (wrong, -size)):
            self._add(pattern.vectors.setdefault(v.key, v), v.row, change)
        self.updates += 1

    def _add(self, known: Vector, row: Row, change: float) -> None:
        """Change the coefficient of a vector that may be known from an earlier visit, and sum up for the average."""
        self.weights.hold(known)
        known.row = row
        self.weights.set_coefficient(known, known.beta + change)
        known.early += self.visits * change
        if self.early is not None:
            row.add_to(self.early, self.visits * change)
        known.row = NO_ROW  # rows are not kept between visits

    def averaged(self) -> NDArray[np.float64] | None:
        """The average of all weights, where there are joint features."""
        w = self.explicit_weights()
        return None if w is None or self.early is None else w - self.early / max(1, self.visits)

    def operations(self) -> dict[str, int]:
        """How often each operation was performed."""
        return {"updates": self.updates}

    def support(self) -> JointSupport:
        """What was added, example by example."""
        return JointSupport.of((pattern.example, list(pattern.vectors.values())) for pattern in self.patterns.values())

    def state(self) -> dict[str, Any]:
        """Numbers that `restore` needs beside the support vectors."""
        counts = {"visits": self.visits, "updates": self.updates, "mistakes": self.mistakes}
        return {**counts, "w": self.explicit_weights(), "early": self.early}

    def restore(self, support: JointSupport, state: Mapping[str, Any]) -> None:
        """Take over what another solver of this kind had learnt."""
        self.visits, self.updates, self.mistakes = state["visits"], state["updates"], state["mistakes"]
        for k, example in enumerate(support.examples):
            for n in range(support.starts[k], support.starts[k + 1]):
                key = self.model.key(support.outputs[n], example.number)
                v = Vector(example.number, example.x, support.outputs[n], key, 0.0, float(support.beta[n]))
                v.early = float(support.early[n])
                self.patterns.setdefault(example.number, Pattern(example, v, {})).vectors[key] = v
                self.weights.hold(v)
        if isinstance(self.weights, FeatureWeights):
            self.weights.w, self.early = np.array(state["w"]), np.array(state["early"])


class PerceptronSolver(StepPerExample):
    """Steps on examples whose prediction is wrong."""

    NAME = "perceptron"

    def _found(self, example: Example) -> Any:
        return self.model.argmax(example.x, self.weights.scorer(example.x, example.number), example.number)

    def _learn(self, example: Example, truth: Vector, wrong: Vector) -> None:
        check_argmax(self.weights, truth, wrong, self.weights.score(truth), self.weights.score(wrong), "score")
        self.mistakes += 1
        self._step(example, truth, wrong, example.cost)

    def online_error(self) -> float:
        """Share of the visits with a wrong prediction."""
        return self.mistakes / max(1, self.visits)


class PassiveAggressiveSolver(StepPerExample):
    """Steps that would free examples of their loss, of at most the cost of the example."""

    NAME = "passive-aggressive"

    def _found(self, example: Example) -> Any:
        return augmented(self.weights, example)

    def _learn(self, example: Example, truth: Vector, wrong: Vector) -> None:
        better, worse = self.weights.score(truth), wrong.loss + self.weights.score(wrong)
        check_argmax(self.weights, truth, wrong, better, worse)
        squared = self.weights.squared_distance(truth, wrong)
        if worse > better and squared > 0:  # features that do not differ cannot free it
            self._step(example, truth, wrong, min(example.cost, (worse - better) / squared))
