"""What further labels would bring: how often model and person agree, and how far the model still moves.

Some examples of the pool are watched. After every so many labels the model predicts them again. Of the share D(a, n) of
these predictions that differ between a labels and the n there are now, a part is chance: models of one pass waver. The
rest is progress, and where errors fall as a power of the labels given, it does so, too:

    D(a, n) = f + c (a^-b - n^-b)

f >= 0, c >= 0 and b are fitted to the looks since a fifth of the labels, and n further to m labels are expected to mend
c (n^-b - m^-b) of the predictions. docs/active.md compares that with what they did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

WATCHED = 500
"""So many examples of the pool are watched, at most."""
RECENT_LABELS = 100
"""So many labels, the last ones, count for the agreement."""

_LABELS_BETWEEN = 10  # two looks at the least,
_SHARE_BETWEEN = 0.1  # and this share of the labels before
_OLDEST_SHARE = 0.2  # of the labels by now: looks before that are forgotten
_FEWEST_LOOKS = 4  # for an extrapolation
_EXPONENTS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Advice:
    """Whether further labels are worth their trouble; `print` says it in words.

    Attributes
    ----------
    labels_used : int
        How many labels were given.
    agreement : float or None
        The share of the last 100 labels that the model would have given by itself, before it learnt them. Where the
        learner asks about what it is least sure of, that is less than its accuracy. None before labels of two classes.
    stability : float or None
        The share of watched examples that the model takes for the same class as some tenth of the labels ago.
    further : int
        How many more labels the advice is about.
    expected_gain : float or None
        How much accuracy these labels are expected to bring, from the recent curve; rather too much than too little.
        None while there is too little to go by.
    worthwhile : float
        The gain below which labels are not worth their trouble.
    """

    labels_used: int
    agreement: float | None
    stability: float | None
    further: int
    expected_gain: float | None
    worthwhile: float

    @property
    def enough(self) -> bool:
        """Whether further labels are expected to bring less than is worthwhile."""
        return self.expected_gain is not None and self.expected_gain < self.worthwhile

    def __str__(self) -> str:
        told = [f"{self.labels_used} labels were given."]
        if self.agreement is not None:
            told.append(f"The model would have given {self.agreement:.0%} of the last ones by itself.")
        if self.expected_gain is None:
            told.append("It is too early to tell what further labels would bring: go on.")
        else:
            advice = "that is enough" if self.enough else "go on"
            told.append(f"{self.further} more would mend some {self.expected_gain:.1%} of its predictions: {advice}.")
        return " ".join(told)


@dataclass
class Watch:
    """What the model has said of the watched examples of the pool, and of those it was taught."""

    numbers: NDArray[np.int64]
    agreed: list[bool] = field(default_factory=list)  # one for each of the last labels
    counts: list[int] = field(default_factory=list)  # labels there were at each look
    predictions: list[NDArray[np.int32]] = field(default_factory=list)  # of the same looks
    labels: list[Any] = field(default_factory=list)  # what the numbers in predictions stand for

    @classmethod
    def over(cls, size: int, random: np.random.RandomState) -> Watch:
        """Watch some examples of a pool."""
        return cls(np.sort(random.permutation(size)[:WATCHED]))

    def state(self) -> dict[str, Any]:
        """Arrays and plain values for a file."""
        looked = np.array(self.predictions, dtype=np.int32).reshape(len(self.counts), len(self.numbers))
        return {**vars(self), "counts": np.array(self.counts, dtype=np.int64), "predictions": looked}

    @classmethod
    def of(cls, state: dict[str, Any]) -> Watch:
        """The inverse of `state`."""
        return cls(**{**state, "counts": state["counts"].tolist(), "predictions": list(state["predictions"])})

    def is_due(self, labels: int) -> bool:
        """Whether it is time for a look."""
        return not self.counts or labels >= self.counts[-1] + max(_LABELS_BETWEEN, _SHARE_BETWEEN * self.counts[-1])

    def look(self, labels: int, predictions: Sequence[Any]) -> None:
        """Keep what the model says of the watched examples by now."""
        self.counts.append(labels)
        self.predictions.append(self._numbered(predictions))
        while self.counts[0] < _OLDEST_SHARE * labels:
            del self.counts[0], self.predictions[0]

    def compare(self, guessed: Sequence[Any], labels: Sequence[Any]) -> None:
        """Take note of what the model would have said, and what a person says."""
        self.agreed += [bool(a == b) for a, b in zip(guessed, labels, strict=True)]
        del self.agreed[:-RECENT_LABELS]

    def forget_after(self, labels: int, taken_back: int) -> None:
        """Some labels were taken back, so that there are fewer now."""
        del self.agreed[len(self.agreed) - min(taken_back, len(self.agreed)) :]
        while self.counts and self.counts[-1] > labels:
            del self.counts[-1], self.predictions[-1]

    def advice(self, labels: int, predictions: Sequence[Any] | None, further: int, worthwhile: float) -> Advice:
        """What the looks say, beside what the model says of the watched examples now."""
        agreement = sum(self.agreed) / len(self.agreed) if self.agreed else None
        before = np.array([count for count in self.counts if count < labels], dtype=np.float64)
        if predictions is None or not len(before):
            return Advice(labels, agreement, None, further, None, worthwhile)
        now = self._numbered(predictions)
        moved = np.array([np.mean(then != now) for then in self.predictions[: len(before)]])
        expected = None if len(before) < _FEWEST_LOOKS else _expected(before / labels, moved, 1 + further / labels)
        return Advice(labels, agreement, 1 - float(moved[-1]), further, expected, worthwhile)

    def _numbered(self, predictions: Sequence[Any]) -> NDArray[np.int32]:
        places = {label: place for place, label in enumerate(self.labels)}
        for label in predictions:
            if label not in places:
                places[label] = len(places)
                self.labels.append(label)
        return np.array([places[label] for label in predictions], dtype=np.int32)


def _expected(before: NDArray[np.float64], moved: NDArray[np.float64], after: float) -> float:
    """What the best fit of the formula above expects; labels are shares of those there are now."""
    fits = []
    for exponent in _EXPONENTS:
        progress = before**-exponent - 1
        (factor, _), distance = nnls(np.column_stack([progress, np.ones_like(progress)]), moved)
        fits.append((distance, factor * (1 - after**-exponent)))
    return min(1.0, float(min(fits)[1]))
