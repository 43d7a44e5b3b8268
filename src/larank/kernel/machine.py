"""One machine for all kernel estimators: from checked data to a model of support patterns with a certificate.

`KernelClassifier` is such a model. `OnlineClassifier` trains one on a stream, in epochs or in calls of `partial_fit`:
it checks the data, numbers the labels in the order in which they arrive, and lets the training loop advance a
`StreamTraining`, which feeds a compiled session block by block. What is peculiar to an algorithm it is handed as an
`Algorithm`: its session, the model in the session, the objectives from the scores of all examples, and the way back
from a saved model.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_n_features

from larank import _core, declare, parameters
from larank.base import FEATURES, ScoringClassifier, functions, of_streams
from larank.blocks import Provider, check_gram, provider_for
from larank.blocks.definite import indefinite_objectives, indefinite_values
from larank.blocks.device import DeviceArray, device_scores, on_device
from larank.blocks.kernels import Kernel, kernel_for, kernels_with, takes_bytes, takes_sparse, with_bias
from larank.blocks.provider import BYTES, length, precision, row_nbytes, rows_of
from larank.blocks.ranges import LARGEST, check_features
from larank.blocks.workers import blas_threads
from larank.costs import check_two_classes, example_costs, hardened
from larank.data.files import PathLike
from larank.data.schema import (
    RESULT,
    Schema,
    Scope,
    count,
    csr,
    floats,
    given,
    integer,
    integers,
    labels,
    matrix,
    number,
    octets,
    optional,
    text,
)
from larank.declare import fitted
from larank.docstrings import with_paragraphs
from larank.kernel import rounding
from larank.kernel.selection import Strategy, strategy_named
from larank.kernel.stream import ChoosingFeed, Examples, Feed, KernelFeed, KernelSource, Stream
from larank.kernel.unread import UnreadModel, left_to_readers
from larank.parameters import BlockSteps, Kernelized, Seeded, Threaded, TimeLimited
from larank.publishing import check_finite, copied, next_model, of_one_model, one_model
from larank.training import (
    CertificateWarning,
    CheckpointFile,
    CheckpointRequest,
    FromScratch,
    Limits,
    Objectives,
    ObjectiveValues,
    Outcome,
    Result,
    State,
    TrainingWarning,
    progress_for,
    train,
    warn_if_early,
)
from larank.validation import advised, check_same_type, classes_of, held_out_examples, on_host, validated

_Float = NDArray[np.float64]
_Scorer = Callable[[NDArray[np.int64]], _Float]


def _end_of_examples(scope: Scope) -> int:
    """Support patterns are examples that were seen; a precomputed kernel has a feature for each."""
    ends = [scope.sizes.get("_seen", 2**31)]
    return min([*ends, scope.sizes["n_features_in_"]] if scope.known["kernel"] == "precomputed" else ends)


def _takes_bytes(scope: Scope) -> bool:
    return takes_bytes(scope.known["kernel"])


# The fitted attributes that make up the model of every kernel estimator, and those of a stream.
FITTED: Schema = {
    "classes_": labels("n_classes"),
    **FEATURES,
    "gamma_": given(number(above=0), when=lambda scope: scope.known["kernel"] in kernels_with("gamma")),
    "support_": integers("n_support", below=_end_of_examples, unique=True),
    "support_vectors_": given(
        matrix("n_support", "n_features_in_", of_bytes=_takes_bytes),
        when=lambda scope: scope.known["kernel"] != "precomputed",
    ),
    "dual_coef_": csr("n_support", functions),
    "n_iter_": integer(),
    "result_": RESULT,
}
FITTED_ON_A_STREAM: Schema = {
    "_seen": count(),
    **FITTED,
    "_arrived": labels("n_arrived", among="classes_"),
    "_snapshot": optional(octets("n_bytes")),
    "_waiting_vectors": given(
        matrix("n_waiting", "n_features_in_", of_bytes=_takes_bytes), when=lambda scope: "_snapshot" in scope.known
    ),
    "_indefinite": optional(text),
}
WEIGHTS = given(floats(functions, "n_features_in_", single=True), when=lambda scope: scope.known["kernel"] == "linear")

_SHARE_OF_BLOCKS = 0.25  # of the memory limit, for kernel values,
_SHARE_OF_COPIES = 1 / 32  # and for the examples themselves
# Of a limit on memory that is enough, whatever becomes of the examples; with rows of doubles.
_BYTES_OF_PATTERN = 400
_BYTES_OF_COEFFICIENT = 400
_BYTES_AT_LEAST = 1 << 18
_ROWS_IN_USE = 6
_HISTORY_POINTS = 300  # of an epoch at most,
_FEW_POINTS = 20  # these at least,
_EXAMPLES_BETWEEN = 64  # and between them so many examples: a look costs as much as some of them
_VALIDATIONS = 20  # of an epoch
ROWS_AT_ONCE = 2048  # of a certificate at most
_ROWS_IN_DOUBLE = 512
_SAFETY_OF_MARGINS = 8.0  # bound on errors of margins, in units of the largest error of scores that was measured
_SHARE_OF_CERTIFICATE = 0.05  # of the kernel values of training, that those of a certificate may be,
_CHEAP_CERTIFICATE = 1e6  # or so many kernel values in any case,
_LEAST_SAMPLE = 1000  # and those of so many examples
_WORTH_SAMPLING = 4  # times the examples of a sample: where there are no more, all are looked at
_STRATA = 3
_AT_BOUND = 1 - 1e-6
_MANY_MORE = 1.1  # support patterns than in the last trial
_LEAST_ROWS = 256
_SECONDS_AT_ONCE = 0.1  # of work between two looks at limits, about
_SECONDS_TO_SETTLE = 0.5  # where training has ended early
# Where max_iter=None makes further passes: while passes are cheap and the dual objective rises.
_MOST_EPOCHS = 20
_FEW_VISITS = 100_000
_FEW_KERNEL_VALUES = 2e7
_LITTLE_GAIN = 1e-3
_MANY_TIMES = 3.0  # the kernel values that training needs: so many computed again are worth a warning


class KernelClassifier(Kernelized, TimeLimited, Threaded, Seeded, ScoringClassifier):
    """A model of support patterns and their coefficients; subclasses train it."""

    fit_intercept: bool = False  # a parameter of some subclasses
    _MAY_REPEAT: ClassVar[bool] = False  # whether `max_iter=None` makes further passes while they are cheap and gain
    support_: NDArray[np.int64] = fitted()
    dual_coef_: Any = fitted()  # in the shape that users of such a machine expect
    result_: Result = fitted()

    @property
    def _device(self) -> Any:
        """Where block steps train and predict; None if the compiled machine does."""
        solver = getattr(self, "solver", None)
        return solver.device if isinstance(solver, BlockSteps) else None

    def __sklearn_tags__(self) -> Any:
        """Sparse input is welcome; precomputed kernels are pairwise."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self.kernel) and self._device is None
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _decisions(self, X: Any) -> _Float:
        scores = self._scores(self._validated(X, reset=False))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _validated(self, X: Any, *y: Any, reset: bool) -> Any:
        """Checked data: arrays and CSR matrices, or, for a callable kernel, any sequence."""
        if self._device is not None and (there := on_device(X)) is not None:
            return self._validated_on_device(there, *y, reset=reset)
        sparse, objects = self.kernel != "precomputed", callable(self.kernel)
        as_bytes = takes_bytes(self.kernel)
        return validated(self, X, *y, reset=reset, sparse=sparse, objects=objects, as_bytes=as_bytes)

    def _validated_on_device(self, X: DeviceArray, *y: Any, reset: bool) -> Any:
        """Examples that are on a device stay there; labels come to the host."""
        if len(X.shape) != 2 or not X.shape[0]:
            raise ValueError(f"X must be an array of two dimensions with one example at least, got shape {X.shape}")
        dtype, largest = precision(X), X.largest_squared_norm()
        if not math.isfinite(largest):
            raise ValueError("X must have finite numbers only, got NaN or infinity")
        if largest > LARGEST[dtype]:
            raise ValueError(
                f"X must have examples whose squared norm is at most {LARGEST[dtype]:g} in {dtype}, got {largest:g}"
            )
        _check_n_features(self, X, reset=reset)
        if not y:
            return X
        labels = column_or_1d(np.asarray(on_device(y[0]) or on_host("y", y[0])))
        check_consistent_length(X, labels)
        check_classification_targets(labels)
        return X, labels

    def _in_kind(self, X: Any, values: NDArray[Any]) -> Any:
        there = on_device(X) if self._device is not None else None
        return values if there is None else there.like(values)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The share of examples whose label is predicted; with `sample_weight`, of their weights."""
        predicted = self.predict(X)
        labels, predicted = (np.asarray(on_device(each) or on_host("y", each)) for each in (y, predicted))
        sample_weight = on_host("sample_weight", sample_weight)
        return float(accuracy_score(labels, predicted, sample_weight=sample_weight))

    def _check_together(self) -> None:
        super()._check_together()
        kernel_for(self.kernel, gamma=1.0, degree=self.degree, coef0=self.coef0)

    def _resolved_kernel(self, X: Any) -> Kernel:
        gamma = getattr(self, "gamma_", self.gamma)
        return kernel_for(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0, X=X)

    def _kernel_from(self, X: Any) -> Kernel:
        """The kernel of this training, plus one for intercepts; what the data say of its parameters is kept."""
        kernel = self._resolved_kernel(X)
        if hasattr(kernel, "gamma"):
            self.gamma_ = float(kernel.gamma)
        return with_bias(kernel) if self.fit_intercept else kernel

    def _intercept(self, coefficients: csr_matrix | _Float) -> _Float:
        """What the kernel's constant adds to the scores: of two classes, to those of the second against the first."""
        sums = np.zeros(coefficients.shape[1])
        if self.fit_intercept:
            sums += np.asarray(coefficients.sum(axis=0)).ravel()
        return np.diff(sums) if len(sums) == 2 else sums

    def _kernel_name(self) -> str:
        return self.kernel if isinstance(self.kernel, str) else "callable kernel"

    def _threads(self) -> int:
        return blas_threads() if self.n_jobs is None else self.n_jobs

    def _scores(self, X: Any) -> _Float:
        """A column per class, from `coef_` where there is one."""
        scores = np.asarray(X @ self.coef_.T, dtype=np.float64) if hasattr(self, "coef_") else self._expansions(X)
        scores = self._per_class(scores)
        return scores + self._per_class(self.intercept_[None]) if hasattr(self, "intercept_") else scores

    def _per_class(self, functions: _Float) -> _Float:
        """A column per class: the only one of two classes becomes two."""
        if len(self.classes_) > 2 or functions.shape[1] > 1:
            return functions
        return np.column_stack([-functions / 2, functions / 2])[:, : len(self.classes_)]

    @property
    def _coefficients(self) -> csr_matrix:
        """`dual_coef_`, with a row for each support pattern and a column for each decision function."""
        return self.dual_coef_

    def _expansions(self, X: Any) -> _Float:
        """sum_i beta_i k(x_i, x), a column for each decision function, without intercepts."""
        if self.kernel == "precomputed":
            return np.asarray(self._coefficients.T.dot(X[:, self.support_].T).T, dtype=np.float64)
        support = self.support_vectors_
        if self._device is not None:
            return device_scores(self._device, self._resolved_kernel(X), X, support, self._coefficients)
        if issparse(support) and not issparse(X):
            X = csr_matrix(X)
        elif issparse(X) and not issparse(support):
            support = csr_matrix(support)
        # Precision and, far from the origin, location are those of the support patterns, whatever is predicted.
        provider = provider_for(self._resolved_kernel(X), support, n_jobs=self._threads())
        provider.adopt(support, self.support_)
        with provider.threads():
            return provider.scores(X, np.arange(len(self.support_)), self._coefficients.toarray())

    def _warn_if_early(
        self, outcome: Outcome, limit_of_precision: str, stacklevel: int, limit_of_iterations: str = ""
    ) -> None:
        warn_if_early(
            outcome,
            self.result_,
            max_iter=getattr(self, "_most_passes", None),
            time_limit=self.time_limit,
            limit_of_iterations=limit_of_iterations,
            limit_of_precision=limit_of_precision,
            is_hard=getattr(self, "C", 1.0) == math.inf,
            stacklevel=stacklevel + 1,
        )


class CountsSupport:
    """A model whose coefficients tell the class of a pattern: the only positive one is that of its label."""

    classes_: NDArray[Any]
    dual_coef_: csr_matrix

    @property
    @of_one_model
    def n_support_(self) -> NDArray[np.int32]:
        """The number of support patterns of each class."""
        if not hasattr(self, "dual_coef_"):
            raise AttributeError("n_support_ is there once the model is fitted")
        coefficients = self.dual_coef_.toarray()
        columns = coefficients.argmax(axis=1) if coefficients.shape[1] > 1 else coefficients[:, 0] > 0
        return np.bincount(columns, minlength=len(self.classes_)).astype(np.int32)


def warn_if_indefinite(found: str, stacklevel: int) -> None:
    """Say that the certificate proves nothing, and why."""
    if found:
        warnings.warn(
            f"the kernel is not positive semi-definite on these examples: {found}; the model is trained all the same, "
            "but its certificate does not hold: nothing bounds the distance to an optimum, and result_.dual is NaN",
            CertificateWarning,
            stacklevel=stacklevel + 1,
        )


@contextmanager
def says_enough_memory(model: KernelClassifier, X: Any, patterns: int = 0) -> Iterator[None]:
    """Let a `MemoryLimitError` say what is enough if all examples become support patterns, beside those there are."""
    try:
        yield
    except _core.MemoryLimitError as error:
        count = patterns + length(X)
        needed, _, got = str(error).rpartition(", got ")
        enough = enough_memory(model, X, patterns)
        raise type(error)(f"{needed}; {enough} are enough for all {count} examples, got {got}") from None


def enough_memory(model: KernelClassifier, X: Any, patterns: int = 0) -> int:
    """A limit on memory that will do if all examples become support patterns, beside those there are."""
    count, classes = patterns + length(X), len(model.classes_)
    of_pattern = 2 * row_nbytes(X) + _BYTES_OF_PATTERN + _BYTES_OF_COEFFICIENT * classes
    weights = _BYTES_OF_COEFFICIENT * classes * (X.shape[1] if model.kernel == "linear" else 0)
    return int(2 * (count * (of_pattern + _ROWS_IN_USE * 8) + weights)) + _BYTES_AT_LEAST


@dataclass(frozen=True)
class Settings:
    """The parameters of an estimator that a machine uses, with values for those that the estimator does not have."""

    C: float = 1.0
    class_weight: Mapping[Any, float] | str | None = None
    tol: float | None = None
    max_iter: int | None = None
    time_limit: float | None = None
    selection: str | Strategy = "random"
    max_support: int | None = None
    memory_limit: float = math.inf
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0
    certify: bool | str = False
    may_repeat: bool = False  # whether `max_iter=None` makes further passes while they are cheap and gain

    @classmethod
    def of(cls, model: KernelClassifier, certify: bool | str = False) -> Settings:
        """Return the parameters of an estimator."""
        has_objective = model._ALGORITHM.certifies
        parameters.certify(certify, getattr(model, "tol", None), has_objective=has_objective)
        given = {name: value for name, value in declare.values_of(model).items() if name in cls.__dataclass_fields__}
        return cls(**given, certify=has_objective and certify, may_repeat=model._MAY_REPEAT)

    @property
    def stops_at_gap(self) -> bool:
        """Whether training stops at a relative duality gap."""
        return self.tol is not None

    @property
    def strategy(self) -> Strategy:
        """What chooses the next example."""
        return strategy_named(self.selection)

    @property
    def most_passes(self) -> int:
        """The maximum number of passes over the data."""
        if self.max_iter is not None:
            return int(self.max_iter)
        is_single = self.max_support is not None or self.strategy.budget is not None or self.strategy.needs_scores
        return _MOST_EPOCHS if self.may_repeat and not is_single else 1

    def limits(self) -> Limits:
        """Return when `fit` stops."""
        if self.tol is None:
            is_open = self.max_iter is None and self.most_passes > 1
            return Limits(
                None,
                math.inf,
                self.time_limit,
                passes=self.most_passes,
                may_end_sooner=is_open,
                certify=bool(self.certify),
            )
        # A check takes as many kernel values as a pass.
        most = parameters.MOST_PASSES if self.max_iter is None else self.max_iter
        return Limits(self.tol, most, self.time_limit, passes_between_checks=1.0)


@dataclass(frozen=True)
class Expansion:
    """The decision functions in a session: support patterns slot by slot, with a coefficient for each function.

    There is a function per class in the order of arrival, or a single one for two classes, of the second against the
    first.
    """

    slots: NDArray[np.int32]
    ids: NDArray[np.int64]
    labels: NDArray[np.int32]
    costs: _Float
    coefficients: csr_matrix
    intercepts: _Float

    @classmethod
    def of(cls, session: Any, at_least: int = 1) -> Expansion:
        """What stands in the support table of a session, with so many functions at least."""
        table, functions = session.table(), max(at_least, session.columns)
        shape = (len(table.ids), functions)
        coefficients = csr_matrix((table.coefficients, table.columns, table.starts), shape=shape)
        return cls(table.slots, table.ids, table.labels, table.costs, coefficients, np.zeros(functions))

    @cached_property
    def dense(self) -> _Float:
        """The coefficients with their zeros."""
        values: _Float = self.coefficients.toarray()
        return values

    def for_classes(self, n_classes: int, absent: float) -> tuple[_Float, _Float]:
        """Coefficients and intercepts for all classes of a stream; `absent` is the intercept of those yet to arrive."""
        values, intercepts = self.dense, self.intercepts
        if n_classes <= max(2, values.shape[1]):
            return values, intercepts
        if values.shape[1] == 1:
            values, intercepts = np.hstack([-values, values]), np.hstack([-intercepts, intercepts])
        lacking = n_classes - values.shape[1]
        return np.pad(values, ((0, 0), (0, lacking))), np.pad(intercepts, (0, lacking), constant_values=absent)


def signs(labels: NDArray[np.int32], width: int) -> _Float:
    """1 where a label is the positive class of a function and -1 elsewhere, a column per function."""
    positive = np.arange(width) if width > 1 else np.array([1])
    return np.where(labels[:, None] == positive, 1.0, -1.0)


class Algorithm(ABC):
    """What an online solver hands to the machine."""

    solver: ClassVar[str]  # the name in the result
    title: ClassVar[str]
    # Parameters that the session of a stream cannot change on the way.
    fixed: ClassVar[tuple[str, ...]] = ("kernel", "gamma", "degree", "coef0", "memory_limit")
    absent: ClassVar[float] = 0.0  # the intercept of a class that was announced and has no examples yet
    keeps_rows: bool = True  # whether the session keeps kernel values between patterns
    certifies: ClassVar[bool] = True  # whether it has a bound on the distance to an optimum
    keeps_weights: ClassVar[bool] = False  # whether `keep` sets `coef_` of the linear kernel from the session
    takes_samples: ClassVar[bool] = False  # whether its objectives may be those of `training.sample`
    kept: ClassVar[tuple[str, ...]] = ()  # attributes that a checkpoint has beside the session
    is_left_to_readers: ClassVar[bool] = False  # whether the model of a stream is taken once somebody reads it
    end_of_stream: ClassVar[str] = ""  # why a session cannot be rebuilt from the model, where it cannot

    def __init__(self, model: Any) -> None:
        self.model = model

    @property
    def needs_snapshot(self) -> bool:
        """Whether a session can be rebuilt from its snapshot only, and not from the model."""
        return False

    def check_classes(self, classes: NDArray[Any]) -> None:
        """Raise where a parameter does not fit the classes."""

    def machine(self, X: Any, seed: int) -> Machine:
        """A machine that has seen nothing, for data of this kind."""
        provider = provider_for(self.model._kernel_from(X), X, n_jobs=self.model._threads())
        provider.expect(X, self.model.memory_limit)
        return Machine(self.session(provider.dtype, seed), provider)

    @abstractmethod
    def session(self, dtype: np.dtype[Any], seed: int) -> Any:
        """A compiled session that has seen nothing."""

    @abstractmethod
    def expansion(self, session: Any) -> Expansion:
        """The model in the session as it is now."""

    def keep(self, session: Any, expansion: Expansion) -> None:
        """Set fitted attributes of the algorithm's own."""

    @abstractmethod
    def restore(self, machine: Machine) -> None:
        """Let a fresh session take over the model."""

    @abstractmethod
    def estimate(self, training: StreamTraining) -> ObjectiveValues:
        """The objectives as they were seen on the way."""

    @abstractmethod
    def objectives(self, training: StreamTraining) -> FromScratch:
        """The objectives from scratch, by `training.scanned`; every `yield` is room for looking at limits."""

    @abstractmethod
    def operations(self, session: Any) -> dict[str, int]:
        """How often each operation was performed."""

    def argmax_calls(self, session: Any) -> int:
        """How often the best of all classes was looked for."""
        return 0

    def seconds(self, session: Any) -> dict[str, float]:
        """Of kinds of work that the provider does not know of."""
        return {}

    def details(self, session: Any) -> dict[str, Any]:
        """Further fields of a point of the history."""
        return {}

    def begin_training(self, training: StreamTraining) -> None:
        """Prepare the session for the classes of the stream."""

    def begin_epoch(self, training: StreamTraining) -> Iterator[None]:
        """Prepare the session for another epoch; every `yield` is room for looking at limits."""
        yield from ()

    def end_epoch(self, training: StreamTraining) -> Iterator[None]:
        """Work after an epoch; every `yield` is room for looking at limits."""
        if training.is_over:
            yield from self.settle(training)

    def settle(self, training: StreamTraining) -> Iterator[None]:
        """Bring the session to where a good model can be taken from it, wherever training has ended, step by step."""
        yield from ()

    def finish_for_reader(self, training: StreamTraining) -> Iterator[None]:
        """What is left to do on a model that somebody reads, step by step; the stream goes on without it."""
        yield from ()

    def before_validation(self, training: StreamTraining) -> None:
        """Bring it there on the way, and let training go on as if nothing had been."""

    def check(self, training: StreamTraining, outcome: Outcome) -> Outcome:
        """Raise where the outcome cannot be right; otherwise the outcome, corrected."""
        return outcome

    def withdraw_bounds(self) -> None:
        """Do without fitted attributes that hold for positive semi-definite kernels only."""

    @property
    def limit_of_iterations(self) -> str:
        """Why training was ended where it was long, but for `max_iter` passes."""
        return ""

    @property
    def limit_of_precision(self) -> str:
        """Why training could not go on, where it could not."""
        return "where kernel values are not precise enough to go on, float64 data may do"


def estimate_by_losses(training: StreamTraining) -> ObjectiveValues:
    """The objectives of a session that adds up the losses of examples, each as it was when it came."""
    # No primal objective is below the dual, whatever was seen on the way.
    dual = training.session.dual
    return ObjectiveValues(max(dual, primal_by_losses(training)), dual, math.nan)


def primal_by_losses(training: StreamTraining) -> float:
    """The primal objective of such a session; hard margins are kept or not."""
    session = training.session
    loss, left = session.loss, training.left
    if training.is_whole:
        # Examples not visited yet count as in the epoch before; in the first one, as those visited.
        loss += left * (training.loss_before if training.epoch else loss / (1 - left))
    is_broken = loss > 0 and math.isinf(training.settings.C)
    return math.inf if is_broken else float(session.half_squared_norm + loss)


def _linear_weights(model: KernelClassifier) -> _Float:
    """Return `coef_` of a model with the kernel "linear", computed from its support vectors."""
    coef = model._coefficients.T @ model.support_vectors_
    return np.asarray(coef.toarray() if issparse(coef) else coef)


def session_class(name: str, dtype: np.dtype[Any]) -> Any:
    """The compiled session of this name in the precision of the kernel values."""
    return getattr(_core, f"{name}{8 * dtype.itemsize}")


def support_table(ids: Any, labels: Any, costs: Any, diagonal: Any, coefficients: csr_matrix) -> Any:
    """Patterns and their coefficients, as sessions take them over."""
    return _core.SupportTable(
        ids=np.asarray(ids, np.int64),
        labels=np.asarray(labels, np.int32),
        costs=np.asarray(costs, np.float64),
        diagonal=np.asarray(diagonal, np.float64),
        coefficients=coefficients.data,
        columns=coefficients.indices.astype(np.int32),
        starts=coefficients.indptr.astype(np.int64),
    )


# From the ids of patterns to the examples themselves, in parts: which of them, and their rows.
Patterns = Callable[[NDArray[np.int64]], Iterable[tuple[NDArray[np.bool_], Any]]]


class Machine:
    """A compiled session and the provider of its kernel values, from one call of `partial_fit` to the next."""

    is_ahead = False  # of the model, because something failed
    left_out = 0  # examples of the stream that teach nothing
    calls = 0  # of partial_fit
    is_wanted = False  # whether somebody waits for a model that was left to readers
    is_its_model = False  # whether the model alone tells all that a stream needs to go on
    _snapshot: NDArray[np.uint8] | None = None  # of the session before the call, where nobody had read its model

    def __init__(self, session: Any, provider: Provider) -> None:
        self.session, self.provider = session, provider
        self.lock = threading.RLock()  # held by calls, and by who takes a model that was left to readers

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the kernel values."""
        return self.provider.dtype

    @property
    def indefinite(self) -> str:
        """What shows that the kernel is not positive semi-definite, in words, once something has."""
        return self.provider.indefinite

    def diagonal(self, X: Any) -> _Float:
        """k(x, x) of these examples."""
        return self.provider.measure(X)[0]

    def recall(self, indefinite: str) -> None:
        """What the machine of a model had seen of that."""
        self.provider.indefinite = indefinite

    def look_at_kernel(self, X: Any, rows: NDArray[np.intp]) -> None:
        """Whether its values on these examples show that."""
        self.provider.indefinite = indefinite_values(self.provider, X, rows)

    def look_at_objectives(self, half_squared_norm: float, dual: float, at_zero: float) -> None:
        """Whether these do; `at_zero` is the primal objective of w = 0."""
        found = indefinite_objectives(self.provider, half_squared_norm, dual, at_zero)
        self.provider.indefinite = self.provider.indefinite or found

    def feed(self, blocks: Iterator[Examples]) -> Feed:
        """Work on a part of a stream."""
        return KernelFeed(self.session, self.provider, blocks)

    def block_size(self) -> int | None:
        """The examples of a block, where the machine decides."""
        return None

    def scores(self, X: Any, expansion: Expansion, coefficients: _Float) -> _Float:
        """Of any examples."""
        return self.provider.scores(X, expansion.slots, coefficients)

    @property
    def is_rounded(self) -> bool:
        """Whether `exact_scores` have more digits than `scores`."""
        return self.provider.is_rounded

    def is_cheap_in_double(self, values: int) -> bool:
        """Whether `exact_scores`, by so many kernel values, take so little time that they need no reason."""
        return self.provider.is_cheap_in_double(values)

    def exact_scores(self, expansion: Expansion, coefficients: _Float) -> Callable[[Any], _Float]:
        """Return a function that computes scores of examples in double precision."""
        patterns = self.patterns(expansion)
        return lambda X: self.provider.exact_scores(X, patterns, coefficients)

    def model_scores(self, X: Any, scores: _Float) -> _Float:
        """Those of the model that is kept, where they are not those of the coefficients."""
        return scores

    def model_half_squared_norm(self, half_squared_norm: float) -> float:
        """The same for half the squared norm."""
        if not getattr(self.session, "averages", False):  # not every algorithm can
            return half_squared_norm
        norm: float = self.session.model_half_squared_norm(KernelSource(self.session, self.provider))
        return norm

    def patterns(self, expansion: Expansion) -> Any:
        """The examples with coefficients, as they were given."""
        return self.provider.patterns(expansion.slots)

    def restore(self, model: OnlineClassifier, labels: Any, costs: Any, coefficients: csr_matrix) -> None:
        """Let the session take over the support patterns of a model, with labels and functions as it numbers them."""
        slots = np.arange(len(model.support_))
        batch = self.provider.batch(model.support_vectors_, model.support_)
        self.provider.store(slots, batch, slots)
        table = support_table(model.support_, labels, costs, batch.diagonal, coefficients)
        self.session.restore(table, KernelSource(self.session, self.provider))

    def count(self, kernel_values: int) -> None:
        """Go on counting from here."""
        self.provider.kernel_values = kernel_values

    def resume(self, snapshot: NDArray[np.uint8], patterns: Patterns) -> None:
        """Let a fresh session go on from the snapshot of another one."""
        self.session.read_snapshot(snapshot)
        slots, ids = self.session.present()
        for some, X in patterns(ids):
            if some.any():
                self._take_patterns(slots[some], X, ids[some])
        self._bring_rows()

    def _take_patterns(self, slots: NDArray[np.int32], X: Any, ids: NDArray[np.int64]) -> None:
        self.provider.store(slots, self.provider.batch(X, ids), np.arange(len(ids)))

    def _bring_rows(self) -> None:
        self.session.bring_all_rows(KernelSource(self.session, self.provider))

    def begin_call(self, is_unread: bool) -> None:
        """From here on the session is ahead of the model, which may still have to be taken out of it."""
        self.calls += 1
        self._snapshot = self.session.snapshot() if is_unread else None
        if is_unread:
            self.provider.keep_what_goes(True)
        self.is_ahead = True

    def end_call(self) -> None:
        """The model is that of the session."""
        self.is_ahead = False
        if self._snapshot is not None:
            self._snapshot = None
            self.provider.keep_what_goes(False)

    def as_before(self, algorithm: Algorithm) -> Machine:
        """Another one, as this was before the last call."""
        assert self._snapshot is not None
        other = algorithm.machine(self.provider.patterns(np.arange(self.provider.size)), 0)
        other.recall(self.indefinite)
        other.resume(self._snapshot, self.provider.recalled)
        return other

    def waiting(self, support: NDArray[np.int64]) -> Any:
        """The patterns of the session that have no coefficients in the model, in the order of their slots."""
        slots, ids = self.session.present()
        return self.provider.patterns(slots[~np.isin(ids, support)])

    def block_values(self, memory_limit: float) -> float:
        """How many kernel values of blocks there is memory for."""
        return memory_limit * _SHARE_OF_BLOCKS / self.dtype.itemsize

    def rows_for(self, memory_limit: float) -> int | None:
        """About how many patterns there is memory for all kernel values of, if it keeps any."""
        return int(math.sqrt(memory_limit / self.memory_for(1)))

    def memory_for(self, patterns: float) -> float:
        """A limit with which all kernel values between so many patterns can be kept, about."""
        return 2 * self.dtype.itemsize * patterns**2

    def make_room_for_model(self) -> None:
        """Let rows of kernel values go where there is no memory for a copy of the patterns beside them."""
        with suppress(_core.MemoryLimitError):
            self.session.set_foreign_bytes(2 * self.provider.nbytes)

    def check_memory(self, memory_limit: float) -> None:
        """Raise where the session cannot stay within the limit by itself."""

    @property
    def kernel_values(self) -> int:
        """Computed so far."""
        return self.provider.kernel_values

    @property
    def seconds(self) -> dict[str, float]:
        """What computing them took."""
        return dict(self.provider.seconds)

    def __enter__(self) -> Self:
        """Keep the threads of the provider."""
        self._threads = self.provider.threads()
        self._threads.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        """Let them go."""
        self._threads.__exit__(*details)


class Targets(ABC):
    """What a stream says of its examples, one by one: all that the machine must know of it."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def classes(self) -> NDArray[Any]:
        """The classes in it, sorted, of which there must be two or more."""

    @abstractmethod
    def united(self, before: NDArray[Any] | None, announced: ArrayLike | None) -> NDArray[Any]:
        """The same with those of the calls before and those announced, however many there are."""

    @abstractmethod
    def costs(
        self, settings: Settings, X: Any, classes: NDArray[Any], sample_weight: ArrayLike | None
    ) -> NDArray[np.float64]:
        """The cost of each example; one without a cost is not visited."""

    @abstractmethod
    def check(self, costs: NDArray[np.float64]) -> None:
        """Raise where the costs leave too little to learn from."""

    @abstractmethod
    def numbers(self, model: OnlineClassifier, session: Any, order: NDArray[np.intp]) -> NDArray[np.int32]:
        """What the session calls the labels of the examples, which come in this order.

        Classes are numbered as they arrive, which `_arrived` of the model remembers.
        """


@dataclass(frozen=True)
class Labels(Targets):
    """One label for each example."""

    y: NDArray[Any]

    def __len__(self) -> int:
        return len(self.y)

    def classes(self) -> NDArray[Any]:
        """The labels."""
        return classes_of(self.y)

    def united(self, before: NDArray[Any] | None, announced: ArrayLike | None) -> NDArray[Any]:
        """All labels so far."""
        return united_labels(self.y, before, announced)

    def costs(
        self, settings: Settings, X: Any, classes: NDArray[Any], sample_weight: ArrayLike | None
    ) -> NDArray[np.float64]:
        """`C` times the weights of example and class."""
        return example_costs(settings.C, X, self.y, classes, sample_weight, settings.class_weight)

    def check(self, costs: NDArray[np.float64]) -> None:
        """There must be two classes."""
        check_two_classes(self.y, costs)

    def numbers(self, model: OnlineClassifier, session: Any, order: NDArray[np.intp]) -> NDArray[np.int32]:
        """Labels numbered in the order in which they first arrive.

        Classes whose examples all have weight 0 come first: they are part of the problem, so the session has to have
        them from its first step on.
        """
        classes, codes = np.unique(self.y, return_inverse=True)
        labels = classes.tolist()
        number = {label: n for n, label in enumerate(model._arrived.tolist())}
        _, firsts = np.unique(codes[order], return_index=True)
        arriving = codes[order[np.sort(firsts)]]
        for code in (*np.setdiff1d(np.arange(len(labels)), arriving), *arriving):
            number.setdefault(labels[code], len(number))
        model._arrived = np.array(list(number), dtype=model.classes_.dtype)
        return np.array([number[label] for label in labels], dtype=np.int32)[codes]


def united_labels(y: NDArray[Any], before: NDArray[Any] | None, announced: ArrayLike | None) -> NDArray[Any]:
    """All labels: those in y, those of the calls before, and those announced."""
    if announced is not None and np.ndim(announced) != 1:
        raise ValueError(f"classes must be a list or an array of labels, got {announced!r}")
    all_labels = [y]
    for others, where in ((before, "of the calls before"), (announced, "in classes")):
        if others is not None:
            check_same_type(y, np.asarray(others), where)
            all_labels.append(np.asarray(others))
    return np.unique(np.concatenate(all_labels))


# What is made when somebody reads the model, where that is left to readers.
_LEFT_TO_READERS = (
    *("support_", "support_vectors_", "support_costs_", "support_labels_", "dual_coef_", "coef_", "intercept_"),
    *("delta_", "n_iter_", "result_", "_snapshot", "_waiting_vectors", "_indefinite"),
)


@left_to_readers(*_LEFT_TO_READERS)
class OnlineClassifier(KernelClassifier):
    """A kernel machine trained on a stream of examples by one of the algorithms."""

    _ALGORITHM: ClassVar[type[Algorithm]]
    # The number of examples whose kernel values are computed together changes the time and, by rounding, the model.
    _BATCH_SIZE: ClassVar[int] = 256
    # What a fit before may have left behind and this one need not make again.
    _FORGOTTEN: ClassVar[tuple[str, ...]] = (
        *("gamma_", "coef_", "support_vectors_", "_machine", "_began_with"),
        *("_snapshot", "_waiting_vectors", "_indefinite", "_unread"),
    )

    _arrived: NDArray[Any] = fitted()  # labels in the order of their arrival
    _seen: int = fitted()  # number of examples of the stream
    _snapshot: NDArray[np.uint8] = fitted()  # state of the session of a stream, from which another one can continue
    _waiting_vectors: Any = fitted()  # patterns of the snapshot without coefficients in the model
    _indefinite: str = fitted()  # evidence that the kernel is not positive semi-definite, if there is any

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the running session, which is rebuilt from the model when it is needed again."""
        state: dict[str, Any] = {**super(OnlineClassifier, one_model(self)).__getstate__()}
        state.pop("_machine", None)
        return state

    def _hold(self) -> bool:
        """Take the model where that was left to readers; False where there is a newer one by now."""
        unread: UnreadModel | None = vars(self).get("_unread")
        if unread is None:
            return True
        attributes = unread.attributes()
        if attributes is None:
            return False
        del self._unread
        self.__dict__.update(attributes)
        return True

    @property
    def _has_model(self) -> bool:
        return "_unread" in vars(self) or "dual_coef_" in vars(self)

    @with_paragraphs
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        validation: tuple[Any, ArrayLike] | None = None,
        certify: bool | Literal["auto"] = "auto",
    ) -> Self:
        """Train on `X` and `y`.

        Parameters
        ----------
        [examples]
        [sample_weight]
        [validation]
        [certify]

        [fitted]
        """
        return self._fit(X, y, sample_weight, validation, certify)

    @of_streams
    @with_paragraphs
    def partial_fit(
        self, X: Any, y: Any = None, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on training with new examples, in the order in which they come.

        [stream]
        [sample_weight]

        [fitted]
        """
        return self._partial_fit(X, y, classes, sample_weight)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        validation: Any,
        certify: bool | str,
        classes: ArrayLike | None = None,
        asked: CheckpointRequest | None = None,
    ) -> Self:
        with next_model(self) as model:
            algorithm, machine, outcome = model._learn_all(X, y, sample_weight, validation, certify, classes, asked)
        warn_if_indefinite(machine.indefinite, 3)
        self._warn_if_early(outcome, algorithm.limit_of_precision, 3, algorithm.limit_of_iterations)
        return self

    def _learn_all(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        validation: Any,
        certify: bool | str,
        classes: ArrayLike | None,
        asked: CheckpointRequest | None,
    ) -> tuple[Algorithm, Machine, Outcome]:
        declare.check(self)
        settings, algorithm = Settings.of(self, certify), self._ALGORITHM(self)
        X, targets = self._examples(X, y, classes, reset=True)
        known = targets.classes()
        costs = targets.costs(settings, X, known, sample_weight)
        targets.check(costs)
        if self.kernel == "precomputed":
            check_gram(X)
        algorithm.check_classes(known)
        held_out = (
            None if validation is None else held_out_examples(validation, partial(self._validated, reset=False), known)
        )
        checkpoint = self._checkpoint(settings, asked, X=X, y=y, sample_weight=costs, validation=held_out)
        seeds = check_random_state(settings.random_state)
        seed, seed_of_orders = (int(seeds.randint(2**31 - 1)) for _ in range(2))
        if checkpoint is not None and checkpoint.resumed is not None:
            with checkpoint.reading():
                seed_of_orders = int(checkpoint.resumed["training"]["seed_of_orders"])
        orders = np.random.RandomState(seed_of_orders)

        for name in self._FORGOTTEN:
            self.__dict__.pop(name, None)
        self.classes_ = known
        self._arrived = np.empty(0, known.dtype)
        self._seen = len(targets)
        order = orders.permutation(len(targets))
        order = order[costs[order] > 0]
        machine = algorithm.machine(X, seed)
        if math.isinf(settings.C):
            costs = hardened(costs, machine.diagonal(X))
        if algorithm.certifies:
            machine.look_at_kernel(X, order)
        labels = targets.numbers(self, machine.session, order)
        examples = Examples(X, np.arange(len(targets)), labels, costs)
        stream = Stream(examples, order, orders, orders)
        training = StreamTraining(algorithm, machine, stream, settings, held_out, is_whole=True)
        training.seed_of_orders = seed_of_orders
        outcome = self._train(training, settings.limits(), checkpoint)
        return algorithm, machine, advised(outcome, X, self)

    def _partial_fit(self, X: Any, y: Any, classes: ArrayLike | None, sample_weight: ArrayLike | None) -> Self:
        with ExitStack() as until_published:
            with next_model(self) as model:
                unread: UnreadModel | None = vars(model).get("_unread")
                if unread is not None:
                    until_published.enter_context(unread.lock)
                algorithm, machine, outcome = model._learn_part(X, y, classes, sample_weight)
            machine.end_call()
        warn_if_indefinite(machine.indefinite, 3)
        if "_unread" not in vars(self):
            self._warn_if_early(outcome, algorithm.limit_of_precision, 3, algorithm.limit_of_iterations)
        return self

    def _learn_part(
        self, X: Any, y: Any, classes: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Algorithm, Machine, Outcome]:
        declare.check(self)
        settings, algorithm = Settings.of(self), self._ALGORITHM(self)
        first = not self._has_model
        unread = self._unread_or_taken()
        self._check_unchanged(algorithm, first)
        columns = 0 if first else getattr(self, "n_features_in_", 0)  # objects have none
        X, targets = self._examples(X, y, classes, reset=first or self.kernel == "precomputed")
        if self.kernel == "precomputed":
            self._check_columns(X, 0 if first else self._seen, columns)
        elif not first:
            kept = self.support_vectors_ if unread is None else self._machine.provider.patterns(np.zeros(0, np.int64))
            if not isinstance(X, DeviceArray) and (not callable(self.kernel) or issparse(X) or issparse(kept)):
                if not callable(self.kernel):
                    check_features(X, is_training=False, dtype=precision(kept))
                X = _like(kept, X)
        known = targets.united(None if first else self.classes_, classes)
        algorithm.check_classes(known)
        weights = settings.class_weight
        if isinstance(weights, Mapping):  # not of classes that have yet to come
            weights = {label: weights[label] for label in known.tolist() if label in weights}
        costs = targets.costs(replace(settings, class_weight=weights), X, known, sample_weight)
        machine = self._going_on(algorithm, X, first)
        if math.isinf(settings.C):
            costs = hardened(costs, machine.diagonal(X))
        self.classes_ = known
        ids = np.arange(self._seen, self._seen + len(targets))
        self._seen += len(targets)
        order = np.flatnonzero(costs > 0)
        machine.begin_call(is_unread=unread is not None and not unread.is_taken)
        labels = targets.numbers(self, machine.session, order)
        stream = Stream(Examples(X, ids, labels, costs), order)
        training = StreamTraining(algorithm, machine, stream, replace(settings, max_iter=1), None, is_whole=False)
        # A kernel that may fail, or whose values are gone, could not bring the session back after a call that failed.
        is_known = isinstance(self.kernel, str) and self.kernel != "precomputed"
        training.is_left_to_readers = algorithm.is_left_to_readers and is_known
        outcome = self._train(training, Limits(None, math.inf, settings.time_limit, passes=1, certify=False))
        return algorithm, machine, outcome

    def _unread_or_taken(self) -> UnreadModel | None:
        """The model of the call before, if it is still in the session; otherwise its attributes are here."""
        unread: UnreadModel | None = vars(self).get("_unread")
        if unread is not None and not self._is_running():
            self._hold()
            return None
        self.__dict__.pop("_unread", None)
        return unread

    def _examples(self, X: Any, y: Any, classes: ArrayLike | None, *, reset: bool) -> tuple[Any, Targets]:
        """Checked examples, and what to learn of them."""
        X, y = self._validated(X, y, reset=reset)
        return X, Labels(y)

    def _checkpoint(self, settings: Settings, asked: CheckpointRequest | None, **data: Any) -> CheckpointFile | None:
        if asked is not None and asked.checkpoint is not None and settings.strategy.needs_scores:
            raise ValueError(f"checkpoint needs selection='random'; got selection={settings.selection!r}")
        if asked is not None and asked.checkpoint is not None and self._device is not None:
            raise ValueError(f"checkpoint cannot be combined with block steps; got solver={self.solver!r}")
        return CheckpointFile.asked_for(asked, self, **data)

    def _train(self, training: StreamTraining, limits: Limits, checkpoint: CheckpointFile | None = None) -> Outcome:
        algorithm, machine = training.algorithm, training.machine
        about = f"{algorithm.title}, {self._kernel_name()}, {len(training.stream.examples)} examples"
        told = says_enough_memory(self, training.stream.examples.X, machine.session.slots)
        with told, progress_for(self.verbose) as progress, machine, training:
            progress.start(f"{about}, {len(self.classes_)} classes{training.plan()}")
            outcome = train(training, limits, progress, checkpoint=checkpoint)
        if not training.is_left_to_readers or outcome.status != "completed":
            return self._take(training, outcome)
        for name in _LEFT_TO_READERS:
            self.__dict__.pop(name, None)
        reader = copied(self)
        algorithm.model = reader
        unread = UnreadModel(
            machine,
            partial(reader._take_for_readers, training, outcome),
            partial(reader._take_back, training, outcome),
        )
        self._unread = unread
        if machine.is_wanted:  # by threads that would come too late again and again
            unread.attributes()
        return outcome

    def _take_back(self, training: StreamTraining, outcome: Outcome) -> dict[str, Any]:
        """The attributes of the model in a session whose next call has failed."""
        training.go_on_with(training.machine.as_before(training.algorithm))
        self._machine = training.machine
        return self._take_for_readers(training, outcome)

    def _take_for_readers(self, training: StreamTraining, outcome: Outcome) -> dict[str, Any]:
        """The attributes of the model, finished; the stream does not see how often it is read."""
        before, machine = set(vars(self)), training.machine
        kernel_values = machine.kernel_values
        with machine:
            for _ in training.algorithm.finish_for_reader(training):
                pass
        outcome = self._take(training, outcome)
        machine.count(kernel_values)
        check_finite(self)
        self._warn_if_early(outcome, training.algorithm.limit_of_precision, 3, training.algorithm.limit_of_iterations)
        return {name: value for name, value in vars(self).items() if name not in before}

    def _take(self, training: StreamTraining, outcome: Outcome) -> Outcome:
        """Keep the model that is in the session, and its certificate."""
        algorithm, machine = training.algorithm, training.machine
        outcome = algorithm.check(training, outcome)
        self._keep_model(algorithm, machine)
        if machine.indefinite:
            self._indefinite = machine.indefinite
            outcome = outcome.without_bound()
            algorithm.withdraw_bounds()
        self.result_ = training.result(outcome)
        self.n_iter_ = max(1, math.ceil(self.result_.iterations))
        is_stream = getattr(self, "_machine", None) is machine
        if (is_stream or algorithm.needs_snapshot) and self.kernel != "precomputed" and not machine.is_its_model:
            self._waiting_vectors = machine.waiting(self.support_)
            self._snapshot = machine.session.snapshot()
        else:  # of another machine
            for name in ("_snapshot", "_waiting_vectors"):
                self.__dict__.pop(name, None)
        return outcome

    def _keep_model(self, algorithm: Algorithm, machine: Machine) -> None:
        expansion = algorithm.expansion(machine.session)
        to_classes = self._to_classes(len(expansion.intercepts))
        machine.make_room_for_model()
        self.support_ = expansion.ids
        coefficients = csr_matrix(expansion.coefficients @ to_classes)
        coefficients.sort_indices()
        self.dual_coef_ = self._shaped(coefficients)
        if self.kernel != "precomputed":
            self.support_vectors_ = machine.patterns(expansion)
        if self.kernel == "linear" and not algorithm.keeps_weights:
            self.coef_ = _linear_weights(self)
        algorithm.keep(machine.session, expansion)

    def _shaped(self, coefficients: csr_matrix) -> Any:
        """What `dual_coef_` is, from a row for each support pattern."""
        return coefficients

    def _to_classes(self, width: int) -> csr_matrix:
        """From the functions of a session to those of the model: one for two classes, else one for each of `classes_`.

        A single function of the session tells the second class to arrive from the first.
        """
        columns, n_classes = self._columns(), len(self.classes_)
        if width > 1:
            met = min(width, len(columns))
            entries = np.ones(met), (np.arange(met), columns[:met])
        elif n_classes == 2:
            return csr_matrix([[1.0 if not len(columns) or columns[0] == 0 else -1.0]])
        else:
            met = min(2, len(columns))
            entries = np.array([-1.0, 1.0])[:met], (np.zeros(met, int), columns[:met])
        return csr_matrix(entries, shape=(width, n_classes))

    def _to_functions(self, width: int) -> csr_matrix:
        """From the coefficients of the model back to those of a session."""
        to_classes = self._to_classes(width)
        times = np.maximum(1, to_classes.getnnz(axis=1))  # a function may stand for two classes
        functions = csr_matrix((self._coefficients @ to_classes.T) / times)
        functions.sort_indices()
        return functions

    def _intercepts(self, expansion: Expansion, absent: float) -> _Float:
        """Of the functions of the model; `absent` is that of classes that have yet to arrive."""
        to_classes = self._to_classes(len(expansion.intercepts))
        intercepts: _Float = expansion.intercepts @ to_classes
        intercepts[to_classes.getnnz(axis=0) == 0] = absent
        return intercepts

    def _columns(self) -> NDArray[np.intp]:
        """Where in `classes_` the labels are, in the order of their arrival."""
        return np.searchsorted(self.classes_, self._arrived)

    def _going_on(self, algorithm: Algorithm, X: Any, first: bool) -> Machine:
        """The machine of the calls before, rebuilt from the model if it is not there any more."""
        if first:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            self._arrived, self._seen = np.empty(0, object), 0
            self._machine = algorithm.machine(X, seed)
        elif not self._is_running():
            self._machine = algorithm.machine(X, 0)
            self._machine.recall(getattr(self, "_indefinite", ""))
            if hasattr(self, "_snapshot") and not self._machine.is_its_model:
                self._machine.resume(self._snapshot, self._patterns_of_snapshot)
            else:
                algorithm.restore(self._machine)
        return self._machine

    def _patterns_of_snapshot(self, ids: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.bool_], Any]]:
        """Those with coefficients in the model, and those that wait."""
        is_support = np.isin(ids, self.support_)
        found = [length(self.support_vectors_), length(self._waiting_vectors)]
        if not np.array_equal(ids[is_support], self.support_) or found != [is_support.sum(), (~is_support).sum()]:
            raise ValueError("the saved state is damaged: it has other patterns than the model")
        yield is_support, self.support_vectors_
        yield ~is_support, self._waiting_vectors

    def _is_running(self) -> bool:
        """Whether the machine of the calls before is there, as it was after the last of them."""
        return hasattr(self, "_machine") and not self._machine.is_ahead

    def _why_no_stream(self) -> str:
        """Return why the stream cannot start or continue: nothing may be left to rebuild the machine from."""
        if getattr(self, "tol", None) is not None:
            return f"with tol={self.tol!r}, because partial_fit makes one pass over what it is given; tol must be None"
        if reason := super()._why_no_stream():
            return reason
        if not self._has_model or self._is_running():
            return ""
        if hasattr(self, "_snapshot"):
            return ""
        if self.kernel == "precomputed":
            return (
                "any more: with kernel='precomputed' a model that was fitted, loaded or copied, or whose last call "
                "failed, has no kernel values between its support patterns; use partial_fit from the start"
            )
        return self._ALGORITHM.end_of_stream

    def _check_unchanged(self, algorithm: Algorithm, first: bool) -> None:
        """The session of a stream cannot change some parameters on the way."""
        now = {name: _plain(getattr(self, name)) for name in algorithm.fixed}
        began_with: dict[str, Any] | None = getattr(self, "_began_with", None)
        if not first and began_with is not None:
            for name, value in now.items():
                before = began_with[name]
                is_array = hasattr(before, "shape") or hasattr(value, "shape")
                same = np.array_equal(before, value) if is_array else bool(before == value)
                if not same:
                    raise ValueError(
                        f"{name} must stay as it was in the calls of partial_fit before, {before!r}; got {value!r}"
                    )
        self._began_with = now

    def _check_columns(self, X: Any, seen: int, before: int) -> None:
        """After so many examples, the last call of which had so many columns."""
        wanted, found = seen + X.shape[0], X.shape[1]
        if found >= wanted:
            return
        message = (
            f"X must have a column for every example of the stream so far with kernel='precomputed', at least "
            f"{wanted}; got {found}"
        )
        if found < before:  # scikit-learn's words for what goes for all kernels
            name = type(self).__name__
            message = f"X has {found} features, but {name} is expecting {before} features as input and more: {message}"
        raise ValueError(message)


class CheckpointedClassifier(OnlineClassifier):
    """One whose `fit` can go on in another process."""

    @with_paragraphs
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        validation: tuple[Any, ArrayLike] | None = None,
        certify: bool | Literal["auto"] = "auto",
        checkpoint: PathLike | None = None,
        every: float = 30.0,
        resume: bool = False,
    ) -> Self:
        """Train on `X` and `y`.

        Parameters
        ----------
        [examples]
        [sample_weight]
        [validation]
        [certify]
        [checkpoint]

        [fitted]
        """
        return self._fit(X, y, sample_weight, validation, certify, asked=CheckpointRequest(checkpoint, every, resume))


def _plain(value: Any) -> Any:
    """Return the name of an algorithm for an object with its default switches, and any other value unchanged."""
    is_default = isinstance(value, declare.Value) and value == type(value)()
    return type(value).__name__.lower() if is_default else value


def _like(kept: Any, X: Any) -> Any:
    """Examples in the layout and precision of those a session has already; bytes may stay bytes."""
    if issparse(kept):
        return csr_matrix(X, dtype=kept.dtype)
    dense = X.toarray() if issparse(X) else X
    return np.ascontiguousarray(dense, dtype=dense.dtype if dense.dtype in BYTES else precision(kept))


def _known(ids: NDArray[np.int64], examples: int) -> NDArray[np.int64]:
    """Ids of examples of the stream, checked."""
    if len(ids) and ids.max() >= examples:
        raise ValueError(f"there is no example {ids.max()}")
    return ids


class CertificateTrial:
    """How long a certificate takes, by a trial on some examples; the next when there are many more support patterns."""

    def __init__(self) -> None:
        self._patterns, self._seconds = 0, 0.0

    def seconds(self, score: Callable[[], int], patterns: int, examples: int) -> float:
        """With so many support patterns and examples.

        `score` computes the scores of some examples with all support patterns, and tells how many it has looked at.
        """
        if patterns > _MANY_MORE * self._patterns:
            began = time.perf_counter()
            looked_at = score()
            self._seconds, self._patterns = (time.perf_counter() - began) / max(1, looked_at), patterns
        return self._seconds * examples * patterns / max(1, self._patterns)


class LossSum:
    """The sum of the losses of all examples, from all of them or from some drawn at random, with its standard error.

    Draws are stratified: coefficients at their bounds tell where most of the losses are.
    """

    def __init__(self, stratum_of: NDArray[np.intp], order: NDArray[np.intp], costs_of: _Float) -> None:
        self._stratum_of, self._costs_of = stratum_of, costs_of
        self._slack_of = np.full(len(costs_of), -np.inf)  # 1 - margin of each example that was added
        self._examples = np.bincount(stratum_of[order], minlength=_STRATA)
        self._count, self._sum, self._squares = np.zeros((3, _STRATA))
        self._largest = 0.0

    def add(self, ids: NDArray[np.int64], losses: _Float, slack: _Float) -> None:
        """Add the losses of some examples, times their costs; `slack` is the largest 1 - margin of each example."""
        self._slack_of[ids] = slack
        strata = self._stratum_of[ids]
        self._count += np.bincount(strata, minlength=_STRATA)
        self._sum += np.bincount(strata, losses, _STRATA)
        self._squares += np.bincount(strata, np.square(losses), _STRATA)
        self._largest = max(self._largest, float(losses.max(initial=0.0)))

    def with_loss(self, error: float) -> NDArray[np.intp]:
        """Return the examples that have a loss if margins are wrong by up to `error`."""
        return np.flatnonzero(self._slack_of > -error)

    @property
    def costs(self) -> float:
        """The sum of the costs of the examples added that have a loss."""
        return float(self._costs_of[self.with_loss(0.0)].sum())

    @property
    def total(self) -> float:
        """Of all examples."""
        return float((self._sum * self._examples / np.maximum(1, self._count)).sum())

    @property
    def error(self) -> float:
        """The standard error of draws without replacement.

        Losses are rare and may be large: a draw that met none of them would be too sure of itself. So each stratum that
        was not looked at as a whole counts as if it had met one more example, with the largest loss of all.
        """
        n, N = np.maximum(1, self._count), self._examples
        spread = np.maximum(0, self._squares - self._sum**2 / n) * n / np.maximum(1, n - 1) + self._largest**2
        return float(np.sqrt(((N / n) ** 2 * spread * (1 - np.minimum(1, n / np.maximum(1, N)))).sum()))


class StreamTraining:
    """A session on a stream as the training loop sees it: epochs, a few examples at a time."""

    def __init__(
        self,
        algorithm: Algorithm,
        machine: Machine,
        stream: Stream,
        settings: Settings,
        held_out: tuple[Any, NDArray[Any]] | None,
        *,
        is_whole: bool,
    ) -> None:
        self.algorithm, self.machine, self.stream, self.settings = algorithm, machine, stream, settings
        self.held_out = held_out
        self.is_whole = is_whole  # whether the stream is all there will be
        self.is_left_to_readers = False  # whether the model is taken when somebody reads it
        self.session = machine.session
        self.size = min(len(stream.order), settings.strategy.budget or len(stream.order))  # of an epoch; may be 0
        self.between = max(1, self.size // _HISTORY_POINTS, min(_EXAMPLES_BETWEEN, self.size // _FEW_POINTS))
        self.pace = self.between  # examples at once
        self.trial = CertificateTrial()
        self.sample: NDArray[np.intp] | None = None  # the examples that the certificate is of, if not all
        self.scanned_rows: NDArray[np.intp] | None = None  # the examples that objectives are computed from, if not all
        self.is_in_double = False  # whether scores of the certificate are computed in double precision
        self.scanned_with: tuple[Expansion, _Float] | None = None  # expansion and coefficients of the last scan
        self.loss_sum: LossSum | None = None
        self.epoch = 0
        self.visited = 0
        self.visited_in_epoch = 0
        self.is_over = False
        self.loss_before = 0.0  # of the epoch before
        self.dual_before = 0.0
        self.next_estimate = 0
        self.error: float | None = None
        self.next_validation = 0
        self.seed_of_orders = 0  # of the stream's, for a checkpoint
        self.is_between = False  # whether an epoch is over, and the next has not begun
        self.is_busy = False  # with what an algorithm does between them
        self.has_warned = False  # of a limit on memory that is too small
        algorithm.begin_training(self)
        self.feed = self._feed(stream.order)
        self._work = self._epochs()

    def __enter__(self) -> Self:
        """Nothing to prepare."""
        return self

    def __exit__(self, kind: Any, *details: Any) -> None:
        """Leave the session where a model can be taken from it."""
        self._work.close()  # it refers to this object, and would keep all of it in memory until a collection of cycles
        try:
            if kind is None:
                self._settle()
                self.feed.flush()
        finally:
            self.feed.wait()
            self.feed.release()

    def _settle(self) -> None:
        """What is left to do, but not for long: training may have ended early."""
        end = time.perf_counter() + _SECONDS_TO_SETTLE
        for _ in self.algorithm.settle(self):
            if time.perf_counter() > end:
                break

    def advance(self) -> bool:
        """Work on the next few examples; True once all epochs are over."""
        return next(self._work)

    def _epochs(self) -> Generator[bool, None, None]:
        while not self.is_over:
            if not self.is_between:
                yield from self._epoch()
            self.is_busy = True
            self.feed.flush()
            for _ in self.algorithm.begin_epoch(self):
                yield False
            self._begin_epoch()
            self.is_between = self.is_busy = False

    def _epoch(self) -> Generator[bool, None, None]:
        """The rest of the epoch at hand, and its end."""
        while self.visited_in_epoch < self.size:
            worked = self._timed_advance()
            self.machine.check_memory(self.settings.memory_limit)
            self.visited += worked
            self.visited_in_epoch += worked
            self.look_at_memory()
            if self.visited_in_epoch < self.size:
                yield False
        self.is_busy = True
        self.feed.release()  # what comes now needs the memory
        self.epoch += 1
        self.is_over = not self.settings.stops_at_gap and self._were_enough()
        for _ in self.algorithm.end_epoch(self):
            yield False
        self.is_between, self.is_busy = True, False
        yield self.is_over

    def look_at_memory(self) -> None:
        """Say once, as soon as it shows, that a small limit on memory makes training many times as long."""
        again, everything = self.feed.computed_again, self.machine.kernel_values
        ratio = again / max(1, everything - again)
        if self.has_warned or everything < _FEW_KERNEL_VALUES or ratio < _MANY_TIMES:
            return
        self.has_warned = True
        share = self.visited_in_epoch / max(1, self.size) if not self.epoch else 1.0
        patterns = min(self.size, self.session.support_patterns / max(share, 1 / max(1, self.size)))
        warnings.warn(
            f"memory_limit={self.settings.memory_limit:.4g} leaves little room for kernel values between support "
            f"patterns: {ratio:.1f} times as many as the examples need were computed again so far, and training takes "
            f"about as many times longer; {self.machine.memory_for(patterns):.2g} would keep them all",
            TrainingWarning,
            stacklevel=2,
        )

    # From one process to another.

    _KEPT = (
        *("epoch", "visited", "visited_in_epoch", "is_over", "is_between", "loss_before", "dual_before"),
        *("next_estimate", "next_validation", "seed_of_orders"),
    )

    def snapshot(self) -> State | None:
        """The session, how far it is in the stream, and what the algorithm remembers; none at the end of an epoch."""
        if self.is_busy:
            return None
        return {
            **{name: getattr(self, name) for name in self._KEPT},
            "algorithm": {name: getattr(self.algorithm, name) for name in self.algorithm.kept},
            "kernel_values": self.machine.kernel_values,
            "session": self.session.snapshot(),
        }

    def resume(self, state: State) -> None:
        """Go on from there: the patterns are among the examples of the stream, and orders are drawn again."""
        for owner, names, values in (
            (self, self._KEPT, state),
            (self.algorithm, self.algorithm.kept, state["algorithm"]),
        ):
            for name in names:
                setattr(owner, name, type(getattr(owner, name))(values[name]))
        if not 0 <= self.visited_in_epoch <= self.size or not 0 <= self.epoch - self.is_between <= self.visited:
            raise ValueError("it is no place in the stream")
        examples = self.stream.examples
        self.machine.resume(
            state["session"], lambda ids: [(np.ones(len(ids), bool), rows_of(examples.X, _known(ids, len(examples))))]
        )
        self.machine.count(int(state["kernel_values"]))
        order = self.stream.order
        for _ in range(self.epoch - self.is_between):
            order = self.stream.next_order()
        self.feed = self._feed(order, self.visited_in_epoch)
        if self.is_over:
            for _ in self.algorithm.end_epoch(self):  # what it finishes is not in the snapshot
                pass

    def go_on_with(self, machine: Machine) -> None:
        """Let another machine, in the same state, take the place of this one's."""
        self.machine, self.session = machine, machine.session
        self.feed = machine.feed(iter(()))

    def _timed_advance(self) -> int:
        """As many examples as are a short piece of work, going by the last one; the model does not depend on it."""
        began = time.perf_counter()
        worked = self.feed.advance(self.pace)
        if time.perf_counter() - began > _SECONDS_AT_ONCE:
            self.pace = max(1, self.pace // 2)
        elif self.pace < self.between:
            self.pace += 1
        return worked

    def _were_enough(self) -> bool:
        """Whether the epochs asked for are over; with "auto", whether another one would be long, or gain little."""
        if self.epoch >= self.settings.most_passes:
            return True
        if self.settings.max_iter is not None:
            return False
        dual, before = self.session.dual, self.dual_before
        self.dual_before = dual
        values = self.machine.kernel_values
        is_long = self.visited + self.size > _FEW_VISITS or values + values / self.epoch > _FEW_KERNEL_VALUES
        return bool(is_long or dual - before <= _LITTLE_GAIN * dual)

    def _begin_epoch(self) -> None:
        self.loss_before = getattr(self.session, "loss", 0.0)
        self.session.begin_another_epoch()
        self.visited_in_epoch = 0
        self.feed = self._feed(self.stream.next_order())

    def _feed(self, order: NDArray[np.intp], first: int = 0) -> Feed:
        strategy = self.settings.strategy
        if not strategy.needs_scores:
            return self.machine.feed(self.stream.blocks(order[first : self.size], self._batch_size))
        return ChoosingFeed(self.session, self.machine.provider, self.stream, order, strategy, self.size)

    def _batch_size(self) -> int:
        """As asked for, or less where the kernel values of two blocks would take too much of the memory."""
        if (wanted := self.machine.block_size()) is not None:
            return wanted
        values = self.machine.block_values(self.settings.memory_limit)
        slots = self.session.slots
        size = (math.sqrt(slots * slots + 4 * values) - slots) / 4  # 2 size (slots + 2 size) = values
        most: int = self.algorithm.model._BATCH_SIZE
        return min(most, max(1, int(min(size, self._rows_at_once()))))

    def _rows_at_once(self) -> float:
        """The examples that may be copied together."""
        share = _SHARE_OF_COPIES * self.settings.memory_limit
        return max(_LEAST_ROWS, share / row_nbytes(self.stream.examples.X))

    def plan(self) -> str:
        """What the memory is for, in words."""
        limit = self.settings.memory_limit
        patterns = self.machine.rows_for(limit)
        if patterns is None:
            return ""
        plan = f", memory limit {limit / 1e6:.0f} MB"
        if not self.algorithm.keeps_rows:
            return plan
        return f"{plan}: all kernel values between about {patterns} support patterns, then those used last"

    @property
    def left(self) -> float:
        """How much of the epoch is."""
        return 1 - self.visited_in_epoch / max(1, self.size)

    def estimate(self) -> ObjectiveValues | None:
        """The objectives as they were seen on the way, now and then."""
        if self.visited < self.next_estimate and self.visited % max(1, self.size):
            return None
        if self.size and not self.visited:  # the first block is not done
            return None
        self.next_estimate = self.visited + self.between
        return self.algorithm.estimate(self)

    def evaluate(self) -> FromScratch:
        """The objectives from scratch: one pass over the examples with the coefficients as they are."""
        yield from self.algorithm.settle(self)
        self.feed.flush()
        self.sample = self.scanned_rows = self._sample()
        values = self.session.support_patterns * len(self.stream.order)
        is_exact = self.sample is None and self.machine.is_rounded
        self.is_in_double = is_exact and self.machine.is_cheap_in_double(values)
        found = yield from self.algorithm.objectives(self)
        if is_exact and not self.is_in_double and self._is_wrong(found):
            self.is_in_double = True
            self.scanned_rows = self._rows_that_count()
            found = yield from self.algorithm.objectives(self)
        return found

    def _rows_that_count(self) -> NDArray[np.intp] | None:
        """Return the examples with a coefficient, or whose margin may be violated; None if losses were not noted.

        Other examples change neither objective. Margins are wrong by at most a multiple of the error that was measured.
        """
        if self.loss_sum is None or self.scanned_with is None:
            return None
        rows, quick, exact = self._measured()
        error = _SAFETY_OF_MARGINS * float(np.abs(quick(rows) - exact(rows)).max(initial=0.0))
        expansion, _ = self.scanned_with
        return np.intersect1d(self.stream.order, np.union1d(expansion.ids, self.loss_sum.with_loss(error)))

    def _measured(self) -> tuple[NDArray[np.int64], _Scorer, _Scorer]:
        """Return the examples that tell the error of all scores, and their scores in single and double precision."""
        assert self.scanned_with is not None  # the objectives were computed by a scan
        expansion, coefficients = self.scanned_with
        X, exact = self.stream.examples.X, self.machine.exact_scores(expansion, coefficients)
        return (
            rounding.examples_to_measure(expansion.ids, coefficients, len(self.stream.examples)),
            lambda rows: self.machine.scores(rows_of(X, rows), expansion, coefficients),
            lambda rows: exact(rows_of(X, rows)),
        )

    def _is_wrong(self, found: Objectives) -> bool:
        """Whether objectives in single precision are off by more than is allowed."""
        assert self.scanned_with is not None  # the objectives were computed by a scan
        _, coefficients = self.scanned_with
        rows, quick, exact = self._measured()
        return rounding.is_too_large(
            rows,
            quick,
            exact,
            coefficients,
            float(self.stream.examples.costs.sum()) if self.loss_sum is None else self.loss_sum.costs,
            found.primal,
            self.settings.tol,
        )

    def _sample(self) -> NDArray[np.intp] | None:
        """The examples for a certificate that costs little; None for all."""
        order, count = self.stream.order, self._sample_size()
        if count >= len(order):
            return None
        strata = self._strata()[order]
        random = np.random.RandomState(self.seed_of_orders)
        drawn: list[NDArray[np.intp]] = []
        for stratum in reversed(range(_STRATA)):  # half of what is left for each, the last takes all of it
            among = order[strata == stratum]
            left = count - sum(map(len, drawn))
            drawn.append(random.choice(among, min(len(among), left // 2 if stratum else left), replace=False))
        return np.sort(np.concatenate(drawn))

    def _strata(self) -> NDArray[np.intp]:
        """0 for examples without coefficients, 1 for support patterns, 2 for those with a coefficient at its bound."""
        expansion = self.algorithm.expansion(self.session)
        largest = np.abs(expansion.dense).max(axis=1, initial=0.0)
        found = np.zeros(len(self.stream.examples), np.intp)
        found[expansion.ids] = 1 + (largest >= _AT_BOUND * expansion.costs)
        return found

    def _sample_size(self) -> int:
        """By what does not depend on blocks and threads, so that it is the same everywhere."""
        settings, everything = self.settings, len(self.stream.order)
        is_asked_for = settings.certify == "auto" and not settings.stops_at_gap and math.isfinite(settings.C)
        has_kernel_values = bool(self.machine.kernel_values)  # machines of weights have none
        if not (is_asked_for and self.algorithm.takes_samples and has_kernel_values):
            return everything
        patterns = max(1, self.session.support_patterns)
        # While patterns came, visits had half as many kernel values as there are patterns now.
        count = int(max(_LEAST_SAMPLE, _CHEAP_CERTIFICATE / patterns, _SHARE_OF_CERTIFICATE * self.visited / 2))
        return everything if everything <= _WORTH_SAMPLING * count else count

    def losses(self) -> LossSum:
        """To be filled with those of the examples that are scanned."""
        rows = self.stream.order if self.sample is not None or self.scanned_rows is None else self.scanned_rows
        self.loss_sum = LossSum(self._strata(), rows, self.stream.examples.costs)
        return self.loss_sum

    def certificate_seconds(self) -> float:
        """By a trial on some examples."""
        return self.trial.seconds(self._score_some, self.session.support_patterns, self._sample_size())

    def _score_some(self) -> int:
        self.feed.flush()
        expansion = self.algorithm.expansion(self.session)
        block, _, _ = next(self.scanned(expansion, expansion.dense))
        return len(block)

    def scanned(
        self, expansion: Expansion, coefficients: _Float, sample: NDArray[np.intp] | None = None
    ) -> Iterator[tuple[Examples, _Float, _Float]]:
        """All examples or a sample, some at a time, with scores by these coefficients and their own coefficients."""
        of_id = np.full(int(self.stream.examples.ids.max()) + 1, -1)
        of_id[expansion.ids] = np.arange(len(expansion.ids))
        self.scanned_with = expansion, coefficients
        if self.is_in_double:
            at_once, scored = _ROWS_IN_DOUBLE, self.machine.exact_scores(expansion, coefficients)
        else:
            at_once = int(min(ROWS_AT_ONCE, self._rows_at_once()))
            scored = partial(self.machine.scores, expansion=expansion, coefficients=coefficients)
        for block in self.stream.blocks(self.stream.order if sample is None else sample, lambda: at_once):
            scores = scored(block.X)
            own = np.zeros_like(scores)
            rows = np.flatnonzero(of_id[block.ids] >= 0)
            own[rows] = coefficients[of_id[block.ids[rows]]]
            yield block, scores, own

    def iterations(self) -> float:
        """Passes over the data so far."""
        return self.visited / max(1, len(self.stream.order))

    def details(self) -> Mapping[str, Any]:
        """Further fields of the checkpoint."""
        self._validate()
        error, self.error = self.error, None
        return {
            "kernel_values": self.machine.kernel_values,
            "support_patterns": self.session.support_patterns,
            "error": error,
            **self.algorithm.details(self.session),
        }

    def _validate(self) -> None:
        if self.held_out is None or (self.visited < self.next_validation and self.visited % max(1, self.size)):
            return
        self.next_validation = self.visited + max(1, self.size // _VALIDATIONS)
        self.feed.flush()
        self.algorithm.before_validation(self)
        X, y = self.held_out
        expansion = self.algorithm.expansion(self.session)
        scores = self.machine.scores(X, expansion, expansion.dense)
        scores = self.machine.model_scores(X, scores) + expansion.intercepts
        best = scores.argmax(axis=1) if scores.shape[1] > 1 else scores[:, 0] > 0
        self.error = float(np.mean(self.algorithm.model._arrived[best.astype(np.intp)] != y))

    def result(self, outcome: Outcome) -> Result:
        """The certificate, once the model is kept."""
        algorithm, session = self.algorithm, self.session
        return Result.of(
            outcome,
            solver=algorithm.solver,
            iterations=self.iterations(),
            support_patterns=len(algorithm.model.support_),
            support_vectors=algorithm.model._coefficients.nnz,
            kernel_values=self.machine.kernel_values,
            argmax_calls=algorithm.argmax_calls(session),
            operations=algorithm.operations(session),
            breakdown={**self.machine.seconds, **algorithm.seconds(session)},
        )
