"""`python -m studies maps`: low-rank kernel maps against scikit-learn's Nystroem, and as approximate kernel machines.

On MNIST the time of `fit_transform`, the trace error and the memory of as many features. On covtype a map with a linear
classifier on all training examples, against the exact kernel machine on some of them, with the same kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from studies import datasets, storage
from studies.measure import Measurement, ask
from studies.rivals.contest import fastest, least, runs_in_turns
from studies.rivals.maptasks import EXACT, GREEDY, NYSTROEM, RANDOM, SDM, SGDQN
from studies.study import Claim, Findings, Say, Scope, Study, is_so
from studies.tables import MEGABYTE, column, of_rows

TASKS = "studies.rivals.maptasks"
THREADS = 2
MAPS = (RANDOM, GREEDY, NYSTROEM)
LEARNERS = (EXACT, SDM, SGDQN)
BAR = 0.45
WITHIN = 0.01
COMPONENTS, GAMMA = 1000, 0.03
GAMMAS, COSTS = (1.0, 4.0, 16.0), (1.0, 10.0, 100.0)
QUICK_ROWS, QUICK_COMPONENTS = 2000, 60


# ---- Features ----


@dataclass(frozen=True)
class MapRun(Measurement):
    """One `fit_transform`, and the share of the trace that the features leave."""

    trace_error: float


@dataclass(frozen=True)
class MapRow:
    """The shortest of the runs of a map, the mean of their trace errors over seeds, and the smallest peak.

    `ratio` is to the time of Nystroem with the same gamma, `peak` above the level when the data were loaded.
    """

    problem: str = column("problem")
    gamma: float = column("gamma", ".4f")
    map: str = column("map")
    components: int = column("components")
    runs: int = column("runs")
    train: float = column("fit_transform s", ".3f")
    ratio: float | None = column("ratio", ".3f")
    ratio_cpu: float | None
    train_cpu: float = column("CPU s", ".3f")
    trace_error: float = column("trace error", ".4f")
    peak: int = column("peak MB", ".0f", 1 / MEGABYTE)


def _compare_maps(scope: Scope, say: Say, found: Findings) -> None:
    X = datasets.load("mnist", datasets.LINEAR).X_train[: QUICK_ROWS if scope.quick else None].toarray()
    X = X.astype(np.float32)
    scale = 1 / (X.shape[1] * float(X.var(dtype=np.float64)))
    components = QUICK_COMPONENTS if scope.quick else scope.options.components
    with storage.stored("mnist", {"X_train": X}) as folder:
        for gamma in (scale, GAMMA):
            asked = {"components": components, "gamma": gamma}
            measures = {name: _in_turn(folder, scope.limit, map=name, **asked) for name in MAPS}
            runs = runs_in_turns(found, f"mnist, gamma {gamma:.4f}", measures, scope, say)
            rows = [_map_row(name, runs, asked) for name in runs]
            found.add(maps=rows)
            found.claims += _judged_maps(rows)


def _in_turn(folder: Path, limit: float, **asked: Any) -> Any:
    """A measurement whose every call has the next seed."""
    seeds = itertools.count()
    return lambda: MapRun(**ask(TASKS, "features", folder, THREADS, limit, seed=next(seeds), **asked))


def _map_row(name: str, runs: dict[str, list[MapRun]], asked: dict[str, Any]) -> MapRow:
    wall, cpu, rival = *least(runs[name], "wall", "cpu"), runs.get(NYSTROEM)
    return MapRow(
        problem="mnist",
        **{name: asked[name] for name in ("gamma", "components")},
        map=name,
        runs=len(runs[name]),
        train=wall,
        train_cpu=fastest(runs[name]).cpu,
        ratio=wall / least(rival, "wall") if rival else None,
        ratio_cpu=cpu / least(rival, "cpu") if rival else None,
        trace_error=float(np.mean([run.trace_error for run in runs[name]])),
        peak=min(run.own_peak(copies_input=True) for run in runs[name]),
    )


def _judged_maps(rows: Sequence[MapRow]) -> list[Claim]:
    by_name = {row.map: row for row in rows}
    ours, theirs = by_name.get(RANDOM), by_name.get(NYSTROEM)
    if ours is None or theirs is None or ours.ratio is None or ours.ratio_cpu is None:
        return []
    of = f"{ours.problem}, gamma {ours.gamma:.4f}"
    takes = f"{of}: random pivots take {ours.ratio:.3f} of Nystroem's time, {ours.ratio_cpu:.3f} in CPU seconds"
    leave = f"{of}: they leave {ours.trace_error:.4f} of the trace, Nystroem {theirs.trace_error:.4f}"
    return [
        Claim(takes, ours.ratio, most=BAR, also=ours.ratio_cpu),
        Claim(leave, ours.trace_error, most=theirs.trace_error, bar="no more"),
    ]


# ---- Classification ----


@dataclass(frozen=True)
class LearnerRun(Measurement):
    """One training and one prediction of the test set."""

    predict: float
    error: float


@dataclass(frozen=True)
class LearnerRow:
    """The shortest of the runs of a way to learn; `map` are the seconds of the map alone, `trace_error` what it leaves.

    `ratio` is to the training time of the exact machine.
    """

    problem: str = column("problem")
    learner: str = column("learner")
    rows: int = column("rows")
    components: int | None = column("components")
    gamma: float = column("gamma", "g")
    C: float = column("C", "g")
    runs: int = column("runs")
    train: float = column("train s", ".1f")
    ratio: float | None = column("ratio", ".2f")
    map: float | None = column("map s", ".1f")
    predict: float = column("predict s", ".1f")
    error: float = column("error %", ".2f", 100)
    trace_error: float | None = column("trace error", ".4f")
    peak: int = column("peak MB", ".0f", 1 / MEGABYTE)


def _compare_learners(scope: Scope, say: Say, found: Findings) -> None:
    data, options = datasets.load("covtype", datasets.LINEAR), scope.options
    data = data.drawn(QUICK_ROWS, 500) if scope.quick else data
    data = data.with_examples(lambda X: X.toarray().astype(np.float32))
    arrays = {"X_train": data.X_train, "y_train": data.y_train, "X_test": data.X_test, "y_test": data.y_test}
    counts = dict.fromkeys(LEARNERS, len(data.y_train))
    counts[EXACT] = QUICK_ROWS // 2 if scope.quick else options.exact_rows
    components = QUICK_COMPONENTS if scope.quick else options.rank
    with storage.stored("covtype", arrays) as folder:
        gamma, C = _kernel(data, folder, scope, say, found)
        given = {"gamma": gamma, "C": C, "components": components, "epochs": options.epochs}
        measures = {
            learner: partial(_measure, folder, scope.limit, learner=learner, rows=rows, **given)
            for learner, rows in counts.items()
        }
        runs = runs_in_turns(found, "covtype", measures, scope, say, _told)
    rows = [_learner_row(learner, runs, counts[learner], given) for learner in runs]
    found.add(learners=rows)
    found.claims += _judged_learners(rows)


def _measure(folder: Path, limit: float, **asked: Any) -> LearnerRun:
    return LearnerRun(**ask(TASKS, "classify", folder, THREADS, limit, **asked))


def _told(run: LearnerRun) -> str:
    return f"trained in {run.wall:.1f} s, error {100 * run.error:.2f} %, peak {run.peak / MEGABYTE:.0f} MB"


def _kernel(data: datasets.Dataset, folder: Path, scope: Scope, say: Say, found: Findings) -> tuple[float, float]:
    """The gamma and the C of the exact machine that do best on held-out rows, or those that were chosen."""
    chosen = scope.options
    if chosen.gamma is not None and chosen.cost is not None:
        return chosen.gamma, chosen.cost
    size = QUICK_ROWS // 4 if scope.quick else chosen.validation_rows
    arrays = {"X_train": data.X_train[:size], "y_train": data.y_train[:size]}
    arrays |= {"X_test": data.X_train[-size:], "y_test": data.y_train[-size:]}
    errors = {}
    with storage.stored("validation", arrays) as small:
        for gamma, C in itertools.product(GAMMAS, COSTS[:1] if scope.quick else COSTS):
            errors[gamma, C] = _measure(small, scope.limit, learner=EXACT, rows=None, gamma=gamma, C=C).error
            error = f"error {100 * errors[gamma, C]:.2f} %"
            say(f"covtype, {size} rows: gamma {gamma:g}, C {C:g}: {error} on {size} others")
    gamma, C = min(errors, key=errors.__getitem__)
    found.others["validation"] = [{"gamma": g, "C": c, "error": error} for (g, c), error in errors.items()]
    found.lines.append(
        f"covtype: gamma {gamma:g} and C {C:g}, the best of {len(errors)} for the exact machine on {size} rows: "
        f"{100 * errors[gamma, C]:.2f} %"
    )
    return gamma, C


def _learner_row(learner: str, runs: dict[str, list[LearnerRun]], rows: int, given: dict[str, Any]) -> LearnerRow:
    best, mine, exact = fastest(runs[learner]), runs[learner], runs.get(EXACT)
    return LearnerRow(
        problem="covtype",
        learner=learner,
        rows=rows,
        components=best.extra.get("rank"),
        gamma=given["gamma"],
        C=given["C"],
        runs=len(mine),
        train=best.wall,
        ratio=best.wall / least(exact, "wall") if exact else None,
        **{name: best.extra.get(name) for name in ("map", "trace_error")},
        predict=least(mine, "predict"),
        peak=least(mine, "peak"),
        error=best.error,
    )


def _judged_learners(rows: Sequence[LearnerRow]) -> list[Claim]:
    exact = next((row for row in rows if row.learner == EXACT), None)
    if exact is None:
        return []
    said = "covtype: {0.learner} errs {1:+.2f} points against the exact machine on {2.rows} rows, "
    said += "in {0.ratio:.2f} of its time"
    claims = []
    for row in (row for row in rows if row.learner != EXACT):
        more = row.error - exact.error
        holds = more <= WITHIN and row.train < exact.train
        claims.append(is_so(said.format(row, 100 * more, exact), holds, f"{100 * WITHIN:g} point in less time"))
    return claims


def run(scope: Scope, say: Say) -> Findings:
    found = Findings()
    compare = {"mnist": _compare_maps, "covtype": _compare_learners}
    for name in scope.datasets:
        compare[name](scope, say, found)
    title = f"A map with a linear classifier against the exact machine, {THREADS} threads, wall seconds"
    found.tables = [
        of_rows(f"Features of a kernel in float32, {THREADS} threads, wall seconds", found.rows["maps"]),
        of_rows(title, found.rows["learners"]),
    ]
    found.lines.append(NOTE)
    return found


NOTE = (
    "Ratio: to Nystroem with the same gamma, or to the exact machine. Trace error: the share of all k(x, x) that "
    "the features leave, mean over seeds. Peak: of the resident set above its level after the imports; that of the "
    "features without the data."
)

STUDY = Study(
    name="maps",
    title="Low-rank kernel maps against Nystroem, and with a linear classifier against the exact kernel machine",
    run=run,
    datasets=("mnist", "covtype"),
    default_datasets=("mnist", "covtype"),
    quick_datasets=("mnist", "covtype"),
    limit=3600.0,
    options={
        "--components": {"type": int, "default": COMPONENTS, "help": "features on mnist; 1000"},
        "--rank": {"type": int, "default": 2000, "help": "features on covtype, 2 MB each; 2000"},
        "--epochs": {"type": int, "default": 10, "help": "passes of LinearSGDClassifier on covtype; 10"},
        "--exact-rows": {"type": int, "default": 50_000, "help": "rows for the exact machine on covtype; 50000"},
        "--validation-rows": {"type": int, "default": 10_000, "help": "to choose gamma and C with; 10000"},
        "--gamma": {"type": float, "default": None, "help": "of covtype; with --cost, nothing is chosen"},
        "--cost": {"type": float, "default": None, "help": "C of covtype; with --gamma, nothing is chosen"},
    },
)
