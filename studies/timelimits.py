"""`python -m studies timelimits`: whether `time_limit` and Ctrl-C hold, of every estimator on data that take longer."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import larank
from studies.datasets import BINARY, KERNEL, LINEAR, SEQUENCES, Dataset, load
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import column, derived, of_rows

LIMITS, QUICK_LIMITS = (1.0, 3.0, 10.0), (0.2,)
_ENDLESS = 10**9


_KERNEL = ("covtype100k", "mnist")


@dataclass(frozen=True)
class Case:
    """An estimator that would train for long: its other parameters, its data sets, and what it is fitted on.

    The first word of the name is the estimator. `takes` is what it takes of the problem's parameters.
    """

    name: str
    others: Mapping[str, Any]
    datasets: tuple[str, ...] = _KERNEL
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


_PASSES, _ITERATIONS = {"epochs": _ENDLESS}, {"max_iter": _ENDLESS}
_SMALL_GAP = {"tol": 1e-9, **_ITERATIONS}
_TO_GAP = {"stop": "gap", **_SMALL_GAP}
_LINEAR, _TEXT, _IMAGES = (*_KERNEL, "news20"), ("conll2000",), ("mnist",)
_MODEL = {"model": larank.MulticlassModel(10)}
CASES = {
    case.name: case
    for case in (
        Case("LaRankClassifier", _PASSES),
        Case("LaRankClassifier, 200 MB", {"memory_limit": 2e8, **_PASSES}),
        Case("LaRankClassifier, gap", _TO_GAP),
        Case("LaSVMClassifier", {"epochs": 1}),
        Case("LaSVMClassifier, gap", _TO_GAP),
        Case("MulticlassSVC", _SMALL_GAP),
        Case("MulticlassSVC, published", {"solver": "published", **_ITERATIONS}),
        Case("HullerClassifier", _PASSES, takes=("gamma",)),
        Case("TrackingSVC", _PASSES),
        Case("KernelPerceptron", _PASSES, takes=("gamma",)),
        Case("KernelPassiveAggressive", _PASSES),
        Case("AmbiguousClassifier", _PASSES, _IMAGES, arguments=_candidates),
        Case("PrimalMulticlassSVC", {"n_components": 300, "tol": 1e-12, **_ITERATIONS}),
        Case("LinearMulticlassSVC", {"tol": 1e-12, **_ITERATIONS}, _LINEAR, takes=("C",)),
        Case("SGDQNClassifier", _PASSES, _LINEAR, takes=()),
        Case("SequenceTagger", _PASSES, _TEXT, takes=()),
        Case("SequenceTagger, gap", _TO_GAP, _TEXT, takes=()),
        Case("StructuredSVC", {**_MODEL, **_PASSES}, _IMAGES, (), _pixels),
        Case("StructuredSVC, svmstruct", {**_MODEL, "solver": "svmstruct", **_SMALL_GAP}, _IMAGES, (), _pixels),
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
class Row:
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


def run(scope: Scope, say: Say) -> Findings:
    """All cases that have one of the data sets, or two on generated data in the quick form."""
    estimators, limits = scope.options.estimators, scope.options.limits or (QUICK_LIMITS if scope.quick else LIMITS)
    names = estimators or (_QUICK_CASES if scope.quick else CASES)
    wanted = ("generated",) if scope.quick else scope.datasets or STUDY.datasets
    found = Findings()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            datasets = [one for one in CASES[name].datasets if one in wanted] or (["generated"] if scope.quick else [])
            for dataset in datasets:
                found.add(rows=_rows(name, dataset, limits, say))
    rows = found.rows["rows"]
    title = "Seconds taken under a limit; over 1 is too late; seconds until Ctrl-C is answered"
    found.tables = [of_rows(title, rows)]
    if rows:
        found.claims, found.lines = _worst(rows)
    return found


def _rows(name: str, dataset: str, limits: Sequence[float], say: Say) -> Iterator[Row]:
    case, (data, given) = CASES[name], _data(dataset)
    for limit in limits:
        model, arguments = case.make(given).set_params(time_limit=limit), case.arguments(data)
        began = time.perf_counter()
        model.fit(*arguments)
        taken, result = time.perf_counter() - began, model.result_
        answered = _answered(case, data, given, limit)
        yield Row(name, dataset, limit, taken, answered, result.iterations, result.exact, result.breakdown)
        say(f"{name} on {dataset}: {taken:.2f} s of {limit:g}, Ctrl-C answered after {answered:.2f} s")


def _worst(rows: Sequence[Row]) -> tuple[list[Claim], list[str]]:
    late, slow = max(rows, key=lambda row: row.over), max(rows, key=lambda row: row.answered)
    said = f"the worst limit: {late.estimator} on {late.dataset} took {late.taken:.2f} s of {late.limit:g}"
    answer = f"the slowest answer to Ctrl-C: {slow.estimator} on {slow.dataset}, {slow.answered:.2f} s"
    return [Claim(said, late.over, most=1.0, bar="a second or a tenth more")], [answer]


STUDY = Study(
    "timelimits",
    "whether time_limit and Ctrl-C hold on data that take longer",
    run,
    (*_KERNEL, "news20", "conll2000"),
    options={
        "--estimators": {"nargs": "+", "choices": list(CASES), "help": "the cases to run; all of them"},
        "--limits": {"nargs": "+", "type": float, "help": "seconds"},
    },
)
