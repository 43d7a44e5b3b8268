"""Kernel perceptrons in passes over a stream: perceptron, averaged, with a budget, and passive-aggressive."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse

from larank import _core, parameters
from larank.blocks import Provider
from larank.data.models import persistable
from larank.kernel.machine import OnlineClassifier, OnlineTraining, Running
from larank.kernel.stream import Stream
from larank.training import ObjectiveValues

__all__ = ["KernelPassiveAggressive", "KernelPerceptron"]

DECISIONS = ("last", "average")

_FITTED = (
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
    "_beta",
    "_early",
    "_counters",
)


class _PerceptronClassifier(OnlineClassifier):
    """What the perceptrons share: one column of coefficients for two classes, a column per class for more."""

    cost_matrix = None

    _beta: csr_matrix  # the coefficients now; columns in the order of arrival
    _early: csr_matrix  # what must be taken from them for the average, times the number of visits
    _counters: tuple[int, int, int, int]

    def _scores(self, X: Any) -> NDArray[np.float64]:
        linear = self.kernel == "linear"
        scores = np.asarray(X @ self.coef_.T, dtype=np.float64) if linear else self._expansions(X)
        if self.dual_coef_.shape[1] > 1:
            return scores
        return np.column_stack([-scores / 2, scores / 2])[:, : len(self.classes_)]

    def _training(
        self,
        running: Running,
        stream: Stream,
        held_out: tuple[Any, NDArray[Any]] | None,
        *,
        epochs: int,
        is_whole: bool,
    ) -> OnlineTraining:
        if len(self.classes_) > 2:
            running.session.split_column()
        kind = self._kind_of_training()
        return kind(self, running, stream, held_out, epochs=epochs, is_whole=is_whole)

    @abstractmethod
    def _kind_of_training(self) -> type[_Training]:
        """Whose name the result has."""

    def _begin(self, X: Any, seed: int) -> Running:
        running = super()._begin(X, seed)
        return _Running(running.session, running.blocks)

    def _decision_of(self, table: _Table, visits: int) -> NDArray[np.float64]:
        """The coefficients of the model, one for each in the table."""
        return table.beta

    def _keep_model(self, running: Running) -> None:
        table = _Table.of(running.session)
        self._counters = running.session.state
        self.support_, self.support_costs_ = table.ids, table.costs
        self._beta, self._early = table.matrix(table.beta), table.matrix(table.early)
        decision = table.matrix(self._decision_of(table, self._counters[0]))
        self.dual_coef_ = self._in_order_of_classes(decision, is_single=running.session.is_single)
        if self.kernel != "precomputed":
            self.support_vectors_ = running.blocks.patterns(table.slots)
        if self.kernel == "linear":
            coef = self.dual_coef_.T @ self.support_vectors_
            self.coef_ = coef.toarray() if issparse(coef) else coef

    def _in_order_of_classes(self, arrived: csr_matrix, *, is_single: bool) -> csr_matrix:
        columns = self._columns()
        if is_single:  # the first class to arrive is that below zero
            return arrived if columns[0] == 0 else -arrived
        coefficients = csr_matrix(
            (arrived.data, columns[arrived.indices], arrived.indptr),
            shape=(arrived.shape[0], len(self.classes_)),
            copy=True,
        )
        coefficients.sort_indices()
        return coefficients

    def _restore(self, running: Running) -> None:
        session, beta, early = running.session, self._beta, self._early
        is_single = self.dual_coef_.shape[1] == 1
        if not is_single:
            session.split_column()
        own = np.array([self._own_label(n, is_single) for n in range(len(self.support_))], np.int32)
        running.restore(self, own, self.support_costs_, beta)
        session.early, session.state = early.data, self._counters

    def _own_label(self, n: int, is_single: bool) -> int:
        """The label of a support pattern, by its coefficients."""
        part = slice(self._beta.indptr[n], self._beta.indptr[n + 1])
        values, columns = self._beta.data[part], self._beta.indices[part]
        return int(values[0] > 0) if is_single else int(columns[values.argmax()])


@persistable(*_FITTED)
class KernelPerceptron(_PerceptronClassifier):
    """Perceptron with a kernel: an example that is misclassified when it comes joins the support patterns.

    With two classes it is one decision function ``f``, and an example with ``y f(x) <= margin`` adds ``y k(x, .)`` to
    it. With more, every class has a function, and an example adds ``k(x, .)`` to that of its label and takes it from
    that of the best wrong class, if it is not more than `margin` below. There is no bias.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "chi2", "intersection", "precomputed"} or callable, \
default="rbf"
        A callable takes two collections of examples and returns the matrix of their kernel values. With it `X` may be
        any sequence of objects. "laplacian", "chi2" and "intersection" need dense data, the last two without negative
        features.
    decision : {"last", "average"}, default="last"
        The decision function to keep: that after the last example, or the average of those after every example, which
        is steadier.
    margin : float, default=0.0
        An example is left alone if it is scored by more than this; 0 is the perceptron.
    budget : int, optional
        The most support patterns to keep. When there is one more, that leaves which would be scored best without its
        own coefficients. Needs ``decision="last"``: a pattern that has left would still be in the average.
    gamma : {"scale", "auto"} or float, default="scale"
        The coefficient of the kernels other than "linear"; "scale" is ``1 / (n_features * X.var())`` of the first
        data seen, "auto" is ``1 / n_features``.
    degree : int, default=3
        Of the kernel "poly".
    coef0 : float, default=0.0
        The constant of the kernels "poly" and "sigmoid".
    epochs : int, default=1
        Passes over the data.
    time_limit : float, optional
        Seconds after which training stops with a warning.
    class_weight : dict or "balanced", optional
        Factors on the steps per class; "balanced" takes them inversely proportional to the class frequencies.
    shuffle : bool, default=True
        Whether `fit` visits the examples in random order; `partial_fit` never does.
    memory_limit : float, default=2e9
        Bytes for support patterns, coefficients and kernel values. Without a budget no kernel values between support
        patterns are kept; with one, those used least recently are computed again if they do not fit.
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
        The support patterns, as numbers of examples in `X` or in the stream of `partial_fit`.
    support_vectors_ : ndarray, csr_matrix or list
        The support patterns; not with the kernel "precomputed".
    dual_coef_ : csr_matrix of shape (n_support, n_classes), or (n_support, 1) with two classes
        The coefficients. With two classes, those of the second are positive.
    support_costs_ : ndarray of shape (n_support,)
        The weights of the support patterns.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) with two classes
        The weights of the features, with the kernel "linear".
    gamma_ : float
        The value used for `gamma`.
    n_iter_ : int
        Passes over the data, rounded up.
    result_ : Result
        Counts, seconds and the history with the error on examples as they came. A perceptron minimises no objective:
        `primal`, `dual` and `gap` are not numbers.

    Notes
    -----
    A class takes part from its first example on. If `partial_fit` meets a third class, the function of the first two
    becomes one for each; name all `classes` in the first call where calls with parts of a stream must make the same
    model as one call with all of it.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, algorithms 2 and 4.
    Freund, Schapire. Large Margin Classification Using the Perceptron Algorithm. ICML 1998.
    Crammer, Kandola, Singer. Online Classification on a Budget. NIPS 16, 2004.

    Examples
    --------
    >>> from larank import KernelPerceptron
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> X, y = letter.X_train[:4000].astype("float32"), letter.y_train[:4000]
    >>> model = KernelPerceptron(decision="average", gamma=0.025, epochs=5, random_state=0).fit(X, y)
    >>> bool(model.score(letter.X_test.astype("float32"), letter.y_test) > 0.85)
    True
    """

    C = 1.0  # a step has the size of the example's weight

    _TITLE = "Kernel perceptron"
    _FIXED_IN_A_STREAM = (*OnlineClassifier._FIXED_IN_A_STREAM, "margin", "budget")

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], ArrayLike] = "rbf",
        *,
        decision: str = "last",
        margin: float = 0.0,
        budget: int | None = None,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        epochs: int = 1,
        time_limit: float | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        shuffle: bool = True,
        memory_limit: float = 2e9,
        batch_size: int = 256,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        """Store the parameters; `fit` checks them."""
        self.kernel = kernel
        self.decision = decision
        self.margin = margin
        self.budget = budget
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.epochs = epochs
        self.time_limit = time_limit
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.memory_limit = memory_limit
        self.batch_size = batch_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        parameters.one_of("decision", self.decision, DECISIONS)
        parameters.positive("margin", self.margin, zero=True)
        if self.budget is None:
            return
        parameters.whole_number("budget", self.budget, at_least=1)
        if self.decision == "average":
            raise ValueError(
                f"budget acts with decision='last' only: support patterns that have left would stay in the average; "
                f"got budget={self.budget!r} with decision='average'"
            )

    def _session(self, blocks: Provider, seed: int) -> Any:
        kind = _core.KernelPerceptron32 if blocks.dtype == np.float32 else _core.KernelPerceptron64
        budget = None if self.budget is None else int(self.budget)
        return kind(margin=float(self.margin), budget=budget, memory_limit=int(self.memory_limit))

    def _kind_of_training(self) -> type[_Training]:
        return _PerceptronTraining

    def _decision_of(self, table: _Table, visits: int) -> NDArray[np.float64]:
        return table.beta if self.decision == "last" else table.beta - table.early / visits


@persistable(*_FITTED)
class KernelPassiveAggressive(_PerceptronClassifier):
    """Passive-aggressive classifier with a kernel: an example within the margin of 1 makes the step that frees it.

    With two classes it is one decision function ``f``. An example with ``y f(x) < 1`` adds ``tau y k(x, .)`` to it,
    with ``tau = min(C, (1 - y f(x)) / k(x, x))``. With more classes, each has a function. An example whose score is not
    1 above that of the best wrong class adds ``tau k(x, .)`` to the function of its label and takes it from that of
    the wrong class, with ``tau = min(C, loss / (2 k(x, x)))``. This is the step of MIRA, and of PROCESSNEW in LaRank,
    for one wrong class. There is no bias.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "chi2", "intersection", "precomputed"} or callable, \
default="rbf"
        A callable takes two collections of examples and returns the matrix of their kernel values. With it `X` may be
        any sequence of objects. "laplacian", "chi2" and "intersection" need dense data, the last two without negative
        features.
    C : float, default=1.0
        The largest step. Smaller values forgive noise.
    gamma : {"scale", "auto"} or float, default="scale"
        The coefficient of the kernels other than "linear"; "scale" is ``1 / (n_features * X.var())`` of the first
        data seen, "auto" is ``1 / n_features``.
    degree : int, default=3
        Of the kernel "poly".
    coef0 : float, default=0.0
        The constant of the kernels "poly" and "sigmoid".
    epochs : int, default=1
        Passes over the data. An example that comes again takes another step of up to `C`.
    time_limit : float, optional
        Seconds after which training stops with a warning.
    class_weight : dict or "balanced", optional
        Factors on ``C`` per class; "balanced" takes them inversely proportional to the class frequencies.
    shuffle : bool, default=True
        Whether `fit` visits the examples in random order; `partial_fit` never does.
    memory_limit : float, default=2e9
        Bytes for support patterns, coefficients and kernel values. None are kept between support patterns.
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
        The support patterns, as numbers of examples in `X` or in the stream of `partial_fit`.
    support_vectors_ : ndarray, csr_matrix or list
        The support patterns; not with the kernel "precomputed".
    dual_coef_ : csr_matrix of shape (n_support, n_classes), or (n_support, 1) with two classes
        The coefficients. With two classes, those of the second are positive.
    support_costs_ : ndarray of shape (n_support,)
        `C` times the weights of the support patterns.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) with two classes
        The weights of the features, with the kernel "linear".
    gamma_ : float
        The value used for `gamma`.
    n_iter_ : int
        Passes over the data, rounded up.
    result_ : Result
        Counts, seconds and the history with the error on examples as they came. Each step solves a problem of its own
        and all together solve none: `primal`, `dual` and `gap` are not numbers.

    Notes
    -----
    A class takes part from its first example on. If `partial_fit` meets a third class, the function of the first two
    becomes one for each; name all `classes` in the first call where calls with parts of a stream must make the same
    model as one call with all of it.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, algorithm 3.
    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer. Online Passive-Aggressive Algorithms. JMLR 7, 2006.
    Crammer, Singer. Ultraconservative Online Algorithms for Multiclass Problems. JMLR 3, 2003.

    Examples
    --------
    >>> from larank import KernelPassiveAggressive
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> X, y = letter.X_train[:4000].astype("float32"), letter.y_train[:4000]
    >>> model = KernelPassiveAggressive(C=10, gamma=0.025, random_state=0).fit(X, y)
    >>> bool(model.score(letter.X_test.astype("float32"), letter.y_test) > 0.85)
    True
    """

    _TITLE = "Passive-aggressive"

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], ArrayLike] = "rbf",
        *,
        C: float = 1.0,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        epochs: int = 1,
        time_limit: float | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        shuffle: bool = True,
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
        self.epochs = epochs
        self.time_limit = time_limit
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.memory_limit = memory_limit
        self.batch_size = batch_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _session(self, blocks: Provider, seed: int) -> Any:
        kind = _core.KernelPassiveAggressive32 if blocks.dtype == np.float32 else _core.KernelPassiveAggressive64
        return kind(memory_limit=int(self.memory_limit))

    def _kind_of_training(self) -> type[_Training]:
        return _PassiveAggressiveTraining


@dataclass(frozen=True)
class _Table:
    """The support table slot by slot: patterns and their coefficients as CSR rows, columns in the order of arrival."""

    slots: NDArray[np.int32]
    ids: NDArray[np.int64]
    labels: NDArray[np.int32]
    costs: NDArray[np.float64]
    diagonal: NDArray[np.float64]
    beta: NDArray[np.float64]
    early: NDArray[np.float64]
    columns: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, session: Any) -> _Table:
        at = session.table()
        return cls(
            at.slots, at.ids, at.labels, at.costs, at.diagonal, at.coefficients, session.early, at.columns, at.starts
        )

    def matrix(self, values: NDArray[np.float64]) -> csr_matrix:
        """Numbers that belong to the coefficients, as the coefficients are arranged."""
        columns = int(self.columns.max(initial=0)) + 1
        return csr_matrix((values, self.columns, self.starts), shape=(len(self.ids), columns))


class _Running(Running):
    """Without a budget there are no rows of kernel values to plan for."""

    def plan(self, memory_limit: float) -> str:
        if self.session.has_budget:
            return super().plan(memory_limit)
        return f", memory limit {memory_limit / 1e6:.0f} MB"


class _Training(OnlineTraining):
    """A perceptron as the training loop sees it: there are no objectives, only mistakes."""

    model: _PerceptronClassifier

    def __init__(self, model: _PerceptronClassifier, *arguments: Any, **options: Any) -> None:
        super().__init__(model, *arguments, **options)
        self._before = self.session.state  # of the calls before

    def _counts(self) -> dict[str, int]:
        names = ("visits", "mistakes", "updates", "removals")
        return {name: now - at for name, now, at in zip(names, self.session.state, self._before, strict=True)}

    def _estimated(self, left: float) -> ObjectiveValues:
        return self.evaluate()

    def _loss_of_epoch(self) -> float:
        return math.nan

    def evaluate(self) -> ObjectiveValues:
        return ObjectiveValues(math.nan, math.nan, math.nan)

    def details(self) -> Mapping[str, Any]:
        counts = self._counts()
        return {**super().details(), "online_error": counts["mistakes"] / max(1, counts["visits"])}

    def _predicted(self, X: Any) -> NDArray[Any]:
        table = _Table.of(self.session)
        coefficients = table.matrix(self.model._decision_of(table, self.session.counters.visits)).toarray()
        scores = self.running.blocks.scores(X, table.slots, coefficients)
        best = scores[:, 0] > 0 if self.session.is_single else scores.argmax(axis=1)
        predicted: NDArray[Any] = self.model._arrived[best.astype(np.intp)]
        return predicted

    def _operations(self) -> dict[str, int]:
        counts = self._counts()
        del counts["visits"]
        return counts

    def _argmax_calls(self) -> int:
        return self._counts()["visits"]


class _PerceptronTraining(_Training):
    SOLVER = "perceptron"


class _PassiveAggressiveTraining(_Training):
    SOLVER = "passive-aggressive"
