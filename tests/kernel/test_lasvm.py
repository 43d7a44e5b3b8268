"""LaSVMClassifier: its optimum is that of SVC, its certificate true, and one stream makes one model."""

import re
import signal
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from checks import coefficients, signs_of
from larank import ActiveLearner, LaSVMClassifier, MemoryLimitError
from larank.active import AutoActive
from larank.kernel.bias import least_loss_bias
from larank.kernel.lasvm import LaSVM
from larank.training import TrainingWarning
from references.optima import one_vs_rest_certificate

iris, iris_labels = load_iris(return_X_y=True)
order = np.random.default_rng(0).permutation(len(iris))
X = ((iris - iris.mean(axis=0)) / iris.std(axis=0))[order]
y = iris_labels[order]
names = np.array(["setosa", "versicolor", "virginica"])
two = y > 0  # these overlap


def lasvm(kernel="rbf", **parameters):
    return LaSVMClassifier(kernel, **{"gamma": 0.5, "random_state": 0, "n_jobs": 1, **parameters})


def exact(kernel="rbf", **parameters):
    """As many passes as it takes, with a finishing step after each."""
    return lasvm(kernel, **{"tau": 1e-7, "stop": "gap", "tol": 1e-6, **parameters})


def noise(n, features=3, classes=2):
    random = np.random.default_rng(0)
    return random.normal(size=(n, features)), random.integers(0, classes, n)


KERNELS = {
    "rbf": ({"gamma": 0.5}, rbf_kernel),
    "poly": ({"gamma": 0.3, "degree": 3, "coef0": 1.0}, polynomial_kernel),
    "linear": ({}, lambda a, b: a @ b.T),
}


def dual_of(reference, values):
    """Return the dual objective of an SVC."""
    alpha, support = reference.dual_coef_[0], reference.support_
    return np.abs(alpha).sum() - 0.5 * alpha @ values[np.ix_(support, support)] @ alpha


@pytest.mark.parametrize("C", [0.1, 3.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_two_classes_reach_the_svm(kernel, C):
    """By name, by a function and by a matrix."""
    parameters, function = KERNELS[kernel]
    some, labels = X[two], names[y[two]]
    reference = SVC(kernel=kernel, C=C, tol=1e-8, **parameters).fit(some, labels)
    model = exact(kernel, C=C, **parameters).fit(some, labels)
    np.testing.assert_array_equal(model.predict(X), reference.predict(X))
    assert model.result_.status == "converged"
    assert model.result_.relative_gap <= 1e-6
    called = exact(lambda a, b: function(a, b, **parameters), C=C).fit(some, labels)
    K = function(some, some, **parameters)
    of_matrix = exact("precomputed", C=C).fit(K, labels).decision_function(function(X, some, **parameters))
    for found in (model.decision_function(X), called.decision_function(X), of_matrix):
        np.testing.assert_allclose(found, reference.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS)
def test_costs_so_small_that_all_support_vectors_are_at_bounds_reach_the_svm_too(kernel):
    """Nobody in S can be paired then but with examples outside: [thesis] 4.2.3, case c."""
    parameters, _ = KERNELS[kernel]
    model = exact(kernel, C=1e-3, **parameters).fit(X[two], y[two])
    reference = SVC(kernel=kernel, C=1e-3, tol=1e-8, **parameters).fit(X[two], y[two])
    assert model.result_.status == "converged"
    assert model.n_iter_ < 20
    assert len(model.support_) > 50
    # The bias may be anything in an interval.
    difference = model.decision_function(X) - reference.decision_function(X)
    np.testing.assert_allclose(difference, difference[0], atol=1e-6)


@pytest.mark.parametrize("by_class", [None, {1: 3.0}, "balanced", {2: 0.3}])
@pytest.mark.parametrize("weights", [None, [0.0, 0.5, 1.0, 3.0]])
def test_weights_reach_the_weighted_svm(weights, by_class):
    keep = two & (np.cumsum(y == 1) % 3 != 0)  # not as many of one class as of the other
    sample = weights and np.random.default_rng(1).choice(weights, keep.sum())
    model = exact(C=2.0, class_weight=by_class).fit(X[keep], y[keep], sample_weight=sample)
    reference = SVC(C=2.0, gamma=0.5, tol=1e-8, class_weight=by_class).fit(X[keep], y[keep], sample_weight=sample)
    np.testing.assert_allclose(model.decision_function(X), reference.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_more_classes_reach_the_svm_of_each_against_the_rest(kernel):
    model = exact(kernel, C=2.0).fit(X, names[y])
    scores, total, values = model.decision_function(X), 0.0, KERNELS[kernel][1](X, X, **KERNELS[kernel][0])
    for place in range(3):
        reference = SVC(kernel=kernel, C=2.0, gamma=0.5, tol=1e-8).fit(X, y == place)
        np.testing.assert_allclose(scores[:, place], reference.decision_function(X), atol=2e-4)
        total += dual_of(reference, values)
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert model.result_.dual == pytest.approx(total, rel=1e-5)
    np.testing.assert_array_equal(model.predict(X), names[scores.argmax(axis=1)])


def test_one_pass_and_a_finish_are_near_the_svm():
    optimum = dual_of(SVC(C=2.0, gamma=0.5, tol=1e-8).fit(X[two], y[two]), rbf_kernel(X[two], gamma=0.5))
    duals = [lasvm(C=2.0, max_iter=epochs).fit(X[two], y[two]).result_.dual for epochs in (1, 2, 10)]
    assert 0.95 * optimum < duals[0] <= duals[-1] * (1 + 1e-6)
    assert duals[-1] == pytest.approx(optimum, rel=1e-4)


def certificate(model, X, y):
    """Return primal, dual and violation from the model's attributes, which keep the constraints."""
    K, C, labels = rbf_kernel(X, gamma=0.5), model.C, np.unique(y, return_inverse=True)[1]
    alpha, signs = coefficients(model, len(X)), signs_of(labels)
    scores, g = model.decision_function(X).reshape(alpha.shape), signs - K @ alpha
    np.testing.assert_allclose(scores, K @ alpha + model.intercept_, atol=1e-6)
    np.testing.assert_allclose(alpha.sum(axis=0), 0, atol=1e-9 * C * len(X))
    assert (alpha * signs >= 0).all()
    assert (alpha * signs <= C * (1 + 1e-12)).all()
    np.testing.assert_allclose(model.support_costs_, C)
    np.testing.assert_array_equal(model.support_labels_, y[model.support_])
    largest = np.where(alpha < np.maximum(0, C * signs), g, -np.inf).max(axis=0)
    smallest = np.where(alpha > np.minimum(0, C * signs), g, np.inf).min(axis=0)
    objectives = one_vs_rest_certificate(alpha, scores, K, signs, np.full(len(X), C))
    return *objectives, max(0.0, (largest - smallest).max())


@given(st.integers(4, 60), st.integers(2, 4), st.integers(0, 10**6), st.sampled_from([0.01, 1.0, 50.0]), st.booleans())
def test_the_certificate_is_that_of_the_model(n, k, seed, C, finish):
    random = np.random.default_rng(seed)
    some, labels = random.normal(size=(n, 2)), np.concatenate([np.arange(k), random.integers(0, k, n - k)])
    model = lasvm(C=C, finish=finish).fit(some, labels)
    primal, dual, violation = certificate(model, some, labels)
    result = model.result_
    assert result.exact
    assert (result.primal, result.dual) == pytest.approx((primal, dual), rel=1e-6, abs=1e-9)
    assert result.violation == pytest.approx(violation, abs=1e-6)
    assert result.gap >= -1e-9 * primal
    assert (model.delta_ >= 0).all()
    assert not finish or (model.delta_ <= model.tau).all()


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("epochs", [1, 2, 5])
def test_as_many_epochs_are_made_as_asked_for(epochs, finish):
    model = lasvm(max_iter=epochs, finish=finish).fit(X, y)
    assert model.n_iter_ == epochs
    assert model.result_.iterations == epochs
    assert model.result_.status == "completed"
    assert model.result_.operations["process"] >= epochs * (len(X) - 10)
    assert finish or not model.result_.operations["finishing_steps"]


def test_delta_is_a_violation_and_so_not_negative():
    """Both coefficients are at their bounds, and far from wanting to leave them."""
    model = lasvm(C=1e-3).fit(X[two][:2] * [[1], [-1]], [0, 1])
    assert np.abs(model.dual_coef_).tolist() == [[1e-3, 1e-3]]
    np.testing.assert_array_equal(model.delta_, 0)
    assert model.result_.violation == 0


def test_delta_max_bounds_the_uncertainty_without_a_finish():
    loose = lasvm(C=10.0, finish=False, max_iter=1).fit(X, y)
    tight = lasvm(C=10.0, finish=False, max_iter=1, delta_max=0.05).fit(X, y)
    assert tight.delta_.max() <= 0.05 < loose.delta_.max()
    assert tight.result_.operations["reprocess"] > loose.result_.operations["reprocess"]
    certificate(tight, X, y)


@pytest.mark.parametrize("budget", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("selection", ["random", "active", "gradient"])
def test_the_certificate_is_that_of_all_classes_even_if_not_all_were_met(selection, budget):
    result = (model := lasvm(label_budget=budget, selection=selection, random_state=1).fit(X, names[y])).result_
    expected = certificate(model, X, names[y])
    np.testing.assert_allclose([result.primal, result.dual, result.violation], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("status", ["time_limit", "interrupted"])
def test_an_end_in_the_middle_of_finishing_leaves_a_valid_model(status, monkeypatch):
    monkeypatch.setattr("larank.kernel.lasvm._FINISHING_STEPS", 3)
    (some, labels), finish_some, calls, clock = noise(600, 2, 3), LaSVM._finish_some, [], [0.0]

    def watched(self, training):
        calls.append(0)
        if len(calls) == 50 and status == "interrupted":
            signal.raise_signal(signal.SIGINT)
        clock[0] = 5.5 * (len(calls) == 50 and status == "time_limit")
        return finish_some(self, training)

    monkeypatch.setattr("larank.training.loop.time.perf_counter", lambda: clock[0])
    monkeypatch.setattr(LaSVM, "_finish_some", watched)
    with pytest.warns(TrainingWarning, match="time_limit|interrupt"):
        model = lasvm(C=100.0, time_limit=5.0).fit(some, labels)
    assert model.result_.status == status
    assert model.result_.operations["finishing_steps"] == 150
    assert (model.result_.primal, model.result_.dual) == pytest.approx(certificate(model, some, labels)[:2], rel=1e-9)


def test_the_order_in_which_classes_arrive_does_not_matter_in_the_end():
    one, other = (exact(C=2.0).fit(X, labels).decision_function(X) for labels in (y, 2 - y))
    np.testing.assert_allclose(one, other[:, ::-1], atol=1e-3)


def test_queries_reach_as_far_as_the_bias_is_uncertain():
    reaches = []

    class Watching(AutoActive):
        def choose(self, margins, reach):
            reaches.append(reach)
            return super().choose(margins, reach)

    model = lasvm(C=10.0, finish=False)
    learner = ActiveLearner(model, X[two], selection=Watching(), random_state=0, budget=40)
    expected = []
    while learner.remaining:
        if len(getattr(model, "classes_", [])) == 2:
            expected.append(1 + model.delta_[0] / 2)
        index, example = learner.query()
        learner.teach(example, int(y[two][index]))
    assert reaches == pytest.approx(expected)
    assert max(reaches) > 1.01


@pytest.mark.parametrize("s", [1e-7, 1e-3, 1e4])
def test_the_scale_of_a_kernel_changes_nothing(s):
    """k times s^2 and C over s^2 is the same problem."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=120) > 0
    one, other = (
        exact("linear", C=1 / scale**2, tau=1e-6).fit(X * scale, y).decision_function(X * scale) for scale in (1.0, s)
    )
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_where_tau_is_the_limit_training_ends_and_says_so():
    with pytest.warns(TrainingWarning, match=r"nothing violates optimality by more than tau=0\.1"):
        model = exact(C=100.0, gamma=0.3, tol=1e-9, tau=0.1).fit(*noise(100))
    assert model.result_.status == "precision"


def test_a_model_for_whose_finish_there_is_no_room_is_kept_unfinished():
    X, y = noise(300, 5)
    settings = {"gamma": "scale", "batch_size": 8}
    plain = lasvm(finish=False, **settings).fit(X, y)
    for limit in range(60_000, 400_000, 10_000):
        try:
            lasvm(finish=False, memory_limit=limit, **settings).fit(X, y)
        except MemoryLimitError:
            continue
        break
    with pytest.warns(TrainingWarning, match="the model is not finished: memory_limit must be at least"):
        model = lasvm(memory_limit=limit, **settings).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-9)


@pytest.mark.parametrize(("size", "classes"), [(300, 2), (500, 2), (300, 4)])
def test_the_memory_that_a_finish_asks_for_is_enough(size, classes):
    X, y = noise(size, 5, classes)

    def needed(limit):
        """Return the limits that warnings ask for."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lasvm(gamma="scale", memory_limit=limit, batch_size=8).fit(X, y)
        return [int(re.search(r"memory_limit must be at least (\d+) bytes", str(each.message))[1]) for each in caught]

    unfinished = 0
    for limit in np.geomspace(1e5, 3e6, 9).astype(int):
        try:
            least = max(needed(limit), default=None)
        except MemoryLimitError:
            continue
        if least:
            unfinished += 1
            assert least > limit
            assert needed(least) == []
    assert unfinished


def test_a_class_that_comes_late_does_not_take_everything():
    digits = load_digits()
    X, y = digits.data / 16, digits.target
    order = np.argsort(y, kind="stable")
    model = LaSVMClassifier(gamma=0.05, C=10.0)
    for part in np.split(order, np.flatnonzero(np.diff(y[order])) + 1):
        model.partial_fit(X[part], y[part])
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize(
    ("C", "some", "labels"),
    [
        *((1.0, np.full((12, 2), value), np.arange(12) % 2) for value in (0.0, 1e-40, 1e40)),
        *((C, X, y) for C in (1e-12, 1e12)),
    ],
)
def test_constant_features_and_extreme_costs_make_finite_models(C, some, labels):
    model = lasvm(C=C).fit(some, labels)
    assert np.isfinite([*model.decision_function(some).ravel(), model.result_.primal, model.result_.dual]).all()
    assert model.result_.gap >= -1e-9 * model.result_.primal


def test_all_examples_decide_a_bias_that_support_vectors_leave_open():
    """Both support vectors are at bounds, and so is half of the line between them."""
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 0, 1]
    model = exact(C=0.1, gamma=0.1, tau=1e-12, max_iter=10000).fit(X, y)
    assert model.result_.status == "converged"
    np.testing.assert_allclose(model.intercept_, SVC(C=0.1, gamma=0.1).fit(X, y).intercept_, atol=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_noisy_problems_with_small_costs_converge(seed):
    random = np.random.default_rng(seed)
    classes, settings = 2 + seed % 2, {"gamma": "scale", "C": 10 ** random.uniform(-3, -1), "random_state": seed}
    X, y = random.normal(size=(30, 2)), random.integers(0, classes, 30)
    y[:classes] = range(classes)
    assert exact(tau=1e-10, tol=1e-5, max_iter=10000, **settings).fit(X, y).result_.status == "converged"
    certified, plain = (lasvm(certify=certify, **settings).fit(X, y).intercept_ for certify in (True, False))
    np.testing.assert_array_equal(certified, plain)


@given(st.integers(0, 10**6))
def test_no_bias_has_less_loss(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 12))
    scores, costs = random.normal(size=n).round(1), random.integers(1, 4, n).astype(float)
    y = random.choice([-1.0, 1.0], n)

    def loss(bias):
        return costs @ np.maximum(0, 1 - y * (scores + bias))

    kinks = y - scores
    least = min(loss(other) for other in [*kinks, *(kinks + 0.05), *(kinks - 0.05)])
    assert loss(least_loss_bias(scores, y, costs)) <= least + 1e-9


def test_finishing_ends_where_features_are_far_from_the_origin():
    random = np.random.RandomState(0)
    X, y = random.normal(loc=100, size=(80, 2)), random.randint(0, 2, 80)
    with pytest.warns(TrainingWarning, match=r"steps of finishing, 1000 for each support vector; .*scale"):
        model = lasvm("poly", gamma="scale").fit(X, y)
    assert model.result_.status == "max_iter"
    with pytest.warns(TrainingWarning, match="steps of finishing, 10 for each"):
        few = lasvm("poly", gamma="scale", max_iter=10).fit(X, y)
    assert few.result_.operations["finishing_steps"] < model.result_.operations["finishing_steps"] < 200_000


def test_features_are_selected_by_weights():
    noisy = np.hstack([X, np.random.default_rng(0).normal(size=X.shape)])
    chosen = RFE(exact("linear"), n_features_to_select=4).fit(noisy, y)
    assert chosen.support_[: X.shape[1]].sum() >= 3
    assert SelectFromModel(exact("linear")).fit(noisy, y).get_support()[: X.shape[1]].any()


@pytest.mark.parametrize("shift", [100.0, 1000.0])
def test_gradients_that_rounding_has_moved_are_mended(shift):
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 3))
    y = np.where(X[:, 0] + 2 * random.normal(size=50) > 0, 1, -1)
    settings = {"C": 3000.0, "tau": 1e-10, "max_iter": 10_000}
    model, near = exact("linear", tol=1e-4, **settings).fit(X + shift, y), exact("linear", **settings).fit(X, y)
    assert model.result_.status == "converged"
    assert model.result_.primal == pytest.approx(near.result_.primal, rel=1e-3)  # the bias takes up the shift


@pytest.mark.parametrize("seed", range(4))
def test_a_coefficient_that_rounding_keeps_from_its_bound_does_not_decide_on_the_bias(seed):
    random = np.random.default_rng(3)
    X = random.normal(size=(400, 20))
    y = np.argsort(np.argsort(X[:, 0] + random.normal(size=400))) >= 200  # as many of both
    model = lasvm(C=0.01, gamma=0.05, random_state=seed).fit(X, y)
    reference = SVC(C=0.01, gamma=0.05, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=1e-3)
