"""Trainings with checkpoints that are killed, as tests of several estimators do it."""

import contextlib

from larank.training import CheckpointFile


class Killed(BaseException):
    """Ends a process where it is."""


def killed_after(monkeypatch, states):
    """The process ends when so many states could have been written, of which the last one is, or at its own end."""
    write = CheckpointFile.write

    def and_die(file, state, *, is_last):
        nonlocal states
        states -= 1
        if states == 0 or state["run"]["status"] is not None:
            write(file, state, is_last=is_last)
        if states == 0:
            raise Killed

    monkeypatch.setattr(CheckpointFile, "write", and_die)
    monkeypatch.setattr(CheckpointFile, "is_due", lambda file: True)


def killed_again_and_again(train, path, monkeypatch, states=lambda run: 2**run):
    """What `train(checkpoint=..., every=..., resume=...)` returns in the end."""
    for run in range(1, 500):
        with contextlib.suppress(Killed), monkeypatch.context() as patch:
            killed_after(patch, states(run))
            trained = train(checkpoint=path, every=0, resume=True)
            assert run > 1
            return trained
    raise AssertionError("training does not end")
