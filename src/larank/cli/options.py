"""The options of a command that trains: made from the signatures and docstrings of estimators, checked by their table.

A command takes what was given as one argument, and asks it for the estimator:

    def train(data_file: Path, given: Given) -> None:
        estimator = given.estimator()

    app.command()(with_options_of({"sdm": LinearMulticlassSVC}, train))
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, NamedTuple

import typer
from sklearn.base import ClassifierMixin

import larank
from larank import declare, parameters
from larank.blocks.kernels import kernels_with
from larank.parameters import Rule, Spelling

Kinds = Mapping[str, type]
"""Estimators by the name that --algorithm has for them."""

_SHORT_NAMES = {
    "LinearMulticlassSVC": "sdm",
    "LaRankClassifier": "larank",
    "MulticlassSVC": "mcsvm",
    "LaSVMClassifier": "lasvm",
}
_SPELLED = {"C": "-C", "fit_intercept": "--intercept"}
_METAVARS = {"time_limit": "SECONDS", "memory_limit": "BYTES", "disk_limit": "BYTES"}
_LEFT_OUT = ("random_state", "verbose", "warm_start")  # commands have --seed and --quiet, and no fit before


def classifiers() -> dict[str, type]:
    """Every classifier of the library but the searches, whose grids and folds are no options."""
    public = [getattr(larank, name) for name in larank.__all__]
    kinds = {kind.__name__: kind for kind in public if isinstance(kind, type) and issubclass(kind, ClassifierMixin)}
    kinds = {name: kind for name, kind in kinds.items() if "cv" not in declare.defaults(kind)}
    return {_short_name(name): kinds[name] for name in (*_SHORT_NAMES, *kinds)}


def _short_name(name: str) -> str:
    plain = re.sub(r"^Kernel|Multiclass|Classifier$|SVC$", "", name)
    return _SHORT_NAMES.get(name, re.sub(r"(?<=[a-z])(?=[A-Z])", "-", plain).lower())


def with_options_of(kinds: Kinds, function: Callable[..., None], asked: str | None = None) -> Callable[..., None]:
    """A command whose argument `given` is made from the options of these estimators.

    Parameters
    ----------
    kinds : mapping of str to type
        The estimators; of several, --algorithm chooses one, the first if it is not given.
    function : callable
        The command, with annotations for typer. Of its arguments, `given` must be there.
    asked : str, optional
        The only algorithm to show options of.
    """
    signature = inspect.signature(function, eval_str=True)
    own = [argument for name, argument in signature.parameters.items() if name != "given"]
    shown = {name: kind for name, kind in kinds.items() if name == asked} or kinds
    options = _options_of(shown, ["algorithm", *(argument.name for argument in own)])
    by_parameter = {option.parameter: option for option in options}
    arguments = [option.described(shown, by_parameter) for option in options]
    if len(kinds) > 1:
        arguments.insert(0, _algorithm(kinds))

    def command(algorithm: Any = None, **found: Any) -> None:
        name = next(iter(kinds)) if algorithm is None else algorithm.value
        given = [
            (option, option.value(found[option.argument])) for option in options if found[option.argument] is not None
        ]
        rest = {argument.name: found[argument.name] for argument in own}
        function(**rest, given=Given(kinds[name], name, options, given))

    # What typer looks at.
    ordered = sorted([*arguments, *own], key=lambda argument: argument.default is not inspect.Parameter.empty)
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    command.__annotations__ = {argument.name: argument.annotation for argument in ordered}
    return command


# ---- Options of estimators ----


class Given:
    """What was given on the command line for an estimator."""

    def __init__(
        self, kind: type, algorithm: str, options: Sequence[_Option], given: Sequence[tuple[_Option, Any]]
    ) -> None:
        self._kind, self._algorithm, self._given = kind, algorithm, given
        self._options = {option.parameter: option for option in options if algorithm in option.entries}

    def estimator(self, **others: Any) -> Any:
        """The estimator with the values given, and with others that no option has.

        Raises
        ------
        typer.BadParameter
            If a value is not accepted, or cannot act with the others.
        """
        spelling, usual = _AsOptions(self._options), declare.defaults(self._kind)
        for option, value in self._given:
            self._check(option, value)
        values = {option.parameter: value for option, value in self._given}
        for complaint in parameters.complaints(self._kind, {**usual, **values}, values, spelling, _rules()):
            raise typer.BadParameter(complaint)
        return self._kind(**values, **others)

    def _check(self, option: _Option, value: Any) -> None:
        name, spelled = option.parameter, option.spelled_either_way
        entries, algorithm = option.entries, self._algorithm
        if algorithm not in entries:
            able = ", ".join(entries)
            raise typer.BadParameter(f"{spelled} cannot act with --algorithm {algorithm}; it acts with {able}")
        choices = entries[algorithm].choices
        if option.is_choice and value not in choices:
            has = " or ".join(choices)
            raise typer.BadParameter(f"{spelled} {value} is not for --algorithm {algorithm}; it has {has}")
        try:
            parameters.check_value(self._kind, name, value, called=spelled)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None


class _Entry(NamedTuple):
    """What a class says about a parameter: its type and text in the docstring, and the default."""

    form: str
    text: str
    default: Any

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(re.findall(r'"([^"]+)"', self.form.partition(", default=")[0]))


class _Option:
    """The option for a parameter that one or several estimators have.

    Parameters
    ----------
    parameter : str
        Its name.
    entries : mapping of str to _Entry
        What each algorithm that has it says about it.
    is_taken : bool
        Whether the command has an argument of this name itself.
    """

    def __init__(self, parameter: str, entries: Mapping[str, _Entry], is_taken: bool) -> None:
        algorithm, first = next(iter(entries.items()))
        self.parameter, self.entries = parameter, entries
        self.argument = f"{algorithm}_{parameter}" if is_taken else parameter
        self.spelled = _SPELLED.get(parameter, f"--{self.argument.replace('_', '-')}")
        self.choices = tuple(dict.fromkeys(choice for entry in entries.values() for choice in entry.choices))
        self.is_list = first.form.startswith(("collection", "list of str"))
        forms = [entry.form for entry in entries.values()]
        self._number = next(
            (kind for kind in (float, int) if any(f"or {kind.__name__}" in form for form in forms)), None
        )
        self.is_flag = first.form.startswith("bool")
        self.is_choice = bool(self.choices) and not self.is_list and not self.is_flag and self._number is None
        self._type = {"float": float, "int": int, "bool": bool}.get(first.form.split(",")[0].split(" or ")[0])

    @property
    def spelled_either_way(self) -> str:
        """As it stands in an error: a flag may have been given with --no- or without."""
        return f"--[no-]{self.spelled[2:]}" if self.is_flag else self.spelled

    @property
    def is_possible(self) -> bool:
        """Whether a text can be the value."""
        return self.parameter not in _LEFT_OUT and (bool(self.choices) or self.is_list or self._type is not None)

    def value(self, given: Any) -> Any:
        """What the estimator takes."""
        if self.is_list:
            return tuple(part.strip() for part in given.split(",") if part.strip())
        if self.is_choice:
            return given.value
        try:
            return self._number(given) if self._number else given
        except ValueError:
            return given

    def described(self, kinds: Kinds, known: Mapping[str, _Option]) -> inspect.Parameter:
        """The option as an argument of a function, with help and default."""
        whose = _whose(list(self.entries), kinds)
        said = _first_sentence(next(iter(self.entries.values())).text, known)
        kind: Any = (
            _enum(self.parameter, self.choices) if self.is_choice else str if self._number else self._type or str
        )
        spelled = f"{self.spelled}/--no-{self.spelled[2:]}" if self.is_flag else self.spelled
        metavar = None if self.is_choice or not self.choices else "|".join(("NUMBER", *self.choices))
        if self.is_list:
            metavar = ",".join(self.choices) or "NAME,..."
        return _argument(
            self.argument,
            kind | None,
            None,
            spelled,
            help=f"{whose}: {said}" if whose else said,
            metavar=_METAVARS.get(self.parameter, metavar),
            show_default=self._shown_default(kinds),
        )

    def _shown_default(self, kinds: Kinds) -> str | bool:
        having: dict[str, list[str]] = {}
        for algorithm, entry in self.entries.items():
            if entry.default is not None:
                having.setdefault(_text(entry.default), []).append(algorithm)
        if [len(self.entries)] == [len(algorithms) for algorithms in having.values()]:
            return next(iter(having))
        return "; ".join(f"{_whose(algorithms, kinds)}: {value}" for value, algorithms in having.items()) or False


class _AsOptions(Spelling):
    """Parameters as they stand on the command line."""

    def __init__(self, options: Mapping[str, _Option]) -> None:
        self._options = options

    def name(self, parameter: str) -> str:
        return self._options[parameter].spelled_either_way

    def value(self, value: Any) -> str:
        return _text(value)

    def given(self, parameter: str, value: Any) -> str:
        option = self._options[parameter]
        if option.is_flag:
            return option.spelled if value else f"--no-{option.spelled[2:]}"
        return f"{option.spelled} {_text(value)}"


def _options_of(kinds: Kinds, taken: Collection[str]) -> list[_Option]:
    """The options for the parameters of all of them; a name that is taken has one for each."""
    entries: dict[str, dict[str, _Entry]] = {}
    for algorithm, kind in kinds.items():
        for name, entry in _documented(kind).items():
            entries.setdefault(name, {})[algorithm] = entry
    options = []
    for name, found in entries.items():
        separate = [{algorithm: entry} for algorithm, entry in found.items()] if name in taken else [found]
        options += [_Option(name, each, name in taken) for each in separate]
    return [option for option in options if option.is_possible]


def _documented(kind: type) -> dict[str, _Entry]:
    """What the section "Parameters" of a numpydoc docstring says."""
    if kind.__doc__ is None:
        raise RuntimeError("the options are made from docstrings, which python -OO leaves out; run larank without -OO")
    sections = re.split(r"^(\w[\w ]*)\n-{3,}\n", f"{inspect.getdoc(kind)}\n", flags=re.M)
    found = re.findall(r"^(\w+) : (.+)\n((?:[ ]+.*\n|\n)*)", sections[sections.index("Parameters") + 1], flags=re.M)
    defaults = declare.defaults(kind)
    return {name: _Entry(form, " ".join(text.split()), defaults[name]) for name, form, text in found}


def _first_sentence(text: str, known: Mapping[str, _Option]) -> str:
    """With options in place of parameters."""

    def spelled(match: re.Match[str]) -> str:
        name, _, value = match[1].replace('"', "").partition("=")
        return f"{known[name].spelled} {value}".strip() if name in known else match[1]

    return re.sub(r"`+([^`]+)`+", spelled, re.split(r"(?<=\.)\s", text)[0])


def _whose(algorithms: Sequence[str], kinds: Kinds) -> str:
    """Which algorithms, if not all there are."""
    others = [name for name in kinds if name not in algorithms]
    if not others:
        return ""
    return ", ".join(algorithms) if len(algorithms) <= len(others) else f"all but {', '.join(others)}"


def _argument(name: str, annotation: Any, default: Any, *spelled: str, **settings: Any) -> inspect.Parameter:
    annotated = Annotated[annotation, typer.Option(*spelled, **settings)]
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotated)


def _algorithm(kinds: Kinds) -> inspect.Parameter:
    names = _enum("Algorithm", kinds)
    said = "; ".join(f"{name}: {kind.__name__}" for name, kind in kinds.items())
    return _argument("algorithm", names, next(iter(names)), help=f"{said}. With --help, shows the options of this one.")


def _enum(name: str, choices: Iterable[str]) -> Any:
    return Enum(name, {choice: choice for choice in choices})


def _rules() -> Iterable[Rule]:
    """Those of the table, and that what an estimator ignores, as `sklearn.svm.SVC` does, is not asked for in vain."""
    of_kernels = [parameters.acts(name, kernel=kernels_with(name)) for name in ("gamma", "degree", "coef0")]
    return (*parameters.RULES, *parameters.IGNORED, *of_kernels)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return ",".join(value) if isinstance(value, tuple) else str(value)
