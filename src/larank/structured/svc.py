"""`StructuredSVC`: any structured model, trained by any of the solvers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from larank import declare
from larank.base import Estimator, example_costs, of_streams, on_host
from larank.data.models import persistable
from larank.data.schema import (
    RESULT,
    Scope,
    anything,
    count,
    floats,
    given,
    integer,
    integers,
    row,
    several,
    starts,
)
from larank.declare import fitted, parameter
from larank.parameters import Seeded, TimeLimited
from larank.publishing import next_model, of_one_model
from larank.structured import larank, perceptrons
from larank.structured.checked import CheckedModel
from larank.structured.cuttingplanes import CuttingPlanes, NSlack
from larank.structured.larank import AdaptiveSchedule, FixedSchedule, LaRank
from larank.structured.model import StructuredModel
from larank.structured.oneslack import OneSlack
from larank.structured.pairs import Example, TrainingPairs, checked_pairs, checked_sequence
from larank.structured.perceptrons import PassiveAggressive, Perceptron, StepPerExample
from larank.structured.solver import OnlineSolver, Solver, Support, Visits
from larank.structured.togap import PassThenRounds
from larank.structured.weights import CachedExpansion, FeatureWeights, KernelExpansion, Vector, Weights
from larank.training import Limits, Outcome, Result, progress_for, train, warn_if_early

_BATCH: Mapping[str, type[CuttingPlanes]] = {"svmstruct": NSlack, "svmstruct-1slack": OneSlack}
_PERCEPTRONS: Mapping[str, type[StepPerExample]] = {"perceptron": Perceptron, "passive-aggressive": PassiveAggressive}
_TOL = 1e-3
_INPUTS_AT_ONCE = 256  # of predictions, where the model has batches
_FIXED_IN_A_STREAM = ("model", "solver", "schedule", "n_reprocess")


def _has_features(scope: Scope) -> bool:
    return scope.known["model"].joint_kernel is None


def _is_going_on(scope: Scope) -> bool | None:
    """Whether inputs and outputs of examples must be there; with a joint kernel and no stream, inputs are."""
    return True if _is_online(scope) else None


def _check_weights(name: str, value: Any, scope: Scope) -> None:
    floats("n_joint_features")(name, value, scope)
    scope.known["model"].check_saved(n_features=len(value))


def _check_inputs(name: str, value: Any, scope: Scope) -> None:
    several(anything, "n_patterns")(name, value, scope)
    scope.known["model"].check_saved(inputs=value, n_features=scope.sizes.get("n_joint_features"))


def _check_outputs(name: str, value: Any, scope: Scope) -> None:
    several(anything, "n_patterns")(name, value, scope)
    scope.known["model"].check_saved(outputs=value)


def _check_vectors(name: str, value: Any, scope: Scope) -> None:
    several(row(integer(), anything), "n_vectors")(name, value, scope)
    scope.known["model"].check_saved(outputs=[output for _, output in value])


_STATES = {"larank": larank.STATE, **dict.fromkeys(_PERCEPTRONS, perceptrons.STATE)}


def _is_online(scope: Scope) -> bool:
    return scope.known["result_"].solver in _STATES


def _check_state(name: str, value: Any, scope: Scope) -> None:
    """Check the state of the solver that made the model."""
    _STATES[scope.known["result_"].solver](name, value, scope)


@persistable(
    n_iter_=integer(),
    result_=RESULT,
    _seen=count(),
    coef_=given(_check_weights, when=_has_features),
    support_=integers("n_patterns", below="_seen", unique=True),
    support_costs_=floats("n_patterns", least=0),
    support_vectors_=_check_vectors,
    dual_coef_=floats("n_vectors"),
    _inputs=given(_check_inputs, when=lambda scope: not _has_features(scope) or _is_going_on(scope)),
    _truths=given(_check_outputs, when=_is_going_on),
    _starts=starts("n_patterns", "n_vectors"),
    _beta=floats("n_vectors"),
    _early=floats("n_vectors"),
    _state=given(_check_state, when=_is_online),
)
class StructuredSVC(TimeLimited, Seeded, Estimator):
    """Large-margin learning of structured outputs, for any model that can find its best output.

    Minimises ``1/2 |w|^2 + sum_i C_i max_y (loss(y_i, y) + S(x_i, y) - S(x_i, y_i))``, with
    ``S(x, y) = <w, joint_feature(x, y)>``; the perceptrons minimise nothing.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights, for models with joint features.
    support_ : ndarray
        The support patterns, as numbers of examples in `X` or in the stream of `partial_fit`.
    support_costs_ : ndarray
        `C` times the weight of each support pattern.
    support_vectors_ : list of (int, output)
        The number of an example and an output that has a coefficient there.
    dual_coef_ : ndarray
        The coefficients of `support_vectors_`. Those of an example add up to zero; only the one of its own output is
        positive, and at most its cost unless a perceptron made it.
    n_iter_ : int
        Passes over the data, rounded up.
    result_ : Result
        The certificate: objectives, gap, counts, seconds and the history; without objectives for perceptrons.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, sections 2.2 and 5.1.
    Tsochantaridis, Joachims, Hofmann, Altun. Large Margin Methods for Structured and Interdependent Output Variables.
    JMLR 6, 2005.
    Joachims, Finley, Yu. Cutting-Plane Training of Structural SVMs. Machine Learning 77, 2009.

    Examples
    --------
    >>> from larank import MulticlassModel, StructuredSVC
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> X, y = letter.X_train[:500] / 15, (letter.y_train[:500] > "M").astype(int)
    >>> model = StructuredSVC(MulticlassModel(2), stop="gap", random_state=0).fit(X, y)
    >>> bool(model.result_.relative_gap <= 1e-3)
    True
    """

    model: StructuredModel = parameter(
        "Joint features or a joint kernel, arg max and loss.",
        form="StructuredModel",
        kw_only=False,
    )
    solver: Literal["larank", "perceptron", "passive-aggressive", "svmstruct", "svmstruct-1slack"] = parameter(
        '"larank" nearly solves the problem in one pass and can go on to any precision. "svmstruct" adds violated '
        'outputs to a working set and solves the problem on it, "svmstruct-1slack" does so with one output of every '
        'example at once. "perceptron" and "passive-aggressive" step on each example when it comes.',
        default="larank",
        kw_only=False,
    )
    C: float = parameter(
        'The cost of one unit of loss against ``1/2 |w|^2``; of "passive-aggressive", the largest step.',
        default=1.0,
        above=0,
    )
    epochs: int = parameter(
        'Passes over the data with ``stop="epochs"``.',
        default=1,
        least=1,
    )
    stop: Literal["epochs", "gap", "violation"] | None = parameter(
        "What ends training: `epochs` passes, a duality gap, or that no output violates its margin by `tol` more than "
        'the working set knows. By default "epochs" or, with "svmstruct" and "svmstruct-1slack", which know the last '
        'two, "gap". "larank" knows the first two, perceptrons the first.',
        default=None,
    )
    tol: float | None = parameter(
        "The gap relative to the primal objective, or the violation per example in units of the loss, at which to "
        "stop; 1e-3 if not given.",
        default=None,
        above=0,
    )
    max_iter: int = parameter(
        "Passes of arg max over the data after which training stops with a warning. It is refused if `epochs` ends it.",
        default=1000,
        least=1,
    )
    n_reprocess: int = parameter(
        'How often one PROCESSOLD and ten OPTIMIZE follow each example in the fixed schedule of "larank"; with '
        '``stop="gap"``, how often one PROCESSOLD does in its only pass.',
        default=1,
        least=0,
    )
    schedule: Literal["fixed", "adaptive"] = parameter(
        'How the operations of "larank" take turns: always alike, or in proportion to the dual increase they bring '
        "for their work.",
        default="fixed",
    )
    average: bool = parameter(
        "Whether the perceptrons keep the average of the weights after all examples instead of the last ones.",
        default=False,
    )
    shuffle: bool = parameter(
        "Whether `fit` visits the examples in random order; `partial_fit` never does.",
        default=True,
    )
    certify: bool = parameter(
        'Whether "larank" ends `fit` with the objectives from scratch, which takes an arg max per example. Otherwise '
        "the certificate holds an estimate made on the way.",
        default=True,
    )
    random_state: int | np.random.RandomState | None = parameter(
        'Draws the order of the examples and the choices of "larank".',
        default=None,
        form="int, RandomState or None",
    )

    _seen: int = fitted()
    _state: dict[str, Any] = fitted()
    _running: OnlineSolver = fitted()

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the running solver, which is rebuilt from the model when it is needed again."""
        state: dict[str, Any] = {**super().__getstate__()}
        state.pop("_running", None)
        return state

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train on pairs of inputs and outputs.

        Parameters
        ----------
        X, y : sequences of equal length
            Inputs and outputs of any kind that the model understands; of arrays and sparse matrices, the rows.
        sample_weight : array of shape (n_samples,), optional
            Factors on ``C`` per example, or on the steps of the perceptron; not negative.

        Returns
        -------
        StructuredSVC
            Itself, fitted. A `TrainingWarning` says when training ended early; the model is valid all the same.
        """
        with next_model(self) as model:
            outcome = model._fit(X, y, sample_weight)
        self._warn_if_early(outcome)
        return self

    @of_streams
    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Go on training with new examples, in the order in which they come; the arguments are those of `fit`.

        Calls with parts of a stream make the same model as one call with all of it, or as `fit` without `shuffle`.
        There is no certificate from scratch: `result_` holds an estimate.
        """
        with next_model(self) as model:
            outcome = model._partial_fit(X, y, sample_weight)
        self._warn_if_early(outcome)
        return self

    @of_one_model
    def predict(self, X: Any) -> list[Any]:
        """The outputs that the model's arg max finds for the inputs, one for each."""
        check_is_fitted(self)
        weights, X = self._weights(), checked_sequence("X", X)
        model, scorer = weights.model, weights.scorer
        if model.has_batches:
            found: list[Any] = []
            for first in range(0, len(X), _INPUTS_AT_ONCE):
                numbers = range(first, min(first + _INPUTS_AT_ONCE, len(X)))
                found += model.argmax_batch([X[i] for i in numbers], scorer(X[first], first), numbers)
            return found
        return [model.argmax(X[i], scorer(X[i], i), i) for i in range(len(X))]

    @of_one_model
    def joint_scores(self, X: Any, y: Any) -> NDArray[np.float64]:
        """The scores ``S(x, y)`` of pairs of inputs and outputs, two sequences of equal length."""
        check_is_fitted(self)
        weights, (X, y) = self._weights(), checked_pairs(X, y)
        examples = (Example(i, X[i], y[i], 0.0) for i in range(len(X)))
        return np.array([weights.score(weights.vector(example, example.y, None, 0.0)) for example in examples])

    @of_one_model
    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """One minus the mean loss of the predictions, weighted by `sample_weight` if it is given.

        This is the accuracy if the loss is 1 for every wrong output. Losses that exceed 1 can make it negative.
        """
        X, y = checked_pairs(X, y)
        sample_weight = on_host("sample_weight", sample_weight)
        model, outputs = CheckedModel(self.model), self.predict(X)
        losses = np.array([model.loss(y[i], outputs[i], i) for i in range(len(y))])
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return 1.0 - float(np.average(losses, weights=weights))

    def _check_parameters(self) -> str:
        """Raise where a parameter cannot be what it is; what ends training."""
        stop = self.stop or ("gap" if self.solver in _BATCH else "epochs")
        declare.check(self, stop=stop)
        CheckedModel(self.model)
        return stop

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Outcome:
        stop = self._check_parameters()
        pairs = self._pairs(X, y, sample_weight, first=0)
        model = self._checked(pairs)
        seeds = check_random_state(self.random_state)
        seed = int(seeds.randint(2**31 - 1))
        shuffled = np.random.RandomState(seeds.randint(2**31 - 1)) if self.shuffle else None
        self._forget()
        self._check_unchanged(first=True)
        self._seen = len(pairs.costs)
        tol = _TOL if self.tol is None else float(self.tol)
        limits = Limits(
            gap=tol if stop == "gap" else None,
            max_iter=math.inf if stop == "epochs" else self.max_iter,
            time_limit=self.time_limit,
            passes=self.epochs if stop == "epochs" else None,
            certify=self.certify and self.solver not in _PERCEPTRONS,
            passes_between_checks=1.0,  # a check takes as many arg max as a pass
        )
        if self.solver in _BATCH:
            planes = _BATCH[self.solver](
                self._new_weights(model), pairs, tol if stop == "violation" else None, shuffled
            )
            return self._train(planes, planes, limits)
        if stop == "gap":
            # The rounds after the pass do what OPTIMIZE does, in the core.
            schedule = FixedSchedule(int(self.n_reprocess), ["process_old"]) if self.schedule == "fixed" else None
            larank = LaRank(self._new_weights(model), schedule or AdaptiveSchedule(), seed)
            visits = Visits(larank, pairs, epochs=1, shuffled=shuffled, is_whole=True)
            rounds = NSlack(larank.weights, pairs, None, shuffled)
            return self._train(PassThenRounds(larank, visits, rounds), larank, limits)
        self._running = self._new_solver(model, seed)
        visits = Visits(self._running, pairs, epochs=self.epochs, shuffled=shuffled, is_whole=True)
        return self._train(visits, self._running, limits)

    def _partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Outcome:
        self._check_parameters()
        first = not hasattr(self, "dual_coef_")
        self._check_unchanged(first)
        pairs = self._pairs(X, y, sample_weight, first=0 if first else self._seen)
        if first:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            self._seen, self._running = 0, self._new_solver(self._checked(pairs), seed)
        elif not hasattr(self, "_running") or self._running.is_ahead:
            self._running = self._restored()
        self._seen += len(pairs.costs)
        self._running.is_ahead = True  # if something fails from here on
        visits = Visits(self._running, pairs, epochs=1, shuffled=None, is_whole=False)
        outcome = self._train(visits, self._running, Limits(None, math.inf, self.time_limit, passes=1, certify=False))
        self._running.is_ahead = False
        return outcome

    def _check_unchanged(self, first: bool) -> None:
        """The solver of a stream cannot change some parameters on the way; a loaded model knows its solver only."""
        now = {name: getattr(self, name) for name in _FIXED_IN_A_STREAM}
        before = {} if first else getattr(self, "_began_with", {"solver": self.result_.solver})
        for name, value in before.items():
            if now[name] is not value and (name == "model" or now[name] != value):
                raise ValueError(f"{name} must stay as it was in the calls before, {value!r}; got {now[name]!r}")
        self._began_with = now

    def _forget(self) -> None:
        """What a fit before may have left behind and this one need not make again."""
        for name in ("coef_", "_inputs", "_truths", "_running", "_state"):
            self.__dict__.pop(name, None)

    def _pairs(self, X: Any, y: Any, sample_weight: ArrayLike | None, first: int) -> TrainingPairs:
        X, y = checked_pairs(X, y)
        if not len(y):
            raise ValueError("X must hold at least one example, got none")
        costs = example_costs(self.C, None, np.zeros(len(y)), np.zeros(1), sample_weight, None)
        return TrainingPairs(X, y, costs, first)

    def _checked(self, pairs: TrainingPairs) -> CheckedModel:
        model = CheckedModel(self.model)
        model.check_first(pairs.X, pairs.y)
        if self.solver != "perceptron":
            model.check_augmented(pairs.X, pairs.y, self._new_weights(model).scorer)
        return model

    def _new_weights(self, model: CheckedModel) -> Weights:
        if model.has_kernel:
            return KernelExpansion(model) if self.solver in _PERCEPTRONS else CachedExpansion(model)
        assert model.length is not None
        return FeatureWeights(model, np.zeros(model.length))

    def _new_solver(self, model: CheckedModel, seed: int) -> OnlineSolver:
        weights = self._new_weights(model)
        if self.solver in _PERCEPTRONS:
            return _PERCEPTRONS[self.solver](weights)
        fixed = self.schedule == "fixed"
        return LaRank(weights, FixedSchedule(int(self.n_reprocess)) if fixed else AdaptiveSchedule(), seed)

    def _train(self, training: Visits | CuttingPlanes | PassThenRounds, solver: Solver, limits: Limits) -> Outcome:
        model = solver.weights.model
        calls, kernel_values, operations = model.argmax_calls, model.kernel_values, solver.operations()
        seconds = dict(model.seconds)
        with progress_for(self.verbose) as progress:
            progress.start(f"{type(self.model).__name__} by {self.solver}, {len(training.pairs)} examples")
            outcome = train(training, limits, progress)
        if isinstance(training, PassThenRounds):
            training.hand_back()
        if isinstance(training, CuttingPlanes) and training.has_stalled and outcome.status == "converged":
            outcome = replace(outcome, status="precision")
        self._check_duality(outcome)
        self._keep_model(solver)
        self.n_iter_ = math.ceil(training.iterations())
        done = {name: count - operations.get(name, 0) for name, count in solver.operations().items()}
        self.result_ = Result.of(
            outcome,
            solver=solver.NAME,
            iterations=training.iterations(),
            support_patterns=len(self.support_),
            support_vectors=len(self.dual_coef_),
            kernel_values=model.kernel_values - kernel_values,
            argmax_calls=model.argmax_calls - calls - training.certificate_calls,
            operations={**done, "certificate_argmax": training.certificate_calls},
            breakdown={name: spent - seconds[name] for name, spent in model.seconds.items()},
        )
        return outcome

    def _check_duality(self, outcome: Outcome) -> None:
        """An arg max that finds too little makes the primal objective too small, at last below the dual."""
        at = outcome.objectives
        if outcome.exact and at.primal < at.dual - 1e-6 * abs(at.dual):
            raise ValueError(
                f"{type(self.model).__name__}.argmax must return the output with the largest loss + score: with what "
                f"it found the primal objective is {at.primal:.9g}, below the dual objective {at.dual:.9g}"
            )

    def _keep_model(self, solver: Solver) -> None:
        support, weights = solver.support(), solver.explicit_weights()
        self._starts, self._beta, self._early = support.starts, support.beta, support.early
        self.dual_coef_ = support.beta
        if self.average and isinstance(solver, StepPerExample):
            weights = solver.averaged()
            self.dual_coef_ = support.beta - support.early / max(1, solver.visits)
        if weights is not None:
            self.coef_ = weights
        self.support_ = np.array([example.number for example in support.examples], dtype=np.int64)
        self.support_costs_ = np.array([example.cost for example in support.examples])
        counts = np.diff(support.starts)
        self.support_vectors_ = list(zip(np.repeat(self.support_, counts).tolist(), support.outputs, strict=True))
        if weights is None or isinstance(solver, OnlineSolver):
            self._inputs = [example.x for example in support.examples]
            self._truths = [example.y for example in support.examples]
        if isinstance(solver, OnlineSolver):
            self._state = solver.state()

    def _restored(self) -> OnlineSolver:
        """A solver that goes on from the fitted attributes."""
        model = CheckedModel(self.model)
        model.length = len(self.coef_) if hasattr(self, "coef_") else None
        solver = self._new_solver(model, seed=0)
        columns = zip(self.support_.tolist(), self._inputs, self._truths, self.support_costs_.tolist(), strict=True)
        outputs = [output for _, output in self.support_vectors_]
        examples = [Example(*values) for values in columns]
        solver.restore(Support(examples, self._starts, outputs, self._beta, self._early), self._state)
        return solver

    def _weights(self) -> Weights:
        """The fitted model as something that has scores."""
        model = CheckedModel(self.model)
        if not model.has_kernel:
            model.length = len(self.coef_)
            return FeatureWeights(model, self.coef_)
        expansion = KernelExpansion(model)
        inputs = [x for x, count in zip(self._inputs, np.diff(self._starts), strict=True) for _ in range(count)]
        coefficients = self.dual_coef_.tolist()
        for n, (x, (number, output)) in enumerate(zip(inputs, self.support_vectors_, strict=True)):
            expansion.hold(Vector(number, x, output, n, 0.0, coefficients[n]))
        return expansion

    def _warn_if_early(self, outcome: Outcome) -> None:
        warn_if_early(
            outcome,
            self.result_,
            max_iter=self.max_iter,
            time_limit=self.time_limit,
            limit_of_precision="by rounding errors",
            stacklevel=3,
        )
