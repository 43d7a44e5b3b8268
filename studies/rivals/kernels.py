"""What comparisons of kernel solvers share, with many classes or two: problems, runs, and rows of what was reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from studies import datasets, storage
from studies.measure import Measurement, ask
from studies.rivals.contest import Entrant, Unfinished, entrants, fastest, runs_in_turns
from studies.rivals.libraries import KINDS
from studies.rivals.libraries.solver import CSR, DENSE
from studies.study import Say, Scope

TASKS = "studies.rivals.tasks"
THREADS = 2
REFERENCE = "larank"
QUICK_TRAIN, QUICK_TEST = 1500, 500

FORMS: dict[str, tuple[str, ...]] = {
    "waveform": (DENSE,),
    "banana": (DENSE,),
    "reuters": (CSR, DENSE),
    "usps": (DENSE,),
    "usps-noise": (DENSE,),
    "adult": (CSR, DENSE),
    "covtype100k": (DENSE,),
    "mnist8": (DENSE, CSR),
}
"""The binary problems, and which forms are worth a try: two where many values are zero, or few features are used."""


# ---- Problems ----


@dataclass(frozen=True)
class Problem:
    """Training and test examples in float32, by form, their labels, the kernel's gamma and C.

    `dtype` is the precision everybody is given; where there is none, each solver has the one it likes.
    """

    name: str
    X_train: Mapping[str, Any]
    y_train: NDArray[np.int64]
    X_test: Mapping[str, Any]
    y_test: NDArray[np.int64]
    C: float
    gamma: float
    dtype: str | None = None

    @property
    def forms(self) -> tuple[str, ...]:
        """Those there are."""
        return tuple(self.X_train)

    def first(self, examples: int | None) -> Problem:
        """The same with so many training examples at most."""
        X_train = {form: X[:examples] for form, X in self.X_train.items()}
        return replace(self, X_train=X_train, y_train=self.y_train[:examples])

    @property
    def density(self) -> float:
        """The share of values that are not zero, where there is a CSR form; otherwise 1."""
        X = self.X_train.get(CSR)
        return 1.0 if X is None else X.nnz / (X.shape[0] * X.shape[1])


def load(kind: str, name: str, quick: bool) -> Problem:
    """Of the kind "kernel", one of `datasets.KERNEL`, dense in float32; of the kind "binary", one of `FORMS`."""
    if kind == "kernel":
        return _problem(name, datasets.KERNEL, (DENSE,), "float32", quick)
    return _problem(name, datasets.BINARY, FORMS[name], None, quick)


def _problem(
    name: str, known: Mapping[str, datasets.Problem], forms: Sequence[str], dtype: str | None, quick: bool
) -> Problem:
    data, given = datasets.load(name, known), known[name]
    data = data.drawn(QUICK_TRAIN, QUICK_TEST) if quick else data
    X_train, X_test = ({form: in_form(X, form) for form in forms} for X in (data.X_train, data.X_test))
    return Problem(name, X_train, data.y_train, X_test, data.y_test, given.C, given.gamma, dtype)


def in_form(X: Any, form: str) -> Any:
    """Dense or CSR."""
    if form == DENSE:
        return X.toarray() if sparse.issparse(X) else X
    if sparse.issparse(X):
        return X
    # The kernel depends on differences alone: moved to where the background of the images is zero.
    return sparse.csr_matrix(X - X.min())


def stored(problem: Problem) -> AbstractContextManager[Path]:
    """Both parts in all forms, for the children."""
    arrays = {"y_train": problem.y_train, "y_test": problem.y_test}
    for part, forms in (("X_train", problem.X_train), ("X_test", problem.X_test)):
        for form, X in forms.items():
            arrays |= storage.matrix_arrays(f"{part}_{form}", X)
    return storage.stored(problem.name, arrays, {"C": problem.C, "gamma": problem.gamma, "dtype": problem.dtype})


# ---- Runs ----


@dataclass(frozen=True)
class KernelRun(Measurement):
    """One training and one prediction of the test set, in wall-clock seconds; `product` is the bare product's.

    `objective` is what `primal` and `dual` are of.
    """

    predict: float
    predict_cpu: float
    error: float
    support_patterns: int
    support_vectors: int
    objective: str
    primal: float | None
    dual: float
    product: float | None = None
    product_cpu: float | None = None


@dataclass(frozen=True)
class Certificate:
    """What computing it took, and the objectives it found."""

    seconds: float
    primal: float
    dual: float


def measure_fit(folder: Path, kind: str, entrant: Entrant, limit: float | None, **details: Any) -> KernelRun:
    """Train and predict once in a process of its own; `details` as `tasks.fit_kernel` takes them."""
    asked = {"kind": kind, "solver": entrant.solver, "form": entrant.form, "python": entrant.python, **details}
    return KernelRun(**ask(TASKS, "fit_kernel", folder, THREADS, limit, **asked))


def measure_certificate(folder: Path, entrant: Entrant, limit: float | None) -> Certificate:
    """Train larank once more, with the certificate."""
    asked = {"form": entrant.form, "python": entrant.python}
    return Certificate(**ask(TASKS, "certificate", folder, THREADS, limit, **asked))


def all_runs(
    kind: str, problem: Problem, folder: Path, scope: Scope, say: Say, **details: Any
) -> tuple[dict[Entrant, list[KernelRun]], list[Unfinished]]:
    """Of all entrants on one problem, each in the forms that may be its fastest."""
    solvers = KINDS[kind]
    measures = {
        (taker := Entrant(entrant.solver, form, entrant.python)): partial(
            measure_fit, folder, kind, taker, scope.limit, **details
        )
        for entrant in entrants(scope, solvers, say)
        for form in solvers[entrant.solver].forms(problem)
    }
    return runs_in_turns(problem.name, measures, scope, say, _told)


def _told(run: KernelRun) -> str:
    return f"trained in {run.wall:.2f} s, predicted in {run.predict:.2f} s, error {100 * run.error:.2f} %"


# ---- Rows ----


@dataclass(frozen=True)
class Row:
    """One solver on one problem in one form: the shortest training and the shortest prediction of its runs.

    `train_ratio` and `predict_ratio` are to larank, `train_over` has the training time over that of each rival named;
    all in their fastest form. `is_fastest` says whether this is the solver's fastest form. `objective` is what `primal`
    and `dual` are of; `short_of_best` is how far the dual lies below the largest of that objective, as a share of it.
    `kernel_values`, `breakdown` and `operations` are known of larank alone.
    """

    problem: str
    solver: str
    form: str
    is_fastest: bool
    runs: int
    train: float
    train_cpu: float
    train_ratio: float | None
    train_over: Mapping[str, float]
    predict: float
    predict_cpu: float
    predict_ratio: float | None
    error: float
    support_patterns: int
    support_vectors: int
    objective: str
    primal: float | None
    dual: float
    short_of_best: float
    kernel_values: int | None
    breakdown: Mapping[str, float]
    operations: Mapping[str, int]
    peak: int
    peak_without_input: int
    conversion: float

    @property
    def relative_gap(self) -> float | None:
        """(primal - dual) / primal, where both are known."""
        return (self.primal - self.dual) / self.primal if self.primal else None


def rows_of(
    kind: str,
    problem: str,
    runs: Mapping[Entrant, Sequence[KernelRun]],
    rivals: Sequence[str],
    certificates: Mapping[Entrant, Certificate],
) -> list[Row]:
    """A row for each entrant, with what depends on the others; certificates were computed apart from training."""
    seconds, test = _least(runs, "wall"), _least(runs, "predict")
    best: dict[str, float] = {}
    for run in (run for found in runs.values() for run in found):
        best[run.objective] = max(run.dual, best.get(run.objective, run.dual))

    def row(entrant: Entrant, found: Sequence[KernelRun]) -> Row:
        trained, predicted = fastest(found), min(found, key=lambda run: run.predict)
        reached = certificates.get(entrant, trained)
        highest, extra = best[trained.objective], trained.extra
        return Row(
            problem=problem,
            solver=entrant.name,
            form=entrant.form,
            is_fastest=trained.wall <= seconds[entrant.name],
            runs=len(found),
            train=trained.wall,
            train_cpu=trained.cpu,
            train_ratio=trained.wall / seconds[REFERENCE] if REFERENCE in seconds else None,
            train_over={rival: trained.wall / seconds[rival] for rival in rivals if rival in seconds},
            predict=predicted.predict,
            predict_cpu=predicted.predict_cpu,
            predict_ratio=predicted.predict / test[REFERENCE] if REFERENCE in test else None,
            error=trained.error,
            support_patterns=trained.support_patterns,
            support_vectors=trained.support_vectors,
            objective=trained.objective,
            primal=reached.primal,
            dual=reached.dual,
            short_of_best=(highest - trained.dual) / highest if highest else 0.0,
            kernel_values=extra.get("kernel_values"),
            breakdown=extra.get("breakdown", {}),
            operations=extra.get("operations", {}),
            peak=min(run.peak for run in found),
            peak_without_input=min(run.own_peak(KINDS[kind][entrant.solver].copies_input) for run in found),
            conversion=extra.get("conversion_wall", 0.0),
        )

    return [row(entrant, found) for entrant, found in runs.items()]


def _least(runs: Mapping[Entrant, Sequence[KernelRun]], name: str) -> dict[str, float]:
    """The least seconds of each solver, in whatever form."""
    least: dict[str, float] = {}
    for entrant, found in runs.items():
        seconds = min(getattr(run, name) for run in found)
        least[entrant.name] = min(seconds, least.get(entrant.name, seconds))
    return least
