"""What the machine of the kernel estimators promises beside its models: memory, intercepts, passes and classes."""

import gc
import inspect
import re
import warnings
import weakref

import numpy as np
import pytest
from overlapping import NAMED
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

import larank
from larank import BlockSteps, LaRankClassifier, LaSVMClassifier, LinearMulticlassSVC, MulticlassSVC
from larank.data import load_letter
from larank.kernel import machine
from larank.kernel.machine import OnlineClassifier, StreamTraining
from larank.kernel.stream import Feed
from references import optima

ONLINE = [
    name
    for name in larank.__all__
    if isinstance(getattr(larank, name), type) and issubclass(getattr(larank, name), OnlineClassifier)
]


@pytest.mark.parametrize("name", ONLINE)
def test_what_a_part_of_a_stream_held_is_let_go_when_it_ends(name, monkeypatch):
    """tests/test_estimators.py makes the claim of `fit`."""
    trainings, begin = [], StreamTraining.__init__

    def watched(self, *arguments, **options):
        begin(self, *arguments, **options)
        trainings.append(weakref.ref(self))

    monkeypatch.setattr(StreamTraining, "__init__", watched)
    gc.disable()  # what is left to a collection of cycles takes memory until then
    try:
        getattr(larank, name)(random_state=0).partial_fit(np.random.RandomState(0).randn(120, 3), np.arange(120) % 3)
        assert [training() for training in trainings] == [None]
    finally:
        gc.enable()


WITH_INTERCEPT = [name for name in ONLINE if "fit_intercept" in inspect.signature(getattr(larank, name)).parameters]
with_intercept = pytest.mark.parametrize("name", WITH_INTERCEPT)
classes_and_verbs = pytest.mark.parametrize(
    ("classes", "verb"), [(2, "fit"), (3, "fit"), (2, "partial_fit"), (3, "partial_fit")]
)


def examples(classes, n=90):
    """Of which those of the last class come late."""
    rng = np.random.default_rng(0)
    y = np.sort(np.arange(n) % classes)
    return rng.uniform(size=(classes, 4))[y] + rng.uniform(size=(n, 4)), y


def trained(name, verb, X, y, **parameters):
    """In one pass, or to a gap, or by three calls."""
    model = getattr(larank, name)(random_state=0, **parameters)
    if verb == "fit":
        return model.set_params(max_iter=None if "tol" in parameters else 1).fit(X, y)
    for rows in np.split(np.arange(len(y)), [30, 40]):
        model.partial_fit(X[rows], y[rows])
    return model


@with_intercept
@classes_and_verbs
def test_an_intercept_is_that_of_the_kernel_plus_one(name, classes, verb):
    X, y = examples(classes)
    K = rbf_kernel(X, gamma=0.7)
    model = trained(name, verb, K, y, kernel="precomputed", fit_intercept=True)
    plus_one = trained(name, verb, K + 1, y, kernel="precomputed")
    np.testing.assert_array_equal(model.support_, plus_one.support_)
    np.testing.assert_array_equal(model.dual_coef_.toarray(), plus_one.dual_coef_.toarray())
    np.testing.assert_allclose(model.decision_function(K), plus_one.decision_function(K + 1), atol=1e-10)
    sums = model.dual_coef_.toarray().sum(axis=0)
    np.testing.assert_allclose(model.intercept_, np.diff(sums) if len(sums) == 2 else sums, atol=1e-12)
    assert not plus_one.intercept_.any()
    assert model.result_.operations == plus_one.result_.operations


@with_intercept
@classes_and_verbs
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_an_intercept_of_the_linear_kernel_is_the_weight_of_a_constant_feature(name, classes, verb, layout):
    X, y = examples(classes)
    # With a larger C, rounding changes which steps LaRank makes.
    options = {"kernel": "linear"} | ({"C": 0.01} if name == "LaRankClassifier" else {})
    model = trained(name, verb, layout(X), y, fit_intercept=True, **options)
    widened = trained(name, verb, layout(np.column_stack([np.ones(len(X)), X])), y, **options)
    np.testing.assert_array_equal(model.support_, widened.support_)
    np.testing.assert_allclose(model.coef_, widened.coef_[:, 1:], atol=1e-9)
    np.testing.assert_allclose(model.intercept_, widened.coef_[:, 0], atol=1e-9)
    decisions = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(layout(X)), decisions.squeeze(), atol=1e-10)


@with_intercept
@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "chi2", "intersection", "callable"])
def test_every_kernel_may_have_intercepts(name, kernel):
    X, y = examples(3)
    values, parameters = NAMED.get(kernel, NAMED["rbf"])
    chosen = {"kernel": values} if kernel == "callable" else {"kernel": kernel, **parameters}
    # Rounding changes which steps LaRank makes in one pass, but not its optimum.
    verb, options = ("fit", {"tol": 1e-9}) if name == "LaRankClassifier" else ("partial_fit", {})
    model = trained(name, verb, X, y, fit_intercept=True, **chosen, **options)
    plus_one = trained(name, verb, X, y, kernel=lambda A, B: values(A, B) + 1, **options)
    atol = 1e-3 if options else 1e-9
    np.testing.assert_allclose(model.decision_function(X), plus_one.decision_function(X), atol=atol)
    assert model.intercept_.any()


def test_a_feed_that_cannot_finish_a_session_cannot_be_made():
    class Endless(Feed):
        def advance(self, examples):
            return 0

    with pytest.raises(TypeError, match="finish_some"):
        Endless()


@pytest.mark.parametrize("name", ["LaSVMClassifier", "LaRankClassifier"])
def test_a_limit_on_memory_that_makes_training_long_is_told_once_with_one_that_would_not(name, monkeypatch):
    monkeypatch.setattr(machine, "_FEW_KERNEL_VALUES", 1e6)  # of the size of this problem
    letter = load_letter()
    X, y = letter.X_train[:2000].astype(np.float32), letter.y_train[:2000] < "N"

    def caught(limit):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            getattr(larank, name)(C=10, gamma=0.025, random_state=0, max_iter=1, memory_limit=limit).fit(X, y)
        return [str(each.message) for each in told if issubclass(each.category, larank.TrainingWarning)]

    message, *_ = found = caught(1e6)
    assert sum("leaves little room" in each for each in found) == 1
    enough = re.search(r"memory_limit=1e\+06 .* (\S+) would keep them all$", message)
    assert enough
    assert caught(float(enough[1])) == []


@pytest.mark.parametrize(
    "name", ["LaRankClassifier", "LaSVMClassifier", "MulticlassSVC", "KernelPerceptron", "KernelPassiveAggressive"]
)
@pytest.mark.parametrize("classes", [2, 3])
def test_support_patterns_are_counted_by_class(name, classes):
    random = np.random.RandomState(0)
    y = random.randint(classes, size=60)
    X = random.randn(60, 3) + y[:, None]
    names = np.array(["c", "b", "a"])[y]
    model = getattr(larank, name)(gamma=0.5, random_state=0)
    with pytest.raises(AttributeError, match=r"n_support_|not fitted"):
        _ = model.n_support_
    model.fit(X, names)
    assert model.n_support_.tolist() == [(names[model.support_] == label).sum() for label in model.classes_]


# Passes that max_iter=None makes: more where they are cheap and still pay, one where data are large

of_many_passes = pytest.mark.parametrize("estimator", [LaRankClassifier, LaSVMClassifier])


def noisy(n, features=2, classes=2, noise=1.5, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, features))
    y = (X @ random.normal(size=(features, classes)) + noise * random.normal(size=(n, classes))).argmax(axis=1)
    return X, y


@of_many_passes
@pytest.mark.parametrize("C", [0.05, 10.0])
def test_on_small_and_noisy_data_the_default_is_as_good_as_the_exact_machine(estimator, C):
    X, y = noisy(2000, classes=3)
    exact = MulticlassSVC(C=C, gamma=0.5, random_state=0)
    if estimator is LaSVMClassifier:
        exact = LaSVMClassifier(C=C, gamma=0.5, tol=1e-4, max_iter=1000, random_state=0)
    best = exact.fit(X[:500], y[:500]).score(X[500:], y[500:])
    scores = [
        estimator(C=C, gamma=0.5, random_state=seed).fit(X[:500], y[:500]).score(X[500:], y[500:]) for seed in range(5)
    ]
    assert np.mean(scores) > best - 0.005


@of_many_passes
def test_passes_go_on_while_they_raise_the_dual(estimator):
    X, y = noisy(300, features=5, classes=3)
    model = estimator(C=10.0, gamma=0.2, random_state=0).fit(X, y)
    passes = int(model.result_.iterations)
    assert passes > 1
    assert model.result_.status == "completed"
    same = estimator(C=10.0, gamma=0.2, max_iter=passes, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), same.decision_function(X))
    one_more = estimator(C=10.0, gamma=0.2, max_iter=passes + 1, random_state=0).fit(X, y)
    assert one_more.result_.dual - model.result_.dual < 1e-3 * model.result_.dual


@of_many_passes
@pytest.mark.parametrize(("limit", "most"), [("_FEW_VISITS", 400), ("_FEW_KERNEL_VALUES", 1000)])
def test_one_pass_is_made_where_another_would_be_long(estimator, limit, most, monkeypatch):
    X, y = noisy(300, features=5, classes=3)
    monkeypatch.setattr(machine, limit, most)
    assert estimator(C=10.0, random_state=0).fit(X, y).result_.iterations == 1


def test_a_hundred_thousand_examples_get_one_pass():
    X, y = noisy(100_000, noise=0.0)
    assert LaRankClassifier("linear", C=0.001, random_state=0).fit(X, y, certify=False).result_.iterations == 1


# A class without weight is part of the problem, if a machine solves one problem for all classes

X, y = np.random.RandomState(0).randn(30, 3), np.arange(30) % 3
WEIGHTS = np.where(y == 1, 0.0, 1.0)

MACHINES = {
    "larank": LaRankClassifier("linear", average=False, tol=1e-7),
    "larank with kernel values": LaRankClassifier("poly", degree=1, gamma=1.0, coef0=0.0, tol=1e-7),
    "larank on a device": LaRankClassifier("linear", average=False, tol=1e-7, solver=BlockSteps("cpu")),
    "exact": MulticlassSVC("linear", tol=1e-7),
    "linear": LinearMulticlassSVC(fit_intercept=False, tol=1e-7),
}


@pytest.mark.parametrize("name", MACHINES)
def test_the_optimum_is_that_of_all_classes(name):
    model = MACHINES[name].set_params(random_state=0).fit(X, y, sample_weight=WEIGHTS)
    _, optimum = optima.optimum("crammer-singer", X, y, WEIGHTS, 3)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.result_.status == "converged"
    assert optimum - 1e-5 <= model.result_.primal <= optimum * (1 + 1e-5)


def test_a_stream_goes_on_with_the_class_that_had_no_weight():
    model = LaRankClassifier(random_state=0).partial_fit(X, y, sample_weight=WEIGHTS)
    before = model.decision_function(X)
    assert before.shape == (30, 3)
    assert (model.partial_fit(X, y).predict(X) == 1).any()
