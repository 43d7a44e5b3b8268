"""What comparisons with rivals have in common: options, turns, bars, and this version beside the one before."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from studies.measure import Measurement, check_interpreter, take_turns
from studies.rivals.libraries import usable
from studies.rivals.libraries.solver import Solver
from studies.study import Outcome, Say, Study
from studies.tables import Columns, Table, figure, of_rows

ONCE_ABOVE: dict[str, Any] = {
    "type": float,
    "default": 60.0,
    "metavar": "SECONDS",
    "help": "a solver whose first run takes more has no other",
}
AS_FAST_AS_BEFORE = 1.03
"""What training may take at most, of the time of the version before."""


# ---- What is chosen ----


@dataclass(frozen=True)
class Settings:
    """What the command line chose; `against` is an interpreter with another version of larank, `options` are others."""

    problems: Sequence[str]
    solvers: Sequence[str] = ()
    repeats: int = 3
    limit: float = 3600.0
    against: str = ""
    quick: bool = False
    once_above: float = math.inf
    options: argparse.Namespace = field(default_factory=argparse.Namespace)


@dataclass(frozen=True)
class Comparison(Study):
    """A study whose every run is a process of its own.

    `solvers` are those that may be chosen, if there is a choice; `options` are its own, by name, as `add_argument`
    takes them.
    """

    default_datasets: tuple[str, ...] = ()
    quick_datasets: tuple[str, ...] = ()
    solvers: Mapping[str, Solver] = field(default_factory=dict)
    limit: float = 3600.0
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        if self.solvers:
            parser.add_argument(
                "--solvers", nargs="+", choices=self.solvers, default=tuple(self.solvers), metavar="NAME"
            )
            parser.add_argument(
                "--against",
                default="",
                metavar="PYTHON",
                help="an interpreter in which another version of larank is installed, to be run beside this one",
            )
        parser.add_argument("--repeats", type=int, help="runs of each kind, the best counts; 3, or 1 if quick")
        parser.add_argument(
            "--limit", type=float, default=self.limit, metavar="SECONDS", help="after which a single run is given up"
        )
        for name, given in self.options.items():
            parser.add_argument(name, **given)

    def scope(self, arguments: argparse.Namespace) -> Settings:
        repeats = arguments.repeats if arguments.repeats is not None else 1 if arguments.quick else 3
        if repeats < 1:
            raise ValueError(f"--repeats {repeats}: must be at least 1")
        against = getattr(arguments, "against", "")
        if against:
            check_interpreter(against)
        default = self.quick_datasets if arguments.quick else self.default_datasets
        return Settings(
            problems=self.chosen_datasets(arguments) or default,
            solvers=getattr(arguments, "solvers", ()),
            repeats=repeats,
            limit=arguments.limit,
            against=against,
            quick=arguments.quick,
            once_above=getattr(arguments, "once_above", math.inf),
            options=arguments,
        )


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


def entrants(settings: Settings, solvers: Mapping[str, Solver], say: Say) -> list[Entrant]:
    """Those whose library is installed, each of ours followed by its version before, where there is one."""
    found = []
    for name in usable(settings.solvers, solvers, say):
        found.append(Entrant(name))
        if settings.against and solvers[name].is_ours:
            found.append(Entrant(name, python=settings.against))
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
    problem: str,
    measures: Mapping[Key, Callable[[], Run]],
    settings: Settings,
    say: Say,
    described: Callable[[Run], str] = lambda run: f"{run.wall:.2f} s",
) -> tuple[dict[Key, list[Run]], list[Unfinished]]:
    """All runs of each, and what failed; one that is slow, fails or exceeds the limit has no further turn."""

    def tell(key: Key, found: Run | str) -> None:
        say(f"{problem}: {key}: {found if isinstance(found, str) else described(found)}")

    def is_slow(run: Run) -> bool:
        return run.wall + getattr(run, "predict", 0.0) > settings.once_above

    turns = take_turns(measures, settings.repeats, tell, is_slow)
    return turns.found, [Unfinished(problem, str(key), reason) for key, reason in turns.failed.items()]


def fastest(runs: Sequence[Run]) -> Run:
    """The run with the shortest training."""
    return min(runs, key=lambda run: run.wall)


# ---- What is found ----


@dataclass
class Findings(Outcome):
    """Tables, lines below them, and the rows and others they are about, by their name in the JSON file."""

    rows: dict[str, list[Any]] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def add(self, **rows: Sequence[Any]) -> None:
        """More rows of these names."""
        for name, more in rows.items():
            self.rows.setdefault(name, []).extend(more)

    def to_dict(self) -> dict[str, Any]:
        return {**{name: [asdict(row) for row in rows] for name, rows in self.rows.items()}, **self.others}

    def to_tables(self) -> list[Table]:
        before = of_rows("This version over the one before", BEFORE_COLUMNS, self.rows.get("before", []))
        return [*self.tables, before]

    def to_lines(self) -> list[str]:
        unfinished = [f"{gone.problem}: {gone.solver}: {gone.reason}" for gone in self.rows.get("unfinished", [])]
        return [*unfinished, *(row.judged() for row in self.rows.get("before", [])), *self.lines]


# ---- Bars ----

Bars = Mapping[tuple[str, str], float]
"""What training may take at most, as a share of a rival's time in the same run; by problem and rival."""


def judge(solver: str, ratios: Mapping[str, Mapping[str, float]], bars: Bars) -> list[str]:
    """How its ratios, by problem and rival, stand to the bars: a line for each that can be told."""
    lines = []
    for (problem, rival), bar in bars.items():
        ratio = ratios.get(problem, {}).get(rival)
        if ratio is not None:
            said = f"{problem}: {solver} takes {ratio:.3f} of {rival}'s training time"
            lines.append(f"{said}; bar {bar:g}, {met(ratio <= bar)}")
    return lines


def met(holds: bool) -> str:
    return "met" if holds else "missed"


def met_in_time(wall: float, cpu: float, bar: float) -> str:
    """By wall seconds; where CPU seconds say otherwise, other work on the machine has decided, and nothing is told."""
    agree = (wall <= bar) == (cpu <= bar)
    return met(wall <= bar) if agree else "undecided (the two disagree; run it on a quiet machine)"


# ---- This version and the one before ----


@dataclass(frozen=True)
class Before:
    """What this version takes, over what the one before takes: least seconds of training, of the test, and peak memory.

    `differs` names the figures of the outcome, such as the error, that are not those of the version before.
    """

    problem: str
    solver: str
    runs: int
    wall: float
    cpu: float
    test: float | None
    peak: float
    differs: Sequence[str]

    def judged(self) -> str:
        """How it stands to the bar, in a line."""
        said = f"{self.problem}: {self.solver} takes {self.wall:.3f} of the time before, {self.cpu:.3f} in CPU seconds"
        return f"{said}; bar {AS_FAST_AS_BEFORE:g}, {met_in_time(self.wall, self.cpu, AS_FAST_AS_BEFORE)}"


BEFORE_COLUMNS: Columns = {
    "problem": figure("problem"),
    "solver": figure("solver"),
    "runs": figure("runs"),
    "train": figure("wall", ".3f"),
    "train CPU": figure("cpu", ".3f"),
    "test": figure("test", ".3f"),
    "peak memory": figure("peak", ".3f"),
    "same outcome": lambda row: "no: " + ", ".join(row.differs) if row.differs else "yes",
}
_OUTCOMES = ("error", "f1", "accuracy", "primal", "dual", "support_patterns", "support_vectors", "labels")


def beside_before(problem: str, found: Mapping[Entrant, Sequence[Measurement]]) -> list[Before]:
    """A row for each entrant that was run in both versions."""
    rows = []
    for entrant, old in found.items():
        new = found.get(replace(entrant, python=""))
        if entrant.python and new:
            rows.append(_before(problem, replace(entrant, python=""), new, old))
    return rows


def _before(problem: str, entrant: Entrant, new: Sequence[Measurement], old: Sequence[Measurement]) -> Before:
    def ratio(name: str) -> float | None:
        ours, theirs = (min(getattr(run, name) for run in runs) for runs in (new, old))
        return ours / theirs if theirs else None

    test = next((name for name in ("predict", "tag") if hasattr(new[0], name)), None)
    differs = [name for name in _OUTCOMES if hasattr(new[0], name) and getattr(new[0], name) != getattr(old[0], name)]
    return Before(
        problem=problem,
        solver=str(entrant),
        runs=min(len(new), len(old)),
        wall=ratio("wall") or 0.0,
        cpu=ratio("cpu") or 0.0,
        test=ratio(test) if test else None,
        peak=ratio("peak") or 0.0,
        differs=differs,
    )
