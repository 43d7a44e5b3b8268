"""Models are asked by many threads while they are trained."""

from tests.hostile.campaign import hold
from tests.hostile.threads import ESTIMATORS


def test_every_estimator_answers_with_a_complete_model_while_it_trains():
    hold("threads", len(ESTIMATORS))
