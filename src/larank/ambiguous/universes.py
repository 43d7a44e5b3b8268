"""States of a universe, one per sentence, as tables of numbers: how a labeller is told what was known, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.ambiguous.meanings import EMPTY
from larank.ambiguous.universe import Relation, Universe, UniverseError

NOTHING = -1
ABSENT = -2

_Tables = Mapping[str, NDArray[np.integer[Any]]]


@dataclass(frozen=True, eq=False)
class Universes:
    """States of universes, one after another. An index, a slice or an array of them takes some out.

    Attributes
    ----------
    names : tuple of str
        The concepts, then other values that relations may lead to. A value that has the name of a concept is that
        concept.
    n_concepts : int
        How many of the names are concepts.
    tables : dict from str to array of shape (n_states, n_concepts)
        By relation, what it says of each concept in each state, as an index into `names`; -1 where it says nothing, and
        -2, in all tables, where there is no such concept then.

    Examples
    --------
    >>> from larank.ambiguous.universe import Relation, Universe
    >>> relation = Relation("location", of=frozenset({"actor"}), to=frozenset({"room"}))
    >>> universe = Universe({"john": "actor", "hall": "room"}, [relation])
    >>> universe.set("location", "john", "hall")
    >>> Universes.of([universe]).tables["location"]
    array([[ 1, -1]], dtype=int32)
    """

    names: tuple[str, ...]
    n_concepts: int
    tables: _Tables

    def __post_init__(self) -> None:
        """Tables must have a row per state and a column per concept, and lead to names."""
        _check_names(self.names)
        if not 0 <= self.n_concepts <= len(self.names):
            raise UniverseError(f"n_concepts is {self.n_concepts}; there are {len(self.names)} names")
        _check_tables(self.tables, self.n_concepts, len(self.names))

    def __len__(self) -> int:
        return len(next(iter(self.tables.values()))) if self.tables else 0

    def __getitem__(self, rows: Any) -> Universes:
        """Some of the states, or one."""
        chosen = {name: np.atleast_2d(table[rows]) for name, table in self.tables.items()}
        return Universes(self.names, self.n_concepts, chosen)

    @classmethod
    def of(cls, universes: Iterable[Universe]) -> Universes:
        """The states that these universes are in now.

        Raises
        ------
        UniverseError
            If they have different relations, or one has a concept or value that is called "-" or nothing.
        """
        given = list(universes)
        if not given:
            return cls((), 0, {})
        relations, concepts, values = _joined(given)
        names = (*concepts, *values)
        numbers = {name: number for number, name in enumerate(names)}
        tables = {name: np.full((len(given), len(concepts)), NOTHING, dtype=np.int32) for name in relations}
        for row, universe in enumerate(given):
            is_whole = len(universe.concepts) == len(concepts)
            absent = [] if is_whole else [numbers[name] for name in concepts if name not in universe.concepts]
            for name, table in tables.items():
                facts = universe.table(name)
                table[row, [numbers[of] for of in facts]] = [numbers[value] for value in facts.values()]
                table[row, absent] = ABSENT
        return cls(names, len(concepts), tables)

    @classmethod
    def join(cls, parts: Sequence[Universes]) -> Universes:
        """The states of several, which must have the same names and relations."""
        first = parts[0]
        for number, part in enumerate(parts):
            if (part.names, part.n_concepts, set(part.tables)) != (first.names, first.n_concepts, set(first.tables)):
                raise UniverseError(f"universes[{number}] has other names or relations than universes[0]")
        tables = {name: np.concatenate([part.tables[name] for part in parts]) for name in first.tables}
        return cls(first.names, first.n_concepts, tables)


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if not isinstance(name, str) or name in ("", EMPTY):
            raise UniverseError(f"names has {name!r}; a name is a str, not empty, and not {EMPTY!r}, which means none")
    if len(set(names)) != len(names):
        raise UniverseError("names has a name twice; each may occur once")


def _check_tables(tables: _Tables, n_concepts: int, n_names: int) -> None:
    for name, table in tables.items():
        if not isinstance(table, np.ndarray) or table.dtype.kind not in "iu":
            raise UniverseError(f"the table of {name} must be an array of integers, got {type(table).__name__}")
    shapes = {table.shape for table in tables.values()}
    if len(shapes) > 1 or any(len(shape) != 2 or shape[1] != n_concepts for shape in shapes):
        found = ", ".join(f"{name} {table.shape}" for name, table in tables.items())
        raise UniverseError(f"tables must all have a row per state and {n_concepts} columns; got {found}")
    first = next(iter(tables.values()), None)
    for name, table in tables.items():
        if table.size and not (table.min() >= ABSENT and table.max() < n_names):
            raise UniverseError(f"the table of {name} leads beyond the names, which are {n_names}")
        if first is not None and not np.array_equal(table == ABSENT, first == ABSENT):
            raise UniverseError(f"the table of {name} has {ABSENT}, for concepts that are not there, in other places")


def _joined(universes: Sequence[Universe]) -> tuple[Mapping[str, Relation], dict[str, None], dict[str, None]]:
    """The relations of all, their concepts and other values, each once."""
    relations = universes[0].relations
    concepts: dict[str, None] = {}
    values: dict[str, None] = {}
    known: Mapping[str, str] = {}
    for number, universe in enumerate(universes):
        if number and universe.relations == relations and universe.concepts == known:
            continue
        known = universe.concepts
        if universe.relations != relations:
            raise UniverseError(
                f"universes[{number}] has the relations {', '.join(universe.relations)}; those before have "
                f"{', '.join(relations)}, and all must be the same"
            )
        concepts |= dict.fromkeys(universe.concepts)
        for relation in universe.relations.values():
            values |= dict.fromkeys(sorted(relation.values))
    return relations, concepts, {name: None for name in values if name not in concepts}
