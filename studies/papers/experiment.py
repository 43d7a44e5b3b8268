"""Parts of all reproduced experiments: a timed training, and entries with the published figures."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from joblib import Parallel, delayed, parallel_config

from studies.datasets import Dataset
from studies.study import Claim, Findings, Scope, plain
from studies.tables import Table, band, digits

# ---- One training ----


def timed_fit(model: Any, *data: Any, **options: Any) -> float:
    """Train; the seconds. An interrupt ends the experiment."""
    began = time.perf_counter()
    model.fit(*data, **options)
    seconds = time.perf_counter() - began
    check_not_interrupted(model)
    return seconds


def check_not_interrupted(model: Any) -> None:
    """Training that was interrupted leaves a model; the experiment has no use for it."""
    if getattr(getattr(model, "result_", None), "status", None) == "interrupted":
        raise KeyboardInterrupt


def in_parallel(run: Callable[[Any], Any], jobs: Sequence[Any], quick: bool) -> Iterable[Any]:
    """Run the jobs in processes with a thread each, because their matrices are small; the quick form in this one."""
    if quick:
        return map(run, jobs)
    with parallel_config("loky", n_jobs=os.cpu_count(), inner_max_num_threads=1):
        found: Iterable[Any] = Parallel(return_as="generator")(delayed(run)(job) for job in jobs)
    return found


def error_percent(model: Any, data: Dataset) -> float:
    return 100.0 * float(np.mean(model.predict(data.X_test) != data.y_test))


def findings(
    scope: Scope, tables: Iterable[Table], claims: Iterable[Claim] = (), lines: Iterable[str] = (), **numbers: Any
) -> Findings:
    """Return findings whose numbers have these names in the JSON file; a quick form has no claims."""
    held = [] if scope.quick else list(claims)
    return Findings(others={**numbers, "quick": scope.quick}, tables=list(tables), claims=held, lines=list(lines))


# ---- Entries beside published figures ----

Run = TypeVar("Run")


@dataclass(frozen=True)
class Entry(Generic[Run]):
    """One algorithm on one data set, over several seeds or folds; figures go by the names they have in its runs."""

    dataset: str
    algorithm: str
    runs: tuple[Run, ...]

    def values(self, figure: str) -> list[float]:
        return [float(getattr(run, figure)) for run in self.runs]

    def mean(self, figure: str) -> float:
        return float(np.mean(self.values(figure)))

    def over(self, several: str = "seeds", one: str = "seed ") -> str:
        """Its algorithm and what the runs are over; `one` is empty where there is no choice."""
        if len(self.runs) > 1:
            return f"{self.algorithm}, {len(self.runs)} {several}"
        return f"{self.algorithm}, {one}{self.runs[0].seed}" if one else self.algorithm  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Published:
    """What a paper printed, what this implementation is held to, and how both stand beside what we find.

    `columns` has a heading for each figure, `rows` the published figures by data set and algorithm, `expected` the
    lowest and the highest mean of a figure by data set and algorithm. `percent` and `whole` are figures shown with two
    decimals and with none.
    """

    columns: Mapping[str, str]
    rows: Mapping[str, Mapping[str, Mapping[str, float]]]
    expected: Mapping[tuple[str, str], Mapping[str, tuple[float, float]]]
    percent: AbstractSet[str] = frozenset({"error"})
    whole: AbstractSet[str] = frozenset()

    def as_expected(self, entry: Entry[Any], figure: str) -> bool | None:
        """Whether the mean lies where it should; None where nothing is expected."""
        limits = self.expected.get((entry.dataset, entry.algorithm), {}).get(figure)
        return None if limits is None else limits[0] <= entry.mean(figure) <= limits[1]

    def to_dicts(self, entries: Iterable[Entry[Any]], quick: bool) -> list[dict[str, Any]]:
        """Of each entry its runs, means, the paper's figures and whether the means are as expected."""
        return [
            {
                **plain(entry),
                "mean": plain({figure: entry.mean(figure) for figure in self.columns}),
                "paper": self.rows.get(entry.dataset, {}).get(entry.algorithm),
                "as_expected": None if quick else {figure: self.as_expected(entry, figure) for figure in self.columns},
            }
            for entry in entries
        ]

    def claims(self, entries: Iterable[Entry[Any]]) -> list[Claim]:
        return [
            Claim(f"{entry.dataset}, {entry.algorithm}: mean {self.columns[figure]} {mean:.4g}", mean, *limits)
            for entry in entries
            for figure, limits in self.expected.get((entry.dataset, entry.algorithm), {}).items()
            for mean in (entry.mean(figure),)
        ]

    def findings(
        self, scope: Scope, tables: Iterable[Table], entries: Sequence[Entry[Any]], **numbers: Any
    ) -> Findings:
        """Return the entries, which have the paper's figures beside theirs in the JSON file."""
        found = findings(scope, tables, self.claims(entries), **numbers, entries=self.to_dicts(entries, scope.quick))
        found.add(entries=entries)
        return found

    def table(self, title: str, notes: Sequence[str]) -> Table:
        """One without rows."""
        return Table(title, ("", *self.columns.values()), notes)

    def of_groups(
        self,
        title: str,
        notes: Sequence[str],
        entries: Iterable[Entry[Any]],
        quick: bool,
        over: Callable[[Entry[Any]], str] = Entry.over,
        below: Callable[[Table, Mapping[str, Entry[Any]]], None] = lambda table, ours: None,
        **names: tuple[str, str],
    ) -> Table:
        """Return the paper's rows of every data set, our row of an algorithm below each, and what `below` adds.

        `names` are headings of data sets and words for "paper" there, where they are others.
        """
        table = self.table(title, notes)
        for dataset, group in by_dataset(entries).items():
            heading, paper = names.get(dataset, (dataset, "paper"))
            table.add(heading, style="bold")
            ours, published = {entry.algorithm: entry for entry in group}, self.rows.get(dataset, {})
            for algorithm in dict.fromkeys((*published, *ours)):
                if algorithm in published:
                    table.add(f"{algorithm}, {paper}", *self.paper_cells(published[algorithm]), style="dim")
                if algorithm in ours:
                    self.add_entry(table, ours[algorithm], over(ours[algorithm]))
                    self._add_verdict(table, ours[algorithm], quick)
            below(table, ours)
            table.end_group()
        return table

    def add_entry(self, table: Table, entry: Entry[Any], name: str) -> None:
        """One row for one run; for several the mean, and below it the extremes."""
        table.add(name, *(self.cell(figure, entry.mean(figure)) for figure in self.columns))
        for extreme in (min, max) if len(entry.runs) > 1 else ():
            values = (self.cell(figure, extreme(entry.values(figure))) for figure in self.columns)
            table.add(f"  {extreme.__name__}", *values)

    def _add_verdict(self, table: Table, entry: Entry[Any], quick: bool) -> None:
        bands = self.expected.get((entry.dataset, entry.algorithm))
        if bands and not quick:
            table.add("  expected", *(band(*bands[figure]) if figure in bands else "" for figure in self.columns))
            held = {True: "yes", False: "no", None: ""}
            table.add("  as expected", *(held[self.as_expected(entry, figure)] for figure in self.columns))

    def cell(self, figure: str, value: float) -> str:
        """A figure of ours; none where there is none, and where weights need no kernel values."""
        if math.isnan(value) or (figure == "kernels" and value == 0):
            return "-"
        if figure in self.whole:
            return f"{value:.0f}"
        return f"{value:.2f}" if figure in self.percent or (figure == "seconds" and value < 1) else digits(value)

    def paper_cells(self, published: Mapping[str, float]) -> list[str]:
        """A published row, as far as the paper has it."""
        shown = {name: f"{value:.2f}" if name in self.percent else f"{value:g}" for name, value in published.items()}
        return [shown.get(figure, "-") for figure in self.columns]


Named = TypeVar("Named")


def grouped(items: Iterable[Named], by: str) -> dict[str, list[Named]]:
    """Return entries, runs or curves by this attribute, in the order in which they come."""
    groups: dict[str, list[Named]] = {}
    for one in items:
        groups.setdefault(getattr(one, by), []).append(one)
    return groups


def by_dataset(items: Iterable[Named]) -> dict[str, list[Named]]:
    return grouped(items, "dataset")
