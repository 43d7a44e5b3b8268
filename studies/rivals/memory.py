"""`python -m studies memory`: what the exact solver needs, in memory and time, under different limits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from studies.datasets import KERNEL
from studies.rivals import kernels
from studies.rivals.contest import Entrant, chosen, megabytes
from studies.rivals.kernels import THREADS, Way, WayRow, measure_fit
from studies.rivals.libraries.larank import EXACT
from studies.rivals.libraries.solver import DENSE
from studies.study import Findings, Say, Scope, Study
from studies.tables import MEGABYTE, Columns, of_breakdowns, of_rows

COLUMNS: Columns = {
    **chosen(WayRow, "problem", "training", "runs", "peak MB", "train s", "ratio", "train CPU s"),
    **chosen(WayRow, "million kernel values", "dual", "relative gap", "patterns"),
}
NOTE = (
    "Peak: of the resident set during training, above its level when the data were loaded. The limit holds for support "
    "patterns, coefficients, scores and kept kernel values; Python, working memory of products and the copy of the "
    "data without constant features come on top."
)


def _words(limit: float) -> str:
    return f"limit {limit / MEGABYTE:g} MB"


def compare(limits: Sequence[float], scope: Scope, say: Say) -> Findings:
    """A row for each of the limits, in bytes, on every problem; their ratios are to the largest."""
    found = Findings()
    for problem, folder in kernels.problems("kernel", scope):
        exact = partial(measure_fit, folder, "kernel", Entrant(EXACT.name, DENSE), scope.limit)
        ways = [
            Way(_words(limit), limit, _words(max(limits)), partial(exact, settings={"memory_limit": limit}))
            for limit in limits
        ]
        kernels.compare_ways(found, problem.name, ways, scope, say)
    return found


def run(scope: Scope, say: Say) -> Findings:
    found = compare([MEGABYTE * limit for limit in scope.options.memory_limits], scope, say)
    rows = found.rows["rows"]
    found.tables = [
        of_rows(f"The exact solver under limits on memory, {THREADS} threads, wall seconds", rows, COLUMNS),
        of_breakdowns("Where the time goes, thread-seconds", rows, "training"),
    ]
    found.lines = [NOTE]
    return found


STUDY = Study(
    name="memory",
    title="The exact kernel solver under limits on memory",
    datasets=tuple(KERNEL),
    default_datasets=("mnist",),
    quick_datasets=("letter",),
    run=run,
    limit=3600.0,
    options={"--memory-limits": megabytes(500.0, 4000.0)},
)
