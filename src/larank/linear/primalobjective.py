"""The objective of the primal multiclass SVM: values, gradients, products with its Hessian, and preconditioners.

With the label kernel K ([primal] (1.2)), K = L L', the model is W with a column per column of L, and its scores are
X W L' + 1 b'. W is never formed: all W on the way have the form U L, with a table U that has a column per class. So the
weights of the classes are V = U K, |W|^2 = tr(U K U'), and the gradient in W is (U + X'G) L, where G has the
derivatives of the losses in the scores, see core/linear/primal.hpp. A table stands for what it is with L behind it, and
`dot` is the inner product of what two tables stand for. The biases b are the last row of U and V, and are neither
regularised nor touched by K.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from larank import _core
from larank.blocks.workers import Workers

Table = NDArray[Any]

_FIRST_SOFTMAX_GAMMA = 4.0  # of the smooth functions that stand for the maximum


@dataclass(frozen=True)
class PrimalLoss:
    """The loss of one example: a margin loss per wrong class, and how these are aggregated."""

    margin: str
    softmax_gamma: float
    smoothing: float

    def is_convex(self, n_classes: int) -> bool:
        """Whether the loss is convex in the scores.

        The interpolation is (1/g) log(1 + sum_u a_u), a_u = exp(g t_u) - 1, and convex if and only if
        sum_u a_u (a_u'^2 / (a_u a_u'') - 1) <= 1 everywhere. A term is never positive for the logistic loss with
        g >= 1; it comes up to 1 for g < 1 and for the straight part of a smoothed hinge, and to 1 - sqrt(e) / 2 for the
        squared hinge. The sum and the maximum of convex functions are convex.
        """
        if n_classes == 2 or self.softmax_gamma in (0.0, np.inf):
            return True
        if self.margin == "log_loss":
            return self.softmax_gamma >= 1
        return self.margin == "squared_hinge" and (n_classes - 1) * (1 - np.sqrt(np.e) / 2) <= 1

    @property
    def aggregation(self) -> str:
        """Its name in the core."""
        if self.softmax_gamma == 0:
            return "sum"
        return "interpolation" if np.isfinite(self.softmax_gamma) else "smoothed-maximum"


@dataclass(frozen=True)
class PrimalExamples:
    """What the losses are summed over."""

    X: Any  # float32 or float64, dense or CSR
    labels: NDArray[np.int32]
    costs: NDArray[np.float64]
    n_classes: int


def listed(X: Any) -> Any:
    """X, or a CSR matrix where a dense one is mostly zeros: passes take less time, at the price of some memory."""
    if issparse(X):
        return X
    arrays = _core.listed(X)
    return X if arrays is None else csr_matrix(arrays, X.shape)


@dataclass(frozen=True)
class Iterate:
    """A table, and the objective there.

    `value` is what is being minimised, `primal` the objective that was asked for, and `slack` what stands between
    `primal` and the optimum besides the gradient; both differ for the maximum alone, which is approached by smooth
    functions. `hidden` is how much lower the optimum may be because the biases are not exactly the
    best.
    """

    table: Table
    value: float
    gradient: Table
    primal: float
    slack: float
    bound: float  # 1/2 |gradient in W|^2
    hidden: float = 0.0

    @property
    def gap(self) -> float:
        """The distance of `primal` from the optimum at most."""
        return self.bound + self.slack + self.hidden


class PrimalObjective:
    """1/2 |W|^2 + sum_i c_i loss(scores of x_i, y_i), at tables U."""

    def __init__(
        self,
        examples: PrimalExamples,
        loss: PrimalLoss,
        label_kernel: NDArray[np.float64] | None,
        *,
        fit_intercept: bool,
        workers: Workers,
        offsets: NDArray[np.float64] | None = None,
    ) -> None:
        self.examples, self.loss, self.label_kernel = examples, loss, label_kernel
        self.fit_intercept = fit_intercept
        self.n_examples, self.n_features = examples.X.shape
        self._k = examples.n_classes
        self.is_smoothed = self._k > 2 and loss.aggregation == "smoothed-maximum"
        self.softmax_gamma = loss.softmax_gamma if np.isfinite(loss.softmax_gamma) else _FIRST_SOFTMAX_GAMMA
        self.smoothing = loss.smoothing
        self._session = self._make_session(offsets)
        self._tables = [self._session.table() for _ in range(1, self._session.stripes)]
        self.workers = workers
        self.latest: Iterate | None = None
        self._spare: list[Table] = []
        self.evaluations = self.products = 0
        self.seconds = {"passes": 0.0, "preconditioner": 0.0, "biases": 0.0}

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Add what the block takes to the seconds of its kind."""
        began = time.perf_counter()
        yield
        self.seconds[kind] += time.perf_counter() - began

    def _make_session(self, offsets: NDArray[np.float64] | None) -> Any:
        X = self.examples.X
        make: Callable[..., Any] = _core.primal_session  # of arrays or CSR parts, in either precision
        arrays: tuple[Any, ...] = (X,)
        if issparse(X):
            arrays = (X.data, X.indices, X.indptr.astype(np.int64, copy=False), X.shape[1])
        return make(
            *arrays,
            self.examples.labels,
            self.examples.costs,
            loss=self.loss.margin,
            aggregation=self.loss.aggregation if self._k > 2 else "sum",  # all are the same of one wrong class
            softmax_gamma=self.softmax_gamma,
            smoothing=self.loss.smoothing,
            classes=self._k,
            intercept=self.fit_intercept,
            **({} if offsets is None else {"offsets": offsets}),
        )

    def smooth(self, softmax_gamma: float, smoothing: float) -> None:
        """Choose the smooth functions that stand for the maximum and for the hinge."""
        self.softmax_gamma, self.smoothing = softmax_gamma, smoothing
        self._session.smooth(softmax_gamma, smoothing)

    # ---- Tables ----

    def zeros(self) -> Table:
        """A table of zeros."""
        table = self.unset()
        table[...] = 0
        return table

    def unset(self) -> Table:
        """A table that holds anything, of those given back or a new one: large ones are slow to get."""
        table: Table = self._spare.pop() if self._spare else self._session.table()
        return table

    def give_back(self, iterate: Iterate) -> None:
        """The tables of an iterate that nobody needs any more."""
        if iterate is not self.latest:
            self._spare += [iterate.table, iterate.gradient]

    def weights(self, U: Table) -> Table:
        """V = U K, and the biases as they are."""
        if self.label_kernel is None:
            return U
        V, d = self.zeros(), self.n_features
        V[:d, : self._k] = U[:d, : self._k] @ self.label_kernel
        V[d] = U[d]
        return V

    def dot(self, A: Table, B: Table) -> float:
        """The inner product of what two tables stand for."""
        return _inner(A, self.weights(B))

    def half_squared_norm(self, A: Table) -> float:
        """Without the biases."""
        d = self.n_features
        return 0.5 * _inner(A[:d], self.weights(A)[:d])

    # ---- Passes over the data ----

    def evaluate(self, U: Table) -> Iterate:
        """The objective and its gradient, in one pass over the data."""
        V, gradient, d = self.weights(U), self.unset(), self.n_features
        sums = self._striped(lambda stripe, out: self._session.evaluate(stripe, V, out), gradient)
        self.evaluations += 1
        gradient[:d] += U[:d]
        norm, bound = self.half_squared_norm(U), self.half_squared_norm(gradient)
        value, largest, mean = (sum(getattr(stripe, name) for stripe in sums) for name in ("value", "largest", "mean"))
        primal, slack = (norm + largest, largest - mean) if self.is_smoothed else (norm + value, 0.0)
        self.latest = Iterate(U, norm + value, gradient, primal, slack, bound)
        return self.latest

    def product(self, D: Table, out: Table) -> None:
        """The Hessian at the table of the last `evaluate`, times D, in one pass over the data."""
        V, d = self.weights(D), self.n_features
        self._striped(lambda stripe, part: self._session.product(stripe, V, part), out)
        self.products += 1
        out[:d] += D[:d]

    def _striped(self, work: Callable[[int, Table], Any], out: Table) -> list[Any]:
        """Do stripes in threads, each in a table of its own, and sum these up in their order."""
        tables = [out, *self._tables]
        found: list[Any] = [None] * len(tables)

        def do(stripe: int) -> None:
            found[stripe] = work(stripe, tables[stripe])

        with self.timed("passes"):
            self.workers.run(do, range(len(tables)))
            for table in self._tables:
                out += table
        return found

    def curvatures(self, examples: NDArray[np.int64]) -> NDArray[np.float64]:
        """c_i times the second derivative of the loss of each of these examples in the score of each class."""
        found: NDArray[np.float64] = self._session.curvatures(examples)
        return found

    def mean_curvatures(self) -> NDArray[np.float64]:
        """The same of all examples, as a mean over the classes."""
        found: NDArray[np.float64] = self._session.mean_curvatures()
        return found

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """The Euclidean norm of every example."""
        X = self.examples.X
        if issparse(X):
            table = csr_matrix((np.square(X.data, dtype=np.float64), X.indices, X.indptr), X.shape)
            squares: NDArray[np.float64] = table @ np.ones(X.shape[1])
        else:
            squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        lengths: NDArray[np.float64] = np.sqrt(squares)
        return lengths

    def scores(self) -> NDArray[np.float64]:
        """Those at the table of the last `evaluate`."""
        found: NDArray[np.float64] = self._session.scores().astype(np.float64)
        return found


def _inner(A: Table, B: Table) -> float:
    """sum_jm A_jm B_jm, added up in double."""
    a, b, width = A.reshape(-1), B.reshape(-1), 4096
    whole = len(a) // width * width
    parts = np.einsum("ij,ij->i", a[:whole].reshape(-1, width), b[:whole].reshape(-1, width))
    return float(parts.sum(dtype=np.float64)) + float(np.vdot(a[whole:], b[whole:]))
