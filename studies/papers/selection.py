"""Model selection as in [primal] section 1.3: splits, a grid of kernel widths and costs, and three folds.

Two defaults the paper takes from elsewhere are chosen here: sigma_0 is the median distance of two training examples,
and C_0 = 1 / (mean K_ii - mean K_ij) with the kernel values of the width at hand. A grid has multiples of both.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from studies.datasets import Dataset, Labels
from studies.papers.experiment import check_not_interrupted

MSVM, ONE_VS_REST = "m-SVM", "one vs. rest"
FOLDS = 3
TOLERANCE = 1e-2
"""The relative duality gap every training stops at."""
TRACE_ERROR = 1e-6
"""Of the trace of a kernel matrix, what its factor may leave out in selection; the last training has all of it."""

Rows = NDArray[np.float64]


def split(X: Rows, y: Labels, size: int, seed: int, standardised: bool) -> Dataset:
    """So many random training examples; all others are for testing."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:size], order[size:]
    if standardised:
        deviation = X[train].std(axis=0)
        X = (X - X[train].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return Dataset(X[train], y[train], X[test], y[test])


# ---- The grid ----


@dataclass(frozen=True)
class Grid:
    """Multiples of sigma_0 and of C_0."""

    widths: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0)
    costs: tuple[float, ...] = (1.0, 1e1, 1e2, 1e3, 1e4)


@dataclass(frozen=True)
class Defaults:
    """The default width, and the default cost by multiple of the width."""

    sigma: float
    costs: Mapping[float, float]

    def gamma(self, width: float) -> float:
        """Of the kernel exp(-gamma |x - x'|^2) = exp(-|x - x'|^2 / (2 sigma^2))."""
        return 1 / (2 * (width * self.sigma) ** 2)

    @classmethod
    def of(cls, X: Rows, widths: Iterable[float]) -> Defaults:
        distances = pdist(X)
        found = cls(float(np.median(distances)), {})
        return cls(found.sigma, {width: _default_cost(distances, found.gamma(width), len(X)) for width in widths})


def _default_cost(distances: NDArray[np.float64], gamma: float, n: int) -> float:
    """1 over the variance in feature space: K_ii is 1, and the mean of K_ij is over all pairs, also of equals."""
    total = n + 2 * float(np.exp(-gamma * distances**2).sum())
    return 1 / (1 - total / n**2)


@dataclass(frozen=True)
class Choice:
    """A width and a cost, as multiples of the defaults and as they are."""

    width: float
    cost: float
    gamma: float
    C: float


# ---- Models on the features of a map ----


@dataclass(frozen=True)
class OneVersusRest:
    """A model of two classes for each class against the rest; the largest of their scores wins."""

    models: Sequence[Any]

    def predict(self, X: Any) -> Labels:
        scores = [model.decision_function(X) for model in self.models]
        found: Labels = np.argmax(scores, axis=0)
        return found


def trained(algorithm: str, Z: Rows, y: Labels, Cs: Sequence[float]) -> list[Any]:
    """A model for each C, on the same features."""
    if algorithm == MSVM:
        return _path(Z, y, Cs)
    # With two classes the objective of m-SVM is that of the binary problem with 2 C: half of C makes it the one with C.
    halved = [C / 2 for C in Cs]
    paths = [_path(Z, y == label, halved) for label in range(int(y.max()) + 1)]
    return [OneVersusRest(models) for models in zip(*paths, strict=True)]


def _path(Z: Rows, y: NDArray[Any], Cs: Sequence[float]) -> list[Any]:
    from larank import PrimalMulticlassSVC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # `unfinished` counts
        models: list[Any] = PrimalMulticlassSVC(tol=TOLERANCE, random_state=0).path(Z, y, Cs)
    check_not_interrupted(models[-1])
    return models


def unfinished(model: Any) -> int:
    """How many of its trainings ended above the tolerance."""
    parts = model.models if isinstance(model, OneVersusRest) else (model,)
    return sum(part.result_.relative_gap > TOLERANCE for part in parts)


def features_of(gamma: float, trace_error: float | None = None) -> Any:
    """A map of the kernel: exact, or up to a trace error."""
    from larank import PivotedCholeskyMap

    return PivotedCholeskyMap("rbf", gamma=gamma, tol=trace_error, random_state=0)


def wrong(model: Any, Z: Rows, y: Labels) -> int:
    return int(np.sum(model.predict(Z) != y))


# ---- Selection ----


@dataclass(frozen=True)
class Selected:
    """What was chosen, the test error in percent with it, and the trainings that ended above the tolerance."""

    choice: Choice
    error: float
    unfinished: int


def select(data: Dataset, grid: Grid, algorithms: Sequence[str], seed: int) -> dict[str, Selected]:
    """Of each algorithm the width and the cost with the fewest errors over the folds, and a last training with them."""
    X, y = data.X_train, data.y_train
    defaults = Defaults.of(X, grid.widths)
    errors = {algorithm: np.zeros((len(grid.widths), len(grid.costs)), np.int64) for algorithm in algorithms}
    early = dict.fromkeys(algorithms, 0)
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y))
    for row, width in enumerate(grid.widths):
        Cs = [cost * defaults.costs[width] for cost in grid.costs]
        for train, valid in folds:
            features = features_of(defaults.gamma(width), TRACE_ERROR)
            Z, Z_valid = features.fit_transform(X[train]), features.transform(X[valid])
            for algorithm in algorithms:
                models = trained(algorithm, Z, y[train], Cs)
                errors[algorithm][row] += [wrong(model, Z_valid, y[valid]) for model in models]
                early[algorithm] += sum(map(unfinished, models))
    return {name: _tested(name, data, _least(errors[name], grid, defaults), early[name]) for name in algorithms}


def _least(errors: NDArray[np.int64], grid: Grid, defaults: Defaults) -> Choice:
    """Among equals the smallest cost, and then the largest width: the smoothest function."""
    column, row = divmod(int(np.argmin(errors[::-1].T)), len(grid.widths))
    width, cost = grid.widths[::-1][row], grid.costs[column]
    return Choice(width, cost, defaults.gamma(width), cost * defaults.costs[width])


def _tested(algorithm: str, data: Dataset, choice: Choice, early: int) -> Selected:
    features = features_of(choice.gamma)
    (model,) = trained(algorithm, features.fit_transform(data.X_train), data.y_train, [choice.C])
    mistakes = wrong(model, features.transform(data.X_test), data.y_test)
    return Selected(choice, 100.0 * mistakes / len(data.y_test), early + unfinished(model))
