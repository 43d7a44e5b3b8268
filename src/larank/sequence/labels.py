"""Labels of tokens: as a user gives them, checked, and as numbers in the order of their arrival."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from larank.declare import ParameterError
from larank.parameters import positive
from larank.sequence.features import is_ragged
from larank.sequence.sequences import Sequences


class LabelNumbers:
    """Labels numbered in the order of their arrival."""

    def __init__(self, labels: Iterable[Any] = ()) -> None:
        self.labels: list[Any] = []
        self._number: dict[Any, int] = {}
        self.of(labels)

    def __len__(self) -> int:
        return len(self.labels)

    def of(self, labels: Iterable[Any]) -> NDArray[np.int32]:
        """The numbers of labels; new ones get the next."""
        number, known = self._number, self.labels
        numbers = []
        for label in labels:
            found = number.get(label)
            if found is None:
                found = number[label] = len(known)
                known.append(label)
            numbers.append(found)
        return np.array(numbers, dtype=np.int32)

    def known(self, labels: Iterable[Any]) -> NDArray[np.int32]:
        """The numbers of labels, -1 for those never seen."""
        return np.array([self._number.get(label, -1) for label in labels], dtype=np.int32)


def flat_labels(X: Any, y: Any, sequences: Sequences) -> list[Any]:
    """One label per token, or an error that says which sequence has more or fewer, or which label cannot be one."""
    if y is None:
        raise ValueError("y must hold the labels of X; only a ConllFile has its labels in it")
    if is_ragged(X) and not _is_nested(y):
        flat = np.asarray(y)
        if flat.shape != (sequences.n_tokens,):
            raise ValueError(
                f"y must hold one label per row of X, {sequences.n_tokens}; got an array of shape {flat.shape}"
            )
        return _checked(flat.tolist(), None)
    if isinstance(y, str) or not hasattr(y, "__len__"):
        raise TypeError(f"y must be a sequence of label sequences, got {type(y).__name__}")
    if len(y) != len(sequences):
        raise ValueError(f"y must hold one label sequence per sequence of X, {len(sequences)}; got {len(y)}")
    found: list[Any] = []
    for i, (length, labels) in enumerate(zip(sequences.lengths.tolist(), y, strict=True)):
        if isinstance(labels, str) or not hasattr(labels, "__len__"):
            raise TypeError(f"y[{i}] must be a sequence of labels, one per token; got {labels!r}")
        if len(labels) != length:
            raise ValueError(f"y[{i}] must have one label per token of X[{i}], {length}; got {len(labels)}")
        found.extend(labels.tolist() if hasattr(labels, "tolist") else labels)
    return _checked(found, sequences.starts)


def _is_nested(y: Any) -> bool:
    return isinstance(y, list | tuple) and len(y) > 0 and not isinstance(y[0], str) and hasattr(y[0], "__len__")


def _checked(labels: list[Any], starts: NDArray[np.int64] | None) -> list[Any]:
    """The labels as they are; `starts` of sequences if y has them too."""
    try:
        if not any(map(_is_missing, set(labels))):
            return labels
    except TypeError:  # something that is not hashable
        pass
    at, label = next((at, label) for at, label in enumerate(labels) if not _is_hashable(label) or _is_missing(label))
    i = -1 if starts is None else int(np.searchsorted(starts, at, side="right")) - 1
    where = f"y[{at}]" if starts is None else f"y[{i}][{at - starts[i]}]"
    if not _is_hashable(label):
        raise TypeError(f"{where} is {label!r}; a label must be hashable, such as a str or an int")
    raise ValueError(f"y must not hold {label!r}, but {where} is: every token needs a label")


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, float) and math.isnan(label))


def _is_hashable(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def sorted_labels(labels: list[Any]) -> NDArray[Any]:
    """All labels in order, in an array that gives them back as they are."""
    kinds = {str if isinstance(label, str) else (Real if isinstance(label, Real) else type(label)) for label in labels}
    if len(kinds) > 1:
        raise ValueError(f"y must hold labels of one type, got {', '.join(sorted(kind.__name__ for kind in kinds))}")
    found = np.array(sorted(labels))
    if found.ndim == 1 and found.tolist() == sorted(labels):
        return found
    objects = np.empty(len(labels), dtype=object)  # tuples would be rows, and zeros at the end of text be cut off
    objects[:] = sorted(labels)
    return objects


def check_label_costs(name: str, costs: Any) -> None:
    """Raise a ParameterError unless the value maps pairs (true label, predicted label) to costs."""
    if not isinstance(costs, Mapping):
        raise ParameterError(name, f"must map (true label, predicted label) to a cost; got {costs!r}")
    for pair, cost in costs.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ParameterError(name, f"must have pairs (true label, predicted label) as keys; got {pair!r}")
        positive(f"{name}[{pair!r}]", cost, zero=True)
        if pair[0] == pair[1] and cost != 0:
            raise ParameterError(name, f"must be 0 for a label predicted correctly; got {cost!r} for {pair!r}")
