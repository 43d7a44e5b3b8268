"""Examples are used in place: neither training nor prediction makes a copy of X."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import larank
from checks import CASES

N, FEW, MANY = 12000, 10, 90
SEARCHES = {larank.PathSearchCV}
"""A search copies the training examples of its folds."""
SLOW = {larank.TrackingSVC}
"""`TrackingSVC` is slow on so many rows. It takes its kernel values from the providers of `LaSVMClassifier`."""
WIDE_BLOCKS = {larank.MulticlassSVC, larank.PrimalMulticlassSVC}
"""One block of these trainers holds more than half of the sparse examples and would look like a copy."""


def examples(features):
    """Return three classes far apart, so that few examples are support vectors; most features are nearly constant."""
    random = np.random.default_rng(0)
    y = np.arange(N) % 3
    X = np.full((N, features), 1e-9)
    X[:, :3] = 0.1 * random.normal(size=(N, 3)) + 2 * np.eye(3)[y]
    return X, y


def in_memory_map(X, folder):
    np.save(folder / f"{X.shape[1]}.npy", X)
    return np.load(folder / f"{X.shape[1]}.npy", mmap_mode="r")


LAYOUTS = {
    "float64": (8, lambda X, folder: X),
    "float32": (4, lambda X, folder: X.astype(np.float32)),
    "csr": (12, lambda X, folder: sparse.csr_matrix(X)),
    "memmap": (8, in_memory_map),
}
# The last variant of each estimator, because maps with few components keep few examples.
ESTIMATORS = {case.estimator: case for case in CASES if case.takes_matrices and case.estimator not in SEARCHES | SLOW}
PAIRS = [
    (case, layout)
    for kind, case in ESTIMATORS.items()
    for layout in LAYOUTS
    if layout == "float64"
    or (layout == "csr" and kind not in WIDE_BLOCKS)
    or kind in (larank.LaRankClassifier, larank.LinearMulticlassSVC, larank.LinearSGDClassifier)
]


def peaks(case, X, y):
    """Return the bytes that Python and NumPy allocate at most in training and in prediction."""
    model, found = case.make(**({} if case.converges or case.is_transformer else {"max_iter": 1})), []
    for call in (lambda: model.fit(X, y), lambda: (model.transform if case.is_transformer else model.predict)(X)):
        tracemalloc.start()
        try:
            call()
            found.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return np.array(found)


@pytest.mark.parametrize(
    ("case", "layout"), PAIRS, ids=lambda value: getattr(getattr(value, "estimator", None), "__name__", value)
)
def test_x_is_not_copied(case, layout, tmp_path):
    """What further features cost is less than half of a copy of them."""
    size, of = LAYOUTS[layout]
    fewer, more = (peaks(case, of(X, tmp_path), y) for X, y in map(examples, (FEW, MANY)))
    assert (more - fewer < N * (MANY - FEW) * size / 2).all()
