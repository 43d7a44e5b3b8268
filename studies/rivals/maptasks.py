"""What the measured processes of the comparison of kernel maps do: make features, or learn to classify with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from studies import storage, trial
from studies.rivals.libraries.solver import Fitted
from studies.trial import Stopwatch

RANDOM, GREEDY, NYSTROEM = "larank, random pivots", "larank, greedy pivots", "scikit-learn Nystroem"
EXACT, SDM, SGDQN = "exact kernel machine", "map + LinearMulticlassSVC", "map + LinearSGDClassifier"
_ROWS_AT_ONCE = 20_000  # of features of the test set


@dataclass(frozen=True)
class _Fit(Fitted):
    """The features or the model."""

    made: Any


def features(request: dict[str, Any]) -> dict[str, Any]:
    """Fit a map and transform the training set; the trace error is computed here, alike for all maps."""
    folder, (requires, more) = Path(request["folder"]), _MAPS[request["map"]]
    given = {"n_components": request["components"], "gamma": request["gamma"], "random_state": request["seed"], **more}

    def fit(X: Any) -> _Fit:
        transformer = trial.imported(requires)(**given)
        with Stopwatch() as watch:
            made = transformer.fit_transform(X)
        return _Fit(watch, made)

    _, fitted, figures = trial.train(requires, lambda: storage.array(folder, "X_train"), fit)
    Z = fitted.made
    squares = sum(float(np.square(Z[i : i + 4096], dtype=np.float64).sum()) for i in range(0, len(Z), 4096))
    return {**figures, "trace_error": 1 - squares / len(Z)}  # k(x, x) is 1


_MAPS: Mapping[str, tuple[str, dict[str, Any]]] = {
    RANDOM: ("larank:PivotedCholeskyMap", {}),
    GREEDY: ("larank:PivotedCholeskyMap", {"pivots": "greedy"}),
    NYSTROEM: ("sklearn.kernel_approximation:Nystroem", {}),
}


def classify(request: dict[str, Any]) -> dict[str, Any]:
    """Learn from the training examples, or so many of them, then predict the test set."""
    folder, learn = Path(request["folder"]), _LEARNERS[request["learner"]]

    def read() -> list[Any]:
        return [storage.array(folder, name)[: request["rows"]] for name in ("X_train", "y_train")]

    _, fitted, figures = trial.train("larank:MulticlassSVC", read, lambda data: learn(*data, request))
    X, y = storage.array(folder, "X_test"), storage.array(folder, "y_test")
    parts = [slice(first, first + _ROWS_AT_ONCE) for first in range(0, len(y), _ROWS_AT_ONCE)]
    with Stopwatch() as watch:
        wrong = sum(int((fitted.made.predict(X[part]) != y[part]).sum()) for part in parts)
    return {**figures, "predict": watch.wall, "error": wrong / len(y)}


def _exact(X: Any, y: Any, request: dict[str, Any]) -> _Fit:
    model = trial.imported("larank:MulticlassSVC")(gamma=request["gamma"], C=request["C"], tol=0.01, random_state=0)
    with Stopwatch() as watch:
        model.fit(X, y)
    return _Fit(watch, model, extra={"support": len(model.support_), "gap": model.result_.relative_gap})


def _mapped(X: Any, y: Any, request: dict[str, Any], linear: Any) -> _Fit:
    """A pipeline, step by step, to know how long the map takes."""
    from sklearn.pipeline import make_pipeline

    transformer = trial.imported("larank:PivotedCholeskyMap")(
        n_components=request["components"], gamma=request["gamma"], memory_limit=1e11, random_state=0
    )
    with Stopwatch() as mapping:
        Z = transformer.fit_transform(X)
    with Stopwatch() as watch:
        linear.fit(Z, y)
    del Z
    watch.wall, watch.cpu = watch.wall + mapping.wall, watch.cpu + mapping.cpu
    extra = {"map": mapping.wall, "trace_error": transformer.trace_error_, "rank": transformer.n_components_}
    return _Fit(watch, make_pipeline(transformer, linear), extra=extra)


def _by_dual(X: Any, y: Any, request: dict[str, Any]) -> _Fit:
    linear = trial.imported("larank:LinearMulticlassSVC")(C=request["C"], tol=0.1, max_iter=30, random_state=0)
    return _mapped(X, y, request, linear)


def _by_gradient(X: Any, y: Any, request: dict[str, Any]) -> _Fit:
    alpha = 1 / (request["C"] * len(y))
    linear = trial.imported("larank:LinearSGDClassifier")(alpha=alpha, max_iter=request["epochs"], random_state=0)
    return _mapped(X, y, request, linear)


_LEARNERS = {EXACT: _exact, SDM: _by_dual, SGDQN: _by_gradient}
