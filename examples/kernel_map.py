"""A kernel machine with probabilities, by a low-rank map of the kernel: what the map leaves out, and how sure it is."""

import numpy as np
from sklearn.pipeline import make_pipeline

from larank import PivotedCholeskyMap, PrimalMulticlassSVC
from larank.data import load_letter

letter = load_letter()
X_train, y_train = letter.X_train[:5000].astype("float32") / 15, letter.y_train[:5000]
X_test, y_test = letter.X_test.astype("float32") / 15, letter.y_test

for n_components in (100, 300, 1000):
    kernel_map = PivotedCholeskyMap("rbf", gamma=4.0, n_components=n_components, random_state=0)
    model = make_pipeline(kernel_map, PrimalMulticlassSVC(C=10.0, random_state=0))
    model.fit(X_train, y_train)
    error = 1 - model.score(X_test, y_test)
    print(f"{n_components:4d} features: {kernel_map.trace_error_:5.1%} of the kernel left out, test error {error:.2%}")

probabilities = model.predict_proba(X_test)
right = model.predict(X_test) == y_test
for low, high in ((0.0, 0.5), (0.5, 0.9), (0.9, 1.0)):
    sure = (probabilities.max(axis=1) > low) & (probabilities.max(axis=1) <= high)
    print(f"sure by {low:.0%} to {high:.0%}: {np.sum(sure)} letters, {np.mean(right[sure]):.0%} of them right")
