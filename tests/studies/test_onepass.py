"""The study of one pass runs, and says how far it is from the optimum."""

import pytest

from studies import __main__ as command
from studies.datasets import is_available


def test_the_study_of_one_pass_compares_with_the_optimum(capsys: pytest.CaptureFixture[str]) -> None:
    sets = ["noisy", "noisy-kernel", *(["conll2000"] if is_available("conll2000") else [])]
    assert command.main(["one-pass", "--quick", "--datasets", *sets]) == 0
    out, err = capsys.readouterr()
    assert "noisy, last weights" in err
    assert "noisy-kernel, larank, 1000 patterns, C = 1" in err
    assert "One pass, and the optimum" in out
    assert "within 0.5 points of the optimum" in out
