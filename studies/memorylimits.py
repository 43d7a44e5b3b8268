"""`python -m studies memorylimits`: whether training stays within `memory_limit`, and what that costs in time."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import larank
from studies import storage
from studies.datasets import LOGISTIC, is_available, load
from studies.measure import ChildFailedError, TimeoutExceededError, ask
from studies.study import Outcome, Say, Study
from studies.tables import MEGABYTE, Table
from studies.trial import PeakMemory, Stopwatch

LIMITS = (50.0, 200.0, 1000.0)
QUICK_LIMITS = (30.0,)
AMPLE = 1e5  # megabytes: no limit
ALLOWED, ALLOWED_SHARE = 20.0, 0.1  # over the limit, whichever is more
EXAMPLES: Mapping[str, int] = {"mnist": 20_000, "covtype": 30_000, "letter": 16_000}
FEW_EXAMPLES = 8000  # for the estimators that are not of the first three
QUICK_EXAMPLES = 1500
GAMMAS: Mapping[str, float] = {"mnist": 0.02, "covtype": 1.0, "letter": 10.0}
ESTIMATORS = ("LaRankClassifier", "LaSVMClassifier", "MulticlassSVC")
ALL_ESTIMATORS = (
    *ESTIMATORS,
    "HullerClassifier",
    "TrackingSVC",
    "KernelPerceptron",
    "KernelPassiveAggressive",
    "AmbiguousClassifier",
    "PrimalMulticlassSVC",
    "PivotedCholeskyMap",
    "KernelPCAMap",
    "SGDQNClassifier",
)
# Of what they have; without these, maps have a feature for every example.
SETTINGS: Mapping[str, Any] = {
    **{"epochs": 1, "n_jobs": 1, "random_state": 0, "kernel": "rbf"},
    **{"n_components": 500, "basis_size": 1500},
}
NOTE = (
    "Peak: of the resident set while `fit` runs, over its level with the data loaded and the library at work once; one "
    f"thread. Allowed over the limit: {ALLOWED:.0f} MB or {100 * ALLOWED_SHARE:.0f} %, whichever is more. Ratio: CPU "
    "seconds over those without a limit."
)


@dataclass(frozen=True)
class Row:
    """One training; sizes in megabytes. `said` is the error, if there was one."""

    estimator: str
    dataset: str
    examples: int
    limit: float
    peak: float
    cpu: float
    ratio: float | None
    kernel_values: float
    said: str = ""

    @property
    def holds(self) -> bool:
        """Whether the peak is allowed."""
        return self.peak <= self.limit + max(ALLOWED, ALLOWED_SHARE * self.limit)


@dataclass(frozen=True)
class Found(Outcome):
    """All rows."""

    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        """The rows."""
        return {"rows": [asdict(row) | {"holds": row.holds} for row in self.rows]}

    def to_tables(self) -> Sequence[Table]:
        """One."""
        headings = ["estimator", "data", "examples", "limit MB", "peak MB", "holds", "CPU s", "ratio", "10^6 values"]
        table = Table("Peak memory of training under limits", headings)
        for row in self.rows:
            limit = "none" if row.limit >= AMPLE else f"{row.limit:.0f}"
            figures = [limit, f"{row.peak:.0f}", "yes" if row.holds else "NO", f"{row.cpu:.1f}"]
            ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
            table.add(row.estimator, row.dataset, str(row.examples), *figures, ratio, f"{row.kernel_values:.0f}")
        return [table]

    def to_lines(self) -> Sequence[str]:
        """What failed, and what the figures are."""
        failed = [f"{row.estimator}, {row.dataset}, {row.limit:.0f} MB: {row.said}" for row in self.rows if row.said]
        return [*failed, NOTE]


@dataclass(frozen=True)
class _Scope:
    datasets: tuple[str, ...]
    estimators: tuple[str, ...]
    limits: tuple[float, ...]
    examples: int | None
    seconds: float


def train(request: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: train once within the limit, and tell the peak."""
    folder = Path(request["folder"])
    X, y = storage.array(folder, "X"), storage.array(folder, "y")
    kind = getattr(larank, request["estimator"])
    if kind is larank.AmbiguousClassifier:
        y = np.unique(y) == y[:, None]
        y |= np.roll(y, 1, axis=1)  # one candidate is wrong
    known = {name: value for name, value in SETTINGS.items() if name in inspect.signature(kind).parameters}
    gamma = {"gamma": request["gamma"]} if "gamma" in inspect.signature(kind).parameters else {}
    few = dict.fromkeys({"n_components", "basis_size"} & known.keys(), 100)
    model = kind(**{**known, **gamma, **few})
    model.fit(X[:200], y[:200])  # what comes with the first call, of BLAS and imports
    model.set_params(memory_limit=request["megabytes"] * MEGABYTE, **{name: SETTINGS[name] for name in few})
    larank._core.trim_heap()
    memory, said = PeakMemory(), ""
    with Stopwatch() as watch:
        try:
            model.fit(X, y)
        except larank.MemoryLimitError as error:
            said = str(error)
    values = getattr(getattr(model, "result_", None), "kernel_values", None) or 0
    return {"peak": memory.peak() / MEGABYTE, "cpu": watch.cpu, "kernel_values": values / 1e6, "said": said}


def _rows(name: str, estimators: Sequence[str], examples: int, scope: _Scope, say: Say) -> list[Row]:
    data = load(name, LOGISTIC).drawn(examples, 1)
    rows: list[Row] = []
    with storage.stored(name, {"X": data.X_train, "y": data.y_train}, {}) as folder:
        for estimator in estimators:
            ample: float | None = None
            for limit in (AMPLE, *sorted(scope.limits, reverse=True)):
                details = {"estimator": estimator, "megabytes": limit, "gamma": GAMMAS[name]}
                try:
                    found = ask("studies.memorylimits", "train", folder, 1, scope.seconds, **details)
                except (TimeoutExceededError, ChildFailedError) as error:
                    say(f"{estimator}, {name}, {limit:g} MB: {error}")
                    continue
                ample = found["cpu"] if limit == AMPLE else ample
                ratio = found["cpu"] / ample if ample and not found["said"] else None
                rows.append(Row(estimator, name, len(data.y_train), limit, ratio=ratio, **found))
                say(f"{estimator}, {name}, {limit:g} MB: {found['peak']:.0f} MB, {found['cpu']:.1f} s")
    return rows


def run(scope: _Scope, say: Say) -> Found:
    """All data sets, estimators and limits."""
    first = [estimator for estimator in scope.estimators if estimator in ESTIMATORS]
    others = [estimator for estimator in scope.estimators if estimator not in ESTIMATORS]
    rows: list[Row] = []
    for name in scope.datasets:
        for estimators, usual in ((first, EXAMPLES[name]), (others, FEW_EXAMPLES)):
            if estimators:
                rows += _rows(name, estimators, scope.examples or usual, scope, say)
    return Found(tuple(rows))


class _MemoryLimits(Study):
    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Estimators, limits and sizes."""
        parser.add_argument("--estimators", nargs="+", choices=ALL_ESTIMATORS, metavar="NAME", help="all of them")
        parser.add_argument("--limits", nargs="+", type=float, metavar="MB", help="1e6 bytes each; 50, 200 and 1000")
        parser.add_argument("--examples", type=int, help="20000 of mnist, 30000 of covtype; 8000 for most estimators")
        parser.add_argument("--seconds", type=float, default=3600.0, help="after which a run is given up")

    def scope(self, arguments: argparse.Namespace) -> _Scope:
        """All sets that are here, or a little of the embedded one with `--quick`."""
        here = tuple(name for name in ("mnist", "covtype") if is_available(LOGISTIC[name].source))
        return _Scope(
            self.chosen_datasets(arguments) or (("letter",) if arguments.quick else here),
            tuple(arguments.estimators or (ESTIMATORS if arguments.quick else ALL_ESTIMATORS)),
            tuple(arguments.limits or (QUICK_LIMITS if arguments.quick else LIMITS)),
            arguments.examples or (QUICK_EXAMPLES if arguments.quick else None),
            arguments.seconds,
        )


STUDY = _MemoryLimits(
    "memorylimits", "peak memory of estimators against memory_limit, and its price", tuple(EXAMPLES), run
)
