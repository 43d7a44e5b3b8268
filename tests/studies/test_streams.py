"""The study of streams runs, and says what it has measured."""

import pytest

from studies import __main__ as command


def test_the_study_of_streams_measures_lengths_and_drift(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["streams", "--quick"]) == 0
    out, err = capsys.readouterr()
    assert "max_patterns=100: 2,000 rows" in err
    assert "A noisy stream without an end" in out
    assert "before and after labels have changed places" in out
