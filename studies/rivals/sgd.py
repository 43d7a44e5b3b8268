"""`python -m studies sgd`: linear models by stochastic gradient, against SGDClassifier, LIBLINEAR and Vowpal Wabbit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies import datasets, storage
from studies.datasets import GRADIENT, LINEAR
from studies.measure import TimeoutExceededError, ask
from studies.rivals import libraries, linearruns, streams
from studies.rivals.contest import Entrant, entrants, fastest, least, runs_in_turns
from studies.rivals.libraries import vowpal
from studies.rivals.libraries.solver import GradientSolver
from studies.rivals.linearruns import TASKS, THREADS, LinearRun
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import column, derived, of_rows

EPOCHS = 5
WITHIN = 0.01
LOSSES = ("hinge", "squared_hinge")
TARGET_PROBLEM = "alpha"
PASS_BAR, PASS_BAR_OF_MANY = 1 / 2, 1 / 8
TARGET_BAR = 1 / 2
VOWPAL = "vowpal"


# ---- Problems and runs ----

NEWS = "news20"  # all twenty groups
ALPHAS = {"alpha": 1e-5, "covtype2": 1e-5, "news20-0": 1e-4, "rcv1": 1e-4, NEWS: 1e-4}
QUICK_TRAIN, QUICK_TEST = 2_000, 500


@dataclass(frozen=True)
class GradientProblem:
    """Training examples in float32 with labels -1 and +1, or 0 .. k - 1, and the weight of the regularisation."""

    name: str
    X: Any
    y: NDArray[np.int64]
    alpha: float

    @property
    def is_binary(self) -> bool:
        return int(self.y.min()) < 0


def source(name: str) -> str:
    return (GRADIENT if name in GRADIENT else LINEAR)[name].source


def load(name: str, quick: bool) -> GradientProblem:
    known = GRADIENT if name in GRADIENT else LINEAR
    data = datasets.load_small(name, known, QUICK_TRAIN, QUICK_TEST) if quick else datasets.load(name, known)
    return GradientProblem(name, data.X_train.astype(np.float32, copy=False), data.y_train, ALPHAS[name])


@contextmanager
def stored(problem: GradientProblem, as_text: bool) -> Iterator[Path]:
    """The examples for the children; as text, too, if someone reads nothing else."""
    with storage.stored(problem.name, {"X_train": problem.X, "y_train": problem.y}) as folder:
        if as_text:
            vowpal.write(folder / vowpal.TEXT, problem.X, problem.y)
        yield folder


def measure_fit(
    folder: Path, entrant: Entrant, effort: float, loss: str, alpha: float, limit: float | None
) -> LinearRun:
    """Train once; the form of the entrant is its formulation."""
    what = {"loss": loss, "alpha": alpha, "formulation": entrant.form, "effort": effort}
    return linearruns.measure("fit_gradient", "gradient", folder, entrant, THREADS, limit, **what)


def measure_product(folder: Path) -> tuple[float, float]:
    """Return the bytes of X, and the seconds of the bare product with it."""
    found = ask(TASKS, "product", folder, THREADS, None, loss="hinge", alpha=1.0, formulation="one-vs-rest")
    return found["bytes"], found["seconds"]


def primal(problem: GradientProblem, loss: str, w: NDArray[np.float64]) -> float:
    """alpha/2 |w|^2 plus the mean loss of two classes, in double precision."""
    short = np.maximum(0.0, 1.0 - problem.y * np.asarray(problem.X @ w))
    return problem.alpha / 2 * float(w @ w) + float(np.mean(short * short if loss == "squared_hinge" else short))


def least_primal(problem: GradientProblem, loss: str) -> float:
    """The optimum: by L-BFGS where the loss is smooth, else a lower bound on it from a certificate."""
    return _by_lbfgs(problem) if loss == "squared_hinge" else _by_dual_bound(problem)


def _by_lbfgs(problem: GradientProblem) -> float:
    from scipy.optimize import minimize

    X, y = problem.X.astype(np.float64), problem.y

    def value_and_gradient(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        short = np.maximum(0.0, 1.0 - y * (X @ w))
        value = problem.alpha / 2 * float(w @ w) + float(np.mean(short * short))
        return value, problem.alpha * w - 2 / len(y) * (X.T @ (y * short))

    settings = {"maxiter": 2000, "ftol": 1e-10, "gtol": 1e-9, "maxcor": 30}
    found = minimize(value_and_gradient, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options=settings)
    return float(found.fun)


def _by_dual_bound(problem: GradientProblem) -> float:
    """At most a tenth of a thousandth below the optimum; of two classes, one-versus-rest is the same problem twice."""
    from larank import LinearMulticlassSVC

    C = 1 / (problem.alpha * len(problem.y))
    settings: dict[str, Any] = {"C": C, "stop": "gap", "tol": 1e-4, "fit_intercept": False, "random_state": 0}
    model = LinearMulticlassSVC("one-vs-rest", **settings, max_iter=100_000).fit(problem.X, problem.y)
    return float(model.result_.dual) * problem.alpha / 2


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


def passes(scope: Scope, say: Say) -> Findings:
    """All solvers that count epochs on all problems, in turns, once for each formulation of many classes."""
    found = Findings()
    for name in scope.present((), (), say, source):
        problem = load(name, scope.quick)
        counting = [taker for taker in _entrants(scope, say) if _solver(taker).counts_epochs]
        takers = [
            replace(taker, form=form)
            for taker in counting
            for form in (("one-vs-rest",) if problem.is_binary else _solver(taker).formulations)
        ]
        with stored(problem, any(taker.solver == VOWPAL for taker in takers)) as folder:
            asked = EPOCHS, "hinge", problem.alpha, scope.limit
            measures = {taker: partial(measure_fit, folder, taker, *asked) for taker in takers}
            runs = runs_in_turns(found, name, measures, scope, say, lambda run: f"{run.wall / EPOCHS:.4f} s per pass")
            size, seconds = measure_product(folder)
        product = Product(name, size / 1e6, seconds, size / seconds / 1e9)
        found.add(passes=[_pass(name, taker, runs, product) for taker in takers if taker in runs], products=[product])
    return found


def _pass(problem: str, taker: Entrant, runs: Mapping[Entrant, Sequence[LinearRun]], product: Product) -> Pass:
    rival = _solver(taker).rival
    theirs = least(runs.get(Entrant(rival, "one-vs-rest"), ()), "wall", "cpu")
    wall, cpu = least(runs[taker], "wall", "cpu")
    return Pass(
        problem,
        taker.name,
        taker.form,
        rival,
        seconds=wall / EPOCHS,
        ratio=wall / theirs[0] if theirs[0] else None,
        cpu=cpu / EPOCHS,
        cpu_ratio=cpu / theirs[1] if theirs[0] else None,
        over_product=wall / EPOCHS / product.seconds,
        gigabytes=product.megabytes / 1e3 / (wall / EPOCHS),
    )


def judged_passes(rows: Iterable[Pass]) -> list[Claim]:
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

    def run(self, taker: Entrant, effort: float) -> LinearRun:
        return measure_fit(self.folder, taker, effort, self.loss, self.problem.alpha, self.scope.limit)

    def above(self, run: LinearRun) -> float:
        return primal(self.problem, self.loss, run.W[0]) / self.optimum - 1

    def arrival(self, taker: Entrant) -> tuple[float, LinearRun] | None:
        """The first effort that is enough, or the last within the limit, and its run."""
        last, efforts = None, _solver(taker).efforts
        for effort in efforts[len(efforts) // 2 :][:1] if self.scope.quick else efforts:
            words = f"{self.problem.name}, {self.loss}: {taker.name} with {effort:g}"
            try:
                run = self.run(taker, effort)
            except TimeoutExceededError as exceeded:
                self.say(f"{words}: {exceeded}")
                break
            last = effort, run
            self.say(f"{words}: {run.wall:.3f} s, {self.above(run):.1e} above the optimum")
            if self.above(run) <= WITHIN:
                break
        return last


def arrivals(scope: Scope, say: Say) -> list[Arrival]:
    """For each loss, every solver that has it."""
    found: list[Arrival] = []
    problem = load(TARGET_PROBLEM, scope.quick)
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
        for taker in (taker for taker in first if taker in reached):
            runs[taker].append(contest.run(taker, first[taker][0]))
    found, problem, loss = [], contest.problem, contest.loss
    for taker, some in runs.items():
        best = fastest(some)
        reached_primal, conversion = primal(problem, loss, best.W[0]), float(best.extra.get("conversion_wall", 0.0))
        figures = best.wall, least(some, "cpu"), reached_primal, contest.above(best), conversion
        found.append(Arrival(problem.name, loss, taker.name, first[taker][0], taker in reached, *figures))
    return found


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


Streamed = Callable[[Scope, Say], tuple[Sequence[Any], list[Claim]]]
_IN_BATCHES = "Predict, then learn: seven cover types in batches of 1000, one thread"
STREAMS: dict[str, tuple[str, Streamed, str]] = {
    "file": ("file", streams.file_passes, "One pass over an svmlight file"),
    "noise": ("noise", streams.noise, "Test accuracy after one pass over a noisy stream"),
    "prequential": ("prequential", streams.prequential, _IN_BATCHES),
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


_TITLE = "Linear models by stochastic gradient against SGDClassifier, LIBLINEAR and Vowpal Wabbit"
_PARTS = {"nargs": "+", "choices": PARTS, "default": PARTS, "metavar": "PART"}
_PARTS["help"] = f"only these of: {', '.join(PARTS)}"
_CHOICES: dict[str, Any] = {"solvers": libraries.GRADIENT, "libraries": ("liblinear-official", "vowpalwabbit")}
_CHOICES |= {"limit": 300.0, "options": {"--parts": _PARTS}}
_DEFAULT = ("alpha", "covtype2", "news20-0", NEWS)
STUDY = Study("sgd", _TITLE, run, tuple(ALPHAS), _DEFAULT, ("alpha",), **_CHOICES)
