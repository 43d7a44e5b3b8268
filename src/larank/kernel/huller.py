"""Hard margin kernel SVMs in one pass, or to any precision, by the Huller of Bordes (thesis, section 4.1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from larank import _core
from larank.blocks import Provider
from larank.data.models import persistable
from larank.kernel.machine import Running
from larank.kernel.onevsrest import OneVersusRestClassifier, OneVersusRestTraining, signs
from larank.training import ObjectiveValues, unchanged_on_failure

__all__ = ["HullerClassifier"]


@persistable(
    "classes_",
    "support_",
    "support_vectors_",
    "dual_coef_",
    "intercept_",
    "gamma_",
    "n_features_in_",
    "feature_names_in_",
    "n_iter_",
    "result_",
    "_arrived",
    "_seen",
    "_state",
    "_alpha",
    "_labels_of_support",
)
class HullerClassifier(OneVersusRestClassifier):
    """Hard margin support vector machine trained online, as the nearest points of two convex hulls.

    One pass over the examples comes near the maximum margin; further passes reach it. It is for classes that the
    kernel can separate, and for little else: one mislabelled example among the others of its class leaves no margin.
    More than two classes are separated each from the rest.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "chi2", "intersection", "precomputed"} or callable, \
default="rbf"
        As for `LaRankClassifier`.
    gamma : {"scale", "auto"} or float, default="scale"
        The coefficient of the kernels other than "linear"; "scale" is ``1 / (n_features * X.var())`` of the first
        data seen, "auto" is ``1 / n_features``.
    degree : int, default=3
        Of the kernel "poly".
    coef0 : float, default=0.0
        The constant of the kernels "poly" and "sigmoid".
    epochs : int, default=1
        Passes over the data with ``stop="epochs"``.
    stop : {"epochs", "gap"}, default="epochs"
        Whether to stop after `epochs` passes or at a gap.
    tol : float, optional
        With ``stop="gap"`` the relative gap to stop at, between 0 and 1.
    max_iter : int, default=1000
        With ``stop="gap"`` the passes after which training stops with a warning.
    time_limit : float, optional
        Seconds after which training stops with a warning.
    shuffle : bool, default=True
        Whether `fit` visits the examples in random order; `partial_fit` never does.
    certify : bool, default=True
        Whether `fit` ends with computing the certificate from scratch, which takes as many kernel values as examples
        times support patterns. Otherwise it holds an estimate made on the way.
    memory_limit : float, default=2e9
        Bytes for support patterns, coefficients and cached kernel values. A smaller cache means more computation and
        the same model.
    batch_size : int, default=256
        Examples whose kernel values are computed together. It changes the time, not the model, up to rounding.
    n_jobs : int, optional
        Threads for kernel values, -1 for all processors; by default as many as the linear algebra library uses.
    random_state : int, RandomState or None, default=None
        Of the order of the examples and the choice of support vectors.
    verbose : int, default=0
        1 shows a progress bar or, where standard error is no terminal, a line every few seconds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    support_ : ndarray
        The support patterns, as numbers of examples in `X` or in the stream of `partial_fit`.
    support_vectors_ : ndarray, csr_matrix or list
        The support patterns; not with the kernel "precomputed".
    dual_coef_ : csr_matrix of shape (n_support, n_classes), or (n_support, 1) with two classes
        Coefficients of the decision function, which is 1 and -1 at the two nearest points.
    intercept_ : ndarray of shape (n_classes,), or (1,) with two classes
        Constants of the decision function.
    gamma_ : float
        The value used for `gamma`.
    n_iter_ : int
        Passes over the data, rounded up.
    result_ : Result
        The certificate: `primal` is half the squared distance of the points found, summed over the problems, `dual` a
        lower bound of what it can become. The hard margin SVM of one problem has the objective ``1 / optimum``. `dual`
        is zero as long as the model does not separate the classes.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from larank import HullerClassifier
    >>> X = np.array([[-2.0, 0.0], [-1.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    >>> model = HullerClassifier("linear", epochs=20, random_state=0).fit(X, ["left", "left", "right", "right"])
    >>> model.predict([[-5.0, 0.0], [5.0, 0.0]]).tolist()
    ['left', 'right']
    >>> round(model.result_.primal, 6)
    2.0
    """

    # A hard margin has no costs: an example takes part or does not.
    C = 1.0
    cost_matrix = None
    class_weight = None

    _TITLE = "Huller"

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], ArrayLike] = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        epochs: int = 1,
        stop: str = "epochs",
        tol: float | None = None,
        max_iter: int = 1000,
        time_limit: float | None = None,
        shuffle: bool = True,
        certify: bool = True,
        memory_limit: float = 2e9,
        batch_size: int = 256,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        """Store the parameters; `fit` checks them."""
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.epochs = epochs
        self.stop = stop
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.shuffle = shuffle
        self.certify = certify
        self.memory_limit = memory_limit
        self.batch_size = batch_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(  # type: ignore[override]  # there are no weights
        self, X: Any, y: Any, validation: tuple[Any, ArrayLike] | None = None
    ) -> Self:
        """Train on `X` and `y`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
            float32 data make float32 kernel values, which are faster. With ``kernel="precomputed"`` the square matrix
            of kernel values.
        y : array of shape (n_samples,)
            Labels: integers, strings, booleans.
        validation : (X, y), optional
            Examples whose error goes into the history, some times per epoch.

        Returns
        -------
        HullerClassifier
            Itself, fitted. A `TrainingWarning` says when training ended early; the model is valid all the same.
        """
        with unchanged_on_failure(self):
            outcome = self._fit(X, y, None, validation)
        self._warn_if_early(outcome, stacklevel=3)
        return self

    def partial_fit(  # type: ignore[override]  # there are no weights
        self, X: Any, y: Any, classes: ArrayLike | None = None
    ) -> Self:
        """Go on training with new examples, in the order in which they come.

        Calls with parts of a stream make the same model as one call with all of it, or as `fit` without `shuffle`, up
        to rounding and if `gamma` is a number. A class takes part from its first example on. There is no certificate
        from scratch: `result_` holds an estimate.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
            As for `fit`. With ``kernel="precomputed"`` column j is the kernel value with example j of the stream; the
            examples of this call are the next ones.
        y : array of shape (n_samples,)
            Labels; those never seen before are new classes.
        classes : array, optional
            Labels that may come later, so that `decision_function` has a column for them already.

        Returns
        -------
        HullerClassifier
            Itself.
        """
        with unchanged_on_failure(self):
            outcome = self._partial_fit(X, y, classes, None)
        self._warn_if_early(outcome, stacklevel=3)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.stop == "gap" and (self.tol is None or self.tol >= 1):
            raise ValueError(f"tol must be a number above 0 and below 1 with stop='gap', got {self.tol!r}")

    def _session(self, blocks: Provider, seed: int) -> Any:
        kind = _core.Huller32 if blocks.dtype == np.float32 else _core.Huller64
        return kind(seed=seed, memory_limit=int(self.memory_limit))

    def _restore(self, running: Running) -> None:
        session = running.session
        classes, random, products, begun = self._state
        session.state = (classes, random, [list(p) for p in products], [list(b) for b in begun])
        running.restore(self, self._labels_of_support, np.ones(len(self.support_)), self._alpha)

    def _training(self, running: Running, *arguments: Any, **options: Any) -> _Training:
        return _Training(self, running, *arguments, **options)

    def _keep_model(self, running: Running) -> None:
        points = _Points.of(running.session)
        coefficients, intercepts = points.decision(running.dtype)
        # Of a class without examples, every one so far was of the rest.
        self._keep_support(running, points.slots, points.ids, coefficients, intercepts, absent=-1.0)
        self._alpha = csr_matrix(points.alpha)
        self._labels_of_support = points.labels
        self._state = running.session.state


@dataclass(frozen=True)
class _Points:
    """The points X_P and X_N of every problem of a session: patterns, alpha and inner products, a column a problem."""

    slots: NDArray[np.int32]
    ids: NDArray[np.int64]
    labels: NDArray[np.int32]
    alpha: NDArray[np.float64]
    signed: NDArray[np.float64]  # of X_P - X_N
    products: NDArray[np.float64]  # |X_N|^2, <X_N, X_P> and |X_P|^2, a row a problem

    @classmethod
    def of(cls, session: Any) -> _Points:
        table = session.table()
        products = np.array(session.state[2])[0 if session.classes > 2 else 1 :]
        alpha = np.zeros((len(table.ids), len(products)))
        alpha[np.repeat(np.arange(len(table.ids)), np.diff(table.starts)), table.columns] = table.coefficients
        signed = alpha * signs(table.labels, session.classes)
        return cls(table.slots, table.ids, table.labels, alpha, signed, products)

    def decision(self, dtype: np.dtype[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Coefficients and constants of f, (4.5) times 2 / |X_P - X_N|^2; zeros where the points coincide."""
        negative, cross, positive = self.products.T
        squared_distance = negative - 2 * cross + positive
        are_apart = squared_distance > 16 * np.finfo(dtype).eps * (negative + positive)
        scale = np.divide(2, squared_distance, out=np.zeros(len(cross)), where=are_apart)
        # A problem that has seen one side only says that all is of that side.
        sides = [(self.signed * side > 0).any(axis=0) for side in (1, -1)]
        one_sided = np.where(sides[0], 1.0, -1.0)
        has_both = sides[0] & sides[1]
        scale[~has_both] = 0
        return self.signed * scale, np.where(has_both, scale * (negative - positive) / 2, one_sided)


class _Training(OneVersusRestTraining):
    """The Huller as the training loop sees it."""

    SOLVER = "huller"

    def _estimated(self, left: float) -> ObjectiveValues:
        primal = self.session.objective
        return ObjectiveValues(primal, min(primal, self.session.estimated_bound), math.nan)

    def _loss_of_epoch(self) -> float:
        """Estimates look at the session as it is."""
        return 0.0

    def evaluate(self) -> ObjectiveValues:
        """The distances of the points, and of the projections of all examples on the lines through them."""
        self.feed.flush()
        points = _Points.of(self.session)
        n_problems = points.alpha.shape[1]
        place = np.full(int(self.stream.ids.max()) + 1, -1)
        place[points.ids] = np.arange(len(points.ids))
        squared_distance, middle = np.zeros(n_problems), np.zeros(n_problems)
        nearest, furthest = np.full((2, n_problems), np.inf), np.full((2, n_problems), -np.inf)
        for block in self.stream.blocks(self.stream.order, lambda: 4096):
            y = signs(block.labels, self.session.classes)
            projected = self.running.blocks.scores(block.X, points.slots, points.signed)  # <X_P - X_N, x>
            rows = np.flatnonzero(place[block.ids] >= 0)
            mine = place[block.ids[rows]]
            squared_distance += (points.signed[mine] * projected[rows]).sum(axis=0)
            middle += (points.alpha[mine] * projected[rows]).sum(axis=0) / 2  # (|X_P|^2 - |X_N|^2) / 2
            outward = projected * y
            is_used = points.alpha[mine] > 0
            for side, sign in enumerate((-1, 1)):
                nearest[side] = np.minimum(nearest[side], np.where(y == sign, outward, np.inf).min(axis=0))
                used = np.where(is_used & (y[rows] == sign), outward[rows], -np.inf)
                furthest[side] = np.maximum(furthest[side], used.max(axis=0, initial=-np.inf))
        self._check_definite(squared_distance, points)
        return _certificate(np.maximum(squared_distance, 0), middle, nearest, furthest)

    def _check_definite(self, squared_distance: NDArray[np.float64], points: _Points) -> None:
        tolerance = 1e-4 if self.running.dtype == np.float32 else 1e-9
        largest = float(np.abs(points.products).max(initial=0))
        if (squared_distance >= -tolerance * largest).all():
            return
        raise ValueError(
            f"kernel must be positive semi-definite, got one that is not on these examples: |X_P - X_N|^2 is "
            f"{squared_distance.min():.3g}"
        )

    def _predicted(self, X: Any) -> NDArray[Any]:
        points = _Points.of(self.session)
        return self._predicted_by(X, points.slots, *points.decision(self.running.dtype))

    def _operations(self) -> dict[str, int]:
        counters = self.session.counters
        return {
            "process": counters.process,
            "reprocess": counters.reprocess,
            "insertions": counters.insertions,
            "removals": counters.removals,
        }


def _certificate(
    squared_distance: NDArray[np.float64],
    middle: NDArray[np.float64],
    nearest: NDArray[np.float64],
    furthest: NDArray[np.float64],
) -> ObjectiveValues:
    """Half the squared distance, its lower bound (core/huller.hpp), and the largest violation of a margin of one.

    `nearest` are the smallest y <X_P - X_N, x> of each side, `furthest` the largest of its support vectors.
    """
    apart = squared_distance > 0
    one = np.where(apart, squared_distance, 1)
    between = np.where(np.isfinite(nearest).all(axis=0), nearest.sum(axis=0), 0)
    bound = np.where(apart, np.maximum(between, 0) ** 2 / one, 0)
    # y f(x) = 2 (y <w, x> - y middle) / |w|^2, and support vectors have y f(x) = 1, all others at least that.
    shift = np.array([[1.0], [-1.0]]) * middle
    short = 1 - 2 * (nearest + shift) / one
    beyond = 2 * (furthest + shift) / one - 1
    violations = np.where(apart & np.isfinite(short), np.maximum(short, beyond), 0)
    return ObjectiveValues(
        float(squared_distance.sum()) / 2, float(np.minimum(bound, squared_distance).sum()) / 2, float(violations.max())
    )
