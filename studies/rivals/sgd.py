"""`python -m studies sgd`: linear models by stochastic gradient, against SGDClassifier, LIBLINEAR and Vowpal Wabbit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from studies import datasets
from studies.measure import TimeoutExceededError
from studies.rivals import gradientruns, libraries, streams
from studies.rivals.contest import Entrant, beside_before, entrants, fastest, runs_in_turns
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
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import column, derived, of_rows

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

    problem: str = column("problem")
    solver: str = column("solver")
    formulation: str = column("objective")
    rival: str
    seconds: float = column("s per pass", ".4f")
    ratio: float | None = column("over rival", ".3f")
    cpu: float = column("CPU s", ".4f")
    cpu_ratio: float | None = column("over rival, CPU", ".3f")
    over_product: float = column("over X @ w", ".2f")
    gigabytes: float = column("GB/s of X", ".1f")


@dataclass(frozen=True)
class Product:
    """Seconds of X times w, or W of all classes, and the bytes of X over them."""

    problem: str = column("problem")
    megabytes: float = column("X, MB", ".0f")
    seconds: float = column("X @ w, s", ".4f")
    gigabytes: float = column("GB/s", ".1f")


def _solver(entrant: Entrant) -> GradientSolver:
    return libraries.GRADIENT[entrant.solver]


def _entrants(scope: Scope, say: Say) -> list[Entrant]:
    """Those chosen; the quick form leaves the certificates out."""
    found = entrants(scope, libraries.GRADIENT, say)
    return [taker for taker in found if not (scope.quick and taker.solver.endswith("-certified"))]


def _takers(takers: Iterable[Entrant], problem: GradientProblem) -> list[Entrant]:
    """Those that count epochs, once for each formulation of many classes."""
    found = []
    for taker in takers:
        if _solver(taker).counts_epochs:
            forms = ("one-vs-rest",) if problem.is_binary else _solver(taker).formulations
            found += [replace(taker, form=form) for form in forms]
    return found


def passes(scope: Scope, say: Say) -> Findings:
    """All solvers on all problems, in turns."""
    found = Findings()
    for name in scope.datasets:
        if not datasets.is_available(gradientruns.source(name)):
            say(f"{name}: absent from the data directory, left out")
            continue
        problem = gradientruns.load(name, scope.quick)
        takers = _takers(_entrants(scope, say), problem)
        with stored(problem, any(taker.solver == VOWPAL for taker in takers)) as folder:
            measures = {taker: _measure(folder, taker, problem, scope) for taker in takers}
            runs, unfinished = runs_in_turns(name, measures, scope, say, _told)
            product = _product(name, measure_product(folder))
        rows = [_pass(name, taker, runs, product) for taker in takers if taker in runs]
        found.add(passes=rows, products=[product], unfinished=unfinished, before=beside_before(name, runs))
    return found


def _measure(folder: Path, taker: Entrant, problem: GradientProblem, scope: Scope) -> Callable[[], GradientRun]:
    return partial(measure_fit, folder, taker, EPOCHS, "hinge", problem.alpha, scope.limit)


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


def judged_passes(rows: Iterable[Pass]) -> list[Claim]:
    """Return what each pass of ours is held to."""
    return [
        Claim(
            f"{row.problem}: a pass of {row.solver}, {row.formulation}, takes {row.ratio:.3f} of {row.rival}'s "
            f"({row.cpu_ratio:.3f} in CPU seconds)",
            row.ratio,
            most=PASS_BAR_OF_MANY if row.problem == NEWS else PASS_BAR,
            also=row.cpu_ratio,
        )
        for row in rows
        if row.ratio is not None and row.cpu_ratio is not None
    ]


# ---- Seconds to a primal cost near the optimum ----


@dataclass(frozen=True)
class Arrival:
    """The least effort with which a solver's primal is within the target of the optimum, else the most that was tried.

    `effort` are epochs or a tolerance; the seconds are the least of several runs with it.
    """

    problem: str = column("problem")
    loss: str = column("loss")
    solver: str = column("solver")
    effort: float
    reached: bool

    @derived("epochs or tolerance")
    def tried(self) -> str:
        return f"{self.effort:g}" + ("" if self.reached else " (missed)")

    wall: float = column("wall s", ".3f")
    cpu: float = column("CPU s", ".3f")
    primal: float = column("primal", ".5f")
    above: float = column("above optimum", ".1e")
    conversion: float = column("conversion s", ".2f")


@dataclass(frozen=True)
class _Contest:
    """One problem, one loss and its optimum."""

    problem: GradientProblem
    loss: str
    optimum: float
    folder: Path
    scope: Scope
    say: Say

    def run(self, taker: Entrant, effort: float) -> GradientRun:
        alpha, limit = self.problem.alpha, self.scope.limit
        return measure_fit(self.folder, taker, effort, self.loss, alpha, limit)

    def above(self, run: GradientRun) -> float:
        return primal(self.problem, self.loss, run.W[0]) / self.optimum - 1

    def arrival(self, taker: Entrant) -> tuple[float, GradientRun] | None:
        """The first effort that is enough, or the last within the limit, and its run."""
        last = None
        efforts = _solver(taker).efforts
        for effort in efforts[len(efforts) // 2 :][:1] if self.scope.quick else efforts:
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


def arrivals(scope: Scope, say: Say) -> list[Arrival]:
    """For each loss, every solver that has it."""
    found: list[Arrival] = []
    problem = gradientruns.load(TARGET_PROBLEM, scope.quick)
    takers = [replace(taker, form="one-vs-rest") for taker in _entrants(scope, say)]
    with stored(problem, any(taker.solver == VOWPAL for taker in takers)) as folder:
        for loss in LOSSES[:1] if scope.quick else LOSSES:
            say(f"{problem.name}, {loss}: optimum")
            contest = _Contest(problem, loss, least_primal(problem, loss), folder, scope, say)
            found += _arrivals(contest, [taker for taker in takers if loss in _solver(taker).losses])
    return found


def _arrivals(contest: _Contest, takers: Iterable[Entrant]) -> list[Arrival]:
    """The efforts one after the other, then the remaining runs in turns."""
    first = {taker: arrival for taker in takers if (arrival := contest.arrival(taker)) is not None}
    reached = {taker for taker, (_, run) in first.items() if contest.above(run) <= WITHIN}
    runs = {taker: [run] for taker, (_, run) in first.items()}
    for _ in range(contest.scope.repeats - 1):
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


def judged_arrivals(rows: Sequence[Arrival]) -> list[Claim]:
    """Return how our best stands to the best rival, for each loss."""
    claims = []
    near = f"within {WITHIN:.0%} of the optimum"
    for loss in dict.fromkeys(row.loss for row in rows):
        there = [row for row in rows if row.loss == loss and row.reached]
        ours = [row for row in there if libraries.GRADIENT[row.solver].is_ours]
        theirs = [row for row in there if not libraries.GRADIENT[row.solver].is_ours]
        if not ours or not theirs:
            said = f"{TARGET_PROBLEM}, {loss}: {'no rival' if ours else 'none of ours'} came {near}"
            claims.append(Claim(said, math.nan, most=TARGET_BAR))
            continue
        mine, best = (min(some, key=lambda row: row.wall) for some in (ours, theirs))
        ratio, cpu_ratio = mine.wall / best.wall, mine.cpu / best.cpu
        said = f"{TARGET_PROBLEM}, {loss}: {mine.solver} is {near} in {ratio:.3f} of {best.solver}'s time"
        claims.append(Claim(f"{said} ({cpu_ratio:.3f} in CPU seconds)", ratio, most=TARGET_BAR, also=cpu_ratio))
    return claims


# ---- All parts ----

Streamed = Callable[[Scope, Say], tuple[Sequence[Any], list[Claim]]]
STREAMS: dict[str, tuple[str, Streamed, str]] = {
    "file": ("file", streams.file_passes, "One pass over an svmlight file"),
    "noise": ("noise", streams.noise, "Test accuracy after one pass over a noisy stream"),
    "prequential": (
        "prequential",
        streams.prequential,
        "Predict, then learn: seven cover types in batches of 1000, one thread",
    ),
    "memory": ("lengths", streams.lengths, "A stream of ten features, drawn on the fly"),
}
PARTS = ("passes", "target", *STREAMS)
NOTES = (
    f"Passes: the wall time of a fit with {EPOCHS} epochs over {EPOCHS}, hinge loss, no intercept, float32, one "
    "thread; ours with the search for t0, and certified: with the objective after each pass and a lower bound at the "
    "end. Vowpal Wabbit reads its text in the first pass and a cache in the others, with a second thread.",
    "Target: ours with the search for t0; LIBLINEAR without the conversion of the examples, which stands beside.",
    "What bounds the time: on dense rows a pass reads X once, as X @ w does; GB/s of X compares the two.",
)


def run(scope: Scope, say: Say) -> Findings:
    found, claims = Findings(lines=list(NOTES)), list[Claim]()
    parts = scope.options.parts
    if "passes" in parts:
        rows = passes(scope, say).rows
        found.add(**rows)
        found.tables.append(of_rows(f"Seconds of a pass, {EPOCHS} epochs over {EPOCHS}", rows["passes"]))
        found.tables.append(of_rows("The bare product", rows["products"]))
        claims += judged_passes(rows["passes"])
    if "target" in parts:
        reached = arrivals(scope, say)
        found.add(arrivals=reached)
        title = f"Seconds to a primal within {WITHIN:.0%} of the optimum, alpha={ALPHAS[TARGET_PROBLEM]:g}"
        found.tables.append(of_rows(title, reached))
        claims += judged_arrivals(reached)
    for part, (name, measure, title) in STREAMS.items():
        if part in parts:
            streamed, judged = measure(scope, say)
            found.add(**{name: streamed})
            found.tables.append(of_rows(title, streamed))
            claims += judged
    found.claims = [] if scope.quick else claims
    return found


STUDY = Study(
    name="sgd",
    title="Linear models by stochastic gradient against SGDClassifier, LIBLINEAR and Vowpal Wabbit",
    datasets=tuple(ALPHAS),
    default_datasets=("alpha", "covtype2", "news20-0", NEWS),
    quick_datasets=("alpha",),
    run=run,
    libraries=("liblinear-official", "vowpalwabbit"),
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
