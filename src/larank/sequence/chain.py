"""Chains of labels, trained by LaRank, the perceptron or the passive-aggressive rule.

`Chain` is the compiled model (core/chain.hpp) and what goes with it: the labels, what they cost, what they may follow.
`ChainTraining` is a compiled session on a corpus as the training loop sees it. The mathematics stands in core/chain.hpp
and core/chainlarank.hpp.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from larank import _core
from larank.blocks.workers import Workers
from larank.sequence.constraints import Constraints, UnknownLabelError, follows
from larank.sequence.corpora import Corpus, LabelledBlock, LabelNumbers
from larank.sequence.sequences import Sequences
from larank.training import ObjectiveValues

__all__ = [
    "Chain",
    "ChainTraining",
    "argmax_calls",
    "chain_block",
    "check_order",
    "operations",
    "restore_session",
    "session_state",
]

_LARANK_OPERATIONS = ("process_new", "process_old", "optimize", "steps", "argmax", "frozen")
_PERCEPTRON_OPERATIONS = ("examples", "steps")
_MOST_STATES = 200_000  # of exact inference between two tokens

_PREPARED_TOKENS = 256  # most grammars are prepared for any length by then
_SHARD_TOKENS = 5_000  # sequences that one thread works on at a time
_STEP_TOKENS = 20_000  # of a PROCESSNEW; a REPROCESS counts as much
_FEWEST_BETWEEN = 2_000  # tokens between two points of the history,
_SHARE_BETWEEN = 0.02  # and this share of those before


def chain_block(sequences: Sequences) -> _core.ChainBlock:
    """Sequences as the core sees them, without a copy."""
    return _core.ChainBlock(
        sequences.starts, sequences.indptr, sequences.indices, sequences.values, sequences.n_features
    )


class Chain:
    """A chain model that grows with the features and labels it meets.

    Parameters
    ----------
    order : int
        The order k of the Markov assumption.
    inference : "exact" or "greedy"
        How labels are found, and how sequences are cut for training.
    constraints : Constraints
        What labels may follow.
    costs_of_labels : mapping from (label, label) to float, optional
        What a label costs in place of the true one, which is named first; 1 for pairs that are not there.
    """

    def __init__(
        self,
        order: int,
        inference: str,
        constraints: Constraints,
        costs_of_labels: Mapping[tuple[Any, Any], float] | None,
    ) -> None:
        self.model = _core.ChainModel(order)
        self.inference = inference
        self.constraints = constraints
        self.costs_of_labels = costs_of_labels

    def grow(self, n_features: int, labels: Sequence[Any]) -> None:
        """Make room for features and labels that are new."""
        has_new_labels = len(labels) > self.model.labels
        self.model.grow(n_features, len(labels))
        if has_new_labels:
            self.allow(labels)

    def allow(self, labels: Sequence[Any]) -> None:
        """Ask about every pair of labels what may follow what, and what it costs."""
        allowed = follows(self.constraints, labels)
        if allowed is not None:
            self.model.set_grammar(*allowed)
            self.model.prepare(_PREPARED_TOKENS)  # predictions in threads then only read what is prepared
        if self.costs_of_labels is not None:
            self.model.set_loss(_losses(self.costs_of_labels, labels))

    def weights(self) -> csr_matrix:
        """Weights of features, a column per label."""
        return csr_matrix(self.model.tokens(), shape=(self.model.features, self.model.labels))

    def admit(self, block: LabelledBlock, labels: LabelNumbers) -> _core.ChainBlock:
        """Check that the labels of a block are allowed, and take in what is new in it."""
        known = labels.labels[: block.n_labels]
        check_order(self.model.order, len(known), self.inference)
        seen = chain_block(block.sequences)
        self._check_allowed(block, seen, known)
        self.grow(block.sequences.n_features, known)
        return seen

    def _check_allowed(self, block: LabelledBlock, seen: _core.ChainBlock, known: Sequence[Any]) -> None:
        """On a model of its own: this one stays as it is if there is an error."""
        try:
            allowed = follows(self.constraints, known)
        except UnknownLabelError as unknown:
            token = int(np.argmax(block.labels == known.index(unknown.label)))
            sequence = int(np.searchsorted(block.sequences.starts, token, side="right")) - 1
            place = block.place(sequence, token - int(block.sequences.starts[sequence]))
            raise ValueError(f"{unknown} at {place}") from None
        if allowed is None:
            return
        judge = _core.ChainModel(0)
        judge.grow(0, len(known))
        judge.set_grammar(*allowed)
        sequence, position = judge.violation(seen, block.labels)
        if sequence >= 0:
            start, length = block.sequences.starts[sequence], block.sequences.lengths[sequence]
            names = [known[number] for number in block.labels[start : start + length]]
            raise ValueError(
                f"constraints={self.constraints!r} must allow the labels of training: "
                f"{_forbidden(names, position)} at {block.place(sequence, min(position, length - 1))} is not allowed"
            )

    def predict(self, sequences: Sequences, workers: Workers) -> NDArray[np.int32]:
        """Numbers of the best labels, token by token."""
        block = chain_block(sequences)
        self.model.prepare(block.longest)
        labels = np.empty(sequences.n_tokens, dtype=np.int32)

        def decode(shard: tuple[int, int]) -> None:
            begin, end = shard
            found, failed = self.model.predict(block, begin, end, self.inference)
            if failed >= 0:
                raise ValueError(
                    f"constraints={self.constraints!r} must allow some labels for every sequence; sequence {failed} of "
                    f"{sequences.lengths[failed]} tokens has none"
                )
            labels[sequences.starts[begin] : sequences.starts[end]] = found

        workers.run(decode, _shards(sequences))
        return labels

    def losses(self, block: LabelledBlock, workers: Workers) -> float:
        """The sum over stretches of cost times max_y h(y), see core/chainlarank.hpp."""
        seen = chain_block(block.sequences)
        self.model.grow(block.sequences.n_features, self.model.labels)  # features read ahead have no weight yet
        self.model.prepare(seen.longest)
        sums: list[float] = []

        def add(shard: tuple[int, int]) -> None:
            sums.append(self.model.losses(seen, block.labels, block.costs, *shard, self.inference)[0])

        workers.run(add, _shards(block.sequences))
        return math.fsum(sums)


def check_order(order: int, n_labels: int, inference: str) -> None:
    """Raise where exact inference would have too many states."""
    if inference == "exact" and (n_labels + 1.0) ** order > _MOST_STATES:
        raise ValueError(
            f"order must be lower for exact inference with {n_labels} labels, where {order} makes "
            f"{(n_labels + 1.0) ** order:.2g} states; inference='greedy' takes any order"
        )


def session_state(session: _core.ChainLaRank | _core.ChainPerceptron) -> dict[str, Any]:
    """What a session needs to go on elsewhere, besides the weights."""
    if isinstance(session, _core.ChainLaRank):
        return {"linear": session.linear, "seed": session.random_state, "patterns": session.state()}
    return {"linear": session.linear, "seed": 0, "stretches": session.counts[0], "early": session.early()}


def restore_session(
    session: _core.ChainLaRank | _core.ChainPerceptron, model: _core.ChainModel, state: Mapping[str, Any]
) -> None:
    """Take up what `session_state` kept."""
    if isinstance(session, _core.ChainLaRank):
        ids, costs, lengths, indptr, indices, values, truth, history, previous, remaining, *outputs = state["patterns"]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        kept = None if (values == 1).all() else values
        block = _core.ChainBlock(starts, indptr, indices, kept, model.features)
        session.restore(state["linear"], block, ids, costs, truth, history, previous, remaining, *outputs)
    else:
        (values, columns, starts), transitions = state["early"]
        transitions = np.ascontiguousarray(transitions)
        session.restore(state["linear"], state["stretches"], values, columns, starts, transitions)


def argmax_calls(session: _core.ChainLaRank | _core.ChainPerceptron) -> int:
    """How often a session searched for the best labels."""
    return session.counts[4] if isinstance(session, _core.ChainLaRank) else session.counts[0]


def operations(session: _core.ChainLaRank | _core.ChainPerceptron) -> dict[str, int]:
    """How often a session performed each operation."""
    if isinstance(session, _core.ChainLaRank):
        return dict(zip(_LARANK_OPERATIONS, session.counts, strict=True))
    return dict(zip(_PERCEPTRON_OPERATIONS, session.counts, strict=True))


def _losses(costs: Mapping[tuple[Any, Any], float], labels: Sequence[Any]) -> NDArray[np.float64]:
    return np.array([[0.0 if a == b else float(costs.get((a, b), 1.0)) for b in labels] for a in labels])


def _forbidden(names: Sequence[Any], position: int) -> str:
    if position == len(names):
        return f"the end after {names[-1]!r}"
    return f"{names[position]!r} after {names[position - 1]!r}" if position else f"{names[0]!r} at the beginning"


def _shards(sequences: Sequences) -> list[tuple[int, int]]:
    """Sequences [begin, end) of some thousands of tokens each."""
    wanted = np.arange(0, sequences.n_tokens, _SHARD_TOKENS)
    cuts = np.unique(np.append(np.searchsorted(sequences.starts[:-1], wanted), len(sequences)))
    return list(pairwise(cuts.tolist()))


class _Current(NamedTuple):
    """The block at work: as the core sees it, the numbers of its stretches, and the order of its sequences."""

    block: LabelledBlock
    seen: _core.ChainBlock
    ids: NDArray[np.int64]
    order: NDArray[np.int64]
    tokens_until: NDArray[np.int64]


class ChainTraining:
    """A session on a corpus as the training loop sees it.

    Parameters
    ----------
    chain : Chain
        The model.
    session : compiled session
        Of LaRank, the perceptron or the passive-aggressive rule.
    corpus : Corpus
        What it learns from.
    labels : LabelNumbers
        All labels so far.
    epochs : float
        Passes after which it is done; infinite if something else ends training.
    orders : RandomState or None
        Of the sequences of a block; None: as they come.
    own_history : bool
        Whether greedy training has the model's own predictions as history.
    work_per_token : int
        Searches for labels per token, so that a call of `advance` is short.
    has_dual : bool
        Whether the session solves a problem that has a dual.
    ids_from : int
        The number of the first stretch.
    workers : Workers
        For the certificate.
    """

    def __init__(
        self,
        chain: Chain,
        session: _core.ChainLaRank | _core.ChainPerceptron,
        corpus: Corpus,
        labels: LabelNumbers,
        *,
        epochs: float,
        orders: np.random.RandomState | None,
        own_history: bool,
        work_per_token: int,
        has_dual: bool,
        ids_from: int,
        workers: Workers,
    ) -> None:
        self.chain, self.session, self.corpus, self.labels = chain, session, corpus, labels
        self.epochs, self.orders, self.own_history, self.workers = epochs, orders, own_history, workers
        self.step_tokens = max(1, _STEP_TOKENS // work_per_token)
        self.has_dual, self.ids_from = has_dual, ids_from
        self.stretches = 0
        self.epoch = 0
        self.epochs_begun = 0
        self.tokens_of_epoch = 0
        self.tokens = 0
        self.recorded_at = 0
        self.seconds = 0.0  # in the compiled session
        self.share_learnt = 0.0  # of a file of unknown length
        self.current: _Current | None = None
        self.position = 0
        self.source: Iterator[LabelledBlock] = iter(())
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self.source = self.corpus.blocks()
        self.epochs_begun += 1
        self.tokens_of_epoch = 0
        self.session.seen_loss = 0.0
        self.current = None

    def advance(self) -> bool:
        """Learn from some thousand tokens; True once the epochs are over."""
        if self.current is None and not self._take_block():
            self.epoch += 1
            if self.epoch >= self.epochs:
                return True
            self._begin_epoch()
            return False
        assert self.current is not None
        now = self.current
        end = int(np.searchsorted(now.tokens_until, now.tokens_until[self.position] + self.step_tokens))
        end = min(max(end, self.position + 1), len(now.order))
        began = time.perf_counter()
        self.session.learn(
            now.seen,
            now.block.labels,
            now.block.costs,
            now.ids,
            now.order[self.position : end],
            self.chain.inference,
            self.own_history,
        )
        self.seconds += time.perf_counter() - began
        learnt = int(now.tokens_until[end] - now.tokens_until[self.position])
        self.tokens += learnt
        self.tokens_of_epoch += learnt
        self.position = end
        if end == len(now.order):
            self.current = None
            self.share_learnt = now.block.share_read or self.share_learnt
        return False

    def _take_block(self) -> bool:
        block = next(self.source, None)
        if block is None:
            return False
        seen = self.chain.admit(block, self.labels)
        sequences = block.sequences
        is_greedy = self.chain.inference == "greedy"
        before = block.tokens_before if is_greedy else block.sequences_before
        ids = self.ids_from + before + (sequences.starts[:-1] if is_greedy else np.arange(len(sequences)))
        self.stretches = max(self.stretches, before + (sequences.n_tokens if is_greedy else len(sequences)))
        order = np.arange(len(sequences)) if self.orders is None else self.orders.permutation(len(sequences))
        order = order[block.costs[order] > 0]
        until = np.concatenate([[0], np.cumsum(sequences.lengths[order])])
        if len(order):
            self.current = _Current(block, seen, ids, order, until)
            self.position = 0
            return True
        return self._take_block()

    def close(self) -> None:
        """Stop reading."""
        close = getattr(self.source, "close", None)
        if close is not None:
            close()

    def estimate(self) -> ObjectiveValues | None:
        """The losses of this epoch, each as it was when its stretch came.

        In further epochs LaRank does not look at stretches that are support patterns, so their losses are not known.
        """
        if not self.has_dual:
            values = ObjectiveValues(math.nan, math.nan, math.nan)
        elif isinstance(self.session, _core.ChainLaRank):
            dual = self.session.dual
            loss = self.session.seen_loss if self.epochs_begun == 1 else math.nan
            values = ObjectiveValues(self.session.linear - dual + loss, dual, math.nan)
        else:
            half_norm = self.chain.model.squared_norm / 2
            values = ObjectiveValues(half_norm + self.session.seen_loss, self.session.linear - half_norm, math.nan)
        is_due = self.tokens - self.recorded_at >= max(_FEWEST_BETWEEN, _SHARE_BETWEEN * self.tokens)
        if self.recorded_at and not is_due and self.current is not None:
            return None
        self.recorded_at = self.tokens
        return values

    def evaluate(self) -> ObjectiveValues:
        """Both objectives in a fresh pass over the corpus."""
        if not self.has_dual:
            return ObjectiveValues(math.nan, math.nan, math.nan)
        half_norm = self.chain.model.squared_norm / 2
        loss = math.fsum(self.chain.losses(block, self.workers) for block in self.corpus.blocks_so_far())
        return ObjectiveValues(half_norm + loss, self.session.linear - half_norm, math.nan)

    def iterations(self) -> float:
        """Passes over the corpus so far, as far as its size is known."""
        if self.epoch >= self.epochs:
            return float(self.epoch)
        if self.corpus.n_tokens:
            return self.epoch + self.tokens_of_epoch / self.corpus.n_tokens
        return self.epoch + self._share_learnt()

    def _share_learnt(self) -> float:
        """Of a file: that of the blocks before, and as much of this one's as was learnt of its tokens."""
        now = self.current
        if now is None or now.block.share_read is None:
            return self.share_learnt
        of_block = float(now.tokens_until[self.position] / now.tokens_until[-1])
        return self.share_learnt + of_block * (now.block.share_read - self.share_learnt)

    def details(self) -> Mapping[str, Any]:
        """Further fields of the checkpoint."""
        return {"support_patterns": getattr(self.session, "support_patterns", 0)}
