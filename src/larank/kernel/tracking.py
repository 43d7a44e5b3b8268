"""SVMs that track the optimum of a growing problem, by algorithms 15 and 16 of Bordes (thesis, section 4.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from larank import _core, parameters
from larank.blocks import Provider
from larank.data.models import persistable
from larank.kernel.machine import OnlineClassifier, Running
from larank.kernel.onevsrest import OneVersusRestClassifier, OneVersusRestTraining, signs
from larank.training import ObjectiveValues

__all__ = ["TrackingSVC"]

ALGORITHMS = ("process-reprocess", "simple")


@persistable(
    "classes_",
    "support_",
    "support_vectors_",
    "dual_coef_",
    "intercept_",
    "gamma_",
    "gap_",
    "bound_",
    "n_features_in_",
    "feature_names_in_",
    "n_iter_",
    "result_",
    "_arrived",
    "_seen",
)
class TrackingSVC(OneVersusRestClassifier):
    """Support vector machine without bias whose models are near the optimum of the examples seen so far, at all times.

    After every example come `n_steps` steps on coefficients picked at random among all examples so far. The model is
    the average of the coefficients after each of them. On average over the stream it is provably close to the optimum;
    `gap_` and `bound_` show by how much, and how much the theory promises. All examples are kept with their kernel
    values: this is an algorithm to study, not one for large data. More than two classes are separated each from the
    rest.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "chi2", "intersection", "precomputed"} or callable, \
default="rbf"
        As for `LaRankClassifier`.
    C : float, default=1.0
        The cost of one unit of loss against ``1/2 |w|^2``.
    algorithm : {"process-reprocess", "simple"}, default="process-reprocess"
        Whether a new example is stepped on itself before the others (algorithm 16) or not (algorithm 15).
    n_steps : int, default=10
        Steps after every example, K in the paper. With ``8 C / epsilon^2`` of them the normalized excess is at most
        epsilon on average (corollary 8).
    gamma : {"scale", "auto"} or float, default="scale"
        The coefficient of the kernels other than "linear"; "scale" is ``1 / (n_features * X.var())`` of the first
        data seen, "auto" is ``1 / n_features``.
    degree : int, default=3
        Of the kernel "poly".
    coef0 : float, default=0.0
        The constant of the kernels "poly" and "sigmoid".
    epochs : int, default=1
        Passes over the data with ``stop="epochs"``. An example that comes again is stepped on again; the problem does
        not grow.
    stop : {"epochs", "gap"}, default="epochs"
        Whether to stop after `epochs` passes or at a duality gap.
    tol : float, optional
        With ``stop="gap"`` the relative duality gap to stop at; if not given, a gap of `C`.
    max_iter : int, default=1000
        With ``stop="gap"`` the passes after which training stops with a warning.
    time_limit : float, optional
        Seconds after which training stops with a warning.
    class_weight : dict or "balanced", optional
        Factors on ``C`` per class; "balanced" takes them inversely proportional to the class frequencies.
    shuffle : bool, default=True
        Whether `fit` visits the examples in random order; `partial_fit` never does.
    certify : bool, default=True
        Whether `fit` ends with computing the objectives of the averaged coefficients from scratch. Otherwise those of
        the coefficients after the last step are reported.
    memory_limit : float, default=2e9
        Bytes for examples, coefficients and cached kernel values. A smaller cache means more computation and the same
        model.
    batch_size : int, default=256
        Examples whose kernel values are computed together. It changes the time, not the model, up to rounding.
    n_jobs : int, optional
        Threads for kernel values, -1 for all processors; by default as many as the linear algebra library uses.
    random_state : int, RandomState or None, default=None
        Of the order of the examples and the choice of coefficients.
    verbose : int, default=0
        1 shows a progress bar or, where standard error is no terminal, a line every few seconds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    support_ : ndarray
        The examples with coefficients, as numbers in `X` or in the stream of `partial_fit`.
    support_vectors_ : ndarray, csr_matrix or list
        These examples; not with the kernel "precomputed".
    dual_coef_ : csr_matrix of shape (n_support, n_classes), or (n_support, 1) with two classes
        The averaged coefficients times the labels +1 and -1.
    intercept_ : ndarray
        Zeros.
    gap_ : ndarray of shape (n_problems,)
        The duality gap of each problem, divided by the sum of the costs: ``C`` times the number of examples.
    bound_ : ndarray of shape (n_problems,)
        The bound of lemma 5 on it, from the expected increase of the dual by a next step.
    gamma_ : float
        The value used for `gamma`.
    n_iter_ : int
        Passes over the data, rounded up.
    result_ : Result
        The certificate: objectives, gap, counts, seconds and the history.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, section 4.4.

    Examples
    --------
    >>> from larank import TrackingSVC
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = TrackingSVC(n_steps=20, random_state=0).fit(scale(X), y)
    >>> bool(model.gap_[0] <= model.bound_[0])
    True
    >>> bool(model.score(scale(X), y) > 0.95)
    True
    """

    cost_matrix = None
    _TITLE = "Tracking"
    _FIXED_IN_A_STREAM = (*OnlineClassifier._FIXED_IN_A_STREAM, "algorithm", "n_steps")

    gap_: NDArray[np.float64]
    bound_: NDArray[np.float64]

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], ArrayLike] = "rbf",
        *,
        C: float = 1.0,
        algorithm: str = "process-reprocess",
        n_steps: int = 10,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        epochs: int = 1,
        stop: str = "epochs",
        tol: float | None = None,
        max_iter: int = 1000,
        time_limit: float | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
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
        self.C = C
        self.algorithm = algorithm
        self.n_steps = n_steps
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.epochs = epochs
        self.stop = stop
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.certify = certify
        self.memory_limit = memory_limit
        self.batch_size = batch_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        parameters.one_of("algorithm", self.algorithm, ALGORITHMS)
        parameters.whole_number("n_steps", self.n_steps, at_least=1)

    def _losses_at_zero(self) -> int:
        return 1 if len(self.classes_) <= 2 else len(self.classes_)

    def _session(self, blocks: Provider, seed: int) -> Any:
        kind = _core.Tracking32 if blocks.dtype == np.float32 else _core.Tracking64
        return kind(algorithm=self.algorithm, n_steps=int(self.n_steps), seed=seed, memory_limit=int(self.memory_limit))

    def _restore(self, running: Running) -> None:
        raise ValueError(
            "partial_fit cannot go on: it needs all examples of the stream, and a model that was loaded, copied or "
            "fitted with kernel='precomputed', or whose last call of partial_fit failed, has only those with "
            "coefficients; use a new TrackingSVC"
        )

    def _training(self, running: Running, *arguments: Any, **options: Any) -> _Training:
        return _Training(self, running, *arguments, **options)

    def _keep_model(self, running: Running) -> None:
        average = _Average.of(running.session)
        self._keep_support(
            running, average.slots, average.ids, average.signed, np.zeros(average.n_problems), absent=0.0
        )
        if self.kernel != "precomputed":
            self._running = running  # all examples are in it


@dataclass(frozen=True)
class _Average:
    """The averaged coefficients of the examples that have any, a column per problem of the session."""

    slots: NDArray[np.intp]
    ids: NDArray[np.int64]
    alpha: NDArray[np.float64]
    signed: NDArray[np.float64]  # times the labels +1 and -1

    @classmethod
    def of(cls, session: Any) -> _Average:
        table = session.table()
        alpha = np.zeros((len(table.ids), session.columns))
        alpha[np.repeat(np.arange(len(table.ids)), np.diff(table.starts)), table.columns] = table.coefficients
        return cls(table.slots.astype(np.intp), table.ids, alpha, alpha * signs(table.labels, session.classes))

    @property
    def n_problems(self) -> int:
        return int(self.alpha.shape[1])


class _Training(OneVersusRestTraining):
    """A tracking algorithm as the training loop sees it."""

    SOLVER = "tracking"

    def _estimated(self, left: float) -> ObjectiveValues:
        primal, dual, expected, increases = self.session.objectives().T
        self._keep_bound(primal - dual, expected, increases, self.session.sum_of_costs, self.session.largest_diagonal)
        return ObjectiveValues(float(primal.sum()), float(dual.sum()), math.nan)

    def _loss_of_epoch(self) -> float:
        """Estimates look at the session as it is."""
        return 0.0

    def evaluate(self) -> ObjectiveValues:
        """The objectives of the averaged coefficients, and what lemma 5 says of them."""
        self.feed.flush()
        average = _Average.of(self.session)
        place = np.full(int(self.stream.ids.max()) + 1, -1)
        place[average.ids] = np.arange(len(average.ids))
        squared_norm, losses, expected, increases = np.zeros((4, average.n_problems))
        total = largest = violation = 0.0
        for block in self.stream.blocks(self.stream.order, lambda: 4096):
            y, C = signs(block.labels, self.session.classes), block.costs[:, None]
            scores = self.running.blocks.scores(block.X, average.slots, average.signed)
            diagonal = self.running.blocks.diagonal(self.running.blocks.batch(block.X, block.ids))
            rows = np.flatnonzero(place[block.ids] >= 0)
            alpha = np.zeros_like(y)
            alpha[rows] = average.alpha[place[block.ids[rows]]]
            g = 1 - y * scores  # [thesis] eq. (4.17)
            increase = _increase(alpha, g, diagonal[:, None], C)
            squared_norm += (alpha * y * scores).sum(axis=0)
            losses += (C * np.maximum(0, g)).sum(axis=0)
            expected += (C * increase).sum(axis=0)
            increases += increase.sum(axis=0)
            total += float(C.sum())
            largest = max(largest, float(diagonal.max()))
            violation = max(violation, float(np.maximum(np.where(alpha < C, g, 0), np.where(alpha > 0, -g, 0)).max()))
        dual = average.alpha.sum(axis=0) - squared_norm / 2
        primal = squared_norm / 2 + losses
        self.model._check_definite(
            float(squared_norm.sum()) / 2, float(dual.sum()), self.stream.costs, self.running.dtype
        )
        self._keep_bound(primal - dual, expected / total, increases, total, largest)
        return ObjectiveValues(float(primal.sum()), float(dual.sum()), violation)

    def _keep_bound(
        self,
        gap: NDArray[np.float64],
        expected: NDArray[np.float64],
        increases: NDArray[np.float64],
        costs: float,
        largest_diagonal: float,
    ) -> None:
        """The normalized gap and the bound of lemma 5 on it.

        The lemma has |x| <= 1 and one C. With kappa = max |x|^2 above one it holds for the examples divided by
        sqrt(kappa) and C times kappa, which is the same problem with both objectives times kappa. With costs C_i its
        proof gives sqrt(2 E Delta) with i chosen in proportion to C_i, and sum Delta / sum C for E Delta / C.
        """
        kappa = max(1.0, largest_diagonal)
        model: Any = self.model
        model.gap_ = gap / costs
        model.bound_ = np.sqrt(2 * kappa * np.maximum(0, expected)) + increases / costs

    def _predicted(self, X: Any) -> NDArray[Any]:
        average = _Average.of(self.session)
        return self._predicted_by(X, average.slots, average.signed, np.zeros(average.n_problems))

    def _operations(self) -> dict[str, int]:
        counters = self.session.counters
        return {"process": counters.process, "reprocess": counters.reprocess, "steps": counters.steps}


def _increase(
    alpha: NDArray[np.float64], g: NDArray[np.float64], diagonal: NDArray[np.float64], C: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Delta of lemma 5: what the best step on each coefficient alone would bring."""
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(diagonal > 0, g / diagonal, np.copysign(np.inf, g))
    step = np.clip(step, -alpha, C - alpha)  # [thesis] eq. (4.17)
    increase: NDArray[np.float64] = step * (g - step / 2 * diagonal)
    return increase
