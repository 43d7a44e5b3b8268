"""`python -m studies binary`: time to train and what was reached, for all solvers of the binary SVM with a bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from studies.datasets import BINARY
from studies.rivals import kernels, libraries
from studies.rivals.contest import ONCE_ABOVE, Bars, chosen, judge
from studies.rivals.kernels import FORMS, THREADS, Row, rows_of
from studies.rivals.libraries.larank import LASVM
from studies.rivals.libraries.solver import CACHE_MEGABYTES
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import Columns, item, of_breakdowns, of_rows

RIVALS = ("svc", "intelex", "libsvm")
"""Whose training times all others are divided by."""
BARS: Bars = {
    ("adult", "svc"): 1 / 8,
    ("adult", "intelex"): 0.7,
    ("reuters", "intelex"): 0.6,
    ("mnist8", "intelex"): 1 / 3,
    ("covtype100k", "intelex"): 1 / 2,
    ("banana", "svc"): 1.0,
    ("waveform", "svc"): 1.0,
}
"""What larank's training, one epoch with finishing, may take at most, of that of a rival in the same run."""

COLUMNS: Columns = {
    **chosen(Row, "problem", "solver"),
    "data": lambda row: f"{row.form} *" if row.is_fastest else row.form,
    **chosen(Row, "runs", "train s"),
    **{f"over {rival}": item("train_over", rival, ".3f") for rival in RIVALS},
    **{f"{part} s": item("breakdown", part, ".3f") for part in ("finish", "certificate")},
    **chosen(Row, "train CPU s", "predict s", "test error %", "vectors", "peak MB", "own MB"),
}
OBJECTIVE_COLUMNS: Columns = {
    **chosen(Row, "problem", "solver", "data", "dual", "short of best", "primal"),
    **chosen(Row, "relative gap", "million kernel values"),
}
WHAT_IS_COMPARED = (
    f"All solve the same problem. The rivals go on to their tolerance of 0.001 over all examples, with a cache of "
    f"{CACHE_MEGABYTES} MB; larank makes one epoch and finishes to 0.001 over the examples it kept. Its seconds "
    "include the certificate, which the rivals do not compute; the bars are judged with and without "
    "it. Data: * marks a solver's fastest form, which counts in the ratios."
)


def compare(scope: Scope, say: Say) -> Findings:
    """Run all solvers, problem by problem."""
    found = Findings()
    for problem, folder in kernels.problems("binary", scope):
        runs = kernels.all_runs(found, "binary", problem, folder, scope, say)
        found.add(rows=rows_of("binary", problem.name, runs, RIVALS, {}))
    return found


def ratios(rows: Sequence[Row]) -> dict[str, Mapping[str, float]]:
    """Of larank in its fastest form, by problem and rival."""
    return {row.problem: row.train_over for row in rows if row.solver == LASVM.name and row.is_fastest}


def ratios_of_training_alone(rows: Sequence[Row]) -> dict[str, Mapping[str, float]]:
    """The same without the certificate, which the rivals do not compute."""
    alone = {row.problem: 1 - row.breakdown["certificate"] / row.train for row in rows if row.solver == LASVM.name}
    return {
        problem: {rival: ratio * alone[problem] for rival, ratio in over.items()}
        for problem, over in ratios(rows).items()
    }


def judged(rows: Sequence[Row]) -> list[Claim]:
    """Return what larank's training times are held to, without the certificate and with it."""
    alone = judge(LASVM.name, ratios_of_training_alone(rows), BARS)
    return [*alone, *judge(f"{LASVM.name} with its certificate", ratios(rows), BARS)]


def run(scope: Scope, say: Say) -> Findings:
    found = compare(scope, say)
    rows = found.rows["rows"]
    ours = [row for row in rows if row.solver == LASVM.name]
    found.tables = [
        of_rows(f"Training and prediction of the test set, {THREADS} threads, wall seconds", rows, COLUMNS),
        of_rows("Objectives reached, and kernel values where they are told", rows, OBJECTIVE_COLUMNS),
        of_breakdowns("Where larank's time goes, thread-seconds", ours, "form"),
    ]
    found.claims = [] if scope.quick else judged(rows)
    found.lines = [
        *(f"{name}: {BINARY[name].note}." for name in scope.datasets if BINARY[name].note),
        WHAT_IS_COMPARED,
    ]
    return found


STUDY = Study(
    name="binary",
    title="Kernel binary SVMs against scikit-learn, scikit-learn-intelex and LIBSVM",
    datasets=tuple(FORMS),
    default_datasets=tuple(FORMS),
    quick_datasets=("banana",),
    run=run,
    libraries=("scikit-learn-intelex", "libsvm-official"),
    solvers=libraries.BINARY,
    limit=1800.0,
    options={"--once-above": ONCE_ABOVE},
)
