"""Which label may follow which: the schemes of chunk tags, or a function of the user's own.

============  ===========================================================================================
`"BIO"`       `O`, `B-X` and `I-X`; `I-X` only after `B-X` or `I-X`
`"BILOU"`     `O`, `B-X`, `I-X`, `L-X` and `U-X`; a chunk is `U-X`, or `B-X`, any number of `I-X`, and `L-X`
a function    `allowed(previous, label)`; `previous` is None at the beginning, `label` is None at the end
============  ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from larank.declare import ParameterError

Constraints = str | Callable[[Any, Any], bool] | None
"""A scheme by name, a function of two neighbours, or None: anything goes."""


class Follows(NamedTuple):
    """What is allowed: `after[0]` at the beginning, `after[1 + p]` after label p, `ends` at the end."""

    after: NDArray[np.bool_]
    ends: NDArray[np.bool_]

    def violations(
        self, starts: NDArray[np.int64], labels: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The tokens whose label may not follow the one before, and those whose label may not be the last, as it is.

        Sequences have at least one token.
        """
        before = np.concatenate([[-1], labels[:-1]])[: len(labels)]
        before[starts[:-1]] = -1
        last = starts[1:] - 1
        return np.flatnonzero(~self.after[1 + before, labels]), last[~self.ends[labels[last]]]


class _Scheme(NamedTuple):
    """Prefixes of tags, and those that go on with a chunk after one that leaves it open."""

    opens: str
    leaves_open: str
    goes_on: str

    def allows(self, previous: Any, label: Any) -> bool:
        """Whether a tag may follow another; None stands for both ends."""
        prefix, _, kind = ("O" if previous is None else previous).partition("-")
        next_prefix, _, next_kind = ("O" if label is None else label).partition("-")
        if next_prefix in self.goes_on:
            return prefix in self.leaves_open and kind == next_kind
        # BIO: a chunk that could go on may also be over. BILOU: its last tag says that it is.
        return prefix not in self.leaves_open or "L" not in self.goes_on

    def knows(self, label: Any) -> bool:
        """Whether a label is a tag of this scheme."""
        if not isinstance(label, str):
            return False
        prefix, dash, kind = label.partition("-")
        return label == "O" or (len(prefix) == 1 and prefix in self.opens + self.goes_on and bool(dash and kind))


SCHEMES = {
    "BIO": _Scheme(opens="B", leaves_open="BI", goes_on="I"),
    "BILOU": _Scheme(opens="BU", leaves_open="BI", goes_on="IL"),
}


class UnknownLabelError(ValueError):
    """A label that a scheme does not know."""

    def __init__(self, label: Any, message: str) -> None:
        super().__init__(message)
        self.label = label


def check_constraints(name: str, constraints: Any) -> None:
    """Raise a ParameterError unless the value is the name of a scheme or a function."""
    if callable(constraints) or (isinstance(constraints, str) and constraints in SCHEMES):
        return
    names = ", ".join(map(repr, SCHEMES))
    raise ParameterError(name, f"must be {names}, a function allowed(previous, label) or None; got {constraints!r}")


def follows(constraints: Constraints, labels: Sequence[Any]) -> Follows | None:
    """Ask about every pair of labels; None without constraints.

    Raises
    ------
    UnknownLabelError
        If a label is none of the scheme's.
    ValueError
        If no sequence of labels is allowed at all.
    """
    if constraints is None:
        return None
    if isinstance(constraints, str):
        scheme = SCHEMES[constraints]
        for label in labels:
            if not scheme.knows(label):
                tags = ", ".join(
                    ["'O'", *(f"'{prefix}-...'" for prefix in dict.fromkeys(scheme.opens + scheme.goes_on))]
                )
                raise UnknownLabelError(label, f"constraints={constraints!r} knows labels {tags}; got {label!r}")
        allowed: Callable[[Any, Any], bool] = scheme.allows
    else:
        allowed = constraints
    after = np.array([[bool(allowed(p, y)) for y in labels] for p in [None, *labels]], dtype=bool)
    ends = np.array([bool(allowed(y, None)) for y in labels], dtype=bool)
    if not _some_sequence(after, ends):
        raise ValueError(f"constraints must allow some sequence of the labels {list(labels)!r}, got none that may end")
    return Follows(after.reshape(len(labels) + 1, len(labels)), ends)


def _some_sequence(after: NDArray[np.bool_], ends: NDArray[np.bool_]) -> bool:
    """Whether an end can be reached from the beginning."""
    reached = after[0].copy()
    while True:
        further = reached | after[1:][reached].any(axis=0)
        if (further == reached).all():
            return bool((reached & ends).any())
        reached = further
