"""`python -m studies memorylimits`: whether training stays within `memory_limit`, and what that costs in time.

`python -m studies timelimits`: whether `time_limit` and Ctrl-C hold, of every estimator on data that take longer.
"""

from __future__ import annotations

import inspect
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import larank
from studies import storage
from studies.datasets import BINARY, KERNEL, LINEAR, LOGISTIC, SEQUENCES, Dataset, load
from studies.measure import ChildFailedError, TimeoutExceededError, ask
from studies.study import Claim, Findings, Say, Scope, Study, is_so
from studies.tables import MEGABYTE, column, derived, of_rows, yes
from studies.trial import PeakMemory, Stopwatch

# ---- Memory ----

MEMORY = (50.0, 200.0, 1000.0)
QUICK_MEMORY = (30.0,)
AMPLE = 1e5  # megabytes: no limit
ALLOWED, ALLOWED_SHARE = 20.0, 0.1  # over the limit, whichever is more
EXAMPLES: Mapping[str, int] = {"mnist": 20_000, "covtype": 30_000, "letter": 16_000}
FEW_EXAMPLES = 8000  # for the estimators that are not of the first three
QUICK_EXAMPLES = 1500
GAMMAS: Mapping[str, float] = {"mnist": 0.02, "covtype": 1.0, "letter": 10.0}
ESTIMATORS = ("LaRankClassifier", "LaSVMClassifier", "MulticlassSVC")
ALL_ESTIMATORS = (
    *ESTIMATORS,
    *("HullerClassifier", "TrackingSVC", "KernelPerceptron", "KernelPassiveAggressive", "AmbiguousClassifier"),
    *("PrimalMulticlassSVC", "PivotedCholeskyMap", "KernelPCAMap", "LinearSGDClassifier"),
)
# Of what they have; without these, maps have a feature for every example.
SETTINGS: Mapping[str, Any] = {
    **{"max_iter": 1, "n_jobs": 1, "random_state": 0, "kernel": "rbf"},
    **{"n_components": 500, "basis_size": 1500},
}
NOTE = (
    "Peak: of the resident set while `fit` runs, over its level with the data loaded and the library at work once; one "
    f"thread. Allowed over the limit: {ALLOWED:.0f} MB or {100 * ALLOWED_SHARE:.0f} %, whichever is more. Ratio: CPU "
    "seconds over those without a limit."
)


@dataclass(frozen=True)
class MemoryRow:
    """One training; sizes in megabytes. `said` is the error, if there was one."""

    estimator: str = column("estimator")
    dataset: str = column("data")
    examples: int = column("examples")
    limit: float = column("limit MB", lambda limit: "none" if limit >= AMPLE else f"{limit:.0f}")
    peak: float = column("peak MB", ".0f")

    @derived("holds", yes)
    def holds(self) -> bool:
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
    names = inspect.signature(kind).parameters
    known = {name: value for name, value in SETTINGS.items() if name in names}
    if "tol" in names and names["tol"].default is not None:  # training ends at a gap, not after a number of passes
        known.pop("max_iter", None)
    gamma = {"gamma": request["gamma"]} if "gamma" in names else {}
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


def _memory_rows(
    name: str, estimators: Sequence[str], examples: int, limits: Sequence[float], seconds: float, say: Say
) -> list[MemoryRow]:
    data = load(name, LOGISTIC).drawn(examples, 1)
    rows: list[MemoryRow] = []
    with storage.stored(name, {"X": data.X_train, "y": data.y_train}) as folder:
        for estimator in estimators:
            ample: float | None = None
            for limit in (AMPLE, *sorted(limits, reverse=True)):
                details = {"estimator": estimator, "megabytes": limit, "gamma": GAMMAS[name]}
                try:
                    found = ask("studies.limits", "train", folder, 1, seconds, **details)
                except (TimeoutExceededError, ChildFailedError) as error:
                    say(f"{estimator}, {name}, {limit:g} MB: {error}")
                    continue
                ample = found["cpu"] if limit == AMPLE else ample
                ratio = found["cpu"] / ample if ample and not found["said"] else None
                rows.append(MemoryRow(estimator, name, len(data.y_train), limit, ratio=ratio, **found))
                say(f"{estimator}, {name}, {limit:g} MB: {found['peak']:.0f} MB, {found['cpu']:.1f} s")
    return rows


def run_memory(scope: Scope, say: Say) -> Findings:
    chosen, rows = scope.options, list[MemoryRow]()
    estimators = chosen.estimators or (ESTIMATORS if scope.quick else ALL_ESTIMATORS)
    limits = chosen.limits or (QUICK_MEMORY if scope.quick else MEMORY)
    examples = chosen.examples or (QUICK_EXAMPLES if scope.quick else None)
    first = [name for name in estimators if name in ESTIMATORS]
    others = [name for name in estimators if name not in ESTIMATORS]
    for name in scope.present(("mnist", "covtype"), ("letter",), say, lambda name: LOGISTIC[name].source):
        for some, usual in ((first, EXAMPLES[name]), (others, FEW_EXAMPLES)):
            if some:
                rows += _memory_rows(name, some, examples or usual, limits, chosen.seconds, say)
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


# ---- Time ----

SECONDS, QUICK_SECONDS = (1.0, 3.0, 10.0), (0.2,)
_ENDLESS = 10**9
_DENSE = ("covtype100k", "mnist")
TIMED_ON = (*_DENSE, "news20", "conll2000")


@dataclass(frozen=True)
class Case:
    """An estimator that would train for long: its other parameters, its data sets, and what it is fitted on.

    The first word of the name is the estimator. `takes` is what it takes of the problem's parameters.
    """

    name: str
    others: Mapping[str, Any]
    datasets: tuple[str, ...] = _DENSE
    takes: tuple[str, ...] = ("C", "gamma")
    arguments: Callable[[Dataset], tuple[Any, ...]] = lambda data: (data.X_train, data.y_train)

    def make(self, given: Mapping[str, Any]) -> Any:
        taken = {name: given[name] for name in self.takes}
        return getattr(larank, self.name.partition(",")[0])(**taken, random_state=0, **self.others)


def _candidates(data: Dataset) -> tuple[Any, ...]:
    """Each example with its label and another one."""
    classes = np.unique(data.y_train)
    numbers = np.searchsorted(classes, data.y_train)
    sets = np.zeros((len(numbers), len(classes)), int)
    sets[np.arange(len(numbers)), numbers] = 1
    sets[np.arange(len(numbers)), (numbers + 1) % len(classes)] = 1
    return data.X_train, sets


def _pixels(data: Dataset) -> tuple[Any, ...]:
    """Dense examples in float64, with a bias, for a structured model."""
    return np.asarray(data.X_train[:20000], dtype=np.float64), data.y_train[:20000]


_PASSES = {"max_iter": _ENDLESS}
_TO_GAP = {"tol": 1e-9, **_PASSES}
_LINEAR, _TEXT, _IMAGES = (*_DENSE, "news20"), ("conll2000",), ("mnist",)
_MODEL = {"model": larank.MulticlassModel(10)}
CASES = {
    case.name: case
    for case in (
        Case("LaRankClassifier", _PASSES),
        Case("LaRankClassifier, 200 MB", {"memory_limit": 2e8, **_PASSES}),
        Case("LaRankClassifier, gap", _TO_GAP),
        Case("LaSVMClassifier", {"max_iter": 1}),
        Case("LaSVMClassifier, gap", _TO_GAP),
        Case("MulticlassSVC", _TO_GAP),
        Case("MulticlassSVC, published", {"solver": "published", **_PASSES}),
        Case("HullerClassifier", _PASSES, takes=("gamma",)),
        Case("TrackingSVC", _PASSES),
        Case("KernelPerceptron", _PASSES, takes=("gamma",)),
        Case("KernelPassiveAggressive", _PASSES),
        Case("AmbiguousClassifier", _PASSES, _IMAGES, arguments=_candidates),
        Case("PrimalMulticlassSVC", {"tol": 1e-12, **_PASSES}, _LINEAR, takes=("C",)),
        Case("LinearMulticlassSVC", {"tol": 1e-12, **_PASSES}, _LINEAR, takes=("C",)),
        Case("LinearSGDClassifier", _PASSES, _LINEAR, takes=()),
        Case("SequenceTagger", _PASSES, _TEXT, takes=()),
        Case("SequenceTagger, gap", _TO_GAP, _TEXT, takes=()),
        Case("StructuredSVC", {**_MODEL, **_PASSES}, _IMAGES, (), _pixels),
        Case("StructuredSVC, svmstruct", {**_MODEL, "solver": "svmstruct", **_TO_GAP}, _IMAGES, (), _pixels),
    )
}
_QUICK_CASES = ("LaRankClassifier", "LinearMulticlassSVC")


@cache
def _data(name: str) -> tuple[Dataset, dict[str, Any]]:
    """A data set, with the C and the gamma it is learned with."""
    if name == "generated":
        random = np.random.default_rng(0)
        X, y = random.normal(size=(3000, 10)), random.integers(0, 3, 3000)
        return Dataset(X, y, X, y), {"C": 100.0, "gamma": 0.1}
    if name in SEQUENCES:
        return SEQUENCES[name](0), {}
    problems = next(some for some in (BINARY, KERNEL, LINEAR) if name in some)
    problem = problems[name]
    return load(name, problems), {"C": problem.C or 10.0, "gamma": problem.gamma or 1.0}


@dataclass(frozen=True)
class TimeRow:
    """One fit: the limit, the seconds it took, and how long a Ctrl-C after as many seconds took to be answered."""

    estimator: str = column("estimator")
    dataset: str = column("data")
    limit: float = column("limit s", "g")
    taken: float = column("taken s", ".2f")

    @derived("over", "+.2f")
    def over(self) -> float:
        """By how much the limit was exceeded, in units of what it may be exceeded by: a second or a tenth."""
        return (self.taken - self.limit) / max(1.0, 0.1 * self.limit)

    answered: float = column("Ctrl-C s", ".2f")
    passes: float = column("passes", ".2f")
    exact: bool = column("exact", lambda exact: "yes" if exact else "no")
    breakdown: Mapping[str, float] = column("where", lambda parts: _longest(parts))


def _longest(breakdown: Mapping[str, float]) -> str:
    parts = sorted(breakdown.items(), key=lambda part: -part[1])[:3]
    return ", ".join(f"{name} {seconds:.1f}" for name, seconds in parts)


def _answered(case: Case, data: Dataset, given: dict[str, Any], after: float) -> float:
    """The seconds from a Ctrl-C, so many after the beginning, to the end of the fit."""
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    model, arguments = case.make(given), case.arguments(data)
    timer = threading.Timer(after, press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored
    timer.start()
    try:
        model.fit(*arguments)
    except KeyboardInterrupt:  # before the loop
        pass
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    return max(0.0, time.perf_counter() - pressed[0]) if pressed else 0.0


def run_time(scope: Scope, say: Say) -> Findings:
    """All cases that have one of the data sets, or two on generated data in the quick form."""
    estimators, limits = scope.options.estimators, scope.options.limits or (QUICK_SECONDS if scope.quick else SECONDS)
    names = estimators or (_QUICK_CASES if scope.quick else CASES)
    wanted = ("generated",) if scope.quick else scope.datasets or TIMED_ON
    found = Findings()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            datasets = [one for one in CASES[name].datasets if one in wanted] or (["generated"] if scope.quick else [])
            for dataset in datasets:
                found.add(rows=_time_rows(name, dataset, limits, say))
    rows = found.rows["rows"]
    title = "Seconds taken under a limit; over 1 is too late; seconds until Ctrl-C is answered"
    found.tables = [of_rows(title, rows)]
    if rows:
        found.claims, found.lines = _worst(rows)
    return found


def _time_rows(name: str, dataset: str, limits: Sequence[float], say: Say) -> Iterator[TimeRow]:
    case, (data, given) = CASES[name], _data(dataset)
    for limit in limits:
        model, arguments = case.make(given).set_params(time_limit=limit), case.arguments(data)
        began = time.perf_counter()
        model.fit(*arguments)
        taken, result = time.perf_counter() - began, model.result_
        answered = _answered(case, data, given, limit)
        yield TimeRow(name, dataset, limit, taken, answered, result.iterations, result.exact, result.breakdown)
        say(f"{name} on {dataset}: {taken:.2f} s of {limit:g}, Ctrl-C answered after {answered:.2f} s")


def _worst(rows: Sequence[TimeRow]) -> tuple[list[Claim], list[str]]:
    late, slow = max(rows, key=lambda row: row.over), max(rows, key=lambda row: row.answered)
    said = f"the worst limit: {late.estimator} on {late.dataset} took {late.taken:.2f} s of {late.limit:g}"
    answer = f"the slowest answer to Ctrl-C: {slow.estimator} on {slow.dataset}, {slow.answered:.2f} s"
    return [Claim(said, late.over, most=1.0, bar="a second or a tenth more")], [answer]


STUDIES = (
    Study(
        "memorylimits",
        "peak memory of estimators against memory_limit, and its price",
        run_memory,
        tuple(EXAMPLES),
        options={
            "--estimators": {"nargs": "+", "choices": ALL_ESTIMATORS, "metavar": "NAME", "help": "all of them"},
            "--limits": {"nargs": "+", "type": float, "metavar": "MB", "help": "1e6 bytes each; 50, 200 and 1000"},
            "--examples": {"type": int, "help": "20000 of mnist, 30000 of covtype; 8000 for most estimators"},
            "--seconds": {"type": float, "default": 3600.0, "help": "after which a run is given up"},
        },
    ),
    Study(
        "timelimits",
        "whether time_limit and Ctrl-C hold on data that take longer",
        run_time,
        TIMED_ON,
        options={
            "--estimators": {"nargs": "+", "choices": list(CASES), "help": "the cases to run; all of them"},
            "--limits": {"nargs": "+", "type": float, "help": "seconds"},
        },
    ),
)
