"""`python -m studies memorylimits`: whether training stays within `memory_limit`, and what that costs in time."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import larank
from studies import storage
from studies.datasets import LOGISTIC, load
from studies.measure import ChildFailedError, TimeoutExceededError, ask
from studies.study import Findings, Say, Scope, Study, is_so
from studies.tables import MEGABYTE, column, derived, of_rows, yes
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

    estimator: str = column("estimator")
    dataset: str = column("data")
    examples: int = column("examples")
    limit: float = column("limit MB", lambda limit: "none" if limit >= AMPLE else f"{limit:.0f}")
    peak: float = column("peak MB", ".0f")

    @derived("holds", yes)
    def holds(self) -> bool:
        """Whether the peak is allowed."""
        return self.peak <= self.limit + max(ALLOWED, ALLOWED_SHARE * self.limit)

    cpu: float = column("CPU s", ".1f")
    ratio: float | None = column("ratio", ".2f")
    kernel_values: float = column("10^6 values", ".0f")
    said: str = ""


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


def _rows(
    name: str, estimators: Sequence[str], examples: int, limits: Sequence[float], seconds: float, say: Say
) -> list[Row]:
    data = load(name, LOGISTIC).drawn(examples, 1)
    rows: list[Row] = []
    with storage.stored(name, {"X": data.X_train, "y": data.y_train}) as folder:
        for estimator in estimators:
            ample: float | None = None
            for limit in (AMPLE, *sorted(limits, reverse=True)):
                details = {"estimator": estimator, "megabytes": limit, "gamma": GAMMAS[name]}
                try:
                    found = ask("studies.memorylimits", "train", folder, 1, seconds, **details)
                except (TimeoutExceededError, ChildFailedError) as error:
                    say(f"{estimator}, {name}, {limit:g} MB: {error}")
                    continue
                ample = found["cpu"] if limit == AMPLE else ample
                ratio = found["cpu"] / ample if ample and not found["said"] else None
                rows.append(Row(estimator, name, len(data.y_train), limit, ratio=ratio, **found))
                say(f"{estimator}, {name}, {limit:g} MB: {found['peak']:.0f} MB, {found['cpu']:.1f} s")
    return rows


def run(scope: Scope, say: Say) -> Findings:
    """All data sets, estimators and limits."""
    chosen, rows = scope.options, list[Row]()
    estimators = chosen.estimators or (ESTIMATORS if scope.quick else ALL_ESTIMATORS)
    limits = chosen.limits or (QUICK_LIMITS if scope.quick else LIMITS)
    examples = chosen.examples or (QUICK_EXAMPLES if scope.quick else None)
    first = [name for name in estimators if name in ESTIMATORS]
    others = [name for name in estimators if name not in ESTIMATORS]
    for name in scope.present(("mnist", "covtype"), ("letter",), say, lambda name: LOGISTIC[name].source):
        for some, usual in ((first, EXAMPLES[name]), (others, FEW_EXAMPLES)):
            if some:
                rows += _rows(name, some, examples or usual, limits, chosen.seconds, say)
    return Findings(
        rows={"rows": rows},
        tables=[of_rows("Peak memory of training under limits", rows)],
        lines=[*(f"{row.estimator}, {row.dataset}, {row.limit:.0f} MB: {row.said}" for row in rows if row.said), NOTE],
        claims=[
            is_so(f"{row.estimator}, {row.dataset}, {row.limit:.0f} MB", row.holds, "a peak that is allowed")
            for row in rows
            if row.limit < AMPLE
        ],
    )


STUDY = Study(
    "memorylimits",
    "peak memory of estimators against memory_limit, and its price",
    run,
    tuple(EXAMPLES),
    options={
        "--estimators": {"nargs": "+", "choices": ALL_ESTIMATORS, "metavar": "NAME", "help": "all of them"},
        "--limits": {"nargs": "+", "type": float, "metavar": "MB", "help": "1e6 bytes each; 50, 200 and 1000"},
        "--examples": {"type": int, "help": "20000 of mnist, 30000 of covtype; 8000 for most estimators"},
        "--seconds": {"type": float, "default": 3600.0, "help": "after which a run is given up"},
    },
)
