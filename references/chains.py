"""What chain models are tested against: features of outputs as dense vectors, and all outputs enumerated.

Nothing here knows how the core works. A vector of weights is [feature][label], then [lag][absent or label][label].
"""

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from larank import _core
from references.optima import slack_optimum

ABSENT = -1
hooks = pytest.importorskip("larank._core_hooks", reason="larank was built without LARANK_TEST_HOOKS")


class Corpus(NamedTuple):
    """Dense rows of tokens; sequence i is the tokens starts[i] : starts[i + 1]."""

    starts: np.ndarray
    X: np.ndarray
    labels: np.ndarray
    is_binary: bool = False  # all values 1, so that the block has none

    def __len__(self):
        return len(self.starts) - 1

    @property
    def block(self):
        rows, columns = np.nonzero(self.X)
        indptr = np.searchsorted(rows, np.arange(len(self.X) + 1)).astype(np.int64)
        values = None if self.is_binary else self.X[rows, columns].astype(np.float64)
        return _core.ChainSequences(self.starts, indptr, columns.astype(np.int32), values, self.X.shape[1])

    def sequence(self, i):
        here = slice(self.starts[i], self.starts[i + 1])
        return self.X[here], tuple(self.labels[here].tolist())


def corpus(seed, *, sequences=4, longest=4, features=3, labels=3, is_binary=False, empty=0.2):
    """Random tokens, some without any feature, whose labels the first features tell with some noise."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest + 1, sequences)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(starts[-1])
    y = random.integers(0, labels, n).astype(np.int32)
    X = (random.random((n, features)) < 0.5) * (1.0 if is_binary else random.normal(size=(n, features)))
    X[np.arange(n), y % features] = 1.0
    X[random.random(n) < empty] = 0.0
    return Corpus(starts, X, y, is_binary)


class Grammar(NamedTuple):
    """follows[0]: the labels that may begin; follows[1 + p]: those that may come after p."""

    follows: np.ndarray
    ends: np.ndarray

    def completing(self, remaining):
        """Labels that can be followed by `remaining` others and then the end."""
        able = self.ends
        for _ in range(remaining):
            able = (self.follows[1:] & able).any(axis=1)
        return able

    def allows(self, y, previous=ABSENT, remaining=0):
        pairs = zip((previous, *y[:-1]), y, strict=True)
        return all(self.follows[p + 1, q] for p, q in pairs) and bool(self.completing(remaining)[y[-1]])


def anything(labels):
    return Grammar(np.ones((labels + 1, labels), dtype=bool), np.ones(labels, dtype=bool))


def random_grammar(random, labels, share=0.6):
    return Grammar(random.random((labels + 1, labels)) < share, random.random(labels) < 0.7)


def grammar_that_allows(random, labels, corpus):
    """A random grammar under which the labels of these sequences are allowed."""
    follows, ends = random_grammar(random, labels, 0.4)
    for i in range(len(corpus)):
        _, y = corpus.sequence(i)
        follows[[p + 1 for p in (ABSENT, *y[:-1])], y] = True
        ends[y[-1]] = True
    return Grammar(follows, ends)


class Stretch(NamedTuple):
    """Some tokens of a sequence that are one pattern of the dual."""

    X: np.ndarray
    truth: tuple
    history: tuple
    previous: int
    remaining: int


def stretches(X, truth, order, inference, past=None):
    """How sequences are cut: problem (5.11) has whole ones, problem (5.12) tokens after the labels before them."""
    none = (ABSENT,) * order
    if inference == "exact":
        return [Stretch(X, truth, none, ABSENT, 0)]
    past = none + tuple(truth if past is None else past)
    return [
        Stretch(
            X[t : t + 1],
            truth[t : t + 1],
            tuple(past[t + order - s] for s in range(1, order + 1)),
            truth[t - 1] if t else ABSENT,
            len(truth) - 1 - t,
        )
        for t in range(len(truth))
    ]


class Chain:
    """A chain model in the open."""

    def __init__(self, order, features, labels, delta=None, grammar=None):
        self.order, self.features, self.labels = order, features, labels
        self.delta = 1.0 - np.eye(labels) if delta is None else delta
        self.grammar = anything(labels) if grammar is None else grammar
        self.size = features * labels + order * (labels + 1) * labels

    def phi(self, x, y):
        """Phi_e of a stretch and its labels, [thesis] section 5.3.1."""
        tokens = np.zeros((self.features, self.labels))
        lags = np.zeros((self.order, self.labels + 1, self.labels))
        for t, label in enumerate(y):
            tokens[: x.X.shape[1], label] += x.X[t]
            for s in range(1, self.order + 1):
                before = y[t - s] if t >= s else x.history[s - t - 1]
                lags[s - 1, before + 1, label] += 1
        return np.concatenate([tokens.ravel(), lags.ravel()])

    def loss(self, x, y):
        return sum(self.delta[a, b] for a, b in zip(x.truth, y, strict=True))

    def outputs(self, x):
        every = product(range(self.labels), repeat=len(x.X))
        return [y for y in every if self.grammar.allows(y, x.previous, x.remaining)]

    def h(self, w, x, y):
        return self.loss(x, y) + w @ (self.phi(x, y) - self.phi(x, x.truth))

    def worst(self, w, x):
        return max(self.outputs(x), key=lambda y: self.h(w, x, y))

    def unlabelled(self, X):
        return Stretch(X, None, (ABSENT,) * self.order, ABSENT, 0)

    def ranked(self, w, X):
        """All allowed labels of a sequence with their scores, best first."""
        x = self.unlabelled(X)
        return sorted(((float(w @ self.phi(x, y)), y) for y in self.outputs(x)), reverse=True)

    def greedy(self, w, X, banned=()):
        """[thesis] eq. (5.10), among labels from which the end can be reached; None where there are none."""
        y = ()
        for t in range(len(X)):
            history = tuple(y[t - s] if t >= s else ABSENT for s in range(1, self.order + 1))
            x = Stretch(X[t : t + 1], None, history, y[-1] if y else ABSENT, len(X) - 1 - t)
            possible = [label for (label,) in self.outputs(x) if (t, label) not in banned]
            if not possible:
                return None
            y = (*y, max(possible, key=lambda label, x=x: float(w @ self.phi(x, (label,)))))
        return y

    def model(self, w=None):
        """The same model in the core."""
        model = _core.ChainModel(self.order)
        model.grow(self.features, self.labels)
        model.set_loss(self.delta)
        model.set_grammar(self.grammar.follows, self.grammar.ends)
        if w is not None:
            model.set_weights(*parts(w, self))
        return model

    def optimum(self, patterns, costs):
        """The weights at which the primal of (5.11) or (5.12) is smallest, and a lower bound of it."""
        wrong = [(i, x, y) for i, x in enumerate(patterns) for y in self.outputs(x) if y != x.truth]
        margins = [self.phi(x, x.truth) - self.phi(x, y) for _, x, y in wrong]
        losses, slack_of = [self.loss(x, y) for _, x, y in wrong], [i for i, _, _ in wrong]
        return slack_optimum(margins, losses, slack_of, costs, self.size)


def parts(w, chain):
    """Weights as `set_weights` takes them."""
    tokens = w[: chain.features * chain.labels].reshape(chain.features, chain.labels)
    rows, columns = np.nonzero(tokens)
    starts = np.searchsorted(rows, np.arange(chain.features + 1)).astype(np.int64)
    lags = w[tokens.size :].reshape(chain.order, chain.labels + 1, chain.labels)
    return tokens[rows, columns], columns.astype(np.int32), starts, np.ascontiguousarray(lags)


def whole(tokens, lags, features, labels):
    """A vector of weights from what the core returns."""
    values, columns, starts = tokens
    dense = np.zeros((features, labels))
    dense[np.repeat(np.arange(len(starts) - 1), np.diff(starts)), columns] = values
    return np.concatenate([dense.ravel(), lags.ravel()])


def weights(model):
    """The weights of a model in the core."""
    return whole(model.tokens(), model.transitions(), model.features, model.labels)


class Pattern(NamedTuple):
    """What `state` tells of a pattern."""

    id: int
    cost: float
    x: Stretch
    alpha: dict


def state(session, chain):
    """The patterns of a session, and what they say the weights and the dual are."""
    ids, costs, lengths, indptr, indices, values, truth, history, previous, remaining, counts, alpha, labels = (
        session.state()
    )
    patterns, token, output, label = [], 0, 0, 0
    for i, length in enumerate(lengths.tolist()):
        X = np.zeros((length, chain.features))
        for t in range(length):
            here = slice(indptr[token + t], indptr[token + t + 1])
            X[t, indices[here]] = values[here]
        before = tuple(history[i * chain.order : (i + 1) * chain.order].tolist())
        own = tuple(truth[token : token + length].tolist())
        token += length
        coefficients = {}
        for _ in range(counts[i]):
            y = tuple(labels[label : label + length].tolist())
            assert y not in coefficients
            coefficients[y] = float(alpha[output])
            output, label = output + 1, label + length
        x = Stretch(X, own, before, int(previous[i]), int(remaining[i]))
        patterns.append(Pattern(int(ids[i]), float(costs[i]), x, coefficients))
    assert (token, output, label) == (len(truth), len(alpha), len(labels))
    return patterns


def expansion(patterns, chain):
    """w = sum beta Phi, and the linear part of the dual."""
    w, linear = np.zeros(chain.size), 0.0
    for pattern in patterns:
        for y, alpha in pattern.alpha.items():
            w += alpha * (chain.phi(pattern.x, pattern.x.truth) - chain.phi(pattern.x, y))
            linear += alpha * chain.loss(pattern.x, y)
    return w, linear


def smo_step(chain, w, pattern, plus, minus):
    """Algorithm 17 of [thesis]: the weights, the coefficients of the pattern and the dual's increase after it."""
    x, alpha = pattern.x, dict(pattern.alpha)
    difference = chain.phi(x, plus) - chain.phi(x, minus)
    slope, curvature = chain.h(w, x, minus) - chain.h(w, x, plus), difference @ difference
    room = pattern.cost - sum(alpha.values()) if plus == x.truth else alpha[plus]
    step = max(0.0, min(slope / curvature, room) if curvature > 0 else room)
    if plus != x.truth:
        alpha[plus] -= step
    if minus != x.truth:
        alpha[minus] = alpha.get(minus, 0.0) + step
    kept = {y: a for y, a in alpha.items() if a != 0}
    return w + step * difference, kept, step * slope - step**2 * curvature / 2


def possible_steps(chain, w, pattern, outputs, tau, rounding=1e-9):
    """What algorithms 18 to 20 may do with a pattern: a step for each pair of outputs that, up to rounding, is best.

    After a step along which the dual has its maximum inside, derivatives are equal and rounding alone chooses. So it
    does whether coefficients that sum up to C leave room for the true output.
    """
    h = {y: chain.h(w, pattern.x, y) for y in outputs}
    room, truth = pattern.cost - sum(pattern.alpha.values()), pattern.x.truth
    steps = []
    if room > -1e-12 * pattern.cost:
        steps += best_pairs(chain, w, pattern, h, [*pattern.alpha, truth], tau, rounding)
    if room < 1e-12 * pattern.cost:
        steps += best_pairs(chain, w, pattern, h, [*pattern.alpha], tau, rounding)
    return steps


def best_pairs(chain, w, pattern, h, may_lose, tau, rounding):
    smallest, largest = min(h[y] for y in may_lose), max(h.values())
    steps = [(w, pattern.alpha, 0.0)] if largest - smallest <= tau + rounding else []
    if largest - smallest > tau - rounding:
        steps += [
            smo_step(chain, w, pattern, plus, minus)
            for plus in may_lose
            for minus in h
            if plus != minus and h[plus] <= smallest + rounding and h[minus] >= largest - rounding
        ]
    return steps
