"""Solve a kernel machine to the optimum, see what one pass left to gain, and choose C on a path of exact models."""

import numpy as np
from sklearn.model_selection import train_test_split

from larank import LaRankClassifier, MulticlassSVC
from larank.data import load_letter

letter = load_letter()
X, y = letter.X_train[:6000].astype(np.float32), letter.y_train[:6000]  # float32 is faster
X_test, y_test = letter.X_test.astype(np.float32), letter.y_test

for model in (LaRankClassifier(C=10, gamma=0.025, random_state=0), MulticlassSVC(C=10, gamma=0.025, random_state=0)):
    result = model.fit(X, y).result_
    print(
        f"{type(model).__name__:16} test error {1 - model.score(X_test, y_test):.2%}, {result.status}: "
        f"objective {result.primal:.0f}, no model is below {result.dual:.0f}; "
        f"{result.support_patterns} support patterns"
    )
print("seconds: " + ", ".join(f"{part} {seconds:.2f}" for part, seconds in result.breakdown.items()))

X_train, X_valid, y_train, y_valid = train_test_split(X, y, test_size=0.25, random_state=0)
path = MulticlassSVC(gamma=0.025, tol=0.01, random_state=0).path(X_train, y_train, Cs=[0.1, 1, 10, 100])
for step in path:
    error, result = 1 - step.score(X_valid, y_valid), step.result_
    print(
        f"C = {step.C:5g}: validation error {error:.2%}, relative gap {result.relative_gap:.1e}, "
        f"{result.support_patterns} support patterns"
    )
best = max(path, key=lambda step: step.score(X_valid, y_valid))
print(f"best C: {best.C:g}, test error {1 - best.score(X_test, y_test):.2%}")
