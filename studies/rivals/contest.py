"""What comparisons with rivals have in common: options, turns, bars, and this version beside the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from studies.measure import Measurement, take_turns
from studies.rivals.libraries import usable
from studies.rivals.libraries.solver import Solver
from studies.study import Claim, Findings, Say, Scope
from studies.tables import Columns, column, columns_of

_ONCE = "a solver whose first run takes more has no other"
ONCE_ABOVE: dict[str, Any] = {"type": float, "default": 60.0, "metavar": "SECONDS", "help": _ONCE}


def megabytes(*usual: float) -> dict[str, Any]:
    """Return an option for several sizes."""
    words = " and ".join(f"{size:g}" for size in usual)
    return {"type": float, "nargs": "+", "default": usual, "metavar": "MB", "help": f"1e6 bytes each; {words}"}


AS_FAST_AS_BEFORE = 1.03
"""What training may take at most, of the time of the version before."""


# ---- Entrants ----


@dataclass(frozen=True)
class Entrant:
    """A solver, the form of the data it is given where there are several, and the interpreter if it is another."""

    solver: str
    form: str = ""
    python: str = ""

    @property
    def name(self) -> str:
        return f"{self.solver} before" if self.python else self.solver

    def __str__(self) -> str:
        return f"{self.name} {self.form}".rstrip()


def entrants(scope: Scope, solvers: Mapping[str, Solver], say: Say) -> list[Entrant]:
    """Those whose library is installed, each of ours followed by its version before, where there is one."""
    found = []
    for name in usable(scope.solvers, solvers, say):
        found.append(Entrant(name))
        if scope.against and solvers[name].is_ours:
            found.append(Entrant(name, python=scope.against))
    return found


# ---- Runs ----


@dataclass(frozen=True)
class Unfinished:
    """A run that gave no figures, and why."""

    problem: str
    solver: str
    reason: str


Key = TypeVar("Key")
Run = TypeVar("Run", bound=Measurement)


def runs_in_turns(
    found: Findings,
    problem: str,
    measures: Mapping[Key, Callable[[], Run]],
    scope: Scope,
    say: Say,
    described: Callable[[Run], str] = lambda run: f"{run.wall:.2f} s",
) -> dict[Key, list[Run]]:
    """Return all runs of each, and add to `found` what failed and the ratios of this version to an older one.

    One that is slow, fails or exceeds the limit has no further turn.
    """

    def tell(key: Key, run: Run | str) -> None:
        say(f"{problem}: {key}: {run if isinstance(run, str) else described(run)}")

    def is_slow(run: Run) -> bool:
        return run.wall + getattr(run, "predict", 0.0) > scope.once_above

    runs, failed = take_turns(measures, scope.repeats, tell, is_slow)
    gone = [Unfinished(problem, str(key), reason) for key, reason in failed.items()]
    found.add(unfinished=gone, before=beside_before(problem, runs))
    return runs


def fastest(runs: Sequence[Run]) -> Run:
    return min(runs, key=lambda run: run.wall)


def least(runs: Sequence[Any], *names: str) -> Any:
    """Return the least of all runs of this figure, or of each of several; None without a run."""
    found = [min((getattr(run, name) for run in runs), default=None) for name in names]
    return found if len(names) > 1 else found[0]


def taken(run: Any, *names: str) -> dict[str, Any]:
    """Return these figures of a run, for a row that has them by the same names."""
    return {name: getattr(run, name) for name in names}


def chosen(kind: type, *headings: str) -> Columns:
    """Return those of the columns that a row declares, in this order."""
    known = columns_of(kind)
    return {heading: known[heading] for heading in headings}


Bars = Mapping[tuple[str, str], float]
"""What training may take at most, as a share of a rival's time in the same run; by problem and rival."""


def judge(solver: str, ratios: Mapping[str, Mapping[str, float]], bars: Bars) -> list[Claim]:
    """Return a claim for each of the bars whose ratio, by problem and rival, is known."""
    return [
        Claim(f"{problem}: {solver} takes {ratio:.3f} of {rival}'s training time", ratio, most=bar)
        for (problem, rival), bar in bars.items()
        if (ratio := ratios.get(problem, {}).get(rival)) is not None
    ]


# ---- This version and the one before ----


@dataclass(frozen=True)
class Before:
    """What this version takes, over what the one before takes: least seconds of training, of the test, and peak memory.

    `differs` names the figures of the outcome, such as the error, that are not those of the version before.
    """

    problem: str = column("problem")
    solver: str = column("solver")
    runs: int = column("runs")
    wall: float = column("train", ".3f")
    cpu: float = column("train CPU", ".3f")
    test: float | None = column("test", ".3f")
    peak: float = column("peak memory", ".3f")
    differs: Sequence[str] = column("same outcome", lambda names: "no: " + ", ".join(names) if names else "yes")

    @property
    def claim(self) -> Claim:
        said = f"{self.problem}: {self.solver} takes {self.wall:.3f} of the time before, {self.cpu:.3f} in CPU seconds"
        return Claim(said, self.wall, most=AS_FAST_AS_BEFORE, also=self.cpu)


_OUTCOMES = ("error", "f1", "accuracy", "primal", "dual", "support_patterns", "support_vectors", "labels")


def beside_before(problem: str, found: Mapping[Any, Sequence[Measurement]]) -> list[Before]:
    """A row for each entrant that was run in both versions."""
    olds = [entrant for entrant in found if isinstance(entrant, Entrant) and entrant.python]
    pairs = [(replace(entrant, python=""), found[entrant]) for entrant in olds]
    return [_before(problem, new, found[new], old) for new, old in pairs if found.get(new)]


def _before(problem: str, entrant: Entrant, new: Sequence[Measurement], old: Sequence[Measurement]) -> Before:
    def ratio(name: str) -> float | None:
        ours, theirs = least(new, name), least(old, name)
        return ours / theirs if theirs else None

    test = next((name for name in ("predict", "tag") if hasattr(new[0], name)), None)
    differs = [name for name in _OUTCOMES if hasattr(new[0], name) and getattr(new[0], name) != getattr(old[0], name)]
    wall, cpu, peak = (ratio(name) or 0.0 for name in ("wall", "cpu", "peak"))
    runs, tested = min(len(new), len(old)), ratio(test) if test else None
    return Before(problem, str(entrant), runs, wall, cpu, tested, peak, differs)
