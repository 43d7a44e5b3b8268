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


@dataclass(frozen=True)
class Case:
    """An estimator that would train for long: how it is made for a data set, and what it is fitted on."""

    make: Callable[[Any], Any]
    datasets: tuple[str, ...]
    arguments: Callable[[Dataset], tuple[Any, ...]] = lambda data: (data.X_train, data.y_train)


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


_KERNEL = ("covtype100k", "mnist")
CASES: Mapping[str, Case] = {
    "LaRankClassifier": Case(lambda given: larank.LaRankClassifier(**given, epochs=_ENDLESS), _KERNEL),
    "LaRankClassifier, 200 MB": Case(
        lambda given: larank.LaRankClassifier(**given, memory_limit=2e8, epochs=_ENDLESS), _KERNEL
    ),
    "LaRankClassifier, gap": Case(
        lambda given: larank.LaRankClassifier(**given, stop="gap", tol=1e-9, max_iter=_ENDLESS), _KERNEL
    ),
    "LaSVMClassifier": Case(lambda given: larank.LaSVMClassifier(**given, epochs=1), _KERNEL),
    "LaSVMClassifier, gap": Case(
        lambda given: larank.LaSVMClassifier(**given, stop="gap", tol=1e-9, max_iter=_ENDLESS), _KERNEL
    ),
    "MulticlassSVC": Case(lambda given: larank.MulticlassSVC(**given, tol=1e-9, max_iter=_ENDLESS), _KERNEL),
    "MulticlassSVC, published": Case(
        lambda given: larank.MulticlassSVC(**given, solver="published", max_iter=_ENDLESS), _KERNEL
    ),
    "HullerClassifier": Case(
        lambda given: larank.HullerClassifier(gamma=given["gamma"], epochs=_ENDLESS, random_state=0), _KERNEL
    ),
    "TrackingSVC": Case(lambda given: larank.TrackingSVC(**given, epochs=_ENDLESS), _KERNEL),
    "KernelPerceptron": Case(
        lambda given: larank.KernelPerceptron(gamma=given["gamma"], epochs=_ENDLESS, random_state=0), _KERNEL
    ),
    "KernelPassiveAggressive": Case(lambda given: larank.KernelPassiveAggressive(**given, epochs=_ENDLESS), _KERNEL),
    "AmbiguousClassifier": Case(
        lambda given: larank.AmbiguousClassifier(**given, epochs=_ENDLESS), ("mnist",), _candidates
    ),
    "PrimalMulticlassSVC": Case(
        lambda given: larank.PrimalMulticlassSVC(**given, n_components=300, tol=1e-12, max_iter=_ENDLESS), _KERNEL
    ),
    "LinearMulticlassSVC": Case(
        lambda given: larank.LinearMulticlassSVC(C=given["C"], tol=1e-12, max_iter=_ENDLESS, random_state=0),
        (*_KERNEL, "news20"),
    ),
    "SGDQNClassifier": Case(
        lambda given: larank.SGDQNClassifier(epochs=_ENDLESS, random_state=0), (*_KERNEL, "news20")
    ),
    "SequenceTagger": Case(lambda given: larank.SequenceTagger(epochs=_ENDLESS, random_state=0), ("conll2000",)),
    "SequenceTagger, gap": Case(
        lambda given: larank.SequenceTagger(stop="gap", tol=1e-9, max_iter=_ENDLESS, random_state=0), ("conll2000",)
    ),
    "StructuredSVC": Case(
        lambda given: larank.StructuredSVC(larank.MulticlassModel(10), epochs=_ENDLESS, random_state=0),
        ("mnist",),
        _pixels,
    ),
    "StructuredSVC, svmstruct": Case(
        lambda given: larank.StructuredSVC(
            larank.MulticlassModel(10), solver="svmstruct", tol=1e-9, max_iter=_ENDLESS, random_state=0
        ),
        ("mnist",),
        _pixels,
    ),
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


def _limited(case: Case, data: Dataset, given: dict[str, Any], limit: float) -> tuple[float, Any]:
    model, arguments = case.make(given).set_params(time_limit=limit), case.arguments(data)
    began = time.perf_counter()
    model.fit(*arguments)
    return time.perf_counter() - began, model.result_


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
    given = {**given, "random_state": 0} if given else given
    for limit in limits:
        taken, result = _limited(case, data, given, limit)
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
