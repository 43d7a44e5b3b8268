"""`python -m studies workers`: one Dask worker and two, in turns, on a linear fit and on a bag of sentences."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from larank import LinearMulticlassSVC, SequenceTagger
from larank.data import load_letter
from studies.datasets import LINEAR, is_available, load, load_sequences
from studies.faults import LOOPBACK
from studies.study import Outcome, Say, Study
from studies.tables import Table

BARS = {"fit": 0.8, "tag": 1 / 1.7}
PARTITIONS = 8


@dataclass(frozen=True)
class Scope:
    """Rows of the fit, repetitions of the corpus, turns, and whether data are the small ones that are always here."""

    rows: int
    times: int
    turns: int
    is_quick: bool


@dataclass(frozen=True)
class Run:
    """One way to do it: the least seconds of all turns, and what a fit took."""

    work: str
    how: str
    seconds: float
    relative_gap: float | None = None
    passes: float | None = None
    rounds: int | None = None


@dataclass(frozen=True)
class Found(Outcome):
    """All of them."""

    runs: tuple[Run, ...]

    def to_dict(self) -> dict[str, Any]:
        """The rows."""
        return {"runs": [asdict(run) for run in self.runs]}

    def to_tables(self) -> Sequence[Table]:
        """One row for each."""
        table = Table(
            "Least seconds of all turns, data loading apart", ["work", "how", "seconds", "gap", "passes", "rounds"]
        )
        for run in self.runs:
            rest = [
                ("-" if value is None else f"{value:{form}}")
                for value, form in ((run.relative_gap, ".1e"), (run.passes, ".1f"), (run.rounds, "d"))
            ]
            table.add(run.work, run.how, f"{run.seconds:.2f}", *rest)
        return [table]

    def to_lines(self) -> Sequence[str]:
        """Two workers over the best of one."""
        lines = []
        for work, bar in BARS.items():
            of = {run.how: run.seconds for run in self.runs if run.work == work}
            alone = of["one thread"] if work == "fit" else of["one worker"]
            ratio, against = of["two workers"] / alone, "one thread" if work == "fit" else "one worker"
            met = "met" if ratio <= bar else "missed"
            lines.append(f"{work}: two workers take {ratio:.2f} of the time of {against}; bar {bar:.2f}, {met}")
        return lines


def run(scope: Scope, say: Say) -> Found:
    """Both kinds of work."""
    return Found((*_fits(scope, say), *_taggings(scope, say)))


def _cluster(workers: int) -> Any:
    from distributed import LocalCluster  # an extra, which not every study needs

    return LocalCluster(n_workers=workers, threads_per_worker=1, silence_logs=50, **LOOPBACK)


def _fits(scope: Scope, say: Say) -> Sequence[Run]:
    import dask.array as da
    from distributed import Client, wait

    import larank.dask

    X, y = _rows(scope)
    best: dict[str, Run] = {}
    settings = {"tol": 0.01, "random_state": 0}
    with _cluster(1) as one, _cluster(2) as two, Client(one) as client_of_one, Client(two) as client_of_two:
        kept = {}
        for how, client in (("one worker", client_of_one), ("two workers", client_of_two)):
            size = -(-len(X) // PARTITIONS)
            parts = da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size)
            kept[how] = tuple(client.persist(part) for part in parts)
            wait(kept[how])
        for _ in range(scope.turns):
            for how in ("one thread", *kept):
                began = time.perf_counter()
                if how == "one thread":
                    model = LinearMulticlassSVC(**settings).fit(X, y)
                else:
                    client = client_of_one if how == "one worker" else client_of_two
                    model = larank.dask.LinearMulticlassSVC(**settings).fit(*kept[how], client=client)
                seconds, at = time.perf_counter() - began, model.result_
                say(f"fit, {how}: {seconds:.2f} s, gap {at.relative_gap:.1e}")
                found = Run("fit", how, seconds, at.relative_gap, at.iterations, at.operations.get("rounds"))
                best[how] = min(best.get(how, found), found, key=lambda each: each.seconds)
    return tuple(best.values())


def _rows(scope: Scope) -> tuple[Any, Any]:
    if scope.is_quick:
        letter = load_letter()
        return letter.X_train[: scope.rows] / 15, letter.y_train[: scope.rows]
    data = load("covtype", LINEAR)
    X = data.X_train[: scope.rows]
    return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X), data.y_train[: scope.rows]


def _taggings(scope: Scope, say: Say) -> Sequence[Run]:
    import dask.bag as db
    from distributed import Client

    import larank.dask

    if scope.is_quick or not is_available("conll2000"):
        X = test = [["the", "dog", "sees", "a", "cat"], ["cats", "run"]] * 100
        y = [["D", "N", "V", "D", "N"], ["N", "V"]] * 100
    else:
        data = load_sequences("conll2000")
        X, y, test = data.X_train, data.y_train, data.X_test
    tagger = SequenceTagger(random_state=0).fit(X, y)
    best: dict[str, Run] = {}
    for how, workers in (("one worker", 1), ("two workers", 2)):
        with _cluster(workers) as cluster, Client(cluster) as client:
            bag = client.persist(db.from_sequence(list(test) * scope.times, npartitions=PARTITIONS))
            for _ in range(scope.turns):
                began = time.perf_counter()
                tags = larank.dask.predict(tagger, bag).map_partitions(_tokens).compute(scheduler=client)
                seconds = time.perf_counter() - began
                say(f"tag, {how}: {seconds:.2f} s, {sum(tags)} tokens")
                found = Run("tag", how, seconds)
                best[how] = min(best.get(how, found), found, key=lambda each: each.seconds)
    return tuple(best.values())


def _tokens(sentences: Any) -> list[int]:
    return [sum(map(len, sentences))]


class _Workers(Study):
    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """How much of it."""
        parser.add_argument("--rows", type=int, default=522_911, help="of covtype (all of its training rows)")
        parser.add_argument("--times", type=int, default=50, help="that the test sentences are tagged (50)")
        parser.add_argument("--turns", type=int, default=3, help="of which the best counts (3)")

    def scope(self, arguments: argparse.Namespace) -> Scope:
        """What was chosen; quickly, two thousand letters and two hundred sentences."""
        at = arguments
        if min(at.rows, at.times, at.turns) < 1:
            raise ValueError(f"--rows, --times and --turns must be 1 or more, got {at.rows}, {at.times}, {at.turns}")
        return Scope(2000, 2, 1, True) if at.quick else Scope(at.rows, at.times, at.turns, False)


STUDY = _Workers(
    "workers",
    "One Dask worker and two, on a linear fit and on tagging",
    ("covtype", "conll2000"),
    run,
    libraries=("dask", "distributed"),
)
