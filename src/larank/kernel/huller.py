"""Hard margin kernel SVMs in one pass, or to any precision, by the Huller of Bordes (thesis, section 4.1).

The session (`core/kernel/huller.hpp`) keeps a point in the convex hull of either class, as a combination of support
patterns with coefficients alpha, and moves one towards the other. What a model is made of is their difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from larank.base import functions
from larank.data.models import persistable
from larank.data.schema import RANDOM_STATE, Scope, csr, equal, floats, integer, integers, number, row, several
from larank.declare import parameter
from larank.docstrings import with_paragraphs
from larank.kernel.machine import (
    FITTED_ON_A_STREAM,
    WEIGHTS,
    Algorithm,
    Expansion,
    Machine,
    OnlineClassifier,
    StreamTraining,
    session_class,
    signs,
)
from larank.parameters import Stopping
from larank.training import FromScratch, ObjectiveValues, Outcome

_Float = NDArray[np.float64]


class Huller(Algorithm):
    """The Huller, as the machine sees it."""

    solver = "huller"
    title = "Huller"
    absent = -1.0  # of a class without examples, every one so far was of the rest

    def session(self, dtype: np.dtype[Any], seed: int) -> Any:
        """A compiled session that has seen nothing."""
        return session_class("Huller", dtype)(seed=seed, memory_limit=int(self.model.memory_limit))

    def begin_training(self, training: StreamTraining) -> None:
        """Nothing is known of margins yet."""
        self._are_separated = False  # every class from the rest, when the objectives were last computed
        self._measured: _Measured | None = None  # by the last certificate

    def check(self, training: StreamTraining, outcome: Outcome) -> Outcome:
        """Where hulls meet, their points come together, and there is no margin to have converged to."""
        # A problem that has met examples of one side only has no distance yet.
        is_exact = outcome.exact and bool(_Points.of(training.session).has_both_sides.all())
        is_unfounded = outcome.status == "converged" and not self._are_separated
        return replace(outcome, exact=is_exact, status="precision" if is_unfounded else outcome.status)

    @property
    def limit_of_precision(self) -> str:
        """Why training could not go on, where it could not."""
        return (
            "where there was no margin between the convex hulls of two classes; if they meet, there is none, and a "
            "finite cost of examples on the wrong side would do, as with LaSVMClassifier(C=1)"
        )

    def estimate(self, training: StreamTraining) -> ObjectiveValues:
        """The distance of the points, and its bound by the margins seen on the way."""
        primal = training.session.objective
        return ObjectiveValues(primal, min(primal, training.session.estimated_bound), math.nan)

    def objectives(self, training: StreamTraining) -> FromScratch:
        """The distances of the points, and of the projections of all examples on the lines through them."""
        points = _Points.of(training.session)
        n_problems = points.signed.shape[1]
        squared_distance, middle = np.zeros(n_problems), np.zeros(n_problems)
        nearest, furthest = np.full((2, n_problems), np.inf), np.full((2, n_problems), -np.inf)
        for block, projected, signed in training.scanned(points.support, points.signed):  # <X_P - X_N, x>
            y = signs(block.labels, n_problems)
            alpha = signed * y
            squared_distance += (signed * projected).sum(axis=0)
            middle += (alpha * projected).sum(axis=0) / 2  # (|X_P|^2 - |X_N|^2) / 2
            outward = projected * y
            for side, sign in enumerate((-1, 1)):
                nearest[side] = np.minimum(nearest[side], np.where(y == sign, outward, np.inf).min(axis=0))
                used = np.where((alpha > 0) & (y == sign), outward, -np.inf)
                furthest[side] = np.maximum(furthest[side], used.max(axis=0, initial=-np.inf))
            yield
        largest = float(np.abs(points.products).max(initial=0))
        training.machine.look_at_objectives(float(squared_distance.min()) / 2, 0.0, largest)
        self._are_separated = bool((nearest.sum(axis=0) > 0).all())  # of a side without examples, it is infinite
        self._measured = _Measured(points.signed, squared_distance, middle)
        is_apart = points.scale(np.dtype(np.float64), squared_distance) > 0
        return _certificate(np.where(is_apart, squared_distance, 0), middle, nearest, furthest)

    def expansion(self, session: Any) -> Expansion:
        """The decision function, which is 1 and -1 at the two points."""
        points = _Points.of(session)
        is_measured = self._measured is not None and np.array_equal(self._measured.signed, points.signed)
        measured = self._measured if is_measured else None
        coefficients, intercepts = points.decision(np.dtype(session.dtype), measured)
        return replace(points.support, coefficients=csr_matrix(coefficients), intercepts=intercepts)

    def keep(self, session: Any, expansion: Expansion) -> None:
        """The constants of the decision function, and what it takes to go on."""
        model, points = self.model, _Points.of(session)
        model.intercept_ = model._intercepts(expansion, self.absent)
        model._alpha, model._labels_of_support = points.support.coefficients, points.support.labels
        model._state = session.state

    def restore(self, machine: Machine) -> None:
        """Let a fresh session take over the points."""
        model = self.model
        classes, random, products, begun = model._state
        machine.session.state = (classes, random, [list(p) for p in products], [list(b) for b in begun])
        machine.restore(model, model._labels_of_support, np.ones(len(model.support_)), model._alpha)

    def operations(self, session: Any) -> dict[str, int]:
        """How often each operation was performed."""
        names = ("process", "reprocess", "insertions", "removals")
        return {name: getattr(session.counters, name) for name in names}


_SAME_DISTANCE = 1e-10  # relative difference that is not a loss of digits


class _Measured(NamedTuple):
    """What a certificate has computed about the points with these coefficients."""

    signed: _Float
    squared_distance: _Float  # |X_P - X_N|^2
    middle: _Float  # (|X_P|^2 - |X_N|^2) / 2


@dataclass(frozen=True)
class _Points:
    """The points X_P and X_N of every problem of a session."""

    support: Expansion  # its coefficients are alpha
    signed: _Float  # the coefficients of X_P - X_N
    products: _Float  # |X_N|^2, <X_N, X_P> and |X_P|^2, a row a problem

    @classmethod
    def of(cls, session: Any) -> _Points:
        support = Expansion.of(session)
        alpha = support.dense
        products = np.array(session.state[2])[-alpha.shape[1] :]  # while there is one problem, the last has it
        return cls(support, alpha * signs(support.labels, alpha.shape[1]), products)

    @property
    def has_both_sides(self) -> NDArray[np.bool_]:
        """Whether each problem has met examples of both sides."""
        return np.logical_and((self.signed > 0).any(axis=0), (self.signed < 0).any(axis=0), dtype=np.bool_)

    def scale(self, dtype: np.dtype[Any], squared_distance: _Float) -> _Float:
        """2 / |X_P - X_N|^2; zero where the points coincide in this precision, or one of them is missing."""
        negative, _, positive = self.products.T
        are_apart = squared_distance > 16 * np.finfo(dtype).eps * (np.abs(negative) + np.abs(positive))
        return np.divide(2, squared_distance, out=np.zeros(len(negative)), where=are_apart & self.has_both_sides)

    def decision(self, dtype: np.dtype[Any], measured: _Measured | None) -> tuple[_Float, _Float]:
        """Coefficients and constants of f, (4.5) times 2 / |X_P - X_N|^2; zeros where the points coincide.

        Without `measured`, |X_P - X_N|^2 and (|X_P|^2 - |X_N|^2) / 2 are as they were summed up on the way.
        """
        negative, cross, positive = self.products.T
        squared_distance, middle = negative - 2 * cross + positive, (positive - negative) / 2
        # A model does not depend on whether it was certified, unless sums on the way have lost digits.
        if measured is not None:
            dtype = np.dtype(np.float64)
            if not np.allclose(squared_distance, measured.squared_distance, _SAME_DISTANCE, 0):
                squared_distance, middle = measured.squared_distance, measured.middle
        scale = self.scale(dtype, squared_distance)
        # A problem that has met one side only says that all is of that side.
        one_sided = np.where((self.signed > 0).any(axis=0), 1.0, -1.0)
        constants: _Float = np.where(self.has_both_sides, -scale * middle, one_sided)
        return self.signed * scale, constants


def _certificate(
    squared_distance: _Float,
    middle: _Float,
    nearest: _Float,
    furthest: _Float,
) -> ObjectiveValues:
    """Half the squared distance, its lower bound as in core/kernel/huller.hpp, and the largest violation of a margin.

    `nearest` are the smallest y <X_P - X_N, x> of each side, `furthest` the largest of its support vectors.
    """
    apart = squared_distance > 0
    one = np.where(apart, squared_distance, 1)
    between = np.where(np.isfinite(nearest).all(axis=0), nearest.sum(axis=0), 0)
    bound = np.where(apart, np.maximum(between, 0) ** 2 / one, 0)
    # y f(x) = 2 (y <w, x> - y middle) / |w|^2, and support vectors have y f(x) = 1, all others at least that.
    shift = np.array([[1.0], [-1.0]]) * middle
    short = 1 - 2 * (nearest + shift) / one
    beyond = 2 * (furthest + shift) / one - 1
    violations = np.where(apart & np.isfinite(short), np.maximum(short, beyond), 0)
    return ObjectiveValues(
        float(squared_distance.sum()) / 2, float(np.minimum(bound, squared_distance).sum()) / 2, float(violations.max())
    )


def _n_problems(scope: Scope) -> int:
    """In the state of a session."""
    return max(2, scope.sizes["n_arrived"])


@with_paragraphs
@persistable(
    **FITTED_ON_A_STREAM,
    coef_=WEIGHTS,
    intercept_=floats(functions),
    _state=row(
        equal("n_arrived"),
        RANDOM_STATE,
        several(several(number(), 3), _n_problems),
        several(several(integer(), 3), _n_problems),
    ),
    _alpha=csr("n_support", "n_problems"),
    _labels_of_support=integers("n_support", below="n_arrived", dtype="int32"),
)
class HullerClassifier(Stopping, OnlineClassifier):
    """Hard margin support vector machine trained online, as the nearest points of two convex hulls.

    One pass over the examples comes near the maximum margin; further passes reach it. It is for classes that the
    kernel can separate, and for little else: one mislabelled example among the others of its class leaves no margin.
    More than two classes are separated each from the rest.

    Attributes
    ----------
    [model]
    dual_coef_ : csr_matrix of shape (n_support, n_classes), or (n_support, 1) with two classes
        Coefficients of the decision function, which is 1 and -1 at the two nearest points.
    intercept_ : ndarray of shape (n_classes,), or (1,) with two classes
        Constants of the decision function.
    [coef_]
    result_ : Result
        The certificate: `primal` is half the squared distance of the points found, summed over the problems, `dual` a
        lower bound of what it can become. The hard margin SVM of one problem has the objective ``1 / optimum``. `dual`
        is zero as long as the model does not separate the classes.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from larank import HullerClassifier
    >>> X = np.array([[-2.0, 0.0], [-1.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    >>> model = HullerClassifier("linear", max_iter=20, random_state=0).fit(X, ["left", "left", "right", "right"])
    >>> model.predict([[-5.0, 0.0], [5.0, 0.0]]).tolist()
    ['left', 'right']
    >>> round(model.result_.primal, 6)
    2.0
    """

    tol: float | None = parameter(
        "Relative gap, between 0 and 1, between the squared distance of the hulls and its lower bound, at which "
        "training stops. By default `max_iter` passes are made.",
        default=None,
        above=0,
        below=1,
    )

    _ALGORITHM = Huller

    def __sklearn_tags__(self) -> Any:
        """Kernels that may separate little make it a poor classifier: hulls overlap, and there is no margin."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self.kernel in ("linear", "sigmoid", "precomputed")
        return tags
