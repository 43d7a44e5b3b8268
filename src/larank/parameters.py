"""The groups of parameters that estimators share, and checks of values that types do not describe."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from larank.declare import (
    LARGEST_COUNT,
    Choice,
    Declared,
    Flag,
    Number,
    ParameterError,
    Value,
    Whole,
    as_float,
    demand,
    is_whole,
    parameter,
)

OPERATIONS = ("new", "old", "optimize")
_MOST_VALUES = 10_000  # of a search
TAU = 0.08  # LaRank skips steps on smaller violations in the first pass, for a margin of 1
MOST_PASSES = 1000  # of training that stops at a gap, unless max_iter is given

# ---- Checks of single values: each takes a name and a value, and raises a ParameterError ----


def positive(name: str, value: Any, *, zero: bool = False) -> float:
    """Return a finite number above zero, or from zero on if `zero` is true."""
    demand(name, value, Number(least=0) if zero else Number(above=0))
    return float(value)


def finite(name: str, value: Any) -> float:
    """Return a finite number."""
    demand(name, value, Number())
    return float(value)


def whole_number(name: str, value: Any, *, at_least: int, at_most: int = LARGEST_COUNT) -> int:
    """Return an integer within bounds."""
    demand(name, value, Whole(at_least, at_most))
    return int(value)


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return one of the choices."""
    demand(name, value, Choice(tuple(choices)))
    return str(value)


def costs_of_path(Cs: Iterable[float]) -> list[float]:
    """Return the values of `C` that a path is trained for, at least one."""
    return _values("Cs", Cs, positive)


def costs_to_try(name: str, value: Any) -> None:
    """Require a number of values of `C`, or the values."""
    if is_one_value(value):
        _number_or_values(name, value)
    else:
        costs_of_path(value)


def gammas_to_try(name: str, value: Any) -> None:
    """Require a number of values of `gamma`, or the values."""
    if is_one_value(value):
        _number_or_values(name, value)
    else:
        _values(name, value, lambda name, gamma: demand(name, gamma, Choice(("scale", "auto")), Number(above=0)))


def is_one_value(value: Any) -> bool:
    """Return whether a value is not a collection of values to try; an iterator could be read only once."""
    if isinstance(value, Iterator):
        return True
    return isinstance(value, str | bytes | bool) or not isinstance(value, Iterable)


def _values(name: str, values: Any, check: Callable[[str, Any], Any]) -> list[Any]:
    try:
        found = list(values)
    except TypeError:
        raise ParameterError(name, f"must be a sequence of numbers; got {values!r}") from None
    if not found:
        raise ParameterError(name, "must hold at least one value; got none")
    return [check(f"{name}[{index}]", value) for index, value in enumerate(found)]


def _number_or_values(name: str, value: Any) -> None:
    if not is_whole(value) or not 1 <= value <= _MOST_VALUES:
        raise ParameterError(
            name, f"must be an integer >= 1, at most {_MOST_VALUES}, or a sequence of numbers; got {value!r}"
        )


def not_zero(name: str, value: Any) -> None:
    """Require a number of threads, or a negative number that leaves some of the processors free."""
    if not is_whole(value) or value == 0 or abs(value) > LARGEST_COUNT:
        raise ParameterError(name, f"must be None or an integer other than 0; got {value!r}")


def odd(name: str, value: Any) -> None:
    """Require an odd number of words."""
    if not is_whole(value) or value < 1 or value % 2 == 0:
        raise ParameterError(
            name, f"must be an odd number, a word and equally many to the left and to the right; got {value!r}"
        )


def device(name: str, value: Any) -> None:
    """Require the name of a device or a device of PyTorch."""
    is_named = isinstance(value, str) and re.fullmatch(r"cpu|cuda(:\d+)?", value)
    if not is_named and type(value).__module__.partition(".")[0] != "torch":
        raise ParameterError(name, f"must be 'cpu', 'cuda', 'cuda:' with a number or a torch.device; got {value!r}")


def class_weights(name: str, value: Any) -> None:
    """Require "balanced" or a weight for labels, which must be labels of the data."""
    if isinstance(value, str) and value == "balanced":
        return
    if not isinstance(value, Mapping):
        raise ParameterError(name, f"must be None, 'balanced' or a dict from labels to weights; got {value!r}")
    if not all(0 <= as_float(weight) < math.inf for weight in value.values()):
        raise ParameterError(name, f"must not be negative or infinite; got {value!r}. Give each label a number >= 0")


def seed(name: str, value: Any) -> None:
    """Require an integer that NumPy takes as a seed, or a generator of the older kind."""
    is_generator = isinstance(value, np.random.RandomState) or value is np.random
    if not is_generator and not (is_whole(value) and 0 <= value < 2**32):
        raise ParameterError(
            name, f"must be None, an integer from 0 to {2**32 - 1} or a numpy.random.RandomState; got {value!r}"
        )


def certify(value: Any, tol: float | None = None, *, has_objective: bool = True) -> None:
    """Require a value of the argument `certify` of `fit` that can act with `tol` and with the solver."""
    demand("certify", value, Flag(), Choice(("auto",)))
    if tol is not None and not value:
        raise ParameterError(
            "certify", f"must not be False with tol={tol!r}, because the gap is computed on all examples"
        )
    if value is True and not has_objective:
        raise ParameterError("certify", "must be 'auto' or False, because this solver has no objective; got True")


def operations(name: str, value: Any) -> None:
    """Require a collection of LaRank's operations that contains "new"."""
    if not isinstance(value, str | list | tuple | set | frozenset):
        raise ParameterError(name, f"must be a collection of {OPERATIONS}; got {value!r}")
    names = [value] if isinstance(value, str) else list(value)
    for operation in names:
        one_of(name, operation, OPERATIONS)
    if "new" not in names:
        raise ParameterError(name, f"must contain 'new'; got {value!r}")


def check_unchanged(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise if a parameter that cannot change during a stream is not what it was at the beginning of the stream."""
    for name, value in before.items():
        if now[name] != value:
            raise ParameterError(name, f"must stay as it was in the calls before, {value!r}; got {now[name]!r}")


# ---- Groups of parameters ----


class Kernelized(Declared, position=0):
    """The kernel and its parameters, with the names of `sklearn.svm.SVC`."""

    kernel: str | Callable[[Any, Any], ArrayLike] = parameter(
        "Kernel that compares two examples. A callable takes two collections of examples and returns the matrix of "
        "their kernel values; `X` may then be any sequence of objects, and rows of a sparse matrix are passed as a "
        'CSR matrix. "laplacian", "chi2" and "intersection" need dense data, the last two without negative features.',
        default="rbf",
        choices=("linear", "rbf", "poly", "sigmoid", "laplacian", "chi2", "intersection", "precomputed"),
        form="callable",
        kw_only=False,
    )
    gamma: float | Literal["scale", "auto"] = parameter(
        'Coefficient of the kernels other than "linear", above 0. Larger values make the kernel more local. "scale" '
        'is ``1 / (n_features * X.var())`` of the first data, "auto" is ``1 / n_features``.',
        default="scale",
        above=0,
    )
    degree: int = parameter('Degree of the kernel "poly"; no effect with other kernels.', default=3, least=1)
    coef0: float = parameter('Constant of the kernels "poly" and "sigmoid"; no effect with other kernels.', default=0.0)


class HardMargins(Declared):
    """The cost of solvers that can make margins hard."""

    C: float = parameter(
        "Inverse regularisation strength: the cost of one unit of loss against ``1/2 |w|^2``. Larger values fit the "
        "training data more closely. Infinity makes margins hard; if the model does not separate the classes, "
        "`result_.primal` is then infinite, and a warning says so.",
        default=1.0,
        above=0,
        infinite=True,
    )


class MulticlassProblem(HardMargins):
    """The problem of all classes together, with one kernel."""

    fit_intercept: bool = parameter(
        "Whether to add 1 to all kernel values, which gives every class a regularised bias.", default=False
    )
    label_costs: ArrayLike | Mapping[tuple[Any, Any], float] | None = parameter(
        "Margin that is required between pairs of classes: a mapping from pairs (label, other label), or a matrix in "
        "the order of `classes_` whose entry ``[i, j]`` is the margin of true class i over class j. By default 1 for "
        "all pairs; pairs that a mapping does not name have 1, too.",
        default=None,
        form="mapping or array of shape (n_classes, n_classes)",
    )


class Weighted(Declared, position=2):
    """Weights of classes."""

    class_weight: Mapping[Any, float] | str | None = parameter(
        'Factors on `C` for the examples of each class. "balanced" makes them inversely proportional to the class '
        "frequencies. By default all are 1.",
        default=None,
        check=class_weights,
        choices=("balanced",),
        form="dict",
    )


class TimeLimited(Declared, position=3.2):
    """The limit of time of every training."""

    time_limit: float | None = parameter(
        "Maximum training time in seconds, including the certificate. Training that reaches it ends with a valid "
        "model and a warning. By default there is no limit.",
        default=None,
        above=0,
    )


class Passes(TimeLimited, position=3.1):
    """How many passes over the data are made."""

    max_iter: int | None = parameter(
        "Number of passes over the data. By default one.",
        default=None,
        least=1,
    )

    @property
    def _most_passes(self) -> int:
        """The number of passes after which training that stops at a gap ends with a warning."""
        return MOST_PASSES if self.max_iter is None else int(self.max_iter)


class Stopping(Passes, position=3):
    """What ends training: a duality gap, a number of passes, a limit of time."""

    tol: float | None = parameter(
        "Relative duality gap, ``(primal - dual) / primal``, at which training stops. By default `max_iter` passes "
        "are made, whatever the gap is.",
        default=None,
        above=0,
    )
    max_iter: int | None = parameter(
        "Number of passes over the data; with `tol` the largest number, after which training stops with a warning. By "
        "default one pass is made, and at most 1000 with `tol`.",
        default=None,
        least=1,
    )


class StoppingByGain(Stopping, position=3):
    """What ends training that makes further passes while they are cheap and gain."""

    _MAY_REPEAT = True

    max_iter: int | None = parameter(
        "Number of passes over the data in `fit`; with `tol` the largest number, after which training stops with a "
        "warning. By default further passes are made while they are cheap and the last one raised the dual objective "
        "by more than 0.1 %; cheap are 20 passes, 100 000 visits and 2e7 kernel values in all, so large data gets one "
        "pass. With `tol` the default is 1000. `partial_fit` makes one pass.",
        default=None,
        least=1,
    )


class StoppingAtGap(Passes, position=3):
    """What ends the training of an exact solver."""

    tol: float = parameter(
        "Relative duality gap, ``(primal - dual) / primal``, at which training stops.", default=1e-3, above=0
    )
    max_iter: int | None = parameter(
        "Maximum number of passes over the data, after which training stops with a warning. By default 1000.",
        default=None,
        least=1,
    )


class Threaded(Declared, position=4):
    """Memory and threads."""

    memory_limit: float = parameter(
        "Maximum additional memory of training in bytes, for support vectors, coefficients, kernel values, blocks and "
        "the model. With less, kernel values are recomputed, which is slower; the model is the same up to rounding.",
        default=2e9,
        above=0,
        most=LARGEST_COUNT,
    )
    n_jobs: int | None = parameter(
        "Number of threads for kernel values. By default as many as BLAS uses; -1 uses all processors.",
        default=None,
        check=not_zero,
        form="int",
    )


class Seeded(Declared, position=5):
    """The seed and progress of every training."""

    random_state: int | np.random.RandomState | None = parameter(
        "Seed for the order of the examples and all random choices. An integer makes the model reproducible.",
        default=None,
        check=seed,
        form="int or RandomState",
    )
    verbose: int | bool = parameter(
        "Whether to show progress: 1 shows a progress bar or, if standard error is not a terminal, a line every few "
        "seconds.",
        default=0,
        least=0,
    )


# ---- Algorithms that several estimators have ----


class LaRank(Value):
    """The switches of LaRank, for ``solver=LaRank(...)``.

    `LaRankClassifier` has all of them, `StructuredSVC` has `schedule` and `n_reprocess`, and `SequenceTagger` has
    `n_reprocess`, because its schedule is fixed.

    References
    ----------
    Bordes, Bottou, Gallinari, Weston. Solving MultiClass Support Vector Machines with LaRank. ICML 2007.
    """

    schedule: Literal["adaptive", "fixed"] | None = parameter(
        'How the update steps alternate. "adaptive" chooses the next step in proportion to its recent increase of the '
        'dual objective per unit of work; "fixed" follows each new example by `n_reprocess` rounds of steps on old '
        'examples. By default "adaptive" in LaRankClassifier and "fixed" elsewhere.',
        default=None,
    )
    n_reprocess: int | None = parameter(
        "Number of rounds on old examples after each new one, with the fixed schedule. More rounds come closer to the "
        "optimum in each pass. By default 1, and 5 in a SequenceTagger with exact inference.",
        default=None,
        least=0,
    )
    operations: Collection[str] = parameter(
        'The operations that the schedule may choose from, "new" among them. Fewer are slower to converge.',
        default=OPERATIONS,
        check=operations,
        form='collection of {"new", "old", "optimize"}',
    )
    tau: float = parameter(
        "Tolerance of optimality conditions in the first pass, for a margin of 1: steps on smaller violations are "
        "skipped. Each further pass divides it by 4.",
        default=TAU,
        least=1e-12,
    )
    forget: Literal["least", "oldest"] = parameter(
        'Which support vector `max_support` removes. "least" removes the one that changes the decision function least '
        'and adds its coefficients to its nearest neighbours. "oldest" removes the oldest with all it has '
        "contributed, for data that drift.",
        default="least",
    )


class BlockSteps(Value):
    """Training by matrix products from end to end, for ``solver=BlockSteps(device="cuda")``.

    The whole training set may stay in the memory of the host. Examples must be dense, and the kernel must be "linear",
    "poly", "rbf" or "sigmoid". `memory_limit` is the limit of the memory of the device.
    """

    device: Any = parameter(
        'Device to train and to predict on: "cuda" or "cuda:N" is a GPU by PyTorch or CuPy, "cpu" is NumPy, for '
        "comparison.",
        default="cuda",
        check=device,
        choices=("cuda", "cpu"),
        form='"cuda:N" or torch.device',
        kw_only=False,
    )
