"""Models that are left to readers: the same whoever reads them, how often and when, and whatever fails meanwhile."""

import pickle
import threading

import numpy as np
import pytest
from scipy import sparse

from checks import assert_same_model, assert_same_result
from larank import LaSVM, LaSVMClassifier
from larank.kernel.stream import KernelFeed

random = np.random.RandomState(0)
X = random.randn(120, 3)
y = np.where(X[:, 0] * X[:, 1] + 0.5 * random.randn(120) > 0, "yes", "no")
parts = [slice(first, first + 20) for first in range(0, 120, 20)]


def lasvm(**parameters):
    return LaSVMClassifier(**{"gamma": 0.5, "C": 2.0, "random_state": 0, "n_jobs": 1, **parameters})


def streamed(model, upto=6, read=None):
    for part in parts[:upto]:
        model.partial_fit(X[part], y[part], classes=["no", "yes"])
        if read is not None:
            read(model)
    return model


def assert_same_model_and_result(one, other):
    assert_same_model(one, other)
    assert_same_result(one, other)


@pytest.mark.parametrize(
    "read",
    [lambda model: model.predict(X[:2]), lambda model: model.dual_coef_, pickle.dumps, lambda model: model.result_],
)
@pytest.mark.parametrize("finish", [True, False])
def test_how_often_a_model_is_read_does_not_change_the_stream(read, finish):
    assert_same_model_and_result(streamed(lasvm(finish=finish), read=read), streamed(lasvm(finish=finish)))


def test_nothing_is_finished_until_somebody_reads():
    model = streamed(lasvm())
    assert model._machine.session.counters.finishing_steps == 0
    assert model.result_.operations["finishing_steps"] > 0


def test_parameters_set_after_training_do_not_change_an_unread_model():
    model, other = streamed(lasvm()), streamed(lasvm())
    model.set_params(finish=False, solver=LaSVM(tau=1.0))
    assert_same_model_and_result(model, other)


def test_what_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'LaSVMClassifier' object has no attribute 'dual_coef_'"):
        lasvm().dual_coef_  # noqa: B018
    assert not hasattr(streamed(lasvm()), "coef_")
    assert streamed(lasvm(kernel="linear")).coef_.shape == (1, 3)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_call_that_fails_leaves_an_unread_model_as_it_was(form, monkeypatch):
    def fitted(read):
        model = lasvm()
        for part in parts[:3]:
            model.partial_fit(form(X[part]), y[part], classes=["no", "yes"])
        if read:
            model.predict(form(X))
        return model

    model, twin = fitted(False), fitted(True)
    advance = KernelFeed.advance

    def fail(feed, examples):
        if feed.session.counters.process >= 75:
            raise RuntimeError("no more")
        return advance(feed, min(examples, 5))

    with monkeypatch.context() as patched:
        patched.setattr(KernelFeed, "advance", fail)
        for each in (model, twin):
            with pytest.raises(RuntimeError, match="no more"):
                each.partial_fit(form(X[60:100]), y[60:100])
    assert np.array_equal(model.support_, twin.support_)
    np.testing.assert_allclose(model.dual_coef_, twin.dual_coef_, rtol=1e-6)
    for each in (model, twin):
        each.partial_fit(form(X[60:100]), y[60:100])
    np.testing.assert_allclose(model.decision_function(form(X)), twin.decision_function(form(X)), rtol=1e-6)


def test_readers_are_not_starved_by_a_thread_that_trains():
    model, wanted = streamed(lasvm(), 1), 30
    found, is_over = [], threading.Event()

    def read():
        while len(found) < wanted:
            found.append((len(model.classes_), model.decision_function(X).shape))
        is_over.set()

    reader = threading.Thread(target=read)
    reader.start()
    for call in range(100_000):
        part = parts[call % len(parts)]
        model.partial_fit(X[part], y[part])
        if is_over.is_set():
            break
    else:
        pytest.fail("thirty answers took longer than all of training")
    reader.join()
    assert found == [(2, (120,))] * len(found)
