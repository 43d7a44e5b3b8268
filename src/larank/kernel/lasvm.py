"""Binary kernel SVMs with a bias in one pass by LaSVM of Bordes et al., and several of them one-versus-rest."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from larank import _core, parameters
from larank.blocks import Provider
from larank.data.models import persistable
from larank.kernel.machine import OnlineClassifier, OnlineTraining, Running
from larank.kernel.onevsrest import OneVersusRestClassifier, OneVersusRestTraining, for_all_classes, signs
from larank.kernel.selection import Strategy
from larank.kernel.stream import SessionFeed, Stream
from larank.training import Limits, ObjectiveValues, Outcome, TrainingWarning

__all__ = ["LaSVMClassifier"]

_LEAST_TAU = 1e-12
_FINISHING_STEPS = 5_000  # of one call, well under a second


@persistable(
    "classes_",
    "support_",
    "support_vectors_",
    "support_costs_",
    "support_labels_",
    "dual_coef_",
    "intercept_",
    "delta_",
    "gamma_",
    "n_features_in_",
    "feature_names_in_",
    "n_iter_",
    "result_",
    "_arrived",
    "_seen",
)
class LaSVMClassifier(OneVersusRestClassifier):
    """Support vector machine with a bias, trained online.

    One pass over the examples and a finishing step on the support vectors it has found nearly reach the SVM that
    `sklearn.svm.SVC` computes; further passes reach it. Examples may come in batches, with classes never seen before.
    More than two classes make one problem each against the rest; all of them share kernel values.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "chi2", "intersection", "precomputed"} or callable, \
default="rbf"
        A callable takes two collections of examples and returns the matrix of their kernel values. With it `X` may be
        any sequence of objects. "laplacian", "chi2" and "intersection" need dense data, the last two without negative
        features.
    C : float, default=1.0
        The cost of one unit of loss against ``1/2 |w|^2``.
    gamma : {"scale", "auto"} or float, default="scale"
        The coefficient of the kernels other than "linear"; "scale" is ``1 / (n_features * X.var())`` of the first
        data seen, "auto" is ``1 / n_features``.
    degree : int, default=3
        Of the kernel "poly".
    coef0 : float, default=0.0
        The constant of the kernels "poly" and "sigmoid".
    tau : float, default=1e-3
        Violations of optimality up to this are left alone, as with `tol` of `SVC`.
    epochs : int, default=1
        Passes over the data with ``stop="epochs"``.
    finish : bool, default=True
        Whether the model is taken after a finishing step, which optimizes the coefficients of the support vectors
        found so far to `tau`. Later examples go on as if it had not been.
    delta_max : float, optional
        After each new example, REPROCESS until the uncertainty of the threshold is below this instead of once.
    selection : {"random", "gradient", "active", "autoactive"} or strategy, default="random"
        Which example `fit` takes next: any, or of some random ones that which is most wrong, or nearest to the
        decision boundary; "autoactive" ends its sample once it has a few near ones. Strategies are in `larank.active`.
    sample_size : int, optional
        Of how many random examples a selection other than "random" takes one; 50, or at most 100 with "autoactive".
    label_budget : int, optional
        How many examples `fit` takes at most. The certificate is that of the problem of all examples.
    stop : {"epochs", "gap"}, default="epochs"
        Whether to stop after `epochs` passes, or at a duality gap, each pass then followed by a finishing step.
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
        Whether `fit` ends with computing the objectives from scratch, which takes as many kernel values as examples
        times support vectors. Otherwise the certificate holds an estimate made on the way.
    memory_limit : float, default=2e9
        Bytes for support vectors, coefficients and cached kernel values. A smaller cache means more computation and
        the same model.
    batch_size : int, default=256
        Examples whose kernel values are computed together. It changes the time, not the model, up to rounding.
    n_jobs : int, optional
        Threads for kernel values, -1 for all processors; by default as many as the linear algebra library uses.
    random_state : int, RandomState or None, default=None
        Of the order of the examples.
    verbose : int, default=0
        1 shows a progress bar or, where standard error is no terminal, a line every few seconds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    support_ : ndarray
        The support vectors, as numbers of examples in `X` or in the stream of `partial_fit`.
    support_vectors_ : ndarray, csr_matrix or list
        The support vectors; not with the kernel "precomputed".
    dual_coef_ : csr_matrix of shape (n_support, n_problems)
        The coefficients ``alpha``, positive for examples of the problem's class. There is one problem with two
        classes, the second against the first, and otherwise one per class.
    intercept_ : ndarray of shape (n_problems,)
        The biases.
    delta_ : ndarray of shape (n_problems,)
        The uncertainty of the biases: the largest violation of optimality among the support vectors.
    support_costs_ : ndarray of shape (n_support,)
        The bound of each coefficient's absolute value: `C` times its weights.
    support_labels_ : ndarray of shape (n_support,)
        The labels of the support vectors.
    gamma_ : float
        The value used for `gamma`.
    n_iter_ : int
        Passes over the data, rounded up.
    result_ : Result
        The certificate: objectives, gap, counts, seconds and the history. Those of several problems are added up.

    References
    ----------
    Bordes, Ertekin, Weston, Bottou. Fast Kernel Classifiers with Online and Active Learning. JMLR 2005.

    Examples
    --------
    >>> from larank import LaSVMClassifier
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> X, y = letter.X_train[:4000].astype("float32"), letter.y_train[:4000] < "N"
    >>> model = LaSVMClassifier(C=10, gamma=0.025, random_state=0).fit(X, y)
    >>> bool(model.score(letter.X_test.astype("float32"), letter.y_test < "N") > 0.93)
    True
    >>> bool(model.result_.dual < model.result_.primal)
    True
    """

    _TITLE = "LaSVM"
    _FIXED_IN_A_STREAM = (*OnlineClassifier._FIXED_IN_A_STREAM, "tau", "delta_max")
    cost_matrix = None

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], ArrayLike] = "rbf",
        *,
        C: float = 1.0,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tau: float = 1e-3,
        epochs: int = 1,
        finish: bool = True,
        delta_max: float | None = None,
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
        self.tau = tau
        self.epochs = epochs
        self.finish = finish
        self.delta_max = delta_max
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
        if parameters.positive("tau", self.tau) < _LEAST_TAU:
            raise ValueError(f"tau must be at least {_LEAST_TAU:g}, for gradients are rounded; got {self.tau!r}")
        parameters.flag("finish", self.finish)
        if self.delta_max is not None:
            parameters.positive("delta_max", self.delta_max)
        if self.stop == "gap" and not self.finish:
            raise ValueError("finish=False acts with stop='epochs' only: stop='gap' finishes after each pass")

    def _session(self, blocks: Provider, seed: int) -> Any:
        session = _core.LaSVM32 if blocks.dtype == np.float32 else _core.LaSVM64
        return session(tau=float(self.tau), delta_max=float(self.delta_max or 0), memory_limit=int(self.memory_limit))

    def _restore(self, running: Running) -> None:
        for _ in self._arrived:
            running.session.add_class()
        alpha = self._by_problem(self.dual_coef_.toarray())
        order = np.argsort(self._arrived)
        labels = order[np.searchsorted(self._arrived[order], self.support_labels_)]
        running.restore(self, labels, self.support_costs_, csr_matrix(alpha))

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

    def _train(self, training: OnlineTraining, limits: Limits, about: str) -> Outcome:
        outcome = super()._train(training, limits, about)
        assert isinstance(training, _Training)
        at, wanted = outcome.objectives, limits.closing_gap(outcome.objectives.primal)
        is_open = wanted is not None and at.primal - at.dual > wanted
        return replace(outcome, status="precision") if training.has_stalled and is_open else outcome

    def _limit_of_precision(self) -> str:
        return f"where nothing violates optimality by more than tau={self.tau}, a smaller one would do"

    def _keep_model(self, running: Running) -> None:
        model = _Model.of(running.session)
        self._keep_support(running, model.slots, model.ids, model.alpha, model.bias, absent=-1.0)
        self.delta_ = np.abs(self._by_class(np.maximum(0, model.delta)[None], running.session.classes, 0.0)[0])
        self.support_costs_, self.support_labels_ = model.costs, self._arrived[model.labels]


@dataclass(frozen=True)
class _Model:
    """The support vectors slot by slot, with a coefficient for each problem of the session."""

    slots: NDArray[np.int32]
    ids: NDArray[np.int64]
    labels: NDArray[np.int32]
    costs: NDArray[np.float64]
    alpha: NDArray[np.float64]
    bias: NDArray[np.float64]
    delta: NDArray[np.float64]

    @classmethod
    def of(cls, session: Any) -> _Model:
        table = session.table()
        alpha = np.zeros((len(table.ids), session.columns))
        alpha[np.repeat(np.arange(len(table.ids)), np.diff(table.starts)), table.columns] = table.coefficients
        return cls(table.slots, table.ids, table.labels, table.costs, alpha, session.bias, session.delta)


class _Training(OneVersusRestTraining):
    """LaSVM as the training loop sees it."""

    SOLVER = "lasvm"

    def __init__(self, model: LaSVMClassifier, running: Running, *arguments: Any, **options: Any) -> None:
        super().__init__(model, running, *arguments, **options)
        self.is_finishing = False
        self.finishing_seconds = 0.0
        self.steps = 0  # up to the last epoch's end
        self.has_stalled = False  # nothing violates optimality by more than tau

    def advance(self) -> bool:
        """Work on the next few examples or finishing steps; True once all epochs are over and finished."""
        if not self.is_finishing:
            is_over = super().advance()
            is_due = self.model.finish and (is_over or (self.epoch_is_over and self.model.stop == "gap"))
            if not is_due:
                return is_over
            self.is_finishing = True
        if not self._finish_some():
            return False
        self.is_finishing = False
        if self.model.stop == "epochs":
            return True
        self.session.take_over_finish()
        counters = self.session.counters
        before, self.steps = self.steps, counters.steps + counters.finishing_steps
        self.has_stalled = before == self.steps
        return self.has_stalled

    def _finish(self) -> None:
        """Nothing: where training ends early, the model is taken as it is."""

    def _finish_some(self) -> bool:
        assert isinstance(self.feed, SessionFeed)
        began = time.perf_counter()
        try:
            return self.feed.finish_some(_FINISHING_STEPS)
        except _core.MemoryLimitError as error:
            self.session.go_on()
            warnings.warn(f"the model is not finished: {error}", TrainingWarning, stacklevel=2)
            return True
        finally:
            self.finishing_seconds += time.perf_counter() - began

    def evaluate(self) -> ObjectiveValues:
        """The objectives from scratch: one pass over the examples with the coefficients as they are."""
        self.feed.flush()
        stream, model = self.stream, _Model.of(self.session)
        # Classes that have not been met yet count as well: everything is against them.
        arrived, classes = self.session.classes, len(self.model._arrived)
        coefficients = for_all_classes(model.alpha, arrived, classes, 0.0)
        bias = for_all_classes(model.bias[None], arrived, classes, -1.0)[0]
        support = np.full(int(stream.ids.max()) + 1, -1)
        support[model.ids] = np.arange(len(model.ids))
        squared_norm = linear = losses = 0.0
        largest, smallest = np.full(len(bias), -np.inf), np.full(len(bias), np.inf)
        for block in stream.blocks(stream.order, lambda: 4096):
            y = signs(block.labels, classes)
            expansion = self.running.blocks.scores(block.X, model.slots, coefficients)
            losses += float(block.costs @ np.maximum(0, 1 - y * (expansion + bias)).sum(axis=1))
            rows = np.flatnonzero(support[block.ids] >= 0)
            alpha = np.zeros_like(y)
            alpha[rows] = coefficients[support[block.ids[rows]]]
            squared_norm += float((alpha * expansion).sum())
            linear += float((alpha * y).sum())
            g, bound = y - expansion, block.costs[:, None] * y
            largest = np.maximum(largest, np.where(alpha < np.maximum(0, bound), g, -np.inf).max(axis=0))
            smallest = np.minimum(smallest, np.where(alpha > np.minimum(0, bound), g, np.inf).min(axis=0))
        half = squared_norm / 2
        self.model._check_definite(half, linear - half, np.tile(stream.costs, len(bias)), self.running.dtype)
        return ObjectiveValues(half + losses, linear - half, max(0.0, float((largest - smallest).max())))

    def _predicted(self, X: Any) -> NDArray[Any]:
        """By the model one would have if training ended here."""
        if self.model.finish and self.model.stop == "epochs":
            while not self._finish_some():
                pass
        model = _Model.of(self.session)
        return self._predicted_by(X, model.slots, model.alpha, model.bias)

    def _breakdown(self) -> dict[str, float]:
        return {**super()._breakdown(), "finish": self.finishing_seconds}

    def _operations(self) -> dict[str, int]:
        counters = self.session.counters
        return {
            "process": counters.process,
            "reprocess": counters.reprocess,
            "steps": counters.steps,
            "finishing_steps": counters.finishing_steps,
        }
