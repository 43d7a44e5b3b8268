"""What the searches of the library do where they are cut short, and what a scorer and a splitter may do."""

import copy
import re
import signal

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedKFold

import larank
from checks import clouds, public, refuses
from larank import LinearMulticlassSVCCV, MulticlassSVCCV, TrainingWarning
from larank.crossvalidation import Choice, Tally
from larank.training import Checkpoint, Outcome, Progress, loop

CS = [0.1, 1.0, 10.0]
SEARCHES = {
    "linear": lambda **more: LinearMulticlassSVCCV(Cs=CS, cv=3, tol=1e-9, n_jobs=1, random_state=0, **more),
    "kernel": lambda **more: MulticlassSVCCV(
        Cs=CS, gammas=[0.4], cv=3, tol=1e-9, n_jobs=1, random_state=0, memory_limit=1e7, **more
    ),
}
X, y = clouds(120, 4, seed=1)


@pytest.fixture(params=SEARCHES)
def search(request):
    return SEARCHES[request.param]


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


def test_a_search_that_scored_nothing_raises(search, monkeypatch):
    end_training(monkeypatch, 1)
    model = search(time_limit=60.0)
    refuses(r"^time_limit=60.0 ended the search; 0 of 3 settings were scored on 0 of 3", model.fit, X, y)
    assert not public(model)


@pytest.mark.parametrize(
    ("number", "scored"),
    [(3, r"2 of 3 settings were scored on 1 of 3 folds"), (9, r"2 of 3 settings were scored$")],
)
def test_a_search_that_is_cut_says_how_many_settings_were_scored(search, monkeypatch, number, scored):
    end_training(monkeypatch, number)
    model = search(time_limit=60.0)
    with pytest.warns(TrainingWarning, match=rf"^time_limit=60.0 ended the search; {scored}") as caught:
        model.fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.result_.status == "time_limit"
    assert np.isnan(model.scores_).sum() == 9 - (number - 1)
    assert np.isfinite(model.best_score_)
    assert model.C_ in CS[:2]
    assert model.score(X, y) > 0.5


def test_a_search_without_a_refit_says_that_it_was_cut(search, monkeypatch):
    end_training(monkeypatch, 9)
    with pytest.warns(TrainingWarning, match="2 of 3 settings were scored$"):
        search(time_limit=60.0, refit=False).fit(X, y)


def test_a_search_that_is_not_cut_warns_of_nothing_and_has_the_status_of_its_model(search):
    assert search(time_limit=60.0).fit(X, y).result_.status == "converged"


@pytest.mark.parametrize("score", [None, "high", {"accuracy": 0.5}, [0.5, 0.5], np.nan])
def test_a_scorer_that_does_not_return_a_number_is_refused(search, score):
    number = f"a number, got {re.escape(repr(score))}" if score is not np.nan else "numbers, got NaN for each of 3 set"
    refuses(f"^scoring must return {number}", search(scoring=lambda model, X, y: score).fit, X, y)


@pytest.mark.parametrize(("number", "scored"), [(1, 0), (6, 2)])
def test_ctrl_c_in_a_search_raises_and_leaves_the_estimator_as_it_was(search, monkeypatch, number, scored):
    for model in (search(), search().fit(X, y)):
        before = copy.copy(vars(model))
        with monkeypatch.context() as patched:
            press_ctrl_c(patched, number)
            message = f"^an interrupt ended the search; {scored} of 3 settings were scored on [02] of 3 folds"
            with pytest.raises(KeyboardInterrupt, match=message):
                model.fit(X, y)
        assert vars(model) == before


def test_ctrl_c_ends_a_search_with_what_was_scored_where_it_is_to_return(search, monkeypatch):
    press_ctrl_c(monkeypatch, 9)
    with larank.on_interrupt("return"), pytest.warns(TrainingWarning) as caught:
        model = search().fit(X, y)
    assert str(caught[0].message) == "an interrupt ended the search; 2 of 3 settings were scored"
    assert model.result_.status == "interrupted"
    assert model.score(X, y) > 0.5


def ended(status):
    point = Checkpoint(0.0, 1.0, 1.0, 0.0, 0.0, exact=False)
    return Outcome(status, point, False, 0.0, 0.0, (point,))


def test_a_limit_of_another_fold_does_not_hide_ctrl_c():
    tally = Tally(Progress(), 3)
    statuses = "completed", "interrupted", "time_limit"
    assert [tally.counts(ended(status)) for status in statuses] == [True, False, False]
    assert tally.status == "interrupted"
    with pytest.raises(KeyboardInterrupt, match="an interrupt ended the search"):
        Choice.of(np.ones((1, 1)), tally.status, 1.0)


def test_ctrl_c_counts_more_than_a_limit_of_the_search(search, monkeypatch):
    """The limit ends the ninth training, and Ctrl-C ends the tenth, which trains the final model."""
    end_training(monkeypatch, 9)
    press_ctrl_c(monkeypatch, 10)
    model = search(time_limit=60.0)
    with larank.on_interrupt("return"), pytest.warns(TrainingWarning):
        model.fit(X, y)
    assert model.result_.status == "interrupted"


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


@pytest.mark.parametrize("kind", [LinearMulticlassSVCCV, MulticlassSVCCV])
def test_the_error_of_a_splitter_is_shown(kind):
    refuses(r"^cv must be such .*: these examples are too few$", kind(Cs=[1.0], cv=Failing(3)).fit, X, y)
    refuses("cv must have folds with examples to train on and examples", kind(Cs=[1.0], cv=[([0, 1], [])]).fit, X, y)


@pytest.mark.parametrize("kind", [LinearMulticlassSVCCV, MulticlassSVCCV])
def test_a_fold_without_weight_has_no_score(kind):
    model = kind(Cs=[1.0], cv=Halves(), refit=False).fit(X, y, sample_weight=np.ones(len(y)))
    assert np.isfinite(model.scores_).all()
    folds = [(train, test) for train, test in KFold(3).split(X)]
    weight = np.isin(np.arange(len(y)), folds[0][1], invert=True).astype(float)
    model = kind(Cs=[1.0], cv=folds, refit=False).fit(X, y, sample_weight=weight)
    assert np.isnan(model.scores_).reshape(3, -1).all(axis=1).tolist() == [True, False, False]
    assert np.isfinite(model.scores_[1:]).all()


def writing_scorer(model, X, y):
    X[0] = 0
    return model.score(X, y)


@pytest.mark.parametrize("wrong", [{"cv": Writing(3)}, {"scoring": writing_scorer}])
@pytest.mark.parametrize("kind", [LinearMulticlassSVCCV, MulticlassSVCCV])
def test_scorers_and_splitters_cannot_write_to_the_examples(kind, wrong):
    some = X.copy()
    refuses("read-only", kind(Cs=[1.0], **{"cv": 3, **wrong}).fit, some, y)
    np.testing.assert_array_equal(some, X)
