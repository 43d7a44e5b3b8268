"""Random draws that the simulations share: seeds, choices, and the candidates among which the right meaning hides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

import numpy as np
from sklearn.utils import check_random_state

from larank.ambiguous.meanings import Meaning

RandomState = int | np.random.RandomState | None
Item = TypeVar("Item")


def random_streams(random_state: RandomState, n: int) -> list[Random]:
    """Sources of random numbers, so that what is drawn from one does not change what another will give."""
    return [Random(int(seed)) for seed in check_random_state(random_state).randint(2**31 - 1, size=n)]


def drawn(random: Random, items: Sequence[Item]) -> Item:
    """One of the items, each as likely as the others."""
    return items[int(random.random() * len(items))]


def taken(random: Random, items: list[Item]) -> Item:
    """One of the items, each as likely as the others; it is removed."""
    return items.pop(int(random.random() * len(items)))


def candidates(right: Meaning, another: Callable[[], Meaning], level: int, random: Random) -> tuple[Meaning, ...]:
    """The right meaning and some wrong ones, all different, in random order.

    Parameters
    ----------
    right : Meaning
        The right meaning.
    another : callable
        Draws a meaning that may be offered instead.
    level : int
        How many wrong ones there are on average: each number from 0 to twice the level is as likely as the others.
    random : Random
        What number and order depend on.
    """
    offered = {right: None}
    wanted = 1 + int(random.random() * (2 * level + 1))
    while len(offered) < wanted:
        offered[another()] = None
    left = list(offered)
    return tuple(taken(random, left) for _ in range(wanted))
