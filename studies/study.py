"""What every study offers: a name, its options and a run, whose findings are rows, tables, lines and claims."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from studies.datasets import is_available
from studies.measure import check_interpreter
from studies.tables import Table, band, derived_of, of_rows

Say = Callable[[str], None]
"""Receives one line of progress at a time."""


# ---- What is wanted ----


@dataclass(frozen=True)
class Scope:
    """How much of a study is wanted, as the command line chose it.

    `quick` is a small form, in seconds, that only shows that the study works. `seeds` is how often everything random is
    repeated; None leaves it to the study. `datasets` are the only data sets wanted; empty means all. `solvers`,
    `repeats`, `limit` (seconds of one run) and `against` (an interpreter with another version of larank) are those of
    comparisons. `options` has the options of a single study.
    """

    quick: bool = False
    seeds: int | None = None
    datasets: Sequence[str] = ()
    solvers: Sequence[str] = ()
    repeats: int = 3
    limit: float = 3600.0
    against: str = ""
    options: argparse.Namespace = field(default_factory=argparse.Namespace)

    @property
    def once_above(self) -> float:
        """Seconds of a first run, above which a solver has no further run."""
        return float(getattr(self.options, "once_above", math.inf))

    def seed_range(self, usual: int) -> range:
        """Return the seeds asked for; by default so many, or one in the quick form."""
        return range(self.seeds or (1 if self.quick else usual))

    def present(
        self, usual: Iterable[str], quick: Iterable[str], say: Say, source: Callable[[str], str] = str
    ) -> tuple[str, ...]:
        """Return the data sets asked for, or the usual ones, that can be read; say which ones are omitted.

        Raises FileNotFoundError if none can be read.
        """
        wanted = tuple(self.datasets or (quick if self.quick else usual))
        found = tuple(name for name in wanted if is_available(source(name)))
        for name in wanted:
            if name not in found:
                say(f"{name}: absent from the data directory, left out")
        if not found:
            raise FileNotFoundError(f"none of {', '.join(wanted)} is in the data directory; set LARANK_DATA")
        return found


def count(text: str) -> int:
    """Return the number of an option that must be at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return number


# ---- What is found ----

_VERDICTS = {True: "met", False: "missed", None: "undecided"}


@dataclass(frozen=True)
class Claim:
    """A statement with the number it is about and the bounds the number is held to.

    `also` is the same number by another clock: if the two are on different sides of a bound, other work on the machine
    has decided, and the claim is undecided. A NaN is undecided, too. `bar` has the bounds in words.
    """

    what: str
    value: float
    least: float = -math.inf
    most: float = math.inf
    also: float | None = None
    bar: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the number is within its bounds; None if that is not known."""
        within = {self.least <= value <= self.most for value in (self.value, self.also) if value is not None}
        return None if math.isnan(self.value) or len(within) > 1 else within.pop()

    def __str__(self) -> str:
        why = " (the two disagree; run it on a quiet machine)" if self.holds is None and self.also is not None else ""
        return f"{self.what}; bar {self.bar or self._bounds()}, {_VERDICTS[self.holds]}{why}"

    def _bounds(self) -> str:
        finite = [bound for bound in (self.least, self.most) if math.isfinite(bound)]
        return f"{finite[0]:g}" if len(finite) == 1 else band(self.least, self.most)

    def to_dict(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "holds": self.holds, "text": str(self)}


def is_so(what: str, holds: bool | None, bar: str) -> Claim:
    """Return a claim that is not about one number; None if it cannot be decided."""
    return Claim(what, math.nan if holds is None else float(holds), least=1.0, bar=bar)


@dataclass
class Findings:
    """What a study found: rows and other numbers by their name in the JSON file, tables, lines and claims.

    Numbers take the place of rows of the same name there. A subclass has fields of its own, which are also written, and
    makes its tables from them.
    """

    rows: dict[str, list[Any]] = field(default_factory=dict, kw_only=True)
    others: dict[str, Any] = field(default_factory=dict, kw_only=True)
    tables: list[Table] = field(default_factory=list, kw_only=True)
    lines: list[str] = field(default_factory=list, kw_only=True)
    claims: list[Claim] = field(default_factory=list, kw_only=True)

    def __post_init__(self) -> None:
        self.rows = defaultdict(list, self.rows)

    def add(self, **rows: Iterable[Any]) -> None:
        for name, more in rows.items():
            self.rows[name] += more

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, as JSON can hold them."""
        own = [each.name for each in dataclasses.fields(self) if each.name not in _SHARED]
        rows = {name: found for name, found in self.rows.items() if found}
        numbers: dict[str, Any] = plain({**{name: getattr(self, name) for name in own}, **rows, **self.others})
        return numbers

    def to_tables(self) -> Sequence[Table]:
        return [*self.tables, of_rows("This version over the one before", self.rows["before"])]

    def to_claims(self) -> Sequence[Claim]:
        return [*(row.claim for row in self.rows["before"]), *self.claims]

    def to_lines(self) -> Sequence[str]:
        """Return what is said below the tables: what gave no figures, the claims, and what the figures are."""
        unfinished = [f"{gone.problem}: {gone.solver}: {gone.reason}" for gone in self.rows["unfinished"]]
        return [*unfinished, *map(str, self.to_claims()), *self.lines]

    @property
    def has_failed(self) -> bool:
        """Whether something that must hold does not; the exit status is then 1."""
        return False


_SHARED = {each.name for each in dataclasses.fields(Findings)}


def plain(value: Any) -> Any:
    """Return the value as JSON can hold it: rows and derived columns by name, None for NaN and infinite numbers."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
        return fields | {name: plain(getattr(value, name)) for name in derived_of(type(value))}
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(inner) for inner in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class Study:
    """One study.

    `title` says in a line what it shows. `run(scope, say)` returns `Findings`. `datasets` are those that may be chosen,
    `default_datasets` and `quick_datasets` those of a scope for which none was chosen. `draw(findings, figure)` draws
    on a matplotlib figure. `libraries` are packages whose versions are recorded in addition to the usual ones.

    `has_seeds` adds the option `--seeds`; `solvers`, if there is a choice, `--solvers` and `--against`; `limit`, in
    seconds, `--limit` and `--repeats`. `options` are the study's own, by name, as `add_argument` takes them.
    """

    name: str
    title: str
    run: Callable[[Scope, Say], Findings]
    datasets: tuple[str, ...] = ()
    default_datasets: tuple[str, ...] = ()
    quick_datasets: tuple[str, ...] = ()
    draw: Callable[[Any, Any], None] | None = None
    libraries: tuple[str, ...] = ()
    has_seeds: bool = False
    solvers: Mapping[str, Any] = field(default_factory=dict)
    limit: float | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        for name, given in {**self._shared_options(), **self.options}.items():
            parser.add_argument(*name.split(), **given)

    def _shared_options(self) -> dict[str, dict[str, Any]]:
        options: dict[str, dict[str, Any]] = {}
        if self.datasets:
            only = f"only these of: {', '.join(self.datasets)}"
            options["--datasets --problems"] = {"nargs": "+", "default": (), "metavar": "NAME", "help": only}
        if self.has_seeds:
            options["--seeds"] = {"type": count, "help": "repeat everything random so often; else the study decides"}
        if names := tuple(self.solvers):
            options["--solvers"] = {"nargs": "+", "choices": names, "default": names, "metavar": "NAME"}
            other = "an interpreter in which another version of larank is installed, to be run beside this one"
            options["--against"] = {"default": "", "metavar": "PYTHON", "help": other}
        if self.limit is not None:
            options["--repeats"] = {"type": count, "help": "runs of each kind, the best counts; 3, or 1 if quick"}
            given_up = "after which a single run is given up"
            options["--limit"] = {"type": float, "default": self.limit, "metavar": "SECONDS", "help": given_up}
        return options

    def scope(self, chosen: argparse.Namespace) -> Scope:
        """Return what was chosen; raises ValueError if that cannot be."""
        against = getattr(chosen, "against", "")
        if against:
            check_interpreter(against)
        limit = {"limit": chosen.limit} if self.limit is not None else {}
        return Scope(
            quick=chosen.quick,
            seeds=getattr(chosen, "seeds", None),
            datasets=self._datasets(chosen) or (self.quick_datasets if chosen.quick else self.default_datasets),
            solvers=getattr(chosen, "solvers", ()),
            repeats=getattr(chosen, "repeats", None) or (1 if chosen.quick else 3),
            against=against,
            options=chosen,
            **limit,
        )

    def _datasets(self, chosen: argparse.Namespace) -> tuple[str, ...]:
        """Return the names given, separated by spaces or commas."""
        names = tuple(name.strip() for word in getattr(chosen, "datasets", ()) for name in word.split(","))
        for name in names:
            if name not in self.datasets:
                raise ValueError(f"{self.name} has no data set '{name}'; it has: {', '.join(self.datasets)}")
        return names
