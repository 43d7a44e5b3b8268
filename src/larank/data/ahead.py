"""Reading ahead: a thread makes the next item of an iterator while the caller is busy with this one."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_Item = TypeVar("_Item")


def read_ahead(items: Iterator[_Item]) -> Generator[_Item]:
    """Yield the same items, the next one made by a thread meanwhile; never more than one is waiting.

    Close the generator to end the thread early: it finishes the item it is at, if any. An exception of the iterator is
    raised where its item would have come.

    Parameters
    ----------
    items : iterator
        From the first `next` on, it is advanced by the thread alone.
    """
    nothing = object()
    with ThreadPoolExecutor(1, "larank-reading") as pool:
        try:
            coming = pool.submit(next, items, nothing)
        except RuntimeError:  # there is no memory for a thread
            pool.shutdown(wait=False, cancel_futures=True)
            yield from items
            return
        while True:
            item: Any = coming.result()
            if item is nothing:
                return
            coming = pool.submit(next, items, nothing)
            yield item
