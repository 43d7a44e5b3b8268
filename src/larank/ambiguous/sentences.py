"""Sentences as people give them, lists of words or text, checked, with errors that name them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

Words = tuple[str, ...]


def check_list(value: Any, name: str, wanted: str, *, but: tuple[type, ...] = ()) -> Sequence[Any]:
    """A list of something. Text, tables, what has no order, and what is of the types `but`, is none."""
    is_none = isinstance(value, (str, bytes, Mapping, Set, *but)) or hasattr(value, "columns")
    if is_none or not isinstance(value, Iterable):
        raise TypeError(f"{name} is of type {type(value).__name__}; it must be {wanted}")
    return list(value)


def check_equally_long(sentences: Sequence[Any], others: Sequence[Any], name: str) -> None:
    """As many others as sentences."""
    if len(sentences) != len(others):
        raise ValueError(f"sentences and {name} must be equally long, got {len(sentences)} and {len(others)}")


def check_words(sentence: Any, name: str) -> Words:
    """The words of one sentence, which is a list of them, or a str that is split at blanks."""
    words = check_names(sentence, name, "a sentence is a list of words or a str", "word")
    if not words:
        raise ValueError(f"{name} is empty; a sentence needs at least one word")
    return words


def check_names(names: Any, name: str, wanted: str, what: str) -> Words:
    """Some names, in a list or in a str with blanks between them."""
    if isinstance(names, str):
        return tuple(names.split())
    if isinstance(names, bytes | Mapping | Set) or not isinstance(names, Iterable):
        raise TypeError(f"{name} is of type {type(names).__name__}; {wanted}")
    listed = tuple(names)
    for k, each in enumerate(listed):
        if not isinstance(each, str):
            raise TypeError(f"{name}[{k}] is {each!r}, of type {type(each).__name__}; a {what} is a str")
        if not each:
            raise ValueError(f"{name}[{k}] is an empty {what}")
    return tuple(str(each) for each in listed)
