"""Features of words, as texts: what the symbol of a word is told by, and its role for a relation.

For its symbol a word shows itself and, with a wider window, itself together with each of its neighbours. For its role
it shows where it stands: on which side of the relation, what lies between them and what around it. Words without a
symbol stand there as they are; words with one are E (an entity) or R (a relation), so what is learned of one sentence
holds for others of the same build. Every feature comes twice, with the relation's symbol and without it.

Parts of a feature have a tab between them, and what is no word begins with one: no word and no symbol has tabs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from larank.ambiguous.meanings import EMPTY

_EDGE, _ENTITY, _RELATION = "\t|", "\tE", "\tR"
_MOST = 3  # entities or relations that are told apart from more of them


def symbol_features(words: Sequence[str], window: int) -> list[list[str]]:
    """Of each word: itself, and itself with each word that is at most (window - 1) / 2 away."""
    reach = window // 2
    padded = [_EDGE] * reach + list(words) + [_EDGE] * reach
    features = []
    for k, word in enumerate(words):
        offsets = [offset for offset in range(-reach, reach + 1) if offset]
        features.append([word, *(f"{word}\t{offset}\t{padded[k + reach + offset]}" for offset in offsets)])
    return features


class RoleFeatures:
    """Features of the words of one sentence, given their symbols."""

    def __init__(self, words: Sequence[str], symbols: Sequence[str], relations: Collection[str]) -> None:
        self._symbols = symbols
        kinds = zip(words, symbols, strict=True)
        self._tokens = [
            word if symbol == EMPTY else _RELATION if symbol in relations else _ENTITY for word, symbol in kinds
        ]
        self._is_word = [symbol == EMPTY for symbol in symbols]

    def of(self, at: int, relation: int) -> list[str]:
        """Of the word at a place, for the relation at another."""
        tokens = self._tokens
        first, last = min(at, relation), max(at, relation)
        between = tokens[first + 1 : last]
        side = "<" if at < relation else ">"
        place = f"{side}{tokens[at]} {self._count(between, _ENTITY)} {self._count(between, _RELATION)}"
        beyond = tokens[:at] if at < relation else tokens[at + 1 :]
        shown = (
            "",
            _joined(["path", side, *between]),
            f"place {place}",
            _joined(["around", place, self._before(at), self._after(at)]),
            _joined(["voice", place, self._before(relation), self._after(relation)]),
            f"beyond {place} {self._count(beyond, _RELATION)}",
            f"symbol {self._symbols[at]}",
        )
        return [_joined([symbol, feature]) for symbol in ("", self._symbols[relation]) for feature in shown]

    def _count(self, tokens: list[str], kind: str) -> int:
        return min(_MOST, tokens.count(kind))

    def _before(self, at: int) -> str:
        """The words without a symbol that lead to a word, and what they follow."""
        start = at
        while start > 0 and self._is_word[start - 1]:
            start -= 1
        return _joined([self._tokens[start - 1] if start else _EDGE, *self._tokens[start:at]])

    def _after(self, at: int) -> str:
        """The words without a symbol that follow a word, and what they lead to."""
        end = at + 1
        while end < len(self._tokens) and self._is_word[end]:
            end += 1
        return _joined([*self._tokens[at + 1 : end], self._tokens[end] if end < len(self._tokens) else _EDGE])


def _joined(parts: Sequence[str]) -> str:
    return "\t".join(parts)
