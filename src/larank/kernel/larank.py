"""Kernel multiclass SVMs in one pass, or to any precision, by LaRank of Bordes et al. (ICML 2007).

The session (`core/kernel/larank.hpp`) takes new examples and goes back to old ones as its schedule says. A model is
taken after sweeps over the support patterns, and the stream goes on as if they had not been. Every epoch leaves
smaller violations alone than the one before. With the linear kernel the session keeps weights instead of kernel values,
and the model is their average over the stream. Where there may be so many patterns and no more, one leaves for every
one that comes (`core/kernel/forgetting.hpp`), and the model is the average of the coefficients of those that stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from larank.base import functions
from larank.costs import checked_label_costs, hard_objective, smallest_margin
from larank.data.models import persistable
from larank.data.schema import RANDOM_STATE, csr, floats, number, row, several
from larank.declare import ParameterError, parameter
from larank.docstrings import with_paragraphs
from larank.kernel.blockwise import BlockCounters
from larank.kernel.devicemachine import DeviceMachine
from larank.kernel.linearmachine import LinearMachine, weights_of
from larank.kernel.machine import (
    FITTED_ON_A_STREAM,
    WEIGHTS,
    Algorithm,
    CheckpointedClassifier,
    CountsSupport,
    Expansion,
    Machine,
    StreamTraining,
    estimate_by_losses,
    primal_by_losses,
    session_class,
)
from larank.parameters import BlockSteps, LaRank, MulticlassProblem, StoppingByGain, Weighted
from larank.training import FromScratch, ObjectiveValues, Outcome, SampledObjectives

_VISITS_AT_ONCE = 256  # of the finish, well under a second


class OnlineLaRank(Algorithm):
    """LaRank, as the machine sees it."""

    solver = "larank"
    title = "LaRank"
    keeps_weights = True
    takes_samples = True
    kept = ("_tau",)
    fixed = (*(*Algorithm.fixed, "fit_intercept", "label_costs", "average", "max_support", "solver"),)

    @property
    def _switches(self) -> LaRank:
        solver = self.model.solver
        return solver if isinstance(solver, LaRank) else LaRank()

    @property
    def needs_snapshot(self) -> bool:
        """What patterns that were let go have left behind is in no attribute of the model."""
        return self.model.max_support is not None

    @property
    def _has_bound(self) -> bool:
        """Whether the dual objective of the session is one: not where coefficients went over to other patterns."""
        model = self.model
        return model.max_support is None or self._switches.forget == "oldest" or model.kernel == "linear"

    def check_classes(self, classes: NDArray[Any]) -> None:
        """Raise unless the label costs are margins between these classes."""
        if self.model.label_costs is not None:
            checked_label_costs(self.model.label_costs, classes)

    def machine(self, X: Any, seed: int) -> Machine:
        """One on a device, if it is given; one that keeps weights, for the linear kernel."""
        if self.model._device is not None:
            kernel, limit = self.model._kernel_from(X), float(self.model.memory_limit)
            return DeviceMachine(kernel, X, self.model._device, limit, self._switches.tau, seed)
        if self.model.kernel != "linear":
            return super().machine(X, seed)
        self.model._resolved_kernel(X)  # checks its parameters
        options = {"features": X.shape[1], "intercept": bool(self.model.fit_intercept), "averages": self._averages}
        session = session_class("LinearLaRank", X.dtype)(**self._settings(seed), **options)
        return LinearMachine(session, X)

    def session(self, dtype: np.dtype[Any], seed: int) -> Any:
        """A compiled session that has seen nothing."""
        options = {"memory_limit": int(self.model.memory_limit), "averages": self._averages}
        return session_class("KernelLaRank", dtype)(**self._settings(seed), **options)

    @property
    def _averages(self) -> bool:
        """Whether the model is an average: not of kernel coefficients, unless the patterns are few that stay.

        Hard margins are those of the last weights: the average has others, from before they were met. Where the oldest
        patterns are let go, the stream drifts, and old weights mislead.
        """
        model = self.model
        if model.average != "auto":
            return bool(model.average)
        if not math.isfinite(model.C) or (model.kernel != "linear" and model.max_support is None):
            return False
        return model.max_support is None or self._switches.forget == "least"

    def _settings(self, seed: int) -> dict[str, Any]:
        switches = self._switches
        operations = switches.operations
        return {
            "schedule": switches.schedule or "adaptive",
            "n_reprocess": 1 if switches.n_reprocess is None else int(switches.n_reprocess),
            "operations": [operations] if isinstance(operations, str) else list(operations),
            "tau": float(switches.tau),
            "seed": seed,
            "max_patterns": int(self.model.max_support or 0),
            "forget": switches.forget,
        }

    def begin_training(self, training: StreamTraining) -> None:
        """Tell the session the margins between the classes that have arrived."""
        self._tau = float(self._switches.tau)
        arrived = len(self.model._arrived)
        self._margins = np.eye(arrived)  # 1 - Delta
        if self.model.label_costs is not None:
            columns = self.model._columns()
            delta = checked_label_costs(self.model.label_costs, self.model.classes_)
            self._margins = np.ascontiguousarray(1 - delta[np.ix_(columns, columns)])
            training.session.set_margins(self._margins)

    def begin_epoch(self, training: StreamTraining) -> Iterator[None]:
        """Look closer than before."""
        self._tau /= 4
        training.session.set_tau(self._tau)
        yield from ()

    def settle(self, training: StreamTraining) -> Iterator[None]:
        """Sweep over the support patterns; where training goes on until the gap is closed, the passes do that."""
        if not training.settings.stops_at_gap:
            while not training.feed.finish_some(_VISITS_AT_ONCE):
                yield

    def estimate(self, training: StreamTraining) -> ObjectiveValues:
        """By the losses of the examples as they came."""
        if self._has_bound:
            return estimate_by_losses(training)
        return ObjectiveValues(primal_by_losses(training), math.nan, math.nan)

    def objectives(self, training: StreamTraining) -> FromScratch:
        """[larank] (3) and (7), and the largest violation of an example."""
        expansion = self.expansion(training.session)
        beta, _ = expansion.for_classes(len(self._margins), absent=0.0)
        linear = float((self._margins[expansion.labels] * beta).sum())
        squared_norm = violation = 0.0
        losses, margin = training.losses(), math.inf
        for block, scores, own in training.scanned(expansion, beta, training.scanned_rows):
            of_label = np.arange(len(block)), block.labels
            of_model = training.machine.model_scores(block.X, scores)
            margin = min(margin, smallest_margin(of_model, block.labels, 1 - self._margins))
            g = self._margins[block.labels] - of_model  # [larank] (8)
            others = g.copy()
            others[of_label] = np.inf
            losses.add(block.ids, block.costs * (g[of_label] - g.min(axis=1)), g[of_label] - others.min(axis=1))
            g = self._margins[block.labels] - scores
            worst = g.min(axis=1)
            squared_norm += float((own * scores).sum())
            bound = np.zeros_like(g)
            bound[of_label] = block.costs
            best = np.where(own < bound, g, -np.inf).max(axis=1)
            violation = max(violation, float((best - worst).max()))
            yield
        if training.sample is not None or self.model.max_support is not None:  # the session has kept the other terms
            half, dual = training.session.half_squared_norm, training.session.dual
            self._look_at_objectives(training, half, dual)
            primal = training.machine.model_half_squared_norm(half) + losses.total
            if not self._has_bound:
                return SampledObjectives(primal, math.nan, math.nan, losses.error)
            return SampledObjectives.of(primal, dual, losses.error)
        half = squared_norm / 2
        self._look_at_objectives(training, half, linear - half)
        dual, half = linear - half, training.machine.model_half_squared_norm(half)
        primal = half + losses.total if math.isfinite(self.model.C) else hard_objective(half, margin)
        return ObjectiveValues(primal, dual, violation)

    def check(self, training: StreamTraining, outcome: Outcome) -> Outcome:
        """What was not computed from scratch may show what the kernel is, too."""
        if training.is_whole and not outcome.exact:
            self._look_at_objectives(training, training.session.half_squared_norm, training.session.dual)
        return outcome

    def _look_at_objectives(self, training: StreamTraining, half_squared_norm: float, dual: float) -> None:
        if not self._has_bound:
            return
        largest = 1.0 - float(self._margins.min())
        at_zero = largest * float(training.stream.examples.costs.sum())
        training.machine.look_at_objectives(half_squared_norm, dual, at_zero)

    def expansion(self, session: Any) -> Expansion:
        """The coefficients beta, of two classes at least."""
        return Expansion.of(session, at_least=2)

    def keep(self, session: Any, expansion: Expansion) -> None:
        """The bounds of the coefficients, intercepts and weights, and what it takes to go on."""
        model = self.model
        model.support_costs_ = expansion.costs
        model._state = session.state
        model.intercept_ = model._intercept(model.dual_coef_)
        if model.kernel == "linear":
            weights = weights_of(model, session.averaged_weights())
            model.coef_ = weights[:, : model.n_features_in_]
            if model.fit_intercept:  # as precise as the weights, no more and no less
                model.intercept_ = weights[:, -1].astype(np.float64)

    def restore(self, machine: Machine) -> None:
        """Let a fresh session take over the model; the label of a pattern is the class with a positive coefficient."""
        model = self.model
        for _ in model._arrived:
            machine.session.add_class()
        beta = csr_matrix(model.dual_coef_ @ model._to_classes(max(2, len(model._arrived))).T)
        labels = np.zeros(0, np.int32)
        if not np.diff(beta.indptr).all():
            raise ValueError("dual_coef_ must have coefficients of classes that have arrived, got patterns without")
        if len(model.support_):
            labels = np.maximum.reduceat(np.where(beta.data > 0, beta.indices, -1), beta.indptr[:-1])
        machine.restore(model, labels, model.support_costs_, beta)
        machine.session.state = model._state
        if model.kernel == "linear" and machine.session.averages:
            self._restore_average(machine.session)

    def _restore_average(self, session: Any) -> None:
        """From `coef_`: the weights of two classes add up to zero, so those of one say all."""
        model = self.model
        weights = model.coef_
        if model.fit_intercept:
            weights = np.column_stack([weights, model.intercept_])
        of_classes = model._per_class(weights.T).T[model._columns()]
        examples = model.result_.operations["process_new"]
        session.set_average(np.ascontiguousarray(of_classes, dtype=session.dtype), examples)

    def operations(self, session: Any) -> dict[str, int]:
        """How often each operation was performed."""
        counters = session.counters
        counts = dict(zip(("process_new", "process_old", "optimize"), counters.operations, strict=True))
        counts |= {"steps": counters.steps, "finishing_steps": counters.finishing_steps}
        if isinstance(counters, BlockCounters):
            counts["left_out"] = counters.left_out
        return counts if self.model.max_support is None else {**counts, "forgotten": counters.forgotten}

    def argmax_calls(self, session: Any) -> int:
        """How often the best of all classes was looked for."""
        calls: int = session.counters.argmax
        return calls

    def seconds(self, session: Any) -> dict[str, float]:
        """Of choosing and of stepping, from a sample of the operations."""
        return {"selection": session.counters.selection_seconds, "steps": session.counters.step_seconds}


@with_paragraphs
@persistable(
    **{**FITTED_ON_A_STREAM, "dual_coef_": csr("n_support", "n_classes", full=True)},
    support_costs_=floats("n_support", least=0),
    coef_=WEIGHTS,
    intercept_=floats(functions),
    _state=row(number(), number(), number(), several(number(least=0), 3), RANDOM_STATE),
)
class LaRankClassifier(MulticlassProblem, Weighted, StoppingByGain, CountsSupport, CheckpointedClassifier):
    """Multiclass support vector machine trained online, with or without kernels.

    One pass over the examples nearly reaches the optimum of the multiclass SVM of Crammer and Singer; further passes
    reach it. Examples may come in batches, with classes never seen before.

    Attributes
    ----------
    [model]
    [n_support_]
    dual_coef_ : csr_matrix of shape (n_support, n_classes)
        The coefficients ``beta``. Those of a pattern add up to zero; only the one of its label is positive. The linear
        kernel's are those of the last weights, with or without `average`. With `max_support` and ``forget="least"``
        they contain what a pattern has inherited, which may be of any sign, and are averages; weights of the linear
        kernel are made of more patterns.
    support_costs_ : ndarray of shape (n_support,)
        The bound of each pattern's largest coefficient: `C` times its weights.
    [intercept_]
    [coef_]
    [result_]

    References
    ----------
    Bordes, Bottou, Gallinari, Weston. Solving MultiClass Support Vector Machines with LaRank. ICML 2007.

    Examples
    --------
    >>> from larank import LaRankClassifier
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> X, y = letter.X_train[:4000].astype("float32"), letter.y_train[:4000]
    >>> model = LaRankClassifier(C=10, gamma=0.025, random_state=0).fit(X, y)
    >>> bool(model.score(letter.X_test.astype("float32"), letter.y_test) > 0.9)
    True
    >>> bool(model.result_.dual < model.result_.primal)
    True
    """

    average: bool | Literal["auto"] = parameter(
        "Whether the model is the average of the weights during training, in which later weights count more, instead "
        'of the last weights, which depend much on the last examples if labels are noisy. "auto" averages with the '
        'linear kernel or `max_support` if `C` is finite, but not with ``forget="oldest"``. Other kernels without '
        "`max_support` have no average. Set False if a stream drifts.",
        default="auto",
    )
    max_support: int | None = parameter(
        "Maximum number of support vectors, at least 2. If one more is added, one is removed (`forget` of "
        "``solver=LaRank(...)``), so that memory and time per example stay constant on a stream. By default there is "
        "no maximum.",
        default=None,
        least=2,
    )
    solver: Literal["larank"] | LaRank | BlockSteps = parameter(
        '"larank" trains example by example, and ``LaRank(...)`` sets its switches. ``BlockSteps(device="cuda")`` '
        "trains by matrix products on a GPU.",
        default="larank",
    )

    _ALGORITHM = OnlineLaRank

    def _check_together(self) -> None:
        super()._check_together()
        switches = self.solver if isinstance(self.solver, LaRank) else LaRank()
        is_linear = isinstance(self.kernel, str) and self.kernel == "linear"
        if switches.n_reprocess is not None and switches.schedule != "fixed":
            raise ParameterError(
                "solver", f"must have schedule='fixed' if n_reprocess is set; got {self.solver!r}. Set both or neither"
            )
        if switches.forget != "least" and self.max_support is None:
            raise ParameterError(
                "solver", f"has forget={switches.forget!r}, which is used only with max_support. Set max_support"
            )
        if self.average is True and not is_linear and (self.max_support is None or switches.forget == "oldest"):
            raise ParameterError(
                "average",
                f"must be 'auto' or False with kernel={self.kernel!r} unless max_support is set and forget='least'; "
                "got average=True. Support vectors that were removed would remain in the average",
            )
        if self.max_support is not None:
            if self.tol is not None or self.max_iter not in (None, 1):
                raise ParameterError(
                    "max_support",
                    "is used only in one pass, because removed support vectors would return in the next one; got "
                    f"max_support={self.max_support!r} with tol={self.tol!r} and max_iter={self.max_iter!r}. Set "
                    "tol=None and max_iter=None",
                )
            if math.inf == self.C:
                raise ParameterError(
                    "max_support",
                    f"must be None with C=inf, because hard margins need all support vectors; got {self.max_support!r}",
                )
        if isinstance(self.solver, BlockSteps):
            for name in ("max_support", "n_jobs"):
                if getattr(self, name) is not None:
                    raise ParameterError(
                        name,
                        f"must be None with solver={self.solver!r}, which does not use it; got {getattr(self, name)!r}",
                    )
            if self.average is True or math.inf == self.C:
                raise ParameterError(
                    "solver",
                    f"cannot be BlockSteps with average=True or C=inf; got average={self.average!r} and C={self.C!r}",
                )
