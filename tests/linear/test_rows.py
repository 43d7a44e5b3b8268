"""Every instruction set computes the same numbers, and they are right."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from test_rowqp import row_qps

from larank import LinearMulticlassSVC, _core
from references.optima import FORMULATIONS
from sessions import hooks

LEVELS = _core.simd_levels()
pytestmark = pytest.mark.usefixtures("level_restored")


@pytest.fixture(scope="module")
def level_restored():
    level = _core.simd_level()
    yield
    set_level(level)


def set_level(level):
    """Of the sessions, and of the hooks, which have units of their own."""
    _core.set_simd_level(level)
    hooks.set_simd_level(level)


def at_level(level, function, *arguments):
    set_level(level)
    return function(*arguments)


def bits(numbers):
    return np.asarray(numbers, np.float64).tobytes()


@st.composite
def rows_and_weights(draw):
    """A sparse row, in any order of columns and with repeated ones, and weights of all magnitudes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    features, stored, classes = draw(st.integers(1, 60)), draw(st.integers(0, 50)), draw(st.integers(1, 200))
    magnitude = draw(st.sampled_from([1e-300, 1e-10, 1.0, 1e10, 1e150]))
    x = rng.normal(size=stored) * 10.0 ** rng.integers(-3, 4, stored)
    W = rng.normal(size=(features, classes)) * magnitude
    return x, rng.integers(0, features, stored, dtype=np.int32), W


@given(rows_and_weights())
def test_row_scores_are_the_product_and_bit_identical_at_every_level(problem):
    x, columns, W = problem
    scalar = at_level("scalar", hooks.row_scores, *problem)
    assert np.shape(scalar) == W.shape[1:]
    assert (np.abs(scalar - x @ W[columns]) <= 1e-14 * (np.abs(x) @ np.abs(W[columns]))).all()
    for level in LEVELS[1:]:
        assert bits(at_level(level, hooks.row_scores, *problem)) == bits(scalar), level


@given(row_qps(most_classes=200))
def test_row_qps_are_bit_identical_at_every_level(qp):
    problem = qp.formulation, qp.scores, qp.a, qp.label, qp.A, qp.C, qp.rest
    expected = at_level("scalar", hooks.solve_row, *problem)
    for level in LEVELS[1:]:
        other = at_level(level, hooks.solve_row, *problem)
        assert [bits(part) for part in other] == [bits(part) for part in expected], level


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("classes", [2, 5, 40, 150])
def test_whole_models_are_bit_identical_at_every_level(formulation, layout, dtype, classes):
    rng = np.random.default_rng(classes)
    y = np.arange(300) % classes
    X = rng.normal(size=(classes, 30))[y] + rng.normal(size=(300, 30))
    X[rng.random(X.shape) < 0.6] = 0
    X = layout(X.astype(dtype))

    def fitted():
        model = LinearMulticlassSVC(formulation, tol=1e-2, random_state=3).fit(X, y)
        return model.coef_.tobytes(), model.intercept_.tobytes(), model.result_.primal, model.result_.dual

    scalar = at_level("scalar", fitted)
    for level in LEVELS[1:]:
        assert at_level(level, fitted) == scalar, level


def level_in_a_new_process(value):
    environment = {**os.environ, "LARANK_SIMD": value}
    program = "from larank import _core; print(_core.simd_level())"
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("value", "level"), [*zip(LEVELS, LEVELS, strict=True), ("", LEVELS[-1])])
def test_the_environment_chooses_the_level_and_otherwise_the_best_is_taken(value, level):
    assert level_in_a_new_process(value).stdout.strip() == level


def test_an_unknown_level_is_a_clear_error_and_changes_nothing():
    run = level_in_a_new_process("x86-64-v9")
    assert run.returncode != 0
    assert "(LARANK_SIMD) must be one of" in run.stderr
    assert "'scalar'" in run.stderr
    assert "'x86-64-v9'" in run.stderr
    before = _core.simd_level()
    with pytest.raises(ValueError, match="got 'mmx'"):
        _core.set_simd_level("mmx")
    assert _core.simd_level() == before
