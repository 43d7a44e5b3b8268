"""Kernel perceptrons in passes over a stream: perceptron, averaged, with a budget, and passive-aggressive.

The session (`core/kernel/perceptron.hpp`) has one column of coefficients for two classes, and a column per class for
more. It minimises nothing, so there are no objectives, only mistakes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_matrix

from larank import parameters
from larank.base import functions
from larank.data.models import persistable
from larank.data.schema import Schema, SchemaError, Scope, csr, floats, integer, several
from larank.declare import ParameterError, parameter
from larank.docstrings import with_paragraphs
from larank.kernel.machine import (
    FITTED_ON_A_STREAM,
    WEIGHTS,
    Algorithm,
    CountsSupport,
    Expansion,
    Machine,
    OnlineClassifier,
    StreamTraining,
    session_class,
)
from larank.parameters import Passes, Weighted
from larank.training import FromScratch, ObjectiveValues


def _check_columns(name: str, value: Any, scope: Scope) -> None:
    """Coefficients of a session, which has no more columns than there are classes."""
    csr("n_support", "n_columns")(name, value, scope)
    if value.shape[1] > scope.sizes["n_classes"]:
        raise SchemaError(f"{name} must have at most {scope.sizes['n_classes']} columns, got {value.shape[1]}")


_FITTED: Schema = {
    **FITTED_ON_A_STREAM,
    "support_costs_": floats("n_support", least=0),
    "coef_": WEIGHTS,
    "intercept_": floats(functions),
    "_beta": _check_columns,
    "_early": _check_columns,
    "_counters": several(integer(), 4),
}


class _OnMistakes(Algorithm):
    """What the perceptrons share."""

    fixed = (*Algorithm.fixed, "fit_intercept")
    keeps_rows = False
    certifies = False

    def begin_training(self, training: StreamTraining) -> None:
        """From the third class on there is a column for each."""
        if len(self.model.classes_) > 2:
            training.session.split_column()

    def estimate(self, training: StreamTraining) -> ObjectiveValues:
        """There are no objectives."""
        return ObjectiveValues(math.nan, math.nan, math.nan)

    def objectives(self, training: StreamTraining) -> FromScratch:
        """There are none."""
        yield from ()
        return self.estimate(training)

    def expansion(self, session: Any) -> Expansion:
        """The coefficients after the last example, or the average of those after every one."""
        last = Expansion.of(session)
        if not self.model.average:
            return last
        average = last.coefficients.copy()
        average.data -= session.early / session.state[0]
        return replace(last, coefficients=average)

    def keep(self, session: Any, expansion: Expansion) -> None:
        """Intercepts, and what it takes to go on, columns in the order of arrival."""
        model, last = self.model, Expansion.of(session)
        model.support_costs_ = expansion.costs
        model.intercept_ = model._intercept(model.dual_coef_)
        model._counters = session.state
        beta = last.coefficients
        model._beta, model._early = beta, csr_matrix((session.early, beta.indices, beta.indptr), shape=beta.shape)

    def restore(self, machine: Machine) -> None:
        """Let a fresh session take over the model; the label of a pattern is the class with the largest coefficient."""
        model, session, beta = self.model, machine.session, self.model._beta
        is_single = model.dual_coef_.shape[1] == 1
        if not is_single:
            session.split_column()
        values = np.split(beta.data, beta.indptr[1:-1])
        columns = np.split(beta.indices, beta.indptr[1:-1])
        labels = [
            int(value[0] > 0) if is_single else int(column[value.argmax()])
            for value, column in zip(values, columns, strict=True)
            if len(value)
        ]
        machine.restore(model, labels, model.support_costs_, beta)
        session.early = model._early.data
        session.state = model._counters

    def _counts(self, session: Any) -> dict[str, int]:
        """Of all calls so far."""
        return dict(zip(("visits", "mistakes", "updates", "removals"), session.state, strict=True))

    def operations(self, session: Any) -> dict[str, int]:
        """How often what happened to examples and support patterns."""
        counts = self._counts(session)
        del counts["visits"]
        return counts

    def argmax_calls(self, session: Any) -> int:
        """One for each visit."""
        return self._counts(session)["visits"]

    def details(self, session: Any) -> dict[str, Any]:
        """The share of mistakes so far."""
        counts = self._counts(session)
        return {"online_error": counts["mistakes"] / max(1, counts["visits"])}


class Perceptron(_OnMistakes):
    """The perceptron, as the machine sees it."""

    solver = "perceptron"
    title = "Kernel perceptron"
    fixed = (*_OnMistakes.fixed, "margin", "max_support")

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.keeps_rows = model.max_support is not None

    def session(self, dtype: np.dtype[Any], seed: int) -> Any:
        """A compiled session that has seen nothing."""
        model = self.model
        options = {
            "margin": float(model.margin),
            "budget": None if model.max_support is None else int(model.max_support),
        }
        return session_class("KernelPerceptron", dtype)(**options, memory_limit=int(model.memory_limit))


class PassiveAggressive(_OnMistakes):
    """The passive-aggressive rule, as the machine sees it."""

    solver = "passive-aggressive"
    title = "Passive-aggressive"
    fixed = (*_OnMistakes.fixed, "loss")

    def session(self, dtype: np.dtype[Any], seed: int) -> Any:
        """A compiled session that has seen nothing."""
        model = self.model
        return session_class("KernelPassiveAggressive", dtype)(loss=model.loss, memory_limit=int(model.memory_limit))


@with_paragraphs
@persistable(**_FITTED)
class KernelPerceptron(Weighted, Passes, CountsSupport, OnlineClassifier):
    """Perceptron with a kernel: an example that is misclassified when it comes joins the support patterns.

    With two classes it is one decision function ``f``, and an example with ``y f(x) <= margin`` adds ``y k(x, .)`` to
    it. With more, every class has a function, and an example adds ``k(x, .)`` to that of its label and takes it from
    that of the best wrong class, if it is not more than `margin` below. There is no bias but that of `fit_intercept`.

    Attributes
    ----------
    [model]
    [n_support_]
    dual_coef_ : csr_matrix of shape (n_support, n_classes), or (n_support, 1) with two classes
        The coefficients. With two classes, those of the second are positive.
    support_costs_ : ndarray of shape (n_support,)
        The weights of the support patterns.
    [intercept_]
    [coef_]
    result_ : Result
        Counts, seconds and the history with the error on examples as they came. A perceptron minimises no objective:
        `primal`, `dual` and `gap` are not numbers.

    Notes
    -----
    A class takes part from its first example on. If `partial_fit` meets a third class, the function of the first two
    becomes one for each; name all `classes` in the first call where calls with parts of a stream must make the same
    model as one call with all of it.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, algorithms 2 and 4.
    Freund, Schapire. Large Margin Classification Using the Perceptron Algorithm. ICML 1998.
    Crammer, Kandola, Singer. Online Classification on a Budget. NIPS 16, 2004.

    Examples
    --------
    >>> from larank import KernelPerceptron
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> X, y = letter.X_train[:4000].astype("float32"), letter.y_train[:4000]
    >>> model = KernelPerceptron(average=True, gamma=0.025, max_iter=5, random_state=0).fit(X, y)
    >>> bool(model.score(letter.X_test.astype("float32"), letter.y_test) > 0.85)
    True
    """

    average: bool = parameter(
        "Whether the decision function is the average of those after every example, which is more stable, instead of "
        "the last one.",
        default=False,
    )
    margin: float = parameter(
        "An example updates the model if its score is at most this much above the other class. 0 is the perceptron.",
        default=0.0,
        least=0,
    )
    max_support: int | None = parameter(
        "Maximum number of support vectors. If one more is added, the one that is classified best without its own "
        "coefficients is removed. Needs ``average=False``. By default there is no maximum, and no kernel values "
        "between support vectors are kept.",
        default=None,
        least=1,
    )
    fit_intercept: bool = parameter(
        "Whether to add 1 to all kernel values, which gives every class a regularised bias.", default=False
    )
    class_weight: Mapping[Any, float] | str | None = parameter(
        'Factors on the steps for the examples of each class. "balanced" makes them inversely proportional to the '
        "class frequencies. By default all are 1.",
        default=None,
        check=parameters.class_weights,
        choices=("balanced",),
        form="dict",
    )

    _ALGORITHM = Perceptron

    def _check_together(self) -> None:
        super()._check_together()
        if self.average and self.max_support is not None:
            raise ParameterError(
                "max_support",
                f"must be None with average=True, because removed support vectors would remain in the average; got "
                f"{self.max_support!r}",
            )


@with_paragraphs
@persistable(**_FITTED)
class KernelPassiveAggressive(Weighted, Passes, CountsSupport, OnlineClassifier):
    """Passive-aggressive classifier with a kernel: an example within the margin of 1 makes the step that frees it.

    With two classes it is one decision function ``f``. An example with ``y f(x) < 1`` adds ``tau y k(x, .)`` to it,
    with ``tau = min(C, (1 - y f(x)) / k(x, x))``. With more classes, each has a function. An example whose score is not
    1 above that of the best wrong class adds ``tau k(x, .)`` to the function of its label and takes it from that of
    the wrong class, with ``tau = min(C, loss / (2 k(x, x)))``. This is PA-I, the step of MIRA, and of PROCESSNEW in
    LaRank, for one wrong class. There is no bias but that of `fit_intercept`.

    Attributes
    ----------
    [model]
    [n_support_]
    dual_coef_ : csr_matrix of shape (n_support, n_classes), or (n_support, 1) with two classes
        The coefficients. With two classes, those of the second are positive.
    support_costs_ : ndarray of shape (n_support,)
        `C` times the weights of the support patterns.
    [intercept_]
    [coef_]
    result_ : Result
        Counts, seconds and the history with the error on examples as they came. Each step solves a problem of its own
        and all together solve none: `primal`, `dual` and `gap` are not numbers.

    Notes
    -----
    A class takes part from its first example on. If `partial_fit` meets a third class, the function of the first two
    becomes one for each; name all `classes` in the first call where calls with parts of a stream must make the same
    model as one call with all of it.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, algorithm 3.
    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer. Online Passive-Aggressive Algorithms. JMLR 7, 2006.
    Crammer, Singer. Ultraconservative Online Algorithms for Multiclass Problems. JMLR 3, 2003.

    Examples
    --------
    >>> from larank import KernelPassiveAggressive
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> X, y = letter.X_train[:4000].astype("float32"), letter.y_train[:4000]
    >>> model = KernelPassiveAggressive(C=10, gamma=0.025, random_state=0).fit(X, y)
    >>> bool(model.score(letter.X_test.astype("float32"), letter.y_test) > 0.85)
    True
    """

    loss: Literal["hinge", "squared_hinge"] = parameter(
        '"hinge" is PA-I, whose step is limited by `C`; "squared_hinge" is PA-II with the step ``tau = loss / (k(x, '
        "x) + 1 / (2 C))``, and twice k(x, x) with more than two classes. The names are those of scikit-learn's "
        "`PassiveAggressiveClassifier`.",
        default="hinge",
    )
    average: bool = parameter(
        "Whether the decision function is the average of those after every example, which is more stable, instead of "
        "the last one.",
        default=False,
    )
    C: float = parameter(
        'Aggressiveness: the largest step with ``loss="hinge"``; with the squared loss all steps are shortened. '
        "Smaller values are more robust to noise.",
        default=1.0,
        above=0,
    )
    fit_intercept: bool = parameter(
        "Whether to add 1 to all kernel values, which gives every class a regularised bias.", default=False
    )

    _ALGORITHM = PassiveAggressive
