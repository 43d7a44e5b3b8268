"""How training ends: by its criterion, a limit or Ctrl-C, always with a valid model and an honest certificate."""

import contextlib
import signal
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.datasets import load_digits

from checks import clouds, interrupt_when_training
from larank import HullerClassifier, LinearMulticlassSVC, MulticlassSVC, SequenceTagger, SGDQNClassifier, _core
from larank.publishing import next_model
from larank.training import Limits, TrainingWarning, train
from larank.training.progress import Progress
from references import optima


def endless(**parameters):
    """Training that does not reach its criterion: rounding alone violates optimality by more."""
    return LinearMulticlassSVC(stop="violation", tol=1e-300, max_iter=10**9, random_state=0, **parameters)


# Limits


@pytest.mark.parametrize("kind", [LinearMulticlassSVC, MulticlassSVC])
def test_limits_on_a_path_warn_for_every_model(kind):
    X, y = clouds(200, 4)
    with pytest.warns(TrainingWarning) as caught:
        models = kind(tol=1e-12, max_iter=2, random_state=0).path(X, y, [1.0, 20.0])
    assert [model.result_.status for model in models] == ["max_iter", "max_iter"]
    assert len(caught) == 2
    assert {warning.filename for warning in caught} == {__file__}


# Interruption


@pytest.fixture
def handler():
    """A SIGINT handler of one's own, which must be back afterwards."""
    received = []

    def note(signum, frame):
        received.append(signum)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    yield note, received
    assert signal.getsignal(signal.SIGINT) is note
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_training_with_a_model(handler):
    with interrupt_when_training(), pytest.warns(TrainingWarning, match="ended by an interrupt, .* duality gap is"):
        model = endless(time_limit=30).fit(*clouds(200, 4, 5))
    assert model.result_.status == "interrupted"
    assert handler[1] == []


def test_the_handler_comes_back_after_training_that_was_not_interrupted(handler):
    _, received = handler
    LinearMulticlassSVC(random_state=0).fit(*clouds(200, 4, 5))
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert received == [signal.SIGINT]


def test_the_handler_comes_back_after_an_error(handler):
    class Failing(Endless):
        def advance(self):
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        train(Failing(), Limits(None, 10, None), Progress())


class Endless:
    """A session that never converges."""

    def __init__(self):
        self.rounds = 0

    def advance(self):
        self.rounds += 1
        return False

    def estimate(self):
        return None

    def evaluate(self):
        yield from ()
        return Point(2.0, 1.0, 0.5)

    def iterations(self):
        return float(self.rounds)

    def details(self):
        return {}


class Point:
    def __init__(self, primal, dual, violation):
        self.primal, self.dual, self.violation = primal, dual, violation


def test_a_second_ctrl_c_interrupts_as_usual(handler):
    class Slow(Endless):
        def evaluate(self):
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("not reached")
            yield

    class Interrupted(Slow):
        def advance(self):
            signal.raise_signal(signal.SIGINT)
            return False

    with pytest.raises(KeyboardInterrupt):
        train(Interrupted(), Limits(None, 10**9, None), Progress())


def test_an_ignored_ctrl_c_stays_ignored():
    class Ignoring(Endless):
        def advance(self):
            signal.raise_signal(signal.SIGINT)
            return super().advance()

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        outcome = train(Ignoring(), Limits(None, 5, None), Progress())
        assert outcome.status == "max_iter"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def in_a_thread(function):
    outcome = []
    thread = threading.Thread(target=lambda: outcome.append(function()))
    thread.start()
    thread.join()
    return outcome[0]


def test_training_in_a_worker_thread_gives_the_same_model(handler):
    X, y = clouds(200, 4, 5)
    here = LinearMulticlassSVC(random_state=0).fit(X, y)
    there = in_a_thread(lambda: LinearMulticlassSVC(random_state=0).fit(X, y))
    assert there.coef_.tobytes() == here.coef_.tobytes()


def test_two_threads_train_at_the_same_time():
    X, y = clouds(2000, 4, 20)
    alone = [LinearMulticlassSVC(C=C, random_state=0).fit(X, y).coef_.tobytes() for C in (0.1, 1.0)]
    together = [None, None]

    def fit(number, C):
        together[number] = LinearMulticlassSVC(C=C, random_state=0).fit(X, y).coef_.tobytes()

    threads = [threading.Thread(target=fit, args=pair) for pair in enumerate((0.1, 1.0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


# History


@pytest.mark.parametrize("formulation", optima.FORMULATIONS)
@pytest.mark.parametrize(("C", "classes"), [(0.1, 4), (1.0, 4), (100.0, 4), (1.0, 100)])
def test_the_dual_never_falls_for_good(formulation, C, classes):
    """Visits solve their QPs exactly, so the dual can only rise; a move of coefficients that lowers it is undone."""
    X, y = clouds(200, classes)
    model = LinearMulticlassSVC(formulation, C=C, tol=1e-10, max_iter=3000, random_state=0)
    with contextlib.suppress(TrainingWarning):
        model.fit(X, y)
    duals = np.array([point.dual for point in model.result_.history])
    assert len(duals) > 1
    assert duals[-1] >= duals.max() * (1 - 1e-9)
    falls = int((np.diff(duals) < -1e-9 * np.abs(duals).max()).sum())
    assert falls <= model.result_.operations["moves"]


def test_every_checkpoint_of_the_dual_is_a_lower_bound_of_every_exact_primal():
    X, y = clouds(200, 4, 5)
    result = LinearMulticlassSVC(tol=1e-8, max_iter=10**5, random_state=0).fit(X, y).result_
    lowest = min(point.primal for point in result.history if point.exact)
    assert max(point.dual for point in result.history) <= lowest * (1 + 1e-12)


def test_progress_is_closed_when_training_fails(monkeypatch):
    closed = []

    class Watched(Progress):
        def close(self):
            closed.append(True)

    def failing(*arguments, **options):
        raise MemoryError

    module = sys.modules[LinearMulticlassSVC.__module__]
    monkeypatch.setattr(module, "progress_for", lambda verbose: Watched())
    monkeypatch.setattr(module, "train", failing)
    with pytest.raises(MemoryError):
        LinearMulticlassSVC().fit(*clouds(200, 4, 5))
    assert closed == [True]


def test_costs_are_raised_in_time_however_large_they_are():
    X, y = load_digits(return_X_y=True)
    with pytest.warns(TrainingWarning):
        model = LinearMulticlassSVC(C=1000.0, max_iter=300, tol=1e-9, random_state=0).fit(X, y)
    assert len(model.result_.history) > 1


def sdm_session(X=np.eye(3)):  # noqa: B008 - it is not changed
    n = len(X)
    return _core.sdm_session(
        X,
        np.arange(n, dtype=np.int32),
        np.ones(n),
        np.ones(n),
        intercept=0.0,
        formulation="crammer-singer",
        classes=n,
        epsilon=0.1,
        shrinking=True,
        cooling=True,
        seed=0,
    )


def test_a_session_whose_weights_were_taken_refuses_to_go_on():
    session = sdm_session()
    session.take_weights()
    with pytest.raises(RuntimeError, match="session ended"):
        session.advance(1000)


@pytest.mark.parametrize(
    ("classes", "starts", "message"),
    [
        ([0, 1], [0, 1, 2], "starts must ascend"),
        ([0, 1], [0, 2**40, 1, 2], "starts must ascend"),
        ([0, 1], [-1, 0, 1, 2], "starts must ascend"),
        ([0, 1], [0, 1, 2, 3], "starts must ascend"),
        ([0, 3], [0, 1, 2, 2], "classes must count from 0"),
    ],
)
def test_coefficients_to_start_from_that_lead_elsewhere_are_refused(classes, starts, message):
    with pytest.raises(ValueError, match=message):
        sdm_session().start_from(np.ones(2), np.array(classes, np.int32), np.array(starts))


def test_a_model_is_trained_by_one_call_at_a_time():
    model = SequenceTagger(n_jobs=1, random_state=0)
    began, errors = threading.Event(), []

    def slow(previous, label):
        began.set()
        time.sleep(0.05)
        return True

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
    first.join()
    assert not errors
    assert model.fit([["a", "b"]], [["D", "N"]]).predict([["a", "b"]])[0] == ["D", "N"]


# Time


class Clock:
    """Time that passes only where something is said to take it."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr("time.perf_counter", lambda: self.now)


class Timed(Endless):
    """A pass takes a second, and the certificate some more, in steps of a tenth."""

    def __init__(self, clock, certificate):
        super().__init__()
        self.clock, self.certificate, self.steps = clock, certificate, 0

    def advance(self):
        self.clock.now += 1.0
        return super().advance()

    def certificate_seconds(self):
        return self.certificate

    def evaluate(self):
        for _ in range(round(10 * self.certificate)):
            self.clock.now += 0.1
            self.steps += 1
            yield
        return Point(2.0, 1.0, 0.5)


def taken(monkeypatch, certificate, limit, kind=Timed):
    clock = Clock(monkeypatch)
    training = kind(clock, certificate)
    outcome = train(training, Limits(None, 10**9, limit), Progress())
    assert outcome.status == "time_limit"
    return clock.now - 100.0, outcome.exact, training


def test_training_stops_early_enough_for_its_certificate(monkeypatch):
    seconds, is_exact, _ = taken(monkeypatch, certificate=8.0, limit=20.0)
    assert is_exact
    assert 19.0 <= seconds <= 22.0


def test_a_certificate_that_would_take_most_of_the_limit_is_not_begun(monkeypatch):
    seconds, is_exact, training = taken(monkeypatch, certificate=30.0, limit=20.0)
    assert (seconds, is_exact, training.steps) == (20.0, False, 0)


def test_a_certificate_that_takes_longer_than_expected_is_given_up(monkeypatch):
    class Surprising(Timed):
        def certificate_seconds(self):
            return 0.5

    seconds, is_exact, training = taken(monkeypatch, certificate=30.0, limit=20.0, kind=Surprising)
    assert not is_exact
    assert training.steps > 0
    assert seconds <= 22.0


def test_ctrl_c_gives_up_a_long_certificate(monkeypatch):
    class Interrupted(Timed):
        def advance(self):
            signal.raise_signal(signal.SIGINT)
            return super().advance()

        def certificate_seconds(self):
            return 0.0

    clock = Clock(monkeypatch)
    outcome = train(Interrupted(clock, 30.0), Limits(None, 10**9, None), Progress())
    assert (outcome.status, outcome.exact) == ("interrupted", False)
    assert clock.now <= 102.0


def test_the_limit_counts_from_the_beginning_of_the_call(monkeypatch):
    clock = Clock(monkeypatch)
    training = Timed(clock, 0.0)
    with next_model(LinearMulticlassSVC()):
        clock.now += 7.0  # before training begins
        train(training, Limits(None, 10**9, 10.0), Progress())
    assert clock.now == 110.0
    assert training.rounds == 3


def test_a_long_history_is_thinned_out():
    X, y = clouds(4, 4)
    model = SGDQNClassifier(epochs=12_000, random_state=0).fit(X, y)
    passes = [point.iterations for point in model.result_.history]
    assert 5_000 <= len(passes) <= 10_000
    assert passes[0] <= 1
    assert passes[-1] == 12_000
    assert passes == sorted(passes)


def test_many_passes_are_told_as_a_whole_number():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(20, 2)), np.arange(20) % 2
    X[1] = X[0]  # of the other class, so that no number of passes is enough
    model = HullerClassifier(gamma=1.0, stop="gap", tol=0.01, max_iter=1234, random_state=0)
    with pytest.warns(TrainingWarning, match="by max_iter=1234, after 1234 passes over the data"):
        model.fit(X, y)


def test_coefficients_beyond_their_bounds_count_as_far_as_they_are_feasible():
    session = sdm_session()
    session.start_from(np.array([1.5, -1.5]), np.array([0, 1], np.int32), np.array([0, 2, 2, 2]))
    assert session.coefficients()[0].tolist() == [1, -1]
    assert session.evaluate().dual == 0  # one example adds 1 and takes away half of 1 + 1


def test_a_model_that_is_no_better_than_zero_still_tells_classes_apart():
    session = sdm_session(np.ones((2, 1)))  # of two classes, whose losses grow and fall alike
    session.start_from(np.array([1.0, -1.0]), np.array([0, 1], np.int32), np.array([0, 2, 2]))
    assert session.evaluate().primal == pytest.approx(2, rel=1e-11)
    weights = session.take_weights().ravel()
    assert 0 < weights[0] < 1e-5
    assert weights[1] == -weights[0]
