"""Tables 3.3 to 3.6 and figures 3.1 and 3.2 of [thesis]: SGD-QN beside SVMSGD2, SGD, oLBFGS, ASGD and LIBLINEAR.

The squared hinge of the thesis has a factor 1/2, that of the library has none: the thesis's lambda is `alpha` / 2, its
primal cost half of the library's, and t0 is the same. There is no intercept, and all is in single precision.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from studies.datasets import GRADIENT, Dataset, load, load_small
from studies.drawing import PALETTE, panels
from studies.papers import vectors
from studies.papers.experiment import by_dataset, check_not_interrupted, error_percent, findings, timed_fit
from studies.papers.vectors import Sizes
from studies.study import Claim, Findings, Say, Scope, Study, is_so
from studies.tables import Table, digits

SGD, SVMSGD2, SGDQN, OLBFGS, ASGD, LIBLINEAR = "SGD", "SVMSGD2", "SGD-QN", "oLBFGS", "ASGD", "LIBLINEAR"
NAMES = {SGD: "sgd", SVMSGD2: "svmsgd2", SGDQN: "sgdqn", OLBFGS: "olbfgs", ASGD: "asgd"}
SHARED = f"{SVMSGD2}, t0 of {SGDQN}"
DENSE, SPARSE = ("alpha", "covtype2"), ("news20-0", "rcv1")
LAMBDA = {"alpha": 1e-5, "covtype2": 1e-5, "news20-0": 1e-4, "rcv1": 1e-4}

# Training and test examples, features, s, lambda, t0, skip.    [thesis] table 3.4
PAPER_DATA: dict[str, tuple[str, ...]] = {
    "ALPHA": ("100000", "50000", "500", "1", "1e-05", "1e+06", "16"),
    "DELTA": ("100000", "50000", "500", "1", "0.0001", "1e+04", "16"),
    "RCV1": ("781265", "23149", "47152", "0.0016", "0.0001", "1e+05", "9965"),
}
# Seconds of one pass.    [thesis] table 3.5
PAPER_SECONDS: dict[str, dict[str, float]] = {
    "alpha": {SGD: 0.13, SVMSGD2: 0.10, SGDQN: 0.21},
    "rcv1": {SGD: 36.8, SVMSGD2: 0.20, SGDQN: 0.37},
}
# lambda, skip, passes and rank in the Pascal challenge, whose errors are not told.    [thesis] table 3.6
PAPER_SETTINGS = {"Alpha": ("1e-05", "16", "10", "1st"), "Webspam": ("1e-05", "71066", "10", "4th")}
PAPER_SPARSE_FORM = 1.5  # the time of training on 500 dense attributes kept as sparse vectors, [thesis] section 3.1.3

PASSES, MOST_PASSES = 10, 30
SEEDS = {"alpha": 20, "covtype2": 20, "news20-0": 20, "rcv1": 5}
TRIALS, TIMED_PASSES = 3, 5
PASSES_OF_LIBLINEAR = (1, 2, 3, 5, 10)
BAR = 2.0
"""Of the time of a pass of SVMSGD2, that one of SGD-QN may take."""
SLOW_WORK = 2e9
"""Coefficients of w, over all examples, above which an algorithm that touches all of them at every visit is slow."""
PART = 2_000
"""Examples on which a pass is timed where a whole one takes minutes."""
QUICK = ("alpha", "rcv1")
QUICK_TRAIN, QUICK_TEST = 2_000, 1_000


# ---- One training ----


def _model(dataset: str, algorithm: str, seed: int, loss: str = "squared_hinge", **settings: Any) -> Any:
    from larank import LinearSGDClassifier

    alpha = LAMBDA[dataset] * (2 if loss == "squared_hinge" else 1)
    given = {"algorithm": NAMES[algorithm], "alpha": alpha, "fit_intercept": False, "random_state": seed}
    return LinearSGDClassifier(loss, **given, **settings)


def primal(dataset: str, data: Dataset, w: Any) -> float:
    """The thesis's P_n of weights, in double precision.    [thesis] (3.1)"""
    w = np.asarray(w, np.float64).ravel()
    short = np.maximum(0.0, 1.0 - data.y_train * np.asarray(data.X_train @ w).ravel())
    return LAMBDA[dataset] / 2 * float(w @ w) + float(np.mean(short * short)) / 2


@dataclass(frozen=True)
class Point:
    """After so many passes: seconds with the search for t0, P_n as the thesis has it, and the test error in percent."""

    passes: int
    seconds: float
    primal: float
    error: float


@dataclass(frozen=True)
class Curve:
    """One training, looked at after every pass; `spread` is the largest over the smallest coefficient of B."""

    dataset: str
    algorithm: str
    seed: int
    t0: float
    points: tuple[Point, ...]
    spread: float | None = None


def _curve(dataset: str, data: Dataset, algorithm: str, seed: int, passes: int, t0: float | None = None) -> Curve:
    """The objective is looked at in one training, the seconds are those of another that does not look."""
    of = SVMSGD2 if algorithm == SHARED else algorithm
    looked, timed = (_model(dataset, of, seed, max_iter=passes, t0=t0) for _ in range(2))
    looked.fit(data.X_train, data.y_train, validation=(data.X_test, data.y_test))
    check_not_interrupted(looked)
    seconds = timed_fit(timed, data.X_train, data.y_train, certify=False)
    a_pass = (timed.result_.seconds - timed.result_.breakdown["search"]) / passes
    found = {round(at.iterations): at for at in looked.result_.history if at.exact}
    errors = {round(at.iterations): at.error for at in looked.result_.history if at.error is not None}
    points = tuple(
        Point(n, seconds - (passes - n) * a_pass, found[n].primal / 2, 100.0 * errors[n]) for n in sorted(found)
    )
    scaling = looked._state.get("scaling") if of == SGDQN else None
    spread = None if scaling is None else float(scaling.max() / scaling.min())
    return Curve(dataset, algorithm, seed, float(looked.t0_), points, spread)


def _liblinear(dataset: str, data: Dataset, seed: int, passes: Iterable[int]) -> Curve:
    """Dual coordinate descent, by scikit-learn; its seconds include handing over the examples."""
    from sklearn.svm import LinearSVC

    cost = 1 / (2 * LAMBDA[dataset] * len(data.y_train))
    points = []
    for count in passes:
        settings = {"C": cost, "max_iter": count, "tol": 1e-10, "fit_intercept": False, "random_state": seed}
        model = LinearSVC(loss="squared_hinge", dual=True, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it has not converged
            seconds = timed_fit(model, data.X_train, data.y_train)
        points.append(Point(count, seconds, primal(dataset, data, model.coef_), error_percent(model, data)))
    return Curve(dataset, LIBLINEAR, seed, math.nan, tuple(points))


# ---- Passes to the same primal cost ----


@dataclass(frozen=True)
class Race:
    """The passes until P_n is what SVMSGD2 has after its last one, both with the same t0; None if that was not seen."""

    dataset: str
    seed: int
    target: float
    svmsgd2: int
    sgdqn: int | None


def passes_until(target: float, points: Sequence[Point]) -> int | None:
    """The first of them after which the primal cost is no higher."""
    return next((at.passes for at in points if at.primal <= target), None)


def _race(dataset: str, data: Dataset, seed: int, t0: float) -> Race:
    def points(algorithm: str, passes: int) -> list[Point]:
        model = _model(dataset, algorithm, seed, max_iter=passes, t0=t0).fit(data.X_train, data.y_train)
        check_not_interrupted(model)
        return [Point(round(at.iterations), 0.0, at.primal / 2, 0.0) for at in model.result_.history if at.exact]

    first = points(SVMSGD2, PASSES)
    target = first[-1].primal
    reached = passes_until(target, first)
    assert reached is not None
    return Race(dataset, seed, target, reached, passes_until(target, points(SGDQN, MOST_PASSES)))


# ---- Seconds of a pass ----


@dataclass(frozen=True)
class PassTime:
    """Seconds of one pass; `of_part` if they are those of a part of the examples, scaled up."""

    dataset: str
    algorithm: str
    seconds: float
    of_part: bool = False


def _pass_times(dataset: str, data: Dataset, t0: float) -> list[PassTime]:
    """The best of a few trials, in turns; averaged SGD evens out the scales of features, unless t0 is given."""
    work = float(np.prod(data.X_train.shape))
    parts = {algorithm: algorithm == OLBFGS and work > SLOW_WORK for algorithm in NAMES}
    trials: dict[str, list[float]] = {algorithm: [] for algorithm in NAMES}
    for _ in range(TRIALS):
        for algorithm, of_part in parts.items():
            slow = algorithm in (SGD, OLBFGS) and work > SLOW_WORK / 10
            rows = slice(PART if of_part else None)
            given: dict[str, Any] = {"max_iter": 1 if slow else TIMED_PASSES, "t0": None if algorithm == ASGD else t0}
            model = _model(dataset, algorithm, 0, **given)
            result = model.fit(data.X_train[rows], data.y_train[rows], certify=False).result_
            seconds = (result.seconds - result.breakdown["search"]) / given["max_iter"]
            trials[algorithm].append(seconds * len(data.y_train) / len(data.y_train[rows]))
    return [PassTime(dataset, algorithm, min(trials[algorithm]), of_part) for algorithm, of_part in parts.items()]


def _as_sparse_vectors(data: Dataset, t0: float) -> float:
    """The time of a pass over dense examples kept as sparse vectors, over that with full ones."""
    forms: dict[str, Any] = {"full": data.X_train, "sparse": sparse.csr_matrix(data.X_train)}
    trials: dict[str, list[float]] = {form: [] for form in forms}
    for _ in range(TRIALS):
        for form, X in forms.items():
            model = _model("alpha", SVMSGD2, 0, max_iter=TIMED_PASSES, t0=t0).fit(X, data.y_train, certify=False)
            trials[form].append(model.result_.seconds)
    return min(trials["sparse"]) / min(trials["full"])


# ---- What is known of a data set ----


@dataclass(frozen=True)
class Facts:
    """A data set as table 3.4 has it, and the test error in the setting of table 3.6, with the hinge loss."""

    dataset: str
    train: int
    test: int
    features: int
    share: float
    skip: int
    t0: Mapping[str, float]
    final_error: float


def _facts(dataset: str, data: Dataset, curves: Iterable[Curve]) -> Facts:
    from larank.linear.gradientmachine import visits_per_regularisation

    X = data.X_train
    share = (X.nnz if sparse.issparse(X) else np.count_nonzero(X)) / float(np.prod(X.shape))
    final = _model(dataset, SGDQN, 0, "hinge", max_iter=PASSES).fit(X, data.y_train, certify=False)
    skip = visits_per_regularisation(X, NAMES[SGDQN])
    t0 = {at.algorithm: at.t0 for at in curves if at.algorithm in NAMES}
    sizes = len(data.y_train), len(data.y_test), X.shape[1]
    return Facts(dataset, *sizes, share, skip, t0, error_percent(final, data))


# ---- Tables ----


def _data_table(found: Sequence[Facts], notes: Sequence[str]) -> Table:
    headings = ("", "examples", "test", "features", "s", "lambda", f"t0, {SGDQN}", "skip", "t0, others")
    notes = [*notes, *(f"{at.dataset}: {GRADIENT[at.dataset].note}." for at in found)]
    table = Table("Data sets and parameters (thesis, table 3.4)", headings, notes)
    for name, cells in PAPER_DATA.items():
        table.add(f"{name}, thesis", *cells, style="dim")
    table.end_group()
    for at in found:
        others = ", ".join(f"{name} {t0:.2g}" for name, t0 in at.t0.items() if name != SGDQN)
        sizes = (str(at.train), str(at.test), str(at.features), f"{at.share:.2g}")
        table.add(at.dataset, *sizes, f"{LAMBDA[at.dataset]:g}", f"{at.t0[SGDQN]:.2g}", str(at.skip), others)
    return table


def _seconds_table(times: Sequence[PassTime], notes: Sequence[str]) -> Table:
    notes = [*notes, "The best of three; without the search for t0 and without looking at the objective."]
    if any(time.of_part for time in times):
        notes.append(f"* {PART} examples were timed, the rest is proportion: a whole pass takes minutes.")
    table = Table("Seconds of one pass (thesis, table 3.5)", ("", *NAMES), notes)
    for dataset, group in by_dataset(times).items():
        if dataset in PAPER_SECONDS:
            published = PAPER_SECONDS[dataset]
            cells = (f"{published[name]:.2f}" if name in published else "-" for name in NAMES)
            table.add(f"{dataset.upper()}, thesis", *cells, style="dim")
        mine = {time.algorithm: time for time in group}
        table.add(dataset, *(digits(mine[name].seconds) + "*" * mine[name].of_part for name in NAMES))
        table.end_group()
    return table


def _settings_table(found: Iterable[Facts], notes: Sequence[str]) -> Table:
    notes = [*notes, f"{SGDQN} with the hinge loss, seed 0. The thesis prints ranks among 42 methods."]
    headings = ("", "lambda", "skip", "passes", "test error %", "rank")
    table = Table("The setting of the Pascal challenge (thesis, table 3.6)", headings, notes)
    for name, (weight, skip, passes, rank) in PAPER_SETTINGS.items():
        table.add(f"{name}, thesis", weight, skip, passes, "-", rank, style="dim")
    for at in found:
        table.add(at.dataset, f"{LAMBDA[at.dataset]:g}", str(at.skip), str(PASSES), f"{at.final_error:.2f}", "-")
    return table


def _curve_table(dataset: str, curves: Sequence[Curve], notes: Sequence[str]) -> Table:
    notes = [
        *notes,
        "Primal: P_n of the thesis. Seconds: with the search for t0, without looking at the objective. "
        f"{LIBLINEAR}: scikit-learn's LinearSVC, handing over the examples included. Seed 0.",
    ]
    if OLBFGS not in {curve.algorithm for curve in curves}:
        notes.append(f"{OLBFGS} is left out: a pass takes minutes.")
    title = f"Primal cost and test error on {dataset} (thesis, figures 3.1 and 3.2)"
    table = Table(title, ("", "passes", "seconds", "primal", "test error %"), notes)
    for curve in curves:
        shown = [at for at in curve.points if at.passes in (*PASSES_OF_LIBLINEAR, curve.points[-1].passes)]
        for number, at in enumerate(shown):
            cells = str(at.passes), digits(at.seconds), f"{at.primal:.5f}", f"{at.error:.2f}"
            table.add("" if number else curve.algorithm, *cells)
        table.end_group()
    return table


# ---- Claims ----


def race_claim(dataset: str, races: Sequence[Race]) -> Claim:
    """Return the claim that SGD-QN needs fewer passes on dense data and at most as many on sparse data."""
    ours = np.array([MOST_PASSES + 1 if race.sgdqn is None else race.sgdqn for race in races])
    theirs = np.array([race.svmsgd2 for race in races])
    first, second, difference = theirs.mean(), ours.mean(), ours - theirs
    holds, bar = (second < first, "fewer") if dataset in DENSE else (second <= first, "at most as many")
    doubt = f"{difference.std(ddof=1) / math.sqrt(len(races)):.1f}" if len(races) > 1 else "unknown"
    seeds = ", ".join(f"{np.sum(np.sign(difference) == sign)} {word}" for sign, word in _SIGNS.items())
    lacking = sum(race.sgdqn is None for race in races)
    missing = f" ({lacking} of them not within {MOST_PASSES}, which count as one more)" if lacking else ""
    said = (
        f"{dataset}: passes to the primal cost that {SVMSGD2} has after {PASSES}, the same t0, mean of "
        f"{len(races)} seeds: {SVMSGD2} {first:.1f}, {SGDQN} {second:.1f}{missing}; by seed {seeds}, standard "
        f"error of the difference {doubt}"
    )
    return is_so(said, bool(holds), bar)


def _time_claim(dataset: str, times: Iterable[PassTime]) -> Claim:
    mine = {time.algorithm: time.seconds for time in times}
    ratio = mine[SGDQN] / mine[SVMSGD2]
    return Claim(f"{dataset}: a pass of {SGDQN} takes {ratio:.2f} of one of {SVMSGD2}", ratio, most=BAR)


def _lines(curves: Iterable[Curve], sparse_form: float | None) -> list[str]:
    lines = []
    if sparse_form is not None:
        lines.append(
            f"alpha as sparse vectors: a pass of {SVMSGD2} takes {sparse_form:.2f} times as long as with full "
            f"ones (thesis: {PAPER_SPARSE_FORM:g})."
        )
    spreads = [f"{curve.dataset} {curve.spread:.3g}" for curve in curves if curve.spread is not None]
    return [
        *lines,
        f"Largest over smallest coefficient of B after {SGDQN}: {', '.join(spreads)}.",
        "On dense data without zeros the secant that the thesis prints is the same for all features: with "
        "w' - w = -B g x / (t + t0) the value x_i cancels out, and what remains depends on B_ii and on the loss "
        "alone. B stays a multiple of the identity there, and what SGD-QN gains are shorter steps, not a "
        "better direction. Only zeros make the coefficients differ.",
    ]


_SIGNS = {-1: "fewer", 0: "as many", 1: "more"}


# ---- Running it ----


def _curves(dataset: str, data: Dataset, say: Say) -> list[Curve]:
    found: list[Curve] = []

    def follow(algorithm: str, t0: float | None = None) -> None:
        passes = 3 if algorithm == OLBFGS and np.prod(data.X_train.shape) > SLOW_WORK / 10 else PASSES
        found.append(_curve(dataset, data, algorithm, 0, passes, t0))
        _tell(found[-1], say)

    follow(SGDQN)
    follow(SVMSGD2)
    follow(SHARED, found[0].t0)
    if np.prod(data.X_train.shape) <= SLOW_WORK:
        follow(OLBFGS)
    follow(ASGD)
    found.append(_liblinear(dataset, data, 0, PASSES_OF_LIBLINEAR))
    _tell(found[-1], say)
    return found


def _tell(curve: Curve, say: Say) -> None:
    last = curve.points[-1]
    told = f"{digits(last.seconds)} s, primal {last.primal:.5f}, error {last.error:.2f} %"
    say(f"{curve.dataset}, {curve.algorithm}, {last.passes} passes: {told}")


def _races(dataset: str, data: Dataset, seeds: Iterable[int], say: Say) -> list[Race]:
    found = []
    for seed in seeds:
        first = _model(dataset, SGDQN, seed, max_iter=1).fit(data.X_train, data.y_train, certify=False)
        found.append(_race(dataset, data, seed, float(first.t0_)))
        say(f"{dataset}, seed {seed}: {SVMSGD2} {found[-1].svmsgd2} passes, {SGDQN} {found[-1].sgdqn}")
    return found


def _run(scope: Scope, say: Say) -> Findings:
    say("costs of vector operations")
    sizes = Sizes(20_000, 1_000, 1_000) if scope.quick else Sizes()
    costs = vectors.costs(sizes)
    facts: list[Facts] = []
    times: list[PassTime] = []
    curves: list[Curve] = []
    races: list[Race] = []
    sparse_form = None
    for dataset in scope.present(LAMBDA, QUICK, say, lambda name: GRADIENT[name].source):
        data = load_small(dataset, GRADIENT, QUICK_TRAIN, QUICK_TEST) if scope.quick else load(dataset, GRADIENT)
        followed = _curves(dataset, data, say)
        curves += followed
        facts.append(_facts(dataset, data, followed))
        times += _pass_times(dataset, data, followed[0].t0)
        races += _races(dataset, data, scope.seed_range(SEEDS[dataset]), say)
        if dataset == "alpha":
            sparse_form = _as_sparse_vectors(data, followed[0].t0)
    notes = ["Quick form: a few thousand examples, where the thesis has all."] if scope.quick else []
    tables = [vectors.table(costs, sizes)]
    tables += [_data_table(facts, notes), _seconds_table(times, notes), _settings_table(facts, notes)]
    tables += [_curve_table(dataset, mine, notes) for dataset, mine in by_dataset(curves).items()]
    timed = by_dataset(times)
    claims = [
        each
        for name, of in by_dataset(races).items()
        for each in (race_claim(name, of), _time_claim(name, timed[name]))
    ]
    numbers = {"costs": costs, "facts": facts, "times": times, "curves": curves, "races": races}
    return findings(scope, tables, claims, _lines(curves, sparse_form), **numbers, sparse_form=sparse_form)


_X_AXES = ("passes", "seconds")
_Y_AXES = {"primal": "primal cost", "error": "test error (%)"}


def _draw(outcome: Findings, figure: Any) -> None:
    """A row of panels for each data set: figure 3.1 on the left, figure 3.2 on the right."""
    groups = by_dataset(outcome.others["curves"])
    figure.set_size_inches(15, 3.2 * len(groups))
    colors = dict(zip((SGDQN, SVMSGD2, OLBFGS, ASGD, LIBLINEAR), PALETTE, strict=True))
    for row, dataset, curves in panels(figure, groups, columns=4):
        for axes, (y, x) in zip(row, product(_Y_AXES, _X_AXES), strict=True):
            for curve in curves:
                style, color = ("--", colors[SVMSGD2]) if curve.algorithm == SHARED else ("-", colors[curve.algorithm])
                values = [[getattr(at, name) for at in curve.points] for name in (x, y)]
                axes.plot(*values, style, marker="o", markersize=3, color=color, label=curve.algorithm)
            axes.set(title=dataset, xlabel=x, ylabel=_Y_AXES[y], xscale="log" if x == "seconds" else "linear")
        row[0].legend(frameon=False, fontsize=8)


_TITLE = "SGD-QN beside other stochastic gradient algorithms (thesis, tables 3.3 to 3.6, figures 3.1 and 3.2)"
STUDY = Study("sgdqn", _TITLE, _run, tuple(LAMBDA), draw=_draw, has_seeds=True)
