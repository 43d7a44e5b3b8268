"""`python -m studies cache`: an epoch of LaSVM with a small and a large cache of kernel values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from studies.rivals import kernels
from studies.rivals.contest import Entrant, chosen, megabytes
from studies.rivals.kernels import FORMS, THREADS, Way, WayRow, measure_fit
from studies.rivals.libraries.larank import LASVM
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import MEGABYTE, Columns, of_breakdowns, of_rows

BAR = 2.5
BATCH = 256
SHARE_OF_BLOCKS = 0.25
"""Of the memory limit: blocks of kernel values that would take more are made shorter."""
FLOAT, SCALARS, GROWTH = 4, 128, 1.2
"""Bytes of a value, and of what is kept of a support pattern beside its features and kernel values; and the room for
patterns, which grows by half, over what they fill."""
AMPLE = 4e9
EPOCH, FINISHED = "epoch", "epoch and finishing"

COLUMNS: Columns = {
    **chosen(WayRow, "problem", "training", "memory_limit MB", "runs", "train s", "ratio", "train CPU s"),
    **chosen(WayRow, "million kernel values", "test error %", "vectors", "dual"),
}
NOTE = (
    "memory_limit also counts support patterns, coefficients and the two blocks of kernel values that are being worked "
    "on. Their size, with as many support patterns as an epoch with ample memory has at most, is added to the cache; "
    "up to a tenth of the small cache this is an estimate. Without the certificate, which needs no cache."
)


def limit_for(cache: float, patterns: int, features: int) -> float:
    """The memory limit that leaves so many bytes for kernel values beside so many support patterns and the blocks."""
    kept = patterns * (GROWTH * features * FLOAT + SCALARS)
    blocks = 2 * BATCH * (patterns + 2 * BATCH) * FLOAT
    return min(cache + kept + blocks, (cache + kept) / (1 - SHARE_OF_BLOCKS))


def compare(caches: Sequence[float], scope: Scope, say: Say) -> Findings:
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
    return {"finish": part == FINISHED, "certify": False, "memory_limit": memory_limit, "batch_size": BATCH}


def judged(rows: Sequence[WayRow]) -> list[Claim]:
    """Return what an epoch with the smallest cache is held to, for each problem."""
    smallest: dict[str, WayRow] = {}
    for row in sorted(rows, key=lambda row: -row.given["cache"]):
        if row.given["part"] == EPOCH:
            smallest[row.problem] = row
    said = "{0.problem}: {0.training}, takes {0.ratio:.2f} times as long as with the largest"
    return [Claim(said.format(row), row.ratio, most=BAR) for row in smallest.values() if row.ratio is not None]


def run(scope: Scope, say: Say) -> Findings:
    found = compare([MEGABYTE * cache for cache in scope.options.caches], scope, say)
    rows = found.rows["rows"]
    found.tables = [
        of_rows(f"{LASVM.name} with caches of kernel values, {THREADS} threads, wall seconds", rows, COLUMNS),
        of_breakdowns("Where the time goes, thread-seconds", rows, "training"),
    ]
    found.claims, found.lines = [] if scope.quick else judged(rows), [NOTE]
    return found


STUDY = Study(
    name="cache",
    title="LaSVM with a small and a large cache of kernel values",
    datasets=tuple(FORMS),
    default_datasets=("mnist8",),
    quick_datasets=("banana",),
    run=run,
    limit=1800.0,
    options={"--caches": megabytes(8.0, 1024.0)},
)
