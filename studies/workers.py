"""`python -m studies workers`: one Dask worker and two, in turns, on a linear fit and on a bag of sentences.

And the rounds that a fit takes on partitions of one process, as many as are wanted.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from larank import LinearMulticlassSVC, SequenceTagger
from larank.data import load_letter
from larank.linear.rounds import LinearProblem, LocalExecutor, Rounds, partitions_of
from larank.training import Limits, progress_for, train
from studies.datasets import LINEAR, is_available, load, load_sequences
from studies.faults import LOOPBACK
from studies.study import Claim, Findings, Say, Scope, Study, count
from studies.tables import column, of_rows

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
QUICK = {"rows": 2000, "times": 2, "turns": 1, "partitions": 4}


@dataclass(frozen=True)
class Run:
    """One way to do it: the least seconds of all turns, and what a fit took."""

    work: str = column("work")
    how: str = column("how")
    seconds: float = column("seconds", ".2f")
    relative_gap: float | None = column("gap", ".1e", default=None)
    passes: float | None = column("passes", ".1f", default=None)
    rounds: int | None = column("rounds", default=None)


def _claims(runs: Sequence[Run]) -> list[Claim]:
    claims = []
    for work, bar in BARS.items():
        of = {run.how: run.seconds for run in runs if run.work == work}
        if of:
            against = "one thread" if work == "fit" else "one worker"
            ratio = of["two workers"] / of[against]
            said = f"{work}: two workers take {ratio:.2f} of the time of {against}"
            claims.append(Claim(said, ratio, most=bar, bar=f"{bar:.2f}"))
    return claims


def run(scope: Scope, say: Say) -> Findings:
    """The parts that are wanted; quickly, with two thousand letters and two hundred sentences."""
    at = Namespace(**{**vars(scope.options), **(QUICK if scope.quick else {})})
    work = {"fit": _fits, "tag": _taggings, "rounds": _rounds}
    runs = [found for part in at.parts for found in work[part](at, say)]
    tables = [of_rows("Least seconds of all turns, data loading apart", runs)]
    return Findings(rows={"runs": runs}, tables=tables, claims=_claims(runs))


def _rounds(at: Namespace, say: Say) -> Sequence[Run]:
    """Crammer-Singer, C = 1, rows cut into partitions of one size as they come."""
    found: list[Run] = []
    for name, has_intercept, passes in (("letter", True, 3.0),) if at.quick else ROUNDS:
        X, y = _rows(at, name)
        labels = np.unique(y, return_inverse=True)[1].astype(np.int32)
        problem = LinearProblem("crammer-singer", int(labels.max()) + 1, float(has_intercept))
        ones = np.ones(len(labels))
        parts = partitions_of(X, labels, ones, ones, problem, at.partitions)
        rounds = Rounds(LocalExecutor(parts), seed=0, passes_per_round=passes, target=TOL)
        began = time.perf_counter()
        with progress_for(0) as progress:
            reached = train(rounds, Limits(TOL, MOST_PASSES, None), progress).objectives
        gap = (reached.primal - reached.dual) / reached.primal
        how = f"{at.partitions} partitions, {passes:g} passes a round"
        how += "" if has_intercept else ", no intercept"
        found.append(Run(f"rounds, {name}", how, time.perf_counter() - began, gap, rounds.iterations(), rounds.rounds))
        say(f"{name}, {how}: {rounds.rounds} rounds, gap {gap:.1e}")
    return found


def _cluster(workers: int) -> Any:
    from distributed import LocalCluster  # an extra, which not every study needs

    return LocalCluster(n_workers=workers, threads_per_worker=1, silence_logs=50, **LOOPBACK)


def _fits(at: Namespace, say: Say) -> Sequence[Run]:
    import dask.array as da
    from distributed import Client, wait

    import larank.dask

    X, y = _rows(at, "covtype")
    X, y = X[: at.rows], y[: at.rows]
    X = np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X)
    best: dict[str, Run] = {}
    with _cluster(1) as one, _cluster(2) as two, Client(one) as client_of_one, Client(two) as client_of_two:
        kept = {}
        for how, client in (("one worker", client_of_one), ("two workers", client_of_two)):
            size = -(-len(X) // PARTITIONS)
            parts = da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size)
            kept[how] = tuple(client.persist(part) for part in parts)
            wait(kept[how])
        for turn in range(at.turns):
            settings = {"tol": TOL, "random_state": turn}  # the gap is known after full loops only: luck counts
            for how in ("one thread", *kept):
                began = time.perf_counter()
                if how == "one thread":
                    model = LinearMulticlassSVC(**settings).fit(X, y)
                else:
                    client = client_of_one if how == "one worker" else client_of_two
                    model = larank.dask.LinearMulticlassSVC(**settings).fit(*kept[how], client=client)
                seconds, result = time.perf_counter() - began, model.result_
                say(f"fit, {how}: {seconds:.2f} s, gap {result.relative_gap:.1e}")
                rounds = result.operations.get("rounds")
                found = Run("fit", how, seconds, result.relative_gap, result.iterations, rounds)
                best[how] = min(best.get(how, found), found, key=lambda each: each.seconds)
    return tuple(best.values())


def _rows(at: Namespace, name: str) -> tuple[Any, Any]:
    """Training examples; in the quick form the first letters, whatever is asked for."""
    if at.quick:
        letter = load_letter()
        return letter.X_train[: at.rows] / 15, letter.y_train[: at.rows]
    data = load(name, LINEAR)
    return data.X_train, data.y_train


def _taggings(at: Namespace, say: Say) -> Sequence[Run]:
    import dask.bag as db
    from distributed import Client

    import larank.dask

    if at.quick or not is_available("conll2000"):
        X = test = [["the", "dog", "sees", "a", "cat"], ["cats", "run"]] * 100
        y = [["D", "N", "V", "D", "N"], ["N", "V"]] * 100
    else:
        data = load_sequences("conll2000")
        X, y, test = data.X_train, data.y_train, data.X_test
    tagger = SequenceTagger(random_state=0).fit(X, y)
    best: dict[str, Run] = {}
    for how, workers in (("one worker", 1), ("two workers", 2)):
        with _cluster(workers) as cluster, Client(cluster) as client:
            bag = client.persist(db.from_sequence(list(test) * at.times, npartitions=PARTITIONS))
            for _ in range(at.turns):
                began = time.perf_counter()
                tags = larank.dask.predict(tagger, bag).map_partitions(_tokens).compute(scheduler=client)
                seconds = time.perf_counter() - began
                say(f"tag, {how}: {seconds:.2f} s, {sum(tags)} tokens")
                found = Run("tag", how, seconds)
                best[how] = min(best.get(how, found), found, key=lambda each: each.seconds)
    return tuple(best.values())


def _tokens(sentences: Any) -> list[int]:
    return [sum(map(len, sentences))]


STUDY = Study(
    "workers",
    "One Dask worker and two, on a linear fit and on tagging",
    run,
    libraries=("dask", "distributed"),
    options={
        "--rows": {"type": count, "default": 522_911, "help": "of covtype (all of its training rows)"},
        "--times": {"type": count, "default": 50, "help": "that the test sentences are tagged (50)"},
        "--parts": {"nargs": "+", "choices": PARTS, "default": list(PARTS), "help": "fit, tag, rounds (all)"},
        "--partitions": {"type": count, "default": 8, "help": "of the rounds in one process (8)"},
        "--turns": {"type": count, "default": 3, "help": "of which the best counts (3)"},
    },
)
