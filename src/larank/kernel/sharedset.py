"""The exact kernel solver where the kernel values of all examples are in memory: its rounds are in the core.

Paths of costs and searches train on one data set again and again. Its kernel values are a matrix that all trainings
read (`blocks.shared`), so nothing is fed, asked for or copied. A look at all examples is a sum of rows of the matrix,
and whoever joins, or takes up another class, has its scores from there.
"""

from __future__ import annotations

import time
from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from larank.blocks.provider import pieces
from larank.blocks.shared import SharedProvider
from larank.kernel.activeset import (
    COOLED,
    COOLING,
    SCALES,
    SHARE_OF_NEWTON,
    WEIGHT_OF_MEMBERS,
    ActiveSetTraining,
)
from larank.kernel.machine import Expansion, session_class
from larank.kernel.newton import Newton
from larank.parameters import TAU
from larank.training import ObjectiveValues

_Float = NDArray[np.float64]
_Index = NDArray[np.int64]

_EXAMPLES_AT_ONCE = 256  # of the pass
_GROWTH = 1.25  # of the examples visited, until members are optimized again
_EXAMPLES_OF_A_LOOK = 1024  # for each thread at a time


class SharedTraining(ActiveSetTraining):
    """The active set on a matrix of kernel values, as the training loop sees it; examples are numbers of its rows."""

    provider: SharedProvider

    def _open(self) -> None:
        problem, limit = self.problem, int(self.settings.memory_limit)
        values = self.provider.matrix
        self.delta = np.ascontiguousarray(problem.delta)
        self.session = session_class("SharedSet", values.dtype)(values, problem.labels, self.delta, limit)
        self.session.set_costs(problem.costs)
        self.seen = -1, -1  # steps of both kinds before the last look
        self.outside = 0.0  # the worst violation of an example that is no member
        self.seconds_of_look = 0.0

    def _counts(self) -> dict[str, int]:
        return {**super()._counts(), "moves": self.session.moves}

    def certificate_seconds(self) -> float:
        """As long as the last look took."""
        return 0.0 if self.is_certified else self.seconds_of_look

    def make_room_for_model(self) -> None:
        """There is nothing to let go: what a model has is small against the matrix."""

    # The solver.

    def _larank_pass(self) -> Generator[bool, None, None]:
        """One visit to each example; members are optimized now and then."""
        order = self.random.permutation(np.flatnonzero(self.problem.costs > 0))
        self.session.set_tau(TAU)
        optimized = 0  # examples visited when members last were
        for some in pieces(len(order), _EXAMPLES_AT_ONCE):
            self.session.process(order[some])
            self.visited += some.stop - some.start
            if some.stop >= _GROWTH * optimized:
                self.session.converge(self.session.support_patterns)
                optimized = some.stop
            yield False
        self.session.prune()

    def _move_members(self, visits: int) -> bool:
        return bool(self.session.converge(visits))

    def _newton_steps(self) -> Generator[bool, None, None]:
        """All free coefficients at once, where there is room for the linear system."""
        members = self._members()
        if 8 * (2 * self._newton_size() ** 2 + len(members.ids) ** 2) > SHARE_OF_NEWTON * self.settings.memory_limit:
            return
        kernel = self.provider.matrix[np.ix_(members.ids, members.ids)].astype(np.float64)
        newton = Newton(self._problem_of(members.ids), members.dense)
        for _ in newton.run(kernel, kernel @ newton.beta, self.tau):
            yield False
        self.newton_steps += 1
        self.session.set_coefficients(members.ids, newton.beta)

    def _look(self, *, everything: bool) -> Generator[bool, None, None]:
        """Bring the scores of all examples up to date, and the objectives."""
        began, moves = time.perf_counter(), (self.session.counters.steps, self.newton_steps)
        if moves != self.seen:
            rows_read = self.session.begin_look()
            parts = pieces(len(self.scores), _EXAMPLES_OF_A_LOOK)
            self.provider.each(lambda some: self.session.look(some.start, some.stop, self.scores), parts)
            self.seen = moves
            self.looks += 1
            self.provider.kernel_values += rows_read * len(self.scores)  # not computed
            self.visited += len(self.scores)
            self.seconds_of_look = time.perf_counter() - began
            yield False
        self._judge()
        self.is_complete, self.is_told = True, False

    def _exact_scores(self, members: Expansion, rows: _Index) -> _Float:
        return self.provider.exact_scores(rows, members.ids, members.dense)

    def _note_all(self, members: Expansion) -> None:
        self._judge()

    def _judge(self) -> None:
        """The dual objective, and the primal one at the multiple of w where it is smallest."""
        problem = self.problem
        self.session.set_formulation(problem.formulation)  # should the pass have been cut short
        low, high = (1.0, 1.0) if self.provider.indefinite else SCALES
        at = self.session.judge(self.scores, low, high, self._scale_precision())
        self.half_squared_norm, self.outside, self.scale, primal = at.half_squared_norm, at.outside, at.scale, at.primal
        dual, violation = at.linear - at.half_squared_norm, max(at.outside, at.of_members)
        self.objectives = ObjectiveValues(primal, dual, violation)

    def _worst(self) -> float:
        assert self.objectives is not None
        return max(self.outside, WEIGHT_OF_MEMBERS * self.objectives.violation)

    @staticmethod
    def _cooled(tau: float, worst: float) -> float:
        """In step with the worst violation, never fast: a look costs less than to polish what needs none."""
        return max(COOLING * tau, min(tau, COOLED * worst))

    def _extend(self, tau: float) -> Generator[bool, None, None]:
        """Let examples join, and members take up further classes."""
        self.is_complete = self.is_certified = False
        self.session.extend(self.scores)
        yield False
