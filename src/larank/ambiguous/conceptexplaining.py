"""Why words got their concepts: the score of a concept over the next best one, as a sum over words and facts.

A score is linear in each of its sources, so the lead of a concept c over its runner-up c' is a sum of what comes from

- a word of the window, by the names of c and c', and by what each relation says of them;
- the concept y of a word that has one, by its name or one of its facts, together with the name or a fact of c and c';
- nothing in particular: the biases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from larank.ambiguous.conceptlearner import NONE, ConceptLearner
from larank.ambiguous.meanings import EMPTY
from larank.ambiguous.sentences import Words
from larank.ambiguous.universe import Fact
from larank.ambiguous.universes import Universes

_SHOWN = 3  # reasons of a step in the text
_LEAST_SHARE = 0.05  # of the largest reason, that a fact counts as used

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Reason:
    """What speaks for a concept, and by how much it speaks more for it than for the runner-up.

    Attributes
    ----------
    amount : float
        The difference in score; negative where it speaks for the runner-up.
    source : {"word", "concept", "ends", "bias"}
        A word nearby, or its concept; what lies beyond the ends of the sentence; or what is always so.
    place : int or None
        The word, for the first two.
    concept : str or None
        The concept of that word, for the second.
    facts : tuple of Fact
        What is known of that concept and of the one in question, as far as it counts here.
    """

    amount: float
    source: str
    place: int | None
    concept: str | None
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class LabelStep:
    """A word that got its concept, by how much it won over the runner-up, and why: strongest reasons first.

    The runner-up is the best other concept that the word has had in training, or the best of all if it had none; for a
    word that was never seen `is_new` is true. Where there is nothing to compare with, there is no runner-up, no reason,
    and the margin is infinite.
    """

    place: int
    word: str
    is_new: bool
    concept: str
    runner_up: str | None
    margin: float
    reasons: tuple[Reason, ...]

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts that spoke for the concept, but for those with little weight."""
        least = _LEAST_SHARE * max((reason.amount for reason in self.reasons), default=0.0)
        used = (reason.facts for reason in self.reasons if reason.amount > least)
        return tuple(dict.fromkeys(fact for facts in used for fact in facts))


@dataclass(frozen=True)
class ConceptExplanation:
    """How a sentence was labelled, step by step; `str` is a text to be read. Words that come twice are numbered."""

    words: Words
    concepts: Words
    steps: tuple[LabelStep, ...]

    def __str__(self) -> str:
        """A line for each word in the order of labelling, and lines for what decided it."""
        width = max(len(word) for word in self.words)
        return "\n".join(line for t, step in enumerate(self.steps, 1) for line in self._lines(t, step, width))

    def _lines(self, t: int, step: LabelStep, width: int) -> Iterator[str]:
        before = "" if step.runner_up is None else f", before {step.runner_up} by {step.margin:.2f}"
        new = ", a word that was never seen" if step.is_new else ""
        yield f"{t:>2}. {step.word:<{width}}  {step.concept}{before}{new}"
        for reason in [reason for reason in step.reasons if reason.amount > 0][:_SHOWN]:
            yield f"      {reason.amount:+.2f}  {self._told(reason)}"

    def _quoted(self, place: int) -> str:
        word = self.words[place]
        return repr(word) if self.words.count(word) == 1 else f"{word!r} ({place + 1})"

    def _told(self, reason: Reason) -> str:
        word = "" if reason.place is None else self._quoted(reason.place)
        texts = {"bias": "in general", "ends": "where the sentence ends", "word": f"the word {word}"}
        source = texts.get(reason.source, f"{word} is {reason.concept}")
        return ", ".join([source, *(str(fact) if fact.value else f"{fact} nothing" for fact in reason.facts)])


def explained(
    learner: ConceptLearner, words: Words, universes: Universes | None, against: str | None = None
) -> ConceptExplanation:
    """Label a sentence, and say how; labels are compared with the concept `against`, or each with the next best."""
    labeler = learner.labeler()
    order, scores = labeler.trace(learner.corpus([words], universes), 0)
    if learner.relations:
        is_offered = learner.states(universes)[0, 0] >= 0
        is_offered[NONE] = False
    else:
        is_offered = labeler.is_concept.astype(bool)
    sources = _Sources(learner, words, universes)
    steps = []
    for place, of_symbols in zip(order.tolist(), np.where(is_offered, scores, -np.inf), strict=True):
        chosen = int(of_symbols.argmax())
        of_symbols[chosen], lead = -np.inf, float(of_symbols[chosen])
        second = (
            learner.symbols[against] if against is not None else _rival(of_symbols, learner.senses_of(words[place]))
        )
        has_rival = np.isfinite(of_symbols[second])
        reasons = sorted(sources.reasons(place, chosen, second), key=lambda reason: -abs(reason.amount))
        steps.append(
            LabelStep(
                place,
                words[place],
                words[place] not in learner.words,
                sources.names[chosen],
                sources.names[second] if has_rival else None,
                lead - float(of_symbols[second]) if has_rival else math.inf,
                tuple(reasons) if has_rival else (),
            )
        )
        if learner.settings.strategy != "independent":
            sources.labels[place] = chosen
    labels = {step.place: step.concept for step in steps}
    return ConceptExplanation(words, tuple(labels[place] for place in range(len(words))), tuple(steps))


def _rival(scores: NDArray[np.float32], senses: list[int]) -> int:
    """The best of the concepts that a word has had, or of all; the one that it got has no score any more."""
    known = [symbol for symbol in senses if np.isfinite(scores[symbol])]
    return max(known, key=lambda symbol: float(scores[symbol])) if known else int(scores.argmax())


class _Sources:
    """The network on one sentence, cut into what each word, concept and fact contributes."""

    def __init__(self, learner: ConceptLearner, words: Words, universes: Universes | None) -> None:
        self.names, self.relations = learner.names, learner.relations
        self.labels: dict[int, int] = {}  # symbols, by place
        settings = learner.settings
        self._reach, self._n = settings.window // 2, len(words)
        D, C, Wg, bg, Wh, bh = (array.astype(np.float64) for array in learner.weights)
        d, parts = settings.embedding_size, 1 + len(self.relations)
        self._words = [D[number] if number >= 0 else np.zeros(d) for number in learner.word_numbers(words)]
        self._beyond, self._C = D[0], C
        self._Wg_words = Wg[: settings.window * d].reshape(settings.window, d, -1)
        self._Wg_concepts = Wg[settings.window * d :].reshape(settings.window, parts, d, -1)
        self._Wh, self._bg, self._bh = Wh.reshape(parts, d, -1), bg[0], bh[0]
        states = learner.states(universes)[0]
        self._values = np.vstack([np.arange(len(C)), np.maximum(states, 0)])  # by part, then symbol

    def reasons(self, place: int, chosen: int, second: int) -> Iterator[Reason]:
        """Of the lead of one concept over another."""
        vectors = self._vectors(chosen) - self._vectors(second)  # by part
        outputs = np.einsum("pd,pdn->pn", vectors, self._Wh)
        facts = [self._facts(chosen, part) for part in range(len(vectors))]
        yield Reason(float(self._bg @ outputs.sum(axis=0)), "bias", None, None, ())
        ends = np.zeros(len(vectors))
        for offset in range(-self._reach, self._reach + 1):
            at = place + offset
            is_inside = 0 <= at < self._n
            vector = self._words[at] if is_inside else self._beyond
            amounts = outputs @ (vector @ self._Wg_words[offset + self._reach])
            if is_inside:
                yield from (Reason(float(amount), "word", at, None, facts[part]) for part, amount in enumerate(amounts))
            else:
                ends += amounts
            if at in self.labels and at != place:
                yield from self._of_label(at, offset, vectors, outputs, facts)
        yield from (Reason(float(amount), "ends", None, None, facts[part]) for part, amount in enumerate(ends))

    def _of_label(
        self, at: int, offset: int, vectors: Vector, outputs: Vector, facts: list[tuple[Fact, ...]]
    ) -> Iterator[Reason]:
        """What the concept of another word contributes, by its parts and those of the concept in question."""
        label = self.labels[at]
        known = self._vectors(label)
        seen_by_word = np.einsum("pd,pdn->pn", known, self._Wg_concepts[offset + self._reach])
        sees_word = np.einsum("pd,pdn->pn", vectors, self._Wg_concepts[-offset + self._reach])
        h = np.einsum("pd,pdn->pn", known, self._Wh)
        h[0] += self._bh
        amounts = seen_by_word @ outputs.T + h @ sees_word.T
        for part, of_part in enumerate(amounts):
            for other, amount in enumerate(of_part):
                used = tuple(dict.fromkeys((*self._facts(label, part), *facts[other])))
                yield Reason(float(amount), "concept", at, self.names[label], used)

    def _vectors(self, symbol: int) -> Vector:
        vectors: Vector = self._C[self._values[:, symbol]]
        return vectors

    def _facts(self, symbol: int, part: int) -> tuple[Fact, ...]:
        """What a part says of a concept; the first one is its name, and no fact, and "-" has none."""
        if part == 0 or self.names[symbol] == EMPTY:
            return ()
        return (Fact(self.relations[part - 1], self.names[symbol], self.names[self._values[part, symbol]] or None),)
