"""`python -m studies active`: labels asked for one by one, with online steps or with training anew after each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from studies.measure import Measurement, ask
from studies.rivals import kernels, libraries
from studies.rivals.contest import ONCE_ABOVE, Entrant, entrants, fastest, least, runs_in_turns
from studies.rivals.kernels import FORMS, TASKS, THREADS
from studies.rivals.libraries.larank import CANDIDATES
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import column, of_rows

IN_FIT, RETRAINED = "larank", "svc-retrain"
LABELS = 500
QUICK_LABELS = 60
BAR = 1 / 20


@dataclass(frozen=True)
class ActiveRun(Measurement):
    """So many labels asked for: seconds without the test, and what was learned from them."""

    labels: int
    error: float
    support_vectors: int


@dataclass(frozen=True)
class Row:
    """One learner: the shortest of its runs. `ratio` is to training anew after each label."""

    problem: str = column("problem")
    solver: str = column("solver")
    runs: int = column("runs")
    labels: int = column("labels")
    seconds: float = column("seconds", ".3f")
    cpu: float = column("CPU s", ".3f")
    ratio: float | None = column(f"over {RETRAINED}", ".4f")
    error: float = column("test error %", ".2f", 100)
    support_vectors: int = column("vectors")


NOTE = (
    f"Each label is that of the least certain of {CANDIDATES} random examples; seconds are those of choosing and "
    "learning, without the test. The thesis: 917 s for training anew with all examples as candidates, 9.6 s for LaSVM "
    "with 50, 500 labels of reuters."
)


def measure_active(folder: Path, entrant: Entrant, form: str, labels: int, limit: float | None) -> ActiveRun:
    asked = {"kind": "active", "solver": entrant.solver, "form": form, "python": entrant.python, "labels": labels}
    return ActiveRun(**ask(TASKS, "learn", folder, THREADS, limit, **asked))


def compare(labels: int, scope: Scope, say: Say) -> Findings:
    """A row for each of the learners on every problem; they take turns."""
    found = Findings()
    for problem, folder in kernels.problems("binary", scope):
        measures = {
            entrant: partial(measure_active, folder, entrant, problem.forms[0], labels, scope.limit)
            for entrant in entrants(scope, libraries.LEARNERS, say)
        }
        runs = runs_in_turns(found, problem.name, measures, scope, say, _told)
        anew = least(runs.get(Entrant(RETRAINED), []), "wall")
        for entrant, of in runs.items():
            best = fastest(of)
            sizes = len(of), best.labels, best.wall, best.cpu, best.wall / anew if anew else None
            found.add(rows=[Row(problem.name, entrant.name, *sizes, best.error, best.support_vectors)])
    return found


def _told(run: ActiveRun) -> str:
    return f"{run.wall:.2f} s, error {100 * run.error:.2f} %"


def judged(rows: Sequence[Row]) -> list[Claim]:
    return [
        Claim(f"{row.problem}: {IN_FIT} takes {row.ratio:.4f} of the time of {RETRAINED}", row.ratio, most=BAR)
        for row in rows
        if row.solver == IN_FIT and row.ratio is not None
    ]


def run(scope: Scope, say: Say) -> Findings:
    found = compare(scope.options.labels or (QUICK_LABELS if scope.quick else LABELS), scope, say)
    rows = found.rows["rows"]
    title = f"Learning from labels asked for one by one, {THREADS} threads, wall seconds"
    found.tables, found.lines = [of_rows(title, rows)], [NOTE]
    found.claims = [] if scope.quick else judged(rows)
    return found


_TITLE = "Labels asked for one by one, against training anew and scikit-activeml"
_LABELS = {"type": int, "help": f"how many labels are asked for; {LABELS}, or {QUICK_LABELS} if quick"}
_CHOICES: dict[str, Any] = {"solvers": libraries.LEARNERS, "libraries": ("scikit-activeml",), "limit": 1800.0}
_CHOICES |= {"options": {"--once-above": ONCE_ABOVE, "--labels": _LABELS}}
STUDY = Study("active", _TITLE, run, tuple(FORMS), ("reuters",), ("banana",), **_CHOICES)
