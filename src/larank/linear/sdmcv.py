"""The linear multiclass SVM with its cost chosen by cross-validation: along the costs of a fold models start warm."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from larank import declare, parameters
from larank.base import classes_of, example_costs, validated
from larank.blocks.workers import Workers, blas_threads
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
from larank.data.schema import floats
from larank.declare import parameter
from larank.docstrings import with_paragraphs
from larank.linear.sdm import FITTED_LINEARLY, LinearClassifier, LinearMulticlassSVC
from larank.parameters import Seeded, TimeLimited, Weighted
from larank.publishing import next_model
from larank.training import Interrupt, Outcome, first_interrupt, progress_for

_Float = NDArray[np.float64]


@persistable(**FITTED_LINEARLY, **SEARCHED, scores_=floats("n_folds", "n_costs", finite=False))
class LinearMulticlassSVCCV(Weighted, TimeLimited, Seeded, LinearClassifier):
    """Linear multiclass support vector machine whose cost is chosen by cross-validation.

    It finds what a search over fits of `LinearMulticlassSVC` would find, in less time: for each fold, models with
    larger costs start from those with smaller ones, and folds are trained at the same time.

    Attributes
    ----------
    Cs_ : ndarray of shape (n_costs,)
        The costs that were tried.
    scores_ : ndarray of shape (n_folds, n_costs)
        The scores of held-out examples; NaN where training ended early.
    C_ : float
        The cost with the best mean score over folds; of several the first.
    best_score_ : float
        That mean.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) with two classes
        The weights. With two classes, those of the second minus those of the first.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        The weights of the constant feature times its value.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    dual_coef_ : csr_matrix of shape (n_samples, n_classes)
        The coefficients of the dual solution.
    support_ : ndarray
        The examples with a coefficient that is not zero.
    costs_, rest_costs_ : ndarray of shape (n_samples,)
        The cost of each example, as of `LinearMulticlassSVC`.
    n_iter_ : int
        Passes over the data of the last training, rounded up.
    result_ : Result
        Its certificate: objectives from scratch, gap, counts, seconds and the history.

    Examples
    --------
    >>> from larank import LinearMulticlassSVCCV
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> X, y = letter.X_train[:2000] / 15, letter.y_train[:2000]
    >>> model = LinearMulticlassSVCCV(Cs=[0.01, 1, 10], cv=3, random_state=0).fit(X, y)
    >>> model.scores_.shape
    (3, 3)
    >>> model.C_
    10.0
    """

    formulation: Literal["crammer-singer", "weston-watkins", "one-vs-rest"] = parameter(
        "The loss of an example, as of `LinearMulticlassSVC`.",
        default="crammer-singer",
        kw_only=False,
    )
    Cs: Any = parameter(
        "The costs to try. A number is that of values from 0.01 to 1000, each the same multiple of the one before.",
        default=10,
        check=parameters.costs_to_try,
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
    tol: float = parameter(
        'The relative duality gap to stop at, or with ``stop="violation"`` the largest violation, in every training.',
        default=0.001,
        above=0,
    )
    stop: Literal["gap", "violation"] = parameter(
        "What ends a training once it is at most `tol`: the relative duality gap, or the largest violation of "
        "optimality.",
        default="gap",
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
    fit_intercept: bool = parameter(
        "Whether to add a constant feature, whose weights are regularised.",
        default=True,
    )
    intercept_scaling: float = parameter(
        "The value of the constant feature.",
        default=1.0,
        above=0,
    )
    shrinking: bool = parameter(
        "Whether examples that rest are visited less often.",
        default=True,
    )
    cooling: bool = parameter(
        "Whether small violations are left for later loops.",
        default=True,
    )
    n_jobs: int | None = parameter(
        "How many folds to train at the same time, -1 for as many as there are processors; by default as many as the "
        "linear algebra library has threads.",
        default=None,
        check=parameters.not_zero,
        form="int",
    )
    random_state: int | np.random.RandomState | None = parameter(
        "The seed of the order in which examples are visited.",
        default=None,
        form="int, RandomState or None",
    )

    @with_paragraphs
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Search, and train on `X` and `y` with what was found.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The examples. float32 and float64 arrays in C order and CSR matrices are used as they are, others are
            converted.
        y : array of shape (n_samples,)
            The labels: integers, strings, booleans.
        sample_weight : array of shape (n_samples,), optional
            Factors on ``C`` per example, not negative. They count in the scores, too, if the scorer takes them.

        [fitted]
        """
        with next_model(self) as model, first_interrupt() as interrupt:
            choice, final, outcome = model._fit(X, y, sample_weight, interrupt)
        choice.warn_if_cut(stacklevel=2)
        if outcome is not None:
            final._warn_if_early(outcome)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model, which a search alone does not make."""
        return hasattr(self, "coef_")

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, interrupt: Interrupt
    ) -> tuple[Choice, LinearMulticlassSVC, Outcome | None]:
        declare.check(self)
        scoring = Scoring(self.scoring)
        forget_fitted(self)
        X, y = validated(self, X, y, reset=True)
        self.classes_ = classes_of(y)
        example_costs(1.0, X, y, self.classes_, sample_weight, self.class_weight)  # what is wrong is wrong of all
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        self.Cs_, folds = costs_of(self.Cs), folds_of(self.cv, X, y)
        self.scores_ = np.full((len(folds), len(self.Cs_)), np.nan)
        with progress_for(self.verbose) as progress:
            about = f"{self.formulation}, {X.shape[0]} examples, {X.shape[1]} features, {len(self.classes_)} classes"
            progress.start(f"{len(folds)} folds x {len(self.Cs_)} C: {about}")
            tally = Tally(progress, self.scores_.size)

            def run(number: int) -> None:
                folds[number].classes(y, number)
                self._run_fold(folds[number], X, y, weight, scoring, self.scores_[number], seed, tally, interrupt)

            threads = Workers(blas_threads() if self.n_jobs is None else self.n_jobs).count
            run_folds(run, len(folds), min(threads, len(folds)))
            progress.finish(tally.status)
        choice = Choice.of(self.scores_, tally.status, self.time_limit)
        self.best_score_, self.C_ = choice.score, float(self.Cs_[choice.place[0]])
        final = single_of(self, LinearMulticlassSVC, C=self.C_, random_state=seed)
        if not self.refit:
            return choice, final, None
        outcome = final._fit(X, y, sample_weight, None, interrupt=interrupt)
        of_data = {"feature_names_in_", "n_features_in_"}
        self.__dict__ |= {
            name: value for name, value in vars(final).items() if name.endswith("_") and name not in of_data
        }
        self.result_ = choice.mark(final.result_)
        return choice, final, outcome

    def _run_fold(
        self,
        fold: Fold,
        X: Any,
        y: NDArray[Any],
        weight: _Float | None,
        scoring: Scoring,
        scores: _Float,
        seed: int,
        tally: Tally,
        interrupt: Interrupt,
    ) -> None:
        """The scores for all costs, from the smallest to the largest."""
        some, labels, held_out = X[fold.train], y[fold.train], X[fold.test]
        weights = None if weight is None else weight[fold.train]
        limits = {"time_limit": time_of_search(self.time_limit), "verbose": 0}
        start = None
        for place in np.argsort(self.Cs_, kind="stable"):
            if tally.is_over:
                return
            model = single_of(self, LinearMulticlassSVC, C=float(self.Cs_[place]), random_state=seed, **limits)
            outcome = model._fit(some, labels, weights, start, interrupt=interrupt)
            if not tally.counts(outcome):
                return
            start = model._start()
            scores[place] = scoring.score(model.classes_, model.decision_function(held_out), X, y, weight, fold)
