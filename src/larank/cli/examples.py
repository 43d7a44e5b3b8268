"""Labelled examples and models as commands meet them: read, compared and counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from larank import LinearMulticlassSVC, LinearSGDClassifier
from larank.cli.console import say, short
from larank.data import ExampleFile, models, read
from larank.report import Row, class_errors, confusions, format_label

_ROWS_AT_ONCE = 16384


def load(model_file: Path) -> Any:
    """Read a classifier from its file."""
    estimator = models.load(model_file)
    if not hasattr(estimator, "n_features_in_"):
        raise ValueError(
            f"{model_file} holds a {type(estimator).__name__}, which is no classifier of examples; `larank tag` and "
            f"`larank parse` take sentences"
        )
    return estimator


def read_examples(path: Path, n_features: int | None, zero_based: bool) -> tuple[Any, npt.NDArray[Any]]:
    """Read a file; sparse data that use fewer than `n_features` features are widened, more are an error."""
    X, y = read(path, zero_based=True) if zero_based else read(path)
    return (X if n_features is None else with_width(path, X, n_features)), y


@dataclass
class MatrixData:
    """Examples that are rows of features, to be trained on; others like them are tested on."""

    path: Path
    n_features: int | None
    zero_based: bool

    def read(self) -> tuple[Any, npt.NDArray[Any]]:
        """All examples."""
        X, y = read_examples(self.path, self.n_features, self.zero_based)
        self.n_features = X.shape[1]
        return X, y

    def stream(self) -> ExampleFile:
        """The examples block by block."""
        return ExampleFile(self.path, n_features=self.n_features, zero_based=self.zero_based)

    def read_test(self, path: Path) -> tuple[Any, npt.NDArray[Any]]:
        """Examples of another file."""
        return read_examples(path, self.n_features, self.zero_based)

    def model(self, classifier: Any) -> Any:
        """What is saved."""
        return classifier

    def say_columns(self) -> None:
        """Features have no names, and are taken as they are."""


def with_width(path: Path, X: Any, n_features: int) -> Any:
    """The data of a file with so many features: sparse ones that use fewer are widened, more are an error."""
    if X.shape[1] == n_features:
        return X
    if sparse.issparse(X) and X.shape[1] < n_features:
        X = sparse.csr_matrix(X)
        return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
    advice = ""
    if sparse.issparse(X):
        advice = f"; train with --features {X.shape[1]}"
    elif {".csv", ".tsv"} & {suffix.lower() for suffix in path.suffixes}:
        advice = "; its last column was taken as the label"
    raise ValueError(f"{path} has {X.shape[1]} features, the model {n_features}{advice}")


def is_read_as_stream(path: Path, estimator: Any) -> bool:
    """Whether a file is to be read block by block: the model takes a stream, and all examples might not fit its memory.

    A number has about as many bytes in memory as in text, and text in compressed files is about four times as long.
    """
    takes_streams = isinstance(estimator, LinearSGDClassifier | LinearMulticlassSVC)
    if not takes_streams or not path.is_file() or path.suffix.lower() == ".npz":
        return False
    is_compressed = path.suffix.lower() in (".gz", ".bz2", ".xz", ".parquet")
    return bool(path.stat().st_size * (4 if is_compressed else 1) > estimator.memory_limit / 4)


def slices(X: Any) -> Iterator[Any]:
    """Cut into pieces whose scores fit into memory; an empty X is one piece, for the estimator to refuse."""
    for start in range(0, max(X.shape[0], 1), _ROWS_AT_ONCE):
        yield X[start : start + _ROWS_AT_ONCE]


def compare(estimator: Any, X: Any, y: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the true and the predicted labels in one type."""
    true, _ = _alike(y, estimator.classes_)
    predicted, _ = _alike(np.concatenate([estimator.predict(piece) for piece in slices(X)]), y)
    return true, predicted


def check_labels(path: Path, y: npt.NDArray[Any], classes: npt.NDArray[Any], what: str = "example") -> None:
    """Warn of labels the model does not know; if it knows none, the file belongs to another problem."""
    y, classes = _alike(y, np.unique(classes))
    unknown = y[~np.isin(y, classes)]
    if len(unknown) == 0:
        return
    found, wanted = (short(np.unique(labels).tolist()) for labels in (unknown, classes))
    if len(unknown) == len(y):
        raise ValueError(f"{path}: none of its labels ({found}) is a class of the model ({wanted})")
    count = len(unknown)
    some = f"1 {what} has a label" if count == 1 else f"{count} {what}s have labels"
    say(f"warning: {path}: {some} unknown to the model ({found}), counted as {'an error' if count == 1 else 'errors'}")


def check_fit_in_lines(model_file: Path, classes: npt.NDArray[Any], advice: str) -> None:
    """Refuse labels with line breaks, because a line written for an example must be one line."""
    for label in map(format_label, classes.tolist()):
        if len(f"{label}.".splitlines()) > 1:
            raise ValueError(f"{model_file}: the label {label!r} has a line break, so it is not one line; {advice}")


def _alike(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Make labels comparable: a file has numbers only if all its labels are, so 1 may be "1" elsewhere."""
    texts = "OUS"
    if (a.dtype.kind in texts) == (b.dtype.kind in texts):
        return a, b
    return _texts(a), _texts(b)


def _texts(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.array([format_label(label) for label in labels.tolist()])


def error_figures(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> dict[str, object]:
    """Name what a test has shown."""
    wrong = int(np.count_nonzero(y != predicted))
    return {"test examples": len(y), "test errors": wrong, "test error": f"{wrong / len(y):.2%}"}


def worst(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> dict[str, Sequence[Row]]:
    """Name the classes with most errors, and the pairs."""
    return {"Worst classes": class_errors(y, predicted)[:8], "Most confused": confusions(y, predicted)[:8]}
