"""`python -m studies binary`: time to train and what was reached, for all solvers of the binary SVM with a bias.

`python -m studies cache`: an epoch of LaSVM with a small and a large cache of kernel values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from studies.datasets import BINARY
from studies.rivals import kernels, libraries
from studies.rivals.contest import ONCE_ABOVE, Bars, Entrant, chosen, judge, megabytes
from studies.rivals.kernels import FORMS, THREADS, Row, Way, WayRow, measure_fit, rows_of
from studies.rivals.libraries.larank import LASVM
from studies.rivals.libraries.solver import CACHE_MEGABYTES
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import MEGABYTE, Columns, item, of_breakdowns, of_rows

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


# ---- LaSVM with caches of kernel values ----

CACHE_BAR = 2.5
BATCH = 256
SHARE_OF_BLOCKS = 0.25
"""Of the memory limit: blocks of kernel values that would take more are made shorter."""
FLOAT, SCALARS, GROWTH = 4, 128, 1.2
"""Bytes of a value, and of what is kept of a support pattern beside its features and kernel values; and the room for
patterns, which grows by half, over what they fill."""
AMPLE = 4e9
EPOCH, FINISHED = "epoch", "epoch and finishing"

CACHE_COLUMNS: Columns = {
    **chosen(WayRow, "problem", "training", "memory_limit MB", "runs", "train s", "ratio", "train CPU s"),
    **chosen(WayRow, "million kernel values", "test error %", "vectors", "dual"),
}
CACHE_NOTE = (
    "memory_limit also counts support patterns, coefficients and the two blocks of kernel values that are being worked "
    "on. Their size, with as many support patterns as an epoch with ample memory has at most, is added to the cache; "
    "up to a tenth of the small cache this is an estimate. Without the certificate, which needs no cache."
)


def limit_for(cache: float, patterns: int, features: int) -> float:
    """The memory limit that leaves so many bytes for kernel values beside so many support patterns and the blocks."""
    kept = patterns * (GROWTH * features * FLOAT + SCALARS)
    blocks = 2 * BATCH * (patterns + 2 * BATCH) * FLOAT
    return min(cache + kept + blocks, (cache + kept) / (1 - SHARE_OF_BLOCKS))


def compare_caches(caches: Sequence[float], scope: Scope, say: Say) -> Findings:
    """Two rows for each of the caches, in bytes, on every problem; their ratios are to the largest."""
    found = Findings()
    for problem, folder in kernels.problems("binary", scope):
        form = problem.forms[0]
        measure = partial(measure_fit, folder, "binary", Entrant(LASVM.name, form), scope.limit)
        most = measure(settings=_parameters(EPOCH, AMPLE)).extra["most_patterns"]
        limits = {cache: limit_for(cache, most, problem.X_train[form].shape[1]) for cache in caches}
        ways = [
            Way(
                _words(part, cache),
                limits[cache],
                _words(part, max(caches)),
                partial(measure, settings=_parameters(part, limits[cache])),
                {"part": part, "cache": cache},
            )
            for part in (EPOCH, FINISHED)
            for cache in caches
        ]
        kernels.compare_ways(found, problem.name, ways, scope, say)
    return found


def _words(part: str, cache: float) -> str:
    return f"{part}, cache of {cache / MEGABYTE:g} MB"


def _parameters(part: str, memory_limit: float) -> dict[str, object]:
    return {"finish": part == FINISHED, "certify": False, "memory_limit": memory_limit}


def judged_caches(rows: Sequence[WayRow]) -> list[Claim]:
    """Return what an epoch with the smallest cache is held to, for each problem."""
    smallest: dict[str, WayRow] = {}
    for row in sorted(rows, key=lambda row: -row.given["cache"]):
        if row.given["part"] == EPOCH:
            smallest[row.problem] = row
    said = "{0.problem}: {0.training}, takes {0.ratio:.2f} times as long as with the largest"
    return [Claim(said.format(row), row.ratio, most=CACHE_BAR) for row in smallest.values() if row.ratio is not None]


def run_cache(scope: Scope, say: Say) -> Findings:
    found = compare_caches([MEGABYTE * cache for cache in scope.options.caches], scope, say)
    rows = found.rows["rows"]
    found.tables = [
        of_rows(f"{LASVM.name} with caches of kernel values, {THREADS} threads, wall seconds", rows, CACHE_COLUMNS),
        of_breakdowns("Where the time goes, thread-seconds", rows, "training"),
    ]
    found.claims, found.lines = [] if scope.quick else judged_caches(rows), [CACHE_NOTE]
    return found


_BINARY = "Kernel binary SVMs against scikit-learn, scikit-learn-intelex and LIBSVM"
_CHOICES: dict[str, Any] = {"solvers": libraries.BINARY, "libraries": ("scikit-learn-intelex", "libsvm-official")}
_CHOICES |= {"limit": 1800.0, "options": {"--once-above": ONCE_ABOVE}}
_CACHE = "LaSVM with a small and a large cache of kernel values"
_CACHES = {"--caches": megabytes(8.0, 1024.0)}
STUDIES = (
    Study("binary", _BINARY, run, tuple(FORMS), tuple(FORMS), ("banana",), **_CHOICES),
    Study("cache", _CACHE, run_cache, tuple(FORMS), ("mnist8",), ("banana",), limit=1800.0, options=_CACHES),
)
