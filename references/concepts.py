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


class Aligned:
    """The right label of each word."""

    def __init__(self, labels):
        self.labels = labels

    def contains(self, i, c):
        return self.labels[i] == c

    def take(self, c):
        pass


class Bag:
    """Labels that are left in a bag, for words that have a tenth of their largest share of them in a lexicon."""

    def __init__(self, scores, words, bag):
        self.left = list(bag)
        labels = sorted(set(bag))
        p = np.zeros_like(scores[words])
        p[:, labels] = np.exp(scores[words][:, labels])
        p /= p.sum(axis=1, keepdims=True)
        shares = p[:, bag]
        for _ in range(10):
            shares = shares / shares.sum(axis=0)
            shares /= shares.sum(axis=1, keepdims=True)
        of_labels = np.zeros_like(p)
        np.add.at(of_labels.T, bag, shares.T)
        self.allowed = (of_labels >= 0.1 * of_labels.max(axis=1, keepdims=True)) & (of_labels > 0)

    def contains(self, i, c):
        return c in self.left and bool(self.allowed[i, c])

    def take(self, c):
        self.left.remove(c)


def violated(network, strategy, symbols, good, margin):
    """What is learned from a sentence: states with weights, whose sum of s, plus the constant, is the loss."""
    labels, terms, constant = [None] * len(network.words), [], 0.0
    for t in range(len(labels)):
        pairs = [(j, c) for j in turn(strategy, labels, t) for c in symbols]
        raised = [pair for pair in pairs if good.contains(*pair)]
        if not raised:
            if strategy == "independent":
                continue
            break
        best = max(raised, key=lambda pair: network.score(labels, *pair))
        others = [pair for pair in pairs if pair not in raised]
        bad = max(others, key=lambda pair: network.score(labels, *pair), default=None)
        lead = np.inf if bad is None else network.score(labels, *best) - network.score(labels, *bad)
        if lead < margin or lead <= 0:
            raised = [best] if lead > 0 else raised
            found = [(list(labels), *bad, 1.0), *((list(labels), *pair, -1 / len(raised)) for pair in raised)]
            if loss(network, found, margin) > loss(network, terms, constant):
                terms, constant = found, margin
        if strategy != "independent":
            if terms:
                break
            labels[best[0]] = best[1]
        good.take(best[1])
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
