"""Models are published at once: training makes the next one apart, and whoever reads stays with one model.

An estimator's attributes are its model. Training never changes those that others see: it works on a copy of their
dict, which takes the place of the old one in a single step when training has succeeded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from scipy.sparse import issparse

_Estimator = TypeVar("_Estimator")
_Method = TypeVar("_Method", bound=Callable[..., Any])


def one_model(estimator: _Estimator) -> _Estimator:
    """The estimator with its model as it is now, whatever is trained meanwhile.

    Where training may change what a model refers to, the estimator has a method `_hold`. Called on the copy, it keeps
    training from that as long as the copy lives, or waits for its end and returns False where it has begun.
    """
    model = copied(estimator)
    while hasattr(model, "_hold") and not model._hold():
        model = copied(estimator)
    return model


def copied(estimator: _Estimator) -> _Estimator:
    """Another estimator with the same attributes."""
    model = object.__new__(type(estimator))
    model.__dict__ = estimator.__dict__.copy()
    return model


def of_one_model(method: _Method) -> _Method:
    """Let a method see one model from its beginning to its end; a decorator."""

    @wraps(method)
    def read(estimator: Any, *args: Any, **options: Any) -> Any:
        return method(one_model(estimator), *args, **options)

    return cast(_Method, read)


@contextmanager
def next_model(estimator: _Estimator) -> Iterator[_Estimator]:
    """A copy of the estimator to train, which is published when the block ends, and forgotten if it fails.

    What others set on the estimator meanwhile, such as a parameter, stays. One call at a time may enter.

    Raises
    ------
    RuntimeError
        If the estimator is in such a block already: the compiled state of a solver is not for two threads.
    ValueError
        If the model has numbers that are not finite.
    """
    call = object()
    if _in_training.setdefault(id(estimator), call) is not call:  # one operation: of two threads, one is the first
        name = type(estimator).__name__
        raise RuntimeError(f"this {name} is being trained by another call; wait for it, or give each thread its own")
    clock = _began.set(time.perf_counter())
    try:
        model = copied(estimator)
        before = model.__dict__.copy()
        yield model
        check_finite(model)
        now = estimator.__dict__.copy()
        changed = {name: value for name, value in now.items() if name not in before or before[name] is not value}
        estimator.__dict__ = model.__dict__ | changed
    finally:
        _began.reset(clock)
        del _in_training[id(estimator)]


def check_finite(model: Any) -> None:
    """Raise where predictions would not be numbers, because some have overflowed in training."""
    for name in _MODEL:
        value = vars(model).get(name, 0.0)
        numbers = np.asarray(value.data if issparse(value) else value)
        wrong = ~np.isfinite(numbers)
        if wrong.any():
            raise ValueError(
                f"X, C and weights must be of a size that can be computed with, but {name} would hold "
                f"{numbers[wrong][0]}; scale X, and choose C, weights and other parameters nearer to one"
            )


# The fitted attributes that predictions are made of.
_MODEL = ("coef_", "dual_coef_", "intercept_", "scale_", "cholesky_", "factor_")
_in_training: dict[int, object] = {}  # the calls that train estimators, by the id of the estimator
_began: ContextVar[float | None] = ContextVar("began", default=None)


def call_began(otherwise: float) -> float:
    """When the call began that trains, by `time.perf_counter`, where there is one."""
    began = _began.get()
    return otherwise if began is None else began
