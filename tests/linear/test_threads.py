"""The linear solver with several threads, against a general QP solver, one thread, and itself."""

import numpy as np
import pytest
from scipy import sparse
from test_sdm import clusters, svc

from larank.training import TrainingWarning
from references import optima
from references.optima import FORMULATIONS

formulations = pytest.mark.parametrize("formulation", FORMULATIONS)
threads = pytest.mark.parametrize("n_jobs", [2, 3, 8])


def clouds(examples, classes=4, features=6):
    """Overlapping clouds, sorted by class, some rows empty, others twice."""
    X, y = clusters(0, examples, classes, features, empty=0.3)
    X, y = X[np.argsort(y, kind="stable")], np.sort(y)
    X[::17] = 0
    X[1::19] = X[2]
    return X, y


def assert_agree(together, alone, tol):
    assert together.relative_gap <= tol
    assert together.dual <= alone.primal * (1 + 1e-9)
    assert alone.dual <= together.primal * (1 + 1e-9)


@formulations
@threads
def test_the_optimum_is_that_of_a_general_qp_solver(formulation, n_jobs):
    X, y = clouds(150)
    costs = 0.5 * np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], size=len(y))
    result = svc(formulation, n_jobs=n_jobs, C=0.5, tol=1e-7).fit(X, y, sample_weight=2 * costs).result_
    Z = optima.with_constant(X, 1.0)
    W, bound = optima.optimum(formulation, Z, y, costs, 4)
    assert result.dual <= bound * (1 + 1e-6)
    assert result.primal == pytest.approx(optima.primal(formulation, W, Z, y, costs), rel=1e-6)
    assert result.relative_gap <= 1e-7


@pytest.mark.parametrize(
    ("formulation", "n_jobs", "dtype", "shrinking"),
    [
        ("crammer-singer", 2, np.float64, True),
        ("crammer-singer", 8, np.float32, False),
        ("weston-watkins", 3, np.float32, True),
        ("weston-watkins", 2, np.float64, False),
        ("one-vs-rest", 8, np.float64, True),
        ("one-vs-rest", 3, np.float32, False),
    ],
)
def test_certificates_agree_with_those_of_one_thread(formulation, n_jobs, dtype, shrinking):
    X, y = clouds(1500)
    X = sparse.csr_matrix(X, dtype=dtype)
    tol = 1e-4 if dtype == np.float32 else 1e-6
    alone = svc(formulation, tol=tol, shrinking=shrinking).fit(X, y).result_
    assert_agree(svc(formulation, tol=tol, shrinking=shrinking, n_jobs=n_jobs).fit(X, y).result_, alone, tol)


@threads
def test_coefficients_are_feasible_and_weights_are_theirs(n_jobs):
    X, y = clouds(3000)
    X[~X.any(axis=1)] = 1  # empty rows have no coefficients
    model = svc(n_jobs=n_jobs, tol=1e-3, max_iter=3, C=10.0, fit_intercept=False)
    with pytest.warns(TrainingWarning):
        model.fit(X, y)
    a = model.dual_coef_.toarray()
    assert optima.infeasibility("crammer-singer", a, y, model.costs_) < 1e-10
    assert model.result_.dual == pytest.approx(optima.dual("crammer-singer", a, X, y), rel=1e-9)
    assert model.result_.primal == pytest.approx(
        optima.primal("crammer-singer", model.coef_, X, y, model.costs_), rel=1e-9
    )


@threads
def test_the_same_seed_and_threads_give_the_same_bits(n_jobs):
    X, y = clouds(5000)
    first, second = (svc(tol=1e-5, n_jobs=n_jobs).fit(X, y) for _ in range(2))
    assert np.array_equal(first.coef_, second.coef_)
    assert (first.dual_coef_ != second.dual_coef_).nnz == 0
    assert first.result_.operations == second.result_.operations


def test_one_job_is_the_default():
    X, y = clouds(2000)
    assert np.array_equal(svc(n_jobs=1).fit(X, y).coef_, svc().fit(X, y).coef_)


@threads
def test_fewer_rows_than_threads_will_do(n_jobs):
    X, y = np.array([[1.0], [-1.0]]), np.array([0, 1])
    assert svc(n_jobs=n_jobs).fit(X, y).score(X, y) == 1
    X, y = np.repeat(np.eye(2), 200, axis=0) * 3, np.repeat([0, 1], 200)
    X[2:200] = X[202:] = 0  # two rows act
    assert svc(n_jobs=n_jobs, tol=1e-7).fit(X, y).result_.relative_gap <= 1e-7


@threads
def test_many_classes_and_those_of_a_path_come_to_the_same_optimum(n_jobs):
    X, y = clouds(6000, classes=70, features=8)
    assert_agree(*(svc(tol=1e-3, n_jobs=jobs).fit(X, y).result_ for jobs in (n_jobs, 1)), 1e-3)
    X, y = clouds(2000)
    for one, many in zip(*(svc(tol=1e-7, n_jobs=jobs).path(X, y, [0.1, 1.0]) for jobs in (1, n_jobs)), strict=True):
        assert many.result_.primal == pytest.approx(one.result_.primal, rel=1e-6)


@threads
def test_a_fit_that_goes_on_from_a_checkpoint_ends_with_the_same_bits(n_jobs, tmp_path):
    X, y = clouds(4000)
    whole = svc(tol=1e-6, n_jobs=n_jobs).fit(X, y)
    with pytest.warns(TrainingWarning):
        svc(tol=1e-6, n_jobs=n_jobs, max_iter=4).fit(X, y, checkpoint=tmp_path / "fit", every=0)
    resumed = svc(tol=1e-6, n_jobs=n_jobs).fit(X, y, checkpoint=tmp_path / "fit", resume=True)
    assert np.array_equal(resumed.coef_, whole.coef_)
