"""`python -m studies sgd`: linear models by stochastic gradient, against SGDClassifier, LIBLINEAR and Vowpal Wabbit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from studies import datasets
from studies.measure import TimeoutExceededError
from studies.rivals import gradientruns, libraries, streams
from studies.rivals.contest import (
    Comparison,
    Entrant,
    Findings,
    Settings,
    beside_before,
    entrants,
    fastest,
    met_in_time,
    runs_in_turns,
)
from studies.rivals.gradientruns import (
    ALPHAS,
    NEWS,
    GradientProblem,
    GradientRun,
    least_primal,
    measure_fit,
    measure_product,
    primal,
    stored,
)
from studies.rivals.libraries.solver import GradientSolver
from studies.study import Say
from studies.tables import Columns, figure, of_rows

EPOCHS = 5
WITHIN = 0.01
LOSSES = ("hinge", "squared_hinge")
TARGET_PROBLEM = "alpha"
PASS_BAR, PASS_BAR_OF_MANY = 1 / 2, 1 / 8
TARGET_BAR = 1 / 2
VOWPAL = "vowpal"


# ---- Seconds of a pass ----


@dataclass(frozen=True)
class Pass:
    """The wall time of a fit of five epochs over five, the least; `ratio` is to the rival's in the same run."""

    problem: str
    solver: str
    formulation: str
    seconds: float
    cpu: float
    rival: str
    ratio: float | None
    cpu_ratio: float | None
    over_product: float
    gigabytes: float


PASS_COLUMNS: Columns = {
    "problem": figure("problem"),
    "solver": figure("solver"),
    "objective": figure("formulation"),
    "s per pass": figure("seconds", ".4f"),
    "over rival": figure("ratio", ".3f"),
    "CPU s": figure("cpu", ".4f"),
    "over rival, CPU": figure("cpu_ratio", ".3f"),
    "over X @ w": figure("over_product", ".2f"),
    "GB/s of X": figure("gigabytes", ".1f"),
}


@dataclass(frozen=True)
class Product:
    """Seconds of X times w, or W of all classes, and the bytes of X over them."""

    problem: str
    megabytes: float
    seconds: float
    gigabytes: float


PRODUCT_COLUMNS: Columns = {
    "problem": figure("problem"),
    "X, MB": figure("megabytes", ".0f"),
    "X @ w, s": figure("seconds", ".4f"),
    "GB/s": figure("gigabytes", ".1f"),
}


def _solver(entrant: Entrant) -> GradientSolver:
    return libraries.GRADIENT[entrant.solver]


def _entrants(settings: Settings, say: Say) -> list[Entrant]:
    """Those chosen; the quick form leaves the certificates out."""
    found = entrants(settings, libraries.GRADIENT, say)
    return [taker for taker in found if not (settings.quick and taker.solver.endswith("-certified"))]


def _takers(takers: Iterable[Entrant], problem: GradientProblem) -> list[Entrant]:
    """Those that count epochs, once for each formulation of many classes."""
    found = []
    for taker in takers:
        if _solver(taker).counts_epochs:
            forms = ("one-vs-rest",) if problem.is_binary else _solver(taker).formulations
            found += [replace(taker, form=form) for form in forms]
    return found


def passes(settings: Settings, say: Say) -> Findings:
    """All solvers on all problems, in turns."""
    found = Findings()
    for name in settings.problems:
        if not datasets.is_available(gradientruns.source(name)):
            say(f"{name}: absent from the data directory, left out")
            continue
        problem = gradientruns.load(name, settings.quick)
        takers = _takers(_entrants(settings, say), problem)
        with stored(problem, any(taker.solver == VOWPAL for taker in takers)) as folder:
            measures = {taker: _measure(folder, taker, problem, settings) for taker in takers}
            runs, unfinished = runs_in_turns(name, measures, settings, say, _told)
            product = _product(name, measure_product(folder))
        rows = [_pass(name, taker, runs, product) for taker in takers if taker in runs]
        found.add(passes=rows, products=[product], unfinished=unfinished, before=beside_before(name, runs))
    return found


def _measure(folder: Path, taker: Entrant, problem: GradientProblem, settings: Settings) -> Callable[[], GradientRun]:
    return partial(measure_fit, folder, taker, EPOCHS, "hinge", problem.alpha, settings.limit)


def _told(run: GradientRun) -> str:
    return f"{run.wall / EPOCHS:.4f} s per pass"


def _product(name: str, found: Mapping[str, float]) -> Product:
    return Product(name, found["bytes"] / 1e6, found["seconds"], found["bytes"] / found["seconds"] / 1e9)


def _pass(problem: str, taker: Entrant, runs: Mapping[Entrant, Sequence[GradientRun]], product: Product) -> Pass:
    rival = _solver(taker).rival
    theirs = runs.get(Entrant(rival, "one-vs-rest"))
    wall, cpu = fastest(runs[taker]).wall, min(run.cpu for run in runs[taker])
    return Pass(
        problem=problem,
        solver=taker.name,
        formulation=taker.form,
        seconds=wall / EPOCHS,
        cpu=cpu / EPOCHS,
        rival=rival,
        ratio=wall / fastest(theirs).wall if theirs else None,
        cpu_ratio=cpu / min(run.cpu for run in theirs) if theirs else None,
        over_product=wall / EPOCHS / product.seconds,
        gigabytes=product.megabytes / 1e3 / (wall / EPOCHS),
    )


def judged_passes(rows: Iterable[Pass]) -> list[str]:
    """How each pass of ours stands to the bar."""
    lines = []
    for row in rows:
        if row.ratio is None or row.cpu_ratio is None:
            continue
        bar = PASS_BAR_OF_MANY if row.problem == NEWS else PASS_BAR
        said = f"{row.problem}: a pass of {row.solver}, {row.formulation}, takes {row.ratio:.3f} of {row.rival}'s"
        lines.append(f"{said} ({row.cpu_ratio:.3f} in CPU seconds); bar {bar:g}, {_in_time(row, bar)}")
    return lines


def _in_time(row: Pass, bar: float) -> str:
    assert row.ratio is not None
    assert row.cpu_ratio is not None
    return met_in_time(row.ratio, row.cpu_ratio, bar)


# ---- Seconds to a primal cost near the optimum ----


@dataclass(frozen=True)
class Arrival:
    """The least effort with which a solver's primal is within the target of the optimum, else the most that was tried.

    `effort` are epochs or a tolerance; the seconds are the least of several runs with it.
    """

    problem: str
    loss: str
    solver: str
    effort: float
    reached: bool
    wall: float
    cpu: float
    primal: float
    above: float
    conversion: float


ARRIVAL_COLUMNS: Columns = {
    "problem": figure("problem"),
    "loss": figure("loss"),
    "solver": figure("solver"),
    "epochs or tolerance": lambda row: f"{row.effort:g}" + ("" if row.reached else " (missed)"),
    "wall s": figure("wall", ".3f"),
    "CPU s": figure("cpu", ".3f"),
    "primal": figure("primal", ".5f"),
    "above optimum": figure("above", ".1e"),
    "conversion s": figure("conversion", ".2f"),
}


@dataclass(frozen=True)
class _Contest:
    """One problem, one loss and its optimum."""

    problem: GradientProblem
    loss: str
    optimum: float
    folder: Path
    settings: Settings
    say: Say

    def run(self, taker: Entrant, effort: float) -> GradientRun:
        alpha, limit = self.problem.alpha, self.settings.limit
        return measure_fit(self.folder, taker, effort, self.loss, alpha, limit)

    def above(self, run: GradientRun) -> float:
        return primal(self.problem, self.loss, run.W[0]) / self.optimum - 1

    def arrival(self, taker: Entrant) -> tuple[float, GradientRun] | None:
        """The first effort that is enough, or the last within the limit, and its run."""
        last = None
        efforts = _solver(taker).efforts
        for effort in efforts[len(efforts) // 2 :][:1] if self.settings.quick else efforts:
            try:
                run = self.run(taker, effort)
            except TimeoutExceededError as exceeded:
                self.say(f"{self.problem.name}, {self.loss}: {taker.name} with {effort:g}: {exceeded}")
                break
            last = effort, run
            told = f"{run.wall:.3f} s, {self.above(run):.1e} above the optimum"
            self.say(f"{self.problem.name}, {self.loss}: {taker.name} with {effort:g}: {told}")
            if self.above(run) <= WITHIN:
                break
        return last


def arrivals(settings: Settings, say: Say) -> Findings:
    """For each loss, every solver that has it."""
    found = Findings()
    problem = gradientruns.load(TARGET_PROBLEM, settings.quick)
    takers = [replace(taker, form="one-vs-rest") for taker in _entrants(settings, say)]
    with stored(problem, any(taker.solver == VOWPAL for taker in takers)) as folder:
        for loss in LOSSES[:1] if settings.quick else LOSSES:
            say(f"{problem.name}, {loss}: optimum")
            contest = _Contest(problem, loss, least_primal(problem, loss), folder, settings, say)
            found.add(arrivals=_arrivals(contest, [taker for taker in takers if loss in _solver(taker).losses]))
    return found


def _arrivals(contest: _Contest, takers: Iterable[Entrant]) -> list[Arrival]:
    """The efforts one after the other, then the remaining runs in turns."""
    first = {taker: arrival for taker in takers if (arrival := contest.arrival(taker)) is not None}
    reached = {taker for taker, (_, run) in first.items() if contest.above(run) <= WITHIN}
    runs = {taker: [run] for taker, (_, run) in first.items()}
    for _ in range(contest.settings.repeats - 1):
        for taker in first:
            if taker in reached:
                runs[taker].append(contest.run(taker, first[taker][0]))
    return [_arrival(contest, taker, first[taker][0], taker in reached, runs[taker]) for taker in first]


def _arrival(contest: _Contest, taker: Entrant, effort: float, reached: bool, runs: Sequence[GradientRun]) -> Arrival:
    best = fastest(runs)
    return Arrival(
        problem=contest.problem.name,
        loss=contest.loss,
        solver=taker.name,
        effort=effort,
        reached=reached,
        wall=best.wall,
        cpu=min(run.cpu for run in runs),
        primal=primal(contest.problem, contest.loss, best.W[0]),
        above=contest.above(best),
        conversion=float(best.extra.get("conversion_wall", 0.0)),
    )


def judged_arrivals(rows: Sequence[Arrival]) -> list[str]:
    """Our best against the best rival, for each loss."""
    lines = []
    for loss in dict.fromkeys(row.loss for row in rows):
        there = [row for row in rows if row.loss == loss and row.reached]
        ours = [row for row in there if libraries.GRADIENT[row.solver].is_ours]
        theirs = [row for row in there if not libraries.GRADIENT[row.solver].is_ours]
        if not ours or not theirs:
            who = "none of ours" if not ours else "no rival"
            lines.append(f"{TARGET_PROBLEM}, {loss}: {who} came within {WITHIN:.0%} of the optimum")
            continue
        mine, best = (min(some, key=lambda row: row.wall) for some in (ours, theirs))
        ratio, cpu_ratio = mine.wall / best.wall, mine.cpu / best.cpu
        lines.append(
            f"{TARGET_PROBLEM}, {loss}: {mine.solver} is within {WITHIN:.0%} of the optimum in {ratio:.3f} of "
            f"{best.solver}'s time ({cpu_ratio:.3f} in CPU seconds); bar {TARGET_BAR:g}, "
            f"{met_in_time(ratio, cpu_ratio, TARGET_BAR)}"
        )
    return lines


# ---- All parts ----

Streamed = Callable[[Settings, Say], tuple[Sequence[Any], list[str]]]
STREAMS: dict[str, tuple[str, Streamed, str, Columns]] = {
    "file": ("file", streams.file_passes, "One pass over an svmlight file", streams.FILE_COLUMNS),
    "noise": ("noise", streams.noise, "Test accuracy after one pass over a noisy stream", streams.NOISE_COLUMNS),
    "prequential": (
        "prequential",
        streams.prequential,
        "Predict, then learn: seven cover types in batches of 1000, one thread",
        streams.PREQUENTIAL_COLUMNS,
    ),
    "memory": ("lengths", streams.lengths, "A stream of ten features, drawn on the fly", streams.LENGTH_COLUMNS),
}
PARTS = ("passes", "target", *STREAMS)
NOTES = (
    f"Passes: the wall time of a fit with {EPOCHS} epochs over {EPOCHS}, hinge loss, no intercept, float32, one "
    "thread; ours with the search for t0, and certified: with the objective after each pass and a lower bound at the "
    "end. Vowpal Wabbit reads its text in the first pass and a cache in the others, with a second thread.",
    "Target: ours with the search for t0; LIBLINEAR without the conversion of the examples, which stands beside.",
    "What bounds the time: on dense rows a pass reads X once, as X @ w does; GB/s of X compares the two.",
)


def run(settings: Settings, say: Say) -> Findings:
    found, lines = Findings(), list[str]()
    parts = settings.options.parts
    if "passes" in parts:
        measured = passes(settings, say)
        found.add(**measured.rows)
        found.tables += [
            of_rows(f"Seconds of a pass, {EPOCHS} epochs over {EPOCHS}", PASS_COLUMNS, measured.rows.get("passes", [])),
            of_rows("The bare product", PRODUCT_COLUMNS, measured.rows.get("products", [])),
        ]
        lines += judged_passes(measured.rows.get("passes", []))
    if "target" in parts:
        measured = arrivals(settings, say)
        found.add(**measured.rows)
        title = f"Seconds to a primal within {WITHIN:.0%} of the optimum, alpha={ALPHAS[TARGET_PROBLEM]:g}"
        found.tables.append(of_rows(title, ARRIVAL_COLUMNS, measured.rows["arrivals"]))
        lines += judged_arrivals(measured.rows["arrivals"])
    for part, (name, measure, title, columns) in STREAMS.items():
        if part in parts:
            rows, said = measure(settings, say)
            found.add(**{name: rows})
            found.tables.append(of_rows(title, columns, rows))
            lines += said
    found.lines = [*([] if settings.quick else lines), *NOTES]
    return found


STUDY = Comparison(
    name="sgd",
    title="Linear models by stochastic gradient against SGDClassifier, LIBLINEAR and Vowpal Wabbit",
    datasets=tuple(ALPHAS),
    default_datasets=("alpha", "covtype2", "news20-0", NEWS),
    quick_datasets=("alpha",),
    run=run,
    libraries=("larank", "scikit-learn", "liblinear-official", "vowpalwabbit", "numpy", "scipy"),
    solvers=libraries.GRADIENT,
    limit=300.0,
    options={
        "--parts": {
            "nargs": "+",
            "choices": PARTS,
            "default": PARTS,
            "metavar": "PART",
            "help": f"only these of: {', '.join(PARTS)}",
        }
    },
)
