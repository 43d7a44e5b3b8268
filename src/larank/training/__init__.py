"""Training in time, and what it proves: the loop, its results and its progress."""

from larank.training.checkpointfile import CheckpointFile, CheckpointRequest, State
from larank.training.interrupts import Interrupt, first_interrupt, on_interrupt, raises
from larank.training.loop import (
    CertificateWarning,
    FromScratch,
    Limits,
    Looks,
    Objectives,
    ObjectiveValues,
    Outcome,
    Resumable,
    Training,
    TrainingWarning,
    completed,
    train,
    warn_if_early,
)
from larank.training.progress import Progress, progress_for
from larank.training.result import Checkpoint, Result, Status

__all__ = [
    "CertificateWarning",
    "Checkpoint",
    "CheckpointFile",
    "CheckpointRequest",
    "FromScratch",
    "Interrupt",
    "Limits",
    "Looks",
    "ObjectiveValues",
    "Objectives",
    "Outcome",
    "Progress",
    "Result",
    "Resumable",
    "State",
    "Status",
    "Training",
    "TrainingWarning",
    "completed",
    "first_interrupt",
    "on_interrupt",
    "progress_for",
    "raises",
    "train",
    "warn_if_early",
]
