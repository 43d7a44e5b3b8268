"""Kernel multiclass SVMs in one pass, or to any precision, by LaRank of Bordes et al. (ICML 2007)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import check_random_state

from larank import _core, parameters
from larank.blocks import Blocks, blocks_for, check_gram
from larank.feeding import Examples, Feed, KernelFeed, LinearFeed, Stream, feed_linear, squared_norms
from larank.kernelclassifier import KernelClassifier, checked_cost_matrix, unchanged_on_failure
from larank.persistence import persistable
from larank.progress import progress_for
from larank.result import Result
from larank.training import Limits, ObjectiveValues, Outcome, train

__all__ = ["LaRankClassifier"]

SCHEDULES = ("adaptive", "fixed")
STOPS = ("epochs", "gap")
OPERATIONS = ("new", "old", "optimize")
_FIXED_IN_A_STREAM = (
    "kernel",
    "gamma",
    "degree",
    "coef0",
    "cost_matrix",
    "schedule",
    "n_reprocess",
    "operations",
    "memory_limit",
)

_TAU = 0.08  # of a margin of 1; smaller violations are left alone in the first epoch
_SHARE_OF_BLOCKS = 0.25  # of the memory limit
_HISTORY_POINTS = 300  # of an epoch
_VALIDATIONS = 20  # of an epoch

_Session = _core.KernelLaRank32 | _core.KernelLaRank64 | _core.LinearLaRank32 | _core.LinearLaRank64


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
class LaRankClassifier(KernelClassifier):
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

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the running session, which is rebuilt from the model when it is needed again."""
        state: dict[str, Any] = {**super().__getstate__()}
        state.pop("_running", None)
        return state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        validation: tuple[Any, ArrayLike] | None = None,
    ) -> Self:
        """Train on `X` and `y`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
            float32 data make float32 kernel values, which are faster. With ``kernel="precomputed"`` the square matrix
            of kernel values.
        y : array of shape (n_samples,)
            Labels: integers, strings, booleans.
        sample_weight : array of shape (n_samples,), optional
            Factors on ``C`` per example, not negative.
        validation : (X, y), optional
            Examples whose error goes into the history, some times per epoch.

        Returns
        -------
        LaRankClassifier
            Itself, fitted. A `TrainingWarning` says when training ended early; the model is valid all the same.
        """
        with unchanged_on_failure(self):
            outcome = self._fit(X, y, sample_weight, validation)
        self._warn_if_early(outcome, stacklevel=3)
        return self

    def _fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, validation: tuple[Any, ArrayLike] | None
    ) -> Outcome:
        self._check_parameters()
        X, y = self._validated(X, y, reset=True)
        if self.kernel == "precomputed":
            check_gram(X)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(f"y must hold at least two classes, got one class: {classes.tolist()[0]!r}")
        costs = self._costs(X, y, classes, sample_weight, self.class_weight)
        if len(np.unique(y[costs > 0])) < 2:
            raise ValueError("sample_weight and class_weight must leave at least two classes with a weight above zero")
        held_out = None if validation is None else self._held_out(validation, classes)
        seeds = check_random_state(self.random_state)
        seed = int(seeds.randint(2**31 - 1))
        orders = np.random.RandomState(seeds.randint(2**31 - 1))

        for name in ("gamma_", "coef_", "support_vectors_", "_running", "_began_with"):
            self.__dict__.pop(name, None)
        self.classes_ = classes
        self._arrived = np.empty(0, classes.dtype)
        self._seen = len(y)
        order = orders.permutation(len(y)) if self.shuffle else np.arange(len(y))
        order = order[costs[order] > 0]
        labels = self._labels(y, order)
        running = self._begin(X, seed)
        stream = Stream(X, np.arange(len(y)), labels, costs, order, orders if self.shuffle else None)
        training = _Training(self, running, stream, held_out, epochs=self.epochs, is_whole=True)
        limits = Limits(
            gap=self.tol if self.stop == "gap" else None,
            max_iter=self.max_iter if self.stop == "gap" else math.inf,
            time_limit=self.time_limit,
            absolute_gap=self.C if self.stop == "gap" and self.tol is None else None,
            passes=self.epochs if self.stop == "epochs" else None,
            certify=self.certify or self.stop == "gap",
            passes_between_checks=1.0,  # a check takes as many kernel values as a pass
        )
        outcome = self._train(training, limits, f"{len(y)} examples, {len(classes)} classes")
        self._keep_model(running)
        self.result_ = training.result(outcome)
        self.n_iter_ = math.ceil(self.result_.iterations)
        return outcome

    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on training with new examples, in the order in which they come.

        Calls with parts of a stream make the same model as one call with all of it, or as `fit` without `shuffle`, up
        to rounding and if `gamma` is a number. A class takes part from its first example on. There is no certificate
        from scratch: `result_` holds an estimate.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
            As for `fit`. With ``kernel="precomputed"`` column j is the kernel value with example j of the stream; the
            examples of this call are the next ones. Columns of examples to come may be there; they must be
            finite and are not used.
        y : array of shape (n_samples,)
            Labels; those never seen before are new classes.
        classes : array, optional
            Labels that may come later, so that `decision_function` has a column for them already.
        sample_weight : array of shape (n_samples,), optional
            Factors on ``C`` per example, not negative.

        Returns
        -------
        LaRankClassifier
            Itself.
        """
        with unchanged_on_failure(self):
            outcome = self._partial_fit(X, y, classes, sample_weight)
        self._warn_if_early(outcome, stacklevel=3)
        return self

    def _partial_fit(self, X: Any, y: Any, classes: ArrayLike | None, sample_weight: ArrayLike | None) -> Outcome:
        self._check_parameters()
        if self.stop == "gap":
            raise ValueError("partial_fit makes one pass over what it is given; stop must be 'epochs', got 'gap'")
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all examples at once; give partial_fit a dict or None")
        first = not hasattr(self, "dual_coef_")
        self._check_unchanged(first)
        X, y = self._validated(X, y, reset=first or self.kernel == "precomputed")
        if self.kernel == "precomputed":
            self._check_columns(X, first)
        elif not first and not callable(self.kernel):
            X = _like(self.support_vectors_, X)
        known = _united([] if first else [self.classes_], y, [] if classes is None else [np.asarray(classes)])
        costs = self._costs(X, y, known, sample_weight, self._weights_of(known))
        running = self._going_on(X, first)
        self.classes_ = known
        ids = np.arange(self._seen, self._seen + len(y))
        self._seen += len(y)
        order = np.flatnonzero(costs > 0)
        labels = self._labels(y, order)
        stream = Stream(X, ids, labels, costs, order, None)
        training = _Training(self, running, stream, None, epochs=1, is_whole=False)
        limits = Limits(None, math.inf, self.time_limit, passes=1, certify=False)
        running.is_ahead = True  # of the model, if something fails from here on
        outcome = self._train(training, limits, f"{len(y)} examples, {len(self.classes_)} classes")
        self._keep_model(running)
        self.result_ = training.result(outcome)
        self.n_iter_ = 1
        running.is_ahead = False
        return outcome

    def _check_parameters(self) -> None:
        parameters.one_of("schedule", self.schedule, SCHEDULES)
        parameters.one_of("stop", self.stop, STOPS)
        for name in ("C", "memory_limit"):
            parameters.positive(name, getattr(self, name))
        for name in ("tol", "time_limit"):
            if getattr(self, name) is not None:
                parameters.positive(name, getattr(self, name))
        for name in ("epochs", "max_iter", "batch_size"):
            parameters.whole_number(name, getattr(self, name), at_least=1)
        parameters.whole_number("n_reprocess", self.n_reprocess, at_least=0)
        for name in ("shuffle", "certify"):
            parameters.flag(name, getattr(self, name))
        if not isinstance(self.verbose, bool):
            parameters.whole_number("verbose", self.verbose, at_least=0)
        if not isinstance(self.operations, Collection):
            raise ValueError(f"operations must be a collection of {OPERATIONS}, got {self.operations!r}")
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or self.n_jobs == 0):
            raise ValueError(f"n_jobs must be None or an integer other than 0, got {self.n_jobs!r}")
        operations = [self.operations] if isinstance(self.operations, str) else list(self.operations)
        for operation in operations:
            parameters.one_of("operations", operation, OPERATIONS)
        if "new" not in operations:
            raise ValueError(f"operations must contain 'new', got {self.operations!r}")
        if self.stop == "epochs" and self.tol is not None:
            raise ValueError(f"tol acts with stop='gap' only; got tol={self.tol!r} with stop='epochs'")
        if self.stop == "gap" and not self.certify:
            raise ValueError("certify=False acts with stop='epochs' only: stop='gap' computes the gap from scratch")
        if self.schedule == "adaptive" and self.n_reprocess != 1:
            raise ValueError(
                f"n_reprocess acts with schedule='fixed' only; got n_reprocess={self.n_reprocess!r} with "
                f"schedule='adaptive'"
            )
        if self.stop == "gap" and self.epochs != 1:
            raise ValueError(f"epochs acts with stop='epochs' only; got epochs={self.epochs!r} with stop='gap'")

    def _check_unchanged(self, first: bool) -> None:
        """The session of a stream cannot change its kernel, margins, schedule or memory on the way."""
        now = {name: getattr(self, name) for name in _FIXED_IN_A_STREAM}
        began_with: dict[str, Any] | None = getattr(self, "_began_with", None)
        if not first and began_with is not None:
            for name, value in now.items():
                before = began_with[name]
                same = np.array_equal(before, value) if name == "cost_matrix" else before == value
                if not same:
                    raise ValueError(
                        f"{name} must stay as it was in the calls of partial_fit before, {before!r}; got {value!r}"
                    )
        self._began_with = now

    def _check_columns(self, X: Any, first: bool) -> None:
        wanted = (0 if first else self._seen) + X.shape[0]
        if X.shape[1] < wanted:
            raise ValueError(
                f"X must have a column for every example of the stream so far with kernel='precomputed', at least "
                f"{wanted}; got {X.shape[1]}"
            )

    def _held_out(self, validation: tuple[Any, ArrayLike], classes: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        try:
            X, y = validation
        except (TypeError, ValueError):
            raise ValueError(f"validation must be a pair (X, y), got {type(validation).__name__}") from None
        X, y = self._validated(X, np.asarray(y), reset=False)
        if not np.isin(y, classes).any():
            raise ValueError(f"validation must have labels that y has too, such as {classes[0]!r}; got {y[0]!r}")
        return X, y

    def _weights_of(self, classes: NDArray[Any]) -> Mapping[Any, float] | str | None:
        """`class_weight` without the classes that have yet to come."""
        if not isinstance(self.class_weight, Mapping):
            return self.class_weight
        return {label: self.class_weight[label] for label in classes.tolist() if label in self.class_weight}

    def _labels(self, y: NDArray[Any], order: NDArray[np.intp]) -> NDArray[np.int32]:
        """Labels numbered in the order in which they first arrive, which `_arrived` remembers."""
        classes, codes = np.unique(y, return_inverse=True)
        labels = classes.tolist()
        number = {label: place for place, label in enumerate(self._arrived.tolist())}
        _, firsts = np.unique(codes[order], return_index=True)
        for code in codes[order[np.sort(firsts)]]:
            number.setdefault(labels[code], len(number))
        self._arrived = np.array(list(number), dtype=self.classes_.dtype)
        numbers = np.array([number.get(label, -1) for label in labels], dtype=np.int32)
        return numbers[codes]

    def _begin(self, X: Any, seed: int) -> _Running:
        """A session that has seen nothing."""
        allowed = [operation in self.operations for operation in OPERATIONS]
        settings: dict[str, Any] = {
            "adaptive": self.schedule == "adaptive",
            "n_reprocess": int(self.n_reprocess),
            "operations": allowed,
            "tau": _TAU,
            "seed": seed,
        }
        kernel = self._resolved_kernel(X)
        if self.kernel == "linear":
            single = X.dtype == np.float32
            session: _Session = (_core.LinearLaRank32 if single else _core.LinearLaRank64)(
                **settings, features=X.shape[1]
            )
            return _Running(session, None, is_sparse=issparse(X))
        if hasattr(kernel, "gamma"):
            self.gamma_ = float(kernel.gamma)
        blocks = blocks_for(kernel, X, n_jobs=self._threads())
        single = blocks.dtype == np.float32
        session = (_core.KernelLaRank32 if single else _core.KernelLaRank64)(
            **settings, memory_limit=int(self.memory_limit)
        )
        return _Running(session, blocks, is_sparse=issparse(X))

    def _going_on(self, X: Any, first: bool) -> _Running:
        """The session of the calls before, rebuilt from the model if it is not there any more."""
        if first:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            self._arrived, self._seen = np.empty(0, object), 0
            self._running = self._begin(X, seed)
        elif not hasattr(self, "_running") or self._running.is_ahead:
            self._running = self._restored(X)
        return self._running

    def _restored(self, X: Any) -> _Running:
        if self.kernel == "precomputed":
            raise ValueError(
                "partial_fit cannot go on: with kernel='precomputed' a model that was fitted, loaded or copied has no "
                "kernel values between its support patterns; use partial_fit from the start"
            )
        running = self._begin(X, 0)
        running.restore(self)
        return running

    def _train(self, training: _Training, limits: Limits, about: str) -> Outcome:
        kernel = self.kernel if isinstance(self.kernel, str) else "callable kernel"
        with progress_for(self.verbose) as progress, training:
            progress.start(f"LaRank, {kernel}, {about}{training.running.plan(self)}")
            return train(training, limits, progress)

    def _keep_model(self, running: _Running) -> None:
        table = running.table()
        columns = np.searchsorted(self.classes_, self._arrived)
        dual_coef = csr_matrix(
            (table.beta, columns[table.classes], table.starts), shape=(len(table.ids), len(self.classes_))
        )
        dual_coef.sort_indices()
        self.dual_coef_, self.support_, self.support_costs_ = dual_coef, table.ids, table.costs
        self._state = running.session.state
        if running.blocks is None:
            self.support_vectors_ = running.patterns()
            coef = np.zeros((len(self.classes_), self.n_features_in_), running.dtype)
            coef[columns] = running.session.weights()
            self.coef_ = coef[1:] - coef[:1] if len(coef) == 2 else coef
        elif self.kernel != "precomputed":
            self.support_vectors_ = running.blocks.patterns(table.slots)


@dataclass(frozen=True)
class _Table:
    """The support table slot by slot: patterns and their coefficients as CSR rows, classes as they arrived."""

    slots: NDArray[np.int32]
    ids: NDArray[np.int64]
    labels: NDArray[np.int32]
    costs: NDArray[np.float64]
    diagonal: NDArray[np.float64]
    beta: NDArray[np.float64]
    classes: NDArray[np.int32]
    starts: NDArray[np.int64]


class _Running:
    """A session and, with a kernel, the provider of its blocks."""

    def __init__(self, session: Any, blocks: Blocks | None, *, is_sparse: bool) -> None:
        self.session, self.blocks, self.is_sparse = session, blocks, is_sparse
        self.is_ahead = False

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32 if type(self.session).__name__.endswith("32") else np.float64)

    def table(self) -> _Table:
        return _Table(*self.session.table())

    def patterns(self) -> Any:
        """The support patterns of a linear session, slot by slot."""
        values, columns, starts = self.session.patterns()
        if columns is None and not self.is_sparse:
            return values.reshape(len(starts) - 1, self.session.features)
        columns = np.empty(0, np.int32) if columns is None else columns
        return csr_matrix((values, columns, starts), shape=(len(starts) - 1, self.session.features))

    def feed(self, stream: Iterator[Examples]) -> Feed:
        return (
            LinearFeed(self.session, stream) if self.blocks is None else KernelFeed(self.session, self.blocks, stream)
        )

    def restore(self, model: LaRankClassifier) -> None:
        """Take over the coefficients of a model; its classes are those that have arrived."""
        beta = model.dual_coef_
        place = np.full(len(model.classes_), -1, dtype=np.int32)
        place[np.searchsorted(model.classes_, model._arrived)] = np.arange(len(model._arrived))
        for _ in model._arrived:
            self.session.add_class()
        slots = np.arange(len(model.support_))
        X, ids, costs = model.support_vectors_, model.support_, model.support_costs_
        classes = place[beta.indices]
        own = np.maximum.reduceat(np.where(beta.data > 0, classes, -1), beta.indptr[:-1]) if len(slots) else slots
        if self.blocks is None:
            diagonal = squared_norms(X)
            none = np.zeros(len(slots), np.int32)
            feed_linear(self.session, Examples(X, ids, none, costs), diagonal)
            rows: Iterator[Any] = iter(range(len(slots)))
        else:
            batch = self.blocks.batch(X, ids)
            diagonal = self.blocks.diagonal(batch)
            self.blocks.store(slots, batch, slots)
            rows = self._kernel_rows(slots, chunk=256)
        for slot, row in zip(slots, rows, strict=True):
            part = slice(beta.indptr[slot], beta.indptr[slot + 1])
            self.session.restore(
                row, int(ids[slot]), int(own[slot]), costs[slot], diagonal[slot], classes[part], beta.data[part]
            )
        self.session.state = model._state

    def _kernel_rows(self, slots: NDArray[np.intp], chunk: int) -> Iterator[NDArray[Any]]:
        assert self.blocks is not None
        for first in range(0, len(slots), chunk):
            rows = self.blocks.rows(slots[first : first + chunk])
            for place, row in enumerate(rows, start=first):
                yield np.ascontiguousarray(row[: place + 1])

    def set_margins(self, model: LaRankClassifier) -> None:
        """1 - Delta(y, y') over the classes that have arrived, where the model has a cost matrix."""
        if model.cost_matrix is None:
            return
        delta = checked_cost_matrix(model.cost_matrix, len(model.classes_))
        columns = np.searchsorted(model.classes_, model._arrived)
        self.session.set_margins(np.ascontiguousarray(1 - delta[np.ix_(columns, columns)]))

    def plan(self, model: LaRankClassifier) -> str:
        """What the memory is for, in words."""
        if self.blocks is None:
            return ""
        row = self.dtype.itemsize
        patterns = int(math.sqrt(model.memory_limit / (2 * row)))
        return (
            f", memory limit {model.memory_limit / 1e6:.0f} MB: all kernel values between about {patterns} support "
            f"patterns, then those used last"
        )

    def check_memory(self, limit: float) -> None:
        """A linear session has nothing that it could do without."""
        if self.blocks is None and self.session.bytes > limit:
            raise ValueError(
                f"memory_limit must be at least {self.session.bytes} bytes for the weights and "
                f"{self.session.support_patterns} support patterns, got {limit:g}"
            )


class _Training:
    """LaRank as the training loop sees it: epochs over a stream, a block at a time."""

    def __init__(
        self,
        model: LaRankClassifier,
        running: _Running,
        stream: Stream,
        held_out: tuple[Any, NDArray[Any]] | None,
        *,
        epochs: int,
        is_whole: bool,
    ) -> None:
        self.model, self.running, self.stream, self.held_out = model, running, stream, held_out
        self.epochs = epochs
        self.is_whole = is_whole  # whether the stream is all there will be
        self.session = running.session
        running.set_margins(model)
        self.tau = _TAU
        self.epoch = 0
        self.visited = 0
        self.visited_in_epoch = 0
        self.epoch_is_over = False
        self.loss_before = 0.0  # of the epoch before
        self.next_estimate = 0
        self.error: float | None = None
        self.next_validation = 0
        self.feed = self._feed(stream.order)

    def __enter__(self) -> Self:
        self._threads = None if self.running.blocks is None else self.running.blocks.threads()
        if self._threads is not None:
            self._threads.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        try:
            if details[0] is not None:
                self.feed.wait()
                return
            if self.model.stop == "epochs":
                self.feed.finish()
            self.feed.close()
        finally:
            if self._threads is not None:
                self._threads.__exit__(*details)

    def advance(self) -> bool:
        if self.epoch_is_over:
            self._begin_epoch()
        size = len(self.stream.order)
        worked = self.feed.advance(max(1, size // _HISTORY_POINTS))
        self.running.check_memory(self.model.memory_limit)
        self.visited += worked
        self.visited_in_epoch += worked
        if self.visited_in_epoch < size:
            return False
        self.epoch += 1
        if self.model.stop == "epochs" and self.epoch >= self.epochs:
            self.feed.finish()
            return True
        self.epoch_is_over = True
        return False

    def _begin_epoch(self) -> None:
        self.feed.close()
        self.loss_before = self.session.loss
        self.tau /= 4
        self.session.set_tau(self.tau)
        self.session.begin_another_epoch()
        self.visited_in_epoch = 0
        self.epoch_is_over = False
        self.feed = self._feed(self.stream.next_order())

    def _feed(self, order: NDArray[np.intp]) -> Feed:
        return self.running.feed(self.stream.blocks(order, self._batch_size))

    def _batch_size(self) -> int:
        """As asked for, or less where the kernel values of two blocks would take too much of the memory."""
        wanted: int = self.model.batch_size
        if self.running.blocks is None:
            return wanted
        values = self.model.memory_limit * _SHARE_OF_BLOCKS / self.running.dtype.itemsize
        slots = self.session.slots
        size = (math.sqrt(slots * slots + 4 * values) - slots) / 4  # 2 size (slots + 2 size) = values
        return min(wanted, max(1, int(size)))

    def estimate(self) -> ObjectiveValues | None:
        size = len(self.stream.order)
        if self.visited < self.next_estimate and self.visited % size:
            return None
        self.next_estimate = self.visited + max(1, size // _HISTORY_POINTS)
        loss = self.session.loss
        left = 1 - self.visited_in_epoch / size
        if self.is_whole:
            # Examples not visited yet count as in the epoch before; in the first one, as those visited.
            loss += left * (self.loss_before if self.epoch else loss / (1 - left))
        dual = self.session.dual
        # No primal objective is below the dual, whatever was seen on the way.
        return ObjectiveValues(max(dual, self.session.half_squared_norm + loss), dual, math.nan)

    def evaluate(self) -> ObjectiveValues:
        """The objectives from scratch: one pass over the examples with the coefficients as they are."""
        if self.model.stop == "epochs":
            self.feed.finish()  # this is the end
        self.feed.flush()
        stream, table = self.stream, self.running.table()
        beta = self._coefficients(table)
        support = np.full(int(stream.ids.max()) + 1, -1)
        support[table.ids] = np.arange(len(table.ids))
        margins = self._margins()
        linear = float((margins[table.labels] * beta).sum())
        squared_norm = losses = violation = 0.0
        for block in stream.blocks(stream.order, lambda: 4096):
            scores = self._scores(block.X, table, beta)
            g = margins[block.labels] - scores
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

    def _coefficients(self, table: _Table) -> NDArray[np.float64]:
        """A row per pattern and a column per class of the stream, those included that have yet to arrive."""
        beta = np.zeros((len(table.ids), len(self.model._arrived)))
        beta[np.repeat(np.arange(len(table.ids)), np.diff(table.starts)), table.classes] = table.beta
        return beta

    def _scores(self, X: Any, table: _Table, beta: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.running.blocks is None:
            scores = np.zeros((X.shape[0], beta.shape[1]))
            scores[:, : self.session.classes] = X @ self.session.weights().T
            return scores
        return self.running.blocks.scores(X, table.slots, beta)

    def _margins(self) -> NDArray[np.float64]:
        if self.model.cost_matrix is None:
            return np.eye(len(self.model._arrived))
        columns = np.searchsorted(self.model.classes_, self.model._arrived)
        return 1 - np.asarray(self.model.cost_matrix, dtype=np.float64)[np.ix_(columns, columns)]

    def iterations(self) -> float:
        return self.visited / len(self.stream.order)

    def details(self) -> Mapping[str, Any]:
        self._validate()
        error, self.error = self.error, None
        return {
            "kernel_values": self._counts()["kernel_values"],
            "support_patterns": self.session.support_patterns,
            "error": error,
        }

    def _validate(self) -> None:
        if self.held_out is None or (self.visited < self.next_validation and self.visited % len(self.stream.order)):
            return
        self.next_validation = self.visited + max(1, len(self.stream.order) // _VALIDATIONS)
        self.feed.flush()
        X, y = self.held_out
        table = self.running.table()
        beta = self._coefficients(table)
        predicted = self.model._arrived[self._scores(X, table, beta).argmax(axis=1)]
        self.error = float(np.mean(predicted != y))

    def _counts(self) -> dict[str, int]:
        counters = self.session.counters
        new, old, optimize = counters.operations
        return {
            "process_new": new,
            "process_old": old,
            "optimize": optimize,
            "steps": counters.steps,
            "argmax": counters.argmax,
            "kernel_values": 0 if self.running.blocks is None else self.running.blocks.kernel_values,
        }

    def result(self, outcome: Outcome) -> Result:
        if self.is_whole and not outcome.exact:
            self._check_definite(self.session.half_squared_norm, self.session.dual)
        counts, at, counters = self._counts(), outcome.objectives, self.session.counters
        breakdown = {"selection": counters.selection_seconds, "steps": counters.step_seconds}
        if self.running.blocks is not None:
            breakdown = {**self.running.blocks.seconds, **breakdown}
        breakdown["certificate"] = outcome.certificate_seconds
        return Result(
            solver="larank",
            status=outcome.status,
            primal=at.primal,
            dual=at.dual,
            violation=at.violation,
            iterations=self.iterations(),
            seconds=outcome.seconds,
            support_patterns=len(self.model.support_),
            support_vectors=self.model.dual_coef_.nnz,
            kernel_values=counts.pop("kernel_values"),
            argmax_calls=counts.pop("argmax"),
            operations=counts,
            history=outcome.history,
            exact=outcome.exact,
            breakdown=breakdown,
        )


def _united(before: list[NDArray[Any]], y: NDArray[Any], announced: list[NDArray[Any]]) -> NDArray[Any]:
    """All classes so far."""
    for others, name in ((before, "of the calls before"), (announced, "in classes")):
        for labels in others:
            if (labels.dtype.kind in "OUS") != (y.dtype.kind in "OUS"):
                raise ValueError(f"y must hold labels of the same type as those {name}, {labels.dtype}; got {y.dtype}")
    return np.unique(np.concatenate([*before, y, *announced]))


def _like(kept: Any, X: Any) -> Any:
    """Examples in the layout and precision of those a session has already."""
    if issparse(kept):
        return csr_matrix(X, dtype=kept.dtype)
    return np.ascontiguousarray(X.toarray() if issparse(X) else X, dtype=kept.dtype)
