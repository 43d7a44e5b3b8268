"""Binary kernel SVMs with a bias in one pass by LaSVM of Bordes et al., and several of them one-versus-rest.

The session (`core/kernel/lasvm.hpp`) makes PROCESS and REPROCESS on every example. The finishing step optimizes the
coefficients of the support vectors found so far; the model is taken after it, and the stream goes on as if it had not
been, unless training goes on until the gap is closed: then each pass begins where the finish of the one before ended.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from larank import _core
from larank.base import functions
from larank.costs import hard_objective
from larank.data.models import persistable
from larank.data.schema import floats, labels
from larank.declare import ParameterError, Value, parameter
from larank.docstrings import with_paragraphs
from larank.kernel.bias import least_loss_bias
from larank.kernel.machine import (
    FITTED_ON_A_STREAM,
    WEIGHTS,
    Algorithm,
    CheckpointedClassifier,
    Expansion,
    Machine,
    StreamTraining,
    estimate_by_losses,
    session_class,
    signs,
)
from larank.kernel.selection import Strategy, is_strategy, strategy_named
from larank.parameters import HardMargins, StoppingByGain, Weighted
from larank.publishing import of_one_model
from larank.training import FromScratch, ObjectiveValues, Outcome, SampledObjectives, TrainingWarning

_FINISHING_STEPS = 5_000  # at once, well under a second
_STEPS_PER_VECTOR = 1000  # of a finishing step


class LaSVM(Value):
    """The switches of LaSVM, for ``solver=LaSVM(...)``.

    References
    ----------
    Bordes, Ertekin, Weston, Bottou. Fast Kernel Classifiers with Online and Active Learning. JMLR 2005.
    """

    tau: float = parameter(
        "Tolerance of optimality conditions, like `tol` of `sklearn.svm.SVC`: smaller violations are not corrected.",
        default=1e-3,
        least=1e-12,
    )
    delta_max: float | None = parameter(
        "If set, REPROCESS is repeated after each new example until the uncertainty of the bias, `delta_`, is below "
        "this value. By default there is one REPROCESS per example.",
        default=None,
        above=0,
    )


class OnlineLaSVM(Algorithm):
    """LaSVM, as the machine sees it."""

    solver = "lasvm"
    title = "LaSVM"
    takes_samples = True
    is_left_to_readers = True
    kept = ("_finishing_seconds", "_steps", "_has_stalled", "_biases", "_steps_at_most")
    fixed = (*Algorithm.fixed, "solver")
    absent = -1.0

    def session(self, dtype: np.dtype[Any], seed: int) -> Any:
        """A compiled session that has seen nothing."""
        options = {"tau": float(self._switches.tau), "delta_max": float(self._switches.delta_max or 0)}
        return session_class("LaSVM", dtype)(**options, memory_limit=int(self.model.memory_limit))

    @property
    def _switches(self) -> LaSVM:
        solver = self.model.solver
        return solver if isinstance(solver, LaSVM) else LaSVM()

    def begin_training(self, training: StreamTraining) -> None:
        """Nothing is finished yet."""
        self._finishing_seconds = 0.0
        self._steps = 0  # up to the last epoch's end
        self._has_stalled = False  # nothing violates optimality by more than tau
        self._biases: list[tuple[int, float]] = []  # by problem, where the support vectors leave it open
        self._steps_at_most = 0  # of a finish that was cut short

    def end_epoch(self, training: StreamTraining) -> Iterator[None]:
        """The finishing step: after the last epoch, or after each where the gap ends training."""
        is_last = training.is_over or training.settings.stops_at_gap
        if not self.model.finish or not is_last or training.is_left_to_readers:
            return
        for _ in self._finish(training):
            yield
        if training.settings.stops_at_gap:
            session = training.session
            session.take_over_finish()
            before, self._steps = self._steps, session.counters.steps + session.counters.finishing_steps
            self._has_stalled = training.is_over = before == self._steps

    def finish_for_reader(self, training: StreamTraining) -> Iterator[None]:
        """The finishing step."""
        if self.model.finish:
            yield from self._finish(training)

    def _finish(self, training: StreamTraining) -> Iterator[None]:
        """The finishing step, some steps at a time. It ends in any case: badly scaled problems need very many."""
        session, self._steps_at_most = training.session, 0
        before, most = session.counters.finishing_steps, _STEPS_PER_VECTOR * max(1, session.slots)
        while not self._finish_some(training):
            training.look_at_memory()
            if session.counters.finishing_steps - before >= most:
                self._steps_at_most = most
                return
            yield

    def _finish_some(self, training: StreamTraining) -> bool:
        began = time.perf_counter()
        try:
            done: bool = training.session.finish_some(_FINISHING_STEPS, training.feed)
            return done
        except _core.MemoryLimitError as error:
            training.session.go_on()
            warnings.warn(f"the model is not finished: {error}", TrainingWarning, stacklevel=2)
            return True
        finally:
            self._finishing_seconds += time.perf_counter() - began

    def before_validation(self, training: StreamTraining) -> None:
        """By the model one would have if training ended here."""
        if self.model.finish and not training.settings.stops_at_gap:
            for _ in self._finish(training):
                pass

    def estimate(self, training: StreamTraining) -> ObjectiveValues:
        """By the losses of the examples as they came."""
        return estimate_by_losses(training)

    def objectives(self, training: StreamTraining) -> FromScratch:
        """[thesis] (4.1) of all problems together, and the largest violation of one of them."""
        self._biases = []
        yield from self._find_open_biases(training)
        expansion = self.expansion(training.session)
        # Classes that have not been met yet count as well: everything is against them.
        coefficients, bias = expansion.for_classes(len(self.model._arrived), self.absent)
        linear, losses = 0.0, training.losses()
        squared_norm, margin = np.zeros(len(bias)), np.full(len(bias), np.inf)
        largest, smallest = np.full(len(bias), -np.inf), np.full(len(bias), np.inf)
        for block, scores, alpha in training.scanned(expansion, coefficients, training.scanned_rows):
            y = signs(block.labels, len(bias))
            margins = y * (scores + bias)
            margin = np.minimum(margin, margins.min(axis=0))
            losses.add(block.ids, block.costs * np.maximum(0, 1 - margins).sum(axis=1), 1 - margins.min(axis=1))
            squared_norm += (alpha * scores).sum(axis=0)
            linear += float((alpha * y).sum())
            g, bound = y - scores, block.costs[:, None] * y  # [thesis] (4.2)
            largest = np.maximum(largest, np.where(alpha < np.maximum(0, bound), g, -np.inf).max(axis=0))
            smallest = np.minimum(smallest, np.where(alpha > np.minimum(0, bound), g, np.inf).min(axis=0))
            yield
        violation = max(0.0, float((largest - smallest).max()))
        at_zero = float(np.tile(training.stream.examples.costs, len(bias)).sum())
        if training.sample is not None:  # the rest is as it was kept on the way
            half, dual = training.session.half_squared_norm, training.session.dual
            training.machine.look_at_objectives(half, dual, at_zero)
            return SampledObjectives.of(half + losses.total, dual, losses.error)
        half = float(squared_norm.sum()) / 2
        training.machine.look_at_objectives(half, linear - half, at_zero)
        primal = half + losses.total
        if math.isinf(self.model.C):
            primal = sum(map(hard_objective, (squared_norm / 2).tolist(), margin.tolist()))
        return ObjectiveValues(primal, linear - half, violation)

    def _find_open_biases(self, training: StreamTraining) -> Iterator[None]:
        """Where all support vectors are at bounds, they leave an interval to the bias; all examples decide."""
        session = training.session
        width = len(self.model._arrived)
        is_open = np.flatnonzero(session.delta < -float(self._switches.tau))
        if not len(is_open) or (session.columns > 1 and session.columns != width):
            return
        expansion = Expansion.of(session)
        scanned = []
        for block, scores, _ in training.scanned(expansion, expansion.dense[:, is_open]):
            scanned.append((scores, signs(block.labels, session.columns)[:, is_open], block.costs))
            yield
        scores, y, costs = (np.concatenate(parts) for parts in zip(*scanned, strict=True))
        for column, problem in enumerate(is_open.tolist()):
            self._biases.append((problem, least_loss_bias(scores[:, column], y[:, column], costs)))

    def check(self, training: StreamTraining, outcome: Outcome) -> Outcome:
        """Training that has stalled above the gap asked for has come to the end of its precision."""
        if outcome.status in ("interrupted", "time_limit"):
            return outcome
        if training.is_whole and not training.settings.certify:
            for _ in self._find_open_biases(training):
                pass
        is_open = not training.settings.limits().is_closed(outcome.objectives)
        if self._steps_at_most and outcome.status in ("completed", "max_iter"):
            return replace(outcome, status="max_iter")
        return replace(outcome, status="precision") if self._has_stalled and is_open else outcome

    @property
    def limit_of_iterations(self) -> str:
        """Why training was ended where it was long."""
        if not self._steps_at_most:
            return ""
        return (
            f"after {self._steps_at_most} steps of finishing, {_STEPS_PER_VECTOR} for each support vector. Features "
            "that are large or of different sizes make it slow. Scale them, or raise tau by solver=LaSVM(tau=...)"
        )

    @property
    def limit_of_precision(self) -> str:
        """Why training could not go on, where it could not."""
        tau = self._switches.tau
        return f"where nothing violates optimality by more than tau={tau}; solver=LaSVM(tau=...) sets a smaller one"

    def expansion(self, session: Any) -> Expansion:
        """The coefficients alpha and the biases, finished where finishing has begun."""
        bias = np.array(session.bias)
        for problem, of_least_loss in self._biases:
            bias[problem] = of_least_loss
        return replace(Expansion.of(session), intercepts=bias)

    def keep(self, session: Any, expansion: Expansion) -> None:
        """The biases and how sure they are, and what it takes to go on."""
        model = self.model
        model.intercept_ = model._intercepts(expansion, self.absent)
        to_classes = abs(model._to_classes(len(expansion.intercepts)))
        model.delta_ = np.maximum(0, session.delta) @ to_classes
        model.support_costs_, model.support_labels_ = expansion.costs, model._arrived[expansion.labels]

    def restore(self, machine: Machine) -> None:
        """Let a fresh session take over the model."""
        model = self.model
        for _ in model._arrived:
            machine.session.add_class()
        order = np.argsort(model._arrived)
        labels = order[np.searchsorted(model._arrived[order], model.support_labels_)]
        alpha = model._to_functions(machine.session.columns)
        machine.restore(model, labels, model.support_costs_, alpha)

    def operations(self, session: Any) -> dict[str, int]:
        """How often each operation was performed."""
        names = ("process", "reprocess", "steps", "finishing_steps")
        return {name: getattr(session.counters, name) for name in names}

    def seconds(self, session: Any) -> dict[str, float]:
        """Of finishing."""
        return {"finish": self._finishing_seconds}


def _as_of_svc(coefficients: csr_matrix) -> NDArray[np.float64]:
    """Coefficients with a row for each support vector in the shape that `SVC` has them in."""
    return np.ascontiguousarray(coefficients.toarray().T)


@with_paragraphs
@persistable(
    **{**FITTED_ON_A_STREAM, "dual_coef_": floats(functions, "n_support")},
    support_costs_=floats("n_support", least=0),
    support_labels_=labels("n_support", among="_arrived", repeated=True),
    coef_=WEIGHTS,
    intercept_=floats(functions),
    delta_=floats(functions, finite=False),
)
class LaSVMClassifier(HardMargins, Weighted, StoppingByGain, CheckpointedClassifier):
    """Support vector machine with a bias, trained online.

    One pass over the examples and a finishing step on the support vectors it has found nearly reach the SVM that
    `sklearn.svm.SVC` computes; further passes reach it. Examples may come in batches, with classes never seen before.
    More than two classes make one problem each against the rest; all of them share kernel values.

    Attributes
    ----------
    [model]
    dual_coef_ : ndarray of shape (n_problems, n_support)
        The coefficients ``alpha``, positive for examples of the problem's class. There is one problem with two
        classes, the second against the first, as in `SVC`, and otherwise one per class.
    coef_ : ndarray of shape (n_problems, n_features)
        The weights, with the kernel "linear".
    intercept_ : ndarray of shape (n_problems,)
        The biases.
    [n_support_]
    delta_ : ndarray of shape (n_problems,)
        The uncertainty of the biases: the largest violation of optimality among the support vectors.
    support_costs_ : ndarray of shape (n_support,)
        The bound of each coefficient's absolute value: `C` times its weights.
    support_labels_ : ndarray of shape (n_support,)
        The labels of the support vectors.
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

    finish: bool = parameter(
        "Whether the model is taken after a finishing step, which optimises the coefficients of the support vectors "
        "found so far to the tolerance `tau` of the solver, in at most 1000 steps for each of them. Training "
        "continues from the state before that step. False is faster and less accurate.",
        default=True,
    )
    selection: str | Strategy = parameter(
        'Which example `fit` takes next: "random" takes them in random order; "gradient" takes the most misclassified '
        'of a random sample, "active" the one nearest to the decision boundary, and "autoactive" ends the sample once '
        "it has a few near ones. ``Active(sample_size, budget)`` and the other strategies of `larank.active` set the "
        "size of the sample, and the number of labels after which training stops.",
        default="random",
        choices=("random", "gradient", "active", "autoactive"),
        form="strategy",
    )
    solver: Literal["lasvm"] | LaSVM = parameter("``LaSVM(...)`` sets the switches of the algorithm.", default="lasvm")

    _ALGORITHM = OnlineLaSVM

    def _check_together(self) -> None:
        super()._check_together()
        if self.tol is not None and not self.finish:
            raise ParameterError(
                "finish", f"must be True with tol={self.tol!r}, because the gap is computed after finishing; got False"
            )
        if strategy_named(self.selection).budget is not None and (
            self.tol is not None or self.max_iter not in (None, 1)
        ):
            raise ParameterError(
                "selection",
                f"has a budget of labels, but further passes would use all labels; got selection={self.selection!r} "
                f"with tol={self.tol!r} and max_iter={self.max_iter!r}. Set tol=None and max_iter=None",
            )

    def _why_no_stream(self) -> str:
        strategy = strategy_named(self.selection) if is_strategy(self.selection) else None
        if strategy is not None and (strategy.needs_scores or strategy.budget is not None):
            return (
                f"with selection={self.selection!r}, because it takes every example it is given, in their order "
                "(larank.ActiveLearner chooses among examples); selection must be 'random'"
            )
        return super()._why_no_stream()

    def _shaped(self, coefficients: csr_matrix) -> NDArray[np.float64]:
        return _as_of_svc(coefficients)

    @property
    def _coefficients(self) -> csr_matrix:
        return csr_matrix(self.dual_coef_.T)

    @property
    @of_one_model
    def n_support_(self) -> NDArray[np.int32]:
        """The number of support vectors of each class."""
        check_is_fitted(self)
        return np.array([np.count_nonzero(self.support_labels_ == label) for label in self.classes_], dtype=np.int32)
