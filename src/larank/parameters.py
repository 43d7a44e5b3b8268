"""Checks of constructor parameters, and the one table of which parameter acts with which.

An estimator calls `check(self)`: every parameter is looked up in `_CHECKS`, and `RULES` say what acts with what. The
command line goes through the same table, and spells parameters as options. This module is below the estimators, so it
knows them by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from numbers import Integral, Real
from typing import Any

_LARGEST = 2**62  # that the core can count to

# ---- Checks of one value: they take a name and the value, and return it or raise ----


def _as_float(value: Any) -> float:
    """The value, or NaN where it is no real number, or one too large for a float."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def positive(name: str, value: Any, *, zero: bool = False, least: float = 0.0) -> float:
    """A finite real number above zero, or from zero on with `zero`; not below `least`."""
    number = _as_float(value)
    if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
        wanted = "a finite number >= 0" if zero else "a finite number > 0"
        raise ValueError(f"{name} must be {wanted}, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least:g}, for numbers are rounded; got {value!r}")
    return float(value)


def _cost(name: str, value: Any) -> None:
    """A cost where there are no hard margins."""
    try:
        positive(name, value)
    except ValueError as error:
        hint = f"; {', '.join(_HARD_MARGINS)} take it, elsewhere a large number would do"
        raise ValueError(f"{error}{hint if _as_float(value) == math.inf else ''}") from None


def _cost_or_infinity(name: str, value: Any) -> None:
    if not _as_float(value) > 0:
        raise ValueError(f"{name} must be a finite number > 0, or infinity for hard margins; got {value!r}")


def finite(name: str, value: Any) -> float:
    """A finite real number."""
    if not math.isfinite(_as_float(value)):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def whole_number(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """An integer from `at_least` on, up to `at_most`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"{name} must be an integer >= {at_least}, got {value!r}")
    if int(value) > (_LARGEST if at_most is None else at_most):
        raise ValueError(f"{name} must be an integer from {at_least} to {at_most or _LARGEST}, got {value!r}")
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


def _flag_or_auto(name: str, value: Any) -> bool | str:
    """True, False or "auto"."""
    if isinstance(value, str) and value == "auto":
        return value
    try:
        return flag(name, value)
    except ValueError as error:
        raise ValueError(str(error).replace("True or False", "True, False or 'auto'")) from None


def costs_of_path(Cs: Iterable[float]) -> list[float]:
    """The values of `C` that a path is trained for, at least one."""
    try:
        Cs = list(Cs)
    except TypeError:
        raise ValueError(f"Cs must be a sequence of numbers, got {Cs!r}") from None
    if not Cs:
        raise ValueError("Cs must hold at least one value, got none")
    return [positive(f"Cs[{number}]", C) for number, C in enumerate(Cs)]


def is_count(value: Any) -> bool:
    """Whether it says how many there are to be, and not which."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _costs_to_try(name: str, value: Any) -> None:
    if is_count(value) or isinstance(value, str | bool) or not isinstance(value, Iterable):
        _number_or_values(name, value)
    else:
        costs_of_path(value)


def _gammas_to_try(name: str, value: Any) -> None:
    if is_count(value) or isinstance(value, str | bool) or not isinstance(value, Iterable):
        _number_or_values(name, value)
        return
    values = list(value)
    if not values:
        raise ValueError(f"{name} must hold at least one value, got none")
    for place, gamma in enumerate(values):
        _gamma(f"{name}[{place}]", gamma)


def _number_or_values(name: str, value: Any) -> None:
    if not is_count(value) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1 or a sequence of numbers, got {value!r}")


def _count_or_auto(name: str, value: Any) -> None:
    if value != "auto" and (not isinstance(value, Integral) or isinstance(value, bool) or value < 1):
        raise ValueError(f"{name} must be an integer >= 1 or 'auto', got {value!r}")


def _whole_number_or_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        whole_number(name, value, at_least=0)


def _share(name: str, value: Any) -> None:
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must be a number above 0 and below 1, got {value!r}")


def _not_zero(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value == 0 or abs(value) > _LARGEST:  # type: ignore[operator]
        raise ValueError(f"{name} must be None or an integer other than 0, got {value!r}")


def _gamma(name: str, value: Any) -> None:
    try:
        _ = value if isinstance(value, str) and value in ("scale", "auto") else positive(name, value)
    except ValueError:
        raise ValueError(f"{name} must be 'scale', 'auto' or a finite number > 0, got {value!r}") from None


def _from_sum_to_maximum(name: str, value: Any) -> None:
    if not _as_float(value) >= 0:
        raise ValueError(f"{name} must be a number >= 0, or infinity for the maximum; got {value!r}")


def _bytes(name: str, value: Any) -> None:
    if positive(name, value) > _LARGEST:
        raise ValueError(f"{name} must be at most {_LARGEST} bytes, got {value!r}")


def _odd(name: str, value: Any) -> None:
    if whole_number(name, value, at_least=1) % 2 == 0:
        raise ValueError(f"{name} must be an odd number: a word and as many to the left as to the right; got {value!r}")


def _steps(name: str, value: Any) -> None:
    """The steps of a pipeline: names, transformers, and in the end what a model is asked for."""
    pairs = list(value) if isinstance(value, list | tuple) else []
    if not pairs or not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise ValueError(f"{name} must be a list of pairs (name, estimator), got {value!r}")
    if len({step for step, _ in pairs}) < len(pairs) or any("__" in step or not step for step, _ in pairs):
        raise ValueError(f"{name} must have a name of its own for each step, without '__'; got {value!r}")
    for step, estimator in pairs:
        needed = "transform" if estimator is not pairs[-1][1] else "fit"
        if not hasattr(type(estimator), needed):
            raise ValueError(f"{name} must have estimators, and before the last one transformers; got {step!r}")


def _nothing(name: str, value: Any) -> None:
    if value is not None:
        raise ValueError(f"{name} must be None in a file, got {value!r}")


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


Check = Callable[[str, Any], Any]

_ONLINE = ("larank", "perceptron", "passive-aggressive")
_CUTTING_PLANES = ("svmstruct", "svmstruct-1slack")
_DESCENTS = ("newton", "lbfgs", "cg")
_FEATURE_MAPS = ("cholesky", "kpca", "none")
_HARD_MARGINS = ("LaRankClassifier", "LaSVMClassifier", "LinearMulticlassSVC", "MulticlassSVC")  # with C=inf
_POSITIVE = (
    "alpha",
    "delta_max",
    "epsilon",
    "intercept_scaling",
    "learning_rate",
    "t0",
    "time_limit",
    "tol",
)
_COUNTS = (
    "basis_size",
    "batch_size",
    "block_size",
    "budget",
    "degree",
    "embedding_size",
    "epochs",
    "hidden_size",
    "label_budget",
    "max_categories",
    "max_iter",
    "min_frequency",
    "n_components",
    "n_iter_no_change",
    "n_steps",
    "sample_size",
)
_FLAGS = (
    "active_set",
    "average",
    "cache",
    "certify",
    "cooling",
    "early_stopping",
    "finish",
    "fit_intercept",
    "refit",
    "repair",
    "shrinking",
    "shuffle",
)


def _device(name: str, value: Any) -> Any:
    is_named = isinstance(value, str) and re.fullmatch(r"cpu|cuda(:\d+)?", value)
    if is_named or type(value).__module__.partition(".")[0] == "torch":
        return value
    raise ValueError(f"{name} must be None, 'cpu', 'cuda', 'cuda:' with a number or a torch.device, got {value!r}")


def _class_weight(name: str, value: Any) -> Any:
    """Weights of classes, which must have the labels of the data besides."""
    if isinstance(value, str) and value == "balanced":
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be None, 'balanced' or a dict from labels to weights. Got {value!r}")
    if not all(0 <= _as_float(weight) < math.inf for weight in value.values()):
        raise ValueError(f"{name} must not be negative or infinite, got {value!r}; give each label a number >= 0")
    return value


# A parameter may also be None where that is its default. Parameters that are not here need the data, or what the
# caller knows of kernels, strategies or templates.
_CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(_POSITIVE, positive),
    **dict.fromkeys(_COUNTS, partial(whole_number, at_least=1)),
    **dict.fromkeys((*_FLAGS, "warm_start"), flag),
    "C": _cost,
    "Cs": _costs_to_try,
    "algorithm": OneOf(("process-reprocess", "simple")),
    "class_weight": _class_weight,
    "coef0": finite,
    "device": _device,
    "decision": OneOf(("last", "average")),
    "feature_map": OneOf(_FEATURE_MAPS),
    "forget": OneOf(("least", "oldest")),
    "formulation": OneOf(("crammer-singer", "weston-watkins")),
    "gamma": _gamma,
    "gammas": _gammas_to_try,
    "history": OneOf(("true", "predicted")),
    "inference": OneOf(("exact", "greedy")),
    "loss": OneOf(("hinge", "squared_hinge", "smoothed_hinge", "log_loss", "modified_huber")),
    "init": OneOf(("larank", "zero")),
    "margin": partial(positive, zero=True),
    "max_patterns": partial(whole_number, at_least=2),
    "memory_limit": _bytes,
    "disk_limit": _bytes,
    "n_jobs": _not_zero,
    "n_reprocess": partial(whole_number, at_least=0),
    "operations": _operations,
    "order": partial(whole_number, at_least=0, at_most=255),  # most_lags of the core
    "pivots": OneOf(("random", "greedy")),
    "row_solver": OneOf(ROW_SOLVERS),
    "scale": OneOf(("standard", "robust", "none")),
    "schedule": OneOf(("adaptive", "fixed")),
    "sharpness": partial(positive, zero=True),
    "smoothing": positive,
    "softmax_gamma": _from_sum_to_maximum,
    "stop": OneOf(("epochs", "gap")),
    "strategy": OneOf(("order-free", "random", "left-right")),
    "supervision": OneOf(("aligned", "bags")),
    "tau": partial(positive, least=1e-12),
    "text": OneOf(("tfidf", "hash")),
    "text_features": partial(whole_number, at_least=1, at_most=1 << 24),  # the hashes that a saved column may have
    "tolerance": _share,
    "update": OneOf(("margin", "mistake")),
    "validation_fraction": _share,
    "verbose": _whole_number_or_flag,
    "window": _odd,
}
_CHECKS_OF: Mapping[tuple[str, str], Check] = {
    **dict.fromkeys((("LaRankClassifier", "certify"), ("LaSVMClassifier", "certify")), _flag_or_auto),
    **dict.fromkeys((("LaRankClassifier", "average"), ("SequenceTagger", "average")), _flag_or_auto),
    **dict.fromkeys([(name, "C") for name in _HARD_MARGINS], _cost_or_infinity),
    ("LaRankClassifier", "epochs"): _count_or_auto,
    ("LaSVMClassifier", "epochs"): _count_or_auto,
    ("ConceptLabeler", "strategy"): OneOf(("order-free", "left-right", "independent")),
    ("KernelPassiveAggressive", "loss"): OneOf(("hinge", "squared_hinge")),
    ("LinearMulticlassSVC", "formulation"): OneOf(("crammer-singer", "weston-watkins", "one-vs-rest")),
    ("LinearMulticlassSVC", "stop"): OneOf(("gap", "violation")),
    ("LinearMulticlassSVCCV", "formulation"): OneOf(("crammer-singer", "weston-watkins", "one-vs-rest")),
    ("LinearMulticlassSVCCV", "stop"): OneOf(("gap", "violation")),
    ("MulticlassSVC", "solver"): OneOf(("active-set", "published"), object_of="Published"),
    ("Pipeline", "memory"): _nothing,
    ("Pipeline", "steps"): _steps,
    ("Pipeline", "transform_input"): _nothing,
    ("PrimalMulticlassSVC", "loss"): OneOf(("log_loss", "squared_hinge", "smoothed_hinge")),
    ("PrimalMulticlassSVC", "solver"): OneOf(_DESCENTS),
    ("Published", "cooling"): OneOf(COOLING),
    ("Published", "selection"): OneOf(("cycle", "kkt")),
    ("SGDQNClassifier", "algorithm"): OneOf(("asgd", "sgdqn", "svmsgd2", "sgd", "olbfgs")),
    ("SGDQNClassifier", "formulation"): OneOf(("joint", "one-vs-rest")),
    ("SequenceTagger", "solver"): OneOf(_ONLINE),
    ("StructuredSVC", "schedule"): OneOf(("fixed", "adaptive")),
    ("StructuredSVC", "solver"): OneOf((*_ONLINE, *_CUTTING_PLANES)),
    ("StructuredSVC", "stop"): OneOf(("epochs", "gap", "violation")),
}


def check_unchanged(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Some parameters cannot change on a stream: they must be now what they were at its beginning."""
    for name, value in before.items():
        if now[name] != value:
            raise ValueError(f"{name} must stay as it was in the calls before, {value!r}; got {now[name]!r}")


# ---- Which parameter acts with which ----

_CHOSEN = object()


@dataclass(frozen=True)
class Rule:
    """A parameter that acts with some values of others only, or not with some.

    It holds for every estimator that has all the parameters it names, or for that of the name `of` only. `value` is the
    value in question, or a function that says whether it is one; any but the default if not given. All of `acts_with`
    must hold; `not_with` must not hold together, and `instead` is what the parameter must be where they do.
    """

    parameter: str
    value: Any = _CHOSEN
    acts_with: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    not_with: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    instead: str = ""
    because: str = ""
    of: str = ""

    def is_for(self, kind: type, names: Collection[str]) -> bool:
        """Whether the rule holds for an estimator with parameters of these names."""
        named = {self.parameter, *self.acts_with, *self.not_with}
        return named <= set(names) and (not self.of or self.of in _names(kind))

    def is_broken(self, values: Mapping[str, Any], chosen: Collection[str]) -> bool:
        """Whether the values are against it; `chosen` are the parameters that are not left at their default."""
        value = values[self.parameter]
        if self.value is _CHOSEN:
            concerned = self.parameter in chosen
        else:
            concerned = self.value(value) if callable(self.value) else _is_among((self.value,), value)
        others = self.acts_with or self.not_with
        hold = all(_is_among(wanted, values[name]) for name, wanted in others.items())
        return concerned and hold == bool(self.not_with)

    def complaint(self, kind: type, values: Mapping[str, Any], spelling: Spelling) -> str:
        """What is wrong, and what would do."""
        name, got = spelling.name(self.parameter), spelling.given(self.parameter, values[self.parameter])
        others = " and ".join(spelling.given(other, values[other]) for other in (self.acts_with or self.not_with))
        because = f": {self.because}" if self.because else ""
        if self.instead:
            value = spelling.value(values[self.parameter])
            return f"{name} must be {self.instead} with {others}, got {value}{because}"
        if self.not_with:
            return f"{name} cannot act with {others}{because}; got {got}"
        wanted = " and ".join(
            " or ".join([spelling.given(other, first), *map(spelling.value, more)])
            for other, (first, *more) in ((other, _known(kind, other, able)) for other, able in self.acts_with.items())
        )
        return f"{name if self.value is _CHOSEN else got} acts with {wanted} only{because}; got {got} with {others}"


class Spelling:
    """How Python writes a parameter, a value, and both together."""

    def name(self, parameter: str) -> str:  # noqa: D102
        return parameter

    def value(self, value: Any) -> str:  # noqa: D102
        return repr(value)

    def given(self, parameter: str, value: Any) -> str:  # noqa: D102
        return f"{parameter}={value!r}"


def acts(parameter: str, value: Any = _CHOSEN, *, because: str = "", of: str = "", **others: tuple[Any, ...]) -> Rule:
    """The rule that a parameter acts with these values of others only."""
    return Rule(parameter, value, acts_with=others, because=because, of=of)


def _must(
    parameter: str, instead: str, value: Any = _CHOSEN, *, because: str = "", of: str = "", **others: tuple[Any, ...]
) -> Rule:
    return Rule(parameter, value, not_with=others, instead=instead, because=because, of=of)


def _looks_at_scores(selection: Any) -> bool:
    return bool(getattr(selection, "needs_scores", _is_among(("gradient", "active", "autoactive"), selection)))


class _NotLinear(tuple[Any, ...]):
    """Every kernel but the linear one, functions too; those in it are examples."""

    def __contains__(self, value: object) -> bool:
        return not (isinstance(value, str) and value == "linear")


_NOT_LINEAR = _NotLinear(("rbf",))
_NO_AVERAGE = "patterns that have left would stay in the average"
_STOPS_BY_PROOF = ("gap", "violation")
# LaSVMClassifier also limits its finishing step by max_iter.
_MAX_ITER_COUNTS_PASSES = (
    "AmbiguousClassifier",
    "HullerClassifier",
    "LaRankClassifier",
    "SequenceTagger",
    "StructuredSVC",
    "TrackingSVC",
)
_SOLVERS_WITH_PROOF = ("active-set", "larank", *_CUTTING_PLANES, *_DESCENTS)

RULES = (
    # What ends training.
    acts("epochs", solver=_ONLINE),
    acts("epochs", stop=("epochs",)),
    acts("tol", solver=_SOLVERS_WITH_PROOF),
    acts("tol", stop=_STOPS_BY_PROOF),
    acts("max_iter", solver=_SOLVERS_WITH_PROOF, of="StructuredSVC"),
    *(acts("max_iter", stop=_STOPS_BY_PROOF, of=name) for name in _MAX_ITER_COUNTS_PASSES),
    Rule("max_iter", not_with={"stop": ("epochs",), "finish": (False,)}, of="LaSVMClassifier"),
    acts("stop", "epochs", solver=_ONLINE),
    acts("stop", "gap", solver=_SOLVERS_WITH_PROOF),
    acts("stop", "violation", solver=_CUTTING_PLANES),
    acts("certify", solver=("larank",), of="StructuredSVC"),
    acts("certify", False, stop=("epochs",), because="the gap is computed from scratch where it ends training"),
    acts("finish", False, stop=("epochs",), because="a gap is looked at after finishing"),
    _must("tol", "a number above 0 and below 1", lambda tol: not tol or tol >= 1, stop=("gap",), of="HullerClassifier"),
    _must("tol", "a number > 0", lambda tol: tol is None, stop=("gap",), C=(math.inf,)),
    # Which examples come, and how often.
    acts("label_budget", stop=("epochs",), epochs=(1, "auto"), because="more passes see all labels"),
    Rule("sample_size", not_with={"selection": ("random",)}),
    _must("selection", "'random'", _looks_at_scores, kernel=("linear",), of="LaRankClassifier"),
    acts(
        "max_patterns",
        **{"stop": ("epochs",), "epochs": (1, "auto")},
        because="what was let go would come again",
        of="LaRankClassifier",
    ),
    acts("max_patterns", solver=("larank",), stop=("epochs",), because="a gap takes all patterns"),
    Rule("max_patterns", not_with={"C": (math.inf,)}, because="hard margins need all patterns"),
    Rule("forget", not_with={"max_patterns": (None,)}),
    acts("validation_fraction", early_stopping=(True,)),
    acts("shuffle", solver=(*_ONLINE, "svmstruct"), of="StructuredSVC"),
    acts("history", "predicted", inference=("greedy",), stop=("epochs",)),
    _must("sharpness", "0", bool, epochs=(1,), because="candidates are weighed between passes; stop must be 'epochs'"),
    # How the solvers work.
    acts("C", solver=("larank", *_CUTTING_PLANES, "passive-aggressive"), of="StructuredSVC"),
    *(
        Rule("average", True, not_with={"kernel": _NOT_LINEAR, **other}, because=_NO_AVERAGE, of="LaRankClassifier")
        for other in ({"max_patterns": (None,)}, {"forget": ("oldest",)})
    ),
    acts("schedule", solver=("larank",)),
    acts("n_reprocess", solver=("larank",)),
    acts("n_reprocess", schedule=("fixed",)),
    acts("average", solver=("perceptron", "passive-aggressive"), of="StructuredSVC"),
    acts("average", True, stop=("epochs",), of="SequenceTagger", because="a gap is closed by the last weights"),
    acts("label_costs", solver=("larank", "passive-aggressive"), because="the perceptron knows right and wrong"),
    acts("repair", constraints=("BIO", "BILOU"), because="other labels cannot be read as conlleval reads tags"),
    acts("budget", decision=("last",), because=_NO_AVERAGE),
    acts("C", math.inf, solver=("active-set",), of="MulticlassSVC"),
    acts("init", solver=("active-set",)),
    acts("shrinking", solver=("active-set",)),
    acts("formulation", "weston-watkins", solver=("active-set",)),
    # On a device.
    *(
        acts(name, device=(None,))
        for name in ("schedule", "n_reprocess", "operations", "max_patterns", "batch_size", "n_jobs")
    ),
    acts("average", True, device=(None,), of="LaRankClassifier"),
    acts("selection", device=(None,), of="LaRankClassifier"),
    acts("C", math.inf, device=(None,), because="hard margins need more precision"),
    acts("init", device=(None,), of="MulticlassSVC"),
    acts("solver", device=(None,), of="MulticlassSVC"),
    # Kernels behind a map.
    acts("smoothing", loss=("smoothed_hinge",)),
    acts("feature_map", "none", kernel=("linear",), because="other kernels need one"),
    acts("memory_limit", feature_map=_FEATURE_MAPS[:2]),
    # The switches of `Published`; cooling begins at epsilon_0 of [mcsvm] section 7.
    _must("active_set", "False", True, selection=("cycle",), because="it takes all in turn"),
    _must("cooling", "'none'", lambda cooling: cooling != "none", active_set=(False,)),
    _must("epsilon", "below 0.999", lambda e: e >= 0.999, cooling=COOLING[1:], because="cooling='none' would do"),
    _must("epsilon", "left at 0.1", selection=("cycle",), row_solver=("exact",), because="they do not use it"),
)

# The command line refuses these. Estimators do not, because scikit-learn's checks set them everywhere.
IGNORED = (
    acts("n_components", feature_map=_FEATURE_MAPS[:2]),
    acts("n_iter_no_change", early_stopping=(True,)),
)


# ---- What needs all examples at once ----


@dataclass(frozen=True)
class Whole:
    """Values of a parameter with which there is no `partial_fit`, why, and what would do.

    `values` may be a function that says whether one is meant. It holds for every estimator that has the parameter, or
    for that of the name `of` only.
    """

    parameter: str
    values: tuple[Any, ...] | Callable[[Any], bool]
    because: str
    instead: str
    of: str = ""

    def concerns(self, kind: type, value: Any) -> bool:
        """Whether an estimator of this kind has no `partial_fit` with the value."""
        if self.of and self.of not in _names(kind):
            return False
        return self.values(value) if callable(self.values) else _is_among(self.values, value)


_ONE_PASS = "for it makes one pass over what it is given"
_IN_ORDER = "for it takes every example it is given, in their order"

NEEDS_ALL_EXAMPLES = (
    Whole("solver", _CUTTING_PLANES, "which needs all examples at once", " or ".join(map(repr, _ONLINE))),
    Whole("stop", _STOPS_BY_PROOF, _ONE_PASS, "'epochs'"),
    Whole("epochs", lambda epochs: epochs > 1, _ONE_PASS, "1", of="StructuredSVC"),
    Whole("early_stopping", (True,), _ONE_PASS, "False"),
    Whole("sharpness", bool, "which weighs candidates between passes", "0"),
    Whole("class_weight", ("balanced",), "which needs all examples at once", "a dict or None"),
    Whole("selection", _looks_at_scores, f"{_IN_ORDER} (larank.ActiveLearner chooses among them)", "'random'"),
    Whole("label_budget", lambda budget: budget is not None, _IN_ORDER, "None"),
)


def needs_all_examples(model: Any) -> str:
    """Which parameter leaves an estimator without `partial_fit`, why, and what would do; nothing if none does.

    A value that is wrong in itself is not looked at: that is for the call to say.
    """
    kind, values = type(model), values_of(model)
    for whole in NEEDS_ALL_EXAMPLES:
        value = values.get(whole.parameter)
        if whole.parameter in values and _is_accepted(kind, whole.parameter, value) and whole.concerns(kind, value):
            given = f"{whole.parameter}={value!r}"
            return f"with {given}, {whole.because}; {whole.parameter} must be {whole.instead}"
    return ""


def _is_accepted(kind: type, name: str, value: Any) -> bool:
    try:
        check_value(kind, name, value)
    except ValueError:
        return False
    return True


# ---- What estimators and the command line call ----


def check(model: Any, **resolved: Any) -> None:
    """Raise a ValueError for a parameter that is not accepted, or cannot act beside the others.

    The model is an estimator, or a value that carries parameters of its own; its constructor has stored them as they
    are. `resolved` is what a parameter that is None stands for.
    """
    kind, usual = type(model), defaults(type(model))
    values = values_of(model)
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
    rules: Iterable[Rule] = RULES,
) -> Iterator[str]:
    """What is wrong with values of parameters, all of them, that are fine each by itself.

    `chosen` are those that differ from the default or, on the command line, that were given.
    """
    if "feature_map" in values:
        values = {**values, "feature_map": feature_map_for(values["kernel"], values["feature_map"])}
    for rule in rules:
        if rule.is_for(kind, values) and rule.is_broken(values, chosen):
            yield rule.complaint(kind, values, spelling or Spelling())


def feature_map_for(kernel: Any, feature_map: str | None) -> str:
    """The map of a kernel; None is none for the linear kernel, and pivoted Cholesky for others."""
    if feature_map is not None:
        return feature_map
    return "none" if kernel == "linear" else "cholesky"


def library_class(kind: type) -> type | None:
    """Return the nearest class of this library among a class and its bases, or None if none of them is."""
    return next((each for each in kind.__mro__ if each.__module__.partition(".")[0] == "larank"), None)


def defaults(kind: type) -> dict[str, Any]:
    """Return the parameters of a class with their defaults; a subclass has the parameters of its library class."""
    constructor = signature(library_class(kind) or kind)
    return {name: parameter.default for name, parameter in constructor.parameters.items()}


def values_of(model: Any) -> dict[str, Any]:
    """Return the parameters that a model is trained with.

    They are read from the attributes, because the constructor of a subclass may fix, rename or add parameters, which
    changes what `get_params` returns.
    """
    return {name: getattr(model, name) for name in defaults(type(model))}


def _names(kind: type) -> tuple[str, ...]:
    return tuple(each.__name__ for each in kind.__mro__)


def _is_among(values: tuple[Any, ...], value: Any) -> bool:
    try:
        return value in values
    except (ValueError, TypeError):  # an array, which has no one truth or is compared with arrays only
        return False


def _check_of(kind: type, name: str) -> Check | None:
    of_kind = (_CHECKS_OF.get((each, name)) for each in _names(kind))
    return next((found for found in of_kind if found is not None), _CHECKS.get(name))


def _known(kind: type, name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Those of the values that an estimator of this kind has."""
    found = _check_of(kind, name)
    return tuple(value for value in values if value in found.choices) if isinstance(found, OneOf) else values
