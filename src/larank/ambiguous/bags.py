"""Bags of labels for OSPAS: what a set of candidate meanings says of the symbols in a sentence, and of their roles.

A bag is the smallest in which every candidate finds its labels, so it has each label as often as the candidate that
needs it most. Neither the order of the candidates nor one that is offered twice makes a difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from larank.ambiguous.meanings import EMPTY, Meaning

RoleBag = dict[str, Counter[str]]  # by symbol


def symbol_bag(candidates: Iterable[Meaning], n_words: int) -> Counter[str]:
    """The symbols that the words of a sentence may have, with "-" for words that are left over."""
    bag: Counter[str] = Counter()
    for meaning in candidates:
        symbols = Counter(meaning.symbols())
        symbols[EMPTY] = n_words - symbols.total()
        bag |= symbols  # which drops what is not positive
    return bag


def role_bag(relation: str, candidates: Iterable[Meaning], symbols: Mapping[str, int]) -> RoleBag | None:
    """For each symbol of a sentence, the roles that its words may have for a relation; "-" is none.

    Only relations count whose arguments are all in the sentence; None is returned where there is no such relation.

    Parameters
    ----------
    relation : str
        The symbol of the relation.
    candidates : iterable of Meaning
        What the sentence may mean.
    symbols : mapping from str to int
        How many words of the sentence have each symbol, not counting the relation itself.
    """
    bag: RoleBag = {}
    for found in _relations(relation, candidates):
        heads = Counter(argument.symbol for argument in found.arguments)
        if any(count > symbols.get(head, 0) for head, count in heads.items()):
            continue
        roles: RoleBag = {symbol: Counter() for symbol in symbols}
        for symbol, role in found.pairs():
            roles[symbol][role] += 1
        for symbol, count in symbols.items():
            roles[symbol][EMPTY] = count - heads[symbol]
            bag[symbol] = bag.get(symbol, Counter()) | roles[symbol]
    return bag or None


def _relations(symbol: str, candidates: Iterable[Meaning]) -> Sequence[Meaning]:
    return [part for meaning in candidates for part in meaning.relations() if part.symbol == symbol]
