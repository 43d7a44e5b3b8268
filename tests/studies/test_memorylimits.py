"""The study of limits on memory, in its quick form."""

from pathlib import Path

import pytest

from studies import memorylimits
from studies.__main__ import main

needs_marks = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the peak of the resident set is read from /proc"
)


@needs_marks
def test_training_stays_within_its_limit(capsys):
    assert main(["memorylimits", "--quick", "--markdown"]) == 0
    table = capsys.readouterr().out
    for estimator in memorylimits.ESTIMATORS:
        assert f"| {estimator} | letter | 1500 | 30 |" in table
    assert "NO" not in table


def test_what_is_over_the_limit_by_more_than_is_allowed_does_not_hold():
    def row(limit, peak):
        return memorylimits.Row("LaRankClassifier", "mnist", 20, limit, peak, 1.0, None, 1.0)

    assert row(50.0, 69.0).holds
    assert not row(50.0, 71.0).holds
    assert row(1000.0, 1099.0).holds
    assert not row(1000.0, 1101.0).holds
