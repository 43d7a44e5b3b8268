import json
import tracemalloc
from dataclasses import replace
from functools import cache

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import save as to_bytes
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import larank
from forging import joined, sealed, split
from larank.ambiguous.meanings import ParseExample, parse_meaning
from larank.data import models
from larank.data.models import ArrayInfo, ModelFileError, describe, load, persistable, save
from larank.data.schema import RESULT, anything, optional
from larank.training.result import Checkpoint, Result


@persistable(
    classes_=optional(anything),
    coef_=optional(anything),
    support_vectors_=optional(anything),
    n_iter_=optional(anything),
    notes_=optional(anything),
    result_=optional(RESULT),
)
class Toy(BaseEstimator):
    def __init__(self, C=1.0, options=None, random_state=None):
        self.C = C
        self.options = options
        self.random_state = random_state

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


def estimator_with(**attributes):
    """How an estimator is written that is an attribute of another."""
    return {"$estimator": {"class": "Toy", "parameters": {}, "attributes": attributes}}


def rewrite(path, change, arrays=None):
    """Save a fitted Toy with its description changed, as a newer version or a vandal might have."""
    save(Toy().fit(), path)
    _, description, _ = split(path.read_bytes())
    change(description)
    path.write_bytes(joined(description, {"coef_": np.zeros((2, 3), np.float32)} if arrays is None else arrays))


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
    model = Toy().fit()
    model.classes_ = classes
    copy = round_trip(model, file).classes_
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
    model = Toy().fit()
    model.coef_ = array
    copy = round_trip(model, path).coef_
    assert copy.dtype == array.dtype.newbyteorder("=")
    assert copy.tobytes() == array.astype(copy.dtype).tobytes()


def test_transposed_and_strided_arrays_come_back(file):
    model = Toy().fit()
    model.coef_ = np.arange(12.0).reshape(3, 4).T[::2]
    assert np.array_equal(round_trip(model, file).coef_, model.coef_)


def test_numpy_scalars_become_plain_numbers(file):
    copy = round_trip(Toy(C=np.float64(0.1), options={np.int64(1): np.float32(0.5)}).fit(), file)
    assert copy.C == 0.1
    assert copy.options == {1: 0.5}


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_sparse_matrices_come_back(file, container):
    model = Toy().fit()
    model.support_vectors_ = container(np.diag([1.0, 0.0, 2.0]).astype(np.float32))
    copy = round_trip(model, file).support_vectors_
    assert type(copy) is container
    assert copy.dtype == np.float32
    assert (copy != model.support_vectors_).nnz == 0


def test_the_certificate_comes_back(file):
    model = Toy().fit()
    history = (Checkpoint(0.1, 1.0, float("inf"), 0.0, 1.0, False), Checkpoint(0.2, 2.0, 3.0, 2.5, 0.1, True))
    model.result_ = Result(
        "sdm", "converged", 3.0, 2.5, 0.1, 2.0, 0.2, 10, 12, operations={"steps": 5}, history=history
    )
    assert round_trip(model, file).result_ == model.result_


def test_nested_arrays_come_back(file):
    model = Toy().fit()
    model.notes_ = {"rows": [np.arange(3), np.arange(2.0)], 7: (np.array(["x"]), None)}
    copy = round_trip(model, file).notes_
    assert same(copy["rows"][0], np.arange(3))
    assert same(copy["rows"][1], np.arange(2.0))
    assert same(copy[7][0], np.array(["x"]))


def test_the_same_model_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        save(Toy().fit(), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# describing


def test_describe_tells_everything_but_the_arrays(file):
    model = Toy(C=2.0, options={"ham": 2}).fit()
    model.support_vectors_ = sp.csr_matrix(np.eye(4))
    save(model, file)
    description = describe(file)
    assert description["class"] == "Toy"
    assert description["format_version"] == 2
    assert description["parameters"] == {"C": 2.0, "options": {"ham": 2}, "random_state": None}
    assert description["attributes"]["coef_"] == ArrayInfo("float32", (2, 3))
    assert description["attributes"]["support_vectors_"] == ArrayInfo("float64", (4, 4))
    assert description["attributes"]["classes_"].tolist() == ["ham", "spam"]


def test_describe_does_not_need_the_class(file):
    rewrite(file, lambda description: description.update({"class": "Unheard"}))
    assert describe(file)["class"] == "Unheard"


# what cannot be saved


@pytest.mark.parametrize("generator", [np.random.default_rng(0), np.random.RandomState(0)])
def test_a_random_generator_is_refused_by_name(file, generator):
    with pytest.raises(TypeError, match=r"the parameter 'random_state' is a .*; use None or an integer seed"):
        save(Toy(random_state=generator).fit(), file)
    assert not file.exists()


@pytest.mark.parametrize("value", [len, object(), {1, 2}, 1j, b"x", np.zeros(2, complex), np.array(["2000"], "M8[D]")])
def test_other_kinds_are_refused_by_name(file, value):
    with pytest.raises(TypeError, match=r"the parameter 'C' is .* cannot be saved"):
        save(Toy(C=value).fit(), file)
    model = Toy().fit()
    model.notes_ = value
    with pytest.raises(TypeError, match=r"the attribute 'notes_' is .* cannot be saved"):
        save(model, file)


def test_an_estimator_that_is_not_fitted_is_refused(file):
    with pytest.raises(NotFittedError, match="Toy is not fitted"):
        save(Toy(), file)


def test_a_subclass_is_refused_with_the_class_that_can_be_saved(file):
    @persistable()
    class Mine(larank.TableEncoder):
        pass

    with pytest.raises(TypeError, match=r"Mine cannot be saved: .* Train a TableEncoder with the same parameters"):
        save(Mine(), file)


def test_swapped_arguments_are_recognised(file):
    for path in (file, str(file)):
        with pytest.raises(TypeError, match=rf"^save takes the estimator first .* Call save\(model, '{file}'\)$"):
            save(path, Toy().fit())


def test_a_pipeline_with_other_steps_is_refused_with_what_can_be_saved(file):
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    pipeline = Pipeline([("scale", StandardScaler()), ("svm", larank.LinearMulticlassSVC())]).fit(X, y)
    message = "^the step 'scale' of the Pipeline is a StandardScaler, which .*TableEncoder scales .*joblib or pickle"
    for model in (pipeline, Pipeline([("all", pipeline)])):
        with pytest.raises(TypeError, match=message):
            save(model, file)
    instead = Pipeline([("scale", larank.TableEncoder()), ("svm", larank.LinearMulticlassSVC())]).fit(X, y)
    save(instead, file)  # what the error says
    assert load(file).predict(X).tolist() == y


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (StandardScaler(), "^StandardScaler cannot be saved: larank.save writes .* of larank .* Use joblib or pickle$"),
        ({}, "^dict cannot be saved: larank.save writes fitted estimators of larank"),
        (Toy(C=len).fit(), "the parameter 'C' is .* use joblib or pickle"),
        (larank.LinearMulticlassSVC, "cannot be saved: larank.save writes fitted estimators"),
        (type("Stranger", (Toy,), {"__init__": Toy.__init__})().fit(), "Stranger cannot be saved"),
        (
            larank.MulticlassSVC(lambda A, B: A @ B.T).fit(np.arange(4.0)[:, None], [0, 0, 1, 1]),
            r"the parameter 'kernel' is a function, .* name of a kernel, kernel='precomp",
        ),
        (
            larank.ActiveLearner(larank.LaRankClassifier(), np.eye(4)),
            r"^ActiveLearner cannot be saved: it has a file format of its own. Use its method save\(path\)$",
        ),
    ],
)
def test_what_cannot_be_saved_is_refused_with_what_to_do_instead(file, model, message):
    with pytest.raises(TypeError, match=message):
        save(model, file)
    assert not file.exists()


def test_a_search_is_refused_with_the_model_it_has_found(file):
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    search = GridSearchCV(larank.LinearMulticlassSVC(), {"C": [1.0]}, cv=2).fit(X, y)
    with pytest.raises(TypeError, match=r"^GridSearchCV cannot be saved: .* Save its best_estimator_, or use joblib"):
        save(search, file)
    save(search.best_estimator_, file)


# files that are no models


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        b"x" * 100,
        b"\x02" + b"\0" * 7 + b"{}",
        b"\x03" + b"\0" * 7 + b"{]}",
        joined("[1]", {}),
        joined('{"a": NaN}', {}),
    ],
)
def test_other_files_are_refused(file, content):
    file.write_bytes(content)
    for function in (load, describe):
        with pytest.raises(ModelFileError, match="not a larank model"):
            function(file)


def test_safetensors_of_others_are_refused(file):
    file.write_bytes(to_bytes({"weight": np.zeros(3)}, metadata={"format": "pt"}))
    with pytest.raises(ModelFileError, match="not a larank model"):
        load(file)


def test_a_file_cut_short_anywhere_is_refused(file):
    save(Toy().fit(), file)
    content = file.read_bytes()
    for length in range(len(content)):
        file.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"cut short|not a larank model"):
            load(file)
    with pytest.raises(ModelFileError, match=f"cut short: {len(content) - 1} bytes where {len(content)} are needed"):
        describe(file)


def test_trailing_bytes_are_refused(file):
    save(Toy().fit(), file)
    with file.open("ab") as stream:
        stream.write(b"more")
    with pytest.raises(ModelFileError, match="is damaged"):
        load(file)


def test_a_newer_format_says_which_version_is_read(file):
    rewrite(file, lambda description: description.update(format_version=3))
    for function in (load, describe):
        with pytest.raises(ModelFileError, match=r"format version 3; larank \S+ reads version 2"):
            function(file)


def test_a_file_of_an_older_build_says_so(file):
    older = {"format": "larank-model", "format_version": 1, "library_version": "0.9", "class": "Toy"}
    description = {**older, "parameters": {}, "attributes": {"coef_": {"$array": "coef_"}}}
    file.write_bytes(to_bytes({"coef_": np.zeros(3)}, metadata={"larank": json.dumps(description)}))
    for function in (load, describe):
        with pytest.raises(ModelFileError, match="by an older build of larank, in format version 1 without a digest"):
            function(file)


def test_every_flipped_bit_is_refused(file):
    save(stream(), file)
    content = file.read_bytes()
    random = np.random.RandomState(0)
    header = 8 + int.from_bytes(content[:8], "little")
    places = [*range(64), *random.randint(8 * header, size=100), *random.randint(8 * len(content), size=100)]
    for place in places:
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        file.write_bytes(flipped)
        for function in (load, describe):
            with pytest.raises(ModelFileError, match=r"model\.larank"):
                function(file)
    file.write_bytes(sealed(content))
    load(file)


def sparse(shape, data, indices, indptr):
    """Return the change of a description, and the arrays, that make an attribute a sparse matrix."""
    given = {"$sparse": "csr_matrix", "name": "s", "shape": shape}
    parts = {"s/data": np.ones(data), "s/indices": np.array(indices, np.int32), "s/indptr": np.array(indptr, np.int32)}
    return lambda d: d["attributes"].update(support_vectors_=given), {"coef_": np.zeros(1), **parts}


@pytest.mark.parametrize(
    ("change", "arrays", "why"),
    [
        (lambda d: d.update(format="another"), None, "not a larank model"),
        (lambda d: d.pop("digest"), None, "without a digest"),
        (lambda d: d.update({"class": "Unheard"}), None, "'Unheard', which is none of the known classes"),
        (lambda d: None, {"other": np.zeros(1)}, "the array 'coef_' is missing"),
        (lambda d: d.pop("class"), None, r"lacks \['class'\]"),
        (lambda d: d.update(attributes=[]), None, "is damaged"),
        (lambda d: d["attributes"].update(n_iter_={"$what": 1}), None, "is damaged"),
        (lambda d: d["attributes"].update(predict=1), None, r"attributes that Toy does not have: \['predict'\]"),
        (lambda d: d["attributes"].update(notes_=estimator_with(predict=1)), None, r"Toy does not have: \['predict'\]"),
        (lambda d: d["parameters"].update(unheard=1), None, "unheard"),
        *(
            (*sparse([2, 2], 1, [0], indptr), "is damaged: attributes, support_vectors_: X must have an indptr")
            for indptr in ([0, 2_000_000_000, 0], [0, 2**31 - 1, -(2**31)], [0, 2, 1])
        ),
        (*sparse([1, 2], 1, [9], [0, 1]), "is damaged"),
    ],
)
def test_a_damaged_description_is_refused(file, change, arrays, why):
    rewrite(file, change, arrays)
    with pytest.raises(ModelFileError, match=why):
        load(file)


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
    file.write_bytes(joined(description, {"coef_": np.full(2, np.pi)}, {"coef_": entry}))
    with pytest.raises(ModelFileError, match=why):
        load(file)


def test_a_missing_file_stays_file_not_found(file):
    with pytest.raises(FileNotFoundError):
        load(file)


def test_a_lazily_imported_class_is_found(file, monkeypatch):
    save(Toy().fit(), file)
    known = models._registry.pop("Toy")

    def lazy(name):
        if name == "Toy":
            models._registry["Toy"] = known
        raise AttributeError(name)

    monkeypatch.setattr("larank.__getattr__", lazy, raising=False)
    try:
        assert isinstance(load(file), Toy)
    finally:
        models._registry["Toy"] = known


# what a file may hold


def changed(path, model, change=lambda description, arrays: None):
    """Save a model with its description or its arrays changed."""
    save(model, path)
    _, description, arrays = split(path.read_bytes())
    change(description, arrays)
    path.write_bytes(joined(description, arrays))
    return path


def stream(kind=larank.LaRankClassifier, **parameters):
    X = np.random.RandomState(0).randn(20, 4)
    return kind(**parameters).partial_fit(X, np.array(["a", "b", "c"])[np.arange(20) % 3])


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


def weighs(**weights):
    """Change the class weights of a file."""
    pairs = [[label, weight] for label, weight in weights.items()]
    return lambda description, arrays: description["parameters"].update(class_weight={"$dict": pairs})


@pytest.mark.parametrize(
    ("change", "why"),
    [
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
        (lambda description, arrays: description["attributes"].pop("support_"), "support_ is missing"),
        (lambda description, arrays: description["parameters"].update(C=-1), "C must be a finite number > 0"),
        (lambda description, arrays: description["parameters"].update(kernel="x"), "kernel must be one of"),
        (weighs(a=-1), "class_weight must not be negative or infinite"),
        (weighs(a="much"), "class_weight must not be negative or infinite"),
        (weighs(a={"$float": "nan"}), "class_weight must not be negative or infinite"),
        (weighs(a=10**400), "class_weight must not be negative or infinite"),
        (
            lambda description, arrays: description["parameters"].update(class_weight="heavy"),
            "class_weight must be None",
        ),
        (attribute("dual_coef_/data", lambda beta: beta * -1.7e308 / abs(beta).max()), "dual_coef_ must hold numbers"),
        (attribute("support_vectors_", lambda X: X * 1e200), r"support_vectors_ must hold numbers from -1e\+150"),
        (lambda description, arrays: description["parameters"].update(kernel="precomputed"), "must not be there"),
    ],
)
def test_a_model_that_no_training_makes_is_refused(file, change, why):
    changed(file, stream(), change)
    with pytest.raises(ModelFileError, match=rf"model\.larank is damaged: .*{why}"):
        load(file)


def wrap(starts):
    starts[1:-1], starts[-1] = 2_000_000_000, 0
    return starts


@pytest.mark.parametrize(
    "bomb",
    [
        {"$objects": ["a", "b", "c"], "dtype": "<U250000000", "shape": [3]},
        {"$objects": ["a", "b", "c"], "dtype": "(1000000000,)f8", "shape": [3]},
        {"$objects": [], "dtype": "|O", "shape": [10**9, 10**9]},
        {"$objects": ["a"], "dtype": "|O", "shape": [-1]},
        {"$sparse": "csr_matrix", "name": "dual_coef_", "shape": [10**12, 10**12]},
        [[{"$array": "support_"}, {"$array": "support_"}]],
    ],
    ids=str,
)
def test_a_small_file_does_not_ask_for_much(file, bomb):
    changed(file, stream(), said(classes_=bomb))
    with pytest.raises(ModelFileError, match=r"attributes, (classes_|support_|dual_coef_)"):
        load(file)


def lists(count):
    return said(classes_=[[]] * count)


def objects(count):
    return said(classes_={"$objects": [f"{k:05x}" for k in range(count)], "dtype": "|O", "shape": [count]})


def pairs(count):
    return lambda description, arrays: description["parameters"].update(
        class_weight={"$dict": [[k, 1] for k in range(count)]}
    )


def empty_arrays(count):
    return lambda description, arrays: arrays.update({f"a{k}": np.zeros(0) for k in range(count)})


def numbers(count):
    return lambda description, arrays: arrays.update(support_=np.arange(count))


def numbered_classes(dtype, count):
    def change(description, arrays):
        description["attributes"]["classes_"] = {"$array": "classes_"}
        arrays["classes_"] = np.arange(count, dtype=dtype)

    return change


@pytest.mark.parametrize(
    "change",
    [
        lists(3_000_000),
        lists(250_000),
        said(classes_=[-9] * 2_500_000),
        parameter(kernel="\N{GRINNING FACE}" + "a" * 9_000_000),
        objects(300_000),
        pairs(250_000),
        empty_arrays(20_000),
        numbers(1_000_000),
        numbered_classes(np.int16, 30_000),
        numbered_classes(np.uint32, 2_000_000),
    ],
    ids=[
        *(
            "9 MB of lists",
            "lists",
            "negative numbers",
            "a long text",
            "texts",
            "pairs",
            "empty arrays",
            "numbers",
            "small labels",
            "labels",
        ),
    ],
)
def test_loading_takes_memory_in_proportion_to_the_file(file, change):
    changed(file, stream(), change)
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


def test_a_model_whose_description_is_too_large_is_not_saved(file):
    model = Toy().fit()
    model.notes_ = [[]] * 400_000
    with pytest.raises(ValueError, match=r"take about \d+ bytes of memory, where \d+ are allowed"):
        save(model, file)
    assert not file.exists()


def test_a_long_history_is_saved(file):
    model = Toy().fit()
    points = tuple(Checkpoint(k / 3, k / 7, 2.0 + k, 1.0, 0.5, False, k, k) for k in range(20_000))
    model.result_ = Result("larank", "completed", 3.0, 2.5, 0.1, 2.0, 0.2, 10, 12, history=points)
    assert round_trip(model, file).result_ == model.result_
    model.result_ = replace(model.result_, history=points[:1] * 200_001)
    with pytest.raises(ValueError, match="at most 200000 points to be saved, got 200001"):
        save(model, file)


@pytest.mark.parametrize("depth", [3000, 100_000])
def test_deep_nesting_is_damage(file, depth):
    save(Toy().fit(), file)
    text = json.dumps({"n_iter_": 1}).replace("1", "[" * depth + "]" * depth)
    said = {"format": "larank-model", "format_version": 2, "library_version": "0", "class": "Toy", "parameters": {}}
    description = json.dumps({"digest": "0" * 64, **said})
    file.write_bytes(joined(f'{description[:-1]}, "attributes": {text}}}', {}))
    for function in (load, describe):
        with pytest.raises(ModelFileError, match=r"model\.larank"):
            function(file)


def test_a_model_that_could_not_be_loaded_is_not_saved(file):
    model = stream()
    model.dual_coef_.data[0] = np.nan
    with pytest.raises(ValueError, match="LaRankClassifier cannot be saved: dual_coef_ must be finite"):
        save(model, file)
    with pytest.raises(ValueError, match="cannot be saved: C must be a finite number > 0"):
        save(stream().set_params(C=-1), file)
    assert not file.exists()


def test_strings_that_take_much_more_room_than_text_are_not_saved(file):
    model = Toy().fit()
    model.classes_ = np.array(["a"] * 1000 + ["b" * 10_000])
    with pytest.raises(ValueError, match="an array of objects would do"):
        save(model, file)


# what the schemas of all classes refuse


def estimator(kind, parameters, attributes):
    return {"$estimator": {"class": kind, "parameters": parameters, "attributes": attributes}}


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
    return {"$tuple": [name, estimator(kind, {}, {})]}


X3 = np.random.RandomState(0).randn(20, 4)
Y3 = np.arange(20) % 3
WORDS = [["the", "dog"]] * 3, [["D", "N"]] * 3
NAMES = pandas.DataFrame({"a": [1.0, 2.0, 4.0], "b": ["x", "y", "x"]})
MAKERS = {
    "stream": stream,
    "sparse": lambda: larank.LaRankClassifier().fit(sp.csr_matrix(X3), Y3),
    "linear": lambda: larank.LinearMulticlassSVC().fit(X3, Y3),
    "encoder": lambda: larank.TableEncoder().fit(NAMES),
    "map": lambda: larank.PivotedCholeskyMap(n_components=3, random_state=0).fit(X3),
    "perceptron": lambda: larank.KernelPerceptron(random_state=0).fit(X3, Y3),
    "huller": lambda: larank.HullerClassifier(random_state=0).partial_fit(X3, Y3),
    "structured": lambda: larank.StructuredSVC(larank.MulticlassModel(3), random_state=0).fit(X3, Y3),
    "pipeline": lambda: make_pipeline(larank.KernelPCAMap(), larank.LinearMulticlassSVC(random_state=0)).fit(X3, Y3),
    "tagger": lambda: larank.SequenceTagger(random_state=0).fit(*WORDS),
    "concepts": lambda: larank.ConceptLabeler(random_state=0).fit([["a", "b"], ["b"]], [["A", "B"], ["B"]]),
    "parser": lambda: larank.SemanticParser(random_state=0).fit([ParseExample(("a", "b"), parse_meaning("b(a)"))]),
}
COLUMN = {"name": "a", "reason": ""}
# The model, the change of its file, words of the error.
DAMAGED = [
    (
        "linear",
        attribute("classes_", lambda classes: classes[:2]),
        r"coef_ must be an array .* of shape \(1, 4\), got .* \(3",
    ),
    ("sparse", attribute("support_vectors_/indptr", wrap), "indptr that never decreases"),
    ("stream", said(n_iter_={"$float": "much"}), r"\$float must be inf, -inf or nan, got 'much'"),
    ("stream", said(_state={"$tuple": 3}), "there must be a list, got a int"),
    ("stream", said(_state={"$dict": [[1]]}), "a dict must be a list of pairs"),
    ("stream", said(_state={"$estimator": 3}), "an estimator has a class, parameters and attributes"),
    ("stream", said(_state=estimator("Toy", [], {})), "parameters must be a dict, got a list"),
    ("stream", said(_state={"$value": 3}), "the name of a class must be text, got 3"),
    ("stream", said(_state={"$value": "Unheard"}), "there is no 'Unheard'"),
    ("stream", lambda d, arrays: d["attributes"]["dual_coef_"].update({"$sparse": "coo"}), "no sparse matrix 'coo'"),
    ("stream", said(classes_={"$objects": [1], "dtype": "<U1", "shape": [1]}), "an array of <U1 must hold text"),
    ("stream", said(result_={"$result": 3}), "a Result must be a dict of its fields"),
    ("stream", said(result_={"$result": {"$dict": [["history", 3]]}}), "history of a Result must be a dict of lists"),
    ("stream", said(result_={"$result": {"$dict": [["history", {"$dict": [["dual", [0] * 200_001]]}]]}}), "at most"),
    ("stream", said(result_={"$result": {"$dict": [["history", {"$dict": []}]]}}), "Result.solver is missing"),
    ("stream", attribute("support_costs_", np.atleast_2d), "support_costs_ must be an array of float64 of shape"),
    ("stream", said(_state=[1]), "_state must be a list of 5 entries"),
    ("stream", said(_state=[0, 0, 0, 3, 1]), r"_state\[3\] must be a list, got 3"),
    ("stream", said(_state=[0, 0, 0, [1], 1]), r"_state\[3\] must have 3 entries, got 1"),
    ("stream", said(_arrived=labels("a", "a", "b")), "_arrived must hold every label once"),
    ("stream", said(_arrived=labels("a", "x", "b") | {"dtype": "|O"}), "_arrived must be labels out of classes_, got"),
    ("stream", numbered(_arrived=[0, 1, 2]), "_arrived must be labels of the type of those in classes_"),
    ("stream", mixed("a", "b", None), "classes_ must be labels, which are text, numbers or tuples of these, got None"),
    ("stream", mixed("a", 1, {"$tuple": ["a", 1]}), "classes_ must hold labels in ascending order"),
    ("stream", numbered(classes_=[0.0, 1.0, np.nan]), "classes_ must be labels, which are text, .* got .*nan"),
    ("stream", attribute("dual_coef_/indices", np.zeros_like), "dual_coef_ must hold every entry once"),
    ("stream", attribute("dual_coef_/indptr", lambda at: np.r_[0, 0, at[2:]]), "dual_coef_ must have an entry in ever"),
    ("huller", said(_state=[9, 1, [], []]), r"_state\[0\] must be 3 as other attributes say, got 9"),
    ("perceptron", lambda d, arrays: d["attributes"]["_beta"]["shape"].__setitem__(1, 9), "at most 3 columns, got 9"),
    ("map", attribute("cholesky_", lambda L: L * (1 - np.eye(3))), "cholesky_ must have a diagonal without zeros"),
    ("map", said(_widths=[2]), "_widths must sum to 3 components, got 2"),
    ("encoder", said(columns_=[value("DroppedColumn", **COLUMN)] * 2), "a name of its own for each column"),
    ("encoder", said(columns_=[value("DroppedColumn", **{**COLUMN, "name": n}) for n in "ac"]), "names of feature_na"),
    ("encoder", said(columns_=[value("DroppedColumn", **{**COLUMN, "name": n}) for n in "ab"]), "a column with featu"),
    ("encoder", said(columns_=[value("DroppedColumn", **COLUMN, more=1)]), r"DroppedColumn has no \['more'\]"),
    ("encoder", said(columns_=[value("DroppedColumn", name=1, reason="")]), "DroppedColumn.name must be of type str"),
    ("encoder", said(columns_=[value("DroppedColumn", name="a")]), "DroppedColumn.reason is missing"),
    ("encoder", said(columns_=[{"$value": "DroppedColumn", "settings": 3}]), "DroppedColumn must be a dict of its fi"),
    (
        "encoder",
        said(columns_=[value("BooleanColumn", name="a", fill=2.0, has_indicator=False, n_missing=0)]),
        "training",
    ),
    ("structured", parameter(model=value("MulticlassModel", n_classes=5)), "as many weights for each of 5 classes"),
    ("structured", attribute("_inputs/0", lambda x: x * np.nan), "inputs must be vectors of 4 finite numbers"),
    ("pipeline", parameter(steps=[3]), "steps must be a list of pairs"),
    ("pipeline", parameter(steps=[step("a"), step("a")]), "steps must have a name of its own for each step"),
    ("pipeline", parameter(steps=[step("a", "LinearMulticlassSVC"), step("b")]), "before the last one transformers"),
    ("pipeline", parameter(memory="/tmp"), "memory must be None in a file, got '/tmp'"),
    ("tagger", state("labels", lambda names: ["D", "X"]), "must be those in classes_"),
    ("tagger", state("session", entry("patterns", lambda coded: 3)), "must be a list of 13 entries"),
    ("tagger", attribute("_state/3/2", lambda starts: starts * 1.0), "must be an array of whole numbers, one more"),
    ("tagger", attribute("_state/3/2", lambda starts: starts[::-1].copy()), "must ascend from 0"),
    ("tagger", attribute("_state/3/2", lambda starts: starts[:-1]), r"must have \(parts, their end\)"),
    ("tagger", state("session", lambda coded: {"$dict": coded["$dict"][:2]}), "must have .*patterns"),
    ("tagger", said(_state=3), "_state must be a dict of encoder, "),
    ("concepts", state("symbols", lambda names: ["", *names[1:]]), "must be different, with all concepts among them"),
    ("concepts", state("words", lambda words: words[::-1]), "the concepts in concepts_ and the words in words_"),
    ("concepts", state("words", lambda words: [3] * len(words)), "must be text, got 3"),
    ("concepts", attribute("_state/8", lambda senses: senses + 1000), r"\['senses'\] must be of 3 words"),
    ("parser", state("settings", lambda coded: [0.1, 2, "order-free", "margin"]), "must have an odd window"),
    ("parser", state("symbols", entry("labels", lambda names: names[::-1])), r"\['labels'\] must begin with '-'"),
    ("parser", state("roles", entry("labels", lambda names: ["A7"])), "must be '-', 'A0', 'A1'"),
    ("parser", state("grammar", entry("b", lambda counts: [])), "must have numbers of arguments for each symbol"),
    ("parser", state("grammar", lambda counts: 3), r"_state\['grammar'\] must be a dict"),
]


@pytest.fixture(scope="module")
def content_of(tmp_path_factory):
    """Return a function that trains a model once and returns the bytes of its file."""
    path = tmp_path_factory.mktemp("models") / "model.larank"

    @cache
    def content(name):
        save(MAKERS[name](), path)
        return path.read_bytes()

    return content


@pytest.mark.parametrize(("name", "change", "why"), DAMAGED)
def test_what_no_model_of_a_class_can_hold_is_refused(file, content_of, name, change, why):
    _, description, arrays = split(content_of(name))
    change(description, arrays)
    file.write_bytes(joined(description, arrays))
    with pytest.raises(ModelFileError, match=rf"model\.larank is damaged: .*{why}"):
        load(file)
