"""What a concept labeller has learned: words, symbols and the weights of its network, as arrays with names."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larank import _core
from larank.ambiguous.meanings import EMPTY
from larank.ambiguous.sentences import Words
from larank.ambiguous.universe import UniverseError
from larank.ambiguous.universes import ABSENT, NOTHING, Universes
from larank.data.schema import (
    SchemaError,
    Scope,
    equal,
    floats,
    integer,
    integers,
    one_of,
    record,
    row,
    several,
    text,
)

Floats = NDArray[np.float32]

_BEYOND = 0  # the word beyond the ends of a sentence
_UNKNOWN = -1
NONE, _EMPTY = 0, 1  # the symbol of what a relation does not say, and that of words without a concept
_LARGEST_ENTRY = 0.25  # of new vectors
_RARE = math.log(0.01)  # beside the most likely symbol of a word


def _n_words(scope: Scope) -> int:
    """With that beyond the ends."""
    return scope.sizes["n_known_words"] + _BEYOND + 1


def _n_symbols(scope: Scope) -> int:
    """With that of no concept, and that of nothing."""
    return scope.sizes["n_known_symbols"] + _EMPTY + 1


def _n_inputs(scope: Scope) -> int:
    """Of a word in the window: its own vector, and those of its concept and what relations say of it."""
    d, parts = scope.sizes["d"], 1 + scope.sizes["n_relations"]
    return scope.sizes["window"] * d * (1 + parts)


def _n_concept_inputs(scope: Scope) -> int:
    return scope.sizes["d"] * (1 + scope.sizes["n_relations"])


_single = partial(floats, single=True)
_STATE = record(
    settings=row(
        one_of("order-free", "left-right", "independent"),
        one_of("aligned", "bags"),
        equal("d"),
        equal("N"),
        equal("window"),
    ),
    relations=several(text, "n_relations", unique=True),
    seed=integer(most=2**32 - 1),
    words=several(text, "n_known_words", unique=True),
    symbols=several(text, "n_known_symbols", unique=True),
    concepts=several(text, unique=True),
    weights=row(
        _single(_n_words, "d"),
        _single(_n_symbols, "d"),
        _single(_n_inputs, "N"),
        _single(1, "N"),
        _single(_n_concept_inputs, "N"),
        _single(1, "N"),
    ),
    lexicon=row(floats("n_lexicon_words", "n_lexicon_symbols"), integers("n_lexicon_symbols", below=2, dtype="uint8")),
    senses=integers("n_senses", 2),
)


def check_state(name: str, value: Any, scope: Scope) -> None:
    """Raise unless this is what `ConceptLearner.state` could have been, with the concepts and words of the labeller."""
    _STATE(name, value, scope)
    symbols, concepts = {"", EMPTY, *value["symbols"]}, set(value["concepts"])
    if len(symbols) != _n_symbols(scope) or not {EMPTY} <= concepts <= symbols:
        raise SchemaError(f"{name}['symbols'] must be different, with all concepts among them, got others")
    if concepts != set(scope.known["concepts_"].tolist()) or value["words"] != scope.known["words_"].tolist():
        raise SchemaError(f"{name} must have the concepts in concepts_ and the words in words_, got others")
    for what, found, most in (
        ("lexicon", value["lexicon"][0].shape, (_n_words(scope), _n_symbols(scope))),
        ("senses", value["senses"].max(axis=0, initial=-1) + 1, (_n_words(scope), _n_symbols(scope))),
    ):
        if any(n > m for n, m in zip(found, most, strict=True)):
            raise SchemaError(f"{name}[{what!r}] must be of {most[0]} words and {most[1]} symbols, got others")


class ConceptSettings(NamedTuple):
    """What a learner is made with, and cannot change later."""

    strategy: str
    supervision: str
    embedding_size: int
    hidden_size: int
    window: int


class Weights(NamedTuple):
    """The parameters of the network, see core/ambiguous/conceptnetwork.hpp; a row of W is what one input contributes.

    `Wg` has the rows of the words of the window from left to right, then those of the concepts.
    """

    D: Floats
    C: Floats
    Wg: Floats
    bg: Floats
    Wh: Floats
    bh: Floats


class Lexicon(NamedTuple):
    """Which word goes with which symbol, learned from bags; see core/ambiguous/lexicon.hpp."""

    scores: NDArray[np.float64]
    is_met: NDArray[np.uint8]


class ConceptLearner:
    """The names of words and symbols, the relations that count, and the weights.

    Symbol 0 is "none", symbol 1 "-"; those that may be labels are concepts. Word 0 lies beyond the ends of a sentence.
    """

    def __init__(self, settings: ConceptSettings, relations: Sequence[str], seed: int, weights: Weights) -> None:
        self.settings, self.relations, self.seed, self.weights = settings, tuple(relations), seed, weights
        self.words: dict[str, int] = {}
        self.symbols: dict[str, int] = {"": NONE, EMPTY: _EMPTY}
        self.concepts = {EMPTY}
        self.lexicon = Lexicon(np.zeros((0, 0)), np.zeros(0, np.uint8))  # grows where labels are bags
        self.senses: dict[int, set[int]] = {}  # the symbols that words have had; for explanations only

    @classmethod
    def beginner(cls, settings: ConceptSettings, relations: Sequence[str], seed: int) -> ConceptLearner:
        """Who has seen nothing, with random weights."""
        d, N, parts = settings.embedding_size, settings.hidden_size, 1 + len(relations)
        random = np.random.RandomState([seed, 0])
        weights = Weights(
            np.empty((0, d), np.float32),
            np.empty((0, d), np.float32),
            _uniform(random, (settings.window * d * (1 + parts), N)),
            np.zeros((1, N), np.float32),
            _uniform(random, (parts * d, N)),
            np.zeros((1, N), np.float32),
        )
        return cls(settings, relations, seed, weights)

    # ---- What is known ----

    def take_in(self, sentences: Sequence[Words], labels: Sequence[Words], universes: Universes | None) -> None:
        """Words, labels, and the concepts and values of universes: what is new takes part from now on."""
        for words in sentences:
            for word in words:
                self.words.setdefault(word, len(self.words) + 1)
        if universes is not None and self.relations:
            self.concepts.update(universes.names[: universes.n_concepts])
            for name in universes.names:
                self.symbols.setdefault(name, len(self.symbols))
        for names in labels:
            for name in names:
                self.symbols.setdefault(name, len(self.symbols))
                self.concepts.add(name)
        if self.settings.supervision == "aligned":
            for words, names in zip(sentences, labels, strict=True):
                for word, name in zip(words, names, strict=True):
                    self.senses.setdefault(self.words[word], set()).add(self.symbols[name])
        D, C = self.weights.D, self.weights.C
        self.weights = self.weights._replace(
            D=self._grown(D, 1 + len(self.words), 1), C=self._grown(C, len(self.symbols), 2)
        )

    @property
    def names(self) -> list[str]:
        """Of the symbols."""
        return list(self.symbols)

    def labeler(self, margin: float = 0.0, known: Collection[str] | None = None) -> _core.ConceptLabeler:
        """The compiled labeller with these weights.

        Without relations it offers the concepts that are `known`, or all, and those it meets in learning from then on.
        """
        known = self.concepts if known is None else known
        settings = self.settings
        labeler = _core.ConceptLabeler(
            words=len(self.weights.D),
            symbols=len(self.weights.C),
            relations=len(self.relations),
            d=settings.embedding_size,
            N=settings.hidden_size,
            window=settings.window,
            strategy=settings.strategy,
            margin=margin,
        )
        labeler.weights = self.weights
        labeler.is_concept = np.array([name in known for name in self.symbols], dtype=np.uint8)
        return labeler

    def bag_lexicon(self) -> _core.ConceptLexicon:
        """The compiled lexicon; what is new goes with everything alike."""
        scores, is_met = self.lexicon
        more = 1 + len(self.words) - len(scores), len(self.symbols) - len(is_met)
        padded = np.pad(scores, [(0, more[0]), (0, more[1])])
        return _core.ConceptLexicon(padded, np.pad(is_met, (0, more[1])))

    def _grown(self, vectors: Floats, size: int, stream: int) -> Floats:
        """With random vectors for those that are new, the same whenever they come."""
        if size == len(vectors):
            return vectors
        shape = size, self.settings.embedding_size
        drawn = np.random.RandomState([self.seed, stream]).uniform(-_LARGEST_ENTRY, _LARGEST_ENTRY, shape)
        return np.concatenate([vectors, drawn[len(vectors) :].astype(np.float32)])

    # ---- Sentences as numbers ----

    def corpus(
        self, sentences: Sequence[Words], universes: Universes | None, labels: Sequence[Words] = ()
    ) -> _core.ConceptCorpus:
        """Sentences with the universe of each, or one for all, and the labels of their words if there are."""
        starts = np.cumsum([0, *map(len, sentences)], dtype=np.int64)
        words = np.array([number for each in sentences for number in self.word_numbers(each)], dtype=np.int32)
        numbers = np.array([self.symbols[name] for each in labels for name in each], dtype=np.int32)
        states = self.states(universes)
        rows = np.arange(len(sentences)) if len(states) == len(sentences) else np.zeros(len(sentences), dtype=np.int64)
        return _core.ConceptCorpus(starts, words, numbers, rows, states)

    def senses_of(self, word: str) -> list[int]:
        """The symbols that a word has had in training, or that go with it in the bags."""
        number = self.words.get(word, _UNKNOWN)
        if self.settings.supervision == "bags" and 0 <= number < len(self.lexicon.scores):
            scores = np.where(self.lexicon.is_met > 0, self.lexicon.scores[number], -np.inf)
            return np.flatnonzero(scores > scores.max() + _RARE).tolist()
        return sorted(self.senses.get(number, ()))

    def word_numbers(self, words: Words) -> list[int]:
        """-1 for those that were never seen."""
        return [self.words.get(word, _UNKNOWN) for word in words]

    def states(self, universes: Universes | None) -> NDArray[np.int32]:
        """By state, relation and symbol, the symbol that the relation leads to; -1 for what is not there."""
        if universes is None or not self.relations:
            return np.zeros((1, len(self.relations), len(self.symbols)), dtype=np.int32)
        codes = np.array([self.symbols.get(name, _UNKNOWN) for name in universes.names] + [0, 0], dtype=np.int32)
        known_concepts = codes[: universes.n_concepts]
        is_new = [name not in self.concepts for name in universes.names[: universes.n_concepts]]
        self._check_known(universes, np.flatnonzero(is_new))
        states = np.full((len(universes), len(self.relations), len(self.symbols)), -1, dtype=np.int32)
        states[:, :, : _EMPTY + 1] = NONE
        for r, relation in enumerate(self.relations):
            table = universes.tables[relation]
            values = codes[table]
            self._check_known(universes, table[(values == _UNKNOWN) & (table >= 0)])
            values[table == NOTHING], values[table == ABSENT] = NONE, -1
            states[:, r, known_concepts] = values
        return states

    @staticmethod
    def _check_known(universes: Universes, unknown: NDArray[np.integer[Any]]) -> None:
        if len(unknown):
            raise UniverseError(
                f"universes has {universes.names[unknown[0]]!r}, which was not there in training; train again, or go "
                "on with `partial_fit`, which takes in what is new"
            )

    # ---- As plain values ----

    def state(self) -> dict[str, Any]:
        """Lists and arrays."""
        return {
            "settings": list(self.settings),
            "relations": list(self.relations),
            "seed": self.seed,
            "words": list(self.words),
            "symbols": list(self.symbols)[_EMPTY + 1 :],
            "concepts": sorted(self.concepts),
            "weights": list(self.weights),
            "lexicon": list(self.lexicon),
            "senses": np.array(
                [(word, symbol) for word, symbols in self.senses.items() for symbol in sorted(symbols)], dtype=np.int64
            ).reshape(-1, 2),
        }

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> ConceptLearner:
        """The learner of which this is the state."""
        weights = Weights(*(np.ascontiguousarray(array, dtype=np.float32) for array in state["weights"]))
        learner = cls(ConceptSettings(*state["settings"]), state["relations"], int(state["seed"]), weights)
        learner.words = {word: number for number, word in enumerate(state["words"], start=_BEYOND + 1)}
        learner.symbols |= {name: number for number, name in enumerate(state["symbols"], start=_EMPTY + 1)}
        learner.concepts = set(state["concepts"])
        scores, is_met = state["lexicon"]
        learner.lexicon = Lexicon(np.asarray(scores, dtype=np.float64), np.asarray(is_met, dtype=np.uint8))
        for word, symbol in np.asarray(state["senses"]).tolist():
            learner.senses.setdefault(word, set()).add(symbol)
        return learner

    def copy(self) -> ConceptLearner:
        """A learner that knows the same, and learns on its own."""
        return ConceptLearner.of(self.state())


def _uniform(random: np.random.RandomState, shape: tuple[int, int]) -> Floats:
    """Weights such that inputs of variance 1 have outputs of variance 1."""
    largest = math.sqrt(3 / shape[0])
    return random.uniform(-largest, largest, shape).astype(np.float32)
