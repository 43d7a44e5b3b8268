"""The attacks of `tools/hostile`, a few cases of each; `make hostile` and `make nightly` run many."""

import pytest

from tools.hostile.callables import COMBINATIONS
from tools.hostile.campaign import hold
from tools.hostile.threads import ESTIMATORS

CASES = {
    "archives": 100,
    "callables": len(COMBINATIONS),
    "columns": 100,
    "commands": 40,
    "flippedbits": 100,
    "kills": 3,
    "svmlight": 100,
    "tables": 100,
    "texts": 100,
    "threads": len(ESTIMATORS),
}


@pytest.mark.parametrize("attack", CASES)
def test_an_attack_finds_no_crash_no_wrong_model_and_no_debris(attack):
    hold(attack, CASES[attack])
