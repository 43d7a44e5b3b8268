"""LaRank to a duality gap: one pass, then the rounds of SVMstruct on the support vectors that it has found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from larank.structured.cuttingplanes import NSlack
from larank.structured.larank import LaRankSolver
from larank.structured.solver import Visits
from larank.training import FromScratch, ObjectiveValues


class PassThenRounds:
    """A pass of LaRank and the rounds after it, as the training loop sees them."""

    def __init__(self, larank: LaRankSolver, visits: Visits, rounds: NSlack) -> None:
        self.larank, self.visits, self.rounds = larank, visits, rounds
        self.pairs = visits.pairs
        self._now: Visits | NSlack = visits

    def advance(self) -> bool:
        """Visit the next example, or go on with the rounds, which have no end of their own."""
        is_over = self._now.advance()
        if is_over and self._now is self.visits:
            self._now = self.rounds
            seen = self.larank.objectives(self.larank.loss())
            self.rounds.begin_with(self.larank.steps.patterns.values(), seen.primal - seen.dual)
        return False

    def estimate(self) -> ObjectiveValues | None:
        """The objectives as they were seen on the way."""
        return self._now.estimate()

    def evaluate(self) -> FromScratch:
        """The objectives from scratch."""
        return self._now.evaluate()

    def iterations(self) -> float:
        """Passes over the data so far."""
        return self.visits.iterations() + self.rounds.iterations()

    def details(self) -> Mapping[str, Any]:
        """Nothing more."""
        return {}

    @property
    def certificate_calls(self) -> int:
        """How often arg max was asked for a certificate."""
        return self.visits.certificate_calls + self.rounds.certificate_calls

    def hand_back(self) -> None:
        """Make what the rounds have found the support vectors of LaRank, which can go on from there."""
        if self._now is self.rounds:
            self.larank.take_over(self.rounds.set)
