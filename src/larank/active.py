"""A learner that asks a person for labels, one at a time, by the strategies of `larank.kernel.selection`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing, check_random_state

from larank import parameters
from larank.kernel.selection import (
    Active,
    AutoActive,
    Gradient,
    GradualStrategy,
    Pool,
    Random,
    Strategy,
    strategy_named,
    uncertainty_margin,
)
from larank.sparse import check_sparse
from larank.training import on_interrupt, raises

__all__ = [
    "Active",
    "ActiveLearner",
    "AutoActive",
    "Gradient",
    "GradualStrategy",
    "LabelBudgetExhausted",
    "PoolExhausted",
    "Random",
    "Strategy",
]

_Index = NDArray[np.int64]
_Float = NDArray[np.float64]

_NOT_GIVEN: Any = object()  # None is what a caller may pass by mistake


class LabelBudgetExhausted(RuntimeError):  # noqa: N818 - a loop may well end with it
    """All the labels that may be asked for have been given."""


class PoolExhausted(RuntimeError):  # noqa: N818
    """Every example of the pool has been labelled or skipped."""


class ActiveLearner:
    """Ask for labels one at a time, each time for the example that promises most.

    Each label is one `partial_fit` of the estimator: it takes one online step and is not trained again, as in [thesis]
    algorithm 14. Queries are random until labels of two classes are there.

    Parameters
    ----------
    estimator : estimator with `partial_fit` and `decision_function`
        It is trained in place, and may have been trained before. A kernel's `gamma` should be a number: with "scale"
        the first example would decide.
    X : array, CSR matrix, data frame or sequence of objects
        The pool of examples without labels. It is neither copied nor changed.
    selection : {"active", "autoactive", "random"} or strategy, default="active"
        How examples are chosen: the one nearest to the decision boundary out of a random sample, out of a sample that
        ends once it has a few near ones, or at random. ``Active(sample_size=None)`` from `larank.active` looks at all.
    sample_size : int, optional
        The size of the sample; 50 with "active" and at most 100 with "autoactive" if not given.
    classes : array, optional
        All labels that may come, for the first call of `partial_fit`. scikit-learn's estimators need them;
        `LaRankClassifier` then expects all of these classes from the start.
    label_budget : int, optional
        How many labels may be given in all.
    random_state : int, RandomState or None, default=None
        Of the samples.

    Attributes
    ----------
    estimator : estimator
        The model as it is now.
    labels_used : int
        How many labels were given.
    remaining : int
        How many more examples can be asked about: those in the pool, or fewer where the budget ends first.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, section 4.3.

    Examples
    --------
    >>> from larank import ActiveLearner, LaRankClassifier
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> model = LaRankClassifier(C=10, gamma=0.025, random_state=0)
    >>> learner = ActiveLearner(model, letter.X_train, label_budget=100, random_state=0)
    >>> while learner.remaining:
    ...     index, x = learner.query()
    ...     label = letter.y_train[index]  # a person would look at x
    ...     learner.teach(x, label)
    >>> learner.labels_used
    100
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        *,
        selection: str | Strategy = "active",
        sample_size: int | None = None,
        classes: ArrayLike | None = None,
        label_budget: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        """Check everything; nothing is trained yet."""
        self._strategy = strategy_named(selection, sample_size)
        if self._strategy.needs_labels:
            raise ValueError(
                f"selection must not depend on labels that nobody has given yet, as 'random', 'active' and "
                f"'autoactive' do not; got {selection!r}"
            )
        if label_budget is not None:
            parameters.whole_number("label_budget", label_budget, at_least=1)
        _check_estimator(estimator)
        self.estimator = estimator
        self.labels_used = 0
        self._X = X
        self._pool = Pool(_pool_size(X), check_random_state(random_state))
        self._skipped: set[int] = set()
        self._asked: tuple[int, Any] | None = None  # the query without an answer
        self._label_budget = label_budget
        self._classes = None if classes is None else np.asarray(classes)
        self._labels: set[Any] = set(getattr(estimator, "classes_", ()))

    @property
    def remaining(self) -> int:
        """How many more examples can be asked about."""
        return min(len(self._pool), self._labels_left(len(self._pool)))

    def query(self) -> tuple[int, Any]:
        """Choose the example to be labelled next; the same one until it is taught or skipped.

        Returns
        -------
        index : int
            Its number in the pool.
        x : row, matrix of one row, or object
            The example, to be given back to `teach`.

        Raises
        ------
        LabelBudgetExhausted
            If the budget is spent.
        PoolExhausted
            If there are no more examples.
        """
        self._check_budget(1)
        if self._asked is None:
            if not len(self._pool):
                raise PoolExhausted(
                    f"all {_length(self._X)} examples of X were labelled or skipped; teach still takes others"
                )
            index = self._choose()
            self._asked = index, _example(self._X, index)
        return self._asked

    def teach(self, x: Any = _NOT_GIVEN, y: Any = _NOT_GIVEN, *, index: ArrayLike | None = None) -> None:
        """Train on an example whose label is known now.

        Parameters
        ----------
        x : example, or with several labels a collection of them
            What `query` returned, or examples of your own. May be left out if `index` is given.
        y : label, or array of labels
            Several examples are one call of `partial_fit`.
        index : int or array of int, optional
            The numbers in the pool, if these are examples of it. With what `query` returned, or an equal `x`, it is
            not needed.

        Raises
        ------
        KeyboardInterrupt
            If Ctrl-C has ended training, unless `on_interrupt` has it otherwise. The model is valid, and the labels
            count as given.
        """
        if y is _NOT_GIVEN or y is None:
            raise ValueError(
                f"y must be a label or an array of labels, got {'nothing' if y is _NOT_GIVEN else None}; skip() leaves "
                f"an example without one"
            )
        if x is _NOT_GIVEN and index is None:
            raise ValueError("x must be an example, got nothing; without it, index must name one of the pool")
        labels = np.asarray(y) if np.ndim(y) else np.asarray([y])
        if labels.ndim != 1 or not len(labels):
            raise ValueError(f"y must be a label or a one-dimensional array of labels, got shape {labels.shape}")
        numbers = self._answered(x) if index is None and not np.ndim(y) else self._checked_numbers(index, y)
        self._check_budget(len(labels))
        self._train(self._examples(x, numbers, is_single=not np.ndim(y)), labels)
        for number in numbers:
            self._take_out(number)
        if self._is_interrupted() and raises(is_one_of_many=True):
            raise KeyboardInterrupt("training was ended by an interrupt; the model is valid, and the labels count")

    def _is_interrupted(self) -> bool:
        """Whether Ctrl-C has ended the last training, of an estimator that can tell."""
        result = getattr(self.estimator, "result_", None)
        return getattr(result, "status", None) == "interrupted"

    def skip(self) -> None:
        """Leave the example of the last query without a label; it is not asked about again."""
        if self._asked is None:
            raise ValueError("skip() must follow query(); there is no query without an answer")
        index, _ = self._asked
        self._take_out(index)
        self._skipped.add(index)

    def _choose(self) -> int:
        strategy = self._strategy
        if not strategy.needs_scores or len(self._labels) < 2:
            return int(self._pool.draw(1)[0])
        candidates = self._pool.draw(strategy.draws)
        margins = uncertainty_margin(self._decisions(candidates))
        delta = np.asarray(getattr(self.estimator, "delta_", 0.0))
        reach = 1 + float(delta.item()) / 2 if delta.size == 1 else 1.0
        return int(candidates[strategy.choose(margins, reach)])

    def _decisions(self, candidates: _Index) -> _Float:
        decisions = np.asarray(self.estimator.decision_function(_rows(self._X, candidates)))
        if len(decisions) != len(candidates) or decisions.ndim not in (1, 2):
            raise ValueError(
                f"estimator.decision_function must return a value or a row of scores per example, for "
                f"{len(candidates)} examples; got shape {decisions.shape}"
            )
        if not np.isfinite(decisions).all():
            raise ValueError(
                f"estimator.decision_function must return finite numbers, got {decisions[~np.isfinite(decisions)][0]}"
            )
        return decisions

    def _answered(self, x: Any) -> list[int]:
        """The number of the example asked about, if x is that one."""
        if self._asked is None:
            return []
        index, asked = self._asked
        return [index] if _is_same(x, asked) else []

    def _checked_numbers(self, index: ArrayLike | None, y: Any) -> list[int]:
        """The numbers in the pool, as many as labels, all different and without a label so far."""
        if index is None:
            return []
        if np.shape(index) != np.shape(y):
            raise ValueError(f"index and y must be of the same shape, got {np.shape(index)} and {np.shape(y)}")
        try:
            numbers = [operator.index(number) for number in np.atleast_1d(index)]
        except TypeError:
            raise ValueError(f"index must be an integer or an array of integers, got {index!r}") from None
        size = _length(self._X)
        for number in numbers:
            if not 0 <= number < size:
                raise ValueError(f"index must be from 0 to {size - 1}, got {number}")
            if number not in self._pool and number not in self._skipped:
                raise ValueError(f"index must be that of an example without a label, got {number}, which has one")
        if len(set(numbers)) < len(numbers):
            raise ValueError(f"index must not name an example twice, got {index!r}")
        return numbers

    def _examples(self, x: Any, numbers: list[int], *, is_single: bool) -> Any:
        """What `partial_fit` takes: rows of the pool, or what the caller gave."""
        is_answer = self._asked is not None and numbers == [self._asked[0]] and x is self._asked[1]
        if x is _NOT_GIVEN or is_answer:
            return _rows(self._X, np.array(numbers))
        return _one_row(x, self._X) if is_single else x

    def _train(self, X: Any, labels: NDArray[Any]) -> None:
        if len(labels) != _length(X):
            raise ValueError(f"y must be one label per example, got {len(labels)} for {_length(X)} examples")
        known = {} if self._classes is None else {"classes": self._classes}
        with on_interrupt("return"):  # what was learnt is to be noted first
            self.estimator.partial_fit(X, labels, **known)
        self._classes = None  # those of the first call hold
        self.labels_used += len(labels)
        self._labels.update(labels.tolist())

    def _take_out(self, index: int) -> None:
        if index in self._pool:
            self._pool.remove(index)
        self._skipped.discard(index)
        if self._asked is not None and self._asked[0] == index:
            self._asked = None

    def _labels_left(self, otherwise: int) -> int:
        return otherwise if self._label_budget is None else self._label_budget - self.labels_used

    def _check_budget(self, labels: int) -> None:
        if self._labels_left(labels) < labels:
            raise LabelBudgetExhausted(
                f"label_budget={self._label_budget} does not allow {labels} more, {self.labels_used} labels were used"
            )


def _check_estimator(estimator: Any) -> None:
    for method in ("partial_fit", "decision_function"):
        wanted = f"estimator must be an object with {method}, such as LaRankClassifier(); got {estimator!r}"
        try:
            is_there = callable(getattr(estimator, method)) and not isinstance(estimator, type)
        except AttributeError as error:
            raise ValueError(f"{wanted}: {error}") from None
        if not is_there:
            raise ValueError(wanted)
    if getattr(estimator, "kernel", None) == "precomputed":
        raise ValueError(
            "estimator must compute its kernel, got kernel='precomputed', whose columns would have to follow the "
            "order of the labels; with a matrix K, let X be list(range(len(K))) and the kernel "
            "lambda a, b: K[np.ix_(a, b)]"
        )


def _pool_size(X: Any) -> int:
    """How many examples X has, if it can be asked for single ones."""
    if issparse(X) and X.format != "csr":
        raise ValueError(f"X must be a CSR matrix if it is sparse, got format {X.format!r}; X.tocsr() would do")
    if issparse(X):
        check_sparse(X)
    if isinstance(X, np.ndarray) and X.ndim != 2 and X.dtype.kind not in "OUS":
        raise ValueError(f"X must have two dimensions, or be a sequence of objects; got shape {X.shape}")
    if isinstance(X, str) or not (hasattr(X, "shape") or isinstance(X, Sequence)):
        raise ValueError(f"X must be an array, a CSR matrix, a data frame or a sequence, got {type(X).__name__}")
    if not _length(X):
        raise ValueError("X must hold at least one example, got none")
    return _length(X)


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns")


def _rows(X: Any, numbers: _Index) -> Any:
    """Some examples, in a collection like X."""
    if isinstance(X, np.ndarray) or issparse(X):
        return X[numbers]
    return _safe_indexing(X, numbers) if _is_frame(X) else [X[number] for number in numbers.tolist()]


def _example(X: Any, number: int) -> Any:
    """One example; of a matrix with names or few values, a matrix of one row."""
    if issparse(X) or _is_frame(X):
        return _rows(X, np.array([number]))
    return X[number]


def _one_row(x: Any, pool: Any) -> Any:
    """A collection of one example, like the pool."""
    if _is_frame(x):
        return x
    if issparse(x):
        return x.reshape(1, -1)
    is_table = issparse(pool) or _is_frame(pool) or (isinstance(pool, np.ndarray) and pool.ndim == 2)
    return np.asarray(x).reshape(1, -1) if is_table else [x]


def _is_same(x: Any, asked: Any) -> bool:
    """Whether x is the example asked about, or equal to it."""
    if x is asked:
        return True
    if issparse(asked):
        return issparse(x) and x.shape == asked.shape and not (x != asked).nnz
    if isinstance(asked, np.ndarray):
        return np.array_equal(np.asarray(x).reshape(-1), asked.reshape(-1))
    if _is_frame(asked):
        return _is_frame(x) and bool(asked.equals(x))
    try:
        return bool(asked == x)
    except ValueError:  # objects that hold arrays
        return False
