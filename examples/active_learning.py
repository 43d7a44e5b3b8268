"""Label few examples, the right ones: six letters that look alike, chosen by the model or at random."""

import numpy as np

from larank import ActiveLearner, LaRankClassifier
from larank.active import Active, AutoActive, Random
from larank.data import load_letter

letter = load_letter()
train, test = (np.isin(y, list("BDEFPR")) for y in (letter.y_train, letter.y_test))
X, y = letter.X_train[train].astype(np.float32), letter.y_train[train]
X_test, y_test = letter.X_test[test].astype(np.float32), letter.y_test[test]

STOPS = (50, 100, 150, 300)
SELECTIONS = {
    "at random": Random(budget=STOPS[-1]),
    "the best of 50": Active(sample_size=50, budget=STOPS[-1]),
    "a few near the boundary": AutoActive(budget=STOPS[-1]),
    "the best of all": Active(sample_size=None, budget=STOPS[-1]),
}


def errors(selection, seed):
    """The test error after 50, 100, ... labels."""
    model = LaRankClassifier(C=10, gamma=0.025, n_jobs=1, random_state=seed)
    learner = ActiveLearner(model, X, selection=selection, random_state=seed)
    found = []
    while learner.remaining:
        index, x = learner.query()
        learner.teach(x, y[index])  # instead of y[index], ask a person who looks at x
        if learner.labels_used in STOPS:
            found.append(1 - model.score(X_test, y_test))
    return found


print(f"{len(X)} examples without labels; test error in % after so many of them were labelled, mean of three runs")
print(f"{'':24}" + "".join(f"{labels:>8}" for labels in STOPS))
for name, selection in SELECTIONS.items():
    means = 100 * np.mean([errors(selection, seed) for seed in range(3)], axis=0)
    print(f"{name:24}" + "".join(f"{error:8.1f}" for error in means))
