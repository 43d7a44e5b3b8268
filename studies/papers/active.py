"""Figures 4.11 to 4.16 of [thesis]: which example LaSVM takes next, and learning from labels that are asked for."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from studies.datasets import BINARY, Dataset, load
from studies.drawing import PALETTE, panels
from studies.papers.experiment import by_dataset, error_percent, findings, timed_fit
from studies.study import Claim, Findings, Say, Scope, Study, is_so
from studies.tables import Table, digits

RANDOM, GRADIENT, ACTIVE, AUTOACTIVE = "RANDOM", "GRADIENT", "ACTIVE", "AUTOACTIVE"
ACTIVE_ALL, RETRAIN, RETRAIN_ALL = "ACTIVE ALL", "RETRAIN ACTIVE 50", "RETRAIN ACTIVE ALL"
SAMPLE = 50
SHARE = 1 / 3
"""Of the support vectors of the full solution, that AUTOACTIVE may need at most for its error on ADULT.

[thesis] section 4.3.2 has 2500 of 11278.
"""
PAPER_SECONDS = {RETRAIN_ALL: 917.0, ACTIVE_ALL: 99.0, ACTIVE: 9.6}  # 500 labels of REUTERS, [thesis] section 4.3.2


@dataclass(frozen=True)
class Protocol:
    """Which selections are compared on a data set, and after how many labels their error is looked at.

    The costly ones, which look at many examples before they take one, are followed up to `costly` labels.
    """

    figures: str
    selections: tuple[str, ...]
    labels: tuple[int, ...]
    costly: int
    seeds: int
    redraws: bool = True  # training and test set anew for each seed


_COMPARED = (RANDOM, GRADIENT, ACTIVE, AUTOACTIVE)
_ASKED = (RANDOM, ACTIVE, ACTIVE_ALL, RETRAIN, RETRAIN_ALL)
_QUERIES = (25, 50, 100, 150, 200, 300, 400, 500)
PROTOCOLS: dict[str, Protocol] = {
    "adult": Protocol(
        "figures 4.11 and 4.12", _COMPARED, (250, 500, 1000, 2000, 3000, 4000, 6000, 8000, 16000, 32561), 8000, 3
    ),
    "mnist8": Protocol("figures 4.13 and 4.15", _COMPARED, (500, 1000, 2000, 4000, 8000, 16000, 60000), 8000, 1, False),
    "mnist8-noise": Protocol("figures 4.14 and 4.15", _COMPARED, (500, 1000, 2000, 4000, 8000, 16000), 8000, 1, False),
    "reuters": Protocol("figure 4.16", _ASKED, _QUERIES, 500, 3),
    "usps": Protocol("figure 4.16", _ASKED, _QUERIES, 500, 3),
}
QUICK = {
    name: replace(usual, labels=labels, costly=labels[-1], seeds=1)
    for name, usual in PROTOCOLS.items()
    for labels in ((30, 60) if usual.selections == _ASKED else (100, 200, 400),)
}
QUICK_DATASETS = ("adult", "usps")
QUICK_TRAIN, QUICK_TEST = 1000, 1000


# ---- One selection on its way ----


@dataclass(frozen=True)
class Point:
    """After so many labels: seconds since the start with the finishing step, support vectors, test error in percent."""

    labels: int
    seconds: float
    vectors: float
    error: float


@dataclass(frozen=True)
class Curve:
    """The finished models of one selection after more and more labels."""

    dataset: str
    selection: str
    seed: int
    points: tuple[Point, ...]


def _drawn(data: Dataset, seed: int) -> Dataset:
    """Another training and test set of the same sizes, out of all examples."""
    X, y = data.merged()
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[: len(data.y_train)], order[len(data.y_train) :]
    return Dataset(X[train], y[train], X[test], y[test])


def _strategy(selection: str, budget: int) -> Any:
    from larank.active import Active, AutoActive, Gradient, Random

    if selection == ACTIVE_ALL:
        return Active(sample_size=None, budget=budget)
    kinds = {kind.name: kind for kind in (Random, Gradient, Active, AutoActive)}
    return kinds[selection.lower()](budget=budget)


def _lasvm_points(dataset: str, selection: str, data: Dataset, labels: Iterable[int], seed: int) -> list[Point]:
    """A training from the start for each number of labels: what comes out of the finishing step is not trained on."""
    from larank import LaSVMClassifier

    settings: dict[str, Any] = {"C": BINARY[dataset].C, "gamma": BINARY[dataset].gamma, "n_jobs": -1}
    settings["random_state"] = seed
    points = []
    for budget in labels:
        model = LaSVMClassifier("rbf", **settings, selection=_strategy(selection, budget))
        seconds = timed_fit(model, data.X_train, data.y_train, certify=False)
        points.append(Point(budget, seconds, len(model.support_), error_percent(model, data)))
    return points


def _retrained_points(dataset: str, selection: str, data: Dataset, labels: Iterable[int], seed: int) -> list[Point]:
    """LIBSVM trained anew after each label; the first labels are random, until there are two classes."""
    from sklearn.svm import SVC

    X, y = data.X_train, data.y_train
    model = SVC(C=BINARY[dataset].C, gamma=BINARY[dataset].gamma)
    random = np.random.default_rng(seed)
    order = random.permutation(len(y))
    begun = 1 + max(int(np.argmax(y[order] == label)) for label in (-1, 1))
    known, unknown = order[:begun].tolist(), order[begun:]
    wanted = [count for count in labels if count >= begun]
    points, seconds = [], 0.0
    for count in range(begun, 1 + max(wanted, default=0)):
        began = time.perf_counter()
        model.fit(X[known], y[known])
        finished = seconds + time.perf_counter() - began
        candidates = unknown if selection == RETRAIN_ALL else random.choice(unknown, SAMPLE, replace=False)
        chosen = int(candidates[np.argmin(np.abs(model.decision_function(X[candidates])))])  # [thesis] (4.14)
        seconds += time.perf_counter() - began
        if count in wanted:
            points.append(Point(count, finished, len(model.support_), error_percent(model, data)))
        known.append(chosen)
        unknown = unknown[unknown != chosen]
    return points


def _points(dataset: str, selection: str, data: Dataset, protocol: Protocol, seed: int) -> list[Point]:
    most = math.inf if selection == RANDOM else protocol.costly
    labels = [count for count in protocol.labels if count <= min(most, len(data.y_train))]
    follow = _retrained_points if selection in (RETRAIN, RETRAIN_ALL) else _lasvm_points
    return follow(dataset, selection, data, labels, seed)


# ---- All of them ----


Means = Mapping[str, Sequence[Point]]


def means(curves: Iterable[Curve]) -> dict[str, list[Point]]:
    """Return by selection the mean over the seeds, after every number of labels that all seeds have."""
    found: dict[str, list[dict[int, Point]]] = {}
    for curve in curves:
        found.setdefault(curve.selection, []).append({point.labels: point for point in curve.points})
    return {
        selection: [_mean_point([points[n] for points in of]) for n in sorted(set(of[0]).intersection(*of[1:]))]
        for selection, of in found.items()
    }


def _table(dataset: str, curves: Sequence[Curve], quick: bool) -> Table:
    seeds = len({curve.seed for curve in curves})
    notes = [f"Quick form: {QUICK_TRAIN} examples to choose from, where the thesis has all."] * quick
    notes += [f"Means over {seeds} draws."] * (seeds > 1)
    notes += ["The thesis draws this without numbers.", *([f"{BINARY[dataset].note}."] * bool(BINARY[dataset].note))]
    title = f"Selection of examples on {dataset} (thesis, {PROTOCOLS[dataset].figures})"
    table = Table(title, ("", "labels", "error %", "vectors", "seconds"), notes)
    for selection, points in means(curves).items():
        for number, at in enumerate(points):
            cells = str(at.labels), f"{at.error:.2f}", f"{at.vectors:.0f}", digits(at.seconds)
            table.add("" if number else selection, *cells)
        table.end_group()
    return table


def _mean_point(points: list[Point]) -> Point:
    figures = {name: float(np.mean([getattr(at, name) for at in points])) for name in ("seconds", "vectors", "error")}
    return Point(points[0].labels, **figures)


def fewest_vectors(points: Iterable[Point], error: float) -> Point | None:
    """The smallest model that is no worse than this test error."""
    return min((at for at in points if at.error <= error), key=lambda at: at.vectors, default=None)


def adult_claim(found: Means) -> Claim:
    """Return whether AUTOACTIVE has the error of the full solution with few support vectors; if not, what it has."""
    full, points = found[RANDOM][-1], found[AUTOACTIVE]
    said = f"adult: a full epoch has {full.error:.2f} % with {full.vectors:.0f} support vectors; {AUTOACTIVE} "
    bar = f"at most {SHARE:.2f} of them are enough (thesis: 2500 of 11278)"
    small = fewest_vectors(points, full.error)
    if small is not None and small.vectors <= SHARE * full.vectors:
        share = small.vectors / full.vectors
        return Claim(f"{said}reaches it with {small.vectors:.0f}, {share:.2f} of them", share, most=SHARE, bar=bar)
    few = [at for at in points if at.vectors <= SHARE * full.vectors]
    if not few:
        return is_so(f"{said}was not looked at with so few", None, bar)
    best = min(few, key=lambda at: at.error)
    reached = "does not reach it" if small is None else f"reaches it with {small.vectors:.0f}"
    return is_so(f"{said}{reached}, and has {best.error:.2f} % with {best.vectors:.0f}", False, bar)


def asking_lines(dataset: str, found: Means) -> list[str]:
    ends = {selection: points[-1] for selection, points in found.items() if points}
    told = ", ".join(f"{selection} {at.error:.2f} % in {digits(at.seconds)} s" for selection, at in ends.items())
    lines = [f"{dataset}, {max(at.labels for at in ends.values())} labels: {told}."]
    if dataset == "reuters":
        lines.append("  thesis: " + ", ".join(f"{name} {seconds:g} s" for name, seconds in PAPER_SECONDS.items()) + ".")
    return lines


def _run(scope: Scope, say: Say) -> Findings:
    protocols = QUICK if scope.quick else PROTOCOLS
    curves = []
    for dataset in scope.present(PROTOCOLS, QUICK_DATASETS, say, lambda name: BINARY[name].source):
        protocol, whole = protocols[dataset], load(dataset, BINARY)
        for seed in scope.seed_range(protocol.seeds):
            data = _drawn(whole, seed) if protocol.redraws else whole
            data = data.drawn(QUICK_TRAIN, QUICK_TEST) if scope.quick else data
            for selection in protocol.selections:
                points = _points(dataset, selection, data, protocol, seed)
                curves.append(Curve(dataset, selection, seed, tuple(points)))
                told = [f"error {at.error:.2f} % after {at.labels} labels" for at in points[-1:]] or ["too few labels"]
                say(f"{dataset}, {selection}, seed {seed}: {told[0]}")
    groups = by_dataset(curves)
    tables = [_table(dataset, mine, scope.quick) for dataset, mine in groups.items()]
    held = {} if scope.quick else {dataset: means(mine) for dataset, mine in groups.items()}
    asked = [
        line for dataset in ("reuters", "usps") if dataset in held for line in asking_lines(dataset, held[dataset])
    ]
    return findings(scope, tables, [adult_claim(held["adult"])] if "adult" in held else [], asked, curves=curves)


_AXES = {"labels": "labels", "seconds": "seconds", "vectors": "support vectors"}


def _draw(outcome: Findings, figure: Any) -> None:
    groups = by_dataset(outcome.others["curves"])
    figure.set_size_inches(11, 3.2 * len(groups))
    for row, dataset, curves in panels(figure, groups, columns=len(_AXES)):
        for axes, (name, label) in zip(row, _AXES.items(), strict=True):
            for color, (selection, points) in zip(PALETTE, means(curves).items(), strict=False):
                values = [[getattr(at, attribute) for at in points] for attribute in (name, "error")]
                axes.plot(*values, "o-", markersize=3, color=color, label=selection)
            axes.set(title=dataset, xscale="log", xlabel=label, ylabel="test error (%)")
        row[0].legend(frameon=False, fontsize=8)


_TITLE = "Which example LaSVM takes next, and learning from labels asked for (thesis, figures 4.11 to 4.16)"
STUDY = Study("active-figures", _TITLE, _run, tuple(PROTOCOLS), draw=_draw, has_seeds=True)
