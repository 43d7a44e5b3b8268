"""States of a universe, one per sentence, as tables of numbers: how a labeller is told what was known, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.ambiguous.universe import Relation, Universe, UniverseError

NOTHING = -1
ABSENT = -2


@dataclass(frozen=True)
class Universes:
    """States of universes, one after another.

    Attributes
    ----------
    names : tuple of str
        The concepts, then other values that relations may lead to. A value that has the name of a concept is that
        concept.
    n_concepts : int
        How many of the names are concepts.
    tables : dict from str to array of shape (n_states, n_concepts)
        By relation, what it says of each concept in each state, as an index into `names`; -1 where it says nothing, and
        -2 where there is no such concept then.

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
    tables: Mapping[str, NDArray[np.integer[Any]]]

    def __post_init__(self) -> None:
        """Tables must have a row per state and a column per concept, and lead to names."""
        if len(set(self.names)) != len(self.names):
            raise UniverseError("names has a name twice; each may occur once")
        if not 0 <= self.n_concepts <= len(self.names):
            raise UniverseError(f"n_concepts is {self.n_concepts}; there are {len(self.names)} names")
        shapes = {table.shape for table in self.tables.values()}
        if len(shapes) > 1 or any(len(shape) != 2 or shape[1] != self.n_concepts for shape in shapes):
            found = ", ".join(f"{name} {table.shape}" for name, table in self.tables.items())
            raise UniverseError(f"tables must all have a row per state and {self.n_concepts} columns; got {found}")
        for name, table in self.tables.items():
            if table.dtype.kind not in "iu":
                raise UniverseError(f"the table of {name} has dtype {table.dtype}; it must have integers")
            if table.size and not (table.min() >= ABSENT and table.max() < len(self.names)):
                raise UniverseError(f"the table of {name} leads beyond the names, which are {len(self.names)}")

    def __len__(self) -> int:
        return len(next(iter(self.tables.values()))) if self.tables else 0

    @classmethod
    def of(cls, universes: Iterable[Universe]) -> Universes:
        """The states that these universes are in now.

        Raises
        ------
        UniverseError
            If they have different relations.
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
