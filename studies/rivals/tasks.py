"""What the measured processes do: train once and test, or train the other ways a study asks for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from studies import storage, trial
from studies.rivals.libraries import KINDS, larank, vowpal
from studies.rivals.libraries.solver import CSR, GradientSet, TaggerFit, TrainingSet
from studies.rivals.products import time_products
from studies.trial import Stopwatch, imported

EPOCHS = 10
TRIALS = 3


def _solver(request: dict[str, Any]) -> Any:
    """The one asked for; `settings` are other parameters of it."""
    solver: Any = KINDS[request["kind"]][request["solver"]]
    return solver.having(**request["settings"]) if request.get("settings") else solver


def _read(folder: Path, form: str, dtype: str) -> TrainingSet:
    """The training set that a study has stored, in the precision it demands or else in the one that is liked."""
    about = storage.about(folder)
    X = storage.matrix(folder, f"X_train_{form}").astype(about["dtype"] or dtype, copy=False)
    return TrainingSet(X, storage.array(folder, "y_train"), about["C"], about["gamma"])


def _test(folder: Path, form: str, dtype: str) -> tuple[Any, Any]:
    X = storage.matrix(folder, f"X_test_{form}")
    return X.astype(storage.about(folder)["dtype"] or dtype, copy=False), storage.array(folder, "y_test")


# ---- Linear ----


def fit_linear(request: dict[str, Any]) -> dict[str, Any]:
    """Train once; the weights go to a file."""
    solver, folder = _solver(request), Path(request["folder"])
    _, fitted, figures = trial.train(
        solver.requires,
        lambda: _read(folder, request.get("form", CSR), solver.dtype),
        lambda data: solver.fit(data, request["tolerance"]),
    )
    np.save(request["weights"], fitted.weights())
    return figures


def epoch(request: dict[str, Any]) -> dict[str, Any]:
    """CPU seconds of one full loop of larank and of X @ W by scipy, best of a few interleaved trials."""
    data = _read(Path(request["folder"]), "csr", "float64")
    W = np.ones((data.X.shape[1], int(data.y.max()) + 1), dtype=data.X.dtype)
    settings = {"stop": "violation", "tol": 1e-12, "shrinking": False, "cooling": False, "fit_intercept": False}
    estimator = imported(larank.LINEAR[0].requires)

    def loops(count: int) -> float:
        model = estimator("crammer-singer", C=data.C, max_iter=count, random_state=0, **settings)
        with Stopwatch() as watch:
            model.fit(data.X, data.y)
        return watch.cpu

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
    data = _read(Path(request["folder"]), "csr", "float64")
    estimator = imported(larank.LINEAR[0].requires)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    passes: dict[int, list[float]] = {1: [], 2: []}
    gaps = []
    for seed in range(request["repeats"]):
        for n_jobs in seconds:
            model = estimator("crammer-singer", C=data.C, fit_intercept=False, n_jobs=n_jobs, random_state=seed)
            with Stopwatch() as watch:
                model.fit(data.X, data.y)
            seconds[n_jobs].append(watch.wall)
            passes[n_jobs].append(model.result_.iterations)
            gaps.append(model.result_.relative_gap)
    alone, together = (min(seconds[n_jobs]) for n_jobs in seconds)
    means = {f"passes_{name}": float(np.mean(passes[n_jobs])) for n_jobs, name in ((1, "alone"), (2, "together"))}
    return {"alone": alone, "together": together, **means, "gap": max(gaps)}


def passes(request: dict[str, Any]) -> dict[str, Any]:
    """Seconds of passes of `PrimalMulticlassSVC`, of the two bare products with X that each has, and the bytes of X."""
    from larank.blocks.workers import Workers
    from larank.linear.primalobjective import Examples, PrimalLoss, PrimalObjective

    data = _read(Path(request["folder"]), request["form"], "float32")
    X, classes = data.X, int(data.y.max()) + 1
    examples = Examples(X, data.y.astype(np.int32), np.full(len(data.y), data.C), classes)
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
    solver = _solver(request)
    _, fitted, figures = trial.train(
        solver.requires,
        lambda: _gradient_set(request, solver.dtype),
        lambda data: solver.fit(data, request["effort"]),
    )
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

    `C` may be another than the problem's; with `products` the bare products are timed where their shapes are known.
    """
    solver, folder, form, threads = _solver(request), Path(request["folder"]), request["form"], request["threads"]

    def read() -> TrainingSet:
        data = _read(folder, form, solver.dtype)
        return replace(data, C=request.get("C") or data.C)

    data, fitted, figures = trial.train(solver.requires, read, lambda data: solver.fit(data, threads))
    X, y = _test(folder, form, solver.dtype)
    with Stopwatch() as watch:
        labels = fitted.predict(X)
    reached = fitted.objectives()
    wanted = request.get("products") and fitted.blocks
    product = time_products(data.X, fitted.blocks, threads) if wanted else None
    return {
        **figures,
        "predict": watch.wall,
        "predict_cpu": watch.cpu,
        "error": float(np.mean(labels != y)),
        "support_patterns": int(fitted.support_patterns),
        "support_vectors": int(fitted.support_vectors),
        "objective": reached.problem,
        "primal": reached.primal,
        "dual": reached.dual,
        "product": product.wall if product else None,
        "product_cpu": product.cpu if product else None,
    }


def certificate(request: dict[str, Any]) -> dict[str, float]:
    """Seconds and objectives of the certificate of larank's one pass."""
    data = _read(Path(request["folder"]), request["form"], larank.ONLINE.dtype)
    return larank.ONLINE.certify(data, request["threads"])


def path(request: dict[str, Any]) -> dict[str, Any]:
    """Train the exact solver for several values of C."""
    folder, threads, costs = Path(request["folder"]), request["threads"], request["costs"]
    _, _, figures = trial.train(
        larank.EXACT.requires,
        lambda: _read(folder, request["form"], larank.EXACT.dtype),
        lambda data: larank.EXACT.path(data, threads, costs),
    )
    return figures


def search(request: dict[str, Any]) -> dict[str, Any]:
    """Choose C and gamma by cross-validation, train with them, and test."""
    folder, form = Path(request["folder"]), request["form"]
    grid = {"costs": request["costs"], "gammas": request["gammas"], "folds": request["folds"]}
    _, found, figures = trial.train(
        larank.EXACT.requires,
        lambda: _read(folder, form, larank.EXACT.dtype),
        lambda data: larank.EXACT.search(data, request["threads"], request["method"], **grid),
    )
    X, y = _test(folder, form, larank.EXACT.dtype)
    return {**figures, "error": float(np.mean(found.predict(X) != y))}


def learn(request: dict[str, Any]) -> dict[str, Any]:
    """Learn from so many labels, then test."""
    folder, form, learner = Path(request["folder"]), request["form"], _solver(request)
    _, learned, figures = trial.train(
        learner.requires,
        lambda: _read(folder, form, learner.dtype),
        lambda data: learner.learn(data, request["labels"], request["threads"]),
    )
    X, y = _test(folder, form, learner.dtype)
    error = float(np.mean(learned.predict(X) != y))
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
