"""The search over costs and gammas finds what separate fits find, whatever shares kernel values."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold

from checks import clouds, gram
from larank import MulticlassSVC, MulticlassSVCCV
from larank.blocks import provider_for
from larank.blocks.kernels import kernel_for
from larank.blocks.shared import SharedProvider, SharedValues

CS, GAMMAS = [0.03, 1.0, 30.0], [0.1, 0.4]
TIGHT = {"tol": 1e-6, "max_iter": 10**6, "random_state": 0}
X, y = clouds(120, 4, seed=1)


def separate(kernel, some, labels, weight=None, cv=3, gammas=GAMMAS, **parameters):
    """Return the scores of separate fits, of every fold, cost and gamma."""
    weight, scores = np.ones(len(labels)) if weight is None else weight, np.zeros((cv, len(CS), len(gammas)))
    for f, (train, test) in enumerate(StratifiedKFold(cv).split(some, labels)):
        rows, columns = some[train], some[test]
        if kernel == "precomputed":
            rows, columns = rows[:, train], columns[:, train]
        for c, g in np.ndindex(len(CS), len(gammas)):
            model = MulticlassSVC(kernel, C=CS[c], gamma=gammas[g], **{**TIGHT, **parameters})
            model.fit(rows, labels[train], weight[train])
            scores[f, c, g] = model.score(columns, labels[test], weight[test])
    return scores


KINDS = {
    "dense": ("rbf", X),
    "single precision": ("rbf", X.astype(np.float32)),
    "csr": ("rbf", sparse.csr_matrix(X)),
    "poly": ("poly", X),
    "rows": ("laplacian", X),
    "linear": ("linear", X),
    "precomputed": ("precomputed", gram(X)),
    "callable": (gram, X),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_scores_are_those_of_separate_fits(kind):
    kernel, some = KINDS[kind]
    gammas = GAMMAS if kind in ("dense", "csr", "poly", "rows", "single precision") else [0.4]
    tight = {**TIGHT, "tol": 1e-4 if kind == "single precision" else 1e-6}
    wanted = separate(kernel, some, y, gammas=gammas, tol=tight["tol"])
    for memory_limit in (4e9, 6e5) if kind in ("dense", "csr", "rows") else (4e9,):
        model = MulticlassSVCCV(kernel, Cs=CS, gammas=gammas, cv=3, memory_limit=memory_limit, **tight).fit(some, y)
        np.testing.assert_allclose(model.scores_, wanted, atol=1e-12 if kind != "single precision" else 0.03)
    best = np.unravel_index(model.scores_.mean(axis=0).argmax(), (len(CS), len(gammas)))
    assert CS[best[0]] == model.C_
    assert model.best_score_ == model.scores_.mean(axis=0).max()
    single = MulticlassSVC(kernel, C=model.C_, gamma=gammas[best[1]], **tight).fit(some, y)
    assert model.result_.dual == pytest.approx(single.result_.dual, rel=1e-3)
    np.testing.assert_allclose(model.decision_function(some), single.decision_function(some), atol=0.05)


@pytest.mark.parametrize(
    ("classes", "formulation", "options"),
    [
        (2, "crammer-singer", {"fit_intercept": True}),
        (2, "weston-watkins", {"class_weight": "balanced"}),
        (4, "crammer-singer", {"class_weight": "balanced"}),
        (4, "weston-watkins", {"fit_intercept": True}),
    ],
)
def test_formulations_weights_and_two_classes_are_those_of_separate_fits_too(classes, formulation, options):
    labels, weight = y % classes, np.random.default_rng(0).choice([0.0, 0.5, 2.0], len(y))
    options = {**options, "formulation": formulation}
    model = MulticlassSVCCV(Cs=CS, gammas=GAMMAS, cv=3, **TIGHT, **options).fit(X, labels, weight)
    np.testing.assert_allclose(model.scores_, separate("rbf", X, labels, weight, **options), atol=1e-12)


def test_a_cost_matrix_holds_in_every_fold():
    delta = np.random.default_rng(0).uniform(0.5, 2, (4, 4)) * (1 - np.eye(4))
    model = MulticlassSVCCV(Cs=CS, gammas=GAMMAS, cv=3, label_costs=delta, **TIGHT).fit(X, y)
    np.testing.assert_allclose(model.scores_, separate("rbf", X, y, label_costs=delta), atol=1e-12)


@pytest.mark.parametrize("scoring", ["balanced_accuracy", make_scorer(balanced_accuracy_score)])
def test_it_finds_what_a_grid_search_finds(scoring):
    search = GridSearchCV(MulticlassSVC(**TIGHT), {"C": CS, "gamma": GAMMAS}, cv=4, scoring=scoring).fit(X, y)
    model = MulticlassSVCCV(Cs=CS, gammas=GAMMAS, cv=4, scoring=scoring, **TIGHT).fit(X, y)
    assert (model.C_, model.gamma_) == (search.best_params_["C"], search.best_params_["gamma"])
    assert model.best_score_ == pytest.approx(search.best_score_)
    found = model.scores_.mean(axis=0).ravel()
    np.testing.assert_allclose(found, search.cv_results_["mean_test_score"], atol=1e-12)


def test_a_scorer_of_ones_own_sees_decisions_on_what_is_held_out():
    seen = []

    def scorer(model, some, labels):
        seen.append((len(some), model.decision_function(some).shape))
        return model.score(some, labels)

    MulticlassSVCCV(Cs=[1.0], gammas=[0.4], cv=3, scoring=scorer).fit(X, y)
    assert seen == [(40, (40, 4))] * 3


def test_threads_and_the_order_of_costs_change_nothing():
    one, two, reversed_ = (
        MulticlassSVCCV(Cs=Cs, gammas=GAMMAS, cv=3, n_jobs=jobs, **TIGHT).fit(X, y)
        for Cs, jobs in ((CS, 1), (CS, 2), (CS[::-1], 2))
    )
    np.testing.assert_array_equal(one.scores_, reversed_.scores_[:, ::-1])
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_a_class_that_a_fold_lacks_is_never_predicted_there():
    folds = PredefinedSplit(np.where(y == 3, 0, np.arange(len(y)) // 4 % 2 + 1))
    model = MulticlassSVCCV(Cs=[1.0], gammas=[0.4], cv=folds).fit(X, y)
    assert model.scores_[0, 0, 0] == 0
    assert (model.scores_[1:] > 0.5).all()
    assert set(model.predict(X)) == {0, 1, 2, 3}
    with pytest.raises(ValueError, match=r"cv must leave examples of at least two classes .*got \[1\] in fold 0"):
        MulticlassSVCCV(cv=PredefinedSplit(y % 2)).fit(X, y % 2)


def test_grids_are_numbers_or_values():
    model = MulticlassSVCCV(Cs=3, gammas=3, cv=2).fit(X, y)
    np.testing.assert_allclose(model.Cs_, [0.01, np.sqrt(10), 1000])
    scale = 1 / (X.shape[1] * X.var())
    np.testing.assert_allclose(model.gammas_, scale * np.array([0.1, 1, 10]))
    named = MulticlassSVCCV(Cs=[1], gammas=["scale", "auto"], cv=2).fit(X, y)
    np.testing.assert_allclose(named.gammas_, [scale, 1 / X.shape[1]])
    linear = MulticlassSVCCV("linear", Cs=[0.1, 1], cv=2).fit(X, y)
    assert not hasattr(linear, "gammas_")
    assert linear.scores_.shape == (2, 2, 1)


def test_without_a_refit_there_is_a_choice_and_no_model():
    model = MulticlassSVCCV(Cs=CS, gammas=GAMMAS, cv=3, refit=False).fit(X, y)
    assert model.C_ in CS
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("far", [0.0, 1000.0])
def test_shared_values_are_those_of_the_provider(far):
    some = (X + far).astype(np.float32)
    shared = SharedValues(some, lambda kernel: provider_for(kernel, some), 4e9)
    for gamma in (0.1, 0.4):
        kernel = kernel_for("rbf", gamma=gamma)
        provider = provider_for(kernel, some)
        batch = provider.batch(some, 0)
        np.testing.assert_allclose(shared.of(kernel), provider.within(batch), atol=2e-6)


def test_scores_by_shared_values_are_those_of_the_matrix():
    K, beta = gram(X), np.random.default_rng(0).normal(size=(5, 4)) * (np.arange(20).reshape(5, 4) % 3 > 0)
    provider = SharedProvider(kernel_for("precomputed"), K, 2)
    members = np.array([3, 50, 7, 119, 0])
    provider.store(np.arange(5), provider.batch(np.arange(120), members, members), np.arange(5))
    np.testing.assert_allclose(provider.scores(np.arange(10, 90), np.arange(5), beta), K[10:90, members] @ beta)
