"""Extreme numbers: every estimator on examples, costs and parameters from one end of floating point to the other.

A case is refused by a ValueError that names an argument, or it makes a model with finite scores and a certificate in
order. NumPy's warnings of overflow are failures: what went out of range must be told in words.
"""

import inspect
import re
import warnings
from collections.abc import Iterator
from random import Random

import numpy as np
from sklearn.base import TransformerMixin

import larank
from checks import registered
from tools.hostile.campaign import Attack, Case

# ---- What a case does; its source is part of the case ----


def judge(model, X, y, **weights):
    """Train, and look whether the model holds what it promises."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.simplefilter("error", RuntimeWarning)
        model.fit(X, y, **weights)
        scores = model.transform(X) if hasattr(model, "transform") else model.predict(X)
        if hasattr(model, "decision_function"):
            assert np.isin(scores, model.classes_).all(), "a label that is none"
            scores = model.decision_function(X)
        if hasattr(model, "decision_function") or hasattr(model, "transform"):
            assert np.isfinite(scores).all(), "scores that are not finite"
    if hasattr(model, "result_"):
        judge_certificate(model, any(issubclass(told.category, larank.CertificateWarning) for told in said))


def judge_stream(model, X, y, usual, labels, **weights):
    """The same for a stream: what is refused leaves the model as it was."""
    model.partial_fit(usual, labels)
    before = model.decision_function(usual)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model.partial_fit(X, y, **weights)
        except ValueError:
            assert np.array_equal(model.decision_function(usual), before), "a model that has changed"
            raise
        assert np.isfinite(model.decision_function(usual)).all(), "scores that are not finite"
        assert np.isfinite(model.decision_function(X)).all(), "scores that are not finite"


def judge_certificate(model, has_no_bound):
    """Objectives that are numbers, the dual not above the primal, and "converged" only where that is proved."""
    result = model.result_
    primal, dual = result.primal, result.dual
    has_objective = result.solver not in ("perceptron", "passive-aggressive", "ospas", "concepts")
    if has_objective and result.status != "time_limit":  # which may act before there is any
        assert not np.isnan(primal), "a primal objective that is NaN"
        assert primal > -np.inf, "a primal objective that is -inf"
        assert abs(dual) < np.inf or np.isnan(dual), "a dual objective that is infinite"
    if result.status == "converged":
        assert np.isfinite(primal), f"converged with a primal objective of {primal}"
        assert np.isfinite(dual) or has_no_bound, f"converged with a dual objective of {dual}"
    if result.exact and np.isfinite(primal) and np.isfinite(dual):
        assert primal - dual >= -1e-3 * max(abs(primal), abs(dual)), f"primal {primal} below dual {dual}"


# ---- How cases are made ----

_SOURCE = "".join(map(inspect.getsource, (judge, judge_stream, judge_certificate)))
_COSTS = ("1e-300", "1e-30", "1e-8", "1e8", "1e15", "1e30", "1e150", "1e300", "np.inf")
_NUMBERS = ("1e-300", "1e-150", "1e-40", "1e-30", "1e-8", "1e8", "1e30", "1e40", "1e150", "1e300")
_OF_NUMBERS = "gamma alpha intercept_scaling margin t0 sharpness learning_rate"
_PARAMETERS = {
    **dict.fromkeys(_OF_NUMBERS.split(), _NUMBERS),
    "C": _COSTS,
    "coef0": ("-1e300", "-1e30", "-1.0", "1e-300", "1e20", "1e40", "1e300"),
    "degree": ("1", "2", "30", "1000", "10**6"),
    "fit_intercept": ("True", "False"),
    "softmax_gamma": ("0.0", "np.inf", *_NUMBERS),
    "tol": ("1e-300", "1e-12", "0.5"),
    "class_weight": ("'balanced'", "{0: 1e300}", "{0: 1e-300}", "{0: 0.0}", "{0: 1e308, 1: 1e-308}"),
    "solver": (
        *("'svmstruct'", "'svmstruct-1slack'", "'perceptron'", "'passive-aggressive'", "'cg'", "'published'"),
        *(f"larank.{kind}(tau={tau})" for kind in ("LaRank", "LaSVM") for tau in ("1e-12", "1e8", "1e300")),
        *(f"larank.LaSVM(delta_max={number})" for number in _NUMBERS),
    ),
    "formulation": ("'weston-watkins'", "'one-vs-rest'", "'joint'"),
    "algorithm": ("'sgdqn'", "'svmsgd2'", "'sgd'", "'olbfgs'", "'simple'"),
    "loss": (
        *("'squared_hinge'", "'log_loss'", "'smoothed_hinge'", "'modified_huber'"),
        *(f"larank.SmoothedHinge(width={number})" for number in _NUMBERS),
    ),
    "stop": ("'gap'", "'violation'"),
    "average": ("True", "False"),
}
_KERNELS = ("'rbf'", "'linear'", "'poly'", "'sigmoid'", "'laplacian'", "'chi2'", "'intersection'", "'precomputed'")
_NOT_OF_STREAMS = {"class_weight", "sharpness", "stop", "tol"}
_TEXTS = ("SequenceTagger", "SemanticParser", "ConceptLabeler")
_OTHER_ARGUMENTS = (
    *("X", "y", "kernel", "sample_weight", "Sample weights", "classes", "candidates"),
    *("MulticlassModel", "label_costs", "time_limit", "cv", "max_iter", "delta_max", "tau", "width"),
)
_ARGUMENTS = re.compile(rf"\b({'|'.join((*_PARAMETERS, *_OTHER_ARGUMENTS))})\b")


def cases(random: Random) -> Iterator[Case]:
    """Cases without end: two or three extremes at a time, in all estimators in turn."""
    while True:
        for name, kind in registered().items():
            if name == "TableEncoder":  # tables have an attack of their own
                continue
            lines = _text_case(random, name, kind) if name in _TEXTS else _matrix_case(random, name, kind)
            yield Case("\n".join(["import warnings", "import numpy as np", "import larank", _SOURCE, *lines]))


def _matrix_case(random: Random, name: str, kind: type) -> list[str]:
    trained = random.choice(("LinearMulticlassSVC", "MulticlassSVC")) if name == "PathSearchCV" else name
    names = inspect.signature(getattr(larank, trained)).parameters
    given = _given(random, names)
    if "kernel" in names and random.random() < 0.7:
        given["kernel"] = random.choice(_KERNELS)
    if name == "StructuredSVC":
        given["model"] = "larank.MulticlassModel(500)"
    lines = [f"random = np.random.RandomState({random.randrange(1000)})", *_examples(random)]
    if given.get("kernel") == "'precomputed'":
        lines += _gram(random)
    elif random.random() < 0.15:
        lines.append("from scipy import sparse; X = sparse.csr_matrix(X)")
    if issubclass(kind, TransformerMixin):
        return [*lines, f"judge(larank.{name}({_call(given)}), X, None)"]
    weights = _weights(random) if "sample_weight" in inspect.signature(kind.fit).parameters else ""
    if name == "PathSearchCV":
        del given["time_limit"]
    made = f"larank.{trained}({_call(given)})"
    if name == "PathSearchCV":
        made = f"larank.PathSearchCV({made}, n_jobs=1, time_limit=1.0)"
    streams = hasattr(kind, "partial_fit") and hasattr(kind, "decision_function")
    if streams and not given.keys() & _NOT_OF_STREAMS and "kernel" not in given and random.random() < 0.3:
        lines.append("usual, labels = np.random.RandomState(0).randn(20, X.shape[1]), np.arange(20) % 3")
        return [*lines, f"judge_stream({made}, X, y, np.abs(usual), labels{weights})"]
    return [*lines, f"judge({made}, X, y{weights})"]


def _text_case(random: Random, name: str, kind: type) -> list[str]:
    given = _given(random, inspect.signature(kind).parameters)
    lines = [f"random = np.random.RandomState({random.randrange(1000)})"]
    if name == "SequenceTagger":
        given.pop("solver", None)
        lines += _examples(random)
        lines += ["lengths = np.full(len(X) // 2, 2)", "X = X[: 2 * len(lengths)]"]
        lines += ["tags = np.array(['a', 'b', 'c'])[y[: len(X)] % 3].reshape(-1, 2).tolist()"]
        if random.random() < 0.5:
            return [*lines, f"judge(larank.{name}({_call(given)}), (X, lengths), tags)"]
        lines += ["tokens = [[{'f%d' % j: float(v) for j, v in enumerate(row)} for row in two]"]
        lines += ["          for two in X.reshape(-1, 2, X.shape[1])]"]
        return [*lines, f"judge(larank.{name}({_call(given)}), tokens, tags)"]
    lines.append("X = [['the', 'dog', 'barks'], ['a', 'cat', 'sleeps'], ['the', 'cat', 'barks']] * 4")
    if name == "ConceptLabeler":
        return [*lines, f"judge(larank.{name}({_call(given)}), X, [['D', 'N', 'V']] * 12)"]
    lines.append("from larank.ambiguous.meanings import Meaning")
    lines.append("y = [[Meaning(x[2], (Meaning(x[1]),)), Meaning('runs', (Meaning('cow'),))] for x in X]")
    return [*lines, f"judge(larank.{name}({_call(given)}), X, y)"]


def _given(random: Random, names) -> dict[str, str]:
    possible = [name for name in _PARAMETERS if name in names]
    chosen = random.sample(possible, min(len(possible), random.choice((0, 0, 1, 1, 2))))
    always = {"random_state": "0", "n_jobs": "1", "time_limit": "1.0"}
    return {
        **{name: random.choice(_PARAMETERS[name]) for name in chosen},
        **{name: value for name, value in always.items() if name in names},
    }


def _call(given: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in given.items())


def _examples(random: Random) -> list[str]:
    """Lines that make X and y."""
    dtype = random.choice(("float32", "float64"))
    largest = 37 if dtype == "float32" else 307
    smallest = -45 if dtype == "float32" else -323
    scale = f"1e{random.choice((0, 0, random.randint(smallest, largest), random.randint(-30, 30)))}"
    n, d = random.choice((1, 2, 3, 12, 30, 30, 60)), random.choice((1, 2, 4, 4, 30))
    classes = random.choice((1, 2, 2, 3, 3, 3, 20))
    if random.random() < 0.01:
        n, d, classes = 500, 2, 500
    lines = [f"X = random.randn({n}, {d}).clip(-9, 9)", f"y = np.arange({n}) % {min(n, classes)}"]
    changes = {
        "plain": [f"X *= {scale}"],
        "mixed": [f"X *= 10.0 ** random.uniform({random.randint(smallest, 0)}, {random.randint(0, largest)}, {d})"],
        "row": [f"X[{n // 2}] *= {scale}"],
        "entry": [f"X[{n // 2}, {d // 2}] = {scale}"],
        "far": [f"X += {scale}"],
        "zeros": [f"X *= {scale}", "X[::2] = 0; X[:, ::3] = 0"],
        "duplicates": [f"X *= {scale}", f"X = X[np.arange({n}) // {random.choice((2, 4))}]"],
        "constant": [f"X *= {scale}", "X[:, 1:] = X[0, 0]"],
        "nothing": ["X[:] = 0"],
    }
    lines += changes[random.choice(list(changes))]
    if random.random() < 0.2:
        lines.append("X = np.abs(X)")
    return [*lines, f"X = X.astype('{dtype}')"]


def _gram(random: Random) -> list[str]:
    scale = random.choice(_NUMBERS)
    return [
        "X = np.maximum(-np.finfo(X.dtype).max / 1e6, np.minimum(np.finfo(X.dtype).max / 1e6, X))",
        "with np.errstate(all='ignore'): X = np.nan_to_num(X @ X.T)",
        random.choice((f"X = X.astype(float) * {scale}", "X = -X", "X[0] *= 9; X[:, 0] *= 9", "pass", "pass")),
    ]


def _weights(random: Random) -> str:
    low, high = random.choice(((-308, 308), (-308, -300), (300, 308), (-30, 30), (0, 0)))
    return random.choice(
        (
            *("", "", ""),
            f", sample_weight=10.0 ** random.uniform({low}, {high}, len(y))",
            f", sample_weight=np.full(len(y), 1e{high})",
            ", sample_weight=(np.arange(len(y)) % 4 > 0).astype(float)",
            ", sample_weight=np.where(np.arange(len(y)) == 1, 1e308, 1e-308)",
        )
    )


def _names_an_argument(error: BaseException) -> bool:
    return isinstance(error, ValueError) and bool(_ARGUMENTS.search(str(error)))


ATTACK = Attack(cases, _names_an_argument, warm_up="import larank, sklearn.svm", megabytes=512, seconds=10)
