"""The attacks of `tools/hostile`, a few cases of each; `make hostile` and `make nightly` run many."""

import pytest

from tools.hostile.callables import COMBINATIONS
from tools.hostile.campaign import hold, registered
from tools.hostile.threads import ESTIMATORS

# The attacks of a row run in one process, so that they import the library and train their sound models once.
CASES = {
    "files": {
        **dict.fromkeys(("archives", "columns", "svmlight", "tables", "texts"), 100),
        **{"commands": 30, "flippedbits": 200, "modelfiles": 200, "numbers": 120},
    },
    "calls": {"callables": len(COMBINATIONS), "kills": 3, "threads": len(ESTIMATORS)},
}


@pytest.mark.parametrize("attacks", CASES)
def test_attacks_find_no_crash_no_wrong_model_and_no_debris(attacks):
    hold(CASES[attacks])


def test_every_attack_has_cases_here():
    held = {name for cases in CASES.values() for name in cases}
    assert held | {"outofmemory"} == {*registered()}  # which has a test of its own
