"""A class whose examples all have weight 0 is part of the problem, if a machine solves one for all classes."""

import numpy as np
import pytest

from larank import LaRankClassifier, LinearMulticlassSVC, MulticlassSVC
from references import optima

X = np.random.RandomState(0).randn(30, 3)
y = np.arange(30) % 3
WEIGHTS = np.where(y == 1, 0.0, 1.0)

MACHINES = {
    "larank": LaRankClassifier("linear", average=False, stop="gap", tol=1e-7),
    "larank with kernel values": LaRankClassifier("poly", degree=1, gamma=1.0, coef0=0.0, stop="gap", tol=1e-7),
    "larank on a device": LaRankClassifier("linear", average=False, stop="gap", tol=1e-7, device="cpu"),
    "exact": MulticlassSVC("linear", tol=1e-7),
    "linear": LinearMulticlassSVC(fit_intercept=False, stop="gap", tol=1e-7),
}


@pytest.mark.parametrize("name", MACHINES)
def test_the_optimum_is_that_of_all_classes(name):
    model = MACHINES[name].set_params(random_state=0).fit(X, y, sample_weight=WEIGHTS)
    _, optimum = optima.optimum("crammer-singer", X, y, WEIGHTS, 3)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.result_.status == "converged"
    assert optimum - 1e-5 <= model.result_.primal <= optimum * (1 + 1e-5)


def test_a_stream_goes_on_with_the_class_that_had_no_weight():
    model = LaRankClassifier(random_state=0).partial_fit(X, y, sample_weight=WEIGHTS)
    before = model.decision_function(X)
    assert before.shape == (30, 3)
    assert (model.partial_fit(X, y).predict(X) == 1).any()
