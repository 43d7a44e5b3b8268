"""Chains of labels: the compiled model of core/chain/, with what labels cost and what they may follow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from larank import _core
from larank.blocks.provider import pieces
from larank.blocks.workers import Workers
from larank.sequence.constraints import Constraints, Follows, follows
from larank.sequence.corpora import LabelledSequences
from larank.sequence.labels import LabelNumbers
from larank.sequence.sequences import Sequences
from larank.sequence.wronglabels import WrongLabels

_MOST_STATES = 200_000  # of exact inference between two tokens
_PREPARED_TOKENS = 256  # most grammars are prepared for any length by then
_SHARD_TOKENS = 5_000  # sequences that one thread works on at a time
_SHARDS_AT_ONCE = 4  # of each thread, between two looks at limits


def as_core(sequences: Sequences) -> _core.ChainSequences:
    """Sequences as the core sees them, without a copy."""
    return _core.ChainSequences(
        sequences.starts, sequences.indptr, sequences.indices, sequences.values, sequences.n_features
    )


class Chain:
    """A chain model that grows with the features and labels it meets.

    It has the order k of the Markov assumption, a way of inference, "exact" or "greedy", and perhaps constraints and
    costs of labels, as the tagger takes them.
    """

    def __init__(
        self,
        order: int,
        inference: str,
        constraints: Constraints,
        label_costs: Mapping[tuple[Any, Any], float] | None,
    ) -> None:
        self.model = _core.ChainModel(order)
        self.inference, self.constraints, self.label_costs = inference, constraints, label_costs

    def copy(self) -> Chain:
        """Another chain with the same weights."""
        return self.with_model(_core.ChainModel(self.model))

    def prepared(self, longest: int) -> Chain:
        """This chain, or a copy of it where greedy inference must first learn what such sequences may end with."""
        if self.inference == "exact" or self.model.is_prepared(longest):
            return self
        chain = self.copy()
        chain.model.prepare(longest)
        return chain

    def with_model(self, model: _core.ChainModel) -> Chain:
        """Another chain of this kind."""
        chain = Chain(self.model.order, self.inference, self.constraints, self.label_costs)
        chain.model = model
        return chain

    def set_weights(self, tokens: Any, transitions: Any, labels: Sequence[Any]) -> None:
        """Take over weights as the core gives them."""
        values, columns, starts = tokens
        self.model.set_weights(values, columns, starts, np.ascontiguousarray(transitions))
        self._allow(follows(self.constraints, labels), self._costs(labels))

    def weights(self) -> csr_matrix:
        """Weights of features, a column per label."""
        return csr_matrix(self.model.tokens(), shape=(self.model.features, self.model.labels))

    def scores(self, sequences: Sequences) -> NDArray[np.float64]:
        """The score of every label at every token by its features alone."""
        values = np.ones(len(sequences.indices)) if sequences.values is None else sequences.values
        shape = sequences.n_tokens, self.model.features
        tokens = csr_matrix((values, sequences.indices, sequences.indptr), shape=shape)
        scores: NDArray[np.float64] = (tokens @ self.weights()).toarray()
        return scores

    def _allow(self, allowed: Follows | None, costs: NDArray[np.float64] | None) -> None:
        """Let the model know what labels may follow which, and what they cost."""
        if allowed is not None:
            self.model.set_grammar(*allowed)
            self.model.prepare(_PREPARED_TOKENS)  # predictions in threads then only read what is prepared
        if costs is not None:
            self.model.set_loss(costs)

    def _costs(self, labels: Sequence[Any]) -> NDArray[np.float64] | None:
        """What every label costs in place of every other, if that is given."""
        if self.label_costs is None:
            return None
        return np.array([[0.0 if a == b else float(self.label_costs.get((a, b), 1.0)) for b in labels] for a in labels])

    def admit(self, corpus: LabelledSequences, labels: LabelNumbers) -> _core.ChainSequences:
        """Check that the labels of sequences are allowed, and take in what is new in them."""
        known = labels.labels[: corpus.n_labels]
        order, inference = self.model.order, self.inference
        if inference == "exact" and (len(known) + 1.0) ** order > _MOST_STATES:
            raise ValueError(
                f"order must be lower for exact inference with {len(known)} labels, where {order} makes "
                f"{(len(known) + 1.0) ** order:.2g} states; inference='greedy' takes any order"
            )
        sequences = as_core(corpus.sequences)
        allowed, costs = self._checked(corpus, known), self._costs(known)
        has_new_labels = len(known) > self.model.labels
        self.model.grow(corpus.sequences.n_features, len(known))  # nobody else is asked from here on
        if has_new_labels:
            self._allow(allowed, costs)
        return sequences

    def _checked(self, corpus: LabelledSequences, known: Sequence[Any]) -> Follows | None:
        """What may follow what, once it is known to allow all labels."""
        wrong = WrongLabels(self.constraints)
        allowed = wrong.look_at(corpus.sequences.starts, corpus.labels, known, corpus.name_of)
        wrong.refuse()
        return allowed

    def predict(self, sequences: Sequences, workers: Workers) -> NDArray[np.int32]:
        """Numbers of the best labels, token by token; the chain is only read."""
        sequences, numbers = sequences.without_empty()
        seen = as_core(sequences)
        model = self.prepared(seen.longest).model
        labels = np.empty(sequences.n_tokens, dtype=np.int32)

        def decode(shard: tuple[int, int]) -> None:
            begin, end = shard
            found, failed = model.predict(seen, begin, end, self.inference)
            if failed >= 0:
                raise ValueError(
                    f"constraints={self.constraints!r} must allow some labels for every sequence; sequence "
                    f"{numbers[failed]} of {sequences.lengths[failed]} tokens has none"
                )
            labels[sequences.starts[begin] : sequences.starts[end]] = found

        workers.run(decode, _shards(sequences))
        return labels

    def losses(self, corpus: LabelledSequences, workers: Workers) -> Iterator[float]:
        """The sum over stretches of cost times max_y h(y), see core/chain/larank.hpp, in parts that come one by one."""
        seen = as_core(corpus.sequences)
        self.model.grow(corpus.sequences.n_features, self.model.labels)  # features read ahead have no weight yet
        self.model.prepare(seen.longest)
        sums: list[float] = []

        def add(shard: tuple[int, int]) -> None:
            sums.append(self.model.losses(seen, corpus.labels, corpus.costs, *shard, self.inference))

        shards = _shards(corpus.sequences)
        for some in pieces(len(shards), _SHARDS_AT_ONCE * workers.count):
            workers.run(add, shards[some])
            yield math.fsum(sums)
            sums.clear()


def _shards(sequences: Sequences) -> list[tuple[int, int]]:
    """Sequences [begin, end) of some thousands of tokens each."""
    wanted = np.arange(0, sequences.n_tokens, _SHARD_TOKENS)
    cuts = np.unique(np.append(np.searchsorted(sequences.starts[:-1], wanted), len(sequences)))
    return list(pairwise(cuts.tolist()))
