"""Checks of constructor parameters, with errors that name the argument, the value and what would do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

__all__ = ["finite", "flag", "jobs", "one_of", "positive", "stopping", "verbosity", "whole_number"]


def positive(name: str, value: Any, *, zero: bool = False) -> float:
    """A finite real number above zero, or from zero on with `zero`."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        wanted = "a finite number >= 0" if zero else "a finite number > 0"
        raise ValueError(f"{name} must be {wanted}, got {value!r}")
    return float(value)


def finite(name: str, value: Any) -> float:
    """A finite real number."""
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def whole_number(name: str, value: Any, *, at_least: int) -> int:
    """An integer from `at_least` on."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"{name} must be an integer >= {at_least}, got {value!r}")
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


def jobs(value: Any) -> None:
    """`n_jobs`: None or an integer other than 0."""
    if value is not None and (not isinstance(value, Integral) or value == 0):
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {value!r}")


def verbosity(value: Any) -> None:
    """`verbose`: True, False or an integer from 0 on."""
    if not isinstance(value, bool):
        whole_number("verbose", value, at_least=0)


def stopping(*, stop: str, epochs: int, tol: float | None, certify: bool) -> None:
    """Parameters that act with `stop="gap"` only, or without it only."""
    if stop == "epochs" and tol is not None:
        raise ValueError(f"tol acts with stop='gap' only; got tol={tol!r} with stop='epochs'")
    if stop == "gap" and not certify:
        raise ValueError("certify=False acts with stop='epochs' only: stop='gap' computes the gap from scratch")
    if stop == "gap" and epochs != 1:
        raise ValueError(f"epochs acts with stop='epochs' only; got epochs={epochs!r} with stop='gap'")
