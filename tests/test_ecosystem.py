"""Claims about newer interfaces of scikit-learn: arrays of any library, `set_output`, metadata routing, callbacks."""

import sys

import array_api_strict as strict
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy
import sklearn
from scipy.sparse import csr_matrix
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.fixes import parse_version

import larank
from checks import X, assert_same_model, every_estimator, readers, scores, those, transformers, y

WEIGHTS = np.where(np.arange(60) % 5 == 0, 4.0, 0.5)
ON_DEVICE = strict.Device("device1")
of_arrays = readers(lambda case: case.takes_matrices or case.takes_tables)
weighted = readers(lambda case: case.is_classifier and case.weighs)
searches = those(lambda case: case.is_search)


@pytest.fixture(params=[False, True], ids=["no dispatch", "dispatch"])
def dispatch(request, monkeypatch):
    """scikit-learn's dispatch to libraries of arrays, off and on."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    if request.param and parse_version(scipy.__version__) < parse_version("1.14"):
        pytest.skip("scikit-learn dispatches to other libraries with SciPy 1.14 and newer")
    with sklearn.config_context(array_api_dispatch=request.param):
        yield request.param


# Arrays of other libraries


@of_arrays
@pytest.mark.usefixtures("dispatch")
def test_arrays_of_another_library_are_taken_and_answered_with_numpy(case):
    more = {"sample_weight": WEIGHTS} if case.weighs else {}
    theirs = {name: strict.asarray(value) for name, value in more.items()}
    examples, labels = strict.asarray(X), strict.asarray(y)
    for call, train in case.calls():
        expected, found = train(case.make(), X, y, **more), train(case.make(), examples, labels, **theirs)
        for one, other in zip(expected, found, strict=True) if call == "path" else [(expected, found)]:
            assert_same_model(other, one)
            for method in (*case.asks, *(["predict_proba"] if hasattr(one, "predict_proba") else [])):
                answer = getattr(other, method)(examples)
                assert type(answer) is np.ndarray
                np.testing.assert_array_equal(answer, getattr(one, method)(X))
            if case.is_classifier:
                weights = strict.asarray(WEIGHTS)
                assert other.score(examples, labels, weights) == one.score(X, y, WEIGHTS)


@readers(lambda case: case.passes("validation"))
@pytest.mark.usefixtures("dispatch")
def test_validation_examples_may_be_arrays_of_another_library(case):
    arrays = strict.asarray(X[40:]), strict.asarray(y[40:])
    model = case.make(max_iter=2).fit(X[:40], y[:40], validation=arrays)
    expected = case.make(max_iter=2).fit(X[:40], y[:40], validation=(X[40:], y[40:]))
    found = [[point.error for point in each.result_.history if point.error is not None] for each in (model, expected)]
    assert found[0][-1] == found[1][-1]  # how many others there are depends on the time


@pytest.mark.usefixtures("dispatch")
def test_a_structured_model_takes_arrays_of_another_library():
    model = larank.StructuredSVC(larank.MulticlassModel(3), random_state=0)
    expected = model.fit(X, y).coef_
    found = model.fit(strict.asarray(X), strict.asarray(y))
    np.testing.assert_array_equal(found.coef_, expected)
    assert found.predict(strict.asarray(X)) == found.predict(X)
    assert found.score(strict.asarray(X), strict.asarray(y), strict.asarray(WEIGHTS)) == found.score(X, y, WEIGHTS)


@pytest.mark.usefixtures("dispatch")
def test_a_tagger_takes_features_and_weights_of_another_library():
    lengths, weights = np.full(20, 3), WEIGHTS[:20]
    expected = larank.SequenceTagger(random_state=0).fit((X, lengths), y, weights)
    arrays = strict.asarray(X), strict.asarray(lengths)
    found = larank.SequenceTagger(random_state=0).fit(arrays, strict.asarray(y), strict.asarray(weights))
    assert_same_model(found, expected)
    np.testing.assert_array_equal(found.predict(arrays), expected.predict((X, lengths)))
    with pytest.raises(TypeError, match=r"^X must be an array that NumPy can read.* on device .*X\.to_device"):
        larank.SequenceTagger().fit((strict.asarray(X, device=ON_DEVICE), lengths), y)


@those(lambda case: case.is_classifier and case.takes("label_costs"))
def test_costs_may_be_an_array_of_another_library(case):
    costs = np.where(np.eye(3) == 1, 0.0, [[1.0], [2.0], [3.0]])
    found = case.make(label_costs=strict.asarray(costs)).fit(X, y)
    assert_same_model(found, case.make(label_costs=costs).fit(X, y))


@pytest.mark.usefixtures("dispatch")
def test_an_active_learner_takes_a_pool_of_another_library():
    learners = []
    for pool in (X, strict.asarray(X)):
        learner = larank.ActiveLearner(larank.LaRankClassifier(gamma=0.4, random_state=0), pool, random_state=0)
        for number in [None] * 8 + [3]:
            index, x = learner.query(number)
            learner.teach(x, y[index])
        learner.undo()
        learners.append(learner)
    assert learners[0].labelled == learners[1].labelled
    assert_same_model(learners[1].estimator, learners[0].estimator)
    with pytest.raises(TypeError, match=r"^X must be an array that NumPy can read.* on device .*X\.to_device"):
        larank.ActiveLearner(larank.LaRankClassifier(), strict.asarray(X, device=ON_DEVICE))


@of_arrays
@pytest.mark.usefixtures("dispatch")
def test_arrays_in_the_memory_of_a_device_are_refused_with_the_way_out(case):
    model = case.make().fit(X, y)
    there, labels, weights = (strict.asarray(each, device=ON_DEVICE) for each in (X, y, WEIGHTS))

    def refused(name):
        return pytest.raises(
            TypeError,
            match=rf"^{name} must be an array that NumPy can read, got array_api_strict\.Array on device .*device1.*\. "
            rf"Copy it to the memory of the host, .*{name}\.to_device",
        )

    for call, train in case.calls():
        with refused("X"):
            train(case.make(), there, y)
        if case.is_classifier:
            with refused("y"):
                train(case.make(), X, labels)
        if case.weighs and call != "path":
            with refused("sample_weight"):
                train(case.make(), X, y, sample_weight=weights)
    for method in case.asks:
        with refused("X"):
            getattr(model, method)(there)
    if case.is_classifier:
        with refused("y"):
            model.score(X, labels)
        with refused("sample_weight"):
            model.score(X, y, weights)


@readers(lambda case: case.takes_matrices)
@pytest.mark.usefixtures("dispatch")
def test_dispatch_does_not_change_what_else_is_taken(case):
    expected = case.make().fit(X, y)
    assert_same_model(case.make().fit(X, y), expected)
    table = pl.DataFrame(X, schema=list("abcd"))
    np.testing.assert_array_equal(scores(case.make().fit(table, y), table), scores(expected, X))
    case.make().fit(csr_matrix(X), y)


@readers(lambda case: case.is_classifier)
@pytest.mark.parametrize("dispatch", [True], indirect=True)
@pytest.mark.usefixtures("dispatch")
def test_searches_of_scikit_learn_score_arrays_of_another_library(case):
    folds = [(np.arange(0, 40), np.arange(40, 60)), (np.arange(20, 60), np.arange(0, 20))]
    expected = cross_validate(case.make(), X, y, cv=folds)["test_score"]
    found = cross_validate(case.make(), strict.asarray(X), strict.asarray(y), cv=folds, error_score="raise")
    np.testing.assert_array_equal(found["test_score"], expected)


# set_output


@transformers
@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_transformers_make_frames_with_names_if_asked(case, library):
    tables = [
        X,
        pd.DataFrame(X, columns=list("abcd"), index=np.arange(60) + 7),
        pl.DataFrame(X, schema=list("abcd")),
    ]
    for table in tables:
        plain = case.make().fit(table)
        model = case.make().set_output(transform=library.__name__)
        for found in (model.fit_transform(table), model.transform(table)):
            assert isinstance(found, library.DataFrame)
            assert list(found.columns) == plain.get_feature_names_out().tolist()
            np.testing.assert_allclose(found.to_numpy(), plain.transform(table))
            if isinstance(table, pd.DataFrame) and library is pd:
                assert found.index.equals(table.index)


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_pipeline_passes_frames_from_step_to_step(name):
    table = pd.DataFrame(X, columns=list("abcd"))
    steps = [larank.TableEncoder(), larank.KernelPCAMap(n_components=5), larank.LinearMulticlassSVC(random_state=0)]
    model = make_pipeline(*steps).set_output(transform=name).fit(table, y)
    if name == "pandas" or parse_version(sklearn.__version__) >= parse_version("1.9"):  # which reads names of polars 2
        assert model[-1].feature_names_in_.tolist() == [f"kernelpcamap{number}" for number in range(5)]
    assert model.score(table, y) > 0.5


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_sparse_features_of_a_table_are_refused_as_frames(name):
    table = pd.DataFrame({"text": [f"word{n} word{n // 2} thing{n % 7}" for n in range(300)]})
    encoder = larank.TableEncoder(kinds={"text": "text"}).set_output(transform=name)
    with pytest.raises(ValueError, match=r"sparse matrix.*set_output\(transform='default'\)"):
        encoder.fit_transform(table)


# Metadata routing


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@weighted
@pytest.mark.usefixtures("routing")
def test_requested_weights_reach_training_and_score_through_pipelines_and_searches(case):
    expected = case.make().fit(X, y, sample_weight=WEIGHTS)
    asked = case.make().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    model = Pipeline([("same", FunctionTransformer()), ("model", asked)]).fit(X, y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    assert model.score(X, y, sample_weight=WEIGHTS) == expected.score(X, y, WEIGHTS)
    search = GridSearchCV(asked, {}, cv=2)
    search.fit(X, y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(search.decision_function(X), expected.decision_function(X))


@weighted
@pytest.mark.usefixtures("routing")
def test_weights_that_were_not_requested_are_refused(case):
    with pytest.raises(ValueError, match=r"sample_weight.* not explicitly set as requested"):
        Pipeline([("model", case.make())]).fit(X, y, sample_weight=WEIGHTS)


@those(lambda case: case.passes("validation") and case.passes("sample_weight"))
@pytest.mark.usefixtures("routing")
def test_other_arguments_of_fit_are_routed_too(case):
    asked = case.make(max_iter=2).set_fit_request(validation=True)
    model = Pipeline([("model", asked)]).fit(X[:40], y[:40], validation=(X[40:], y[40:]))
    assert any(point.error is not None for point in model[-1].result_.history)


@searches
@pytest.mark.usefixtures("routing")
def test_a_search_scores_with_weights_unless_its_scorer_refuses_them(case):
    scorer = make_scorer(accuracy_score)
    requests = {"": scorer}
    for wish in (True, False):
        requests[str(wish)] = make_scorer(accuracy_score).set_score_request(sample_weight=wish)
    found = {
        wish: case.make(Cs=[0.01, 1.0], scoring=scorer).fit(X, y, sample_weight=WEIGHTS).scores_
        for wish, scorer in requests.items()
    }
    np.testing.assert_array_equal(found["True"], found[""])
    counts = found["False"] * 20  # of the 20 examples that each of three folds holds out
    np.testing.assert_allclose(counts, counts.round())
    assert not np.array_equal(found["True"], found["False"])
    other = make_scorer(accuracy_score).set_score_request(sample_weight="mine")
    with pytest.raises(
        ValueError, match=r"scoring requests the metadata 'mine'.*set_score_request\(sample_weight=True"
    ):
        case.make(scoring=other).fit(X, y, sample_weight=WEIGHTS)


@searches
def test_a_search_takes_scorers_whose_function_takes_no_weights(case):
    def right(true, predicted):
        return float((true == predicted).mean())

    counts = case.make(scoring=make_scorer(right)).fit(X, y, sample_weight=WEIGHTS).scores_ * 20
    np.testing.assert_allclose(counts, counts.round())


@searches
def test_a_splitter_that_needs_groups_is_refused_with_the_way_out(case):
    with pytest.raises(ValueError, match=r"groups.*give its pairs of rows instead, cv=list\(splitter\.split\("):
        case.make(cv=GroupKFold(3)).fit(X, y)
    groups = np.arange(60) // 6
    case.make(cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)


# Callbacks


class Recorder:
    """A callback that keeps what was called."""

    max_propagation_depth = None

    def __init__(self):
        self.called = []

    def setup(self, estimator, context):
        self.called.append("setup")

    def teardown(self, estimator, context):
        self.called.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.called.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.called.append(f"end {context.task_name}")


@every_estimator
def test_estimators_have_no_callbacks_and_say_who_has(case):
    assert not hasattr(case.make(), "set_callbacks")
    with pytest.raises(
        AttributeError, match=rf"^{case.estimator.__name__} has no set_callbacks because .*Give them to the Pipe"
    ):
        case.make().set_callbacks(Recorder())


@every_estimator
def test_callbacks_of_a_pipeline_are_called_around_fit_and_leave_the_model(case):
    pytest.importorskip("sklearn.callback")
    some, labels = case.data
    recorder, model = Recorder(), case.make()
    with pytest.warns(UserWarning, match=f"The estimator {case.estimator.__name__} does not support callbacks"):
        Pipeline([("model", model)]).set_callbacks(recorder).fit(some, labels)
    assert recorder.called[:3] == ["setup", "begin fit", "begin fit-final-estimator"]
    assert recorder.called[-3:] == ["end fit-final-estimator", "end fit", "teardown"]
    assert not [name for name in vars(model) if "callback" in name]
    assert_same_model(model, case.make().fit(some, labels))


@those(lambda case: str(case) in ("LaRankClassifier", "PathSearchCV-kernel"))
def test_callbacks_of_a_search_are_called_for_each_training(case):
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    search = GridSearchCV(case.make(), {"verbose": [0, False]}, cv=2).set_callbacks(recorder)
    with pytest.warns(UserWarning, match=f"The estimator {case.estimator.__name__} does not support callbacks"):
        search.fit(X, y)
    assert recorder.called.count("end candidate-split-evaluation") == 4
    assert recorder.called.count("end refit-with-best-params") == 1


def test_the_modules_for_users_are_imported_when_they_are_asked_for():
    assert {"active", "dask", "data", *larank.__all__} <= set(dir(larank))
    assert larank.__getattr__("data") is sys.modules["larank.data"]
