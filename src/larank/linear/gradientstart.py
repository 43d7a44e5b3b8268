"""The length of the first gradient step, and the scales of the features, chosen on a sample ([thesis] section 3.2.3).

One pass over the sample is made with several values of t0; the one with the lowest objective on the sample is taken.
Neighbours differ by a factor of four, and the search goes downhill from a step that moves scores by about one. Averaged
SGD makes steps that even out the scales of the features, on sparse data where that clearly helps.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from larank.linear.gradientmachine import (
    GradientMachine,
    GradientProblem,
    LabelledRows,
    Start,
    precision_of_weights,
    share_of_values,
    visits_per_regularisation,
)
from larank.training import completed

_SHARE = 0.1  # of the examples are the sample,
_LEAST, _MOST = 1_000, 10_000  # but at least and at most so many
_FACTOR = 4.0
_EXPONENTS = range(-6, 5)  # of the factor, that are tried at most
_CAREFUL_BELOW = 100  # examples tell too little about scales, and for steps that move scores by more than one
_UNEVEN = 4.0  # the ratio of two scales that is worth evening out
_SPARSE = 0.5  # is data with a smaller share of values that are not zero, however they are stored
_CLEARLY = 0.9  # of the objective must be what evening out gives there: scales may be what they are on purpose
_LARGEST_RATIO = 1e16  # of two scales that is evened out
_T0_OF_QUASI_NEWTON = (
    10.0  # where the search begins for steps by a matrix of single examples; longer ones diverge later
)


def sample_size(n_examples: int) -> int:
    """Of so many examples."""
    return min(n_examples, max(_LEAST, min(_MOST, round(_SHARE * n_examples))))


class StartSearch:
    """Trials on a sample, one at a time; `best` is the start to take so far."""

    def __init__(
        self, problem: GradientProblem, sample: LabelledRows, n_labels: int, weights: NDArray[Any] | None, seed: int
    ) -> None:
        self._problem, self._n_labels, self._seed = problem, n_labels, seed
        self._skip = visits_per_regularisation(sample.X, problem.algorithm)
        self._is_sparse = share_of_values(sample.X) < _SPARSE
        self._dtype = precision_of_weights(sample.X, n_labels)
        self._columns = self._columns_of(sample.X)
        self._sample, self._weights = self._narrowed(sample, weights)
        self._first_t0 = self._moving_scores_by_one()
        self._primal = math.inf
        self.best = Start(self._first_t0, self._skip)
        self.visits = 0

    @staticmethod
    def _columns_of(X: Any) -> NDArray[np.intp] | None:
        """The features that are in a sparse sample: there may be many more."""
        return np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1])) if issparse(X) else None

    def _narrowed(self, sample: LabelledRows, weights: NDArray[Any] | None) -> tuple[LabelledRows, NDArray[Any] | None]:
        """The sample with these features alone."""
        columns, X = self._columns, sample.X
        if columns is None:
            return sample, weights
        numbers = np.zeros(X.shape[1], np.int32)
        numbers[columns] = np.arange(len(columns))
        narrow = csr_matrix((X.data, numbers[X.indices], X.indptr), shape=(X.shape[0], len(columns)))
        if weights is not None:
            weights = np.concatenate([weights[columns], weights[X.shape[1] :]])
        return replace(sample, X=narrow), weights

    def _for_all_features(self, scaling: NDArray[np.float64] | None, n_features: int) -> NDArray[np.float64] | None:
        """With the mean scale for features that are not in the sample."""
        if scaling is None or self._columns is None:
            return scaling
        last = len(self._columns)
        found = np.full(n_features, float(np.exp(np.log(scaling).mean())))
        found[self._columns] = scaling[:last]
        return np.concatenate([found, scaling[last:]])

    def start(self, n_features: int) -> Start:
        """The best one so far, for examples with so many features."""
        return self.best._replace(scaling=self._for_all_features(self.best.scaling, n_features))

    def trials(self) -> Generator[None]:
        """Do one trial after each `next`."""
        is_careful = len(self._sample) < _CAREFUL_BELOW or self._problem.algorithm == "olbfgs"
        highest = 0 if is_careful else _EXPONENTS[-1]
        exponent = 0
        for scaling in self._scalings():
            lowest_before = self._primal
            primal = self._trial(exponent, scaling)
            yield
            if primal >= lowest_before:  # with the steps that were best without it
                continue
            for direction in (-1, 1):
                began_at = exponent
                while _EXPONENTS[0] <= exponent + direction <= highest:
                    beside = self._trial(exponent + direction, scaling)
                    yield
                    if math.isfinite(primal) and beside >= primal:
                        break
                    exponent, primal = exponent + direction, beside
                if exponent != began_at:
                    break

    def _trial(self, exponent: int, scaling: NDArray[np.float64] | None) -> float:
        start = Start(self._first_t0 * _FACTOR**-exponent, self._skip, scaling)
        sample = self._sample
        machine = GradientMachine(self._problem, self._dtype, sample.X.shape[1], self._n_labels, start, self._seed)
        if self._weights is not None:
            machine.start_from(self._weights)
        machine.feed(sample, shuffled=True)
        with np.errstate(all="ignore"):
            machine.session.run(2**62)
            primal = completed(machine.objectives(sample, with_dual=False)).primal
        self.visits += len(sample)
        if primal < self._primal * (_CLEARLY if scaling is not None and self._is_sparse else 1):
            self._primal, self.best = primal, start
        return primal if math.isfinite(primal) else math.inf

    def _moving_scores_by_one(self) -> float:
        if self._problem.algorithm == "olbfgs":
            return _T0_OF_QUASI_NEWTON
        squares = self._squares
        mean = float(squares.sum()) / max(1, len(self._sample))
        return (mean or 1.0) / self._problem.alpha  # examples without a value tell nothing

    @cached_property
    def _squares(self) -> NDArray[np.float64]:
        """Of the values of each feature, summed up; the intercept last."""
        X = self._sample.X
        found: NDArray[np.float64]
        if issparse(X):
            with np.errstate(over="ignore"):
                found = np.bincount(X.indices, X.data.astype(np.float64) ** 2, X.shape[1]).astype(np.float64)
        else:
            found = np.einsum("ij,ij->j", X, X, dtype=np.float64)
        return np.append(found, float(X.shape[0])) if self._problem.intercept else found

    def _scalings(self) -> list[NDArray[np.float64] | None]:
        """The diagonals that are worth a trial.

        The scale of a feature is the mean square of its values that are not zero, and a step in it is divided by that,
        up to a factor that leaves the mean length of steps as it is.
        """
        if self._problem.algorithm != "asgd" or len(self._sample) < _CAREFUL_BELOW:
            return [None]
        X, squares = self._sample.X, self._squares
        counts = X.getnnz(axis=0) if issparse(X) else np.count_nonzero(X, axis=0)
        counts = np.append(counts, X.shape[0]) if self._problem.intercept else counts
        scales = np.divide(squares, counts, out=np.zeros_like(squares), where=counts > 0)
        present = scales > 0
        if not present.any() or scales[present].max() <= _UNEVEN * scales[present].min():
            return [None]
        scales[~present] = np.exp(np.log(scales[present]).mean())
        scales = np.maximum(scales, scales.max() / _LARGEST_RATIO)
        scaling = 1 / scales
        scaling *= squares.sum() / (squares @ scaling)
        return [None, scaling] if self._is_sparse else [scaling]
