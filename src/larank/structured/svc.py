"""`StructuredSVC`: any structured model, trained by any of the solvers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from larank import declare, parameters
from larank.base import Estimator, of_streams
from larank.costs import example_costs
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
from larank.declare import ParameterError, fitted, parameter
from larank.parameters import LaRank, Seeded, Stopping
from larank.publishing import next_model, of_one_model
from larank.structured import larank, perceptrons
from larank.structured.checked import CheckedModel
from larank.structured.cuttingplanes import CuttingPlanes, NSlack
from larank.structured.larank import REPROCESS, AdaptiveSchedule, FixedSchedule, LaRankSolver
from larank.structured.model import StructuredModel
from larank.structured.oneslack import OneSlack
from larank.structured.pairs import Example, TrainingPairs, checked_pairs, checked_sequence
from larank.structured.perceptrons import PassiveAggressiveSolver, PerceptronSolver, StepPerExample
from larank.structured.solver import JointSupport, OnlineSolver, Solver, Visits
from larank.structured.togap import PassThenRounds
from larank.structured.weights import CachedExpansion, FeatureWeights, KernelExpansion, Vector, Weights
from larank.training import Limits, Outcome, Result, progress_for, train, warn_if_early
from larank.validation import on_host

_BATCH: Mapping[str, type[CuttingPlanes]] = {"svmstruct": NSlack, "svmstruct-1slack": OneSlack}
_PERCEPTRONS: Mapping[str, type[StepPerExample]] = {
    "perceptron": PerceptronSolver,
    "passive-aggressive": PassiveAggressiveSolver,
}
_TOL = 1e-3  # of the cutting planes
_MOST_PASSES = 1000  # to a tolerance
_INPUTS_AT_ONCE = 256  # of predictions, where the model has batches


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
class StructuredSVC(Stopping, Seeded, Estimator):
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
    >>> model = StructuredSVC(MulticlassModel(2), tol=1e-3, random_state=0).fit(X, y)
    >>> bool(model.result_.relative_gap <= 1e-3)
    True
    """

    model: StructuredModel = parameter(
        "Object that defines the joint features or the joint kernel, the arg max and the loss.",
        form="StructuredModel",
        kw_only=False,
    )
    solver: Literal["larank", "svmstruct", "svmstruct-1slack", "perceptron", "passive-aggressive"] | LaRank = parameter(
        'Algorithm that trains the model. "larank" nearly solves the problem in one pass over a stream and reaches '
        'any precision with `tol`; ``LaRank(schedule=..., n_reprocess=...)`` sets its switches. "svmstruct" adds '
        'violated outputs to a working set and solves the problem on this set, and "svmstruct-1slack" adds one output '
        'of every example at once; both always train to a tolerance and need all examples at once. "perceptron" and '
        '"passive-aggressive" make one step per example and minimise nothing.',
        default="larank",
    )
    C: float = parameter(
        "Inverse regularisation strength: the cost of one unit of loss against ``1/2 |w|^2``. Larger values fit the "
        'training data more closely. With "passive-aggressive" it bounds each step; with "perceptron" it only scales '
        "the weights.",
        default=1.0,
        above=0,
    )
    average: bool = parameter(
        'Whether "perceptron" and "passive-aggressive" return the average of the weights after each example instead '
        "of the last weights, which depend much on the last examples. The other solvers have no average.",
        default=False,
    )
    stop: Literal["gap", "violation"] = parameter(
        'Quantity that `tol` bounds. "gap" is the relative duality gap. "violation" is how far an output may violate '
        'its margin beyond the violations on the working set, in units of the loss; it is available with "svmstruct" '
        'and "svmstruct-1slack".',
        default="gap",
    )
    tol: float | None = parameter(
        "Tolerance at which training stops: a relative duality gap, ``(primal - dual) / primal``, or the violation "
        'per example with ``stop="violation"``. By default "larank", "perceptron" and "passive-aggressive" make '
        "`max_iter` passes, and the other solvers use 1e-3. The perceptrons have no gap, so they accept only None.",
        default=None,
        above=0,
    )
    max_iter: int | None = parameter(
        "Number of passes over the data in `fit`; if training stops at a tolerance, the largest number, after which "
        "it ends with a warning. By default one pass is made, and at most 1000 with a tolerance.",
        default=None,
        least=1,
    )
    random_state: int | np.random.RandomState | None = parameter(
        'Seed for the order of the examples and the choices of "larank". An integer makes the model reproducible.',
        default=None,
        check=parameters.seed,
        form="int or RandomState",
    )

    _seen: int = fitted()
    _state: dict[str, Any] = fitted()
    _running: OnlineSolver = fitted()
    _began_with: tuple[StructuredModel, str | LaRank] = fitted()

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the running solver, which is rebuilt from the model when it is needed again."""
        state: dict[str, Any] = {**super().__getstate__()}
        state.pop("_running", None)
        return state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        certify: bool | Literal["auto"] = "auto",
    ) -> Self:
        """Train on pairs of inputs and outputs.

        Parameters
        ----------
        X, y : sequences of equal length
            Inputs and outputs of any kind that the model understands; of arrays and sparse matrices, the rows.
        sample_weight : array of shape (n_samples,), optional
            Factors on ``C`` per example, or on the steps of the perceptron; not negative.
        certify : bool or "auto", default="auto"
            Whether to compute both objectives on all examples after training, which takes one arg max per example. If
            False, `result_` holds an estimate from training. "auto" is True here. The perceptrons have no objectives.

        Returns
        -------
        StructuredSVC
            The fitted estimator. If training ends early, a `TrainingWarning` is issued, and the model is still valid.
        """
        with next_model(self) as model:
            outcome = model._fit(X, y, sample_weight, certify)
        self._warn_if_early(outcome)
        return self

    @of_streams
    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Continue training with new examples, in the given order; `X`, `y` and `sample_weight` are as in `fit`.

        Each call makes one pass over its examples, whatever `max_iter` is. Calls with parts of a stream make the same
        model as one call with the whole stream. `result_` holds an estimate of the objectives.
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

    _UNUSED_SWITCHES = ("operations", "tau", "forget")

    def _check_together(self) -> None:
        super()._check_together()
        CheckedModel(self.model)
        solver = self.solver
        if isinstance(solver, LaRank) and solver.schedule == "adaptive" and solver.n_reprocess is not None:
            raise ParameterError(
                "solver", f"must have schedule='fixed' if n_reprocess is set; got {solver!r}. Remove n_reprocess"
            )
        if self._solver in _PERCEPTRONS and self.tol is not None:
            raise ParameterError(
                "tol",
                f"must be None with solver={self.solver!r}, which has no duality gap; got {self.tol!r}. Set max_iter",
            )
        if self._solver not in _BATCH and self.stop == "violation":
            raise ParameterError(
                "stop",
                f"must be 'gap' with solver={self.solver!r}; got 'violation'. Set solver='svmstruct' or stop='gap'",
            )
        if self._solver not in _PERCEPTRONS and self.average:
            raise ParameterError(
                "average",
                f"must be False with solver={self.solver!r}; got {self.average!r}. Only 'perceptron' and "
                "'passive-aggressive' have an average",
            )

    def _why_no_stream(self) -> str:
        if self._solver in _BATCH:
            able = "'larank', 'perceptron' or 'passive-aggressive'"
            return f"with solver={self.solver!r}, which needs all examples at once; solver must be {able}"
        if self.tol is not None:
            return f"with tol={self.tol!r}, because it makes one pass over the examples it is given; tol must be None"
        return super()._why_no_stream()

    @property
    def _switches(self) -> LaRank:
        return self.solver if isinstance(self.solver, LaRank) else LaRank()

    @property
    def _solver(self) -> str:
        """The name of the solver."""
        return "larank" if isinstance(self.solver, LaRank) else self.solver

    @property
    def _tol(self) -> float | None:
        """The tolerance at which training stops, or None if it makes a number of passes."""
        if self.tol is None:
            return _TOL if self._solver in _BATCH else None
        return float(self.tol)

    @property
    def _passes(self) -> int:
        """The number of passes, or the largest number if training stops at a tolerance."""
        if self.max_iter is None:
            return 1 if self._tol is None else _MOST_PASSES
        return int(self.max_iter)

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None, certify: bool | str) -> Outcome:
        declare.check(self)
        parameters.certify(certify, self.tol, has_objective=self._solver not in _PERCEPTRONS)
        pairs = self._pairs(X, y, sample_weight, first=0)
        model = self._checked(pairs)
        seeds = check_random_state(self.random_state)
        seed = int(seeds.randint(2**31 - 1))
        shuffled = np.random.RandomState(seeds.randint(2**31 - 1))
        self._forget()
        self._check_unchanged(first=True)
        self._seen = len(pairs.costs)
        tol, passes = self._tol, self._passes
        limits = Limits(
            gap=tol if self.stop == "gap" else None,
            max_iter=math.inf if tol is None else passes,
            time_limit=self.time_limit,
            passes=passes if tol is None else None,
            certify=bool(certify) and self._solver not in _PERCEPTRONS,
            passes_between_checks=1.0,  # a check takes as many arg max as a pass
        )
        if self._solver in _BATCH:
            epsilon = tol if self.stop == "violation" else None
            planes = _BATCH[self._solver](self._new_weights(model), pairs, epsilon, shuffled)
            return self._train(planes, planes, limits)
        if tol is not None:
            # The rounds after the pass do what OPTIMIZE does, in the core.
            larank = LaRankSolver(self._new_weights(model), self._schedule(["process_old"]), seed)
            visits = Visits(larank, pairs, epochs=1, shuffled=shuffled, is_whole=True)
            rounds = NSlack(larank.weights, pairs, None, shuffled)
            return self._train(PassThenRounds(larank, visits, rounds), larank, limits)
        self._running = self._new_solver(model, seed)
        visits = Visits(self._running, pairs, epochs=passes, shuffled=shuffled, is_whole=True)
        return self._train(visits, self._running, limits)

    def _partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Outcome:
        declare.check(self)
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
        """Raise if the model or the solver has changed during a stream; a loaded estimator has the solver's name."""
        if not first and not hasattr(self, "_began_with"):
            parameters.check_unchanged({"solver": self.result_.solver}, {"solver": self._solver})
        elif not first:
            model, solver = self._began_with
            if self.model is not model:
                raise ParameterError("model", f"must stay as it was in the calls before, {model!r}; got {self.model!r}")
            parameters.check_unchanged({"solver": solver}, {"solver": self._stream_solver})
        self._began_with = self.model, self._stream_solver

    @property
    def _stream_solver(self) -> str | LaRank:
        """What a stream cannot change: the name of the solver, or the switches of LaRank."""
        return self._switches if self._solver == "larank" else self._solver

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
        if self._solver != "perceptron":
            model.check_augmented(pairs.X, pairs.y, self._new_weights(model).scorer)
        return model

    def _new_weights(self, model: CheckedModel) -> Weights:
        if model.has_kernel:
            return KernelExpansion(model) if self._solver in _PERCEPTRONS else CachedExpansion(model)
        assert model.length is not None
        return FeatureWeights(model, np.zeros(model.length))

    def _new_solver(self, model: CheckedModel, seed: int) -> OnlineSolver:
        weights = self._new_weights(model)
        if self._solver in _PERCEPTRONS:
            return _PERCEPTRONS[self._solver](weights)
        return LaRankSolver(weights, self._schedule(), seed)

    def _schedule(self, reprocess: Sequence[str] = REPROCESS) -> FixedSchedule | AdaptiveSchedule:
        switches = self._switches
        if switches.schedule == "adaptive":
            return AdaptiveSchedule()
        return FixedSchedule(1 if switches.n_reprocess is None else int(switches.n_reprocess), reprocess)

    def _train(self, training: Visits | CuttingPlanes | PassThenRounds, solver: Solver, limits: Limits) -> Outcome:
        model = solver.weights.model
        calls, kernel_values, operations = model.argmax_calls, model.kernel_values, solver.operations()
        seconds = dict(model.seconds)
        with progress_for(self.verbose) as progress:
            progress.start(f"{type(self.model).__name__} by {self._solver}, {len(training.pairs)} examples")
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
        solver.restore(JointSupport(examples, self._starts, outputs, self._beta, self._early), self._state)
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
            max_iter=self._passes,
            time_limit=self.time_limit,
            limit_of_precision="by rounding errors",
            stacklevel=3,
        )
