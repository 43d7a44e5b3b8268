"""`Greedy`: the switch of greedy inference, for ``SequenceTagger(inference=Greedy(...))``."""

from __future__ import annotations

from typing import Literal

from larank.declare import Value, parameter


class Greedy(Value):
    """Greedy inference of a `SequenceTagger`: one label after the other, given the labels before it.

    References
    ----------
    Bordes. New Algorithms for Large-Scale Support Vector Machines. PhD thesis, 2010, section 5.3.2.
    """

    history: Literal["true", "predicted"] = parameter(
        'Labels before a token in training. "true" takes the labels of the training data. "predicted" takes the '
        "labels that the model predicts at that time; the problem then changes during training, so there is no "
        "certificate and no `tol`. No effect in prediction, which always takes predicted labels.",
        default="true",
        kw_only=False,
    )
