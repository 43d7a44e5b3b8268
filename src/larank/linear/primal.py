"""The primal multiclass SVM of Zien, De Bona and Ong (2007), linear or behind a map of its kernel."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.utils import check_random_state

from larank import _core, declare, parameters
from larank.base import (
    FEATURES,
    ScoringClassifier,
    advised,
    available_unless,
    check_two_classes,
    classes_of,
    example_costs,
    functions,
    unfitted,
    validated,
)
from larank.blocks.kernels import takes_sparse
from larank.blocks.provider import length
from larank.blocks.workers import Workers, blas_threads
from larank.data.models import persistable
from larank.data.schema import RESULT, Scope, count, floats, given, instance, integer, labels
from larank.declare import fitted, parameter
from larank.docstrings import with_paragraphs
from larank.linear.labelkernel import checked_label_kernel
from larank.linear.primalobjective import Examples, PrimalLoss, PrimalObjective, listed
from larank.linear.primaltraining import PrimalTraining
from larank.maps import KernelMap, KernelPCAMap, PivotedCholeskyMap
from larank.parameters import Kernelized, Seeded, Threaded, TimeLimited, Weighted
from larank.publishing import next_model, of_one_model
from larank.training import CertificateWarning, Limits, Outcome, train, warn_if_early
from larank.training.progress import progress_for
from larank.training.result import Result

_MAPS: dict[str, Callable[..., KernelMap]] = {"cholesky": PivotedCholeskyMap, "kpca": KernelPCAMap}


def _why_no_probabilities(model: Any) -> str:
    if model.loss == "log_loss" and model.softmax_gamma == 1:
        return ""
    return (
        f"with loss={model.loss!r} and softmax_gamma={model.softmax_gamma!r}, whose scores are not probabilities. Set "
        "loss='log_loss' and softmax_gamma=1, or use sklearn.calibration.CalibratedClassifierCV"
    )


def _is_mapped(scope: Scope) -> bool:
    return parameters.feature_map_for(scope.known["kernel"], scope.known["feature_map"]) != "none"


def _check_map(name: str, value: Any, scope: Scope) -> None:
    instance("PivotedCholeskyMap", "KernelPCAMap")(name, value, scope)
    count()("n_features_in_", value.n_features_in_, scope)


def _n_columns(scope: Scope) -> int:
    """Those of the examples, or of what the map makes of them."""
    return int(scope.known["map_"].n_components_) if _is_mapped(scope) else scope.sizes["n_features_in_"]


@persistable(
    classes_=labels("n_classes"),
    **FEATURES,
    map_=given(_check_map, when=_is_mapped),
    coef_=floats(functions, _n_columns, single=True),
    intercept_=floats(functions, single=True),
    n_iter_=integer(),
    result_=RESULT,
)
class PrimalMulticlassSVC(Kernelized, Weighted, TimeLimited, Threaded, Seeded, ScoringClassifier):
    """Multiclass support vector machine trained in the primal.

    With the scores ``f`` of an example with label ``y``, each wrong class ``u`` has a margin ``s = f[y] - f[u]`` and a
    loss ``l(s)``. These are aggregated by a soft maximum between their sum and their maximum. With the defaults the
    model is multinomial logistic regression.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) with two classes
        The weights of `X`, or of the features of the map. With two classes, those of the second minus those of the
        first.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        The biases, which sum up to 0.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    map_ : PivotedCholeskyMap or KernelPCAMap
        The map of the kernel, where there is one. Its `trace_error_` says how much of the kernel is lost.
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

    kernel: str | Callable[[Any, Any], Any] = parameter(
        'The kernel. "linear" is trained on `X` as it is; the others are mapped to features, see `feature_map`. A '
        "callable takes two collections of examples and returns the matrix of their kernel values.",
        default="linear",
        form='{"linear", "rbf", "poly", "sigmoid", "laplacian", "chi2", "intersection", "precomputed"} or callable',
        kw_only=False,
    )
    C: float = parameter(
        "The cost of one unit of loss against ``1/2 |W|^2``.",
        default=1.0,
        above=0,
    )
    loss: Literal["log_loss", "squared_hinge", "smoothed_hinge"] = parameter(
        "The margin loss: ``log(1 + exp(-s))``, ``max(0, 1 - s)^2``, or the hinge ``max(0, 1 - s)`` with its corner "
        "rounded off.",
        default="log_loss",
    )
    softmax_gamma: float = parameter(
        "The aggregation ``log(2 - k + sum(exp(g * l(s)))) / g`` over the wrong classes: 0 is their sum, "
        "``numpy.inf`` their maximum. Between them the objective is not always convex with three classes or more: it "
        'is for "log_loss" from 1 on, and for "squared_hinge" with six classes at most. Elsewhere training ends at a '
        "local optimum, with a warning and without a dual bound. Where the maximum is meant, ``numpy.inf`` is better "
        "than a very large number.",
        default=1.0,
        least=0,
        infinite=True,
    )
    smoothing: float = parameter(
        'How much of the hinge is rounded off, with ``loss="smoothed_hinge"``: from ``s = 1`` down to ``1 - '
        "smoothing``.",
        default=1.0,
        above=0,
    )
    feature_map: Literal["cholesky", "kpca", "none"] | None = parameter(
        'How kernel values become features: by `PivotedCholeskyMap` or by `KernelPCAMap`. If not given, "none" for '
        'the linear kernel and "cholesky" for others.',
        default=None,
    )
    n_components: int | None = parameter(
        "The features of the map, at most as many as examples; if not given, as many as it takes to be exact in "
        "double precision, in which the model is then trained, and the certificate is the one of the kernel. If "
        "given, the certificate is the one of the features. Without a map it is ignored.",
        default=None,
        least=1,
    )
    label_kernel: ArrayLike | None = parameter(
        "A positive semi-definite matrix that says how alike the classes are, in the order of `classes_`; the "
        "identity if not given. See `larank.tree_label_kernel` and `larank.distance_label_kernel`.",
        default=None,
        form="array of shape (n_classes, n_classes)",
    )
    solver: Literal["newton", "lbfgs", "cg"] = parameter(
        "Truncated Newton, limited-memory BFGS, or the non-linear conjugate gradient of the paper. The optimum is the "
        "same.",
        default="newton",
    )
    fit_intercept: bool = parameter(
        "Whether each class has a bias, which is not regularised.",
        default=True,
    )
    tol: float = parameter(
        "The relative duality gap to stop at; where the objective is not convex, the bound that the gradient would "
        "give.",
        default=0.001,
        above=0,
    )
    max_iter: int = parameter(
        "Passes over the data after which training stops with a warning.",
        default=1000,
        least=1,
    )
    time_limit: float | None = parameter(
        "Seconds after which training stops with a warning; making the map of a kernel does not count.",
        default=None,
        above=0,
    )
    warm_start: bool = parameter(
        "Whether `fit` starts from the weights of the fit before, whose map of the kernel it keeps.",
        default=False,
    )
    memory_limit: float = parameter(
        "The bytes for the features of a map of the kernel.",
        default=2000000000.0,
        above=0,
        most=4611686018427387904,
    )
    random_state: int | np.random.RandomState | None = parameter(
        "The seed of what the map and the preconditioner draw from the examples.",
        default=None,
        form="int, RandomState or None",
    )

    map_: KernelMap = fitted()

    def __sklearn_tags__(self) -> Any:
        """Sparse input is welcome, and square matrices of kernel values where they are precomputed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self.kernel)
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

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
            X, y = model._validated(X, y, reset=True)
            weights = model._weights(X, y, sample_weight)
            start = model._before() if model.warm_start else None
            outcome = model._fit(model._features(X, start), y, weights, start)
        self._warn(advised(outcome, X, self))
        return self

    @with_paragraphs
    def path(self, X: Any, y: Any, Cs: Iterable[float], sample_weight: ArrayLike | None = None) -> list[Self]:
        """Train one model per value of `C`, each started from that of the next smaller one, on the same features.

        [path]
        """
        Cs = parameters.costs_of_path(Cs)
        models = [unfitted(self, C=C) for C in Cs]
        for model in models:
            declare.check(model)
        first = models[0]
        X, y = first._validated(X, y, reset=True)
        weights = first._weights(X, y, sample_weight)
        features = first._features(X, None)
        shared = {name: value for name, value in vars(first).items() if name.endswith("_")}
        done: dict[int, Self] = {}
        start: _Before | None = None
        for number in sorted(range(len(Cs)), key=Cs.__getitem__):
            done[number] = model = models[number]
            model.__dict__ |= shared
            outcome = model._fit(features, y, weights, start)
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
        X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
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

    def _decisions(self, X: Any) -> NDArray[np.floating[Any]]:
        X = self._validated(X, reset=False)
        features = self.map_.transform(self._for_map(X)) if hasattr(self, "map_") else X
        scores: NDArray[np.floating[Any]] = np.asarray(features @ self.coef_.T) + self.intercept_
        return scores.ravel() if len(self.classes_) == 2 else scores

    # ---- What is trained on ----

    def _validated(self, X: Any, *y: Any, reset: bool) -> Any:
        return validated(self, X, *y, reset=reset, objects=callable(self.kernel))

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

    def _features(self, X: Any, before: _Before | None) -> Any:
        """X as it is, or what the map makes of it, which is that of the fit before where there was one."""
        is_mapped = self._map_name() != "none"
        X = self._for_map(X) if is_mapped else X
        if is_mapped and before is not None and before.map is not None:
            self._check_same_map(before.map)
            self._check_memory(X, before.map)
            return before.map.transform(X)
        if hasattr(self, "map_"):
            del self.map_
        if not is_mapped:
            return X
        self.map_ = self._new_map()
        return self.map_.fit_transform(X)

    def _for_map(self, X: Any) -> Any:
        """Return X in double precision if n_components does not limit the features."""
        is_single = self.n_components is None and getattr(X, "dtype", None) == np.float32
        return X.astype(np.float64) if is_single else X

    def _residual(self, features: Any) -> float:
        """Return at least the largest eigenvalue of what the features leave of the kernel matrix, up to rounding.

        If n_components is given, the problem is the one of the features, and the residual is 0.
        """
        if not hasattr(self, "map_") or self.n_components is not None:
            return 0.0
        left = min(self.map_.trace_error_, 0.5) + float(np.finfo(np.float64).eps)
        return left / (1 - left) * float(np.einsum("ij,ij->", features, features))

    def _check_memory(self, X: Any, kernel_map: KernelMap) -> None:
        itemsize = 4 if getattr(X, "dtype", None) == np.float32 else 8
        needed = length(X) * kernel_map.n_components_ * itemsize
        if needed > self.memory_limit:
            raise _core.MemoryLimitError(
                f"memory_limit must be at least {needed} bytes for {kernel_map.n_components_} features of {length(X)} "
                f"examples, got {int(self.memory_limit)}"
            )

    def _check_same_map(self, before: KernelMap) -> None:
        wanted = self._new_map()
        if type(wanted) is not type(before):
            raise ValueError(
                f"warm_start needs the map of the fit before, a {type(before).__name__}; got feature_map="
                f"{self._map_name()!r}"
            )
        for name in ("kernel", "n_components", "gamma", "degree", "coef0"):
            if getattr(wanted, name) != getattr(before, name):
                raise ValueError(
                    f"warm_start needs the map of the fit before, which had {name}={getattr(before, name)!r}; got "
                    f"{getattr(wanted, name)!r}"
                )

    def _map_name(self) -> str:
        return parameters.feature_map_for(self.kernel, self.feature_map)

    def _new_map(self) -> KernelMap:
        return _MAPS[self._map_name()](
            self.kernel,
            n_components=self.n_components,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            memory_limit=self.memory_limit,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )

    # ---- Training ----

    def _fit(self, features: Any, y: NDArray[Any], weights: NDArray[np.float64], before: _Before | None) -> Outcome:
        classes = np.unique(y)
        labels = np.searchsorted(classes, y).astype(np.int32)
        residual = self._residual(features)
        examples = Examples(listed(features), labels, float(self.C) * weights, len(classes), residual)
        start = None if before is None else before.table(features.shape[1], classes)
        label_kernel = checked_label_kernel(self.label_kernel, len(classes))
        loss = PrimalLoss(self.loss, float(self.softmax_gamma), float(self.smoothing))
        workers = Workers(blas_threads() if self.n_jobs is None else self.n_jobs)
        n, d = examples.X.shape
        with progress_for(self.verbose) as progress, workers.entered():
            progress.start(f"{self.loss}, {n} examples, {d} features, {len(classes)} classes")
            objective = PrimalObjective(
                examples, loss, label_kernel, fit_intercept=bool(self.fit_intercept), workers=workers
            )
            training = PrimalTraining(objective, self.solver, self.tol, check_random_state(self.random_state), start)
            limits = Limits(
                self.tol if training.is_convex else None, self.max_iter, self.time_limit, passes_without_check=math.inf
            )
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
        """The model of the fit before, if there was one."""
        if not hasattr(self, "coef_"):
            return None
        return _Before(self.coef_, self.intercept_, self.classes_, getattr(self, "map_", None))

    def _warn(self, outcome: Outcome) -> None:
        n_classes = len(self.classes_)
        if not PrimalLoss(self.loss, float(self.softmax_gamma), 1.0).is_convex(n_classes):
            warnings.warn(
                f"loss={self.loss!r} with softmax_gamma={self.softmax_gamma} is not convex with {n_classes} classes: "
                "the model is a local optimum, and its certificate has no dual bound",
                CertificateWarning,
                stacklevel=3,
            )
        warn_if_early(
            outcome,
            self.result_,
            max_iter=self.max_iter,
            time_limit=self.time_limit,
            limit_of_precision="by the precision of X",
            stacklevel=3,
        )


class _Before(NamedTuple):
    """Where a warm start begins."""

    coef: NDArray[Any]
    intercept: NDArray[Any]
    classes: NDArray[Any]
    map: KernelMap | None

    def table(self, n_features: int, classes: NDArray[Any]) -> NDArray[Any]:
        """The weights with a column per class, and the biases in a last row."""
        if self.coef.shape[1] != n_features or not np.array_equal(self.classes, classes):
            raise ValueError(
                f"warm_start needs the features and classes of the fit before, {self.coef.shape[1]} and "
                f"{self.classes.tolist()}; got {n_features} and {classes.tolist()}"
            )
        V = np.vstack([self.coef.T, self.intercept])
        return np.hstack([-V / 2, V / 2]) if len(classes) == 2 else V
