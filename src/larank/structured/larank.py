"""LaRank for structured outputs [thesis] section 5.1: one pass, any number of passes, or to a duality gap.

The dual and its steps stand in steps.py. PROCESSOLD and OPTIMIZE take a random support pattern; ten OPTIMIZE count as
one operation. A schedule chooses among the three operations.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.structured.machine import Example, LinearMachine, Machine
from larank.structured.steps import Pattern, Relative, Steps
from larank.structured.stream import Examples, OnlineSolver, SupportTable
from larank.training import ObjectiveValues

__all__ = ["LaRank"]

_OPERATIONS = ("process_new", "process_old", "optimize")

_TAU = 0.08  # of a loss; smaller violations are left alone in the first epoch
_OPTIMIZE_RUN = 10


class Schedule(ABC):
    """Which operations come before, and up to, the next PROCESSNEW is done."""

    @abstractmethod
    def operations(self, random: np.random.Generator) -> Iterator[str]:
        """The operations of one visit; PROCESSNEW is among them once."""

    def record(self, operation: str, increase: float, work: float) -> None:
        """Hear what an operation has brought and cost."""


class FixedSchedule(Schedule):
    """One PROCESSNEW, then `n_reprocess` times one PROCESSOLD and ten OPTIMIZE, [thesis] algorithm 21."""

    def __init__(self, n_reprocess: int) -> None:
        self.n_reprocess = n_reprocess

    def operations(self, random: np.random.Generator) -> Iterator[str]:
        """The operations of one visit."""
        yield "process_new"
        for _ in range(self.n_reprocess):
            yield "process_old"
            yield "optimize"


class AdaptiveSchedule(Schedule):
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


class LaRank(OnlineSolver):
    """LaRank on explicit weights or on a joint kernel."""

    NAME = "larank"

    def __init__(self, machine: Machine, schedule: Schedule, seed: int) -> None:
        self.machine, self.schedule = machine, schedule
        self.tolerance = Relative(_TAU)
        self.steps = Steps(machine, self.tolerance)
        self.random = np.random.Generator(np.random.PCG64(seed))
        self.counts = dict.fromkeys(_OPERATIONS, 0)

    def visit(self, example: Example) -> None:
        """Perform PROCESSNEW on the example, and what the schedule has beside it."""
        for operation in self.schedule.operations(self.random):
            if operation != "process_new" and not self.steps.patterns:
                continue
            dual, work = self.steps.dual, self.machine.work
            self._perform(operation, example)
            self.counts[operation] += 1
            self.schedule.record(operation, self.steps.dual - dual, 1 + self.machine.work - work)

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
        self.tolerance.tau /= 4
        self.steps.loss = 0.0

    def loss(self) -> float:
        """Of the visits of this epoch, each at its time."""
        return self.steps.loss

    def objectives(self, loss: float) -> ObjectiveValues:
        """Where training is, if this is the loss of all examples."""
        half = self.steps.linear - self.steps.dual
        # No primal objective is below the dual, whatever was seen on the way.
        return ObjectiveValues(max(self.steps.dual, half + loss), self.steps.dual, math.nan)

    def certificate(self, examples: Examples) -> ObjectiveValues:
        """The objectives from scratch."""
        return self.steps.certificate(examples)

    def operations(self) -> dict[str, int]:
        """How often each operation was performed."""
        return {**self.counts, "steps": self.steps.steps}

    def table(self) -> SupportTable:
        """The support vectors."""
        return table_of(self.steps)

    def weights(self) -> NDArray[np.float64] | None:
        """w, where there are joint features."""
        return self.machine.w.copy() if isinstance(self.machine, LinearMachine) else None

    def state(self) -> dict[str, Any]:
        """Numbers that `restore` needs beside the table."""
        steps = self.steps
        rates = self.schedule.rates if isinstance(self.schedule, AdaptiveSchedule) else {}
        return {
            "dual": steps.dual,
            "linear": steps.linear,
            "loss": steps.loss,
            "tau": self.tolerance.tau,
            "rates": dict(rates),
            "random": self.random.bit_generator.state,
            "w": self.weights(),
        }

    def restore(self, table: SupportTable, state: Mapping[str, Any]) -> None:
        """Take over what another solver of this kind had learnt."""
        steps = self.steps
        restore_patterns(steps, table)
        steps.dual, steps.linear, steps.loss = state["dual"], state["linear"], state["loss"]
        self.tolerance.tau = state["tau"]
        if isinstance(self.schedule, AdaptiveSchedule):
            self.schedule.rates.update(state["rates"])
        self.random.bit_generator.state = state["random"]
        if isinstance(self.machine, LinearMachine):
            self.machine.w = np.array(state["w"])


def table_of(steps: Steps) -> SupportTable:
    """The support vectors, pattern by pattern, without those that have no coefficient."""
    patterns = [steps.patterns[number] for number in steps.order if steps.patterns[number].truth.beta]
    vectors = [[v for v in pattern.vectors.values() if v.beta] for pattern in patterns]
    everything = [v for some in vectors for v in some]
    return SupportTable(
        [pattern.example for pattern in patterns],
        np.cumsum([0, *map(len, vectors)]),
        [v.output for v in everything],
        np.array([v.beta for v in everything]),
        np.array([v.early for v in everything]),
    )


def restore_patterns(steps: Steps, table: SupportTable) -> None:
    """Make the support vectors of a table those of `steps`."""
    for k, example in enumerate(table.examples):
        pattern = steps.pattern_of(example)
        steps.add(pattern)
        for n in range(table.starts[k], table.starts[k + 1]):
            output, key = table.outputs[n], steps.model.key(table.outputs[n], example.number)
            v = pattern.vectors.get(key)
            if v is None:
                loss = steps.model.loss(example.y, output, example.number)
                v = pattern.vectors[key] = steps.machine.vector(example, output, key, loss)
            steps.machine.hold(v)
            steps.machine.set_coefficient(v, float(table.beta[n]))
