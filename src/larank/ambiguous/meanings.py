"""Meanings of sentences: relations with arguments, as trees and as text, and files of sentences with their meanings.

A meaning is written REL(A0, A1, ...), where each argument is a meaning again, and a symbol alone is a meaning without
arguments: believe(mother, break(dog, box)). REL() is the same as REL, since it tells nothing that REL does not: it has
no pair of an argument and a role. A symbol with blanks, parentheses or commas stands in single quotes, with single
quotes doubled. The symbol - means "no symbol" elsewhere, and is none here.

A file has blocks, with blank lines between them. The first line of a block is a sentence, its words separated by
blanks; each other line is a meaning the sentence may have. A line that begins with # is a comment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from larank.data.files import DataFormatError, PathLike, atomic_write, compressed, located, opened

EMPTY = "-"
MAX_DEPTH = 100  # of meanings in text

_WANTED = f"a symbol must be printable, not empty, and not {EMPTY}, which stands for no symbol"
_BARE = re.compile(r"[^\s(),']+")
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_BLANKS = re.compile(r"\s*")


class MeaningFormatError(DataFormatError):
    """A text that is no meaning; `line` and `column` say where, from 1."""

    def __init__(self, message: str, line: int, column: int, source: str = "") -> None:
        super().__init__(f"{f'{source}, ' if source else ''}line {line}, column {column}: {message}")
        self.message, self.line, self.column = message, line, column


@dataclass(frozen=True, slots=True)
class Meaning:
    """A symbol and its arguments, which are meanings.

    Parameters
    ----------
    symbol : str
        The relation, or of a meaning without arguments, what it names.
    arguments : tuple of Meaning
        The arguments A0, A1, and so on.

    Examples
    --------
    >>> meaning = Meaning("break", (Meaning("dog"), Meaning("box")))
    >>> str(meaning)
    'break(dog, box)'
    >>> meaning.pairs()
    (('dog', 'A0'), ('box', 'A1'))
    """

    symbol: str
    arguments: tuple[Meaning, ...] = ()

    def __repr__(self) -> str:
        return f"<Meaning {self}>"

    def __post_init__(self) -> None:
        if not isinstance(self.symbol, str) or not isinstance(self.arguments, tuple):
            raise TypeError(
                f"a Meaning takes a str and a tuple of meanings, got {self.symbol!r} and {self.arguments!r}"
            )
        if not self.symbol or self.symbol == EMPTY or not self.symbol.isprintable():
            raise ValueError(f"symbol is {self.symbol!r}; {_WANTED}")
        for argument in self.arguments:
            if not isinstance(argument, Meaning):
                raise TypeError(f"arguments has {argument!r}; an argument must be a Meaning")

    def relations(self) -> tuple[Meaning, ...]:
        """All meanings in this one that have arguments, the outer before the inner."""
        return tuple(part for part in self._parts() if part.arguments)

    def symbols(self) -> tuple[str, ...]:
        """All symbols in reading order; one that occurs twice is there twice."""
        return tuple(part.symbol for part in self._parts())

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The symbol at the head of each argument, and its role: A0, A1, and so on."""
        return tuple((argument.symbol, f"A{role}") for role, argument in enumerate(self.arguments))

    def __str__(self) -> str:
        is_bare = _BARE.fullmatch(self.symbol) and self.symbol[0] != "#"  # which would be a comment
        symbol = self.symbol if is_bare else "'" + self.symbol.replace("'", "''") + "'"
        return f"{symbol}({', '.join(map(str, self.arguments))})" if self.arguments else symbol

    def _parts(self) -> Iterator[Meaning]:
        waiting = [self]
        while waiting:
            part = waiting.pop()
            yield part
            waiting.extend(reversed(part.arguments))


@dataclass(frozen=True, slots=True)
class ParseExample:
    """A sentence and what is known of its meaning.

    Attributes
    ----------
    words : tuple of str
        The sentence.
    candidates : tuple of Meaning
        The meanings offered in training, in no order. Which are right is not said.
    meaning : Meaning or None
        The right meaning, where it is known.
    symbols : tuple of str or None
        The symbol of each word, "-" where it has none, if that is known.
    """

    words: tuple[str, ...]
    candidates: tuple[Meaning, ...] = ()
    meaning: Meaning | None = None
    symbols: tuple[str, ...] | None = None


def parse_meaning(text: str, *, line: int = 1, column: int = 1) -> Meaning:
    """Read a meaning; `str` is the inverse.

    Parameters
    ----------
    text : str
        A meaning, such as "believe(mother, break(dog, box))".
    line, column : int
        Where the text stands, for errors.

    Raises
    ------
    MeaningFormatError
        If the text is no meaning, or one that is nested deeper than 100.

    Examples
    --------
    >>> parse_meaning("sleep(dog)").symbols()
    ('sleep', 'dog')
    """
    if not isinstance(text, str):
        raise TypeError(f"text is of type {type(text).__name__}; a meaning is read from a str")
    return _MeaningReader(text, line, column).meaning()


def read_examples(source: PathLike | Iterable[str], *, needs_candidates: bool = True) -> list[ParseExample]:
    """Read sentences with the meanings they may have.

    Parameters
    ----------
    source : path-like, or iterable of str
        A file, compressed or not, or the lines of one.
    needs_candidates : bool, default=True
        Whether a sentence without a meaning is an error. To apply a model, none is needed.

    Raises
    ------
    DataFormatError
        If a line is no meaning, or a sentence has none; it says where.
    """
    name = ""
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        with located(name), opened(source) as file:
            lines: Iterable[str] = (line.removesuffix("\r") for line in file.read().decode("utf-8-sig").split("\n"))
    else:
        lines = source
    return [_example(block, name, needs_candidates) for block in _blocks(lines)]


def write_examples(path: PathLike, examples: Iterable[ParseExample]) -> None:
    """Write sentences with the meanings they may have; of an example without candidates, its meaning if it has one.

    Parameters
    ----------
    path : path-like
        The file; it is compressed if its name ends in .gz, .bz2 or .xz, and replaced only once all is written.
    examples : iterable of ParseExample
        What to write. Aligned symbols are left out.
    """
    with atomic_write(path) as file, compressed(path, file) as stream:
        for number, example in enumerate(examples):
            block = "\n".join([_sentence(example.words, number), *map(str, _offered(example))])
            stream.write(("\n" * (number > 0) + block + "\n").encode())


# ---- Files ----


def _blocks(lines: Iterable[str]) -> Iterator[list[tuple[int, str]]]:
    block: list[tuple[int, str]] = []
    for number, line in enumerate(lines, start=1):
        if line.lstrip().startswith("#"):
            continue
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _example(block: list[tuple[int, str]], name: str, needs_candidates: bool) -> ParseExample:
    (first, sentence), *others = block
    if needs_candidates and not others:
        where = f"{name}, line {first}" if name else f"line {first}"
        raise DataFormatError(f"{where}: the sentence {sentence.strip()!r} has no meaning; at least one must follow it")
    try:
        candidates = tuple(parse_meaning(text, line=number) for number, text in others)
    except MeaningFormatError as error:
        text = dict(others)[error.line]
        hint = "" if "(" in text else "; if this line is a sentence, put an empty line before it"
        raise MeaningFormatError(f"{error.message}{hint}", error.line, error.column, name) from None
    return ParseExample(tuple(sentence.split()), candidates)


def _offered(example: ParseExample) -> tuple[Meaning, ...]:
    if example.candidates or example.meaning is None:
        return example.candidates
    return (example.meaning,)


def _sentence(words: tuple[str, ...], number: int) -> str:
    sentence = " ".join(words)
    if tuple(sentence.split()) != tuple(words) or not words or sentence.startswith("#"):
        wanted = "words must not be empty or have blanks, there must be one, and the first must not begin with #"
        raise ValueError(f"examples[{number}].words is {words!r}; {wanted}")
    return sentence


# ---- Meanings as text ----


class _MeaningReader:
    """What was read of a text so far: `_at` characters."""

    def __init__(self, text: str, line: int, column: int) -> None:
        self._text, self._line, self._column, self._at = text, line, column, 0

    def meaning(self) -> Meaning:
        """Read the whole text. Relations that are open wait with their arguments so far."""
        open_relations: list[tuple[str, list[Meaning]]] = []
        while True:
            symbol = self._symbol()
            done: Meaning | None = Meaning(symbol)
            if self._next("(") and not self._next(")"):
                open_relations.append((symbol, []))
                done = None
                if len(open_relations) > MAX_DEPTH:
                    raise self._error(f"relations are nested deeper than {MAX_DEPTH}")
            while done is not None:
                if not open_relations:
                    return self._ended(done)
                relation, arguments = open_relations[-1]
                arguments.append(done)
                done = None
                if self._next(")"):
                    open_relations.pop()
                    done = Meaning(relation, tuple(arguments))
                elif not self._next(","):
                    raise self._error(f"expected ',' or ')' after an argument of {relation}{self._came()}")

    def _symbol(self) -> str:
        self._skip_blanks()
        quoted = _QUOTED.match(self._text, self._at)
        found = quoted or _BARE.match(self._text, self._at)
        if not found:
            is_open = self._text.startswith("'", self._at)
            raise self._error("a quote is not closed" if is_open else f"expected a symbol{self._came()}")
        symbol = quoted[1].replace("''", "'") if quoted else found[0]
        try:
            Meaning(symbol)
        except ValueError as error:
            raise self._error(str(error)) from None
        self._at = found.end()
        return symbol

    def _ended(self, meaning: Meaning) -> Meaning:
        self._skip_blanks()
        if self._at < len(self._text):
            raise self._error(f"expected the end after a whole meaning{self._came()}")
        return meaning

    def _next(self, sign: str) -> bool:
        self._skip_blanks()
        if not self._text.startswith(sign, self._at):
            return False
        self._at += 1
        return True

    def _skip_blanks(self) -> None:
        blanks = _BLANKS.match(self._text, self._at)
        assert blanks  # none are blanks too
        self._at = blanks.end()

    def _came(self) -> str:
        return f", but {self._text[self._at]!r} came" if self._at < len(self._text) else ", but the text ends"

    def _error(self, message: str) -> MeaningFormatError:
        return MeaningFormatError(message, self._line, self._column + self._at)
