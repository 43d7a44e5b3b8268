"""What users have written may fail at any call."""

from tests.hostile.callables import COMBINATIONS
from tests.hostile.campaign import hold


def test_a_callable_that_fails_at_any_call_leaves_the_model_and_training_goes_on():
    hold("callables", len(COMBINATIONS))
