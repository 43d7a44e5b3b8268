"""Models in files: one safetensors file per fitted estimator, no pickle.

Arrays are stored as tensors. Everything else stands as JSON in the metadata entry `larank`: the name and
version of the format, the version of the library, the class, the parameters of its constructor and its fitted
attributes.

An estimator class takes part by naming the fitted attributes that make up the model::

    @persistable("classes_", "coef_", "n_features_in_", "feature_names_in_", "result_")
    class LinearMulticlassSVC(ClassifierMixin, BaseEstimator): ...

Attributes that an instance does not have are left out. `load` calls the constructor with the saved parameters
and sets the attributes; nothing else of the class is used. Parameters and attributes may be None, booleans,
numbers, strings, arrays of numbers or strings, CSR matrices, a `Result`, dataclasses registered with
`persistable_value`, other registered estimators, and lists, tuples and dicts of these.
"""

from __future__ import annotations

import importlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib.metadata import version
from typing import IO, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file
from safetensors.numpy import save as to_bytes
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.exceptions import NotFittedError

from larank.data.files import atomic_write
from larank.publishing import one_model
from larank.sparse import csr_of

FORMAT_VERSION = 1
_FORMAT = "larank-model"
_LONGEST_HEADER = 100_000_000  # the limit of safetensors itself
_PathLike = str | os.PathLike[str]
_SPARSE = {"csr_matrix": csr_matrix, "csr_array": csr_array}


class ModelFileError(ValueError):
    """A file that is no model, or not one that this version can read."""


class ArrayInfo(NamedTuple):
    """Type and shape of an array in a model file."""

    dtype: str
    shape: tuple[int, ...]


class _Estimator(Protocol):
    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...


_Class = TypeVar("_Class", bound=type[_Estimator])
_UpToDate = Callable[[dict[str, Any]], dict[str, Any]]


class _Registered(NamedTuple):
    """A class that can be saved, its fitted attributes, and what makes those of an older file today's."""

    cls: type[_Estimator]
    attributes: tuple[str, ...]
    up_to_date: _UpToDate


_registry: dict[str, _Registered] = {}


def persistable(*attributes: str, up_to_date: _UpToDate = dict) -> Callable[[_Class], _Class]:
    """Register an estimator class for `save` and `load`.

    Parameters
    ----------
    *attributes : str
        The fitted attributes that make up the model.
    up_to_date : callable, optional
        From the attributes in a file, which an older version may have written, to what they are now.

    Returns
    -------
    callable
        A decorator that returns the class unchanged.
    """

    def register(cls: _Class) -> _Class:
        _registry[cls.__name__] = _Registered(cls, attributes, up_to_date)
        return cls

    return register


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
    NotFittedError
        If the estimator has none of its fitted attributes.
    """
    cls = type(estimator)
    if not _is_registered(cls):
        raise TypeError(f"{cls.__name__} cannot be saved: the class is not registered with larank's persistable")
    arrays: dict[str, NDArray[Any]] = {}
    description = {
        "format": _FORMAT,
        "format_version": FORMAT_VERSION,
        "library_version": version("larank"),
        **_parts_of(one_model(estimator), "", arrays),
    }
    content = to_bytes(arrays, metadata={"larank": json.dumps(description, allow_nan=False)})
    with atomic_write(path) as file:
        file.write(content)


def _is_registered(cls: type[Any]) -> bool:
    return cls.__name__ in _registry and _registry[cls.__name__].cls is cls


def _parts_of(estimator: _Estimator, within: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Class, parameters and attributes of a fitted estimator; `within` is where the names of its arrays begin."""
    cls = type(estimator)
    fitted = {name: getattr(estimator, name) for name in _registry[cls.__name__].attributes if hasattr(estimator, name)}
    if not fitted:
        raise NotFittedError(f"this {cls.__name__} is not fitted; call fit before saving it")
    parameters = estimator.get_params(deep=False)
    return {
        "class": cls.__name__,
        "parameters": {k: _encode(v, f"{within}parameters/{k}", arrays) for k, v in parameters.items()},
        "attributes": {k: _encode(v, f"{within}{k}", arrays) for k, v in fitted.items()},
    }


def load(path: _PathLike) -> Any:
    """Read an estimator that `save` wrote.

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
        If the file is not a model, is cut short or damaged, comes from a newer version, or needs an unknown
        class.
    """
    description, _ = _read_description(path)
    kind = _class_named(description["class"], path)
    try:
        arrays = load_file(path)
        parameters = _decode_all(description["parameters"], arrays.__getitem__, path)
        attributes = _decode_all(description["attributes"], arrays.__getitem__, path)
        estimator = kind.cls(**parameters)
    except (SafetensorError, TypeError) as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    return _with_attributes(estimator, kind, attributes, path)


def _with_attributes(
    estimator: _Estimator, kind: _Registered, attributes: dict[str, Any], path: _PathLike
) -> _Estimator:
    unknown = attributes.keys() - set(kind.attributes)
    if unknown:
        raise ModelFileError(f"{path} holds attributes that {kind.cls.__name__} does not have: {sorted(unknown)}")
    for name, value in kind.up_to_date(attributes).items():
        setattr(estimator, name, value)
    return estimator


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
        appear as `ArrayInfo`, except for the labels in `classes_`.

    Raises
    ------
    ModelFileError
        If the file is not a model, is cut short or damaged, or comes from a newer version.
    """
    description, arrays = _read_description(path)

    def shown(name: str) -> Any:
        return _read_array(path, name) if name == "classes_" else arrays[name]

    for part in ("parameters", "attributes"):
        description[part] = _decode_all(description[part], shown, path)
    return description


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
        return {"$result": _encode(value.to_dict(), name, arrays)}
    if type(value).__name__ in _values and _values[type(value).__name__] is type(value):
        settings = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"$value": type(value).__name__, "settings": _encode(settings, name, arrays)}
    if _is_registered(type(value)):
        return {"$estimator": _parts_of(value, f"{name}/", arrays)}
    raise TypeError(_cannot_save(value, name))


def _encode_array(value: NDArray[Any], name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    if value.dtype.kind in "UO":
        items = [_encode(item, name, arrays) for item in value.ravel().tolist()]
        return {"$objects": items, "dtype": value.dtype.str, "shape": list(value.shape)}
    if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
        raise TypeError(_cannot_save(value, name))
    arrays[name] = np.asarray(value, dtype=value.dtype.newbyteorder("="), order="C")
    return {"$array": name}


def _cannot_save(value: Any, name: str) -> str:
    kind = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
    owner, _, inner = name.partition("/")
    what = f"the parameter {inner!r}" if owner == "parameters" else f"the attribute {name!r}"
    hint = ""
    if isinstance(value, np.random.Generator | np.random.RandomState):
        hint = "; use None or an integer seed instead"
    return f"{what} is {kind}, which cannot be saved{hint}"


def _decode_all(values: Any, array: Callable[[str], Any], path: _PathLike) -> dict[str, Any]:
    try:
        return {name: _decode(value, array) for name, value in values.items()}
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error


def _decode(value: Any, array: Callable[[str], Any]) -> Any:
    if isinstance(value, list):
        return [_decode(item, array) for item in value]
    if not isinstance(value, dict):
        return value
    if "$float" in value:
        return float(value["$float"])
    if "$tuple" in value:
        return tuple(_decode(value["$tuple"], array))
    if "$dict" in value:
        return {_decode(k, array): _decode(v, array) for k, v in value["$dict"]}
    if "$value" in value:
        return _value_class(value["$value"])(**_decode(value["settings"], array))
    if "$estimator" in value:
        return _decode_estimator(value["$estimator"], array)
    if "$result" in value:
        return _value_class("Result").from_dict(_decode(value["$result"], array))
    if "$objects" in value:
        return _decode_objects(value, array)
    if "$sparse" in value:
        return _decode_sparse(value, array)
    return _find(value["$array"], array)


def _decode_estimator(parts: Mapping[str, Any], array: Callable[[str], Any]) -> _Estimator:
    kind = _class_named(parts["class"], "an attribute")
    attributes = {name: _decode(value, array) for name, value in parts["attributes"].items()}
    estimator = kind.cls(**{k: _decode(v, array) for k, v in parts["parameters"].items()})
    return _with_attributes(estimator, kind, attributes, "an attribute")


def _value_class(name: str) -> type[Any]:
    if name not in _values:
        getattr(importlib.import_module("larank"), name, None)  # values register when they are imported
    if name not in _values:
        raise ValueError(f"there is no {name!r}")
    return _values[name]


def _decode_objects(value: Mapping[str, Any], array: Callable[[str], Any]) -> NDArray[Any]:
    dtype = np.dtype(value["dtype"])
    objects = np.empty(len(value["$objects"]), dtype=object)
    for k, item in enumerate(value["$objects"]):
        objects[k] = _decode(item, array)
    return objects.astype(dtype, copy=False).reshape(value["shape"])


def _decode_sparse(value: Mapping[str, Any], array: Callable[[str], Any]) -> Any:
    data, indices, indptr = (_find(f"{value['name']}/{part}", array) for part in ("data", "indices", "indptr"))
    shape = tuple(value["shape"])
    if isinstance(data, ArrayInfo):
        return ArrayInfo(data.dtype, shape)
    return csr_of(data, indices, indptr, shape, _SPARSE[value["$sparse"]])


def _find(name: str, array: Callable[[str], Any]) -> Any:
    try:
        return array(name)
    except KeyError:
        raise ValueError(f"the array {name!r} is missing") from None


def _read_array(path: _PathLike, name: str) -> NDArray[Any]:
    try:
        with safe_open(path, framework="numpy") as file:
            return np.asarray(file.get_tensor(name))
    except SafetensorError as error:
        raise ValueError(str(error)) from error


def _class_named(name: str, path: _PathLike) -> _Registered:
    if name not in _registry:
        getattr(importlib.import_module("larank"), name, None)  # estimators register when they are imported
    if name not in _registry:
        raise ModelFileError(f"{path} holds a {name!r}, which is none of the known classes {sorted(_registry)}")
    return _registry[name]


def _read_description(path: _PathLike) -> tuple[dict[str, Any], dict[str, ArrayInfo]]:
    """The JSON description, and what the header says about the arrays."""
    with open(path, "rb") as file:
        header, promised = _read_header(file, path)
        size = os.fstat(file.fileno()).st_size
    try:
        description = json.loads(header.pop("__metadata__")["larank"])
        if description["format"] != _FORMAT:
            raise ValueError("another format")
        found = int(description["format_version"])
        arrays = {k: ArrayInfo(_dtype_name(v["dtype"]), tuple(v["shape"])) for k, v in header.items()}
        promised += max((v["data_offsets"][1] for v in header.values()), default=0)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path} is not a larank model") from error
    if not 1 <= found <= FORMAT_VERSION:
        ours = f"larank {version('larank')} reads versions up to {FORMAT_VERSION}"
        raise ModelFileError(f"{path} has format version {found}; {ours}")
    if size < promised:
        raise ModelFileError(f"{path} is cut short: {size} bytes where {promised} are needed")
    missing = {"class", "parameters", "attributes", "library_version"} - description.keys()
    if missing:
        raise ModelFileError(f"{path} is damaged: its description lacks {sorted(missing)}")
    return description, arrays


def _read_header(file: IO[bytes], path: _PathLike) -> tuple[dict[str, Any], int]:
    """The header of a safetensors file and where its data begin."""
    start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    if len(start) < 9 or start[8:] != b"{" or length > _LONGEST_HEADER:
        raise ModelFileError(f"{path} is not a larank model")
    text = b"{" + file.read(length - 1)
    if len(text) < length:
        raise ModelFileError(f"{path} is not a larank model, or cut short within its header")
    try:
        header = json.loads(text)
    except ValueError as error:
        raise ModelFileError(f"{path} is not a larank model") from error
    return header, 8 + length


def _dtype_name(code: str) -> str:
    kinds = {"F": "float", "I": "int", "U": "uint"}
    return "bool" if code == "BOOL" else kinds[code[0]] + code[1:]
