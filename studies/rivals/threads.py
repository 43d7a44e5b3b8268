"""`python -m studies threads`: the linear multiclass solver with one thread and with two, to the same gap."""

from __future__ import annotations

from dataclasses import dataclass

from studies.datasets import LINEAR
from studies.measure import ask
from studies.rivals import linearruns
from studies.rivals.linear import PRECISIONS
from studies.rivals.linearruns import TASKS, stored
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import column, derived, of_rows

THREADS = 2
BARS = {"covtype": 0.65, "news20": 0.65, "mnist": 0.8}
"""The time of two threads over that of one."""


@dataclass(frozen=True)
class Row:
    """Fits of one seed after another, both numbers of threads in turns in one process: the least wall seconds of each
    number, and the mean passes of all its fits."""

    problem: str = column("problem")
    dtype: str = column("data")
    alone: float = column("one thread, s", ".3f")
    together: float = column("two threads, s", ".3f")

    @derived("ratio", ".2f")
    def ratio(self) -> float:
        return self.together / self.alone

    passes_alone: float = column("passes", ".1f")
    passes_together: float = column("passes of two", ".1f")
    gap: float = column("largest relative gap", ".1e")


def run(scope: Scope, say: Say) -> Findings:
    found = Findings()
    for name in scope.datasets:
        problem = linearruns.load(name, scope.quick)
        for dtype in PRECISIONS:
            say(f"{name}: {dtype}")
            with stored(problem, dtype) as folder:
                measured = ask(TASKS, "threads", folder, THREADS, scope.limit, repeats=scope.repeats)
            found.add(rows=[Row(name, dtype, **measured)])
    rows = found.rows["rows"]
    found.tables = [of_rows("One thread and two, to a relative gap of 0.001, C = 1, no intercept", rows)]
    if not scope.quick:
        said = "{0.problem}: two threads take {0.ratio:.2f} of the time of one in {0.dtype}"
        found.claims = [
            Claim(said.format(row), row.ratio, most=BARS[row.problem]) for row in rows if row.problem in BARS
        ]
    return found


STUDY = Study(
    name="threads",
    title="The linear multiclass solver with one thread and with two",
    datasets=tuple(LINEAR),
    default_datasets=tuple(BARS),
    quick_datasets=("letter",),
    run=run,
    limit=600.0,
)
