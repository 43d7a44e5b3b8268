"""Kernel multiclass SVMs in one pass, or to any precision, by LaRank of Bordes et al. (ICML 2007)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse

from larank import _core, parameters
from larank.blocks import Provider
from larank.data.models import persistable
from larank.kernel.classifier import checked_cost_matrix
from larank.kernel.machine import OnlineClassifier, OnlineTraining, Running
from larank.kernel.selection import Strategy, strategy_named
from larank.kernel.stream import Examples, Feed, LinearFeed, Stream, feed_linear, squared_norms
from larank.training import ObjectiveValues, Outcome
from larank.training.result import Result

__all__ = ["LaRankClassifier"]

SCHEDULES = ("adaptive", "fixed")
OPERATIONS = ("new", "old", "optimize")

_TAU = 0.08  # of a margin of 1; smaller violations are left alone in the first epoch


@persistable(
    "classes_",
    "support_",
    "support_vectors_",
    "support_costs_",
    "dual_coef_",
    "coef_",
    "gamma_",
    "n_features_in_",
    "feature_names_in_",
    "n_iter_",
    "result_",
    "_arrived",
    "_seen",
    "_state",
)
class LaRankClassifier(OnlineClassifier):
    """Multiclass support vector machine trained online, with or without kernels.

    One pass over the examples nearly reaches the optimum of the multiclass SVM of Crammer and Singer; further passes
    reach it. Examples may come in batches, with classes never seen before.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "chi2", "intersection", "precomputed"} or callable, \
default="rbf"
        A callable takes two collections of examples and returns the matrix of their kernel values. With it `X` may be
        any sequence of objects. "linear" keeps a weight per feature and class instead of kernel values. "laplacian",
        "chi2" and "intersection" need dense data, the last two without negative features.
    C : float, default=1.0
        The cost of one unit of loss against ``1/2 |w|^2``.
    gamma : {"scale", "auto"} or float, default="scale"
        The coefficient of the kernels other than "linear"; "scale" is ``1 / (n_features * X.var())`` of the first
        data seen, "auto" is ``1 / n_features``.
    degree : int, default=3
        Of the kernel "poly".
    coef0 : float, default=0.0
        The constant of the kernels "poly" and "sigmoid".
    cost_matrix : array of shape (n_classes, n_classes), optional
        The margin ``Delta(y, y')`` by which the score of class ``y`` must exceed that of ``y'``, in the order of
        `classes_`; 1 off the diagonal if not given.
    schedule : {"adaptive", "fixed"}, default="adaptive"
        How the three operations take turns: in proportion to the dual increase they bring for their work, or each new
        example followed by `n_reprocess` times one PROCESSOLD and ten OPTIMIZE.
    n_reprocess : int, default=1
        Of the fixed schedule.
    operations : collection of {"new", "old", "optimize"}, default=("new", "old", "optimize")
        What the schedule may choose from; "new" must be among them.
    epochs : int, default=1
        Passes over the data with ``stop="epochs"``.
    selection : {"random", "gradient", "active", "autoactive"} or strategy, default="random"
        Which example `fit` takes next: any, or of some random ones that which is most wrong, or nearest to the
        decision boundary; "autoactive" ends its sample once it has a few near ones. Strategies are in `larank.active`.
    sample_size : int, optional
        Of how many random examples a selection other than "random" takes one; 50, or at most 100 with "autoactive".
    label_budget : int, optional
        How many examples `fit` takes at most. The certificate is that of the problem of all examples.
    stop : {"epochs", "gap"}, default="epochs"
        Whether to stop after `epochs` passes or at a duality gap.
    tol : float, optional
        With ``stop="gap"`` the relative duality gap to stop at; if not given, a gap of `C` as in the paper.
    max_iter : int, default=1000
        With ``stop="gap"`` the passes after which training stops with a warning.
    time_limit : float, optional
        Seconds after which training stops with a warning.
    class_weight : dict or "balanced", optional
        Factors on ``C`` per class; "balanced" takes them inversely proportional to the class frequencies.
    shuffle : bool, default=True
        Whether `fit` visits the examples in random order; `partial_fit` never does.
    certify : bool, default=True
        Whether `fit` ends with computing the primal objective from scratch, which takes as many kernel values as
        examples times support patterns. Otherwise the certificate holds an estimate made on the way.
    memory_limit : float, default=2e9
        Bytes for support patterns, coefficients and cached kernel values. A smaller cache means more computation and
        the same model.
    batch_size : int, default=256
        Examples whose kernel values are computed together. It changes the time, not the model, up to rounding.
    n_jobs : int, optional
        Threads for kernel values, -1 for all processors; by default as many as the linear algebra library uses. With
        several, the values of the next batch are computed while this one is worked on.
    random_state : int, RandomState or None, default=None
        Of the order of the examples and the choices of the schedule.
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
    dual_coef_ : csr_matrix of shape (n_support, n_classes)
        The coefficients ``beta``. Those of a pattern add up to zero; only the one of its label is positive.
    support_costs_ : ndarray of shape (n_support,)
        The bound of each pattern's largest coefficient: `C` times its weights.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) with two classes
        The weights, with the kernel "linear". With two classes, those of the second minus those of the first.
    gamma_ : float
        The value used for `gamma`.
    n_iter_ : int
        Passes over the data, rounded up.
    result_ : Result
        The certificate: objectives, gap, counts, seconds and the history.

    References
    ----------
    Bordes, Bottou, Gallinari, Weston. Solving MultiClass Support Vector Machines with LaRank. ICML 2007.

    Examples
    --------
    >>> from larank import LaRankClassifier
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> X, y = letter.X_train[:4000].astype("float32"), letter.y_train[:4000]
    >>> model = LaRankClassifier(C=10, gamma=0.025, random_state=0).fit(X, y)
    >>> bool(model.score(letter.X_test.astype("float32"), letter.y_test) > 0.9)
    True
    >>> bool(model.result_.dual < model.result_.primal)
    True
    """

    _TITLE = "LaRank"
    _FIXED_IN_A_STREAM = (
        *OnlineClassifier._FIXED_IN_A_STREAM,
        "cost_matrix",
        "schedule",
        "n_reprocess",
        "operations",
    )

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], ArrayLike] = "rbf",
        *,
        C: float = 1.0,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        cost_matrix: ArrayLike | None = None,
        schedule: str = "adaptive",
        n_reprocess: int = 1,
        operations: Collection[str] = OPERATIONS,
        epochs: int = 1,
        selection: str | Strategy = "random",
        sample_size: int | None = None,
        label_budget: int | None = None,
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
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.cost_matrix = cost_matrix
        self.schedule = schedule
        self.n_reprocess = n_reprocess
        self.operations = operations
        self.epochs = epochs
        self.selection = selection
        self.sample_size = sample_size
        self.label_budget = label_budget
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
        parameters.one_of("schedule", self.schedule, SCHEDULES)
        parameters.whole_number("n_reprocess", self.n_reprocess, at_least=0)
        if not isinstance(self.operations, Collection):
            raise ValueError(f"operations must be a collection of {OPERATIONS}, got {self.operations!r}")
        operations = [self.operations] if isinstance(self.operations, str) else list(self.operations)
        for operation in operations:
            parameters.one_of("operations", operation, OPERATIONS)
        if self.kernel == "linear" and strategy_named(self.selection, self.sample_size).needs_scores:
            raise ValueError(f"selection must be 'random' with kernel='linear', got {self.selection!r}")
        if "new" not in operations:
            raise ValueError(f"operations must contain 'new', got {self.operations!r}")
        if self.schedule == "adaptive" and self.n_reprocess != 1:
            raise ValueError(
                f"n_reprocess acts with schedule='fixed' only; got n_reprocess={self.n_reprocess!r} with "
                f"schedule='adaptive'"
            )

    def _begin(self, X: Any, seed: int) -> Running:
        if self.kernel != "linear":
            return super()._begin(X, seed)
        self._resolved_kernel(X)  # checks its parameters
        session = _core.LinearLaRank32 if X.dtype == np.float32 else _core.LinearLaRank64
        return _LinearRunning(session(**self._settings(seed), features=X.shape[1]), is_sparse=issparse(X))

    def _session(self, blocks: Provider, seed: int) -> Any:
        session = _core.KernelLaRank32 if blocks.dtype == np.float32 else _core.KernelLaRank64
        return session(**self._settings(seed), memory_limit=int(self.memory_limit))

    def _settings(self, seed: int) -> dict[str, Any]:
        return {
            "schedule": self.schedule,
            "n_reprocess": int(self.n_reprocess),
            "operations": [operation for operation in OPERATIONS if operation in self.operations],
            "tau": _TAU,
            "seed": seed,
        }

    def _restore(self, running: Running) -> None:
        beta = self.dual_coef_
        place = np.full(len(self.classes_), -1, dtype=np.int32)
        place[self._columns()] = np.arange(len(self._arrived))
        for _ in self._arrived:
            running.session.add_class()
        patterns = len(self.support_)
        classes = place[beta.indices]
        own = np.zeros(0, np.int32)
        if patterns:
            own = np.maximum.reduceat(np.where(beta.data > 0, classes, -1), beta.indptr[:-1])
        arrived = csr_matrix((beta.data, classes, beta.indptr), shape=(patterns, len(self._arrived)))
        running.restore(self, own, self.support_costs_, arrived)
        running.session.state = self._state

    def _training(
        self,
        running: Running,
        stream: Stream,
        held_out: tuple[Any, NDArray[Any]] | None,
        *,
        epochs: int,
        is_whole: bool,
    ) -> OnlineTraining:
        return _Training(self, running, stream, held_out, epochs=epochs, is_whole=is_whole)

    def _keep_model(self, running: Running) -> None:
        table = running.session.table()
        columns = self._columns()
        dual_coef = csr_matrix(
            (table.coefficients, columns[table.columns], table.starts), shape=(len(table.ids), len(self.classes_))
        )
        dual_coef.sort_indices()
        self.dual_coef_, self.support_, self.support_costs_ = dual_coef, table.ids, table.costs
        self._state = running.session.state
        if isinstance(running, _LinearRunning):
            self.support_vectors_ = running.patterns()
            coef = np.zeros((len(self.classes_), self.n_features_in_), running.dtype)
            coef[columns] = running.session.weights()
            self.coef_ = coef[1:] - coef[:1] if len(coef) == 2 else coef
        elif self.kernel != "precomputed":
            self.support_vectors_ = running.blocks.patterns(table.slots)


class _LinearRunning(Running):
    """A session that is fed the examples themselves and keeps weights."""

    def __init__(self, session: Any, *, is_sparse: bool) -> None:
        self.session, self.is_sparse = session, is_sparse
        self.is_ahead = False

    def feed(self, stream: Iterator[Examples]) -> Feed:
        return LinearFeed(self.session, stream)

    def patterns(self) -> Any:
        """The support patterns, slot by slot."""
        values, columns, starts = self.session.patterns()
        if columns is None and not self.is_sparse:
            return values.reshape(len(starts) - 1, self.session.features)
        columns = np.empty(0, np.int32) if columns is None else columns
        return csr_matrix((values, columns, starts), shape=(len(starts) - 1, self.session.features))

    def _adopted(self, model: OnlineClassifier) -> NDArray[np.float64]:
        """Hand over the support patterns as a block; its rows are what the session takes them by."""
        X, ids = model.support_vectors_, model.support_
        diagonal = squared_norms(X)
        feed_linear(self.session, Examples(X, ids, np.zeros(len(ids), np.int32), model.support_costs_), diagonal)
        return diagonal

    def _take_over(self, table: _core.SupportTable) -> None:
        self.session.restore(table)

    def block_values(self, memory_limit: float) -> float:
        return math.inf

    def plan(self, memory_limit: float) -> str:
        return ""

    def check_memory(self, limit: float) -> None:
        """There is nothing it could do without."""
        if self.session.bytes > limit:
            raise ValueError(
                f"memory_limit must be at least {self.session.bytes} bytes for the weights and "
                f"{self.session.support_patterns} support patterns, got {limit:g}"
            )


class _Training(OnlineTraining):
    """LaRank as the training loop sees it."""

    SOLVER = "larank"

    def __init__(self, model: LaRankClassifier, running: Running, *arguments: Any, **options: Any) -> None:
        super().__init__(model, running, *arguments, **options)
        self.tau = _TAU
        self.margins = np.eye(len(model._arrived))
        if model.cost_matrix is not None:
            columns = model._columns()
            delta = checked_cost_matrix(model.cost_matrix, len(model.classes_))
            self.margins = np.ascontiguousarray(1 - delta[np.ix_(columns, columns)])
            self.session.set_margins(self.margins)

    @property
    def _is_linear(self) -> bool:
        return isinstance(self.running, _LinearRunning)

    def _provider_threads(self) -> Any:
        return None if self._is_linear else super()._provider_threads()

    def _begin_epoch(self) -> None:
        self.tau /= 4
        self.session.set_tau(self.tau)
        super()._begin_epoch()

    def evaluate(self) -> ObjectiveValues:
        """The objectives from scratch: one pass over the examples with the coefficients as they are."""
        self._finish()
        self.feed.flush()
        stream, table = self.stream, self.session.table()
        beta = self._coefficients(table)
        support = np.full(int(stream.ids.max()) + 1, -1)
        support[table.ids] = np.arange(len(table.ids))
        linear = float((self.margins[table.labels] * beta).sum())
        squared_norm = losses = violation = 0.0
        for block in stream.blocks(stream.order, lambda: 4096):
            scores = self._scores(block.X, table, beta)
            g = self.margins[block.labels] - scores
            worst, own = g.min(axis=1), g[np.arange(len(block)), block.labels]
            losses += float(block.costs @ (own - worst))
            rows = np.flatnonzero(support[block.ids] >= 0)
            mine = np.zeros_like(g)
            mine[rows] = beta[support[block.ids[rows]]]
            squared_norm += float((mine * scores).sum())
            bound = np.zeros_like(g)
            bound[np.arange(len(block)), block.labels] = block.costs
            best = np.where(mine < bound, g, -np.inf).max(axis=1)
            violation = max(violation, float((best - worst).max()))
        half = squared_norm / 2
        self._check_definite(half, linear - half)
        return ObjectiveValues(half + losses, linear - half, violation)

    def _check_definite(self, half_squared_norm: float, dual: float) -> None:
        self.model._check_definite(half_squared_norm, dual, self.stream.costs, self.running.dtype)

    def _coefficients(self, table: _core.SupportTable) -> NDArray[np.float64]:
        """A row per pattern and a column per class of the stream, those included that have yet to arrive."""
        beta = np.zeros((len(table.ids), len(self.model._arrived)))
        beta[np.repeat(np.arange(len(table.ids)), np.diff(table.starts)), table.columns] = table.coefficients
        return beta

    def _scores(self, X: Any, table: _core.SupportTable, beta: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._is_linear:
            scores = np.zeros((X.shape[0], beta.shape[1]))
            scores[:, : self.session.classes] = X @ self.session.weights().T
            return scores
        return self.running.blocks.scores(X, table.slots, beta)

    def _predicted(self, X: Any) -> NDArray[Any]:
        table = self.session.table()
        predicted: NDArray[Any] = self.model._arrived[self._scores(X, table, self._coefficients(table)).argmax(axis=1)]
        return predicted

    def _kernel_values(self) -> int:
        return 0 if self._is_linear else super()._kernel_values()

    def _operations(self) -> dict[str, int]:
        new, old, optimize = self.session.counters.operations
        return {"process_new": new, "process_old": old, "optimize": optimize, "steps": self.session.counters.steps}

    def _argmax_calls(self) -> int:
        calls: int = self.session.counters.argmax
        return calls

    def _breakdown(self) -> dict[str, float]:
        counters = self.session.counters
        steps = {"selection": counters.selection_seconds, "steps": counters.step_seconds}
        return steps if self._is_linear else {**super()._breakdown(), **steps}

    def result(self, outcome: Outcome) -> Result:
        if self.is_whole and not outcome.exact:
            self._check_definite(self.session.half_squared_norm, self.session.dual)
        return super().result(outcome)
