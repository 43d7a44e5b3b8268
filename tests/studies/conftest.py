"""Measured tasks can run in the test process, because a child process imports for more than a second of CPU time."""

import os
import subprocess
import sys
import traceback
import warnings

import pytest

from studies import child


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run `studies.child` in the test process, except in nightly tests, which have rivals installed.

    Memory peaks are lower in the test process, because freed memory is used again.
    """
    start = subprocess.run

    def run(command, **options):
        if "studies.child" not in command:
            return start(command, **options)
        with monkeypatch.context() as changed, warnings.catch_warnings():
            changed.setattr(sys, "argv", command[2:])
            try:
                child.main()
            except Exception as error:
                stderr = traceback.format_exc().encode()
                raise subprocess.CalledProcessError(1, command, stderr=stderr) from error

    if not os.environ.get("LARANK_WHOLE_STUDIES"):
        monkeypatch.setattr(subprocess, "run", run)
