"""The choice of C and gamma by cross-validation, on kernel values that all trainings share or along warm starts."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from larank import declare, parameters
from larank.base import ScoringClassifier
from larank.blocks.workers import Workers, blas_threads
from larank.crossvalidation import (
    BestSetting,
    Request,
    Scoring,
    Search,
    Tally,
    Trained,
    costs_of,
    forget_fitted,
)
from larank.data.models import persistable
from larank.data.schema import Scope, count, floats, given, instance, mapping, number, one_of
from larank.declare import ParameterError, fitted, parameter
from larank.docstrings import with_paragraphs
from larank.kernel.exact import MulticlassSVC
from larank.kernel.exactcv import SharedSearch
from larank.linear.sdm import LinearMulticlassSVC
from larank.linear.sdmcv import WarmSearch
from larank.publishing import next_model
from larank.training import Interrupt, first_interrupt, progress_for
from larank.validation import on_host


def _searchable(name: str, value: Any) -> None:
    """Require an estimator that a search can train."""
    if not isinstance(value, MulticlassSVC | LinearMulticlassSVC):
        raise TypeError(
            f"{name} must be a MulticlassSVC or a LinearMulticlassSVC, got {value!r}. For other estimators use "
            "sklearn.model_selection.GridSearchCV"
        )


def _check_scores(name: str, value: Any, scope: Scope) -> None:
    """Scores for folds, costs and, if they were searched for, values of gamma."""
    sizes = ["n_folds", "n_costs"] + ["n_gammas"] * (scope.known["gammas"] is not None)
    floats(*sizes, finite=False)(name, value, scope)


@persistable(
    Cs_=floats("n_costs", least=0),
    gammas_=given(floats("n_gammas", least=0), when=lambda scope: scope.known["gammas"] is not None),
    scores_=_check_scores,
    best_params_=mapping(one_of("C", "gamma"), number(above=0)),
    best_score_=number(),
    n_splits_=count(1),
    best_estimator_=given(
        instance("MulticlassSVC", "LinearMulticlassSVC"), when=lambda scope: bool(scope.known["refit"])
    ),
)
class PathSearchCV(MetaEstimatorMixin, ScoringClassifier):  # type: ignore[misc]
    """Search for the best C, and gamma, of a `MulticlassSVC` or a `LinearMulticlassSVC` by cross-validation.

    It finds what `sklearn.model_selection.GridSearchCV` finds, up to the tolerance `tol` of the estimator, in a
    fraction of the time. For each fold, models with larger costs start from models with smaller costs, and folds are
    trained at the same time. With a `MulticlassSVC` all folds share their kernel values.

    Attributes
    ----------
    best_estimator_ : estimator
        The estimator with the best parameters, trained on all examples. It does not exist with ``refit=False``. Its
        `random_state` is the seed that all trainings of the search had.
    best_params_ : dict
        The best value of ``"C"`` and, with `gammas`, of ``"gamma"``: those with the largest mean score over folds. Of
        several equal ones it is the first value of C, and then the first value of gamma.
    best_score_ : float
        The mean score over folds of the best parameters.
    scores_ : ndarray of shape (n_folds, n_costs), or (n_folds, n_costs, n_gammas) with `gammas`
        The scores of the held-out examples; NaN if training ended early.
    Cs_ : ndarray of shape (n_costs,)
        The values of C that were tried.
    gammas_ : ndarray of shape (n_gammas,)
        The values of gamma that were tried, as numbers; with `gammas` only.
    n_splits_ : int
        The number of folds.

    Examples
    --------
    >>> from larank import MulticlassSVC, PathSearchCV
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> X, y = letter.X_train[:1000].astype("float32"), letter.y_train[:1000]
    >>> search = PathSearchCV(MulticlassSVC(random_state=0), Cs=[1, 10, 100], gammas=[0.01, 0.03], cv=3).fit(X, y)
    >>> search.scores_.shape
    (3, 3, 2)
    >>> search.best_params_
    {'C': 10.0, 'gamma': 0.01}
    """

    estimator: Any = parameter(
        'The estimator whose parameters are searched for, a `MulticlassSVC` with ``solver="active-set"`` or a '
        "`LinearMulticlassSVC`. Its own value of `C` is not used, and with `gammas` nor is its own `gamma`. Its "
        "`time_limit` must be None.",
        check=_searchable,
        form="estimator",
        kw_only=False,
    )
    Cs: Any = parameter(
        "Values of C to try. An integer n stands for n values from 0.01 to 1000 with equal ratios.",
        default=10,
        check=parameters.costs_to_try,
        form="int or sequence of float",
    )
    gammas: Any = parameter(
        'Values of gamma to try, if the estimator has a kernel with gamma; "scale" and "auto" may be among them and '
        'are computed on all examples. An integer n stands for n values from 0.1 to 10 times "scale" with equal '
        "ratios. By default only the gamma of the estimator is used.",
        default=None,
        check=parameters.gammas_to_try,
        form="int or sequence of float",
    )
    cv: Any = parameter(
        "Number of stratified folds, 5 by default, or what `sklearn.model_selection.check_cv` accepts. A class "
        "without training examples in a fold is never predicted there.",
        default=None,
        form="int, splitter or iterable",
    )
    scoring: Any = parameter(
        "Name of a scorer of scikit-learn, or a function of a model, examples and labels. By default accuracy.",
        default=None,
        form="str or callable",
    )
    refit: bool = parameter(
        "Whether to train `best_estimator_` on all examples with the best parameters. If False, `predict` is not "
        "available.",
        default=True,
    )
    time_limit: float | None = parameter(
        "Maximum time in seconds, including the final training. At most 75 % of it are used for the search. If they "
        "are not sufficient, a warning says how many settings were scored, and the best of them is trained; if no "
        "setting was scored, `fit` raises a ValueError. By default there is no limit.",
        default=None,
        above=0,
    )
    n_jobs: int | None = parameter(
        "Number of threads, which train different folds at the same time and compute kernel values. By default as "
        "many as BLAS uses; -1 uses all processors. The `n_jobs` of the estimator sets how many threads each training "
        "of a `LinearMulticlassSVC` has, and how many prediction has.",
        default=None,
        check=parameters.not_zero,
        form="int",
    )
    verbose: int | bool = parameter(
        "Whether to show the progress of the search: 1 shows a progress bar or, if standard error is not a terminal, "
        "a line every few seconds. The `verbose` of the estimator shows the progress of the final training.",
        default=0,
        least=0,
    )

    best_estimator_: Any = fitted()
    best_params_: dict[str, float] = fitted()

    def _check_together(self) -> None:
        super()._check_together()
        estimator = self.estimator
        if isinstance(estimator, LinearMulticlassSVC) and self.gammas is not None:
            raise ParameterError("gammas", f"must be None with a LinearMulticlassSVC; got {self.gammas!r}")
        if isinstance(estimator, MulticlassSVC) and estimator.solver != "active-set":
            raise ParameterError(
                "estimator", f"must have solver='active-set', which starts models from others; got {estimator.solver!r}"
            )
        if estimator.time_limit is not None:
            raise ParameterError(
                "estimator",
                f"must have time_limit=None; got {estimator.time_limit!r}. Set the time_limit of PathSearchCV instead, "
                "which limits the whole search",
            )

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the estimator, so that this is a classifier, too."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        tags.target_tags, tags.input_tags = deepcopy(inner.target_tags), deepcopy(inner.input_tags)
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a model, which a search without `refit` does not train."""
        return hasattr(self, "best_estimator_")

    @with_paragraphs
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Search for the best parameters, and train the estimator with them on all examples.

        Parameters
        ----------
        [examples]
        sample_weight : array of shape (n_samples,), optional
            Factors on `C` per example, not negative. They also count in the scores if the scorer accepts weights.

        [fitted]
        """
        with next_model(self) as model, first_interrupt() as interrupt:
            choice, final = model._fit(X, y, sample_weight, interrupt)
        choice.warn_if_cut(stacklevel=2)
        if final is not None:
            final.warn(2)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, interrupt: Interrupt) -> tuple[BestSetting, Trained | None]:
        declare.check(self)
        scoring = Scoring(self.scoring)
        forget_fitted(self)
        threads = Workers(blas_threads() if self.n_jobs is None else self.n_jobs).count
        is_linear = isinstance(self.estimator, LinearMulticlassSVC)
        kind: Callable[..., Search] = WarmSearch if is_linear else SharedSearch
        request = Request(self.estimator, self.gammas, self.cv, self.time_limit, threads, interrupt)
        search = kind(request, X, y, on_host("sample_weight", sample_weight))
        self.Cs_, self.n_splits_ = costs_of(self.Cs), len(search.folds)
        n_gammas = 1
        if search.gammas is not None:
            self.gammas_, n_gammas = search.gammas, len(search.gammas)
        scores = np.full((self.n_splits_, len(self.Cs_), n_gammas), np.nan)
        with progress_for(self.verbose) as progress:
            of_gammas = "" if search.gammas is None else f" x {n_gammas} gamma"
            progress.start(f"{self.n_splits_} folds x {len(self.Cs_)} C{of_gammas}: {search.about}")
            tally = Tally(progress, scores.size)
            search.run(self.Cs_, scoring, scores, tally)
            progress.finish(tally.status)
        self.scores_ = scores[:, :, 0] if search.gammas is None else scores
        choice = BestSetting.of(scores, tally.status, self.time_limit)
        cost, gamma = choice.place
        self.best_score_, self.best_params_ = choice.score, {"C": float(self.Cs_[cost])}
        if search.gammas is not None:
            self.best_params_["gamma"] = float(search.gammas[gamma])
        if not self.refit:
            return choice, None
        final = search.refit(self.best_params_["C"], gamma)
        self.best_estimator_ = final.model.set_params(time_limit=None)
        final.model.result_ = choice.mark(final.model.result_)
        return choice, final

    # ---- What the best estimator predicts ----

    def _finite_decisions(self, X: Any) -> NDArray[np.floating[Any]]:
        if "scores_" in vars(self) and "best_estimator_" not in vars(self):
            raise NotFittedError("this PathSearchCV has no best_estimator_, because it was fitted with refit=False")
        return super()._finite_decisions(X)

    def _decisions(self, X: Any) -> Any:
        return self.best_estimator_.decision_function(X)

    @property  # type: ignore[misc]
    def classes_(self) -> NDArray[Any]:  # type: ignore[override]
        """The labels."""
        found: NDArray[Any] = self._of_best("classes_")
        return found

    @property
    def n_features_in_(self) -> int:
        """Number of features in `fit`."""
        return int(self._of_best("n_features_in_"))

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features in `fit`, if they had names."""
        found: NDArray[Any] = self._of_best("feature_names_in_")
        return found

    def _of_best(self, name: str) -> Any:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"PathSearchCV has no {name} because it has no best_estimator_")
        return getattr(self.best_estimator_, name)
