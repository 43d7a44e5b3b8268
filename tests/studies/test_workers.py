"""The study of one worker and two runs."""

import pytest

from studies import __main__ as command


def test_one_worker_and_two_do_the_same_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["workers", "--quick"]) == 0
    out = capsys.readouterr().out
    assert out.count("two workers take") == 2
