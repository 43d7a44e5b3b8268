"""What an adapter is given and what it hands back, for each kind of comparison."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.trial import Stopwatch

CACHE_MEGABYTES = 1000
"""Of kernel values, for the rivals; their default is 100 or 200."""

CRAMMER_SINGER = "Crammer-Singer"
BINARY = "binary, with a bias"
ONE_VS_ONE = "one-versus-one, summed"
ONE_VS_REST = "one-versus-rest, summed"

DENSE, CSR = "dense", "csr"

Tags = Sequence[Sequence[str]]


@dataclass(frozen=True)
class TrainingSet:
    """Dense or CSR examples, their labels, C, and gamma of the kernel exp(-gamma |x - x'|^2) where there is one."""

    X: Any
    y: NDArray[np.int64]
    C: float
    gamma: float = 1.0


@dataclass(frozen=True)
class Solver:
    """One algorithm of one library.

    `requires` is what is imported before memory is first looked at, a module or `module:name`. `copies_input`: the
    library trains on a copy in a format of its own and does not need what it was given. `dtype` is the precision it
    likes its data in, where it may choose. An adapter has one of the methods below for each kind of comparison.

    `fit(data, tolerance)` of a linear solver and `fit(data, effort)` of a gradient solver return a `LinearFit`,
    `fit(data, threads)` of a kernel solver a `KernelFit`, `fit(path)` of a tagger a `TaggerFit`, and
    `learn(data, labels, threads)` of a learner a `Learned`.
    """

    name: str
    requires: str
    copies_input: bool = False
    dtype: str = "float64"
    threads: int = 1

    @property
    def is_ours(self) -> bool:
        return self.requires.startswith("larank:")

    def forms(self, problem: Any) -> Sequence[str]:
        """Those of a kernel problem's forms that may be its fastest."""
        forms: Sequence[str] = problem.forms
        return forms


@dataclass(frozen=True)
class LinearSolver(Solver):
    """`tolerances` runs from loose to tight."""

    formulation: str = "crammer-singer"
    tolerances: tuple[float, ...] = ()


@dataclass(frozen=True)
class GradientSet:
    """Examples and the problem to solve: alpha/2 |W|^2 plus the mean loss, without an intercept.

    `loss` has scikit-learn's name, `formulation` ours where there are three classes or more. `text` is the file of the
    same examples in the format of Vowpal Wabbit.
    """

    X: Any
    y: NDArray[np.int64]
    loss: str
    alpha: float
    formulation: str
    text: Path

    @property
    def cost(self) -> float:
        """The C of an example where 1/2 |W|^2 has no factor."""
        return 1 / (self.alpha * len(self.y))


EPOCHS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200)


@dataclass(frozen=True)
class GradientSolver(Solver):
    """`fit(data, effort)` of a `GradientSet` returns a `LinearFit`; `efforts` are epochs or tolerances, least first.

    `rival` is the solver a pass of this one is compared with.
    """

    dtype: str = "float32"
    efforts: tuple[float, ...] = EPOCHS
    losses: tuple[str, ...] = ("hinge", "squared_hinge")
    formulations: tuple[str, ...] = ("one-vs-rest",)
    counts_epochs: bool = True
    rival: str = ""


Settings = Mapping[str, Any]
"""Of parameters that are selected, a value for each."""
Predict = Callable[[Any], NDArray[Any]]


@dataclass(frozen=True)
class AmbiguousLearner(Solver):
    """`fit(X, candidates, seed, **settings)`, with a boolean matrix of candidates, returns how labels are predicted.

    Each of the `grids` has the values of every parameter that is selected, from the smoothest function on. `gamma` is
    given as a multiple of 1 over the number of features.
    """

    fit: Callable[..., Predict] | None = None
    grids: Sequence[Mapping[str, Sequence[Any]]] = ({},)

    def settings(self, quick: bool = False) -> list[Settings]:
        """Return all combinations in each grid; if quick, of two values of each parameter, from the middle."""
        found: list[Settings] = []
        for grid in self.grids:
            values = [many[max(0, len(many) // 2 - 1) :][:2] if quick else many for many in grid.values()]
            found += [dict(zip(grid, these, strict=True)) for these in itertools.product(*values)]
        return found


@dataclass(frozen=True)
class Fitted:
    """A trained model: the time training took, and what else the library tells."""

    seconds: Stopwatch
    extra: Mapping[str, Any] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True)
class LinearFit(Fitted):
    """A linear model, and how to get W, one row per class.

    W is fetched after memory was looked at, so that turning it into the common form costs nobody anything.
    """

    weights: Callable[[], NDArray[np.float64]]


@dataclass(frozen=True)
class Predictor(Fitted):
    predict: Predict


@dataclass(frozen=True)
class Objectives:
    """What was reached, of the problem that was solved: objectives of different problems say nothing together.

    Of several binary problems, `dual` is the sum of theirs. `primal` is known to solvers that compute it.
    """

    problem: str
    primal: float | None
    dual: float


@dataclass(frozen=True)
class KernelFit(Predictor):
    """A kernel model and its size.

    `support_patterns` counts examples with some coefficient, `support_vectors` the coefficients that are not zero.
    `objectives` may take a while to compute. `blocks` are the shapes of the products training needed, if it is known to
    have computed them in blocks.
    """

    support_patterns: int
    support_vectors: int
    objectives: Callable[[], Objectives]
    blocks: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class Learned(Predictor):
    """What asking for labels led to; `labels` is how many were asked for."""

    labels: int
    support_vectors: int


@dataclass(frozen=True)
class TaggerFit(Fitted):
    """A trained tagger: the time from text to model, and how it tags a file; `extra` has the parts as `breakdown`.

    `prepare` has the features of a file's sentences, and `tag_prepared` their tags, where the library keeps the two
    apart.
    """

    tag_file: Callable[[Path], Tags]
    prepare: Callable[[Path], Any] | None = None
    tag_prepared: Callable[[Any], Tags] | None = None


def timed_fit(model: Any, data: Any, **options: Any) -> Stopwatch:
    """Train the model on the examples and labels of a set, and return the time it took."""
    with Stopwatch() as watch:
        model.fit(data.X, data.y, **options)
    return watch


def linear_fit(
    model: Any, data: Any, told: Callable[[], Mapping[str, Any]] = dict, biases: bool = False, **options: Any
) -> LinearFit:
    """Train anything with `coef_`; `told` has what else it tells, `biases` makes them the last column of W."""
    watch = timed_fit(model, data, **options)

    def weights() -> NDArray[np.float64]:
        W = np.column_stack([model.coef_, model.intercept_]) if biases else model.coef_
        return np.asarray(W, dtype=np.float64)

    return LinearFit(watch, weights, extra=told())


def grid(first: float, last: float, per_decade: int = 6) -> tuple[float, ...]:
    """Tolerances from `first` down to `last`, evenly spaced on a logarithmic scale, two digits each."""
    count = round(per_decade * np.log10(first / last)) + 1
    return tuple(float(f"{value:.2g}") for value in np.geomspace(first, last, count))
