"""The comparison with logistic regression: its yardstick is right, and its quick form runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from larank import PrimalMulticlassSVC
from studies.rivals import objectives, primal
from studies.rivals.contest import Entrant
from studies.rivals.libraries import LOGISTIC
from studies.rivals.primal import OURS, Bound, Problem, Row, Try, enough, judged, measure_fit, stored
from studies.study import Scope


def problem(form: type = np.asarray) -> Problem:
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 4)).astype(np.float32)
    y = np.argmax(X[:, :3] + random.normal(size=(300, 3)), axis=1)
    return Problem("points", form(X), y, 1.0)


def row(solver: str, wall: float, ours: float | None, tolerance: float = 1e-4) -> Row:
    found = (1e-3, ours, ours, 9.9) if ours is not None else (None, None, None, None)
    return Row("mnist", solver, tolerance, 10, 3, wall, wall, 10.0, *found)


def test_the_objective_by_hand_does_not_regularise_the_biases():
    # Scores 1 + 5 and 2 + 4, equal for the only example: a loss of log 2.
    W = np.array([[1.0, 5.0], [2.0, 4.0]])
    assert objectives.multinomial(W, np.array([[1.0]]), np.array([0]), 10.0) == pytest.approx(2.5 + 10 * np.log(2))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_the_objective_is_the_one_our_certificate_is_about_and_the_rivals_minimise_it(form):
    points = problem(form)
    ours = PrimalMulticlassSVC(tol=1e-8).fit(points.X.astype(np.float64), points.y)
    rival = LogisticRegression(tol=1e-8, max_iter=1000).fit(points.X, points.y)
    reached = [points.objective(np.column_stack([model.coef_, model.intercept_])) for model in (ours, rival)]
    assert reached[0] == pytest.approx(ours.result_.primal, rel=1e-9)
    assert reached[1] == pytest.approx(reached[0], rel=1e-5)
    assert reached[1] >= ours.result_.dual * (1 - 1e-9)


@pytest.mark.parametrize("name", LOGISTIC)
def test_a_solver_is_measured_in_a_process_of_its_own_with_its_biases(name):
    points = problem()
    with stored(points) as folder:
        run = measure_fit(folder, points.form, Try(Entrant(name), 1e-4), 120.0)
    assert run.W.shape == (3, 5)
    best = PrimalMulticlassSVC(tol=1e-6).fit(points.X, points.y).result_.dual
    assert best * (1 - 1e-6) <= points.objective(run.W) <= best * (1 + 1e-3)
    assert run.extra["iterations"] >= 1


def test_the_largest_tolerance_that_is_enough_counts():
    reached = {1e-1: 12.0, 1e-2: 10.5, 1e-3: 10.0, 1e-4: 9.9}
    assert enough(reached, 10.5) == 1e-2
    assert enough(reached, 10.0) == 1e-3
    assert enough(reached, 9.0) is None


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row("lbfgs", 10.0, 2.0), row("newton-cg", 5.0, 2.0)], "0.400 (0.400 in CPU seconds) of newton-cg's time"),
        ([row("lbfgs", 3.0, 2.0), row("newton-cg", 5.0, 2.0)], "bar 0.5, missed"),
        ([row("lbfgs", 3.0, 1.0), row("newton-cg", 0.1, 1.0, 1e-2)], "bar 0.5, met"),
        ([row("lbfgs", 3.0, None)], "larank does not come to the primal of lbfgs at tol=0.0001"),
        ([row("lbfgs", 3.0, 1.0, 1e-2)], "no rival came to its default tolerance"),
    ],
)
def test_the_bar_is_against_the_faster_rival_at_its_default_tolerance(rows, said):
    (line,) = map(str, judged(rows))
    assert said in line


def test_the_share_of_passes_counts_evaluations_and_products():
    bound = Bound("mnist", 1e-3, 200.0, 10, 40, 0.1, 0.05, 0.04, 6.0, {})
    assert bound.share == pytest.approx(0.5)
    assert bound.gigabytes == pytest.approx(4.0)


def test_there_must_be_a_rival():
    with pytest.raises(ValueError, match="--solvers must have larank and a rival of it, got larank"):
        primal.run(Scope(datasets=("letter",), solvers=(OURS,)), lambda line: None)
