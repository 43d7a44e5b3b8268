"""The data sets of the papers, in the representation their experiments use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from larank.data import data_directory

__all__ = ["DATASETS", "DENSE_DATASETS", "Dataset", "DenseDataset", "available", "load", "load_dense"]

COVTYPE_TRAIN = 522_911  # [sdm] table 1.1

_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Dataset:
    """Examples as CSR rows in float64, with integer labels, split as the source splits them."""

    X_train: sparse.csr_matrix
    y_train: NDArray[np.int64]
    X_test: sparse.csr_matrix
    y_test: NDArray[np.int64]

    def merged(self) -> tuple[sparse.csr_matrix, NDArray[np.int64]]:
        """Training and test part in one."""
        X = sparse.vstack([self.X_train, self.X_test], format="csr")
        return X, np.concatenate([self.y_train, self.y_test])


@dataclass(frozen=True)
class DenseDataset:
    """Examples as dense rows in float32, with integer labels, split as the source splits them."""

    X_train: NDArray[np.float32]
    y_train: NDArray[np.int64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]


def _text(name: str) -> Dataset:
    """Word counts as l2-normalised tf-idf, the inverse document frequencies from the training part.

    The training rows are shuffled with a fixed seed: news20 is stored sorted by class.
    """
    with np.load(_file(name)) as stored:
        counts = {part: _counts(stored, part) for part in ("train", "test")}
        labels = {part: stored[f"y_{part}"].astype(np.int64) for part in ("train", "test")}
    order = np.random.default_rng(0).permutation(len(labels["train"]))
    weighting = TfidfTransformer().fit(counts["train"])
    X_train, X_test = (weighting.transform(counts[part]) for part in ("train", "test"))
    return Dataset(X_train[order], labels["train"][order], X_test, labels["test"])


def _counts(stored: np.lib.npyio.NpzFile, part: str) -> sparse.csr_matrix:
    arrays = tuple(stored[f"X_{part}_{key}"] for key in ("data", "indices", "indptr"))
    counts = sparse.csr_matrix(arrays, shape=tuple(stored[f"X_{part}_shape"]), dtype=np.float64)
    counts.sort_indices()
    return counts


def _images(name: str, largest: float) -> Dataset:
    """Dense integer attributes from 0 to `largest`, scaled to [0, 1]."""
    with np.load(_file(name)) as stored:
        X = {part: sparse.csr_matrix(stored[f"X_{part}"], dtype=np.float64) for part in ("train", "test")}
        y = {part: stored[f"y_{part}"].astype(np.int64) for part in ("train", "test")}
    return Dataset(X["train"] / largest, y["train"], X["test"] / largest, y["test"])


def _dense(name: str, scale: float, shift: float) -> DenseDataset:
    """Dense attributes x as x / scale + shift."""
    with np.load(_file(name)) as stored:
        X = {part: stored[f"X_{part}"].astype(np.float32) for part in ("train", "test")}
        y = {part: stored[f"y_{part}"].astype(np.int64) for part in ("train", "test")}
    for values in X.values():
        values /= scale
        values += shift
    return DenseDataset(X["train"], y["train"], X["test"], y["test"])


def _covtype() -> Dataset:
    """Each column scaled to [0, 1]; a seeded split of the size used in the paper."""
    with np.load(_file("covtype")) as stored:
        columns, labels = stored["X"], stored["y"].astype(np.int64)
    low, high = columns.min(axis=0), columns.max(axis=0)
    X = sparse.csr_matrix((columns - low) / np.maximum(high.astype(np.float64) - low, 1.0))
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = order[:COVTYPE_TRAIN], order[COVTYPE_TRAIN:]
    return Dataset(X[train], labels[train], X[test], labels[test])


DATASETS: dict[str, Callable[[], Dataset]] = {
    "news20": lambda: _text("news20"),
    "reuters_r52": lambda: _text("reuters_r52"),
    "mnist": lambda: _images("mnist", 255.0),
    "covtype": _covtype,
    "letter": lambda: _images("letter", 15.0),
}

"""Of the linear experiments."""

DENSE_DATASETS: dict[str, Callable[[], DenseDataset]] = {
    "letter": lambda: _dense("letter", 1.0, 0.0),
    "usps": lambda: _dense("usps", 2.0, 0.5),
    "mnist": lambda: _dense("mnist", 127.5, -1.0),
}
"""Of the kernel experiments of [larank]: letter raw, 0 to 15; usps in [0, 1]; mnist in [-1, 1]."""


def _file(name: str) -> Path:
    return data_directory() / name / f"{name}.npz"


def available(name: str) -> bool:
    """Whether there is a data directory with the file of this data set."""
    try:
        return _file(name).is_file()
    except FileNotFoundError:
        return False


def load(name: str) -> Dataset:
    """Read one of `DATASETS`.

    Raises
    ------
    ValueError
        If no data set has this name.
    FileNotFoundError
        If there is no data directory, or the file is not in it.
    """
    return _reader(name, DATASETS)()


def load_dense(name: str) -> DenseDataset:
    """Read one of `DENSE_DATASETS`; raises as `load` does."""
    return _reader(name, DENSE_DATASETS)()


def _reader(name: str, readers: Mapping[str, Callable[[], _Read]]) -> Callable[[], _Read]:
    if name not in readers:
        raise ValueError(f"name={name!r} is not a data set; accepted are {', '.join(readers)}")
    if not _file(name).is_file():
        raise FileNotFoundError(f"data set {name!r}: {_file(name)} does not exist; LARANK_DATA names the data folder")
    return readers[name]
