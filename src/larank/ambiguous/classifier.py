"""Multiclass SVMs from sets of candidate labels: algorithm 23 of the thesis, online, with or without kernels.

The session (`core/ambiguous/ambigsvm.hpp`) makes the dual step of the paper on a new example and, if asked to, goes
back to old ones. The labels of examples are the numbers of their candidate sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix, issparse
from sklearn.utils.validation import _num_samples

from larank.ambiguous.candidates import Candidates, GivenSets, is_matrix, number_sets
from larank.base import of_streams
from larank.data.models import persistable, persistable_value
from larank.data.schema import RANDOM_STATE, csr, floats, instance, integer, number, row
from larank.declare import ParameterError, parameter
from larank.docstrings import with_paragraphs
from larank.kernel.linearmachine import LinearMachine, weights_of
from larank.kernel.machine import (
    FITTED_ON_A_STREAM,
    WEIGHTS,
    Algorithm,
    Expansion,
    Machine,
    OnlineClassifier,
    StreamTraining,
    Targets,
    estimate_by_losses,
    session_class,
)
from larank.parameters import Stopping
from larank.publishing import of_one_model
from larank.training import FromScratch, ObjectiveValues, Outcome
from larank.validation import on_host


@persistable_value
@dataclass(frozen=True)
class Regret:
    """How much more an online learner lost on the way than its final model loses on the same examples.

    `online_loss` is the mean loss of the examples, each by the model before it came; `final_loss` that by the final
    model, None where it was not computed. Proposition 13 of the thesis bounds the difference for any model ``w``, here
    for the final one: ``bound`` is ``|w|^2 / (2 n C) + rho C / 2`` with ``rho = 2 max k(x, x)``. Examples count by
    their weights.
    """

    examples: int
    online_loss: float
    final_loss: float | None
    bound: float

    @property
    def value(self) -> float | None:
        """The regret itself."""
        return None if self.final_loss is None else self.online_loss - self.final_loss


class AmbiguousSVM(Algorithm):
    """The dual steps under ambiguous supervision, as the machine sees them."""

    solver = "ambiguous"
    title = "Ambiguous SVM"
    fixed = (*Algorithm.fixed, "n_reprocess")
    keeps_weights = True

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.keeps_rows = model.n_reprocess > 0
        self._final_loss: float | None = None

    def machine(self, X: Any, seed: int) -> Machine:
        """One that keeps weights, for the linear kernel."""
        if self.model.kernel != "linear":
            return super().machine(X, seed)
        self.model._resolved_kernel(X)  # checks its parameters
        session = session_class("LinearAmbigSVM", X.dtype)(
            n_reprocess=int(self.model.n_reprocess), seed=seed, features=X.shape[1]
        )
        return LinearMachine(session, X)

    def session(self, dtype: np.dtype[Any], seed: int) -> Any:
        """A compiled session that has seen nothing."""
        limit = int(self.model.memory_limit)
        return session_class("KernelAmbigSVM", dtype)(
            n_reprocess=int(self.model.n_reprocess), seed=seed, memory_limit=limit
        )

    def begin_training(self, training: StreamTraining) -> None:
        """Remember the sets as they are given, where they may change."""
        examples = training.stream.examples
        training.machine.left_out += len(examples) - len(training.stream.order)
        self._left_out = training.machine.left_out
        if self.model.sharpness:
            self._given = GivenSets.of(training.session, examples.ids, examples.labels)

    def begin_epoch(self, training: StreamTraining) -> Iterator[None]:
        """Weigh the candidates by what the model makes of them, and believe it the more the later it is."""
        if not self.model.sharpness:
            return
        sharpness = self.model.sharpness * training.epoch / (training.settings.most_passes - 1)
        stream = training.stream
        expansion = self.expansion(training.session)
        beta, _ = expansion.for_classes(len(self.model._arrived), absent=0.0)
        scores = np.zeros((len(stream.examples), beta.shape[1]))
        done = 0
        for block, of_block, _ in training.scanned(expansion, beta):
            scores[stream.order[done : done + len(block)]] = of_block
            done += len(block)
            yield
        stream.examples.labels[:] = self._given.weighed(training.session, scores, sharpness)

    def estimate(self, training: StreamTraining) -> ObjectiveValues:
        """By the losses of the examples as they came."""
        return estimate_by_losses(training)

    def objectives(self, training: StreamTraining) -> FromScratch:
        """(6.5) of the thesis and its dual, and the largest loss that an example's coefficients do not account for."""
        expansion = self.expansion(training.session)
        beta, _ = expansion.for_classes(len(self.model._arrived), absent=0.0)
        linear = float(beta.clip(min=0).sum())
        squared_norm = losses = costs = violation = 0.0
        for block, scores, own in training.scanned(expansion, beta):
            of_model = np.ascontiguousarray(training.machine.model_scores(block.X, scores))
            loss = training.session.losses(of_model, block.labels)
            products = (own * scores).sum(axis=1)
            squared_norm += float(products.sum())
            losses += float(block.costs @ loss)
            costs += float(block.costs.sum())
            unaccounted = loss - (own.clip(min=0).sum(axis=1) - products) / block.costs
            violation = max(violation, float(unaccounted.max()))
            yield
        half = squared_norm / 2
        self._look_at_objectives(training, half, linear - half)
        if not self.model.sharpness:
            self._final_loss = losses / costs
        # Coefficients of examples whose candidates weigh something else since the last visit keep no bounds.
        is_between = bool(self.model.sharpness) and training.epoch > 0 and training.visited_in_epoch < training.size
        primal = training.machine.model_half_squared_norm(half) + losses
        return ObjectiveValues(primal, math.nan if is_between else linear - half, violation)

    def check(self, training: StreamTraining, outcome: Outcome) -> Outcome:
        """What was not computed from scratch may show what the kernel is, too."""
        if training.is_whole and not outcome.exact:
            self._look_at_objectives(training, training.session.half_squared_norm, training.session.dual)
        if training.session.online.examples < len(training.stream.order):
            self._final_loss = None  # it is that of more examples than came
        return outcome

    def _look_at_objectives(self, training: StreamTraining, half_squared_norm: float, dual: float) -> None:
        at_zero = float(training.stream.examples.costs.sum())
        training.machine.look_at_objectives(half_squared_norm, dual, at_zero)

    def expansion(self, session: Any) -> Expansion:
        """The coefficients beta, of two classes at least."""
        return Expansion.of(session, at_least=2)

    def keep(self, session: Any, expansion: Expansion) -> None:
        """The candidates and costs of the patterns, the weights of the linear kernel, and what it takes to go on."""
        model = self.model
        model.support_costs_ = expansion.costs
        starts, labels, weights, _ = session.sets(expansion.labels)
        sets = csr_matrix((weights, labels, starts), shape=(len(expansion.labels), len(model._arrived)))
        model.support_candidates_ = csr_matrix(sets @ model._to_classes(len(model._arrived)))
        model._state = session.state
        model.regret_ = self._regret(session)
        if model.kernel == "linear":
            model.coef_ = weights_of(model, session.weights())

    def _regret(self, session: Any) -> Regret:
        online = session.online
        costs = online.costs or 1.0
        rho = 2 * online.largest
        total = session.half_squared_norm + rho / 2 * online.squared_costs
        return Regret(online.examples, online.losses / costs, self._final_loss, total / costs)

    def withdraw_bounds(self) -> None:
        """That of the regret."""
        self.model.regret_ = replace(self.model.regret_, bound=math.nan)

    def restore(self, machine: Machine) -> None:
        """Let a fresh session take over the model."""
        model, session = self.model, machine.session
        for _ in model._arrived:
            session.add_class()
        to_arrived = model._to_classes(max(2, len(model._arrived))).T
        beta = csr_matrix(model.dual_coef_ @ to_arrived)
        sets = csr_matrix(model.support_candidates_ @ to_arrived)
        sets.sort_indices()
        numbers = number_sets(session, sets, np.full(sets.shape[0], len(model._arrived)))
        machine.restore(model, numbers, model.support_costs_, beta)
        session.state = model._state

    def operations(self, session: Any) -> dict[str, int]:
        """How often each operation was performed, and how many examples were left out."""
        counts = {name: getattr(session.counters, name) for name in ("process_new", "reprocess", "steps")}
        return {**counts, "uninformative": self._left_out}


@with_paragraphs
@persistable(
    **{**FITTED_ON_A_STREAM, "dual_coef_": csr("n_support", "n_classes", full=True)},
    support_costs_=floats("n_support", least=0),
    support_candidates_=csr("n_support", "n_classes", full=True),
    coef_=WEIGHTS,
    regret_=instance("Regret"),
    _state=row(*[number()] * 3, integer(), *[number()] * 4, RANDOM_STATE),
)
class AmbiguousClassifier(Stopping, OnlineClassifier):
    """Multiclass SVM trained online from sets of candidate labels, of which at least one should be right.

    Names in a caption and a face, the labels of an image and one of its segments, annotators who disagree: which of
    the candidates is right is not known. Training ranks the candidates of an example above all other classes, by the
    mean of the hinge losses of all pairs of a candidate and another class. If wrong candidates come at random, the
    class on top is the right one. A plain label is a set of one.

    Attributes
    ----------
    [model]
    dual_coef_ : csr_matrix of shape (n_support, n_classes)
        The coefficients ``beta``. Those of a pattern add up to zero; those of its candidates are not negative, and
        those of other classes not positive.
    support_costs_ : ndarray of shape (n_support,)
        `C` times the weights of the support patterns.
    support_candidates_ : csr_matrix of shape (n_support, n_classes)
        The weights of their candidates, which add up to one.
    [coef_]
    regret_ : Regret
        The mean loss of the examples as they came beside that by the final model, and the bound of proposition 13 of
        the thesis on the difference. With `sharpness` the final model solves another problem, and its loss is None.
    result_ : Result
        The certificate: objectives, gap, counts, seconds and the history. ``operations["uninformative"]`` counts
        examples that were left out, because all classes are their candidates or their weight is zero. Counts are those
        of the last call.

    Notes
    -----
    ``max_iter=20`` with ``sharpness=20`` is a good start, and better than one pass on most data; `C` and `gamma` can be
    selected by `score` on candidates that were held out. A large `C` learns wrong candidates by heart.

    The problem is ``min 1/2 |w|^2 + C sum_i L_i``, where ``L_i`` is the mean over candidates ``y``, by their weights,
    and over other classes ``z`` of ``max(0, 1 - s_y + s_z)``. With a single candidate it is the SVM of Weston and
    Watkins, whose ``C`` is that of this one divided by the number of wrong classes.

    In a stream, classes that come with a call of `partial_fit` take part from that call on, and reprocessing ranks the
    candidates of old patterns above them, too: without it (``n_reprocess=0``), a new class that comes alone is
    predicted far too often. Name all `classes` in the first call where calls with parts of a stream must make the same
    model as one call with all of it.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, section 6.1.

    Examples
    --------
    >>> import numpy as np
    >>> from larank import AmbiguousClassifier
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> X, y = letter.X_train[:4000].astype("float32"), letter.y_train[:4000]
    >>> wrong = np.random.default_rng(0).choice(np.unique(y), size=(len(y), 2))
    >>> candidates = [{right, *others} for right, others in zip(y, wrong)]
    >>> model = AmbiguousClassifier(C=10, gamma=0.025, max_iter=5, random_state=0).fit(X, candidates)
    >>> bool(model.score(letter.X_test.astype("float32"), letter.y_test) > 0.8)
    True
    """

    C: float = parameter(
        "Inverse regularisation strength: the cost of one unit of loss against ``1/2 |w|^2``. Larger values fit the "
        "training data more closely.",
        default=1.0,
        above=0,
    )
    n_reprocess: int = parameter(
        "Number of random support vectors that are optimised again after each new example. 0 is algorithm 23 of the "
        "thesis, one step per example, and needs no kernel values between support vectors.",
        default=1,
        least=0,
    )
    sharpness: float = parameter(
        "How strongly the model's scores reweight the candidates between passes: before the last pass the weight of "
        "each candidate is what was given times ``exp(sharpness * score)``, and before earlier passes a part of that "
        "which grows in equal steps. 0 keeps the weights; 20 finds the right candidates if the wrong ones do not come "
        "at random, with ``max_iter=30``. The certificate is that of the problem with the last weights; if training "
        "ends within a pass after the first, there is no dual objective. Needs `max_iter` of at least 2 and no `tol`.",
        default=0.0,
        least=0,
    )

    _ALGORITHM = AmbiguousSVM

    def _check_together(self) -> None:
        super()._check_together()
        if self.sharpness and (self.tol is not None or self.max_iter in (None, 1)):
            raise ParameterError(
                "sharpness",
                "must be 0 unless there are several passes between which candidates are weighed; got "
                f"sharpness={self.sharpness!r} with max_iter={self.max_iter!r} and tol={self.tol!r}. Set max_iter=20 "
                "and tol=None",
            )

    def _why_no_stream(self) -> str:
        if self.sharpness:
            return f"with sharpness={self.sharpness!r}, which weighs candidates between passes; sharpness must be 0"
        return super()._why_no_stream()

    @with_paragraphs
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        validation: tuple[Any, ArrayLike] | None = None,
        certify: bool | Literal["auto"] = "auto",
    ) -> Self:
        """Train on `X` and candidate labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
            The examples. float32 data make float32 kernel values, which are faster. With ``kernel="precomputed"`` it
            is the square matrix of kernel values.
        y : candidates
            A list with a set, list, tuple or array of labels for each example; or with a dict from labels to weights,
            such as the numbers of annotators who chose them; or an array, data frame or sparse matrix of shape
            (n_samples, n_classes) of zeros and ones, or of weights; or an array of shape (n_samples,) with one label
            for each example. The order of candidates does not matter, and a list that names one twice counts it once.
            An example whose candidates are all classes is left out. A weight says how much the ranking of a candidate
            above the other classes counts; it does not rank it above other candidates, which `sharpness` does.
        [sample_weight]
        classes : array of labels, optional
            The labels of the columns, where `y` is a matrix; 0, 1, ... or the names of a data frame's columns if not
            given. Otherwise classes that take part even if they are nobody's candidates.
        [validation]
        [certify]

        [fitted]
        """
        return self._fit(X, y, sample_weight, validation, certify, classes)

    @of_streams
    @with_paragraphs
    def partial_fit(
        self, X: Any, y: Any = None, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on training with new examples, in the order in which they come.

        Calls with parts of a stream make the same model as one call with all of it, if
        `gamma` is a number and `classes` are named in the first; up to rounding, where kernel values are rounded
        differently. There is no certificate from scratch.

        Parameters
        ----------
        X, y
            As for `fit`.
        classes : array of labels, optional
            Classes that take part from now on, whether or not they are among the candidates; the labels of the
            columns, where `y` is a matrix.
        [sample_weight]

        [fitted]
        """
        return self._partial_fit(X, y, classes, sample_weight)

    def _examples(self, X: Any, y: Any, classes: ArrayLike | None, *, reset: bool) -> tuple[Any, Targets]:
        y = on_host("y", y)
        if y is None or _is_one_label_each(y):
            X, labels = self._validated(X, y, reset=reset)
            return X, Candidates.of_labels(labels, classes)
        X = self._validated(X, reset=reset)
        if _num_samples(y) != _num_samples(X):
            raise ValueError(f"X and y must be equally long, got {_num_samples(X)} and {_num_samples(y)}")
        candidates = Candidates.of(y, classes)
        if is_matrix(y):
            candidates.warn_if_most_are_full(len(candidates.labels))
        return X, candidates

    @of_one_model
    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The share of predictions that are right: true labels, or one of the candidates.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a sequence of objects
            The examples.
        y : true labels, or candidates
            Labels of shape (n_samples,), or candidates as `fit` takes them; the columns of a matrix are `classes_`.
            Candidates of examples that were held out are what parameters can be selected by, where nobody knows the
            true labels.
        sample_weight : array of shape (n_samples,), optional
            How much each example counts.
        """
        y, sample_weight = on_host("y", y), on_host("sample_weight", sample_weight)
        if y is None or _is_one_label_each(y):
            return float(super().score(X, y, sample_weight))
        candidates = Candidates.of(y, self.classes_ if is_matrix(y) and not hasattr(y, "columns") else None)
        predicted = self.predict(X)
        if len(predicted) != len(candidates):
            raise ValueError(f"X and y must be equally long, got {len(predicted)} and {len(candidates)}")
        columns = {label: n for n, label in enumerate(candidates.labels.tolist())}
        found = np.array([columns.get(label, -1) for label in predicted.tolist()])
        among = candidates.weights.toarray()[np.arange(len(found)), found] > 0
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return float(np.average((found >= 0) & among, weights=weights))


def _is_one_label_each(y: Any) -> bool:
    """Whether y is an array of labels, or a list of them, and not of candidates."""
    if is_matrix(y):
        return bool(y.shape[1] == 1) and not issparse(y)
    if hasattr(y, "shape"):
        y = np.asarray(y)
        return not (y.dtype == object and any(map(_is_collection, y)))
    return not (isinstance(y, list | tuple) and any(map(_is_collection, y)))


def _is_collection(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes)
