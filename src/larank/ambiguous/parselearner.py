"""The two OSPAS models of a semantic parser, symbols and roles, with the names of their features and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larank import _core
from larank.ambiguous.bags import role_bag, symbol_bag
from larank.ambiguous.meanings import EMPTY, Meaning
from larank.ambiguous.trees import Tree, best_tree, choices
from larank.ambiguous.wordfeatures import RoleFeatures, symbol_features
from larank.data.schema import (
    RANDOM_STATE,
    Kind,
    SchemaError,
    Scope,
    floats,
    integer,
    mapping,
    number,
    one_of,
    record,
    row,
    several,
    text,
)

_KEY = np.zeros(1, dtype=np.int32)
_STRATEGIES = ("order-free", "random", "left-right")
_WIDE = 1000  # a window of more words must have been seen to be believed


def _tagger_state(of: str) -> Kind:
    """Of an OSPAS model, as `_Tagger.state` has it."""
    features, n_labels = f"n_{of}_features", f"n_{of}_labels"
    counters = [integer()] * 4
    return record(
        features=several(text, features, unique=True),
        labels=several(text, n_labels, unique=True),
        weights=floats(features, n_labels),
        session=row(*counters, number(), number(), RANDOM_STATE),
    )


_STATE = record(
    settings=row(number(above=0), integer(1), one_of(*_STRATEGIES), one_of("margin", "mistake")),
    symbols=_tagger_state("symbol"),
    roles=_tagger_state("role"),
    grammar=mapping(text, several(integer())),
)


def check_state(name: str, value: Any, scope: Scope) -> None:
    """Raise unless this is what `ParseLearner.state` could have been."""
    _STATE(name, value, scope)
    window, seen = value["settings"][1], len(value["symbols"]["features"])
    if window % 2 == 0 or window > _WIDE + seen:
        raise SchemaError(f"{name}['settings'] must have an odd window, of which {seen} features come; got {window}")
    if value["symbols"]["labels"][:1] != [EMPTY]:
        raise SchemaError(f"{name}['symbols']['labels'] must begin with {EMPTY!r}, got {value['symbols']['labels']!r}")
    roles = value["roles"]["labels"]
    if roles[:1] != [EMPTY] or set(roles[1:]) != {f"A{role}" for role in range(len(roles) - 1)}:
        raise SchemaError(f"{name}['roles']['labels'] must be {EMPTY!r}, 'A0', 'A1', ..., got {roles!r}")
    if not all(value["grammar"].values()):
        raise SchemaError(f"{name}['grammar'] must have numbers of arguments for each symbol, got none for some")


class ParseSettings(NamedTuple):
    """What a learner is made with, and cannot change later."""

    C: float
    window: int
    strategy: str
    update: str


class _Tagger:
    """An OSPAS model whose features and labels have names; label 0 is "-"."""

    def __init__(self, settings: ParseSettings, seed: int) -> None:
        self.model = _core.Ospas(C=settings.C, strategy=settings.strategy, update=settings.update, seed=seed)
        self.features: dict[str, int] = {}
        self.labels: dict[str, int] = {EMPTY: 0}
        self.names = [EMPTY]
        self.model.grow(0, 1)

    def label(self, name: str) -> int:
        """The number of a label, which may be new."""
        number = self.labels.setdefault(name, len(self.labels))
        if number == len(self.names):
            self.names.append(name)
        return number

    def learn(self, words: Iterable[list[str]], keys: Sequence[int], bag: Iterable[tuple[int, str, int]]) -> None:
        """From one sentence: features and key of each word; keys, labels and counts in the bag."""
        number = self.features.setdefault
        indptr, indices = _rows([[number(name, len(self.features)) for name in names] for names in words])
        pairs = [(key, self.label(name)) for key, name, count in bag for _ in range(count)]
        bag_keys, bag_labels = np.array(pairs, dtype=np.int32).reshape(-1, 2).T.copy()
        self.model.grow(len(self.features), len(self.labels))
        starts, bag_starts = np.array([0, len(indptr) - 1]), np.array([0, len(pairs)])
        key = np.array(keys, dtype=np.int32)
        self.model.learn(starts, indptr, indices, key, bag_starts, bag_keys, bag_labels, 0, 1)

    def rows(self, words: Iterable[list[str]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The features that are known."""
        known = self.features
        return _rows([[known[name] for name in names if name in known] for names in words])

    def state(self) -> dict[str, Any]:
        return {
            "features": list(self.features),
            "labels": list(self.names),
            "weights": self.model.weights,
            "session": list(self.model.state),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.features = {name: number for number, name in enumerate(state["features"])}
        self.names = list(state["labels"])
        self.labels = {name: number for number, name in enumerate(self.names)}
        self.model.weights = np.ascontiguousarray(state["weights"], dtype=np.float64)
        self.model.state = tuple(state["session"])


def _rows(words: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    indptr = np.cumsum([0, *map(len, words)], dtype=np.int64)
    return indptr, np.array([number for numbers in words for number in sorted(numbers)], dtype=np.int32)


class Parsed(NamedTuple):
    """A sentence with its symbols, its tree, and the scores by which both were chosen."""

    symbols: list[str]
    symbol_scores: NDArray[np.float64]  # a row per word
    role_scores: dict[int, dict[int, NDArray[np.float64]]]  # by place of the relation, then of the word
    tree: Tree


class ParseLearner:
    """What a semantic parser has learned: symbols, roles and the grammar of its meanings."""

    def __init__(self, settings: ParseSettings, seed: int) -> None:
        self.settings = settings
        self.symbols = _Tagger(settings, seed)
        self.roles = _Tagger(settings, seed + 1)
        self.grammar: dict[str, set[int]] = {}  # numbers of arguments, by symbol
        self.relations: set[str] = set()

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> ParseLearner:
        """The learner of which this is the state."""
        learner = cls(ParseSettings(*state["settings"]), seed=0)
        learner.symbols.restore(state["symbols"])
        learner.roles.restore(state["roles"])
        learner.grammar = {symbol: set(numbers) for symbol, numbers in state["grammar"].items()}
        learner.relations = {symbol for symbol, numbers in learner.grammar.items() if max(numbers) > 0}
        return learner

    # ---- Learning ----

    def learn(self, words: Sequence[str], candidates: Sequence[Meaning]) -> None:
        """One sentence: its symbols, and with those that are predicted then, its roles."""
        self._learn_grammar(candidates)
        bag = symbol_bag(candidates, len(words))
        features = symbol_features(words, self.settings.window)
        pairs = ((0, symbol, bag[symbol]) for symbol in sorted(bag))
        self.symbols.learn(features, [0] * len(words), pairs)
        self._learn_roles(words, candidates)

    def _learn_grammar(self, candidates: Iterable[Meaning]) -> None:
        for meaning in candidates:
            waiting = [meaning]
            while waiting:
                part = waiting.pop()
                self.grammar.setdefault(part.symbol, set()).add(len(part.arguments))
                waiting.extend(part.arguments)
                if part.arguments:
                    self.relations.add(part.symbol)

    def _learn_roles(self, words: Sequence[str], candidates: Sequence[Meaning]) -> None:
        symbols = self.symbols_of(words)
        offered = {part.symbol for meaning in candidates for part in meaning.relations()}
        features = RoleFeatures(words, symbols, self.relations)
        for relation, symbol in enumerate(symbols):
            if symbol not in offered:
                continue
            places = _others(symbols, relation)
            bag = role_bag(symbol, candidates, Counter(symbols[place] for place in places))
            if bag is None:
                continue
            number = self.symbols.labels
            pairs = ((number[of], role, bag[of][role]) for of in sorted(bag) for role in sorted(bag[of]))
            keys = [number[symbols[place]] for place in places]
            self.roles.learn((features.of(place, relation) for place in places), keys, pairs)

    # ---- Parsing ----

    def symbols_of(self, words: Sequence[str]) -> list[str]:
        """The symbol of each word, "-" for none."""
        return self._named(self.symbols.model.predict(*self.symbols.rows(symbol_features(words, self.settings.window))))

    def _named(self, numbers: NDArray[np.int32]) -> list[str]:
        return [self.symbols.names[max(0, number)] for number in numbers.tolist()]

    def parse(self, words: Sequence[str]) -> Parsed:
        """Symbols, scores of roles, and the best tree."""
        rows = self.symbols.rows(symbol_features(words, self.settings.window))
        symbols, symbol_scores = self._named(self.symbols.model.predict(*rows)), self.symbols.model.scores(*rows)
        features = RoleFeatures(words, symbols, self.relations)
        scores, offered = {}, {}
        for relation, symbol in enumerate(symbols):
            if symbol not in self.relations:
                continue
            places = _others(symbols, relation)
            of_roles = self.roles.model.scores(*self.roles.rows(features.of(place, relation) for place in places))
            scores[relation] = dict(zip(places, of_roles, strict=True))
            gains = {place: self._gains(of_place) for place, of_place in scores[relation].items()}
            numbers = sorted(self.grammar[symbol])
            offered[relation] = choices(gains, numbers)
        places = [place for place, symbol in enumerate(symbols) if symbol != EMPTY]
        return Parsed(symbols, symbol_scores, scores, best_tree(places, offered))

    def _gains(self, scores: NDArray[np.float64]) -> list[float]:
        """What A0, A1, ... score above no role, as far as they are known."""
        numbers = (self.roles.labels.get(f"A{role}") for role in range(len(self.roles.labels)))
        return [float(scores[number] - scores[0]) for number in numbers if number is not None]

    # ---- As plain values ----

    def state(self) -> dict[str, Any]:
        """Lists and arrays."""
        grammar = {symbol: sorted(numbers) for symbol, numbers in sorted(self.grammar.items())}
        taggers = {"symbols": self.symbols.state(), "roles": self.roles.state()}
        return {"settings": list(self.settings), **taggers, "grammar": grammar}


def _others(symbols: Sequence[str], relation: int) -> list[int]:
    """The places that may be arguments of a relation."""
    return [place for place, symbol in enumerate(symbols) if symbol != EMPTY and place != relation]
