"""Models of a stream that nobody has read yet: taking one out of the session is left to whoever reads it first.

A call of `partial_fit` then costs what its examples cost. The session is not for two threads, so calls that train and
readers that take a model wait for each other; a reader who comes too late for one model finds the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from larank.publishing import one_model

_Class = TypeVar("_Class", bound=type)


class HeldTraining(Protocol):
    """What is known of the machine whose session has the model."""

    lock: Any  # held by whoever works with the session
    calls: int  # of training so far
    is_ahead: bool  # whether the last of them has failed
    is_wanted: bool  # whether somebody waits for a model


class UnreadModel:
    """The fitted attributes of the model that is in a session after a call of training.

    Parameters
    ----------
    machine
        The session's machine.
    take
        Takes the model out of the session as it is now, and returns the attributes.
    take_back
        The same where a later call has failed: of the session as it was before that.
    """

    def __init__(
        self, machine: HeldTraining, take: Callable[[], dict[str, Any]], take_back: Callable[[], dict[str, Any]]
    ) -> None:
        self._machine, self._call = machine, machine.calls
        self._take, self._take_back = take, take_back
        self._attributes: dict[str, Any] | None = None

    @property
    def lock(self) -> Any:
        """To be held by a call that trains until its own model is published."""
        return self._machine.lock

    @property
    def is_taken(self) -> bool:
        """Whether somebody has read it."""
        return self._attributes is not None

    def attributes(self) -> dict[str, Any] | None:
        """What was fitted, or None where the session has gone on: there is a newer model."""
        if self._attributes is not None:
            return self._attributes
        machine = self._machine
        machine.is_wanted = True
        with machine.lock:
            later_calls = machine.calls - self._call
            if self._attributes is None and later_calls <= int(machine.is_ahead):
                self._attributes = self._take_back() if later_calls else self._take()
                machine.is_wanted = False
        return self._attributes


def left_to_readers(*names: str) -> Callable[[_Class], _Class]:
    """Let these fitted attributes of an estimator be found in its `_unread` model where it has one; a decorator."""

    def with_attributes(estimator: _Class) -> _Class:
        for name in names:
            setattr(estimator, name, _LeftToReaders(name))
        return estimator

    return with_attributes


class _LeftToReaders:
    """An attribute that is there once it is set, as any other, or else in a model that is taken now."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, kind: type) -> Any:
        if model is not None and "_unread" in vars(model):
            return getattr(one_model(model), self._name)
        raise AttributeError(f"{kind.__name__!r} object has no attribute {self._name!r}")
