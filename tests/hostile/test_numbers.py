"""Extreme numbers that the attack `numbers` has found, and others like them."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import larank
from checks import CASES

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
    with pytest.raises(ValueError, match=rf"X must .* in float32; .*{where}.*, or give X in float64$"):
        kind().fit((X * 1e19).astype("f4"), y)
    with pytest.raises(ValueError, match=rf"X must .* in float64; .*{where}, as StandardScaler does$"):
        kind().fit(X * 1e154, y)


@every_classifier
def test_features_whose_squares_vanish_are_refused_with_their_range(kind):
    for small in ((X * 1e-38).astype("f4"), (X * 1e-42).astype("f4"), X * 1e-160, X * 1e-310):
        with pytest.raises(ValueError, match=rf"X must have entries of at least .* in {small.dtype}.* goes from"):
            kind().fit(small, y)


@every_classifier
def test_one_huge_row_is_named(kind):
    for layout in (np.asarray, sparse.csr_matrix):
        huge = X.astype("f4")
        huge[7] = 1e30
        with pytest.raises(ValueError, match=r"example 7 has 5e\+60"):
            kind().fit(layout(huge), y)


def test_features_are_called_by_their_names():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="feature 'b' goes from"):
        larank.LaRankClassifier().fit(pandas.DataFrame(X * 1e60, columns=list("abcde")), y)


@every_stream
def test_a_stream_that_overflows_leaves_the_model_as_it_was(kind):
    model = kind(random_state=0).partial_fit(X.astype("f4"), y)
    before = model.decision_function(X)
    for more in ((X * 1e19).astype("f4"), X * 1e45, X * 1e200):
        with pytest.raises(ValueError, match=r"X|kernel|t0"):
            model.partial_fit(more, y)
        np.testing.assert_array_equal(model.decision_function(X), before)


@every_stream
def test_scores_that_overflow_are_refused(kind):
    model = kind(random_state=0).partial_fit(X, y)
    with pytest.raises(ValueError, match="X must"):
        model.decision_function(X * 1e300)


@pytest.mark.parametrize("kind", [kind for kind in ESTIMATORS if kind is not larank.HullerClassifier])
def test_costs_beyond_all_measure_are_refused(kind):
    for weight in (np.full(60, 1e308), np.where(np.arange(60), 1.0, 1e300)):
        with pytest.raises(ValueError, match=r"C times sample_weight and class_weight must sum to at most 1e\+100"):
            kind().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("C", [1e150, 1e300])
def test_a_cost_parameter_beyond_all_measure_is_refused(C):
    for kind in (larank.LaRankClassifier, larank.MulticlassSVC, larank.LinearMulticlassSVC, larank.LaSVMClassifier):
        with pytest.raises(ValueError, match=r"^C times sample_weight"):
            kind(C=C).fit(X, y)


def test_weights_that_vanish_are_refused_and_not_dropped():
    with pytest.raises(ValueError, match="1e-200 times 1e-200 times 1, of example 0, vanishes"):
        larank.LaRankClassifier(C=1e-200).fit(X, y, sample_weight=np.full(60, 1e-200))


def test_a_gamma_beyond_the_precision_is_refused():
    with pytest.raises(ValueError, match=r"^gamma must be .* with X in float32, got 1e\+40, or give X in float64$"):
        larank.MulticlassSVC(gamma=1e40).fit(X.astype("f4"), y)


def test_kernel_values_beyond_the_precision_are_refused():
    with pytest.raises(ValueError, match=r"kernel='poly': the kernel value .* in float64, got .*parameters$"):
        larank.LaRankClassifier(kernel="poly", degree=1000).fit(100 * X, y)
    with pytest.raises(ValueError, match="kernel='precomputed': the kernel value of examples 0 and 0 must be"):
        larank.LaRankClassifier(kernel="precomputed").fit(1e150 * X @ X.T, y)


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
        larank.LaSVMClassifier(kernel="precomputed", delta_max=1e-8, epochs=1).fit(K, y)


def test_taggers_and_structured_models_refuse_values_that_overflow():
    tags = [["a", "b"]] * 30
    with pytest.raises(ValueError, match=r"X must have values whose squares .* in token . of sequence"):
        larank.SequenceTagger().fit((X * 1e60, np.full(30, 2)), tags)
    with pytest.raises(ValueError, match=r"X must have values whose squares .* in token 1 of sequence 0; scale X"):
        larank.SequenceTagger().fit([[{"size": 1.0}, {"size": 1e200}]], [["a", "b"]])
    with pytest.raises(ValueError, match=r"joint_feature must return numbers whose squares .*; scale X"):
        larank.StructuredSVC(larank.MulticlassModel(3)).fit(X * 1e60, y)


def test_kernel_values_that_vanish_are_refused():
    with pytest.raises(ValueError, match=r"kernel='poly': k\(x, x\) must be 1e-30 or more .*, or give X in float64$"):
        larank.PivotedCholeskyMap(kernel="poly", gamma=1e-40, degree=2).fit(X.astype("f4"))


def test_weights_without_curvature_end_a_descent_in_words():
    model = larank.PrimalMulticlassSVC(loss="squared_hinge")
    with pytest.raises(ValueError, match="C, sample_weight and class_weight must leave second derivatives"):
        model.fit(np.abs(X[:2]).astype("f4"), [0, 1], sample_weight=[1e90, 1.0])


@pytest.mark.parametrize("kind", [larank.LaRankClassifier, larank.LinearMulticlassSVC, larank.KernelPerceptron])
@pytest.mark.filterwarnings("ignore::larank.TrainingWarning", "ignore:The number of unique classes")
def test_there_may_be_as_many_classes_as_examples(kind):
    points = np.random.RandomState(0).randn(5000, 2)
    model = kind(random_state=0, time_limit=0.5).fit(points, np.arange(5000))
    assert np.isfinite(model.decision_function(points[:20])).all()
