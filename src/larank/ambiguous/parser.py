"""`SemanticParser`: meanings of sentences, learned from meanings that each may have, [thesis] section 6.2.

Two OSPAS models are trained side by side. The first gives each word a symbol. The second is asked once for each word
whose symbol is a relation, and gives roles A0, A1, ... to the other words that have a symbol; the word of the relation
itself is REL, and a word without a symbol has no role. A search then makes one tree of all roles.

What the thesis leaves open is chosen as follows:

- Which symbols are relations, and with how many arguments, is what the candidates have shown so far.
- The bag of a sentence is the smallest in which each candidate finds its symbols (`larank.ambiguous.bags`).
- The bag of roles has pairs of a symbol and its role, from all relations of that symbol in the candidates whose
  arguments are among the symbols predicted for the sentence. A word looks at the pairs of its own symbol.
- What a word is known by is in `larank.ambiguous.wordfeatures`; how the tree is found, in `larank.ambiguous.trees`.
- A word for which no label has a positive score, as one that is new, has none: a mistake in training, "-" afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from larank import declare, parameters
from larank.ambiguous.classifier import Regret
from larank.ambiguous.meanings import EMPTY, Meaning
from larank.ambiguous.parselearner import Parsed, ParseLearner, ParseSettings, check_state
from larank.ambiguous.parserinput import check_sentence, check_sentences, check_taught, check_tested
from larank.ambiguous.passes import SentencePasses
from larank.ambiguous.sentences import Words
from larank.ambiguous.trees import meaning_of
from larank.base import Estimator
from larank.data.models import persistable
from larank.data.schema import RESULT, instance, integer, mapping, several, text, texts
from larank.declare import fitted, parameter
from larank.parameters import Passes, Seeded
from larank.publishing import next_model, of_one_model
from larank.training import (
    Outcome,
    Result,
    warn_if_early,
)


class ParseScores(NamedTuple):
    """How well meanings are predicted, as [thesis] section 6.2.2 counts it.

    `precision` is the share of the predicted meanings that are right, `recall` the share of the sentences whose meaning
    was predicted, and `f1` their harmonic mean; 0 where nothing is right.
    """

    precision: float
    recall: float
    f1: float


# ---- Explanations ----


@dataclass(frozen=True)
class WordExplanation:
    """A word, its symbol, and by how much it beats the next best one.

    A word that is new, or for which no symbol has a positive score, has the symbol "-", no runner-up, and a margin of
    infinity.
    """

    word: str
    symbol: str
    runner_up: str | None
    margin: float


@dataclass(frozen=True)
class RoleExplanation:
    """The role of a word for a relation, and by how much it beats its next best role.

    The margin is negative where the word had to give way, so that all relations make one tree.
    """

    place: int
    word: str
    symbol: str
    role: str
    margin: float


@dataclass(frozen=True)
class RelationExplanation:
    """A relation that was found at a place of the sentence, and the roles of all other words that have a symbol."""

    place: int
    word: str
    symbol: str
    roles: tuple[RoleExplanation, ...]


@dataclass(frozen=True)
class ParseExplanation:
    """How a sentence got its meaning; `str` is a text to be read."""

    words: tuple[WordExplanation, ...]
    relations: tuple[RelationExplanation, ...]
    meaning: Meaning | None

    def __str__(self) -> str:
        """Words, relations, and the meaning."""
        width = max(len(word.word) for word in self.words)
        lines = [f"{word.word:<{width}}  {_told(word)}" for word in self.words]
        for relation in self.relations:
            lines.append(f"{relation.symbol} at {relation.word!r}")
            lines += [
                f"  {role.role:<2}  {role.symbol} at {role.word!r}, by {role.margin:.3f}"
                for role in sorted(relation.roles, key=lambda role: (role.role == EMPTY, role.role))
            ]
        return "\n".join([*lines, f"meaning: {'none' if self.meaning is None else self.meaning}"])


def _told(word: WordExplanation) -> str:
    if word.runner_up is None:
        return f"{word.symbol}, for nothing speaks for a symbol"
    return f"{word.symbol}, before {word.runner_up} by {word.margin:.3f}"


# ---- The estimator ----


@persistable(
    symbols_=texts("n_symbols"),
    relations_=mapping(text, several(integer())),
    regret_=instance("Regret"),
    n_iter_=integer(),
    result_=RESULT,
    _state=check_state,
)
class SemanticParser(Passes, Seeded, Estimator):
    """Meanings of sentences, learned online from meanings that each sentence may have: OSPAS.

    For training, each sentence comes with candidates: meanings of which one should be right, or several that are parts
    of it. Which, and which word stands for which symbol, is not said. It is found out on the way, in one pass.

    Attributes
    ----------
    symbols_ : ndarray of str
        The symbols, sorted.
    relations_ : dict from str to tuple of int
        The symbols that had arguments, and with how many they were seen, 0 for none.
    regret_ : Regret
        The mean loss of the words of the symbol model, each when it was looked at, and the bound of proposition 13 of
        the thesis on how much more that is than the loss of the final model on the same looks.
    result_ : Result
        Counts, seconds and the history. There are no objectives: these are NaN.
    n_iter_ : int
        Passes over the sentences, rounded up.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, section 6.2.

    Examples
    --------
    >>> from larank import SemanticParser
    >>> from larank.ambiguous.childworld import make_child_world
    >>> train, test = make_child_world(level=1, random_state=0)
    >>> parser = SemanticParser(random_state=0).fit(train)
    >>> str(parser.predict(["mommy believes that the dog broke the box"])[0])
    'believe(mother, break(dog, box))'
    >>> bool(parser.score(test) > 0.8)
    True
    """

    C: float = parameter(
        "Largest step for one word. Larger values follow single sentences more closely.",
        default=0.1,
        above=0,
        kw_only=False,
    )
    window: int = parameter(
        "Number of words that the symbol of a word depends on, an odd number. With 1 the symbol depends on the word "
        "alone. With 3 it also depends on pairs of the word and each of its neighbours, which separates the meanings "
        "of words that have several.",
        default=1,
        check=parameters.odd,
        form="int",
    )
    strategy: Literal["order-free", "random", "left-right"] = parameter(
        'Order in which the words of a sentence choose their symbols: "order-free" begins with the most confident '
        'word, "random" takes any order, "left-right" the order of the sentence.',
        default="order-free",
    )
    update: Literal["margin", "mistake"] = parameter(
        'When a word causes an update: with "margin" whenever it has a loss, with "mistake" only if its best symbol '
        "is not among the candidates, as in algorithm 24 of the thesis.",
        default="margin",
    )
    max_iter: int | None = parameter(
        "Number of passes over the sentences in `fit`. By default one; `partial_fit` always makes one. A few more "
        "help if there are few sentences.",
        default=None,
        least=1,
    )
    random_state: int | np.random.RandomState | None = parameter(
        'Seed for the order of the sentences, and of the words with ``strategy="random"``. An integer makes the model '
        "reproducible.",
        default=None,
        check=parameters.seed,
        form="int or RandomState",
    )

    _learner: ParseLearner = fitted()

    def fit(self, sentences: Any, candidates: Any = None) -> Self:
        """Train on sentences and the meanings they may have.

        Parameters
        ----------
        sentences : list of sentences, or list of ParseExample
            A sentence is a list of words, or a str that is split at blanks.
        candidates : list of lists of meanings
            For each sentence at least one. A meaning is a `Meaning` or its text; a sentence with only one may have it
            without a list. Nothing, where sentences are examples: they have candidates.

        Returns
        -------
        SemanticParser
            The fitted parser. If training ends early, a `TrainingWarning` is issued, and the model is still valid.
        """
        with next_model(self) as model:
            outcome = model._fit(sentences, candidates)
        self._warn_if_early(outcome)
        return self

    def partial_fit(self, sentences: Any, candidates: Any = None) -> Self:
        """Continue training with new sentences, in the given order; the arguments are as in `fit`.

        Each call makes one pass over its sentences, whatever `max_iter` is. New words, symbols and relations are added
        to the model.
        """
        with next_model(self) as model:
            outcome = model._partial_fit(sentences, candidates)
        self._warn_if_early(outcome)
        return self

    @of_one_model
    def predict(self, sentences: Any) -> list[Meaning | None]:
        """The meaning of each sentence: one tree of all relations that its words stand for.

        Parameters
        ----------
        sentences : list of sentences, or list of ParseExample
            As for `fit`. A word that was never seen has no symbol.

        Returns
        -------
        list of Meaning or None
            None where no valid meaning is found, that is one in which each relation has as many arguments as it was
            seen with in training. If not all relations fit into one tree, it is the largest one.
        """
        check_is_fitted(self, "symbols_")
        parsed = (self._learner.parse(words) for words in check_sentences(sentences))
        return [meaning_of(found.tree, found.symbols) for found in parsed]

    @of_one_model
    def label(self, sentences: Any) -> list[list[str]]:
        """The symbol of each word of each sentence, "-" for words that stand for none."""
        check_is_fitted(self, "symbols_")
        return [self._learner.symbols_of(words) for words in check_sentences(sentences)]

    def score(self, sentences: Any, meanings: Any = None) -> float:
        """The F1 of the predicted meanings, see `evaluate`."""
        return self.evaluate(sentences, meanings).f1

    @of_one_model
    def evaluate(self, sentences: Any, meanings: Any = None) -> ParseScores:
        """Precision, recall and F1 of the predicted meanings, which are right only as a whole.

        Parameters
        ----------
        sentences : list of sentences, or list of ParseExample
            As for `fit`.
        meanings : list of Meaning or str
            The one right meaning of each sentence, or nothing where examples have it. Symbols that were never seen in
            training are legal; their meanings cannot be found.
        """
        check_is_fitted(self, "symbols_")
        words, right = check_tested(sentences, meanings)
        predicted = self.predict(words)
        correct = sum(one == other for one, other in zip(predicted, right, strict=True))
        valid = sum(meaning is not None for meaning in predicted)
        precision, recall = correct / max(1, valid), correct / len(right)
        return ParseScores(precision, recall, 2 * precision * recall / (precision + recall) if correct else 0.0)

    @of_one_model
    def explain(self, sentence: Any) -> ParseExplanation:
        """How a sentence gets its meaning: the symbol of each word, the roles for each relation, then the tree."""
        check_is_fitted(self, "symbols_")
        words = check_sentence(sentence)
        parsed = self._learner.parse(words)
        relations = tuple(self._relation(words, parsed, place) for place in parsed.role_scores)
        told = tuple(self._word(words, parsed, place) for place in range(len(words)))
        return ParseExplanation(told, relations, meaning_of(parsed.tree, parsed.symbols))

    # ---- Training ----

    def _fit(self, sentences: Any, candidates: Any) -> Outcome:
        declare.check(self)
        taught = check_taught(sentences, candidates)
        if not taught[0]:
            raise ValueError("sentences is empty; at least one sentence is needed")
        seeds = check_random_state(self.random_state)
        learner = self._beginner(seeds)
        orders = np.random.RandomState(seeds.randint(2**31 - 1))
        return self._train(learner, *taught, 1 if self.max_iter is None else int(self.max_iter), orders)

    def _partial_fit(self, sentences: Any, candidates: Any) -> Outcome:
        declare.check(self)
        taught = check_taught(sentences, candidates)
        if not hasattr(self, "_learner"):
            return self._train(self._beginner(check_random_state(self.random_state)), *taught, 1, None)
        parameters.check_unchanged(self._learner.settings._asdict(), self._settings()._asdict())
        # Others may predict meanwhile, and what fails must leave nothing behind.
        return self._train(ParseLearner.of(self._learner.state()), *taught, 1, None)

    def _beginner(self, seeds: np.random.RandomState) -> ParseLearner:
        """Who has seen nothing."""
        return ParseLearner(self._settings(), int(seeds.randint(2**31 - 1)))

    def _settings(self) -> ParseSettings:
        return ParseSettings(float(self.C), int(self.window), self.strategy, self.update)

    def _train(
        self,
        learner: ParseLearner,
        sentences: list[Words],
        candidates: list[tuple[Meaning, ...]],
        epochs: int,
        orders: np.random.RandomState | None,
    ) -> Outcome:
        def learn(rows: NDArray[np.int64]) -> None:
            for i in rows:
                learner.learn(sentences[i], candidates[i])

        def counts() -> tuple[int, int]:
            counters = learner.symbols.model.counters
            return counters.words, counters.mistakes

        training = SentencePasses(len(sentences), epochs, orders, learn, counts)
        outcome = training.run("OSPAS", self.time_limit, self.verbose)
        self._learner = learner
        self.symbols_ = np.array(sorted(learner.grammar), dtype=object)
        self.relations_ = {symbol: tuple(sorted(learner.grammar[symbol])) for symbol in sorted(learner.relations)}
        self.regret_ = self._regret()
        symbols, roles = learner.symbols.model, learner.roles.model
        self.result_ = Result.of(
            outcome,
            solver="ospas",
            iterations=training.iterations(),
            support_patterns=0,
            support_vectors=0,
            argmax_calls=symbols.counters.words + roles.counters.words,
            operations=self._operations(),
        )
        self.n_iter_ = math.ceil(self.result_.iterations)
        return outcome

    def _operations(self) -> dict[str, int]:
        """How often words were looked at, mistaken and learnt from, for symbols and for roles."""
        models = {"symbol": self._learner.symbols.model, "role": self._learner.roles.model}
        return {
            f"{name}_{count}": getattr(model.counters, count)
            for name, model in models.items()
            for count in ("words", "mistakes", "updates")
        }

    def _regret(self) -> Regret:
        model = self._learner.symbols.model
        looks = max(1, model.counters.words)
        squared_norm = float((model.weights**2).sum())
        bound = squared_norm / (2 * looks * model.C) + model.online.largest * model.C  # rho is twice the largest
        return Regret(model.counters.words, model.online.losses / looks, None, bound)

    def _warn_if_early(self, outcome: Outcome) -> None:
        warn_if_early(outcome, self.result_, max_iter=None, time_limit=self.time_limit, stacklevel=3)

    # ---- Explanations ----

    def _word(self, words: Words, parsed: Parsed, place: int) -> WordExplanation:
        scores, names = parsed.symbol_scores[place], self._learner.symbols.names
        symbol = parsed.symbols[place]
        if not scores.max() > 0 or len(names) < 2:
            return WordExplanation(words[place], symbol, None, math.inf)
        chosen = self._learner.symbols.labels[symbol]
        others = np.delete(np.arange(len(names)), chosen)
        second = int(others[scores[others].argmax()])
        return WordExplanation(words[place], symbol, names[second], float(scores[chosen] - scores[second]))

    def _relation(self, words: Words, parsed: Parsed, relation: int) -> RelationExplanation:
        arguments = parsed.tree.arguments.get(relation, ())
        roles = []
        for place, scores in parsed.role_scores[relation].items():
            role = f"A{arguments.index(place)}" if place in arguments else EMPTY
            chosen = self._learner.roles.labels[role]
            others = np.delete(scores, chosen)
            margin = float(scores[chosen] - others.max()) if len(others) else math.inf
            roles.append(RoleExplanation(place, words[place], parsed.symbols[place], role, margin))
        return RelationExplanation(relation, words[relation], parsed.symbols[relation], tuple(roles))

    # ---- Models as arrays and plain values ----

    @property
    def _state(self) -> dict[str, Any]:
        return self._learner.state()

    @_state.setter
    def _state(self, state: Mapping[str, Any]) -> None:
        self._learner = ParseLearner.of(state)

    def __getstate__(self) -> dict[str, Any]:
        """Everything as plain arrays; the compiled objects are rebuilt from them."""
        state: dict[str, Any] = {**super().__getstate__()}
        return {**state, "_state": self._state} if state.pop("_learner", None) is not None else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuild the compiled objects."""
        state = dict(state)
        kept = state.pop("_state", None)
        super().__setstate__(state)
        if kept is not None:
            self._state = kept
