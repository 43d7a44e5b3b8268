"""Extreme numbers that the attack `numbers` has found, and others like them."""

import warnings

import numpy as np
import pandas
import pytest
from scipy import sparse

import larank
from checks import CASES, refuses

ESTIMATORS = [case.estimator for case in CASES if case.is_classifier and not case.variant and not case.is_search]
STREAMS = [kind for kind in ESTIMATORS if hasattr(kind, "partial_fit")]
every_classifier = pytest.mark.parametrize("kind", ESTIMATORS)
every_stream = pytest.mark.parametrize("kind", STREAMS)
X = np.random.RandomState(0).randn(60, 5)
y = np.random.RandomState(0).randint(0, 3, 60)

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


@every_classifier
def test_features_whose_products_overflow_are_refused_with_their_range(kind):
    where = "feature 1 goes from -2.77e.* to 1.93e.*; scale X"
    refuses(rf"X must .* in float32; .*{where}.*, or give X in float64$", kind().fit, (X * 1e19).astype("f4"), y)
    refuses(rf"X must .* in float64; .*{where}, as StandardScaler does$", kind().fit, X * 1e154, y)


@every_classifier
def test_features_whose_squares_vanish_are_refused_with_their_range(kind):
    for small in ((X * 1e-38).astype("f4"), (X * 1e-42).astype("f4"), X * 1e-160, X * 1e-310):
        refuses(rf"X must have entries of at least .* in {small.dtype}.* goes from", kind().fit, small, y)


@every_classifier
def test_one_huge_row_is_named(kind):
    for layout in (np.asarray, sparse.csr_matrix):
        huge = X.astype("f4")
        huge[7] = 1e30
        refuses(r"example 7 has 5e\+60", kind().fit, layout(huge), y)


def test_features_are_called_by_their_names():
    frame = pandas.DataFrame(X * 1e60, columns=list("abcde"))
    refuses("feature 'b' goes from", larank.LaRankClassifier().fit, frame, y)


@every_stream
def test_a_stream_that_overflows_leaves_the_model_as_it_was(kind):
    model = kind(random_state=0).partial_fit(X.astype("f4"), y)
    before = model.decision_function(X)
    for more in ((X * 1e19).astype("f4"), X * 1e45, X * 1e200):
        refuses(r"X|kernel|t0", model.partial_fit, more, y)
        np.testing.assert_array_equal(model.decision_function(X), before)


@every_stream
def test_scores_that_overflow_are_refused(kind):
    model = kind(random_state=0).partial_fit(X, y)
    refuses("X must", model.decision_function, X * 1e300)


@pytest.mark.parametrize("kind", [kind for kind in ESTIMATORS if kind is not larank.HullerClassifier])
def test_costs_beyond_all_measure_are_refused(kind):
    for weight in (np.full(60, 1e308), np.where(np.arange(60), 1.0, 1e300)):
        with pytest.raises(ValueError, match=r"C times sample_weight and class_weight must sum to at most 1e\+100"):
            kind().fit(X, y, sample_weight=weight)


def test_costs_out_of_range_are_refused_and_not_dropped():
    for kind in (larank.LaRankClassifier, larank.MulticlassSVC, larank.LinearMulticlassSVC, larank.LaSVMClassifier):
        for C in (1e150, 1e300):
            refuses(r"^C times sample_weight", kind(C=C).fit, X, y)
    tiny = np.full(60, 1e-200)
    refuses("1e-200 times 1e-200 times 1, of example 0, vanishes", larank.LaRankClassifier(C=1e-200).fit, X, y, tiny)
    model = larank.PrimalMulticlassSVC(loss="squared_hinge")
    message = "C, sample_weight and class_weight must leave second derivatives"
    refuses(message, model.fit, np.abs(X[:2]).astype("f4"), [0, 1], [1e90, 1.0])


def test_kernel_values_and_gammas_out_of_range_are_refused():
    model = larank.MulticlassSVC(gamma=1e40)
    refuses(r"^gamma must be .* with X in float32, got 1e\+40, or give X in float64$", model.fit, X.astype("f4"), y)
    model = larank.LaRankClassifier(kernel="poly", degree=1000)
    refuses(r"kernel='poly': the kernel value .* in float64, got .*parameters$", model.fit, 100 * X, y)
    model = larank.LaRankClassifier(kernel="precomputed")
    refuses("kernel='precomputed': the kernel value of examples 0 and 0 must be", model.fit, 1e150 * X @ X.T, y)
    model = larank.PivotedCholeskyMap(kernel="poly", gamma=1e-40, degree=2)
    refuses(r"kernel='poly': k\(x, x\) must be 1e-30 or more .*, or give X in float64$", model.fit, X.astype("f4"))


def test_coefficients_beyond_float32_are_no_matter():
    same = np.repeat(X[:1], 60, axis=0).astype("f4")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", larank.TrainingWarning)
        model = larank.MulticlassSVC(C=1e60, max_iter=2).fit(same, y)
    assert np.isfinite(model.decision_function(same)).all()


def test_a_gap_that_no_model_can_have_ends_a_loop_all_the_same():
    K = X @ X.T * 1e20
    K[0] *= 9
    K[:, 0] *= 9
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        larank.LaSVMClassifier(kernel="precomputed", max_iter=1, solver=larank.LaSVM(delta_max=1e-8)).fit(K, y)


def test_taggers_and_structured_models_refuse_values_that_overflow():
    message, tags, fit = "X must have values whose squares .* in token", [["a", "b"]] * 30, larank.SequenceTagger().fit
    refuses(f"{message} . of sequence", fit, (X * 1e60, np.full(30, 2)), tags)
    refuses(f"{message} 1 of sequence 0; scale X", fit, [[{"size": 1.0}, {"size": 1e200}]], tags[:1])
    model = larank.StructuredSVC(larank.MulticlassModel(3))
    refuses(r"joint_feature must return numbers whose squares .*; scale X", model.fit, X * 1e60, y)


@pytest.mark.parametrize("kind", [larank.LaRankClassifier, larank.LinearMulticlassSVC, larank.KernelPerceptron])
@pytest.mark.filterwarnings("ignore::larank.TrainingWarning", "ignore:The number of unique classes")
def test_there_may_be_as_many_classes_as_examples(kind):
    points = np.random.RandomState(0).randn(5000, 2)
    model = kind(random_state=0, time_limit=0.5).fit(points, np.arange(5000))
    assert np.isfinite(model.decision_function(points[:20])).all()
