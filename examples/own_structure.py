"""A structured model of one's own: match the points of two pictures, and learn which of their properties tell."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from larank import StructuredModel, StructuredSVC


class Matching(StructuredModel):
    """An input holds features of all pairs, x[i, j]; an output says that y[i] is the partner of i."""

    def joint_feature(self, x, y):
        return x[np.arange(len(y)), y].sum(axis=0)

    def loss(self, y_true, y):
        return np.mean(y_true != y)

    def argmax(self, x, w, y_true=None):
        scores = x @ w
        if y_true is not None:  # loss + score: every wrong partner counts 1/n
            scores += 1 / len(scores)
            scores[np.arange(len(scores)), y_true] -= 1 / len(scores)
        return linear_sum_assignment(scores, maximize=True)[1]


def pictures(count, random, points=8, noise=(0.1, 0.3, 1.0, 3.0)):
    """Pairs of pictures: points have four properties each, some of which are quite different in the second one."""
    X, y = [], []
    for _ in range(count):
        first, partner = random.normal(size=(points, len(noise))), random.permutation(points)
        second = np.empty_like(first)
        second[partner] = first + random.normal(size=first.shape) * noise
        X.append(-np.abs(first[:, None] - second[None]))
        y.append(partner)
    return X, y


random = np.random.default_rng(0)
X, y = pictures(100, random)
X_test, y_test = pictures(300, random)

for solver in ("perceptron", "passive-aggressive", "larank", "svmstruct-1slack", "svmstruct"):
    settings = {"average": True} if solver in ("perceptron", "passive-aggressive") else {}
    model = StructuredSVC(Matching(), solver=solver, random_state=0, **settings).fit(X, y)
    result = model.result_
    gap = f"relative gap {result.relative_gap:.4f}" if result.has_objective else "no objective"
    wrong = 1 - model.score(X_test, y_test)
    print(f"{solver:>18}: wrong partners {wrong:.1%}, {result.argmax_calls} arg max, {gap}")

model = Matching()
for kind, w in enumerate(np.eye(4)):
    wrong = np.mean([model.loss(answer, model.argmax(x, w)) for x, answer in zip(X_test, y_test, strict=True)])
    print(f"{f'property {kind} alone':>18}: wrong partners {wrong:.1%}")
