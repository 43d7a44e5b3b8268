"""scikit-weak's learners from sets of candidates.

Its package cannot be imported with Keras 3, which has neither `keras.optimizer_v2` nor `keras.wrappers`: the file of
`LabelRelaxationNNClassifier` asks for both. A stand-in for that file lets the others be imported, one by one, and
without TensorFlow. Left out are that classifier, `CSSLClassifier`, which trains it, and `GRMLinearClassifier`: its
`predict` gives every example the first class, and an epoch of 200 examples takes it 11 s.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.rivals.libraries.solver import AmbiguousLearner, Predict

PACKAGE = "scikit_weak"
TREES = 100


def learners(stem: str) -> Any:
    """The module `scikit_weak.classification._<stem>`, imported without its packages, which cannot be."""
    for name in (PACKAGE, f"{PACKAGE}.classification"):
        _stand_in_for_package(name)
    relaxation = f"{PACKAGE}.classification._relaxation"
    if relaxation not in sys.modules:
        missing = ModuleType(relaxation)
        missing.LabelRelaxationNNClassifier = lambda **options: ModuleType("absent")  # type: ignore[attr-defined]
        sys.modules[relaxation] = missing
    return importlib.import_module(f"{PACKAGE}.classification._{stem}")


def _stand_in_for_package(name: str) -> None:
    """The same place to find modules in, with nothing imported."""
    if name in sys.modules:
        return
    origin = importlib.util.find_spec(PACKAGE)
    if origin is None or origin.submodule_search_locations is None:
        raise ModuleNotFoundError(f"{PACKAGE} is not installed")
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [
        str(Path(place, *name.split(".")[1:])) for place in origin.submodule_search_locations
    ]
    sys.modules[name] = importlib.util.module_from_spec(spec)


def _targets(candidates: NDArray[np.bool_]) -> list[Any]:
    _stand_in_for_package(PACKAGE)
    representation = importlib.import_module(f"{PACKAGE}.data_representation")
    return [representation.DiscreteSetLabel(row.astype(float), len(row)) for row in candidates]


def _trees(X: NDArray[Any], seed: int, leaf: int) -> Any:
    """`RRLClassifier`: random trees, each with a random candidate of every example."""
    module = learners("ensemble")
    from sklearn.tree import ExtraTreeClassifier

    tree = ExtraTreeClassifier(min_samples_leaf=leaf)
    return module.RRLClassifier(tree, n_estimators=TREES, random_state=seed)


def _neighbours(X: NDArray[Any], seed: int, k: int) -> Any:
    """`WeaklySupervisedKNeighborsClassifier`: votes of equal weight."""
    return learners("neighbors").WeaklySupervisedKNeighborsClassifier(k=min(k, len(X)))


def _radius(X: NDArray[Any], seed: int, radius: float) -> Any:
    """`WeaklySupervisedRadiusClassifier`; the radius is a multiple of the root of the number of features.

    An example with no neighbour gets the first class.
    """
    return learners("neighbors").WeaklySupervisedRadiusClassifier(radius=radius * X.shape[1] ** 0.5)


def _pseudo_labels(X: NDArray[Any], seed: int, C: float) -> Any:
    """`PseudoLabelsClassifier` of logistic regression: candidates are drawn again until the model is sure of them.

    It looks up probabilities by label, so the regression has a column for every class, also for one never drawn. Of
    several restarts it keeps the last, so there is one.
    """
    estimator = _logistic()(C=C, max_iter=200)
    return learners("pseudolabels").PseudoLabelsClassifier(estimator, n_restarts=1, random_state=seed)


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    class AllClasses(LogisticRegression):  # type: ignore[misc]
        def predict_proba(self, X: Any) -> NDArray[np.float64]:
            known = super().predict_proba(X)
            found = np.zeros((len(known), int(self.classes_.max()) + 1))
            found[:, self.classes_] = known
            return found

    return AllClasses


def _weak(name: str, made: Callable[..., Any], **grid: Sequence[float]) -> AmbiguousLearner:
    """Return a learner; `made` is the estimator with these settings."""

    def fit(X: NDArray[Any], candidates: NDArray[np.bool_], seed: int, **settings: Any) -> Predict:
        model = made(X, seed, **settings).fit(X, _targets(candidates))
        return lambda queries: np.asarray(model.predict(queries)).astype(np.int64)

    return AmbiguousLearner(name, PACKAGE, fit=fit, grids=[grid])


LEARNERS = (
    _weak("weak-rrl", _trees, leaf=(10, 3, 1)),
    _weak("weak-knn", _neighbours, k=(30, 20, 15, 10, 7, 5)),
    _weak("weak-radius", _radius, radius=(1.5, 1.2, 1.0, 0.8, 0.6, 0.4)),
    _weak("weak-pseudo", _pseudo_labels, C=(1e-3, 1e-2, 1e-1, 1.0)),
)
