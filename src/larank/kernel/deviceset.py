"""The exact kernel solver on a device: the rounds of the active set, with block steps and scores computed there."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.blocks.device import DeviceKernel, check_is_dense, device_for
from larank.blocks.provider import rows_of
from larank.kernel.activeset import SHARE_OF_NEWTON, ActiveSetTraining
from larank.kernel.blockwise import Blockwise
from larank.kernel.devicemachine import DeviceFeed
from larank.kernel.machine import Expansion
from larank.kernel.newton import Newton
from larank.kernel.stream import Examples, Stream
from larank.parameters import TAU

_Float = NDArray[np.float64]
_Index = NDArray[np.int64]

_GRADIENTS = 400  # of a block step
_MOST_FREE = 5000  # coefficients of a linear system
_LITTLE_GAIN = 1e-8  # of the dual objective, by a sweep over half of the members
_IDLE_SWEEPS = 20  # sweeps without a new maximum of the dual objective, after which rounding hides what they gain


class DeviceTraining(ActiveSetTraining):
    """The active set by block steps, as the training loop sees it."""

    session: Blockwise

    def __init__(self, device: Any, *arguments: Any) -> None:
        self._device = device
        super().__init__(*arguments)

    def _open(self) -> None:
        problem = self.problem
        check_is_dense(self._device, problem.X)
        values = DeviceKernel(device_for(self._device), self.provider.kernel, self.provider.dtype, problem.X)
        seed = int(self.random.randint(2**31 - 1))
        self.session = Blockwise(values, self.settings.memory_limit, TAU, seed, keeps_originals=False)
        self.session.set_margins(1 - problem.delta)

    @property
    def kernel_values(self) -> int:
        """Computed since the costs were last raised."""
        return self.session.kernel_values - self._before["kernel_values"]

    def _counts(self) -> dict[str, int]:
        return {**super()._counts(), "kernel_values": self.session.kernel_values}

    def snapshot(self) -> None:
        """There is none of a device."""

    def make_room_for_model(self) -> None:
        """The model is on the host."""

    def _score_some(self) -> int:
        rows = np.arange(min(self.session.device.examples_at_once, len(self.problem.labels)))
        self._precise_scores(rows, self._members())
        return len(rows)

    # The solver.

    def _larank_pass(self) -> Generator[bool, None, None]:
        problem = self.problem
        order = self.random.permutation(np.flatnonzero(problem.costs > 0))
        examples = Examples(problem.X, np.arange(len(problem.labels)), problem.labels, problem.costs)
        feed = DeviceFeed(self.session, Stream(examples, order).blocks(order, self.session.chunk_size))
        while self.visited < len(order):
            self.visited += feed.advance(1)
            yield False

    def _converge(self) -> Generator[bool, None, None]:
        """Block steps on those who violate optimality most, until none does by more than tau, or all are of no use."""
        session = self.session
        session.refresh()
        self.has_rested = not session.slots
        highest, idle = session.dual, 0
        while session.slots and idle < _IDLE_SWEEPS:
            blocks = -(-session.slots // session.device.patterns_at_once)
            gained = 0.0
            for _ in range(2 * blocks):
                block, worst = session.worst_block()
                self.has_rested = worst <= self.tau
                if self.has_rested:
                    break
                gained += session.step(block, _GRADIENTS, self.tau)
                yield False
            if self.has_rested:
                break
            before = session.dual
            yield from self._newton_steps()
            dual = session.dual
            if gained + dual - before <= _LITTLE_GAIN * abs(dual):
                break
            highest, idle = (dual, 0) if dual > highest + _LITTLE_GAIN * abs(highest) else (highest, idle + 1)
        session.prune()

    def _newton_steps(self) -> Generator[bool, None, None]:
        """All free coefficients at once, on the host, where there is room for the linear system."""
        session = self.session
        newton = Newton(self._problem_of(session.ids), session.exact_coefficients())
        size, slots = int(newton.free().sum()), session.slots
        if 8 * (2 * size**2 + slots**2) > SHARE_OF_NEWTON * self.settings.memory_limit or size > _MOST_FREE:
            return
        kernel = session.kernel_matrix()
        for _ in newton.run(kernel, kernel @ newton.beta, self.tau):
            yield False
        self.newton_steps += 1
        before, kept = session.dual, session.exact_coefficients()
        session.set_coefficients(newton.beta)
        if not session.dual >= before:
            session.set_coefficients(kept)

    def _look(self, *, everything: bool) -> Generator[bool, None, None]:
        """Scores of examples, in the precision of training on the way and in double precision for the certificate."""
        members = self._members()
        is_candidate = self._is_candidate(everything)
        is_candidate[members.ids] = everything
        rows = np.flatnonzero(is_candidate)
        at_once = self.session.device.examples_at_once
        for first in range(0, len(rows), at_once):
            some = rows[first : first + at_once]
            quick = self.session.quick_scores
            self.scores[some] = (
                self._precise_scores(some, members) if everything else quick(rows_of(self.problem.X, some))
            )
            yield False
        if not everything:
            self.scores[self.session.ids] = self.session.member_scores()
            rows = np.union1d(rows, members.ids)
        self.looks += 1
        self.visited += len(rows)
        self._note_excess(rows)
        self._note_objectives(members)
        self.is_complete, self.is_told = everything, False

    def _certify(self, members: Expansion) -> Generator[bool, None, None]:
        yield from ()  # looks at everything are in double precision

    def _precise_scores(self, rows: _Index, members: Expansion) -> _Float:
        return self.session.scores(rows_of(self.problem.X, rows), members.slots, members.dense)

    def _extend(self, tau: float) -> Generator[bool, None, None]:
        """Let examples join, the worst first: as many as there are members, or a block."""
        self.is_complete = self.is_certified = False
        is_free = self.problem.costs > 0
        is_free[self.session.ids] = False
        joining = self.random.permutation(np.flatnonzero(is_free & (self.excess > tau)))
        joining = joining[np.argsort(-self.excess[joining], kind="stable")]
        at_once = self.session.device.patterns_at_once
        joining = joining[: max(at_once, self.session.slots)]
        problem = self.problem
        for first in range(0, len(joining), at_once):
            rows = joining[first : first + at_once]
            self.session.join(Examples(rows_of(problem.X, rows), rows, problem.labels[rows], problem.costs[rows]))
            self.session.step(np.arange(self.session.slots - len(rows), self.session.slots))
            yield False

    def _share_memory(self) -> None:
        """The session plans its memory by itself."""
