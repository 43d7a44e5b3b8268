"""The experiments of the papers, run again."""

from __future__ import annotations

from larank.reproduce import active, larank, lasvm, mcsvm, sdm
from larank.reproduce.experiment import Experiment, Report, Reproduction, Scope

__all__ = ["Experiment", "Report", "Reproduction", "Scope", "experiments"]


def experiments() -> dict[str, Experiment]:
    """All experiments by name."""
    papers = (*larank.EXPERIMENTS, *mcsvm.EXPERIMENTS, sdm.EXPERIMENT, lasvm.EXPERIMENT, active.EXPERIMENT)
    return {experiment.name: experiment for experiment in papers}
