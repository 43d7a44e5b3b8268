"""Checks of constructor parameters, and the one table of which parameter acts with which.

An estimator calls `check(self)`: every parameter is looked up in `CHECKS`, every pair in `RULES`. The command line uses
the same table, and spells the parameters as options. This module is below the estimators, so it knows them by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from numbers import Integral, Real
from typing import Any

__all__ = [
    "CHECKS",
    "COOLING",
    "OPERATIONS",
    "ROW_SOLVERS",
    "RULES",
    "OneOf",
    "Rule",
    "Spelling",
    "check",
    "check_value",
    "complaints",
    "costs_of_path",
    "defaults",
    "finite",
    "flag",
    "jobs",
    "one_of",
    "positive",
    "stopping",
    "verbosity",
    "whole_number",
]

# ---- Checks of one value: they take a name and the value, and return it or raise ----


def positive(name: str, value: Any, *, zero: bool = False, least: float = 0.0) -> float:
    """A finite real number above zero, or from zero on with `zero`; not below `least`."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        wanted = "a finite number >= 0" if zero else "a finite number > 0"
        raise ValueError(f"{name} must be {wanted}, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least:g}, for numbers are rounded; got {value!r}")
    return float(value)


def finite(name: str, value: Any) -> float:
    """A finite real number."""
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def whole_number(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """An integer from `at_least` on, up to `at_most`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"{name} must be an integer >= {at_least}, got {value!r}")
    if at_most is not None and int(value) > at_most:
        raise ValueError(f"{name} must be an integer from {at_least} to {at_most}, got {value!r}")
    return int(value)


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of the named choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")
    return value


def flag(name: str, value: Any) -> bool:
    """True or False (NumPy's too)."""
    if not (isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def jobs(value: Any) -> None:
    """`n_jobs`: None or an integer other than 0."""
    if value is not None and (not isinstance(value, Integral) or value == 0):
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {value!r}")


def verbosity(value: Any) -> None:
    """`verbose`: True, False or an integer from 0 on."""
    if not isinstance(value, bool):
        whole_number("verbose", value, at_least=0)


def stopping(*, stop: str, epochs: int, tol: float | None, certify: bool) -> None:
    """Parameters that act with `stop="gap"` only, or without it only."""
    if stop == "epochs" and tol is not None:
        raise ValueError(f"tol acts with stop='gap' only; got tol={tol!r} with stop='epochs'")
    if stop == "gap" and not certify:
        raise ValueError("certify=False acts with stop='epochs' only: stop='gap' computes the gap from scratch")
    if stop == "gap" and epochs != 1:
        raise ValueError(f"epochs acts with stop='epochs' only; got epochs={epochs!r} with stop='gap'")


def costs_of_path(Cs: Iterable[float]) -> list[float]:
    """The values of `C` that a path is trained for, at least one."""
    try:
        Cs = list(Cs)
    except TypeError:
        raise ValueError(f"Cs must be a sequence of numbers, got {Cs!r}") from None
    if not Cs:
        raise ValueError("Cs must hold at least one value, got none")
    return [positive(f"Cs[{number}]", C) for number, C in enumerate(Cs)]


def _whole_number_or_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        whole_number(name, value, at_least=0)


def _not_zero(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or value == 0:
        raise ValueError(f"{name} must be None or an integer other than 0, got {value!r}")


def _gamma(name: str, value: Any) -> None:
    try:
        _ = value if isinstance(value, str) and value in ("scale", "auto") else positive(name, value)
    except ValueError:
        raise ValueError(f"{name} must be 'scale', 'auto' or a finite number > 0, got {value!r}") from None


OPERATIONS = ("new", "old", "optimize")
ROW_SOLVERS = ("fixed-point", "exact")
COOLING = ("none", "exponential", "linear", "logarithmic")


def _operations(name: str, value: Any) -> None:
    if not isinstance(value, Collection):
        raise ValueError(f"{name} must be a collection of {OPERATIONS}, got {value!r}")
    names = [value] if isinstance(value, str) else list(value)
    for operation in names:
        one_of(name, operation, OPERATIONS)
    if "new" not in names:
        raise ValueError(f"{name} must contain 'new', got {value!r}")


@dataclass(frozen=True)
class OneOf:
    """One of the named choices, or an object of the class named by `object_of`, which has parameters of its own."""

    choices: tuple[str, ...]
    object_of: str = ""

    def __call__(self, name: str, value: Any) -> None:
        """Raise if the value is none of them."""
        if self.object_of and self.object_of in _names(type(value)):
            check(value)
        elif self.object_of and value not in self.choices:
            choices = ", ".join(map(repr, self.choices))
            raise ValueError(f"{name} must be one of {choices} or a {self.object_of}(...), got {value!r}")
        else:
            one_of(name, value, self.choices)


_ONLINE = ("larank", "perceptron", "passive-aggressive")
_CUTTING_PLANES = ("svmstruct", "svmstruct-1slack")

_counted = partial(whole_number, at_least=1)

Check = Callable[[str, Any], Any]

# A parameter may also be None where that is its default. Parameters that are not here need the data, or what the
# caller knows of kernels, strategies or templates.
CHECKS: Mapping[str, Check] = {
    "C": positive,
    "active_set": flag,
    "algorithm": OneOf(("process-reprocess", "simple")),
    "average": flag,
    "batch_size": _counted,
    "budget": _counted,
    "cache": flag,
    "certify": flag,
    "coef0": finite,
    "cooling": flag,
    "decision": OneOf(("last", "average")),
    "degree": _counted,
    "delta_max": positive,
    "epochs": _counted,
    "epsilon": positive,
    "finish": flag,
    "fit_intercept": flag,
    "formulation": OneOf(("crammer-singer", "weston-watkins")),
    "gamma": _gamma,
    "history": OneOf(("true", "predicted")),
    "inference": OneOf(("exact", "greedy")),
    "init": OneOf(("larank", "zero")),
    "intercept_scaling": positive,
    "label_budget": _counted,
    "margin": partial(positive, zero=True),
    "max_iter": _counted,
    "memory_limit": positive,
    "n_jobs": _not_zero,
    "n_reprocess": partial(whole_number, at_least=0),
    "n_steps": _counted,
    "operations": _operations,
    "order": partial(whole_number, at_least=0, at_most=255),
    "row_solver": OneOf(ROW_SOLVERS),
    "sample_size": _counted,
    "schedule": OneOf(("adaptive", "fixed")),
    "shrinking": flag,
    "shuffle": flag,
    "stop": OneOf(("epochs", "gap")),
    "tau": partial(positive, least=1e-12),
    "time_limit": positive,
    "tol": positive,
    "verbose": _whole_number_or_flag,
    "warm_start": flag,
}
_CHECKS_OF: Mapping[tuple[str, str], Check] = {
    ("LinearMulticlassSVC", "formulation"): OneOf(("crammer-singer", "weston-watkins", "one-vs-rest")),
    ("LinearMulticlassSVC", "stop"): OneOf(("gap", "violation")),
    ("MulticlassSVC", "solver"): OneOf(("active-set", "published"), object_of="Published"),
    ("Published", "cooling"): OneOf(COOLING),
    ("Published", "selection"): OneOf(("cycle", "kkt")),
    ("SequenceTagger", "solver"): OneOf(_ONLINE),
    ("StructuredSVC", "schedule"): OneOf(("fixed", "adaptive")),
    ("StructuredSVC", "solver"): OneOf((*_ONLINE, *_CUTTING_PLANES)),
    ("StructuredSVC", "stop"): OneOf(("epochs", "gap", "violation")),
}


# ---- Which parameter acts with which ----

_CHOSEN = object()


@dataclass(frozen=True)
class Rule:
    """A parameter that acts with some values of others only, or not with some.

    Parameters
    ----------
    parameter : str
        Whose rule it is. It holds for every estimator that has all the parameters it names.
    value : object or predicate, optional
        Which of its values; any but the default if not given.
    acts_with : mapping of str to tuple, optional
        Other parameters and the values they must have, all of them.
    not_with : mapping of str to tuple, optional
        Other parameters and the values they must not have, all of them together.
    instead : str, optional
        What the parameter must be in the case of `not_with`.
    because : str, optional
        Why, where it is not plain.
    of : tuple of str, optional
        The estimators it holds for; all if not given.
    where_given : bool, default=False
        Whether the rule is for the command line only, where what was given is known. An estimator ignores the
        parameter then: scikit-learn's checks set `max_iter` of everything that has it.
    """

    parameter: str
    value: Any = _CHOSEN
    acts_with: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    not_with: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    instead: str = ""
    because: str = ""
    of: tuple[str, ...] = ()
    where_given: bool = False

    def is_for(self, kind: type, names: Collection[str]) -> bool:
        """Whether the rule holds for an estimator with parameters of these names."""
        named = {self.parameter, *self.acts_with, *self.not_with}
        return named <= set(names) and (not self.of or not set(self.of).isdisjoint(_names(kind)))

    def is_broken(self, values: Mapping[str, Any], chosen: Collection[str]) -> bool:
        """Whether the values of the parameters are against it; `chosen` are those that are not left at the default."""
        value = values[self.parameter]
        if self.value is _CHOSEN:
            concerned = self.parameter in chosen
        else:
            concerned = self.value(value) if callable(self.value) else _is_among((self.value,), value)
        if not concerned:
            return False
        if self.not_with:
            return all(_is_among(refused, values[name]) for name, refused in self.not_with.items())
        return not all(_is_among(wanted, values[name]) for name, wanted in self.acts_with.items())

    def complaint(self, kind: type, values: Mapping[str, Any], spelling: Spelling) -> str:
        """What is wrong, and what would do."""
        name, value = self.parameter, values[self.parameter]
        others = " and ".join(spelling.given(other, values[other]) for other in (self.acts_with or self.not_with))
        because = f": {self.because}" if self.because else ""
        if self.instead:
            return f"{spelling.name(name)} must be {self.instead} with {others}, got {spelling.value(value)}{because}"
        got = spelling.given(name, value)
        if self.not_with:
            return f"{spelling.name(name)} cannot act with {others}{because}; got {got}"
        subject = got if self.value is not _CHOSEN else spelling.name(name)
        wanted = " and ".join(
            spelling.alternatives(other, _known(kind, other, able)) for other, able in self.acts_with.items()
        )
        return f"{subject} acts with {wanted} only{because}; got {got} with {others}"


class Spelling:
    """How Python writes parameters."""

    def name(self, parameter: str) -> str:
        """The parameter."""
        return parameter

    def value(self, value: Any) -> str:
        """A value of it."""
        return repr(value)

    def given(self, parameter: str, value: Any) -> str:
        """The parameter with its value."""
        return f"{parameter}={value!r}"

    def alternatives(self, parameter: str, values: Sequence[Any]) -> str:
        """The parameter with each of the values that would do."""
        return f"{self.given(parameter, values[0])}{''.join(f' or {self.value(value)}' for value in values[1:])}"


def _looks_at_scores(selection: Any) -> bool:
    return bool(getattr(selection, "needs_scores", selection != "random"))


_STOPS_BY_PROOF = {"stop": ("gap", "violation")}
_SOLVERS_WITH_PROOF = {"solver": ("active-set", "larank", *_CUTTING_PLANES)}

RULES: tuple[Rule, ...] = (
    # What ends training.
    Rule("epochs", acts_with={"solver": _ONLINE}),
    Rule("epochs", acts_with={"stop": ("epochs",)}),
    Rule("tol", acts_with=_SOLVERS_WITH_PROOF),
    Rule("tol", acts_with=_STOPS_BY_PROOF),
    Rule(
        "tol",
        value=lambda tol: tol is None or tol >= 1,
        not_with={"stop": ("gap",)},
        instead="a number above 0 and below 1",
        of=("HullerClassifier",),
    ),
    Rule("max_iter", acts_with=_SOLVERS_WITH_PROOF, of=("StructuredSVC",)),
    Rule("max_iter", acts_with=_STOPS_BY_PROOF, of=("StructuredSVC",)),
    Rule("max_iter", acts_with=_STOPS_BY_PROOF, where_given=True),
    Rule("stop", value="epochs", acts_with={"solver": _ONLINE}),
    Rule("stop", value="gap", acts_with=_SOLVERS_WITH_PROOF),
    Rule("stop", value="violation", acts_with={"solver": _CUTTING_PLANES}),
    Rule("certify", acts_with={"solver": ("larank",)}, of=("StructuredSVC",)),
    Rule(
        "certify",
        value=False,
        acts_with={"stop": ("epochs",)},
        because="the gap is computed from scratch where it ends training",
    ),
    Rule("finish", value=False, acts_with={"stop": ("epochs",)}, because="a gap is looked at after finishing"),
    # Which examples come, and how often.
    Rule("label_budget", acts_with={"stop": ("epochs",), "epochs": (1,)}, because="more passes see all labels"),
    Rule("sample_size", not_with={"selection": ("random",)}),
    Rule(
        "selection",
        value=_looks_at_scores,
        not_with={"kernel": ("linear",)},
        instead="'random'",
        of=("LaRankClassifier",),
    ),
    Rule("shuffle", acts_with={"solver": (*_ONLINE, "svmstruct")}, of=("StructuredSVC",)),
    Rule("history", value="predicted", acts_with={"inference": ("greedy",), "stop": ("epochs",)}),
    # How the solvers work.
    Rule("C", acts_with={"solver": ("larank", *_CUTTING_PLANES, "passive-aggressive")}, of=("StructuredSVC",)),
    Rule("schedule", acts_with={"solver": ("larank",)}),
    Rule("n_reprocess", acts_with={"solver": ("larank",)}),
    Rule("n_reprocess", acts_with={"schedule": ("fixed",)}),
    Rule("average", acts_with={"solver": ("perceptron", "passive-aggressive")}),
    Rule(
        "label_costs",
        acts_with={"solver": ("larank", "passive-aggressive")},
        because="the perceptron knows right and wrong",
    ),
    Rule(
        "budget",
        acts_with={"decision": ("last",)},
        because="support patterns that have left would stay in the average",
    ),
    Rule("init", acts_with={"solver": ("active-set",)}),
    Rule("shrinking", acts_with={"solver": ("active-set",)}),
    Rule("formulation", value="weston-watkins", acts_with={"solver": ("active-set",)}),
    # The switches of `Published`.
    Rule("active_set", value=True, not_with={"selection": ("cycle",)}, instead="False", because="it takes all in turn"),
    Rule("cooling", value=lambda cooling: cooling != "none", not_with={"active_set": (False,)}, instead="'none'"),
    Rule(
        "epsilon",
        value=lambda epsilon: epsilon >= 0.999,  # epsilon_0 of [mcsvm] section 7
        not_with={"cooling": COOLING[1:]},
        instead="below 0.999",
        because="cooling begins there; cooling='none' would do",
    ),
    Rule(
        "epsilon",
        not_with={"selection": ("cycle",), "row_solver": ("exact",)},
        instead="left at 0.1",
        because="they do not use it",
    ),
)


# ---- What estimators and the command line call ----


def check(model: Any, **resolved: Any) -> None:
    """Raise a ValueError for a parameter that is not accepted, or cannot act beside the others.

    Parameters
    ----------
    model : object
        An estimator, or a value that carries parameters of its own; its constructor has stored them as they are.
    **resolved
        What a parameter that is None stands for.
    """
    kind, usual = type(model), defaults(type(model))
    values = {name: getattr(model, name) for name in usual}
    for name, value in values.items():
        check_value(kind, name, value)
    chosen = [name for name in usual if not _is_among((usual[name],), values[name])]
    values.update(resolved)
    for complaint in complaints(kind, values, chosen):
        raise ValueError(complaint)


def check_value(kind: type, name: str, value: Any, *, called: str | None = None) -> None:
    """Raise a ValueError if an estimator of this kind does not accept the value; `called` is the name in the error."""
    if value is None and defaults(kind)[name] is None:
        return
    found = _check_of(kind, name)
    if found is not None:
        found(name if called is None else called, value)


def complaints(
    kind: type,
    values: Mapping[str, Any],
    chosen: Collection[str],
    spelling: Spelling | None = None,
    rules: Iterable[Rule] = (),
) -> Iterator[str]:
    """What is wrong with values of parameters that are fine each by itself.

    Parameters
    ----------
    kind : type
        The estimator.
    values : mapping
        All of its parameters.
    chosen : collection of str
        Those that differ from the default or, on the command line, that were given.
    spelling : Spelling, optional
        How parameters are written; as in Python if not given. With one, rules for the command line count as well.
    rules : iterable of Rule, optional
        More than those of the table.
    """
    for rule in (*RULES, *rules):
        if rule.where_given and spelling is None:
            continue
        if rule.is_for(kind, values) and rule.is_broken(values, chosen):
            yield rule.complaint(kind, values, spelling or Spelling())


def defaults(kind: type) -> dict[str, Any]:
    """The parameters of a constructor, with their defaults."""
    return {name: parameter.default for name, parameter in signature(kind).parameters.items()}


def _names(kind: type) -> tuple[str, ...]:
    return tuple(each.__name__ for each in kind.__mro__)


def _is_among(values: tuple[Any, ...], value: Any) -> bool:
    try:
        return value in values
    except ValueError:  # an array, which has no one truth
        return False


def _check_of(kind: type, name: str) -> Check | None:
    of_kind = (_CHECKS_OF.get((each, name)) for each in _names(kind))
    return next((found for found in of_kind if found is not None), CHECKS.get(name))


def _known(kind: type, name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Those of the values that an estimator of this kind has."""
    found = _check_of(kind, name)
    return tuple(value for value in values if value in found.choices) if isinstance(found, OneOf) else values
