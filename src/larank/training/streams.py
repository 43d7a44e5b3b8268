"""Streams that a limit cuts: when reading ends, and what must have arrived by then."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from larank.publishing import call_began
from larank.training.checkpointfile import NotResumedError
from larank.training.interrupts import Interrupt
from larank.training.loop import allowance
from larank.training.result import Status

_READING = 0.5  # fraction of the time limit for reading rows that training begins with afterwards
_GRACE = 0.5  # fraction of the allowance of a time limit


def cut_by(time_limit: float | None, interrupt: Interrupt, *, has_classes: bool) -> Status | None:
    """Return what ends reading now, or None: Ctrl-C, or half of the time limit, for the other half is for training.

    As long as `has_classes` is False, so that no model is possible, reading goes on until the limit, and for a part of
    the time by which the limit may be exceeded.
    """
    if interrupt.has_come:
        return "interrupted"
    if time_limit is None:
        return None
    now = time.perf_counter()
    end = _READING * time_limit if has_classes else time_limit + _GRACE * allowance(time_limit)
    return "time_limit" if now - call_began(otherwise=now) >= end else None


def check_resumes(time_limit: float | None, interrupt: Interrupt) -> None:
    """Raise an error if a limit has come before the data were read up to the position of a checkpoint.

    The limit counts from the beginning of this call, without the runs before: it ends a wait for data, and the model of
    a checkpoint whose time was over can still be restored.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C has come: no model can be returned.
    NotResumedError
        If the time limit has come.
    """
    status = cut_by(time_limit, interrupt, has_classes=False)
    if status == "interrupted":
        raise KeyboardInterrupt("the data were not read up to the position of the checkpoint, so there is no model")
    if status == "time_limit":
        raise NotResumedError(
            f"the data were not read up to the position of the checkpoint within time_limit={time_limit} seconds. "
            "Choose a larger time_limit; the checkpoint is unchanged"
        )


def check_arrived(labels: Sequence[Any], least: int, status: Status | None, time_limit: float | None) -> None:
    """Raise an error if a limit has cut a stream before it has brought `least` classes, one or two.

    Parameters
    ----------
    labels : sequence
        The labels that have arrived, each once.
    least : int
        The number of classes that a model needs.
    status : str or None
        What has ended reading; nothing is checked if it is not a limit.
    time_limit : float or None
        The parameter, for the message.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C has ended reading: no model can be returned.
    ValueError
        If the time limit has ended reading.
    """
    if len(labels) >= least or status not in ("interrupted", "time_limit"):
        return
    came = f"only examples of the class {labels[0]!r} have" if len(labels) else "no block of examples has"
    if status == "interrupted":
        raise KeyboardInterrupt(f"{came} arrived from the stream, so there is no model")
    raise ValueError(
        f"{came} arrived from the stream within time_limit={time_limit} seconds; choose a larger time_limit"
    )
