"""The problems of table 4.2 of the thesis, in the forms a library may be given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.rbf import Parameters
from larank.reproduce.datasets import BINARY, load_binary

DENSE, CSR = "dense", "csr"


@dataclass(frozen=True)
class Problem:
    """Training and test examples in float32, by form, and labels -1 and +1."""

    name: str
    X_train: Mapping[str, Any]
    y_train: NDArray[np.int64]
    X_test: Mapping[str, Any]
    y_test: NDArray[np.int64]
    parameters: Parameters

    @property
    def forms(self) -> tuple[str, ...]:
        """Those there are."""
        return tuple(self.X_train)

    @property
    def density(self) -> float:
        """The share of values that are not zero, where there is a CSR form; otherwise 1."""
        X = self.X_train.get(CSR)
        return 1.0 if X is None else X.nnz / (X.shape[0] * X.shape[1])


PROBLEMS: dict[str, tuple[str, ...]] = {
    "waveform": (DENSE,),
    "banana": (DENSE,),
    "reuters": (CSR, DENSE),
    "usps": (DENSE,),
    "usps-noise": (DENSE,),
    "adult": (CSR, DENSE),
    "covtype100k": (DENSE,),
    "mnist8": (DENSE, CSR),
}
"""Which forms are worth a try: the second one where many values are zero, or few features are used."""


def load(name: str) -> Problem:
    data, given = load_binary(name), BINARY[name]
    X_train, X_test = ({form: _in_form(X, form) for form in PROBLEMS[name]} for X in (data.X_train, data.X_test))
    return Problem(name, X_train, data.y_train, X_test, data.y_test, Parameters(given.C, given.gamma))


def _in_form(X: Any, form: str) -> Any:
    if form == DENSE:
        return X.toarray() if sparse.issparse(X) else X
    if sparse.issparse(X):
        return X
    # The kernel depends on differences alone: moved to where the background of the images is zero.
    return sparse.csr_matrix(X - X.min())
