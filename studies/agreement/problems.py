"""The problems of the campaign: what is sampled for a number, the same for the same seed.

A problem is an estimator with its parameters and the examples it is given: small sets, well and badly scaled, with
duplicates and noise; weights of classes and of examples, margins per pair of classes. A `Breadth` says how large costs
and features may be. Problems with an even number are in float64, problems with an odd number in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist
from sklearn.utils.class_weight import compute_sample_weight

import larank

Array = NDArray[np.float64]
Random = np.random.Generator

TAU = 1e-12  # of LaSVM: what ends training is the gap
KERNELS = ("linear", "rbf", "poly", "laplacian", "chi2", "intersection", "precomputed", "callable")
_OFTEN = (4, 4, 4, 2, 1, 1, 2, 1)  # how often each comes
_NON_NEGATIVE = ("chi2", "intersection")
_ONE_PASS = ("LaRankClassifier", "LaSVMClassifier", "TrackingSVC", "HullerClassifier")  # that need not reach a gap
_JOINT = ("MulticlassSVC", "LaRankClassifier")  # all classes in one problem
_FORMULATIONS = {
    "LaSVMClassifier": "binary-bias",
    "TrackingSVC": "binary",
    "HullerClassifier": "hulls",
    "AmbiguousClassifier": "weston-watkins",
}
"""Of estimators that have one."""


def rational(X: Array, Z: Array) -> Array:
    """1 / (1 + |x - z|^2): the kernel that stands for those of users."""
    return np.asarray(1 / (1 + cdist(X, Z, "sqeuclidean")))


@dataclass(frozen=True)
class Breadth:
    """How far the problems of a campaign reach.

    `costs` and `scales` are powers of ten, between which costs and the scale of all features are sampled; without
    `scales`, features have the scales that data usually have. `most` limits the number of examples, `passes` the passes
    of training. If `is_extreme`, weights may be zero for a whole class, or large for one example, and training may end
    after few passes.
    """

    costs: tuple[float, float] = (-3, 6)
    scales: tuple[float, float] | None = None
    most: int = 120
    passes: int = 10_000

    @property
    def is_extreme(self) -> bool:
        return self.scales is not None


USUAL = Breadth()
EXTREME = Breadth(costs=(-3, 8), scales=(-8, 8), most=30, passes=50)


@dataclass(frozen=True)
class Sampler:
    """What a problem is sampled with: random numbers, how far the problem may reach, and its precision."""

    random: Random
    breadth: Breadth
    dtype: type[np.floating[Any]]

    def cost(self) -> float:
        return float(10 ** self.random.uniform(*self.breadth.costs))

    def passes(self) -> int:
        if self.breadth.is_extreme and self.random.random() < 0.3:
            return int(self.random.integers(1, 5))
        return self.breadth.passes

    def given(self, X: Array) -> Any:
        """Return the features in the precision of the problem."""
        return np.ascontiguousarray(X, dtype=self.dtype)


# ---- Problems ----


@dataclass(frozen=True)
class Problem:
    """What is fitted to what.

    `K` are the kernel values of all examples, by formulas of our own, with what an intercept adds to them; `costs` are
    `C` times all weights. `formulation` names the machine of `machines` that the estimator solves, `unit` is what its
    objectives are multiplied by. Labels are 0 .. k-1.
    """

    number: int
    estimator: str
    kernel: str
    formulation: str
    parameters: Mapping[str, Any]
    X: Any
    y: NDArray[np.int64]
    weights: Array | None
    K: Array
    costs: Array
    delta: Array
    tol: float
    drawn: str
    unit: float = 1.0
    is_extreme: bool = False

    @property
    def classes(self) -> int:
        return len(self.delta)

    @property
    def dtype(self) -> str:
        return str(self.X.dtype)

    def fit(self, limit: float | None = None) -> Any:
        """The estimator, trained in at most so many seconds."""
        given = dict(self.parameters)
        if self.estimator == "StructuredSVC":
            given["model"] = larank.MulticlassModel(self.classes)
        model = getattr(larank, self.estimator)(**given, time_limit=limit)
        return model.fit(self.X, self.y, **({} if self.weights is None else {"sample_weight": self.weights}))

    @property
    def constructor(self) -> str:
        """The call that makes the estimator, for a reader."""
        given = [f"{name}={_shown(value)}" for name, value in self.parameters.items()]
        return f"{self.estimator}({', '.join(given)})"


def _shown(value: Any) -> str:
    if callable(value):
        return str(value.__name__)
    if isinstance(value, np.ndarray):
        return str(np.round(value, 3).tolist())
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def draw(seed: int, number: int, breadth: Breadth = USUAL) -> Problem:
    random = np.random.default_rng([seed, number])
    names = list(ESTIMATORS)
    shares = np.array([1.0 if breadth.is_extreme else share for share, _ in ESTIMATORS.values()])
    name = names[random.choice(len(names), p=shares / shares.sum())]
    sampler = Sampler(random, breadth, np.float32 if number % 2 else np.float64)
    return replace(ESTIMATORS[name][1](sampler, number, name), is_extreme=breadth.is_extreme)


# ---- Examples ----


@dataclass(frozen=True)
class Examples:
    """Inputs and labels 0 .. k-1, each class with one example at least; `drawn` says how they came about."""

    X: Array
    y: NDArray[np.int64]
    drawn: str


def _examples(sampler: Sampler, most: int = 120, *, non_negative: bool = False, is_noisy: bool = True) -> Examples:
    random, most = sampler.random, min(most, sampler.breadth.most)
    n = int(np.exp(random.uniform(np.log(10), np.log(most + 1))))
    d, k = int(random.integers(1, 9)), int(random.integers(2, 7))
    y = random.choice(k, size=n, p=random.dirichlet(np.full(k, 3.0)))
    y[:k] = np.arange(k)
    spread = 10 ** random.uniform(-1, 0.5) if is_noisy else 0.1
    X = 2 * random.normal(size=(k, d))[y] + spread * random.normal(size=(n, d))
    words = [f"{n} examples, {d} features, {k} classes, spread {spread:.2g}"]
    if is_noisy and random.random() < 0.3:
        is_flipped = (random.random(n) < random.uniform(0.02, 0.3)) & (np.arange(n) >= k)
        y = np.where(is_flipped, random.integers(0, k, n), y)
        words.append(f"{is_flipped.sum()} labels drawn again")
    if is_noisy and random.random() < 0.2:
        copied = random.integers(0, n, n // 3)
        X[random.integers(k, n, len(copied))] = X[copied]
        words.append("duplicates")
    scales = sampler.breadth.scales
    X, scale = _scaled(random, X) if scales is None else _of_any_scale(random, X, *scales)
    words.append(scale)
    if non_negative:
        X = X - X.min(axis=0)
        words.append("non-negative")
    given = sampler.given(X)
    words.append(given.dtype.name)
    return Examples(given.astype(np.float64), y, ", ".join(words))


def _of_any_scale(random: Random, X: Array, smallest: float, largest: float) -> tuple[Array, str]:
    exponent = random.uniform(smallest, largest)
    words = f"scaled by 1e{exponent:.1f}"
    if random.random() < 0.3:  # near to each other, compared with their norms
        X, words = X + 10 ** random.uniform(0, 4), f"shifted, {words}"
    if random.random() < 0.3:
        column = random.integers(X.shape[1])
        X = X * np.where(np.arange(X.shape[1]) == column, 10 ** random.uniform(-4, 4), 1)
        words += ", a feature of another scale"
    return X * 10**exponent, words


_SCALES: dict[str, tuple[float, Callable[[Random, Array], Array]]] = {
    "unit scale": (0.46, lambda random, X: X),
    "scaled by 0.01": (0.1, lambda random, X: X * 0.01),
    "scaled by 30": (0.1, lambda random, X: X * 30),
    "features of different scales": (0.12, lambda random, X: X * 10 ** random.uniform(-1.5, 1.5, X.shape[1])),
    "shifted by 100": (0.08, lambda random, X: X + 100),
    "rounded": (0.08, lambda random, X: np.round(X)),
    "a constant feature": (0.06, lambda random, X: np.column_stack([X, np.full(len(X), 3.0)])),
}
"""By description: the share of problems with this scaling, and the scaling."""


def _scaled(random: Random, X: Array) -> tuple[Array, str]:
    how = str(random.choice(list(_SCALES), p=[share for share, _ in _SCALES.values()]))
    return _SCALES[how][1](random, X), how


def _weights(
    sampler: Sampler, examples: Examples, may_weigh_classes: bool
) -> tuple[dict[str, Any], Array | None, Array]:
    """Return the parameter `class_weight` if one is drawn, `sample_weight`, and the product of both weights."""
    random = sampler.random
    class_weight: Any = None
    sample_weight = None
    factors = np.ones(len(examples.y))
    if may_weigh_classes and random.random() < 0.25:
        classes = range(examples.y.max() + 1)
        class_weight = "balanced"
        if random.random() < 0.5:
            class_weight = {label: float(np.round(10 ** random.uniform(-1, 1), 3)) for label in classes}
        factors = compute_sample_weight(class_weight, examples.y)
    if random.random() < 0.25:
        sample_weight = np.round(random.exponential(size=len(factors)) + 0.01, 3)
        if random.random() < 0.3:
            first = np.unique(examples.y, return_index=True)[1]  # every class keeps one
            is_gone = random.random(len(factors)) < 0.2
            is_gone[first] = False
            sample_weight[is_gone] = 0.0
        if sampler.breadth.is_extreme and random.random() < 0.5:
            sample_weight[random.integers(len(factors))] = 1e4
        if sampler.breadth.is_extreme and random.random() < 0.5 and examples.y.max() > 1:
            sample_weight[examples.y == random.integers(examples.y.max() + 1)] = 0.0
        factors = factors * sample_weight
    return {} if class_weight is None else {"class_weight": class_weight}, sample_weight, factors


# ---- Kernels ----


@dataclass(frozen=True)
class DrawnKernel:
    """Parameters of an estimator, the input it takes, and the kernel values."""

    name: str
    parameters: dict[str, Any]
    X: Any
    K: Array


def _kernel(sampler: Sampler, examples: Examples, name: str) -> DrawnKernel:
    random, X = sampler.random, examples.X
    smallest, exponents = (0.0, (-4, 5)) if sampler.breadth.is_extreme else (1e-6, (-2, 0.5))
    gamma = (
        "scale"
        if random.random() < 0.5
        else float(10 ** random.uniform(*exponents)) / (max(X.var(), smallest) or 1.0) / X.shape[1]
    )
    if sampler.dtype is np.float32 and gamma == "scale":
        gamma = 1 / (max(X.var(), smallest) or 1.0) / X.shape[1]  # to more digits than the features have
    parameters: dict[str, Any] = {"kernel": name}
    if name in ("rbf", "laplacian", "chi2"):
        if name != "rbf":
            spread = float(np.abs(X - X.mean(axis=0)).mean())
            gamma = float(10 ** random.uniform(-1.5, 0.5)) / (max(spread, smallest) or 1.0)
        parameters["gamma"] = gamma
    if name == "poly":
        parameters |= {"gamma": gamma, "degree": int(random.integers(2, 5)), "coef0": float(random.choice([0.0, 1.0]))}
    K = kernel_values(X, **parameters) if name not in ("precomputed", "callable") else rational(X, X)
    if name == "precomputed":
        given = sampler.given(K)
        return DrawnKernel(name, parameters, given, given.astype(np.float64))
    if name == "callable":
        return DrawnKernel(name, {"kernel": rational}, sampler.given(X), K)
    is_sparse = name in ("linear", "rbf", "poly") and random.random() < 0.2
    return DrawnKernel(name, parameters, csr_matrix(sampler.given(X)) if is_sparse else sampler.given(X), K)


def kernel_values(X: Array, kernel: str, gamma: Any = "scale", degree: int = 3, coef0: float = 0.0) -> Array:
    if gamma == "scale":
        gamma = 1 / (X.shape[1] * X.var()) if X.var() > 0 else 1.0
    if kernel == "linear":
        return X @ X.T
    if kernel == "rbf":
        return np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    if kernel == "laplacian":
        return np.exp(-gamma * cdist(X, X, "cityblock"))
    if kernel == "poly":
        return (gamma * (X @ X.T) + coef0) ** degree
    pairs = X[:, None, :], X[None, :, :]
    if kernel == "intersection":
        return np.minimum(*pairs).sum(axis=2)
    difference, total = pairs[0] - pairs[1], pairs[0] + pairs[1]
    return np.exp(-gamma * np.divide(difference**2, total, out=np.zeros_like(total), where=total > 0).sum(axis=2))


# ---- Estimators ----


def _without(parameters: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name not in names}


def _tolerance(random: Random) -> float:
    return float(10.0 ** -random.integers(3, 7))


def _kernel_machine(sampler: Sampler, number: int, name: str) -> Problem:
    """Those whose model is made of kernel values and coefficients, all with a cost but the Huller."""
    random = sampler.random
    kernel = str(random.choice(KERNELS, p=np.array(_OFTEN) / sum(_OFTEN)))
    is_hard = name == "HullerClassifier"
    examples = _examples(sampler, non_negative=kernel in _NON_NEGATIVE, is_noisy=not is_hard)
    drawn = _kernel(sampler, examples, kernel)
    k = int(examples.y.max()) + 1
    parameters, formulation, delta, K = dict(drawn.parameters), "crammer-singer", 1 - np.eye(k), drawn.K
    C, tol = sampler.cost(), _tolerance(random)
    # One problem against the rest has weights of classes with another meaning.
    may_weigh = name in _JOINT or (k == 2 and name != "AmbiguousClassifier")
    class_weight, sample_weight, factors = _weights(sampler, examples, may_weigh)
    parameters |= {"C": C, "tol": tol, "max_iter": sampler.passes(), "random_state": 0, **class_weight}
    if name == "LaSVMClassifier":
        parameters["solver"] = larank.LaSVM(tau=TAU)
    if sampler.breadth.is_extreme and name in _ONE_PASS and random.random() < 0.3:
        parameters = _without(parameters, "tol", "solver") | {"max_iter": int(random.integers(1, 4))}
    if name in _JOINT and random.random() < 0.15:
        delta = np.round(random.uniform(0.2, 3.0, (k, k)), 3) * (1 - np.eye(k))
        parameters["label_costs"] = delta
    if name == "MulticlassSVC":
        formulation = str(random.choice(["crammer-singer", "weston-watkins"]))
        parameters["formulation"] = formulation
    if name == "AmbiguousClassifier":
        factors = factors / (k - 1)  # the mean of the losses of all wrong classes
    if is_hard:
        sample_weight, factors, C = None, np.ones(len(factors)), 1.0
        parameters = _without(parameters, "C", "class_weight")
    is_biased = random.random() < 0.25
    if is_biased and name in _JOINT and "fit_intercept" in getattr(larank, name)().get_params():
        parameters["fit_intercept"] = True
        K = K + 1
    return Problem(
        number, name, kernel, _FORMULATIONS.get(name, formulation), parameters, drawn.X, examples.y, sample_weight, K,
        C * factors, delta, tol, examples.drawn,
    )  # fmt: skip


def _linear(sampler: Sampler, number: int, name: str) -> Problem:
    """LinearMulticlassSVC and StructuredSVC, whose model is weights."""
    random, is_structured = sampler.random, name == "StructuredSVC"
    examples = _examples(sampler, most=40 if is_structured else 120)
    k = int(examples.y.max()) + 1
    C, tol = sampler.cost(), _tolerance(random)
    formulation = str(random.choice(["crammer-singer", "weston-watkins", "one-vs-rest"]))
    formulation = "crammer-singer" if is_structured else formulation
    # The weights of classes have another meaning where each class has a problem of its own.
    may_weigh = formulation != "one-vs-rest" and not is_structured
    class_weight, sample_weight, factors = _weights(sampler, examples, may_weigh)
    parameters: dict[str, Any] = {"C": C, "tol": tol, "max_iter": sampler.passes(), "random_state": 0}
    X, K = sampler.given(examples.X), examples.X @ examples.X.T
    if is_structured:
        C, tol = min(C, 100.0), 1e-3
        parameters |= {"stop": "gap", "solver": str(random.choice(["larank", "svmstruct", "svmstruct-1slack"]))}
        parameters |= {"C": C, "tol": tol}
    else:
        parameters["formulation"] = formulation
        parameters["fit_intercept"] = bool(random.random() < 0.5)
        parameters["intercept_scaling"] = float(random.choice([1.0, 10.0])) if parameters["fit_intercept"] else 1.0
        K = K + parameters["fit_intercept"] * parameters["intercept_scaling"] ** 2
        X = csr_matrix(X) if random.random() < 0.3 else X
    parameters |= class_weight
    return Problem(
        number, name, "linear", formulation, parameters, X, examples.y, sample_weight, K, C * factors, 1 - np.eye(k),
        tol, examples.drawn,
    )  # fmt: skip


def _descent(sampler: Sampler, number: int, name: str) -> Problem:
    """LinearSGDClassifier, which minimises a mean and makes passes: only its certificate can be wrong."""
    random, examples = sampler.random, _examples(sampler)
    n, k = len(examples.y), int(examples.y.max()) + 1
    formulation = str(random.choice(["joint", "one-vs-rest"]))
    may_weigh = formulation == "joint" or k == 2
    class_weight, sample_weight, factors = _weights(sampler, examples, may_weigh)
    counted = n if sample_weight is None else int((sample_weight > 0).sum())
    alpha, has_intercept = float(10 ** random.uniform(-6, 0)), bool(random.random() < 0.5)
    parameters: dict[str, Any] = {
        "loss": "hinge", "formulation": formulation, "alpha": alpha, "fit_intercept": has_intercept,
        "max_iter": int(random.integers(1, 200)), "random_state": 0, **class_weight,
    }  # fmt: skip
    K = examples.X @ examples.X.T + has_intercept
    solved = "binary" if k == 2 or formulation == "one-vs-rest" else "crammer-singer"
    return Problem(
        number, name, "linear", solved, parameters, sampler.given(examples.X), examples.y, sample_weight,
        K, factors / (alpha * counted), 1 - np.eye(k), _tolerance(random), examples.drawn, unit=alpha,
    )  # fmt: skip


def _primal(sampler: Sampler, number: int, name: str) -> Problem:
    """PrimalMulticlassSVC, with the losses and aggregations that are convex."""
    random = sampler.random
    kernel = "linear"
    examples = _examples(sampler)
    drawn = _kernel(sampler, examples, kernel)
    k = int(examples.y.max()) + 1
    C, tol = sampler.cost(), _tolerance(random)
    class_weight, sample_weight, factors = _weights(sampler, examples, True)
    loss = str(random.choice(["log_loss", "squared_hinge", "smoothed_hinge"]))
    softmax_gamma = float(random.choice([0.0, 1.0 if loss == "log_loss" else np.inf]))
    has_weights = (np.bincount(examples.y, factors) > 0).all()  # nothing bounds the bias of a class without weight
    parameters = {
        "C": C, "loss": loss, "softmax_gamma": softmax_gamma, "tol": tol,
        "solver": str(random.choice(["newton", "cg"], p=[0.8, 0.2])),
        "fit_intercept": bool(random.random() < 0.7 and has_weights), "max_iter": sampler.passes(),
        "random_state": 0, **class_weight,
    }  # fmt: skip
    return Problem(
        number, name, kernel, loss, parameters, drawn.X, examples.y, sample_weight, drawn.K, C * factors,
        1 - np.eye(k), tol, examples.drawn,
    )  # fmt: skip


ESTIMATORS: dict[str, tuple[float, Callable[[Sampler, int, str], Problem]]] = {
    "MulticlassSVC": (0.28, _kernel_machine),
    "LaRankClassifier": (0.14, _kernel_machine),
    "LaSVMClassifier": (0.17, _kernel_machine),
    "TrackingSVC": (0.03, _kernel_machine),
    "HullerClassifier": (0.03, _kernel_machine),
    "AmbiguousClassifier": (0.03, _kernel_machine),
    "LinearMulticlassSVC": (0.16, _linear),
    "StructuredSVC": (0.02, _linear),
    "LinearSGDClassifier": (0.03, _descent),
    "PrimalMulticlassSVC": (0.11, _primal),
}
"""By estimator, its share of the problems and what draws them."""
