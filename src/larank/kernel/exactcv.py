"""The exact kernel multiclass SVM with its cost and gamma chosen by cross-validation, on kernel values that are shared.

The training of a fold is one on all examples, of which those that are held out have no cost. So all folds have the same
rows of kernel values, and the look that certifies a model has also scored what was held out. Along the costs of a fold
each model starts from the one before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from larank import declare, parameters
from larank.base import check_two_classes, example_costs
from larank.blocks import Provider, provider_for
from larank.blocks.definite import indefinite_values
from larank.blocks.kernels import Kernel, PrecomputedKernel, kernel_for, kernels_with, with_bias
from larank.blocks.provider import pieces
from larank.blocks.shared import SharedProvider, SharedValues, matrix_nbytes
from larank.blocks.workers import Workers
from larank.crossvalidation import (
    SEARCHED,
    Choice,
    Fold,
    Scoring,
    Tally,
    costs_of,
    folds_of,
    forget_fitted,
    run_folds,
    single_of,
    time_of_search,
)
from larank.data.models import persistable
from larank.data.schema import floats, given
from larank.declare import parameter
from larank.docstrings import with_paragraphs
from larank.kernel.activeset import ActiveSetSettings, ActiveSetTraining
from larank.kernel.exact import (
    FITTED_EXACTLY,
    PRECISION,
    SHARE_OF_MATRIX,
    ExactClassifier,
    MulticlassSVC,
    finite_costs,
)
from larank.kernel.machine import enough_memory, says_enough_memory, warn_if_indefinite
from larank.kernel.problem import Problem
from larank.kernel.sharedset import SharedTraining
from larank.parameters import Weighted
from larank.publishing import next_model
from larank.training import Interrupt, Limits, Outcome, Progress, Status, first_interrupt, progress_for, train

_Float = NDArray[np.float64]

_FACTORS = (0.1, 10.0)  # of "scale": from where to where a number of values of gamma lies
_ROOM_OF_FOLD = 0.5  # times that matrix, for a training to have the values of each class side by side


@with_paragraphs
@persistable(
    **FITTED_EXACTLY,
    **SEARCHED,
    gammas_=given(floats("n_gammas", least=0), when=lambda scope: scope.known["kernel"] in kernels_with("gamma")),
    scores_=floats("n_folds", "n_costs", "n_candidates", finite=False),
)
class MulticlassSVCCV(Weighted, ExactClassifier):
    """Multiclass support vector machine whose cost and gamma are chosen by cross-validation.

    It finds what a search over fits of `MulticlassSVC` would find, in a fraction of the time: folds share their kernel
    values, and for each of them models with larger costs start from those with smaller ones.

    Attributes
    ----------
    Cs_ : ndarray of shape (n_costs,)
        The costs that were tried.
    gammas_ : ndarray of shape (n_gammas,)
        The values of gamma that were tried, of a kernel that has one.
    scores_ : ndarray of shape (n_folds, n_costs, n_gammas)
        The scores of held-out examples; NaN where training ended early. Without a gamma the last size is 1.
    C_ : float
        The cost with the best mean score over folds; of several the first, and then that with the first gamma.
    best_score_ : float
        That mean.
    [model]
    [n_support_]
    dual_coef_ : csr_matrix of shape (n_support, n_classes)
        The coefficients ``beta`` of the dual solution. Those of a pattern add up to zero.
    support_costs_ : ndarray of shape (n_support,)
        `C_` times the weights of each support pattern.
    scale_ : float
        What the scores of `dual_coef_` are multiplied by, close to 1: where the primal objective is smallest.
    [intercept_]
    [coef_]
    [result_]

    Examples
    --------
    >>> from larank import MulticlassSVCCV
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> X, y = letter.X_train[:1000].astype("float32"), letter.y_train[:1000]
    >>> model = MulticlassSVCCV(Cs=[1, 10, 100], gammas=[0.01, 0.03], cv=3, random_state=0).fit(X, y)
    >>> model.scores_.shape
    (3, 3, 2)
    >>> model.C_, model.gamma_
    (10.0, 0.01)
    """

    Cs: Any = parameter(
        "The costs to try. A number is that of values from 0.01 to 1000, each the same multiple of the one before.",
        default=10,
        check=parameters.costs_to_try,
        form="int or sequence of float",
    )
    gammas: Any = parameter(
        'The values of `gamma` to try, with a kernel that has one; "scale" and "auto" may be among them, and are '
        'those of all examples. A number is that of values from 0.1 to 10 times "scale", each the same multiple of '
        "the one before.",
        default=5,
        check=parameters.gammas_to_try,
        form="int or sequence of float",
    )
    cv: Any = parameter(
        "The folds: a number of stratified ones, by default 5, or what scikit-learn's `check_cv` takes. A class that "
        "a fold has no examples of to train on is never predicted there.",
        default=None,
        form="int, splitter or iterable",
    )
    scoring: Any = parameter(
        "What to choose by, as in scikit-learn; the accuracy if not given.",
        default=None,
        form="str or callable",
    )
    refit: bool = parameter(
        "Whether to train a model on all examples with what was chosen; without it there is nothing to predict with.",
        default=True,
    )
    formulation: Literal["crammer-singer", "weston-watkins"] = parameter(
        "The loss of an example: its largest margin violation, or the sum of all of them.",
        default="crammer-singer",
    )
    fit_intercept: bool = parameter(
        "Whether to add 1 to all kernel values, which gives every class a regularised bias.",
        default=False,
    )
    cost_matrix: ArrayLike | None = parameter(
        "The margin ``Delta(y, y')`` by which the score of class ``y`` must exceed that of ``y'``, in the order of "
        "`classes_`; 1 off the diagonal if not given.",
        default=None,
        form="array of shape (n_classes, n_classes)",
    )
    tol: float = parameter(
        "The relative duality gap, (primal - dual) / primal, to stop at, in every training.",
        default=0.001,
        above=0,
    )
    max_iter: int = parameter(
        "The passes over the data after which a training stops.",
        default=1000,
        least=1,
    )
    time_limit: float | None = parameter(
        "The seconds after which training stops with a warning. Three quarters of them are for the search. If they "
        "are not sufficient, a warning says how many settings were scored; the best of these is trained. If no "
        "setting was scored, `fit` raises a ValueError.",
        default=None,
        above=0,
    )
    init: Literal["larank", "zero"] = parameter(
        "Where the active set starts: from one pass of LaRank, or from nothing.",
        default="larank",
    )
    shrinking: bool = parameter(
        "Whether examples far beyond their margin are looked at less often, where kernel values are not shared.",
        default=True,
    )
    memory_limit: float = parameter(
        "The bytes for kernel values, support patterns and coefficients. Where the matrix of all kernel values takes "
        "more than half of it, values are computed as they are needed; the results are the same.",
        default=4000000000.0,
        above=0,
        most=4611686018427387904,
    )

    @with_paragraphs
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Search, and train on `X` and `y` with what was found.

        Parameters
        ----------
        [examples]
        sample_weight : array of shape (n_samples,), optional
            Factors on ``C`` per example, not negative. They count in the scores, too, if the scorer takes them.

        [fitted]
        """
        with next_model(self) as model, first_interrupt() as interrupt:
            choice, ended = model._fit(X, y, sample_weight, interrupt)
        choice.warn_if_cut(stacklevel=2)
        if ended is not None:
            outcome, provider = ended
            warn_if_indefinite(provider.indefinite, stacklevel=2)
            self._warn_if_early(outcome, PRECISION[provider.dtype.name], stacklevel=2)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model, which a search alone does not make."""
        return hasattr(self, "dual_coef_")

    def _resolved_kernel(self, X: Any) -> Kernel:
        gamma = getattr(self, "gamma_", 1.0)
        return kernel_for(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0, X=X)

    def _fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, interrupt: Interrupt
    ) -> tuple[Choice, tuple[Outcome, Provider] | None]:
        """Search, and train the model, if there is to be one: how that ended, with which kernel values."""
        self._check_parameters()
        scoring = Scoring(self.scoring)
        forget_fitted(self)
        X, y = self._validated(X, y, reset=True)
        gamma = "scale" if declare.is_whole(self.gammas) else next(iter(self.gammas))
        whole = single_of(self, MulticlassSVC, C=1.0, gamma=gamma)
        problem, _ = whole.stated(X, y, sample_weight)
        self.classes_ = whole.classes_
        search = _Search(self, problem, X, y, sample_weight, interrupt)
        self.Cs_, kernels = costs_of(self.Cs), self._kernels(X)
        self.scores_, status = search.run(self.Cs_, kernels, scoring)
        choice = Choice.of(self.scores_, status, self.time_limit)
        best_C, best_kernel = choice.place
        self.best_score_, self.C_ = choice.score, float(self.Cs_[best_C])
        if hasattr(self, "gammas_"):
            self.gamma_ = float(self.gammas_[best_kernel])
        if not self.refit:
            return choice, None
        final = single_of(self, MulticlassSVC, C=self.C_, gamma=getattr(self, "gamma_", 1.0))
        training, outcome = search.trained(final, kernels[best_kernel], finite_costs(self.C_ * problem.costs))
        final._keep_model(training, outcome, X)
        self.__dict__ |= {name: value for name, value in vars(final).items() if name.endswith("_")}
        self.result_ = choice.mark(final.result_)
        return choice, (outcome, training.provider)

    def _kernels(self, X: Any) -> list[Kernel]:
        """Those to try, one for each gamma; what the data say of these is kept."""
        kernels = [self._kernel_with("scale", X)]
        if hasattr(kernels[0], "gamma"):
            if declare.is_whole(self.gammas):
                count = int(self.gammas)
                self.gammas_ = float(kernels[0].gamma) * (np.geomspace(*_FACTORS, count) if count > 1 else np.ones(1))
            else:
                self.gammas_ = np.array([self._kernel_with(gamma, X).gamma for gamma in self.gammas])
            kernels = [self._kernel_with(float(gamma), X) for gamma in self.gammas_]
        return [with_bias(kernel) for kernel in kernels] if self.fit_intercept else kernels

    def _kernel_with(self, gamma: float | str, X: Any) -> Any:
        return kernel_for(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0, X=X)


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


class _Search:
    """The trainings of a search, on all examples and on those of folds."""

    def __init__(
        self,
        model: MulticlassSVCCV,
        problem: Problem,
        X: Any,
        y: NDArray[Any],
        sample_weight: Any,
        interrupt: Interrupt,
    ) -> None:
        self.model, self.problem, self.X, self.y, self.interrupt = model, problem, X, y, interrupt
        self.weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        self.seed = int(check_random_state(model.random_state).randint(2**31 - 1))
        self.folds = [self._problem_of(fold, number) for number, fold in enumerate(folds_of(model.cv, X, y))]
        self.threads = Workers(model._threads()).count
        self.examples = problem.X
        self.room = model.memory_limit - enough_memory(model, X)  # for kernel values
        self.nbytes = matrix_nbytes(X, np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64)
        self.shares = self.nbytes <= min(self.room, SHARE_OF_MATRIX * model.memory_limit)
        self.values = SharedValues(self.examples, self._computing, SHARE_OF_MATRIX * model.memory_limit)
        self.taken: list[_Taken] = []

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
        return provider_for(kernel, self.examples, n_jobs=self.threads)

    def _take(self, kernels: list[Kernel]) -> list[_Taken]:
        """From now on kernel values are those of these kernels."""
        if not all(any(kernel is taken.kernel for taken in self.taken) for kernel in kernels):
            self.taken = []
            for place, kernel in enumerate(kernels):
                provider = self._computing(kernel)
                indefinite = indefinite_values(provider, self.examples, np.flatnonzero(self.problem.costs > 0))
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
            provider: Provider = SharedProvider(taken.kernel, taken.matrix, threads, source, self.examples)
        else:
            provider = provider_for(taken.kernel, self.examples, n_jobs=threads)
            provider.expect(self.examples, self.model.memory_limit)
        provider.indefinite = taken.indefinite
        return provider

    def _training(
        self, taken: _Taken, problem: Problem, costs: _Float, at_once: int, source: Provider | None = None
    ) -> ActiveSetTraining:
        """One of several at the same time; `source` computes values more precise than those of the matrix."""
        model, limit = self.model, self.model.memory_limit
        if taken.matrix is not None:
            problem, limit = replace(problem, X=np.arange(len(costs))), limit - self.values.nbytes
        settings = ActiveSetSettings(model.tol, model.init, bool(model.shrinking), limit / at_once)
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

    def run(self, Cs: _Float, kernels: list[Kernel], scoring: Scoring) -> tuple[_Float, Status]:
        """The scores of all folds, costs and kernels, and how the search ended."""
        model = self.model
        scores = np.full((len(self.folds), len(Cs), len(kernels)), np.nan)
        about = f"{model.formulation}, {model._kernel_name()}, {len(self.y)} examples, {len(model.classes_)} classes"
        with says_enough_memory(model, self.X), progress_for(model.verbose) as progress:
            progress.start(
                f"{len(self.folds)} folds x {len(Cs)} C x {len(kernels)} kernels: {about}, "
                f"memory limit {model.memory_limit / 1e6:.0f} MB"
            )
            tally = Tally(progress, scores.size)
            for some in pieces(len(kernels), self._kernels_at_once(len(kernels))):
                if tally.is_over:
                    break
                self._take(kernels[some])
                self._run_folds(Cs, scoring, scores[:, :, some], tally)
            progress.finish(tally.status)
        return scores, tally.status

    def _run_folds(self, Cs: _Float, scoring: Scoring, scores: _Float, tally: Tally) -> None:
        trainings = len(self.taken) * len(self.folds)
        at_once = self._at_once(trainings)

        def run(number: int) -> None:
            place, fold = divmod(number, len(self.folds))
            taken, of = self.taken[place], self.folds[fold]
            self._run_fold(taken, of, Cs, scoring, scores[fold, :, place], tally, at_once)

        run_folds(run, trainings, at_once)

    def _run_fold(
        self,
        taken: _Taken,
        of: _FoldProblem,
        Cs: _Float,
        scoring: Scoring,
        scores: _Float,
        tally: Tally,
        at_once: int,
    ) -> None:
        """The scores for all costs, from the smallest to the largest."""
        limits = Limits(None, self.model.max_iter, time_of_search(self.model.time_limit))
        training: ActiveSetTraining | None = None
        for place in np.argsort(Cs, kind="stable"):
            if tally.is_over:
                return
            costs = finite_costs(Cs[place] * of.problem.costs)
            if training is None:
                training = self._training(taken, of.problem, costs, at_once)
            else:
                training.raise_costs(costs)
            with training.provider.threads():
                outcome = train(training, limits, Progress(), interrupt=self.interrupt)
            if not tally.counts(outcome):
                return
            found = training.scale * training.scores[of.fold.test]
            decisions = found[:, 1] - found[:, 0] if len(of.classes) == 2 else found
            scores[place] = scoring.score(of.classes, decisions, self.X, self.y, self.weight, of.fold)

    def trained(self, model: MulticlassSVC, kernel: Kernel, costs: _Float) -> tuple[ActiveSetTraining, Outcome]:
        """On all examples."""
        (taken,) = self._take([kernel])
        training = self._training(taken, self.problem, costs, 1, self._source(taken))
        with training.provider.threads():
            return training, model._run(training, interrupt=self.interrupt)
