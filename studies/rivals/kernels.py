"""What comparisons of kernel solvers share, with many classes or two: problems, runs, and rows of what was reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from studies import datasets, storage
from studies.measure import Measurement, ask
from studies.rivals.contest import Entrant, entrants, fastest, least, runs_in_turns, taken
from studies.rivals.libraries import KINDS
from studies.rivals.libraries.solver import CSR, DENSE
from studies.study import Findings, Say, Scope
from studies.tables import MEGABYTE, column, derived

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
    is_kernel = kind == "kernel"
    known, forms = (datasets.KERNEL, (DENSE,)) if is_kernel else (datasets.BINARY, FORMS[name])
    data, given = datasets.load(name, known), known[name]
    data = data.drawn(QUICK_TRAIN, QUICK_TEST) if quick else data
    X_train, X_test = ({form: in_form(X, form) for form in forms} for X in (data.X_train, data.X_test))
    shared = "float32" if is_kernel else None
    return Problem(name, X_train, data.y_train, X_test, data.y_test, given.C, given.gamma, shared)


def in_form(X: Any, form: str) -> Any:
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
        arrays |= {f"{part}_{form}": X for form, X in forms.items()}
    return storage.stored(problem.name, arrays, {"C": problem.C, "gamma": problem.gamma, "dtype": problem.dtype})


def problems(kind: str, scope: Scope, examples: int | None = None) -> Iterator[tuple[Problem, Path]]:
    """All problems of the scope, or so many examples of each, and the folder in which one is stored meanwhile."""
    for name in scope.datasets:
        problem = load(kind, name, scope.quick).first(examples)
        with stored(problem) as folder:
            yield problem, folder


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
    found: Findings, kind: str, problem: Problem, folder: Path, scope: Scope, say: Say, **details: Any
) -> dict[Entrant, list[KernelRun]]:
    """Of all entrants on one problem, each in the forms that may be its fastest."""
    solvers = KINDS[kind]
    takers = [
        Entrant(entrant.solver, form, entrant.python)
        for entrant in entrants(scope, solvers, say)
        for form in solvers[entrant.solver].forms(problem)
    ]
    measures = {taker: partial(measure_fit, folder, kind, taker, scope.limit, **details) for taker in takers}

    def told(run: KernelRun) -> str:
        return f"trained in {run.wall:.2f} s, predicted in {run.predict:.2f} s, error {100 * run.error:.2f} %"

    return runs_in_turns(found, problem.name, measures, scope, say, told)


# ---- Rows ----


class _WithGap:
    """A row with the objectives of one training."""

    primal: float | None
    dual: float

    @derived("relative gap", ".1e")
    def relative_gap(self) -> float | None:
        """(primal - dual) / primal, where both are known."""
        return (self.primal - self.dual) / self.primal if self.primal else None


@dataclass(frozen=True)
class Row(_WithGap):
    """One solver on one problem in one form: the shortest training and the shortest prediction of its runs.

    `train_ratio` and `predict_ratio` are to larank, `train_over` has the training time over that of each rival named;
    all in their fastest form. `is_fastest` says whether this is the solver's fastest form. `objective` is what `primal`
    and `dual` are of; `short_of_best` is how far the dual lies below the largest of that objective, as a share of it.
    `kernel_values`, `breakdown` and `operations` are known of larank alone.
    """

    problem: str = column("problem")
    solver: str = column("solver")
    form: str = column("data")
    is_fastest: bool
    runs: int = column("runs")
    train: float = column("train s", ".3f")
    train_cpu: float = column("train CPU s", ".3f")
    train_ratio: float | None = column("train ratio", ".2f")
    train_over: Mapping[str, float]
    predict: float = column("predict s", ".3f")
    predict_cpu: float
    predict_ratio: float | None = column("predict ratio", ".2f")
    error: float = column("test error %", ".2f", 100)
    support_patterns: int = column("patterns")
    support_vectors: int = column("vectors")
    objective: str = column("objective")
    primal: float | None = column("primal", ".2f")
    dual: float = column("dual", ".2f")
    short_of_best: float = column("short of best", ".1e")
    kernel_values: int | None = column("million kernel values", ".1f", 1e-6)
    breakdown: Mapping[str, float]
    operations: Mapping[str, int]
    peak: int = column("peak MB", ".0f", 1e-6)
    peak_without_input: int = column("own MB", ".0f", 1e-6)
    conversion: float


def rows_of(
    kind: str,
    problem: str,
    runs: Mapping[Entrant, Sequence[KernelRun]],
    rivals: Sequence[str],
    certificates: Mapping[Entrant, Certificate],
) -> list[Row]:
    """A row for each entrant, with what depends on the others; certificates were computed apart from training."""
    seconds, test = _least_of_all_forms(runs, "wall"), _least_of_all_forms(runs, "predict")
    best: dict[str, float] = {}
    for run in (run for found in runs.values() for run in found):
        best[run.objective] = max(run.dual, best.get(run.objective, run.dual))

    def row(entrant: Entrant, found: Sequence[KernelRun]) -> Row:
        trained, predicted = fastest(found), min(found, key=lambda run: run.predict)
        reached = certificates.get(entrant, trained)
        highest, extra = best[trained.objective], trained.extra
        return Row(
            problem,
            solver=entrant.name,
            form=entrant.form,
            is_fastest=trained.wall <= seconds[entrant.name],
            runs=len(found),
            train=trained.wall,
            train_cpu=trained.cpu,
            train_ratio=trained.wall / seconds[REFERENCE] if REFERENCE in seconds else None,
            train_over={rival: trained.wall / seconds[rival] for rival in rivals if rival in seconds},
            predict_ratio=predicted.predict / test[REFERENCE] if REFERENCE in test else None,
            short_of_best=(highest - trained.dual) / highest if highest else 0.0,
            kernel_values=extra.get("kernel_values"),
            breakdown=extra.get("breakdown", {}),
            operations=extra.get("operations", {}),
            peak=least(found, "peak"),
            peak_without_input=min(run.own_peak(KINDS[kind][entrant.solver].copies_input) for run in found),
            conversion=extra.get("conversion_wall", 0.0),
            **taken(predicted, "predict", "predict_cpu"),
            **taken(trained, "error", "support_patterns", "support_vectors", "objective"),
            **taken(reached, "primal", "dual"),
        )

    return [row(entrant, found) for entrant, found in runs.items()]


def _least_of_all_forms(runs: Mapping[Entrant, Sequence[KernelRun]], name: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for entrant, some in runs.items():
        found[entrant.name] = min(least(some, name), found.get(entrant.name, math.inf))
    return found


# ---- One solver, trained in several ways ----


@dataclass(frozen=True)
class Way:
    """One way to train, in words, with its memory limit in bytes; `yardstick` is the way its time is compared with.

    `given` is what else makes it this way.
    """

    training: str
    limit: float
    yardstick: str
    measure: Callable[[], KernelRun]
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class WayRow(_WithGap):
    """The shortest training and the smallest peak of the runs of one way; `ratio` is to the time of its yardstick.

    `peak` is that of the resident set, above its level when the data were loaded.
    """

    problem: str = column("problem")
    training: str = column("training")
    limit: float = column("memory_limit MB", ".0f", 1e-6)
    runs: int = column("runs")
    train: float = column("train s", ".3f")
    train_cpu: float = column("train CPU s", ".3f")
    ratio: float | None = column("ratio", ".2f")
    peak: int = column("peak MB", ".0f", 1e-6)
    kernel_values: int = column("million kernel values", ".1f", 1e-6)
    error: float = column("test error %", ".2f", 100)
    primal: float | None
    dual: float = column("dual", ".2f")
    support_patterns: int = column("patterns")
    support_vectors: int = column("vectors")
    breakdown: Mapping[str, float]
    given: Mapping[str, Any]


def compare_ways(found: Findings, problem: str, ways: Sequence[Way], scope: Scope, say: Say) -> None:
    """Add a row for each of the ways, and what failed; they take turns."""

    def told(run: KernelRun) -> str:
        return f"{run.wall:.2f} s, {run.own_peak(copies_input=True) / MEGABYTE:.0f} MB"

    def row(way: Way, mine: Sequence[KernelRun]) -> WayRow:
        best = fastest(mine)
        return WayRow(
            problem,
            **taken(way, "training", "limit", "given"),
            runs=len(mine),
            train=best.wall,
            train_cpu=best.cpu,
            ratio=best.wall / fastest(runs[way.yardstick]).wall if way.yardstick in runs else None,
            peak=min(run.own_peak(copies_input=True) for run in mine),
            **{name: best.extra[name] for name in ("kernel_values", "breakdown")},
            **taken(best, "error", "primal", "dual", "support_patterns", "support_vectors"),
        )

    runs = runs_in_turns(found, problem, {way.training: way.measure for way in ways}, scope, say, told)
    found.add(rows=[row(way, runs[way.training]) for way in ways if way.training in runs])
