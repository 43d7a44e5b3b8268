"""What Ctrl-C does: training ends with a valid model, and then the call returns or, within a search, raises."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ACTIONS = ("auto", "return", "raise")
_SEARCHES = ("sklearn", "joblib", "optuna", "skopt", "hyperopt")  # packages that train one model after another,
_NO_SEARCHES = ("sklearn.pipeline", "sklearn.base", "sklearn.utils")  # and what of them hands on a single call

_chosen: ContextVar[str] = ContextVar("on_interrupt", default="auto")


@contextmanager
def on_interrupt(action: str) -> Iterator[None]:
    """Choose what a call that trains does after Ctrl-C has ended its training; a context manager.

    Whatever is chosen, the model is fitted and valid by then: it is what training had reached. A
    `PathSearchCV` that is interrupted during its search has no such model: if it raises, the estimator is unchanged.

    Parameters
    ----------
    action : {"auto", "return", "raise"}
        "return" returns as usual, with a `TrainingWarning`. "raise" raises KeyboardInterrupt, which ends a search or a
        loop of your own. "auto", which holds outside of any such block, raises where the call is a search or comes
        from a search: where code of scikit-learn (but not of its pipelines alone), joblib, optuna, skopt or hyperopt
        is among the callers. Elsewhere it returns.

    Examples
    --------
    >>> import larank
    >>> from larank.data import load_letter
    >>> letter = load_letter()
    >>> with larank.on_interrupt("raise"):  # one Ctrl-C ends the loop
    ...     for C in (0.1, 1.0):
    ...         model = larank.LinearMulticlassSVC(C=C, tol=0.1, random_state=0)
    ...         model = model.fit(letter.X_train[:1000], letter.y_train[:1000])
    """
    if action not in _ACTIONS:
        raise ValueError(f"on_interrupt must be one of {', '.join(map(repr, _ACTIONS))}, got {action!r}")
    before = _chosen.set(action)
    try:
        yield
    finally:
        _chosen.reset(before)


def raises(*, is_one_of_many: bool = False) -> bool:
    """Whether a call whose training was interrupted is to raise; by default, if it is one of many."""
    action = _chosen.get()
    if action == "auto":
        return is_one_of_many or _is_in_a_search(sys._getframe(1))
    return action == "raise"


def _is_in_a_search(frame: FrameType | None) -> bool:
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if _is_of(module, _SEARCHES) and not _is_of(module, _NO_SEARCHES):
            return True
        frame = frame.f_back
    return False


def _is_of(module: str, names: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)


class Interrupt:
    """When the first Ctrl-C came, by `time.perf_counter`."""

    def __init__(self) -> None:
        self.at = math.inf

    @property
    def has_come(self) -> bool:
        """Whether it did."""
        return self.at < math.inf


@contextmanager
def first_interrupt() -> Iterator[Interrupt]:
    """Take note of the first Ctrl-C; a second one interrupts as usual. Only the main thread receives signals.

    Any other signal that Python handles as it does Ctrl-C, by `signal.default_int_handler`, is one.
    """
    interrupt = Interrupt()
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in _SIGNALS if is_main}
    heard = {number: handler for number, handler in before.items() if _is_ours_to_replace(number, handler)}

    def give_back() -> None:
        for number, handler in heard.items():
            signal.signal(number, handler)

    def note(number: int, frame: FrameType | None) -> None:
        interrupt.at = time.perf_counter()
        give_back()

    for number in heard:
        signal.signal(number, note)
    try:
        yield interrupt
    finally:
        give_back()


def _is_ours_to_replace(number: int, handler: Any) -> bool:
    """A handler of Ctrl-C is, unless it is ignored; one of another signal may have a meaning of its own."""
    return handler is signal.default_int_handler or (number == signal.SIGINT and callable(handler))
