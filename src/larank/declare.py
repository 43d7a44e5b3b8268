"""Parameters of estimators, each declared once: name, type, default, accepted values and text.

An estimator, and a value object that carries the switches of one algorithm, lists its parameters in the class body::

    class Stopping(Declared, position=3):
        tol: float | None = parameter("Relative duality gap at which training stops.", default=None, above=0)

`Declared` makes the constructor with an explicit signature and the docstring's section "Parameters". `check(model)`
validates the values of all parameters, and the command line makes its options from `parameters_of(kind)`. What is
accepted follows from the annotation: numbers and whole numbers within bounds, the choices of a `Literal`, True and
False, other declared classes, and None.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, dataclass_transform

LARGEST_COUNT = 2**62  # the core cannot count further
_REQUIRED: Any = object()  # the default of a parameter that must be given
_FITTED: Any = object()


class ParameterError(ValueError):
    """A parameter that is not accepted: `name` is the parameter, `rule` what is wrong with it."""

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(f"{name} {rule}")
        self.name, self.rule = name, rule

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.rule)


# ---- What a value may be ----


@dataclass(frozen=True)
class Number:
    """A real number within bounds; `infinite` admits infinity, too."""

    least: float = -math.inf
    above: float = -math.inf
    below: float = math.inf
    most: float = math.inf
    infinite: bool = False

    @property
    def _words(self) -> tuple[str, ...]:
        bounds = [
            f"{sign} {bound:g}"
            for sign, bound in ((">=", self.least), (">", self.above), ("<", self.below), ("<=", self.most))
            if math.isfinite(bound)
        ]
        numbers = " and ".join(["a finite number " + bounds[0], *bounds[1:]]) if bounds else "a finite number"
        return (numbers, "infinity") if self.infinite else (numbers,)

    def accepts(self, value: Any) -> bool:
        """Return whether the value is a number within the bounds."""
        number = as_float(value)
        is_within = self.least <= number <= self.most and self.above < number < self.below
        return is_within or (self.infinite and number == math.inf)


@dataclass(frozen=True)
class Whole:
    """A whole number from `least` to `most`."""

    least: int = 0
    most: int = LARGEST_COUNT

    @property
    def _words(self) -> tuple[str, ...]:
        bounds = f">= {self.least}" if self.most == LARGEST_COUNT else f"from {self.least} to {self.most}"
        return (f"an integer {bounds}",)

    def accepts(self, value: Any) -> bool:
        """Return whether the value is a whole number within the bounds."""
        return is_whole(value) and self.least <= value <= self.most


@dataclass(frozen=True)
class Flag:
    """True or False, of Python or of NumPy."""

    _words = ("True", "False")

    def accepts(self, value: Any) -> bool:
        """Return whether the value is a truth value."""
        return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


@dataclass(frozen=True)
class Choice:
    """One of some strings."""

    choices: tuple[str, ...]

    @property
    def _words(self) -> tuple[str, ...]:
        return tuple(map(repr, self.choices))

    def accepts(self, value: Any) -> bool:
        """Return whether the value is one of the strings."""
        return isinstance(value, str) and value in self.choices


@dataclass(frozen=True)
class Nothing:
    """None."""

    _words = ("None",)

    def accepts(self, value: Any) -> bool:
        """Return whether the value is None."""
        return value is None


@dataclass(frozen=True)
class Object:
    """An object of a declared class, whose own parameters must be accepted."""

    kind: type

    @property
    def _words(self) -> tuple[str, ...]:
        return (f"{self.kind.__name__}(...)",)

    def accepts(self, value: Any) -> bool:
        """Return whether the value is of the class; raise if one of its parameters is not accepted."""
        if not isinstance(value, self.kind):
            return False
        check(value)
        return True


Alternative = Number | Whole | Flag | Choice | Nothing | Object


def demand(name: str, value: Any, *alternatives: Alternative) -> None:
    """Raise a ParameterError unless one of the alternatives accepts the value."""
    if any(each.accepts(value) for each in alternatives):
        return
    words = [word for each in alternatives for word in each._words]
    if all(isinstance(each, Choice | Nothing) for each in alternatives):
        wanted = f"one of {', '.join(words)}"
    else:
        wanted = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    is_number = any(isinstance(each, Number) for each in alternatives)
    hint = ". Use a large number instead" if is_number and as_float(value) == math.inf else ""
    raise ParameterError(name, f"must be {wanted}; got {value!r}{hint}")


def as_float(value: Any) -> float:
    """Return a number of Python or NumPy as a float, and NaN for anything else or a number too large for a float."""
    is_number = isinstance(value, float | Integral) or (isinstance(value, Real) and hasattr(value, "dtype"))
    if not is_number or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def is_whole(value: Any) -> bool:
    """Return whether the value is an integer and not a truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


# ---- Parameters ----

Check = Callable[[str, Any], Any]
"""A function of name and value that raises a ValueError for a value that is not accepted."""


@dataclass(frozen=True)
class Parameter:
    """A declared parameter.

    `accepted` is None if only the data or a registry can say what is accepted; `check` is then called, if there is one.
    """

    name: str
    default: Any
    text: str
    annotation: str
    form: str
    accepted: tuple[Alternative, ...] | None
    check: Check | None
    named: tuple[str, ...]
    position: float
    is_positional: bool

    @property
    def is_required(self) -> bool:
        """Whether the parameter has no default."""
        return self.default is _REQUIRED

    def is_default(self, value: Any) -> bool:
        """Return whether the value is the default."""
        try:
            return bool(value is self.default or value == self.default)
        except (TypeError, ValueError):  # an array, whose comparison is an array
            return False

    @property
    def choices(self) -> tuple[str, ...]:
        """The strings that are accepted."""
        return sum((each.choices for each in self.accepted or () if isinstance(each, Choice)), self.named)

    @property
    def first_sentence(self) -> str:
        """The first sentence of the text, which stands alone."""
        return re.split(r"(?<=\.)\s", self.text)[0]

    def demand(self, value: Any) -> None:
        """Raise a ParameterError if the value is not accepted."""
        if self.accepted is not None:
            demand(self.name, value, *self.accepted)
        elif self.check is not None and not (value is None and self.default is None):
            self.check(self.name, value)

    def documented(self) -> str:
        """Return the entry of the docstring's section."""
        text = textwrap.fill(self.text, 108, break_on_hyphens=False)
        return f"{self.name} : {self.form}\n{textwrap.indent(text, '    ')}"


@dataclass(frozen=True)
class _Declaration:
    text: str
    default: Any
    bounds: Mapping[str, Any]
    check: Check | None
    choices: tuple[str, ...]
    form: str
    is_positional: bool


def parameter(
    text: str,
    *,
    default: Any = _REQUIRED,
    least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
    check: Check | None = None,
    choices: tuple[str, ...] = (),
    form: str = "",
    kw_only: bool = True,
) -> Any:
    """Declare a parameter in a class body.

    Parameters
    ----------
    text : str
        What the parameter controls. The first sentence stands alone, because the command line shows only that.
    default : object
        The default; a parameter without one must be given.
    least, above, below, most : float, optional
        Bounds of a number.
    infinite : bool
        Whether infinity is accepted.
    check : callable, optional
        Called with name and value, if the annotation does not say what is accepted. None is accepted if it is the
        default.
    choices : tuple of str
        Strings that `check` accepts among other values.
    form : str
        The type in the docstring, if the annotation does not say it; the choices are added.
    kw_only : bool
        False for the one parameter that may be given by position.
    """
    bounds = {"least": least, "above": above, "below": below, "most": most}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    return _Declaration(text, default, {**given, "infinite": infinite}, check, choices, form, not kw_only)


def fitted(*, init: Literal[False] = False) -> Any:
    """Declare an attribute that `fit` sets, so that type checkers do not take its annotation for a parameter."""
    return _FITTED


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter, fitted))
class Declared:
    """A class whose parameters are declared in its body and in the bodies of its bases.

    `position` orders groups of parameters: a group with a smaller position comes first in the signature. A parameter
    that is declared again in a subclass keeps its position.
    """

    _own_parameters: ClassVar[Mapping[str, Parameter]] = {}
    _parameters: ClassVar[Mapping[str, Parameter]] = {}

    def __init_subclass__(cls, *, position: float = 1, **others: Any) -> None:
        super().__init_subclass__(**others)
        for name in [name for name, value in vars(cls).items() if value is _FITTED]:
            delattr(cls, name)
        found: dict[str, Parameter] = {}
        for base in reversed(cls.__mro__[1:]):
            found.update(vars(base).get("_own_parameters", {}))
        own = {name: value for name, value in vars(cls).items() if isinstance(value, _Declaration)}
        for name in found.keys() & vars(cls).keys() - own.keys():
            if not hasattr(vars(cls)[name], "__get__"):
                raise TypeError(
                    f"{cls.__name__}.{name} = {vars(cls)[name]!r} has no effect; use parameter(...) of larank.declare"
                )
        for name in own:
            delattr(cls, name)
        cls._own_parameters = {
            name: _resolved(cls, name, each, found[name].position if name in found else position)
            for name, each in own.items()
        }
        found.update(cls._own_parameters)
        by_position = sorted(found.items(), key=lambda item: item[1].position)
        if list(by_position) == list(cls._parameters.items()):
            return
        cls._parameters = dict(by_position)
        if "__init__" not in vars(cls):
            cls.__init__ = _constructor(cls)  # type: ignore[method-assign]
        if cls.__doc__ is not None:  # python -OO removes docstrings
            cls.__doc__ = _with_parameters(cls)


class Value(Declared):
    """An immutable object that is made of its parameters: the switches of one algorithm."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self) or name not in self._parameters:
            raise AttributeError(f"{type(self).__name__} cannot be changed; make another one")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed; make another one")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).items()))

    def __repr__(self) -> str:
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name, each in self._parameters.items()
            if not each.is_default(getattr(self, name))
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _resolved(cls: type, name: str, declaration: _Declaration, position: float) -> Parameter:
    """Return the parameter with what its annotation says."""
    annotation = kind = cls.__annotations__[name]
    if not isinstance(annotation, str):
        annotation = " | ".join(map(inspect.formatannotation, _united(annotation)))
    accepted = None
    if declaration.check is None:
        if isinstance(kind, str):
            kind = eval(kind, vars(sys.modules[cls.__module__]))  # the annotation in a class body
        alternatives = [_alternative(each, declaration.bounds) for each in _united(kind)]
        if None not in alternatives:
            accepted = tuple(each for each in alternatives if each is not None)
    form = declaration.form or _form(annotation, accepted)
    if declaration.choices:
        form = " or ".join(["{" + ", ".join(f'"{choice}"' for choice in declaration.choices) + "}", form])
    if declaration.default is None:
        form += ", optional"
    elif declaration.default is not _REQUIRED:
        form += f", default={declaration.default!r}".replace("'", '"')
    text = " ".join(declaration.text.split())
    return Parameter(
        name,
        declaration.default,
        text,
        annotation,
        form,
        accepted,
        declaration.check,
        declaration.choices,
        position,
        declaration.is_positional,
    )


def _united(kind: Any) -> Sequence[Any]:
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if is_union else (kind,)


def _alternative(kind: Any, bounds: Mapping[str, Any]) -> Alternative | None:
    """Return what a member of a union accepts, or None if the annotation does not say it."""
    if kind in (None, types.NoneType):
        return Nothing()
    if kind is bool:
        return Flag()
    if kind is int:
        return Whole(**{name: int(bounds[name]) for name in ("least", "most") if name in bounds})
    if kind is float:
        return Number(**bounds)
    if typing.get_origin(kind) is Literal:
        return Choice(typing.get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Declared):
        return Object(kind)
    return None


def _form(annotation: str, accepted: tuple[Alternative, ...] | None) -> str:
    """Return the type as docstrings write it."""
    if accepted is None:
        return annotation.replace(" | None", "").replace(" | ", " or ")
    words = []
    for each in accepted:
        if isinstance(each, Choice):
            words.append("{" + ", ".join(f'"{choice}"' for choice in each.choices) + "}")
        elif isinstance(each, Object):
            words.append(each.kind.__name__)
        elif not isinstance(each, Nothing):
            words.append({Number: "float", Whole: "int", Flag: "bool"}[type(each)])
    return " or ".join(words)


def _constructor(cls: type[Declared]) -> Callable[..., None]:
    """Compile a constructor that takes the parameters and stores them unchanged."""
    ordered = sorted(cls._parameters.values(), key=lambda each: not each.is_positional)
    n_positional = sum(each.is_positional for each in ordered)
    arguments = [f"{each.name}" + ("" if each.is_required else f"=_defaults[{each.name!r}]") for each in ordered]
    arguments[n_positional:n_positional] = ["*"] if n_positional < len(arguments) else []
    body = "".join(f"    self.{each.name} = {each.name}\n" for each in ordered) or "    pass\n"
    scope: dict[str, Any] = {"_defaults": {each.name: each.default for each in ordered}}
    exec(f"def __init__(self, {', '.join(arguments)}):\n{body}", scope)
    constructor: Callable[..., None] = scope["__init__"]
    constructor.__module__, constructor.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    constructor.__annotations__ = {each.name: each.annotation for each in ordered} | {"return": None}
    return constructor


_SECTION = re.compile(r"^ *(Attributes|See Also|Notes|References|Examples)\n *-+$", re.MULTILINE)


def _with_parameters(cls: type[Declared]) -> str:
    """Return the docstring with the section "Parameters" before its other sections."""
    text = inspect.cleandoc(cls.__doc__ or "")
    if "Parameters\n----------" in text:  # a section written by hand
        return text
    following = _SECTION.search(text)
    end = len(text) if following is None else following.start()
    entries = "\n".join(each.documented() for each in cls._parameters.values())
    section = f"Parameters\n----------\n{entries}"
    return "\n\n".join(part for part in (text[:end].rstrip(), section, text[end:]) if part)


# ---- Validation ----


def parameters_of(kind: type) -> Mapping[str, Parameter]:
    """Return the declared parameters of a class by name; a subclass has the parameters of its library class."""
    return kind._parameters if issubclass(kind, Declared) else {}


def library_class(kind: type) -> type | None:
    """Return the nearest class of this library among a class and its bases, or None if none of them is."""
    return next((each for each in kind.__mro__ if each.__module__.partition(".")[0] == "larank"), None)


def defaults(kind: type) -> dict[str, Any]:
    """Return the defaults of the declared parameters."""
    return {name: each.default for name, each in parameters_of(kind).items()}


def values_of(model: Any) -> dict[str, Any]:
    """Return the parameters that a model is trained with.

    They are read from the attributes, because the constructor of a subclass may fix, rename or add parameters, which
    changes what `get_params` returns.
    """
    return {name: getattr(model, name) for name in parameters_of(type(model))}


def check(model: Any) -> None:
    """Raise a ParameterError if a value is not accepted, or cannot be combined with others.

    A class states what cannot be combined in a method `_check_together`.
    """
    for name, each in parameters_of(type(model)).items():
        each.demand(getattr(model, name))
    together = getattr(model, "_check_together", None)
    if together is not None:
        together()
