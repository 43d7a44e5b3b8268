"""The online algorithms of the thesis and of Crammer et al. (2006), written out in NumPy on kernel values."""

import numpy as np


def perceptron_rule(margin=0.0):
    return lambda m, gain, cost: cost if m <= margin else 0.0


def passive_aggressive_rule(m, gain, cost):
    return min(cost, (1 - m) / gain) if m < 1 else 0.0


def squared_passive_aggressive_rule(m, gain, cost):
    """PA-II of Crammer et al. (2006), figure 1; a multiclass step changes two functions, so its gain is doubled."""
    return (1 - m) / (gain + 1 / (2 * cost)) if m < 1 else 0.0


PASSIVE_AGGRESSIVE_RULES = {"hinge": passive_aggressive_rule, "squared_hinge": squared_passive_aggressive_rule}


def two_classes(K, labels, costs, orders, rule, budget=np.inf):
    """Algorithms 2, 3 and 4 of the thesis; the coefficients after every example."""
    y, alpha, support, history = 2.0 * labels - 1, np.zeros(len(labels)), [], []
    for t in np.concatenate(orders):
        m = y[t] * (alpha @ K[t])
        step = rule(m, K[t, t], costs[t])
        if step > 0:
            alpha[t] += y[t] * step
            support.extend([] if t in support else [t])
        if len(support) > budget:
            f = K @ alpha
            out = max(support, key=lambda i: y[i] * (f[i] - alpha[i] * K[i, i]))
            support.remove(out)
            alpha[out] = 0
        history.append(alpha.copy())
    return np.array(history)[:, :, None]


def more_classes(K, labels, costs, orders, rule, budget=np.inf, arrived=0):
    """Return the coefficients after each example, with a column for each class that has arrived."""
    n, k = len(labels), labels.max() + 1
    beta, support, history = np.zeros((n, k)), [], []

    def margin(scores, label):
        wrong = [r for r in range(arrived) if r != label]
        if not wrong:
            return np.inf, -1
        r = max(wrong, key=lambda r: scores[r])
        return scores[label] - scores[r], r

    for t in np.concatenate(orders):
        arrived = max(arrived, labels[t] + 1)
        m, r = margin(K[t] @ beta, labels[t])
        step = rule(m, 2 * K[t, t], costs[t])
        if step > 0:
            beta[t, labels[t]] += step
            beta[t, r] -= step
            support.extend([] if t in support else [t])
        if len(support) > budget:
            scores = K @ beta
            out = max(support, key=lambda i: margin(scores[i] - beta[i] * K[i, i], labels[i])[0])
            support.remove(out)
            beta[out] = 0
        history.append(beta.copy())
    return np.array(history)


def reference(K, labels, *rest, **options):
    return (two_classes if labels.max() < 2 else more_classes)(K, labels, *rest, **options)
