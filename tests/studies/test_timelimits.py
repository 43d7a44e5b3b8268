"""The study of limits runs, and says what it has measured."""

import pytest

from larank import LaRankClassifier
from studies.timelimits import CASES, Row, _worst


def test_every_case_can_be_made() -> None:
    for case in CASES.values():
        case.make({"C": 1.0, "gamma": 0.1, "random_state": 0}).set_params(time_limit=1.0)


def test_a_second_or_a_tenth_may_be_too_much() -> None:
    def row(limit: float, taken: float) -> Row:
        return Row(LaRankClassifier.__name__, "mnist", limit, taken, 0.1, 1.0, exact=True, breakdown={})

    assert row(3.0, 4.0).over == pytest.approx(1.0)
    assert row(20.0, 31.0).over == pytest.approx(5.5)
    (claim,), _ = _worst([row(3.0, 4.0), row(20.0, 31.0)])
    assert "took 31.00 s of 20" in claim.what
    assert not claim.holds
