"""The search over costs of the linear machine finds what separate fits find."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold

from checks import clouds
from larank import LinearMulticlassSVC, LinearMulticlassSVCCV
from references import optima

CS = [0.01, 0.3, 10.0]
TIGHT = {"tol": 1e-9, "max_iter": 10**6, "random_state": 0}
X, y = clouds(120, 4, seed=1)


@pytest.mark.parametrize("formulation", optima.FORMULATIONS)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_the_scores_are_those_of_separate_fits(formulation, classes, form):
    some, labels, weight = form(X), y % classes, np.random.default_rng(0).choice([0.0, 0.5, 2.0], len(y))
    for options in ({}, {"class_weight": "balanced"}):
        options = {**TIGHT, **options, "formulation": formulation}
        model = LinearMulticlassSVCCV(Cs=CS, cv=3, **options).fit(some, labels, weight)
        for fold, (train, test) in enumerate(StratifiedKFold(3).split(X, labels)):
            for place, C in enumerate(CS):
                single = LinearMulticlassSVC(C=C, **options).fit(some[train], labels[train], weight[train])
                score = single.score(some[test], labels[test], weight[test])
                assert model.scores_[fold, place] == pytest.approx(score, abs=1e-12)
        single = LinearMulticlassSVC(C=model.C_, **options).fit(some, labels, weight)
        np.testing.assert_allclose(model.decision_function(some), single.decision_function(some), atol=1e-2)


def test_it_finds_what_a_grid_search_finds():
    search = GridSearchCV(LinearMulticlassSVC(**TIGHT), {"C": CS}, cv=4, scoring="f1_macro").fit(X, y)
    for jobs in (1, 2):
        model = LinearMulticlassSVCCV(Cs=CS[::-1], cv=4, scoring="f1_macro", n_jobs=jobs, **TIGHT).fit(X, y)
        assert model.best_score_ == pytest.approx(search.best_score_)
        found = search.cv_results_["mean_test_score"][::-1]
        np.testing.assert_allclose(model.scores_.mean(axis=0), found, atol=1e-12)


def test_a_class_that_a_fold_lacks_is_never_predicted_there():
    folds = PredefinedSplit(np.where(y == 3, 0, np.arange(len(y)) // 4 % 2 + 1))
    model = LinearMulticlassSVCCV(Cs=[1.0], cv=folds).fit(X, y)
    assert model.scores_[0, 0] == 0
    assert (model.scores_[1:] > 0.5).all()
    with pytest.raises(ValueError, match=r"cv must leave examples of at least two classes .*got \[1\] in fold 0"):
        LinearMulticlassSVCCV(cv=PredefinedSplit(y % 2)).fit(X, y % 2)


def test_without_a_refit_there_is_a_choice_and_no_model():
    model = LinearMulticlassSVCCV(Cs=3, cv=3, refit=False).fit(X, y)
    np.testing.assert_allclose(model.Cs_, [0.01, np.sqrt(10), 1000])
    assert model.C_ in model.Cs_
    with pytest.raises(NotFittedError):
        model.predict(X)
