"""Trees of relations from scores of roles: the best choice in which no word has two places.

Every relation takes as many arguments as its symbol has been seen with, each a word of its own. An argument that is a
relation brings its own arguments along. No word is the argument of two relations, and no relation is within itself. Of
all such choices the search wants the one with the fewest words left over, and among these the highest score, which is
what the chosen roles score above no role. It keeps the best partial choices while it goes from relation to relation,
and looks at a few words for each role only, so it may miss the best tree where there are many of either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from larank.ambiguous.meanings import Meaning

_BEAM = 100  # partial choices that are kept
_WORDS_PER_ROLE = 5
_CHOICES = 40  # of arguments, per relation
_PREFIXES = 1000  # choices for the first roles of a relation that are kept: all, of four roles and fewer


class TreeChoice(NamedTuple):
    """The places of the arguments of one relation, and the sum of what they score."""

    arguments: tuple[int, ...]
    score: float


@dataclass(frozen=True)
class Tree:
    """Which word is whose argument.

    Attributes
    ----------
    arguments : dict from int to tuple of int
        For each relation, by its place, the places of its arguments A0, A1, and so on.
    root : int or None
        The place of the outermost relation; None if there is no valid tree.
    """

    arguments: dict[int, tuple[int, ...]]
    root: int | None


@dataclass(frozen=True)
class _Partial:
    score: float = 0.0
    failed: int = 0  # relations without arguments
    parents: dict[int, int] = field(default_factory=dict)
    arguments: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def with_choice(self, relation: int, choice: TreeChoice) -> _Partial | None:
        """With the arguments of one more relation, unless a word would have two places."""
        for argument in choice.arguments:
            if argument in self.parents or self._is_within(relation, argument):
                return None
        parents = self.parents | dict.fromkeys(choice.arguments, relation)
        arguments = {**self.arguments, relation: choice.arguments}
        return _Partial(self.score + choice.score, self.failed, parents, arguments)

    def without(self) -> _Partial:
        return _Partial(self.score, self.failed + 1, self.parents, self.arguments)

    def _is_within(self, place: int, relation: int) -> bool:
        at: int | None = place
        while at is not None:
            if at == relation:
                return True
            at = self.parents.get(at)
        return False

    def rank(self) -> tuple[int, int, float]:
        """Whether it is better than another; all words that have a place count."""
        return (-self.failed, len(self.parents), self.score)


def choices(gains: Mapping[int, Sequence[float]], numbers: Sequence[int]) -> list[TreeChoice]:
    """The best arguments of a relation.

    Parameters
    ----------
    gains : mapping from int to sequence of float
        For each place that may be an argument, what it scores in each role above no role.
    numbers : sequence of int
        How many arguments there may be.
    """
    found = []
    for number in numbers:
        prefixes = [TreeChoice((), 0.0)]
        for role in range(number):
            able = (place for place in gains if role < len(gains[place]))
            best = sorted(able, key=lambda place: -gains[place][role])[:_WORDS_PER_ROLE]
            longer = [
                TreeChoice((*prefix.arguments, place), prefix.score + gains[place][role])
                for prefix in prefixes
                for place in best
                if place not in prefix.arguments
            ]
            prefixes = sorted(longer, key=lambda choice: -choice.score)[:_PREFIXES]
        found += prefixes
    return sorted(found, key=lambda choice: -choice.score)[:_CHOICES]


def best_tree(places: Sequence[int], offered: Mapping[int, Sequence[TreeChoice]]) -> Tree:
    """The best tree of the words at these places, given what their relations offer; others have no arguments."""
    partials = [_Partial()]
    best = partials[0]
    for relation, of_relation in offered.items():
        grown = (partial.with_choice(relation, choice) for partial in partials for choice in of_relation)
        possible = [*(partial for partial in grown if partial is not None), *(p.without() for p in partials)]
        partials = sorted(possible, key=lambda p: (p.failed, -p.score))
        best = max(partials, key=_Partial.rank)  # of all that were found, once there is no other relation
        partials = partials[:_BEAM]
    roots = [place for place in places if place not in best.parents]
    with_arguments = [place for place in roots if best.arguments.get(place)]
    valid = [place for place in with_arguments or roots if _is_valid(place, best, offered)]
    root = max(valid, key=lambda place: _size(place, best), default=None)
    return Tree(best.arguments, root if with_arguments or len(roots) == 1 else None)


def meaning_of(tree: Tree, symbols: Sequence[str]) -> Meaning | None:
    """The tree with the symbols of its places."""
    return None if tree.root is None else _built(tree.root, tree.arguments, symbols)


def _built(place: int, arguments: Mapping[int, tuple[int, ...]], symbols: Sequence[str]) -> Meaning:
    parts = tuple(_built(argument, arguments, symbols) for argument in arguments.get(place, ()))
    return Meaning(symbols[place], parts)


def _is_valid(place: int, partial: _Partial, offered: Mapping[int, Sequence[TreeChoice]]) -> bool:
    if place in offered and place not in partial.arguments:
        return False
    return all(_is_valid(argument, partial, offered) for argument in partial.arguments.get(place, ()))


def _size(place: int, partial: _Partial) -> int:
    return 1 + sum(_size(argument, partial) for argument in partial.arguments.get(place, ()))
