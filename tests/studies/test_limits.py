"""A run that exceeds its limit on time or memory by more than the allowance does not hold."""

import pytest

from larank import LaRankClassifier
from studies import memorylimits, timelimits

NAME = LaRankClassifier.__name__


@pytest.mark.parametrize(
    ("limit", "peak", "holds"), [(50, 69, True), (50, 71, False), (1000, 1099, True), (1000, 1101, False)]
)
def test_twenty_megabytes_or_a_tenth_may_be_too_much(limit: float, peak: float, holds: bool) -> None:
    assert memorylimits.Row(NAME, "mnist", 20, limit, peak, 1.0, None, 1.0).holds is holds


def test_every_case_of_limits_on_time_can_be_made() -> None:
    for case in timelimits.CASES.values():
        case.make({"C": 1.0, "gamma": 0.1, "random_state": 0}).set_params(time_limit=1.0)


def test_a_second_or_a_tenth_may_be_too_much() -> None:
    short, long = (
        timelimits.Row(NAME, "mnist", limit, taken, 0.1, 1.0, exact=True, breakdown={})
        for limit, taken in ((3.0, 4.0), (20.0, 31.0))
    )
    assert (short.over, long.over) == (pytest.approx(1.0), pytest.approx(5.5))
    (claim,), _ = timelimits._worst([short, long])
    assert "took 31.00 s of 20" in claim.what
    assert not claim.holds
