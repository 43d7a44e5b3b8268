"""A universe: what is known of the concepts of a small world, as facts that change.

A fact is a relation, a concept and what the relation says of it: location(rice) = kitchen. A concept has at most one
fact of each relation. A relation says which kinds of concepts it is about, and which kinds or values it may lead to.
Relations that are acyclic are so together: what is contained by a thing cannot also be its location.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple


class UniverseError(ValueError):
    """A fact that a universe cannot hold. The universe is as it was before."""


class Fact(NamedTuple):
    """What a relation says of a concept; None if it says nothing."""

    relation: str
    concept: str
    value: str | None

    def __str__(self) -> str:
        return f"{self.relation}({self.concept}) = {self.value or ''}".rstrip()


@dataclass(frozen=True)
class Relation:
    """A relation that gives a concept at most one value.

    Parameters
    ----------
    name : str
        How it is called.
    of : set of str
        The kinds of concepts it is about.
    to : set of str
        The kinds of concepts it may lead to.
    values : set of str
        Other values it may have, which are not concepts.
    acyclic : bool, default=False
        Whether it must not lead back to where it began, also by way of other acyclic relations.
    """

    name: str
    of: Set[str]
    to: Set[str] = frozenset()
    values: Set[str] = frozenset()
    acyclic: bool = False

    def __post_init__(self) -> None:
        """Any collection of names will do, but a single name is none."""
        if not isinstance(self.name, str) or not self.name:
            raise UniverseError(f"name must be a str that is not empty, got {self.name!r}")
        for field in ("of", "to", "values"):
            names = getattr(self, field)
            is_one = isinstance(names, str) or not isinstance(names, Iterable)
            if is_one or not all(isinstance(name, str) for name in names):
                raise UniverseError(f"{field} must be a set of str, such as {{'room'}}; got {names!r}")
            object.__setattr__(self, field, frozenset(names))


class Universe:
    """Concepts, each of a kind, and the facts known of them.

    Parameters
    ----------
    concepts : mapping from str to str
        The kind of each concept.
    relations : iterable of Relation
        What facts there may be.

    Raises
    ------
    UniverseError
        If two relations have the same name, or one speaks of a kind that no concept has.

    Examples
    --------
    >>> inside = Relation("containedby", of={"thing"}, to={"thing"}, acyclic=True)
    >>> universe = Universe({"box": "thing", "ball": "thing"}, [inside])
    >>> universe.set("containedby", "ball", "box")
    >>> universe.get("containedby", "ball")
    'box'
    """

    def __init__(self, concepts: Mapping[str, str], relations: Iterable[Relation]) -> None:
        _check_concepts(concepts)
        self._kinds = dict(concepts)
        self._relations: dict[str, Relation] = {}
        if isinstance(relations, Relation | str) or not isinstance(relations, Iterable):
            raise UniverseError(f"relations must be a list of Relation, got {type(relations).__name__}")
        for relation in relations:
            self._check_relation(relation)
            self._relations[relation.name] = relation
        self._facts: dict[str, dict[str, str]] = {name: {} for name in self._relations}
        self._acyclic = tuple(self._facts[name] for name, relation in self._relations.items() if relation.acyclic)

    @property
    def concepts(self) -> Mapping[str, str]:
        """The kind of each concept."""
        return MappingProxyType(self._kinds)

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The relations by name."""
        return MappingProxyType(self._relations)

    def table(self, relation: str) -> Mapping[str, str]:
        """What a relation says of every concept it says something of; it follows later changes."""
        return MappingProxyType(self._table(relation))

    def get(self, relation: str, concept: str) -> str | None:
        """What a relation says of a concept; None if it says nothing."""
        table = self._table(relation)
        self._kind(concept)
        return table.get(concept)

    def set(self, relation: str, concept: str, value: str) -> None:
        """Let a relation say something of a concept, in place of what it said before."""
        self.update([Fact(relation, concept, value)])

    def remove(self, relation: str, concept: str) -> None:
        """Let a relation say nothing of a concept."""
        self.update([Fact(relation, concept, None)])

    def update(self, facts: Iterable[Fact | tuple[str, str, str | None]]) -> None:
        """Change several facts at once: all of them, or none if one is bad.

        Parameters
        ----------
        facts : iterable of (relation, concept, value)
            What to change; a value of None removes. Of two facts of the same relation and concept, the last counts.

        Raises
        ------
        UniverseError
            If a relation or concept is unknown, a kind or value does not fit, or a cycle would close. What counts is
            how things are once all facts are changed.
        """
        changes = [_checked_fact(fact) for fact in facts]
        for relation, concept, value in changes:
            self._check(relation, concept, value)
        before = [(relation, concept, self._facts[relation].get(concept)) for relation, concept, _ in changes]
        self._write(changes)
        try:
            for relation, concept, _ in changes:
                if self._relations[relation].acyclic:
                    self._check_acyclic(relation, concept)
        except UniverseError:
            self._write(reversed(before))
            raise

    def facts(self) -> list[Fact]:
        """All facts, by relation in the order of the relations, then by concept in the order of the concepts."""
        return [
            Fact(name, concept, table[concept])
            for name, table in self._facts.items()
            for concept in self._kinds
            if concept in table
        ]

    def copy(self) -> Universe:
        """A universe of the same concepts and facts, which changes on its own."""
        twin = Universe.__new__(Universe)
        twin._kinds, twin._relations = self._kinds, self._relations  # these never change
        twin._facts = {name: table.copy() for name, table in self._facts.items()}
        twin._acyclic = tuple(twin._facts[name] for name, relation in self._relations.items() if relation.acyclic)
        return twin

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Universe):
            return NotImplemented
        return (self._kinds, self._relations, self._facts) == (other._kinds, other._relations, other._facts)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Universe({len(self._kinds)} concepts, {sum(map(len, self._facts.values()))} facts)"

    def _write(self, facts: Iterable[tuple[str, str, str | None]]) -> None:
        for relation, concept, value in facts:
            if value is None:
                self._facts[relation].pop(concept, None)
            else:
                self._facts[relation][concept] = value

    # ---- Checks ----

    def _check_relation(self, relation: Relation) -> None:
        if not isinstance(relation, Relation):
            raise UniverseError(f"relations has {relation!r}; it must be a list of Relation")
        if relation.name in self._relations:
            raise UniverseError(f"relations has {relation.name!r} twice; a name may occur once")
        known = set(self._kinds.values())
        unknown = (relation.of | relation.to) - known
        if unknown:
            raise UniverseError(
                f"the relation {relation.name!r} speaks of the kind {min(unknown)!r}; concepts are of the kinds "
                f"{_listed(known)}"
            )

    def _check(self, relation: str, concept: str, value: str | None) -> None:
        self._table(relation)
        rule = self._relations[relation]
        kind = self._kind(concept)
        if kind not in rule.of:
            raise UniverseError(f"{relation} is not of {concept!r}, of kind {kind}; it is of {_listed(rule.of)}")
        if value is None or value in rule.values:
            return
        if self._kinds.get(value) not in rule.to:
            which = f"of kind {self._kinds[value]}" if value in self._kinds else "not known"
            raise UniverseError(
                f"{relation}({concept}) cannot be {value!r}, which is {which}; it may be "
                f"{_listed([*(f'any {kind}' for kind in sorted(rule.to)), *map(repr, sorted(rule.values))])}"
            )

    def _check_acyclic(self, relation: str, concept: str) -> None:
        seen = set()
        waiting = [table[concept] for table in self._acyclic if concept in table]
        while waiting:
            place = waiting.pop()
            if place == concept:
                value = self._facts[relation].get(concept)
                raise UniverseError(f"{relation}({concept}) = {value} leads from {concept!r} back to itself")
            if place not in seen:
                seen.add(place)
                waiting.extend(table[place] for table in self._acyclic if place in table)

    def _table(self, relation: str) -> dict[str, str]:
        table = self._facts.get(relation)
        if table is None:
            raise UniverseError(f"relation is {relation!r}; this universe has {_listed(self._facts)}")
        return table

    def _kind(self, concept: str) -> str:
        kind = self._kinds.get(concept)
        if kind is None:
            raise UniverseError(f"concept is {concept!r}, which is not known; known are {_some(self._kinds)}")
        return kind


def _check_concepts(concepts: Mapping[str, str]) -> None:
    if not isinstance(concepts, Mapping):
        raise UniverseError(f"concepts must be a dict of names and their kinds, got {type(concepts).__name__}")
    for concept, kind in concepts.items():
        for what, name in (("the concept", concept), (f"{concept!r} of the kind", kind)):
            if not isinstance(name, str) or not name:
                raise UniverseError(f"concepts has {what} {name!r}; names and kinds are str, and not empty")


def _checked_fact(fact: Fact | tuple[str, str, str | None]) -> Fact:
    if not isinstance(fact, tuple) or len(fact) != 3:
        raise UniverseError(f"facts has {fact!r}; a fact is a tuple (relation, concept, value)")
    return Fact(*fact)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _some(names: Mapping[str, str]) -> str:
    return _listed(list(names)[:5]) + (", ..." if len(names) > 5 else "")
