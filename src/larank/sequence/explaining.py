"""What decided a label: the features and transitions behind each tag of a sequence, and the tag that came second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larank.sequence.chain import Chain, as_core
from larank.sequence.features import Encoder
from larank.sequence.sequences import Sequences


class WeightOf(NamedTuple):
    """A feature or a transition, and its weight."""

    name: str
    weight: float


class Contribution(NamedTuple):
    """What a feature or transition adds to the score of the label, and to that of the runner-up."""

    name: str
    for_label: float
    for_runner_up: float

    @property
    def difference(self) -> float:
        """How much it speaks for the label and against the runner-up."""
        return self.for_label - self.for_runner_up


@dataclass(frozen=True)
class TokenExplanation:
    """One token: its label, the runner-up and the difference between them.

    `margin` is how far the best sequence with another label at this token is behind; in greedy inference, how far the
    next best label is behind after the same labels. Without another label that is allowed, the runner-up is None and
    the margin infinite.
    """

    token: Any
    label: Any
    runner_up: Any
    margin: float
    features: tuple[Contribution, ...]
    transitions: tuple[Contribution, ...]


@dataclass(frozen=True)
class Explanation:
    """All tokens of a sequence."""

    tokens: tuple[TokenExplanation, ...]
    score: float

    @property
    def labels(self) -> list[Any]:
        """The labels of the tokens."""
        return [token.label for token in self.tokens]

    def __str__(self) -> str:
        """A paragraph per token."""
        return "\n".join(_paragraph(token) for token in self.tokens)


def _paragraph(token: TokenExplanation) -> str:
    if token.runner_up is None:
        return f"{token.token}: {token.label}, no other label is allowed"
    lines = [f"{token.token}: {token.label}, before {token.runner_up} by {token.margin:.3f}"]
    for found in (*token.transitions, *token.features):
        lines.append(f"  {found.difference:+.3f}  {found.name}")
    return "\n".join(lines)


def strongest(chain: Chain, encoder: Encoder, labels: Sequence[Any], column: int, top: int) -> list[WeightOf]:
    """The features and transitions with the largest absolute weights for one label."""
    weights = chain.weights().getcol(column).toarray().ravel()
    chosen = np.argsort(-np.abs(weights), kind="stable")[:top]
    chosen = chosen[weights[chosen] != 0]
    found = [WeightOf(name, float(w)) for name, w in zip(encoder.names(chosen), weights[chosen], strict=True)]
    before = ["nothing", *map(str, labels)]
    for lag, table in enumerate(chain.model.transitions()):
        found += [WeightOf(f"{before[p]} {lag + 1} before", float(w)) for p, w in enumerate(table[:, column]) if w]
    return sorted(found, key=lambda weight: -abs(weight.weight))[:top]


def explained(
    chain: Chain, encoder: Encoder, sequences: Sequences, labels: Sequence[Any], tokens: Sequence[Any], top: int
) -> Explanation:
    """Explain the one sequence in `sequences`."""
    seen = as_core(sequences)
    model = chain.prepared(seen.longest).model
    path, failed = model.predict(seen, 0, 1, chain.inference)
    if failed >= 0:
        raise ValueError(f"constraints={chain.constraints!r} must allow some labels for the sentence, got none")
    scores = _Scores(chain, sequences)
    best = scores.of(path)
    found = []
    for t, token in enumerate(tokens):
        other = model.path_without(seen, 0, t, int(path[t]), chain.inference)
        label = int(path[t])
        if other is None:
            found.append(TokenExplanation(token, labels[label], None, float("inf"), (), ()))
            continue
        second = int(other[t])
        if chain.inference == "exact":
            margin = best - scores.of(other)
        else:
            margin = scores.at(path, t, label) - scores.at(path, t, second)
        features = scores.features(t, label, second, encoder)
        features.sort(key=lambda feature: -abs(feature.difference))
        transitions = scores.transitions(path, t, label, second, labels)
        found.append(
            TokenExplanation(token, labels[label], labels[second], margin, tuple(features[:top]), tuple(transitions))
        )
    return Explanation(tuple(found), best)


class _Scores:
    """Scores of one sequence, piece by piece."""

    def __init__(self, chain: Chain, sequences: Sequences) -> None:
        values = np.ones(len(sequences.indices)) if sequences.values is None else sequences.values
        self.weights = chain.weights()[sequences.indices].toarray() * values[:, None]
        self.nodes = chain.scores(sequences)
        self.pairs = chain.model.transitions()
        self.sequences = sequences

    def at(self, path: NDArray[np.int32], t: int, label: int) -> float:
        """The score of a label at one token, after the labels of the path."""
        pairs = (self.pairs[s, 1 + self._before(path, t, s), label] for s in range(len(self.pairs)))
        return float(self.nodes[t, label] + sum(pairs))

    def of(self, path: NDArray[np.int32]) -> float:
        return sum(self.at(path, t, int(label)) for t, label in enumerate(path))

    def features(self, t: int, label: int, second: int, encoder: Encoder) -> list[Contribution]:
        span = slice(self.sequences.indptr[t], self.sequences.indptr[t + 1])
        names = encoder.names(self.sequences.indices[span])
        weights = self.weights[span]
        pairs = zip(names, weights[:, label].tolist(), weights[:, second].tolist(), strict=True)
        return [Contribution(*pair) for pair in pairs]

    def transitions(
        self, path: NDArray[np.int32], t: int, label: int, second: int, labels: Sequence[Any]
    ) -> list[Contribution]:
        found = []
        for s, table in enumerate(self.pairs):
            before = self._before(path, t, s)
            name = f"{'nothing' if before < 0 else labels[before]} {s + 1} before"
            found.append(Contribution(name, float(table[1 + before, label]), float(table[1 + before, second])))
        return found

    @staticmethod
    def _before(path: NDArray[np.int32], t: int, s: int) -> int:
        return int(path[t - s - 1]) if t > s else -1
