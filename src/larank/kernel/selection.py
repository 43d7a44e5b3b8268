"""Which example comes next: strategies that look at the decisions on a few of them.

An online learner need not take the examples as they come. Of M random ones that it has not processed yet, it may take
the one that tells it most, [thesis] section 4.3:

    gradient  k_G = argmin_k y_k f(x_k)                              the most misclassified one, (4.13)
    active    k_A = argmin_k max_y y f(x_k) = argmin_k |f(x_k)|      the one nearest to the decision boundary, (4.14)

With a score f_c per class, y f becomes the score of the label minus the largest other one (`label_margin`), and |f| the
largest score minus the second largest (`uncertainty_margin`). Only (4.13) looks at labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from larank import parameters
from larank.data.models import persistable_value
from larank.declare import ParameterError

_Index = NDArray[np.int64]
_Float = NDArray[np.float64]


def uncertainty_margin(decisions: NDArray[Any]) -> NDArray[Any]:
    """How sure decisions are: |f|, or the largest score minus the second largest.

    Parameters
    ----------
    decisions : ndarray of shape (n_samples,) or (n_samples, n_classes)
        What `decision_function` returns.

    Returns
    -------
    ndarray of shape (n_samples,)
        Not negative; zero on the decision boundary.
    """
    if decisions.ndim == 1 or decisions.shape[1] == 1:
        distances: NDArray[Any] = np.abs(decisions).reshape(-1)
        return distances
    ordered = np.partition(decisions, -2, axis=1)
    margins: NDArray[Any] = ordered[:, -1] - ordered[:, -2]
    return margins


def label_margin(decisions: NDArray[Any], labels: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """How right decisions are: y f, or the score of the label minus the largest other one.

    Parameters
    ----------
    decisions : ndarray of shape (n_samples,) or (n_samples, n_classes)
        What `decision_function` returns.
    labels : integer ndarray of shape (n_samples,)
        The column of each example's class; with two classes 0 or 1.

    Returns
    -------
    ndarray of shape (n_samples,)
        Negative where the decision is wrong.
    """
    is_binary = decisions.ndim == 1 or decisions.shape[1] == 1
    classes = 2 if is_binary else decisions.shape[1]
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        wrong = labels[(labels < 0) | (labels >= classes)][0]
        raise ValueError(f"labels must be numbers of classes, 0 to {classes - 1}; got {wrong}")
    if is_binary:
        margins: NDArray[Any] = decisions.reshape(-1) * (2 * labels - 1)
        return margins
    rows = np.arange(len(decisions))
    others = decisions.copy()
    others[rows, labels] = -np.inf
    margins = decisions[rows, labels] - others.max(axis=1)
    return margins


def _check_count(name: str, value: int | None) -> None:
    if value is not None:
        parameters.whole_number(name, value, at_least=1)


@runtime_checkable
class Strategy(Protocol):
    """How the next example is chosen among random candidates."""

    @property
    def draws(self) -> int | None:
        """How many candidates to look at, at most; None for all there are."""

    @property
    def budget(self) -> int | None:
        """The number of labels after which training stops; None if all examples are used."""

    @property
    def needs_scores(self) -> bool:
        """Whether it looks at margins; otherwise examples come in random order and nobody asks `choose`."""

    @property
    def needs_labels(self) -> bool:
        """Whether the margins are those of `label_margin`, and not of `uncertainty_margin`."""

    def choose(self, margins: NDArray[Any], reach: float) -> int:
        """The place of the chosen candidate.

        Parameters
        ----------
        margins : ndarray of shape (n_candidates,)
            Of the candidates in the order in which they were drawn; at least one, and at most `draws`.
        reach : float
            The margin below which any label would make a candidate a violating one, ``1 + delta / 2``.
        """


@runtime_checkable
class GradualStrategy(Strategy, Protocol):
    """A strategy that may not need all of its candidates."""

    @property
    def looks(self) -> int:
        """How many candidates to score before the first question; each time twice as many more."""

    def is_decided(self, margins: NDArray[Any], reach: float) -> bool:
        """Whether further candidates would not change what `choose` says; the arguments are the same."""


@persistable_value
@dataclass(frozen=True)
class Random:
    """The next example at random, as in training without selection.

    Parameters
    ----------
    budget : int, optional
        Number of labels after which training stops. The certificate is that of the problem of all examples.
    """

    name: ClassVar[str] = "random"
    draws: ClassVar[int | None] = 1
    needs_scores: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = False
    budget: int | None = None

    def __post_init__(self) -> None:
        _check_count("budget", self.budget)

    def choose(self, margins: NDArray[Any], reach: float) -> int:
        """The first one drawn."""
        return 0


@dataclass(frozen=True)
class _Sampling:
    """A strategy that looks at the scores of a sample."""

    name: ClassVar[str]
    needs_scores: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = False
    sample_size: int | None = 50
    budget: int | None = None

    def __post_init__(self) -> None:
        _check_count("sample_size", self.sample_size)
        _check_count("budget", self.budget)

    @property
    def draws(self) -> int | None:
        """The sample size."""
        return self.sample_size

    def choose(self, margins: NDArray[Any], reach: float) -> int:
        """The candidate with the smallest margin; of several the one drawn first."""
        return int(margins.argmin())


@persistable_value
@dataclass(frozen=True)
class Gradient(_Sampling):
    """The most misclassified example of a sample, [thesis] eq. (4.13).

    The dual gains most by it, but where labels are noisy it is often one with a wrong label.

    Parameters
    ----------
    sample_size : int or None, default=50
        Number of random examples to choose from; None for all of them.
    budget : int, optional
        Number of labels after which training stops. The certificate is that of the problem of all examples.
    """

    name: ClassVar[str] = "gradient"
    needs_labels: ClassVar[bool] = True


@persistable_value
@dataclass(frozen=True)
class Active(_Sampling):
    """The example of a sample that is nearest to the decision boundary, [thesis] eq. (4.14).

    Parameters
    ----------
    sample_size : int or None, default=50
        Number of random examples to choose from; None for all of them. The best of 59 is with a probability of 95 %
        among the best 5 % of all.
    budget : int, optional
        Number of labels after which training stops. The certificate is that of the problem of all examples.
    """

    name: ClassVar[str] = "active"


@persistable_value
@dataclass(frozen=True, kw_only=True)
class AutoActive(_Sampling):
    """As `Active`, with a sample that ends once it has a few examples near the decision boundary.

    Parameters
    ----------
    sample_size : int or None, default=100
        The size of the sample at most.
    enough : int, default=5
        Number of examples with ``|f(x)| < 1 + delta / 2`` that end the sample, [thesis] section 4.3.2.
    budget : int, optional
        Number of labels after which training stops. The certificate is that of the problem of all examples.
    """

    name: ClassVar[str] = "autoactive"
    looks: ClassVar[int] = 16
    sample_size: int | None = 100
    enough: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        parameters.whole_number("enough", self.enough, at_least=1)

    def is_decided(self, margins: NDArray[Any], reach: float) -> bool:
        """Whether enough of them are near the decision boundary."""
        return bool(np.count_nonzero(margins < reach) >= self.enough)

    def choose(self, margins: NDArray[Any], reach: float) -> int:
        """The candidate with the smallest margin among those that would have been drawn one by one."""
        near = np.flatnonzero(margins < reach)
        end = near[self.enough - 1] + 1 if len(near) >= self.enough else len(margins)
        return int(margins[:end].argmin())


STRATEGIES: dict[str, type[Random] | type[_Sampling]] = {
    strategy.name: strategy for strategy in (Random, Gradient, Active, AutoActive)
}


def is_strategy(selection: Any) -> bool:
    """Return whether this is a strategy or the name of one."""
    return selection in STRATEGIES if isinstance(selection, str) else isinstance(selection, Strategy)


def strategy_named(selection: str | Strategy) -> Strategy:
    """Return the strategy of this name, or the one given."""
    if not isinstance(selection, str):
        if isinstance(selection, type) or not isinstance(selection, Strategy):
            raise ParameterError(
                "selection",
                f"must be one of {', '.join(map(repr, STRATEGIES))} or a strategy such as Active(sample_size=50); got "
                f"{selection!r}",
            )
        return selection
    return STRATEGIES[parameters.one_of("selection", selection, tuple(STRATEGIES))]()


class Pool:
    """The numbers of the examples that were not processed yet.

    Drawing candidates and taking one out do not depend on how many examples there are.

    Parameters
    ----------
    size : int
        How many examples there are, with the numbers 0 to `size` - 1.
    random_state : RandomState
        What the draws are made with.
    """

    def __init__(self, size: int, random_state: np.random.RandomState) -> None:
        self._random = random_state
        self._size = size
        self._numbers = np.arange(size)  # the first _size are in the pool
        self._place_of = np.arange(size)

    def __len__(self) -> int:
        return self._size

    def __contains__(self, number: int) -> bool:
        return 0 <= number < len(self._place_of) and bool(self._place_of[number] < self._size)

    def draw(self, count: int | None) -> _Index:
        """So many different numbers in random order, or all where there are fewer or `count` is None."""
        size = self._size
        if count is None or 3 * count > size:
            return self._numbers[self._random.permutation(size)[:count]]
        # One after the other, those that came before are drawn again: every sequence is equally likely.
        places = self._places(count)
        while len(distinct := dict.fromkeys(places.tolist())) < count:
            places = np.append(list(distinct), self._places(count - len(distinct)))
        return self._numbers[places]

    def _places(self, count: int) -> _Index:
        # Twice as fast as randint, and as good: the size is far below the 2^53 different values.
        return (self._random.random_sample(count) * self._size).astype(np.int64)

    def remove(self, number: int) -> None:
        """Take a number out: it changes places with the last one, and the pool ends before it."""
        if number not in self:
            raise ValueError(f"number must be in the pool, got {number}")
        self._size -= 1
        place, last = self._place_of[number], self._numbers[self._size]
        self._numbers[place], self._numbers[self._size] = last, number
        self._place_of[last], self._place_of[number] = place, self._size

    def put_back(self, number: int) -> None:
        """Take a number in again that was taken out."""
        place, first = self._place_of[number], self._numbers[self._size]
        self._numbers[place], self._numbers[self._size] = first, number
        self._place_of[first], self._place_of[number] = place, self._size
        self._size += 1

    def state(self) -> tuple[_Index, int]:
        """All numbers in their order, and how many of them are in the pool."""
        return self._numbers.copy(), self._size

    def restore(self, numbers: _Index, size: int) -> None:
        """The inverse of `state`."""
        self._numbers, self._size = numbers.copy(), size
        self._place_of = np.empty_like(numbers)
        self._place_of[numbers] = np.arange(len(numbers))
