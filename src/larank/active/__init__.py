"""A learner that asks a person for labels, by the strategies of `larank.kernel.selection`."""

from larank.active.advice import Advice
from larank.active.learner import ActiveLearner, LabelBudgetExhausted, PoolExhausted
from larank.kernel.selection import Active, AutoActive, Gradient, GradualStrategy, Random, Strategy

__all__ = [
    "Active",
    "ActiveLearner",
    "Advice",
    "AutoActive",
    "Gradient",
    "GradualStrategy",
    "LabelBudgetExhausted",
    "PoolExhausted",
    "Random",
    "Strategy",
]
