"""The study of deformed digits runs."""

import numpy as np

from larank.blocks.device import HostDevice
from studies.invariant import SIDE, Deformer


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
