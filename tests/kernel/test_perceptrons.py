"""KernelPerceptron and KernelPassiveAggressive: the algorithms on any data, as estimators of scikit-learn."""

import doctest
import itertools
import math
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.linear_model import PassiveAggressiveClassifier, Perceptron
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import estimator_checks_generator
from test_perceptron_session import passive_aggressive_rule, perceptron_rule, reference

from larank import KernelPassiveAggressive, KernelPerceptron, LaRankClassifier
from larank.data import models
from larank.report import certificate, write_report
from larank.training import TrainingWarning

ESTIMATORS = (KernelPerceptron, KernelPassiveAggressive)
iris, iris_labels = load_iris(return_X_y=True)
iris = (iris - iris.mean(axis=0)) / iris.std(axis=0)
names = np.array(["setosa", "versicolor", "virginica"])


def perceptron(kernel="rbf", **parameters):
    return KernelPerceptron(kernel, **{"random_state": 0, "n_jobs": 1, **parameters})


def passive_aggressive(kernel="rbf", **parameters):
    return KernelPassiveAggressive(kernel, **{"random_state": 0, "n_jobs": 1, **parameters})


MODELS = {
    "last": perceptron,
    "average": lambda kernel="rbf", **more: perceptron(kernel, **{"decision": "average", **more}),
    "budget": lambda kernel="rbf", **more: perceptron(kernel, **{"budget": 20, "margin": 0.1, **more}),
    "passive-aggressive": passive_aggressive,
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def data(n, k, seed=0, dimensions=4):
    """Examples of k overlapping classes, every class among the first."""
    random = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), random.integers(0, k, n - k)])
    return 1.5 * random.normal(size=(k, dimensions))[y] + random.normal(size=(n, dimensions)), y


def rbf(X, Z=None, gamma=0.3):
    Z = X if Z is None else Z
    return np.exp(-gamma * ((X[:, None] - Z[None]) ** 2).sum(axis=-1))


def assert_same_model(one, other):
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_array_equal(one.support_, other.support_)
    np.testing.assert_array_equal(one.dual_coef_.toarray(), other.dual_coef_.toarray())


def coefficients(model, n):
    beta = np.zeros((n, model.dual_coef_.shape[1]))
    beta[model.support_] = model.dual_coef_.toarray()
    return beta


# The algorithms


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize(
    ("make", "rule", "average"),
    [
        (perceptron, perceptron_rule(), False),
        (MODELS["average"], perceptron_rule(), True),
        (lambda kernel, **more: perceptron(kernel, margin=0.5, **more), perceptron_rule(0.5), False),
        (passive_aggressive, passive_aggressive_rule, False),
    ],
)
def test_it_is_the_algorithm_of_the_thesis(make, rule, average, k):
    X, y = data(200, k)
    K = rbf(X)
    history = reference(K, y, np.ones(200), [np.arange(200)] * 3, rule)
    expected = history.mean(axis=0) if average else history[-1]
    for model in (make("precomputed", shuffle=False, epochs=3), make("rbf", gamma=0.3, shuffle=False, epochs=3)):
        model.fit(K if model.kernel == "precomputed" else X, y)
        np.testing.assert_allclose(coefficients(model, 200), expected, atol=1e-9)
        scores = K @ expected
        shown = model.decision_function(K if model.kernel == "precomputed" else X)
        np.testing.assert_allclose(shown, scores[:, 0] if k == 2 else scores, atol=1e-8)


def test_with_a_linear_kernel_it_is_the_perceptron_of_scikit_learn():
    X, y = data(200, 2, seed=3)
    theirs = Perceptron(fit_intercept=False, shuffle=False, max_iter=4, tol=None).fit(X, y)
    np.testing.assert_allclose(perceptron("linear", shuffle=False, epochs=4).fit(X, y).coef_, theirs.coef_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.*PassiveAggressive.*:FutureWarning")
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_with_a_linear_kernel_it_is_the_passive_aggressive_classifier_of_scikit_learn(C):
    X, y = data(200, 2, seed=3)
    theirs = PassiveAggressiveClassifier(C=C, fit_intercept=False, shuffle=False, max_iter=4, tol=None).fit(X, y)
    ours = passive_aggressive("linear", C=C, shuffle=False, epochs=4).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7, atol=1e-9)


def test_one_pass_is_larank_without_reprocessing_up_to_its_tolerance():
    """LaRank leaves violations up to 0.08 alone, and gives examples at the origin a coefficient that scores nothing."""
    X, y = data(400, 4, seed=5)
    larank = LaRankClassifier(gamma=0.3, operations=("new",), random_state=0, n_jobs=1).fit(X, y)
    ours = passive_aggressive(gamma=0.3).fit(X, y)
    assert (ours.predict(X) == larank.predict(X)).mean() > 0.97
    X[7] = 0
    assert 7 not in passive_aggressive("linear").fit(X, y).support_


def test_the_average_is_steadier_than_the_last_decision():
    X, y = data(1200, 3, seed=6)
    train, test = slice(0, 800), slice(800, None)
    errors = [
        [
            np.mean(MODELS[kind](random_state=seed).fit(X[train], y[train]).predict(X[test]) != y[test])
            for seed in range(5)
        ]
        for kind in ("last", "average")
    ]
    assert np.mean(errors[1]) < np.mean(errors[0])
    assert np.std(errors[1]) < np.std(errors[0])


def test_weights_are_factors_on_the_steps():
    X, y = data(120, 2)
    weight = np.random.default_rng(0).uniform(0.5, 2, 120)
    model = perceptron("precomputed", shuffle=False).fit(rbf(X), y, sample_weight=weight)
    np.testing.assert_allclose(np.abs(model.dual_coef_.data), weight[model.support_])
    K = rbf(X)
    history = reference(K, y, 0.2 * weight, [np.arange(120)], passive_aggressive_rule)
    ours = passive_aggressive("precomputed", C=0.2, shuffle=False).fit(K, y, sample_weight=weight)
    np.testing.assert_allclose(coefficients(ours, 120), history[-1], atol=1e-9)


# One stream, one model


@every_model
@pytest.mark.parametrize("k", [2, 4])
def test_the_size_of_batches_and_the_cuts_of_a_stream_do_not_change_the_model(make, k):
    X, y = data(300, k)
    K = rbf(X)
    plain = make("precomputed", shuffle=False).fit(K, y)
    for size, jobs in itertools.product([1, 4, 16, 64, 256], [1, 2]):
        assert_same_model(make("precomputed", shuffle=False, batch_size=size, n_jobs=jobs).fit(K, y), plain)
    for cuts in ([1], [100, 200], list(range(10, 300, 10))):
        model = make("precomputed")
        for first, last in itertools.pairwise([0, *cuts, 300]):
            model.partial_fit(K[first:last, :last], y[first:last], classes=np.arange(k))
        assert_same_model(model, plain)


@every_model
def test_shuffled_epochs_do_not_depend_on_the_size_of_batches(make):
    X, y = data(300, 3)
    models = [make("precomputed", epochs=3, batch_size=size).fit(rbf(X), y) for size in (1, 16, 256)]
    for model in models[1:]:
        assert_same_model(model, models[0])
    assert not np.array_equal(models[0].support_, make("precomputed", epochs=3, random_state=1).fit(rbf(X), y).support_)


def test_a_tight_memory_limit_does_not_change_the_model():
    X, y = data(600, 3)
    K = rbf(X)
    settings = {"budget": 80, "margin": 1.0, "batch_size": 8}
    free = perceptron("precomputed", **settings).fit(K, y)
    tight = perceptron("precomputed", memory_limit=6e4, **settings).fit(K, y)
    assert_same_model(tight, free)
    assert tight.result_.kernel_values > free.result_.kernel_values


@every_model
def test_a_third_class_may_come_late(make):
    X, y = data(300, 3, seed=2)
    order = np.argsort(y == 2, kind="stable")
    X, y = X[order], names[y[order]]
    model = make(gamma=0.3)
    for first, last in itertools.pairwise([0, 100, 150, 250, 300]):
        model.partial_fit(X[first:last], y[first:last])
        scores = model.decision_function(X)
        assert scores.shape == ((300,) if len(model.classes_) == 2 else (300, 3))
        np.testing.assert_array_equal(model.classes_, np.unique(y[:last]))
    assert set(model.predict(X)) > set(names[:1])


@every_model
def test_a_first_part_may_hold_one_class(make):
    X, y = data(60, 2)
    order = np.argsort(-y, kind="stable")  # the class that is second in order comes first
    X, y = X[order], y[order]
    model = make(gamma=0.3).partial_fit(X[:10], y[:10])
    assert (model.predict(X) == 1).all()
    model.partial_fit(X[10:], y[10:])
    whole = make(gamma=0.3, shuffle=False).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-9)


# Data


@every_model
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
def test_layouts_and_precisions_make_the_same_model(make, kernel):
    X, y = data(150, 3)
    plain = make(kernel, gamma=0.3).fit(X, y)
    layouts = [np.asfortranarray, lambda X: X.tolist()]
    if kernel != "laplacian":
        layouts.append(sparse.csr_matrix)
    for layout in layouts:
        model = make(kernel, gamma=0.3).fit(layout(X), y)
        np.testing.assert_array_equal(model.support_, plain.support_)
        np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-8)
    single = make(kernel, gamma=0.3).fit(X.astype(np.float32), y)
    assert single.support_vectors_.dtype == np.float32
    assert (single.predict(X.astype(np.float32)) == plain.predict(X)).mean() > 0.9


def common_letters(A, B):
    return np.array([[float(len(set(a) & set(b))) for b in B] for a in A])


@every_model
def test_a_callable_kernel_takes_any_objects(make):
    words = ["bianco", "rosso", "verde", "white", "thee", "why"] * 4
    labels = ["Italian", "Italian", "Italian", "English", "English", "English"] * 4
    model = make(common_letters, epochs=5).fit(words, labels)
    assert model.score(words, labels) > 0.8
    assert set(model.support_vectors_) <= set(words)


@pytest.mark.parametrize("k", [2, 3])
@every_model
def test_shapes_are_those_documented(make, k):
    X, y = data(90, k)
    for kernel in ("linear", "rbf"):
        model = make(kernel).fit(X, names[y])
        support, columns = len(model.support_), 1 if k == 2 else k
        assert model.dual_coef_.shape == (support, columns)
        assert model.support_vectors_.shape == (support, 4)
        np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
        assert model.support_costs_.shape == (support,)
        assert model.decision_function(X).shape == ((90,) if k == 2 else (90, k))
        assert hasattr(model, "coef_") == (kernel == "linear")
        assert hasattr(model, "gamma_") == (kernel == "rbf")
    if k == 2:
        own = np.where(names[y[model.support_]] == model.classes_[1], 1, -1)
        np.testing.assert_array_equal(np.sign(model.dual_coef_.toarray()[:, 0]), own)


# What is reported


@every_model
def test_the_result_counts_and_claims_no_objective(make):
    X, y = data(300, 3)
    model = make(epochs=2).fit(X, y, validation=(X, y))
    result = model.result_
    assert (result.status, result.iterations, result.exact) == ("completed", 2.0, False)
    assert not result.has_objective
    assert all(math.isnan(value) for value in (result.primal, result.dual, result.gap, result.relative_gap))
    assert result.argmax_calls == 600
    counts = result.operations
    assert 0 < counts["mistakes"] <= counts["updates"] <= 600
    assert counts["removals"] == 0 or len(model.support_) == 20
    assert result.support_patterns == len(model.support_)
    assert result.support_vectors == model.dual_coef_.nnz
    assert result.kernel_values > 0
    assert result.history[-1].online_error == counts["mistakes"] / 600
    errors = [point.error for point in result.history if point.error is not None]
    assert len(errors) > 10
    assert errors[-1] == pytest.approx(1 - model.score(X, y))


def test_a_stream_counts_the_mistakes_of_each_call_alone():
    X, y = data(200, 2)
    model = perceptron(gamma=0.3).partial_fit(X[:100], y[:100])
    first = model.result_.operations["mistakes"]
    model.partial_fit(X[100:], y[100:])
    both = perceptron(gamma=0.3, shuffle=False).fit(X, y).result_.operations["mistakes"]
    assert first + model.result_.operations["mistakes"] == both
    assert model.result_.argmax_calls == 100


def test_a_page_about_it_shows_errors_and_no_objectives(tmp_path):
    X, y = data(300, 3)
    model = passive_aggressive().fit(X, y)
    shown = certificate(model.result_)
    assert "online error" in shown
    assert not any("gap" in name or "objective" in name for name in shown)
    write_report(tmp_path / "page.html", "Passive-aggressive", [{"model": "PA"}], model.result_)
    page = (tmp_path / "page.html").read_text()
    assert "minimises no objective" in page
    assert "nan" not in page
    assert "online error" in page


def test_progress_shows_the_online_error(capsys):
    X, y = data(300, 3)
    perceptron(verbose=2).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("larank: training Kernel perceptron, rbf, 300 examples, 3 classes, memory limit 2000 MB")
    assert all("online error" in line for line in lines[1:])
    perceptron(verbose=1, budget=20).fit(X, y)
    assert "kernel values between about" in capsys.readouterr().err


@every_model
def test_a_time_limit_ends_with_a_warning_that_speaks_of_no_gap(make):
    X, y = data(3000, 3)
    with pytest.warns(TrainingWarning, match=r"ended after time_limit=1e-09 seconds.*; the model is valid$"):
        model = make(time_limit=1e-9).fit(X, y)
    assert model.result_.status == "time_limit"
    assert model.predict(X).shape == (3000,)


# Copies and files


def copies(model, path):
    models.save(model, path)
    return [pickle.loads(pickle.dumps(model)), models.load(path)]


@every_model
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("k", [2, 3])
def test_copies_and_saved_models_predict_the_same(make, kernel, k, tmp_path):
    X, y = data(120, k)
    X = rbf(X) if kernel == "precomputed" else X
    model = make(kernel).fit(X, names[y])
    for copy in copies(model, tmp_path / "model.larank"):
        assert copy.get_params() == model.get_params()
        assert_same_model(copy, model)
        assert repr(copy.result_) == repr(model.result_)
        np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))


@every_model
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("k", [2, 3])
def test_training_goes_on_from_copied_and_saved_models(make, layout, k, tmp_path):
    X, y = data(300, k, seed=4)
    model = make(gamma=0.3).partial_fit(layout(X[:150]), y[:150])
    others = copies(model, tmp_path / "model.larank")
    for one in (model, *others):
        one.partial_fit(layout(X[150:]), y[150:])
    for copy in others:
        # Slots of patterns that have left are not kept.
        here, there = (np.argsort(one.support_) for one in (model, copy))
        np.testing.assert_array_equal(copy.support_[there], model.support_[here])
        np.testing.assert_allclose(copy.decision_function(X), model.decision_function(X), atol=1e-8)


def test_a_copy_goes_on_with_a_third_class():
    X, y = data(200, 3)
    first = y < 2
    model = passive_aggressive(gamma=0.3).fit(X[first], y[first])
    copy = pickle.loads(pickle.dumps(model)).partial_fit(X, y)
    assert copy.decision_function(X).shape == (200, 3)
    assert copy.score(X, y) > 0.7


# scikit-learn


def checks():
    for estimator in (
        *(kind() for kind in ESTIMATORS),
        KernelPerceptron(decision="average"),
        KernelPerceptron(budget=30),
    ):
        for instance, check in estimator_checks_generator(estimator):
            yield pytest.param(instance, check, id=f"{estimator}-{getattr(check, 'func', check).__name__}")


# A weight of two is one longer step, and an example twice is two.
NOT_EQUIVALENT = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_check_estimator(estimator, check):
    name = getattr(check, "func", check).__name__
    if name in NOT_EQUIVALENT:
        pytest.skip("an online algorithm sees an example given twice twice")
    if name == "check_class_weight_classifiers" and getattr(estimator, "budget", None):
        pytest.skip("patterns of any weight leave")
    check(estimator)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_it_is_a_classifier_that_says_what_it_takes(kind):
    assert is_classifier(kind())
    assert kind().__sklearn_tags__().input_tags.sparse
    assert kind("precomputed").__sklearn_tags__().input_tags.pairwise


def test_a_grid_search_finds_parameters():
    search = GridSearchCV(passive_aggressive(), {"C": [1e-6, 1.0], "gamma": [0.1, 0.5]}, cv=3).fit(iris, iris_labels)
    assert search.best_score_ > 0.9
    search = GridSearchCV(perceptron(), {"decision": ["last", "average"]}, cv=3).fit(iris, iris_labels)
    assert search.best_score_ > 0.9


@every_model
def test_a_clone_has_the_parameters_and_nothing_else(make):
    model = make().fit(iris, names[iris_labels])
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not [name for name in vars(copy) if name.endswith("_") or name.startswith("_")]


def test_the_examples_of_the_documentation_are_true():
    results = doctest.testmod(sys.modules[KernelPerceptron.__module__])
    assert results.attempted > 0
    assert results.failed == 0


def test_the_page_about_them_runs(capsys):
    page = (Path(__file__).parents[2] / "docs" / "kernel" / "perceptrons.md").read_text()
    exec(re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1], {})
    assert "perceptron: error 6" in capsys.readouterr().out


# Mistakes of the caller

NUMBER = "must be a finite number"


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("make", "name", "value", "message"),
    [
        *[(perceptron, "margin", v, rf"margin {NUMBER} >= 0, got {v!r}") for v in (-0.1, np.nan, np.inf, "1", None)],
        *[(perceptron, "budget", v, f"budget must be an integer >= 1, got {v!r}") for v in (0, -3, 2.5, "9", True)],
        *[(perceptron, "decision", v, f"decision must be one of 'last', 'average'; got {v!r}") for v in ("vote", None)],
        *[(passive_aggressive, "C", v, f"C {NUMBER} > 0, got {v!r}") for v in (0, -1.0, np.inf, "1", None)],
        *[
            (make, name, value, f"{name} must .*got {value!r}")
            for make in (perceptron, passive_aggressive)
            for name, value in [
                ("epochs", 0),
                ("batch_size", 2.5),
                ("memory_limit", "2GB"),
                ("time_limit", -1),
                ("gamma", "big"),
                ("shuffle", "no"),
                ("n_jobs", 0),
                ("verbose", -1),
                ("kernel", "gauss"),
            ]
        ],
    ],
)
def test_a_bad_parameter_is_named_with_its_value_and_what_would_do(make, name, value, message, call):
    with pytest.raises(ValueError, match=message):
        getattr(make(**{name: value}), call)(iris, iris_labels)


def test_a_budget_and_the_average_cannot_act_together():
    with pytest.raises(
        ValueError, match=r"budget acts with decision='last' only.*got budget=5 with decision='average'"
    ):
        perceptron(budget=5, decision="average").fit(iris, iris_labels)


@pytest.mark.parametrize(("name", "value"), [("margin", 0.5), ("budget", 7), ("gamma", 3.0), ("memory_limit", 1e6)])
def test_what_a_stream_began_with_cannot_change(name, value):
    model = perceptron(gamma=0.3).partial_fit(iris, iris_labels)
    with pytest.raises(ValueError, match=f"{name} must stay as it was .*got {value!r}"):
        model.set_params(**{name: value}).partial_fit(iris, iris_labels)


@every_model
def test_a_memory_limit_that_is_too_small_is_told_the_minimum_and_leaves_the_model(make):
    model = make().fit(iris, iris_labels)
    before = model.predict(iris)
    with pytest.raises(ValueError, match=r"memory_limit must be at least \d+ bytes for .*, got 100$"):
        model.set_params(memory_limit=100).fit(iris, iris_labels)
    np.testing.assert_array_equal(model.predict(iris), before)


@every_model
def test_bad_data_are_refused(make):
    with pytest.raises(ValueError, match="y must hold at least two classes, got one class: 0"):
        make().fit(iris, np.zeros(150, int))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        make().fit(np.where(iris > 2, np.nan, iris), iris_labels)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make().fit(iris, iris_labels[:5])
    with pytest.raises(ValueError, match=r"sample_weight must be finite and not negative, got -1.0 for example 0"):
        make().fit(iris, iris_labels, sample_weight=-np.ones(150))
    with pytest.raises(ValueError, match="class_weight='balanced' needs all examples at once"):
        make(class_weight="balanced").partial_fit(iris, iris_labels)
    with pytest.raises(ValueError, match=r"X has 3 features, but Kernel.* is expecting 4"):
        make().fit(iris, iris_labels).predict(iris[:, :3])
    with pytest.raises(ValueError, match="partial_fit cannot go on: with kernel='precomputed'"):
        make("precomputed").fit(rbf(iris), iris_labels).partial_fit(rbf(iris, np.vstack([iris, iris])), iris_labels)
