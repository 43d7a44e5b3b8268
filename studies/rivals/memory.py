"""`python -m studies memory`: what the exact solver needs, in memory and time, under different limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from studies.datasets import KERNEL
from studies.rivals import kernels
from studies.rivals.contest import Comparison, Entrant, Findings, Settings, fastest, runs_in_turns
from studies.rivals.kernels import THREADS, KernelRun, measure_fit, stored
from studies.rivals.libraries.larank import EXACT
from studies.rivals.libraries.solver import DENSE
from studies.study import Say
from studies.tables import MEGABYTE, Columns, figure, of_breakdowns, of_rows

LIMITS = (500.0, 4000.0)


@dataclass(frozen=True)
class Row:
    """The exact solver under one limit, in bytes: the shortest training and the smallest peak of its runs.

    `peak` is that of the resident set, above its level when the data were loaded. `ratio` is to the training time under
    the largest limit.
    """

    problem: str
    limit: float
    runs: int
    train: float
    train_cpu: float
    ratio: float | None
    peak: int
    kernel_values: int
    primal: float
    dual: float
    support_patterns: int
    breakdown: dict[str, float]

    @property
    def training(self) -> str:
        """Which it is, in words."""
        return _words(self.limit)

    @property
    def relative_gap(self) -> float:
        """(primal - dual) / primal."""
        return (self.primal - self.dual) / self.primal


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


def compare(limits: Sequence[float], settings: Settings, say: Say) -> Findings:
    """A row for each of the limits, in bytes, on every problem; they take turns."""
    found = Findings()
    for name in settings.problems:
        with stored(kernels.load("kernel", name, settings.quick)) as folder:
            exact = partial(measure_fit, folder, "kernel", Entrant(EXACT.name, DENSE), settings.limit)
            measures = {_words(limit): partial(exact, settings={"memory_limit": limit}) for limit in limits}
            runs, unfinished = runs_in_turns(name, measures, settings, say, _told)
        whole = min((run.wall for run in runs.get(_words(max(limits)), [])), default=None)
        rows = [_row(name, limit, runs[_words(limit)], whole) for limit in limits if _words(limit) in runs]
        found.add(rows=rows, unfinished=unfinished)
    return found


def _told(run: KernelRun) -> str:
    return f"{run.wall:.2f} s, {run.own_peak(copies_input=True) / MEGABYTE:.0f} MB"


def _row(problem: str, limit: float, runs: Sequence[KernelRun], whole: float | None) -> Row:
    best = fastest(runs)
    return Row(
        problem=problem,
        limit=limit,
        runs=len(runs),
        train=best.wall,
        train_cpu=best.cpu,
        ratio=best.wall / whole if whole else None,
        peak=min(run.own_peak(copies_input=True) for run in runs),
        kernel_values=best.extra["kernel_values"],
        primal=best.primal or 0.0,
        dual=best.dual,
        support_patterns=best.support_patterns,
        breakdown=dict(best.extra["breakdown"]),
    )


def run(settings: Settings, say: Say) -> Findings:
    found = compare([MEGABYTE * limit for limit in settings.options.memory_limits], settings, say)
    rows = found.rows["rows"]
    found.tables = [
        of_rows(f"The exact solver under limits on memory, {THREADS} threads, wall seconds", COLUMNS, rows),
        of_breakdowns("Where the time goes, thread-seconds", rows, "training"),
    ]
    found.lines = [NOTE]
    return found


STUDY = Comparison(
    name="memory",
    title="The exact kernel solver under limits on memory",
    datasets=tuple(KERNEL),
    default_datasets=("mnist",),
    quick_datasets=("letter",),
    run=run,
    libraries=("larank", "numpy", "scipy"),
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
