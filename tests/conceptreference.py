"""Concept labelling in NumPy, from the formulas of [thesis] C.4 alone: what the compiled labeller is compared with."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Network:
    """Weights and one sentence with its universe, `universe[r][c]` being the symbol that relation r gives for c."""

    weights: tuple
    words: list
    universe: np.ndarray
    window: int

    def concept(self, c):
        """(C.5): the vectors of a concept and of what the relations lead to."""
        _, C, *_ = self.weights
        return np.concatenate([C[c], *(C[max(0, relation[c])] for relation in self.universe)])

    def h(self, c):
        *_, Wh, bh = self.weights
        return self.concept(c) @ Wh + bh[0]

    def g(self, labels):
        """(C.4): the sum over words with a label; `labels` has None for the others."""
        return sum(self._g_of(i, labels) @ self.h(c) for i, c in enumerate(labels) if c is not None)

    def _g_of(self, i, labels):
        D, C, Wg, bg, *_ = self.weights
        reach = self.window // 2
        places = range(i - reach, i + reach + 1)
        inside = [0 <= at < len(self.words) for at in places]
        words = [self.words[at] if is_in else 0 for at, is_in in zip(places, inside, strict=True)]
        vectors = [D[word] if word >= 0 else np.zeros(D.shape[1]) for word in words]
        size = C.shape[1] * (1 + len(self.universe))
        for at, is_in in zip(places, inside, strict=True):
            has_label = is_in and at != i and labels[at] is not None
            vectors.append(self.concept(labels[at]) if has_label else np.zeros(size))
        return np.concatenate(vectors) @ Wg + bg[0]

    def score(self, labels, j, c):
        """What labelling word j with c adds."""
        return self.g([*labels[:j], c, *labels[j + 1 :]]) - self.g(labels)


def turn(strategy, labels, t):
    """The words of which one is labelled in step t."""
    return [i for i, c in enumerate(labels) if c is None] if strategy == "order-free" else [t]


def labelled(network, strategy, symbols):
    """Steps as (word, symbol), by (C.3)."""
    labels, steps = [None] * len(network.words), []
    for t in range(len(labels)):
        scores = {(j, c): network.score(labels, j, c) for j in turn(strategy, labels, t) for c in symbols}
        j, c = max(scores, key=scores.get)
        steps.append((j, c))
        if strategy != "independent":
            labels[j] = c
    return steps


def violated(network, strategy, symbols, right, margin):
    """What is learned from a sentence: states with weights, whose sum of s, plus the constant, is the loss."""
    labels, terms, constant = [None] * len(network.words), [], 0.0
    for t in range(len(labels)):
        words = turn(strategy, labels, t)
        good = max(((j, right[j]) for j in words), key=lambda pair: network.score(labels, *pair))
        bad = max(
            ((j, c) for j in words for c in symbols if c != right[j]), key=lambda pair: network.score(labels, *pair)
        )
        lead = network.score(labels, *good) - network.score(labels, *bad)
        if lead < margin:
            raised = [good] if lead > 0 else [(j, right[j]) for j in words]
            terms += [(list(labels), *bad, 1.0), *((list(labels), *pair, -1 / len(raised)) for pair in raised)]
            constant += margin
        if strategy == "independent":
            continue
        if terms:
            break
        labels[good[0]] = good[1]
    return terms, constant


def loss(network, terms, constant):
    return constant + sum(weight * network.score(labels, j, c) for labels, j, c, weight in terms)


def gradient(network, terms, step=1e-6):
    """Of the loss, by central differences, in the shapes of the weights."""
    found = []
    for array in network.weights:
        slopes = np.zeros_like(array)
        for at in np.ndindex(array.shape):
            kept = array[at]
            array[at] = kept + step
            above = loss(network, terms, 0.0)
            array[at] = kept - step
            below = loss(network, terms, 0.0)
            array[at] = kept
            slopes[at] = (above - below) / (2 * step)
        found.append(slopes)
    return found
