"""The simulated house of [thesis] 6.2.2 and C.5: what happens there, sentences that tell it, and data made of them.

Each step draws an event, tells it in a sentence, and lets it happen. A concept has names that are its own, and a
pronoun that it shares with others. A pronoun is used only where it can be resolved: of all arguments the words may
mean, only one choice keeps the open rules of the verb in the universe before the event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from larank.ambiguous.draws import RandomState, candidates, drawn, random_streams, taken
from larank.ambiguous.meanings import EMPTY, Meaning, ParseExample
from larank.ambiguous.universe import Universe
from larank.ambiguous.universes import Universes
from larank.ambiguous.verbs import (
    CONCEPTS,
    FRAMES,
    MEMBERS,
    Arguments,
    Event,
    Facts,
    Frame,
    Test,
    event,
    new_universe,
)
from larank.parameters import finite, whole_number

AMBIGUITY = 0.37  # 53 % of the sentences then have a pronoun; [thesis] C.6 has around 55 %

# ---- Words ----

_OTHER_NAMES = {  # words of their own, besides that of the concept
    "john": "father",
    "mark": "brother",
    "gina": "mother",
    "francoise": "sister",
    "harry": "grandfather",
    "maggie": "grandmother",
    "couch": "sofa",
}
_OTHER_NAMES_BESIDE_PRONOUNS = ("john", "mark")
_MASSES = ("water", "milk", "coffee", "yoghurt", "chocolate", "salad", "rice")
_THINGS = ("animal", "drink", "food", "toy", "thing", "seat", "desk", "shelf", "container")
_MEANT_BY = {
    "he": ("male",),
    "him": ("male",),
    "she": ("female",),
    "her": ("female",),
    "it": _THINGS,
    "there": ("room",),
}


Phrases = Mapping[str, tuple[tuple[str, ...], ...]]  # by concept


def _phrases(concept: str, has_pronouns: bool) -> tuple[tuple[str, ...], ...]:
    """The phrases that mean one concept alone; the last word is the head."""
    is_person = concept in MEMBERS["male"] + MEMBERS["female"]
    phrases = [(concept,) if is_person else ("the", concept)]
    if concept in _MASSES:
        phrases.append(("some", concept))
    if concept in (_OTHER_NAMES_BESIDE_PRONOUNS if has_pronouns else _OTHER_NAMES):
        phrases.append(("the", _OTHER_NAMES[concept]))
    return tuple(phrases)


_PHRASES: dict[bool, Phrases] = {
    mode: {concept: _phrases(concept, mode) for concept in CONCEPTS} for mode in (False, True)
}


def _pronoun(concept: str, is_subject: bool) -> str:
    words = ("he", "she", "it") if is_subject else ("him", "her", "it", "there")
    return next(word for word in words if any(concept in MEMBERS[name] for name in _MEANT_BY[word]))


class _Slot(NamedTuple):
    """An argument's pronoun by the concept that fills it, and whom each pronoun may mean there."""

    pronouns: dict[str, str]
    meant_by: dict[str, tuple[str, ...]]


def _slot(frame: Frame, role: int) -> _Slot:
    pronouns = {concept: _pronoun(concept, role == 0) for concept in frame.choices[role]}
    meant_by = {
        word: tuple(concept for concept, other in pronouns.items() if other == word) for word in pronouns.values()
    }
    return _Slot(pronouns, meant_by)


_SLOTS = {frame.pattern: tuple(_slot(frame, role) for role in range(len(frame.roles))) for frame in FRAMES}
_TOKENS = {frame.pattern: tuple(frame.pattern.split()) for frame in FRAMES}
_NUMBERS = {concept: number for number, concept in enumerate(CONCEPTS)}
_LEAVES = {concept: Meaning(concept) for concept in CONCEPTS}


# ---- Sentences ----


class _Sentence(NamedTuple):
    words: tuple[str, ...]
    concepts: tuple[str, ...]


def _pronouns(happening: Event, facts: Facts, random: Random, ambiguity: float) -> dict[int, str]:
    """The arguments that are told by a pronoun, tried in random order.

    A pronoun must be resolved by the arguments that have none so far. So the one that was chosen last can be resolved
    first, and then the others, each by those that are known; it follows that the sentence has only one reading.
    """
    frame, names = happening
    used: dict[int, str] = {}
    roles = list(range(len(names)))
    while roles:
        role = taken(random, roles)
        if random.random() >= ambiguity:
            continue
        slot = _SLOTS[frame.pattern][role]
        word = slot.pronouns[names[role]]
        tests = frame.evidence(role, frozenset(used))
        if word not in used.values() and not _is_open(facts, names, role, slot.meant_by[word], tests):
            used[role] = word
    return used


def _is_open(facts: Facts, names: Arguments, role: int, choices: Sequence[str], tests: Sequence[Test]) -> bool:
    """Whether another choice than the right one passes the tests."""
    before, right, after = names[:role], names[role], names[role + 1 :]
    for choice in choices:
        arguments = (*before, choice, *after)
        for test in tests:
            if not test(facts, arguments):
                break
        else:
            if choice != right:
                return True
    return False


def _told(happening: Event, pronouns: Mapping[int, str], phrases: Phrases, random: Random) -> _Sentence:
    frame, names = happening
    words: list[str] = []
    concepts: list[str] = []
    for place, token in enumerate(_TOKENS[frame.pattern]):
        if not token.isdigit():
            words.append(token)
            concepts.append(frame.verb if place == 1 else EMPTY)
            continue
        role = int(token)
        phrase: Sequence[str] = (pronouns[role],) if role in pronouns else drawn(random, phrases[names[role]])
        if phrase == ("there",) and words[-1] == "in":
            del words[-1], concepts[-1]
        words.extend(phrase)
        concepts.extend([EMPTY] * (len(phrase) - 1))
        concepts.append(names[role])
    return _Sentence(tuple(words), tuple(concepts))


def _meaning(happening: Event) -> Meaning:
    return Meaning(happening.frame.verb, tuple(_LEAVES[name] for name in happening.arguments))


# ---- The house ----


@dataclass(frozen=True, slots=True)
class Episode:
    """An event that was told.

    Attributes
    ----------
    words, concepts : tuple of str
        The sentence, and the concept of each word: "-" for words that are no head of a phrase.
    meaning : Meaning
        The event: a verb and its arguments.
    is_ambiguous : bool
        Whether there is a pronoun in the sentence.
    universe : Universe
        How things were before the event.
    """

    words: tuple[str, ...]
    concepts: tuple[str, ...]
    meaning: Meaning
    is_ambiguous: bool
    universe: Universe


class House:
    """A house where things happen, and are told. To iterate over it is to go on with its story, which has no end.

    Parameters
    ----------
    random_state : int, RandomState or None
        What the story depends on.
    ambiguity : float, default=0.0
        How often an argument is told by a pronoun, between 0 and 1, where the pronoun can be resolved.

    Attributes
    ----------
    universe : Universe
        How things are now. It may be changed; what follows will take it from there.

    Examples
    --------
    >>> episode = House(random_state=0).step()
    >>> len(episode.words) == len(episode.concepts)
    True
    """

    def __init__(self, random_state: RandomState = None, ambiguity: float = 0.0) -> None:
        if not 0 <= finite("ambiguity", ambiguity) <= 1:
            raise ValueError(f"ambiguity must be a number from 0 to 1, got {ambiguity!r}")
        (self._random,) = random_streams(random_state, 1)
        self._ambiguity = float(ambiguity)
        self._phrases = _PHRASES[ambiguity > 0]
        self.universe = new_universe(self._random)

    def step(self) -> Episode:
        """Let something happen, and tell it."""
        happening = event(self.universe, self._random)
        facts = Facts.of(self.universe)
        pronouns = _pronouns(happening, facts, self._random, self._ambiguity) if self._ambiguity else {}
        sentence = _told(happening, pronouns, self._phrases, self._random)
        before = self.universe.copy()
        self.universe.update(happening.frame.effect(facts, happening.arguments))
        return Episode(*sentence, _meaning(happening), bool(pronouns), before)

    def __iter__(self) -> Iterator[Episode]:
        while True:
            yield self.step()


# ---- Data ----


@dataclass(frozen=True)
class Triples:
    """Sentences, their concepts, and the universe they speak of: the triples of [thesis] C.3.

    Attributes
    ----------
    words, concepts : list of tuples of str
        The sentences, and the concept of each word or "-".
    meanings : list of Meaning
        The events.
    names : tuple of str
        The concepts of the house.
    location, containedby : array of shape (n_sentences, n_concepts), int16
        Before each event, the concept that the relation gives for each concept, as an index into `names`, or -1.
    is_ambiguous : array of shape (n_sentences,), bool
        Whether there is a pronoun in the sentence.
    """

    words: list[tuple[str, ...]]
    concepts: list[tuple[str, ...]]
    meanings: list[Meaning]
    names: tuple[str, ...]
    location: NDArray[np.int16]
    containedby: NDArray[np.int16]
    is_ambiguous: NDArray[np.bool_]

    @property
    def universes(self) -> Universes:
        """What was known before each event, as a `ConceptLabeler` takes it."""
        return Universes(self.names, len(self.names), {"location": self.location, "containedby": self.containedby})


def make_triples(n: int, *, ambiguity: float = AMBIGUITY, random_state: RandomState = None) -> Triples:
    """Make sentences about the house, with the concept of each word and the universe before each event.

    Parameters
    ----------
    n : int
        How many.
    ambiguity : float
        As of `House`. The default makes about 53 % of the sentences ambiguous.
    random_state : int, RandomState or None
        What the story depends on.
    """
    house = House(random_state, ambiguity)
    words, concepts, meanings = [], [], []
    is_ambiguous = np.zeros(whole_number("n", n, at_least=0), dtype=bool)
    location, containedby = (np.full((n, len(CONCEPTS)), -1, dtype=np.int16) for _ in range(2))
    for row, episode in zip(range(n), house, strict=False):
        words.append(episode.words)
        concepts.append(episode.concepts)
        meanings.append(episode.meaning)
        is_ambiguous[row] = episode.is_ambiguous
        _fill(location[row], episode.universe.table("location"))
        _fill(containedby[row], episode.universe.table("containedby"))
    return Triples(words, concepts, meanings, tuple(CONCEPTS), location, containedby, is_ambiguous)


def _fill(row: NDArray[np.int16], table: Mapping[str, str]) -> None:
    row[[_NUMBERS[name] for name in table]] = [_NUMBERS[value] for value in table.values()]


def make_ambiguous_house(
    n_train: int = 2000, n_test: int = 500, *, level: int = 0, random_state: RandomState = None
) -> tuple[list[ParseExample], list[ParseExample]]:
    """Make sentences without pronouns, each with meanings it may have: the set AMBIGHOUSE of [thesis] 6.2.2.

    Parameters
    ----------
    n_train, n_test : int
        How many sentences there are for training and for test; those for test come later in the same story.
    level : int, default=0
        How many wrong candidates a training sentence has on average, from 0 to twice as many. They are other events
        that could have happened then.
    random_state : int, RandomState or None
        What story and candidates depend on; the story is the same at every level.

    Returns
    -------
    train, test : lists of ParseExample
        Those for training have candidates alone; those for test have the meaning and the symbol of each word.
    """
    story, supervision = random_streams(random_state, 2)
    level = whole_number("level", level, at_least=0)
    house = House(story.getrandbits(31))
    train = [_offered(house.step(), level, supervision) for _ in range(whole_number("n_train", n_train, at_least=0))]
    test = [house.step() for _ in range(whole_number("n_test", n_test, at_least=0))]
    return train, [ParseExample(seen.words, (), seen.meaning, seen.concepts) for seen in test]


def _offered(episode: Episode, level: int, random: Random) -> ParseExample:
    def another() -> Meaning:
        return _meaning(event(episode.universe, random))

    return ParseExample(episode.words, candidates(episode.meaning, another, level, random))
