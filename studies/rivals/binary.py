"""`python -m studies binary`: time to train and what was reached, for all solvers of the binary SVM with a bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from studies.datasets import BINARY
from studies.rivals import kernels, libraries
from studies.rivals.contest import ONCE_ABOVE, Bars, beside_before, judge
from studies.rivals.kernels import FORMS, THREADS, Row, rows_of, stored
from studies.rivals.libraries.larank import LASVM
from studies.rivals.libraries.solver import CACHE_MEGABYTES
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import Columns, figure, item, of_breakdowns, of_rows

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
    "problem": figure("problem"),
    "solver": figure("solver"),
    "data": lambda row: f"{row.form} *" if row.is_fastest else row.form,
    "runs": figure("runs"),
    "train s": figure("train", ".3f"),
    **{f"over {rival}": item("train_over", rival, ".3f") for rival in RIVALS},
    "finish s": item("breakdown", "finish", ".3f"),
    "certificate s": item("breakdown", "certificate", ".3f"),
    "train CPU s": figure("train_cpu", ".3f"),
    "predict s": figure("predict", ".3f"),
    "test error %": figure("error", ".2f", 100),
    "vectors": figure("support_vectors"),
    "peak MB": figure("peak", ".0f", 1e-6),
    "own MB": figure("peak_without_input", ".0f", 1e-6),
}
OBJECTIVE_COLUMNS: Columns = {
    "problem": figure("problem"),
    "solver": figure("solver"),
    "data": figure("form"),
    "dual": figure("dual", ".2f"),
    "short of best": figure("short_of_best", ".1e"),
    "primal": figure("primal", ".2f"),
    "relative gap": figure("relative_gap", ".1e"),
    "million kernel values": figure("kernel_values", ".1f", 1e-6),
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
    for name in scope.datasets:
        problem = kernels.load("binary", name, scope.quick)
        with stored(problem) as folder:
            runs, unfinished = kernels.all_runs("binary", problem, folder, scope, say)
        found.add(
            rows=rows_of("binary", name, runs, RIVALS, {}), unfinished=unfinished, before=beside_before(name, runs)
        )
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
