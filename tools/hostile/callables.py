"""What a user has written raises at its k-th call, for every k: the model is as it was, and training goes on.

Where there are many calls, these are the first ones and some spread over the rest. A case is an estimator, what is
called in it, and how it is trained. Kernel values and features are whole numbers, so that a second call makes the model
of a stream without a failure to the last bit.
"""

import inspect
from collections.abc import Iterator
from itertools import cycle, product
from random import Random

import larank
from checks import registered
from tools.hostile.campaign import Attack, Case

_SCRIPT = """
import warnings
import numpy as np
import larank
from sklearn.exceptions import NotFittedError

class Planted(Exception):
    pass

class Calls:
    count = fails_at = 0

def called():
    Calls.count += 1
    if Calls.count == Calls.fails_at:
        raise Planted(f"at call {{Calls.count}}")

def kernel(A, B):
    called()
    return (1.0 + np.asarray(A) @ np.asarray(B).T) ** 2

def allowed(previous, label):
    called()
    return True

class Costs(dict):
    def get(self, *pair):
        called()
        return super().get(*pair)

class Choice:
    draws, budget, needs_scores, needs_labels = 3, None, True, True
    def choose(self, margins, reach):
        called()
        return int(np.argmin(margins))

class Features(larank.MulticlassModel):
    def argmax(self, x, w, y_true=None):
        called()
        return super().argmax(x, w, y_true)
    def argmax_batch(self, X, w, y_true=None):
        called()
        return super().argmax_batch(X, w, y_true)
    def joint_feature(self, x, y):
        called()
        return super().joint_feature(x, y)
    def loss(self, y_true, y):
        called()
        return super().loss(y_true, y)

class Kernel(larank.StructuredModel):
    def joint_kernel(self, x, y, x2, y2):
        called()
        return float(y == y2) * float(1 + x @ x2)
    def argmax(self, x, w, y_true=None):
        called()
        return max(range(4), key=lambda y: w(y) + (0 if y_true is None else self.loss(y_true, y)))
    def loss(self, y_true, y):
        called()
        return float(y != y_true)

class Blocks:
    "Examples that come a few at a time."
    def __init__(self, X, y):
        self.X, self.y = X, y
    def __iter__(self):
        for first in range(0, len(self.y), 5):
            called()
            yield self.X[first : first + 5], self.y[first : first + 5]

def rows(n, classes):
    y = np.arange(n) % classes
    return random.randint(-3, 4, (n, 3)).astype(float) + 3 * np.eye(4, 3)[y], y

def sentences(n, classes):
    return [[f"w{{i % 5}}", f"v{{i % 3}}"] for i in range(n)], [[f"t{{i % classes}}", "v"] for i in range(n)]

def blocks(n, classes):
    return (Blocks(*rows(n, classes)),)

def answers(model):
    asked = model.transform if hasattr(model, "transform") else getattr(model, "decision_function", model.predict)
    return np.asarray(asked(test))

def train(model, call, data):
    Calls.count = 0
    getattr(model, call)(*data)

warnings.simplefilter("ignore")
random = np.random.RandomState({seed})
first, second, test = {data}({size}, 3), {data}({size}, 4), {data}(9, 4)[0]
test = test.X if isinstance(test, Blocks) else test

def begun():
    Calls.fails_at = 0
    model = larank.{name}({parameters})
    for given, value in (("random_state", 0), ("n_jobs", 1)):
        if given in model.get_params():
            model.set_params(**{{given: value}})
    model._BATCH_SIZE = 8
    if {is_begun}:
        train(model, "{call}", first)
    return model

undisturbed = begun()
train(undisturbed, "{call}", second)
assert Calls.count, "nothing is called"
count = Calls.count
some = np.linspace(1, count, {some}).astype(int).tolist()
for k in sorted({{*range(1, min(count, {some}) + 1), *some}}):
    model = begun()
    before = answers(model) if {is_begun} else None
    names = set(vars(model))
    Calls.fails_at = k
    try:
        train(model, "{call}", second)
        raise AssertionError(f"call {{k}} did not fail")
    except Planted:
        Calls.fails_at = 0
    assert set(vars(model)) == names, f"after call {{k}} it has other attributes"
    try:
        assert np.array_equal(answers(model), before), f"after call {{k}} it is another model"
    except NotFittedError:
        assert not {is_begun}, f"after call {{k}} it is not fitted any more"
    train(model, "{call}", second)
    assert np.array_equal(answers(model), answers(undisturbed)), f"after call {{k}} training goes on to another model"
"""

_STRUCTURED = ("larank", "svmstruct", "svmstruct-1slack", "perceptron", "passive-aggressive")
_TARGETS = [
    *((name, "kernel=kernel", "rows") for name in registered()),
    ("PathSearchCV", "larank.MulticlassSVC(kernel, random_state=0), cv=2", "rows"),
    ("LaSVMClassifier", "kernel='rbf', gamma=0.1, selection=Choice()", "rows"),
    ("SequenceTagger", "constraints=allowed", "sentences"),
    ("SequenceTagger", "'greedy', constraints=allowed", "sentences"),
    ("SequenceTagger", "label_costs=Costs()", "sentences"),
    ("LinearSGDClassifier", "t0=100.0", "blocks"),
    *(("StructuredSVC", f"Features(4), solver={solver!r}", "rows") for solver in _STRUCTURED),
    *(
        ("StructuredSVC", f"Kernel(), solver={solver!r}", "rows")
        for solver in _STRUCTURED
        if solver != "svmstruct-1slack"
    ),
]


def _is_possible(name: str, parameters: str, call: str) -> bool:
    """Whether the estimator has the parameter and the call."""
    kind = getattr(larank, name)
    takes = "kernel=kernel" not in parameters or "kernel" in inspect.signature(kind).parameters
    streams = "selection" not in parameters and "svmstruct" not in parameters and hasattr(kind, "partial_fit")
    return takes and (call == "fit" or streams)


COMBINATIONS = [
    (*target, call, is_begun)
    for target, call, is_begun in product(_TARGETS, ("fit", "partial_fit"), (False, True))
    if _is_possible(*target[:2], call)
]


def cases(random: Random) -> Iterator[Case]:
    """All combinations in turn, the first time with few examples."""
    for number, (name, parameters, data, call, is_begun) in enumerate(cycle(COMBINATIONS)):
        size = 12 if number < len(COMBINATIONS) else random.choice([8, 12, 24])
        some = 2 if number < len(COMBINATIONS) else random.randrange(10, 40)
        words = {"some": some, "name": name, "parameters": parameters, "data": data, "call": call, "is_begun": is_begun}
        yield Case(_SCRIPT.format(seed=random.randrange(2**31), size=size, **words))


ATTACK = Attack(cases, warm_up="import larank, numpy, sklearn.exceptions", megabytes=500, seconds=120)
