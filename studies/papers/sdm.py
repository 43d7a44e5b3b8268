"""Tables 4.2 and 4.3 of [sdm]: one-versus-rest, Crammer-Singer and Weston-Watkins, C tuned for each."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import wilcoxon

from larank import LinearMulticlassSVC
from studies.datasets import LINEAR, load
from studies.papers.experiment import check_not_interrupted
from studies.study import Findings, Say, Scope, Study
from studies.tables import Table

FORMULATIONS = ("one-vs-rest", "crammer-singer", "weston-watkins")
DATASETS = ("mnist", "covtype", "news20", "reuters_r52")
# Percent, mean and standard deviation over ten partitions, in the order of FORMULATIONS.    [sdm] table 4.2
PAPER_ACCURACY = {
    "news20": ((85.39, 0.37), (85.26, 0.37), (85.10, 0.43)),
    "mnist": ((91.46, 0.23), (92.50, 0.20), (91.84, 0.21)),
    "covtype": ((71.35, 0.33), (72.31, 0.37), (72.40, 0.25)),
}
# One-versus-rest against the two others.    [sdm] table 4.3
PAPER_P_VALUES = {"news20": (0.43, 0.01), "mnist": (2.0e-3, 2.0e-3), "covtype": (2.0e-3, 2.0e-3)}

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Protocol:
    """How much is run: random class-stratified partitions, values of C in the order the path visits them, the relative
    duality gap every training stops at, the examples drawn of each data set (None: all), and the data sets."""

    partitions: int
    costs: tuple[float, ...]
    tolerance: float
    examples: int | None
    datasets: tuple[str, ...] = DATASETS


FULL = Protocol(partitions=10, costs=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0), tolerance=0.01, examples=None)
QUICK = Protocol(3, costs=(0.03, 0.3, 3.0), tolerance=0.02, examples=3000, datasets=("mnist", "covtype"))


@dataclass(frozen=True)
class Row:
    """One data set: per formulation, the test accuracy in percent and the C chosen on each partition."""

    dataset: str
    accuracy: Mapping[str, tuple[float, ...]]
    chosen: Mapping[str, tuple[float, ...]]
    seconds: Mapping[str, float]

    def mean(self, formulation: str) -> float:
        return float(np.mean(self.accuracy[formulation]))

    def deviation(self, formulation: str) -> float:
        """Standard deviation of the test accuracy over the partitions, with divisor n - 1; NaN for one."""
        values = self.accuracy[formulation]
        return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")

    def p_value(self, formulation: str) -> float:
        """Two-sided Wilcoxon signed-rank test against one-versus-rest."""
        difference = np.subtract(self.accuracy[formulation], self.accuracy["one-vs-rest"])
        return float(wilcoxon(difference).pvalue) if np.any(difference) else 1.0


def table_of(rows: Sequence[Row], partitions: int) -> Table:
    """Accuracies and p-values, each with the paper's in the line below."""
    headings = ("data set", "OVR", "CS", "WW", "p OVR-CS", "p OVR-WW", "seconds")
    table = Table(f"Test accuracy in percent over {partitions} partitions", headings)
    for row in rows:
        accuracies = [f"{row.mean(name):.2f} ± {row.deviation(name):.2f}" for name in FORMULATIONS]
        p_values = [f"{row.p_value(name):.2g}" for name in FORMULATIONS[1:]]
        table.add(row.dataset, *accuracies, *p_values, f"{sum(row.seconds.values()):.1f}")
        table.add("  paper", *_paper_cells(row.dataset), "", style="dim")
        table.end_group()
    return table


def _paper_cells(dataset: str) -> list[str]:
    if dataset not in PAPER_ACCURACY:
        return ["-"] * 5
    accuracies = [f"{mean:.2f} ± {deviation:.2f}" for mean, deviation in PAPER_ACCURACY[dataset]]
    return accuracies + [f"{p:.2g}" for p in PAPER_P_VALUES[dataset]]


def partition(y: NDArray[np.int64], seed: int) -> tuple[Rows, Rows, Rows]:
    """Random 60 % / 20 % / 20 % partition, class by class; a lone example of its class is for training."""
    order = np.lexsort((np.random.default_rng(seed).random(len(y)), y))
    _, starts, counts = np.unique(y[order], return_index=True, return_counts=True)
    rank = np.arange(len(y)) - np.repeat(starts, counts)
    share = (rank + 0.5) / np.repeat(counts, counts)
    train, valid, test = order[share < 0.6], order[(share >= 0.6) & (share < 0.8)], order[share >= 0.8]
    return train, valid, test


def _accuracy(model: LinearMulticlassSVC, X: sparse.csr_matrix, y: NDArray[np.int64]) -> float:
    return 100.0 * float(np.mean(model.predict(X) == y))


def _tuned(
    formulation: str, X: sparse.csr_matrix, y: NDArray[np.int64], protocol: Protocol, seed: int
) -> tuple[float, float]:
    """Test accuracy and the C that was best on the validation examples (the smallest among equals)."""
    train, valid, test = partition(y, seed)
    settings: dict[str, Any] = {"tol": protocol.tolerance, "stop": "gap", "fit_intercept": False, "random_state": seed}
    path = LinearMulticlassSVC(formulation, **settings).path(X[train], y[train], protocol.costs)
    check_not_interrupted(path[-1])
    validated = [_accuracy(model, X[valid], y[valid]) for model in path]
    best = protocol.costs[int(np.argmax(validated))]
    both = np.concatenate([train, valid])
    model = LinearMulticlassSVC(formulation, C=best, **settings).fit(X[both], y[both])
    return _accuracy(model, X[test], y[test]), best


def _row(dataset: str, protocol: Protocol, say: Say) -> Row:
    X, y = load(dataset, LINEAR).merged()
    if protocol.examples is not None and protocol.examples < len(y):
        drawn = np.random.default_rng(0).permutation(len(y))[: protocol.examples]
        X, y = X[drawn], y[drawn]
    accuracy: dict[str, tuple[float, ...]] = {}
    chosen: dict[str, tuple[float, ...]] = {}
    seconds: dict[str, float] = {}
    for formulation in FORMULATIONS:
        started, outcomes = time.perf_counter(), []
        for seed in range(protocol.partitions):
            outcomes.append(_tuned(formulation, X, y, protocol, seed))
            percent, C = outcomes[-1]
            say(f"{dataset}, {formulation}, partition {seed + 1}: {percent:.2f} % with C={C:g}")
        accuracy[formulation], chosen[formulation] = zip(*outcomes, strict=True)
        seconds[formulation] = time.perf_counter() - started
    return Row(dataset, accuracy, chosen, seconds)


def compare(scope: Scope, say: Say) -> Findings:
    protocol = QUICK if scope.quick else FULL
    datasets = scope.present(protocol.datasets, protocol.datasets, say)
    protocol = replace(protocol, partitions=scope.seeds or protocol.partitions, datasets=datasets)
    rows = [_row(dataset, protocol, say) for dataset in datasets]
    return Findings(rows={"rows": rows}, others={"protocol": protocol}, tables=[table_of(rows, protocol.partitions)])


_TITLE = "One-versus-rest, Crammer-Singer and Weston-Watkins compared (SDM paper, tables 4.2 and 4.3)"
STUDY = Study("sdm", _TITLE, compare, DATASETS, has_seeds=True)
