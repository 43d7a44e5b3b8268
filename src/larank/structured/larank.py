"""LaRank for structured outputs [thesis] section 5.1: one pass, any number of passes, or to a duality gap.

The dual and its steps stand in steps.py. PROCESSOLD and OPTIMIZE take a random support pattern; ten OPTIMIZE count as
one operation. A schedule chooses among the three operations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from larank.data import schema
from larank.structured.pairs import Example, TrainingPairs
from larank.structured.solver import JointSupport, OnlineSolver
from larank.structured.steps import DualSteps, Pattern
from larank.structured.weights import FeatureWeights, Vector, Weights
from larank.structured.workingset import WorkingSet
from larank.training import FromScratch, ObjectiveValues

_OPERATIONS = ("process_new", "process_old", "optimize")
REPROCESS = _OPERATIONS[1:]  # what follows each new example in the fixed schedule

_TAU = 0.08  # of a loss; smaller violations are left alone in the first epoch
_OPTIMIZE_RUN = 10


# The state of a solver, as `LaRankSolver.state` returns it.
STATE = schema.record(
    dual=schema.number(),
    linear=schema.number(),
    loss=schema.number(),
    tau=schema.number(least=0),
    rates=schema.record(**dict.fromkeys(_OPERATIONS, schema.optional(schema.number(least=0)))),
    random=schema.record(
        bit_generator=schema.one_of("PCG64"),
        state=schema.record(state=schema.integer(most=2**128 - 1), inc=schema.integer(most=2**128 - 1)),
        has_uint32=schema.integer(most=1),
        uinteger=schema.integer(most=2**32 - 1),
    ),
    w=schema.nullable(schema.floats("n_joint_features")),
)


class FixedSchedule:
    """One PROCESSNEW, then `n_reprocess` times one PROCESSOLD and ten OPTIMIZE, [thesis] algorithm 21.

    `reprocess` has less where something else takes the place of OPTIMIZE.
    """

    def __init__(self, n_reprocess: int, reprocess: Sequence[str] = REPROCESS) -> None:
        self.n_reprocess, self.reprocess = n_reprocess, reprocess

    def operations(self, random: np.random.Generator) -> Iterator[str]:
        """The operations of one visit."""
        yield "process_new"
        for _ in range(self.n_reprocess):
            yield from self.reprocess

    def record(self, operation: str, increase: float, work: float) -> None:
        """Nothing is learnt of what an operation has brought and cost."""


class AdaptiveSchedule:
    """Odds in proportion to the dual increase that operations bring for their work, [thesis] algorithm 22.

    Work is counted, not timed, so that the same seed makes the same model.
    """

    _MIXING_RATE = 0.05  # line 16
    _FLOOR = 0.05  # mu, here relative to the best rate

    def __init__(self) -> None:
        self.rates = dict.fromkeys(_OPERATIONS, 1.0)

    def operations(self, random: np.random.Generator) -> Iterator[str]:
        """The operations of one visit."""
        operation = ""
        while operation != "process_new":
            operation = self._drawn(random)
            yield operation

    def _drawn(self, random: np.random.Generator) -> str:
        floor = self._FLOOR * max(self.rates.values())
        odds = [max(rate, floor) for rate in self.rates.values()]
        at = random.random() * sum(odds)
        for operation, share in zip(_OPERATIONS[1:], odds[1:], strict=True):
            if at < share:
                return operation
            at -= share
        return "process_new"

    def record(self, operation: str, increase: float, work: float) -> None:
        """Mix what an operation brought for its work into its rate."""
        rate = self.rates[operation]
        self.rates[operation] = self._MIXING_RATE * increase / work + (1 - self._MIXING_RATE) * rate


class LaRankSolver(OnlineSolver):
    """LaRank on explicit weights or on a joint kernel."""

    NAME = "larank"

    def __init__(self, weights: Weights, schedule: FixedSchedule | AdaptiveSchedule, seed: int) -> None:
        self.weights, self.schedule = weights, schedule
        self.tau = _TAU
        self.steps = DualSteps(weights, self._accepted)
        self.random = np.random.Generator(np.random.PCG64(seed))
        self.counts = dict.fromkeys(_OPERATIONS, 0)
        self.counts_of_rounds: dict[str, int] = {}  # that came after a pass, see togap.py

    def _accepted(self, up: Vector, down: Vector) -> float:
        return self.tau * max(up.loss, down.loss)  # [thesis] section 5.1.5

    def visit(self, example: Example) -> None:
        """Perform PROCESSNEW on the example, and what the schedule has beside it."""
        for operation in self.schedule.operations(self.random):
            if operation != "process_new" and not self.steps.patterns:
                continue
            dual, work = self.steps.dual, self.weights.work
            self._perform(operation, example)
            self.counts[operation] += 1
            self.schedule.record(operation, self.steps.dual - dual, 1 + self.weights.work - work)

    def _perform(self, operation: str, example: Example) -> None:
        if operation == "process_new":
            self.steps.process_new(example)
        elif operation == "process_old":
            self.steps.process_old(self._any_pattern())
        else:
            for _ in range(_OPTIMIZE_RUN):
                if self.steps.patterns:
                    self.steps.optimize(self._any_pattern())

    def _any_pattern(self) -> Pattern:
        order = self.steps.order
        return self.steps.patterns[order[int(self.random.random() * len(order))]]

    def begin_another_epoch(self) -> None:
        """From epoch to epoch smaller violations matter."""
        self.tau /= 4
        self.steps.loss = 0.0

    def loss(self) -> float:
        """Of the visits of this epoch, each at its time."""
        return self.steps.loss

    def objectives(self, loss: float) -> ObjectiveValues:
        """Where training is, if this is the loss of all examples."""
        half = self.steps.linear - self.steps.dual
        # No primal objective is below the dual, whatever was seen on the way.
        return ObjectiveValues(max(self.steps.dual, half + loss), self.steps.dual, math.nan)

    def certificate(self, pairs: TrainingPairs) -> FromScratch:
        """The objectives from scratch."""
        return self.steps.certificate(pairs)

    def operations(self) -> dict[str, int]:
        """How often each operation was performed."""
        return {**self.counts, "steps": self.steps.steps, **self.counts_of_rounds}

    def take_over(self, found: WorkingSet) -> None:
        """Make the vectors of a working set that have coefficients the support vectors."""
        found.take_in()
        for number, pattern in found.patterns.items():
            if number not in self.steps.patterns:
                self.steps.add(pattern)
            self.steps.settle(pattern)
        self.steps.linear = found.linear()
        self.steps.dual = self.steps.linear - self.weights.squared_norm() / 2
        self.steps.steps += found.steps
        self.counts_of_rounds = {"looks": found.looks}

    def support(self) -> JointSupport:
        """The support vectors."""
        return support_of(self.steps)

    def state(self) -> dict[str, Any]:
        """Numbers that `restore` needs beside the support vectors."""
        steps = self.steps
        rates = self.schedule.rates if isinstance(self.schedule, AdaptiveSchedule) else {}
        return {
            "dual": steps.dual,
            "linear": steps.linear,
            "loss": steps.loss,
            "tau": self.tau,
            "rates": dict(rates),
            "random": self.random.bit_generator.state,
            "w": self.explicit_weights(),
        }

    def restore(self, support: JointSupport, state: Mapping[str, Any]) -> None:
        """Take over what another solver of this kind had learnt."""
        steps = self.steps
        restore_patterns(steps, support)
        steps.dual, steps.linear, steps.loss = state["dual"], state["linear"], state["loss"]
        self.tau = state["tau"]
        if isinstance(self.schedule, AdaptiveSchedule):
            self.schedule.rates.update(state["rates"])
        self.random.bit_generator.state = state["random"]
        if isinstance(self.weights, FeatureWeights):
            self.weights.w = np.array(state["w"])


def support_of(steps: DualSteps) -> JointSupport:
    """The support vectors, pattern by pattern, without those that have no coefficient."""
    patterns = [steps.patterns[number] for number in steps.order if steps.patterns[number].truth.beta]
    return JointSupport.of((pattern.example, [v for v in pattern.vectors.values() if v.beta]) for pattern in patterns)


def restore_patterns(steps: DualSteps, support: JointSupport) -> None:
    """Make the support vectors those of `steps`."""
    for k, example in enumerate(support.examples):
        pattern = steps.pattern_of(example)
        steps.add(pattern)
        for n in range(support.starts[k], support.starts[k + 1]):
            output, key = support.outputs[n], steps.model.key(support.outputs[n], example.number)
            v = pattern.vectors.get(key)
            if v is None:
                loss = steps.model.loss(example.y, output, example.number)
                v = pattern.vectors[key] = steps.weights.vector(example, output, key, loss)
            steps.weights.hold(v)
            steps.weights.set_coefficient(v, float(support.beta[n]))
