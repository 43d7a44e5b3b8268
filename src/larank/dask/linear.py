"""`larank.dask.LinearMulticlassSVC`: the rounds of `larank.linear.rounds` on the workers of a cluster.

Every share is a `Partition` on its worker. W and the training loop are here. In a round each worker is sent one
message, with W, and sends back how its coefficients would change W.

What a lost worker costs: its shares are made again elsewhere, from partitions that Dask computes again, with the
coefficients that they last sent here. The round that was under way is undone on all shares, W is summed up again from
the coefficients there are, and training goes on. Coefficients are sent here after a round, but not so often that it
takes more than 3 % of the time; what a lost share had learnt since is learnt again. If the whole cluster is lost, there
is the model of the last certificate. Certificates are made as often as takes 3 % of the time, too.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from distributed import Client
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from larank import declare, parameters
from larank.dask.estimators import OnPartitions
from larank.dask.shares import ClusterError, Partitions, Shares, SharesLostError, client_for, completed_by_workers
from larank.dask.survey import CheckedPartition, Costs, Survey, joined
from larank.declare import ParameterError
from larank.linear.rounds import Coefficients, LinearProblem, Partition, Rounds, Weights
from larank.linear.sdm import LinearMulticlassSVC as Ordinary
from larank.publishing import call_began, next_model
from larank.training import FromScratch, Interrupt, Objectives, Outcome, completed, first_interrupt, train
from larank.training.progress import progress_for
from larank.training.result import Result

_WITHOUT_ANSWER = ("begin_phase", "take", "scale_costs")  # these calls go along with the next one
_WITH_CHANGE = ("visit",)  # the change of W comes back with its answer
_SECURING = 0.03  # the share of the time that coefficients may take on their way here, and certificates as much
_MULTIPLY_ADDS, _MESSAGE, _BYTES = 1e9, 3e-3, 5e8  # a second, seconds to and fro, and of W a second
_MESSAGES, _SHORT = 8.0, 0.5  # a round is as long as so many messages, if that is less than such a part of a pass
_PATIENCE = 0.5  # seconds, or a twentieth of a time limit, for a certificate after Ctrl-C or the limit


class LinearMulticlassSVC(OnPartitions, Ordinary):
    """The `larank.LinearMulticlassSVC` of a Dask collection: the optimum of all data, by rounds over its partitions.

    Parameters and attributes are those of `larank.LinearMulticlassSVC`, but for `dual_coef_`, `support_` and costs,
    which stay on the workers. `C` must be finite, and warm starts are not for collections. The fitted model is an
    ordinary one, see `local`. `result_.operations` has the rounds, the bytes sent and the shares that were lost.
    """

    _ordinary = Ordinary

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        client: Client | None = None,
        worker_timeout: float = 30.0,
    ) -> Self:
        """Train on a Dask collection.

        Parameters
        ----------
        X : Dask array or data frame, or list of delayed partitions
            The examples. Chunks may be dense or CSR, of any sizes, known or not.
        y, sample_weight : collections with the partitions of X
            Their labels and, optionally, factors on `C`.
        client : distributed.Client, optional
            Of the cluster to train on; by default the one in use.
        worker_timeout : float, default=30.0
            The seconds to wait for a worker where none is left.

        Returns
        -------
        LinearMulticlassSVC
            Itself, fitted. A `TrainingWarning` says when training ended early; the model is valid all the same.

        Raises
        ------
        ClusterError
            If the cluster is lost in the middle. The estimator then has the model of the last certificate.
        """
        parameters.positive("worker_timeout", worker_timeout, zero=True)
        client = client_for(client)
        with next_model(self) as model:
            declare.check(model)
            model._check_acts_on_partitions()
            partitions = Partitions(client, X, y, sample_weight)
            outcome, failure = model._fit_partitions(partitions, worker_timeout)
        if failure is not None:
            raise failure.with_model(self.local()) from failure
        self._warn_if_early(outcome)
        return self

    def path(self, *arguments: Any, **options: Any) -> Any:
        """Not for Dask collections."""
        raise NotImplementedError("path trains on local data: use larank.LinearMulticlassSVC")

    def _check_acts_on_partitions(self) -> None:
        if self.warm_start:
            raise ParameterError("warm_start", f"must be False for Dask collections; got {self.warm_start!r}")
        if self.n_jobs is not None:
            raise ParameterError(
                "n_jobs", f"must be None for Dask collections, because the workers have threads; got {self.n_jobs!r}"
            )
        if math.isinf(self.C):
            raise ParameterError("C", "must be finite for Dask collections; got infinity. Use a large number instead")

    def _fit_partitions(self, partitions: Partitions, worker_timeout: float) -> tuple[Outcome, ClusterError | None]:
        survey = partitions.survey
        self._check_precision(survey.dtype, np.full(1, self.C))
        build = _Build(self._problem_of(survey), self._costs_of(survey), survey.dtype)
        shares = Shares(partitions, build, worker_timeout)
        survey.describe(self)
        rows, classes = sum(survey.rows), survey.classes
        with first_interrupt() as interrupt, progress_for(self.verbose) as progress:
            progress.start(
                f"{self.formulation}, {rows} examples, {survey.n_features} features, {len(classes)} classes, "
                f"{len(shares)} shares"
            )
            training = DistributedRounds(
                DaskExecutor(shares, _Patience(interrupt, self.time_limit)),
                seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
                cooling=bool(self._switches.cooling),
                epsilon=self._epsilon,
                passes_per_round=local_work(survey, len(shares)),
                target=float(self.tol) if self.stop == "gap" else 0.0,
            )
            outcome = train(training, self._limits(), progress, interrupt=interrupt)
            support = training.support()
        if training.failure is not None:
            outcome = replace(outcome, status="interrupted")
        self._keep(training, survey, outcome, support)
        return outcome, training.failure

    def _problem_of(self, survey: Survey) -> LinearProblem:
        intercept = float(self.intercept_scaling) if self.fit_intercept else 0.0
        return LinearProblem(self.formulation, len(survey.classes), intercept, bool(self._switches.shrinking))

    def _costs_of(self, survey: Survey) -> Costs:
        of_all = self.formulation != "one-vs-rest" or len(survey.classes) == 2
        return Costs(float(self.C), survey.classes, survey.class_factors(self.class_weight), of_all)

    def _keep(self, training: DistributedRounds, survey: Survey, outcome: Outcome, support: tuple[int, int]) -> None:
        for name in ("dual_coef_", "support_", "costs_", "rest_costs_"):
            self.__dict__.pop(name, None)
        self.classes_, self._formulation = survey.classes, self.formulation
        W = training.weights()[:, : len(survey.classes)].T
        self._keep_weights(W)
        self.result_ = Result.of(
            outcome,
            solver="sdm",
            iterations=training.iterations(),
            support_patterns=support[0],
            support_vectors=support[1],
            operations=training.operations(),
            breakdown={},
        )
        self.n_iter_ = math.ceil(self.result_.iterations)


def local_work(survey: Survey, n_shares: int) -> float:
    """The passes over its rows that a share makes in a round, by what a pass and a message take on usual machines.

    Short rounds keep shares together, so that few passes do; a round should not be shorter than a few messages, though.
    Where a pass is no longer than that, rounds are of a whole one. Not measured, so that a fit can be repeated.
    """
    itemsize = survey.dtype.itemsize
    lanes = math.ceil(len(survey.classes) * itemsize / 64) * 64 // itemsize
    of_pass = (survey.values + 8 * sum(survey.rows)) * lanes / n_shares / _MULTIPLY_ADDS
    of_message = _MESSAGE + 2 * n_shares * (survey.n_features + 1) * lanes * itemsize / _BYTES
    share = _MESSAGES * of_message / of_pass
    return share if share < _SHORT else 1.0


# ---- On the workers ----


@dataclass(frozen=True)
class _Build:
    """Makes a share, on its worker."""

    problem: LinearProblem
    costs: Costs
    dtype: np.dtype[Any]

    def __call__(self, parts: list[CheckedPartition], number: int) -> _Share:
        part = joined(parts, self.dtype)
        labels, (own, rest) = self.costs.labels_of(part), self.costs.of(part)
        return _Share((part.X, labels, own, rest, self.problem, number))


class _Copy(NamedTuple):
    """The coefficients of a share on their way, in as few bytes as they need; at costs lowered to `ramp`."""

    values: NDArray[Any]
    classes: NDArray[Any]
    counts: NDArray[Any]
    ramp: float

    @classmethod
    def of(cls, coefficients: Coefficients, ramp: float, dtype: np.dtype[Any]) -> _Copy:
        values, classes, starts = coefficients
        counts = np.diff(starts)
        return cls(values.astype(dtype), _small(classes), _small(counts), ramp)

    def coefficients(self) -> Coefficients:
        """At full costs; where they were lowered, a rounding error away from the bounds."""
        values = self.values.astype(np.float64)
        if self.ramp < 1:
            values *= (1 - 1e-6) / self.ramp
        starts = np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])
        return values, self.classes.astype(np.int32), starts

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes + self.classes.nbytes + self.counts.nbytes)


def _small(numbers: NDArray[Any]) -> NDArray[Any]:
    return numbers.astype(np.min_scalar_type(numbers.max(initial=0)))


Call = tuple[str, tuple[Any, ...]]


class _Share:
    """A partition that does what it is sent, in the order of numbers, and undoes what was not accepted."""

    def __init__(self, made_from: tuple[Any, Any, Any, Any, LinearProblem, int]) -> None:
        self._made_from = made_from  # rows, labels, costs, the problem and the number of the share
        self._partition = Partition(*made_from)
        self._ramp = 1.0
        self._last = self._changed_in = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        """A copy would not change with the original."""
        raise TypeError("a share stays on its worker")

    def __sizeof__(self) -> int:
        """What Dask takes for the bytes that it occupies: those of the costs, since the rows may be of a partition."""
        return int(self._made_from[1].nbytes + self._made_from[2].nbytes)

    def run(self, number: int, accepted: int, calls: Sequence[Call]) -> list[Any]:
        """The answers to the calls; what changed in a run after the last accepted one is undone before."""
        with self._lock:
            if number <= self._last:
                raise RuntimeError(f"run {number} comes after {self._last}")
            self._last = number
            if self._changed_in > accepted:
                self._partition.take(0.0)
                self._changed_in = accepted
            return [self._answer(number, name, arguments) for name, arguments in calls]

    def _answer(self, number: int, name: str, arguments: tuple[Any, ...]) -> Any:
        if name in _WITH_CHANGE:
            self._changed_in = number
        elif name == "scale_costs":
            (self._ramp,) = arguments
        elif name == "copy":
            return _Copy.of(self._partition.coefficients(), self._ramp, self._made_from[0].dtype)
        elif name == "put_back":
            return self._put_back(*arguments)
        return getattr(self._partition, name)(*arguments)

    def _put_back(self, copy: _Copy, ramp: float) -> None:
        self._partition, self._ramp = Partition(*self._made_from, copy.coefficients()), ramp
        if ramp < 1:
            self._partition.scale_costs(ramp)


def _run(share: _Share, number: int, accepted: int, calls: Sequence[Call]) -> list[Any]:
    return share.run(number, accepted, calls)


# ---- Here ----


class _Abandoned(Exception):  # noqa: N818
    """Nobody wants to wait for the workers any longer."""


class _Turn:
    """When something is due that must not take more than its share of the time."""

    def __init__(self) -> None:
        self._ended, self._took = -math.inf, 0.0

    def is_due(self) -> bool:
        return time.perf_counter() - self._ended >= self._took / _SECURING

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Around the work, which must succeed."""
        began = time.perf_counter()
        yield
        self._ended = time.perf_counter()
        self._took = self._ended - began


class _Patience:
    """How long the workers are waited for."""

    def __init__(self, interrupt: Interrupt, time_limit: float | None) -> None:
        self._interrupt = interrupt
        self._allowance = _PATIENCE * max(1.0, 0.1 * (time_limit or 0.0))
        began = call_began(otherwise=time.perf_counter())
        self._end = math.inf if time_limit is None else began + time_limit
        self.for_certificate = False

    def is_over(self) -> bool:
        """At Ctrl-C or the limit of time; for the certificate some time later."""
        later = (_PATIENCE, self._allowance) if self.for_certificate else (0.0, 0.0)
        return time.perf_counter() > min(self._interrupt.at + later[0], self._end + later[1])


class DaskExecutor:
    """The `Executor` of shares: calls without an answer go along with the next one, so that a round is one message."""

    def __init__(self, shares: Shares, patience: _Patience) -> None:
        self.shares, self.patience = shares, patience
        self.bytes_sent = 0
        self._number = self._accepted = 0
        self._queued: list[Call] = []
        self._change: NDArray[Any] | None = None
        self._ramp = 1.0
        self._copies: list[_Copy | None] = [None] * len(shares)

    # What `Rounds` calls.

    def each(self, call: str, *arguments: Any) -> list[Any]:
        """The answers of all shares, in their order."""
        if call == "scale_costs":
            (self._ramp,) = arguments
        if call in _WITHOUT_ANSWER:
            self._queued.append((call, arguments))
            return [None] * len(self.shares)
        if call not in _WITH_CHANGE:
            return [answers[-1] for answers in self._run([(call, arguments)])]
        found = self._run([(call, arguments), ("change", ())])
        self._change = _sum([answers[-1] for answers in found])
        return [answers[-2] for answers in found]

    def total(self, call: str) -> NDArray[Any]:
        """The sum of the answers; a change has come with the answers to the visit."""
        if call == "change":
            assert self._change is not None
            return self._change
        return _sum(self.each(call))

    # What keeps training alive.

    def copy(self) -> None:
        """Take copies of the coefficients."""
        self._copies = list(self.each("copy"))

    def support(self) -> tuple[int, int]:
        """Examples with coefficients, and coefficients, as of the last copy."""
        copies = [copy for copy in self._copies if copy is not None]
        return sum(int(np.count_nonzero(copy.counts)) for copy in copies), sum(len(copy.values) for copy in copies)

    def _run(self, calls: list[Call]) -> list[list[Any]]:
        calls = [*self._queued, *calls]
        self._number += 1
        waiting = self.shares.ask(_run, self._number, self._accepted, calls)
        try:
            found = self._awaited(waiting)
        except (SharesLostError, _Abandoned) as ended:
            # What is queued is sent again, and does no harm twice.
            if isinstance(ended, SharesLostError):
                self._put_back(ended.lost)
            raise
        self._accepted = self._number
        self._queued = []
        self.bytes_sent += len(self.shares) * _bytes(calls) + _bytes(found)
        return found

    def _awaited(self, waiting: Generator[None, None, list[list[Any]]]) -> list[list[Any]]:
        while True:
            try:
                next(waiting)
            except StopIteration as done:
                found: list[list[Any]] = done.value
                return found
            if self.patience.is_over():
                waiting.close()
                raise _Abandoned

    def _put_back(self, lost: Sequence[int]) -> None:
        """Give shares that were made again the coefficients they last sent."""
        waiting = set(lost)
        while waiting:
            number = min(waiting)
            copy = self._copies[number]
            calls: list[Call] = [] if copy is None else [("put_back", (copy, self._ramp))]
            if copy is None and self._ramp < 1:
                calls = [("scale_costs", (self._ramp,))]
            self._number += 1
            try:
                completed_by_workers(self.shares.ask_one(number, _run, self._number, self._accepted, calls))
            except SharesLostError as again:
                waiting |= set(again.lost)
            else:
                waiting.remove(number)


class DistributedRounds:
    """`Rounds` on a cluster, as the training loop sees them: lost shares, and an end that comes in the middle."""

    def __init__(self, executor: DaskExecutor, **options: Any) -> None:
        self._executor = executor
        self.failure: ClusterError | None = None
        self._proven: tuple[Weights, Objectives] | None = None
        self._is_broken = False  # whether W is not that of the coefficients
        self._copying, self._proving = _Turn(), _Turn()
        while True:
            try:
                self._rounds = Rounds(executor, **options)
                return
            except SharesLostError:
                continue

    def advance(self) -> bool:
        """One round; True once the solver's own criterion holds, or no round is possible any more."""
        try:
            if self._is_broken:
                self._rounds.rebuild()
                self._is_broken = False
            is_optimal = self._rounds.advance()
            self._secure()
        except (SharesLostError, _Abandoned):
            self._is_broken = True
            return False
        except ClusterError as failure:
            self._fail(failure)
            return True
        return is_optimal

    def _secure(self) -> None:
        """Keep what is needed should workers be lost, or all of them."""
        if self._copying.is_due():
            with self._copying.taken():
                self._executor.copy()
        if self._proving.is_due():
            with self._proving.taken():
                self._prove(completed(self._rounds.evaluate()))

    def _prove(self, at: Objectives) -> None:
        self._proven = self._rounds.weights().copy(), at

    def estimate(self) -> Objectives | None:
        """As `Rounds` has it; nothing where the round was undone."""
        return self._rounds.estimate()

    def evaluate(self) -> FromScratch:
        """The objectives from scratch, of all shares."""
        self._executor.patience.for_certificate = True
        try:
            while self.failure is None:
                try:
                    with self._proving.taken():
                        at = yield from self._rounds.evaluate()
                except SharesLostError:
                    self._is_broken = True
                except _Abandoned:
                    self._is_broken = True
                    while True:  # until the loop gives up
                        yield
                except ClusterError as failure:
                    self._fail(failure)
                else:
                    self._prove(at)
                    return at
        finally:
            self._executor.patience.for_certificate = False
        assert self._proven is not None
        return self._proven[1]

    def iterations(self) -> float:
        """Passes over the data."""
        return self._rounds.iterations()

    def details(self) -> Mapping[str, Any]:
        """The rounds and the bytes that were sent."""
        return {"rounds": self._rounds.rounds, "bytes_sent": self._executor.bytes_sent}

    def weights(self) -> Weights:
        """Those of the last certificate, if the cluster was lost."""
        return self._rounds.weights() if self.failure is None or self._proven is None else self._proven[0]

    def support(self) -> tuple[int, int]:
        """Examples with coefficients, and coefficients; of the last copy where no other is to be had."""
        if self.failure is None:
            try:
                self._executor.patience.for_certificate = True
                self._executor.copy()
            except (SharesLostError, _Abandoned, ClusterError):
                pass
        return self._executor.support()

    def operations(self) -> dict[str, int]:
        """Counts for the result."""
        rounds = self._rounds
        counts = {"visits": rounds.visits, "moves": rounds.moves, "rounds": rounds.rounds}
        return {**counts, "bytes_sent": self._executor.bytes_sent, "shares_lost": self._executor.shares.lost}

    def _fail(self, failure: ClusterError) -> None:
        """Go back to the model whose gap is known; where there is none, there is nothing to return."""
        if self._proven is None:
            raise failure
        self.failure = failure


def _sum(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total


def _bytes(found: Any) -> int:
    """Of the arrays in lists and tuples."""
    if isinstance(found, np.ndarray):
        return int(found.nbytes)
    return sum(map(_bytes, found)) if isinstance(found, list | tuple) else 0
