"""What the core is handed from damaged model files, whoever hands it."""

import numpy as np
import pytest

from checks import refuses
from larank import _core


def table(**changes):
    """Two patterns of two classes, with something else in their place."""
    sound = {
        "ids": np.array([3, 5]),
        "labels": np.array([0, 1], np.int32),
        "costs": np.ones(2),
        "diagonal": np.ones(2),
        "coefficients": np.array([0.5, -0.5, -0.5, 0.5]),
        "columns": np.array([0, 1, 0, 1], np.int32),
        "starts": np.array([0, 2, 4]),
    }
    return _core.SupportTable(**{**sound, **changes})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"ids": np.array([3, 3])}, "ids must be different"),
        ({"ids": np.array([3, -1])}, "ids must be different and not negative"),
        ({"labels": np.array([0, -1], np.int32)}, "labels must not be negative"),
        ({"costs": np.array([1.0, np.inf])}, "must be finite"),
        ({"costs": np.array([1.0, -1.0])}, "costs must not be negative"),
        ({"diagonal": np.array([1.0, np.nan])}, "must be finite"),
        ({"coefficients": np.array([0.5, np.nan, -0.5, 0.5])}, "must be finite"),
        ({"columns": np.array([0, 0, 0, 1], np.int32)}, "columns of a pattern must be different"),
        ({"columns": np.array([0, -1, 0, 1], np.int32)}, "columns of a pattern must be different and not negative"),
        ({"starts": np.array([0, 9, 4])}, "starts must ascend"),
        ({"starts": np.array([0, 2, 2**62])}, "starts must ascend"),
    ],
)
def test_a_support_table_is_sound(changes, why):
    refuses(why, table, **changes)


class Rows:
    """Kernel values of orthonormal patterns."""

    def rows(self, slots):
        return np.ascontiguousarray(np.eye(2)[slots])


def sessions():
    settings = {"schedule": "fixed", "n_reprocess": 1, "operations": ["new"], "tau": 0.1, "seed": 0}
    larank = _core.KernelLaRank64(**settings, memory_limit=10**6)
    lasvm = _core.LaSVM64(tau=0.1, delta_max=0.0, memory_limit=10**6)
    perceptron = _core.KernelPerceptron64(margin=0.0, budget=None, memory_limit=10**6)
    for session in (larank, lasvm):
        for _ in range(2):
            session.add_class()
    huller = _core.Huller64(seed=0, memory_limit=10**6)
    huller.state = (2, 0, [[1.0, 0.0, 1.0]] * 2, [[0, 0, 1]] * 2)
    return {"larank": larank, "lasvm": lasvm, "perceptron": perceptron, "huller": huller}


@pytest.mark.parametrize("name", ["larank", "lasvm", "perceptron", "huller"])
def test_labels_and_columns_that_a_session_does_not_have_are_refused(name):
    for changes in (
        {"labels": np.array([0, 2**31 - 1], np.int32)},
        {"columns": np.array([0, 2**31 - 1, 0, 1], np.int32)},
    ):
        refuses(r"labels must be|coefficients must be", sessions()[name].restore, table(**changes), Rows())


def test_states_that_are_not_finite_or_of_other_classes_are_refused():
    found = sessions()
    with pytest.raises(ValueError, match="finite"):
        found["larank"].state = (np.nan, 0.0, 0.0, [1.0, 1.0, 1.0], 0)
    with pytest.raises(ValueError, match="rates"):
        found["larank"].state = (0.0, 0.0, 0.0, [1.0, -1.0, 1.0], 0)
    with pytest.raises(ValueError, match="finite"):
        found["huller"].state = (2, 0, [[np.inf, 0.0, 1.0]] * 2, [[0, 0, 1]] * 2)
    found["huller"].state = (3, 0, [[1.0, 0.0, 1.0]] * 3, [[0, 0, 1]] * 3)
    with pytest.raises(ValueError, match="classes of the session"):
        found["huller"].state = (2, 0, [[1.0, 0.0, 1.0]] * 2, [[0, 0, 1]] * 2)


def test_a_working_set_has_no_slots_beyond_its_scores():
    K, scores = np.eye(2), np.zeros(2)
    vectors = _core.GramWorkingSet(0)
    vectors.add_pattern(1.0)
    refuses("every pattern needs a vector", vectors.look, K, scores)
    refuses("slot must not be negative", vectors.add, 0, 0.0, 0.0, -1)
    refuses("must be finite", vectors.add, 0, np.nan, 0.0, 0)
    vectors.add(0, 0.0, 0.0, 2)
    refuses("one row per slot", vectors.look, K, scores)


def test_the_state_of_a_gradient_descent_is_checked():
    settings = {"algorithm": "olbfgs", "loss": "hinge", "joint": False, "functions": 1, "features": 2}
    session = _core.SgdSession64(**settings, intercept=True, lambda_=1.0, t0=1.0, skip=1, seed=0)
    state = session.state()
    for name, value in {
        "weights": state["weights"].astype(np.float32),
        "born": state["born"] * np.nan,
        "counts": state["counts"] - 1,
        "steps": state["steps"] + 1e300,
        "random": [1, 2],
    }.items():
        refuses("the state", session.restore, {**state, name: value})
    session.restore(state)


def test_the_weights_of_chains_are_finite_and_of_one_size():
    model = _core.ChainModel(1)
    model.grow(2, 2)
    entries = np.ones(1), np.zeros(1, np.int32), np.array([0, 1, 1])
    refuses("weights must be finite", model.set_weights, entries[0] * np.nan, *entries[1:], np.zeros((1, 3, 2)))
    session = _core.ChainPerceptron(model, rule="perceptron", averages=True)
    refuses("more features or labels", session.restore_average, 1, *entries, np.zeros((1, 4, 3)))
