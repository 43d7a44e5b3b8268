"""Claims that every estimator of the library keeps; what is true of one algorithm alone stands in its own file."""

import contextlib
import copy
import doctest
import gc
import multiprocessing
import pickle
import re
import sys
import threading
import warnings
import weakref
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import get_tags
from threadpoolctl import threadpool_info

import checks
import larank
from checks import (
    K,
    X,
    assert_certified,
    assert_near,
    assert_same_model,
    assert_valid,
    chosen,
    classifier_streams,
    classifiers,
    every_estimator,
    expansion,
    gram,
    kernel_machines,
    kernel_streams,
    names,
    of_kernels,
    of_matrices,
    of_support,
    parameters_of,
    part,
    readers,
    refuses,
    registered,
    scores,
    splits,
    streams,
    those,
    unchanged,
    y,
)
from larank import CertificateWarning, TrainingWarning
from larank.blocks import Provider
from larank.blocks.kernels import kernel_names
from larank.blocks.provider import length
from larank.kernel.activeset import ActiveSetTraining
from larank.kernel.machine import OnlineClassifier, StreamTraining
from references import optima

# Parameters


@every_estimator
def test_a_wrong_parameter_is_named_with_its_value_and_what_would_do_and_leaves_the_model_as_it_was(case):
    some, labels = case.data
    model = case.make().fit(some, labels)
    kept = model.get_params(deep=False)
    with unchanged(model, some):
        for name in case.names:
            what, values = checks.wrong_values(case.estimator, name) or ("", ())
            for value, (call, train) in product(values, case.calls()):
                if call == "path" and name in ("C", "solver"):
                    continue  # it has costs of its own, and goes on with one solver only
                message = f"^{name} must be .*{what}.* got {re.escape(repr(value))}"
                wrong = (model if call == "fit" else case.make()).set_params(**{name: value})
                if hasattr(wrong, call):  # there is no `partial_fit` with a tolerance, whatever its value
                    refuses(message, train, wrong, some, labels)
                model.set_params(**kept)


def parametrised(table):
    for case in checks.CASES:
        for number, (parameters, message) in enumerate(table):
            if case.takes(*parameters) and (case.is_classifier or "label_costs" not in parameters):
                yield pytest.param(case, parameters, message, id=f"{case}-{number}-{'-'.join(parameters)}")


@pytest.mark.parametrize(("case", "parameters", "message"), list(parametrised(checks.WRONG_OTHERWISE)))
def test_what_is_wrong_in_its_own_way_is_named_too(case, parameters, message):
    if case.variant == "published" and "random_state" in parameters:
        pytest.skip("nothing is random")
    X, y = case.data
    for _, train in case.calls():
        refuses(message, train, case.make(**parameters), X, y)


def of_streams(table):
    for values in parametrised(table):
        case, parameters, _ = values.values
        if case.streams and ("solver" not in parameters or case.estimator is larank.StructuredSVC):
            yield values


@pytest.mark.parametrize(("case", "parameters", "message"), list(of_streams(checks.NEEDS_ALL_EXAMPLES)))
def test_partial_fit_is_there_only_where_it_can_be_called(case, parameters, message):
    model = case.make(**parameters)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match=f"^{case.estimator.__name__} has no partial_fit {message}"):
        model.partial_fit(*case.data)
    usual = {name: getattr(case.make(), name) for name in parameters}
    assert hasattr(model.set_params(**usual), "partial_fit")
    model.partial_fit(*case.data)


@of_matrices
@pytest.mark.parametrize("path", ["f.csv", Path("f.csv")])
def test_an_estimator_of_arrays_says_what_reads_files(case, path):
    message = "^X must hold examples, got 'f.csv'. Read a file with larank.data.read, or use LinearMulticlassSVC or Lin"
    for call, train in case.calls():
        if case.estimator in (larank.LinearMulticlassSVC, larank.LinearSGDClassifier) and call != "path":
            continue  # these take files
        refuses(message, train, case.make(), path, y)
    if case.estimator not in (larank.LinearMulticlassSVC, larank.LinearSGDClassifier):
        refuses(message, case.make().fit, path)
    refuses(message, getattr(case.make().fit(X, y), case.asks[0]), path)


@classifiers
def test_a_fit_without_labels_says_that_they_are_needed(case):
    for method in ("fit", "partial_fit") if case.streams else ("fit",):
        refuses(r"requires y to be passed, but the target y is None|candidate", getattr(case.make(), method), X)


@those(lambda case: not case.streams)
def test_an_estimator_without_partial_fit_says_what_has_it(case):
    able = "LaRankClassifier, LaSVMClassifier and LinearSGDClassifier learn"
    instead = able if case.is_classifier else "Fit it on a sample"
    model = case.make()
    for _ in range(2):
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError, match=f"^{case.estimator.__name__} has no partial_fit because .*{instead}"):
            model.partial_fit(*case.data)
        model.fit(*case.data)


@classifiers
def test_a_classifier_without_probabilities_says_what_has_them(case):
    model = case.make()
    if hasattr(model, "predict_proba"):
        pytest.skip("it has probabilities")
    with pytest.raises(
        AttributeError, match=f"^{case.estimator.__name__} has no predict_proba .*CalibratedClassifierCV"
    ):
        model.predict_proba(X)
    if not hasattr(case.estimator, "predict_proba"):
        with pytest.raises(AttributeError, match="PrimalMulticlassSVC"):
            model.fit(X, y).predict_proba(X)
        calibrated = CalibratedClassifierCV(model, cv=2).fit(X, y)  # what the error says
        assert calibrated.predict_proba(X).shape == (60, 3)


@classifier_streams
def test_what_a_stream_began_with_cannot_change(case):
    usual = case.make().get_params()
    changes = {
        **checks.FIXED,
        "algorithm": "simple" if case.estimator is larank.TrackingSVC else "sgd",
        "solver": (larank.LaSVM if case.estimator is larank.LaSVMClassifier else larank.LaRank)(tau=0.1),
        "fit_intercept": not usual.get("fit_intercept"),
    }
    if not case.has_kernel:
        del changes["memory_limit"]
    for name, value in changes.items():
        if (case.variant, name) == ("average", "max_support") or repr(value) == repr(usual.get(name)):
            continue  # these cannot act together, or nothing changes
        if case.takes(name):
            model = case.make().partial_fit(X, y)
            with pytest.raises(ValueError, match=rf"{name} must stay as it was .*got {re.escape(repr(value))}"):
                model.set_params(**{name: value}).partial_fit(X, y)


@those(lambda case: case.takes("C"))
def test_numbers_and_flags_of_any_kind_are_accepted(case):
    others = {"max_iter": np.int32(1000 if case.converges else 2)}
    for C in (np.float32(0.5), np.int64(2), 3):
        model = case.make(C=C, **others)
        flags = {name: np.bool_(value) for name, value in model.get_params().items() if isinstance(value, bool)}
        assert_same_model(clone(model).set_params(**flags).fit(*case.data), model.fit(*case.data))


@those(lambda case: hasattr(case.estimator, "path") and case.variant != "published")
def test_wrong_costs_of_a_path_are_refused(case):
    for Cs, message in (
        ([], "Cs must hold at least one value; got none"),
        (1.0, "Cs must be a sequence of numbers; got 1.0"),
        ([1.0, -2.0], r"Cs\[1\] must be a finite number > 0; got -2.0"),
        ([1.0, np.inf], r"Cs\[1\] must be a finite number > 0; got inf"),
        ("ab", r"Cs\[0\] must be a finite number > 0; got 'a'"),
    ):
        refuses(message, case.make(time_limit=1e-9).path, *case.data, Cs)


@every_estimator
def test_a_clone_has_the_parameters_and_nothing_else(case):
    model = case.make().fit(*case.data)
    other = clone(model)
    assert parameters_of(other) == parameters_of(model)
    assert not [name for name in vars(other) if name.endswith("_") or name.startswith("_")]
    assert_same_model(other.fit(*case.data), model)


@every_estimator
def test_a_subclass_trains_as_its_parent_whatever_its_constructor_takes(case):
    unusual = {name: value for name, value in checks.UNUSUAL.items() if case.takes(name)}
    if case.converges:
        unusual.pop("max_iter", None)
    parent = case.make(**unusual)
    for model in checks.models_of_subclasses(case.estimator, parent.get_params(deep=False)):
        assert hasattr(model, "partial_fit") == hasattr(parent, "partial_fit")
        for call, train in case.calls(whole=not hasattr(parent, "partial_fit")):
            found, expected = (train(clone(each_), *case.data) for each_ in (model, parent))
            for one, other in zip(*([found], [expected]) if call != "path" else (found, expected), strict=True):
                assert_same_model(copy.deepcopy(one), other)
                checks.assert_same_result(one, other)


@those(lambda case: "C" in case.names)
def test_set_params_of_a_subclass_acts_through_a_property(case):
    class Renamed(case.estimator):
        def __init__(self, cost):
            super().__init__(**{**others, "C": cost})

        @property
        def cost(self):
            return self.C

        @cost.setter
        def cost(self, value):
            self.C = value

    others = case.make().get_params(deep=False)
    expected = case.make(C=0.3).fit(*case.data)
    for model in (clone(Renamed(2.0)).set_params(cost=0.3), clone(Renamed(0.3))):
        assert_same_model(copy.deepcopy(model.fit(*case.data)), expected)


@every_estimator
def test_set_params_refuses_unknown_names(case):
    refuses("Invalid parameter 'epsilon'", case.make().set_params, epsilon=0.1)


# Wrong examples, labels and weights


@readers()
@pytest.mark.filterwarnings("ignore:.*ragged")
def test_wrong_arguments_are_refused_and_leave_the_model_as_it_was(case):
    labels = case.data[1]
    for kernel, (usual, some) in case.kernels.items():
        model = case.make(**usual).fit(some, labels)
        begun, more = model, some
        if case.streams and kernel == "precomputed":  # it cannot go on after `fit`, and goes on with more columns
            begun, more = case.make(**usual).partial_fit(some, labels), np.hstack([some, some])
        with unchanged(model, some), unchanged(begun, some):
            for what, given, parameters, message in checks.refused(case):
                if kernel != "rbf" and case.has_kernel and (parameters or given.keys() - {"X", "y"}):
                    continue  # these are not the examples' business
                if kernel == "precomputed" and "X" in given:
                    continue
                for call, train in case.calls(whole=parameters or what.startswith("one class")):
                    if not all(name in ("X", "y") or case.passes(name, call) for name in given):
                        continue
                    wrong = {"X": some, "y": labels, **given}
                    refuses(message, train, case.make(**{**usual, **parameters}), **wrong)
                    if call == "partial_fit" and not parameters:
                        refuses(message, train, begun, **{**wrong, "X": given.get("X", more)})
                    elif not parameters:
                        refuses(message, train, model, **wrong)
                if "X" in given and not parameters:
                    refuses(message, getattr(model, case.asks[0]), given["X"])


@every_estimator
def test_prediction_before_training_is_refused(case):
    some, _ = case.data
    model = case.make()
    for method in (*case.asks, *(["predict_proba"] if hasattr(model, "predict_proba") else [])):
        with pytest.raises(NotFittedError, match=f"{case.estimator.__name__} instance is not fitted yet"):
            getattr(model, method)(some)


@readers(lambda case: case.takes_matrices)
def test_another_number_of_features_is_refused_and_leaves_the_model_as_it_was(case):
    for parameters, some in case.kernels.values():
        model = case.make(**parameters).fit(some, y)
        for width in (some.shape[1] - 1, some.shape[1] + 1):
            other = np.zeros((2, width))
            trained = type(chosen(model)).__name__
            message = f"X has {width} features, but {trained} is expecting {some.shape[1]} features"
            for method in case.asks:
                refuses(message, getattr(model, method), other)
            if case.streams and parameters.get("kernel") != "precomputed":
                with unchanged(model, some), pytest.raises(ValueError, match=message):
                    model.partial_fit(other, [0, 1])


@readers(lambda case: case.takes_matrices)
def test_feature_names_are_kept_and_checked(case):
    frame = pd.DataFrame(X, columns=list("abcd"))
    for call, train in case.calls():
        model = train(case.make(), frame, y)
        model = model[0] if call == "path" else model
        np.testing.assert_array_equal(model.feature_names_in_, list("abcd"))
        refuses("feature names should match", getattr(model, case.asks[0]), frame[["b", "a", "c", "d"]])


@streams
def test_a_failed_call_changes_nothing_of_what_comes_after(case):
    """The stream goes on as if it had never been made."""
    some, labels = case.data
    half = len(labels) // 2
    first, second = np.arange(half), np.arange(half, len(labels))
    wrong = [{"y": part(labels, first[:-1])}]
    if case.weighs:
        wrong.append({"sample_weight": -np.ones(half)})
    for name, value in (("C", -1.0), ("time_limit", 0), ("label_costs", np.ones((9, 9)))):
        if case.takes(name):
            wrong.append({name: value})
    for one, begun in product(wrong, (False, True)):
        model, twin = case.make(), case.make()
        if begun:
            for each_ in (model, twin):
                each_.partial_fit(part(some, first), part(labels, first))
        changed = {name: value for name, value in one.items() if name in case.names}
        kept = {name: getattr(model, name) for name in changed}
        given = {name: value for name, value in one.items() if name == "sample_weight"}
        with pytest.raises(ValueError, match=r"equally|samples|weight|must (be|have|hold|map|stay)"):
            model.set_params(**changed).partial_fit(part(some, first), one.get("y", part(labels, first)), **given)
        model.set_params(**kept)
        for each_ in (model, twin):
            each_.partial_fit(part(some, second), part(labels, second))
        assert_same_model(model, twin)


# Kernels that are not positive semi-definite

certified = those(lambda case: case.has_kernel and (case.objective or case.is_search))
IMPOSSIBLE = {
    "a value larger than those of the two examples": (
        checks.spoiled(checks.spoiled(K, (3, 7), 1000.0), (7, 3), 1000.0),
        r"k\(x, z\) = 100\d.0 for examples 3 and 7 with k\(x, x\) = \d.0 and k\(z, z\) = \d.0",
    ),
    "a negative diagonal": (checks.spoiled(K, (3, 3), -5.0), r"k\(x, x\) = -\d.0 for example 3"),
    "negative eigenvalues": (
        K - 0.1 * np.eye(len(K)),
        r"their matrix has the eigenvalue -0\..* beside .*, on 60 of them",
    ),
}


@certified
@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_a_matrix_that_is_not_positive_semi_definite_makes_a_model_without_a_certificate(case, what):
    matrix, found = IMPOSSIBLE[what]
    for _, train in case.calls(whole=True):
        with pytest.warns(CertificateWarning, match=f"not positive semi-definite on these examples: {found}"):
            trained = train(case.make(kernel="precomputed"), matrix, y)
        assert_uncertified(trained[-1] if isinstance(trained, list) else trained, matrix)


def assert_uncertified(model, examples):
    """It predicts, and claims nothing."""
    assert np.isfinite(model.decision_function(examples)).all()
    result = chosen(model).result_
    assert np.isfinite(result.primal)
    assert np.isnan([result.dual, result.gap, result.relative_gap]).all()
    assert all(np.isnan(point.dual) for point in result.history)


@those(lambda case: case.has_kernel and case.objective and case.streams)
def test_a_stream_that_goes_on_from_a_fit_does_not_forget_that_the_kernel_is_none(case, tmp_path):
    random = np.random.default_rng(0)
    examples, labels = random.normal(size=(60, 4)), np.arange(60) % 2
    said = "not positive semi-definite on these examples: their matrix has the eigenvalue"
    with pytest.warns(CertificateWarning, match=said):
        model = case.make(kernel="sigmoid", gamma=0.25).fit(examples, labels)
    larank.save(model, tmp_path / "model.larank")
    for going_on in (larank.load(tmp_path / "model.larank"), pickle.loads(pickle.dumps(model)), model):
        with pytest.warns(CertificateWarning, match=said):
            going_on.partial_fit(examples[:6], labels[:6])
        assert np.isnan(going_on.result_.dual)
    assert not hasattr(model.set_params(kernel="rbf").fit(examples, labels), "_indefinite")


@those(lambda case: case.has_kernel and case.is_transformer)
def test_such_a_matrix_has_no_features(case):
    for matrix, _ in IMPOSSIBLE.values():
        refuses("kernel.* must be positive semi-definite, got", case.make(kernel="precomputed").fit, matrix)


@those(lambda case: case.has_kernel and case.streams and not case.objective)
def test_what_certifies_nothing_takes_any_symmetric_function(case):
    for matrix, _ in IMPOSSIBLE.values():
        model = case.make(kernel="precomputed").fit(matrix, y)
        assert np.isfinite(model.decision_function(matrix)).all()


def tanh(A, B):
    return np.tanh(A @ B.T / 4)


@certified
def test_kernels_that_are_none_train_as_they_do_in_svc(case):
    """On classes that they separate."""
    random = np.random.default_rng(0)
    labels = np.arange(80) % 2
    examples = random.normal(size=(80, 4)) + np.outer(np.where(labels, 1, -1), [3.0, 1.5, 0, 0])
    stops = [{}, {"tol": 0.01, "max_iter": 20}] if case.streams else [{}]
    values = gram(examples) - 0.1 * np.eye(80)
    for kernel, some in (("sigmoid", examples), (tanh, examples), ("precomputed", values)):
        accuracy = SVC(kernel=kernel, gamma=checks.GAMMA).fit(some, labels).score(some, labels)
        for stop in stops:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = case.make(kernel=kernel, **stop).fit(some, labels)
            assert sum(issubclass(each_.category, CertificateWarning) for each_ in caught) == 1
            assert model.score(some, labels) >= accuracy - 0.03
            assert_uncertified(model, some)


@certified
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_positive_semi_definite_kernel_warns_of_nothing(case, dtype):
    some, values = X.astype(dtype), K.astype(np.float32).astype(dtype)
    for kernel, examples in ((rbf_kernel, some), ("sigmoid", 1e-4 * some), ("precomputed", values)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = case.make(kernel=kernel).fit(examples, y)
        assert np.isfinite(chosen(model).result_.gap)


@readers(lambda case: case.has_kernel)
def test_the_matrix_of_a_precomputed_kernel_is_dense(case):
    for _, train in case.calls(whole=True):
        with pytest.raises(TypeError, match="Sparse data was passed for X, but dense data is required"):
            train(case.make(kernel="precomputed"), sparse.csr_matrix(K), y)


@kernel_streams
def test_parts_of_a_precomputed_stream_have_a_column_for_every_example_so_far(case):
    model = case.make(kernel="precomputed").partial_fit(K[:10, :10], y[:10])
    with pytest.raises(ValueError, match=r"X must have a column for every example .* at least 20; got 10"):
        model.partial_fit(K[10:20, :10], y[10:20])
    model.partial_fit(K[10:20, :20], y[10:20])
    with pytest.raises(ValueError, match=r"X must have a column for every example .* at least 5; got 3"):
        case.make(kernel="precomputed").partial_fit(K[:5, :3], y[:5])


@of_support
def test_zeros_on_the_diagonal_are_legal_in_rows_of_zeros(case):
    values = K.copy()
    values[5], values[:, 5] = 0, 0
    model = case.make(kernel="precomputed", **({"max_iter": 3} if case.streams else {})).fit(values, y)
    assert_valid(model, values, y)
    assert np.isfinite(expansion(model)).all()
    if case.estimator.__name__ in ("LaRankClassifier", "MulticlassSVC") and not case.variant:
        largest = model.dual_coef_[np.flatnonzero(model.support_ == 5)].max()
        assert largest == pytest.approx(1.0, rel=1e-9), "nothing holds its coefficient back but C"


SHAPE = r"return an array of shape \(\d+, \d+\) .*, got shape"
FINITE = "return finite numbers, got"
NONSENSE = {
    "one column more": (lambda A, B: np.ones((len(A), len(B) + 1)), SHAPE),
    "one dimension": (lambda A, B: np.ones(len(A)), SHAPE),
    "NaN": (lambda A, B: np.full((len(A), len(B)), np.nan), rf"{FINITE} nan for examples \d+ and \d+"),
    "infinity": (lambda A, B: np.where(A[:, :1] == X[7, 0], np.inf, A @ B.T), rf"{FINITE} inf for examples 7 and \d+"),
    "words": (lambda A, B: [["one"] * len(B)] * len(A), "return numbers, got list"),
    "rows of different lengths": (lambda A, B: [[1.0], [1.0, 2.0]], "return numbers, got list"),
    "digits": (lambda A, B: (A @ B.T).astype(str), "return numbers, got ndarray of <U"),
    "complex": (lambda A, B: A @ B.T + 1j, "return numbers, got ndarray of complex128"),
    "sparse": (lambda A, B: sparse.csr_matrix(A @ B.T + 1j), "return numbers, got csr_matrix of complex128"),
    "dates": (lambda A, B: np.zeros((len(A), len(B)), "M8[D]"), "return numbers, got ndarray of datetime64"),
    "durations": (lambda A, B: np.zeros((len(A), len(B)), "m8[D]"), "return numbers, got .* timedelta64"),
    "masked": (lambda A, B: np.ma.masked_less(A @ B.T, 0), "return numbers, got a masked array; fill"),
    "masked rows": (lambda A, B: list(np.ma.masked_less(A @ B.T, 0)), "return numbers, got a masked array"),
    "nothing": (lambda A, B: None, "return"),
    "no symmetry": (lambda A, B: A[:, :1] + 0 * B[:, 0], r"be symmetric, got .* for examples \d+ and \d+"),
}


@readers(lambda case: case.has_kernel)
@pytest.mark.parametrize("what", NONSENSE)
def test_a_kernel_that_returns_nonsense_is_named_with_the_examples(case, what):
    kernel, message = NONSENSE[what]
    for call, train in case.calls():
        if what == "no symmetry" and call == "partial_fit":
            message = ""
        refuses(f"kernel must {message}", train, case.make(kernel=kernel), X, y)


@readers(lambda case: case.has_kernel)
@pytest.mark.parametrize("function", [lambda A, B: A @ A.T, lambda A, B: B @ B.T, lambda A, B: B @ A.T])
def test_a_kernel_that_is_right_for_equal_sets_only_is_found_by_its_first_call(case, function):
    sizes = []

    def kernel(A, B):
        sizes.append((len(A), len(B)))
        return function(A, B)

    for _, train in case.calls():
        sizes.clear()
        with pytest.raises(ValueError, match=r"kernel must return an array of shape \(2, 1\) = \(len\(A\), len\(B\)\)"):
            train(case.make(kernel=kernel), X, y)
        assert sizes == [(2, 1)]


def writing(argument):
    """Return a kernel that sets the values of the first or the second example to zero, and then is right."""

    def kernel(A, B):
        some = (A, B)[argument]
        some = some[0] if isinstance(some, list) else some.data if sparse.issparse(some) else some
        some[:] = 0.0
        return np.ones((length(A), length(B)))

    return kernel


@readers(lambda case: case.has_kernel)
@pytest.mark.parametrize("form", [np.copy, sparse.csr_matrix, list], ids=["array", "sparse", "list"])
@pytest.mark.parametrize("argument", [0, 1])
def test_a_kernel_cannot_write_to_the_examples(case, form, argument):
    some, others = form(X), form(X)
    for _, train in case.calls():
        refuses("read-only", train, case.make(kernel=writing(argument)), some, y)
    model = case.make(kernel=lambda A, B: gram(_rows(A), _rows(B))).fit(others, y)
    refuses("read-only", getattr(chosen(model).set_params(kernel=writing(argument)), case.asks[0]), some)
    for each_ in (some, others):
        np.testing.assert_array_equal(_rows(each_), X)


def _rows(examples):
    """Return the rows of an array, of a sparse matrix or of a list as an array."""
    return checks.plain(examples) if hasattr(examples, "shape") else np.array(examples)


@readers(lambda case: case.has_kernel)
def test_kernels_name_the_features_they_cannot_take(case):
    for kernel in ("chi2", "intersection"):
        refuses(f"kernel='{kernel}' needs features >= 0; example .* has -", case.make(kernel=kernel).fit, X, y)
        with pytest.raises(ValueError, match=f"kernel='{kernel}' needs features >= 0; example .* has -"):
            getattr(case.make(kernel=kernel).fit(np.abs(X), y), case.asks[0])(X)
    for kernel in ("chi2", "intersection", "laplacian"):
        with pytest.raises(ValueError, match=rf"kernel='{kernel}' needs a dense X.*toarray"):
            case.make(kernel=kernel).fit(sparse.csr_matrix(np.abs(X)), y)
    with pytest.raises(ValueError, match=r"kernel='poly': the kernel value of example.* in float(32|64)"):
        case.make(kernel="poly", degree=30, gamma=100.0).fit(X.astype(np.float32), y)


@readers(lambda case: case.has_kernel and case.is_classifier)
def test_sequences_of_objects_are_checked_too(case):
    words, model = ["a", "b", "c"] * 20, case.make(kernel=same_word)
    for arguments, message in (
        ((words, y[:5]), "X and y must be equally long, got 60 and 5"),
        (([], []), "must hold at least one example, got none"),
        ((words, X[:, 0]), "Unknown label type: continuous"),
        ((words, None), "requires y to be passed, but the target y is None"),
    ):
        refuses(message, model.fit, *arguments)
    if case.weighs:
        with pytest.raises(ValueError, match="sample_weight must have one entry per example, 60; got shape"):
            model.fit(words, y, sample_weight=np.ones(5))


def same_word(A, B):
    return np.array([[float(a == b) for b in B] for a in A])


@of_kernels
def test_an_exception_in_a_kernel_comes_through_and_leaves_the_model_as_it_was(case, monkeypatch):
    monkeypatch.setattr(OnlineClassifier, "_BATCH_SIZE", 16)
    model = case.make().fit(X, y)
    for call, error in ((1, ZeroDivisionError), (2, ZeroDivisionError), (2, KeyboardInterrupt)):
        with unchanged(model, X):
            kernel = checks.Interrupting(call, partial(checks.fail, error))
            with pytest.raises(error, match="mine"):
                case.set(model, kernel=kernel).fit(X[:50, :3], y[:50] > 0)
            case.set(model, kernel="rbf")


# scikit-learn


@readers(lambda case: case.is_classifier)
def test_searches_pipelines_and_cross_validation_work(case):
    several = {"C": [1e-4, 1.0], "kernel": ["linear", "rbf"], "alpha": [1e-2, 1.0], "Cs": [[1.0], [0.1, 1.0]]}
    name = next(name for name in several if name in case.names)
    search = GridSearchCV(case.make(), {name: several[name]}, cv=3).fit(X, names[y])
    assert search.best_score_ > 0.5
    if case.has_kernel:
        by_kernel = cross_val_score(case.make(kernel="precomputed"), K, y, cv=3)
        np.testing.assert_array_equal(by_kernel, cross_val_score(case.make(kernel="rbf"), X, y, cv=3))
    weight = {"sample_weight": np.linspace(0.5, 2, 60)} if case.weighs else {}
    pipeline = make_pipeline(StandardScaler(), case.make())
    pipeline.fit(X, y, **{f"{pipeline.steps[-1][0]}__{name}": value for name, value in weight.items()})
    alone = case.make().fit(StandardScaler().fit_transform(X), y, **weight)
    assert_same_model(pipeline[-1], alone)


@pytest.mark.parametrize("module", sorted({kind.__module__ for kind in (*registered().values(), larank.ActiveLearner)}))
def test_the_example_of_the_documentation_is_true(module):
    results = doctest.testmod(sys.modules[module])
    assert results.attempted > 0
    assert results.failed == 0


# Copies and files


def through_a_file(model, path):
    larank.save(model, path)
    return larank.load(path)


COPIES = {
    "pickle": lambda model, path: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, path: copy.deepcopy(model),
    "file": through_a_file,
}


def trained(case):
    """Yield models of every kernel, way of training and kind of matrix, with their examples."""
    for kernel, (parameters, some) in list(case.kernels.items())[: None if case.reads else 1]:
        for form in (np.asarray, sparse.csr_matrix) if case.takes_matrices and kernel != "precomputed" else (None,):
            for call, train in case.calls():
                model = train(case.make(**parameters), form(some) if form else some, case.data[1])
                yield from ((each_, some) for each_ in (model if call == "path" else [model]))


@every_estimator
def test_copies_and_saved_models_are_the_same_model(case, tmp_path):
    for model, some in trained(case):
        expected = np.asarray(scores(model, some), object)
        for how, copied in COPIES.items():
            other = copied(model, tmp_path / "model.larank")
            assert type(other) is case.estimator
            assert parameters_of(other) == parameters_of(model)
            assert repr(getattr(chosen(other), "result_", None)) == repr(getattr(chosen(model), "result_", None))
            is_partial = how == "file" and type(chosen(model)) is larank.LinearMulticlassSVC
            assert_same_model(other, model, but=LEFT_OUT if is_partial else ())
            np.testing.assert_array_equal(np.asarray(scores(other, some), object), expected)


# A file of a linear model holds what predicts.
LEFT_OUT = ("dual_coef_", "costs_", "rest_costs_", "support_")


@streams
def test_going_on_after_load_is_exact_and_parts_make_the_model_of_one_call(case, tmp_path):
    """To the last bit, where kernel values do not depend on what they are computed with."""
    some, labels = case.data
    ways = [({}, some)]
    if case.has_kernel:
        ways = [({"kernel": "laplacian"}, X)]
        ways += [({"kernel": "linear"}, form(X)) for form in (np.asarray, sparse.csr_matrix) if keeps_weights(case)]
    first, *cuts = splits(len(labels), *(len(labels) * part // 5 for part in range(1, 5)))
    for (parameters, some), begin in ((ways[0], "fit"), *((way, "partial_fit") for way in ways)):
        known = announced(case, labels) if begin == "partial_fit" else {}
        straight, detoured = (
            getattr(case.make(**parameters), begin)(part(some, first), part(labels, first), **known) for _ in range(2)
        )
        for rows, how in zip(cuts, ("file", None, "deepcopy", "pickle"), strict=True):  # None: two calls in a row
            original, alone = detoured, contextlib.nullcontext()
            if how:
                detoured, alone = COPIES[how](original, tmp_path / "model.larank"), unchanged(original, some)
            with alone:
                for each_ in (straight, detoured):
                    each_.partial_fit(part(some, rows), part(labels, rows))
            assert_same_model(detoured, straight)
        assert_valid(detoured, some, labels)
        if case.has_kernel and begin == "partial_fit":
            whole = case.make(**parameters).partial_fit(some, labels, **known)
            assert_same_model(straight, whole, but=ESTIMATED)


@pytest.mark.filterwarnings("ignore")
@kernel_streams
def test_a_damaged_state_of_a_stream_is_refused_or_harmless(case):
    """Whatever its bytes: a model file may come from anywhere."""
    random = np.random.RandomState(0)
    for kernel in ("laplacian", "linear"):
        model = case.make(kernel=kernel).partial_fit(X[:40], y[:40])
        saved = model._snapshot
        for damage in range(60 if checks.IS_NIGHTLY else 20):
            other, state = copy.deepcopy(model), saved.copy()
            state[random.randint(len(state), size=1 + damage % 3)] = random.choice([0, 1, 127, 128, 255])
            other._snapshot = state[: random.randint(len(state))] if damage % 10 == 9 else state
            try:
                other.partial_fit(X[40:], y[40:])
            except ValueError:
                assert_same_model(other, model)
                continue
            with contextlib.suppress(ValueError):  # its coefficients may be so large that scores are not finite
                assert np.isfinite(other.decision_function(X)).all()
                assert set(other.predict(X)) <= set(other.classes_)


@kernel_streams
def test_going_on_with_a_precomputed_kernel_needs_the_stream(case):
    for model in (case.make(kernel="precomputed").fit(K, y), case.make(kernel="precomputed").partial_fit(K, y)):
        for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert not hasattr(other, "partial_fit")
            with pytest.raises(AttributeError, match="has no partial_fit any more: with kernel='precomputed'"):
                other.partial_fit(np.hstack([K, K]), y)


@every_estimator
def test_a_fit_forgets_what_was_before(case):
    some, labels = case.data
    half = np.arange(len(labels) // 2)
    model = case.make().fit(some, labels)
    again = case.make().fit(part(some, half), part(labels, half)).fit(some, labels)
    assert_same_model(again, model)
    checks.assert_same_result(again, model)
    if case.streams:
        assert_same_model(case.make().partial_fit(some, labels).fit(some, labels), model)
    if case.has_kernel:
        other, model = case.make(kernel="linear").fit(X, y), case.make(kernel="rbf").fit(X, y)
        assert_same_model(other.set_params(**model.get_params(deep=False)).fit(X, y), model)
        case.set(model, kernel="precomputed").fit(K, y)
        assert not hasattr(chosen(model), "gamma_")
        assert not hasattr(chosen(model), "support_vectors_")


# Layouts


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@readers(lambda case: case.takes_matrices)
@pytest.mark.filterwarnings("ignore:X .* feature names")
def test_the_layout_of_the_examples_does_not_change_the_model(case, dtype):
    given = X.astype(dtype)
    for parameters, _ in list(case.kernels.values())[: 1 if dtype == np.float32 else 2]:
        plain = case.make(**parameters).fit(given, y)
        for name, layout in checks.layouts().items():
            some = layout(given)
            if name in ("list", "polars", "other byte order") and dtype == np.float32:
                continue  # scikit-learn makes double precision of these
            model = case.make(**parameters).fit(some, y)
            assert_same_model(model, plain, but=("feature_names_in_",))
            np.testing.assert_array_equal(scores(model, some), scores(plain, given))
            np.testing.assert_array_equal(np.asarray(some), given)
    stored = sparse.csr_matrix(given)
    plain = case.make().fit(stored, y)
    for layout in list(checks.SPARSE_LAYOUTS.values())[dtype == np.float64 :: 2]:
        some, kept = layout(given), layout(given)
        assert_same_model(case.make().fit(some, y), plain)
        assert type(some) is type(kept)
        for name in {"data", "indices", "indptr"} & vars(kept).keys():
            np.testing.assert_array_equal(getattr(some, name), getattr(kept, name))
        np.testing.assert_allclose(scores(plain, some), scores(plain, stored), rtol=1e-4)


@readers(lambda case: case.takes_matrices)
def test_numbers_of_other_types_are_taken_as_floats(case):
    for some in (np.round(3 * X).astype(int), X > 0, X.astype(np.float16)):
        assert_same_model(case.make().fit(some, y), case.make().fit(some.astype(float), y))


@readers(lambda case: case.takes_matrices)
def test_examples_may_be_mapped_from_a_file_and_stay_as_they_are(case, tmp_path):
    for parameters, some in case.kernels.values():
        stored = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=some.shape)
        stored[:] = some
        stored.flush()
        mapped = np.memmap(tmp_path / "X", dtype=np.float64, mode="r", shape=some.shape)
        assert_same_model(case.make(**parameters).fit(mapped, y), case.make(**parameters).fit(some, y))
        np.testing.assert_array_equal(mapped, some)


@classifiers
def test_sparse_examples_and_single_precision_make_nearly_the_same_model(case):
    for parameters, _ in list(case.kernels.values())[: 1 if case.estimator.__name__ == "HullerClassifier" else 2]:
        plain = case.converged(**parameters).fit(X, y)
        single = case.make(**parameters).fit(X.astype(np.float32), y)
        if case.has_kernel and case.has_support:
            assert single.support_vectors_.dtype == np.float32
        model = case.converged(**parameters).fit(sparse.csr_matrix(X), y)
        if chosen(plain).result_.has_objective and parameters.get("kernel") != "linear":
            assert chosen(model).result_.dual == pytest.approx(chosen(plain).result_.dual, rel=1e-4)
        for form in (np.asarray, sparse.csr_matrix):
            np.testing.assert_allclose(
                plain.decision_function(form(X)), plain.decision_function(X), atol=1e-9 * np.abs(scores(plain, X)).max()
            )
        assert np.mean(model.predict(X) == plain.predict(X)) > 0.9
        assert np.mean(single.predict(X) == case.make(**parameters).fit(X, y).predict(X)) > 0.8


@of_support
def test_support_vectors_are_the_examples_and_scores_the_sum_over_them(case):
    ways = ((np.asarray, y, 1e-9), (sparse.csr_matrix, y, 1e-9), (np.float32, y % 2, 1e-5))
    for (form, labels, close), kernel in product(ways, ("rbf", "linear")):
        some = form(X)
        model = case.make_of_coefficients(kernel=kernel).fit(some, labels)
        assert sparse.issparse(model.support_vectors_) == sparse.issparse(some)
        kept, found = checks.plain(model.support_vectors_), model.decision_function(some)
        np.testing.assert_array_equal(kept, checks.plain(some)[model.support_])
        values = gram(X, kept) if kernel == "rbf" else X @ kept.T
        if len(model.classes_) == 3:
            assert_near(found, scores_of_sum(model, values), close)
        assert hasattr(model, "coef_") == (kernel == "linear")
        if kernel == "linear":
            for each_ in (model, case.make(kernel=kernel).fit(some, labels)):  # of averaged weights, too
                f = checks.plain(some) @ each_.coef_.T + getattr(each_, "intercept_", 0.0)
                assert_near(each_.decision_function(some).ravel(), f.ravel(), max(close, 1e-5))
            if len(model.classes_) == 3:
                assert_near(model.coef_, getattr(model, "scale_", 1.0) * expansion(model).T @ kept, close)
    model = case.make(kernel="precomputed").fit(K, y)
    assert_near(model.decision_function(K), scores_of_sum(model, K[:, model.support_]), 1e-9)


def scores_of_sum(model, values):
    """Return the scores of the examples that have these kernel values with the support vectors."""
    return getattr(model, "scale_", 1.0) * values @ expansion(model) + getattr(model, "intercept_", 0.0)


@kernel_machines
def test_a_callable_kernel_equals_the_matrix_it_computes(case):
    once = {"max_iter": 1} if case.streams else {}
    by_matrix = case.make(kernel="precomputed", **once).fit(K, y)
    by_call = case.make(kernel=lambda A, B: gram(A, B), **once).fit(X, y)
    np.testing.assert_array_equal(chosen(by_call).support_, chosen(by_matrix).support_)
    close = 0.05 if str(case) == "LaRankClassifier-intercept" else 1e-3 if case.converges else 1e-12
    np.testing.assert_allclose(by_call.decision_function(X), by_matrix.decision_function(K), atol=close)


def letters_in_common(A, B):
    return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float)


@readers(lambda case: case.has_kernel and case.is_classifier)
@pytest.mark.parametrize(
    "objects",
    [
        ["ant", "bee", "ox", "dog"],
        [{"a", "n"}, {"b", "e"}, {"o", "x"}, {"d", "g"}],
        [{"a": 1}, {"b": 1}, {"o": 1}, {"d": 1}],
        [[1, 2], [3], [4, 5], [6]],
        [("a", "n"), ("b",), ("o", "x"), ("d", "g")],
    ],
    ids=["words", "sets", "dicts", "lists", "tuples"],
)
def test_a_callable_kernel_takes_any_objects(case, objects):
    labels = np.arange(40) % 4
    some = objects * 10
    kinds = [list, tuple, np.array, partial(np.array, dtype=object)] if isinstance(objects[0], str) else [list]
    models = [case.make(kernel=letters_in_common).fit(kind(some), labels) for kind in kinds]
    for kind, model in zip(kinds, models, strict=True):
        assert model.score(kind(some), labels) == 1.0
        kept = chosen(model)
        assert list(kept.support_vectors_) == [some[i] for i in kept.support_]
        np.testing.assert_array_equal(expansion(kept), expansion(chosen(models[0])))


# Labels and shapes

LABELS = [
    np.array(["ham", "spam", "eggs"]),
    np.array(["ham", "spam", "eggs"], dtype=object),
    np.array([0.0, 1.0, 2.0]),
    np.array([-5, 1000, 7]),
    np.array([2**53, 2**53 + 1, 2**53 + 2]),
    np.array([3, 1, 2], dtype=np.uint8),
    np.array([False, True]),
]


@readers(lambda case: case.is_classifier)
def test_labels_may_be_anything_that_can_be_told_apart(case):
    for labels, (call, train) in product(LABELS, case.calls()):
        order, which = np.argsort(np.argsort(labels)), y % len(labels)
        if call != "path":
            plain, model = train(case.make(), X, order[which]), train(case.make(), X, labels[which])
            np.testing.assert_array_equal(model.classes_, np.unique(labels))
            assert model.classes_.dtype == labels.dtype
            np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
            np.testing.assert_array_equal(model.predict(X), np.sort(labels)[plain.predict(X)])
        if call == "partial_fit":
            model = case.make().partial_fit(X[:30], labels[which[:30]]).partial_fit(X[30:], labels[which[30:]])
            assert model.classes_.dtype == labels.dtype
            assert model.score(X, labels[which]) > 0.5


@pytest.mark.parametrize("classes", [2, 3])
@classifiers
def test_shapes_are_those_documented(case, classes):
    keep = y < classes
    for parameters, some in case.kernels.values():
        some = some[np.ix_(keep, keep)] if some is K else some[keep]
        model = case.make(**parameters).fit(some, names[y[keep]])
        assert_valid(model, some, y[keep])
        assert model.decision_function(some[:9]).dtype == np.float64
        if case.has_support:
            rows = len(model.support_) if case.has_kernel else keep.sum()
            assert expansion(model).shape == (rows, 1 if classes == 2 and case.has_one_function else classes)
            assert len(set(model.support_)) == len(model.support_)
        assert isinstance(chosen(model).n_iter_, int)
        assert model.n_features_in_ == some.shape[1]
        rows = 1 if classes == 2 else classes
        for name in ("intercept_", "delta_", "bound_", "gap_"):
            assert getattr(model, name, np.zeros(rows)).shape == (rows,)
        if "coef_" in vars(model):
            assert model.coef_.shape == (rows, 4)
        if hasattr(model, "support_costs_"):
            assert model.support_costs_.shape == model.support_.shape


@readers(lambda case: case.has_kernel)
@pytest.mark.parametrize("kernel", [*kernel_names(), rbf_kernel])
def test_tags_say_whether_sparse_examples_are_taken(case, kernel):
    model = case.make(kernel=kernel)
    positive = np.abs(X)
    examples = sparse.csr_matrix(positive @ positive.T if kernel == "precomputed" else positive)
    if get_tags(model).input_tags.sparse:
        fit_or_indefinite(model, examples)
    else:
        with pytest.raises((TypeError, ValueError), match=r"(?i)sparse|callable"):
            model.fit(examples, y % 2)


@readers(lambda case: case.has_kernel and case.is_classifier)
def test_a_callable_kernel_is_handed_the_sparse_rows_it_is_given(case):
    seen = set()

    def kernel(A, B):
        seen.update((type(A), type(B)))
        return A @ B.T  # sparse, too

    rows = sparse.csr_matrix(np.round(X))  # sums of whole numbers are exact in any order
    model = case.make(kernel=kernel).fit(rows, y)
    assert sparse.issparse(chosen(model).support_vectors_)
    assert seen == {sparse.csr_matrix}
    twin = case.make(kernel=lambda A, B: A @ B.T).fit(rows.toarray(), y)
    np.testing.assert_array_equal(scores(model, rows), scores(twin, rows.toarray()))
    np.testing.assert_array_equal(scores(model, rows.toarray()), scores(model, rows))
    if case.streams:
        model = case.make(kernel=kernel).partial_fit(rows[:30], y[:30]).partial_fit(rows[30:].toarray(), y[30:])
        assert sparse.issparse(model.support_vectors_)
        assert seen == {sparse.csr_matrix}


def fit_or_indefinite(model, examples):
    """Not all parameters of "sigmoid" make a kernel, and what is none has no features."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(examples, y % 2)
        except ValueError as error:
            assert "positive semi-definite" in str(error)  # noqa: PT017


# Hard margins

HARD = ("LaRankClassifier", "LaSVMClassifier", "LinearMulticlassSVC", "MulticlassSVC")
hard_machines = those(lambda case: case.estimator.__name__ in HARD and case.variant != "published")


def hard(case, **parameters):
    """Training to a small gap."""
    solver = {"solver": larank.LaSVM(tau=1e-5)} if case.estimator is larank.LaSVMClassifier else {}
    return case.make(C=np.inf, tol=1e-4, **solver, **parameters)


@hard_machines
@pytest.mark.parametrize("classes", [2, 3])
def test_an_infinite_cost_is_that_of_hard_margins(case, classes):
    """The objective is that of a cost which no coefficient reaches, by a general solver, and no margin falls short."""
    far = X + 6 * np.eye(3, 4)[y]
    labels = y % classes if classes == 3 else (y > 0).astype(int)
    some, kernel = (K, {"kernel": "precomputed"}) if case.has_kernel else (far, {})
    model = hard(case, **kernel).fit(some, labels)
    if case.has_kernel:
        optimum = case.objective.optimum(K, labels, np.full(60, 1e4))
    else:
        Z = optima.with_constant(far, 1.0)
        optimum = optima.optimum(model.formulation, Z, labels, np.full(60, 1e4), classes)[1]
    assert model.result_.status == "converged"
    assert model.result_.primal == pytest.approx(optimum, rel=1e-4)
    assert model.result_.dual <= optimum * (1 + 1e-6)
    assert model.score(some, labels) == 1


@those(lambda case: case.estimator.__name__ in HARD and case.has_kernel and not case.variant)
def test_margins_are_hard_at_every_scale_of_the_features(case):
    far, labels = X + 6 * np.eye(3, 4)[y], (y > 0).astype(int)
    usual = hard(case, kernel="linear").fit(far, labels)
    for scale in (1e-4, 1e-6):
        model = hard(case, kernel="linear").fit(scale * far, labels)
        assert model.result_.status == "converged"
        assert scale**2 * model.result_.primal == pytest.approx(usual.result_.primal, rel=1e-3)
    if case.streams:
        on_a_stream = case.make(kernel="linear", C=np.inf).partial_fit(1e-6 * far, labels)
        assert on_a_stream.score(1e-6 * far, labels) == 1


@hard_machines
def test_hard_margins_that_nothing_keeps_end_with_a_warning_and_no_bound_above(case):
    twice, labels = np.vstack([X, X]), np.r_[y, (y + 1) % 3]  # every example with two labels
    for stop in [{}, {"tol": 1e-3, "max_iter": 3}] if case.streams else [{"max_iter": 3}]:
        with pytest.warns(TrainingWarning, match="does not separate the classes as C=inf demands: .* use a finite C"):
            model = case.make(C=np.inf, **stop).fit(twice, labels)
        assert model.result_.status != "converged"
        assert model.result_.primal == model.result_.gap == np.inf
        assert np.isfinite(model.result_.dual)
        assert np.isfinite(model.decision_function(X)).all()


@hard_machines
def test_weights_of_zero_leave_examples_out_of_hard_margins(case):
    twice, labels = np.vstack([X, X]), np.r_[y, (y + 1) % 3]
    weights = np.r_[np.full(60, 0.5), np.zeros(60)]
    if not case.has_kernel:
        twice[:60] += 6 * np.eye(3, 4)[y]
    model = hard(case).fit(twice, labels, sample_weight=weights)
    assert model.score(twice[:60], y) == 1
    assert np.isfinite(model.result_.primal)


def test_hard_margins_need_double_precision_and_an_estimator_that_has_them():
    single = r"C=inf needs X in float64, .* got float32"
    refuses(single, larank.LinearMulticlassSVC(C=np.inf).fit, X.astype(np.float32), y)
    for kind in (larank.AmbiguousClassifier, larank.PrimalMulticlassSVC, larank.TrackingSVC):
        refuses("C must be a finite number > 0; got inf. Use a large number", kind(C=np.inf).fit, X, y)


# Streams


@streams
@pytest.mark.parametrize("cuts", [(), (1,), (25, 26), (3, 4, 5, 20, 38), tuple(range(2, 40, 2))], ids=str)
def test_a_stream_in_any_parts_makes_the_model_of_one_call(case, cuts):
    """To the last bit: with a precomputed kernel blocks hold the same values however they are cut."""
    some, labels = (K[:40, :40], y[:40]) if case.has_kernel else (part(case.data[0], range(40)), case.data[1][:40])
    kernel = {"kernel": "precomputed"} if case.has_kernel else {}
    labels = labels % 2 if case.has_kernel and len(cuts) % 2 else labels  # two classes, or more
    whole, model = case.make(**kernel).partial_fit(some, labels), case.make(**kernel)
    for rows in splits(40, *cuts):
        block = part(some, rows)[:, : rows[-1] + 1] if case.has_kernel else part(some, rows)
        model.partial_fit(block, part(labels, rows), **announced(case, labels))
    assert_same_model(model, whole, but=("n_features_in_", *ESTIMATED), atol=None if case.has_kernel else 1e-12)
    assert model.result_.iterations == 1
    if case.has_kernel and case.objective:
        assert model.result_.operations == whole.result_.operations
        assert model.result_.argmax_calls == whole.result_.argmax_calls


@those(lambda case: case.streams and case.estimator is not larank.ConceptLabeler)  # whose steps become smaller in `fit`
def test_fit_makes_the_model_of_a_stream_in_the_order_that_its_seed_draws(case):
    some, labels = (K, y) if case.has_kernel else case.data
    parameters = {"kernel": "precomputed"} if case.has_kernel else {}
    seeds = np.random.RandomState(0)
    seeds.randint(2**31 - 1)
    order = np.random.RandomState(seeds.randint(2**31 - 1)).permutation(len(labels))
    uncertified = {}
    if case.takes("shuffle"):  # it draws another order, and a certificate may make the weights smaller
        order, parameters, uncertified = np.arange(len(labels)), {"shuffle": False}, {"certify": False}
    model = case.make(max_iter=1, **parameters).fit(some, labels, **uncertified)
    rows = part(some, order)[:, order] if case.has_kernel else part(some, order)
    stream = case.make(**parameters).partial_fit(rows, part(labels, order), **announced(case, labels))
    found = scores(stream, some[:, order] if case.has_kernel else some)
    np.testing.assert_array_equal(np.asarray(found, object), np.asarray(scores(model, some), object))


def keeps_weights(case):
    """Whether the linear kernel has a machine of its own, without kernel values."""
    return case.estimator in (larank.AmbiguousClassifier, larank.LaRankClassifier)


def announced(case, labels):
    """Those with one score for two classes and one each for more, or that count wrong ones, must know what comes."""
    names = ("Ambiguous", "Kernel", "LinearSGD")
    return {"classes": np.unique(labels)} if case.estimator.__name__.startswith(names) else {}


# A certificate on the way bounds less tightly than one from scratch.
ESTIMATED = ("gap_", "bound_", "regret_")


@kernel_streams
def test_the_size_of_batches_and_threads_do_not_change_the_model(case, monkeypatch):
    for labels, ways in ((y, ((1, 1), (64, 2))), (y % 2, ((4, 2), (16, 1)))):
        plain = case.make(kernel="precomputed", max_iter=2).fit(K, labels)
        for size, jobs in ways:
            with monkeypatch.context() as patched:
                patched.setattr(OnlineClassifier, "_BATCH_SIZE", size)
                model = case.make(kernel="precomputed", max_iter=2, n_jobs=jobs).fit(K, labels)
            assert_same_model(model, plain)
            assert model.result_.dual == pytest.approx(plain.result_.dual, rel=1e-12, nan_ok=True)


@those(lambda case: case.takes("n_jobs") and case.takes_matrices)
def test_a_worker_process_fits_and_predicts_without_a_warning(case, monkeypatch):
    model = case.make(n_jobs=2).fit(X, y)
    # Processes of multiprocessing.Pool are daemons, where joblib warns that loky starts no processes.
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted = model.predict(X) if is_classifier(model) else model.transform(X)
        again = case.make(n_jobs=2).fit(X, y)
        np.testing.assert_array_equal(again.predict(X) if is_classifier(model) else again.transform(X), predicted)


@kernel_streams
def test_parts_of_a_dense_stream_make_a_model_that_is_as_good(case):
    """Their kernel values may differ in the last digit, which in one pass of LaRank decides what comes next."""
    random = np.random.default_rng(0)
    labels = np.arange(300) % 3
    examples = random.normal(size=(300, 30)) + 1.2 * random.normal(size=(3, 30))[labels]
    whole = case.make(gamma=0.02).partial_fit(examples, labels)
    model = case.make(gamma=0.02)
    for rows in splits(300, 7, 100, 101, 250):
        model.partial_fit(examples[rows], labels[rows], **announced(case, labels))
    assert abs(model.score(examples, labels) - whole.score(examples, labels)) < 0.05
    if case.objective:
        assert model.result_.dual == pytest.approx(whole.result_.dual, rel=0.05)


@kernel_streams
def test_parts_of_a_stream_of_features_make_the_same_model_up_to_rounding(case):
    for kernel in ("rbf", "linear"):
        for form in (np.asarray, sparse.csr_matrix):
            whole = case.make(kernel=kernel).partial_fit(form(X), names[y])
            model = case.make(kernel=kernel)
            # One pass of LaRank is chaotic: the last digit of a kernel value decides what comes next.
            for rows in splits(60) if case.estimator.__name__ == "LaRankClassifier" else splits(60, 7, 30, 55):
                model.partial_fit(form(X[rows]), names[y[rows]], **announced(case, names))
            np.testing.assert_array_equal(np.sort(model.support_), np.sort(whole.support_))
            assert_near(model.decision_function(X), whole.decision_function(X), 1e-8)


@kernel_streams
def test_parts_of_a_stream_may_differ_in_layout_and_precision(case):
    wide = checks.SPARSE_LAYOUTS["csr of 64 bit"]
    for first, then in (
        (np.asarray, sparse.csr_matrix),
        (sparse.csr_matrix, np.asarray),
        (np.float32, np.float64),
        (np.float64, np.float32),
        (wide, sparse.csr_matrix),
    ):
        for kernel in ("rbf", "linear"):
            model = case.make_of_coefficients(kernel=kernel)
            for rows, form in zip(splits(60, 15, 30, 45), (first, then, first, then), strict=True):
                model.partial_fit(form(X[rows]), y[rows])
            values = K if kernel == "rbf" else X @ X.T
            f = values @ checks.coefficients(model, 60) + getattr(model, "intercept_", 0.0)
            assert_near(model.decision_function(X), f, 1e-4)


@classifier_streams
def test_a_first_part_may_hold_one_class_and_others_join_one_after_another_in_copies_too(case, monkeypatch):
    monkeypatch.setattr(OnlineClassifier, "_BATCH_SIZE", 20)
    order = np.argsort(2 - y, kind="stable")
    model = case.make()
    for seen, rows in enumerate(splits(60, 20, 40), start=1):
        model = pickle.loads(pickle.dumps(model)).partial_fit(X[order[rows]], names[y[order[rows]]])
        np.testing.assert_array_equal(model.classes_, np.unique(names[y[order[: rows[-1] + 1]]]))
        if seen == 1:
            np.testing.assert_array_equal(model.predict(X), np.full(60, names[2]))
        else:
            assert_valid(model, X, y)
    if not announced(case, names):
        whole = case.make().partial_fit(X[order], names[y[order]])
        assert_near(model.decision_function(X), whole.decision_function(X), 1e-8)


@classifier_streams
def test_announced_classes_have_a_column_before_they_come(case):
    two = y < 2
    model = case.make().partial_fit(X[two], y[two], classes=[0, 1, 2, 3])
    assert model.decision_function(X).shape == (60, 4)
    assert_valid(model, X, y)
    if case.variant != "olbfgs":  # whose steps have not settled
        assert set(model.predict(X[two])) <= {0, 1}
    same = case.make().partial_fit(X[two], y[two])
    if announced(case, y):
        return
    np.testing.assert_array_equal(np.sort(model.support_), np.sort(same.support_))
    for each_ in (model, same):
        each_.partial_fit(X[~two], y[~two], classes=[0, 1, 2, 3])
    assert_near(model.decision_function(X), same.decision_function(X), 1e-8)


@classifier_streams
def test_labels_keep_their_type_through_a_stream(case):
    model = case.make().partial_fit(X, y)
    message = "y must hold labels of the same type as those of the calls before, int64"
    with unchanged(model, X), pytest.raises(ValueError, match=message):
        model.partial_fit(X, names[y])
    with pytest.raises(ValueError, match=r"y must hold labels of the same type as those in classes, <U1"):
        case.make().partial_fit(X, y, classes=["a", "b"])
    assert model.partial_fit(X, y + 1.0).classes_.tolist() == [0, 1, 2, 3]


@classifier_streams
def test_partial_fit_makes_one_pass_whatever_max_iter_is(case):
    model = case.make(max_iter=3).partial_fit(X, y)
    assert model.result_.iterations == 1
    assert_same_model(model, case.make().partial_fit(X, y))


# Weights and seeds


@those(lambda case: case.takes("random_state"))
def test_the_seed_decides(case):
    some, labels = case.data
    one, same, other = (case.make(random_state=seed).fit(some, labels) for seed in (1, 1, 2))
    assert_same_model(one, same)
    checks.assert_same_result(one, same)
    if case.streams:
        with pytest.raises(AssertionError):
            assert_same_model(one, other)


@those(lambda case: case.weighs and case.is_classifier)
def test_an_example_without_weight_is_left_out(case):
    weight = (np.arange(60) % 4 > 0).astype(float)
    model = case.converged().fit(X, y, weight)
    assert not set(getattr(chosen(model), "support_", ())) & set(np.flatnonzero(weight == 0))
    fewer = case.converged().fit(X[weight > 0], y[weight > 0])
    if not case.is_search and model.result_.has_objective:
        assert model.result_.dual == pytest.approx(fewer.result_.dual, rel=1e-4)
        f = fewer.decision_function(X)
        np.testing.assert_allclose(model.decision_function(X), f, atol=0.02 * np.abs(f).max())
    if case.streams:
        model = case.make().partial_fit(X, y, sample_weight=weight)
        fewer = case.make().partial_fit(X[weight > 0], y[weight > 0])
        np.testing.assert_array_equal(model.decision_function(X), fewer.decision_function(X))


@those(lambda case: case.takes("class_weight"))
def test_weights_of_classes_and_examples_multiply(case):
    weight, factors = np.random.default_rng(0).uniform(0.5, 2, 60), np.array([2, 1, 0.5])
    labels = np.where(y == 2, 0, y)
    if case.variant != "one-vs-rest":  # where the weight of one of several classes acts in its own problem
        by_class = case.make(class_weight=dict(zip(names, factors, strict=True))).fit(X, names[y], weight)
        assert_same_model(by_class, case.make().fit(X, names[y], weight * factors[y]), but=OF_HELD_OUT)
    by_class = case.make(class_weight=dict(enumerate(factors[:2]))).fit(X, labels, weight)
    assert_same_model(by_class, case.make().fit(X, labels, weight * factors[labels]), but=OF_HELD_OUT)
    balanced = case.make(class_weight="balanced").fit(X, labels)
    counted = case.make().fit(X, labels, (60 / (2 * np.bincount(labels)))[labels])
    assert_same_model(balanced, counted, but=OF_HELD_OUT)


# Weights of examples count in these, those of classes do not.
OF_HELD_OUT = ("scores_", "best_score_")


@those(lambda case: case.takes("class_weight", "kernel") and case.streams)
def test_the_weights_of_classes_to_come_may_be_given(case):
    order = np.argsort(y, kind="stable")
    weights = {0: 2.0, 2: 0.5}
    values = np.ascontiguousarray(K[np.ix_(order, order)])
    whole = case.make(kernel="precomputed", class_weight=weights).partial_fit(values, y[order])
    model = case.make(kernel="precomputed", class_weight=weights)
    for rows in splits(60, 30):
        model.partial_fit(values[rows], y[order[rows]], **announced(case, y))
    assert_same_model(model, whole, but=ESTIMATED)


# Certificates


@those(lambda case: case.objective)
def test_the_certificate_is_what_the_formulas_say(case):
    weights = np.random.default_rng(1).choice([0.5, 1.0, 3.0], 60) if case.weighs else np.ones(60)
    given = {"sample_weight": weights} if case.weighs else {}
    for C in (0.05, 1.0, 30.0) if case.takes("C") and case.is_classifier else (1.0,):
        parameters = {"C": C} if case.takes("C") else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrainingWarning)
            models = [case.make(**parameters), case.converged(**parameters)]
            for model in models:
                model.fit(X, y, **given)
                assert model.result_.exact
                assert_valid(model, X, y)
                assert_certified(case, model, y, C * weights if case.weighs else weights, close=1e-7)
    if case.has_kernel:
        model = case.make_of_coefficients(kernel="linear").fit(X, y)
        assert_certified(case, model, y, values=X @ X.T, close=1e-7)
        single = case.make().fit(X.astype(np.float32), y)
        assert_certified(case, single, y, values=gram(X.astype(np.float32).astype(float)), close=1e-4)


@those(lambda case: case.objective)
def test_the_optimum_lies_between_dual_and_primal(case):
    for n in (9, 12):
        rows = np.arange(n)
        labels = y[rows]
        values = gram(X[rows])
        best = case.objective.optimum(values, labels, np.ones(n))
        for model in (case.make(), case.converged()):
            model.fit(X[rows], labels)
            assert model.result_.dual <= best * (1 + 1e-6)
            assert model.result_.primal >= best * (1 - 1e-6)
        assert model.result_.relative_gap < 1e-3


@those(lambda case: not case.is_transformer and not case.is_search)
def test_the_history_is_ordered_and_ends_at_the_result(case):
    model = case.make().fit(*case.data)
    result, history = model.result_, model.result_.history
    for name in ("seconds", "iterations", "kernel_values"):
        values = [getattr(point, name) for point in history]
        assert values == sorted(values)
    last = history[-1]
    if result.has_objective:
        assert (last.primal, last.dual) == (result.primal, result.dual)
        assert last.exact == result.exact
        assert all(point.gap >= -1e-9 * abs(point.primal) for point in history if point.exact)
        # The dual is estimated, or comes from a point of the primal.
        if case.estimator.__name__ not in ("HullerClassifier", "PrimalMulticlassSVC", "TrackingSVC"):
            duals = np.array([point.dual for point in history])
            assert (np.diff(duals) >= -1e-9 * np.abs(duals).max()).all()
    assert last.iterations == result.iterations
    assert getattr(model, "n_iter_", result.iterations) == np.ceil(result.iterations)
    if case.has_support:
        assert result.support_patterns == len(model.support_)
    if case.has_kernel and case.has_support:
        assert result.support_vectors == np.count_nonzero(expansion(model))
        assert result.kernel_values > 0


@those(lambda case: case.passes("certify") and (case.objective or not case.has_kernel))
def test_without_a_certificate_the_result_says_so(case):
    exact, estimate = case.make().fit(*case.data), case.make().fit(*case.data, certify=False)
    # The certificate of the Huller computes the distance of the points again, and the model is scaled by that.
    is_same = case.has_kernel and case.estimator is not larank.HullerClassifier
    assert_same_model(exact, estimate, but=ESTIMATED, atol=None if is_same else 1e-12)
    assert exact.result_.exact
    assert not estimate.result_.exact
    assert not any(point.exact for point in estimate.result_.history)
    assert estimate.result_.gap >= 0
    if case.estimator.__name__ not in ("HullerClassifier", "TrackingSVC", "LinearSGDClassifier"):
        assert estimate.result_.dual == pytest.approx(exact.result_.dual, rel=1e-6)
    assert not case.make().partial_fit(*case.data).result_.exact


@those(lambda case: case.passes("validation"))
def test_looks_at_validation_examples_do_not_change_the_model(case):
    plain = case.make(max_iter=3).fit(X[:40], y[:40])
    model = case.make(max_iter=3).fit(X[:40], y[:40], validation=(X[40:], y[40:]))
    assert_same_model(model, plain)
    errors = [point.error for point in model.result_.history if point.error is not None]
    assert len(errors) >= 3
    assert errors[-1] == pytest.approx(np.mean(model.predict(X[40:]) != y[40:]))


# Early ends


@those(lambda case: not case.is_transformer and not case.is_search)
def test_a_time_limit_leaves_a_valid_model(case):
    some, labels = case.data
    for ordered in (False, True):
        if ordered and case.is_classifier:  # most classes have not been seen when it ends
            order = np.argsort(labels, kind="stable")
            some, labels = some[order], labels[order]
        model = case.endless(time_limit=1e-9)
        with pytest.warns(TrainingWarning, match=r"after time_limit=1e-09 seconds.*the model is\s+valid") as caught:
            model.fit(some, labels)
        assert caught[0].filename == __file__
        if not model.result_.has_objective:
            assert str(caught[0].message).endswith("the model is valid")
        assert model.result_.status == "time_limit"
        assert_valid(model, some, labels)
        if case.is_classifier and case.has_kernel and case.estimator.__name__ not in OF_CLASSES_MET:
            assert_certified(case, model, labels, costs_of(model), values=gram(some), close=1e-7)
    if case.streams:
        model.set_params(**case.make().get_params()).partial_fit(some, labels)
        assert_valid(model, some, labels)


# They certify the problems of the classes they have met, others those of all.
OF_CLASSES_MET = ("HullerClassifier", "TrackingSVC")


def costs_of(model):
    return getattr(model, "C", getattr(model, "C_", 1.0))


@pytest.mark.parametrize("raises", [False, True])
@those(lambda case: case.can_be_endless)
def test_ctrl_c_ends_training_with_a_valid_model_and_raises_if_it_is_to(case, raises):
    model = case.endless(time_limit=60.0)
    message = "ended by an interrupt.*the model is valid"
    ended = pytest.raises(KeyboardInterrupt, match=message) if raises else pytest.warns(TrainingWarning, match=message)
    way = larank.on_interrupt("raise") if raises else contextlib.nullcontext()
    with checks.interrupt_when_training(), way, ended:
        model.fit(*case.data)
    assert model.result_.status == "interrupted"
    assert_valid(model, *case.data)
    if case.is_classifier and case.estimator.__name__ not in OF_CLASSES_MET:
        assert_certified(case, model, y, costs_of(model), close=1e-6)


@those(lambda case: case.can_be_endless)
def test_a_limit_that_leaves_no_time_for_a_certificate_leaves_a_valid_model(case, monkeypatch):
    monkeypatch.setattr("larank.training.loop._Run.seconds_left", lambda run: -1.0)
    model = case.endless(time_limit=1e-9)
    with pytest.warns(TrainingWarning, match="after time_limit=1e-09 seconds.*the model is valid"):
        model.fit(*case.data)
    assert not model.result_.exact
    assert_valid(model, *case.data)


@of_support
def test_ctrl_c_in_a_kernel_ends_training_with_a_valid_model(case, monkeypatch):
    monkeypatch.setattr(OnlineClassifier, "_BATCH_SIZE", 8)
    for call, train in case.calls():
        if call == "path":
            continue
        kernel = checks.Interrupting(4, checks.ctrl_c)  # the first ones come before training
        model = case.make(kernel=kernel)
        with pytest.warns(TrainingWarning, match="ended by an interrupt"):
            train(model, X, y)
        assert model.result_.status == "interrupted"
        assert_valid(model, X, y)
        if call == "fit" and case.estimator.__name__ not in OF_CLASSES_MET:
            assert_certified(case, model, y, close=1e-7)
        if case.streams:
            assert_valid(model.partial_fit(X, y), X, y)


@those(lambda case: case.objective)
def test_max_iter_ends_with_a_warning_that_gives_the_gap(case):
    if case.variant == "published":
        model = case.make(solver=larank.Published(epsilon=1e-9), max_iter=2, C=30.0)
    else:
        model = case.make(tol=1e-12, max_iter=2, **({"C": 30.0} if case.takes("C") else {}))
    with pytest.warns(TrainingWarning, match=r"by max_iter=2, after.*its relative duality gap is") as caught:
        model.fit(*case.data)
    assert caught[0].filename == __file__
    assert f"{model.result_.relative_gap:.2g}" in str(caught[0].message)
    assert model.result_.status == "max_iter"
    assert 2 <= model.result_.iterations <= 4
    assert model.n_iter_ == np.ceil(model.result_.iterations)
    assert_valid(model, *case.data)


# Memory


def tight(case, some, labels, limit=1000, **parameters):
    """Return a model with as little memory as training just works with: the errors say how much is needed so far."""
    while True:
        try:
            return case.make(memory_limit=limit, **parameters).fit(some, labels)
        except (ValueError, TrainingWarning) as error:  # while it trains, or finishes
            said, got = re.search(r"memory_limit must be at least (\d+) bytes .*, got (\d+)", str(error)).groups()
            assert int(got) == limit < int(said)
            limit = int(1.2 * int(said))


@kernel_machines
def test_training_leaves_nothing_in_memory_but_the_model(case, monkeypatch):
    made = []
    for kind in (Provider, StreamTraining, ActiveSetTraining):

        def watched(self, *arguments, _begin=kind.__init__, **options):
            made.append(weakref.ref(self))
            _begin(self, *arguments, **options)

        monkeypatch.setattr(kind, "__init__", watched)
    gc.disable()  # what a collection of cycles must free takes memory until then
    try:
        for _, train in case.calls():
            train(case.make(), *case.data)
        assert made
        assert not [held for held in (each_() for each_ in made) if held is not None]
    finally:
        gc.enable()


@of_kernels
def test_a_memory_error_leaves_no_thread_and_no_limit_behind(case):
    some, labels = checks.clouds(200, 4)

    def blas():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before, threads = blas(), threading.active_count()
    for limit in (5_000, 20_000, 60_000):
        with contextlib.suppress(ValueError, TrainingWarning):
            case.make(memory_limit=limit, n_jobs=2).fit(some, labels)
    assert blas() == before
    assert threading.active_count() == threads


@kernel_machines
def test_a_tight_memory_limit_does_not_change_the_model(case, monkeypatch):
    monkeypatch.setattr(OnlineClassifier, "_BATCH_SIZE", 8)
    some, labels = checks.clouds(50, seed=3)
    values = gram(some)
    parameters = {
        "kernel": "precomputed",
        **({"finish": False} if case.takes("finish") else {}),  # for which there is room where no row is dropped
    }
    free, limit = case.make(**parameters).fit(values, labels), 1000
    for jobs in (1, 2) if case.reads else (1,):
        model = tight(case, values, labels, limit, n_jobs=jobs, **parameters)
        limit = chosen(model).memory_limit // 2  # two threads need no less
        if case.streams:
            assert_same_model(model, free)
            if case.estimator.__name__ in ("LaRankClassifier", "LaSVMClassifier"):
                assert model.result_.kernel_values > free.result_.kernel_values, "rows were dropped"
        else:
            assert chosen(model).result_.dual == pytest.approx(chosen(free).result_.dual, rel=2e-3)
            assert_certified(case, model, labels, values=values, close=1e-7)


@those(lambda case: case.has_kernel and case.is_classifier and case.variant != "published")  # which needs no cache
def test_a_memory_limit_that_is_too_small_is_told_the_minimum_and_leaves_the_model(case):
    for kernel, some, labels in (("rbf", X, y), ("linear", X, y % 2), ("poly", X, y % 2), ("precomputed", K, y)):
        model = case.make(kernel=kernel).fit(some, labels)
        needed = r"memory_limit must be at least \d+ bytes for .*; (\d+) are enough for all 60 examples, got 100$"
        with unchanged(model, some), pytest.raises(larank.MemoryLimitError, match=needed) as error:
            case.set(model, memory_limit=100).fit(some, labels)
        enough = re.search(needed, str(error.value)).group(1)
        case.set(model, memory_limit=int(enough)).fit(some, labels)


@those(lambda case: case.has_kernel and case.is_classifier and case.variant != "published")
def test_what_is_said_to_be_enough_memory_is_enough_where_all_examples_stay(case):
    some = np.random.default_rng(0).normal(size=(400, 3))
    labels = np.arange(400) % 3
    with pytest.raises(larank.MemoryLimitError) as error:
        case.make(gamma=10.0, memory_limit=100).fit(some, labels)
    enough = int(re.search(r"; (\d+) are enough for all 400 examples", str(error.value)).group(1))
    model = case.make(gamma=10.0, memory_limit=enough).fit(some, labels)
    assert len(chosen(model).support_) > 200 or case.variant == "budget"


# Output


@every_estimator
def test_training_is_silent_unless_asked_and_then_writes_to_standard_error_only(case, capfd):
    silent = case.make().fit(*case.data)
    assert capfd.readouterr() == ("", "")
    if not case.takes("verbose"):
        return
    for verbose in (1, 2, True):
        limit = {"memory_limit": 5e6} if case.has_kernel and case.is_classifier else {}
        loud = case.make(verbose=verbose, **limit).fit(*case.data)
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith("larank: training ")
        if case.is_classifier:
            assert "60 examples" in err
            assert "3 classes" in err
        if limit and case.variant != "published":
            assert "memory limit 5 MB" in err
        assert_same_model(loud, silent)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, np.nan, 1.5, 2.5], r"nan in row 1\. larank\.TableEncoder .*Input X contains NaN"),
        ([0.5, 1.0, np.inf, 2.5], r"inf in row 2\. Input X contains infinity"),
        (["0.5", "tall", "1", "2"], r"'tall' in row 1\. larank\.TableEncoder .*could not convert"),
    ],
)
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_an_error_in_a_table_names_the_column_and_the_row(kind, values, message):
    message = f"X must hold finite numbers, but column 'height' holds {message}"
    refuses(message, larank.LinearMulticlassSVC().fit, kind({"age": range(4), "height": values}), [0, 1, 0, 1])
