"""Stories: files of sentences, the concepts of their words, and the facts that change from one to the next.

    location(john) = kitchen
    he cooks the rice
    john cook - rice

    location(john) = hall
    location(rice) =
    he leaves

A line RELATION(CONCEPT) = VALUE is a fact from there on, in place of what was known before; without a value, nothing is
known any more. Facts that follow each other hold together: what counts is how things are after the last of them. A
sentence is a line of words. One with its concepts may follow: the concept of each word, "-" for none; or as a bag, in
any order. An empty line ends the sentence. A line that begins with # is a comment.

A line whose first sign of equality comes right after something in parentheses is a fact, and never a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from larank.ambiguous.conceptinput import check_fits
from larank.ambiguous.meanings import EMPTY
from larank.ambiguous.universe import Fact, Universe, UniverseError
from larank.ambiguous.universetable import change, check_name
from larank.data.files import PathLike, atomic_write, compressed, located, read_text

_LIKE_FACT = re.compile(r"[^()=]*\([^=]*\)\s*=")
_FACT = re.compile(r"([^\s()=]+)\(([^\s()=]+)\)\s*=\s*([^\s()=]*)")
_HINT = "put an empty line before it"


@dataclass(frozen=True, slots=True)
class StorySentence:
    """A sentence of a story.

    Attributes
    ----------
    words : tuple of str
        The sentence.
    concepts : tuple of str or None
        The concept of each word, "-" for none; or its bag of concepts; or None where they are not given.
    universe : Universe
        What was known when it was said. Sentences with no fact between them share one.
    """

    words: tuple[str, ...]
    concepts: tuple[str, ...] | None
    universe: Universe


class Told(Protocol):
    """What can be written as a sentence: a `StorySentence`, or an episode of the simulated house."""

    @property
    def words(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def concepts(self) -> tuple[str, ...] | None: ...  # noqa: D102
    @property
    def universe(self) -> Universe: ...  # noqa: D102


def read_story(
    path: PathLike, universe: Universe, *, needs_concepts: bool = False, are_bags: bool = False
) -> list[StorySentence]:
    """Read the sentences of a story.

    Parameters
    ----------
    path : path-like
        A text file in UTF-8, compressed or not.
    universe : Universe
        What is known when the story begins. It is not changed.
    needs_concepts : bool, default=False
        Whether a sentence without concepts is an error. To apply a model, none are needed.
    are_bags : bool, default=False
        Whether concepts are bags: in any order, and at most as many as words.

    Raises
    ------
    DataFormatError
        If a line is neither, or has a fact that cannot be; it says in which line.
    """
    text = read_text(path)
    with located(path, lambda: 0):
        return list(_sentences(text.split("\n"), universe.copy(), needs_concepts, are_bags))


def write_story(path: PathLike, sentences: Iterable[Told], universe: Universe) -> None:
    """Write a story, with the facts that changed before each sentence.

    Parameters
    ----------
    path : path-like
        The file; it is compressed if its name ends in .gz, .bz2 or .xz, and replaced only once all is written.
    sentences : iterable of StorySentence, or of episodes of the simulated house
        What to write.
    universe : Universe
        What is known when the story begins. Only its relations are written.

    Raises
    ------
    ValueError
        If a sentence could not be read again: it has no words, a word with blanks, or looks like a comment or fact; or
        if its universe has facts that the other cannot have.
    """
    with atomic_write(path) as file, compressed(path, file) as stream:
        for text in story_text(sentences, universe):
            stream.write(text.encode())


def story_text(
    sentences: Iterable[Told], universe: Universe, comments: Iterable[Sequence[str]] | None = None
) -> Iterator[str]:
    """The text of each sentence with the facts before it, as `write_story` writes it, and comments if there are any."""
    _check_names(universe)
    known = universe.copy()
    said = iter(comments or ())
    for number, sentence in enumerate(sentences):
        changes = _changes(known, sentence.universe)
        try:
            known.update(changes)
        except UniverseError as error:
            raise UniverseError(f"sentences[{number}] has another universe: {error}") from None
        lines = [str(change) for change in changes]
        lines.append(_checked_words(sentence.words, number))
        lines += [f"# {line}" for line in next(said, ())]
        if sentence.concepts is not None:
            lines.append(_checked_concepts(sentence, known, number))
        yield "\n".join([*lines, "", ""])


# ---- Reading ----


class _Line(NamedTuple):
    number: int
    text: str

    @property
    def place(self) -> str:
        return f"line {self.number}"


def _sentences(
    lines: Iterable[str], universe: Universe, needs_concepts: bool, are_bags: bool
) -> Iterator[StorySentence]:
    for block in _blocks(lines):
        n_facts = next((n for n, line in enumerate(block) if not _LIKE_FACT.match(line.text)), len(block))
        facts, rest = block[:n_facts], block[n_facts:]
        if facts:
            universe = universe.copy()  # sentences before keep theirs
            _tell(universe, facts)
        if rest:
            _check_no_fact(rest[0], universe)
            concepts = _concepts(rest, universe, are_bags)
            if concepts is None and needs_concepts:
                raise ValueError(f"{rest[0].place}: the sentence {rest[0].text!r} has no concepts; they must follow it")
            yield StorySentence(tuple(rest[0].text.split()), concepts, universe)


def _blocks(lines: Iterable[str]) -> Iterator[list[_Line]]:
    block: list[_Line] = []
    for number, line in enumerate(lines, start=1):
        if line.lstrip().startswith("#"):
            continue
        if line.strip():
            block.append(_Line(number, line.strip()))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _tell(universe: Universe, lines: Sequence[_Line]) -> None:
    facts: list[Fact] = []
    told: dict[tuple[str, str], tuple[_Line, Fact]] = {}
    for line in lines:
        found = _FACT.fullmatch(line.text)
        if not found:
            raise ValueError(f"{line.place}: {line.text!r} is no fact; one is written RELATION(CONCEPT) = VALUE")
        relation, concept, value = found.groups()
        fact = Fact(relation, concept, value or None)
        before, other = told.setdefault((relation, concept), (line, fact))
        if other != fact:
            raise ValueError(
                f"{line.place}: {line.text!r} contradicts {before.text!r} in {before.place}; facts that follow each "
                "other hold together, and an empty line would make it a later one"
            )
        facts.append(fact)
    change(universe, facts, [line.place for line in lines])


def _check_no_fact(line: _Line, universe: Universe) -> None:
    """A sentence does not begin as a fact does."""
    relation, parenthesis, _ = line.text.partition("(")
    if parenthesis and relation in universe.relations:
        raise ValueError(f"{line.place}: {line.text!r} is no fact; one is written RELATION(CONCEPT) = VALUE")


def _concepts(lines: Sequence[_Line], universe: Universe, are_bags: bool) -> tuple[str, ...] | None:
    """Of the sentence in the first line, what the second says."""
    sentence, *others = lines
    if not others:
        return None
    line, *beyond = others
    for other in (line, *beyond):
        if _LIKE_FACT.match(other.text):
            raise ValueError(f"{other.place}: there is a fact after the sentence; {_HINT}")
    concepts, words = tuple(line.text.split()), tuple(sentence.text.split())
    hint = f"; if this line is a sentence, {_HINT}"
    for name in concepts:
        if name != EMPTY and name not in universe.concepts:
            raise ValueError(f"{line.place}: {name!r} is no concept of the universe{hint}")
    try:
        check_fits(concepts, words, "the line", "the sentence", is_bag=are_bags)
    except ValueError as error:
        raise ValueError(f"{line.place}: {error}{hint}") from None
    if beyond:
        raise ValueError(f"{beyond[0].place}: a sentence has one line of concepts; if this is a sentence, {_HINT}")
    return concepts


# ---- Writing ----


def _check_names(universe: Universe) -> None:
    values = (value for relation in universe.relations.values() for value in relation.values)
    for name in (*universe.concepts, *universe.relations, *values):
        check_name(name, f"universe has {name!r}")


def _changes(before: Universe, after: Universe) -> list[Fact]:
    """The facts of the relations of `before` that differ."""
    changes = []
    for relation in before.relations:
        old, new = before.table(relation), after.table(relation)
        names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        changes += [Fact(relation, name, new.get(name)) for name in sorted(names)]
    return changes


def _checked_words(words: Sequence[str], number: int) -> str:
    sentence = " ".join(words)
    is_other = sentence.startswith(("#", "\ufeff")) or _LIKE_FACT.match(sentence)
    if not words or tuple(sentence.split()) != tuple(words) or is_other:
        wanted = "there must be words, without blanks, and together they must not look like a comment or a fact"
        raise ValueError(f"sentences[{number}].words is {tuple(words)!r}; {wanted}")
    return sentence


def _checked_concepts(sentence: Told, universe: Universe, number: int) -> str:
    concepts = sentence.concepts or (EMPTY,)  # an empty bag
    unknown = [name for name in concepts if name != EMPTY and name not in universe.concepts]
    if unknown:
        raise ValueError(f"sentences[{number}].concepts has {unknown[0]!r}, which is no concept of the universe")
    if len(concepts) > len(sentence.words):
        raise ValueError(
            f"sentences[{number}] has {len(concepts)} concepts for {len(sentence.words)} words; there may be as many"
        )
    return " ".join(concepts)
