"""MCSVM as [mcsvm] published it, with every improvement of its section 7 as a switch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from larank import declare
from larank.blocks import Batch, Provider
from larank.blocks.kernels import CallableKernel
from larank.blocks.provider import pieces
from larank.declare import ParameterError, Value, parameter
from larank.kernel.machine import ROWS_AT_ONCE, session_class
from larank.kernel.problem import Problem
from larank.training import FromScratch, Objectives

_SECONDS_PER_CALL = 0.1
_WORK_PER_RUN = 2e7  # values of F that are looked at or updated: some tens of milliseconds
_ESTIMATES_PER_PASS = 20
_CALLABLE_PIECE = 64  # a batch of a callable kernel is compared with itself


class Published(Value):
    """The solver of Crammer and Singer (2001), round by round."""

    row_solver: Literal["fixed-point", "exact"] = parameter(
        'How the reduced problem of an example is solved. "fixed-point" is the iterative solver of the paper (figure '
        '3), "exact" is the closed-form solution.',
        default="fixed-point",
    )
    selection: Literal["cycle", "kkt"] = parameter(
        'Which example is optimised next. "kkt" takes the one with the largest violation of its optimality condition; '
        '"cycle" takes all in turn and stops only at `max_iter`.',
        default="kkt",
    )
    active_set: bool = parameter(
        "Whether to search the examples with non-zero coefficients first, and all others only when none of them "
        'violates its condition. Needs ``selection="kkt"``.',
        default=True,
    )
    cooling: Literal["none", "exponential", "linear", "logarithmic"] = parameter(
        "Schedule that lowers the tolerance from 0.999 to `epsilon` round by round. Needs ``active_set=True``.",
        default="logarithmic",
    )
    epsilon: float = parameter(
        "Largest violation of optimality conditions at which training ends, in units of the margin. Half of it is the "
        "accuracy of the fixed-point solver.",
        default=0.1,
        above=0,
    )
    cache: bool = parameter("Whether to keep rows of kernel values within the memory limit.", default=True)

    def _check_together(self) -> None:
        if self.active_set and self.selection == "cycle":
            raise ParameterError(
                "active_set", "must be False with selection='cycle', which takes all examples in turn; got True"
            )
        if self.cooling != "none" and not self.active_set:
            raise ParameterError("cooling", f"must be 'none' with active_set=False; got {self.cooling!r}")
        if self.cooling != "none" and self.epsilon >= 0.999:
            raise ParameterError(
                "epsilon", f"must be below 0.999, where cooling begins; got {self.epsilon!r}. Set cooling='none'"
            )
        if self.selection == "cycle" and self.row_solver == "exact" and self.epsilon != 0.1:
            raise ParameterError(
                "epsilon",
                f"is not used with selection='cycle' and row_solver='exact'; got {self.epsilon!r}. Leave it at 0.1",
            )


class PublishedTraining:
    """The rounds of one training; a `larank.training.Training`.

    Enter ``with provider.threads():`` around it.

    Parameters
    ----------
    settings : Published
        The switches.
    problem : Problem
        Crammer-Singer only.
    provider : Provider
        From `provider_for(kernel, problem.X)`.
    memory_limit : float
        Bytes that scores, coefficients and kept kernel rows may take together. Scores, coefficients and one row are
        kept in any case.
    """

    def __init__(self, settings: Published, problem: Problem, provider: Provider, memory_limit: float) -> None:
        declare.check(settings)
        if problem.formulation != "crammer-singer":
            raise ValueError(
                f"formulation must be 'crammer-singer' with solver=Published(...), got {problem.formulation!r}"
            )
        self.settings, self.problem, self.provider = settings, problem, provider
        self._examples = len(problem.labels)
        self._pieces = self._batches()
        self._diagonal = np.concatenate([piece.diagonal for piece in self._pieces])
        self._session = session_class("Mcsvm", provider.dtype)(
            np.ascontiguousarray(problem.labels, np.int32),
            np.ascontiguousarray(problem.costs, np.float64),
            self._diagonal,
            np.ascontiguousarray(problem.delta, np.float64),
            selection=settings.selection,
            row_solver=settings.row_solver,
            cooling=settings.cooling,
            active_set=bool(settings.active_set),
            cache=bool(settings.cache),
            epsilon=float(settings.epsilon),
            cache_bytes=int(min(max(0.0, memory_limit - self._bytes_of_state()), 2.0**62)),
        )
        self.half_squared_norm = 0.0  # of the last evaluation
        self._next_estimate = 0
        self._estimated_after = -1

    def _batches(self) -> list[Batch]:
        """All examples, prepared for products; in one batch, which needs no copy, where the kernel allows it."""
        X, n = self.problem.X, self._examples
        if not isinstance(self.provider.kernel, CallableKernel):
            return [self.provider.batch(X, 0)]
        firsts = range(0, n, _CALLABLE_PIECE)
        return [self.provider.batch(X, first, slice(first, min(first + _CALLABLE_PIECE, n))) for first in firsts]

    def _bytes_of_state(self) -> int:
        return 2 * 8 * self._examples * self.problem.n_classes

    def advance(self) -> bool:
        """Make rounds until an estimate is due, or for a tenth of a second; True once all violations are small."""
        end = time.perf_counter() + _SECONDS_PER_CALL
        rounds = self._rounds()
        if rounds >= self._next_estimate:
            self._next_estimate = rounds + max(1, min(rounds // 10, self._examples // _ESTIMATES_PER_PASS))
        limit = max(1, int(_WORK_PER_RUN / (self._examples * self.problem.n_classes)))
        while not self._session.is_done and self._rounds() < self._next_estimate:
            self._session.run(min(limit, self._next_estimate - self._rounds()), self)
            if time.perf_counter() > end:
                break
        is_done: bool = self._session.is_done
        return is_done

    def rows(self, examples: NDArray[np.int32]) -> NDArray[Any]:
        """The kernel values of some examples with all of them, their own exact: what the session asks for."""
        batch = self.provider.batch(self.problem.X, examples, examples)
        values = np.hstack([self.provider.cross(batch, piece) for piece in self._pieces])
        values[np.arange(len(examples)), examples] = self._diagonal[examples]
        return values

    def estimate(self) -> Objectives | None:
        """The objectives of the scores at hand, at first after every round, later twenty times per pass."""
        rounds = self._rounds()
        is_due = rounds >= self._next_estimate or self._session.is_done
        is_first = self._estimated_after < 0
        if not (is_due or is_first) or rounds == self._estimated_after:
            return None
        self._estimated_after = rounds
        objectives: Objectives = self._session.objectives()
        return objectives

    def evaluate(self) -> FromScratch:
        """The objectives of the coefficients, with scores computed again."""
        beta, scores = self.coefficients, np.zeros((self._examples, self.problem.n_classes))
        support = self._stored_support(beta)
        for rows in pieces(self._examples, ROWS_AT_ONCE):
            scores[rows] = self._scores(self.problem.X[rows], beta[support])
            yield
        self.half_squared_norm = float((beta * scores).sum()) / 2
        return self.problem.objectives(scores, beta)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Scores of any examples with the coefficients as they are, computed from scratch."""
        beta = self.coefficients
        return self._scores(X, beta[self._stored_support(beta)])

    def _stored_support(self, beta: NDArray[np.float64]) -> NDArray[np.intp]:
        """The examples with coefficients, which the provider has then in its first slots."""
        support = np.flatnonzero(beta.any(axis=1))
        if len(support):
            slots = np.arange(len(support))
            self.provider.store(slots, self.provider.batch(self.problem.X, support, support), slots)
        return support

    def _scores(self, X: Any, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of any examples, by the patterns in the first slots."""
        if not len(coefficients):
            return np.zeros((X.shape[0] if hasattr(X, "shape") else len(X), self.problem.n_classes))
        slots = np.arange(len(coefficients))
        if not self.provider.is_rounded:
            return self.provider.scores(X, slots, coefficients)
        return self.provider.exact_scores(X, self.provider.patterns(slots), coefficients)

    def iterations(self) -> float:
        """Rounds over examples."""
        return self._rounds() / self._examples

    def details(self) -> Mapping[str, Any]:
        """What the history records besides the objectives."""
        return {"kernel_values": self.provider.kernel_values, "support_patterns": self._session.support_patterns}

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """Beta, one row per example and one column per class."""
        beta: NDArray[np.float64] = self._session.coefficients()
        return beta

    scale = 1.0  # the certificate is that of the coefficients as they are
    has_stalled = False

    def make_room_for_model(self) -> None:
        """Its cache is what is left of the limit, and goes with it."""

    def support(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The examples with coefficients, and these."""
        beta = self.coefficients
        ids = np.flatnonzero(beta.any(axis=1))
        return ids, beta[ids]

    @property
    def kernel_values(self) -> int:
        """Computed so far."""
        return self.provider.kernel_values

    @property
    def breakdown(self) -> Mapping[str, float]:
        """Seconds of each kind of work."""
        return dict(self.provider.seconds)

    @property
    def operations(self) -> Mapping[str, int]:
        """How often what was done."""
        counters = self._session.counters
        return {
            "rounds": counters.rounds,
            "kernel_rows": counters.kernel_rows,
            "cache_hits": counters.cache_hits,
            "fixed_point_iterations": counters.fixed_point_iterations,
        }

    def _rounds(self) -> int:
        rounds: int = self._session.counters.rounds
        return rounds
