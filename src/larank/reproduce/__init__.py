"""The experiments of the papers, run again."""

from __future__ import annotations

from larank.reproduce import active, larank, lasvm, mcsvm, sdm, sequence
from larank.reproduce.experiment import Experiment, Report, Reproduction, Scope

__all__ = ["Experiment", "Report", "Reproduction", "Scope", "experiments"]


def experiments() -> dict[str, Experiment]:
    """All experiments by name."""
    thesis = (lasvm.EXPERIMENT, active.EXPERIMENT, sequence.EXPERIMENT)
    papers = (*larank.EXPERIMENTS, *mcsvm.EXPERIMENTS, sdm.EXPERIMENT, *thesis)
    return {experiment.name: experiment for experiment in papers}
