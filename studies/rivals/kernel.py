"""`python -m studies kernel`: time to train and to predict, for all kernel multiclass solvers.

`python -m studies memory`: what the exact solver needs, in memory and time, under different limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from studies.datasets import KERNEL
from studies.measure import take_turns
from studies.rivals import kernels, libraries
from studies.rivals.contest import ONCE_ABOVE, Bars, Entrant, Unfinished, chosen, fastest, judge, least, megabytes
from studies.rivals.kernels import THREADS, Certificate, KernelRun, Row, WayRow, measure_certificate
from studies.rivals.libraries.larank import EXACT, ONLINE
from studies.rivals.libraries.solver import DENSE
from studies.study import Claim, Findings, Say, Scope, Study
from studies.tables import MEGABYTE, Columns, column, derived, item, of_breakdowns, of_rows

RIVALS = ("svc", "intelex")
"""Whose training times all others are divided by, beside those of larank."""


@dataclass(frozen=True)
class Work:
    """What training of a solver of larank consists of: the bare product of as many values, its parts, the certificate.

    The certificate of the exact solver is a part of its training, and has no seconds of its own.
    """

    problem: str = column("problem")
    solver: str = column("solver")
    train: float = column("train s", ".3f")
    kernel_values: int = column("million kernel values", ".1f", 1e-6)
    product: float | None = column("bare GEMM s", ".3f")

    @derived("train / GEMM", ".2f")
    def ratio(self) -> float | None:
        """Of training to the bare product."""
        return self.train / self.product if self.product else None

    cpu_ratio: float | None = column("in CPU s", ".2f")
    breakdown: Mapping[str, float]
    operations: Mapping[str, int]
    certificate: float | None = column("certificate s", ".3f")


ROW_COLUMNS: Columns = {
    **chosen(Row, "problem", "solver", "runs", "train s", "train ratio"),
    **{f"over {rival}": item("train_over", rival, ".3f") for rival in RIVALS},
    **chosen(Row, "predict s", "predict ratio", "train CPU s", "test error %", "patterns", "vectors"),
    **chosen(Row, "peak MB", "own MB"),
}
OBJECTIVE_COLUMNS = chosen(Row, "problem", "solver", "objective", "primal", "dual", "relative gap")
DIFFERENT_OBJECTIVES = (
    "The rivals solve one-versus-one or one-versus-rest problems with a bias, to their own tolerance; larank makes one "
    "pass over a single multiclass problem without a bias, and larank-exact solves that problem, its certificate "
    "included in its time. Compare time at the error reached, and objectives only where they are of the same problem."
)
BARS: dict[str, Bars] = {
    ONLINE.name: {
        **{("mnist", "intelex"): 1 / 6, ("mnist", "svc"): 1 / 45},
        **{("usps", "svc"): 1 / 6, ("letter", "svc"): 0.4},
    },
    EXACT.name: {
        **{("mnist", "intelex"): 1 / 2, ("mnist-noise", "intelex"): 3 / 4},
        **{("usps", "svc"): 0.5, ("letter", "svc"): 1.2},
    },
}
"""What training may take at most, of that of a rival in the same run."""
WHAT_BOUNDS_THE_TIME = (
    "What bounds the time of larank's one pass: on mnist, with integer products, a third is products; steps, scores "
    "and visits of patterns that have nothing to do come next, then memory that is new to the process (1 GB; on a "
    "virtual machine a millisecond or two per MB, and no slab is cleared twice). On letter, with 16 features, visits "
    "wait for memory about as long as steps work. Two threads of one processor core share its arithmetic: products in "
    "the background are not free. What bounds the exact solver: on mnist the first and the last look at all examples, "
    "on letter the steps."
)


def compare(scope: Scope, say: Say) -> Findings:
    found = Findings()
    for problem, folder in kernels.problems("kernel", scope):
        runs = kernels.all_runs(found, "kernel", problem, folder, scope, say, products=True)
        ours = [entrant for entrant in runs if libraries.KERNEL[entrant.solver].is_ours]
        certificates = _certificates(found, problem.name, folder, runs, scope, say)
        found.add(
            rows=kernels.rows_of("kernel", problem.name, runs, RIVALS, certificates),
            work=[_work(problem.name, entrant, runs[entrant], certificates) for entrant in ours],
        )
    return found


def _certificates(
    found: Findings, problem: str, folder: Path, runs: Iterable[Entrant], scope: Scope, say: Say
) -> dict[Entrant, Certificate]:
    """What the certificate of larank's one pass costs."""

    def tell(entrant: Entrant, found: Certificate | str) -> None:
        say(f"{problem}: {entrant}, certificate: {found if isinstance(found, str) else f'{found.seconds:.2f} s'}")

    of = [entrant for entrant in runs if entrant.solver == ONLINE.name]
    made, failed = take_turns(
        {taker: partial(measure_certificate, folder, taker, scope.limit) for taker in of}, 1, tell
    )
    found.add(unfinished=[Unfinished(problem, str(taker), reason) for taker, reason in failed.items()])
    return {taker: certificate for taker, (certificate,) in made.items()}


def _work(
    problem: str, entrant: Entrant, runs: Sequence[KernelRun], certificates: Mapping[Entrant, Certificate]
) -> Work:
    trained = fastest(runs)
    product, product_cpu = (least([run for run in runs if run.product], name) for name in ("product", "product_cpu"))
    return Work(
        problem,
        solver=entrant.name,
        train=trained.wall,
        product=product,
        cpu_ratio=least(runs, "cpu") / product_cpu if product_cpu else None,
        **{name: trained.extra[name] for name in ("kernel_values", "breakdown", "operations")},
        certificate=certificates[entrant].seconds if entrant in certificates else None,
    )


def judged(rows: Sequence[Row]) -> list[Claim]:
    return [
        claim
        for solver, bars in BARS.items()
        for claim in judge(solver, {row.problem: row.train_over for row in rows if row.solver == solver}, bars)
    ]


def run(scope: Scope, say: Say) -> Findings:
    found = compare(scope, say)
    rows, work = found.rows["rows"], found.rows["work"]
    found.tables = [
        of_rows(f"Training and prediction of the test set, {THREADS} threads, wall seconds", rows, ROW_COLUMNS),
        of_rows("Objectives reached; rows of different objectives do not compare", rows, OBJECTIVE_COLUMNS),
        of_rows("larank against the bare product of as many values", work),
        of_breakdowns("Where larank's time goes, thread-seconds", work, "solver"),
    ]
    found.claims = [] if scope.quick else judged(rows)
    found.lines = [DIFFERENT_OBJECTIVES, WHAT_BOUNDS_THE_TIME]
    return found


# ---- The exact solver under limits on memory ----

MEMORY_COLUMNS: Columns = {
    **chosen(WayRow, "problem", "training", "runs", "peak MB", "train s", "ratio", "train CPU s"),
    **chosen(WayRow, "million kernel values", "dual", "relative gap", "patterns"),
}
MEMORY_NOTE = (
    "Peak: of the resident set during training, above its level when the data were loaded. The limit holds for support "
    "patterns, coefficients, scores and kept kernel values; Python, working memory of products and the copy of the "
    "data without constant features come on top."
)


def _words(limit: float) -> str:
    return f"limit {limit / MEGABYTE:g} MB"


def compare_limits(limits: Sequence[float], scope: Scope, say: Say) -> Findings:
    """A row for each of the limits, in bytes, on every problem; their ratios are to the largest."""
    found = Findings()
    for problem, folder in kernels.problems("kernel", scope):
        exact = partial(kernels.measure_fit, folder, "kernel", Entrant(EXACT.name, DENSE), scope.limit)
        ways = [
            kernels.Way(_words(limit), limit, _words(max(limits)), partial(exact, settings={"memory_limit": limit}))
            for limit in limits
        ]
        kernels.compare_ways(found, problem.name, ways, scope, say)
    return found


def run_memory(scope: Scope, say: Say) -> Findings:
    found = compare_limits([MEGABYTE * limit for limit in scope.options.memory_limits], scope, say)
    rows = found.rows["rows"]
    found.tables = [
        of_rows(f"The exact solver under limits on memory, {THREADS} threads, wall seconds", rows, MEMORY_COLUMNS),
        of_breakdowns("Where the time goes, thread-seconds", rows, "training"),
    ]
    found.lines = [MEMORY_NOTE]
    return found


_KERNEL = "Kernel multiclass SVMs against scikit-learn, scikit-learn-intelex and LIBSVM"
_CHOICES: dict[str, Any] = {"solvers": libraries.KERNEL, "libraries": ("scikit-learn-intelex", "libsvm-official")}
_CHOICES |= {"limit": 3600.0, "options": {"--once-above": ONCE_ABOVE}}
_MEMORY = "The exact kernel solver under limits on memory"
_LIMITS = {"--memory-limits": megabytes(500.0, 4000.0)}
STUDIES = (
    Study("kernel", _KERNEL, run, tuple(KERNEL), tuple(KERNEL), ("letter",), **_CHOICES),
    Study("memory", _MEMORY, run_memory, tuple(KERNEL), ("mnist",), ("letter",), limit=3600.0, options=_LIMITS),
)
