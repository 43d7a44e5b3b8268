"""`python -m studies sequence`: time from text to a model and from text to tags, and how good the tags are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from larank.data import data_directory
from larank.sequence.entities import entity_report
from studies.measure import Measurement, ask
from studies.rivals import libraries, text
from studies.rivals.contest import ONCE_ABOVE, Entrant, entrants, fastest, least, runs_in_turns, taken
from studies.rivals.libraries.crfsuite import LBFGS_ITERATIONS
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import column, derived, of_breakdowns, of_rows

PROBLEMS = ("conll2000",)
REFERENCE = "crfsuite-pa"
"""Whose times all others are divided by."""
LONG_LIMIT = 2e8
"""The memory limit, in bytes, for training on files of different lengths."""
WHAT_IS_LIMITED = (
    f"The limit is {LONG_LIMIT / 1e6:g} MB: the weights of the whole file's 339 000 features and their average need "
    "about 195 MB of it, and a limit they do not fit in is refused. Peaks also include Python and the blocks read."
)
TRAIN_BAR = 1 / 3
TAG_BAR = 3.0
F1_BAR = 0.934
QUICK_SENTENCES = 400


@dataclass(frozen=True)
class TaggerRun(Measurement):
    """One training and one tagging of the test file, from text each, in wall-clock seconds.

    `tag_prepared` are the seconds of tagging alone, of features made before, where a library keeps the two apart.
    """

    tag: float
    tag_prepared: float | None
    tokens: int
    accuracy: float
    f1: float


@dataclass(frozen=True)
class Row:
    """One tagger: the shortest training and the shortest tagging of its runs.

    `train_over` is the time over that of the reference, `cpu_over` the same of the least CPU seconds, `tag_over` tokens
    per second over those of the reference. `prepared_per_second` are tokens tagged per second once their features are
    there.
    """

    problem: str = column("problem")
    solver: str = column("solver")
    runs: int = column("runs")
    train: float = column("text to model s", ".3f")
    train_over: float | None = column(f"over {REFERENCE}", ".3f")
    train_cpu: float = column("CPU s", ".3f")
    breakdown: Mapping[str, float]
    cpu_over: float | None = column("over it in CPU s", ".3f")
    f1: float = column("F1 %", ".2f", 100)
    accuracy: float = column("accuracy %", ".2f", 100)
    tokens_per_second: float = column("tokens/s", ",.0f")
    tag_over: float | None = column(f"times {REFERENCE}", ".1f")
    prepared_per_second: float | None = column("tokens/s, features ready", ",.0f")
    peak: int = column("peak MB", ".0f", 1e-6)
    certificate: float
    extra: Mapping[str, object]


@dataclass(frozen=True)
class LongRow:
    """Training with a memory limit, in bytes, on the file and on one that is longer."""

    problem: str = column("problem")
    solver: str = column("solver")
    repetitions: int

    @derived("file")
    def file(self) -> str:
        return "as it is" if self.repetitions == 1 else f"{self.repetitions} times over"

    memory_limit: float = column("memory_limit MB", ".0f", 1e-6)
    seconds: float = column("text to model s", ".2f")
    peak: int = column("peak MB", ".0f", 1e-6)


WHAT_IS_COMPARED = (
    "All have the same 19 templates over words and parts of speech. Text to model begins with the training file and "
    "ends with a trained model, tokens/s are those from the test file to tags: both include reading and feature "
    "extraction, in Python for CRFsuite. crfsuite-pa and -ap make 10 iterations, crfsuite-lbfgs "
    f"{LBFGS_ITERATIONS} (it converges after about 160, which takes five times as long); everything else is CRFsuite's "
    "default, rand() is seeded with 0. CRFsuite has one thread; larank has one, and two where its name ends in -2."
)
WHAT_BOUNDS_THE_TIME = (
    "What bounds larank (perf, one thread): waiting for memory. Steps visit support patterns in random order and read "
    "the weights of their features from a table of 65 MB; patterns that come next are asked for ahead. Exact "
    "inference: a quarter of the time Viterbi and the scores it needs, the rest OPTIMIZE on the labels in which "
    "outputs differ. Reading and features are at most a tenth."
)


def _ask(folder: Path, entrant: Entrant, limit: float | None, **details: Any) -> dict[str, Any]:
    asked = {"kind": "sequence", "solver": entrant.solver, "python": entrant.python, **details}
    return ask("studies.rivals.tasks", "fit_tagger", folder, libraries.TAGGERS[entrant.solver].threads, limit, **asked)


def measure_fit(folder: Path, entrant: Entrant, limit: float | None) -> TaggerRun:
    """Train and tag once; the tags are scored here, by the same code for all."""
    tags = folder / "tags.json"
    found = _ask(folder, entrant, limit, file=text.TRAIN, test=text.TEST, tags=str(tags))
    _, true = text.read(folder / text.TEST)
    report = entity_report(true, json.loads(tags.read_text()))
    return TaggerRun(**found, tokens=report.tokens, accuracy=report.accuracy, f1=report.f1)


def measure_peak(
    folder: Path, entrant: Entrant, file: str, settings: Mapping[str, Any], limit: float | None
) -> Measurement:
    """Train once on one of the files, with other parameters of the solver."""
    return Measurement(**_ask(folder, entrant, limit, file=file, settings=dict(settings)))


def compare(scope: Scope, say: Say) -> Findings:
    found = Findings()
    for name in scope.present(PROBLEMS, PROBLEMS, say):
        takers = entrants(scope, libraries.TAGGERS, say)
        with text.stored(data_directory() / name, QUICK_SENTENCES if scope.quick else None) as folder:
            measures = {taker: partial(measure_fit, folder, taker, scope.limit) for taker in takers}
            runs = runs_in_turns(found, name, measures, scope, say, _told)
            found.add(rows=rows_of(name, runs), long_rows=long_rows_of(found, name, folder, takers, scope, say))
    return found


def _told(run: TaggerRun) -> str:
    return f"trained in {run.wall:.2f} s, F1 {100 * run.f1:.2f} %"


def rows_of(problem: str, runs: Mapping[Entrant, Sequence[TaggerRun]]) -> list[Row]:
    """A row for each tagger, with what depends on the reference."""
    return [_row(problem, taker, found, runs.get(Entrant(REFERENCE), ())) for taker, found in runs.items()]


def _row(problem: str, taker: Entrant, runs: Sequence[TaggerRun], reference: Sequence[TaggerRun]) -> Row:
    wall, cpu, tag = least(reference, "wall", "cpu", "tag")
    trained, (least_cpu, tagged) = fastest(runs), least(runs, "cpu", "tag")
    prepared = least([run for run in runs if run.tag_prepared is not None], "tag_prepared")
    breakdown = trained.extra["breakdown"]
    return Row(
        problem,
        taker.name,
        len(runs),
        train=trained.wall,
        train_over=trained.wall / wall if wall else None,
        train_cpu=least_cpu,
        breakdown=breakdown,
        cpu_over=least_cpu / cpu if cpu else None,
        **taken(trained, "f1", "accuracy"),
        tokens_per_second=trained.tokens / tagged,
        tag_over=tag / tagged if tag else None,
        prepared_per_second=trained.tokens / prepared if prepared else None,
        peak=least(runs, "peak"),
        certificate=breakdown.get("certificate", 0.0),
        extra={name: value for name, value in trained.extra.items() if name != "breakdown"},
    )


def long_rows_of(
    found: Findings, name: str, folder: Path, takers: Sequence[Entrant], scope: Scope, say: Say
) -> Iterator[LongRow]:
    """Of larank, which reads its file block by block: memory should not grow with the file."""

    def told(run: Measurement) -> str:
        return f"{run.wall:.1f} s, {run.peak / 1e6:.0f} MB"

    sizes = {text.TRAIN: 1, text.LONG: text.REPETITIONS}
    limited = {"memory_limit": LONG_LIMIT}
    for taker in takers:
        solver = libraries.TAGGERS[taker.solver]
        if solver.is_ours and solver.threads == 1:
            words = {f"{taker} on {file}": file for file in sizes}
            measures = {said: partial(measure_peak, folder, taker, words[said], limited, scope.limit) for said in words}
            for said, (run,) in runs_in_turns(found, name, measures, Scope(repeats=1), say, told).items():
                yield LongRow(name, taker.name, sizes[words[said]], LONG_LIMIT, run.wall, run.peak)


def judged(rows: Sequence[Row]) -> list[Claim]:
    """Return what larank is held to; training is judged without the certificate, which the rival does not compute."""
    claims = []
    for row in rows:
        solver = libraries.TAGGERS.get(row.solver)
        if solver is None or not solver.is_ours or row.tag_over is None:
            continue
        f1 = next(other.f1 for other in rows if other.problem == row.problem and other.solver == REFERENCE)
        alone = 1 - row.certificate / row.train
        wall, cpu = alone * (row.train_over or 0.0), alone * (row.cpu_over or 0.0)
        said = f"{row.problem}: {row.solver}"
        takes = (
            f"{said} takes {wall:.3f} of {REFERENCE}'s time from text to model, {cpu:.3f} in CPU seconds "
            f"({row.train_over:.3f} and {row.cpu_over:.3f} with its certificate)"
        )
        both = f"{100 * F1_BAR:.1f} and no less than {REFERENCE}"
        has = f"{said} has F1 {100 * row.f1:.2f}, {REFERENCE} {100 * f1:.2f}"
        tags = f"{said} tags {row.tag_over:.1f} times as fast as {REFERENCE}"
        claims.append(Claim(takes, wall, most=TRAIN_BAR, also=cpu, bar=f"{TRAIN_BAR:.3f}"))
        claims.append(Claim(has, row.f1, least=max(F1_BAR, f1), bar=both))
        claims.append(Claim(tags, row.tag_over, least=TAG_BAR))
    return claims


def run(scope: Scope, say: Say) -> Findings:
    found = compare(scope, say)
    rows = found.rows["rows"]
    found.tables = [
        of_rows("From text to a model, and from text to tags, wall seconds", rows),
        of_breakdowns("Where the time goes, seconds", rows, "solver"),
        of_rows("Memory as the file grows", found.rows["long_rows"], notes=[WHAT_IS_LIMITED]),
    ]
    found.claims = [] if scope.quick else judged(rows)
    found.lines = [WHAT_IS_COMPARED, WHAT_BOUNDS_THE_TIME]
    return found


_TITLE = "Tagging of text, from files, against CRFsuite"
_CHOICES: dict[str, Any] = {"solvers": libraries.TAGGERS, "limit": 600.0, "options": {"--once-above": ONCE_ABOVE}}
STUDY = Study("sequence", _TITLE, run, *[PROBLEMS] * 3, libraries=("python-crfsuite",), **_CHOICES)
