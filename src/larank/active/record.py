"""What a person has said so far, in the order in which it was said, and the file that keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from larank.active.examples import length
from larank.data.models import persistable
from larank.data.schema import (
    Kind,
    SchemaError,
    Scope,
    anything,
    count,
    flag,
    integer,
    integers,
    labels,
    nullable,
    number,
    one_of,
    optional,
    record,
    row,
    several,
    text,
)
from larank.declare import Declared, parameter
from larank.kernel.selection import Strategy, strategy_named
from larank.training import set_random_state


@dataclass(frozen=True)
class Lesson:
    """Labels that were given at once."""

    numbers: tuple[int, ...]  # of examples of the pool, one per label, or none at all
    labels: tuple[Any, ...]
    examples: Any  # those that were given in a form of their own; None for those of the pool


@dataclass(frozen=True)
class Skip:
    """An example that was left without a label."""

    number: int


@dataclass(frozen=True)
class Correction:
    """Another label for an example of the pool."""

    number: int
    label: Any


Event = Lesson | Skip | Correction
_EVENTS: Mapping[str, type[Event]] = {kind.__name__.lower(): kind for kind in (Lesson, Skip, Correction)}


def lessons(events: Sequence[Event]) -> Iterator[Lesson]:
    """All labels as they are by now."""
    corrected = {event.number: event.label for event in events if isinstance(event, Correction)}
    for event in events:
        if not isinstance(event, Lesson):
            continue
        given = event.labels
        if event.numbers:
            given = tuple(corrected.get(at, label) for at, label in zip(event.numbers, given, strict=True))
        yield Lesson(event.numbers, given, event.examples)


def plain(event: Event) -> tuple[Any, ...]:
    """An event as a file has it."""
    return type(event).__name__.lower(), *vars(event).values()


def event_of(values: Sequence[Any]) -> Event:
    """The inverse of `plain`."""
    return _EVENTS[values[0]](*values[1:])


# ---- What a learner is made of ----


def check_strategy(strategy: Strategy) -> Strategy:
    """The strategy, if it can choose among examples without labels."""
    if strategy.needs_labels:
        raise ValueError(
            f"selection must not depend on labels that nobody has given yet, as 'random', 'active' and 'autoactive' do "
            f"not; got {strategy!r}"
        )
    return strategy


def check_estimator(estimator: Any) -> None:
    """Raise unless it can be taught example by example."""
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


# ---- The file ----


def _label(name: str, value: Any, scope: Scope) -> None:
    labels(1)(name, _as_array(value), scope)


def _as_array(value: Any) -> Any:
    held = np.empty(1, dtype=object)
    held[0] = value
    return held


def _number(name: str, value: Any, scope: Scope) -> None:
    integer(most=scope.sizes["size_"] - 1)(name, value, scope)


_KINDS: Mapping[str, tuple[Kind, ...]] = {
    "lesson": (several(_number, unique=True), several(_label), anything),
    "skip": (_number,),
    "correction": (_number, _label),
}


def _event(name: str, value: Any, scope: Scope) -> None:
    """Numbers are those of the pool; labels are as many as these, and as the examples given."""
    if not isinstance(value, list | tuple) or not value:
        raise SchemaError(f"{name} must be a list that begins with its kind, got {value!r}")
    one_of(*_KINDS)(f"{name}[0]", value[0], scope)
    row(anything, *_KINDS[value[0]])(name, value, scope)
    if value[0] == "lesson":
        _, numbers, given, examples = value
        count = len(numbers) if examples is None else length(examples) if hasattr(examples, "__len__") else 0
        if not len(given) == count >= 1 or (numbers and len(numbers) != count):
            raise SchemaError(f"{name} must have a label for each of its examples, got {len(given)}")


def _events(name: str, value: Any, scope: Scope) -> None:
    several(_event)(name, value, scope)
    labelled: set[int] = set()
    for k, event in enumerate(map(event_of, value)):
        numbers = set(event.numbers if isinstance(event, Lesson) else [event.number])
        if isinstance(event, Correction) != bool(numbers & labelled) and numbers:
            raise SchemaError(f"{name}[{k}] must label what has no label, or correct what has one; got {value[k]!r}")
        if isinstance(event, Lesson):
            labelled |= numbers


def _random_state(name: str, value: Any, scope: Scope) -> None:
    row(anything, integers(624, dtype="uint32"), integer(), integer(), number())(name, value, scope)
    try:
        set_random_state(np.random.RandomState(0), value)
    except ValueError as error:
        raise SchemaError(f"{name}: {error}") from None


def _watched(name: str, value: Any, scope: Scope) -> None:
    integers("n_watched", below="size_", unique=True)(name, value, scope)
    if not len(value):
        raise SchemaError(f"{name} must name at least one example, got none")


def _model(name: str, value: Any, scope: Scope) -> None:
    if type(value) is not type(scope.known["start"]):
        raise SchemaError(f"{name} must be of the class of the parameter start, got a {type(value).__name__}")


_WATCH = record(
    numbers=_watched,
    agreed=several(flag),
    labels=several(_label, "n_predicted", unique=True),
    counts=integers("n_looks", least=1),
    predictions=integers("n_looks", "n_watched", below="n_predicted", dtype="int32"),
)


@persistable(
    size_=count(1),
    content_=text,
    numbers_=integers("size_", below="size_", unique=True),
    remaining_=lambda name, value, scope: integer(most=scope.sizes["size_"])(name, value, scope),
    random_state_=_random_state,
    asked_=several(_number, unique=True),
    events_=_events,
    watch_=_WATCH,
    model_=optional(_model),
)
class LabellingRecord(BaseEstimator, Declared):  # type: ignore[misc]
    """All that a file keeps of an `ActiveLearner`: how it asks, what it was told, and the model.

    `ActiveLearner.load` makes a learner of it again. It is an estimator only in that it has parameters and attributes.
    """

    selection: str | Strategy = parameter("How examples are chosen.", default="active", kw_only=False)
    classes: Sequence[Any] | None = parameter("The labels for the first update of the model.", default=None)
    start: Any = parameter(
        "The estimator before the first update; None if it cannot be saved.", default=None, form="estimator"
    )

    def _check_together(self) -> None:
        check_strategy(strategy_named(self.selection))
        if self.start is not None:
            check_estimator(self.start)
        scope = Scope({})
        nullable(several(_label))("classes", self.classes, scope)
