"""How training ends: by its criterion, a limit or Ctrl-C, always with a valid model and an honest certificate."""

import contextlib
import signal
import sys
import threading
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import larank
from checks import Interrupting, clouds, ctrl_c, interrupt_when_training
from larank import (
    ActiveLearner,
    HullerClassifier,
    LaRankClassifier,
    LinearMulticlassSVC,
    LinearSGDClassifier,
    MulticlassSVC,
    SequenceTagger,
    _core,
)
from larank.kernel.machine import OnlineClassifier
from larank.publishing import next_model
from larank.training import Limits, ObjectiveValues, TrainingWarning, train
from larank.training.progress import Progress
from references import optima

X, y = np.random.RandomState(0).randn(200, 5), np.arange(200) % 3
by_an_interrupt = partial(pytest.warns, TrainingWarning, match="ended by an interrupt, .* duality gap is")
valid_but_interrupted = partial(pytest.raises, KeyboardInterrupt, match="the model is valid")


@pytest.mark.parametrize("kind", [LinearMulticlassSVC, MulticlassSVC])
def test_limits_on_a_path_warn_for_every_model(kind):
    with pytest.warns(TrainingWarning, match="ended by max_iter=2,.*relative duality gap is") as caught:
        models = kind(tol=1e-12, max_iter=2, random_state=0).path(*clouds(200, 4), [1.0, 20.0])
    assert [model.result_.status for model in models] == ["max_iter", "max_iter"]
    assert [warning.filename for warning in caught] == [__file__] * 2


class Endless:
    """A session whose steps call a function and which never converges, unless it `is_over`."""

    def __init__(self, call=lambda: None, is_over=False):
        self.call, self.is_over, self.rounds = call, is_over, 0

    def advance(self):
        self.call()
        self.rounds += 1
        return self.is_over

    def estimate(self):
        return None

    def evaluate(self):
        yield from ()
        return ObjectiveValues(2.0, 1.0, 0.5)

    def iterations(self):
        return float(self.rounds)

    def details(self):
        return {}


class Certifying(Endless):
    """Its certificate is interrupted, too."""

    def evaluate(self):
        ctrl_c()
        yield
        return ObjectiveValues(2.0, 1.0, 0.5)


def outcome_of(session, passes=10, seconds=None):
    return train(session, Limits(None, passes, seconds), Progress())


def raise_error():
    raise ArithmeticError


@contextlib.contextmanager
def handled(number, handler):
    """Handle a signal in this way, and check in the end that it still is."""
    before = signal.signal(number, handler)
    try:
        yield
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


def test_the_handler_of_ctrl_c_is_back_whatever_ends_training():
    received = []

    def note(signum, frame):
        received.append(signum)
        raise KeyboardInterrupt

    with handled(signal.SIGINT, note):
        with interrupt_when_training(), by_an_interrupt():
            model = LinearMulticlassSVC(stop="violation", tol=1e-300, max_iter=10**9, time_limit=30).fit(X, y)
        assert model.result_.status == "interrupted"
        LinearMulticlassSVC(random_state=0).fit(X, y)
        with pytest.raises(ArithmeticError):
            outcome_of(Endless(raise_error))
        assert received == []
        with pytest.raises(KeyboardInterrupt):
            outcome_of(Certifying(ctrl_c))  # the second time, as usual
        assert received == [signal.SIGINT]


def test_ctrl_c_is_what_a_program_makes_of_it():
    with handled(signal.SIGINT, signal.SIG_IGN):
        assert outcome_of(Endless(ctrl_c)).status == "max_iter"
    with handled(signal.SIGTERM, signal.default_int_handler):
        assert outcome_of(Endless(partial(signal.raise_signal, signal.SIGTERM))).status == "interrupted"


def test_ctrl_c_during_the_certificate_is_not_lost():
    assert outcome_of(Certifying(is_over=True)).status == "interrupted"


def test_two_threads_train_at_the_same_time():
    X, y = clouds(2000, 4, 20)
    found = {}

    def fit(where, C):
        found[where, C] = LinearMulticlassSVC(C=C, random_state=0).fit(X, y).coef_.tobytes()

    threads = [threading.Thread(target=fit, args=("together", C)) for C in (0.1, 1.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for C in (0.1, 1.0):
        fit("alone", C)
        assert found["together", C] == found["alone", C]


@pytest.mark.parametrize("formulation", optima.FORMULATIONS)
@pytest.mark.parametrize(("C", "classes"), [(0.1, 4), (1.0, 4), (100.0, 4), (1.0, 100)])
def test_the_dual_never_falls_for_good(formulation, C, classes):
    """Visits solve their QPs exactly, so the dual can only rise; a move of coefficients that lowers it is undone."""
    model = LinearMulticlassSVC(formulation, C=C, tol=1e-10, max_iter=3000, random_state=0)
    with contextlib.suppress(TrainingWarning):
        model.fit(*clouds(200, classes))
    history = model.result_.history
    duals = np.array([point.dual for point in history])
    assert max(duals) <= min(point.primal for point in history if point.exact) * (1 + 1e-12)
    assert len(duals) > 1
    assert duals[-1] >= duals.max() * (1 - 1e-9)
    falls = int((np.diff(duals) < -1e-9 * np.abs(duals).max()).sum())
    assert falls <= model.result_.operations["moves"]


def test_progress_is_closed_when_training_fails(monkeypatch):
    closed = []

    class Watched(Progress):
        def close(self):
            closed.append(True)

    module = sys.modules[LinearMulticlassSVC.__module__]
    monkeypatch.setattr(module, "progress_for", lambda verbose: Watched())
    monkeypatch.setattr(module, "train", lambda *arguments, **options: raise_error())
    with pytest.raises(ArithmeticError):
        LinearMulticlassSVC().fit(X, y)
    assert closed == [True]


def test_costs_are_raised_in_time_however_large_they_are():
    with pytest.warns(TrainingWarning):
        model = LinearMulticlassSVC(C=1000.0, max_iter=300, tol=1e-9, random_state=0).fit(*load_digits(return_X_y=True))
    assert len(model.result_.history) > 1
    assert model.result_.exact
    assert 0 < model.result_.dual < model.result_.primal


def new_session(X):
    n = len(X)
    options = {"intercept": 0.0, "formulation": "crammer-singer", "classes": n, "epsilon": 0.1, "seed": 0}
    return _core.sdm_session(
        X, np.arange(n, dtype=np.int32), np.ones(n), np.ones(n), **options, shrinking=True, cooling=True
    )


@pytest.fixture
def sdm_session():
    return new_session(np.eye(3))


def test_a_session_whose_weights_were_taken_refuses_to_go_on(sdm_session):
    sdm_session.take_weights()
    with pytest.raises(RuntimeError, match="session ended"):
        sdm_session.advance(1000)


@pytest.mark.parametrize(
    ("classes", "starts", "message"),
    [
        *(
            ([0, 1], starts, "starts must ascend")
            for starts in ([0, 1, 2], [0, 2**40, 1, 2], [-1, 0, 1, 2], [0, 1, 2, 3])
        ),
        ([0, 3], [0, 1, 2, 2], "classes must count from 0"),
    ],
)
def test_coefficients_to_start_from_that_lead_elsewhere_are_refused(sdm_session, classes, starts, message):
    with pytest.raises(ValueError, match=message):
        sdm_session.start_from(np.ones(2), np.array(classes, np.int32), np.array(starts))


def test_a_model_is_trained_by_one_call_at_a_time():
    model = SequenceTagger(n_jobs=1, random_state=0)
    began, refused, errors = threading.Event(), threading.Event(), []

    def slow(previous, label):
        began.set()
        return refused.wait(10)

    def train():
        try:
            model.set_params(constraints=slow).fit([["a", "b"]] * 3, [["D", "N"]] * 3)
        except RuntimeError as error:
            errors.append(error)

    first = threading.Thread(target=train)
    first.start()
    assert began.wait(10)
    with pytest.raises(RuntimeError, match="this SequenceTagger is being trained by another call"):
        model.partial_fit([["a"]], [["D"]])
    refused.set()
    first.join()
    assert not errors
    assert model.fit([["a", "b"]], [["D", "N"]]).predict([["a", "b"]])[0] == ["D", "N"]


class Clock:
    """Time that passes only where something is said to take it."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr("time.perf_counter", lambda: self.now)


class Timed(Endless):
    """A pass takes a second, and the certificate some more, in steps of a tenth; it may say that it takes less."""

    def __init__(self, clock, certificate, said=None, call=lambda: None):
        super().__init__(call)
        self.clock, self.certificate, self.steps = clock, certificate, 0
        self.certificate_seconds = lambda: certificate if said is None else said

    def advance(self):
        self.clock.now += 1.0
        return super().advance()

    def evaluate(self):
        for _ in range(round(10 * self.certificate)):
            self.clock.now += 0.1
            self.steps += 1
            yield
        return ObjectiveValues(2.0, 1.0, 0.5)


@pytest.mark.parametrize(
    ("certificate", "said", "exact", "begun", "least", "most"),
    [
        (8.0, None, True, True, 19.0, 22.0),
        (30.0, None, False, False, 20.0, 20.0),  # most of the limit
        (30.0, 0.5, False, True, 19.0, 22.0),
    ],
)
def test_training_stops_early_enough_for_its_certificate(monkeypatch, certificate, said, exact, begun, least, most):
    clock = Clock(monkeypatch)
    training = Timed(clock, certificate, said)
    outcome = outcome_of(training, 10**9, 20.0)
    assert (outcome.status, outcome.exact, training.steps > 0) == ("time_limit", exact, begun)
    assert least <= clock.now - 100.0 <= most


def test_ctrl_c_gives_up_a_long_certificate(monkeypatch):
    clock = Clock(monkeypatch)
    outcome = outcome_of(Timed(clock, 30.0, 0.0, ctrl_c), 10**9)
    assert (outcome.status, outcome.exact) == ("interrupted", False)
    assert clock.now <= 102.0


def test_the_limit_counts_from_the_beginning_of_the_call(monkeypatch):
    clock = Clock(monkeypatch)
    training = Timed(clock, 0.0)
    with next_model(LinearMulticlassSVC()):
        clock.now += 7.0  # before training begins
        outcome_of(training, 10**9, 10.0)
    assert clock.now == 110.0
    assert training.rounds == 3


def test_a_long_history_is_thinned_out():
    model = LinearSGDClassifier(max_iter=12_000, random_state=0).fit(*clouds(4, 4))
    passes = [point.iterations for point in model.result_.history]
    assert 5_000 <= len(passes) <= 10_000
    assert passes[0] <= 1
    assert passes[-1] == 12_000
    assert passes == sorted(passes)


def test_many_passes_are_told_as_a_whole_number():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    X[1] = X[0]  # of the other class, so that no number of passes is enough
    model = HullerClassifier(gamma=1.0, tol=0.01, max_iter=1234, random_state=0)
    with pytest.warns(TrainingWarning, match="by max_iter=1234, after 1234 passes over the data"):
        model.fit(X, y)


def endless(**parameters):
    """Return an estimator whose training ends by a limit or Ctrl-C only."""
    return LinearSGDClassifier(**{"max_iter": 10**9, "time_limit": 30, "random_state": 0, **parameters})


ALPHAS = [0.1, 0.01, 0.001]
SEARCHES = {
    "grid": lambda model: GridSearchCV(model, {"alpha": ALPHAS}, n_jobs=1).fit(X, y),
    "grid of a pipeline": lambda model: GridSearchCV(
        make_pipeline(StandardScaler(), model), {"linearsgdclassifier__alpha": ALPHAS}
    ).fit(X, y),
    "cross-validation": lambda model: cross_val_score(model, X, y),
    "one against the rest": lambda model: OneVsRestClassifier(model).fit(X, y),
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_one_ctrl_c_ends_a_search(search, monkeypatch):
    statuses = []
    fit = LinearSGDClassifier.fit

    def watched(self, *arguments, **keywords):
        try:
            return fit(self, *arguments, **keywords)
        finally:
            statuses.append(self.result_.status)

    monkeypatch.setattr(LinearSGDClassifier, "fit", watched)
    with interrupt_when_training(), valid_but_interrupted():
        search(endless())
    assert statuses == ["interrupted"]


def test_a_pipeline_alone_returns_its_model():
    pipeline = make_pipeline(StandardScaler(), endless())
    with interrupt_when_training(), by_an_interrupt():
        pipeline.fit(X, y)
    assert pipeline[-1].result_.status == "interrupted"
    assert pipeline.predict(X).shape == y.shape


def test_one_may_choose_to_get_the_models_of_a_search_and_that_a_path_raises():
    search = GridSearchCV(endless(time_limit=0.3), {"alpha": [0.1]}, cv=2, refit=False)
    warned = pytest.warns(TrainingWarning, match="the model is valid")
    with larank.on_interrupt("return"), interrupt_when_training(), warned:
        search.fit(X, y)
    assert len(search.cv_results_["params"]) == 1
    model = MulticlassSVC(Interrupting(3, ctrl_c))  # the first calls come before training
    with larank.on_interrupt("raise"), valid_but_interrupted():
        model.path(X, y, [1.0, 10.0])


def test_the_choice_ends_with_its_block_and_another_one_is_refused():
    with larank.on_interrupt("raise"), larank.on_interrupt("return"):
        pass
    with interrupt_when_training(), by_an_interrupt():
        endless().fit(X, y)
    with pytest.raises(ValueError, match="on_interrupt must be one of 'auto', 'return', 'raise', got 'ignore'"):
        larank.on_interrupt("ignore").__enter__()


def test_ctrl_c_ends_an_active_learner_that_has_taken_note_of_the_labels(monkeypatch):
    def kernel(A, B):
        if 2 < len(A) <= 8 and not pressed:  # a batch of training, not the probe nor what is predicted before
            pressed.append(True)
            ctrl_c()
        return A @ B.T

    pressed = [True]
    monkeypatch.setattr(OnlineClassifier, "_BATCH_SIZE", 8)
    learner = ActiveLearner(LaRankClassifier(kernel, random_state=0), X, random_state=0)
    learner.teach(index=np.arange(20), y=y[:20])
    pressed.clear()
    labels_count = pytest.raises(KeyboardInterrupt, match="the model is valid, and the labels count")
    with pytest.warns(TrainingWarning, match="ended by an interrupt"), labels_count:
        learner.teach(index=np.arange(20, 60), y=y[20:60])
    assert learner.labels_used == 60
    assert learner.estimator.result_.status == "interrupted"
    learner.teach(index=np.arange(60, 70), y=y[60:70])


def test_coefficients_beyond_their_bounds_count_as_far_as_they_are_feasible():
    session = new_session(np.eye(3))
    session.start_from(np.array([1.5, -1.5]), np.array([0, 1], np.int32), np.array([0, 2, 2, 2]))
    assert session.coefficients()[0].tolist() == [1, -1]
    assert session.evaluate().dual == 0  # one example adds 1 and takes away half of 1 + 1


def test_a_model_that_is_no_better_than_zero_still_tells_classes_apart():
    session = new_session(np.ones((2, 1)))  # of two classes, whose losses grow and fall alike
    session.start_from(np.array([1.0, -1.0]), np.array([0, 1], np.int32), np.array([0, 2, 2]))
    assert session.evaluate().primal == pytest.approx(2, rel=1e-11)
    weights = session.take_weights().ravel()
    assert 0 < weights[0] < 1e-5
    assert weights[1] == -weights[0]
