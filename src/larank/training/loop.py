"""The one training loop: stopping, interruption, time limits, progress and history for every solver.

Every solver shows it a `Training`: state that can be advanced a little at a time. Between two calls of `advance` there
is room for everything that has nothing to do with the mathematics.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, runtime_checkable

from sklearn.exceptions import ConvergenceWarning

from larank.publishing import call_began
from larank.training.checkpointfile import CheckpointFile, State
from larank.training.interrupts import Interrupt, first_interrupt, raises
from larank.training.progress import Progress
from larank.training.result import Checkpoint, Result, Status

# Points of a history. Small problems make thousands in a second, and files of models and checkpoints hold all of them.
_MOST_POINTS = 10_000
_ROUNDING = 1e-3  # of the primal objective, by which the dual may be above it where numbers are rounded


class TrainingWarning(ConvergenceWarning):  # type: ignore[misc]
    """Training ended before its stopping criterion held; the model is valid, its certificate says how good it is."""


class CertificateWarning(UserWarning):
    """The certificate has no bound, because the problem is not convex; the model is trained all the same."""


class Objectives(Protocol):
    """Primal and dual objective and the largest violation of optimality at some point of training."""

    @property
    def primal(self) -> float: ...  # noqa: D102
    @property
    def dual(self) -> float: ...  # noqa: D102
    @property
    def violation(self) -> float: ...  # noqa: D102


@dataclass(frozen=True)
class ObjectiveValues:
    """`Objectives` as plain numbers."""

    primal: float
    dual: float
    violation: float


@dataclass(frozen=True)
class SampledObjectives(ObjectiveValues):
    """Objectives whose primal is that of a random sample of the examples, with its standard error."""

    primal_error: float = 0.0

    @classmethod
    def of(cls, primal: float, dual: float, primal_error: float) -> SampledObjectives:
        """A draw may be too low, but no primal objective is below the dual; the largest violation is not known."""
        return cls(max(primal, dual), dual, math.nan, primal_error)


FromScratch = Generator[None, None, Objectives]
"""Work on objectives, a little at a time."""


class Training(Protocol):
    """Resumable training state."""

    def advance(self) -> bool:
        """Do a bounded amount of work, well under a second; True once the solver's own criterion holds."""

    def estimate(self) -> Objectives | None:
        """What the solver saw on its way since the last call, at no cost; None if there is nothing new."""

    def evaluate(self) -> FromScratch:
        """The objectives from scratch; every `yield`, well under a second after another, is room to give up."""

    def iterations(self) -> float:
        """Passes over the data so far."""

    def details(self) -> Mapping[str, Any]:
        """Further fields of the `Checkpoint` that is about to be recorded."""


@runtime_checkable
class Foreseeing(Protocol):
    """Training that knows how long its certificate takes, where that differs from a pass over the data."""

    def certificate_seconds(self) -> float:
        """How many seconds `evaluate` would take now."""


@runtime_checkable
class Resumable(Protocol):
    """Training that can go on in another process, from a state in a checkpoint file."""

    def snapshot(self) -> State | None:
        """The state now; None where it stands in the middle of something."""

    def resume(self, state: State) -> None:
        """Go on from that state."""


@runtime_checkable
class Streaming(Protocol):
    """Training on a stream, where examples may have arrived that it has not begun with when a limit ends it."""

    def cut(self) -> bool:
        """End the stream with what has arrived; True if nothing was learned so far: there is a moment for the first."""


@dataclass(frozen=True)
class Limits:
    """When to stop: at a duality gap, after passes over the data, after seconds.

    `gap` is relative to the primal objective. `passes` is the number of passes that the solver makes by itself, after
    which training is "completed"; with `may_end_sooner` fewer may be sufficient, so progress shows no fraction of
    `passes`. At least `passes_between_checks` passes lie between two checks of the gap from scratch. A check is made if
    the estimate of the gap is small, and in any case after `passes_without_check`. Without `certify` the objectives are
    not computed from scratch at the end. `time_limit` counts from the beginning of the call that trains, see
    `next_model`, and includes the certificate.
    """

    gap: float | None
    max_iter: float
    time_limit: float | None
    passes: float | None = None
    certify: bool = True
    passes_between_checks: float = 0.0
    passes_without_check: float = 20.0  # estimates may be far too high
    may_end_sooner: bool = False

    def closing_gap(self, primal: float) -> float | None:
        """The gap at which to stop, if there is one."""
        return None if self.gap is None else self.gap * abs(primal)  # it is >= 0 if the problem is convex

    def is_closed(self, at: Objectives) -> bool:
        """Whether the gap is small enough; an infinite objective never is near to another."""
        wanted = self.closing_gap(at.primal)
        if wanted is None or not math.isfinite(at.primal) or not math.isfinite(at.dual):
            return False
        # A dual objective far above the primal one proves nothing but rounding.
        return -max(wanted, _ROUNDING * abs(at.primal)) <= at.primal - at.dual <= wanted


@dataclass(frozen=True)
class Looks:
    """Objectives from scratch for the history: how to compute them, and after how many passes to do so again."""

    look: Callable[[], FromScratch]
    passes_between: int


def completed(work: FromScratch) -> Objectives:
    """The objectives, however long they take."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            found: Objectives = done.value
            return found


@dataclass(frozen=True)
class Outcome:
    """How training ended."""

    status: Status
    objectives: Objectives
    exact: bool
    seconds: float
    certificate_seconds: float
    history: tuple[Checkpoint, ...]
    advice: str = ""  # to be given where it ended early

    @property
    def source_of_gap(self) -> str:
        """Where the gap is from, if not from all examples."""
        if self.exact:
            return ""
        is_sampled = isinstance(self.objectives, SampledObjectives)
        return " by a sample of the examples" if is_sampled else " by an estimate made on the way"

    def without_bound(self) -> Outcome:
        """The same where dual objectives are no lower bounds: they are NaN."""
        at = ObjectiveValues(self.objectives.primal, math.nan, self.objectives.violation)
        return replace(self, objectives=at, history=tuple(replace(point, dual=math.nan) for point in self.history))


def train(
    training: Training,
    limits: Limits,
    progress: Progress,
    looks: Looks | None = None,
    checkpoint: CheckpointFile | None = None,
    interrupt: Interrupt | None = None,
) -> Outcome:
    """Advance a training until a limit is reached, its own criterion holds or the user interrupts.

    Parameters
    ----------
    training : Training
        The solver's state.
    limits : Limits
        The stopping criteria shared by all solvers.
    progress : Progress
        Told about every new estimate.
    looks : Looks, optional
        What goes into the history between two passes.
    checkpoint : CheckpointFile, optional
        Where the state goes now and then, and at the end; and what to go on from. It needs a `Resumable` training.
    interrupt : Interrupt, optional
        What the caller, who trains more than once, takes note of Ctrl-C with; by default that is done here.

    Returns
    -------
    Outcome
        With the objectives computed from scratch at the end, if there was time for it.
    """
    with first_interrupt() if interrupt is None else nullcontext(interrupt) as interrupt:
        run = _Run(training, limits, progress, interrupt)
        status = None if checkpoint is None else run.resume(checkpoint)
        while status is None:
            optimal = training.advance()
            if looks is not None and not optimal:
                run.look_if_due(looks)
            status = run.end(optimal=optimal)
            if checkpoint is not None and (status is not None or checkpoint.is_due()):
                run.write(checkpoint, status)
        if status in ("interrupted", "time_limit") and isinstance(training, Streaming) and training.cut():
            while run.seconds_left() > 0 and not training.advance():
                pass
        outcome = run.finish(status)
        # Whoever pressed it wants an end, also where training was at its own.
        return replace(outcome, status="interrupted") if interrupt.has_come else outcome


def _told(passes: float) -> str:
    """A number of passes in words: with what matters of a few, and whole where there are many."""
    return f"{passes:.3g}" if passes < 100 else f"{passes:.0f}"


def warn_if_early(
    outcome: Outcome,
    result: Result,
    *,
    max_iter: float | None,
    time_limit: float | None,
    limit_of_iterations: str = "",
    limit_of_precision: str = "",
    is_hard: bool = False,
    stacklevel: int,
) -> None:
    """Say that training ended before its own criterion held, and how good the model is.

    `is_hard` says that margins are, and so there is more to say where a model does not keep them.

    Raises
    ------
    KeyboardInterrupt
        If an interrupt ended training, where `on_interrupt` has it so. The model is fitted by then.
    """
    reasons = {
        "max_iter": limit_of_iterations or f"by max_iter={max_iter}",
        "time_limit": f"after time_limit={time_limit} seconds",
        "precision": limit_of_precision,
        "interrupted": "by an interrupt",
    }
    ended = ""
    if outcome.status in reasons:
        gap = f", its relative duality gap is {result.relative_gap:.2g}"
        gap += outcome.source_of_gap
        ended = (
            f"training was ended {reasons[outcome.status]}, after {_told(result.iterations)} passes over the "
            f"data; the model is valid{'' if math.isnan(result.relative_gap) else gap}"
            f"{f'; {outcome.advice}' if outcome.advice else ''}"
        )
    if is_hard and outcome.exact and result.primal == math.inf:
        unseparated = "the model does not separate the classes as C=inf demands: where no model can, use a finite C"
        ended = f"{ended}; {unseparated}" if ended else unseparated
    if outcome.status == "interrupted" and raises():
        raise KeyboardInterrupt(ended)
    if ended:
        warnings.warn(ended, TrainingWarning, stacklevel=stacklevel + 1)


class _Run:
    """The history of one training run and the decisions taken from it."""

    _PROMISING = 2.0  # times the gap at which to stop: an exact check costs a few passes
    _PATIENCE = 0.6  # seconds after an interrupt for the certificate; after a time limit, a share of the allowance
    _MOST_OF_LIMIT = 0.5  # that is kept for the certificate
    _HOPELESS = 2.0  # times the seconds there are: a certificate that is expected to take more is not begun

    def __init__(self, training: Training, limits: Limits, progress: Progress, interrupt: Interrupt) -> None:
        self.training, self.limits, self.progress, self.interrupt = training, limits, progress, interrupt
        self.history: list[Checkpoint] = []
        self.latest: Objectives | None = None
        self.is_exact = False
        self.checked_at = self.looked_at = 0.0
        self.certificate_seconds = self.longest_certificate = 0.0
        self.began = time.perf_counter()
        self.call_began = call_began(otherwise=self.began)

    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def end(self, *, optimal: bool) -> Status | None:
        """What ends training here, if something does; `optimal`: the solver's own criterion holds."""
        if self.gap_is_closed() or (optimal and self.limits.passes is None):
            return "converged"
        if optimal:
            return "completed"
        if self.interrupt.has_come:
            return "interrupted"
        if self.training.iterations() >= self.limits.max_iter:
            return "max_iter"
        return "time_limit" if self.time_is_over() else None

    # From one process to another.

    _KEPT = ("checked_at", "looked_at", "certificate_seconds", "longest_certificate", "is_exact")

    def write(self, checkpoint: CheckpointFile, status: Status | None) -> None:
        """Write the state, if the training has one now. What ended by a limit or an interrupt may go on later."""
        assert isinstance(self.training, Resumable)
        began = time.perf_counter()
        state = self.training.snapshot()
        if state is None:
            return
        run = {name: getattr(self, name) for name in self._KEPT}
        run |= {"seconds": self.seconds(), "history": [asdict(point) for point in self.history]}
        run["status"] = status if status in ("converged", "completed") else None
        checkpoint.write({"run": run, "training": state}, is_last=status is not None)
        checkpoint.wait(time.perf_counter() - began)

    def resume(self, checkpoint: CheckpointFile) -> Status | None:
        """Go on from what was written, and with the seconds so far; how training ended there, if it did by itself."""
        assert isinstance(self.training, Resumable)
        if checkpoint.resumed is None:
            return None
        with checkpoint.reading():
            run = checkpoint.resumed["run"]
            self.history = [Checkpoint(**point) for point in run["history"]]
            self.latest = self.history[-1] if self.history else None
            for name in self._KEPT:
                setattr(self, name, type(getattr(self, name))(run[name]))
            self.began -= float(run["seconds"])
            self.call_began -= float(run["seconds"])
            self.training.resume(checkpoint.resumed["training"])
            status: Status | None = run["status"]
            if status not in ("converged", "completed", None):
                raise ValueError(f"training cannot have ended as {status!r}")
        return status

    # What the limit of time allows.

    def time_is_over(self) -> bool:
        """Whether it is time to stop, so that the certificate ends within the limit and its allowance."""
        limit = self.limits.time_limit
        if limit is None:
            return False
        now = time.perf_counter() - self.call_began
        if now < (1 - self._MOST_OF_LIMIT) * limit:
            return False
        needed = self.expected_certificate() - self._PATIENCE * allowance(limit) / 2
        return now >= limit or (now + needed >= limit and needed <= self._MOST_OF_LIMIT * limit)

    def expected_certificate(self) -> float:
        """The seconds it will take: as long as the longest so far, or as a pass over the data; 0 if nothing tells."""
        if not self.limits.certify or self.is_exact:
            return 0.0
        if isinstance(self.training, Foreseeing):
            return self.training.certificate_seconds()
        passes = self.training.iterations()
        of_a_pass = (self.seconds() - self.certificate_seconds) / passes if passes else 0.0
        return self.longest_certificate or of_a_pass

    def seconds_left(self) -> float:
        """For objectives from scratch."""
        limit, end = self.limits.time_limit, self.interrupt.at + self._PATIENCE
        if limit is not None:
            end = min(end, self.call_began + limit + self._PATIENCE * allowance(limit))
        return end - time.perf_counter()

    def is_time_for_certificate(self) -> bool:
        """Whether it is worth while to begin one; where time does not matter, no trial has to tell."""
        left = self.seconds_left()
        return left == math.inf or self.expected_certificate() <= self._HOPELESS * left

    # What it records.

    def gap_is_closed(self) -> bool:
        """Record a new estimate, and check the gap from scratch where that is due."""
        self.is_exact = False
        estimate = self.training.estimate()
        if estimate is None:
            if not self.history:
                nothing_yet = Checkpoint(
                    self.seconds(), self.training.iterations(), math.nan, math.nan, math.nan, exact=False
                )
                self.progress.update(nothing_yet, None)
            return False
        point = self.record(estimate, exact=False)
        wanted = self.limits.closing_gap(point.primal)
        if wanted is None:
            return False
        if point.iterations < self.checked_at + self.limits.passes_between_checks:
            return False
        is_hopeless = point.gap > self._PROMISING * wanted  # an estimate that tells nothing (nan) is not
        if is_hopeless and point.iterations < self.checked_at + self.limits.passes_without_check:
            return False
        self.checked_at = point.iterations
        exact = self.compute(self.training.evaluate())
        return exact is not None and self.limits.is_closed(exact)

    def look_if_due(self, looks: Looks) -> None:
        if self.training.iterations() < self.looked_at + looks.passes_between:
            return
        self.looked_at = self.training.iterations()
        self.compute(looks.look())

    def compute(self, work: FromScratch) -> Checkpoint | None:
        """Record objectives from scratch; None if there is no time for them."""
        began = time.perf_counter()
        found: Objectives | None = None
        with closing(work):
            while self.seconds_left() > 0:
                try:
                    next(work)
                except StopIteration as done:
                    found = done.value
                    break
        took = time.perf_counter() - began
        self.certificate_seconds += took
        if found is None:
            return None
        self.longest_certificate = max(took, self.longest_certificate)
        return self.record(found, exact=True)

    def record(self, at: Objectives, *, exact: bool) -> Checkpoint:
        if at.dual < 0:  # zero bounds every objective, too
            at = (
                replace(at, dual=0.0)
                if isinstance(at, ObjectiveValues)
                else ObjectiveValues(at.primal, 0.0, at.violation)
            )
        exact = exact and not isinstance(at, SampledObjectives)
        if exact and math.isnan(at.primal) and any(not math.isnan(point.primal) for point in self.history):
            raise _overflow(at)  # estimates may tell nothing
        self.latest, self.is_exact = at, exact
        point = Checkpoint(
            self.seconds(),
            self.training.iterations(),
            at.primal,
            at.dual,
            at.violation,
            exact,
            **self.training.details(),
        )
        self.history.append(point)
        if len(self.history) > _MOST_POINTS:
            del self.history[1:-1:2]  # the first and the last point stay
        self.progress.update(point, self.fraction(point))
        return point

    def fraction(self, point: Checkpoint) -> float | None:
        """How many of the passes are made, or how far the gap has come on a logarithmic scale, if either tells."""
        if self.limits.passes is not None:
            if self.limits.may_end_sooner or not point.iterations:  # as of a stream whose length is not known
                return None
            return min(1.0, point.iterations / self.limits.passes)
        first = self.history[0]
        start, now = first.gap, self.limits.closing_gap(first.primal)
        if now is None or not (start > now > 0 and point.gap > 0 and point.primal > 0):
            return None
        end = self.limits.closing_gap(point.primal) or now
        return min(1.0, max(0.0, math.log(start / now * end / point.gap) / math.log(start / now)))

    def finish(self, status: Status) -> Outcome:
        is_open = self.limits.certify and not self.is_exact
        found: Checkpoint | None = None
        if is_open and self.is_time_for_certificate():
            found = self.compute(self.training.evaluate())
        if self.latest is None or (found is None and not self.is_exact):
            estimate = self.training.estimate()
            if estimate is None and self.latest is None:  # ended before anything was seen
                estimate = ObjectiveValues(math.nan, math.nan, math.nan)
            if estimate is not None:
                self.record(estimate, exact=False)
        assert self.latest is not None
        if status == "converged" and math.isnan(self.latest.primal):
            raise _overflow(self.latest)
        self.progress.finish(status)
        return Outcome(
            status, self.latest, self.is_exact, self.seconds(), self.certificate_seconds, tuple(self.history)
        )


def _overflow(at: Objectives) -> ValueError:
    """What to say where objectives were numbers, or should be, and are none any more."""
    return ValueError(
        "X, C and weights must be of a size that can be computed with, but in training the primal objective has become "
        f"{at.primal}; scale X, and choose C, weights and other parameters nearer to one"
    )


def allowance(limit: float) -> float:
    """The seconds by which a limit of time may be exceeded."""
    return max(1.0, 0.1 * limit)
