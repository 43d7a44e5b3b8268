"""What every estimator is checked with: how to make each of them quickly, its data, and what it may be given wrongly.

Estimators are found in `larank.__all__`, and what they can do in their signatures; `test_estimators.py` makes the
claims. A new estimator needs a line in `VARIANTS` only where its defaults would not do on sixty examples.
"""

import contextlib
import inspect
import itertools
import signal
from dataclasses import dataclass, field
from functools import cache
from unittest import mock

import numpy as np
import pytest
from hypothesis import settings
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone, is_classifier
from sklearn.metrics.pairwise import rbf_kernel

import larank
from larank import declare
from larank.ambiguous.meanings import Meaning
from larank.publishing import one_model
from larank.training import loop
from references import optima, pairwise

# Data


def clouds(n=60, classes=3, features=4, seed=0):
    """Clouds of points that overlap, labels 0, 1, ... in turn."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return 1.5 * random.normal(size=(classes, features))[y] + random.normal(size=(n, features)), y


def gram(X, Z=None):
    """Kernel values with the gamma that all cases have, symmetric to the last bit."""
    K = rbf_kernel(X, X if Z is None else Z, gamma=GAMMA)
    return (K + K.T) / 2 if Z is None else K


def part(X, rows):
    """Some of the examples, whatever they are kept in."""
    return X[rows] if hasattr(X, "shape") else [X[i] for i in rows]


GAMMA = 0.4
X, y = clouds()
K = gram(X)
names = np.array(["oak", "ash", "elm"])
_words = np.array(["the", "a", "dog", "cat", "barks", "sleeps"])
_tags = np.array(["DET", "NOUN", "VERB"])
_draws = np.random.default_rng(0).integers(0, 2, (40, 3))
# The first sentence has all tags, because a tagger learns nothing about tags that come later in a stream.
sentences = [_words[[a, 2 + b, 4 + c][: 3 - i % 3]].tolist() for i, (a, b, c) in enumerate(_draws)]
tags = [_tags[: len(words)].tolist() for words in sentences]
_told = [Meaning(words[-1], tuple(map(Meaning, words[1:-1]))) for words in sentences]
meanings = [[right, _told[i - 1]] for i, right in enumerate(_told)]

# Objectives


@dataclass(frozen=True)
class Objective:
    """What a formulation says of a model: primal and dual from its attributes, and the optimum of a general solver."""

    certificate: object  # (model, K, labels, costs) -> primal, dual
    optimum: object  # (K, labels, costs) -> value


def expansion(model):
    """The coefficients, a row for each support pattern; those of LaSVM are in the shape that `SVC` has them in."""
    return model.dual_coef_.T if isinstance(model, larank.LaSVMClassifier) else model.dual_coef_.toarray()


def coefficients(model, n):
    """A row of coefficients for each of n examples."""
    found = expansion(model)
    if len(found) == n and not hasattr(model, "support_vectors_") and model.kernel != "precomputed":
        return found
    beta = np.zeros((n, found.shape[1]))
    beta[model.support_] = found
    return beta


def signs_of(labels):
    """1 for a column's class and -1 for others; two classes have one column."""
    present = np.unique(labels)
    return np.where(labels[:, None] == (present[1:] if len(present) == 2 else present), 1.0, -1.0)


def _multiclass(formulation, constant=0.0):
    def certificate(model, K, labels, costs):
        delta = 1 - np.eye(labels.max() + 1)
        beta = coefficients(model, len(labels))
        scale = getattr(model, "scale_", 1.0)
        return optima.kernel_certificate(beta, K + constant, labels, costs, delta, formulation, scale)[:2]

    def optimum(K, labels, costs):
        return optima.kernel_optimum(K + constant, labels, costs, 1 - np.eye(labels.max() + 1), formulation)

    return Objective(certificate, optimum)


def _one_vs_rest(bias):
    def certificate(model, K, labels, costs):
        alpha = coefficients(model, len(labels))
        return optima.one_vs_rest_certificate(alpha, K @ alpha + model.intercept_, K, signs_of(labels), costs)

    def optimum(K, labels, costs):
        return sum(optima.binary_optimum(K, signs, costs, bias=bias) for signs in signs_of(labels).T)

    return Objective(certificate, optimum)


def _hulls_certificate(model, K, labels, costs):
    alpha = coefficients(model, len(labels))
    return optima.hulls_certificate(alpha, K @ alpha + model.intercept_, K, signs_of(labels))


HULLS = Objective(
    _hulls_certificate, lambda K, labels, costs: sum(optima.hulls_optimum(K, s) for s in signs_of(labels).T)
)


def _linear(formulation):
    """With the constant feature of an intercept; `K` is not looked at."""

    def certificate(model, K, labels, costs):
        Z = optima.with_constant(X[: len(labels)], 1.0)
        W = np.column_stack([model.coef_, model.intercept_])
        a = model.dual_coef_.toarray()
        return optima.primal(formulation, W, Z, labels, costs), optima.dual(formulation, a, Z, labels)

    def optimum(K, labels, costs):
        Z = optima.with_constant(X[: len(labels)], 1.0)
        return optima.optimum(formulation, Z, labels, costs, labels.max() + 1)[1]

    return Objective(certificate, optimum)


def _structured_certificate(model, K, labels, costs):
    W = model.coef_.reshape(labels.max() + 1, -1)
    own = np.array([coefficient for coefficient in model.dual_coef_ if coefficient > 0])
    primal = optima.primal("crammer-singer", W, X[: len(labels)], labels, costs)
    return primal, own.sum() - 0.5 * (W**2).sum()


def _structured_optimum(K, labels, costs):
    return optima.optimum("crammer-singer", X[: len(labels)], labels, costs, labels.max() + 1)[1]


def _pairwise_certificate(model, K, labels, costs):
    sets = np.eye(labels.max() + 1)[labels]
    return pairwise.certificate(coefficients(model, len(labels)), K, sets, costs)


def _pairwise_optimum(K, labels, costs):
    return pairwise.optimum(K, np.eye(labels.max() + 1)[labels], costs)


PAIRWISE = Objective(_pairwise_certificate, _pairwise_optimum)

# Cases

# Estimator, name of a variant, what makes it quick and comparable, and its objective.
VARIANTS = {
    "AmbiguousClassifier": {"": ({}, PAIRWISE), "printed": ({"n_reprocess": 0}, PAIRWISE)},
    "ConceptLabeler": {
        "": ({"hidden_size": 16, "embedding_size": 8}, None),
        "left-right": ({"strategy": "left-right", "hidden_size": 5, "window": 3}, None),
        "independent": ({"strategy": "independent", "window": 1}, None),
        "bags": ({"supervision": "bags", "hidden_size": 8, "window": 3}, None),
        "bags-left-right": ({"supervision": "bags", "strategy": "left-right", "hidden_size": 8}, None),
    },
    "HullerClassifier": {"": ({}, HULLS)},
    "KernelPCAMap": {"": ({}, None), "basis": ({"basis_size": 30, "n_components": 20}, None)},
    "KernelPassiveAggressive": {
        "": ({}, None),
        "intercept": ({"fit_intercept": True}, None),
        "squared": ({"loss": "squared_hinge", "average": True}, None),
    },
    "KernelPerceptron": {
        "": ({}, None),
        "average": ({"average": True}, None),
        "budget": ({"max_support": 12, "margin": 0.1}, None),
    },
    "LaRankClassifier": {
        "": ({}, _multiclass("crammer-singer")),
        "intercept": ({"fit_intercept": True}, _multiclass("crammer-singer", constant=1.0)),
    },
    "LaSVMClassifier": {"": ({}, _one_vs_rest(bias=True))},
    "LinearMulticlassSVC": {
        name if name != "crammer-singer" else "": ({"formulation": name}, _linear(name)) for name in optima.FORMULATIONS
    },
    "MulticlassSVC": {
        "": ({}, _multiclass("crammer-singer")),
        "weston-watkins": ({"formulation": "weston-watkins"}, _multiclass("weston-watkins")),
        "intercept": ({"fit_intercept": True}, _multiclass("crammer-singer", constant=1.0)),
        "published": ({"solver": "published"}, _multiclass("crammer-singer")),
    },
    "PathSearchCV": {
        "": ({"estimator": larank.LinearMulticlassSVC(), "Cs": [1.0], "cv": 3}, None),
        "kernel": ({"estimator": larank.MulticlassSVC(), "Cs": [1.0], "cv": 3}, None),
    },
    "PivotedCholeskyMap": {
        "": ({}, None),
        "rank": ({"n_components": 20}, None),
        "greedy": ({"tol": 0.05, "pivots": "greedy"}, None),
    },
    "PrimalMulticlassSVC": {
        "": ({}, None),
        "max": ({"softmax_gamma": np.inf, "loss": "smoothed_hinge"}, None),
        "sum": ({"softmax_gamma": 0.0, "loss": "squared_hinge", "solver": "cg"}, None),
    },
    "LinearSGDClassifier": {
        name if name != "asgd" else "": (
            {"algorithm": name, "t0": 5.0 if name == "olbfgs" else 100.0, "alpha": 1e-2, "max_iter": 20},
            None,
        )
        for name in ("asgd", "sgdqn", "svmsgd2", "sgd", "olbfgs")
    },
    "SemanticParser": {"": ({}, None), "random": ({"strategy": "random", "update": "mistake"}, None)},
    "SequenceTagger": {"": ({}, None), "greedy": ({"inference": "greedy", "order": 3}, None)},
    "StructuredSVC": {
        "": ({"model": larank.MulticlassModel(3)}, Objective(_structured_certificate, _structured_optimum))
    },
    "TrackingSVC": {"": ({}, _one_vs_rest(bias=False))},
}
# The variants that read examples and kernel values by code of their own; others share what the first variant runs.
READERS = {"KernelPCAMap-basis", "MulticlassSVC-published", "PathSearchCV-kernel", "PivotedCholeskyMap-greedy"}
IS_NIGHTLY = settings.get_current_profile_name() == "nightly"
# What a subclass fixes must not be taken for the default.
UNUSUAL = {"C": 0.5, "class_weight": {0: 2.0, 1: 1.0, 2: 0.5}, "max_iter": 3, "random_state": 3}
ALIKE = {"gamma": GAMMA, "random_state": 0, "n_jobs": 1}


@cache
def names_of(call):
    """Return the names of the parameters of a class or a method."""
    return tuple(inspect.signature(call).parameters)


@dataclass(frozen=True)
class Case:
    """One estimator with the parameters that make it quick."""

    estimator: type
    variant: str = ""
    parameters: dict = field(default_factory=dict)
    objective: Objective | None = None

    def __str__(self):
        return self.estimator.__name__ + (f"-{self.variant}" if self.variant else "")

    def make(self, **parameters):
        parameters = {name: value for name, value in ALIKE.items() if self.takes(name)} | self.parameters | parameters
        if self.is_search and "C" in parameters:  # one candidate
            parameters["Cs"] = [parameters.pop("C")]
        return self.made(**parameters)

    def made(self, **parameters):
        """Return the estimator with these parameters, some of which may be those of the estimator that it trains."""
        own = {name: parameters.pop(name) for name in [*parameters] if name in self.names}
        if self.is_search:
            own["estimator"] = clone(own["estimator"]).set_params(**parameters)
        return self.estimator(**own)

    def make_of_coefficients(self, **parameters):
        """One whose scores are those of its coefficients, and not of an average of weights."""
        return self.make(**({"average": False} if self.takes("average") else {}), **parameters)

    def set(self, model, **parameters):
        """Set parameters of a model, or of the estimator that a search trains."""
        own = {name if name in self.names else f"estimator__{name}": value for name, value in parameters.items()}
        return model.set_params(**own)

    @property
    def names(self):
        """The names of the parameters of its constructor."""
        return names_of(self.estimator)

    def takes(self, *parameters):
        """Whether these are parameters of its constructor, or of the estimator that a search trains."""
        names = {*self.names, *(names_of(type(self.parameters["estimator"])) if self.is_search else ())}
        return names.issuperset(parameters)

    def passes(self, argument, method="fit"):
        """Whether a method takes an argument."""
        return hasattr(self.estimator, method) and argument in names_of(getattr(self.estimator, method))

    @property
    def is_classifier(self):
        return issubclass(self.estimator, ClassifierMixin)

    @property
    def is_transformer(self):
        """Whether it makes features. It has no labels, no certificate of objectives and nothing to show on the way."""
        return issubclass(self.estimator, TransformerMixin)

    @property
    def takes_matrices(self):
        """Whether its examples are rows of features, dense or sparse."""
        return self.is_classifier or (self.is_transformer and not self.takes_tables)

    @property
    def takes_tables(self):
        """Whether its examples are rows of columns of any kind."""
        return self.estimator is larank.TableEncoder

    @property
    def reads(self):
        """Whether claims about what is read are tried with it; the nightly run tries them with every case."""
        return not self.variant or str(self) in READERS or IS_NIGHTLY

    @property
    def asks(self):
        """The methods that need a fitted model."""
        if self.is_transformer:
            return ("transform",)
        return ("predict", "decision_function") if self.is_classifier else ("predict",)

    @property
    def has_kernel(self):
        return self.takes("kernel")

    @property
    def has_support(self):
        """Whether the model says which examples it is made of."""
        without = larank.LinearSGDClassifier, larank.PathSearchCV, larank.PrimalMulticlassSVC
        return self.is_classifier and self.estimator not in without

    @property
    def has_one_function(self):
        """Whether a model of two classes has one column of coefficients."""
        return self.estimator.__name__.startswith(("Huller", "Kernel", "LaSVM", "Tracking"))

    @property
    def streams(self):
        return hasattr(self.estimator, "partial_fit")

    @property
    def is_search(self):
        """Whether it trains many models; what ends a search early is in `test_search.py`."""
        return "cv" in self.names

    @property
    def converges(self):
        """Whether it trains to a tolerance unless asked otherwise."""
        return self.is_search or declare.defaults(self.estimator).get("tol") is not None

    @property
    def can_be_endless(self):
        """Whether `endless` makes training that goes on until something ends it."""
        return not self.is_search and self.takes("max_iter")

    @property
    def weighs(self):
        return self.passes("sample_weight")

    @property
    def data(self):
        """Examples and labels."""
        of_sentences = {larank.SequenceTagger: tags, larank.SemanticParser: meanings, larank.ConceptLabeler: tags}
        return (sentences, of_sentences[self.estimator]) if self.estimator in of_sentences else (X, y)

    @property
    def kernels(self):
        """Parameters and examples of the ways to the data that have code of their own."""
        if not self.has_kernel:
            return {"": ({}, self.data[0])}
        return {
            name: ({"kernel": name}, K if name == "precomputed" else X) for name in ("rbf", "linear", "precomputed")
        }

    def converged(self, **parameters):
        """Run to the end of its own criterion, or for long."""
        if self.variant == "published":
            return self.make(solver=larank.Published(epsilon=1e-6), max_iter=10**6, **parameters)
        if self.estimator is larank.LaSVMClassifier:
            parameters = {"solver": larank.LaSVM(tau=1e-8), **parameters}
        return self.make(tol=1e-6, max_iter=10**6, **parameters) if self.takes("tol") else self.make(**parameters)

    def endless(self, **parameters):
        """Training that does not end by itself."""
        if self.variant == "published":
            endless = larank.Published(selection="cycle", active_set=False, cooling="none")
            return self.make(solver=endless, max_iter=10**9, **parameters)
        if self.estimator is larank.LinearMulticlassSVC:  # rounding alone violates optimality by more
            return self.make(stop="violation", tol=1e-300, max_iter=10**9, **{"C": 100.0, **parameters})
        if self.converges:  # it ends, but not with the first block
            return self.make(tol=1e-9, max_iter=10**9, **parameters)
        return self.make(max_iter=10**9, **parameters)

    def calls(self, *, whole=False):
        """How to train it: `fit`, and `partial_fit` and `path` where there are; `whole`: what sees all examples."""
        yield "fit", lambda model, X, y, **more: model.fit(X, y, **more)
        if self.streams and not whole:
            yield "partial_fit", lambda model, X, y, **more: model.partial_fit(X, y, **more)
        if hasattr(self.estimator, "path") and self.variant != "published":
            yield "path", lambda model, X, y, **more: model.path(X, y, [1.0, 2.0], **more)


def registered():
    """The estimators of the library, by name."""
    found = {name: getattr(larank, name) for name in larank.__all__}
    return {
        name: kind
        for name, kind in found.items()
        if inspect.isclass(kind) and issubclass(kind, BaseEstimator) and hasattr(kind, "fit")
    }


CASES = [
    Case(kind, variant, parameters, objective)
    for name, kind in registered().items()
    for variant, (parameters, objective) in VARIANTS.get(name, {"": ({}, None)}).items()
]


def models_of_subclasses(kind, parameters):
    """Return models of subclasses whose constructors fix, rename and add parameters, each with these values."""
    (name, value), *_ = parameters.items()

    class Fixed(kind):
        def __init__(self):
            super().__init__(**parameters)

    class Renamed(kind):
        def __init__(self, renamed):
            super().__init__(**{**parameters, name: renamed})
            self.renamed = renamed

    class Extended(kind):
        def __init__(self, note):
            super().__init__(**parameters)
            self.note = note

    return [Fixed(), Renamed(value), Extended("x")]


def those(condition=lambda case: True):
    """Parametrise with the cases for which this holds."""
    return pytest.mark.parametrize("case", [case for case in CASES if condition(case)], ids=str)


def readers(condition=lambda case: True):
    """Parametrise with the cases for which this holds and that read examples by code of their own."""
    return those(lambda case: case.reads and condition(case))


every_estimator = those()
transformers = those(lambda case: case.is_transformer)
classifiers = those(lambda case: case.is_classifier)
of_matrices = those(lambda case: case.takes_matrices)
of_kernels = those(lambda case: case.has_kernel)
kernel_machines = those(lambda case: case.has_kernel and case.is_classifier)
of_support = those(lambda case: case.has_kernel and case.has_support)
streams = those(lambda case: case.streams)
classifier_streams = those(lambda case: case.streams and case.is_classifier)
kernel_streams = those(lambda case: case.streams and case.has_kernel)

# Comparing models


def public(model):
    """Its fitted attributes as a reader finds them, but for the certificate."""
    return {
        name: value
        for name, value in vars(one_model(model)).items()
        if name[-1] == "_" and name[0] != "_" and name != "result_"
    }


@cache
def properties(kind):
    """Return the names of the fitted attributes that are properties, such as the weights of taggers."""
    found = dict(inspect.getmembers(kind, lambda member: isinstance(member, property)))
    return [name for name in found if name[-1] == "_" != name[0]]


def chosen(model):
    """Return the model that a search has chosen, or the model itself."""
    return getattr(model, "best_estimator_", model)


def parameters_of(model):
    """Return the parameters, with those of an estimator in place of the estimator."""
    return {name: value for name, value in model.get_params().items() if not isinstance(value, BaseEstimator)}


def scores(model, X):
    """Decision values, or features or predictions where there are none."""
    if isinstance(model, TransformerMixin):
        return model.transform(X)
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


def plain(value):
    """Something NumPy compares."""
    return value.toarray() if sparse.issparse(value) else value


def assert_same_model(one, other, atol=None, but=()):
    """The same attributes to the last bit, or within `atol`."""
    mine, theirs = (
        public(model) | {name: getattr(model, name) for name in properties(type(model)) if hasattr(model, name)}
        for model in (one, other)
    )
    assert mine.keys() - set(but) == theirs.keys() - set(but)
    for name in mine.keys() - set(but):
        left, right = plain(mine[name]), plain(theirs[name])
        if isinstance(left, BaseEstimator):
            assert_same_model(left, right, atol, but)
            continue
        if atol is not None and getattr(left, "dtype", np.dtype(object)).kind == "f":
            np.testing.assert_allclose(left, right, rtol=0, atol=atol, err_msg=name)
        else:
            np.testing.assert_array_equal(np.asarray(left), np.asarray(right), err_msg=name)


def assert_near(found, expected, close):
    """The difference is at most this part of the largest value, and of 1 if all are smaller."""
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=close * max(1, np.abs(expected).max()))


def assert_same_result(one, other):
    """Certificates that differ in nothing but time; that of a transformer is one of its attributes."""
    if isinstance(one, TransformerMixin):
        return
    one, other = chosen(one), chosen(other)
    for name in ("solver", "status", "primal", "dual", "violation", "iterations", "kernel_values", "operations"):
        left, right = getattr(one.result_, name), getattr(other.result_, name)
        assert left == right or (left != left and right != right), name


@contextlib.contextmanager
def unchanged(model, X):
    """What is done to the model leaves its attributes and predictions as they were."""
    attributes, result, before = dict(public(model)), getattr(model, "result_", None), scores(model, X)
    yield
    assert getattr(model, "result_", None) is result
    now = public(model)
    assert now.keys() == attributes.keys()
    assert all(now[name] is value for name, value in attributes.items())
    np.testing.assert_array_equal(np.asarray(scores(model, X), object), np.asarray(before, object))


def assert_valid(model, X, y):
    """It predicts labels it knows, from finite scores, with a certificate in order."""
    predicted = model.predict(X)
    assert len(predicted) == len(y)
    if is_classifier(model):
        f = model.decision_function(X)
        assert f.shape == ((len(y),) if len(model.classes_) == 2 else (len(y), len(model.classes_)))
        assert np.isfinite(f).all()
        best = (f > 0).astype(int) if f.ndim == 1 else f.argmax(axis=1)
        np.testing.assert_array_equal(predicted, model.classes_[best])
    result = chosen(model).result_
    if result.has_objective:
        assert np.isfinite([result.primal, result.dual]).all()
        assert result.gap >= -1e-9 * abs(result.primal)


def assert_certified(case, model, labels, costs=1.0, values=None, close=1e-9):
    """What `result_` says is what the formulas say of the model's attributes; nothing to say without a formula."""
    if case.objective is None:
        return
    costs = np.broadcast_to(np.asarray(costs, float), len(labels))
    primal, dual = case.objective.certificate(model, K if values is None else values, labels, costs)
    assert model.result_.primal == pytest.approx(primal, rel=close, abs=1e-9)
    assert model.result_.dual == pytest.approx(dual, rel=close, abs=close * max(1.0, abs(primal)))


# Refusals


def refuses(message, call, *arguments, error=ValueError, **named):
    """Assert that a call with these arguments raises an error with this message."""
    with pytest.raises(error, match=message):
        call(*arguments, **named)


# Wrong parameters

_NO_NUMBERS = (-1.0, np.nan, np.inf, "1", True)
# What a declared alternative accepts in words, and values that it refuses.
_BY_ALTERNATIVE = {
    declare.Flag: lambda each: ("True(,| or) False", ("no", 3)),
    declare.Choice: lambda each: (".*".join(map(repr, each.choices)), ("nonsense", 3j)),
    declare.Object: lambda each: (rf"{each.kind.__name__}\(", ("nonsense", 3)),
}
_BY_CHECK = {
    "class_weights": ("None, 'balanced' or a dict.*", ("even", 3)),
    "costs_to_try": ("an integer >= 1, at most 10000, or a sequence of numbers", (0, -1, "many", None, True, 2.5)),
    "gammas_to_try": ("an integer >= 1, at most 10000, or a sequence of numbers", (0, -1, "scale", True, 2.5)),
    "device": ("'cpu', 'cuda'.*", ("gpu", "cuda:x", 0, True)),
    "not_zero": ("None or an integer other than 0", (0, 1.5, "a", True)),
    "seed": ("None, an integer from 0 to", ("lucky", -1, 2**32, 0.5, True)),
    "odd": ("an odd number", (0, 2, -1, 1.5, None)),
    "operations": ("one of 'new', 'old', 'optimize'", ("grow",)),
}
# Parameters that a registry or the data check, what they must be and values that are wrong.
_ELSEWHERE = {
    "cv": ("None, an integer >= 2, a splitter or an iterable.*", (1, -3, "five", 2.5)),
    "kernel": ("one of 'linear', 'rbf', .*'precomputed'", ("gauss", None, 3)),
    "scoring": ("None, one of sklearn.metrics.get_scorer_names.. or a callable", ("good", 3)),
    "selection": ("one of 'random', 'gradient', 'active', 'autoactive'.*", ("best", None)),
}


def wrong_values(kind, name):
    """Return what a parameter must be, and values it must not have, by its declaration; None if the data decide."""
    each = declare.parameters_of(kind)[name]
    if each.accepted is None:
        return _ELSEWHERE.get(name) if each.check is None else _BY_CHECK.get(each.check.__name__)
    wanted, values = [], []
    for alternative in each.accepted:
        if isinstance(alternative, declare.Number):
            wanted.append("a finite number")
            bounds = (alternative.least - 1, alternative.above, alternative.below, 2 * alternative.most)
            values += [*_NO_NUMBERS, *(bound for bound in bounds if np.isfinite(bound))]
        elif isinstance(alternative, declare.Whole):
            wanted.append("an integer")
            values += [alternative.least - 1, alternative.most + 1, 2.5, "9", True]
        elif not isinstance(alternative, declare.Nothing):
            wanted.append(_BY_ALTERNATIVE[type(alternative)](alternative)[0])
            values += _BY_ALTERNATIVE[type(alternative)](alternative)[1]
    refused = [value for value in (*values, None) if not any(other.accepts(value) for other in each.accepted)]
    return ".*".join(wanted), tuple({repr(value): value for value in refused}.values())


# What is wrong in ways of its own, with the words that must be there; for estimators that have all these parameters.
WRONG_OTHERWISE = [
    ({"random_state": "lucky"}, "random_state must be None, an integer .*; got 'lucky'"),
    ({"class_weight": "even"}, "class_weight.*'even'"),
    ({"class_weight": {0: -1.0}}, r"class_weight must not be negative or infinite; got {0: -1.0}"),
    ({"class_weight": {0: np.inf}}, r"class_weight must not be negative or infinite; got {0: inf}"),
    ({"kernel": "gauss"}, "kernel must be .*; got 'gauss'.*callable"),
    *(
        ({"kernel": kernel, "gamma": "big"}, "gamma must be .*a finite number > 0.*; got 'big'")
        for kernel in ("linear", "precomputed")
    ),
    ({"label_costs": np.ones((2, 3))}, r"label_costs must have .* per class, shape \(3, 3\); got \(2, 3\)"),
    ({"label_costs": np.ones((2, 2))}, r"label_costs must have .* per class, shape \(3, 3\); got \(2, 2\)"),
    ({"label_costs": np.ones((3, 3))}, "label_costs must .* zeros on the diagonal"),
    ({"label_costs": np.eye(3) - 1}, "label_costs must hold finite numbers >= 0"),
    ({"label_costs": np.where(np.eye(3), 0, np.nan)}, "label_costs must hold finite numbers >= 0"),
    ({"label_costs": "high"}, "label_costs must .*'high'"),
    ({"label_costs": {(0, 7): 2.0}}, r"label_costs must map pairs of labels to margins; got the key \(0, 7\)"),
    ({"label_costs": {(0, 1): -1.0}}, "label_costs must hold finite numbers >= 0"),
    ({"label_kernel": np.eye(2)}, r"label_kernel must have one row and column per class.*\(3, 3\); got .*\(2, 2\)"),
    ({"label_kernel": np.ones(3)}, r"label_kernel must have one row and column per class.*got shape \(3,\)"),
    ({"label_kernel": -np.eye(3)}, "label_kernel must be positive semi-definite, got the eigenvalue -1;"),
    ({"label_kernel": np.triu(np.ones((3, 3)))}, r"label_kernel must be symmetric, got 1.0 in \[0, 1\] and 0.0 in"),
    ({"label_kernel": np.full((3, 3), np.nan)}, "label_kernel must hold finite numbers, got nan"),
    ({"label_kernel": np.diag([1, np.inf, 1])}, "label_kernel must hold finite numbers, got inf"),
    ({"label_kernel": np.zeros((3, 3))}, "label_kernel must not be zero"),
    ({"label_kernel": "tree"}, "label_kernel must be an array of numbers.*'tree'"),
]
# With what there is no partial_fit.
NEEDS_ALL_EXAMPLES = [
    ({"tol": 0.1}, "with tol=0.1, because .*makes one pass .*; tol must be None"),
    ({"class_weight": "balanced"}, "with class_weight='balanced', which needs all examples .* a dict or None"),
    ({"selection": "active"}, "with selection='active', because .* every example .*selection must be 'random'"),
    ({"selection": larank.kernel.selection.Active(9)}, r"with selection=Active\(.*selection must be 'random'"),
    ({"selection": larank.kernel.selection.Random(5)}, r"with selection=Random\(.*selection must be 'random'"),
    ({"early_stopping": True}, "with early_stopping=True, because it makes one pass; early_stopping must be False"),
    ({"sharpness": 1.0, "max_iter": 2}, "with sharpness=1.0, which weighs .*sharpness must be 0"),
    ({"solver": "svmstruct"}, "with solver='svmstruct', which needs all examples .* must be 'larank', 'perceptron' or"),
]
# What a stream began with cannot change.
FIXED = {
    "alpha": 0.5,
    "formulation": "one-vs-rest",
    "loss": "squared_hinge",
    "kernel": "linear",
    "gamma": 2.0,
    "degree": 2,
    "coef0": 1.0,
    "memory_limit": 1e9,
    "label_costs": np.ones((3, 3)) - np.eye(3),
    "margin": 0.5,
    "max_support": 7,
    "n_steps": 3,
    "n_reprocess": 3,
}


# Wrong examples and labels


def spoiled(X, place, value):
    X = X.copy()
    X[place] = value
    return X


def _csr(name, place, value, kind="csr"):
    """Sparse examples with one number of their structure replaced."""
    stored = sparse.csr_matrix(X).asformat(kind)
    getattr(stored, name)[place] = value
    return stored


ROWS = "X must have row indices from 0 to 59, .*; got 1000000000"
COLUMNS = r"X must have column indices from 0 to 3, .*; got 1000"
STRUCTURE = "X must have an indptr that never decreases"
LEAVES_ONE = "must leave at least two classes with a weight above zero"
# What replaces the usual arguments of training, and the message.
REFUSED = {
    "sparse without examples": ({"X": sparse.csr_matrix(X[:0]), "y": y[:0]}, r"0 sample\(s\).*minimum of 1"),
    "sparse without features": ({"X": sparse.csr_matrix(X[:, :0])}, r"0 feature\(s\).*minimum of 1"),
    "a vector": ({"X": X[:, 0]}, "Expected 2D array, got 1D array"),
    "a number": ({"X": 3.0}, "Expected 2D array, got scalar array"),
    "three dimensions": ({"X": X[:, :, None]}, "X with dim 3|Found array with dim 3"),
    "words": (
        {"X": [["red"], ["green"]] * 30},
        r"column 0 holds 'red' in row 0\. larank\.TableEncoder .*could not convert string to float: 'red'",
    ),
    "objects": (
        {"X": np.where(X > 2, "red", X.astype(object))},
        r"larank\.TableEncoder makes numbers of words and missing values.*could not convert string to float: 'red'",
    ),
    "an integer too large": ({"X": np.where(X > 2, 10**400, X.astype(object))}, r"column \d+ holds 10{400} in"),
    "NaN": (
        {"X": spoiled(X, (3, 2), np.nan)},
        r"column 2 holds nan in row 3\. larank\.TableEncoder .*Input X contains NaN",
    ),
    "infinity": ({"X": spoiled(X, (3, 2), np.inf)}, r"column 2 holds inf in row 3\. Input X contains infinity"),
    "minus infinity": ({"X": spoiled(X, (3, 2), -np.inf)}, "Input X contains infinity"),
    "sparse NaN": ({"X": sparse.csr_matrix(spoiled(X, (3, 2), np.nan))}, "Input X contains NaN"),
    "sparse infinity": ({"X": sparse.csr_matrix(spoiled(X, (3, 2), np.inf))}, "Input X contains infinity"),
    "column too large": ({"X": _csr("indices", 5, 1000)}, COLUMNS),
    "rows that run backwards": ({"X": _csr("indptr", 5, 100)}, STRUCTURE),
    "columns that run backwards": ({"X": _csr("indptr", 2, 2**30, "csc")}, STRUCTURE),
    "row of a triple too large": ({"X": _csr("row", 5, 10**9, "coo")}, ROWS),
    "too few labels": ({"y": y[:5]}, r"inconsistent numbers of samples: \[60, 5\]"),
    "continuous labels": ({"y": X[:, 0]}, "Unknown label type: continuous"),
    "NaN as a label": ({"y": np.where(y == 0, np.nan, y)}, "Input y contains NaN"),
    "no labels": ({"y": None}, "requires y to be passed, but the target y is None"),
    "all zero": ({"sample_weight": np.zeros(60)}, "(?i)sample.weight"),
    "too few weights": ({"sample_weight": np.ones(59)}, r"sample_weight.shape == \(59,\), expected \(60,\)"),
    "NaN as a weight": ({"sample_weight": np.full(60, np.nan)}, "Input sample_weight contains NaN"),
    "infinite weights": ({"sample_weight": np.full(60, np.inf)}, "Input sample_weight contains infinity"),
    "two columns of weights": ({"sample_weight": np.ones((60, 2))}, "[Ss]ample.weight"),
    "one class of numbers": ({"y": np.zeros(60, int)}, "y must hold at least two classes, got one class: 0$"),
    "one class of words": ({"y": np.full(60, "oak")}, "y must hold at least two classes, got one class: 'oak'$"),
    "one class with weights": ({"sample_weight": (y == 1).astype(float)}, LEAVES_ONE),
    "one class with class weights": ({"class_weight": {0: 0.0, 1: 0.0}}, LEAVES_ONE),
    "examples alone": ({"validation": X}, r"validation must be a pair \(X, y\), got ndarray"),
    "a count": ({"validation": 3}, r"validation must be a pair \(X, y\), got int"),
    "two features": ({"validation": (X[:, :2], y)}, "X has 2 features, but ESTIMATOR is expecting 4"),
    "five labels": ({"validation": (X, y[:5])}, "inconsistent numbers of samples"),
    "other labels": ({"validation": (X, y + 9)}, "validation must have labels that y has too"),
    "words as labels": ({"validation": (X, y.astype(str))}, "validation must have labels that y has too"),
    "two columns of labels": ({"y": np.column_stack([y, y])}, "y should be a 1d array"),
    "a negative weight": (
        {"sample_weight": np.where(np.arange(60) == 3, -0.5, 1.0)},
        "^sample_weight must be finite and not negative, got -0.5 for example 3; "
        "a negative weight would reward errors. Use 0 to omit an example$",
    ),
    "an unknown class": ({"class_weight": {17: 1.0}}, "not in class_weight"),
    "weightless classes": ({"class_weight": dict.fromkeys(range(3), 0)}, "leave no example with a weight above zero"),
    "no symmetry": (
        {"X": spoiled(K, (3, 7), 0.123), "kernel": "precomputed"},
        r"symmetric, got X\[3, 7\] = 0.123 and X\[7, 3\] =",
    ),
    "kernel of NaN": ({"X": spoiled(K, (3, 7), np.nan), "kernel": "precomputed"}, "Input X contains NaN"),
    "kernel of infinity": ({"X": spoiled(K, (3, 7), np.inf), "kernel": "precomputed"}, "Input X contains infinity"),
    "twenty columns": (
        {"X": K[:, :20], "kernel": "precomputed"},
        r"X must be a square matrix .*kernel='precomputed', got \(60, 20\)",
    ),
}


def refused(case):
    """Yield what an estimator refuses: the arguments of training, other parameters of its constructor, the message."""
    for what, (arguments, message) in REFUSED.items():
        learns = case.is_classifier or what == "a negative weight" or {"y", "sample_weight"}.isdisjoint(arguments)
        takes = case.takes_matrices if "X" in arguments else learns
        if not takes or not all(name in ("X", "y") or case.takes(name) or case.passes(name) for name in arguments):
            continue
        if case.estimator is larank.AmbiguousClassifier and what == "two columns of labels":
            message = "every example must have at least one candidate"  # they are a matrix of weights
        parameters = {name: value for name, value in arguments.items() if case.takes(name)}
        given = {name: value for name, value in arguments.items() if name not in parameters}
        if "sample_weight" in given:
            given["sample_weight"] = given["sample_weight"][: len(case.data[1])]
        yield what, given, parameters, message.replace("ESTIMATOR", case.estimator.__name__)


# Layouts


def _wide(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _read_only(X):
    X.flags.writeable = False
    return X


def _unsorted(X):
    """Every value in two halves, columns in descending order."""
    n, features = X.shape
    columns = np.tile(np.repeat(np.arange(features)[::-1], 2), n).astype(np.int32)
    values = np.repeat(X[:, ::-1], 2, axis=1).ravel() / 2
    return sparse.csr_matrix((values, columns, np.arange(n + 1, dtype=np.int32) * 2 * features), shape=X.shape)


def layouts():
    import pandas as pd
    import polars as pl

    return {
        "Fortran order": np.asfortranarray,
        "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
        "read only": lambda X: _read_only(X.copy()),
        "other byte order": lambda X: X.astype(X.dtype.newbyteorder()),
        "list": lambda X: X.tolist(),
        "pandas": lambda X: pd.DataFrame(X, columns=list("abcd")),
        "polars": lambda X: pl.DataFrame(X, schema=list("abcd")),
    }


SPARSE_LAYOUTS = {
    "csr of 64 bit": lambda X: _wide(sparse.csr_matrix(X)),
    "csr array": sparse.csr_array,
    "csc": sparse.csc_matrix,
    **{name: getattr(sparse, f"{name}_array") for name in ("coo", "lil", "dok", "bsr", "dia")},
    "unsorted halves": _unsorted,
}

# Interrupts


@contextlib.contextmanager
def interrupt_when_training(look=2):
    """Press Ctrl-C at this look of the training loop; the handler before must be back afterwards."""
    before, end, looks = signal.getsignal(signal.SIGINT), loop._Run.end, itertools.count(1)

    def pressed(run, **optimal):
        if next(looks) == look:
            signal.raise_signal(signal.SIGINT)
        return end(run, **optimal)

    with mock.patch.object(loop._Run, "end", pressed):
        yield
    assert signal.getsignal(signal.SIGINT) is before


class Interrupting:
    """A kernel that does something during one of its calls."""

    def __init__(self, call, action):
        self.call, self.action, self.calls = call, action, 0

    def __call__(self, A, B):
        self.calls += 1
        if self.calls == self.call:
            self.action()
        return gram(A, B)


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


def fail(error=ZeroDivisionError):
    raise error("mine")


def splits(n, *cuts):
    """Stretches of a stream of n examples, cut at these places."""
    return [np.arange(first, last) for first, last in itertools.pairwise([0, *cuts, n])]
