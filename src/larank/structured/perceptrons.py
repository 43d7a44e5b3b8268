"""The structured perceptron and passive-aggressive steps: an example changes its own coefficients and no others.

    perceptron           c = argmax S(p_t, c);  if c != c_t:  w += Phi(p_t, c_t) - Phi(p_t, c)        [thesis] alg. 6
    passive-aggressive   c = argmax Delta(c_t, c) + S(p_t, c);  l = Delta(c_t, c) + S(p_t, c) - S(p_t, c_t)
                         w += min(C_t, l / |Phi(p_t, c_t) - Phi(p_t, c)|^2) (Phi(p_t, c_t) - Phi(p_t, c))

The average of all weights, one after each example, costs next to nothing on the way: what example t = 1, 2, ... adds is
in T - t + 1 of T weights, so the average is w - early / T, where `early` sums up (t - 1) times what was added.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.structured.checked import CheckedModel, own
from larank.structured.machine import Example, LinearMachine, Machine, Vector
from larank.structured.steps import Pattern
from larank.structured.stream import Examples, OnlineSolver, SupportTable
from larank.training import ObjectiveValues

__all__ = ["PassiveAggressive", "Perceptron"]


class _StepPerExample(OnlineSolver):
    """What both share: steps, the average, and the table of what was added."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.patterns: dict[int, Pattern] = {}
        self.early = np.zeros(len(machine.w)) if isinstance(machine, LinearMachine) else None
        self.visits = self.updates = self.mistakes = 0

    @property
    def model(self) -> CheckedModel:
        """The model that is asked."""
        return self.machine.model

    def visit(self, example: Example) -> None:
        """Learn from the next example."""
        self._learn(example)
        self.visits += 1

    @abstractmethod
    def _learn(self, example: Example) -> None:
        """Make the step of this example."""

    def _pair(self, example: Example, output: Any) -> tuple[Vector, Vector]:
        """The vectors of the right output and of another one."""
        key = self.model.key(example.y, example.number)
        wrong = self.model.key(output, example.number)
        truth = self.machine.vector(example, example.y, key, 0.0)
        loss = self.model.loss(example.y, output, example.number)
        return truth, self.machine.vector(example, own(output), wrong, loss)

    def _step(self, example: Example, truth: Vector, wrong: Vector, size: float) -> None:
        pattern = self.patterns.setdefault(example.number, Pattern(example, truth, {}))
        for v, change in ((truth, size), (wrong, -size)):
            self._add(pattern.vectors.setdefault(v.key, v), v, change)
        self.updates += 1

    def _add(self, known: Vector, v: Vector, change: float) -> None:
        """Change the coefficient of a vector that may be known from an earlier visit, and sum up for the average."""
        self.machine.hold(known)
        known.row = v.row  # rows are not kept between visits
        self.machine.set_coefficient(known, known.beta + change)
        known.early += self.visits * change
        if self.early is not None and known.row is not None:
            known.row.add_to(self.early, self.visits * change)
        known.row = None

    def loss(self) -> float:
        """There is none."""
        return math.nan

    def objectives(self, loss: float) -> ObjectiveValues:
        """There are none."""
        return ObjectiveValues(math.nan, math.nan, math.nan)

    def certificate(self, examples: Examples) -> ObjectiveValues:
        """There are none."""
        return self.objectives(math.nan)

    def averaged(self) -> NDArray[np.float64] | None:
        """The average of all weights, where there are joint features."""
        if self.early is None or not isinstance(self.machine, LinearMachine):
            return None
        return self.machine.w - self.early / max(1, self.visits)

    def weights(self) -> NDArray[np.float64] | None:
        """The last weights, where there are joint features."""
        return self.machine.w.copy() if isinstance(self.machine, LinearMachine) else None

    def operations(self) -> dict[str, int]:
        """How often each operation was performed."""
        return {"updates": self.updates}

    def table(self) -> SupportTable:
        """What was added, example by example."""
        patterns = list(self.patterns.values())
        vectors = [v for pattern in patterns for v in pattern.vectors.values()]
        return SupportTable(
            [pattern.example for pattern in patterns],
            np.cumsum([0, *(len(pattern.vectors) for pattern in patterns)]),
            [v.output for v in vectors],
            np.array([v.beta for v in vectors]),
            np.array([v.early for v in vectors]),
        )

    def state(self) -> dict[str, Any]:
        """Numbers that `restore` needs beside the table."""
        counts = {"visits": self.visits, "updates": self.updates, "mistakes": self.mistakes}
        return {**counts, "w": self.weights(), "early": self.early}

    def restore(self, table: SupportTable, state: Mapping[str, Any]) -> None:
        """Take over what another solver of this kind had learnt."""
        self.visits, self.updates, self.mistakes = state["visits"], state["updates"], state["mistakes"]
        for k, example in enumerate(table.examples):
            for n in range(table.starts[k], table.starts[k + 1]):
                key = self.model.key(table.outputs[n], example.number)
                v = Vector(example.number, example.x, table.outputs[n], key, 0.0, float(table.beta[n]))
                v.early = float(table.early[n])
                self.patterns.setdefault(example.number, Pattern(example, v, {})).vectors[key] = v
                self.machine.hold(v)
        if isinstance(self.machine, LinearMachine):
            self.machine.w, self.early = np.array(state["w"]), np.array(state["early"])


class Perceptron(_StepPerExample):
    """Steps on examples whose prediction is wrong."""

    NAME = "perceptron"

    def _learn(self, example: Example) -> None:
        output = self.model.argmax(example.x, self.machine.scorer(example.x, example.number), example.number)
        if self.model.key(output, example.number) == self.model.key(example.y, example.number):
            return
        truth, wrong = self._pair(example, output)
        better, worse = self.machine.score(truth), self.machine.score(wrong)
        if better > worse and better > worse + self.machine.rounding(truth, wrong):
            raise self.model.missed(example.y, output, better, worse, example.number, "score")
        self.mistakes += 1
        self._step(example, truth, wrong, example.cost)

    def online_error(self) -> float:
        """Share of the visits with a wrong prediction."""
        return self.mistakes / max(1, self.visits)


class PassiveAggressive(_StepPerExample):
    """Steps that would free examples of their loss, of at most the cost of the example."""

    NAME = "passive-aggressive"

    def _learn(self, example: Example) -> None:
        output = self.machine.augmented(example)
        if self.model.key(output, example.number) == self.model.key(example.y, example.number):
            return
        truth, wrong = self._pair(example, output)
        better, worse = self.machine.score(truth), wrong.loss + self.machine.score(wrong)
        if better > worse and better > worse + self.machine.rounding(truth, wrong):
            raise self.model.missed(example.y, output, better, worse, example.number, "loss + score")
        squared = self.machine.squared_distance(truth, wrong)
        if worse > better and squared > 0:  # features that do not differ cannot free it
            self._step(example, truth, wrong, min(example.cost, (worse - better) / squared))
