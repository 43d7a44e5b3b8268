"""Reading in a thread: the caller is not held up while the next item of an iterator is made, and may stop waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextvars import copy_context
from threading import Condition, Thread
from typing import Any, NamedTuple, TypeVar

_Item = TypeVar("_Item")

_PATIENCE = 0.05  # seconds without an item after which the caller gets None
_FAREWELL = 0.25  # seconds that closing waits for the item that is being made


def _one(item: object) -> int:
    return 1


def read_ahead(
    items: Iterator[_Item], *, ahead: float = 1, size: Callable[[_Item], float] = _one
) -> Generator[_Item | None]:
    """Yield the same items, which a thread makes; yield None whenever the next one has not come for a while.

    Close the generator to end the thread early. The thread finishes the item that it is making and closes a generator.
    An iterator that takes longer than a moment for that is not waited for, and it does not keep the process alive.
    An exception of the iterator is raised where its item would have come.

    Parameters
    ----------
    items : iterator
        From the first `next` on, it is advanced by the thread alone.
    ahead : float
        The thread makes items before they are asked for as long as the sizes of those that wait add up to less; with 0
        it is idle while the caller has an item.
    size : callable
        The size of an item, by default one.
    """
    reading = _ReadingAhead(items, ahead, size)
    thread = Thread(target=copy_context().run, args=(reading.run,), name="larank-reading", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # there is no memory for a thread
        yield from items
        return
    try:
        while True:
            made = reading.take()
            if made is None:
                yield None
            elif isinstance(made.error, StopIteration):
                return
            elif made.error is not None:
                raise made.error
            else:
                yield made.item
            del made  # the caller may be done with it
    finally:
        reading.close()
        thread.join(_FAREWELL)


def arrived(items: Iterable[_Item | None]) -> Generator[_Item]:
    """Yield the items of `read_ahead`, however long they take."""
    return (item for item in items if item is not None)


class _Made(NamedTuple):
    """An item, or the error that came in its place."""

    item: Any
    size: float
    error: BaseException | None = None


class _ReadingAhead:
    """Items on their way from the thread that makes them to the one that takes them."""

    def __init__(self, items: Iterator[Any], ahead: float, size: Callable[[Any], float]) -> None:
        self._items, self._ahead, self._size = items, ahead, size
        self._changed = Condition()
        self._waiting: deque[_Made] = deque()
        self._held = 0.0  # the sum of their sizes
        self._is_wanted = self._is_closed = False

    def run(self) -> None:
        """Make items, in the thread for it."""
        try:
            while self._is_time() and self._makes_one():
                pass
        finally:
            if isinstance(self._items, Generator):
                self._items.close()

    def take(self) -> _Made | None:
        """The next item, if it comes within a moment."""
        with self._changed:
            self._is_wanted = not self._waiting
            self._changed.notify()
            if not self._changed.wait_for(lambda: self._waiting, _PATIENCE):
                return None
            self._changed.notify()
            made = self._waiting.popleft()
            self._held = self._held - made.size if self._waiting else 0.0
            return made

    def close(self) -> None:
        """Nothing more is to be made."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify()

    def _is_time(self) -> bool:
        """Wait until there is an item to make; False once there is none any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._is_wanted or self._held < self._ahead)
            return not self._is_closed

    def _makes_one(self) -> bool:
        """Make the next item, of which nothing is kept here; whether there was one."""
        try:
            item = next(self._items)
            made = _Made(item, self._size(item))
        except BaseException as error:  # the caller raises it
            made = _Made(None, 0, error)
        with self._changed:
            if not self._is_closed:
                self._waiting.append(made)
                self._held += made.size
            self._is_wanted = False
            self._changed.notify()
        return made.error is None
