"""What the attributes of a fitted model may be: kinds, ranges, and shapes in terms of each other.

A class declares a kind for each attribute, in the order in which they are checked::

    coef_=floats("n_functions", "n_features_in_")

A dimension is a number, a function of the `Scope`, or the name of a size. The first attribute that shows a size decides
it, and the others must agree; a `count` is a size by its own name.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from numbers import Integral, Real
from reprlib import Repr
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from larank.sparse import check_sparse

_NAMES = {"b": "booleans", "i": "integers", "u": "integers", "f": "floats", "U": "text", "O": "objects"}
_LARGEST = float(np.finfo(np.float64).max)
# The largest number in an array of a model: costs and squared norms of training data are at most 1e100, so coefficients
# and weights stay below, and a product of two such numbers is finite.
_LARGEST_ENTRY = 1e150
_shown = Repr()
_shown.maxstring = _shown.maxother = 60


class SchemaError(ValueError):
    """A value that is not of the kind that was declared: which, what came, and what would do."""


@dataclass
class Scope:
    """What is known so far of a model: its parameters and attributes by name, and the sizes they have shown."""

    known: Mapping[str, Any]
    sizes: dict[str, int] = field(default_factory=dict)

    def size(self, dimension: Dimension) -> int | None:
        """The size of a dimension, None while it is open."""
        if callable(dimension):
            return dimension(self)
        return dimension if isinstance(dimension, int) else self.sizes.get(dimension)

    def told(self, dimensions: Sequence[Dimension]) -> str:
        """A shape in words, with names for sizes that are open."""
        sizes = [self.size(each) for each in dimensions]
        return f"({', '.join(str(d if n is None else n) for n, d in zip(sizes, dimensions, strict=True))})"

    def agrees(self, dimensions: Sequence[Dimension], found: Sequence[int]) -> bool:
        """Whether a shape fits; what was open is decided then."""
        if len(found) != len(dimensions):
            return False
        for dimension, n in zip(dimensions, found, strict=True):
            known = self.size(dimension)
            if known is None and isinstance(dimension, str):
                self.sizes[dimension] = n
            elif known != n:
                return False
        return True


Dimension = int | str | Callable[[Scope], int]
Kind = Callable[[str, Any, Scope], None]
"""It raises a SchemaError, with the name it is told, for a value that is of another kind."""
Schema = Mapping[str, Kind]


def check(schema: Schema, values: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """Raise a SchemaError unless the values are what the schema declares; the parameters may decide what that is."""
    scope = Scope({**parameters, **values})
    for name, kind in schema.items():
        _check_entry(name, kind, name in values, values.get(name), scope)


def _check_entry(name: str, kind: Kind, is_there: bool, value: Any, scope: Scope) -> None:
    wanted = kind.when(scope) if isinstance(kind, _Given) else True
    if is_there and wanted is False:
        raise SchemaError(f"{name} must not be there beside the other parameters and attributes")
    if is_there:
        kind(name, value, scope)
    elif wanted:
        raise SchemaError(f"{name} is missing")


def _refuse(name: str, wanted: str, value: Any) -> NoReturn:
    raise SchemaError(f"{name} must be {wanted}, got {_told(value)}")


def _told(value: Any) -> str:
    if isinstance(value, np.ndarray) or issparse(value):
        return f"{'a matrix' if issparse(value) else 'an array'} of {value.dtype} of shape {value.shape}"
    return _shown.repr(value)


# ---- What need not be there ----


@dataclass(frozen=True)
class _Given:
    kind: Kind
    when: Callable[[Scope], bool | None]

    def __call__(self, name: str, value: Any, scope: Scope) -> None:
        self.kind(name, value, scope)


def given(kind: Kind, when: Callable[[Scope], bool | None]) -> Kind:
    """Something that must be there, must not, or may be or not, as a function says: True, False or None."""
    return _Given(kind, when)


def optional(kind: Kind) -> Kind:
    """Something that may be missing."""
    return _Given(kind, lambda scope: None)


def anything(name: str, value: Any, scope: Scope) -> None:
    """Whatever there is."""


def nullable(kind: Kind) -> Kind:
    """None, or something of a kind."""
    return lambda name, value, scope: None if value is None else kind(name, value, scope)


# ---- Single values ----


def number(least: float = -math.inf, above: float = -math.inf) -> Kind:
    """A finite real number, not below `least`, and above `above`."""

    def check(name: str, value: Any, scope: Scope) -> None:
        is_number = isinstance(value, Real) and not isinstance(value, bool) and abs(value) <= _LARGEST  # type: ignore
        if not is_number or value < least or value <= above:
            bounds = f" above {above:g}" if above > -math.inf else f" from {least:g} on" if least > -math.inf else ""
            _refuse(name, f"a finite number{bounds}", value)

    return check


def integer(least: int = 0, most: int = 2**62) -> Kind:
    """A whole number, by default one that can be counted on from."""

    def check(name: str, value: Any, scope: Scope) -> None:
        if not _is_whole(value) or not least <= value <= most:
            _refuse(name, f"a whole number from {least} to {most}", value)

    return check


RANDOM_STATE = integer(most=2**64 - 1)


def equal(size: Dimension, least: int = 0) -> Kind:
    """A whole number that is a size."""

    def check(name: str, value: Any, scope: Scope) -> None:
        integer(least)(name, value, scope)
        if not scope.agrees((size,), (int(value),)):
            _refuse(name, f"{scope.size(size)} as other attributes say", value)

    return check


def count(least: int = 0) -> Kind:
    """A whole number that is the size of its own name."""
    return lambda name, value, scope: equal(name, least)(name, value, scope)


def one_of(*choices: str | bool) -> Kind:
    """One of some values."""

    def check(name: str, value: Any, scope: Scope) -> None:
        if not isinstance(value, str | bool) or value not in choices:
            _refuse(name, f"one of {', '.join(map(repr, choices))}", value)

    return check


flag = one_of(False, True)


def text(name: str, value: Any, scope: Scope) -> None:
    """Some text."""
    if not isinstance(value, str):
        _refuse(name, "text", value)


def instance(*classes: str) -> Kind:
    """An object of a class of one of these names."""

    def check(name: str, value: Any, scope: Scope) -> None:
        if type(value).__name__ not in classes:
            _refuse(name, f"a {' or '.join(classes)}", value)

    return check


RESULT = instance("Result")


# ---- Arrays ----


def _check_array(name: str, value: Any, types: Sequence[str], shape: Sequence[Dimension], scope: Scope) -> None:
    """Raise unless it is an array of one of some types, which are names, or kinds where the size is left open."""
    is_array = isinstance(value, np.ndarray) and (value.dtype.name in types or value.dtype.kind in types)
    if not is_array or not scope.agrees(shape, value.shape):
        wanted = " or ".join(dict.fromkeys(_NAMES.get(each, each) for each in types))
        _refuse(name, f"an array of {wanted} of shape {scope.told(shape)}", value)


def floats(*shape: Dimension, least: float = -math.inf, finite: bool = True, single: bool = False) -> Kind:
    """An array of numbers in double precision, or perhaps in `single` precision, not below `least`."""
    types = ("float32", "float64") if single else ("float64",)

    def check(name: str, value: Any, scope: Scope) -> None:
        _check_array(name, value, types, shape, scope)
        if finite:
            _check_finite(name, value)
        if least > -math.inf and (value < least).any():
            _refuse(name, f"an array of numbers from {least:g} on", value.min())

    return check


def _check_finite(name: str, values: Any) -> None:
    if not np.isfinite(values).all():
        raise SchemaError(f"{name} must be finite, got {values[~np.isfinite(values)][0]}")
    if values.size and not -_LARGEST_ENTRY <= float(values.min()) <= float(values.max()) <= _LARGEST_ENTRY:
        beyond = values.flat[int(np.argmax(np.abs(values)))]
        raise SchemaError(f"{name} must hold numbers from -{_LARGEST_ENTRY:g} to {_LARGEST_ENTRY:g}, got {beyond:g}")


def integers(
    *shape: Dimension, least: int = 0, below: Dimension = 2**63, unique: bool = False, dtype: str = "int64"
) -> Kind:
    """An array of whole numbers in a range; each but once, if they are `unique`."""

    def check(name: str, value: Any, scope: Scope) -> None:
        _check_array(name, value, (dtype,), shape, scope)
        if value.size:
            end, low, high = scope.size(below), int(value.min()), int(value.max())
            if end is None or low < least or high >= end:
                raise SchemaError(f"{name} must be from {least} on and below {end}, got {low} to {high}")
        if unique and len(np.unique(value)) < value.size:
            raise SchemaError(f"{name} must hold every number once, got some twice")

    return check


def octets(size: Dimension) -> Kind:
    """Bytes that others know how to read."""
    return integers(size, dtype="uint8")


def starts(parts: Dimension, end: Dimension) -> Kind:
    """Where each of some parts begins, from 0 on, and where the last of them ends."""

    def check(name: str, value: Any, scope: Scope) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind != "i" or value.ndim != 1 or not len(value):
            _refuse(name, "an array of whole numbers, one more than there are parts", value)
        if value[0] != 0 or (value[1:] < value[:-1]).any():
            raise SchemaError(f"{name} must ascend from 0, got numbers that do not")
        if not scope.agrees((parts, end), (len(value) - 1, int(value[-1]))):
            wanted, found = scope.told((parts, end)), (len(value) - 1, int(value[-1]))
            raise SchemaError(f"{name} must have (parts, their end) as in {wanted}, got {found}")

    return check


def csr(rows: Dimension, columns: Dimension, *, full: bool = False, single: bool = False) -> Kind:
    """A CSR matrix of finite numbers, with each entry once; `full` if no row is empty."""
    types = ("float32", "float64") if single else ("float64",)

    def check(name: str, value: Any, scope: Scope) -> None:
        is_csr = issparse(value) and value.format == "csr" and value.dtype.name in types
        if not is_csr or not scope.agrees((rows, columns), value.shape):
            _refuse(name, f"a CSR matrix of {' or '.join(types)} of shape {scope.told((rows, columns))}", value)
        check_sparse(value)
        _check_finite(name, value.data)
        if full and not (value.indptr[1:] > value.indptr[:-1]).all():
            raise SchemaError(f"{name} must have an entry in every row, got none in some")
        if not value.has_canonical_format and not value.sorted_indices().has_canonical_format:
            raise SchemaError(f"{name} must hold every entry once, got some twice")

    return check


def matrix(rows: Dimension, columns: Dimension, *, of_bytes: Callable[[Scope], bool] = lambda scope: False) -> Kind:
    """Examples: finite numbers of either precision in an array or a CSR matrix, or perhaps an array of bytes."""
    dense, sparse = floats(rows, columns, single=True), csr(rows, columns, single=True)

    def check(name: str, value: Any, scope: Scope) -> None:
        if of_bytes(scope) and getattr(value, "dtype", None) in (np.uint8, np.int8):
            _check_array(name, value, ("uint8", "int8"), (rows, columns), scope)
        else:
            (sparse if issparse(value) else dense)(name, value, scope)

    return check


def texts(size: Dimension) -> Kind:
    """An array of text."""

    def check(name: str, value: Any, scope: Scope) -> None:
        _check_array(name, value, "OU", (size,), scope)
        several(text)(name, value.tolist(), scope)

    return check


def labels(size: Dimension, *, among: str | None = None, repeated: bool = False) -> Kind:
    """An array of labels: different ones in order, or some of those in another attribute, each once or `repeated`."""

    def check(name: str, value: Any, scope: Scope) -> None:
        _check_array(name, value, "biufUO", (size,), scope)
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            _refuse(name, "labels, which are text, numbers or tuples of these", value[~np.isfinite(value)][0])
        if value.dtype.kind == "O":
            for item in value:
                if not _is_label(item):
                    _refuse(name, "labels, which are text, numbers or tuples of these", item)
        if among is not None:
            _check_known(name, value, scope.known.get(among), among)
            if not repeated and _n_different(value) < len(value):
                raise SchemaError(f"{name} must hold every label once, got some twice")
        elif not _ascends(value):
            twice = _n_different(value) < len(value)
            wanted = "hold every label once, got some twice" if twice else "hold labels in ascending order, got others"
            raise SchemaError(f"{name} must {wanted}")

    return check


def _check_known(name: str, value: Any, known: Any, among: str) -> None:
    if not isinstance(known, np.ndarray) or (known.dtype.kind in "OU") != (value.dtype.kind in "OU"):
        _refuse(name, f"labels of the type of those in {among}", value)
    if value.dtype.kind == "O" or known.dtype.kind == "O":
        known_labels = set(known.tolist())
        strange = next((item for item in value.tolist() if item not in known_labels), None)
        if strange is not None:
            _refuse(name, f"labels out of {among}", strange)
    elif not (is_known := np.isin(value, known)).all():
        _refuse(name, f"labels out of {among}", value[~is_known][:1].tolist()[0])


def _n_different(value: Any) -> int:
    """How many different labels an array has."""
    return len(set(value.tolist())) if value.dtype.kind == "O" else len(np.unique(value))


def _is_label(item: Any) -> bool:
    if isinstance(item, tuple):
        return all(map(_is_label, item))
    return isinstance(item, str) or (isinstance(item, Real) and abs(item) < math.inf)  # type: ignore[operator]


def _ascends(labels: NDArray[Any]) -> bool:
    """Whether each label is above the one before, so that no two are equal."""
    if labels.dtype.kind != "O":  # without a Python object for each
        return bool((labels[1:] > labels[:-1]).all())
    try:
        return all(a < b for a, b in pairwise(labels))
    except TypeError:  # of different types
        return False


# ---- Containers ----


def row(*kinds: Kind) -> Kind:
    """A list or tuple with one entry of each of some kinds."""

    def check(name: str, value: Any, scope: Scope) -> None:
        if not isinstance(value, list | tuple) or len(value) != len(kinds):
            _refuse(name, f"a list of {len(kinds)} entries", value)
        for k, (kind, entry) in enumerate(zip(kinds, value, strict=True)):
            kind(f"{name}[{k}]", entry, scope)

    return check


def several(kind: Kind, size: Dimension | None = None, *, unique: bool = False) -> Kind:
    """A list or tuple of one kind; `unique` if no entry comes twice."""

    def check(name: str, value: Any, scope: Scope) -> None:
        if not isinstance(value, list | tuple):
            _refuse(name, "a list", value)
        if size is not None and not scope.agrees((size,), (len(value),)):
            raise SchemaError(f"{name} must have {scope.size(size)} entries, got {len(value)}")
        for k, entry in enumerate(value):
            kind(f"{name}[{k}]", entry, scope)
        if unique and len(set(value)) < len(value):
            raise SchemaError(f"{name} must hold every entry once, got some twice")

    return check


def record(**kinds: Kind) -> Kind:
    """A dict with these entries."""

    def check(name: str, value: Any, scope: Scope) -> None:
        if not isinstance(value, dict) or not value.keys() <= kinds.keys():
            _refuse(name, f"a dict of {', '.join(kinds)}", value)
        for key, kind in kinds.items():
            _check_entry(f"{name}[{key!r}]", kind, key in value, value.get(key), scope)

    return check


def mapping(keys: Kind, values: Kind) -> Kind:
    """A dict from one kind to another."""

    def check(name: str, value: Any, scope: Scope) -> None:
        if not isinstance(value, dict):
            _refuse(name, "a dict", value)
        for key, entry in value.items():
            keys(f"a key of {name}", key, scope)
            values(f"{name}[{key!r}]", entry, scope)

    return check


# ---- Dataclasses: their types are their schema ----


@cache
def _hints(cls: Hashable) -> dict[str, Any]:
    return typing.get_type_hints(cls)  # takes long


def check_fields(cls: type[Any], settings: Any) -> None:
    """Raise unless these are settings of a dataclass, of the types that it declares."""
    if not isinstance(settings, dict):
        _refuse(cls.__name__, "a dict of its fields", settings)
    hints, fields = _hints(typing.cast(Hashable, cls)), {each.name: each for each in dataclasses.fields(cls)}
    unknown = settings.keys() - fields.keys()
    if unknown:
        raise SchemaError(f"{cls.__name__} has no {sorted(map(str, unknown))}")
    for name, each in fields.items():
        if name in settings and not _is_of_type(settings[name], hints[name]):
            _refuse(f"{cls.__name__}.{name}", f"of type {each.type}", settings[name])
        if name not in settings and each.default is each.default_factory is dataclasses.MISSING:
            raise SchemaError(f"{cls.__name__}.{name} is missing")


def _is_of_type(value: Any, hint: Any) -> bool:
    """Whether a value is of a type; of those that are not known here, anything may be."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_is_of_type(value, each) for each in arguments)
    if origin is typing.Literal:
        return isinstance(value, str) and value in arguments
    if origin is tuple:  # of any length
        return isinstance(value, tuple) and all(_is_of_type(each, arguments[0]) for each in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(
            _is_of_type(k, arguments[0]) and _is_of_type(v, arguments[1]) for k, v in value.items()
        )
    if hint is float:
        return isinstance(value, float) or (_is_whole(value) and abs(value) <= _LARGEST)
    if hint is int:
        return _is_whole(value) and -(2**63) <= value < 2**63
    return isinstance(value, hint) if isinstance(hint, type) else True


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
