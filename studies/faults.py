"""`python -m studies faults`: kill -9 of a Dask worker in the middle of a fit, again and again; are results right?"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from larank.data import load_letter
from studies.study import Outcome, Say, Study
from studies.tables import Table

_C = 10.0
LOOPBACK = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}


@dataclass(frozen=True)
class Scope:
    """How many kills, while so many examples are trained on, to this gap."""

    kills: int
    examples: int
    tol: float


WHOLE, QUICK = Scope(20, 16000, 1e-3), Scope(1, 2000, 0.02)


@dataclass(frozen=True)
class Kill:
    """One fit whose worker was killed after so many seconds: how it ended."""

    after: float
    seconds: float
    status: str
    primal: float
    relative_gap: float
    shares_lost: int
    is_right: bool


@dataclass(frozen=True)
class Found(Outcome):
    """All kills, and the seconds and the objective without one."""

    kills: tuple[Kill, ...]
    undisturbed: float
    optimum: float

    def to_dict(self) -> dict[str, Any]:
        """The rows."""
        return {"undisturbed": self.undisturbed, "optimum": self.optimum, "kills": [asdict(one) for one in self.kills]}

    def to_tables(self) -> Sequence[Table]:
        """One row per kill."""
        columns = ["killed after s", "seconds", "status", "primal", "relative gap", "shares lost", "right"]
        table = Table(f"Fits with a killed worker; {self.undisturbed:.1f} s without", columns)
        for one in self.kills:
            figures = [f"{one.after:.2f}", f"{one.seconds:.1f}", one.status, f"{one.primal:.1f}"]
            table.add(*figures, f"{one.relative_gap:.1e}", str(one.shares_lost), "yes" if one.is_right else "NO")
        return [table]

    def to_lines(self) -> Sequence[str]:
        """How many were right."""
        right = sum(one.is_right for one in self.kills)
        hit = sum(one.shares_lost > 0 for one in self.kills)
        return (f"{right} of {len(self.kills)} results are right; {hit} of the kills cost a share",)


def _killed(client: Any, after: float) -> threading.Timer:
    """kill -9 of a worker in so many seconds."""
    address = sorted(client.scheduler_info()["workers"])[int(1000 * after) % 2]
    pid = client.run(os.getpid, workers=[address])[address]
    timer = threading.Timer(after, os.kill, (pid, signal.SIGKILL))
    timer.start()
    return timer


def run(scope: Scope, say: Say) -> Found:
    """The same fit with kills at moments drawn at random."""
    import dask.array as da  # an extra, which not every study needs
    from distributed import Client, LocalCluster

    import larank.dask

    letter = load_letter()
    X, y = letter.X_train[: scope.examples] / 15, letter.y_train[: scope.examples]
    optimum = larank.LinearMulticlassSVC(C=_C, tol=1e-5, random_state=0).fit(X, y).result_.dual
    options = {"n_workers": 2, "threads_per_worker": 1, "silence_logs": 50, **LOOPBACK}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        parts = da.from_array(X, chunks=(len(X) // 4, -1)), da.from_array(y, chunks=len(X) // 4)
        model = larank.dask.LinearMulticlassSVC(C=_C, tol=scope.tol, random_state=0).fit(*parts)
        undisturbed = _seconds_of_fit(model, parts)
        moments = np.random.default_rng(0).uniform(0.1, 0.9, scope.kills) * undisturbed
        found = [_after_kill(client, model, parts, moment, optimum, say) for moment in moments.tolist()]
    return Found(tuple(found), undisturbed, optimum)


def _seconds_of_fit(model: Any, parts: Any) -> float:
    began = time.perf_counter()
    model.fit(*parts)
    return time.perf_counter() - began


def _after_kill(client: Any, model: Any, parts: Any, after: float, optimum: float, say: Say) -> Kill:
    client.wait_for_workers(2)
    timer = _killed(client, after)
    seconds = _seconds_of_fit(model, parts)
    timer.join()
    at = model.result_
    is_right = at.status == "converged" and optimum <= at.primal * (1 + 1e-9) <= optimum * (1 + 2 * model.tol)
    say(f"killed after {after:.2f} s: {at.status} after {seconds:.1f} s, {'right' if is_right else 'WRONG'}")
    return Kill(after, seconds, at.status, at.primal, at.relative_gap, at.operations["shares_lost"], is_right)


class _Faults(Study):
    def scope(self, arguments: argparse.Namespace) -> Scope:
        """How much of it."""
        return QUICK if arguments.quick else WHOLE


STUDY = _Faults("faults", "kill -9 of a Dask worker in the middle of a fit", (), run, libraries=("dask", "distributed"))
