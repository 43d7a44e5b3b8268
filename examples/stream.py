"""Learn from a stream in batches: a class appears late, and the model goes through a file half-way."""

import tempfile
from pathlib import Path

import numpy as np

import larank
from larank import LaRankClassifier
from larank.data import load_letter

letter = load_letter()
X, y = letter.X_train[:8000].astype(np.float32), letter.y_train[:8000]
X_test, y_test = letter.X_test.astype(np.float32), letter.y_test

late = y == "Z"  # as if nobody had written a Z in the first half
X, y = np.concatenate([X[~late], X[late]]), np.concatenate([y[~late], y[late]])
order = np.concatenate([np.arange(4000), 4000 + np.random.default_rng(0).permutation(len(y) - 4000)])
batches = np.array_split(order, 8)


def tell(number, model):
    error = 1 - model.score(X_test, y_test)
    knows = "with" if "Z" in model.classes_ else "without"
    print(
        f"batch {number}: {len(model.classes_)} classes, {knows} Z, {len(model.support_)} support patterns, "
        f"test error {error:.1%}"
    )


model = LaRankClassifier(C=10, gamma=0.025, random_state=0)  # with gamma="scale" the first batch would decide
for number, batch in enumerate(batches[:4], start=1):
    model.partial_fit(X[batch], y[batch])
    tell(number, model)

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "stream.larank"
    larank.save(model, file)
    again = larank.load(file)
    same = (again.predict(X_test) == model.predict(X_test)).all()
    print(f"saved {file.stat().st_size} bytes and loaded: same predictions {same}")

for number, batch in enumerate(batches[4:], start=5):
    again.partial_fit(X[batch], y[batch])
    tell(number, again)
print(f"errors on Z alone: {np.mean(again.predict(X_test[y_test == 'Z']) != 'Z'):.1%}")
