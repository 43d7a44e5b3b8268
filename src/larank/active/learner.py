"""A learner that asks a person for labels, and takes back what the person takes back."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from copy import deepcopy
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from larank import declare, parameters
from larank.active.advice import Advice, Watch
from larank.active.diversity import CHOICES, shortlist, spread_out
from larank.active.examples import as_numbers, content_of, example, is_same, length, one_row, pool_size, rows
from larank.active.record import (
    Correction,
    Event,
    LabellingRecord,
    Lesson,
    Skip,
    check_estimator,
    check_strategy,
    event_of,
    lessons,
    plain,
)
from larank.data import models
from larank.kernel.selection import Pool, Random, Strategy, strategy_named, uncertainty_margin
from larank.training import on_interrupt, raises, random_state_of, set_random_state
from larank.validation import on_host

_Index = NDArray[np.int64]
_Float = NDArray[np.float64]

_NOT_GIVEN: Any = object()  # None is what a caller may pass by mistake


class LabelBudgetExhausted(RuntimeError):  # noqa: N818 - a loop may well end with it
    """All the labels that may be asked for have been given."""


class PoolExhausted(RuntimeError):  # noqa: N818
    """Every example of the pool has been labelled or skipped."""


class ActiveLearner:
    """Ask for labels, each time of the examples that promise most.

    Each label is one `partial_fit` of the estimator: it takes one online step and is not trained again, as in [thesis]
    algorithm 14. Queries are random until labels of two classes are there.

    Parameters
    ----------
    estimator : estimator with `partial_fit` and `decision_function`
        It is trained in place, and may have been trained before. A kernel's `gamma` should be a number: with "scale"
        the first example would decide.
    X : array, CSR matrix, data frame or sequence of objects
        The pool of examples without labels. It is neither copied nor changed. An array of another library is read as a
        NumPy array, and `query` returns rows of it.
    selection : {"active", "autoactive", "random"} or strategy, default="active"
        How examples are chosen. "active" takes the example of a random sample of 50 that is nearest to the decision
        boundary. "autoactive" ends the sample once it has five near ones, and takes at most 100. "random" takes any.
        ``Active(sample_size=50, budget=None)``, ``AutoActive(sample_size=100, enough=5, budget=None)`` and
        ``Random(budget=None)`` of `larank.active` set the size of the sample, with ``sample_size=None`` the whole pool,
        and the maximum number of labels.
    classes : array, optional
        All labels that may come, for the first call of `partial_fit`. scikit-learn's estimators need them;
        `LaRankClassifier` then expects all of these classes from the start.
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
    labelled : dict
        The labels of examples of the pool by their numbers, in the order in which they were given.
    asked : tuple of int
        The numbers of the examples that were asked about and have no answer yet.
    skipped : tuple of int
        The numbers of the examples that were skipped.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, section 4.3.

    Examples
    --------
    >>> from larank import ActiveLearner, LaRankClassifier
    >>> from larank.active import Active
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> model = LaRankClassifier(C=10, gamma=0.025, random_state=0)
    >>> learner = ActiveLearner(model, letter.X_train, selection=Active(budget=100), random_state=0)
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
        classes: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        """Check everything; nothing is trained yet."""
        self._strategy = check_strategy(strategy_named(selection))
        check_estimator(estimator)
        X = on_host("X", X)
        self.estimator = estimator
        self._start: Any = None  # the estimator as it was before the first lesson
        self._X = X
        self._random = check_random_state(random_state)
        self._pool = Pool(pool_size(X), self._random)
        self._asked: dict[int, Any] = {}  # the examples without an answer by their numbers
        self._batch: tuple[_Index, Any] | None = None  # the last several that were handed out
        self._watch = Watch.over(length(X), np.random.RandomState(0))
        self._classes = None if classes is None else np.asarray(classes)
        self._known = frozenset(getattr(estimator, "classes_", ()))  # labels before the first lesson
        self._set_events([])

    @property
    def remaining(self) -> int:
        """How many more examples can be asked about."""
        return min(len(self._pool), self._labels_left(len(self._pool)))

    @property
    def labelled(self) -> dict[int, Any]:
        """The labels of examples of the pool, by their numbers."""
        return {
            number: label
            for lesson in lessons(self._events)
            if lesson.numbers
            for number, label in zip(lesson.numbers, lesson.labels, strict=True)
        }

    @property
    def asked(self) -> tuple[int, ...]:
        """The numbers of the examples that wait for an answer."""
        return tuple(self._asked)

    @property
    def skipped(self) -> tuple[int, ...]:
        """The numbers of the examples that were skipped and have no label."""
        return tuple(self._skipped)

    def query(self, n: int | None = None) -> tuple[Any, Any]:
        """Choose the example to be labelled next, or several that differ from each other.

        They are the same until they are taught or skipped: examples that wait for an answer come first.

        Parameters
        ----------
        n : int, optional
            How many to choose, for a person who labels them in one sitting; fewer come where fewer remain. The strategy
            chooses twice as many, and those that are farthest from each other are taken: by their features where
            these are numbers, otherwise by the decisions of the model.

        Returns
        -------
        index : int, or array of int if `n` is given
            The numbers in the pool.
        x : row, matrix of one row, or object; or a collection like X
            The examples, to be given back to `teach`.

        Raises
        ------
        LabelBudgetExhausted
            If the budget is spent.
        PoolExhausted
            If there are no more examples.
        """
        if n is not None:
            parameters.whole_number("n", n, at_least=1)
        self._check_budget(1)
        if not len(self._pool):
            raise PoolExhausted(
                f"all {length(self._X)} examples of X were labelled or skipped; teach still takes others"
            )
        wanted = min(n or 1, self.remaining)
        for number in self._choose(wanted - len(self._asked)).tolist():
            self._asked[number] = example(self._X, number)
        if n is None:
            return next(iter(self._asked.items()))
        numbers = np.array(list(self._asked)[:wanted])
        self._batch = numbers, rows(self._X, numbers)
        return self._batch

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
        is_single = not np.ndim(y)
        numbers = self._answered(x, len(labels), is_single) if index is None else self._checked_numbers(index, y)
        self._check_budget(len(labels))
        self._learn(Lesson(tuple(numbers), tuple(labels.tolist()), self._own(x, numbers, is_single)), labels)
        for number in numbers:
            self._take_out(number)
        if self._is_interrupted(self.estimator) and raises(is_one_of_many=True):
            raise KeyboardInterrupt("training was ended by an interrupt; the model is valid, and the labels count")

    def skip(self, index: int | None = None) -> None:
        """Leave an example without a label; it is not asked about again.

        Parameters
        ----------
        index : int, optional
            Its number; by default that of the example that `query()` returns.
        """
        if index is None and not self._asked:
            raise ValueError("skip() must follow query(); there is no query without an answer")
        number = next(iter(self._asked)) if index is None else self._checked_numbers(index, 0)[0]
        if number in self._skipped:
            raise ValueError(f"index must be that of an example that was not skipped, got {number}, which was")
        self._note(Skip(number))
        self._take_out(number)

    def undo(self) -> None:
        """Take back what was said last: the labels of one call of `teach`, a `skip` or a `correct`.

        The examples without an answer then are asked about next. The model is made again from the labels that are left,
        so that it is as if the last ones had never been given; that takes as long as all lessons so far.
        """
        if not self._events:
            raise ValueError("undo() must follow teach(), skip() or correct(); nothing was said so far")
        *before, last = self._events
        if not isinstance(last, Skip):
            self._retrain(before)
        self._set_events(before)
        if isinstance(last, Lesson):
            self._watch.forget_after(self.labels_used, len(last.labels))
        if not isinstance(last, Correction):
            self._reopen(last.numbers if isinstance(last, Lesson) else (last.number,))

    def correct(self, index: int, label: Any) -> None:
        """Give an example of the pool another label; the model is made again, as if it had been given at once.

        Parameters
        ----------
        index : int
            The number of an example that has a label: one of `labelled`.
        label : label
            The right one.
        """
        number = _whole(index, index)
        labelled = self.labelled
        if number not in labelled:
            raise ValueError(f"index must be that of an example with a label, one of `labelled`; got {index!r}")
        if label is None or np.ndim(label):
            raise ValueError(f"label must be one label, got {label!r}; undo() takes one back")
        label = np.asarray([label]).tolist()[0]
        if label == labelled[number]:
            return
        events = [*self._events, Correction(number, label)]
        self._retrain(events)
        self._set_events(events)

    def advice(self, further: int = 100, *, worthwhile: float = 0.005) -> Advice:
        """Whether further labels are worth their trouble.

        Parameters
        ----------
        further : int, default=100
            How many more labels to think of.
        worthwhile : float, default=0.005
            The gain in accuracy below which they are not.

        Returns
        -------
        Advice
            How often model and person agree, how much the model still changes, and what that promises. It needs an
            estimator with `predict`. ``print(learner.advice())`` says it in words.
        """
        parameters.whole_number("further", further, at_least=1)
        parameters.positive("worthwhile", worthwhile, zero=True)
        predictions = self._guessed(rows(self._X, self._watch.numbers))
        return self._watch.advice(self.labels_used, predictions, further, float(worthwhile))

    # ---- Files ----

    def save(self, path: str | PathLike[str]) -> None:
        """Write all that was said, the open questions and the model to a file, replacing it as a whole.

        The pool is not written. Where the estimator cannot be saved, because it is not of this library or has a
        function for a kernel, `load` must be given one.

        Parameters
        ----------
        path : path-like
            Customarily `*.larank`.
        """
        try:
            models.save(self._record(with_model=True), path)
        except TypeError:
            models.save(self._record(with_model=False), path)

    @classmethod
    def load(cls, path: str | PathLike[str], X: Any, *, estimator: Any = None) -> Self:
        """Go on with a file that `save` wrote: the next question is the one that would have come.

        Parameters
        ----------
        path : path-like
            The file.
        X : array, CSR matrix, data frame or sequence of objects
            The same pool as before.
        estimator : estimator, optional
            As it was before the first lesson. It takes all lessons again. Needed only where it is not in the file.

        Raises
        ------
        ModelFileError
            If the file is damaged, or holds something else.
        ValueError
            If X is another pool, or an estimator is needed.
        """
        record = models.load(path)
        if not isinstance(record, LabellingRecord):
            raise models.ModelFileError(f"{path} holds a {type(record).__name__} and no labels; larank.load reads it")
        if estimator is None and record.start is None:
            raise ValueError(f"estimator must be given, as it was before the first lesson: {path} does not have it")
        learner = cls(
            record.start if estimator is None else estimator,
            X,
            selection=record.selection,
            classes=record.classes,
        )
        learner._take_up(record, path)
        if estimator is None and hasattr(record, "model_"):
            learner._start, learner.estimator = learner.estimator, record.model_
        else:
            learner._retrain(learner._events)
        return learner

    def _record(self, *, with_model: bool) -> LabellingRecord:
        start = self.estimator if self._start is None else self._start
        if with_model and not models.is_persistable(start):
            with_model = False
        record = LabellingRecord(
            self._strategy,
            classes=None if self._classes is None else self._classes.tolist(),
            start=start if with_model else None,
        )
        record.size_ = length(self._X)
        record.content_ = content_of(self._X, self._seen())
        record.numbers_, record.remaining_ = self._pool.state()
        record.random_state_ = random_state_of(self._random)
        record.asked_ = list(self._asked)
        record.events_ = [plain(event) for event in self._events]
        record.watch_ = self._watch.state()
        if with_model and self._start is not None:
            record.model_ = self.estimator
        return record

    def _take_up(self, record: LabellingRecord, path: Any) -> None:
        """Go on from a record, but for the model."""
        if record.size_ != length(self._X):
            raise ValueError(f"X must be the pool of {path}, of {record.size_} examples; got {length(self._X)}")
        self._set_events([event_of(values) for values in record.events_])
        self._pool.restore(record.numbers_, record.remaining_)
        self._asked = {number: example(self._X, number) for number in record.asked_}
        answered = self.labelled.keys() | self._skipped.keys()
        is_asked_or_open = any(number in self._asked or number in self._pool for number in answered)
        if is_asked_or_open or len(answered) + len(self._pool) != record.size_:
            raise models.ModelFileError(f"{path} is damaged: its questions and answers are not those of its pool")
        if record.content_ != content_of(self._X, self._seen()):
            raise ValueError(f"X must be the pool of {path}, but examples that were asked about are others in it")
        set_random_state(self._random, record.random_state_)
        self._watch = Watch.of(record.watch_)

    def _seen(self) -> _Index:
        """Examples that were labelled, skipped or asked about."""
        return np.array(sorted({*self.labelled, *self._skipped, *self._asked}), dtype=np.int64)

    # ---- Questions ----

    def _choose(self, wanted: int) -> _Index:
        """So many more examples; none if that is not positive."""
        if wanted < 1:
            return np.empty(0, dtype=np.int64)
        choices = wanted if wanted == 1 or isinstance(self._strategy, Random) else CHOICES * wanted
        if not self._strategy.needs_scores or len(self._labels) < 2:
            candidates, decisions = self._draw(choices), None
        else:
            candidates, decisions = self._promising(choices)
        points = as_numbers(rows(self._X, candidates))
        if points is None and decisions is not None:
            points = decisions.reshape(len(decisions), -1)
        return candidates[:wanted] if choices == wanted or points is None else candidates[spread_out(points, wanted)]

    def _promising(self, count: int) -> tuple[_Index, _Float]:
        """Examples that the strategy chooses, and the decisions on them."""
        draws = self._strategy.draws
        candidates = self._draw(None if draws is None else draws * count)
        decisions = self._decisions(candidates)
        places = shortlist(self._strategy, uncertainty_margin(decisions), self._reach(), count)
        return candidates[places], decisions[places]

    def _draw(self, count: int | None) -> _Index:
        """Candidates that were not asked about yet."""
        drawn = self._pool.draw(None if count is None else count + len(self._asked))
        if not self._asked:
            return drawn
        return drawn[~np.isin(drawn, list(self._asked))][:count]

    def _reach(self) -> float:
        delta = np.asarray(getattr(self.estimator, "delta_", 0.0))
        return 1 + float(delta.item()) / 2 if delta.size == 1 else 1.0

    def _decisions(self, candidates: _Index) -> _Float:
        decisions = np.asarray(self.estimator.decision_function(rows(self._X, candidates)))
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

    # ---- Answers ----

    def _note(self, event: Event) -> None:
        """Write down what was said, and what follows from it."""
        self._events.append(event)
        if isinstance(event, Skip):
            self._skipped[event.number] = None
        elif isinstance(event, Lesson):
            self.labels_used += len(event.labels)
            self._labels.update(event.labels)
            for number in event.numbers:
                self._skipped.pop(number, None)

    def _set_events(self, events: Sequence[Event]) -> None:
        """Begin again with what was said."""
        self._events: list[Event] = []
        self._labels = set(self._known)
        self._skipped: dict[int, None] = {}  # in their order
        self.labels_used = 0
        for event in events:
            self._note(event)
        self._labels.update(event.label for event in events if isinstance(event, Correction))

    def _answered(self, x: Any, labels: int, is_single: bool) -> list[int]:
        """The numbers of the examples asked about, if x is one or several of them."""
        if is_single:
            return next(([number] for number, asked in self._asked.items() if is_same(x, asked)), [])
        if self._batch is None or len(self._batch[0]) != labels or not is_same(x, self._batch[1]):
            return []
        return self._checked_numbers(self._batch[0], np.empty(labels))

    def _checked_numbers(self, index: ArrayLike, y: Any) -> list[int]:
        """The numbers in the pool, as many as labels, all different and without a label so far."""
        if np.shape(index) != np.shape(y):
            raise ValueError(f"index and y must be of the same shape, got {np.shape(index)} and {np.shape(y)}")
        numbers = [_whole(number, index) for number in np.atleast_1d(index)]
        size = length(self._X)
        for number in numbers:
            if not 0 <= number < size:
                raise ValueError(f"index must be from 0 to {size - 1}, got {number}")
            if number not in self._pool and number not in self._skipped:
                raise ValueError(
                    f"index must be that of an example without a label, got {number}, which has one; correct() gives "
                    f"it another"
                )
        if len(set(numbers)) < len(numbers):
            raise ValueError(f"index must not name an example twice, got {index!r}")
        return numbers

    def _own(self, x: Any, numbers: Sequence[int], is_single: bool) -> Any:
        """Examples in a form of the caller's own; None for those of the pool as they are."""
        if x is _NOT_GIVEN or (is_single and numbers and x is self._asked.get(numbers[0])):
            return None
        if self._batch is not None and x is self._batch[1] and numbers == self._batch[0].tolist():
            return None
        return deepcopy(one_row(x, self._X) if is_single else x)

    def _learn(self, lesson: Lesson, labels: NDArray[Any]) -> None:
        """Train the model with a lesson, and take note of it."""
        X = self._rows(lesson)
        if len(labels) != length(X):
            raise ValueError(f"y must be one label per example, got {len(labels)} for {length(X)} examples")
        if self._start is None:
            self._start = deepcopy(self.estimator)
        guessed = self._guessed(X)
        self._step(self.estimator, X, labels, is_first=not self.labels_used)
        self._note(lesson)
        if guessed is not None:
            self._watch.compare(guessed, lesson.labels)
        if self._watch.is_due(self.labels_used):
            predictions = self._guessed(rows(self._X, self._watch.numbers))
            if predictions is not None:
                self._watch.look(self.labels_used, predictions)

    def _guessed(self, X: Any) -> list[Any] | None:
        """What the model says of examples; None where it cannot say yet."""
        if len(self._labels) < 2 or not hasattr(self.estimator, "predict"):
            return None
        return list(np.asarray(self.estimator.predict(X)).tolist())

    def _retrain(self, events: Sequence[Event]) -> None:
        """Make the model again from what was said; if that fails, it stays as it was."""
        if self._start is None:
            self._start = deepcopy(self.estimator)
        model = deepcopy(self._start)
        _set_parameters_of(self.estimator, model)  # what was set meanwhile
        for place, lesson in enumerate(lessons(events)):
            self._step(model, self._rows(lesson), np.asarray(lesson.labels), is_first=place == 0)
            if self._is_interrupted(model):
                raise KeyboardInterrupt("an interrupt has ended it; model and labels stay as they were")
        self.estimator.__dict__ = model.__dict__  # whoever has the estimator sees the new model

    def _step(self, model: Any, X: Any, labels: NDArray[Any], *, is_first: bool) -> None:
        known = {"classes": self._classes} if is_first and self._classes is not None else {}
        with on_interrupt("return"):  # what was learnt is to be noted first
            model.partial_fit(X, labels, **known)

    def _rows(self, lesson: Lesson) -> Any:
        return rows(self._X, np.array(lesson.numbers)) if lesson.examples is None else lesson.examples

    @staticmethod
    def _is_interrupted(model: Any) -> bool:
        """Whether Ctrl-C has ended the last training, of an estimator that can tell."""
        return getattr(getattr(model, "result_", None), "status", None) == "interrupted"

    def _take_out(self, number: int) -> None:
        if number in self._pool:
            self._pool.remove(number)
        self._asked.pop(number, None)

    def _reopen(self, numbers: Sequence[int]) -> None:
        """Ask about examples again, before all others, but for those that had been skipped."""
        again = [number for number in numbers if number not in self._skipped]
        for number in reversed(again):
            self._pool.put_back(number)
        self._asked = {number: example(self._X, number) for number in again} | self._asked

    def _labels_left(self, otherwise: int) -> int:
        return otherwise if self._strategy.budget is None else self._strategy.budget - self.labels_used

    def _check_budget(self, labels: int) -> None:
        if self._labels_left(labels) < labels:
            raise LabelBudgetExhausted(
                f"budget={self._strategy.budget} of the selection does not allow {labels} more labels, "
                f"{self.labels_used} were used"
            )


def _set_parameters_of(estimator: Any, model: Any) -> None:
    """Give a model the parameters that an estimator of its class has now."""
    if hasattr(model, "set_params"):
        model.set_params(**estimator.get_params(deep=False))
    if declare.library_class(type(model)) is not None:
        for name, value in declare.values_of(estimator).items():
            setattr(model, name, value)


def _whole(number: Any, index: Any) -> int:
    try:
        if isinstance(number, bool | np.bool_):  # older releases of NumPy take them for indices
            raise TypeError
        return operator.index(number)
    except TypeError:
        raise ValueError(f"index must be an integer or an array of integers, got {index!r}") from None
