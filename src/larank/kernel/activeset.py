"""The exact kernel solver: MCSVM's active set, on matrix products.

The active set of Crammer and Singer (JMLR 2001, section 7) holds the examples with coefficients. One round

1. optimizes its members against each other in the compiled core until none violates optimality by more than `tau`,
2. looks at the examples: their scores, by one product of all kernel values with all coefficients,
3. lets those join that violate optimality by more than `tau`, the worst first, and members take up further classes.

`tau` falls with the worst violation ("cooling"). A look also gives the primal objective. Examples far beyond their
margin are left out of looks (shrinking) until the gap seems closed; the last look is at all of them and is the
certificate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank import _core
from larank.blocks import Provider
from larank.blocks.provider import pieces, row_nbytes, rows_of
from larank.costs import hard_objective, smallest_margin
from larank.kernel import rounding
from larank.kernel.machine import ROWS_AT_ONCE, CertificateTrial, Expansion, Machine, session_class
from larank.kernel.newton import Newton
from larank.kernel.problem import Problem
from larank.kernel.stream import Examples, KernelFeed, KernelSource, Stream
from larank.parameters import OPERATIONS, TAU
from larank.training import FromScratch, ObjectiveValues, State, random_state_of, set_random_state

_Float = NDArray[np.float64]
_Index = NDArray[np.int64]

_FIRST_TAU = 0.02
COOLING = 1 / 4
_NEAR = 0.2  # beyond the margin; such examples are looked at in every round
_NEAR_WITHOUT_TABLE = 0.02  # where their kernel values cannot be kept
_SHARE_WITHIN_DRIFT = 0.95  # of the examples looked at changed by less than what is taken for all
WEIGHT_OF_MEMBERS = 0.1  # in the worst violation
COOLED = 0.3  # tau over the worst violation seen
_PROGRESS = 0.9  # the gap of a round over the best before, if it is to count as progress
_PROGRESS_OF_DUAL = 1.01  # the same for the dual objective
_PATIENCE = 10  # rounds without any, at the finest tau
_PATIENCE_WITHOUT_REST = 50  # and where members do not come to rest
_VISITS_AT_ONCE = 200_000
_SWEEPS_AT_ONCE = 20
_MOST_SWEEPS = 3000  # of converging before the next look
_FACES = 20  # that Newton's steps go through
_VISITS_OF_FACES = 20_000  # in the time that all of these take for nothing
_OPERATIONS_OF_A_VISIT = 5000  # of a matrix product, in the time of a visit
SHARE_OF_NEWTON = 0.1  # of the memory limit
_EXAMPLES_IN_DOUBLE = 512
_EXAMPLES_AT_ONCE = 2048  # at most,
_LEAST_EXAMPLES = 256  # and where memory is short
_SHARE_OF_COPIES = 1 / 32  # of the memory limit, for examples that are copied
_REACH = 0.5  # of the worst violation: examples as far beyond their margin join too
_MOST_REACH = 0.1
_WATCHED = 0.08  # of the members, at most
_FIRST_TO_JOIN = 512  # or as many as there are members
_SHARE_OF_BLOCKS = 0.1  # of the memory limit
_SHARE_OF_OTHERS = 0.2  # of it: blocks, what threads work in, and what the heap keeps
_MOST_OF_OTHERS = 2.5e8
_TURNS_BETWEEN_TRIMS = 4  # of the heap, where memory is short
_ROOM_TO_GROW = 1.3  # of what the core takes; the rest may go to the table of kernel values
SCALES = (0.9, 1.1)  # of w, for the primal objective
_FINEST_SCALE = 1e-14  # numbers near 1 are not told apart much closer


@dataclass(frozen=True)
class ActiveSetSettings:
    """What may be chosen; `MulticlassSVC` says what each is."""

    tol: float
    init: str
    shrinking: bool
    memory_limit: float


class ActiveSetTraining:
    """The active set as the training loop sees it."""

    def __init__(
        self, settings: ActiveSetSettings, problem: Problem, provider: Provider, random: np.random.RandomState
    ) -> None:
        self.settings, self.problem, self.provider, self.random = settings, problem, provider, random
        self._open()
        size = len(problem.labels)
        self.scores = np.zeros((size, problem.n_classes))  # as of the last look at each example
        self.excess = np.zeros(size)  # the largest of Delta(y_i, y) + S(x_i, y) - S(x_i, y_i), as of the last look
        self.tau = np.inf  # of the last round
        self.drift = np.zeros(size)  # what it is expected to have changed by since then, at most
        self.looks = 0
        self.visited = 0.0
        self.scale = 1.0
        self.half_squared_norm = 0.0
        self.turns_until_trim = 0
        self.objectives: ObjectiveValues | None = None
        self.is_complete = False  # whether the objectives are those of all examples and the present coefficients
        self.is_certified = False  # and right in double precision
        self.is_told = True
        self.has_stalled = False
        self.is_in_double = False  # whether the scores are those in double precision
        self.gap_in_single = self.gap_in_double = np.inf  # the last that was certified, and where it was too large
        self.has_rested = False  # whether the members did, when they were last optimized
        self.newton_steps, self.visits_at_newton = 0, 0
        self.next_round: tuple[float, float, float, int] | None = None  # where one may begin: tau, and progress so far
        self.resumed_round: tuple[float, float, float, int] | None = None
        self.before_pass: list[Any] | None = None  # where `random` stood before the pass of LaRank that is at work
        self.seconds = {"larank pass": 0.0, "converge": 0.0, "look": 0.0, "extend": 0.0}
        self._before = self._counts()
        self.trial = CertificateTrial()
        self._work = self._rounds(from_scratch=True)

    def _open(self) -> None:
        """Begin without members."""
        options = self._options(seed=int(self.random.randint(2**31 - 1)))
        self.session = session_class("KernelLaRank", self.provider.dtype)(**options)
        self.source = KernelSource(self.session, self.provider)
        for _ in range(self.problem.n_classes):
            self.session.add_class()
        self.session.set_margins(np.ascontiguousarray(1 - self.problem.delta))
        self.provider.keep_values(len(self.problem.labels))

    def _options(self, seed: int) -> dict[str, Any]:
        """Of a session."""
        limit = int(self.settings.memory_limit)
        names = list(OPERATIONS)
        return {
            **{"schedule": "adaptive", "n_reprocess": 1, "operations": names, "tau": TAU},
            **{"seed": seed, "memory_limit": limit},
        }

    def raise_costs(self, costs: _Float) -> None:
        """Go on with higher costs: what was feasible still is."""
        self.problem = replace(self.problem, costs=costs)
        self.session.set_costs(costs)
        self.is_complete = self.is_certified = self.has_stalled = False
        self.gap_in_double = np.inf
        self.visited = 0.0
        self._before = self._counts()
        self.seconds = dict.fromkeys(self.seconds, 0.0)
        self._work = self._rounds(from_scratch=False)

    # What the training loop asks.

    def advance(self) -> bool:
        """Do a little of the round at hand; True once the gap is closed, or cannot be."""
        return next(self._work, True)

    def estimate(self) -> ObjectiveValues | None:
        """What the last look saw, once."""
        if self.is_told:
            return None
        self.is_told = True
        return self.objectives

    def evaluate(self) -> FromScratch:
        """The objectives of all examples at the present coefficients."""
        if not self.is_certified:
            self._work.close()  # wherever it was
            for _ in self._certificate():
                yield
        assert self.objectives is not None
        return self.objectives

    def certificate_seconds(self) -> float:
        """By a trial on some examples."""
        patterns = 0 if self.is_certified else self.session.support_patterns
        return self.trial.seconds(self._score_some, patterns, len(self.problem.labels))

    def _score_some(self) -> int:
        rows, members = np.arange(min(ROWS_AT_ONCE, len(self.problem.labels))), self._members()
        known = np.isin(members.slots, np.arange(self.provider.size))  # those born in this block are not, as yet
        self.provider.scores(rows_of(self.problem.X, rows), members.slots[known], members.dense[known])
        return len(rows)

    def iterations(self) -> float:
        """Examples visited or looked at, over their number."""
        return self.visited / len(self.problem.labels)

    def details(self) -> Mapping[str, Any]:
        """What the history records besides the objectives."""
        return {"kernel_values": self.kernel_values, "support_patterns": self.session.support_patterns}

    # From one process to another: in the pass of LaRank, and between two rounds.

    _KEPT = (
        *("tau", "looks", "visited", "scale", "half_squared_norm", "is_complete", "is_certified"),
        *("is_told", "has_stalled"),
        *("has_rested", "newton_steps", "visits_at_newton"),
    )
    _ARRAYS = ("scores", "excess", "drift")

    def snapshot(self) -> State | None:
        """All but kernel values; nothing within a round."""
        if self.next_round is None and self.before_pass is None:
            return None
        at = self.objectives
        return {
            **{name: getattr(self, name) for name in (*self._KEPT, *self._ARRAYS)},
            "next_round": self.next_round,
            "objectives": None if at is None else [at.primal, at.dual, at.violation],
            "random": self.before_pass or random_state_of(self.random),
            "seconds": self.seconds,
            "kernel_values": self.provider.kernel_values,
            "session": self.session.snapshot(),
        }

    def resume(self, state: State) -> None:
        """Go on with that pass or round."""
        for name in self._KEPT:
            setattr(self, name, type(getattr(self, name))(state[name]))
        for name in self._ARRAYS:
            array = np.array(state[name], np.float64)
            if array.shape != getattr(self, name).shape or not np.isfinite(array).all():
                raise ValueError(f"{name} are not those of the examples")
            setattr(self, name, array)
        self.objectives = None if state["objectives"] is None else ObjectiveValues(*map(float, state["objectives"]))
        set_random_state(self.random, state["random"])
        self.seconds = {name: float(state["seconds"][name]) for name in self.seconds}
        is_in_pass = state["next_round"] is None
        if is_in_pass and not 0 <= self.visited <= len(self.problem.labels):
            raise ValueError("it is no place in the pass of LaRank")
        if not is_in_pass:
            tau, best_gap, best_dual, rounds_since = state["next_round"]
            self.resumed_round = self.next_round = (float(tau), float(best_gap), float(best_dual), int(rounds_since))
        machine = Machine(session_class("KernelLaRank", self.provider.dtype)(**self._options(seed=0)), self.provider)
        self.session, self.source = machine.session, KernelSource(machine.session, self.provider)
        machine.resume(state["session"], self._patterns)
        self.session.set_margins(np.ascontiguousarray(1 - self.problem.delta))
        machine.count(int(state["kernel_values"]))
        self._work = self._rounds(from_scratch=is_in_pass)

    def _patterns(self, ids: _Index) -> list[tuple[NDArray[np.bool_], Any]]:
        """The examples of these ids."""
        if len(ids) and ids.max() >= len(self.problem.labels):
            raise ValueError(f"there is no example {ids.max()}")
        return [(np.ones(len(ids), bool), rows_of(self.problem.X, ids))]

    # What is left of it.

    def support(self) -> tuple[_Index, _Float]:
        """The examples with coefficients in increasing order, and their coefficients."""
        members = self._members()
        order = np.argsort(members.ids)
        return members.ids[order], members.dense[order]

    @property
    def operations(self) -> Mapping[str, int]:
        """How often what was done, since the costs were last raised."""
        counts = self._counts()
        return {name: counts[name] - self._before[name] for name in counts if name != "kernel_values"}

    @property
    def kernel_values(self) -> int:
        """Computed since the costs were last raised."""
        return self.provider.kernel_values - self._before["kernel_values"]

    def _counts(self) -> dict[str, int]:
        new, old, optimize = self.session.counters.operations
        return {
            "looks": self.looks,
            "process_new": new,
            "process_old": old,
            "optimize": optimize,
            "steps": self.session.counters.steps,
            "newton": self.newton_steps,
            "kernel_values": self.provider.kernel_values,
        }

    @property
    def breakdown(self) -> Mapping[str, float]:
        """Seconds of each kind of work; those of products and maps are added up over threads."""
        return {**self.provider.seconds, **self.seconds}

    # The solver.

    def _rounds(self, *, from_scratch: bool) -> Generator[bool, None, None]:
        if from_scratch and self.settings.init == "larank":
            yield from self._timed("larank pass", self._larank_pass())
        if self.problem.formulation == "weston-watkins":
            self.session.set_formulation("weston-watkins")
        tol = self.settings.tol
        tau, best_gap, best_dual, rounds_since = self.resumed_round or (_FIRST_TAU, np.inf, 0.0, 0)
        while True:
            self.next_round = (tau, best_gap, best_dual, rounds_since)
            yield False
            self.next_round = None
            self.tau = tau
            self.session.set_tau(tau)
            yield from self._timed("converge", self._converge())
            yield from self._timed("look", self._look(everything=False))
            if self._gap() <= tol and not self.is_certified:
                yield from self._timed("look", self._certificate())
                if self.is_in_double and self.gap_in_single <= tol < self._gap():
                    # Either rounding hides a gap that is too large, or a smaller one may be reached.
                    is_hidden = self._gap() > tol + self.gap_in_single
                    if is_hidden or self._gap() > _PROGRESS * self.gap_in_double:
                        self.has_stalled = True
                        return
                    self.gap_in_double = self._gap()
            if self._gap() <= tol:
                self.next_round = (tau, best_gap, best_dual, rounds_since)
                return
            assert self.objectives is not None
            gap, dual = self._gap(), self.objectives.dual
            rounds_since += 1
            if gap < _PROGRESS * best_gap or dual > _PROGRESS_OF_DUAL * best_dual:
                best_gap, best_dual, rounds_since = min(gap, best_gap), max(dual, best_dual), 0
            finest = 16 * float(np.finfo(self.provider.dtype).eps) * max(1.0, float(np.abs(self.scores).max()))
            is_finest, is_restless = tau <= finest, not self.has_rested
            if (is_finest and rounds_since > _PATIENCE) or (is_restless and rounds_since > _PATIENCE_WITHOUT_REST):
                if not self.is_certified:
                    yield from self._timed("look", self._certificate())
                of_all = self.gap_in_single if self.is_in_double else self._gap()
                if of_all * _PROGRESS <= gap:  # otherwise those that were left out have something to gain
                    self.has_stalled = True
                    return
                rounds_since = 0
            yield from self._timed("extend", self._extend(tau))
            if self.has_rested:
                tau = max(finest, self._cooled(tau, self._worst() if rounds_since == 0 else 0.0))

    def _worst(self) -> float:
        """The worst violation; those of members, which need no kernel values to be mended, count less."""
        assert self.objectives is not None
        outside = float(self.excess[self._is_free(self._members())].max(initial=0.0))
        return max(outside, WEIGHT_OF_MEMBERS * self.objectives.violation)

    @staticmethod
    def _cooled(tau: float, worst: float) -> float:
        """In step with the worst violation; where that is above tau, not too fast."""
        return min(tau, COOLED * worst) if 0 < worst < tau else min(tau, max(COOLING * tau, COOLED * worst))

    def _timed(self, name: str, work: Generator[bool, None, None]) -> Generator[bool, None, None]:
        began = time.perf_counter()
        with closing(work):
            for done in work:
                self.seconds[name] += time.perf_counter() - began
                yield done
                began = time.perf_counter()
        self.seconds[name] += time.perf_counter() - began

    def _larank_pass(self) -> Generator[bool, None, None]:
        """From the first example that was not visited yet."""
        problem, before = self.problem, random_state_of(self.random)
        order = self.random.permutation(np.flatnonzero(problem.costs > 0))[int(self.visited) :]
        examples = Examples(problem.X, np.arange(len(problem.labels)), problem.labels, problem.costs)
        feed = KernelFeed(self.session, self.provider, Stream(examples, order).blocks(order, self._batch_size))
        try:
            while worked := feed.advance(256):
                self.visited += worked
                self._share_memory()
                if self.session.resident_rows < self.session.support_patterns:
                    self.session.process_new_only()  # random patterns would have to be computed again and again
                self.before_pass = before
                yield False
                self.before_pass = None
        finally:
            feed.flush()

    def _converge(self) -> Generator[bool, None, None]:
        """Optimize the members against each other, not for ever: `has_rested` says whether they came to rest.

        Newton's step is taken each time that steps on two coefficients have cost as much as it does.
        """
        began = self._visits()
        at_once = min(_VISITS_AT_ONCE, max(_VISITS_OF_FACES, _SWEEPS_AT_ONCE * self.session.support_patterns))
        before_newton = 0.0  # visits, once they are asked for
        while not (rested := self._move_members(at_once)):
            if self._visits() - began > _MOST_SWEEPS * self.session.support_patterns:
                break
            before_newton = before_newton or self._visits_before_newton()
            if self._visits() - self.visits_at_newton > before_newton:
                yield from self._newton_steps()
                self.visits_at_newton, before_newton = self._visits(), 0.0
            yield False
        self.has_rested = bool(rested)
        self.session.prune()

    def _move_members(self, visits: int) -> bool:
        """About so many steps; True once the members rest."""
        return bool(self.session.converge(visits, self.source))

    def _visits(self) -> int:
        return int(self.session.counters.operations[OPERATIONS.index("optimize")])

    def _visits_before_newton(self) -> float:
        """The visits that take as long as Newton's steps, which run at the speed of matrix products."""
        operations = self._newton_size() ** 3 / 3 + 10 * self.problem.n_classes * self.session.support_patterns**2
        return float(_VISITS_OF_FACES + _FACES * operations / _OPERATIONS_OF_A_VISIT)

    def _newton_size(self) -> int:
        """As many coefficients as may move at once: those that are free, and one that each pattern lets go."""
        members = self._members()
        return int(Newton(self._problem_of(members.ids), members.dense).free().sum())

    def _newton_steps(self) -> Generator[bool, None, None]:
        """All free coefficients at once, where there is room for the linear system and all rows are at hand."""
        members, slots = self._members(), self.session.slots
        nbytes = 8 * (2 * self._newton_size() ** 2 + len(members.ids) * slots)
        if nbytes > SHARE_OF_NEWTON * self.settings.memory_limit:
            return
        if self.session.resident_rows < self.session.support_patterns:
            return
        kernel = self.provider.rows(members.slots)[:, members.slots].astype(np.float64)
        newton = Newton(self._problem_of(members.ids), members.dense)
        for _ in newton.run(kernel, kernel @ newton.beta, self.tau):
            yield False
        self.newton_steps += 1
        self.session.set_coefficients(members.slots.tolist(), newton.beta, self.source)

    def _look(self, *, everything: bool) -> Generator[bool, None, None]:
        """Compute the scores of examples, and what follows: excess and objectives.

        The kernel values of members are in the core, unless memory is short.
        """
        self._share_memory()
        members = self._members()
        is_candidate = self._is_candidate(everything)
        is_candidate[members.ids] = False
        rows = np.flatnonzero(is_candidate)
        at_once = self._examples_at_once()
        for first in range(0, len(rows), at_once):
            some = rows[first : first + at_once]
            self.scores[some] = self.provider.scores_in_training(
                self.problem.X, some, members.slots, members.dense, self._is_near
            )
            yield False
        yield from self._look_at_members(members)
        rows = np.union1d(rows, members.ids)
        self.looks += 1
        self.visited += len(rows)
        self._note_excess(rows)
        self._note_objectives(members)
        self.is_complete = len(rows) == len(self.problem.labels)
        self.is_told = False

    def _certificate(self) -> Generator[bool, None, None]:
        """Look at all examples, unless the last look did, and in double precision if that matters."""
        if not self.is_complete:
            yield from self._look(everything=True)
        yield from self._certify(self._members())
        self.is_certified, self.is_told = True, False

    def _certify(self, members: Expansion) -> Generator[bool, None, None]:
        """Compute all scores in double precision, if those in single precision make the objectives wrong."""
        everything, self.is_in_double = len(self.problem.labels), False
        self.gap_in_single = self._gap()
        if not self.provider.is_rounded:
            return
        if not self.provider.is_cheap_in_double(everything * len(members.ids)):
            assert self.objectives is not None
            rows = rounding.examples_to_measure(members.ids, members.dense, everything)
            quick, exact = self.scores.__getitem__, partial(self._exact_scores, members)
            costs, primal = self._costs_of_losses(), self.objectives.primal
            if not rounding.is_too_large(rows, quick, exact, members.dense, costs, primal, self.settings.tol):
                return
            yield False
        for some in pieces(everything, _EXAMPLES_IN_DOUBLE):
            self.scores[some] = self._exact_scores(members, np.arange(some.start, some.stop))
            yield False
        self.visited += everything
        self.is_in_double = True
        self._note_all(members)

    def _exact_scores(self, members: Expansion, rows: _Index) -> _Float:
        patterns = self.provider.patterns(members.slots)
        return self.provider.exact_scores(rows_of(self.problem.X, rows), patterns, members.dense)

    def _costs_of_losses(self) -> float:
        """The costs of all losses that are not zero."""
        problem = self.problem
        losses = problem.n_classes - 1 if problem.formulation == "weston-watkins" else 1
        _, loss = self._excess_and_loss(np.arange(len(problem.labels)), 1.0)
        return losses * float(problem.costs[loss > 0].sum())

    def _note_all(self, members: Expansion) -> None:
        """Note what follows from new scores of all examples."""
        self._note_excess(np.arange(len(self.problem.labels)))
        self._note_objectives(members)

    def _is_candidate(self, everything: bool) -> NDArray[np.bool_]:
        """The examples to look at: those that may have come to violate optimality."""
        if everything or not self.settings.shrinking:
            return np.ones(len(self.problem.labels), bool)
        reach = _NEAR if self.provider.kept_nbytes else _NEAR_WITHOUT_TABLE
        return np.asarray(self.excess + self.drift > -reach)

    def _look_at_members(self, members: Expansion) -> Generator[bool, None, None]:
        self.scores[members.ids], lacking = self.session.member_scores(members.slots.tolist())
        at_once = self._examples_at_once()
        for first in range(0, len(lacking), at_once):
            some = members.ids[lacking[first : first + at_once]]
            X = rows_of(self.problem.X, some)
            self.scores[some] = self.provider.scores(X, members.slots, members.dense)
            yield False

    def _is_near(self, rows: _Index, scores: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether examples with these scores will be looked at again soon."""
        excess, _ = _core.excess_and_loss(
            scores.astype(np.float64),
            self.problem.labels[rows],
            self.problem.delta,
            np.arange(len(rows)),
            1.0,
            "crammer-singer",
        )
        return np.asarray(excess > -_NEAR)

    def _note_excess(self, rows: _Index) -> None:
        before = self.excess[rows]
        self.excess[rows], _ = self._excess_and_loss(rows, 1.0)
        if self.looks > 1:
            change = float(np.quantile(np.abs(self.excess[rows] - before), _SHARE_WITHIN_DRIFT)) if len(rows) else 0.0
            self.drift[rows] = 0.0
            self.drift = np.hypot(self.drift, change)

    def _note_objectives(self, members: Expansion) -> None:
        """The dual objective, and the primal one at the multiple of w where it is smallest."""
        problem, own = self.problem, self.scores[members.ids]
        half_squared_norm = self.half_squared_norm = float((members.dense * own).sum()) / 2
        linear = -float((problem.delta[problem.labels[members.ids]] * members.dense).sum())
        # With an indefinite kernel the gap is a violation of optimality, of the coefficients as they are.
        low, high = (1.0, 1.0) if self.provider.indefinite or half_squared_norm < 0 else SCALES
        near = np.flatnonzero(self.excess > -(1 / low - 1) * float(problem.delta.max()))

        def primal(scale: float) -> float:
            _, losses = self._excess_and_loss(near, scale)
            return scale * scale * half_squared_norm + float(problem.costs[near] @ losses)

        if problem.is_hard:
            visited = problem.costs > 0
            margin = smallest_margin(self.scores[visited], problem.labels[visited], problem.delta)
            self.scale = 1 / margin if margin > 0 else 1.0
            lowest = hard_objective(half_squared_norm, margin)
        else:
            self.scale = _lowest(primal, low, high, precision=self._scale_precision())
            lowest = primal(self.scale)
        violation = float(self._member_violations(members).max(initial=0.0))
        violation = max(violation, float(self.excess[self._is_free(members)].max(initial=0.0)))
        self.objectives = ObjectiveValues(lowest, linear - half_squared_norm, violation)

    def _scale_precision(self) -> float:
        return min(1e-6, max(_FINEST_SCALE, 0.01 * self.settings.tol))

    def _extend(self, tau: float) -> Generator[bool, None, None]:
        """Let examples join, and members take up further classes.

        Examples that are close to violating optimality join as well, without coefficients as yet: in a while they may.
        """
        self.is_complete = self.is_certified = False
        members = self._members()
        wider = members.slots[self._member_violations(members) > tau]
        self.session.widen(wider.tolist(), self.source)
        is_free = self._is_free(members)
        worst = float(self.excess[is_free].max(initial=0.0))
        reach = min(_REACH * worst, _MOST_REACH)
        joining = self.random.permutation(np.flatnonzero(is_free & (self.excess > min(tau, -reach))))
        joining = joining[np.argsort(-self.excess[joining], kind="stable")]
        violating = int((self.excess[joining] > tau).sum())
        most = max(_FIRST_TO_JOIN, len(members.ids))
        joining = joining[: min(most, violating + int(_WATCHED * len(members.ids)))]
        size = self._batch_size()
        for first in range(0, len(joining), size):
            self._admit(joining[first : first + size])
            yield False

    def _is_free(self, members: Expansion) -> NDArray[np.bool_]:
        """Which examples can join."""
        is_free: NDArray[np.bool_] = self.problem.costs > 0
        is_free[members.ids] = False
        return is_free

    def _admit(self, rows: _Index) -> None:
        batch = self.provider.batch(self.problem.X, rows, rows)
        kernel = self.provider.against_support(batch, self.session.slots + len(rows))
        diagonal = self.provider.diagonal(batch)
        costs, labels = self.problem.costs[rows], self.problem.labels[rows]
        self.session.feed(kernel, self.provider.within(batch), rows, labels, costs, diagonal)
        self.session.admit(len(rows))
        slots, ids = self.session.newborn()
        order = np.argsort(rows)
        self.provider.store(slots, batch, order[np.searchsorted(rows[order], ids)])
        self._share_memory()

    # What it is made of.

    def _gap(self) -> float:
        at = self.objectives
        assert at is not None
        if not np.isfinite(at.primal):  # hard margins that are not kept
            return np.inf
        return 0.0 if at.primal == 0 else (at.primal - at.dual) / abs(at.primal)

    def _members(self) -> Expansion:
        return Expansion.of(self.session)

    def _member_violations(self, members: Expansion) -> _Float:
        ids = members.ids
        return self._problem_of(ids).losses_and_violations(self.scores[ids], members.dense)[1]

    def _problem_of(self, ids: _Index) -> Problem:
        """Of some examples alone."""
        return replace(self.problem, X=None, labels=self.problem.labels[ids], costs=self.problem.costs[ids])

    def _excess_and_loss(self, rows: _Index, scale: float) -> tuple[_Float, _Float]:
        problem = self.problem
        excess, loss = _core.excess_and_loss(
            self.scores, problem.labels, problem.delta, rows.astype(np.int64, copy=False), scale, problem.formulation
        )
        return excess, loss

    def _batch_size(self) -> int:
        """256, or less where the kernel values of two blocks would take too much of the memory."""
        values = self.settings.memory_limit * _SHARE_OF_BLOCKS / self.provider.dtype.itemsize
        return int(np.clip(values / (2 * (self.session.slots + 512)), 1, 256))

    def _examples_at_once(self) -> int:
        share = _SHARE_OF_COPIES * self.settings.memory_limit / row_nbytes(self.problem.X)
        return int(np.clip(share, _LEAST_EXAMPLES, _EXAMPLES_AT_ONCE))

    def make_room_for_model(self) -> None:
        """Let kernel values go where there is no memory for a copy of the members beside them."""
        self.provider.share_memory(0)
        with suppress(_core.MemoryLimitError):
            self.session.set_foreign_bytes(int(2 * self.provider.nbytes + self.scores.nbytes))
        _core.trim_heap()

    def _share_memory(self) -> None:
        """What the core leaves goes to the table of kernel values."""
        limit = self.settings.memory_limit
        others = min(_SHARE_OF_OTHERS * limit, _MOST_OF_OTHERS)
        self.session.set_foreign_bytes(int(self.provider.nbytes + self.scores.nbytes + self.source.nbytes + others))
        self.provider.share_memory(limit - _ROOM_TO_GROW * self.session.bytes)
        if _ROOM_TO_GROW * self.session.bytes > limit:
            self.turns_until_trim -= 1
            if self.turns_until_trim < 0:
                _core.trim_heap()
                self.turns_until_trim = _TURNS_BETWEEN_TRIMS


def _lowest(function: Callable[[float], float], low: float, high: float, *, precision: float) -> float:
    """Where a convex function is smallest, by golden section."""
    golden = (np.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > precision:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = function(right)
    return float(left if at_left < at_right else right)
