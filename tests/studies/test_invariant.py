"""The study of deformed digits runs."""

import numpy as np
import pytest

from larank.blocks.device import HostDevice
from studies import __main__ as command
from studies.datasets import is_available
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


@pytest.mark.skipif(not (is_available("mnist") and is_available("covtype")), reason="MNIST or covtype is not here")
def test_the_quick_form_streams_and_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["invariant", "--quick"]) == 0
    out = capsys.readouterr().out
    assert "Deformed digits on cpu" in out
    assert out.count("converged") == 2
    assert out.count("covtype") == 2
    assert "Predictions on cpu" in out
