"""Damaged model files of every class: described, loaded and, if they load, asked and trained further."""

import json
import pickle
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import polars
from scipy.sparse import csr_matrix
from sklearn.pipeline import make_pipeline

import larank
from forging import joined, sealed, split
from larank.data import models
from tools.hostile.campaign import Attack, Case, made_apart
from tools.hostile.mutations import damaged as mutated

# ---- What a model is asked; its cost must not be what a damaged parameter says ----

_ASK = """
import pickle, warnings
import numpy as np
import larank
from larank.cli.info import info
from larank.data.models import describe, load

warnings.simplefilter("ignore")
np.seterr(all="ignore")
MOST = {{"n_reprocess": 10, "n_steps": 10, "max_iter": 10, "n_jobs": 1, "verbose": 0}}
try:
    {describe}
except larank.data.models.ModelFileError:
    pass
model = load("model.larank")
for name, value in model.get_params(deep=False).items():
    if name in MOST and isinstance(value, int) and not -1 <= value <= MOST[name]:
        model.set_params(**{{name: MOST[name]}})
    if isinstance(value, larank.LaRank) and (value.n_reprocess or 0) > MOST["n_reprocess"]:
        model.set_params(**{{name: larank.LaRank(**{{**vars(value), "n_reprocess": MOST["n_reprocess"]}})}})
with open("asked.pickle", "rb") as file:
    X, y = pickle.load(file)
if isinstance(y, np.ndarray) and hasattr(model, "classes_"):
    y = model.classes_[np.arange(len(y)) % len(model.classes_)]

def tried(ask):
    try:
        ask()
    except ValueError as error:
        # The data may not be the model's, and large numbers may overflow, which is told in these words.
        if not any(words in str(error) for words in ("features", "column", "scale X", "overflow")):
            raise

for name in ("predict", "decision_function", "transform", "predict_proba", "tag"):
    if hasattr(model, name):
        tried(lambda: getattr(model, name)(X))
if hasattr(model, "explain"):
    tried(lambda: model.explain(X[0]))
for name in ("coef_", "transitions_", "concept_vectors_"):
    tried(lambda: getattr(model, name, None))
if hasattr(model, "summary"):
    model.summary()
if hasattr(model, "partial_fit"):
    try:
        model.partial_fit(X, y)
    except ValueError:
        pass  # parameters that only training looks at, and coefficients that no training leaves
    else:
        tried(lambda: model.predict(X))
"""
_ASK_LEARNER = """
import numpy as np
import larank

X = np.random.RandomState(0).randn(20, 4)
try:
    learner = larank.ActiveLearner.load("model.larank", X)
    learner.query(3), learner.labelled, learner.advice(), learner.undo()
except larank.data.models.ModelFileError:
    raise
except ValueError:
    pass  # another pool, numbers that cannot be learnt from, nothing to undo
"""


# ---- Sound models, small ones of each kind, and the examples and labels that each is asked with ----

_Asked = tuple[object, object, object]
_EXAMPLES, _FEW = 30, 8


def _models() -> Iterator[_Asked]:
    from checks import CASES, names

    for case in CASES:
        X, y = (given[:_EXAMPLES] for given in case.data)
        yield case.make().fit(X, y), X[:_FEW], y[:_FEW]
        if case.takes_matrices and not case.variant:
            call = "partial_fit" if case.streams else "fit"
            octets = np.clip(20 * X + 100, 0, 255).astype(np.uint8)
            for examples, labels in (
                (csr_matrix(np.where(X > 0, X, 0)), y % 2),
                (X.astype(np.float32), names[y]),
                (octets, y),
            ):
                yield getattr(case.make(), call)(examples, labels), examples[:_FEW], labels[:_FEW]
        if case.has_kernel:
            K = X @ X.T
            yield case.make(kernel="precomputed").fit(K, y), K[:_FEW], y[:_FEW]
    yield from _structured(X := np.random.RandomState(0).randn(_EXAMPLES, 4), np.arange(_EXAMPLES) % 3)
    yield from _taggers()
    yield from _tables(X)
    yield _learner(), None, None


def _structured(X: np.ndarray, y: np.ndarray) -> Iterator[_Asked]:
    for solver in ("perceptron", "passive-aggressive", "svmstruct", "svmstruct-1slack"):
        model = larank.StructuredSVC(larank.MulticlassModel(3), solver=solver, random_state=0)
        yield model.fit(X, y), X[:_FEW], y[:_FEW].tolist()
    adaptive = larank.StructuredSVC(
        larank.MulticlassModel(3), solver=larank.LaRank(schedule="adaptive"), random_state=0
    )
    yield adaptive.partial_fit(X, y), X[:_FEW], y[:_FEW].tolist()


def _taggers() -> Iterator[_Asked]:
    X, y = [["the", "cat", "sleeps"], ["a", "dog"]], [["O", "B-X", "I-X"], ["O", "B-X"]]
    for more in (
        {"constraints": "BIO", "solver": larank.LaRank(n_reprocess=2)},
        {"inference": "greedy", "order": 2},
        {"solver": "perceptron", "average": True},
        {"solver": "passive-aggressive", "order": 0, "label_costs": {("O", "B-X"): 2.0}},
    ):
        templates = ["word[0]", "word[-1]|word[0]", "suffix2(word[0])", "bias"]
        yield larank.SequenceTagger(templates=templates, random_state=0, **more).partial_fit(X, y), X, y
    names = [[{"w": word, "n": len(word)} for word in words] for words in X]
    yield larank.SequenceTagger(random_state=0).fit(names, y).calibrate(names, y), names, y
    rows = np.random.RandomState(0).randn(5, 3), [3, 2]
    yield larank.SequenceTagger(random_state=0, solver="perceptron").fit(rows, y), rows, y


def _tables(X: np.ndarray) -> Iterator[_Asked]:
    rows, y = polars.DataFrame(table(30)), np.arange(30) % 3
    yield larank.TableEncoder(kinds={"size": "number"}).fit(rows), rows, y
    yield larank.TableEncoder(text="hash", text_features=9, scale="robust").fit(rows), rows, y
    classifier = larank.LinearMulticlassSVC(random_state=0)
    yield make_pipeline(larank.TableEncoder(), classifier).fit(rows, y), rows, y
    y = y[: len(X)]
    yield make_pipeline(larank.KernelPCAMap(n_components=3, random_state=0), classifier).fit(X, y), X, y


def table(n: int) -> dict[str, list]:
    """Columns of every kind."""
    return {
        "size": [None if i % 5 == 4 else i**2 / 3 for i in range(n)],
        "is new": [i % 3 == 0 for i in range(n)],
        "colour": [["red", "green", None][i % 3] for i in range(n)],
        "made": [f"2021-0{1 + i % 9}-11" for i in range(n)],
        "said": [f"{['good', 'bad', 'fair'][i % 3]} and {['cheap', 'dear'][i % 2]} number {i}" for i in range(n)],
        "hashed": [f"{['hot', 'cold'][i % 2]} or {['wet', 'dry', 'windy'][i % 3]} day {i}" for i in range(n)],
        "unit": ["kg"] * n,
    }


def _learner() -> object:
    """What a file has of a learner that was told a few labels."""
    model = larank.LaRankClassifier(gamma=0.1, random_state=0)
    learner = larank.ActiveLearner(model, np.random.RandomState(0).randn(20, 4), random_state=0)
    learner.teach(y=np.array(["ham", "spam", "tofu"])[np.arange(10) % 3], index=np.arange(10))
    learner.teach(np.zeros(4), "ham")
    learner.query(4)
    learner.skip()
    learner.correct(3, "tofu")
    return learner._record(with_model=True)


@cache
def corpus() -> tuple[tuple[bytes | None, bytes], ...]:
    """The files of sound models, each with the pickled examples and labels that it is asked with."""
    return made_apart(_saved)


def _saved() -> tuple[tuple[bytes | None, bytes], ...]:
    found = []
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.larank"
        for model, X, y in _models():
            if hasattr(model, "result_"):  # a long history would be most of the file, and times would never be the same
                points = tuple(replace(point, seconds=0.0) for point in model.result_.history[:2])
                model.result_ = replace(model.result_, history=points, seconds=0.0, breakdown={})
            larank.save(model, path)
            found.append((None if X is None else pickle.dumps((X, y)), path.read_bytes()))
    for name in larank.__all__:  # classes register when they are imported
        getattr(larank, name)
    saved = {split(content)[1]["class"] for _, content in found}
    own = {name for name, kind in models._registry.items() if kind.cls.__module__.startswith("larank.")}
    assert saved == own | {"Pipeline"}, f"no model of {(own | {'Pipeline'}) - saved}"
    return tuple(found)


# ---- Damage ----

_EXTREME: tuple[object, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 4, 5, 20, 21, 255, 256, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63 - 1, 2**63),
    *(2**64, -(2**63), 10**30, 10**400, 0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, 1e400),
    *("", "a", "-", "O", "A0", "0", "\0", "linear", "rbf", "poly", "sigmoid", "precomputed", "cosine", "nan", "inf"),
    *("<U3", "<U250000000", "|O", "<f8", "coef_"),
    *([], [0], [[]], {}, {"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}, {"$float": "1"}, {"$tuple": []}),
    *({"$dict": []}, {"$array": "classes_"}, {"$array": "coef_"}, {"$array": "missing"}, {"$result": {"$dict": []}}),
    *({"$value": "MulticlassModel", "settings": {"$dict": [["n_classes", 10**9]]}}, {"$value": "Active"}, {"$what": 1}),
    {"$objects": ["a", "b"], "dtype": "<U250000000", "shape": [2]},
    {"$objects": [], "dtype": "|O", "shape": [0, 10**18]},
    {"$objects": ["a"], "dtype": "|O", "shape": [-1]},
    {"$sparse": "csr_matrix", "name": "dual_coef_", "shape": [10**9, 10**9]},
    {"$estimator": {"class": "LinearMulticlassSVC", "parameters": {}, "attributes": {}}},
    "\ud800",
)
_NUMBERS = (0, -1, 1, 2, 127, 255, 2**31 - 1, -(2**31), 2**32, 2**62, 2**63 - 1, -(2**63))
_FLOATS = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e-320, 1e38, 1e300, -1e300)
_DTYPES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")


def _nodes(tree: object) -> list[tuple[object, object]]:
    """All places in a tree of JSON: what holds them, and where in it."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            found.append((node, key))
            waiting.append(node[key])
    return found


def _damage_description(random: Random, description: dict) -> object:
    # Of attributes and parameters more often than of the certificate, which has most of the places.
    tree = description.get(random.choice(("attributes", "parameters")))
    places = _nodes(description)
    if isinstance(tree, dict) and random.randrange(6):
        places = [place for name in tree if name != "result_" for place in [(tree, name), *_nodes(tree[name])]]
    if not places:
        return description
    node, key = random.choice(places)
    other, there = random.choice(places)
    match random.randrange(9):
        case 0:
            del node[key]
        case 1:
            mine, theirs = (json.loads(json.dumps(value)) for value in (node[key], other[there]))
            node[key], other[there] = theirs, mine
        case 2 if isinstance(node, dict):
            node[random.choice((f"{key}_", "coef_", "_state", "$array", "$tuple", there))] = node.pop(key)
        case 3 if isinstance(node, list):
            node.insert(key, node[key])
        case 4:
            value = node[key]
            node[key] = value + random.choice((1, -1)) if type(value) in (int, float) else [value]
        case 5 if not random.randrange(10):
            deep = "[" * random.choice((100, 1000, 100_000))
            return json.dumps(description).replace(json.dumps(node[key]), deep, 1)
        case 6:
            node[key] = json.loads(json.dumps(other[there]))
        case _:
            node[key] = random.choice(_EXTREME)
    return description


def _damage_arrays(random: Random, arrays: dict[str, np.ndarray]) -> None:
    names = sorted(arrays)
    name, other = random.choice(names), random.choice(names)
    array = arrays[name]
    match random.randrange(9):
        case 0:
            arrays[name] = array.astype(random.choice(_DTYPES))
        case 1 if array.ndim:
            arrays[name] = random.choice((array.T, array.ravel(), array[None], array[..., None], array[..., :1]))
        case 2 if array.ndim:
            arrays[name] = random.choice((array[:-1], array[1:], np.concatenate([array, array[-1:]]), array[:0]))
        case 3 if array.ndim:
            arrays[name] = array[random.sample(range(len(array)), len(array))]
        case 4:
            arrays[name], arrays[other] = arrays[other], array
        case 5:
            del arrays[name]
        case _ if array.size:
            values = _FLOATS if array.dtype.kind == "f" else _NUMBERS
            for _ in range(random.choice((1, 1, 2, array.size))):
                value = random.choice(values)
                at = random.randrange(array.size)
                array.flat[at] = value if array.dtype.kind == "f" else np.int64(value).astype(array.dtype)


def damaged(random: Random, content: bytes) -> bytes:
    """A model file with some damage, to its bytes, to what it says, or to its arrays; its digest is right."""
    if not random.randrange(6):
        return sealed(_damage_bytes(random, content))
    header, description, arrays = split(content)
    text: object = description
    for _ in range(1 + int(random.expovariate(1.2))):
        if random.randrange(2) and isinstance(text, dict):
            text = _damage_description(random, description)
        elif arrays:
            with np.errstate(all="ignore"):
                _damage_arrays(random, arrays)
    for node, key in _nodes(description.get("parameters")):
        # A tagger takes it over when it is loaded, and then works for as long as it says.
        if key == 1 and node[0] == "n_reprocess" and isinstance(node[1], int):
            node[1] = min(node[1], 10)
    told = {}
    if header and not random.randrange(12):
        name = random.choice(sorted(header))
        entry = {**header[name]}
        entry[random.choice(sorted(entry))] = random.choice(
            (*_EXTREME, [10**9, 10**9], [0, 2**62], "F64", "BF16", [0, 8])
        )
        told[name] = entry
    return joined(text, arrays, told)


def _damage_bytes(random: Random, content: bytes) -> bytes:
    """Damage to the text or to the arrays."""
    at = 8 + int.from_bytes(content[:8], "little")
    text, arrays = content[:at], content[at:]
    return mutated(random, text) + arrays if random.randrange(2) else text + mutated(random, arrays)


# ---- The attack ----


def cases(random: Random) -> Iterator[Case]:
    """Damaged files, each of any of the models."""
    while True:
        asked, content = random.choice(corpus())
        files = {"model.larank": damaged(random, content)}
        if asked is None:
            yield Case(_ASK_LEARNER, files)
        else:
            describe = random.choice(('describe("model.larank")', 'info("model.larank", debug=True)'))
            yield Case(_ASK.format(describe=describe), {**files, "asked.pickle": asked})


def is_refused(error: BaseException) -> bool:
    """Whether the file was refused in words that name it."""
    return isinstance(error, models.ModelFileError) and "model.larank" in str(error)


_WARM_UP = """
import numpy, polars, scipy.linalg, scipy.sparse
import larank.cli.info, larank.data.models
scipy.linalg.solve_triangular(numpy.eye(2), numpy.eye(2))  # SciPy's BLAS takes its 64 MB of addresses at the first call
"""
ATTACK = Attack(cases, is_refused, warm_up=_WARM_UP)
