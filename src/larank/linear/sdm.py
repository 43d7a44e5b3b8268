"""Linear multiclass SVMs by the Sequential Dual Method of Keerthi et al. (KDD 2008)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import check_random_state

from larank import _core, declare, parameters
from larank.base import unfitted
from larank.blocks.ranges import squared_norms
from larank.blocks.workers import Workers
from larank.costs import check_two_classes, example_costs, hardened, smallest_margin
from larank.data.files import PathLike
from larank.data.models import persistable
from larank.data.stream import brings_labels, check_no_weights
from larank.declare import LARGEST_COUNT, Declared, Value, parameter
from larank.docstrings import with_paragraphs
from larank.linear.fileblocks import fit_blocks, is_mapped
from larank.linear.model import FITTED_LINEARLY, LinearClassifier
from larank.parameters import Seeded, StoppingAtGap, Weighted
from larank.publishing import next_model
from larank.training import (
    CheckpointFile,
    CheckpointRequest,
    FromScratch,
    Interrupt,
    Limits,
    Objectives,
    ObjectiveValues,
    Outcome,
    State,
    train,
    warn_if_early,
)
from larank.training.progress import progress_for
from larank.training.result import Result
from larank.validation import advised, classes_of, validated

_ROUNDING_OF_MARGINS = 1e-6


class SDM(Value):
    """The switches of the Sequential Dual Method, for ``solver=SDM(...)``. They change the time, not the solution."""

    shrinking: bool = parameter(
        "Whether to visit examples less often while their dual variables are at a bound.", default=True
    )
    cooling: bool = parameter(
        "Whether to start with loose tolerances and, if ``C |x|^2`` is large, with reduced costs.", default=True
    )


class _Stored(Declared, position=4):
    """Memory, disk and threads."""

    memory_limit: float = parameter(
        "Maximum memory in bytes for the weights and one block of rows, if `fit` is given a file, blocks, or a "
        "memory-mapped array larger than this limit; rows and coefficients are then stored in a temporary folder. No "
        "effect with other arrays.",
        default=2e9,
        above=0,
        most=LARGEST_COUNT,
    )
    disk_limit: float | None = parameter(
        "Maximum bytes of rows and coefficients in the temporary folder; more is an error. By default half of what is "
        "free there when `fit` begins. The folder is the one of the system, or the one that the environment variable "
        "TMPDIR names. No effect with arrays in memory.",
        default=None,
        above=0,
        most=LARGEST_COUNT,
    )
    n_jobs: int | None = parameter(
        "Number of threads that visit examples. By default 1; -1 uses all processors. Several threads are used if "
        "there are at least eight stored values of `X` for each weight. Their number changes the model, within `tol`.",
        default=None,
        check=parameters.not_zero,
        form="int",
    )


@persistable(**FITTED_LINEARLY)
class LinearMulticlassSVC(Weighted, StoppingAtGap, _Stored, Seeded, LinearClassifier):
    """Linear multiclass support vector machine.

    All classes are trained together, in the dual, one example at a time. The returned model carries a certificate:
    its duality gap bounds how much lower the objective of any other model could be.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) with two classes
        The weights. With two classes, those of the second minus those of the first.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        The weights of the constant feature times its value.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    dual_coef_ : csr_matrix of shape (n_samples, n_classes)
        The coefficients ``a`` with ``W = a.T @ X``, up to the averaging that training may apply to ``W``. It and the
        next three are of examples in memory: a fit on a file or blocks does not keep them.
    support_ : ndarray
        The examples with a coefficient that is not zero.
    costs_ : ndarray of shape (n_samples,)
        The cost of each example: ``C`` times its weights.
    rest_costs_ : ndarray of shape (n_samples,)
        The same in the problems of the classes that are not the example's own, with "one-vs-rest"; otherwise `costs_`.
    n_iter_ : int
        Passes over the data, rounded up.
    result_ : Result
        The certificate: objectives from scratch, gap, counts, seconds and the history.

    References
    ----------
    Keerthi, Sundararajan, Chang, Hsieh, Lin. A Sequential Dual Method for Large Scale Multi-Class Linear SVMs.
    KDD 2008.

    Examples
    --------
    >>> from larank import LinearMulticlassSVC
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> model = LinearMulticlassSVC(random_state=0).fit(letter.X_train / 15, letter.y_train)
    >>> bool(model.score(letter.X_test / 15, letter.y_test) > 0.7)
    True
    >>> bool(model.result_.relative_gap <= 1e-3)
    True
    """

    formulation: Literal["crammer-singer", "weston-watkins", "one-vs-rest"] = parameter(
        'Loss of an example with scores ``s`` and label ``y``. "crammer-singer" is the largest margin violation, '
        '``max(0, max(1 + s[m] - s[y] for m != y))``, and a good choice in general. "weston-watkins" is the sum of '
        'the violations of all wrong classes. "one-vs-rest" is the sum of the hinge losses of one binary problem per '
        "class, as in `sklearn.svm.LinearSVC`.",
        default="crammer-singer",
        kw_only=False,
    )
    C: float = parameter(
        "Inverse regularisation strength: the cost of one unit of loss against ``1/2 |W|^2``. Larger values fit the "
        "training data more closely. Infinity makes margins hard and needs float64; all weights above zero are then "
        "equal, and if the model does not separate the classes, `result_.primal` is infinite, and a warning says so.",
        default=1.0,
        above=0,
        infinite=True,
    )
    fit_intercept: bool = parameter(
        "Whether to add a constant feature. Its weights are regularised like the others.", default=True
    )
    intercept_scaling: float = parameter(
        "Value of the constant feature. Larger values regularise the intercept less.", default=1.0, above=0
    )
    solver: Literal["sdm"] | SDM = parameter(
        'The Sequential Dual Method; ``SDM(...)`` sets its switches. "sdm" stands for their defaults.', default="sdm"
    )
    stop: Literal["gap", "violation"] = parameter(
        "Which quantity `tol` bounds: the relative duality gap, or the largest violation of the optimality conditions "
        "over all examples.",
        default="gap",
    )
    warm_start: bool = parameter(
        "Whether `fit` starts from the coefficients of the previous fit, which must have had the same formulation and "
        "as many examples and classes. A model loaded from a file has no coefficients to start from.",
        default=False,
    )
    class_weight: Mapping[Any, float] | str | None = parameter(
        'Factors on `C` for the examples of each class. "balanced" makes them inversely proportional to the class '
        'frequencies. With "one-vs-rest" and more than two classes, the factor of a class acts only in the binary '
        "problem of that class, as in `sklearn.svm.LinearSVC`. By default all are 1.",
        default=None,
        check=parameters.class_weights,
        choices=("balanced",),
        form="dict",
    )
    tol: float = parameter(
        'Relative duality gap, ``(primal - dual) / primal``, at which training stops; with ``stop="violation"`` the '
        "largest violation of the optimality conditions (the paper uses 0.1).",
        default=1e-3,
        above=0,
    )
    time_limit: float | None = parameter(
        "Maximum training time in seconds, including the certificate. Training that reaches it ends with a valid "
        "model and a warning. Reading a file or blocks takes at most half of it; the model is then trained on the "
        "rows that were read. By default there is no limit.",
        default=None,
        above=0,
    )

    @with_paragraphs
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: PathLike | None = None,
        every: float = 30.0,
        resume: bool = False,
    ) -> Self:
        """Train on `X` and `y`, or on a file or blocks, which may be larger than memory.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), path, `ExampleFile` or iterable of blocks
            The examples. float32 and float64 arrays in C order and CSR matrices are used as they are, others are
            converted; a memory-mapped array larger than `memory_limit` is read in blocks. Without `y` a file in
            svmlight or CSV format, or an iterable of blocks ``(X, y)`` or ``(X, y, sample_weight)``; it is read once.
        y : array of shape (n_samples,), optional
            The labels: integers, strings, booleans. None where `X` brings them.
        [sample_weight]
        [checkpoint]

        [fitted]
        """
        asked = CheckpointRequest(checkpoint, every, resume)
        with next_model(self) as model:
            declare.check(model)
            if brings_labels(X, y) or is_mapped(X, model.memory_limit):
                check_is_in_memory(asked)
                if y is None:
                    check_no_weights(sample_weight)
                outcome = fit_blocks(model, X, y, sample_weight)
            else:
                outcome = model._fit(X, y, sample_weight, model._start() if model.warm_start else None, asked)
        self._warn_if_early(outcome)
        return self

    @with_paragraphs
    def path(
        self, X: ArrayLike, y: ArrayLike, Cs: Iterable[float], sample_weight: ArrayLike | None = None
    ) -> list[Self]:
        """Train one model per value of `C`, each started from that of the next smaller one.

        [path]
        """
        Cs = parameters.costs_of_path(Cs)
        models: dict[int, Self] = {}
        start: _Start | None = None
        for number in sorted(range(len(Cs)), key=Cs.__getitem__):
            models[number] = model = unfitted(self, C=Cs[number])
            declare.check(model)
            outcome = model._fit(X, y, sample_weight, start)
            model._warn_if_early(outcome)
            start = model._start()
            if outcome.status == "interrupted":
                break
        return [models[number] for number in sorted(models)]

    def _start(self) -> _Start | None:
        """The coefficients of the fit before."""
        if not hasattr(self, "coef_"):
            return None
        if not hasattr(self, "dual_coef_"):
            raise ValueError("warm_start needs the coefficients of the fit before, which a loaded model does not have")
        if self._formulation != self.formulation:
            raise ValueError(
                f"warm_start needs the formulation of the fit before, {self._formulation!r}; got {self.formulation!r}"
            )
        return _Start(self.dual_coef_, self.costs_, self.rest_costs_)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        start: _Start | None,
        asked: CheckpointRequest | None = None,
        interrupt: Interrupt | None = None,
    ) -> Outcome:
        X, y = validated(self, X, y, reset=True)
        if X.shape[0] >= 2**31:
            raise ValueError(f"X must have fewer than 2**31 rows, got {X.shape[0]}")
        classes = classes_of(y)
        labels = np.searchsorted(classes, y)
        costs = example_costs(self.C, X, y, classes, sample_weight, self.class_weight)
        if math.isinf(self.C):
            costs = hardened(costs, squared_norms(X) + (self.intercept_scaling**2 if self.fit_intercept else 0.0))
        check_two_classes(y, costs)
        rest_costs = costs
        if self.formulation == "one-vs-rest" and len(classes) > 2 and self.class_weight is not None:
            rest_costs = costs if math.isinf(self.C) else example_costs(self.C, X, y, classes, sample_weight, None)
        self._check_precision(X.dtype, np.maximum(costs, rest_costs))
        checkpoint = CheckpointFile.asked_for(asked, self, X=X, y=y, sample_weight=rest_costs)
        session = self._session(X, labels.astype(np.int32), len(classes), costs, rest_costs)
        if start is not None:
            session.start_from(*_feasible(start, costs, rest_costs, labels, len(classes)))

        with progress_for(self.verbose) as progress:
            progress.start(f"{self.formulation}, {X.shape[0]} examples, {X.shape[1]} features, {len(classes)} classes")
            outcome = train(
                _SdmTraining(session, X), self._limits(), progress, checkpoint=checkpoint, interrupt=interrupt
            )
        self.classes_, self._formulation = classes, self.formulation
        self.costs_, self.rest_costs_ = costs, rest_costs
        self._keep_model(session, X)
        if math.isinf(self.C):
            outcome = self._of_hard_margins(outcome, X, labels, costs)
        counters = session.counters
        self.result_ = Result.of(
            outcome,
            solver="sdm",
            iterations=counters.visits / X.shape[0],
            support_patterns=len(self.support_),
            support_vectors=int(self.dual_coef_.nnz),
            operations={
                "visits": counters.visits,
                "steps": counters.steps,
                "full_loops": counters.full_loops,
                "shrunk_loops": counters.shrunk_loops,
                "moves": counters.moves,
            },
            breakdown={},
        )
        self.n_iter_ = math.ceil(self.result_.iterations)
        return advised(outcome, X, self)

    @property
    def _switches(self) -> SDM:
        return SDM() if isinstance(self.solver, str) else self.solver

    @property
    def _epsilon(self) -> float:
        """The violation at which training stops, or 0 if it stops at a gap."""
        return float(self.tol) if self.stop == "violation" else 0.0

    def _limits(self) -> Limits:
        return Limits(self.tol if self.stop == "gap" else None, self._most_passes, self.time_limit)

    def _of_hard_margins(
        self, outcome: Outcome, X: Any, labels: NDArray[np.intp], costs: NDArray[np.float64]
    ) -> Outcome:
        """The outcome for a cost that stands for infinity: a margin that is not kept has no finite price."""
        scores, labels = (np.asarray(X @ self.coef_.T) + self.intercept_)[costs > 0], labels[costs > 0]
        if self.formulation == "one-vs-rest":
            own = labels[:, None] == (np.arange(scores.shape[1]) if scores.shape[1] > 1 else 1)
            margin = float(np.where(own, scores, -scores).min())
        else:
            scores = np.hstack([-scores / 2, scores / 2]) if scores.shape[1] == 1 else scores
            margin = smallest_margin(scores, labels, 1 - np.eye(len(self.classes_)))
        if margin > 1 - _ROUNDING_OF_MARGINS:
            return outcome
        at = ObjectiveValues(math.inf, outcome.objectives.dual, outcome.objectives.violation)
        return replace(outcome, objectives=at, status="precision" if outcome.status == "converged" else outcome.status)

    def _warn_if_early(self, outcome: Outcome, stacklevel: int = 2) -> None:
        warn_if_early(
            outcome,
            self.result_,
            max_iter=self._most_passes,
            time_limit=self.time_limit,
            limit_of_precision="where nothing more could be gained",
            is_hard=math.isinf(self.C),
            stacklevel=stacklevel + 1,
        )

    def _check_precision(self, dtype: np.dtype[Any], costs: NDArray[np.float64]) -> None:
        """The core computes in the precision of `X`, where numbers that are fine here may be 0 or infinite."""
        if math.isinf(self.C) and dtype != np.float64:
            raise ValueError(f"C=inf needs X in float64, where margins are precise enough; got {dtype}")
        with np.errstate(over="ignore"):
            if not np.isfinite(costs.astype(dtype)).all():
                raise ValueError(
                    f"C times the weights of an example must be below {np.finfo(dtype).max:.2g}, the largest number in "
                    f"the precision of X, {dtype}; got {costs.max():.2g}"
                )
            scaling = dtype.type(self.intercept_scaling)
        if scaling == 0 or not np.isfinite(scaling):
            raise ValueError(
                f"intercept_scaling must be a number > 0 in the precision of X, {dtype}; got {self.intercept_scaling!r}"
            )

    def _session(
        self,
        X: Any,
        labels: NDArray[np.int32],
        n_classes: int,
        costs: NDArray[np.float64],
        rest_costs: NDArray[np.float64],
    ) -> _core.SdmSession:
        arrays: tuple[Any, ...] = (X,)
        if issparse(X):
            arrays = (X.data, X.indices, X.indptr.astype(np.int64, copy=False), X.shape[1])
        switches = self._switches
        session: Callable[..., _core.SdmSession] = _core.sdm_session  # of arrays or CSR parts, in either precision
        return session(
            *arrays,
            labels,
            costs,
            rest_costs,
            intercept=float(self.intercept_scaling) if self.fit_intercept else 0.0,
            formulation=self.formulation,
            classes=n_classes,
            epsilon=self._epsilon,
            shrinking=bool(switches.shrinking),
            cooling=bool(switches.cooling),
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            threads=Workers(self.n_jobs).count,
        )

    def _keep_model(self, session: _core.SdmSession, X: Any) -> None:
        self.dual_coef_ = csr_matrix(session.coefficients(), shape=(X.shape[0], len(self.classes_)))
        self.support_ = np.flatnonzero(np.diff(self.dual_coef_.indptr))
        self._keep_weights(session.take_weights().T)

    def _keep_weights(self, W: NDArray[Any]) -> None:
        """Take the model from W, a row per class, the constant feature last if there is one."""
        n_features = self.n_features_in_
        if len(self.classes_) == 2:
            W = W[1:] - W[:1]
            if self.formulation == "one-vs-rest":
                W /= 2
        self.coef_ = W[:, :n_features]
        self.intercept_ = (
            W[:, n_features] * W.dtype.type(self.intercept_scaling) if self.fit_intercept else np.zeros(len(W), W.dtype)
        )


def check_is_in_memory(asked: CheckpointRequest) -> None:
    """Raise where checkpoints are asked for that cannot be."""
    if asked.checkpoint is not None or asked.resume:
        raise ValueError("checkpoint and resume act on arrays in memory only, got one with a file or blocks")


class _Start(NamedTuple):
    """Where a warm start begins."""

    coefficients: csr_matrix
    costs: NDArray[np.float64]
    rest_costs: NDArray[np.float64]


class _SdmTraining:
    """A session of the core as the training loop sees it."""

    _WORK = 100_000_000  # multiply-adds: some tens of milliseconds

    def __init__(self, session: _core.SdmSession, X: Any) -> None:
        self._session = session
        self._examples = int(X.shape[0])
        self._loops_seen = 0

    def advance(self) -> bool:
        return self._session.advance(self._WORK)

    def estimate(self) -> Objectives | None:
        loops = self._session.counters.full_loops
        if loops == self._loops_seen or not self._session.estimate_is_at_full_cost:
            return None
        self._loops_seen = loops
        return self._session.estimate

    def evaluate(self) -> FromScratch:
        yield
        return self._session.evaluate()

    def iterations(self) -> float:
        visits: int = self._session.counters.visits
        return visits / self._examples

    def details(self) -> Mapping[str, Any]:
        return {}

    def snapshot(self) -> State:
        return {"session": self._session.snapshot(), "loops_seen": self._loops_seen}

    def resume(self, state: State) -> None:
        self._session.read_snapshot(state["session"])
        self._loops_seen = int(state["loops_seen"])


def _feasible(
    start: _Start,
    costs: NDArray[np.float64],
    rest_costs: NDArray[np.float64],
    labels: NDArray[np.intp],
    n_classes: int,
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int64]]:
    """Coefficients scaled to new costs; those of examples whose label has changed are left out."""
    a = start.coefficients
    if a.shape != (len(labels), n_classes):
        raise ValueError(
            f"warm_start needs the shape of the fit before, {a.shape[0]} examples and {a.shape[1]} classes; "
            f"got {len(labels)} and {n_classes}"
        )
    rows = np.repeat(np.arange(len(labels)), np.diff(a.indptr))
    is_label = a.indices == labels[rows]
    has_changed = np.zeros(len(labels), bool)
    has_changed[rows[(a.data > 0) != is_label]] = True
    before = np.where(is_label, start.costs[rows], start.rest_costs[rows])
    now = np.where(has_changed[rows], 0, np.where(is_label, costs[rows], rest_costs[rows]))
    at_bound = np.isclose(np.abs(a.data), before, rtol=1e-6, atol=0)
    scaled = a.data * np.divide(now, before, out=np.zeros_like(now), where=before > 0)
    values = np.where(at_bound, np.copysign(now, a.data), scaled)
    seeds = csr_matrix((values, a.indices, a.indptr), shape=a.shape, copy=True)
    seeds.eliminate_zeros()
    return seeds.data, seeds.indices.astype(np.int32), seeds.indptr.astype(np.int64)
