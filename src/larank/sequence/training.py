"""Training of chains: a compiled session on a corpus as the training loop sees it, and all that it learns, to be kept.

The mathematics stands in core/chain/chain.hpp and core/chain/larank.hpp.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larank import _core
from larank.blocks.workers import Workers
from larank.data.schema import (
    RANDOM_STATE,
    Kind,
    Scope,
    anything,
    floats,
    integer,
    integers,
    number,
    one_of,
    optional,
    record,
    row,
    several,
    starts,
)
from larank.sequence.chain import Chain
from larank.sequence.corpora import Corpus, LabelledSequences
from larank.sequence.features import ENCODERS, Encoder
from larank.sequence.labels import LabelNumbers
from larank.training import FromScratch, ObjectiveValues, State, random_state_of, set_random_state

_STEP_TOKENS = 20_000  # of a PROCESSNEW; a REPROCESS counts as much
_FEWEST_BETWEEN = 2_000  # tokens between two points of the history,
_SHARE_BETWEEN = 0.02  # and this share of those before
_SMALL_WEIGHTS = 2**26  # bytes that weights may always take
_SHARE_OF_NEXT = 0.06  # chosen on CoNLL-2000: docs/sequence.md
_FINEST = 1e-13  # a gap per unit of cost below this is not asked for


def _weights(features: str, of_labels: str) -> tuple[Kind, Kind]:
    """As the core gives them: of features, as values, columns and where each feature begins; and of pairs of labels."""
    entries = f"n_weights of {features}"
    tokens = row(floats(entries), integers(entries, below=of_labels, dtype="int32"), starts(features, entries))
    return tokens, floats("order", lambda scope: scope.sizes[of_labels] + 1, of_labels)


_PATTERNS = row(
    integers("n_patterns"),
    floats("n_patterns", least=0),
    integers("n_patterns", least=1),
    starts("n_tokens", "n_indices"),
    integers("n_indices", below="n_features", dtype="int32"),
    floats("n_indices"),
    integers("n_tokens", below="n_classes", dtype="int32"),
    integers("n_histories", least=-1, below="n_classes", dtype="int32"),
    integers("n_patterns", least=-1, below="n_classes", dtype="int32"),
    integers("n_patterns"),
    integers("n_patterns", least=1),
    floats("n_outputs", least=0),
    integers("n_output_labels", below="n_classes", dtype="int32"),
)

_TOKENS, _TRANSITIONS = _weights("n_features", "n_classes")
_EARLY_TOKENS, _EARLY_TRANSITIONS = _weights("n_early_features", "n_early_labels")


def _early(name: str, value: Any, scope: Scope) -> None:
    """Sums for the average: they may have fewer features and labels than the model, as the transitions tell."""
    row(anything, anything)(name, value, scope)
    if np.ndim(value[1]) == 3:
        scope.sizes["n_early_labels"] = value[1].shape[2]
    row(_EARLY_TOKENS, _EARLY_TRANSITIONS)(name, value, scope)


# What a learner is made of, as `Learner.state` has it. The size of `order` is that of the tagger's parameter.
STATE = record(
    encoder=row(one_of(*ENCODERS), anything),
    labels=several(anything, "n_classes"),
    tokens=_TOKENS,
    transitions=_TRANSITIONS,
    stretches=integer(),
    session=record(
        linear=number(),
        seed=RANDOM_STATE,
        patterns=optional(_PATTERNS),
        stretches=optional(integer()),
        early=optional(_early),
        early_of_outputs=optional(floats("n_outputs")),
    ),
)


class Pin:
    """Who has one, reads weights; nobody trains these in place as long as it lives."""


class Turns:
    """Whose turn it is with the weights of a chain: many may read them, or one may train them in place."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.pins: weakref.WeakSet[Pin] = weakref.WeakSet()
        self.trainer: int | None = None  # the thread that trains in place


@dataclass
class Learner:
    """All that training has made: features, labels, weights, and the session that goes on with them.

    Weights are trained in place where a copy would take longer than training does. Then the learner of before is past:
    who wants to read it waits, and looks for the one that has taken its place.
    """

    encoder: Encoder
    labels: LabelNumbers
    chain: Chain
    session: _core.ChainLaRank | _core.ChainPerceptron
    stretches: int = 0  # how many it has learned from,
    sequences: int = 0  # and the sequences since it was made or restored
    memory_limit: float = math.inf  # bytes that weights may take
    _average: Chain | None = None
    _turns: Turns = field(default_factory=Turns)
    _is_past: bool = False

    def copy(self) -> Learner:
        """Another learner at the same point, with weights of its own; features are numbered in common."""
        chain = self.chain.copy()
        return replace(self, chain=chain, session=self.session.copy_for(chain.model), _turns=Turns())

    @property
    def nbytes(self) -> int:
        """What a copy takes."""
        return self.chain.model.bytes + self.session.bytes

    def pin(self) -> Pin | None:
        """Keep others from training the weights in place; None where somebody has done so, who is done by now."""
        turns = self._turns
        with turns.changed:
            if not self._is_past:
                pin = Pin()
                turns.pins.add(pin)
                return pin
            if turns.trainer == threading.get_ident():
                raise RuntimeError("this tagger cannot be read by the call that trains it")
            turns.changed.wait_for(lambda: turns.trainer is None)
            return None

    @contextmanager
    def in_place(self) -> Iterator[bool]:
        """A block that may train the weights in place; False where somebody reads them."""
        turns = self._turns
        with turns.changed:
            is_free = not turns.pins
            if is_free:
                self._is_past, turns.trainer = True, threading.get_ident()
        try:
            yield is_free
        finally:
            with turns.changed:
                if is_free:
                    turns.trainer = None
                turns.changed.notify_all()

    def model(self) -> Chain:
        """The chain that predicts: the one that is trained, or a copy with the average of its weights."""
        if not self.session.averages:
            return self.chain
        if self._average is None:
            self._average = self.chain.with_model(self.session.average())
        return self._average

    def begin_stream(self) -> None:
        """From now on the average counts as a shorter one, which the next sequence moves by `_SHARE_OF_NEXT`.

        The average of all that `fit` has seen would hardly move; and last weights are worse than an average, so that
        one sequence may not bring the model to them.
        """
        self.session.shorten_average(self.stretches / self.sequences, _SHARE_OF_NEXT)

    def check_memory(self, features: int, labels: int) -> None:
        """Raise before weights are made that take more than `memory_limit`: every feature has one for every label."""
        arrays = 3 if self.session.averages else 1  # with the sums for the average, and the average itself
        order = self.chain.model.order
        needed = arrays * _core.ChainModel.bytes_of(order, features, labels)
        if needed > max(self.memory_limit, _SMALL_WEIGHTS):
            pairs = f" and {order} x {labels + 1} x {labels} of pairs of labels" if order else ""
            raise _core.MemoryLimitError(
                f"memory_limit must be at least {needed} bytes for the weights of {features} features x {labels} labels"
                f"{pairs}, {arrays} times{' for the average' if arrays > 1 else ''}, got {self.memory_limit:g}; fewer "
                "labels or templates take less"
            )

    def learns(self) -> None:
        """The weights are about to change."""
        self._average = None

    def recover(self, trained: Learner) -> None:
        """Be there again after a call that failed in place, with the labels that the weights are for by now."""
        if self.chain.model.labels == len(trained.labels):
            self.labels = trained.labels
        self._average, self._is_past = None, False

    def state(self) -> dict[str, Any]:
        """Arrays and plain values that a model file has."""
        return {
            "encoder": (type(self.encoder).__name__, self.encoder.state()),
            "labels": list(self.labels.labels),
            "stretches": self.stretches,
            **self.trained(),
        }

    def trained(self) -> dict[str, Any]:
        """What training changes, beside the numbers of features and labels, as `restore` takes it."""
        session: dict[str, Any] = {"linear": self.session.linear, "seed": 0}
        if isinstance(self.session, _core.ChainLaRank):
            session |= {"seed": self.session.random_state, "patterns": self.session.state()}
        if self.session.averages or isinstance(self.session, _core.ChainPerceptron):
            session |= {"stretches": self.session.stretches, "early": self.session.early()}
        if self.session.averages and isinstance(self.session, _core.ChainLaRank):
            session["early_of_outputs"] = self.session.early_of_outputs()
        return {
            "tokens": self.chain.model.tokens(),
            "transitions": self.chain.model.transitions(),
            "session": session,
        }

    def restore(self, trained: Mapping[str, Any], has_values: bool | None = None) -> None:
        """Take up weights and session, where encoder, labels and seed came with the constructor.

        `has_values` says whether features of patterns have values that are stored; by default where one is not 1.
        """
        labels = self.labels.labels[: trained["transitions"].shape[2]]
        self.check_memory(len(trained["tokens"][2]) - 1, len(labels))
        self.chain.set_weights(trained["tokens"], trained["transitions"], labels)
        kept, session = trained["session"], self.session
        if isinstance(session, _core.ChainLaRank):
            ids, costs, lengths, indptr, indices, values, *rest = kept["patterns"]
            starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            if has_values is None:
                has_values = not (values == 1).all()
            values = values if has_values else None
            sequences = _core.ChainSequences(starts, indptr, indices, values, self.chain.model.features)
            session.restore(kept["linear"], sequences, ids, costs, *rest)
            if "early_of_outputs" in kept:
                session.restore_early_of_outputs(kept["early_of_outputs"])
        else:
            session.restore(kept["linear"])
        if "early" in kept:
            (values, columns, starts), transitions = kept["early"]
            session.restore_average(kept["stretches"], values, columns, starts, np.ascontiguousarray(transitions))


def _without_values(ids: Any, costs: Any, lengths: Any, indptr: Any, indices: Any, _: Any, *rest: Any) -> list[Any]:
    """Patterns whose features all have the value 1, as `Learner.restore` takes them."""
    return [ids, costs, lengths, indptr, indices, np.empty(0), *rest]


class _Current(NamedTuple):
    """The sequences at work: as the core sees them, the numbers of their stretches, and their order."""

    labelled: LabelledSequences
    seen: _core.ChainSequences
    ids: NDArray[np.int64]
    order: NDArray[np.int64]
    tokens_until: NDArray[np.int64]


@dataclass
class ChainTraining:
    """A learner on a corpus as the training loop sees it.

    It is done after `epochs` passes, each in an order drawn from `orders`, or as the sequences come if that is None.
    `history` is the parameter of the tagger, `work_per_token` how many searches for labels a token takes, so that a
    call of `advance` is short, and `has_dual` whether the session solves a problem that has a dual. The workers compute
    the certificate.
    """

    learner: Learner
    corpus: Corpus
    epochs: float
    orders: np.random.RandomState | None
    history: str
    work_per_token: int
    has_dual: bool
    workers: Workers

    stretches: int = 0
    sequences: int = 0
    epoch: int = 0
    epochs_begun: int = 0
    tokens_of_epoch: int = 0
    tokens: int = 0
    recorded_at: int = 0
    seconds: float = 0.0  # in the compiled session
    share_learnt: float = 0.0  # of a file of unknown length
    current: _Current | None = None
    position: int = 0  # in the order of the current sequences
    blocks_taken: int = 0  # in this epoch
    before_order: list[Any] | None = None  # where `orders` stood before the order of the current sequences
    is_waiting: bool = False  # for the next sequences
    source: Iterator[LabelledSequences | None] = field(default_factory=lambda: iter(()))
    check_limits: Callable[[], None] = lambda: None  # raises if a limit ends the way to the position of a checkpoint

    def __post_init__(self) -> None:
        self.chain, self.session = self.learner.chain, self.learner.session
        self.step_tokens = max(1, _STEP_TOKENS // self.work_per_token)
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self.source = self.corpus.blocks()
        self.epochs_begun += 1
        self.tokens_of_epoch = self.blocks_taken = 0
        self.session.seen_loss = 0.0
        self.current = None

    def advance(self) -> bool:
        """Learn from some thousand tokens; True once the epochs are over."""
        if self.current is None and not self._take_block():
            if self.is_waiting:
                return False
            self.epoch += 1
            if self.epoch >= self.epochs:
                return True
            self._begin_epoch()
            return False
        assert self.current is not None
        self.learner.learns()
        now = self.current
        end = int(np.searchsorted(now.tokens_until, now.tokens_until[self.position] + self.step_tokens))
        end = min(max(end, self.position + 1), len(now.order))
        order = now.order[self.position : end]
        began = time.perf_counter()
        self.session.learn(
            now.seen, now.labelled.labels, now.labelled.costs, now.ids, order, self.chain.inference, self.history
        )
        self.seconds += time.perf_counter() - began
        learnt = int(now.tokens_until[end] - now.tokens_until[self.position])
        self.tokens += learnt
        self.tokens_of_epoch += learnt
        self.position = end
        if end == len(now.order):
            self.current = None
            self.share_learnt = now.labelled.share_read or self.share_learnt
        return False

    def _take_block(self) -> bool:
        """Go on to the next sequences of which some have a cost; False if there are none, or none has come yet."""
        self.is_waiting = False
        for labelled in self.source:
            if labelled is None:
                self.is_waiting = True
                return False
            self.blocks_taken += 1
            self.learner.check_memory(labelled.sequences.n_features, labelled.n_labels)
            seen = self.chain.admit(labelled, self.learner.labels)
            sequences, numbers = labelled.sequences, self._numbers(labelled)
            order = self._next_order(len(sequences))
            order = order[labelled.costs[order] > 0]
            if len(order):
                until = np.concatenate([[0], np.cumsum(sequences.lengths[order])])
                self.current = _Current(labelled, seen, self.learner.stretches + numbers, order, until)
                self.position = 0
                return True
        return False

    def _numbers(self, labelled: LabelledSequences) -> NDArray[np.int64]:
        """Those of the first stretches of sequences among all of the corpus, which are counted on the way."""
        sequences = labelled.sequences
        self.sequences = max(self.sequences, labelled.sequences_before + len(sequences))
        if self.chain.inference == "greedy":
            self.stretches = max(self.stretches, labelled.tokens_before + sequences.n_tokens)
            return labelled.tokens_before + sequences.starts[:-1]
        self.stretches = self.sequences
        return labelled.sequences_before + np.arange(len(sequences))

    def _next_order(self, sequences: int) -> NDArray[np.int64]:
        if self.orders is None:
            return np.arange(sequences)
        self.before_order = random_state_of(self.orders)
        return self.orders.permutation(sequences)

    # From one process to another.

    _KEPT: ClassVar[tuple[str, ...]] = (
        *("epoch", "epochs_begun", "tokens_of_epoch", "tokens", "recorded_at", "seconds", "share_learnt"),
        *("position", "blocks_taken"),
    )

    def snapshot(self) -> State:
        """What was learnt and how far it is in the corpus; features and labels get their numbers when it is read."""
        trained = self.learner.trained()
        if "patterns" in trained["session"] and not self.corpus.has_values:
            trained["session"]["patterns"] = _without_values(*trained["session"]["patterns"])
        is_in_block = self.current is not None
        orders = self.before_order if is_in_block or self.orders is None else random_state_of(self.orders)
        return {
            **{name: getattr(self, name) for name in self._KEPT},
            **{"is_in_block": is_in_block, "orders": orders, "trained": trained, "session": self.session.snapshot()},
        }

    def resume(self, state: State) -> None:
        """Go on from there."""
        self._find_place(state)
        for name in self._KEPT:
            setattr(self, name, type(getattr(self, name))(state[name]))
        if self.current is not None and not 0 <= self.position < len(self.current.order):
            raise ValueError("it is no place in the corpus")
        self._check_numbers(state["trained"])
        self.learner.restore(state["trained"], self.corpus.has_values)
        self.session.read_snapshot(state["session"])

    def _find_place(self, state: State) -> None:
        """Read the corpus up to the sequences at work, so that features and labels have their numbers."""
        if self.orders is not None:
            set_random_state(self.orders, state["orders"])
        if int(state["epochs_begun"]) > 1:
            for labelled in self._arrived():
                self._numbers(labelled)
            self.source = self.corpus.blocks()
        is_in_block, has_next = bool(state["is_in_block"]), False
        for labelled in islice(self._arrived(), int(state["blocks_taken"]) - is_in_block):
            self.blocks_taken += 1
            self._numbers(labelled)
        if is_in_block:
            has_next = self._take_block()
            while self.is_waiting:
                self.check_limits()
                has_next = self._take_block()
        elif int(state["epoch"]) >= int(state["epochs_begun"]):
            has_next = next(self._arrived(), None) is not None  # a corpus knows its size when its end was met
        if self.blocks_taken != int(state["blocks_taken"]) or has_next != is_in_block:
            raise ValueError("it is no place in the corpus")

    def _arrived(self) -> Iterator[LabelledSequences]:
        """Yield the blocks of the source as they arrive, until a limit ends the wait for them."""
        for labelled in self.source:
            self.check_limits()
            if labelled is not None:
                yield labelled

    def _check_numbers(self, trained: Mapping[str, Any]) -> None:
        """Raise where features, labels or stretches are not those of the corpus."""
        _, _, starts = trained["tokens"]
        known = self.learner.encoder.n_features
        if trained["transitions"].shape[2] > len(self.learner.labels) or (starts[known:] != starts[-1]).any():
            raise ValueError("it has weights of features or labels that the corpus does not have")
        if "patterns" in trained["session"]:
            ids = trained["session"]["patterns"][0]
            if len(ids) and ids.max() >= self.stretches:
                raise ValueError(f"there is no stretch {ids.max()}")

    def close(self) -> None:
        """Stop reading."""
        close = getattr(self.source, "close", None)
        if close is not None:
            close()

    def estimate(self) -> ObjectiveValues | None:
        """The losses of this epoch, each as it was when its stretch came.

        In further epochs LaRank does not look at stretches that are support patterns, so their losses are not known.
        """
        if self.is_waiting:
            return None
        is_due = self.tokens - self.recorded_at >= max(_FEWEST_BETWEEN, _SHARE_BETWEEN * self.tokens)
        if self.recorded_at and not is_due and self.current is not None:
            return None
        self.recorded_at = self.tokens
        if not self.has_dual:
            return ObjectiveValues(math.nan, math.nan, math.nan)
        loss = self.session.seen_loss if self.epochs_begun == 1 else math.nan
        return ObjectiveValues(self.session.half_squared_norm + loss, self.session.dual, math.nan)

    def evaluate(self) -> FromScratch:
        """Both objectives in a fresh pass over the corpus: that of the model, and the dual one of coefficients."""
        if not self.has_dual:
            return ObjectiveValues(math.nan, math.nan, math.nan)
        chain = self.learner.model()
        losses: list[float] = []
        for labelled in self.corpus.blocks_so_far():
            for some in chain.losses(labelled, self.workers):
                losses.append(some)
                yield
        primal = chain.model.squared_norm / 2 + math.fsum(losses)
        return ObjectiveValues(primal, self.session.linear - self.chain.model.squared_norm / 2, math.nan)

    def certificate_seconds(self) -> float:
        """One search for labels per token, in all threads, where training has made several in one."""
        passes = self.iterations()
        return self.seconds / passes / self.work_per_token / self.workers.count if passes else 0.0

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
        if now is None or now.labelled.share_read is None:
            return self.share_learnt
        of_block = float(now.tokens_until[self.position] / now.tokens_until[-1])
        return self.share_learnt + of_block * (now.labelled.share_read - self.share_learnt)

    def details(self) -> Mapping[str, Any]:
        """Further fields of the checkpoint."""
        return {"support_patterns": self.session.support_patterns}


@dataclass
class RoundsToGap(ChainTraining):
    """LaRank to a duality gap: a pass as usual, then rounds on a working set, as core/chain/larank.hpp has them.

    In a pass of a round, outputs that violate by epsilon more than those known join the set, with epsilon `_SHARE` of
    the gap per unit of cost as the pass before has seen it. Then the problem on the set is solved to `_INNER` of that,
    or as far as `_LOOKS` looks at it lead: a search for further outputs costs less than to solve it without them.
    Where there is no room for a working set, passes go on as usual.
    """

    cost: float = 0.0  # of all sequences
    epsilon: float = math.inf
    looks_left: int = 0  # at the set, before the next pass

    _KEPT: ClassVar[tuple[str, ...]] = (*ChainTraining._KEPT, "cost", "epsilon", "looks_left")
    _SHARE: ClassVar[float] = 0.5
    _INNER: ClassVar[float] = 0.5
    _LOOKS: ClassVar[int] = 2

    def advance(self) -> bool:
        """Go on with the pass, or with the problem on the set."""
        if not self.looks_left:
            return super().advance()
        began = time.perf_counter()
        accuracy = self._INNER * self.epsilon
        is_solved = self._larank.optimize_set(accuracy, accuracy * self.cost)
        self.seconds += time.perf_counter() - began
        self.looks_left = 0 if is_solved else self.looks_left - 1
        if not self.looks_left:
            super()._begin_epoch()
        return False

    def _begin_epoch(self) -> None:
        """After a pass, the working set; the pass after it begins when its problem is solved."""
        if not self.cost or not self._larank.has_room_for_rounds:
            self._larank.end_rounds()
            super()._begin_epoch()
            return
        gap = self.session.half_squared_norm + self.session.seen_loss - self.session.dual
        self.epsilon = min(self.epsilon, self._SHARE * max(gap, _FINEST * self.cost) / self.cost)
        self.looks_left = self._LOOKS
        self._larank.begin_round(self.epsilon, self._INNER * self.epsilon)

    def _take_block(self) -> bool:
        found = super()._take_block()
        if found and self.epochs_begun == 1:
            assert self.current is not None
            self.cost += float(self.current.labelled.costs.sum())
        return found

    def resume(self, state: State) -> None:
        """Go on from there, in rounds where it was in them."""
        super().resume(state)
        if self.looks_left and not self._larank.has_rounds:
            raise ValueError("it looks at a working set that is not there")

    @property
    def _larank(self) -> _core.ChainLaRank:
        assert isinstance(self.learner.session, _core.ChainLaRank)
        return self.learner.session

    def estimate(self) -> ObjectiveValues | None:
        """Both objectives at the end of a pass; those of the first pass as usual."""
        if not self._larank.has_rounds:
            return super().estimate()
        if self.looks_left or self.current is not None:
            return None
        dual, loss = self.session.dual, self.session.seen_loss
        return ObjectiveValues(max(dual, self.session.half_squared_norm + loss), dual, math.nan)

    def close(self) -> None:
        """Stop reading, and let go of the working set."""
        super().close()
        self._larank.end_rounds()
