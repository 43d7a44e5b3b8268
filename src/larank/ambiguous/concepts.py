"""`ConceptLabeler`: the concept each word stands for, by what is known of the world; [thesis] appendix C.

The network is in `core/ambiguous/conceptnetwork.hpp`, inference and learning are in `core/ambiguous/concepts.hpp`. What
the thesis leaves open is chosen as follows:

- New vectors are drawn uniformly from -0.25 to 0.25, linear layers such that inputs of variance 1 give outputs of
  variance 1; biases begin with 0.
- The ranking constraints (C.6) of a mistake count as their mean. A sentence is also learned from where the right label
  wins by less than a margin. Each step is bounded by what it may change, so that training cannot diverge.
- Bags: the constraints of C.7 alone give the right bags, but with labels on the wrong words. A lexicon of words and
  concepts, learned from the bags first, says which pairs of a word and a label C.7 may raise
  (`core/ambiguous/lexicon.hpp`).
- The learning rate goes down to zero in `fit`, in proportion to what is left to do, and is constant in `partial_fit`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from larank import _core, declare, parameters
from larank.ambiguous.conceptexplaining import ConceptExplanation, explained
from larank.ambiguous.conceptinput import (
    check_bags,
    check_concepts,
    check_has_relations,
    check_labels_exist,
    check_relations,
    check_sentences,
    check_universe,
    check_universes,
    relation_names,
)
from larank.ambiguous.conceptlearner import ConceptLearner, ConceptSettings, Lexicon, Weights, check_state
from larank.ambiguous.conceptschedule import SENTENCES_AT_ONCE, Decaying, Schedule, Steady
from larank.ambiguous.passes import SentencePasses
from larank.ambiguous.sentences import Words, check_words
from larank.ambiguous.universes import Universes
from larank.base import Estimator
from larank.data.models import persistable
from larank.data.schema import RESULT, integer, several, text, texts
from larank.declare import fitted, parameter
from larank.parameters import Passes, Seeded
from larank.publishing import next_model, of_one_model
from larank.training import Outcome, Result, warn_if_early

_SENTENCES_PREDICTED_AT_ONCE = 1000
_PASSES = 10


class _Taught(NamedTuple):
    words: list[Words]
    labels: list[Words]
    universes: Universes | None


# ---- The estimator ----


@persistable(
    concepts_=texts("n_concepts"),
    relations_=several(text),
    words_=texts("n_words"),
    n_iter_=integer(),
    result_=RESULT,
    _state=check_state,
)
class ConceptLabeler(Passes, Seeded, Estimator):
    """The concept each word of a sentence stands for, learned from sentences and what is known of the world.

    Words are labelled one after another, the most certain one first. What is known of the concepts found so far, and of
    those that a word may mean, helps with the rest: "he" is who is where the rice is, if it is cooked.

    Attributes
    ----------
    concepts_ : ndarray of str
        The concepts that a word may have, "-" among them for words that have none.
    relations_ : tuple of str
        The relations that count.
    words_ : ndarray of str
        The words that were seen.
    concept_vectors_ : ndarray of shape (n_concepts, embedding_size)
        What was learned of each concept of `concepts_`; those used alike are close to each other.
    result_ : Result
        Counts, seconds and the history. There are no objectives: these are NaN.
    n_iter_ : int
        Passes over the sentences, rounded up.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, appendix C.

    Examples
    --------
    >>> from larank import ConceptLabeler
    >>> from larank.ambiguous.house import make_triples
    >>> train, test = make_triples(2000, random_state=0), make_triples(200, random_state=1)
    >>> labeler = ConceptLabeler(random_state=0).fit(train.words, train.concepts, train.universes)
    >>> bool(labeler.score(test.words, test.concepts, test.universes) > 0.9)
    True
    """

    relations: Any = parameter(
        "Names of the relations of the universes that are used as context. By default all of them; an empty list uses "
        "none.",
        default=None,
        check=lambda _, names: relation_names(names),
        form="list of str",
        kw_only=False,
    )
    strategy: Literal["order-free", "left-right", "independent"] = parameter(
        'Order in which words are labelled: "order-free" begins with the most certain word, "left-right" takes the '
        'order of the sentence. "independent" labels each word without the concepts of the other words.',
        default="order-free",
    )
    supervision: Literal["aligned", "bags"] = parameter(
        'What is known in training: the concept of each word ("aligned"), or only which concepts are in the sentence '
        '("bags").',
        default="aligned",
    )
    embedding_size: int = parameter(
        "Size of the vectors of words and concepts. Larger vectors distinguish more and need more data and time.",
        default=20,
        least=1,
    )
    hidden_size: int = parameter(
        "Size of the space in which words with their context are compared with concepts.",
        default=200,
        least=1,
    )
    window: int = parameter(
        "Number of words that the concept of a word depends on, an odd number: as many to the left as to the right.",
        default=13,
        check=parameters.odd,
        form="int",
    )
    learning_rate: float = parameter(
        "Step size of the gradient descent. In `fit` it decreases to zero, in `partial_fit` it is constant.",
        default=0.05,
        above=0,
    )
    margin: float = parameter(
        "Score difference that is required between the right concept and the best wrong one.",
        default=1.0,
        least=0,
    )
    max_iter: int | None = parameter(
        "Number of passes over the sentences in `fit`. By default 10; `partial_fit` always makes one.",
        default=None,
        least=1,
    )
    random_state: int | np.random.RandomState | None = parameter(
        "Seed for the first weights and the order of the sentences. An integer makes the model reproducible.",
        default=None,
        check=parameters.seed,
        form="int or RandomState",
    )

    _learner: ConceptLearner = fitted()

    def fit(self, sentences: Any, concepts: Any, universes: Any = None) -> Self:
        """Train on sentences, their concepts, and what was known when they were said.

        Parameters
        ----------
        sentences : list of sentences
            A sentence is a list of words, or a str that is split at blanks.
        concepts : list of lists of str
            For each sentence the concept of each word, "-" for words that have none; or with ``supervision="bags"`` its
            concepts in any order, where those that are "-" may be left out.
        universes : Universe, list of Universe, or Universes, optional
            What was known before each sentence, or all the time. Concepts must be those of the universe of their
            sentence, unless no relation counts.

        Returns
        -------
        ConceptLabeler
            The fitted labeler. If training ends early, a `TrainingWarning` is issued, and the model is still valid.
        """
        with next_model(self) as model:
            outcome = model._fit(sentences, concepts, universes)
        self._warn_if_early(outcome)
        return self

    def partial_fit(self, sentences: Any, concepts: Any, universes: Any = None) -> Self:
        """Continue training with new sentences, in the given order; the arguments are as in `fit`.

        Each call makes one pass over its sentences, whatever `max_iter` is, with a constant learning rate. New words,
        concepts and values are added to the model. With bags, `fit` first finds out from all sentences which word goes
        with which concept; here this is learned along with the rest, which takes more sentences.
        """
        with next_model(self) as model:
            outcome = model._partial_fit(sentences, concepts, universes)
        self._warn_if_early(outcome)
        return self

    @of_one_model
    def predict(self, sentences: Any, universes: Any = None) -> list[list[str]]:
        """The concept of each word of each sentence, "-" for words that have none.

        Parameters
        ----------
        sentences : list of sentences
            As for `fit`. A word that was never seen is labelled by those around it.
        universes : Universe, list of Universe, or Universes, optional
            What is known before each sentence. Words get concepts that are there. Needed if relations count, with no
            other concepts than in training.
        """
        check_is_fitted(self, "concepts_")
        words = check_sentences(sentences)
        if not words:
            return []
        known = check_universes(universes, len(words))
        self._check_known(known)
        labeler, corpus = self._learner.labeler(), self._learner.corpus(words, known)
        blocks = range(0, corpus.size, _SENTENCES_PREDICTED_AT_ONCE)  # between them Ctrl-C is heard
        ends = (min(corpus.size, first + blocks.step) for first in blocks)
        numbers = np.concatenate([labeler.predict(corpus, *block) for block in zip(blocks, ends, strict=True)])
        names = np.array(self._learner.names, dtype=object)[numbers]
        return [list(labels) for labels in np.split(names, np.cumsum([len(each) for each in words])[:-1])]

    @of_one_model
    def score(self, sentences: Any, concepts: Any, universes: Any = None) -> float:
        """The share of sentences in which every word gets its concept: 1 - (C.2) of the thesis."""
        check_is_fitted(self, "concepts_")
        words = check_sentences(sentences)
        right = check_concepts(concepts, words)
        if not words:
            raise ValueError("sentences is empty; a score needs at least one sentence")
        known = check_universes(universes, len(words))
        self._check_known(known)
        if known is not None and self._learner.relations:
            check_labels_exist(right, known)
        found = self.predict(words, known)
        return float(np.mean([tuple(one) == other for one, other in zip(found, right, strict=True)]))

    @of_one_model
    def explain(self, sentence: Any, universe: Any = None, *, against: str | None = None) -> ConceptExplanation:
        """How a sentence is labelled: which word when, what decided it, and which facts were used.

        Parameters
        ----------
        sentence : list of str or str
            One sentence.
        universe : Universe, or Universes with one state, optional
            What is known before it.
        against : str, optional
            A concept that labels are compared with, to see why a word is not this one. By default each is compared with
            the best other one that the word has had in training.
        """
        check_is_fitted(self, "concepts_")
        words = check_words(sentence, "sentence")
        if against is not None and against not in self.concepts_.tolist():
            raise ValueError(f"against is {against!r}, which is no concept of the labeler; see `concepts_`")
        known = check_universe(universe)
        self._check_known(known, "universe")
        return explained(self._learner, words, known, against)

    def _check_known(self, universes: Universes | None, name: str = "universes") -> None:
        """What is known must have the relations that count. Where none does by oversight, that is said."""
        check_has_relations(universes, self._learner.relations, name)
        if universes is not None and universes.tables and not self._learner.relations and self.relations is None:
            raise ValueError(
                f"{name} cannot count, for the labeler was trained without; give `fit` the universes, or choose "
                "relations=() to learn from words alone"
            )

    @property
    @of_one_model
    def concept_vectors_(self) -> NDArray[np.float32]:
        """C(name(c)) of the concepts."""
        check_is_fitted(self, "concepts_")
        return self._learner.weights.C[[self._learner.symbols[name] for name in self.concepts_]]

    # ---- Training ----

    def _fit(self, sentences: Any, concepts: Any, universes: Any) -> Outcome:
        declare.check(self)
        taught = self._taught(sentences, concepts, universes)
        if not taught.words:
            raise ValueError("sentences is empty; at least one sentence is needed")
        seeds = check_random_state(self.random_state)
        learner = self._beginner(seeds, taught.universes)
        orders = np.random.RandomState(seeds.randint(2**31 - 1))
        passes = _PASSES if self.max_iter is None else int(self.max_iter)
        return self._train(learner, taught, Decaying(self.learning_rate, passes, len(taught.words)), orders)

    def _partial_fit(self, sentences: Any, concepts: Any, universes: Any) -> Outcome:
        declare.check(self)
        taught = self._taught(sentences, concepts, universes)
        if hasattr(self, "_learner"):
            self._check_unchanged(taught.universes)
            learner = self._learner.copy()  # others may predict meanwhile, and what fails must leave nothing behind
            if taught.words:
                check_has_relations(taught.universes, learner.relations)
        elif not taught.words:
            raise ValueError("sentences is empty; the first call needs at least one sentence")
        else:
            learner = self._beginner(check_random_state(self.random_state), taught.universes)
        return self._train(learner, taught, Steady(self.learning_rate), None)

    def _taught(self, sentences: Any, concepts: Any, universes: Any) -> _Taught:
        words = check_sentences(sentences)
        labels = (check_bags if self.supervision == "bags" else check_concepts)(concepts, words)
        return _Taught(words, labels, check_universes(universes, len(words)) if words else None)

    def _beginner(self, seeds: np.random.RandomState, universes: Universes | None) -> ConceptLearner:
        """Who has seen nothing."""
        relations = check_relations(self.relations, universes)
        return ConceptLearner.beginner(self._settings(), relations, int(seeds.randint(2**31 - 1)))

    def _settings(self) -> ConceptSettings:
        sizes = int(self.embedding_size), int(self.hidden_size), int(self.window)
        return ConceptSettings(self.strategy, self.supervision, *sizes)

    def _check_unchanged(self, universes: Universes | None) -> None:
        parameters.check_unchanged(self._learner.settings._asdict(), self._settings()._asdict())
        before = self._learner.relations
        if self.relations is not None and relation_names(self.relations) != before:
            raise ValueError(f"relations must stay as in the calls before, {before!r}; got {self.relations!r}")
        if self.relations is None and not before and universes is not None and universes.tables:
            raise ValueError("universes must be None as in the first call, which made a labeler without relations")

    def _train(
        self, learner: ConceptLearner, taught: _Taught, schedule: Schedule, orders: np.random.RandomState | None
    ) -> Outcome:
        known = set(learner.concepts)
        if taught.universes is not None and learner.relations:
            check_labels_exist(taught.labels, taught.universes)
        learner.take_in(*taught)
        labeler = learner.labeler(float(self.margin), known)
        corpus = learner.corpus(taught.words, taught.universes, taught.labels)
        labeler.check(corpus)
        lexicon = learner.bag_lexicon() if self.supervision == "bags" else None

        def learn(rows: NDArray[np.int64]) -> None:
            rates = schedule.rates(passes.learnt, len(rows))
            if lexicon is None:
                labeler.learn(corpus, rows, rates)
            else:
                labeler.learn_bags(corpus, lexicon, rows, rates, schedule.lexicon_rate)

        def prelude() -> Iterator[None]:
            if lexicon is not None:
                for rows, rates in schedule.lexicon_looks(orders):
                    labeler.learn_lexicon(corpus, lexicon, rows, rates)
                    yield

        def counts() -> tuple[int, int]:
            return labeler.counters.sentences, labeler.counters.mistakes

        n = len(taught.words)
        passes = SentencePasses(n, schedule.epochs, orders, learn, counts, SENTENCES_AT_ONCE, prelude())
        outcome = passes.run("concepts", self.time_limit, self.verbose)
        learner.weights = Weights(*labeler.weights)
        if lexicon is not None:
            learner.lexicon = Lexicon(lexicon.scores, lexicon.is_met)
        self._keep(learner)
        self._keep_result(outcome, passes.iterations(), labeler.counters)
        return outcome

    def _keep_result(self, outcome: Outcome, iterations: float, counters: _core.ConceptCounters) -> None:
        self.result_ = Result.of(
            outcome,
            solver="concepts",
            iterations=iterations,
            support_patterns=0,
            support_vectors=0,
            argmax_calls=counters.scores,
            operations={name: getattr(counters, name) for name in ("sentences", "mistakes", "updates")},
        )
        self.n_iter_ = math.ceil(iterations)

    def _keep(self, learner: ConceptLearner) -> None:
        self._learner = learner
        self.relations_ = learner.relations
        self.words_ = np.array(list(learner.words), dtype=object)
        self.concepts_ = np.array([name for name in learner.names if name in learner.concepts], dtype=object)

    def _warn_if_early(self, outcome: Outcome) -> None:
        warn_if_early(outcome, self.result_, max_iter=None, time_limit=self.time_limit, stacklevel=3)

    # ---- Models as arrays and plain values ----

    @property
    def _state(self) -> dict[str, Any]:
        return self._learner.state()

    @_state.setter
    def _state(self, state: Mapping[str, Any]) -> None:
        self._learner = ConceptLearner.of(state)
