"""What the measured processes do: train once and test, or train the other ways a study asks for."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from studies import storage, trial
from studies.rivals.libraries import KINDS, larank, vowpal
from studies.rivals.libraries.solver import CSR, GradientSet, TaggerFit, TrainingSet, timed_fit
from studies.rivals.products import time_products
from studies.trial import Stopwatch, imported

EPOCHS = 10
TRIALS = 3


def _solver(request: dict[str, Any]) -> Any:
    """The one asked for; `settings` are other parameters of it."""
    solver: Any = KINDS[request["kind"]][request["solver"]]
    return solver.having(**request["settings"]) if request.get("settings") else solver


def _read(request: dict[str, Any], dtype: str) -> TrainingSet:
    """The training set that a study has stored, in the precision it demands or else in the one that is liked.

    C may be another than the problem's.
    """
    folder, about = Path(request["folder"]), storage.about(Path(request["folder"]))
    X = storage.matrix(folder, f"X_train_{request.get('form', CSR)}").astype(about["dtype"] or dtype, copy=False)
    return TrainingSet(X, storage.array(folder, "y_train"), request.get("C") or about["C"], about["gamma"])


def _train(request: dict[str, Any], solver: Any, fit: Callable[[TrainingSet], Any]) -> tuple[Any, Any, dict[str, Any]]:
    return trial.train(solver.requires, lambda: _read(request, solver.dtype), fit)


def _error(request: dict[str, Any], dtype: str, predict: Callable[[Any], Any]) -> tuple[float, Stopwatch]:
    """The share of the test set that is predicted wrongly, and the time it takes."""
    folder = Path(request["folder"])
    X = storage.matrix(folder, f"X_test_{request['form']}").astype(storage.about(folder)["dtype"] or dtype, copy=False)
    with Stopwatch() as watch:
        labels = predict(X)
    return float(np.mean(labels != storage.array(folder, "y_test"))), watch


# ---- Linear ----


def fit_linear(request: dict[str, Any]) -> dict[str, Any]:
    """Train once; the weights go to a file."""
    solver = _solver(request)
    _, fitted, figures = _train(request, solver, lambda data: solver.fit(data, request["tolerance"]))
    np.save(request["weights"], fitted.weights())
    return figures


def epoch(request: dict[str, Any]) -> dict[str, Any]:
    """CPU seconds of one full loop of larank and of X @ W by scipy, best of a few interleaved trials."""
    data = _read(request, "float64")
    W = np.ones((data.X.shape[1], int(data.y.max()) + 1), dtype=data.X.dtype)
    settings = {"stop": "violation", "tol": 1e-12, "fit_intercept": False}
    estimator = imported(larank.LINEAR[0].requires)

    def loops(count: int) -> float:
        solver = imported("larank:SDM")(shrinking=False, cooling=False)
        model = estimator("crammer-singer", C=data.C, max_iter=count, solver=solver, random_state=0, **settings)
        return timed_fit(model, data).cpu

    def product() -> float:
        with Stopwatch() as watch:
            for _ in range(EPOCHS):
                data.X @ W
        return watch.cpu / EPOCHS

    trials = [(loops(1), loops(1 + EPOCHS), product()) for _ in range(TRIALS)]
    one, many, bare = (min(times) for times in zip(*trials, strict=True))
    return {"epoch": (many - one) / EPOCHS, "product": bare}


def threads(request: dict[str, Any]) -> dict[str, Any]:
    """Wall seconds and passes of the linear solver with one thread and with two, seed by seed in turns."""
    data = _read(request, "float64")
    estimator = imported(larank.LINEAR[0].requires)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    passes: dict[int, list[float]] = {1: [], 2: []}
    gaps = []
    for seed in range(request["repeats"]):
        for n_jobs in seconds:
            model = estimator("crammer-singer", C=data.C, fit_intercept=False, n_jobs=n_jobs, random_state=seed)
            seconds[n_jobs].append(timed_fit(model, data).wall)
            passes[n_jobs].append(model.result_.iterations)
            gaps.append(model.result_.relative_gap)
    alone, together = map(min, seconds.values())
    means = {f"passes_{name}": float(np.mean(passes[n_jobs])) for n_jobs, name in ((1, "alone"), (2, "together"))}
    return {"alone": alone, "together": together, **means, "gap": max(gaps)}


def passes(request: dict[str, Any]) -> dict[str, Any]:
    """Seconds of passes of `PrimalMulticlassSVC`, of the two bare products with X that each has, and the bytes of X."""
    from larank.blocks.workers import Workers
    from larank.linear.primalobjective import PrimalExamples, PrimalLoss, PrimalObjective

    data = _read(request, "float32")
    X, classes = data.X, int(data.y.max()) + 1
    examples = PrimalExamples(X, data.y.astype(np.int32), np.full(len(data.y), data.C), classes)
    workers = Workers(request["threads"])
    loss = PrimalLoss("log_loss", 1.0, 1.0)
    objective = PrimalObjective(examples, loss, None, fit_intercept=True, workers=workers)
    table, out = objective.zeros(), objective.zeros()
    W, G = np.ones((X.shape[1], classes), X.dtype), np.ones((X.shape[0], classes), X.dtype)
    with workers.entered():
        seconds = {
            "evaluation": _least_seconds(lambda: objective.evaluate(table)),
            "product": _least_seconds(lambda: objective.product(table, out)),
        }
    bare = _least_seconds(lambda: (X @ W, X.T @ G))
    return {**seconds, "bare": bare, "bytes": _bytes(X)}


def _least_seconds(work: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(1 + TRIALS):  # the first fetches memory from the system
        with Stopwatch() as watch:
            work()
        seconds.append(watch.wall)
    return min(seconds)


def _bytes(X: Any) -> int:
    return sum(array.nbytes for array in ((X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)))


# ---- Stochastic gradient ----


def fit_gradient(request: dict[str, Any]) -> dict[str, Any]:
    """Train once, with this effort; the weights go to a file."""
    solver, effort = _solver(request), request["effort"]
    read = partial(_gradient_set, request, solver.dtype)
    _, fitted, figures = trial.train(solver.requires, read, lambda data: solver.fit(data, effort))
    np.save(request["weights"], fitted.weights())
    return figures


def product(request: dict[str, Any]) -> dict[str, Any]:
    """Seconds of X times a vector, or a matrix with a column per class, best of a few; and the bytes of X."""
    data = _gradient_set(request, "float32")
    X, classes = data.X, len(np.unique(data.y))
    columns = (classes,) if classes > 2 else ()
    W = np.ones((X.shape[1], *columns), dtype=X.dtype)
    seconds = []
    for _ in range(TRIALS):
        with Stopwatch() as watch:
            for _ in range(EPOCHS):
                X @ W
        seconds.append(watch.wall / EPOCHS)
    return {"seconds": min(seconds), "bytes": _bytes(X)}


def _gradient_set(request: dict[str, Any], dtype: str) -> GradientSet:
    folder = Path(request["folder"])
    X = storage.matrix(folder, "X_train").astype(dtype, copy=False)
    given = {name: request[name] for name in ("loss", "alpha", "formulation")}
    return GradientSet(X, storage.array(folder, "y_train"), **given, text=folder / vowpal.TEXT)


# ---- Kernel, multiclass and binary ----


def fit_kernel(request: dict[str, Any]) -> dict[str, Any]:
    """Train, note the memory, predict the test set, and see what was reached.

    With `products` the bare products are timed where their shapes are known.
    """
    solver, threads = _solver(request), request["threads"]
    data, fitted, figures = _train(request, solver, lambda data: solver.fit(data, threads))
    error, watch = _error(request, solver.dtype, fitted.predict)
    reached = fitted.objectives()
    wanted = request.get("products") and fitted.blocks
    product = time_products(data.X, fitted.blocks, threads) if wanted else None
    return {
        **figures,
        **{"predict": watch.wall, "predict_cpu": watch.cpu, "error": error},
        **{name: int(getattr(fitted, name)) for name in ("support_patterns", "support_vectors")},
        **{"objective": reached.problem, "primal": reached.primal, "dual": reached.dual},
        **{"product": product and product.wall, "product_cpu": product and product.cpu},
    }


def certificate(request: dict[str, Any]) -> dict[str, float]:
    """Seconds and objectives of the certificate of larank's one pass."""
    return larank.ONLINE.certify(_read(request, larank.ONLINE.dtype), request["threads"])


def path(request: dict[str, Any]) -> dict[str, Any]:
    exact = larank.EXACT
    _, _, figures = _train(request, exact, lambda data: exact.path(data, request["threads"], request["costs"]))
    return figures


def search(request: dict[str, Any]) -> dict[str, Any]:
    """Choose C and gamma by cross-validation, train with them, and test."""
    exact, grid = larank.EXACT, {name: request[name] for name in ("method", "costs", "gammas", "folds")}
    _, found, figures = _train(request, exact, lambda data: exact.search(data, request["threads"], **grid))
    return {**figures, "error": _error(request, exact.dtype, found.predict)[0]}


def learn(request: dict[str, Any]) -> dict[str, Any]:
    learner = _solver(request)
    labels, threads = request["labels"], request["threads"]
    _, learned, figures = _train(request, learner, lambda data: learner.learn(data, labels, threads))
    error, _ = _error(request, learner.dtype, learned.predict)
    return {**figures, "labels": learned.labels, "error": error, "support_vectors": int(learned.support_vectors)}


# ---- Sequences ----


def fit_tagger(request: dict[str, Any]) -> dict[str, Any]:
    """Train on a file, note the memory; where there is a file to tag, its tags go to another."""
    solver, folder = _solver(request), Path(request["folder"])
    _, fitted, figures = trial.train(solver.requires, lambda: folder / request["file"], solver.fit)
    if not request.get("test"):
        return figures
    test = folder / request["test"]
    with Stopwatch() as tagging:
        predicted = fitted.tag_file(test)
    Path(request["tags"]).write_text(json.dumps([[str(tag) for tag in tags] for tags in predicted]))
    return {**figures, "tag": tagging.wall, "tag_prepared": _seconds_without_extraction(fitted, test)}


def _seconds_without_extraction(fitted: TaggerFit, path: Path) -> float | None:
    if fitted.prepare is None or fitted.tag_prepared is None:
        return None
    prepared = fitted.prepare(path)
    with Stopwatch() as watch:
        fitted.tag_prepared(prepared)
    return watch.wall
