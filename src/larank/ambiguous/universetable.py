"""Universes as tables: a row for each concept, its kind, the words it is called by, and a column for each relation.

    concept,kind,words,location:room,state=asleep|cooked
    john,actor,john father,kitchen,
    kitchen,room,kitchen,,

The columns `kind` and `words` may be left out. Any other column is a relation, and an empty cell says nothing. Its name
may be followed by what the relation is about and leads to, all of it if need be: location(actor|object):room:acyclic.

- (KINDS): the concepts it is about; those of any kind if left out.
- :KINDS: the concepts it leads to; those of any kind if left out.
- :acyclic: it must not lead back to where it began, as in `Relation`. That is always so of `containedby`.
- =VALUES: values that are not concepts. It leads to no concept then, unless kinds are given. With "=" and nothing after
  it, the values are those that stand in the column.

A name has no blanks, no parentheses, "=" or "|", and does not begin with "#"; that of a kind or relation has no ":".
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from larank.ambiguous.meanings import EMPTY
from larank.ambiguous.universe import Fact, Relation, Universe, UniverseError
from larank.data.files import PathLike, atomic_write, compressed, located, read_text
from larank.data.rows import format_suffix

_FIXED = ("concept", "kind", "words")
_ANY_KIND = "thing"
_CONTAINED = "containedby"

_NAME = re.compile(r"(?!#)[^\s()=|]+")
_PLAIN = r"(?!#)[^\s()=|:]+"
_KINDS = rf"{_PLAIN}(?:\|{_PLAIN})*"
_HEADER = re.compile(rf"({_PLAIN})(?:\(({_KINDS})\))?(?::(?!acyclic(?:=|$))({_KINDS}))?(:acyclic)?(?:=(.*))?")
_WANTED_HEADER = "a relation is called NAME, followed if need be by (KINDS), :KINDS, :acyclic, =VALUES, in this order"
_WANTED_NAME = f'a name has no blanks, no ( ) = or |, does not begin with #, and is not {EMPTY}, which means "none"'


@dataclass(frozen=True)
class UniverseTable:
    """What a table holds.

    Attributes
    ----------
    universe : Universe
        Its concepts, and the facts known of them.
    words : dict from str to tuple of str
        The concepts that each word may stand for, in the order of the table.
    """

    universe: Universe
    words: Mapping[str, tuple[str, ...]]


def read_table(path: PathLike) -> UniverseTable:
    """Read a universe from a table.

    Parameters
    ----------
    path : path-like
        Text in UTF-8, separated by commas or, if its name ends in .tsv, by tabs; compressed or not.

    Raises
    ------
    DataFormatError
        If the file is no such table, or has a fact that cannot be; it says in which line and column.
    """
    lines = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=_delimiter(path), strict=True)
    with located(path, lambda: lines.line_num):
        return _table([(lines.line_num, [cell.strip() for cell in row]) for row in lines])


def write_table(
    path: PathLike,
    universe: Universe,
    words: Mapping[str, Iterable[str]] | None = None,
    *,
    relations: Iterable[str] | None = None,
) -> None:
    """Write a universe as a table, so that it is the same when it is read.

    Parameters
    ----------
    path : path-like
        The file, with tabs if its name ends in .tsv; it is compressed if its name ends in .gz, .bz2 or .xz, and
        replaced only once all is written.
    universe : Universe
        What to write.
    words : mapping from str to iterables of str, optional
        The concepts that each word may stand for.
    relations : iterable of str, optional
        The relations to write; by default all.

    Raises
    ------
    ValueError
        If a name cannot stand in a table.
    """
    kept = list(universe.relations if relations is None else relations)
    tables = [universe.table(name) for name in kept]
    kinds = dict.fromkeys(universe.concepts.values())
    called = _called(universe, words or {})
    text = io.StringIO()
    writer = csv.writer(text, delimiter=_delimiter(path), lineterminator="\n")
    writer.writerow([*_FIXED, *(_header(universe.relations[name], kinds) for name in kept)])
    for concept, kind in universe.concepts.items():
        facts = [table.get(concept, "") for table in tables]
        for name in (concept, *filter(None, facts)):
            check_name(name, f"universe has {name!r}")
        _check_kind(kind, f"universe has the kind {kind!r}")
        writer.writerow([concept, kind, " ".join(called[concept]), *facts])
    with atomic_write(path) as file, compressed(path, file) as stream:
        stream.write(text.getvalue().encode())


def change(universe: Universe, facts: Sequence[Fact], places: Sequence[str]) -> None:
    """Change facts at once; the error of those that cannot be says at which place it goes wrong."""
    try:
        universe.update(facts)
    except UniverseError:
        twin, fine, wrong = universe.copy(), 0, len(facts)  # so many of the facts would do, and so many would not
        while wrong - fine > 1:
            middle = (fine + wrong) // 2
            try:
                twin.update(facts[fine:middle])
                fine = middle
            except UniverseError:
                wrong = middle
        try:
            twin.update(facts[fine:wrong])
        except UniverseError as error:
            raise ValueError(f"{places[fine]}: {error}") from None
        raise


def check_name(name: str, what: str) -> None:
    """Names of concepts, relations and values must be such that files can be read again."""
    if not _NAME.fullmatch(name) or not name.isprintable() or name == EMPTY:
        raise ValueError(f"{what}; {_WANTED_NAME}")


def _delimiter(path: PathLike) -> str:
    return "\t" if format_suffix(path) == ".tsv" else ","


# ---- Reading ----


class _Row(NamedTuple):
    line: int
    cells: dict[str, str]  # by column

    def place(self, column: str) -> str:
        """Where a cell is, for errors."""
        return f"line {self.line}, column {column!r}"


def _table(lines: Sequence[tuple[int, list[str]]]) -> UniverseTable:
    filled = [(line, cells) for line, cells in lines if any(cells)]
    if not filled:
        raise ValueError("line 1: the table is empty; it must begin with the names of its columns")
    (first, columns), *others = filled
    _check_columns(first, columns)
    rows = [_row(line, cells, columns) for line, cells in others]
    if not rows:
        raise ValueError(f"line {first}: there are no concepts below the names of the columns")
    kinds = _kinds(rows)
    relations = {column: _relation(first, column, kinds, rows) for column in columns if column not in _FIXED}
    try:
        universe = Universe(kinds, relations.values())
    except UniverseError as error:
        raise ValueError(f"line {first}: {error}") from None
    cells = [(row, column) for row in rows for column in relations if row.cells[column]]
    facts = [_fact(row, column, relations[column], kinds) for row, column in cells]
    change(universe, facts, [row.place(column) for row, column in cells])
    words: dict[str, tuple[str, ...]] = {}
    for row in rows:
        for word in dict.fromkeys(row.cells.get("words", "").split()):
            words[word] = (*words.get(word, ()), row.cells["concept"])
    return UniverseTable(universe, words)


def _check_columns(line: int, columns: Sequence[str]) -> None:
    if "concept" not in columns:
        found = ", ".join(map(repr, columns))
        hint = "; commas separate columns, and tabs where the file is named .tsv" if len(columns) == 1 else ""
        raise ValueError(f"line {line}: there is no column 'concept'; the columns are {found}{hint}")
    for number, column in enumerate(columns):
        if not column:
            raise ValueError(f"line {line}: column {number + 1} has no name")
        if column in columns[:number]:
            raise ValueError(f"line {line}: there are two columns {column!r}; one is allowed")


def _row(line: int, cells: Sequence[str], columns: Sequence[str]) -> _Row:
    if len(cells) > len(columns):
        beyond = cells[len(columns)]
        raise ValueError(
            f"line {line}: there are {len(cells)} cells for {len(columns)} columns; {beyond!r} is one too many"
        )
    return _Row(line, dict(zip(columns, (*cells, *[""] * (len(columns) - len(cells))), strict=True)))


def _kinds(rows: Sequence[_Row]) -> dict[str, str]:
    """The kind of each concept."""
    kinds: dict[str, str] = {}
    lines: dict[str, int] = {}
    for row in rows:
        concept, kind = row.cells["concept"], row.cells.get("kind") or _ANY_KIND
        check_name(concept, f"{row.place('concept')}: the concept is {concept!r}")
        if concept in kinds:
            raise ValueError(f"{row.place('concept')}: {concept!r} is in line {lines[concept]} already; once is enough")
        _check_kind(kind, f"{row.place('kind')}: the kind is {kind!r}")
        kinds[concept], lines[concept] = kind, row.line
    return kinds


def _relation(line: int, column: str, kinds: Mapping[str, str], rows: Sequence[_Row]) -> Relation:
    found = _HEADER.fullmatch(column)
    if not found:
        raise ValueError(f"line {line}, column {column!r}: {_WANTED_HEADER}")
    name, of, to, acyclic, listed = found.groups()
    if name in _FIXED:
        raise ValueError(f"line {line}, column {column!r}: {name} is no relation, so nothing may follow it")
    check_name(name, f"line {line}, column {column!r}: the relation is {name!r}")
    every = frozenset(kinds.values())
    about = frozenset(of.split("|")) if of else every
    leads = frozenset(to.split("|")) if to else every if listed is None else frozenset[str]()
    values = frozenset[str]()
    if listed:
        values = frozenset(listed.split("|"))
        for value in sorted(values):
            check_name(value, f"line {line}, column {column!r}: a value is {value!r}")
    elif listed is not None:
        values = frozenset(filter(None, (row.cells[column] for row in rows)))
    return Relation(name, about, leads, values, acyclic is not None or name == _CONTAINED)


def _fact(row: _Row, column: str, relation: Relation, kinds: Mapping[str, str]) -> Fact:
    value = row.cells[column]
    check_name(value, f"{row.place(column)}: the value is {value!r}")
    if not relation.values and value not in kinds:
        raise ValueError(
            f"{row.place(column)}: {value!r} is no concept of this table; a column of other values is called "
            f"'{relation.name}=', or '{relation.name}={value}|...' to say which"
        )
    return Fact(relation.name, row.cells["concept"], value)


def _check_kind(kind: str, what: str) -> None:
    check_name(kind, what)
    if ":" in kind:
        raise ValueError(f"{what}; a kind has no :")


# ---- Writing ----


def _header(relation: Relation, kinds: Iterable[str]) -> str:
    """The name of a column, from which `_relation` makes the same relation."""
    every = frozenset(kinds)
    text = relation.name
    if relation.of != every:
        text += f"({'|'.join(sorted(relation.of))})"
    if relation.to and (relation.to != every or relation.values):
        text += f":{'|'.join(sorted(relation.to))}"
    if relation.acyclic:
        text += ":acyclic"
    if relation.values or not relation.to:
        text += f"={'|'.join(sorted(relation.values))}"
    try:
        is_same = _relation(1, text, {kind: kind for kind in every}, []) == relation
    except ValueError:
        is_same = False
    if not is_same:
        raise ValueError(f"universe has {relation!r}, which cannot be written as a column; {_WANTED_HEADER}")
    return text


def _called(universe: Universe, words: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """The words of each concept."""
    called: dict[str, list[str]] = {concept: [] for concept in universe.concepts}
    for word, concepts in words.items():
        if [word] != word.split():
            raise ValueError(f"words has {word!r}; a word has no blanks and is not empty")
        if isinstance(concepts, str):
            raise TypeError(f"words[{word!r}] is of type str; it must be a list of concepts, such as [{concepts!r}]")
        for concept in concepts:
            if concept not in called:
                raise ValueError(f"words[{word!r}] has {concept!r}, which is no concept of the universe")
            called[concept].append(word)
    return called
