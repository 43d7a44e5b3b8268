"""What a semantic parser may be given: sentences and meanings in several forms, checked, with errors that name them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from larank.ambiguous.meanings import Meaning, MeaningFormatError, ParseExample, parse_meaning
from larank.ambiguous.sentences import Words, check_equally_long, check_list, check_words

_WANTED = "a list of sentences, each a list of words or a str, or a list of ParseExample"


def check_sentences(sentences: Any) -> list[Words]:
    """The words of sentences; those of examples are taken out of them."""
    return [_words(sentence, f"sentences[{i}]") for i, sentence in enumerate(_listed(sentences, "sentences", _WANTED))]


def check_taught(sentences: Any, candidates: Any) -> tuple[list[Words], list[tuple[Meaning, ...]]]:
    """Sentences and the different meanings each may have. Examples have both: then there are no candidates beside."""
    given = _listed(sentences, "sentences", _WANTED)
    words = check_sentences(given)
    if candidates is None:
        offered: Sequence[Any] = [_of_example(example, i) for i, example in enumerate(given)]
    else:
        wanted = "a list with a list of meanings, or one meaning, for each sentence"
        offered = _listed(candidates, "candidates", wanted)
        check_equally_long(given, offered, "candidates")
    return words, [_meanings(of_sentence, f"candidates[{i}]") for i, of_sentence in enumerate(offered)]


def check_tested(sentences: Any, meanings: Any) -> tuple[list[Words], list[Meaning]]:
    """Sentences and their one right meaning each."""
    given = _listed(sentences, "sentences", _WANTED)
    words = check_sentences(given)
    if meanings is None:
        known: Sequence[Any] = [_right_of_example(example, i) for i, example in enumerate(given)]
    else:
        known = _listed(meanings, "meanings", "a list with one meaning for each sentence")
        check_equally_long(given, known, "meanings")
    if not words:
        raise ValueError("sentences is empty; a score needs at least one sentence")
    return words, [_right(meaning, f"meanings[{i}]") for i, meaning in enumerate(known)]


def check_sentence(sentence: Any) -> Words:
    """The words of one sentence."""
    return _words(sentence, "sentence")


def _listed(value: Any, name: str, wanted: str) -> Sequence[Any]:
    return check_list(value, name, wanted, but=(ParseExample, Meaning))


def _words(sentence: Any, name: str) -> Words:
    return check_words(sentence.words if isinstance(sentence, ParseExample) else sentence, name)


def _of_example(example: Any, i: int) -> Any:
    if not isinstance(example, ParseExample):
        raise TypeError(
            f"candidates is None and sentences[{i}] is of type {type(example).__name__}; without candidates, "
            "sentences must be a list of ParseExample"
        )
    return example.candidates or (() if example.meaning is None else (example.meaning,))


def _right_of_example(example: Any, i: int) -> Any:
    if not isinstance(example, ParseExample):
        raise TypeError(
            f"meanings is None and sentences[{i}] is of type {type(example).__name__}; without meanings, sentences "
            "must be a list of ParseExample"
        )
    if example.meaning is not None:
        return example.meaning
    if len(example.candidates) != 1:
        raise ValueError(
            f"sentences[{i}] has no meaning and {len(example.candidates)} candidates; to be scored, an example needs "
            "its meaning, or one candidate"
        )
    return example.candidates[0]


def _meanings(offered: Any, name: str) -> tuple[Meaning, ...]:
    if isinstance(offered, str | Meaning):
        return (_meaning(offered, name),)
    if isinstance(offered, bytes) or not isinstance(offered, Iterable):
        raise TypeError(f"{name} is of type {type(offered).__name__}; it must be a list of meanings, or one meaning")
    meanings = tuple(dict.fromkeys(_meaning(meaning, f"{name}[{j}]") for j, meaning in enumerate(offered)))
    if not meanings:
        raise ValueError(f"{name} is empty; each sentence needs at least one meaning that it may have")
    return meanings


def _right(meaning: Any, name: str) -> Meaning:
    if not isinstance(meaning, str | Meaning):
        raise TypeError(f"{name} is of type {type(meaning).__name__}; it must be a Meaning or its text")
    return _meaning(meaning, name)


def _meaning(meaning: Any, name: str) -> Meaning:
    if isinstance(meaning, Meaning):
        return meaning
    if not isinstance(meaning, str):
        raise TypeError(f"{name} is {meaning!r}, of type {type(meaning).__name__}; it must be a Meaning or its text")
    try:
        return parse_meaning(meaning)
    except MeaningFormatError as error:
        raise MeaningFormatError(error.message, error.line, error.column, name) from None
