"""Vowpal Wabbit (vowpalwabbit): its own text format, read in the first pass and cached in binary for the others.

It has no squared hinge loss. Reading is a part of training, in a thread of its own, and counts. Its default steps are
adapted to each feature, but its regularisation is not, and so they minimise something else; these are plain ones
(`--sgd`), whose primal is lower after every number of passes that was tried. The learning rate is between 10 and 100,
which do equally well on the ill-conditioned problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from studies.rivals.libraries.solver import GradientSet, GradientSolver, LinearFit
from studies.trial import Stopwatch

TEXT = "train.vw"
LEARNING_RATE = 30
_ROWS_AT_ONCE = 1000
_SMALL = 0.01  # a value small enough that no score is cut off


@dataclass(frozen=True)
class Vowpal(GradientSolver):
    requires: str = "vowpalwabbit"
    copies_input: bool = True
    losses: tuple[str, ...] = ("hinge",)

    def fit(self, data: GradientSet, effort: float) -> LinearFit:
        from vowpalwabbit import Workspace

        classes = len(np.unique(data.y))
        bits = max(18, int(np.ceil(np.log2(data.X.shape[1] * (classes if classes > 2 else 1)))))
        options = {
            "data": data.text,
            "cache_file": data.text.with_suffix(".cache"),
            "passes": int(effort),
            "loss_function": data.loss,
            "l2": data.alpha,
            "learning_rate": LEARNING_RATE,
            "bit_precision": bits,
            **({"oaa": classes} if classes > 2 else {}),
        }
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        with Stopwatch() as watch:
            model = Workspace(arg_list=[*words, "--sgd", "--kill_cache", "--noconstant", "--holdout_off", "--quiet"])
        return LinearFit(watch, lambda: _weights(model, data.X.shape[1], classes))


def _weights(model: Any, features: int, classes: int) -> NDArray[np.float64]:
    """By the scores of single features: stored weights lack the factor of the regularisation. None of many classes."""
    if classes > 2:
        return np.zeros((classes, 0))
    scores = [model.predict(f"| {feature}:{_SMALL}") for feature in range(features)]
    return np.array([scores], dtype=np.float64) / _SMALL


def write(path: Path, X: Any, y: NDArray[np.int64]) -> None:
    """The examples in its format; classes of more than two are numbered from one."""
    labels = y + 1 if len(np.unique(y)) > 2 else y
    with path.open("w") as file:
        file.writelines(_lines(X, labels))


def _lines(X: Any, labels: NDArray[np.int64]) -> Iterator[str]:
    for first in range(0, len(labels), _ROWS_AT_ONCE):
        rows = sparse.csr_matrix(X[first : first + _ROWS_AT_ONCE])
        features, values = rows.indices.tolist(), rows.data.tolist()
        for row, label in enumerate(labels[first : first + _ROWS_AT_ONCE].tolist()):
            span = slice(rows.indptr[row], rows.indptr[row + 1])
            pairs = zip(features[span], values[span], strict=True)
            yield f"{label} | " + " ".join(f"{at}:{value:.6g}" for at, value in pairs) + "\n"


GRADIENT = (Vowpal("vowpal"),)
