"""The options of a command that trains: one for each parameter of its estimator, made from the declarations.

A command takes what was given as one argument, and asks it for the estimator:

    def train(data_file: Path, given: Given) -> None:
        estimator = given.estimator()

    app.command()(with_options_of(LinearMulticlassSVC, train))

A parameter that may be a value object, such as `solver` of LaRankClassifier, has an option for each switch of it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand

import larank
from larank import declare
from larank.declare import Choice, Flag, Number, Object, Parameter, ParameterError, Whole, parameters_of

ALGORITHMS = {
    "sdm": "LinearMulticlassSVC",
    "larank": "LaRankClassifier",
    "mcsvm": "MulticlassSVC",
    "lasvm": "LaSVMClassifier",
    "sgd": "LinearSGDClassifier",
    "primal": "PrimalMulticlassSVC",
    "huller": "HullerClassifier",
    "tracking": "TrackingSVC",
    "perceptron": "KernelPerceptron",
    "passive-aggressive": "KernelPassiveAggressive",
    "ambiguous": "AmbiguousClassifier",
}
"""The classes by the names of --algorithm; the first is the default."""
ALIASES = {"linear": "sdm", "kernel": "larank", "kernel-exact": "mcsvm"}
_SPELLED = {"C": "-C", "fit_intercept": "--intercept"}
_METAVARS = {"time_limit": "SECONDS", "memory_limit": "BYTES", "disk_limit": "BYTES"}
_OMITTED = ("random_state", "verbose", "warm_start")  # commands have --seed and --quiet, and no model from before


def classifier(algorithm: str) -> type:
    """Return the class of an algorithm or an alias.

    Raises
    ------
    typer.BadParameter
        If there is no such algorithm.
    """
    name = ALIASES.get(algorithm, algorithm)
    if name not in ALGORITHMS:
        known = ", ".join([*ALGORITHMS, *ALIASES])
        raise typer.BadParameter(f"must be one of {known}; got {algorithm!r}", param_hint="'--algorithm'")
    kind: type = getattr(larank, ALGORITHMS[name])
    return kind


def about_algorithms() -> str:
    """Return the help of --algorithm."""
    names = {name: "".join(f" or {alias}" for alias, of in ALIASES.items() if of == name) for name in ALGORITHMS}
    listed = "; ".join(f"{name}{names[name]}: {kind}" for name, kind in ALGORITHMS.items())
    return f"{listed}. With --help, the options of this algorithm are listed."


class Option(NamedTuple):
    """The option of a parameter of a class: the estimator, or an object that its parameter `within` may be."""

    parameter: Parameter
    owner: type
    within: Parameter | None = None

    @property
    def spelled(self) -> str:
        """The option without a value."""
        name = self.parameter.name
        if name == "algorithm":  # --algorithm names the class
            return f"--{next(each for each, kind in ALGORITHMS.items() if kind == self.owner.__name__)}-algorithm"
        return _SPELLED.get(name, f"--{name.replace('_', '-')}")

    @property
    def _alternatives(self) -> tuple[Any, ...]:
        accepted = self.parameter.accepted
        if accepted is not None:
            return accepted
        return (Whole(),) if "int" in self.parameter.annotation.split(" | ") else ()

    @property
    def _is_flag(self) -> bool:
        return any(isinstance(each, Flag) for each in self._alternatives)

    @property
    def _is_list(self) -> bool:
        return self.parameter.form.startswith(("collection of", "sequence of str", "list of str"))

    @property
    def _acts_by_default(self) -> bool:
        """Whether the default of the option is used unless another option changes it."""
        if self.within is None or self.owner is None:
            return not self.parameter.is_required
        return str(self.within.default).replace("-", "") == self.owner.__name__.lower()

    @property
    def has_text(self) -> bool:
        """Whether a text can be the value."""
        if self.parameter.name in _OMITTED:
            return False
        is_fixed = len(self.parameter.choices) == 1 and any(isinstance(each, Object) for each in self._alternatives)
        simple = any(isinstance(each, Flag | Number | Whole | Choice) for each in self._alternatives)
        return (simple and not is_fixed) or self._is_list or bool(self.parameter.named)

    def argument(self, known: Mapping[str, Option]) -> inspect.Parameter:
        """Return the option as an argument of a function."""
        flag, number = self._is_flag, [each for each in self._alternatives if isinstance(each, Number | Whole)]
        choices = self.parameter.choices
        settings: dict[str, Any] = {"metavar": _METAVARS.get(self.parameter.name)}
        kind: Any = str  # as typer reads it
        if flag:
            kind = bool
        elif self._is_list:
            settings["metavar"] = ",".join(choices) or "NAME,..."
        elif number and not choices:
            kind = int if isinstance(number[0], Whole) else float
        elif choices and not number and not self.parameter.named:
            kind = _enumeration(choices)
        elif choices:
            settings["metavar"] = "|".join((*(["NUMBER"] if number else []), *choices))
        spelled = f"{self.spelled}/--no-{self.spelled[2:]}" if flag else self.spelled
        default = self.parameter.default
        option = typer.Option(
            spelled,
            help=_first_sentence(self.parameter, known),
            show_default=_text(default) if self._acts_by_default and default is not None else False,
            **settings,
        )
        return inspect.Parameter(
            self.parameter.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
        )

    def value(self, given: Any) -> Any:
        """Return what the estimator takes."""
        if isinstance(given, Enum):
            return given.value
        if not isinstance(given, str):
            return given
        if self._is_list:
            return tuple(part.strip() for part in given.split(",") if part.strip())
        for each in self._alternatives:
            if isinstance(each, Number | Whole):
                try:
                    return int(given) if isinstance(each, Whole) else float(given)
                except ValueError:
                    continue
        return given


def options_of(kind: type, taken: Collection[str] = ()) -> dict[str, Option]:
    """Return the options of an estimator by the names of parameters, without names that the command has itself."""
    options = [Option(each, kind) for each in parameters_of(kind).values()]
    for each in [option.parameter for option in options]:
        for alternative in each.accepted or ():
            if isinstance(alternative, Object):
                switches = parameters_of(alternative.kind)
                used = [switches[name] for name in switches if name not in getattr(kind, "_UNUSED_SWITCHES", ())]
                options += [Option(switch, alternative.kind, each) for switch in used]
    found: dict[str, Option] = {}
    for option in options:
        if option.parameter.name not in taken and option.has_text:
            found.setdefault(option.parameter.name, option)
    return found


class Given:
    """What was given on the command line for an estimator."""

    def __init__(self, kind: type, options: Mapping[str, Option], given: Mapping[str, Any]) -> None:
        self.kind, self._options, self._given = kind, options, given

    def estimator(self, **others: Any) -> Any:
        """Return the estimator with the values given, and with others that no option has.

        Raises
        ------
        typer.BadParameter
            If a value is not accepted, or cannot be combined with the others.
        """
        values: dict[str, Any] = {}
        switches: dict[tuple[str, type], dict[str, Any]] = {}
        for name, given in self._given.items():
            option = self._options[name]
            value = option.value(given)
            if option.within is None:
                values[name] = value
            else:
                switches.setdefault((option.within.name, option.owner), {})[name] = value
        for (name, owner), chosen in switches.items():
            spelled = " and ".join(self._options[switch].spelled for switch in chosen)
            within = parameters_of(self.kind)[name]
            of_owner = [each for each in within.choices if re.sub("[-_]", "", each) == owner.__name__.lower()]
            given = values.get(name, within.default if of_owner else None)
            if of_owner and given not in of_owner:
                raise typer.BadParameter(f"{spelled} is used only with --{name} {of_owner[0]}, got {_text(given)}")
            if not of_owner and given is not None:
                raise typer.BadParameter(
                    f"{spelled} cannot be combined with --{name} or the switches of another {name}"
                )
            values[name] = owner(**chosen)
        estimator = self.kind(**values, **others)
        try:
            declare.check(estimator)
        except ParameterError as error:
            name = error.name.partition("[")[0]
            wrong = [self._options[each].spelled for each in self._given if self._is_of(each, name)]
            hint = " and ".join(f"'{each}'" for each in wrong) or f"'{name}'"
            raise typer.BadParameter(error.rule, param_hint=hint) from None
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        return estimator

    def _is_of(self, given: str, name: str) -> bool:
        """Return whether an option sets a parameter, or a switch of the object that the parameter is."""
        within = self._options[given].within
        return name == given or (within is not None and name == within.name)


def with_options_of(kind: type, function: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose argument `given` is made from the options of an estimator.

    Parameters
    ----------
    kind : type
        The estimator.
    function : callable
        The command, with annotations for typer, one of whose arguments is `given`.
    """
    own = [each for name, each in inspect.signature(function, eval_str=True).parameters.items() if name != "given"]
    options = options_of(kind, [each.name for each in own])

    def command(**found: Any) -> None:
        given = {name: found.pop(name) for name in options}
        function(**found, given=Given(kind, options, {name: each for name, each in given.items() if each is not None}))

    arguments = [option.argument(options) for option in options.values()]
    ordered = sorted([*arguments, *own], key=lambda each: each.default is not inspect.Parameter.empty)
    # Typer reads the name, the docstring, the signature and the annotations.
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    positional = [each.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for each in ordered]
    command.__signature__ = inspect.Signature(positional)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in ordered}
    return command


class CommandOfOneAlgorithm(TyperCommand):
    """A command that names the algorithms that have an option, if its own algorithm does not have it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments, or raise a usage error."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            is_unknown = type(error).__name__ == "NoSuchOption"  # of click, or of the copy of click in typer
            given = getattr(error, "option_name", None) if is_unknown else None
            if given is None:
                raise
            wanted = given.replace("--no-", "--")
            owners = [
                name
                for name in ALGORITHMS
                if wanted in [option.spelled for option in options_of(classifier(name)).values()]
            ]
            if not owners:
                raise
            raise typer.BadParameter(
                f"{given} is not an option of this algorithm; --algorithm {' or '.join(owners)} has it", ctx
            ) from None


def algorithm_in(arguments: Sequence[str]) -> str:
    """Return the algorithm that arguments of a command name, or the default."""
    words = [word for argument in arguments for word in argument.split("=", 1)]  # also --algorithm=NAME
    named = [after for before, after in pairwise(words) if before == "--algorithm"]
    return named[-1] if named else next(iter(ALGORITHMS))


def _first_sentence(parameter: Parameter, known: Mapping[str, Option]) -> str:
    """Return the first sentence of the text with options in place of parameters."""

    def spelled(match: re.Match[str]) -> str:
        name, _, value = match[1].replace('"', "").partition("=")
        return f"{known[name].spelled} {value}".strip() if name in known else match[1]

    return re.sub(r"`+([^`]+)`+", spelled, parameter.first_sentence)


def _enumeration(choices: Sequence[str]) -> type[Enum]:
    make: Any = Enum
    made: type[Enum] = make("Choices", {choice: choice for choice in choices})
    return made


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return ",".join(value) if isinstance(value, tuple) else str(value)
