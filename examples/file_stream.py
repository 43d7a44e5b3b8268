"""Train on a file larger than the memory allowed for it, then go on with new examples and a class never seen before."""

import tempfile
from pathlib import Path

import numpy as np

from larank import LinearSGDClassifier
from larank.data import load_letter

MEMORY = 2e5  # bytes, for the model and for the blocks of the file

letter = load_letter()
X, y = letter.X_train / 15, letter.y_train
X_test, y_test = letter.X_test / 15, letter.y_test
order = np.random.default_rng(0).permutation(len(y))  # as it must be in a stream: no long runs of one class
today, tomorrow = order[y[order] != "Z"][:12_000], order[-4000:]  # nobody writes a Z today


def tell(when, model):
    error = 1 - model.score(X_test, y_test)
    knows = "with" if "Z" in model.classes_ else "without"
    print(f"{when}: {len(model.classes_)} classes, {knows} Z, test error {error:.1%}")


with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "letters.csv"
    with file.open("w") as lines:
        for features, label in zip(X[today].tolist(), y[today], strict=True):
            lines.write(",".join([*(f"{value:.6g}" for value in features), label]) + "\n")
    print(f"a file of {file.stat().st_size / 1e6:.1f} MB, and {MEMORY / 1e6:.1f} MB to read it with")
    model = LinearSGDClassifier("log_loss", alpha=1e-5, max_iter=5, memory_limit=MEMORY, random_state=0)
    model.fit(file)

result = model.result_
print(f"{result.status} after {result.iterations:.0f} passes, {result.operations['visits']} visits to examples")
print(f"objective about {result.primal:.2f}, an estimate made on the way: {not result.exact}")
tell("today", model)

for batch in np.array_split(tomorrow, 8):
    model.partial_fit(X[batch], y[batch])
tell("tomorrow", model)

is_z = y_test == "Z"
print(f"errors on Z alone: {np.mean(model.predict(X_test[is_z]) != 'Z'):.1%}")
print(f"probability of a Z on its images: {model.predict_proba(X_test[is_z])[:, -1].mean():.2f}")
