"""Ctrl-C ends a search, and gives the model where a single one is trained; users may choose otherwise."""

import signal

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import larank
from checks import Interrupting, ctrl_c, interrupt_when_training
from larank import ActiveLearner, LaRankClassifier, MulticlassSVC, SGDQNClassifier, TrainingWarning

X, y = np.random.RandomState(0).randn(200, 5), np.arange(200) % 3
alphas = [0.1, 0.01, 0.001]


def endless(**parameters):
    """Training that ends by a limit or Ctrl-C only."""
    return SGDQNClassifier(epochs=10**9, time_limit=30, random_state=0, **parameters)


SEARCHES = {
    "grid": lambda model: GridSearchCV(model, {"alpha": alphas}, n_jobs=1).fit(X, y),
    "grid of a pipeline": lambda model: GridSearchCV(
        make_pipeline(StandardScaler(), model), {"sgdqnclassifier__alpha": alphas}
    ).fit(X, y),
    "cross-validation": lambda model: cross_val_score(model, X, y),
    "one against the rest": lambda model: OneVsRestClassifier(model).fit(X, y),
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_one_ctrl_c_ends_a_search(search, monkeypatch):
    statuses = []
    fit = SGDQNClassifier.fit

    def watched(self, *arguments, **keywords):
        try:
            return fit(self, *arguments, **keywords)
        finally:
            statuses.append(self.result_.status)

    monkeypatch.setattr(SGDQNClassifier, "fit", watched)
    with interrupt_when_training(), pytest.raises(KeyboardInterrupt, match="the model is valid"):
        search(endless())
    assert statuses == ["interrupted"]


def test_a_pipeline_alone_returns_its_model():
    pipeline = make_pipeline(StandardScaler(), endless())
    with interrupt_when_training(), pytest.warns(TrainingWarning, match="ended by an interrupt"):
        pipeline.fit(X, y)
    assert pipeline[-1].result_.status == "interrupted"
    assert pipeline.predict(X).shape == y.shape


def test_one_may_choose_to_get_the_models_of_a_search():
    search = GridSearchCV(endless().set_params(time_limit=0.3), {"alpha": [0.1]}, cv=2, refit=False)
    with (
        larank.on_interrupt("return"),
        interrupt_when_training(),
        pytest.warns(TrainingWarning, match="the model is valid"),
    ):
        search.fit(X, y)
    assert len(search.cv_results_["params"]) == 1


def test_one_may_choose_that_a_path_raises():
    model = MulticlassSVC(Interrupting(3, ctrl_c))  # the first calls come before training
    with larank.on_interrupt("raise"), pytest.raises(KeyboardInterrupt, match="the model is valid"):
        model.path(X, y, [1.0, 10.0])


def test_the_choice_ends_with_its_block():
    with larank.on_interrupt("raise"), larank.on_interrupt("return"):
        pass
    with interrupt_when_training(), pytest.warns(TrainingWarning, match="ended by an interrupt"):
        endless().fit(X, y)


def test_a_choice_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="on_interrupt must be one of 'auto', 'return', 'raise', got 'ignore'"):
        larank.on_interrupt("ignore").__enter__()


def test_ctrl_c_ends_an_active_learner_that_has_taken_note_of_the_labels():
    def kernel(A, B):
        if 2 < len(A) <= 8 and not pressed:  # a batch of training, not the probe nor what is predicted before
            pressed.append(True)
            signal.raise_signal(signal.SIGINT)
        return A @ B.T

    pressed = [True]
    learner = ActiveLearner(LaRankClassifier(kernel, batch_size=8, random_state=0), X, random_state=0)
    learner.teach(index=np.arange(20), y=y[:20])
    pressed.clear()
    with (
        pytest.warns(TrainingWarning, match="ended by an interrupt"),
        pytest.raises(KeyboardInterrupt, match="the model is valid, and the labels count"),
    ):
        learner.teach(index=np.arange(20, 60), y=y[20:60])
    assert learner.labels_used == 60
    assert learner.estimator.result_.status == "interrupted"
    learner.teach(index=np.arange(60, 70), y=y[60:70])
