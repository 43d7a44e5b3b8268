"""What a concept labeller may be given: sentences, concepts and universes, checked, with errors that name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from larank.ambiguous.meanings import EMPTY
from larank.ambiguous.sentences import Words, check_equally_long, check_list, check_words
from larank.ambiguous.universe import Universe
from larank.ambiguous.universes import ABSENT, Universes

_WANTED = "a list of sentences, each a list of words or a str"
_WANTED_UNIVERSES = "a Universe, a list of them with one for each sentence, or Universes"


def check_sentences(sentences: Any) -> list[Words]:
    """The words of sentences."""
    return [
        check_words(words, f"sentences[{i}]") for i, words in enumerate(check_list(sentences, "sentences", _WANTED))
    ]


def check_concepts(concepts: Any, sentences: Sequence[Words], *, are_bags: bool = False) -> list[Words]:
    """The concept of each word; or bags, sorted and filled up with "-" to the size of their sentence."""
    what = "a list of concepts for each sentence"
    given = check_list(concepts, "concepts", f"a list with {what}")
    check_equally_long(sentences, given, "concepts")
    found = []
    for i, (names, words) in enumerate(zip(given, sentences, strict=True)):
        bag = are_bags and not isinstance(names, str) and len(check_list(names, f"concepts[{i}]", "a list")) == 0
        checked = () if bag else check_words(names, f"concepts[{i}]")
        if len(checked) > len(words) or (len(checked) < len(words) and not are_bags):
            wanted = "at most as many as" if are_bags else "one for each of"
            raise ValueError(
                f"concepts[{i}] has {len(checked)} concepts, sentences[{i}] {len(words)} words; there must be {wanted} "
                f'the words, "{EMPTY}" for a word without a concept'
            )
        whole = (*checked, *(EMPTY,) * (len(words) - len(checked)))
        found.append(tuple(sorted(whole)) if are_bags else whole)
    return found


def check_universes(universes: Any, n_sentences: int, name: str = "universes") -> Universes | None:
    """The state of each sentence, or one for all."""
    if universes is None:
        return None
    if isinstance(universes, Universe):
        return Universes.of([universes])
    if isinstance(universes, Universes):
        known, found = universes, len(universes)
    else:
        listed = check_list(universes, name, _WANTED_UNIVERSES)
        for i, universe in enumerate(listed):
            if not isinstance(universe, Universe):
                raise TypeError(f"{name}[{i}] is of type {type(universe).__name__}; {name} must be {_WANTED_UNIVERSES}")
        known, found = Universes.of(listed), len(listed)
    if known.tables and found not in (1, n_sentences):
        raise ValueError(f"sentences and {name} must be equally long, got {n_sentences} and {found}")
    return known


def check_relations(relations: Any, universes: Universes | None) -> tuple[str, ...]:
    """The relations that count: those that are asked for, or all that the universes have."""
    known = () if universes is None else tuple(universes.tables)
    if relations is None:
        return known
    if isinstance(relations, str | bytes):
        raise ValueError(f"relations must be None or a list of names, such as [{relations!r}]; got {relations!r}")
    wanted = tuple(check_list(relations, "relations", "None or a list of names"))
    for relation in wanted:
        if not isinstance(relation, str):
            raise ValueError(f"relations must have names, got {relation!r}")
        if universes is None:
            raise ValueError(f"relations has {relation!r}, but there are no universes; give them, or relations=()")
        if relation not in known:
            raise ValueError(f"relations has {relation!r}; universes has {', '.join(known) or 'none'}")
    if len(set(wanted)) != len(wanted):
        raise ValueError(f"relations has a name twice, got {relations!r}")
    return wanted


def check_has_relations(universes: Universes | None, relations: Sequence[str]) -> None:
    """Universes for a labeller that was trained with relations must have these."""
    if relations and universes is None:
        raise ValueError(
            f"universes is None; the labeler was trained with {', '.join(relations)}, so it must be {_WANTED_UNIVERSES}"
        )
    for relation in relations:
        if universes is not None and relation not in universes.tables:
            known = ", ".join(universes.tables) or "none"
            raise ValueError(f"universes has the relations {known}; the labeler was trained with {relation}, too")


def check_labels_exist(concepts: Sequence[Words], universes: Universes) -> None:
    """The concepts of a sentence must be in its universe."""
    columns = {name: number for number, name in enumerate(universes.names[: universes.n_concepts])}
    table = next(iter(universes.tables.values()))
    for i, names in enumerate(concepts):
        row = table[i if len(table) > 1 else 0]
        for k, name in enumerate(names):
            if name != EMPTY and (name not in columns or row[columns[name]] == ABSENT):
                raise ValueError(f"concepts[{i}][{k}] is {name!r}, which is no concept of the universe of sentence {i}")
