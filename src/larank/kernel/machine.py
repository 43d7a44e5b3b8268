"""What the online kernel machines share: a stream in epochs or in calls, fed to a compiled session block by block.

`OnlineClassifier` checks the data, numbers the labels in the order in which they arrive, and goes on with a session
from one call of `partial_fit` to the next. `OnlineTraining` is such a session as the training loop sees it. A solver
adds its compiled session, its objectives from scratch, and what it keeps of the session as the model.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import check_random_state

from larank import _core, parameters
from larank.blocks import Provider, check_gram, provider_for
from larank.kernel.classifier import KernelClassifier
from larank.kernel.selecting import SelectingFeed
from larank.kernel.selection import Strategy, strategy_named
from larank.kernel.stream import Examples, Feed, KernelFeed, Stream
from larank.training import Limits, ObjectiveValues, Outcome, train, unchanged_on_failure
from larank.training.progress import progress_for
from larank.training.result import Result

__all__ = ["OnlineClassifier", "OnlineTraining", "Running"]

STOPS = ("epochs", "gap")

_SHARE_OF_BLOCKS = 0.25  # of the memory limit
_HISTORY_POINTS = 300  # of an epoch at most,
_FEW_POINTS = 20  # these at least,
_EXAMPLES_BETWEEN = 64  # and between them so many examples: a look costs as much as some of them
_VALIDATIONS = 20  # of an epoch


class OnlineClassifier(KernelClassifier, ABC):
    """A kernel machine trained on a stream of examples; subclasses are its solvers."""

    # Parameters that the solvers have, or these values where they do not.
    epochs: int
    stop: str = "epochs"
    tol: float | None = None
    max_iter: int  # where `stop` can be "gap"
    time_limit: float | None
    shuffle: bool
    certify: bool = False
    selection: str | Strategy = "random"
    sample_size: int | None = None
    label_budget: int | None = None
    memory_limit: float
    batch_size: int
    random_state: int | np.random.RandomState | None
    verbose: int

    # The session of a stream cannot change these on the way.
    _FIXED_IN_A_STREAM: ClassVar[tuple[str, ...]] = ("kernel", "gamma", "degree", "coef0", "memory_limit")
    _TITLE: ClassVar[str]
    # What a fit before may have left behind and this one need not make again.
    _FORGOTTEN: ClassVar[tuple[str, ...]] = ("gamma_", "coef_", "support_vectors_", "_running", "_began_with")

    _arrived: NDArray[Any]  # labels in the order of their arrival
    _seen: int  # examples of the stream

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
        object
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

        for name in self._FORGOTTEN:
            self.__dict__.pop(name, None)
        self.classes_ = classes
        self._arrived = np.empty(0, classes.dtype)
        self._seen = len(y)
        order = orders.permutation(len(y)) if self.shuffle else np.arange(len(y))
        order = order[costs[order] > 0]
        labels = self._labels(y, order)
        running = self._begin(X, seed)
        stream = Stream(X, np.arange(len(y)), labels, costs, order, orders if self.shuffle else None, orders)
        training = self._training(running, stream, held_out, epochs=self.epochs, is_whole=True)
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
        object
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
        if strategy_named(self.selection, self.sample_size).needs_scores or self.label_budget is not None:
            raise ValueError(
                "selection and label_budget act in fit only: partial_fit takes every example it is given, in their "
                "order; larank.ActiveLearner chooses among examples without labels"
            )
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
        training = self._training(running, stream, None, epochs=1, is_whole=False)
        limits = Limits(None, math.inf, self.time_limit, passes=1, certify=False)
        running.is_ahead = True  # of the model, if something fails from here on
        outcome = self._train(training, limits, f"{len(y)} examples, {len(self.classes_)} classes")
        self._keep_model(running)
        self.result_ = training.result(outcome)
        self.n_iter_ = 1
        running.is_ahead = False
        return outcome

    def _check_parameters(self) -> None:
        """Raise where a parameter cannot be what it is; subclasses check their own as well."""
        parameters.one_of("stop", self.stop, STOPS)
        for name in ("C", "memory_limit"):
            parameters.positive(name, getattr(self, name))
        for name in ("tol", "time_limit"):
            if getattr(self, name) is not None:
                parameters.positive(name, getattr(self, name))
        for name in ("epochs", "max_iter", "batch_size"):
            if hasattr(self, name):
                parameters.whole_number(name, getattr(self, name), at_least=1)
        for name in ("shuffle", "certify"):
            parameters.flag(name, getattr(self, name))
        parameters.verbosity(self.verbose)
        parameters.jobs(self.n_jobs)
        strategy_named(self.selection, self.sample_size)
        if self.label_budget is not None:
            parameters.whole_number("label_budget", self.label_budget, at_least=1)
            if self.epochs != 1 or self.stop == "gap":
                raise ValueError("label_budget acts with stop='epochs' and epochs=1 only: more passes see all labels")
        parameters.stopping(stop=self.stop, epochs=self.epochs, tol=self.tol, certify=self.certify)

    def _check_unchanged(self, first: bool) -> None:
        """The session of a stream cannot change some parameters on the way."""
        now = {name: getattr(self, name) for name in self._FIXED_IN_A_STREAM}
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
            what = f"{len(validation)} of them" if isinstance(validation, tuple) else type(validation).__name__
            raise ValueError(f"validation must be a pair (X, y), got {what}") from None
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

    def _columns(self) -> NDArray[np.intp]:
        """Where in `classes_` the labels are, in the order of their arrival."""
        return np.searchsorted(self.classes_, self._arrived)

    def _begin(self, X: Any, seed: int) -> Running:
        """A session that has seen nothing."""
        kernel = self._resolved_kernel(X)
        if hasattr(kernel, "gamma"):
            self.gamma_ = float(kernel.gamma)
        blocks = provider_for(kernel, X, n_jobs=self._threads())
        return Running(self._session(blocks, seed), blocks)

    @abstractmethod
    def _session(self, blocks: Provider, seed: int) -> Any:
        """The solver's compiled session, in the precision of the blocks."""

    def _going_on(self, X: Any, first: bool) -> Running:
        """The session of the calls before, rebuilt from the model if it is not there any more."""
        if first:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            self._arrived, self._seen = np.empty(0, object), 0
            self._running = self._begin(X, seed)
        elif not hasattr(self, "_running") or self._running.is_ahead:
            self._running = self._restored(X)
        return self._running

    def _restored(self, X: Any) -> Running:
        if self.kernel == "precomputed":
            raise ValueError(
                "partial_fit cannot go on: with kernel='precomputed' a model that was fitted, loaded or copied has no "
                "kernel values between its support patterns; use partial_fit from the start"
            )
        running = self._begin(X, 0)
        self._restore(running)
        return running

    @abstractmethod
    def _restore(self, running: Running) -> None:
        """Let a fresh session take over the model."""

    @abstractmethod
    def _training(
        self,
        running: Running,
        stream: Stream,
        held_out: tuple[Any, NDArray[Any]] | None,
        *,
        epochs: int,
        is_whole: bool,
    ) -> OnlineTraining:
        """The session on this stream, as the training loop sees it."""

    @abstractmethod
    def _keep_model(self, running: Running) -> None:
        """Set the fitted attributes from the session."""

    def _train(self, training: OnlineTraining, limits: Limits, about: str) -> Outcome:
        kernel = self.kernel if isinstance(self.kernel, str) else "callable kernel"
        with progress_for(self.verbose) as progress, training:
            progress.start(f"{self._TITLE}, {kernel}, {about}{training.running.plan(self.memory_limit)}")
            return train(training, limits, progress)


class Running:
    """A compiled session and the provider of its blocks."""

    def __init__(self, session: Any, blocks: Provider) -> None:
        self.session, self.blocks = session, blocks
        self.is_ahead = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the kernel values."""
        dtype: np.dtype[Any] = np.dtype(self.session.dtype)
        return dtype

    def feed(self, stream: Iterator[Examples]) -> Feed:
        """Work on a stretch of the stream."""
        return KernelFeed(self.session, self.blocks, stream)

    def restore(
        self,
        model: OnlineClassifier,
        labels: NDArray[Any],
        costs: NDArray[np.float64],
        coefficients: csr_matrix,
    ) -> None:
        """Let the session take over the support patterns of a model, with these coefficients."""
        diagonal = self._adopted(model)
        table = _core.SupportTable(
            ids=np.ascontiguousarray(model.support_, np.int64),
            labels=np.ascontiguousarray(labels, np.int32),
            costs=np.ascontiguousarray(costs, np.float64),
            diagonal=diagonal,
            coefficients=np.ascontiguousarray(coefficients.data, np.float64),
            columns=np.ascontiguousarray(coefficients.indices, np.int32),
            starts=np.ascontiguousarray(coefficients.indptr, np.int64),
        )
        self._take_over(table)

    def _adopted(self, model: OnlineClassifier) -> NDArray[np.float64]:
        """Store the support patterns of a model in the first slots; their k(x, x)."""
        slots = np.arange(len(model.support_))
        batch = self.blocks.batch(model.support_vectors_, model.support_)
        self.blocks.store(slots, batch, slots)
        return self.blocks.diagonal(batch)

    def _take_over(self, table: _core.SupportTable) -> None:
        self.session.restore(table, self.blocks)

    def block_values(self, memory_limit: float) -> float:
        """How many kernel values of blocks there is memory for."""
        return memory_limit * _SHARE_OF_BLOCKS / self.dtype.itemsize

    def plan(self, memory_limit: float) -> str:
        """What the memory is for, in words."""
        patterns = int(math.sqrt(memory_limit / (2 * self.dtype.itemsize)))
        return (
            f", memory limit {memory_limit / 1e6:.0f} MB: all kernel values between about {patterns} support "
            f"patterns, then those used last"
        )

    def check_memory(self, limit: float) -> None:
        """Raise where the session cannot stay within the limit by itself."""


class OnlineTraining(ABC):
    """An online solver as the training loop sees it: epochs over a stream, a block at a time."""

    SOLVER: ClassVar[str]

    def __init__(
        self,
        model: OnlineClassifier,
        running: Running,
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
        self.strategy = strategy_named(model.selection, model.sample_size)
        self.size = min(len(stream.order), model.label_budget or len(stream.order))  # of an epoch
        self.stretch = max(1, self.size // _HISTORY_POINTS, min(_EXAMPLES_BETWEEN, self.size // _FEW_POINTS))
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
        """Keep the threads of the provider."""
        self._threads = self._provider_threads()
        if self._threads is not None:
            self._threads.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        """Leave the session where a model can be taken from it."""
        try:
            if details[0] is not None:
                self.feed.wait()
                return
            self._finish()
            self.feed.close()
        finally:
            if self._threads is not None:
                self._threads.__exit__(*details)

    def _provider_threads(self) -> Any:
        return self.running.blocks.threads()

    def advance(self) -> bool:
        """Work on the next few examples; True once all epochs are over."""
        if self.epoch_is_over:
            self._begin_epoch()
        worked = self.feed.advance(self.stretch)
        self.running.check_memory(self.model.memory_limit)
        self.visited += worked
        self.visited_in_epoch += worked
        if self.visited_in_epoch < self.size:
            return False
        self.epoch += 1
        if self.model.stop == "epochs" and self.epoch >= self.epochs:
            self._finish()
            return True
        self.epoch_is_over = True
        return False

    def _finish(self) -> None:
        """Bring the session to where a model can be taken from it."""
        if self.model.stop == "epochs":
            self.feed.finish()

    def _begin_epoch(self) -> None:
        self.feed.close()
        self.loss_before = self._loss_of_epoch()
        self.session.begin_another_epoch()
        self.visited_in_epoch = 0
        self.epoch_is_over = False
        self.feed = self._feed(self.stream.next_order())

    def _loss_of_epoch(self) -> float:
        """Of all examples, each as it was when it came."""
        loss: float = self.session.loss
        return loss

    def _feed(self, order: NDArray[np.intp]) -> Feed:
        if not self.strategy.needs_scores:
            return self.running.feed(self.stream.blocks(order[: self.size], self._batch_size))
        draws, blocks = self.stream.draws, self.running.blocks
        assert draws is not None
        return SelectingFeed(self.session, blocks, self.stream, order, self.strategy, draws, self.size)

    def _batch_size(self) -> int:
        """As asked for, or less where the kernel values of two blocks would take too much of the memory."""
        values = self.running.block_values(self.model.memory_limit)
        slots = self.session.slots
        size = (math.sqrt(slots * slots + 4 * values) - slots) / 4  # 2 size (slots + 2 size) = values
        return min(self.model.batch_size, max(1, int(min(size, 2**31))))

    def estimate(self) -> ObjectiveValues | None:
        """The objectives as they were seen on the way."""
        if self.visited < self.next_estimate and self.visited % self.size:
            return None
        self.next_estimate = self.visited + self.stretch
        return self._estimated(1 - self.visited_in_epoch / self.size)

    def _estimated(self, left: float) -> ObjectiveValues:
        """The objectives with so much of the epoch left."""
        loss = self.session.loss
        if self.is_whole:
            # Examples not visited yet count as in the epoch before; in the first one, as those visited.
            loss += left * (self.loss_before if self.epoch else loss / (1 - left))
        dual = self.session.dual
        # No primal objective is below the dual, whatever was seen on the way.
        return ObjectiveValues(max(dual, self.session.half_squared_norm + loss), dual, math.nan)

    @abstractmethod
    def evaluate(self) -> ObjectiveValues:
        """The objectives from scratch."""

    @abstractmethod
    def _predicted(self, X: Any) -> NDArray[Any]:
        """Labels that the model as it is now gives to other examples."""

    def iterations(self) -> float:
        """Passes over the data so far."""
        return self.visited / len(self.stream.order)

    def details(self) -> Mapping[str, Any]:
        """Further fields of the checkpoint."""
        self._validate()
        error, self.error = self.error, None
        return {
            "kernel_values": self._kernel_values(),
            "support_patterns": self.session.support_patterns,
            "error": error,
        }

    def _validate(self) -> None:
        if self.held_out is None or (self.visited < self.next_validation and self.visited % self.size):
            return
        self.next_validation = self.visited + max(1, self.size // _VALIDATIONS)
        self.feed.flush()
        X, y = self.held_out
        self.error = float(np.mean(self._predicted(X) != y))

    def _kernel_values(self) -> int:
        return self.running.blocks.kernel_values

    @abstractmethod
    def _operations(self) -> dict[str, int]:
        """How often each operation was performed."""

    def _breakdown(self) -> dict[str, float]:
        """Seconds of the kinds of work."""
        return dict(self.running.blocks.seconds)

    def _argmax_calls(self) -> int:
        return 0

    def result(self, outcome: Outcome) -> Result:
        """The certificate, once the model is kept."""
        at = outcome.objectives
        return Result(
            solver=self.SOLVER,
            status=outcome.status,
            primal=at.primal,
            dual=at.dual,
            violation=at.violation,
            iterations=self.iterations(),
            seconds=outcome.seconds,
            support_patterns=len(self.model.support_),
            support_vectors=self.model.dual_coef_.nnz,
            kernel_values=self._kernel_values(),
            argmax_calls=self._argmax_calls(),
            operations=self._operations(),
            history=outcome.history,
            exact=outcome.exact,
            breakdown={**self._breakdown(), "certificate": outcome.certificate_seconds},
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
