"""Models in files: one safetensors file per fitted estimator, no pickle.

Arrays are stored as tensors. Everything else stands as JSON in the metadata entry `larank`: a digest of the file, the
name and version of the format, the version of the library, the class, the parameters of its constructor and its fitted
attributes. `larank.data.arrayfile` writes and reads such files.

An estimator class takes part by declaring the fitted attributes that make up the model, with `larank.data.schema`::

    @persistable(classes_=labels("n_classes"), coef_=floats(functions, "n_features_in_"), n_features_in_=count(1))
    class LinearMulticlassSVC(ClassifierMixin, BaseEstimator): ...

`load` checks the saved parameters as training would, and the attributes by this schema, then calls the constructor and
sets the attributes. `save` checks the same, so that no file is written that could not be loaded. Parameters and
attributes may be None, booleans, numbers, strings, arrays of numbers or strings, CSR matrices, a `Result`, dataclasses
registered with `persistable_value`, value objects that the package exports such as `larank.LaRank`, other registered
estimators, and lists, tuples and dicts of these. Pipelines of registered estimators are saved, too.
"""

from __future__ import annotations

import importlib
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.exceptions import NotFittedError

from larank.data import arrayfile, schema
from larank.data.arrayfile import DAMAGE, checked_shape, reading
from larank.data.arrayfile import ArrayInfo as ArrayInfo
from larank.data.arrayfile import ModelFileError as ModelFileError
from larank.data.files import atomic_write
from larank.data.schema import Kind, Schema, check_fields
from larank.declare import Declared, Value, defaults, library_class, values_of
from larank.declare import check as check_parameters
from larank.publishing import one_model
from larank.sparse import csr_of

_SAVED = "larank.save writes fitted estimators of larank and pipelines of them"
_FORMAT = arrayfile.Format("larank-model", 3)
_TEXT_OR_OBJECTS = re.compile(r"[<>|=]?U\d{1,9}|\|?O")
_MOST_POINTS = 200_000  # points of a history in a file
_MOST_CHARACTERS = 1_000_000  # characters in the text of all parameters of an estimator
_ROOM_FOR_TEXT = 16_000_000  # bytes of an array of strings, more only for more text
_PathLike = str | os.PathLike[str]
_SPARSE = {"csr_matrix": csr_matrix, "csr_array": csr_array}


class _Estimator(Protocol):
    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...


_Class = TypeVar("_Class", bound=type[_Estimator])


class _Registered(NamedTuple):
    """A class that can be saved, and what its fitted attributes are."""

    cls: type[_Estimator]
    schema: Schema


_registry: dict[str, _Registered] = {}


def persistable(**attributes: Kind) -> Callable[[_Class], _Class]:
    """Register an estimator class for `save` and `load`.

    Parameters
    ----------
    **attributes : kind
        The fitted attributes that make up the model, and what each may be (`larank.data.schema`), in the order in which
        they are checked.

    Returns
    -------
    callable
        A decorator that returns the class unchanged.
    """

    def register(cls: _Class) -> _Class:
        _registry[cls.__name__] = _Registered(cls, attributes)
        return cls

    return register


def _register_pipelines() -> None:
    """Those of scikit-learn, once one is met: to import them takes as long as all the rest. Fitted are their steps."""
    persistable()(importlib.import_module("sklearn.pipeline").Pipeline)


_Value = TypeVar("_Value", bound=type[Any])
_values: dict[str, type[Any]] = {}


def persistable_value(cls: _Value) -> _Value:
    """Register a dataclass whose instances may be parameters of saved estimators; a decorator."""
    _values[cls.__name__] = cls
    return cls


def save(estimator: _Estimator, path: _PathLike) -> None:
    """Write a fitted estimator to a file, replacing it as a whole.

    Parameters
    ----------
    estimator : estimator
        Fitted, of a class registered with `persistable`.
    path : path-like
        Customarily `*.larank`.

    Raises
    ------
    TypeError
        If the class is not registered, or a parameter or attribute is of a kind that cannot be saved, such as
        a random generator or a function.
    ValueError
        If a parameter or attribute is not what it must be, or if lists and texts of the model take so much memory
        that the file could not be loaded.
    NotFittedError
        If the estimator has none of its fitted attributes.
    """
    if isinstance(estimator, str | os.PathLike):
        raise TypeError(f"save takes the estimator first and then the path. Call save(model, {os.fspath(estimator)!r})")
    if not is_persistable(estimator):
        raise TypeError(f"{type(estimator).__name__} cannot be saved: {_why_not_persistable(estimator)}")
    arrays: dict[str, NDArray[Any]] = {}
    description = {"library_version": version("larank"), **_parts_of(one_model(estimator), "", arrays)}
    with atomic_write(path) as file:
        arrayfile.write(file, _FORMAT, description, arrays)


def is_persistable(estimator: Any) -> bool:
    """Whether `save` knows its class."""
    cls = type(estimator)
    if cls.__module__ == "sklearn.pipeline":
        _register_pipelines()
    is_subclass = library_class(cls) not in (None, cls)
    return not is_subclass and cls.__name__ in _registry and _registry[cls.__name__].cls is cls


def _why_not_persistable(estimator: Any) -> str:
    cls = type(estimator)
    ours = library_class(cls)
    if ours is None or ours is cls:
        if hasattr(cls, "save"):
            return "it has a file format of its own. Use its method save(path)"
        best = "Save its best_estimator_, or use" if hasattr(estimator, "best_estimator_") else "Use"
        return f"{_SAVED}. {best} joblib or pickle"
    return (
        f"a file does not hold the code of a subclass of {ours.__name__}. Train a {ours.__name__} with the same "
        "parameters, or use pickle"
    )


def _parts_of(estimator: _Estimator, within: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Class, parameters and attributes of a fitted estimator; `within` is where the names of its arrays begin."""
    cls = type(estimator)
    for step, part in getattr(estimator, "steps", ()):
        if hasattr(part, "get_params") and not is_persistable(part):
            raise TypeError(
                f"the step {step!r} of the {cls.__name__} is a {type(part).__name__}, which cannot be saved: {_SAVED}. "
                "larank.TableEncoder scales features and can be saved. Otherwise save the other steps, or use joblib "
                "or pickle for the whole pipeline"
            )
    fitted = {name: getattr(estimator, name) for name in _registry[cls.__name__].schema if hasattr(estimator, name)}
    _, is_within_parameters, place = within.rpartition("parameters/")
    is_parameter = bool(is_within_parameters) and not place.startswith("steps/")  # which need not be fitted
    if not fitted and _registry[cls.__name__].schema and not is_parameter:
        raise NotFittedError(f"this {cls.__name__} is not fitted; call fit before saving it")
    parameters = _parameters(estimator)
    parts = {
        "class": cls.__name__,
        "parameters": {k: _encode(v, f"{within}parameters/{k}", arrays) for k, v in parameters.items()},
        "attributes": {k: _encode(v, f"{within}{k}", arrays) for k, v in fitted.items()},
    }
    try:
        _check_model(estimator, fitted, may_be_unfitted=is_parameter)
    except ValueError as error:
        raise ValueError(f"this {cls.__name__} cannot be saved: {error}") from error
    return parts


def load(path: _PathLike) -> Any:
    """Read an estimator that `save` wrote.

    The file must be as it was written, byte for byte: its digest is checked. Parameters and attributes are checked
    before anything is built: the parameters as in training, the attributes by the schema of the class. Loading takes at
    most 64 MB and 4 times the size of the file.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    estimator
        Equal in parameters and fitted attributes to the one that was saved.

    Raises
    ------
    ModelFileError
        If the file is not a model, is cut short or damaged, was written by an older or a newer version, needs an
        unknown class, or holds what no model of its class could have.
    """
    description, _, arrays = _read(path)
    with reading(path):
        return _Reader(lambda name: arrays.pop(name, None)).estimator(description)


def describe(path: _PathLike) -> dict[str, Any]:
    """Tell what a model file holds, without building the estimator.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    dict
        `format`, `format_version`, `library_version`, `class`, `parameters` and `attributes`; numeric arrays
        appear as `ArrayInfo`, except for the labels in `classes_`, and estimators within the model as dicts of their
        own `class`, `parameters` and `attributes`.

    Raises
    ------
    ModelFileError
        If the file is not a model, is cut short or damaged, or was written by an older or a newer version.
    """
    description, entries, arrays = _read(path, lambda name: name.rpartition("/")[2] == "classes_")
    with reading(path):
        _import_named(description["class"])  # and what its values are made of
        reader = _Reader(lambda name: arrays.get(name, entries.get(name)), builds=False)
        parts = {part: reader.values(description[part], part) for part in ("parameters", "attributes")}
    return {**description, **parts}


def _encode(value: Any, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """The JSON form of a value; its numeric arrays go to `arrays` under names that begin with `name`."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, name, arrays)
    if issparse(value) and type(value).__name__ in _SPARSE:
        for part in ("data", "indices", "indptr"):
            arrays[f"{name}/{part}"] = getattr(value, part)
        return {"$sparse": type(value).__name__, "name": name, "shape": list(value.shape)}
    if isinstance(value, list | tuple):
        items = [_encode(item, f"{name}/{k}", arrays) for k, item in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, dict):
        pairs = enumerate(value.items())
        return {"$dict": [[_encode(k, name, arrays), _encode(v, f"{name}/{i}", arrays)] for i, (k, v) in pairs]}
    if type(value) is _values.get("Result"):
        settings = value.to_dict()
        settings["history"] = _columns(settings["history"])
        return {"$result": _encode(settings, name, arrays)}
    if _is_value(value):
        is_declared = isinstance(value, Declared)
        settings = values_of(value) if is_declared else {each.name: getattr(value, each.name) for each in fields(value)}
        return {"$value": type(value).__name__, "settings": _encode(settings, name, arrays)}
    if is_persistable(value):
        return {"$estimator": _parts_of(one_model(value), f"{name}/", arrays)}
    raise TypeError(_cannot_save(value, name))


def _columns(points: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Points of a history as one list for each of their fields, which take a fraction of the memory of dicts."""
    if len(points) > _MOST_POINTS:
        raise ValueError(f"a history may have at most {_MOST_POINTS} points to be saved, got {len(points)}")
    return {field: [point[field] for point in points] for field in (points[0] if points else ())}


def _points(columns: Any) -> Iterator[dict[str, Any]]:
    """The points of a history, from its columns."""
    if not isinstance(columns, dict) or not all(isinstance(column, list) for column in columns.values()):
        raise ValueError("the history of a Result must be a dict of lists")
    if max(map(len, columns.values()), default=0) > _MOST_POINTS:
        raise ValueError(f"the history of a Result must have at most {_MOST_POINTS} points")
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _encode_array(value: NDArray[Any], name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    if value.dtype.kind in "UO":
        items = [_encode(item, name, arrays) for item in value.ravel().tolist()]
        if value.dtype.kind == "U":
            _check_width(items, value.dtype)
        return {"$objects": items, "dtype": value.dtype.str, "shape": list(value.shape)}
    if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
        raise TypeError(_cannot_save(value, name))
    arrays[name] = np.asarray(value, dtype=value.dtype.newbyteorder("="), order="C")
    return {"$array": name}


def _cannot_save(value: Any, name: str) -> str:
    kind = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
    owner, _, inner = name.partition("/")
    what = f"the parameter {inner!r}" if owner == "parameters" else f"the attribute {name!r}"
    if isinstance(value, np.random.Generator | np.random.RandomState):
        instead = "use None or an integer seed instead"
    elif inner == "kernel":
        instead = "a file holds no code. Use the name of a kernel, kernel='precomputed', or pickle"
    else:
        instead = "use joblib or pickle for such a model"
    return f"{what} is {kind}, which cannot be saved; {instead}"


class _Reader:
    """Values from their description.

    `array` gives the array of a name, or None where there is none; a file names each array once, so that no file takes
    more memory than its size. Without `builds`, estimators within others are told as they stand there. Estimators that
    are parameters may be unfitted.
    """

    def __init__(self, array: Callable[[str], Any], builds: bool = True, of_parameters: bool = False) -> None:
        self._array, self._builds, self._of_parameters = array, builds, of_parameters

    def estimator(self, parts: Any) -> _Estimator:
        """An estimator whose parameters and attributes are what they must be."""
        if not isinstance(parts, dict) or not {"class", "parameters", "attributes"} <= parts.keys():
            raise ValueError("an estimator has a class, parameters and attributes")
        kind = _class_named(parts["class"])
        name = kind.cls.__name__
        parameters = _Reader(self._array, self._builds, of_parameters=True).values(parts["parameters"], "parameters")
        unknown = parameters.keys() - (_PIPELINE if name == "Pipeline" else defaults(kind.cls).keys())
        if unknown:
            raise ModelFileError(f"holds parameters that {name} does not have: {sorted(unknown)}")
        estimator = kind.cls(**parameters)
        attributes = self.values(parts["attributes"], "attributes")
        unknown = attributes.keys() - kind.schema.keys()
        if unknown:
            raise ModelFileError(f"holds attributes that {name} does not have: {sorted(unknown)}")
        _check_model(estimator, attributes, may_be_unfitted=self._of_parameters)
        for attribute, value in attributes.items():
            setattr(estimator, attribute, value)
        return estimator

    def values(self, coded: Any, place: str) -> dict[str, Any]:
        """Those of a dict, by name."""
        if not isinstance(coded, dict):
            raise ValueError(f"{place} must be a dict, got a {type(coded).__name__}")
        found = {}
        for name, value in coded.items():
            try:
                found[name] = self.value(value)
            except ModelFileError:
                raise
            except DAMAGE as error:
                raise ValueError(f"{place}, {name}: {error or type(error).__name__}") from error
        return found

    def value(self, coded: Any) -> Any:
        """One value of any kind."""
        if isinstance(coded, list):
            for k, item in enumerate(coded):  # in place, so that no second list takes memory
                coded[k] = self.value(item)
            return coded
        if not isinstance(coded, dict):
            return coded
        for mark, read in _MARKS.items():
            if mark in coded:
                return read(self, coded)
        raise ValueError(f"there is no value marked {next(iter(coded), '')!r}")

    def array(self, name: Any) -> Any:
        """An array of the file."""
        found = self._array(name) if isinstance(name, str) else None
        if found is None:
            raise ValueError(f"the array {name!r} is missing, or there twice")
        return found

    def _number(self, coded: Mapping[str, Any]) -> float:
        if coded["$float"] not in ("inf", "-inf", "nan"):
            raise ValueError(f"$float must be inf, -inf or nan, got {coded['$float']!r}")
        return float(coded["$float"])

    def _tuple(self, coded: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(self._list(coded["$tuple"]))

    def _list(self, coded: Any) -> list[Any]:
        if not isinstance(coded, list):
            raise ValueError(f"there must be a list, got a {type(coded).__name__}")
        items: list[Any] = self.value(coded)
        return items

    def _dict(self, coded: Mapping[str, Any]) -> dict[Any, Any]:
        pairs = self._list(coded["$dict"])
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise ValueError("a dict must be a list of pairs")
        return dict(pairs)

    def _value(self, coded: Mapping[str, Any]) -> Any:
        cls = _value_class(coded["$value"])
        settings = self.value(coded.get("settings"))
        if not issubclass(cls, Declared):
            check_fields(cls, settings)
            return cls(**settings)
        if not isinstance(settings, dict) or not settings.keys() <= defaults(cls).keys():
            raise ValueError(f"the settings of {cls.__name__} must be among {list(defaults(cls))}; got {settings!r}")
        value = cls(**settings)
        check_parameters(value)
        return value

    def _nested(self, coded: Mapping[str, Any]) -> _Estimator | dict[str, Any]:
        parts = coded["$estimator"]
        if self._builds:
            return self.estimator(parts)
        _import_named(parts["class"])
        told = {part: self.values(parts[part], part) for part in ("parameters", "attributes")}
        return {"class": parts["class"], **told}

    def _result(self, coded: Mapping[str, Any]) -> Any:
        settings = self.value(coded["$result"])
        if isinstance(settings, dict):
            settings["history"] = _points(settings.get("history"))
        return _value_class("Result").from_dict(settings)

    def _objects(self, coded: Mapping[str, Any]) -> NDArray[Any]:
        items, dtype = self._list(coded["$objects"]), coded.get("dtype")
        shape = checked_shape(coded.get("shape"))
        if not isinstance(dtype, str) or not _TEXT_OR_OBJECTS.fullmatch(dtype) or math.prod(shape) != len(items):
            raise ValueError(f"{len(items)} objects cannot be an array of {dtype!r} of shape {shape}")
        if "U" in dtype:
            _check_width(items, np.dtype(dtype))
        objects = np.empty(len(items), dtype=object)
        for k, item in enumerate(items):
            objects[k] = item
        return objects.astype(np.dtype(dtype), copy=False).reshape(shape)

    def _sparse(self, coded: Mapping[str, Any]) -> Any:
        data, indices, indptr = (self.array(f"{coded.get('name')}/{part}") for part in ("data", "indices", "indptr"))
        shape = checked_shape(coded.get("shape"))
        if coded["$sparse"] not in _SPARSE:
            raise ValueError(f"there is no sparse matrix {coded['$sparse']!r}")
        if isinstance(data, ArrayInfo):
            return ArrayInfo(data.dtype, shape)
        return csr_of(data, indices, indptr, shape, _SPARSE[coded["$sparse"]])


_MARKS: Mapping[str, Callable[[_Reader, Mapping[str, Any]], Any]] = {
    "$float": _Reader._number,
    "$tuple": _Reader._tuple,
    "$dict": _Reader._dict,
    "$value": _Reader._value,
    "$estimator": _Reader._nested,
    "$result": _Reader._result,
    "$objects": _Reader._objects,
    "$sparse": _Reader._sparse,
    "$array": lambda reader, coded: reader.array(coded["$array"]),
}


def _check_width(items: list[Any], dtype: np.dtype[Any]) -> None:
    """NumPy gives every string the room of the longest one, whatever is in it: a small file must not ask for much."""
    if not all(isinstance(item, str) for item in items):
        raise ValueError(f"an array of {dtype} must hold text")
    most = _ROOM_FOR_TEXT + 4 * sum(map(len, items))
    if len(items) * dtype.itemsize > most:
        raise ValueError(
            f"{len(items)} strings as {dtype} take {len(items) * dtype.itemsize} bytes, where {most} are allowed; an "
            "array of objects would do"
        )


def _check_model(estimator: Any, attributes: Mapping[str, Any], *, may_be_unfitted: bool) -> None:
    """Raise unless parameters and attributes are what an estimator of its class can have."""
    characters = _characters(_parameters(estimator))
    if characters > _MOST_CHARACTERS:
        raise ValueError(f"parameters must hold at most {_MOST_CHARACTERS} characters of text, got {characters}")
    if isinstance(estimator, Declared):
        check_parameters(estimator)
    else:
        _check_pipeline(estimator)
    if may_be_unfitted and not attributes:
        return
    schema.check(_registry[type(estimator).__name__].schema, attributes, _parameters(estimator))


_PIPELINE = {"steps", "memory", "transform_input", "verbose"}


def _parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator or of a pipeline."""
    found: dict[str, Any] = estimator.get_params(deep=False) if hasattr(estimator, "steps") else values_of(estimator)
    return found


def _check_pipeline(pipeline: Any) -> None:
    """Raise unless a pipeline of a file has steps with names, transformers and in the end anything with `fit`."""
    steps = pipeline.steps
    pairs = list(steps) if isinstance(steps, list | tuple) else []
    if not pairs or not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise ValueError(f"steps must be a list of pairs (name, estimator), got {steps!r}")
    if len({step for step, _ in pairs}) < len(pairs) or any("__" in step or not step for step, _ in pairs):
        raise ValueError(f"steps must have a name of its own for each step, without '__'; got {steps!r}")
    for step, estimator in pairs:
        needed = "transform" if estimator is not pairs[-1][1] else "fit"
        if not hasattr(type(estimator), needed):
            raise ValueError(f"steps must have estimators, and before the last one transformers; got {step!r}")
    for name in ("memory", "transform_input"):
        if getattr(pipeline, name, None) is not None:
            raise ValueError(f"{name} must be None in a file, got {getattr(pipeline, name)!r}")


def _characters(value: Any) -> int:
    """Return how much text there is in a value; an error that quotes the value takes several times the memory."""
    if isinstance(value, dict):
        return _characters(list(value)) + _characters(list(value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_characters, value))
    return len(value) if isinstance(value, str) else 0


def _value_class(name: Any) -> type[Any]:
    if name not in _values:
        public = _import_named(name)
        if _is_value_class(public):
            return public  # type: ignore[no-any-return]
    if name not in _values:
        raise ValueError(f"there is no {name!r}")
    return _values[name]


def _is_value(value: Any) -> bool:
    """Whether a value is saved with its settings: of a registered class, or a value object of the library."""
    kind = type(value)
    return _values.get(kind.__name__) is kind or _is_value_class(kind)


def _is_value_class(kind: Any) -> bool:
    """Whether a class is one of the library's classes of value objects, and not a subclass made elsewhere."""
    return isinstance(kind, type) and issubclass(kind, Value) and library_class(kind) is kind


def _import_named(name: Any) -> Any:
    """Return what the package exports by a name, or None. Classes register when they are imported."""
    if not isinstance(name, str):
        raise ValueError(f"the name of a class must be text, got {name!r}")
    if name == "Pipeline":
        _register_pipelines()
    return getattr(importlib.import_module("larank"), name, None)


def _class_named(name: Any) -> _Registered:
    if name not in _registry:
        _import_named(name)
    if name not in _registry:
        raise ModelFileError(f"holds a {name!r}, which is none of the known classes {sorted(_registry)}")
    return _registry[name]


def _read(path: _PathLike, wanted: Callable[[str], bool] = lambda name: True) -> arrayfile.Contents:
    """Read a file of the format of models, whose description has the parts of one."""
    contents = arrayfile.read(path, _FORMAT, wanted)
    kinds = {"class": str, "parameters": dict, "attributes": dict, "library_version": str}
    wrong = [name for name, kind in kinds.items() if not isinstance(contents.description.get(name), kind)]
    if wrong:
        raise ModelFileError(f"{path} is damaged: its description lacks {wrong}, or has them in another form")
    return contents
