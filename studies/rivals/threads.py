"""`python -m studies threads`: the linear multiclass solver with one thread and with two, to the same gap."""

from __future__ import annotations

from dataclasses import dataclass

from studies.datasets import LINEAR
from studies.measure import ask
from studies.rivals import linearruns
from studies.rivals.contest import Comparison, Findings, Settings, met
from studies.rivals.linear import PRECISIONS
from studies.rivals.linearruns import TASKS, stored
from studies.study import Say
from studies.tables import Columns, figure, of_rows

THREADS = 2
BARS = {"covtype": 0.65, "news20": 0.65, "mnist": 0.8}
"""The time of two threads over that of one."""


@dataclass(frozen=True)
class Row:
    """Fits of one seed after another, both numbers of threads in turns in one process: the least wall seconds of each
    number, and the mean passes of all its fits."""

    problem: str
    dtype: str
    alone: float
    together: float
    passes_alone: float
    passes_together: float
    gap: float

    @property
    def ratio(self) -> float:
        return self.together / self.alone


COLUMNS: Columns = {
    "problem": figure("problem"),
    "data": figure("dtype"),
    "one thread, s": figure("alone", ".3f"),
    "two threads, s": figure("together", ".3f"),
    "ratio": figure("ratio", ".2f"),
    "passes": figure("passes_alone", ".1f"),
    "passes of two": figure("passes_together", ".1f"),
    "largest relative gap": figure("gap", ".1e"),
}


def run(settings: Settings, say: Say) -> Findings:
    found = Findings()
    for name in settings.problems:
        problem = linearruns.load(name, settings.quick)
        for dtype in PRECISIONS:
            say(f"{name}: {dtype}")
            with stored(problem, dtype) as folder:
                measured = ask(TASKS, "threads", folder, THREADS, settings.limit, repeats=settings.repeats)
            found.add(rows=[Row(name, dtype, **measured)])
    rows = found.rows["rows"]
    found.tables = [of_rows("One thread and two, to a relative gap of 0.001, C = 1, no intercept", COLUMNS, rows)]
    if not settings.quick:
        found.lines = [
            f"{row.problem}: two threads take {row.ratio:.2f} of the time of one in {row.dtype}; "
            f"bar {BARS[row.problem]:g}, {met(row.ratio <= BARS[row.problem])}"
            for row in rows
            if row.problem in BARS
        ]
    return found


STUDY = Comparison(
    name="threads",
    title="The linear multiclass solver with one thread and with two",
    datasets=tuple(LINEAR),
    default_datasets=tuple(BARS),
    quick_datasets=("letter",),
    run=run,
    libraries=("larank", "numpy", "scipy"),
    limit=600.0,
)
