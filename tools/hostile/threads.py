"""Eight threads ask a model while another trains it: every answer is that of a complete model, and none fails.

The estimators are those in `larank.__all__`, so that a new one takes part by itself.
"""

from collections.abc import Iterator
from itertools import cycle
from random import Random

from checks import registered
from tools.hostile.campaign import Attack, Case

# What makes an estimator quick, or another one: each line is a case.
_VARIANTS: dict[str, list[str]] = {
    "ConceptLabeler": ["hidden_size=8, embedding_size=4, max_iter=2"],
    "KernelPerceptron": ["", "average=True", "max_support=9"],
    "LaRankClassifier": ["", "kernel='linear'", "n_jobs=2"],
    "MulticlassSVC": ["", "solver='published'"],
    "SequenceTagger": ["", "inference='greedy'", "solver='perceptron', average=True", "constraints=alternate"],
    "PathSearchCV": [
        f"larank.{kind}(random_state=0), Cs=[1.0], cv=[[list(range(9)), list(range(9))]]"
        for kind in ("LinearMulticlassSVC", "MulticlassSVC")
    ],
    "StructuredSVC": ["larank.MulticlassModel(9)", "larank.MulticlassModel(9), solver='perceptron', average=True"],
}

_SCRIPT = """
import copy, pickle, sys, threading, warnings
import numpy as np
import larank

def alternate(previous, label):
    return previous is None or label is None or previous != label

def data(kind, n, classes, random):
    "Examples and labels; later calls have classes that earlier ones have not."
    y = random.randint(0, classes, n)
    y[:classes] = np.arange(classes)
    if kind == "rows":
        return random.randn(n, 3) + 3 * np.eye(9, 3)[y], y
    words = [[f"w{{3 * label + random.randint(3)}}", f"v{{label}}"] for label in y]
    names = {{
        "SequenceTagger": [[f"t{{label}}", "v"] for label in y],
        "ConceptLabeler": [[f"t{{label}}", "-"] for label in y],
        "SemanticParser": [f"v{{label}}(t{{label}})" for label in y],
    }}
    return words, names[kind]

def answers(model, X, is_copied=True):
    "Return the answer of each way to ask, and of a copy of the model, as bytes."
    for name in ("predict", "decision_function", "predict_proba", "transform", "joint_scores", "coef_", "label"):
        if hasattr(model, name):
            ask = getattr(model, name)
            found = ask if not callable(ask) else ask(X) if name != "joint_scores" else ask(X, [0] * len(X))
            yield name, pickle.dumps(found)
    if not is_copied:
        return
    if is_saved:
        larank.save(model, f"{{threading.get_ident()}}.larank")
        other = larank.load(f"{{threading.get_ident()}}.larank")
    else:
        other = copy.deepcopy(model)
    yield "copied", pickle.dumps(getattr(other, ways[0])(X))

warnings.simplefilter("ignore")
sys.setswitchinterval(1e-5)
random = np.random.RandomState({seed})
kind = "{name}" if "{name}" in ("SequenceTagger", "ConceptLabeler", "SemanticParser") else "rows"
model = larank.{name}({parameters})
for given, value in (("random_state", 0), ("gamma", 0.5)):
    if given in model.get_params():
        model.set_params(**{{given: value}})
ways = [name for name in ("predict", "transform") if hasattr(model, name)]
is_saved = not any(callable(value) or hasattr(value, "argmax") for value in model.get_params().values())
X, _ = data(kind, {asked}, 4, random)
train = getattr(model, "{call}", model.fit)
model.fit(*data(kind, 12, 2, random))
complete = [dict(answers(model, X))]
given, failures, is_over = set(), [], threading.Event()

def ask(is_copied):
    try:
        while not is_over.is_set():
            given.update(answers(model, X, is_copied))
    except BaseException as error:
        failures.append(error)

threads = [threading.Thread(target=ask, args=(number % 4 == 0,)) for number in range(8)]
for thread in threads:
    thread.start()
try:
    for call in range({calls}):
        train(*data(kind, {size}, min(9, 3 + call), random))
        complete.append(dict(answers(model, X)))
finally:
    is_over.set()
    for thread in threads:
        thread.join()
for error in failures:
    raise error
for way, answer in given:
    assert any(model_answers.get(way) == answer for model_answers in complete), f"{{way}} is that of no model"
"""


ESTIMATORS = [(name, parameters) for name in registered() for parameters in _VARIANTS.get(name, [""])]


def cases(random: Random) -> Iterator[Case]:
    """All estimators in turn, by `partial_fit` if they have it, and sometimes by `fit`; the first time few calls."""
    for number, (name, parameters) in enumerate(cycle(ESTIMATORS)):
        is_first = number < len(ESTIMATORS)
        words = {
            "seed": random.randrange(2**31),
            "call": random.choice(["partial_fit", "partial_fit", "fit"]),
            "calls": 2 if is_first else random.choice([3, 6]),
            "size": 9 if is_first else random.choice([9, 9, 60]),
            "asked": 4 if is_first else random.choice([4, 30]),
        }
        yield Case(_SCRIPT.format(name=name, parameters=parameters, **words))


ATTACK = Attack(cases, warm_up="import larank, pickle, threading, numpy", megabytes=2000, seconds=120)
