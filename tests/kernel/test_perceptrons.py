"""KernelPerceptron and KernelPassiveAggressive: the algorithms on any data, as estimators of scikit-learn."""

import math
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import PassiveAggressiveClassifier, Perceptron
from sklearn.metrics.pairwise import rbf_kernel

from checks import coefficients
from larank import KernelPassiveAggressive, KernelPerceptron
from larank.data import models
from larank.report import write_report
from references.perceptrons import PASSIVE_AGGRESSIVE_RULES, perceptron_rule, reference
from sessions import in_order_of_arrival, orders_of_fit

perceptron, passive_aggressive = (
    partial(kind, random_state=0, n_jobs=1) for kind in (KernelPerceptron, KernelPassiveAggressive)
)


MODELS = {
    "last": perceptron,
    "average": partial(perceptron, average=True),
    "budget": partial(perceptron, max_support=20, margin=0.1),
    "passive-aggressive": passive_aggressive,
    "squared": partial(passive_aggressive, loss="squared_hinge"),
    "averaged-squared": partial(passive_aggressive, loss="squared_hinge", average=True),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def data(n, k, seed=0, dimensions=4):
    """Examples of k overlapping classes, every class among the first."""
    random = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), random.integers(0, k, n - k)])
    return 1.5 * random.normal(size=(k, dimensions))[y] + random.normal(size=(n, dimensions)), y


def four_passes(model, X, y):
    for _ in range(4):
        model.partial_fit(X, y)
    return model


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(
    ("make", "C", "rule"),
    [
        (perceptron, 1.0, perceptron_rule()),
        (partial(perceptron, margin=0.5), 1.0, perceptron_rule(0.5)),
        *(
            (partial(passive_aggressive, loss=loss, C=C), C, rule)
            for loss, rule in PASSIVE_AGGRESSIVE_RULES.items()
            for C in (0.2, 1.0)
        ),
    ],
)
def test_it_is_the_algorithm_of_the_thesis_and_weights_are_factors_on_costs(make, C, rule, average, k):
    (X, y), orders = data(200, k), orders_of_fit(200, passes=3)
    y[orders[0]] = in_order_of_arrival(y[orders[0]])
    K, weight = rbf_kernel(X, gamma=0.3), np.random.default_rng(0).uniform(0.5, 2, 200)
    history = reference(K, y, C * weight, orders, rule)
    expected = history.mean(axis=0) if average else history[-1]
    for kernel, some in (("precomputed", K), ("rbf", X)):
        model = make(kernel, gamma=0.3, average=average, max_iter=3).fit(some, y, sample_weight=weight)
        np.testing.assert_allclose(coefficients(model, 200), expected, atol=1e-9)
        scores = K @ expected
        np.testing.assert_allclose(model.decision_function(some), scores[:, 0] if k == 2 else scores, atol=1e-8)


def test_with_a_linear_kernel_it_is_the_perceptron_of_scikit_learn():
    X, y = data(200, 2, seed=3)
    theirs = Perceptron(fit_intercept=False, shuffle=False, max_iter=4, tol=None).fit(X, y)
    np.testing.assert_allclose(four_passes(perceptron("linear"), X, y).coef_, theirs.coef_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.*PassiveAggressive.*:FutureWarning")
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_with_a_linear_kernel_it_is_the_passive_aggressive_classifier_of_scikit_learn(C, loss):
    X, y = data(200, 2, seed=3)
    theirs = PassiveAggressiveClassifier(C=C, loss=loss, fit_intercept=False, shuffle=False, max_iter=4, tol=None)
    ours = four_passes(passive_aggressive("linear", C=C, loss=loss), X, y)
    np.testing.assert_allclose(ours.coef_, theirs.fit(X, y).coef_, rtol=1e-7, atol=1e-9)


def test_an_example_at_the_origin_gets_no_coefficient():
    X, y = data(400, 4, seed=5)
    X[7] = 0
    assert 7 not in passive_aggressive("linear").fit(X, y).support_


def test_the_average_is_steadier_than_the_last_decision():
    X, y = data(1200, 3, seed=6)
    last, average = (
        [1 - MODELS[kind](random_state=seed).fit(X[:800], y[:800]).score(X[800:], y[800:]) for seed in range(5)]
        for kind in ("last", "average")
    )
    assert np.mean(average) < np.mean(last)
    assert np.std(average) < np.std(last)


@every_model
def test_the_result_counts_and_claims_no_objective(make):
    X, y = data(300, 3)
    model = make(max_iter=2).fit(X, y, validation=(X, y))
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


@every_model
def test_a_stream_counts_what_happened_in_all_calls(make, tmp_path):
    X, y = data(200, 2)
    model = make(gamma=0.3).partial_fit(X[:100], y[:100])
    models.save(model, tmp_path / "model")
    model = models.load(tmp_path / "model").partial_fit(X[100:150], y[100:150]).partial_fit(X[150:], y[150:])
    whole = make(gamma=0.3).partial_fit(X, y).result_
    assert model.result_.operations == whole.operations
    assert model.result_.argmax_calls == 200
    assert model.result_.history[-1].online_error == whole.history[-1].online_error


def test_a_page_about_it_shows_errors_and_no_objectives(tmp_path):
    result = passive_aggressive().fit(*data(300, 3)).result_
    assert "online error" in result.figures()
    assert not any("gap" in name or "objective" in name for name in result.figures())
    write_report(tmp_path / "page.html", "Passive-aggressive", [{"model": "PA"}], result)
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
    perceptron(verbose=1, max_support=20).fit(X, y)
    assert "kernel values between about" in capsys.readouterr().err
