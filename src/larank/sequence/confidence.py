"""How sure a tagger is: margins of labels and of entities, and the probabilities that calibration makes of them.

The margin of a token's label is how far the best sequence with another label there is behind. For exact inference it is
the difference of two max-marginals, m(t, y) = max over sequences with y at t; for greedy inference, how far the next
best label is behind after the same labels. A sequence without some entity of the best one has another label at a token
of the entity, or next to it: so the least of these margins bounds how far it is behind.

Calibration is Platt's: on held-out data, the probability that a label is right is a logistic function of its margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from larank.sequence.chain import Chain, as_core
from larank.sequence.constraints import Follows, follows
from larank.sequence.entities import Entity, entities
from larank.sequence.sequences import Sequences

_Float = NDArray[np.float64]
_Labels = NDArray[np.int32]
_LARGEST = 1e6  # what an infinite margin counts as in calibration


class ConfidentLabel(NamedTuple):
    """The label of a token, its margin, and the probability that it is right, once a tagger is calibrated."""

    label: Any
    margin: float
    probability: float | None


class ConfidentEntity(NamedTuple):
    """The tokens `start` to `end - 1`, their type, how far sequences without it are behind at least, and a probability.

    The probability that extent and type are right is there once a tagger is calibrated.
    """

    type: str
    start: int
    end: int
    margin: float
    probability: float | None


def token_margins(chain: Chain, sequences: Sequences, path: _Labels, labels: Sequence[Any]) -> _Float:
    """How far another label is behind at each token of sequences that have tokens; infinite where none is allowed."""
    nodes, pairs = chain.scores(sequences), chain.model.transitions()
    allowed = follows(chain.constraints, labels)
    if chain.inference == "greedy":
        totals = _after_path(nodes, pairs, sequences, path)
        if allowed is not None:
            totals[~_possible(allowed, sequences, path)] = -np.inf
        return _lead(totals, path)
    if chain.model.order > 1:
        return _margins_of_paths(chain, sequences, nodes, pairs, path)
    spans = pairwise(sequences.starts.tolist())
    parts = [_lead(_max_marginals(nodes[a:b], pairs, allowed), path[a:b]) for a, b in spans]
    return np.concatenate(parts) if parts else np.empty(0)


def _lead(scores: _Float, path: _Labels) -> _Float:
    """By how much the score of the label at each token is above all others."""
    rows = np.arange(len(path))
    others = scores.copy()
    others[rows, path] = -np.inf
    lead: _Float = scores[rows, path] - others.max(axis=1, initial=-np.inf)
    return np.maximum(lead, 0.0)


def _max_marginals(nodes: _Float, pairs: _Float, allowed: Follows | None) -> _Float:
    """The score of the best sequence of labels with each label at each token, of order 0 or 1."""
    steps = pairs[0] if len(pairs) else np.zeros((nodes.shape[1] + 1, nodes.shape[1]))
    ends = np.zeros(nodes.shape[1])
    if allowed is not None:
        steps, ends = np.where(allowed.after, steps, -np.inf), np.where(allowed.ends, 0.0, -np.inf)
    forward, backward = np.empty_like(nodes), np.empty_like(nodes)
    forward[0], backward[-1] = nodes[0] + steps[0], ends
    for t in range(1, len(nodes)):
        forward[t] = nodes[t] + (forward[t - 1][:, None] + steps[1:]).max(axis=0)
    for t in range(len(nodes) - 2, -1, -1):
        backward[t] = (steps[1:] + (nodes[t + 1] + backward[t + 1])).max(axis=1)
    return forward + backward


def _margins_of_paths(chain: Chain, sequences: Sequences, nodes: _Float, pairs: _Float, path: _Labels) -> _Float:
    """The same for any order, by a search for each token."""
    seen = as_core(sequences)
    model = chain.prepared(seen.longest).model
    margins = np.full(len(path), np.inf)
    for number, (start, end) in enumerate(pairwise(sequences.starts.tolist())):
        best = path_score(nodes[start:end], pairs, path[start:end])
        for t in range(end - start):
            other = model.path_without(seen, number, t, int(path[start + t]), chain.inference)
            if other is not None:
                margins[start + t] = max(best - path_score(nodes[start:end], pairs, other), 0.0)
    return margins


def path_score(nodes: _Float, pairs: _Float, path: _Labels) -> float:
    """The score of a sequence of labels."""
    score = nodes[np.arange(len(path)), path].sum()
    for lag, table in enumerate(pairs, start=1):
        before = np.concatenate([np.full(min(lag, len(path)), -1), path[:-lag]])
        score += table[1 + before, path].sum()
    return float(score)


def _after_path(nodes: _Float, pairs: _Float, sequences: Sequences, path: _Labels) -> _Float:
    """The score of every label at each token, after the labels of the path."""
    totals = nodes.copy()
    position = np.arange(len(path)) - np.repeat(sequences.starts[:-1], sequences.lengths)
    for lag, table in enumerate(pairs, start=1):
        before = np.concatenate([np.full(min(lag, len(path)), -1), path[:-lag]])
        totals += table[1 + np.where(position >= lag, before, -1)]
    return totals


def _possible(allowed: Follows, sequences: Sequences, path: _Labels) -> NDArray[np.bool_]:
    """Which labels greedy inference may take at each token: after the one before, and with a way to the end."""
    parts = []
    for start, end in pairwise(sequences.starts.tolist()):
        before = np.concatenate([[-1], path[start : end - 1]])
        parts.append(allowed.after[1 + before] & finishing(allowed, end - start))
    return np.concatenate(parts) if parts else np.empty((0, len(allowed.ends)), dtype=bool)


def finishing(allowed: Follows, length: int) -> NDArray[np.bool_]:
    """Which labels at each token of a sequence leave a way to its end."""
    found = np.empty((length, len(allowed.ends)), dtype=bool)
    found[-1] = allowed.ends
    for t in range(length - 2, -1, -1):
        found[t] = (allowed.after[1:] & found[t + 1]).any(axis=1)
    return found


def entity_margins(tags: Sequence[str], margins: _Float) -> list[tuple[Entity, float]]:
    """The entities of one sequence, each with the least margin of what makes it one."""
    found = []
    for entity in entities(tags):
        starts_itself = tags[entity.start][:1] in "BSU"
        first = entity.start if starts_itself else max(entity.start - 1, 0)
        found.append((entity, float(margins[first : entity.end + 1].min())))
    return found


# ---- Calibration ----


def calibrated(margins: _Float, is_right: NDArray[np.bool_]) -> _Float:
    """Slope and height of the logistic function of log(1 + margin) under which what is right is most likely.

    With Platt's targets instead of 0 and 1, it is never quite sure.
    """
    rights = int(is_right.sum())
    targets = np.where(is_right, (rights + 1) / (rights + 2), 1 / (len(is_right) - rights + 2))
    x = _shrunk(margins)

    def loss(line: _Float) -> tuple[float, _Float]:
        decisions = line[0] * x + line[1]
        errors = expit(decisions) - targets
        value = np.logaddexp(0.0, decisions).sum() - targets @ decisions
        return float(value), np.array([errors @ x, errors.sum()])

    found: _Float = minimize(loss, np.array([1.0, 0.0]), jac=True, method="BFGS").x
    return found


def probabilities(line: _Float, margins: Any) -> _Float:
    """What calibration makes of margins."""
    found: _Float = expit(line[0] * _shrunk(np.asarray(margins, dtype=np.float64)) + line[1])
    return found


def _shrunk(margins: _Float) -> _Float:
    return np.log1p(np.minimum(margins, _LARGEST))
