"""The attacks of `tools/hostile`, a few cases of each; `make hostile` and `make nightly` run many."""

import pytest

from tools.hostile.callables import COMBINATIONS
from tools.hostile.campaign import hold
from tools.hostile.threads import ESTIMATORS

# Attacks that share what they need, such as imports and sound models, run in one process.
CASES = {
    "archives columns svmlight tables texts": 100,
    "callables": len(COMBINATIONS),
    "commands": 40,
    "flippedbits modelfiles": 300,
    "kills": 3,
    "numbers": 200,
    "threads": len(ESTIMATORS),
}


@pytest.mark.parametrize("attacks", CASES)
def test_attacks_find_no_crash_no_wrong_model_and_no_debris(attacks):
    hold(attacks, CASES[attacks])
