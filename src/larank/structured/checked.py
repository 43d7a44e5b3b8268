"""A structured model as the solvers see it: every answer is checked, counted and timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from larank.blocks.ranges import LARGEST
from larank.structured.model import StructuredModel
from larank.structured.rows import Row, row_of

_FIRST_EXAMPLES = 5
_LARGEST = LARGEST[np.dtype(np.float64)]  # squared norm of features, kernel value or loss


class CheckedModel:
    """Asks the model and does not believe it; errors name the method and the example.

    Attributes
    ----------
    argmax_calls, joint_features, kernel_values : int
        How often the model was asked.
    seconds : dict
        How long its methods took.
    """

    def __init__(self, model: StructuredModel) -> None:
        if not isinstance(model, StructuredModel):
            raise TypeError(f"model must be an instance of a subclass of StructuredModel, got {model!r}")
        self.model = model
        self.has_kernel = model.joint_kernel is not None
        self.has_batches = not self.has_kernel and _is_of_its_own(type(model))
        self.length: int | None = None  # of the joint features
        self.argmax_calls = self.joint_features = self.kernel_values = 0
        self.seconds = dict.fromkeys(("argmax", "joint_feature", "joint_kernel", "loss"), 0.0)

    def check_first(self, X: Any, y: Any) -> None:
        """Ask about a few examples what must hold for all of them."""
        for number in range(min(_FIRST_EXAMPLES, len(y))):
            output = y[number]
            self.key(output, number)
            own = self.loss(output, output, number)
            if own != 0:
                raise ValueError(f"{self._name('loss')} of an output with itself must be 0, got {own} {_at(number)}")
            if self.has_kernel:
                self.kernel(X[number], output, X[number], output, number)
            else:
                self.feature(X[number], output, number)

    def check_augmented(self, X: Any, y: Any, scorer: Callable[[Any, int], Any]) -> None:
        """Before there are scores, the augmented arg max has the largest loss, so not less than that of the other one.

        Scores are those of w = 0. An arg max with the wrong sign of the loss would return the right output for ever,
        and training would have nothing to learn.
        """
        for number in range(min(_FIRST_EXAMPLES, len(y))):
            x = X[number]
            found = self.argmax(x, scorer(x, number), number, y[number])
            other = self.argmax(x, scorer(x, number), number)
            better, worse = self.loss(y[number], other, number), self.loss(y[number], found, number)
            if better > worse * (1 + 1e-9):
                raise self.missed(other, found, better, worse, number, "loss + score")

    def feature(self, x: Any, y: Any, number: int) -> Row:
        """Phi(x, y)."""
        self.joint_features += 1
        feature = self._ask("joint_feature", number, x, y)
        try:
            row = row_of(feature)
        except ValueError as error:
            raise ValueError(f"{self._name('joint_feature')} must return {error} {_at(number)}") from None
        self.length = row.length if self.length is None else self.length
        if row.length != self.length:
            raise ValueError(
                f"{self._name('joint_feature')} must return as many features as before, {self.length}; "
                f"got {row.length} {_at(number)}"
            )
        if not np.isfinite(row.values).all():
            raise ValueError(
                f"{self._name('joint_feature')} must return finite numbers, got others {_at(number)}, output {y!r}"
            )
        with np.errstate(over="ignore"):
            squares = float(row.values @ row.values)
        if squares > _LARGEST:
            raise ValueError(
                f"{self._name('joint_feature')} must return numbers whose squares sum to at most {_LARGEST:g}, got "
                f"{squares:.3g} {_at(number)}, output {y!r}; scale X"
            )
        return row

    def kernel(self, x: Any, y: Any, x2: Any, y2: Any, number: int) -> float:
        """K(x, y, x2, y2)."""
        self.kernel_values += 1
        value = self._ask("joint_kernel", number, x, y, x2, y2)
        return self._number("joint_kernel", value, number)

    def loss(self, y_true: Any, y: Any, number: int) -> float:
        """Delta(y_true, y)."""
        loss = self._number("loss", self._ask("loss", number, y_true, y), number)
        if loss < 0:
            raise ValueError(f"{self._name('loss')} must be >= 0, got {loss} {_at(number)}, output {y!r}")
        return loss

    def key(self, y: Any, number: int) -> Hashable:
        """What tells this output from others."""
        key: Hashable = self._ask("key", number, y)
        return key

    def argmax(self, x: Any, scorer: Any, number: int, *y_true: Any) -> Any:
        """The best output, with `y_true` that of the augmented score."""
        self.argmax_calls += 1
        output = self._ask("argmax", number, x, scorer, *y_true)
        if output is None:
            raise ValueError(f"{self._name('argmax')} must return an output, got None {_at(number)}")
        return output

    def argmax_batch(self, X: Sequence[Any], scorer: Any, numbers: Sequence[int], *y_true: Any) -> Sequence[Any]:
        """The best outputs of several examples in one call, where the model has batches."""
        self.argmax_calls += len(X)
        outputs = self._ask("argmax_batch", numbers[0], X, scorer, *y_true)
        if not hasattr(outputs, "__len__") or len(outputs) != len(X):
            got = f"{len(outputs)}" if hasattr(outputs, "__len__") else f"a {type(outputs).__name__}"
            raise ValueError(f"{self._name('argmax_batch')} must return an output per input, {len(X)}; got {got}")
        for output, number in zip(outputs, numbers, strict=True):
            if output is None:
                raise ValueError(f"{self._name('argmax_batch')} must return outputs, got None {_at(number)}")
        return outputs  # type: ignore[no-any-return]

    def missed(self, known: Any, found: Any, better: float, worse: float, number: int, what: str) -> ValueError:
        """The error that tells of an output better than the arg max."""
        return ValueError(
            f"{self._name('argmax')} must return the output with the largest {what}, got {found!r} with {worse:.9g} "
            f"{_at(number)}, where {known!r} has {better:.9g}"
        )

    def _ask(self, name: str, number: int, *arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return getattr(self.model, name)(*arguments)
        except Exception as error:
            error.add_note(f"raised by {self._name(name)} {_at(number)}")
            raise
        finally:
            counted = "argmax" if name == "argmax_batch" else name
            if counted in self.seconds:
                self.seconds[counted] += time.perf_counter() - began

    def _number(self, name: str, value: Any, number: int) -> float:
        try:
            found = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{self._name(name)} must return a number, got {value!r} {_at(number)}") from None
        if not abs(found) <= _LARGEST:
            raise ValueError(
                f"{self._name(name)} must return a finite number, at most {_LARGEST:g}, got {found} {_at(number)}"
            )
        return found

    def _name(self, method: str) -> str:
        return f"{type(self.model).__name__}.{method}"


def _is_of_its_own(model: type[StructuredModel]) -> bool:
    """Whether `argmax_batch` is the model's own and no older than its `argmax`, which a subclass may have changed."""
    maker = next(kind for kind in model.__mro__ if "argmax" in vars(kind) or "argmax_batch" in vars(kind))
    return maker is not StructuredModel and "argmax_batch" in vars(maker)


def _at(number: int) -> str:
    return f"for example {number}"
