"""larank's `SequenceTagger`, straight from the file, in an order drawn from a fixed seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.sequence.libraries.solver import Fit, Tags
from benchmarks.stopwatch import Stopwatch

COLUMNS = ("word", "pos")


@dataclass(frozen=True)
class LarankTagger:
    """`settings` are parameters of the estimator."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    requires: str = "larank.sequence.tagger"
    threads: int = 1

    def having(self, **settings: Any) -> LarankTagger:
        return replace(self, settings={**self.settings, **settings})

    def with_threads(self, threads: int) -> LarankTagger:
        return replace(self, name=f"{self.name}-{threads}", threads=threads)

    def fit(self, path: Path) -> Fit:
        from larank.data.columns import ConllFile

        model = self.model()
        with Stopwatch() as watch:
            model.fit(ConllFile(path))
        result = model.result_

        def tag_file(file: Path) -> Tags:
            tags: Tags = model.predict(ConllFile(file))
            return tags

        extra = {"status": result.status, "primal": float(result.primal), "dual": float(result.dual)}
        return Fit(watch, dict(result.breakdown), tag_file, extra=extra)

    def model(self) -> Any:
        """Untrained."""
        from larank.sequence.features import CHUNKING
        from larank.sequence.tagger import SequenceTagger

        given = {"templates": CHUNKING, "columns": COLUMNS, "n_jobs": self.threads, "random_state": 0}
        return SequenceTagger(**{**given, **self.settings})


EXACT = LarankTagger("larank-exact", {"inference": "exact", "order": 1, "n_reprocess": 5})
GREEDY = LarankTagger("larank-greedy", {"inference": "greedy", "order": 2, "n_reprocess": 1})
SOLVERS = (EXACT, GREEDY, EXACT.with_threads(2), GREEDY.with_threads(2))
