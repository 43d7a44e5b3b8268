"""`larank.dask.LinearSGDClassifier`: passes of stochastic gradient descent on every share, and averaging of weights.

Each round the workers make one pass over their shares, all from the same weights, and those that come out are averaged,
weighted by rows. The lengths of steps go on from round to round. A round is a function of the share and of what is
here, so a worker that dies costs its part of one round, which is done again.

The lower bound of the objective is the mean of those of the shares' own problems:
  min_W sum_j n_j/n P_j(W)  >=  sum_j n_j/n min_W P_j(W)  >=  sum_j n_j/n D_j.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np
from distributed import Client
from scipy.sparse import issparse, vstack
from sklearn.utils import check_random_state

from larank import declare, parameters
from larank.dask.estimators import OnPartitions
from larank.dask.shares import ClusterError, Partitions, Shares, client_for, completed_by_workers, unfinished
from larank.dask.survey import CheckedPartition, Costs, Survey, joined
from larank.declare import ParameterError
from larank.linear.gradientmachine import (
    GradientMachine,
    GradientProblem,
    LabelledRows,
    Start,
    State,
    precision_of_weights,
)
from larank.linear.gradientmachine import visits_per_regularisation as visits_between
from larank.linear.gradientstart import StartSearch, sample_size
from larank.linear.gradienttraining import GradientTraining
from larank.linear.labels import StreamLabels
from larank.linear.sgd import LinearSGDClassifier as Ordinary
from larank.publishing import next_model
from larank.training import FromScratch, ObjectiveValues, Outcome, completed


class LinearSGDClassifier(OnPartitions, Ordinary):
    """The `larank.LinearSGDClassifier` of a Dask collection: passes over the shares of the workers, and averaging.

    Parameters and attributes are those of `larank.LinearSGDClassifier`. Early stopping and warm starts are not for
    collections. The fitted model is an ordinary one, see `local`; `partial_fit` goes on with local data.

    If rows are assigned to partitions at random, the mean of the weights of the shares is close to the weights of all
    data. If partitions differ, a larger `max_iter` brings it closer. `larank.dask.LinearMulticlassSVC` reaches the
    optimum of all data with any partitions.
    """

    _ordinary = Ordinary

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        certify: bool | Literal["auto"] = "auto",
        client: Client | None = None,
        worker_timeout: float = 30.0,
    ) -> Self:
        """Train on a Dask collection.

        Parameters
        ----------
        X : Dask array or data frame, or list of delayed partitions
            The examples. Chunks may be dense or CSR, of any sizes, known or not.
        y, sample_weight : collections with the partitions of X
            Their labels and, optionally, factors on the loss.
        certify : bool or "auto", default="auto"
            Whether to compute the objective and a lower bound. If False, `result_` holds an estimate made during
            training. "auto" means True.
        client : distributed.Client, optional
            Of the cluster to train on; by default the one in use.
        worker_timeout : float, default=30.0
            The seconds to wait for a worker where none is left.

        Returns
        -------
        LinearSGDClassifier
            Itself, fitted.

        Raises
        ------
        ClusterError
            If the cluster is lost in the middle. The estimator then has the last model that is known to be good.
        """
        parameters.certify(certify)
        parameters.positive("worker_timeout", worker_timeout, zero=True)
        client = client_for(client)
        with next_model(self) as model:
            declare.check(model)
            model._check_acts_on_partitions()
            partitions = Partitions(client, X, y, sample_weight)
            outcome, failure = model._fit_partitions(partitions, worker_timeout, bool(certify))
        self._warn_if_early(outcome)
        if failure is not None:
            raise failure.with_model(self.local())
        return self

    def predict_proba(self, X: Any) -> Any:
        """The probabilities of the classes, with ``loss="log_loss"``, of a Dask collection as a lazy collection."""
        return self._answer("predict_proba", X)

    def _check_acts_on_partitions(self) -> None:
        for name in ("early_stopping", "warm_start"):
            if getattr(self, name):
                raise ParameterError(name, f"must be False for Dask collections; got {getattr(self, name)!r}")

    def _fit_partitions(
        self, partitions: Partitions, worker_timeout: float, certify: bool
    ) -> tuple[Outcome, ClusterError | None]:
        survey = partitions.survey
        n_classes = len(survey.classes)
        like_own = self.formulation == "joint" or self.class_weight is None or n_classes == 2
        costs = Costs(1.0, survey.classes, survey.class_factors(self.class_weight), like_own)
        shares = Shares(partitions, _GradientBuild(costs, survey.dtype), worker_timeout)
        survey.describe(self)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=1 + len(shares))
        start, visits = self._first_step(shares, survey, int(seeds[0]))
        problem = GradientProblem.of(self)
        dtype = precision_of_weights(_Shaped(survey), n_classes)
        states = [
            GradientMachine(problem, dtype, survey.n_features, n_classes, start, int(seed)).state()
            for seed in seeds[1:]
        ]
        task = _Task(problem, n_classes, start, bool(self.shuffle))
        epochs = self._passes_over(sum(survey.rows), survey.values)
        training = AveragedDescent(shares, task, states, epochs, certify)
        training.search_visits = visits
        about = f"{sum(survey.rows)} examples, {n_classes} classes, {len(shares)} shares"
        outcome = self._train(cast(GradientTraining, training), StreamLabels(survey.classes), about)
        operations = {"rounds": training.rounds, "bytes_sent": training.bytes_sent, "shares_lost": shares.lost}
        self.result_ = replace(self.result_, operations={**self.result_.operations, **operations})
        return outcome, training.failure

    def _first_step(self, shares: Shares, survey: Survey, seed: int) -> tuple[Start, int]:
        """The start that is best on a sample of all shares, which comes here for it; and the visits that it took."""
        rows = sum(survey.rows)
        sample = _joined_rows(completed_by_workers(shares.ask_until_answered(_sample, sample_size(rows) / rows, seed)))
        if self.t0 is not None:
            return Start(self.t0, visits_between(sample.X, self.algorithm)), 0
        search = StartSearch(GradientProblem.of(self), sample, len(survey.classes), None, seed)
        for _ in search.trials():
            pass
        return search.start(survey.n_features), search.visits


class _Shaped:
    """What of a table of examples tells the precision of weights."""

    def __init__(self, survey: Survey) -> None:
        self.shape, self.dtype = (sum(survey.rows), survey.n_features), survey.dtype


def _joined_rows(parts: list[LabelledRows]) -> LabelledRows:
    parts = [part for part in parts if len(part)]
    Xs = [part.X for part in parts]
    X = vstack(Xs, format="csr") if issparse(Xs[0]) else np.concatenate(Xs)
    rest = [np.concatenate([getattr(part, name) for part in parts]) for name in ("labels", "costs", "rest_costs")]
    return LabelledRows(X, *rest)


# ---- On the workers ----


@dataclass(frozen=True)
class _GradientBuild:
    """Makes the rows of a share, on its worker; those without a cost are left out."""

    costs: Costs
    dtype: np.dtype[Any]

    def __call__(self, parts: list[CheckedPartition], number: int) -> LabelledRows:
        part = joined(parts, self.dtype)
        own, rest = self.costs.of(part)
        rows = LabelledRows(part.X, self.costs.labels_of(part), own, rest)
        counts = np.maximum(own, rest)
        return rows if counts.all() else rows.at(np.flatnonzero(counts))


class _Pass(NamedTuple):
    """What a pass over a share left: the state, the rows, losses and errors that were seen, and a lower bound."""

    state: State
    rows: int
    loss: float
    errors: int
    dual: float


class _Task(NamedTuple):
    """What the workers need to know to go on from a state."""

    problem: GradientProblem
    n_labels: int
    start: Start
    shuffled: bool

    def machine(self, state: State) -> GradientMachine:
        return GradientMachine.from_state(self.problem, self.n_labels, self.start, state)


def _descend(rows: LabelledRows, state: State, task: _Task, with_dual: bool) -> _Pass:
    """One pass; the bound is that of the derivatives at which the rows were visited."""
    if not len(rows):
        return _Pass(state, 0, 0.0, 0, 0.0)
    machine = task.machine(state)
    before = machine.session.counters
    loss, errors = before.loss, before.errors
    machine.feed(rows, shuffled=task.shuffled)
    if with_dual:
        machine.session.begin_bound()
    with np.errstate(all="ignore"):
        machine.session.run(2**62)
    after = machine.session.counters
    dual = machine.session.bound() if with_dual else 0.0
    return _Pass(machine.state(), len(rows), after.loss - loss, after.errors - errors, dual)


def _objectives(rows: LabelledRows, state: State, task: _Task, with_dual: bool) -> tuple[int, float, float]:
    """Rows, primal objective and lower bound of the problem of a share alone."""
    if not len(rows):
        return 0, 0.0, 0.0
    at = completed(task.machine(state).objectives(rows, with_dual=with_dual))
    return len(rows), at.primal, at.dual


def _sample(rows: LabelledRows, share: float, seed: int) -> LabelledRows:
    """Some random rows."""
    size = math.ceil(share * len(rows))
    return rows.at(np.sort(np.random.RandomState(seed).permutation(len(rows))[:size]))


# ---- Here ----


class AveragedDescent:
    """The rounds as the training loop sees them."""

    has_examples = True  # the survey of the partitions has found some

    def __init__(self, shares: Shares, task: _Task, states: list[State], epochs: int, certify: bool) -> None:
        self.plan = SimpleNamespace(epochs=epochs, patience=math.inf, held=shares if certify else None)
        self.seconds: dict[str, float] = {}
        self.search_visits = 0
        self.failure: ClusterError | None = None
        self.bytes_sent = 0
        self._shares, self._task, self._states = shares, task, states
        self.rounds = 0
        self._is_new = False
        self._loss, self._error = math.nan, math.nan
        self._dual = 0.0  # the best lower bound so far, which no loss is below
        self._proven: tuple[State, ObjectiveValues] | None = None
        self._work = self._rounds()

    def close(self) -> None:
        """Give up what the workers are doing."""
        self._work.close()

    def settle(self) -> GradientMachine:
        """A machine with the mean of the weights."""
        return self._task.machine(self._states[0])

    def advance(self) -> bool:
        """Wait a moment for the workers; True once all rounds are made, or none can be any more."""
        try:
            return next(self._work)
        except ClusterError as failure:
            self._fail(failure)
            return True

    def estimate(self) -> ObjectiveValues | None:
        """The objective by the losses of the last round, each as it was when its example came."""
        if not self._is_new:
            return None
        self._is_new = False
        norm = self._task.problem.alpha / 2 * self.settle().session.squared_norm
        return ObjectiveValues(max(self._dual, norm + self._loss), self._dual, math.nan)

    def evaluate(self) -> FromScratch:
        """The objective from scratch, and a lower bound: the mean of those of the shares' own problems."""
        return (yield from self._evaluated(with_dual=True))

    def look(self) -> FromScratch:
        """The objective from scratch."""
        return (yield from self._evaluated(with_dual=False))

    def _evaluated(self, *, with_dual: bool) -> FromScratch:
        if self.failure is None:
            state = self._states[0]
            try:
                found = yield from self._shares.ask_until_answered(_objectives, state, self._task, with_dual)
            except ClusterError as failure:
                self._fail(failure)
            else:
                n = sum(rows for rows, _, _ in found)
                primal = sum(rows * primal for rows, primal, _ in found) / n
                self._dual = max(self._dual, sum(rows * dual for rows, _, dual in found) / n)
                self._proven = state, ObjectiveValues(max(primal, self._dual), self._dual, math.nan)
        assert self._proven is not None
        return self._proven[1]

    def _fail(self, failure: ClusterError) -> None:
        """Go back to the model whose objective is known; where there is none, there is nothing to return."""
        if self._proven is None:
            raise failure
        self.failure = failure
        self._states[0] = self._proven[0]

    def iterations(self) -> float:
        """Passes over the data so far."""
        return self.rounds

    def details(self) -> Mapping[str, Any]:
        """The error of the last round, each example as it was classified when it came."""
        return {} if math.isnan(self._error) else {"online_error": self._error}

    def _rounds(self) -> Generator[bool]:
        while self.rounds < self.plan.epochs:
            is_late = self.rounds >= self.plan.epochs // 2  # where weights, and the bound they give, are better
            with_dual = self.plan.held is not None and is_late
            asked = self._shares.ask_until_answered(_descend, self._task, with_dual, each=self._states)
            found: list[_Pass] = yield from unfinished(asked)
            self._states = _averaged(found)
            self.rounds += 1
            n = sum(each.rows for each in found)
            self._loss, self._error = sum(each.loss for each in found) / n, sum(each.errors for each in found) / n
            self.bytes_sent += 2 * sum(array.nbytes for state in self._states for array in state.values())
            self._dual = max(self._dual, sum(each.rows * each.dual for each in found) / n)
            self._is_new = True
            yield self.rounds == self.plan.epochs


def _averaged(passes: list[_Pass]) -> list[State]:
    """The states of all shares, each with the mean weights of all."""
    rows = np.array([each.rows for each in passes])
    means: State = {}
    for name in ("weights", "average"):
        if name in passes[0].state:
            tables = [each.state[name] for each in passes]
            means[name] = np.average(tables, axis=0, weights=rows).astype(tables[0].dtype)
    return [{**each.state, **means} for each in passes]
