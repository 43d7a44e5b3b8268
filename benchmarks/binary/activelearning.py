"""`python -m benchmarks active`: labels asked for one by one, with online steps or with training anew after each."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from benchmarks.binary import problems
from benchmarks.binary.learners import CANDIDATES, IN_FIT, LEARNERS, RETRAINED
from benchmarks.binary.runs import ActiveRun, measure_active, stored
from benchmarks.command import Command, add_once_above
from benchmarks.contest import Settings
from benchmarks.rbf import THREADS
from benchmarks.report import Report, Section
from benchmarks.rivals import usable
from benchmarks.tables import optional
from benchmarks.turns import take_turns

LABELS = 500
BAR = 1 / 20


@dataclass(frozen=True)
class Row:
    """One learner: the shortest of its runs. `ratio` is to training anew after each label."""

    problem: str
    solver: str
    runs: int
    labels: int
    seconds: float
    cpu: float
    ratio: float | None
    error: float
    support_vectors: int


COLUMNS: dict[str, Callable[[Row], str]] = {
    "problem": lambda row: row.problem,
    "solver": lambda row: row.solver,
    "runs": lambda row: str(row.runs),
    "labels": lambda row: str(row.labels),
    "seconds": lambda row: f"{row.seconds:.3f}",
    "CPU s": lambda row: f"{row.cpu:.3f}",
    f"over {RETRAINED}": lambda row: optional(row.ratio, 4),
    "test error %": lambda row: f"{100 * row.error:.2f}",
    "vectors": lambda row: str(row.support_vectors),
}
NOTE = (
    f"Each label is that of the least certain of {CANDIDATES} random examples; seconds are those of choosing and "
    "learning, without the test. The thesis: 917 s for training anew with all examples as candidates, 9.6 s for LaSVM "
    "with 50, 500 labels of reuters."
)


def compare_learners(name: str, labels: int, settings: Settings) -> tuple[list[Row], list[str]]:
    """A row for each of the learners, and a line for each that failed; they take turns."""

    def tell(learner: str, found: ActiveRun | str) -> None:
        said = found if isinstance(found, str) else f"{found.wall:.2f} s, error {100 * found.error:.2f} %"
        settings.log(f"{name}: {learner} {said}")

    problem = problems.load(name)
    form = problem.forms[0]
    with stored(problem) as folder:
        measures = {
            learner: partial(measure_active, folder, learner, form, labels, settings.limit)
            for learner in settings.solvers
        }
        turns = take_turns(measures, settings.repeats, tell, lambda run: run.wall > settings.once_above)
    anew = min((run.wall for run in turns.found.get(RETRAINED, [])), default=None)
    rows = [_row(name, learner, runs, anew) for learner, runs in turns.found.items()]
    return rows, [f"{name}: {learner} {reason}" for learner, reason in turns.failed.items()]


def _row(problem: str, learner: str, runs: Sequence[ActiveRun], anew: float | None) -> Row:
    best = min(runs, key=lambda run: run.wall)
    ratio = best.wall / anew if anew else None
    sizes = best.labels, best.wall, best.cpu, ratio, best.error, best.support_vectors
    return Row(problem, learner, len(runs), *sizes)


def judged(rows: Sequence[Row]) -> list[str]:
    """How larank stands to the bar, where that can be told."""
    return [
        f"{row.problem}: {IN_FIT} takes {row.ratio:.4f} of the time of {RETRAINED}; bar {BAR:g}, "
        f"{'met' if row.ratio <= BAR else 'missed'}"
        for row in rows
        if row.solver == IN_FIT and row.ratio is not None
    ]


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_once_above(parser)
    parser.add_argument("--labels", type=int, default=LABELS, help="how many labels are asked for")


def _run(arguments: argparse.Namespace, log: Callable[[str], None]) -> Report:
    learners = usable(arguments.solvers, LEARNERS, log)
    choice = (arguments.repeats, arguments.once_above, arguments.limit, log)
    settings = Settings(arguments.problems, learners, *choice)
    rows: list[Row] = []
    lines: list[str] = []
    for name in arguments.problems:
        found, failed = compare_learners(name, arguments.labels, settings)
        rows, lines = rows + found, lines + failed
    title = f"Learning from labels asked for one by one, {THREADS} threads, wall seconds"
    return Report(
        [Section(title, COLUMNS, rows)], [*lines, *judged(rows), NOTE], {"rows": [asdict(row) for row in rows]}
    )


ACTIVE = Command(
    name="active",
    summary="active learning with online steps, and with training anew",
    problems=problems.PROBLEMS,
    default_problems=("reuters",),
    solvers=LEARNERS,
    default_limit=1800.0,
    libraries=("larank", "scikit-learn", "scikit-activeml", "numpy", "scipy"),
    add_options=_add_options,
    run=_run,
)
