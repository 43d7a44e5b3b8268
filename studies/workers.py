"""`python -m studies workers`: one Dask worker and two, in turns, on a linear fit and on a bag of sentences.

And the rounds that a fit takes on partitions of one process, as many as are wanted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from larank import LinearMulticlassSVC, SequenceTagger
from larank.data import load_letter
from larank.linear.rounds import LinearProblem, LocalExecutor, Rounds, partitions_of
from larank.training import Limits, progress_for, train
from studies.datasets import LINEAR, is_available, load, load_sequences
from studies.faults import LOOPBACK
from studies.study import Outcome, Say, Study
from studies.tables import Table

BARS = {"fit": 0.8, "tag": 1 / 1.7}
PARTS = ("fit", "tag", "rounds")
PARTITIONS = 8
TOL, MOST_PASSES = 0.01, 120
# Data, whether there is an intercept, and passes a round.
ROUNDS = (
    ("covtype", True, 1.0),
    ("covtype", True, 3.0),
    ("news20", False, 3.0),
    ("news20", True, 3.0),
    ("mnist", True, 3.0),
)


@dataclass(frozen=True)
class Scope:
    """Rows of the fit, repetitions of the corpus, turns, and whether data are the small ones that are always here."""

    rows: int
    times: int
    turns: int
    parts: tuple[str, ...]
    partitions: int
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
            if not any(run.work == work for run in self.runs):
                continue
            of = {run.how: run.seconds for run in self.runs if run.work == work}
            alone = of["one thread"] if work == "fit" else of["one worker"]
            ratio, against = of["two workers"] / alone, "one thread" if work == "fit" else "one worker"
            met = "met" if ratio <= bar else "missed"
            lines.append(f"{work}: two workers take {ratio:.2f} of the time of {against}; bar {bar:.2f}, {met}")
        return lines


def run(scope: Scope, say: Say) -> Found:
    """What is wanted of it."""
    work = {"fit": _fits, "tag": _taggings, "rounds": _rounds}
    return Found(tuple(found for part in scope.parts for found in work[part](scope, say)))


def _rounds(scope: Scope, say: Say) -> Sequence[Run]:
    """Crammer-Singer, C = 1, rows cut into partitions of one size as they come."""
    found: list[Run] = []
    for name, has_intercept, passes in (("letter", True, 3.0),) if scope.is_quick else ROUNDS:
        X, y = _rows(scope) if scope.is_quick else _data(name)
        labels = np.unique(y, return_inverse=True)[1].astype(np.int32)
        problem = LinearProblem("crammer-singer", int(labels.max()) + 1, float(has_intercept))
        ones = np.ones(len(labels))
        parts = partitions_of(X, labels, ones, ones, problem, scope.partitions)
        rounds = Rounds(LocalExecutor(parts), seed=0, passes_per_round=passes, target=TOL)
        began = time.perf_counter()
        with progress_for(0) as progress:
            at = train(rounds, Limits(TOL, MOST_PASSES, None), progress).objectives
        gap = (at.primal - at.dual) / at.primal
        how = f"{scope.partitions} partitions, {passes:g} passes a round"
        how += "" if has_intercept else ", no intercept"
        found.append(Run(f"rounds, {name}", how, time.perf_counter() - began, gap, rounds.iterations(), rounds.rounds))
        say(f"{name}, {how}: {rounds.rounds} rounds, gap {gap:.1e}")
    return found


def _data(name: str) -> tuple[Any, Any]:
    data = load(name, LINEAR)
    return data.X_train, data.y_train


def _cluster(workers: int) -> Any:
    from distributed import LocalCluster  # an extra, which not every study needs

    return LocalCluster(n_workers=workers, threads_per_worker=1, silence_logs=50, **LOOPBACK)


def _fits(scope: Scope, say: Say) -> Sequence[Run]:
    import dask.array as da
    from distributed import Client, wait

    import larank.dask

    X, y = _rows(scope)
    best: dict[str, Run] = {}
    with _cluster(1) as one, _cluster(2) as two, Client(one) as client_of_one, Client(two) as client_of_two:
        kept = {}
        for how, client in (("one worker", client_of_one), ("two workers", client_of_two)):
            size = -(-len(X) // PARTITIONS)
            parts = da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size)
            kept[how] = tuple(client.persist(part) for part in parts)
            wait(kept[how])
        for turn in range(scope.turns):
            settings = {"tol": TOL, "random_state": turn}  # the gap is known after full loops only: luck counts
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
        parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="fit, tag, rounds (all)")
        parser.add_argument("--partitions", type=int, default=8, help="of the rounds in one process (8)")
        parser.add_argument("--turns", type=int, default=3, help="of which the best counts (3)")

    def scope(self, arguments: argparse.Namespace) -> Scope:
        """What was chosen; quickly, two thousand letters and two hundred sentences."""
        at = arguments
        counts = {name: getattr(at, name) for name in ("rows", "times", "turns", "partitions")}
        for name, count in counts.items():
            if count < 1:
                raise ValueError(f"--{name} must be 1 or more, got {count}")
        parts = tuple(at.parts)
        if at.quick:
            return Scope(2000, 2, 1, parts, 4, True)
        return Scope(at.rows, at.times, at.turns, parts, at.partitions, False)


STUDY = _Workers(
    "workers",
    "One Dask worker and two, on a linear fit and on tagging",
    ("covtype", "conll2000", "news20", "mnist"),
    run,
    libraries=("dask", "distributed"),
)
