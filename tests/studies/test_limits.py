"""Runs are held to their limits on time and memory, and deformed digits are the digits a little moved."""

import numpy as np
import pytest

from larank import LaRankClassifier
from larank.blocks.device import HostDevice
from studies import limits
from studies.invariant import SIDE, Deformer

NAME = LaRankClassifier.__name__


@pytest.mark.parametrize(
    ("limit", "peak", "holds"), [(50, 69, True), (50, 71, False), (1000, 1099, True), (1000, 1101, False)]
)
def test_twenty_megabytes_or_a_tenth_may_be_too_much(limit: float, peak: float, holds: bool) -> None:
    assert limits.MemoryRow(NAME, "mnist", 20, limit, peak, 1.0, None, 1.0).holds is holds


def test_every_case_of_limits_on_time_can_be_made() -> None:
    for case in limits.CASES.values():
        case.make({"C": 1.0, "gamma": 0.1, "random_state": 0}).set_params(time_limit=1.0)


def test_a_second_or_a_tenth_may_be_too_much() -> None:
    short, long = (
        limits.TimeRow(NAME, "mnist", limit, taken, 0.1, 1.0, exact=True, breakdown={})
        for limit, taken in ((3.0, 4.0), (20.0, 31.0))
    )
    assert (short.over, long.over) == (pytest.approx(1.0), pytest.approx(5.5))
    (claim,), _ = limits._worst([short, long])
    assert "took 31.00 s of 20" in claim.what
    assert not claim.holds


def test_deformed_digits_are_the_digits_a_little_moved() -> None:
    image = np.zeros((1, SIDE, SIDE), np.uint8)
    image[0, 8:20, 12:16] = 255
    found = Deformer(HostDevice(), image.reshape(1, -1))(np.zeros(50, np.intp), np.random.default_rng(0))
    assert found.dtype == np.uint8
    assert found.shape == (50, SIDE * SIDE)
    mass = found.reshape(50, SIDE, SIDE).astype(float)
    total = mass.sum(axis=(1, 2))
    assert (np.abs(total / image.sum() - 1) < 0.5).all()
    middle = (mass * np.arange(SIDE)[:, None]).sum(axis=(1, 2)) / total
    assert np.abs(middle - 13.5).max() < 5
    assert middle.std() > 0.2
