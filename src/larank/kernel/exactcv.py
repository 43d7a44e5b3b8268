"""The search over costs and gamma for the exact kernel solver, on kernel values that all folds share.

The training of a fold is a training on all examples in which the held-out examples have no cost. Therefore all folds
have the same rows of kernel values, and the pass that certifies a model also scores the held-out examples. Along the
costs of a fold each model starts from the model before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from larank import declare
from larank.base import unfitted
from larank.blocks import Provider, provider_for
from larank.blocks.definite import indefinite_values
from larank.blocks.kernels import Kernel, PrecomputedKernel, kernel_for, with_bias
from larank.blocks.provider import pieces
from larank.blocks.shared import SharedProvider, SharedValues, matrix_nbytes
from larank.costs import check_two_classes, example_costs
from larank.crossvalidation import (
    Fold,
    FoldedExamples,
    Request,
    Scoring,
    Tally,
    Trained,
    folds_of,
    follow,
    run_folds,
    time_of_search,
)
from larank.declare import ParameterError
from larank.kernel.activeset import ActiveSetSettings, ActiveSetTraining
from larank.kernel.exact import PRECISION, SHARE_OF_MATRIX, MulticlassSVC, finite_costs
from larank.kernel.machine import enough_memory, says_enough_memory, warn_if_indefinite
from larank.kernel.problem import Problem
from larank.kernel.sharedset import SharedTraining
from larank.training import Limits, Outcome, Progress, train

_Float = NDArray[np.float64]

_FACTORS = (0.1, 10.0)  # of "scale": from where to where a number of values of gamma lies
_ROOM_OF_FOLD = 0.5  # times that matrix, for a training to have the values of each class side by side


@dataclass(frozen=True)
class _FoldProblem:
    """What is solved for a fold, at a cost of one: the problem of all examples, without costs for those held out."""

    fold: Fold
    classes: NDArray[Any]
    problem: Problem


@dataclass(frozen=True)
class _Taken:
    """A kernel whose values are in use: their matrix, where it is shared, and why they are not definite."""

    kernel: Kernel
    matrix: NDArray[Any] | None
    indefinite: str


class SharedSearch:
    """The trainings of a search, on all examples and on the examples of each fold."""

    def __init__(self, request: Request, X: Any, y: Any, sample_weight: Any) -> None:
        self.estimator, self.interrupt, self.time_limit = request.estimator, request.interrupt, request.time_limit
        self.threads = request.n_threads
        first = _first_gamma(self.estimator, request.gammas)
        self.model = model = unfitted(self.estimator, C=1.0, gamma=first)
        declare.check(model)
        X, y = model._validated(X, y, reset=True)
        self.problem, _ = model.stated(X, y, sample_weight)
        weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        self.X, self.y, self.weight = self.examples = FoldedExamples(X, y, weight)
        self.seed = int(check_random_state(self.estimator.random_state).randint(2**31 - 1))
        self.folds = folds_of(request.cv, X, y)
        self._of_folds = [self._problem_of(fold, number) for number, fold in enumerate(self.folds)]
        self.features = self.problem.X
        self.room = model.memory_limit - enough_memory(model, X)  # bytes for kernel values
        self.nbytes = matrix_nbytes(X, np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64)
        self.shares = self.nbytes <= min(self.room, SHARE_OF_MATRIX * model.memory_limit)
        self.values = SharedValues(self.features, self._computing, SHARE_OF_MATRIX * model.memory_limit)
        self.taken: list[_Taken] = []
        self.limits = Limits(None, model._most_passes, time_of_search(request.time_limit))
        self.gammas = self._gammas(request.gammas)
        self.kernels = [self._kernel(gamma) for gamma in ([first] if self.gammas is None else self.gammas.tolist())]
        self.about = (
            f"{model.formulation}, {model._kernel_name()}, {len(y)} examples, {len(model.classes_)} classes, memory "
            f"limit {model.memory_limit / 1e6:.0f} MB"
        )

    # Kernels.

    def _gammas(self, gammas: Any) -> _Float | None:
        """Return the values of gamma to try, as numbers."""
        if gammas is None:
            return None
        usual = self._plain_kernel("scale")
        if not hasattr(usual, "gamma"):
            raise ParameterError(
                "gammas", f"must be None with kernel={self.model.kernel!r}, which has no gamma; got {gammas!r}"
            )
        if declare.is_whole(gammas):
            return float(usual.gamma) * (np.geomspace(*_FACTORS, int(gammas)) if gammas > 1 else np.ones(1))
        return np.array([self._plain_kernel(gamma).gamma for gamma in gammas])

    def _plain_kernel(self, gamma: float | str) -> Any:
        model = self.model
        return kernel_for(model.kernel, gamma=gamma, degree=model.degree, coef0=model.coef0, X=self.X)

    def _kernel(self, gamma: float | str) -> Kernel:
        kernel = self._plain_kernel(gamma)
        return with_bias(kernel) if self.model.fit_intercept else kernel

    # Problems of folds.

    def _problem_of(self, fold: Fold, number: int) -> _FoldProblem:
        model, whole, y = self.model, self.problem, self.y
        classes = fold.classes(y, number)
        weight = None if self.weight is None else self.weight[fold.train]
        costs = np.zeros(len(y))
        costs[fold.train] = example_costs(1.0, fold.train, y[fold.train], classes, weight, model.class_weight)
        check_two_classes(y[fold.train], costs[fold.train])
        known = np.searchsorted(model.classes_, classes)
        labels = np.where(np.isin(y, classes), np.searchsorted(classes, y), 0).astype(np.int32)
        delta = np.ascontiguousarray(whole.delta[np.ix_(known, known)])
        return _FoldProblem(
            fold, classes, replace(whole, labels=labels, costs=costs, n_classes=len(classes), delta=delta)
        )

    # Kernel values.

    def _computing(self, kernel: Kernel) -> Provider:
        """What computes kernel values from the examples, in all threads."""
        return provider_for(kernel, self.features, n_jobs=self.threads)

    def _take(self, kernels: list[Kernel]) -> list[_Taken]:
        """From now on kernel values are those of these kernels."""
        if not all(any(kernel is taken.kernel for taken in self.taken) for kernel in kernels):
            self.taken = []
            for place, kernel in enumerate(kernels):
                provider = self._computing(kernel)
                indefinite = indefinite_values(provider, self.features, np.flatnonzero(self.problem.costs > 0))
                is_there = isinstance(kernel, PrecomputedKernel) and not kernel.plus and self.room >= 0
                matrix = self.values.of(kernel, place) if self.shares or is_there else None
                self.taken.append(_Taken(kernel, matrix, indefinite))
        return [taken for taken in self.taken if any(kernel is taken.kernel for kernel in kernels)]

    def _kernels_at_once(self, count: int) -> int:
        """How many to have the values of: with more of them, threads that have done all folds of one need not wait.

        Beside these matrices and that of the products there must be room for as many trainings as threads.
        """
        if not self.shares or self.threads == 1:
            return 1
        most = min(self.room - _ROOM_OF_FOLD * self.threads * self.nbytes, SHARE_OF_MATRIX * self.model.memory_limit)
        return max(1, min(count, int(most / self.nbytes) - 1))

    def _source(self, taken: _Taken) -> Provider | None:
        """Return what computes the values of a matrix; None if they were given."""
        is_given = isinstance(taken.kernel, PrecomputedKernel) and not taken.kernel.plus
        return None if is_given else self._computing(taken.kernel)

    def _provider(self, taken: _Taken, threads: int, source: Provider | None) -> Provider:
        if taken.matrix is not None:
            provider: Provider = SharedProvider(taken.kernel, taken.matrix, threads, source, self.features)
        else:
            provider = provider_for(taken.kernel, self.features, n_jobs=threads)
            provider.expect(self.features, self.model.memory_limit)
        provider.indefinite = taken.indefinite
        return provider

    def _training(
        self, taken: _Taken, problem: Problem, costs: _Float, at_once: int, source: Provider | None = None
    ) -> ActiveSetTraining:
        """One of several at the same time; `source` computes values more precise than those of the matrix."""
        model, limit = self.model, self.model.memory_limit
        if taken.matrix is not None:
            problem, limit = replace(problem, X=np.arange(len(costs))), limit - self.values.nbytes
        settings = ActiveSetSettings(model.tol, model._INIT, model._SHRINKING, limit / at_once)
        provider = self._provider(taken, max(1, self.threads // at_once), source)
        kind = ActiveSetTraining if taken.matrix is None else SharedTraining
        return kind(settings, replace(problem, costs=costs), provider, np.random.RandomState(self.seed))

    def _at_once(self, trainings: int) -> int:
        """How many to work on at the same time: each must have memory for all kernel values it may need."""
        if self.taken[0].matrix is None:
            return 1
        room = int((self.room - self.values.nbytes) / (_ROOM_OF_FOLD * self.nbytes))
        return max(1, min(self.threads, trainings, room))

    # Trainings.

    def run(self, Cs: _Float, scoring: Scoring, scores: _Float, tally: Tally) -> None:
        """Write the scores for folds, costs and kernels."""
        with says_enough_memory(self.model, self.X):
            for some in pieces(len(self.kernels), self._kernels_at_once(len(self.kernels))):
                if tally.is_over:
                    break
                self._take(self.kernels[some])
                self._run_folds(Cs, scoring, scores[:, :, some], tally)

    def _run_folds(self, Cs: _Float, scoring: Scoring, scores: _Float, tally: Tally) -> None:
        trainings = len(self.taken) * len(self._of_folds)
        at_once = self._at_once(trainings)

        def run(number: int) -> None:
            kernel, fold = divmod(number, len(self._of_folds))
            path = _FoldPath(self, self.taken[kernel], self._of_folds[fold], at_once)
            follow(path, path.of.fold, Cs, self.examples, scoring, scores[fold, :, kernel], tally)

        run_folds(run, trainings, at_once)

    def refit(self, C: float, gamma: int) -> Trained:
        """Train a model on all examples, with the value of gamma of this index."""
        changed: dict[str, Any] = {"C": C, "random_state": self.seed, "time_limit": self.time_limit}
        if self.gammas is not None:
            changed["gamma"] = float(self.gammas[gamma])
        model = unfitted(self.estimator, **changed)
        model._begin_like(self.model)
        if self.gammas is not None:
            model.gamma_ = float(self.gammas[gamma])
        (taken,) = self._take([self.kernels[gamma]])
        training = self._training(taken, self.problem, finite_costs(C * self.problem.costs), 1, self._source(taken))
        with training.provider.threads():
            outcome = model._run(training, interrupt=self.interrupt)
        model._keep_model(training, outcome, self.X)
        provider = training.provider

        def warn(stacklevel: int) -> None:
            warn_if_indefinite(provider.indefinite, stacklevel=stacklevel + 1)
            model._warn_if_early(outcome, PRECISION[provider.dtype.name], stacklevel=stacklevel + 1)

        return Trained(model, outcome, warn)


class _FoldPath:
    """The models of one fold and kernel, with larger and larger costs."""

    def __init__(self, search: SharedSearch, taken: _Taken, of: _FoldProblem, at_once: int) -> None:
        self.classes, self.of = of.classes, of
        self._search, self._taken, self._at_once = search, taken, at_once
        self._training: ActiveSetTraining | None = None

    def train(self, C: float) -> Outcome:
        """Train the next model, from the model before."""
        search, costs = self._search, finite_costs(C * self.of.problem.costs)
        if self._training is None:
            self._training = search._training(self._taken, self.of.problem, costs, self._at_once)
        else:
            self._training.raise_costs(costs)
        with self._training.provider.threads():
            return train(self._training, search.limits, Progress(), interrupt=search.interrupt)

    def decisions(self) -> NDArray[Any]:
        """Return the decision function of this model on the held-out examples."""
        assert self._training is not None
        found: NDArray[Any] = self._training.scale * self._training.scores[self.of.fold.test]
        return found[:, 1] - found[:, 0] if len(self.classes) == 2 else found


def _first_gamma(estimator: MulticlassSVC, gammas: Any) -> Any:
    if gammas is None:
        return estimator.gamma
    return "scale" if declare.is_whole(gammas) else next(iter(gammas))
