"""What a structured model tells the solvers: features of pairs, the best output for an input, and the loss.

With inputs x, outputs y and a joint feature Phi(x, y), [thesis] writes p and c for x and y:

    S(x, y)  =  <w, Phi(x, y)>                                     the score, (5.1)
    predict  =  argmax_y S(x, y)                                   (2.17)
    train on    argmax_y Delta(y_true, y) + S(x, y)                the output that violates its margin most

A model with a joint kernel K(x, y, x', y') = <Phi(x, y), Phi(x', y')> (5.2) has no w. Its scores are
S(x, y) = sum_i beta_i K(x_i, y_i, x, y), and its `argmax` is handed a function that computes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike


class StructuredModel(ABC):
    """The contract between a structured problem and its solvers.

    Subclasses define `argmax` and `loss`, and one of `joint_feature` and `joint_kernel`. Inputs and outputs may be
    any objects. Solvers check what they are told: the length of joint features, the sign of losses, and that an
    arg max is not below an output they know.
    """

    joint_kernel: ClassVar[Callable[..., float] | None] = None
    """A method ``joint_kernel(x, y, x2, y2)``, positive semi-definite; None where there are joint features."""

    def joint_feature(self, x: Any, y: Any) -> ArrayLike:
        """The features of a pair, ``Phi(x, y)``: an array or a sparse row, of the same length for all pairs."""
        raise NotImplementedError(f"{type(self).__name__} has no joint_feature")

    @abstractmethod
    def argmax(self, x: Any, w: Any, y_true: Any = None) -> Any:
        """The best output for an input.

        Parameters
        ----------
        x
            The input.
        w : ndarray of shape (n_features,), or callable
            The weights, not to be changed. With a joint kernel a function: ``w(y)`` is the score of the pair (x, y),
            and ``w.terms()`` has the (coefficient, x, y) it is the sum of.
        y_true : optional
            If given, the output wanted is that with the largest ``loss(y_true, y) + S(x, y)``. A model that cannot find
            it raises `NotImplementedError`; solvers other than the perceptron then cannot train it.

        Returns
        -------
        output
            The exact maximum: an output that is worse than `y_true` or another output known is an error.
        """

    def argmax_batch(self, X: Sequence[Any], w: Any, y_true: Sequence[Any] | None = None) -> Sequence[Any]:
        """The best outputs for several inputs, one for each, as `argmax` finds them.

        Optional, for models with joint features: where a class defines this beside its `argmax`, solvers that look at
        many examples with the same weights call it instead.
        """
        return [self.argmax(x, w, None if y_true is None else y_true[i]) for i, x in enumerate(X)]

    @abstractmethod
    def loss(self, y_true: Any, y: Any) -> float:
        """How bad it is to answer `y` where `y_true` is right: not negative, and 0 for equal outputs."""

    def key(self, y: Any) -> Hashable:
        """Something hashable that tells outputs apart: two of them are the same if their keys are equal.

        Numbers, strings, arrays, lists, tuples, sets, mappings and whatever is hashable by its value are known here;
        lists, tuples and arrays with equal entries are the same output.
        """
        return _key(y)

    def check_saved(
        self, inputs: Sequence[Any] = (), outputs: Sequence[Any] = (), n_features: int | None = None
    ) -> None:
        """Raise a ValueError where what a model file holds cannot be inputs, outputs or the number of joint features.

        By default anything can be. A model whose methods rely on what they are given checks it here.
        """


def _key(y: Any) -> Hashable:
    if isinstance(y, np.ndarray | np.generic):
        y = y.tolist()
    if type(y) in (int, str):  # the most frequent ones
        return y  # type: ignore[no-any-return]
    if isinstance(y, list | tuple):
        return tuple(_key(part) for part in y)
    if isinstance(y, Mapping):
        return frozenset((_key(k), _key(v)) for k, v in y.items())
    if isinstance(y, AbstractSet):
        return frozenset(_key(part) for part in y)
    if isinstance(y, Hashable) and type(y).__hash__ is not object.__hash__:  # which tells objects apart, not values
        return y
    raise TypeError(
        f"outputs that are a {type(y).__name__} need a method key(y) of the model that returns something hashable, the "
        f"same for equal outputs"
    )
