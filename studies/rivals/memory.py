"""`python -m studies memory`: what the exact solver needs, in memory and time, under different limits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from studies.datasets import KERNEL
from studies.rivals import kernels, variants
from studies.rivals.contest import Entrant
from studies.rivals.kernels import THREADS, measure_fit, stored
from studies.rivals.libraries.larank import EXACT
from studies.rivals.libraries.solver import DENSE
from studies.rivals.variants import Way
from studies.study import Findings, Say, Scope, Study
from studies.tables import MEGABYTE, Columns, figure, of_breakdowns, of_rows

LIMITS = (500.0, 4000.0)

COLUMNS: Columns = {
    "problem": figure("problem"),
    "training": figure("training"),
    "runs": figure("runs"),
    "peak MB": figure("peak", ".0f", 1e-6),
    "train s": figure("train", ".3f"),
    "ratio": figure("ratio", ".2f"),
    "train CPU s": figure("train_cpu", ".3f"),
    "million kernel values": figure("kernel_values", ".1f", 1e-6),
    "dual": figure("dual", ".2f"),
    "relative gap": figure("relative_gap", ".1e"),
    "patterns": figure("support_patterns"),
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
    for name in scope.datasets:
        with stored(kernels.load("kernel", name, scope.quick)) as folder:
            exact = partial(measure_fit, folder, "kernel", Entrant(EXACT.name, DENSE), scope.limit)
            ways = [
                Way(_words(limit), limit, _words(max(limits)), partial(exact, settings={"memory_limit": limit}))
                for limit in limits
            ]
            rows, unfinished = variants.rows_of(name, ways, scope, say)
        found.add(rows=rows, unfinished=unfinished)
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
    options={
        "--memory-limits": {
            "type": float,
            "nargs": "+",
            "default": LIMITS,
            "metavar": "MB",
            "help": "1e6 bytes each; 500 and 4000",
        }
    },
)
