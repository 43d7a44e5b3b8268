"""`python -m studies faults`: kill -9 of a Dask worker in the middle of a fit, again and again; are results right?"""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from larank.data import load_letter
from studies.papers.experiment import timed_fit
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import column, of_rows, yes

_C = 10.0
LOOPBACK = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}


WHOLE, QUICK = (20, 16000, 1e-3), (1, 2000, 0.02)
"""How many kills, while so many examples are trained on, to this gap."""


@dataclass(frozen=True)
class Kill:
    """One fit whose worker was killed after so many seconds: how it ended."""

    after: float = column("killed after s", ".2f")
    seconds: float = column("seconds", ".1f")
    status: str = column("status")
    primal: float = column("primal", ".1f")
    relative_gap: float = column("relative gap", ".1e")
    shares_lost: int = column("shares lost")
    is_right: bool = column("right", yes)


def _killed(client: Any, after: float) -> threading.Timer:
    address = sorted(client.scheduler_info()["workers"])[int(1000 * after) % 2]
    pid = client.run(os.getpid, workers=[address])[address]
    timer = threading.Timer(after, os.kill, (pid, signal.SIGKILL))
    timer.start()
    return timer


def run(scope: Scope, say: Say) -> Findings:
    import dask.array as da  # an extra, which not every study needs
    from distributed import Client, LocalCluster

    import larank.dask

    (kills, examples, tol), letter = QUICK if scope.quick else WHOLE, load_letter()
    X, y = letter.X_train[:examples] / 15, letter.y_train[:examples]
    optimum = larank.LinearMulticlassSVC(C=_C, tol=1e-5, random_state=0).fit(X, y).result_.dual
    options = {"n_workers": 2, "threads_per_worker": 1, "silence_logs": 50, **LOOPBACK}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        parts = da.from_array(X, chunks=(len(X) // 4, -1)), da.from_array(y, chunks=len(X) // 4)
        model = larank.dask.LinearMulticlassSVC(C=_C, tol=tol, random_state=0).fit(*parts)
        undisturbed = timed_fit(model, *parts)
        moments = np.random.default_rng(0).uniform(0.1, 0.9, kills) * undisturbed
        found = [_after_kill(client, model, parts, moment, optimum, say) for moment in moments.tolist()]
    right, hit = sum(one.is_right for one in found), sum(one.shares_lost > 0 for one in found)
    return Findings(
        rows={"kills": found},
        others={"undisturbed": undisturbed, "optimum": optimum},
        tables=[of_rows(f"Fits with a killed worker; {undisturbed:.1f} s without", found)],
        claims=[Claim(f"{right} of {len(found)} results are right; {hit} kills cost a share", right, len(found))],
    )


def _after_kill(client: Any, model: Any, parts: Any, after: float, optimum: float, say: Say) -> Kill:
    client.wait_for_workers(2)
    timer = _killed(client, after)
    seconds = timed_fit(model, *parts)
    timer.join()
    at = model.result_
    is_right = at.status == "converged" and optimum <= at.primal * (1 + 1e-9) <= optimum * (1 + 2 * model.tol)
    say(f"killed after {after:.2f} s: {at.status} after {seconds:.1f} s, {'right' if is_right else 'WRONG'}")
    return Kill(after, seconds, at.status, at.primal, at.relative_gap, at.operations["shares_lost"], is_right)


STUDY = Study("faults", "kill -9 of a Dask worker in the middle of a fit", run, libraries=("dask", "distributed"))
