"""Linear models by stochastic gradient descent: averaged SGD, SGD, SVMSGD2, oLBFGS and SGD-QN (thesis, chapter 3)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from scipy.special import expit, softmax
from sklearn.utils import check_random_state

from larank import declare, parameters
from larank._core import MemoryLimitError
from larank.base import available_unless, functions, of_streams
from larank.costs import check_two_classes, example_costs
from larank.data.models import persistable
from larank.data.schema import (
    Scope,
    anything,
    flag,
    floats,
    integers,
    labels,
    mapping,
    nullable,
    number,
    record,
    text,
)
from larank.data.stream import (
    ExampleBlock,
    ExampleFile,
    arriving_blocks,
    brings_labels,
    can_be_read_again,
    check_no_weights,
)
from larank.declare import LARGEST_COUNT, Declared, ParameterError, fitted, parameter
from larank.docstrings import with_paragraphs
from larank.linear.gradientmachine import GradientMachine, GradientProblem, LabelledRows, Start, bytes_of_machine
from larank.linear.gradienttraining import GradientTraining, Part, Plan
from larank.linear.labels import StreamLabels
from larank.linear.model import FITTED_LINEARLY, LinearClassifier
from larank.parameters import Passes, Seeded, Weighted
from larank.publishing import next_model, of_one_model
from larank.training import Limits, Looks, Outcome, check_arrived, train, warn_if_early
from larank.training.progress import progress_for
from larank.training.result import Result
from larank.validation import Anonymous, advised, classes_of, held_out_examples, validated

_VISITS = 1_000_000  # visits of examples in a fit without max_iter, if the data are small
_WORK = 1_000_000_000  # multiply-adds of such a fit
_PASSES = (5, 1000)  # fewest and most passes of such a fit
_LOOKS = 50  # most computations of the objective in one fit
_BUFFER_BYTES = 32e6  # of a file, where the memory limit allows it
_BUFFER_BYTES_OF_BLOCKS = 4e6  # that blocks of the user's own are joined to: they may come slowly
_BUFFERS = 4  # in memory at a time: one in training, one waiting, one being read, and parts of it
_IsCut = Callable[[], bool]  # returns whether a limit has cut the stream
_FIXED = ("algorithm", "loss", "formulation", "alpha", "fit_intercept", "t0")  # what a stream cannot change


def _why_no_probabilities(model: LinearSGDClassifier) -> str:
    loss = getattr(model, "_began_with", {}).get("loss", model.loss)  # of the model, whatever was set since
    if loss == "log_loss":
        return ""
    return (
        f"with loss={loss!r}, whose scores are not probabilities. Set loss='log_loss' and train again, or use "
        "sklearn.calibration.CalibratedClassifierCV"
    )


def _n_rows(scope: Scope) -> int:
    """Of the tables of a session, the last that of the intercept."""
    return scope.sizes["n_features_in_"] + int(scope.known["_began_with"]["fit_intercept"])


def _check_state(name: str, value: Any, scope: Scope) -> None:
    """The tables and vectors that every algorithm has, and those of its own."""
    table = floats(_n_rows, functions, single=True)
    known = {
        "weights": table,
        "born": floats(functions),
        "counts": floats(5),
        "random": integers(1, below=2**64, dtype="uint64"),
        "skip": integers(1, least=1),
    }
    mapping(text, anything)(name, value, scope)
    others = {
        each: floats(_n_rows, functions, single=True) if np.ndim(value[each]) == 2 else floats(each) for each in value
    }
    record(**{**others, **known})(name, value, scope)


class _Buffered(Declared, position=4):
    """Memory of a stream."""

    memory_limit: float = parameter(
        "Maximum memory in bytes for the model and the buffers of a stream. Arrays are used as they are and do not "
        "count.",
        default=2e9,
        above=0,
        most=LARGEST_COUNT,
    )


@persistable(
    **FITTED_LINEARLY,
    t0_=number(above=0),
    _arrived=labels("n_classes", among="classes_"),
    _announced=flag,
    _began_with=record(
        algorithm=text, loss=text, formulation=text, alpha=number(), fit_intercept=flag, t0=nullable(number())
    ),
    _state=_check_state,
)
@with_paragraphs
class LinearSGDClassifier(Weighted, Passes, _Buffered, Seeded, LinearClassifier):
    """Linear classifier trained by stochastic gradient descent, in memory or on a stream.

    It minimises ``alpha/2 |W|^2`` plus the mean loss, and needs a few numbers per feature and class however many
    examples there are. The step length is chosen on a sample. `fit` and `partial_fit` take arrays, sparse matrices,
    files larger than memory, and iterables of blocks.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) with two classes
        The weights. With two classes, those for the second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        The weights of the constant feature.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    t0_ : float
        The value used for `t0`.
    n_iter_ : int
        The passes over the data, rounded up.
    [result_]

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, chapter 3.

    Examples
    --------
    >>> from larank import LinearSGDClassifier
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> model = LinearSGDClassifier(random_state=0).fit(letter.X_train / 15, letter.y_train)
    >>> bool(model.score(letter.X_test / 15, letter.y_test) > 0.7)
    True
    """

    loss: Literal["hinge", "squared_hinge", "smoothed_hinge", "log_loss", "modified_huber"] = parameter(
        "Loss of an example with margin ``z``, with the names of `sklearn.linear_model.SGDClassifier`. "
        '"smoothed_hinge" is ``(1 - z)^2 / 2`` for ``z`` between 0 and 1 and continues as a straight line below 0. '
        '"log_loss" gives probabilities.',
        default="hinge",
        kw_only=False,
    )
    algorithm: Literal["asgd", "sgdqn", "svmsgd2", "sgd", "olbfgs"] = parameter(
        '"asgd" is averaged SGD with steps that even out the scales of the features. The others are algorithms of the '
        'thesis, for comparison: "sgdqn" has a diagonal estimate of the curvature, "svmsgd2" applies the '
        'regularisation only now and then, "sgd" is plain SGD, which is slow on sparse data, and "olbfgs" is online '
        "L-BFGS of rank ten, which is slow on all data.",
        default="asgd",
    )
    formulation: Literal["joint", "one-vs-rest"] = parameter(
        'How three or more classes are learned. "joint" is a multiclass loss: the margin is the score of the label '
        'minus the best score of another class (Crammer-Singer), and "log_loss" is the multinomial log loss. '
        '"one-vs-rest" trains one independent binary problem per class. With two classes both are the binary loss.',
        default="joint",
    )
    alpha: float = parameter(
        "Regularisation strength: the weight of ``1/2 |W|^2`` against the mean loss. Larger values give smaller "
        "weights. A problem with a cost per example has the same solution with ``C = 1 / (alpha * n_samples)``.",
        default=0.0001,
        above=0,
    )
    t0: float | None = parameter(
        "Controls the length of the first step, ``1 / (alpha * t0)``. By default `fit`, or the first call of "
        "`partial_fit`, tries several values on a sample and takes the one with the lowest objective. With a given "
        "value, steps do not even out the scales of the features.",
        default=None,
        above=0,
    )
    fit_intercept: bool = parameter(
        "Whether to add a constant feature. Its weights are regularised like the others.", default=True
    )
    early_stopping: bool = parameter(
        "Whether `fit` stops when the error on held-out examples has not decreased for 5 passes. The held-out "
        "examples are the argument `validation` of `fit`, or else a random tenth of the examples.",
        default=False,
    )
    warm_start: bool = parameter(
        "Whether `fit` starts from the weights of the previous fit, which must have had the same classes and features.",
        default=False,
    )
    shuffle: bool = parameter(
        "Whether `fit` visits the examples in random order. The examples of a stream are shuffled within a buffer. "
        "Arrays given to `partial_fit` are visited in their own order.",
        default=True,
    )
    class_weight: Mapping[Any, float] | str | None = parameter(
        'Factors on the loss of the examples of each class. "balanced" makes them inversely proportional to the class '
        'frequencies. With "one-vs-rest" and more than two classes, the factor of a class acts only in the binary '
        "problem of that class, as in `sklearn.linear_model.SGDClassifier`. By default all are 1.",
        default=None,
        check=parameters.class_weights,
        choices=("balanced",),
        form="dict",
    )
    max_iter: int | None = parameter(
        "Number of passes over the data. By default 5 to 1000 passes, which are about one million visits of examples, "
        "and one pass over a stream.",
        default=None,
        least=1,
    )

    _HELD_OUT: ClassVar[float] = 0.1  # fraction of the examples that early_stopping holds out
    _PATIENCE: ClassVar[int] = 5  # passes without a smaller error after which early_stopping ends training

    n_features_in_: int = fitted()

    @with_paragraphs
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        validation: tuple[Any, ArrayLike] | None = None,
        certify: bool | Literal["auto"] = "auto",
    ) -> Self:
        """Train on `X` and `y`, or on a stream.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), path, `ExampleFile` or iterable of blocks
            The examples; float32 and float64 arrays in C order and CSR matrices are used as they are. Without `y` a
            file in svmlight or CSV format, which may be larger than memory, or an iterable of blocks ``(X, y)`` or
            ``(X, y, sample_weight)``. More than one pass over an iterable needs one that can be iterated again.
        y : array of shape (n_samples,), optional
            The labels: integers, strings, booleans. None where `X` is a stream.
        sample_weight : array of shape (n_samples,), optional
            Factors on the loss per example, not negative. The blocks of a stream bring their own.
        validation : (X, y), optional
            Held-out examples. Their error is computed after each pass and stored in the history.
        certify : bool or "auto", default="auto"
            Whether to compute the objective after each pass, at most fifty times, and a lower bound at the end. If
            False, and on streams, `result_` holds an estimate made during training. "auto" means True.

        [fitted]
        """
        parameters.certify(certify)
        with next_model(self) as model:
            declare.check(model)
            if brings_labels(X, y):
                model._check_takes_streams()
                check_no_weights(sample_weight)
                outcome = model._fit_stream(X, validation, bool(certify))
            else:
                outcome = model._fit_rows(X, y, sample_weight, validation, bool(certify))
        self._warn_if_early(outcome)
        return self

    @of_streams
    @with_paragraphs
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on training with new examples: one pass, in the order in which they come.

        With `t0` given, calls with parts of a stream make the same model as one call with all of it, if the first part
        is as sparse as the rest. There is no certificate from scratch: `result_` holds an estimate.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), path, `ExampleFile` or iterable of blocks
            As for `fit`. The examples of a file or of blocks are shuffled within a buffer, if `shuffle` says so.
        y : array of shape (n_samples,), optional
            The labels; those never seen before are new classes. None where `X` is a stream.
        classes : array, optional
            All labels that may come, so that each takes part from the start; other labels are then an error, in this
            call and in later ones.
        sample_weight : array of shape (n_samples,), optional
            As for `fit`.

        [fitted]
        """
        with next_model(self) as model:
            declare.check(model)
            is_stream = brings_labels(X, y)
            if is_stream:
                check_no_weights(sample_weight)
            outcome = model._go_on(X if is_stream else [(X, y, sample_weight)], classes, is_stream)
        self._warn_if_early(outcome)
        return self

    @available_unless(_why_no_probabilities)
    @of_one_model
    def predict_proba(self, X: Any) -> NDArray[np.floating[Any]]:
        """Probabilities of the classes, with ``loss="log_loss"``.

        They are those of the model where it is one of probabilities: the logistic or multinomial one. With
        ``formulation="one-vs-rest"`` and three or more classes, those of the binary models are divided by their sum.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The examples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        scores = self.decision_function(X).astype(np.float64)
        if scores.ndim == 1:
            positive = expit(scores)
            return np.column_stack([1 - positive, positive])
        if self._began_with["formulation"] == "joint":
            return np.asarray(softmax(scores, axis=1), np.float64)
        each = expit(scores)
        total = each.sum(axis=1, keepdims=True)
        shares: NDArray[np.float64] = np.where(total > 0, each / np.where(total > 0, total, 1), 1 / each.shape[1])
        return shares

    @available_unless(_why_no_probabilities)
    @of_one_model
    def predict_log_proba(self, X: Any) -> NDArray[np.floating[Any]]:
        """The logarithms of `predict_proba`; same argument."""
        with np.errstate(divide="ignore"):
            logarithms: NDArray[np.float64] = np.log(self.predict_proba(X))
        return logarithms

    def _decisions(self, X: Any) -> NDArray[np.floating[Any]]:
        scores = super()._decisions(X)
        return scores[:, :1] * 0 if len(self.classes_) == 1 else scores

    def _why_no_stream(self) -> str:
        if reason := super()._why_no_stream():
            return reason
        if self.early_stopping:
            return "with early_stopping=True, because it makes one pass; early_stopping must be False"
        return ""

    # ---- Training in memory ----

    def _fit_rows(self, X: Any, y: Any, sample_weight: ArrayLike | None, validation: Any, certify: bool) -> Outcome:
        X, y = validated(self, X, y, reset=True)
        classes = classes_of(y)
        costs, rest_costs = self._costs(X, y, classes, sample_weight, self.class_weight)
        rest_costs = costs if len(classes) == 2 else rest_costs
        counts = np.maximum(costs, rest_costs)
        check_two_classes(y, counts)
        self._check_memory(len(classes), X)
        rows = LabelledRows(X, np.searchsorted(classes, y).astype(np.int32), costs, rest_costs)
        if not counts.all():
            rows = rows.at(np.flatnonzero(counts))
        seeds = check_random_state(self.random_state)
        seed = int(seeds.randint(2**31 - 1))
        held_out = None
        if validation is not None:
            held_out = held_out_examples(validation, partial(validated, self, reset=False), classes)
        if self.early_stopping and held_out is None:
            rows, held_out = self._split(rows, classes, seeds)
        labels = StreamLabels(classes)
        plan = Plan(
            GradientProblem.of(self),
            partial(_one_part, rows, len(classes)),
            self._passes_over(len(rows), int(rows.X.nnz if issparse(rows.X) else rows.X.size)),
            shuffled=bool(self.shuffle),
            seed=seed,
            certify=certify,
            t0=self.t0,
            weights=self._weights_before(classes, X),
            held=rows if certify else None,
            error=None if held_out is None else partial(_error, *held_out, labels),
            patience=self._PATIENCE if self.early_stopping else math.inf,
        )
        outcome = self._train(GradientTraining(plan), labels, f"{len(rows)} examples, {len(classes)} classes")
        return advised(outcome, rows.X, self)

    def _passes_over(self, n_rows: int, n_values: int) -> int:
        if self.max_iter is not None:
            return self.max_iter
        least, most = _PASSES
        return max(least, min(most, round(_VISITS / n_rows), round(_WORK / max(1, n_values))))

    def _weights_before(self, classes: NDArray[Any], X: Any) -> NDArray[Any] | None:
        """Those of the fit before, [feature][function]."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        if not np.array_equal(classes, self.classes_) or X.shape[1] != self.coef_.shape[1]:
            raise ValueError(
                f"warm_start needs the classes and features of the fit before, {len(self.classes_)} and "
                f"{self.coef_.shape[1]}; got {len(classes)} and {X.shape[1]}, or other labels"
            )
        weights = self.coef_.T
        return np.vstack([weights, self.intercept_]) if self.fit_intercept else weights

    def _split(
        self, rows: LabelledRows, classes: NDArray[Any], seeds: np.random.RandomState
    ) -> tuple[LabelledRows, tuple[Any, NDArray[Any]]]:
        try:
            from sklearn.model_selection import train_test_split  # slow to import, and seldom needed

            kept, held_out = train_test_split(
                np.arange(len(rows)),
                test_size=self._HELD_OUT,
                stratify=rows.labels,
                random_state=seeds.randint(2**31 - 1),
            )
        except ValueError as error:
            raise ValueError(
                f"early_stopping cannot hold out a tenth of {len(rows)} examples: {error}. Give fit a validation set"
            ) from None
        return rows.at(np.sort(kept)), (rows.X[held_out], classes[rows.labels[held_out]])

    # ---- Training on a stream ----

    def _fit_stream(self, source: Any, validation: Any, certify: bool) -> Outcome:
        if self.warm_start:
            raise ParameterError(
                "warm_start", "must be False with a stream; got True. Continue with partial_fit instead"
            )
        if self.early_stopping and validation is None:
            raise ParameterError("early_stopping", "needs validation=(X, y) if X is a stream; got none")
        passes = 1 if self.max_iter is None else self.max_iter
        if passes > 1 and not can_be_read_again(source):
            raise ValueError(
                f"max_iter={passes} needs a stream that can be read again, such as a file or a list of blocks; got a "
                f"{type(source).__name__}"
            )
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        labels = StreamLabels()
        held_out = None
        if validation is not None:
            held_out = held_out_examples(validation, partial(validated, Anonymous(), reset=True), None)
        plan = Plan(
            GradientProblem.of(self),
            partial(self._parts, source, labels),
            passes,
            shuffled=bool(self.shuffle),
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            certify=certify,
            t0=self.t0,
            error=None if held_out is None else partial(_error, *held_out, labels),
            patience=self._PATIENCE if self.early_stopping else math.inf,
        )
        outcome = self._train(GradientTraining(plan), labels, "a stream")
        check_arrived(labels.listed(), 2, outcome.status, self.time_limit)
        if len(labels) < 2:
            raise ValueError(f"the stream must hold at least two classes, got one: {labels.arrived[0].item()!r}")
        return outcome

    def _go_on(self, source: Any, classes: ArrayLike | None, is_stream: bool) -> Outcome:
        first = not hasattr(self, "coef_")
        if not first:
            parameters.check_unchanged(self._began_with, declare.values_of(self))
        problem = GradientProblem.of(self)
        labels = StreamLabels() if first else StreamLabels(self._arrived, self._announced)
        labels.announce(classes)
        machine = None
        if not first:
            state = dict(self._state)
            start = Start(self.t0_, int(state.pop("skip")[0]))
            machine = GradientMachine.from_state(problem, len(self._arrived), start, state)
        plan = Plan(
            problem,
            partial(self._parts, source, labels) if is_stream else partial(self._part, source[0], labels),
            1,
            shuffled=bool(self.shuffle) and is_stream,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)) if first else 0,
            certify=True,
            t0=self.t0,
        )
        return self._train(GradientTraining(plan, machine), labels, "a stream")

    def _parts(self, source: Any, labels: StreamLabels, is_cut: _IsCut) -> Generator[Part | None]:
        """Yield the blocks of a stream, or None if the next one has not come yet; a thread reads it meanwhile."""
        most = _BUFFER_BYTES if isinstance(source, str | os.PathLike | ExampleFile) else _BUFFER_BYTES_OF_BLOCKS
        buffer = max(1, int(min(most, self.memory_limit / _BUFFERS)))
        may_grow = not hasattr(self, "n_features_in_")
        has_come = False

        def ends(block: ExampleBlock | None) -> bool:
            nonlocal has_come
            has_come = has_come or block is not None
            return has_come and is_cut()

        with closing(arriving_blocks(source, buffer, ends)) as blocks:
            for block in blocks:
                if block is None:
                    yield None
                    continue
                if block.sample_weight is not None and not np.any(block.sample_weight):
                    continue
                first = not hasattr(self, "n_features_in_")
                if issparse(block.X) and not first:
                    if may_grow:
                        self.n_features_in_ = max(self.n_features_in_, block.X.shape[1])
                    block = block._replace(X=_widened(block.X, self.n_features_in_))
                try:
                    rows = self._rows(block.X, block.y, block.sample_weight, labels)
                except ValueError as error:
                    kind = MemoryLimitError if isinstance(error, MemoryLimitError) else ValueError
                    raise kind(f"{block.where}: {error}") from error
                yield Part(rows, len(labels), block.share_read)

    def _part(self, call: tuple[Any, Any, Any], labels: StreamLabels, is_cut: _IsCut) -> Generator[Part | None]:
        """Yield the arrays of one call, which are never cut."""
        rows = self._rows(*call, labels)
        yield from _one_part(rows, len(labels), is_cut)

    def _rows(self, X: Any, y: Any, sample_weight: Any, labels: StreamLabels) -> LabelledRows:
        """Checked examples, as the session takes them."""
        X, y = validated(self, X, y, reset=not hasattr(self, "n_features_in_"))
        known = np.unique(y)
        weights = self.class_weight
        if isinstance(weights, Mapping):  # not of classes that are not here
            weights = {label: weights[label] for label in known.tolist() if label in weights}
        costs, rest_costs = self._costs(X, y, known, sample_weight, weights)
        counts = np.maximum(costs, rest_costs)
        if not counts.all():
            counted = np.flatnonzero(counts)
            X, y, costs, rest_costs = X[counted], y[counted], costs[counted], rest_costs[counted]
        numbers = labels.numbered(y)
        self._check_memory(len(labels), X)
        return LabelledRows(X, numbers, costs, rest_costs)

    def _costs(
        self,
        X: Any,
        y: NDArray[Any],
        classes: NDArray[Any],
        sample_weight: Any,
        class_weight: Mapping[Any, float] | str | None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The weights of examples in the problems of their own classes, and in those of others."""
        costs = example_costs(1.0, X, y, classes, sample_weight, class_weight)
        if self.formulation == "joint" or class_weight is None:
            return costs, costs
        return costs, example_costs(1.0, X, y, classes, sample_weight, None)

    # ---- Both ----

    def _train(self, training: GradientTraining, labels: StreamLabels, about: str) -> Outcome:
        plan = training.plan
        limits = Limits(
            None,
            math.inf,
            self.time_limit,
            passes=plan.epochs,
            may_end_sooner=plan.patience < math.inf,
            certify=plan.held is not None,
        )
        looks = None if plan.held is None else Looks(training.look, math.ceil(plan.epochs / _LOOKS))
        with progress_for(self.verbose) as progress, closing(training):
            progress.start(f"{self.algorithm}, {self.loss}, {about}")
            outcome = train(training, limits, progress, looks)
        check_arrived(labels.listed() if training.has_examples else [], 1, outcome.status, self.time_limit)
        machine = training.settle()
        self._check_converges(machine, outcome)
        self._keep_model(machine, labels)
        counters = machine.session.counters
        self.result_ = Result.of(
            outcome,
            solver=self.algorithm,
            iterations=training.iterations(),
            support_patterns=0,
            support_vectors=0,
            operations={
                "visits": counters.visits,
                "steps": counters.steps,
                "search_visits": training.search_visits,
            },
            breakdown=training.seconds,
        )
        self.n_iter_ = max(1, math.ceil(self.result_.iterations))
        return outcome

    def _check_converges(self, machine: GradientMachine, outcome: Outcome) -> None:
        if outcome.objectives.primal == math.inf or not np.isfinite(machine.weights()).all():
            raise ValueError(
                f"training has diverged: the weights are not finite, or their objective is not, with "
                f"t0={machine.start.t0:.3g}; a larger t0 or alpha, or features of smaller scale, would do"
            )

    def _keep_model(self, machine: GradientMachine, labels: StreamLabels) -> None:
        W = machine.weights().T
        if len(labels) > 2:
            W = W[np.argsort(labels.arrived)]
        elif len(labels) == 2 and labels.arrived[0] > labels.arrived[1]:
            W = -W
        n_features = machine.n_features
        self.classes_ = np.sort(labels.arrived)
        self.coef_ = np.ascontiguousarray(W[:, :n_features])
        self.intercept_ = W[:, n_features].copy() if self.fit_intercept else np.zeros(len(W), W.dtype)
        self.t0_ = machine.start.t0
        self._state = {**machine.state(), "skip": np.array([machine.start.skip])}
        self._arrived, self._announced = labels.arrived, labels.are_announced
        self._began_with = {name: getattr(self, name) for name in _FIXED}

    def _warn_if_early(self, outcome: Outcome) -> None:
        warn_if_early(outcome, self.result_, max_iter=None, time_limit=self.time_limit, stacklevel=3)

    def _check_takes_streams(self) -> None:
        if self.class_weight == "balanced":
            raise ParameterError(
                "class_weight", "must be a dict or None with a stream; got 'balanced', which needs all examples at once"
            )

    def _check_memory(self, n_labels: int, X: Any) -> None:
        needed = bytes_of_machine(X, n_labels, self.algorithm)
        if needed > self.memory_limit:
            raise MemoryLimitError(
                f"memory_limit={self.memory_limit:.3g} bytes do not hold the weights of {X.shape[1]} features and "
                f"{n_labels} classes; at least {needed} would do"
            )


def _one_part(rows: LabelledRows, n_labels: int, _: _IsCut) -> Generator[Part | None]:
    yield Part(rows, n_labels, 1.0)


def _widened(X: csr_matrix, n_features: int) -> csr_matrix:
    """With columns that are empty; as it is where it has too many, for the checks to refuse."""
    if X.shape[1] >= n_features:
        return X
    return csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))


def _error(X: Any, y: NDArray[Any], labels: StreamLabels, machine: GradientMachine) -> float:
    """The share of examples misclassified; features and labels the machine has not met do not help."""
    if not issparse(X) and X.shape[1] != machine.n_features:
        raise ValueError(
            f"validation must have the features of the stream, {machine.n_features}; got {X.shape[1]} features"
        )
    if not np.isin(y, labels.arrived).any():
        first = labels.arrived[0].item()
        raise ValueError(f"validation must have labels that the stream has too, such as {first!r}; got {y[0].item()!r}")
    W = machine.weights()
    width = min(X.shape[1], machine.n_features)
    scores = np.asarray(X[:, :width] @ W[:width])
    if machine.problem.intercept:
        scores = scores + W[-1]
    best = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.intp)
    return float(np.mean(labels.arrived[np.minimum(best, len(labels) - 1)] != y))
