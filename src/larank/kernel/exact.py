"""The exact kernel multiclass SVM: MCSVM of Crammer and Singer (JMLR 2001), and Weston and Watkins' formulation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import check_random_state

from larank import declare, parameters
from larank.base import functions, unfitted
from larank.blocks import Provider, check_gram, provider_for
from larank.blocks.definite import indefinite_objectives, indefinite_values
from larank.blocks.device import DeviceArray
from larank.blocks.kernels import Kernel, ProductKernel
from larank.blocks.provider import rows_of
from larank.blocks.shared import SharedProvider, SharedValues, matrix_nbytes
from larank.costs import check_two_classes, checked_label_costs, example_costs, hardened
from larank.data.files import PathLike
from larank.data.models import persistable
from larank.data.schema import Schema, csr, floats, number
from larank.declare import ParameterError, fitted, parameter
from larank.docstrings import with_paragraphs
from larank.kernel.activeset import ActiveSetSettings, ActiveSetTraining
from larank.kernel.deviceset import DeviceTraining
from larank.kernel.machine import (
    FITTED,
    WEIGHTS,
    CountsSupport,
    KernelClassifier,
    enough_memory,
    says_enough_memory,
    warn_if_indefinite,
)
from larank.kernel.problem import Problem
from larank.kernel.published import Published, PublishedTraining
from larank.kernel.sharedset import SharedTraining
from larank.parameters import BlockSteps, MulticlassProblem, StoppingAtGap, Weighted
from larank.publishing import next_model
from larank.training import CheckpointFile, CheckpointRequest, Interrupt, Limits, Outcome, first_interrupt, train
from larank.training.progress import progress_for
from larank.training.result import Result
from larank.validation import advised, classes_of

# What to say where a training ends for lack of it.
PRECISION = {
    "float32": "where kernel values are not precise enough to go on, float64 data may do",
    "float64": "where kernel values are not precise enough to go on, features of one scale or a smaller C may do",
}
_SMALL = 0.1  # of the memory limit: that much may be copied
_STEPS_THAT_SHARE = 3  # of a path: from so many on it pays to compute all kernel values
SHARE_OF_MATRIX = 0.5  # of the memory limit, for a matrix of them
_WORTH_DROPPING = 0.05  # of the features: then a copy without those that are constant pays


# The fitted attributes of a model of the exact solver.
FITTED_EXACTLY: Schema = {
    **{**FITTED, "dual_coef_": csr("n_support", "n_classes")},
    "support_costs_": floats("n_support", least=0),
    "coef_": WEIGHTS,
    "intercept_": floats(functions),
    "scale_": number(),
}


class ExactClassifier(CountsSupport, KernelClassifier):
    """A model of the exact solver, whose certificate speaks of a multiple of the dual solution."""

    scale_: float = fitted()

    def _expansions(self, X: Any) -> NDArray[np.float64]:
        """Those of the dual solution, scaled to where the primal objective is smallest."""
        scores: NDArray[np.float64] = self.scale_ * super()._expansions(X)
        return scores


@with_paragraphs
@persistable(**FITTED_EXACTLY)
class MulticlassSVC(MulticlassProblem, Weighted, StoppingAtGap, ExactClassifier):
    """Multiclass support vector machine with a kernel, solved to a duality gap.

    All classes are trained together: one kernel value serves all of them. Training starts from one pass of LaRank and
    ends when the duality gap, computed over all examples, is small enough.

    Attributes
    ----------
    [model]
    [n_support_]
    dual_coef_ : csr_matrix of shape (n_support, n_classes)
        The coefficients ``beta`` of the dual solution. Those of a pattern add up to zero.
    support_costs_ : ndarray of shape (n_support,)
        `C` times the weights of each support pattern.
    scale_ : float
        What the scores of `dual_coef_` are multiplied by, close to 1: where the primal objective is smallest.
    [intercept_]
    [coef_]
    [result_]

    References
    ----------
    Crammer, Singer. On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines. JMLR 2, 2001.

    Examples
    --------
    >>> from larank import MulticlassSVC
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> X, y = letter.X_train[:2000].astype("float32"), letter.y_train[:2000]
    >>> model = MulticlassSVC(C=10, gamma=0.025, random_state=0).fit(X, y)
    >>> bool(model.result_.relative_gap <= 1e-3)
    True
    >>> models = model.path(X, y, Cs=[1, 10, 100])
    >>> [float(each.C) for each in models]
    [1.0, 10.0, 100.0]
    """

    formulation: Literal["crammer-singer", "weston-watkins"] = parameter(
        "The loss of an example: its largest margin violation, or the sum of all of them.",
        default="crammer-singer",
    )
    tol: float = parameter(
        "Relative duality gap, ``(primal - dual) / primal``, at which training stops. The published solver stops at "
        "its own `epsilon` instead.",
        default=1e-3,
        above=0,
    )
    solver: Literal["active-set", "published"] | Published | BlockSteps = parameter(
        '"active-set" solves the problem to the gap `tol`. "published" is the algorithm of Crammer and Singer as '
        "published, for comparison, and ``Published(...)`` sets its switches; it stops at a violation of "
        '`Published.epsilon`. ``BlockSteps(device="cuda")`` trains by matrix products on a GPU.',
        default="active-set",
    )
    memory_limit: float = parameter(
        "The bytes for support patterns, coefficients and kept kernel values. A smaller limit means more computation.",
        default=4000000000.0,
        above=0,
        most=4611686018427387904,
    )

    _INIT: ClassVar[str] = "larank"  # "zero" starts from no coefficients, as in the paper
    _SHRINKING: ClassVar[bool] = True  # whether most passes skip examples far beyond their margin

    @property
    def _is_published(self) -> bool:
        return self.solver == "published" or isinstance(self.solver, Published)

    def _check_together(self) -> None:
        super()._check_together()
        is_exact = self.solver == "active-set"
        if math.inf == self.C and not is_exact:
            raise ParameterError("C", f"must be finite unless solver='active-set'; got inf with solver={self.solver!r}")
        if self.formulation != "crammer-singer" and self._is_published:
            raise ParameterError(
                "formulation",
                f"must be 'crammer-singer' with solver={self.solver!r}; got {self.formulation!r}",
            )
        if self._is_published and self.tol != 1e-3:
            raise ParameterError(
                "tol", f"is not used with solver={self.solver!r}, which stops at its own epsilon; got {self.tol!r}"
            )
        if isinstance(self.solver, BlockSteps) and self.n_jobs is not None:
            raise ParameterError("n_jobs", f"must be None with solver={self.solver!r}; got {self.n_jobs!r}")

    @with_paragraphs
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: PathLike | None = None,
        every: float = 30.0,
        resume: bool = False,
    ) -> Self:
        """Train on `X` and `y`.

        Parameters
        ----------
        [examples]
        [sample_weight]
        [checkpoint]

        [fitted]
        """
        if checkpoint is not None and self.solver != "active-set":
            raise ValueError(f"checkpoint needs solver='active-set', got {self.solver!r}")
        with next_model(self) as model:
            X, problem, provider = model._problem(X, y, sample_weight)
            asked = CheckpointRequest(checkpoint, every, resume)
            file = CheckpointFile.asked_for(asked, model, X=X, y=y, sample_weight=problem.costs)
            with provider.threads():
                training = model._training(problem, provider)
                outcome = model._run(training, file)
            model._keep_model(training, outcome, X)
        warn_if_indefinite(provider.indefinite, stacklevel=2)
        self._warn_if_early(advised(outcome, X, self), PRECISION[provider.dtype.name], stacklevel=2)
        return self

    @with_paragraphs
    def path(self, X: Any, y: Any, Cs: Iterable[float], sample_weight: ArrayLike | None = None) -> list[Self]:
        """Train one model per value of `C`, each started from the next smaller one, with the same kernel values.

        [path]
        """
        if self._is_published:
            raise ValueError(f"path needs solver='active-set' or BlockSteps(...), got {self.solver!r}")
        Cs = parameters.costs_of_path(Cs)
        models: dict[int, Self] = {}
        order = sorted(range(len(Cs)), key=Cs.__getitem__)
        first = unfitted(self, C=1.0)
        data, problem, provider = first._problem(X, y, sample_weight)
        with first_interrupt() as interrupt:
            if len(Cs) >= _STEPS_THAT_SHARE and self._device is None:
                problem, provider = first._with_shared_values(problem, provider)
            weights = problem.costs
            with provider.threads():
                training = first._training(replace(problem, costs=finite_costs(Cs[order[0]] * weights)), provider)
                for n in order:
                    models[n] = model = unfitted(self, C=Cs[n])
                    model._begin_like(first)
                    if len(models) > 1:
                        training.raise_costs(finite_costs(Cs[n] * weights))
                    outcome = model._run(training, interrupt=interrupt)
                    model._keep_model(training, outcome, data)
                    model._warn_if_early(outcome, PRECISION[provider.dtype.name], stacklevel=2)
                    if outcome.status == "interrupted":
                        break
        warn_if_indefinite(provider.indefinite, stacklevel=2)
        return [models[n] for n in sorted(models)]

    def _problem(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Any, Problem, Provider]:
        """The examples as they came, and what is to be solved with which kernel values."""
        declare.check(self)
        X, y = self._validated(X, y, reset=True)
        problem, kernel = self.stated(X, y, sample_weight)
        here = problem.X
        if isinstance(here, DeviceArray):  # of which the provider is asked nothing, or little
            here = np.asarray(here[:1] if kernel.is_definite else here)
        provider = provider_for(kernel, here, n_jobs=self._threads())
        if self._device is None:
            provider.expect(problem.X, self.memory_limit)
        if problem.is_hard:
            problem = replace(problem, costs=finite_costs(hardened(problem.costs, provider.measure(problem.X)[0])))
        provider.indefinite = indefinite_values(provider, here, np.flatnonzero(problem.costs > 0))
        return X, problem, provider

    def stated(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Problem, Kernel]:
        """What is to be solved, of data that are checked, and the kernel; what the data say is kept."""
        classes = classes_of(y)
        labels = np.searchsorted(classes, y)
        delta = 1 - np.eye(len(classes))
        if self.label_costs is not None:
            delta = checked_label_costs(self.label_costs, classes)
        costs = finite_costs(example_costs(self.C, X, y, classes, sample_weight, self.class_weight))
        check_two_classes(y, costs)
        if self.kernel == "precomputed":
            check_gram(X)
        for name in ("gamma_", "coef_", "support_vectors_"):
            self.__dict__.pop(name, None)
        self.classes_ = classes
        kernel = self._kernel_from(X)
        examples = X
        if isinstance(kernel, ProductKernel) and kernel.of_distance and _nbytes(X) < _SMALL * self.memory_limit:
            examples = _without_constant_features(X)
        is_hard = math.inf == self.C
        problem = Problem(examples, labels.astype(np.int32), costs, len(classes), delta, self.formulation, is_hard)
        return problem, kernel

    def _with_shared_values(self, problem: Problem, provider: Provider) -> tuple[Problem, Provider]:
        """The same problem on a matrix of all kernel values, where it takes no more than its share of the memory."""
        nbytes = matrix_nbytes(problem.X, provider.dtype)
        rest = self.memory_limit - nbytes
        if nbytes > SHARE_OF_MATRIX * self.memory_limit or rest < enough_memory(self, problem.X):
            return problem, provider
        values = SharedValues(problem.X, lambda kernel: provider, nbytes).of(provider.kernel)
        shared = SharedProvider(provider.kernel, values, self._threads(), provider, problem.X)
        shared.indefinite = provider.indefinite
        self.memory_limit = rest
        return replace(problem, X=np.arange(len(problem.labels))), shared

    def _begin_like(self, other: Self) -> None:
        """Take over what the data say."""
        for name in ("classes_", "gamma_", "n_features_in_", "feature_names_in_"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))

    def _training(self, problem: Problem, provider: Provider) -> Any:
        if not self._is_published:
            settings = ActiveSetSettings(self.tol, self._INIT, self._SHRINKING, self.memory_limit)
            arguments = settings, problem, provider, check_random_state(self.random_state)
            if self._device is not None:
                return DeviceTraining(self._device, *arguments)
            return (SharedTraining if isinstance(provider, SharedProvider) else ActiveSetTraining)(*arguments)
        published = self.solver if isinstance(self.solver, Published) else Published()
        return PublishedTraining(published, problem, provider, self.memory_limit)

    def _run(
        self, training: Any, checkpoint: CheckpointFile | None = None, interrupt: Interrupt | None = None
    ) -> Outcome:
        problem = training.problem
        about = f"{self.formulation}, {self._kernel_name()}, C={self.C:g}, {len(problem.labels)} examples"
        with says_enough_memory(self, problem.X), progress_for(self.verbose) as progress:
            progress.start(f"{about}, {problem.n_classes} classes, memory limit {self.memory_limit / 1e6:.0f} MB")
            limits = Limits(None, self._most_passes, self.time_limit)
            outcome = train(training, limits, progress, checkpoint=checkpoint, interrupt=interrupt)
        losses = len(self.classes_) - 1 if self.formulation == "weston-watkins" else 1
        at_zero = float(problem.delta.max()) * float(problem.costs.sum()) * losses
        dual, provider = outcome.objectives.dual, training.provider
        found = indefinite_objectives(provider, training.half_squared_norm, dual, at_zero)
        provider.indefinite = provider.indefinite or found
        is_rounded = bool(found) and provider.kernel.is_definite
        if (training.has_stalled or is_rounded) and outcome.status != "interrupted":
            outcome = replace(outcome, status="precision")
        return outcome.without_bound() if provider.indefinite else outcome

    def _keep_model(self, training: Any, outcome: Outcome, X: Any) -> None:
        ids, beta = training.support()
        self.support_, self.support_costs_ = ids, training.problem.costs[ids]
        self.dual_coef_, self.scale_ = csr_matrix(beta), training.scale
        self.intercept_ = training.scale * self._intercept(beta)
        if self.kernel != "precomputed":
            training.make_room_for_model()
            vectors = rows_of(X, ids)
            self.support_vectors_ = np.asarray(vectors) if isinstance(vectors, DeviceArray) else vectors
        if self.kernel == "linear":
            weights = self.dual_coef_.T @ self.support_vectors_
            weights = training.scale * (weights.toarray() if issparse(weights) else weights)
            self.coef_ = weights[1:] - weights[:1] if len(weights) == 2 else weights
        self.result_ = Result.of(
            outcome,
            solver="mcsvm",
            iterations=training.iterations(),
            support_patterns=len(ids),
            support_vectors=self.dual_coef_.nnz,
            kernel_values=training.kernel_values,
            operations=dict(training.operations),
            breakdown=training.breakdown,
        )
        self.n_iter_ = math.ceil(self.result_.iterations)


def finite_costs(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The costs of examples, which must have a sum."""
    if not np.isfinite(costs.sum()):
        raise ValueError(f"C times the weights must have a finite sum, got {costs.max():g} for one example")
    return costs


def _nbytes(X: Any) -> float:
    return float(X.nbytes) if isinstance(X, np.ndarray) else math.inf


def _without_constant_features(X: Any) -> Any:
    """Dense examples without the features in which all agree, where there are many of these: no distance changes."""
    varies = X.min(axis=0) != X.max(axis=0)
    if varies.all() or not varies.any() or 1 - varies.mean() < _WORTH_DROPPING:
        return X
    return np.take(X, np.flatnonzero(varies), axis=1)  # in C order, in one copy
