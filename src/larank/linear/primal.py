"""The primal multiclass SVM of Zien, De Bona and Ong (2007), a linear classifier."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.utils import check_random_state

from larank import declare, parameters
from larank.base import available_unless, unfitted
from larank.blocks.workers import Workers, blas_threads
from larank.costs import check_two_classes, example_costs
from larank.data.models import persistable
from larank.declare import Declared, Value, parameter
from larank.docstrings import with_paragraphs
from larank.linear.labelkernel import checked_label_kernel
from larank.linear.model import FITTED_LINEARLY, LinearClassifier
from larank.linear.primalobjective import PrimalExamples, PrimalLoss, PrimalObjective, listed
from larank.linear.primaltraining import PrimalTraining
from larank.parameters import Seeded, StoppingAtGap, Weighted
from larank.publishing import next_model, of_one_model
from larank.training import CertificateWarning, Limits, Outcome, train, warn_if_early
from larank.training.progress import progress_for
from larank.training.result import Result
from larank.validation import advised, classes_of, validated


def _why_no_probabilities(model: Any) -> str:
    if model.loss == "log_loss" and model.softmax_gamma == 1:
        return ""
    return (
        f"with loss={model.loss!r} and softmax_gamma={model.softmax_gamma!r}, whose scores are not probabilities. Set "
        "loss='log_loss' and softmax_gamma=1, or use sklearn.calibration.CalibratedClassifierCV"
    )


class SmoothedHinge(Value):
    """The hinge loss with its corner rounded off, for ``loss=SmoothedHinge(...)``."""

    width: float = parameter(
        "Width of the rounded part, which goes from a margin of 1 down to ``1 - width``. Smaller values are closer to "
        "the hinge loss and slower to minimise.",
        default=1.0,
        above=0,
    )


class _InThreads(Declared, position=4):
    """Threads."""

    n_jobs: int | None = parameter(
        "Number of threads for passes over the data. By default as many as BLAS uses; -1 uses all processors. The "
        "model is the same for any number.",
        default=None,
        check=parameters.not_zero,
        form="int",
    )


@persistable(**FITTED_LINEARLY)
class PrimalMulticlassSVC(Weighted, StoppingAtGap, _InThreads, Seeded, LinearClassifier):
    """Multiclass support vector machine trained in the primal.

    With the scores ``f`` of an example with label ``y``, each wrong class ``u`` has a margin ``s = f[y] - f[u]`` and a
    loss ``l(s)``. These are aggregated by a soft maximum between their sum and their maximum. With the defaults the
    model is multinomial logistic regression. For a kernel, put a `PivotedCholeskyMap` or a `KernelPCAMap` before it in
    a pipeline.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) with two classes
        The weights. With two classes, the weights of the second class minus the weights of the first.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        The biases, which sum up to 0.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_iter_ : int
        The passes over the data.
    result_ : Result
        The certificate: objectives, gap, counts, seconds and the history. Where the objective is not convex, the dual
        is NaN.

    References
    ----------
    Zien, De Bona, Ong. Training and Approximation of a Primal Multiclass Support Vector Machine. 2007.

    Examples
    --------
    >>> from larank import PrimalMulticlassSVC
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> model = PrimalMulticlassSVC(random_state=0).fit(letter.X_train / 15, letter.y_train)
    >>> bool(model.score(letter.X_test / 15, letter.y_test) > 0.7)
    True
    >>> bool(model.result_.relative_gap <= 1e-3)
    True
    >>> model.predict_proba(letter.X_test[:2] / 15).shape
    (2, 26)
    """

    loss: Literal["log_loss", "squared_hinge", "smoothed_hinge"] | SmoothedHinge = parameter(
        'Loss of a margin s. "log_loss" is ``log(1 + exp(-s))`` and gives probabilities. "squared_hinge" is ``max(0, '
        '1 - s)^2``. "smoothed_hinge" is the hinge ``max(0, 1 - s)`` with its corner rounded off; '
        "``SmoothedHinge(width=...)`` sets how much of it.",
        default="log_loss",
        kw_only=False,
    )
    C: float = parameter(
        "Inverse regularisation strength: the cost of one unit of loss against ``1/2 |W|^2``. Larger values fit the "
        "training data more closely.",
        default=1.0,
        above=0,
    )
    softmax_gamma: float = parameter(
        "Interpolates between the sum (0) and the maximum (``numpy.inf``) of the losses l of the k - 1 wrong classes, "
        'by ``log(2 - k + sum(exp(g * l))) / g``. 1 with "log_loss" is multinomial logistic regression. Between 0 and '
        'infinity, with three or more classes, the objective is convex only for "log_loss" with values from 1 on, and '
        'for "squared_hinge" with at most six classes. If it is not convex, training ends at a local optimum, with a '
        "warning and without a dual bound. For the maximum ``numpy.inf`` is better than a very large number.",
        default=1.0,
        least=0,
        infinite=True,
    )
    label_kernel: ArrayLike | None = parameter(
        "Similarity of the classes: a positive semi-definite matrix in the order of `classes_`. Similar classes share "
        "training information. By default the identity matrix: no two classes are similar. See "
        "`larank.tree_label_kernel` and `larank.distance_label_kernel`.",
        default=None,
        form="array of shape (n_classes, n_classes)",
    )
    fit_intercept: bool = parameter("Whether each class has a bias, which is not regularised.", default=True)
    solver: Literal["newton", "cg"] = parameter(
        '"newton" is a truncated Newton method. "cg" is the non-linear conjugate gradient method of the paper, for '
        "comparison. The optimum is the same.",
        default="newton",
    )
    warm_start: bool = parameter(
        "Whether `fit` starts from the weights of the previous fit, which must have had the same classes and features.",
        default=False,
    )
    tol: float = parameter(
        "Relative duality gap, ``(primal - dual) / primal``, at which training stops. If the objective is not convex, "
        "a bound computed from the gradient takes its place.",
        default=1e-3,
        above=0,
    )

    @property
    def _loss(self) -> PrimalLoss:
        width = self.loss.width if isinstance(self.loss, SmoothedHinge) else SmoothedHinge().width
        margin = "smoothed_hinge" if isinstance(self.loss, SmoothedHinge) else self.loss
        return PrimalLoss(margin, float(self.softmax_gamma), float(width))

    @with_paragraphs
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train on `X` and `y`.

        Parameters
        ----------
        [examples]
        [sample_weight]

        [fitted]
        """
        with next_model(self) as model:
            declare.check(model)
            X, y = validated(model, X, y, reset=True)
            weights = model._weights(X, y, sample_weight)
            outcome = model._fit(X, y, weights, model._before() if model.warm_start else None)
        self._warn(advised(outcome, X, self))
        return self

    @with_paragraphs
    def path(self, X: Any, y: Any, Cs: Iterable[float], sample_weight: ArrayLike | None = None) -> list[Self]:
        """Train one model per value of `C`, each started from the model of the next smaller value.

        [path]
        """
        Cs = parameters.costs_of_path(Cs)
        models = [unfitted(self, C=C) for C in Cs]
        for model in models:
            declare.check(model)
        first = models[0]
        X, y = validated(first, X, y, reset=True)
        weights = first._weights(X, y, sample_weight)
        of_data = {name: value for name, value in vars(first).items() if name.endswith("_")}
        done: dict[int, Self] = {}
        start: _Before | None = None
        for number in sorted(range(len(Cs)), key=Cs.__getitem__):
            done[number] = model = models[number]
            model.__dict__ |= of_data
            outcome = model._fit(X, y, weights, start)
            model._warn(outcome)
            start = model._before()
            if outcome.status == "interrupted":
                break
        return [done[number] for number in sorted(done)]

    @available_unless(_why_no_probabilities)
    @of_one_model
    def predict_proba(self, X: Any) -> NDArray[np.floating[Any]]:
        """The probabilities of the classes, where the model is one of probabilities.

        That is multinomial logistic regression: ``loss="log_loss"`` with ``softmax_gamma=1``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The examples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows that sum up to 1, in the order of `classes_`.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        found: NDArray[np.floating[Any]] = softmax(scores, axis=1)
        return found

    # ---- Training ----

    def _weights(self, X: Any, y: NDArray[Any], sample_weight: ArrayLike | None) -> NDArray[np.float64]:
        """The costs of the examples where C is 1."""
        classes = classes_of(y)
        weights = example_costs(1.0, X, y, classes, sample_weight, self.class_weight)
        check_two_classes(y, weights)
        if self.fit_intercept and not np.isin(classes, y[weights > 0]).all():
            missing = classes[~np.isin(classes, y[weights > 0])][0].item()
            raise ValueError(
                "sample_weight and class_weight must leave every class some weight with fit_intercept=True, for only "
                f"its examples bound its bias; got none for {missing!r}"
            )
        return weights

    def _fit(self, X: Any, y: NDArray[Any], weights: NDArray[np.float64], before: _Before | None) -> Outcome:
        classes = np.unique(y)
        labels = np.searchsorted(classes, y).astype(np.int32)
        examples = PrimalExamples(listed(X), labels, float(self.C) * weights, len(classes))
        start = None if before is None else before.table(X.shape[1], classes)
        label_kernel = checked_label_kernel(self.label_kernel, len(classes))
        loss = self._loss
        workers = Workers(blas_threads() if self.n_jobs is None else self.n_jobs)
        n, d = examples.X.shape
        with progress_for(self.verbose) as progress, workers.entered():
            progress.start(f"{loss.margin}, {n} examples, {d} features, {len(classes)} classes")
            objective = PrimalObjective(
                examples, loss, label_kernel, fit_intercept=bool(self.fit_intercept), workers=workers
            )
            training = PrimalTraining(objective, self.solver, self.tol, check_random_state(self.random_state), start)
            gap = self.tol if training.is_convex else None
            limits = Limits(gap, self._most_passes, self.time_limit, passes_without_check=math.inf)
            outcome = train(training, limits, progress)
        self.classes_ = classes
        self._keep_model(training.weights())
        if outcome.exact:
            published = training.published(outcome.objectives, self.coef_, self.intercept_)
            outcome = replace(outcome, objectives=published)
        at = outcome.objectives
        is_open = at.primal - at.dual > self.tol * at.primal  # a dual that is NaN bounds nothing
        is_open |= training.has_stalled and not training.gap_is_closed(self.tol)
        if outcome.status == "converged" and is_open:
            outcome = replace(outcome, status="precision")
        self.result_ = Result.of(
            outcome,
            solver=self.solver,
            iterations=training.iterations(),
            support_patterns=0,
            support_vectors=0,
            operations={"evaluations": objective.evaluations, "products": objective.products},
            breakdown=objective.seconds,
        )
        self.n_iter_ = math.ceil(self.result_.iterations)
        return outcome

    def _keep_model(self, V: NDArray[Any]) -> None:
        """V has a column per class, and the biases in its last row."""
        if len(self.classes_) == 2:
            V = V[:, 1:] - V[:, :1]
        self.coef_ = np.ascontiguousarray(V[:-1].T)
        self.intercept_ = V[-1] - (V[-1].mean() if len(self.classes_) > 2 else 0)

    def _before(self) -> _Before | None:
        """Return the model of the previous fit, if there was one."""
        return _Before(self.coef_, self.intercept_, self.classes_) if hasattr(self, "coef_") else None

    def _warn(self, outcome: Outcome) -> None:
        n_classes = len(self.classes_)
        if not self._loss.is_convex(n_classes):
            warnings.warn(
                f"loss={self.loss!r} with softmax_gamma={self.softmax_gamma} is not convex with {n_classes} classes: "
                "the model is a local optimum, and its certificate has no dual bound",
                CertificateWarning,
                stacklevel=3,
            )
        warn_if_early(
            outcome,
            self.result_,
            max_iter=self._most_passes,
            time_limit=self.time_limit,
            limit_of_precision="by the precision of X",
            stacklevel=3,
        )


class _Before(NamedTuple):
    """Where a warm start begins."""

    coef: NDArray[Any]
    intercept: NDArray[Any]
    classes: NDArray[Any]

    def table(self, n_features: int, classes: NDArray[Any]) -> NDArray[Any]:
        """The weights with a column per class, and the biases in a last row."""
        if self.coef.shape[1] != n_features or not np.array_equal(self.classes, classes):
            raise ValueError(
                f"warm_start needs the features and classes of the fit before, {self.coef.shape[1]} and "
                f"{self.classes.tolist()}; got {n_features} and {classes.tolist()}"
            )
        V = np.vstack([self.coef.T, self.intercept])
        return np.hstack([-V / 2, V / 2]) if len(classes) == 2 else V
