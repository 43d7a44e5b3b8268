"""LETTER in a single pass, and what the certificate says about it."""

import numpy as np

from larank import LaRankClassifier
from larank.data import load_letter

letter = load_letter()
X, X_test = letter.X_train.astype(np.float32), letter.X_test.astype(np.float32)  # float32 is faster

model = LaRankClassifier(C=10, gamma=0.025, max_iter=1, random_state=0)
model.fit(X, letter.y_train, validation=(X_test, letter.y_test))

result = model.result_
print(f"{result.status} after {result.iterations:g} pass, {result.seconds:.1f} s")
print(f"test error {1 - model.score(X_test, letter.y_test):.2%}")
print(f"objective {result.primal:.0f}, no model is below {result.dual:.0f}: at most {result.relative_gap:.0%} lower")
print(f"{result.support_patterns} support patterns, {result.support_vectors} support vectors")
print(f"{result.kernel_values / 1e6:.0f} million kernel values; all pairs would be {len(X) ** 2 / 1e6:.0f} million")
print("operations: " + ", ".join(f"{count} {name}" for name, count in result.operations.items()))
print("on the way:")
for point in [point for point in result.history if point.error is not None][4::5]:
    print(
        f"  {point.iterations:4.0%} of the examples: error {point.error:.2%}, dual {point.dual:.0f}, "
        f"{point.support_patterns} support patterns, {point.kernel_values / 1e6:.0f} million kernel values"
    )
