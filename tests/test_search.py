"""The search over C and gamma finds what separate fits find; what ends it early, and what is refused."""

import copy
import re
import signal

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit, StratifiedKFold
from sklearn.svm import SVC

import larank
from checks import assert_same_model, clouds, gram, parameters_of, public, refuses
from larank import LinearMulticlassSVC, MulticlassSVC, PathSearchCV, TrainingWarning
from larank.blocks import provider_for
from larank.blocks.kernels import kernel_for
from larank.blocks.shared import SharedProvider, SharedValues
from larank.crossvalidation import BestSetting, Tally
from larank.training import Checkpoint, Outcome, Progress, loop
from references import optima

CS, GAMMAS = [0.03, 1.0, 30.0], [0.1, 0.4]
TIGHT = {"tol": 1e-6, "max_iter": 10**6, "random_state": 0}
LINEAR, KERNEL = LinearMulticlassSVC(**{**TIGHT, "tol": 1e-9}), MulticlassSVC(gamma=0.4, **TIGHT)
X, y = clouds(120, 4, seed=1)
both = pytest.mark.parametrize("estimator", [LINEAR, KERNEL], ids=["linear", "kernel"])


def search(estimator, **parameters):
    return PathSearchCV(estimator, **{"Cs": CS, "cv": 3, "n_jobs": 1, **parameters})


# What it finds


def separate(estimator, some, labels, weight=None, gammas=None):
    """Return the scores of separate fits, for every fold, cost and gamma."""
    weight, found = np.ones(len(labels)) if weight is None else weight, []
    for train, test in StratifiedKFold(3).split(some, labels):
        rows, held_out = some[train], some[test]
        if estimator.get_params().get("kernel") == "precomputed":
            rows, held_out = rows[:, train], held_out[:, train]
        for C in CS:
            for gamma in [{}] if gammas is None else [{"gamma": gamma} for gamma in gammas]:
                model = clone(estimator).set_params(C=C, **gamma).fit(rows, labels[train], weight[train])
                found.append(model.score(held_out, labels[test], weight[test]))
    return np.reshape(found, (3, len(CS), *([] if gammas is None else [len(gammas)])))


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
    gammas = GAMMAS if kind in ("dense", "csr", "poly", "rows", "single precision") else None
    estimator = MulticlassSVC(kernel, gamma=0.4, **{**TIGHT, "tol": 1e-4 if kind == "single precision" else 1e-6})
    wanted = separate(estimator, some, y, gammas=gammas)
    for memory_limit in (4e9, 6e5) if kind in ("dense", "csr", "rows") else (4e9,):
        limited = clone(estimator).set_params(memory_limit=memory_limit)
        model = PathSearchCV(limited, Cs=CS, gammas=gammas, cv=3).fit(some, y)
        np.testing.assert_allclose(model.scores_, wanted, atol=1e-12 if kind != "single precision" else 0.03)
    means = model.scores_.mean(axis=0)
    best = np.unravel_index(means.argmax(), means.shape)
    assert model.best_params_ == {"C": CS[best[0]], **({} if gammas is None else {"gamma": gammas[best[1]]})}
    assert model.best_score_ == means.max()
    single = clone(estimator).set_params(**model.best_params_).fit(some, y)
    assert model.best_estimator_.result_.dual == pytest.approx(single.result_.dual, rel=1e-3)
    np.testing.assert_allclose(model.decision_function(some), single.decision_function(some), atol=0.05)


@pytest.mark.parametrize("formulation", optima.FORMULATIONS)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(("form", "class_weight"), [(np.asarray, "balanced"), (sparse.csr_matrix, None)])
def test_the_scores_of_linear_models_are_those_of_separate_fits_too(formulation, classes, form, class_weight):
    some, labels, weight = form(X), y % classes, np.random.default_rng(0).choice([0.0, 0.5, 2.0], len(y))
    estimator = clone(LINEAR).set_params(class_weight=class_weight, formulation=formulation)
    model = search(estimator).fit(some, labels, weight)
    np.testing.assert_allclose(model.scores_, separate(estimator, some, labels, weight), atol=1e-12)
    single = clone(estimator).set_params(**model.best_params_).fit(some, labels, weight)
    np.testing.assert_allclose(model.decision_function(some), single.decision_function(some), atol=1e-2)


@pytest.mark.parametrize(
    ("classes", "formulation", "options"),
    [
        (2, "crammer-singer", {"fit_intercept": True}),
        (2, "weston-watkins", {"class_weight": "balanced"}),
        (4, "crammer-singer", {"class_weight": "balanced"}),
        (4, "weston-watkins", {"fit_intercept": True}),
        (4, "crammer-singer", {"label_costs": np.random.default_rng(0).uniform(0.5, 2, (4, 4)) * (1 - np.eye(4))}),
    ],
)
def test_formulations_weights_and_costs_are_those_of_separate_fits_too(classes, formulation, options):
    labels, weight = y % classes, np.random.default_rng(0).choice([0.0, 0.5, 2.0], len(y))
    estimator = MulticlassSVC(formulation=formulation, **TIGHT, **options)
    model = search(estimator, gammas=GAMMAS).fit(X, labels, weight)
    np.testing.assert_allclose(model.scores_, separate(estimator, X, labels, weight, GAMMAS), atol=1e-12)


@both
@pytest.mark.parametrize("scoring", ["f1_macro", make_scorer(balanced_accuracy_score)])
def test_it_finds_what_a_grid_search_finds(estimator, scoring):
    grid = {"C": CS, **({"gamma": GAMMAS} if estimator is KERNEL else {})}
    expected = GridSearchCV(estimator, grid, cv=4, scoring=scoring).fit(X, y)
    model = search(estimator, gammas=grid.get("gamma"), cv=4, scoring=scoring).fit(X, y)
    assert model.best_params_ == expected.best_params_
    assert model.best_score_ == pytest.approx(expected.best_score_)
    found = model.scores_.mean(axis=0).ravel()
    np.testing.assert_allclose(found, expected.cv_results_["mean_test_score"], atol=1e-12)


@both
def test_threads_and_the_order_of_costs_change_nothing(estimator):
    gammas = GAMMAS if estimator is KERNEL else None
    one, two, reversed_ = (
        search(estimator, Cs=Cs, gammas=gammas, n_jobs=jobs).fit(X, y) for Cs, jobs in ((CS, 1), (CS, 2), (CS[::-1], 2))
    )
    np.testing.assert_array_equal(one.scores_, reversed_.scores_[:, ::-1])
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


@both
def test_a_class_that_a_fold_lacks_is_never_predicted_there(estimator):
    folds = PredefinedSplit(np.where(y == 3, 0, np.arange(len(y)) // 4 % 2 + 1))
    model = search(estimator, Cs=[1.0], cv=folds).fit(X, y)
    assert model.scores_[0] == 0
    assert (model.scores_[1:] > 0.5).all()
    assert set(model.predict(X)) == {0, 1, 2, 3}
    with pytest.raises(ValueError, match=r"cv must leave examples of at least two classes .*got \[1\] in fold 0"):
        search(estimator, cv=PredefinedSplit(y % 2)).fit(X, y % 2)


@both
def test_grids_are_numbers_or_values(estimator):
    model = search(estimator, Cs=3).fit(X, y)
    np.testing.assert_allclose(model.Cs_, [0.01, np.sqrt(10), 1000])
    assert model.scores_.shape == (3, 3)
    assert not hasattr(model, "gammas_")
    if estimator is KERNEL:
        scale = 1 / (X.shape[1] * X.var())
        np.testing.assert_allclose(search(KERNEL, gammas=3).fit(X, y).gammas_, scale * np.array([0.1, 1, 10]))
        named = search(KERNEL, gammas=["scale", "auto"]).fit(X, y)
        np.testing.assert_allclose(named.gammas_, [scale, 1 / X.shape[1]])
        assert named.scores_.shape == (3, 3, 2)


@both
def test_the_estimator_stays_as_it_is_and_the_best_one_differs_in_what_was_searched_for_only(estimator, tmp_path):
    before = copy.copy(vars(estimator))
    gammas = {"gammas": GAMMAS} if estimator is KERNEL else {}
    model = search(estimator, **gammas).fit(X, y)
    assert vars(estimator) == before
    expected = {**estimator.get_params(), **model.best_params_}
    best = model.best_estimator_.get_params()
    assert {name for name in best if best[name] != expected[name]} <= {"random_state"}
    larank.save(model, tmp_path / "search.larank")
    loaded = larank.load(tmp_path / "search.larank")
    assert parameters_of(loaded) == parameters_of(model)
    assert_same_model(loaded, model, but=("dual_coef_", "costs_", "rest_costs_", "support_"))


@both
def test_without_a_refit_there_is_a_choice_and_no_model(estimator, tmp_path):
    model = search(estimator, refit=False).fit(X, y)
    larank.save(model, tmp_path / "search.larank")
    for each in (model, larank.load(tmp_path / "search.larank")):
        assert each.best_params_["C"] in CS
        refuses("has no best_estimator_, because .* refit=False", each.predict, X, error=NotFittedError)
        assert not hasattr(each, "classes_")


# Shared kernel values


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


# What ends it early


def end_training(monkeypatch, number):
    """Let the time be over in this training, counted from one, and in no other."""
    runs = {}

    def time_is_over(run):
        runs[id(run)] = run
        return run.limits.time_limit is not None and len(runs) == number

    monkeypatch.setattr(loop._Run, "time_is_over", time_is_over)


def press_ctrl_c(monkeypatch, number):
    """Interrupt this training, counted from one."""
    runs, end = [], loop._Run.end

    def pressed(run, **optimal):
        if not any(run is other for other in runs):
            runs.append(run)
            if len(runs) == number:
                signal.raise_signal(signal.SIGINT)
        return end(run, **optimal)

    monkeypatch.setattr(loop._Run, "end", pressed)


@both
def test_a_search_that_scored_nothing_raises(estimator, monkeypatch):
    end_training(monkeypatch, 1)
    model = search(estimator, time_limit=60.0)
    refuses(r"^time_limit=60.0 ended the search; 0 of 3 settings were scored on 0 of 3", model.fit, X, y)
    assert not public(model)


@pytest.mark.parametrize(
    ("number", "scored"),
    [(3, r"2 of 3 settings were scored on 1 of 3 folds"), (9, r"2 of 3 settings were scored$")],
)
@both
def test_a_search_that_is_cut_says_how_many_settings_were_scored(estimator, monkeypatch, number, scored):
    end_training(monkeypatch, number)
    model = search(estimator, time_limit=60.0)
    with pytest.warns(TrainingWarning, match=rf"^time_limit=60.0 ended the search; {scored}") as caught:
        model.fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.best_estimator_.result_.status == "time_limit"
    assert np.isnan(model.scores_).sum() == 9 - (number - 1)
    assert np.isfinite(model.best_score_)
    assert model.best_params_["C"] in CS[:2]
    assert model.score(X, y) > 0.5


@both
def test_a_search_without_a_refit_says_that_it_was_cut(estimator, monkeypatch):
    end_training(monkeypatch, 9)
    with pytest.warns(TrainingWarning, match="2 of 3 settings were scored$"):
        search(estimator, time_limit=60.0, refit=False).fit(X, y)


@both
def test_a_search_that_is_not_cut_warns_of_nothing_and_has_the_status_of_its_model(estimator):
    assert search(estimator, time_limit=60.0).fit(X, y).best_estimator_.result_.status == "converged"


@pytest.mark.parametrize(("number", "scored"), [(1, 0), (6, 2)])
@both
def test_ctrl_c_in_a_search_raises_and_leaves_it_as_it_was(estimator, monkeypatch, number, scored):
    for model in (search(estimator), search(estimator).fit(X, y)):
        before = copy.copy(vars(model))
        with monkeypatch.context() as patched:
            press_ctrl_c(patched, number)
            message = f"^an interrupt ended the search; {scored} of 3 settings were scored on [02] of 3 folds"
            with pytest.raises(KeyboardInterrupt, match=message):
                model.fit(X, y)
        assert vars(model) == before


@both
def test_ctrl_c_ends_a_search_with_what_was_scored_if_it_is_to_return(estimator, monkeypatch):
    press_ctrl_c(monkeypatch, 9)
    with larank.on_interrupt("return"), pytest.warns(TrainingWarning) as caught:
        model = search(estimator).fit(X, y)
    assert str(caught[0].message) == "an interrupt ended the search; 2 of 3 settings were scored"
    assert model.best_estimator_.result_.status == "interrupted"
    assert model.score(X, y) > 0.5


@both
def test_ctrl_c_counts_more_than_a_limit_of_the_search(estimator, monkeypatch):
    """The limit ends the ninth training, and Ctrl-C ends the tenth, which trains the final model."""
    end_training(monkeypatch, 9)
    press_ctrl_c(monkeypatch, 10)
    model = search(estimator, time_limit=60.0)
    with larank.on_interrupt("return"), pytest.warns(TrainingWarning):
        model.fit(X, y)
    assert model.best_estimator_.result_.status == "interrupted"


def ended(status):
    point = Checkpoint(0.0, 1.0, 1.0, 0.0, 0.0, exact=False)
    return Outcome(status, point, False, 0.0, 0.0, (point,))


def test_a_limit_of_another_fold_does_not_hide_ctrl_c():
    tally = Tally(Progress(), 3)
    statuses = "completed", "interrupted", "time_limit"
    assert [tally.counts(ended(status)) for status in statuses] == [True, False, False]
    assert tally.status == "interrupted"
    with pytest.raises(KeyboardInterrupt, match="an interrupt ended the search"):
        BestSetting.of(np.ones((1, 1)), tally.status, 1.0)


# Estimators, scorers and splitters


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (search(LINEAR, gammas=GAMMAS), r"gammas must be None with a LinearMulticlassSVC; got \[0.1, 0.4\]"),
        (
            search(MulticlassSVC("linear"), gammas=GAMMAS),
            "gammas must be None with kernel='linear', which has no gamma",
        ),
        (search(MulticlassSVC(solver="published")), "estimator must have solver='active-set', .*; got 'published'"),
        *(
            (search(clone(estimator).set_params(time_limit=1.0)), "estimator must have time_limit=None; got 1.0")
            for estimator in (LINEAR, KERNEL)
        ),
        *(
            (search(clone(estimator).set_params(tol=-1.0)), "tol must be a finite number > 0; got -1.0")
            for estimator in (LINEAR, KERNEL)
        ),
    ],
)
def test_an_estimator_that_cannot_be_searched_for_is_refused(model, message):
    refuses(message, model.fit, X, y)
    refuses("estimator must be a MulticlassSVC or a LinearMulticlassSVC", search(SVC()).fit, X, y, error=TypeError)


@pytest.mark.parametrize("score", [None, "high", {"accuracy": 0.5}, [0.5, 0.5], np.nan])
@both
def test_a_scorer_that_does_not_return_a_number_is_refused(estimator, score):
    number = f"a number, got {re.escape(repr(score))}" if score is not np.nan else "numbers, got NaN for each of 3 set"
    model = search(estimator, scoring=lambda model, X, y: score)
    refuses(f"^scoring must return {number}", model.fit, X, y)


@both
def test_a_scorer_of_ones_own_sees_decisions_on_what_is_held_out(estimator):
    seen = []

    def scorer(model, some, labels):
        seen.append((len(some), model.decision_function(some).shape))
        return model.score(some, labels)

    search(estimator, Cs=[1.0], scoring=scorer).fit(X, y)
    assert seen == [(40, (40, 4))] * 3


class Writing(StratifiedKFold):
    """A splitter that sets the first example to zero."""

    def split(self, X, y):
        X[0] = 0
        return super().split(X, y)


class Failing(StratifiedKFold):
    """A splitter whose `split` has no parameter `groups`, which scikit-learn expects, and raises."""

    def split(self, X, y):
        raise ValueError("these examples are too few")


class Halves:
    """A splitter that knows nothing of scikit-learn."""

    def split(self, X, y):
        yield from ((np.arange(k, len(y), 2), np.arange(1 - k, len(y), 2)) for k in (0, 1))


@both
def test_the_error_of_a_splitter_is_shown(estimator):
    refuses(r"^cv must be such .*: these examples are too few$", search(estimator, cv=Failing(3)).fit, X, y)
    nothing = search(estimator, cv=[([0, 1], [])])
    refuses("cv must have folds with examples to train on and examples", nothing.fit, X, y)


@both
def test_a_fold_without_weight_has_no_score(estimator):
    model = search(estimator, cv=Halves(), refit=False).fit(X, y, sample_weight=np.ones(len(y)))
    assert np.isfinite(model.scores_).all()
    folds = [(train, test) for train, test in KFold(3).split(X)]
    weight = np.isin(np.arange(len(y)), folds[0][1], invert=True).astype(float)
    model = search(estimator, Cs=[1.0], cv=folds, refit=False).fit(X, y, sample_weight=weight)
    assert np.isnan(model.scores_).ravel().tolist() == [True, False, False]


def writing_scorer(model, X, y):
    X[0] = 0
    return model.score(X, y)


@pytest.mark.parametrize("wrong", [{"cv": Writing(3)}, {"scoring": writing_scorer}])
@both
def test_scorers_and_splitters_cannot_write_to_the_examples(estimator, wrong):
    some = X.copy()
    refuses("read-only", search(estimator, Cs=[1.0], **wrong).fit, some, y)
    np.testing.assert_array_equal(some, X)
