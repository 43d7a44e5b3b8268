"""What is in the house and what can happen there: concepts, verbs, their rules and their effects.

Everything but rooms and verbs has a location, which is a room. What is held, lies on or in furniture, or sits on a seat
is also contained by what holds it. An event is a verb and its arguments. It is coherent if it keeps all rules of the
verb.

A rule is open if location and containedby of the arguments decide it. Other rules are hidden: they look at states, at
other things (is the seat taken?), or speak of what nobody would say. Hidden rules bind events, but help nobody to guess
who is meant by "he".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from random import Random
from typing import NamedTuple

from larank.ambiguous.draws import drawn, taken
from larank.ambiguous.universe import Fact, Relation, Universe, UniverseError

# ---- Concepts ----

_INHABITANTS: dict[str, dict[str, str]] = {  # kind, class, names
    "actor": {
        "male": "john mark harry",
        "female": "gina francoise maggie",
        "animal": "cat dog hamster rabbit",
    },
    "object": {
        "drink": "water milk coffee",
        "food": "yoghurt chocolate salad apple rice",
        "toy": "doll ball football toy videogame",
        "thing": "coat book",
    },
    "room": {"room": "kitchen livingroom bedroom bathroom hall garden"},
    "furniture": {
        "seat": "chair couch armchair bench bed",
        "desk": "table desk",
        "shelf": "sideboard shelf",
        "container": "fridge cupboard closet",
    },
}
_VERBS = "move get give put sleep wake_up play drink eat bring drop sit stand_up cook work"  # [thesis] C.5.1
_ROOM_OF = {
    "chair": "kitchen",
    "table": "kitchen",
    "fridge": "kitchen",
    "cupboard": "kitchen",
    "couch": "livingroom",
    "armchair": "livingroom",
    "sideboard": "livingroom",
    "bed": "bedroom",
    "desk": "bedroom",
    "shelf": "bathroom",
    "closet": "hall",
    "bench": "garden",
}
_CLASS_OF = dict.fromkeys(_VERBS.split(), "verb") | {
    name: word for words in _INHABITANTS.values() for word, names in words.items() for name in names.split()
}

CONCEPTS: Mapping[str, str] = dict.fromkeys(_VERBS.split(), "verb") | {
    name: kind for kind, words in _INHABITANTS.items() for names in words.values() for name in names.split()
}
MEMBERS: Mapping[str, tuple[str, ...]] = {
    word: tuple(name for name, other in _CLASS_OF.items() if other == word)
    for word in dict.fromkeys(_CLASS_OF.values())
}
RELATIONS = (
    Relation("location", frozenset({"actor", "object", "furniture"}), to=frozenset({"room"}), acyclic=True),
    Relation("containedby", frozenset({"actor", "object"}), to=frozenset({"actor", "furniture"}), acyclic=True),
    Relation("inherit", frozenset(CONCEPTS.values()), values=frozenset(MEMBERS)),
    Relation("state", frozenset({"actor", "object"}), values=frozenset({"asleep", "cooked"})),
)

_PEOPLE = ("male", "female")
_ACTORS = (*_PEOPLE, "animal")
_OBJECTS = ("drink", "food", "toy", "thing")
_SURFACES = ("desk", "shelf")
_HANDS = 2  # things an actor can hold


def new_universe(random: Random) -> Universe:
    """A house where actors stand in rooms, and objects are on or in pieces of furniture, drawn at random."""
    universe = Universe(CONCEPTS, RELATIONS)
    universe.update(("inherit", name, word) for name, word in _CLASS_OF.items())
    universe.update(("location", name, room) for name, room in _ROOM_OF.items())
    universe.update(("location", name, drawn(random, MEMBERS["room"])) for name in _members(_ACTORS))
    stores = _members((*_SURFACES, "container"))
    for name in _members(_OBJECTS):
        store = drawn(random, stores)
        universe.update([("containedby", name, store), ("location", name, _ROOM_OF[store])])
    return universe


def _members(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for word in words for name in MEMBERS[word])


# ---- Rules ----


class Facts(NamedTuple):
    """The relations that change, as tables."""

    location: Mapping[str, str]
    containedby: Mapping[str, str]
    state: Mapping[str, str]

    @classmethod
    def of(cls, universe: Universe) -> Facts:
        """The tables of a universe; they follow its changes."""
        return cls(universe.table("location"), universe.table("containedby"), universe.table("state"))


Arguments = tuple[str, ...]
Test = Callable[[Facts, Arguments], bool]
Tests = tuple[tuple[Test, ...], ...]  # for each argument, what can be tested once it is known


@dataclass(frozen=True)
class Rule:
    """What must be true of some arguments of an event.

    Attributes
    ----------
    text : str
        The rule in words, with the arguments as {0}, {1}, {2}.
    roles : tuple of int
        The arguments it speaks of.
    relation : str
        The relation that decides it if it is open, "names" if none is needed, or "" if it is hidden.
    holds : callable
        Whether facts and arguments keep it.
    """

    text: str
    roles: tuple[int, ...]
    relation: str
    holds: Test


def _together(a: int, b: int) -> Rule:
    def holds(facts: Facts, names: Arguments) -> bool:
        room = facts.location.get(names[a])
        return room is not None and room == facts.location.get(names[b])

    return Rule(f"{{{a}}} and {{{b}}} are in one room", (a, b), "location", holds)


def _is_in(a: int, room: int) -> Rule:
    def holds(facts: Facts, names: Arguments) -> bool:
        return facts.location.get(names[a]) == names[room]

    return Rule(f"{{{a}}} is in {{{room}}}", (a, room), "location", holds)


def _is_elsewhere(a: int, room: int) -> Rule:
    def holds(facts: Facts, names: Arguments) -> bool:
        return facts.location.get(names[a]) != names[room]

    return Rule(f"{{{a}}} is not in {{{room}}}", (a, room), "location", holds)


def _is_in_the(room: str, a: int) -> Rule:
    def holds(facts: Facts, names: Arguments) -> bool:
        return facts.location.get(names[a]) == room

    return Rule(f"{{{a}}} is in the {room}", (a,), "location", holds)


def _is_held(a: int, holder: int) -> Rule:
    def holds(facts: Facts, names: Arguments) -> bool:
        return facts.containedby.get(names[a]) == names[holder]

    return Rule(f"{{{a}}} is contained by {{{holder}}}", (a, holder), "containedby", holds)


def _is_loose(a: int) -> Rule:
    def holds(facts: Facts, names: Arguments) -> bool:
        return names[a] not in facts.containedby

    return Rule(f"{{{a}}} is contained by nothing", (a,), "containedby", holds)


def _is_on_something(a: int) -> Rule:
    def holds(facts: Facts, names: Arguments) -> bool:
        return names[a] in facts.containedby

    return Rule(f"{{{a}}} is contained by something", (a,), "containedby", holds)


def _differ(a: int, b: int) -> Rule:
    def holds(facts: Facts, names: Arguments) -> bool:
        return names[a] != names[b]

    return Rule(f"{{{a}}} is not {{{b}}}", (a, b), "names", holds)


def _is_not(state: str, a: int) -> Rule:
    def holds(facts: Facts, names: Arguments) -> bool:
        return facts.state.get(names[a]) != state

    return Rule(f"{{{a}}} is not {state}", (a,), "", holds)


def _is_asleep(a: int) -> Rule:
    def holds(facts: Facts, names: Arguments) -> bool:
        return facts.state.get(names[a]) == "asleep"

    return Rule(f"{{{a}}} is asleep", (a,), "", holds)


def _is_free(seat: int) -> Rule:
    def holds(facts: Facts, names: Arguments) -> bool:
        return names[seat] not in facts.containedby.values()

    return Rule(f"nobody sits on {{{seat}}}", (seat,), "", holds)


def _has_a_hand_free(a: int) -> Rule:
    def holds(facts: Facts, names: Arguments) -> bool:
        return len(_held_by(facts, names[a])) < _HANDS

    return Rule(f"{{{a}}} holds less than {_HANDS} things", (a,), "", holds)


def _can_take(a: int, thing: int) -> Rule:
    def holds(facts: Facts, names: Arguments) -> bool:
        holder = facts.containedby.get(names[thing])
        if holder == names[a]:
            return True
        return CONCEPTS.get(holder or "") != "actor" and len(_held_by(facts, names[a])) < _HANDS

    return Rule(f"{{{a}}} holds {{{thing}}}, or can take it because nobody does", (a, thing), "", holds)


def _held_by(facts: Facts, holder: str) -> list[str]:
    return [name for name, other in facts.containedby.items() if other == holder]


# ---- Effects ----

Change = Fact | tuple[str, str, str | None]
Effect = Callable[[Facts, Arguments], list[Change]]


def _goes_to(room: int, facts: Facts, names: Arguments) -> list[Change]:
    return [("location", name, names[room]) for name in (names[0], *_held_by(facts, names[0]))]


def _takes(facts: Facts, names: Arguments) -> list[Change]:
    return [("containedby", names[1], names[0])]


def _takes_along(facts: Facts, names: Arguments) -> list[Change]:
    return [("location", names[1], names[2]), *_goes_to(2, facts, names), *_takes(facts, names)]


def _hands_over(facts: Facts, names: Arguments) -> list[Change]:
    return [("containedby", names[1], names[2])]


def _lets_go(facts: Facts, names: Arguments) -> list[Change]:
    return [("containedby", names[1], None)]


def _takes_seat(facts: Facts, names: Arguments) -> list[Change]:
    return [("containedby", names[0], names[1])]


def _leaves_seat(facts: Facts, names: Arguments) -> list[Change]:
    return [("containedby", names[0], None)]


def _falls_asleep(facts: Facts, names: Arguments) -> list[Change]:
    return [("state", names[0], "asleep")]


def _awakes(facts: Facts, names: Arguments) -> list[Change]:
    return [("state", names[0], None)]


def _prepares(facts: Facts, names: Arguments) -> list[Change]:
    return [("state", names[1], "cooked"), *_takes(facts, names)]


def _uses_up(store: str, facts: Facts, names: Arguments) -> list[Change]:
    """What was used up is bought again."""
    return [("containedby", names[1], store), ("location", names[1], _ROOM_OF[store]), ("state", names[1], None)]


def _nothing(facts: Facts, names: Arguments) -> list[Change]:
    return []


# ---- Verbs ----


@dataclass(frozen=True, eq=False)
class Frame:
    """One way to say what a verb does. Most verbs have one; verbs that need other prepositions have two.

    Attributes
    ----------
    verb : str
        The concept.
    pattern : str
        The sentence, with the arguments as digits; the word after the first is that of the verb.
    roles : tuple of tuples of str
        The classes of concepts that each argument may be of.
    rules : tuple of Rule
        What must be true before.
    effect : callable
        What changes.
    """

    verb: str
    pattern: str
    roles: tuple[tuple[str, ...], ...]
    rules: tuple[Rule, ...]
    effect: Effect

    def __post_init__(self) -> None:
        """Every word of the grammar must have a sense: a verb of the house, and arguments of its classes."""
        if self.verb not in MEMBERS["verb"]:
            raise ValueError(f"verb must be one of the house, {', '.join(MEMBERS['verb'])}; got {self.verb!r}")
        tokens = self.pattern.split()
        wanted = [str(role) for role in range(len(self.roles))]
        if sorted(token for token in tokens if token.isdigit()) != wanted or tokens[1:2] == [] or tokens[1].isdigit():
            raise ValueError(
                f"pattern must have the digits {', '.join(wanted)} for the arguments, each once, and the word of the "
                f"verb after the first; got {self.pattern!r}"
            )
        for word in (word for words in self.roles for word in words):
            if word not in MEMBERS:
                raise ValueError(f"roles must be classes of the house, {', '.join(MEMBERS)}; got {word!r}")

    @cached_property
    def choices(self) -> tuple[tuple[str, ...], ...]:
        """The concepts that each argument may be."""
        return tuple(_members(words) for words in self.roles)

    @cached_property
    def coherence(self) -> Tests:
        """The tests of all rules."""
        return self._tests(self.rules)

    @cache  # noqa: B019, frames live as long as the module
    def evidence(self, role: int, unknown: frozenset[int] = frozenset()) -> tuple[Test, ...]:
        """The tests of the open rules on one argument that can be decided without the unknown ones."""
        return tuple(
            rule.holds for rule in self.rules if rule.relation and role in rule.roles and unknown.isdisjoint(rule.roles)
        )

    def _tests(self, rules: Sequence[Rule]) -> Tests:
        return tuple(tuple(rule.holds for rule in rules if max(rule.roles) == role) for role in range(len(self.roles)))


class Event(NamedTuple):
    """A verb, in one of its frames, and its arguments."""

    frame: Frame
    arguments: Arguments


_AWAKE = _is_not("asleep", 0)
_NEAR = (_AWAKE, _together(0, 1), _can_take(0, 1))
_DRINK, _FOOD, _SEAT, _ROOM = ("drink",), ("food",), ("seat",), ("room",)

FRAMES = (
    Frame(
        "move",
        "0 goes from 1 to 2",
        (_ACTORS, _ROOM, _ROOM),
        (_is_loose(0), _is_in(0, 1), _is_elsewhere(0, 2)),
        partial(_goes_to, 2),
    ),
    Frame(
        "get",
        "0 gets 1 from 2",
        (_ACTORS, _OBJECTS, (*_SURFACES, "container")),
        (_AWAKE, _has_a_hand_free(0), _together(0, 1), _together(0, 2), _is_held(1, 2)),
        _takes,
    ),
    Frame(
        "get",
        "0 gets 1 in 2",
        (_ACTORS, _OBJECTS, _ROOM),
        (_AWAKE, _has_a_hand_free(0), _is_in(0, 2), _is_in(1, 2), _is_loose(1)),
        _takes,
    ),
    Frame(
        "give",
        "0 gives 1 to 2",
        (_ACTORS, _OBJECTS, _ACTORS),
        (
            _AWAKE,
            _together(0, 1),
            _together(0, 2),
            _is_held(1, 0),
            _differ(0, 2),
            _is_not("asleep", 2),
            _has_a_hand_free(2),
        ),
        _hands_over,
    ),
    Frame(
        "put",
        "0 puts 1 on 2",
        (_ACTORS, _OBJECTS, _SURFACES),
        (_AWAKE, _together(0, 1), _together(0, 2), _is_held(1, 0)),
        _hands_over,
    ),
    Frame(
        "put",
        "0 puts 1 in 2",
        (_ACTORS, _OBJECTS, ("container",)),
        (_AWAKE, _together(0, 1), _together(0, 2), _is_held(1, 0)),
        _hands_over,
    ),
    Frame("sleep", "0 sleeps on 1", (_ACTORS, _SEAT), (_AWAKE, _together(0, 1), _is_held(0, 1)), _falls_asleep),
    Frame("wake_up", "0 wakes up in 1", (_ACTORS, _ROOM), (_is_asleep(0), _is_on_something(0), _is_in(0, 1)), _awakes),
    Frame("play", "0 plays with 1", (_ACTORS, ("toy",)), _NEAR, _takes),
    Frame("play", "0 plays in 1", (_ACTORS, _ROOM), (_AWAKE, _is_in(0, 1)), _nothing),
    Frame(
        "drink",
        "0 drinks 1",
        (_ACTORS, ("drink",)),
        (_AWAKE, _together(0, 1), _can_take(0, 1)),
        partial(_uses_up, "fridge"),
    ),
    Frame("eat", "0 eats 1", (_ACTORS, _FOOD), _NEAR, partial(_uses_up, "cupboard")),
    Frame(
        "bring",
        "0 brings 1 to 2",
        (_ACTORS, _OBJECTS, _ROOM),
        (_is_loose(0), _together(0, 1), _can_take(0, 1), _is_elsewhere(0, 2)),
        _takes_along,
    ),
    Frame(
        "drop",
        "0 drops 1 in 2",
        (_ACTORS, _OBJECTS, _ROOM),
        (_AWAKE, _is_in(0, 2), _is_in(1, 2), _is_held(1, 0)),
        _lets_go,
    ),
    Frame("sit", "0 sits on 1", (_ACTORS, _SEAT), (_is_loose(0), _together(0, 1), _is_free(1)), _takes_seat),
    Frame("stand_up", "0 stands up from 1", (_ACTORS, _SEAT), (_AWAKE, _together(0, 1), _is_held(0, 1)), _leaves_seat),
    Frame(
        "cook",
        "0 cooks 1",
        (_PEOPLE, _FOOD),
        (_AWAKE, _is_in_the("kitchen", 0), _together(0, 1), _is_not("cooked", 1), _can_take(0, 1)),
        _prepares,
    ),
    Frame("work", "0 works at 1", (_PEOPLE, ("desk",)), (_AWAKE, _together(0, 1)), _nothing),
    Frame("work", "0 works in 1", (_PEOPLE, _ROOM), (_AWAKE, _is_in(0, 1)), _nothing),
)
_FRAMES_OF = {verb: tuple(frame for frame in FRAMES if frame.verb == verb) for verb in MEMBERS["verb"]}


# ---- Events ----


def event(universe: Universe, random: Random) -> Event:
    """Draw a coherent event: a verb among those that are possible, an actor who can, and the rest, each uniformly.

    Raises
    ------
    UniverseError
        If nothing can happen, which is never so in a house that began as `new_universe`.
    """
    facts = Facts.of(universe)
    verbs = list(_FRAMES_OF)
    while verbs:
        frames = _FRAMES_OF[taken(random, verbs)]
        actors = list(frames[0].choices[0])
        while actors:
            actor = (taken(random, actors),)
            found = [
                Event(frame, names)
                for frame in frames
                for names in solutions(facts, frame.coherence, (actor, *frame.choices[1:]))
            ]
            if found:
                return drawn(random, found)
    raise UniverseError("universe has no event that is coherent; actors need a location")


def is_coherent(universe: Universe, event: Event) -> bool:
    """Whether an event keeps all rules, with arguments its verb can have."""
    frame, names = event
    fits = len(names) == len(frame.roles) and all(map(_contains, frame.choices, names))
    return fits and bool(solutions(Facts.of(universe), frame.coherence, [(name,) for name in names]))


def execute(universe: Universe, event: Event) -> None:
    """Let an event happen.

    Raises
    ------
    UniverseError
        If it is not coherent; the universe is as it was.
    """
    if not is_coherent(universe, event):
        raise UniverseError(f"event is {event.frame.verb}({', '.join(event.arguments)}), which cannot happen now")
    universe.update(event.frame.effect(Facts.of(universe), event.arguments))


def solutions(facts: Facts, tests: Tests, choices: Iterable[Sequence[str]]) -> list[Arguments]:
    """All arguments among the choices that pass the tests."""
    found: list[Arguments] = [()]
    for demands, names in zip(tests, choices, strict=True):
        found = [(*begun, name) for begun in found for name in names]
        for test in demands:
            found = [arguments for arguments in found if test(facts, arguments)]
    return found


def _contains(names: tuple[str, ...], name: str) -> bool:
    return name in names
