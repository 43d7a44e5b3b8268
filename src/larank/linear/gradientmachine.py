"""A compiled session of stochastic gradient descent that grows with the features and classes of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from larank import _core
from larank.linear.shrinking import best_factor
from larank.training import FromScratch, Objectives, ObjectiveValues

State = dict[str, NDArray[Any]]
"""What a session was, as arrays: tables [feature][function], the last row that of the intercept, and vectors."""

_ROWS_AT_ONCE = 65_536  # of an evaluation, between two looks at Ctrl-C
_CACHE_BYTES = 500_000
_SCORE_OF_NEWCOMERS = -1.0  # of a class that no example had so far: what a margin asks for


@dataclass(frozen=True)
class LabelledRows:
    """Examples as a session takes them, with the numbers of their labels and the costs of each.

    `rest_costs` act in the problems of the classes that are not the example's own, one class against the rest; with
    two classes there is one problem, and `costs` act on both sides.
    """

    X: Any
    labels: NDArray[np.int32]
    costs: NDArray[np.float64]
    rest_costs: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, rows: NDArray[np.intp]) -> LabelledRows:
        """Those in these rows."""
        return LabelledRows(self.X[rows], self.labels[rows], self.costs[rows], self.rest_costs[rows])


@dataclass(frozen=True)
class GradientProblem:
    """What is minimised, and by which algorithm."""

    algorithm: str
    loss: str
    formulation: str
    alpha: float
    intercept: bool

    @classmethod
    def of(cls, model: Any) -> GradientProblem:
        """That of an estimator."""
        return cls(model.algorithm, model.loss, model.formulation, float(model.alpha), bool(model.fit_intercept))

    @property
    def is_joint(self) -> bool:
        """Whether several functions have one loss."""
        return self.formulation == "joint"


class Start(NamedTuple):
    """How the first step is made.

    `skip` is the number of visits between two regularisations, `scaling` a diagonal by which averaged SGD evens out the
    scales of the features, the intercept last.
    """

    t0: float
    skip: int
    scaling: NDArray[np.float64] | None = None


def visits_per_regularisation(X: Any, algorithm: str) -> int:
    """`skip` by the sparsity of the examples, [thesis] section 3.1.2."""
    if algorithm == "sgd":
        return 1
    return max(1, round(16 / (share_of_values(X) or 1.0)))  # examples without a value tell nothing


def share_of_values(X: Any) -> float:
    """How many of the values are not zero, by the first rows."""
    n = min(X.shape[0], 10_000)
    stored = X.indptr[n] - X.indptr[0] if issparse(X) else np.count_nonzero(X[:n])
    return float(stored) / float(max(1, n * X.shape[1]))


def precision_of_weights(X: Any, n_labels: int) -> np.dtype[Any]:
    """Single where the examples are, or where several functions in double would not fit the second cache."""
    large = n_labels > 2 and bytes_of_table(X.shape[1], n_labels, np.dtype(np.float64)) > _CACHE_BYTES
    return np.dtype(np.float32) if large or X.dtype == np.float32 else np.dtype(np.float64)


def bytes_of_table(n_features: int, n_labels: int, dtype: np.dtype[Any]) -> int:
    """Of one number per feature and function, as they lie in memory."""
    lanes = 64 // dtype.itemsize
    width = 1 if n_labels <= 2 else -(-n_labels // lanes) * lanes
    return (n_features + 1) * width * int(dtype.itemsize)


def bytes_of_machine(X: Any, n_labels: int, algorithm: str) -> int:
    """What a machine for such examples takes, about: its tables, and a copy of each for the model and for growing."""
    tables = 24 if algorithm == "olbfgs" else 3
    return 2 * tables * bytes_of_table(X.shape[1], n_labels, precision_of_weights(X, n_labels))


class GradientMachine:
    """Weights of the functions of all labels, and the algorithm that moves them.

    Labels are numbered from 0. Up to two of them have one function, that of label 1; more have one each.
    """

    def __init__(
        self, problem: GradientProblem, dtype: np.dtype[Any], n_features: int, n_labels: int, start: Start, seed: int
    ) -> None:
        self.problem, self.dtype, self.start = problem, dtype, start
        self.factor = 1.0  # what the weights are multiplied by in the model
        self.n_features, self.n_labels = n_features, n_labels
        self.session = self._fresh(seed)
        if start.scaling is not None:
            # No feature shrinks to less than half at a time because of its scale.
            most = max(1.0, start.t0 / start.skip)
            self.session.restore({**self.session.state(), "diagonal": np.minimum(start.scaling, most)})

    def _fresh(self, seed: int) -> Any:
        session = _core.SgdSession32 if self.dtype == np.float32 else _core.SgdSession64
        return session(
            algorithm=self.problem.algorithm,
            loss=self.problem.loss,
            joint=self.problem.is_joint and self.functions > 1,
            functions=self.functions,
            features=self.n_features,
            intercept=self.problem.intercept,
            lambda_=self.problem.alpha,
            t0=self.start.t0,
            skip=self.start.skip,
            seed=seed,
        )

    @classmethod
    def from_state(cls, problem: GradientProblem, n_labels: int, start: Start, state: State) -> GradientMachine:
        """One that goes on where another was."""
        weights = state["weights"]
        machine = cls(
            problem, weights.dtype, len(weights) - problem.intercept, n_labels, start._replace(scaling=None), 0
        )
        machine.session.restore(state)
        return machine

    def state(self) -> State:
        """All that another machine needs to go on."""
        return dict(self.session.state())

    @property
    def functions(self) -> int:
        """How many there are."""
        return 1 if self.n_labels <= 2 else self.n_labels

    def start_from(self, weights: NDArray[Any]) -> None:
        """Begin at these weights, [feature][function]."""
        state = self.state()
        for name in ("weights", "average"):
            if name in state:
                state[name] = np.ascontiguousarray(weights, self.dtype)
        self.session.restore(state)

    def feed(self, rows: LabelledRows, *, shuffled: bool) -> None:
        """Work on these from now on; a machine in single precision takes examples in double, too."""
        self.factor = 1.0
        X = rows.X if self.dtype == np.float32 else rows.X.astype(np.float64, copy=False)
        if issparse(X):
            arrays: tuple[Any, ...] = (X.data, X.indices, X.indptr.astype(np.int64, copy=False), X.shape[1])
        else:
            arrays = (X,)
        self.session.feed(*arrays, rows.labels, rows.costs, rows.rest_costs, shuffled=shuffled)

    def objectives(self, rows: LabelledRows, *, with_dual: bool) -> FromScratch:
        """Of the problem of these examples, from scratch; without the dual, its bound is 0."""
        self.feed(rows, shuffled=False)
        self.session.begin_evaluation(with_dual=with_dual)
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            self.session.evaluate(first, min(len(rows), first + _ROWS_AT_ONCE))
            yield
        found: Objectives = self.session.objectives()
        return found

    def objectives_of_model(self, rows: LabelledRows, *, with_dual: bool) -> FromScratch:
        """Return the same of a model that is shrunk if it is worse than w = 0."""
        at = yield from self.objectives(rows, with_dual=with_dual)
        at_zero = self.session.loss_at_zero
        if not at.primal > at_zero:
            return at
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            self.session.evaluate_shrunk(first, min(len(rows), first + _ROWS_AT_ONCE))
            yield
        half_square = self.problem.alpha / 2 * self.session.squared_norm
        self.factor, primal = best_factor(half_square, np.array(self.session.shrunk_losses()), at_zero)
        return ObjectiveValues(primal, at.dual, at.violation)

    def weights(self) -> NDArray[Any]:
        """The model, [feature][function], the last row that of the intercept."""
        weights: NDArray[Any] = self.session.weights()
        return weights * weights.dtype.type(self.factor) if self.factor != 1 else weights

    def grow(self, n_features: int, n_labels: int) -> bool:
        """Make room for more features and labels, whose clocks start now; whether there was need to."""
        if n_features <= self.n_features and n_labels <= self.n_labels:
            return False
        before, was = self.state(), self.functions
        self.n_features, self.n_labels = max(n_features, self.n_features), max(n_labels, self.n_labels)
        state = {
            name: self._widened(values, name) if self._has_rows(values, before) else values
            for name, values in before.items()
        }
        if self.functions != was:
            state = self._with_more_functions(state, was)
        self.session = self._fresh(0)
        self.session.restore(state)
        return True

    def _has_rows(self, values: NDArray[Any], state: Mapping[str, NDArray[Any]]) -> bool:
        """Whether an array of the state has an entry per feature."""
        return len(values) == len(state["weights"]) and (values.ndim == 2 or values is state.get("diagonal"))

    def _widened(self, values: NDArray[Any], name: str) -> NDArray[Any]:
        """With rows for the new features before that of the intercept."""
        last = len(values) - self.problem.intercept
        lacking = self.n_features - last
        # The diagonal of averaged SGD has one like that of others, that of SGD-QN the one it begins with.
        fills = {"diagonal": lambda: float(np.median(values)), "scaling": lambda: 1 / self.problem.alpha}
        fill = fills.get(name, float)()
        new = np.full((lacking, *values.shape[1:]), fill, values.dtype)
        return np.concatenate([values[:last], new, values[last:]])

    def _with_more_functions(self, state: State, was: int) -> State:
        """Tables with columns for the new ones; a single function becomes two first."""
        one_each = 0.5 if self.problem.is_joint else 1.0
        grown = dict(state)
        for name, values in state.items():
            if values.ndim != 2:
                continue
            is_scaling = name == "scaling"
            old = values
            if was == 1:
                old = np.hstack([values, values]) if is_scaling else np.hstack([-values, values]) * one_each
            new = np.zeros((len(old), self.functions - old.shape[1]), values.dtype)
            if is_scaling:
                new[:] = 1 / self.problem.alpha
            elif self.problem.intercept and name in ("weights", "average"):
                new[-1] = _SCORE_OF_NEWCOMERS
            grown[name] = np.ascontiguousarray(np.hstack([old, new]), values.dtype)
        if "steps" in state:  # the pairs of online L-BFGS are of other gradients
            grown["steps"] = state["steps"] * [1, 0]
        born = np.repeat(state["born"], 2) if was == 1 else state["born"]
        grown["born"] = np.pad(born, (0, self.functions - len(born)), constant_values=state["counts"][0])
        return grown
