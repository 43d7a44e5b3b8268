"""What a concept labeller may be given: sentences, concepts and universes, checked, with errors that name them."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from larank.ambiguous.meanings import EMPTY
from larank.ambiguous.sentences import Words, check_equally_long, check_list, check_names, check_words
from larank.ambiguous.universe import Universe
from larank.ambiguous.universes import ABSENT, Universes

_WANTED = "a list of sentences, each a list of words or a str"
_WANTED_UNIVERSES = "a Universe, a list of them with one for each sentence, or Universes"


def check_sentences(sentences: Any) -> list[Words]:
    """The words of sentences."""
    listed = check_list(sentences, "sentences", _WANTED)
    return [check_words(words, f"sentences[{i}]") for i, words in enumerate(listed)]


def check_concepts(concepts: Any, sentences: Sequence[Words]) -> list[Words]:
    """The concept of each word."""
    found = []
    for i, names in enumerate(_of_sentences(concepts, sentences)):
        of_words = check_names(names, f"concepts[{i}]", "it must be a list with the concept of each word", "concept")
        check_fits(of_words, sentences[i], f"concepts[{i}]", f"sentences[{i}]")
        found.append(of_words)
    return found


def check_bags(concepts: Any, sentences: Sequence[Words]) -> list[Words]:
    """The concepts of each sentence, sorted and filled up with "-" to its size."""
    found = []
    for i, names in enumerate(_of_sentences(concepts, sentences)):
        listed = sorted(names) if isinstance(names, Set) else names
        bag = check_names(listed, f"concepts[{i}]", "it must be a list of the concepts of the sentence", "concept")
        check_fits(bag, sentences[i], f"concepts[{i}]", f"sentences[{i}]", is_bag=True)
        found.append(tuple(sorted((*bag, *(EMPTY,) * (len(sentences[i]) - len(bag))))))
    return found


def check_fits(concepts: Words, words: Words, name: str, of: str, *, is_bag: bool = False) -> None:
    """One concept for each word; or in a bag, not more concepts than words."""
    if len(concepts) > len(words) or (len(concepts) < len(words) and not is_bag):
        wanted = "at most as many as" if is_bag else "one for each of"
        raise ValueError(
            f"{name} has {len(concepts)} concepts, {of} {len(words)} words; there must be {wanted} the words, "
            f'"{EMPTY}" for a word without a concept'
        )


def _of_sentences(concepts: Any, sentences: Sequence[Words]) -> Sequence[Any]:
    given = check_list(concepts, "concepts", "a list with a list of concepts for each sentence")
    check_equally_long(sentences, given, "concepts")
    return given


# ---- Universes ----


def check_universes(universes: Any, n_sentences: int) -> Universes | None:
    """The state of each sentence, or one for all."""
    if universes is None:
        return None
    if isinstance(universes, Universe):
        return Universes.of([universes])
    if isinstance(universes, Universes):
        known, found = universes, len(universes) if universes.tables else n_sentences
    else:
        listed = check_list(universes, "universes", _WANTED_UNIVERSES)
        known, found = _joined(listed), len(listed)
    if found not in (1, n_sentences):
        raise ValueError(f"sentences and universes must be equally long, got {n_sentences} and {found}")
    return known


def _joined(listed: Sequence[Any]) -> Universes:
    """Those of a list; parts of `Universes`, as cross-validation makes them, are joined."""
    if listed and all(isinstance(part, Universes) for part in listed):
        return Universes.join(listed)
    for i, universe in enumerate(listed):
        if not isinstance(universe, Universe):
            raise TypeError(
                f"universes[{i}] is of type {type(universe).__name__}; universes must be {_WANTED_UNIVERSES}"
            )
    return Universes.of(listed)


def check_universe(universe: Any) -> Universes | None:
    """What is known before one sentence."""
    known = Universes.of([universe]) if isinstance(universe, Universe) else universe
    if known is None or (isinstance(known, Universes) and len(known) <= 1):
        return known
    raise TypeError(
        f"universe is of type {type(universe).__name__}; it must be a Universe, or Universes with one state"
    )


def check_relations(relations: Any, universes: Universes | None) -> tuple[str, ...]:
    """The relations that count: those that are asked for, or all that the universes have."""
    known = () if universes is None else tuple(universes.tables)
    if relations is None:
        return known
    wanted = relation_names(relations)
    for relation in wanted:
        if universes is None:
            raise ValueError(f"relations has {relation!r}, but there are no universes; give them, or relations=()")
        if relation not in known:
            raise ValueError(f"relations has {relation!r}; universes has {', '.join(known) or 'none'}")
    return wanted


def relation_names(relations: Any) -> tuple[str, ...]:
    """The names, each once."""
    if isinstance(relations, str | bytes):
        raise ValueError(f"relations must be None or a list of names, such as [{relations!r}]; got {relations!r}")
    wanted = tuple(check_list(relations, "relations", "None or a list of names"))
    for relation in wanted:
        if not isinstance(relation, str):
            raise ValueError(f"relations must have names, got {relation!r}")
    if len(set(wanted)) != len(wanted):
        raise ValueError(f"relations has a name twice, got {relations!r}")
    return tuple(str(relation) for relation in wanted)


def check_has_relations(universes: Universes | None, relations: Sequence[str], name: str = "universes") -> None:
    """Universes for a labeller that was trained with relations must have these."""
    if relations and universes is None:
        raise ValueError(
            f"{name} is None; the labeler was trained with {', '.join(relations)}, so it needs what is known"
        )
    for relation in relations:
        if universes is not None and relation not in universes.tables:
            known = ", ".join(universes.tables) or "none"
            raise ValueError(f"{name} has the relations {known}; the labeler was trained with {relation}, too")


def check_labels_exist(concepts: Sequence[Words], universes: Universes) -> None:
    """The concepts of a sentence must be in its universe."""
    columns = {name: number for number, name in enumerate(universes.names[: universes.n_concepts])}
    table = next(iter(universes.tables.values()))
    for i, names in enumerate(concepts):
        row = table[i if len(table) > 1 else 0]
        for k, name in enumerate(names):
            if name != EMPTY and (name not in columns or row[columns[name]] == ABSENT):
                raise ValueError(f"concepts[{i}][{k}] is {name!r}, which is no concept of the universe of sentence {i}")
