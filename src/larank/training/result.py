"""The certificate every solver reports: what was reached, how far from the optimum it can be, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from larank.data.models import persistable_value
from larank.data.schema import SchemaError, check_fields

if TYPE_CHECKING:
    from larank.training.loop import Outcome


Status = Literal["converged", "completed", "max_iter", "time_limit", "precision", "interrupted"]
"""How training ended; "completed": the passes asked for were made, "precision": the numbers allow no more."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One point of the training history.

    `exact` says whether the objectives were computed from scratch at this point. Otherwise they are what the solver
    saw on its way: the losses of the last loop, each as it was when its example was visited. `error` is the share of
    validation examples misclassified, where there are any; `online_error` that of the training examples so far, each
    when it came, where the solver counts them. `rounds` and `bytes_sent` are told by training on a cluster.
    """

    seconds: float
    iterations: float
    primal: float
    dual: float
    violation: float
    exact: bool
    kernel_values: int = 0
    support_patterns: int = 0
    error: float | None = None
    online_error: float | None = None
    rounds: int | None = None
    bytes_sent: int | None = None

    @property
    def gap(self) -> float:
        """Primal minus dual objective."""
        return self.primal - self.dual


def _checked_point(settings: Any) -> Checkpoint:
    check_fields(Checkpoint, settings)
    return Checkpoint(**settings)


_LONG = ("operations", "history", "breakdown")  # what a line has no room for


@persistable_value
@dataclass(frozen=True, repr=False)
class Result:
    """How training ended, with the objectives at the final model.

    The dual is a lower bound on the optimal objective, so `gap` bounds how much better any other model could be. Where
    a problem is not convex, as with a kernel that is not positive semi-definite, there is none, and both are NaN.
    If `exact` is False, the primal objective is not that of all examples: it was computed from a random sample of them,
    and `primal_error` is its standard error, or, where that is None, it is what the solver saw on its way.
    Solvers that solve no problem, such as perceptrons, have no objectives: these are NaN. `breakdown` says how many
    seconds each kind of work took. ``print`` shows the main figures, and `to_dict` has all.
    """

    solver: str
    status: Status
    primal: float
    dual: float
    violation: float
    iterations: float
    seconds: float
    support_patterns: int
    support_vectors: int
    kernel_values: int = 0
    argmax_calls: int = 0
    operations: Mapping[str, int] = field(default_factory=dict)
    history: tuple[Checkpoint, ...] = ()
    exact: bool = True
    breakdown: Mapping[str, float] = field(default_factory=dict)
    primal_error: float | None = None

    @classmethod
    def of(
        cls,
        outcome: Outcome,
        *,
        solver: str,
        iterations: float,
        support_patterns: int,
        support_vectors: int,
        kernel_values: int = 0,
        argmax_calls: int = 0,
        operations: Mapping[str, int],
        breakdown: Mapping[str, float] | None = None,
    ) -> Result:
        """What the training loop returned, with the counts of a solver."""
        at = outcome.objectives
        return cls(
            solver=solver,
            status=outcome.status,
            primal=at.primal,
            dual=at.dual,
            violation=at.violation,
            iterations=iterations,
            seconds=outcome.seconds,
            support_patterns=support_patterns,
            support_vectors=support_vectors,
            kernel_values=kernel_values,
            argmax_calls=argmax_calls,
            operations=operations,
            history=outcome.history,
            exact=outcome.exact,
            primal_error=0.0 if outcome.exact else getattr(at, "primal_error", None),
            breakdown={} if breakdown is None else {**breakdown, "certificate": outcome.certificate_seconds},
        )

    @property
    def gap(self) -> float:
        """Primal minus dual objective: at most this far from the optimum."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap divided by the primal objective."""
        if self.primal == 0 and not math.isnan(self.dual):
            return 0.0
        return self.gap / self.primal if 0 < self.primal < math.inf else math.nan

    @property
    def has_objective(self) -> bool:
        """Whether the solver has objectives at all."""
        return not math.isnan(self.primal)

    def figures(self) -> dict[str, object]:
        """The main figures by their names, in reading order."""
        figures: dict[str, object] = {"status": self.status.replace("_", " ")}
        if self.has_objective:
            figures |= {
                "primal objective" if self.exact else "primal (estimate)": self._told_primal(),
                "dual objective": self.dual,
                "duality gap" if self.exact else "gap (estimate)": self.gap,
                "relative gap": f"{self.relative_gap:.2e}",
            }
        if self.history and self.history[-1].online_error is not None:
            figures["online error"] = f"{self.history[-1].online_error:.2%}"
        if not math.isnan(self.violation):
            figures["largest violation"] = f"{self.violation:.2e}"
        figures["support patterns"] = self.support_patterns
        if self.kernel_values:
            figures["kernel values"] = self.kernel_values
        if self.argmax_calls:
            figures["arg max calls"] = self.argmax_calls
        return figures | {"passes": f"{self.iterations:.1f}", "seconds": f"{self.seconds:.2f}"}

    def _told_primal(self) -> object:
        """The number, with its standard error where it has one."""
        return f"{self.primal:.6g} ± {self.primal_error:.6g}" if self.primal_error else self.primal

    def __str__(self) -> str:
        figures = {"solver": self.solver, **self.figures()}
        width = max(map(len, figures))
        shown = {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in figures.items()}
        return "\n".join(f"{name:{width}}  {value}" for name, value in shown.items())

    def __repr__(self) -> str:
        told = (f"{name}={value!r}" for name, value in vars(self).items() if name not in _LONG)
        return f"Result({', '.join(told)}, history of {len(self.history)} points)"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Result:
        """The inverse of `to_dict`; raises a ValueError for values that are not of their types."""
        points = values.get("history", ()) if isinstance(values, Mapping) else None
        if not isinstance(points, list | tuple | Iterator):
            raise SchemaError("a Result must be a dict of its fields, with a list of points as its history")
        settings = {**values, "history": tuple(map(_checked_point, points))}
        check_fields(cls, settings)
        return cls(**settings)
