"""scikit-learn's `check_estimator` for every estimator of arrays: all kernels, formulations and schedules.

`LEFT_OUT` is the one list of checks that are not to be passed, with a reason each, and with an estimator of
scikit-learn that does not pass them either. A check on it that passes is reported, too. `docs/promises.md` shows users
the same list.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest import SkipTest

import pytest
from sklearn.base import BaseEstimator
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator

from checks import CASES, IS_NIGHTLY, Case, plain, registered
from larank import (
    BlockSteps,
    KernelPassiveAggressive,
    KernelPerceptron,
    LaRank,
    LaRankClassifier,
    LaSVM,
    LinearMulticlassSVC,
    LinearSGDClassifier,
    MulticlassSVC,
    PrimalMulticlassSVC,
    Published,
    TrackingSVC,
)
from larank.blocks.kernels import kernel_names
from larank.maps import KernelMap

# Settings


def closeness(A, B):
    """A kernel of one's own, which takes sparse rows, too."""
    return laplacian_kernel(plain(A), plain(B), gamma=0.1)


KERNELS = {
    **{name: name for name in ("rbf", "linear", "poly", "sigmoid", "laplacian", "precomputed")},
    "callable": closeness,
}
# Estimators, names of settings that are no variants in `checks`, and their parameters.
FURTHER = {
    "LaRankClassifier": {
        "fixed": {"solver": LaRank(schedule="fixed")},
        "gap": {"tol": 0.01},
        "device": {"solver": BlockSteps("cpu")},
    },
    "MulticlassSVC": {"device": {"solver": BlockSteps("cpu")}},
    "LaSVMClassifier": {"gap": {"tol": 0.01}, "active": {"selection": "active"}},
    "LinearSGDClassifier": {"one-vs-rest": {"formulation": "one-vs-rest"}},
    "TrackingSVC": {"simple": {"algorithm": "simple"}},
}
# Instead of what is chosen for other tests: what fits the examples of these; otherwise the defaults.
CHOSEN = {
    "KernelPCAMap-basis": {"basis_size": 10},
    "KernelPerceptron-budget": {"max_support": 100, "margin": 0.0},
    "PathSearchCV": {"estimator": LinearMulticlassSVC(random_state=0), "Cs": [1.0], "cv": 3},
    "PathSearchCV-kernel": {"estimator": MulticlassSVC(random_state=0), "Cs": [1.0], "cv": 3},
    "PivotedCholeskyMap-rank": {"n_components": 3},
    **{f"LinearSGDClassifier-{name}": {"algorithm": name} for name in ("sgdqn", "svmsgd2", "sgd")},
    "LinearSGDClassifier": {},
    "LinearSGDClassifier-olbfgs": {"algorithm": "olbfgs", "loss": "log_loss"},  # it looks for curvature
}
# These checks demand 1e-7 of predictions, more than defaults promise.
EXACT = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
# An estimator passes all checks with its defaults and with a precomputed kernel, because the examples are checked in
# another way there. Variants pass the checks whose results depend on how training goes on, other kernels those that do
# not depend on weights alone, and another device those of its kernel values.
VALUES = ("check_classifiers_train", "check_estimator_sparse_matrix", "check_estimators_dtypes")
KERNEL = (
    *VALUES,
    "check_class_weight_classifiers",
    "check_fit_idempotent",
    "check_methods_subset_invariance",
    "check_transformer_general",
)
TRAINING = (*KERNEL, *EXACT)
VARIANT = tuple(name for name in TRAINING if name != "check_estimator_sparse_matrix")  # `test_estimators.py` has CSR
# The gate tries every third pair of an estimator and one of these kernels; the nightly run tries all pairs.
IN_TURN = ("poly", "sigmoid", "laplacian", "callable")
# On examples far from the origin a small gap is much work.
QUICK = {
    "MulticlassSVC": {"tol": 0.01},
    "MulticlassSVC-intercept": {},
    "MulticlassSVC-published": {},
    "PathSearchCV-kernel": {"tol": 0.01},
}
TIGHT = {
    "AmbiguousClassifier": {"gamma": 0.2, "tol": 1e-12, "max_iter": 2000},
    "HullerClassifier": {"gamma": 0.5, "tol": 1e-13, "max_iter": 100_000},
    "LaRankClassifier": {"gamma": 0.2, "tol": 1e-13, "max_iter": 100_000},
    "LaSVMClassifier": {"gamma": 0.5, "solver": LaSVM(tau=1e-10), "tol": 1e-10},
    "LinearMulticlassSVC": {"tol": 1e-12, "max_iter": 100_000},
    "MulticlassSVC": {"gamma": 0.2, "tol": 1e-13, "max_iter": 100_000},
    "MulticlassSVC-published": {"gamma": 0.2, "solver": Published(epsilon=1e-12), "max_iter": 10**6},
    "PathSearchCV": {"tol": 1e-12, "max_iter": 100_000},
    "PathSearchCV-kernel": {"gamma": 0.2, "tol": 1e-13, "max_iter": 100_000},
    "PrimalMulticlassSVC": {"tol": 1e-17, "max_iter": 100_000},
    # Conjugate gradients end where rounding does not let the objective fall.
    "PrimalMulticlassSVC-sum": {"solver": "newton", "tol": 1e-17, "max_iter": 100_000},
    "TrackingSVC": {"gamma": 0.2, "max_iter": 150, "n_steps": 200},
}

# What is left out


@dataclass(frozen=True)
class LeftOut:
    """Checks that some estimators do not pass, why, and a rival that does not either, if there is any like it."""

    checks: tuple[str, ...]
    concerns: Callable[[BaseEstimator], bool]
    settings: str  # of the estimators concerned, in words; empty for all
    reason: str
    rival: BaseEstimator | None
    is_tried: bool = True  # whether it is seen to that they fail

    def row(self):
        """Return the row of the table in `PAGE`."""
        checks = "all checks that train" if self.checks == EVERY else ", ".join(f"`{name}`" for name in self.checks)
        models = [made(case, kernel, {}) for case, kernel, _ in settings()]
        names = sorted({_name(model) for model in models if self.concerns(model)})
        estimators = ", ".join(names) + (f" {self.settings}" if self.settings else "")
        rival = "-" if self.rival is None else f"`{self.rival}`"
        return f"| {checks} | {estimators} | {self.reason} | {rival} |"


def _takes_one_step_each(model):
    return isinstance(model, KernelPerceptron | KernelPassiveAggressive | LinearSGDClassifier)


def _smoothes_the_maximum(model):
    return isinstance(model, PrimalMulticlassSVC) and model.softmax_gamma == math.inf


def _name(model):
    searched = getattr(model, "estimator", None)
    return f"`{type(model).__name__}`" + (f" over `{type(searched).__name__}`" if searched else "")


def _kernel(model):
    return getattr(getattr(model, "estimator", model), "kernel", "")


def _maps(kernel):
    return lambda model: isinstance(model, KernelMap) and model.kernel == kernel


def _has_no_certificate(model):
    return _kernel(model) == "sigmoid" and not _maps("sigmoid")(model)


def _has_no_bias(model):
    model = getattr(model, "estimator", model)
    kinds = KernelPassiveAggressive | KernelPerceptron | LaRankClassifier | MulticlassSVC | TrackingSVC
    goes_through_zero = _kernel(model) in ("linear", "poly", "sigmoid", "precomputed")
    return isinstance(model, kinds) and goes_through_zero and not getattr(model, "fit_intercept", False)


EVERY = ("check_fit_score_takes_y",)  # this one, and all others that train
LEFT_OUT = (
    LeftOut(
        EVERY,
        _maps("sigmoid"),
        'with `kernel="sigmoid"`',
        "the kernel is not positive semi-definite on the examples of the checks; it has no features, and `fit` says so",
        KernelPCA(kernel="sigmoid"),
        is_tried=False,
    ),
    LeftOut(
        ("check_estimators_dtypes",),
        _maps("precomputed"),
        'with `kernel="precomputed"`',
        "the check rounds the kernel matrix to integers; it is not positive semi-definite any more, and `fit` says so",
        KernelPCA(kernel="precomputed"),
    ),
    LeftOut(
        ("check_positive_only_tag_during_fit",),
        _maps("precomputed"),
        'with `kernel="precomputed"`',
        "the matrix of the check has negative values on its diagonal; `KernelPCA` accepts it because it centres",
        None,
    ),
    LeftOut(
        EXACT,
        _takes_one_step_each,
        "",
        "an online algorithm steps once on an example of weight 2, and twice on an example that is repeated",
        SVC(),
    ),
    LeftOut(
        EXACT,
        _smoothes_the_maximum,
        "with `softmax_gamma=inf`",
        "the solver smooths the maximum, and its predictions agree to 1e-7 on some examples only",
        LinearSVC(),
        is_tried=False,
    ),
    LeftOut(
        EXACT,
        _has_no_certificate,
        'with `kernel="sigmoid"`',
        "no duality gap bounds the error, so training cannot recognise that predictions agree to 1e-7",
        SVC(kernel="sigmoid"),
        is_tried=False,
    ),
    LeftOut(
        ("check_class_weight_classifiers",),
        _has_no_bias,
        'without an intercept and with `kernel="linear"`, "poly", "sigmoid" or "precomputed"',
        "the check demands that most examples are assigned to one class; decision functions through the origin cannot",
        LinearSVC(fit_intercept=False),
    ),
    LeftOut(
        ("check_class_weight_classifiers",),
        lambda model: isinstance(model, KernelPassiveAggressive) and model.kernel is closeness,
        "without an intercept and with some kernels of one's own",
        "the check makes 1,000 passes, in which many small steps on the examples of little weight add up",
        LinearSVC(fit_intercept=False),
    ),
)
PAGE = Path(__file__).parents[1] / "docs" / "promises.md"


def settings():
    """Yield cases of `checks` and further ones, each with a kernel and the checks it gets, None for all."""
    for case in CASES:
        if not (case.takes_matrices or case.takes_tables):
            continue
        usual = "rbf" if case.has_kernel else None
        if case.variant and not case.is_search:
            yield case, usual, VARIANT
            continue
        for kernel in KERNELS if case.has_kernel else (None,):
            yield case, kernel, {"rbf": None, "precomputed": None, None: None, "linear": TRAINING}.get(kernel, KERNEL)
        for variant, parameters in FURTHER.get(str(case), {}).items():
            yield Case(case.estimator, variant, parameters), usual, VALUES if variant == "device" else VARIANT


def made(case, kernel, more):
    parameters = CHOSEN.get(str(case), case.parameters)
    with_kernel = {} if kernel is None else {"kernel": KERNELS[kernel]}
    more = more.get(str(case), more.get(case.estimator.__name__, {}))
    return case.made(**{**parameters, **with_kernel, **more})


def named_checks(estimator, *, exact):
    """The checks with their names; those that are exact, or the others."""
    for instance, check in estimator_checks_generator(estimator):
        name = getattr(check, "func", check).__name__
        if (name in EXACT) == exact:
            yield name, partial(check, instance)


def failures(named):
    """The names of checks that are not passed, with what they say."""
    found = {}
    for name, check in named:
        try:
            check()
        except SkipTest:
            pass
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error.__cause__ or error}"
    return found


def trainable():
    """Yield the settings with which the examples of the checks can be trained on."""
    turn = 0
    for case, kernel, names in settings():
        model = made(case, kernel, {})
        if any(left.checks == EVERY and left.concerns(model) for left in LEFT_OUT):
            continue
        if kernel in IN_TURN:
            turn += 1
            if turn % 3 and not IS_NIGHTLY:
                continue
        yield pytest.param(case, kernel, names, id=f"{case}-{kernel or 'no kernel'}")


@pytest.mark.parametrize(("case", "kernel", "names"), list(trainable()))
@pytest.mark.filterwarnings("ignore:training was ended", "ignore:the kernel is not positive semi-definite")
def test_check_estimator(case, kernel, names):
    for exact, more in ((False, QUICK), (True, TIGHT)):
        estimator = made(case, kernel, more)
        left_out = [left for left in LEFT_OUT if left.concerns(estimator)]
        untried = {name for left in left_out if not left.is_tried for name in left.checks}
        to_fail = {name for left in left_out for name in left.checks} - untried
        tried = [(name, check) for name, check in named_checks(estimator, exact=exact) if name not in untried]
        if names is not None:  # memory maps are read with defaults
            tried = [each for each in tried if each[0] in names and "readonly_memmap" not in each[1].keywords]
        assert tried or exact
        found = failures(tried)
        assert not {name: said for name, said in found.items() if name not in to_fail}
        assert to_fail & {name for name, _ in tried} <= found.keys(), "some pass, and need not be left out"


@pytest.mark.parametrize("left", [left for left in LEFT_OUT if left.rival is not None], ids=lambda left: left.reason)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_does_not_pass_what_is_left_out_either(left):
    named = named_checks(left.rival, exact=left.checks == EXACT)
    assert failures((name, check) for name, check in named if name in left.checks).keys() == set(left.checks)


def test_users_can_read_what_is_left_out_and_why():
    section = PAGE.read_text(encoding="utf-8").partition("\n## The checks of scikit-learn\n")[2].partition("\n## ")[0]
    _, _, *rows = [line for line in section.splitlines() if line.startswith("|")]
    assert sorted(rows) == sorted(left.row() for left in LEFT_OUT)
    others = {name for name in registered() if not any(case.estimator.__name__ == name for case, *_ in settings())}
    (sentence,) = re.findall(r"The checks need arrays, .*? cannot run them\.", section, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", sentence)) == others
    assert set(kernel_names()) - set(KERNELS) == set(re.findall(r'"(\w+)"', section.partition("|")[0]))
