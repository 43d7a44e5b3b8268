import json
import re
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import save as to_bytes
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import larank
from forging import joined, sealed, split
from larank.ambiguous.meanings import ParseExample, parse_meaning
from larank.base import Estimator
from larank.data import models
from larank.data.models import ArrayInfo, ModelFileError, describe, load, persistable, save
from larank.data.schema import RESULT, SchemaError, Scope, anything, integer, mapping, number, optional, text
from larank.declare import parameter
from larank.training.result import Checkpoint, Result


@persistable(
    classes_=optional(anything),
    coef_=optional(anything),
    support_vectors_=optional(anything),
    n_iter_=optional(anything),
    notes_=optional(anything),
    result_=optional(RESULT),
)
class Toy(Estimator):
    __module__ = "larank"  # subclasses elsewhere cannot be saved
    C: Any = parameter("A number.", default=1.0)
    options: Any = parameter("Anything.", default=None)
    random_state: Any = parameter("A seed.", default=None)

    def fit(self):
        self.classes_ = np.array(["ham", "spam"])
        self.coef_ = np.arange(6, dtype=np.float32).reshape(2, 3)
        self.n_iter_ = 7
        return self


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.larank"


def round_trip(estimator, path):
    save(estimator, path)
    return load(path)


def same(a, b):
    if isinstance(a, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()
    return type(a) is type(b) and (a == b or a != a)


def estimator_with(kind="Toy", parameters=None, **attributes):
    """How an estimator is written that is an attribute or a parameter of another."""
    return {"$estimator": {"class": kind, "parameters": parameters or {}, "attributes": attributes}}


def toy(parameters=None, **attributes):
    """A fitted Toy with attributes of one's own."""
    model = Toy(**(parameters or {})).fit()
    vars(model).update(attributes)
    return model


def changed(path, model, change):
    """Save a model with its description or its arrays changed."""
    save(model, path)
    _, description, arrays = split(path.read_bytes())
    change(description, arrays)
    path.write_bytes(joined(description, arrays))


# round trips


def test_a_fitted_estimator_comes_back_whole(file):
    model = Toy(C=0.5, random_state=3).fit()
    copy = round_trip(model, file)
    assert type(copy) is Toy
    assert copy.get_params() == model.get_params()
    for name in ("classes_", "coef_", "n_iter_"):
        assert same(getattr(copy, name), getattr(model, name))
    assert not hasattr(copy, "notes_")


def test_arrays_come_back_writable(file):
    copy = round_trip(Toy().fit(), file)
    copy.coef_ += 1
    assert copy.coef_[0, 0] == 1


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["a", "bcd"]),
        np.array(["a", "b"], dtype="<U9"),
        np.array(["a", "été", "\0x", "t\0"], dtype=object),
        np.array([1, "a", None, 2.5, True], dtype=object),
        np.array([False, True]),
        np.array([-1, 1], dtype=np.int8),
        np.array([0, 2**63], dtype=np.uint64),
        np.array([0.5, np.nan, np.inf, -0.0]),
        np.array([], dtype="<U3"),
        np.array(5.0),
        np.zeros((0, 3)),
    ],
    ids=str,
)
def test_labels_come_back_with_their_type(file, classes):
    copy = round_trip(toy(classes_=classes), file).classes_
    assert copy.dtype == classes.dtype
    assert copy.shape == classes.shape
    assert repr(copy.tolist()) == repr(classes.tolist())


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.floats(allow_nan=False), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(value=values)
def test_any_plain_parameter_comes_back(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "plain.larank"
    assert repr(round_trip(Toy(options=value).fit(), path).options) == repr(value)


@given(array=hnp.arrays(hnp.integer_dtypes() | hnp.floating_dtypes(sizes=(16, 32, 64)), hnp.array_shapes()))
def test_any_numeric_array_comes_back(tmp_path_factory, array):
    path = tmp_path_factory.getbasetemp() / "array.larank"
    copy = round_trip(toy(coef_=array), path).coef_
    assert copy.dtype == array.dtype.newbyteorder("=")
    assert copy.tobytes() == array.astype(copy.dtype).tobytes()


def test_arrays_come_back_in_any_layout_and_depth(file):
    notes = {"rows": [np.arange(3), np.arange(2.0)], 7: (np.array(["x"]), None)}
    model = toy(coef_=np.arange(12.0).reshape(3, 4).T[::2], notes_=notes)
    copy = round_trip(model, file)
    assert np.array_equal(copy.coef_, model.coef_)
    assert all(map(same, copy.notes_["rows"], notes["rows"]))
    assert same(copy.notes_[7][0], notes[7][0])


def test_numpy_scalars_become_plain_numbers(file):
    copy = round_trip(toy({"C": np.float64(0.1), "options": {np.int64(1): np.float32(0.5)}}), file)
    assert (copy.C, copy.options) == (0.1, {1: 0.5})


@pytest.mark.parametrize("points", [2, 5000])
def test_a_certificate_comes_back_with_its_history(file, points):
    history = tuple(
        Checkpoint(k / 3, k / 7, np.inf if k == 0 else 2.0 + k, 1.0, 0.5, k == 1, k, k) for k in range(points)
    )
    result = Result("sdm", "converged", 3.0, 2.5, 0.1, 2.0, 0.2, 10, 12, operations={"steps": 5}, history=history)
    assert round_trip(toy(result_=result), file).result_ == result


def test_a_longer_history_than_can_be_saved_is_refused(file, monkeypatch):
    monkeypatch.setattr(models, "_MOST_POINTS", 3)
    point = Checkpoint(0.0, 0.0, 2.0, 1.0, 0.5, True, 0, 0)
    result = Result("sdm", "converged", 3.0, 2.5, 0.1, 2.0, 0.2, 10, 12, history=(point,) * 4)
    with pytest.raises(ValueError, match="at most 3 points to be saved, got 4"):
        save(toy(result_=result), file)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_sparse_matrices_come_back(file, container):
    model = toy(support_vectors_=container(np.diag([1.0, 0.0, 2.0]).astype(np.float32)))
    copy = round_trip(model, file).support_vectors_
    assert type(copy) is container
    assert copy.dtype == np.float32
    assert (copy != model.support_vectors_).nnz == 0


def test_the_same_model_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        save(Toy().fit(), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# describing


def test_describe_tells_everything_but_the_arrays(file):
    save(toy({"C": 2.0, "options": {"ham": 2}}, support_vectors_=sp.csr_matrix(np.eye(4))), file)
    description = describe(file)
    assert description["class"] == "Toy"
    assert description["format_version"] == 3
    assert description["parameters"] == {"C": 2.0, "options": {"ham": 2}, "random_state": None}
    assert description["attributes"]["coef_"] == ArrayInfo("float32", (2, 3))
    assert description["attributes"]["support_vectors_"] == ArrayInfo("float64", (4, 4))
    assert description["attributes"]["classes_"].tolist() == ["ham", "spam"]
    changed(file, toy(), lambda description, arrays: description.update({"class": "Unheard"}))
    assert describe(file)["class"] == "Unheard", "the class is not needed"


# what cannot be saved


@persistable()
class Mine(larank.TableEncoder):
    pass


X = np.random.RandomState(0).randn(20, 4)
y = np.arange(20) % 3
LINE, SIDES = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
OTHERS = [len, object(), {1, 2}, 1j, b"x", np.zeros(2, complex), np.array(["2000"], "M8[D]")]
SCALED = Pipeline([("scale", StandardScaler()), ("svm", larank.LinearMulticlassSVC())]).fit(LINE, SIDES)
SEARCH = GridSearchCV(larank.LinearMulticlassSVC(), {"C": [1.0]}, cv=2).fit(LINE, SIDES)
OTHER_STEP = "^the step 'scale' of the Pipeline is a StandardScaler, which .*TableEncoder scales .*joblib or pickle"


def stream(**parameters):
    model = larank.LaRankClassifier(**parameters)
    return model.partial_fit(X, np.array(["a", "b", "c"])[y])


def not_finite():
    model = stream()
    model.dual_coef_.data[0] = np.nan
    return model


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        *(
            (
                toy({"random_state": each}),
                TypeError,
                "the parameter 'random_state' is a .*; use None or an integer seed",
            )
            for each in (np.random.default_rng(0), np.random.RandomState(0))
        ),
        *((toy({"C": each}), TypeError, "the parameter 'C' is .* cannot be saved") for each in OTHERS),
        *((toy(notes_=each), TypeError, "the attribute 'notes_' is .* cannot be saved") for each in OTHERS),
        (toy({"C": len}), TypeError, "the parameter 'C' is .* use joblib or pickle"),
        (Toy(), NotFittedError, "Toy is not fitted"),
        (Mine(), TypeError, "Mine cannot be saved: .* Train a TableEncoder with the same parameters"),
        (SCALED, TypeError, OTHER_STEP),
        (Pipeline([("all", SCALED)]), TypeError, OTHER_STEP),
        (StandardScaler(), TypeError, "^StandardScaler cannot be saved: .* estimators of larank .* joblib or pickle$"),
        ({}, TypeError, "^dict cannot be saved: larank.save writes fitted estimators of larank"),
        (larank.LinearMulticlassSVC, TypeError, "cannot be saved: larank.save writes fitted estimators"),
        (type("Stranger", (Toy,), {"__init__": Toy.__init__})().fit(), TypeError, "Stranger cannot be saved"),
        (
            larank.MulticlassSVC(lambda A, B: A @ B.T).fit(LINE, SIDES),
            TypeError,
            r"the parameter 'kernel' is a function, .* name of a kernel, kernel='precomp",
        ),
        (
            larank.ActiveLearner(larank.LaRankClassifier(), np.eye(4)),
            TypeError,
            r"^ActiveLearner cannot be saved: it has a file format of its own. Use its method save\(path\)$",
        ),
        (SEARCH, TypeError, r"^GridSearchCV cannot be saved: .* Save its best_estimator_, or use joblib"),
        (toy(notes_=[[]] * 400_000), ValueError, r"take about \d+ bytes of memory, where \d+ are allowed"),
        (toy(classes_=np.array(["a"] * 1000 + ["b" * 10_000])), ValueError, "an array of objects would do"),
        (not_finite(), ValueError, "LaRankClassifier cannot be saved: dual_coef_ must be finite"),
        (stream().set_params(C=-1), ValueError, "cannot be saved: C must be a finite number > 0"),
    ],
)
def test_what_cannot_be_saved_is_refused_with_what_to_do_instead(file, model, error, message):
    with pytest.raises(error, match=message):
        save(model, file)
    assert not file.exists()


def test_what_is_to_be_saved_instead_can_be_saved(file):
    save(SEARCH.best_estimator_, file)
    scaled = Pipeline([("scale", larank.TableEncoder()), ("svm", larank.LinearMulticlassSVC())])
    assert round_trip(scaled.fit(LINE, SIDES), file).predict(LINE).tolist() == SIDES


def test_swapped_arguments_are_recognised(file):
    for path in (file, str(file)):
        with pytest.raises(TypeError, match=rf"^save takes the estimator first .* Call save\(model, '{file}'\)$"):
            save(path, Toy().fit())


# files that are no models


def refused(path, content, message, functions=(load, describe)):
    path.write_bytes(content)
    for function in functions:
        with pytest.raises(ModelFileError, match=message):
            function(path)


DEEP = {"format": "larank-model", "format_version": 3, "library_version": "0", "class": "Toy", "parameters": {}}
OLDER = {**DEEP, "format_version": 2, "attributes": {"coef_": {"$array": "coef_"}}}


def nested(depth):
    description = json.dumps({"digest": "0" * 64, **DEEP, "attributes": {"n_iter_": 1}})
    return joined(description.replace(": 1}", f": {'[' * depth}{']' * depth}}}"), {})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *(
            (content, "not a larank model")
            for content in (b"", b"short", b"x" * 100, b"\x02" + b"\0" * 7 + b"{}", b"\x03" + b"\0" * 7 + b"{]}")
        ),
        (joined("[1]", {}), "not a larank model"),
        (joined('{"a": NaN}', {}), "not a larank model"),
        (to_bytes({"weight": np.zeros(3)}, metadata={"format": "pt"}), "not a larank model"),
        (
            to_bytes({"coef_": np.zeros(3)}, metadata={"larank": json.dumps(OLDER)}),
            "by an older build of larank, in format version 2 without a digest",
        ),
        (nested(3000), r"model\.larank"),
        (nested(100_000), r"model\.larank"),
    ],
    ids=range(11),
)
def test_other_files_are_refused(file, content, message):
    refused(file, content, message)


def test_a_file_cut_short_anywhere_or_continued_is_refused(file):
    save(Toy().fit(), file)
    content = file.read_bytes()
    for length in range(len(content)):
        refused(file, content[:length], r"cut short|not a larank model", [load])
    refused(file, content[:-1], f"cut short: {len(content) - 1} bytes where {len(content)} are needed", [describe])
    refused(file, content + b"more", "is damaged", [load])


def test_every_flipped_bit_is_refused(file):
    save(stream(), file)
    content = file.read_bytes()
    random = np.random.RandomState(0)
    header = 8 + int.from_bytes(content[:8], "little")
    places = [*range(64), *random.randint(8 * header, size=100), *random.randint(8 * len(content), size=100)]
    for place in places:
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        refused(file, flipped, r"model\.larank")
    file.write_bytes(sealed(content))
    load(file)


def test_a_newer_format_says_which_version_is_read(file):
    changed(file, toy(), lambda description, arrays: description.update(format_version=4))
    refused(file, file.read_bytes(), r"format version 4; larank \S+ reads version 3")


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}, "begin at 8, but those before end at 0"),
        ({"dtype": "BOOL", "shape": [16], "data_offsets": [0, 16]}, "has bytes that are not booleans"),
        ({"dtype": "F64", "shape": [1], "data_offsets": [0, 16]}, "its header is damaged"),
    ],
)
def test_what_a_header_says_of_arrays_is_checked(file, entry, why):
    save(Toy().fit(), file)
    _, description, _ = split(file.read_bytes())
    refused(file, joined(description, {"coef_": np.full(2, np.pi)}, {"coef_": entry}), why, [load])


def test_a_missing_file_stays_file_not_found(file):
    with pytest.raises(FileNotFoundError):
        load(file)


def test_a_class_that_is_not_yet_imported_is_found(file):
    save(larank.LinearMulticlassSVC().fit(LINE, SIDES), file)
    code = """
import sys
from larank.data import models
assert "larank.linear" not in sys.modules
print(type(models.load(sys.argv[1])).__module__)
"""
    found = subprocess.run([sys.executable, "-c", code, file], capture_output=True, text=True)
    assert found.stdout.strip() == larank.LinearMulticlassSVC.__module__, found.stderr


# what a file may hold


def attribute(name, change):
    """Change an array of a file."""
    return lambda description, arrays: arrays.update({name: change(arrays[name])})


def labels(*names):
    """How an array of text is written."""
    return {"$objects": names, "dtype": "<U1", "shape": [len(names)]}


def said(**values):
    """Change what a file says of attributes."""
    return lambda description, arrays: description["attributes"].update(values)


def parameter(**values):
    """Change what a file says of parameters."""
    return lambda description, arrays: description["parameters"].update(values)


def weighs(weight):
    """Change the class weights of a file."""
    return parameter(class_weight={"$dict": [["a", weight]]})


def described(**values):
    """Change what a file says."""
    return lambda description, arrays: description.update(values)


def sparse(shape, data, indices, indptr):
    """Make an attribute a sparse matrix."""
    given = {"$sparse": "csr_matrix", "name": "s", "shape": shape}
    parts = {"s/data": np.ones(data), "s/indices": np.array(indices, np.int32), "s/indptr": np.array(indptr, np.int32)}
    return lambda d, arrays: (d["attributes"].update(support_vectors_=given), arrays.update(parts))


def wrap(starts):
    starts[1:-1], starts[-1] = 2_000_000_000, 0
    return starts


def value(kind, **settings):
    """How a column of a table is written."""
    return {"$value": kind, "settings": {"$dict": [[name, setting] for name, setting in settings.items()]}}


def state(name, change):
    """Change an entry of the state in a file."""

    def changes(description, arrays):
        pairs = description["attributes"]["_state"]["$dict"]
        pairs[:] = [[key, change(entry) if key == name else entry] for key, entry in pairs]

    return changes


def entry(name, change):
    """Change an entry of a dict as it is written."""
    return lambda coded: {"$dict": [[key, change(held) if key == name else held] for key, held in coded["$dict"]]}


def numbered(**arrays):
    """Replace attributes by arrays of numbers."""

    def change(description, held):
        description["attributes"].update({name: {"$array": name} for name in arrays})
        held.update({name: np.array(array) for name, array in arrays.items()})

    return change


def mixed(*labels):
    return said(classes_={"$objects": labels, "dtype": "|O", "shape": [3]})


def step(name, kind="KernelPCAMap"):
    return {"$tuple": [name, estimator_with(kind)]}


MODELS = {
    "toy": toy,
    "stream": stream,
    "dense": lambda: larank.LinearMulticlassSVC().fit(X, y),
    "sparse": lambda: larank.LaRankClassifier().fit(sp.csr_matrix(X), y),
    "encoder": lambda: larank.TableEncoder().fit(pandas.DataFrame({"a": [1.0, 2.0, 4.0], "b": ["x", "y", "x"]})),
    "map": lambda: larank.PivotedCholeskyMap(n_components=3, random_state=0).fit(X),
    "perceptron": lambda: larank.KernelPerceptron(random_state=0).fit(X, y),
    "huller": lambda: larank.HullerClassifier(random_state=0).partial_fit(X, y),
    "structured": lambda: larank.StructuredSVC(larank.MulticlassModel(3)).fit(X, np.unique(y, return_inverse=True)[1]),
    "pipeline": lambda: make_pipeline(larank.KernelPCAMap(), larank.LinearMulticlassSVC()).fit(X, y),
    "tagger": lambda: larank.SequenceTagger(random_state=0).fit([["the", "dog"]] * 3, [["D", "N"]] * 3),
    "concepts": lambda: larank.ConceptLabeler(random_state=0).fit([["a", "b"], ["b"]], [["A", "B"], ["B"]]),
    "parser": lambda: larank.SemanticParser(random_state=0).fit([ParseExample(("a", "b"), parse_meaning("b(a)"))]),
}
COLUMN = {"name": "a", "reason": ""}
WEIGHTS = "class_weight must not be negative or infinite"
DAMAGES = {
    "toy": [
        (described(format="another"), "not a larank model"),
        (lambda d, arrays: d.pop("digest"), "without a digest"),
        (described(**{"class": "Unheard"}), "'Unheard', which is none of the known classes"),
        (lambda d, arrays: arrays.update(other=arrays.pop("coef_")), "the array 'coef_' is missing"),
        (lambda d, arrays: d.pop("class"), r"lacks \['class'\]"),
        (described(attributes=[]), "is damaged"),
        (said(n_iter_={"$what": 1}), "is damaged"),
        (said(predict=1), r"attributes that Toy does not have: \['predict'\]"),
        (said(notes_=estimator_with(predict=1)), r"Toy does not have: \['predict'\]"),
        (parameter(unheard=1), "unheard"),
        *(
            (sparse([2, 2], 1, [0], indptr), "is damaged: attributes, support_vectors_: X must have an indptr")
            for indptr in ([0, 2_000_000_000, 0], [0, 2**31 - 1, -(2**31)], [0, 2, 1])
        ),
        (sparse([1, 2], 1, [9], [0, 1]), "is damaged"),
    ],
    "stream": [
        (said(classes_=labels("a", "b")), r"dual_coef_ must be .* \(.*, 2\)"),
        (said(classes_=labels("a", "b", "b")), "classes_ must hold every label once"),
        (said(classes_=labels("b", "a", "c")), "classes_ must hold labels in ascending order"),
        (said(_arrived=labels("a", "x")), "_arrived must be labels out of classes_"),
        (said(_seen=3), "support_ must be from 0 on and below 3"),
        (said(_seen=2**63 - 1), "_seen must be a whole number from 0 to"),
        (said(n_features_in_=5), r"support_vectors_ must be .* of shape \(.*, 5\)"),
        (said(result_=None), "result_ must be a Result, got None"),
        (said(gamma_=0), "gamma_ must be a finite number above 0, got 0"),
        (attribute("support_vectors_", lambda X: X * np.inf), "support_vectors_ must be finite"),
        (attribute("dual_coef_/data", lambda beta: beta * np.nan), "dual_coef_ must be finite, got nan"),
        (attribute("support_costs_", np.negative), "support_costs_ must be an array of numbers from 0 on"),
        (attribute("support_costs_", lambda costs: costs[1:]), "support_costs_ must be an array of float64 of shape"),
        (attribute("support_", np.zeros_like), "support_ must hold every number once"),
        (attribute("dual_coef_/indptr", lambda starts: starts[::-1].copy()), "indptr that never decreases"),
        (lambda d, arrays: d["attributes"].pop("support_"), "support_ is missing"),
        (parameter(C=-1), "C must be a finite number > 0"),
        (parameter(kernel="x"), "kernel must be one of"),
        (parameter(kernel="precomputed"), "must not be there"),
        *((weighs(weight), WEIGHTS) for weight in (-1, "much", {"$float": "nan"}, 10**400)),
        (parameter(class_weight="heavy"), "class_weight must be None"),
        (attribute("dual_coef_/data", lambda beta: beta * -1.7e308 / abs(beta).max()), "dual_coef_ must hold numbers"),
        (attribute("support_vectors_", lambda X: X * 1e200), r"support_vectors_ must hold numbers from -1e\+150"),
        (said(n_iter_={"$float": "much"}), r"\$float must be inf, -inf or nan, got 'much'"),
        (said(_state={"$tuple": 3}), "there must be a list, got a int"),
        (said(_state={"$dict": [[1]]}), "a dict must be a list of pairs"),
        (said(_state={"$estimator": 3}), "an estimator has a class, parameters and attributes"),
        (said(_state=estimator_with(parameters=[1])), "parameters must be a dict, got a list"),
        (said(_state={"$value": 3}), "the name of a class must be text, got 3"),
        (said(_state={"$value": "Unheard"}), "there is no 'Unheard'"),
        (lambda d, arrays: d["attributes"]["dual_coef_"].update({"$sparse": "coo"}), "no sparse matrix 'coo'"),
        (said(classes_={"$objects": [1], "dtype": "<U1", "shape": [1]}), "an array of <U1 must hold text"),
        (said(result_={"$result": 3}), "a Result must be a dict of its fields"),
        (said(result_={"$result": {"$dict": [["history", 3]]}}), "history of a Result must be a dict of lists"),
        (said(result_={"$result": {"$dict": [["history", {"$dict": [["dual", [0] * 200_001]]}]]}}), "at most"),
        (said(result_={"$result": {"$dict": [["history", {"$dict": []}]]}}), "Result.solver is missing"),
        (attribute("support_costs_", np.atleast_2d), "support_costs_ must be an array of float64 of shape"),
        (said(_state=[1]), "_state must be a list of 5 entries"),
        (said(_state=[0, 0, 0, 3, 1]), r"_state\[3\] must be a list, got 3"),
        (said(_state=[0, 0, 0, [1], 1]), r"_state\[3\] must have 3 entries, got 1"),
        (said(_arrived=labels("a", "a", "b")), "_arrived must hold every label once"),
        (said(_arrived=labels("a", "x", "b") | {"dtype": "|O"}), "_arrived must be labels out of classes_, got"),
        (numbered(_arrived=[0, 1, 2]), "_arrived must be labels of the type of those in classes_"),
        (mixed("a", "b", None), "classes_ must be labels, which are text, numbers or tuples of these, got None"),
        (mixed("a", 1, {"$tuple": ["a", 1]}), "classes_ must hold labels in ascending order"),
        (numbered(classes_=[0.0, 1.0, np.nan]), "classes_ must be labels, which are text, .* got .*nan"),
        (attribute("dual_coef_/indices", np.zeros_like), "dual_coef_ must hold every entry once"),
        (attribute("dual_coef_/indptr", lambda at: np.r_[0, 0, at[2:]]), "dual_coef_ must have an entry in ever"),
        # A small file does not ask for much.
        (said(classes_={"$objects": ["a", "b", "c"], "dtype": "<U250000000", "shape": [3]}), "attributes, classes_"),
        (said(classes_={"$objects": ["a"] * 3, "dtype": "(1000000000,)f8", "shape": [3]}), "attributes, classes_"),
        (said(classes_={"$objects": [], "dtype": "|O", "shape": [10**9, 10**9]}), "attributes, classes_"),
        (said(classes_={"$objects": ["a"], "dtype": "|O", "shape": [-1]}), "attributes, classes_"),
        (
            said(classes_={"$sparse": "csr_matrix", "name": "dual_coef_", "shape": [10**12, 10**12]}),
            "attributes, (classes_|dual_coef_)",
        ),
        (said(classes_=[[{"$array": "support_"}, {"$array": "support_"}]]), "attributes, (classes_|support_)"),
    ],
    "dense": [
        (attribute("classes_", lambda classes: classes[:2]), r"coef_ must be .* of shape \(1, 4\), got .* \(3, 4\)")
    ],
    "sparse": [(attribute("support_vectors_/indptr", wrap), "indptr that never decreases")],
    "huller": [
        (said(_state=[9, 1, [], []]), r"_state\[0\] must be 3 as other attributes say, got 9"),
    ],
    "perceptron": [
        (lambda d, arrays: d["attributes"]["_beta"]["shape"].__setitem__(1, 9), "at most 3 columns, got 9"),
    ],
    "map": [
        (attribute("cholesky_", lambda L: L * (1 - np.eye(3))), "cholesky_ must have a diagonal without zeros"),
        (said(_widths=[2]), "_widths must sum to 3 components, got 2"),
    ],
    "encoder": [
        (said(columns_=[value("DroppedColumn", **COLUMN)] * 2), "a name of its own for each column"),
        (said(columns_=[value("DroppedColumn", **{**COLUMN, "name": n}) for n in "ac"]), "names of feature_na"),
        (said(columns_=[value("DroppedColumn", **{**COLUMN, "name": n}) for n in "ab"]), "a column with featu"),
        (said(columns_=[value("DroppedColumn", **COLUMN, more=1)]), r"DroppedColumn has no \['more'\]"),
        (said(columns_=[value("DroppedColumn", name=1, reason="")]), "DroppedColumn.name must be of type str"),
        (said(columns_=[value("DroppedColumn", name="a")]), "DroppedColumn.reason is missing"),
        (said(columns_=[{"$value": "DroppedColumn", "settings": 3}]), "DroppedColumn must be a dict of its fi"),
        (said(columns_=[value("BooleanColumn", name="a", fill=2.0, has_indicator=False, n_missing=0)]), "training"),
    ],
    "structured": [
        (parameter(model=value("MulticlassModel", n_classes=5)), "as many weights for each of 5 classes"),
        (attribute("_inputs/0", lambda x: x * np.nan), "inputs must be vectors of 4 finite numbers"),
    ],
    "pipeline": [
        (parameter(steps=[3]), "steps must be a list of pairs"),
        (parameter(steps=[step("a"), step("a")]), "steps must have a name of its own for each step"),
        (parameter(steps=[step("a", "LinearMulticlassSVC"), step("b")]), "before the last one transformers"),
        (parameter(memory="/tmp"), "memory must be None in a file, got '/tmp'"),
    ],
    "tagger": [
        (state("labels", lambda names: ["D", "X"]), "must be those in classes_"),
        (state("session", entry("patterns", lambda coded: 3)), "must be a list of 13 entries"),
        (attribute("_state/3/2", lambda starts: starts * 1.0), "must be an array of whole numbers, one more"),
        (attribute("_state/3/2", lambda starts: starts[::-1].copy()), "must ascend from 0"),
        (attribute("_state/3/2", lambda starts: starts[:-1]), r"must have \(parts, their end\)"),
        (state("session", lambda coded: {"$dict": coded["$dict"][:2]}), "must have .*patterns"),
        (said(_state=3), "_state must be a dict of encoder, "),
    ],
    "concepts": [
        (state("symbols", lambda names: ["", *names[1:]]), "must be different, with all concepts among them"),
        (state("symbols", lambda names: names[:1] * len(names)), "must hold every entry once"),
        (state("words", lambda words: words[::-1]), "the concepts in concepts_ and the words in words_"),
        (state("words", lambda words: [3] * len(words)), "must be text, got 3"),
        (attribute("_state/8", lambda senses: senses + 1000), r"\['senses'\] must be of 3 words"),
    ],
    "parser": [
        (state("settings", lambda coded: [0.1, 2, "order-free", "margin"]), "must have an odd window"),
        (state("symbols", entry("labels", lambda names: names[::-1])), r"\['labels'\] must begin with '-'"),
        (state("roles", entry("labels", lambda names: ["A7"])), "must be '-', 'A0', 'A1'"),
        (state("grammar", entry("b", lambda counts: [])), "must have numbers of arguments for each symbol"),
        (state("grammar", lambda counts: 3), r"_state\['grammar'\] must be a dict"),
    ],
}


@pytest.mark.parametrize(
    ("model", "change", "why"),
    [(model, *row) for model, rows in DAMAGES.items() for row in rows],
    ids=lambda value: value if isinstance(value, str) else "changed",
)
def test_a_model_that_no_training_makes_is_refused(file, model, change, why):
    changed(file, MODELS[model](), change)
    with pytest.raises(ModelFileError, match=why if model == "toy" else rf"model\.larank is damaged: .*{why}"):
        load(file)


def numbered_classes(dtype, count):
    def change(description, arrays):
        description["attributes"]["classes_"] = {"$array": "classes_"}
        arrays["classes_"] = np.arange(count, dtype=dtype)

    return change


TEXTS = [f"{k:05x}" for k in range(300_000)]
LARGE = {
    "9 MB of lists": said(classes_=[[]] * 3_000_000),
    "lists": said(classes_=[[]] * 250_000),
    "negative numbers": said(classes_=[-9] * 2_500_000),
    "a long text": parameter(kernel="\N{GRINNING FACE}" + "a" * 9_000_000),
    "texts": said(classes_={"$objects": TEXTS, "dtype": "|O", "shape": [len(TEXTS)]}),
    "pairs": parameter(class_weight={"$dict": [[k, 1] for k in range(250_000)]}),
    "empty arrays": lambda description, arrays: arrays.update({f"a{k}": np.zeros(0) for k in range(20_000)}),
    "numbers": lambda description, arrays: arrays.update(support_=np.arange(1_000_000)),
    "small labels": numbered_classes(np.int16, 30_000),
    "labels": numbered_classes(np.uint32, 2_000_000),
}


@pytest.mark.parametrize("what", LARGE)
def test_loading_takes_memory_in_proportion_to_the_file(file, what):
    changed(file, stream(), LARGE[what])
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError):
            load(file)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < 64e6 + 4 * file.stat().st_size


@pytest.mark.parametrize(
    "value", ["a" * 900_000, "b" * 9_000_000, [1] * 1_000_000], ids=["text", "long text", "numbers"]
)
def test_what_is_wrong_with_a_file_is_told_in_few_words(file, value):
    changed(file, stream(), parameter(kernel=value))
    with pytest.raises(ModelFileError, match="is damaged") as error:
        load(file)
    assert len(str(error.value)) < 2_000


def test_lists_of_three_quarters_of_the_memory_allowed_are_saved(file):
    model = Toy().fit()
    model.notes_ = [[] for _ in range(200_000)]
    assert round_trip(model, file).notes_ == model.notes_


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (mapping(text, integer()), {"a": "b"}, "x['a'] must be a whole number from 0 to"),
        (number(), "b", "x must be a finite number, got 'b'"),
    ],
)
def test_a_value_that_its_schema_does_not_allow_is_named_with_what_is_allowed(kind, value, message):
    with pytest.raises(SchemaError, match=re.escape(message)):
        kind("x", value, Scope({}))


def test_counts_of_a_result_that_take_more_than_64_bits_are_refused():
    fitted = stream().result_.to_dict()
    for count in (-(2**63) - 1, 2**63):
        with pytest.raises(SchemaError, match="kernel_values"):
            Result.from_dict({**fitted, "kernel_values": count})
