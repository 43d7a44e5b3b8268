"""Certificates from a sample of the examples: near the exact ones, as near as they say, and cheap."""

import numpy as np
import pytest

from larank import LaRankClassifier, LaSVMClassifier
from larank.kernel import machine

random = np.random.RandomState(0)
X = random.randn(3000, 5)
y = (X[:, 0] + 0.7 * random.randn(3000) > 0).astype(int) + 2 * (X[:, 1] > 1)
MODELS = [LaRankClassifier, LaSVMClassifier]


@pytest.fixture(autouse=True)
def _nothing_is_cheap(monkeypatch):
    monkeypatch.setattr(machine, "_CHEAP_CERTIFICATE", 0.0)
    monkeypatch.setattr(machine, "_LEAST_SAMPLE", 400)


def fitted(model, seed=0, examples=3000, *, certify="auto", **parameters):
    estimator = model(random_state=seed, n_jobs=1, max_iter=1, **parameters)
    return estimator.fit(X[:examples], y[:examples], certify=certify)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_the_primal_of_a_sample_is_within_its_standard_errors(model, C, monkeypatch):
    monkeypatch.setattr(machine, "_LEAST_SAMPLE", 200)
    deviations = []
    for seed in range(4):
        sampled, exact = fitted(model, seed, 1500, C=C), fitted(model, seed, 1500, C=C, certify=True)
        result, truth = sampled.result_, exact.result_
        assert not result.exact
        assert truth.exact
        assert truth.primal_error == 0
        assert result.dual == pytest.approx(truth.dual, rel=1e-9)
        assert result.gap >= 0
        assert np.isnan(result.violation)
        assert 0 < result.primal_error < 0.2 * truth.primal
        deviations.append((result.primal - truth.primal) / result.primal_error)
    assert np.abs(deviations).max() < 4
    assert 0.1 < np.sqrt(np.mean(np.square(deviations))) < 2


@pytest.mark.parametrize("model", MODELS)
def test_losses_that_are_rare_and_large_are_allowed_for(model):
    random = np.random.RandomState(1)
    some = random.randn(3000, 2)
    labels = (some[:, 0] > 0).astype(int)
    some[:, 0] += np.where(labels, 1, -1)
    wrong = random.choice(3000, 12, replace=False)
    labels[wrong] = 1 - labels[wrong]
    for seed in range(3):
        estimator = model(C=10.0, gamma=0.5, max_iter=1, random_state=seed, n_jobs=1)
        result = estimator.fit(some, labels).result_
        truth = estimator.fit(some, labels, certify=True).result_
        assert abs(result.primal - truth.primal) < 4 * result.primal_error


@pytest.mark.parametrize("model", MODELS)
def test_the_model_does_not_depend_on_the_certificate(model):
    sampled, exact = fitted(model), fitted(model, certify=True)
    np.testing.assert_array_equal(sampled.decision_function(X[:100]), exact.decision_function(X[:100]))
    assert sampled.result_ == sampled.result_
    again = fitted(model).result_
    assert (again.primal, again.primal_error) == (sampled.result_.primal, sampled.result_.primal_error)


@pytest.mark.parametrize("model", MODELS)
def test_a_sample_takes_about_a_twentieth_of_the_kernel_values(model, monkeypatch):
    monkeypatch.setattr(machine, "_LEAST_SAMPLE", 1)
    looked_at = []
    scanned = machine.StreamTraining.scanned

    def counted(self, expansion, coefficients, sample=None):
        for block in scanned(self, expansion, coefficients, sample):
            looked_at.append(len(block[0]))
            yield block

    monkeypatch.setattr(machine.StreamTraining, "scanned", counted)
    result = fitted(model).result_
    assert 0 < sum(looked_at) * result.support_patterns <= 0.08 * result.kernel_values


@pytest.mark.parametrize(
    ("model", "parameters", "certify"),
    [
        *((model, *asked) for model in MODELS for asked in (({}, True), ({"C": np.inf}, "auto"))),
        (LaRankClassifier, {"kernel": "linear"}, "auto"),  # LaSVM has kernel values there too
    ],
)
def test_all_examples_are_looked_at_where_it_is_asked_for_needed_or_cheap(model, parameters, certify):
    some = np.abs(X[:, 0]) > 0.5
    separable = model(random_state=0, max_iter=1, **parameters)
    separable.fit(X[some], (X[some, 0] > 0).astype(int), certify=certify)
    assert separable.result_.exact


def test_the_sample_does_not_depend_on_blocks(monkeypatch):
    large = fitted(LaSVMClassifier).result_
    monkeypatch.setattr(LaSVMClassifier, "_BATCH_SIZE", 32)
    small = fitted(LaSVMClassifier).result_
    assert large.kernel_values != small.kernel_values
    assert large.primal == pytest.approx(small.primal, rel=1e-9)


def test_few_kernel_values_are_cheap_and_a_gap_that_ends_training_is_that_of_all_examples(monkeypatch):
    result = LaRankClassifier(tol=0.1, random_state=0).fit(X, y).result_
    assert result.exact
    assert result.relative_gap <= 0.1
    monkeypatch.setattr(machine, "_CHEAP_CERTIFICATE", 1e8)
    assert fitted(LaRankClassifier).result_.exact
