"""Sentences as people give them, lists of words or text, checked, with errors that name them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Words = tuple[str, ...]


def check_list(value: Any, name: str, wanted: str, *, but: tuple[type, ...] = ()) -> Sequence[Any]:
    """A list of something; text, and what is of the types `but`, is one thing and no list."""
    if isinstance(value, (str, bytes, *but)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is of type {type(value).__name__}; it must be {wanted}")
    return list(value)


def check_equally_long(sentences: Sequence[Any], others: Sequence[Any], name: str) -> None:
    """As many others as sentences."""
    if len(sentences) != len(others):
        raise ValueError(f"sentences and {name} must be equally long, got {len(sentences)} and {len(others)}")


def check_words(sentence: Any, name: str) -> Words:
    """The words of one sentence, which is a list of them, or a str that is split at blanks."""
    if isinstance(sentence, str):
        sentence = sentence.split()
    elif isinstance(sentence, bytes) or not isinstance(sentence, Iterable):
        raise TypeError(f"{name} is of type {type(sentence).__name__}; a sentence is a list of words or a str")
    words = tuple(sentence)
    if not words:
        raise ValueError(f"{name} is empty; a sentence needs at least one word")
    for k, word in enumerate(words):
        if not isinstance(word, str):
            raise TypeError(f"{name}[{k}] is {word!r}, of type {type(word).__name__}; a word is a str")
        if not word:
            raise ValueError(f"{name}[{k}] is an empty word")
    return tuple(str(word) for word in words)
