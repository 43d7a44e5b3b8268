"""The labels of a stream that a linear model is trained on, numbered as they come."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from larank.validation import check_same_type


class StreamLabels:
    """The labels of a stream, numbered in the order in which they arrive; once announced, no others may come."""

    def __init__(self, arrived: NDArray[Any] | None = None, are_announced: bool = False) -> None:
        self._arrived, self.are_announced = arrived, are_announced

    def __len__(self) -> int:
        return 0 if self._arrived is None else len(self._arrived)

    @property
    def arrived(self) -> NDArray[Any]:
        """In their order."""
        assert self._arrived is not None
        return self._arrived

    def listed(self) -> list[Any]:
        """Return the labels that have arrived as a list, which may be empty."""
        return [] if self._arrived is None else self._arrived.tolist()

    def announce(self, classes: ArrayLike | None) -> None:
        """Take in all labels that may come."""
        if classes is None:
            return
        found = np.unique(_checked(np.asarray(classes)))
        if self.are_announced and not np.array_equal(found, np.sort(self.arrived)):
            raise ValueError(
                f"classes must be those of the calls before, {np.sort(self.arrived).tolist()}; got {found.tolist()}"
            )
        self._take_in(found, "in classes")
        if len(found) < len(self.arrived):
            missing = self.arrived[~np.isin(self.arrived, found)]
            raise ValueError(f"classes must hold all labels seen so far; {missing[0].item()!r} is missing")
        self.are_announced = True

    def numbered(self, y: NDArray[Any]) -> NDArray[np.int32]:
        """The numbers of these labels; new ones get the next."""
        found, firsts, codes = np.unique(y, return_index=True, return_inverse=True)
        if self.are_announced:
            check_same_type(found, self.arrived, "in classes")
            strange = found[~np.isin(found, self.arrived)]
            if len(strange):
                known = np.sort(self.arrived).tolist()
                raise ValueError(f"y must hold labels out of classes={known}, as announced; got {strange[0].item()!r}")
        self._take_in(found[np.argsort(firsts)], "of the calls before")
        order = np.argsort(self.arrived)
        numbers = order[np.searchsorted(self.arrived, found, sorter=order)]
        return numbers[codes].astype(np.int32)

    def _take_in(self, labels: NDArray[Any], where: str) -> None:
        if self._arrived is None:
            self._arrived = labels
            return
        check_same_type(labels, self._arrived, where)
        if labels.dtype.kind in "iu" and self._arrived.dtype.kind in "iu":  # together they would become floats
            labels = labels.astype(self._arrived.dtype)
        new = labels[~np.isin(labels, self._arrived)]
        if len(new):
            self._arrived = np.concatenate([self._arrived, new])


def _checked(classes: NDArray[Any]) -> NDArray[Any]:
    if classes.ndim != 1 or not len(classes):
        raise ValueError(f"classes must be a list of labels, one at least; got shape {classes.shape}")
    if classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise ValueError(f"classes must hold labels, got {classes[~np.isfinite(classes)][0]!r}")
    return classes
