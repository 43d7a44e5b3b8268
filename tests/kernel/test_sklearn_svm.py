"""scikit-learn's own tests of its support vector machines, run with larank's.

The tests are those of the installed scikit-learn: its module is executed with `SVC` and `LinearSVC` replaced by
adapters, which have their constructors and train `LaSVMClassifier` and `LinearMulticlassSVC`. `NOT_OURS` says why a
test is not to be passed; a test that passes unexpectedly is reported. Tests of other machines are not collected.
"""

import importlib.util
import inspect
import itertools
import re
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from sklearn import svm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from larank import LaSVM, LaSVMClassifier, LinearMulticlassSVC

# Adapters


def storing(machine):
    """Return a constructor with the parameters of a machine, which it stores."""
    signature = inspect.signature(machine.__init__)

    def store(self, *values, **parameters):
        given = signature.bind(self, *values, **parameters)
        given.apply_defaults()
        vars(self).update({name: value for name, value in given.arguments.items() if name != "self"})

    store.__signature__ = signature
    return store


class Adapter(ClassifierMixin, BaseEstimator):
    """Has the parameters of a machine of scikit-learn, and trains one of larank, whose attributes are its own."""

    def fit(self, X, y, sample_weight=None):
        self._machine = self._made().fit(X, y, sample_weight)
        return self

    def __getattr__(self, name):
        if name.startswith("_") or "_machine" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return getattr(self._machine, name)

    def __sklearn_is_fitted__(self):
        return "_machine" in vars(self)

    def __sklearn_tags__(self):
        return self._made().__sklearn_tags__()

    def predict(self, X):
        check_is_fitted(self)
        return self._machine.predict(X)

    def decision_function(self, X):
        check_is_fitted(self)
        return self._machine.decision_function(X)


class SVC(Adapter):
    """One problem for two classes, as in scikit-learn; for more, one against the rest in place of one against one."""

    __init__ = storing(svm.SVC)

    def _made(self):
        return LaSVMClassifier(
            self.kernel,
            **{name: getattr(self, name) for name in ("C", "gamma", "degree", "coef0", "class_weight")},
            tol=1e-6,
            max_iter=10_000 if self.max_iter == -1 else self.max_iter,
            random_state=3,
            solver=LaSVM(tau=1e-9),
        )

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self._gamma = getattr(self._machine, "gamma_", None)
        return self

    def __getattr__(self, name):
        """Support vectors are in the order of their classes, those of a class in that of the examples."""
        found = super().__getattr__(name)
        if name not in ("support_", "support_vectors_", "dual_coef_"):
            return found
        order = np.lexsort((self._machine.support_, self._machine.support_labels_))
        return found[:, order] if name == "dual_coef_" else found[order]


class LinearSVC(Adapter):
    """With the hinge loss, whichever is asked for."""

    __init__ = storing(svm.LinearSVC)

    def _made(self):
        formulations = {"ovr": "one-vs-rest", "crammer_singer": "crammer-singer"}
        names = ("C", "tol", "max_iter", "fit_intercept", "intercept_scaling", "class_weight")
        alike = {name: getattr(self, name) for name in names}
        return LinearMulticlassSVC(formulations[self.multi_class], **alike, random_state=0)


class Elsewhere(BaseEstimator):
    """A machine that larank does not have."""

    def __init__(self, *values, **parameters):
        """All are welcome."""

    def fit(self, *data, **more):
        pytest.skip(f"larank has no {type(self).__name__}")

    predict = get_params = set_params = fit


MACHINES = {"SVC": SVC, "LinearSVC": LinearSVC} | {
    name: type(name, (Elsewhere,), {}) for name in ("NuSVC", "SVR", "NuSVR", "LinearSVR", "OneClassSVM")
}

# scikit-learn's tests

_PROBABILITIES = "LaSVM has no probabilities; CalibratedClassifierCV adds them to any classifier"
_PAIRS = "more than two classes are one against the rest, not one against one"
_NEGATIVE = "a negative weight is an error here, as everywhere in larank, and not a weight of zero"
_WORDS = "what is wrong is said in other words"
_PRIVATE = "it reaches into private attributes"
_LIBLINEAR = "larank has neither the penalty l1 nor LIBLINEAR's choice of primal and dual"


UNKNOWN_TO_LIBLINEAR = ("True-l1-hinge", "True-l1-squared_hinge", "False-l1-hinge", "False-l2-hinge")

# Tests that are not to be passed, or some of their parameters, and why.
NOT_OURS = {
    **dict.fromkeys(("test_probability", "test_hasattr_predict_proba"), _PROBABILITIES),
    **dict.fromkeys(("test_probability_raises_futurewarning", "test_svc_nusvc_probA_probB_deprecated"), _PROBABILITIES),
    **dict.fromkeys(("test_decision_function_shape", "test_svc_invalid_break_ties_param"), _PAIRS),
    **{f"test_linearsvc_parameters[{each}]": _LIBLINEAR for each in UNKNOWN_TO_LIBLINEAR},
    **dict.fromkeys(("test_tweak_params", "test_svc_raises_error_internal_representation"), _PRIVATE),
    "test_dense_liblinear_intercept_handling": _LIBLINEAR,
    "test_precomputed": f"{_PAIRS}: on iris the linear machine has 96 % where pairs have 99 %",
    "test_svc_ovr_tie_breaking[SVC]": f"{_PAIRS}, so predictions never differ from the largest score",
    "test_n_iter_libsvm": "n_iter_ counts passes over the data, not the steps of each pair of classes",
    "test_libsvm_convergence_warnings": "max_iter=2 counts passes over the data, not steps, and they are enough",
    "test_linear_svm_convergence_warnings": f"{_WORDS}; it is a ConvergenceWarning all the same",
    "test_negative_sample_weights_mask_all_samples[weights-are-zero-SVC]": _WORDS,
    "test_negative_sample_weights_mask_all_samples[weights-are-negative-SVC]": _NEGATIVE,
    "test_negative_weights_svc_leave_just_one_label": _NEGATIVE,
    "test_negative_weights_svc_leave_two_labels[partial-mask-label-1-SVC]": _NEGATIVE,
    "test_negative_weight_equal_coeffs[partial-mask-label-1-SVC]": _NEGATIVE,
    "test_bad_input": "a model of dense examples predicts sparse ones",
    "test_svc_nonfinite_params": f"{_WORDS}, before training",
    "test_sparse_precomputed": f"{_WORDS}, those of scikit-learn's other estimators",
    "test_custom_kernel_not_array_input[SVC]": "its kernel is right only for all examples with all, not for blocks",
}
# Exceptions of tests that are not to be passed; an assertion fails in all others.
RAISES = {
    "test_probability": AttributeError,
    "test_svc_raises_error_internal_representation": AttributeError,
    "test_negative_weights_svc_leave_two_labels": ValueError,
    "test_negative_weight_equal_coeffs": ValueError,
    "test_custom_kernel_not_array_input": IndexError,
}
# Tests of functions, and tests that need machines which larank does not have, whatever their parameters.
NOT_COLLECTED = re.compile(
    "test_(dual_auto|dual_auto_edge_cases|decision_function_shape_two_class|immutable_coef_property|linearsvr|svr"
    "|linearsvr_fit_sampleweight|oneclass|oneclass_decision_function|oneclass_score_samples|svr_coef_sign|svr_errors"
    "|sparse_fit_support_vectors_empty|svr_predict|unfitted)"
)
MODULE = "sklearn.svm.tests.test_svm"


def with_ours(name):
    """The module of this name, executed with our machines in the place of scikit-learn's."""
    if importlib.util.find_spec(name.rpartition(".")[0]) is None:
        pytest.skip("the installed scikit-learn comes without its tests", allow_module_level=True)
    module = importlib.util.module_from_spec(importlib.util.find_spec(name))
    with mock.patch.multiple(svm, **MACHINES):
        module.__spec__.loader.exec_module(module)
    module.svm = SimpleNamespace(**{**vars(svm), **MACHINES})
    return module


def is_ours(values):
    """Return whether none of the parameters of a test is a machine that larank does not have."""
    values = getattr(values, "values", values)
    values = values if isinstance(values, (list, tuple)) else [values]
    return not any(Elsewhere in getattr(value, "__mro__", type(value).__mro__) for value in values)


def has_ours(test):
    """Remove the parameters with machines that larank does not have, and return whether others are left."""
    marks = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            (names, values), ids = mark.args, mark.kwargs.get("ids") or itertools.repeat(None)
            kept = [(each, name) for each, name in zip(values, ids, strict=False) if is_ours(each)]
            ids = [name for _, name in kept] if "ids" in mark.kwargs else None
            mark = pytest.mark.parametrize(names, [each for each, _ in kept], ids=ids).mark
        marks.append(mark)
    test.pytestmark = marks
    return all(mark.args[1] for mark in marks if mark.name == "parametrize")


globals().update(
    {
        name: found
        for name, found in vars(with_ours(MODULE)).items()
        if name.startswith("test_") and not NOT_COLLECTED.fullmatch(name) and has_ours(found)
    }
)
pytestmark = pytest.mark.filterwarnings("ignore::larank.TrainingWarning")


@pytest.fixture
def global_random_seed():
    return 0


@pytest.fixture(autouse=True)
def expected(request):
    """A test in `NOT_OURS` must fail."""
    reason = NOT_OURS.get(request.node.name, NOT_OURS.get(request.node.originalname))
    if reason is not None:
        raises = RAISES.get(request.node.originalname, (AssertionError, pytest.fail.Exception))
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason, raises=raises))


def test_every_reason_is_that_of_a_test(request):
    here = [item for item in request.session.items if item.path == request.path]
    if len(here) < 60:
        pytest.skip("only some were asked for")
    assert NOT_OURS.keys() <= {item.name for item in here} | {item.originalname for item in here}
