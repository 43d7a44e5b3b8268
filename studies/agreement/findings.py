"""What the campaign found: its runs, tables by estimator, kernel, cost and reference, and all broken claims."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise

from studies.study import Findings
from studies.tables import Table

_COSTS = (1e-1, 1e1, 1e3, 1e5, 1e7)
_STATUSES = ("converged", "precision", "max_iter", "time_limit", "completed", "error")
_GENERAL = "general solver, width of the interval"


@dataclass(frozen=True)
class Run:
    """What an estimator claimed, and what is true.

    `gap` is the relative gap of its certificate. `off` is the primal of its decision values over the upper end of the
    optimum's interval, `below` the lower end over its dual, both over the optimum and at least 0: what is surely
    missing. `width` is that of the interval, `rounding` what float64 may do to an objective, over the optimum, too.
    `witnesses` is how far other libraries stay from the optimum. `failures` are the claims that do not hold.
    """

    number: int
    estimator: str
    kernel: str
    formulation: str
    C: float
    tol: float
    constructor: str
    drawn: str
    status: str
    gap: float = math.nan
    primal: float = math.nan
    dual: float = math.nan
    optimum: float = math.nan
    off: float = math.nan
    below: float = math.nan
    width: float = math.nan
    rounding: float = math.nan
    iterations: float = math.nan
    steps: int = 0
    seconds: float = math.nan
    reference_seconds: float = math.nan
    witnesses: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


@dataclass
class Campaign(Findings):
    """All runs, in tables by estimator and kernel, by reference, and the failures one by one."""

    seed: int
    runs: list[Run]
    is_extreme: bool = False

    @property
    def has_failed(self) -> bool:
        return any(run.failures for run in self.runs)

    def to_tables(self) -> Sequence[Table]:
        return [] if len(self.runs) == 1 else [self._by_kernel(), self._by_cost(), self._references()]

    def to_lines(self) -> Sequence[str]:
        failed = [run for run in self.runs if run.failures]
        seconds = sum(run.seconds + run.reference_seconds for run in self.runs if run.status != "error")
        if len(self.runs) == 1:
            return _single(self.runs[0], self.seed, self.is_extreme)
        lines = [f"{len(self.runs)} problems of seed {self.seed}, {seconds:.0f} s; {len(failed)} break a claim"]
        for run in sorted(failed, key=lambda run: (run.estimator, run.kernel, run.C)):
            lines += ["", f"{self._replay(run)}    {run.estimator}, {run.kernel}, {run.formulation}, C={run.C:.3g}"]
            lines += [f"  {failure}" for failure in run.failures]
            lines += [f"  {run.constructor}", f"  {run.drawn}; {run.status} after {run.seconds:.2f} s"]
        return lines

    def _replay(self, run: Run) -> str:
        others = f" --seed {self.seed}" * bool(self.seed) + " --extreme" * self.is_extreme
        return f"python -m studies agreement{others} --problem {run.number}"

    def _by_kernel(self) -> Table:
        worst = ("gap/tol", "off/tol", "other gap/tol", "broken claims", "beyond float64", "longest s")
        headings = ("estimator", "kernel", "runs", *(status.replace("_", " ") for status in _STATUSES), *worst)
        notes = (
            "gap/tol, off/tol: the largest relative gap claimed by a converged run, and the largest distance of its",
            "primal from the optimum, over its tolerance; other gap/tol: the largest gap of runs that ended early;",
            "beyond float64: rounding may change the objective by more than the tolerance, and that much is excused",
        )
        table = Table("Estimators against independent optima", headings, notes)
        for estimator in sorted({run.estimator for run in self.runs}):
            ours = [run for run in self.runs if run.estimator == estimator]
            kernels = sorted({run.kernel for run in ours})
            for kernel in kernels:
                _add(table, estimator, kernel, [run for run in ours if run.kernel == kernel])
            if len(kernels) > 1:
                _add(table, estimator, "all", ours)
            table.end_group()
        _add(table, "all", "all", self.runs)
        return table

    def _by_cost(self) -> Table:
        """Where estimators end early, and where they break a claim."""
        headings = [f"C < {below:g}" for below in _COSTS]
        table = Table("Runs that did not converge / that break a claim / all, by C", ("estimator", *headings))
        for estimator in sorted({run.estimator for run in self.runs if not math.isnan(run.C)}):
            cells = []
            for low, high in pairwise((0.0, *_COSTS)):
                runs = [run for run in self.runs if run.estimator == estimator and low <= run.C < high]
                early, failed = sum(run.status != "converged" for run in runs), sum(bool(run.failures) for run in runs)
                cells.append(f"{early} / {failed} / {len(runs)}" if runs else "-")
            table.add(estimator, *cells)
        return table

    def _references(self) -> Table:
        title = "The references: how far they are from the optimum at most, relative to it"
        table = Table(title, ("reference", "problems", "median", "largest", "below 1e-6"))
        found: dict[str, list[float]] = {}
        for run in self.runs:
            for name, distance in {_GENERAL: run.width, **run.witnesses}.items() if run.status != "error" else ():
                found.setdefault(name, []).append(distance)
        for name, distances in found.items():
            values = sorted(distances)
            close, middle = sum(value <= 1e-6 for value in values), values[len(values) // 2]
            table.add(name, str(len(values)), f"{middle:.1e}", f"{values[-1]:.1e}", str(close))
        return table


def _add(table: Table, estimator: str, kernel: str, runs: Sequence[Run]) -> None:
    def worst(values: Iterable[float]) -> str:
        known = [value for value in values if not math.isnan(value)]
        return f"{max(known):.2g}" if known else "-"

    converged = [run for run in runs if run.status == "converged"]
    early = [run for run in runs if run.status not in ("converged", "completed", "error")]
    table.add(
        estimator,
        kernel,
        str(len(runs)),
        *(str(sum(run.status == status for run in runs)) for status in _STATUSES),
        worst(run.gap / run.tol for run in converged),
        worst(run.off / run.tol for run in converged),
        worst(run.gap / run.tol for run in early),
        str(sum(len(run.failures) for run in runs)),
        str(sum(run.rounding > run.tol for run in runs)),
        worst(run.seconds for run in runs),
        style="bold" if "all" in (estimator, kernel) else "",
    )


def _single(run: Run, seed: int, is_extreme: bool) -> list[str]:
    figures = {name: value for name, value in asdict(run).items() if name != "failures"}
    return [
        *(f"{name:18} {value}" for name, value in figures.items()),
        *(f"broken: {said}" for said in run.failures or ["no claim"]),
        f"in Python: studies.agreement.problems.draw({seed}, {run.number}{', EXTREME' if is_extreme else ''}).fit()",
    ]
