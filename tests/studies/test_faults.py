"""The study of killed workers runs, and counts right results."""

import pytest

from studies import __main__ as command


def test_a_fit_whose_worker_is_killed_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["faults", "--quick"]) == 0
    assert "1 of 1 results are right" in capsys.readouterr().out
