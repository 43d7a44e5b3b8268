"""What the machine of the kernel estimators promises beside its models."""

import gc
import weakref

import numpy as np
import pytest

import larank
from larank.kernel.machine import OnlineClassifier, StreamTraining

ONLINE = [
    name
    for name in larank.__all__
    if isinstance(getattr(larank, name), type) and issubclass(getattr(larank, name), OnlineClassifier)
]


@pytest.mark.parametrize("verb", ["fit", "partial_fit"])
@pytest.mark.parametrize("name", ONLINE)
def test_what_training_held_is_let_go_when_it_ends(name, verb, monkeypatch):
    trainings = []
    begin = StreamTraining.__init__

    def watched(self, *arguments, **options):
        begin(self, *arguments, **options)
        trainings.append(weakref.ref(self))

    monkeypatch.setattr(StreamTraining, "__init__", watched)
    X, y = np.random.RandomState(0).randn(120, 3), np.arange(120) % 3
    gc.disable()  # what is left to a collection of cycles takes memory until then
    try:
        getattr(getattr(larank, name)(random_state=0), verb)(X, y)
        assert [training() for training in trainings] == [None]
    finally:
        gc.enable()
